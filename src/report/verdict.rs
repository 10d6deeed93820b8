//! Verdicts: what speaks for the numbers of a part, and what against. The limits are those of the summaries.

use super::read::{Part, Record, Results, What};
use crate::diagnostic::Verdict;
use crate::error::Result;
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::saved::Saved;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::parts::ELSEWHERE;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::summary::{LEAST_ESS, MOST_R_HAT, Summary, with_error};
use crate::simulation::train::Trained;

/// How good it is; the last is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Good,
    /// Nothing can be said.
    Open,
    /// To be known by whoever uses the numbers.
    Look,
    /// The numbers are not to be trusted, or not there.
    Bad,
}

impl Level {
    /// A sign and a word, which say it without colour.
    pub fn sign(self) -> (&'static str, &'static str) {
        match self {
            Self::Good => ("✓", "good"),
            Self::Open => ("?", "open"),
            Self::Look => ("!", "look"),
            Self::Bad => ("✗", "bad"),
        }
    }

    /// That of a verdict of the thermometer.
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Agrees => Self::Good,
            Verdict::Hot | Verdict::Cold => Self::Bad,
            Verdict::Undecided | Verdict::NotApplicable => Self::Open,
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// How good it is.
    pub level: Level,
    /// What was found.
    pub says: String,
}

fn check(what: &'static str, level: Level, says: impl Into<String>) -> Check {
    let says = says.into();
    Check { what, level, says }
}

/// The worst of them; good if there are none.
pub fn worst(checks: &[Check]) -> Level {
    checks.iter().map(|c| c.level).max().unwrap_or(Level::Good)
}

/// A temperature as tables have it.
pub fn temperature(t: f64) -> String {
    match t.is_finite() {
        true => format!("{t:.3e}"),
        false => "prior".into(),
    }
}

/// A few temperatures in a sentence.
fn listed(temperatures: &[f64]) -> String {
    let shown: Vec<_> = temperatures
        .iter()
        .take(4)
        .map(|t| temperature(*t))
        .collect();
    match temperatures.len() {
        n if n > 4 => format!("{} and {} more", shown.join(", "), n - 4),
        _ => shown.join(", "),
    }
}

/// All that was looked at in a part. `quick` says whether the whole script was cut, for what does not know itself.
pub fn checks(part: &Part, summary: Option<&Summary>, quick: bool) -> Result<Vec<Check>> {
    let mut out = match &part.what {
        What::Run(run, done, saved) => match summary {
            Some(s) => of_run(run, *done, s, saved.as_ref())?,
            None => Vec::new(),
        },
        What::Training(t, done) => of_training(t, *done),
        What::Populations(s, done) => of_populations(s, *done),
        What::Benchmark(b) => of_benchmark(b),
        What::Damaged(why) => vec![check("Files", Level::Bad, format!("damaged: {why}"))],
    };
    let cut = match &part.what {
        What::Run(run, ..) => run.info.quick,
        What::Damaged(_) => false,
        _ => quick,
    };
    if cut {
        let says = "steps were cut by --quick: the numbers are for trying things out only";
        out.push(check("Steps", Level::Look, says));
    }
    Ok(out)
}

fn of_run(run: &Run, done: bool, s: &Summary, llc: Option<&Saved>) -> Result<Vec<Check>> {
    let mut out = vec![finished(run, done)];
    out.extend(chains(run));
    if !done && run.least_step() < run.info.burn_in {
        let says = "still in burn-in: there are no draws yet";
        out.push(check("Draws", Level::Bad, says));
        return Ok(out);
    }
    out.push(match llc {
        Some(saved) => thermometer_of(saved),
        None => thermometer(run, s),
    });
    let temperatures = 0..s.temperatures.len();
    let least = |a: (f64, usize), b: (f64, usize)| if b.0 < a.0 { b } else { a };
    let r_hat = temperatures.clone().filter_map(|t| {
        let (r, _) = s.worst_r_hat(t)?;
        Some((-r, t))
    });
    out.push(match r_hat.reduce(least) {
        None if run.info.chains < 2 => {
            check("R̂", Level::Open, "a chain alone cannot be compared with others")
        }
        None => check("R̂", Level::Open, "not known: too few draws, or constant ones"),
        Some((worst, t)) => {
            let (worst, at) = (-worst, temperature(s.temperatures[t]));
            let name = s.worst_r_hat(t).map_or("", |(_, name)| name);
            let over = temperatures
                .clone()
                .filter(|t| s.worst_r_hat(*t).is_some_and(|(r, _)| r > MOST_R_HAT));
            let over: Vec<_> = over.map(|t| s.temperatures[t]).collect();
            match over.is_empty() {
                true => check(
                    "R̂",
                    Level::Good,
                    format!("at most {worst:.3} ({name}), below {MOST_R_HAT} everywhere"),
                ),
                false => check(
                    "R̂",
                    Level::Bad,
                    format!(
                        "the chains disagree: {worst:.3} ({name}, T = {at}); above {MOST_R_HAT} at T = {}",
                        listed(&over)
                    ),
                ),
            }
        }
    });
    let ess = temperatures
        .clone()
        .filter_map(|t| Some((s.least_ess(t)?.0, t)));
    out.push(match ess.reduce(least) {
        None => check("ESS", Level::Open, "not known: too few draws"),
        Some((fewest, t)) => {
            let name = s.least_ess(t).map_or("", |(_, name)| name);
            let at = temperature(s.temperatures[t]);
            let under = temperatures
                .clone()
                .filter(|t| s.least_ess(*t).is_some_and(|(n, _)| n < LEAST_ESS));
            let under: Vec<_> = under.map(|t| s.temperatures[t]).collect();
            match under.is_empty() {
                true => check(
                    "ESS",
                    Level::Good,
                    format!("at least {fewest:.0} effective draws ({name}, T = {at})"),
                ),
                false => check(
                    "ESS",
                    Level::Bad,
                    format!(
                        "only {fewest:.0} effective draws ({name}, T = {at}); below {LEAST_ESS} at T = {}: the error bars there are too small",
                        listed(&under)
                    ),
                ),
            }
        }
    });
    for row in &s.rows {
        let bad: usize = row.not_finite.iter().sum();
        if bad > 0 {
            let says = format!(
                "{bad} draws of {} are not finite, and so is its mean",
                row.name
            );
            out.push(check("Draws", Level::Bad, says));
        }
    }
    if run.ladders.is_some() {
        out.extend(ladder(&LadderReport::new(run)?));
    }
    Ok(out)
}

fn finished(run: &Run, done: bool) -> Check {
    let steps = run.info.steps;
    match done {
        true => check("Finished", Level::Good, format!("all {steps} steps")),
        false => check(
            "Finished",
            Level::Look,
            format!(
                "unfinished at step {} of {steps}; continue with --resume",
                run.least_step()
            ),
        ),
    }
}

/// Chains that failed, by name and reason, and those of other shards.
fn chains(run: &Run) -> Vec<Check> {
    let mut out = Vec::new();
    let all = run.failures.len();
    let mut failed = Vec::new();
    for (c, f) in run.failures.iter().enumerate() {
        let Some(f) = f.as_ref().filter(|f| f.reason != ELSEWHERE) else {
            continue;
        };
        let chains = run.info.chains.max(1);
        let t = run.info.temperatures.get(c / chains).copied();
        failed.push(format!(
            "chain {} at T = {}, step {}: {}",
            c % chains,
            temperature(t.unwrap_or(f64::NAN)),
            f.step,
            f.reason
        ));
    }
    let count = failed.len();
    out.push(match count {
        0 => check("Chains", Level::Good, format!("none of {all} failed")),
        _ => {
            let more = match count {
                0..=8 => String::new(),
                _ => format!("; and {} more", count - 8),
            };
            failed.truncate(8);
            let says = format!(
                "{count} of {all} failed and are left out: {}{more}",
                failed.join("; ")
            );
            check("Chains", Level::Bad, says)
        }
    });
    let elsewhere = run.failures.iter().flatten();
    let elsewhere = elsewhere.filter(|f| f.reason == ELSEWHERE).count();
    if elsewhere > 0 {
        let says =
            format!("{elsewhere} of {all} chains are in other shards, and in no number here");
        out.push(check("Shard", Level::Look, says));
    }
    out
}

fn thermometer(run: &Run, s: &Summary) -> Check {
    let what = "Thermometer";
    let at = |verdict: Verdict| -> Vec<f64> {
        let both = s.temperatures.iter().zip(&s.thermometers);
        let found = both.filter(|(_, r)| r.verdict == verdict);
        found.map(|(t, _)| *t).collect()
    };
    let (hot, cold) = (at(Verdict::Hot), at(Verdict::Cold));
    let (agrees, undecided) = (at(Verdict::Agrees), at(Verdict::Undecided));
    let off: Vec<_> = [("hot", &hot), ("cold", &cold)]
        .into_iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(word, all)| format!("{word} at T = {}", listed(all)))
        .collect();
    if !off.is_empty() {
        return check(
            what,
            Level::Bad,
            format!("the virial says {}", off.join(", ")),
        );
    }
    if !undecided.is_empty() {
        let says = format!("error bars too wide to tell at T = {}", listed(&undecided));
        return check(what, Level::Open, says);
    }
    if agrees.is_empty() {
        let why = match (run.info.walls, run.info.steady) {
            (true, _) => "does not apply within hard walls",
            (_, false) => "does not apply while the temperature changes",
            _ => "does not apply",
        };
        return check(what, Level::Open, why);
    }
    let says = match agrees.len() {
        1 => "the virial agrees with the temperature set".to_string(),
        n => format!("the virial agrees with the temperatures set, at all {n}"),
    };
    check(what, Level::Good, says)
}

/// That of a learning coefficient, around w0.
fn thermometer_of(saved: &Saved) -> Check {
    let says = format!(
        "the virial around w0 says {}, set 1: {}",
        with_error(saved.number("virial"), saved.number("virial_mcse")),
        saved.word("verdict")
    );
    let level = match saved.word("verdict") {
        "agrees" => Level::Good,
        "hot" | "cold" => Level::Bad,
        _ => Level::Open,
    };
    check("Thermometer", level, says)
}

fn ladder(l: &LadderReport) -> Vec<Check> {
    let warnings = l.warnings();
    if warnings.is_empty() {
        let says = format!(
            "{} round trips in {} swaps; Λ = {}",
            l.round_trips,
            l.sweeps,
            with_error(l.barrier.0, l.barrier.1)
        );
        return vec![check("Ladder", Level::Good, says)];
    }
    let each = warnings.into_iter();
    each.map(|w| check("Ladder", Level::Look, w)).collect()
}

fn of_training(t: &Trained, done: bool) -> Vec<Check> {
    let epoch = |c| t.column("epoch", c).ok().and_then(|e| e.last().copied());
    let reached = (0..t.history.len()).map(|c| epoch(c).unwrap_or(0.0));
    let reached = reached.fold(f64::INFINITY, f64::min);
    vec![match done {
        true => check("Finished", Level::Good, format!("{reached:.0} epochs")),
        false => check(
            "Finished",
            Level::Look,
            format!("unfinished at epoch {reached:.0}; continue with --resume"),
        ),
    }]
}

fn of_populations(s: &Smc, done: bool) -> Vec<Check> {
    let mut out = vec![match (done, s.stages.last()) {
        (true, Some(last)) => check(
            "Finished",
            Level::Good,
            format!(
                "at T = {:.4} after {} stages",
                last.temperature,
                s.stages.len()
            ),
        ),
        (_, last) => {
            let at = last.map_or("at the prior".into(), |l| {
                format!("at T = {:.4e}", l.temperature)
            });
            let says = format!("unfinished {at}; continue with --resume");
            check("Finished", Level::Look, says)
        }
    }];
    if !done {
        return out;
    }
    let warnings = s.warnings();
    if warnings.is_empty() {
        let says = format!("{} agree within their scatter", s.ln_z.len());
        out.push(check("Populations", Level::Good, says));
    }
    let each = warnings.into_iter();
    out.extend(each.map(|w| check("Populations", Level::Look, w)));
    out
}

fn of_benchmark(b: &Benchmark) -> Vec<Check> {
    let all = b.problems.len() * b.step_sizes.iter().map(Vec::len).sum::<usize>();
    let failed = b.cells.iter().filter(|c| c.estimate.is_none()).count();
    let mut out = vec![match b.cells.len() >= all {
        true => check("Finished", Level::Good, format!("all {all} cells")),
        false => check(
            "Finished",
            Level::Look,
            format!("{} of {all} cells; continue with --resume", b.cells.len()),
        ),
    }];
    // To fail at too large a step is what a benchmark is there to find.
    out.push(match failed {
        0 => check("Cells", Level::Good, "every cell has an estimate"),
        n => check(
            "Cells",
            Level::Look,
            format!(
                "{n} of {} cells have no estimate: every chain failed",
                b.cells.len()
            ),
        ),
    });
    out
}

/// What the script's record says, and what is to be noted of the folder.
pub fn of_results(r: &Results) -> Vec<Check> {
    let mut out = Vec::new();
    let script = |record: &Record| match record.status.as_str() {
        "done" => Some(check("Script", Level::Good, "ended as it should")),
        "" => None,
        other => {
            let first = other.lines().next().unwrap_or_default();
            Some(check("Script", Level::Bad, format!("stopped: {first}")))
        }
    };
    out.extend(r.record.as_ref().and_then(script));
    let each = r.notes.iter().cloned();
    out.extend(each.map(|n| check("Folder", Level::Look, n)));
    out
}

/// One sentence on everything: the worst first, with how many more there are.
pub fn sentence(all: &[(String, Check)]) -> (Level, String) {
    let level = all.iter().map(|(_, c)| c.level).max();
    let level = level.unwrap_or(Level::Open);
    let at: Vec<_> = all.iter().filter(|(_, c)| c.level == level).collect();
    let said = at
        .first()
        .map_or(String::new(), |(name, c)| match name.is_empty() {
            true => c.says.clone(),
            false => format!("{name}: {}: {}", c.what, c.says),
        });
    let more = match at.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let text = match level {
        Level::Good => "Healthy: nothing that was looked at speaks against these numbers.".into(),
        Level::Open => format!(
            "Nothing speaks against these numbers, but not everything could be tested. {said}{more}"
        ),
        Level::Look => format!("To be used with care. {said}{more}"),
        Level::Bad => format!("Look at this first. {said}{more}"),
    };
    (level, text)
}
