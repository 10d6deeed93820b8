//! The transition temperature: where the heat capacity peaks.

use super::bootstrap::{Bootstrap, BootstrapOptions, block_bootstrap};
use super::ladder::Estimate;
use super::mbar::Mbar;
use crate::error::Result;
use anyhow::ensure;

/// Inverse temperatures looked at in every interval of the ladder.
const PER_INTERVAL: usize = 4;

/// Steps of golden-section search: the bracket shrinks by 1.5e-4.
const GOLDEN_STEPS: usize = 18;

/// A peak of C = (⟨E²⟩ - ⟨E⟩²)/T² of the tempered energy E.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatCapacityPeak {
    /// Where it is, in energy, with its bootstrap error.
    pub temperature: Estimate,
    /// 16 % and 84 % quantiles of the temperature over the bootstrap: the error bar where it is lopsided.
    pub interval: (f64, f64),
    /// How high it is, dimensionless, with its bootstrap error. The largest of noisy heights: biased upwards.
    pub heat_capacity: Estimate,
    /// Share of the resampled ladders with their highest heat capacity at an end of the ladder, from 0 to 1.
    pub share_at_an_end: f64,
    /// Resampled ladders that MBAR could not solve; left out of the errors.
    pub failed: usize,
}

/// Finds the highest heat capacity between the ends of the ladder, by MBAR, with errors by block bootstrap.
///
/// The equations are solved anew for every resampled ladder, which takes about as long as solving them
/// `options.replicates` times. `uniform` as for [`block_bootstrap`].
///
/// Errors: the heat capacity is highest at an end of the ladder; those of [`block_bootstrap`].
pub fn heat_capacity_peak(
    mbar: &Mbar,
    options: BootstrapOptions,
    uniform: impl Fn(u64, u32) -> f64,
) -> Result<HeatCapacityPeak> {
    let peak = highest(mbar);
    ensure!(
        !peak.at_an_end,
        "the heat capacity is highest at an end of the ladder, T = {}: any peak lies outside the ladder",
        1.0 / peak.beta
    );
    let spread = block_bootstrap(mbar.ladder, options, uniform, |resampled, _| {
        let peak = highest(&mbar.solve_again(resampled)?);
        let at_an_end = f64::from(peak.at_an_end);
        Ok(vec![1.0 / peak.beta, peak.heat_capacity, at_an_end])
    })?;
    let estimate = |value: f64, spread: &Bootstrap| Estimate {
        value,
        standard_error: spread.standard_error,
    };
    Ok(HeatCapacityPeak {
        temperature: estimate(1.0 / peak.beta, &spread[0]),
        interval: (spread[0].low, spread[0].high),
        heat_capacity: estimate(peak.heat_capacity, &spread[1]),
        share_at_an_end: spread[2].mean,
        failed: spread[0].failed,
    })
}

/// The highest point of the heat capacity curve.
struct Peak {
    beta: f64,
    heat_capacity: f64,
    at_an_end: bool,
}

fn highest(mbar: &Mbar) -> Peak {
    let betas = mbar.ladder.betas();
    let mut grid: Vec<f64> = betas
        .windows(2)
        .flat_map(|pair| {
            let at = |k: usize| pair[0] + (pair[1] - pair[0]) * k as f64 / PER_INTERVAL as f64;
            (0..PER_INTERVAL).map(at)
        })
        .collect();
    grid.extend(betas.last());
    let draws = Draws::of(mbar);
    let heights: Vec<f64> = grid.iter().map(|beta| draws.heat_capacity(*beta)).collect();
    let best = (0..grid.len()).fold(0, |a, b| if heights[b] > heights[a] { b } else { a });
    if best == 0 || best + 1 == grid.len() {
        return Peak {
            beta: grid[best],
            heat_capacity: heights[best],
            at_an_end: true,
        };
    }
    let beta = golden_section(grid[best - 1], grid[best + 1], |b| draws.heat_capacity(b));
    Peak {
        beta,
        heat_capacity: draws.heat_capacity(beta),
        at_an_end: false,
    }
}

/// All draws as the mixture sees them.
struct Draws {
    /// Energy, and ln of the draw's weight at infinite temperature.
    draws: Vec<(f64, f64)>,
}

impl Draws {
    fn of(mbar: &Mbar) -> Self {
        let rungs = 0..mbar.ladder.rungs();
        let draws = rungs.flat_map(|rung| {
            let ln_count = -mbar.inefficiency[rung].ln();
            let energies = mbar.ladder.energies(rung).zip(&mbar.ln_mixture[rung]);
            energies.map(move |(energy, ln_mixture)| (energy, ln_count - ln_mixture))
        });
        Self {
            draws: draws.collect(),
        }
    }

    fn heat_capacity(&self, beta: f64) -> f64 {
        let ln_weights = self.draws.iter().map(|(energy, ln)| ln - beta * energy);
        let most = ln_weights.clone().fold(f64::NEG_INFINITY, f64::max);
        // About any fixed energy, so that one pass does.
        let centre = self.draws[0].0;
        let (mut norm, mut first, mut second) = (0.0, 0.0, 0.0);
        for (ln, (energy, _)) in ln_weights.zip(&self.draws) {
            let (weight, d) = ((ln - most).exp(), energy - centre);
            norm += weight;
            first += weight * d;
            second += weight * d * d;
        }
        let mean = first / norm;
        beta * beta * (second / norm - mean * mean)
    }
}

/// Where `height` is largest between two ends, if it rises and then falls.
fn golden_section(mut low: f64, mut high: f64, height: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_a, mut at_b) = (height(a), height(b));
    for _ in 0..GOLDEN_STEPS {
        if at_a > at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - ratio * (high - low);
            at_a = height(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + ratio * (high - low);
            at_b = height(b);
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_found() {
        let at = golden_section(0.0, 2.0, |x| -(x - 0.7).powi(2));
        assert!((at - 0.7).abs() < 4e-4, "{at}");
    }
}
