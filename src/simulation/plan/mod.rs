//! Plans: everything that defines a run, checked before its first step.

mod check;
mod options;
mod places;
pub(super) mod starts;

pub use options::{EXCHANGE_OPTIONS, SAMPLE_OPTIONS, SWEEP_OPTIONS, burn_in};
pub use starts::Starts;
pub(super) use starts::turn;

use super::exchange::Exchange;
use super::keep::Keep;
use super::prediction::Predictor;
use super::temper::Temper;
use super::until::Course;
use crate::error::Result;
use crate::observable::Handle;
use crate::options::Options;
use crate::schedule::Schedule;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use anyhow::Context;
use std::sync::Arc;

/// Everything that defines a run.
pub struct Plan {
    /// "sample", "sweep" or "exchange".
    pub kind: &'static str,
    /// Name of the run.
    pub name: String,
    /// One per group of chains.
    pub temperatures: Vec<Schedule>,
    /// Chains per temperature.
    pub chains: usize,
    /// Where chains start.
    pub start: Option<Arc<Parameters>>,
    /// Steps per chain.
    pub steps: u64,
    /// Until when it goes on, if it ends where its chains have converged: `steps` are then the most.
    pub course: Option<Course>,
    /// Steps of burn-in.
    pub burn_in: u64,
    /// When to record.
    pub every: Trigger,
    /// What to record.
    pub observables: Vec<Handle>,
    /// Which draws are kept, if any.
    pub keep: Option<Keep>,
    /// Splits whose posterior prediction is averaged.
    pub predict: Vec<String>,
    /// See the option `region`.
    pub region: f64,
    /// Seed.
    pub seed: u64,
    /// Steps before --quick cut them, if it did.
    pub full_steps: Option<u64>,
    /// What temperatures divide.
    pub temper: Temper,
    /// How chains exchange temperatures, if they do.
    pub exchange: Option<Exchange>,
}

impl Plan {
    /// Chains at temperature 1 without burn-in, of which nothing is recorded: what other plans are made from.
    pub fn bare(
        kind: &'static str,
        (chains, start): (usize, Option<Arc<Parameters>>),
        steps: u64,
        seed: u64,
    ) -> Self {
        Self {
            kind,
            name: kind.into(),
            temperatures: vec![Schedule::Constant(1.0)],
            chains,
            start,
            steps,
            course: None,
            burn_in: 0,
            every: Trigger::At(Vec::new()),
            observables: Vec::new(),
            keep: None,
            predict: Vec::new(),
            region: 1000.0,
            seed,
            full_steps: None,
            temper: Temper::Energy,
            exchange: None,
        }
    }

    /// The same at another temperature: `o` has `temperature`, `chains`, `start`.
    pub fn unrecorded(kind: &'static str, o: &Options, steps: u64, seed: u64) -> Result<Self> {
        let chains = (o.size("chains")?, o.object::<Parameters>("start"));
        Ok(Self {
            temperatures: vec![Schedule::Constant(o.float("temperature")?)],
            ..Self::bare(kind, chains, steps, seed)
        })
    }

    /// The step of the first look that is not before this one; the end where there are no looks.
    pub(in crate::simulation) fn look_from(&self, step: u64) -> u64 {
        let course = self.course.as_ref();
        course.map_or(self.steps, |c| c.look_from(step, &self.every, self.steps))
    }

    /// The highest finite temperature that the likelihood alone is divided by.
    pub fn hottest(&self) -> Option<f64> {
        let alone = self.temper == Temper::Likelihood;
        let all = self.temperatures.iter().map(|t| t.at(0));
        all.filter(|t| t.is_finite() && alone).reduce(f64::max)
    }

    /// Fail if temperatures cannot divide what they are to divide.
    fn check_temper(&self, target: &Target) -> Result<()> {
        anyhow::ensure!(
            self.temper == Temper::Energy
                || self.temperatures.iter().all(|t| t.constant().is_some()),
            "{}: option 'temper' needs temperatures that do not change, because what is sampled depends on them; a schedule goes with temper: \"energy\"",
            self.kind
        );
        anyhow::ensure!(
            self.course.is_none() || self.temperatures.iter().all(|t| t.constant().is_some()),
            "{}: option 'until' needs temperatures that do not change: there is no law to converge to while they do; give 'steps' alone",
            self.kind
        );
        anyhow::ensure!(
            self.temper != Temper::Prior || !target.prior().is_flat(),
            "{}: option 'temper' is \"prior\", but the target has none",
            self.kind
        );
        if self.exchange.is_none() && self.temper != Temper::Energy {
            target.refuse_reference(self.kind)?;
        }
        Ok(())
    }

    /// The points where the chains start; checked.
    pub(in crate::simulation) fn starts(&self, target: &Target) -> Result<Starts> {
        self.check_temper(target)?;
        if let Some(x) = &self.exchange {
            let infinite = self.temperatures.iter().any(|t| t.at(0).is_infinite());
            if let (Some(why), true) = (target.prior().improper(), infinite || x.from_prior) {
                anyhow::bail!("{}: {why}", self.kind);
            }
            anyhow::ensure!(
                !(infinite && self.temper.includes_prior()),
                "{}: option 'prior_rung' needs temper: \"likelihood\": with the prior tempered no law is left at β = 0",
                self.kind
            );
        }
        if let Some(p) = &self.start {
            anyhow::ensure!(
                !p.vectors.is_empty(),
                "{}: option 'start' holds no parameters",
                self.kind
            );
            for v in &p.vectors {
                anyhow::ensure!(
                    v.len() == target.dim(),
                    "{}: option 'start' has {} parameters, but the model has {}",
                    self.kind,
                    v.len(),
                    target.dim()
                );
            }
        }
        Ok(Starts {
            given: self.start.clone(),
            count: self.temperatures.len() * self.chains,
            per_temperature: self.chains,
            seed: self.seed,
            from_prior: self.exchange.as_ref().is_some_and(|x| x.from_prior),
        })
    }

    /// The posterior predictions to be averaged.
    pub(in crate::simulation) fn predictors<'a>(
        &self,
        target: &'a Target,
    ) -> Result<Vec<Predictor<'a>>> {
        let one = |name: &String| {
            Predictor::new(target, self.temper, name)
                .with_context(|| format!("{}: option 'predict'", self.kind))
        };
        self.predict.iter().map(one).collect()
    }
}
