//! Closures of examples: `data.map`, `data.filter` and `data.weigh`.

use super::binder::Binder;
use super::closure::{Called, Frozen};
use super::tensors::from_dynamic;
use super::words::kind;
use super::{Bound, Call, OrRaise};
use crate::dataset::{Dataset, Example, Target};
use crate::error::Result;
use crate::kernels::tensor::Tensor;
use anyhow::{Context as _, anyhow, bail, ensure};
use rhai::{Array, Dynamic, FnPtr};
use std::any::TypeId;
use std::sync::Arc;

/// What closures of examples are called with.
const ARGUMENTS: &[&str] = &["the input", "the target"];

/// Characters of a closure that the summary of a data set shows.
const SHOWN: usize = 60;

pub(super) fn bind(b: &mut Binder) {
    weigh(b);
    let types = [TypeId::of::<Arc<Dataset>>(), TypeId::of::<FnPtr>()];
    b.called(
        "data.map(closure) -> Dataset",
        "The data set of what a closure `|x, y| …` makes of each example, in all splits.\n\n\
         x is a tensor of the shape `data.shape`; y is the label, a whole number, or the target, a number (a tensor if there are several, or labels at positions). The closure gives \
         [x, y], or x alone, a tensor or a number, where the target stays. The new x is a tensor, an array of numbers (or of tensors, one behind the other) or a number, so that an array of two is always [x, y]; a whole number or true or false as y is a label, any other number a target of a regression. \
         Labels are 0, 1, 2, …; if they change, the classes are counted anew.\n\n\
         The closure is called at once, row after row, with what it captures as it is then. It cannot change what it captures, nor call what depends on more than its arguments. What was \
         made does not remember the closure, only its numbers: a run is resumed with the same numbers, however they came about. Where inputs change, `predict` takes new rows as \
         they are afterwards, without the scaling that came before.",
        &types,
        |call, arguments| {
            let d = arguments[0].clone().cast::<Arc<Dataset>>();
            let f = frozen("data.map", arguments[1], call)?;
            let made = d.map(&brief(&f), |e| answer(f.call(given(&e)?)?, e));
            Ok(Dynamic::from(Arc::new(made.or_raise()?)))
        },
    )
    .with(
        &[],
        "dataset::digits().map(|x, y| [x.square(), if y < 5 { 0 } else { 1 }])",
    );
    b.called(
        "data.filter(closure) -> Dataset",
        "The data set of the examples for which a closure `|x, y| …` is true, in all splits; x and y as for data.map.\n\n\
         Classes keep their numbers, also where one has no example left; data.map can number them anew. A split that would lose all rows is an error.",
        &types,
        |call, arguments| {
            let d = arguments[0].clone().cast::<Arc<Dataset>>();
            let f = frozen("data.filter", arguments[1], call)?;
            let made = d.filter(&brief(&f), |e| {
                let value = f.call(given(&e)?)?;
                let wrong = || anyhow!("the closure must give true or false, but gave {}", kind(&value));
                value.as_bool().map_err(|_| wrong())
            });
            Ok(Dynamic::from(Arc::new(made.or_raise()?)))
        },
    )
    .with(
        &[],
        "dataset::digits().filter(|x, y| y == 3 || y == 8).map(|x, y| [x, if y == 8 { 1 } else { 0 }])",
    );
}

fn weigh(b: &mut Binder) {
    let data = TypeId::of::<Arc<Dataset>>();
    b.called(
        "data.weigh(weights) -> Dataset",
        "The data set with a weight for each row, a number from 0 that multiplies its loss: L = Σ w_i ℓ_i / n, where n stays the number of rows.\n\n\
         Weights are an array, or a tensor, with a number for each training row, or a closure `|x, y| …` of the example (x and y as for data.map), which weighs the rows of all splits. \
         With `energy: \"sum\"` a weight of 2 is what the same row twice would be, to single precision. Errors and scores of predictions count all rows alike. \
         Map, split and augment before. `dataset::csv` takes weights from a column.",
        &[data, TypeId::of::<FnPtr>()],
        |call, arguments| {
            let d = arguments[0].clone().cast::<Arc<Dataset>>();
            let f = frozen("data.weigh", arguments[1], call)?;
            let made = d.weigh(&brief(&f), |e| {
                let value = f.call(given(&e)?)?;
                let wrong = || anyhow!("the closure must give a number, but gave {}", kind(&value));
                let number = value.as_float().or_else(|_| value.as_int().map(|i| i as f64));
                number.map_err(|_| wrong())
            });
            Ok(Dynamic::from(Arc::new(made.or_raise()?)))
        },
    )
    .with(
        &[],
        "dataset::digits().weigh(|x, y| if y < 5 { 1.0 } else { 0.5 })",
    );
    for given in [TypeId::of::<Array>(), TypeId::of::<Tensor>()] {
        b.raw("", "weigh", &[data, given], |_, arguments| {
            let d = arguments[0].clone().cast::<Arc<Dataset>>();
            let weights = from_dynamic(arguments[1]).and_then(|t| t.to_f64("data.weigh"));
            let single = |all: Vec<f64>| all.into_iter().map(|w| w as f32).collect();
            let made = weights.and_then(|all| d.weighed(single(all)));
            Ok(Dynamic::from(Arc::new(made.or_raise()?)))
        });
    }
}

/// A closure of examples.
fn frozen(owner: &str, f: &Dynamic, call: &Call) -> Bound<Frozen> {
    let f = f.clone().cast::<FnPtr>();
    Frozen::new(
        &format!("{owner}: the closure"),
        &f,
        ARGUMENTS,
        Called::Once,
        call,
    )
    .map_err(|e| super::raise(e.into()))
}

/// The beginning of a closure's text.
fn brief(f: &Frozen) -> String {
    let text = f.definition();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > SHOWN {
        true => line.chars().take(SHOWN).chain(['…']).collect(),
        false => line,
    }
}

/// An example as closures see it.
fn given(e: &Example) -> Result<[Dynamic; 2]> {
    let x = Tensor::from_f64(e.input.clone(), &e.shape)?;
    let numbers = |v: Vec<f64>| {
        let length = v.len();
        Tensor::from_f64(v, &[length]).map(Dynamic::from)
    };
    let y = match &e.target {
        Target::Label(l) => Dynamic::from(i64::from(*l)),
        Target::Labels(l) => numbers(l.iter().map(|l| f64::from(*l)).collect())?,
        Target::Values(v) if v.len() == 1 => Dynamic::from(v[0]),
        Target::Values(v) => numbers(v.clone())?,
    };
    Ok([Dynamic::from(x), y])
}

/// The example that a closure has given in the place of another.
fn answer(value: Dynamic, old: Example) -> Result<Example> {
    let list = value.read_lock::<Array>().map(|l| l.to_vec());
    let (x, y) = match list.as_deref() {
        None => (value, None),
        Some([x, y]) => (x.clone(), Some(y.clone())),
        Some(l) => bail!(
            "the closure must give [x, y] or the new x, but gave an array of {} elements",
            l.len()
        ),
    };
    let (shape, input) = input(&x).context("the new x")?;
    Ok(Example {
        shape,
        input,
        target: match y {
            Some(y) => target(&y, &old.target).context("the new y")?,
            None => old.target,
        },
    })
}

/// Shape and numbers of an input: a tensor, a number, or an array of either.
fn input(x: &Dynamic) -> Result<(Vec<usize>, Vec<f64>)> {
    let tensors = |l: &Array| l.iter().any(|x| x.is::<Tensor>());
    if let Some(list) = x.read_lock::<Array>().filter(|l| tensors(l)) {
        let mut all = Vec::new();
        for part in list.iter() {
            all.extend(from_dynamic(part)?.to_f64("x")?);
        }
        return Ok((vec![all.len()], all));
    }
    let x = from_dynamic(x)?;
    let dims = x.shape()?.dims;
    let shape = match dims.is_empty() {
        true => vec![1],
        false => dims,
    };
    Ok((shape, x.to_f64("x")?))
}

fn target(y: &Dynamic, old: &Target) -> Result<Target> {
    let label = |x: f64| {
        ensure!(
            (0.0..65535.0).contains(&x) && x.fract() == 0.0,
            "it is {x}, but a label is 0, 1, 2, … (a target of a regression has a decimal point)"
        );
        Ok(x as u32)
    };
    if let Ok(yes) = y.as_bool() {
        return Ok(Target::Label(u32::from(yes)));
    }
    if let Ok(i) = y.as_int() {
        return label(i as f64).map(Target::Label);
    }
    // [x.mean(), x.max()] is meant as an input of two numbers.
    ensure!(
        !matches!(old, Target::Label(_)) || !y.is::<Tensor>(),
        "it is a tensor in the place of a label; write [[a, b], y] for an input of two numbers, and y.item() for a target that is one"
    );
    let all = from_dynamic(y)?.to_f64("y")?;
    match old {
        Target::Labels(_) => Ok(Target::Labels(
            all.into_iter().map(label).collect::<Result<_>>()?,
        )),
        _ => Ok(Target::Values(all)),
    }
}
