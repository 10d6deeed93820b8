//! Monte Carlo standard errors: how far an estimate may be off because the chains are finite.

use super::ess::{ess_mean, ess_sd};
use super::moments::{mean, mean_of, rectangle, sd, usable};

/// Monte Carlo standard error of the mean, in the draws' unit: sd / sqrt(ess_mean).
pub fn mcse_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    mcse_mean_from(&rows, ess_mean(&rows))
}

/// The error of the mean of chains of which the effective sample size is known.
pub(super) fn mcse_mean_from(rows: &[&[f64]], ess_mean: f64) -> f64 {
    sd(rows) / ess_mean.sqrt()
}

/// Monte Carlo standard error of the standard deviation, in the draws' unit.
///
/// From the variance of the squared distance from the mean by the delta method, without assuming normal draws (the
/// estimator of the R package posterior and of ArviZ 1.x). NaN for a constant.
pub fn mcse_sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    if !usable(&rows, 1) {
        return f64::NAN;
    }
    let centre = mean(&rows);
    let squares = rows
        .iter()
        .flat_map(|row| row.iter().map(move |x| (x - centre) * (x - centre)));
    let variance = mean_of(squares.clone());
    let fourth = mean_of(squares.map(|s| s * s));
    let of_variance = (fourth - variance * variance) / ess_sd(&rows);
    (of_variance / variance / 4.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    #[test]
    fn for_independent_normal_draws_the_errors_are_known() {
        let chains = [1, 2, 3, 4].map(|seed| normal_draws(seed, 5000));
        let n = 20_000f64;
        assert!((mcse_mean(&chains) * n.sqrt() - 1.0).abs() < 0.1);
        assert!((mcse_sd(&chains) * (2.0 * n).sqrt() - 1.0).abs() < 0.1);
    }

    #[test]
    fn the_edges() {
        assert_eq!(mcse_mean(&[[0.1; 20]]), 0.0);
        assert!(mcse_sd(&[[0.1; 20]]).is_nan());
        assert!(mcse_mean(&[[1.0, 2.0, 3.0]]).is_nan());
        assert!(mcse_sd(&[[1.0, 2.0, f64::NAN, 4.0]]).is_nan());
    }
}
