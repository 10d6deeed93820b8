//! Workspaces: the preallocated buffers of one thread, and the fixed split of a minibatch into shards.

use crate::model::Scratch;
use crate::model::loss::Sums;
use std::ops::Range;

/// What one shard of a minibatch needs.
#[derive(Debug, Default)]
pub struct Shard {
    /// Tile buffers.
    pub scratch: Scratch,
    /// Labels of a tile.
    pub labels: Vec<u16>,
    /// Real targets of a tile.
    pub values: Vec<f32>,
    /// Summed gradient of the shard.
    pub grad: Vec<f32>,
    /// Summed loss of the shard.
    pub sums: Sums,
}

/// Buffers of one thread; they grow on first use and are then reused.
#[derive(Debug, Default)]
pub struct Workspace {
    /// One per shard when shards run in parallel, otherwise one.
    pub shards: Vec<Shard>,
    /// Whether shards may run on other threads: set for a lone chain, unset when chains run in parallel.
    pub parallel: bool,
    /// Indices of the current minibatch.
    pub indices: Vec<u32>,
    /// Gradient of the current minibatch.
    pub grad: Vec<f32>,
    /// Further vectors of length N for samplers that need them within a step.
    pub extra: Vec<Vec<f32>>,
}

impl Workspace {
    /// Take the gradient buffer out, `n` long; give it back with `work.grad = …`.
    pub fn take_grad(&mut self, n: usize) -> Vec<f32> {
        let mut grad = std::mem::take(&mut self.grad);
        grad.resize(n, 0.0);
        grad
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let shards: usize = self
            .shards
            .iter()
            .map(|s| s.scratch.bytes() + 2 * s.labels.len() + 4 * (s.values.len() + s.grad.len()))
            .sum();
        let extra: usize = self.extra.iter().map(Vec::len).sum();
        shards + 4 * (self.indices.len() + self.grad.len() + extra)
    }
}

/// The rows of each shard: a function of the problem alone, never of the number of threads, so that sums have one order.
///
/// A shard is long enough that adding up its gradient costs little beside computing it.
pub fn shards(rows: usize, parameters: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    let long = if parameters < 1 << 16 { 192 } else { 512 };
    let count = (rows / long).clamp(1, 16);
    (0..count).map(move |k| k * rows / count..(k + 1) * rows / count)
}

/// Even tiles of at most `tile` rows.
pub fn tiles(rows: Range<usize>, tile: usize) -> impl Iterator<Item = Range<usize>> {
    let count = rows.len().div_ceil(tile.max(1));
    (0..count).map(move |k| {
        rows.start + k * rows.len() / count..rows.start + (k + 1) * rows.len() / count
    })
}
