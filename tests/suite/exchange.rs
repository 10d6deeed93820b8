//! Replica exchange and evidence, from scripts, against targets whose every number is known.

use super::support::{deviation, evaluate, law_of_mixture};
use serde_json::Value;

fn numbers(x: &Value) -> Vec<f64> {
    let list = x.as_array().unwrap();
    list.iter()
        .map(|x| x.as_f64().unwrap_or(f64::NAN))
        .collect()
}

fn error(source: &str) -> String {
    evaluate(source).unwrap_err().to_string()
}

/// Null: the weight of the left mode and ln Z by every estimator are right on average over 20 seeds (4 standard errors), and bars of one
/// standard error contain the truth in 68 % of the cases (4 standard errors of a binomial share over the seeds of all dimensions).
#[test]
#[ignore = "long: tests/run"]
fn weights_and_ln_z_of_mixtures_are_right_and_covered() {
    let estimators = [
        "thermodynamic_integration",
        "stepping_stone_forward",
        "stepping_stone",
        "mbar",
    ];
    let seeds = 20;
    let mut inside = vec![0.0; estimators.len() + 1];
    for (dim, rungs, steps) in [(2, 6, 6000), (10, 12, 6000), (50, 24, 8000)] {
        let source = format!(
            r#"
            let t = target(potential::gaussian_mixture(#{{ dim: {dim}, weights: [0.6, 0.4], centres: [-3, 2.5] }}), #{{ prior: prior::gaussian(0.25) }});
            let out = [];
            for seed in 1..={seeds} {{
                let r = exchange(t, sampler::hmc(#{{ leapfrog: 2 }}), #{{ temperatures: logspace(1.0, 100.0, {rungs} - 1), prior_rung: true, tune: 5,
                    steps: {steps}, burn_in: 0.3, chains: 1, seed: seed, observe: [observable::named("left", |s| if s.params[0] < 0.0 {{ 1.0 }} else {{ 0.0 }})] }});
                let s = r.summary();
                let e = evidence(r).to_map();
                e.left = s["left"][0];
                e.left_error = s["left_mcse"][0];
                out.push(e);
            }}
            out
            "#
        );
        let found = evaluate(&source).unwrap();
        let (ln_z, left) = law_of_mixture(dim);
        let names = estimators
            .iter()
            .map(|n| (*n, ln_z))
            .chain([("left", left)]);
        for (k, (name, truth)) in names.enumerate() {
            let column = |name: &str| -> Vec<f64> {
                let rows = found.as_array().unwrap().iter();
                rows.map(|r| r[name].as_f64().unwrap()).collect()
            };
            let (values, errors) = (column(name), column(&format!("{name}_error")));
            let off = deviation(&values, truth);
            println!(
                "{dim} {name}: {off:.2} standard errors, {values:?} ± {errors:?}, truth {truth}"
            );
            assert!(
                off.abs() < 4.0,
                "{name} in {dim} dimensions is off by {off} standard errors"
            );
            let cases = values.iter().zip(&errors);
            inside[k] += cases.filter(|(v, e)| (*v - truth).abs() < **e).count() as f64;
        }
    }
    let cases = 3.0 * f64::from(seeds);
    let width = 4.0 * (0.68f64 * 0.32 / cases).sqrt();
    for (k, inside) in inside.iter().enumerate() {
        let share = inside / cases;
        println!("{:?}: covered {share}", estimators.get(k));
        assert!(
            (share - 0.68).abs() < width,
            "{k}: bars of one standard error cover {share}"
        );
    }
}

/// E = ½|w - 1|² in two dimensions, prior precision c: on the rung of β E is exponential of rate r = β + c, swaps of neighbours are accepted with
/// 2 r_cold/(r_cold + r_hot) reversed, ln Z = -ln(r/c) and the heat capacity is (β/r)².
fn harmonic(more: &str) -> String {
    format!(
        "let t = target(potential::gaussian(#{{ dim: 2, condition: 1.0 {more} }}), #{{ prior: prior::localised(0.05, parameters([1, 1])) }});"
    )
}

/// Null: energies, heat capacities and swap rates are those of the exact law; 4 standard errors each.
fn holds_the_law(sampler: &str, steps: u64, every: u64) {
    holds_the_law_of(&harmonic(""), sampler, steps, every);
}

fn holds_the_law_of(target: &str, sampler: &str, steps: u64, every: u64) {
    let found = evaluate(&format!(
        r#"{target}
        let r = exchange(t, {sampler}, #{{ temperatures: [1.0, 2.0, 4.0, 10.0], prior_rung: true, steps: {steps}, swap_every: {every}, chains: 4, seed: 5 }});
        let l = r.ladder();
        let m = l.to_map();
        m.virial = r.summary()["thermometer"];
        m.virial_mcse = r.summary()["thermometer_mcse"];
        m
        "#
    ))
    .unwrap();
    let betas = [1.0, 0.5, 0.25, 0.1, 0.0];
    let rate = |b: f64| b + 0.05;
    let mut checks = Vec::new();
    let list = |name: &str| numbers(&found[name]);
    for (k, beta) in betas.iter().enumerate() {
        let r = rate(*beta);
        checks.push((
            format!("E {k}"),
            list("energy")[k],
            list("energy_mcse")[k],
            1.0 / r,
        ));
        if *beta > 0.0 {
            checks.push((
                format!("C {k}"),
                list("heat_capacity")[k],
                list("heat_capacity_mcse")[k],
                (beta / r).powi(2),
            ));
            checks.push((
                format!("virial {k}"),
                list("virial")[k],
                list("virial_mcse")[k],
                1.0 / beta,
            ));
        }
        if let Some(next) = betas.get(k + 1) {
            let s = rate(*next);
            let truth = 2.0 * s / (r + s);
            checks.push((
                format!("swap {k}"),
                list("acceptance")[k],
                list("acceptance_mcse")[k],
                truth,
            ));
        }
    }
    for (name, value, error, truth) in checks {
        let off = (value - truth) / error;
        println!("{sampler} {name}: {value} ± {error}, {truth}: {off:.2}");
        assert!(
            off.abs() < 4.0,
            "{sampler}: {name} is {value} ± {error}, not {truth}"
        );
    }
}

#[test]
#[ignore = "long: tests/run"]
fn exact_samplers_hold_the_law_of_every_rung() {
    holds_the_law("sampler::hmc(#{ leapfrog: 3 })", 12_000, 1);
    holds_the_law("sampler::hmc(#{ leapfrog: 3 })", 24_000, 3);
    holds_the_law("sampler::mala()", 30_000, 1);
    holds_the_law("sampler::nuts()", 6000, 1);
    holds_the_law("sampler::metropolis(#{ acceptance: 0.35 })", 80_000, 1);
}

#[test]
#[ignore = "long: tests/run"]
fn samplers_with_momenta_hold_the_law_of_every_rung() {
    let full = "gradient: gradient::full()";
    let langevin = format!("sampler::langevin(#{{ dt: 0.1, friction: 0.3, {full} }})");
    holds_the_law(&langevin, 200_000, 5);
    let sghmc = format!("sampler::sghmc(#{{ step: 0.01, friction: 0.05, {full} }})");
    holds_the_law(&sghmc, 200_000, 5);
    // In two dimensions the thermostat of SGNHT fluctuates so much that it needs smaller steps.
    let sgnht = format!("sampler::sgnht(#{{ step: 0.0025, friction: 0.025, {full} }})");
    holds_the_law(&sgnht, 400_000, 10);
    holds_the_law(
        &format!("sampler::sgld(#{{ step: 0.01, {full} }})"),
        150_000,
        20,
    );
}

/// A step size that was adapted at a temperature stays there, whichever replica comes; on each ladder it is one number once burn-in is over.
#[test]
fn adapted_step_sizes_stay_with_their_rungs() {
    let target = harmonic("");
    let found = evaluate(&format!(
        r#"{target}
        let r = exchange(t, sampler::mala(), #{{ temperatures: [1.0, 5.0, 50.0], steps: 1000, chains: 2, seed: 3 }});
        [0, 1, 2].map(|rung| r.draws("step_size", rung))
        "#
    ))
    .unwrap();
    let mut steps = Vec::new();
    for rung in 0..3 {
        for ladder in 0..2 {
            let draws = numbers(&found[rung][ladder]);
            assert!(
                draws.len() == 500 && draws.iter().all(|d| *d == draws[0]),
                "rung {rung}: {draws:?}"
            );
            steps.push(draws[0]);
        }
    }
    assert!(
        (1..6).all(|k| steps[..k].iter().all(|s| *s != steps[k])),
        "{steps:?}"
    );
}

/// Step sizes belong to the chain and are frozen at the end of burn-in, wherever it was then; Adam's momentum goes with the temperature.
#[test]
#[ignore = "long: tests/run"]
fn preconditioned_samplers_hold_the_law_of_every_rung() {
    let full = "gradient: gradient::full()";
    for (name, every) in [("rmsprop_sgld", 20), ("adam_sgld", 5)] {
        let sampler = format!("sampler::{name}(#{{ step: 0.01, {full} }})");
        holds_the_law(&sampler, 200_000, every);
    }
    let accelerated = format!("sampler::ohzeki_ichiki(#{{ step: 0.01, {full} }})");
    holds_the_law(&accelerated, 200_000, 20);
}

/// Masses are not to be set by where a replica is when it changes its temperature: with swaps every 5 steps that would show.
#[test]
#[ignore = "long: tests/run"]
fn pseudo_langevin_holds_the_law_of_every_rung() {
    let noisy = harmonic(", examples: 1000, noise: 1.0");
    let sampler = "sampler::pseudo_langevin(#{ batch: 100, friction: 0.3 })";
    holds_the_law_of(&noisy, sampler, 300_000, 5);
    holds_the_law_of(&noisy, sampler, 300_000, 100);
}

#[test]
fn laplace_is_exact_for_gaussians_by_both_methods() {
    let found = evaluate(
        r#"
        let t = target(potential::gaussian(#{ dim: 40, condition: 30.0 }), #{ prior: prior::gaussian(0.5) });
        let w = []; for i in 0..40 { w.push(0.5); }
        [laplace(t, parameters(w), #{ method: "exact" }).to_map(), laplace(t, parameters(w), #{ method: "lanczos", steps: 40, probes: 24 }).to_map()]
        "#,
    )
    .unwrap();
    // U = ½ Σ k (w-1)² with R = ½ a w²: each direction integrates to exp(-ak/2(a+k)) sqrt(a/(a+k)).
    let a = 0.5;
    let exact: f64 = (0..40)
        .map(|i| 30f64.powf(f64::from(i) / 39.0))
        .map(|k| -0.5 * a * k / (a + k) + 0.5 * (a / (a + k)).ln())
        .sum();
    let value = |k: usize, name: &str| found[k][name].as_f64().unwrap();
    assert!(
        (value(0, "ln_z") - exact).abs() < 1e-3,
        "{} {exact}",
        value(0, "ln_z")
    );
    let (lanczos, error) = (value(1, "ln_z"), value(1, "error"));
    assert!(
        (lanczos - exact).abs() < 4.0 * error + 0.5 * value(1, "stopping") + 1e-3
            && error < 0.5
            && value(1, "stopping") < 0.2,
        "{lanczos} ± {error}, {exact}"
    );
}

#[test]
fn a_sweep_in_a_box_gives_the_evidence_relative_to_its_hottest_rung() {
    // In a box that is wide, Z(T)/Z(10) of a harmonic energy in 4 dimensions is (T/10)².
    let found = evaluate(
        r#"
        let t = target(potential::gaussian(#{ dim: 4, condition: 1.0 }), #{ prior: prior::uniform_box(60.0) });
        let r = sweep(t, sampler::hmc(#{ leapfrog: 4 }), #{ temperatures: logspace(1.0, 10.0, 8), steps: 6000, every: 2, chains: 2 });
        [evidence(r).to_map(), evidence(r, #{ temperature: 3.0 }).to_map()]
        "#,
    )
    .unwrap();
    for (row, temperature) in [(0, 1.0f64), (1, 3.0)] {
        let (value, error) = (
            found[row]["ln_z"].as_f64().unwrap(),
            found[row]["error"].as_f64().unwrap(),
        );
        let exact = 2.0 * (temperature / 10.0).ln();
        assert!(
            (value - exact).abs() < 4.0 * error && error < 0.1,
            "{value} ± {error}, {exact}"
        );
    }
    assert!(found[1].get("stepping_stone").is_none());
}

#[test]
fn models_are_compared_by_evidence() {
    let found = evaluate(
        r#"
        let of = |precision| evidence(exchange(target(potential::gaussian(#{ dim: 2, condition: 1.0 }), #{ prior: prior::gaussian(precision) }), sampler::hmc(),
            #{ temperatures: logspace(1.0, 30.0, 6), prior_rung: true, steps: 3000, chains: 1 }));
        let c = compare(#{ wide: of.call(0.01), narrow: of.call(1.0) });
        [c.to_array(), c.to_string()]
        "#,
    )
    .unwrap();
    let table = found[1].as_str().unwrap();
    let row = |name: &str| table.lines().position(|l| l.starts_with(name));
    assert!(row("narrow").unwrap() < row("wide").unwrap(), "{table}");
    let weights: f64 = (0..2)
        .map(|k| found[0][k]["weight"].as_f64().unwrap())
        .sum();
    assert!((weights - 1.0).abs() < 1e-9);
    // ln Z = Σ over two directions of -a/2(1+a) + ½ ln(a/(1+a)).
    let ln_z = |a: f64| 2.0 * (-0.5 * a / (1.0 + a) + 0.5 * (a / (1.0 + a)).ln());
    let exact = ln_z(0.01) - ln_z(1.0);
    let (factor, error) = (
        found[0][1]["ln_bayes_factor"].as_f64().unwrap(),
        found[0][1]["ln_bayes_factor_error"].as_f64().unwrap(),
    );
    assert!(
        (factor - exact).abs() < 4.0 * error,
        "{factor} ± {error}, {exact}"
    );
}

/// A replica that fails stays on its rung, is named, and does not stop the others.
#[test]
fn a_failed_replica_is_named_and_left_out() {
    let found = evaluate(
        r#"
        let t = target(potential::double_well(#{ dim: 1, barrier: 1.0 }));
        let r = exchange(t, sampler::sgld(#{ step: schedule::power(0.3, 1.0, 0.0), gradient: gradient::full() }), #{
            temperatures: [0.01, 0.02, 30.0], swap_every: 50, steps: 4000, chains: 1, temper: "energy", observe: [observable::cost()] });
        [r.failed, r.summary().to_string(), r.draws("cost", 0)[0].len(), r.ladder().to_string()]
        "#,
    );
    let found = found.unwrap();
    assert_eq!(found[0], 1);
    assert!(
        found[1]
            .as_str()
            .unwrap()
            .contains("FAILED and left out: chain 0 at T = 3e1"),
        "{}",
        found[1]
    );
    assert!(found[2].as_i64().unwrap() > 10);
    assert!(
        found[3].as_str().unwrap().contains("met a failed replica"),
        "{}",
        found[3]
    );
}

#[test]
fn what_cannot_exchange_says_why() {
    let exchange = |sampler: &str, options: &str| {
        error(&format!(
            "exchange(target(potential::double_well(#{{ dim: 2 }})), {sampler}, #{{ steps: 400, {options} }})"
        ))
    };
    for (sampler, options, expected) in [
        (
            "sampler::hmc()",
            "temperatures: [1.0]",
            "a ladder has at least 2 rungs",
        ),
        (
            "sampler::hmc()",
            "temperatures: [1.0, 1.0]",
            "rungs go from cold to hot",
        ),
        (
            "sampler::hmc()",
            "temperatures: [1.0, -2.0]",
            "temperatures",
        ),
        (
            "sampler::hmc()",
            "temperatures: [1.0, 2.0], prior_rung: true",
            "which is no distribution",
        ),
        (
            "sampler::hmc()",
            "temperatures: [1.0, 2.0], from_prior: true",
            "which is no distribution",
        ),
        (
            "sampler::hmc()",
            "temperatures: [1.0, 2.0], tune: 12",
            "swaps in burn-in are too few",
        ),
        (
            "sampler::hmc()",
            "temperatures: [1.0, 2.0], ladders: 3",
            "ladders",
        ),
        (
            "sampler::ohzeki_ichiki(#{ step: 0.01, between: \"replicas\", gradient: gradient::full() })",
            "temperatures: [1.0, 2.0]",
            "cannot exchange temperatures",
        ),
    ] {
        let message = exchange(sampler, options);
        assert!(message.contains(expected), "{options}: {message}");
    }
    let message =
        error("evidence(sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 400 }))");
    assert!(message.contains("the prior is tempered too"), "{message}");
    let message =
        error("sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 400 }).ladder()");
    assert!(message.contains("use exchange"), "{message}");
    let message = error("laplace(target(potential::gaussian(#{ dim: 2 })), parameters([1, 1]))");
    assert!(message.contains("no distribution"), "{message}");
    let relative = error(
        r#"let e = evidence(exchange(target(potential::gaussian()), sampler::hmc(), #{ temperatures: [1.0, 2.0, 4.0], steps: 400 })); compare([e, e])"#,
    );
    assert!(relative.contains("is relative to T = 4"), "{relative}");
    let whole = error(
        r#"evidence(exchange(target(potential::gaussian(), #{ prior: prior::gaussian(1.0) }), sampler::hmc(), #{ temperatures: [1.0, 2.0, 4.0], temper: "energy", steps: 400 }))"#,
    );
    assert!(whole.contains("the prior is tempered too"), "{whole}");
    let stiff = error(
        r#"exchange(target(potential::gaussian(), #{ prior: prior::gaussian(1.0) }), sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ temperatures: [1.0, 1e4], steps: 400 })"#,
    );
    assert!(
        stiff.contains("too large for the prior on the hottest rung"),
        "{stiff}"
    );
    let hottest = error(
        r#"evidence(exchange(target(potential::gaussian()), sampler::hmc(), #{ temperatures: [1.0, 2.0], steps: 400 }), #{ temperature: 2.0 })"#,
    );
    assert!(hottest.contains("is its hottest temperature"), "{hottest}");
    let message = error("compare([1, 2])");
    assert!(
        message.contains("must be a result of evidence"),
        "{message}"
    );
}
