//! What scripts can construct, for Rust code, by name.
//!
//! `make::dataset("digits", options! { test: 500 })` is a script's `dataset::digits(#{ test: 500 })`: the same names, the same options.
//! The functions are used with their module, because in a notebook a variable `target` would hide a function of that name.

use crate::dataset::{self, Dataset};
use crate::error::Result;
use crate::model::{self, Model};
use crate::observable::{self, Handle, Observable, View};
use crate::options::{Given, find};
use crate::sampler::gradient::{self, Estimator};
use crate::sampler::{self, Configured, Sampler};
use crate::simulation::optimizer::{self, Optimizer};
use crate::target::build::{ANALYTIC, TARGET};
use crate::target::prior::{self, Prior};
use crate::target::{Potential, Target};
use crate::verb::Either;
use std::sync::Arc;

/// A data set: `make::dataset("digits", options! {})`.
pub fn dataset(name: &str, options: Given) -> Result<Arc<Dataset>> {
    // It needs models, and so is in a table of its own.
    if let Ok(teacher) = find("dataset", model::teacher::REGISTRY, name) {
        return teacher.make("dataset", options);
    }
    find("dataset", dataset::REGISTRY, name)?.make("dataset", options)
}

/// A model: `make::model("mlp", options! { layers: [64, 32, 10] })`.
pub fn model(name: &str, options: Given) -> Result<Arc<dyn Model>> {
    find("model", model::REGISTRY, name)?.make("model", options)
}

/// A prior: `make::prior("l2", options! { lambda: 10.0 })`.
pub fn prior(name: &str, options: Given) -> Result<Arc<Prior>> {
    find("prior", prior::REGISTRY, name)?.make("prior", options)
}

/// An optimiser: `make::optimizer("adam", options! { epochs: 5 })`.
pub fn optimizer(name: &str, options: Given) -> Result<Arc<Optimizer>> {
    find("optimizer", optimizer::REGISTRY, name)?.make("optimizer", options)
}

/// A way to estimate gradients: `make::gradient("full", options! {})`.
pub fn gradient(name: &str, options: Given) -> Result<Arc<Estimator>> {
    find("gradient", gradient::REGISTRY, name)?.make("gradient", options)
}

/// A sampler: `make::sampler("sgld", options! { step: 1e-5, batch: 100 })`; also one that was [registered](sampler::register).
pub fn sampler(name: &str, options: Given) -> Result<Arc<Configured>> {
    sampler::named(name)?.make("sampler", options)
}

/// Your own sampler, ready to run. `options` is what summaries say of it.
pub fn own(own: impl Sampler + 'static, options: Given) -> Result<Arc<Configured>> {
    Configured::own(own, options)
}

/// An observable: `make::observable("error", options! { split: "test" })`.
pub fn observable(name: &str, options: Given) -> Result<Handle> {
    find("observable", observable::REGISTRY, name)?.make("observable", options)
}

/// Your own observable, a number from the state of a chain: `make::measure("largest", |s| …)`.
pub fn measure(
    name: &str,
    f: impl Fn(&mut View) -> Result<f64> + Send + Sync + 'static,
) -> Result<Handle> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    anyhow::ensure!(
        !name.is_empty() && name.chars().all(fine),
        "\"{name}\" cannot be the name of an observable; use letters, digits and '_'"
    );
    Ok(Arc::new(Box::new(Measured {
        name: name.into(),
        f,
    })))
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

/// The distribution of a network's weights on a data set: `make::target(&model, &data, options! { prior: … })`.
pub fn target(model: &Arc<dyn Model>, data: &Arc<Dataset>, options: Given) -> Result<Arc<Target>> {
    let of = Either::First((model.clone(), data.clone()));
    TARGET.run(of, options, &())
}

/// A target of known law by name, with the options of the potential and those of a target: `make::analytic("banana", options! {})`.
pub fn analytic(name: &str, options: Given) -> Result<Arc<Target>> {
    ANALYTIC.run((name.into(),), options, &())
}

/// The target of a potential of your own.
pub fn of_potential(potential: Arc<dyn Potential>, options: Given) -> Result<Arc<Target>> {
    TARGET.run(Either::Second((potential,)), options, &())
}
