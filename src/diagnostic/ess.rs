//! Effective sample sizes: how many independent draws would pin an estimate down as well as the chains do.

use super::autocovariance::mean_autocovariance;
use super::moments::{
    halves, map_draws, mean, mean_of, quantile_of_sorted, rectangle, sorted, usable, variance_of,
};
use super::rank::normal_scores;

/// Effective number of draws for the bulk of the distribution: that of the mean of the rank-normalised draws.
///
/// Chains are split in halves, as for every effective sample size here, so that drift within a chain counts.
pub fn ess_bulk<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    if !usable(&rows, 1) {
        return f64::NAN;
    }
    effective_size(&normal_scores(&halves(&rows)))
}

/// Effective number of draws for the tails: the smaller of those for the 5 % and the 95 % quantile.
///
/// These are the quantiles of Vehtari et al. 2021 and of ArviZ before 1.0. From 1.0 on, ArviZ's own default is its
/// `stats.ci_prob` of 0.89, that is the quantiles 0.11 and 0.89; `arviz.ess(..., method="tail", prob=(0.05, 0.95))`
/// gives this one, and [`ess_tail_between`] gives the other.
pub fn ess_tail<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    ess_tail_between(chains, TAILS.0, TAILS.1)
}

/// The quantiles of the tails.
pub(super) const TAILS: (f64, f64) = (0.05, 0.95);

/// The smaller of the effective numbers of draws for the quantiles at `low` and `high`, probabilities from 0 to 1.
pub fn ess_tail_between<C: AsRef<[f64]>>(chains: &[C], low: f64, high: f64) -> f64 {
    let rows = rectangle(chains);
    if !usable(&rows, 1) {
        return f64::NAN;
    }
    ess_tail_of(&rows, &sorted(&rows), low, high)
}

/// [`ess_tail_between`] of rows of one length, with all their draws in ascending order.
pub(super) fn ess_tail_of(rows: &[&[f64]], sorted: &[f64], low: f64, high: f64) -> f64 {
    let of_quantile = |prob: f64| {
        let quantile = quantile_of_sorted(sorted, prob);
        let below = map_draws(rows, |x| f64::from(x <= quantile));
        effective_size(&halves(&below))
    };
    let (low, high) = (of_quantile(low), of_quantile(high));
    if high < low { high } else { low }
}

/// Effective number of draws for the mean, from the draws as they are.
pub fn ess_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    if !usable(&rows, 1) {
        return f64::NAN;
    }
    effective_size(&halves(&rows))
}

/// Effective number of draws for the standard deviation: that of the squared distance from the mean.
pub fn ess_sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    if !usable(&rows, 1) {
        return f64::NAN;
    }
    let centre = mean(&rows);
    let squares = map_draws(&rows, |x| (x - centre) * (x - centre));
    effective_size(&halves(&squares))
}

/// Integrated autocorrelation time of the mean, in draws: all draws of all chains over [`ess_mean`].
///
/// 1 for independent draws, below 1 for anticorrelated ones, (1 + phi) / (1 - phi) for an AR(1) process. Chains that
/// disagree with each other count as correlation that outlasts the run. NaN for a trace that ArviZ calls constant.
pub fn integrated_autocorrelation_time<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    autocorrelation_time_from(&rows, ess_mean(&rows))
}

/// The autocorrelation time of chains of which [`ess_mean`] is known.
pub(super) fn autocorrelation_time_from(rows: &[&[f64]], ess_mean: f64) -> f64 {
    if is_constant(rows) {
        return f64::NAN;
    }
    rows.iter().map(|row| row.len()).sum::<usize>() as f64 / ess_mean
}

/// Effective number of draws for the mean of `rows`, shape (chains, draws), after Vehtari et al. 2021.
///
/// The sum of autocorrelations ends where a pair of them first is negative (Geyer's initial positive sequence) and is
/// made monotone (Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7 (1992) 473).
pub(super) fn effective_size<C: AsRef<[f64]>>(rows: &[C]) -> f64 {
    let n_draw = rows[0].as_ref().len();
    let total = (rows.len() * n_draw) as f64;
    if is_constant(rows) {
        return total;
    }
    let time = autocorrelation_sum(n_draw, correlation(rows));
    // A strongly anticorrelated trace would otherwise get any number of draws, or a negative one.
    let least = 1.0 / total.log10();
    total / if time < least { least } else { time }
}

/// Autocorrelation of `rows`, shape (chains, draws), by the lag, after Vehtari et al. 2021, eq. 10.
fn correlation<C: AsRef<[f64]>>(rows: &[C]) -> impl Fn(usize) -> f64 + use<C> {
    let n_draw = rows[0].as_ref().len();
    let covariance = mean_autocovariance(rows);
    let within = covariance[0] * n_draw as f64 / (n_draw as f64 - 1.0);
    let between = if rows.len() > 1 {
        let means: Vec<f64> = rows
            .iter()
            .map(|row| mean_of(row.as_ref().iter().copied()))
            .collect();
        variance_of(means.into_iter())
    } else {
        0.0
    };
    let whole = covariance[0] + between;
    move |lag| 1.0 - (within - covariance[lag]) / whole
}

/// Autocorrelation at lags 0 to `lags`, dimensionless, of several chains together.
///
/// Deviations are from the mean of all chains: where chains disagree, it stays above 0. As many lags as there are draws, at
/// most; all NaN where draws are constant, fewer than four, or not finite.
pub fn autocorrelations<C: AsRef<[f64]>>(chains: &[C], lags: usize) -> Vec<f64> {
    let rows = rectangle(chains);
    let lags = 0..rows.first().map_or(0, |row| row.len()).min(lags + 1);
    if !usable(&rows, 1) || is_constant(&rows) {
        return lags.map(|_| f64::NAN).collect();
    }
    let rho = correlation(&rows);
    let at = |lag| if lag == 0 { 1.0 } else { rho(lag) };
    lags.map(at).collect()
}

/// Whether all draws are the same but for 1e-15, the resolution of an f64 near 1.
///
/// The bound is absolute, as in ArviZ.
fn is_constant<C: AsRef<[f64]>>(rows: &[C]) -> bool {
    let all = || rows.iter().flat_map(|row| row.as_ref().iter().copied());
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    most - least < 1e-15
}

/// 1 + 2 sum of `correlation` over lags 1, 2, ..., cut and made monotone after Geyer; `n_draw` is at least 2.
fn autocorrelation_sum(n_draw: usize, correlation: impl Fn(usize) -> f64) -> f64 {
    let mut rho = vec![0.0; n_draw];
    let (mut even, mut odd) = (1.0, correlation(1));
    (rho[0], rho[1]) = (even, odd);
    // `next` is the lag after the pairs that were looked at.
    let mut next = 2;
    while next + 2 < n_draw && even + odd > 0.0 {
        (even, odd) = (correlation(next), correlation(next + 1));
        if even + odd >= 0.0 {
            (rho[next], rho[next + 1]) = (even, odd);
        }
        next += 2;
    }
    // The last pair looked at ends the sum; its even half still lowers the variance of the estimate when positive.
    let last = next - 2;
    if even > 0.0 {
        rho[last] = even;
    }
    for pair in (2..last.saturating_sub(1)).step_by(2) {
        let before = rho[pair - 2] + rho[pair - 1];
        if rho[pair] + rho[pair + 1] > before {
            rho[pair] = before / 2.0;
            rho[pair + 1] = rho[pair];
        }
    }
    if rho.iter().any(|r| r.is_nan()) {
        return f64::NAN;
    }
    -1.0 + 2.0 * rho[..last].iter().sum::<f64>() + rho[last]
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    /// A stationary AR(1) process of unit innovations.
    fn ar1(phi: f64, seed: u64, n: usize) -> Vec<f64> {
        let mut x = 0.0;
        let draws = normal_draws(seed, n + 500).into_iter().map(|e| {
            x = phi * x + e;
            x
        });
        draws.skip(500).collect()
    }

    /// Mean over independent runs and its standard error.
    fn over_runs(runs: u64, estimate: impl Fn(u64) -> f64) -> (f64, f64) {
        let all: Vec<f64> = (1..=runs).map(estimate).collect();
        let error = super::super::sd(&[&all]) / (runs as f64).sqrt();
        (mean(&[all]), error)
    }

    #[test]
    fn the_time_of_an_ar1_process_is_known() {
        for phi in [0.9, 0.5, -0.5] {
            let (time, error) = over_runs(40, |seed| {
                integrated_autocorrelation_time(&[ar1(phi, seed, 20_000)])
            });
            let exact = (1.0 + phi) / (1.0 - phi);
            assert!(
                (time - exact).abs() < 4.0 * error,
                "{time} +- {error}, {exact}"
            );
            assert!(error < 0.03 * exact);
        }
    }

    #[test]
    fn independent_draws_count_in_full() {
        for ess in [ess_bulk, ess_tail, ess_mean, ess_sd] {
            let (share, error) = over_runs(40, |seed| {
                let chains = [2 * seed, 2 * seed + 1].map(|s| normal_draws(s, 2000));
                ess(&chains) / 4000.0
            });
            // The positive sequence keeps positive noise and drops negative noise: a known bias of a few per cent.
            assert!((share - 1.0).abs() < 0.06, "{share} +- {error}");
        }
    }

    #[test]
    fn chains_that_disagree_count_little() {
        let mut chains = [normal_draws(1, 500), normal_draws(2, 500)];
        chains[1].iter_mut().for_each(|x| *x += 10.0);
        assert!(ess_mean(&chains) < 10.0);
        assert!(ess_bulk(&chains) < 10.0);
    }

    #[test]
    fn a_constant_keeps_arviz_answers() {
        let chains = [[0.1; 21], [0.1; 21]];
        for ess in [ess_bulk, ess_tail, ess_mean, ess_sd] {
            assert_eq!(ess(&chains), 40.0);
        }
        assert!(integrated_autocorrelation_time(&chains).is_nan());
    }

    #[test]
    fn a_single_chain_is_enough_and_three_draws_are_not() {
        assert!(ess_bulk(&[normal_draws(1, 4)]).is_finite());
        assert!(ess_bulk(&[normal_draws(1, 3)]).is_nan());
        assert!(ess_mean(&[[1.0, f64::NAN, 2.0, 3.0]]).is_nan());
    }
}
