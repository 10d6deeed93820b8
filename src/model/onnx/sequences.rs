//! Operators of ONNX on sequences of tensors: how PyTorch writes `split` and `unbind`.

use super::axes::parts;
use super::node::{Node, Operator, sizes};
use super::value::Value;
use crate::error::Result;
use anyhow::{anyhow, bail, ensure};

pub const OPERATORS: &[(&str, Operator)] = &[
    ("ConcatFromSequence", Operator::Value(concat)),
    ("SequenceAt", Operator::Value(at)),
    (
        "SequenceConstruct",
        Operator::Sequence(|n| Ok(n.given().into_iter().cloned().collect())),
    ),
    (
        "SequenceLength",
        Operator::Value(|n| Value::numbers(vec![n.sequence()?.len() as f64], &[], true)),
    ),
    ("SplitToSequence", Operator::Sequence(split)),
];

fn at(n: &Node) -> Result<Value> {
    let all = n.sequence()?;
    let index = n.input(1)?.to_ints("its position")?;
    let [index] = index[..] else {
        bail!("its position is {index:?}, not one number");
    };
    let from_end = if index < 0 { all.len() as i64 } else { 0 };
    let found = usize::try_from(index + from_end)
        .ok()
        .and_then(|i| all.get(i));
    found
        .cloned()
        .ok_or_else(|| anyhow!("it takes part {index} of {}", all.len()))
}

/// Lengths of the parts; one number is that of each, but for the last; without any they are 1, and their axis goes where `keepdims` is 0.
fn split(n: &Node) -> Result<Vec<Value>> {
    let x = n.input(0)?;
    let axis = x.axis(n.int("axis", 0))?;
    let length = x.dims()?[axis];
    x.inner(axis)?;
    let Some(given) = n.optional(1) else {
        let each = parts(x, axis, &vec![1; length])?;
        if n.flag("keepdims", true) {
            return Ok(each);
        }
        let mut dims = x.dims()?;
        dims.remove(axis);
        return each.iter().map(|part| part.reshape(&dims)).collect();
    };
    let lengths = sizes("split", &given.to_ints("'split'")?)?;
    match (given.rank()?, &lengths[..]) {
        (0, [each]) => {
            ensure!(*each > 0, "its parts have length 0");
            let starts = (0..length).step_by(*each);
            let lengths: Vec<_> = starts.map(|at| (*each).min(length - at)).collect();
            parts(x, axis, &lengths)
        }
        _ => parts(x, axis, &lengths),
    }
}

fn concat(n: &Node) -> Result<Value> {
    let all: Vec<_> = n.sequence()?.iter().collect();
    let first = all
        .first()
        .ok_or_else(|| anyhow!("the sequence is empty"))?;
    let axis = n.int("axis", 0);
    if !n.flag("new_axis", false) {
        return Value::concat(&all, first.axis(axis)?);
    }
    let mut dims = first.dims()?;
    let rank = dims.len() as i64 + 1;
    let at = usize::try_from(if axis < 0 { axis + rank } else { axis });
    let at = at.ok().filter(|at| *at <= dims.len());
    let at = at.ok_or_else(|| anyhow!("there is no axis {axis}"))?;
    dims.insert(at, 1);
    let each: Vec<_> = all
        .iter()
        .map(|v| v.reshape(&dims))
        .collect::<Result<_>>()?;
    Value::concat(&each.iter().collect::<Vec<_>>(), at)
}
