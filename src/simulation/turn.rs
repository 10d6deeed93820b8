//! What is done with one chain: prepared, stepped, brought to another temperature, recorded.

use super::state::Slot;
use super::{Shared, session};
use crate::engine::Chains;
use crate::error::{Interrupted, Result};
use crate::kernels::update::dot;
use crate::observable::{Known, View};
use crate::rng::{Purpose, Stream};
use crate::target::{Energies, Target, Workspace};
use std::borrow::Cow;
use std::time::Instant;

impl Shared<'_> {
    pub(super) fn temperature(&self, chain: usize, step: u64) -> f64 {
        self.plan.temperatures[chain / self.plan.chains].at(step)
    }

    /// Whether U is the same function at all temperatures.
    pub(super) fn same_energy(&self) -> bool {
        let whole = self.plan.exchange.as_ref().is_none_or(|x| x.whole);
        whole || self.target.prior().is_flat()
    }

    /// What a chain samples at its temperature: the target itself, unless its prior is not tempered with the likelihood.
    fn target_at(&self, temperature: f64) -> Cow<'_, Target> {
        match &self.plan.exchange {
            Some(x) if !x.whole && temperature.is_finite() => self.target.tempered(temperature),
            _ => Cow::Borrowed(self.target),
        }
    }

    pub(super) fn prepare(&self, slot: &mut Slot, work: &mut Workspace) -> Result<()> {
        match &slot.replica {
            Some(replica) => slot.chain.temperature = replica.held,
            None => slot.chain.temperature = self.temperature(slot.chain.index, 0),
        }
        if session::interrupted() {
            let what = format!("'{}' before its first step", self.plan.name);
            return Err(Interrupted { what }.into());
        }
        if let Some(x) = self.plan.exchange.as_ref().filter(|x| x.minimise > 0) {
            x.minimise(self.target, slot.chain.w, work)?;
        }
        let mut info = vec![0.0; slot.info_sums.len()];
        let init = |chains: &mut Chains| self.sampler.init(chains);
        let target = self.target_at(slot.chain.temperature);
        if let Some(reason) = slot.chain.lend(&target, work, &mut info, init)? {
            slot.fail(reason);
        }
        Ok(())
    }

    /// Step one chain until `until`, at least once, but not beyond step `stop`.
    pub(super) fn turn(
        &self,
        slot: &mut Slot,
        work: &mut Workspace,
        stop: u64,
        until: Instant,
    ) -> Result<()> {
        let sampler = self.sampler;
        let mut info = vec![0.0; slot.info_sums.len()];
        let virial = sampler.info.iter().position(|n| *n == "virial");
        let target = self.target_at(slot.chain.temperature);
        self.arrive(slot, &target, work, &mut info)?;
        while slot.failure.is_none() {
            if slot.replica.is_none() {
                slot.chain.temperature = self.temperature(slot.chain.index, slot.chain.step);
            }
            let has_likelihood = slot.chain.temperature.is_finite();
            if has_likelihood {
                let step = |chains: &mut Chains| sampler.step(chains);
                if let Some(reason) = slot.chain.lend(&target, work, &mut info, step)? {
                    slot.fail(reason);
                    return Ok(());
                }
            } else {
                let (chain, seed) = (slot.chain.index, slot.chain.seed);
                let stream = Stream::new(seed, Purpose::Prior, chain, slot.chain.step);
                target.prior().draw(&stream, slot.chain.w);
                info.fill(f64::NAN);
                slot.replica.iter_mut().for_each(|r| r.redrawn = true);
            }
            if sampler.samples(slot.chain.step) {
                let sums = slot.info_sums.iter_mut().zip(&info);
                sums.for_each(|(s, i)| *s += i);
                *slot.info_count += 1;
            }
            slot.chain.step += 1;
            *slot.steps = slot.chain.step;
            // The virial touches every parameter and every component of the gradient: one number tells of any NaN.
            if has_likelihood && virial.is_some_and(|v| !info[v].is_finite()) {
                slot.fail("met a number that is not finite");
                return Ok(());
            }
            if self.plan.every.fires(slot.chain.step) {
                if slot.replica.is_none() {
                    slot.chain.temperature = self.temperature(slot.chain.index, slot.chain.step);
                }
                self.record(slot, work, Known::default())?;
            }
            if slot.chain.step == self.plan.burn_in {
                // What the sampler reported in burn-in must not enter the first record after it.
                slot.info_sums.fill(0.0);
                *slot.info_count = 0;
            }
            if slot.chain.step >= stop {
                self.note_energy(slot, work, None)?;
                return Ok(());
            }
            if Instant::now() >= until || session::interrupted() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Let a chain that has come to another temperature take it up.
    fn arrive(
        &self,
        slot: &mut Slot,
        target: &Target,
        work: &mut Workspace,
        info: &mut [f64],
    ) -> Result<()> {
        let (now, same) = (slot.chain.temperature, self.same_energy());
        let arrived = slot.replica.as_mut().and_then(|r| r.arrive(now, same));
        let Some(before) = arrived else {
            return Ok(());
        };
        let change = |chains: &mut Chains| self.sampler.change_temperature(chains, &[before]);
        if let Some(reason) = slot.chain.lend(target, work, info, change)? {
            slot.fail(reason);
        }
        Ok(())
    }

    /// Note the energy that β multiplies, where chains exchange temperatures; `known` are the energies there, if somebody has computed
    /// them.
    fn note_energy(
        &self,
        slot: &mut Slot,
        work: &mut Workspace,
        known: Option<Energies>,
    ) -> Result<f64> {
        let (step, temperature) = (slot.chain.step, slot.chain.temperature);
        let (Some(replica), Some(x)) = (&mut slot.replica, &self.plan.exchange) else {
            return Ok(f64::NAN);
        };
        if replica.energy.0 != step {
            let kept = self
                .sampler
                .energy_scalar()
                .filter(|_| temperature.is_finite());
            let prior = match (kept, x.whole) {
                (Some(_), false) => self.target.prior().energy_times(temperature, slot.chain.w),
                _ => 0.0,
            };
            let energy = match kept {
                // Of a sum with a much larger prior too few digits would be left.
                Some(k) if prior < 1e9 => slot.chain.scalars[k] - prior,
                _ => {
                    let energies = match known {
                        Some(e) => e,
                        None => self.target.energies(slot.chain.w, work)?,
                    };
                    match x.whole {
                        true => energies.total,
                        false => energies.likelihood,
                    }
                }
            };
            replica.energy = (step, energy);
        }
        Ok(replica.energy.1)
    }

    pub(super) fn record(&self, slot: &mut Slot, work: &mut Workspace, known: Known) -> Result<()> {
        let square = dot(slot.chain.w, slot.chain.w);
        if square.is_nan() || square > self.limits[slot.chain.index] {
            slot.fail(format!("left its region: |w| = {:.3e}", square.sqrt()));
            return Ok(());
        }
        // Where no step counted there is nothing to tell: NaN.
        let count = *slot.info_count as f64;
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
            for p in self.predictors {
                let (sums, after) = rest.split_at_mut(p.width());
                p.update(sums, slot.chain.w, slot.chain.temperature)?;
                let now = p.now(sums, slot.chain.temperature);
                row[at..at + now.len()].copy_from_slice(&now);
                at += now.len();
                rest = after;
            }
        }
        let known = view.known.energies;
        if self.plan.exchange.is_some() {
            let energy = self.note_energy(slot, work, known)?;
            row[at..at + 2].copy_from_slice(&[energy, slot.chain.index as f64]);
        }
        let at = self.width - info.len();
        row[at..].copy_from_slice(&info);
        slot.records.extend_from_slice(&row);
        Ok(())
    }
}
