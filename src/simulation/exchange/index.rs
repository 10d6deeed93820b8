//! What is kept of the index process, sweep by sweep: how often swaps are accepted, and where the replicas go.

use super::batches::Batches;
use super::numbers::{Numbers, Reader};
use super::round_trips::RoundTrips;
use super::{Assignment, Attempt};
use crate::error::Result;

/// What is known of the swaps of one pair of rungs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairStatistics {
    /// Attempts between two energies that gave a probability.
    pub attempts: u64,
    /// How many of them were accepted.
    pub accepted: u64,
    /// Attempts without a probability, in which a replica that had failed was in the way; in none of the other numbers.
    pub blocked: u64,
    /// Mean over the attempts of min(1, exp(Δβ ΔE)), the expected share of accepted ones: the same mean as that of
    /// accepted/attempts with less variance, since the uniform numbers are integrated out. NaN without attempts.
    pub acceptance: f64,
    /// Standard error of `acceptance` by batch means over the attempts; NaN with fewer than two.
    pub error: f64,
}

impl PairStatistics {
    /// r = 1 - acceptance, the expected share of rejected swaps; its error is [`PairStatistics::error`].
    pub fn rejection(&self) -> f64 {
        1.0 - self.acceptance
    }
}

/// The index process so far, in memory of order R, the number of rungs.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexProcess {
    sweeps: u64,
    pairs: Vec<Pair>,
    /// Rejection probabilities, summed over the attempts of a sweep; batches begin with two sweeps since alternating pairs
    /// have period two.
    rejections: Batches,
    trips: RoundTrips,
}

#[derive(Debug, Clone, PartialEq)]
struct Pair {
    accepted: u64,
    blocked: u64,
    acceptance: Batches,
}

impl IndexProcess {
    /// Begin with the replicas where they are.
    ///
    /// # Errors
    /// With fewer than two rungs.
    pub fn new(assignment: &Assignment) -> Result<Self> {
        let rungs = assignment.len();
        anyhow::ensure!(rungs >= 2, "{rungs} rungs have nothing to swap");
        let pair = Pair {
            accepted: 0,
            blocked: 0,
            acceptance: Batches::new(1),
        };
        Ok(Self {
            sweeps: 0,
            pairs: vec![pair; rungs - 1],
            rejections: Batches::new(2),
            trips: RoundTrips::new(assignment),
        })
    }

    /// Add a sweep: its attempts, and where the replicas are after them.
    ///
    /// # Errors
    /// If the sweep was of a ladder of another length; nothing is added then.
    pub fn add(&mut self, attempts: &[Attempt], assignment: &Assignment) -> Result<()> {
        let n = self.pairs.len();
        anyhow::ensure!(
            assignment.len() == n + 1 && attempts.iter().all(|a| a.pair < n),
            "a sweep over {} rungs in the index process of {}",
            assignment.len(),
            n + 1
        );
        self.sweeps += 1;
        let mut rejections = 0.0;
        for attempt in attempts {
            let pair = &mut self.pairs[attempt.pair];
            if attempt.acceptance.is_nan() {
                pair.blocked += 1;
                continue;
            }
            pair.accepted += u64::from(attempt.accepted);
            pair.acceptance.add(attempt.acceptance);
            rejections += 1.0 - attempt.acceptance;
        }
        self.rejections.add(rejections);
        self.trips.add(assignment);
        Ok(())
    }

    /// Sweeps so far: the number of the next one, where the process was begun with the run.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Whether any swap was attempted.
    pub fn has_tried(&self) -> bool {
        self.pairs.iter().any(|pair| pair.acceptance.count() > 0)
    }

    /// What is known of each pair.
    pub fn pairs(&self) -> Vec<PairStatistics> {
        let of = |pair: &Pair| PairStatistics {
            attempts: pair.acceptance.count(),
            accepted: pair.accepted,
            blocked: pair.blocked,
            acceptance: pair.acceptance.mean(),
            error: pair.acceptance.error(),
        };
        self.pairs.iter().map(of).collect()
    }

    /// Λ, the sum of the rejections of all pairs (the estimator of Syed et al. 2022), and its standard error.
    ///
    /// The error is that of the sum of a sweep, not of the pairs added up: neighbouring pairs share a rung and are
    /// correlated. NaN where a pair was never attempted, or too few sweeps were made.
    pub fn barrier(&self) -> (f64, f64) {
        let pairs = self.pairs();
        let sum = pairs.iter().map(PairStatistics::rejection).sum();
        let attempts: u64 = pairs.iter().map(|pair| pair.attempts).sum();
        let per_sweep = attempts as f64 / self.sweeps as f64;
        let error = self.rejections.error() * pairs.len() as f64 / per_sweep;
        (sum, error)
    }

    /// Round trips, restarts and flow.
    pub fn trips(&self) -> &RoundTrips {
        &self.trips
    }

    /// Everything, for a checkpoint.
    pub fn to_numbers(&self) -> Numbers {
        let mut out = Numbers::default();
        out.whole.extend([self.sweeps, self.pairs.len() as u64]);
        for pair in &self.pairs {
            out.whole.extend([pair.accepted, pair.blocked]);
            pair.acceptance.write(&mut out);
        }
        self.rejections.write(&mut out);
        self.trips.write(&mut out);
        out
    }

    /// What [`IndexProcess::to_numbers`] wrote, to the last bit.
    ///
    /// # Errors
    /// If the numbers are none that it writes.
    pub fn from_numbers(numbers: &Numbers) -> Result<Self> {
        let mut reader = Reader::new(numbers);
        let (sweeps, n) = (reader.one()?, reader.count()?);
        anyhow::ensure!(
            (1..=numbers.whole.len()).contains(&n),
            "the checkpoint of the exchange has {n} pairs of rungs"
        );
        let pair = |_| {
            Ok(Pair {
                accepted: reader.one()?,
                blocked: reader.one()?,
                acceptance: Batches::read(&mut reader)?,
            })
        };
        let pairs = (0..n).map(pair).collect::<Result<_>>()?;
        let out = Self {
            sweeps,
            pairs,
            rejections: Batches::read(&mut reader)?,
            trips: RoundTrips::read(&mut reader, n + 1)?,
        };
        reader.end()?;
        Ok(out)
    }
}
