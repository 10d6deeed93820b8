//! Gradients by candle's autograd, for models without hand-derived ones, and as the reference of the contract test.

use super::{Model, Scratch, grow};
use crate::error::Result;
use candle_core::{DType, Device, Tensor, Var};

fn tensors<M: Model + ?Sized>(
    model: &M,
    params: &[f32],
    rows: usize,
    s: &Scratch,
) -> Result<(Var, Tensor)> {
    let w = Var::from_slice(params, params.len(), &Device::Cpu)?;
    let x = Tensor::from_slice(
        &s.inputs[..rows * model.inputs()],
        (rows, model.inputs()),
        &Device::Cpu,
    )?;
    Ok((w, x))
}

/// [`Model::forward`] by candle.
pub fn forward<M: Model + ?Sized>(
    model: &M,
    params: &[f32],
    rows: usize,
    s: &mut Scratch,
) -> Result<()> {
    let (w, x) = tensors(model, params, rows, s)?;
    let out = model
        .forward_tensor(w.as_tensor(), &x)?
        .flatten_all()?
        .to_vec1::<f32>()?;
    if s.activations.is_empty() {
        s.activations.push(Vec::new());
    }
    if let Some(last) = s.activations.last_mut() {
        grow(last, out.len());
        last[..out.len()].copy_from_slice(&out);
    }
    Ok(())
}

/// [`Model::backward`] by candle.
pub fn backward<M: Model + ?Sized>(
    model: &M,
    params: &[f32],
    rows: usize,
    s: &mut Scratch,
    grad: &mut [f32],
) -> Result<()> {
    let (w, x) = tensors(model, params, rows, s)?;
    let n = rows * model.outputs();
    let delta = Tensor::from_slice(&s.delta[..n], (rows, model.outputs()), &Device::Cpu)?;
    let sum = (model.forward_tensor(w.as_tensor(), &x)? * delta)?.sum_all()?;
    let store = sum.backward()?;
    if let Some(g) = store.get(w.as_tensor()) {
        let g = g.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        crate::kernels::update::add(grad, &g);
    }
    Ok(())
}
