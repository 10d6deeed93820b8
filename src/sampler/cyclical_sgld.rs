//! SGLD with a cyclical step size.

use super::gradient::{self, Estimator};
use super::{Accuracy, ConfiguredSampler, Sampler, Sampling};
use crate::engine::Chains;
use crate::engine::Vector::{Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::update::LANGEVIN;
use crate::options::{Entry, Kind, Range, option, required};
use crate::rng::Purpose;
use std::f64::consts::PI;
use std::sync::Arc;

/// Samples exp(-U/T) at the end of each cycle, where cycles are long (Zhang et al. 2020).
struct CyclicalSgld {
    step: f64,
    /// Steps per cycle, and from which one on chains are sampled.
    sampling: Sampling,
    /// The first step of a cycle with noise.
    noisy: u64,
    gradient: Estimator,
}

/// `sampler::cyclical_sgld`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "cyclical_sgld",
    doc: "Samples exp(-U/T) at the end of each cycle, as ε → 0 and for long cycles, by SGLD whose step falls from `step` to 0 along a cosine, again and again.\n\n\
          `ε_t = ½ε0(cos(πφ) + 1)`, φ the elapsed fraction of the cycle (Zhang, Li, Zhang, Chen & Wilson 2020, eq. 1). In the first part of a cycle, \
          `exploration`, no noise is injected: gradient descent with large steps, to find another mode. It ends in a minimum, from where noise must bring the chain back to \
          its temperature before there is anything to sample: that is the next part, `settling`. It does so if Σε over that part is several times 1/k for the \
          smallest curvature k that counts; at the defaults Σε is 0.17·ε0·cycle, with exploration 0.8 and settling 0.1 only 0.006·ε0·cycle. \
          A cycle that is too short samples a law that is too cold, and the virial thermometer, which uses the samples alone, shows it.\n\n\
          Only what is recorded in the rest of a cycle is a sample, and records elsewhere are refused: \
          `every: trigger::cyclical(cycle, exploration + settling, steps)` records there.",
    arguments: &[],
    options: &[
        required(
            "step",
            Kind::Float(Range::Positive),
            "ε0, the step size at the start of a cycle.",
        ),
        required(
            "cycle",
            Kind::Int(Range::AtLeast(2.0)),
            "Steps per cycle; many more than 6/(ε0·k), k the smallest curvature that counts.",
        ),
        option(
            "exploration",
            Kind::Float(Range::From0To1),
            "0.25",
            "Part of a cycle without noise.",
        ),
        option(
            "settling",
            Kind::Float(Range::From0To1),
            "0.25",
            "Part of a cycle after exploration, with noise but without samples.",
        ),
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::cyclical_sgld(#{ step: 1e-4, cycle: 100, batch: 50 })",
    build: |o| {
        let cycle = o.int("cycle")?;
        let (exploration, settling) = (o.float("exploration")?, o.float("settling")?);
        let first = |part: f64| (part * cycle as f64 - 1e-6).ceil().max(0.0) as u64;
        let sampling = Sampling {
            cycle,
            from: first(exploration + settling),
        };
        anyhow::ensure!(
            sampling.from < cycle,
            "{}: options 'exploration' and 'settling' are {exploration} and {settling}, which leaves nothing of a cycle of {cycle} steps to sample; together they must be less than 1",
            o.owner()
        );
        let sampler = CyclicalSgld {
            step: o.float("step")?,
            sampling,
            noisy: first(exploration),
            gradient: Estimator::from_options(o)?,
        };
        Ok(ConfiguredSampler::new(sampler, o))
    },
};

impl Sampler for CyclicalSgld {
    fn name(&self) -> &'static str {
        "cyclical_sgld"
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL, report::MINIBATCH_LOSS, report::STEP_SIZE]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Unknown("its step size varies over each cycle")
    }

    fn sampling(&self) -> Option<Sampling> {
        Some(self.sampling)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let cycle = self.sampling.cycle;
        let at = chains.step % cycle;
        let epsilon = 0.5 * self.step * ((PI * at as f64 / cycle as f64).cos() + 1.0);
        let noisy = at >= self.noisy;
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        chains.report(report::STEP_SIZE, |_| epsilon)?;
        let vectors = [Params, Gradient];
        chains.map_with_noise(&LANGEVIN, &vectors, (Purpose::Noise, 0), |_, m| {
            let heat = if noisy { epsilon * m.temperature } else { 0.0 };
            [(epsilon / 2.0) as f32, heat.sqrt() as f32]
        })?;
        chains.engine.reflect(None)
    }
}
