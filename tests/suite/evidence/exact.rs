//! Single data sets against the exact free energy: every deviation within 4 of its own standard errors.

use super::synthetic::{Energies, Gaussian};
use ergodic::diagnostic::evidence::*;

const REPLICAS: [Replicas; 2] = [Replicas::Independent, Replicas::Exchanging];

/// Every estimate of ln Z(beta_R) - ln Z(beta_1), by name. The trapezoid rule is given what it should find.
fn all(
    problem: Gaussian,
    ladder: &Ladder,
    replicas: Replicas,
) -> Vec<(&'static str, Estimate, f64)> {
    let betas = ladder.betas();
    let exact = problem.ln_z(betas[betas.len() - 1]) - problem.ln_z(betas[0]);
    let trapezoid: f64 = betas
        .windows(2)
        .map(|b| -0.5 * (b[1] - b[0]) * (problem.mean(b[0]) + problem.mean(b[1])))
        .sum();
    let integral = thermodynamic_integration(ladder, replicas).unwrap();
    let stones = stepping_stone(ladder, replicas).unwrap();
    let mbar = Mbar::solve(ladder).unwrap();
    vec![
        ("trapezoid", integral.trapezoid.ln_z, trapezoid),
        ("corrected", integral.corrected.ln_z, exact),
        ("forward", stones.forward, exact),
        ("backward", stones.backward, exact),
        ("average", stones.average, exact),
        ("MBAR", mbar.log_evidence(replicas).unwrap(), exact),
    ]
}

/// Dimension and rungs, such that neighbours overlap and backward weights have a fourth moment.
const CASES: [(usize, usize); 3] = [(2, 11), (10, 12), (50, 19)];

/// Null: no estimator is biased by more than its error bar at any dimension, with and without the prior at the start,
/// for independent and for autocorrelated draws.
#[test]
#[ignore = "long: tests/run"]
fn every_estimator_finds_the_exact_evidence() {
    for (dim, rungs) in CASES {
        let problem = Gaussian {
            dim,
            prior_variance: 4.0,
        };
        for first in [0.0, 0.2] {
            let betas = problem.ladder(first, 2.5, rungs);
            for phi in [0.0, 0.9] {
                let seed = 100 * dim as u64 + (50.0 * first + 10.0 * phi) as u64;
                let energies = problem.draws(&betas, (4, 1000), (phi, 0.0), seed);
                let ladder = Ladder::new(&betas, &energies).unwrap();
                assert_eq!(ladder.starts_at_prior(), first == 0.0);
                for replicas in REPLICAS {
                    for (name, estimate, exact) in all(problem, &ladder, replicas) {
                        let sigmas = (estimate.value - exact) / estimate.standard_error;
                        assert!(
                            sigmas.abs() < 4.0,
                            "{name}, dimension {dim}, first rung {first}, phi {phi}: {estimate:?}, exact {exact}"
                        );
                        // An error bar as wide as the answer would pass anything.
                        assert!(
                            estimate.standard_error < 0.05 * exact.abs(),
                            "{name} {estimate:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Null: the test above passes whatever it is given. Inverse temperatures 10 % too high must be noticed by all.
#[test]
fn a_mislabelled_ladder_is_noticed() {
    let problem = Gaussian {
        dim: 10,
        prior_variance: 4.0,
    };
    let betas = problem.ladder(0.0, 2.5, 12);
    let energies = problem.draws(&betas, (4, 1000), (0.0, 0.0), 1);
    let wrong: Vec<f64> = betas.iter().map(|b| 1.1 * b).collect();
    let ladder = Ladder::new(&wrong, &energies).unwrap();
    for (name, estimate, exact) in all(problem, &ladder, Replicas::Independent) {
        let sigmas = (estimate.value - exact) / estimate.standard_error;
        assert!(sigmas.abs() > 4.0, "{name}: {sigmas}");
    }
}

/// Null: the estimates of the discretisation error are off by more than 4 of their standard errors, or of no use.
#[test]
#[ignore = "long: tests/run"]
fn the_discretisation_error_of_a_coarse_ladder_is_estimated() {
    let problem = Gaussian {
        dim: 10,
        prior_variance: 4.0,
    };
    let betas = problem.ladder(0.0, 2.5, 6);
    let energies = problem.draws(&betas, (4, 50_000), (0.0, 0.0), 2);
    let ladder = Ladder::new(&betas, &energies).unwrap();
    let found = thermodynamic_integration(&ladder, Replicas::Independent).unwrap();
    let exact = problem.ln_z(2.5);
    let mut off = Vec::new();
    for rule in [found.trapezoid, found.corrected] {
        let remains = exact - rule.ln_z.value;
        let noise = rule
            .ln_z
            .standard_error
            .hypot(rule.discretisation.standard_error);
        // Without the estimate the rule is off by more than noise; with it, by a third of that at most.
        assert!(remains.abs() > 4.0 * rule.ln_z.standard_error);
        let left = (remains - rule.discretisation.value).abs();
        assert!(
            left < 0.3 * remains.abs() + 4.0 * noise,
            "{left} of {remains}"
        );
        off.push(remains.abs());
    }
    assert!(off[1] < 0.3 * off[0]);
    assert!(found.bounds.0 < exact && exact < found.bounds.1);
}

/// Null: errors of a function of draws that are repeated k times are those of k times as many draws.
#[test]
fn repeated_draws_teach_nothing() {
    let problem = Gaussian {
        dim: 4,
        prior_variance: 1.0,
    };
    let betas = problem.ladder(0.0, 4.0, 6);
    let once = problem.draws(&betas, (4, 500), (0.0, 0.0), 3);
    let repeat = |chain: &Vec<f64>| chain.iter().flat_map(|e| [*e; 8]).collect();
    let often: Energies = once
        .iter()
        .map(|chains| chains.iter().map(repeat).collect())
        .collect();
    let of = |energies: &Energies| {
        let ladder = Ladder::new(&betas, energies).unwrap();
        let covariance = Mbar::solve(&ladder).unwrap().covariance;
        let mut found = all(problem, &ladder, Replicas::Independent);
        let asymptotic = Estimate {
            value: found[5].1.value,
            standard_error: covariance[5][5].sqrt(),
        };
        found.push(("MBAR, asymptotic", asymptotic, 0.0));
        found
    };
    for ((name, once, _), (_, often, _)) in of(&once).into_iter().zip(of(&often)) {
        // MBAR weighs rungs by their inefficiencies, which are estimates.
        assert!(
            (once.value - often.value).abs() < 0.1 * once.standard_error,
            "{name}"
        );
        let ratio = often.standard_error / once.standard_error;
        assert!((0.85..1.15).contains(&ratio), "{name}: {ratio}");
    }
}

/// Null: Newton's method from a start far off finds another solution than from a good one.
#[test]
fn mbar_converges_and_says_how() {
    let problem = Gaussian {
        dim: 50,
        prior_variance: 4.0,
    };
    let betas = problem.ladder(0.0, 2.5, 19);
    let energies = problem.draws(&betas, (2, 500), (0.5, 0.0), 4);
    let ladder = Ladder::new(&betas, &energies).unwrap();
    let mbar = Mbar::solve(&ladder).unwrap();
    assert!(mbar.convergence.residual < 1e-10);
    assert!(mbar.convergence.newton_steps < 10);
    let again = mbar.solve_again(&ladder).unwrap();
    assert_eq!(
        again.convergence.newton_steps + again.convergence.self_consistent_steps,
        0
    );
    // The two ways to the free energy of a rung are one.
    for (beta, ln_z) in betas.iter().zip(&mbar.ln_z) {
        let at = mbar.ln_z_at(*beta, Replicas::Independent).unwrap();
        assert!((at.estimate.value - ln_z).abs() < 1e-8);
    }
}

/// Null: rungs without overlap get an answer.
#[test]
fn a_ladder_with_a_gap_is_refused() {
    let problem = Gaussian {
        dim: 50,
        prior_variance: 4.0,
    };
    let betas = [0.0, 0.01, 2.0, 2.1];
    let energies = problem.draws(&betas, (2, 500), (0.5, 0.0), 5);
    let ladder = Ladder::new(&betas, &energies).unwrap();
    let error = Mbar::solve(&ladder).unwrap_err().to_string();
    assert!(error.contains("rungs 1 and 2"), "{error}");
    let shares = stepping_stone(&ladder, Replicas::Independent).unwrap();
    assert!(shares.forward_share[1] < 0.01 && shares.forward_share[0] > 0.2);
}

/// Null: an energy that never varies has an error, or another free energy than beta E.
#[test]
fn energies_that_never_vary_are_exact() {
    let energies = vec![vec![vec![2.0; 8]; 2]; 3];
    let ladder = Ladder::new(&[0.0, 0.5, 2.0], &energies).unwrap();
    let mbar = Mbar::solve(&ladder).unwrap();
    let found = mbar.log_evidence(Replicas::Exchanging).unwrap();
    assert!((found.value + 4.0).abs() < 1e-12 && found.standard_error < 1e-12);
    assert!(mbar.covariance[2][2].abs() < 1e-12);
    let stones = stepping_stone(&ladder, Replicas::Exchanging).unwrap();
    assert!((stones.average.value + 4.0).abs() < 1e-12 && stones.average.standard_error < 1e-12);
}

/// Null: an offset of the energy, which adds -beta·offset to ln Z, costs digits or overflows.
#[test]
fn an_offset_of_the_energy_is_exact_however_large() {
    let problem = Gaussian {
        dim: 4,
        prior_variance: 1.0,
    };
    let betas = [0.0, 0.5, 2.0];
    let plain = problem.draws(&betas, (2, 200), (0.5, 0.0), 6);
    let mut far = plain.clone();
    far.iter_mut().flatten().flatten().for_each(|e| *e += 1e5);
    let of = |energies: &Energies| {
        let ladder = Ladder::new(&betas, energies).unwrap();
        all(problem, &ladder, Replicas::Independent)
    };
    for ((name, plain, _), (_, far, _)) in of(&plain).into_iter().zip(of(&far)) {
        assert!((far.value - plain.value + 2e5).abs() < 1e-7, "{name}");
        assert!(
            (far.standard_error / plain.standard_error - 1.0).abs() < 1e-5,
            "{name}"
        );
    }
}

/// Null: with two rungs MBAR is not Bennett's acceptance ratio, solved here by bisection.
#[test]
fn two_rungs_are_bennetts() {
    let problem = Gaussian {
        dim: 4,
        prior_variance: 1.0,
    };
    let energies = problem.draws(&[0.0, 1.5], (2, 200), (0.0, 0.0), 7);
    let ladder = Ladder::new(&[0.0, 1.5], &energies).unwrap();
    let mbar = Mbar::solve(&ladder).unwrap();
    let g = &mbar.inefficiency;
    // ln N_0/N_1, with effective numbers of draws.
    let shift = (g[1] / g[0]).ln();
    let fermi = |x: f64| 1.0 / (1.0 + x.exp());
    let excess = |f: f64| {
        let up = energies[0].iter().flatten();
        let down = energies[1].iter().flatten();
        up.map(|e| fermi(shift + 1.5 * e - f)).sum::<f64>() / g[0]
            - down.map(|e| fermi(f - shift - 1.5 * e)).sum::<f64>() / g[1]
    };
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if excess(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    assert!((mbar.ln_z[1] + low).abs() < 1e-9, "{} {low}", mbar.ln_z[1]);
}
