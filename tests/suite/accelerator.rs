//! Runs on an accelerator are those of the CPU, but for the order in which products and sums are added up.
//!
//! They run on [`Emulated`](crate::emulated::Emulated), and where there is a GPU on that too. Random numbers have the same bits, so
//! two runs stay together for as long as rounding does not drive them apart: few steps are compared closely.

use super::device::bench::skip;
use super::device::nvrtc::compile_all;
use super::emulated::{Emulated, Sources};
use super::support::Scratch;
use ergodic::kernels::device::{Device, Precision};
use ergodic::script::{Failure, Interpreter};
use ergodic::simulation::console::{Bar, Console, Stage, Task};
use ergodic::simulation::session::{Open, Session};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Networks of every activation, both losses and both kinds of data, and formulas; traced models of every kind; priors and potentials that are
/// formulas; every sampler.
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
        "formula",
        "target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }),
            #{ loss: |out, y| nll::categorical(y[0], out), prior: prior::gaussian(0.1) })",
    ),
    (
        "gates",
        "target(model::custom(#{ params: #{ a: [9, 20], g: [9, 20], ga: [9], scale: #{ shape: [9], init: 1.0 }, out: [3, 9], bias: [3] }, forward: |p, x| {
                let h = x.matmul(p.a.t()).tanh() * (x.matmul(p.g.t()) + p.ga).sigmoid();
                let centred = h - h.mean(-1, true);
                let norm = centred / (centred.pow(2).mean(-1, true) + 1e-3).sqrt();
                (norm * p.scale).silu().matmul(p.out.t()) + p.bias } }),
            dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }), #{ prior: prior::l2(10.0) })",
    ),
    (
        "convolutions",
        "{ let net = model::custom(#{ params: #{ c1: [4, 1, 3, 3], b1: [4, 1, 1], c2: [4, 2, 3, 3], out: [10, 16] }, inputs: 64, forward: |p, x| {
                let h = (x.reshape([-1, 1, 8, 8]).conv2d(p.c1, #{ padding: 1 }) + p.b1).relu().max_pool2d(2);
                let h = h.conv2d(p.c2, #{ padding: 1, stride: 2, groups: 2 }).gelu();
                h.flatten().matmul(p.out.t()) } });
         target(net, dataset::digits(20), #{ prior: prior::gaussian(0.5) }) }",
    ),
    (
        "attention",
        "target(model::custom(#{ params: #{ q: [4, 6], k: [4, 6], v: [4, 6], out: [3, 30] }, inputs: 20, forward: |p, x| {
                let s = x.reshape([-1, 5, 4]);
                let a = (s.matmul(p.q).matmul(s.matmul(p.k).t()) / 6.0 ** 0.5).softmax(-1);
                a.matmul(s.matmul(p.v)).flatten().matmul(p.out.t()) } }),
            dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }), #{ prior: prior::gaussian(0.5) })",
    ),
    (
        "shared",
        "target(model::custom(#{ params: #{ u: [20, 3], v: [3, 20], out: [3, 20], scale: #{ shape: [20], init: 1.0 } }, forward: |p, x| {
                let w = p.u.matmul(p.v);
                let h = x;
                for l in 0..2 { h = h + (h.matmul(w) * p.scale).gelu(); }
                h.matmul(p.out.t()) } }),
            dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 0 }), #{ loss: \"squared_error\", prior: prior::gaussian(0.5) })",
    ),
    (
        "transformer",
        "{ let data = dataset::induction(#{ vocabulary: 5, context: 6, train: 60, test: 0 });
         target(model::transformer(#{ vocabulary: data.classes, context: data.dim, layers: 2, width: 6, heads: 2, bias: true }), data, #{ prior: prior::gaussian(0.5) }) }",
    ),
    (
        "focal",
        "target(model::mlp(#{ layers: [20, 5, 2] }), dataset::spin_vectors(#{ dim: 20, classes: 2, train: 200, test: 70 }),
            #{ loss: loss::focal(2.0), prior: prior::gaussian(0.5) })",
    ),
    (
        "layers",
        "{ import \"layers\" as nn;
         let net = nn::model(nn::sequential([nn::conv(1, 2, 3, #{ padding: 1 }), nn::group_norm(1, 2), nn::residual(nn::conv(2, 2, 3, #{ padding: 1 }), ()),
            nn::activation(\"silu\"), nn::max_pool(4), nn::flatten(), nn::linear(8, 10)]), #{ inputs: [1, 8, 8] });
         target(net, dataset::digits(20), #{ prior: prior::gaussian(0.5) }) }",
    ),
    (
        "onnx",
        "target(model::onnx(\"tests/data/onnx/mlp.onnx\"), dataset::digits(20), #{ prior: prior::gaussian(0.5) })",
    ),
    (
        "laplace",
        "target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }), #{ prior: prior::laplace(0.1, 0.5) })",
    ),
    (
        "laws",
        "target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }),
            #{ prior: #{ w1: prior::normal(\"mu\", \"tau\"), b1: prior::mixture([0.5, 0.5], [-1, 0.5], [1, 2]), w2: prior::horseshoe(0.5), \"*\": prior::student_t(4, 0, \"sigma\"),
                mu: prior::normal(0, 1), tau: prior::half_cauchy(1), sigma: prior::inverse_gamma(3, \"rate\"), rate: prior::lognormal(0, 0.5) } })",
    ),
    (
        "prior-closure",
        "target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 70 }),
            #{ prior: prior::closure(#{ s: support::positive() }, |p| 0.5 * p.w1.pow(2).sum() / p.s + (1 + p.w2.pow(2)).ln().sum() + 0.5 * p.b2.pow(2).sum() + 70 * p.s.ln() + 3 / p.s) })",
    ),
    (
        "potential-closure",
        "{ let data = dataset::spin_vectors(#{ dim: 3, classes: 3, train: 60, test: 0 });
         target(potential::closure(#{ w: [3], cuts: support::ordered(3), share: support::interval(0, 1), sd: support::positive() },
            |p, x, y| { let m = (p.w * x).sum() + p.cuts[1]; -(p.share * (-nll::normal(y[0], m, p.sd)).exp() + (1 - p.share) * (-nll::normal(y[0], p.cuts[2], 2)).exp()).ln() }, data),
            #{ prior: #{ w: prior::normal(0, 1), cuts: prior::normal(0, 2), share: prior::beta(2, 3), sd: prior::gamma(2, 1) } }) }",
    ),
    (
        "energy",
        "target(potential::closure(#{ a: [4], b: [2] }, |p| 0.5 * (p.a.pow(2).sum() - 1).pow(2) + p.b.abs().sum() + p.a[0] * p.b[1]))",
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
    ("snaper", "sampler::snaper(#{ dt: 0.01, adapt: false })"),
    ("nuts", "sampler::nuts(#{ dt: 0.01, max_depth: 3 })"),
    ("mala", "sampler::mala(#{ step: 0.0001 })"),
    ("mams", "sampler::mams(#{ dt: 0.1, steps: 3.0 })"),
    ("mclmc", "sampler::mclmc(#{ dt: 0.1, adapt: false })"),
    (
        "metropolis",
        "sampler::metropolis(#{ sigma: 0.001, thermometer: 2 })",
    ),
];

/// A sweep of a few steps; its traces and last parameters.
fn script(target: &str, sampler: &str, steps: usize) -> String {
    let observed = match target.contains("transformer") {
        true => "observable::cost(), observable::example_losses(#{ rows: 7 })",
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
    // Where a step is long, what rounding does grows from step to step. How much, temperatures that are 1e-5 higher tell: at the first steps they
    // change the last bits of weights, far less than what is allowed here, and that grows as fast. One of them may do next to nothing to a number by chance, three do not.
    let changed = |higher: &str| {
        let mut found = Vec::new();
        let nudged = source.replace("[0.001, 0.01]", higher);
        numbers(&run(&nudged, None), String::new(), &mut found);
        found.into_iter().collect::<BTreeMap<_, _>>()
    };
    let higher = [
        "[0.00100001, 0.0100001]",
        "[0.001000012, 0.01000012]",
        "[0.001000014, 0.01000014]",
    ];
    // What has other temperatures would only be run again.
    let has = source.contains("[0.001, 0.01]");
    let nudged: Vec<_> = higher.into_iter().filter(|_| has).map(changed).collect();
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
        // An exponential has the error of its exponent.
        let (a, b) = match path.contains("exp_energy_error") {
            true => (a.ln(), b.ln()),
            false => (*a, *b),
        };
        let apart = |n: &f64| match path.contains("exp_energy_error") {
            true => (a - n.ln()).abs(),
            false => (a - n).abs(),
        };
        let known = nudged.iter().filter_map(|n| n.get(path));
        let grown = known.map(apart).fold(0.0, f64::max);
        let grown = if grown.is_finite() { 10.0 * grown } else { 0.0 };
        let close = (a - b).abs() <= 2e-3 * a.abs().max(b.abs()) + 1e-5 + grown;
        assert!(
            close || a == b || (a.is_nan() && b.is_nan()),
            "{what}, {path}: {a} here, {b} there"
        );
    }
}

fn emulated(sources: &Sources) -> Open {
    let sources = sources.clone();
    Arc::new(move || {
        let device = Emulated::listing(&sources).expect("a C++ compiler");
        Ok(vec![Box::new(device) as Box<dyn Device>])
    })
}

#[test]
fn every_registered_sampler_is_tested_here() {
    // Of deep linear networks only, by a test of its own.
    let others = ergodic::sampler::REGISTRY
        .iter()
        .filter(|e| e.name != "gibbs");
    for entry in others {
        let call = format!("sampler::{}(", entry.name);
        assert!(SAMPLERS.iter().any(|(_, s)| s.starts_with(&call)), "{call}");
    }
}

#[test]
fn what_no_device_computes_is_refused() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let run = |target: &str| {
        let source = format!("sample({target}, sampler::hmc(), #{{ steps: 10, every: 1 }})");
        let refused = tried(&source, Some(emulated(&Sources::default()))).unwrap_err();
        refused.message
    };
    let data = "dataset::spin_vectors(#{ dim: 4, classes: 2, train: 30, test: 0 })";
    for (target, reason) in [
        (
            format!(
                "target(model::mlp(#{{ layers: [4, 2] }}), {data}, #{{ prior: prior::closure(|p| {{ let e = 0; for i in 0..9000 {{ e += (p.w1[0] + i).pow(4).sum(); }} e }}) }})"
            ),
            "no device computes the prior 'a closure",
        ),
        (
            "target(potential::gaussian(#{ dim: 3 }))".into(),
            "no device computes",
        ),
        (
            format!(
                "target(model::custom(#{{ params: #{{ w: [4, 2] }}, inputs: 4, interpret: true, forward: |p, x| x.matmul(p.w) }}), {data})"
            ),
            "no device computes a model with `interpret: true`",
        ),
    ] {
        let message = run(&target);
        assert!(
            message.contains(reason) && message.contains("--device cpu"),
            "{message}"
        );
        // What candle could compute there, in another build.
        assert_eq!(
            message.contains("--features candle-cuda"),
            reason.contains("interpret"),
            "{message}"
        );
    }
}

/// What stands above the table of a run says where it was computed.
#[test]
fn the_header_says_what_computes_where() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let source = "let t = target(model::mlp(#{ layers: [4, 3, 2] }), dataset::spin_vectors(#{ dim: 4, classes: 2, train: 30, test: 10 }), #{ prior: prior::gaussian(0.5) });
        let r = sample(t, sampler::sgld(#{ step: 0.001, batch: 10 }), #{ steps: 10, every: 1, predict: \"test\",
            observe: [observable::cost(), observable::norm2(), observable::error(\"test\"), observable::named(\"size\", |s| s.params.norm2()),
                observable::named(\"late\", |s| s.params.norm2() * s.step)] });
        `${r.summary()}`";
    let text = run(source, Some(emulated(&Sources::default())));
    let text = text.as_str().unwrap();
    for line in [
        "on emulated: model, loss and gradients, data, steps of all chains; prior; observables cost, error_test, size; outputs for predictions",
        "on this machine: observables norm2, late, from parameters that are copied; scores of predictions",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let here = run(source, None);
    assert!(!here.as_str().unwrap().contains("on this machine"));
}

/// Closures that depend on parameters alone are computed there; made to depend on the step, here, at the same parameters. Null: both are the same but for
/// rounding to single precision.
#[test]
fn closures_of_parameters_are_measured_there() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let closures = [
        "s.params.norm2()",
        "s.params.w1.norm2() / s.params.w2.norm2()",
        "s.params.abs().max()",
        "s.params[3]",
        "s.params.w1.tanh().mean(0).sum()",
        "s.params.w2.matmul(s.params.w1).tanh().mean()",
        "s.params.w1.matmul(s.params.w1.transpose(0, 1)).log_softmax(0).min()",
        "s.params.b2",
    ];
    let both = closures.iter().enumerate().map(|(i, c)| {
        format!("observable::named(\"there_{i}\", |s| {c}), observable::named(\"here_{i}\", |s| {c} + 0 * s.step)")
    });
    let both: Vec<_> = both.collect();
    let source = format!(
        "let t = target(model::mlp(#{{ layers: [64, 80, 10] }}), dataset::digits(20), #{{ prior: prior::gaussian(0.5) }});
         let r = sample(t, sampler::sgld(#{{ step: 0.001, batch: 10 }}), #{{ steps: 10, every: 5, chains: 3, observe: [{}] }});
         let all = [];
         for i in 0..{} {{ for c in 0..3 {{ all.push([r.trace(`there_${{i}}`, c), r.trace(`here_${{i}}`, c)]); }} }}
         #{{ all: all, header: `${{r.summary()}}` }}",
        both.join(", "),
        closures.len()
    );
    let two: Open = Arc::new(|| {
        let one = || Emulated::new().map(|d| Box::new(d) as Box<dyn Device>);
        Ok(one().into_iter().chain(one()).collect())
    });
    for open in [emulated(&Sources::default()), two] {
        let value = run(&source, Some(open));
        let header = value["header"].as_str().unwrap();
        println!("{header}");
        for (i, closure) in closures.iter().enumerate() {
            let computed = header
                .lines()
                .find(|l| l.starts_with("on emulated"))
                .unwrap();
            assert!(
                computed.contains(&format!("there_{i}")),
                "{closure}: {header}"
            );
        }
        for (i, pair) in value["all"].as_array().unwrap().iter().enumerate() {
            let [mut there, mut here] = [Vec::new(), Vec::new()];
            numbers(&pair[0], String::new(), &mut there);
            numbers(&pair[1], String::new(), &mut here);
            assert!(there.len() >= 2 && there.len() == here.len());
            for ((_, a), (_, b)) in there.iter().zip(&here) {
                let close = (a - b).abs() <= 2e-6 * b.abs().max(1e-3);
                assert!(close, "{}: {a} there, {b} here", closures[i / 3]);
            }
        }
    }
}

/// Remarks that were made.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Console for Heard {
    fn print(&self, _: &str) {}

    fn remark(&self, text: &str) {
        self.0.lock().unwrap().push(text.into());
    }

    fn begin(&self, _: &Task) -> Arc<dyn Bar> {
        Arc::new(Self::default())
    }
}

impl Bar for Heard {
    fn show(&self, _: &Stage) {}

    fn finish(&self, _: &Stage) {}
}

/// What a verb computes without the device it says, once; the others compute there, or compute nothing of a target.
#[test]
fn verbs_say_what_they_compute_here() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let run = "let r = sample(t, sampler::hmc(), #{ steps: 60, every: 2, chains: 2, keep: 2, observe: [observable::cost()] });";
    // A verb with what comes before it, and what it says; every other verb of the program is in the list behind.
    let cases: [(&str, String, &[&str]); 14] = [
        ("sample", run.into(), &[]),
        ("train", "train(t, optimizer::adam(#{ lr: 0.01, epochs: 2 }));".into(), &[]),
        ("sweep", "sweep(t, sampler::hmc(), #{ temperatures: [0.1, 0.2], steps: 20, every: 2 });".into(), &[]),
        ("exchange", "exchange(t, sampler::hmc(), #{ temperatures: [0.1, 0.2], steps: 20, every: 2 });".into(), &[]),
        ("llc", "let e = llc(t, sampler::sgld(#{ step: 1e-4, batch: 5 }), #{ start: w, steps: 100, every: 2 }); e.wbic();".into(), &[]),
        ("predict", format!("{run} predict(r, \"test\"); let x = [[0.1, 0.2, 0.3, 0.4]]; predict(r, x); predict(r, x);"), &["predict: outputs for new rows"]),
        ("observe", format!("{run} observe(r, [observable::energy()]);"), &["observe"]),
        ("overlaps", format!("{run} overlaps(r); overlaps(r, #{{ split: \"test\" }});"), &["overlaps: outputs"]),
        ("verify", format!("{run} verify(r, #{{ draws: 8, moves: 1, leapfrog: 2 }});"), &["verify: the exact chains"]),
        ("laplace", "laplace(t, w, #{ polish: 10 });".into(), &["laplace"]),
        ("smc", "smc(t, sampler::hmc(#{ leapfrog: 2 }), #{ particles: 16, moves: 1 });".into(), &["smc: the weights of the particles"]),
        ("benchmark", "benchmark(t, sampler::hmc(), #{ seconds: 0.02, observe: [observable::cost()] });".into(), &["benchmark: seconds_per_record"]),
        ("grid::posterior", "grid::posterior(target(potential::banana()), #{ x: [-2, 2], y: [-1, 1], cells: 5 });".into(), &["grid::posterior"]),
        ("target.energies", "t.energies(w); t.outputs(w, \"test\"); t.losses(w, \"test\");".into(), &["target.energies", "target.outputs", "target.losses"]),
    ];
    for (verb, calls, says) in cases {
        let heard = Heard::default();
        let source = format!(
            "let t = target(model::mlp(#{{ layers: [4, 3, 2] }}), dataset::spin_vectors(#{{ dim: 4, classes: 2, train: 30, test: 10 }}), #{{ prior: prior::gaussian(0.5), energy: \"tempered\" }});
             let w = train(t, optimizer::adam(#{{ lr: 0.01, epochs: 1 }})).params(); {calls}"
        );
        let scratch = Scratch::new();
        let mut session = Session::new(scratch.join("out"));
        session.device = ("emulated".into(), Some(emulated(&Sources::default())));
        session.console = Arc::new(heard.clone());
        let outcome = Interpreter::new(session, BTreeMap::new()).run("test.rhai", &source);
        if let Err(e) = outcome {
            panic!("{verb}: {e}");
        }
        let heard = heard.0.lock().unwrap();
        let notes: Vec<_> = heard
            .iter()
            .filter_map(|n| n.strip_prefix("NOTE: computed on this machine, not on emulated: "))
            .collect();
        assert_eq!(notes, says, "{verb}");
    }
}

/// Products of lower precision: other numbers, but only by as much; the header says so, and `verify` what it costs, which the virial does not see.
#[test]
fn lower_precision_is_said_and_measured() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let on = |precision: Precision, source: &str| {
        let scratch = Scratch::new();
        let mut session = Session::new(scratch.join("out"));
        let open = move || {
            let device = Emulated::rounding(precision).expect("a C++ compiler");
            Ok(vec![Box::new(device) as Box<dyn Device>])
        };
        let name = precision
            .rounding()
            .map_or("emulated".into(), |(p, _)| format!("emulated:{p}"));
        session.device = (name, Some(Arc::new(open)));
        let mut interpreter = Interpreter::new(session, BTreeMap::new());
        let value = interpreter
            .run("test.rhai", source)
            .unwrap_or_else(|e| panic!("{precision:?}: {e}"));
        interpreter.json(&value)
    };
    let target = "let t = target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 100, test: 0 }), #{ loss: \"squared_error\", prior: prior::gaussian(0.1) });";
    let few = format!(
        "{target} let r = sample(t, sampler::sgld(#{{ step: 1e-3, batch: 20 }}), #{{ temperature: 1e-4, steps: 4, every: 1, observe: [observable::cost()] }});
         #{{ text: `${{r.summary()}}`, cost: r.trace(\"cost\", 0) }}"
    );
    let [full, tf32, bf16] =
        [Precision::Full, Precision::Tf32, Precision::Bf16].map(|p| on(p, &few));
    let cost = |of: &Value| of["cost"].as_array().unwrap()[3].as_f64().unwrap();
    for (name, bits, run) in [("tf32", 10, &tf32), ("bf16", 7, &bf16)] {
        let off = (cost(run) / cost(&full) - 1.0).abs();
        let epsilon = 0.5f64.powi(bits);
        assert!(
            off > 1e-3 * epsilon && off < 2.0 * epsilon,
            "{name}: {off:e}"
        );
        let text = run["text"].as_str().unwrap();
        assert!(
            text.contains(&format!("products in {name} on emulated:{name}")),
            "{text}"
        );
    }
    assert!(!full["text"].as_str().unwrap().contains("products in"));
    // Weights of a posterior that is narrower than the grid of bfloat16 move on a staircase.
    let long = "let t = target(model::deep_linear(#{ widths: [20, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 100, test: 0 }), #{ loss: \"squared_error\", prior: prior::gaussian(0.1) });
        let r = sample(t, sampler::hmc(#{ leapfrog: 4 }), #{ temperature: 1e-6, steps: 600, burn_in: 300, chains: 2, every: 2, observe: [observable::energy()] });
        let v = verify(r, #{ draws: 24, moves: 10, leapfrog: 6 });
        #{ text: `${v}`, u: v.to_map().lines[0], summary: r.summary() }";
    let [full, bf16] = [Precision::Full, Precision::Bf16].map(|p| on(p, long));
    let bias = |of: &Value| ["bias", "bias_mcse"].map(|k| of["u"][k].as_f64().unwrap());
    let ([b, e], [b16, e16]) = (bias(&full), bias(&bf16));
    // Null: no bias; four standard errors.
    assert!(b.abs() < 4.0 * e, "{b} {e}");
    assert!(b16 > 6.0 * e16, "{b16} {e16}");
    let says = bf16["text"].as_str().unwrap();
    assert!(
        says.contains("a small drift was found: U at T = 1.000e-6 is 0.1"),
        "{says}"
    );
    // Gradients that are not those of the energy that judges the moves.
    let heat = |of: &Value| of["summary"]["thermometer_verdict"].clone();
    assert_eq!([heat(&full), heat(&bf16)], ["agrees", "cold"]);
    // Langevin dynamics asks only for forces, whose rounding averages out: neither the thermometer nor `verify` finds anything. Null: no bias; four
    // standard errors, of which one is at most a two-hundredth of the bias of HMC.
    let judged = "sampler::hmc(#{ leapfrog: 4 }), #{ temperature: 1e-6, steps: 600, burn_in: 300, chains: 2, every: 2,";
    let unjudged = "sampler::langevin(#{ dt: 0.1, friction: 0.5 }), #{ temperature: 1e-6, steps: 20000, burn_in: 4000, chains: 2, every: 40,";
    let langevin = on(Precision::Bf16, &long.replace(judged, unjudged));
    let [b, e] = bias(&langevin);
    assert!(b.abs() < 4.0 * e && e < 5e-3 * b16, "{b} {e}");
    assert_eq!(heat(&langevin), "agrees");
}

/// Two devices, each with some of the chains, are one: the same numbers, but chains that act on each other stay together.
#[test]
fn chains_are_dealt_over_devices() {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let open = || -> Open {
        Arc::new(|| {
            let one = || Emulated::new().map(|d| Box::new(d) as Box<dyn Device>);
            Ok(one().into_iter().chain(one()).collect())
        })
    };
    for sampler in [
        "sampler::sgld(#{ step: 0.001, batch: 20 })",
        "sampler::hmc(#{ leapfrog: 3, dt: 0.01, jitter: 0.2 })",
    ] {
        compare(&script(TARGETS[0].1, sampler, 12), open, sampler);
        compare(&ladder(sampler), open, &format!("{sampler} on a ladder"));
        let law = ladder(sampler).replace("prior::gaussian(0.5)", "prior::laplace(0.1, 0.5)");
        compare(&law, open, &format!("{sampler} on a ladder with a law"));
    }
    let train = "let t = target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 150, test: 70 }), #{ prior: prior::l2(10.0) });
        let r = train(t, optimizer::adam(#{ lr: 0.01, epochs: 2, batch: 32 }), #{ chains: 3 });
        #{ loss: r.history(\"loss\", 0), w: r.params().vector(2).to_array() }";
    compare(train, open, "training");
    let coupled = "sampler::ohzeki_ichiki(#{ step: 0.001, between: \"replicas\", form: \"adam\", batch: 20 })";
    let refused = tried(&script(TARGETS[0].1, coupled, 12), Some(open())).unwrap_err();
    assert!(
        refused.message.contains("must be on one device"),
        "{refused}"
    );
}

/// Training, restricted coefficients and posterior predictions are those of the CPU.
#[test]
fn training_and_restricted_coefficients_run_there_too() {
    on_every_device(0, training_and_restricted_coefficients);
}

fn training_and_restricted_coefficients(open: &dyn Fn() -> Open) {
    for optimizer in [
        "optimizer::adam(#{ lr: 0.01, epochs: 3, batch: 32 })",
        "optimizer::adamw(#{ lr: 0.01, epochs: 2, batch: 50, weight_decay: 0.1 })",
        "optimizer::sgd(#{ lr: 0.05, momentum: 0.9, epochs: 3, batch: 64 })",
    ] {
        let source = format!(
            "let t = target(model::mlp(#{{ layers: [20, 7, 3] }}), dataset::spin_vectors(#{{ dim: 20, classes: 3, train: 150, test: 70 }}), #{{ prior: prior::l2(10.0) }});
             let r = train(t, {optimizer}, #{{ chains: 3 }});
             #{{ loss: r.history(\"loss\", 0), error: r.history(\"error_test\", 2), w: r.params().vector(1).to_array() }}"
        );
        compare(&source, open, optimizer);
    }
    let source = "let t = target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 300, test: 0 }));
        let w = train(t, optimizer::adam(#{ lr: 0.01, epochs: 2, batch: 50 }));
        let l = llc(t, sampler::sgld(#{ step: 1e-5, batch: 20 }), #{ start: w.params(), steps: 40, every: 1, chains: 2, restrict: [\"w2\", \"b1\"] });
        #{ estimate: l.estimate, more: [l.run.trace(\"virial\", 0), l.run.trace(\"minibatch_loss\", 1)] }";
    compare(source, open, "a restricted coefficient");
    let source = "let t = target(model::mlp(#{ layers: [20, 7, 3] }), dataset::spin_vectors(#{ dim: 20, classes: 3, train: 100, test: 30 }), #{ prior: prior::gaussian(0.1) });
        let r = sample(t, sampler::hmc(#{ leapfrog: 3, dt: 0.01 }), #{ steps: 6, every: 1, chains: 2, keep: 2 });
        predict(r, \"test\")";
    compare(source, open, "a prediction");
}

/// Sweeps of layers draw on this machine from what the device holds.
#[test]
fn layers_are_drawn_for_the_device() {
    let source = "let p = llc_problem(#{ widths: [4, 3, 5], rank: 2, n: 1000, noise: 0.5, data: \"moments\" });
        let l = llc(p.target, sampler::gibbs(), #{ start: p.start, nbeta: [50.0, 100.0], steps: 20, chains: 2 });
        let traces = [];
        for level in l.levels { for c in 0..2 { traces.push(level.run.trace(\"virial\", c)); } }
        #{ estimate: l.estimate, traces: traces }";
    on_every_device(0, |open| compare(source, open, "gibbs"));
}

/// Every sampler on a target and on a device.
fn every_sampler_on(target_name: &str, open: impl Fn() -> Open) {
    let (target_name, target) = TARGETS.iter().find(|t| t.0 == target_name).unwrap();
    for (sampler_name, sampler) in SAMPLERS {
        if target.contains("uniform_box") && sampler.contains("ohzeki_ichiki") {
            // A flow is refused within walls.
            continue;
        }
        if *target_name == "laws" && *sampler_name == "ohzeki-ichiki-replicas" {
            // Its flow throws the scales of a hierarchy far away within a few steps.
            continue;
        }
        if *target_name == "energy" && *sampler_name == "pseudo-langevin" {
            // It is refused where a minibatch is everything.
            continue;
        }
        // Without data there is one example.
        let sampler = match target.contains("dataset::") {
            true => sampler.to_string(),
            false => sampler.replace("batch: 20", "batch: 1"),
        };
        let what = format!("{sampler_name} on {target_name}");
        compare(&script(target, &sampler, 12), &open, &what);
    }
}

/// Every sampler on a ladder and on a device.
fn every_sampler_on_a_ladder(open: impl Fn() -> Open) {
    for (sampler_name, sampler) in SAMPLERS {
        if sampler.contains("replicas") || sampler.contains("control_variates") {
            continue;
        }
        let what = format!("{sampler_name} on a ladder");
        compare(&ladder(sampler), &open, &what);
    }
}

/// What `test` does on the emulated device, and on the GPU if there is one; all that was compiled for the former, more than `least` sources, is taken by NVIDIA's compiler.
fn on_every_device(least: usize, test: impl Fn(&dyn Fn() -> Open)) {
    if Emulated::new().is_none() {
        return skip("no C++ compiler found");
    }
    let sources = Sources::default();
    test(&|| emulated(&sources));
    let mut compiled = sources.lock().unwrap().clone();
    compiled.sort_unstable();
    compiled.dedup();
    assert!(compiled.len() > least, "{} sources", compiled.len());
    compile_all(&compiled);
    #[cfg(feature = "cuda")]
    {
        use ergodic::kernels::device::cuda::Cuda;
        // Not `skip`: a GPU cannot be installed.
        if let Err(e) = Cuda::open(0, Precision::default()) {
            return println!("SKIP: no GPU: {e:#}");
        }
        test(&|| {
            Arc::new(|| {
                let device = Cuda::open(0, Precision::default())?;
                Ok(vec![Box::new(device) as Box<dyn Device>])
            })
        });
    }
}

/// What every sampler does on an accelerator is what it does here: a test per target.
macro_rules! on_every_target {
    ($($test:ident: $target:literal;)*) => {
        const TESTED: &[&str] = &[$($target),*];
        $(
            #[test]
            #[ignore = "long: tests/run"]
            fn $test() {
                on_every_device(10, |open| every_sampler_on($target, open));
            }
        )*
    };
}
on_every_target! {
    samplers_on_relu: "relu";
    samplers_on_tanh: "tanh";
    samplers_on_squares: "squares";
    samplers_on_linear: "linear";
    samplers_on_formula: "formula";
    samplers_on_gates: "gates";
    samplers_on_convolutions: "convolutions";
    samplers_on_attention: "attention";
    samplers_on_shared: "shared";
    samplers_on_transformer: "transformer";
    samplers_on_focal: "focal";
    samplers_on_layers: "layers";
    samplers_on_onnx: "onnx";
    samplers_on_laplace: "laplace";
    samplers_on_laws: "laws";
    samplers_on_prior_closure: "prior-closure";
    samplers_on_potential_closure: "potential-closure";
    samplers_on_energy: "energy";
}

#[test]
fn every_target_is_tested() {
    let names: Vec<_> = TARGETS.iter().map(|t| t.0).collect();
    assert_eq!(names, TESTED);
}

#[test]
#[ignore = "long: tests/run"]
fn every_sampler_does_on_a_ladder_of_an_accelerator_what_it_does_here() {
    on_every_device(10, |open| every_sampler_on_a_ladder(open));
}
