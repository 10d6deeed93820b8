//! Stochastic-gradient Hamiltonian Monte Carlo.

use super::gradient::{self, Estimator};
use super::{Accuracy, Before, ConfiguredSampler, Lagging, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{DOT, SCALED_NOISE};
use crate::options::{Entry, Kind, Options, Range, Spec, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0 (Chen, Fox & Guestrin 2014).
struct Sghmc {
    step: Schedule,
    friction: f64,
    form: Form,
    gradient: Estimator,
}

/// Right, or as printed in a paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Correct,
    Hitchcock2025,
}

impl Form {
    /// The option.
    pub const OPTION: Spec = option(
        "form",
        Kind::Choice(&["correct", "hitchcock2025"]),
        "correct",
        "\"hitchcock2025\": as printed there, to reproduce the paper; it samples another temperature.",
    );

    pub fn from_options(o: &Options) -> Result<Self> {
        Ok(match o.text("form")? {
            "hitchcock2025" => Self::Hitchcock2025,
            _ => Self::Correct,
        })
    }

    /// What multiplies ε·g in the momentum.
    pub fn force(self) -> f64 {
        match self {
            Self::Correct => 1.0,
            Self::Hitchcock2025 => 0.5,
        }
    }

    /// 1 if parameters move by the momentum before its update.
    pub fn late(self) -> f32 {
        f32::from(u8::from(self == Self::Hitchcock2025))
    }
}

/// `sampler::sghmc`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "sghmc",
    doc: "Samples exp(-U/T) as ε → 0, by stochastic-gradient Hamiltonian Monte Carlo.\n\n\
          `p ← (1-α)p - εg + sqrt(2αεT) η`, `w ← w + p`, with p ~ N(0, εT) (Chen, Fox & Guestrin 2014, eq. 15). The minibatch noise heats the \
          chain by (ε/2α)·V per component. `kinetic` is that of the mean momentum of two steps, which is T where that of p is T/(1-α/2). Algorithm 4 of Hitchcock & Hoogland (2025) has half the force, -(ε/2)g, and so samples exp(-U/2T): \
          `form: \"hitchcock2025\"` reproduces that, with its virial temperature of 2T.",
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
            "α, fraction of the momentum lost per step.",
        ),
        Form::OPTION,
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::sghmc(#{ step: 1e-5, friction: 0.05, batch: 50 })",
    build: |o| {
        let sghmc = Sghmc {
            step: o.schedule("step")?,
            friction: o.float("friction")?,
            form: Form::from_options(o)?,
            gradient: Estimator::from_options(o)?,
        };
        Ok(ConfiguredSampler::new(sghmc, o))
    },
};

pub(super) const MOMENTUM: Vector = Vector::State(0);

/// The momentum in the middle of a step: its temperature is T, that of p is T/(1-α/2), for steps as coarse as α.
pub(super) const MIDDLE: Vector = Vector::Scratch(0);

kernel! {
    /// `p ← keep·p - force·g + sigma·η`, then `w ← w + p`, of the momentum before its update if `late`; notes the mean of the momenta
    /// before and after.
    pub(super) STEP = sghmc(w, p, middle; g; eta; keep, force, sigma, late) {
        let before = p;
        p = keep * p - force * g + sigma * eta;
        w += choose(late > 0.0, before, p);
        middle = 0.5 * (before + p);
    }
}

impl Sampler for Sghmc {
    fn name(&self) -> &'static str {
        "sghmc"
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["momentum"]
    }

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::KINETIC,
            report::MINIBATCH_LOSS,
            report::STEP_SIZE,
        ]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        match self.form {
            Form::Correct => Accuracy::Order(1),
            Form::Hitchcock2025 => {
                Accuracy::Unknown("the form as printed samples another temperature")
            }
        }
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        let draw = (Purpose::Momentum, 0);
        chains.map_with_noise(&SCALED_NOISE, &[MOMENTUM], draw, |_, m| {
            [(epsilon * m.temperature).sqrt() as f32]
        })
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        let momenta = Lagging::of_step(&self.gradient, self.step.at(chains.step));
        momenta.change(chains, MOMENTUM, before)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        let vectors = [Params, MOMENTUM, MIDDLE, Gradient];
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, 0), |_, m| {
            let sigma = (2.0 * self.friction * epsilon * m.temperature).sqrt();
            let force = self.form.force() * epsilon;
            [
                (1.0 - self.friction) as f32,
                force as f32,
                sigma as f32,
                self.form.late(),
            ]
        })?;
        chains.engine.reflect(Some(MOMENTUM))?;
        let per = 1.0 / (epsilon * chains.dim() as f64);
        chains.report_sum(report::KINETIC, &DOT, &[MIDDLE, MIDDLE], per)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        chains.report(report::STEP_SIZE, |_| epsilon)
    }
}
