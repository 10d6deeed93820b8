//! The density of states of a law that is known: of ½|w|² under a Gaussian, a power times an exponential.

use super::coverage::{Records, check};
use super::synthetic::Gaussian;
use ergodic::diagnostic::evidence::*;

const PROBLEM: Gaussian = Gaussian {
    dim: 10,
    prior_variance: 4.0,
};

/// ln of the mean over a bin of g, and with Z = 1 at `first`: E is Gamma distributed with shape 5.
fn exact(low: f64, high: f64, first: f64) -> f64 {
    let g = |e: f64| {
        let theta = PROBLEM.scale(first);
        (4.0 * e.ln() - e / theta + first * e).exp() / (24.0 * theta.powi(5))
    };
    let n = 200;
    let step = (high - low) / f64::from(n);
    let sum: f64 = (0..n).map(|k| g(low + (f64::from(k) + 0.5) * step)).sum();
    (sum / f64::from(n)).ln()
}

/// Null: ln g and its slope are covered by their bars of one standard error in 68 % of data sets, with draws that depend on each other and with rungs that do.
#[test]
#[ignore = "long: tests/run"]
fn the_density_of_states_is_covered() {
    let edges = [0.5, 1.0, 2.0, 4.0, 8.0];
    for first in [0.0, 0.2] {
        let betas = PROBLEM.ladder(first, 2.5, 8);
        let mut records = Records::new();
        for seed in 0..200 {
            for (replicas, energies) in [
                (
                    Replicas::Independent,
                    PROBLEM.draws(&betas, (2, 200), (0.5, 0.0), seed),
                ),
                (
                    Replicas::Exchanging,
                    PROBLEM.exchange(&betas, (2, 200), 0.5, seed),
                ),
            ] {
                let ladder = Ladder::new(&betas, &energies).unwrap();
                let mbar = Mbar::solve(&ladder).unwrap();
                let found = mbar.density_of_states(&edges, replicas).unwrap();
                let apart = replicas == Replicas::Independent;
                let ln_g = |k: usize| exact(edges[k], edges[k + 1], first);
                let mut push = |name, e: Estimate, truth| {
                    records.entry(name).or_default().push(e, truth);
                };
                let names = [
                    ["ln g, 0.5 to 1", "ln g, 4 to 8", "slope"],
                    [
                        "swaps: ln g, 0.5 to 1",
                        "swaps: ln g, 4 to 8",
                        "swaps: slope",
                    ],
                ];
                let names = names[usize::from(!apart)];
                push(names[0], found.ln_g[0], ln_g(0));
                push(names[1], found.ln_g[3], ln_g(3));
                push(names[2], found.beta[1], (ln_g(2) - ln_g(1)) / 1.5);
            }
        }
        check(&format!("density of states from {first}"), &records);
    }
}

/// Null: bins without draws have numbers, or edges that do not increase are taken.
#[test]
fn empty_bins_and_wrong_edges() {
    let betas = PROBLEM.ladder(0.0, 2.5, 8);
    let energies = PROBLEM.draws(&betas, (2, 200), (0.0, 0.0), 1);
    let ladder = Ladder::new(&betas, &energies).unwrap();
    let mbar = Mbar::solve(&ladder).unwrap();
    let found = mbar
        .density_of_states(&[-2.0, -1.0, 3.0, 4.0], Replicas::Exchanging)
        .unwrap();
    assert!(found.ln_g[0].value.is_nan() && found.ln_g[0].standard_error.is_nan());
    assert!(found.beta[0].value.is_nan() && found.effective_draws[0] == 0.0);
    let truth = exact(3.0, 4.0, 0.0);
    let e = found.ln_g[2];
    assert!(
        (e.value - truth).abs() < 4.0 * e.standard_error && e.standard_error < 0.2,
        "{e:?} {truth}"
    );
    // All of the prior's mass is in the bins that hold all draws.
    let all = mbar
        .density_of_states(&[0.0, 1e6], Replicas::Independent)
        .unwrap()
        .ln_g[0];
    assert!(
        (all.value + 1e6f64.ln()).abs() < 1e-9 && all.standard_error < 1e-9,
        "{all:?}"
    );
    for edges in [&[1.0][..], &[1.0, 1.0], &[0.0, f64::INFINITY]] {
        let error = mbar
            .density_of_states(edges, Replicas::Independent)
            .unwrap_err();
        assert!(error.to_string().contains("edges"), "{error}");
    }
}
