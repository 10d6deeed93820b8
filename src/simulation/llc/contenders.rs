//! The samplers of a benchmark, each at its step sizes.

use crate::error::Result;
use crate::options::{Options, Value};
use crate::sampler::ConfiguredSampler;
use crate::sampler::preconditioned_sgld::PRECONDITIONER;
use std::sync::Arc;

/// A sampler at its step sizes.
pub(super) struct Contender {
    /// Name in tables.
    pub label: String,
    /// Step sizes, and the sampler with each.
    pub at: Vec<(f64, Arc<ConfiguredSampler>)>,
}

impl Contender {
    /// Its name and its options at its first step size.
    pub fn options(&self) -> String {
        let first = self.at.first();
        first.map_or_else(String::new, |(_, sampler)| format!("{sampler:?}"))
    }
}

/// The samplers at their step sizes.
pub(super) fn contenders(o: &Options) -> Result<Vec<Contender>> {
    let mut samplers: Vec<Arc<ConfiguredSampler>> = o.objects("samplers");
    if samplers.is_empty() {
        for name in ["sgld", "rmsprop_sgld", "adam_sgld", "sghmc", "sgnht"] {
            samplers.push(named(name)?);
        }
    }
    let grids = match o.get("step_sizes") {
        None => {
            let own = |s: &Arc<ConfiguredSampler>| s.step_size().map(|(_, x)| vec![x]);
            samplers.iter().map(own).collect::<Option<Vec<_>>>()
        }
        Some(Value::List(list)) => grids(list, samplers.len()),
        Some(_) => None,
    };
    let grids = grids.ok_or_else(|| {
        anyhow::anyhow!(
            "{}: option 'step_sizes' must be an array of numbers > 0, or an array with one such array for each of the {} samplers",
            o.owner(),
            samplers.len()
        )
    })?;
    let one = |(sampler, grid): (Arc<ConfiguredSampler>, Vec<f64>)| -> Result<Contender> {
        let (option, _) = sampler.step_size().ok_or_else(|| {
            anyhow::anyhow!(
                "{}: sampler::{} has no fixed step size that could be varied",
                o.owner(),
                sampler.name()
            )
        })?;
        let at = grid.into_iter().map(|step| {
            let changed = sampler.with(option, step)?;
            Ok((step, changed.unwrap_or_else(|| sampler.clone())))
        });
        Ok(Contender {
            label: label(&sampler),
            at: at.collect::<Result<_>>()?,
        })
    };
    samplers.into_iter().zip(grids).map(one).collect()
}

/// One grid for all, or one each.
fn grids(list: &[Value], samplers: usize) -> Option<Vec<Vec<f64>>> {
    let grid = |list: &[Value]| -> Option<Vec<f64>> {
        let all: Vec<f64> = list.iter().map(Value::number).collect::<Option<_>>()?;
        (!all.is_empty() && all.iter().all(|x| *x > 0.0 && x.is_finite())).then_some(all)
    };
    if let Some(one) = grid(list) {
        return Some(vec![one; samplers]);
    }
    let each = list.iter().map(|v| match v {
        Value::List(own) => grid(own),
        _ => None,
    });
    each.collect::<Option<Vec<_>>>()
        .filter(|g| g.len() == samplers)
}

/// A sampler by its name, with minibatches of 500; its preconditioner, if it has one, runs on as in the paper.
fn named(name: &str) -> Result<Arc<ConfiguredSampler>> {
    let entry = crate::sampler::named(name)?;
    let mut given = vec![("batch".to_string(), Value::Int(500))];
    if entry.options.iter().any(|o| o.name == PRECONDITIONER.name) {
        given.push((PRECONDITIONER.name.into(), Value::Text("running".into())));
    }
    (entry.build)(&Options::check(name, entry.options, given)?)
}

/// What a sampler is called in tables: its name, and how its gradient is estimated if not by plain minibatches.
fn label(sampler: &ConfiguredSampler) -> String {
    let estimator = sampler.estimator();
    match (estimator.batch(), estimator.to_string()) {
        (None, _) => format!("{}, exact gradient", sampler.name()),
        (_, text) if text.contains("control") => format!("{}, control variates", sampler.name()),
        _ => sampler.name().to_string(),
    }
}
