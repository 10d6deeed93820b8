//! All eigenvalues of a matrix that is known by its products, from n of them.

use super::super::evidence::Estimate;
use super::super::spectrum::eigenvalues;
use super::{asymmetry_and_tolerance, check_floor, multiply, zeros};
use crate::error::Result;
use anyhow::ensure;

/// The spectrum of a symmetric matrix; see [`ln_det_exact`].
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Sum of ln λ over the eigenvalues above `tolerance`, in nats; ln det only when `not_positive` is 0.
    ///
    /// Its standard error is that of eigenvalues each off by `tolerance` at random: sqrt of the sum of (tolerance/λ)^2.
    pub ln_det: Estimate,
    /// Number of eigenvalues at or below `tolerance`: negative, or zero as far as the products can tell.
    pub not_positive: usize,
    /// How far from its true value an eigenvalue may be, in the matrix' unit.
    ///
    /// max(n epsilon, asymmetry sqrt n) times the largest |eigenvalue|: rounding of this computation, or the spectral
    /// norm of noise of that size in every element.
    pub tolerance: f64,
    /// Largest |h_ij - h_ji| relative to the largest |eigenvalue|, dimensionless.
    pub asymmetry: f64,
    /// All eigenvalues, ascending, in the matrix' unit.
    pub eigenvalues: Vec<f64>,
}

impl Spectrum {
    /// The smallest eigenvalue.
    pub fn smallest(&self) -> f64 {
        self.eigenvalues.first().copied().unwrap_or(f64::NAN)
    }

    /// The largest eigenvalue.
    pub fn largest(&self) -> f64 {
        self.eigenvalues.last().copied().unwrap_or(f64::NAN)
    }

    /// Sum of ln max(λ, floor) over all eigenvalues, in nats, and how many lie at or below `floor`.
    ///
    /// Its standard error is that of `ln_det`, of the eigenvalues above the floor. Errors: a floor that is not finite or
    /// not above 0.
    pub fn ln_det_with_floor(&self, floor: f64) -> Result<(Estimate, usize)> {
        check_floor(floor)?;
        let at_floor = self.eigenvalues.partition_point(|x| *x <= floor);
        let above = sum_of_ln(&self.eigenvalues[at_floor..], self.tolerance);
        let value = above.value + at_floor as f64 * floor.ln();
        Ok((Estimate { value, ..above }, at_floor))
    }
}

/// ln det and all eigenvalues of a symmetric `[n, n]` matrix from its products with the n unit vectors.
///
/// The mean of the matrix and its transpose goes through [`eigenvalues`]: memory for 2 n^2 numbers, 4/3 n^3 operations.
/// Small eigenvalues have an absolute error, not a relative one: a condition number of 1e12 leaves about three digits of
/// the smallest. Errors: n = 0; no memory; a product that fails or is not finite.
pub fn ln_det_exact(
    n: usize,
    mut product: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
) -> Result<Spectrum> {
    ensure!(n > 0, "the Hessian of no parameters has no ln det");
    let mut matrix = zeros(n, n)?;
    let mut unit = zeros(n, 1)?;
    for (column, out) in matrix.chunks_exact_mut(n).enumerate() {
        unit[column] = 1.0;
        multiply(&mut product, &unit, out, || format!("unit vector {column}"))?;
        unit[column] = 0.0;
    }
    let mut difference = 0.0f64;
    for i in 0..n {
        for j in 0..i {
            let (x, y) = (matrix[i * n + j], matrix[j * n + i]);
            difference = difference.max((x - y).abs());
            // Halves first: the sum of two large numbers may be none.
            matrix[i * n + j] = 0.5 * x + 0.5 * y;
        }
    }
    let eigenvalues = eigenvalues(&matrix, n);
    let odd = eigenvalues.iter().any(|x| !x.is_finite());
    ensure!(!odd, "the eigenvalues of the Hessian are not finite");
    let largest = eigenvalues[n - 1].abs().max(eigenvalues[0].abs());
    let (asymmetry, tolerance) = asymmetry_and_tolerance(n, largest, difference);
    let not_positive = eigenvalues.partition_point(|x| *x <= tolerance);
    Ok(Spectrum {
        ln_det: sum_of_ln(&eigenvalues[not_positive..], tolerance),
        not_positive,
        tolerance,
        asymmetry,
        eigenvalues,
    })
}

fn sum_of_ln(eigenvalues: &[f64], tolerance: f64) -> Estimate {
    let squares: f64 = eigenvalues.iter().map(|x| (tolerance / x).powi(2)).sum();
    Estimate {
        value: eigenvalues.iter().map(|x| x.ln()).sum(),
        standard_error: squares.sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::matrices::*;
    use super::*;
    use anyhow::bail;

    #[test]
    fn spectra_known_in_closed_form() {
        // On a square every eigenvalue off the diagonal is there twice; on 1 x 1 and 1 x 2 by hand.
        for (rows, columns) in [(1, 1), (1, 2), (7, 7), (12, 9)] {
            let known = laplacian_spectrum(rows, columns, 0.1);
            let n = rows * columns;
            let got = ln_det_exact(n, laplacian(rows, columns, 0.1)).unwrap();
            for (got, want) in got.eigenvalues.iter().zip(&known) {
                assert!((got - want).abs() < 1e-14 * n as f64, "{got} {want}");
            }
            let want = known_ln_det(&known, 0.0);
            assert!((got.ln_det.value - want).abs() < 1e-12);
            assert!(got.ln_det.standard_error < 1e-10);
            assert_eq!((got.not_positive, got.asymmetry), (0, 0.0));
            assert_eq!(got.smallest(), got.eigenvalues[0]);
            assert_eq!(got.largest(), got.eigenvalues[n - 1]);
        }
        let (product, ln_det) = wishart(3, 60, 40);
        let got = ln_det_exact(40, product).unwrap();
        assert!((got.ln_det.value - ln_det).abs() < 1e-11, "{got:?}");
        assert!(got.asymmetry < 1e-15);
    }

    #[test]
    fn a_condition_number_of_1e12() {
        let values = geometric(60, 1e-12);
        let want = known_ln_det(&values, 0.0);
        // Exact to the last bit where nothing has to be turned.
        let plain = ln_det_exact(60, diagonal(&values)).unwrap();
        assert!((plain.ln_det.value - want).abs() < 1e-10);
        for seed in 0..5 {
            let got = ln_det_exact(60, rotated(seed, &values)).unwrap();
            let (value, error) = (got.ln_det.value, got.ln_det.standard_error);
            assert!((value - want).abs() < 4.0 * error, "{value} {want} {error}");
            assert!(error > 1e-5 && error < 0.1, "{error}");
            assert_eq!(got.not_positive, 0);
            let (floored, at_floor) = got.ln_det_with_floor(1e-6).unwrap();
            assert!((floored.value - known_ln_det(&values, 1e-6)).abs() < 1e-7);
            assert!(at_floor == 30 && floored.standard_error < error / 1e3);
        }
    }

    #[test]
    fn flat_and_falling_directions_are_counted() {
        let mut values = vec![2.0; 50];
        values[..4].fill(0.0);
        values[20] = -0.5;
        for unit in [1.0, 1e-200, 1e150] {
            let scaled: Vec<f64> = values.iter().map(|x| x * unit).collect();
            let got = ln_det_exact(50, rotated(1, &scaled)).unwrap();
            assert_eq!(got.not_positive, 5, "{got:?}");
            assert!((got.smallest() / unit + 0.5).abs() < 1e-14);
            assert!((got.ln_det.value - 45.0 * (2.0 * unit).ln()).abs() < 1e-10);
            let (floored, at_floor) = got.ln_det_with_floor(0.1 * unit).unwrap();
            let want = 45.0 * (2.0 * unit).ln() + 5.0 * (0.1 * unit).ln();
            assert!((floored.value - want).abs() < 1e-10 && at_floor == 5);
        }
        // Rank one, symmetric to the last bit: 0 is there n - 1 times, as rounding of either sign.
        let one_direction = |v: &[f64], out: &mut [f64]| {
            let u = |i: usize| ((i + 1) as f64).sqrt();
            let along: f64 = v.iter().enumerate().map(|(i, x)| u(i) * x).sum();
            out.iter_mut()
                .enumerate()
                .for_each(|(i, out)| *out = u(i) * along);
            Ok(())
        };
        let got = ln_det_exact(30, one_direction).unwrap();
        assert_eq!((got.not_positive, got.asymmetry), (29, 0.0), "{got:?}");
        assert!(got.eigenvalues[28] > 0.0, "no rounding: {got:?}");
        let zero = ln_det_exact(3, |_, _| Ok(())).unwrap();
        assert_eq!((zero.not_positive, zero.ln_det.value), (3, 0.0));
        for shift in [-1.0, -3.3] {
            let known = laplacian_spectrum(9, 8, shift);
            let got = ln_det_exact(72, laplacian(9, 8, shift)).unwrap();
            assert_eq!(got.not_positive, known.partition_point(|x| *x < 0.0));
        }
    }

    #[test]
    fn noise_of_the_products_shows_as_asymmetry() {
        // One element: eigenvalues 2 +- sqrt(0.5 * 0.3) of the symmetric part's 2 +- 0.4.
        let product = |v: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&[2.0 * v[0] + 0.5 * v[1], 0.3 * v[0] + 2.0 * v[1]]);
            Ok(())
        };
        let got = ln_det_exact(2, product).unwrap();
        assert!((got.asymmetry - 0.2 / 2.4).abs() < 1e-15, "{got:?}");
        assert!((got.smallest() - 1.6).abs() < 1e-15);
        assert!((got.tolerance - 0.2 * 2f64.sqrt()).abs() < 1e-15);
        let turn = |v: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&[v[1], -v[0]]);
            Ok(())
        };
        let got = ln_det_exact(2, turn).unwrap();
        assert_eq!((got.not_positive, got.asymmetry), (2, f64::INFINITY));
        // Single precision inside: zeros come back as noise of either sign.
        let mut values = geometric(80, 1e-2);
        values[..20].fill(0.0);
        let rotation = Rotation::new(5, 80);
        let single = |v: &[f64], out: &mut [f64]| {
            let round = |v: &mut [f64]| v.iter_mut().for_each(|x| *x = f64::from(*x as f32));
            out.copy_from_slice(v);
            rotation.turn_back(out);
            round(out);
            out.iter_mut().zip(&values).for_each(|(x, d)| *x *= d);
            rotation.turn(out);
            round(out);
            Ok(())
        };
        let got = ln_det_exact(80, single).unwrap();
        assert_eq!(got.not_positive, 20);
        assert!(
            got.eigenvalues[19] > 1e-10,
            "no noise: {:?}",
            got.eigenvalues
        );
        let difference = got.ln_det.value - known_ln_det(&values[20..], 0.0);
        assert!(difference.abs() < 4.0 * got.ln_det.standard_error);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let error = |n, product: &Product| format!("{:#}", ln_det_exact(n, product).unwrap_err());
        let odd = |v: &[f64], out: &mut [f64]| {
            out[1] = if v[2] == 1.0 { f64::NAN } else { 0.0 };
            Ok(())
        };
        let message = error(4, &odd);
        assert!(message.contains("element 1") && message.contains("unit vector 2 is NaN"));
        let failed = error(2, &|_, _| bail!("no data"));
        assert!(failed.contains("unit vector 0: no data"), "{failed}");
        assert!(error(0, &|_, _| Ok(())).contains("no parameters"));
        assert!(error(usize::MAX, &|_, _| Ok(())).contains("no memory"));
        assert!(error(1 << 31, &|_, _| Ok(())).contains("no memory"));
        let huge = |_: &[f64], out: &mut [f64]| {
            out.fill(f64::MAX);
            Ok(())
        };
        assert!(error(3, &huge).contains("not finite"));
        let spectrum = ln_det_exact(1, diagonal(&[3.0])).unwrap();
        assert_eq!(spectrum.ln_det.value, 3f64.ln());
        for floor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(spectrum.ln_det_with_floor(floor).is_err());
        }
    }
}
