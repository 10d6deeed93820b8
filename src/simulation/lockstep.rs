//! Runs whose chains step together: on an accelerator, or because their sampler couples them. They come back to the state when
//! something is recorded or saved.

use super::Shared;
use super::session;
use super::state::State;
use crate::engine::batched::Batched;
use crate::engine::group::Group;
use crate::engine::{Chains, Member, Resident, Vector};
use crate::error::{Interrupted, Result};
use crate::kernels::device::Device;
use crate::observable::Known;
use crate::target::Workspace;
use std::time::Instant;

/// All chains of a run.
pub(super) struct Lockstep<'a> {
    shared: &'a Shared<'a>,
    engine: Box<dyn Resident + 'a>,
    members: Vec<Member>,
    work: Workspace,
}

impl<'a> Lockstep<'a> {
    /// Put the state on a device; without one, in this machine's memory.
    pub fn new(
        shared: &'a Shared<'a>,
        device: Option<&'a dyn Device>,
        state: &State,
        threads: usize,
    ) -> Result<Self> {
        let (vectors, slots) = (shared.sampler.vectors.len(), shared.sampler.info.len());
        let (target, chains) = (shared.target, state.chains);
        let mut engine: Box<dyn Resident> = match device {
            Some(d) => Box::new(Batched::new(d, target, chains, vectors, slots)?),
            None => Box::new(Group::new(target, chains, vectors, slots, threads)),
        };
        engine.write(Vector::Params, &state.params)?;
        for (k, v) in state.vectors.iter().enumerate() {
            engine.write(Vector::State(k), v)?;
        }
        engine.set_info(&state.info_sums)?;
        let member = |index| Member {
            index,
            group: index / shared.plan.chains,
            temperature: f64::NAN,
            failure: None,
        };
        Ok(Self {
            shared,
            engine,
            members: state.index.iter().copied().map(member).collect(),
            work: Workspace::new(threads),
        })
    }

    /// Steps done by the chains that go on.
    fn steps(state: &State) -> Option<u64> {
        let going = (0..state.chains).filter(|c| state.failures[*c].is_none());
        going.map(|c| state.steps[c]).min()
    }

    fn with_chains(
        &mut self,
        state: &mut State,
        step: u64,
        f: impl FnOnce(&mut Chains) -> Result<()>,
    ) -> Result<()> {
        for (m, failure) in self.members.iter_mut().zip(&state.failures) {
            m.temperature = self.shared.temperature(m.index, step);
            // Also chains that failed at a record, or before an interruption, are out for their sampler.
            m.failure = failure.as_ref().map(|f| f.reason.clone());
        }
        f(&mut Chains {
            engine: &mut *self.engine,
            members: &mut self.members,
            scalars: &mut state.scalars,
            step,
            burn_in: self.shared.plan.burn_in,
            losses: None,
            seed: self.shared.plan.seed,
        })?;
        for (i, m) in self.members.iter().enumerate() {
            if let Some(reason) = &m.failure {
                state.fail(i, step, reason);
            }
        }
        Ok(())
    }

    /// Prepare the chains for their first step.
    pub fn prepare(&mut self, state: &mut State) -> Result<()> {
        if session::interrupted() {
            let what = format!("'{}' before its first step", self.shared.plan.name);
            return Err(Interrupted { what }.into());
        }
        let sampler = self.shared.sampler;
        self.with_chains(state, 0, |chains| sampler.init(chains))
    }

    /// Let all chains run until `deadline`. They stay in the engine; see [`Lockstep::fetch`].
    pub fn advance(&mut self, state: &mut State, deadline: Instant) -> Result<()> {
        let (sampler, plan) = (self.shared.sampler, self.shared.plan);
        while let Some(step) = Self::steps(state).filter(|s| *s < plan.steps) {
            self.with_chains(state, step, |chains| sampler.step(chains))?;
            let done = step + 1;
            for c in (0..state.chains).filter(|c| state.failures[*c].is_none()) {
                state.steps[c] = done;
                state.info_counts[c] += 1;
            }
            if plan.every.fires(done) {
                self.record(state)?;
            }
            if done == plan.burn_in {
                // What the sampler reported in burn-in must not enter the first record after it.
                state.info_sums.fill(0.0);
                self.engine.set_info(&state.info_sums)?;
                state.info_counts.fill(0);
            }
            if Instant::now() >= deadline || session::interrupted() {
                break;
            }
        }
        Ok(())
    }

    /// Bring parameters, the sampler's vectors and what it reported back.
    pub fn fetch(&mut self, state: &mut State) -> Result<()> {
        self.engine.download(Vector::Params, &mut state.params)?;
        for (k, v) in state.vectors.iter_mut().enumerate() {
            self.engine.download(Vector::State(k), v)?;
        }
        state.info_sums = self.engine.info()?;
        Ok(())
    }

    /// Mark the chains that met a number that is not finite, as the sums of what they reported tell. Only at records, so that it does
    /// not depend on when a checkpoint was made.
    fn judge(&self, state: &mut State) {
        let info = &self.shared.sampler.info;
        if let Some(v) = info.iter().position(|n| *n == "virial") {
            for c in 0..state.chains {
                if !state.info_sums[c * info.len() + v].is_finite() && state.failures[c].is_none() {
                    state.fail(c, state.steps[c], "met a number that is not finite");
                }
            }
        }
    }

    /// Make a record of every chain, with the losses that it needs computed by the engine, where it can.
    fn record(&mut self, state: &mut State) -> Result<()> {
        self.fetch(state)?;
        self.judge(state);
        let mut known = vec![Known::default(); state.chains];
        let wanted = self
            .shared
            .plan
            .observables
            .iter()
            .filter_map(|o| o.split());
        let mut splits: Vec<_> = wanted.collect();
        splits.sort_unstable();
        splits.dedup();
        for split in splits {
            let Some((sums, rows)) = self.engine.split_sums(split)? else {
                continue;
            };
            for (c, sums) in sums.into_iter().enumerate() {
                let w = &state.params[c * state.dim..(c + 1) * state.dim];
                known[c].note(self.shared.target, split, w, sums, rows);
            }
        }
        let slots = state.slots(self.shared.plan, None, &(0..0));
        for (mut slot, known) in slots.into_iter().zip(known) {
            if slot.failure.is_none() {
                slot.chain.temperature = self.shared.temperature(slot.chain.index, slot.chain.step);
                self.shared.record(&mut slot, &mut self.work, known)?;
            }
        }
        self.engine.set_info(&state.info_sums)?;
        Ok(())
    }
}
