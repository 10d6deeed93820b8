//! The diagnostics agree with ArviZ: `tests/interop/arviz_traces.json` holds traces and ArviZ's numbers for them.

use super::support::Scratch;
use ergodic::diagnostic as ours;
use ergodic::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

const FIXTURE: &str = include_str!("../interop/arviz_traces.json");

/// Largest relative deviation that passes; what is left is the rounding of sums taken in another order.
const RELATIVE: f64 = 1e-9;

struct Case {
    name: String,
    chains: Vec<Vec<f64>>,
    arviz: Value,
}

/// With all examples, SGLD in a harmonic well of stiffness 1 is x ← (1 - ε/2) x + √(εT) η: an AR(1) process of coefficient a = 1 - ε/2 with
/// ρ(k) = a^k, autocorrelation time (1 + a)/(1 - a) and variance T/(1 - ε/4), which is also the mean of |∇U|²/N. Bounds: 4 standard errors, of
/// ρ by Bartlett's formula, of the time by Madras & Sokal with the largest lag that Geyer's rule could take.
#[test]
fn autocorrelation_and_gradient_of_sgld_are_those_of_its_law() {
    let (step, temperature, dim) = (0.2, 0.7, 5);
    let a: f64 = 1.0 - step / 2.0;
    let well = potential::Gaussian::new().dim(dim).condition(1.0);
    let target = Target::of_potential(well.build().unwrap()).run().unwrap();
    let sgld = sampler::Sgld::new().step(step).batch(1).build().unwrap();
    let first = observable::measure("first", |view| Ok(view.chain.w[0].into())).unwrap();
    let gradient = observable::GradientNorm2::new().build().unwrap();
    let scratch = Scratch::new();
    let run = sample(&target, &sgld)
        .temperature(temperature)
        .steps(100_000)
        .every(1)
        .chains(4)
        .seed(11)
        .observe([first, gradient])
        .run_in(&Settings::new(scratch.join("runs")))
        .unwrap();
    let draws = run.draws("first", 0, 0, true).unwrap().concat().len() as f64;
    let found = autocorrelation(&run, "first").lags(40).run().unwrap();
    let rho: Vec<_> = list(&found["rho"][0]).iter().map(number).collect();
    assert_eq!((rho[0], rho.len()), (1.0, 41));
    let error = ((1.0 + a * a) / (1.0 - a * a) / draws).sqrt();
    assert!(error < 0.01);
    for (lag, rho) in rho.iter().enumerate() {
        let law = a.powi(lag as i32);
        assert!((rho - law).abs() < 4.0 * error, "{lag}: {rho}, {law}");
    }
    let (time, law) = (number(&found["time"][0]), (1.0 + a) / (1.0 - a));
    let error = law * (2.0 * (2.0 * 8.0 * law + 1.0) / draws).sqrt();
    assert!(
        error < 0.06 * law && (time - law).abs() < 4.0 * error,
        "{time}"
    );
    let norm = run.summarise(run.draws("gradient_norm2", 0, 0, true).unwrap());
    let law = dim as f64 * temperature / (1.0 - step / 4.0);
    assert!(norm.mcse_mean < 0.01 * law);
    assert!((norm.mean - law).abs() < 4.0 * norm.mcse_mean, "{norm:?}");
    let unknown = autocorrelation(&run, "secnd").run().err().unwrap();
    assert!(unknown.to_string().contains("secnd"), "{unknown}");
}

#[test]
fn every_diagnostic_agrees_with_arviz() {
    let mut worst: BTreeMap<&str, (f64, String)> = BTreeMap::new();
    let mut compare = |case: &Case, quantity: &'static str, got: f64, want: &Value| {
        let off = deviation(case, quantity, got, number(want));
        assert!(
            off <= RELATIVE,
            "{quantity} of '{}' is {got}, ArviZ says {want}",
            case.name
        );
        let entry = worst.entry(quantity).or_default();
        if off >= entry.0 {
            *entry = (off, case.name.clone());
        }
    };
    for case in cases() {
        let chains = &case.chains;
        let scalars = [
            ("mean", ours::mean(chains)),
            ("sd", ours::sd(chains)),
            ("ess_bulk", ours::ess_bulk(chains)),
            ("ess_tail", ours::ess_tail(chains)),
            (
                "ess_tail_of_summary",
                ours::ess_tail_between(chains, 1.0 - 0.89, 0.89),
            ),
            ("ess_mean", ours::ess_mean(chains)),
            ("ess_sd", ours::ess_sd(chains)),
            ("mcse_mean", ours::mcse_mean(chains)),
            ("mcse_sd", ours::mcse_sd(chains)),
            ("r_hat", ours::rhat_rank(chains)),
        ];
        for (quantity, got) in scalars {
            compare(&case, quantity, got, &case.arviz[quantity]);
        }
        let lists = [
            ("bfmi", ours::bfmi(chains)),
            ("autocorrelation", ours::autocorrelation(&chains[0])),
        ];
        for (quantity, got) in lists {
            let want = list(&case.arviz[quantity]);
            assert!(!want.is_empty() && want.len() <= got.len());
            for (got, want) in got.iter().zip(want) {
                compare(&case, quantity, *got, want);
            }
        }
    }
    for (quantity, (off, name)) in worst {
        println!("{quantity:20} {off:.1e}  {name}");
    }
}

#[test]
fn the_autocorrelation_time_is_that_of_arviz_ess() {
    for case in cases() {
        let constant = number(&case.arviz["sd"]) == 0.0;
        let draws: usize = case.chains.iter().map(Vec::len).sum();
        let ess = number(&case.arviz["ess_mean"]);
        let got = ours::integrated_autocorrelation_time(&case.chains);
        if constant || case.name.starts_with("below the resolution") {
            assert!(got.is_nan(), "{}", case.name);
        } else {
            let off = deviation(&case, "time", got, draws as f64 / ess);
            assert!(off <= RELATIVE, "{}", case.name);
        }
    }
}

#[test]
fn a_summary_is_what_arviz_says() {
    for case in cases() {
        let s = ours::summarise(&case.chains);
        let columns = [
            ("mean", s.mean),
            ("sd", s.sd),
            ("mcse_mean", s.mcse_mean),
            ("mcse_sd", s.mcse_sd),
            ("ess_bulk", s.ess_bulk),
            ("ess_tail", s.ess_tail),
            ("r_hat", s.r_hat),
        ];
        for (quantity, got) in columns {
            let off = deviation(&case, quantity, got, number(&case.arviz[quantity]));
            assert!(off <= RELATIVE, "{quantity} of '{}'", case.name);
        }
    }
}

/// Relative deviation; 0 for two NaN or two equal infinities, NaN (which no bound admits) for one of them.
fn deviation(case: &Case, quantity: &str, got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    // What crosses zero is measured against its natural size: a mean against the draws, a correlation against 1.
    let size = match quantity {
        "mean" => want.abs().max(number(&case.arviz["sd"])),
        "autocorrelation" => 1.0,
        _ => want.abs(),
    };
    (got - want).abs() / size
}

fn cases() -> Vec<Case> {
    let file: Value = serde_json::from_str(FIXTURE).expect("the fixture is JSON");
    list(&file["cases"]).iter().map(case).collect()
}

fn case(json: &Value) -> Case {
    // Draws are strings because serde_json's fast float parser may miss the last bit, which breaks or makes ties.
    let chain = |text: &Value| {
        let words = text.as_str().expect("a chain is a string");
        let draws = words.split_whitespace();
        draws
            .map(|x| x.parse().expect("a draw is a number"))
            .collect()
    };
    Case {
        name: json["name"].as_str().expect("a case has a name").into(),
        chains: list(&json["chains"]).iter().map(chain).collect(),
        arviz: json["arviz"].clone(),
    }
}

fn number(json: &Value) -> f64 {
    match json {
        Value::Null => f64::NAN,
        Value::String(inf) => inf.parse().expect("a string is 'inf'"),
        other => other.as_f64().expect("a number"),
    }
}

fn list(json: &Value) -> &Vec<Value> {
    json.as_array().expect("a list")
}
