//! Workspaces: the preallocated buffers of one chain's step, and the fixed tiles a minibatch is computed in.

use crate::kernels::team::Team;
use crate::model::Tile;
use std::ops::Range;

/// Buffers, and the threads that share the work; buffers grow on first use and are then reused.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The threads: only this one when chains run in parallel.
    pub team: Team,
    /// What a network computes of a tile of rows.
    pub tile: Tile,
    /// Labels of a tile.
    pub labels: Vec<u16>,
    /// Real targets of a tile.
    pub values: Vec<f32>,
    /// Rows whose gradient was computed, for benchmarks.
    pub rows: u64,
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

    /// A workspace for one chain at a time, whose work is shared by `threads` threads.
    pub fn new(threads: usize) -> Self {
        Self {
            team: Team::new(threads),
            ..Self::default()
        }
    }
}

/// Rows of a block, which one thread takes through all layers: a multiple of what the products' micro-kernels take at a time.
const BLOCK: usize = 256;

/// The tiles of `rows` rows of which `numbers` floats each are kept, as ranges; a function of the problem alone, never of the number
/// of threads, so that sums have one order.
///
/// A tile is small enough for its numbers to stay in cache, and large enough that adding its gradient up costs little.
pub fn tiles(rows: usize, numbers: usize) -> impl Iterator<Item = Range<usize>> {
    let tile = ((2 << 20) / (4 * numbers.max(1))).clamp(2 * BLOCK, 8 * BLOCK);
    let count = rows.div_ceil(tile);
    (0..count).map(move |k| k * rows / count..(k + 1) * rows / count)
}

/// Number of blocks of a tile: even, unless it is one, so that threads get equal shares.
pub fn blocks(rows: usize) -> usize {
    if rows < BLOCK / 2 {
        return 1;
    }
    (rows / BLOCK).max(1).next_multiple_of(2)
}
