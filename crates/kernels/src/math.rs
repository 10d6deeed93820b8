//! Elementary functions in single precision that vectorise: branch-free, no table, no fused multiply–add.
//!
//! Polynomials are those of the Cephes library (S. Moshier); errors are a few units in the last place, tested below.

#![allow(clippy::excessive_precision)] // The constants as they are published.

/// Natural logarithm of a positive, normal number.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    let mut e = ((bits >> 23) as i32 - 126) as f32;
    let mut m = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000); // in [0.5, 1)
    let small = m < std::f32::consts::FRAC_1_SQRT_2;
    e = if small { e - 1.0 } else { e };
    m = if small { m + m - 1.0 } else { m - 1.0 };
    let z = m * m;
    let mut y = 7.037_683_6e-2 * m - 1.151_461_03e-1;
    y = y * m + 1.167_699_87e-1;
    y = y * m - 1.242_014_08e-1;
    y = y * m + 1.424_932_27e-1;
    y = y * m - 1.666_805_77e-1;
    y = y * m + 2.000_071_48e-1;
    y = y * m - 2.499_999_4e-1;
    y = y * m + 3.333_333_1e-1;
    y = y * m * z;
    y += -2.121_944_4e-4 * e;
    y += -0.5 * z;
    m + y + 0.693_359_375 * e
}

/// Added to a number and taken away again, it rounds to a whole one, which then stands in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// The exponential of a number between -87 and 88, or NaN, as `(a + b)·power`, b much smaller than a.
#[inline(always)]
fn exp_in_parts(x: f32) -> (f32, f32, f32) {
    let n = x * std::f32::consts::LOG2_E + ROUND;
    let power = f32::from_bits((n.to_bits() << 23).wrapping_add(127 << 23));
    let n = n - ROUND;
    // What rounding takes away from r, and from 1 + r, goes into b.
    let (rest, small) = (x - n * 0.693_359_375, n * -2.121_944_4e-4);
    let r = rest - small;
    let lost = (rest - r) - small;
    let mut y = 1.987_569_1e-4 * r + 1.398_2e-3;
    y = y * r + 8.333_452e-3;
    y = y * r + 4.166_579_6e-2;
    y = y * r + 1.666_666_5e-1;
    y = y * r + 5.000_000_1e-1;
    let sum = 1.0 + r;
    let more = (r - (sum - 1.0)) + lost;
    (sum, y * (r * r) + more, power)
}

/// Exponential of a number between -87 and 88, or NaN.
#[inline(always)]
fn exp_within(x: f32) -> f32 {
    let (a, b, power) = exp_in_parts(x);
    (a + b) * power
}

/// Exponential, clamped to the finite range of normal numbers; NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // A comparison that fails for NaN keeps it, where `clamp` on some targets would not vectorise.
    let x = if x > 88.0 { 88.0 } else { x };
    exp_within(if x < -87.0 { -87.0 } else { x })
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let z = x * x;
    let mut p = -5.704_988_5e-3 * z + 2.063_908_9e-2;
    p = p * z - 5.373_971e-2;
    p = p * z + 1.333_144_2e-1;
    p = p * z - 3.333_328e-1;
    let near = p * z * x + x;
    let a = x.abs();
    // From 10 on it is 1.
    let far = 1.0 - 2.0 / (exp_within(if a > 10.0 { 20.0 } else { a + a }) + 1.0);
    if a < 0.625 { near } else { far.copysign(x) }
}

/// Logistic function 1 / (1 + exp(-x)).
#[inline(always)]
pub fn logistic(x: f32) -> f32 {
    // With e = exp(-|x|) it is 1/(1 + e) or e/(1 + e).
    let (a, b, power) = exp_in_parts(if x.abs() > 87.0 { -87.0 } else { -x.abs() });
    let sum = a + b;
    let (e, lost) = (sum * power, (b - (sum - a)) * power);
    let below = 1.0 + e;
    let quotient = (if x < 0.0 { e } else { 1.0 }) / below;
    // What rounding took away from e and from 1 + e, to first order.
    let lost_below = (e - (below - 1.0)) + lost;
    let (lost, inverse) = if x < 0.0 {
        (lost, 1.0 - quotient)
    } else {
        (0.0, quotient)
    };
    quotient + (lost - quotient * lost_below) * inverse
}

/// Sine and cosine of 2π·x for |x| ≤ 1/8.
#[inline(always)]
pub fn sin_cos_eighth(x: f32) -> (f32, f32) {
    let a = x * std::f32::consts::TAU;
    let z = a * a;
    let s = ((-1.951_529_6e-4 * z + 8.332_161e-3) * z - 1.666_665_5e-1) * z * a + a;
    let c = ((2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2) * z * z - 0.5 * z + 1.0;
    (s, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(
        f: impl Fn(f32) -> f32,
        exact: impl Fn(f64) -> f64,
        xs: impl Iterator<Item = f32>,
    ) -> f64 {
        xs.map(|x| {
            let e = exact(x as f64);
            ((f(x) as f64 - e) / e.abs().max(1e-30)).abs()
        })
        .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_accurate_to_a_few_units_in_the_last_place() {
        let grid = |a: f32, b: f32| (0..200_001).map(move |i| a + (b - a) * i as f32 / 200_000.0);
        let ulp = f32::EPSILON as f64;
        assert!(worst(exp, f64::exp, grid(-86.0, 87.0)) < 2.0 * ulp);
        assert!(worst(ln, f64::ln, grid(1e-9, 0.9)) < 2.0 * ulp);
        assert!(worst(tanh, f64::tanh, grid(-12.0, 12.0)) < 3.0 * ulp);
        let s = |x: f32| sin_cos_eighth(x).0;
        assert!(worst(s, |x| (std::f64::consts::TAU * x).sin(), grid(1e-6, 0.125)) < 3.0 * ulp);
    }

    /// Over every float: exp where it is a normal number, tanh and the logistic function everywhere.
    #[test]
    #[ignore = "long: tests/run"]
    fn functions_are_within_two_units_in_the_last_place_of_every_number() {
        /// The largest error of a function, in units of the last place of the exact value, over all floats from one to another of the same sign.
        fn check(
            name: &str,
            f: impl Fn(f32) -> f32 + Sync,
            exact: impl Fn(f64) -> f64 + Sync,
            from: f32,
            to: f32,
        ) {
            const SOME: u32 = 1 << 12;
            let (start, end) = (from.to_bits(), to.to_bits());
            let of_some = |first: u32| {
                let xs: [f32; SOME as usize] =
                    std::array::from_fn(|i| f32::from_bits((first + i as u32).min(end)));
                let mut found = xs;
                found.iter_mut().for_each(|x| *x = f(*x));
                let mut most = (0.0, 0.0);
                for (x, found) in xs.iter().zip(&found) {
                    let e = exact(*x as f64);
                    let power = f64::from_bits(e.to_bits() & (0x7ff << 52));
                    let unit = (power * f64::exp2(-23.0)).max(f64::exp2(-149.0));
                    let error = (*found as f64 - e).abs() / unit;
                    if error > most.0 || error.is_nan() {
                        most = (error, *x);
                    }
                }
                most
            };
            let firsts: Vec<u32> = (start..=end).step_by(SOME as usize).collect();
            let half = |of: &[u32]| {
                of.iter()
                    .map(|f| of_some(*f))
                    .fold((0.0, 0.0), |a, b| if b.0 <= a.0 { a } else { b })
            };
            let (one, other) = firsts.split_at(firsts.len() / 2);
            let (error, at) = std::thread::scope(|s| {
                let other = s.spawn(|| half(other));
                let (one, other) = (half(one), other.join().unwrap_or((f64::NAN, 0.0)));
                if other.0 <= one.0 { one } else { other }
            });
            println!("{name} from {from} to {to}: {error:.3} units at {at:e}");
            assert!(error <= 2.0, "{name}({at:e}) is wrong by {error} units");
        }
        // Most floats are so small that a few terms are exact, and much faster.
        let is_small = |x: f64| x.abs() < 1e-6;
        let exact_exp = |x: f64| {
            if is_small(x) {
                1.0 + x + 0.5 * x * x
            } else {
                x.exp()
            }
        };
        let exact_tanh = |x: f64| {
            if is_small(x) {
                x - x * x * x / 3.0
            } else {
                x.tanh()
            }
        };
        let exact_logistic = |x: f64| {
            if is_small(x) {
                0.5 + 0.25 * x
            } else {
                1.0 / (1.0 + (-x).exp())
            }
        };
        check("exp", exp, exact_exp, 0.0, 88.0);
        check("exp", exp, exact_exp, -0.0, -87.0);
        check("tanh", tanh, exact_tanh, 0.0, 100.0);
        check("logistic", logistic, exact_logistic, 0.0, 100.0);
        check("logistic", logistic, exact_logistic, -0.0, -87.0);
        // Beyond these they are constant.
        let far = (0..1 << 16)
            .map(|i| f32::from_bits(100f32.to_bits() + (i << 11)))
            .filter(|x| x.is_finite());
        assert!(
            far.into_iter()
                .all(|x| tanh(x) == 1.0 && logistic(x) == 1.0)
        );
        // Odd, bit by bit.
        let some = (0..1 << 16).map(|i| f32::from_bits(i << 15));
        assert!(some.filter(|x| !x.is_nan()).all(|x| tanh(-x) == -tanh(x)));
    }

    #[test]
    fn extremes_stay_finite_and_nan_stays_nan() {
        assert!(exp(1e30).is_finite() && exp(-1e30) >= 0.0 && exp(f32::NAN).is_nan());
        assert_eq!(
            (tanh(50.0), tanh(-50.0), logistic(-1e9) < 1e-30),
            (1.0, -1.0, true)
        );
        assert!(tanh(f32::NAN).is_nan() && logistic(f32::NAN).is_nan());
    }
}
