//! Matrices of known spectra for the tests, as products.

use super::super::rank::normal_draws;
use crate::error::Result;

/// A product that keeps no state.
pub type Product = dyn Fn(&[f64], &mut [f64]) -> Result<()>;

/// Numbers in (0, 1): splitmix64 of seed, probe and element.
pub fn uniform(seed: u64) -> impl Fn(u64, u32) -> f64 {
    move |probe, element| {
        let mut z = seed.wrapping_mul(0xD134_2543_DE82_EF95);
        for word in [probe, u64::from(element)] {
            z = (z ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
        }
        ((z >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

/// A product of three reflections.
pub struct Rotation(Vec<Vec<f64>>);

impl Rotation {
    pub fn new(seed: u64, n: usize) -> Self {
        Self((0..3).map(|k| normal_draws(10 * seed + k, n)).collect())
    }

    /// Q v.
    pub fn turn(&self, v: &mut [f64]) {
        self.0.iter().for_each(|u| reflect(u, v));
    }

    /// Q^T v.
    pub fn turn_back(&self, v: &mut [f64]) {
        self.0.iter().rev().for_each(|u| reflect(u, v));
    }
}

fn reflect(u: &[f64], v: &mut [f64]) {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let along = 2.0 * dot(u, v) / dot(u, u);
    v.iter_mut().zip(u).for_each(|(x, u)| *x -= along * u);
}

/// v -> D v.
pub fn diagonal(values: &[f64]) -> impl FnMut(&[f64], &mut [f64]) -> Result<()> + '_ {
    move |v, out| {
        for ((out, x), value) in out.iter_mut().zip(v).zip(values) {
            *out = value * x;
        }
        Ok(())
    }
}

/// v -> Q D Q^T v.
pub fn rotated(seed: u64, values: &[f64]) -> impl FnMut(&[f64], &mut [f64]) -> Result<()> + '_ {
    let rotation = Rotation::new(seed, values.len());
    move |v, out| {
        out.copy_from_slice(v);
        rotation.turn_back(out);
        out.iter_mut().zip(values).for_each(|(x, d)| *x *= d);
        rotation.turn(out);
        Ok(())
    }
}

/// v -> shift v + (the second difference on a rectangle with zeros around it) v.
pub fn laplacian(
    rows: usize,
    columns: usize,
    shift: f64,
) -> impl FnMut(&[f64], &mut [f64]) -> Result<()> {
    move |v, out| {
        for i in 0..rows * columns {
            let (row, column) = (i / columns, i % columns);
            let mut sum = (4.0 + shift) * v[i];
            if row > 0 {
                sum -= v[i - columns];
            }
            if row + 1 < rows {
                sum -= v[i + columns];
            }
            if column > 0 {
                sum -= v[i - 1];
            }
            if column + 1 < columns {
                sum -= v[i + 1];
            }
            out[i] = sum;
        }
        Ok(())
    }
}

/// Its eigenvalues, ascending: shift + 4 - 2 cos(i pi / (rows + 1)) - 2 cos(j pi / (columns + 1)).
pub fn laplacian_spectrum(rows: usize, columns: usize, shift: f64) -> Vec<f64> {
    let wave =
        |i: usize, n: usize| 2.0 - 2.0 * (i as f64 * std::f64::consts::PI / (n + 1) as f64).cos();
    let mut values: Vec<f64> = (1..=rows)
        .flat_map(|i| (1..=columns).map(move |j| shift + wave(i, rows) + wave(j, columns)))
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// X^T X of an X = Q R of `draws` independent normal vectors: R's diagonal is known (Bartlett's decomposition), and with
/// it ln det = 2 sum ln r_ii, the second result. The square of r_ii is chi-squared with draws - i degrees of freedom.
pub fn wishart(
    seed: u64,
    draws: usize,
    n: usize,
) -> (impl FnMut(&[f64], &mut [f64]) -> Result<()>, f64) {
    let mut r = normal_draws(seed, n * n);
    let mut ln_det = 0.0;
    for i in 0..n {
        r[i * n..i * n + i].fill(0.0);
        let squares = normal_draws(seed + 1000 + i as u64, draws - i);
        r[i * n + i] = squares.iter().map(|x| x * x).sum::<f64>().sqrt();
        ln_det += 2.0 * r[i * n + i].ln();
    }
    let rotation = Rotation::new(seed, draws);
    let mut x = vec![0.0; draws];
    let product = move |v: &[f64], out: &mut [f64]| {
        x.fill(0.0);
        for (x, row) in x.iter_mut().zip(r.chunks_exact(n)) {
            *x = row.iter().zip(v).map(|(r, v)| r * v).sum();
        }
        rotation.turn(&mut x);
        rotation.turn_back(&mut x);
        for (x, row) in x.iter().zip(r.chunks_exact(n)) {
            out.iter_mut().zip(row).for_each(|(out, r)| *out += r * x);
        }
        Ok(())
    };
    (product, ln_det)
}

/// Sum of ln max(λ, floor).
pub fn known_ln_det(values: &[f64], floor: f64) -> f64 {
    values.iter().map(|x| x.max(floor).ln()).sum()
}

/// n numbers from `least` to 1 at equal ratios.
pub fn geometric(n: usize, least: f64) -> Vec<f64> {
    (0..n)
        .map(|i| least.powf(1.0 - i as f64 / (n - 1) as f64))
        .collect()
}
