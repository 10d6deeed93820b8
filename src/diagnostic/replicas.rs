//! Averages over independent replicas and over pairs of them, as the distribution P(q) of an overlap.

use super::evidence::Estimate;
use super::moments::{mean_of, variance_of};

/// Fewest replicas whose pairs have an error bar.
pub const LEAST_REPLICAS: usize = 4;

/// The mean of one number per replica, with its standard error from their spread; NaN for one alone.
pub fn mean_over_replicas(values: &[f64]) -> Estimate {
    let variance = variance_of(values.iter().copied());
    Estimate {
        value: mean_of(values.iter().copied()),
        standard_error: (variance / values.len() as f64).sqrt(),
    }
}

/// The mean of one number per pair of `replicas`, in the order (0, 1), (0, 2), …, (1, 2), …, with its standard error.
///
/// Pairs that share a replica are correlated. With x_ab = µ + α_a + α_b + ε_ab, whose parts are uncorrelated (Hoeffding, Annals of
/// Mathematical Statistics 19 (1948) 293), the variance of the mean of n replicas is 4σ_α²/n + 2σ_ε²/(n(n - 1)), and the two variances follow without
/// bias from the sums of each replica and from what these leave; a negative σ_α² counts as zero. Of fewer than four replicas the error is NaN, and of few it
/// is as uncertain as the standard deviation of n - 1 numbers.
pub fn mean_over_pairs(replicas: usize, values: &[f64]) -> Estimate {
    let n = replicas as f64;
    let mean = mean_of(values.iter().copied());
    let unknown = Estimate {
        value: mean,
        standard_error: f64::NAN,
    };
    if replicas < LEAST_REPLICAS {
        return unknown;
    }
    let mut of_replica = vec![0.0; replicas];
    let pairs = || (0..replicas).flat_map(|a| (a + 1..replicas).map(move |b| (a, b)));
    for ((a, b), x) in pairs().zip(values) {
        of_replica[a] += x - mean;
        of_replica[b] += x - mean;
    }
    // Of the sum of a replica, α is (n - 2) times what is left by the mean.
    let own = |a: usize| of_replica[a] / (n - 2.0);
    let left = pairs()
        .zip(values)
        .map(|((a, b), x)| (x - mean - own(a) - own(b)).powi(2));
    let noise = left.sum::<f64>() / (0.5 * n * (n - 3.0));
    let sums = of_replica.iter().map(|s| s * s).sum::<f64>() / (n - 1.0);
    let shared = ((sums / (n - 2.0) - noise) / (n - 2.0)).max(0.0);
    Estimate {
        standard_error: (4.0 * shared / n + 2.0 * noise / (n * (n - 1.0))).sqrt(),
        ..unknown
    }
}

/// The distribution of a quantity q of which each replica, or each pair, has a series: moments and a histogram, with errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// ⟨q⟩.
    pub mean: Estimate,
    /// ⟨q²⟩.
    pub square: Estimate,
    /// Binder's cumulant 1 - ⟨q⁴⟩/3⟨q²⟩²: 0 of a Gaussian around zero, 2/3 of two values ±q. The error is to first order.
    pub binder: Estimate,
    /// The density over the bins between neighbouring edges, in 1/q.
    pub density: Vec<Estimate>,
}

impl Distribution {
    /// Of `series`, one of each replica or pair, all counting the same; `mean` is [`mean_over_replicas`] or [`mean_over_pairs`]. What lies outside the edges counts
    /// in the bin at that end.
    pub fn new(series: &[Vec<f64>], edges: &[f64], mean: impl Fn(&[f64]) -> Estimate) -> Self {
        let each = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let of = |s: &Vec<f64>| mean_of(s.iter().map(|q| f(*q)));
            series.iter().map(of).collect()
        };
        let (squares, fourths) = (each(&|q| q * q), each(&|q| q.powi(4)));
        let (square, fourth) = (mean(&squares), mean(&fourths).value);
        let m2 = square.value;
        let influence = |(two, four): (&f64, &f64)| {
            (2.0 * fourth * (two - m2) / m2 - (four - fourth)) / (3.0 * m2 * m2)
        };
        let influence: Vec<f64> = squares.iter().zip(&fourths).map(influence).collect();
        let bins = edges.len().saturating_sub(1);
        let bin = |q: f64| {
            let above = edges.partition_point(|edge| *edge <= q);
            above.saturating_sub(1).min(bins.saturating_sub(1))
        };
        let density = (0..bins).map(|k| {
            let width = edges[k + 1] - edges[k];
            mean(&each(&|q| if bin(q) == k { 1.0 / width } else { 0.0 }))
        });
        Self {
            mean: mean(&each(&|q| q)),
            square,
            binder: Estimate {
                value: 1.0 - fourth / (3.0 * m2 * m2),
                standard_error: mean(&influence).standard_error,
            },
            density: density.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    /// Null: the squared errors of means over pairs are, on average, the variance of these means, with and without a part that a replica has in all its pairs.
    #[test]
    fn errors_know_that_pairs_share_replicas() {
        // Cutting off what is negative adds to the squared error where a shared part is small: so much of it at most.
        let cases = [
            (4, 1.0, 0.5, 0.03),
            (8, 0.0, 1.0, 0.7),
            (12, 0.3, 1.0, 0.1),
            (12, 2.0, 0.0, 0.0),
        ];
        for (n, shared, noise, above) in cases {
            let tries = 4000;
            let (mut squares, mut claimed) = (Vec::new(), Vec::new());
            for seed in 0..tries {
                let x = normal_draws(seed + 1, n + n * n);
                let mut pairs = Vec::new();
                for a in 0..n {
                    for b in a + 1..n {
                        pairs.push(shared * (x[a] + x[b]) + noise * x[n + a * n + b]);
                    }
                }
                let found = mean_over_pairs(n, &pairs);
                squares.push(found.value.powi(2));
                claimed.push(found.standard_error.powi(2));
            }
            let (s, c) = (mean_over_replicas(&squares), mean_over_replicas(&claimed));
            let exact = 4.0 * shared * shared / n as f64
                + 2.0 * noise * noise / (n as f64 * (n as f64 - 1.0));
            assert!(
                (s.value - exact).abs() < 4.0 * s.standard_error && s.standard_error < 0.05 * exact
            );
            assert!(
                c.value > exact - 4.0 * c.standard_error
                    && c.value < exact * (1.0 + above) + 4.0 * c.standard_error
                    && c.standard_error < 0.05 * exact,
                "{n} {shared} {noise}: {c:?} for {exact}"
            );
        }
        assert!(mean_over_pairs(3, &[1.0, 2.0, 3.0]).standard_error.is_nan());
    }

    #[test]
    fn moments_and_bins_are_those_of_the_numbers() {
        let series = [vec![0.5, -0.5], vec![1.0, 0.5], vec![-1.0, 0.25]];
        let found = Distribution::new(&series, &[-1.0, 0.0, 1.0], mean_over_replicas);
        let all = || series.iter().flatten();
        let power = |k: i32| all().map(|q| q.powi(k)).sum::<f64>() / 6.0;
        assert!((found.mean.value - power(1)).abs() < 1e-15);
        assert!((found.square.value - power(2)).abs() < 1e-15);
        let binder = 1.0 - power(4) / (3.0 * power(2).powi(2));
        assert!((found.binder.value - binder).abs() < 1e-15);
        let density: Vec<f64> = found.density.iter().map(|d| d.value).collect();
        assert!((density[0] - 2.0 / 6.0).abs() < 1e-15 && (density[1] - 4.0 / 6.0).abs() < 1e-15);
        // The error of Binder's cumulant is the change by one series, as a numerical derivative has it.
        let by_hand = |weights: [f64; 3]| {
            let mean = |k: i32| {
                let each = series
                    .iter()
                    .zip(weights)
                    .map(|(s, w)| w * s.iter().map(|q| q.powi(k)).sum::<f64>() / 2.0);
                each.sum::<f64>() / weights.iter().sum::<f64>()
            };
            1.0 - mean(4) / (3.0 * mean(2).powi(2))
        };
        let slopes = (0..3).map(|i| {
            let mut w = [1.0; 3];
            w[i] += 1e-5;
            (by_hand(w) - by_hand([1.0; 3])) / 1e-5 * 3.0
        });
        let exact = (variance_of(slopes) / 3.0).sqrt();
        assert!((found.binder.standard_error / exact - 1.0).abs() < 1e-4);
    }
}
