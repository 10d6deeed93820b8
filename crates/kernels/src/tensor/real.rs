//! Elementary functions in both precisions.

use super::double;
use crate::elementwise::normal_cdf;
use crate::math;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use std::ops::{Add, Div, Mul, Neg, Sub};

pub(super) mod sealed {
    pub trait Sealed: Sized {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// The trait from a table: name, function in single and in double precision.
macro_rules! reals {
    ($($(#[$doc:meta])* $name:ident: $single:expr, $double:expr;)*) => {
        /// A number in single or double precision. Its functions take any number and give what floats give: infinity, 0 or NaN at the ends.
        pub trait Real:
            sealed::Sealed
            + Copy
            + Add<Output = Self>
            + Sub<Output = Self>
            + Mul<Output = Self>
            + Div<Output = Self>
            + Neg<Output = Self>
        {
            const DOUBLE: bool;
            /// What a comparison gives.
            type Condition: Copy;
            fn of(x: f64) -> Self;
            /// Whether `self order other`.
            fn is(self, order: Order, other: Self) -> Self::Condition;
            /// `a` if the condition holds, otherwise `b`.
            fn choose(condition: Self::Condition, a: Self, b: Self) -> Self;
            fn powf(self, exponent: Self) -> Self;
            /// Whole powers of some numbers.
            fn powi(x: &[Self], exponent: i32, out: &mut [Self]);
            $($(#[$doc])* fn $name(self) -> Self;)*
        }

        reals!(f32, false, libm::powf, powi, $($name $single;)*);
        reals!(f64, true, libm::pow, double::powi, $($name $double;)*);
    };
    ($type:ty, $is_double:literal, $powf:path, $powi:path, $($name:ident $f:expr;)*) => {
        impl Real for $type {
            const DOUBLE: bool = $is_double;
            type Condition = bool;

            #[inline(always)]
            fn of(x: f64) -> Self {
                x as Self
            }

            #[inline(always)]
            fn is(self, order: Order, other: Self) -> bool {
                match order {
                    Order::Less => self < other,
                    Order::LessEqual => self <= other,
                    Order::Greater => self > other,
                    Order::GreaterEqual => self >= other,
                    Order::Equal => self == other,
                    Order::NotEqual => self != other,
                }
            }

            #[inline(always)]
            fn choose(condition: bool, a: Self, b: Self) -> Self {
                if condition { a } else { b }
            }

            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                $powf(self, exponent)
            }

            #[inline(always)]
            fn powi(x: &[Self], exponent: i32, out: &mut [Self]) {
                $powi(x, exponent, out);
            }

            $(#[inline(always)]
            fn $name(self) -> Self {
                $f(self)
            })*
        }
    };
}

reals! {
    exp: exp, double::exp;
    ln: ln, double::ln;
    sqrt: f32::sqrt, f64::sqrt;
    abs: f32::abs, f64::abs;
    sin: libm::sinf, libm::sin;
    cos: libm::cosf, libm::cos;
    tan: libm::tanf, libm::tan;
    tanh: math::tanh, double::tanh;
    sinh: libm::sinhf, libm::sinh;
    cosh: libm::coshf, libm::cosh;
    atan: libm::atanf, libm::atan;
    /// 1/(1 + e^-x)
    sigmoid: math::logistic, double::sigmoid;
    /// ln(1 + e^x)
    softplus: softplus, double::softplus;
    erf: libm::erff, libm::erf;
    /// The derivative of the error function.
    erf_slope: |x: f32| FRAC_2_SQRT_PI as f32 * math::exp(-x * x), |x: f64| FRAC_2_SQRT_PI * double::exp(-x * x);
    /// The normal distribution function Φ.
    normal_cdf: normal_cdf, |x: f64| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
    /// Its derivative.
    normal_density: |x: f32| 0.398_942_3 * f32::exp(-0.5 * x * x), |x: f64| 0.398_942_280_401_432_7 * double::exp(-0.5 * x * x);
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

/// x to a whole power.
#[inline(always)]
fn powi(x: &[f32], n: i32, out: &mut [f32]) {
    for (o, x) in out.iter_mut().zip(x) {
        let power = (0..n.unsigned_abs()).fold(1.0, |p, _| p * x);
        *o = if n < 0 { 1.0 / power } else { power };
    }
}
