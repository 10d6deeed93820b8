//! Models without a program, which candle computes on a device of its own; candle's CPU device is in its place.

use super::custom::{close, run};
use super::device::bench::skip;
use super::emulated::Emulated;
use super::support::Scratch;
use ergodic::kernels::device::Device;
use ergodic::script::Interpreter;
use ergodic::simulation::session::{Open, Session};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A network that branches on its parameters, with constants and functions that candle lacks.
const NET: &str =
    "model::custom(#{ params: #{ w: [4, 9], b: [4] }, inputs: 9, interpret: true, forward: |p, x| {
    if p.w.sum() > 1e9 { throw \"never\" }
    let h = x.matmul(p.w.t()) + p.b;
    h.tanh() + 0.1 * h.atan() * tensor([1.0, 0.5, 0.5, 1.0]) } })";

fn emulated() -> Option<Open> {
    Emulated::new()?;
    Some(Arc::new(|| {
        let device = Emulated::with_candle().expect("a C++ compiler");
        Ok(vec![Box::new(device) as Box<dyn Device>])
    }))
}

#[test]
fn samplers_have_the_numbers_of_this_machine() {
    let Some(open) = emulated() else {
        return skip("no C++ compiler found");
    };
    for (sampler, threads) in [
        ("sampler::sgld(#{ step: 1e-2, batch: 50 })", 1),
        ("sampler::sgld(#{ step: 1e-2, batch: 50 })", 2),
        ("sampler::hmc(#{ leapfrog: 4, dt: 0.02 })", 1),
    ] {
        let mut numbers = 0;
        let there = run(NET, sampler, threads, Some(open.clone()));
        close(&run(NET, sampler, 1, None), &there, &mut numbers);
        assert!(numbers > 100, "{sampler}");
    }
}

/// The value of a script.
fn value(source: &str, device: Option<Open>) -> Value {
    let scratch = Scratch::new();
    let mut session = Session::new(scratch.join("out"));
    if let Some(open) = device {
        session.device = ("emulated".into(), Some(open));
    }
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let value = interpreter
        .run("test.rhai", source)
        .unwrap_or_else(|e| panic!("{source}\n{e}"));
    interpreter.json(&value)
}

/// Training, restricted coefficients, predictions.
#[test]
fn the_other_verbs_have_them_too() {
    let Some(open) = emulated() else {
        return skip("no C++ compiler found");
    };
    let data = "dataset::spin_vectors(#{ dim: 9, classes: 4, train: 300, test: 60 })";
    for source in [
        format!(
            "let t = target({NET}, {data}, #{{ prior: prior::l2(5.0) }});
             let r = train(t, optimizer::adam(#{{ lr: 0.01, epochs: 3, batch: 32 }}), #{{ chains: 2 }});
             [r.history(\"loss\", 0), r.history(\"error_test\", 1), r.params().vector(1).to_array()]"
        ),
        format!(
            "let t = target({NET}, {data});
             let w = train(t, optimizer::adam(#{{ lr: 0.01, epochs: 2, batch: 50 }}));
             let l = llc(t, sampler::sgld(#{{ step: 1e-5, batch: 20 }}), #{{ start: w.params(), steps: 40, every: 1, chains: 2, restrict: [\"b\"] }});
             [l.run.trace(\"virial\", 0), l.run.trace(\"minibatch_loss\", 1)]"
        ),
        format!(
            "let t = target({NET}, {data}, #{{ prior: prior::gaussian(0.1) }});
             let r = sample(t, sampler::hmc(#{{ leapfrog: 3, dt: 0.01 }}), #{{ steps: 6, every: 1, chains: 2, keep: 2 }});
             let p = predict(r, \"test\");
             [p.mean, p.sd]"
        ),
    ] {
        let mut numbers = 0;
        let here = value(&source, None);
        close(&here, &value(&source, Some(open.clone())), &mut numbers);
        assert!(numbers > 30, "{source}");
    }
}

#[test]
fn the_header_says_what_computes_where() {
    let Some(open) = emulated() else {
        return skip("no C++ compiler found");
    };
    let source = format!(
        "let t = target({NET}, dataset::spin_vectors(#{{ dim: 9, classes: 4, train: 30, test: 10 }}), #{{ prior: prior::gaussian(0.5) }});
         let r = sample(t, sampler::sgld(#{{ step: 0.001, batch: 10 }}), #{{ steps: 10, every: 1, predict: \"test\",
            observe: [observable::cost(), observable::norm2()] }});
         `${{r.summary()}}`"
    );
    let text = value(&source, Some(open));
    let text = text.as_str().unwrap();
    for line in [
        "on emulated, through candle: outputs and gradients of the model, inputs",
        "on this machine: losses of the outputs, steps of all chains; prior; observables cost, norm2; scores of predictions",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
