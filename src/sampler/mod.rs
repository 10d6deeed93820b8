//! Samplers: `init` and `step`, one file each, listed in [`REGISTRY`].
//!
//! To add one: write its file with an [`Entry`] whose documentation starts with the law it samples, and add the entry to
//! [`REGISTRY`]. The script constructor, option checks, reference, completion and the contract suite pick it up.

pub mod adaptation;
pub mod cyclical_sgld;
pub mod gradient;
pub mod gradient_noise;
pub mod hmc;
pub mod langevin;
pub mod mala;
pub mod metropolis;
pub mod nuts;
pub mod ohzeki_ichiki;
pub mod preconditioned_sgld;
pub mod pseudo_langevin;
pub mod sghmc;
pub mod sgld;
pub mod sgnht;

use crate::engine::Chains;
use crate::error::Result;
use crate::options::{Entry, Options, Value};
use crate::target::Target;
use gradient::Estimator;
use std::sync::Arc;

/// A Markov chain on the parameters. State is what the next step needs, Info is everything else.
pub trait Sampler: Send + Sync {
    /// Name, as in scripts.
    fn name(&self) -> &'static str;

    /// Names of the state vectors of length N.
    fn vectors(&self) -> &'static [&'static str] {
        &[]
    }

    /// Vectors of length N that a step needs beside those, for the memory check.
    fn scratch(&self) -> usize {
        4
    }

    /// Names of the state scalars.
    fn scalars(&self) -> &'static [&'static str] {
        &[]
    }

    /// Names of what a step reports. `virial` is (1/N) Σ w_i g_i at the point where the gradient was taken, `kinetic` is
    /// (1/N) Σ p_i²/M_i; both estimate T.
    fn info(&self) -> &'static [&'static str];

    /// How it estimates ∇U, if it need not be exact.
    fn gradient(&self) -> Option<&Estimator> {
        None
    }

    /// Whether every step takes one estimate of ∇U (as `Purpose::Minibatch`, sub-stream 0), at a state of the chain: then the loss that
    /// comes with it is a sample of the loss. Not so where states are proposed and rejected, or explored without being samples.
    fn follows_one_gradient(&self) -> bool {
        false
    }

    /// Whether the chains of a temperature act on each other, and so must step together.
    fn couples(&self) -> bool {
        false
    }

    /// Fail if the sampler cannot work on this target; the message says why.
    fn check(&self, _target: &Target) -> Result<()> {
        Ok(())
    }

    /// Prepare the state of chains whose parameters are set.
    fn init(&self, _chains: &mut Chains) -> Result<()> {
        Ok(())
    }

    /// Move the chains by one step and report everything that [`Sampler::info`] names, in its order.
    fn step(&self, chains: &mut Chains) -> Result<()>;
}

/// A sampler, how it was asked for, and what is done around it: its gradient is prepared, and the noise of its gradient measured.
pub struct Configured {
    sampler: Box<dyn Sampler>,
    /// Its options, for summaries and run.json.
    pub options: Vec<(String, String)>,
    gradient: Estimator,
    /// Names of all state vectors of length N.
    pub vectors: Vec<&'static str>,
    /// Names of all state scalars.
    pub scalars: Vec<&'static str>,
    /// Names of all that a step reports.
    pub info: Vec<&'static str>,
    /// How it was asked for.
    asked: Options,
    /// Where losses are reported, if they are.
    losses: Option<usize>,
}

/// What is reported of the gradient that a step follows: its loss, its virial around a reference point, and the loss at that point on the
/// same minibatch.
pub const LOSSES: [&str; 3] = ["gradient_loss", "gradient_virial", "gradient_loss_at_start"];

/// Steps between two measurements of the gradient's noise: two minibatches more in so many.
const PROBE: u64 = 200;

/// What the noise of the gradient is called, averaged over the components: state and report.
pub const NOISE: &str = "gradient_variance_mean";

impl Configured {
    /// A sampler and its options.
    pub fn new(sampler: impl Sampler + 'static, o: &Options) -> Arc<Self> {
        let gradient = sampler.gradient().cloned().unwrap_or(Estimator::FULL);
        let noise = gradient.batch().map(|_| NOISE);
        let mut options = o.describe();
        if let Some((_, text)) = options.iter_mut().find(|(name, _)| name == "gradient") {
            *text = gradient.to_string();
        }
        let with = |own: &[&'static str], more: &[&'static str]| [own, more].concat();
        Arc::new(Self {
            vectors: with(sampler.vectors(), gradient.vectors()),
            scalars: with(sampler.scalars(), noise.as_slice()),
            info: with(sampler.info(), noise.as_slice()),
            options,
            gradient,
            sampler: Box::new(sampler),
            asked: o.clone(),
            losses: None,
        })
    }

    /// The same sampler with one option set to another value; none if it has no such option.
    pub fn with(&self, name: &str, value: f64) -> Result<Option<Arc<Self>>> {
        let entry = self.entry();
        let Some(spec) = entry.options.iter().find(|s| s.name == name) else {
            return Ok(None);
        };
        let changed = self.asked.with(spec.name, Some(Value::Float(value)));
        (entry.build)(&changed).map(Some)
    }

    /// Its step size, by the name and the value of the option that holds it; none if it is adapted, or follows a schedule.
    pub fn step_size(&self) -> Option<(&'static str, f64)> {
        let adapted = self.asked.bool("adapt").unwrap_or(false);
        let fixed = |name| {
            let value = self.asked.opt_float(name).filter(|_| !adapted);
            value.map(|value| (name, value))
        };
        fixed("step")
            .or_else(|| fixed("dt"))
            .or_else(|| fixed("sigma"))
    }

    /// The same sampler, which also reports [`LOSSES`] around `w0`, the last of them if `paired`. None if its steps do not follow one gradient
    /// each.
    pub fn reporting_losses(&self, w0: &Arc<Vec<f32>>, paired: bool) -> Result<Option<Arc<Self>>> {
        if !self.sampler.follows_one_gradient() {
            return Ok(None);
        }
        let gradient = self.gradient.reporting(w0, paired)?;
        let reports = gradient.reports();
        let object = Value::Object(Arc::new(gradient), "Gradient");
        let changed = self
            .asked
            .with("batch", None)
            .with("gradient", Some(object));
        let mut out = (self.entry().build)(&changed)?;
        if let Some(own) = Arc::get_mut(&mut out) {
            own.losses = Some(own.info.len());
            own.info.extend(&LOSSES[..reports]);
            own.options = self.options.clone();
        }
        Ok(Some(out))
    }

    fn entry(&self) -> &'static Entry<Arc<Configured>> {
        let own = |e: &&Entry<Arc<Configured>>| e.name == self.name();
        REGISTRY.iter().find(own).unwrap_or(&REGISTRY[0])
    }

    /// Name, as in scripts.
    pub fn name(&self) -> &'static str {
        self.sampler.name()
    }

    /// m, the minibatch size; none if the gradient is over all examples.
    pub fn batch(&self) -> Option<usize> {
        self.gradient.batch()
    }

    /// How it estimates ∇U.
    pub fn estimator(&self) -> &Estimator {
        &self.gradient
    }

    /// See [`Sampler::couples`].
    pub fn couples(&self) -> bool {
        self.sampler.couples()
    }

    /// See [`Sampler::scratch`].
    pub fn scratch(&self) -> usize {
        self.sampler.scratch()
    }

    /// Fail if the sampler cannot work on this target; the message says why.
    pub fn check(&self, target: &Target) -> Result<()> {
        self.gradient.check(target, self.name())?;
        self.sampler.check(target)
    }

    /// Prepare the state of chains whose parameters are set.
    pub fn init(&self, chains: &mut Chains) -> Result<()> {
        self.gradient.init(chains)?;
        self.sampler.init(chains)
    }

    /// Move the chains by one step and report everything in [`Configured::info`].
    pub fn step(&self, chains: &mut Chains) -> Result<()> {
        chains.losses = self.losses;
        self.sampler.step(chains)?;
        if self.gradient.batch().is_none() {
            return Ok(());
        }
        chains.losses = None;
        let (slot, scalar) = (
            self.losses.unwrap_or(self.info.len()) - 1,
            self.scalars.len() - 1,
        );
        if chains.step.is_multiple_of(PROBE) {
            for (c, v) in self.gradient.variance(chains)?.into_iter().enumerate() {
                chains.scalars(c)[scalar] = v;
            }
        }
        chains.report_scalar(slot, scalar)
    }
}

/// Every sampler a script can build.
pub const REGISTRY: &[Entry<Arc<Configured>>] = &[
    sgld::ENTRY,
    preconditioned_sgld::RMSPROP,
    preconditioned_sgld::ADAM,
    cyclical_sgld::ENTRY,
    ohzeki_ichiki::ENTRY,
    sghmc::ENTRY,
    sgnht::ENTRY,
    langevin::ENTRY,
    pseudo_langevin::ENTRY,
    hmc::ENTRY,
    nuts::ENTRY,
    mala::ENTRY,
    metropolis::ENTRY,
];
