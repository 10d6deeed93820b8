//! The contract of samplers: every registered one, on the same targets, held to its law.
//!
//! * Anisotropic Gaussian with noisy examples: means, variances, virial and kinetic temperature against the *exact stationary
//!   law of the discrete dynamics* (linear recursions have one), so that no discretisation error has to be tolerated.
//! * Double wells: the weight of the left well against quadrature.
//! * A small network: cost and |w|² against long hybrid Monte Carlo.
//!
//! Null hypothesis of every comparison: the sampler has the stated law. The bound is four standard errors, measured from the
//! chains themselves (rank-free MCSE of the mean); seeds are fixed.

use super::support::Scratch;
use ergodic::diagnostic;
use ergodic::observable::{self, Handle};
use ergodic::options::{Entry, Options, Value};
use ergodic::sampler::{self, Configured};
use ergodic::schedule::Schedule;
use ergodic::simulation;
use ergodic::simulation::plan::Plan;
use ergodic::simulation::run::Run;
use ergodic::simulation::session::Session;
use ergodic::target::analytic::{self, stiffness};
use ergodic::target::prior::Prior;
use ergodic::target::{EnergyScale, Potential, Target};
use ergodic::trigger::Trigger;
use std::sync::Arc;

/// Build a registry entry with these options.
fn build<T>(registry: &'static [Entry<T>], name: &str, options: &[(&str, f64)]) -> T {
    let entry = registry.iter().find(|e| e.name == name).unwrap();
    let value = |x: f64| {
        if x.fract() == 0.0 {
            Value::Int(x as i64)
        } else {
            Value::Float(x)
        }
    };
    let given = options
        .iter()
        .map(|(k, v)| (k.to_string(), value(*v)))
        .collect();
    (entry.build)(&Options::check(name, entry.options, given).unwrap()).unwrap()
}

fn parameter(i: usize) -> Handle {
    build(observable::REGISTRY, "parameter", &[("index", i as f64)])
}

struct Lengths {
    chains: usize,
    steps: u64,
    burn_in: u64,
    every: u64,
}

fn run(
    target: &Target,
    sampler: &Configured,
    temperature: f64,
    l: Lengths,
    observables: Vec<Handle>,
) -> Arc<Run> {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let plan = Plan {
        kind: "sample",
        name: "contract".into(),
        temperatures: vec![Schedule::Constant(temperature)],
        chains: l.chains,
        start: None,
        steps: l.steps,
        burn_in: l.burn_in,
        every: Trigger::Every(l.every),
        observables,
        region: 1e3,
        seed: 20_261_121,
        full_steps: None,
    };
    simulation::run(&plan, target, sampler, &session).unwrap()
}

/// Fail unless `mean ± mcse` of the chains is within four standard errors of `expected`.
fn within(what: &str, chains: &[Vec<f64>], expected: f64) {
    let (mean, error) = (diagnostic::mean(chains), diagnostic::mcse_mean(chains));
    let z = (mean - expected) / error;
    assert!(
        z.abs() < 4.0,
        "{what}: {mean:.6} ± {error:.1e}, expected {expected:.6}, {z:+.1} standard errors"
    );
}

const DIM: usize = 10;
const CONDITION: f64 = 10.0;
const TEMPERATURE: f64 = 0.5;
const NOISE: f64 = 4.0;
const BATCH: f64 = 4.0;
/// Variance of the minibatch gradient, per component.
const VARIANCE: f64 = NOISE * NOISE / BATCH;

/// What the discrete dynamics does to one mode of curvature k: variance of w, and of p/√M if there is a momentum.
struct Law {
    variance: f64,
    kinetic: Option<f64>,
}

/// One sampler on the Gaussian: its options and its exact law per curvature.
struct Case {
    name: &'static str,
    options: &'static [(&'static str, f64)],
    law: fn(f64) -> Law,
    steps: u64,
    every: u64,
}

const SGLD_STEP: f64 = 0.1;
const RATIO: f64 = 0.1;
const FRICTION: f64 = 0.1;

/// Every sampler of the registry must stand here.
const CASES: &[Case] = &[
    Case {
        name: "sgld",
        options: &[("step", SGLD_STEP), ("batch", BATCH)],
        law: sgld_law,
        steps: 400_000,
        every: 10,
    },
    Case {
        name: "hmc",
        options: &[("leapfrog", 5.0)],
        law: exact_law,
        steps: 60_000,
        every: 1,
    },
    Case {
        name: "pseudo_langevin",
        options: &[
            ("batch", BATCH),
            ("ratio", RATIO),
            ("friction", FRICTION),
            ("ratio_max", 0.2),
        ],
        law: pseudo_langevin_law,
        steps: 1_000_000,
        every: 50,
    },
];

fn exact_law(k: f64) -> Law {
    Law {
        variance: TEMPERATURE / k,
        kinetic: Some(TEMPERATURE),
    }
}

/// x' = (1-εk/2)x - (ε/2)ξ + sqrt(εT)η
fn sgld_law(k: f64) -> Law {
    let (e, keep) = (SGLD_STEP, 1.0 - SGLD_STEP * k / 2.0);
    Law {
        variance: (e * TEMPERATURE + e * e * VARIANCE / 4.0) / (1.0 - keep * keep),
        kinetic: None,
    }
}

/// Π' = cΠ - a(kx+ξ) + σR, x' = x + Π'/M: the covariance of (x, Π) is a fixed point, found by iteration. Minibatch noise and
/// white noise add up to (1-c²)MT whatever V is; M is what theory says for V.
fn pseudo_langevin_law(k: f64) -> Law {
    let c = 1.0 - FRICTION * FRICTION;
    let mass = VARIANCE / (4.0 * (1.0 - c) * TEMPERATURE * RATIO);
    let (a, noise) = (0.5 * (1.0 + c), (1.0 - c * c) * mass * TEMPERATURE);
    let (mut xx, mut xp, mut pp) = (TEMPERATURE / k, 0.0, mass * TEMPERATURE);
    for _ in 0..200_000 {
        let new_pp = c * c * pp - 2.0 * c * a * k * xp + a * a * k * k * xx + noise;
        let new_xp = c * xp - a * k * xx + new_pp / mass; // <x Π'> + <Π'²>/M
        let cross = c * xp - a * k * xx;
        xx += 2.0 * cross / mass + new_pp / (mass * mass);
        (xp, pp) = (new_xp, new_pp);
    }
    Law {
        variance: xx,
        kinetic: Some(pp / mass),
    }
}

fn gaussian() -> Target {
    let options = [
        ("dim", DIM as f64),
        ("condition", CONDITION),
        ("examples", 1000.0),
        ("noise", NOISE),
    ];
    let potential: Arc<dyn Potential> = build(analytic::REGISTRY, "gaussian", &options);
    Target::new(potential, EnergyScale::Mean, &Prior::None).unwrap()
}

#[test]
fn every_registered_sampler_has_a_case() {
    let registered: Vec<_> = sampler::REGISTRY.iter().map(|e| e.name).collect();
    let cases: Vec<_> = CASES.iter().map(|c| c.name).collect();
    assert_eq!(registered, cases, "add the new sampler's law to CASES");
}

#[test]
fn gaussian_means_variances_and_temperatures_follow_the_law() {
    let target = gaussian();
    for case in CASES {
        let sampler = build(sampler::REGISTRY, case.name, case.options);
        let lengths = Lengths {
            chains: 4,
            steps: case.steps,
            burn_in: case.steps / 20,
            every: case.every,
        };
        let run = run(
            &target,
            &sampler,
            TEMPERATURE,
            lengths,
            (0..DIM).map(parameter).collect(),
        );
        let mut ratios: Vec<Vec<f64>> = Vec::new();
        let mut virial = 0.0;
        for i in 0..DIM {
            let k = stiffness(i, DIM, CONDITION);
            let law = (case.law)(k);
            let draws = run.draws(&format!("w{i}"), 0, 0, true).unwrap();
            within(&format!("{}: mean of w{i}", case.name), &draws, 1.0);
            let square = |x: &f64| (x - 1.0).powi(2) / law.variance;
            let squares: Vec<Vec<f64>> = draws
                .iter()
                .map(|c| c.iter().map(square).collect())
                .collect();
            within(
                &format!("{}: variance of w{i} over its law", case.name),
                &squares,
                1.0,
            );
            virial += k * law.variance / DIM as f64;
            for (c, chain) in squares.into_iter().enumerate() {
                match ratios.get_mut(c) {
                    Some(sum) => sum
                        .iter_mut()
                        .zip(chain)
                        .for_each(|(s, x)| *s += x / DIM as f64),
                    None => ratios.push(chain.into_iter().map(|x| x / DIM as f64).collect()),
                }
            }
        }
        // All modes together: the sharpest test of the noise.
        within(
            &format!("{}: variances over their law, all modes", case.name),
            &ratios,
            1.0,
        );
        within(
            &format!("{}: virial temperature", case.name),
            &run.draws("virial", 0, 0, true).unwrap(),
            virial,
        );
        let kinetic = (0..DIM)
            .map(|i| (case.law)(stiffness(i, DIM, CONDITION)).kinetic)
            .sum::<Option<f64>>();
        if let Some(sum) = kinetic {
            within(
                &format!("{}: kinetic temperature", case.name),
                &run.draws("kinetic", 0, 0, true).unwrap(),
                sum / DIM as f64,
            );
        }
        if case.name == "hmc" {
            within(
                "hmc: <exp(-ΔH/T)>",
                &run.draws("exp_energy_error", 0, 0, true).unwrap(),
                1.0,
            );
        }
    }
}

/// A sampler, its options, steps, and steps between records.
type Setting<'a> = (&'a str, &'a [(&'a str, f64)], u64, u64);

#[test]
fn double_wells_are_visited_by_their_weight() {
    let wells = 16;
    let (barrier, tilt) = (1.0, 0.3);
    let options = [
        ("dim", wells as f64),
        ("barrier", barrier),
        ("tilt", tilt),
        ("examples", 1000.0),
        ("noise", 1.0),
    ];
    let target = Target::new(
        build(analytic::REGISTRY, "double_well", &options),
        EnergyScale::Mean,
        &Prior::None,
    )
    .unwrap();
    let weight = |from: f64, to: f64| {
        let n = 20_000;
        let energy = |x: f64| barrier * (x * x - 1.0f64).powi(2) + tilt * x;
        (0..n)
            .map(|i| {
                (-energy(from + (to - from) * (i as f64 + 0.5) / n as f64) / TEMPERATURE).exp()
            })
            .sum::<f64>()
            * (to - from)
    };
    let left = weight(-4.0, 0.0) / (weight(-4.0, 0.0) + weight(0.0, 4.0));
    let settings: [Setting; 3] = [
        ("sgld", &[("step", 0.01), ("batch", BATCH)], 600_000, 100),
        ("hmc", &[("leapfrog", 5.0)], 30_000, 5),
        (
            "pseudo_langevin",
            &[("batch", BATCH), ("ratio", 0.03)],
            600_000,
            100,
        ),
    ];
    assert_eq!(
        settings.map(|s| s.0).to_vec(),
        CASES.iter().map(|c| c.name).collect::<Vec<_>>()
    );
    for (name, options, steps, every) in settings {
        let sampler = build(sampler::REGISTRY, name, options);
        let lengths = Lengths {
            chains: 4,
            steps,
            burn_in: steps / 10,
            every,
        };
        let run = run(
            &target,
            &sampler,
            TEMPERATURE,
            lengths,
            (0..wells).map(parameter).collect(),
        );
        // The fraction of wells that are on the left, per record: the wells are independent copies.
        let mut fraction: Vec<Vec<f64>> = Vec::new();
        for i in 0..wells {
            for (c, chain) in run
                .draws(&format!("w{i}"), 0, 0, true)
                .unwrap()
                .into_iter()
                .enumerate()
            {
                let on_left = chain
                    .into_iter()
                    .map(|x| if x < 0.0 { 1.0 / wells as f64 } else { 0.0 });
                match fraction.get_mut(c) {
                    Some(sum) => sum.iter_mut().zip(on_left).for_each(|(s, x)| *s += x),
                    None => fraction.push(on_left.collect()),
                }
            }
        }
        within(&format!("{name}: weight of the left well"), &fraction, left);
    }
}

#[test]
fn a_small_network_agrees_with_long_hybrid_monte_carlo() {
    use ergodic::dataset;
    use ergodic::kernels::elementwise::Activation;
    use ergodic::model::initialise::Initialise;
    use ergodic::model::mlp::Mlp;
    use ergodic::target::network::Network;
    let data = [
        ("dim", 8.0),
        ("classes", 3.0),
        ("train", 120.0),
        ("test", 30.0),
        ("flip", 0.3),
    ];
    let data = build(dataset::REGISTRY, "spin_vectors", &data);
    let net = Mlp::new(
        "mlp",
        vec![8, 6, 3],
        Activation::Tanh,
        Activation::Identity,
        true,
        Initialise::Pytorch,
    );
    let network = Network::new(Arc::new(net), data, None).unwrap();
    let target = Target::new(
        Arc::new(network),
        EnergyScale::Mean,
        &Prior::Gaussian { precision: 0.05 },
    )
    .unwrap();
    let temperature = 0.02;
    let observables = || {
        vec![
            build(observable::REGISTRY, "cost", &[]),
            build(observable::REGISTRY, "norm2", &[]),
        ]
    };
    let measure = |name: &str, options: &[(&str, f64)], steps: u64, every: u64| {
        let sampler = build(sampler::REGISTRY, name, options);
        let lengths = Lengths {
            chains: 4,
            steps,
            burn_in: steps / 10,
            every,
        };
        let run = run(&target, &sampler, temperature, lengths, observables());
        ["cost", "norm2"].map(|o| {
            let draws = run.draws(o, 0, 0, true).unwrap();
            (diagnostic::mean(&draws), diagnostic::mcse_mean(&draws))
        })
    };
    let exact = measure("hmc", &[("leapfrog", 15.0)], 6000, 1);
    let others: [Setting; 2] = [
        ("sgld", &[("step", 0.05), ("batch", 60.0)], 400_000, 100),
        (
            "pseudo_langevin",
            &[("batch", 60.0), ("ratio", 0.005)],
            600_000,
            100,
        ),
    ];
    assert_eq!(others.len() + 1, CASES.len(), "add the new sampler here");
    for (name, options, steps, every) in others {
        for ((observable, a), b) in ["cost", "norm2"]
            .iter()
            .zip(measure(name, options, steps, every))
            .zip(exact)
        {
            let z = (a.0 - b.0) / a.1.hypot(b.1);
            eprintln!(
                "{name} {observable}: {:.5} ± {:.5}, hmc {:.5} ± {:.5}, z {z:+.2}",
                a.0, a.1, b.0, b.1
            );
            assert!(
                z.abs() < 4.0,
                "{name}: {observable} {:.5} ± {:.5}, hmc {:.5} ± {:.5}",
                a.0,
                a.1,
                b.0,
                b.1
            );
        }
    }
}
