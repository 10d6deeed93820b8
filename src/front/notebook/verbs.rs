//! The verbs of scripts for Rust code, and what it asks of runs.

use super::session::Session;
use crate::error::Result;
use crate::options::Given;
use crate::plot::Figure;
use crate::report::figures::{self, canonical};
use crate::sampler::Configured;
use crate::simulation::evidence::laplace::LAPLACE;
use crate::simulation::evidence::{self, Evidence, Laplace};
use crate::simulation::llc::calibrate::{self, Calibration};
use crate::simulation::llc::{self, Estimate};
use crate::simulation::optimizer::Optimizer;
use crate::simulation::run::Run;
use crate::simulation::smc::{self, Smc};
use crate::simulation::train::{self, Trained};
use crate::simulation::verify::{self, OfRun, Verification};
use crate::simulation::{benchmark, validate, verbs};
use crate::target::Target;
use crate::target::prior::Parameters;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

/// A method of sessions for each verb, and a function that calls it in the session of this process.
macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $verb:expr;)*) => {
        impl Session {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// If an option is wrong, and those of the verb.
                pub fn $name(&self, $($argument: &Arc<$kind>,)* options: Given) -> Result<$result> {
                    self.call(&$verb, ($($argument.clone().into(),)*), options)
                }
            )*
        }
        $(
            $(#[$doc])*
            ///
            /// In the session of this process.
            ///
            /// # Errors
            /// If an option is wrong, and those of the verb.
            pub fn $name($($argument: &Arc<$kind>,)* options: Given) -> Result<$result> {
                Session::here().$name($($argument,)* options)
            }
        )*
    };
}
verbs! {
    /// Optimise parameters: a script's `train`.
    train(target: Target, optimizer: Optimizer) -> Arc<Trained> = train::TRAIN;
    /// Sample at one temperature: a script's `sample`.
    sample(target: Target, sampler: Configured) -> Arc<Run> = verbs::SAMPLE;
    /// Sample at several temperatures: a script's `sweep`.
    sweep(target: Target, sampler: Configured) -> Arc<Run> = verbs::SWEEP;
    /// Replica exchange: a script's `exchange`.
    exchange(target: Target, sampler: Configured) -> Arc<Run> = verbs::EXCHANGE;
    /// Tempered sequential Monte Carlo: a script's `smc`.
    smc(target: Target, sampler: Configured) -> Arc<Smc> = smc::SMC;
    /// Estimate the local learning coefficient: a script's `llc`.
    llc(target: Target, sampler: Configured) -> Arc<Estimate> = llc::LLC;
    /// Find the step size for a learning coefficient: a script's `calibrate_llc`.
    calibrate_llc(target: Target, sampler: Configured) -> Arc<Calibration> = calibrate::CALIBRATE;
    /// ln Z from the draws of a ladder: a script's `evidence`.
    evidence(run: Run) -> Arc<Evidence> = evidence::EVIDENCE;
    /// The Laplace approximation of ln Z: a script's `laplace`.
    laplace(target: Target, start: Parameters) -> Arc<Laplace> = LAPLACE;
    /// Test what pseudo-Langevin takes for granted: a script's `validate`.
    validate(target: Target, sampler: Configured) -> Json = validate::VALIDATE;
    /// Measure how fast a sampler steps: a script's `benchmark`.
    benchmark(target: Target, sampler: Configured) -> Json = benchmark::BENCHMARK;
}

impl Session {
    /// Test the law of a run by short exact chains: a script's `verify`. Of a run from a folder: `(&run, &target, &sampler)`.
    ///
    /// # Errors
    /// If an option is wrong, or a run does not know what made it.
    pub fn verify(&self, of: impl Into<OfRun>, options: Given) -> Result<Arc<Verification>> {
        self.call(&verify::VERIFY, of.into(), options)
    }
}

/// Test the law of a run by short exact chains, in the session of this process. Of a run from a folder: `(&run, &target, &sampler)`.
///
/// # Errors
/// If an option is wrong, or a run does not know what made it.
pub fn verify(of: impl Into<OfRun>, options: Given) -> Result<Arc<Verification>> {
    Session::here().verify(of, options)
}

/// A run that was saved before, finished or not, from its folder, with the draws it has so far.
pub fn open(folder: impl AsRef<Path>) -> Result<Arc<Run>> {
    Run::open(folder.as_ref()).map(Arc::new)
}

/// The figures of runs.
pub trait Plots {
    /// Observables against temperature, one panel each, with error bars.
    fn plot_sweep(&self, names: &[&str]) -> Result<Figure>;

    /// The trace of an observable, one line per chain.
    fn plot_traces(&self, name: &str) -> Result<Figure>;

    /// The distribution of an observable after burn-in, one outline per temperature.
    fn plot_histogram(&self, name: &str) -> Result<Figure>;
}

impl Plots for Arc<Run> {
    fn plot_sweep(&self, names: &[&str]) -> Result<Figure> {
        figures::sweep_of(std::slice::from_ref(self), names)
    }

    fn plot_traces(&self, name: &str) -> Result<Figure> {
        figures::traces(self, &canonical(name))
    }

    fn plot_histogram(&self, name: &str) -> Result<Figure> {
        figures::histogram(self, &canonical(name))
    }
}

/// Numbers from first to last (both included) by a constant factor, as a script's `logspace`.
pub fn logspace(first: f64, last: f64, count: usize) -> Vec<f64> {
    let ends = (first.ln(), last.ln());
    let mut out: Vec<f64> = linspace(ends.0, ends.1, count)
        .into_iter()
        .map(f64::exp)
        .collect();
    // The ends are the numbers themselves.
    if let Some(x) = out.last_mut() {
        *x = last;
    }
    if let Some(x) = out.first_mut() {
        *x = first;
    }
    out
}

/// Numbers from first to last (both included) at a constant distance, as a script's `linspace`.
pub fn linspace(first: f64, last: f64, count: usize) -> Vec<f64> {
    let part = |i: usize| i as f64 / (count.max(2) - 1) as f64;
    (0..count)
        .map(|i| first + (last - first) * part(i))
        .collect()
}
