//! The stochastic-gradient Nosé–Hoover thermostat.

use super::gradient::{self, Estimator};
use super::sghmc::{self, MIDDLE, MOMENTUM, STEP};
use super::{Accuracy, Before, ConfiguredSampler, Lagging, OfTemperature, Sampler};
use crate::engine::Vector::{Gradient, Params};
use crate::engine::report::{self, Report};
use crate::engine::{Chains, PerChain};
use crate::error::Result;
use crate::kernels::update::{DOT, SCALED_NOISE};
use crate::options::{Entry, Kind, Options, Range, option};
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

/// Which kinetic energy the thermostat holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// That of the momentum in the middle of a step.
    Correct,
    /// That of the momentum after a step.
    Ding2014,
    /// As printed.
    Hitchcock2025,
}

impl Form {
    fn from_options(o: &Options) -> Result<Self> {
        Ok(match o.text("form")? {
            "ding2014" => Self::Ding2014,
            "hitchcock2025" => Self::Hitchcock2025,
            _ => Self::Correct,
        })
    }
}

/// `sampler::sgnht`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "sgnht",
    doc: "Samples exp(-U/T) as ε → 0, by a stochastic-gradient Nosé–Hoover thermostat: the friction adapts to the gradient's noise.\n\n\
          `p ← (1-α)p - εg + sqrt(2α0εT) η`, `w ← w + p`, `α ← α + |p̄|²/N - εT`, with one friction α per chain that begins \
          at α0, the friction that the injected noise belongs to (Ding et al. 2014). p̄ is the mean momentum of two steps: with |p|² in its place, as \
          in Ding et al., T is reached by a momentum that is 1/(1-α/2) too hot for its noise, and the parameters are colder than T by the factor 1-α0/2: \
          `form: \"ding2014\"`. Noise that differs between components is balanced on average only. Algorithm 5 of Hitchcock & Hoogland (2025) has half \
          the force, |p| in place of |p|², and α in place of α0 in the noise: `form: \"hitchcock2025\"`, whose friction grows without bound.",
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
            "α0, the initial friction, which also sets the injected noise.",
        ),
        option(
            "form",
            Kind::Choice(&["correct", "ding2014", "hitchcock2025"]),
            "correct",
            "\"ding2014\": with |p|², colder by α0/2 · \"hitchcock2025\": as printed there, to reproduce the paper.",
        ),
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
        Ok(ConfiguredSampler::new(sgnht, o))
    },
};

const FRICTION: usize = 0;

/// The friction that the thermostat has come to.
const THERMOSTAT: Report = Report("friction");

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

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::KINETIC,
            report::MINIBATCH_LOSS,
            report::STEP_SIZE,
            THERMOSTAT,
        ]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Unknown("the thermostat's own error is of unknown order")
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        (0..chains.len()).for_each(|c| chains.scalars(c)[FRICTION] = self.friction);
        let draw = (Purpose::Momentum, 0);
        chains.map_with_noise(&SCALED_NOISE, &[MOMENTUM], draw, |_, m| {
            [(epsilon * m.temperature).sqrt() as f32]
        })
    }

    fn of_temperature(&self) -> OfTemperature {
        // The friction that holds the kinetic temperature depends on how the gradient's noise compares with T.
        OfTemperature {
            scalars: FRICTION..FRICTION + 1,
            ..OfTemperature::default()
        }
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        let momenta = Lagging::of_step(&self.gradient, self.step.at(chains.step));
        momenta.change(chains, MOMENTUM, before)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let (epsilon, n) = (self.step.at(chains.step), chains.dim() as f64);
        let printed = self.form == Form::Hitchcock2025;
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        let before = match printed {
            true => chains.sum(&DOT, &[MOMENTUM, MOMENTUM])?,
            false => PerChain::new(),
        };
        let friction = chains.scalar(FRICTION);
        let vectors = [Params, MOMENTUM, MIDDLE, Gradient];
        let form = match printed {
            true => sghmc::Form::Hitchcock2025,
            false => sghmc::Form::Correct,
        };
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, 0), |c, m| {
            let injected = if printed { friction[c] } else { self.friction };
            let sigma = (2.0 * injected * epsilon * m.temperature).sqrt();
            [
                (1.0 - friction[c]) as f32,
                (form.force() * epsilon) as f32,
                sigma as f32,
                form.late(),
            ]
        })?;
        chains.engine.reflect(Some(MOMENTUM))?;
        let squares = match self.form {
            Form::Correct => chains.sum(&DOT, &[MIDDLE, MIDDLE])?,
            Form::Ding2014 => chains.sum(&DOT, &[MOMENTUM, MOMENTUM])?,
            Form::Hitchcock2025 => before,
        };
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
        chains.report_values(report::KINETIC, &kinetic)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        chains.report(report::STEP_SIZE, |_| epsilon)?;
        chains.report_scalar(THERMOSTAT, FRICTION)
    }
}
