//! Fully connected layers: matrix products, and what is done with their numbers before these leave the cache.

use crate::elementwise::{Activation, bias_and_activation};
use crate::gemm::{Matrix, Part};

/// A part of `f(a·w + bias)`, whose rows and columns count in the whole; `before` has the same part where the derivative of f needs `a·w + bias`.
pub fn forward(
    out: &mut Part,
    a: Matrix,
    w: Matrix,
    bias: &[f32],
    f: Activation,
    before: &mut Part,
) {
    let (a, w) = (a.rows(out.rows.clone()), w.columns(out.columns.clone()));
    out.multiply_then(a, w, false, &mut |z| {
        bias_and_activation(z, bias, f, before)
    });
}
