//! A problem of one's own: priors, losses and likelihoods that scripts write, against differences, closed forms and reference draws.

use super::support::{Scratch, evaluate, root};
use ergodic::rng::{Purpose, Stream};
use ergodic::script::Interpreter;
use ergodic::simulation::session::Session;
use ergodic::target::{Target, Workspace};
use std::collections::BTreeMap;
use std::sync::Arc;

fn target(source: &str) -> Arc<Target> {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let value = interpreter.run("test.rhai", source);
    let value = value.unwrap_or_else(|e| panic!("{source}\n{e}"));
    value.cast::<Arc<Target>>()
}

fn message(source: &str) -> String {
    evaluate(source).unwrap_err().to_string()
}

/// U and ∇U at a point that is the same for all targets of that size.
fn at_a_point(t: &Target) -> (Vec<f32>, f64, Vec<f32>) {
    let stream = Stream::new(5, Purpose::Initialise, 1, 0);
    let w: Vec<f32> = (0..t.dim())
        .map(|i| 0.6 * stream.normal(i as u32) as f32)
        .collect();
    let mut gradient = vec![f32::NAN; w.len()];
    let mut work = Workspace::new(2);
    let energies = t
        .energies_and_gradient(&w, &mut gradient, &mut work)
        .unwrap();
    assert_eq!(energies, t.energies(&w, &mut work).unwrap());
    (w, energies.total, gradient)
}

/// ∇U by central differences; steps are powers of two, so that points are exact.
fn check_gradient(source: &str) {
    let t = target(source);
    let (w, _, gradient) = at_a_point(&t);
    let mut work = Workspace::new(1);
    let mut total = |k: usize, by: f32| {
        let mut w = w.clone();
        w[k] += by;
        t.energies(&w, &mut work).unwrap().total
    };
    let h = 2f32.powi(-6);
    let length = gradient
        .iter()
        .map(|g| f64::from(*g).powi(2))
        .sum::<f64>()
        .sqrt();
    // A horseshoe has a peak at 0, a Laplace law a kink.
    for k in (0..w.len().min(60)).filter(|k| w[*k].abs() > 0.2) {
        // Richardson: the error is of order h⁴.
        let slope = |total: &mut dyn FnMut(usize, f32) -> f64, h: f32| {
            (total(k, h) - total(k, -h)) / (2.0 * f64::from(h))
        };
        let (fine, coarse) = (slope(&mut total, h / 2.0), slope(&mut total, h));
        let found = (4.0 * fine - coarse) / 3.0;
        let exact = f64::from(gradient[k]);
        assert!(
            (found - exact).abs() < 1e-3 * (1.0 + exact.abs()) + 1e-4 * length,
            "{source}\nparameter {k}: {exact} by the gradient, {found} by differences"
        );
    }
}

const NET: &str = "let data = dataset::digits(#{ per_class: 4 }); let net = model::mlp(#{ layers: [64, 3, 10], activation: \"tanh\" });";
const LINE: &str = "let xs = linspace(-1.0, 1.0, 30); let data = dataset::arrays(xs, xs.map(|x| 1.0 + x));\
    let net = |outputs| model::mlp(#{ layers: [1, 4, outputs], activation: \"tanh\" });";

#[test]
fn gradients_of_priors_are_those_of_differences() {
    for prior in [
        "prior::laplace(0.1, 0.5)",
        "prior::student_t(3, 0, 0.5)",
        "prior::cauchy(0, 2)",
        "prior::horseshoe(0.3)",
        "prior::mixture([1, 3], [0, 0.5], [0.1, 1])",
        "prior::scaled(\"glorot\")",
        "#{ w1: prior::gaussian(0.3), b1: prior::none() }",
        "#{ w1: prior::normal(\"m\", \"s\"), m: prior::normal(0, 1), s: prior::inverse_gamma(3, 1), \"*\": prior::normal(0, 2) }",
        "#{ w2: prior::horseshoe(\"tau\"), tau: prior::half_cauchy(\"scale\"), scale: prior::gamma(2, 3) }",
        "#{ w2: prior::student_t(4, 0, \"tau\"), tau: prior::lognormal(0, 1), b2: prior::laplace(\"where\", 1), where: prior::uniform(-1, 1) }",
        "|p| 0.5 * p.w1.square().sum() + p.b1.abs().sum() * p.b2.norm2()",
        "prior::closure(#{ tau: support::positive(), mix: support::interval(0, 2) }, |p| 0.5 * p.w1.norm2() / p.tau**2 + 192 * p.tau.ln() + p.mix * p.b2.norm2())",
    ] {
        check_gradient(&format!("{NET} target(net, data, #{{ prior: {prior} }})"));
    }
}

#[test]
fn gradients_of_losses_are_those_of_differences() {
    for (outputs, loss) in [
        (1, "loss::gaussian(0.3)"),
        (1, "loss::gaussian(\"sigma\")"),
        (1, "loss::laplace(\"b\")"),
        (1, "loss::student_t(4, \"s\")"),
        (2, "loss::heteroscedastic()"),
        (1, "loss::poisson()"),
        (1, "loss::multi_label()"),
        (3, "|out, y| (y[0] - out[0] * out[1])**2 + out[2]**2"),
        (
            1,
            "loss::closure(#{ nu: support::positive() }, |out, y, p| nll::normal(y[0], out[0], p.nu))",
        ),
    ] {
        check_gradient(&format!(
            "{LINE} target(net.call({outputs}), data, #{{ loss: {loss}, energy: \"sum\" }})"
        ));
    }
    for loss in [
        "loss::cross_entropy(#{ smoothing: 0.1 })",
        "loss::cross_entropy(#{ class_weights: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] })",
        "loss::focal(2)",
        "|out, y| nll::categorical(y[0], out)",
    ] {
        check_gradient(&format!("{NET} target(net, data, #{{ loss: {loss} }})"));
    }
    check_gradient(&format!(
        "{NET} target(model::mlp(#{{ layers: [64, 3, 1] }}), data, #{{ loss: loss::ordinal(), prior: #{{ cuts: prior::normal(0, 2) }} }})"
    ));
    let bounds = "potential::closure(#{ a: support::ordered(3), b: support::interval(0, 1, [2]), c: [2, 2] }, |p| p.a.norm2() + p.b.ln().sum() + p.c.matmul(p.c).sum())";
    check_gradient(&format!("target({bounds})"));
}

/// Energies and gradients of two ways to write the same.
fn check_same(one: &str, other: &str, constant: f64) {
    let (a, b) = (target(one), target(other));
    let ((_, u, g), (_, v, h)) = (at_a_point(&a), at_a_point(&b));
    assert!(
        (u - v - constant).abs() < 2e-6 * (1.0 + u.abs()),
        "{one}\n{other}\n{u} {v}"
    );
    let scale = g.iter().fold(0f32, |m, x| m.max(x.abs()));
    for (x, y) in g.iter().zip(&h) {
        assert!((x - y).abs() < 1e-5 * scale, "{one}\n{other}\n{x} {y}");
    }
}

#[test]
fn the_same_law_written_in_two_ways_is_the_same() {
    let digits = |o: &str| format!("{NET} target(net, data, #{{ {o} }})");
    let ln_root_tau = 0.5 * std::f64::consts::TAU.ln();
    let n = (64 * 3 + 3 + 3 * 10 + 10) as f64;
    // A precision of 4 is a standard deviation of ½; normal laws are normalised.
    check_same(
        &digits("prior: prior::normal(0, 0.5)"),
        &digits("prior: prior::gaussian(4)"),
        n * (0.5f64.ln() + ln_root_tau),
    );
    check_same(
        &digits("prior: #{ \"*\": prior::gaussian(4) }"),
        &digits("prior: prior::normal(0, 0.5)"),
        0.0,
    );
    check_same(
        &digits("prior: |p| 2 * (p.w1.norm2() + p.b1.norm2() + p.w2.norm2() + p.b2.norm2())"),
        &digits("prior: prior::gaussian(4)"),
        0.0,
    );
    check_same(
        &digits(
            "prior: prior::closure(#{ tau: support::positive() }, |p| nll::normal(p.w1, 0, p.tau) + 0.5 * p.tau**2 + 0.5 * (2 / 3.141592653589793).ln() * -1)",
        ),
        &digits("prior: #{ w1: prior::normal(0, \"tau\"), tau: prior::half_normal(1) }"),
        0.0,
    );
    // Losses that are formulas beside those that are built in.
    check_same(
        &digits("loss: |out, y| nll::categorical(y[0], out)"),
        &digits("loss: \"cross_entropy\""),
        0.0,
    );
    check_same(
        &digits("loss: loss::cross_entropy(#{ class_weights: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] })"),
        &digits("loss: \"cross_entropy\""),
        0.0,
    );
    check_same(
        &digits("loss: loss::focal(0)"),
        &digits("loss: loss::cross_entropy()"),
        0.0,
    );
    let line = |o: &str| format!("{LINE} target(net.call(1), data, #{{ {o} }})");
    check_same(
        &line("loss: |out, y| (y[0] - out[0])**2"),
        &line("loss: \"squared_error\""),
        0.0,
    );
    check_same(
        &line("loss: loss::gaussian(0.5)"),
        &line("loss: |out, y| 2 * (y[0] - out[0])**2"),
        0.5f64.ln() + ln_root_tau,
    );
    // A scale by its logarithm, with the Jacobian that a support adds.
    check_same(
        "target(potential::closure(#{ s: support::positive() }, |p| p.s**2))",
        "target(potential::closure(1, |w| exp(2 * w[0]) - w[0]))",
        0.0,
    );
}

#[test]
fn classes_are_told_from_each_other_by_formulas_too() {
    let found = evaluate(&format!(
        "{NET} let t = target(net, data, #{{ loss: loss::cross_entropy(#{{ smoothing: 0.1 }}) }});
         let o = target(model::mlp(#{{ layers: [64, 3, 1] }}), data, #{{ loss: loss::ordinal() }});
         let u = train(target(net, data), optimizer::adam(#{{ epochs: 300 }})).params();
         let r = sample(o, sampler::hmc(), #{{ steps: 20, every: 1, predict: [\"test\"] }});
         [t.energies(u).error == target(net, data).energies(u).error, t.energies(u).error < 0.8, r.prediction(\"test\").brier < 1.1]"
    ));
    assert_eq!(found.unwrap(), serde_json::json!([true, true, true]));
}

/// Null: a hierarchical prior, sampled with NUTS and no data, has the law that its own draws have: means of functions that have all moments,
/// within four standard errors of both, of at most 0.03.
#[test]
#[ignore = "long: tests/run"]
fn chains_on_a_hierarchical_prior_and_its_own_draws_have_one_law() {
    let t = target(
        "target(potential::closure(#{ x: [2], s: support::positive(), f: support::interval(-1, 2), o: support::ordered(3), g: support::positive() }, |p| 0 * p.s), #{
            prior: #{ x: prior::normal(\"m\", \"s\"), m: prior::laplace(0, 1), s: prior::lognormal(0, 0.5), f: prior::uniform(-1, 2), o: prior::student_t(5, 0, 1), g: prior::gamma(3, 2) } })",
    );
    let functions = |x: &[f64]| x.iter().map(|x| x.tanh()).collect::<Vec<_>>();
    let layout = t.layout();
    let values = |w: &[f32]| {
        let names = ["x", "m", "s", "f", "o", "g"];
        let of = |n: &&str| match layout.values_of(n, w) {
            Some((x, _)) => x,
            None => w[layout.tensor(n).unwrap().range.clone()]
                .iter()
                .map(|x| f64::from(*x))
                .collect(),
        };
        functions(&names.iter().flat_map(of).collect::<Vec<_>>())
    };
    let draws = 40_000;
    let (mut sums, mut squares) = (vec![0.0; 9], vec![0.0; 9]);
    let mut w = vec![0.0; t.dim()];
    for k in 0..draws {
        t.prior()
            .draw(&Stream::new(11, Purpose::Prior, 0, k), &mut w);
        for (i, x) in values(&w).into_iter().enumerate() {
            sums[i] += x / draws as f64;
            squares[i] += x * x / draws as f64;
        }
    }
    let chains = evaluate(
        "let t = target(potential::closure(#{ x: [2], s: support::positive(), f: support::interval(-1, 2), o: support::ordered(3), g: support::positive() }, |p| 0 * p.s), #{
            prior: #{ x: prior::normal(\"m\", \"s\"), m: prior::laplace(0, 1), s: prior::lognormal(0, 0.5), f: prior::uniform(-1, 2), o: prior::student_t(5, 0, 1), g: prior::gamma(3, 2) } });
         let names = [\"x\", \"m\", \"s\", \"f\", \"o\", \"g\"];
         let r = sample(t, sampler::nuts(), #{ chains: 4, steps: 12_000, burn_in: 2000, every: 1, seed: 5, observe: names.map(|n| observable::parameter(n)) });
         let out = [];
         for n in names {
            let all = r.draws(n, 0);
            let single = type_of(all[0][0]) != \"array\";
            for k in 0..if single { 1 } else { all[0][0].len() } {
                let s = statistics(if single { all.map(|c| c.map(|x| tanh(x))) } else { all.map(|c| c.map(|x| tanh(x[k]))) });
                out.push([s.mean, s.mcse]);
            }
         }
         out",
    );
    let chains = chains.unwrap();
    for (i, found) in chains.as_array().unwrap().iter().enumerate() {
        let [mean, mcse] = [0, 1].map(|k| found[k].as_f64().unwrap());
        let own = ((squares[i] - sums[i] * sums[i]) / draws as f64).sqrt();
        let error = own.hypot(mcse);
        assert!(
            error < 0.03 && (mean - sums[i]).abs() < 4.0 * error,
            "{i}: {mean} {} ± {error}",
            sums[i]
        );
    }
}

#[test]
#[ignore = "long: tests/run"]
fn ladders_and_populations_start_at_priors_by_name() {
    let found = evaluate(
        "let t = target(potential::closure(#{ x: [3], s: support::positive() }, |p| 4 * (p.x - 1).norm2()), #{ prior: #{ x: prior::normal(0, \"s\"), s: prior::half_normal(1) } });
         let e = exchange(t, sampler::hmc(), #{ temperatures: [1.0, 3.0], prior_rung: true, steps: 3000, chains: 2, seed: 3 });
         let m = smc(t, sampler::hmc(), #{ particles: 500, seed: 4 });
         [evidence(e).ln_z, evidence(e).error, m.ln_z, m.error]",
    );
    let x = found.unwrap();
    let [a, ea, b, eb] = [0, 1, 2, 3].map(|i| x[i].as_f64().unwrap());
    // ∫ N(x; 0, s²)³ half-N(s) exp(-4|x - 1|²): of each s in closed form, over s by the midpoint rule.
    let one = |s: f64| {
        let v = s * s + 0.125;
        ((std::f64::consts::PI / 4.0).sqrt() * (-0.5 / v).exp()
            / (std::f64::consts::TAU * v).sqrt())
        .powi(3)
            * (2.0 / std::f64::consts::PI).sqrt()
            * (-0.5 * s * s).exp()
    };
    let exact = (0..100_000)
        .map(|i| one((f64::from(i) + 0.5) * 1e-4))
        .sum::<f64>()
        * 1e-4;
    for (z, error) in [(a, ea), (b, eb)] {
        assert!(
            error < 0.2 && (z - exact.ln()).abs() < 4.0 * error.max(0.01),
            "{z} ± {error}, exact {}",
            exact.ln()
        );
    }
}

/// Null: with L = ½|w|² and w ~ N(0, ¼) in the prior, exp(-(L + R)/T), exp(-L/T - R) and exp(-L - R/T) have ⟨w²⟩ = T/5, 1/(1/T + 4) and
/// 1/(1 + 4/T); four standard errors, of at most 3 %.
#[test]
#[ignore = "long: tests/run"]
fn temperatures_divide_what_they_are_told_to() {
    let laws = [
        ("energy", 0.4),
        ("likelihood", 1.0 / 4.5),
        ("prior", 1.0 / 3.0),
    ];
    for prior in ["prior::gaussian(4.0)", "#{ w: prior::normal(0, 0.5) }"] {
        let found = evaluate(&format!(
            "let t = target(potential::closure(4, |w| 0.5 * w.norm2()), #{{ prior: {prior} }});
             let o = #{{ steps: 12_000, chains: 4, burn_in: 2000, every: 2, seed: 7 }};
             let out = [];
             for law in [\"energy\", \"likelihood\", \"prior\"] {{
                let own = o + #{{ temper: law }};
                let all = [
                    sample(t, sampler::nuts(), own + #{{ temperature: 2.0 }}),
                    sweep(t, sampler::hmc(), own + #{{ temperatures: [1.0, 2.0] }}),
                    sample(t, sampler::sgld(#{{ step: 0.002, batch: 1 }}), own + #{{ temperature: 2.0, steps: 400_000, every: 100 }}),
                    exchange(t, sampler::hmc(), own + #{{ temperatures: [1.0, 2.0] }}),
                ];
                for r in all {{
                    let s = statistics(r.draws(\"norm2\", r.temperatures.len() - 1));
                    let heat = r.summary().thermometer;
                    out.push([s.mean / 4.0, s.mcse / 4.0, if r.temperatures.len() > 1 {{ heat[1] }} else {{ heat }}]);
                }}
             }}
             out"
        ));
        let found = found.unwrap_or_else(|e| panic!("{e:?}"));
        for (k, x) in found.as_array().unwrap().iter().enumerate() {
            let (law, exact) = laws[k / 4];
            let [mean, error, heat] = [0, 1, 2].map(|i| x[i].as_f64().unwrap());
            assert!(
                error < 0.03 * exact && (mean - exact).abs() < 4.0 * error,
                "{prior} {law} {k}: {mean} ± {error}, exact {exact}"
            );
            assert!((heat - 2.0).abs() < 0.2, "{prior} {law} {k}: {heat}");
        }
    }
}

#[test]
fn what_does_not_fit_is_said() {
    for (options, said) in [
        (
            "prior: #{ w3: prior::normal(0, 1) }",
            "there is no parameter 'w3', and no other prior names it",
        ),
        (
            "prior: #{ w1: prior::normal(0, \"tau\") }",
            "a prior names 'tau', which is no parameter; give it a prior of its own: tau: prior::half_cauchy(1)",
        ),
        (
            "prior: #{ w1: prior::normal(0, \"tau\"), tau: prior::normal(0, 1) }",
            "'tau', which must be positive",
        ),
        (
            "prior: #{ w1: prior::half_normal(1) }",
            "the prior of 'w1' is half_normal(1), whose numbers are positive, but 'w1' is a real number",
        ),
        (
            "prior: #{ w1: prior::normal(\"a\", 1), a: prior::normal(\"b\", 1), b: prior::normal(\"a\", 1) }",
            "priors name each other in a circle",
        ),
        (
            "prior: #{ w1: 3 }",
            "the prior of 'w1' is 3, but must be a prior",
        ),
        (
            "prior: 3",
            "option 'prior' is 3, but must be a prior, or a map of priors by name",
        ),
        (
            "prior: #{ w1: prior::normal(0, -1) }",
            "option 'sd' is -1, but must be a number > 0",
        ),
        ("prior: |p| p.w9.norm2()", "there is no parameter 'w9'"),
        ("prior: |p, q| p.w1.norm2()", "takes 2 arguments"),
        ("loss: \"crossentropy\"", "did you mean 'cross_entropy'?"),
        (
            "loss: loss::gaussian(0.1)",
            "the loss gaussian(0.1) needs real targets, but 'digits' has classes",
        ),
        ("loss: loss::ordinal()", "the loss ordinal takes 1 outputs"),
        ("loss: |out, y| out", "must give a number"),
        ("loss: |out, y| y[0]**2", "does not depend on the outputs"),
        ("loss: |out| out[0]", "takes 1 argument"),
        (
            "loss: loss::cross_entropy(#{ class_weights: [1, 2] })",
            "2 class_weights for 10 classes",
        ),
    ] {
        let found = message(&format!("{NET} target(net, data, #{{ {options} }})"));
        assert!(found.contains(said), "{options}\n{found}");
    }
    let found = message(
        "target(potential::closure(#{ s: support::positive() }, |p| p.s), #{ prior: prior::gaussian(1) })",
    );
    assert!(
        found.contains("some parameters have a support; give a map of priors by name"),
        "{found}"
    );
    let found = message(&format!(
        "{NET} smc(target(net, data, #{{ prior: |p| p.w1.norm2() }}), sampler::hmc())"
    ));
    assert!(
        found.contains("of a closure only the density is known"),
        "{found}"
    );
}

/// Null: means and standard deviations of all parameters of the twelve posteriors are those of posteriordb's reference draws, within four standard
/// errors of both.
#[test]
#[ignore = "long: tests/run"]
fn posteriors_are_those_of_the_reference_draws() {
    let folder = root().join("scripts/posteriors");
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    scripts.retain(|f| !f.ends_with("beside.rhai"));
    scripts.sort();
    assert_eq!(scripts.len(), 12);
    for file in scripts {
        let source = std::fs::read_to_string(&file).unwrap();
        assert!(
            source.lines().count() <= 15,
            "{} is longer than fifteen lines",
            file.display()
        );
        let scratch = Scratch::new();
        let mut interpreter = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
        let value = interpreter.run(file.to_str().unwrap(), &source);
        let worst = value.unwrap_or_else(|e| panic!("{e}")).as_float().unwrap();
        assert!(worst < 4.0, "{}: {worst} standard errors", file.display());
    }
}

/// Null: means and standard deviations of a logistic regression with a hierarchical prior, written as a network with a closure for its loss, are
/// those that NUTS of BlackJAX gives, within four standard errors of both, of at most 2 % of a standard deviation.
#[test]
#[ignore = "long: tests/run"]
fn a_hierarchical_logistic_regression_is_that_of_blackjax() {
    let found = evaluate(
        r#"
        let data = dataset::csv("tests/data/patients.csv", #{ test: 0 });
        let net = model::custom(#{ params: #{ beta: [1, data.dim], b: [1] }, forward: |p, x| x.matmul(p.beta.t()) + p.b });
        let t = target(net, data, #{ energy: "sum", loss: |out, y| nll::bernoulli(y[0], out[0]),
            prior: #{ beta: prior::normal(0, "tau"), b: prior::normal(0, 5), tau: prior::half_cauchy(1) } });
        let run = sample(t, sampler::nuts(), #{ chains: 4, steps: 6000, burn_in: 1000, every: 1, seed: 2,
            observe: ["beta", "b", "tau"].map(|n| observable::parameter(n)) });
        let reference = read_json("tests/data/patients_reference.json").parameters;
        let out = [];
        for name in reference.keys() {
            let single = name == "tau";
            let all = run.draws(if single { name } else { name.sub_string(0, name.len() - 1) }, 0);
            let k = if single { 0 } else { parse_int(name.sub_string(name.len() - 1)) };
            let s = statistics(if single { all } else { all.map(|c| c.map(|x| x[k])) });
            out.push([name, s.mean, s.sd, s.mcse, s.sd_mcse] + reference[name]);
        }
        out
        "#,
    );
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.as_array().unwrap().len(), 8);
    for row in found.as_array().unwrap() {
        let x: Vec<f64> = row.as_array().unwrap()[1..]
            .iter()
            .map(|x| x.as_f64().unwrap())
            .collect();
        for k in 0..2 {
            let error = x[2 + k].hypot(x[6 + k]);
            assert!(
                error < 0.02 * x[1] && (x[k] - x[4 + k]).abs() < 4.0 * error,
                "{row}"
            );
        }
    }
}

/// What is predicted of inputs that are given again is what the run averaged itself, also where a data set is scaled.
#[test]
fn predictions_for_new_inputs_are_those_of_the_run() {
    let found = evaluate(
        r#"
        let xs = linspace(3.0, 5.0, 40).map(|x| [x, x * x]);
        let ys = xs.map(|x| sin(x[0]) + 0.01 * x[1]);
        let t = target(model::mlp(#{ layers: [2, 4, 1], activation: "tanh" }), dataset::arrays(xs, ys, #{ scale: "standard" }), #{ energy: "sum", loss: loss::gaussian(0.1), prior: prior::gaussian(1) });
        let r = sample(t, sampler::hmc(), #{ steps: 400, chains: 2, every: 10, keep: 10, predict: ["train"] });
        let p = predict(r, xs);
        let squares = 0.0;
        for i in 0..40 { squares += (p.mean[i][0] - ys[i]) ** 2; }
        let again = predict(open(r.folder), [[3.5, 12.25]], #{ target: t });
        let d = dataset::digits(#{ per_class: 5 });
        let c = sample(target(model::mlp(#{ layers: [64, 5, 10] }), d), sampler::sgld(#{ step: 1e-3, batch: 10 }), #{ temperature: 1e-4, steps: 200, chains: 2, every: 20, keep: 20 });
        let q = predict(c, d.inputs("test").slice(0, 0, 3));
        [squares / 40, r.prediction("train").squared_error, p.draws, r.prediction("train").draws, again.mean[0].len(), q.mean.len(), tensor(q.mean[2]).sum().item()]
        "#,
    );
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    let x: Vec<f64> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect();
    assert!(
        (x[0] - x[1]).abs() < 1e-6 * x[1] && x[2] == x[3] && x[2] == 40.0,
        "{found}"
    );
    assert!(
        x[4] == 1.0 && x[5] == 3.0 && (x[6] - 1.0).abs() < 1e-12,
        "{found}"
    );
    let net = "let t = target(model::mlp(#{ layers: [1, 1] }), dataset::arrays([1.0, 2.0], [1.0, 2.0]), #{ prior: prior::gaussian(1) });";
    for (source, said) in [
        (
            "predict(sample(t, sampler::hmc(), #{ steps: 20, every: 2, keep: 2 }), [[1.0, 2.0]])",
            "row 0 has 2 numbers, but inputs of 'arrays' have 1",
        ),
        (
            "predict(sample(t, sampler::hmc(), #{ steps: 20, every: 2, keep: 2 }), 3)",
            "must be an array or a tensor [rows, 1] of numbers",
        ),
        (
            "predict(sample(t, sampler::hmc(), #{ steps: 20, every: 2 }), [[1.0]])",
            "keep",
        ),
    ] {
        let found = message(&format!("{net} {source}"));
        assert!(found.contains(said), "{source}\n{found}");
    }
}
