//! The batched state of a run: every array has the chains as its first dimension.

mod checkpoint;

use super::exchange::{Ladders, Replica};
use super::plan::{Plan, Starts};
use super::prediction::Predictor;
use super::run::{Failure, Scores};
use crate::engine::{Block, Member, Row};
use crate::error::Result;
use crate::kernels::update::dot;
use crate::sampler::configured::CENTRE;
use crate::sampler::{ConfiguredSampler, levels};
use crate::target::Target;
use std::ops::Range;

/// All chains of a run.
pub struct State {
    /// The numbers of these chains in the run, which may be spread over several processes; increasing.
    pub index: Vec<usize>,
    /// Number of chains C.
    pub chains: usize,
    /// Parameters per chain, N.
    pub dim: usize,
    /// Parameters, `[C, N]`.
    pub params: Vec<f32>,
    /// The sampler's vectors, `[C, N]` each.
    pub vectors: Vec<Vec<f32>>,
    /// Their names.
    pub vector_names: Vec<&'static str>,
    /// The sampler's scalars, `[C, scalars]`.
    pub scalars: Vec<f64>,
    /// Steps done, `[C]`.
    pub steps: Vec<u64>,
    /// Sums of what the sampler reported since the last record, `[C, info]`.
    pub info_sums: Vec<f64>,
    /// How many steps those sums are over, `[C]`.
    pub info_counts: Vec<u64>,
    /// What was recorded, per chain, row after row.
    pub records: Vec<Vec<f64>>,
    /// Sums of posterior predictions, `[C, width]`.
    pub predictions: Vec<f64>,
    /// Why a chain stopped before its time.
    pub failures: Vec<Option<Failure>>,
    /// Where chains exchange temperatures: all ladders of the run. Predictions, which belong to a temperature, are then kept by place.
    pub ladders: Option<Ladders>,
    /// What replicas carry, `[C]`; empty without ladders.
    pub replicas: Vec<Replica>,
}

/// What a run keeps of a chain beside what its sampler sees.
pub struct Log<'a> {
    /// See [`State::steps`].
    pub steps: &'a mut u64,
    /// See [`State::info_counts`].
    pub info_count: &'a mut u64,
    /// See [`State::records`].
    pub records: &'a mut Vec<f64>,
    /// See [`State::predictions`].
    pub predictions: &'a mut [f64],
    /// See [`State::failures`].
    pub failure: &'a mut Option<Failure>,
    /// See [`State::replicas`].
    pub replica: Option<&'a mut Replica>,
    /// The temperature of its rung, infinite for the prior; NaN without ladders.
    pub rung: f64,
}

impl Log<'_> {
    /// Mark the chain as failed after so many steps, if it is not yet.
    pub fn fail(&mut self, step: u64, reason: impl Into<String>) {
        self.failure.get_or_insert_with(|| Failure {
            step,
            reason: reason.into(),
        });
    }

    /// Whether it goes on.
    pub fn goes_on(&self) -> bool {
        self.failure.is_none()
    }
}

/// A block of chains and what a run keeps of them, lent by its state.
pub struct Lent<'a> {
    /// What samplers see.
    pub block: Block<'a>,
    /// One per chain.
    pub logs: Vec<Log<'a>>,
}

/// One chain of a block.
pub struct ChainMut<'b, 'a> {
    /// The chain as its sampler sees it.
    pub member: &'b mut Member<'a>,
    /// Its vectors.
    pub row: &'b mut Row<'a>,
    /// What the run keeps of it.
    pub log: &'b mut Log<'a>,
}

impl<'a> Lent<'a> {
    /// The chains.
    pub fn chains(&mut self) -> impl Iterator<Item = ChainMut<'_, 'a>> {
        let members = self.block.members.iter_mut();
        let both = members.zip(&mut self.block.rows).zip(&mut self.logs);
        both.map(|((member, row), log)| ChainMut { member, row, log })
    }

    /// Steps done by the chains that go on; none if none does.
    pub fn step(&self) -> Option<u64> {
        let going = self.logs.iter().filter(|log| log.goes_on());
        going.map(|log| *log.steps).min()
    }
}

impl ChainMut<'_, '_> {
    /// What belongs to the temperature and not to the chain, but for vectors: what was reported there since the last record, and some of the
    /// sampler's scalars.
    pub fn of_temperature(&self, scalars: &Range<usize>) -> Vec<f64> {
        let scalars = &self.member.scalars[scalars.clone()];
        [&[*self.log.info_count as f64], &*self.row.sums, scalars].concat()
    }

    /// Take over what another chain had of the temperature that this one has come to.
    pub fn take_over(&mut self, scalars: &Range<usize>, found: &[f64]) {
        let (sums, kept) = found[1..].split_at(self.row.sums.len());
        *self.log.info_count = found[0] as u64;
        self.row.sums.copy_from_slice(sums);
        self.member.scalars[scalars.clone()].copy_from_slice(kept);
    }
}

impl Plan {
    /// These chains before they start.
    pub(in crate::simulation) fn state(
        &self,
        index: Vec<usize>,
        target: &Target,
        sampler: &ConfiguredSampler,
        predictors: &[Predictor],
    ) -> Result<State> {
        let mut state = State::new(index, target, sampler, predictors);
        if self.exchange.is_some() {
            let ladder: Vec<_> = self.temperatures.iter().map(|t| t.at(0)).collect();
            state.climb(&ladder, self.chains)?;
        }
        Ok(state)
    }

    /// |w|² above which a chain has left its region, per chain of the run; those that are elsewhere have none.
    pub(in crate::simulation) fn limits(&self, state: &State, target: &Target) -> Vec<f64> {
        // On a ladder every chain comes to where the prior is.
        let prior = match &self.exchange {
            Some(_) => target.prior().mean_square(),
            None => 0.0,
        };
        let limit = |w: &[f32]| {
            let least = w.len() as f64 * prior.max(1.0);
            self.region * self.region * dot(w, w).max(least)
        };
        let mut limits = vec![f64::NAN; self.temperatures.len() * self.chains];
        for (w, c) in state.params.chunks_exact(state.dim).zip(&state.index) {
            limits[*c] = limit(w);
        }
        limits
    }
}

impl State {
    /// Mean of the last record's entry `at` over the chains that go on; NaN before the first.
    pub fn last_mean(&self, at: usize, width: usize) -> f64 {
        let going = self.records.iter().zip(&self.failures);
        let last = going.filter_map(|(r, failed)| {
            let row = r.rchunks_exact(width).next()?;
            failed.is_none().then_some(row[at])
        });
        let (sum, count) = last.fold((0.0, 0.0), |(s, n), x| (s + x, n + 1.0));
        sum / count
    }

    /// These chains of a run, everything zero.
    pub fn new(
        index: Vec<usize>,
        target: &Target,
        sampler: &ConfiguredSampler,
        predictors: &[Predictor],
    ) -> Self {
        let (chains, dim) = (index.len(), target.dim());
        let predictions: usize = predictors.iter().map(Predictor::width).sum();
        let vectors = sampler.vectors.iter();
        Self {
            index,
            chains,
            dim,
            params: vec![0.0; chains * dim],
            vectors: vectors.map(|_| vec![0.0; chains * dim]).collect(),
            vector_names: sampler.vectors.clone(),
            scalars: vec![0.0; chains * sampler.scalars.len()],
            steps: vec![0; chains],
            info_sums: vec![0.0; chains * sampler.slots(target).len()],
            info_counts: vec![0; chains],
            records: vec![Vec::new(); chains],
            predictions: vec![0.0; chains * predictions],
            failures: vec![None; chains],
            ladders: None,
            replicas: Vec::new(),
        }
    }

    /// Take over the chains that another state has too.
    pub fn take_rows(&mut self, from: &Self) {
        fn copy<T: Clone>(to: &mut [T], i: usize, from: &[T], j: usize, rows: (usize, usize)) {
            let width = to.len() / rows.0.max(1);
            let found = &from[j * (from.len() / rows.1.max(1))..][..width];
            to[i * width..(i + 1) * width].clone_from_slice(found);
        }
        let rows = (self.chains, from.chains);
        for (i, chain) in self.index.iter().enumerate() {
            let Ok(j) = from.index.binary_search(chain) else {
                continue;
            };
            copy(&mut self.params, i, &from.params, j, rows);
            for (to, from) in self.vectors.iter_mut().zip(&from.vectors) {
                copy(to, i, from, j, rows);
            }
            copy(&mut self.scalars, i, &from.scalars, j, rows);
            copy(&mut self.steps, i, &from.steps, j, rows);
            copy(&mut self.info_sums, i, &from.info_sums, j, rows);
            copy(&mut self.info_counts, i, &from.info_counts, j, rows);
            copy(&mut self.records, i, &from.records, j, rows);
            copy(&mut self.predictions, i, &from.predictions, j, rows);
            copy(&mut self.failures, i, &from.failures, j, rows);
            copy(&mut self.replicas, i, &from.replicas, j, rows);
        }
    }

    /// Take the virial around where the chains are from now on, and forget the levels of their Hamiltonian; these are the names of the sampler's scalars.
    pub fn recentre(&mut self, scalars: &[&str]) {
        let centre = self.vector_names.iter().position(|name| *name == CENTRE);
        if let Some(centre) = centre {
            self.vectors[centre].copy_from_slice(&self.params);
        }
        for row in self.scalars.chunks_exact_mut(scalars.len().max(1)) {
            let all = row.iter_mut().zip(scalars);
            let of_levels = all.filter(|(_, name)| levels::SCALARS.contains(name));
            of_levels.for_each(|(value, _)| *value = 0.0);
        }
    }

    /// Put every chain where it starts.
    pub fn start(&mut self, starts: &Starts, target: &Target) {
        for (w, c) in self.params.chunks_exact_mut(self.dim).zip(&self.index) {
            w.copy_from_slice(&starts.of(*c, target));
        }
    }

    /// Put the chains on ladders with these rungs.
    pub fn climb(&mut self, temperatures: &[f64], count: usize) -> Result<()> {
        let ladders = Ladders::new(temperatures, count)?;
        let replica = |chain: usize| {
            let rung = ladders.rung_of(chain);
            Replica {
                rung,
                energy: (u64::MAX, f64::NAN),
                held: ladders.held_at(rung),
                redrawn: false,
                moved: false,
            }
        };
        self.replicas = self.index.iter().map(|c| replica(*c)).collect();
        self.ladders = Some(ladders);
        Ok(())
    }

    /// The scores of the posterior predictions: per predictor its split, and a map per temperature of all healthy chains together.
    pub fn scores(&self, predictors: &[Predictor], temperatures: &[f64]) -> Vec<Scores> {
        let width = self.predictions.len() / self.chains.max(1);
        let chains = self.chains / temperatures.len().max(1);
        let chain_at = match &self.ladders {
            Some(ladders) => ladders.chains_by_place(),
            None => (0..self.chains).collect(),
        };
        let mut from = 0;
        let of = |p: &Predictor| {
            let part = from..from + p.width();
            from = part.end;
            let at = |(k, t): (usize, &f64)| {
                let group = k * chains..(k + 1) * chains;
                let healthy = group.filter(|place| self.failures[chain_at[*place]].is_none());
                let sums = |c: usize| &self.predictions[c * width..][part.clone()];
                p.merged(healthy.map(sums), *t)
            };
            Scores {
                split: p.name().into(),
                temperatures: temperatures.iter().enumerate().map(at).collect(),
            }
        };
        predictors.iter().map(of).collect()
    }

    /// Lend the chains in blocks: all of them in one if they step `together`, otherwise each in its own.
    pub fn lend(
        &mut self,
        plan: &Plan,
        ladders: Option<&Ladders>,
        together: bool,
    ) -> Vec<Lent<'_>> {
        let (c, n) = (self.chains, self.dim);
        // Predictions are only kept where all replicas of a ladder are here.
        let place = |i: usize| match ladders {
            Some(l) if !self.predictions.is_empty() => {
                let place = l.place_of(self.index[i]);
                self.index.binary_search(&place).unwrap_or(i)
            }
            _ => i,
        };
        let places: Vec<_> = (0..c).map(place).collect();
        let mut scalars = rows(&mut self.scalars, c);
        let mut sums = rows(&mut self.info_sums, c);
        let mut predictions: Vec<_> = rows(&mut self.predictions, c).collect();
        let mut params = self.params.chunks_exact_mut(n);
        let vectors = self.vectors.iter_mut();
        let mut vectors: Vec<_> = vectors.map(|v| v.chunks_exact_mut(n)).collect();
        let mut replicas = self.replicas.iter_mut();
        let index = self.index.iter();
        let logs = (self.steps.iter_mut().zip(&mut self.info_counts))
            .zip(self.records.iter_mut().zip(&mut self.failures));
        let mut out: Vec<Lent> = Vec::new();
        for ((index, place), ((steps, info_count), (records, failure))) in
            index.zip(places).zip(logs)
        {
            let replica = replicas.next();
            let log = Log {
                rung: match (ladders, &replica) {
                    (Some(l), Some(r)) => l.temperatures[r.rung],
                    _ => f64::NAN,
                },
                predictions: predictions
                    .get_mut(place)
                    .map(std::mem::take)
                    .unwrap_or_default(),
                steps,
                info_count,
                records,
                failure,
                replica,
            };
            let member = Member {
                index: *index,
                group: index / plan.chains,
                temperature: log.rung,
                failure: None,
                scalars: scalars.next().unwrap_or_default(),
            };
            let row = Row::new(
                params.next().unwrap_or_default(),
                vectors.iter_mut().filter_map(Iterator::next).collect(),
                sums.next().unwrap_or_default(),
            );
            match out.last_mut().filter(|_| together) {
                Some(lent) => {
                    lent.block.members.push(member);
                    lent.block.rows.push(row);
                    lent.logs.push(log);
                }
                None => out.push(Lent {
                    block: Block::new((plan.seed, plan.burn_in), *log.steps, member, row),
                    logs: vec![log],
                }),
            }
        }
        out
    }
}

/// `count` rows; none of an array without numbers.
fn rows(data: &mut [f64], count: usize) -> std::slice::ChunksExactMut<'_, f64> {
    let width = data.len() / count.max(1);
    data.chunks_exact_mut(width.max(1))
}
