//! The verbs of scripts in the session of this process, and what Rust code asks of runs.

use super::session::Session;
use crate::error::Result;
use crate::model::Model;
use crate::observable::Observable;
use crate::options::{Given, Value};
use crate::plot::Figure;
use crate::sampler::Configured;
use crate::sampler::gradient::Estimator;
use crate::schedule::Schedule;
use crate::script::notebook;
use crate::simulation::optimizer::Optimizer;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use crate::simulation::train::Trained;
use crate::simulation::verify::{Origin, Verification};
use crate::target::Target;
use crate::target::prior::{Parameters, Prior};
use crate::trigger::Trigger;
use std::path::Path;
use std::sync::Arc;

/// Optimise parameters, in the session of this process.
pub fn train(target: &Target, optimizer: &Optimizer, options: Given) -> Result<Arc<Trained>> {
    Session::here().train(target, optimizer, options)
}

/// Sample at one temperature, in the session of this process.
pub fn sample(target: &Target, sampler: &Configured, options: Given) -> Result<Arc<Run>> {
    Session::here().sample(target, sampler, options)
}

/// Sample at several temperatures, in the session of this process.
pub fn sweep(target: &Target, sampler: &Configured, options: Given) -> Result<Arc<Run>> {
    Session::here().sweep(target, sampler, options)
}

/// Replica exchange, in the session of this process.
pub fn exchange(target: &Target, sampler: &Arc<Configured>, options: Given) -> Result<Arc<Run>> {
    Session::here().exchange(target, sampler, options)
}

/// Test the law of a run by short exact chains, in the session of this process: of what it was made, and which observables are looked at.
pub fn verify(run: &Run, origin: &Origin, options: Given) -> Result<Verification> {
    Session::here().verify(run, origin, options)
}

/// A run that was saved before, finished or not, from its folder, with the draws it has so far.
pub fn open(folder: impl AsRef<Path>) -> Result<Arc<Run>> {
    Run::open(folder.as_ref()).map(Arc::new)
}

impl Run {
    /// Means with error bars, convergence diagnostics and the thermometer, per temperature.
    pub fn summary(&self) -> Result<Arc<Summary>> {
        Summary::new(self).map(Arc::new)
    }

    /// The last parameters of every chain, for the option `start`.
    pub fn parameters(&self) -> Arc<Parameters> {
        let vectors = self.params.clone();
        Arc::new(Parameters { vectors })
    }
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
        notebook::plot_sweep(std::slice::from_ref(self), names)
    }

    fn plot_traces(&self, name: &str) -> Result<Figure> {
        notebook::plot_traces(self, name)
    }

    fn plot_histogram(&self, name: &str) -> Result<Figure> {
        notebook::plot_histogram(self, name)
    }
}

macro_rules! handles {
    ($($kind:ty: $name:literal),* $(,)?) => {
        $(
            impl From<Arc<$kind>> for Value {
                fn from(x: Arc<$kind>) -> Self {
                    Value::object(&x, $name)
                }
            }

            impl From<&Arc<$kind>> for Value {
                fn from(x: &Arc<$kind>) -> Self {
                    Value::object(x, $name)
                }
            }
        )*
    };
}
handles! {
    Prior: "Prior", Estimator: "Gradient", Configured: "Sampler", Schedule: "Schedule", Trigger: "Trigger",
    Box<dyn Observable>: "Observable", Parameters: "Parameters", Arc<dyn Model>: "Model",
}

impl From<&Arc<Run>> for Value {
    fn from(x: &Arc<Run>) -> Self {
        x.parameters().into()
    }
}

impl From<&Arc<Trained>> for Value {
    fn from(x: &Arc<Trained>) -> Self {
        (&x.params).into()
    }
}

impl From<Schedule> for Value {
    fn from(x: Schedule) -> Self {
        Arc::new(x).into()
    }
}

impl From<Trigger> for Value {
    fn from(x: Trigger) -> Self {
        Arc::new(x).into()
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
