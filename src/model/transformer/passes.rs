//! Buffers, forward and backward pass of a block of rows.
//!
//! With δ the gradient of the loss with respect to what it stands before: `δz = δx_{l+1} W_Oᵀ`, the heads give δq, δk and δv,
//! `δp = δq W_Q + δk W_K` at the inputs of queries and keys, `δn = δp + δv W_V`, and `δx_l = δx_{l+1} + LN'(δn)`.

use super::attention::{self, Head, Kept};
use super::{BlockPlaces, Settings, Transformer};
use crate::error::Result;
use crate::kernels::dense;
use crate::kernels::elementwise::Activation;
use crate::kernels::gemm::{Matrix, Part, multiply};
use crate::kernels::sequence::{add_repeated, embed, layer_norm, layer_norm_backward};
use crate::kernels::update::add as add_to;
use crate::model::{Block, Widths};

/// Activations of a block: x, n, n + p, queries and keys, values, what is read.
pub const ACTIVATIONS: usize = 6;
/// What else is kept of a block: moments of the layer norm, and of the heads log-sums and probabilities.
const BEFORE: usize = 3;
/// Deltas of a block: of x, of queries and keys, of values, and per row the sums for the parameters of the layer norm.
pub const DELTAS: usize = 4;

/// The buffers, in the order of the constants above, block by block; then those of the end.
pub fn widths(s: &Settings) -> Widths {
    let (c, d, a) = (s.context, s.width, s.attention());
    let stream = c * d;
    let normed = if s.layer_norm { stream } else { 0 };
    let moments = if s.layer_norm { 2 * c } else { 0 };
    let norm_sums = if s.layer_norm { 2 * d } else { 0 };
    let logits = c * s.vocabulary;
    let log_sums = s.heads * attention::log_sums(c);
    let probabilities = s.heads * attention::probabilities(c);
    let repeat = |of_block: &[usize], at_end: &[usize]| {
        [of_block.repeat(s.layers), at_end.to_vec()].concat()
    };
    Widths {
        activations: repeat(
            &[stream, normed, stream, 2 * c * a, c * a, c * a],
            &[stream, normed, logits],
        ),
        before: repeat(
            &[moments, log_sums, probabilities],
            &[moments, attention::scratch(c)],
        ),
        // At the end: of x, sums for the layer norm, of positions, of what is read, of the input of a block.
        deltas: repeat(
            &[stream, 2 * c * a, c * a, norm_sums],
            &[stream, norm_sums, stream, c * a, stream, logits],
        ),
        memory: 0,
    }
}

/// `out = a·wᵀ + bias` for rows `a`.
fn linear(out: &mut [f32], a: &[f32], rows: usize, w: &[f32], bias: &[f32]) {
    let (outputs, inputs) = (out.len() / rows, w.len() * rows / out.len());
    let w = Matrix::new(w, outputs, inputs).transposed();
    let (a, mut out) = (
        Matrix::new(a, rows, inputs),
        Part::whole(out, rows, outputs),
    );
    let mut nothing = Part::whole(&mut [], 0, 0);
    dense::forward(&mut out, a, w, bias, Activation::Identity, &mut nothing);
}

fn missing() -> anyhow::Error {
    anyhow::anyhow!("a transformer was given a tile of another model")
}

/// [`crate::model::Model::forward`].
pub fn forward(model: &Transformer, params: &[f32], b: &mut Block) -> Result<()> {
    let (s, places) = (&model.settings, &model.places);
    let (d, rows) = (s.width, b.rows * s.context);
    if rows == 0 {
        return Ok(());
    }
    let Some(first) = b.activations.first_mut() else {
        return Err(missing());
    };
    embed(b.inputs, &params[places.embed.clone()], d, first).map_err(|i| {
        anyhow::anyhow!(
            "the input {} at position {} is not a token below {}",
            b.inputs[i],
            i % s.context,
            s.vocabulary
        )
    })?;
    for (l, at) in places.blocks.iter().enumerate() {
        block_forward(s, at, &params[places.position.clone()], params, l, b)?;
    }
    let end = ACTIVATIONS * s.layers;
    let ([x, normed, logits], Some(moments)) = (
        &mut b.activations[end..],
        b.before.get_mut(BEFORE * s.layers),
    ) else {
        return Err(missing());
    };
    let read = norm(x, normed, moments, &params[places.final_norm.clone()]);
    let bias = &params[places.unembed_bias.clone()];
    linear(logits, read, rows, &params[places.unembed.clone()], bias);
    Ok(())
}

/// The layer norm of x, or x itself without one; `parameters` are weight and bias.
fn norm<'a>(
    x: &'a [f32],
    out: &'a mut [f32],
    moments: &mut [f32],
    parameters: &[f32],
) -> &'a [f32] {
    if parameters.is_empty() {
        return x;
    }
    let (weight, bias) = parameters.split_at(parameters.len() / 2);
    layer_norm(x, weight, bias, out, moments);
    out
}

fn block_forward(
    s: &Settings,
    at: &BlockPlaces,
    position: &[f32],
    params: &[f32],
    l: usize,
    b: &mut Block,
) -> Result<()> {
    let (c, a, rows) = (s.context, s.attention(), b.rows * s.context);
    let (before, end) = b.before.split_at_mut(BEFORE * s.layers);
    let (
        [x, normed, placed, query_key, values, read, next, ..],
        [moments, log_sums, kept],
        [_, scratch],
    ) = (
        &mut b.activations[ACTIVATIONS * l..],
        &mut before[BEFORE * l..BEFORE * (l + 1)],
        end,
    )
    else {
        return Err(missing());
    };
    let normed = norm(x, normed, moments, &params[at.norm.clone()]);
    add_repeated(normed, position, placed);
    let parameters = |range: &std::ops::Range<usize>| &params[range.clone()];
    linear(
        query_key,
        placed,
        rows,
        parameters(&at.query_key),
        parameters(&at.query_key_bias),
    );
    linear(
        values,
        normed,
        rows,
        parameters(&at.value),
        parameters(&at.value_bias),
    );
    for r in 0..b.rows {
        let row = r * c * a..(r + 1) * c * a;
        let (query_key, values) = (&query_key[2 * row.start..2 * row.end], &values[row.clone()]);
        for (h, head) in Head::all(s).enumerate() {
            let mut kept = kept_of(s, r, h, log_sums, kept, scratch);
            head.forward(query_key, values, &mut read[row.clone()], &mut kept);
        }
    }
    match parameters(&at.out_bias) {
        [] => next.copy_from_slice(x),
        bias => add_repeated(x, bias, next),
    }
    let out = Matrix::new(parameters(&at.out), a, s.width);
    multiply(next, Matrix::new(read, rows, a), out, true);
    Ok(())
}

/// The buffers of head h on row r; all share the scratch of the first row, which stays in cache.
fn kept_of<'a>(
    s: &Settings,
    r: usize,
    h: usize,
    log_sums: &'a mut [f32],
    probabilities: &'a mut [f32],
    scratch: &'a mut [f32],
) -> Kept<'a> {
    let of = |width: usize| (r * s.heads + h) * width..(r * s.heads + h + 1) * width;
    Kept {
        log_sums: &mut log_sums[of(attention::log_sums(s.context))],
        probabilities: &mut probabilities[of(attention::probabilities(s.context))],
        scratch: &mut scratch[..attention::scratch(s.context)],
    }
}

/// [`crate::model::Model::backward`].
pub fn backward(model: &Transformer, params: &[f32], b: &mut Block) -> Result<()> {
    let (s, places) = (&model.settings, &model.places);
    let rows = b.rows * s.context;
    if rows == 0 {
        return Ok(());
    }
    let end = ACTIVATIONS * s.layers;
    let ([x, _, _], Some(moments), [dx, sums, positions, _, di, logits]) = (
        &b.activations[end..],
        b.before.get(BEFORE * s.layers),
        &mut b.deltas[DELTAS * s.layers..],
    ) else {
        return Err(missing());
    };
    let unembed = Matrix::new(&params[places.unembed.clone()], s.vocabulary, s.width);
    multiply(di, Matrix::new(logits, rows, s.vocabulary), unembed, false);
    dx.fill(0.0);
    positions.fill(0.0);
    let parameters = &params[places.final_norm.clone()];
    norm_backward(s, di, x, moments, parameters, dx, sums);
    for (l, at) in places.blocks.iter().enumerate().rev() {
        block_backward(s, at, params, l, b)?;
    }
    Ok(())
}

/// Adds to δx what comes through the layer norm, and makes each row's sums for weight and bias.
fn norm_backward(
    s: &Settings,
    delta: &[f32],
    x: &[f32],
    moments: &[f32],
    parameters: &[f32],
    dx: &mut [f32],
    sums: &mut [f32],
) {
    if parameters.is_empty() {
        return add_to(dx, delta);
    }
    sums.fill(0.0);
    let row = s.context * s.width;
    let each = delta.chunks_exact(row).zip(x.chunks_exact(row));
    let each = each.zip(moments.chunks_exact(2 * s.context));
    let into = dx
        .chunks_exact_mut(row)
        .zip(sums.chunks_exact_mut(2 * s.width));
    for (((d, x), m), (dx, sums)) in each.zip(into) {
        layer_norm_backward(d, x, m, &parameters[..s.width], dx, sums);
    }
}

fn block_backward(
    s: &Settings,
    at: &BlockPlaces,
    params: &[f32],
    l: usize,
    b: &mut Block,
) -> Result<()> {
    let (c, d, a, rows) = (s.context, s.width, s.attention(), b.rows * s.context);
    let (before, before_end) = b.before.split_at_mut(BEFORE * s.layers);
    let (deltas, end) = b.deltas.split_at_mut(DELTAS * s.layers);
    let (own, above) = deltas[DELTAS * l..].split_at_mut(DELTAS);
    let (
        [x, _, _, query_key, values, ..],
        [moments, log_sums, kept],
        [_, scratch],
        [dx, dqk, dv, sums],
        [end_dx, _, positions, dz, di, _],
    ) = (
        &b.activations[ACTIVATIONS * l..],
        &mut before[BEFORE * l..BEFORE * (l + 1)],
        before_end,
        own,
        end,
    )
    else {
        return Err(missing());
    };
    let next = above.first().unwrap_or(end_dx);
    let out = Matrix::new(&params[at.out.clone()], a, d);
    multiply(dz, Matrix::new(next, rows, d), out.transposed(), false);
    for r in 0..b.rows {
        let row = r * c * a..(r + 1) * c * a;
        let twice = 2 * row.start..2 * row.end;
        for (h, head) in Head::all(s).enumerate() {
            head.backward(
                &query_key[twice.clone()],
                &values[row.clone()],
                &mut kept_of(s, r, h, log_sums, kept, scratch),
                &dz[row.clone()],
                &mut dqk[twice.clone()],
                &mut dv[row.clone()],
            );
        }
    }
    let query_key = Matrix::new(&params[at.query_key.clone()], 2 * a, d);
    multiply(di, Matrix::new(dqk, rows, 2 * a), query_key, false);
    add_to(positions, di);
    let value = Matrix::new(&params[at.value.clone()], a, d);
    multiply(di, Matrix::new(dv, rows, a), value, true);
    dx.copy_from_slice(next);
    norm_backward(s, di, x, moments, &params[at.norm.clone()], dx, sums);
    Ok(())
}
