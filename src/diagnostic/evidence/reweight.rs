//! Expectations at any inverse temperature, from the draws of the whole ladder.

use super::ladder::{Estimate, Replicas, ln_sum_exp};
use super::mbar::Mbar;
use crate::error::Result;
use anyhow::ensure;

/// An estimate at an inverse temperature that need not be a rung.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reweighted {
    /// The estimate, in the unit of what was averaged.
    pub estimate: Estimate,
    /// Effective number of independent draws behind it (Kish: (Σw)²/Σ g w², with g the draws that count as one).
    ///
    /// Below about ten, outside the ladder or in a gap of it, neither estimate nor error is to be believed.
    pub effective_draws: f64,
}

/// Mean and fluctuation of the tempered energy at an inverse temperature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyMoments {
    /// Inverse temperature, 1/energy.
    pub beta: f64,
    /// ⟨E⟩, in energy.
    pub mean: Estimate,
    /// ⟨E²⟩ - ⟨E⟩², in energy².
    pub variance: Estimate,
    /// C = d⟨E⟩/dT = (⟨E²⟩ - ⟨E⟩²)/T², dimensionless: of the tempered energy alone, as the prior is not tempered.
    pub heat_capacity: Estimate,
    /// As in [`Reweighted`].
    pub effective_draws: f64,
}

impl Mbar<'_> {
    /// ln Z(to) - ln Z(from) between any two inverse temperatures, 1/energy.
    ///
    /// Outside the ladder this extrapolates: see [`Reweighted::effective_draws`](super::Reweighted). Errors: an inverse
    /// temperature that is negative or not finite; [`Replicas::Exchanging`] with rungs of different shape.
    pub fn difference(&self, from: f64, to: f64, replicas: Replicas) -> Result<Estimate> {
        let (start, end) = (Weights::new(self, from)?, Weights::new(self, to)?);
        let slope: Vec<f64> = (start.probabilities.iter().zip(&end.probabilities))
            .map(|(a, b)| b - a)
            .collect();
        let error = self.error(replicas, &slope, |rung, _, _, at, energy| {
            end.of(rung, at, energy) - start.of(rung, at, energy)
        });
        Ok(Estimate {
            value: end.ln_z - start.ln_z,
            standard_error: error?,
        })
    }

    /// ln Z(beta) - ln Z(beta_1) at any inverse temperature, 1/energy; dimensionless.
    ///
    /// Errors: as [`Mbar::difference`].
    pub fn ln_z_at(&self, beta: f64, replicas: Replicas) -> Result<Reweighted> {
        Ok(Reweighted {
            estimate: self.difference(self.ladder.betas()[0], beta, replicas)?,
            effective_draws: Weights::new(self, beta)?.effective_draws(),
        })
    }

    /// ⟨A⟩ at any inverse temperature: Σ_n W_n A_n, W_n ∝ w_n exp(-beta E_n) / Σ_k N_k exp(f_k - beta_k E_n).
    ///
    /// `observable[rung][chain][draw]` belongs to the draws of the energy and has their shape; the result has its unit.
    /// The error is that of the influence, free energies included. Errors: another shape; a value that is not finite;
    /// an inverse temperature that is negative or not finite; [`Replicas::Exchanging`] with rungs of different shape.
    pub fn expectation(
        &self,
        beta: f64,
        observable: &[Vec<Vec<f64>>],
        replicas: Replicas,
    ) -> Result<Reweighted> {
        self.ladder.check_shape(observable)?;
        let finite = observable.iter().flatten().flatten().all(|a| a.is_finite());
        ensure!(finite, "the observable has values that are not finite");
        let weights = Weights::new(self, beta)?;
        Ok(Reweighted {
            estimate: weights.mean(replicas, |rung, chain, draw, _| {
                observable[rung][chain][draw]
            })?,
            effective_draws: weights.effective_draws(),
        })
    }

    /// Mean, variance and heat capacity of the tempered energy at any inverse temperature, 1/energy.
    ///
    /// Errors: an inverse temperature that is negative or not finite; [`Replicas::Exchanging`] with rungs of different shape.
    pub fn energy(&self, beta: f64, replicas: Replicas) -> Result<EnergyMoments> {
        let weights = Weights::new(self, beta)?;
        let mean = weights.mean(replicas, |_, _, _, energy| energy)?;
        // To first order the error of the mean does not move the mean square distance from it.
        let variance = weights.mean(replicas, |_, _, _, energy| (energy - mean.value).powi(2))?;
        Ok(EnergyMoments {
            beta,
            mean,
            variance,
            heat_capacity: Estimate {
                value: beta * beta * variance.value,
                standard_error: beta * beta * variance.standard_error,
            },
            effective_draws: weights.effective_draws(),
        })
    }
}

/// The weights of all draws at one inverse temperature.
pub(super) struct Weights<'a> {
    mbar: &'a Mbar<'a>,
    beta: f64,
    /// ln Σ_n w_n exp(-beta E_n) / Σ_k N_k exp(f_k - beta_k E_n) = ln Z(beta) - ln Z(beta_1).
    pub(super) ln_z: f64,
    /// ln w of a draw of each rung: minus ln of its statistical inefficiency.
    ln_count: Vec<f64>,
    /// Mean over the weights of the probabilities of the rungs: minus the derivative of `ln_z` by their free energies.
    pub(super) probabilities: Vec<f64>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(mbar: &'a Mbar<'a>, beta: f64) -> Result<Self> {
        ensure!(
            beta.is_finite() && beta >= 0.0,
            "the inverse temperature is {beta}; it must be finite and not negative"
        );
        let mut weights = Self {
            mbar,
            beta,
            ln_z: 0.0,
            ln_count: mbar.inefficiency.iter().map(|g| -g.ln()).collect(),
            probabilities: Vec::new(),
        };
        weights.ln_z = ln_sum_exp(
            weights
                .draws()
                .map(|(rung, at, energy)| weights.ln(rung, at, energy)),
        );
        weights.probabilities = weights.mean_probabilities(|_, _, _| 1.0);
        Ok(weights)
    }

    /// Weight of a draw, the `at`-th of its rung; all of them add up to 1.
    pub(super) fn of(&self, rung: usize, at: usize, energy: f64) -> f64 {
        (self.ln(rung, at, energy) - self.ln_z).exp()
    }

    /// Effective number of independent draws that the weights leave.
    pub(super) fn effective_draws(&self) -> f64 {
        let squares = self.draws().map(|(rung, at, energy)| {
            self.mbar.inefficiency[rung] * self.of(rung, at, energy).powi(2)
        });
        1.0 / squares.sum::<f64>()
    }

    /// Mean and error of `value(rung, chain, draw, energy)`.
    fn mean(
        &self,
        replicas: Replicas,
        value: impl Fn(usize, usize, usize, f64) -> f64,
    ) -> Result<Estimate> {
        let ladder = self.mbar.ladder;
        let value_at = |rung: usize, at: usize, energy: f64| {
            let length = ladder.draws(rung) / ladder.chains(rung).count();
            value(rung, at / length, at % length, energy)
        };
        let terms = self
            .draws()
            .map(|(rung, at, energy)| self.of(rung, at, energy) * value_at(rung, at, energy));
        let mean: f64 = terms.sum();
        let slope = self.mean_probabilities(|rung, at, e| value_at(rung, at, e) - mean);
        let error = self
            .mbar
            .error(replicas, &slope, |rung, chain, draw, at, e| {
                self.of(rung, at, e) * (value(rung, chain, draw, e) - mean)
            });
        Ok(Estimate {
            value: mean,
            standard_error: error?,
        })
    }

    /// Σ_n W_n value(n) p_k(n) for every rung k.
    fn mean_probabilities(&self, value: impl Fn(usize, usize, f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.mbar.ladder.rungs()];
        for (rung, at, energy) in self.draws() {
            let weighted = self.of(rung, at, energy) * value(rung, at, energy);
            let ln_mixture = self.mbar.ln_mixture[rung][at];
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += weighted * self.mbar.probability(k, energy, ln_mixture);
            }
        }
        sums
    }

    fn ln(&self, rung: usize, at: usize, energy: f64) -> f64 {
        self.ln_count[rung] - self.beta * energy - self.mbar.ln_mixture[rung][at]
    }

    /// Rung, number within it, and energy of every draw.
    fn draws(&self) -> impl Iterator<Item = (usize, usize, f64)> + Clone {
        let ladder = self.mbar.ladder;
        (0..ladder.rungs()).flat_map(move |rung| {
            let energies = ladder.energies(rung).enumerate();
            energies.map(move |(at, energy)| (rung, at, energy))
        })
    }
}
