//! SGLD with a cyclical step size.

use super::gradient::{self, Estimator};
use super::{Bias, Configured, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{Gradient, Params};
use crate::error::Result;
use crate::kernels::update::LANGEVIN;
use crate::options::{Entry, Kind, Range, option, required};
use crate::rng::Purpose;
use std::f64::consts::PI;
use std::sync::Arc;

/// Samples exp(-U/T) at the end of each cycle, as ε → 0 (Zhang et al. 2020).
struct CyclicalSgld {
    step: f64,
    cycle: u64,
    exploration: f64,
    gradient: Estimator,
}

/// `sampler::cyclical_sgld`.
pub const ENTRY: Entry<Arc<Configured>> = Entry {
    name: "cyclical_sgld",
    doc: "Samples exp(-U/T) at the end of each cycle, as ε → 0, by SGLD whose step falls from `step` to 0 along a cosine, again and again.\n\n\
          `ε_t = ½ε0(cos(πφ) + 1)`, φ the part of the cycle that is over (Zhang, Li, Zhang, Chen & Wilson 2020, eq. 1). In the first part of a cycle, \
          `exploration`, no noise is injected: gradient descent with large steps, to find another mode. Only what is recorded in the rest is a sample: \
          `every: trigger::cyclical(cycle, exploration, steps)` records there, and only there.",
    arguments: &[],
    options: &[
        required(
            "step",
            Kind::Float(Range::Positive),
            "ε0, the step size at the start of a cycle.",
        ),
        required("cycle", Kind::Int(Range::AtLeast(2.0)), "Steps per cycle."),
        option(
            "exploration",
            Kind::Float(Range::From0To1),
            "0.8",
            "Part of a cycle without noise.",
        ),
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::cyclical_sgld(#{ step: 1e-4, cycle: 100, batch: 50 })",
    build: |o| {
        let sampler = CyclicalSgld {
            step: o.float("step")?,
            cycle: o.int("cycle")?,
            exploration: o.float("exploration")?,
            gradient: Estimator::from_options(o)?,
        };
        Ok(Configured::new(sampler, o))
    },
};

impl Sampler for CyclicalSgld {
    fn name(&self) -> &'static str {
        "cyclical_sgld"
    }

    fn info(&self) -> &'static [&'static str] {
        &["virial", "minibatch_loss", "step_size", "sampling"]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn bias(&self) -> Bias {
        Bias::Unknown("its steps are of all sizes")
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let phase = (chains.step % self.cycle) as f64 / self.cycle as f64;
        let epsilon = 0.5 * self.step * ((PI * phase).cos() + 1.0);
        let sampling = phase >= self.exploration;
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(0, Gradient)?;
        chains.engine.report_loss(1)?;
        chains.report(2, |_| epsilon)?;
        chains.report(3, |_| f64::from(u8::from(sampling)))?;
        let vectors = [Params, Gradient];
        chains.map_with_noise(&LANGEVIN, &vectors, (Purpose::Noise, 0), |_, m| {
            let heat = if sampling {
                epsilon * m.temperature
            } else {
                0.0
            };
            [(epsilon / 2.0) as f32, heat.sqrt() as f32]
        })?;
        chains.engine.reflect(None)
    }
}
