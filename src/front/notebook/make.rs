//! What scripts can construct, for Rust code, by name.
//!
//! `make::dataset("digits", options! { test: 500 })` is a script's `dataset::digits(#{ test: 500 })`: the same names, the same options.
//! The functions are used with their module, because in a notebook a variable `target` would hide a function of that name.

use crate::dataset::{self, Dataset};
use crate::error::{Result, did_you_mean};
use crate::model::{self, Model};
use crate::observable::{self, Handle, Observable, View};
use crate::options::{Entry, Given, Options};
use crate::sampler::gradient::{self, Estimator};
use crate::sampler::{self, Configured, Sampler};
use crate::simulation::optimizer::{self, Optimizer};
use crate::target::build::{ANALYTIC, TARGET};
use crate::target::prior::{self, Prior};
use crate::target::{Potential, Target};
use crate::verb::Either;
use std::sync::Arc;

fn build<T>(space: &str, entries: &'static [Entry<T>], name: &str, given: Given) -> Result<T> {
    let entry = entries.iter().find(|e| e.name == name).ok_or_else(|| {
        anyhow::anyhow!(
            "there is no {space}::{name}{}",
            did_you_mean(name, entries.iter().map(|e| e.name))
        )
    })?;
    made(space, entry, given)
}

fn made<T>(space: &str, entry: &Entry<T>, given: Given) -> Result<T> {
    let owner = format!("{space}::{}", entry.name);
    (entry.build)(&Options::check(&owner, entry.options, given.into_pairs())?)
}

/// A data set: `make::dataset("digits", options! {})`.
pub fn dataset(name: &str, options: Given) -> Result<Arc<Dataset>> {
    if name == model::teacher::ENTRY.name {
        return made("dataset", &model::teacher::ENTRY, options);
    }
    build("dataset", dataset::REGISTRY, name, options)
}

/// A model: `make::model("mlp", options! { layers: [64, 32, 10] })`.
pub fn model(name: &str, options: Given) -> Result<Arc<dyn Model>> {
    build("model", model::REGISTRY, name, options)
}

/// A prior: `make::prior("l2", options! { lambda: 10.0 })`.
pub fn prior(name: &str, options: Given) -> Result<Arc<Prior>> {
    build("prior", prior::REGISTRY, name, options)
}

/// An optimiser: `make::optimizer("adam", options! { epochs: 5 })`.
pub fn optimizer(name: &str, options: Given) -> Result<Arc<Optimizer>> {
    build("optimizer", optimizer::REGISTRY, name, options)
}

/// A way to estimate gradients: `make::gradient("full", options! {})`.
pub fn gradient(name: &str, options: Given) -> Result<Arc<Estimator>> {
    build("gradient", gradient::REGISTRY, name, options)
}

/// A sampler: `make::sampler("sgld", options! { step: 1e-5, batch: 100 })`; also one that was [registered](sampler::register).
pub fn sampler(name: &str, options: Given) -> Result<Arc<Configured>> {
    made("sampler", sampler::named(name)?, options)
}

/// Your own sampler, ready to run. `options` is what summaries say of it.
pub fn own(own: impl Sampler + 'static, options: Given) -> Result<Arc<Configured>> {
    Configured::own(own, options)
}

/// An observable: `make::observable("error", options! { split: "test" })`.
pub fn observable(name: &str, options: Given) -> Result<Handle> {
    build("observable", observable::REGISTRY, name, options)
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
    TARGET.run(of, options.into_pairs(), &())
}

/// A target of known law by name, with the options of the potential and those of a target: `make::analytic("banana", options! {})`.
pub fn analytic(name: &str, options: Given) -> Result<Arc<Target>> {
    ANALYTIC.run((name.into(),), options.into_pairs(), &())
}

/// The target of a potential of your own.
pub fn of_potential(potential: Arc<dyn Potential>, options: Given) -> Result<Arc<Target>> {
    TARGET.run(Either::Second((potential,)), options.into_pairs(), &())
}
