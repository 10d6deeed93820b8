//! What stands above the table of a run: what was run, what is missing from it, and how it predicts.

use super::run::{ELSEWHERE, Run};
use crate::error;
use serde_json::{Map, Value};

/// Vectors of more components are not in the table.
pub(crate) const WIDEST: usize = 12;

/// The lines of a run; `not_finite` counts the draws of each quantity that are not finite.
pub(super) fn header<'a>(
    run: &Run,
    not_finite: impl Iterator<Item = (&'a str, usize)>,
) -> Vec<String> {
    let info = &run.info;
    let mut out: Vec<_> = run.unfinished().into_iter().collect();
    out.extend(about(run));
    out.extend(left_out(run));
    out.extend(run.notes.iter().map(|note| format!("NOTE: {note}")));
    for column in info.columns.iter().filter(|c| c.width() > WIDEST) {
        let (name, width) = (&column.name, column.width());
        out.push(format!(
            "{name}: {width} components, in run.draws(\"{name}\", 0) and to_map(), not in the table"
        ));
    }
    for (name, bad) in not_finite.filter(|(_, bad)| *bad > 0) {
        out.push(format!(
            "NOTE: {bad} draws of {name} are not finite, so neither is its mean"
        ));
    }
    for scores in &run.scores {
        for (k, t) in info.temperatures.iter().enumerate() {
            let (split, all) = (&scores.split, shown(&scores.temperatures[k]));
            out.push(format!("prediction on {split} at T = {t:e}: {all}"));
        }
    }
    out
}

/// What was run, and how long.
fn about(run: &Run) -> Vec<String> {
    let info = &run.info;
    let options = info.options.iter().map(|(k, v)| format!("{k} {v}"));
    let options: Vec<_> = options.collect();
    let m = info
        .m
        .map_or("full batch".to_string(), |m| format!("m = {m}"));
    let mut out = vec![
        format!(
            "{} '{}': {} ({})",
            info.kind,
            info.name,
            info.sampler,
            options.join(", ")
        ),
        info.target.clone(),
        format!(
            "n = {}, {m}, s = {} (nβ), N = {}",
            info.n,
            trim(info.scale),
            info.parameters
        ),
        format!(
            "{} per temperature, {} ({} burn-in), {}: {} each{}, {:.1} s",
            error::count(info.chains, "chain"),
            error::count(info.steps as usize, "step"),
            info.burn_in,
            info.every,
            error::count(info.draws, "draw"),
            if run.done() { "" } else { " at the end" },
            run.seconds
        ),
    ];
    out.extend(info.course.map(|course| course.to_string()));
    out.extend(info.places.iter().cloned());
    out.extend(info.ladder.clone());
    let schedules = info.schedules.iter();
    out.extend(schedules.map(|s| format!("temperature schedule: {s}")));
    if info.quick {
        out.push(
            "QUICK: steps were cut by --quick; these numbers are for trying things out only".into(),
        );
    }
    out
}

/// The chains that are in no number: those of other shards, and those that failed.
fn left_out(run: &Run) -> Vec<String> {
    let info = &run.info;
    let all = run.failures.iter().enumerate();
    let all = all.filter_map(|(c, f)| Some((c, f.as_ref()?)));
    let (elsewhere, failed): (Vec<_>, Vec<_>) = all.partition(|(_, f)| f.reason == ELSEWHERE);
    let mut out = Vec::new();
    if !elsewhere.is_empty() {
        out.push(format!(
            "SHARD: {} of {} chains are in other shards, and not included in these numbers",
            elsewhere.len(),
            info.all_chains()
        ));
    }
    out.extend(failed.into_iter().map(|(c, f)| {
        format!(
            "FAILED and left out: chain {} at T = {:e}, step {}: {}",
            c % info.chains,
            info.temperatures[c / info.chains],
            f.step,
            f.reason
        )
    }));
    out
}

/// The scores a reader looks for first: as in maps, and as in words.
const SCORES: [(&str, &str); 7] = [
    ("error", "error"),
    ("generalisation_error", "generalisation error"),
    ("squared_error", "squared error"),
    ("nll", "NLL"),
    ("brier", "Brier"),
    ("ece", "ECE"),
    ("waic", "WAIC"),
];

/// Those of these scores that there are, in words.
pub(crate) fn first_scores(scores: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let number = |name: &str| scores.get(name).and_then(Value::as_f64);
    let found = SCORES.iter().filter_map(|(key, name)| {
        let x = number(key)?;
        let text = match x.abs() {
            m if m == 0.0 || (1e-3..1e5).contains(&m) => format!("{x:.4}"),
            _ => format!("{x:.3e}"),
        };
        Some((*name, text))
    });
    found.collect()
}

fn shown(scores: &Map<String, Value>) -> String {
    let texts = first_scores(scores).into_iter();
    let texts: Vec<_> = texts.map(|(name, x)| format!("{name} {x}")).collect();
    texts.join(", ")
}

/// A number without a needless fraction.
fn trim(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 {
        format!("{x:.0}")
    } else {
        format!("{x:.4}")
    }
}
