//! Runs in memory: nothing of them is written, and an interruption loses them unless a job keeps their numbers.

use super::plan::{Plan, Starts};
use super::run::{Failure, Run, RunInfo};
use super::session::Session;
use super::state::State;
use super::stepping::Shared;
use super::threads::Workers;
use crate::error::{Interrupted, Result};
use crate::kernels::device::Device;
use crate::ranks::SingleProcess;
use crate::sampler::ConfiguredSampler;
use crate::store::archive::{Archive, Kept};
use crate::target::Target;
use std::time::{Duration, Instant};

/// What is run in memory: a plan, a target, a sampler, the session that can stop it, and the number of threads.
pub(crate) type Subject<'a> = (
    &'a Plan,
    &'a Target,
    &'a ConfiguredSampler,
    &'a Session,
    usize,
);

/// A run in memory that goes on.
pub(crate) struct InMemory {
    info: RunInfo,
    starts: Starts,
    /// See [`Shared::limits`].
    limits: Vec<f64>,
    state: State,
    seconds: f64,
}

impl InMemory {
    /// A run whose chains are ready for their first step.
    pub fn new(of: Subject) -> Result<Self> {
        let (plan, target, sampler, session, _) = of;
        sampler.check(target)?;
        let starts = plan.starts(target)?;
        let columns = plan.columns(target, sampler, &[], &starts)?;
        let mut state = plan.state((0..starts.count).collect(), target, sampler, &[])?;
        state.start(&starts, target);
        let info = plan.info(target, sampler, columns, None, session)?;
        let mut out = Self {
            info,
            limits: plan.limits(&state, target),
            starts,
            state,
            seconds: 0.0,
        };
        out.advance(of, None)?;
        Ok(out)
    }

    /// Go on until `until`, or an interruption; without it, prepare for the first step. Whether there is more to do.
    pub fn advance(&mut self, of: Subject, until: Option<Instant>) -> Result<bool> {
        let (plan, target, sampler, session, threads) = of;
        let placed = session.placed(target)?;
        let of = (plan, &*placed.target, sampler, session, threads);
        self.advance_on(of, placed.devices.as_deref(), until)
    }

    fn advance_on(
        &mut self,
        of: Subject,
        devices: Option<&[Box<dyn Device>]>,
        until: Option<Instant>,
    ) -> Result<bool> {
        let (plan, target, sampler, session, threads) = of;
        let (begin, state) = (Instant::now(), &mut self.state);
        let shared = Shared {
            plan,
            target,
            sampler,
            slots: sampler.slots(target),
            width: self.info.width(),
            starts: &self.starts,
            predictors: &[],
            limits: self.limits.clone(),
            keeper: None,
            end: plan.steps,
            predicts_after: plan.burn_in,
            ranks: &SingleProcess,
            interrupt: &session.interrupt,
        };
        Workers::new(&shared, devices, state, threads)?.advance(&shared, state, until)?;
        self.seconds += begin.elapsed().as_secs_f64();
        let going = |c: usize| state.failures[c].is_none() && state.steps[c] < plan.steps;
        Ok((0..state.chains).any(going))
    }

    /// Steps done, all chains together; one that has failed does no more.
    pub fn steps(&self) -> u64 {
        self.state.steps.iter().sum()
    }

    /// What a checkpoint says of it besides its numbers: which chains have failed, and seconds of computing.
    pub fn said(&self) -> (&[Option<Failure>], f64) {
        (&self.state.failures, self.seconds)
    }

    /// Take over what a checkpoint says of it.
    pub fn take(&mut self, (failures, seconds): (Vec<Option<Failure>>, f64)) {
        (self.state.failures, self.seconds) = (failures, seconds);
    }

    /// The run, finished.
    pub fn finish(self, plan: &Plan) -> Run {
        let mut state = self.state;
        if let Some(ladders) = &mut state.ladders {
            ladders.note_paths(plan.every.count(plan.steps));
        }
        let params = state.params.chunks_exact(state.dim);
        let mut run = Run {
            info: self.info,
            folder: Default::default(),
            params: params.map(|w| w.to_vec().into()).collect(),
            records: state.records,
            failures: state.failures,
            steps: state.steps,
            scores: Vec::new(),
            ladders: state.ladders,
            notes: Vec::new(),
            seconds: self.seconds,
            origin: None,
            of_source: Vec::new(),
            whole: false,
        };
        run.sort_by_rung();
        run
    }
}

impl Kept for InMemory {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        self.state.keep(archive)
    }
}

/// Run a plan to its end in memory.
///
/// # Errors
/// [`Interrupted`] after an interruption.
pub(crate) fn run_in_memory(of: Subject) -> Result<Run> {
    let (plan, target, sampler, session, threads) = of;
    let placed = session.placed(target)?;
    let of = (plan, &*placed.target, sampler, session, threads);
    let mut run = InMemory::new(of)?;
    let device = placed.devices.as_deref();
    // A device gets the data anew every time.
    let slice = Duration::from_millis(if device.is_some() { 5000 } else { 200 });
    while run.advance_on(of, device, Some(Instant::now() + slice))? {
        if session.interrupt.interrupted() {
            let what = format!("'{}' within a run", plan.name);
            return Err(Interrupted { what }.into());
        }
    }
    Ok(run.finish(plan))
}
