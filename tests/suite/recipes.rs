//! Recipes: what they find against what is known, and how they are imported, documented, checked, resumed.
//!
//! Null hypothesis of every comparison: what the recipe finds has the mean computed here. The bound is four standard errors, as measured.

use super::support::{Scratch, ergodic, evaluate, text};
use ergodic::options::Default;
use ergodic::script::Interpreter;
use ergodic::script::library::{RECIPES, recipe_items};
use ergodic::simulation::session::Session;
use serde_json::Value;
use std::collections::BTreeMap;

fn found(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn refused(source: &str) -> String {
    evaluate(source)
        .err()
        .map(|e| e.message)
        .unwrap_or_default()
}

fn number(value: &Value, key: &str) -> f64 {
    let mut at = value;
    for part in key.split('.') {
        at = &at[part];
    }
    at.as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn near(name: &str, (value, error): (f64, f64), expected: f64) {
    assert!(
        error > 0.0 && (value - expected).abs() < 4.0 * error,
        "{name}: {value} ± {error}, expected {expected}"
    );
}

/// Heat capacity of a well pair (w² - 1)² + 0.3 w at T, by quadrature.
fn heat_capacity(t: f64) -> f64 {
    let grid = (0..=20_000).map(|i| -4.0 + i as f64 * 4e-4);
    let energies: Vec<f64> = grid.map(|w: f64| (w * w - 1.0).powi(2) + 0.3 * w).collect();
    let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = |f: &dyn Fn(f64) -> f64| {
        let weight = |u: &f64| (-(u - lowest) / t).exp();
        let z: f64 = energies.iter().map(weight).sum();
        energies.iter().map(|u| weight(u) * f(*u)).sum::<f64>() / z
    };
    let first = mean(&|u| u);
    mean(&|u| (u - first).powi(2)) / (t * t)
}

#[test]
fn a_transition_is_bracketed_where_the_heat_capacity_peaks() {
    let value = found(
        "import \"transition\" as transition;
         let t = target(potential::double_well(#{ dim: 4 }));
         let f = transition::find(t, sampler::hmc(#{ leapfrog: 15 }), #{ low: 0.03, high: 10.0, points: 9, width: 2.0, steps: 4000, burn_in: 0.2, every: 2, exchange: true });
         #{ low: f.low, high: f.high, ratio: f.ratio, verdict: f.verdict, curve: f.curve, rounds: f.rounds.len(), panels: f.figure.to_string() }",
    );
    let fine = (0..2000).map(|i| 0.03 * (10.0f64 / 0.03).powf(i as f64 / 1999.0));
    let peak = fine
        .max_by(|a, b| heat_capacity(*a).total_cmp(&heat_capacity(*b)))
        .unwrap();
    assert!((peak - 0.2418).abs() < 1e-3);
    let (low, high) = (number(&value, "low"), number(&value, "high"));
    assert!(low < peak && peak < high, "{low} {high}: {peak}");
    assert!(value["verdict"] == "narrow" && high / low <= 2.0, "{value}");
    // The curve is that of four well pairs, also where chains alone would not cross the barrier.
    let (t, c) = (
        numbers(&value["curve"]["temperature"]),
        numbers(&value["curve"]["value"]),
    );
    let errors = numbers(&value["curve"]["error"]);
    let mut compared = 0;
    for ((t, c), e) in t.iter().zip(&c).zip(&errors) {
        near(&format!("C at {t}"), (*c, *e), 4.0 * heat_capacity(*t));
        assert!(*e < 0.2 * c, "{e} of {c}");
        compared += 1;
    }
    assert!(compared >= 18);
}

/// By its steepest change too, and where there is none at all.
#[test]
fn a_curve_without_a_peak_has_no_transition() {
    // Of a Gaussian U is N T/2: C is the same everywhere, and d⟨U⟩/d ln T is largest at the hot end.
    let value = found(
        "import \"transition\" as t;
         let g = target(potential::gaussian(#{ dim: 5, condition: 1.0 }));
         let o = #{ low: 0.1, high: 10, points: 5, steps: 2000, every: 1 };
         let a = t::find(g, sampler::hmc(), o);
         let b = t::find(g, sampler::hmc(), o + #{ of: \"cost\" });
         let c = t::change(b.runs[0], \"cost\");
         #{ flat: a.verdict, ratio: a.ratio, rising: b.verdict, slopes: c.map(|p| p.y), errors: c.map(|p| p.error), at: b.runs[0].temperatures }",
    );
    assert_eq!(value["rising"], "at the hot end");
    assert_eq!(value["flat"], "limited by error bars");
    assert!(number(&value, "ratio") > 3.0, "{value}");
    let (at, slopes, errors) = (
        numbers(&value["at"]),
        numbers(&value["slopes"]),
        numbers(&value["errors"]),
    );
    for k in 0..slopes.len() {
        let exact = 2.5 * (at[k + 1] - at[k]) / (at[k + 1] / at[k]).ln();
        near("d⟨U⟩/d ln T", (slopes[k], errors[k]), exact);
    }
}

/// Weight of the left well of (w² - 1)² + 0.3 w after SGLD steps of ε from w = 1 at these temperatures: the chain's law itself, on a grid.
fn left_after(temperatures: &[f64], epsilon: f64) -> f64 {
    const CELLS: usize = 600;
    let (low, width) = (-2.4, 4.8 / CELLS as f64);
    let at = |i: usize| low + (i as f64 + 0.5) * width;
    let drift = |w: f64| w - 0.5 * epsilon * (4.0 * w * (w * w - 1.0) + 0.3);
    let step = |law: &[(f64, f64)], t: f64| -> Vec<f64> {
        let sd = (epsilon * t).sqrt();
        let mut out = vec![0.0; CELLS];
        for (w, p) in law.iter().filter(|(_, p)| *p > 1e-14) {
            let to = drift(*w);
            let reach = (7.0 * sd / width).ceil() as i64;
            let middle = ((to - low) / width) as i64;
            let cells = (middle - reach).max(0)..=(middle + reach).min(CELLS as i64 - 1);
            let weight = |i: i64| (-0.5 * ((at(i as usize) - to) / sd).powi(2)).exp();
            let total: f64 = cells.clone().map(weight).sum();
            for i in cells {
                out[i as usize] += p * weight(i) / total;
            }
        }
        out
    };
    let mut law = vec![(1.0, 1.0)];
    for t in temperatures {
        let next = step(&law, *t);
        law = next
            .into_iter()
            .enumerate()
            .map(|(i, p)| (at(i), p))
            .collect();
    }
    law.iter().filter(|(w, _)| *w < 0.0).map(|(_, p)| p).sum()
}

#[test]
fn annealing_finds_the_better_well_as_often_as_the_chain_must() {
    let run = |schedule: &str| {
        found(&format!(
            "import \"annealing\" as annealing;
             let t = target(potential::double_well());
             let f = annealing::minimise(t, sampler::sgld(#{{ step: 0.1, gradient: gradient::full() }}), #{{
                 hot: 1.0, cold: 0.1, schedule: \"{schedule}\", steps: 300, restarts: 2000, start: parameters([1.0]), within: 0.4, every: 100 }});
             let left = |p| {{ let n = 0; for i in 0..p.len() {{ if p.vector(i)[0] < 0.0 {{ n += 1; }} }} n }};
             #{{ left: left.call(f.ends), quenched: left.call(f.quench.ends), n: f.ends.len(), success: f.success, mcse: f.success_mcse, energy: f.energy,
                best: f.best.vector(0)[0], energies: f.energies, text: f.text }}"
        ))
    };
    for schedule in ["geometric", "linear"] {
        let value = run(schedule);
        let at = |k: usize| {
            let part = (k as f64 / 270.0).min(1.0);
            match schedule {
                "linear" => 1.0 + part * (0.1 - 1.0),
                _ => 0.1f64.powf(part),
            }
        };
        // Whether the first step is at `hot` or one later is of no matter at this size.
        let cooled: Vec<f64> = (0..300).map(at).collect();
        let n = number(&value, "n");
        assert_eq!(n, 2000.0);
        for (key, law) in [("left", cooled), ("quenched", vec![0.1; 300])] {
            let p = left_after(&law, 0.1);
            let share = number(&value, key) / n;
            near(
                &format!("{schedule} {key}"),
                (share, (p * (1.0 - p) / n).sqrt()),
                p,
            );
        }
        // The recipe's own count: an energy below the right well's bottom is one in the left well.
        assert!(
            (number(&value, "success") - number(&value, "left") / n).abs() < 0.02,
            "{value}"
        );
        let lowest = numbers(&value["energies"])
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        assert_eq!(number(&value, "energy"), lowest);
        assert!(number(&value, "best") < -0.9);
        assert!(
            number(&value, "left") > number(&value, "quenched") + 400.0,
            "{value}"
        );
    }
}

/// nβ⟨w⁴⟩ over exp(-nβ w⁴ - ½γw²), by quadrature.
fn of_a_quartic(nbeta: f64, gamma: f64) -> f64 {
    let end = 8.0 * nbeta.powf(-0.25);
    let grid = (0..=40_000).map(|i| end * i as f64 / 40_000.0);
    let weights = grid.map(|w: f64| {
        (
            nbeta * w.powi(4),
            (-nbeta * w.powi(4) - 0.5 * gamma * w * w).exp(),
        )
    });
    let (top, z) = weights.fold((0.0, 0.0), |(top, z), (l, p)| (top + l * p, z + p));
    top / z
}

#[test]
fn the_protocol_gives_the_learning_coefficients_that_are_known() {
    let estimated = |setting: &str| {
        found(&format!(
            "import \"llc_protocol\" as protocol;
             {setting} o.tolerance = 0.1;
             let f = protocol::estimate(t, s, o);
             #{{ estimate: f.estimate, mcse: f.mcse, truth: f.truth, trusted: f.trusted, against: f.against, drift: f.drift, step: f.step, nbeta: f.nbeta, gamma: f.gamma,
                calibrations: f.calibrations.len(), figure: f.figure.to_string(), text: f.text }}"
        ))
    };
    let crossing = estimated(
        "let t = target(potential::normal_crossing([2])); let o = #{ start: parameters([0.0]), nbetas: [1e6], gammas: [1e-3] }; let s = sampler::hmc(#{ leapfrog: 15 });",
    );
    let deep = estimated(
        "let p = llc_problem(#{ widths: [5, 6, 9, 4], rank: 1, n: 1_000_000, data: \"moments\", noise: 0 }); let t = p.target;
         let o = #{ start: p.start, gammas: [10.0] }; let s = sampler::hmc(#{ leapfrog: 40 });",
    );
    let regular = estimated(
        "let t = target(potential::gaussian(#{ dim: 4, condition: 1, examples: 10_000 })); let o = #{ start: parameters([1, 1, 1, 1]), trial_steps: 3000, steps: 20_000 };
         let s = sampler::sgld(#{ step: 1e-3, gradient: gradient::full() });",
    );
    // Steps of ε make the variance 1/(k(1 - εk/4)) in a direction of stiffness k.
    let stiff = number(&regular, "nbeta") + number(&regular, "gamma");
    let of_steps =
        number(&regular, "nbeta") * 2.0 / (stiff * (1.0 - number(&regular, "step") * stiff / 4.0));
    assert_eq!(regular["calibrations"], 1);
    for (name, value, exact, truth) in [
        ("w^4", &crossing, of_a_quartic(1e6, 1e-3), 0.25),
        ("deep linear", &deep, 9.5, 9.5),
        ("regular", &regular, of_steps, 2.0),
    ] {
        assert!(value["trusted"] == true, "{name}: {value}");
        assert_eq!(number(value, "truth"), truth);
        let (estimate, mcse) = (number(value, "estimate"), number(value, "mcse"));
        near(name, (estimate, mcse), exact);
        assert!(
            mcse < 0.05 * truth && (exact / truth - 1.0).abs() < 0.1,
            "{name}: {value}"
        );
    }
}

/// A step that is far too large is not called right, and neither are chains that are too short to forget where they began.
#[test]
fn the_protocol_says_what_is_wrong() {
    let value = found(
        "import \"llc_protocol\" as protocol;
         let t = target(potential::gaussian(#{ dim: 100, condition: 1, examples: 10_000 }));
         let w0 = []; for i in 0..100 { w0.push(1.0); }
         // A schedule is not calibrated: 2/εk = 1840 steps to forget the start.
         let s = sampler::sgld(#{ step: schedule::constant(1e-6), gradient: gradient::full() });
         let cold = protocol::estimate(t, s, #{ start: parameters(w0), steps: 400, extend: 1, burn_in: 0.02 });
         #{ cold: cold.against, cold_trusted: cold.trusted, steps: cold.steps, drift: cold.drift }",
    );
    assert_eq!(value["cold_trusted"], false);
    let all = |key: &str| value[key].to_string();
    assert!(all("cold").contains("the virial is cold"), "{value}");
    assert!(
        number(&value, "drift") > 3.0 && all("cold").contains("drifts"),
        "{value}"
    );
    assert_eq!(value["steps"], 800);
    let hot = refused(
        "import \"llc_protocol\" as protocol;
         let t = target(potential::gaussian(#{ dim: 4, condition: 1, examples: 10_000 }));
         protocol::estimate(t, sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ start: parameters([1, 1, 1, 1]), step_sizes: [2.5e-3] })",
    );
    assert!(hot.contains("no step size of [0.0025] works"), "{hot}");
}

#[test]
fn samplers_are_compared_at_equal_cost_and_a_hot_one_is_found() {
    let value = found(
        "import \"method_comparison\" as methods;
         let t = target(potential::gaussian(#{ dim: 3, condition: 1.0 }));
         let f = methods::compare(t, #{
             hmc: sampler::hmc(#{ leapfrog: 5 }), nuts: sampler::nuts(), mala: sampler::mala(), sgld: sampler::sgld(#{ step: 0.02, gradient: gradient::full() }),
             coarse: sampler::sgld(#{ step: 1.2, gradient: gradient::full() }),
         }, #{ passes: 20_000, temperature: 0.5, observe: [observable::cost(), observable::parameter(0)] });
         #{ methods: f.methods, reference: f.reference, agreeing: f.agreeing, text: f.text, figure: f.figure.to_string() }",
    );
    let methods = value["methods"].as_array().unwrap();
    let of = |name: &str| methods.iter().find(|m| m["name"] == name).unwrap();
    for m in methods {
        let passes = number(m, "passes");
        // NUTS costs what its pilot said, not to the gradient.
        let slack = if m["name"] == "nuts" { 0.5 } else { 0.01 };
        assert!((passes / 20_000.0 - 1.0).abs() < slack, "{m}");
        assert!(number(m, "ess_per_pass") > 0.0 && number(m, "ess_per_second") > 0.0);
    }
    assert_eq!(number(of("hmc"), "steps"), 4000.0);
    for name in ["hmc", "nuts", "mala"] {
        let m = of(name);
        near(name, (number(m, "means.w0"), number(m, "mcse.w0")), 1.0);
        near(
            name,
            (number(m, "means.cost"), number(m, "mcse.cost")),
            1.5 * 0.5,
        );
        // Of draws that are nearly independent: a variance has the relative error sqrt(2/n).
        let variance = number(m, "sd.w0").powi(2);
        near(
            name,
            (variance, 0.5 * (2.0 / number(m, "ess").min(4000.0)).sqrt()),
            0.5,
        );
        assert!(
            value["agreeing"].as_array().unwrap().contains(&name.into()),
            "{name}: {}",
            value["text"]
        );
    }
    // SGLD's variance is T/(1 - ε/4): 1.43 times too large at this step.
    let coarse = of("coarse");
    assert!(
        coarse["against"].to_string().contains("thermometer is hot"),
        "{coarse}"
    );
    assert!(
        coarse["against"].to_string().contains("cost is"),
        "{coarse}"
    );
    near(
        "coarse",
        (number(coarse, "means.cost"), number(coarse, "mcse.cost")),
        0.75 / 0.7,
    );
    assert!(
        !value["agreeing"]
            .as_array()
            .unwrap()
            .contains(&"coarse".into())
    );
    assert!(value["reference"].as_str().is_some_and(|r| r != "coarse"));
    // A gradient of 10 of 100 examples is a tenth of a pass.
    let value = found(
        "import \"method_comparison\" as methods;
         let t = target(potential::gaussian(#{ dim: 2, examples: 100, noise: 1.0 }));
         let f = methods::compare(t, #{ mini: sampler::sgld(#{ step: 0.02, batch: 10 }), full: sampler::sgld(#{ step: 0.02, gradient: gradient::full() }) }, #{ passes: 400, reference: \"full\" });
         #{ steps: f.methods.map(|m| m.steps), reference: f.reference }",
    );
    assert_eq!(
        value,
        serde_json::json!({ "steps": [400, 4000], "reference": "full" })
    );
}

/// A linear student of a linear teacher: least squares is off by σ² d/2(n - d - 1) in the mean, whose slope the fit must find.
#[test]
fn a_learning_curve_has_the_exponent_of_linear_regression() {
    const D: f64 = 4.0;
    let sizes = [16.0, 32.0, 64.0, 128.0, 256.0];
    let value = found(
        "import \"learning_curve\" as curve;
         let net = model::mlp(#{ layers: [4, 1], output: \"identity\", bias: false });
         let pose = |n, seed| target(net, dataset::teacher(net, #{ train: n, test: 100, noise: 0.3, seed: 100 * seed + n }), #{ loss: \"squared_error\", energy: \"sum\" });
         let f = curve::measure(pose, sampler::hmc(#{ leapfrog: 10 }), #{
             sizes: [16, 32, 64, 128, 256], sets: 12, of: \"generalisation_error\", temperature: 0.18, chains: 2, steps: 200, every: 1 });
         #{ score: f.score, mcse: f.mcse, exponent: f.exponent, error: f.exponent_error, chi2: f.chi2, degrees: f.degrees, rhat: f.worst_rhat, text: f.text, figure: f.figure.to_string() }",
    );
    let exact: Vec<f64> = sizes
        .iter()
        .map(|n| 0.09 * D / (2.0 * (n - D - 1.0)))
        .collect();
    let (score, mcse) = (numbers(&value["score"]), numbers(&value["mcse"]));
    for k in 0..sizes.len() {
        // The Monte Carlo error of 200 draws adds less than a hundredth.
        near(&format!("n = {}", sizes[k]), (score[k], mcse[k]), exact[k]);
    }
    // The straight line through the exact curve, all points counting the same.
    let x: Vec<f64> = sizes.iter().map(|n| f64::ln(*n)).collect();
    let y: Vec<f64> = exact.iter().map(|e| e.ln()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let top: f64 = x.iter().zip(&y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = top / x.iter().map(|x| (x - mx).powi(2)).sum::<f64>();
    near(
        "exponent",
        (number(&value, "exponent"), number(&value, "error")),
        -slope,
    );
    assert!(
        number(&value, "error") < 0.15 && number(&value, "chi2") < 20.0,
        "{value}"
    );
}

#[test]
fn an_ensemble_obeys_jensen_and_is_its_draw_where_all_are_equal() {
    let value = found(
        "import \"ensemble\" as ensemble;
         let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 20 }), #{ energy: \"sum\", prior: prior::gaussian(1.0) });
         let best = train(t, optimizer::adam(#{ epochs: 20 }));
         let run = sample(t, sampler::hmc(), #{ start: best, steps: 200, chains: 4, every: 1, predict: \"test\", observe: [observable::loss(\"test\"), observable::error(\"test\")] });
         let f = ensemble::evaluate(t, run, #{ optimum: best });
         // Steps of nothing: every draw is the optimum.
         let still = sample(t, sampler::sgld(#{ step: 1e-30, gradient: gradient::full() }), #{ start: best, steps: 40, chains: 3, every: 1, predict: \"test\" });
         let g = ensemble::evaluate(t, still, #{ optimum: best.at(0) });
         let draws = run.draws(\"loss_test\", 0);
         let s = run.summary();
         let ends = t.prediction(run.params(), \"test\");
         let first = t.prediction(run.at(0), \"test\");
         #{ ends: ends, first: first, singles: [0, 1, 2, 3].map(|c| t.prediction(run.at(c), \"test\").nll), scores: f.scores, gibbs: f.gibbs_loss, gap: f.jensen_gap, draws: f.draws, loss: s.loss_test, error: s.error_test, still: g.scores, still_gap: g.jensen_gap, text: f.text, figure: f.figure.to_string() }",
    );
    let score = |name: &str, of: &str| number(&value, &format!("scores.{name}.{of}"));
    // Jensen, for all draws and for the last of each chain.
    assert!(
        number(&value, "gap") > 0.0 && score("nll", "last") <= score("nll", "single") + 1e-9,
        "{value}"
    );
    assert!(
        (number(&value, "gap") - (number(&value, "gibbs") - score("nll", "ensemble"))).abs()
            < 1e-12
    );
    // The Gibbs loss is the mean of the loss that another observable recorded at the same draws.
    assert!(
        (number(&value, "gibbs") / number(&value, "loss") - 1.0).abs() < 1e-4,
        "{value}"
    );
    assert_eq!(value["draws"], 400);
    let singles = numbers(&value["singles"]);
    assert!((singles.iter().sum::<f64>() / 4.0 - score("nll", "single")).abs() < 1e-9);
    for name in ["error", "nll", "brier", "ece"] {
        assert!(
            (number(&value["ends"], name) - score(name, "last")).abs() < 1e-9,
            "{name}"
        );
    }
    assert!(
        (number(&value["first"], "nll") - singles[0]).abs() < 1e-12 && singles[0] != singles[1]
    );
    // A Brier score is convex too.
    assert!(score("brier", "last") <= score("brier", "single") + 1e-9);
    for name in ["error", "nll", "brier", "ece"] {
        let (optimum, still) = (score(name, "optimum"), &value["still"][name]);
        for of in ["ensemble", "last", "single", "optimum"] {
            let other = still[of].as_f64().unwrap();
            assert!(
                (other - optimum).abs() < 1e-5,
                "{name} {of}: {other}, {optimum}"
            );
        }
    }
    assert!(number(&value, "still_gap").abs() < 1e-6);
    // Of a single draw the error is the share that the observable counted, on average over chains and draws.
    assert!(
        (score("error", "single") - number(&value, "error")).abs() < 0.05,
        "{value}"
    );
}

#[test]
fn regressions_have_ensembles_too() {
    let value = found(
        "import \"ensemble\" as ensemble;
         let net = model::mlp(#{ layers: [3, 1], output: \"identity\", bias: false });
         let t = target(net, dataset::teacher(net, #{ train: 50, test: 100, noise: 0.3 }), #{ loss: \"squared_error\", energy: \"sum\" });
         let run = sample(t, sampler::hmc(), #{ steps: 200, chains: 4, every: 1, predict: \"test\", temperature: 0.18 });
         let f = ensemble::evaluate(t, run);
         #{ scores: f.scores, gap: f.jensen_gap }",
    );
    let of = |of: &str| number(&value, &format!("scores.squared_error.{of}"));
    // A square is convex.
    assert!(
        of("last") <= of("single") && number(&value, "gap") > 0.0,
        "{value}"
    );
    assert!(
        value["scores"]["generalisation_error"]["ensemble"]
            .as_f64()
            .is_some()
    );
}

#[test]
fn every_recipe_is_documented_and_every_example_runs() {
    assert_eq!(RECIPES.len(), 6);
    for (name, source) in RECIPES {
        assert!(source.starts_with("//! "), "{name} has no heading");
        assert!(
            recipe_items().iter().any(|i| i.namespace == *name),
            "{name} offers nothing"
        );
    }
    for item in recipe_items() {
        assert!(
            !item.doc.is_empty() && item.brief().len() < 200,
            "{}",
            item.path()
        );
        for option in item.options {
            assert!(
                option.doc.len() > 5,
                "{}: option {}",
                item.path(),
                option.name
            );
            if let Default::Is(text) = option.default {
                // It is an expression of the language, cut out whole.
                found(text);
            }
        }
        assert!(!item.example.is_empty(), "{}", item.path());
        let value = evaluate(&item.example)
            .unwrap_or_else(|e| panic!("the example of {}:\n{e}", item.path()));
        assert!(
            value.is_object() || value.is_string(),
            "{}: {value}",
            item.path()
        );
    }
    let find = recipe_items()
        .iter()
        .find(|i| i.path() == "transition::find")
        .unwrap();
    assert_eq!(
        find.signature,
        "transition::find(target, sampler, #{ options }) -> map"
    );
    let names: Vec<_> = find.options.iter().map(|o| o.name).collect();
    assert!(
        names[..3] == ["of", "low", "high"] && names.contains(&"burn_in"),
        "{names:?}"
    );
}

#[test]
fn options_of_recipes_are_checked_like_those_of_the_program() {
    let call = |options: &str| {
        refused(&format!(
            "import \"transition\" as t;\nlet g = target(potential::gaussian());\nt::find(g, sampler::hmc(), #{{ {options} }})"
        ))
    };
    for (options, said) in [
        (
            "lo: 1.0",
            "transition::find has no option 'lo'; did you mean 'low'?",
        ),
        (
            "points: 2.5",
            "transition::find cannot use option 'points': it is 2.5, but must be a whole number",
        ),
        ("low: \"a\"", "but must be a number"),
        ("observe: 1", "but must be an array"),
        ("low: 2, high: 1", "needs 0 < low < high"),
        ("chains: 0", "option 'chains' is 0, but must be 1 …"),
        ("start: 3", "option 'start'"),
    ] {
        let message = call(options);
        assert!(message.contains(said), "{options}: {message}");
        // Where the recipe stands, and where the script called it.
        assert!(message.contains("--> stdlib/transition.rhai:"), "{message}");
        assert!(
            message.contains("called from here") && message.contains("--> test.rhai:3:4"),
            "{message}"
        );
        assert!(message.contains("t::find(g, sampler::hmc()"), "{message}");
    }
    assert!(refused("options(#{ stesp: 1 }, #{ steps: 2 })").contains("did you mean 'steps'"));
    assert_eq!(
        found("options(#{ a: 2, b: () }, #{ a: 1.5, b: 3, c: () })"),
        serde_json::json!({ "a": 2.0, "b": 3, "c": null })
    );
    // Nothing is given by ().
    found(
        "sample(target(potential::gaussian()), sampler::hmc(#{ leapfrog: () }), #{ steps: 10, every: 1, start: () })",
    );
}

#[test]
fn imports_say_what_is_missing() {
    for (source, said) in [
        ("import \"transitoin\" as t;", "did you mean 'transition'?"),
        (
            "import \"nothing/like/it\" as t;",
            "recipes: annealing, ensemble, learning_curve",
        ),
        (
            "transition::find(1, 2)",
            "write `import \"transition\" as transition;` first",
        ),
        (
            "samplre::hmc()",
            "there is no namespace 'samplre'; did you mean 'sampler'?",
        ),
        (
            "import \"transition\" as t; t::fnid(1, 2)",
            "did you mean 't::find'?",
        ),
        (
            "import \"transition\" as t; t::find(1, 2, 3, 4)",
            "t::find(target, sampler, #{ options })",
        ),
    ] {
        let message = refused(source);
        assert!(
            message.contains(said) && message.contains("--> test.rhai:1:"),
            "{source}: {message}"
        );
    }
}

/// A file beside the script, one it imports, their errors, and closures that go in.
#[test]
fn own_scripts_are_imported_from_beside_the_script() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.join("parts")).unwrap();
    scratch.file("mine.rhai", "//! Mine.\nimport \"parts/deep\" as deep;\n\n/// Twice what the closure says.\nfn twice(f, x) { 2 * f.call(x) }\nfn deeper(x) {\n  deep::fail(x)\n}\n");
    scratch.file(
        "parts/deep.rhai",
        "fn fail(x) {\n  let a = 1;\n  throw \"not so \" + x;\n}\n",
    );
    scratch.file("transition.rhai", "fn find(x) { x + 1 }\n");
    let run = |source: &str| {
        let script = scratch.file("script.rhai", source);
        let out = scratch.join("out");
        let _ = std::fs::remove_dir_all(&out);
        ergodic()
            .args(["run", "--json", "--out"])
            .arg(out)
            .arg(script)
            .output()
            .unwrap()
    };
    let fine = run(
        "import \"mine\" as mine;\nimport \"./transition\" as own;\nimport \"transition\" as recipe;\nlet k = 3;\nlet t = target(potential::gaussian());\n\
                    let r = sample(t, sampler::hmc(), #{ steps: 20, every: 1, observe: [observable::named(\"a\", |s| mine::twice(|x| x * k, s.params[0]))] });\n\
                    #{ twice: mine::twice(|x| x + k, 4), own: own::find(1), seen: type_of(recipe::find(t, sampler::hmc(), #{ low: 0.1, high: 1.0, points: 4, rounds: 1, steps: 40, every: 1 })) }",
    );
    assert!(fine.status.success(), "{}", text(&fine));
    let value: Value = serde_json::from_slice(&fine.stdout).unwrap();
    assert_eq!(
        value,
        serde_json::json!({ "twice": 14, "own": 2, "seen": "map" })
    );
    let record: Value =
        serde_json::from_slice(&std::fs::read(scratch.join("out/run.json")).unwrap()).unwrap();
    let imported = record["imported"].as_object().unwrap();
    assert_eq!(imported.len(), 3);
    assert!(
        imported
            .iter()
            .any(|(file, text)| file.ends_with("mine.rhai")
                && text.as_str().unwrap().starts_with("//! Mine."))
    );

    let failed = text(&run("import \"mine\" as mine;\n\nmine::deeper(\"x\")"));
    let places: Vec<_> = failed.lines().filter(|l| l.contains("-->")).collect();
    assert!(failed.contains("not so x") && places.len() == 3, "{failed}");
    assert!(
        places[0].contains("deep.rhai:3:3")
            && places[1].contains("mine.rhai:7:")
            && places[2].contains("script.rhai:3:7"),
        "{failed}"
    );
    // An error of the script's own closure is shown in the script.
    let failed = text(&run(
        "import \"mine\" as mine;\nmine::twice(|x| {\n  x.nothing()\n}, 4)",
    ));
    let places: Vec<_> = failed.lines().filter(|l| l.contains("-->")).collect();
    assert!(places[0].contains("script.rhai:3:"), "{failed}");

    scratch.file("mine.rhai", "fn a( {");
    let failed = text(&run("import \"mine\" as mine;"));
    assert!(
        failed.contains("mine.rhai:1:") && failed.contains("script.rhai:1:8"),
        "{failed}"
    );
    scratch.file("mine.rhai", "import \"mine\" as m;");
    assert!(text(&run("import \"mine\" as mine;")).contains("would import itself"));
}

fn interpreter() -> Interpreter {
    let scratch = Scratch::new();
    Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new())
}

#[test]
fn recipes_are_completed_and_explained_under_any_alias() {
    let mut session = interpreter();
    let names = |s: &Interpreter, source: &str| -> Vec<String> {
        let found = s.complete(source, source.len());
        found.matches.into_iter().map(|m| m.text).collect()
    };
    assert_eq!(names(&session, "import \"met"), ["method_comparison"]);
    assert_eq!(
        names(&session, "import \"ensemble\" as e; e::"),
        ["evaluate"]
    );
    let _ = session
        .run("<repl>", "import \"transition\" as tr;")
        .unwrap();
    // Imports stay, as variables do.
    let _ = session
        .run("<repl>", "let g = target(potential::gaussian());")
        .unwrap();
    assert_eq!(names(&session, "tr::fi"), ["find"]);
    assert!(names(&session, "t").contains(&"tr::".to_string()));
    assert_eq!(
        names(&session, "tr::find(g, sampler::hmc(), #{ poi"),
        ["points"]
    );
    let told = session.inspect("tr::find(", 5).unwrap();
    assert!(
        told.starts_with("### `tr::find(target, sampler, #{ options }) -> map`"),
        "{told}"
    );
    assert!(
        told.contains("| `width` | number, any finite number | `1.2` |"),
        "{told}"
    );
    assert!(
        session
            .inspect("tr::find(g, s, #{ width: 2 })", 20)
            .unwrap()
            .contains("an option of `tr::find`")
    );
    let e = session
        .run("<repl>", "tr::find(g, sampler::hmc(), #{ widht: 2 })")
        .unwrap_err()
        .message;
    assert!(
        e.contains("did you mean 'width'") && e.contains("<repl>:1:5"),
        "{e}"
    );
    let value = session.run("<repl>", "type_of(tr::find(g, sampler::hmc(), #{ low: 0.1, high: 1.0, points: 4, rounds: 1, steps: 40, every: 1 }))");
    assert_eq!(session.json(&value.unwrap()), "map");
}

#[test]
fn the_reference_knows_recipes() {
    let docs = |arguments: &[&str]| {
        let output = ergodic().arg("docs").args(arguments).output().unwrap();
        (output.status.success(), text(&output))
    };
    let (_, all) = docs(&[]);
    assert!(
        all.contains("\nRecipes") && all.contains("  transition::find "),
        "{all}"
    );
    let (_, one) = docs(&["transition::find"]);
    assert!(
        one.starts_with("### `transition::find(")
            && one.contains("| `low` |")
            && one.contains("import \"transition\" as transition;"),
        "{one}"
    );
    let (_, whole) = docs(&["transition"]);
    assert!(
        whole.starts_with("# transition")
            && whole.contains("`transition::heat_capacity(run)")
            && whole.contains("transition.to_map"),
        "{whole}"
    );
    let (_, source) = docs(&["transition", "--source"]);
    assert!(source.starts_with("//! ") && source.contains("fn find(target, sampler, given)"));
    let (fine, missing) = docs(&["transitoin", "--source"]);
    assert!(
        !fine && missing.contains("did you mean 'transition'?"),
        "{missing}"
    );
    assert!(docs(&["--all"]).1.contains("## recipes"));
}

/// Interrupted within a recipe, and resumed: the same numbers, bit for bit.
#[test]
fn a_recipe_is_resumed_where_it_was() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "script.rhai",
        "import \"transition\" as transition;
         let t = target(potential::double_well());
         let f = transition::find(t, sampler::hmc(), #{ low: 0.05, high: 5, points: 4, rounds: 2, width: 1.01, steps: 2000, every: 10 });
         let g = transition::find(t, sampler::hmc(), #{ low: 0.05, high: 5, points: 4, rounds: 1, steps: 200, every: 10 });
         #{ seconds: f.runs[0].seconds, f: f.curve, low: f.low, g: g.curve, names: f.runs.map(|r| r.name) + g.runs.map(|r| r.name) }",
    );
    let run = |out: &str, more: &[&str]| {
        let output = ergodic()
            .args(["run", "--json", "--out"])
            .arg(scratch.join(out))
            .args(more)
            .arg(&script)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let whole = run("a", &[]);
    assert_eq!(whole["names"][2], "transition-2-round1");
    // As if it had been killed after the first sweep: the rest is done again, and only the rest.
    let again = ["transition-1-round2", "transition-2-round1"];
    for name in again {
        std::fs::remove_dir_all(scratch.join("a").join(name)).unwrap();
    }
    // Also the seconds of the first sweep are those of the first time.
    assert_eq!(run("a", &["--resume"]), whole);
    run("b", &["--quick"]);
}
