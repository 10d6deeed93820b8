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

/// Exponential, clamped to the finite range of normal numbers; NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // A comparison that fails for NaN keeps it, where `clamp` on some targets would not vectorise.
    let x = if x > 88.0 { 88.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = x - n * 0.693_359_375 - n * -2.121_944_4e-4;
    let z = r * r;
    let mut y = 1.987_569_1e-4 * r + 1.398_2e-3;
    y = y * r + 8.333_452e-3;
    y = y * r + 4.166_579_6e-2;
    y = y * r + 1.666_666_5e-1;
    y = y * r + 5.000_000_1e-1;
    y = y * z + r + 1.0;
    let n = if n.is_nan() { 0.0 } else { n };
    // SAFETY: n is a whole number within ±128 by the limits of x. A saturating cast would not vectorise.
    let n: i32 = unsafe { n.to_int_unchecked() };
    let scale = f32::from_bits(((n + 127) as u32) << 23);
    y * scale
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
    let a = if a > 20.0 { 20.0 } else { a };
    let far = (1.0 - 2.0 / (exp(a + a) + 1.0)).copysign(x);
    if x.abs() < 0.625 { near } else { far }
}

/// Logistic function 1 / (1 + exp(-x)).
#[inline(always)]
pub fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
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
