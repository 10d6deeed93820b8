//! Gradients by candle's autograd, for models without hand-derived ones, and as the reference of the contract test.

use super::{Block, Model, Tile};
use crate::error::Result;
use candle_core::{DType, Device, Tensor, Var};

fn tensors<M: Model + ?Sized>(
    model: &M,
    params: &[f32],
    rows: usize,
    inputs: &[f32],
) -> Result<(Var, Tensor)> {
    let w = Var::from_slice(params, params.len(), &Device::Cpu)?;
    let shape = (rows, model.inputs());
    let x = Tensor::from_slice(&inputs[..shape.0 * shape.1], shape, &Device::Cpu)?;
    Ok((w, x))
}

/// [`Model::forward`] by candle.
pub fn forward<M: Model + ?Sized>(model: &M, params: &[f32], block: &mut Block) -> Result<()> {
    let (w, x) = tensors(model, params, block.rows, block.inputs)?;
    let out = model
        .forward_tensor(w.as_tensor(), &x)?
        .flatten_all()?
        .to_vec1::<f32>()?;
    if let Some(last) = block.activations.last_mut() {
        last.copy_from_slice(&out);
    }
    Ok(())
}

/// [`Model::gradient`] by candle.
pub fn gradient<M: Model + ?Sized>(
    model: &M,
    params: &[f32],
    tile: &Tile,
    grad: &mut [f32],
    add: bool,
) -> Result<()> {
    let (w, x) = tensors(model, params, tile.rows, &tile.inputs)?;
    let shape = (tile.rows, model.outputs());
    let delta = tile
        .deltas
        .last()
        .map_or(&[][..], |d| &d[..shape.0 * shape.1]);
    let delta = Tensor::from_slice(delta, shape, &Device::Cpu)?;
    let sum = (model.forward_tensor(w.as_tensor(), &x)? * delta)?.sum_all()?;
    let store = sum.backward()?;
    if !add {
        grad.fill(0.0);
    }
    if let Some(g) = store.get(w.as_tensor()) {
        let g = g.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        crate::kernels::update::add(grad, &g);
    }
    Ok(())
}
