//! Runs on an accelerator are those of the CPU, but for the order in which products and sums are added up.
//!
//! They run on [`Emulated`](crate::emulated::Emulated), and where there is a GPU on that too. Random numbers have the same bits, so
//! two runs stay together for as long as rounding does not drive them apart: few steps are compared closely.

use super::device::bench::skip;
use super::device::nvrtc::compile_all;
use super::emulated::{Emulated, Sources};
use super::support::Scratch;
use ergodic::kernels::device::Device;
use ergodic::script::{Failure, Interpreter};
use ergodic::simulation::session::{Open, Session};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Networks of every activation, both losses and both kinds of data; a potential that stays on the host; every sampler.
const TARGETS: &[(&str, &str)] = &[
    (
        "relu",
        "target(model::mlp(#{ layers: [20, 7, 5, 3], output: \"relu\" }),
            dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }), #{ prior: prior::l2(10.0) })",
    ),
    (
        "tanh",
        "target(model::mlp(#{ layers: [64, 6, 10], activation: \"tanh\", output: \"logistic\" }), dataset::digits(),
            #{ prior: prior::localised(0.5, parameters(w0)), energy: \"tempered\" })",
    ),
    (
        "squares",
        "target(model::mlp(#{ layers: [20, 7, 3], activation: \"gelu\" }),
            dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 0 }), #{ loss: \"squared_error\", prior: prior::gaussian(0.1) })",
    ),
    (
        "linear",
        "target(model::deep_linear(#{ widths: [20, 4, 3] }),
            dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 0 }), #{ loss: \"squared_error\", prior: prior::uniform_box(1.2) })",
    ),
    (
        "gaussian",
        "target(potential::gaussian(#{ dim: 70, examples: 40, noise: 2.0 }))",
    ),
    (
        "formula",
        "target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }),
            #{ loss: |out, y| nll::categorical(y[0], out), prior: prior::gaussian(0.1) })",
    ),
];

const SAMPLERS: &[(&str, &str)] = &[
    ("sgld", "sampler::sgld(#{ step: 0.001, batch: 20 })"),
    (
        "hmc",
        "sampler::hmc(#{ leapfrog: 3, dt: 0.01, jitter: 0.2 })",
    ),
    ("hmc-found", "sampler::hmc(#{ leapfrog: 2 })"),
    (
        "pseudo-langevin",
        "sampler::pseudo_langevin(#{ batch: 20, refresh: 5, reset: 0.5, variance_batches: 100 })",
    ),
    (
        "without-replacement",
        "sampler::sgld(#{ step: 0.001, gradient: gradient::minibatch(#{ batch: 20, replacement: false }) })",
    ),
    (
        "control-variates",
        "sampler::sgld(#{ step: 0.001, gradient: gradient::control_variates(#{ batch: 20 }) })",
    ),
    (
        "rmsprop-sgld",
        "sampler::rmsprop_sgld(#{ step: 0.001, batch: 20 })",
    ),
    (
        "adam-sgld",
        "sampler::adam_sgld(#{ step: 0.001, batch: 20 })",
    ),
    (
        "cyclical-sgld",
        "sampler::cyclical_sgld(#{ step: 0.001, cycle: 2, exploration: 0.25, batch: 20 })",
    ),
    (
        "ohzeki-ichiki",
        "sampler::ohzeki_ichiki(#{ step: 0.001, gamma: 2.0, batch: 20 })",
    ),
    (
        "ohzeki-ichiki-replicas",
        "sampler::ohzeki_ichiki(#{ step: 0.001, between: \"replicas\", form: \"adam\", batch: 20 })",
    ),
    ("sghmc", "sampler::sghmc(#{ step: 0.0001, batch: 20 })"),
    ("sgnht", "sampler::sgnht(#{ step: 0.0001, batch: 20 })"),
    ("langevin", "sampler::langevin(#{ dt: 0.01 })"),
    (
        "minibatch-hmc",
        "sampler::hmc(#{ leapfrog: 2, dt: 0.001, batch: 20 })",
    ),
    ("nuts", "sampler::nuts(#{ dt: 0.01, max_depth: 3 })"),
    ("mala", "sampler::mala(#{ step: 0.0001 })"),
    (
        "metropolis",
        "sampler::metropolis(#{ sigma: 0.001, thermometer: 2 })",
    ),
];

/// A sweep of a few steps; its traces and last parameters.
fn script(target: &str, sampler: &str, steps: usize) -> String {
    let observed = match target.contains("potential") {
        true => "observable::cost()",
        false if target.contains("squared") => "observable::energy(), observable::error()",
        false if target.contains("test: 70") => {
            "observable::cost(), observable::error(\"test\"), observable::loss(\"test\"), observable::gradient_variance(#{ draws: 3 })"
        }
        false => "observable::energy()",
    };
    format!(
        "let w0 = []; for i in 0..460 {{ w0.push(0.01 * (i % 7 - 3)); }}
         let t = {target};
         let r = sweep(t, {sampler}, #{{ temperatures: [0.001, 0.01], chains: 2, steps: {steps}, burn_in: 3, every: 2,
            observe: [{observed}, observable::norm2(), |s| s.params[1]] }});
         let traces = [];
         for c in 0..4 {{ traces.push([r.trace(\"norm2\", c), r.trace(\"virial\", c), r.trace(\"closure_1\", c)]); }}
         #{{ traces: traces, summary: r.summary() }}"
    )
}

/// A ladder of a few steps, with a prior that is not tempered.
fn ladder(sampler: &str) -> String {
    // Preconditioners go on with what they have seen; on the prior's rung an accelerator shows them steps that are not made here.
    let prior_rung = !sampler.contains("rmsprop") && !sampler.contains("adam");
    format!(
        "let t = target(model::mlp(#{{ layers: [64, 6, 10], activation: \"tanh\" }}), dataset::digits(20), #{{ prior: prior::gaussian(0.5) }});
         let r = exchange(t, {sampler}, #{{ temperatures: [0.01, 0.015, 0.02], prior_rung: {prior_rung}, swap_every: 2, chains: 2, steps: 12, burn_in: 3,
            every: 2, observe: [observable::energy(), observable::norm2(), |s| s.params[1]] }});
         let traces = [];
         for t in 0..3 {{ for c in r.draws(\"norm2\", t) + r.draws(\"replica\", t) + r.draws(\"tempered_energy\", t) + r.draws(\"virial\", t) {{ traces.push(c); }} }}
         #{{ traces: traces, acceptance: r.ladder()[\"acceptance\"] }}"
    )
}

fn run(source: &str, device: Option<Open>) -> Value {
    tried(source, device).unwrap_or_else(|e| panic!("{e}"))
}

fn tried(source: &str, device: Option<Open>) -> Result<Value, Failure> {
    let scratch = Scratch::new();
    let mut session = Session::new(scratch.join("out"));
    if let Some(open) = device {
        session.device = ("emulated".into(), Some(open));
    }
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let value = interpreter.run("test.rhai", source)?;
    Ok(interpreter.json(&value))
}

/// All numbers of a result, in order, with where they are.
fn numbers(value: &Value, path: String, out: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(n) => out.push((path, n.as_f64().unwrap())),
        Value::Array(a) => (0..)
            .zip(a)
            .for_each(|(i, v)| numbers(v, format!("{path}[{i}]"), out)),
        Value::Object(o) => o
            .iter()
            .for_each(|(k, v)| numbers(v, format!("{path}.{k}"), out)),
        _ => {}
    }
}

fn compare(source: &str, open: impl Fn() -> Open, what: &str) {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    numbers(&run(source, None), String::new(), &mut here);
    numbers(&run(source, Some(open())), String::new(), &mut there);
    let only = |a: &[(String, f64)], b: &[(String, f64)]| -> Vec<String> {
        let known = |p: &String| b.iter().any(|(q, _)| q == p);
        // The time of a trace that is constant up to rounding is a number or is not.
        let odd = a
            .iter()
            .map(|(p, _)| p)
            .filter(|p| !known(p) && !p.contains("autocorrelation"));
        odd.cloned().collect()
    };
    let odd = [only(&here, &there), only(&there, &here)].concat();
    assert!(
        here.len() > 20 && odd.is_empty(),
        "{what}: {odd:?} are numbers only once"
    );
    let there: BTreeMap<_, _> = there.into_iter().collect();
    for (path, a) in &here {
        let Some(b) = there.get(path) else { continue };
        // Seconds differ, and so do diagnostics of very few draws.
        let skipped = [
            "seconds",
            "ess",
            "rhat",
            "r_hat",
            "mcse",
            "_z",
            "autocorrelation",
        ];
        if skipped.iter().any(|s| path.to_lowercase().contains(s)) {
            continue;
        }
        let close = (a - b).abs() <= 2e-3 * a.abs().max(b.abs()) + 1e-5;
        assert!(
            close || (a.is_nan() && b.is_nan()),
            "{what}, {path}: {a} here, {b} there"
        );
    }
}

fn emulated(sources: &Sources) -> Open {
    let sources = sources.clone();
    Arc::new(move || {
        let device = Emulated::listing(&sources).expect("a C++ compiler");
        Ok(Box::new(device) as Box<dyn Device>)
    })
}

#[test]
fn every_registered_sampler_is_tested_here() {
    for entry in ergodic::sampler::REGISTRY {
        let call = format!("sampler::{}(", entry.name);
        assert!(SAMPLERS.iter().any(|(_, s)| s.starts_with(&call)), "{call}");
    }
}

#[test]
fn a_prior_that_no_device_computes_is_refused() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let source = "let t = target(potential::gaussian(#{ dim: 3 }), #{ prior: prior::laplace(0, 1) }); sample(t, sampler::hmc(), #{ steps: 10, every: 1 })";
    let refused = tried(source, Some(emulated(&Sources::default()))).unwrap_err();
    assert!(
        refused
            .message
            .contains("no device computes the prior 'laplace(0, 1)'"),
        "{refused}"
    );
}

#[test]
#[ignore = "long: tests/run"]
fn every_sampler_does_on_an_accelerator_what_it_does_here() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let sources = Sources::default();
    for (target_name, target) in TARGETS {
        for (sampler_name, sampler) in SAMPLERS {
            if target.contains("uniform_box") && sampler.contains("ohzeki_ichiki") {
                // A flow is refused within walls.
                continue;
            }
            let what = format!("{sampler_name} on {target_name}");
            compare(&script(target, sampler, 12), || emulated(&sources), &what);
        }
    }
    for (sampler_name, sampler) in SAMPLERS {
        if sampler.contains("replicas") || sampler.contains("control_variates") {
            continue;
        }
        let what = format!("{sampler_name} on a ladder");
        compare(&ladder(sampler), || emulated(&sources), &what);
    }
    let mut sources = sources.lock().unwrap().clone();
    sources.sort_unstable();
    sources.dedup();
    assert!(sources.len() > 15, "kernels of all samplers");
    compile_all(&sources);
}

#[cfg(feature = "cuda")]
#[test]
fn every_sampler_does_on_a_gpu_what_it_does_here() {
    use ergodic::kernels::device::cuda::Cuda;
    if let Err(e) = Cuda::open(0) {
        println!("SKIP: no GPU: {e:#}");
        return;
    }
    for (target_name, target) in TARGETS {
        for (sampler_name, sampler) in SAMPLERS {
            let open = || -> Open { Arc::new(|| Ok(Box::new(Cuda::open(0)?))) };
            let what = format!("{sampler_name} on {target_name}");
            compare(&script(target, sampler, 12), open, &what);
        }
    }
}
