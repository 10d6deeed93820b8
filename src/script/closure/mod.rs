//! Closures that leave the script: as observables, `|s| …` where `s` is the state of one chain, and as models. Those that threads call are
//! [`frozen`].

mod frozen;
mod identity;
mod rules;
mod source;

pub(super) use frozen::{Frozen, expect};

use super::{Binder, Bound, Call, OrRaise, raise, report};
use crate::error::Result;
use crate::kernels::tensor::{Names, Tensor, Vector};
use crate::model::Layout;
use crate::observable::{First, Handle, LossCache, Observable, View};
use crate::target::{Target, Workspace};
use anyhow::{anyhow, ensure};
use rhai::{Array, Dynamic, FnPtr, Map};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard};

/// The state of a chain, as a closure sees it.
#[derive(Clone)]
pub(super) struct State {
    pub params: Tensor,
    pub step: i64,
    pub chain: i64,
    pub temperature: f64,
    pub info: Map,
    pub place: Arc<Place>,
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
    b.object::<State>("State", |s| {
        format!(
            "chain {} at step {}, T = {:e}",
            s.chain, s.step, s.temperature
        )
    });
    b.engine
        .register_get("params", |s: &mut State| s.params.clone())
        .register_get("step", |s: &mut State| s.step)
        .register_get("chain", |s: &mut State| s.chain)
        .register_get("temperature", |s: &mut State| s.temperature)
        .register_get("info", |s: &mut State| -> Map { s.info.clone() });
    b.function(
        "state.loss(split) -> number",
        "In an observable, the mean loss on a split (\"train\", \"test\", …) at the chain's parameters; computed once per record, for all observables.",
        |s: &mut State, split: &str| -> Bound<f64> { s.place.split(split).map(|x| x[0]).or_raise() },
    )
    .function(
        "state.error(split) -> number",
        "In an observable, the fraction of misclassified examples of a split at the chain's parameters; computed once per record, for all observables.",
        |s: &mut State, split: &str| -> Bound<f64> { s.place.split(split).map(|x| x[1]).or_raise() },
    )
    .function(
        "state.energy() -> number",
        "In an observable, U = s·L + R at the chain's parameters, over all training examples; computed once per record, for all observables.",
        |s: &mut State| -> Bound<f64> { s.place.energy().or_raise() },
    )
    .function(
        "state.gradient() -> Tensor",
        "In an observable, ∇U at the chain's parameters, over all training examples: a vector with the names of the model's tensors. Costs a gradient per record.",
        |s: &mut State| -> Bound<Tensor> { s.place.gradient().or_raise() },
    )
    .function(
        "state.outputs(split) -> Tensor",
        "In an observable, the outputs of the network for the inputs of a split, before the loss: a tensor `[rows, outputs]`. Costs a forward pass over the split.",
        |s: &mut State, split: &str| -> Bound<Tensor> { s.place.outputs(split).or_raise() },
    );
}

/// A closure that returns a number, or some.
struct Closure {
    name: String,
    /// Why it cannot be used, if so.
    frozen: std::result::Result<Frozen, report::Placed>,
    /// What its first call has shown, and the layout of the parameters that it was made with.
    first: Mutex<(Shape, Option<Arc<Layout>>)>,
}

/// What a closure gives: a number, or so many with labels.
type Shape = Option<Vec<String>>;

/// A closure as an observable, named after the closure.
pub(super) fn observable(function: &FnPtr, call: &Call) -> Handle {
    // Rhai names closures by a hash; traces need names that last.
    let count = call
        .context
        .closures_named
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        + 1;
    let name = match function.is_anonymous() {
        true => format!("closure_{count}"),
        false => function.fn_name().to_string(),
    };
    Arc::new(Box::new(closure(name, function, call)))
}

/// A closure as an observable of that name.
pub(super) fn named(name: &str, function: &FnPtr, call: &Call) -> super::Bound<Handle> {
    let made = closure(name.into(), function, call);
    if let Err(e) = &made.frozen {
        return Err(raise(e.clone().into()));
    }
    Ok(Arc::new(Box::new(made)))
}

fn closure(name: String, function: &FnPtr, call: &Call) -> Closure {
    let what = format!("the observable '{name}'");
    Closure {
        frozen: Frozen::new(&what, function, &["the state"], "", call),
        first: Mutex::default(),
        name,
    }
}

impl Closure {
    fn first(&self) -> MutexGuard<'_, (Shape, Option<Arc<Layout>>)> {
        self.first.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn call(&self, state: State) -> Result<(Vec<f64>, Shape)> {
        let frozen = self.frozen.as_ref().map_err(|e| e.clone())?;
        let value = frozen.call([Dynamic::from(state)])?;
        self.numbers(&value)
    }

    /// The numbers of a result, and their labels if it is not just one.
    fn numbers(&self, value: &Dynamic) -> Result<(Vec<f64>, Shape)> {
        let numbered = |n: usize| Some((0..n).map(|i| i.to_string()).collect());
        if let Some(x) = number(value) {
            return Ok((vec![x], None));
        }
        let one = |x: &Dynamic| {
            let single = || x.read_lock::<Tensor>()?.item("").ok();
            number(x).or_else(single).ok_or_else(|| {
                let kind = super::words::kind(x);
                anyhow!(
                    "the observable '{}' must return numbers, but returned an array or a map with {kind} in it",
                    self.name
                )
            })
        };
        // The largest weight, say, is a tensor of one number.
        if let Some(t) = value.read_lock::<Tensor>() {
            let all = t.to_f64(&format!("the observable '{}'", self.name))?;
            let several = all.len() != 1 || t.as_vector().is_some();
            let labels = several.then(|| numbered(all.len())).flatten();
            return Ok((all, labels));
        }
        if let Some(list) = value.read_lock::<Array>() {
            let all = list.iter().map(one).collect::<Result<_>>()?;
            return Ok((all, numbered(list.len())));
        }
        if let Some(map) = value.read_lock::<Map>() {
            let all = map.values().map(one).collect::<Result<_>>()?;
            return Ok((all, Some(map.keys().map(|k| k.to_string()).collect())));
        }
        let kind = super::words::kind(value);
        Err(anyhow!(
            "the observable '{}' must return a number, or an array or map of numbers, but returned {kind}",
            self.name
        ))
    }
}

fn number(x: &Dynamic) -> Option<f64> {
    let number = x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
    number
        .or_else(|_| x.as_bool().map(|b| f64::from(u8::from(b))))
        .ok()
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

impl Observable for Closure {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn components(&self, _: &Target) -> Option<(String, Vec<String>)> {
        let labels = self.first().0.clone()?;
        Some((format!("{}_component", self.name), labels))
    }

    fn definition(&self) -> Option<String> {
        self.frozen.as_ref().ok().map(Frozen::definition)
    }

    fn begin(&self, first: &First) -> Result<()> {
        let layout = Arc::new(first.target.layout().clone());
        let w = (first.start)();
        let place = Place {
            target: first.target.clone(),
            w: w.clone(),
            known: Mutex::default(),
        };
        let (_, labels) = self.call(State {
            params: params(w, &layout),
            place: Arc::new(place),
            step: first.step as i64,
            chain: 0,
            temperature: first.temperature,
            info: first
                .info
                .iter()
                .map(|k| (k.0.into(), 0.0.into()))
                .collect(),
        })?;
        ensure!(
            labels.as_ref().is_none_or(|l| !l.is_empty()),
            "the observable '{}' returned no numbers at the starting point",
            self.name
        );
        *self.first() = (labels, Some(layout));
        Ok(())
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let (shape, layout) = self.first().clone();
        let layout = layout.unwrap_or_else(|| Arc::new(view.target.layout().clone()));
        let (names, values) = view.info;
        let info = names.iter().zip(values);
        let w = Arc::new(view.chain.w.to_vec());
        let lent = (take(&mut view.known), take(view.work));
        let place = Arc::new(Place {
            target: view.target.clone(),
            w: w.clone(),
            known: Mutex::new(lent),
        });
        let found = self.call(State {
            params: params(w, &layout),
            place: place.clone(),
            step: view.chain.step as i64,
            chain: view.chain.index as i64,
            temperature: view.chain.temperature,
            info: info.map(|(k, v)| (k.0.into(), (*v).into())).collect(),
        });
        (view.known, *view.work) = take(&mut *place.known());
        let (numbers, labels) = found?;
        ensure!(
            labels == shape && numbers.len() == out.len(),
            "the observable '{}' returned {} at step {} of chain {}, but {} at the starting point; this must not change",
            self.name,
            said(&labels),
            view.chain.step,
            view.chain.index,
            said(&shape)
        );
        out.copy_from_slice(&numbers);
        Ok(())
    }
}

/// How many numbers, in words.
fn said(shape: &Shape) -> String {
    match shape {
        None => "one number".into(),
        Some(labels) if labels.len() > 6 => format!("{} numbers", labels.len()),
        Some(labels) => format!("{} numbers ({})", labels.len(), labels.join(", ")),
    }
}

pub(super) fn check_name(name: &str) -> super::Bound<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > 60 || !name.chars().all(fine) {
        return Err(raise(anyhow!(
            "observable::named: the name is \"{name}\", but must be 1 to 60 letters, digits or underscores"
        )));
    }
    Ok(())
}
