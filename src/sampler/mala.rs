//! Metropolis-adjusted Langevin: hybrid Monte Carlo of one velocity-Verlet step.

use super::ConfiguredSampler;
use super::adaptation::{ADAPT, ADAPT_MASS, Adaptation, MASSES, RANK};
use super::gradient::Estimator;
use super::hmc::Hmc;
use super::length::Length;
use super::levels;
use crate::options::{Entry, Kind, Range, option, optional};
use std::sync::Arc;

/// `sampler::mala`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "mala",
    doc: "Samples exp(-U/T) exactly, by Metropolis-adjusted Langevin steps.\n\n\
          Proposes `w' = w - (ε/2M)∇U(w) + sqrt(εT/M) η` and accepts with probability min(1, p(w')q(w'→w)/p(w)q(w→w')) (Besag 1994; \
          Roberts & Tweedie 1996). That is hybrid Monte Carlo of one velocity-Verlet step of δt = sqrt(ε), as which it is computed: \
          ΔH/T is the logarithm of the acceptance ratio. Step size and masses adapt in burn-in as those of sampler::hmc do.",
    arguments: &[],
    options: &[
        optional(
            "step",
            Kind::Float(Range::Positive),
            "found at the start",
            "Step size ε (the first one, if adapted).",
        ),
        option(
            "acceptance",
            Kind::Float(Range::Open01),
            "0.574",
            "Acceptance that the step size is adapted to; 0.574 is best in high dimension (Roberts & Rosenthal 1998).",
        ),
        ADAPT,
        ADAPT_MASS,
        RANK,
        MASSES,
    ],
    example: "sampler::mala(#{ acceptance: 0.6 })",
    build: |o| {
        let mala = Hmc {
            name: "mala",
            length: Length::Steps(1),
            dt: o.opt_float("step").map(f64::sqrt),
            jitter: 0.0,
            gradient: Estimator::FULL,
            adaptation: Adaptation::from_options(o, (&[], &levels::SCALARS))?,
        };
        Ok(ConfiguredSampler::new(mala, o))
    },
};
