//! Equilibration: how much of a trace's beginning still remembers its start, and whether beginning and end agree.

use super::ess::{effective_size, ess_mean};
use super::mcse::mcse_mean;
use super::moments::{mean, mean_of, usable};
use super::student::as_normal;

/// Blocks that a long trace is averaged into: the mean and its error stay what they are, and the search stays cheap.
const BLOCKS: usize = 2000;

/// Prefixes that are tried.
const TRIALS: usize = 40;

/// Draws below which beginning and end are not compared.
const LEAST: usize = 40;

/// What is left of a trace when the prefix is dropped that costs more than it brings.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Equilibration {
    /// Draws to drop from the beginning.
    pub from: usize,
    /// Effective number of draws of the rest, for the mean.
    pub ess: f64,
}

/// The prefix of one trace without which the effective number of draws for the mean is largest.
///
/// Chodera, "A simple method for automated equilibration detection in molecular simulations", JCTC 12 (2016) 1799. A start far from
/// equilibrium is correlation that outlasts the run: to drop it makes the rest worth more. Prefixes are tried in steps of 1/40 of the trace, up to
/// three quarters; of a stationary trace a few per cent are dropped by chance. None with fewer than 16 draws, a NaN or a constant trace.
pub fn equilibration(trace: &[f64]) -> Option<Equilibration> {
    let n = trace.len();
    if n < 16 || !trace.iter().all(|x| x.is_finite()) {
        return None;
    }
    let size = n.div_ceil(BLOCKS);
    let blocks = trace.chunks_exact(size);
    let means: Vec<f64> = blocks.map(|b| mean_of(b.iter().copied())).collect();
    let trials = (0..TRIALS * 3 / 4).map(|k| k * means.len() / TRIALS);
    let each = trials.map(|from| Equilibration {
        from: from * size,
        ess: effective_size(&[&means[from..]]),
    });
    // Of equal ones the first.
    let best = each.reduce(|a, b| if b.ess > a.ess { b } else { a })?;
    (means.iter().any(|x| *x != means[0]) && best.ess.is_finite()).then_some(best)
}

/// The Geweke score of one trace: the difference of the means of its first tenth and its last half, in standard errors.
///
/// Geweke, "Evaluating the accuracy of sampling-based approaches to the calculation of posterior moments" (1992). Of a long stationary trace it is a
/// standard normal number; errors are measured from effective sample sizes. NaN with fewer than 40 draws, a NaN, or a constant part.
pub fn geweke(trace: &[f64]) -> f64 {
    let n = trace.len();
    if n < LEAST || !usable(&[trace], 1) {
        return f64::NAN;
    }
    let (first, last) = ([&trace[..n / 10]], [&trace[n - n / 2..]]);
    let error = mcse_mean(&first).hypot(mcse_mean(&last));
    (mean(&first) - mean(&last)) / error
}

/// The difference of the means of the first tenth and the last half of several chains together, cut to the shortest, as a standard normal number; NaN as of [`geweke`].
///
/// Of stationary chains the first tenth has the errors of the last half, but for its length; there they are known better. They contain how far the
/// chains differ, so chains that have not found the same modes do not drift for that alone. An error from few effective draws makes scores as large as those of
/// Student's t; what is given back is the normal number that is as unlikely (Wallace 1959).
pub fn drift<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let n = chains.iter().map(|c| c.as_ref().len()).min().unwrap_or(0);
    let rows: Vec<_> = chains.iter().map(|c| &c.as_ref()[..n]).collect();
    if n < LEAST || !usable(&rows, 1) {
        return f64::NAN;
    }
    let first: Vec<_> = rows.iter().map(|c| &c[..n / 10]).collect();
    let last: Vec<_> = rows.iter().map(|c| &c[n - n / 2..]).collect();
    let lengths = (n / 2) as f64 / (n / 10) as f64;
    let t = (mean(&first) - mean(&last)) / (mcse_mean(&last) * (1.0 + lengths).sqrt());
    let freedom = (ess_mean(&last) - 1.0).max(1.0);
    as_normal(t, freedom)
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    #[test]
    fn a_start_far_away_is_dropped_and_a_stationary_trace_is_kept() {
        for seed in 1..20 {
            let noise = normal_draws(seed, 4000);
            let far: Vec<f64> = noise
                .iter()
                .enumerate()
                .map(|(i, x)| x + 20.0 * (-(i as f64) / 100.0).exp())
                .collect();
            // After ln(20·√4000) ≈ 7 relaxation times the start is lost in the error of the mean.
            let found = equilibration(&far).unwrap();
            assert!((200..=1000).contains(&found.from), "{found:?}");
            // Of the 80 blocks that are left, an autocorrelation time with a window of 6 blocks has an error of about √(2·13/80), 57 %.
            assert!(found.ess > 3300.0 / 2.7 && found.ess < 4500.0, "{found:?}");
            let found = equilibration(&noise).unwrap();
            assert!(found.from <= 1000, "{found:?}");
            // One standard deviation, in units of √(1/400 + 1/2000).
            let shifted: Vec<f64> = (0..4000)
                .map(|i| noise[i] + f64::from(u8::from(i < 400)))
                .collect();
            assert!(geweke(&shifted) > 10.0);
        }
    }

    #[test]
    fn geweke_scores_of_stationary_traces_are_standard_normal() {
        let scores: Vec<f64> = (1..=400).map(|s| geweke(&normal_draws(s, 2000))).collect();
        let n = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / n;
        let square = scores.iter().map(|z| z * z).sum::<f64>() / n;
        // A first tenth of 200 draws measures its own error to 5 % or so.
        assert!(mean.abs() < 4.0 / n.sqrt(), "{mean}");
        assert!(
            (square - 1.0).abs() < 4.0 * (2.0 / n).sqrt() + 0.05,
            "{square}"
        );
    }

    #[test]
    fn drifts_of_stationary_chains_are_standard_normal_and_others_are_found() {
        let chains = |seed: u64, shift: f64| -> Vec<Vec<f64>> {
            let chain = |c: u64| normal_draws(4 * seed + c, 500);
            let moved = |c: u64| {
                let each = chain(c).into_iter().enumerate();
                each.map(|(i, x)| x + if i < 50 { shift } else { 0.0 })
                    .collect()
            };
            (0..4).map(moved).collect()
        };
        let scores: Vec<f64> = (1..=400).map(|s| drift(&chains(s, 0.0))).collect();
        let n = scores.len() as f64;
        let square = scores.iter().map(|z| z * z).sum::<f64>() / n;
        assert!(
            (square - 1.0).abs() < 4.0 * (2.0 / n).sqrt() + 0.05,
            "{square}"
        );
        // Half a standard deviation of 200 draws, in units of √(1/200 + 1/1000).
        assert!(drift(&chains(1, 0.5)) > 4.0);
        // Chains in different places differ, and do not drift.
        let apart = chains(1, 0.0).into_iter().enumerate();
        let apart: Vec<Vec<f64>> = apart
            .map(|(c, trace)| trace.iter().map(|x| x + 10.0 * c as f64).collect())
            .collect();
        assert!(drift(&apart).abs() < 1.0);
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        assert_eq!(equilibration(&[1.0; 100]), None);
        assert_eq!(equilibration(&[1.0, 2.0]), None);
        assert_eq!(equilibration(&[f64::NAN; 100]), None);
        assert!(geweke(&[1.0; 100]).is_nan() && geweke(&[0.0; 3]).is_nan());
    }
}
