//! The batched state of a run: every array has the chains as its first dimension.

mod checkpoint;

pub use checkpoint::ladders_of;

use super::exchange::{Ladders, Replica};
use super::plan::{Plan, Starts};
use super::prediction::Predictor;
use super::run::{Failure, Scores};
use crate::engine::host::Chain;
use crate::error::Result;
use crate::sampler::Configured;
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

/// One chain's part of the state, lent to a thread.
pub struct Slot<'a> {
    /// What the sampler sees.
    pub chain: Chain<'a>,
    /// Where the step count is kept.
    pub steps: &'a mut u64,
    /// See [`State::info_sums`].
    pub info_sums: &'a mut [f64],
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
    /// The sampler's scalars that belong to the temperature.
    of_temperature: Range<usize>,
}

impl Slot<'_> {
    /// Mark the chain as failed.
    pub fn fail(&mut self, reason: impl Into<String>) {
        *self.failure = Some(Failure {
            step: self.chain.step,
            reason: reason.into(),
        });
    }

    /// What belongs to the temperature and not to the chain: what was reported there since the last record, and some of the sampler's scalars.
    pub fn of_temperature(&self) -> impl Iterator<Item = f64> + '_ {
        let scalars = &self.chain.scalars[self.of_temperature.clone()];
        let count = [*self.info_count as f64];
        count
            .into_iter()
            .chain(self.info_sums.iter().copied())
            .chain(scalars.iter().copied())
    }

    /// Take over what another chain had of the temperature that this one has come to.
    pub fn take_over(&mut self, found: &[f64]) {
        let (sums, scalars) = found[1..].split_at(self.info_sums.len());
        *self.info_count = found[0] as u64;
        self.info_sums.copy_from_slice(sums);
        self.chain.scalars[self.of_temperature.clone()].copy_from_slice(scalars);
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
        sampler: &Configured,
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
            scalars: vec![0.0; chains * sampler.scalars.len()],
            steps: vec![0; chains],
            info_sums: vec![0.0; chains * sampler.slots(target)],
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

    /// Mark a chain as failed, if it is not yet.
    pub fn fail(&mut self, chain: usize, step: u64, reason: &str) {
        self.failures[chain].get_or_insert(Failure {
            step,
            reason: reason.into(),
        });
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

    /// Lend every chain's part.
    pub fn slots(
        &mut self,
        plan: &Plan,
        ladders: Option<&Ladders>,
        of_temperature: &Range<usize>,
    ) -> Vec<Slot<'_>> {
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
        let temperatures = ladders.map(|l| l.temperatures.clone());
        let mut replicas = self.replicas.iter_mut();
        let per = |len: usize| len / c.max(1);
        let (scalars, info) = (per(self.scalars.len()), per(self.info_sums.len()));
        let mut vectors: Vec<_> = self
            .vectors
            .iter_mut()
            .map(|v| v.chunks_exact_mut(n))
            .collect();
        let mut scalar_rows = rows(&mut self.scalars, scalars, c).into_iter();
        let predictions = per(self.predictions.len());
        let mut prediction_rows =
            dealt(rows(&mut self.predictions, predictions, c), &places).into_iter();
        let mut info_rows = rows(&mut self.info_sums, info, c).into_iter();
        let mut params = self.params.chunks_exact_mut(n);
        let mut counts = self.info_counts.iter_mut();
        let mut failures = self.failures.iter_mut();
        let mut records = self.records.iter_mut();
        let mut slots = Vec::with_capacity(c);
        for (index, steps) in self.index.iter().zip(self.steps.iter_mut()) {
            let index = *index;
            let parts = (
                params.next(),
                scalar_rows.next(),
                info_rows.next(),
                counts.next(),
                failures.next(),
                records.next(),
                prediction_rows.next(),
            );
            let (
                Some(w),
                Some(scalars),
                Some(info_sums),
                Some(info_count),
                Some(failure),
                Some(records),
                Some(predictions),
            ) = parts
            else {
                break;
            };
            let vectors = vectors.iter_mut().filter_map(|v| v.next()).collect();
            let replica = replicas.next();
            let rung = replica.as_ref().map_or(0, |r| r.rung);
            let chain = Chain {
                index,
                group: index / plan.chains,
                step: *steps,
                seed: plan.seed,
                temperature: temperatures.as_ref().map_or(f64::NAN, |t| t[rung]),
                burn_in: plan.burn_in,
                w,
                vectors,
                scalars,
            };
            slots.push(Slot {
                chain,
                steps,
                info_sums,
                info_count,
                records,
                predictions,
                failure,
                replica,
                of_temperature: of_temperature.clone(),
            });
        }
        slots
    }
}

/// `count` rows of `width`; empty rows when the width is 0.
fn rows(data: &mut [f64], width: usize, count: usize) -> Vec<&mut [f64]> {
    if width == 0 {
        return (0..count).map(|_| Default::default()).collect();
    }
    data.chunks_exact_mut(width).collect()
}

/// Rows in the order of the places that the chains are at.
fn dealt<T>(rows: Vec<T>, places: &[usize]) -> Vec<T> {
    let mut rows: Vec<_> = rows.into_iter().map(Some).collect();
    places.iter().filter_map(|p| rows[*p].take()).collect()
}
