//! One split: inputs and targets of its rows, and the copies into the batches that a model reads.

use super::augment::Variants;
use super::doubles::Doubles;
use super::linear::LinearRows;
use super::mapped::MappedRows;
use crate::error::Result;
use crate::kernels::gather;
use anyhow::ensure;
use std::ops::Range;
use std::sync::Arc;

/// Inputs of a split, row-major `[rows, dim]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// Any numbers.
    F32(Vec<f32>),
    /// Components ±1, one byte each: a quarter of the memory traffic of a batch.
    I8(Vec<i8>),
    /// Bytes in units of a number, such as the pixels of images and 1/255.
    U8(Vec<u8>, f64),
    /// Made when they are read.
    Made(Arc<LinearRows>),
    /// Numbers of tokens, which models get as floats: those hold them exactly.
    Tokens(Vec<u32>),
    /// Left in a file, and read when they are needed.
    Mapped(Arc<MappedRows>),
    /// Variants of examples, made when they are read.
    Varied(Arc<Variants>),
}

impl Inputs {
    /// Whether they are numbers in memory.
    pub fn in_memory(&self) -> bool {
        match self {
            Inputs::F32(_) | Inputs::I8(_) | Inputs::U8(..) | Inputs::Tokens(_) => true,
            Inputs::Made(_) | Inputs::Mapped(_) | Inputs::Varied(_) => false,
        }
    }
}

/// Targets of a split, one per row or one per position of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// The label of each row.
    Classes(Vec<u32>),
    /// Row-major `[rows, positions]`: a label at each position of each row, such as the next token.
    Sequence {
        /// Labels per row.
        positions: usize,
        /// The labels.
        labels: Vec<u32>,
    },
    /// Row-major `[rows, width]`.
    Values {
        /// Numbers per row.
        width: usize,
        /// The numbers.
        data: Vec<f32>,
    },
    /// Numbers that are made when they are read.
    Made(Arc<LinearRows>),
}

impl Targets {
    /// Numbers per row: 1 for labels of rows.
    pub fn width(&self) -> usize {
        match self {
            Targets::Classes(_) => 1,
            Targets::Sequence { positions, .. } => *positions,
            Targets::Values { width, .. } => *width,
            Targets::Made(law) => law.width,
        }
    }

    /// Positions of a row that have a target of their own: 1 but for sequences.
    pub fn positions(&self) -> usize {
        match self {
            Targets::Sequence { positions, .. } => *positions,
            _ => 1,
        }
    }
}

/// The examples of one split.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Number of examples.
    pub rows: usize,
    /// Components of an input.
    pub dim: usize,
    /// The inputs.
    pub inputs: Inputs,
    /// The targets.
    pub targets: Targets,
    /// The same numbers in double precision, where single precision rounds them; see [`Split::of_doubles`].
    pub doubles: Option<Arc<Doubles>>,
    /// What the loss of each row is multiplied by; 1 where there are none.
    pub weights: Option<Arc<Vec<f32>>>,
}

impl Split {
    /// A split, after checking that inputs and targets have the same number of rows.
    pub fn new(dim: usize, inputs: Inputs, targets: Targets) -> Result<Split> {
        let components = match &inputs {
            Inputs::F32(x) => x.len(),
            Inputs::I8(x) => x.len(),
            Inputs::U8(x, _) => x.len(),
            Inputs::Made(_) => 0,
            Inputs::Tokens(x) => x.len(),
            Inputs::Mapped(x) => x.rows() * dim,
            Inputs::Varied(x) => x.rows() * dim,
        };
        ensure!(dim > 0, "an input needs at least one component");
        ensure!(targets.width() > 0, "a target needs at least one value");
        let values = match &targets {
            Targets::Classes(labels) | Targets::Sequence { labels, .. } => labels.len(),
            Targets::Values { data, .. } => data.len(),
            Targets::Made(_) => 0,
        };
        let rows = components / dim;
        ensure!(
            rows * dim == components && Some(values) == rows.checked_mul(targets.width()),
            "{components} components of inputs of dimension {dim} do not match {values} targets of width {}",
            targets.width()
        );
        // Batches hold row numbers as u32.
        ensure!(
            rows <= u32::MAX as usize,
            "{rows} rows are more than 2^32 - 1, the most a split can hold"
        );
        Ok(Split {
            rows,
            dim,
            inputs,
            targets,
            doubles: None,
            weights: None,
        })
    }

    /// The same with a weight for each row, or without.
    ///
    /// # Errors
    /// If there are not so many, or one is negative or no number, or all are 0.
    pub fn weighted(self, weights: Option<Arc<Vec<f32>>>) -> Result<Split> {
        if let Some(all) = &weights {
            ensure!(
                all.len() == self.rows,
                "{} weights for {} rows",
                all.len(),
                self.rows
            );
            let bad = all.iter().position(|w| !(w.is_finite() && *w >= 0.0));
            if let Some(i) = bad {
                anyhow::bail!(
                    "the weight of row {i} is {}, but must be a number from 0",
                    all[i]
                );
            }
            ensure!(all.iter().any(|w| *w > 0.0), "all weights are 0");
        }
        Ok(Split { weights, ..self })
    }

    /// Whether its rows are made when they are read, and are nowhere in memory.
    pub fn is_made(&self) -> bool {
        matches!(self.inputs, Inputs::Made(_))
    }

    /// The same rows with all that is made when it is read in memory, if that takes no more bytes than `most`.
    pub fn in_memory(self, most: usize) -> Split {
        let inputs = matches!(self.inputs, Inputs::Made(_) | Inputs::Varied(_));
        let targets = matches!(self.targets, Targets::Made(_));
        let width = usize::from(inputs) * self.dim + usize::from(targets) * self.targets.width();
        if width == 0 || 4 * self.rows.saturating_mul(width) > most {
            return self;
        }
        let mut out = self.clone();
        if inputs {
            let mut x = vec![0f32; self.rows * self.dim];
            self.copy(0..self.rows, &mut x);
            out.inputs = Inputs::F32(x);
        }
        if let Targets::Made(law) = &self.targets {
            let width = law.width;
            let mut data = vec![0f32; self.rows * width];
            // In pieces, as rows have no room of their own there.
            const PIECE: usize = 1024;
            for (k, y) in data.chunks_mut(PIECE * width).enumerate() {
                let rows = y.len() / width;
                self.copy_values(k * PIECE..k * PIECE + rows, y);
            }
            out.targets = Targets::Values { width, data };
        }
        out
    }

    /// Copy the inputs of `rows`, in that order, to `out` as `[rows.len(), dim]`.
    ///
    /// # Panics
    /// If a row does not exist or `out` has another length.
    pub fn gather(&self, rows: &[u32], out: &mut [f32]) {
        match &self.inputs {
            Inputs::F32(x) => gather::floats(x, self.dim, rows, out),
            Inputs::I8(x) => gather::spins(x, self.dim, rows, out),
            Inputs::U8(x, unit) => gather::bytes(x, self.dim, rows, *unit, out),
            Inputs::Made(law) => law.inputs(rows.iter().copied(), out),
            Inputs::Tokens(x) => gather::tokens(x, self.dim, rows, out),
            Inputs::Mapped(x) => x.read(rows.iter().copied(), out),
            Inputs::Varied(x) => x.read(rows.iter().copied(), out),
        }
    }

    /// Copy the inputs of a range of rows to `out` as `[range.len(), dim]`.
    ///
    /// # Panics
    /// If the range does not exist or `out` has another length.
    pub fn copy(&self, range: Range<usize>, out: &mut [f32]) {
        let part = range.start * self.dim..range.end * self.dim;
        match &self.inputs {
            Inputs::F32(x) => out.copy_from_slice(&x[part]),
            Inputs::I8(x) => gather::widen(&x[part], out),
            Inputs::U8(x, unit) => gather::widen_bytes(&x[part], *unit, out),
            Inputs::Tokens(x) => gather::widen_tokens(&x[part], out),
            Inputs::Made(law) => law.inputs(range.start as u32..range.end as u32, out),
            Inputs::Mapped(x) => x.read(range.start as u32..range.end as u32, out),
            Inputs::Varied(x) => x.read(range.start as u32..range.end as u32, out),
        }
    }

    /// Copy the target values of a range of rows to `out` as `[range.len(), width]`; nothing for classes.
    ///
    /// # Panics
    /// If the range does not exist or `out` has another length.
    pub fn copy_values(&self, range: Range<usize>, out: &mut [f32]) {
        match &self.targets {
            Targets::Classes(_) | Targets::Sequence { .. } => {}
            Targets::Values { width, data } => {
                out.copy_from_slice(&data[range.start * width..range.end * width]);
            }
            Targets::Made(law) => law.targets(range.start as u32..range.end as u32, out),
        }
    }

    /// The labels, row by row, if the targets are classes: one per row, or one per position.
    pub fn labels(&self) -> Option<&[u32]> {
        match &self.targets {
            Targets::Classes(labels) | Targets::Sequence { labels, .. } => Some(labels),
            Targets::Values { .. } | Targets::Made(_) => None,
        }
    }

    /// The label of each row, if rows have one.
    pub fn row_labels(&self) -> Option<&[u32]> {
        match &self.targets {
            Targets::Classes(labels) => Some(labels),
            _ => None,
        }
    }

    /// The target values as `(width, [rows, width])`, if the targets are numbers in memory.
    pub fn values(&self) -> Option<(usize, &[f32])> {
        match &self.targets {
            Targets::Classes(_) | Targets::Sequence { .. } | Targets::Made(_) => None,
            Targets::Values { width, data } => Some((*width, data)),
        }
    }

    /// Copy the labels of `rows` to `out` as `[rows.len(), positions]`; false, and `out` as it was, if the targets are numbers.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn gather_labels(&self, rows: &[u32], out: &mut [u32]) -> bool {
        let Some(labels) = self.labels() else {
            return false;
        };
        match self.targets.positions() {
            1 => {
                for (o, &r) in out.iter_mut().zip(rows) {
                    *o = labels[r as usize];
                }
            }
            positions => {
                for (o, &r) in out.chunks_exact_mut(positions).zip(rows) {
                    o.copy_from_slice(&labels[r as usize * positions..][..positions]);
                }
            }
        }
        true
    }

    /// Copy the target values of `rows` to `out` as `[rows.len(), width]`; false, and `out` as it was, for labels.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn gather_values(&self, rows: &[u32], out: &mut [f32]) -> bool {
        match &self.targets {
            Targets::Classes(_) | Targets::Sequence { .. } => return false,
            Targets::Values { width, data } => {
                for (o, &r) in out.chunks_exact_mut(*width).zip(rows) {
                    o.copy_from_slice(&data[r as usize * width..][..*width]);
                }
            }
            Targets::Made(law) => law.targets(rows.iter().copied(), out),
        }
        true
    }

    /// Number of rows of each of `classes` classes; empty for regression and sequences.
    pub fn class_counts(&self, classes: usize) -> Vec<usize> {
        let Some(labels) = self.row_labels() else {
            return Vec::new();
        };
        let mut count = vec![0; classes];
        for &l in labels {
            count[l as usize] += 1;
        }
        count
    }

    /// Enters inputs and targets into a checksum.
    pub fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        // In pieces: one byte at a time is slow, a copy of everything is large.
        fn enter<T: Copy, const N: usize>(
            data: &[T],
            bytes: impl Fn(T) -> [u8; N],
            hash: &mut crc32fast::Hasher,
        ) {
            for piece in data.chunks(4096) {
                hash.update(&piece.iter().flat_map(|x| bytes(*x)).collect::<Vec<u8>>());
            }
        }
        match &self.inputs {
            Inputs::F32(x) => enter(x, f32::to_le_bytes, hash),
            Inputs::I8(x) => enter(x, i8::to_le_bytes, hash),
            // The same as of the floats that they stand for.
            Inputs::U8(x, unit) => {
                for piece in x.chunks(4096) {
                    let mut wide = vec![0f32; piece.len()];
                    gather::widen_bytes(piece, *unit, &mut wide);
                    enter(&wide, f32::to_le_bytes, hash);
                }
            }
            Inputs::Made(law) => {
                hash.update(&(self.rows as u64).to_le_bytes());
                law.fingerprint(hash);
            }
            Inputs::Tokens(x) => enter(x, u32::to_le_bytes, hash),
            Inputs::Mapped(x) => x.fingerprint(hash),
            Inputs::Varied(x) => x.fingerprint(hash),
        }
        match &self.targets {
            Targets::Classes(x) | Targets::Sequence { labels: x, .. } => {
                enter(x, u32::to_le_bytes, hash)
            }
            Targets::Values { data, .. } => enter(data, f32::to_le_bytes, hash),
            Targets::Made(_) => {}
        }
        if let Some(weights) = &self.weights {
            enter(weights, f32::to_le_bytes, hash);
        }
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let inputs = match &self.inputs {
            Inputs::F32(x) => size_of_val(&x[..]),
            Inputs::I8(x) => size_of_val(&x[..]),
            Inputs::U8(x, _) => size_of_val(&x[..]),
            Inputs::Made(law) => size_of_val(&law.matrix[..]),
            Inputs::Tokens(x) => size_of_val(&x[..]),
            Inputs::Mapped(x) => x.bytes(),
            Inputs::Varied(x) => x.bytes(),
        };
        let doubles = self.doubles.as_deref().map_or(0, Doubles::bytes);
        let weights = self.weights.as_deref().map_or(0, |w| size_of_val(&w[..]));
        inputs
            + doubles
            + weights
            + match &self.targets {
                Targets::Classes(l) | Targets::Sequence { labels: l, .. } => size_of_val(&l[..]),
                Targets::Values { data, .. } => size_of_val(&data[..]),
                Targets::Made(_) => 0,
            }
    }

    /// The split of these rows, in this order.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn select(&self, rows: &[u32]) -> Split {
        Split {
            rows: rows.len(),
            dim: self.dim,
            inputs: match &self.inputs {
                Inputs::F32(x) => Inputs::F32(pick(x, self.dim, rows)),
                Inputs::I8(x) => Inputs::I8(pick(x, self.dim, rows)),
                Inputs::U8(x, unit) => Inputs::U8(pick(x, self.dim, rows), *unit),
                Inputs::Made(_) | Inputs::Varied(_) => {
                    let mut x = vec![0f32; rows.len() * self.dim];
                    self.gather(rows, &mut x);
                    Inputs::F32(x)
                }
                Inputs::Tokens(x) => Inputs::Tokens(pick(x, self.dim, rows)),
                Inputs::Mapped(x) => Inputs::Mapped(Arc::new(x.select(rows))),
            },
            targets: match &self.targets {
                Targets::Classes(l) => Targets::Classes(pick(l, 1, rows)),
                Targets::Sequence { positions, labels } => Targets::Sequence {
                    positions: *positions,
                    labels: pick(labels, *positions, rows),
                },
                Targets::Values { width, data } => Targets::Values {
                    width: *width,
                    data: pick(data, *width, rows),
                },
                Targets::Made(law) => {
                    let mut data = vec![0f32; rows.len() * law.width];
                    law.targets(rows.iter().copied(), &mut data);
                    let width = law.width;
                    Targets::Values { width, data }
                }
            },
            doubles: self.doubles.as_ref().map(|d| {
                Arc::new(Doubles {
                    inputs: pick(&d.inputs, self.dim, rows),
                    targets: match d.targets.is_empty() {
                        true => Vec::new(),
                        false => pick(&d.targets, self.targets.width(), rows),
                    },
                })
            }),
            weights: self.weights.as_ref().map(|w| Arc::new(pick(w, 1, rows))),
        }
    }
}

pub(super) fn pick<T: Copy>(from: &[T], width: usize, rows: &[u32]) -> Vec<T> {
    let mut out = Vec::with_capacity(rows.len() * width);
    for &r in rows {
        out.extend_from_slice(&from[r as usize * width..][..width]);
    }
    out
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
