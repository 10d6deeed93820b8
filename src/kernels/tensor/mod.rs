//! Tensors that scripts compute with: numbers at once, or symbols that are traced, compiled and differentiated.
//!
//! A [`Tensor`] is concrete, and then candle computes it and its gradients, or a [`Symbol`]: a node of a graph over parameters and the
//! inputs of a model, one row per example. Both know the same operations, with the shapes of NumPy. [`Program::compile`] turns
//! a graph into passes over preallocated buffers.
//!
//! | file | what it is |
//! |---|---|
//! | `shape.rs` | lengths of axes, broadcasting |
//! | `operation.rs` | the operations, and which shapes come out |
//! | `eager.rs` | what candle makes of them |
//! | `graph.rs` | a traced graph: equal things are made one |
//! | `lower.rs` | from a graph to passes |
//! | `program.rs` | the passes of a graph over a block of rows, forward and backward |
//! | `pass.rs` | one pass |
//! | `element.rs` | functions of one element and their derivatives |

mod eager;
mod element;
mod graph;
mod lower;
mod operation;
mod pass;
mod program;
mod shape;

pub use graph::Graph;
pub use operation::{Binary, Operation, Reduce, Unary};
pub use program::{Layer, Program};
pub use shape::{MOST, Shape};

use crate::error::Result;
use anyhow::{anyhow, bail, ensure};
use candle_core::{DType, Device};
use std::sync::{Arc, OnceLock};

/// A tensor of numbers, or one that is traced; clones share it.
#[derive(Clone)]
pub enum Tensor {
    /// Numbers, in single or double precision.
    Concrete(candle_core::Tensor),
    /// A node of a graph.
    Traced(Symbol),
}

/// A tensor that has no numbers yet; clones share it.
#[derive(Clone)]
pub struct Symbol(Arc<Node>);

struct Node {
    kind: Kind,
    operands: Vec<Symbol>,
    shape: Shape,
}

#[derive(Clone)]
enum Kind {
    /// Numbers that depend on nothing.
    Constant(candle_core::Tensor),
    /// A parameter, by its number.
    Parameter(usize),
    /// The inputs of the examples `[rows, width]`; the width may be found out on the way.
    Input(Arc<OnceLock<usize>>),
    Apply(Operation),
}

impl Drop for Node {
    /// Without recursion: a graph may be deeper than the stack.
    fn drop(&mut self) {
        let mut orphans = std::mem::take(&mut self.operands);
        while let Some(orphan) = orphans.pop() {
            if let Some(mut node) = Arc::into_inner(orphan.0) {
                orphans.append(&mut node.operands);
            }
        }
    }
}

impl Symbol {
    fn new(kind: Kind, operands: Vec<Symbol>, shape: Shape) -> Self {
        Self(Arc::new(Node {
            kind,
            operands,
            shape,
        }))
    }

    /// Parameter number `index`.
    pub fn parameter(index: usize, dims: &[usize]) -> Self {
        Self::new(Kind::Parameter(index), Vec::new(), Shape::fixed(dims))
    }

    /// The inputs of the examples; without a width, the first operation that needs it decides it.
    pub fn input(width: Option<usize>) -> Self {
        let cell = OnceLock::new();
        if let Some(width) = width {
            let _ = cell.set(width);
        }
        Self::new(Kind::Input(Arc::new(cell)), Vec::new(), Shape::default())
    }

    /// The shape, if it is known already.
    pub fn shape(&self) -> Option<Shape> {
        match &self.0.kind {
            Kind::Input(width) => width.get().map(|w| Shape::per_row(&[*w])),
            _ => Some(self.0.shape.clone()),
        }
    }

    fn known_shape(&self) -> Result<Shape> {
        self.shape().ok_or_else(|| {
            anyhow!("how many inputs an example has is not known here; give model::custom the option `inputs`, e.g. `inputs: data.dim`")
        })
    }

    /// Numbers as a part of a graph.
    fn constant(numbers: &candle_core::Tensor) -> Self {
        let shape = Shape::fixed(numbers.dims());
        Self::new(Kind::Constant(numbers.detach()), Vec::new(), shape)
    }

    fn apply(operation: Operation, operands: Vec<Symbol>) -> Result<Self> {
        for (i, symbol) in operands.iter().enumerate() {
            if let Kind::Input(width) = &symbol.0.kind
                && width.get().is_none()
                && let Some(found) = needed_width(&operation, &operands, i)
            {
                let _ = width.set(found);
            }
        }
        let shapes = operands.iter().map(Symbol::known_shape);
        let shape = operation.shape(&shapes.collect::<Result<Vec<_>>>()?)?;
        Ok(Self::new(Kind::Apply(operation), operands, shape))
    }
}

/// The width that the inputs must have for an operation to be possible.
fn needed_width(operation: &Operation, operands: &[Symbol], i: usize) -> Option<usize> {
    let other = || operands.get(1 - i)?.shape();
    match operation {
        Operation::Product if i == 0 => {
            let dims = other()?.dims;
            match dims.len() {
                1 => Some(dims[0]),
                n => dims.get(n.checked_sub(2)?).copied(),
            }
        }
        Operation::Binary(_) => {
            let shape = other()?;
            shape.dims.last().copied().filter(|n| *n > 1)
        }
        Operation::Reshape(dims) => Some(dims.iter().product()),
        _ => None,
    }
}

impl From<Symbol> for Tensor {
    fn from(symbol: Symbol) -> Self {
        Tensor::Traced(symbol)
    }
}

/// The message of candle, without what only programmers can use.
pub fn plain(e: candle_core::Error) -> anyhow::Error {
    let text = e.to_string();
    let line = text.lines().next().unwrap_or("unknown").to_string();
    anyhow!("{line}")
}

impl Tensor {
    /// Numbers in double precision.
    pub fn from_f64(values: Vec<f64>, dims: &[usize]) -> Result<Self> {
        Shape::fixed(dims).check("a tensor")?;
        let t = candle_core::Tensor::from_vec(values, dims, &Device::Cpu);
        Ok(Tensor::Concrete(t.map_err(plain)?))
    }

    /// Numbers in single precision.
    pub fn from_f32(values: Vec<f32>, dims: &[usize]) -> Result<Self> {
        Shape::fixed(dims).check("a tensor")?;
        let t = candle_core::Tensor::from_vec(values, dims, &Device::Cpu);
        Ok(Tensor::Concrete(t.map_err(plain)?))
    }

    /// A number, in the precision of another tensor.
    pub fn number(x: f64, like: &Tensor) -> Result<Self> {
        match like {
            Tensor::Concrete(t) if t.dtype() == DType::F32 => Self::from_f32(vec![x as f32], &[]),
            _ => Self::from_f64(vec![x], &[]),
        }
    }

    /// Its shape.
    pub fn shape(&self) -> Result<Shape> {
        match self {
            Tensor::Concrete(t) => Ok(Shape::fixed(t.dims())),
            Tensor::Traced(s) => s.known_shape(),
        }
    }

    /// Its numbers; an error if it has none yet.
    pub fn concrete(&self, what: &str) -> Result<&candle_core::Tensor> {
        match self {
            Tensor::Concrete(t) => Ok(t),
            Tensor::Traced(_) => bail!(
                "{what} needs the numbers of a tensor, but the closure is called once, before there are any; write it with choose, maximum, minimum, gt, lt …, \
                 or give model::custom `interpret: true`, which calls the closure at every step"
            ),
        }
    }

    /// Its numbers in double precision, row-major.
    pub fn to_f64(&self, what: &str) -> Result<Vec<f64>> {
        let t = self.concrete(what)?;
        let flat = || t.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
        flat().map_err(plain)
    }

    /// Its only number.
    pub fn item(&self, what: &str) -> Result<f64> {
        let t = self.concrete(what)?;
        ensure!(
            t.elem_count() == 1,
            "{what} needs a tensor of one number, but this has shape {}",
            Shape::fixed(t.dims())
        );
        Ok(self.to_f64(what)?[0])
    }

    /// Whether numbers are single precision.
    pub fn is_single(&self) -> bool {
        matches!(self, Tensor::Concrete(t) if t.dtype() == DType::F32)
    }

    /// The result of an operation: numbers if all operands are, otherwise a symbol.
    pub fn apply(operation: Operation, operands: &[&Tensor]) -> Result<Tensor> {
        let numbers: Option<Vec<_>> = operands
            .iter()
            .map(|t| match t {
                Tensor::Concrete(t) => Some(t.clone()),
                Tensor::Traced(_) => None,
            })
            .collect();
        if let Some(numbers) = numbers {
            let shapes: Vec<_> = numbers.iter().map(|t| Shape::fixed(t.dims())).collect();
            let shape = operation.shape(&shapes)?;
            return eager::apply(&operation, &numbers, &shapes, &shape, 0)
                .map(Tensor::Concrete)
                .map_err(|e| plain(e).context(operation.name()));
        }
        let symbols = operands.iter().map(|t| match t {
            Tensor::Concrete(t) => Symbol::constant(t),
            Tensor::Traced(s) => s.clone(),
        });
        Symbol::apply(operation, symbols.collect()).map(Tensor::Traced)
    }

    /// A function of each element.
    pub fn unary(&self, f: Unary) -> Result<Tensor> {
        Self::apply(Operation::Unary(f), &[self])
    }

    /// A function of pairs of elements.
    pub fn binary(&self, f: Binary, other: &Tensor) -> Result<Tensor> {
        Self::apply(Operation::Binary(f), &[self, other])
    }

    /// To the power of a number.
    pub fn power(&self, exponent: f64) -> Result<Tensor> {
        if exponent.fract() == 0.0 && exponent.abs() <= 32.0 {
            return self.unary(Unary::Power(exponent as i32));
        }
        self.binary(Binary::Power, &Self::number(exponent, self)?)
    }

    /// The same numbers in another shape; one length may be -1 and is then found out. Of a tensor with rows, the first is -1.
    pub fn reshape(&self, dims: &[i64]) -> Result<Tensor> {
        if let Tensor::Traced(s) = self
            && s.shape().is_none()
            && let [-1, rest @ ..] = dims
            && let Ok(rest) = rest
                .iter()
                .map(|d| usize::try_from(*d))
                .collect::<std::result::Result<Vec<_>, _>>()
        {
            return Self::apply(Operation::Reshape(rest), &[self]);
        }
        let shape = self.shape()?;
        let wrong = |d: i64| {
            anyhow!(
                "reshape: {d} is no length of an axis; lengths are at least 1, and one may be -1"
            )
        };
        let mut given = dims;
        if shape.rows {
            let [-1, rest @ ..] = dims else {
                bail!(
                    "reshape of a tensor with rows, {shape}: the first length must be -1, for the rows"
                );
            };
            given = rest;
        }
        let open = given.iter().filter(|d| **d == -1).count();
        ensure!(
            open <= 1,
            "reshape: only one length may be -1{}",
            if shape.rows {
                " besides that of the rows"
            } else {
                ""
            }
        );
        let mut out = Vec::new();
        let mut product = 1usize;
        for d in given.iter().filter(|d| **d != -1) {
            let d = usize::try_from(*d)
                .ok()
                .filter(|d| *d > 0)
                .ok_or_else(|| wrong(*d))?;
            product = product
                .checked_mul(d)
                .ok_or_else(|| anyhow!("reshape: too large"))?;
        }
        for d in given {
            out.push(match usize::try_from(*d) {
                Ok(d) => d,
                Err(_) => {
                    ensure!(
                        shape.count().is_multiple_of(product),
                        "reshape: {shape} has {} numbers{}, which is no multiple of {product}",
                        shape.count(),
                        if shape.rows { " per row" } else { "" }
                    );
                    shape.count() / product
                }
            });
        }
        Self::apply(Operation::Reshape(out), &[self])
    }

    /// An axis of length 1 more; the last is -1.
    pub fn unsqueeze(&self, axis: i64) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let rank = shape.rank() as i64;
        let at = if axis < 0 { axis + rank + 1 } else { axis };
        ensure!(
            at >= i64::from(shape.rows) && at <= rank,
            "unsqueeze: no axis can be put at {axis} of {shape}"
        );
        shape.dims.insert(at as usize - usize::from(shape.rows), 1);
        Self::apply(Operation::Reshape(shape.dims), &[self])
    }

    /// Without an axis of length 1.
    pub fn squeeze(&self, axis: i64) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let at = shape.axis("squeeze", axis)?;
        ensure!(
            shape.dims[at] == 1,
            "squeeze: axis {axis} of {shape} has more than one entry"
        );
        shape.dims.remove(at);
        Self::apply(Operation::Reshape(shape.dims), &[self])
    }

    /// All numbers along one axis; those of each row along one.
    pub fn flatten(&self) -> Result<Tensor> {
        let shape = self.shape()?;
        Self::apply(Operation::Reshape(vec![shape.count()]), &[self])
    }

    /// Two axes exchanged.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let shape = self.shape()?;
        let (a, b) = (shape.axis("transpose", a)?, shape.axis("transpose", b)?);
        Self::apply(Operation::Transpose(a.min(b), a.max(b)), &[self])
    }

    /// The last two axes exchanged.
    pub fn t(&self) -> Result<Tensor> {
        let shape = self.shape()?;
        ensure!(
            shape.dims.len() >= 2,
            "t exchanges the last two axes, which a tensor of shape {shape} has not{}",
            if shape.rows { " besides the rows" } else { "" }
        );
        self.transpose(-2, -1)
    }

    /// Matrix product.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        Self::apply(Operation::Product, &[self, other])
    }

    /// The entries `from..to` along an axis; numbers below 0 count from the end.
    pub fn slice(&self, axis: i64, from: i64, to: i64) -> Result<Tensor> {
        let shape = self.shape()?;
        let at = shape.axis("slice", axis)?;
        let length = shape.dims[at] as i64;
        let place = |x: i64| if x < 0 { x + length } else { x };
        let (a, z) = (place(from), place(to));
        ensure!(
            0 <= a && a < z && z <= length,
            "slice: there is no {from}..{to} along axis {axis}, which has {length} entries"
        );
        let (start, count) = (a as usize, (z - a) as usize);
        let operation = Operation::Slice {
            axis: at,
            start,
            count,
        };
        Self::apply(operation, &[self])
    }

    /// One entry along an axis, which is dropped; numbers below 0 count from the end.
    pub fn select(&self, axis: i64, index: i64) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let at = shape.axis("select", axis)?;
        let length = shape.dims[at] as i64;
        let start = if index < 0 { index + length } else { index };
        ensure!(
            (0..length).contains(&start),
            "there is no entry {index} along axis {axis} of {shape}, which has {length}"
        );
        let start = start as usize;
        let operation = Operation::Slice {
            axis: at,
            start,
            count: 1,
        };
        let cut = Self::apply(operation, &[self])?;
        shape.dims.remove(at);
        Self::apply(Operation::Reshape(shape.dims), &[&cut])
    }

    /// One after the other along an axis.
    pub fn concat(all: &[&Tensor], axis: i64) -> Result<Tensor> {
        let first = all
            .iter()
            .map(|t| t.shape())
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .max_by_key(|s| s.rows)
            .ok_or_else(|| anyhow!("concat: there are no tensors"))?;
        let axis = first.axis("concat", axis)?;
        Self::apply(Operation::Concat(axis), all)
    }

    /// Sum, largest or smallest along an axis; `keep` leaves it with length 1.
    pub fn reduce(&self, how: Reduce, axis: i64, keep: bool) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let at = shape.axis(Operation::Reduce(how, 0).name(), axis)?;
        let out = Self::apply(Operation::Reduce(how, at), &[self])?;
        if !keep {
            return Ok(out);
        }
        shape.dims[at] = 1;
        Self::apply(Operation::Reshape(shape.dims), &[&out])
    }

    /// Sum, largest or smallest of all numbers.
    pub fn reduce_all(&self, how: Reduce) -> Result<Tensor> {
        let shape = self.shape()?;
        let name = Operation::Reduce(how, 0).name();
        ensure!(
            !shape.rows,
            "{name} without an axis would mix examples; of shape {shape}, name an axis: {name}(-1)"
        );
        Self::apply(Operation::Reduce(how, 0), &[&self.flatten()?])
    }

    /// The mean along an axis, or of all numbers.
    pub fn mean(&self, axis: Option<i64>, keep: bool) -> Result<Tensor> {
        let shape = self.shape()?;
        let (sum, count) = match axis {
            Some(axis) => {
                let sum = self.reduce(Reduce::Sum, axis, keep)?;
                (sum, shape.dims[shape.axis("mean", axis)?])
            }
            None => (self.reduce_all(Reduce::Sum)?, shape.count()),
        };
        let share = Self::number(1.0 / count as f64, &sum)?;
        sum.binary(Binary::Multiply, &share)
    }

    /// exp(x) / Σ exp(x) along an axis, or its logarithm.
    pub fn softmax(&self, axis: i64, logarithm: bool) -> Result<Tensor> {
        let what = if logarithm { "log_softmax" } else { "softmax" };
        let at = self.shape()?.axis(what, axis)?;
        let operation = match logarithm {
            true => Operation::LogSoftmax(at),
            false => Operation::Softmax(at),
        };
        Self::apply(operation, &[self])
    }

    /// `a` where `self` is not 0, otherwise `b`.
    pub fn choose(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        Self::apply(Operation::Choose, &[self, a, b])
    }
}

/// The derivative of a number with respect to tensors, by candle's autograd: the number, and a gradient for each.
///
/// # Errors
/// If `f` fails, gives no single number, or is asked for derivatives of derivatives.
pub fn value_and_gradients<E: From<anyhow::Error>>(
    at: &[Tensor],
    f: impl FnOnce(Vec<Tensor>) -> std::result::Result<Tensor, E>,
) -> std::result::Result<(f64, Vec<Tensor>), E> {
    const WHAT: &str = "gradient";
    let variables = || {
        let each = at.iter().map(|t| {
            let t = t.concrete(WHAT)?;
            ensure!(
                !t.track_op(),
                "gradient of a gradient: second derivatives are not available"
            );
            candle_core::Var::from_tensor(t).map_err(plain)
        });
        each.collect::<Result<Vec<_>>>()
    };
    let variables = variables()?;
    let symbols = variables
        .iter()
        .map(|v| Tensor::Concrete(v.as_tensor().clone()));
    let out = f(symbols.collect())?;
    let differentiate = || {
        let value = out.item("gradient: the closure")?;
        let store = match &out {
            Tensor::Concrete(t) if t.track_op() => Some(t.backward().map_err(plain)?),
            _ => None,
        };
        let each = variables.iter().map(|v| {
            let found = store.as_ref().and_then(|s| s.get(v.as_tensor()));
            let g = match found {
                Some(g) => g.contiguous(),
                None => v.as_tensor().zeros_like(),
            };
            Ok(Tensor::Concrete(g.map_err(plain)?.detach()))
        });
        Ok((value, each.collect::<Result<Vec<_>>>()?))
    };
    differentiate().map_err(E::from)
}

#[cfg(test)]
mod tests;
