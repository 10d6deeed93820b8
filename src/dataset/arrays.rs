//! `dataset::arrays`: numbers that a script has.

use super::form::flatten;
use super::{Answers, Dataset, SEED, Scale, Split, Targets, VALIDATION, file, scale};
use crate::error::Result;
use crate::options::{Entry, Kind, Options, Range, Value, option, required};
use anyhow::{anyhow, ensure};
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "arrays",
    doc: "Inputs and targets from arrays or tensors of a script.\n\nInputs are [rows, columns], or [rows] for a single column, or images [rows, height, width], which keep their shape; targets [rows, width] or [rows], real numbers or, with `classes: true`, labels 0, 1, 2, ….",
    arguments: &["inputs", "targets"],
    options: &[
        required(
            "inputs",
            Kind::Anything(ARRAY),
            "Inputs, a row per example.",
        ),
        required(
            "targets",
            Kind::Anything(ARRAY),
            "Targets, a row per example.",
        ),
        option(
            "classes",
            Kind::Bool,
            "false",
            "Whether targets are labels of classes.",
        ),
        option(
            "test",
            Kind::Float(Range::From0To1),
            "0",
            "Fraction of the rows for the test split.",
        ),
        VALIDATION,
        scale::COLUMNS,
        SEED,
    ],
    example: "dataset::arrays([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], [0.1, 0.9, 2.2])",
    build,
};

const ARRAY: &str = "array or tensor of numbers";

fn build(o: &Options) -> Result<Arc<Dataset>> {
    let (rows, shape, inputs) = matrix(o, "inputs")?;
    let (also, widths, targets) = matrix(o, "targets")?;
    ensure!(
        rows == also,
        "dataset::arrays: {rows} rows of inputs, but {also} of targets"
    );
    let width = widths.iter().product();
    let targets = match o.bool("classes")? {
        false => Answers::Values {
            width,
            data: targets,
        },
        true => {
            ensure!(width == 1, "dataset::arrays: {width} labels per row");
            let label = |(row, x): (usize, &f64)| {
                let whole = (0.0..=65535.0).contains(x) && x.fract() == 0.0;
                let wrong = || {
                    anyhow!(
                        "dataset::arrays: the target of row {row} is {x}, not a label 0, 1, 2, …"
                    )
                };
                whole.then_some(*x as u32).ok_or_else(wrong)
            };
            let labels = targets.iter().enumerate().map(label);
            Answers::Labels(Targets::Classes(labels.collect::<Result<_>>()?))
        }
    };
    let train = Split::of_doubles(shape.iter().product(), inputs, targets)?;
    let classes = match train.labels() {
        Some(labels) => file::count_classes("dataset::arrays: the targets", labels)?,
        None => 0,
    };
    let seed = o.int("seed")?;
    let mut d = Dataset::new("arrays", classes, train, None, Vec::new())?;
    d.shape = shape;
    let scale: Scale = o.text("scale")?.parse()?;
    let d = d
        .with_test(o.float("test")?, seed)?
        .with_validation(o.float("validation")?, seed)?
        .scaled(scale)?;
    Ok(Arc::new(d))
}

/// Rows, the shape of one, and the numbers of an option.
fn matrix(o: &Options, name: &str) -> Result<(usize, Vec<usize>, Vec<f64>)> {
    let what = format!("dataset::arrays: {name}");
    let Some(Value::List(rows)) = o.get(name) else {
        let found = o.get(name).map_or("missing".into(), Value::describe);
        return Err(anyhow!("{what}: expected an {ARRAY}, but this is {found}"));
    };
    let mut numbers = Vec::with_capacity(rows.len());
    let mut first = None;
    for (i, row) in rows.iter().enumerate() {
        let shape = shape(row);
        let expected = first.get_or_insert_with(|| shape.clone());
        let (found, wanted): (usize, usize) = (shape.iter().product(), expected.iter().product());
        ensure!(
            found == wanted && found > 0,
            "{what}: row {i} has {found} numbers, but row 0 has {wanted}"
        );
        let before = numbers.len();
        flatten(row, &mut numbers).map_err(|e| anyhow!("{what}: row {i}: {e}"))?;
        ensure!(
            shape == *expected && numbers.len() - before == found,
            "{what}: row {i} has another shape than row 0, which is {expected:?}"
        );
        let odd = numbers[before..].iter().find(|x| !(**x as f32).is_finite());
        if let Some(x) = odd {
            return Err(anyhow!(
                "{what}: row {i} has {x}, which is no finite number"
            ));
        }
    }
    Ok((rows.len(), first.unwrap_or_else(|| vec![1]), numbers))
}

/// Lengths of the axes of nested arrays, by the first entry of each; a number is a row of one.
fn shape(row: &Value) -> Vec<usize> {
    let mut out = Vec::new();
    let mut at = row;
    while let Value::List(list) = at {
        out.push(list.len());
        match list.first() {
            Some(inner) => at = inner,
            None => break,
        }
    }
    match out.is_empty() {
        true => vec![1],
        false => out,
    }
}
