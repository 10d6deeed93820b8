//! Inputs that stay in their file and are read when a batch needs them: for data larger than the memory.

use super::{doubles, scale};
use crate::error::Result;
use crate::store::mapped::MappedArray;
use anyhow::ensure;
use std::sync::{Arc, OnceLock};

/// Rows that are copied at once where all are read.
const PIECE: usize = 1024;

/// Some rows of an array in a file.
#[derive(Debug, Clone)]
pub struct MappedRows {
    array: Arc<MappedArray>,
    dim: usize,
    /// Which ones, if not all.
    index: Option<Arc<Vec<u32>>>,
    /// What they are scaled by.
    scaling: Option<Arc<Vec<(f64, f64)>>>,
    /// Whether they are scaled with all digits of the file, as data of that size in memory are.
    doubles: bool,
    checksum: OnceLock<crc32fast::Hasher>,
}

impl PartialEq for MappedRows {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.array, &other.array)
            && self.index == other.index
            && self.scaling == other.scaling
    }
}

impl MappedRows {
    /// The rows along the first axis; `values` is the number of target values in double precision beside them.
    pub(super) fn new(array: MappedArray, values: usize) -> Self {
        let count: usize = array.shape.iter().product();
        Self {
            dim: array.shape.iter().skip(1).product(),
            array: Arc::new(array),
            index: None,
            scaling: None,
            doubles: count + values <= doubles::MOST,
            checksum: OnceLock::new(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        let all = self.array.shape.first().copied().unwrap_or(0);
        self.index.as_ref().map_or(all, |i| i.len())
    }

    /// The first number that is not finite: its row, its column and what it is. All are read.
    pub(super) fn odd(&self) -> Option<(usize, usize, f32)> {
        let mut x = vec![0f32; self.dim];
        (0..self.rows()).find_map(|row| {
            self.read(std::iter::once(row as u32), &mut x);
            let column = x.iter().position(|x| !x.is_finite())?;
            Some((row, column, x[column]))
        })
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.index.as_ref().map_or(0, |i| size_of_val(&i[..]))
    }

    fn place(&self, row: u32) -> usize {
        self.index.as_ref().map_or(row, |i| i[row as usize]) as usize
    }

    /// Copy rows to `out`, `[rows, dim]`.
    pub(super) fn read(&self, rows: impl Iterator<Item = u32>, out: &mut [f32]) {
        let mut wide = vec![0f64; self.scaling.as_ref().map_or(0, |_| self.dim)];
        for (row, x) in rows.zip(out.chunks_exact_mut(self.dim)) {
            let Some(map) = &self.scaling else {
                self.array.copy(self.place(row) * self.dim, x);
                continue;
            };
            self.unscaled(row, x, &mut wide);
            for ((x, wide), map) in x.iter_mut().zip(&wide).zip(&**map) {
                *x = scale::one(*wide, *map) as f32;
            }
        }
    }

    /// Copy a row as it is in the file, with the digits that scaling sees; `x` is room for one.
    pub(super) fn unscaled(&self, row: u32, x: &mut [f32], out: &mut [f64]) {
        let from = self.place(row) * self.dim;
        if self.doubles {
            return self.array.copy_f64(from, out);
        }
        self.array.copy(from, x);
        for (wide, x) in out.iter_mut().zip(x) {
            *wide = f64::from(*x);
        }
    }

    /// These rows, in this order; none is read.
    pub(super) fn select(&self, rows: &[u32]) -> Self {
        let index = rows.iter().map(|r| self.place(*r) as u32).collect();
        Self {
            index: Some(Arc::new(index)),
            checksum: OnceLock::new(),
            ..self.clone()
        }
    }

    /// The same, scaled when they are read.
    pub(super) fn scaled(&self, map: &Arc<Vec<(f64, f64)>>) -> Result<Self> {
        ensure!(
            self.scaling.is_none(),
            "inputs that stay in their file are scaled once, and these are already"
        );
        Ok(Self {
            scaling: Some(map.clone()),
            checksum: OnceLock::new(),
            ..self.clone()
        })
    }

    /// Enter all numbers into a checksum, as those of data in memory are; read once.
    pub(super) fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        let all = self.checksum.get_or_init(|| {
            let mut hash = crc32fast::Hasher::new();
            let mut x = vec![0f32; PIECE * self.dim];
            for first in (0..self.rows()).step_by(PIECE) {
                let rows = PIECE.min(self.rows() - first);
                let x = &mut x[..rows * self.dim];
                self.read((first as u32..).take(rows), x);
                let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
                hash.update(&bytes);
            }
            hash
        });
        hash.combine(all);
    }
}
