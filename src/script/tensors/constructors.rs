//! `tensor(…)` and `tensor::…`.

use super::super::{Binder, Bound, OrRaise, raise};
use super::convert::{dims, from_dynamic};
use super::{number, tensors};
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::kernels::tensor::{Shape, Tensor};
use crate::rng::{Purpose, Stream};
use anyhow::anyhow;
use rhai::{Array, Dynamic};

pub(super) fn bind(b: &mut Binder) {
    b.function(
        "tensor(numbers) -> Tensor",
        "A tensor in double precision from a number, an array, nested arrays of equal lengths, or a vector of parameters.\n\n\
         Tensors know + - * / **, with the broadcasting of NumPy, and the methods listed under \"methods of tensor\": shapes, slices, products, sums, \
         functions of each element. `t[0]`, `t[-1]` and `t[0..3]` index the first axis. A tensor in single precision (parameters, files that have it) stays so \
         until it meets one in double precision. In model::custom and in gradient() the same operations are traced and differentiated.",
        |x: Dynamic| from_dynamic(&x).or_raise(),
    )
    .with(&[], "let a = tensor([[1.0, 2.0], [3.0, 4.0]]); print(a.matmul(a.t()) + 1); a[0]");
    constants(b);
    ranges(b);
    random(b);
    joined(b);
}

fn constants(b: &mut Binder) {
    b.function(
        "tensor::zeros(shape) -> Tensor",
        "Zeros; the shape is an array of lengths, or one length.",
        |shape: Dynamic| constant("tensor::zeros", &shape, 0.0),
    )
    .with(&[], "tensor::zeros([2, 3])");
    b.function(
        "tensor::ones(shape) -> Tensor",
        "Ones everywhere.",
        |shape: Dynamic| constant("tensor::ones", &shape, 1.0),
    )
    .with(&[], "tensor::ones([2, 3])");
    b.function(
        "tensor::full(shape, value) -> Tensor",
        "The same number everywhere.",
        |shape: Dynamic, value: Dynamic| {
            let value = number(&value, "tensor::full: value").or_raise()?;
            constant("tensor::full", &shape, value)
        },
    )
    .with(&[], "tensor::full([2, 3], 0.5)");
    b.function("tensor::eye(n) -> Tensor", "The unit matrix.", |n: i64| {
        let n = dims(&n.into(), "tensor::eye")?[0];
        ensure_raise(n <= 1 << 15, || anyhow!("tensor::eye: {n} is too large"))?;
        filled("tensor::eye", &[n, n], |i| {
            f64::from(u8::from(i / n == i % n))
        })
        .or_raise()
    })
    .with(&[], "tensor::eye(3)");
}

fn ranges(b: &mut Binder) {
    b.function(
        "tensor::arange(from, to) -> Tensor",
        "The whole numbers from one number up to, but not including, another.",
        |from: i64, to: i64| {
            let n = to.checked_sub(from).and_then(|n| usize::try_from(n).ok());
            let n = n.filter(|n| *n > 0);
            let n = n.ok_or_else(|| {
                raise(anyhow!(
                    "tensor::arange: there are no numbers from {from} up to {to}"
                ))
            })?;
            filled("tensor::arange", &[n], |i| from as f64 + i as f64).or_raise()
        },
    )
    .with(&[], "tensor::arange(0, 6).reshape([2, 3])");
    b.function(
        "tensor::linspace(from, to, count) -> Tensor",
        "Numbers at equal distances, both ends included.",
        |from: Dynamic, to: Dynamic, n: i64| {
            let from = number(&from, "tensor::linspace: from").or_raise()?;
            let to = number(&to, "tensor::linspace: to").or_raise()?;
            let n = dims(&n.into(), "tensor::linspace")?[0];
            let last = (n - 1).max(1) as f64;
            filled("tensor::linspace", &[n], |i| {
                from + (to - from) * (i as f64 / last)
            })
            .or_raise()
        },
    )
    .with(&[], "tensor::linspace(0, 1, 5)");
}

fn random(b: &mut Binder) {
    b.function(
        "tensor::normal(shape, seed) -> Tensor",
        "Standard normal numbers; the same seed gives the same numbers everywhere.",
        |shape: Dynamic, s: i64| {
            let dims = dims(&shape, "tensor::normal")?;
            // In single precision first.
            Shape::fixed(&dims)
                .fits::<[f64; 2]>("tensor::normal")
                .or_raise()?;
            let mut all = vec![0f32; dims.iter().product()];
            fill_normal(&seed(s), &mut all);
            filled("tensor::normal", &dims, |i| f64::from(all[i])).or_raise()
        },
    )
    .with(&[], "tensor::normal([2, 3], 1)");
    b.function(
        "tensor::uniform(shape, seed) -> Tensor",
        "Numbers evenly distributed between 0 and 1.",
        |shape: Dynamic, s: i64| {
            let stream = seed(s);
            filled("tensor::uniform", &dims(&shape, "tensor::uniform")?, |i| {
                stream.uniform(i as u32)
            })
            .or_raise()
        },
    )
    .with(&[], "tensor::uniform([2, 3], 1)");
}

fn joined(b: &mut Binder) {
    b.function(
        "tensor::concat(tensors, axis) -> Tensor",
        "Tensors one after the other along an axis.",
        |all: Array, axis: i64| {
            let all = tensors(&all, "tensor::concat")?;
            Tensor::concat(&all.iter().collect::<Vec<_>>(), axis).or_raise()
        },
    )
    .with(
        &[],
        "tensor::concat([tensor::ones([2, 1]), tensor::zeros([2, 2])], 1)",
    );
    b.function(
        "tensor::stack(tensors, axis) -> Tensor",
        "Tensors of the same shape beside each other along a new axis.",
        |all: Array, axis: i64| {
            let all = tensors(&all, "tensor::stack")?;
            let each = all.iter().map(|t| t.unsqueeze(axis));
            let each = each.collect::<Result<Vec<_>>>().or_raise()?;
            Tensor::concat(&each.iter().collect::<Vec<_>>(), axis).or_raise()
        },
    )
    .with(&[], "tensor::stack([tensor([1, 2]), tensor([3, 4])], 0)");
}

fn ensure_raise(holds: bool, e: impl FnOnce() -> anyhow::Error) -> Bound<()> {
    if holds { Ok(()) } else { Err(raise(e())) }
}

/// The same number everywhere.
fn constant(what: &str, shape: &Dynamic, value: f64) -> Bound<Tensor> {
    filled(what, &dims(shape, what)?, |_| value).or_raise()
}

/// A tensor of numbers from what gives each its value.
fn filled(what: &str, dims: &[usize], value: impl FnMut(usize) -> f64) -> Result<Tensor> {
    Shape::fixed(dims).fits::<f64>(what)?;
    let count = dims.iter().product();
    Tensor::from_f64((0..count).map(value).collect(), dims)
}

fn seed(x: i64) -> Stream {
    Stream::new(x as u64, Purpose::Tensor, 0, 0)
}
