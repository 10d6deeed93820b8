//! R-hat: whether chains agree with each other, and each with itself, on location and on spread.

use super::moments::{halves, mean_of, rectangle, usable, variance_of};
use super::rank::Order;

/// Rank-normalised split R-hat, dimensionless: the larger of the one for location and the one for spread.
///
/// 1 at convergence; Vehtari et al. 2021 ask for less than 1.01. Needs two chains, each of 4 draws or more,
/// otherwise it is NaN, as it is for a constant; chains stuck at different values give infinity.
pub fn rhat_rank<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    if !usable(&rows, 2) {
        return f64::NAN;
    }
    let order = Order::of(&halves(&rows));
    rhat_of(&order.scores(), &order)
}

/// [`rhat_rank`] from the order of all draws of the half chains, and their normal scores.
pub(super) fn rhat_of(scores: &[Vec<f64>], order: &Order) -> f64 {
    let location = rhat(scores);
    let spread = rhat(&order.folded().scores());
    // Only a number replaces the first one: draws of two values fold to a constant, which has no R-hat.
    if spread > location { spread } else { location }
}

/// Square root of the pooled over the within-chain variance; `rows` has shape (chains, draws).
fn rhat(rows: &[Vec<f64>]) -> f64 {
    let draws = rows[0].len() as f64;
    let means: Vec<f64> = rows.iter().map(|r| mean_of(r.iter().copied())).collect();
    let between = draws * variance_of(means.into_iter());
    let variances: Vec<f64> = rows
        .iter()
        .map(|r| variance_of(r.iter().copied()))
        .collect();
    let within = mean_of(variances.into_iter());
    ((between / within + draws - 1.0) / draws).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    #[test]
    fn chains_of_one_distribution_agree() {
        let chains = [1, 2, 3, 4].map(|seed| normal_draws(seed, 2000));
        let r = rhat_rank(&chains);
        assert!((0.999..1.005).contains(&r), "{r}");
    }

    #[test]
    fn a_shift_and_a_spread_are_both_seen() {
        let chains = |shift: f64, spread: f64| {
            let second: Vec<f64> = normal_draws(2, 1000)
                .iter()
                .map(|x| shift + spread * x)
                .collect();
            [normal_draws(1, 1000), second]
        };
        assert!(rhat_rank(&chains(2.0, 1.0)) > 1.2);
        assert!(rhat_rank(&chains(0.0, 5.0)) > 1.2);
    }

    #[test]
    fn drift_within_every_chain_is_seen() {
        let drifting = [1, 2].map(|seed| {
            let noise = normal_draws(seed, 1000);
            let line = noise.iter().enumerate().map(|(i, x)| x + i as f64 / 200.0);
            line.collect::<Vec<f64>>()
        });
        assert!(rhat_rank(&drifting) > 1.2);
    }

    #[test]
    fn the_edges() {
        assert!(rhat_rank(&[normal_draws(1, 100)]).is_nan());
        assert!(rhat_rank(&[[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]).is_nan());
        assert!(rhat_rank(&[[0.1; 20], [0.1; 20]]).is_nan());
        assert_eq!(rhat_rank(&[[0.1; 20], [0.2; 20]]), f64::INFINITY);
    }
}
