//! What a script asks of a data set, and the data sets that it makes of one.

use super::binder::Binder;
use super::closure::Frozen;
use super::convert::options;
use super::tensors::from_dynamic;
use super::words::kind;
use super::{Bound, Call, OrRaise};
use crate::dataset::{Dataset, Example, Scale, Target};
use crate::error::Result;
use crate::kernels::tensor::{Shape, Tensor};
use crate::options::{Kind, Range, Spec, option};
use anyhow::{Context as _, anyhow, bail, ensure};
use rhai::{Array, Dynamic, FnPtr, Map};
use std::any::TypeId;
use std::sync::Arc;

/// What closures of examples are called with.
const ARGUMENTS: &[&str] = &["the input", "the target"];

/// Characters of a closure that the summary of a data set shows.
const SHOWN: usize = 60;

const SEED: Spec = option(
    "seed",
    Kind::Int(Range::NonNegative),
    "1",
    "Seed of the random choice.",
);

const SUBSET: &[Spec] = &[
    option(
        "split",
        Kind::Choice(&["train", "test", "validation"]),
        "train",
        "The split whose rows are chosen; the others stay as they are.",
    ),
    SEED,
];

const SPLIT: &[Spec] = &[
    option(
        "test",
        Kind::Float(Range::From0To1),
        "0.2",
        "Fraction of all rows for the test split, the same fraction of every class; 0 for none.",
    ),
    option(
        "validation",
        Kind::Float(Range::From0To1),
        "0",
        "Fraction of the other rows for the validation split; 0 for none.",
    ),
    SEED,
];

pub(super) fn bind(b: &mut Binder) {
    reading(b);
    examples(b);
    rows(b);
}

fn reading(b: &mut Binder) {
    b.function(
        "data.row(split, index) -> map",
        "One row of a split: `#{ inputs, targets }`, and of a text also its `text`.\n\n\
         Targets are the label, the labels of all positions, or the numbers of a regression. Numbers have the digits of the file, where it has more than single precision \
         keeps, and no others.",
        |d: &mut Arc<Dataset>, split: &str, i: i64| row(d, split, i).or_raise(),
    )
    .with(
        &[],
        "dataset::text(\"README.md\", #{ context: 32 }).row(\"train\", 0)",
    );
    b.function(
        "data.inputs(split) -> Tensor",
        "The inputs of a split (\"train\", \"test\", …), [rows, dim]. Images are rows too: `data.inputs(\"train\").reshape([-1] + data.shape)` gives them their shape.",
        |d: &mut Arc<Dataset>, split: &str| inputs(d, split).or_raise(),
    )
    .with(&[], "dataset::digits().inputs(\"train\").mean(0)");
    b.function(
        "data.targets(split) -> Tensor",
        "The targets of a split: labels [rows], of sequences [rows, positions], or numbers [rows, width].",
        |d: &mut Arc<Dataset>, split: &str| targets(d, split).or_raise(),
    )
    .with(&[], "dataset::digits().targets(\"train\").max().item()");
}

fn examples(b: &mut Binder) {
    let types = [TypeId::of::<Arc<Dataset>>(), TypeId::of::<FnPtr>()];
    b.called(
        "data.map(closure) -> Dataset",
        "The data set of what a closure `|x, y| …` makes of each example, in all splits.\n\n\
         x is a tensor of the shape `data.shape`; y is the label, a whole number, or the target, a number (a tensor if there are several, or labels at positions). The closure gives \
         [x, y], or x alone where the target stays. The new x is a tensor, an array or a number; a whole number or true or false as y is a label, any other number a target of a regression. \
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

fn rows(b: &mut Binder) {
    let data = TypeId::of::<Arc<Dataset>>();
    b.items.push(super::item::Item {
        options: SUBSET,
        example: "dataset::digits().subset(100)".into(),
        ..super::item::Item::from_signature(
            "data.subset(rows, #{ options }) -> Dataset",
            "So many training rows, or those with the indices of an array, in that order.\n\n\
             A number of rows is chosen at random by the seed, the same fraction of every class; a smaller subset is part of a larger one. The test split stays as it is.",
        )
    });
    for which in [TypeId::of::<i64>(), TypeId::of::<Array>()] {
        for types in [&[data, which][..], &[data, which, TypeId::of::<Map>()]] {
            b.raw("", "subset", types, |call, arguments| {
                subset(call, arguments).map(Arc::new).map(Dynamic::from).or_raise()
            });
        }
    }
    b.defaulted(
        "data.scale(kind) -> Dataset",
        "Inputs scaled column by column by the training split, as the option `scale` of dataset::csv does: \"standard\" or \"unit\".",
        "standard",
        |d: &mut Arc<Dataset>, kind: &str| -> Bound<Arc<Dataset>> {
            let scaled = kind.parse::<Scale>().and_then(|s| d.scaled(s));
            scaled.map(Arc::new).or_raise()
        },
    )
    .with(&[], "dataset::digits().filter(|x, y| y < 2).scale(\"standard\")");
    b.items.push(super::item::Item {
        options: SPLIT,
        example: "dataset::digits().split(#{ test: 0.5, seed: 3 })".into(),
        ..super::item::Item::from_signature(
            "data.split(#{ options }) -> Dataset",
            "The rows of all splits together, divided anew at random by the seed.\n\n\
             Not where inputs were scaled, or missing cells filled, by the training rows: those would be others. Read the data with scale: \"none\", and scale afterwards by data.scale.",
        )
    });
    for types in [&[data][..], &[data, TypeId::of::<Map>()]] {
        b.raw("", "split", types, |call, arguments| {
            split(call, arguments).map(Arc::new).map(Dynamic::from).or_raise()
        });
    }
}

/// The map of options that may come last.
fn last(arguments: &[&mut Dynamic], at: usize) -> Map {
    let map = arguments.get(at).and_then(|x| x.read_lock::<Map>());
    map.map(|m| m.clone()).unwrap_or_default()
}

fn subset(call: &Call, arguments: &[&mut Dynamic]) -> Result<Dataset> {
    let d = arguments[0].clone().cast::<Arc<Dataset>>();
    let o = options(call, "data.subset", SUBSET, &last(arguments, 2))?;
    let split = o.text("split")?;
    if let Ok(n) = arguments[1].as_int() {
        let n = usize::try_from(n).map_err(|_| anyhow!("data.subset: {n} rows are asked for"))?;
        return d.subset(split, n, o.int("seed")?);
    }
    let list = arguments[1].read_lock::<Array>();
    let index = |x: &Dynamic| {
        let i = x.as_int().ok().and_then(|i| u32::try_from(i).ok());
        i.ok_or_else(|| anyhow!("data.subset: an index is {x}, not a whole number from 0"))
    };
    let rows = list.iter().flat_map(|l| l.iter()).map(index);
    d.choose(split, &rows.collect::<Result<Vec<_>>>()?)
}

fn split(call: &Call, arguments: &[&mut Dynamic]) -> Result<Dataset> {
    let d = arguments[0].clone().cast::<Arc<Dataset>>();
    let o = options(call, "data.split", SPLIT, &last(arguments, 1))?;
    d.divided(o.float("test")?, o.float("validation")?, o.int("seed")?)
}

/// A closure of examples.
fn frozen(owner: &str, f: &Dynamic, call: &Call) -> Bound<Frozen> {
    let f = f.clone().cast::<FnPtr>();
    Frozen::new(&format!("{owner}: the closure"), &f, ARGUMENTS, "", call)
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
    let x = from_dynamic(&x).context("the new x")?;
    let dims = x.shape()?.dims;
    let shape = match dims.is_empty() {
        true => vec![1],
        false => dims,
    };
    Ok(Example {
        shape,
        input: x.to_f64("the new x")?,
        target: match y {
            Some(y) => target(&y, &old.target).context("the new y")?,
            None => old.target,
        },
    })
}

fn target(y: &Dynamic, old: &Target) -> Result<Target> {
    let label = |x: f64| {
        ensure!(
            (0.0..65535.0).contains(&x) && x.fract() == 0.0,
            "it is {x}, but a label is 0, 1, 2, … (a target of a regression has a decimal point)"
        );
        Ok(x as u16)
    };
    if let Ok(yes) = y.as_bool() {
        return Ok(Target::Label(u16::from(yes)));
    }
    if let Ok(i) = y.as_int() {
        return label(i as f64).map(Target::Label);
    }
    let all = from_dynamic(y)?.to_f64("y")?;
    match old {
        Target::Labels(_) => Ok(Target::Labels(
            all.into_iter().map(label).collect::<Result<_>>()?,
        )),
        _ => Ok(Target::Values(all)),
    }
}

fn row(d: &Dataset, split: &str, i: i64) -> Result<Map> {
    let s = d.split(split)?;
    let at = usize::try_from(i).ok().filter(|i| *i < s.rows);
    let at = at.ok_or_else(|| {
        anyhow!(
            "data.row: the split \"{split}\" has {} rows, so there is none with index {i}",
            s.rows
        )
    })?;
    let (inputs, targets) = s.shown(at);
    let targets: Array = match s.labels() {
        Some(_) => targets.iter().map(|l| Dynamic::from(*l as i64)).collect(),
        None => targets.into_iter().map(Dynamic::from).collect(),
    };
    let mut out = Map::new();
    if let Some(characters) = &d.characters {
        let text: String = inputs.iter().map(|t| characters[*t as usize]).collect();
        out.insert("text".into(), text.into());
    }
    out.insert(
        "inputs".into(),
        inputs
            .into_iter()
            .map(Dynamic::from)
            .collect::<Array>()
            .into(),
    );
    out.insert("targets".into(), targets.into());
    Ok(out)
}

fn inputs(d: &Dataset, split: &str) -> Result<Tensor> {
    let s = d.split(split)?;
    Shape::fixed(&[s.rows, s.dim]).fits::<f32>("data.inputs")?;
    if s.doubles.is_some() {
        return Tensor::from_f64(s.inputs_f64(), &[s.rows, s.dim]);
    }
    let mut out = vec![0f32; s.rows * s.dim];
    s.copy(0..s.rows, &mut out);
    Tensor::from_f32(out, &[s.rows, s.dim])
}

fn targets(d: &Dataset, split: &str) -> Result<Tensor> {
    let s = d.split(split)?;
    let width = s.targets.width();
    Shape::fixed(&[s.rows, width]).fits::<f32>("data.targets")?;
    if let Some(labels) = s.labels() {
        let all = labels.iter().map(|l| f32::from(*l)).collect();
        return match width {
            1 => Tensor::from_f32(all, &[s.rows]),
            _ => Tensor::from_f32(all, &[s.rows, width]),
        };
    }
    if s.doubles.is_some() {
        return Tensor::from_f64(s.targets_f64(), &[s.rows, width]);
    }
    let mut out = vec![0f32; s.rows * width];
    s.copy_values(0..s.rows, &mut out);
    Tensor::from_f32(out, &[s.rows, width])
}
