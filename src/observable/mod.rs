//! Observables: numbers read from (State, Info, Target), never written to them.
//!
//! To add one: write it as a type here or in a file of its own, with an [`Entry`], and add the entry to [`REGISTRY`].

pub(crate) mod basic;
pub(crate) mod example_losses;
pub(crate) mod gradient_variance;
pub(crate) mod top_error;

use crate::engine::ChainRef;
use crate::engine::report::Report;
use crate::error::Result;
use crate::kernels::tensor::Numbers;
use crate::model::loss::Sums;
use crate::options::Entry;
use crate::target::{Energies, Target, Workspace};
use std::borrow::Cow;
use std::sync::Arc;

/// What an observable may read: one chain after a step.
pub struct View<'a> {
    /// The chain, with parameters and the sampler's state.
    pub chain: ChainRef<'a>,
    /// Names of the sampler's vectors.
    pub vector_names: &'a [&'static str],
    /// What the sampler reported, averaged since the last record: names and values.
    pub info: (&'a [Report], &'a [f64]),
    /// The sampler's minibatch size.
    pub batch: Option<usize>,
    /// Parameters at the start of the run.
    pub start: &'a dyn Fn() -> Arc<Vec<f32>>,
    /// The target.
    pub target: &'a Target,
    /// Buffers of this thread.
    pub work: &'a mut Workspace,
    /// What is known of its losses.
    pub known: LossCache,
}

/// What is known of a run before its first step.
pub struct First<'a> {
    /// The target.
    pub target: &'a Target,
    /// Parameters where the first chain starts.
    pub start: &'a dyn Fn() -> Arc<Vec<f32>>,
    /// The step of the first record.
    pub step: u64,
    /// Temperature of the first chain.
    pub temperature: f64,
    /// What the sampler reports.
    pub info: &'a [Report],
}

/// Losses at a chain's parameters, once some observable has asked for them.
#[derive(Debug, Clone, Default)]
pub struct LossCache {
    /// Energies over the training examples.
    pub energies: Option<Energies>,
    /// Loss and error of other splits.
    pub splits: Vec<(String, [f64; 2])>,
    /// Losses of single examples: of these rows of a split, for every position.
    pub examples: Vec<(String, Vec<u32>, Vec<f64>)>,
    /// Outputs for splits, `[rows, outputs]`.
    pub outputs: Vec<(String, Vec<f32>)>,
    /// What observables are, by name, that an accelerator has computed as a whole.
    pub numbers: Vec<(String, Vec<f64>)>,
}

impl LossCache {
    /// Energies over all training examples at `w`, for which the cache is.
    pub fn energies(
        &mut self,
        target: &Target,
        w: &[f32],
        work: &mut Workspace,
    ) -> Result<Energies> {
        if let Some(e) = self.energies {
            return Ok(e);
        }
        let e = target.energies(w, work)?;
        self.energies = Some(e);
        Ok(e)
    }

    /// Mean loss and error fraction on a split at `w`, for which the cache is.
    pub fn split(
        &mut self,
        target: &Target,
        name: &str,
        w: &[f32],
        work: &mut Workspace,
    ) -> Result<[f64; 2]> {
        if name == "train" {
            let e = self.energies(target, w, work)?;
            return Ok([e.loss, e.error]);
        }
        if let Some((_, v)) = self.splits.iter().find(|(n, _)| n == name) {
            return Ok(*v);
        }
        let (sums, rows) = target.potential().split_sums(w, name, work)?;
        let v = [sums.loss / rows as f64, sums.errors / rows as f64];
        self.splits.push((name.into(), v));
        Ok(v)
    }

    /// Enter sums over the `rows` rows of a split; of the training split with R.
    pub fn note(&mut self, target: &Target, split: &str, prior: f64, sums: Sums, rows: usize) {
        if split == "train" {
            self.energies = Some(target.energies_from(sums, prior));
        } else {
            let both = [sums.loss / rows as f64, sums.errors / rows as f64];
            self.splits.push((split.into(), both));
        }
    }
}

impl View<'_> {
    /// Energies over all training examples; computed once per record.
    pub fn energies(&mut self) -> Result<Energies> {
        self.known.energies(self.target, self.chain.w, self.work)
    }

    /// Mean loss and error fraction on a split; computed once per record.
    pub fn split(&mut self, name: &str) -> Result<[f64; 2]> {
        self.known.split(self.target, name, self.chain.w, self.work)
    }

    /// The losses of rows of a split, for every position.
    pub fn example_losses(&self, split: &str, rows: &[u32]) -> Result<Vec<f64>> {
        let mut known = self.known.examples.iter();
        match known.find(|(s, r, _)| s == split && r == rows) {
            Some((_, _, losses)) => Ok(losses.clone()),
            None => {
                let potential = self.target.potential();
                potential.example_losses(self.chain.w, split, rows)
            }
        }
    }

    /// The outputs of the network for a split, `[rows, outputs]`.
    pub fn outputs(&self, split: &str) -> Result<Cow<'_, [f32]>> {
        match self.known.outputs.iter().find(|(s, _)| s == split) {
            Some((_, outputs)) => Ok(outputs.into()),
            None => {
                let network = self.target.network("an observable")?;
                let rows = network.dataset().split(split)?;
                Ok(network.predict(self.chain.w, rows)?.into())
            }
        }
    }

    /// What the sampler reported, averaged since the last record; NaN if it reports no such thing.
    pub fn reported(&self, report: Report) -> f64 {
        let at = self.info.0.iter().position(|r| *r == report);
        at.map_or(f64::NAN, |i| self.info.1[i])
    }
}

/// A quantity measured along a chain.
pub trait Observable: Send + Sync {
    /// Name of its trace: letters, digits and underscores.
    fn name(&self) -> String;

    /// For a vector: the name of its dimension and a label per component. None for a number.
    fn components(&self, _target: &Target) -> Option<(String, Vec<String>)> {
        None
    }

    /// Fail if it cannot be measured on this target; the message says why.
    fn check(&self, _target: &Target) -> Result<()> {
        Ok(())
    }

    /// What else than its name its values follow from, as text: of a closure its source. A run is resumed only with the same.
    fn definition(&self) -> Option<String> {
        None
    }

    /// Look at the start of a run, before its first step; after this the components are known.
    fn begin(&self, _first: &First) -> Result<()> {
        Ok(())
    }

    /// Whether parameters, temperature and data determine it: then it can be measured on draws that were kept.
    fn of_parameters(&self) -> bool {
        true
    }

    /// The split whose loss it reads: an accelerator computes it for all chains at once.
    fn split(&self) -> Option<&str> {
        None
    }

    /// The split and the rows of it whose losses it reads: an accelerator computes them for all chains at once.
    ///
    /// # Errors
    /// If there is no such split.
    fn examples(&self, _target: &Target) -> Result<Option<(String, Vec<u32>)>> {
        Ok(None)
    }

    /// The split whose outputs it reads: an accelerator computes them for all chains at once.
    fn outputs(&self) -> Option<&str> {
        None
    }

    /// What it is, compiled, if it follows from parameters alone: an accelerator computes it for all chains at once.
    fn numbers(&self) -> Option<Arc<Numbers>> {
        None
    }

    /// Measure into `out`, one number per component.
    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()>;
}

impl std::fmt::Debug for dyn Observable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// A handle to an observable.
pub type Handle = Arc<Box<dyn Observable>>;

/// An observable of your own, a number from the state of a chain: `measure("largest", |view| …)`.
///
/// # Errors
/// If the name is not one of letters, digits and underscores.
pub fn measure(
    name: &str,
    f: impl Fn(&mut View) -> Result<f64> + Send + Sync + 'static,
) -> Result<Handle> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    anyhow::ensure!(
        !name.is_empty() && name.chars().all(fine),
        "\"{name}\" cannot be the name of an observable; use letters, digits and '_'"
    );
    let name = name.into();
    Ok(Arc::new(Box::new(Measured { name, f })))
}

struct Measured<F> {
    name: String,
    f: F,
}

impl<F: Fn(&mut View) -> Result<f64> + Send + Sync> Observable for Measured<F> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        out[0] = (self.f)(view)?;
        Ok(())
    }
}

/// Every observable a script can build.
pub const REGISTRY: &[Entry<Handle>] = &[
    basic::COST,
    basic::ENERGY,
    basic::ERROR,
    basic::LOSS,
    basic::NORM2,
    basic::GRADIENT_NORM2,
    basic::DISTANCE2,
    basic::OVERLAP,
    basic::PARAMETER,
    basic::KINETIC_TEMPERATURE,
    basic::VIRIAL_TEMPERATURE,
    basic::ACCEPTANCE,
    gradient_variance::ENTRY,
    example_losses::ENTRY,
    top_error::ENTRY,
];

crate::object::object!(Box<dyn Observable>: "Observable", text: |o| o.name());
