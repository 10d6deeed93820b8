//! The one loop: a block of chains steps, is looked at, recorded, and comes to a swap, in this order, wherever it is.

use super::draws::Keeper;
use super::exchange::Exchange;
use super::plan::{Plan, Starts};
use super::prediction::Predictor;
use super::session::Interrupt;
use super::state::{ChainMut, Lent, Log};
use super::temper::Temper;
use crate::engine::Chains;
use crate::engine::batched::Batched;
use crate::engine::report::Slots;
use crate::error::{Interrupted, Result};
use crate::kernels::update::dot;
use crate::observable::{LossCache, View};
use crate::ranks::Communicator;
use crate::rng::{Purpose, Stream};
use crate::sampler::{Before, ConfiguredSampler};
use crate::target::{Energies, Target, Workspace};
use anyhow::Context;
use std::borrow::Cow;
use std::time::Instant;

/// What all blocks of a run have in common.
pub(super) struct Shared<'a> {
    pub plan: &'a Plan,
    pub target: &'a Target,
    pub sampler: &'a ConfiguredSampler,
    /// Where what is reported is added up.
    pub slots: Slots,
    /// Numbers per record.
    pub width: usize,
    pub starts: &'a Starts,
    /// Posterior predictions that are averaged.
    pub predictors: &'a [Predictor<'a>],
    /// |w|² above which a chain has left its region, per chain of the run.
    pub limits: Vec<f64>,
    /// The step up to which chains go: the next look, or the end.
    pub end: u64,
    /// The step after which posterior predictions are averaged.
    pub predicts_after: u64,
    /// What writes draws, where they are kept.
    pub keeper: Option<Keeper>,
    /// Those that move the other chains.
    pub ranks: &'a dyn Communicator,
    /// Whoever asks it to stop.
    pub interrupt: &'a Interrupt,
}

/// What a block steps with.
pub(super) struct Worker<'w, 'd> {
    /// One workspace; for a block of several chains in this machine's memory one per chain, and one whose threads they share.
    pub work: &'w mut [Workspace],
    /// The accelerator, if the block is there.
    pub device: Option<&'w mut Batched<'d>>,
}

impl Worker<'_, '_> {
    /// The workspace with all threads.
    fn observing(&mut self) -> &mut Workspace {
        let last = self.work.len() - 1;
        &mut self.work[last]
    }
}

impl Shared<'_> {
    /// Of a chain that keeps its own.
    pub fn temperature(&self, chain: usize, step: u64) -> f64 {
        self.plan.temperatures[chain / self.plan.chains].at(step)
    }

    /// Whether U is the same function at all temperatures.
    pub fn same_energy(&self) -> bool {
        self.plan.temper.same_energy(self.target)
    }

    /// What a chain samples at the temperature of its rung, or at its own if it never changes (`rung` is NaN).
    pub fn target_at(&self, rung: f64, chain: usize) -> Cow<'_, Target> {
        let temperature = match rung.is_nan() {
            true => self.temperature(chain, 0),
            false => rung,
        };
        self.plan.temper.target_at(self.target, temperature)
    }
}

impl Lent<'_> {
    /// Let the sampler work on the chains at their temperatures; its reports `count` or not.
    fn sample(
        &mut self,
        run: &Shared,
        worker: &mut Worker,
        target: &Target,
        counts: bool,
        f: impl FnOnce(&mut Chains) -> Result<()>,
    ) -> Result<()> {
        let step = self.block.step;
        for ChainMut { member, log, .. } in self.chains() {
            member.temperature = match &log.replica {
                Some(replica) => replica.held,
                None => run.temperature(member.index, step),
            };
            // Also chains that failed at a record, or before an interruption, are out for their sampler.
            member.failure = log.failure.as_ref().map(|f| f.reason.clone());
        }
        match &mut worker.device {
            Some(device) => {
                let device: &mut Batched = device;
                device.begin(&self.block.rows, step, counts)?;
                self.block.work_on(device, &run.slots, f)?;
            }
            None => {
                let slots = (&run.slots, counts);
                self.block.work(target, worker.work, slots, f)?;
            }
        }
        for ChainMut { member, log, .. } in self.chains() {
            // What is stepped on the prior's rung, with the others, is drawn anew before anybody sees it.
            if let Some(reason) = member.failure.take().filter(|_| !log.rung.is_infinite()) {
                log.fail(step, reason);
            }
        }
        Ok(())
    }

    /// Prepare the chains for their first step.
    pub(super) fn prepare(&mut self, run: &Shared, worker: &mut Worker) -> Result<()> {
        if run.interrupt.interrupted() {
            let what = format!("'{}' before its first step", run.plan.name);
            return Err(Interrupted { what }.into());
        }
        let minimised = |x: &&Exchange| x.minimise > 0;
        if let Some(x) = run.plan.exchange.as_ref().filter(minimised) {
            for row in &mut self.block.rows {
                x.minimise(run.target, row.w, worker.observing())?;
            }
            if let Some(device) = &mut worker.device {
                device.store(&self.block.rows)?;
            }
        }
        let held = self.logs[0].replica.as_ref().map_or(f64::NAN, |r| r.held);
        let target = run.target_at(held, self.block.members[0].index);
        self.sample(run, worker, &target, false, |chains| {
            run.sampler.init(chains)
        })
    }

    /// Step until `until`, at least once, but not beyond step `stop`.
    pub(super) fn advance(
        &mut self,
        run: &Shared,
        worker: &mut Worker,
        stop: u64,
        until: Instant,
    ) -> Result<()> {
        let plan = run.plan;
        let target = run.target_at(self.logs[0].rung, self.block.members[0].index);
        self.arrive(run, worker, &target)?;
        while let Some(step) = self.step().filter(|step| *step < stop) {
            self.block.step = step;
            let counts = run.sampler.samples(step);
            // On the prior's rung there is nothing to step.
            if self.logs.iter().any(|log| !log.rung.is_infinite()) {
                let promised = if step == 0 { run.slots.len() } else { 0 };
                self.block.reported.clear();
                self.block.reported.resize(promised, false);
                self.sample(run, worker, &target, counts, |chains| {
                    run.sampler.step(chains)
                })?;
            }
            let done = step + 1;
            self.block.step = done;
            for log in self.logs.iter_mut().filter(|log| log.goes_on()) {
                *log.steps = done;
                *log.info_count += u64::from(counts);
            }
            let records = plan.every.fires(done);
            let keeper = run.keeper.as_ref().filter(|k| k.fires(done));
            let seen = records || keeper.is_some() || done == stop;
            if seen || worker.device.is_none() {
                self.note_broken(worker)?;
            }
            if seen {
                self.draw_from_prior(run, worker)?;
            }
            if records {
                self.record(run, worker)?;
            }
            if let Some(keeper) = keeper {
                self.keep(keeper, plan.chains, worker)?;
            }
            if done == plan.burn_in {
                // What the sampler reported in burn-in must not enter the first record after it.
                self.forget_reports(worker)?;
            }
            if done == stop {
                self.note_energies(run, worker)?;
                self.fetch_of_temperature(run, worker)?;
            }
            if Instant::now() >= until || run.interrupt.interrupted() {
                break;
            }
        }
        Ok(())
    }

    /// Bring everything back to this machine's memory.
    pub(super) fn fetch(&mut self, worker: &mut Worker) -> Result<()> {
        if let Some(device) = &mut worker.device {
            device.fetch(&mut self.block.rows)?;
        }
        self.note_broken(worker)
    }

    /// Let chains that have come to another temperature take it up.
    fn arrive(&mut self, run: &Shared, worker: &mut Worker, target: &Target) -> Result<()> {
        let same = run.same_energy();
        let mut changed = false;
        let mut before = Vec::new();
        let kept = run.sampler.of_temperature();
        for log in &mut self.logs {
            let Some(replica) = &mut log.replica else {
                return Ok(());
            };
            let arrived = replica.arrive(log.rung, same);
            changed |= arrived.is_some();
            before.push(arrived.unwrap_or(Before::nothing(replica.held)));
        }
        if !changed {
            return Ok(());
        }
        let step = self.step().unwrap_or(self.block.step);
        if let Some(device) = &mut worker.device {
            device.store_vectors(&self.block.rows, kept.vectors_at(step, run.plan.burn_in))?;
        }
        if let Some(device) = worker.device.as_deref_mut().filter(|_| !same) {
            let replicas = self.logs.iter().filter_map(|log| log.replica.as_ref());
            device.set_prior_strengths(replicas.map(|r| r.held).collect())?;
        }
        self.block.step = step;
        self.sample(run, worker, target, false, |chains| {
            run.sampler.change_temperature(chains, &before)
        })
    }

    /// Mark the chains that met a number that is not finite.
    fn note_broken(&mut self, worker: &mut Worker) -> Result<()> {
        if let Some(device) = &mut worker.device {
            device.fetch_sums(&mut self.block.rows)?;
        }
        for ChainMut { row, log, .. } in self.chains() {
            let Some(step) = row.broken.take() else {
                continue;
            };
            if log.goes_on() && !log.rung.is_infinite() {
                *log.steps = step;
                log.fail(step, "met a number that is not finite");
            }
        }
        Ok(())
    }

    /// Draw the parameters on the prior's rung, as after this step. The draws of different steps are independent of each other: those that
    /// nobody sees need not be made.
    fn draw_from_prior(&mut self, run: &Shared, worker: &mut Worker) -> Result<()> {
        let (seed, step) = (self.block.seed, self.block.step - 1);
        for (c, ChainMut { member, row, log }) in self.chains().enumerate() {
            if !log.rung.is_infinite() || !log.goes_on() {
                continue;
            }
            let stream = Stream::new(seed, Purpose::Prior, member.index, step);
            run.target.prior().draw(&stream, row.w);
            row.sums.fill(f64::NAN);
            if let Some(replica) = &mut log.replica {
                replica.redrawn = true;
            }
            if let Some(device) = &mut worker.device {
                device.store_params(c, row)?;
            }
        }
        Ok(())
    }

    /// Forget what was reported so far.
    fn forget_reports(&mut self, worker: &mut Worker) -> Result<()> {
        if let Some(device) = &mut worker.device {
            device.fetch_sums(&mut self.block.rows)?;
        }
        for ChainMut { row, log, .. } in self.chains() {
            row.sums.fill(0.0);
            *log.info_count = 0;
        }
        Ok(())
    }

    /// Note the energies that β multiplies, where chains exchange temperatures.
    fn note_energies(&mut self, run: &Shared, worker: &mut Worker) -> Result<()> {
        if run.plan.exchange.is_none() {
            return Ok(());
        }
        let step = self.block.step;
        let Some(device) = &mut worker.device else {
            debug_assert_eq!(
                self.logs.len(),
                1,
                "coupled chains exchange no temperatures"
            );
            return self.note_energy(run, 0, worker.observing(), None).map(drop);
        };
        let energies = device.likelihoods_and_priors()?;
        for (log, (likelihood, prior)) in self.logs.iter_mut().zip(energies) {
            if let Some(replica) = &mut log.replica {
                let energy = match run.plan.temper {
                    Temper::Energy => likelihood + prior,
                    Temper::Likelihood => likelihood,
                    Temper::Prior => prior,
                };
                replica.energy = (step, energy);
            }
        }
        Ok(())
    }

    /// Bring back what belongs to temperatures, which a swap may give to other chains.
    fn fetch_of_temperature(&mut self, run: &Shared, worker: &mut Worker) -> Result<()> {
        if let (Some(device), Some(_)) = (&mut worker.device, &run.plan.exchange) {
            let kept = run.sampler.of_temperature();
            let which = kept.vectors_at(self.block.step, run.plan.burn_in);
            device.fetch_vectors(&mut self.block.rows, which)?;
            device.fetch_sums(&mut self.block.rows)?;
        }
        Ok(())
    }

    /// The energy of a chain that β multiplies; `known` are the energies there, if somebody has computed them.
    fn note_energy(
        &mut self,
        run: &Shared,
        c: usize,
        work: &mut Workspace,
        known: Option<Energies>,
    ) -> Result<f64> {
        let (step, w) = (self.block.step, &*self.block.rows[c].w);
        let log = &mut self.logs[c];
        let Some(replica) = &mut log.replica else {
            return Ok(f64::NAN);
        };
        if replica.energy.0 != step {
            let kept = run.sampler.energy_scalar().filter(|_| log.rung.is_finite());
            let prior = match (kept, run.plan.temper) {
                (Some(_), Temper::Likelihood) => run.target.prior().energy_times(log.rung, w),
                _ => 0.0,
            };
            let energy = match (kept, run.plan.temper) {
                (_, Temper::Prior) => run.target.prior().energy(w),
                // Of a sum with a much larger prior too few digits would be left.
                (Some(k), _) if prior < 1e9 => self.block.members[c].scalars[k] - prior,
                _ => {
                    let energies = match known {
                        Some(e) => e,
                        None => run.target.energies(w, work)?,
                    };
                    run.plan.temper.energy(energies)
                }
            };
            let more = match run.plan.temper {
                Temper::Likelihood => run.target.prior().tempered_part(w),
                _ => 0.0,
            };
            replica.energy = (step, energy + more);
        }
        Ok(replica.energy.1)
    }

    /// Keep the parameters of every chain that goes on; those of replicas at the temperature where they are.
    fn keep(&mut self, keeper: &Keeper, chains: usize, worker: &mut Worker) -> Result<()> {
        if let Some(device) = &mut worker.device {
            device.fetch_params(&mut self.block.rows)?;
        }
        let step = self.block.step;
        for chain in self.chains().filter(|c| c.log.goes_on()) {
            let own = chain.member.index;
            let place = match &chain.log.replica {
                Some(replica) => replica.rung * chains + own % chains,
                None => own,
            };
            keeper.write(place, step, chain.row.w)?;
        }
        Ok(())
    }

    /// Make a record of every chain that goes on; an accelerator computes the losses that it needs for all chains at once.
    fn record(&mut self, run: &Shared, worker: &mut Worker) -> Result<()> {
        let mut known = vec![LossCache::default(); self.logs.len()];
        let step = self.block.step;
        let unknown = |log: &Log| log.replica.as_ref().is_some_and(|r| r.energy.0 != step);
        if worker.device.is_some() && self.logs.iter().any(unknown) {
            self.note_energies(run, worker)?;
        }
        if let Some(device) = &mut worker.device {
            // Reports are made from the sampler's vectors too.
            device.fetch(&mut self.block.rows)?;
            let mut splits: Vec<_> = run
                .plan
                .observables
                .iter()
                .filter_map(|o| o.split())
                .collect();
            splits.sort_unstable();
            splits.dedup();
            for split in splits {
                let (sums, rows) = device.split_sums(split)?;
                let priors = match split {
                    "train" => device.prior_energies()?,
                    _ => vec![f64::NAN; sums.len()],
                };
                for (known, (sums, prior)) in known.iter_mut().zip(sums.into_iter().zip(priors)) {
                    known.note(run.target, split, prior, sums, rows);
                }
            }
            for o in &run.plan.observables {
                let Some((split, rows)) = o.examples(run.target)? else {
                    continue;
                };
                let losses = device.example_losses(&split, &rows)?;
                for (known, losses) in known.iter_mut().zip(losses) {
                    known.examples.push((split.clone(), rows.clone(), losses));
                }
            }
            for o in &run.plan.observables {
                if let Some(numbers) = o.numbers() {
                    let all = device.numbers(&numbers)?;
                    for (known, own) in known.iter_mut().zip(all) {
                        known.numbers.push((o.name(), own));
                    }
                }
            }
            let predicted = self.block.step > run.predicts_after;
            let predicted = run.predictors.iter().filter(|_| predicted);
            let observed = run.plan.observables.iter().filter_map(|o| o.outputs());
            let mut splits: Vec<_> = predicted.map(|p| p.name()).chain(observed).collect();
            splits.sort_unstable();
            splits.dedup();
            for split in splits {
                for (known, outputs) in known.iter_mut().zip(device.predict(split)?) {
                    known.outputs.push((split.into(), outputs));
                }
            }
        }
        for (c, known) in known.into_iter().enumerate() {
            if self.logs[c].goes_on() {
                self.record_chain(run, c, worker.observing(), known)?;
            }
        }
        Ok(())
    }

    fn record_chain(
        &mut self,
        run: &Shared,
        c: usize,
        work: &mut Workspace,
        known: LossCache,
    ) -> Result<()> {
        let (step, row, log) = (self.block.step, &mut self.block.rows[c], &mut self.logs[c]);
        let member = &mut self.block.members[c];
        member.temperature = match log.rung.is_nan() {
            true => run.temperature(member.index, step),
            false => log.rung,
        };
        let (index, temperature) = (member.index, member.temperature);
        let square = dot(row.w, row.w);
        if square.is_nan() || square > run.limits[index] {
            log.fail(
                step,
                format!(
                    "left its region: |w| = {:.3e}; where parameters are that large, set `region`, and where no prior holds them (print the target), give them one",
                    square.sqrt()
                ),
            );
            return Ok(());
        }
        // Where no step counted there is nothing to tell: NaN.
        let count = *log.info_count as f64;
        let info: Vec<f64> = row.sums.iter().map(|s| s / count).collect();
        row.sums.fill(0.0);
        *log.info_count = 0;
        let mut record = vec![f64::NAN; run.width];
        let mut view = View {
            chain: self.block.chain(c),
            vector_names: &run.sampler.vectors,
            info: (&run.sampler.info, &info),
            batch: run.sampler.batch(),
            start: &|| run.starts.of(index, run.target),
            target: run.target,
            work: &mut *work,
            known,
        };
        let mut at = 0;
        for o in &run.plan.observables {
            let width = o.components(run.target).map_or(1, |(_, l)| l.len());
            let own = &mut record[at..at + width];
            let there = view
                .known
                .numbers
                .iter()
                .find(|(name, _)| *name == o.name());
            match there {
                Some((_, there)) => own.copy_from_slice(there),
                None => o.measure(&mut view, own)?,
            }
            at += width;
        }
        let (known, mut outputs) = (view.known.energies, view.known.outputs);
        if step > run.predicts_after {
            let mut rest = &mut *self.logs[c].predictions;
            for p in run.predictors {
                let (sums, after) = rest.split_at_mut(p.width());
                let there = outputs.iter().position(|(split, _)| split == p.name());
                let there = there.map(|at| outputs.swap_remove(at).1);
                p.update(sums, self.block.rows[c].w, there, temperature)?;
                let now = p.now(sums, temperature);
                record[at..at + now.len()].copy_from_slice(&now);
                at += now.len();
                rest = after;
            }
        }
        if run.plan.exchange.is_some() {
            let energy = self.note_energy(run, c, work, known)?;
            record[at..at + 2].copy_from_slice(&[energy, index as f64]);
        }
        let at = run.width - info.len();
        record[at..].copy_from_slice(&info);
        let records = &mut *self.logs[c].records;
        if records.capacity() - records.len() < record.len() && run.plan.course.is_none() {
            // All that will come: a vector that doubles takes three times what is in it while it moves. What is not written yet takes no memory.
            let all = run.plan.every.count(run.plan.steps) * record.len();
            let more = all.saturating_sub(records.len());
            let why =
                "there is no memory for all its records; take fewer (`every`), or fewer steps";
            records.try_reserve_exact(more).context(why)?;
        }
        records.extend_from_slice(&record);
        Ok(())
    }
}
