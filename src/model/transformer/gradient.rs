//! The gradient of a tile: sums over all positions of all rows.
//!
//! With the names of `passes.rs` they are `δqᵀ(n+p)`, `δkᵀ(n+p)`, `δvᵀn` and `zᵀδx_{l+1}` of a block, `δᵀ LN(x_L)` of the logits, and sums of δ
//! itself: by token for the embedding, by position, and over all for biases.

use super::passes::{ACTIVATIONS, DELTAS};
use super::{Settings, Transformer};
use crate::kernels::elementwise::add_column_sums;
use crate::kernels::gemm::{Matrix, Part};
use crate::kernels::sequence::add_by_token;
use crate::kernels::thread_pool::Team;
use crate::model::Tile;

/// A part of the gradient.
enum Sum<'a> {
    /// A part of `leftᵀ·right`.
    Product(Part<'a>, Matrix<'a>, Matrix<'a>),
    /// Column sums.
    Columns(&'a mut [f32], &'a [f32]),
    /// Rows of the embedding from a token on.
    Tokens(&'a mut [f32], usize),
}

/// The sums that make a gradient, in the order of the layout.
struct Sums<'a> {
    tile: &'a Tile,
    positions: usize,
    rest: &'a mut [f32],
    parts: Vec<Sum<'a>>,
}

impl<'a> Sums<'a> {
    fn take(&mut self, length: usize) -> &'a mut [f32] {
        let (first, after) = std::mem::take(&mut self.rest).split_at_mut(length);
        self.rest = after;
        first
    }

    /// Enough parts for a few threads, each with enough to do: their number must not depend on the threads.
    fn count(&self, numbers: usize) -> usize {
        ((numbers * self.positions) >> 23).clamp(1, 16)
    }

    fn activation(&self, i: usize, columns: usize) -> Matrix<'a> {
        Matrix::new(&self.tile.activations[i], self.positions, columns)
    }

    fn delta(&self, i: usize, columns: usize) -> Matrix<'a> {
        Matrix::new(&self.tile.deltas[i], self.positions, columns)
    }

    fn product(&mut self, left: Matrix<'a>, right: Matrix<'a>) {
        let (rows, columns) = (left.shape()[1], right.shape()[1]);
        let out = self.take(rows * columns);
        let parts = Part::split(out, rows, columns, self.count(rows * columns)).into_iter();
        self.parts
            .extend(parts.map(|part| Sum::Product(part, left, right)));
    }

    /// Sums over so many rows of delta `i`.
    fn columns(&mut self, length: usize, i: usize, rows: usize) {
        let out = self.take(length);
        let rows = &self.tile.deltas[i][..rows * length];
        self.parts.push(Sum::Columns(out, rows));
    }

    fn embedding(&mut self, vocabulary: usize, width: usize) {
        let numbers = vocabulary * width;
        let rows = vocabulary.div_ceil(self.count(numbers).min(vocabulary));
        let parts = self.take(numbers).chunks_mut(rows * width).enumerate();
        self.parts
            .extend(parts.map(|(i, out)| Sum::Tokens(out, i * rows)));
    }
}

fn parts<'a>(s: &Settings, tile: &'a Tile, grad: &'a mut [f32]) -> Vec<Sum<'a>> {
    let (d, a, v) = (s.width, s.attention(), s.vocabulary);
    let positions = tile.rows * s.context;
    let mut sums = Sums {
        tile,
        positions,
        rest: grad,
        parts: Vec::new(),
    };
    let (end, end_delta) = (ACTIVATIONS * s.layers, DELTAS * s.layers);
    let norm = 2 * d * usize::from(s.layer_norm);
    // What the layer norm gave, or what went in.
    let normed = |x: usize| if s.layer_norm { x + 1 } else { x };
    let bias = usize::from(s.bias);
    sums.embedding(v, d);
    sums.columns(s.context * d, end_delta + 2, tile.rows);
    for l in 0..s.layers {
        let (x, dx) = (ACTIVATIONS * l, DELTAS * l);
        let next = if l + 1 < s.layers {
            dx + DELTAS
        } else {
            end_delta
        };
        sums.columns(norm, dx + 3, tile.rows);
        sums.product(sums.delta(dx + 1, 2 * a), sums.activation(x + 2, d));
        sums.product(sums.delta(dx + 2, a), sums.activation(normed(x), d));
        sums.product(sums.activation(x + 5, a), sums.delta(next, d));
        sums.columns(2 * a * bias, dx + 1, positions);
        sums.columns(a * bias, dx + 2, positions);
        sums.columns(d * bias, next, positions);
    }
    sums.columns(norm, end_delta + 1, tile.rows);
    sums.product(
        sums.delta(end_delta + 5, v),
        sums.activation(normed(end), d),
    );
    sums.columns(v * bias, end_delta + 5, positions);
    sums.parts
}

/// [`crate::model::Model::gradient`].
pub fn gradient(model: &Transformer, tile: &Tile, grad: &mut [f32], add: bool, team: &Team) {
    let s = &model.settings;
    let positions = tile.rows * s.context;
    let mut parts = parts(s, tile, grad);
    team.for_each(&mut parts, |sum| match sum {
        Sum::Product(part, left, right) => {
            let left = left.columns(part.rows.clone()).transposed();
            part.multiply(left, right.columns(part.columns.clone()), add);
        }
        Sum::Columns(out, rows) if !out.is_empty() => {
            if !add {
                out.fill(0.0);
            }
            add_column_sums(out, rows);
        }
        Sum::Columns(..) => {}
        Sum::Tokens(out, first) => {
            if !add {
                out.fill(0.0);
            }
            add_by_token(
                &tile.inputs[..positions],
                &tile.deltas[0][..positions * s.width],
                s.width,
                *first,
                out,
            );
        }
    });
}
