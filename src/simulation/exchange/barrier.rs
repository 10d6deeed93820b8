//! The communication barrier of a ladder, and the ladder on which every swap is rejected equally often.

use super::monotone::Monotone;
use super::{check_ladder, coordinate};
use crate::error::Result;

/// Λ(β), the cumulative rejection from the hot end of a ladder up to β, and its derivative λ(β), the local barrier.
///
/// λ(β) = ½ E|V(w) - V(w')| for two independent states at β and the energy V that β multiplies, r = λ δβ + O(δβ³) is the
/// rejection of a swap across δβ, and Λ(β) = ∫ λ dβ, dimensionless (Syed et al. 2022). At the rungs Λ is the sum of the
/// rejections of the pairs that are hotter; between them it is interpolated monotonically in ln(β + shift), for which see
/// `coordinate`.
///
/// Σ r is at most ∫ λ dβ: too small by about π r³/12 for each pair (energies that are normal, r = erf(√π/2 ∫λ)), half of it
/// where r is 0.99. Where rejections are near 1 the barrier is only known to be no smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Barrier {
    betas: Vec<f64>,
    shift: f64,
    cumulative: Monotone,
}

impl Barrier {
    /// Of the ladder `betas` and the rejection of each of its pairs, 0 to 1; [`guarded`] ones where they were measured.
    ///
    /// # Errors
    /// If `betas` is no ladder, there is not one rejection per pair, one is outside 0 to 1 or NaN, or all are 0.
    pub fn new(betas: &[f64], rejections: &[f64]) -> Result<Self> {
        check_ladder(betas)?;
        check_rejections(rejections)?;
        anyhow::ensure!(
            rejections.len() + 1 == betas.len(),
            "{} rungs have {} pairs, but {} rejections are given",
            betas.len(),
            betas.len() - 1,
            rejections.len()
        );
        anyhow::ensure!(
            rejections.iter().any(|r| *r > 0.0),
            "no swap is ever rejected: there is no barrier between β = {} and {}, and any ladder will do",
            betas[0],
            betas[betas.len() - 1]
        );
        let (shift, x) = coordinate(betas);
        // From the hot end, where Λ = 0.
        let mut sum = 0.0;
        let mut cumulative = vec![0.0];
        cumulative.extend(rejections.iter().rev().map(|r| {
            sum += r;
            sum
        }));
        let x = betas.iter().rev().map(|beta| x(*beta)).collect();
        Ok(Self {
            betas: betas.to_vec(),
            shift,
            cumulative: Monotone::new(x, cumulative)?,
        })
    }

    /// Λ, the barrier of the whole ladder: the sum of all rejections, dimensionless.
    pub fn total(&self) -> f64 {
        self.cumulative(self.betas[0])
    }

    /// Λ(β), dimensionless, 0 at the hot end; NaN outside the ladder.
    pub fn cumulative(&self, beta: f64) -> f64 {
        self.cumulative.value((beta + self.shift).ln())
    }

    /// λ(β) = dΛ/dβ, in the unit of the energy; NaN outside the ladder.
    pub fn local(&self, beta: f64) -> f64 {
        let x = (beta + self.shift).ln();
        self.cumulative.derivative(x) / (beta + self.shift)
    }

    /// The ladder of `rungs` rungs with the same ends on which all rejections are equal, as far as the interpolation goes:
    /// Λ(β_k) = Λ (R - 1 - k)/(R - 1) (Syed et al. 2022). Each rejection will be near Λ/(R - 1).
    ///
    /// # Errors
    /// With fewer than 2 rungs, or so many that two of them are the same number.
    pub fn ladder(&self, rungs: usize) -> Result<Vec<f64>> {
        anyhow::ensure!(rungs >= 2, "a ladder has at least 2 rungs, not {rungs}");
        let (cold, hot) = (self.betas[0], self.betas[self.betas.len() - 1]);
        let last = rungs - 1;
        let between = (1..last).map(|k| {
            let share = (last - k) as f64 / last as f64;
            let x = self.cumulative.inverse(share * self.total());
            x.exp() - self.shift
        });
        // The ends are what was asked for, to the last bit.
        let betas: Vec<f64> = [cold].into_iter().chain(between).chain([hot]).collect();
        anyhow::ensure!(
            check_ladder(&betas).is_ok(),
            "{rungs} rungs between β = {cold} and {hot} are too close to tell apart"
        );
        Ok(betas)
    }
}

/// A measured rejection, kept away from 0 and 1 where `attempts` are too few to tell: (n r + ½)/(n + 1).
///
/// The mean of the Beta posterior under Jeffreys's prior: within (0, 1) always, ½ without attempts (or for a NaN), at most
/// 1/(2n) away, which is less than the error unless r is near 0 or 1. A pair measured as 0 would otherwise leave Λ flat, its
/// rungs anywhere, and one of 1 all attempts would hide that its barrier may be larger.
pub fn guarded(rejection: f64, attempts: u64) -> f64 {
    if attempts == 0 || rejection.is_nan() {
        return 0.5;
    }
    let n = attempts as f64;
    (n * rejection.clamp(0.0, 1.0) + 0.5) / (n + 1.0)
}

/// Round trips per sweep, of all replicas together, with alternating pairs: 1/(2 + 2 Σ r/(1 - r)) (Syed et al. 2022).
///
/// Exact where every step of a replica draws its energy afresh; a real one is slower, and the shortfall is what the
/// sampler within the rungs costs.
///
/// 0 where a rejection is 1.
///
/// # Errors
/// If there is no rejection, or one is outside 0 to 1 or NaN.
pub fn round_trip_rate(rejections: &[f64]) -> Result<f64> {
    check_rejections(rejections)?;
    // 1/0 = ∞ is meant.
    let odds: f64 = rejections.iter().map(|r| r / (1.0 - r)).sum();
    Ok(1.0 / (2.0 + 2.0 * odds))
}

/// Round trips per sweep on infinitely many rungs, 1/(2 + 2Λ): what no ladder exceeds (Syed et al. 2022).
pub fn round_trip_rate_limit(barrier: f64) -> f64 {
    1.0 / (2.0 + 2.0 * barrier)
}

/// The number of rungs with the most round trips per step of a replica: 1 + 2Λ, rounded up, at least 2.
///
/// With N pairs of rejection Λ/N the rate is 1/(2 + 2ΛN/(N - Λ)); divided by the N + 1 replicas, it is largest at exactly
/// N = 2Λ, where the rejection is ½ (Syed et al. 2022: N ≈ 2Λ, of which N + 1 is the number of rungs). It counts the work
/// of all replicas: where each has a core of its own, more rungs are better. Where rejections are near 1, Λ is only a
/// lower bound, and so is this.
///
/// # Errors
/// If the barrier is negative or not finite.
pub fn recommended_rungs(barrier: f64) -> Result<usize> {
    anyhow::ensure!(
        barrier.is_finite() && barrier >= 0.0,
        "a communication barrier is finite and not negative, not {barrier}"
    );
    Ok(1 + (2.0 * barrier).ceil().max(1.0) as usize)
}

fn check_rejections(rejections: &[f64]) -> Result<()> {
    anyhow::ensure!(
        !rejections.is_empty(),
        "a ladder has at least one pair of rungs"
    );
    for (pair, r) in rejections.iter().enumerate() {
        anyhow::ensure!(
            (0.0..=1.0).contains(r),
            "the rejection of rungs {pair} and {} is {r}, but it is from 0 to 1",
            pair + 1
        );
    }
    Ok(())
}
