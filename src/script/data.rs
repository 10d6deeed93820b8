//! What a script asks of a data set, and the data sets that it makes of one.

use super::binder::Binder;
use super::convert::options;
use super::{Bound, Call, OrRaise, examples};
use crate::dataset::{Augment, Dataset, Scale};
use crate::error::Result;
use crate::kernels::tensor::{Shape, Tensor};
use crate::options::{Kind, Range, Spec, option};
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map};
use std::any::TypeId;
use std::sync::Arc;

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

const AUGMENT: &[Spec] = &[
    option(
        "copies",
        Kind::Int(Range::Between(2.0, 10000.0)),
        "10",
        "Variants of each training example; the first is the example itself.",
    ),
    option(
        "shift",
        Kind::Int(Range::NonNegative),
        "0",
        "Pixels by which an image is shifted at most, in each direction; what comes in is 0.",
    ),
    option(
        "flip",
        Kind::Bool,
        "false",
        "Whether one of two variants is mirrored, left to right.",
    ),
    option(
        "noise",
        Kind::Float(Range::NonNegative),
        "0",
        "Standard deviation of normal noise on each component.",
    ),
    SEED,
];

pub(super) fn bind(b: &mut Binder) {
    reading(b);
    examples::bind(b);
    rows(b);
    let data = TypeId::of::<Arc<Dataset>>();
    b.called(
        "data.augment(#{ options }) -> Dataset",
        "Variants of the training examples: images shifted or mirrored, noise on the inputs.\n\n\
         `copies: k` makes k·n rows of n examples. A variant depends on the seed, the example and its number alone: epochs, resumed runs and other threads see the same ones. \
         The loss is the mean over all variants, and the likelihood counts n examples (`energy: \"sum\"` is n times that mean). So what is sampled is the law of examples whose \
         log-likelihood is the mean over their variants: a fixed law, but not the posterior of the n examples. Divide, map and scale before. More than 256 MB of variants are made \
         when they are read, and then not on accelerators.",
        &[data, TypeId::of::<Map>()],
        |call, arguments| {
            let d = arguments[0].clone().cast::<Arc<Dataset>>();
            augment(&d, call, &last(arguments, 1)).map(Arc::new).map(Dynamic::from).or_raise()
        },
    )
    .with(
        AUGMENT,
        "dataset::digits().augment(#{ copies: 5, shift: 1, noise: 0.05 })",
    );
}

fn augment(d: &Dataset, call: &Call, map: &Map) -> Result<Dataset> {
    let o = options(call, "data.augment", AUGMENT, map)?;
    d.augmented(&Augment {
        copies: o.size("copies")?,
        shift: o.size("shift")?,
        flip: o.bool("flip")?,
        noise: o.float("noise")?,
        seed: o.int("seed")?,
    })
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
        "The inputs of a split (\"train\", \"test\", …), [rows, dim].\n\nThey are as models get them, scaled and with words as numbers. Images are rows too: `data.inputs(\"train\").reshape([-1] + data.shape)` gives them their shape.",
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
                subset(call, arguments)
                    .map(Arc::new)
                    .map(Dynamic::from)
                    .or_raise()
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
            split(call, arguments)
                .map(Arc::new)
                .map(Dynamic::from)
                .or_raise()
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
        let all = labels.iter().map(|l| *l as f32).collect();
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
