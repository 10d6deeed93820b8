//! Rounds of doubling length, each on the ladder that the one before it suggests, until all rejections are equal.

use super::barrier::{Barrier, guarded, recommended_rungs};
use super::index::PairStatistics;
use crate::error::Result;

/// How a ladder is tuned (the rounds of Syed et al. 2022; the stop is ours).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    /// Sweeps of the first round, at least 2; each next one has twice as many.
    pub first: u64,
    /// Most rounds, at least 1.
    pub most: u32,
    /// How far a rejection may be from the mean of all, absolute. The tuning stops when none is further, provided that
    /// standard errors of the rejections are at most a quarter of this: otherwise a ladder could pass by chance.
    pub tolerance: f64,
}

/// What a round found.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Number of the round, from 0.
    pub number: u32,
    /// Its sweeps.
    pub sweeps: u64,
    /// The ladder it ran on.
    pub betas: Vec<f64>,
    /// Rejection of each pair, [`guarded`].
    pub rejections: Vec<f64>,
    /// Their standard errors; NaN where they are not known.
    pub errors: Vec<f64>,
    /// Λ, the sum of the rejections.
    pub barrier: f64,
    /// Largest distance of a rejection from their mean.
    pub spread: f64,
    /// 2Λ + 1, the number of rungs with most round trips per work.
    pub recommended_rungs: usize,
}

/// What to do after a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Another round, on this ladder.
    Again {
        /// The re-spaced ladder.
        betas: Vec<f64>,
        /// Sweeps of the round.
        sweeps: u64,
    },
    /// Nothing: rejections are equal on the ladder as it is, and re-spacing it would only follow the noise.
    Equal,
    /// Stop with this re-spaced ladder; rejections were not yet equal, or not known well enough, on the last one.
    OutOfRounds {
        /// The re-spaced ladder.
        betas: Vec<f64>,
    },
}

impl Rounds {
    /// # Errors
    /// If an option is out of range, or the last round would have more than 2^63 sweeps.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(
            self.first >= 2,
            "the first round of tuning has at least 2 sweeps, not {}: alternating pairs need two to try all",
            self.first
        );
        let doublings = self.first.leading_zeros();
        anyhow::ensure!(
            (1..=doublings).contains(&self.most),
            "tuning has 1 to {doublings} rounds when the first has {} sweeps, not {}",
            self.first,
            self.most
        );
        anyhow::ensure!(
            self.tolerance > 0.0 && self.tolerance < 1.0,
            "the tolerance of rejections is above 0 and below 1, not {}",
            self.tolerance
        );
        Ok(())
    }

    /// Sweeps of round `number`, counted from 0: first · 2^number.
    pub fn sweeps(&self, number: u32) -> u64 {
        self.first
            .saturating_mul(1u64.checked_shl(number).unwrap_or(u64::MAX))
    }

    /// What round `number` on the ladder `betas` found, and what is next.
    ///
    /// # Errors
    /// As for [`Rounds::check`] and [`Barrier::new`]; if a pair was never attempted since a failed replica stands in the
    /// way; if the re-spaced rungs are too close to tell apart.
    pub fn after(
        &self,
        number: u32,
        betas: &[f64],
        pairs: &[PairStatistics],
    ) -> Result<(Round, Next)> {
        self.check()?;
        for (j, pair) in pairs.iter().enumerate() {
            anyhow::ensure!(
                pair.attempts > 0 || pair.blocked == 0,
                "rungs {j} and {} never tried to swap: a replica without an energy stands in the way",
                j + 1
            );
        }
        let rejections: Vec<f64> = pairs
            .iter()
            .map(|pair| guarded(pair.rejection(), pair.attempts))
            .collect();
        let barrier = Barrier::new(betas, &rejections)?;
        let mean = barrier.total() / rejections.len() as f64;
        let spread = rejections
            .iter()
            .fold(0.0, |most: f64, r| most.max((r - mean).abs()));
        let round = Round {
            number,
            sweeps: self.sweeps(number),
            betas: betas.to_vec(),
            errors: pairs.iter().map(|pair| pair.error).collect(),
            rejections,
            barrier: barrier.total(),
            spread,
            recommended_rungs: recommended_rungs(barrier.total())?,
        };
        // An error that is NaN is no small one.
        let known = round.errors.iter().all(|e| *e <= self.tolerance / 4.0);
        if known && spread <= self.tolerance {
            return Ok((round, Next::Equal));
        }
        let betas = barrier.ladder(betas.len())?;
        let next = if number + 1 < self.most {
            let sweeps = self.sweeps(number + 1);
            Next::Again { betas, sweeps }
        } else {
            Next::OutOfRounds { betas }
        };
        Ok((round, next))
    }
}
