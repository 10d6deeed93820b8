//! Underdamped Langevin dynamics.

use super::adaptation::{self, Adaptation, GRADIENT, MASSES, RANK};
use super::gradient::{self, Estimator};
use super::metric::MASS;
use super::{Accuracy, Before, ConfiguredSampler, Lagging, OfTemperature, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::map::{kernel, single};
use crate::kernels::update::{DOT, KICK, SCALED_NOISE};
use crate::options::{Entry, Kind, Range, Spec, option, required};
use crate::rng::Purpose;
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) as δt → 0 (Bussi & Parrinello 2007; Zambon 2026, eq. 7).
struct Langevin {
    dt: f64,
    /// c1 = exp(-γδt/2).
    c1: f64,
    mass: f64,
    gradient: Estimator,
    /// Masses that differ between parameters, if they do.
    masses: Option<Adaptation>,
}

/// The option `adapt_mass`: others than here adapt unless told not to.
const ADAPT_MASS: Spec = option(
    adaptation::ADAPT_MASS.name,
    Kind::Bool,
    "false",
    "Learn masses T/Var(w_i) in burn-in, at 45, 65 and 90 % of it, if it has at least 50 steps. dt is then in units where standard deviations are 1, below 2; it must be stable with the masses of the beginning too.",
);

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
            "M, the mass of every parameter; of those that have masses of their own, a factor.",
        ),
        ADAPT_MASS,
        RANK,
        MASSES,
        gradient::BATCH_OR_ALL,
        gradient::GRADIENT_OR_ALL,
    ],
    example: "sampler::langevin(#{ dt: 0.02, friction: 0.5 })",
    build: |o| {
        let dt = o.float("dt")?;
        let masses = Adaptation::of_masses(o, (&["momentum"], &[]))?;
        let langevin = Langevin {
            masses,
            dt,
            c1: (-o.float("friction")? * dt / 2.0).exp(),
            mass: o.float("mass")?,
            gradient: Estimator::or(o, Estimator::FULL)?,
        };
        Ok(ConfiguredSampler::new(langevin, o))
    },
};

const NOISE: Vector = Vector::Scratch(0);

kernel! {
    /// `Π ← keep·Π - force·g + sigma·R`, `w ← w + drift·Π/M`.
    MASSIVE_STEP = langevin_massive_step(w, p; g, noise_of_masses, mass; ; keep, force, sigma, drift) {
        p = keep * p - force * g + sigma * noise_of_masses;
        w += drift * (p / mass);
    }
}

kernel! {
    /// `Π ← keep·Π - force·g + sigma·R`, `w ← w + drift·Π`.
    STEP = langevin_step(w, p; g; eta; keep, force, sigma, drift) {
        p = keep * p - force * g + sigma * eta;
        w += drift * p;
    }
}

impl Langevin {
    fn momentum(&self) -> Vector {
        match self.masses {
            Some(_) => Vector::State(adaptation::VECTORS.len()),
            None => Vector::State(0),
        }
    }

    /// A step with these coefficients; `c2` multiplies C2.
    fn go(&self, chains: &mut Chains, keep: f64, force: f64, c2: f64, sub: u16) -> Result<()> {
        let (momentum, stream) = (self.momentum(), (Purpose::Noise, sub));
        let heat = (1.0 - self.c1 * self.c1) * self.mass;
        let drift = self.dt / self.mass;
        match &self.masses {
            None => {
                let vectors = [Params, momentum, Gradient];
                chains.map_with_noise(&STEP, &vectors, stream, |_, m| {
                    let sigma = c2 * (heat * m.temperature).sqrt();
                    single([keep, force, sigma, drift])
                })?;
            }
            Some(masses) => {
                masses.metric.draw(chains, NOISE, stream, |t| heat * t)?;
                let vectors = [Params, momentum, Gradient, NOISE, MASS];
                chains.map(&MASSIVE_STEP, &vectors, |_, _| {
                    single([keep, force, c2, drift])
                })?;
                masses.metric.drift(chains, momentum, |_| drift)?;
            }
        }
        chains.engine.reflect(Some(momentum))
    }

    /// Fresh momenta, half a step behind; the gradient is that at the parameters.
    fn begin(&self, chains: &mut Chains, sub: u16) -> Result<()> {
        let (momentum, stream) = (self.momentum(), (Purpose::Momentum, sub));
        match &self.masses {
            None => chains.map_with_noise(&SCALED_NOISE, &[momentum], stream, |_, m| {
                [(self.mass * m.temperature).sqrt() as f32]
            })?,
            Some(masses) => masses
                .metric
                .draw(chains, momentum, stream, |t| self.mass * t)?,
        }
        self.go(chains, self.c1, self.dt / 2.0, 1.0, sub)
    }
}

impl Sampler for Langevin {
    fn name(&self) -> &'static str {
        "langevin"
    }

    fn vectors(&self) -> &'static [&'static str] {
        self.masses.as_ref().map_or(&["momentum"], |m| m.vectors)
    }

    fn scalars(&self) -> &'static [&'static str] {
        self.masses.as_ref().map_or(&[], |m| m.scalars)
    }

    fn scratch(&self) -> usize {
        4 + self.masses.as_ref().map_or(0, Adaptation::scratch)
    }

    fn check(&self, target: &Target) -> Result<()> {
        match &self.masses {
            Some(masses) => masses.check(self.name(), target, self.gradient.batch().is_some()),
            None => Ok(()),
        }
    }

    fn of_temperature(&self) -> OfTemperature {
        let masses = self.masses.as_ref();
        masses.map_or_else(OfTemperature::default, Adaptation::of_temperature)
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
        if let Some(masses) = &self.masses {
            masses.init_masses(chains)?;
        }
        // Sub-stream 1 keeps this apart from the first step.
        self.gradient.estimate(chains, Purpose::Minibatch, 1)?;
        self.begin(chains, 1)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        let Some(masses) = &self.masses else {
            let momenta = Lagging {
                gradient: &self.gradient,
                half: 0.5 * self.dt,
                mass: self.mass,
                scale: None,
            };
            return momenta.change(chains, self.momentum(), before);
        };
        // Where masses are others, momenta are drawn afresh, half a step behind.
        let stream = (Purpose::Momentum, 3);
        self.gradient.estimate(chains, Purpose::Minibatch, 3)?;
        masses
            .metric
            .draw(chains, NOISE, stream, |t| self.mass * t)?;
        chains.map(&KICK, &[NOISE, Gradient], |_, _| [(-0.5 * self.dt) as f32])?;
        let moved = Before::moved(chains, before);
        chains.engine.copy(NOISE, self.momentum(), &moved)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        if self.masses.as_ref().is_some_and(|m| m.metric.rank > 0) {
            chains.copy(Gradient, GRADIENT)?;
        }
        let square = self.c1 * self.c1;
        let force = 0.5 * (1.0 + square) * self.dt;
        self.go(chains, square, force, (1.0 + square).sqrt(), 0)?;
        let (momentum, per) = (self.momentum(), 1.0 / (self.mass * chains.dim() as f64));
        let Some(masses) = &self.masses else {
            return chains.report_sum(report::KINETIC, &DOT, &[momentum, momentum], per);
        };
        let kinetic = masses.metric.product(chains, momentum, momentum)?;
        let kinetic: Vec<_> = kinetic.into_iter().map(|k| k * per).collect();
        chains.report_values(report::KINETIC, &kinetic)?;
        let windows = adaptation::long_windows(chains.burn_in);
        masses.collect_masses(chains, windows, |chains, _| {
            // Momenta are others where masses are.
            self.gradient.estimate(chains, Purpose::Minibatch, 4)?;
            self.begin(chains, 4)?;
            Ok(vec![self.dt; chains.len()])
        })
    }
}
