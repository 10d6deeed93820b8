//! A network whose model candle computes on a device of its own, because there are no kernels for it.
//!
//! Inputs stay on the device. Parameters and rows go there in every pass; outputs come back to the loss, which is this machine's as for any other model,
//! its slopes go there, and the gradient comes back.

use super::{Network, Rows, Sums, Workspace, tile_targets, tile_weights};
use crate::dataset::Split;
use crate::error::Result;
use crate::model::loss::TileTargets;
use candle_core::{DType, Device, Tensor, Var};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Numbers of the inputs and outputs of a pass.
const NUMBERS: usize = 1 << 22;

/// Rows of a pass, at least and at most.
const ROWS: (usize, usize) = (512, 1 << 13);

/// A device of candle.
pub(super) struct Elsewhere {
    device: Device,
    /// Inputs that are there, by the names of their splits.
    kept: Mutex<HashMap<&'static str, Tensor>>,
}

impl Elsewhere {
    /// All inputs of a split that is in memory; they go there once.
    fn all(&self, name: &'static str, split: &Split) -> Result<Tensor> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = kept.get(name) {
            return Ok(all.clone());
        }
        let mut x = vec![0.0; split.rows * split.dim];
        split.copy(0..split.rows, &mut x);
        let all = Tensor::from_vec(x, (split.rows, split.dim), &self.device)?;
        kept.insert(name, all.clone());
        Ok(all)
    }
}

impl Network {
    /// The same network, whose model candle computes on a device.
    pub(super) fn moved(&self, device: Device) -> Self {
        Self {
            model: self.model.clone(),
            dataset: self.dataset.clone(),
            loss: self.loss.clone(),
            layout: self.layout.clone(),
            numbers: self.numbers,
            work: self.work,
            anchor: Mutex::default(),
            regression: std::sync::OnceLock::new(),
            elsewhere: Some(Elsewhere {
                device,
                kept: Mutex::default(),
            }),
        }
    }

    /// The rows of each pass.
    fn passes(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let each = (NUMBERS / self.numbers.max(1)).clamp(ROWS.0, ROWS.1);
        (0..rows).step_by(each).map(move |k| k..rows.min(k + each))
    }

    /// Inputs of some rows, on the device.
    fn inputs_elsewhere(
        &self,
        there: &Elsewhere,
        split: &Split,
        rows: Rows,
        range: Range<usize>,
    ) -> Result<Tensor> {
        let shape = (range.len(), split.dim);
        let mut splits = self.dataset.splits();
        let own = splits.find(|(_, own)| std::ptr::eq(&***own, split));
        if let Some((name, _)) = own.filter(|_| split.inputs.in_memory()) {
            let all = there.all(name, split)?;
            return Ok(match rows {
                Rows::All => all.narrow(0, range.start, range.len())?,
                Rows::Indices(i) => {
                    let i = Tensor::from_slice(&i[range], shape.0, &there.device)?;
                    all.index_select(&i, 0)?
                }
            });
        }
        let mut x = vec![0.0; shape.0 * shape.1];
        match rows {
            Rows::All => split.copy(range, &mut x),
            Rows::Indices(i) => split.gather(&i[range], &mut x),
        }
        Ok(Tensor::from_vec(x, shape, &there.device)?)
    }

    /// See [`Network::sums_over`]; so many rows of a split.
    pub(super) fn sums_elsewhere(
        &self,
        there: &Elsewhere,
        w: &[f32],
        (split, rows, count): (&Split, Rows, usize),
        mut grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        let (params, own) = self.parts(w);
        let (n, positions) = (params.len(), self.model.positions());
        let params = Var::from_slice(params, n, &there.device)?;
        let shard = &mut work.shards(1)[0];
        let (mut total, mut gradient) = (Sums::default(), None::<Tensor>);
        if let Some(grad) = &mut grad {
            grad.fill(0.0);
        }
        for range in self.passes(count) {
            let x = self.inputs_elsewhere(there, split, rows, range.clone())?;
            let out = self.model.forward_tensor(params.as_tensor(), &x)?;
            let out = out.to_dtype(DType::F32)?;
            let mut outputs = out.flatten_all()?.to_vec1::<f32>()?;
            let mut delta = vec![0.0; outputs.len()];
            let (labels, values) = (&mut shard.labels, &mut shard.values);
            let targets = TileTargets {
                weights: tile_weights(split, rows, range.clone(), &mut shard.weights),
                of: tile_targets(split, rows, range, labels, values),
            };
            let sizes = [positions, self.model.outputs() / positions];
            let mut slopes = vec![0.0; own.len()];
            let room = &mut vec![0.0; outputs.len() / sizes[1]];
            let both = (&mut outputs[..], &mut delta[..]);
            total += self
                .loss
                .evaluate(own, &mut slopes, targets, sizes, both, room)?;
            let Some(grad) = &mut grad else {
                continue;
            };
            let each = grad[n..].iter_mut().zip(slopes);
            each.for_each(|(g, s)| *g += s as f32);
            let delta = Tensor::from_vec(delta, out.shape(), &there.device)?;
            let store = (out * delta)?.sum_all()?.backward()?;
            if let Some(g) = store.get(params.as_tensor()) {
                gradient = Some(match gradient {
                    Some(sum) => (sum + g)?,
                    None => g.clone(),
                });
            }
        }
        if let (Some(grad), Some(found)) = (grad, gradient) {
            let found = found
                .to_dtype(DType::F32)?
                .flatten_all()?
                .to_vec1::<f32>()?;
            grad[..n].copy_from_slice(&found);
        }
        Ok(total)
    }

    /// See [`Network::predict`].
    pub(super) fn outputs_elsewhere(
        &self,
        there: &Elsewhere,
        w: &[f32],
        split: &Split,
    ) -> Result<Vec<f32>> {
        let params = Tensor::from_slice(w, w.len(), &there.device)?;
        let mut all = Vec::with_capacity(split.rows * self.model.outputs());
        for range in self.passes(split.rows) {
            let x = self.inputs_elsewhere(there, split, Rows::All, range)?;
            let out = self.model.forward_tensor(&params, &x)?;
            let out = out.to_dtype(DType::F32)?.flatten_all()?;
            all.extend(out.to_vec1::<f32>()?);
        }
        Ok(all)
    }
}
