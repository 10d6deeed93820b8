//! A Gaussian around an optimum, from curvature in blocks: ln det of its precision, and draws.

use super::super::spectrum::eigenvectors;
use crate::error::Result;
use anyhow::{Context, ensure};

/// A Gaussian of some parameters, independent of all others.
///
/// Its precision, as a matrix of the parameters w_oj = s_j v_oj, is that of v in an eigenbasis: v = Lᵀ z R, where each z_ab
/// has a precision of its own. L and R are rows of eigenvectors, or unit matrices.
#[derive(Debug, Clone)]
pub struct Block {
    /// Where w_oj is among all parameters, row by row.
    places: Vec<usize>,
    outputs: usize,
    left: Option<Vec<f64>>,
    right: Option<Vec<f64>>,
    /// s_j.
    scales: Vec<f64>,
    /// Precisions of z, row by row.
    precisions: Vec<f64>,
    /// How many of them were raised to the floor.
    at_floor: usize,
}

impl Block {
    /// Parameters that are independent of each other, with these precisions.
    pub fn diagonal(places: Vec<usize>, precisions: Vec<f64>) -> Self {
        Self {
            outputs: 1,
            left: None,
            right: None,
            scales: vec![1.0; places.len()],
            at_floor: 0,
            places,
            precisions,
        }
    }

    /// Parameters whose precision is this symmetric matrix.
    ///
    /// # Errors
    /// If its numbers are not finite.
    pub fn full(places: Vec<usize>, precision: &[f64]) -> Result<Self> {
        let (values, vectors) = eigen(precision, places.len())?;
        Ok(Self {
            right: Some(vectors),
            ..Self::diagonal(places, values)
        })
    }

    /// Parameters w_oj whose precision is G ⊗ A, plus `prior[j]` on the diagonal: `outputs` is G and `inputs` A, both
    /// symmetric and positive semi-definite.
    ///
    /// Exact for any `prior` that does not depend on o (Ritter, Botev and Barber, ICLR 2018, have one number): in units in
    /// which the prior's precision is 1, its part is a multiple of the unit matrix, which shares any eigenbasis.
    ///
    /// # Errors
    /// If numbers are not finite, or some of `prior` are 0, but not all.
    pub fn kronecker(
        places: Vec<usize>,
        outputs: &[f64],
        inputs: &[f64],
        prior: &[f64],
    ) -> Result<Self> {
        let (fan_in, flat) = (prior.len(), prior.iter().all(|t| *t == 0.0));
        ensure!(
            flat || prior.iter().all(|t| *t > 0.0),
            "the prior's precision of a layer must be above 0 for all inputs, or 0 for all"
        );
        let scales: Vec<f64> = prior
            .iter()
            .map(|t| if flat { 1.0 } else { t.sqrt().recip() })
            .collect();
        let mut scaled = inputs.to_vec();
        for (i, row) in scaled.chunks_exact_mut(fan_in).enumerate() {
            let each = row.iter_mut().zip(&scales);
            each.for_each(|(a, s)| *a *= s * scales[i]);
        }
        let fan_out = places.len() / fan_in;
        let (gamma, left) = eigen(outputs, fan_out)?;
        let (alpha, right) = eigen(&scaled, fan_in)?;
        let own = if flat { 0.0 } else { 1.0 };
        let product = |g: f64| alpha.iter().map(move |a| own + g.max(0.0) * a.max(0.0));
        Ok(Self {
            places,
            outputs: fan_out,
            precisions: gamma.iter().copied().flat_map(product).collect(),
            left: Some(left),
            right: Some(right),
            scales,
            at_floor: 0,
        })
    }

    /// Raise precisions below this to it; as precisions of w, of which the least is meant where scales differ.
    pub fn raise(&mut self, floor: f64) {
        let scale = self.scales.iter().copied().fold(f64::INFINITY, f64::min);
        let floor = floor * scale * scale;
        for p in self.precisions.iter_mut().filter(|p| **p < floor) {
            // By more than rounding.
            self.at_floor += usize::from(*p < floor * (1.0 - 1e-6));
            *p = floor;
        }
    }

    /// How many precisions were raised.
    pub fn at_floor(&self) -> usize {
        self.at_floor
    }

    /// Where its parameters are.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// ln det of the precision of w; NaN unless it is positive definite.
    pub fn ln_det(&self) -> f64 {
        if !self.is_positive() {
            return f64::NAN;
        }
        let scales: f64 = self.scales.iter().map(|s| s.ln()).sum();
        let all: f64 = self.precisions.iter().map(|p| p.ln()).sum();
        all - 2.0 * self.outputs as f64 * scales
    }

    /// Whether every direction has a precision above 0.
    pub fn is_positive(&self) -> bool {
        self.precisions.iter().all(|p| *p > 0.0)
    }

    /// The smallest and the largest precision in its eigenbasis.
    pub fn extremes(&self) -> (f64, f64) {
        let [low, high] = [f64::min, f64::max].map(|pick: fn(f64, f64) -> f64| {
            self.precisions
                .iter()
                .copied()
                .reduce(pick)
                .unwrap_or(f64::NAN)
        });
        (low, high)
    }

    /// Add to `w` what a draw deviates from the mean; `normals` are independent standard normal numbers, one per
    /// parameter of all.
    pub fn add_draw(&self, normals: &[f32], w: &mut [f64]) {
        let fan_in = self.scales.len();
        let mut z: Vec<f64> = self
            .places
            .iter()
            .zip(&self.precisions)
            .map(|(place, p)| f64::from(normals[*place]) / p.sqrt())
            .collect();
        if let Some(right) = &self.right {
            let rows = z.chunks_exact(fan_in).flat_map(|row| turned(right, row));
            z = rows.collect();
        }
        if let Some(left) = &self.left {
            let mut out = vec![0.0; z.len()];
            for (a, row) in z.chunks_exact(fan_in).enumerate() {
                for (o, to) in out.chunks_exact_mut(fan_in).enumerate() {
                    let weight = left[a * self.outputs + o];
                    let pairs = to.iter_mut().zip(row);
                    pairs.for_each(|(x, z)| *x += weight * z);
                }
            }
            z = out;
        }
        let scaled = z.iter().zip(self.scales.iter().cycle());
        for (place, (z, scale)) in self.places.iter().zip(scaled) {
            w[*place] += z * scale;
        }
    }
}

/// The sum over k of row k of `vectors` times `row[k]`.
fn turned(vectors: &[f64], row: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; row.len()];
    for (vector, weight) in vectors.chunks_exact(row.len()).zip(row) {
        let pairs = out.iter_mut().zip(vector);
        pairs.for_each(|(x, v)| *x += weight * v);
    }
    out
}

fn eigen(matrix: &[f64], n: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    eigenvectors(matrix, n).context("the curvature has numbers that are not finite")
}

#[cfg(test)]
mod tests {
    use super::super::super::rank::normal_draws;
    use super::*;

    /// A symmetric positive definite matrix.
    fn positive(seed: u64, n: usize) -> Vec<f64> {
        let x = normal_draws(seed, n * (n + 2));
        let entry = |i: usize, j: usize| -> f64 {
            let rows = 0..n + 2;
            rows.map(|k| x[k * n + i] * x[k * n + j]).sum()
        };
        (0..n * n).map(|k| entry(k / n, k % n)).collect()
    }

    /// The covariance of draws, exactly: that of the images of unit vectors.
    fn covariance(block: &Block, n: usize) -> Vec<f64> {
        let mut out = vec![0.0; n * n];
        for k in 0..n {
            let (mut normals, mut w) = (vec![0.0; n], vec![0.0; n]);
            normals[k] = 1.0;
            block.add_draw(&normals, &mut w);
            for i in 0..n {
                (0..n).for_each(|j| out[i * n + j] += w[i] * w[j]);
            }
        }
        out
    }

    fn is_inverse(of: &[f64], covariance: &[f64], n: usize) {
        for i in 0..n {
            for j in 0..n {
                let x: f64 = (0..n).map(|k| of[i * n + k] * covariance[k * n + j]).sum();
                assert!(
                    (x - f64::from(u8::from(i == j))).abs() < 1e-9,
                    "{i} {j}: {x}"
                );
            }
        }
    }

    fn ln_det(matrix: &[f64], n: usize) -> f64 {
        let values = super::super::super::eigenvalues(matrix, n);
        values.iter().map(|x| x.ln()).sum()
    }

    #[test]
    fn draws_have_the_inverse_of_the_precision() {
        let n = 6;
        let precision = positive(3, n);
        let full = Block::full((0..n).collect(), &precision).unwrap();
        is_inverse(&precision, &covariance(&full, n), n);
        assert!((full.ln_det() - ln_det(&precision, n)).abs() < 1e-10);
        // Two outputs and three inputs, the bias with a prior of its own.
        let (g, a, prior) = (positive(4, 2), positive(5, 3), [0.3, 0.3, 7.0]);
        let mut whole = vec![0.0; n * n];
        for (i, row) in whole.chunks_exact_mut(n).enumerate() {
            for (j, x) in row.iter_mut().enumerate() {
                *x = g[i / 3 * 2 + j / 3] * a[i % 3 * 3 + j % 3];
            }
            row[i] += prior[i % 3];
        }
        let places: Vec<usize> = (0..n).collect();
        let kronecker = Block::kronecker(places.clone(), &g, &a, &prior).unwrap();
        is_inverse(&whole, &covariance(&kronecker, n), n);
        assert!((kronecker.ln_det() - ln_det(&whole, n)).abs() < 1e-10);
        // Elsewhere, and in another order.
        let turned = Block::kronecker(vec![5, 4, 3, 2, 1, 0], &g, &a, &prior).unwrap();
        let (here, there) = (covariance(&kronecker, n), covariance(&turned, n));
        assert!((here[1] - there[n * n - 2]).abs() < 1e-12);
        let diagonal = Block::diagonal(places, vec![0.5, 1.0, 2.0, 4.0, 8.0, 16.0]);
        assert!((covariance(&diagonal, n)[7] - 1.0).abs() < 1e-12);
        assert!((diagonal.ln_det() - 512f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn flat_directions_need_a_floor() {
        let flat = [1.0, 0.0, 0.0, 0.0];
        let mut block = Block::kronecker(vec![0, 1], &[2.0], &flat, &[0.0, 0.0]).unwrap();
        assert!(!block.is_positive() && block.ln_det().is_nan());
        block.raise(0.5);
        assert!((block.ln_det()).abs() < 1e-12 && block.at_floor() == 1);
        assert_eq!(block.extremes(), (0.5, 2.0));
        let mixed = Block::kronecker(vec![0, 1], &[2.0], &flat, &[0.0, 1.0]);
        assert!(mixed.unwrap_err().to_string().contains("all inputs"));
        assert!(Block::full(vec![0], &[f64::NAN]).is_err());
    }
}
