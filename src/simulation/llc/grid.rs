//! The step sizes and γ that `calibrate_llc` tries if none are given.

use super::trial::Found;
use crate::sampler::{Accuracy, ConfiguredSampler};

/// How many step sizes there are, each half the one before.
pub(super) const COUNT: i32 = 7;

/// Steps of the runs that look for the largest.
pub(super) const PILOT: u64 = 200;

/// The virial temperature, set 1, from which on a step is far too large.
const FAR_TOO_HOT: f64 = 2.0;

/// How often a step is made four times larger or smaller.
const MOST: usize = 30;

/// γ from 1, the usual one, by decades to where 1/√γ, the spread that it allows, is the size of a weight, √(|w0|²/N).
pub(super) fn gammas(w0: &[f32]) -> Vec<f64> {
    let squares: f64 = w0.iter().map(|w| f64::from(w * w)).sum();
    let decades = (w0.len() as f64 / squares).log10().ceil();
    // The spread of a network of zeros is no scale.
    let decades = if decades.is_finite() { decades } else { 0.0 };
    let decades = decades.clamp(0.0, MOST_DECADES) as i32;
    (0..=decades).map(|k| 10f64.powi(k)).collect()
}

/// Decades of γ at most.
const MOST_DECADES: f64 = 3.0;

/// What to do to find step sizes.
pub(super) enum Search {
    /// Run at this one, for [`PILOT`] steps, to see whether it is stable.
    Try(f64),
    /// These are they.
    Found(Vec<f64>),
}

/// Step sizes from the largest that is stable downwards, so that the part of the error that is the stiffest direction's goes from about one to
/// about a hundredth. `tried` are the step sizes that were run so far, and whether they are stable.
pub(super) fn search(sampler: &ConfiguredSampler, tried: &[(f64, bool)]) -> Search {
    let Some((_, own)) = sampler.step_size() else {
        return Search::Found(Vec::new());
    };
    if sampler.accuracy() == Accuracy::Exact {
        // Too large a step is rejected: nothing runs away, and nothing gets hot.
        let around = (-COUNT / 2..=COUNT / 2).map(|k| own * 2f64.powi(k));
        return Search::Found(around.collect());
    }
    let stable = |step: f64| tried.iter().find(|(s, _)| *s == step).map(|(_, s)| *s);
    let Some(own_is_stable) = stable(own) else {
        return Search::Try(own);
    };
    // Larger ones for as long as they are stable, or smaller ones until one is.
    let (factor, mut largest) = if own_is_stable {
        (4.0f64, own)
    } else {
        (0.25, own)
    };
    for k in 1..MOST {
        let step = own * factor.powi(k as i32);
        match stable(step) {
            None => return Search::Try(step),
            Some(true) => largest = step,
            Some(false) if own_is_stable => break,
            Some(false) => continue,
        }
        if !own_is_stable {
            break;
        }
    }
    Search::Found((0..COUNT).map(|k| largest * 2f64.powi(-k)).collect())
}

/// Whether a step size is stable, from a run with it.
pub(super) fn is_stable(e: &Found) -> bool {
    e.failed == 0 && (e.temperature <= FAR_TOO_HOT || e.temperature.is_nan())
}

#[cfg(test)]
mod tests {
    use super::gammas;

    #[test]
    fn gamma_goes_up_to_the_size_of_a_weight() {
        assert_eq!(gammas(&[1.0, -1.0]), [1.0]);
        assert_eq!(gammas(&[0.1, -0.1, 0.12]), [1.0, 10.0, 100.0]);
        assert_eq!(gammas(&[0.0, 0.0]), [1.0]);
        assert_eq!(gammas(&[1e-9]).len(), 4);
    }
}
