//! `model::custom`: models written in a script, against native ones, candle and finite differences; and tensors in scripts.

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
            check(name, model(&source), dataset(9, 4, classes), loss);
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
fn run(net: &str, sampler: &str, threads: usize, device: Option<Open>) -> Value {
    let source = format!(
        "let t = target({net}, dataset::spin_vectors(#{{ dim: 9, classes: 4, train: 700, test: 60 }}), #{{ prior: prior::l2(5.0) }});
         let r = sample(t, {sampler}, #{{ seed: 5, chains: 3, temperature: 0.002, steps: 24, burn_in: 4, every: 2,
            observe: [observable::cost(), observable::norm2(), observable::error(\"test\")] }});
         let out = [];
         for c in 0..3 {{ out.push(r.trace(\"cost\", c)); out.push(r.trace(\"norm2\", c)); out.push(r.trace(\"error.test\", c)); out.push(r.at(c).vector(0).to_array()); }}
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
    Box::new(|| Ok(Box::new(Emulated::new().unwrap()) as Box<dyn Device>))
}

#[test]
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

fn close(a: &Value, b: &Value, count: &mut usize) {
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
            let one = run(source, sampler, 1, None);
            assert!(one == run(source, sampler, 2, None), "{name}, {sampler}");
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
            net(w, "let y = x.matmul(p.w.t()); y * p.w.max().item()"),
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
        (net(w, "x.matmul(p.w.t()).t()"), "has not besides the rows"),
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
            "must give a tensor [rows, outputs], but gave a f64",
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
            "two arguments",
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
                "sample(target({}, dataset::spin_vectors(#{{ dim: 9, classes: 4, train: 50, test: 0 }})), sampler::sgld(#{{ step: 1e-3, batch: 5 }}), #{{ steps: 5 }})",
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

#[test]
fn tensors_compute_as_numpy_does() {
    for (source, expected) in [
        (
            "tensor([[1, 2], [3, 4]]) * tensor([10, 100])",
            json!([[10.0, 200.0], [30.0, 400.0]]),
        ),
        (
            "tensor([[1], [2]]) + tensor([10, 20, 30])",
            json!([[11.0, 21.0, 31.0], [12.0, 22.0, 32.0]]),
        ),
        ("2 - tensor([1.0, 2.0]) / 2", json!([1.5, 1.0])),
        (
            "tensor([2.0, 3.0]) ** 2 + 2 ** tensor([1.0, 3.0])",
            json!([6.0, 17.0]),
        ),
        (
            "tensor([[1, 2], [3, 4]]).matmul(tensor([1, 1]))",
            json!([3.0, 7.0]),
        ),
        (
            "tensor::arange(0, 6).reshape([2, -1]).t()",
            json!([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]),
        ),
        (
            "let t = tensor::arange(0, 24).reshape([2, 3, 4]); t[-1][0..2].sum(-1)",
            json!([54.0, 70.0]),
        ),
        (
            "let t = tensor::arange(0, 24).reshape([2, 3, 4]); [t.sum().item(), t.mean(), t.max(0, true).shape(), t.min(1)[1][3]]",
            json!([276.0, 11.5, [1, 3, 4], 15.0]),
        ),
        ("tensor([1, 2, 3])[1..=2]", json!([2.0, 3.0])),
        (
            "tensor([1.0, 3.0]).lt(2) + tensor([1.0, 3.0]).ge(tensor([3.0, 3.0]))",
            json!([1.0, 1.0]),
        ),
        (
            "choose(tensor([-1.0, 1.0]).gt(0), 5, tensor([7.0, 8.0]))",
            json!([7.0, 5.0]),
        ),
        (
            "[tensor([1.0]) == tensor([1.0]), tensor([1.0]) == tensor([[1.0]]), tensor([2.0]).sum() > 1, tensor([1, 2]) != tensor([1, 3])]",
            json!([true, false, true, true]),
        ),
        (
            "tensor([0.0, 0.0]).softmax(0) + tensor([0.0, 0.0]).log_softmax(0).exp()",
            json!([1.0, 1.0]),
        ),
        (
            "tensor([1000.0, 1000.0]).log_sum_exp(0).item() - 1000",
            json!(2f64.ln()),
        ),
        (
            "tensor::stack([tensor([1, 2]), tensor([3, 4])], 1)",
            json!([[1.0, 3.0], [2.0, 4.0]]),
        ),
        (
            "tensor::concat([tensor::eye(2), tensor::full([2, 1], 7)], 1)",
            json!([[1.0, 0.0, 7.0], [0.0, 1.0, 7.0]]),
        ),
        ("tensor::linspace(0, 1, 3)", json!([0.0, 0.5, 1.0])),
        (
            "tensor::normal([1000], 3).pow(2).mean().item() > 0.9",
            json!(true),
        ),
        (
            "tensor::normal([5], 3) == tensor::normal([5], 3) && tensor::normal([5], 3) != tensor::normal([5], 4)",
            json!(true),
        ),
        (
            "gradient(|x| (x * x).sum(), tensor([1.0, -2.0]))",
            json!([2.0, -4.0]),
        ),
        (
            "gradient(|x| { if x.sum() > 0 { x.max() } else { 3 * x.sum() } }, tensor([2.0, 2.0, 1.0]))",
            json!([0.5, 0.5, 0.0]),
        ),
        (
            "gradient(|x, y| x.matmul(y).sum(), [tensor([[1.0, 2.0]]), tensor([[3.0], [4.0]])])",
            json!([[[3.0, 4.0]], [[1.0], [2.0]]]),
        ),
        ("gradient(|x| 7, tensor([1.0]))", json!([0.0])),
        (
            "gradient(|x| choose(x.gt(0), x, 0).sum() + (x.gt(5) * x).sum(), tensor([1.0, -1.0]))",
            json!([1.0, 0.0]),
        ),
        ("value_and_gradient(|x| x.exp(), 0.0).value", json!(1.0)),
        (
            "tensor([[1.0, 2.0], [3.0, 4.0]]).to_array()[1][0]",
            json!(3.0),
        ),
        ("tensor(3.0).to_array()", json!(3.0)),
        (
            "let p = parameters(tensor([[1.0, 2.0], [3.0, 4.0]])); tensor(p.vector(1)) + p.vector(0).tensor()",
            json!([4.0, 6.0]),
        ),
        (
            "tensor::load(tensor([[1.5, 2.0]]).save(\"a.npy\"))",
            json!([[1.5, 2.0]]),
        ),
        (
            "tensor::load(tensor::save(\"b.safetensors\", #{ x: tensor([1]), y: tensor([2]) }), \"y\")",
            json!([2.0]),
        ),
        (
            "dataset::digits().inputs(\"train\").shape()",
            json!([1438, 64]),
        ),
        (
            "let n = model::mlp(#{ layers: [2, 1] }); let p = parameters([1.0, 2.0, 0.5]); [n.tensors(p).w1, n.outputs(p, tensor([[1.0, 1.0], [0.0, 1.0]]))]",
            json!([[[1.0, 2.0]], [[3.5], [2.5]]]),
        ),
    ] {
        let found = evaluate(source).unwrap_or_else(|e| panic!("{source}\n{e}"));
        if let (Some(a), Some(b)) = (found.as_f64(), expected.as_f64()) {
            assert!((a - b).abs() < 1e-9, "{source}: {a}");
        } else {
            assert_eq!(found, expected, "{source}");
        }
    }
}

#[test]
fn bad_tensors_are_refused() {
    for (source, said) in [
        ("tensor([[1, 2], [3]])", "unequal lengths, 2 and 1"),
        (
            "tensor([1, [2]])",
            "an element must be a number, not a array",
        ),
        ("tensor([[1], 2])", "nested unequally"),
        ("tensor([])", "without elements"),
        ("tensor(\"a\")", "must be a number"),
        (
            "tensor::zeros([1000000, 1000000, 1000000, 1000000])",
            "too large",
        ),
        ("tensor::zeros([2, -1])", "length -1"),
        ("tensor::eye(1000000)", "too large"),
        ("tensor::arange(3, 3)", "no numbers from 3"),
        ("tensor([1, 2])[2]", "no entry 2 along axis 0"),
        ("tensor([1, 2])[1..1]", "no 1..1 along axis 0"),
        ("tensor(1.0)[0]", "no axis 0"),
        (
            "tensor([1, 2]) + tensor([1, 2, 3])",
            "[2] and [3] do not fit",
        ),
        (
            "tensor([1, 2]).matmul(tensor([1, 2, 3]))",
            "[2] and [3] do not fit",
        ),
        ("tensor([1, 2]).sum(1)", "no axis 1"),
        ("tensor([1, 2]).reshape([3])", "2 numbers, but [3] has 3"),
        (
            "tensor([1, 2]).reshape([-1, -1])",
            "only one length may be -1",
        ),
        ("tensor([1, 2]).reshape([-1, 3])", "no multiple of 3"),
        ("tensor([1, 2]).t()", "has not"),
        ("tensor([1, 2]).squeeze(0)", "more than one entry"),
        ("tensor([1, 2]).item()", "one number"),
        ("if tensor([1, 2]) > 1 { 1 }", "use lt, le, gt"),
        ("tensor::concat([], 0)", "no tensors"),
        ("tensor::concat([tensor([1]), 2], 0)", "an element is a i64"),
        (
            "tensor::concat([tensor([1]), tensor([[2]])], 0)",
            "differ along another axis",
        ),
        ("tensor([1]).save(\"x.txt\")", "neither with .npy"),
        ("tensor::load(\"nowhere.npy\")", "check the name"),
        ("gradient(|x| x, tensor([1.0, 2.0]))", "one number"),
        ("gradient(|x| \"a\", tensor([1.0]))", "but gave a"),
        (
            "gradient(|x| gradient(|y| (y * y).sum(), x).sum(), tensor([1.0]))",
            "second derivatives are not available",
        ),
        (
            "model::mlp(#{ layers: [2, 1] }).outputs(parameters([1.0, 2.0, 3.0]), tensor([1.0]))",
            "must have [rows, 2]",
        ),
    ] {
        let found = evaluate(source).err().map(|e| e.to_string());
        let found = found.unwrap_or_else(|| panic!("no error: {source}"));
        assert!(found.contains(said), "{source}\n{found}");
    }
}

#[test]
fn observables_are_functions_of_tensors() {
    let found = evaluate(
        "let t = target(model::mlp(#{ layers: [9, 5, 4] }), dataset::spin_vectors(#{ dim: 9, classes: 4, train: 50, test: 0 }));
         let r = sample(t, sampler::sgld(#{ step: 1e-3, batch: 10 }), #{ chains: 2, steps: 8, burn_in: 0, every: 2, observe: [
            observable::named(\"tensors\", |s| s.params.tensor(\"w1\").abs().max()),
            observable::named(\"values\", |s| s.params.slice(\"w1\").abs().max()),
            observable::named(\"product\", |s| { let w = s.params.tensor(\"w1\"); (w.matmul(w.t())[0][0] - w[0].norm2()).item() }),
            observable::named(\"positive\", |s| s.params.tensor(\"b1\").sum() > -1e9) ] });
         [r.trace(\"tensors\", 1), r.trace(\"values\", 1), r.trace(\"product\", 1), r.trace(\"positive\", 0)]",
    )
    .unwrap();
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].as_array().map(Vec::len), Some(4));
    let small = |x: &Value| x.as_f64().unwrap().abs() < 1e-6;
    assert!(found[2].as_array().unwrap().iter().all(small), "{found}");
    assert_eq!(found[3], json!([1.0, 1.0, 1.0, 1.0]));
    let said = evaluate(
        "sample(target(potential::gaussian(#{ dim: 3 })), sampler::hmc(), #{ steps: 4, observe: [|s| s.params.tensor()] })",
    )
    .unwrap_err()
    .to_string();
    assert!(said.contains("needs a tensor of one number"), "{said}");
}

#[test]
fn tensors_print_as_arrays() {
    let printed = |source: &str| {
        let scratch = Scratch::new();
        let mut i = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
        let value = i.run("test.rhai", source).unwrap();
        i.show(&value)
    };
    assert_eq!(
        printed("tensor([[1, -2.5], [30, 4]])"),
        "[[ 1.0 -2.5]\n [30.0  4.0]]"
    );
    assert_eq!(printed("tensor(3)"), "3.");
    assert_eq!(printed("tensor([1e-9, 1.0])"), "[1e-9  1e0]");
    assert_eq!(
        printed("tensor::arange(0, 5000)"),
        "[   0.    1.    2. … 4997. 4998. 4999.]  [5000]"
    );
    assert_eq!(
        printed("tensor::zeros([2, 1, 2])"),
        "[[[0. 0.]]\n\n [[0. 0.]]]"
    );
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
