//! Scalar expressions of parameters and of one data example: traced from operators, compiled to a tape, differentiated.
//!
//! An [`Expression`] is a node of a graph that operators build; [`Vector`] is a list of them. [`Tape::compile`] turns the graph
//! into a flat list of operations, which runs in double precision, forward for the value and backward for the gradient, over
//! several examples at once. Every operation gives the same bits on every SIMD level.
//!
//! Nothing here fails on numbers: division by zero, the logarithm of a negative number and the like give infinity or NaN, as
//! floats do. Where a function has a kink, its gradient is the middle of its subgradients: 0 for `abs` at 0, a half to either
//! operand of `max` and `min` where they are equal.

mod double;
mod formula;
mod graph;
mod operation;
mod program;
mod tape;
mod vector;

pub use program::Scratch;
pub use tape::Tape;
pub use vector::Vector;

use operation::Operation;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

/// A number that depends on parameters and on the columns of a data example; clones share it.
#[derive(Clone)]
pub struct Expression(Arc<Node>);

struct Node {
    kind: Kind,
    operands: [Option<Expression>; 2],
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Constant(f64),
    Parameter(usize),
    Input(usize),
    Apply(Operation),
}

impl Drop for Node {
    /// Without recursion: a graph may be deeper than the stack.
    fn drop(&mut self) {
        let mut orphans: Vec<Expression> = Vec::new();
        orphans.extend(self.operands.iter_mut().filter_map(Option::take));
        while let Some(orphan) = orphans.pop() {
            if let Some(mut node) = Arc::into_inner(orphan.0) {
                orphans.extend(node.operands.iter_mut().filter_map(Option::take));
            }
        }
    }
}

impl Expression {
    /// Parameter number `index`.
    pub fn parameter(index: usize) -> Self {
        Self::leaf(Kind::Parameter(index))
    }

    /// Column number `column` of the data example.
    pub fn input(column: usize) -> Self {
        Self::leaf(Kind::Input(column))
    }

    /// A number that depends on nothing.
    pub fn constant(value: f64) -> Self {
        Self::leaf(Kind::Constant(value))
    }

    /// `self` to the power of `exponent`; NaN for a negative number to a power that is not whole.
    pub fn powf(&self, exponent: impl Into<Expression>) -> Self {
        Self::binary(Operation::Powf, self, &exponent.into())
    }

    /// `self` to a whole power.
    pub fn powi(&self, exponent: i32) -> Self {
        self.unary(Operation::Powi(exponent))
    }

    /// The larger of two; NaN if one of them is. Where they are equal, half of the gradient goes to either.
    pub fn max(&self, other: impl Into<Expression>) -> Self {
        Self::binary(Operation::Max, self, &other.into())
    }

    /// The smaller of two; NaN if one of them is. Where they are equal, half of the gradient goes to either.
    pub fn min(&self, other: impl Into<Expression>) -> Self {
        Self::binary(Operation::Min, self, &other.into())
    }

    /// ln(exp(self) + exp(other)), without overflow.
    pub fn ln_add_exp(&self, other: impl Into<Expression>) -> Self {
        Self::binary(Operation::LnAddExp, self, &other.into())
    }

    fn leaf(kind: Kind) -> Self {
        let operands = [None, None];
        Self(Arc::new(Node { kind, operands }))
    }

    fn unary(&self, operation: Operation) -> Self {
        let (kind, operands) = (Kind::Apply(operation), [Some(self.clone()), None]);
        Self(Arc::new(Node { kind, operands }))
    }

    fn binary(operation: Operation, a: &Expression, b: &Expression) -> Self {
        let operands = [Some(a.clone()), Some(b.clone())];
        let kind = Kind::Apply(operation);
        Self(Arc::new(Node { kind, operands }))
    }
}

/// Functions of one number, of an expression and of every element of a vector.
macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident = $operation:ident;)*) => {
        impl Expression {
            $($(#[$meta])* pub fn $name(&self) -> Self {
                self.unary(Operation::$operation)
            })*
        }

        impl Vector {
            $($(#[$meta])* pub fn $name(&self) -> Self {
                self.map(Expression::$name)
            })*
        }
    };
}

functions! {
    /// Exponential.
    exp = Exp;
    /// Natural logarithm; NaN for a negative number.
    ln = Ln;
    /// Square root; NaN for a negative number.
    sqrt = Sqrt;
    /// Absolute value, with gradient 0 at 0.
    abs = Abs;
    /// Sine, of radians.
    sin = Sin;
    /// Cosine, of radians.
    cos = Cos;
    /// Tangent, of radians.
    tan = Tan;
    /// Hyperbolic tangent.
    tanh = Tanh;
    /// Hyperbolic sine.
    sinh = Sinh;
    /// Hyperbolic cosine.
    cosh = Cosh;
    /// Arcus tangent, in radians.
    atan = Atan;
    /// Logistic function 1 / (1 + exp(-x)).
    sigmoid = Sigmoid;
    /// ln(1 + exp(x)), without overflow.
    softplus = Softplus;
    /// Error function 2/√π ∫₀ˣ exp(-t²) dt.
    erf = Erf;
    /// The number as a constant, to which no gradient flows; 0 in place of an infinite one. Shifts that cancel are held.
    hold = Hold;
}

impl From<f64> for Expression {
    fn from(value: f64) -> Self {
        Self::constant(value)
    }
}

impl From<&Expression> for Expression {
    fn from(expression: &Expression) -> Self {
        expression.clone()
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $operation:ident;)*) => {$(
        operators!($trait $method $operation: Expression, Expression);
        operators!($trait $method $operation: &Expression, &Expression);
        operators!($trait $method $operation: &Expression, Expression);
        operators!($trait $method $operation: Expression, &Expression);
        operators!($trait $method $operation: Expression, f64);
        operators!($trait $method $operation: f64, Expression);
        operators!($trait $method $operation: &Expression, f64);
        operators!($trait $method $operation: f64, &Expression);
    )*};
    ($trait:ident $method:ident $operation:ident: $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Expression;

            fn $method(self, right: $right) -> Expression {
                Expression::binary(Operation::$operation, &self.into(), &right.into())
            }
        }
    };
}

operators! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
}

impl Neg for Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        self.unary(Operation::Negate)
    }
}

impl Neg for &Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        self.unary(Operation::Negate)
    }
}

#[cfg(test)]
mod tests;
