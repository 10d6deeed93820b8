//! The job of a run: chains step until they come to the next look or to the end, are saved on the way, and looked at.

use super::draws::{self, Keeper};
use super::exchange::Ladders;
use super::job::{Job, Record, Standing};
use super::look::{self, Judge, Look};
use super::resume::{self, saving};
use super::run::{Meta, Run, RunInfo, TEMPERED_ENERGY};
use super::session::Session;
use super::sharding::StateBuilder;
use super::state::State;
use super::stepping::Shared;
use super::threads::Workers;
use crate::error::{EveryChainFailed, Result};
use crate::ranks::{agree, any};
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint::{self, Tensors};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A run that goes on.
pub(super) struct Sampling<'a> {
    pub run: Shared<'a>,
    /// The chains of this process.
    pub state: State,
    pub workers: Workers<'a>,
    pub maker: StateBuilder<'a>,
    pub info: RunInfo,
    /// What is watched, and where it is in a record.
    pub watched: Option<(String, usize)>,
    /// How it is judged whether it goes on.
    pub judge: &'a Judge<'a>,
    /// What the last look has found.
    pub seen: Option<Look>,
}

impl Sampling<'_> {
    /// Keep draws in this folder, if the plan keeps any; `leads` describes them.
    fn keep_in(&mut self, folder: &Path, leads: bool) -> Result<()> {
        let plan = self.run.plan;
        // Ranks write into the same files, each its own chains.
        let shared = self.run.ranks.size() > 1;
        let own = match shared {
            false => self.state.index.clone(),
            true => (0..plan.temperatures.len() * plan.chains).collect(),
        };
        self.run.keeper = Keeper::of(plan, self.run.target, folder, own, shared)?;
        match self.run.keeper.as_ref().filter(|_| leads) {
            Some(keeper) => keeper.describe(&self.info.temperatures),
            None => Ok(()),
        }
    }

    /// Fail if draws that were kept are not there: their files must not be made again without them. `ended` says that the run had ended.
    fn check_kept(&self, ended: bool) -> Result<()> {
        let (state, Some(keeper)) = (&self.state, &self.run.keeper) else {
            return Ok(());
        };
        let more = self.going() || self.goes_on();
        if !keeper.is_there() && !more {
            return Ok(());
        }
        let made = |c: usize| match &state.failures[c] {
            Some(failed) => failed.step.saturating_sub(1),
            None => state.steps[c],
        };
        // Where chains change their temperatures all are as far.
        let least = (0..state.chains).map(made).min().unwrap_or(0);
        let made = |c| state.ladders.as_ref().map_or_else(|| made(c), |_| least);
        let chains = || (0..state.chains).map(|c| (state.index[c], made(c)));
        keeper.check_files(chains())?;
        match ended && more {
            true => keeper.go_on(chains()),
            false => Ok(()),
        }
    }

    /// Whether a chain of this process is on its way to the next look, or to the end.
    fn going(&self) -> bool {
        let (state, end) = (&self.state, self.run.end);
        (0..state.chains).any(|c| state.failures[c].is_none() && state.steps[c] < end)
    }

    /// Whether it goes on after the last look.
    fn goes_on(&self) -> bool {
        self.info.course.is_some() && self.seen.is_none_or(|seen| !seen.over)
    }

    /// Look, once all chains of all processes have come to it, and go on if something is missing.
    fn look(&mut self) -> Result<()> {
        let Some(course) = self.info.course.filter(|_| self.goes_on()) else {
            return Ok(());
        };
        if any(self.run.ranks, self.going())? {
            return Ok(());
        }
        let (ranks, plan, end) = (self.run.ranks, self.run.plan, self.run.end);
        // Asked of all processes alike: one whose own chains have failed must not leave the others waiting.
        if !any(ranks, self.state.failures.iter().any(Option::is_none))? {
            self.seen = Some(Look::NOTHING);
            return Ok(());
        }
        let mut whole = None;
        if self.state.chains < plan.temperatures.len() * plan.chains {
            whole = self.maker.whole(&mut self.state, ranks)?;
        }
        let numbers = match (&whole, ranks.rank()) {
            (None, 1..) => Ok(Vec::new()),
            _ => {
                let state = whole.as_ref().unwrap_or(&self.state);
                look::look((plan, &self.info, state), &course.until, end, self.judge)
                    .map(|look| look.numbers().to_vec())
            }
        };
        let numbers = ranks.all_gather(&agree(ranks, numbers)?)?;
        let mut seen = Look::of(&numbers[0])?;
        seen.over |= end >= plan.steps;
        if seen.over {
            self.info.steps = end;
            if let (Some(kept), Some(keep)) = (&mut self.info.kept, &plan.keep) {
                let up_to = |step| keep.steps.partition_point(|s| *s <= step);
                kept.draws = up_to(end) - up_to(self.info.burn_in);
            }
        } else {
            if seen.drifts {
                self.end_burn_in(end)?;
            }
            self.run.end = plan.look_from(end + 1);
        }
        self.info.draws = plan.every.count(self.info.steps) - self.info.warm_draws;
        self.seen = Some(seen);
        Ok(())
    }

    /// Let draws count from this step on, to which all chains have come: what is summed over them begins again, and the virial is taken around where the
    /// chains are.
    fn end_burn_in(&mut self, step: u64) -> Result<()> {
        (self.info.burn_in, self.info.warm_draws) = (step, self.run.plan.every.count(step));
        self.run.predicts_after = step;
        let (run, state) = (&self.run, &mut self.state);
        self.workers.fetch(run, state)?;
        state.predictions.fill(0.0);
        state.recentre(&run.sampler.scalars);
        if let Some(ladders) = &mut state.ladders {
            ladders.begin_again()?;
        }
        self.workers.store(state)
    }
}

impl Kept for Sampling<'_> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        self.state.keep(archive)
    }
}

impl Job for Sampling<'_> {
    type Output = Arc<Run>;

    fn name(&self) -> &str {
        &self.run.plan.name
    }

    fn size(&self) -> (&'static str, u64) {
        let chains = self.run.plan.temperatures.len() * self.run.plan.chains;
        ("chain-steps", self.run.plan.steps * chains as u64)
    }

    fn is_divided(&self) -> bool {
        true
    }

    fn standing(&self) -> Standing {
        let state = &self.state;
        let mean = |at| state.last_mean(at, self.run.width);
        let expected = self.seen.filter(|s| s.expected.is_finite() && !s.over);
        let expected = expected.map_or(self.run.end, |s| s.expected as u64);
        let all = (self.run.plan.temperatures.len() * self.run.plan.chains) as u64;
        Standing {
            done: state.steps.iter().sum(),
            failed: state.failures.iter().flatten().count(),
            more: self.going() || self.goes_on(),
            expected: expected.clamp(self.run.end, self.run.plan.steps) * all,
            said: self.seen.map(|seen| seen.says()),
            watched: self
                .watched
                .as_ref()
                .map(|(name, at)| (name.clone(), mean(*at))),
        }
    }

    fn place(&self) -> String {
        let (state, steps) = (&self.state, self.run.plan.steps);
        let healthy = (0..state.chains).filter(|c| state.failures[*c].is_none());
        let least = healthy.map(|c| state.steps[c]).min();
        format!("at step {} of {steps}", least.unwrap_or(0))
    }

    fn begin(&mut self, folder: &Path, record: &mut Record, session: &Session) -> Result<()> {
        let removed = match session.leads() {
            true => draws::remove(folder),
            false => Ok(()),
        };
        agree(&*session.ranks, removed)?;
        let Some(shards) = session.merge else {
            self.keep_in(folder, session.leads())?;
            return self.workers.advance(&self.run, &mut self.state, None);
        };
        let (state, notes) = (&mut self.state, &mut record.notes);
        record.seconds = self
            .maker
            .merge(state, shards, &self.info, session, notes)?;
        // Only now is it known that all shards are there.
        self.keep_in(folder, true)?;
        if let Some(keeper) = &self.run.keeper {
            for number in 0..shards {
                let (folder, chains) = self.maker.shard(number, shards, session);
                keeper.merge(&folder, &chains)?;
            }
        }
        self.workers.store(&self.state)
    }

    fn advance(&mut self, until: Instant) -> Result<()> {
        self.workers
            .advance(&self.run, &mut self.state, Some(until))?;
        self.look()
    }

    fn check(&self, folder: &Path, meta: &Value) -> Result<()> {
        let meta = resume::meta_of(folder, meta.clone())?;
        resume::check(folder, &meta.info, &self.info)
    }

    fn restore(&mut self, tensors: Tensors, meta: &Value, folder: &Path) -> Result<()> {
        let meta = resume::meta_of(folder, meta.clone())?;
        self.maker.restore(&mut self.state, tensors, &meta)?;
        // Another rank may lead: what it wrote is there.
        self.keep_in(folder, false)?;
        // Before the others have come as far, and write.
        let ended = self.run.keeper.as_ref().is_some_and(Keeper::has_ended);
        self.workers.store(&self.state)?;
        if self.info.course.is_some() {
            let step = meta.info.burn_in;
            (self.info.burn_in, self.info.warm_draws) = (step, self.run.plan.every.count(step));
            self.run.predicts_after = step;
        }
        let healthy = (0..self.state.chains).filter(|c| self.state.failures[*c].is_none());
        let furthest = healthy.map(|c| self.state.steps[c]).max().unwrap_or(0);
        let all = self.run.ranks.all_gather(&[furthest as f64])?;
        let furthest = all.iter().flatten().copied().fold(0.0, f64::max);
        self.run.end = self.run.plan.look_from(furthest as u64);
        // What had ended has, unless more is asked for now.
        self.look()?;
        self.check_kept(ended)
    }

    fn save(&mut self, folder: &Path, record: &Record, _: &Session) -> Result<()> {
        let (run, state) = (&self.run, &mut self.state);
        self.workers.fetch(run, state)?;
        if let Some(keeper) = &run.keeper {
            // What a checkpoint counts as kept must be on the disk before it.
            keeper.sync()?;
        }
        if let Some(ladders) = &mut state.ladders {
            if record.done {
                ladders.note_paths(run.plan.every.count(run.end));
            }
            self.info.temperatures.clone_from(&ladders.temperatures);
        }
        let mut whole;
        let all = match state.chains == run.plan.temperatures.len() * run.plan.chains {
            true => state,
            false => {
                whole = self.maker.whole(state, run.ranks)?;
                match &mut whole {
                    Some(whole) => whole,
                    None => return Ok(()),
                }
            }
        };
        let meta = Meta {
            info: self.info.clone(),
            notes: record.notes.clone(),
            scores: match record.done {
                true => all.scores(run.predictors, &self.info.temperatures),
                false => Vec::new(),
            },
            failures: all.failures.clone(),
            seconds: record.seconds,
            done: record.done,
            share: record.share,
        };
        let meta = serde_json::to_value(meta)?;
        checkpoint::save(
            &folder.join("checkpoint"),
            &meta,
            &Archive::of(all)?.tensors(),
        )
    }

    fn finish(mut self, folder: &Path, _: Record, session: &Session) -> Result<Arc<Run>> {
        let (keeper, end) = (self.run.keeper.take(), self.run.end);
        // Its records are read from the disk: they must not be there twice.
        drop(self);
        let Some((run, _)) = Run::load(folder)? else {
            anyhow::bail!("{}: this folder belongs to a training", folder.display())
        };
        let write = || {
            if let Some(keeper) = keeper.as_ref().filter(|k| k.is_there()) {
                keeper.describe_up_to(end, run.info.burn_in, &run.info.temperatures)?;
                draws::check_files(folder, Some(&run))?;
            }
            run.write()
        };
        let written = match session.leads() {
            true => saving(write(), folder, session),
            false => Ok(()),
        };
        agree(&*session.ranks, written)?;
        survived(run)
    }

    fn opens(&self) -> bool {
        true
    }
}

/// What to show of a run while it goes on: a name, and where it is in a record.
pub(super) fn watched(info: &RunInfo) -> Option<(String, usize)> {
    const NAMES: [&str; 5] = [
        "cost",
        "energy",
        TEMPERED_ENERGY,
        "loss.train",
        "minibatch_loss",
    ];
    let at = |name: &str| info.column(name).ok().map(|(at, _)| (name.to_string(), at));
    NAMES.iter().find_map(|name| at(name))
}

/// A finished run; an error if no chain survived.
fn survived(run: Run) -> Result<Arc<Run>> {
    let all = run.failures.iter().all(Option::is_some);
    // A replica that has failed stays on its rung: without any swap there is no ladder.
    let stuck = |l: &Ladders| l.sweeps > 0 && l.going().next().is_none();
    match run.failures.iter().flatten().next() {
        Some(f) if all || run.ladders.as_ref().is_some_and(stuck) => Err(EveryChainFailed {
            run: run.info.name.clone(),
            reason: format!("{} at step {}", f.reason, f.step),
            what: if all { "chain" } else { "ladder" },
        }
        .into()),
        _ => Ok(Arc::new(run)),
    }
}
