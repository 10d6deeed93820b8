//! Underdamped Langevin dynamics.

use super::gradient::{self, Estimator};
use super::{Accuracy, Before, ConfiguredSampler, Lagging, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::map::{kernel, single};
use crate::kernels::update::{DOT, SCALED_NOISE};
use crate::options::{Entry, Kind, Range, option, required};
use crate::rng::Purpose;
use std::sync::Arc;

/// Samples exp(-U/T) as δt → 0 (Bussi & Parrinello 2007; Zambon 2026, eq. 7).
struct Langevin {
    dt: f64,
    /// c1 = exp(-γδt/2).
    c1: f64,
    mass: f64,
    gradient: Estimator,
}

/// `sampler::langevin`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "langevin",
    doc: "Samples exp(-U/T) as δt → 0, by underdamped Langevin dynamics with the gradient over all examples.\n\n\
          The integrator of Bussi & Parrinello (2007), as in Zambon et al. (2026), eqs. 7 and 8: with c1 = exp(-γδt/2) and C2² = (1-c1²)MT, \
          `Π ← c1²Π - ½(1+c1²)δt ∇U + sqrt(1+c1²)·C2·R`, `w ← w + δt Π/M`. The finite step adds an error of order δt²·curvature/M: watch the \
          virial temperature. With a noisy gradient the chain is heated by about δt(1+c1²)V/(4γM); sampler::pseudo_langevin corrects for that.",
    arguments: &[],
    options: &[
        required(
            "dt",
            Kind::Float(Range::Positive),
            "δt; well below sqrt(M/largest curvature).",
        ),
        option(
            "friction",
            Kind::Float(Range::Positive),
            "1.0",
            "γ, friction per time: momenta are forgotten in about 1/γ.",
        ),
        option(
            "mass",
            Kind::Float(Range::Positive),
            "1.0",
            "M, the mass of every parameter.",
        ),
        gradient::BATCH_OR_ALL,
        gradient::GRADIENT_OR_ALL,
    ],
    example: "sampler::langevin(#{ dt: 0.02, friction: 0.5 })",
    build: |o| {
        let dt = o.float("dt")?;
        let langevin = Langevin {
            dt,
            c1: (-o.float("friction")? * dt / 2.0).exp(),
            mass: o.float("mass")?,
            gradient: Estimator::or(o, Estimator::FULL)?,
        };
        Ok(ConfiguredSampler::new(langevin, o))
    },
};

const MOMENTUM: Vector = Vector::State(0);

kernel! {
    /// `Π ← keep·Π - force·g + sigma·R`, `w ← w + drift·Π`.
    STEP = langevin_step(w, p; g; eta; keep, force, sigma, drift) {
        p = keep * p - force * g + sigma * eta;
        w += drift * p;
    }
}

impl Langevin {
    /// A step with these coefficients; `c2` multiplies C2.
    fn go(&self, chains: &mut Chains, keep: f64, force: f64, c2: f64, sub: u16) -> Result<()> {
        let vectors = [Params, MOMENTUM, Gradient];
        let heat = (1.0 - self.c1 * self.c1) * self.mass;
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, sub), |_, m| {
            let sigma = c2 * (heat * m.temperature).sqrt();
            single([keep, force, sigma, self.dt / self.mass])
        })?;
        chains.engine.reflect(Some(MOMENTUM))
    }
}

impl Sampler for Langevin {
    fn name(&self) -> &'static str {
        "langevin"
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["momentum"]
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL, report::KINETIC]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        match self.gradient.batch() {
            None => Accuracy::Order(2),
            Some(_) => Accuracy::Unknown(
                "the noise of the gradient adds an error of order δt to that of order δt²",
            ),
        }
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let draw = (Purpose::Momentum, 0);
        chains.map_with_noise(&SCALED_NOISE, &[MOMENTUM], draw, |_, m| {
            [(self.mass * m.temperature).sqrt() as f32]
        })?;
        // Sub-stream 1 keeps this apart from the first step.
        self.gradient.estimate(chains, Purpose::Minibatch, 1)?;
        self.go(chains, self.c1, self.dt / 2.0, 1.0, 1)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        let momenta = Lagging {
            gradient: &self.gradient,
            half: 0.5 * self.dt,
            mass: self.mass,
            scale: None,
        };
        momenta.change(chains, MOMENTUM, before)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        let square = self.c1 * self.c1;
        let force = 0.5 * (1.0 + square) * self.dt;
        self.go(chains, square, force, (1.0 + square).sqrt(), 0)?;
        let per = 1.0 / (self.mass * chains.dim() as f64);
        chains.report_sum(report::KINETIC, &DOT, &[MOMENTUM, MOMENTUM], per)
    }
}
