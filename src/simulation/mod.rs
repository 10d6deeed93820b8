//! Simulations: the one loop that moves chains, records them and saves them.
//!
//! [`run`] works for any sampler and any number of chains: tune → step → record → checkpoint, each behind its trigger. Chains
//! run in parallel, one thread each; threads always take up the chain that is furthest behind. Results do not depend on the
//! number of threads or on interruptions, because nothing but the state and the counters of the random streams enters a step.

pub mod benchmark;
pub mod compare;
mod course;
mod export;
pub mod llc;
mod lockstep;
pub mod optimizer;
pub mod plan;
mod prediction;
pub mod progress;
mod resume;
pub mod run;
pub mod session;
pub mod state;
pub mod summary;
pub mod train;
pub mod validate;

use crate::engine::Chains;
use crate::error::{EveryChainFailed, Interrupted, Result};
use crate::kernels::device::Device;
use crate::kernels::update::dot;
use crate::observable::{Known, View};
use crate::rng::MAX_CHAINS;
use crate::sampler::Configured;
use crate::target::{Target, Workspace};
use lockstep::Lockstep;
use plan::{Plan, Starts};
use prediction::Predictor;
use progress::Progress;
use resume::resume;
use run::{Meta, Run, save_checkpoint};
use session::Session;
use state::{Slot, State};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the threads of a run share.
struct Shared<'a> {
    plan: &'a Plan,
    target: &'a Target,
    sampler: &'a Configured,
    /// Numbers per record.
    width: usize,
    starts: &'a Starts,
    /// Posterior predictions that are averaged.
    predictors: Vec<Predictor<'a>>,
    /// |w|² above which a chain has left its region, per chain.
    limits: Vec<f64>,
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
    let columns = plan.columns(target, sampler, &predictors)?;
    let width = columns.iter().map(run::Column::width).sum();
    let predictions = predictors.iter().map(Predictor::width).sum();
    plan.check_size(target, sampler, session, (width, predictions))?;
    let folder = session.folder(&plan.name);
    let starts = plan.starts(target)?;
    let mut state = State::new(&starts, target, sampler, &predictors);
    let info = plan.info(target, sampler, columns, &state.params, session)?;
    let limits = plan.limits(&state);
    let mut seconds = 0.0;
    let mut fresh = true;
    if let Some(meta) = resume(&folder, &info, &mut state, sampler, session)? {
        if meta.done {
            return finish(&folder);
        }
        seconds = meta.seconds;
        fresh = false;
    }
    let shared = Shared {
        plan,
        target,
        sampler,
        width: info.width(),
        starts: &starts,
        predictors,
        limits,
    };
    let device = session.open_device()?;
    let mut place = Place::new(&shared, device.as_deref(), &state, session.threads)?;
    let begin = Instant::now();
    let save = |place: &mut Place, state: &mut State, done: bool| -> Result<()> {
        place.fetch(state)?;
        let seconds = seconds + begin.elapsed().as_secs_f64();
        let scores = match done {
            true => state.scores(&shared.predictors, &info.temperatures),
            false => Vec::new(),
        };
        let meta = Meta {
            info: info.clone(),
            scores,
            failures: state.failures.clone(),
            seconds,
            done,
        };
        save_checkpoint(&folder, &meta, &state.tensors(sampler))
    };
    if fresh {
        place.advance(&shared, &mut state, None)?;
        save(&mut place, &mut state, false)?;
    }
    let progress = Progress::new(
        &plan.name,
        "chain-steps",
        plan.steps * chains as u64,
        session.quiet,
        state.steps.iter().sum(),
    );
    let mut saved = Instant::now();
    loop {
        let left = (0..chains).any(|c| state.failures[c].is_none() && state.steps[c] < plan.steps);
        if !left {
            break;
        }
        if session::interrupted() {
            save(&mut place, &mut state, false)?;
            progress.finish();
            let least = state.steps.iter().min().copied().unwrap_or(0);
            let what = format!(
                "'{}' at step {least} of {}; continue with --resume",
                plan.name, plan.steps
            );
            return Err(Interrupted { what }.into());
        }
        if saved.elapsed().as_secs_f64() >= session.checkpoint_every {
            save(&mut place, &mut state, false)?;
            saved = Instant::now();
        }
        let slice = Duration::from_secs_f64(session.checkpoint_every.clamp(0.01, 0.25));
        let until = Some(Instant::now() + slice);
        place.advance(&shared, &mut state, until)?;
        progress.set(
            state.steps.iter().sum(),
            state.failures.iter().flatten().count(),
        );
    }
    progress.finish();
    save(&mut place, &mut state, true)?;
    finish(&folder)
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
    let columns = plan.columns(target, sampler, &[])?;
    let starts = plan.starts(target)?;
    let mut state = State::new(&starts, target, sampler, &[]);
    let info = plan.info(target, sampler, columns, &state.params, session)?;
    let shared = Shared {
        plan,
        target,
        sampler,
        width: info.width(),
        starts: &starts,
        predictors: Vec::new(),
        limits: plan.limits(&state),
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
    Ok(Run {
        info,
        folder: Default::default(),
        records: state.records,
        failures: state.failures,
        params: Vec::new(),
        steps: state.steps,
        scores: Vec::new(),
        seconds: begin.elapsed().as_secs_f64(),
    })
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
        if device.is_some() || shared.sampler.couples() {
            let lockstep = Lockstep::new(shared, device, state, threads)?;
            return Ok(Self::Together(Box::new(lockstep)));
        }
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

/// One workspace per chain that can step at a time; the threads that are left over share in their gradients.
fn workspaces(chains: usize, threads: usize) -> Vec<Workspace> {
    let count = threads.clamp(1, chains);
    let share = |i: usize| threads / count + usize::from(i < threads % count);
    (0..count).map(|i| Workspace::new(share(i))).collect()
}

/// The finished run, with its traces, weights and record on disk; an error if no chain survived.
fn finish(folder: &std::path::Path) -> Result<Arc<Run>> {
    let Some((run, _)) = Run::load(folder)? else {
        anyhow::bail!("{}: this folder belongs to a training", folder.display())
    };
    run.write()?;
    match run.failures.iter().flatten().next() {
        Some(f) if run.failures.iter().all(Option::is_some) => Err(EveryChainFailed {
            run: run.info.name.clone(),
            reason: format!("{} at step {}", f.reason, f.step),
        }
        .into()),
        _ => Ok(Arc::new(run)),
    }
}

/// Let every chain run until `deadline`; without one, prepare the chains for their first step instead.
fn advance(
    shared: &Shared,
    state: &mut State,
    work: &mut [Workspace],
    deadline: Option<Instant>,
) -> Result<()> {
    let slots = state.slots(shared.plan);
    let waiting = Mutex::new(slots);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let take = || {
        let mut waiting = waiting.lock().unwrap_or_else(|e| e.into_inner());
        if deadline.is_none() {
            return waiting.pop();
        }
        let ready = waiting
            .iter()
            .enumerate()
            .filter(|(_, s)| s.failure.is_none() && *s.steps < shared.plan.steps);
        let next = ready
            .min_by_key(|(_, s)| (*s.steps, s.chain.index))
            .map(|(i, _)| i);
        next.map(|i| waiting.swap_remove(i))
    };
    let body = |work: &mut Workspace| {
        while deadline.is_none_or(|d| Instant::now() < d)
            && !(deadline.is_some() && session::interrupted())
            && let Some(mut slot) = take()
        {
            let result = match deadline {
                None => shared.prepare(&mut slot, work),
                // Short turns keep the chains together and the threads busy to the end.
                Some(d) => shared.turn(
                    &mut slot,
                    work,
                    d.min(Instant::now() + Duration::from_millis(20)),
                ),
            };
            if let Err(e) = result {
                failed
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .get_or_insert(e);
                return;
            }
            if deadline.is_some() {
                waiting.lock().unwrap_or_else(|e| e.into_inner()).push(slot);
            }
        }
    };
    match work {
        [only] => body(only),
        many => std::thread::scope(|s| {
            for w in many {
                s.spawn(|| body(w));
            }
        }),
    }
    match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(e) => Err(e),
        None => Ok(()),
    }
}

impl Shared<'_> {
    fn temperature(&self, chain: usize, step: u64) -> f64 {
        self.plan.temperatures[chain / self.plan.chains].at(step)
    }

    fn prepare(&self, slot: &mut Slot, work: &mut Workspace) -> Result<()> {
        slot.chain.temperature = self.temperature(slot.chain.index, 0);
        if session::interrupted() {
            let what = format!("'{}' before its first step", self.plan.name);
            return Err(Interrupted { what }.into());
        }
        let mut info = vec![0.0; slot.info_sums.len()];
        let init = |chains: &mut Chains| self.sampler.init(chains);
        if let Some(reason) = slot.chain.lend(self.target, work, &mut info, init)? {
            slot.fail(reason);
        }
        Ok(())
    }

    /// Step one chain until `until`, at least once.
    fn turn(&self, slot: &mut Slot, work: &mut Workspace, until: Instant) -> Result<()> {
        let sampler = self.sampler;
        let mut info = vec![0.0; slot.info_sums.len()];
        let virial = sampler.info.iter().position(|n| *n == "virial");
        loop {
            slot.chain.temperature = self.temperature(slot.chain.index, slot.chain.step);
            let step = |chains: &mut Chains| sampler.step(chains);
            if let Some(reason) = slot.chain.lend(self.target, work, &mut info, step)? {
                slot.fail(reason);
                return Ok(());
            }
            slot.chain.step += 1;
            *slot.steps = slot.chain.step;
            slot.info_sums
                .iter_mut()
                .zip(&info)
                .for_each(|(s, i)| *s += i);
            *slot.info_count += 1;
            // The virial touches every parameter and every component of the gradient: one number tells of any NaN.
            if virial.is_some_and(|v| !info[v].is_finite()) {
                slot.fail("met a number that is not finite");
                return Ok(());
            }
            if self.plan.every.fires(slot.chain.step) {
                slot.chain.temperature = self.temperature(slot.chain.index, slot.chain.step);
                self.record(slot, work, Known::default())?;
                if slot.failure.is_some() {
                    return Ok(());
                }
            }
            if slot.chain.step == self.plan.burn_in {
                // What the sampler reported in burn-in must not enter the first record after it.
                slot.info_sums.fill(0.0);
                *slot.info_count = 0;
            }
            if slot.chain.step >= self.plan.steps
                || Instant::now() >= until
                || session::interrupted()
            {
                return Ok(());
            }
        }
    }

    fn record(&self, slot: &mut Slot, work: &mut Workspace, known: Known) -> Result<()> {
        let square = dot(slot.chain.w, slot.chain.w);
        if square.is_nan() || square > self.limits[slot.chain.index] {
            slot.fail(format!("left its region: |w| = {:.3e}", square.sqrt()));
            return Ok(());
        }
        let count = (*slot.info_count).max(1) as f64;
        let info: Vec<f64> = slot.info_sums.iter().map(|s| s / count).collect();
        slot.info_sums.fill(0.0);
        *slot.info_count = 0;
        let mut row = vec![f64::NAN; self.width];
        let sampler = self.sampler;
        let mut view = View {
            chain: &slot.chain,
            vector_names: &sampler.vectors,
            info: (&sampler.info, &info),
            batch: sampler.batch(),
            start: &|| self.starts.of(slot.chain.index, self.target),
            target: self.target,
            work,
            known,
        };
        let mut at = 0;
        for o in &self.plan.observables {
            let width = o.components(self.target).map_or(1, |(_, l)| l.len());
            o.measure(&mut view, &mut row[at..at + width])?;
            at += width;
        }
        if slot.chain.step > self.plan.burn_in {
            let mut rest = &mut *slot.predictions;
            for p in &self.predictors {
                let (sums, after) = rest.split_at_mut(p.width());
                p.update(sums, slot.chain.w, slot.chain.temperature)?;
                let now = p.now(sums, slot.chain.temperature);
                row[at..at + now.len()].copy_from_slice(&now);
                at += now.len();
                rest = after;
            }
        }
        let at = self.width - info.len();
        row[at..].copy_from_slice(&info);
        slot.records.extend_from_slice(&row);
        Ok(())
    }
}
