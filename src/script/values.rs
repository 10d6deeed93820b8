//! Numbers in arrays.

use super::grids::numbers;
use super::{Binder, Bound};
use crate::diagnostic::{mean, sd};
use rhai::Array;

pub(super) fn bind(b: &mut Binder) {
    let of_array = |what: &'static str, f: fn(&[f64]) -> f64| {
        move |a: &mut Array| -> Bound<f64> { numbers(a, what).map(|x| f(&x)) }
    };
    b.function(
        "array.mean() -> number",
        "The mean of the numbers.",
        of_array("mean", |x| mean(&[x])),
    )
    .with(&[], "[1, 2, 4.5].mean()")
    .function(
        "array.sd() -> number",
        "The standard deviation of the numbers, with n - 1; NaN of fewer than two.",
        of_array("sd", |x| sd(&[x])),
    )
    .function(
        "array.sum() -> number",
        "The sum of the numbers.",
        of_array("sum", |x| x.iter().sum()),
    )
    .function(
        "array.min() -> number",
        "The smallest of the numbers.",
        of_array("min", |x| x.iter().copied().fold(f64::INFINITY, f64::min)),
    )
    .function(
        "array.max() -> number",
        "The largest of the numbers.",
        of_array("max", |x| {
            x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
    );
}
