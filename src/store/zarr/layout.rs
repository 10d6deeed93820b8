//! How an array is cut into chunks: not at all, or along one axis.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::error::Result;

/// The cut of an array along one axis. `[outer, length, inner]` is its shape with the other axes merged.
#[derive(Debug)]
pub(super) struct Layout {
    rank: usize,
    axis: usize,
    outer: usize,
    length: usize,
    inner: usize,
    /// Length of a chunk along the axis, at least 1.
    chunk: usize,
}

impl Layout {
    /// The layout to write with: chunks of at most `limit` bytes where the "draw" axis allows it.
    pub fn choose(shape: &[usize], dims: &[String], size: usize, limit: usize) -> Result<Self> {
        let axis = dims.iter().position(|d| d == "draw");
        let mut layout = Self::cut(shape, axis.unwrap_or(0), usize::MAX)?;
        if axis.is_some() {
            let draw = (layout.outer * layout.inner * size).max(1);
            layout.chunk = layout.chunk.min((limit / draw).max(1));
        }
        Ok(layout)
    }

    /// The layout of an array that is described by its chunk shape.
    pub fn parse(shape: &[usize], chunk_shape: &[usize]) -> Result<Self> {
        ensure!(
            shape.len() == chunk_shape.len(),
            "its shape {shape:?} and its chunk shape {chunk_shape:?} differ in length"
        );
        let mut cut = (0..shape.len()).filter(|&i| chunk_shape[i] != shape[i].max(1));
        let axis = cut.next().unwrap_or(0);
        ensure!(
            cut.next().is_none(),
            "it is cut into chunks along several axes, which ergodic does not read"
        );
        let chunk = chunk_shape.get(axis).copied().unwrap_or(1);
        let layout = Self::cut(shape, axis, chunk)?;
        ensure!(
            layout.chunk == chunk,
            "its chunk shape {chunk_shape:?} does not fit its shape {shape:?}"
        );
        Ok(layout)
    }

    fn cut(shape: &[usize], axis: usize, chunk: usize) -> Result<Self> {
        let product = |axes: &[usize]| axes.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        // Checked here for the largest type, so that the arithmetic below cannot overflow.
        let bound = shape
            .iter()
            .map(|d| d.max(&1))
            .try_fold(8usize, |n, d| n.checked_mul(*d));
        bound.with_context(|| format!("its shape {shape:?} is too large"))?;
        let length = shape.get(axis).copied().unwrap_or(1);
        Ok(Self {
            rank: shape.len(),
            axis,
            outer: product(shape.get(..axis).unwrap_or(&[])).unwrap_or(0),
            length,
            inner: product(shape.get(axis + 1..).unwrap_or(&[])).unwrap_or(0),
            chunk: chunk.clamp(1, length.max(1)),
        })
    }

    /// How many values the array has.
    pub fn elements(&self) -> usize {
        self.outer * self.length * self.inner
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        if self.elements() == 0 {
            0
        } else {
            self.length.div_ceil(self.chunk)
        }
    }

    /// The shape of a chunk, for an array of this shape.
    pub fn chunk_shape(&self, shape: &[usize]) -> Vec<usize> {
        let mut chunk_shape: Vec<usize> = shape.iter().map(|d| *d.max(&1)).collect();
        if let Some(length) = chunk_shape.get_mut(self.axis) {
            *length = self.chunk;
        }
        chunk_shape
    }

    /// The file of chunk `k`, within the folder of the array: `c/0/k/0`.
    pub fn path(&self, folder: &Path, k: usize) -> PathBuf {
        let mut path = folder.join("c");
        for axis in 0..self.rank {
            path.push(if axis == self.axis { k } else { 0 }.to_string());
        }
        path
    }

    /// The contiguous pieces of chunk `k`, as ranges of the array; those of the last chunk may be shorter than [`Layout::row`].
    pub fn rows(&self, k: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        let first = k * self.chunk;
        let last = (first + self.chunk).min(self.length);
        (0..self.outer).map(move |o| {
            let row = o * self.length;
            (row + first) * self.inner..(row + last) * self.inner
        })
    }

    /// Values of such a piece.
    pub fn row(&self) -> usize {
        self.chunk * self.inner
    }
}
