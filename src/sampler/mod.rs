//! Samplers: `init` and `step`, one file each, listed in [`REGISTRY`].
//!
//! To add one: write its file with an [`Entry`] whose documentation starts with the law it samples, and add the entry to
//! [`REGISTRY`]. The script constructor, option checks, reference, completion and the contract suite pick it up.

mod accuracy;
pub mod adaptation;
pub mod cyclical_sgld;
pub mod gradient;
pub mod gradient_noise;
pub mod hmc;
pub mod langevin;
pub mod law;
pub mod levels;
pub mod mala;
pub mod metropolis;
pub mod nuts;
pub mod ohzeki_ichiki;
pub mod preconditioned_sgld;
pub mod pseudo_langevin;
pub mod sghmc;
pub mod sgld;
pub mod sgnht;

use crate::engine::law::{Column, Slots, columns, width};
use crate::engine::{Chains, Vector};
use crate::error::{Result, did_you_mean};
use crate::kernels::map::kernel;
use crate::options::{Entry, Given, Options, Value};
use crate::rng::Purpose;
use crate::target::Target;
pub use accuracy::Accuracy;
use gradient::Estimator;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, RwLock};

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

    /// Names of what a step reports. `virial` is (1/N) Σ (w-c)_i g_i at the point where the gradient was taken, `kinetic` is
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

    /// How its law is off at a finite step.
    fn accuracy(&self) -> Accuracy {
        Accuracy::Unknown("it states no order of its error in the step size")
    }

    /// The option that sets how far a step goes, where it is none of `step`, `dt` and `sigma`.
    fn step_option(&self) -> Option<&'static str> {
        None
    }

    /// Which steps lead to samples, if not all do. What is reported of the others enters no average.
    fn sampling(&self) -> Option<Sampling> {
        None
    }

    /// Whether the chains of a temperature act on each other, and so must step together.
    fn couples(&self) -> bool {
        false
    }

    /// Fail if the sampler cannot work on this target; the message says why.
    fn check(&self, _target: &Target) -> Result<()> {
        Ok(())
    }

    /// How far its law is from exp(-U/T) however small its step is, if it is.
    fn bias(&self) -> Option<Bias> {
        None
    }

    /// What else must be said of a run with so many steps of burn-in.
    fn note(&self, _burn_in: u64) -> Option<&'static str> {
        None
    }

    /// Prepare the state of chains whose parameters are set.
    fn init(&self, _chains: &mut Chains) -> Result<()> {
        Ok(())
    }

    /// The scalars that belong to a temperature and not to a chain, as adapted step sizes do: where chains exchange temperatures, they stay
    /// with these.
    fn scalars_of_temperature(&self) -> Range<usize> {
        0..0
    }

    /// The scalar that holds U at the chain's parameters, if the sampler keeps it.
    fn energy_scalar(&self) -> Option<usize> {
        None
    }

    /// Go on at other temperatures: the members already have them, `before` says for each what has changed. What a chain keeps must become
    /// what it would be had the chain always been there: momenta, for one, are rescaled.
    fn change_temperature(&self, _chains: &mut Chains, _before: &[Before]) -> Result<()> {
        Ok(())
    }

    /// Move the chains by one step and report everything that [`Sampler::info`] names, in its order.
    fn step(&self, chains: &mut Chains) -> Result<()>;
}

/// The steps of every cycle that lead to samples: its last ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Steps per cycle.
    pub cycle: u64,
    /// The first of a cycle that leads to a sample.
    pub from: u64,
}

/// What is wrong with a law that is not exp(-U/T), and by how much as measured on the contract's small network (8-6-3, tanh, 120 examples,
/// T = 0.02).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// Why.
    pub cause: &'static str,
    /// Relative error of the mean cost there.
    pub cost: f64,
    /// That of the mean |w|².
    pub norm2: f64,
    /// By what settings.
    pub settings: &'static str,
    /// What helps.
    pub remedy: &'static str,
}

impl fmt::Display for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cause,
            cost,
            norm2,
            settings,
            remedy,
        } = self;
        write!(
            f,
            "the law is not quite exp(-U/T), and the virial need not show it: {cause}; on a network of 75 parameters and 120 examples, \
             with {settings}, the cost comes out {:+.2} % and |w|² {:+.2} % off, here it may be more or less; {remedy}",
            100.0 * cost,
            100.0 * norm2
        )
    }
}

/// What has changed for a chain between two steps, where chains exchange temperatures.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    /// The temperature it was at.
    pub temperature: f64,
    /// Whether U and its gradient are no longer what the chain may have kept of them.
    pub stale: bool,
    /// Whether its parameters are not where the sampler left them: they were drawn from the prior.
    pub redrawn: bool,
    /// Whether what was learnt about its temperature is of another one, so that adaptation starts again from what it has.
    pub again: bool,
}

impl Before {
    /// Nothing has changed for a chain at this temperature.
    pub fn nothing(temperature: f64) -> Self {
        Self {
            temperature,
            stale: false,
            redrawn: false,
            again: false,
        }
    }
}

kernel! {
    /// `p ← root·p + fresh·η + half·g + prior·r`.
    CHANGE_MOMENTA = change_momenta(p; g, r; eta; root, fresh, half, prior) {
        p = choose(root > 0.0, root * p, 0.0) + fresh * eta + half * g + prior * r;
    }
}

/// Momenta that are half a step behind the parameters.
struct Lagging<'a> {
    /// How ∇U is estimated.
    gradient: &'a Estimator,
    /// h: p = p_0 + h ∇U, where p_0 is independent of the parameters.
    half: f64,
    /// The variance of p_0 at T = 1.
    mass: f64,
    /// What multiplies ∇U where momenta are in units of their own.
    scale: Option<Vector>,
}

kernel! {
    /// `x ← scale·x`.
    SCALE_BY = scale_by(x; scale; ; ) {
        x *= scale;
    }
}

impl<'a> Lagging<'a> {
    /// Of samplers whose step is ε: they move parameters by their momentum, of variance εT.
    fn of_step(gradient: &'a Estimator, epsilon: f64) -> Self {
        Self {
            gradient,
            half: 0.5 * epsilon,
            mass: epsilon,
            scale: None,
        }
    }

    /// Bring momenta to other temperatures: p_0 is multiplied by sqrt(T_now/T_before), or drawn afresh where the parameters are others.
    ///
    /// Without the gradient's part, momenta and parameters would be wrongly correlated after every change, an error of the order of the step.
    fn change(&self, chains: &mut Chains, momentum: Vector, before: &[Before]) -> Result<()> {
        const PRIOR: Vector = Vector::Scratch(1);
        // Sub-stream 3: no step and no start draws this minibatch, nor these momenta.
        self.gradient.estimate(chains, Purpose::Minibatch, 3)?;
        chains.engine.prior_gradient(PRIOR)?;
        if let Some(scale) = self.scale {
            for v in [Vector::Gradient, PRIOR] {
                chains.map(&SCALE_BY, &[v, scale], |_, _| -> [f32; 0] { [] })?;
            }
        }
        let vectors = [momentum, Vector::Gradient, PRIOR];
        chains.map_with_noise(&CHANGE_MOMENTA, &vectors, (Purpose::Momentum, 3), |c, m| {
            let (b, h) = (before[c], self.half);
            if b.redrawn {
                return [0.0, (self.mass * m.temperature).sqrt(), h, 0.0].map(|x| x as f32);
            }
            let root = (m.temperature / b.temperature).sqrt();
            // What has changed of ∇U is the prior's part, T_before/T_now of what it is now.
            let changed = if b.stale {
                b.temperature / m.temperature - 1.0
            } else {
                0.0
            };
            [root, 0.0, h * (1.0 - root), -h * root * changed].map(|x| x as f32)
        })
    }
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
    /// What it does otherwise than was asked for, for summaries.
    pub remark: Option<&'static str>,
    /// Where losses are reported, if they are.
    losses: Option<usize>,
    /// Whether [`named`] can build it again from its options.
    listed: bool,
}

/// What is reported of the gradient that a step follows: its loss, its virial around a reference point, and the loss at that point on the
/// same minibatch.
pub const LOSSES: [&str; 3] = ["gradient_loss", "gradient_virial", "gradient_loss_at_start"];

/// What the noise of the gradient is called, averaged over the components: state and report.
pub const NOISE: &str = "gradient_variance_mean";

impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.iter().map(|(k, v)| format!("{k}: {v}"));
        let options: Vec<_> = options.collect();
        write!(f, "{} #{{ {} }}", self.name(), options.join(", "))
    }
}

impl Configured {
    /// A sampler and its options.
    pub fn new(sampler: impl Sampler + 'static, o: &Options) -> Arc<Self> {
        let gradient = sampler.gradient().cloned().unwrap_or(Estimator::FULL);
        let noise = gradient.batch().map(|_| NOISE);
        let mut options = o.describe();
        if let Some((_, text)) = options.iter_mut().find(|(name, _)| name == "gradient") {
            *text = gradient.to_string();
        }
        Arc::new(Self {
            vectors: [sampler.vectors(), &["centre"], gradient.vectors()].concat(),
            scalars: [sampler.scalars(), &[law::CURVATURE], noise.as_slice()].concat(),
            info: [sampler.info(), noise.as_slice()].concat(),
            options,
            gradient,
            sampler: Box::new(sampler),
            asked: o.clone(),
            remark: None,
            losses: None,
            listed: true,
        })
    }

    /// A sampler that is in no registry. `options` is what summaries say of it; what builds the same sampler with another option, as the
    /// search for a step size does, cannot be done with it: for that, [`register`] an entry.
    pub fn own(sampler: impl Sampler + 'static, options: Given) -> Result<Arc<Self>> {
        let none = Options::check(&format!("sampler::{}", sampler.name()), &[], Vec::new())?;
        let mut out = Self::new(sampler, &none);
        if let Some(own) = Arc::get_mut(&mut out) {
            let described = |(name, value): (String, Value)| (name, value.describe());
            own.options = options.into_pairs().into_iter().map(described).collect();
            own.listed = false;
        }
        Ok(out)
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

    /// The same sampler as it is where chains exchange temperatures: without vectors that belong to a temperature, as adapted masses do. Fails
    /// if it cannot do that.
    ///
    /// `hottest` is the largest temperature that the likelihood alone is divided by; none where all of U is tempered.
    pub fn exchanging(
        self: &Arc<Self>,
        target: &Target,
        hottest: Option<f64>,
    ) -> Result<Arc<Self>> {
        anyhow::ensure!(
            !self.couples(),
            "sampler::{}: chains of a temperature act on each other, and so cannot exchange temperatures",
            self.name()
        );
        anyhow::ensure!(
            !self.gradient.has_control_variates() || target.prior().is_flat() || hottest.is_none(),
            "sampler::{}: control variates keep a gradient that holds the prior, whose part differs from rung to rung; use minibatches without them",
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
            "sampler::{}: its step is too large for the prior on the hottest rung, which is T·precision = {stiffness:.3e} stiff there; take a smaller step, a lower highest temperature, or temper: \"energy\"",
            self.name()
        );
        let adapts = self.asked.bool("adapt").unwrap_or(false);
        if !adapts || !self.asked.bool("adapt_mass").unwrap_or(false) {
            return Ok(self.clone());
        }
        anyhow::ensure!(
            !self.asked.was_given("adapt_mass"),
            "sampler::{}: option 'adapt_mass' is true, but {}; leave it out",
            self.name(),
            Self::PLAIN_MASSES
        );
        let changed = self.asked.with("adapt_mass", Some(Value::Bool(false)));
        let Some(entry) = self.entry() else {
            return Ok(self.clone());
        };
        let mut out = (entry.build)(&changed)?;
        if let Some(own) = Arc::get_mut(&mut out) {
            own.remark = Some(Self::PLAIN_MASSES);
        }
        Ok(out)
    }

    /// Why masses stay 1 where chains exchange temperatures.
    const PLAIN_MASSES: &str =
        "masses stay 1 where chains change temperature, as those that fit one do not fit another";

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
        let reported = self.info.contains(&"leapfrog");
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

    /// The same sampler, which also reports [`LOSSES`] around `w0`, the last of them if `paired`. None if its steps do not follow one gradient
    /// each.
    pub fn reporting_losses(&self, w0: &Arc<Vec<f32>>, paired: bool) -> Result<Option<Arc<Self>>> {
        let Some(entry) = self.entry().filter(|_| self.sampler.follows_one_gradient()) else {
            return Ok(None);
        };
        let gradient = self.gradient.reporting(w0, paired)?;
        let reports = gradient.reports();
        let object = Value::Object(Arc::new(gradient), "Gradient");
        let changed = self
            .asked
            .with("batch", None)
            .with("gradient", Some(object));
        let mut out = (entry.build)(&changed)?;
        if let Some(own) = Arc::get_mut(&mut out) {
            own.losses = Some(own.info.len());
            own.info.extend(&LOSSES[..reports]);
            own.options = self.options.clone();
        }
        Ok(Some(out))
    }

    /// What builds it from its options.
    fn entry(&self) -> Option<&'static Entry<Arc<Configured>>> {
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

    /// How many numbers those are.
    pub fn slots(&self, target: &Target) -> usize {
        self.columns(target).iter().map(width).sum()
    }

    /// What chains report for tests of the law, beside the sampler's own.
    fn law(&self, target: &Target) -> Slots {
        let centre = Vector::State(self.sampler.vectors().len());
        Slots::new(target, self.is_exact(), centre, self.info.len())
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
        chains.law = Some(self.law(chains.engine.target()));
        chains.copy(Vector::Params, Vector::State(self.sampler.vectors().len()))?;
        self.gradient.init(chains)?;
        self.sampler.init(chains)
    }

    /// See [`Sampler::scalars_of_temperature`].
    pub fn scalars_of_temperature(&self) -> Range<usize> {
        self.sampler.scalars_of_temperature()
    }

    /// See [`Sampler::energy_scalar`].
    pub fn energy_scalar(&self) -> Option<usize> {
        self.sampler.energy_scalar()
    }

    /// See [`Sampler::change_temperature`].
    pub fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        self.sampler.change_temperature(chains, before)
    }

    /// Move the chains by one step and report everything in [`Configured::info`].
    pub fn step(&self, chains: &mut Chains) -> Result<()> {
        let slots = self.law(chains.engine.target());
        (chains.losses, chains.law) = (self.losses, Some(slots));
        self.sampler.step(chains)?;
        law::follow(chains, slots.centre)?;
        chains.losses = None;
        let batch = self.gradient.batch().is_some();
        let noise = self.scalars.len() - 1;
        let curvature = if batch { noise - 1 } else { noise };
        let probed = slots.probe.is_some() || batch;
        if probed && chains.step.is_multiple_of(law::PROBE) {
            let variances = law::probe(chains, &self.gradient, &slots, curvature)?;
            for (c, v) in variances.into_iter().enumerate() {
                chains.scalars(c)[noise] = v;
            }
        } else {
            law::no_probe(chains, &slots)?;
        }
        match batch {
            true => chains.report_scalar(self.losses.unwrap_or(self.info.len()) - 1, noise),
            false => Ok(()),
        }
    }
}

/// Samplers of this process beside those of [`REGISTRY`].
static REGISTERED: RwLock<Vec<&'static Entry<Arc<Configured>>>> = RwLock::new(Vec::new());

/// Add a sampler to those that can be built by name, and by the scripts of interpreters made from now on; in place of an earlier one of
/// its name.
pub fn register(entry: Entry<Arc<Configured>>) -> Result<()> {
    anyhow::ensure!(
        REGISTRY.iter().all(|e| e.name != entry.name),
        "there is a sampler '{}' already; give yours another name",
        entry.name
    );
    let mut all = REGISTERED.write().unwrap_or_else(|e| e.into_inner());
    all.retain(|e| e.name != entry.name);
    // It is kept until the end of the process, as handles to it may be.
    all.push(Box::leak(Box::new(entry)));
    Ok(())
}

/// The samplers that were registered.
pub fn registered() -> Vec<&'static Entry<Arc<Configured>>> {
    REGISTERED.read().unwrap_or_else(|e| e.into_inner()).clone()
}

/// The entry of that name; the error proposes the nearest one.
pub fn named(name: &str) -> Result<&'static Entry<Arc<Configured>>> {
    let own = registered();
    let mut all = REGISTRY.iter().chain(own.iter().copied());
    let found = all.find(|e| e.name == name);
    found.ok_or_else(|| {
        let all = REGISTRY.iter().chain(own);
        anyhow::anyhow!(
            "there is no sampler '{name}'{}",
            did_you_mean(name, all.map(|e| e.name))
        )
    })
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
