//! Stochastic-gradient Langevin dynamics.

use super::{BATCH, Chain, Configured, Sampler, configured};
use crate::error::Result;
use crate::kernels::update;
use crate::options::{Entry, Kind, Range, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use crate::target::{Target, Workspace};
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0 (Welling & Teh 2011): `w ← w - (ε/2) g + sqrt(εT) η`.
struct Sgld {
    step: Schedule,
    batch: usize,
}

/// `sampler::sgld`.
pub const ENTRY: Entry<Arc<Configured>> = Entry {
    name: "sgld",
    doc: "Samples exp(-U/T) as ε → 0, by stochastic-gradient Langevin dynamics: `w ← w - (ε/2) g + sqrt(εT) η`.\n\n\
          g is the minibatch gradient of U, η standard normal. Welling & Teh (2011); Iwagaki & Watanabe with ε = 2α; Hitchcock & Hoogland \
          (2025), algorithm 1. The minibatch noise heats the chain by (ε/4)·V per component, V the variance of g, and the finite step \
          adds an error of order ε·curvature: watch the virial temperature.",
    arguments: &[],
    options: &[
        option(
            "step",
            Kind::Schedule(Range::Positive),
            "1e-4",
            "Step size ε, in parameter² per energy.",
        ),
        BATCH,
    ],
    example: "sampler::sgld(#{ step: 1e-5, batch: 50 })",
    build: |o| {
        Ok(configured(
            Sgld {
                step: o.schedule("step")?,
                batch: o.size("batch")?,
            },
            o,
        ))
    },
};

impl Sampler for Sgld {
    fn name(&self) -> &'static str {
        "sgld"
    }

    fn info(&self) -> &'static [&'static str] {
        &["virial", "minibatch_loss", "step_size"]
    }

    fn batch(&self) -> Option<usize> {
        Some(self.batch)
    }

    fn init(&self, _: &mut Chain, _: &Target, _: &mut Workspace) -> Result<()> {
        Ok(())
    }

    fn step(
        &self,
        chain: &mut Chain,
        target: &Target,
        work: &mut Workspace,
        info: &mut [f64],
    ) -> Result<()> {
        let epsilon = self.step.at(chain.step);
        let mut grad = work.take_grad(chain.w.len());
        let loss = chain.minibatch_gradient(
            chain.stream(Purpose::Minibatch),
            self.batch,
            target,
            &mut grad,
            work,
        )?;
        info[0] = update::dot(chain.w, &grad) / grad.len() as f64;
        info[1] = loss;
        info[2] = epsilon;
        let sigma = (epsilon * chain.temperature).sqrt() as f32;
        update::langevin(
            chain.w,
            &grad,
            (epsilon / 2.0) as f32,
            sigma,
            &chain.stream(Purpose::Noise),
        );
        target.prior().reflect(chain.w, None);
        work.grad = grad;
        Ok(())
    }
}
