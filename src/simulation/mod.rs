//! Simulations: the one loop that moves chains, records them and saves them.
//!
//! [`run`] works for any sampler and any number of chains: tune → step → exchange → record → checkpoint, each behind its trigger.
//! Chains run in parallel, one thread each; threads always take up the chain that is furthest behind. Chains that
//! [exchange](mod@exchange) temperatures wait for each other where they swap. Results do not depend on the number of threads or on
//! interruptions, because nothing but the state and the counters of the random streams enters a step.

pub mod benchmark;
pub mod compare;
pub mod console;
mod course;
pub mod evidence;
pub mod exchange;
mod export;
pub mod health;
pub mod judge;
pub mod llc;
mod lockstep;
mod object;
pub mod optimizer;
pub mod parts;
pub mod plan;
pub mod prediction;
pub mod progress;
mod resume;
pub mod run;
pub mod session;
pub mod smc;
pub mod standing;
pub mod state;
pub mod summary;
pub mod terminal;
mod threads;
pub mod train;
mod turn;
pub mod validate;
pub mod verbs;
pub mod verify;

use crate::error::{EveryChainFailed, Interrupted, Result};
use crate::kernels::device::Device;
use crate::ranks::{Alone, Ranks, agree, any};
use crate::rng::MAX_CHAINS;
use crate::sampler::Configured;
use crate::target::{Target, Workspace};
use exchange::Ladders;
use lockstep::Lockstep;
use parts::{Maker, Part};
use plan::{Plan, Starts};
use prediction::Predictor;
use progress::Progress;
use resume::{resume, saving};
use run::{Meta, Run, RunInfo, TEMPERED_ENERGY, save_checkpoint};
use session::Session;
use state::State;
use std::sync::Arc;
use std::time::{Duration, Instant};
use threads::{advance, workspaces};

/// Examples × parameters × steps between two swaps below which one thread moves all replicas.
const WORTH_A_THREAD: u64 = 10_000;

/// What the threads of a run share.
struct Shared<'a> {
    plan: &'a Plan,
    target: &'a Target,
    sampler: &'a Configured,
    /// Numbers per record.
    width: usize,
    starts: &'a Starts,
    /// Posterior predictions that are averaged.
    predictors: &'a [Predictor<'a>],
    /// |w|² above which a chain has left its region, per chain of the run.
    limits: Vec<f64>,
    /// Those that move the other chains.
    ranks: &'a dyn Ranks,
}

/// Run a plan to its end, or until it is interrupted; then its checkpoint is on disk.
pub fn run(
    plan: &Plan,
    target: &Target,
    sampler: &Configured,
    session: &Session,
) -> Result<Arc<Run>> {
    sampler.check(target)?;
    let chains = plan.temperatures.len() * plan.chains;
    anyhow::ensure!(
        chains < MAX_CHAINS,
        "{}: {chains} chains are more than {MAX_CHAINS}",
        plan.kind
    );
    let predictors = plan.predictors(target)?;
    let starts = plan.starts(target)?;
    let columns = plan.columns(target, sampler, &predictors, &starts)?;
    let width = columns.iter().map(run::Column::width).sum();
    let predictions = predictors.iter().map(Predictor::width).sum();
    plan.check_size(target, sampler, session, (width, predictions))?;
    let folder = agree(&*session.ranks, session.begin(&plan.name))?;
    let ranks = &*session.ranks;
    let maker = Maker {
        plan,
        target,
        sampler,
        predictors: &predictors,
        part: Part::of(plan, sampler, session)?,
    };
    let mut state = maker.start(&starts)?;
    let mut info = plan.info(target, sampler, columns, Some(&starts), session)?;
    let (watched, width) = (watched(&info), info.width());
    let limits = plan.limits(&state, target);
    let mut seconds = 0.0;
    let mut notes = Vec::new();
    let mut fresh = true;
    if let Some(meta) = agree(ranks, resume(&folder, &info, &mut state, &maker, session))? {
        if meta.done {
            return finish(&folder, session);
        }
        (seconds, notes) = (meta.seconds, meta.notes);
        fresh = false;
    } else if let Some(shards) = session.merge {
        seconds = maker.merge(&mut state, shards, &info, session, &mut notes)?;
        fresh = false;
    }
    let shared = Shared {
        plan,
        target,
        sampler,
        width: info.width(),
        starts: &starts,
        predictors: &predictors,
        limits,
        ranks,
    };
    let device = session.open_device()?;
    let mut place = Place::new(&shared, device.as_deref(), &state, session.threads)?;
    let begin = Instant::now();
    let mut save = |place: &mut Place, state: &mut State, done: bool| -> Result<()> {
        place.fetch(state)?;
        if let Some(ladders) = &mut state.ladders {
            if done {
                ladders.note_paths(plan.every.count(plan.steps));
            }
            info.temperatures.clone_from(&ladders.temperatures);
        }
        let here = state.chains == chains;
        let whole = match here {
            true => None,
            false => maker.whole(state, ranks)?,
        };
        let written = match whole.as_ref().or(here.then_some(&*state)) {
            None => Ok(()),
            Some(all) => {
                let scores = match done {
                    true => all.scores(&predictors, &info.temperatures),
                    false => Vec::new(),
                };
                let meta = Meta {
                    info: info.clone(),
                    notes: notes.clone(),
                    scores,
                    failures: all.failures.clone(),
                    seconds: seconds + begin.elapsed().as_secs_f64(),
                    done,
                };
                let numbers = all.ladder_numbers();
                let written = save_checkpoint(&folder, &meta, &all.tensors(sampler, &numbers));
                saving(written, &folder, session)
            }
        };
        // A disk that is full on one rank stops all of them.
        agree(ranks, written)
    };
    if fresh {
        let prepared = place.advance(&shared, &mut state, None);
        if any(ranks, prepared.as_ref().is_err_and(Interrupted::is))? {
            let what = format!("'{}' before its first step", plan.name);
            return Err(Interrupted { what }.into());
        }
        agree(ranks, prepared)?;
        save(&mut place, &mut state, false)?;
    }
    let progress = Progress::new(
        session,
        &plan.name,
        "chain-steps",
        plan.steps * chains as u64,
        state.steps.iter().sum(),
    );
    let mut records = 0;
    let mut saved = Instant::now();
    loop {
        let left = |c: usize| state.failures[c].is_none() && state.steps[c] < plan.steps;
        let news = [
            f64::from(u8::from((0..state.chains).any(left))),
            f64::from(u8::from(session::interrupted())),
            f64::from(u8::from(
                session.leads() && saved.elapsed().as_secs_f64() >= session.checkpoint_every,
            )),
            state.steps.iter().sum::<u64>() as f64,
            state.failures.iter().flatten().count() as f64,
        ];
        let all = ranks.all_gather(&news)?;
        let some = |k: usize| all.iter().any(|n| n[k] > 0.0);
        let sum = |k: usize| all.iter().map(|n| n[k]).sum::<f64>() as u64;
        let made: usize = state.records.iter().map(Vec::len).sum();
        if let Some((name, at)) = &watched
            && std::mem::replace(&mut records, made) != made
        {
            progress.watch(name, state.last_mean(*at, width));
        }
        progress.set(sum(3), sum(4) as usize);
        if !some(0) {
            break;
        }
        if some(1) {
            save(&mut place, &mut state, false)?;
            progress.finish();
            let least = state.steps.iter().min().copied().unwrap_or(0);
            let what = format!(
                "'{}' at step {least} of {}; {}",
                plan.name,
                plan.steps,
                session.goes_on(Some(&folder))
            );
            return Err(Interrupted { what }.into());
        }
        if some(2) {
            save(&mut place, &mut state, false)?;
            saved = Instant::now();
        }
        let slice = Duration::from_secs_f64(session.checkpoint_every.clamp(0.01, 0.25));
        let until = Some(Instant::now() + slice);
        // What did not end when it was interrupted is lost, with what came after the last checkpoint.
        place.advance(&shared, &mut state, until).map_err(|e| {
            let Some(Interrupted { what }) = e.downcast_ref() else {
                return e;
            };
            let on = session.goes_on(Some(&folder));
            let what = format!("'{}': {what}; its last checkpoint is kept: {on}", plan.name);
            Interrupted { what }.into()
        })?;
    }
    progress.finish();
    save(&mut place, &mut state, true)?;
    finish(&folder, session)
}

/// What to show of a run while it goes on: a name, and where it is in a record.
fn watched(info: &RunInfo) -> Option<(String, usize)> {
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

/// Run a plan to its end in memory: nothing is written, and an interruption loses it.
pub(crate) fn unsaved(
    plan: &Plan,
    target: &Target,
    sampler: &Configured,
    session: &Session,
    threads: usize,
) -> Result<Run> {
    sampler.check(target)?;
    let starts = plan.starts(target)?;
    let columns = plan.columns(target, sampler, &[], &starts)?;
    let mut state = plan.state((0..starts.count).collect(), target, sampler, &[])?;
    state.start(&starts, target);
    let info = plan.info(target, sampler, columns, None, session)?;
    let shared = Shared {
        plan,
        target,
        sampler,
        width: info.width(),
        starts: &starts,
        predictors: &[],
        limits: plan.limits(&state, target),
        ranks: &Alone,
    };
    let mut place = Place::new(&shared, None, &state, threads)?;
    let begin = Instant::now();
    place.advance(&shared, &mut state, None)?;
    while (0..state.chains).any(|c| state.failures[c].is_none() && state.steps[c] < plan.steps) {
        if session::interrupted() {
            let what = format!("'{}' within a run", plan.name);
            return Err(Interrupted { what }.into());
        }
        let until = Instant::now() + Duration::from_millis(200);
        place.advance(&shared, &mut state, Some(until))?;
    }
    if let Some(ladders) = &mut state.ladders {
        ladders.note_paths(plan.every.count(plan.steps));
    }
    let params = state.params.chunks_exact(state.dim);
    let mut run = Run {
        info,
        folder: Default::default(),
        params: params.map(|w| Arc::new(w.to_vec())).collect(),
        records: state.records,
        failures: state.failures,
        steps: state.steps,
        scores: Vec::new(),
        ladders: state.ladders,
        notes: Vec::new(),
        seconds: begin.elapsed().as_secs_f64(),
        origin: None,
    };
    run.sort_by_rung();
    Ok(run)
}

/// Where the chains step.
enum Place<'a> {
    /// Each for itself, on this machine's threads.
    Here(Vec<Workspace>),
    /// All together, on an accelerator or here.
    Together(Box<Lockstep<'a>>),
}

impl<'a> Place<'a> {
    /// On the session's device.
    fn new(
        shared: &'a Shared<'a>,
        device: Option<&'a dyn Device>,
        state: &State,
        threads: usize,
    ) -> Result<Self> {
        anyhow::ensure!(
            device.is_none() || shared.plan.exchange.is_none() || shared.ranks.size() == 1,
            "{}: a ladder on an accelerator runs in one process; use --device cpu under mpirun, or one process",
            shared.plan.kind
        );
        if (device.is_some() || shared.sampler.couples()) && state.chains > 0 {
            let lockstep = Lockstep::new(shared, device, state, threads)?;
            return Ok(Self::Together(Box::new(lockstep)));
        }
        // Where chains wait for each other at every swap, handing them from thread to thread must be worth it.
        let per_swap = shared.plan.exchange.as_ref().map_or(u64::MAX, |x| {
            let size = shared.target.examples() * shared.target.dim();
            x.every.saturating_mul(size as u64)
        });
        let threads = if per_swap < WORTH_A_THREAD {
            1
        } else {
            threads
        };
        Ok(Self::Here(workspaces(state.chains, threads)))
    }

    /// Bring the chains back to this machine's memory.
    fn fetch(&mut self, state: &mut State) -> Result<()> {
        match self {
            Self::Here(_) => Ok(()),
            Self::Together(l) => l.fetch(state),
        }
    }

    /// Threads, and how many of them have a chain of their own.
    fn threads(&self) -> (usize, usize) {
        match self {
            Self::Here(work) => (work.iter().map(|w| w.team.size()).sum(), work.len()),
            Self::Together(_) => (0, 0),
        }
    }

    /// Rows whose gradient was computed on this machine.
    fn rows(&self) -> u64 {
        match self {
            Self::Here(work) => work.iter().map(|w| w.rows).sum(),
            Self::Together(_) => 0,
        }
    }

    /// Let every chain run until `deadline`; without one, prepare the chains for their first step instead.
    fn advance(
        &mut self,
        shared: &Shared,
        state: &mut State,
        deadline: Option<Instant>,
    ) -> Result<()> {
        match (self, deadline) {
            (Self::Here(work), _) => advance(shared, state, work, deadline),
            (Self::Together(l), None) => l.prepare(state),
            (Self::Together(l), Some(until)) => l.advance(state, until),
        }
    }
}

/// The finished run, with its traces, weights and record on disk; an error if no chain survived.
fn finish(folder: &std::path::Path, session: &Session) -> Result<Arc<Run>> {
    let Some((run, _)) = Run::load(folder)? else {
        anyhow::bail!("{}: this folder belongs to a training", folder.display())
    };
    let written = match session.leads() {
        true => saving(run.write(), folder, session),
        false => Ok(()),
    };
    agree(&*session.ranks, written)?;
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
