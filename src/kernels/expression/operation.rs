//! What a node of an expression does with its operands: values, and how a gradient passes back through it.

#![allow(clippy::needless_range_loop)] // Loops over lanes look alike.

use super::double;
use std::f64::consts::FRAC_2_SQRT_PI;

/// An operation on one or two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Negate,
    Exp,
    Ln,
    Sqrt,
    Abs,
    Sin,
    Cos,
    Tan,
    Tanh,
    Sinh,
    Cosh,
    Atan,
    Sigmoid,
    Softplus,
    Erf,
    /// The number itself, or 0 for an infinite one; constant to the gradient.
    Hold,
    Powi(i32),
    Add,
    Subtract,
    Multiply,
    Divide,
    Powf,
    Max,
    Min,
    LnAddExp,
}

use Operation::*;

impl Operation {
    /// Name in formulas and fingerprints.
    pub fn name(self) -> &'static str {
        match self {
            Negate => "-",
            Exp => "exp",
            Ln => "ln",
            Sqrt => "sqrt",
            Abs => "abs",
            Sin => "sin",
            Cos => "cos",
            Tan => "tan",
            Tanh => "tanh",
            Sinh => "sinh",
            Cosh => "cosh",
            Atan => "atan",
            Sigmoid => "sigmoid",
            Softplus => "softplus",
            Erf => "erf",
            Hold => "hold",
            Powi(_) => "powi",
            Add => " + ",
            Subtract => " - ",
            Multiply => "*",
            Divide => "/",
            Powf => "**",
            Max => "max",
            Min => "min",
            LnAddExp => "ln_add_exp",
        }
    }

    /// Whether the operands may change places.
    pub fn commutes(self) -> bool {
        // Not max and min: of zeros of both signs they take the second.
        matches!(self, Add | Multiply | LnAddExp)
    }

    /// The value at one point; `b` is ignored by operations on one number.
    pub fn value(self, a: f64, b: f64) -> f64 {
        let mut out = [0.0];
        self.values(&[a], &[b], &mut out);
        out[0]
    }

    /// The values of L lanes, stored by every operation itself, or they would not be vectorised; `b` is ignored by operations on one number.
    #[inline(always)]
    pub fn values<const L: usize>(self, a: &[f64; L], b: &[f64; L], out: &mut [f64; L]) {
        match self {
            Negate => *out = each(a, |x| -x),
            Exp => *out = each(a, double::exp),
            Ln => *out = each(a, double::ln),
            Sqrt => *out = each(a, f64::sqrt),
            Abs => *out = each(a, f64::abs),
            Sin => *out = each(a, libm::sin),
            Cos => *out = each(a, libm::cos),
            Tan => *out = each(a, libm::tan),
            Tanh => *out = each(a, double::tanh),
            Sinh => *out = each(a, libm::sinh),
            Cosh => *out = each(a, libm::cosh),
            Atan => *out = each(a, libm::atan),
            Sigmoid => *out = each(a, double::sigmoid),
            Softplus => *out = each(a, double::softplus),
            Erf => *out = each(a, libm::erf),
            Hold => *out = each(a, |x| if x.is_infinite() { 0.0 } else { x }),
            Powi(n) => *out = double::powi(a, i64::from(n)),
            Add => *out = both(a, b, |x, y| x + y),
            Subtract => *out = both(a, b, |x, y| x - y),
            Multiply => *out = both(a, b, |x, y| x * y),
            Divide => *out = both(a, b, |x, y| x / y),
            Powf => *out = both(a, b, libm::pow),
            Max => *out = both(a, b, double::max),
            Min => *out = both(a, b, |x, y| -double::max(-x, -y)),
            LnAddExp => *out = both(a, b, double::ln_add_exp),
        }
    }

    /// Hand the gradient `g` with respect to the value back to the operands that `pull` wants it for.
    #[inline(always)]
    pub fn pull<const L: usize>(self, pull: &mut Pull<'_, L>) {
        match self {
            Negate => pull.first(|_, _, _, g| -g),
            Exp => pull.first(|_, _, y, g| g * y),
            Ln => pull.first(|a, _, _, g| g / a),
            Sqrt => pull.first(|_, _, y, g| 0.5 * g / y),
            Abs => pull.first(|a, _, _, g| choose(a, 0.0, g, -g)),
            Sin => pull.first(|a, _, _, g| g * libm::cos(a)),
            Cos => pull.first(|a, _, _, g| -g * libm::sin(a)),
            Tan => pull.first(|_, _, y, g| g * (1.0 + y * y)),
            Tanh => pull.first(|_, _, y, g| g * (1.0 - y * y)),
            Sinh => pull.first(|a, _, _, g| g * libm::cosh(a)),
            Cosh => pull.first(|a, _, _, g| g * libm::sinh(a)),
            Atan => pull.first(|a, _, _, g| g / (1.0 + a * a)),
            Sigmoid => pull.first(|_, _, y, g| g * (y * (1.0 - y))),
            Softplus => pull.first(|a, _, _, g| g * double::sigmoid(a)),
            Erf => pull.first(|a, _, _, g| g * (FRAC_2_SQRT_PI * double::exp(-a * a))),
            Hold => {}
            Powi(n) => {
                let power = double::powi(pull.a, i64::from(n) - 1);
                pull.add_first(&both(&power, pull.g, |p, g| g * (f64::from(n) * p)));
            }
            Add => pull.two(|_, _, _, g| g, |_, _, _, g| g),
            Subtract => pull.two(|_, _, _, g| g, |_, _, _, g| -g),
            Multiply => pull.two(|_, b, _, g| g * b, |a, _, _, g| g * a),
            Divide => pull.two(|_, b, _, g| g / b, |_, b, y, g| -g * y / b),
            Powf => pull.two(
                |a, b, _, g| g * (b * libm::pow(a, b - 1.0)),
                // Where a is 0, so is the limit, and 0·ln 0 would be NaN.
                |a, _, y, g| {
                    if y == 0.0 {
                        0.0
                    } else {
                        g * (y * double::ln(a))
                    }
                },
            ),
            Max => pull.two(
                |a, b, _, g| choose(a, b, g, 0.0),
                |a, b, _, g| choose(b, a, g, 0.0),
            ),
            Min => pull.two(
                |a, b, _, g| choose(b, a, g, 0.0),
                |a, b, _, g| choose(a, b, g, 0.0),
            ),
            LnAddExp => pull.two(
                |a, b, _, g| g * double::sigmoid(a - b),
                |a, b, _, g| g * double::sigmoid(b - a),
            ),
        }
    }
}

/// `over` where a > b, `under` where a < b, their mean where neither is so: the subgradient in the middle.
#[inline(always)]
fn choose(a: f64, b: f64, over: f64, under: f64) -> f64 {
    let rest = if a < b { under } else { 0.5 * (over + under) };
    if a > b { over } else { rest }
}

#[inline(always)]
fn each<const L: usize>(a: &[f64; L], f: impl Fn(f64) -> f64) -> [f64; L] {
    let mut out = [0.0; L];
    for lane in 0..L {
        out[lane] = f(a[lane]);
    }
    out
}

#[inline(always)]
fn both<const L: usize>(a: &[f64; L], b: &[f64; L], f: impl Fn(f64, f64) -> f64) -> [f64; L] {
    let mut out = [0.0; L];
    for lane in 0..L {
        out[lane] = f(a[lane], b[lane]);
    }
    out
}

/// One step of the way back: the operands and the value of an operation, and where gradients are added up.
pub struct Pull<'a, const L: usize> {
    /// Values of the first operand.
    pub a: &'a [f64; L],
    /// Values of the second operand.
    pub b: &'a [f64; L],
    /// Values of the operation.
    pub y: &'a [f64; L],
    /// Gradient with respect to the value.
    pub g: &'a [f64; L],
    /// Gradients with respect to everything computed before.
    pub gradients: &'a mut [[f64; L]],
    /// Where that of the first operand is, if it is wanted.
    pub first: Option<usize>,
    /// Where that of the second operand is, if it is wanted.
    pub second: Option<usize>,
}

impl<const L: usize> Pull<'_, L> {
    #[inline(always)]
    fn add_first(&mut self, change: &[f64; L]) {
        if let Some(first) = self.first {
            let sums = &mut self.gradients[first];
            *sums = both(sums, change, |s, c| s + c);
        }
    }

    #[inline(always)]
    fn slopes(&self, slope: impl Fn(f64, f64, f64, f64) -> f64) -> [f64; L] {
        let mut out = [0.0; L];
        for (lane, out) in out.iter_mut().enumerate() {
            *out = slope(self.a[lane], self.b[lane], self.y[lane], self.g[lane]);
        }
        out
    }

    #[inline(always)]
    fn first(&mut self, slope: impl Fn(f64, f64, f64, f64) -> f64) {
        if self.first.is_some() {
            self.add_first(&self.slopes(slope));
        }
    }

    #[inline(always)]
    fn two(
        &mut self,
        slope: impl Fn(f64, f64, f64, f64) -> f64,
        other: impl Fn(f64, f64, f64, f64) -> f64,
    ) {
        self.first(slope);
        if let Some(second) = self.second {
            let change = self.slopes(other);
            let sums = &mut self.gradients[second];
            *sums = both(sums, &change, |s, c| s + c);
        }
    }
}
