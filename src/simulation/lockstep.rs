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
use crate::rng::{Purpose, Stream};
use crate::sampler::Before;
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
        let (vectors, slots) = (
            shared.sampler.vectors.len(),
            shared.sampler.slots(shared.target),
        );
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
        let mut out = Self {
            shared,
            engine,
            members: state.index.iter().copied().map(member).collect(),
            work: Workspace::new(threads),
        };
        out.set_strengths(state)?;
        Ok(out)
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
        for (i, (m, failure)) in self.members.iter_mut().zip(&state.failures).enumerate() {
            m.temperature = match state.replicas.get(i) {
                Some(replica) => replica.held,
                None => self.shared.temperature(m.index, step),
            };
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
            law: None,
            seed: self.shared.plan.seed,
        })?;
        for (i, m) in self.members.iter().enumerate() {
            // What is stepped on the prior's rung, with the others, is drawn anew before anybody sees it.
            let drawn = state.ladders.as_ref().is_some_and(|l| {
                let rung = state.replicas[i].rung;
                l.temperatures[rung].is_infinite()
            });
            if let Some(reason) = m.failure.as_ref().filter(|_| !drawn) {
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
        if let Some(x) = self
            .shared
            .plan
            .exchange
            .as_ref()
            .filter(|x| x.minimise > 0)
        {
            for w in state.params.chunks_exact_mut(state.dim) {
                x.minimise(self.shared.target, w, &mut self.work)?;
            }
            self.engine.write(Vector::Params, &state.params)?;
        }
        self.with_chains(state, 0, |chains| sampler.init(chains))
    }

    /// The strength of the prior on the rung of each chain, where the likelihood alone is tempered.
    fn set_strengths(&mut self, state: &State) -> Result<()> {
        match &self.shared.plan.exchange {
            Some(_) if !self.shared.same_energy() => {
                let strengths: Vec<_> = state.replicas.iter().map(|r| r.held).collect();
                self.engine.set_prior_strengths(&strengths)
            }
            _ => Ok(()),
        }
    }

    /// Draw the parameters on the prior's rung, as after this step. The draws of different steps are independent of each other: those that
    /// nobody sees need not be made.
    fn draw_from_prior(&mut self, state: &mut State, done: u64) -> Result<()> {
        let Some(ladders) = &state.ladders else {
            return Ok(());
        };
        let target = self.shared.target;
        let info = self.shared.sampler.slots(target);
        let there = |i: &usize| ladders.temperatures[state.replicas[*i].rung].is_infinite();
        let redrawn: Vec<usize> = (0..state.chains).filter(there).collect();
        if redrawn.is_empty() {
            return Ok(());
        }
        self.engine.download(Vector::Params, &mut state.params)?;
        state.info_sums = self.engine.info()?;
        for i in redrawn {
            let chain = state.index[i];
            let stream = Stream::new(self.shared.plan.seed, Purpose::Prior, chain, done - 1);
            let w = &mut state.params[i * state.dim..(i + 1) * state.dim];
            target.prior().draw(&stream, w);
            state.replicas[i].redrawn = true;
            state.info_sums[i * info..(i + 1) * info].fill(f64::NAN);
        }
        self.engine.set_info(&state.info_sums)?;
        self.engine.write(Vector::Params, &state.params)
    }

    /// Swap temperatures after this step. Whether all processes shall pause.
    fn exchange(&mut self, state: &mut State, done: u64, pause: bool) -> Result<bool> {
        let (plan, sampler, ranks) = (self.shared.plan, self.shared.sampler, self.shared.ranks);
        let Some(exchange) = &plan.exchange else {
            return Ok(false);
        };
        let energies = self.engine.likelihoods_and_priors()?;
        state.info_sums = self.engine.info()?;
        for (replica, (likelihood, prior)) in state.replicas.iter_mut().zip(energies) {
            let energy = likelihood + if exchange.whole { prior } else { 0.0 };
            replica.energy = (done, energy);
        }
        let Some(mut ladders) = state.ladders.take() else {
            return Ok(false);
        };
        let made = (done, plan.every.count(done));
        let talk = |mine: &[f64]| ranks.all_gather(mine);
        let mut slots = state.slots(plan, Some(&ladders), &sampler.scalars_of_temperature());
        let paused = ladders.exchange(&mut slots, made, plan, exchange, (pause, &talk))?;
        drop(slots);
        self.engine.set_info(&state.info_sums)?;
        let same = self.shared.same_energy();
        let mut before = Vec::with_capacity(state.chains);
        let mut changed = false;
        for replica in &mut state.replicas {
            let arrived = replica.arrive(ladders.temperatures[replica.rung], same);
            changed |= arrived.is_some();
            before.push(arrived.unwrap_or(Before::nothing(replica.held)));
        }
        state.ladders = Some(ladders);
        self.set_strengths(state)?;
        if changed {
            self.with_chains(state, done, |chains| {
                sampler.change_temperature(chains, &before)
            })?;
        }
        Ok(paused)
    }

    /// Let all chains run until `deadline`. They stay in the engine; see [`Lockstep::fetch`].
    pub fn advance(&mut self, state: &mut State, deadline: Instant) -> Result<()> {
        let (sampler, plan) = (self.shared.sampler, self.shared.plan);
        while let Some(step) = Self::steps(state).filter(|s| *s < plan.steps) {
            let counts = sampler.samples(step);
            self.engine.listen(counts);
            self.with_chains(state, step, |chains| sampler.step(chains))?;
            let done = step + 1;
            for c in (0..state.chains).filter(|c| state.failures[*c].is_none()) {
                state.steps[c] = done;
                state.info_counts[c] += u64::from(counts);
            }
            let swap = match (&state.ladders, &plan.exchange) {
                (Some(l), Some(x)) => done == (l.sweeps + 1) * x.every && done < plan.steps,
                _ => false,
            };
            if swap || plan.every.fires(done) || done == plan.steps {
                self.draw_from_prior(state, done)?;
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
            let pause = Instant::now() >= deadline || session::interrupted();
            // Ranks whose replicas exchange stop where they meet, so that all of them do.
            let meet = state.ladders.is_some() && self.shared.ranks.size() > 1;
            let paused = swap && self.exchange(state, done, pause)?;
            let leave = if meet { paused } else { pause };
            if leave {
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
        let (info, width) = (
            &self.shared.sampler.info,
            self.shared.sampler.slots(self.shared.target),
        );
        if let Some(v) = info.iter().position(|n| *n == "virial") {
            for c in 0..state.chains {
                let prior = state.replicas.get(c).is_some_and(|r| r.redrawn);
                let finite = state.info_sums[c * width + v].is_finite();
                if !finite && !prior && state.failures[c].is_none() {
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
        let ladders = state.ladders.take();
        let slots = state.slots(self.shared.plan, ladders.as_ref(), &(0..0));
        for (mut slot, known) in slots.into_iter().zip(known) {
            if slot.failure.is_none() {
                if ladders.is_none() {
                    slot.chain.temperature =
                        self.shared.temperature(slot.chain.index, slot.chain.step);
                }
                self.shared.record(&mut slot, &mut self.work, known)?;
            }
        }
        state.ladders = ladders;
        self.engine.set_info(&state.info_sums)?;
        Ok(())
    }
}
