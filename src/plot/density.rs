//! Two-dimensional histograms of samples.

use super::Series;

/// Bins along one axis; more would not be drawn.
const MOST_BINS: usize = 1000;

/// How densely the pairs `(x, y)` lie, over `bins` bins along each axis from the least to the greatest value. Pairs with
/// a number that is not finite do not count.
pub fn density(x: &[f64], y: &[f64], bins: usize, label: &str) -> Series {
    density_within(x, y, bins, None, None, label)
}

/// Like [`density`], over these ranges where they are given: pairs outside do not count.
pub fn density_within(
    x: &[f64],
    y: &[f64],
    bins: usize,
    x_range: Option<(f64, f64)>,
    y_range: Option<(f64, f64)>,
    label: &str,
) -> Series {
    let bins = bins.clamp(1, MOST_BINS);
    let pairs = || {
        x.iter()
            .copied()
            .zip(y.iter().copied())
            .filter(|(x, y)| usable(*x) && usable(*y))
    };
    let x_edges = edges(x_range, pairs().map(|(x, _)| x), bins);
    let y_edges = edges(y_range, pairs().map(|(_, y)| y), bins);
    let (Some(across), Some(upward)) = (Bins::of(&x_edges), Bins::of(&y_edges)) else {
        return Series::density(label, Vec::new(), Vec::new(), Vec::new());
    };
    let mut counts = vec![0u64; bins * bins];
    let mut total = 0u64;
    for (column, row) in pairs().filter_map(|(x, y)| across.holding(x).zip(upward.holding(y))) {
        counts[row * bins + column] += 1;
        total += 1;
    }
    let whole = total.max(1) as f64 * across.width * upward.width;
    let values = counts.iter().map(|&count| count as f64 / whole).collect();
    Series::density(label, x_edges, y_edges, values)
}

/// Bins of one width.
struct Bins {
    low: f64,
    high: f64,
    width: f64,
    count: usize,
}

impl Bins {
    fn of(edges: &[f64]) -> Option<Self> {
        let (low, high) = (*edges.first()?, *edges.last()?);
        let count = edges.len() - 1;
        let width = (high - low) / count as f64;
        (width > 0.0).then_some(Self {
            low,
            high,
            width,
            count,
        })
    }

    /// The bin that holds the value; the last one holds its upper end.
    fn holding(&self, value: f64) -> Option<usize> {
        let is_inside = (self.low..=self.high).contains(&value);
        is_inside.then(|| (((value - self.low) / self.width) as usize).min(self.count - 1))
    }
}

/// Edges over the range asked for, or else over the values. Empty without either.
fn edges(range: Option<(f64, f64)>, values: impl Iterator<Item = f64>, bins: usize) -> Vec<f64> {
    let asked = range.filter(|(a, b)| usable(*a) && usable(*b) && a != b);
    let found = || {
        values
            .map(|value| (value, value))
            .reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
    };
    let Some((a, b)) = asked.or_else(found) else {
        return Vec::new();
    };
    let (mut low, mut high) = (a.min(b), a.max(b));
    if high - low <= low.abs().max(high.abs()) * 1e-12 || high - low < 1e-150 {
        // One value: bins around it.
        let half = match low.abs() < 1e-150 {
            true => 0.5,
            false => low.abs() * 0.05,
        };
        (low, high) = (low - half, high + half);
    }
    (0..=bins)
        .map(|i| match i {
            i if i == bins => high,
            i => low + (high - low) * (i as f64 / bins as f64),
        })
        .collect()
}

/// Finite, and far enough from overflow that differences are finite as well.
fn usable(value: f64) -> bool {
    value.abs() <= 1e150
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn mass(series: &Series) -> f64 {
        let Kind::Density { values } = &series.kind else {
            return f64::NAN;
        };
        let area = match (series.x.as_slice(), series.y.as_slice()) {
            ([a, b, ..], [c, d, ..]) => (b - a) * (d - c),
            _ => f64::NAN,
        };
        values.iter().sum::<f64>() * area
    }

    #[test]
    fn densities_add_up_to_one() {
        let x: Vec<f64> = (0..5000).map(|i| (f64::from(i) * 0.731).sin()).collect();
        let y: Vec<f64> = (0..5000).map(|i| (f64::from(i) * 0.377).cos()).collect();
        let whole = density(&x, &y, 20, "w");
        assert_eq!((whole.x.len(), whole.y.len()), (21, 21));
        assert!((mass(&whole) - 1.0).abs() < 1e-9);
        let part = density_within(&x, &y, 20, Some((0.5, 0.0)), None, "w");
        assert_eq!((part.x[0], part.x[20]), (0.0, 0.5));
        assert!((mass(&part) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rows_go_with_y() {
        let series = density(&[0.0, 1.0, 0.9], &[0.0, 0.0, 1.0], 2, "");
        let Kind::Density { values } = &series.kind else {
            panic!("{series:?}");
        };
        let filled: Vec<bool> = values.iter().map(|v| *v > 0.0).collect();
        assert_eq!(filled, [true, true, false, true]);
    }

    #[test]
    fn odd_samples_are_binned_or_left_out() {
        assert!(density(&[], &[1.0], 5, "").x.is_empty());
        assert!(density(&[f64::NAN], &[1.0], 5, "").x.is_empty());
        assert!((mass(&density(&[2.0; 9], &[0.0; 9], 0, "")) - 1.0).abs() < 1e-12);
        let outside = density_within(&[1.0], &[1.0], 3, Some((5.0, 6.0)), None, "");
        assert_eq!(mass(&outside), 0.0);
        let odd = Some((f64::NAN, 1.0));
        assert!((mass(&density_within(&[1.0], &[1.0], 3, odd, odd, "")) - 1.0).abs() < 1e-12);
    }
}
