//! Swaps between neighbouring rungs: which pairs are tried in a sweep, and the Metropolis decision.

use super::check_ladder;
use super::numbers::{Numbers, Reader};
use crate::error::Result;

/// Which pairs of neighbouring rungs are tried in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// Pairs 0, 2, 4, … in even sweeps, 1, 3, 5, … in odd ones (deterministic even-odd, DEO; Syed et al. 2022). Not
    /// reversible: a replica goes on in its direction until a swap is rejected.
    Alternating,
    /// As many pairs as rungs, one after the other, each drawn uniformly with replacement (Baldock 2019, algorithm 1).
    Random,
}

/// One attempted swap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt {
    /// The pair: rungs `pair` and `pair + 1`.
    pub pair: usize,
    /// Its probability, [`acceptance`]; NaN where the energies gave none.
    pub acceptance: f64,
    /// Whether the replicas swapped.
    pub accepted: bool,
}

/// Which replica is on which rung: two permutations, each the inverse of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    rung_of: Vec<usize>,
    replica_at: Vec<usize>,
}

impl Assignment {
    /// Replica k on rung k.
    pub fn new(rungs: usize) -> Self {
        Self {
            rung_of: (0..rungs).collect(),
            replica_at: (0..rungs).collect(),
        }
    }

    /// Number of rungs.
    pub fn len(&self) -> usize {
        self.rung_of.len()
    }

    /// Whether there is no rung.
    pub fn is_empty(&self) -> bool {
        self.rung_of.is_empty()
    }

    /// The rung of each replica.
    pub fn rung_of(&self) -> &[usize] {
        &self.rung_of
    }

    /// The replica on each rung.
    pub fn replica_at(&self) -> &[usize] {
        &self.replica_at
    }

    /// The rung of each replica, as whole numbers.
    pub fn to_numbers(&self) -> Numbers {
        Numbers {
            whole: self.rung_of.iter().map(|r| *r as u64).collect(),
            real: Vec::new(),
        }
    }

    /// What [`Assignment::to_numbers`] wrote.
    ///
    /// # Errors
    /// If the numbers are no permutation of 0, 1, ….
    pub fn from_numbers(numbers: &Numbers) -> Result<Self> {
        let rungs = numbers.whole.len();
        let mut reader = Reader::new(numbers);
        let mut out = Self {
            rung_of: Vec::with_capacity(rungs),
            replica_at: vec![usize::MAX; rungs],
        };
        for (replica, rung) in reader.whole(rungs)?.iter().enumerate() {
            let rung = usize::try_from(*rung).unwrap_or(usize::MAX);
            let free = out.replica_at.get(rung) == Some(&usize::MAX);
            anyhow::ensure!(
                free,
                "the checkpoint puts replica {replica} on rung {rung}, which is taken or is none of the {rungs}"
            );
            out.replica_at[rung] = replica;
            out.rung_of.push(rung);
        }
        reader.end()?;
        Ok(out)
    }

    fn exchange(&mut self, pair: usize) {
        self.replica_at.swap(pair, pair + 1);
        self.rung_of[self.replica_at[pair]] = pair;
        self.rung_of[self.replica_at[pair + 1]] = pair + 1;
    }
}

/// Probability of a swap, min(1, exp[(β_0 - β_1)(E_0 - E_1)]), of the replicas with energies E on the rungs of β
/// (Baldock 2019, algorithm 1).
///
/// NaN where an energy is NaN or both are the same infinity. A replica of infinite energy (no likelihood at all, which is
/// part of the law at β = 0) always leaves for the hotter rung and never for the colder one.
pub fn acceptance(betas: [f64; 2], energies: [f64; 2]) -> f64 {
    of_log_ratio(log_ratio(betas, energies))
}

fn log_ratio(betas: [f64; 2], energies: [f64; 2]) -> f64 {
    (betas[0] - betas[1]) * (energies[0] - energies[1])
}

fn of_log_ratio(log_ratio: f64) -> f64 {
    // Not `min`, which would turn a NaN into 1.
    if log_ratio > 0.0 {
        1.0
    } else {
        log_ratio.exp()
    }
}

/// Try the pairs of one sweep and move the replicas that swap; the attempts, in the order they were made.
///
/// - `sweep`: which call this is, counted 0, 1, 2, …. Its parity chooses the pairs: were it the step number of a run that
///   swaps every tenth step, odd pairs would never be tried.
/// - `betas`: per rung. `energies`: per *replica*, of its parameters as they are, in the inverse unit of β; NaN for a
///   replica that has failed, which then stays where it is and is in everybody's way.
/// - `uniform`: a uniform number in [0, 1) for each element, fixed by the seed and the sweep. Element j decides on pair j of
///   [`Pairs::Alternating`]; elements 2k and 2k + 1 draw the k-th pair of [`Pairs::Random`] and decide on it. Nothing else
///   is random, so that neither threads nor an interruption change what happens.
///
/// # Errors
/// If the lengths differ, or `betas` is no ladder.
pub fn swap(
    pairs: Pairs,
    sweep: u64,
    betas: &[f64],
    energies: &[f64],
    assignment: &mut Assignment,
    uniform: impl Fn(u32) -> f64,
) -> Result<Vec<Attempt>> {
    check_ladder(betas)?;
    anyhow::ensure!(
        energies.len() == betas.len() && assignment.len() == betas.len(),
        "a swap needs one energy and one replica per rung, but there are {} rungs, {} energies and {} replicas",
        betas.len(),
        energies.len(),
        assignment.len()
    );
    Ok(swap_by(
        log_ratio, pairs, sweep, betas, energies, assignment, uniform,
    ))
}

/// [`swap`] with any log ratio of probabilities: tests show that a wrong one is noticed.
pub(super) fn swap_by(
    log_ratio: impl Fn([f64; 2], [f64; 2]) -> f64,
    pairs: Pairs,
    sweep: u64,
    betas: &[f64],
    energies: &[f64],
    assignment: &mut Assignment,
    uniform: impl Fn(u32) -> f64,
) -> Vec<Attempt> {
    let n = betas.len() - 1;
    let mut attempt = |pair: usize, uniform: f64| {
        let [a, b] = [pair, pair + 1].map(|rung| energies[assignment.replica_at[rung]]);
        let acceptance = of_log_ratio(log_ratio([betas[pair], betas[pair + 1]], [a, b]));
        let accepted = uniform < acceptance;
        if accepted {
            assignment.exchange(pair);
        }
        Attempt {
            pair,
            acceptance,
            accepted,
        }
    };
    match pairs {
        Pairs::Alternating => ((sweep % 2) as usize..n)
            .step_by(2)
            .map(|pair| attempt(pair, uniform(pair as u32)))
            .collect(),
        Pairs::Random => (0..betas.len() as u32)
            .map(|k| {
                // The bound holds even for a uniform number of 1.
                let pair = ((uniform(2 * k) * n as f64) as usize).min(n - 1);
                attempt(pair, uniform(2 * k + 1))
            })
            .collect(),
    }
}
