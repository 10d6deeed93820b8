//! Every registered sampler, its settings on the three targets, its law on the Gaussian, and the mutation that must turn it red.

use super::law::{Law, combine, covariance, cyclic, identity, product, transposed, underdamped};
use super::targets::{self, BATCH, DIM, EXAMPLES, TEMPERATURE, VARIANCE, curvatures};
use super::{Found, Lengths};
use ergodic::sampler;
use ergodic::trigger::Trigger;

/// One sampler, or one form of it.
pub struct Case {
    /// What it stands for, as in a script.
    pub what: &'static str,
    /// The law it samples, in words.
    pub law: &'static str,
    gaussian: (String, Lengths, Law),
    wells: (&'static str, Lengths),
    network: (&'static str, Lengths),
    /// A change of the code that the checks find.
    pub mutation: &'static str,
}

impl Case {
    pub fn on_gaussian(&self) -> Found {
        let (source, lengths, law) = &self.gaussian;
        targets::gaussian(self.what, source, lengths, law)
    }

    pub fn on_wells(&self) -> Found {
        targets::wells(self.what, self.wells.0, &self.wells.1)
    }

    pub fn on_network(&self) -> Found {
        targets::network(self.what, self.network.0, &self.network.1)
    }
}

/// One test per sampler and target, and the list of all.
macro_rules! cases {
    ($($name:ident)*) => {
        pub fn all() -> Vec<Case> {
            vec![$($name()),*]
        }

        mod gaussian {
            $(#[test] #[ignore = "long: tests/run"] fn $name() { super::$name().on_gaussian(); })*
        }

        mod double_wells {
            $(#[test] #[ignore = "long: tests/run"] fn $name() { super::$name().on_wells(); })*
        }

        mod small_network {
            $(#[test] #[ignore = "long: tests/run"] fn $name() { super::$name().on_network(); })*
        }
    };
}

cases! {
    sgld rmsprop_sgld adam_sgld cyclical_sgld ohzeki_ichiki ohzeki_ichiki_replicas ohzeki_ichiki_rmsprop sghmc sgnht langevin
    pseudo_langevin naive_pseudo_langevin hmc minibatch_hmc snaper nuts mala mams mclmc metropolis
}

#[test]
fn every_registered_sampler_has_a_case() {
    let cases = all();
    // Of deep linear networks only: its law is held to in `gibbs`.
    for entry in sampler::REGISTRY.iter().filter(|e| e.name != "gibbs") {
        let call = format!("sampler::{}(", entry.name);
        assert!(
            cases.iter().any(|c| c.gaussian.0.starts_with(&call)),
            "add {call}…) to the cases"
        );
    }
}

#[test]
fn every_registered_sampler_is_in_the_table_of_biases() {
    let script = include_str!("../../bench/bias_at_defaults.rhai");
    for entry in sampler::REGISTRY.iter().filter(|e| e.name != "gibbs") {
        assert!(
            script.contains(&format!("sampler::{}(", entry.name)),
            "add sampler::{} to tests/bench/bias_at_defaults.rhai",
            entry.name
        );
    }
}

/// Null: with every form that has not the law a run says so, with the number; with the others it says nothing.
#[test]
#[ignore = "long: tests/run"]
fn what_does_not_have_the_law_says_so_with_the_number() {
    let target =
        super::target("target(potential::gaussian(#{ dim: 2, examples: 1000, noise: 1.0 }))");
    let notes = |source: &str, burn_in: u64| {
        let lengths = Lengths {
            steps: 20,
            burn_in,
            every: Trigger::Every(1),
        };
        let run = super::run(&target, &super::sampler(source), 0.5, &lengths, &[]);
        run.info.notes.clone()
    };
    for (form, percent) in [("rmsprop", "+1.70 %"), ("adam", "+3.30 %")] {
        for source in [
            format!("sampler::{form}_sgld(#{{ preconditioner: \"running\" }})"),
            format!("sampler::ohzeki_ichiki(#{{ form: \"{form}\", preconditioner: \"running\" }})"),
        ] {
            let found = notes(&source, 10);
            assert!(
                found.len() == 1 && found[0].contains(percent),
                "{source}: {found:?}"
            );
            let frozen = source.replace("running", "frozen");
            assert_eq!(notes(&frozen, 10), [""; 0], "{frozen}");
            let blind = notes(&frozen, 0);
            assert!(
                blind.len() == 1 && blind[0].contains("burn-in"),
                "{frozen}: {blind:?}"
            );
        }
    }
    for (options, percent) in [("", "+0.36 %"), ("#{ masses: \"noise\" }", "+0.75 %")] {
        let found = notes(&format!("sampler::pseudo_langevin({options})"), 10);
        assert!(
            found.len() == 1 && found[0].contains(percent),
            "{options}: {found:?}"
        );
    }
    for exact in ["sgld()", "hmc()", "nuts()", "mala()", "metropolis()"] {
        assert_eq!(notes(&format!("sampler::{exact}"), 10), [""; 0], "{exact}");
    }
}

/// T/k.
fn exact(kinetic: bool) -> Law {
    Law::by_mode(&curvatures(), |k| {
        (TEMPERATURE / k, kinetic.then_some(TEMPERATURE))
    })
}

/// x' = (1-εk/2)x - (ε/2)ξ + sqrt(εT)η
pub fn sgld_variance(k: f64, e: f64, variance: f64) -> f64 {
    let keep = 1.0 - e * k / 2.0;
    (e * TEMPERATURE + e * e * variance / 4.0) / (1.0 - keep * keep)
}

fn sgld() -> Case {
    Case {
        what: "sgld",
        law: "exp(-U/T) as ε → 0",
        gaussian: (
            "sampler::sgld(#{ step: 0.1, batch: 4 })".into(),
            Lengths::new(400_000, 10),
            Law::by_mode(&curvatures(), |k| (sgld_variance(k, 0.1, VARIANCE), None)),
        ),
        wells: (
            "sampler::sgld(#{ step: 0.01, batch: 4 })",
            Lengths::new(600_000, 100),
        ),
        network: (
            "sampler::sgld(#{ step: 0.05, batch: 60 })",
            Lengths::new(400_000, 100),
        ),
        mutation: "noise variance εT → 1.02 εT",
    }
}

/// The step size of a parameter whose gradient has this mean square.
fn preconditioned(step: f64, square: f64) -> f64 {
    step / (square.sqrt() + 0.1)
}

fn rmsprop_sgld() -> Case {
    // Variance and step size hang on each other: v is the mean square at equilibrium.
    let variance = |k: f64| {
        (0..200).fold(TEMPERATURE / k, |v, _| {
            sgld_variance(k, preconditioned(0.2, k * k * v + VARIANCE), VARIANCE)
        })
    };
    Case {
        what: "rmsprop_sgld",
        law: "exp(-U/T) as ε → 0",
        gaussian: (
            "sampler::rmsprop_sgld(#{ step: 0.2, batch: 4 })".into(),
            Lengths {
                steps: 600_000,
                burn_in: 120_000,
                every: Trigger::Every(10),
            },
            Law::by_mode(&curvatures(), |k| (variance(k), None)),
        ),
        wells: (
            "sampler::rmsprop_sgld(#{ step: 0.01, batch: 4 })",
            Lengths {
                steps: 700_000,
                burn_in: 120_000,
                every: Trigger::Every(100),
            },
        ),
        network: (
            "sampler::rmsprop_sgld(#{ step: 0.004, batch: 60 })",
            Lengths {
                steps: 600_000,
                burn_in: 120_000,
                every: Trigger::Every(100),
            },
        ),
        mutation: "noise without its factor sqrt(ε_i/ε)",
    }
}

fn adam_sgld() -> Case {
    // u' = b u + (1-b)[sqrt(eT)η - (e/2)(kx + ξ)], x' = x + u'
    let variance = |k: f64| {
        let keep = 0.9;
        (0..200).fold(TEMPERATURE / k, |v, _| {
            let e = preconditioned(0.1, k * k * v + VARIANCE);
            let noise = (1.0 - keep) * (1.0 - keep) * (e * TEMPERATURE + e * e / 4.0 * VARIANCE);
            underdamped(k, [keep, (1.0 - keep) * e / 2.0, 1.0], noise, false)[0]
        })
    };
    Case {
        what: "adam_sgld",
        law: "exp(-U/T) as ε → 0",
        gaussian: (
            "sampler::adam_sgld(#{ step: 0.1, batch: 4 })".into(),
            Lengths {
                steps: 800_000,
                burn_in: 120_000,
                every: Trigger::Every(20),
            },
            Law::by_mode(&curvatures(), |k| (variance(k), None)),
        ),
        wells: (
            "sampler::adam_sgld(#{ step: 0.01, batch: 4 })",
            Lengths {
                steps: 700_000,
                burn_in: 120_000,
                every: Trigger::Every(100),
            },
        ),
        network: (
            "sampler::adam_sgld(#{ step: 0.004, batch: 60 })",
            Lengths {
                steps: 600_000,
                burn_in: 120_000,
                every: Trigger::Every(100),
            },
        ),
        mutation: "the running mean without its noise",
    }
}

fn cyclical_sgld() -> Case {
    // At its defaults: noise from a quarter of a cycle on, samples from a half on.
    let (cycle, noisy, skip) = (200, 50, 100);
    // The variance goes round with the cycle: two hundred cycles on, what it is on average where it is recorded, and where gradients are taken
    // for the samples.
    let variance = |k: f64| {
        let (mut v, mut recorded, mut felt) = (TEMPERATURE / k, Vec::new(), Vec::new());
        for t in 0..200 * cycle {
            let phase = (t % cycle) as f64 / cycle as f64;
            let e = 0.5 * 0.1 * ((std::f64::consts::PI * phase).cos() + 1.0);
            let heat = match t % cycle >= noisy {
                true => e * TEMPERATURE,
                false => 0.0,
            };
            let samples = t >= 199 * cycle && t % cycle >= skip;
            if samples {
                felt.push(v);
            }
            v = (1.0 - e * k / 2.0).powi(2) * v + heat + e * e * VARIANCE / 4.0;
            if samples && (t + 1) % 10 == 0 {
                recorded.push(v);
            }
        }
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        [mean(&recorded), mean(&felt)]
    };
    let virial = curvatures()
        .iter()
        .map(|k| k * variance(*k)[1])
        .sum::<f64>()
        / DIM as f64;
    // From a minimum to equilibrium in every cycle: Σε while it settles is 0.17·ε0·cycle, several times the inverse of the least curvature.
    let in_the_last_half = |cycle: u64, steps: u64| Lengths {
        steps,
        burn_in: steps / 10,
        every: Trigger::Cyclical {
            cycle,
            skip: cycle / 2,
            every: 50,
        },
    };
    Case {
        what: "cyclical_sgld",
        law: "exp(-U/T) at the end of each cycle, as ε → 0 and for long cycles",
        gaussian: (
            "sampler::cyclical_sgld(#{ step: 0.1, cycle: 200, batch: 4 })".into(),
            Lengths {
                steps: 800_000,
                burn_in: 80_000,
                every: Trigger::Cyclical {
                    cycle,
                    skip,
                    every: 10,
                },
            },
            Law {
                virial: Some(virial),
                ..Law::by_mode(&curvatures(), |k| (variance(k)[0], None))
            },
        ),
        wells: (
            "sampler::cyclical_sgld(#{ step: 0.02, cycle: 2000, batch: 4 })",
            in_the_last_half(2000, 800_000),
        ),
        network: (
            "sampler::cyclical_sgld(#{ step: 0.1, cycle: 15_000, batch: 60 })",
            in_the_last_half(15_000, 900_000),
        ),
        mutation: "noise also during exploration",
    }
}

/// Variances of `x ← x - (ε/2)(I + γJ)(Kx + ξ) + sqrt(εT)η`, for curvatures on the diagonal of K.
fn flowing(k: &[f64], e: f64, gamma: f64) -> Vec<f64> {
    // Forty examples: where modes mix, their noise does too, and that of different components is uncorrelated only on average.
    let variance = VARIANCE * BATCH / 40.0;
    let n = k.len();
    let turn = combine(&identity(n), gamma, &cyclic(n));
    let mut pull = turn.clone();
    for row in &mut pull {
        row.iter_mut().zip(k).for_each(|(x, k)| *x *= k);
    }
    let a = combine(&identity(n), -e / 2.0, &pull);
    let heat: Vec<Vec<f64>> = identity(n)
        .into_iter()
        .map(|row| row.into_iter().map(|x| x * e * TEMPERATURE).collect())
        .collect();
    let spread = product(&turn, &transposed(&turn));
    let p = covariance(a, combine(&heat, e * e / 4.0 * variance, &spread));
    (0..n).map(|i| p[i][i]).collect()
}

fn ohzeki_ichiki() -> Case {
    let variances = flowing(&curvatures(), 0.02, 2.0);
    let virial = curvatures()
        .iter()
        .zip(&variances)
        .map(|(k, v)| k * v / DIM as f64)
        .sum();
    Case {
        what: "ohzeki_ichiki",
        law: "exp(-U/T) as ε → 0, out of detailed balance",
        gaussian: (
            "sampler::ohzeki_ichiki(#{ step: 0.02, gamma: 2.0, batch: 40 })".into(),
            Lengths::new(800_000, 20),
            Law {
                variances,
                kinetic: None,
                virial: Some(virial),
            },
        ),
        wells: (
            "sampler::ohzeki_ichiki(#{ step: 0.004, gamma: 1.0, batch: 50 })",
            Lengths::new(1_000_000, 100),
        ),
        network: (
            "sampler::ohzeki_ichiki(#{ step: 0.03, gamma: 1.0, batch: 60 })",
            Lengths::new(400_000, 100),
        ),
        mutation: "J symmetric: g_{k+1} + g_{k-1}",
    }
}

fn ohzeki_ichiki_replicas() -> Case {
    // Four chains of one curvature: the same matrices, mode by mode.
    let law = Law::by_mode(&curvatures(), |k| (flowing(&[k; 4], 0.02, 2.0)[0], None));
    Case {
        what: "ohzeki_ichiki, between replicas",
        law: "exp(-U/T) as ε → 0, of every replica",
        gaussian: (
            "sampler::ohzeki_ichiki(#{ step: 0.02, gamma: 2.0, between: \"replicas\", batch: 40 })"
                .into(),
            Lengths::new(800_000, 20),
            law,
        ),
        wells: (
            "sampler::ohzeki_ichiki(#{ step: 0.004, gamma: 1.0, between: \"replicas\", batch: 50 })",
            Lengths::new(1_000_000, 100),
        ),
        network: (
            "sampler::ohzeki_ichiki(#{ step: 0.03, gamma: 1.0, between: \"replicas\", batch: 60 })",
            Lengths::new(400_000, 100),
        ),
        mutation: "the previous replica's gradient added, not subtracted",
    }
}

fn ohzeki_ichiki_rmsprop() -> Case {
    // The flow joins modes of unequal steps: D^½(I + γJ)D^½ in place of I + γJ, D from the mean squares.
    let curvatures = curvatures();
    let (step, gamma, variance) = (0.1, 1.0, VARIANCE * BATCH / 40.0);
    let mut variances: Vec<f64> = curvatures.iter().map(|k| TEMPERATURE / k).collect();
    for _ in 0..100 {
        let size = |(k, v): (&f64, &f64)| preconditioned(step, k * k * v + variance);
        let d: Vec<f64> = curvatures.iter().zip(&variances).map(size).collect();
        let mut turn = combine(&identity(DIM), gamma, &cyclic(DIM));
        for (i, row) in turn.iter_mut().enumerate() {
            row.iter_mut()
                .zip(&d)
                .for_each(|(x, dj)| *x *= (d[i] * dj).sqrt());
        }
        let mut pull = turn.clone();
        for row in &mut pull {
            row.iter_mut().zip(&curvatures).for_each(|(x, k)| *x *= k);
        }
        let a = combine(&identity(DIM), -0.5, &pull);
        let mut q = product(&turn, &transposed(&turn));
        for (i, row) in q.iter_mut().enumerate() {
            row.iter_mut().for_each(|x| *x *= 0.25 * variance);
            row[i] += d[i] * TEMPERATURE;
        }
        let p = covariance(a, q);
        variances = (0..DIM).map(|i| p[i][i]).collect();
    }
    let virial = curvatures
        .iter()
        .zip(&variances)
        .map(|(k, v)| k * v / DIM as f64)
        .sum();
    let long = |steps, every| Lengths {
        steps,
        burn_in: 120_000,
        every: Trigger::Every(every),
    };
    Case {
        what: "ohzeki_ichiki, form rmsprop",
        law: "exp(-U/T) as ε → 0, out of detailed balance",
        gaussian: (
            "sampler::ohzeki_ichiki(#{ step: 0.1, form: \"rmsprop\", batch: 40 })".into(),
            long(700_000, 20),
            Law {
                variances,
                kinetic: None,
                virial: Some(virial),
            },
        ),
        wells: (
            "sampler::ohzeki_ichiki(#{ step: 0.008, form: \"rmsprop\", batch: 50 })",
            long(900_000, 100),
        ),
        network: (
            "sampler::ohzeki_ichiki(#{ step: 0.004, form: \"rmsprop\", batch: 60 })",
            long(600_000, 100),
        ),
        mutation: "the flow without its factor D^½ on the left",
    }
}

/// p' = (1-α)p - ε(kx + ξ) + sqrt(2α0εT)η, x' = x + p'.
fn thermostatted(k: f64, e: f64, friction: f64, injected: f64) -> [f64; 3] {
    let noise = 2.0 * injected * e * TEMPERATURE + e * e * VARIANCE;
    underdamped(k, [1.0 - friction, e, 1.0], noise, false)
}

fn sghmc() -> Case {
    let (e, friction) = (0.01, 0.1);
    Case {
        what: "sghmc",
        law: "exp(-U/T) as ε → 0",
        gaussian: (
            "sampler::sghmc(#{ step: 0.01, friction: 0.1, batch: 4 })".into(),
            Lengths::new(600_000, 10),
            Law::by_mode(&curvatures(), |k| {
                let [x, _, p] = thermostatted(k, e, friction, friction);
                (x, Some(p / e))
            }),
        ),
        wells: (
            "sampler::sghmc(#{ step: 0.0025, friction: 0.1, batch: 100 })",
            Lengths::new(600_000, 100),
        ),
        network: (
            "sampler::sghmc(#{ step: 0.003, friction: 0.3, batch: 60 })",
            Lengths::new(600_000, 100),
        ),
        mutation: "force εg → (ε/2)g, as printed in 2025",
    }
}

fn sgnht() -> Case {
    let e = 0.004;
    // The friction that holds the mean kinetic temperature at T.
    let kinetic = |friction: f64| -> f64 {
        let p = |k: &f64| thermostatted(*k, e, friction, 0.1)[2];
        curvatures().iter().map(p).sum::<f64>() / (DIM as f64 * e)
    };
    let (mut low, mut high) = (0.01, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match kinetic(middle) > TEMPERATURE {
            true => low = middle,
            false => high = middle,
        }
    }
    Case {
        what: "sgnht",
        law: "exp(-U/T) as ε → 0, for noise alike in all components",
        gaussian: (
            "sampler::sgnht(#{ step: 0.004, friction: 0.1, batch: 4 })".into(),
            Lengths::new(1_000_000, 20),
            Law::by_mode(&curvatures(), |k| {
                let [x, _, p] = thermostatted(k, e, low, 0.1);
                (x, Some(p / e))
            }),
        ),
        wells: (
            "sampler::sgnht(#{ step: 0.0025, friction: 0.1, batch: 100 })",
            Lengths::new(600_000, 100),
        ),
        network: (
            "sampler::sgnht(#{ step: 0.003, friction: 0.3, batch: 60 })",
            Lengths::new(600_000, 100),
        ),
        mutation: "thermostat at 1.02 εT",
    }
}

/// Π' = c²Π - ½(1+c²)δt(kx + ξ) + …, x' = x + δt Π'/M, all noise in Π together (1-c⁴)MT; `keep` is c².
fn bussi_parrinello(k: f64, keep: f64, dt: f64, mass: f64) -> (f64, Option<f64>) {
    let noise = (1.0 - keep * keep) * mass * TEMPERATURE;
    let force = 0.5 * (1.0 + keep) * dt;
    let [x, p, _] = underdamped(k, [keep, force, dt / mass], noise, false);
    (x, Some(p / mass))
}

fn langevin() -> Case {
    let (dt, friction): (f64, f64) = (0.2, 0.5);
    Case {
        what: "langevin",
        law: "exp(-U/T) as δt → 0",
        gaussian: (
            "sampler::langevin(#{ dt: 0.2, friction: 0.5, mass: 2.0 })".into(),
            Lengths::new(500_000, 10),
            Law::by_mode(&curvatures(), |k| {
                bussi_parrinello(k, (-friction * dt).exp(), dt, 2.0)
            }),
        ),
        wells: (
            "sampler::langevin(#{ dt: 0.05, friction: 0.7 })",
            Lengths::new(800_000, 100),
        ),
        network: (
            "sampler::langevin(#{ dt: 0.3, friction: 0.1 })",
            Lengths::new(200_000, 50),
        ),
        mutation: "noise C2 → c1·C2",
    }
}

fn pseudo_langevin() -> Case {
    let (keep, ratio) = (0.99, 0.03);
    let mass = VARIANCE / (4.0 * (1.0 - keep) * TEMPERATURE * ratio);
    Case {
        what: "pseudo_langevin",
        law: "exp(-U/T) for small 𝒯 and friction",
        gaussian: (
            "sampler::pseudo_langevin(#{ batch: 4 })".into(),
            Lengths {
                steps: 1_000_000,
                burn_in: 50_000,
                every: Trigger::Every(50),
            },
            Law::by_mode(&curvatures(), |k| bussi_parrinello(k, keep, 1.0, mass)),
        ),
        wells: (
            "sampler::pseudo_langevin(#{ batch: 4 })",
            Lengths::new(600_000, 100),
        ),
        network: (
            "sampler::pseudo_langevin(#{ batch: 20 })",
            Lengths::new(600_000, 100),
        ),
        mutation: "minibatch noise not taken off the heat",
    }
}

fn naive_pseudo_langevin() -> Case {
    Case {
        what: "pseudo_langevin, masses uniform (naive-pL)",
        law: "exp(-U/T) as δt → 0",
        gaussian: (
            "sampler::pseudo_langevin(#{ batch: 4, masses: \"uniform\", dt: 0.03, friction: 0.1 })"
                .into(),
            Lengths::new(1_000_000, 50),
            Law::by_mode(&curvatures(), |k| bussi_parrinello(k, 0.99, 0.03, 1.0)),
        ),
        wells: (
            "sampler::pseudo_langevin(#{ batch: 50, masses: \"uniform\", dt: 0.05, friction: 0.2 })",
            Lengths::new(600_000, 100),
        ),
        network: (
            "sampler::pseudo_langevin(#{ batch: 60, masses: \"uniform\", dt: 0.03, friction: 0.1 })",
            Lengths::new(600_000, 100),
        ),
        mutation: "as pseudo_langevin",
    }
}

fn hmc() -> Case {
    Case {
        what: "hmc",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::hmc(#{ leapfrog: 5 })".into(),
            Lengths::new(60_000, 1),
            exact(true),
        ),
        wells: ("sampler::hmc(#{ leapfrog: 5 })", Lengths::new(30_000, 5)),
        network: ("sampler::hmc(#{ leapfrog: 10 })", Lengths::new(6000, 1)),
        mutation: "accepts with exp(-½ΔH/T)",
    }
}

fn snaper() -> Case {
    Case {
        what: "snaper",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::snaper()".into(),
            Lengths::new(40_000, 1),
            exact(true),
        ),
        wells: ("sampler::snaper()", Lengths::new(30_000, 4)),
        network: ("sampler::snaper()", Lengths::new(6000, 1)),
        mutation: "accepts with exp(-½ΔH/T)",
    }
}

fn minibatch_hmc() -> Case {
    Case {
        what: "hmc, gradient minibatch (mb-hMC)",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::hmc(#{ leapfrog: 2, batch: 100 })".into(),
            Lengths::new(200_000, 2),
            exact(true),
        ),
        wells: (
            "sampler::hmc(#{ leapfrog: 3, batch: 100 })",
            Lengths::new(60_000, 5),
        ),
        network: (
            "sampler::hmc(#{ leapfrog: 5, batch: 110 })",
            Lengths::new(90_000, 5),
        ),
        mutation: "accepts without computing U at the end",
    }
}

fn nuts() -> Case {
    Case {
        what: "nuts",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::nuts()".into(),
            Lengths::new(40_000, 1),
            exact(false),
        ),
        wells: ("sampler::nuts()", Lengths::new(30_000, 2)),
        network: ("sampler::nuts()", Lengths::new(5000, 1)),
        mutation: "the new half always taken in merging",
    }
}

fn mala() -> Case {
    Case {
        what: "mala",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::mala()".into(),
            Lengths::new(300_000, 5),
            exact(true),
        ),
        wells: ("sampler::mala()", Lengths::new(150_000, 20)),
        network: ("sampler::mala()", Lengths::new(60_000, 10)),
        mutation: "as hmc",
    }
}

fn mams() -> Case {
    Case {
        what: "mams",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::mams()".into(),
            Lengths::new(40_000, 1),
            exact(false),
        ),
        wells: ("sampler::mams()", Lengths::new(30_000, 2)),
        network: ("sampler::mams()", Lengths::new(6000, 1)),
        mutation: "the volume left out of the acceptance",
    }
}

/// Its law at a finite step is not known, so the step is small where the sharpest test is.
fn mclmc() -> Case {
    Case {
        what: "mclmc",
        law: "exp(-U/T) as δt → 0",
        gaussian: (
            "sampler::mclmc(#{ variance: 1e-9 })".into(),
            Lengths::new(1_000_000, 20),
            exact(false),
        ),
        wells: ("sampler::mclmc()", Lengths::new(600_000, 20)),
        network: ("sampler::mclmc()", Lengths::new(200_000, 10)),
        mutation: "N in the place of N - 1 in a turn",
    }
}

fn metropolis() -> Case {
    Case {
        what: "metropolis",
        law: "exp(-U/T)",
        gaussian: (
            "sampler::metropolis(#{ thermometer: 5 })".into(),
            Lengths::new(1_000_000, 20),
            exact(false),
        ),
        wells: ("sampler::metropolis()", Lengths::new(600_000, 50)),
        network: ("sampler::metropolis()", Lengths::new(600_000, 100)),
        mutation: "accepts with exp(-½ΔU/T)",
    }
}

/// Variance of the gradient of a minibatch drawn without replacement.
pub fn without_replacement() -> f64 {
    VARIANCE * (EXAMPLES - BATCH) / (EXAMPLES - 1.0)
}
