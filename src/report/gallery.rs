//! The standard figures of a part: what `ergodic plot` writes and a report shows.

use super::figures;
use super::html::plain;
use super::part::{Drawing, Part, drawing};
use super::verdict::temperature;
use crate::diagnostic::verdict::{LEAST_ESS, MOST_R_HAT};
use crate::error::Result;
use crate::simulation::evidence::{Transition, transition};
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::saved::{Saved, drawn};
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use crate::simulation::trained::Trained;
use std::collections::HashSet;

/// Observables that have figures of their own; more are for a script to draw.
const MOST: usize = 8;

/// Temperatures whose histograms can be told apart in one panel.
const OUTLINES: usize = 4;

/// Temperatures from which a curve against T says more than a table.
const CURVE: usize = 3;

/// The figures of a part, the most telling first, with names that differ in more than case. `summary` is that of its run.
pub fn drawings(part: &Part, summary: Option<&Summary>) -> Result<Vec<Drawing>> {
    let mut out = part.of.drawings(summary)?;
    let mut taken = HashSet::new();
    for d in &mut out {
        let (first, mut number) = (d.name.clone(), 2);
        while !taken.insert(d.name.to_lowercase()) {
            d.name = format!("{first}-{number}");
            number += 1;
        }
    }
    Ok(out)
}

/// The course of a training.
pub fn of_training(t: &Trained) -> Result<Vec<Drawing>> {
    let mut out = Vec::new();
    for (what, about) in [
        (
            "loss",
            "Loss against the epoch, on a logarithmic axis where possible",
        ),
        ("error", "Error rate against the epoch"),
        ("lr", "Learning rate against the epoch"),
    ] {
        let figure = t.figure(what)?;
        out.extend(figure.map(|f| drawing(what, about, f)));
    }
    Ok(out)
}

/// Whether there is anything after burn-in.
pub fn has_draws(run: &Run) -> bool {
    let beyond = |r: &Vec<f64>| r.len() > run.info.warm_draws * run.info.width();
    run.records.iter().any(beyond)
}

fn scalars(s: &Summary) -> Vec<String> {
    let all = s.rows.iter().filter(|r| r.component_of.is_none());
    all.map(|r| r.name.clone()).collect()
}

/// All that is drawn of a run with draws.
pub fn of_run(run: &Run, s: &Summary, saved: Option<&Saved>) -> Result<Vec<Drawing>> {
    let mut out = Vec::new();
    if let Some(saved) = saved {
        out.push(coefficient(run, saved)?);
    }
    let thermometer = figures::thermometer(s).filter(|_| s.temperatures.len() > 1);
    out.extend(thermometer.map(|f| {
        let about = "The thermometer: virial temperature over the temperature that was set, which must be 1 within its error bar";
        drawing("thermometer", about, f)
    }));
    let names = scalars(s);
    let shown = || names.iter().take(MOST);
    if s.temperatures.len() >= CURVE {
        for name in shown() {
            let figure = figures::sweep(&[(run, s)], std::slice::from_ref(name))?;
            let about = format!("{name} against temperature, with standard errors");
            out.push(drawing(format!("sweep-{}", plain(name)), about, figure));
        }
    }
    if run.ladders.is_some() {
        out.extend(ladder(run)?);
    }
    if s.temperatures.len() <= OUTLINES {
        for name in shown() {
            let figure = figures::histogram(run, name)?.titled("");
            let about = format!("Distribution of {name} after burn-in");
            out.push(drawing(format!("histogram-{}", plain(name)), about, figure));
        }
    }
    out.extend(traces(run, s)?);
    out.extend(worst_ranks(run, s)?);
    Ok(out)
}

/// The traces of a run.
pub fn traces(run: &Run, s: &Summary) -> Result<Vec<Drawing>> {
    let several = match s.temperatures.len() {
        1 => "",
        _ => ", the first chain of every temperature",
    };
    let one = |name: &String| {
        let about = format!("Trace of {name}{several}; burn-in is shaded");
        let figure = figures::traces(run, name)?.titled("");
        Ok(drawing(format!("traces-{}", plain(name)), about, figure))
    };
    scalars(s).iter().take(MOST).map(one).collect()
}

/// Ranks where the chains agree least.
fn worst_ranks(run: &Run, s: &Summary) -> Result<Option<Drawing>> {
    let each = (0..s.temperatures.len()).filter_map(|t| {
        let (r, name) = s.worst_r_hat(t)?;
        Some((r, name.to_string(), t))
    });
    let worst = each.reduce(|a, b| if b.0 > a.0 { b } else { a });
    let Some((r_hat, name, t)) = worst.filter(|_| !run.info.coupled) else {
        return Ok(None);
    };
    let at = temperature(s.temperatures[t]);
    let about = format!(
        "Rank plot of {name} at T = {at}, where chains agree least (R̂ {r_hat:.3}): outlines are flat at 1 where they agree"
    );
    let figure = figures::ranks(run, &name, t)?;
    Ok(Some(drawing(
        format!("ranks-{}", plain(&name)),
        about,
        figure,
    )))
}

fn coefficient(run: &Run, saved: &Saved) -> Result<Drawing> {
    let traces = saved.losses.traces(run)?;
    let truth = Some(saved.number("truth")).filter(|t| t.is_finite());
    let estimate = (saved.number("estimate"), saved.number("mcse"));
    let figure = drawn(run, &traces, estimate, truth);
    let about = "nβ(L - L(w0)) along every chain, and below it the learning coefficient from the steps so far with 95 % of the final one";
    Ok(drawing("llc", about, figure))
}

fn ladder(run: &Run) -> Result<Vec<Drawing>> {
    let mut out = vec![
        drawing(
            "replicas",
            "Where replicas are, how often neighbours swap, and the flow of replicas from the cold end: straight lines through the ladder are good, walls are not",
            figures::index_process(LadderReport::new(run)?),
        ),
        drawing(
            "energies",
            "Histograms of the tempered energy on every rung: neighbours must overlap",
            figures::energies(run)?,
        ),
    ];
    // Without swaps there is no barrier, and without draws no heat capacity; their tables say so.
    if let Ok(figure) = figures::barrier(run) {
        let about = "The communication barrier Λ from the hot end, and its slope: where it is steep, rungs must be close";
        out.push(drawing("barrier", about, figure));
    }
    if let Ok(t) = transition(run) {
        out.push(drawing(
            "heat-capacity",
            about_peak(&t),
            figures::heat_capacity(&t),
        ));
    }
    Ok(out)
}

/// What a heat capacity says, in a sentence.
fn about_peak(t: &Transition) -> String {
    let what = "Heat capacity along the ladder with its error";
    match &t.peak {
        Ok(p) => {
            let (low, high) = p.interval;
            format!(
                "{what}; its peak is at T = {:.4e} (68 %: {low:.4e} to {high:.4e})",
                p.temperature.value
            )
        }
        Err(why) => format!("{what}; no peak: {why}"),
    }
}

/// The limits of the verdicts, for a reader who wants to know.
pub fn limits() -> String {
    format!(
        "Converged: R̂ (rank-normalised, split) of every observable is at most {MOST_R_HAT}, bulk and tail ESS are at least {LEAST_ESS}, and no test of the law failed. Not yet: something is missing. Wrong: a test failed by more than 4 standard errors and more than its tolerance (1 % of the temperature; 3 % of single tensors and of |∇U|²)."
    )
}
