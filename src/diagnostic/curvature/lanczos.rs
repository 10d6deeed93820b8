//! ln det of a matrix too large for its spectrum: stochastic Lanczos quadrature.

use super::super::evidence::Estimate;
use super::krylov::{Krylov, Rule};
use super::{asymmetry_and_tolerance, check_floor};
use crate::diagnostic::student::widening;
use crate::error::Result;
use anyhow::{Context, ensure};

/// What stochastic Lanczos quadrature says about a matrix; see [`ln_det_lanczos`].
///
/// Shares are of the spectrum, dimensionless: a share times n estimates a number of eigenvalues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LanczosLnDet {
    /// ln det, or the sum of ln max(λ, floor), in nats, and its standard error over the probes.
    ///
    /// NaN without a floor when a Ritz value is at or below `tolerance`: the matrix is not positive definite as far as
    /// the products can tell.
    pub ln_det: Estimate,
    /// How far stopping at these steps may leave `ln_det` from where more would take it, in nats, besides the standard
    /// error: an estimate that errs high. Without a floor, too few steps make `ln_det` too large.
    ///
    /// With a the change from a quarter to half of the steps and b that from half to all: b^2 / (a - b), what a power
    /// law leaves, while convergence is faster than any in the end. With a floor, whose kink lets changes cancel, at
    /// least b. Infinite when b is not below a, as with fewer than four steps; never less than what `tolerance` changes,
    /// and no more than that when every probe's Krylov space was exhausted. Not in it: an isolated eigenvalue near 0
    /// that no step has found yet, which takes some ten steps.
    pub stopping: f64,
    /// Share at Ritz values at or below `tolerance`.
    pub not_positive: f64,
    /// Share at Ritz values at or below the floor; 0 without one.
    pub at_floor: f64,
    /// Smallest Ritz value, in the matrix' unit: at least the smallest eigenvalue.
    pub smallest: f64,
    /// Largest Ritz value, in the matrix' unit: at most the largest eigenvalue.
    pub largest: f64,
    /// How far a Ritz value may be from that of a symmetric matrix, in the matrix' unit.
    ///
    /// max(steps epsilon, asymmetry sqrt(steps)) times the largest |Ritz value|.
    pub tolerance: f64,
    /// Largest |q_i·H q_j - q_j·H q_i| between vectors of one Krylov space relative to the largest |Ritz value|.
    pub asymmetry: f64,
    /// Products that were taken.
    pub products: usize,
}

/// ln det of a symmetric `[n, n]` matrix by stochastic Lanczos quadrature (Ubaru, Chen and Saad, SIAM J. Matrix Anal.
/// Appl. 38 (2017) 1075).
///
/// tr f(H) = E[z·f(H) z] over vectors z of independent signs (Hutchinson 1990), and z·f(H) z = n sum_k w_k f(θ_k) by the
/// Gauss quadrature of the Lanczos tridiagonal matrix that starts at z / sqrt n: its eigenvalues θ, the Ritz values, and
/// the squared first components w of its eigenvectors. f is ln λ, or ln max(λ, `floor`) with a floor, in the matrix'
/// unit. The variance of one probe is twice the sum of the squared off-diagonal elements of f(H).
///
/// `steps` beyond n are n. With full reorthogonalisation: memory for steps * n numbers, 4 steps^2 n operations a probe
/// besides the products. `uniform(probe, element)` is a number in (0, 1), independent for each pair. Errors: n = 0;
/// fewer than two probes; no steps; more than 2^32 - 1 elements; a floor that is not finite or not above 0; a uniform
/// number that is none; no memory; a product that fails or is not finite.
pub fn ln_det_lanczos(
    n: usize,
    probes: usize,
    steps: usize,
    floor: Option<f64>,
    uniform: impl Fn(u64, u32) -> f64,
    product: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
) -> Result<LanczosLnDet> {
    ensure!(n > 0, "the Hessian of no parameters has no ln det");
    let elements = u32::try_from(n)
        .ok()
        .with_context(|| format!("{n} parameters; a probe has at most 2^32 - 1 elements"))?;
    ensure!(
        probes >= 2,
        "{probes} probes; a standard error needs at least two"
    );
    ensure!(steps > 0, "Lanczos quadrature needs at least one step");
    floor.map_or(Ok(()), check_floor)?;
    let steps = steps.min(n);
    let rules = Rules::new(elements, probes, steps, uniform, product)?;
    let (smallest, largest) = rules.extremes();
    let scale = largest.abs().max(smallest.abs());
    let (asymmetry, tolerance) = asymmetry_and_tolerance(steps, scale, rules.difference);
    let f = |x: f64| match floor {
        Some(floor) => x.max(floor).ln(),
        None if smallest > tolerance => x.ln(),
        None => f64::NAN,
    };
    let value = rules.trace(ALL, f);
    let squares = rules.traces(ALL, f).map(|x| (x - value).powi(2));
    let probes = probes as f64;
    // What an error of `tolerance` in every Ritz value changes.
    let slope = |x: f64| match floor {
        Some(floor) if x <= floor => 0.0,
        _ => (tolerance / x).min(1.0),
    };
    let uncertain = rules.trace(ALL, slope);
    let stopping = rules.stopping(steps, f, value, uncertain, floor.is_some());
    let share = |most: f64| rules.trace(ALL, |x| f64::from(u8::from(x <= most))) / n as f64;
    Ok(LanczosLnDet {
        ln_det: Estimate {
            value,
            standard_error: widening(probes - 1.0)
                * (squares.sum::<f64>() / (probes * (probes - 1.0))).sqrt(),
        },
        stopping,
        not_positive: share(tolerance),
        at_floor: floor.map_or(0.0, share),
        smallest,
        largest,
        tolerance,
        asymmetry,
        products: rules.products,
    })
}

/// What is left after two changes, the second from doubling the steps once more than the first; changes up to `noise`
/// say nothing.
fn remainder(before: f64, last: f64, noise: f64, has_floor: bool) -> f64 {
    let (before, last) = (before.abs(), last.abs());
    if last <= noise {
        return noise;
    }
    let power_law = if last < before {
        last * last / (before - last)
    } else {
        f64::INFINITY
    };
    let least = if has_floor { last } else { noise };
    power_law.max(least)
}

/// Which rule of a probe.
const QUARTER: usize = 0;
const HALF: usize = 1;
const ALL: usize = 2;

/// The rules of all probes: of a quarter, half and all of the steps.
struct Rules {
    /// Dimension of the matrix.
    n: f64,
    rules: Vec<[Rule; 3]>,
    /// Products that were taken.
    products: usize,
    /// Whether every probe's Krylov space was.
    exhausted: bool,
    /// See [`Krylov::difference`].
    difference: f64,
}

impl Rules {
    fn new(
        elements: u32,
        probes: usize,
        steps: usize,
        uniform: impl Fn(u64, u32) -> f64,
        mut product: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    ) -> Result<Self> {
        let mut krylov = Krylov::new(steps, elements as usize)?;
        let mut rules = Vec::new();
        let (mut products, mut exhausted) = (0, true);
        for probe in 0..probes {
            for (x, element) in krylov.next.iter_mut().zip(0..elements) {
                let u = uniform(probe as u64, element);
                ensure!(
                    u > 0.0 && u < 1.0,
                    "the uniform number of probe {probe}, element {element} is {u}"
                );
                *x = if u < 0.5 { -1.0 } else { 1.0 };
            }
            let tridiagonal = krylov.lanczos(&mut product, probe)?;
            products += tridiagonal.diagonal.len();
            exhausted &= tridiagonal.exhausted;
            // The leading blocks are what fewer steps would have given. Rounded so that the second change is over the
            // larger ratio of steps: a change too large beside the one before is no false comfort.
            rules.push([
                tridiagonal.gauss(steps.div_ceil(4))?,
                tridiagonal.gauss((steps / 2).max(1))?,
                tridiagonal.gauss(steps)?,
            ]);
        }
        Ok(Self {
            n: f64::from(elements),
            rules,
            products,
            exhausted,
            difference: krylov.difference,
        })
    }

    /// See [`LanczosLnDet::stopping`].
    fn stopping(
        &self,
        steps: usize,
        f: impl Fn(f64) -> f64,
        value: f64,
        uncertain: f64,
        has_floor: bool,
    ) -> f64 {
        if self.exhausted {
            return uncertain;
        }
        if steps < 4 {
            return f64::INFINITY;
        }
        let half = self.trace(HALF, &f);
        let before = half - self.trace(QUARTER, &f);
        remainder(before, value - half, uncertain, has_floor)
    }

    /// The smallest and the largest Ritz value.
    fn extremes(&self) -> (f64, f64) {
        let nodes = self.rules.iter().flat_map(|probe| &probe[ALL].0);
        nodes.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), node| {
            (least.min(node.value), most.max(node.value))
        })
    }

    /// tr f(H) by each probe.
    fn traces(&self, stage: usize, f: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
        let rules = self.rules.iter();
        rules.map(move |probe| self.n * probe[stage].integral(&f))
    }

    /// tr f(H), the mean over the probes.
    fn trace(&self, stage: usize, f: impl Fn(f64) -> f64) -> f64 {
        self.traces(stage, f).sum::<f64>() / self.rules.len() as f64
    }
}

#[cfg(test)]
mod tests;
