//! Probability distributions on a rectangular grid in the plane: the exact one, that of samples, and their distance.

use super::kolmogorov::ln_choose;

/// A distribution over the cells of a rectangular grid and the outside of the grid; masses are probabilities.
///
/// Cell (i, j) covers x_edges\[i\] to x_edges\[i + 1\] and y_edges\[j\] to y_edges\[j + 1\]. As in NumPy's
/// `histogram2d`, a point on an edge belongs to the cell that begins there, on the very last edge to the last cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    x_edges: Vec<f64>,
    y_edges: Vec<f64>,
    /// Mass of cell (i, j) at i * (number of cells along y) + j.
    cells: Vec<f64>,
    outside: f64,
}

impl Grid {
    /// A grid of `cells`; `None` unless both lists of edges are finite, ascend and hold at least two.
    fn new(x_edges: &[f64], y_edges: &[f64]) -> Option<Self> {
        let good = |edges: &[f64]| {
            edges.len() >= 2
                && edges.iter().all(|e| e.is_finite())
                && edges.windows(2).all(|e| e[0] < e[1])
        };
        (good(x_edges) && good(y_edges)).then(|| Self {
            x_edges: x_edges.to_vec(),
            y_edges: y_edges.to_vec(),
            cells: vec![0.0; (x_edges.len() - 1) * (y_edges.len() - 1)],
            outside: 0.0,
        })
    }

    /// The distribution whose density is proportional to exp(`log_density(x, y)`) on the grid and 0 outside.
    ///
    /// The integral over a cell is taken by the midpoint rule on `points` x `points` subcells (0 counts as 1); its
    /// error falls as `points`^-2. The largest integral is divided out before exponentials are taken, so the log
    /// density may have any constant added. Where it is -inf the density is 0. One NaN, one +inf or -inf everywhere
    /// makes every mass NaN. `None` unless both lists of edges are finite, ascend and hold at least two.
    pub fn from_log_density(
        x_edges: &[f64],
        y_edges: &[f64],
        points: usize,
        log_density: impl Fn(f64, f64) -> f64,
    ) -> Option<Self> {
        let mut grid = Self::new(x_edges, y_edges)?;
        let points = points.max(1);
        let (rows, columns) = (x_edges.windows(2), || y_edges.windows(2));
        let pairs = rows.flat_map(|x| columns().map(move |y| (x, y)));
        let within = |edges: &[f64], k: usize| {
            let share = (k as f64 + 0.5) / points as f64;
            edges[0] + share * (edges[1] - edges[0])
        };
        for (cell, (x, y)) in grid.cells.iter_mut().zip(pairs) {
            // ln of the mean density over the subcells: the largest so far, and the sum relative to it.
            let (mut most, mut sum) = (f64::NEG_INFINITY, 0.0);
            for (k, l) in (0..points).flat_map(|k| (0..points).map(move |l| (k, l))) {
                let value = log_density(within(x, k), within(y, l));
                if value > most {
                    sum = sum * (most - value).exp() + 1.0;
                    most = value;
                } else if value != f64::NEG_INFINITY {
                    sum += (value - most).exp();
                }
            }
            let area = (x[1] - x[0]) * (y[1] - y[0]);
            *cell = most + (sum * area).ln();
        }
        let most = grid.cells.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        grid.cells.iter_mut().for_each(|c| *c = (*c - most).exp());
        let total: f64 = grid.cells.iter().sum();
        grid.cells.iter_mut().for_each(|c| *c /= total);
        Some(grid)
    }

    /// The share of the points (`xs`\[t\], `ys`\[t\]) in every cell; those outside of the grid, or NaN, are `outside`.
    ///
    /// Every mass is NaN without points or when there are more of one coordinate than of the other. `None` unless both
    /// lists of edges are finite, ascend and hold at least two.
    pub fn histogram(x_edges: &[f64], y_edges: &[f64], xs: &[f64], ys: &[f64]) -> Option<Self> {
        let mut grid = Self::new(x_edges, y_edges)?;
        let columns = y_edges.len() - 1;
        for (x, y) in xs.iter().zip(ys) {
            match (cell_of(x_edges, *x), cell_of(y_edges, *y)) {
                (Some(i), Some(j)) => grid.cells[i * columns + j] += 1.0,
                _ => grid.outside += 1.0,
            }
        }
        let draws = if xs.len() == ys.len() {
            xs.len() as f64
        } else {
            f64::NAN
        };
        grid.cells.iter_mut().for_each(|c| *c /= draws);
        grid.outside /= draws;
        Some(grid)
    }

    /// Number of cells along x and along y.
    pub fn shape(&self) -> (usize, usize) {
        (self.x_edges.len() - 1, self.y_edges.len() - 1)
    }

    /// The edges along x, in the unit of x.
    pub fn x_edges(&self) -> &[f64] {
        &self.x_edges
    }

    /// The edges along y, in the unit of y.
    pub fn y_edges(&self) -> &[f64] {
        &self.y_edges
    }

    /// The mass of every cell, row-major: that of cell (i, j) at i * (number of cells along y) + j.
    pub fn cells(&self) -> &[f64] {
        &self.cells
    }

    /// The mass outside of the grid: 0 for an exact density.
    pub fn outside(&self) -> f64 {
        self.outside
    }

    /// The mass between neighbouring x edges, whatever y is on the grid.
    pub fn marginal_x(&self) -> Vec<f64> {
        let rows = self.cells.chunks_exact(self.shape().1);
        rows.map(|row| row.iter().sum()).collect()
    }

    /// The mass between neighbouring y edges, whatever x is on the grid.
    pub fn marginal_y(&self) -> Vec<f64> {
        let columns = self.shape().1;
        let mut sums = vec![0.0; columns];
        for row in self.cells.chunks_exact(columns) {
            for (sum, mass) in sums.iter_mut().zip(row) {
                *sum += mass;
            }
        }
        sums
    }

    /// The mass of the cells whose centre (x, y) satisfies `inside`; cells are taken or left whole.
    pub fn mass(&self, inside: impl Fn(f64, f64) -> bool) -> f64 {
        let centre = |e: &[f64]| e[0] + 0.5 * (e[1] - e[0]);
        let pairs = self
            .x_edges
            .windows(2)
            .flat_map(|x| self.y_edges.windows(2).map(move |y| (x, y)));
        let taken = self
            .cells
            .iter()
            .zip(pairs)
            .filter(|(_, (x, y))| inside(centre(x), centre(y)));
        taken.fold(0.0, |sum, (mass, _)| sum + mass)
    }
}

/// The cell that `x` is in.
fn cell_of(edges: &[f64], x: f64) -> Option<usize> {
    let last = edges.len() - 1;
    if x == edges[last] {
        return Some(last - 1);
    }
    let begun = edges.partition_point(|e| *e <= x);
    // A NaN is below no edge and above none: nothing has begun.
    (1..=last).contains(&begun).then(|| begun - 1)
}

/// Total variation distance, 0 to 1: half the sum of |a - b| over the cells and the outside.
///
/// The largest difference of the probabilities of any set of cells. NaN for grids of different edges.
pub fn total_variation(a: &Grid, b: &Grid) -> f64 {
    if a.x_edges != b.x_edges || a.y_edges != b.y_edges {
        return f64::NAN;
    }
    let cells = a.cells.iter().zip(&b.cells);
    let sum: f64 = cells.map(|(p, q)| (p - q).abs()).sum();
    0.5 * (sum + (a.outside - b.outside).abs())
}

/// Mean total variation distance from `exact` of the histogram of `draws` independent draws of it.
///
/// What perfect sampling would get: half the sum of E|k/n - p| over the cells, k binomial. The mean deviation is de
/// Moivre's, 2 m C(n, m) p^m (1 - p)^(n - m + 1) / n with m = floor(n p) + 1, and exact; for n p >> 1 it tends to the
/// normal sqrt(2 p (1 - p) / (pi n)), which is too large where cells are nearly empty. NaN for 0 draws.
pub fn expected_total_variation(exact: &Grid, draws: usize) -> f64 {
    if draws == 0 {
        return f64::NAN;
    }
    let all = exact.cells.iter().chain([&exact.outside]);
    0.5 * all.map(|p| mean_deviation(*p, draws)).sum::<f64>()
}

/// E|k/n - p| of the share k/n of `draws` that fall where each falls with probability `p`.
fn mean_deviation(p: f64, draws: usize) -> f64 {
    if p.is_nan() {
        return p;
    }
    if p <= 0.0 || p >= 1.0 {
        return 0.0;
    }
    let n = draws as f64;
    let most = ((n * p).floor() as usize + 1).min(draws);
    let m = most as f64;
    let ln_power = m * p.ln() + (n - m + 1.0) * (-p).ln_1p();
    2.0 * m / n * (ln_choose(draws, most) + ln_power).exp()
}

#[cfg(test)]
mod tests {
    use super::super::kolmogorov::normal_cdf;
    use super::super::rank::normal_draws;
    use super::*;
    use std::f64::consts::PI;

    fn edges(n: usize, low: f64, high: f64) -> Vec<f64> {
        let step = (high - low) / n as f64;
        (0..=n).map(|i| low + step * i as f64).collect()
    }

    fn normal(n: usize, points: usize) -> Grid {
        let e = edges(n, -4.0, 4.0);
        // A constant far beyond what an exponential takes.
        Grid::from_log_density(&e, &e, points, |x, y| -0.5 * (x * x + y * y) - 1e5).unwrap()
    }

    #[test]
    fn a_normal_density_has_its_masses() {
        let cell =
            |a: f64, b: f64| (normal_cdf(b) - normal_cdf(a)) / (1.0 - 2.0 * normal_cdf(-4.0));
        let want: Vec<f64> = (0..8)
            .map(|i| cell(i as f64 - 4.0, i as f64 - 3.0))
            .collect();
        let worst = |points| {
            let grid = normal(8, points);
            assert!((grid.cells().iter().sum::<f64>() - 1.0).abs() < 1e-14);
            assert_eq!(grid.marginal_x().len(), 8);
            let (x, y) = (grid.marginal_x(), grid.marginal_y());
            assert!(x.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-15));
            let off = x.iter().zip(&want).map(|(a, b)| (a - b).abs());
            off.fold(0.0, f64::max)
        };
        let (rough, fine) = (worst(2), worst(20));
        assert!(fine < 1e-4, "{fine}");
        // Second order: 10 times the points, a hundredth of the error.
        assert!((rough / fine / 100.0 - 1.0).abs() < 0.1, "{rough} {fine}");
        assert!((normal(8, 3).mass(|x, _| x > 0.0) - 0.5).abs() < 1e-14);
        assert!((normal(8, 3).mass(|x, y| x > 0.0 && y < 0.0) - 0.25).abs() < 1e-14);
        assert_eq!(normal(8, 3).mass(|_, _| false), 0.0);
    }

    #[test]
    fn uneven_cells_weigh_by_area() {
        let grid = Grid::from_log_density(&[0.0, 1.0, 4.0], &[0.0, 2.0], 1, |_, _| 7.0).unwrap();
        assert_eq!(grid.shape(), (2, 1));
        assert!((grid.cells()[0] - 0.25).abs() < 1e-15 && (grid.cells()[1] - 0.75).abs() < 1e-15);
        let half = |x: f64, _| if x < 1.0 { f64::NEG_INFINITY } else { 0.0 };
        let grid = Grid::from_log_density(&[0.0, 1.0, 4.0], &[0.0, 2.0], 3, half).unwrap();
        assert_eq!(grid.cells(), [0.0, 1.0]);
    }

    #[test]
    fn a_histogram_counts_as_numpy_does() {
        let xs = [0.0, 1.0, 2.0, 2.1, -0.1, 0.5, f64::NAN, 0.5];
        let ys = [0.0, 5.0, 10.0, 1.0, 1.0, 5.0, 1.0, f64::INFINITY];
        let grid = Grid::histogram(&[0.0, 1.0, 2.0], &[0.0, 5.0, 10.0], &xs, &ys).unwrap();
        let counts: Vec<f64> = grid.cells().iter().map(|c| c * 8.0).collect();
        assert_eq!(counts, [1.0, 1.0, 0.0, 2.0]);
        assert_eq!(grid.outside(), 0.5);
    }

    #[test]
    fn distances_of_hand_made_grids() {
        let e = [0.0, 1.0, 2.0];
        let at = |xs: &[f64]| Grid::histogram(&e, &[0.0, 1.0], xs, &vec![0.5; xs.len()]).unwrap();
        let (left, right, mixed) = (at(&[0.5]), at(&[1.5]), at(&[0.5, 1.5, 9.0, 0.5]));
        assert_eq!(total_variation(&left, &right), 1.0);
        assert_eq!(total_variation(&left, &left), 0.0);
        // (1/2, 1/4, outside 1/4) from (1, 0, 0).
        assert_eq!(total_variation(&left, &mixed), 0.5);
        let other = Grid::histogram(&e, &[0.0, 2.0], &[0.5], &[0.5]).unwrap();
        assert!(total_variation(&left, &other).is_nan());
    }

    #[test]
    fn the_mean_deviation_is_the_binomial_sum() {
        for (p, n) in [
            (0.3, 1),
            (0.5, 2),
            (0.01, 30),
            (0.2, 25),
            (0.97, 40),
            (1e-9, 7),
        ] {
            let term = |k: usize| {
                let (k, rest) = (k as f64, (n - k) as f64);
                let ways = ln_choose(n, k as usize).exp();
                (k / n as f64 - p).abs() * ways * f64::powf(p, k) * (1.0 - p).powf(rest)
            };
            let (want, got) = ((0..=n).map(term).sum::<f64>(), mean_deviation(p, n));
            assert!((got / want - 1.0).abs() < 1e-12, "{p} {n}: {got} {want}");
        }
        let normal = (2.0 * 0.1 * 0.9 / (PI * 1e6)).sqrt();
        assert!((mean_deviation(0.1, 1_000_000) / normal - 1.0).abs() < 1e-5);
    }

    #[test]
    fn independent_draws_are_as_far_as_expected() {
        let (n, repeats) = (2000, 20);
        let exact = normal(24, 8);
        let e = exact.x_edges().to_vec();
        let distance = |seed| {
            let (xs, ys) = (normal_draws(seed, n), normal_draws(1000 + seed, n));
            total_variation(&Grid::histogram(&e, &e, &xs, &ys).unwrap(), &exact)
        };
        let mean = (0..repeats).map(distance).sum::<f64>() / repeats as f64;
        let want = expected_total_variation(&exact, n);
        assert!((mean / want - 1.0).abs() < 0.03, "{mean} {want}");
    }

    #[test]
    fn the_edges() {
        let flat = |_: f64, _: f64| 0.0;
        for bad in [
            &[][..],
            &[1.0],
            &[1.0, 1.0],
            &[2.0, 1.0],
            &[0.0, f64::NAN],
            &[0.0, f64::INFINITY],
        ] {
            assert!(Grid::from_log_density(bad, &[0.0, 1.0], 1, flat).is_none());
            assert!(Grid::histogram(&[0.0, 1.0], bad, &[], &[]).is_none());
        }
        let e = [0.0, 1.0, 2.0];
        for odd in [f64::NAN, f64::INFINITY] {
            let log = |x: f64, _| if x < 1.0 { odd } else { 0.0 };
            let grid = Grid::from_log_density(&e, &e, 2, log).unwrap();
            assert!(grid.cells().iter().all(|c| c.is_nan()), "{grid:?}");
            assert!(expected_total_variation(&grid, 5).is_nan());
        }
        let nowhere = Grid::from_log_density(&e, &e, 0, |_, _| f64::NEG_INFINITY).unwrap();
        assert!(nowhere.cells().iter().all(|c| c.is_nan()));
        let none = Grid::histogram(&e, &e, &[], &[]).unwrap();
        assert!(none.cells()[0].is_nan() && none.outside().is_nan());
        assert!(total_variation(&none, &none).is_nan());
        assert!(
            Grid::histogram(&e, &e, &[0.5], &[])
                .unwrap()
                .outside()
                .is_nan()
        );
        assert!(expected_total_variation(&normal(2, 1), 0).is_nan());
    }
}
