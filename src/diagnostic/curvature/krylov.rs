//! Lanczos' tridiagonal matrices and their Gauss quadratures.

use super::super::spectrum::{dot, implicit_ql};
use super::{multiply, zeros};
use crate::error::Result;
use anyhow::ensure;

/// The basis of a Krylov space, one vector after another, and the vector that comes next.
pub(super) struct Krylov {
    basis: Vec<f64>,
    /// Where the next space starts; any length.
    pub next: Vec<f64>,
    /// Largest difference of two elements of a projected matrix that symmetry says are equal, over all spaces.
    pub difference: f64,
}

impl Krylov {
    pub fn new(steps: usize, n: usize) -> Result<Self> {
        Ok(Self {
            basis: zeros(steps, n)?,
            next: zeros(n, 1)?,
            difference: 0.0,
        })
    }

    /// Lanczos' tridiagonal matrix from `next` on.
    pub fn lanczos(
        &mut self,
        product: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
        probe: usize,
    ) -> Result<Tridiagonal> {
        let n = self.next.len();
        let steps = self.basis.len() / n;
        let (mut diagonal, mut off) = (Vec::new(), Vec::new());
        let mut scale = 0.0f64;
        let mut length = norm(&self.next);
        for step in 0..steps {
            let (before, rest) = self.basis.split_at_mut(step * n);
            let current = &mut rest[..n];
            for (q, x) in current.iter_mut().zip(&self.next) {
                *q = x / length;
            }
            let next = &mut self.next;
            multiply(product, current, next, || {
                format!("vector {step} of probe {probe}")
            })?;
            // Only the last two projections are not 0 for a symmetric matrix; the others, and a second pass over all,
            // keep the basis orthogonal in spite of rounding (Parlett, "The Symmetric Eigenvalue Problem", chapter 6).
            for (i, q) in before.chunks_exact(n).enumerate() {
                let along = remove(next, q);
                let expected = if i + 1 == step { length } else { 0.0 };
                self.difference = self.difference.max((along - expected).abs());
            }
            diagonal.push(remove(next, current));
            for q in self.basis[..(step + 1) * n].chunks_exact(n) {
                remove(&mut self.next, q);
            }
            length = norm(&self.next);
            ensure!(
                diagonal[step].is_finite() && length.is_finite(),
                "the products of the Hessian with the vectors of probe {probe} overflow"
            );
            scale = scale.max(diagonal[step].abs()).max(length);
            if step + 1 == n || length <= 8.0 * f64::EPSILON * scale {
                return Ok(Tridiagonal {
                    diagonal,
                    off,
                    exhausted: true,
                });
            }
            off.push(length);
        }
        Ok(Tridiagonal {
            diagonal,
            off,
            exhausted: false,
        })
    }
}

/// Takes from `v` its part along the unit vector `q`; how long that is.
fn remove(v: &mut [f64], q: &[f64]) -> f64 {
    let along = dot(v, q);
    for (x, q) in v.iter_mut().zip(q) {
        *x -= along * q;
    }
    along
}

/// Euclidean norm; squares neither over- nor underflow.
fn norm(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0, |most: f64, x| {
        let x = x.abs();
        if x > most || x.is_nan() { x } else { most }
    });
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let squares: f64 = v.iter().map(|x| (x / largest).powi(2)).sum();
    squares.sqrt() * largest
}

/// A projection of the matrix on a Krylov space.
pub(super) struct Tridiagonal {
    pub diagonal: Vec<f64>,
    off: Vec<f64>,
    /// Whether the space is invariant, and its quadrature exact.
    pub exhausted: bool,
}

impl Tridiagonal {
    /// The Gauss quadrature of the first `steps` steps (Golub and Welsch, Math. Comp. 23 (1969) 221).
    pub fn gauss(&self, steps: usize) -> Result<Rule> {
        let steps = steps.min(self.diagonal.len());
        let mut values = self.diagonal[..steps].to_vec();
        let mut off = self.off[..steps.saturating_sub(1)].to_vec();
        off.push(0.0);
        let mut first = vec![0.0; steps];
        first[0] = 1.0;
        ensure!(
            implicit_ql(&mut values, &mut off, &mut first),
            "the Ritz values of the Hessian did not converge"
        );
        let nodes = values.iter().zip(&first);
        Ok(Rule(
            nodes
                .map(|(value, first)| Node {
                    value: *value,
                    weight: first * first,
                })
                .collect(),
        ))
    }
}

/// A quadrature rule for the spectral measure of a probe.
pub(super) struct Rule(pub Vec<Node>);

pub(super) struct Node {
    /// The Ritz value, in the matrix' unit.
    pub value: f64,
    /// Its share of the measure; all together are 1.
    pub weight: f64,
}

impl Rule {
    pub fn integral(&self, f: impl Fn(f64) -> f64) -> f64 {
        self.0.iter().map(|node| node.weight * f(node.value)).sum()
    }
}
