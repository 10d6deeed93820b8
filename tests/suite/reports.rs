//! What samplers report, and how chains fail: by name, and alike on every engine.

use super::device::bench::skip;
use super::emulated::Emulated;
use super::support::Scratch;
use ergodic::kernels::device::Device;
use ergodic::prelude::*;
use ergodic::script::Interpreter;
use ergodic::simulation::session::Session;
use std::collections::BTreeMap;

const EXTRA: Report = Report("extra");

/// Langevin dynamics that reports what it promises, or not.
struct Reporting {
    promises: &'static [Report],
    reports: &'static [Report],
}

impl Sampler for Reporting {
    fn name(&self) -> &'static str {
        "reporting"
    }

    fn info(&self) -> &'static [Report] {
        self.promises
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        chains.engine.gradient()?;
        chains.report_virial(Vector::Gradient)?;
        for report in self.reports {
            // On every other step, from the first one on.
            if chains.step.is_multiple_of(2) {
                chains.report(*report, |_| 3.0)?;
            }
        }
        let noise = (Purpose::Noise, 0);
        let vectors = [Vector::Params, Vector::Gradient];
        chains.map_with_noise(&LANGEVIN, &vectors, noise, |_, m| {
            [0.01, (0.02 * m.temperature).sqrt() as f32]
        })
    }
}

/// A run of a script in which `own` is a sampler, here or on an emulated device.
fn run(
    own: Option<Reporting>,
    source: &str,
    emulated: bool,
) -> std::result::Result<Arc<Run>, String> {
    let scratch = Scratch::new();
    let mut session = Session::new(scratch.join("out"));
    if emulated {
        let open = || {
            let device = Emulated::new().expect("a C++ compiler");
            Ok(vec![Box::new(device) as Box<dyn Device>])
        };
        session.device = ("emulated".into(), Some(Arc::new(open)));
    }
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    if let Some(own) = own {
        let own = ergodic::sampler::own(own, ergodic::options! {}).expect("a sampler");
        interpreter.set("own", own).unwrap();
    }
    let value = interpreter.run("test.rhai", source);
    let run = value.map_err(|e| e.to_string())?.try_cast::<Arc<Run>>();
    Ok(run.expect("a run"))
}

/// Here, and on an emulated device where there is a compiler.
fn engines() -> Vec<bool> {
    match Emulated::new() {
        Some(_) => vec![false, true],
        None => {
            skip("no C++ compiler found");
            vec![false]
        }
    }
}

const OWN: &str = "sample(target(model::mlp(#{ layers: [3, 2] }), dataset::spin_vectors(#{ dim: 3, classes: 2, train: 30, test: 0 })), own,
    #{ steps: 40, chains: 2, every: 10 })";

/// A network whose gradient grows faster than its parameters.
const STEEP: &str = "target(model::deep_linear(#{ widths: [4, 3, 3, 2] }), dataset::spin_vectors(#{ dim: 4, classes: 2, train: 40, test: 0 }),
    #{ loss: \"squared_error\" })";

#[test]
fn a_promised_report_that_never_comes_is_an_error_of_the_first_step() {
    let own = || Reporting {
        promises: &[report::VIRIAL, EXTRA],
        reports: &[],
    };
    for emulated in engines() {
        let message = run(Some(own()), OWN, emulated).unwrap_err();
        let expected = "its info() names 'extra', but its first step does not report it";
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_report_that_was_not_promised_is_an_error() {
    let own = Reporting {
        promises: &[report::VIRIAL],
        reports: &[EXTRA],
    };
    let message = run(Some(own), OWN, false).unwrap_err();
    let expected = "reports 'extra', which its info() does not name";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_skipped_report_counts_nothing_on_any_engine() {
    for emulated in engines() {
        let own = Reporting {
            promises: &[report::VIRIAL, EXTRA],
            reports: &[EXTRA],
        };
        let run = run(Some(own), OWN, emulated).unwrap();
        for chain in run.draws("extra", 0, 0, false).unwrap() {
            assert!(
                chain.len() >= 2 && chain.iter().all(|x| *x == 1.5),
                "{chain:?}"
            );
        }
    }
}

#[test]
fn a_chain_fails_at_the_same_step_with_the_same_words_on_every_engine() {
    // A step that is too large makes an overflow within few steps, at another one in every chain; engines round products differently, so not too many.
    let source = format!(
        "sample({STEEP}, sampler::sgld(#{{ step: 0.2, batch: 5 }}), #{{ temperature: 0.1, steps: 60, chains: 6, every: 20, seed: 3 }})"
    );
    let failures = |emulated| {
        let run = run(None, &source, emulated).unwrap();
        let told = run.failures.iter().flatten();
        told.map(|f| (f.step, f.reason.clone())).collect::<Vec<_>>()
    };
    let here = failures(false);
    assert!((2..6).contains(&here.len()), "{here:?}");
    assert!(here.iter().any(|(step, _)| step % 20 != 0), "{here:?}");
    for emulated in engines() {
        assert_eq!(failures(emulated), here);
    }
}

#[test]
fn coupled_chains_fail_at_the_same_step_on_every_engine() {
    // The flow carries the overflow of one chain to all others.
    let source = format!(
        "sample({STEEP}, sampler::ohzeki_ichiki(#{{ step: 0.3, gamma: 0.5, between: \"replicas\", batch: 5 }}),
        #{{ temperature: 0.1, steps: 400, chains: 6, every: 100, seed: 3 }})"
    );
    for emulated in engines() {
        let message = run(None, &source, emulated).unwrap_err();
        let expected = "met a number that is not finite at step 13";
        assert!(message.contains(expected), "{message}");
    }
}
