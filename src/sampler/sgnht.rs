//! The stochastic-gradient Nosé–Hoover thermostat.

use super::gradient::{self, Estimator};
use super::sghmc::{Form, STEP};
use super::{Configured, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::error::Result;
use crate::kernels::update::{DOT, SCALED_NOISE};
use crate::options::{Entry, Kind, Range, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0, whatever noise the gradient has, if it is the same in all components (Ding 2014).
struct Sgnht {
    step: Schedule,
    friction: f64,
    form: Form,
    gradient: Estimator,
}

/// `sampler::sgnht`.
pub const ENTRY: Entry<Arc<Configured>> = Entry {
    name: "sgnht",
    doc: "Samples exp(-U/T) as ε → 0, by a stochastic-gradient Nosé–Hoover thermostat: the friction finds what the gradient's noise needs.\n\n\
          `p ← (1-α)p - εg + sqrt(2α0εT) η`, `w ← w + p`, `α ← α + |p|²/N - εT` (Ding et al. 2014), with one friction α per chain that begins \
          at α0, the friction that the injected noise belongs to. It holds the kinetic temperature at T; noise that differs between components is \
          balanced on average only. Algorithm 5 of Hitchcock & Hoogland (2025) has half the force, |p| in place of |p|², and α in place of α0 in the \
          noise: `form: \"hitchcock2025\"`, whose friction grows without bound.",
    arguments: &[],
    options: &[
        option(
            "step",
            Kind::Schedule(Range::Positive),
            "1e-4",
            "Step size ε, in parameter² per energy: the square of the time step.",
        ),
        option(
            "friction",
            Kind::Float(Range::Between(1e-6, 1.0)),
            "0.1",
            "α0, the friction at the start and of the injected noise.",
        ),
        Form::OPTION,
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::sgnht(#{ step: 1e-5, batch: 50 })",
    build: |o| {
        let sgnht = Sgnht {
            step: o.schedule("step")?,
            friction: o.float("friction")?,
            form: Form::from_options(o)?,
            gradient: Estimator::from_options(o)?,
        };
        Ok(Configured::new(sgnht, o))
    },
};

const MOMENTUM: Vector = Vector::State(0);
const FRICTION: usize = 0;

impl Sampler for Sgnht {
    fn name(&self) -> &'static str {
        "sgnht"
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["momentum"]
    }

    fn scalars(&self) -> &'static [&'static str] {
        &["friction"]
    }

    fn info(&self) -> &'static [&'static str] {
        &[
            "virial",
            "kinetic",
            "minibatch_loss",
            "step_size",
            "friction",
        ]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        (0..chains.len()).for_each(|c| chains.scalars(c)[FRICTION] = self.friction);
        let draw = (Purpose::Momentum, 0);
        chains.map_with_noise(&SCALED_NOISE, &[MOMENTUM], draw, |_, m| {
            [(epsilon * m.temperature).sqrt() as f32]
        })
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let (epsilon, n) = (self.step.at(chains.step), chains.dim() as f64);
        let printed = self.form == Form::Hitchcock2025;
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(0, Gradient)?;
        let mut squares = chains.sum(&DOT, &[MOMENTUM, MOMENTUM])?;
        let friction = chains.scalar(FRICTION);
        let vectors = [Params, MOMENTUM, Gradient];
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, 0), |c, m| {
            let injected = if printed { friction[c] } else { self.friction };
            let sigma = (2.0 * injected * epsilon * m.temperature).sqrt();
            [
                (1.0 - friction[c]) as f32,
                (self.form.force() * epsilon) as f32,
                sigma as f32,
                self.form.late(),
            ]
        })?;
        chains.engine.reflect(Some(MOMENTUM))?;
        if !printed {
            squares = chains.sum(&DOT, &[MOMENTUM, MOMENTUM])?;
        }
        let temperatures = chains.each(|m| m.temperature);
        for c in 0..chains.len() {
            let size = if printed {
                squares[c].sqrt()
            } else {
                squares[c]
            };
            chains.scalars(c)[FRICTION] += size / n - epsilon * temperatures[c];
        }
        let kinetic: Vec<_> = squares.iter().map(|s| s / (n * epsilon)).collect();
        chains.engine.report(1, &kinetic)?;
        chains.engine.report_loss(2)?;
        chains.report(3, |_| epsilon)?;
        chains.report_scalar(4, FRICTION)
    }
}
