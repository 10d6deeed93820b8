//! Means, variances and quantiles over all draws, and the cutting of chains to a rectangle and to halves.

/// Mean over all draws of all chains, in their unit; NaN without draws.
pub fn mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    mean_of(rows.iter().flat_map(|row| row.iter().copied()))
}

/// Standard deviation over all draws of all chains, in their unit; NaN with fewer than two draws.
///
/// The denominator is n - 1 (the `ddof=1` of ArviZ's summary).
pub fn sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let rows = rectangle(chains);
    variance_of(rows.iter().flat_map(|row| row.iter().copied())).sqrt()
}

/// The chains as slices of one length, that of the shortest.
pub(super) fn rectangle<C: AsRef<[f64]>>(chains: &[C]) -> Vec<&[f64]> {
    let shortest = chains.iter().map(|c| c.as_ref().len()).min().unwrap_or(0);
    chains.iter().map(|c| &c.as_ref()[..shortest]).collect()
}

/// Whether `rows` has enough chains and draws and no NaN: outside of it every estimate is NaN.
pub(super) fn usable(rows: &[&[f64]], min_chains: usize) -> bool {
    const MIN_DRAWS: usize = 4;
    rows.len() >= min_chains.max(1)
        && rows[0].len() >= MIN_DRAWS
        && rows.iter().all(|row| row.iter().all(|x| !x.is_nan()))
}

/// First halves, then second halves: shape (2 chains, draws / 2). The middle draw of an odd number is left out.
pub(super) fn halves<C: AsRef<[f64]>>(rows: &[C]) -> Vec<&[f64]> {
    let first = rows.iter().map(|row| {
        let row = row.as_ref();
        &row[..row.len() / 2]
    });
    let second = rows.iter().map(|row| {
        let row = row.as_ref();
        &row[row.len() - row.len() / 2..]
    });
    first.chain(second).collect()
}

/// A new value for every draw: shape of `rows`.
pub(super) fn map_draws(rows: &[&[f64]], f: impl Fn(f64) -> f64) -> Vec<Vec<f64>> {
    rows.iter()
        .map(|row| row.iter().map(|x| f(*x)).collect())
        .collect()
}

/// Mean of a sequence; NaN when it is empty.
pub(super) fn mean_of(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (n, sum) = values
        .clone()
        .fold((0usize, 0.0), |(n, sum), x| (n + 1, sum + x));
    let rough = sum / n as f64;
    if !rough.is_finite() {
        return rough;
    }
    // The second pass takes the rounding of the first one out, so that a constant has itself as its mean and zero
    // variance: R-hat divides by that variance.
    rough + values.map(|x| x - rough).sum::<f64>() / n as f64
}

/// Variance with n - 1 in the denominator; NaN for fewer than two values.
pub(super) fn variance_of(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let mean = mean_of(values.clone());
    let (n, sum) = values.fold((0usize, 0.0), |(n, sum), x| {
        (n + 1, sum + (x - mean) * (x - mean))
    });
    if n < 2 {
        return f64::NAN;
    }
    sum / (n - 1) as f64
}

/// All draws of all chains in ascending order.
pub(super) fn sorted(rows: &[&[f64]]) -> Vec<f64> {
    let mut all: Vec<f64> = rows.iter().flat_map(|row| row.iter().copied()).collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

/// Median; NaN of no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&values)
}

/// Median of ascending values; NaN when there are none.
pub(super) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    match n {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Quantile at `prob` (0 to 1) of ascending values, linear between order statistics (type 7 of Hyndman and Fan 1996).
///
/// The operations and their order are NumPy's, rounding included: the caller compares draws with the result, and a
/// last bit of difference would move a draw that sits on the quantile to its other side.
pub(super) fn quantile_of_sorted(sorted: &[f64], prob: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = last as f64 * prob;
    let below = (position.floor().max(0.0) as usize).min(last);
    let (a, b) = (sorted[below], sorted[(below + 1).min(last)]);
    let t = position - below as f64;
    if t >= 0.5 {
        b - (b - a) * (1.0 - t)
    } else {
        a + (b - a) * t
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        let chains = [vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0, 100.0]];
        assert_eq!(mean(&chains), 3.5);
        assert!((sd(&chains) - 3.5f64.sqrt()).abs() < 1e-15);
        assert!(mean::<Vec<f64>>(&[]).is_nan());
        assert!(sd(&[[1.0]]).is_nan());
        assert_eq!(mean(&[[f64::INFINITY, 1.0]]), f64::INFINITY);
    }

    #[test]
    fn a_constant_has_itself_as_mean_and_no_variance() {
        let constant = [0.1; 1001];
        assert_eq!(mean(&[constant]), 0.1);
        assert_eq!(sd(&[constant]), 0.0);
    }

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile_of_sorted(&sorted, 0.0), 1.0);
        assert_eq!(quantile_of_sorted(&sorted, 0.5), 3.0);
        assert_eq!(quantile_of_sorted(&sorted, 1.0), 8.0);
        assert!((quantile_of_sorted(&sorted, 0.25) - 1.75).abs() < 1e-15);
        assert!(quantile_of_sorted(&[], 0.5).is_nan());
        assert_eq!(median_of_sorted(&sorted), 3.0);
        assert_eq!(median_of_sorted(&sorted[..3]), 2.0);
    }

    #[test]
    fn halves_leave_out_the_middle_of_an_odd_chain() {
        let rows = [[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]];
        assert_eq!(
            halves(&rows),
            [[1.0, 2.0], [6.0, 7.0], [4.0, 5.0], [9.0, 10.0]]
        );
    }
}
