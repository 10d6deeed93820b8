//! What a part is, in names and what they stand for.

use super::tables::{number, plain};
use super::verdict::temperature;
use crate::error::count;
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::saved::Saved;
use crate::simulation::run::Run;
use crate::simulation::summary::with_error;
use crate::simulation::temper::Temper;

/// What was run, in words.
pub fn run_facts(run: &Run) -> Vec<(&'static str, String)> {
    let i = &run.info;
    let options = i.options.iter().map(|(k, v)| format!("{k} {v}"));
    let options: Vec<_> = options.collect();
    let m = i.m.map_or("full batch".to_string(), |m| format!("m = {m}"));
    let each: Vec<_> = i.temperatures.iter().map(|t| temperature(*t)).collect();
    let rate = i.steps as f64 * i.all_chains() as f64 / run.seconds.max(1e-9);
    vec![
        ("kind", i.kind.clone()),
        ("target", i.target.clone()),
        ("data", i.data_in_words().join("\n")),
        ("sampler", format!("{} ({})", i.sampler, options.join(", "))),
        (
            "sizes",
            format!(
                "n = {}, {m}, s = {} (nβ), N = {}",
                i.n,
                plain(i.scale),
                i.parameters
            ),
        ),
        (
            "temperatures",
            match each.len() {
                n if n > 24 => format!("{n} from {} to {}", each[0], each[n - 1]),
                _ => each.join(", "),
            },
        ),
        ("schedules", i.schedules.join("; ")),
        ("ladder", i.ladder.clone().unwrap_or_default()),
        (
            "tempering",
            match i.law() {
                Temper::Energy => String::new(),
                // A ladder says so itself.
                _ if i.ladder.is_some() => String::new(),
                other => other.describe().into(),
            },
        ),
        (
            "chains",
            format!(
                "{} per temperature{}",
                count(i.chains, "chain"),
                if i.coupled { ", coupled" } else { "" }
            ),
        ),
        (
            "steps",
            format!(
                "{} ({} burn-in), {}: {} each",
                i.steps,
                i.burn_in,
                i.every,
                count(i.draws, "draw")
            ),
        ),
        (
            "time",
            format!(
                "{:.1} s, {} steps of a chain per second",
                run.seconds,
                plain(rate.round())
            ),
        ),
        ("device", i.device.clone()),
        ("seed of the run", i.seed.to_string()),
    ]
}

/// What a ladder has done, in numbers.
pub fn ladder_facts(l: &LadderReport) -> Vec<(&'static str, String)> {
    let [ideal, limit] = l.ideal_round_trips_per_1000();
    vec![
        ("how", l.how.clone()),
        (
            "ladders",
            format!(
                "{} of {} rungs, {} swaps each",
                l.ladders,
                l.temperatures.len(),
                l.sweeps
            ),
        ),
        (
            "communication barrier Λ",
            with_error(l.barrier.0, l.barrier.1),
        ),
        ("recommended rungs, 2Λ + 1", l.recommended_rungs.to_string()),
        (
            "round trips",
            format!(
                "{} ({:.2} per 1000 swaps; {ideal:.2} were every step a fresh draw, {limit:.2} on infinitely many rungs)",
                l.round_trips,
                l.round_trips_per_1000()
            ),
        ),
        ("restarts at the cold end", l.restarts.to_string()),
    ]
}

/// A learning coefficient in numbers.
pub fn llc_facts(saved: &Saved) -> Vec<(&'static str, String)> {
    let x = |name: &str| saved.number(name);
    let known = |name: &str, show: &dyn Fn(f64) -> String| match x(name) {
        v if v.is_nan() => String::new(),
        v => show(v),
    };
    let chains = saved.estimate.get("chains").and_then(|c| c.as_array());
    let chains = chains.into_iter().flatten();
    let chains: Vec<_> = chains
        .map(|c| number(c.as_f64().unwrap_or(f64::NAN), 3))
        .collect();
    vec![
        (
            "learning coefficient λ̂",
            with_error(x("estimate"), x("mcse")),
        ),
        ("exact value", known("truth", &plain)),
        (
            "off by",
            known("relative_error", &|e| {
                let errors = (x("estimate") - x("truth")) / x("mcse");
                format!("{:+.2} %, {errors:+.1} standard errors", 100.0 * e)
            }),
        ),
        (
            "with half the step, extrapolated to zero",
            known("extrapolated", &|e| with_error(e, x("extrapolated_mcse"))),
        ),
        (
            "R̂ and ESS of the loss",
            format!("{}, {}", number(x("rhat"), 3), number(x("ess"), 0)),
        ),
        (
            "virial temperature around w0 (set to 1)",
            format!(
                "{}: {}",
                with_error(x("virial"), x("virial_mcse")),
                saved.word("thermometer_verdict")
            ),
        ),
        ("one by one", chains.join(", ")),
        ("spread of the chains", known("spread", &|e| number(e, 3))),
        (
            "nβ and γ",
            format!("{}, {}", plain(x("nbeta")), plain(x("gamma"))),
        ),
        ("baseline", saved.word("baseline").into()),
    ]
}
