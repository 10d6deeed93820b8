//! Tensors that scripts compute with: numbers at once, or symbols that are traced, compiled and differentiated.
//!
//! A [`Tensor`] is concrete, and then candle computes it and its gradients, or a [`Symbol`]: a node of a graph over parameters and the
//! inputs of a model, one row per example. Both know the same operations, with the shapes of NumPy. [`Program::compile`] turns
//! a graph into passes over preallocated buffers.
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs`, `axes.rs` | tensors, and what is done to their axes |
//! | `symbol.rs` | tensors that are traced |
//! | `shape.rs` | lengths of axes, broadcasting |
//! | `operation.rs` | the operations, and which shapes come out |
//! | `eager.rs` | what candle makes of them |
//! | `graph.rs` | a traced graph: equal things are made one |
//! | `lower.rs` | from a graph to passes |
//! | `program.rs`, `gradient.rs` | the passes of a graph over a block of rows; the gradient over a tile |
//! | `pass.rs`, `elements.rs`, `reduce.rs` | one pass |
//! | `element.rs` | functions of one element and their derivatives |

mod axes;
mod eager;
mod element;
mod elements;
mod gradient;
mod graph;
mod lower;
mod operation;
mod pass;
mod program;
mod reduce;
mod shape;
mod symbol;

pub use graph::Graph;
pub use operation::{Binary, Operation, Reduce, Unary};
pub use program::{Layer, Program};
pub use shape::{MOST, Shape};
pub use symbol::Symbol;

use crate::error::Result;
use anyhow::{anyhow, bail, ensure};
use candle_core::{DType, Device};
use std::cell::Cell;

/// A tensor of numbers, or one that is traced; clones share it.
#[derive(Clone)]
pub enum Tensor {
    /// Numbers, in single or double precision.
    Concrete(candle_core::Tensor),
    /// A node of a graph.
    Traced(Symbol),
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
        Shape::fixed(t.dims()).fits::<f64>(what)?;
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
            let double = numbers.iter().any(|t| t.dtype() == DType::F64);
            operation.check_memory(&shapes, &shape, if double { 8 } else { 4 })?;
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
}

thread_local! {
    /// Whether a function is being differentiated.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, a function is being differentiated: candle's gradients have no history, so that those within others would silently count as constants.
struct Within;

impl Within {
    fn enter() -> Result<Self> {
        ensure!(
            !WITHIN.replace(true),
            "gradient of a gradient: second derivatives are not available"
        );
        Ok(Self)
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(false);
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
    let within = Within::enter()?;
    let variables = || {
        let each = at.iter().map(|t| {
            let t = t.concrete(WHAT)?;
            candle_core::Var::from_tensor(t).map_err(plain)
        });
        each.collect::<Result<Vec<_>>>()
    };
    let variables = variables()?;
    let symbols = variables
        .iter()
        .map(|v| Tensor::Concrete(v.as_tensor().clone()));
    let out = f(symbols.collect())?;
    drop(within);
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
