//! The batched state of a run: every array has the chains as its first dimension.

use super::plan::{Plan, Starts};
use super::prediction::Predictor;
use super::run::{Failure, Scores};
use crate::engine::host::Chain;
use crate::error::Result;
use crate::sampler::Configured;
use crate::store::checkpoint::{DataRef, Tensor, TensorData, TensorRef};
use crate::target::Target;

/// All chains of a run.
pub struct State {
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
}

impl Slot<'_> {
    /// Mark the chain as failed.
    pub fn fail(&mut self, reason: impl Into<String>) {
        *self.failure = Some(Failure {
            step: self.chain.step,
            reason: reason.into(),
        });
    }
}

impl State {
    /// Chains at these points, everything else zero.
    pub fn new(
        starts: &Starts,
        target: &Target,
        sampler: &Configured,
        predictors: &[Predictor],
    ) -> Self {
        let (chains, dim) = (starts.count, target.dim());
        let predictions: usize = predictors.iter().map(Predictor::width).sum();
        let mut params = Vec::with_capacity(chains * dim);
        (0..chains).for_each(|c| params.extend_from_slice(&starts.of(c, target)));
        Self {
            chains,
            dim,
            params,
            vectors: sampler
                .vectors
                .iter()
                .map(|_| vec![0.0; chains * dim])
                .collect(),
            scalars: vec![0.0; chains * sampler.scalars.len()],
            steps: vec![0; chains],
            info_sums: vec![0.0; chains * sampler.info.len()],
            info_counts: vec![0; chains],
            records: vec![Vec::new(); chains],
            predictions: vec![0.0; chains * predictions],
            failures: vec![None; chains],
        }
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
        let mut from = 0;
        let of = |p: &Predictor| {
            let part = from..from + p.width();
            from = part.end;
            let at = |(k, t): (usize, &f64)| {
                let group = k * chains..(k + 1) * chains;
                let healthy = group.filter(|c| self.failures[*c].is_none());
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
    pub fn slots(&mut self, plan: &Plan) -> Vec<Slot<'_>> {
        let (c, n) = (self.chains, self.dim);
        let per = |len: usize| len / c.max(1);
        let (scalars, info) = (per(self.scalars.len()), per(self.info_sums.len()));
        let mut vectors: Vec<_> = self
            .vectors
            .iter_mut()
            .map(|v| v.chunks_exact_mut(n))
            .collect();
        let mut scalar_rows = rows(&mut self.scalars, scalars, c).into_iter();
        let predictions = per(self.predictions.len());
        let mut prediction_rows = rows(&mut self.predictions, predictions, c).into_iter();
        let mut info_rows = rows(&mut self.info_sums, info, c).into_iter();
        let mut params = self.params.chunks_exact_mut(n);
        let mut counts = self.info_counts.iter_mut();
        let mut failures = self.failures.iter_mut();
        let mut records = self.records.iter_mut();
        let mut slots = Vec::with_capacity(c);
        for (index, steps) in self.steps.iter_mut().enumerate() {
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
            let chain = Chain {
                index,
                group: index / plan.chains,
                step: *steps,
                seed: plan.seed,
                temperature: f64::NAN,
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
            });
        }
        slots
    }

    /// Everything, as tensors of a checkpoint; nothing is copied, the state may fill most of the memory.
    pub fn tensors(&self, sampler: &Configured) -> Vec<(String, TensorRef<'_>)> {
        let c = self.chains;
        let per = |len: usize| len / c.max(1);
        let rows = |name: &str, width: usize, data| {
            let shape = vec![c, width];
            (name.to_string(), TensorRef { shape, data })
        };
        let mut out = vec![rows("params", self.dim, DataRef::F32(&self.params))];
        for (name, v) in sampler.vectors.iter().zip(&self.vectors) {
            out.push(rows(&format!("vector.{name}"), self.dim, DataRef::F32(v)));
        }
        for (name, v) in [
            ("scalars", &self.scalars),
            ("info_sums", &self.info_sums),
            ("predictions", &self.predictions),
        ] {
            out.push(rows(name, per(v.len()), DataRef::F64(v)));
        }
        for (name, v) in [("steps", &self.steps), ("info_counts", &self.info_counts)] {
            out.push(rows(name, 1, DataRef::U64(v)));
        }
        for (i, r) in self.records.iter().enumerate() {
            let (shape, data) = (vec![r.len()], DataRef::F64(r));
            out.push((format!("records.{i}"), TensorRef { shape, data }));
        }
        out
    }

    /// Put back what [`State::tensors`] gave; an error names what does not fit.
    pub fn restore(&mut self, tensors: Vec<(String, Tensor)>, sampler: &Configured) -> Result<()> {
        let mut found: std::collections::HashMap<String, TensorData> =
            tensors.into_iter().map(|(n, t)| (n, t.data)).collect();
        let mut take = |name: &str| {
            found
                .remove(name)
                .ok_or_else(|| anyhow::anyhow!("the checkpoint has no tensor '{name}'"))
        };
        fn fill<T>(to: &mut Vec<T>, from: Vec<T>, name: &str) -> Result<()> {
            anyhow::ensure!(
                to.len() == from.len(),
                "the checkpoint's '{name}' has {} numbers, {} are needed",
                from.len(),
                to.len()
            );
            *to = from;
            Ok(())
        }
        let wrong = |name: &str| {
            anyhow::anyhow!("the checkpoint's '{name}' has another type than it should")
        };
        let mut floats = |name: &str, to: &mut Vec<f32>| match take(name)? {
            TensorData::F32(x) => fill(to, x, name),
            _ => Err(wrong(name)),
        };
        floats("params", &mut self.params)?;
        for (name, v) in sampler.vectors.iter().zip(&mut self.vectors) {
            floats(&format!("vector.{name}"), v)?;
        }
        let mut doubles = |name: &str| match take(name)? {
            TensorData::F64(x) => Ok(x),
            _ => Err(wrong(name)),
        };
        fill(&mut self.scalars, doubles("scalars")?, "scalars")?;
        fill(&mut self.info_sums, doubles("info_sums")?, "info_sums")?;
        fill(
            &mut self.predictions,
            doubles("predictions")?,
            "predictions",
        )?;
        for (i, r) in self.records.iter_mut().enumerate() {
            *r = doubles(&format!("records.{i}"))?;
        }
        for (name, to) in [
            ("steps", &mut self.steps),
            ("info_counts", &mut self.info_counts),
        ] {
            match take(name)? {
                TensorData::U64(x) => fill(to, x, name)?,
                _ => return Err(wrong(name)),
            }
        }
        Ok(())
    }
}

/// `count` rows of `width`; empty rows when the width is 0.
fn rows(data: &mut [f64], width: usize, count: usize) -> Vec<&mut [f64]> {
    if width == 0 {
        return (0..count).map(|_| Default::default()).collect();
    }
    data.chunks_exact_mut(width).collect()
}
