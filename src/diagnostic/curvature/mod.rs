//! The curvature of an energy at an optimum: ln det of its Hessian, and the Laplace approximation of a log evidence.
//!
//! H is a symmetric `[n, n]` matrix in nats per squared unit of the parameters, known only by its products H v. A
//! product is a closure `(v, out)`: `out` comes as zeros and leaves as H v. ln det H is in nats, up to the constant that
//! the parameters' unit adds.
//!
//! | function | products | error |
//! |---|---|---|
//! | [`ln_det_exact`] | n | rounding |
//! | [`ln_det_lanczos`] | probes * steps | noise of the probes, and a bias of stopping |
//!
//! **When H is not positive definite** there is no ln det: the point is no minimum, or there are directions along which
//! the energy is flat. Both functions say how many directions that concerns; both offer a floor, which stands in for
//! every eigenvalue below it.
//!
//! **Which eigenvalues count as zero.** Products in single precision are not quite those of one symmetric matrix. How
//! far they are from it shows as asymmetry, and an eigenvalue within the noise that goes with it has no sign. An error
//! that is itself symmetric cannot be seen: where each element h_ij is exact but for its last rounding, h_ji is rounded
//! alike. With a known noise of the products, a floor above it is safer.

mod exact;
mod gaussian;
mod krylov;
mod lanczos;
#[cfg(test)]
mod matrices;

pub use exact::ln_det_exact;
pub use gaussian::Block;
pub use lanczos::ln_det_lanczos;

use super::evidence::Estimate;
use crate::error::Result;
use anyhow::{Context, bail, ensure};
use std::f64::consts::TAU;

/// The Laplace approximation of the log evidence ln Z = ln of ∫ exp(-E(w) - R(w)) dw / ∫ exp(-R(w)) dw, in nats.
///
/// ln Z ≈ -E - R - ln ∫ exp(-R) + (n/2) ln 2 pi - (1/2) ln det H (MacKay, Neural Computation 4 (1992) 415), exact for a
/// Gaussian. All at the minimum of E + R over the `n` parameters: `likelihood_energy` is E, minus the log likelihood;
/// `prior_energy` is R, and `ln_prior_normaliser` is ln ∫ exp(-R(w)) dw; `ln_det` is that of the Hessian of E + R, not of
/// E alone, over `n` directions. Energies in nats; the normaliser and `ln_det` in the same unit of the parameters. The
/// standard error is half that of `ln_det`; how far the posterior is from a Gaussian, or how many minima it has, is not
/// in it. NaN from NaN.
pub fn laplace(
    likelihood_energy: f64,
    prior_energy: f64,
    ln_prior_normaliser: f64,
    n: usize,
    ln_det: Estimate,
) -> Estimate {
    let width = 0.5 * (n as f64 * TAU.ln() - ln_det.value);
    Estimate {
        value: -likelihood_energy - prior_energy - ln_prior_normaliser + width,
        standard_error: 0.5 * ln_det.standard_error,
    }
}

/// Zeros; an error instead of an abort where there is no room for `rows` * `columns` numbers.
fn zeros(rows: usize, columns: usize) -> Result<Vec<f64>> {
    let no_room = || format!("no memory for {rows} x {columns} numbers");
    let length = rows.checked_mul(columns).with_context(no_room)?;
    let mut numbers = Vec::new();
    let reserved = numbers.try_reserve_exact(length);
    reserved.ok().with_context(no_room)?;
    numbers.resize(length, 0.0);
    Ok(numbers)
}

/// out = H v, checked; `which` names the vector in an error.
fn multiply(
    product: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    v: &[f64],
    out: &mut [f64],
    which: impl Fn() -> String,
) -> Result<()> {
    out.fill(0.0);
    product(v, out).with_context(|| format!("product of the Hessian with {}", which()))?;
    if let Some(odd) = out.iter().position(|x| !x.is_finite()) {
        bail!(
            "element {odd} of the product of the Hessian with {} is {}",
            which(),
            out[odd]
        );
    }
    Ok(())
}

/// Asymmetry and tolerance of a matrix of `size` rows, the largest |eigenvalue| `scale` and elements up to `difference`
/// from those that symmetry says are equal.
fn asymmetry_and_tolerance(size: usize, scale: f64, difference: f64) -> (f64, f64) {
    let asymmetry = if difference > 0.0 {
        difference / scale
    } else {
        0.0
    };
    let size = size as f64;
    let noise = difference * size.sqrt();
    (asymmetry, noise.max(scale * size * f64::EPSILON))
}

fn check_floor(floor: f64) -> Result<()> {
    ensure!(
        floor.is_finite() && floor > 0.0,
        "the floor of the eigenvalues is {floor}; it must be finite and above 0"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laplace_is_exact_for_a_gaussian() {
        // E = sum b/2 (w - c)^2, R = sum a/2 w^2: each direction integrates to exp(-ab/(a+b) c^2/2) sqrt(a/(a+b)).
        let (a, b, c) = ([0.5, 3.0, 1.0], [2.0, 7.0, 0.1], [1.5, -0.3, 4.0]);
        let (mut likelihood, mut prior, mut normaliser) = (0.0, 0.0, 0.0);
        let (mut ln_det, mut exact) = (0.0, 0.0);
        for i in 0..3 {
            let (a, b, c): (f64, f64, f64) = (a[i], b[i], c[i]);
            let w = b * c / (a + b);
            likelihood += 0.5 * b * (w - c).powi(2);
            prior += 0.5 * a * w * w;
            normaliser += 0.5 * (TAU / a).ln();
            ln_det += (a + b).ln();
            exact += -0.5 * a * b / (a + b) * c * c + 0.5 * (a / (a + b)).ln();
        }
        let ln_det = Estimate {
            value: ln_det,
            standard_error: 0.3,
        };
        let got = laplace(likelihood, prior, normaliser, 3, ln_det);
        assert!((got.value - exact).abs() < 1e-13, "{} {exact}", got.value);
        assert_eq!(got.standard_error, 0.15);
        assert!(laplace(f64::NAN, 0.0, 0.0, 3, ln_det).value.is_nan());
    }
}
