//! The targets of the contract and what is checked on each.

use super::law::Law;
use super::{Found, Lengths, added, parameters, run, sampler, target};
use ergodic::target::analytic::stiffness;
use std::sync::OnceLock;

pub const DIM: usize = 10;
const CONDITION: f64 = 10.0;
pub const TEMPERATURE: f64 = 0.5;
pub const BATCH: f64 = 4.0;
/// Variance of the gradient of a minibatch of [`BATCH`] examples, per component.
pub const VARIANCE: f64 = 16.0 / BATCH;
pub const EXAMPLES: f64 = 1000.0;

/// The largest error of a mean, over the standard deviation of what is averaged: that of 400 independent draws, which convergence asks for.
pub const SHARE: f64 = 0.05;

/// The largest error of what is averaged over many components, relative to it.
const RELATIVE: f64 = 0.01;

/// Curvatures of the Gaussian.
pub fn curvatures() -> Vec<f64> {
    (0..DIM).map(|i| stiffness(i, DIM, CONDITION)).collect()
}

/// Means, variances and temperatures on the Gaussian.
pub fn gaussian(name: &str, source: &str, lengths: &Lengths, law: &Law) -> Found {
    let target = target(
        "target(potential::gaussian(#{ dim: 10, condition: 10, examples: 1000, noise: 4.0 }))",
    );
    let run = run(
        &target,
        &sampler(source),
        TEMPERATURE,
        lengths,
        &parameters(DIM),
    );
    let mut found = Found::of(&run);
    let draws = |i: usize| run.draws(&format!("w{i}"), 0, 0, true).unwrap();
    let mut ratios = Vec::new();
    for i in 0..DIM {
        found.within(
            &format!("{name}: mean of w{i}"),
            &draws(i),
            1.0,
            SHARE * law.variances[i].sqrt(),
        );
        let square = |x: f64| (x - 1.0).powi(2) / law.variances[i];
        let squares: Vec<Vec<f64>> = draws(i)
            .into_iter()
            .map(|c| c.into_iter().map(square).collect())
            .collect();
        let what = format!("{name}: variance of w{i} over its law");
        found.within(&what, &squares, 1.0, SHARE * 2f64.sqrt());
        ratios.push(squares);
    }
    // All modes together: the sharpest test of the noise.
    let what = format!("{name}: variances over their law, summed over the modes");
    let whole = DIM as f64;
    found.within(&what, &added(ratios.into_iter()), whole, RELATIVE * whole);
    let reported = |what: &str| run.draws(what, 0, 0, true).unwrap();
    if let Some(virial) = law.virial {
        // Σ w g has the mean of Σ (w-1) g and more spread.
        found.within(
            &format!("{name}: virial temperature"),
            &reported("virial"),
            virial,
            2.0 * RELATIVE * virial,
        );
    }
    if let Some(kinetic) = law.kinetic {
        found.within(
            &format!("{name}: kinetic temperature"),
            &reported("kinetic"),
            kinetic,
            RELATIVE * kinetic,
        );
    }
    if run
        .info
        .columns
        .iter()
        .any(|c| c.name == "exp_energy_error")
    {
        let what = format!("{name}: ⟨exp(-ΔH/T)⟩");
        found.within(&what, &reported("exp_energy_error"), 1.0, RELATIVE);
    }
    found.speed(&run, (0..DIM).map(|i| format!("w{i}")));
    found
}

const WELLS: usize = 16;
const BARRIER: f64 = 1.0;
const TILT: f64 = 0.3;

/// The weight of the left well of a double well, by quadrature.
fn left_weight() -> f64 {
    let weight = |from: f64, to: f64| {
        let n = 20_000;
        let energy = |x: f64| BARRIER * (x * x - 1.0f64).powi(2) + TILT * x;
        let at = |i: usize| from + (to - from) * (i as f64 + 0.5) / n as f64;
        (0..n)
            .map(|i| (-energy(at(i)) / TEMPERATURE).exp())
            .sum::<f64>()
            * (to - from)
    };
    weight(-4.0, 0.0) / (weight(-4.0, 0.0) + weight(0.0, 4.0))
}

/// The fraction of independent double wells that are on the left.
pub fn wells(name: &str, source: &str, lengths: &Lengths) -> Found {
    let target = target(
        "target(potential::double_well(#{ dim: 16, barrier: 1.0, tilt: 0.3, examples: 1000, noise: 1.0 }))",
    );
    let run = run(
        &target,
        &sampler(source),
        TEMPERATURE,
        lengths,
        &parameters(WELLS),
    );
    let on_left = |i: usize| -> Vec<Vec<f64>> {
        let draws = run.draws(&format!("w{i}"), 0, 0, true).unwrap();
        let left = |x: f64| if x < 0.0 { 1.0 / WELLS as f64 } else { 0.0 };
        draws
            .into_iter()
            .map(|c| c.into_iter().map(left).collect())
            .collect()
    };
    let mut found = Found::of(&run);
    let what = format!("{name}: weight of the left well");
    let (weight, wells) = (left_weight(), WELLS as f64);
    let spread = (weight * (1.0 - weight) / wells).sqrt();
    found.within(
        &what,
        &added((0..WELLS).map(on_left)),
        weight,
        SHARE * spread,
    );
    found.speed(&run, (0..WELLS).map(|i| format!("w{i}")));
    found
}

const OBSERVABLES: [&str; 2] = ["cost", "norm2"];

/// Means, their standard errors and standard deviations on the small network, and the least ESS per second.
fn network_means(source: &str, lengths: &Lengths) -> (Vec<[f64; 3]>, f64) {
    let target = target(
        "target(model::mlp(#{ layers: [8, 6, 3], activation: \"tanh\" }),
            dataset::spin_vectors(#{ dim: 8, classes: 3, train: 120, test: 30, flip: 0.3 }), #{ prior: prior::gaussian(0.05) })",
    );
    let observables = OBSERVABLES.map(|o| format!("observable::{o}()"));
    let run = run(&target, &sampler(source), 0.02, lengths, &observables);
    let mean = |name: &str| {
        let draws = run.draws(name, 0, 0, true).unwrap();
        let numbers = run.summarise(draws);
        [numbers.mean, numbers.mcse_mean, numbers.sd]
    };
    let mut found = Found::default();
    found.speed(&run, OBSERVABLES.iter().map(ToString::to_string));
    (OBSERVABLES.map(mean).to_vec(), found.ess_per_second)
}

/// What a sampler says of its bias on this network: what to multiply the exact means by.
fn stated(source: &str) -> [f64; 2] {
    match sampler(source).bias() {
        Some(bias) => [1.0 + bias.cost, 1.0 + bias.norm2],
        None => [1.0; 2],
    }
}

/// Cost and |w|² of the small network against long hybrid Monte Carlo, and against what the sampler says of its bias.
pub fn network(name: &str, source: &str, lengths: &Lengths) -> Found {
    static EXACT: OnceLock<Vec<[f64; 3]>> = OnceLock::new();
    let exact = EXACT.get_or_init(|| {
        network_means("sampler::hmc(#{ leapfrog: 15 })", &Lengths::new(12_000, 1)).0
    });
    let (means, ess_per_second) = network_means(source, lengths);
    let mut found = Found {
        ess_per_second,
        ..Found::default()
    };
    let all = OBSERVABLES.iter().zip(means).zip(exact).zip(stated(source));
    for (((observable, a), b), factor) in all {
        let what = format!("{name}: {observable} of the network against HMC");
        found.check(&what, (a[0], a[1].hypot(b[1])), factor * b[0], SHARE * b[2]);
    }
    found
}
