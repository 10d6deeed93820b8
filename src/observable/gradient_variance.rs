//! The variance of the minibatch gradient, averaged over each tensor.

use super::{Handle, Observable, View};
use crate::engine::report::Slots;
use crate::engine::{Block, Member, Row};
use crate::error::Result;
use crate::kernels::update::TOTAL;
use crate::options::{Entry, Kind, Range, option, optional};
use crate::sampler::gradient::Estimator;
use crate::sampler::gradient_noise::{self, ESTIMATE, Precision};
use crate::target::Target;
use std::sync::Arc;

/// `⟨V⟩` per tensor.
struct GradientVariance {
    batch: Option<usize>,
    draws: usize,
}

/// `observable::gradient_variance`.
pub const ENTRY: Entry<Handle> = Entry {
    name: "gradient_variance",
    doc: "The variance of the minibatch gradient of U, averaged over each tensor of the model (Zambon 2026, Fig. 5c).\n\n\
          Minibatches are drawn independently. Pseudo-Langevin measures it anyway, at no extra cost. For other samplers it is estimated from `draws` minibatches per record. \
          Its trace has one more dimension, `tensor`.",
    arguments: &[],
    options: &[
        optional(
            "batch",
            Kind::Int(Range::AtLeast(1.0)),
            "the sampler's batch, or 100",
            "m, examples per minibatch.",
        ),
        option(
            "draws",
            Kind::Int(Range::Between(2.0, 10_000.0)),
            "50",
            "Minibatches per estimate.",
        ),
    ],
    example: "observable::gradient_variance()",
    build: |o| {
        let observable = GradientVariance {
            batch: o.opt_int("batch").map(|b| b as usize),
            draws: o.size("draws")?,
        };
        Ok(Arc::new(Box::new(observable)))
    },
};

impl Observable for GradientVariance {
    fn name(&self) -> String {
        "gradient_variance".into()
    }

    fn components(&self, target: &Target) -> Option<(String, Vec<String>)> {
        let names = target.layout().tensors().iter().map(|t| t.name.clone());
        Some(("tensor".into(), names.collect()))
    }

    /// None by default, as in folders of version 0.1.0.
    fn definition(&self) -> Option<String> {
        let is_default = self.batch.is_none() && self.draws == 50;
        (!is_default).then(|| format!("batch {:?}, draws {}", self.batch, self.draws))
    }

    /// Of some samplers it is read from a state vector, which is not kept.
    fn of_parameters(&self) -> bool {
        false
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let tensors = view.target.layout().tensors();
        let same_batch = self.batch.is_none() || self.batch == view.batch;
        let known = view.vector_names.iter().position(|n| *n == "variance");
        if let Some(i) = known.filter(|_| same_batch) {
            for (out, t) in out.iter_mut().zip(tensors) {
                let v = &view.chain.vectors[i][t.range.clone()];
                *out = v.iter().map(|v| *v as f64).sum::<f64>() / v.len() as f64;
            }
            return Ok(());
        }
        let batch = self
            .batch
            .or(view.batch)
            .unwrap_or(100)
            .min(view.target.examples());
        let precision = Precision {
            block: self.draws,
            most: self.draws,
            tolerance: f64::INFINITY,
        };
        // On a copy, so that nothing but buffers is written.
        let (chain, mut w) = (view.chain, view.chain.w.to_vec());
        let member = Member {
            index: chain.index,
            group: 0,
            temperature: chain.temperature,
            failure: None,
            scalars: &mut [],
        };
        let row = Row::new(&mut w, Vec::new(), &mut []);
        let mut copy = Block::new((chain.seed, 0), chain.step, member, row);
        let work = std::slice::from_mut(&mut *view.work);
        copy.work(view.target, work, (&Slots::NONE, false), |chains| {
            // Sub-streams from 2^15 on: a sampler's own estimates start at 0.
            let gradient = Estimator::minibatch(batch);
            gradient_noise::estimate(chains, &gradient, precision, 1 << 15, &[true], ESTIMATE)?;
            for (out, t) in out.iter_mut().zip(tensors) {
                let size = t.range.len() as f64;
                *out = chains.engine.sum(&TOTAL, &[ESTIMATE], t.range.clone())?[0] / size;
            }
            Ok(())
        })
    }
}
