//! MBAR, the multistate Bennett acceptance ratio: all rungs at once, as one importance-sampling mixture.

use super::super::ess::integrated_autocorrelation_time;
use super::super::moments::mean_of;
use super::ladder::{Estimate, Ladder, Replicas};
use super::newton::{Convergence, Mixture, solve};
use crate::error::Result;
use anyhow::{Context, ensure};

/// Least effective number of draws across a gap of the ladder for which a free energy is reported at all.
const LEAST_BRIDGE: f64 = 1.0;

/// The free energies of a ladder, and expectations at any inverse temperature from all of its draws.
///
/// Shirts and Chodera, "Statistically optimal analysis of samples from multiple equilibrium states", J. Chem. Phys. 129
/// (2008) 124105, for the reduced energies u_k = beta_k E. Every draw of rung k counts 1/g_k, with g_k its statistical
/// inefficiency: what thinning to independent draws would do on average, without throwing any away.
#[derive(Debug, Clone)]
pub struct Mbar<'a> {
    /// ln Z(beta_k) - ln Z(beta_1) at every rung, dimensionless.
    pub ln_z: Vec<f64>,
    /// Asymptotic covariance of `ln_z` (Shirts and Chodera 2008), for independent rungs.
    ///
    /// From effective numbers of draws: it takes every function of the draws to be correlated over as many of them as
    /// the energy is, and knows nothing of swaps. [`Mbar::log_evidence`] and [`Mbar::difference`] assume neither.
    pub covariance: Vec<Vec<f64>>,
    /// Statistical inefficiency of every rung, in draws: the autocorrelation time of its energy, at least 1.
    pub inefficiency: Vec<f64>,
    /// Effective number of draws that could be from either side of each gap between neighbouring rungs.
    ///
    /// The squared error of ln Z over a gap is about 1/bridge: the least of them says where another rung helps most.
    pub bridges: Vec<f64>,
    /// How the equations were solved.
    pub convergence: Convergence,
    pub(super) ladder: &'a Ladder<'a>,
    pub(super) mixture: Mixture,
    /// Inverse Hessian of all rungs but the first.
    pub(super) inverse_hessian: Vec<Vec<f64>>,
    /// ln Σ_k N_k exp(f_k - beta_k E) of every draw of every rung, chain after chain.
    pub(super) ln_mixture: Vec<Vec<f64>>,
}

impl<'a> Mbar<'a> {
    /// Solves f_r = -ln Σ_n w_n exp(-beta_r E_n) / Σ_k N_k exp(f_k - beta_k E_n), w_n = 1/g of the draw's rung, N_k
    /// the effective number of draws.
    ///
    /// Newton's method, safeguarded by self-consistent iteration, from a thermodynamic integration.
    ///
    /// Errors: the equations do not converge, or two parts of the ladder do not overlap.
    pub fn solve(ladder: &'a Ladder<'a>) -> Result<Self> {
        let inefficiency = (0..ladder.rungs()).map(|rung| {
            let chains: Vec<&[f64]> = ladder.chains(rung).collect();
            // NaN, of a constant energy, becomes 1: nothing is learnt from it twice, nor once.
            integrated_autocorrelation_time(&chains).max(1.0)
        });
        let inefficiency = inefficiency.collect();
        Self::solve_from(ladder, inefficiency, integrated(ladder))
    }

    /// Solves for the draws of another ladder with the same inverse temperatures, starting from this solution and
    /// keeping its inefficiencies.
    pub fn solve_again<'b>(&self, ladder: &'b Ladder<'b>) -> Result<Mbar<'b>> {
        ensure!(
            ladder.betas() == self.ladder.betas(),
            "the two ladders have different inverse temperatures"
        );
        let start = self.mixture.free_energies.clone();
        Mbar::solve_from(ladder, self.inefficiency.clone(), start)
    }

    pub(super) fn solve_from(
        ladder: &'a Ladder<'a>,
        inefficiency: Vec<f64>,
        free_energies: Vec<f64>,
    ) -> Result<Self> {
        let counts = inefficiency.iter().enumerate();
        let mut mixture = Mixture {
            betas: ladder.betas().to_vec(),
            counts: counts
                .map(|(rung, g)| ladder.draws(rung) as f64 / g)
                .collect(),
            free_energies,
        };
        let (at, convergence) = solve(&mut mixture, ladder)?;
        let bridges = at.bridges();
        check_overlap(&bridges, ladder)?;
        let inverse_hessian = at.inverse_hessian();
        let inverse_hessian = inverse_hessian.context("MBAR's matrix is singular")?;
        let mut p = vec![0.0; ladder.rungs()];
        let mut of_rung = |rung| -> Vec<f64> {
            let energies = ladder.energies(rung);
            energies.map(|e| mixture.probabilities(e, &mut p)).collect()
        };
        Ok(Self {
            ln_z: mixture.free_energies.iter().map(|f| -f).collect(),
            covariance: covariance(&inverse_hessian, &mixture.counts),
            inefficiency,
            bridges,
            convergence,
            ln_mixture: (0..ladder.rungs()).map(&mut of_rung).collect(),
            ladder,
            mixture,
            inverse_hessian,
        })
    }

    /// ln Z(beta_R) - ln Z(beta_1) with the Monte Carlo error of its influence.
    ///
    /// Errors: [`Replicas::Exchanging`] with rungs of different shape.
    pub fn log_evidence(&self, replicas: Replicas) -> Result<Estimate> {
        let betas = self.ladder.betas();
        self.difference(betas[0], betas[betas.len() - 1], replicas)
    }

    /// Standard error of an estimate that draws move by `direct` and free energies by minus `slope`.
    ///
    /// `direct(rung, chain, draw, at, energy)` is the derivative by the weight of a draw, the `at`-th of its rung, and
    /// minus `slope[k]` that by f_k. The free energies themselves err by -H⁻¹ Σ_n w_n δp(n).
    pub(super) fn error(
        &self,
        replicas: Replicas,
        slope: &[f64],
        direct: impl Fn(usize, usize, usize, usize, f64) -> f64,
    ) -> Result<f64> {
        let through = super::linear::product(&self.inverse_hessian, &slope[1..]);
        self.ladder
            .standard_error(replicas, |rung, chain, draw, energy| {
                let draws = self.ladder.draws(rung);
                let at = chain * (draws / self.ladder.chains(rung).count()) + draw;
                let ln_mixture = self.ln_mixture[rung][at];
                let through: f64 = (1..self.ladder.rungs())
                    .map(|k| through[k - 1] * self.probability(k, energy, ln_mixture))
                    .sum();
                draws as f64 * direct(rung, chain, draw, at, energy)
                    + self.mixture.counts[rung] * through
            })
    }

    /// Probability that a draw came from rung k.
    pub(super) fn probability(&self, k: usize, energy: f64, ln_mixture: f64) -> f64 {
        let of = &self.mixture;
        of.counts[k] * (of.free_energies[k] - of.betas[k] * energy - ln_mixture).exp()
    }
}

/// Free energies by the trapezoid rule: near enough for Newton's method.
fn integrated(ladder: &Ladder) -> Vec<f64> {
    let means: Vec<f64> = (0..ladder.rungs())
        .map(|rung| mean_of(ladder.energies(rung)))
        .collect();
    let mut free_energies = vec![0.0; ladder.rungs()];
    for rung in 1..ladder.rungs() {
        let width = ladder.betas()[rung] - ladder.betas()[rung - 1];
        free_energies[rung] =
            free_energies[rung - 1] + width * (means[rung - 1] + means[rung]) / 2.0;
    }
    free_energies
}

/// Covariance of the free energies of all rungs relative to the first.
///
/// Shirts and Chodera's (Wᵀ(1 - W N Wᵀ)⁺W) equals, with the first rung held, H⁻¹ less 1/N_k on the diagonal and 1/N_1
/// everywhere: the number of draws of each rung was chosen, not drawn.
fn covariance(inverse_hessian: &[Vec<f64>], counts: &[f64]) -> Vec<Vec<f64>> {
    let rungs = counts.len();
    let mut covariance = vec![vec![0.0; rungs]; rungs];
    for (k, row) in inverse_hessian.iter().enumerate() {
        for (l, entry) in row.iter().enumerate() {
            let own = if k == l { 1.0 / counts[k + 1] } else { 0.0 };
            covariance[k + 1][l + 1] = entry - own - 1.0 / counts[0];
        }
    }
    covariance
}

fn check_overlap(bridges: &[f64], ladder: &Ladder) -> Result<()> {
    let weakest = (0..bridges.len()).min_by(|a, b| bridges[*a].total_cmp(&bridges[*b]));
    if let Some(gap) = weakest {
        ensure!(
            bridges[gap] >= LEAST_BRIDGE,
            "rungs {gap} and {} of the ladder (inverse temperatures {} and {}) do not overlap: {:.1e} effective draws \
             could be from either. Put rungs between them, or draw more",
            gap + 1,
            ladder.betas()[gap],
            ladder.betas()[gap + 1],
            bridges[gap]
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BETAS: [f64; 3] = [0.0, 0.5, 2.0];

    /// Energies that are easy to write down again in Python: quantiles of an exponential law at a golden-ratio sequence.
    fn energies() -> Vec<Vec<Vec<f64>>> {
        let rung = |rung: usize, draws: usize| {
            let draw = |n: usize| {
                let u = ((n + 1) as f64 * 0.6180339887498949 + 0.3 * rung as f64).fract();
                -(1.0 - u).ln() / (1.0 + BETAS[rung]) * (1.0 + 0.5 * (n as f64).cos())
            };
            vec![(0..draws).map(draw).collect()]
        };
        vec![rung(0, 40), rung(1, 60), rung(2, 50)]
    }

    fn close(got: f64, want: f64) {
        assert!(
            (got - want).abs() < 1e-7 * want.abs(),
            "{got}, pymbar {want}"
        );
    }

    /// pymbar 4.0.3 on the same energies, all taken for independent.
    #[test]
    fn free_energies_covariance_and_expectations_are_those_of_pymbar() {
        let energies = energies();
        let ladder = Ladder::new(&BETAS, &energies).unwrap();
        let mbar = Mbar::solve_from(&ladder, vec![1.0; 3], vec![0.0; 3]).unwrap();
        close(mbar.ln_z[1], -0.3981119213259632);
        close(mbar.ln_z[2], -1.0576705081696316);
        let c = &mbar.covariance;
        close(c[1][1].sqrt(), 0.041281671785249933);
        close(c[2][2].sqrt(), 0.08359744597069094);
        let between = c[1][1] + c[2][2] - c[1][2] - c[2][1];
        close(between.sqrt(), 0.049341037995928316);
        // Overlap matrix: N_l Σ_n W_k W_l, so that N_k times a sum over a row's far side is a bridge.
        assert!((mbar.bridges[0] / 40.0 - 0.40756369 - 0.26035753).abs() < 1e-7);
        for (beta, mean, square, ln_z) in [
            (
                0.7,
                0.5634810564013774,
                0.6637933839735797,
                -0.5183989702827017,
            ),
            (
                3.0,
                0.23328021729509227,
                0.11380767299846846,
                -1.3271588703415338,
            ),
        ] {
            let found = mbar.energy(beta, Replicas::Independent).unwrap();
            close(found.mean.value, mean);
            close(found.variance.value, square - mean * mean);
            let found = mbar.ln_z_at(beta, Replicas::Independent).unwrap();
            close(found.estimate.value, ln_z);
        }
    }

    #[test]
    fn a_start_far_off_is_mended_by_self_consistent_steps() {
        let energies = energies();
        let ladder = Ladder::new(&BETAS, &energies).unwrap();
        for start in [[0.0, 900.0, -900.0], [0.0, -30.0, 5e4]] {
            let mbar = Mbar::solve_from(&ladder, vec![1.0; 3], start.to_vec()).unwrap();
            assert!(mbar.convergence.self_consistent_steps > 0);
            assert!((mbar.ln_z[2] + 1.0576705081696316).abs() < 1e-8);
            assert_eq!(mbar.ln_z[0], 0.0);
        }
    }
}
