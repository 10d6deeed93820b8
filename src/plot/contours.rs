//! Lines of equal value on a grid, by marching squares.

use std::collections::{BTreeMap, BTreeSet};

/// A place, in whatever units the grid has.
type Place = (f64, f64);

/// Where a line crosses the edges of the grid's cells: the place on an edge, and the edges before and after it. An edge
/// belongs to two cells, so no crossing has more than two neighbours.
type Crossings = BTreeMap<usize, (Place, Vec<usize>)>;

/// The lines on which `values`, row after row of `x.len()` numbers with one row for each `y`, have this level. A closed
/// line ends where it begins. Cells with a corner whose value or place is not finite are left out.
pub(super) fn lines(x: &[f64], y: &[f64], values: &[f64], level: f64) -> Vec<Vec<Place>> {
    let mut crossings = Crossings::new();
    if level.is_finite() {
        for row in 0..y.len().saturating_sub(1) {
            for column in 0..x.len().saturating_sub(1) {
                cross_cell(&mut crossings, (x, y, values), (column, row), level);
            }
        }
    }
    join(&crossings)
}

/// Levels at equal distances strictly between the least and the greatest of the finite values.
pub fn even_levels(values: &[f64], count: usize) -> Vec<f64> {
    let finite = values.iter().copied().filter(|v| v.abs() <= 1e150);
    let Some((low, high)) = finite
        .map(|v| (v, v))
        .reduce(|(low, high), (v, _)| (low.min(v), high.max(v)))
    else {
        return Vec::new();
    };
    let step = (high - low) / (count as f64 + 1.0);
    match step > 0.0 {
        true => (1..=count).map(|i| low + step * i as f64).collect(),
        false => Vec::new(),
    }
}

/// Adds the stretches of the line within one cell.
fn cross_cell(
    crossings: &mut Crossings,
    (x, y, values): (&[f64], &[f64], &[f64]),
    (column, row): (usize, usize),
    level: f64,
) {
    let wide = x.len();
    // Around the cell from its first corner on; an edge is known by its first corner and its direction.
    let nodes = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(i, j)| (column + i, row + j));
    let value = |(i, j): (usize, usize)| values.get(j * wide + i).copied().unwrap_or(f64::NAN);
    let corners = nodes.map(value);
    let usable = |(i, j): &(usize, usize)| x[*i].is_finite() && y[*j].is_finite();
    if !nodes.iter().all(usable) || !corners.iter().all(|v| v.abs() <= 1e150) {
        return;
    }
    let edges = [(0, 1, 0), (1, 2, 1), (3, 2, 0), (0, 3, 1)].map(|(from, to, direction)| {
        let (a, b) = (corners[from], corners[to]);
        let (start, end) = (nodes[from], nodes[to]);
        let id = 2 * (start.1 * wide + start.0) + direction;
        ((a > level) != (b > level)).then(|| {
            let part = (level - a) / (b - a);
            let along = |from: f64, to: f64| from + (to - from) * part;
            let place = (along(x[start.0], x[end.0]), along(y[start.1], y[end.1]));
            (id, place)
        })
    });
    let mut stretch = |from: (usize, Place), to: (usize, Place)| {
        for (one, other) in [(from, to), (to, from)] {
            let (_, next) = crossings
                .entry(one.0)
                .or_insert_with(|| (one.1, Vec::new()));
            next.push(other.0);
        }
    };
    if let [Some(bottom), Some(right), Some(top), Some(left)] = edges {
        // A saddle: the mean says which two of the opposite corners are joined through the middle.
        let middle = corners.iter().map(|v| v / 4.0).sum::<f64>();
        if (middle > level) == (corners[0] > level) {
            stretch(bottom, right);
            stretch(top, left);
        } else {
            stretch(left, bottom);
            stretch(right, top);
        }
        return;
    }
    let mut crossed = edges.into_iter().flatten();
    if let (Some(from), Some(to)) = (crossed.next(), crossed.next()) {
        stretch(from, to);
    }
}

/// The stretches joined end to end: first the lines with ends, then the closed ones.
fn join(crossings: &Crossings) -> Vec<Vec<Place>> {
    let ends = crossings.iter().filter(|(_, (_, next))| next.len() == 1);
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for (&start, _) in ends.chain(crossings) {
        let mut line = Vec::new();
        let mut here = Some(start).filter(|id| !seen.contains(id));
        let mut last = start;
        while let Some((id, (place, next))) =
            here.and_then(|id| crossings.get(&id).map(|crossing| (id, crossing)))
        {
            seen.insert(id);
            line.push(*place);
            last = id;
            here = next.iter().copied().find(|id| !seen.contains(id));
        }
        let returns = crossings
            .get(&last)
            .is_some_and(|(_, next)| next.contains(&start));
        if line.len() > 2 && returns {
            line.push(line[0]);
        }
        if line.len() > 1 {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(n: i32, f: impl Fn(f64, f64) -> f64) -> (Vec<f64>, Vec<f64>) {
        let x: Vec<f64> = (0..=n)
            .map(|i| f64::from(2 * i - n) / f64::from(n))
            .collect();
        let values = x.iter().flat_map(|y| x.iter().map(|x| f(*x, *y))).collect();
        (x, values)
    }

    #[test]
    fn a_circle_is_one_closed_line() {
        let (x, values) = grid(40, |x, y| x * x + y * y);
        let found = lines(&x, &x, &values, 0.36);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].first(), found[0].last());
        assert!(found[0].len() > 50);
        for (x, y) in &found[0] {
            assert!((x.hypot(*y) - 0.6).abs() < 2e-3, "{x} {y}");
        }
        // Four lines with ends where the circle leaves the grid.
        let cut = lines(&x, &x, &values, 1.44);
        assert_eq!(cut.len(), 4);
        assert!(cut.iter().all(|line| line.first() != line.last()));
        assert!(lines(&x, &x, &values, 3.0).is_empty());
    }

    #[test]
    fn saddles_are_cut_as_their_middle_says() {
        let x = [0.0, 1.0];
        let apart = lines(&x, &x, &[1.0, 0.0, 0.0, 1.0], 0.6);
        assert_eq!(apart.len(), 2);
        // Each line cuts off one of the high corners, (0, 0) and (1, 1).
        assert!(apart.iter().all(|line| {
            let sum: f64 = line.iter().map(|(x, y)| x + y).sum();
            (sum - 0.8).abs() < 1e-12 || (sum - 3.2).abs() < 1e-12
        }));
        let joined = lines(&x, &x, &[1.0, 0.0, 0.0, 1.0], 0.4);
        assert_eq!(joined.len(), 2);
        assert!(joined.iter().all(|line| {
            let sum: f64 = line.iter().map(|(x, y)| x - y).sum();
            (sum.abs() - 1.2).abs() < 1e-12
        }));
    }

    #[test]
    fn odd_grids_have_fewer_lines() {
        let (x, mut values) = grid(10, |x, _| x);
        assert_eq!(lines(&x, &x, &values, 0.1).len(), 1);
        values[5 * 11 + 5] = f64::NAN;
        assert_eq!(lines(&x, &x, &values, 0.1).len(), 2);
        assert_eq!(lines(&x, &x, &values[..33], 0.1)[0].len(), 3);
        assert!(lines(&x, &x, &values, f64::NAN).is_empty());
        assert!(lines(&[], &x, &values, 0.0).is_empty());
        assert!(lines(&x, &[1.0], &values, 0.0).is_empty());
        // A level that the values take: no line twice, and none without length.
        assert_eq!(lines(&x, &x, &grid(10, |x, _| x).1, 0.0).len(), 1);
    }

    #[test]
    fn levels_are_inside() {
        assert_eq!(even_levels(&[0.0, f64::NAN, 4.0], 3), [1.0, 2.0, 3.0]);
        assert!(even_levels(&[1.0, 1.0], 3).is_empty());
        assert!(even_levels(&[f64::INFINITY], 3).is_empty());
    }
}
