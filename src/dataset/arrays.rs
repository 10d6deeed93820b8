//! `dataset::arrays`: numbers that a script has.

use super::{Dataset, Inputs, SEED, Scale, Split, Targets, VALIDATION, file, scale};
use crate::error::Result;
use crate::options::{Entry, Kind, Options, Range, Value, option, required};
use anyhow::{anyhow, ensure};
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "arrays",
    doc: "Inputs and targets from arrays or tensors of a script.\n\nInputs are [rows, columns], or [rows] for a single column; targets [rows, width] or [rows], real numbers or, with `classes: true`, labels 0, 1, 2, ….",
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
    let (rows, dim, inputs) = matrix(o, "inputs")?;
    let (also, width, targets) = matrix(o, "targets")?;
    ensure!(
        rows == also,
        "dataset::arrays: {rows} rows of inputs, but {also} of targets"
    );
    let classes = o.bool("classes")?;
    let targets = match classes {
        false => Targets::Values {
            width,
            data: targets,
        },
        true => {
            ensure!(width == 1, "dataset::arrays: {width} labels per row");
            let label = |(row, x): (usize, &f32)| {
                let whole = (0.0..=65535.0).contains(x) && x.fract() == 0.0;
                let wrong = || {
                    anyhow!(
                        "dataset::arrays: the target of row {row} is {x}, not a label 0, 1, 2, …"
                    )
                };
                whole.then_some(*x as u16).ok_or_else(wrong)
            };
            Targets::Classes(
                targets
                    .iter()
                    .enumerate()
                    .map(label)
                    .collect::<Result<_>>()?,
            )
        }
    };
    let train = Split::new(dim, Inputs::F32(inputs), targets)?;
    let classes = match train.labels() {
        Some(labels) => file::count_classes("dataset::arrays: the targets", labels)?,
        None => 0,
    };
    let seed = o.int("seed")?;
    let mut d = Dataset::new("arrays", classes, train, None, Vec::new())?;
    if o.float("test")? > 0.0 {
        d = d.with_test(o.float("test")?, seed)?;
    }
    let scale: Scale = o.text("scale")?.parse()?;
    let d = d
        .with_validation(o.float("validation")?, seed)?
        .scaled(scale)?;
    Ok(Arc::new(d))
}

/// Rows, columns and numbers of an option.
fn matrix(o: &Options, name: &str) -> Result<(usize, usize, Vec<f32>)> {
    let what = format!("dataset::arrays: {name}");
    let Some(Value::List(rows)) = o.get(name) else {
        let found = o.get(name).map_or("missing".into(), Value::describe);
        return Err(anyhow!("{what}: expected an {ARRAY}, but this is {found}"));
    };
    let mut numbers = Vec::with_capacity(rows.len());
    let mut width = 1;
    for (i, row) in rows.iter().enumerate() {
        let single = std::slice::from_ref(row);
        let cells = match row {
            Value::List(cells) => cells,
            _ => single,
        };
        if i == 0 {
            width = cells.len();
        }
        ensure!(
            cells.len() == width && width > 0,
            "{what}: row {i} has {} numbers, but row 0 has {width}",
            cells.len()
        );
        for cell in cells {
            let x = cell.number().map(|x| x as f32).filter(|x| x.is_finite());
            numbers.push(x.ok_or_else(|| {
                anyhow!(
                    "{what}: row {i} has {}, which is no finite number",
                    cell.describe()
                )
            })?);
        }
    }
    Ok((rows.len(), width, numbers))
}
