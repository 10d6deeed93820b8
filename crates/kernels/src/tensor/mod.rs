//! Tensors that scripts compute with: numbers at once, or symbols that are traced, compiled and differentiated.
//!
//! A [`Tensor`] is concrete, and then candle computes it and its gradients; or a [`Vector`] of parameters; or a [`Symbol`]: a node of a graph
//! over parameters and data. All know the same operations, with the shapes of NumPy. A graph is compiled in one of two ways:
//!
//! * a model, in single precision, over the inputs `[rows, width]` of many examples: [`Program::compile`] makes passes over preallocated buffers;
//! * an energy, in double precision, over the columns of one example: [`Tape::compile`] unrolls it into operations on single numbers, which run
//!   over several examples at once. Every operation gives the same bits on every SIMD level.
//!
//! Nothing here fails on numbers: division by zero, the logarithm of a negative number and the like give infinity or NaN, as floats do. Where a
//! function has a kink, its gradient is the middle of its subgradients: 0 for `abs` at 0, a half to either operand of `maximum` where they are equal.
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs`, `axes.rs` | tensors, and what is done to their axes |
//! | `vector.rs` | vectors of parameters |
//! | `symbol.rs` | tensors that are traced |
//! | `shape.rs` | lengths of axes, broadcasting |
//! | `operation.rs` | the operations, and which shapes come out |
//! | `eager.rs` | what candle makes of them |
//! | `graph.rs` | a traced graph: equal things are made one |
//! | `lower.rs` | from a graph to passes |
//! | `program.rs`, `gradient.rs` | the passes of a graph over a block of rows; the gradient over a tile |
//! | `plan.rs`, `whole.rs` | the same pass by pass over a tile of large rows, in memory that is planned |
//! | `pass.rs`, `view.rs`, `elements.rs`, `reduce.rs` | one pass |
//! | `numbers.rs` | numbers that follow from parameters alone |
//! | `unrolled.rs`, `scalars.rs` | a graph number by number; what of it is computed |
//! | `tape.rs`, `registers.rs` | the operations on numbers, over one example or several |
//! | `tape_code.rs` | the same as CUDA C |
//! | `device/`, `code.rs` | passes on an accelerator; functions of elements as CUDA C |
//! | `formula.rs` | a graph as text |
//! | `element.rs` | functions of one element and their derivatives |
//! | `window.rs`, `attention.rs`, `norm.rs`, `layers.rs`, `einsum.rs` | convolutions; attention; norms; what layers of networks are made of; products by names of axes |
//! | `real.rs`, `double.rs` | elementary functions in both precisions |

mod attention;
mod axes;
mod code;
pub mod device;
mod double;
mod eager;
mod einsum;
mod element;
mod elements;
mod formula;
mod gradient;
mod graph;
mod layers;
mod lower;
mod norm;
mod numbers;
mod operation;
mod pass;
mod plan;
mod program;
mod real;
mod reduce;
mod registers;
mod scalars;
mod shape;
mod symbol;
mod tape;
mod tape_code;
mod unrolled;
mod vector;
mod view;
mod whole;
mod window;

pub use attention::{Attention, Place};
pub use graph::Graph;
pub use layers::Windows;
pub use norm::Norm;
pub use numbers::Numbers;
pub use operation::{Binary, NOWHERE, Operation, Reduce, Unary};
pub use plan::Plan;
pub use program::{Layer, Program};
pub use registers::Scratch;
pub use shape::Shape;
pub use symbol::Symbol;
pub use tape::Tape;
pub use vector::{Names, Vector};
pub use whole::Whole;
pub use window::Convolution;

use crate::Result;
use anyhow::{anyhow, bail, ensure};
use candle_core::{DType, Device};
use std::cell::Cell;

/// A tensor of numbers, or one that is traced; clones share it.
#[derive(Clone)]
pub enum Tensor {
    /// Numbers, in single or double precision.
    Concrete(candle_core::Tensor),
    /// Parameters, or what a network answers.
    Vector(Vector),
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

/// Tensors on one device: those on this machine go where another is, as constants go to a model that candle computes on a GPU.
fn together(all: Vec<candle_core::Tensor>) -> Result<Vec<candle_core::Tensor>> {
    let Some(device) = all.iter().map(|t| t.device()).find(|d| !d.is_cpu()) else {
        return Ok(all);
    };
    let moved = all.iter().map(|t| t.to_device(device).map_err(plain));
    moved.collect()
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
        match like.is_single() {
            true => Self::from_f32(vec![x as f32], &[]),
            false => Self::from_f64(vec![x], &[]),
        }
    }

    /// Its shape.
    pub fn shape(&self) -> Result<Shape> {
        match self {
            Tensor::Concrete(t) => Ok(Shape::fixed(t.dims())),
            Tensor::Vector(v) => Ok(Shape::fixed(&[v.numbers().len()])),
            Tensor::Traced(s) => s.known_shape(),
        }
    }

    /// Its numbers; an error if it has none yet.
    pub fn concrete(&self, what: &str) -> Result<candle_core::Tensor> {
        match self {
            Tensor::Concrete(t) => Ok(t.clone()),
            Tensor::Vector(v) => v.concrete(),
            Tensor::Traced(s) if s.is_double() => bail!(
                "{what} needs numbers, but a symbol has no value yet: the closure is called once, before there are numbers, and compiled. \
                 Single numbers can be compared in an `if`; for each element of a tensor there are choose and gt, max, min or abs"
            ),
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
        match self {
            Tensor::Concrete(t) => t.dtype() == DType::F32,
            Tensor::Vector(_) => true,
            Tensor::Traced(_) => false,
        }
    }

    /// Whether it is traced in double precision.
    pub fn is_energy(&self) -> bool {
        matches!(self, Tensor::Traced(s) if s.is_double())
    }

    /// As a part of a graph.
    pub fn symbol(&self) -> Result<Symbol> {
        match self {
            Tensor::Traced(s) => Ok(s.clone()),
            t => Ok(Symbol::constant(&t.concrete("a graph")?)),
        }
    }

    /// The result of an operation: numbers if all operands are, otherwise a symbol.
    pub fn apply(operation: Operation, operands: &[&Tensor]) -> Result<Tensor> {
        if operands.iter().any(|t| matches!(t, Tensor::Traced(_))) {
            let symbols = operands.iter().map(|t| t.symbol());
            let symbols = symbols.collect::<Result<Vec<_>>>()?;
            return Symbol::apply(operation, symbols).map(Tensor::Traced);
        }
        let numbers = operands.iter().map(|t| t.concrete(operation.name()));
        let numbers = together(numbers.collect::<Result<Vec<_>>>()?)?;
        let shapes: Vec<_> = numbers.iter().map(|t| Shape::fixed(t.dims())).collect();
        let shape = operation.shape(&shapes)?;
        let double = numbers.iter().any(|t| t.dtype() == DType::F64);
        operation.check_memory(&shapes, &shape, if double { 8 } else { 4 })?;
        let out = eager::apply(&operation, &numbers, &shapes, &shape, 0)
            .map_err(|e| plain(e).context(operation.name()))?;
        // What is done to the elements of a vector and to single numbers gives a vector.
        let element = matches!(
            operation,
            Operation::Unary(_) | Operation::Binary(_) | Operation::Choose
        );
        let single =
            |t: &&Tensor| t.as_vector().is_some() || t.shape().is_ok_and(|s| s.rank() == 0);
        let vector = operands.iter().find_map(|t| t.as_vector());
        match vector.filter(|_| element && !double && operands.iter().all(single)) {
            Some(v) => v.like(&out).map(Tensor::Vector),
            None => Ok(Tensor::Concrete(out)),
        }
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
            candle_core::Var::from_tensor(&t).map_err(plain)
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
mod device_tests;
#[cfg(test)]
mod double_tests;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod tests;
