//! The gradient of a tile: sums over all positions of all rows.
//!
//! With the names of `passes.rs` they are `δqᵀ(n+p)`, `δkᵀ(n+p)`, `δvᵀn` and `zᵀδx_{l+1}` of a block, `δᵀ LN(x_L)` of the logits, and sums of δ
//! itself: by token for the embedding, by position, and over all for biases.

use super::Transformer;
use super::passes::{ACTIVATIONS, DELTAS};
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

/// `leftᵀ·right` in `count` parts.
fn products<'a>(
    out: &'a mut [f32],
    count: usize,
    left: Matrix<'a>,
    right: Matrix<'a>,
) -> impl Iterator<Item = Sum<'a>> {
    let (rows, columns) = (left.shape()[1], right.shape()[1]);
    let parts = Part::split(out, rows, columns, count).into_iter();
    parts.map(move |part| Sum::Product(part, left, right))
}

/// [`crate::model::Model::gradient`].
pub fn gradient(model: &Transformer, tile: &Tile, grad: &mut [f32], add: bool, team: &Team) {
    let s = &model.settings;
    let (c, d, a, v) = (s.context, s.width, s.attention(), s.vocabulary);
    let positions = tile.rows * c;
    let activation =
        |i: usize, columns: usize| Matrix::new(&tile.activations[i], positions, columns);
    let delta = |i: usize, columns: usize| Matrix::new(&tile.deltas[i], positions, columns);
    let sums = |i: usize, numbers: usize| &tile.deltas[i][..numbers];
    let (end, end_delta) = (ACTIVATIONS * s.layers, DELTAS * s.layers);
    // What the layer norm gave, or what went in.
    let normed = |x: usize| activation(if s.layer_norm { x + 1 } else { x }, d);

    // In the order of the layout.
    let mut parts = Vec::new();
    let mut rest = grad;
    let mut take = |length: usize| {
        let (first, after) = std::mem::take(&mut rest).split_at_mut(length);
        rest = after;
        first
    };
    // Enough parts for a few threads, each with enough to do: their number must not depend on the threads.
    let count = |numbers: usize| ((numbers * positions) >> 23).clamp(1, 16);
    let rows = v.div_ceil(count(v * d).min(v));
    let embed = take(v * d).chunks_mut(rows * d).enumerate();
    parts.extend(embed.map(|(i, out)| Sum::Tokens(out, i * rows)));
    parts.push(Sum::Columns(
        take(c * d),
        sums(end_delta + 2, positions * d),
    ));
    let norm = 2 * d * usize::from(s.layer_norm);
    let bias = usize::from(s.bias);
    for l in 0..s.layers {
        let (x, dx) = (ACTIVATIONS * l, DELTAS * l);
        let next = if l + 1 < s.layers {
            dx + DELTAS
        } else {
            end_delta
        };
        parts.push(Sum::Columns(take(norm), sums(dx + 3, tile.rows * norm)));
        parts.extend(products(
            take(2 * a * d),
            count(2 * a * d),
            delta(dx + 1, 2 * a),
            activation(x + 2, d),
        ));
        parts.extend(products(
            take(a * d),
            count(a * d),
            delta(dx + 2, a),
            normed(x),
        ));
        parts.extend(products(
            take(a * d),
            count(a * d),
            activation(x + 5, a),
            delta(next, d),
        ));
        parts.push(Sum::Columns(
            take(2 * a * bias),
            sums(dx + 1, positions * 2 * a),
        ));
        parts.push(Sum::Columns(take(a * bias), sums(dx + 2, positions * a)));
        parts.push(Sum::Columns(take(d * bias), sums(next, positions * d)));
    }
    parts.push(Sum::Columns(
        take(norm),
        sums(end_delta + 1, tile.rows * norm),
    ));
    parts.extend(products(
        take(v * d),
        count(v * d),
        delta(end_delta + 5, v),
        normed(end),
    ));
    parts.push(Sum::Columns(
        take(v * bias),
        sums(end_delta + 5, positions * v),
    ));

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
                sums(0, positions * d),
                d,
                *first,
                out,
            );
        }
    });
}
