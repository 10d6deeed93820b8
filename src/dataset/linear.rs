//! Rows of linear regression that are made when they are read: `x` uniform, `y = W x + noise·η`. Nothing is stored, so a million rows
//! of a thousand components cost no memory (Hitchcock & Hoogland 2025, D.1).

use super::{Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::gemm::{Matrix, multiply};
use crate::kernels::normal::{fill_normal, fill_uniform};
use crate::rng::{Purpose, Stream};
use anyhow::ensure;
use std::sync::Arc;

/// The law of the rows. Row i is a function of the seed and i alone.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearRows {
    /// Components of an input.
    pub dim: usize,
    /// Components of a target.
    pub width: usize,
    /// W, `[width, dim]`.
    pub matrix: Vec<f32>,
    /// Inputs are uniform in (-limit, limit).
    pub limit: f32,
    /// Standard deviation of the noise on a component of a target.
    pub noise: f32,
    /// Seed.
    pub seed: u64,
}

impl LinearRows {
    fn stream(&self, row: u32, noise: u16) -> Stream {
        let what = super::Use::TrainRow as usize;
        Stream::new(self.seed, Purpose::Dataset, what, u64::from(row)).sub_stream(noise)
    }

    /// Inputs of these rows, `[rows, dim]`.
    pub fn inputs(&self, rows: impl Iterator<Item = u32>, out: &mut [f32]) {
        for (row, x) in rows.zip(out.chunks_exact_mut(self.dim)) {
            fill_uniform(&self.stream(row, 0), self.limit, x);
        }
    }

    /// Targets of these rows, `[rows, width]`.
    pub fn targets(&self, rows: impl ExactSizeIterator<Item = u32> + Clone, out: &mut [f32]) {
        let count = rows.len();
        let mut x = vec![0f32; count * self.dim];
        self.inputs(rows.clone(), &mut x);
        let w = Matrix::new(&self.matrix, self.width, self.dim);
        multiply(out, Matrix::new(&x, count, self.dim), w.transposed(), false);
        let mut noise = vec![0f32; self.width];
        for (row, y) in rows.zip(out.chunks_exact_mut(self.width)) {
            fill_normal(&self.stream(row, 1), &mut noise);
            y.iter_mut()
                .zip(&noise)
                .for_each(|(y, n)| *y += self.noise * n);
        }
    }

    /// Enter it into a checksum.
    pub fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        hash.update(format!("{} {} {}", self.limit, self.noise, self.seed).as_bytes());
        self.matrix
            .iter()
            .for_each(|x| hash.update(&x.to_le_bytes()));
    }
}

impl Split {
    /// A split of so many rows that are made when they are read.
    pub fn made(law: Arc<LinearRows>, rows: usize) -> Result<Split> {
        ensure!(
            rows <= u32::MAX as usize,
            "{rows} rows are more than 2^32 - 1, the most a split can hold"
        );
        Ok(Split {
            rows,
            dim: law.dim,
            inputs: Inputs::Made(law.clone()),
            targets: Targets::Made(law),
            doubles: None,
            weights: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made row by row, in any order, is what is made all at once.
    #[test]
    fn a_row_does_not_depend_on_its_neighbours() {
        let law = Arc::new(LinearRows {
            dim: 70,
            width: 3,
            matrix: (0..210).map(|i| (i % 13) as f32 - 6.0).collect(),
            limit: 10.0,
            noise: 0.5,
            seed: 4,
        });
        let made = Split::made(law.clone(), 40).unwrap();
        assert_eq!((made.rows, made.dim, made.bytes()), (40, 70, 4 * 210));
        let (mut x, mut y) = (vec![0.0; 40 * 70], vec![0.0; 40 * 3]);
        made.copy(0..40, &mut x);
        made.copy_values(0..40, &mut y);
        let rows = [7u32, 39, 7];
        let (mut some, mut values) = (vec![0.0; 3 * 70], vec![0.0; 9]);
        made.gather(&rows, &mut some);
        assert!(made.gather_values(&rows, &mut values));
        for (k, r) in rows.iter().map(|r| *r as usize).enumerate() {
            assert_eq!(some[k * 70..(k + 1) * 70], x[r * 70..(r + 1) * 70]);
            assert_eq!(values[k * 3..(k + 1) * 3], y[r * 3..(r + 1) * 3]);
            // y - W x is the noise.
            for j in 0..3 {
                let wx: f32 = (0..70)
                    .map(|i| law.matrix[j * 70 + i] * x[r * 70 + i])
                    .sum();
                assert!((y[r * 3 + j] - wx).abs() < 5.0 * 0.5);
            }
        }
        let kept = made.clone().in_memory(1 << 20);
        assert_eq!(kept.inputs, Inputs::F32(x));
        assert_eq!(kept.targets, Targets::Values { width: 3, data: y });
        assert!(made.clone().in_memory(100).is_made());
        // A selection is stored, with the same numbers.
        let stored = made.select(&rows);
        assert_eq!(stored.inputs, Inputs::F32(some));
        let data = values;
        assert_eq!(stored.targets, Targets::Values { width: 3, data });
    }
}
