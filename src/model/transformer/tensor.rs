//! The forward pass in candle, differentiable: what the passes by hand are tested against.

use super::Transformer;
use crate::kernels::sequence::EPSILON;
use candle_core::{D, DType, Result, Tensor};
use std::ops::Range;

/// A tensor of these parameters.
fn part(params: &Tensor, at: &Range<usize>, shape: &[usize]) -> Result<Tensor> {
    params.narrow(0, at.start, at.len())?.reshape(shape)
}

/// `x wᵀ + bias`, with w `[outputs, inputs]`.
fn linear(x: &Tensor, w: &Tensor, params: &Tensor, bias: &Range<usize>) -> Result<Tensor> {
    let y = x.matmul(&w.t()?.contiguous()?)?;
    if bias.is_empty() {
        return Ok(y);
    }
    y.broadcast_add(&part(params, bias, &[bias.len()])?)
}

/// The layer norm with weight and bias at `at`; x itself if there are none.
fn norm(x: &Tensor, params: &Tensor, at: &Range<usize>) -> Result<Tensor> {
    if at.is_empty() {
        return Ok(x.clone());
    }
    let (width, middle) = (at.len() / 2, at.start + at.len() / 2);
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let deviation = (variance + EPSILON as f64)?.sqrt()?;
    centred
        .broadcast_div(&deviation)?
        .broadcast_mul(&part(params, &(at.start..middle), &[width])?)?
        .broadcast_add(&part(params, &(middle..at.end), &[width])?)
}

/// Logits `[rows, context·vocabulary]` of tokens `[rows, context]`.
pub fn forward(model: &Transformer, params: &Tensor, inputs: &Tensor) -> Result<Tensor> {
    let (s, places) = (&model.settings, &model.places);
    let (c, d, a, e) = (s.context, s.width, s.attention(), s.head_width);
    let rows = inputs.dim(0)?;
    let tokens = inputs.flatten_all()?.to_dtype(DType::U32)?;
    // All positions of all rows below each other, [rows·context, width].
    let mut x = part(params, &places.embed, &[s.vocabulary, d])?.index_select(&tokens, 0)?;
    let position = part(params, &places.position, &[1, c, d])?;
    let position = position
        .broadcast_as((rows, c, d))?
        .reshape((rows * c, d))?;
    let hidden: Vec<f32> = (0..c * c)
        .map(|i| if i % c > i / c { -1e9 } else { 0.0 })
        .collect();
    let mask = Tensor::from_vec(hidden, (1, c, c), params.device())?
        .to_dtype(params.dtype())?
        .broadcast_as((rows, c, c))?
        .contiguous()?;
    for at in &places.blocks {
        let normed = norm(&x, params, &at.norm)?;
        let placed = (&normed + &position)?;
        let query_key = part(params, &at.query_key, &[2 * a, d])?;
        let query_key = linear(&placed, &query_key, params, &at.query_key_bias)?;
        let values = part(params, &at.value, &[a, d])?;
        let values = linear(&normed, &values, params, &at.value_bias)?;
        let out = part(params, &at.out, &[a, d])?;
        let of_head = |t: &Tensor, first: usize| {
            let columns = t.narrow(1, first, e)?.contiguous()?;
            columns.reshape((rows, c, e))
        };
        for h in 0..s.heads {
            let (q, k) = (of_head(&query_key, h * e)?, of_head(&query_key, a + h * e)?);
            let scores = (q.matmul(&k.transpose(1, 2)?.contiguous()?)? / (e as f64).sqrt())?;
            let p = candle_nn::ops::softmax(&(scores + &mask)?, D::Minus1)?;
            let read = p
                .matmul(&of_head(&values, h * e)?)?
                .reshape((rows * c, e))?;
            x = (x + read.matmul(&out.narrow(0, h * e, e)?.contiguous()?)?)?;
        }
        if !at.out_bias.is_empty() {
            x = x.broadcast_add(&part(params, &at.out_bias, &[d])?)?;
        }
    }
    let x = norm(&x, params, &places.final_norm)?;
    let unembed = part(params, &places.unembed, &[s.vocabulary, d])?;
    let logits = linear(&x, &unembed, params, &places.unembed_bias)?;
    logits.reshape((rows, c * s.vocabulary))
}
