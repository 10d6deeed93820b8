//! Binning: edges by the rule of Freedman and Diaconis, densities over them.

const FEWEST_BINS: usize = 8;
const MOST_BINS: usize = 150;

/// Common edges for several samples: the finest width that the rule gives for any of them, over the range of all, with
/// a bounded number of bins. Empty when no value is finite.
pub(super) fn edges(samples: &[Vec<f64>]) -> Vec<f64> {
    let sorted: Vec<Vec<f64>> = samples.iter().map(|sample| sorted_finite(sample)).collect();
    let low = sorted
        .iter()
        .filter_map(|s| s.first())
        .copied()
        .reduce(f64::min);
    let high = sorted
        .iter()
        .filter_map(|s| s.last())
        .copied()
        .reduce(f64::max);
    let (Some(low), Some(high)) = (low, high) else {
        return Vec::new();
    };
    let span = high - low;
    if span <= low.abs().max(high.abs()) * 1e-12 || span < 1e-150 {
        let half = if low.abs() < 1e-150 {
            0.5
        } else {
            low.abs() * 0.05
        };
        return vec![low - half, high + half];
    }
    let width = sorted
        .iter()
        .filter_map(|sample| freedman_diaconis(sample))
        .reduce(f64::min);
    let bins = match width {
        Some(width) => (span / width)
            .ceil()
            .clamp(FEWEST_BINS as f64, MOST_BINS as f64) as usize,
        None => FEWEST_BINS,
    };
    (0..=bins)
        .map(|i| match i {
            i if i == bins => high,
            i => low + span * (i as f64 / bins as f64),
        })
        .collect()
}

/// Densities of one sample over `edges`: heights times widths add up to one, or all are zero for a sample without
/// values. Values outside the edges do not count.
pub(super) fn density(sample: &[f64], edges: &[f64]) -> Vec<f64> {
    let (Some(&low), Some(&high)) = (edges.first(), edges.last()) else {
        return Vec::new();
    };
    let bins = edges.len() - 1;
    let mut counts = vec![0u64; bins];
    for &value in sample
        .iter()
        .filter(|v| usable(**v) && (low..=high).contains(v))
    {
        let above = edges.partition_point(|edge| *edge <= value);
        counts[above.saturating_sub(1).min(bins - 1)] += 1;
    }
    let total: u64 = counts.iter().sum();
    counts
        .iter()
        .zip(edges.windows(2))
        .map(|(&count, edge)| match count {
            0 => 0.0,
            count => count as f64 / total as f64 / (edge[1] - edge[0]),
        })
        .collect()
}

/// The bin width `2 IQR n^(-1/3)`; none where it is zero.
fn freedman_diaconis(sorted: &[f64]) -> Option<f64> {
    if sorted.len() < 2 {
        return None;
    }
    let quartiles = quantile(sorted, 0.75) - quantile(sorted, 0.25);
    let width = 2.0 * quartiles / (sorted.len() as f64).cbrt();
    (width > 0.0).then_some(width)
}

fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

fn sorted_finite(sample: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = sample.iter().copied().filter(|v| usable(*v)).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Finite, and far enough from overflow that differences are finite as well.
fn usable(value: f64) -> bool {
    value.abs() <= 1e150
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mass(sample: &[f64], edges: &[f64]) -> f64 {
        density(sample, edges)
            .iter()
            .zip(edges.windows(2))
            .map(|(height, edge)| height * (edge[1] - edge[0]))
            .sum()
    }

    #[test]
    fn densities_add_up_to_one() {
        let wide: Vec<f64> = (0..1000)
            .map(|i| (f64::from(i) * 0.731).sin() * 3.0)
            .collect();
        let narrow: Vec<f64> = wide.iter().map(|v| v * 1e-3 + 1.0).collect();
        let edges = edges(&[wide.clone(), narrow.clone()]);
        assert!((FEWEST_BINS + 1..=MOST_BINS + 1).contains(&edges.len()));
        for sample in [wide, narrow] {
            assert!((mass(&sample, &edges) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn odd_samples_are_binned_or_left_out() {
        assert!(edges(&[vec![], vec![f64::NAN, f64::INFINITY]]).is_empty());
        let constant = edges(&[vec![2.0; 5]]);
        assert_eq!(constant.len(), 2);
        assert!((mass(&[2.0; 5], &constant) - 1.0).abs() < 1e-12);
        let outlier = [vec![0.0; 50], vec![1e9, 1e-9, 2e-9, f64::NAN]].concat();
        let bins = edges(std::slice::from_ref(&outlier));
        assert!(bins.len() <= MOST_BINS + 1);
        assert!((mass(&outlier, &bins) - 1.0).abs() < 1e-9);
    }
}
