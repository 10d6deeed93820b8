//! How long trajectories of hybrid Monte Carlo should be, learnt in burn-in.

use super::adaptation;
use super::directions::ADD_DRAW;
use super::levels;
use super::metric::Metric;
use crate::engine::Vector::{self, Params};
use crate::engine::{Chains, PerChain};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::SCALED_NOISE;
use crate::rng::Purpose;
use std::ops::Range;

/// How long trajectories are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many steps.
    Steps(u64),
    /// As long as pays.
    Learnt,
}

/// Names of the vectors.
pub const VECTORS: [&str; 2] = ["length_centre", "principal"];

/// Names of the scalars after those of the adaptation: the levels, these, and those of the bins.
pub fn scalars() -> &'static [&'static str] {
    let bins = [("tried", BINS), ("jump", BINS), ("moved", BINS)];
    adaptation::names(&[&levels::SCALARS, &SCALARS], &bins)
}

const SCALARS: [&str; 4] = ["longest", "squares", "square_mean", "square_m2"];

/// Greatest number of steps of a trajectory.
const LONGEST: usize = adaptation::LEVELS + levels::SCALARS.len();
/// How many squares of the coordinate there were, their mean and the sum of their squared deviations.
const SQUARES: usize = LONGEST + 1;
const MEAN: usize = LONGEST + 2;
const M2: usize = LONGEST + 3;
/// Trajectories by their number of steps: how many, and the mean squared jumps of the coordinate's square and of the coordinate.
const TRIED: usize = LONGEST + 4;
const JUMP: usize = TRIED + BINS;
const MOVED: usize = JUMP + BINS;

/// Bins of half an octave of steps each, from 1 on.
const BINS: usize = 20;

/// The mean m of the newest draws, and the direction b in which they vary most, bᵀMb = 1: the coordinate is bᵀM(w-m).
const CENTRE: Vector = Vector::State(PLACES.start);
const PRINCIPAL: Vector = Vector::State(PLACES.start + 1);

/// Places of the centre m and the principal direction b among the state vectors.
pub const PLACES: Range<usize> = adaptation::VECTORS.len()..adaptation::VECTORS.len() + 2;

/// The greatest number of steps at the beginning.
const FIRST: f64 = 16.0;

/// Points of a bin below which it is not believed.
const LEAST: f64 = 32.0;

kernel! {
    /// `m ← m + by·(x-m)`.
    FOLLOW = snaper_follow(m; x; ; by) {
        m += by * (x - m);
    }
}

/// The `n`-th number of the Halton sequence of base 2, n from 1: its digits, mirrored.
fn halton(n: u64) -> f64 {
    n.reverse_bits() as f64 / 2f64.powi(64)
}

/// The bin of a number of steps.
fn bin(steps: u64) -> usize {
    ((2.0 * (steps as f64).log2()) as usize).min(BINS - 1)
}

/// The greatest number of steps of a bin.
fn most(bin: usize) -> f64 {
    2f64.powf((bin + 1) as f64 / 2.0).ceil() - 1.0
}

impl Length {
    /// Steps of the next trajectory of each chain; further while it is learnt how many.
    pub fn counts(self, chains: &Chains, learns: bool) -> PerChain<u64> {
        let part = 0.5 * (1.0 + halton(chains.step + 1));
        // Further, to see whether that pays.
        let part = if learns { 2.0 * part } else { part };
        let count = |s: &[f64]| match self {
            Self::Steps(steps) => steps,
            Self::Learnt => (part * s[LONGEST]).clamp(1.0, most(BINS - 1)).ceil() as u64,
        };
        chains.each(|m| count(m.scalars))
    }
}

/// Begin where the chains are.
pub fn init(chains: &mut Chains, metric: &Metric) -> Result<()> {
    for c in 0..chains.len() {
        chains.scalars(c)[LONGEST] = FIRST;
    }
    chains.copy(Params, CENTRE)?;
    restart(chains, metric)
}

/// Go on with other masses, of which nothing is known.
pub fn restart(chains: &mut Chains, metric: &Metric) -> Result<()> {
    for c in 0..chains.len() {
        chains.scalars(c)[SQUARES..MOVED + BINS].fill(0.0);
    }
    let any = (Purpose::Momentum, 5);
    chains.map_with_noise(&SCALED_NOISE, &[PRINCIPAL], any, |_, _| [1.0])?;
    metric.normalise(chains, PRINCIPAL)
}

/// Where the chains are along the principal direction.
pub fn coordinate(chains: &mut Chains, metric: &Metric) -> Result<PerChain<f64>> {
    metric.along(chains, PRINCIPAL, Params, CENTRE)
}

/// Learn from trajectories that began at `home`: the coordinate at their beginning and after each step of a chain, and the probabilities of acceptance.
pub fn learn(
    chains: &mut Chains,
    metric: &Metric,
    home: Vector,
    (paths, accept): (&[Vec<f64>], &[f64]),
) -> Result<()> {
    for (c, path) in paths.iter().enumerate() {
        let s = chains.scalars(c);
        let (first, square) = (path[0], path[0] * path[0]);
        if path.iter().any(|x| !x.is_finite()) {
            continue;
        }
        s[SQUARES] += 1.0;
        let from_mean = square - s[MEAN];
        s[MEAN] += from_mean / s[SQUARES];
        s[M2] += from_mean * (square - s[MEAN]);
        for (steps, x) in (1..).zip(&path[1..]) {
            let k = bin(steps);
            s[TRIED + k] += 1.0;
            for (at, jump) in [
                (JUMP, (x * x - square).powi(2)),
                (MOVED, (x - first).powi(2)),
            ] {
                s[at + k] += (accept[c] * jump - s[at + k]) / s[TRIED + k];
            }
        }
        if let Some(longest) = best(s) {
            s[LONGEST] = longest;
        }
    }
    // The newest draws weigh most: those of the way to the typical set are forgotten.
    let by: PerChain<f64> = chains.each(|m| 2.0 / (m.scalars[SQUARES] + 2.0));
    chains.map(&FOLLOW, &[CENTRE, home], |c, _| [by[c] as f32])?;
    // Towards the principal component (Oja 1982).
    let mean = chains.each(|m| m.scalars[MEAN].max(m.temperature));
    chains.map(&ADD_DRAW, &[PRINCIPAL, home, CENTRE], |c, _| {
        let by = by[c].min(0.2) * paths[c][0] / mean[c];
        [if by.is_finite() { by as f32 } else { 0.0 }]
    })?;
    metric.normalise(chains, PRINCIPAL)
}

/// The greatest number of steps with the most effective draws per gradient; none while too little is known.
fn best(s: &[f64]) -> Option<f64> {
    // Independent draws jump by twice the variance.
    let independent = [2.0 * s[M2] / s[SQUARES], 2.0 * s[MEAN]];
    let (mut best, mut score) = (None, 0.0);
    let mut below = [0.0; 3];
    for k in 0..BINS {
        let known = s[TRIED + k] >= LEAST;
        let width = most(k) - if k == 0 { 0.0 } else { most(k - 1) };
        let own = match known {
            true => [width, width * s[JUMP + k], width * s[MOVED + k]],
            false => [0.0; 3],
        };
        // Two bins are the upper half of what is up to the end of the second.
        let all: Vec<_> = own.iter().zip(below).map(|(a, b)| a + b).collect();
        below = own;
        // 1 less the autocorrelation from one draw to the next, and what that makes of a draw.
        let effective = |which: usize| {
            let fresh = (all[1 + which] / all[0] / independent[which]).min(1.0);
            fresh / (2.0 - fresh)
        };
        let per_gradient = effective(0).min(effective(1)) / (0.75 * most(k) + 0.5);
        if known && per_gradient > score {
            (best, score) = (Some(most(k)), per_gradient);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_half_an_octave() {
        for k in 0..BINS - 1 {
            let last = most(k) as u64;
            assert!(last == 0 || bin(last) <= k, "{k}: {last}");
            assert!(bin(last + 1) > k, "{k}: {last}");
        }
    }

    /// A coordinate of harmonic motion jumps by 1 - cos t of what independent draws would, its square by sin²t: most per gradient around t = π/2.
    #[test]
    fn the_best_length_of_harmonic_motion_is_found() {
        let dt = 0.1;
        let mut s = vec![0.0; MOVED + BINS];
        (s[SQUARES], s[MEAN], s[M2]) = (100.0, 1.0, 100.0 * 2.0);
        for steps in 1..=400u64 {
            let (k, t) = (bin(steps), dt * steps as f64);
            s[TRIED + k] += LEAST;
            for (first, jump) in [
                (JUMP, 4.0 * t.sin().powi(2)),
                (MOVED, 2.0 * (1.0 - t.cos())),
            ] {
                s[first + k] += (jump - s[first + k]) * LEAST / s[TRIED + k];
            }
        }
        let longest = best(&s).unwrap();
        assert!((15.0..32.0).contains(&longest), "{longest}");
    }

    #[test]
    fn halton_fills_the_interval() {
        let all: Vec<_> = (1..=4).map(halton).collect();
        assert_eq!(all, [0.5, 0.25, 0.75, 0.125]);
    }
}
