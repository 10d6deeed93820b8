//! Tensors from the script's values and back.

use super::super::words::a_kind;
use super::super::{Bound, OrRaise};
use super::number;
use crate::error::Result;
use crate::kernels::tensor::{Shape, Tensor};
use crate::memory;
use crate::options::Value;
use anyhow::{anyhow, bail, ensure};
use rhai::{Array, Dynamic};

/// Whole numbers of an array.
pub(super) fn integers(all: &[Dynamic], what: &str) -> Bound<Vec<i64>> {
    whole(all, what).or_raise()
}

fn whole(all: &[Dynamic], what: &str) -> Result<Vec<i64>> {
    let each = all.iter().map(|x| {
        let float = |x: f64| (x.fract() == 0.0 && x.abs() < 1e15).then_some(x as i64);
        x.as_int()
            .ok()
            .or_else(|| float(x.as_float().ok()?))
            .ok_or_else(|| {
                anyhow!(
                    "{what}: a length is {}, not a whole number",
                    a_kind(x.type_name())
                )
            })
    });
    each.collect()
}

/// A shape: an array of lengths, or one length.
pub(super) fn dims(shape: &Dynamic, what: &str) -> Bound<Vec<usize>> {
    lengths(shape, what).or_raise()
}

/// The shape of a parameter.
pub(in crate::script) fn shape_of(shape: &Dynamic) -> Result<Vec<usize>> {
    lengths(shape, "its shape")
}

fn lengths(shape: &Dynamic, what: &str) -> Result<Vec<usize>> {
    let all = match shape.read_lock::<Array>() {
        Some(list) => whole(&list, what)?,
        None => whole(std::slice::from_ref(shape), what)?,
    };
    let each = all.iter().map(|d| {
        usize::try_from(*d)
            .ok()
            .filter(|d| *d > 0)
            .ok_or_else(|| anyhow!("{what}: an axis has length {d}, but must have at least 1"))
    });
    each.collect()
}

/// A tensor from a number, nested arrays, a vector of parameters, or a tensor.
pub(in crate::script) fn from_dynamic(x: &Dynamic) -> Result<Tensor> {
    if let Some(t) = x.clone().try_cast::<Tensor>() {
        return match t.as_vector() {
            Some(_) => t.concrete("tensor").map(Tensor::Concrete),
            None => Ok(t),
        };
    }
    if x.is_array() {
        let (mut shape, mut numbers) = (Vec::new(), Vec::new());
        measure(x, &mut shape)?;
        flatten(x, &shape, &mut numbers)?;
        return Tensor::from_f64(numbers, &shape);
    }
    let x = number(x, "tensor: the argument")?;
    Tensor::from_f64(vec![x], &[])
}

/// The lengths of nested arrays, as the first entries have them.
fn measure(x: &Dynamic, shape: &mut Vec<usize>) -> Result<()> {
    if let Some(list) = x.read_lock::<Array>() {
        ensure!(shape.len() < 32, "tensor: the arrays are nested too deeply");
        shape.push(list.len());
        if let Some(first) = list.first() {
            measure(first, shape)?;
        }
    }
    Ok(())
}

fn flatten(x: &Dynamic, shape: &[usize], out: &mut Vec<f64>) -> Result<()> {
    let Some((length, rest)) = shape.split_first() else {
        out.push(number(x, "tensor: an element")?);
        return Ok(());
    };
    let Some(list) = x.read_lock::<Array>() else {
        bail!(
            "tensor: arrays are nested unequally: {} where an array of {length} was expected",
            a_kind(x.type_name())
        );
    };
    ensure!(
        list.len() == *length,
        "tensor: arrays of unequal lengths, {length} and {}",
        list.len()
    );
    list.iter().try_for_each(|x| flatten(x, rest, out))
}

/// Nested arrays of numbers.
pub(in crate::script) fn to_dynamic(t: &Tensor, what: &str) -> Result<Dynamic> {
    let dims = t.shape()?.dims;
    memory::check_elements::<[Dynamic; 2]>(
        &dims,
        &format!("{what}: {} numbers", Shape::fixed(&dims)),
    )?;
    let numbers = t.to_f64(what)?;
    Ok(nested(
        &numbers,
        &t.shape()?.dims,
        &|x| Dynamic::from(x),
        &|list: Vec<Dynamic>| list.into(),
    ))
}

/// Nested lists for options.
pub(in crate::script) fn to_options(t: &Tensor) -> Option<Value> {
    let numbers = t.to_f64("an option").ok()?;
    let Shape { dims, .. } = t.shape().ok()?;
    Some(nested(&numbers, &dims, &Value::Float, &Value::List))
}

fn nested<T>(
    numbers: &[f64],
    dims: &[usize],
    leaf: &dyn Fn(f64) -> T,
    list: &dyn Fn(Vec<T>) -> T,
) -> T {
    match dims.split_first() {
        None => leaf(numbers.first().copied().unwrap_or(f64::NAN)),
        Some((length, rest)) => {
            let size = numbers.len() / length.max(&1);
            let each = numbers.chunks(size.max(1));
            list(each.map(|part| nested(part, rest, leaf, list)).collect())
        }
    }
}
