//! Stochastic-gradient Langevin dynamics.

use super::gradient::{self, Estimator};
use super::{Accuracy, ConfiguredSampler, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::update::LANGEVIN;
use crate::options::{Entry, Kind, Range, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0 (Welling & Teh 2011): `w ← w - (ε/2) g + sqrt(εT) η`.
struct Sgld {
    step: Schedule,
    gradient: Estimator,
}

/// `sampler::sgld`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
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
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::sgld(#{ step: 1e-5, batch: 50 })",
    build: |o| {
        let sgld = Sgld {
            step: o.schedule("step")?,
            gradient: Estimator::from_options(o)?,
        };
        Ok(ConfiguredSampler::new(sgld, o))
    },
};

impl Sampler for Sgld {
    fn name(&self) -> &'static str {
        "sgld"
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL, report::MINIBATCH_LOSS, report::STEP_SIZE]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Order(1)
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        chains.report(report::STEP_SIZE, |_| epsilon)?;
        chains.map_with_noise(
            &LANGEVIN,
            &[Params, Gradient],
            (Purpose::Noise, 0),
            |_, m| {
                [
                    (epsilon / 2.0) as f32,
                    (epsilon * m.temperature).sqrt() as f32,
                ]
            },
        )?;
        chains.engine.reflect(None)
    }
}
