//! Hybrid Monte Carlo that learns how long its trajectories should be.

use super::ConfiguredSampler;
use super::adaptation::{ADAPT, ADAPT_MASS, Adaptation, MASSES, RANK};
use super::gradient::Estimator;
use super::hmc::Hmc;
use super::length::{self, Length};
use crate::options::{Entry, Kind, Range, option, optional};
use std::sync::Arc;

/// `sampler::snaper`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "snaper",
    doc: "Samples exp(-U/T) exactly, by hybrid Monte Carlo whose trajectories are as long as pays (SNAPER).\n\n\
          As sampler::hmc; a trajectory has a random number of steps, from a half of the greatest one to that, by a Halton sequence. In burn-in trajectories go twice as far, and \
          the length is chosen for which a gradient brings most, along the direction in which the draws vary most, in units of the masses: the squared jump of a coordinate's square (the criterion of ChEES, \
          Hoffman, Radul & Sountsov 2021, along the first principal component as Sountsov & Hoffman 2022) or of the coordinate, whichever relaxes more slowly. They climb its gradient, averaged over many chains; with \
          a few chains that gradient is mostly noise.\n\n\
          Each chain learns from its own trajectories: on a ladder the length belongs to the rung. Nothing is learnt without burn-in or with `adapt: false`: trajectories then have 8 to 16 steps. Step size and masses adapt as those of sampler::hmc. `leapfrog` in the sample statistics is the number of \
          gradients of a trajectory.",
    arguments: &[],
    options: &[
        optional(
            "dt",
            Kind::Float(Range::Positive),
            "found at the start",
            "Step size (the first one, if adapted).",
        ),
        option(
            "acceptance",
            Kind::Float(Range::Open01),
            "0.8",
            "Acceptance that the step size is adapted to.",
        ),
        ADAPT,
        ADAPT_MASS,
        RANK,
        MASSES,
    ],
    example: "sampler::snaper(#{ acceptance: 0.7 })",
    build: |o| {
        let hmc = Hmc {
            name: "snaper",
            length: Length::Learnt,
            dt: o.opt_float("dt"),
            jitter: 0.0,
            gradient: Estimator::FULL,
            adaptation: Adaptation::from_options(o, (&length::VECTORS, length::scalars()))?,
        };
        Ok(ConfiguredSampler::new(hmc, o))
    },
};
