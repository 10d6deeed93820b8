//! SGLD with a step size per parameter, from running statistics of the loss gradient: RMSProp-SGLD and Adam-SGLD.

use super::gradient::{self, Estimator};
use super::{Accuracy, Before, Bias, ConfiguredSampler, Lagging, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::FILL;
use crate::options::{Entry, Kind, Options, Range, Spec, option};
use crate::rng::Purpose;
use crate::schedule::Schedule;
use std::sync::Arc;

/// Samples exp(-U/T) as ε → 0 once its step sizes are frozen; as Hitchcock & Hoogland (2025, algorithms 2 and 3) have it, never quite.
struct PreconditionedSgld {
    step: Schedule,
    preconditioner: Preconditioner,
    gradient: Estimator,
}

const STEP: Spec = option(
    "step",
    Kind::Schedule(Range::Positive),
    "1e-4",
    "Base step size ε; that of parameter i is ε/(sqrt(v_i) + stability).",
);

const DECAY: Spec = option(
    "decay",
    Kind::Float(Range::Open01),
    "0.99",
    "b, decay per step of the running mean square v.",
);

/// The option `preconditioner`.
pub const PRECONDITIONER: Spec = option(
    "preconditioner",
    Kind::Choice(&["frozen", "running"]),
    "frozen",
    "\"frozen\": v stays what it is at the end of burn-in, so that the law is right as ε → 0 · \"running\": as in the papers, which samples another law.",
);

const MOMENT_DECAY: Spec = option(
    "moment_decay",
    Kind::Float(Range::Open01),
    "0.9",
    "b1, decay per step of the running mean, of the steps or, with a running preconditioner, of the gradient.",
);

const STABILITY: Spec = option(
    "stability",
    Kind::Float(Range::Positive),
    "0.1",
    "a, which bounds the step size of parameters that see no gradient.",
);

/// `sampler::rmsprop_sgld`.
pub const RMSPROP: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "rmsprop_sgld",
    doc: "Samples exp(-U/T) as ε → 0, by SGLD with a step size per parameter, which burn-in finds and sampling keeps.\n\n\
          `ε_i = ε/(sqrt(v_i) + a)`, `w_i ← w_i - (ε_i/2) g_i + sqrt(ε_i T) η_i`, v the mean of g_L², g_L the minibatch gradient of the mean loss without \
          s and prior. In the first half of burn-in the mean forgets by `decay`, in the second half it forgets nothing, and then it is frozen: step sizes that \
          do not depend on w need no Γ, and minibatches heat the chain as they do in sampler::sgld, by (ε_i/4)·V. Without burn-in v is that of the first \
          minibatch.\n\n\
          `preconditioner: \"running\"` is algorithm 3 of Hitchcock & Hoogland (2025; Li et al. 2016): `v ← bv + (1-b)g_L²` all the time, v = 1 at the \
          start, v̂ = v/(1-b^(t+1)) (they print the exponent t, which divides by zero at t = 0). As there, the term Γ that makes up for steps that depend on w \
          is left out: the law is not exp(-U/T), however small ε is. At b = 0.99 the cost of a small network comes out 1.7 % too high, which the \
          virial temperature does not show, and U of a Gaussian of condition 4 at T = 0.5 by 30 %.",
    arguments: &[],
    options: &[
        STEP,
        PRECONDITIONER,
        DECAY,
        STABILITY,
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::rmsprop_sgld(#{ step: 1e-5, batch: 50 })",
    build: |o| build(o, Form::Rmsprop),
};

/// `sampler::adam_sgld`.
pub const ADAM: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "adam_sgld",
    doc: "Samples exp(-U/T) as ε → 0, by SGLD with a step size per parameter and steps that are running means, of gradient and noise.\n\n\
          Step sizes as in sampler::rmsprop_sgld; `u ← b1 u + (1-b1)[sqrt(ε_i T) η - (ε_i/2) g]`, `w ← w + u`: Langevin dynamics with the momentum u, and the \
          friction 1-b1 per step.\n\n\
          `preconditioner: \"running\"` is algorithm 2 of Hitchcock & Hoogland (2025): v keeps being updated, and the mean is that of the loss gradient only, \
          `m ← b1 m + (1-b1)g_L`, m̂ = m/(1-b1^(t+1)), with s·m̂ in the place of the loss part of g and fresh noise at every step. A force that lags behind by \
          b1/(1-b1) steps heats the chain, by (b1/(1-b1))·ε_i·curvature/2 of T: at b = 0.99 and b1 = 0.9 the cost of a small network comes out 3.3 % too high, \
          about half of it from the lag and half from v.",
    arguments: &[],
    options: &[
        STEP,
        PRECONDITIONER,
        DECAY,
        MOMENT_DECAY,
        STABILITY,
        gradient::BATCH,
        gradient::GRADIENT,
    ],
    example: "sampler::adam_sgld(#{ step: 1e-5, batch: 50 })",
    build: |o| build(o, Form::Adam),
};

fn build(o: &Options, form: Form) -> Result<Arc<ConfiguredSampler>> {
    let sampler = PreconditionedSgld {
        step: o.schedule("step")?,
        preconditioner: Preconditioner::from_options(o, form)?,
        gradient: Estimator::from_options(o)?,
    };
    Ok(ConfiguredSampler::new(sampler, o))
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
    /// Whether statistics run on after burn-in, as in the papers.
    running: bool,
    decay: f64,
    moment_decay: f64,
    stability: f64,
}

// The first vectors of the state.
const SQUARE: Vector = Vector::State(0);
/// The running mean of Adam: of the loss gradient, or of the steps in units of sqrt(ε_i/ε).
pub(super) const MOMENT: Vector = Vector::State(1);

/// sqrt(ε_i/ε), once the preconditioner is updated.
pub(super) const SCALE: Vector = Vector::Scratch(0);
const PRIOR: Vector = Vector::Scratch(1);

kernel! {
    /// The mean square of the loss gradient (g - r)/s.
    MEAN_SQUARE = preconditioner_mean_square(v; g, r; ; inverse_s, decay) {
        let loss = (g - r) * inverse_s;
        v = decay * v + (1.0 - decay) * loss * loss;
    }
}

kernel! {
    /// The square roots of the step sizes.
    ROOTS = preconditioner_roots(scale; v; ; correct, stability) {
        scale = root(1.0 / (root(v * correct) + stability));
    }
}

kernel! {
    /// The loss part of the gradient becomes its running mean.
    MEAN_GRADIENT = adam_mean_gradient(moment, g; r; ; s, decay, correct) {
        let loss = (g - r) / s;
        moment = decay * moment + (1.0 - decay) * loss;
        g = s * (moment * correct) + r;
    }
}

kernel! {
    /// Langevin with a step size per parameter: `w ← w - half·scale²·g + sigma·scale·η`.
    LANGEVIN = preconditioned_langevin(w; g, scale; eta; half, sigma) {
        w = w - half * (scale * scale) * g + sigma * scale * eta;
    }
}

kernel! {
    /// The same by steps that are running means: `u ← keep·u + (1-keep)(sigma·η - half·scale·g)`, `w ← w + scale·u`.
    MEAN_LANGEVIN = preconditioned_mean_langevin(w, u; g, scale; eta; half, sigma, keep) {
        u = keep * u + (1.0 - keep) * (sigma * eta - half * scale * g);
        w += scale * u;
    }
}

impl Preconditioner {
    pub fn from_options(o: &Options, form: Form) -> Result<Self> {
        Ok(Self {
            form,
            running: o.text("preconditioner")? == "running",
            decay: o.float("decay")?,
            moment_decay: o.float("moment_decay").unwrap_or(0.9),
            stability: o.float("stability")?,
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

    /// What a step leaves of the running mean of steps; none if steps are no such means.
    pub fn keep(&self) -> Option<f32> {
        (self.form == Form::Adam && !self.running).then_some(self.moment_decay as f32)
    }

    /// How the law is off at a finite step.
    pub fn accuracy(&self) -> Accuracy {
        match self.running && self.form != Form::Sgld {
            true => Accuracy::Unknown(
                "step sizes that follow running statistics bias the law however small they are",
            ),
            false => Accuracy::Order(1),
        }
    }

    /// What its form makes of the law.
    pub fn bias(&self) -> Option<Bias> {
        let (cost, norm2) = match (self.running, self.form) {
            (true, Form::Rmsprop) => (0.017, -0.007),
            (true, Form::Adam) => (0.033, -0.002),
            _ => return None,
        };
        Some(Bias {
            cause: "a running preconditioner makes step sizes depend on w, without the term Γ that this requires",
            cost,
            norm2,
            settings: "m = 60, step 0.01 and the usual decays",
            remedy: "on a Gaussian it was 30 to 40 %; preconditioner: \"frozen\" samples the right law",
        })
    }

    /// See [`Sampler::note`].
    pub fn note(&self, burn_in: u64) -> Option<&'static str> {
        let blind = self.form != Form::Sgld && !self.running && burn_in == 0;
        blind.then_some(
            "there is no burn-in to find step sizes in: they come from the first minibatch",
        )
    }

    pub fn init(&self, chains: &mut Chains) -> Result<()> {
        match self.form {
            Form::Sgld => Ok(()),
            _ => chains.map(&FILL, &[SQUARE], |_, _| [1.0]),
        }
    }

    /// What the gradients before step `t` of `warm` count for beside that of the step: up to 1/(1-b) of them, to which those of the second half
    /// of burn-in are added, so that they all count alike.
    fn before(&self, t: u64, warm: u64) -> f64 {
        let half = warm / 2;
        let memory = (t.min(half) as f64).min(self.decay / (1.0 - self.decay));
        memory + t.saturating_sub(half) as f64
    }

    /// Enter the gradient into the statistics; leaves [`SCALE`] and, for Adam as in the papers, another gradient.
    pub fn update(&self, chains: &mut Chains) -> Result<()> {
        if self.form == Form::Sgld {
            return chains.map(&FILL, &[SCALE], |_, _| [1.0]);
        }
        let (t, warm) = (chains.step, chains.burn_in.max(1));
        let keep = match self.running {
            true => self.decay,
            false => {
                let before = self.before(t, warm);
                before / (before + 1.0)
            }
        };
        if self.running || t < warm {
            chains.engine.prior_gradient(PRIOR)?;
            let inverse = (1.0 / chains.engine.target().scale()) as f32;
            chains.map(&MEAN_SQUARE, &[SQUARE, Gradient, PRIOR], |_, _| {
                [inverse, keep as f32]
            })?;
        }
        self.roots(chains, t)?;
        if !self.running || self.form != Form::Adam {
            return Ok(());
        }
        let vectors = [MOMENT, Gradient, PRIOR];
        let s = chains.engine.target().scale() as f32;
        let decay = self.moment_decay;
        chains.map(&MEAN_GRADIENT, &vectors, |_, _| {
            [s, decay as f32, correction(decay, t)]
        })
    }

    /// [`SCALE`] from the statistics of step `t`.
    fn roots(&self, chains: &mut Chains, t: u64) -> Result<()> {
        let correct = match self.running {
            true => correction(self.decay, t),
            false => 1.0,
        };
        let stability = self.stability as f32;
        chains.map(&ROOTS, &[SCALE, SQUARE], |_, _| [correct, stability])
    }

    /// Bring the running mean of steps to other temperatures: it is a momentum.
    pub fn change_temperature(
        &self,
        gradient: &Estimator,
        epsilon: f64,
        chains: &mut Chains,
        before: &[Before],
    ) -> Result<()> {
        if self.keep().is_none() {
            return Ok(());
        }
        self.roots(chains, chains.step)?;
        // SGHMC of friction 1-b1 and half that step, in units in which all step sizes are equal.
        let step = (1.0 - self.moment_decay) * epsilon / 2.0;
        let momenta = Lagging {
            scale: Some(SCALE),
            ..Lagging::of_step(gradient, step)
        };
        momenta.change(chains, MOMENT, before)
    }
}

/// 1/(1-b^(t+1)).
fn correction(decay: f64, t: u64) -> f32 {
    (1.0 / (1.0 - decay.powf(t as f64 + 1.0))) as f32
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

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL, report::MINIBATCH_LOSS, report::STEP_SIZE]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        self.preconditioner.accuracy()
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn bias(&self) -> Option<Bias> {
        self.preconditioner.bias()
    }

    fn note(&self, burn_in: u64) -> Option<&'static str> {
        self.preconditioner.note(burn_in)
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.preconditioner.init(chains)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.preconditioner
            .change_temperature(&self.gradient, epsilon, chains, before)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let epsilon = self.step.at(chains.step);
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Gradient)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        chains.report(report::STEP_SIZE, |_| epsilon)?;
        self.preconditioner.update(chains)?;
        let half = (epsilon / 2.0) as f32;
        let draw = (Purpose::Noise, 0);
        match self.preconditioner.keep() {
            None => {
                let vectors = [Params, Gradient, SCALE];
                chains.map_with_noise(&LANGEVIN, &vectors, draw, |_, m| {
                    [half, (epsilon * m.temperature).sqrt() as f32]
                })?;
                chains.engine.reflect(None)
            }
            Some(keep) => {
                let vectors = [Params, MOMENT, Gradient, SCALE];
                chains.map_with_noise(&MEAN_LANGEVIN, &vectors, draw, |_, m| {
                    [half, (epsilon * m.temperature).sqrt() as f32, keep]
                })?;
                chains.engine.reflect(Some(MOMENT))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Preconditioner};

    fn frozen() -> Preconditioner {
        Preconditioner {
            form: Form::Rmsprop,
            running: false,
            decay: 0.99,
            moment_decay: 0.9,
            stability: 0.1,
        }
    }

    /// What the gradient of every step of burn-in counts for in the mean that is frozen.
    fn weights(warm: u64) -> Vec<f64> {
        let mut weights: Vec<f64> = Vec::new();
        for t in 0..warm {
            let before = frozen().before(t, warm);
            weights
                .iter_mut()
                .for_each(|w| *w *= before / (before + 1.0));
            weights.push(1.0 / (before + 1.0));
        }
        weights
    }

    #[test]
    fn the_second_half_of_burn_in_counts_alike_and_the_start_is_forgotten() {
        for warm in [1, 2, 7, 400, 10_000] {
            let w = weights(warm);
            assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{warm}");
            let late = &w[warm as usize / 2..];
            let apart = late.iter().map(|x| (x / late[0] - 1.0).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-9, "{warm}");
        }
        let w = weights(10_000);
        // Of the first half no more than the last hundred steps or so.
        assert!(w[..4000].iter().sum::<f64>() < 1e-6);
        assert!(w[..5000].iter().sum::<f64>() < 0.02);
    }
}
