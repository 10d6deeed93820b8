//! Tensors in scripts: what they compute, what they refuse, files, derivatives, observables.

use super::support::{Scratch, evaluate};
use ergodic::script::Interpreter;
use ergodic::simulation::session::Session;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
        // Beside an element that is far below, and beside one that counts nothing.
        (
            "tensor([-1e30, 0.5, 0.5]).log_sum_exp(0)",
            json!(0.5 + 2f64.ln()),
        ),
        ("tensor([0.0, -1.0 / 0.0]).log_sum_exp(0)", json!(0.0)),
        (
            "gradient(|x| x.log_sum_exp(0), tensor([-1e30, 0.5, 0.5]))",
            json!([0.0, 0.5, 0.5]),
        ),
        // Powers of numbers that have no logarithm.
        (
            "tensor([-2.0, -2.0, 0.0, 0.0]) ** tensor([2.0, 3.0, 0.0, 2.0])",
            json!([4.0, -8.0, 1.0, 0.0]),
        ),
        (
            "gradient(|x| (x ** tensor([2.0, 3.0, 0.0, 2.0])).sum(), tensor([-2.0, 2.0, 0.0, 0.0]))",
            json!([-4.0, 12.0, 0.0, 0.0]),
        ),
        (
            "let found = value_and_gradient(|x| (x ** 0.5).sum(), tensor([0.0, 4.0])); [found.value, found.gradient[1].item(), found.gradient[0] > 1e30]",
            json!([2.0, 0.25, true]),
        ),
        (
            "gradient(|x| (2 ** x).sum(), tensor([3.0]))",
            json!([8.0 * 2f64.ln()]),
        ),
        (
            "value_and_gradient(|x| (x / tensor([1.0, 0.0])).max(), tensor([1.0, -1.0])).value",
            json!(1.0),
        ),
        ("tensor([1.0, 2.0, 3.0])[1..=-1]", json!([2.0, 3.0])),
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
            "an element must be a number, not an array",
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
        ("tensor([1, 2]).reshape([-1, 3])", "not a multiple of 3"),
        ("tensor([1, 2]).t()", "does not have"),
        ("tensor([1, 2]).squeeze(0)", "more than one entry"),
        ("tensor([1, 2]).item()", "one number"),
        ("if tensor([1, 2]) > 1 { 1 }", "use lt, le, gt"),
        ("tensor::concat([], 0)", "no tensors"),
        (
            "tensor::concat([tensor([1]), 2], 0)",
            "an element is an integer",
        ),
        (
            "tensor::concat([tensor([1]), tensor([[2]])], 0)",
            "differ along an axis other",
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
            "gradient(|x| gradient(|y| (y * x).sum(), tensor([1.0, 2.0])).sum(), tensor([3.0, 4.0]))",
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
    // A tensor of several numbers is as many components.
    let several = evaluate(
        "let r = sample(target(potential::gaussian(#{ dim: 3 })), sampler::hmc(), #{ steps: 4, every: 1, observe: [|s| s.params.tensor()] });
         r.trace(\"closure_1\", 0)[0].len()",
    );
    assert_eq!(several.unwrap(), 3);
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
