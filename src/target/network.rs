//! A network's mean loss over a data set.

use super::workspace::{Shard, shards, tiles};
use super::{Potential, Rows, Workspace};
use crate::dataset::{Dataset, Split, Targets};
use crate::error::Result;
use crate::kernels::update::add;
use crate::model::loss::{Loss, Sums, TileTargets};
use crate::model::{Layout, Model, grow};
use crate::rng::Stream;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Model, data set and loss.
pub struct Network {
    model: Arc<dyn Model>,
    dataset: Arc<Dataset>,
    loss: Loss,
}

impl Network {
    /// Put them together; an error says which sizes do not fit.
    pub fn new(model: Arc<dyn Model>, dataset: Arc<Dataset>, loss: Option<Loss>) -> Result<Self> {
        anyhow::ensure!(
            model.inputs() == dataset.dim,
            "the model takes {} inputs, but '{}' has {} components per example",
            model.inputs(),
            dataset.name,
            dataset.dim
        );
        let what = if dataset.classes > 0 {
            "classes"
        } else {
            "target components"
        };
        anyhow::ensure!(
            model.outputs() == dataset.outputs,
            "the model has {} outputs, but '{}' has {} {what}",
            model.outputs(),
            dataset.name,
            dataset.outputs
        );
        let default = if dataset.classes > 0 {
            Loss::CrossEntropy
        } else {
            Loss::SquaredError
        };
        let loss = loss.unwrap_or(default);
        anyhow::ensure!(
            dataset.classes > 0 || loss != Loss::CrossEntropy,
            "loss \"cross_entropy\" needs classes, but '{}' has real targets; use \"squared_error\"",
            dataset.name
        );
        Ok(Self {
            model,
            dataset,
            loss,
        })
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// The data set.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Sums over rows of any split; `rows` of `Indices` count within that split.
    pub fn sums_over(
        &self,
        w: &[f32],
        split: &Split,
        rows: Rows,
        grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        let count = match rows {
            Rows::All => split.rows,
            Rows::Indices(i) => i.len(),
        };
        let with_grad = grad.is_some();
        let ranges = shards(count, w.len());
        let mut total = Sums::default();
        if work.parallel && ranges.len() > 1 {
            grow_shards(&mut work.shards, ranges.len());
            let used = &mut work.shards[..ranges.len()];
            let ranges: Vec<_> = ranges.collect();
            used.par_iter_mut()
                .zip(ranges)
                .try_for_each(|(shard, range)| {
                    self.shard(w, split, rows, range, with_grad, shard)
                })?;
            used.iter().for_each(|s| total += s.sums);
            if let Some(grad) = grad {
                // Each element adds its shards in order, whichever thread does it.
                const CHUNK: usize = 1 << 14;
                grad.par_chunks_mut(CHUNK).enumerate().for_each(|(c, out)| {
                    let at = c * CHUNK..c * CHUNK + out.len();
                    out.copy_from_slice(&used[0].grad[at.clone()]);
                    used[1..].iter().for_each(|s| add(out, &s.grad[at.clone()]));
                });
            }
            return Ok(total);
        }
        grow_shards(&mut work.shards, 1);
        let shard = &mut work.shards[0];
        let mut grad = grad;
        for (k, range) in ranges.enumerate() {
            self.shard(w, split, rows, range, with_grad, shard)?;
            total += shard.sums;
            match &mut grad {
                Some(grad) if k == 0 => grad.copy_from_slice(&shard.grad),
                Some(grad) => add(grad, &shard.grad),
                None => {}
            }
        }
        Ok(total)
    }

    /// Loss and gradient of the rows `range`, into `shard`.
    fn shard(
        &self,
        w: &[f32],
        split: &Split,
        rows: Rows,
        range: Range<usize>,
        with_grad: bool,
        shard: &mut Shard,
    ) -> Result<()> {
        shard.sums = Sums::default();
        if with_grad {
            shard.grad.clear();
            shard.grad.resize(w.len(), 0.0);
        }
        for tile in tiles(range, self.model.tile_rows()) {
            let n = tile.len();
            let s = &mut shard.scratch;
            grow(&mut s.inputs, n * split.dim);
            let inputs = &mut s.inputs[..n * split.dim];
            match rows {
                Rows::All => split.copy(tile.clone(), inputs),
                Rows::Indices(i) => split.gather(&i[tile.clone()], inputs),
            }
            self.model.forward(w, n, s)?;
            let targets = tile_targets(split, rows, tile, &mut shard.labels, &mut shard.values);
            shard.sums += self.loss.evaluate(targets, n, self.model.outputs(), s)?;
            if with_grad {
                self.model.backward(w, n, s, &mut shard.grad)?;
            }
        }
        Ok(())
    }

    /// Outputs of the model for the given rows of inputs, `[rows, outputs]`.
    pub fn predict(&self, w: &[f32], split: &Split) -> Result<Vec<f32>> {
        let mut shard = Shard::default();
        let mut out = Vec::with_capacity(split.rows * self.model.outputs());
        for tile in tiles(0..split.rows, self.model.tile_rows()) {
            let n = tile.len();
            grow(&mut shard.scratch.inputs, n * split.dim);
            split.copy(tile, &mut shard.scratch.inputs[..n * split.dim]);
            self.model.forward(w, n, &mut shard.scratch)?;
            if let Some(last) = shard.scratch.activations.last() {
                out.extend_from_slice(&last[..n * self.model.outputs()]);
            }
        }
        Ok(out)
    }
}

fn grow_shards(shards: &mut Vec<Shard>, n: usize) {
    if shards.len() < n {
        shards.resize_with(n, Shard::default);
    }
}

/// The targets of a tile: a slice of the split's own, or gathered into a buffer.
fn tile_targets<'a>(
    split: &'a Split,
    rows: Rows,
    tile: Range<usize>,
    labels: &'a mut Vec<u16>,
    values: &'a mut Vec<f32>,
) -> TileTargets<'a> {
    match (&split.targets, rows) {
        (Targets::Classes(all), Rows::All) => TileTargets::Classes(&all[tile]),
        (Targets::Classes(_), Rows::Indices(i)) => {
            labels.resize(tile.len(), 0);
            split.gather_labels(&i[tile], labels);
            TileTargets::Classes(labels)
        }
        (Targets::Values { width, data }, Rows::All) => {
            TileTargets::Values(&data[tile.start * width..tile.end * width])
        }
        (Targets::Values { width, .. }, Rows::Indices(i)) => {
            values.resize(tile.len() * width, 0.0);
            split.gather_values(&i[tile], values);
            TileTargets::Values(values)
        }
    }
}

impl Potential for Network {
    fn describe(&self) -> String {
        format!(
            "{} on '{}', loss {}",
            self.model.describe(),
            self.dataset.name,
            self.loss.name()
        )
    }

    fn layout(&self) -> &Layout {
        self.model.layout()
    }

    fn examples(&self) -> usize {
        self.dataset.train.rows
    }

    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        self.sums_over(w, &self.dataset.train, rows, grad, work)
    }

    fn splits(&self) -> Vec<&'static str> {
        ["test", "validation"]
            .into_iter()
            .filter(|s| self.dataset.split(s).is_ok())
            .collect()
    }

    fn split_sums(&self, w: &[f32], split: &str, work: &mut Workspace) -> Result<(Sums, usize)> {
        let split = self.dataset.split(split)?;
        Ok((self.sums_over(w, split, Rows::All, None, work)?, split.rows))
    }

    fn classifies(&self) -> bool {
        self.dataset.classes > 0
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        for (name, split) in self.dataset.splits() {
            hash.update(name.as_bytes());
            split.fingerprint(hash);
        }
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.model.initialise(stream)
    }
}
