//! Replica exchange: a ladder of temperatures between which replicas swap places, and what is learnt from where they go.
//!
//! **Notation.** A *ladder* is a list of inverse temperatures β = 1/T, strictly decreasing: rung 0 is the cold end (the
//! bottom, T_1), the last rung the hot end (the top, T_R), which may be β = 0, the prior. *Pair* j is rungs j and j + 1.
//! A *replica* is a set of parameters that keeps its number while it changes rung: temperatures move, parameters do not.
//! A *sweep* is one step of every replica followed by one call of [`swap`].
//!
//! **Energies.** On the rung of β the law is p(w) ∝ exp(-β E(w)) p_0(w), and E is all that β multiplies, nothing else:
//! the likelihood part where the prior is p_0, the whole energy where the prior is tempered too. A swap that uses another
//! energy than the sampler of the rungs does leaves no rung's law invariant. β carries the inverse unit of E.
//!
//! Sources: Baldock, "On Bayesian neural networks at finite temperature" (2019), algorithm 1; Syed, Bouchard-Côté,
//! Deligiannidis and Doucet, "Non-reversible parallel tempering: a scalable highly parallel MCMC scheme", Journal of the
//! Royal Statistical Society B 84 (2022) 321; Katzgraber, Trebst, Huse and Troyer, "Feedback-optimized parallel tempering
//! Monte Carlo", Journal of Statistical Mechanics (2006) P03018.

mod barrier;
mod batches;
mod index;
mod ladders;
mod minimise;
mod monotone;
mod numbers;
mod pairs;
mod replica;
mod report;
mod round_trips;
mod settings;
mod tune;

#[cfg(test)]
mod tests;

pub use barrier::{Barrier, guarded, recommended_rungs, round_trip_rate, round_trip_rate_limit};
pub use batches::Batches;
pub use index::{IndexProcess, PairStatistics};
pub use ladders::{Ladders, RoundReport};
pub use minimise::{Descent, Minimised, RoughMinimisation, rough_minimise};
pub use monotone::Monotone;
pub use numbers::Numbers;
pub use pairs::{Assignment, Attempt, Pairs, acceptance, swap};
pub use replica::{Replica, Talk};
pub use report::{LadderReport, RungEnergy};
pub use round_trips::{Label, RoundTrips};
pub use settings::Exchange;
pub use tune::{Next, Round, Rounds};

use crate::error::Result;

/// The inverse temperatures of `temperatures`, which increase; an infinite one is the prior, β = 0.
///
/// # Errors
/// If a temperature is not above 0, or they do not strictly increase, or there are fewer than two.
pub fn betas_of(temperatures: &[f64]) -> Result<Vec<f64>> {
    for (rung, t) in temperatures.iter().enumerate() {
        anyhow::ensure!(
            *t > 0.0,
            "the temperature of rung {rung} is {t}, but temperatures are above 0"
        );
    }
    let betas: Vec<f64> = temperatures.iter().map(|t| 1.0 / t).collect();
    check_ladder(&betas)?;
    Ok(betas)
}

/// # Errors
/// If `betas` is no ladder: fewer than two, one negative or not finite, or not strictly decreasing.
pub fn check_ladder(betas: &[f64]) -> Result<()> {
    anyhow::ensure!(
        betas.len() >= 2,
        "a ladder has at least 2 rungs, but this one has {}",
        betas.len()
    );
    for (rung, beta) in betas.iter().enumerate() {
        anyhow::ensure!(
            beta.is_finite() && *beta >= 0.0,
            "the inverse temperature of rung {rung} is {beta}, but they are finite and not negative"
        );
    }
    for (rung, pair) in betas.windows(2).enumerate() {
        anyhow::ensure!(
            pair[0] > pair[1],
            "rungs go from cold to hot, but the inverse temperatures of rungs {rung} and {} are {} and {}",
            rung + 1,
            pair[0],
            pair[1]
        );
    }
    Ok(())
}

/// The variable x in which functions of β are interpolated over `betas`: ln(β + shift), as (shift, x of β).
///
/// A ladder spans decades, and where E is harmonic (d degrees of freedom, ⟨E⟩ = dT/2) the barrier is linear in ln β: between
/// rungs far apart a polynomial in β cannot follow it. ln β has no value at the prior, where the barrier is linear in β
/// instead, since its slope there, half the mean difference of two prior energies, is finite. Hence a shift, 0 without a
/// prior rung, where x turns from linear to logarithmic: where the three hottest rungs, 0 < β_1 < β_2, are at equal distances
/// in x, as they are when their rejections are equal, β_1²/(β_2 - 2β_1); but within β_1 to 10 β_1, since that difference may
/// be all noise.
fn coordinate(betas: &[f64]) -> (f64, impl Fn(f64) -> f64) {
    let shift = match betas {
        [.., second, first, 0.0] => {
            let equal = first * first / (second - 2.0 * first);
            // Rungs closer than linear would put it at infinity.
            let equal = if equal > 0.0 { equal } else { f64::INFINITY };
            equal.clamp(*first, 10.0 * first)
        }
        [first, 0.0] => *first,
        _ => 0.0,
    };
    (shift, move |beta: f64| (beta + shift).ln())
}
