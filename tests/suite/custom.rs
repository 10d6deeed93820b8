//! `model::custom`: models written in a script, against native ones, candle and finite differences.

use super::device::bench::skip;
use super::emulated::Emulated;
use super::models::{check, dataset};
use super::support::{Scratch, evaluate};
use ergodic::kernels::device::Device;
use ergodic::model::Model;
use ergodic::model::loss::Loss;
use ergodic::script::Interpreter;
use ergodic::simulation::session::{Open, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A network like `model::mlp`'s, in all the ways of writing it that are recognised.
const DENSE: &[(&str, &str)] = &[
    (
        "[[\"w1\", [13, 9]], [\"b1\", [13]], [\"w2\", [4, 13]], [\"b2\", [4]]]",
        "let h = (x.matmul(p.w1.t()) + p.b1).tanh(); h.matmul(p.w2.t()) + p.b2",
    ),
    // In the order of their names; the bias first; written out of order.
    (
        "#{ w1: [13, 9], w1_bias: [13], w2: [4, 13], w2_bias: [4] }",
        "let w = p.w2.transpose(0, 1); (p.w1_bias + x.matmul(p[\"w1\"].transpose(1, 0))).tanh().matmul(w) + p.w2_bias",
    ),
];
const NATIVE: &str = "model::mlp(#{ layers: [9, 13, 4], activation: \"tanh\" })";

/// Models that are no chain of layers.
const OTHERS: &[(&str, &str)] = &[
    (
        "gate",
        "model::custom(#{ params: #{ a: [13, 9], g: [13, 9], ga: [13], out: [4, 13], bias: [4] }, forward: |p, x| {
            let h = x.matmul(p.a.t()).tanh() * (x.matmul(p.g.t()) + p.ga).sigmoid();
            h.matmul(p.out.t()) + p.bias } })",
    ),
    (
        "radial basis functions",
        "model::custom(#{ params: #{ centres: #{ shape: [11, 9], init: \"normal\" }, out: [4, 11], width: #{ shape: [], init: 2.0 } }, inputs: 9,
            forward: |p, x| {
            let d = (x.unsqueeze(1) - p.centres).pow(2).sum(-1);
            (-d / (p.width * p.width)).exp().matmul(p.out.t()) } })",
    ),
    (
        "convolution by slices",
        "model::custom(#{ params: #{ kernel: [3, 5], out: [4, 35] }, inputs: 9, forward: |p, x| {
            let pieces = [];
            for i in 0..7 { pieces.push(x.slice(1, i, i + 3)); }
            let windows = tensor::stack(pieces, 1);
            windows.matmul(p.kernel).relu().flatten().matmul(p.out.t()) } })",
    ),
    (
        "attention over three tokens",
        "model::custom(#{ params: #{ q: [3, 5], k: [3, 5], v: [3, 5], out: [4, 15] }, inputs: 9, forward: |p, x| {
            let s = x.reshape([-1, 3, 3]);
            let a = (s.matmul(p.q).matmul(s.matmul(p.k).t()) / 5.0 ** 0.5).softmax(-1);
            a.matmul(s.matmul(p.v)).flatten().matmul(p.out.t()) } })",
    ),
    (
        "factors of a matrix, tied and residual",
        "model::custom(#{ params: #{ u: [9, 3], v: [3, 9], out: [4, 9], scale: #{ shape: [9], init: 1.0 } }, forward: |p, x| {
            let w = p.u.matmul(p.v);
            let h = x;
            for l in 0..3 { h = h + (h.matmul(w) * p.scale).gelu(); }
            h.matmul(p.out.t()) } })",
    ),
    (
        "matrices stored [in, out]",
        "model::custom(#{ params: #{ a: [9, 13], b: [13, 4], c: [4] }, forward: |p, x| x.matmul(p.a).relu().matmul(p.b) + p.c })",
    ),
    (
        "one output per class by choices",
        "model::custom(#{ params: #{ a: [4, 9], b: [4, 9] }, forward: |p, x| {
            let u = x.matmul(p.a.t()); let v = x.matmul(p.b.t());
            choose(u.gt(v), u.softplus(), v.abs().maximum(0.1)) + tensor::concat([u[0..-1].log_softmax(1), v[0..-1].cos()], 1).slice(1, 0, 4) } })",
    ),
];

fn model(source: &str) -> Arc<dyn Model> {
    let scratch = Scratch::new();
    let mut interpreter = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
    let value = interpreter
        .run("test.rhai", source)
        .unwrap_or_else(|e| panic!("{source}\n{e}"));
    value.try_cast().unwrap_or_else(|| panic!("{source}"))
}

fn custom((params, forward): (&str, &str)) -> String {
    format!("model::custom(#{{ params: {params}, forward: |p, x| {{ {forward} }} }})")
}

#[test]
fn gradients_match_autograd_and_finite_differences() {
    let dense = DENSE.iter().map(|d| ("dense", custom(*d)));
    let others = OTHERS
        .iter()
        .map(|(name, source)| (*name, source.to_string()));
    for (name, source) in dense.chain(others) {
        // The slices along axis 0 of the last one are refused; see below.
        let source = source.replace("u[0..-1]", "u").replace("v[0..-1]", "v");
        for (classes, loss) in [(true, Loss::CrossEntropy), (false, Loss::SquaredError)] {
            check(name, model(&source), dataset(9, 4, classes), loss.clone());
            // Pass by pass, with segments that are computed twice.
            let less = source.replace("custom(#{", "custom(#{ checkpoint: true,");
            check(name, model(&less), dataset(9, 4, classes), loss);
        }
    }
}

#[test]
fn layers_are_recognised_and_start_as_the_native_ones_do() {
    use ergodic::rng::{Purpose, Stream};
    let native = model(NATIVE);
    let stream = Stream::new(3, Purpose::Initialise, 0, 0);
    for d in DENSE {
        let own = model(&custom(*d));
        assert_eq!(own.initialise(stream), native.initialise(stream));
        assert!(own.dense().is_some() && own.describe().contains("dense layers 9-13-4, tanh"));
    }
    let recognised = |s: &str| model(s).dense().is_some();
    for (name, source) in &OTHERS[..6] {
        assert_eq!(recognised(source), name.starts_with("matrices"), "{name}");
    }
    // A weight that is used twice, and an output that is a part of one.
    assert!(!recognised(
        "model::custom(#{ params: #{ w: [9, 9] }, forward: |p, x| x.matmul(p.w).relu().matmul(p.w) })"
    ));
    assert!(!recognised(
        "model::custom(#{ params: #{ w: [9, 9] }, forward: |p, x| x.matmul(p.w).slice(1, 0, 4) })"
    ));
}

/// All traces and last parameters of a run on so many threads.
pub fn run(net: &str, sampler: &str, threads: usize, device: Option<Open>) -> Value {
    let source = format!(
        "let t = target({net}, dataset::spin_vectors(#{{ dim: 9, classes: 4, train: 700, test: 60 }}), #{{ prior: prior::l2(5.0) }});
         let r = sample(t, {sampler}, #{{ seed: 5, chains: 3, temperature: 0.002, steps: 24, burn_in: 4, every: 2,
            observe: [observable::cost(), observable::norm2(), observable::error(\"test\")] }});
         let out = [];
         for c in 0..3 {{ out.push(r.trace(\"cost\", c)); out.push(r.trace(\"norm2\", c)); out.push(r.trace(\"error_test\", c)); out.push(r.at(c).vector(0).to_array()); }}
         out"
    );
    let scratch = Scratch::new();
    let mut session = Session::new(scratch.join("out"));
    session.threads = threads;
    if let Some(open) = device {
        session.device = ("emulated".into(), Some(open));
    }
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let value = interpreter
        .run("test.rhai", &source)
        .unwrap_or_else(|e| panic!("{source}\n{e}"));
    interpreter.json(&value)
}

const SGLD: &str = "sampler::sgld(#{ step: 1e-2, batch: 50 })";
const HMC: &str = "sampler::hmc(#{ leapfrog: 4, dt: 0.02 })";

#[test]
fn a_network_written_in_a_script_gives_the_bits_of_the_native_one() {
    for sampler in [SGLD, HMC] {
        let native = run(NATIVE, sampler, 1, None);
        for d in DENSE {
            for threads in [1, 2] {
                let own = run(&custom(*d), sampler, threads, None);
                assert!(own == native, "{sampler}, {threads} threads: {d:?}");
            }
        }
    }
}

fn emulated() -> Open {
    Arc::new(|| Ok(vec![Box::new(Emulated::new().unwrap()) as Box<dyn Device>]))
}

#[test]
#[ignore = "long: tests/run"]
fn an_accelerator_takes_it_as_the_native_one() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler");
    }
    for sampler in [SGLD, HMC] {
        let native = run(NATIVE, sampler, 1, Some(emulated()));
        for d in DENSE {
            assert!(
                run(&custom(*d), sampler, 1, Some(emulated())) == native,
                "{d:?}"
            );
        }
    }
    // Weights stored [in, out] too; and what is no chain of layers has its gradient on the host.
    for source in [OTHERS[5].1, OTHERS[0].1] {
        let (here, there) = (
            run(source, SGLD, 1, None),
            run(source, SGLD, 1, Some(emulated())),
        );
        let mut numbers = 0;
        close(&here, &there, &mut numbers);
        assert!(numbers > 100);
    }
}

/// Fail unless all numbers are about the same; counts them.
pub fn close(a: &Value, b: &Value, count: &mut usize) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| close(a, b, count));
        }
        _ => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() < 2e-3 * (1.0 + a.abs()), "{a} {b}");
            *count += 1;
        }
    }
}

#[test]
#[ignore = "long: tests/run"]
fn every_sampler_takes_a_model_that_is_no_chain_of_layers() {
    for sampler in [
        SGLD,
        HMC,
        "sampler::rmsprop_sgld(#{ step: 1e-3, batch: 50 })",
        "sampler::ohzeki_ichiki(#{ step: 1e-3, batch: 50 })",
        "sampler::sghmc(#{ step: 1e-3, batch: 50 })",
        "sampler::sgnht(#{ step: 1e-3, batch: 50 })",
        "sampler::langevin(#{ dt: 0.01 })",
        "sampler::pseudo_langevin(#{ batch: 50, variance_batches: 20 })",
        "sampler::nuts(#{ max_depth: 3 })",
        "sampler::mala(#{ step: 1e-3 })",
        "sampler::metropolis(#{ sigma: 0.01 })",
    ] {
        for (name, source) in &OTHERS[..2] {
            let less = source.replace("custom(#{", "custom(#{ checkpoint: true,");
            for source in [source, &*less] {
                let one = run(source, sampler, 1, None);
                assert!(one == run(source, sampler, 2, None), "{name}, {sampler}");
            }
        }
    }
}

#[test]
fn a_closure_that_cannot_be_traced_is_called_at_every_step() {
    let same = "if p.w.sum() > 1e9 { throw \"never\" } (x.matmul(p.w.t()) + p.b).tanh()";
    let net = format!(
        "model::custom(#{{ params: #{{ w: [4, 9], b: [4] }}, inputs: 9, interpret: true, name: \"branching\", forward: |p, x| {{ {same} }} }})"
    );
    let found = model(&net);
    assert_eq!(
        found.describe(),
        "custom \"branching\", 9 inputs, 4 outputs, interpreted at every step, N = 40"
    );
    check(
        "interpreted",
        found,
        dataset(9, 4, true),
        Loss::CrossEntropy,
    );
    let traced = "model::custom(#{ params: #{ w: [4, 9], b: [4] }, forward: |p, x| (x.matmul(p.w.t()) + p.b).tanh() })";
    // Chains on several threads call it side by side.
    for threads in [1, 2] {
        let mut numbers = 0;
        // The initial biases differ: they are recognised as such only where there is a graph.
        let zero = |s: &str| {
            s.replace("forward:", "init: \"he\", forward:")
                .replace("b: [4]", "b: #{ shape: [4], init: 0.0 }")
                .replace("w: [4, 9]", "w: #{ shape: [4, 9], init: \"he\" }")
        };
        close(
            &run(&zero(&net), SGLD, threads, None),
            &run(&zero(traced), SGLD, 1, None),
            &mut numbers,
        );
        assert!(numbers > 100);
    }
    let said = evaluate("model::custom(#{ params: #{ w: [4, 9] }, inputs: 9, interpret: true, forward: |p, x| x.matmul(p.w) })").unwrap_err();
    assert!(
        said.to_string().contains("[3, 9] and [4, 9] do not fit"),
        "{said}"
    );
    let interpreted = |forward: &str| {
        evaluate(&format!(
            "model::custom(#{{ params: #{{ w: [4, 9] }}, inputs: 9, interpret: true, forward: |p, x| {{ {forward} }} }})"
        ))
    };
    let said = interpreted("let h = x.matmul(p.w.t()); h / (h * h).sum()").unwrap_err();
    assert!(said.to_string().contains("would mix examples"), "{said}");
}

/// Two functions with one description are two models: a run of one does not go on with the other.
#[test]
fn fingerprints_tell_functions_apart() {
    for interpret in [false, true] {
        let print = |k: f64| {
            let net = format!(
                "model::custom(#{{ params: #{{ w: [4, 9] }}, inputs: 9, interpret: {interpret}, forward: |p, x| x.matmul(p.w.t()) * {k:?} }})"
            );
            let mut hash = crc32fast::Hasher::new();
            model(&net).fingerprint(&mut hash);
            hash.finalize()
        };
        assert_eq!(print(1.0), print(1.0));
        assert_ne!(print(1.0), print(10.0), "interpret: {interpret}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let net = |params: &str, forward: &str| {
        format!("model::custom(#{{ params: {params},\n forward: |p, x| {{ {forward} }} }})")
    };
    let w = "#{ w: [4, 9] }";
    for (source, said) in [
        (
            net(w, "x.reshape([-1, 8]).matmul(p.w.t())"),
            "[rows, 8] and [9, 4] do not fit",
        ),
        (
            net(w, "x.matmul(p.w.t()) + p.w"),
            "+: the shapes [rows, 4] and [4, 9] do not fit",
        ),
        (
            net(w, "x.matmul(p.v.t())"),
            "there is no parameter 'v'; did you mean 'w'?",
        ),
        (
            net(w, "if x.sum(1).max() > 0 { x } else { x.matmul(p.w.t()) }"),
            "inputs",
        ),
        (
            net(
                w,
                "let y = x.matmul(p.w.t()); if y.slice(1, 0, 1) > 0.5 { y } else { -y }",
            ),
            "the comparison > needs the numbers",
        ),
        (
            net(w, "let y = x.matmul(p.w.t()); y * y.item()"),
            "item() needs the numbers",
        ),
        (
            net(w, "x.matmul(p.w.t()).mean(0)"),
            "mean along axis 0 would mix examples",
        ),
        (
            net(w, "x.matmul(p.w.t()).sum()"),
            "sum without an axis would mix examples",
        ),
        (net(w, "x.matmul(p.w.t())[0]"), "axis 0 would mix examples"),
        (
            net(w, "x.matmul(p.w.t()).t()"),
            "does not have besides the rows",
        ),
        (
            net(
                "#{ w: #{ shape: [4, 9], init: tensor::ones([9, 4]) } }",
                "x.matmul(p.w.t())",
            ),
            "init has shape [9, 4], but the parameter has [4, 9]",
        ),
        (
            net(
                "#{ w: #{ shape: [4, 9], init: \"normal\", init_scale: -1.0 } }",
                "x.matmul(p.w.t())",
            ),
            "'init_scale' is -1, but must be > 0",
        ),
        (net(w, "p.w"), "does not depend on the inputs"),
        (net(w, "x.matmul(p.w.t()).sum(1)"), "use unsqueeze(1)"),
        (
            net("#{ w: [4, 9], b: [4] }", "x.matmul(p.w.t())"),
            "does not use the parameter 'b'",
        ),
        (
            net(w, "x.matmul(p.w.t()).gt(0)"),
            "comparisons alone have none",
        ),
        (
            net(w, "3.5"),
            "must give a tensor [rows, outputs], but gave a number",
        ),
        (net(w, "tensor([1.0])"), "depend neither on p nor on x"),
        (
            net(w, "gradient(|w| w.sum(), p.w)"),
            "gradient needs the numbers",
        ),
        (
            net("#{ w: [4, 0] }", "x.matmul(p.w.t())"),
            "'w': its shape: an axis has length 0",
        ),
        (
            net("#{ w: #{ shap: [4, 9] } }", "x"),
            "no option 'shap'; did you mean 'shape'?",
        ),
        (
            net("#{ w: #{ shape: [4, 9], init: \"hee\" } }", "x"),
            "init \"hee\" is unknown; did you mean 'he'?",
        ),
        (
            net("#{ w: #{ shape: [4, 9], init: [1.0, 2.0] } }", "x"),
            "init of 2 numbers",
        ),
        (
            net("[[\"w\", [4, 9]], [\"w\", [4]]]", "x"),
            "two parameters are called 'w'",
        ),
        (net("#{}", "x"), "there are no params"),
        (net("7", "x"), "params must be a map"),
        (
            "model::custom(#{ params: #{ w: [2] }, forward: 3 })".into(),
            "forward must be a closure",
        ),
        (
            "model::custom(#{ params: #{ w: [2] }, forward: |p| p })".into(),
            "takes 1 argument (p), but is called with 2 arguments",
        ),
        (
            "model::custom(#{ params: #{ w: [2] }, froward: |p, x| x })".into(),
            "did you mean 'forward'?",
        ),
        (
            format!("target({}, dataset::digits())", net(w, "x.matmul(p.w.t())")),
            "the model takes 9 inputs, but 'digits' has 64",
        ),
        (
            format!(
                "sample(target({}, dataset::spin_vectors(#{{ dim: 9, classes: 4, train: 50, test: 0 }})), sampler::sgld(#{{ step: 1e-3, batch: 5 }}), #{{ steps: 5, every: 1 }})",
                net(w, "x.matmul(p.w.t()) + (x.matmul(p.w.t()) * 0 - 1).ln()")
            ),
            "every chain",
        ),
    ] {
        let found = evaluate(&source).err().map(|e| e.to_string());
        let found = found.unwrap_or_else(|| panic!("no error: {source}"));
        assert!(found.contains(said), "{source}\n{found}");
        if said.contains("do not fit") {
            assert!(found.contains("--> test.rhai:2:"), "{found}");
        }
    }
}

/// A model of a script as weights: files have the names of its parameters, and load again.
#[test]
fn weights_are_saved_under_the_names_of_the_script() {
    let found = evaluate(
        "let net = model::custom(#{ params: #{ alpha: [4, 9], beta: [4] }, forward: |p, x| x.matmul(p.alpha.t()) + p.beta });
         let p = parameters(tensor::normal([40], 1));
         let path = tensor::save(\"w.safetensors\", #{ alpha: tensor::ones([4, 9]), beta: tensor([1, 2, 3, 4]) });
         let t = tensor::load(path, \"beta\");
         [net.tensors(p).beta.shape(), net.parameters, t]",
    )
    .unwrap();
    assert_eq!(found, json!([[4], 40, [1.0, 2.0, 3.0, 4.0]]));
}
