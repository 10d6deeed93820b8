//! Monotone cubic interpolation of a function that does not decrease.

use crate::error::Result;

/// A cubic Hermite interpolant that is monotone where its points are: Fritsch and Carlson, "Monotone piecewise cubic
/// interpolation", SIAM Journal on Numerical Analysis 17 (1980) 238.
///
/// The slopes are those of the parabola through three neighbouring points, shortened where an interval needs it so that
/// (α, β), the slopes at its ends over that of the chord, lies within the circle of radius 3 (their region M_2). The
/// derivative is continuous. Third-order where slopes are not shortened.
#[derive(Debug, Clone, PartialEq)]
pub struct Monotone {
    x: Vec<f64>,
    y: Vec<f64>,
    slope: Vec<f64>,
}

impl Monotone {
    /// Through the points (x, y).
    ///
    /// # Errors
    /// With fewer than two points, one that is not finite, x that do not strictly increase or y that decrease.
    pub fn new(x: Vec<f64>, y: Vec<f64>) -> Result<Self> {
        let n = x.len();
        anyhow::ensure!(
            n >= 2 && y.len() == n,
            "an interpolation needs as many x as y, at least 2, and has {n} and {}",
            y.len()
        );
        let finite = x.iter().chain(&y).all(|v| v.is_finite());
        let ordered = x.windows(2).all(|w| w[0] < w[1]) && y.windows(2).all(|w| w[0] <= w[1]);
        anyhow::ensure!(
            finite && ordered,
            "a monotone interpolation needs finite points, x that increase and y that do not decrease: x = {x:?}, y = {y:?}"
        );
        let width: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
        let chord: Vec<f64> = (0..n - 1).map(|k| (y[k + 1] - y[k]) / width[k]).collect();
        let mut slope = first_slopes(&width, &chord);
        for k in 0..n - 1 {
            if chord[k] == 0.0 {
                (slope[k], slope[k + 1]) = (0.0, 0.0);
                continue;
            }
            let radius = (slope[k] / chord[k]).hypot(slope[k + 1] / chord[k]);
            if radius > 3.0 {
                slope[k] *= 3.0 / radius;
                slope[k + 1] *= 3.0 / radius;
            }
        }
        Ok(Self { x, y, slope })
    }

    /// The value at `x`; NaN outside the points.
    pub fn value(&self, x: f64) -> f64 {
        self.at(x).0
    }

    /// The derivative at `x`; NaN outside the points.
    pub fn derivative(&self, x: f64) -> f64 {
        self.at(x).1
    }

    /// An x at which the value is `y`; NaN outside the values of the points. Where the function is flat, one of many.
    pub fn inverse(&self, y: f64) -> f64 {
        let last = self.y.len() - 1;
        if y.is_nan() || y < self.y[0] || y > self.y[last] {
            return f64::NAN;
        }
        let k = self.y[1..last].partition_point(|v| *v <= y);
        let (mut low, mut high) = (self.x[k], self.x[k + 1]);
        // Bisection, until no number is left between the two.
        loop {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                return middle;
            }
            if self.value(middle) < y {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// Value and derivative.
    fn at(&self, x: f64) -> (f64, f64) {
        let last = self.x.len() - 1;
        if x.is_nan() || x < self.x[0] || x > self.x[last] {
            return (f64::NAN, f64::NAN);
        }
        let k = self.x[1..last].partition_point(|v| *v <= x);
        let h = self.x[k + 1] - self.x[k];
        let t = (x - self.x[k]) / h;
        let (rise, a, b) = (
            self.y[k + 1] - self.y[k],
            h * self.slope[k],
            h * self.slope[k + 1],
        );
        let (square, cube) = (3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise);
        let value = self.y[k] + t * (a + t * (square + t * cube));
        let derivative = (a + t * (2.0 * square + 3.0 * t * cube)) / h;
        // Rounding must not take it out of the interval, nor make it decrease.
        (value.clamp(self.y[k], self.y[k + 1]), derivative.max(0.0))
    }
}

/// Slopes of the parabolas through three neighbouring points; of the first and last one at the ends, at least 0.
fn first_slopes(width: &[f64], chord: &[f64]) -> Vec<f64> {
    let n = chord.len();
    if n == 1 {
        return vec![chord[0]; 2];
    }
    let end = |near: usize, next: usize| {
        let (h, g) = (width[near], width[next]);
        (((2.0 * h + g) * chord[near] - h * chord[next]) / (h + g)).max(0.0)
    };
    let mut slope = vec![end(0, 1)];
    slope.extend((1..n).map(|k| {
        let (h, g) = (width[k - 1], width[k]);
        (g * chord[k - 1] + h * chord[k]) / (h + g)
    }));
    slope.push(end(n - 1, n - 2));
    slope
}

#[cfg(test)]
mod tests {
    use super::super::tests::uniform;
    use super::*;

    /// Jagged data: steps over five decades, some of them flat.
    fn jagged(seed: u64) -> (Vec<f64>, Vec<f64>) {
        let (mut x, mut y) = (vec![0.0], vec![0.0]);
        for k in 0..12 {
            let [u, v, w] = [0, 1, 2].map(|i| uniform(seed, k, i));
            x.push(x[k as usize] + 10f64.powf(3.0 * u - 2.0));
            y.push(
                y[k as usize]
                    + if w < 0.2 {
                        0.0
                    } else {
                        10f64.powf(5.0 * v - 4.0)
                    },
            );
        }
        (x, y)
    }

    #[test]
    fn it_is_monotone_goes_through_its_points_and_its_inverse_finds_them() {
        let mut overshoot = 0;
        for seed in 0..50 {
            let (x, y) = jagged(seed);
            let f = Monotone::new(x.clone(), y.clone()).unwrap();
            // The same with slopes as they come is not monotone: what the shortening is for.
            let width: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
            let chord: Vec<f64> = (0..12).map(|k| (y[k + 1] - y[k]) / width[k]).collect();
            let mut plain = f.clone();
            plain.slope = first_slopes(&width, &chord);
            for k in 0..12 {
                assert!((f.value(x[k]) - y[k]).abs() <= 1e-13 * y[12]);
                let mut before = y[k];
                for i in 1..100 {
                    let at = x[k] + width[k] * f64::from(i) / 100.0;
                    let (value, slope) = f.at(at);
                    assert!(value >= before && slope >= 0.0, "{x:?} {y:?}");
                    before = value;
                    overshoot += u32::from(plain.derivative(at) == 0.0 && chord[k] != 0.0);
                    if chord[k] > 0.0 {
                        assert!((f.value(f.inverse(value)) - value).abs() <= 1e-12 * y[12]);
                    }
                }
            }
            assert_eq!(
                (f.inverse(0.0) == 0.0, f.inverse(y[12]) >= x[11]),
                (y[1] > 0.0, true)
            );
            assert!(f.value(-0.1).is_nan() && f.inverse(-0.1).is_nan() && f.inverse(1e9).is_nan());
        }
        assert!(overshoot > 100, "{overshoot}");
    }

    #[test]
    fn a_parabola_is_exact_and_the_derivative_is_that_of_the_value() {
        let x = vec![1.0, 1.5, 2.5, 3.0, 5.0];
        let f = Monotone::new(x.clone(), x.iter().map(|x| x * x).collect()).unwrap();
        for i in 0..=400 {
            let x = 1.0 + 0.01 * f64::from(i);
            assert!((f.value(x) - x * x).abs() < 1e-12);
            assert!((f.derivative(x) - 2.0 * x).abs() < 1e-12);
        }
        let (x, y) = jagged(3);
        let g = Monotone::new(x.clone(), y).unwrap();
        for k in 0..12 {
            let h = x[k + 1] - x[k];
            let at = x[k] + 0.3 * h;
            let difference = (g.value(at + 1e-5 * h) - g.value(at - 1e-5 * h)) / (2e-5 * h);
            let error = (g.derivative(at) - difference).abs();
            assert!(error <= 1e-5 * (g.y[k + 1] - g.y[k]) / h + 1e-9 * g.y[12] / h);
        }
    }

    #[test]
    fn what_is_no_function_is_refused() {
        for (x, y) in [
            (vec![1.0], vec![1.0]),
            (vec![1.0, 1.0], vec![0.0, 1.0]),
            (vec![0.0, 1.0], vec![1.0, 0.0]),
            (vec![0.0, f64::NAN], vec![0.0, 1.0]),
            (vec![0.0, 1.0], vec![0.0]),
        ] {
            assert!(Monotone::new(x, y).is_err());
        }
    }
}
