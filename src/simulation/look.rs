//! Looks at a run that goes on until its chains have converged.
//!
//! A look is taken at steps that are known beforehand, when all chains have come there, and what it finds follows from the records alone. So a run
//! ends at the same step whatever the number of threads and however often it was interrupted, and its draws are those of a run that was told to take
//! that many steps.

use super::exchange::Ladders;
use super::judge::Mixing;
use super::plan::Plan;
use super::run::{Run, RunInfo};
use super::state::State;
use super::summary::Summary;
use super::until::Until;
use crate::engine::report::GRADIENT_LOSS;
use crate::error::Result;
use std::sync::Arc;

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
    /// At a run whose chains have all failed: it is over.
    pub const NOTHING: Self = Self {
        over: true,
        drifts: false,
        mixing: (f64::NAN, f64::NAN),
        expected: f64::NAN,
    };

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
    let done = |s: &Seen| s.mixing.missing_of(until.rhat, until.ess).is_empty() && !s.lacks;
    let factor = |s: &Seen| s.mixing.factor_to(until.rhat, until.ess);
    let factors: Option<Vec<f64>> = seen.iter().filter(|s| !done(s)).map(factor).collect();
    let most = factors.map_or(f64::NAN, |f| f.into_iter().fold(1.0, f64::max));
    let r_hats = seen.iter().map(|s| s.mixing.r_hat.0);
    let sizes = seen.iter().map(|s| s.mixing.bulk.0.min(s.mixing.tail.0));
    // A learning coefficient need not have observables.
    let reports = match &*info.kind {
        "llc" => &[GRADIENT_LOSS][..],
        _ => &[],
    };
    let drifts = (0..run.info.temperatures.len()).map(|t| run.drifts(t, reports));
    let drifts = drifts.collect::<Result<Vec<_>>>()?.contains(&true);
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

/// A run as it is now, without its parameters, which may fill most of the memory.
fn snapshot(plan: &Plan, info: &RunInfo, state: &State, end: u64) -> Run {
    let mut ladders: Option<Ladders> = state.ladders.clone();
    if let Some(ladders) = &mut ladders {
        ladders.note_paths(plan.every.count(end));
    }
    let temperatures = match &ladders {
        Some(ladders) => ladders.temperatures.clone(),
        None => info.temperatures.clone(),
    };
    let mut run = Run {
        info: RunInfo {
            temperatures,
            steps: end,
            start_spread: None,
            draws: plan.every.count(end) - info.warm_draws,
            ..info.clone()
        },
        folder: Default::default(),
        records: state.records.clone(),
        failures: state.failures.clone(),
        params: Vec::new(),
        steps: state.steps.clone(),
        scores: Vec::new(),
        ladders,
        notes: Vec::new(),
        seconds: 0.0,
        origin: None,
        of_source: Vec::new(),
        whole: false,
    };
    run.sort_by_rung();
    run
}
