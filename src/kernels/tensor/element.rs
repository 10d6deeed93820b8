//! Functions of one element and their derivatives, on slices, in both precisions.

#![allow(clippy::needless_range_loop)] // Loops over lanes look alike.

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

/// Where results go, element by element.
pub trait Results<R: Real> {
    /// As many numbers as there are results.
    type Numbers: ?Sized;

    /// The results `f(x, y, z)`.
    fn each(&mut self, of: [&Self::Numbers; 3], f: impl Fn(R, R, R) -> R);

    /// The results `f(x^n, y)`.
    fn powers(&mut self, n: i32, of: [&Self::Numbers; 2], f: impl Fn(R, R) -> R);
}

impl<R: Real> Results<R> for [R] {
    type Numbers = [R];

    #[inline(always)]
    fn each(&mut self, [x, y, z]: [&[R]; 3], f: impl Fn(R, R, R) -> R) {
        for (((out, x), y), z) in self.iter_mut().zip(x).zip(y).zip(z) {
            *out = f(*x, *y, *z);
        }
    }

    #[inline(always)]
    fn powers(&mut self, n: i32, [x, y]: [&[R]; 2], f: impl Fn(R, R) -> R) {
        R::powi(x, n, self);
        self.iter_mut()
            .zip(y)
            .for_each(|(out, y)| *out = f(*out, *y));
    }
}

/// Lanes of registers, to be overwritten or added to. Computed aside and stored by every function itself, or they would not be vectorised.
pub struct Lanes<'a, const L: usize, const ADD: bool>(pub &'a mut [f64; L]);

impl<const L: usize, const ADD: bool> Results<f64> for Lanes<'_, L, ADD> {
    type Numbers = [f64; L];

    #[inline(always)]
    fn each(&mut self, [x, y, z]: [&[f64; L]; 3], f: impl Fn(f64, f64, f64) -> f64) {
        let mut out = [0.0; L];
        for lane in 0..L {
            out[lane] = f(x[lane], y[lane], z[lane]);
        }
        if ADD {
            for lane in 0..L {
                out[lane] += self.0[lane];
            }
        }
        *self.0 = out;
    }

    #[inline(always)]
    fn powers(&mut self, n: i32, [x, y]: [&[f64; L]; 2], f: impl Fn(f64, f64) -> f64) {
        let mut power = [0.0; L];
        <f64 as Real>::powi(x, n, &mut power);
        self.each([&power, y, y], |p, y, _| f(p, y));
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

/// `out = f(x)`.
#[inline(always)]
fn unary<R: Real, T: Results<R> + ?Sized>(f: Unary, x: &T::Numbers, out: &mut T) {
    let zero = R::of(0.0);
    macro_rules! map {
        ($f:expr) => {
            out.each([x; 3], |x, _, _| $f(x))
        };
    }
    match f {
        Unary::Negate => map!(|x: R| -x),
        Unary::Exp => map!(R::exp),
        Unary::Ln => map!(R::ln),
        Unary::Sqrt => map!(R::sqrt),
        Unary::Abs => map!(R::abs),
        Unary::Sin => map!(R::sin),
        Unary::Cos => map!(R::cos),
        Unary::Tan => map!(R::tan),
        Unary::Tanh => map!(R::tanh),
        Unary::Sinh => map!(R::sinh),
        Unary::Cosh => map!(R::cosh),
        Unary::Atan => map!(R::atan),
        Unary::Sigmoid => map!(R::sigmoid),
        Unary::Relu => map!(|x: R| if x < zero { zero } else { x }),
        Unary::Softplus => map!(R::softplus),
        Unary::Gelu => map!(|x: R| x * x.normal_cdf()),
        Unary::Erf => map!(R::erf),
        Unary::Hold => map!(|x: R| {
            let infinite = x.abs() == R::of(f64::INFINITY);
            if infinite { zero } else { x }
        }),
        Unary::Power(2) => map!(|x: R| x * x),
        Unary::Power(n) => out.powers(n, [x; 2], |p, _| p),
    }
}

/// `out = delta · f'`, from x and y = f(x).
#[inline(always)]
fn unary_slope<R: Real, T: Results<R> + ?Sized>(
    f: Unary,
    [x, y, delta]: [&T::Numbers; 3],
    out: &mut T,
) {
    let (zero, one) = (R::of(0.0), R::of(1.0));
    macro_rules! map {
        ($f:expr) => {
            out.each([x, y, delta], $f)
        };
    }
    match f {
        Unary::Negate => map!(|_, _, d| -d),
        Unary::Exp => map!(|_, y, d| d * y),
        Unary::Ln => map!(|x, _, d| d / x),
        Unary::Sqrt => map!(|_, y, d| d * R::of(0.5) / y),
        Unary::Abs => map!(|x, _, d| {
            let rest = if x < zero { -d } else { d * x };
            if x > zero { d } else { rest }
        }),
        Unary::Sin => map!(|x, _, d| d * x.cos()),
        Unary::Cos => map!(|x, _, d| -d * x.sin()),
        Unary::Tan => map!(|_, y, d| d * (one + y * y)),
        Unary::Tanh => map!(|_, y, d| d * (one - y * y)),
        Unary::Sinh => map!(|x, _, d| d * x.cosh()),
        Unary::Cosh => map!(|x, _, d| d * x.sinh()),
        Unary::Atan => map!(|x, _, d| d / (one + x * x)),
        Unary::Sigmoid => map!(|_, y, d| d * (y * (one - y))),
        // Not `y > 0.0`: a NaN must stay visible.
        Unary::Relu => map!(|_, y, d| if y <= zero { zero } else { d }),
        Unary::Softplus => map!(|x, _, d| d * x.sigmoid()),
        Unary::Gelu => map!(|x, _, d| d * (x.normal_cdf() + x * x.normal_density())),
        Unary::Erf => map!(|x, _, d| d * x.erf_slope()),
        // 0 · x^-1 would be no number at 0.
        Unary::Hold | Unary::Power(0) => map!(|_, _, _| zero),
        Unary::Power(2) => map!(|x, _, d| d * (x + x)),
        Unary::Power(n) => {
            let factor = R::of(f64::from(n));
            out.powers(n - 1, [x, delta], |p, d| d * (factor * p));
        }
    }
}

/// `out = f(a, b)`.
#[inline(always)]
fn binary<R: Real, T: Results<R> + ?Sized>(f: Binary, [a, b]: [&T::Numbers; 2], out: &mut T) {
    macro_rules! zip {
        ($f:expr) => {
            out.each([a, b, b], |a, b, _| $f(a, b))
        };
    }
    match f {
        Binary::Add => zip!(|a, b| a + b),
        Binary::Subtract => zip!(|a, b| a - b),
        Binary::Multiply => zip!(|a, b| a * b),
        Binary::Divide => zip!(|a, b| a / b),
        Binary::Power => zip!(R::powf),
        Binary::Max => zip!(larger),
        Binary::Min => zip!(|a: R, b: R| -larger(-a, -b)),
        Binary::LnAddExp => zip!(|a: R, b: R| {
            // The difference of equal infinities would be NaN.
            let gap = if a == b { R::of(0.0) } else { (a - b).abs() };
            larger(a, b) + (-gap).softplus()
        }),
        Binary::Less => zip!(|a, b| one(a < b)),
        Binary::LessEqual => zip!(|a, b| one(a <= b)),
        Binary::Greater => zip!(|a, b| one(a > b)),
        Binary::GreaterEqual => zip!(|a, b| one(a >= b)),
        Binary::Equal => zip!(|a, b| one(a == b)),
        Binary::NotEqual => zip!(|a, b| one(a != b)),
    }
}

/// `out = delta · ∂f/∂a`, or with respect to b if `second`.
#[inline(always)]
fn binary_slope<R: Real, T: Results<R> + ?Sized>(
    f: Binary,
    second: bool,
    [a, b, y, d]: [&T::Numbers; 4],
    out: &mut T,
) {
    let zero = R::of(0.0);
    match (f, second) {
        (Binary::Add, _) | (Binary::Subtract, false) => out.each([d; 3], |d, _, _| d),
        (Binary::Subtract, true) => out.each([d; 3], |d, _, _| -d),
        (Binary::Multiply, false) => out.each([b, d, d], |b, d, _| d * b),
        (Binary::Multiply, true) => out.each([a, d, d], |a, d, _| d * a),
        (Binary::Divide, false) => out.each([b, d, d], |b, d, _| d / b),
        (Binary::Divide, true) if R::DOUBLE => out.each([y, b, d], |y, b, d| -d * y / b),
        (Binary::Divide, true) => out.each([a, b, d], |a, b, d| d * (-a / (b * b))),
        (Binary::Power, false) => out.each([a, b, d], |a, b, d| {
            let slope = b * a.powf(b - R::of(1.0));
            d * if b == zero { zero } else { slope }
        }),
        // Where a is 0, so is the limit, and 0·ln 0 would be NaN.
        (Binary::Power, true) => {
            out.each(
                [a, y, d],
                |a, y, d| {
                    if y == zero { zero } else { d * (y * a.ln()) }
                },
            )
        }
        (Binary::Max, false) | (Binary::Min, true) => {
            out.each([a, b, d], |a, b, d| side(a, b, d, zero))
        }
        (Binary::Max, true) | (Binary::Min, false) => {
            out.each([a, b, d], |a, b, d| side(b, a, d, zero))
        }
        (Binary::LnAddExp, false) => out.each([a, b, d], |a, b, d| d * (a - b).sigmoid()),
        (Binary::LnAddExp, true) => out.each([a, b, d], |a, b, d| d * (b - a).sigmoid()),
        _ => out.each([d; 3], |_, _, _| zero),
    }
}

impl Element {
    /// The function of some elements of its operands; those that it has not are as long, or empty if `out` is a slice, and ignored.
    #[inline(always)]
    pub fn values<R: Real, T: Results<R> + ?Sized>(self, [a, b, c]: [&T::Numbers; 3], out: &mut T) {
        match self {
            Element::One(f) => unary(f, a, out),
            Element::Two(f) => binary(f, [a, b], out),
            Element::Choose => out.each([a, b, c], |c, a, b| if c != R::of(0.0) { a } else { b }),
        }
    }

    /// `out = delta · ∂f/∂(operand number which)`, where f gave y.
    #[inline(always)]
    pub fn slopes<R: Real, T: Results<R> + ?Sized>(
        self,
        which: usize,
        [a, b, _]: [&T::Numbers; 3],
        y: &T::Numbers,
        delta: &T::Numbers,
        out: &mut T,
    ) {
        match self {
            Element::One(f) => unary_slope(f, [a, y, delta], out),
            Element::Two(f) => binary_slope(f, which == 1, [a, b, y, delta], out),
            Element::Choose => out.each([a, delta, delta], |c, d, _| {
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
        f.values::<f32, [f32]>(of, out);
    }
}

simd! {
    /// [`Element::slopes`] in single precision.
    pub fn slopes(f: Element, which: usize, of: [&[f32]; 3], y: &[f32], delta: &[f32], out: &mut [f32]) {
        f.slopes::<f32, [f32]>(which, of, y, delta, out);
    }
}
