//! Results that claim no more than they know: extrapolations of the right order, estimates and evidence that say where they are none yet.
//!
//! Null hypothesis of every comparison: the estimate has the mean computed here. The bound is four of its own standard errors, and what else
//! it says it may be off by.

use super::support::{Scratch, ergodic, evaluate, text};
use serde_json::Value;

fn found(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn number(value: &Value, name: &str) -> f64 {
    let found = value[name].as_f64();
    found.unwrap_or_else(|| panic!("no number '{name}' in {value}"))
}

fn first_line(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
}

/// A harmonic well of stiffness 1 in four dimensions at nβ = 1: λ = 2, and a step multiplies it by 1/(1-x), x of the sampler.
const WELL: &str = "let t = target(potential::gaussian(#{ dim: 4, condition: 1, examples: 1000, noise: NOISE }));
     let o = #{ start: parameters([1, 1, 1, 1]), nbeta: 1.0, gamma: 0.0, seed: 1, steps: 20_000, burn_in: 0.1 };";

fn well(noise: f64) -> String {
    WELL.replace("NOISE", &format!("{noise:.1}"))
}

#[test]
#[ignore = "long: tests/run"]
fn halving_extrapolates_by_the_order_that_the_sampler_states() {
    // Steps that are a quarter of the largest stable one: x = ¼ whole, and what is left of it at half the step.
    let factor = |x: f64| 2.0 / (1.0 - x);
    for (sampler, order, [whole, half]) in [
        ("sampler::langevin(#{ dt: 1.0 })", 2, [0.25, 0.0625]),
        (
            "sampler::sgld(#{ step: 1.0, gradient: gradient::full() })",
            1,
            [0.25, 0.125],
        ),
        (
            "sampler::ohzeki_ichiki(#{ step: 1.0, gamma: 0.0, gradient: gradient::full() })",
            1,
            [0.25, 0.125],
        ),
        // The stationary covariance of its linear recursion: 1.11765 and 1.05556 times.
        (
            "sampler::sghmc(#{ step: 0.4, gradient: gradient::full() })",
            1,
            [1.0 - 1.0 / 1.117_65, 1.0 - 1.0 / 1.055_56],
        ),
    ] {
        let e = found(&format!(
            "{} o.halve = true; llc(t, {sampler}, o).to_map()",
            well(0.0)
        ));
        let (value, mcse, error) = (
            number(&e, "extrapolated"),
            number(&e, "extrapolated_mcse"),
            number(&e, "extrapolated_error"),
        );
        let gain = 2f64.powi(order);
        let exact = (gain * factor(half) - factor(whole)) / (gain - 1.0);
        assert!(
            (value - exact).abs() < 4.0 * mcse && mcse < 0.05,
            "{sampler}: {value} ± {mcse}, expected {exact}"
        );
        let beyond = (error * error - mcse * mcse).sqrt();
        assert!(
            (value - 2.0).abs() < 4.0 * mcse + beyond,
            "{sampler}: {value} ± {mcse}, beyond it {beyond}"
        );
        assert!(beyond < 0.25, "{sampler}: {beyond}");
    }
}

#[test]
#[ignore = "long: tests/run"]
fn where_the_order_is_not_known_nothing_is_extrapolated() {
    for (sampler, said) in [
        (
            "sampler::langevin(#{ dt: 0.5, batch: 100 })",
            "not extrapolated: the noise of the gradient",
        ),
        (
            "sampler::langevin(#{ dt: 0.5, gradient: gradient::control_variates(#{ batch: 100 }) })",
            "not extrapolated: the noise of the gradient",
        ),
        (
            "sampler::sgnht(#{ step: 0.1, batch: 100 })",
            "not extrapolated: the thermostat",
        ),
        (
            "sampler::rmsprop_sgld(#{ step: 0.01, batch: 100, preconditioner: \"running\" })",
            "not extrapolated: step sizes that follow running statistics",
        ),
        (
            "sampler::hmc(#{ dt: 0.5, adapt: false })",
            "the sampler is exact",
        ),
    ] {
        let e = found(&format!(
            "{} o.halve = true; o.steps = 400; let e = llc(t, {sampler}, o); #{{ text: e.to_string(), map: e.to_map() }}",
            well(1.0)
        ));
        let shown = e["text"].as_str().unwrap();
        assert!(shown.contains(said), "{shown}");
        assert!(
            e["map"]["halved"].is_object() && e["map"].get("extrapolated").is_none(),
            "{e}"
        );
    }
}

/// Every baseline, and the ratio as the step. Two widths from the minimum λ̂ is 2 - ½·4·4 at x of about 0.
#[test]
#[ignore = "long: tests/run"]
fn pseudo_langevin_takes_every_baseline_and_halves_its_ratio() {
    // The first batch of each of four chains has a noise of sd 20·6/√10 for its loss.
    for (baseline, most) in [("paired", 0.5), ("full", 0.5), ("first_batch", 50.0)] {
        let e = found(&format!(
            "{} o.baseline = \"{baseline}\"; o.halve = {}; o.start = parameters([3, 3, 3, 3]);
             let t = target(potential::gaussian(#{{ dim: 4, condition: 1, examples: 1000, noise: 20.0 }}));
             let e = llc(t, sampler::pseudo_langevin(#{{ batch: 10, ratio: 0.2, friction: 0.5 }}), o); let m = e.to_map(); m.text = e.to_string(); m",
            well(0.0),
            baseline == "paired"
        ));
        let (value, mcse) = (number(&e, "estimate"), number(&e, "mcse"));
        assert!(
            (value + 6.0).abs() < 4.0 * mcse && mcse < most,
            "{baseline}: {value} ± {mcse}"
        );
        if baseline == "paired" {
            let text = e["text"].as_str().unwrap();
            assert!(
                text.contains("with half the ratio") && text.contains("error of order ratio;"),
                "{e}"
            );
            let (value, mcse) = (number(&e, "extrapolated"), number(&e, "extrapolated_mcse"));
            assert!((value + 6.0).abs() < 4.0 * mcse && mcse < 1.5, "{e}");
        }
    }
}

/// Chains have mixed where their losses have, whatever their baselines: the first minibatches differ by more than the losses do.
#[test]
fn baselines_of_their_own_do_not_keep_chains_apart() {
    let value = found(
        "let t = target(model::mlp(#{ layers: [2, 1] }), dataset::teacher(model::mlp(#{ layers: [2, 1] }), #{ noise: 1.0, train: 500, test: 1 }));
         let start = train(t, optimizer::adam(#{ epochs: 50, batch: 500, lr: 0.05 }));
         let of = |baseline| {
            let e = llc(t, sampler::sgld(#{ step: 1e-3, batch: 20 }), #{ start: start, steps: 4000, seed: 3, baseline: baseline });
            [e.rhat, e.ess, e.spread]
         };
         #{ full: of.call(\"full\"), own: of.call(\"first_batch\") }",
    );
    let of = |name: &str, k: usize| value[name][k].as_f64().unwrap();
    for k in 0..2 {
        assert!((of("own", k) / of("full", k) - 1.0).abs() < 1e-9, "{value}");
    }
    assert!(of("own", 2) > 3.0 * of("full", 2), "{value}");
}

/// An estimate that is none says so before any number.
#[test]
fn an_estimate_that_is_none_says_so_first() {
    let told = |setting: &str| {
        found(&format!(
            "{} {setting} let e = llc(t, s, o); #{{ text: e.to_string(), verdict: e.verdict, reasons: e.reasons, map: e.to_map() }}",
            well(0.0)
        ))
    };
    let fine = told("let s = sampler::hmc(#{ leapfrog: 5 });");
    assert!(
        first_line(&fine["text"]).starts_with("learning coefficient"),
        "{fine}"
    );
    assert_eq!(fine["verdict"], "converged");
    assert_eq!(fine["reasons"], serde_json::json!([]));
    // A few tenths of a relaxation time, which is 2000 steps.
    let short =
        told("let s = sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }); o.steps = 600;");
    let line = first_line(&short["text"]);
    assert!(
        line.starts_with("NOT YET: R̂ ") && line.contains("ESS 7 of the loss"),
        "{line}"
    );
    assert!(
        line.contains("so take more steps") && line.ends_with("not yet a usable estimate"),
        "{line}"
    );
    assert_eq!(short["verdict"], "not yet");
    assert_eq!(short["map"]["verdict"], "not yet");
    let blurred = told(
        "let s = sampler::sgld(#{ step: 0.05, gradient: gradient::full() }); o.steps = 20_000; o.burn_in = 0.5;",
    );
    let line = first_line(&blurred["text"]);
    assert!(
        line.starts_with("NOT YET: the error of the temperature around w0 is "),
        "{line}"
    );
    let hot = told("let s = sampler::sgld(#{ step: 1.0, gradient: gradient::full() });");
    let line = first_line(&hot["text"]);
    assert!(
        line.starts_with("WRONG: the temperature around w0 is 1.3")
            && line.contains("the step is too large"),
        "{line}"
    );
    assert_eq!(hot["verdict"], "wrong");
    // Two widths away from the minimum the mean loss is below that of the point: nβ(⟨L⟩ - L(w0)) = 2 - ½·4·4.
    let downhill =
        told("let s = sampler::hmc(#{ leapfrog: 5 }); o.start = parameters([3, 3, 3, 3]);");
    let line = first_line(&downhill["text"]);
    assert!(
        line.starts_with("WRONG: ")
            && line.contains("λ̂ is negative")
            && line.contains("not a local minimum"),
        "{line}"
    );
    assert!(
        (number(&downhill["map"], "estimate") + 6.0).abs() < 0.1,
        "{downhill}"
    );
}

/// A ladder whose replicas have not gone round gives no evidence yet, and models compared by it no probabilities yet.
#[test]
fn models_from_ladders_without_a_round_trip_are_not_compared_yet() {
    let value = found(
        r#"
        let of = |steps, rungs| evidence(exchange(target(potential::gaussian(#{ dim: 2, condition: 1.0 }), #{ prior: prior::gaussian(0.5) }), sampler::hmc(),
            #{ temperatures: logspace(1.0, 30.0, rungs), prior_rung: true, steps: steps, chains: 2, seed: 1 }));
        let few = of.call(24, 12); let many = of.call(4000, 4);
        let c = compare(#{ few: few, many: many });
        let both = compare(#{ a: many, b: many });
        #{ evidence: few.to_string(), said: few["verdict"], fine: many["verdict"], text: c.to_string(), verdict: c.verdict, models: c.to_array(), sure: both.to_string() }
        "#,
    );
    assert!(
        first_line(&value["evidence"]).starts_with("NOT YET: no replica has made a round trip"),
        "{value}"
    );
    assert_eq!(
        (&value["said"], &value["fine"]),
        (&"not yet".into(), &"converged".into())
    );
    let line = first_line(&value["text"]);
    assert!(
        line.starts_with("NOT YET: few: no replica has made a round trip"),
        "{line}"
    );
    assert!(line.ends_with("not yet a usable comparison"), "{line}");
    assert_eq!(value["verdict"], "not yet");
    for model in value["models"].as_array().unwrap() {
        let expected = if model["name"] == "few" {
            "not yet"
        } else {
            "converged"
        };
        assert_eq!(model["verdict"], expected, "{model}");
        assert_eq!(
            model["reasons"].as_array().unwrap().is_empty(),
            expected == "converged"
        );
    }
    assert!(first_line(&value["sure"]).starts_with("model"), "{value}");
}

/// The second minus the first, in scripts and on the command line.
#[test]
fn scripts_and_the_command_line_subtract_the_same_way() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "two.rhai",
        "let t = target(potential::gaussian(#{ dim: 2 }));
         let o = #{ steps: 300, observe: [observable::cost()], every: 1, seed: 1 };
         let a = sample(t, sampler::hmc(), o + #{ name: \"a\" });
         let b = sample(target(potential::gaussian(#{ dim: 4 })), sampler::hmc(), o + #{ name: \"b\" });
         let c = compare(a, b);
         #{ deviation: c.to_array()[0].deviation, reference: c.to_array()[0].reference, text: c.to_string() }",
    );
    let out = scratch.join("out");
    let run = ergodic()
        .args(["run", "--json", "--quiet", "--out"])
        .arg(&out)
        .arg(&script)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run));
    let here: Value = serde_json::from_slice(&run.stdout).unwrap();
    let [a, b] = ["a", "b"].map(|name| out.join(name));
    let command = ergodic()
        .args(["compare", "--json"])
        .args([&a, &b])
        .output()
        .unwrap();
    assert!(command.status.success(), "{}", text(&command));
    let there: Value = serde_json::from_slice(&command.stdout).unwrap();
    let means = &there["means"][0];
    // Of twice the dimension: the mean cost is twice as large.
    assert!(number(&here, "deviation") > 4.0, "{here}");
    assert_eq!(
        number(&here, "deviation"),
        number(&means["others"][0], "deviation")
    );
    assert_eq!(number(&here, "reference"), number(&means["first"], "mean"));
    assert!(first_line(&here["text"]).contains("σ: b minus a"), "{here}");
}

/// Without step sizes the largest stable one is found, whatever the sampler's own; what is recommended is confirmed by a neighbour.
#[test]
#[ignore = "long: tests/run"]
fn calibration_finds_its_grid_and_recommends_a_plateau() {
    for (own, noise) in [(1e-6, 0.0), (50.0, 1.0)] {
        let c = found(&format!(
            "{} calibrate_llc(t, sampler::sgld(#{{ step: {own}, batch: 100 }}), #{{ start: o.start, nbetas: [1.0], gamma: 0.0, seed: 3, steps: 20_000 }}).to_map()",
            well(noise)
        ));
        let trials = c["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 7);
        // Steps are stable below 4, and twice too hot from 2 on.
        let largest = number(&trials[6], "step");
        assert!((0.4..4.0).contains(&largest), "{c}");
        let chosen = &c["recommended"];
        let (estimate, mcse, step) = (
            number(chosen, "estimate"),
            number(chosen, "mcse"),
            number(chosen, "step"),
        );
        let hot = 1.0 / (1.0 - step / 4.0);
        assert!(
            (estimate - 2.0 * hot).abs() < 4.0 * mcse + 0.1 * noise && mcse < 0.1 && hot < 1.06,
            "{chosen}"
        );
    }
}

#[test]
fn a_step_that_no_neighbour_confirms_is_not_recommended() {
    let c = found(&format!(
        "{} let s = sampler::sgld(#{{ gradient: gradient::full() }}); let o = #{{ start: o.start, nbetas: [1.0], gamma: 0.0, seed: 3, steps: 20_000 }};
         o.step_sizes = [0.1, 1.5]; let alone = calibrate_llc(t, s, o);
         o.step_sizes = [0.05, 0.1, 1.5]; let flat = calibrate_llc(t, s, o);
         // Of different nβ the error bars are of different things: here λ̂ itself depends on nβ.
         o.step_sizes = [0.005, 0.01]; o.gamma = 5.0; o.steps = 60_000; o.nbetas = [1.0, 10.0]; let trend = calibrate_llc(t, s, o);
         #{{ alone: alone.to_map(), flat: flat.to_map(), trend: trend.to_map(), text: trend.to_string() }}",
        well(0.0)
    ));
    assert!(
        c["alone"]["recommended"].is_null() || c["alone"]["recommended"].is_f64(),
        "{c}"
    );
    assert!(
        c["alone"]["trials"][0]["against"]
            .to_string()
            .contains("no neighbouring step confirms it"),
        "{}",
        c["alone"]
    );
    assert!(
        number(&c["flat"]["recommended"], "step") <= 0.1,
        "{}",
        c["flat"]
    );
    assert_eq!(c["trend"]["nbetas_disagree"], true, "{}", c["trend"]);
    assert!(
        !c["trend"]["recommended"].is_object()
            && c["text"]
                .as_str()
                .unwrap()
                .contains("neighbouring nβ give different estimates")
    );
}
