//! A transition between two phases, whose heat capacity is known exactly.

use super::coverage::{Records, check};
use super::synthetic::{Gaussian, TwoPhases, uniform};
use ergodic::diagnostic::evidence::*;

/// A wide phase 5 above a narrow one, of e^6 times its prior weight: as likely at beta = 1.2.
fn problem() -> TwoPhases {
    TwoPhases {
        phases: [4, 4].map(|dim| Gaussian {
            dim,
            prior_variance: 1.0,
        }),
        offsets: [0.0, 5.0],
        ln_prior: [-6.0, 0.0],
    }
}

/// Null: the transition temperature and the height of the peak lie in their bootstrap bars in 68 % of data sets, and
/// those of the reweighted energy in its own.
#[test]
#[ignore = "long: tests/run"]
fn the_transition_temperature_is_covered() {
    let problem = problem();
    let betas = [0.4, 0.8, 1.2, 1.6, 2.0];
    let (beta, height) = problem.peak(0.5, 2.0);
    let mut records = Records::new();
    for seed in 0..200 {
        let energies = problem.draws(&betas, (2, 300), 0.4, seed);
        let ladder = Ladder::new(&betas, &energies).unwrap();
        let mbar = Mbar::solve(&ladder).unwrap();
        let options = BootstrapOptions {
            replicates: 30,
            block: block_length(&ladder),
            replicas: Replicas::Independent,
        };
        let peak = heat_capacity_peak(&mbar, options, uniform(seed)).unwrap();
        assert_eq!((peak.failed, peak.share_at_an_end), (0, 0.0));
        let mut push =
            |name, estimate, truth| records.entry(name).or_default().push(estimate, truth);
        push("peak temperature", peak.temperature, 1.0 / beta);
        push("peak height", peak.heat_capacity, height);
        let moments = mbar.energy(1.1, Replicas::Independent).unwrap();
        push("<E> at the transition", moments.mean, problem.mean(1.1));
        push(
            "C at the transition",
            moments.heat_capacity,
            problem.heat_capacity(1.1),
        );
    }
    check("two phases", &records);
}

/// Null: a ladder that ends before the peak gets a transition temperature all the same.
#[test]
fn a_peak_outside_the_ladder_is_refused() {
    let problem = problem();
    let betas = [0.3, 0.5, 0.7];
    let energies = problem.draws(&betas, (2, 300), 0.6, 1);
    let ladder = Ladder::new(&betas, &energies).unwrap();
    let mbar = Mbar::solve(&ladder).unwrap();
    let options = BootstrapOptions {
        replicates: 2,
        block: 10,
        replicas: Replicas::Independent,
    };
    let error = heat_capacity_peak(&mbar, options, uniform(1)).unwrap_err();
    assert!(error.to_string().contains("at an end"), "{error}");
}

/// Null: `expectation` and its neighbours take what does not fit.
#[test]
fn what_does_not_fit_is_refused() {
    let problem = problem();
    let betas = [0.9, 1.2];
    let energies = problem.draws(&betas, (2, 100), 0.0, 1);
    let ladder = Ladder::new(&betas, &energies).unwrap();
    let mbar = Mbar::solve(&ladder).unwrap();
    let message = |error: anyhow::Error| error.to_string();
    let apart = Replicas::Independent;
    for beta in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(message(mbar.energy(beta, apart).unwrap_err()).contains("inverse temperature"));
        assert!(message(mbar.difference(1.0, beta, apart).unwrap_err()).contains("must be finite"));
    }
    let short = vec![energies[0].clone()];
    assert!(message(mbar.expectation(1.0, &short, apart).unwrap_err()).contains("1 rungs"));
    let mut other = energies.clone();
    other[1][0].pop();
    assert!(message(mbar.expectation(1.0, &other, apart).unwrap_err()).contains("rung 1"));
    other = energies.clone();
    other[1][0][3] = f64::NAN;
    assert!(message(mbar.expectation(1.0, &other, apart).unwrap_err()).contains("not finite"));
}
