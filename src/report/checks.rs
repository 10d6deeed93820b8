//! What is looked at in a part of each kind.

use super::part::Part;
use super::verdict::{Check, Level, check, listed, temperature};
use crate::diagnostic::{Heat, Verdict};
use crate::error::Result;
use crate::simulation::exchange::LadderReport;
use crate::simulation::judge::{RELAXED, percent};
use crate::simulation::llc::curve::Curve;
use crate::simulation::llc::saved::Saved;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::run::ELSEWHERE;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::summary::{LEAST_ESS, MOST_R_HAT, Summary, with_error};
use crate::simulation::trained::Trained;
use crate::simulation::transcript::{GOES_ON, goes_on};

/// All that was looked at in a part. `quick` says whether the whole script was cut, for what does not know itself.
pub fn checks(part: &Part, summary: Option<&Summary>, quick: bool) -> Result<Vec<Check>> {
    let mut out = part.of.checks(summary)?;
    let course = part.of.notes().iter();
    out.extend(course.map(|n| check("Course", Level::Look, n)));
    let damage = part.of.run().map(|r| r.damage()).unwrap_or_default();
    out.extend(damage.iter().map(|d| check("Files", Level::Look, d)));
    if part.of.is_cut(quick) {
        let says = "steps were cut by --quick: the numbers are for trying things out only";
        out.push(check("Steps", Level::Look, says));
    }
    Ok(out)
}

pub fn of_run(run: &Run, done: bool, s: &Summary, llc: Option<&Saved>) -> Result<Vec<Check>> {
    let mut out = vec![finished(run, done)];
    out.extend(chains(run));
    if !done && run.least_step() < run.info.burn_in {
        let says = "still in burn-in: there are no draws yet";
        out.push(check("Draws", Level::Look, says));
        return Ok(out);
    }
    match llc {
        Some(saved) => out.extend([convergence_of(saved), thermometer_of(saved)]),
        None => out.push(law(run, s)),
    }
    let of_law = run.info.notes.iter();
    out.extend(of_law.map(|note| check("Law", Level::Look, note)));
    out.extend(match llc {
        Some(saved) => [
            r_hat(run, Some((saved.number("rhat"), "the loss", 1.0)), &[]),
            ess(Some((saved.number("ess"), "the loss", 1.0)), &[]),
        ],
        None => mixing(run, s),
    });
    out.extend(health(run)?);
    for row in &s.rows {
        let bad: usize = row.not_finite.iter().sum();
        if bad > 0 {
            let says = format!(
                "{bad} draws of {} are not finite, so neither is its mean",
                row.name
            );
            out.push(check("Draws", Level::Look, says));
        }
    }
    if run.ladders.is_some() {
        out.extend(ladder(&LadderReport::new(run)?));
    }
    Ok(out)
}

/// What the sampler's own numbers say against it, at the first temperature where they do.
fn health(run: &Run) -> Result<Option<Check>> {
    let found = run.against()?;
    let at: Vec<f64> = found
        .iter()
        .map(|(k, _)| run.info.temperatures[*k])
        .collect();
    let says = found
        .first()
        .map(|(_, says)| format!("at T = {}: {says}", listed(&at)));
    Ok(says.map(|says| check("Sampler", Level::Look, says)))
}

/// The least effective number of draws at a temperature, of the bulk or of the tails.
fn least_ess(s: &Summary, k: usize) -> Option<(f64, &str)> {
    let both = [s.least_ess(k), s.least_tail_ess(k)];
    both.into_iter()
        .flatten()
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

/// A number, whose it is and at which temperature.
type Extreme<'a> = (f64, &'a str, f64);

/// The extreme R̂ and ESS over all temperatures, and where they are beyond their limits.
fn mixing(run: &Run, s: &Summary) -> [Check; 2] {
    let at = |k: usize, found: Option<(f64, &'_ str)>| -> Option<(f64, usize)> {
        found.map(|(x, _)| (x, k))
    };
    let count = s.temperatures.len();
    let r_hats: Vec<_> = (0..count).filter_map(|k| at(k, s.worst_r_hat(k))).collect();
    let sizes: Vec<_> = (0..count).filter_map(|k| at(k, least_ess(s, k))).collect();
    let set = |(_, k): &(f64, usize)| s.temperatures[*k];
    let over: Vec<_> = r_hats
        .iter()
        .filter(|(r, _)| *r > MOST_R_HAT)
        .map(set)
        .collect();
    let under: Vec<_> = sizes
        .iter()
        .filter(|(n, _)| *n < LEAST_ESS)
        .map(set)
        .collect();
    let worst = r_hats
        .into_iter()
        .reduce(|a, b| if b.0 > a.0 { b } else { a });
    let least = sizes
        .into_iter()
        .reduce(|a, b| if b.0 < a.0 { b } else { a });
    let worst = worst.and_then(|(_, k)| {
        s.worst_r_hat(k)
            .map(|(r, name)| (r, name, s.temperatures[k]))
    });
    let least =
        least.and_then(|(_, k)| least_ess(s, k).map(|(n, name)| (n, name, s.temperatures[k])));
    [r_hat(run, worst, &over), ess(least, &under)]
}

/// Of the largest R̂, and the temperatures at which it is too large.
fn r_hat(run: &Run, worst: Option<Extreme>, over: &[f64]) -> Check {
    let what = "R̂";
    match worst.filter(|(r, ..)| !r.is_nan()) {
        None if run.info.chains < 2 => check(
            what,
            Level::Open,
            "a chain alone cannot be compared with others",
        ),
        None => check(
            what,
            Level::Open,
            "not known: too few draws, or constant ones",
        ),
        Some((r, name, _)) if r <= MOST_R_HAT => {
            let says = format!("at most {r:.3} ({name}); up to {MOST_R_HAT} the chains agree");
            check(what, Level::Good, says)
        }
        Some((r, name, t)) => {
            let says = format!(
                "the chains disagree: {r:.3} ({name}, T = {})",
                temperature(t)
            );
            let level = if r > RELAXED.0 {
                Level::Bad
            } else {
                Level::Look
            };
            check(
                what,
                level,
                says + also(&format!("above {MOST_R_HAT}"), over).as_str(),
            )
        }
    }
}

/// Of the least effective number of draws, and the temperatures at which there are too few.
fn ess(least: Option<Extreme>, under: &[f64]) -> Check {
    let what = "ESS";
    match least.filter(|(n, ..)| !n.is_nan()) {
        None => check(what, Level::Open, "not known: too few draws"),
        Some((n, name, t)) if n >= LEAST_ESS => {
            let says = format!(
                "at least {n:.0} effective draws ({name}, T = {})",
                temperature(t)
            );
            check(what, Level::Good, says)
        }
        Some((n, name, t)) => {
            let says = format!(
                "only {n:.0} effective draws ({name}, T = {})",
                temperature(t)
            );
            let also = also(&format!("below {LEAST_ESS}"), under);
            let level = if n < RELAXED.1 {
                Level::Bad
            } else {
                Level::Look
            };
            check(
                what,
                level,
                format!("{says}{also}: error bars are too small"),
            )
        }
    }
}

/// Where else it is so; nothing if it is in one place.
fn also(what: &str, temperatures: &[f64]) -> String {
    match temperatures.len() {
        0 | 1 => String::new(),
        _ => format!("; {what} at T = {}", listed(temperatures)),
    }
}

fn finished(run: &Run, done: bool) -> Check {
    let steps = run.info.steps;
    match done {
        true => check("Finished", Level::Good, format!("all {steps} steps")),
        false => check(
            "Finished",
            Level::Look,
            format!(
                "unfinished at step {} of {steps}, with {} of {} draws each; {}",
                run.least_step(),
                run.draws_so_far(),
                run.info.draws,
                goes_on(&run.folder)
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
        let says = format!(
            "{elsewhere} of {all} chains are in other shards, and not included in these numbers"
        );
        out.push(check("Shard", Level::Look, says));
    }
    out
}

/// What the tests of the law say, at all temperatures.
fn law(run: &Run, s: &Summary) -> Check {
    let what = "Law";
    let at = |which: &dyn Fn(usize) -> bool| -> Vec<f64> {
        let all = 0..s.temperatures.len();
        all.filter(|k| which(*k))
            .map(|k| s.temperatures[k])
            .collect()
    };
    let wrong = at(&|k| s.judgements[k].verdict == Verdict::Wrong);
    if !wrong.is_empty() {
        let first = s.judgements.iter().find(|j| j.verdict == Verdict::Wrong);
        let says = format!(
            "wrong at T = {}: {}",
            listed(&wrong),
            first.map_or(String::new(), |j| j.reasons.join(", "))
        );
        return check(what, Level::Bad, says);
    }
    let tests: usize = s.judgements.iter().map(|j| j.tests.len()).sum();
    if tests == 0 {
        let why = match run.info.steady {
            false => "not tested: the temperature changes",
            true => "not tested",
        };
        return check(what, Level::Open, why);
    }
    let off = at(&|k| {
        let j = &s.judgements[k];
        j.tests.iter().any(|test| test.fails(j.of))
    });
    if !off.is_empty() {
        let says = format!(
            "tests fail at T = {}, where chains still relax",
            listed(&off)
        );
        return check(what, Level::Look, says);
    }
    let undecided = at(&|k| s.thermometers[k].verdict == Heat::Undecided);
    if !undecided.is_empty() && !run.info.exact {
        let says = format!("error bars too wide to tell at T = {}", listed(&undecided));
        return check(what, Level::Open, says);
    }
    let power = s.judgements.iter().filter_map(|j| {
        let virial = j.tests.iter().find(|test| test.name == "virial")?;
        Some(virial.power(j.of))
    });
    let power = power.fold(0.0, f64::max);
    let off = percent(power);
    match power > 1.0 && !run.info.exact {
        true => {
            let says = format!(
                "none of {tests} tests failed, but they would only have detected a temperature off by {off}"
            );
            check(what, Level::Open, says)
        }
        false => {
            let says = format!(
                "none of {tests} tests failed; a temperature off by {off} would have been detected"
            );
            check(what, Level::Good, says)
        }
    }
}

/// Whether an estimate of a learning coefficient is one.
fn convergence_of(saved: &Saved) -> Check {
    let listed = saved.estimate.get("reasons").and_then(|r| r.as_array());
    let reasons: Vec<_> = listed
        .into_iter()
        .flatten()
        .filter_map(|r| r.as_str())
        .collect();
    let word = saved.word("verdict");
    let level = match word {
        "converged" => Level::Good,
        "wrong" => Level::Bad,
        "not yet" => Level::Look,
        // Of an earlier version, which did not say.
        _ => return check("Estimate", Level::Open, "not judged"),
    };
    let says = match reasons.is_empty() {
        true => word.to_string(),
        false => format!("{word}: {}", reasons.join("; ")),
    };
    check("Estimate", level, says)
}

/// That of a learning coefficient, around w0.
fn thermometer_of(saved: &Saved) -> Check {
    let says = format!(
        "the virial temperature around w0 is {} (set to 1): {}",
        with_error(saved.number("virial"), saved.number("virial_mcse")),
        saved.word("thermometer_verdict")
    );
    let level = match saved.word("thermometer_verdict") {
        "agrees" => Level::Good,
        "hot" | "cold" => Level::Bad,
        _ => Level::Open,
    };
    check("Thermometer", level, says)
}

fn ladder(l: &LadderReport) -> Vec<Check> {
    let reasons = l.judged().reasons;
    if reasons.is_empty() {
        let says = format!(
            "{} round trips in {} swaps; Λ = {}",
            l.round_trips,
            l.sweeps,
            with_error(l.barrier.0, l.barrier.1)
        );
        return vec![check("Ladder", Level::Good, says)];
    }
    let each = reasons.into_iter();
    each.map(|w| check("Ladder", Level::Look, w)).collect()
}

pub fn of_training(t: &Trained, done: bool) -> Vec<Check> {
    let epoch = |c| t.column("epoch", c).ok().and_then(|e| e.last().copied());
    let reached = (0..t.history.len()).map(|c| epoch(c).unwrap_or(0.0));
    let reached = reached.fold(f64::INFINITY, f64::min);
    vec![match done {
        true => check("Finished", Level::Good, format!("{reached:.0} epochs")),
        false => check(
            "Finished",
            Level::Look,
            format!("unfinished at epoch {reached:.0}; {}", goes_on(&t.folder)),
        ),
    }]
}

pub fn of_populations(s: &Smc, done: bool) -> Vec<Check> {
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
            let says = format!("unfinished {at}; {GOES_ON}");
            check("Finished", Level::Look, says)
        }
    }];
    if !done {
        return out;
    }
    let reasons = s.judged().reasons;
    if reasons.is_empty() {
        let says = format!("{} agree within their scatter", s.ln_z.len());
        out.push(check("Populations", Level::Good, says));
    }
    let each = reasons.into_iter();
    out.extend(each.map(|w| check("Populations", Level::Look, w)));
    out
}

pub fn of_curve(c: &Curve) -> Vec<Check> {
    let (done, all) = (c.points.len(), c.count);
    let mut out = vec![match c.record.done {
        true => check("Finished", Level::Good, format!("all {all} points")),
        false => check(
            "Finished",
            Level::Look,
            format!("{done} of {all} points; {GOES_ON}"),
        ),
    }];
    let open = c.points.iter().filter(|p| p.verdict != Verdict::Converged);
    out.push(match c.reasons().first() {
        None => check("Estimates", Level::of(c.verdict()), "all have converged"),
        Some(first) => check(
            "Estimates",
            Level::of(c.verdict()),
            format!("{} of {done} have not converged; {first}", open.count()),
        ),
    });
    out
}

/// The same of a benchmark.
pub fn of_benchmark(b: &Benchmark) -> Vec<Check> {
    let all = b.problems.len() * b.step_sizes.iter().map(Vec::len).sum::<usize>();
    let failed = b.cells.iter().filter(|c| c.estimate.is_none()).count();
    let mut out = vec![match b.cells.len() >= all {
        true => check("Finished", Level::Good, format!("all {all} cells")),
        false => check(
            "Finished",
            Level::Look,
            format!("{} of {all} cells; {GOES_ON}", b.cells.len()),
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
