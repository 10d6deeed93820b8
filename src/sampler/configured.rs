//! A sampler as it was asked for, with what is done around every step.

use super::adaptation::{ADAPT, ADAPT_MASS, MASSES, RANK};
use super::gradient::Estimator;
use super::law::{self, CURVATURE, PROBE};
use super::{Accuracy, Before, Bias, OfTemperature, Sampler, Sampling, named};
use crate::engine::law::{PROBED, columns};
use crate::engine::report::{Column, GRADIENT_VARIANCE, LEAPFROG, Report, Slots};
use crate::engine::{Chains, Vector};
use crate::error::Result;
use crate::options::{Entry, OptionMap, Options, Value};
use crate::target::Target;
use crate::target::prior::Parameters;
use std::fmt;
use std::sync::Arc;

/// So many parameters are few: directions cost nothing beside them.
const FEW: usize = 100;

/// The state vector that virials are taken around.
pub(crate) const CENTRE: &str = "centre";

/// A sampler, how it was asked for, and what is done around it: its gradient is prepared, and the noise of its gradient measured.
pub struct ConfiguredSampler {
    sampler: Box<dyn Sampler>,
    /// Its options, for summaries and run.json.
    pub options: Vec<(String, String)>,
    gradient: Estimator,
    /// Names of all state vectors of length N.
    pub vectors: Vec<&'static str>,
    /// Names of all state scalars.
    pub scalars: Vec<&'static str>,
    /// What steps report, whatever the target is.
    pub info: Vec<Report>,
    /// How it was asked for.
    asked: Options,
    /// Whether [`named`] can build it again from its options.
    listed: bool,
}

impl fmt::Debug for ConfiguredSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.iter().map(|(k, v)| format!("{k}: {v}"));
        let options: Vec<_> = options.collect();
        write!(f, "{} #{{ {} }}", self.name(), options.join(", "))
    }
}

/// A sampler of your own, ready to run, that is in no registry. `options` is what summaries say of it; what builds the same sampler with
/// another option, as the search for a step size does, cannot be done with it: for that, [`register`](super::register) an entry.
pub fn own(sampler: impl Sampler + 'static, options: OptionMap) -> Result<Arc<ConfiguredSampler>> {
    let none = Options::check(&format!("sampler::{}", sampler.name()), &[], Vec::new())?;
    let mut out = ConfiguredSampler::new(sampler, &none);
    if let Some(own) = Arc::get_mut(&mut out) {
        let described = |(name, value): (String, Value)| (name, value.describe());
        own.options = options.into_pairs().into_iter().map(described).collect();
        own.listed = false;
    }
    Ok(out)
}

impl ConfiguredSampler {
    /// A sampler and its options.
    pub fn new(sampler: impl Sampler + 'static, o: &Options) -> Arc<Self> {
        let gradient = sampler.gradient().cloned().unwrap_or(Estimator::FULL);
        let noise = gradient.batch().map(|_| GRADIENT_VARIANCE);
        let kept = noise.map(|report| report.0);
        let mut options = o.describe();
        if let Some((_, text)) = options.iter_mut().find(|(name, _)| name == "gradient") {
            *text = gradient.to_string();
        }
        if let Some((_, text)) = options.iter_mut().find(|(name, _)| name == MASSES.name)
            && let Some(masses) = o.object::<Parameters>(MASSES.name)
        {
            *text = format!("those of checksum {:08x}", masses.checksum());
        }
        Arc::new(Self {
            vectors: [sampler.vectors(), &[CENTRE], gradient.vectors()].concat(),
            scalars: [sampler.scalars(), &[CURVATURE], kept.as_slice()].concat(),
            info: [sampler.info(), noise.as_slice(), gradient.reports()].concat(),
            options,
            gradient,
            sampler: Box::new(sampler),
            asked: o.clone(),
            listed: true,
        })
    }

    /// The same sampler with one option set to another value; none if it has no such option.
    pub fn with(&self, name: &str, value: f64) -> Result<Option<Arc<Self>>> {
        let Some(entry) = self.entry() else {
            return Ok(None);
        };
        let Some(spec) = entry.options.iter().find(|s| s.name == name) else {
            return Ok(None);
        };
        let changed = self.asked.with(spec.name, Some(Value::Float(value)));
        (entry.build)(&changed).map(Some)
    }

    /// Whether it adapts masses in burn-in.
    pub fn adapts_masses(&self) -> bool {
        let asked = |name| self.asked.bool(name).unwrap_or(false);
        self.listed && asked(ADAPT.name) && asked(ADAPT_MASS.name)
    }

    /// The sampler for these parameters: where they are few, and nothing is said of the `rank` of its masses, with directions to learn.
    pub(crate) fn suited(self: &Arc<Self>, target: &Target) -> Result<Arc<Self>> {
        let silent = |e: &&Entry<Arc<Self>>| {
            let has = |name: &str| e.options.iter().any(|s| s.name == name);
            // Where all frequencies are the same a given number of steps is often near a period.
            let free = has(RANK.name) && !has("leapfrog");
            free && self.asked.get(RANK.name).is_none() && self.adapts_masses()
        };
        let few = target.dim() <= FEW && !target.prior().has_walls() && self.batch().is_none();
        match self.entry().filter(silent) {
            Some(entry) if few => (entry.build)(&self.asked.with(RANK.name, Some(Value::Int(8)))),
            _ => Ok(self.clone()),
        }
    }

    /// The same sampler with these masses, which it does not adapt; itself if it adapts none.
    pub fn with_masses(self: &Arc<Self>, masses: Arc<Vec<f32>>) -> Result<Arc<Self>> {
        let Some(entry) = self.entry().filter(|_| self.adapts_masses()) else {
            return Ok(self.clone());
        };
        let vectors = vec![masses];
        let masses = Value::Object(Arc::new(Parameters { vectors }), "Parameters");
        let changed = self.asked.with(MASSES.name, Some(masses));
        let changed = changed.with(ADAPT_MASS.name, Some(Value::Bool(false)));
        (entry.build)(&changed.with(RANK.name, Some(Value::Int(0))))
    }

    /// Fail if it cannot work where chains exchange temperatures.
    ///
    /// `hottest` is the largest temperature that the likelihood alone is divided by; none where all of U is tempered.
    pub fn check_exchanging(&self, target: &Target, hottest: Option<f64>) -> Result<()> {
        anyhow::ensure!(
            !self.couples(),
            "sampler::{}: chains at one temperature interact, and so cannot exchange temperatures",
            self.name()
        );
        anyhow::ensure!(
            !self.gradient.has_control_variates() || target.prior().is_flat() || hottest.is_none(),
            "sampler::{}: control variates store a gradient that includes the prior's, which differs from rung to rung; use minibatches without them",
            self.name()
        );
        // On the rung of T the prior is T times as stiff, to a step that is the same on all rungs.
        let stiffness = hottest.unwrap_or(0.0) * target.prior().pull().0;
        let squared = match self.step_size() {
            Some(("step", step)) => step,
            Some(("dt", dt)) => dt * dt,
            _ => 0.0,
        };
        anyhow::ensure!(
            self.energy_scalar().is_some() || squared * stiffness < 4.0,
            "sampler::{}: its step is too large for the prior on the hottest rung, whose stiffness there is T·precision = {stiffness:.3e}; take a smaller step, a lower highest temperature, or temper: \"energy\"",
            self.name()
        );
        Ok(())
    }

    /// Its step size, by the name and the value of the option that holds it; none if it is adapted, or follows a schedule.
    pub fn step_size(&self) -> Option<(&'static str, f64)> {
        let adapted = self.asked.bool("adapt").unwrap_or(false);
        let fixed = |name| {
            let value = self.asked.opt_float(name).filter(|_| !adapted);
            value.map(|value| (name, value))
        };
        match self.sampler.step_option() {
            Some(own) => fixed(own),
            None => ["step", "dt", "sigma"].into_iter().find_map(fixed),
        }
    }

    /// How often a step takes the gradient, or the energy where nothing else is asked for; none if that varies, and is then reported as
    /// `leapfrog`.
    pub fn gradients_per_step(&self) -> Option<f64> {
        let reported = self.info.contains(&LEAPFROG);
        let leapfrog = self.asked.opt_int("leapfrog").unwrap_or(1);
        (!reported).then_some(leapfrog as f64)
    }

    /// The option that holds the step size of a sampler that finds it itself, the power of T that it goes with where the likelihood is
    /// stiffer than the prior, and the acceptance that is wanted; none if the step size is given.
    pub fn adapted_step(&self) -> Option<(&'static str, f64, f64)> {
        if self.step_size().is_some() {
            return None;
        }
        let wanted = self.asked.float("acceptance").ok()?;
        let entry = self.entry()?;
        let known = |(name, _): &(&str, f64)| entry.options.iter().any(|s| s.name == *name);
        let all = [("dt", 0.0), ("step", 0.0), ("sigma", 0.5)];
        let (name, power) = all.into_iter().find(known)?;
        Some((name, power, wanted))
    }

    /// The same sampler, which also reports the losses of its gradients around `w0`, in pairs if `paired`. None if its steps do not follow one gradient
    /// each.
    pub fn reporting_losses(&self, w0: &Arc<Vec<f32>>, paired: bool) -> Result<Option<Arc<Self>>> {
        let Some(entry) = self.entry().filter(|_| self.sampler.follows_one_gradient()) else {
            return Ok(None);
        };
        let gradient = self.gradient.reporting(w0, paired)?;
        let object = Value::Object(Arc::new(gradient), "Gradient");
        let changed = self
            .asked
            .with("batch", None)
            .with("gradient", Some(object));
        let mut out = (entry.build)(&changed)?;
        if let Some(own) = Arc::get_mut(&mut out) {
            own.options = self.options.clone();
        }
        Ok(Some(out))
    }

    /// What builds it from its options.
    fn entry(&self) -> Option<&'static Entry<Arc<ConfiguredSampler>>> {
        named(self.name()).ok().filter(|_| self.listed)
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

    /// See [`Sampler::accuracy`].
    pub fn accuracy(&self) -> Accuracy {
        self.sampler.accuracy()
    }

    /// See [`Sampler::sampling`].
    pub fn sampling(&self) -> Option<Sampling> {
        self.sampler.sampling()
    }

    /// Whether the step after `step` others leads to a sample.
    pub fn samples(&self, step: u64) -> bool {
        self.sampling().is_none_or(|s| step % s.cycle >= s.from)
    }

    /// See [`Sampler::couples`].
    pub fn couples(&self) -> bool {
        self.sampler.couples()
    }

    /// See [`Sampler::scratch`]; those of probes among them.
    pub fn scratch(&self) -> usize {
        self.sampler.scratch() + if self.is_exact() { 0 } else { 3 }
    }

    /// Whether proposals are accepted or rejected by U over all examples, so that the law holds at any step size.
    pub fn is_exact(&self) -> bool {
        self.sampler.accuracy() == Accuracy::Exact
    }

    /// All that a step reports on this target: numbers by name, and those of one component per tensor.
    pub fn columns(&self, target: &Target) -> Vec<Column> {
        let own = self.info.iter().map(|name| (*name, None));
        own.chain(columns(target, self.is_exact())).collect()
    }

    /// Where all that is reported on this target is added up.
    pub fn slots(&self, target: &Target) -> Slots {
        Slots::new(self.name(), &self.columns(target), Some(self.centre()))
    }

    /// The vector that the virial is taken around.
    fn centre(&self) -> Vector {
        Vector::State(self.sampler.vectors().len())
    }

    /// Fail if the sampler cannot work on this target; the message says why.
    pub fn check(&self, target: &Target) -> Result<()> {
        self.gradient.check(target, self.name())?;
        self.sampler.check(target)
    }

    /// See [`Sampler::bias`].
    pub fn bias(&self) -> Option<Bias> {
        self.sampler.bias()
    }

    /// What must be said of its law in a run with so many steps of burn-in.
    pub fn notes(&self, burn_in: u64) -> Vec<String> {
        let bias = self.bias().map(|b| b.to_string());
        let note = self.sampler.note(burn_in).map(String::from);
        bias.into_iter().chain(note).collect()
    }

    /// Prepare the state of chains whose parameters are set.
    pub fn init(&self, chains: &mut Chains) -> Result<()> {
        chains.copy(Vector::Params, self.centre())?;
        self.gradient.init(chains)?;
        self.sampler.init(chains)
    }

    /// See [`Sampler::of_temperature`].
    pub fn of_temperature(&self) -> OfTemperature {
        self.sampler.of_temperature()
    }

    /// See [`Sampler::energy_scalar`].
    pub fn energy_scalar(&self) -> Option<usize> {
        self.sampler.energy_scalar()
    }

    /// See [`Sampler::change_temperature`].
    pub fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        self.sampler.change_temperature(chains, before)
    }

    /// Move the chains by one step and report everything in [`ConfiguredSampler::columns`].
    ///
    /// # Errors
    /// If the first step does not report what the sampler has promised.
    pub fn step(&self, chains: &mut Chains) -> Result<()> {
        self.sampler.step(chains)?;
        law::follow(chains, self.centre())?;
        let batch = self.gradient.batch().is_some();
        let noise = self.scalars.len() - 1;
        let curvature = if batch { noise - 1 } else { noise };
        let probed = batch || chains.slots.find(PROBED[0]).is_some();
        if probed && chains.step.is_multiple_of(PROBE) {
            let variances = law::probe(chains, &self.gradient, curvature)?;
            for (c, v) in variances.into_iter().enumerate() {
                chains.scalars(c)[noise] = v;
            }
        }
        if batch {
            chains.report_scalar(GRADIENT_VARIANCE, noise)?;
        }
        match chains.reported.is_empty() {
            true => Ok(()),
            false => chains.slots.check(chains.reported),
        }
    }
}

crate::object::object!(ConfiguredSampler: "Sampler", text: |s| format!("{s:?}"));
