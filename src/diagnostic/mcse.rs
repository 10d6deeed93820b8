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

/// Deviations from the mean in units of the largest one, and that: squares of what is small must not count as constant.
fn in_units(rows: &[&[f64]]) -> (Vec<Vec<f64>>, f64) {
    let centre = mean(rows);
    let largest = rows
        .iter()
        .flat_map(|row| row.iter())
        .fold(0.0, |most: f64, x| most.max((x - centre).abs()));
    let unit = if largest > 0.0 { largest } else { 1.0 };
    let scaled = |row: &&[f64]| row.iter().map(|x| (x - centre) / unit).collect();
    (rows.iter().map(scaled).collect(), unit)
}

/// Variance of the draws, and its Monte Carlo standard error; NaN where there are too few.
///
/// The square of the error of the mean is added, by which draws are nearer to their own mean than to the true one. Squares are skewed, and few of them have too
/// small a spread: the error is longer by what makes ±1.96 of it cover 95 %, 1 + (1.08 γ² + 1.71)/n for a skewness γ of n effective squares (Hall 1992, §2.6,
/// without the kurtosis).
pub fn variance<C: AsRef<[f64]>>(chains: &[C]) -> (f64, f64) {
    let (rows, unit) = in_units(&rectangle(chains));
    let squares: Vec<Vec<f64>> = (rows.iter())
        .map(|row| row.iter().map(|x| x * x).collect())
        .collect();
    let (value, error) = (mean(&squares), mcse_mean(&squares));
    let deviations = || squares.iter().flatten().map(|s| s - value);
    let second = mean_of(deviations().map(|d| d * d));
    let skewness = mean_of(deviations().map(|d| d * d * d)) / second.powf(1.5);
    let n = second / (error * error);
    let longer = 1.0 + (1.08 * skewness * skewness + 1.71) / n;
    let unit = unit * unit;
    (
        (value + mcse_mean(&rows).powi(2)) * unit,
        error * longer * unit,
    )
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
    fn errors_of_variances_do_not_depend_on_the_unit() {
        let chains = [1, 2, 3].map(|seed| normal_draws(seed, 400));
        // Each draw four times: what counts them as independent is off by two.
        let chains = chains.map(|c| c.iter().flat_map(|x| [*x; 4]).collect::<Vec<_>>());
        let (value, error) = variance(&chains);
        for unit in [1e-9, 1e-20, 1e12] {
            let other = chains
                .each_ref()
                .map(|c| c.iter().map(|x| unit * x).collect::<Vec<_>>());
            let (scaled, of_scaled) = variance(&other);
            assert!((scaled / (unit * unit) / value - 1.0).abs() < 1e-9);
            assert!((of_scaled / (unit * unit) / error - 1.0).abs() < 1e-9);
        }
    }

    /// Null: the variance of exponential draws is 1, and within 1.96 errors in 95 % of the cases; four binomial errors.
    #[test]
    fn the_variance_of_skewed_draws_is_covered() {
        let cases = 4000;
        let covered = (0..cases).filter(|seed| {
            let draws = [1, 2].map(|c| {
                let normal = normal_draws(2 * seed + c, 800);
                let pairs = normal.chunks_exact(2);
                pairs
                    .map(|z| 0.5 * (z[0] * z[0] + z[1] * z[1]))
                    .collect::<Vec<_>>()
            });
            let (value, error) = variance(&draws);
            (value - 1.0).abs() < 1.96 * error
        });
        let share = covered.count() as f64 / cases as f64;
        println!("{share}");
        assert!((share - 0.95).abs() < 4.0 * (0.95f64 * 0.05 / cases as f64).sqrt());
    }

    #[test]
    fn the_edges() {
        assert!(variance(&[[0.1; 20]]).1.is_nan());

        assert_eq!(mcse_mean(&[[0.1; 20]]), 0.0);
        assert!(mcse_sd(&[[0.1; 20]]).is_nan());
        assert!(mcse_mean(&[[1.0, 2.0, 3.0]]).is_nan());
        assert!(mcse_sd(&[[1.0, 2.0, f64::NAN, 4.0]]).is_nan());
    }
}
