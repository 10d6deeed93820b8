//! A straight line through points with error bars.

/// `y = intercept + slope·x`, by least squares weighted with the inverse variances of y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Change of y per unit of x.
    pub slope: f64,
    /// Its standard error, from the error bars of y.
    pub slope_error: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Its standard error.
    pub intercept_error: f64,
    /// Σ ((y - line)/error)², which is about `degrees` if the points are on a line and the error bars are right.
    pub chi2: f64,
    /// Points less two.
    pub degrees: usize,
}

impl Line {
    /// Whether the points are so far from the line that their error bars leave less than the chance of so many standard deviations for that, by the approximation
    /// of Wilson and Hilferty (1931) to the law of χ². Never of two points.
    pub fn bends(&self, sigmas: f64) -> bool {
        let degrees = self.degrees as f64;
        let spread = 2.0 / (9.0 * degrees);
        self.degrees > 0 && (self.chi2 / degrees).cbrt() > 1.0 - spread + sigmas * spread.sqrt()
    }
}

/// The line through `(x, y, error of y)`; none if there are fewer than two different x, or an error is not positive.
pub fn line(points: &[(f64, f64, f64)]) -> Option<Line> {
    let fine = |p: &(f64, f64, f64)| p.0.is_finite() && p.1.is_finite() && p.2 > 0.0;
    if points.len() < 2 || !points.iter().all(fine) {
        return None;
    }
    let sum = |f: &dyn Fn(&(f64, f64, f64)) -> f64| -> f64 {
        points.iter().map(|p| f(p) / (p.2 * p.2)).sum()
    };
    let total = sum(&|_| 1.0);
    let (x, y) = (sum(&|p| p.0) / total, sum(&|p| p.1) / total);
    // Around the mean of x, where slope and level do not depend on each other.
    let spread = sum(&|p| (p.0 - x).powi(2));
    if spread <= 1e-14 * total * x * x || spread == 0.0 {
        return None;
    }
    let slope = sum(&|p| (p.0 - x) * (p.1 - y)) / spread;
    let intercept = y - slope * x;
    Some(Line {
        slope,
        slope_error: spread.sqrt().recip(),
        intercept,
        intercept_error: (1.0 / total + x * x / spread).sqrt(),
        chi2: sum(&|p| (p.1 - intercept - slope * p.0).powi(2)),
        degrees: points.len() - 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: weights 1, 1 and 4 at x = 0, 1, 2.
    #[test]
    fn the_line_is_that_of_the_normal_equations() {
        let l = line(&[(0.0, 1.0, 1.0), (1.0, 2.0, 1.0), (2.0, 5.0, 0.5)]).unwrap();
        // Σw = 6, Σwx = 9, Σwxx = 17, Σwy = 23, Σwxy = 42: Δ = 21.
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let of = |chi2, degrees| Line { chi2, degrees, ..l }.bends(4.0);
        // Quantiles of the one-sided chance of four standard deviations, 3.17e-5: 17.3 and 114.1.
        assert!(!of(1e9, 0) && !of(15.0, 1) && of(20.0, 1) && !of(110.0, 60) && of(115.0, 60));
        close(l.slope, (6.0 * 42.0 - 9.0 * 23.0) / 21.0);
        close(l.intercept, (17.0 * 23.0 - 9.0 * 42.0) / 21.0);
        close(l.slope_error, (6.0f64 / 21.0).sqrt());
        close(l.intercept_error, (17.0f64 / 21.0).sqrt());
        let rest = |x: f64, y: f64| (y - l.intercept - l.slope * x).powi(2);
        close(
            l.chi2,
            rest(0.0, 1.0) + rest(1.0, 2.0) + 4.0 * rest(2.0, 5.0),
        );
        assert_eq!(l.degrees, 1);
    }

    #[test]
    fn there_is_no_line_through_one_place() {
        assert_eq!(line(&[(1.0, 1.0, 1.0)]), None);
        assert_eq!(line(&[(1e6, 1.0, 1.0), (1e6, 2.0, 1.0)]), None);
        assert_eq!(line(&[(1.0, 1.0, 0.0), (2.0, 2.0, 1.0)]), None);
    }
}
