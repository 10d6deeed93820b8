//! Leave-one-out cross-validation by Pareto-smoothed importance sampling.
//!
//! Vehtari, Gelman and Gabry, Statistics and Computing 27 (2017) 1413; Vehtari, Simpson, Gelman, Yao and Gabry, "Pareto
//! smoothed importance sampling", JMLR 25 (2024) 72. The posterior without example i is the posterior with all of them,
//! reweighted by r = p(y_i|x_i, w)^-beta. The largest ratios are replaced by the expected order statistics of a
//! generalised Pareto distribution that is fitted to them; its shape k-hat says whether their mean can be trusted.
//!
//! As ArviZ (arviz-stats 1.3) and the R package loo compute it; `tests/suite/loo.rs` holds this module to ArviZ's own
//! numbers.

use super::evidence::ln_sum_exp;
use super::{ess_mean, moments};

/// One example, left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOut {
    /// ln of the predictive density of the example by the posterior of all others, in nats.
    pub elpd: f64,
    /// By how much the posterior of all examples predicts it better, in nats: its share of the effective number of
    /// parameters.
    pub p: f64,
    /// The shape k-hat of the distribution of its largest importance ratios. NaN where none could be fitted, and
    /// -infinity where the largest ratios are all the same, so that the ratios are bounded.
    pub k: f64,
}

/// Draws below which the tail, a fifth of them, has fewer than the five that a fit needs.
pub const LEAST_DRAWS: usize = 25;

/// The value of k-hat above which an estimate from this many draws is not reliable: min(1 - 1/log10 S, 0.7).
pub fn largest_k(draws: usize) -> f64 {
    (1.0 - 1.0 / (draws as f64).log10()).min(0.7)
}

/// An example left out of the posterior at inverse temperature `beta`, of which `ln_likelihoods` has ln p(y|x, w) for
/// every draw, of all chains one after the other.
///
/// `efficiency` is the number of effective draws over that of draws, see [`relative_efficiency`]; it says how many
/// ratios belong to the tail: min(S/5, 3 sqrt(S/efficiency)). NaN from numbers that are not finite.
pub fn leave_one_out(ln_likelihoods: &[f64], beta: f64, efficiency: f64) -> LeftOut {
    let draws = ln_likelihoods.len() as f64;
    if ln_likelihoods.is_empty() || ln_likelihoods.iter().any(|l| !l.is_finite()) {
        let [elpd, p, k] = [f64::NAN; 3];
        return LeftOut { elpd, p, k };
    }
    let mut weights: Vec<f64> = ln_likelihoods.iter().map(|l| -beta * l).collect();
    let k = smooth(&mut weights, efficiency);
    let weighted = weights.iter().zip(ln_likelihoods).map(|(w, l)| w + l);
    let elpd = ln_sum_exp(weighted);
    let all = ln_sum_exp(ln_likelihoods.iter().copied()) - draws.ln();
    LeftOut {
        elpd,
        p: all - elpd,
        k,
    }
}

/// Effective draws for the mean likelihood of an example, over draws; `chains` are its ln likelihoods.
///
/// What R's loo calls the relative efficiency. 1 where it cannot be known.
pub fn relative_efficiency(chains: &[&[f64]]) -> f64 {
    let all = || chains.iter().flat_map(|c| c.iter().copied());
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    let likelihoods: Vec<Vec<f64>> = chains
        .iter()
        .map(|c| c.iter().map(|l| (l - most).exp()).collect())
        .collect();
    let efficiency = ess_mean(&likelihoods) / all().count() as f64;
    if efficiency > 0.0 { efficiency } else { 1.0 }
}

/// A sum over examples and its standard error, the square root of n times the variance of the terms (n - 1 in the
/// denominator).
pub fn sum_with_error(terms: &[f64]) -> (f64, f64) {
    let n = terms.len() as f64;
    let error = match terms.len() {
        0 | 1 => 0.0,
        _ => n.sqrt() * moments::sd(&[terms]),
    };
    (terms.iter().sum(), error)
}

/// Whether the mean of importance weights and its error cannot be relied on, from the logarithms of the weights: the shape k-hat of
/// their tail is above [`largest_k`].
pub fn is_unreliable(ln_weights: impl Iterator<Item = f64>) -> bool {
    let mut ln_weights: Vec<_> = ln_weights.collect();
    smooth(&mut ln_weights, 1.0) > largest_k(ln_weights.len())
}

/// Turns ln of importance ratios into ln of normalised weights, the largest ratios smoothed; k-hat.
fn smooth(ln_ratios: &mut [f64], efficiency: f64) -> f64 {
    let draws = ln_ratios.len();
    let most = ln_ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    ln_ratios.iter_mut().for_each(|r| *r -= most);
    let tail = (draws as f64 / 5.0).min(3.0 * (draws as f64 / efficiency).sqrt()) as usize;
    let mut order: Vec<usize> = (0..draws).collect();
    order.sort_unstable_by(|a, b| ln_ratios[*a].total_cmp(&ln_ratios[*b]));
    let (body, ends) = order.split_at(draws - tail);
    let k = match body.last() {
        Some(last) if tail >= 5 => smooth_tail(ln_ratios, ends, ln_ratios[*last].exp()),
        _ => f64::NAN,
    };
    let total = ln_sum_exp(ln_ratios.iter().copied());
    ln_ratios.iter_mut().for_each(|r| *r -= total);
    k
}

/// Replaces the ratios at `places`, ascending, by order statistics of the distribution fitted to their excess over
/// `cutoff`; its shape.
fn smooth_tail(ln_ratios: &mut [f64], places: &[usize], cutoff: f64) -> f64 {
    let (first, last) = (places[0], places[places.len() - 1]);
    if ln_ratios[last] - ln_ratios[first] < f64::MIN_POSITIVE {
        return f64::NEG_INFINITY;
    }
    let excess: Vec<f64> = places
        .iter()
        .map(|i| ln_ratios[*i].exp() - cutoff)
        .collect();
    let Some(Pareto { k, sigma }) = fit(&excess) else {
        return f64::NAN;
    };
    if k.is_finite() {
        for (rank, place) in places.iter().enumerate() {
            let p = (rank as f64 + 0.5) / places.len() as f64;
            let x = match k == 0.0 {
                true => -sigma * (-p).ln_1p(),
                false => sigma * (-k * (-p).ln_1p()).exp_m1() / k,
            };
            // No ratio becomes larger than the largest.
            ln_ratios[*place] = (cutoff + x).ln().min(0.0);
        }
    }
    k
}

/// A generalised Pareto distribution of what exceeds 0.
struct Pareto {
    k: f64,
    sigma: f64,
}

/// The fit of Zhang and Stephens (Technometrics 51 (2009) 316) to ascending numbers, with the prior of ten numbers of
/// k = 1/2 (Vehtari et al. 2024, appendix G); none if they are far from any such distribution.
fn fit(ascending: &[f64]) -> Option<Pareto> {
    let n = ascending.len() as f64;
    let quartile = ascending[((n / 4.0 + 0.5) as usize).max(1) - 1];
    if quartile <= ascending[0] {
        return None;
    }
    let points = 30 + n.sqrt() as usize;
    let mean_ln = |b: f64| ascending.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n;
    let inverse_largest = 1.0 / ascending[ascending.len() - 1];
    let grid: Vec<(f64, f64)> = (1..=points)
        .map(|i| {
            let root = (points as f64 / (i as f64 - 0.5)).sqrt();
            let b = (1.0 - root) / (3.0 * quartile) + inverse_largest;
            let k = mean_ln(b);
            (b, n * ((-b / k).ln() - k - 1.0))
        })
        .collect();
    let total = ln_sum_exp(grid.iter().map(|(_, l)| *l));
    // Negligible weights are left out.
    let weights = grid.iter().map(|(b, l)| (*b, (l - total).exp()));
    let kept: Vec<_> = weights.filter(|(_, w)| *w >= 10.0 * f64::EPSILON).collect();
    let norm: f64 = kept.iter().map(|(_, w)| w).sum();
    let b = kept.iter().map(|(b, w)| b * w / norm).sum::<f64>();
    let k = mean_ln(b);
    if k.is_nan() {
        let (k, sigma) = (f64::INFINITY, f64::NAN);
        return Some(Pareto { k, sigma });
    }
    let sigma = -k / b;
    let k = (n * k + 5.0) / (n + 10.0);
    (sigma > 0.0).then_some(Pareto { k, sigma })
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    /// Numbers whose tail is a generalised Pareto distribution of this shape: its quantiles.
    fn ratios(k: f64, draws: usize) -> Vec<f64> {
        let p = |i: usize| (i as f64 + 0.5) / draws as f64;
        (0..draws).map(|i| (-k * (-p(i)).ln_1p()).exp()).collect()
    }

    #[test]
    fn the_shape_of_a_pareto_tail_is_found() {
        for k in [0.2, 0.5, 0.9] {
            let draws = 40_000;
            let ln_likelihoods: Vec<f64> = ratios(k, draws).iter().map(|r| -r.ln()).collect();
            let found = leave_one_out(&ln_likelihoods, 1.0, 1.0).k;
            // The quantiles have no noise; the prior of ten numbers draws the estimate from 600 towards 1/2.
            let tail = 600.0;
            let want = (tail * k + 5.0) / (tail + 10.0);
            assert!((found - want).abs() < 0.01, "{k}: {found}, {want}");
        }
    }

    #[test]
    fn equal_draws_leave_nothing_out() {
        let same = leave_one_out(&[-1.5; 100], 1.0, 1.0);
        assert!(
            (same.elpd + 1.5).abs() < 1e-12 && same.p.abs() < 1e-12,
            "{same:?}"
        );
        assert_eq!(same.k, f64::NEG_INFINITY);
        let odd = leave_one_out(&[-1.0, f64::NEG_INFINITY, -2.0], 1.0, 1.0);
        assert!(odd.elpd.is_nan() && odd.k.is_nan());
        assert!(leave_one_out(&[], 1.0, 1.0).elpd.is_nan());
        // Too few for a tail: no shape, and plain importance weights.
        let few = leave_one_out(&[0.0, -1.0], 1.0, 1.0);
        assert!(few.k.is_nan());
        let harmonic = -(0.5 * (1.0 + 1f64.exp())).ln();
        assert!((few.elpd - harmonic).abs() < 1e-12, "{few:?}");
    }

    #[test]
    fn efficiency_is_that_of_the_likelihood() {
        let draws = normal_draws(1, 400);
        let shifted: Vec<f64> = draws.iter().map(|x| x - 1e4).collect();
        let (left, right) = shifted.split_at(200);
        let got = relative_efficiency(&[left, right]);
        let most = draws.iter().copied().fold(f64::MIN, f64::max);
        let e: Vec<f64> = draws.iter().map(|x| (x - most).exp()).collect();
        let (left, right) = e.split_at(200);
        assert!(
            (got * 400.0 / ess_mean(&[left, right]) - 1.0).abs() < 1e-6,
            "{got}"
        );
        assert_eq!(relative_efficiency(&[&[1.0, 2.0]]), 1.0);
    }
}
