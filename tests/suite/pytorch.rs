//! State dicts of PyTorch, there and back; `tests/interop/test_pytorch.py` asks PyTorch itself.

use super::support::{Scratch, ergodic, evaluate, root, text};
use ergodic::prelude::*;
use serde_json::Value as Json;

/// What PyTorch computes with the networks in `tests/data/pytorch`.
fn expected() -> Json {
    let path = root().join("tests/data/pytorch/outputs.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn largest_difference(ours: &[f64], theirs: &Json) -> f64 {
    let theirs = theirs
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap());
    let theirs: Vec<f64> = theirs.map(|x| x.as_f64().unwrap()).collect();
    assert_eq!(ours.len(), theirs.len());
    ours.iter()
        .zip(theirs)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

fn numbers(x: &Json) -> Vec<f64> {
    match x {
        Json::Array(all) => all.iter().flat_map(numbers).collect(),
        x => vec![x.as_f64().unwrap()],
    }
}

/// The same network by the order of its tensors, by names, within a checkpoint, and as a closure that multiplies the other way round.
#[test]
fn outputs_are_those_of_pytorch() {
    let expected = expected();
    let net = "model::mlp(#{ layers: [4, 8, 8, 3], activation: \"tanh\" })";
    let own = "model::custom(#{ inputs: 4, params: #{ a: [4, 8], x: [8], b: [8, 8], y: [8], c: [8, 3], z: [3] },
        forward: |p, i| ((i.matmul(p.a) + p.x).tanh().matmul(p.b) + p.y).tanh().matmul(p.c) + p.z })";
    let names = "rename: #{ \"0.weight\": \"a\", \"0.bias\": \"x\", \"2.weight\": \"b\", \"2.bias\": \"y\", \"4.weight\": \"c\", \"4.bias\": \"z\" }";
    let of = |keys: [&str; 3]| {
        let each = keys
            .iter()
            .zip(["0", "2", "4"])
            .zip(1..)
            .map(|((kind, k), l)| format!("\"{k}.{kind}\": \"{}{l}\"", &kind[..1]));
        each.collect::<Vec<_>>().join(", ")
    };
    let both = format!("rename: #{{ {}, {} }}", of(["weight"; 3]), of(["bias"; 3]));
    let cases = [
        (net, "mlp", String::new()),
        (net, "mlp", format!(", #{{ {both}, transpose: [] }}")),
        (net, "checkpoint", String::new()),
        (net, "two", ", #{ key: \"model\" }".into()),
        // As torch's layers are [out, in], and these [in, out], the square one can be turned without being asked.
        (own, "mlp", format!(", #{{ {names} }}")),
        (own, "mlp", format!(", #{{ {names}, transpose: true }}")),
        (
            own,
            "mlp",
            format!(", #{{ {names}, transpose: [\"*.weight\"] }}"),
        ),
    ];
    for (model, file, options) in cases {
        let source = format!(
            "let net = {model};\nlet w = net.load(\"tests/data/pytorch/{file}.pt\"{options});\n\
             net.outputs(w, tensor({})).to_array()",
            expected["inputs"]
        );
        let found = evaluate(&source).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
        let off = largest_difference(&numbers(&found), &expected["outputs"]);
        assert!(off < 1e-5, "{source}\n{off}");
    }
}

/// A draw of a run under PyTorch's names, and the same draw back, in every format; a target with a parameter of its loss leaves that out.
#[test]
fn draws_are_saved_as_they_were_loaded() {
    let source = "
        let net = model::mlp(#{ layers: [4, 8, 8, 3], activation: \"tanh\" });
        let start = net.load(\"tests/data/pytorch/mlp.pt\");
        let x = tensor::normal([30, 4], 1);
        let data = dataset::arrays(x.to_array(), net.outputs(start, x).to_array());
        let t = target(net, data, #{ energy: \"sum\", prior: prior::gaussian(1) });
        let run = sample(t, sampler::sgld(#{ step: 1e-5, batch: 10 }), #{ start: start, steps: 20, every: 5, chains: 2, keep: 10 });
        let draw = run.draw(1, 0);
        let found = [];
        for name in [\"a.pt\", \"a b.pth\", \"sub/a.npz\", \"a.safetensors\"] {
            let path = net.save(name, draw, #{ like: \"tests/data/pytorch/mlp.pt\" });
            found.push((net.load(path).vector(0) - draw.vector(0)).abs().max());
        }
        let last = net.save(\"last.pt\", run, #{ chain: 1, rename: #{ \"layer*.weight\": \"w*\", \"layer*.bias\": \"b*\" } });
        found.push((net.load(last).vector(0) - draw.vector(0)).abs().max());
        let noisy = target(net, data, #{ loss: loss::gaussian(\"sigma\"), energy: \"sum\", prior: #{ sigma: prior::half_normal(1), \"*\": prior::normal(0, 1) } });
        let whole = parameters(tensor::normal([net.parameters + 1], 3));
        let own = net.load(noisy.save(\"noisy.pt\", whole));
        found.push((own.vector(0) - whole.vector(0).slice(0, 0, net.parameters)).abs().max());
        found";
    assert_eq!(numbers(&evaluate(source).unwrap()), [0.0; 6]);
}

#[test]
fn what_does_not_fit_says_what_would() {
    let net = "let net = model::mlp(#{ layers: [4, 8, 8, 3] });\nlet w = net.load(\"tests/data/pytorch/mlp.pt\");\n";
    let own = "let own = model::custom(#{ inputs: 4, params: #{ a: [4, 4], b: [4] }, forward: |p, i| i.square().matmul(p.a) * p.b });\n\
               let path = tensor::save(\"own.safetensors\", #{ \"0.weight\": tensor::eye(4), \"0.bias\": tensor::ones([4]) });\n";
    let cases = [
        (
            "net.load(\"tests/data/pytorch/two.pt\")",
            "#{ key: \"model\" }",
        ),
        (
            "net.load(\"tests/data/pytorch/mlp.pt\", #{ renam: #{} })",
            "did you mean 'rename'?",
        ),
        (
            "net.load(\"tests/data/pytorch/mlp.pt\", #{ rename: \"w1\" })",
            "must be a map",
        ),
        (
            "net.load(\"tests/data/pytorch/mlp.pt\", #{ transpose: [1] })",
            "must have names",
        ),
        ("net.save(\"a.pt\", net)", "takes parameters"),
        ("net.save(\"a.txt\", w)", "none of .pt"),
        (
            "net.save(\"a.pt\", parameters([1.0, 2.0]))",
            "has 2 numbers, but 139 are needed",
        ),
        (
            "net.save(\"a.pt\", parameters([[1.0], [2.0]]))",
            "there are 2 vectors",
        ),
        ("net.save(\"a.pt\", w, #{ chain: 3 })", "one vector, 0"),
        ("net.save(\"../a.pt\", w)", "within the folder"),
        (
            "net.save(\"a.pt\", w, #{ rename: #{ \"0.weight\": \"w7\" } })",
            "which the model does not have",
        ),
        (
            "net.save(\"a.pt\", w, #{ key: \"model\" })",
            "of the option 'like'",
        ),
        ("own.load(path)", "#{ transpose: [\"a\"] }"),
    ];
    for (call, said) in cases {
        let found = evaluate(&format!("{net}{own}{call}")).expect_err(call);
        let found = found.message;
        assert!(found.contains(said), "{call}\n{found}");
    }
}

#[test]
fn a_program_says_which_tensors_it_took() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "s.rhai",
        "model::mlp(#{ layers: [4, 8, 8, 3] }).load(\"tests/data/pytorch/mlp.pt\")",
    );
    let said = |more: &[&str]| {
        let mut command = ergodic();
        command
            .arg("run")
            .arg(&script)
            .arg("--out")
            .arg(scratch.join("out"))
            .args(more);
        text(&command.output().unwrap())
    };
    let note = "NOTE: 'tests/data/pytorch/mlp.pt': tensors go by shape and number, as with #{ rename: #{ \"0.weight\": \"w1\"";
    assert!(said(&[]).contains(note), "{}", said(&[]));
    assert!(!said(&["--quiet"]).contains("NOTE"));
}

#[test]
fn rust_code_loads_and_saves() {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let net = model::Mlp::new([4usize, 8, 8, 3]).build().unwrap();
    let file = root()
        .join("tests/data/pytorch/mlp.pt")
        .display()
        .to_string();
    let w = load(&net, &*file).run_in(&session).unwrap();
    let path = save(&net, "a.pt", &w).like(&file).run_in(&session).unwrap();
    let again = load(&net, &*path).run_in(&session).unwrap();
    assert_eq!(w.vectors, again.vectors);
    let names = || OptionMap::new().with("*.w", "w*").with("*.b", "b*");
    let path = save(&net, "b.npz", &w)
        .rename(names())
        .run_in(&session)
        .unwrap();
    let again = load(&net, path.as_str())
        .rename(names())
        .run_in(&session)
        .unwrap();
    assert_eq!(w.vectors, again.vectors);
}
