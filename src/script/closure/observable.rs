//! Closures as observables: compiled if they depend on parameters alone, otherwise called at every record.

use super::super::{Bound, Call, branches, raise, report, words};
use super::{Called, Frozen, Place, Rest, State, params};
use crate::error::Result;
use crate::kernels::tensor::{Graph, Numbers, Symbol, Tensor};
use crate::model::Layout;
use crate::observable::{First, Handle, Observable, View};
use crate::target::Target;
use anyhow::{anyhow, ensure};
use rhai::{Array, Dynamic, FnPtr, Map};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard};

/// A closure that returns a number, or some.
struct Closure {
    name: String,
    /// Why it cannot be used, if so.
    frozen: std::result::Result<Frozen, report::Placed>,
    /// What its first call has shown.
    first: Mutex<Shown>,
}

/// What the first call of a closure has shown.
#[derive(Clone, Default)]
struct Shown {
    shape: Shape,
    /// The layout of the parameters that it was made with.
    layout: Option<Arc<Layout>>,
    /// The closure compiled, if it depends on nothing but parameters, through tensors alone.
    compiled: Option<Arc<Numbers>>,
}

/// What a closure gives: a number, or so many with labels.
type Shape = Option<Vec<String>>;

/// A closure as an observable, named after the closure.
pub(in crate::script) fn observable(function: &FnPtr, call: &Call) -> Handle {
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
pub(in crate::script) fn named(name: &str, function: &FnPtr, call: &Call) -> Bound<Handle> {
    let made = closure(name.into(), function, call);
    if let Err(e) = &made.frozen {
        return Err(raise(e.clone().into()));
    }
    Ok(Arc::new(Box::new(made)))
}

fn closure(name: String, function: &FnPtr, call: &Call) -> Closure {
    let what = format!("the observable '{name}'");
    Closure {
        frozen: Frozen::new(&what, function, &["the state"], Called::Running, call),
        first: Mutex::default(),
        name,
    }
}

impl Closure {
    fn first(&self) -> MutexGuard<'_, Shown> {
        self.first.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn call(&self, state: State) -> Result<(Vec<f64>, Shape)> {
        let frozen = self.frozen.as_ref().map_err(|e| e.clone())?;
        let value = frozen.call([Dynamic::from(state)])?;
        self.numbers(&value)
    }

    /// The closure compiled: it is called once more, with symbols. None if it needs numbers, or anything but the parameters, or prints, or
    /// gives other numbers here than `found`.
    fn compile(&self, layout: &Layout, w: &[f32], found: &[f64]) -> Option<Numbers> {
        let frozen = self.frozen.as_ref().ok()?;
        let text = frozen.definition();
        if layout.has_supports() || ["print", "debug"].iter().any(|f| text.contains(f)) {
            return None;
        }
        let tensors = layout.tensors();
        let named = tensors.iter().map(|t| (t.name.clone(), t.shape.clone()));
        let params = Tensor::from(Symbol::parameters(layout.len(), named.collect()));
        let state = State { params, rest: None };
        let call = || pieces(&frozen.call([Dynamic::from(state.clone())])?);
        let join = |condition: &Tensor, (a, names): Pieces, (b, others): Pieces| {
            ensure!(names == others, "the ways give different things");
            Ok((condition.choose(&a, &b)?, names))
        };
        let (all, _) = branches::follow(call, join, |e| e).ok()?;
        // What depends on no parameter is not worth it.
        matches!(all, Tensor::Traced(_)).then_some(())?;
        let graph = Graph::new(&all.symbol().ok()?).ok()?;
        let each = tensors.iter().map(|t| t.range.clone());
        let ranges: Vec<_> = std::iter::once(0..layout.len()).chain(each).collect();
        let compiled = Numbers::compile(&graph, &ranges).ok()?;
        let mut out = vec![0.0; compiled.count()];
        compiled.evaluate(w, &mut out);
        let near = |(x, y): (&f64, &f64)| {
            x.is_nan() && y.is_nan()
                || x == y
                || (x - y).abs() <= 1e-4 * x.abs().max(y.abs()).max(1e-3)
        };
        (out.len() == found.len() && out.iter().zip(found).all(near)).then_some(compiled)
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
                let kind = words::kind(x);
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
        let kind = words::kind(value);
        Err(anyhow!(
            "the observable '{}' must return a number, or an array or map of numbers, but returned {kind}",
            self.name
        ))
    }
}

/// The numbers of a result one after the other, and what it consists of.
type Pieces = (Tensor, Vec<String>);

fn pieces(value: &Dynamic) -> Result<Pieces> {
    fn flatten(value: &Dynamic, out: &mut Vec<Tensor>, names: &mut Vec<String>) -> Result<()> {
        if let Some(t) = value.read_lock::<Tensor>() {
            names.push(t.shape()?.to_string());
            out.push(t.flatten()?);
        } else if let Some(list) = value.read_lock::<Array>() {
            list.iter().try_for_each(|x| flatten(x, out, names))?;
        } else if let Some(map) = value.read_lock::<Map>() {
            names.extend(map.keys().map(|k| k.to_string()));
            map.values().try_for_each(|x| flatten(x, out, names))?;
        } else {
            let x = number(value).ok_or_else(|| anyhow!("it is no number"))?;
            names.push("[]".into());
            out.push(Tensor::from_f64(vec![x], &[1])?);
        }
        Ok(())
    }
    let (mut out, mut names) = (Vec::new(), Vec::new());
    flatten(value, &mut out, &mut names)?;
    let all = Tensor::concat(&out.iter().collect::<Vec<_>>(), 0)?;
    Ok((all, names))
}

fn number(x: &Dynamic) -> Option<f64> {
    let number = x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
    number
        .or_else(|_| x.as_bool().map(|b| f64::from(u8::from(b))))
        .ok()
}

impl Observable for Closure {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn components(&self, _: &Target) -> Option<(String, Vec<String>)> {
        let labels = self.first().shape.clone()?;
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
        let info = first.info.iter();
        let (found, labels) = self.call(State {
            params: params(w.clone(), &layout),
            rest: Some(Arc::new(Rest {
                place,
                step: first.step as i64,
                chain: 0,
                temperature: first.temperature,
                info: info.map(|k| (k.0.into(), 0.0.into())).collect(),
            })),
        })?;
        ensure!(
            labels.as_ref().is_none_or(|l| !l.is_empty()),
            "the observable '{}' returned no numbers at the starting point",
            self.name
        );
        let compiled = self.compile(&layout, &w, &found).map(Arc::new);
        *self.first() = Shown {
            shape: labels,
            layout: Some(layout),
            compiled,
        };
        Ok(())
    }

    fn numbers(&self) -> Option<Arc<Numbers>> {
        self.first().compiled.clone()
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let Shown {
            shape,
            layout,
            compiled,
        } = self.first().clone();
        if let Some(compiled) = compiled {
            compiled.evaluate(view.chain.w, out);
            return Ok(());
        }
        let layout = layout.unwrap_or_else(|| Arc::new(view.target.layout().clone()));
        let (names, values) = view.info;
        let info = names.iter().zip(values);
        let w = Arc::new(view.chain.w.to_vec());
        let lent = (take(&mut view.known), take(view.work));
        let rest = Arc::new(Rest {
            place: Place {
                target: view.target.clone(),
                w: w.clone(),
                known: Mutex::new(lent),
            },
            step: view.chain.step as i64,
            chain: view.chain.index as i64,
            temperature: view.chain.temperature,
            info: info.map(|(k, v)| (k.0.into(), (*v).into())).collect(),
        });
        let found = self.call(State {
            params: params(w, &layout),
            rest: Some(rest.clone()),
        });
        (view.known, *view.work) = take(&mut *rest.place.known());
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

pub(in crate::script) fn check_name(name: &str) -> Bound<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > 60 || !name.chars().all(fine) {
        return Err(raise(anyhow!(
            "observable::named: the name is \"{name}\", but must be 1 to 60 letters, digits or underscores"
        )));
    }
    Ok(())
}
