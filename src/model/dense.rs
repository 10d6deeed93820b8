//! Fully connected layers, one after the other, with gradients derived by hand.
//!
//! Layer l computes `a_l = f(a_{l-1} W_lᵀ + b_l)`. With `δ_l = dE/da_l ⊙ f'`, the gradients are `dE/dW_l = δ_lᵀ a_{l-1}`,
//! `dE/db_l = Σ_rows δ_l` and `dE/da_{l-1} = δ_l W_l`.

use super::{Block, Tile, Widths};
use crate::kernels::dense as kernel;
use crate::kernels::elementwise::{Activation, add_column_sums, times_derivative};
use crate::kernels::gemm::{Matrix, Part};
use crate::kernels::gemm_baseline::Product;
use crate::kernels::tensor::{Layer, Program};
use crate::kernels::thread_pool::Team;
use std::ops::Range;

/// A fully connected layer, `f(W a + b)`.
#[derive(Debug, Clone)]
pub struct Dense {
    /// Components of its input.
    pub fan_in: usize,
    /// Components of its output.
    pub fan_out: usize,
    /// Where W `[fan_out, fan_in]` is in the parameter vector.
    pub weight: Range<usize>,
    /// Whether W is stored as `[fan_in, fan_out]` instead.
    pub flipped: bool,
    /// Where b is; empty without biases.
    pub bias: Range<usize>,
    /// f.
    pub activation: Activation,
}

impl Dense {
    /// W as `[fan_out, fan_in]`.
    fn weights<'a>(&self, params: &'a [f32]) -> Matrix<'a> {
        let data = &params[self.weight.clone()];
        match self.flipped {
            false => Matrix::new(data, self.fan_out, self.fan_in),
            true => Matrix::new(data, self.fan_in, self.fan_out).transposed(),
        }
    }
}

/// What the passes keep per row.
pub fn widths(layers: &[Dense]) -> Widths {
    let activations: Vec<_> = layers.iter().map(|l| l.fan_out).collect();
    let before = |l: &Dense| match l.activation.needs_input() {
        true => l.fan_out,
        false => 0,
    };
    Widths {
        before: layers.iter().map(before).collect(),
        deltas: activations.clone(),
        activations,
        memory: 0,
    }
}

/// The matrix products, for benchmarks.
pub fn products(layers: &[Dense]) -> Vec<Product> {
    let mut out = Vec::new();
    for (l, layer) in layers.iter().enumerate() {
        let product = |shape, transposed, rows| Product {
            shape,
            transposed,
            rows,
        };
        let (i, o) = (layer.fan_in, layer.fan_out);
        out.push(product([1, o, i], [false, !layer.flipped], 0));
        let gradient = if layer.flipped { [i, o, 1] } else { [o, i, 1] };
        out.push(product(gradient, [true, false], 2));
        if l > 0 {
            out.push(product([1, i, o], [false, layer.flipped], 0));
        }
    }
    out
}

/// The layers as a program.
pub fn program(layers: &[Dense]) -> Program {
    let layer = |l: &Dense| Layer {
        fan: (l.fan_in, l.fan_out),
        weight: l.weight.clone(),
        transposed: !l.flipped,
        bias: l.bias.clone(),
        activation: l.activation,
    };
    Program::of_layers(&layers.iter().map(layer).collect::<Vec<_>>())
}

/// See [`Model::forward`](super::Model::forward).
pub fn forward(layers: &[Dense], params: &[f32], b: &mut Block) {
    for (l, layer) in layers.iter().enumerate() {
        let (below, here) = b.activations.split_at_mut(l);
        let input = if l == 0 { &*b.inputs } else { &*below[l - 1] };
        let input = Matrix::new(input, b.rows, layer.fan_in);
        let w = layer.weights(params).transposed();
        let bias = &params[layer.bias.clone()];
        let keeps = b.before[l].len() / layer.fan_out.max(1);
        kernel::forward(
            &mut Part::whole(here[0], b.rows, layer.fan_out),
            input,
            w,
            bias,
            layer.activation,
            &mut Part::whole(b.before[l], keeps, layer.fan_out),
        );
    }
}

/// See [`Model::backward`](super::Model::backward).
pub fn backward(layers: &[Dense], params: &[f32], b: &mut Block) {
    let Some(last) = layers.len().checked_sub(1) else {
        return;
    };
    let mut out = Part::whole(b.deltas[last], b.rows, layers[last].fan_out);
    times_derivative(
        &mut out,
        b.activations[last],
        b.before[last],
        layers[last].activation,
    );
    for l in (1..layers.len()).rev() {
        let (below, here) = b.deltas.split_at_mut(l);
        let (layer, under) = (&layers[l], &layers[l - 1]);
        let delta = Matrix::new(here[0], b.rows, layer.fan_out);
        let mut next = Part::whole(below[l - 1], b.rows, layer.fan_in);
        let (outputs, before) = (&*b.activations[l - 1], &*b.before[l - 1]);
        next.multiply_then(delta, layer.weights(params), false, &mut |part| {
            times_derivative(part, outputs, before, under.activation);
        });
    }
}

/// See [`Model::gradient`](super::Model::gradient); weights and biases of all layers are different ranges.
pub fn gradient(layers: &[Dense], tile: &Tile, grad: &mut [f32], add: bool, team: &Team) {
    let mut ranges: Vec<_> = layers
        .iter()
        .enumerate()
        .flat_map(|(l, layer)| {
            let weight = (layer.weight.clone(), l, true);
            let bias = (layer.bias.clone(), l, false);
            [weight, bias]
        })
        .filter(|(range, ..)| !range.is_empty())
        .collect();
    ranges.sort_by_key(|(range, ..)| range.start);
    let mut parts = Vec::new();
    let (mut rest, mut at) = (grad, 0);
    for (range, l, is_weight) in ranges {
        let layer = &layers[l];
        let (_, after) = std::mem::take(&mut rest).split_at_mut(range.start - at);
        let (own, after) = after.split_at_mut(range.len());
        (rest, at) = (after, range.end);
        if !is_weight {
            parts.push((l, Sum::Biases(own)));
            continue;
        }
        // Enough parts for a few threads, each with enough to do: the count must not depend on the threads.
        let count = ((own.len() * tile.rows) >> 23).clamp(1, 16);
        let weights = match layer.flipped {
            false => Part::split(own, layer.fan_out, layer.fan_in, count),
            true => Part::split(own, layer.fan_in, layer.fan_out, count),
        };
        parts.extend(weights.into_iter().map(|part| (l, Sum::Weights(part))));
    }
    team.for_each(&mut parts, |(l, sum)| {
        let layer = &layers[*l];
        let delta = &tile.deltas[*l][..tile.rows * layer.fan_out];
        match sum {
            Sum::Weights(part) => {
                let input = match *l {
                    0 => &tile.inputs,
                    l => &tile.activations[l - 1],
                };
                let input = Matrix::new(input, tile.rows, layer.fan_in);
                let delta = Matrix::new(delta, tile.rows, layer.fan_out);
                let (left, right) = match layer.flipped {
                    false => (delta, input),
                    true => (input, delta),
                };
                let left = left.columns(part.rows.clone()).transposed();
                part.multiply(left, right.columns(part.columns.clone()), add);
            }
            Sum::Biases(out) => {
                if !add {
                    out.fill(0.0);
                }
                add_column_sums(out, delta);
            }
        }
    });
}

/// A part of the gradient of a layer.
enum Sum<'a> {
    /// A part of `δᵀ a`, or of its transpose.
    Weights(Part<'a>),
    /// Column sums of δ.
    Biases(&'a mut [f32]),
}
