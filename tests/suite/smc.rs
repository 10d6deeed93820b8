//! Tempered sequential Monte Carlo, from scripts, against targets whose every number is known.

use super::support::{deviation, evaluate, law_of_mixture};

/// Two Gaussians of width ½ at -3 and 2.5 on the first axis, under a prior of width 2.
fn mixture(dim: u32, sampler: &str, options: &str, seeds: u32) -> serde_json::Value {
    let source = format!(
        r#"
        let t = target(potential::gaussian_mixture(#{{ dim: {dim}, weights: [0.6, 0.4], centres: [-3, 2.5] }}), #{{ prior: prior::gaussian(0.25) }});
        let out = [];
        for seed in 1..={seeds} {{
            let p = smc(t, {sampler}, #{{ seed: seed, {options} }});
            let m = p.to_map();
            let w = p.params();
            let left = 0.0;
            for i in 0..w.len() {{
                if w.vector(i)[0] < 0.0 {{ left += 1.0; }}
            }}
            m.left = left / w.len();
            out.push(m);
        }}
        out
        "#
    );
    evaluate(&source).unwrap()
}

fn column(found: &serde_json::Value, name: &str) -> Vec<f64> {
    let rows = found.as_array().unwrap().iter();
    rows.map(|r| r[name].as_f64().unwrap()).collect()
}

/// Mean over seeds of ln Z against the truth, in standard errors of that mean; ln of a mean is too small by half the squared error, to first
/// order.
fn ln_z_deviation(found: &serde_json::Value, exact: f64) -> f64 {
    let pairs = column(found, "ln_z")
        .into_iter()
        .zip(column(found, "error"));
    let corrected: Vec<_> = pairs.map(|(v, e)| v + 0.5 * e * e).collect();
    deviation(&corrected, exact)
}

/// Null: Z is right on average over 20 seeds, as is the weight of the left mode (4 standard errors), and bars of one standard error, from 8
/// populations, contain the truth as often as Student's t with 7 degrees of freedom says, 65 % (4 standard errors of a binomial share).
#[test]
#[ignore = "long: tests/run"]
fn populations_find_ln_z_and_the_weights_of_modes() {
    let seeds = 20;
    let (mut inside, mut cases) = (0.0, 0.0);
    for (dim, sampler, options) in [
        (2, "sampler::hmc(#{ leapfrog: 2 })", "particles: 128"),
        (10, "sampler::hmc(#{ leapfrog: 2 })", "particles: 128"),
        (2, "sampler::mala()", "particles: 64"),
        (2, "sampler::nuts()", "particles: 64, moves: 3"),
        (
            2,
            "sampler::metropolis(#{ acceptance: 0.35 })",
            "particles: 64",
        ),
        (2, "sampler::mams()", "particles: 64, moves: 3"),
        (
            2,
            "sampler::metropolis(#{ acceptance: 0.35 })",
            "particles: 64, moves: 2, until: #{ ess: 300, at_most: 60 }",
        ),
        (
            2,
            "sampler::hmc(#{ dt: 0.4, leapfrog: 2, adapt: false })",
            "particles: 64, ess: 0.4",
        ),
    ] {
        let found = mixture(dim, sampler, options, seeds);
        let (ln_z, left) = law_of_mixture(dim);
        let (values, errors) = (column(&found, "ln_z"), column(&found, "error"));
        let off = [
            ln_z_deviation(&found, ln_z),
            deviation(&column(&found, "left"), left),
        ];
        println!(
            "{dim} {sampler}: ln Z {:.2}, left {:.2}; {values:?} ± {errors:?}, {ln_z}",
            off[0], off[1]
        );
        assert!(
            off.iter().all(|o| o.abs() < 4.0),
            "{sampler} in {dim} dimensions: ln Z is off by {} standard errors, the weight of the left mode by {}",
            off[0],
            off[1]
        );
        let within = values
            .iter()
            .zip(&errors)
            .filter(|(v, e)| (*v - ln_z).abs() < **e);
        inside += within.count() as f64;
        cases += f64::from(seeds);
    }
    let (share, expected) = (inside / cases, 0.649);
    println!("covered {share}");
    let width = 4.0 * (expected * (1.0 - expected) / cases).sqrt();
    assert!(
        (share - expected).abs() < width,
        "bars of one standard error cover {share}"
    );
}

/// Null: in a box of width 30 exp(-½|w - 1|²/T) integrates to (2πT)^(d/2) / 30^d, also below T = 1; 4 standard errors over 20 seeds.
#[test]
#[ignore = "long: tests/run"]
fn walls_and_other_temperatures_are_exact() {
    for temperature in [1.0, 0.1] {
        let found = evaluate(&format!(
            r#"
            let t = target(potential::gaussian(#{{ dim: 3, condition: 1.0 }}), #{{ prior: prior::uniform_box(30.0) }});
            let out = [];
            for seed in 1..=20 {{
                let p = smc(t, sampler::hmc(#{{ leapfrog: 3 }}), #{{ seed: seed, particles: 100, populations: 4, temperature: {temperature} }});
                out.push(evidence(p).to_map());
            }}
            out
            "#
        ))
        .unwrap();
        let exact = 1.5 * (std::f64::consts::TAU * temperature).ln() - 3.0 * 30f64.ln();
        let off = ln_z_deviation(&found, exact);
        println!(
            "T = {temperature}: {off:.2}, {:?}, {exact}",
            column(&found, "ln_z")
        );
        assert!(
            off.abs() < 4.0,
            "ln Z at T = {temperature} is off by {off} standard errors"
        );
    }
}

/// Null: half of the prior has no likelihood at all, and ln ∫ w e^-w φ(w) dw over w > 0 is found nevertheless; 4 standard errors over 20 seeds.
#[test]
fn what_has_no_likelihood_is_lost_at_once() {
    let found = evaluate(
        r#"
        let t = target(potential::closure(1, |w| w[0] - ln(w[0])), #{ prior: prior::gaussian(1.0) });
        let out = [];
        for seed in 1..=20 { out.push(smc(t, sampler::metropolis(), #{ seed: seed, particles: 200, populations: 4 }).to_map()); }
        out
        "#,
    )
    .unwrap();
    let density = |w: f64| w * (-w - 0.5 * w * w).exp() / std::f64::consts::TAU.sqrt();
    let exact = ((1..200_000)
        .map(|k| density(f64::from(k) * 1e-4))
        .sum::<f64>()
        * 1e-4)
        .ln();
    let off = ln_z_deviation(&found, exact);
    println!("{off:.2}, {:?}, {exact}", column(&found, "ln_z"));
    assert!(off.abs() < 4.0, "ln Z is off by {off} standard errors");
}

/// Steps fit wherever the likelihood is a million times stiffer than the prior, with few moves per stage and stages far apart.
#[test]
#[ignore = "long: tests/run"]
fn step_sizes_follow_a_stiff_likelihood() {
    for sampler in [
        "sampler::hmc()",
        "sampler::mala()",
        "sampler::metropolis(#{ acceptance: 0.35 })",
        "sampler::nuts()",
    ] {
        let found = evaluate(&format!(
            r#"
            let t = target(potential::gaussian(#{{ dim: 6, condition: 1e6 }}), #{{ prior: prior::gaussian(1.0) }});
            smc(t, {sampler}, #{{ particles: 64, populations: 4, ess: 0.3, moves: 5 }}).to_map()
            "#
        ))
        .unwrap();
        let rates: Vec<f64> = found["acceptance"]
            .as_array()
            .unwrap()
            .iter()
            .map(|a| a.as_f64().unwrap())
            .collect();
        println!("{sampler} {rates:?}");
        assert!(
            rates.iter().all(|r| (0.1..0.99).contains(r)),
            "{sampler}: {rates:?}"
        );
    }
}

/// Where a few particles cannot find the posterior, the error bar and a note say so.
#[test]
fn populations_that_disagree_are_no_evidence() {
    let found = evaluate(
        r#"
        let t = target(potential::gaussian(#{ dim: 20 }), #{ prior: prior::gaussian(0.01) });
        let out = [];
        for seed in 1..=8 {
            let p = smc(t, sampler::metropolis(), #{ seed: seed, moves: 1, ess: 0.1, particles: 64 });
            let m = p.to_map();
            m.text = p.to_string();
            m.told = evidence(p).to_string();
            out.push(m);
        }
        out
        "#,
    )
    .unwrap();
    for row in found.as_array().unwrap() {
        let (error, scatter) = (
            row["error"].as_f64().unwrap(),
            row["scatter"].as_f64().unwrap(),
        );
        assert!(error == scatter && error > 5.0, "{error} {scatter}");
        for text in ["text", "told"] {
            assert!(
                row[text]
                    .as_str()
                    .unwrap()
                    .contains("ln Z of the populations scatters"),
                "{row}"
            );
        }
    }
}

#[test]
fn what_cannot_be_tempered_says_why() {
    let message = |prior: &str, sampler: &str, options: &str| {
        let source = format!(
            "smc(target(potential::gaussian(), #{{ {prior} }}), {sampler}, #{{ {options} }})"
        );
        evaluate(&source).unwrap_err().to_string()
    };
    for (prior, sampler, options, expected) in [
        ("", "sampler::hmc()", "", "which is no distribution"),
        (
            "prior: prior::gaussian(1.0)",
            "sampler::sgld(#{ step: 0.1, gradient: gradient::full() })",
            "",
            "never rejects",
        ),
        (
            "prior: prior::gaussian(1.0)",
            "sampler::hmc()",
            "ess: 1.5",
            "'ess'",
        ),
        (
            "prior: prior::gaussian(1.0)",
            "sampler::hmc()",
            "particle: 3",
            "particles",
        ),
        (
            "prior: prior::gaussian(1.0)",
            "sampler::hmc()",
            "particles: 8, ess: 0.1",
            "less than two of 8 particles",
        ),
        (
            "prior: prior::gaussian(1.0)",
            "sampler::hmc()",
            "particles: 100000, populations: 1000",
            "more than",
        ),
    ] {
        let message = message(prior, sampler, options);
        assert!(message.contains(expected), "{options}: {message}");
    }
    let table = evaluate(
        r#"
        let t = target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::gaussian(1.0) });
        let p = smc(t, sampler::hmc(), #{ particles: 40, populations: 1, moves: 2 });
        let told = "";
        try { compare(#{ a: evidence(p), b: evidence(p) }) } catch (e) { told = e.to_string() }
        [p.to_string(), told]
        "#,
    )
    .unwrap();
    assert!(
        table[1].as_str().unwrap().contains("has no error bar"),
        "{table}"
    );
    let text = table[0].as_str().unwrap();
    assert!(
        text.contains("1 population of 40 particles") && text.contains("no error bar"),
        "{text}"
    );
}

/// A stage goes on while copies of particles stand together, and no longer than it may.
#[test]
fn stages_go_on_until_particles_are_effective() {
    let moves = |options: &str| -> Vec<u64> {
        let found = mixture(2, "sampler::metropolis()", options, 1);
        let all = found[0]["moves"].as_array().unwrap();
        all.iter().map(|m| m.as_u64().unwrap()).collect()
    };
    let fixed = moves("particles: 64, moves: 2");
    assert!(fixed.iter().all(|m| *m == 2), "{fixed:?}");
    // Of 512 particles nearly all: while a third of them are copies they are not.
    let more = moves("particles: 64, moves: 2, until: #{ ess: 480, rhat: 1.1 }");
    let several = more.iter().filter(|m| **m > 4).count();
    assert!(2 * several >= more.len(), "{more:?}");
    let limited = moves("particles: 64, moves: 2, until: #{ ess: 500, rhat: 1.0001, at_most: 7 }");
    assert!(
        limited.iter().all(|m| (2..=7).contains(m)) && limited.contains(&7),
        "{limited:?}"
    );
    let message = evaluate(
        "smc(target(potential::gaussian_mixture(), #{ prior: prior::gaussian(0.25) }), sampler::hmc(), #{ particles: 8, populations: 2, until: #{ ess: 17 } })",
    );
    let message = message.unwrap_err().message;
    assert!(
        message.contains("more effective particles than the 16"),
        "{message}"
    );
}

/// Null: on temperatures that are given, Z is right in the mean over seeds (four standard errors), populations end at the last of them, and their families are those that are reported: as many
/// as ρ_t and ρ_s allow.
#[test]
fn populations_anneal_on_a_schedule() {
    let found = mixture(
        2,
        "sampler::hmc(#{ leapfrog: 2 })",
        "particles: 128, temperatures: [30, 10, 4, 2, 1.4, 1]",
        12,
    );
    let (ln_z, left) = law_of_mixture(2);
    assert!(ln_z_deviation(&found, ln_z).abs() < 4.0, "{found}");
    assert!(
        deviation(&column(&found, "left"), left).abs() < 4.0,
        "{found}"
    );
    let errors = column(&found, "error");
    assert!(errors.iter().all(|e| *e < 0.1), "{errors:?}");
    for row in found.as_array().unwrap() {
        assert_eq!(
            row["temperatures"],
            serde_json::json!([30.0, 10.0, 4.0, 2.0, 1.4, 1.0])
        );
        for p in 0..8 {
            let of = |name: &str| row[name][p].as_f64().unwrap();
            let (t, s) = (of("family_mean_square"), of("family_entropic"));
            // Between one particle each and equal families: 128/count ≤ ρ_s ≤ ρ_t.
            assert!(1.0 < s && s <= t && 128.0 / of("families") <= s, "{row}");
            assert!(t < 20.0, "{row}");
        }
    }
    let message = |options: &str| {
        let source = format!(
            "smc(target(potential::gaussian_mixture(), #{{ prior: prior::gaussian(0.25) }}), sampler::hmc(), #{{ {options} }})"
        );
        evaluate(&source)
            .err()
            .map(|e| e.message)
            .unwrap_or_default()
    };
    assert!(message("temperatures: [4, 5, 1]").contains("must fall"));
}
