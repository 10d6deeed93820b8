//! Elementary functions in double precision that vectorise: branch-free, no table, no fused multiply–add.
//!
//! Polynomials are those of fdlibm (Sun Microsystems) and, for tanh, of Cephes (S. Moshier). Unlike [`crate::math`], they
//! overflow to infinity, underflow to zero through the subnormal numbers, and give NaN where there is no value.

#![allow(clippy::excessive_precision)] // The constants as they are published.

/// Adding it rounds to a whole number, ties to even, which then stands in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5·2^52
const LN_2_HIGH: f64 = 6.931_471_803_691_238_164_90e-01;
const LN_2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;

/// 2^n for a whole number n from -1022 to 1023.
#[inline(always)]
fn power_of_two(n: f64) -> f64 {
    f64::from_bits((n + 1023.0 + ROUND).to_bits() << 52)
}

/// Exponential.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Comparisons that fail for NaN keep it.
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let n = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let high = x - n * LN_2_HIGH;
    let low = n * LN_2_LOW;
    let r = high - low;
    let z = r * r;
    let mut p = 4.138_136_797_057_238_460_39e-08;
    p = p * z - 1.653_390_220_546_525_153_90e-06;
    p = p * z + 6.613_756_321_437_934_361_17e-05;
    p = p * z - 2.777_777_777_701_559_338_42e-03;
    p = p * z + 1.666_666_666_666_660_190_37e-01;
    let c = r - z * p;
    let y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
    // In two steps, since 2^n itself may be no normal number.
    let half = (n * 0.5 + ROUND) - ROUND;
    y * power_of_two(half) * power_of_two(n - half)
}

/// Natural logarithm.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let subnormal = x < f64::MIN_POSITIVE;
    let scaled = if subnormal {
        x * 18_014_398_509_481_984.0
    } else {
        x
    };
    // x = 2^k·m with m from √½ to √2.
    let bits = scaled
        .to_bits()
        .wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_0000_0000);
    let bias = if subnormal { 1023.0 + 54.0 } else { 1023.0 };
    let k = f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + bias);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_0000_0000);
    let f = m - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w
        * (3.999_999_999_940_941_908e-01
            + w * (2.222_219_843_214_978_396e-01 + w * 1.531_383_769_920_937_332e-01));
    let odd = z
        * (6.666_666_666_666_735_130e-01
            + w * (2.857_142_874_366_239_149e-01
                + w * (1.818_357_216_161_805_012e-01 + w * 1.479_819_860_511_658_591e-01)));
    let y = s * (half_square + (odd + even)) + k * LN_2_LOW - half_square + f + k * LN_2_HIGH;
    let edge = if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    };
    let edge = if x == f64::INFINITY { x } else { edge };
    if x > 0.0 && x < f64::INFINITY {
        y
    } else {
        edge
    }
}

/// ln(1 + u) for u from 0 to 1.
#[inline(always)]
fn ln_1p(u: f64) -> f64 {
    let v = 1.0 + u;
    // The second term is what rounding took from u.
    ln(v) + (u - (v - 1.0)) / v
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let z = x * x;
    let p = (-9.643_991_794_250_522_386_28e-1 * z - 9.928_772_310_019_185_865_64e1) * z
        - 1.614_687_684_417_084_479_52e3;
    let q = ((z + 1.128_116_784_916_329_314_02e2) * z + 2.235_488_390_601_004_485_83e3) * z
        + 4.844_063_053_251_254_860_48e3;
    let near = x + x * z * (p / q);
    let a = x.abs();
    let far = (1.0 - 2.0 / (exp(a + a) + 1.0)).copysign(x);
    // With a branch, as which an `if` is seen here, nothing would be vectorised.
    let mask = u64::from(a < 0.625).wrapping_neg();
    f64::from_bits((near.to_bits() & mask) | (far.to_bits() & !mask))
}

/// Logistic function 1 / (1 + exp(-x)).
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// ln(1 + exp(x)).
#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    // A comparison that fails for NaN, which the other term keeps.
    let positive = if x > 0.0 { x } else { 0.0 };
    positive + ln_1p(exp(-x.abs()))
}

/// x^n by repeated squaring.
#[inline(always)]
pub fn powi(x: &[f64], n: i32, out: &mut [f64]) {
    // All lanes of a vector at a time.
    for (x, out) in x.chunks(16).zip(out.chunks_mut(16)) {
        let mut square = [0.0; 16];
        let square = &mut square[..x.len()];
        square.copy_from_slice(x);
        out.fill(1.0);
        let mut left = n.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                out.iter_mut().zip(&*square).for_each(|(p, s)| *p *= s);
            }
            left >>= 1;
            if left > 0 {
                square.iter_mut().for_each(|s| *s *= *s);
            }
        }
        if n < 0 {
            out.iter_mut().for_each(|p| *p = 1.0 / *p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Binary;
    use super::super::element::{Element, Register};
    use super::*;

    /// Largest error in units of the last place of the exact value.
    fn worst(f: impl Fn(f64) -> f64, exact: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
        (0..=200_000)
            .map(|i| low + (high - low) * f64::from(i) / 200_000.0)
            .map(|x| ((f(x) - exact(x)) / exact(x)).abs() / f64::EPSILON)
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_accurate_to_a_few_units_in_the_last_place() {
        assert!(worst(exp, f64::exp, -708.0, 709.7) < 1.5);
        assert!(worst(exp, f64::exp, -1.0001, 1.0) < 1.5);
        assert!(worst(ln, f64::ln, 1e-9, 3.0) < 1.5);
        assert!(worst(ln, f64::ln, 1e-300, 1e300) < 1.5);
        assert!(worst(tanh, f64::tanh, -3.00001, 3.0) < 3.0);
        assert!(worst(softplus, |x| x.exp().ln_1p(), -50.0, 30.0) < 4.0);
        assert!(worst(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -700.0, 40.0) < 4.0);
    }

    #[test]
    fn edges_are_those_of_floats() {
        assert_eq!((exp(0.0), exp(1e9), exp(-1e9)), (1.0, f64::INFINITY, 0.0));
        assert_eq!((exp(709.9), exp(-745.2)), (f64::INFINITY, 0.0));
        for x in [-745.1, -740.0, -710.3] {
            assert!((exp(x) - x.exp()).abs() <= 5e-324, "subnormal");
        }
        assert_eq!((ln(0.0), ln(1.0)), (f64::NEG_INFINITY, 0.0));
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert_eq!((ln(5e-324), ln(1e-310)), (5e-324_f64.ln(), 1e-310_f64.ln()));
        assert!(ln(-1.0).is_nan() && ln(f64::NEG_INFINITY).is_nan());
        for f in [exp, ln, tanh, sigmoid, softplus] {
            assert!(f(f64::NAN).is_nan());
        }
        assert_eq!((tanh(1e300), tanh(f64::NEG_INFINITY)), (1.0, -1.0));
        assert_eq!((sigmoid(-1e300), sigmoid(1e300)), (0.0, 1.0));
        assert_eq!((softplus(1e300), softplus(-1e300)), (1e300, 0.0));
        let (infinity, two) = (f64::INFINITY, |f: Binary, a: f64, b: f64| {
            let mut out = [0.0];
            let of = [[a], [b]];
            Element::Two(f).values(|k| &of[k], Register(&mut out));
            out[0]
        });
        assert_eq!(two(Binary::LnAddExp, -infinity, -infinity), -infinity);
        assert_eq!(two(Binary::LnAddExp, infinity, infinity), infinity);
        assert_eq!(two(Binary::LnAddExp, -infinity, 3.0), 3.0);
        for f in [Binary::Max, Binary::Min] {
            assert!(two(f, f64::NAN, 1.0).is_nan() && two(f, 1.0, f64::NAN).is_nan());
        }
    }
}
