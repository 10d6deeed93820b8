//! Runs that go on until their chains have converged: what is asked of them, when they are looked at, and what is seen.
//!
//! A look is taken at steps that are known beforehand, when all chains have come there, and what it finds follows from the records alone. So a run
//! ends at the same step whatever the number of threads and however often it was interrupted, and its draws are those of a run that was told to take
//! that many steps.

use super::exchange::Ladders;
use super::judge::Mixing;
use super::plan::Plan;
use super::run::{Column, Group, Run, RunInfo};
use super::state::State;
use super::summary::Summary;
use crate::diagnostic::verdict::{LEAST_ESS, MOST_R_HAT};
use crate::diagnostic::{Verdict, drift};
use crate::engine::report::GRADIENT_LOSS;
use crate::error::Result;
use crate::options::{Kind, OptionMap, Options, Range, Spec, Value, option, optional};
use crate::trigger::Trigger;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Looks while the number of steps doubles.
const PER_DOUBLING: f64 = 3.0;

/// Steps up to the first look, where nothing is said.
pub(super) const FIRST: u64 = 1000;

/// How much longer than its first look a run may be, where nothing is said.
const AT_MOST: u64 = 100;

/// Standard errors by which the beginning of the draws differs from their end where the chains had not equilibrated.
const DRIFTS: f64 = 4.0;

const ENTRIES: &[Spec] = &[
    option(
        "rhat",
        Kind::Float(Range::Within {
            low: (1.0, false),
            high: (f64::INFINITY, false),
        }),
        "1.01",
        "Largest R̂ of an observable.",
    ),
    option(
        "ess",
        Kind::Float(Range::Positive),
        "400",
        "Least effective number of draws of an observable, in the bulk and in the tails.",
    ),
    optional(
        "at_most",
        Kind::Int(Range::Between(1.0, 1e14)),
        "100 times `steps`",
        "Steps per chain, burn-in included, after which it ends in any case.",
    ),
];

/// The option `until`.
pub(super) const UNTIL: Spec = optional(
    "until",
    Kind::Map(ENTRIES),
    "it ends after `steps`",
    "Go on after `steps` until nothing is missing at any temperature: R̂ and ESS of every observable reach these numbers, and the error of the thermometer and the \
     round trips of a ladder are what *converged* asks for. `#{}` takes the numbers of the verdict. It is looked at after `steps` steps, and each time that there are a quarter more. Draws \
     are those of one run of that length. `burn_in` counts from `steps`, and samplers adapt during it; where a look finds that the beginning of the draws differs from their end, by more than \
     four standard errors, burn-in ends at that look. A run that has ended goes on with `resume` and a larger `at_most`.",
);

/// Until when a run goes on: `Until { ess: 1000.0, ..Until::default() }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Largest R̂.
    pub rhat: f64,
    /// Least effective number of draws, in the bulk and in the tails.
    pub ess: f64,
    /// Steps per chain after which it ends in any case; none for a hundred times its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

impl Default for Until {
    fn default() -> Self {
        Self {
            rhat: MOST_R_HAT,
            ess: LEAST_ESS,
            at_most: None,
        }
    }
}

impl From<Until> for Value {
    fn from(until: Until) -> Self {
        let entries = OptionMap::new()
            .with("rhat", until.rhat)
            .with("ess", until.ess);
        match until.at_most {
            Some(steps) => entries.with("at_most", steps).into(),
            None => entries.into(),
        }
    }
}

impl Until {
    /// From the option, if it is given, with a limit that is known; `steps` are those up to the first look.
    pub(super) fn from_options(o: &Options, steps: u64) -> Result<Option<Self>> {
        let Some(entries) = o.map(UNTIL.name, ENTRIES)? else {
            return Ok(None);
        };
        let given = entries.opt_int("at_most");
        let at_most = given.unwrap_or(steps.saturating_mul(AT_MOST));
        anyhow::ensure!(
            at_most >= steps,
            "{}: option 'until' has the entry 'at_most', which is {at_most}, but the first look is after {steps} steps (option 'steps')",
            o.owner()
        );
        Ok(Some(Self {
            rhat: entries.float("rhat")?,
            ess: entries.float("ess")?,
            at_most: Some(at_most),
        }))
    }

    /// The same with so many times as many steps at most.
    pub(super) fn times(self, factor: u64) -> Self {
        Self {
            at_most: self.at_most.map(|steps| steps.saturating_mul(factor)),
            ..self
        }
    }

    /// Whether nothing is missing of these.
    fn satisfied(&self, mixing: &Mixing) -> bool {
        mixing.missing_of(self.rhat, self.ess).is_empty()
    }
}

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "until R̂ ≤ {} and ESS ≥ {}", self.rhat, self.ess)?;
        self.at_most
            .map_or(Ok(()), |n| write!(f, ", at most {n} steps"))
    }
}

impl std::fmt::Display for Course {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "it went on {}; samplers adapted for {} steps",
            self.until, self.burn_in
        )
    }
}

/// What a run that goes on keeps of its looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// What is asked of it.
    pub until: Until,
    /// Steps up to the first look.
    pub first: u64,
    /// Steps of burn-in that it was told to make, in which samplers adapt; more may have been found.
    pub burn_in: u64,
}

impl Plan {
    /// The step of the first look that is not before this one; the last is at the last step.
    pub(super) fn look_from(&self, step: u64) -> u64 {
        let Some(course) = &self.course else {
            return self.steps;
        };
        let unit = match self.every {
            Trigger::Every(n) => n,
            Trigger::Cyclical { cycle, .. } => cycle,
            Trigger::At(_) | Trigger::Logarithmic { .. } => 1,
        };
        let look = |k: u32| {
            let steps = course.first as f64 * (f64::from(k) / PER_DOUBLING).exp2();
            (steps.round() as u64).div_ceil(unit).saturating_mul(unit)
        };
        let looks = std::iter::once(course.first).chain((1..).map(look));
        let mut later = looks.map(|s| s.min(self.steps));
        later
            .find(|s| *s >= step.min(self.steps))
            .unwrap_or(self.steps)
    }
}

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    /// Whether nothing is missing that more steps would bring.
    pub over: bool,
    /// Whether the beginning of the draws differs from their end.
    pub drifts: bool,
    /// The largest R̂, and the least effective number of draws.
    pub mixing: (f64, f64),
    /// About how many steps it takes in all; NaN if that is not known.
    pub expected: f64,
}

impl Look {
    /// As numbers, for other processes.
    pub fn numbers(&self) -> [f64; 5] {
        let flag = |x: bool| f64::from(u8::from(x));
        let (r_hat, ess) = self.mixing;
        [
            flag(self.over),
            flag(self.drifts),
            r_hat,
            ess,
            self.expected,
        ]
    }

    /// From these.
    pub fn of(numbers: &[f64]) -> Result<Self> {
        let [over, drifts, r_hat, ess, expected] = numbers[..] else {
            anyhow::bail!("the first process said nothing of its look at the run");
        };
        Ok(Self {
            over: over > 0.0,
            drifts: drifts > 0.0,
            mixing: (r_hat, ess),
            expected,
        })
    }

    /// `R̂ 1.034, ESS 210`.
    pub fn says(&self) -> String {
        let (r_hat, ess) = self.mixing;
        match self.drifts {
            true => "still in burn-in".into(),
            false => format!("R̂ {r_hat:.3}, ESS {ess:.0}"),
        }
    }
}

/// What is seen of a run at one temperature.
pub(crate) struct Seen {
    /// R̂ and ESS.
    pub mixing: Mixing,
    /// Whether something else is missing that more steps would bring.
    pub lacks: bool,
    /// Whether more steps are of no use.
    pub wrong: bool,
}

/// How a verb judges its run.
pub(crate) type Judge<'a> = dyn Fn(&Arc<Run>) -> Result<Vec<Seen>> + 'a;

/// The judgement of every temperature.
pub(crate) fn by_observables(run: &Arc<Run>) -> Result<Vec<Seen>> {
    let summary = Summary::new(run)?;
    let both = summary.mixing.into_iter().zip(summary.judgements);
    Ok(both
        .map(|(mixing, judgement)| Seen {
            lacks: judgement.open,
            wrong: judgement.verdict == Verdict::Wrong,
            mixing,
        })
        .collect())
}

/// Look at a run whose chains have all come to `end`.
pub(super) fn look(
    (plan, info, state): (&Plan, &RunInfo, &State),
    until: &Until,
    end: u64,
    judge: &Judge,
) -> Result<Look> {
    let run = Arc::new(snapshot(plan, info, state, end));
    let seen = judge(&run)?;
    let done = |s: &Seen| s.wrong || until.satisfied(&s.mixing) && !s.lacks;
    let factor = |s: &Seen| s.mixing.factor_to(until.rhat, until.ess);
    let factors: Option<Vec<f64>> = seen.iter().filter(|s| !done(s)).map(factor).collect();
    let most = factors.map_or(f64::NAN, |f| f.into_iter().fold(1.0, f64::max));
    let r_hats = seen.iter().map(|s| s.mixing.r_hat.0);
    let sizes = seen.iter().map(|s| s.mixing.bulk.0.min(s.mixing.tail.0));
    let drifts = run.drifts()?;
    Ok(Look {
        over: !drifts && seen.iter().all(done),
        drifts,
        mixing: (
            r_hats.fold(f64::NAN, f64::max),
            sizes.fold(f64::NAN, f64::min),
        ),
        expected: info.burn_in as f64 + (end - info.burn_in) as f64 * most,
    })
}

/// A run as it is now.
fn snapshot(plan: &Plan, info: &RunInfo, state: &State, end: u64) -> Run {
    let mut ladders: Option<Ladders> = state.ladders.clone();
    if let Some(ladders) = &mut ladders {
        ladders.note_paths(plan.every.count(end));
    }
    let temperatures = match &ladders {
        Some(ladders) => ladders.temperatures.clone(),
        None => info.temperatures.clone(),
    };
    let params = state.params.chunks_exact(state.dim);
    let mut run = Run {
        info: RunInfo {
            temperatures,
            steps: end,
            draws: plan.every.count(end) - info.warm_draws,
            ..info.clone()
        },
        folder: Default::default(),
        records: state.records.clone(),
        failures: state.failures.clone(),
        params: params.map(|w| Arc::new(w.to_vec())).collect(),
        steps: state.steps.clone(),
        scores: Vec::new(),
        ladders,
        notes: Vec::new(),
        seconds: 0.0,
        origin: None,
    };
    run.sort_by_rung();
    run
}

impl Run {
    /// Whether the first tenth of the draws differs from their last half, in an observable at a temperature.
    fn drifts(&self) -> Result<bool> {
        let own = |c: &Column| self.info.kind == "llc" && c.name == GRADIENT_LOSS.0;
        let scalar = |c: &&Column| (c.group == Group::Posterior || own(c)) && c.width() == 1;
        for column in self.info.columns.iter().filter(scalar) {
            for t in 0..self.info.temperatures.len() {
                let traces = self.independent(self.draws(&column.name, 0, t, true)?);
                if drift(&traces).abs() > DRIFTS {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_a_quarter_apart_and_the_last_one_is_at_the_end() {
        let course = Course {
            until: Until::default(),
            first: 1000,
            burn_in: 500,
        };
        let plan = Plan {
            course: Some(course),
            every: Trigger::Every(100),
            ..Plan::bare("sample", (1, None), 5000, 1)
        };
        let mut looks = vec![plan.look_from(0)];
        while looks.last().is_some_and(|l| *l < plan.steps) {
            looks.push(plan.look_from(looks[looks.len() - 1] + 1));
        }
        assert_eq!(looks, [1000, 1300, 1600, 2000, 2600, 3200, 4000, 5000]);
        assert_eq!(plan.look_from(1600), 1600);
        assert_eq!(plan.look_from(9999), 5000);
        let fixed = Plan {
            course: None,
            ..plan
        };
        assert_eq!(fixed.look_from(0), 5000);
    }
}
