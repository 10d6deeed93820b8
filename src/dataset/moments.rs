//! The compressed form of a regression: as many rows as inputs have components, with the same second moments.
//!
//! The loss of a linear network is quadratic in its product A: (1/n) Σ |y - A x|² = |A C - B|² + constant, where C Cᵀ is the second moment
//! of x and B = ⟨y xᵀ⟩ C⁻ᵀ. So the rows √d·Cᵀ with targets √d·Bᵀ have, but for the constant, the same mean loss and gradient at any
//! weights, exactly, whatever n was.

use super::{Dataset, Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::gemm::{Matrix, multiply};
use crate::memory;

/// Rows that are summed in single precision.
const TILE: usize = 512;

/// Parts of the rows, each summed by one thread: fixed, so that sums have one order.
const PARTS: usize = 4;

impl Dataset {
    /// The training split compressed to its second moments, without its other splits.
    ///
    /// # Errors
    /// For classes, or if the moments do not fit into memory.
    pub fn moments(&self, threads: usize) -> Result<Dataset> {
        anyhow::ensure!(
            self.classes == 0,
            "moments: '{}' has classes; only the squared error of real targets is given by second moments",
            self.name
        );
        if self.likelihood_n.is_some() {
            return Ok(self.clone());
        }
        self.ensure_single("moments")?;
        self.ensure_unweighted("moments")?;
        let (n, d, width) = (self.train.rows, self.dim, self.outputs);
        let numbers = d * (d + width);
        memory::check(
            (8 * numbers * (PARTS + 1) + 4 * numbers) as u128,
            "the second moments of a data set",
        )?;
        let mut sums = sums(&self.train, width, threads);
        sums.iter_mut().for_each(|s| *s /= n as f64);
        let (x, y) = compress(&mut sums, d, width);
        let split = Split::new(d, Inputs::F32(x), Targets::Values { width, data: y })?;
        let note = ("moments".into(), format!("of the {n} training rows, exact"));
        let provenance = self.provenance.iter().cloned().chain([note]).collect();
        let mut out = Dataset::new(&self.name, 0, split, None, provenance)?;
        (out.rank, out.likelihood_n) = (self.rank, Some(n));
        Ok(out)
    }
}

/// Σ x (x, y)ᵀ over all rows, `[d, d + width]`, in an order that no number of threads changes.
pub(crate) fn sums(split: &Split, width: usize, threads: usize) -> Vec<f64> {
    let (n, d) = (split.rows, split.dim);
    let part = |k: usize| {
        let (from, to) = (k * n / PARTS, (k + 1) * n / PARTS);
        let mut total = vec![0f64; d * (d + width)];
        let (mut x, mut y) = (vec![0f32; TILE * d], vec![0f32; TILE * width]);
        let (mut xx, mut xy) = (vec![0f32; d * d], vec![0f32; d * width]);
        for start in (from..to).step_by(TILE) {
            let rows = TILE.min(to - start);
            let (x, y) = (&mut x[..rows * d], &mut y[..rows * width]);
            split.copy(start..start + rows, x);
            split.copy_values(start..start + rows, y);
            let across = Matrix::new(x, rows, d);
            multiply(&mut xx, across.transposed(), across, false);
            multiply(
                &mut xy,
                across.transposed(),
                Matrix::new(y, rows, width),
                false,
            );
            for (i, total) in total.chunks_exact_mut(d + width).enumerate() {
                let (own, cross) = total.split_at_mut(d);
                let add = |to: &mut [f64], from: &[f32]| {
                    to.iter_mut()
                        .zip(from)
                        .for_each(|(t, f)| *t += f64::from(*f));
                };
                add(own, &xx[i * d..(i + 1) * d]);
                add(cross, &xy[i * width..(i + 1) * width]);
            }
        }
        total
    };
    let mut parts: Vec<Vec<f64>> = Vec::new();
    let ahead = threads.clamp(1, PARTS);
    for first in (0..PARTS).step_by(ahead) {
        std::thread::scope(|s| {
            let last = PARTS.min(first + ahead);
            let running: Vec<_> = (first..last).map(|k| s.spawn(move || part(k))).collect();
            for thread in running {
                match thread.join() {
                    Ok(part) => parts.push(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }
    let mut total = vec![0f64; d * (d + width)];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
    }
    total
}

/// From the moments ⟨x xᵀ⟩, ⟨x yᵀ⟩ side by side, `[d, d + width]`: the rows √d·Cᵀ and √d·C⁻¹⟨x yᵀ⟩, by Cholesky from left to right.
fn compress(m: &mut [f64], d: usize, width: usize) -> (Vec<f32>, Vec<f32>) {
    let w = d + width;
    let largest = (0..d).map(|i| m[i * w + i]).fold(0.0, f64::max);
    for k in 0..d {
        let (above, below) = m.split_at_mut((k + 1) * w);
        let row = &mut above[k * w..];
        let pivot = row[k];
        // A direction in which inputs do not vary: nothing is known of it, and nothing is asked.
        if pivot <= 1e-12 * largest {
            row[k..].fill(0.0);
            continue;
        }
        row[k..].iter_mut().for_each(|x| *x /= pivot.sqrt());
        for (i, other) in below.chunks_exact_mut(w).enumerate() {
            let (at, factor) = (k + 1 + i, row[k + 1 + i]);
            // Only the upper triangle is kept up to date.
            if factor != 0.0 {
                let rest = other[at..].iter_mut().zip(&row[at..]);
                rest.for_each(|(o, r)| *o -= factor * r);
            }
        }
    }
    let scale = (d as f64).sqrt();
    let (mut x, mut y) = (Vec::with_capacity(d * d), Vec::with_capacity(d * width));
    for (k, row) in m.chunks_exact(w).enumerate() {
        let upper = |(i, v): (usize, &f64)| if i < k { 0.0 } else { (scale * v) as f32 };
        x.extend(row[..d].iter().enumerate().map(upper));
        y.extend(row[d..].iter().map(|v| (scale * v) as f32));
    }
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::LinearRows;
    use std::sync::Arc;

    fn law(noise: f32) -> Arc<LinearRows> {
        Arc::new(LinearRows {
            dim: 6,
            width: 4,
            matrix: (0..24).map(|i| ((i * 7) % 5) as f32 - 2.0).collect(),
            limit: 10.0,
            noise,
            seed: 2,
        })
    }

    fn mean_loss(split: &Split, a: &[f64]) -> f64 {
        let (mut x, mut y) = (vec![0f32; split.rows * 6], vec![0f32; split.rows * 4]);
        split.copy(0..split.rows, &mut x);
        split.copy_values(0..split.rows, &mut y);
        let mut total = 0.0;
        for (x, y) in x.chunks_exact(6).zip(y.chunks_exact(4)) {
            for j in 0..4 {
                let f: f64 = (0..6).map(|i| a[j * 6 + i] * f64::from(x[i])).sum();
                total += (f64::from(y[j]) - f).powi(2);
            }
        }
        total / split.rows as f64
    }

    /// Two matrices have the same difference of losses on 3000 rows and on the 6 that stand for them.
    #[test]
    fn differences_of_losses_are_those_of_all_rows() {
        let split = Split::made(law(0.5), 3000).unwrap();
        let all = Dataset::new("d", 0, split, None, vec![]).unwrap();
        let few = all.moments(2).unwrap();
        assert_eq!((few.train.rows, few.likelihood_n), (6, Some(3000)));
        let at = |k: u64| -> Vec<f64> {
            (0..24u64)
                .map(|i| ((i * k) % 11) as f64 / 5.0 - 1.0)
                .collect()
        };
        let difference = |d: &Dataset| mean_loss(&d.train, &at(3)) - mean_loss(&d.train, &at(7));
        let (exact, short) = (difference(&all), difference(&few));
        assert!(
            (exact - short).abs() < 1e-5 * exact.abs().max(1.0),
            "{exact} {short}"
        );
        // Whatever the number of threads.
        assert_eq!(all.moments(1).unwrap().train, few.train);
    }

    #[test]
    fn fewer_rows_than_components_leave_directions_free() {
        let split = Split::made(law(0.0), 3).unwrap();
        let all = Dataset::new("d", 0, split, None, vec![]).unwrap();
        let few = all.moments(1).unwrap();
        let at = |k: u64| -> Vec<f64> { (0..24u64).map(|i| ((i * k) % 5) as f64 - 2.0).collect() };
        let difference = |d: &Dataset| mean_loss(&d.train, &at(7)) - mean_loss(&d.train, &at(3));
        let (exact, short) = (difference(&all), difference(&few));
        assert!(
            (exact - short).abs() < 1e-4 * exact.abs(),
            "{exact} {short}"
        );
    }

    #[test]
    fn classes_have_no_such_moments() {
        let split = Split::new(1, Inputs::F32(vec![0.0, 1.0]), Targets::Classes(vec![0, 1]));
        let d = Dataset::new("d", 2, split.unwrap(), None, vec![]).unwrap();
        assert!(
            d.moments(1)
                .unwrap_err()
                .to_string()
                .contains("has classes")
        );
    }
}
