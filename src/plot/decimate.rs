//! Thinning in pixel space: fewer vertices, the same picture.

use std::collections::HashSet;

/// A place on the page, in pixels.
pub(super) type Pixel = (f64, f64);

/// A line with the same outline: of the points that follow each other within one column of width `column`, the first,
/// the lowest, the highest and the last, in their order.
pub(super) fn line(points: &[Pixel], column: f64) -> Vec<Pixel> {
    let column_of = |point: &Pixel| (point.0 / column).floor();
    points
        .chunk_by(|a, b| column_of(a) == column_of(b))
        .flat_map(|group| {
            let by_height = |a: &usize, b: &usize| group[*a].1.total_cmp(&group[*b].1);
            let lowest = (0..group.len()).min_by(by_height).unwrap_or(0);
            let highest = (0..group.len()).max_by(by_height).unwrap_or(0);
            let mut keep = vec![0, lowest, highest, group.len() - 1];
            keep.sort_unstable();
            keep.dedup();
            keep.into_iter().map(|i| group[i])
        })
        .collect()
}

/// Which of the points to draw so that at most `most` markers cover the same places.
pub(super) fn markers(points: &[Pixel], most: usize) -> Vec<usize> {
    let mut cell = 0.5;
    loop {
        let mut taken = HashSet::new();
        let kept: Vec<usize> = (0..points.len())
            .filter(|&i| {
                let (x, y) = points[i];
                taken.insert(((x / cell).floor() as i64, (y / cell).floor() as i64))
            })
            .collect();
        if kept.len() <= most || cell > 1e4 {
            return kept;
        }
        cell *= 1.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_extremes_and_ends() {
        let mut points: Vec<Pixel> = (0..100_000)
            .map(|i| (f64::from(i) * 0.006, (f64::from(i) * 0.37).sin()))
            .collect();
        points[5_003].1 = 40.0;
        points[77_777].1 = -40.0;
        let thin = line(&points, 1.0);
        assert!(thin.len() <= 4 * 601, "{} vertices", thin.len());
        assert!(thin.contains(&points[5_003]) && thin.contains(&points[77_777]));
        assert_eq!(thin.first(), points.first());
        assert_eq!(thin.last(), points.last());
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(line(&points[..1], 1.0).len(), 1);
        assert!(line(&[], 1.0).is_empty());
    }

    #[test]
    fn markers_are_bounded() {
        let points: Vec<Pixel> = (0..50_000u32)
            .map(|i| (f64::from(i * 7919 % 700), f64::from(i * 6947 % 450)))
            .collect();
        let kept = markers(&points, 1000);
        assert!(!kept.is_empty() && kept.len() <= 1000);
        assert_eq!(markers(&[(1.0, 1.0), (1.0, 1.0)], 1000), [0]);
    }
}
