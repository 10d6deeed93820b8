//! Functions of one element and their derivatives, on slices.

use super::operation::{Binary, Unary};
use crate::kernels::elementwise::normal_cdf;
use crate::kernels::{math, simd};

/// What is done to each element of one, two or three tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Element {
    /// Of one.
    One(Unary),
    /// Of two.
    Two(Binary),
    /// The second where the first is not 0, otherwise the third.
    Choose,
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
fn power(x: f32, n: i32) -> f32 {
    let mut out = 1.0;
    for _ in 0..n.unsigned_abs() {
        out *= x;
    }
    if n < 0 { 1.0 / out } else { out }
}

#[inline(always)]
fn map(x: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32) {
    for (o, x) in out.iter_mut().zip(x) {
        *o = f(*x);
    }
}

#[inline(always)]
fn zip(x: &[f32], y: &[f32], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
        *o = f(*x, *y);
    }
}

simd! {
    /// `out = f(x)`.
    pub fn unary(f: Unary, x: &[f32], out: &mut [f32]) {
        match f {
            Unary::Negate => map(x, out, |x| -x),
            Unary::Exp => map(x, out, exp),
            Unary::Ln => map(x, out, ln),
            Unary::Sqrt => map(x, out, f32::sqrt),
            Unary::Abs => map(x, out, f32::abs),
            Unary::Sin => map(x, out, libm::sinf),
            Unary::Cos => map(x, out, libm::cosf),
            Unary::Tanh => map(x, out, math::tanh),
            Unary::Sigmoid => map(x, out, math::logistic),
            Unary::Relu => map(x, out, |x| if x < 0.0 { 0.0 } else { x }),
            Unary::Softplus => map(x, out, softplus),
            Unary::Gelu => map(x, out, |x| x * normal_cdf(x)),
            Unary::Erf => map(x, out, libm::erff),
            Unary::Power(2) => map(x, out, |x| x * x),
            Unary::Power(n) => map(x, out, |x| power(x, n)),
        }
    }
}

simd! {
    /// `out = delta · f'`, from x and y = f(x).
    pub fn unary_derivative(f: Unary, x: &[f32], y: &[f32], delta: &[f32], out: &mut [f32]) {
        match f {
            Unary::Negate => map(delta, out, |d| -d),
            Unary::Exp => zip(y, delta, out, |y, d| d * y),
            Unary::Ln => zip(x, delta, out, |x, d| d / x),
            Unary::Sqrt => zip(y, delta, out, |y, d| d * 0.5 / y),
            Unary::Abs => zip(x, delta, out, |x, d| if x > 0.0 { d } else if x < 0.0 { -d } else { d * x }),
            Unary::Sin => zip(x, delta, out, |x, d| d * libm::cosf(x)),
            Unary::Cos => zip(x, delta, out, |x, d| -d * libm::sinf(x)),
            Unary::Tanh => zip(y, delta, out, |y, d| d * (1.0 - y * y)),
            Unary::Sigmoid => zip(y, delta, out, |y, d| d * (y * (1.0 - y))),
            // Not `y > 0.0`: a NaN must stay visible.
            Unary::Relu => zip(y, delta, out, |y, d| if y <= 0.0 { 0.0 } else { d }),
            Unary::Softplus => zip(x, delta, out, |x, d| d * math::logistic(x)),
            Unary::Gelu => zip(x, delta, out, |x, d| {
                d * (normal_cdf(x) + x * (0.398_942_3 * (-0.5 * x * x).exp()))
            }),
            Unary::Erf => zip(x, delta, out, |x, d| d * (std::f32::consts::FRAC_2_SQRT_PI * math::exp(-x * x))),
            // 0 · x^-1 would be no number at 0.
            Unary::Power(0) => out.fill(0.0),
            Unary::Power(2) => zip(x, delta, out, |x, d| d * (x + x)),
            Unary::Power(n) => zip(x, delta, out, |x, d| d * (n as f32 * power(x, n - 1))),
        }
    }
}

simd! {
    /// `out = f(a, b)`.
    pub fn binary(f: Binary, a: &[f32], b: &[f32], out: &mut [f32]) {
        let one = |x: bool| if x { 1.0 } else { 0.0 };
        match f {
            Binary::Add => zip(a, b, out, |a, b| a + b),
            Binary::Subtract => zip(a, b, out, |a, b| a - b),
            Binary::Multiply => zip(a, b, out, |a, b| a * b),
            Binary::Divide => zip(a, b, out, |a, b| a / b),
            Binary::Power => zip(a, b, out, libm::powf),
            // A NaN on either side stays visible.
            Binary::Max => zip(a, b, out, |a, b| if a.is_nan() || a > b { a } else { b }),
            Binary::Min => zip(a, b, out, |a, b| if a.is_nan() || a < b { a } else { b }),
            Binary::Less => zip(a, b, out, |a, b| one(a < b)),
            Binary::LessEqual => zip(a, b, out, |a, b| one(a <= b)),
            Binary::Greater => zip(a, b, out, |a, b| one(a > b)),
            Binary::GreaterEqual => zip(a, b, out, |a, b| one(a >= b)),
            Binary::Equal => zip(a, b, out, |a, b| one(a == b)),
            Binary::NotEqual => zip(a, b, out, |a, b| one(a != b)),
        }
    }
}

/// `out = delta · g(a, b)`.
#[inline(always)]
fn pairs(a: &[f32], b: &[f32], delta: &[f32], out: &mut [f32], g: impl Fn(f32, f32) -> f32) {
    for (((o, a), b), d) in out.iter_mut().zip(a).zip(b).zip(delta) {
        *o = *d * g(*a, *b);
    }
}

simd! {
    /// `out = delta · ∂f/∂a`, or with respect to b if `second`.
    pub fn binary_derivative(f: Binary, second: bool, a: &[f32], b: &[f32], delta: &[f32], out: &mut [f32]) {
        // Where both are equal, half goes to either; NaN stays.
        let larger = |a: f32, b: f32| if a > b { 1.0 } else if a < b { 0.0 } else { 0.5 };
        match (f, second) {
            (Binary::Add, _) | (Binary::Subtract, false) => out.copy_from_slice(delta),
            (Binary::Subtract, true) => map(delta, out, |d| -d),
            (Binary::Multiply, false) => zip(b, delta, out, |b, d| d * b),
            (Binary::Multiply, true) => zip(a, delta, out, |a, d| d * a),
            (Binary::Divide, false) => zip(b, delta, out, |b, d| d / b),
            (Binary::Divide, true) => pairs(a, b, delta, out, |a, b| -a / (b * b)),
            (Binary::Power, false) => pairs(a, b, delta, out, |a, b| if b == 0.0 { 0.0 } else { b * libm::powf(a, b - 1.0) }),
            (Binary::Power, true) => pairs(a, b, delta, out, |a, b| {
                let y = libm::powf(a, b);
                if y == 0.0 { 0.0 } else { y * ln(a) }
            }),
            (Binary::Max, false) | (Binary::Min, true) => pairs(a, b, delta, out, larger),
            (Binary::Max, true) | (Binary::Min, false) => pairs(a, b, delta, out, |a, b| 1.0 - larger(a, b)),
            _ => out.fill(0.0),
        }
    }
}

simd! {
    /// `out = a` where c is not 0, otherwise b.
    pub fn choose(c: &[f32], a: &[f32], b: &[f32], out: &mut [f32]) {
        for (((o, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
            *o = if *c != 0.0 { *a } else { *b };
        }
    }
}

simd! {
    /// `out = delta` where c is not 0, or where it is 0 if `otherwise`; elsewhere 0.
    pub fn choose_derivative(otherwise: bool, c: &[f32], delta: &[f32], out: &mut [f32]) {
        zip(c, delta, out, |c, d| if (c != 0.0) != otherwise { d } else { 0.0 });
    }
}

impl Element {
    /// The function of some elements of its operands.
    pub fn value(self, of: &[&[f32]], out: &mut [f32]) {
        match self {
            Element::One(f) => unary(f, of[0], out),
            Element::Two(f) => binary(f, of[0], of[1], out),
            Element::Choose => choose(of[0], of[1], of[2], out),
        }
    }

    /// `out = delta · ∂f/∂(operand number which)`, where f gave y.
    pub fn derivative(
        self,
        which: usize,
        of: &[&[f32]],
        y: &[f32],
        delta: &[f32],
        out: &mut [f32],
    ) {
        match self {
            Element::One(f) => unary_derivative(f, of[0], y, delta, out),
            Element::Two(f) => binary_derivative(f, which == 1, of[0], of[1], delta, out),
            Element::Choose => choose_derivative(which == 2, of[0], delta, out),
        }
    }
}
