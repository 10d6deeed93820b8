//! SGLD with a step size per parameter, from running statistics of the loss gradient: RMSProp-SGLD and Adam-SGLD.

use super::bias::PRECONDITIONED;
use super::gradient::{self, Estimator};
use super::{Bias, Configured, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::FILL;
use crate::options::{Entry, Kind, Options, Range, Spec, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0 and the statistics stop changing (Hitchcock & Hoogland 2025, algorithms 2 and 3).
struct PreconditionedSgld {
    step: Schedule,
    preconditioner: Preconditioner,
    gradient: Estimator,
}

const STEP: Spec = option(
    "step",
    Kind::Schedule(Range::Positive),
    "1e-4",
    "Base step size ε; that of parameter i is ε/(sqrt(v̂_i) + stability).",
);

const DECAY: Spec = option(
    "decay",
    Kind::Float(Range::Open01),
    "0.99",
    "b, what a step leaves of the running mean square v.",
);

const MOMENT_DECAY: Spec = option(
    "moment_decay",
    Kind::Float(Range::Open01),
    "0.9",
    "b1, what a step leaves of the running mean m of the gradient.",
);

const STABILITY: Spec = option(
    "stability",
    Kind::Float(Range::Positive),
    "0.1",
    "a, which bounds the step size of parameters that see no gradient.",
);

/// `sampler::rmsprop_sgld`.
pub const RMSPROP: Entry<Arc<Configured>> = Entry {
    name: "rmsprop_sgld",
    doc: "Samples exp(-U/T) as ε → 0 and decay → 1, by SGLD with a step size per parameter.\n\n\
          `v ← bv + (1-b)g_L²`, g_L the minibatch gradient of the mean loss without s and prior, v̂ = v/(1-b^(t+1)), `ε_i = ε/(sqrt(v̂_i) + a)`, \
          `w_i ← w_i - (ε_i/2) g_i + sqrt(ε_i T) η_i` (Li et al. 2016; Hitchcock & Hoogland 2025, algorithm 3, whose exponent t divides by zero at \
          t = 0). v starts at 1. As in the paper, the term Γ that makes up for steps that depend on w is left out: the law is right only as far as v \
          varies slowly: a chain that needs longer than 1/(1-decay) steps to relax is off (by 0.7 % of the cost of a small network in our tests, for both forms).",
    arguments: &[],
    options: &[STEP, DECAY, STABILITY, gradient::BATCH, gradient::GRADIENT],
    example: "sampler::rmsprop_sgld(#{ step: 1e-5, batch: 50 })",
    build: |o| build(o, Form::Rmsprop),
};

/// `sampler::adam_sgld`.
pub const ADAM: Entry<Arc<Configured>> = Entry {
    name: "adam_sgld",
    doc: "Samples exp(-U/T) as ε → 0 and decay → 1, by SGLD with a step size per parameter and a running mean for the loss gradient.\n\n\
          As sampler::rmsprop_sgld, but the loss part of the drift is s·m̂ with `m ← b1 m + (1-b1)g_L`, m̂ = m/(1-b1^(t+1)) (Hitchcock & Hoogland \
          2025, algorithm 2). The mean lags behind by 1/(1-b1) steps, which matters where they are not small.",
    arguments: &[],
    options: &[
        STEP,
        DECAY,
        MOMENT_DECAY,
        STABILITY,
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::adam_sgld(#{ step: 1e-5, batch: 50 })",
    build: |o| build(o, Form::Adam),
};

fn build(o: &Options, form: Form) -> Result<Arc<Configured>> {
    let sampler = PreconditionedSgld {
        step: o.schedule("step")?,
        preconditioner: Preconditioner::from_options(o, form)?,
        gradient: Estimator::from_options(o)?,
    };
    Ok(Configured::new(sampler, o))
}

/// Which statistics make the step sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// None: all step sizes are equal.
    Sgld,
    Rmsprop,
    Adam,
}

/// Step sizes per parameter, in units of ε, and their statistics.
pub(super) struct Preconditioner {
    pub form: Form,
    decay: f64,
    moment_decay: f64,
    stability: f64,
}

// The first vectors of the state.
const SQUARE: Vector = Vector::State(0);
const MOMENT: Vector = Vector::State(1);

/// sqrt(ε_i/ε), once the preconditioner is updated.
pub(super) const SCALE: Vector = Vector::Scratch(0);
const PRIOR: Vector = Vector::Scratch(1);

kernel! {
    /// Statistics of the loss gradient (g - r)/s, and the square roots of the step sizes.
    UPDATE_RMSPROP = rmsprop_update(v, scale; g, r; ; inverse_s, decay, correct, stability) {
        let loss = (g - r) * inverse_s;
        v = decay * v + (1.0 - decay) * loss * loss;
        scale = root(1.0 / (root(v * correct) + stability));
    }
}

kernel! {
    /// The same; the loss part of the gradient becomes its running mean.
    UPDATE_ADAM = adam_update(v, moment, g, scale; r; ; s, decay, correct, stability, moment_decay, moment_correct) {
        let loss = (g - r) / s;
        v = decay * v + (1.0 - decay) * loss * loss;
        moment = moment_decay * moment + (1.0 - moment_decay) * loss;
        g = s * (moment * moment_correct) + r;
        scale = root(1.0 / (root(v * correct) + stability));
    }
}

kernel! {
    /// Langevin with a step size per parameter: `w ← w - half·scale²·g + sigma·scale·η`.
    LANGEVIN = preconditioned_langevin(w; g, scale; eta; half, sigma) {
        w = w - half * (scale * scale) * g + sigma * scale * eta;
    }
}

impl Preconditioner {
    pub fn from_options(o: &Options, form: Form) -> Result<Self> {
        Ok(Self {
            form,
            decay: o.float("decay").unwrap_or(0.99),
            moment_decay: o.float("moment_decay").unwrap_or(0.9),
            stability: o.float("stability").unwrap_or(0.1),
        })
    }

    /// Names of its state vectors, which are the first of the sampler's.
    pub fn vectors(&self) -> &'static [&'static str] {
        match self.form {
            Form::Sgld => &[],
            Form::Rmsprop => &["mean_square"],
            Form::Adam => &["mean_square", "mean"],
        }
    }

    pub fn init(&self, chains: &mut Chains) -> Result<()> {
        match self.form {
            Form::Sgld => Ok(()),
            _ => chains.map(&FILL, &[SQUARE], |_, _| [1.0]),
        }
    }

    /// Enter the gradient into the statistics; leaves [`SCALE`] and, for Adam, another gradient.
    pub fn update(&self, chains: &mut Chains) -> Result<()> {
        if self.form == Form::Sgld {
            return chains.map(&FILL, &[SCALE], |_, _| [1.0]);
        }
        chains.engine.prior_gradient(PRIOR)?;
        let s = chains.engine.target().scale();
        let t = chains.step as f64 + 1.0;
        let correct = |decay: f64| (1.0 / (1.0 - decay.powf(t))) as f32;
        let (decay, stability) = (self.decay as f32, self.stability as f32);
        if self.form == Form::Rmsprop {
            let vectors = [SQUARE, SCALE, Gradient, PRIOR];
            return chains.map(&UPDATE_RMSPROP, &vectors, |_, _| {
                [(1.0 / s) as f32, decay, correct(self.decay), stability]
            });
        }
        let vectors = [SQUARE, MOMENT, Gradient, SCALE, PRIOR];
        chains.map(&UPDATE_ADAM, &vectors, |_, _| {
            [
                s as f32,
                decay,
                correct(self.decay),
                stability,
                self.moment_decay as f32,
                correct(self.moment_decay),
            ]
        })
    }
}

impl Sampler for PreconditionedSgld {
    fn name(&self) -> &'static str {
        match self.preconditioner.form {
            Form::Adam => "adam_sgld",
            _ => "rmsprop_sgld",
        }
    }

    fn vectors(&self) -> &'static [&'static str] {
        self.preconditioner.vectors()
    }

    fn info(&self) -> &'static [&'static str] {
        &["virial", "minibatch_loss", "step_size"]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn bias(&self) -> Bias {
        PRECONDITIONED
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.preconditioner.init(chains)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(0, Gradient)?;
        chains.engine.report_loss(1)?;
        chains.report(2, |_| epsilon)?;
        self.preconditioner.update(chains)?;
        let vectors = [Params, Gradient, SCALE];
        chains.map_with_noise(&LANGEVIN, &vectors, (Purpose::Noise, 0), |_, m| {
            [
                (epsilon / 2.0) as f32,
                (epsilon * m.temperature).sqrt() as f32,
            ]
        })?;
        chains.engine.reflect(None)
    }
}
