//! Closures that leave the script: as observables, `|s| …` where `s` is the state of one chain, and as models. Those that threads call are
//! [`frozen`].

mod frozen;
mod identity;
mod observable;
mod rules;
mod source;

pub(super) use frozen::{Called, Frozen, expect};
pub(super) use observable::{check_name, named, observable};

use super::{Binder, Bound, OrRaise, raise};
use crate::error::Result;
use crate::kernels::tensor::{Names, Tensor, Vector};
use crate::model::Layout;
use crate::observable::LossCache;
use crate::observable::basic::NO_ERRORS;
use crate::target::{Target, Workspace};
use anyhow::anyhow;
use rhai::Map;
use std::sync::{Arc, Mutex, MutexGuard};

/// The state of a chain, as a closure sees it.
#[derive(Clone)]
struct State {
    params: Tensor,
    /// The rest; nothing while the closure is traced.
    rest: Option<Arc<Rest>>,
}

/// All of a state but the parameters.
struct Rest {
    step: i64,
    chain: i64,
    temperature: f64,
    info: Map,
    place: Place,
}

impl State {
    fn rest(&self) -> Bound<&Rest> {
        let rest = self.rest.as_deref();
        rest.ok_or_else(|| raise(anyhow!("only the parameters of the state are traced")))
    }
}

/// Where a chain is, and what has been computed there; losses are shared with the other observables of a record.
pub(super) struct Place {
    target: Target,
    w: Arc<Vec<f32>>,
    known: Mutex<(LossCache, Workspace)>,
}

impl Place {
    fn known(&self) -> MutexGuard<'_, (LossCache, Workspace)> {
        self.known.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Mean loss and error fraction on a split.
    fn split(&self, name: &str) -> Result<[f64; 2]> {
        let (known, work) = &mut *self.known();
        known.split(&self.target, name, &self.w, work)
    }

    /// Error fraction on a split.
    fn error(&self, name: &str) -> Result<f64> {
        anyhow::ensure!(
            self.target.potential().classifies(),
            "state.error: {NO_ERRORS}"
        );
        self.split(name).map(|[_, error]| error)
    }

    /// U, over all training examples.
    fn energy(&self) -> Result<f64> {
        let (known, work) = &mut *self.known();
        Ok(known.energies(&self.target, &self.w, work)?.total)
    }

    /// ∇U over all training examples, with the names of the model's tensors.
    fn gradient(&self) -> Result<Tensor> {
        let (_, work) = &mut *self.known();
        let mut gradient = vec![0.0; self.w.len()];
        self.target
            .energies_and_gradient(&self.w, &mut gradient, work)?;
        Ok(numbers(
            Arc::new(gradient),
            &Arc::new(self.target.layout().clone()),
        ))
    }

    /// The outputs of the network for the rows of a split, `[rows, outputs]`.
    fn outputs(&self, split: &str) -> Result<Tensor> {
        let network = self.target.network("state.outputs")?;
        let split = network.dataset().split(split)?;
        let outputs = network.predict(&self.w, split)?;
        let shape = [split.rows, outputs.len() / split.rows.max(1)];
        Tensor::from_f32(outputs, &shape)
    }
}

pub(super) fn bind(b: &mut Binder) {
    b.object::<State>("State", |s| match &s.rest {
        Some(s) => format!(
            "chain {} at step {}, T = {:e}",
            s.chain, s.step, s.temperature
        ),
        None => "the state of a chain".into(),
    });
    b.engine
        .register_get("params", |s: &mut State| s.params.clone())
        .register_get("step", |s: &mut State| -> Bound<i64> { Ok(s.rest()?.step) })
        .register_get("chain", |s: &mut State| -> Bound<i64> {
            Ok(s.rest()?.chain)
        })
        .register_get("temperature", |s: &mut State| -> Bound<f64> {
            Ok(s.rest()?.temperature)
        })
        .register_get("info", |s: &mut State| -> Bound<Map> {
            Ok(s.rest()?.info.clone())
        });
    b.function(
        "state.loss(split) -> number",
        "In an observable, the mean loss on a split (\"train\", \"test\", …) at the chain's parameters; computed once per record, for all observables.",
        |s: &mut State, split: &str| -> Bound<f64> { s.rest()?.place.split(split).map(|x| x[0]).or_raise() },
    )
    .function(
        "state.error(split) -> number",
        "In an observable, the fraction of misclassified examples of a split at the chain's parameters; computed once per record, for all observables.",
        |s: &mut State, split: &str| -> Bound<f64> { s.rest()?.place.error(split).or_raise() },
    )
    .function(
        "state.energy() -> number",
        "In an observable, U = s·L + R at the chain's parameters, over all training examples; computed once per record, for all observables.",
        |s: &mut State| -> Bound<f64> { s.rest()?.place.energy().or_raise() },
    )
    .function(
        "state.gradient() -> Tensor",
        "In an observable, ∇U at the chain's parameters, over all training examples: a vector with the names of the model's tensors. Costs a gradient per record.",
        |s: &mut State| -> Bound<Tensor> { s.rest()?.place.gradient().or_raise() },
    )
    .function(
        "state.outputs(split) -> Tensor",
        "In an observable, the outputs of the network for the inputs of a split, before the loss: a tensor `[rows, outputs]`. Costs a forward pass over the split.",
        |s: &mut State, split: &str| -> Bound<Tensor> { s.rest()?.place.outputs(split).or_raise() },
    );
}

/// Numbers of a chain, one per parameter, with the names of the model's tensors.
fn numbers(w: Arc<Vec<f32>>, layout: &Arc<Layout>) -> Tensor {
    let layout = layout.clone();
    let names: Names = Arc::new(move |name, w| {
        let found = layout.tensor(name)?;
        Ok((w[found.range.clone()].to_vec(), found.shape.clone()))
    });
    Tensor::Vector(Vector::new(w, Some(names)))
}

/// The parameters of a chain: coordinates by the names of tensors, values by those that were declared.
fn params(w: Arc<Vec<f32>>, layout: &Arc<Layout>) -> Tensor {
    if !layout.has_supports() {
        return numbers(w, layout);
    }
    let layout = layout.clone();
    let names: Names = Arc::new(move |name, w| {
        let (x, shape) = layout.numbers(name, w)?;
        Ok((x.into_iter().map(|x| x as f32).collect(), shape.to_vec()))
    });
    Tensor::Vector(Vector::new(w, Some(names)))
}
