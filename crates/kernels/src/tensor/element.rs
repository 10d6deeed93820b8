//! Functions of one element and their derivatives, on slices, in both precisions.

#![allow(clippy::needless_range_loop)] // Loops over lanes look alike.

use super::operation::{Binary, Unary};
use super::real::{Order, Real};
use crate::simd;

/// What is done to each element of one, two or three tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)] // A tag of its own is read faster than one hidden in the fields.
pub enum Element {
    /// Of one.
    One(Unary),
    /// Of two.
    Two(Binary),
    /// The second where the first is not 0, otherwise the third.
    Choose,
}

/// Where values go, or gradients with respect to one operand or all, element by element.
pub trait Results<R: Real> {
    /// As many numbers as there are results.
    type Numbers: ?Sized;

    /// The results `f(x, y, z)` for one operand, if they are wanted; of values, operand 0.
    fn each(&mut self, operand: usize, of: [&Self::Numbers; 3], f: impl Fn(R, R, R) -> R);

    /// The results `f(x^n, y)` for operand 0.
    fn powers(&mut self, n: i32, of: [&Self::Numbers; 2], f: impl Fn(R, R) -> R);
}

/// A slice, for values or for the gradient with respect to one operand.
pub struct Slice<'a, R>(pub usize, pub &'a mut [R]);

impl<R: Real> Results<R> for Slice<'_, R> {
    type Numbers = [R];

    #[inline(always)]
    fn each(&mut self, operand: usize, [x, y, z]: [&[R]; 3], f: impl Fn(R, R, R) -> R) {
        if operand == self.0 {
            for (((out, x), y), z) in self.1.iter_mut().zip(x).zip(y).zip(z) {
                *out = f(*x, *y, *z);
            }
        }
    }

    #[inline(always)]
    fn powers(&mut self, n: i32, [x, y]: [&[R]; 2], f: impl Fn(R, R) -> R) {
        R::powi(x, n, self.1);
        for (out, y) in self.1.iter_mut().zip(y) {
            *out = f(*out, *y);
        }
    }
}

/// A register for values. Computed aside and stored by every function itself, or they would not be vectorised.
pub struct Register<'a, const L: usize>(pub &'a mut [f64; L]);

#[inline(always)]
fn lanes<const L: usize>([x, y, z]: [&[f64; L]; 3], f: impl Fn(f64, f64, f64) -> f64) -> [f64; L] {
    let mut out = [0.0; L];
    for lane in 0..L {
        out[lane] = f(x[lane], y[lane], z[lane]);
    }
    out
}

impl<const L: usize> Results<f64> for Register<'_, L> {
    type Numbers = [f64; L];

    #[inline(always)]
    fn each(&mut self, _: usize, of: [&[f64; L]; 3], f: impl Fn(f64, f64, f64) -> f64) {
        *self.0 = lanes(of, f);
    }

    #[inline(always)]
    fn powers(&mut self, n: i32, [x, y]: [&[f64; L]; 2], f: impl Fn(f64, f64) -> f64) {
        let mut power = [0.0; L];
        <f64 as Real>::powi(x, n, &mut power);
        self.each(0, [&power, y, y], |p, y, _| f(p, y));
    }
}

/// Registers of gradients, to which those of all operands are added that have one.
pub struct Sums<'a, const L: usize> {
    pub registers: &'a mut [[f64; L]],
    pub operands: [u32; 3],
    /// A bit for each operand.
    pub active: u8,
}

impl<const L: usize> Results<f64> for Sums<'_, L> {
    type Numbers = [f64; L];

    #[inline(always)]
    fn each(&mut self, operand: usize, of: [&[f64; L]; 3], f: impl Fn(f64, f64, f64) -> f64) {
        if self.active >> operand & 1 == 1 {
            let change = lanes(of, f);
            let sums = &mut self.registers[self.operands[operand] as usize];
            *sums = lanes([sums, &change, &change], |s, c, _| s + c);
        }
    }

    #[inline(always)]
    fn powers(&mut self, n: i32, [x, y]: [&[f64; L]; 2], f: impl Fn(f64, f64) -> f64) {
        let mut power = [0.0; L];
        <f64 as Real>::powi(x, n, &mut power);
        self.each(0, [&power, y, y], |p, y, _| f(p, y));
    }
}

/// The larger of two; a NaN on either side stays visible.
#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    // Only NaN is not itself.
    let rest = R::choose(a.is(Order::NotEqual, a), a, b);
    R::choose(a.is(Order::Greater, b), a, rest)
}

/// `over` where a > b, `under` where a < b, their mean where neither is so: the subgradient in the middle.
#[inline(always)]
fn side<R: Real>(a: R, b: R, over: R, under: R) -> R {
    let rest = R::choose(a.is(Order::Less, b), under, R::of(0.5) * (over + under));
    R::choose(a.is(Order::Greater, b), over, rest)
}

#[inline(always)]
fn one<R: Real>(holds: R::Condition) -> R {
    R::choose(holds, R::of(1.0), R::of(0.0))
}

/// √(2/π), and the weight of the cube, of [`Unary::GeluTanh`].
const GELU: f64 = 0.797_884_560_802_865_4;
const CUBIC: f64 = 0.044_715;

#[inline(always)]
fn gelu_inner<R: Real>(x: R) -> R {
    R::of(GELU) * (x + R::of(CUBIC) * x * x * x)
}

/// `out = f(x)`.
#[inline(always)]
fn unary<R: Real, T: Results<R>>(f: Unary, x: &T::Numbers, out: &mut T) {
    let (zero, one) = (R::of(0.0), R::of(1.0));
    macro_rules! map {
        ($f:expr) => {
            out.each(0, [x; 3], |x, _, _| $f(x))
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
        Unary::Relu => map!(|x: R| R::choose(x.is(Order::Less, zero), zero, x)),
        Unary::Softplus => map!(R::softplus),
        Unary::Gelu => map!(|x: R| x * x.normal_cdf()),
        Unary::GeluTanh => map!(|x: R| x * R::of(0.5) * (one + gelu_inner(x).tanh())),
        Unary::Silu => map!(|x: R| x * x.sigmoid()),
        Unary::Erf => map!(R::erf),
        Unary::Hold => map!(|x: R| {
            let infinite = x.abs().is(Order::Equal, R::of(f64::INFINITY));
            R::choose(infinite, zero, x)
        }),
        Unary::Power(2) => map!(|x: R| x * x),
        Unary::Power(n) => out.powers(n, [x; 2], |p, _| p),
    }
}

/// `out = delta · f'`, from x and y = f(x).
#[inline(always)]
fn unary_slope<R: Real, T: Results<R>>(f: Unary, [x, y, delta]: [&T::Numbers; 3], out: &mut T) {
    let (zero, one) = (R::of(0.0), R::of(1.0));
    macro_rules! map {
        ($f:expr) => {
            out.each(0, [x, y, delta], $f)
        };
    }
    match f {
        Unary::Negate => map!(|_, _, d| -d),
        Unary::Exp => map!(|_, y, d| d * y),
        Unary::Ln => map!(|x, _, d| d / x),
        Unary::Sqrt => map!(|_, y, d| d * R::of(0.5) / y),
        Unary::Abs => map!(|x, _, d| {
            let rest = R::choose(x.is(Order::Less, zero), -d, d * x);
            R::choose(x.is(Order::Greater, zero), d, rest)
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
        Unary::Relu => map!(|_, y: R, d| R::choose(y.is(Order::LessEqual, zero), zero, d)),
        Unary::Softplus => map!(|x, _, d| d * x.sigmoid()),
        Unary::Gelu => map!(|x, _, d| d * (x.normal_cdf() + x * x.normal_density())),
        Unary::GeluTanh => map!(|x, _, d| {
            let t = gelu_inner(x).tanh();
            let slope = R::of(GELU) * (one + R::of(3.0 * CUBIC) * x * x);
            d * R::of(0.5) * (one + t + x * (one - t * t) * slope)
        }),
        Unary::Silu => map!(|x, _, d| {
            let s = x.sigmoid();
            d * (s + x * s * (one - s))
        }),
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
fn binary<R: Real, T: Results<R>>(f: Binary, [a, b]: [&T::Numbers; 2], out: &mut T) {
    macro_rules! zip {
        ($f:expr) => {
            out.each(0, [a, b, b], |a, b, _| $f(a, b))
        };
    }
    macro_rules! compare {
        ($order:ident) => {
            zip!(|a: R, b| one(a.is(Order::$order, b)))
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
            let gap = R::choose(a.is(Order::Equal, b), R::of(0.0), (a - b).abs());
            larger(a, b) + (-gap).softplus()
        }),
        Binary::Less => compare!(Less),
        Binary::LessEqual => compare!(LessEqual),
        Binary::Greater => compare!(Greater),
        Binary::GreaterEqual => compare!(GreaterEqual),
        Binary::Equal => compare!(Equal),
        Binary::NotEqual => compare!(NotEqual),
    }
}

/// `delta · ∂f/∂a` and `delta · ∂f/∂b`, where f gave y.
#[inline(always)]
fn binary_slope<'a, R: Real, T: Results<R>>(
    f: Binary,
    of: impl Fn(usize) -> &'a T::Numbers,
    [y, d]: [&T::Numbers; 2],
    out: &mut T,
) where
    T::Numbers: 'a,
{
    let zero = R::of(0.0);
    macro_rules! both {
        ([$($of:expr),*] $first:expr, [$($with:expr),*] $second:expr) => {{
            out.each(0, [$($of),*], $first);
            out.each(1, [$($with),*], $second);
        }};
    }
    match f {
        Binary::Add => both!([d, d, d] | d, _, _ | d, [d, d, d] | d, _, _ | d),
        Binary::Subtract => both!([d, d, d] |d, _, _| d, [d, d, d] |d: R, _, _| -d),
        Binary::Multiply => both!(
            [of(1), d, d] | b,
            d,
            _ | d * b,
            [of(0), d, d] | a,
            d,
            _ | d * a
        ),
        Binary::Divide => {
            out.each(0, [of(1), d, d], |b, d, _| d / b);
            match R::DOUBLE {
                true => out.each(1, [y, of(1), d], |y, b, d| -d * y / b),
                false => out.each(1, [of(0), of(1), d], |a, b, d| d * (-a / (b * b))),
            }
        }
        Binary::Power => both!(
            [of(0), of(1), d] |a: R, b, d| {
                let slope = b * a.powf(b - R::of(1.0));
                d * R::choose(b.is(Order::Equal, zero), zero, slope)
            },
            // Where a is 0, so is the limit, and 0·ln 0 would be NaN.
            [of(0), y, d] |a: R, y, d| {
                R::choose(y.is(Order::Equal, zero), zero, d * (y * a.ln()))
            }
        ),
        Binary::Max => both!(
            [of(0), of(1), d] | a,
            b,
            d | side(a, b, d, zero),
            [of(0), of(1), d] | a,
            b,
            d | side(b, a, d, zero)
        ),
        Binary::Min => both!(
            [of(0), of(1), d] | a,
            b,
            d | side(b, a, d, zero),
            [of(0), of(1), d] | a,
            b,
            d | side(a, b, d, zero)
        ),
        Binary::LnAddExp => both!(
            [of(0), of(1), d] |a: R, b, d| d * (a - b).sigmoid(),
            [of(0), of(1), d] |a, b: R, d| d * (b - a).sigmoid()
        ),
        _ => both!([d, d, d] | _, _, _ | zero, [d, d, d] | _, _, _ | zero),
    }
}

impl Element {
    /// The function of some elements of its operands; only those that it has are asked for.
    #[inline(always)]
    pub fn values<'a, R: Real, T: Results<R>>(
        self,
        of: impl Fn(usize) -> &'a T::Numbers,
        mut out: T,
    ) where
        T::Numbers: 'a,
    {
        let zero = R::of(0.0);
        match self {
            Element::One(f) => unary(f, of(0), &mut out),
            Element::Two(f) => binary(f, [of(0), of(1)], &mut out),
            Element::Choose => out.each(0, [of(0), of(1), of(2)], |c, a, b| {
                R::choose(c.is(Order::NotEqual, zero), a, b)
            }),
        }
    }

    /// `delta · ∂f/∂(operand)` for one operand or all, where f gave y.
    #[inline(always)]
    pub fn slopes<'a, R: Real, T: Results<R>>(
        self,
        of: impl Fn(usize) -> &'a T::Numbers,
        y: &T::Numbers,
        delta: &T::Numbers,
        mut out: T,
    ) where
        T::Numbers: 'a,
    {
        let zero = R::of(0.0);
        match self {
            Element::One(f) => unary_slope(f, [of(0), y, delta], &mut out),
            Element::Two(f) => binary_slope(f, of, [y, delta], &mut out),
            Element::Choose => {
                let of = [of(0), delta, delta];
                out.each(1, of, |c, d, _| {
                    R::choose(c.is(Order::NotEqual, zero), d, zero)
                });
                out.each(2, of, |c, d, _| {
                    R::choose(c.is(Order::NotEqual, zero), zero, d)
                });
            }
        }
    }

    /// How many operands it has.
    pub fn operands(self) -> usize {
        match self {
            Element::One(_) => 1,
            Element::Two(_) => 2,
            Element::Choose => 3,
        }
    }

    /// Whether [`Element::slopes`] reads an operand.
    pub fn reads(self, which: usize) -> bool {
        match self {
            Element::One(f) => !(self.reads_result() || matches!(f, Unary::Negate | Unary::Hold)),
            Element::Two(f) => !(f.compares() || matches!(f, Binary::Add | Binary::Subtract)),
            Element::Choose => which == 0,
        }
    }

    /// Whether [`Element::slopes`] reads the result.
    pub fn reads_result(self) -> bool {
        match self {
            Element::One(f) => matches!(
                f,
                Unary::Exp | Unary::Sqrt | Unary::Tan | Unary::Tanh | Unary::Sigmoid | Unary::Relu
            ),
            Element::Two(f) => matches!(f, Binary::Divide | Binary::Power),
            Element::Choose => false,
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
        f.values(|i| of[i], Slice(0, out));
    }
}

simd! {
    /// [`Element::slopes`] in single precision.
    pub fn slopes(f: Element, which: usize, of: [&[f32]; 3], y: &[f32], delta: &[f32], out: &mut [f32]) {
        f.slopes(|i| of[i], y, delta, Slice(which, out));
    }
}
