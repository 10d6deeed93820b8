//! The density of states, from the draws of a whole ladder.

use super::ladder::{Estimate, Replicas};
use super::mbar::Mbar;
use crate::error::Result;
use anyhow::ensure;

/// ln g over bins of the energy, and its slope between them.
///
/// With Z(beta) = ∫ g(E) exp(-beta E) dE and Z = 1 at the first rung of the ladder. A bin without draws has ln g = NaN, and no draws.
#[derive(Debug, Clone, PartialEq)]
pub struct DensityOfStates {
    /// ln of the mean of g over each bin, in -ln energy.
    pub ln_g: Vec<Estimate>,
    /// The microcanonical 1/T = d ln g/dE from the middle of each bin to that of the next, in 1/energy.
    pub beta: Vec<Estimate>,
    /// Effective number of independent draws in each bin. Below about ten, the error bar is not to be believed.
    pub effective_draws: Vec<f64>,
}

impl Mbar<'_> {
    /// The density of states over the bins between increasing edges: g ΔE = Σ_n w_n / Σ_k N_k exp(f_k - beta_k E_n) over the draws of a bin.
    ///
    /// This is the multi-histogram estimate without histograms (Ferrenberg and Swendsen, Physical Review Letters 63 (1989) 1195; Shirts and Chodera 2008, eq. 15).
    /// Errors are those of the influence, free energies included. Errors: edges that do not increase; [`Replicas::Exchanging`] with rungs of
    /// different shape.
    pub fn density_of_states(&self, edges: &[f64], replicas: Replicas) -> Result<DensityOfStates> {
        let increase = edges.windows(2).all(|e| e[0] < e[1]);
        ensure!(
            edges.len() >= 2 && increase && edges.iter().all(|e| e.is_finite()),
            "the edges of bins must increase, and be two at least"
        );
        let bins: Vec<Bin> = edges
            .windows(2)
            .map(|e| Bin::new(self, e[0], e[1]))
            .collect();
        let weight = |bin: &Bin, rung: usize, at: usize, energy: f64| match bin.holds(energy) {
            true => (self.ln_weight(rung, at) - bin.ln_mass).exp(),
            false => 0.0,
        };
        let of_bin = |bin: &Bin| -> Result<Estimate> {
            let error = self.error(replicas, &bin.probabilities, |rung, _, _, at, energy| {
                weight(bin, rung, at, energy)
            });
            Ok(Estimate {
                value: bin.ln_mass - (bin.high - bin.low).ln(),
                standard_error: if bin.ln_mass.is_finite() {
                    error?
                } else {
                    f64::NAN
                },
            })
        };
        let ln_g = bins.iter().map(of_bin).collect::<Result<Vec<_>>>()?;
        let between = |k: usize| -> Result<Estimate> {
            let (a, b) = (&bins[k], &bins[k + 1]);
            let apart = 0.5 * (b.high - a.low);
            let slope = a.probabilities.iter().zip(&b.probabilities);
            let slope: Vec<f64> = slope.map(|(a, b)| (b - a) / apart).collect();
            let error = self.error(replicas, &slope, |rung, _, _, at, energy| {
                (weight(b, rung, at, energy) - weight(a, rung, at, energy)) / apart
            });
            let value = (ln_g[k + 1].value - ln_g[k].value) / apart;
            Ok(Estimate {
                value,
                standard_error: if value.is_finite() { error? } else { f64::NAN },
            })
        };
        Ok(DensityOfStates {
            beta: (0..bins.len() - 1).map(between).collect::<Result<_>>()?,
            effective_draws: bins.iter().map(|b| b.effective_draws).collect(),
            ln_g,
        })
    }

    /// ln of the weight of a draw, the `at`-th of its rung, at infinite temperature.
    fn ln_weight(&self, rung: usize, at: usize) -> f64 {
        -self.inefficiency[rung].ln() - self.ln_mixture[rung][at]
    }
}

/// What is in a bin.
struct Bin {
    low: f64,
    high: f64,
    /// ln ∫ g dE over it; NaN if no draw is in it.
    ln_mass: f64,
    /// Mean over the weights of the probabilities of the rungs.
    probabilities: Vec<f64>,
    effective_draws: f64,
}

impl Bin {
    fn new(mbar: &Mbar, low: f64, high: f64) -> Self {
        let mut bin = Self {
            low,
            high,
            ln_mass: f64::NAN,
            probabilities: vec![0.0; mbar.ladder.rungs()],
            effective_draws: 0.0,
        };
        let mut inside = Vec::new();
        for rung in 0..mbar.ladder.rungs() {
            let energies = mbar.ladder.energies(rung).enumerate();
            let here = energies.filter(|(_, e)| bin.holds(*e));
            inside.extend(here.map(|(at, e)| (rung, at, e, mbar.ln_weight(rung, at))));
        }
        if inside.is_empty() {
            return bin;
        }
        bin.ln_mass = super::ladder::ln_sum_exp(inside.iter().map(|x| x.3));
        let mut squares = 0.0;
        for (rung, at, energy, ln_weight) in inside {
            let weight = (ln_weight - bin.ln_mass).exp();
            squares += mbar.inefficiency[rung] * weight * weight;
            let ln_mixture = mbar.ln_mixture[rung][at];
            for (k, p) in bin.probabilities.iter_mut().enumerate() {
                *p += weight * mbar.probability(k, energy, ln_mixture);
            }
        }
        bin.effective_draws = 1.0 / squares;
        bin
    }

    fn holds(&self, energy: f64) -> bool {
        (self.low..self.high).contains(&energy)
    }
}
