//! Tensors that are traced: nodes of a graph over parameters and inputs.
//!
//! Models are traced in single precision, over tensors of parameters and all examples at once; energies in double precision, over one vector
//! of parameters and the columns of one example.

use super::operation::Operation;
use super::shape::Shape;
use crate::Result;
use anyhow::anyhow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A tensor that has no numbers yet; clones share it.
#[derive(Clone)]
pub struct Symbol(pub(super) Arc<Node>);

pub(super) struct Node {
    pub kind: Kind,
    pub operands: Vec<Symbol>,
    shape: Shape,
    /// Whether it depends on what is in double precision.
    double: bool,
    /// Named parts of a vector of parameters.
    parts: Vec<(String, Symbol)>,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// Numbers that depend on nothing.
    Constant(candle_core::Tensor),
    /// A parameter, by its number.
    Parameter(usize),
    /// Columns of an example.
    Columns(Range<usize>),
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
    fn new(kind: Kind, operands: Vec<Symbol>, shape: Shape, double: bool) -> Self {
        Self(Arc::new(Node {
            kind,
            operands,
            shape,
            double,
            parts: Vec::new(),
        }))
    }

    /// The vector of all `count` parameters, number 0, and its tensors, by name and shape, as those that follow.
    pub fn parameters(count: usize, tensors: Vec<(String, Vec<usize>)>) -> Self {
        let each = tensors.into_iter().enumerate();
        let parts = each.map(|(i, (name, dims))| (name, Self::parameter(i + 1, &dims)));
        Self(Arc::new(Node {
            kind: Kind::Parameter(0),
            operands: Vec::new(),
            shape: Shape::fixed(&[count]),
            double: false,
            parts: parts.collect(),
        }))
    }

    /// A named tensor of the parameters.
    pub(super) fn named(&self, name: &str) -> Result<Self> {
        let found = self.0.parts.iter().find(|(n, _)| n == name);
        let found = found.map(|(_, symbol)| symbol.clone());
        found.ok_or_else(|| anyhow!("there is no tensor '{name}' here"))
    }

    /// Parameter number `index`.
    pub fn parameter(index: usize, dims: &[usize]) -> Self {
        Self::new(
            Kind::Parameter(index),
            Vec::new(),
            Shape::fixed(dims),
            false,
        )
    }

    /// The vector of the first `count` parameters, in double precision.
    pub fn vector(count: usize) -> Self {
        Self::new(Kind::Parameter(0), Vec::new(), Shape::fixed(&[count]), true)
    }

    /// Some columns of one example, in double precision.
    pub fn columns(range: Range<usize>) -> Self {
        let shape = Shape::fixed(&[range.len()]);
        Self::new(Kind::Columns(range), Vec::new(), shape, true)
    }

    /// Whether it is traced in double precision.
    pub fn is_double(&self) -> bool {
        self.0.double
    }

    /// The inputs of the examples; without a width, the first operation that needs it decides it.
    pub fn input(width: Option<usize>) -> Self {
        let cell = OnceLock::new();
        if let Some(width) = width {
            let _ = cell.set(width);
        }
        let kind = Kind::Input(Arc::new(cell));
        Self::new(kind, Vec::new(), Shape::default(), false)
    }

    /// The shape, if it is known already.
    pub fn shape(&self) -> Option<Shape> {
        match &self.0.kind {
            Kind::Input(width) => width.get().map(|w| Shape::per_row(&[*w])),
            _ => Some(self.0.shape.clone()),
        }
    }

    pub(super) fn known_shape(&self) -> Result<Shape> {
        self.shape().ok_or_else(|| {
            anyhow!("the number of inputs per example is not known here; give model::custom the option `inputs`, e.g. `inputs: data.dim`")
        })
    }

    /// Numbers as a part of a graph.
    pub fn constant(numbers: &candle_core::Tensor) -> Self {
        let shape = Shape::fixed(numbers.dims());
        Self::new(Kind::Constant(numbers.detach()), Vec::new(), shape, false)
    }

    pub(super) fn apply(operation: Operation, operands: Vec<Symbol>) -> Result<Self> {
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
        let double = operands.iter().any(Symbol::is_double);
        Ok(Self::new(Kind::Apply(operation), operands, shape, double))
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
