//! The self-consistent equations of MBAR, solved by Newton's method with a safe step to fall back to.

use super::ladder::{Ladder, ln_sum_exp};
use super::linear;
use crate::error::Result;
use anyhow::bail;

/// Largest relative violation of the equations at a solution; rounding leaves about 1e-14.
const TOLERANCE: f64 = 1e-10;

const MOST_STEPS: usize = 1000;

/// How the equations were solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Convergence {
    /// Newton steps taken.
    pub newton_steps: usize,
    /// Steps of self-consistent iteration, taken where Newton's would have made matters worse.
    pub self_consistent_steps: usize,
    /// Largest |Σ_n w_n p_k(n) / N_k - 1| over rungs k that is left, dimensionless.
    pub residual: f64,
}

/// The mixture of all rungs, each counted with its effective number of draws.
///
/// p_k(n) = N_k exp(f_k - beta_k E_n) / Σ_l N_l exp(f_l - beta_l E_n) is the probability that draw n came from rung k.
#[derive(Debug, Clone)]
pub(super) struct Mixture {
    pub(super) betas: Vec<f64>,
    /// Effective number of draws N_k: draws over statistical inefficiency.
    pub(super) counts: Vec<f64>,
    /// Free energies f_k = -ln Z(beta_k), dimensionless, that of the first rung 0.
    pub(super) free_energies: Vec<f64>,
}

impl Mixture {
    /// Fills `p` with the probabilities of the rungs for a draw of this energy; returns ln Σ_l N_l exp(f_l - beta_l E).
    pub(super) fn probabilities(&self, energy: f64, p: &mut [f64]) -> f64 {
        let mut most = f64::NEG_INFINITY;
        for (k, p) in p.iter_mut().enumerate() {
            *p = self.free_energies[k] - self.betas[k] * energy;
            most = most.max(*p);
        }
        let mut sum = 0.0;
        for (p, count) in p.iter_mut().zip(&self.counts) {
            *p = count * (*p - most).exp();
            sum += *p;
        }
        p.iter_mut().for_each(|p| *p /= sum);
        most + sum.ln()
    }

    /// -ln Σ_n w_n exp(-beta_k E_n) / Σ_l N_l exp(f_l - beta_l E_n) for every k, less that of the first.
    ///
    /// In logarithms, unlike `sums`: a start far off leaves a rung without any share that a float can hold.
    fn self_consistent(&self, ladder: &Ladder) -> Vec<f64> {
        let mut p = vec![0.0; self.counts.len()];
        let mut draws = Vec::new();
        for rung in 0..self.counts.len() {
            let ln_weight = (self.counts[rung] / ladder.draws(rung) as f64).ln();
            let energies = ladder.energies(rung);
            draws.extend(energies.map(|e| (e, ln_weight - self.probabilities(e, &mut p))));
        }
        let of = |beta: &f64| -ln_sum_exp(draws.iter().map(|(energy, ln)| ln - beta * energy));
        let found: Vec<f64> = self.betas.iter().map(of).collect();
        found.iter().map(|f| f - found[0]).collect()
    }

    /// Σ_n w_n p_k(n) for every k, and Σ_n w_n p_k(n) p_l(n) for every k > l.
    fn sums(&self, ladder: &Ladder) -> (Vec<f64>, Vec<Vec<f64>>) {
        let rungs = self.counts.len();
        let mut p = vec![0.0; rungs];
        let (mut single, mut pairs) = (vec![0.0; rungs], vec![vec![0.0; rungs]; rungs]);
        for rung in 0..rungs {
            let weight = self.counts[rung] / ladder.draws(rung) as f64;
            for energy in ladder.energies(rung) {
                self.probabilities(energy, &mut p);
                for k in 0..rungs {
                    let weighted = weight * p[k];
                    single[k] += weighted;
                    for (sum, p) in pairs[k][..k].iter_mut().zip(&p) {
                        *sum += weighted * p;
                    }
                }
            }
        }
        (single, pairs)
    }
}

/// Where the equations stand at some free energies.
pub(super) struct Standing {
    /// Σ_n w_n p_k(n) / N_k: 1 for every k at the solution.
    shares: Vec<f64>,
    /// Second derivatives Σ_n w_n (p_k(n) δ_kl - p_k(n) p_l(n)) of the convex function that the solution minimises.
    hessian: Vec<Vec<f64>>,
}

impl Standing {
    fn of(mixture: &Mixture, ladder: &Ladder) -> Self {
        let (single, mut hessian) = mixture.sums(ladder);
        let rungs = single.len();
        hessian.iter_mut().flatten().for_each(|sum| *sum = -*sum);
        for k in 1..rungs {
            let (above, below) = hessian.split_at_mut(k);
            for (row, entry) in above.iter_mut().zip(&below[0]) {
                row[k] = *entry;
            }
        }
        // The rows of the Hessian add up to 0. As a sum of the others, the diagonal keeps its digits where the rungs
        // hardly overlap; as Σ w p (1 - p) it would drown in the rounding of N_k.
        for (k, row) in hessian.iter_mut().enumerate() {
            row[k] = 0.0;
            row[k] = -row.iter().sum::<f64>();
        }
        let shares = single.iter().zip(&mixture.counts).map(|(s, n)| s / n);
        Self {
            shares: shares.collect(),
            hessian,
        }
    }

    fn residual(&self) -> f64 {
        let off = self.shares.iter().map(|s| (s - 1.0).abs());
        // A NaN must not pass for convergence.
        off.fold(0.0, |a, b| if a.is_nan() || a >= b { a } else { b })
    }

    /// The inverse of the Hessian without the first rung, whose free energy is held.
    pub(super) fn inverse_hessian(&self) -> Option<Vec<Vec<f64>>> {
        let rows = self.hessian[1..].iter().map(|row| row[1..].to_vec());
        linear::inverse(&rows.collect::<Vec<_>>())
    }

    /// Per gap between neighbouring rungs, the effective number of draws that could be from either side of it:
    /// Σ_n w_n P(n) (1 - P(n)), with P(n) the probability of the rungs below.
    pub(super) fn bridges(&self) -> Vec<f64> {
        let rungs = self.shares.len();
        let across = |gap: usize| {
            let below = self.hessian[..gap].iter();
            -below.flat_map(|row| &row[gap..]).sum::<f64>()
        };
        (1..rungs).map(across).collect()
    }
}

/// Moves the free energies of `mixture` to where Σ_n w_n p_k(n) = N_k for every k.
///
/// A Newton step is taken if it brings the equations closer to holding; otherwise one of self-consistent iteration, which converges from anywhere (Shirts and Chodera 2008, appendix C).
///
/// Errors: the tolerance is not met in 1000 steps.
pub(super) fn solve(mixture: &mut Mixture, ladder: &Ladder) -> Result<(Standing, Convergence)> {
    let mut at = Standing::of(mixture, ladder);
    let mut convergence = Convergence {
        newton_steps: 0,
        self_consistent_steps: 0,
        residual: at.residual(),
    };
    while convergence.residual > TOLERANCE || convergence.residual.is_nan() {
        let steps = convergence.newton_steps + convergence.self_consistent_steps;
        if steps >= MOST_STEPS || convergence.residual.is_nan() {
            bail!(
                "MBAR did not converge: its equations are off by {:.1e} after {steps} steps. Rungs that hardly overlap \
                 do this: put more rungs between them",
                convergence.residual
            );
        }
        if let Some((next, found)) = newton_step(mixture, &at, ladder) {
            (*mixture, at) = (next, found);
            convergence.newton_steps += 1;
        } else {
            mixture.free_energies = mixture.self_consistent(ladder);
            at = Standing::of(mixture, ladder);
            convergence.self_consistent_steps += 1;
        }
        convergence.residual = at.residual();
    }
    Ok((at, convergence))
}

/// The mixture after a Newton step, if there is one and it is an improvement.
fn newton_step(mixture: &Mixture, at: &Standing, ladder: &Ladder) -> Option<(Mixture, Standing)> {
    let inverse = at.inverse_hessian()?;
    let gradient = at.shares.iter().zip(&mixture.counts);
    let gradient: Vec<f64> = gradient.map(|(s, n)| n * (s - 1.0)).collect();
    let step = linear::product(&inverse, &gradient[1..]);
    let mut next = mixture.clone();
    for (f, step) in next.free_energies[1..].iter_mut().zip(step) {
        *f -= step;
    }
    let found = Standing::of(&next, ladder);
    (found.residual() < at.residual()).then_some((next, found))
}
