//! Functions of one element and their derivatives, on slices, in both precisions.

use super::operation::{Binary, Unary};
use super::real::Real;
use crate::kernels::simd;

/// What is done to each element of one, two or three tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Of one.
    One(Unary),
    /// Of two.
    Two(Binary),
    /// The second where the first is not 0, otherwise the third.
    Choose,
}

#[inline(always)]
fn map<R: Real>(x: &[R], out: &mut [R], f: impl Fn(R) -> R) {
    for (o, x) in out.iter_mut().zip(x) {
        *o = f(*x);
    }
}

#[inline(always)]
fn zip<R: Real>(x: &[R], y: &[R], out: &mut [R], f: impl Fn(R, R) -> R) {
    for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
        *o = f(*x, *y);
    }
}

#[inline(always)]
fn zip3<R: Real>(x: &[R], y: &[R], z: &[R], out: &mut [R], f: impl Fn(R, R, R) -> R) {
    for (((o, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
        *o = f(*x, *y, *z);
    }
}

/// The larger of two; a NaN on either side stays visible.
#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    #[allow(clippy::eq_op)] // Only NaN is not itself.
    if a > b || a != a { a } else { b }
}

/// `over` where a > b, `under` where a < b, their mean where neither is so: the subgradient in the middle.
#[inline(always)]
fn side<R: Real>(a: R, b: R, over: R, under: R) -> R {
    let rest = if a < b {
        under
    } else {
        R::of(0.5) * (over + under)
    };
    if a > b { over } else { rest }
}

#[inline(always)]
fn one<R: Real>(holds: bool) -> R {
    if holds { R::of(1.0) } else { R::of(0.0) }
}

#[inline(always)]
fn unary<R: Real>(f: Unary, x: &[R], out: &mut [R]) {
    let zero = R::of(0.0);
    match f {
        Unary::Negate => map(x, out, |x| -x),
        Unary::Exp => map(x, out, R::exp),
        Unary::Ln => map(x, out, R::ln),
        Unary::Sqrt => map(x, out, R::sqrt),
        Unary::Abs => map(x, out, R::abs),
        Unary::Sin => map(x, out, R::sin),
        Unary::Cos => map(x, out, R::cos),
        Unary::Tan => map(x, out, R::tan),
        Unary::Tanh => map(x, out, R::tanh),
        Unary::Sinh => map(x, out, R::sinh),
        Unary::Cosh => map(x, out, R::cosh),
        Unary::Atan => map(x, out, R::atan),
        Unary::Sigmoid => map(x, out, R::sigmoid),
        Unary::Relu => map(x, out, |x| if x < zero { zero } else { x }),
        Unary::Softplus => map(x, out, R::softplus),
        Unary::Gelu => map(x, out, |x| x * x.normal_cdf()),
        Unary::Erf => map(x, out, R::erf),
        Unary::Hold => map(x, out, |x| {
            let infinite = x.abs() == R::of(f64::INFINITY);
            if infinite { zero } else { x }
        }),
        Unary::Power(2) => map(x, out, |x| x * x),
        Unary::Power(n) => R::powi(x, n, out),
    }
}

/// `out = delta · f'`, from x and y = f(x).
#[inline(always)]
fn unary_slope<R: Real>(f: Unary, x: &[R], y: &[R], delta: &[R], out: &mut [R]) {
    let (zero, one) = (R::of(0.0), R::of(1.0));
    match f {
        Unary::Negate => map(delta, out, |d| -d),
        Unary::Exp => zip(y, delta, out, |y, d| d * y),
        Unary::Ln => zip(x, delta, out, |x, d| d / x),
        Unary::Sqrt => zip(y, delta, out, |y, d| d * R::of(0.5) / y),
        Unary::Abs => zip(x, delta, out, |x, d| {
            let rest = if x < zero { -d } else { d * x };
            if x > zero { d } else { rest }
        }),
        Unary::Sin => zip(x, delta, out, |x, d| d * x.cos()),
        Unary::Cos => zip(x, delta, out, |x, d| -d * x.sin()),
        Unary::Tan => zip(y, delta, out, |y, d| d * (one + y * y)),
        Unary::Tanh => zip(y, delta, out, |y, d| d * (one - y * y)),
        Unary::Sinh => zip(x, delta, out, |x, d| d * x.cosh()),
        Unary::Cosh => zip(x, delta, out, |x, d| d * x.sinh()),
        Unary::Atan => zip(x, delta, out, |x, d| d / (one + x * x)),
        Unary::Sigmoid => zip(y, delta, out, |y, d| d * (y * (one - y))),
        // Not `y > 0.0`: a NaN must stay visible.
        Unary::Relu => zip(y, delta, out, |y, d| if y <= zero { zero } else { d }),
        Unary::Softplus => zip(x, delta, out, |x, d| d * x.sigmoid()),
        Unary::Gelu => zip(x, delta, out, |x, d| {
            d * (x.normal_cdf() + x * x.normal_density())
        }),
        Unary::Erf => zip(x, delta, out, |x, d| d * x.erf_slope()),
        // 0 · x^-1 would be no number at 0.
        Unary::Hold | Unary::Power(0) => out.fill(zero),
        Unary::Power(2) => zip(x, delta, out, |x, d| d * (x + x)),
        Unary::Power(n) => {
            R::powi(x, n - 1, out);
            let factor = R::of(f64::from(n));
            for (o, d) in out.iter_mut().zip(delta) {
                *o = *d * (factor * *o);
            }
        }
    }
}

#[inline(always)]
fn binary<R: Real>(f: Binary, a: &[R], b: &[R], out: &mut [R]) {
    match f {
        Binary::Add => zip(a, b, out, |a, b| a + b),
        Binary::Subtract => zip(a, b, out, |a, b| a - b),
        Binary::Multiply => zip(a, b, out, |a, b| a * b),
        Binary::Divide => zip(a, b, out, |a, b| a / b),
        Binary::Power => zip(a, b, out, R::powf),
        Binary::Max => zip(a, b, out, larger),
        Binary::Min => zip(a, b, out, |a, b| -larger(-a, -b)),
        Binary::LnAddExp => zip(a, b, out, |a, b| {
            // The difference of equal infinities would be NaN.
            let gap = if a == b { R::of(0.0) } else { (a - b).abs() };
            larger(a, b) + (-gap).softplus()
        }),
        Binary::Less => zip(a, b, out, |a, b| one(a < b)),
        Binary::LessEqual => zip(a, b, out, |a, b| one(a <= b)),
        Binary::Greater => zip(a, b, out, |a, b| one(a > b)),
        Binary::GreaterEqual => zip(a, b, out, |a, b| one(a >= b)),
        Binary::Equal => zip(a, b, out, |a, b| one(a == b)),
        Binary::NotEqual => zip(a, b, out, |a, b| one(a != b)),
    }
}

/// `out = delta · ∂f/∂a`, or with respect to b if `second`.
#[inline(always)]
fn binary_slope<R: Real>(
    f: Binary,
    second: bool,
    [a, b]: [&[R]; 2],
    y: &[R],
    delta: &[R],
    out: &mut [R],
) {
    let zero = R::of(0.0);
    match (f, second) {
        (Binary::Add, _) | (Binary::Subtract, false) => map(delta, out, |d| d),
        (Binary::Subtract, true) => map(delta, out, |d| -d),
        (Binary::Multiply, false) => zip(b, delta, out, |b, d| d * b),
        (Binary::Multiply, true) => zip(a, delta, out, |a, d| d * a),
        (Binary::Divide, false) => zip(b, delta, out, |b, d| d / b),
        (Binary::Divide, true) if R::DOUBLE => zip3(y, b, delta, out, |y, b, d| -d * y / b),
        (Binary::Divide, true) => zip3(a, b, delta, out, |a, b, d| d * (-a / (b * b))),
        (Binary::Power, false) => zip3(a, b, delta, out, |a, b, d| {
            let slope = b * a.powf(b - R::of(1.0));
            d * if b == zero { zero } else { slope }
        }),
        // Where a is 0, so is the limit, and 0·ln 0 would be NaN.
        (Binary::Power, true) => zip3(a, y, delta, out, |a, y, d| {
            if y == zero { zero } else { d * (y * a.ln()) }
        }),
        (Binary::Max, false) | (Binary::Min, true) => {
            zip3(a, b, delta, out, |a, b, d| side(a, b, d, zero))
        }
        (Binary::Max, true) | (Binary::Min, false) => {
            zip3(a, b, delta, out, |a, b, d| side(b, a, d, zero))
        }
        (Binary::LnAddExp, false) => zip3(a, b, delta, out, |a, b, d| d * (a - b).sigmoid()),
        (Binary::LnAddExp, true) => zip3(a, b, delta, out, |a, b, d| d * (b - a).sigmoid()),
        _ => out.fill(zero),
    }
}

impl Element {
    /// The function of some elements of its operands; those that it has not are ignored.
    #[inline(always)]
    pub fn values<R: Real>(self, [a, b, c]: [&[R]; 3], out: &mut [R]) {
        match self {
            Element::One(f) => unary(f, a, out),
            Element::Two(f) => binary(f, a, b, out),
            Element::Choose => zip3(a, b, c, out, |c, a, b| if c != R::of(0.0) { a } else { b }),
        }
    }

    /// `out = delta · ∂f/∂(operand number which)`, where f gave y.
    #[inline(always)]
    pub fn slopes<R: Real>(
        self,
        which: usize,
        [a, b, _]: [&[R]; 3],
        y: &[R],
        delta: &[R],
        out: &mut [R],
    ) {
        match self {
            Element::One(f) => unary_slope(f, a, y, delta, out),
            Element::Two(f) => binary_slope(f, which == 1, [a, b], y, delta, out),
            Element::Choose => zip(a, delta, out, |c, d| {
                let taken = (c != R::of(0.0)) == (which == 1);
                if taken { d } else { R::of(0.0) }
            }),
        }
    }

    /// Whether a gradient goes back to an operand.
    pub fn moves(self, which: usize) -> bool {
        match self {
            Element::One(f) => f != Unary::Hold,
            Element::Two(f) => !f.compares(),
            Element::Choose => which > 0,
        }
    }
}

simd! {
    /// [`Element::values`] in single precision.
    pub fn values(f: Element, of: [&[f32]; 3], out: &mut [f32]) {
        f.values(of, out);
    }
}

simd! {
    /// [`Element::slopes`] in single precision.
    pub fn slopes(f: Element, which: usize, of: [&[f32]; 3], y: &[f32], delta: &[f32], out: &mut [f32]) {
        f.slopes(which, of, y, delta, out);
    }
}
