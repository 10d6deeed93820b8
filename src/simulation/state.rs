//! The batched state of a run: every array has the chains as its first dimension.

use super::run::Failure;
use crate::engine::host::Chain;
use crate::error::Result;
use crate::sampler::Sampler;
use crate::store::checkpoint::{Tensor, TensorData};
use std::sync::Arc;

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
    /// See [`State::failures`].
    pub failure: &'a mut Option<Failure>,
    /// Parameters at the start of the run.
    pub start: Arc<Vec<f32>>,
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
    pub fn new(starts: &[Arc<Vec<f32>>], sampler: &dyn Sampler) -> Self {
        let (chains, dim) = (starts.len(), starts.first().map_or(0, |w| w.len()));
        Self {
            chains,
            dim,
            params: starts.iter().flat_map(|w| w.iter().copied()).collect(),
            vectors: sampler
                .vectors()
                .iter()
                .map(|_| vec![0.0; chains * dim])
                .collect(),
            scalars: vec![0.0; chains * sampler.scalars().len()],
            steps: vec![0; chains],
            info_sums: vec![0.0; chains * sampler.info().len()],
            info_counts: vec![0; chains],
            records: vec![Vec::new(); chains],
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

    /// Lend every chain's part.
    pub fn slots(&mut self, starts: &[Arc<Vec<f32>>], seed: u64, burn_in: u64) -> Vec<Slot<'_>> {
        let (c, n) = (self.chains, self.dim);
        let per = |len: usize| len / c.max(1);
        let (scalars, info) = (per(self.scalars.len()), per(self.info_sums.len()));
        let mut vectors: Vec<_> = self
            .vectors
            .iter_mut()
            .map(|v| v.chunks_exact_mut(n))
            .collect();
        let mut scalar_rows = rows(&mut self.scalars, scalars, c).into_iter();
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
            );
            let (
                Some(w),
                Some(scalars),
                Some(info_sums),
                Some(info_count),
                Some(failure),
                Some(records),
            ) = parts
            else {
                break;
            };
            let vectors = vectors.iter_mut().filter_map(|v| v.next()).collect();
            let chain = Chain {
                index,
                step: *steps,
                seed,
                temperature: f64::NAN,
                burn_in,
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
                failure,
                start: starts[index].clone(),
            });
        }
        slots
    }

    /// Everything, as tensors of a checkpoint.
    pub fn tensors(&self, sampler: &dyn Sampler) -> Vec<(String, Tensor)> {
        let c = self.chains;
        let tensor = |data: TensorData, width: usize| Tensor {
            shape: vec![c, width],
            data,
        };
        let mut out = vec![(
            "params".to_string(),
            tensor(TensorData::F32(self.params.clone()), self.dim),
        )];
        for (name, v) in sampler.vectors().iter().zip(&self.vectors) {
            out.push((
                format!("vector.{name}"),
                tensor(TensorData::F32(v.clone()), self.dim),
            ));
        }
        let per = |len: usize| len / c.max(1);
        out.push((
            "scalars".into(),
            tensor(
                TensorData::F64(self.scalars.clone()),
                per(self.scalars.len()),
            ),
        ));
        out.push((
            "info_sums".into(),
            tensor(
                TensorData::F64(self.info_sums.clone()),
                per(self.info_sums.len()),
            ),
        ));
        out.push((
            "steps".into(),
            tensor(TensorData::U64(self.steps.clone()), 1),
        ));
        out.push((
            "info_counts".into(),
            tensor(TensorData::U64(self.info_counts.clone()), 1),
        ));
        for (i, r) in self.records.iter().enumerate() {
            out.push((
                format!("records.{i}"),
                Tensor {
                    shape: vec![r.len()],
                    data: TensorData::F64(r.clone()),
                },
            ));
        }
        out
    }

    /// Put back what [`State::tensors`] gave; an error names what does not fit.
    pub fn restore(&mut self, tensors: Vec<(String, Tensor)>, sampler: &dyn Sampler) -> Result<()> {
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
        for (name, v) in sampler.vectors().iter().zip(&mut self.vectors) {
            floats(&format!("vector.{name}"), v)?;
        }
        let mut doubles = |name: &str| match take(name)? {
            TensorData::F64(x) => Ok(x),
            _ => Err(wrong(name)),
        };
        fill(&mut self.scalars, doubles("scalars")?, "scalars")?;
        fill(&mut self.info_sums, doubles("info_sums")?, "info_sums")?;
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
