//! Workspaces: the preallocated buffers of one chain's step, and the fixed tiles a minibatch is computed in.

use crate::kernels::thread_pool::Team;
use crate::model::Tile;
use crate::model::loss::Sums;
use std::ops::Range;

/// Buffers, and the threads that share the work; buffers grow on first use and are then reused.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The threads: only this one when chains run in parallel.
    pub team: Team,
    /// Buffers for rows: one set per shard of the batch.
    pub shards: Vec<Shard>,
    /// Rows whose gradient was computed, for benchmarks.
    pub rows: u64,
    /// Indices of the current minibatch.
    pub indices: Vec<u32>,
    /// Gradient of the current minibatch.
    pub grad: Vec<f32>,
    /// Further vectors of length N for samplers that need them within a step.
    pub extra: Vec<Vec<f32>>,
}

/// What a network computes of some of the rows of a batch.
#[derive(Debug, Default)]
pub struct Shard {
    /// A tile of them.
    pub tile: Tile,
    /// Labels of the tile.
    pub labels: Vec<u32>,
    /// Real targets of the tile.
    pub values: Vec<f32>,
    /// Weights of the rows of the tile.
    pub weights: Vec<f32>,
    /// The gradient over the shard, when there are several.
    pub grad: Vec<f32>,
    /// The loss over the shard.
    pub sums: Sums,
}

impl Workspace {
    /// The k-th vector that samplers need within a step.
    pub fn scratch(&mut self, k: usize, len: usize) -> &mut Vec<f32> {
        let count = self.extra.len().max(k + 1);
        self.extra.resize_with(count, Vec::new);
        self.extra[k].resize(len, 0.0);
        &mut self.extra[k]
    }

    /// At least so many shards.
    pub fn shards(&mut self, count: usize) -> &mut [Shard] {
        if self.shards.len() < count {
            self.shards.resize_with(count, Shard::default);
        }
        &mut self.shards[..count]
    }

    /// A workspace for one chain at a time, whose work is shared by `threads` threads.
    pub fn new(threads: usize) -> Self {
        Self {
            team: Team::new(threads),
            ..Self::default()
        }
    }
}

/// Rows of a block, which one thread takes through all layers: a multiple of what the products' micro-kernels take at a time. Of a row
/// with several positions, each counts: the products take them one by one.
const BLOCK: usize = 256;

/// The shards of `rows` rows, which are computed one by one or side by side, each with a gradient of its own that is then added up.
///
/// Small networks have several: then threads share nothing but gradients, which are smaller than what is computed of the rows. Of a
/// larger network threads share the tiles instead, and no thread needs a gradient of its own.
pub fn shards(
    rows: usize,
    positions: usize,
    parameters: usize,
) -> impl ExactSizeIterator<Item = Range<usize>> {
    let count = if parameters < 1 << 15 {
        blocks(rows, positions).min(16)
    } else {
        1
    };
    (0..count).map(move |k| k * rows / count..(k + 1) * rows / count)
}

/// The tiles of `rows` of which `numbers` floats each are kept, as ranges; a function of the problem alone, never of the number
/// of threads, so that sums have one order.
///
/// `apart`: where a shard is one thread's work, the smallest tile will do, and is a single block.
/// Otherwise a tile is small enough for its numbers to stay in cache, and large enough that adding its gradient up costs little.
/// Of rows with several positions few are too many for the cache; those of the smallest tile, but at least two, that threads may share.
pub fn tiles(
    rows: Range<usize>,
    positions: usize,
    numbers: usize,
    apart: bool,
) -> impl Iterator<Item = Range<usize>> {
    let (start, rows) = (rows.start, rows.len());
    let least = (2 * BLOCK).div_ceil(positions);
    let tile = match apart {
        true => least,
        false if positions > 1 => least.max(2),
        false => ((2 << 20) / (4 * numbers.max(1))).clamp(least, 8 * BLOCK),
    };
    let count = rows.div_ceil(tile);
    (0..count).map(move |k| start + k * rows / count..start + (k + 1) * rows / count)
}

/// Number of blocks of a tile: even, unless it is one or there are as many as rows, so that threads get equal shares.
pub fn blocks(rows: usize, positions: usize) -> usize {
    let all = rows * positions;
    if all < BLOCK / 2 {
        return 1;
    }
    (all / BLOCK).max(1).next_multiple_of(2).min(rows)
}
