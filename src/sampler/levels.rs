//! The levels of the Hamiltonian that a chain passes through, and how freely it moves between them.
//!
//! Every trajectory has its level, H after its momenta were drawn. Their Bayesian fraction of missing information is kept while the chain
//! runs, so that it counts all trajectories after burn-in, however few are recorded.

use super::Before;
use crate::engine::{Chains, PerChain, few};

/// Names of the scalars, which come one after the other.
pub const SCALARS: [&str; 6] = [
    "level",
    "levels",
    "level_mean",
    "level_m2",
    "level_steps",
    "level_pairs",
];

const LAST: usize = 0;
const COUNT: usize = 1;
const MEAN: usize = 2;
const M2: usize = 3;
const STEPS: usize = 4;
const PAIRS: usize = 5;

/// Note the levels of this step's trajectories, in the scalars from `first` on; those of burn-in do not count. Returns the fractions of
/// missing information so far: the mean square of the change from trajectory to trajectory over the variance (Betancourt 2016).
pub fn note(chains: &mut Chains, first: usize, levels: &[f64]) -> PerChain<f64> {
    let counts = chains.step >= chains.burn_in;
    let each = levels.iter().enumerate();
    few(each.map(|(c, level)| {
        let s = &mut chains.scalars(c)[first..first + SCALARS.len()];
        if counts {
            add(s, *level);
        }
        (s[STEPS] / s[PAIRS]) / (s[M2] / (s[COUNT] - 1.0))
    }))
}

fn add(s: &mut [f64], level: f64) {
    // No change is counted from before the first, nor from another replica's.
    if s[COUNT] > 0.0 && s[LAST].is_finite() {
        s[STEPS] += (level - s[LAST]) * (level - s[LAST]);
        s[PAIRS] += 1.0;
    }
    s[LAST] = level;
    s[COUNT] += 1.0;
    let before = level - s[MEAN];
    s[MEAN] += before / s[COUNT];
    s[M2] += before * (level - s[MEAN]);
}

/// Where chains have exchanged temperatures, the next trajectory at one is not that of the same chain.
pub fn change_temperature(chains: &mut Chains, first: usize, before: &[Before]) {
    for (c, b) in before.iter().enumerate() {
        if b.stale || b.redrawn || b.temperature != chains.members[c].temperature {
            chains.scalars(c)[first + LAST] = f64::NAN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::bfmi;

    #[test]
    fn running_numbers_are_those_of_the_whole_trace() {
        let trace = [3.0, 1.0, 4.0, 1.5, 9.0, 2.5, 6.0];
        let mut s = [0.0; SCALARS.len()];
        trace.iter().for_each(|x| add(&mut s, *x));
        let running = (s[STEPS] / s[PAIRS]) / (s[M2] / (s[COUNT] - 1.0));
        assert!((running - bfmi(&[trace])[0]).abs() < 1e-12);
    }
}
