//! Elementary functions in both precisions.

use super::double;
use crate::kernels::elementwise::normal_cdf;
use crate::kernels::math;
use std::ops::{Add, Div, Mul, Neg, Sub};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number in single or double precision. Its functions take any number and give what floats give: infinity, 0 or NaN at the ends.
pub trait Real:
    sealed::Sealed
    + Copy
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const DOUBLE: bool;
    fn of(x: f64) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn tanh(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn atan(self) -> Self;
    /// 1/(1 + e^-x)
    fn sigmoid(self) -> Self;
    /// ln(1 + e^x)
    fn softplus(self) -> Self;
    fn erf(self) -> Self;
    /// The derivative of the error function.
    fn erf_slope(self) -> Self;
    /// The normal distribution function Φ.
    fn normal_cdf(self) -> Self;
    /// Its derivative.
    fn normal_density(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
    /// Whole powers of some numbers.
    fn powi(x: &[Self], exponent: i32, out: &mut [Self]);
}

/// Functions of one number by those of another name.
macro_rules! functions {
    ($($name:ident = $f:expr;)*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            $f(self)
        }
    )*};
}

impl Real for f32 {
    const DOUBLE: bool = false;

    functions! {
        exp = exp;
        ln = ln;
        sqrt = f32::sqrt;
        abs = f32::abs;
        sin = libm::sinf;
        cos = libm::cosf;
        tan = libm::tanf;
        tanh = math::tanh;
        sinh = libm::sinhf;
        cosh = libm::coshf;
        atan = libm::atanf;
        sigmoid = math::logistic;
        softplus = softplus;
        erf = libm::erff;
        erf_slope = |x: f32| std::f32::consts::FRAC_2_SQRT_PI * math::exp(-x * x);
        normal_cdf = normal_cdf;
        normal_density = |x: f32| 0.398_942_3 * f32::exp(-0.5 * x * x);
    }

    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        libm::powf(self, exponent)
    }

    #[inline(always)]
    fn powi(x: &[Self], exponent: i32, out: &mut [Self]) {
        for (o, x) in out.iter_mut().zip(x) {
            let power = (0..exponent.unsigned_abs()).fold(1.0, |p, _| p * x);
            *o = if exponent < 0 { 1.0 / power } else { power };
        }
    }
}

impl Real for f64 {
    const DOUBLE: bool = true;

    functions! {
        exp = double::exp;
        ln = double::ln;
        sqrt = f64::sqrt;
        abs = f64::abs;
        sin = libm::sin;
        cos = libm::cos;
        tan = libm::tan;
        tanh = double::tanh;
        sinh = libm::sinh;
        cosh = libm::cosh;
        atan = libm::atan;
        sigmoid = double::sigmoid;
        softplus = double::softplus;
        erf = libm::erf;
        erf_slope = |x: f64| std::f64::consts::FRAC_2_SQRT_PI * double::exp(-x * x);
        normal_cdf = |x: f64| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        normal_density = |x: f64| 0.398_942_280_401_432_7 * double::exp(-0.5 * x * x);
    }

    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        libm::pow(self, exponent)
    }

    #[inline(always)]
    fn powi(x: &[Self], exponent: i32, out: &mut [Self]) {
        double::powi(x, exponent, out);
    }
}

/// e^x over the whole range: infinite above, 0 below.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let large = x > 88.0;
    let y = math::exp(if large { x - 1.0 } else { x });
    let y = if large { y * std::f32::consts::E } else { y };
    if x < -87.0 { 0.0 } else { y }
}

/// ln x of any number: -∞ at 0, NaN below.
#[inline(always)]
fn ln(x: f32) -> f32 {
    let small = x < f32::MIN_POSITIVE;
    let y = math::ln(if small { x * 16_777_216.0 } else { x });
    let y = if small { y - 16.635_532 } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// ln(1 + e^x), without overflow and for x far below 0 too.
#[inline(always)]
fn softplus(x: f32) -> f32 {
    let u = exp(-x.abs());
    let w = 1.0 + u;
    let d = w - 1.0;
    let l = if d == 0.0 { u } else { math::ln(w) * u / d };
    if x > 0.0 { x + l } else { l }
}
