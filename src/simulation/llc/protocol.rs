//! How a learning coefficient is measured: the target that is sampled, where losses come from, and what they are compared with.

use super::Estimate;
use crate::diagnostic::{Reading, thermometer};
use crate::engine::report::{GRADIENT_LOSS, GRADIENT_LOSS_AT_START, GRADIENT_VIRIAL};
use crate::error::Result;
use crate::model::Part;
use crate::model::deep_linear::LearningCoefficient;
use crate::observable::Handle;
use crate::observable::basic::COST;
use crate::options::{Kind, Options, Range as Allowed, Spec, option};
use crate::rng::{Purpose, Stream};
use crate::sampler::ConfiguredSampler;
use crate::simulation::evaluation::Evaluation;
use crate::simulation::run::Run;
use crate::simulation::session::Session;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// The option `gamma`.
pub(super) const GAMMA: Spec = option(
    "gamma",
    Kind::Float(Allowed::NonNegative),
    "1",
    "γ, the strength of the localisation ½γ|w-w0|².",
);

/// The option `baseline`.
pub(super) const BASELINE: Spec = option(
    "baseline",
    Kind::Choice(Baseline::NAMES),
    "paired",
    "L(w0): \"paired\" on the minibatch of every step, which cancels most of the noise · \"full\" over all examples, once · \
     \"first_batch\" on the first minibatch of each chain (Hitchcock & Hoogland 2025). Without minibatches it is always \"full\".",
);

/// What L(w0) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The loss at w0 on the minibatch of each step.
    Paired,
    /// The loss at w0 over all examples.
    Full,
    /// The loss at w0 on each chain's first minibatch.
    FirstBatch,
}

impl Baseline {
    /// Names, as in scripts.
    pub const NAMES: &'static [&'static str] = &["paired", "full", "first_batch"];

    /// From the option `baseline`.
    pub fn from_options(o: &Options) -> Result<Self> {
        Ok(match o.text("baseline")? {
            "full" => Self::Full,
            "first_batch" => Self::FirstBatch,
            _ => Self::Paired,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The constants of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// nβ.
    pub nbeta: f64,
    /// γ.
    pub gamma: f64,
    /// What L(w0) is.
    pub baseline: Baseline,
}

/// Everything before the first step.
pub(crate) struct Prepared {
    /// exp(-nβ L - ½γ|w-w0|²).
    pub target: Arc<Target>,
    /// The sampler, which reports the losses it meets, if it can.
    pub sampler: Arc<ConfiguredSampler>,
    /// w0, of the parameters that move.
    pub start: Arc<Vec<f32>>,
    /// The constants; the baseline is the one in use.
    pub point: Point,
    /// n of the likelihood.
    pub n: usize,
    /// The exact coefficient, where it is known.
    pub truth: Option<LearningCoefficient>,
    /// Whether the loss is observed at records, for want of gradients that come with one.
    observed: bool,
}

/// Where the losses of a run are, and what they are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Losses {
    /// The trace.
    pub name: String,
    /// L(w0), per chain; none where it is a trace too, on the minibatch of each step.
    pub at_start: Vec<f64>,
    /// nβ.
    pub nbeta: f64,
}

impl Losses {
    /// nβ(L - L(w0)) of every chain and record, burn-in included.
    pub fn traces(&self, run: &Run) -> Result<Vec<Vec<f64>>> {
        let trace = |c: usize| -> Result<Vec<f64>> {
            let loss = run.trace(&self.name, 0, c)?;
            let base = match self.at_start.get(c) {
                None => run.trace(GRADIENT_LOSS_AT_START.0, 0, c)?,
                Some(one) => vec![*one; loss.len()],
            };
            let both = loss.iter().zip(&base);
            Ok(both.map(|(l, b)| self.nbeta * (l - b)).collect())
        };
        (0..run.records.len()).map(trace).collect()
    }
}

/// Minibatches from which the noise of a single one is estimated.
const PROBES: usize = 64;

impl Prepared {
    /// Put target, sampler and point together. With `free`, only these parts of the parameters move.
    pub fn new(
        target: &Target,
        sampler: &Arc<ConfiguredSampler>,
        start: &Arc<Vec<f32>>,
        mut point: Point,
        free: Option<Vec<Part>>,
    ) -> Result<Self> {
        let restricted = free.is_some();
        let local = target.localised(start, point.nbeta, point.gamma, free.clone())?;
        let start = match free {
            None => start.clone(),
            Some(parts) => {
                let each = parts.iter().flat_map(|t| t.of(start));
                Arc::new(each.collect())
            }
        };
        let paired = point.baseline == Baseline::Paired;
        let reporting = sampler.reporting_losses(&start, paired)?;
        let observed = reporting.is_none();
        if observed || sampler.batch().is_none() {
            point.baseline = Baseline::Full;
        }
        Ok(Self {
            n: target.likelihood_n(),
            truth: target
                .potential()
                .learning_coefficient()
                .filter(|_| !restricted),
            target: Arc::new(local),
            sampler: reporting.unwrap_or_else(|| sampler.clone()),
            start,
            point,
            observed,
        })
    }

    /// L(w0) over all examples.
    pub fn loss_at_start(&self, session: &Session) -> Result<f64> {
        let placed = session.placed(&self.target)?;
        let devices = placed.devices.as_deref();
        Evaluation::new(&placed.target, &self.start, devices, session.threads)?.loss()
    }

    /// Whether the loss must be observed at records.
    pub fn observes(&self) -> bool {
        self.observed
    }

    /// What must be observed at records.
    pub fn observables(&self) -> Result<Vec<Handle>> {
        if !self.observed {
            return Ok(Vec::new());
        }
        let none = Options::check("observable", &[], Vec::new())?;
        Ok(vec![(COST.build)(&none)?])
    }

    /// Steps per record, unless the user says otherwise.
    pub fn every(&self) -> u64 {
        if self.observed { 1 } else { 10 }
    }

    /// The estimate from a run of the plan.
    pub fn estimate(&self, run: Arc<Run>, session: &Session) -> Result<Estimate> {
        self.estimate_at(run, 0, session)
    }

    /// The same from a run at one temperature, by which nβ is divided, and whose first chain has this number.
    pub(super) fn estimate_at(
        &self,
        run: Arc<Run>,
        first: usize,
        session: &Session,
    ) -> Result<Estimate> {
        let nbeta = self.point.nbeta / run.info.temperatures[0];
        let chains = run.records.len();
        let (at_start, error) = match self.point.baseline {
            Baseline::Paired => (Vec::new(), 0.0),
            Baseline::Full => (vec![self.loss_at_start(session)?; chains], 0.0),
            Baseline::FirstBatch => {
                let placed = session.placed(&self.target)?;
                let devices = placed.devices.as_deref();
                let point = Evaluation::new(&placed.target, &self.start, devices, session.threads)?;
                self.first_batches(run.info.seed, first..first + chains, point)?
            }
        };
        let name = if self.observed {
            "cost"
        } else {
            GRADIENT_LOSS.0
        };
        let losses = Losses {
            name: name.into(),
            at_start,
            nbeta,
        };
        let mut out = Estimate::new(self, run, losses, nbeta * error)?;
        out.point.nbeta = nbeta;
        Ok(out)
    }

    /// The thermometer: the virial around w0, which the noise of minibatches disturbs far less than that around the origin.
    pub fn thermometer(&self, run: &Run) -> Result<Reading> {
        let set = run.info.temperatures[0];
        let reading = match self.observed {
            true => run.thermometer(0)?,
            false => {
                let virial = run.draws(GRADIENT_VIRIAL.0, 0, 0, true)?;
                thermometer(&run.independent(virial), set)
            }
        };
        // In units of the temperature that was set.
        Ok(Reading::new(
            reading.temperature / set,
            reading.mcse / set,
            1.0,
        ))
    }

    /// L(w0) on the first minibatch of each chain, the very one that its first step takes, and the standard error of their mean.
    fn first_batches(
        &self,
        seed: u64,
        chains: Range<usize>,
        mut point: Evaluation,
    ) -> Result<(Vec<f64>, f64)> {
        let Some(draw) = self.sampler.estimator().draw() else {
            anyhow::bail!("a first minibatch of a sampler that takes none");
        };
        let mut indices = Vec::new();
        let mut loss = |stream: Stream| {
            draw.indices(&stream, self.target.examples(), &mut indices);
            point.loss_of(&indices)
        };
        let first = chains.map(|c| loss(Stream::new(seed, Purpose::Minibatch, c, 0)));
        let first = first.collect::<Result<Vec<_>>>()?;
        let probe = |k| loss(Stream::new(seed, Purpose::Probe, 0, k as u64));
        let probes = (0..PROBES).map(probe).collect::<Result<Vec<_>>>()?;
        let error = crate::diagnostic::sd(&[probes]) / (first.len() as f64).sqrt();
        Ok((first, error))
    }
}
