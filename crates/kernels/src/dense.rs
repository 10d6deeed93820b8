//! Fully connected layers: matrix products, and what is done with their numbers before these leave the cache.

use crate::elementwise::{Activation, bias_and_activation, times_derivative};
use crate::gemm::{Matrix, Part};

/// A part of `f(a·w + bias)`, whose rows and columns count in the whole; `before` is as long as the part where the derivative of f needs `a·w + bias`.
pub fn forward(
    out: &mut Part,
    a: Matrix,
    w: Matrix,
    bias: &[f32],
    f: Activation,
    before: &mut Part,
) {
    let (rows, columns) = (out.rows.clone(), out.columns.clone());
    let first = (rows.start, columns.start);
    out.multiply_then(a.rows(rows), w.columns(columns), false, &mut |z| {
        let rows = z.rows.start - first.0..z.rows.end - first.0;
        let columns = z.columns.start - first.1..z.columns.end - first.1;
        let mut before = match f.needs_input() {
            true => before.part(rows, columns),
            false => Part::whole(&mut [], 0, 0),
        };
        bias_and_activation(z, bias, f, &mut before);
    });
}

/// What a layer below has kept for its derivative.
pub struct Below<'a> {
    /// Its outputs.
    pub outputs: &'a [f32],
    /// What its activation was taken of, where the derivative needs that.
    pub before: &'a [f32],
    /// Its activation.
    pub activation: Activation,
}

/// The gradient with respect to what a layer of weights `w`, `[out, in]`, reads, times the derivative of what made that.
pub fn backward(next: &mut Part, delta: Matrix, w: Matrix, below: &Below) {
    next.multiply_then(delta, w, false, &mut |part| {
        times_derivative(part, below.outputs, below.before, below.activation);
    });
}
