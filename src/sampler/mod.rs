//! Samplers: `init` and `step`, one file each, listed in [`REGISTRY`].
//!
//! To add one: write its file with an [`Entry`] whose documentation starts with the law it samples, and add the entry to
//! [`REGISTRY`]. The script constructor, option checks, reference, completion and the contract suite pick it up.

pub mod gradient_noise;
pub mod hmc;
pub mod pseudo_langevin;
pub mod sgld;

use crate::engine::Chains;
use crate::error::Result;
use crate::options::{Entry, Kind, Range, Spec, option};
use crate::target::Target;
use std::sync::Arc;

/// A Markov chain on the parameters. State is what the next step needs, Info is everything else.
pub trait Sampler: Send + Sync {
    /// Name, as in scripts.
    fn name(&self) -> &'static str;

    /// Names of the state vectors of length N.
    fn vectors(&self) -> &'static [&'static str] {
        &[]
    }

    /// Names of the state scalars.
    fn scalars(&self) -> &'static [&'static str] {
        &[]
    }

    /// Names of what a step reports. `virial` is (1/N) Σ w_i g_i at the point where the gradient was taken, `kinetic` is
    /// (1/N) Σ p_i²/M_i; both estimate T.
    fn info(&self) -> &'static [&'static str];

    /// m, the minibatch size; none for full-batch samplers.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Fail if the sampler cannot work on this target; the message says why.
    fn check(&self, target: &Target) -> Result<()> {
        match self.batch() {
            Some(m) if m > target.examples() => anyhow::bail!(
                "sampler::{}: option 'batch' is {m}, but the target has only n = {} examples",
                self.name(),
                target.examples()
            ),
            _ => Ok(()),
        }
    }

    /// Prepare the state of chains whose parameters are set.
    fn init(&self, _chains: &mut Chains) -> Result<()> {
        Ok(())
    }

    /// Move the chains by one step and report everything that [`Sampler::info`] names, in its order.
    fn step(&self, chains: &mut Chains) -> Result<()>;
}

/// A sampler and how it was asked for.
pub struct Configured {
    /// The sampler.
    pub sampler: Box<dyn Sampler>,
    /// Its options, for summaries and run.json.
    pub options: Vec<(String, String)>,
}

/// The option `batch`, the same for every stochastic sampler.
pub const BATCH: Spec = option(
    "batch",
    Kind::Int(Range::AtLeast(1.0)),
    "100",
    "m, examples per minibatch, drawn independently at every step (with replacement).",
);

/// Every sampler a script can build.
pub const REGISTRY: &[Entry<Arc<Configured>>] = &[sgld::ENTRY, hmc::ENTRY, pseudo_langevin::ENTRY];

/// What a registry entry builds.
pub(crate) fn configured(
    sampler: impl Sampler + 'static,
    o: &crate::options::Options,
) -> Arc<Configured> {
    Arc::new(Configured {
        sampler: Box::new(sampler),
        options: o.describe(),
    })
}
