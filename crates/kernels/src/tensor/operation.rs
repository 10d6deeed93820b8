//! What can be done to tensors, and which shapes come out.

use super::attention::Attention;
use super::shape::Shape;
use super::window::Convolution;
use crate::Result;
use crate::memory;
use anyhow::ensure;
use std::sync::Arc;

/// Where an entry that is taken from nowhere comes from.
pub const NOWHERE: u32 = u32::MAX;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// -x
    Negate,
    /// e^x
    Exp,
    /// Natural logarithm.
    Ln,
    /// √x
    Sqrt,
    /// |x|
    Abs,
    /// Sine, of radians.
    Sin,
    /// Cosine, of radians.
    Cos,
    /// Tangent, of radians.
    Tan,
    /// Hyperbolic tangent.
    Tanh,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Arcus tangent, in radians.
    Atan,
    /// 1/(1+e^-x)
    Sigmoid,
    /// max(0, x)
    Relu,
    /// ln(1 + e^x)
    Softplus,
    /// x Φ(x), with the exact normal distribution function.
    Gelu,
    /// The same in the form with a hyperbolic tangent (Hendrycks & Gimpel 2016, eq. 2).
    GeluTanh,
    /// x/(1+e^-x)
    Silu,
    /// Error function.
    Erf,
    /// The number itself, or 0 for an infinite one; constant to the gradient. Shifts that cancel are held.
    Hold,
    /// A whole power.
    Power(i32),
}

impl Unary {
    /// All but powers and what scripts have no name for, by their names in scripts.
    pub const NAMED: &'static [(&'static str, Unary)] = &[
        ("exp", Unary::Exp),
        ("ln", Unary::Ln),
        ("sqrt", Unary::Sqrt),
        ("abs", Unary::Abs),
        ("sin", Unary::Sin),
        ("cos", Unary::Cos),
        ("tan", Unary::Tan),
        ("tanh", Unary::Tanh),
        ("sinh", Unary::Sinh),
        ("cosh", Unary::Cosh),
        ("atan", Unary::Atan),
        ("sigmoid", Unary::Sigmoid),
        ("relu", Unary::Relu),
        ("softplus", Unary::Softplus),
        ("gelu", Unary::Gelu),
        ("gelu_tanh", Unary::GeluTanh),
        ("silu", Unary::Silu),
        ("erf", Unary::Erf),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Unary::Negate => "-",
            Unary::Power(_) => "**",
            Unary::Hold => "hold",
            _ => Self::NAMED
                .iter()
                .find(|(_, u)| *u == self)
                .map_or("", |(n, _)| n),
        }
    }
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a b
    Multiply,
    /// a / b
    Divide,
    /// a^b
    Power,
    /// The larger; where they are equal, half of the gradient goes to either.
    Max,
    /// The smaller.
    Min,
    /// ln(e^a + e^b), without overflow.
    LnAddExp,
    /// 1 where a < b, otherwise 0; as the following, without a gradient.
    Less,
    /// a ≤ b
    LessEqual,
    /// a > b
    Greater,
    /// a ≥ b
    GreaterEqual,
    /// a = b
    Equal,
    /// a ≠ b
    NotEqual,
}

impl Binary {
    /// Those with a name, not an operator.
    pub const NAMED: &'static [(&'static str, Binary)] = &[
        ("maximum", Binary::Max),
        ("minimum", Binary::Min),
        ("ln_add_exp", Binary::LnAddExp),
        ("lt", Binary::Less),
        ("le", Binary::LessEqual),
        ("gt", Binary::Greater),
        ("ge", Binary::GreaterEqual),
        ("eq", Binary::Equal),
        ("ne", Binary::NotEqual),
    ];

    /// Whether it is 0 or 1, and so has no gradient.
    pub fn compares(self) -> bool {
        use Binary::*;
        matches!(
            self,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual
        )
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Power => "**",
            _ => Self::NAMED
                .iter()
                .find(|(_, b)| *b == self)
                .map_or("", |(n, _)| n),
        }
    }
}

/// What becomes of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Σ
    Sum,
    /// The largest; equal ones share the gradient.
    Max,
    /// The smallest; equal ones share the gradient.
    Min,
}

/// An operation. Axes do not count the examples.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Element by element.
    Unary(Unary),
    /// Element by element.
    Binary(Binary),
    /// The second where the first is not 0, otherwise the third; element by element.
    Choose,
    /// Matrix product, as NumPy's `@`.
    Product,
    /// The same numbers in another shape.
    Reshape(Vec<usize>),
    /// Two axes exchanged.
    Transpose(usize, usize),
    /// Some entries along an axis.
    Slice {
        /// The axis.
        axis: usize,
        /// The first entry.
        start: usize,
        /// How many.
        count: usize,
    },
    /// One after the other along an axis.
    Concat(usize),
    /// Entries of all numbers, as a list says, in a shape.
    Take {
        /// The shape.
        dims: Vec<usize>,
        /// Where each comes from, or [`NOWHERE`].
        from: Arc<[u32]>,
        /// The bits of what stands where there is none.
        fill: u32,
    },
    /// Windows of images times filters.
    Convolve(Convolution),
    /// The rows of a matrix, the second operand, that the numbers of the first one name.
    Embed,
    /// Scaled dot-product attention of queries to keys and values, `[…, heads, positions, width]`.
    Attention {
        /// Whether keys that come later are hidden.
        causal: bool,
        /// The bits of what scores are multiplied by.
        scale: u64,
    },
    /// To mean 0 and variance 1 along the last axis, or to mean square 1.
    Normalise {
        /// Whether the mean is taken off.
        centre: bool,
        /// The bits of what is added to the variance.
        epsilon: u64,
    },
    /// An axis to one number, which is dropped.
    Reduce(Reduce, usize),
    /// exp(x) / Σ exp(x) along an axis.
    Softmax(usize),
    /// The logarithm of it.
    LogSoftmax(usize),
}

impl Operation {
    /// Its name, as in scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Unary(u) => u.name(),
            Operation::Binary(b) => b.name(),
            Operation::Choose => "choose",
            Operation::Product => "matmul",
            Operation::Reshape(_) => "reshape",
            Operation::Transpose(..) => "transpose",
            Operation::Slice { .. } => "slice",
            Operation::Concat(_) => "concat",
            Operation::Take { .. } => "take",
            Operation::Convolve(_) => "conv2d",
            Operation::Embed => "embedding",
            Operation::Attention { .. } => "attention",
            Operation::Normalise { .. } => "normalise",
            Operation::Reduce(Reduce::Sum, _) => "sum",
            Operation::Reduce(Reduce::Max, _) => "max",
            Operation::Reduce(Reduce::Min, _) => "min",
            Operation::Softmax(_) => "softmax",
            Operation::LogSoftmax(_) => "log_softmax",
        }
    }

    /// Whether the result has a derivative with respect to the operand of that number.
    pub fn has_derivative(&self, operand: usize) -> bool {
        match self {
            Operation::Unary(Unary::Hold) => false,
            Operation::Binary(f) => !f.compares(),
            Operation::Choose | Operation::Embed => operand > 0,
            _ => true,
        }
    }

    /// An error unless there is memory for the result and what is made on the way, in numbers of so many bytes.
    pub fn check_memory(&self, of: &[Shape], out: &Shape, width: usize) -> Result<()> {
        let size = |dims: &[usize]| dims.iter().fold(1u128, |n, d| n.saturating_mul(*d as u128));
        let one = size(&out.dims);
        let numbers = match self {
            Operation::Product => {
                // Operands are repeated for every page.
                let Matrices {
                    shape: [m, n, k],
                    batch,
                    ..
                } = matrices(&of[0], &of[1])?;
                size(&batch[2])
                    .saturating_mul(size(&[m, k]) + size(&[k, n]))
                    .saturating_add(one)
            }
            // The reference has all windows side by side.
            Operation::Convolve(c) => {
                let (window, windows) = c.columns();
                size(&[c.groups, window, windows]) + one
            }
            // The reference has all scores, their softmax and what hides some of them.
            Operation::Attention { .. } => {
                let keys = of[1].dims.iter().rev().nth(1).copied().unwrap_or(1);
                let vectors = of[0].dims.split_last().map_or(&[][..], |d| d.1);
                3 * size(vectors).saturating_mul(keys as u128) + one
            }
            Operation::Normalise { .. }
            | Operation::Choose
            | Operation::Softmax(_)
            | Operation::LogSoftmax(_) => 3 * one,
            Operation::Binary(Binary::Power) => 6 * one,
            _ => one,
        };
        let what = || format!("{}: a tensor of shape {out}", self.name());
        memory::check_lazily(numbers.saturating_mul(width as u128), what)
    }

    /// The shape of the result.
    pub fn shape(&self, of: &[Shape]) -> Result<Shape> {
        let name = self.name();
        let first = of.first().cloned().unwrap_or_default();
        let inside = |axis: usize| {
            ensure!(
                axis < first.dims.len(),
                "{name}: a tensor of shape {first} has no such axis"
            );
            Ok(())
        };
        let mut out = first.clone();
        match self {
            Operation::Unary(_) => {}
            Operation::Normalise { .. } => {
                ensure!(
                    !first.dims.is_empty(),
                    "{name}: a tensor of shape {first} has no axis to normalise along"
                );
            }
            Operation::Binary(_) | Operation::Choose => {
                for other in &of[1..] {
                    out = Shape::broadcast(name, &out, other)?;
                }
            }
            Operation::Product => return product(&of[0], &of[1]),
            Operation::Reshape(dims) => {
                out.dims = dims.clone();
                let (before, after) = (first.count(), out.clone().bounded(name)?.count());
                ensure!(
                    before == after,
                    "{name}: {first} has {before} numbers{}, but {out} has {after}",
                    if out.rows { " per row" } else { "" }
                );
            }
            Operation::Transpose(a, b) => {
                inside(*a)?;
                inside(*b)?;
                out.dims.swap(*a, *b);
            }
            Operation::Slice { axis, start, count } => {
                inside(*axis)?;
                let end = start.checked_add(*count);
                let length = first.dims[*axis];
                ensure!(
                    end.is_some_and(|e| e <= length),
                    "{name}: {count} entries from {start} on exceed an axis of length {length}"
                );
                out.dims[*axis] = *count;
            }
            Operation::Concat(axis) => {
                inside(*axis)?;
                out.rows = of.iter().any(|s| s.rows);
                let mut length = 0usize;
                for s in of {
                    let rest = |s: &Shape| {
                        let mut dims = s.dims.clone();
                        dims[*axis] = 0;
                        dims
                    };
                    ensure!(
                        s.dims.len() == first.dims.len() && rest(s) == rest(&first),
                        "{name}: the shapes {first} and {s} differ along an axis other than the one they are joined along"
                    );
                    length = length.saturating_add(s.dims[*axis]);
                }
                out.dims[*axis] = length;
                return out.bounded(name);
            }
            Operation::Take { dims, .. } => {
                out.dims = dims.clone();
                return out.bounded(name);
            }
            Operation::Convolve(c) => {
                ensure!(!of[1].rows, "{name}: filters are the same for all rows");
                out.dims = c.shape();
                return out.bounded(name);
            }
            Operation::Embed => {
                ensure!(
                    !of[1].rows && of[1].dims.len() == 2,
                    "{name}: the table must be a matrix [words, width], not {}",
                    of[1]
                );
                out.dims.push(of[1].dims[1]);
                return out.bounded(name);
            }
            Operation::Attention { causal, scale } => {
                let scale = f64::from_bits(*scale);
                Attention::new(&of[0], &of[1], &of[2], scale, *causal)?;
                out.rows = of.iter().any(|s| s.rows);
                if let (Some(width), Some(value)) = (out.dims.last_mut(), of[2].dims.last()) {
                    *width = *value;
                }
                return out.bounded(name);
            }
            Operation::Reduce(_, axis) => {
                inside(*axis)?;
                out.dims.remove(*axis);
            }
            Operation::Softmax(axis) | Operation::LogSoftmax(axis) => inside(*axis)?,
        }
        Ok(out)
    }
}

/// Which matrices a product multiplies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrices {
    /// Rows of the left matrix per example, columns of the right one, length of the sums.
    pub shape: [usize; 3],
    /// Axes before the matrices' own: left, right, result.
    pub batch: [Vec<usize>; 3],
    /// Whether the left operand is one vector per example (or one alone), the right one a vector.
    pub vectors: [bool; 2],
}

/// The matrices of a product of these shapes.
pub fn matrices(a: &Shape, b: &Shape) -> Result<Matrices> {
    let wrong = || {
        anyhow::anyhow!(
            "matmul: the shapes {a} and {b} do not fit; the last axis of the first must be as long as the last but one of the second"
        )
    };
    let mixes = || {
        anyhow::anyhow!(
            "matmul of {a} and {b} would mix examples; multiply per row, e.g. (a * b).sum(1), or give each row matrices of its own"
        )
    };
    ensure!(a.rank() > 0 && b.rank() > 0, wrong());
    ensure!(!a.rows || !a.dims.is_empty(), mixes());
    ensure!(!b.rows || b.dims.len() >= 2, mixes());
    // One row of the left matrix per example: rows are the matrix.
    let flat = a.rows && a.dims.len() == 1;
    ensure!(!flat || !b.rows && b.dims.len() <= 2, mixes());
    ensure!(!(a.rows && b.rows) || a.dims.len() == b.dims.len(), mixes());
    ensure!(
        !(a.rows && !b.rows && b.dims.len() > a.dims.len().max(2)),
        mixes()
    );
    ensure!(!(b.rows && !a.rows && a.dims.len() > b.dims.len()), mixes());
    let vectors = [a.dims.len() == 1, b.dims.len() == 1];
    let split = |dims: &[usize], vector: bool, left: bool| match (vector, left) {
        (true, true) => (Vec::new(), 1, dims[0]),
        (true, false) => (Vec::new(), dims[0], 1),
        _ => {
            let at = dims.len() - 2;
            (dims[..at].to_vec(), dims[at], dims[at + 1])
        }
    };
    let (batch_a, m, k) = split(&a.dims, vectors[0], true);
    let (batch_b, inner, n) = split(&b.dims, vectors[1], false);
    ensure!(k == inner, wrong());
    let (x, y) = (Shape::fixed(&batch_a), Shape::fixed(&batch_b));
    let batch = Shape::broadcast("matmul", &x, &y)
        .map_err(|_| wrong())?
        .dims;
    Ok(Matrices {
        shape: [m, n, k],
        batch: [batch_a, batch_b, batch],
        vectors,
    })
}

fn product(a: &Shape, b: &Shape) -> Result<Shape> {
    let found = matrices(a, b)?;
    let [m, n, _] = found.shape;
    let mut dims = found.batch[2].clone();
    if !found.vectors[0] {
        dims.push(m);
    }
    if !found.vectors[1] {
        dims.push(n);
    }
    let rows = a.rows || b.rows;
    Shape { rows, dims }.bounded("matmul")
}
