//! Fully connected layers: matrix products, and what is done with their numbers before these leave the cache.

use crate::elementwise::{Activation, activate, times_derivative};
use crate::gemm::{Matrix, Part, Start};

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
    let start = Start::row(if bias.is_empty() {
        bias
    } else {
        &bias[columns.clone()]
    });
    let (first_row, first_column) = (rows.start, columns.start);
    out.multiply_then(a.rows(rows), w.columns(columns), start, &mut |z| {
        let rows = z.rows.start - first_row..z.rows.end - first_row;
        let columns = z.columns.start - first_column..z.columns.end - first_column;
        let keeps = f.needs_input();
        let mut before = match keeps {
            true => before.part(rows, columns),
            false => Part::whole(&mut [], 0, 0),
        };
        activate(z, f, &mut before);
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
    next.multiply_then(delta, w, Start::Nothing, &mut |part| {
        times_derivative(part, below.outputs, below.before, below.activation);
    });
}
