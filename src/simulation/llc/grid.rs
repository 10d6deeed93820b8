//! The step sizes that `calibrate_llc` tries if none are given.

use super::calibrate::Trial;
use crate::error::Result;
use crate::sampler::{Accuracy, Configured};

/// How many step sizes there are, each half the one before.
const COUNT: i32 = 7;

/// Steps of the runs that look for the largest.
const PILOT: u64 = 200;

/// The virial temperature, set 1, from which on a step is far too large.
const FAR_TOO_HOT: f64 = 2.0;

/// How often a step is made four times larger or smaller.
const MOST: usize = 30;

/// Step sizes from the largest that is stable downwards, so that the part of the error that is the stiffest direction's goes from about one to
/// about a hundredth. `trial` runs at a step size, for so many steps.
pub(super) fn step_sizes(
    sampler: &Configured,
    trial: impl Fn(f64, u64) -> Result<Trial>,
) -> Result<Vec<f64>> {
    let Some((_, own)) = sampler.step_size() else {
        return Ok(Vec::new());
    };
    if sampler.accuracy() == Accuracy::Exact {
        // Too large a step is rejected: nothing runs away, and nothing gets hot.
        return Ok((-COUNT / 2..=COUNT / 2)
            .map(|k| own * 2f64.powi(k))
            .collect());
    }
    let stable = |step: f64| {
        // An option out of its range is an end of the search, as any other is.
        let found = trial(step, PILOT).ok().and_then(|t| t.estimate);
        let fits = |e: super::Estimate| {
            e.failed.is_empty()
                && (e.virial.temperature <= FAR_TOO_HOT || e.virial.temperature.is_nan())
        };
        found.is_some_and(fits)
    };
    let mut largest = own;
    if stable(own) {
        let larger = (1..MOST).map(|k| own * 4f64.powi(k as i32));
        largest = larger.take_while(|s| stable(*s)).last().unwrap_or(own);
    } else {
        // At the own step once more, so that what is wrong with all of them is said.
        trial(own, PILOT)?;
        let smaller = (1..MOST).map(|k| own * 4f64.powi(-(k as i32)));
        let mut smaller = smaller.filter(|s| stable(*s));
        largest = smaller.next().unwrap_or(largest);
    }
    Ok((0..COUNT).map(|k| largest * 2f64.powi(-k)).collect())
}
