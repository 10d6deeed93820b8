//! Learning coefficients: against posteriors that can be integrated by hand, and error bars against the spread over seeds.
//!
//! Null hypothesis of every comparison: the estimate has the mean computed here. The bound is four of its own standard errors.

use super::support::{Scratch, evaluate};
use ergodic::options::{Options, Value as Given};
use ergodic::simulation::llc::benchmark;
use ergodic::simulation::llc::table::Benchmark;
use ergodic::simulation::session::Session;
use serde_json::Value;

fn numbers(source: &str) -> Vec<f64> {
    let value = evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn message(source: &str) -> String {
    evaluate(source).unwrap_err().to_string()
}

/// Linear regression of four outputs on one input, n = 20,000, noise ½: its posterior is Gaussian.
const REGRESSION: &str =
    "let p = llc_problem(#{ widths: [1, 4], rank: 1, n: 20_000, data: DATA, seed: 3 });";

/// What `llc` should find there with steps ε, when the force has the noise of minibatches of m: the estimate and the virial temperature, from
/// losses at a few points.
fn expected(step: f64, batch: Option<f64>) -> [f64; 2] {
    let source = REGRESSION.replace("DATA", "\"moments\"")
        + "let l = []; let w0 = p.start.vector(0);
           for s in [0.0, 1.0, -1.0] { for j in 0..4 { let w = [0.0, 0.0, 0.0, 0.0]; w[j] = s; l.push(p.target.energies(parameters(w)).loss); } }
           for j in 0..4 { l.push(w0[j]); }
           l";
    let l = numbers(&source);
    let (n, gamma) = (20_000f64, 1.0);
    let nbeta = n / n.ln();
    let (mut total, mut virial) = (0.0, 0.0);
    for j in 0..4 {
        let (zero, plus, minus, w0) = (l[j], l[4 + j], l[8 + j], l[12 + j]);
        let (xx, xy) = ((plus + minus - 2.0 * zero) / 2.0, (minus - plus) / 4.0);
        // U = nβ(xx w² - 2 xy w) + ½γ(w - w0)².
        let precision = 2.0 * nbeta * xx + gamma;
        let mean = (2.0 * nbeta * xy + gamma * w0) / precision;
        // Of the linear recursion w ← w - (ε/2)(∇U + noise) + √ε η, exactly.
        let noise = batch.map_or(0.0, |m| nbeta * nbeta * 4.0 * xx * 0.25 / m);
        let variance = (1.0 + step * noise / 4.0) / (precision * (1.0 - step * precision / 4.0));
        virial += precision * variance / 4.0;
        total += nbeta * (xx * (variance + mean * mean - w0 * w0) - 2.0 * xy * (mean - w0));
    }
    [total, virial]
}

fn check(name: &str, found: &[f64], expected: f64) {
    check_within(0.1, name, found, expected);
}

/// With a standard error below `most`.
fn check_within(most: f64, name: &str, found: &[f64], expected: f64) {
    let [estimate, mcse] = found[..] else {
        panic!("{name}: {found:?}")
    };
    let off = (estimate - expected) / mcse;
    assert!(
        off.abs() < 4.0 && mcse < most,
        "{name}: {estimate} ± {mcse}, expected {expected}, {off:.1} standard errors"
    );
}

#[test]
#[ignore = "long: tests/run"]
fn estimates_have_the_mean_of_the_gaussian_posterior() {
    // ε·precision is 0.13: large enough that the variance of the recursion, not that of the posterior, is what must come out.
    let (step, batch) = (1e-6, 500.0);
    let [exact, temperature] = expected(step, None);
    let [noisy, hot] = expected(step, Some(batch));
    assert!((noisy - exact) / exact > 0.05, "{noisy} {exact}");
    let run = |data: &str, sampler: &str, more: &str| {
        let source = REGRESSION.replace("DATA", data)
            + &*format!(
                "let e = llc(p.target, {sampler}, #{{ start: p.start, seed: 5 {more} }}); [e.estimate, e.mcse, e.virial, e.virial_mcse]"
            );
        numbers(&source)
    };
    let sgld = |gradient: &str| {
        format!("sampler::sgld(#{{ step: {step}, gradient: gradient::{gradient} }})")
    };
    let rows = "\"rows\"";
    let long = ", steps: 20_000, burn_in: 0.1";
    let minibatch = sgld("minibatch(500)");
    let both = |name: &str, most: f64, found: &[f64], expected: [f64; 2]| {
        check_within(most, name, &found[..2], expected[0]);
        check_within(0.05, &format!("virial, {name}"), &found[2..], expected[1]);
    };
    let hot = [noisy, hot];
    both("paired", 0.1, &run(rows, &minibatch, long), hot);
    let full = run(rows, &minibatch, &format!("{long}, baseline: \"full\""));
    both("full", 0.3, &full, hot);
    let calm = [exact, temperature];
    let variates = sgld("control_variates(#{ batch: 500 })");
    both("control variates", 0.1, &run(rows, &variates, long), calm);
    let moments = run("\"moments\"", &sgld("full()"), long);
    both("moments", 0.1, &moments, calm);
    let hmc = run(
        "\"moments\"",
        "sampler::hmc(#{ leapfrog: 5 })",
        ", steps: 6000, burn_in: 500",
    );
    check("hmc", &hmc[..2], expected(0.0, None)[0]);
    // What half the step changes is the error of discretisation.
    let halved = numbers(
        &(REGRESSION.replace("DATA", rows)
            + &*format!(
                "let e = llc(p.target, {minibatch}, #{{ start: p.start, seed: 5, halve: true {long} }}).to_map();
                 [e.halved.estimate, e.halved.mcse, e.extrapolated, e.extrapolated_mcse, e.extrapolated_error]"
            )),
    );
    check("halved", &halved[..2], expected(step / 2.0, Some(batch))[0]);
    let beyond = (halved[4].powi(2) - halved[3].powi(2)).sqrt();
    let off = (halved[2] - expected(0.0, None)[0]).abs();
    assert!(
        off < 4.0 * halved[3] + beyond && halved[4] < 0.15,
        "{halved:?}"
    );
}

/// Losses are reported around an anchor, which is no control variate, and the step that is halved or tried out is the ratio 𝒯.
#[test]
fn pseudo_langevin_estimates_and_its_step_is_the_ratio() {
    let found = numbers(
        &(REGRESSION.replace("DATA", "\"rows\"")
            + "let pl = sampler::pseudo_langevin(#{ batch: 100, ratio: 0.02 });
               let e = llc(p.target, pl, #{ start: p.start, seed: 5, steps: 20_000, burn_in: 0.1 });
               let c = calibrate_llc(p.target, pl, #{ start: p.start, seed: 5, step_sizes: [0.003, 0.3], steps: 4000 }).to_map();
               [e.estimate, e.mcse, c.trials[0].mcse, c.trials[1].mcse, pl.step_size(), pl.with_step_size(0.01).step_size(),
                   sampler::pseudo_langevin(#{ masses: \"uniform\", dt: 0.25 }).step_size()]"),
    );
    check("pseudo_langevin", &found[..2], expected(0.0, None)[0]);
    // Masses are inverse to 𝒯: with a hundred times the mass, errors are larger.
    assert!(found[2] > 1.5 * found[3], "{found:?}");
    assert_eq!(found[4..], [0.02, 0.01, 0.25]);
}

/// The spread of λ̂ over seeds is what its standard error says, whatever the baseline; pairing makes both small.
#[test]
#[ignore = "long: tests/run"]
fn error_bars_are_the_spread_over_seeds() {
    const SEEDS: usize = 40;
    let mut typical = Vec::new();
    for baseline in ["paired", "full", "first_batch"] {
        let source = REGRESSION.replace("DATA", "\"rows\"")
            + &*format!(
                "let out = [];
                 for seed in 0..{SEEDS} {{
                     let e = llc(p.target, sampler::sgld(#{{ step: 1e-6, batch: 100 }}), #{{ start: p.start, seed: seed, steps: 2000, every: 5, baseline: \"{baseline}\" }});
                     out.push(e.estimate); out.push(e.mcse);
                 }}
                 out"
            );
        let all = numbers(&source);
        let estimates: Vec<f64> = all.iter().copied().step_by(2).collect();
        let mean = estimates.iter().sum::<f64>() / SEEDS as f64;
        let square = estimates.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let spread = (square / (SEEDS - 1) as f64).sqrt();
        let mcse = all.iter().skip(1).step_by(2).sum::<f64>() / SEEDS as f64;
        let ratio = spread / mcse;
        // The standard error of a standard deviation of so many normal numbers.
        let bound = 4.0 / (2.0 * (SEEDS - 1) as f64).sqrt();
        assert!(
            (ratio - 1.0).abs() < bound,
            "{baseline}: {spread} / {mcse} = {ratio}"
        );
        typical.push(mcse);
    }
    assert!(
        typical[0] < 0.5 * typical[1] && typical[1] < typical[2],
        "{typical:?}"
    );
}

/// The recommended step is one whose estimate is right, and steps that are too large or too small are told apart.
#[test]
#[ignore = "long: tests/run"]
fn calibration_recommends_a_step_that_is_right() {
    let source = REGRESSION.replace("DATA", "\"rows\"")
        + "let c = calibrate_llc(p.target, sampler::sgld(#{ batch: 500 }), #{ start: p.start, seed: 2, steps: 20_000, step_sizes: [1e-9, 1.5e-7, 3e-7, 1e-5, 1e-3], tolerance: 0.05 }).to_map();
           let said = |i, text| if c.trials[i].against.some(|x| x.contains(text)) { 1.0 } else { 0.0 };
           [c.recommended.step, c.recommended.estimate, c.recommended.mcse, said.call(0, \"relaxed\") + said.call(0, \"wide\"), said.call(3, \"hot\"), said.call(4, \"every chain failed\")]";
    let found = numbers(&source);
    assert!([1.5e-7, 3e-7].contains(&found[0]), "{found:?}");
    check(
        "recommended",
        &found[1..3],
        expected(found[0], Some(500.0))[0],
    );
    assert!(
        found[3] > 0.0 && found[4] == 1.0 && found[5] == 1.0,
        "{found:?}"
    );
}

/// Null: at every γ the estimate is that of the linear recursion of SGLD, ½ Σ nβ/(p(1 - εp/4)) with p = nβ + γ. The weakest γ is recommended where the next one
/// confirms it, to the tolerance, and none where they differ.
#[test]
fn calibration_goes_over_gamma_and_decades() {
    let run = |more: &str| {
        let source = format!(
            "let t = target(potential::gaussian(#{{ dim: 4, condition: 1, examples: 1000 }}));
             let c = calibrate_llc(t, sampler::sgld(#{{ gradient: gradient::full() }}), #{{ start: parameters([1, 1, 1, 1]), seed: 3, tolerance: 0.1, {more} }});
             c.to_map() + #{{ text: c.to_string(), drawn: plot::llc_calibration(c).to_string() }}"
        );
        evaluate(&source).unwrap_or_else(|e| panic!("{e}\n{source}"))
    };
    let number = |map: &Value, name: &str| map[name].as_f64().unwrap();
    let near = run("steps: 60_000, step_sizes: [2e-4, 4e-4], gammas: [10, 1]");
    let trials = near["trials"].as_array().unwrap();
    let order: Vec<_> = trials
        .iter()
        .map(|t| (number(t, "gamma"), number(t, "step")))
        .collect();
    assert_eq!(
        order,
        [(1.0, 2e-4), (1.0, 4e-4), (10.0, 2e-4), (10.0, 4e-4)]
    );
    for t in trials {
        let (gamma, step, nbeta) = (number(t, "gamma"), number(t, "step"), number(t, "nbeta"));
        let p = nbeta + gamma;
        let expected = 2.0 * nbeta / (p * (1.0 - step * p / 4.0));
        let found = [number(t, "estimate"), number(t, "mcse")];
        check(&format!("γ = {gamma}, ε = {step}"), &found, expected);
    }
    assert_eq!(
        number(&near["recommended"], "gamma"),
        1.0,
        "{}",
        near["text"]
    );
    let far = run("steps: 60_000, step_sizes: [2e-4, 4e-4], gammas: [30, 100]");
    assert!(!far["recommended"].is_object(), "{}", far["text"]);
    assert_eq!(far["gammas_disagree"], true);
    let text = far["text"].as_str().unwrap();
    assert!(text.contains("neighbouring γ give different"), "{text}");
    let decades = run("steps: 100, step_sizes: [2e-4], gamma: 2.0, nbeta: 50.0, decades: 1");
    let trials = decades["trials"].as_array().unwrap().iter();
    let places: Vec<_> = trials
        .map(|t| (number(t, "gamma"), number(t, "nbeta")))
        .collect();
    assert_eq!(places, [(2.0, 5.0), (2.0, 50.0), (2.0, 500.0)]);
    let both = message(
        "calibrate_llc(target(potential::gaussian(#{ dim: 1 })), sampler::sgld(#{ gradient: gradient::full() }), #{ start: parameters([1]), nbeta: 1.0, gamma: 1.0, gammas: [1.0] })",
    );
    assert!(
        both.contains("'gamma' and 'gammas' are both given"),
        "{both}"
    );
}

/// What is recommended is right, and what is not has its reasons: chains too cold, say, or too hot. Null of what is recommended: λ, to its error and
/// the tolerance. What is provisional is no trial that failed.
#[test]
#[ignore = "long: tests/run"]
fn calibration_recommends_nothing_that_is_wrong() {
    let found = numbers(
        "let out = [];
         for index in 0..8 {
             let p = llc_problem(#{ class: \"1K\", index: index, n: 100_000, data: \"moments\" });
             let c = calibrate_llc(p.target, sampler::sgld(#{ gradient: gradient::full() }), #{ start: p.start, step_sizes: logspace(1e-8, 1e-5, 7), chains: 2, steps: 2000, seed: 1, tolerance: 0.1 }).to_map();
             let unsaid = 0;
             for t in c.trials { if t.against.len() == 0 { unsaid += 1; } }
             let found = type_of(c.recommended) == \"map\";
             let kept = type_of(c.steadiest) == \"map\";
             out += [p.truth, if found { c.recommended.estimate } else { p.truth }, if found { c.recommended.mcse } else { 0.0 },
                 if found { 1.0 } else { 0.0 }, unsaid, if kept { c.steadiest.estimate } else { 1.0 }];
         }
         out",
    );
    for case in found.chunks_exact(6) {
        let off = (case[1] - case[0]).abs();
        assert!(off <= 4.0 * case[2] + 0.1 * case[0], "{case:?}");
        assert!(case[3] == 1.0 || case[4] == 0.0, "{case:?}");
        assert!(case[5].is_finite() && case[5] > 0.0, "{case:?}");
    }
}

#[test]
#[ignore = "long: tests/run"]
fn singular_and_restricted_targets_have_their_coefficients() {
    // U = w⁴ alone: nβ⟨U⟩ = 1/4 at any nβ.
    let found = numbers(
        "let e = llc(target(potential::normal_crossing([2])), sampler::hmc(#{ leapfrog: 8 }), #{ start: parameters([0.0]), nbeta: 1000, gamma: 0, steps: 20_000, burn_in: 500 });
         [e.estimate, e.mcse, e.truth]",
    );
    check("w⁴", &found[..2], 0.25);
    assert_eq!(found[2], 0.25);
    // With W_2 of rank 2 held fixed, W_1 counts through W_2 alone: 2·H_0/2. Without noise w0 is the minimum.
    let found = numbers(
        "let p = llc_problem(#{ widths: [3, 4, 2], rank: 2, n: 20_000, noise: 0, data: \"moments\" });
         let e = llc(p.target, sampler::nuts(#{ max_depth: 8 }), #{ start: p.start, restrict: \"w1\", steps: 3000, burn_in: 500 });
         [e.estimate, e.mcse, e.to_map().parameters, if e.truth.is_nan() { 1.0 } else { 0.0 }]",
    );
    check("w1", &found[..2], 3.0);
    assert_eq!(found[2..], [12.0, 1.0]);
    // Two of its four rows, both in the image's way.
    let found = numbers(
        "let p = llc_problem(#{ widths: [3, 4, 2], rank: 2, n: 20_000, noise: 0, data: \"moments\" });
         let e = llc(p.target, sampler::hmc(#{ leapfrog: 10 }), #{ start: p.start, restrict: [\"w1[0]\", \"w1[1..2]\"], steps: 4000, burn_in: 500 });
         [e.estimate, e.mcse, e.to_map().parameters]",
    );
    check("rows of w1", &found[..2], 3.0);
    assert_eq!(found[2], 6.0);
    // Two of its three columns: so many of the inputs.
    let found = numbers(
        "let p = llc_problem(#{ widths: [3, 4, 2], rank: 2, n: 20_000, noise: 0, data: \"moments\" });
         let e = llc(p.target, sampler::nuts(#{ max_depth: 8 }), #{ start: p.start, restrict: \"w1[:, 1..3]\", steps: 3000, burn_in: 500 });
         [e.estimate, e.mcse, e.to_map().parameters]",
    );
    check("columns of w1", &found[..2], 2.0);
    assert_eq!(found[2], 8.0);
}

/// Null: at every nβ the mean loss above that at w0 is (1/nβ) Σ ½ nβk/((nβk + γ)(1 - ε(nβk + γ)/4)), k the curvatures and ε the step of SGLD, and the slope that of the weighted
/// line through these means. Without γ it is N/2 for small steps whatever w0 is; with a γ that is too strong for the small nβ the estimates have a trend.
#[test]
fn the_slope_over_several_nbeta_is_the_coefficient() {
    let nbetas = [30.0, 100.0, 300.0];
    let curvatures = [1.0, 10f64.powf(1.0 / 3.0), 10f64.powf(2.0 / 3.0), 10.0];
    let sgld = "sampler::sgld(#{ step: 3e-5, gradient: gradient::full() })";
    for (gamma, sampler, step, steps) in [
        (0.0, "sampler::hmc()", 0.0, 20_000),
        (0.0, sgld, 3e-5, 1_000_000),
        (100.0, "sampler::hmc()", 0.0, 20_000),
    ] {
        let source = format!(
            "let e = llc(target(potential::gaussian(#{{ dim: 4, condition: 10.0, examples: 1000 }})), {sampler},
                #{{ start: parameters([1, 1, 1, 1]), gamma: {gamma:?}, nbeta: {nbetas:?}, steps: {steps}, seed: 9 }});
             e.to_map() + #{{ text: e.to_string(), figure: plot::llc(e).to_string(), of: e.levels.len() }}"
        );
        let found = evaluate(&source).unwrap_or_else(|e| panic!("{e}\n{source}"));
        let number = |map: &Value, name: &str| map[name].as_f64().unwrap();
        let at = |nbeta: f64| -> f64 {
            let of = |k: &f64| {
                let stiffness = nbeta * k + gamma;
                nbeta * k / (stiffness * (1.0 - step * stiffness / 4.0))
            };
            curvatures.iter().map(of).sum::<f64>() / 2.0
        };
        let levels = found["levels"].as_array().unwrap();
        assert_eq!((levels.len(), found["of"].as_u64()), (3, Some(3)));
        let mut points = Vec::new();
        for (level, nbeta) in levels.iter().zip([300.0, 100.0, 30.0]) {
            assert_eq!(number(level, "nbeta"), nbeta);
            let (value, error) = (number(level, "estimate"), number(level, "mcse"));
            check(
                &format!("{sampler}, γ = {gamma}, nβ = {nbeta}"),
                &[value, error],
                at(nbeta),
            );
            points.push((1.0 / nbeta, at(nbeta) / nbeta, error / nbeta));
        }
        let slope = ergodic::diagnostic::line(&points).unwrap().slope;
        let own = [number(&found, "estimate"), number(&found, "mcse")];
        check(&format!("{sampler}, γ = {gamma}: slope"), &own, slope);
        let sigma = number(&found, "trend") / number(&found, "trend_mcse");
        assert!(
            if gamma > 0.0 {
                sigma > 10.0
            } else {
                sigma.abs() < 4.0
            },
            "{sigma}"
        );
        assert!(
            found["text"]
                .as_str()
                .unwrap()
                .contains("by the slope over 3 nβ")
        );
        let verdict = if gamma > 0.0 { "not yet" } else { "converged" };
        assert_eq!(found["verdict"], verdict, "{}", found["text"]);
    }
}

#[test]
fn what_cannot_be_estimated_is_said() {
    let problem = "let p = llc_problem(#{ widths: [2, 3], n: 1000 }); ";
    let sgld = "sampler::sgld(#{ step: 1e-6, batch: 10 })";
    for (source, said) in [
        (
            format!("{problem} llc(p.target, {sgld}, #{{ start: parameters([1, 2]) }})"),
            "2 parameters, but the model has 6",
        ),
        (
            format!("{problem} llc(p.target, {sgld}, #{{ start: parameters([[1, 2], [3, 4]]) }})"),
            "choose one with .at(0)",
        ),
        (
            format!("{problem} llc(p.target, {sgld}, #{{ start: p.start, beta: 0.1, nbeta: 3 }})"),
            "'beta' and 'nbeta' are both given",
        ),
        (
            format!("{problem} llc(p.target, {sgld}, #{{ start: p.start, restrict: \"w1[3]\" }})"),
            "first dimension has 3 entries",
        ),
        (
            format!("{problem} llc(p.target, {sgld}, #{{ start: p.start, restrict: [\"w1\", \"w1[0]\"] }})"),
            "named twice",
        ),
        (
            format!("{problem} llc(p.target, {sgld}, #{{ start: p.start, restrict: \"w2\" }})"),
            "no tensor 'w2'",
        ),
        (
            format!("{problem} llc(p.target, sampler::hmc(), #{{ start: p.start, steps: 10, halve: true }})"),
            "needs a fixed step size",
        ),
        (
            format!("{problem} llc(p.target, sampler::sgld(#{{ step: 1.0, batch: 10 }}), #{{ start: p.start }})"),
            "every chain",
        ),
        (
            "llc(target(potential::gaussian()), sampler::hmc(), #{ start: parameters([1,1,1,1,1,1,1,1,1,1]) })".into(),
            "give 'nbeta'",
        ),
        (
            "llc_problem(#{ class: \"1K\", widths: [2, 3] })".into(),
            "a class draws its widths",
        ),
        (
            "llc_problem(#{ widths: [2, 3], rank: 3 })".into(),
            "rank 3 is larger than the smallest width, 2",
        ),
        (
            "dataset::digits().moments()".into(),
            "has classes",
        ),
        (
            "target(model::mlp(#{ layers: [2, 3] }), llc_problem(#{ widths: [2, 3], n: 100, data: \"moments\" }).data)".into(),
            "deep linear network only",
        ),
        (
            "llc_benchmark(#{ samplers: [sampler::hmc()], step_sizes: [0.1], problems: 1, steps: 10 })".into(),
            "no fixed step size",
        ),
        (
            "llc_benchmark(#{ step_sizes: [[0.1], [0.2]], problems: 1, steps: 10 })".into(),
            "one such array for each of the 5 samplers",
        ),
    ] {
        let found = message(&source);
        assert!(found.contains(said), "{source}\n{found}");
    }
}

fn small_benchmark(session: &Session, problems: i64) -> Benchmark {
    let numbers = |x: &[f64]| Given::List(x.iter().map(|x| Given::Float(*x)).collect());
    let grid = numbers(&[1e-7, 1e-6]);
    let given = [
        ("problems", Given::Int(problems)),
        ("n", Given::Int(2000)),
        ("steps", Given::Int(60)),
        ("name", Given::Text("b".into())),
        ("step_sizes", grid),
    ];
    let given = given.map(|(k, v)| (k.to_string(), v)).to_vec();
    let o = Options::check("llc_benchmark", benchmark::OPTIONS, given).unwrap();
    benchmark::run(&o, session).unwrap()
}

fn without_seconds(b: &Benchmark) -> Value {
    let mut cells = b.cells.clone();
    cells.iter_mut().for_each(|c| c.seconds = 0.0);
    serde_json::to_value(&cells).unwrap()
}

/// Whatever the threads, and also when it goes on where another session stopped, without doing anything again.
#[test]
fn a_benchmark_has_the_same_cells_on_any_number_of_threads_and_after_an_interruption() {
    let session = |scratch: &Scratch, threads, resume| {
        let mut s = Session::new(scratch.join("out"));
        (s.threads, s.resume) = (threads, resume);
        s
    };
    let (one, two) = (Scratch::new(), Scratch::new());
    let whole = small_benchmark(&session(&one, 2, false), 3);
    assert_eq!(whole.cells.len(), 3 * 5 * 2);
    let first = small_benchmark(&session(&two, 1, false), 1);
    let rest = small_benchmark(&session(&two, 1, true), 3);
    assert_eq!(without_seconds(&rest), without_seconds(&whole));
    assert_eq!(rest.cells[..10], first.cells[..]);
    let lines = whole.lines();
    assert_eq!(lines.len(), 10);
    assert!(lines.iter().all(|l| l.problems == 3 && l.failed < 1.0));
}
