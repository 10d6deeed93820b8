//! Samplers: `init` and `step`, one file each, listed in [`REGISTRY`].
//!
//! To add one: write its file with an [`Entry`] whose documentation starts with the law it samples, and add the entry to
//! [`REGISTRY`]. The script constructor, option checks, reference, completion and the contract suite pick it up.

mod accuracy;
pub(crate) mod adaptation;
pub(crate) mod configured;
pub(crate) mod cyclical_sgld;
mod directions;
pub(crate) mod gibbs;
pub(crate) mod gradient;
pub(crate) mod gradient_noise;
pub(crate) mod hmc;
mod lagging;
pub(crate) mod langevin;
pub(crate) mod law;
mod length;
pub(crate) mod levels;
pub(crate) mod mala;
pub(crate) mod mams;
pub(crate) mod mclmc;
mod metric;
pub(crate) mod metropolis;
mod microcanonical;
pub(crate) mod nuts;
pub(crate) mod ohzeki_ichiki;
pub(crate) mod preconditioned_sgld;
pub(crate) mod pseudo_langevin;
pub(crate) mod sghmc;
pub(crate) mod sgld;
pub(crate) mod sgnht;
pub(crate) mod snaper;
mod trajectory;

use crate::engine::Chains;
use crate::engine::report::Report;
use crate::error::{Result, did_you_mean};
use crate::options::Entry;
use crate::target::Target;
pub use accuracy::Accuracy;
pub use configured::{ConfiguredSampler, own};
use gradient::Estimator;
use lagging::Lagging;
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

    /// What steps report: [`VIRIAL`](crate::engine::report::VIRIAL), and whatever else there is to say. The first step reports all of it.
    fn info(&self) -> &'static [Report];

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
        Accuracy::Unknown("the sampler states no order of its error in the step size")
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

    /// What belongs to a temperature and not to a chain, as adapted step sizes and masses do: where chains exchange temperatures, it stays
    /// with these.
    fn of_temperature(&self) -> OfTemperature {
        OfTemperature::default()
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

    /// Move the chains by one step and report what [`Sampler::info`] names.
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

/// What belongs to a temperature and not to a chain.
#[derive(Debug, Clone, Default)]
pub struct OfTemperature {
    /// Scalars.
    pub scalars: Range<usize>,
    /// State vectors.
    pub vectors: Vec<usize>,
    /// More of them, which only burn-in needs.
    pub learning: Vec<usize>,
}

impl OfTemperature {
    /// The state vectors that are needed before a step of a run with so many steps of burn-in.
    pub fn vectors_at(&self, step: u64, burn_in: u64) -> impl Iterator<Item = usize> + use<'_> {
        let learning = self.learning.iter().filter(move |_| step < burn_in);
        self.vectors.iter().chain(learning).copied()
    }
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
            "the law is not quite exp(-U/T), which the virial may not show: {cause}; on a network of 75 parameters and 120 examples, \
             with {settings}, the cost comes out {:+.2} % and |w|² {:+.2} % off; the error here may be larger or smaller; {remedy}",
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
    /// Which chains are at another temperature, or elsewhere, than before.
    pub fn moved(chains: &Chains, before: &[Self]) -> Vec<bool> {
        let all = before.iter().zip(chains.members.iter());
        all.map(|(b, m)| b.redrawn || b.temperature != m.temperature)
            .collect()
    }

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

/// Samplers of this process beside those of [`REGISTRY`].
static REGISTERED: RwLock<Vec<&'static Entry<Arc<ConfiguredSampler>>>> = RwLock::new(Vec::new());

/// Add a sampler to those that can be built by name, and by the scripts of interpreters made from now on; in place of an earlier one of
/// its name.
pub fn register(entry: Entry<Arc<ConfiguredSampler>>) -> Result<()> {
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
pub fn registered() -> Vec<&'static Entry<Arc<ConfiguredSampler>>> {
    REGISTERED.read().unwrap_or_else(|e| e.into_inner()).clone()
}

/// The entry of that name; the error proposes the nearest one.
pub fn named(name: &str) -> Result<&'static Entry<Arc<ConfiguredSampler>>> {
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
pub const REGISTRY: &[Entry<Arc<ConfiguredSampler>>] = &[
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
    snaper::ENTRY,
    nuts::ENTRY,
    mala::ENTRY,
    mams::ENTRY,
    mclmc::ENTRY,
    metropolis::ENTRY,
    gibbs::ENTRY,
];
