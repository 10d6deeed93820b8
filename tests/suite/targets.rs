//! Targets that a script writes, posterior prediction, laws on a grid, comparisons: against numbers computed here.

use super::support::evaluate;
use serde_json::Value;

fn numbers(source: &str) -> Vec<f64> {
    let value = evaluate(source).unwrap_or_else(|e| panic!("{e}"));
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn message(source: &str) -> String {
    evaluate(source).unwrap_err().to_string()
}

#[test]
fn a_closure_has_the_energy_and_the_law_that_it_says() {
    // The same double well, written three ways, samples with the same bits.
    let run = |potential: &str| {
        numbers(&format!(
            "let t = target({potential});
             let r = sample(t, sampler::hmc(#{{ leapfrog: 4, dt: 0.1, adapt: false }}), #{{ temperature: 0.5, chains: 1, steps: 200,
                start: parameters([0.3, -0.4]), every: 20, seed: 1, observe: [observable::energy(), observable::parameter(1)] }});
             r.trace(\"energy\", 0) + r.trace(\"w1\", 0)"
        ))
    };
    let reference = run("potential::double_well(#{ dim: 2, barrier: 1.0, tilt: 0.3 })");
    for written in [
        "potential::closure(2, |w| ((w ** 2 - 1) ** 2 + 0.3 * w).sum())",
        "potential::expression(2, \"(w[0]**2 - 1)**2 + 0.3*w[0] + (w[1]**2 - 1)**2 + 0.3*w[1]\")",
    ] {
        for (a, b) in run(written).iter().zip(&reference) {
            assert!((a - b).abs() < 1e-4, "{written}: {a} {b}");
        }
    }
}

#[test]
fn a_closure_with_data_is_a_loss_per_example() {
    // Linear regression of the label on the pixels: the loss at a point, against the sum written out.
    let values = numbers(
        "let d = dataset::digits();
         let t = target(potential::closure(65, |w, x, y| (x.dot(w.slice(0, 64)) + w[64] - y[0]) ** 2, d), #{ energy: \"sum\", prior: prior::gaussian(2.0) });
         let zero = []; for i in 0..65 { zero.push(0.0); }
         let one = []; for i in 0..65 { one.push(if i == 64 { 4.5 } else { 0.0 }); }
         let a = t.energies(parameters(zero)); let b = t.energies(parameters(one));
         [a.loss, b.loss, b.prior, t.examples, t.parameters]",
    );
    // Labels 0 … 9 about equally often: ⟨y²⟩ near 28.5, ⟨(y-4.5)²⟩ near 8.25.
    assert!(
        (values[0] - 28.5).abs() < 1.0 && (values[1] - 8.25).abs() < 0.3,
        "{values:?}"
    );
    assert_eq!(values[2..], [0.5 * 2.0 * 4.5 * 4.5, 1438.0, 65.0]);
}

#[test]
fn what_a_closure_cannot_do_is_said() {
    for (source, said) in [
        ("potential::closure(2, |w| w.to_array()[0])", "no value yet"),
        (
            "potential::closure(2, |w| if w > 0.0 { 1.0 } else { 2.0 })",
            "needs single numbers",
        ),
        ("potential::closure(10_000_000_000_000, |w| w[2])", "2^20"),
        (
            "sample(target(potential::gaussian(#{ examples: 10, noise: 1.0 })), sampler::pseudo_langevin(#{ gradient: gradient::control_variates(#{ batch: 5 }) }), #{ steps: 100 })",
            "control variates remove",
        ),
        (
            "potential::closure(2, |w| w[2])",
            "index 2 is out of range for a vector of 2",
        ),
        (
            "potential::closure(2, |w| \"energy\")",
            "must give a number",
        ),
        ("potential::closure(0, |w| 1.0)", "from 1 to"),
        (
            "potential::closure(2, |w| w.dot(w.slice(0, 1)))",
            "potential::closure",
        ),
        (
            "potential::expression(1, \"w[0] +\")",
            "potential::expression",
        ),
        ("potential::expression(1, \"sin(v)\")", "v"),
        ("target::analytic(\"funel\")", "funnel"),
        (
            "target::analytic(\"funnel\", #{ dims: 3 })",
            "did you mean 'dim'",
        ),
        (
            "grid::posterior(target(potential::gaussian(#{ dim: 3 })), #{ x: [0, 1], y: [0, 1] })",
            "needs two",
        ),
        (
            "grid::posterior(target(potential::banana()), #{ x: [1, 0], y: [0, 1] })",
            "from < to",
        ),
        (
            "sample(target(potential::gaussian()), sampler::sgld(#{ step: 0.1, batch: 5, gradient: gradient::full() }), #{ steps: 100 })",
            "both given",
        ),
        (
            "sample(target(potential::gaussian(#{ examples: 10, noise: 1.0 })), sampler::sgld(#{ step: 0.1, batch: 50 }), #{ steps: 100 })",
            "only n = 10",
        ),
        (
            "sample(target(potential::gaussian(#{ dim: 3 })), sampler::sgld(#{ gradient: gradient::control_variates(#{ batch: 1, anchor: parameters([1.0]) }) }), #{ steps: 100 })",
            "anchor has 1",
        ),
        (
            "sample(target(potential::gaussian()), sampler::pseudo_langevin(#{ gradient: gradient::full() }), #{ steps: 100 })",
            "sampler::langevin",
        ),
        (
            "sample(target(potential::gaussian()), sampler::sgld(#{ batch: 1 }), #{ steps: 100, predict: \"test\" })",
            "needs a network",
        ),
        (
            "sample(target(model::mlp(#{ layers: [64, 10] }), dataset::digits()), sampler::sgld(), #{ steps: 100, predict: 3 })",
            "'predict' must be",
        ),
        (
            "sample(target(model::mlp(#{ layers: [64, 10] }), dataset::digits()), sampler::sgld(), #{ steps: 400 }).prediction(\"test\")",
            "kept no predictions",
        ),
        (
            "validate(target(potential::gaussian()), sampler::hmc(), #{})",
            "pseudo_langevin does",
        ),
        ("trigger::cyclical(10, 1.5, 2)", "below 1"),
    ] {
        let got = message(source);
        assert!(got.contains(said), "{source}:\n{got}");
    }
}

/// A run on the digits that keeps its predictions, and the script's own average of the same draws' losses.
const PREDICT: &str = "
    let t = target(model::mlp(#{ layers: [64, 8, 10] }), dataset::digits(), #{ prior: prior::l2(10.0) });
    let start = train(t, optimizer::adam(#{ epochs: 30, batch: 64 }));
    let r = sample(t, sampler::pseudo_langevin(#{ batch: 60 }), #{ temperature: 1e-3, start: start, chains: 2, steps: 2000, every: 50,
        observe: [observable::loss(), observable::loss(\"test\"), observable::error(\"test\")], predict: [\"train\", \"test\"] });";

#[test]
fn predictions_are_averages_over_the_draws() {
    let value = evaluate(&format!(
        "{PREDICT} let a = r.prediction(\"test\"); let b = r.prediction(\"train\"); let s = r.summary();
         #{{ test: a, train: b, loss: s.loss, loss_test: s.loss_test, error_test: s.error_test, running: r.trace(\"running_nll_test\", 0), n: t.examples }}"
    ))
    .unwrap();
    let number = |v: &Value, name: &str| v[name].as_f64().unwrap();
    let (test, train) = (&value["test"], &value["train"]);
    // The Gibbs loss is the mean of the draws' losses: another way through the program gives the same number.
    assert!((number(test, "gibbs_loss") - number(&value, "loss_test")).abs() < 1e-5);
    assert!((number(train, "gibbs_loss") - number(&value, "loss")).abs() < 1e-5);
    // Jensen: the average predicts no worse than the draws do on average; and its error is no larger here.
    assert!(number(test, "nll") < number(test, "gibbs_loss"));
    assert!(number(test, "error") <= number(&value, "error_test") + 1e-9);
    assert_eq!(number(test, "draws"), 40.0);
    // WAIC = T_n + βV/n, β = s/nT.
    let beta = 1.0 / (number(&value, "n") * 1e-3);
    assert!((number(train, "beta") / beta - 1.0).abs() < 1e-9);
    let waic =
        number(train, "nll") + beta * number(train, "functional_variance") / number(&value, "n");
    assert!((number(train, "waic") / waic - 1.0).abs() < 1e-9);
    let nu = 0.5 * beta * number(train, "functional_variance");
    assert!((number(train, "singular_fluctuation") / nu - 1.0).abs() < 1e-9);
    let running = value["running"].as_array().unwrap();
    assert!(running[0].is_null(), "nothing is averaged in burn-in");
    assert!(running[39].as_f64().unwrap() > 0.0);
}

#[test]
fn the_generalisation_error_is_that_of_the_averaged_output() {
    // A chain that hardly moves from the teacher itself: no error but the chain's own spread; and one that sits at zero: |g|²/2.
    let values = numbers(
        "let shape = model::mlp(#{ layers: [4, 2, 3], activation: \"tanh\", output: \"tanh\", bias: false, init: \"uniform\" });
         let data = dataset::teacher(shape, #{ noise: 0.1, train: 50, test: 400, seed: 7 });
         let t = target(shape, data, #{ loss: \"squared_error\", energy: \"sum\" });
         let zero = []; for i in 0..14 { zero.push(0.0); }
         let r = sample(t, sampler::sgld(#{ step: 1e-14, batch: 10 }), #{ temperature: 0.02, start: parameters(zero), chains: 1, steps: 40, burn_in: 0, every: 10,
            observe: [observable::loss(\"test\")], predict: \"test\" });
         let p = r.prediction(\"test\");
         [p.generalisation_error, p.squared_error, r.summary().loss_test, p.nll]",
    );
    let [g, square, loss, nll] = values[..] else {
        panic!("{values:?}")
    };
    // Noise of variance 0.01 in three components adds to |y - 0|², uncorrelated with g within four standard errors.
    assert!(
        (square - loss).abs() < 1e-6,
        "mean |y - f|² over examples: {square} {loss}"
    );
    let error = 4.0 * 2.0 * (2.0 * g / 400.0f64).sqrt() * 0.1;
    assert!(
        (square - 2.0 * g - 0.03).abs() < error + 0.005,
        "{square} {g}"
    );
    let gaussian = 0.5 * square / 0.01 + 1.5 * (std::f64::consts::TAU * 0.01).ln();
    assert!((nll - gaussian).abs() < 1e-3, "{nll} {gaussian}");
}

#[test]
fn predictions_survive_an_interruption() {
    use super::support::{Scratch, ergodic, text};
    let scratch = Scratch::new();
    let script = scratch.file("p.rhai", format!("{PREDICT} r.prediction(\"test\")"));
    let mut command = ergodic();
    command.args(["run", "--json", "--quiet", "--out"]);
    let output = command.arg(scratch.join("whole")).arg(&script).output();
    let whole = output.unwrap();
    assert!(whole.status.success(), "{}", text(&whole));
    let whole = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.contains("brier"), "{whole}");
    let out = scratch.join("killed");
    let (found, killed) = super::determinism::killed_and_resumed(&script, &out, "sample-1");
    assert!(killed >= 2, "killed {killed} times");
    assert_eq!(found, whole);
}

#[test]
fn samples_approach_their_law_on_a_grid() {
    // Null: independent draws, whose expected total variation is known; HMC every few steps is close to that.
    let values = numbers(
        "let t = target(potential::banana(#{ dim: 2, curvature: 0.1, scale: 2.0 }));
         let g = grid::posterior(t, #{ x: [-8, 8], y: [-4, 8], cells: 40, points: 4 });
         let r = sample(t, sampler::nuts(), #{ chains: 4, steps: 12_000, burn_in: 2000, every: 5, observe: [observable::parameter(0), observable::parameter(1)] });
         let x = []; let y = []; for c in r.draws(\"w0\", 0) { x += c; } for c in r.draws(\"w1\", 0) { y += c; }
         let wrong = grid::posterior(t, #{ x: [-8, 8], y: [-4, 8], cells: 40, points: 4, temperature: 2.0 });
         let h = g.histogram(x, y);
         [g.total_variation(h), g.expected_total_variation(x.len()), wrong.total_variation(h), g.total_variation(g)]",
    );
    assert!(values[0] < 1.5 * values[1], "{values:?}");
    assert!(
        values[2] > 1.5 * values[0],
        "another temperature shows: {values:?}"
    );
    assert_eq!(values[3], 0.0);
}

#[test]
fn comparisons_have_the_means_of_both() {
    let values = numbers(
        "let t = target(potential::gaussian(#{ dim: 4 }));
         let o = #{ temperatures: [0.5, 1.0], steps: 3000, every: 1, chains: 2 };
         let a = sweep(t, sampler::hmc(), o); let b = sweep(t, sampler::mala(), o);
         let c = compare(a, b).to_array();
         [c.len(), c[1].mean, b.summary().cost[1], c[1].reference, a.summary().cost[1], c[1].relative_error, c[1].deviation]",
    );
    assert_eq!(values[0], 4.0);
    assert_eq!((values[1], values[3]), (values[2], values[4]));
    assert!((values[5] - (values[1] - values[3]).abs() / values[3]).abs() < 1e-12);
    assert_eq!(values[6] > 0.0, values[1] > values[3]);
}

#[test]
fn validation_finds_normal_uncorrelated_noise_where_it_is() {
    let script = |batch: usize, noise: &str| {
        format!(
            "let t = target({noise});
             validate(t, sampler::pseudo_langevin(#{{ batch: {batch}, variance_batches: 5000, variance_tolerance: 0.01 }}), #{{ temperature: 0.5, stops: 2, steps: 50, draws: 200 }})"
        )
    };
    let gaussian = "potential::gaussian(#{ dim: 60, condition: 10, examples: 2000, noise: 4.0 })";
    let v = evaluate(&script(50, gaussian)).unwrap();
    let number = |v: &Value, path: &[&str]| path.iter().fold(v, |v, p| &v[*p]).as_f64().unwrap();
    // Sums of 50 normal numbers are normal: 95 % of 360 tests pass, four standard deviations of 1.1 % apart, V known to 2 %.
    let passed = number(&v, &["ks_fraction"]);
    assert!(
        passed > 0.95 - 4.0 * 0.0115 && passed < 0.95 + 4.0 * 0.0115,
        "{passed}"
    );
    let white = number(&v, &["correlation", "rms", "white"]);
    assert!((white - (1.0 / 200f64).sqrt()).abs() < 0.004, "{white}");
    assert!((number(&v, &["correlation", "rms", "total"]) / white - 1.0).abs() < 0.05);
    assert!((number(&v, &["ratio", "mean"]) - 0.03).abs() < 0.01);
    let lag = v["autocorrelation"]["minibatch"].as_array().unwrap();
    assert!((lag[0].as_f64().unwrap() - 1.0).abs() < 0.1);
    assert!(lag[1].as_f64().unwrap().abs() < 0.1);
    // One example of few: not normal.
    let few = "potential::gaussian(#{ dim: 60, condition: 10, examples: 4, noise: 4.0 })";
    let passed = number(&evaluate(&script(1, few)).unwrap(), &["ks_fraction"]);
    assert!(passed < 0.5, "{passed}");
}

#[test]
#[ignore = "long: tests/run"]
fn printed_forms_have_the_temperatures_that_theory_says() {
    // Null: virial temperature T for the right forms and 2T for the printed SGHMC, up to the order of the step, here 1 %.
    let virial = |sampler: &str| {
        numbers(&format!(
            "let t = target(potential::gaussian(#{{ dim: 20, condition: 1 }}));
             let s = sample(t, {sampler}, #{{ temperature: 1.0, chains: 4, steps: 200_000, every: 20, seed: 3 }}).summary();
             [s.thermometer, s.thermometer_mcse]"
        ))
    };
    let check = |sampler: &str, expected: f64| {
        let found = virial(sampler);
        let z = (found[0] - expected).abs() / found[1].hypot(0.0025 * expected);
        assert!(z < 4.0, "{sampler}: {found:?}, expected {expected}");
    };
    check(
        "sampler::sghmc(#{ step: 0.002, friction: 0.1, gradient: gradient::full() })",
        1.0,
    );
    check(
        "sampler::sgnht(#{ step: 0.002, friction: 0.1, gradient: gradient::full() })",
        1.0,
    );
    check(
        "sampler::sgnht(#{ step: 0.002, friction: 0.1, form: \"ding2014\", gradient: gradient::full() })",
        0.95,
    );
    // Explicit Euler, as printed: the position moves by the old momentum, which heats by ε/2α or so.
    check(
        "sampler::sghmc(#{ step: 0.0005, friction: 0.1, form: \"hitchcock2025\", gradient: gradient::full() })",
        2.0,
    );
}

#[test]
fn top_errors_are_those_of_the_outputs() {
    let found = evaluate(
        r#"let data = dataset::digits();
        let t = target(model::mlp(#{ layers: [64, 10] }), data, #{ energy: "sum", prior: prior::gaussian(1) });
        let labels = data.targets("test").to_array();
        let r = sample(t, sampler::hmc(), #{ steps: 10, chains: 1, every: 5, burn_in: 0, observe: [
            observable::error("test"), observable::top_error(1, "test"), observable::top_error(3, "test"),
            observable::named("by_hand", |s| {
                let all = s.outputs("test").to_array();
                let wrong = 0.0;
                for (z, i) in all { let own = z[labels[i].to_int()]; let before = z.filter(|x| x >= own).len(); if before > 3 { wrong += 1.0; } }
                wrong / all.len()
            }),
        ] });
        #{ first: r.trace("error_test", 0), one: r.trace("top1_error_test", 0), three: r.trace("top3_error_test", 0), by_hand: r.trace("by_hand", 0) }"#,
    );
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found["first"], found["one"]);
    assert_eq!(found["three"], found["by_hand"]);
    assert_ne!(found["one"], found["three"]);
    let wrong = message(
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits()); sample(t, sampler::hmc(), #{ steps: 10, observe: [observable::top_error(10)] })",
    );
    assert!(
        wrong.contains("k is 10, but there are only 10 classes"),
        "{wrong}"
    );
}
