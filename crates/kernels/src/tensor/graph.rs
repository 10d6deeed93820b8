//! A traced graph: its values in an order in which each comes after its operands, equal ones made one.

use super::operation::{Binary, Operation};
use super::shape::Shape;
use super::symbol::{Kind, Node, Symbol};
use super::{eager, plain};
use crate::Result;
use candle_core::{DType, Tensor};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Numbers of a constant that are shown one by one.
const SHOWN: usize = 64;

/// One value.
#[derive(Debug, Clone)]
pub struct Value {
    /// What it is.
    pub kind: ValueKind,
    /// The numbers of its operands.
    pub operands: Vec<usize>,
    /// Its shape.
    pub shape: Shape,
    /// Whether it changes with a parameter, and has a derivative.
    pub active: bool,
}

/// What a value is.
#[derive(Clone)]
pub enum ValueKind {
    /// Numbers.
    Constant(Arc<Vec<f64>>),
    /// A parameter, by its number.
    Parameter(usize),
    /// The inputs.
    Input,
    /// Columns of an example.
    Columns(Range<usize>),
    /// A result.
    Apply(Operation),
}

impl fmt::Debug for ValueKind {
    /// Tells two from each other; of many numbers by a hash, because as text they would be many times as long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(all) if all.len() > SHOWN => {
                // Turned, so that signs reach all bits.
                let step = |h: u64, x: &f64| {
                    (h.rotate_left(5) ^ x.to_bits()).wrapping_mul(0x517c_c1b7_2722_0a95)
                };
                let hash = all.iter().fold(0, step);
                write!(f, "Constant({} numbers, {hash:016x})", all.len())
            }
            Self::Constant(all) => write!(f, "Constant({all:?})"),
            Self::Parameter(i) => write!(f, "Parameter({i})"),
            Self::Input => f.write_str("Input"),
            Self::Columns(range) => write!(f, "Columns({range:?})"),
            Self::Apply(operation) => write!(f, "Apply({operation:?})"),
        }
    }
}

/// What makes two values equal.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Constant(Vec<u64>, Vec<usize>),
    Parameter(usize),
    Input,
    Columns(Range<usize>),
    Apply(Operation, Vec<usize>),
}

/// The values of a symbol.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Operands before what uses them.
    pub(super) values: Vec<Value>,
    /// The value of the symbol.
    pub(super) output: usize,
}

impl Graph {
    /// The graph of a symbol.
    pub fn new(symbol: &Symbol) -> Result<Self> {
        let key = |s: &Symbol| std::ptr::from_ref::<Node>(&s.0);
        let mut out = Self {
            values: Vec::new(),
            output: 0,
        };
        let mut numbers = HashMap::new();
        let mut known: HashMap<*const Node, usize> = HashMap::new();
        let mut open = vec![symbol];
        // Without recursion: a graph may be deeper than the stack.
        while let Some(&next) = open.last() {
            let depth = open.len();
            if !known.contains_key(&key(next)) {
                let missing = |s: &&Symbol| !known.contains_key(&key(s));
                open.extend(next.0.operands.iter().rev().filter(missing));
            }
            if open.len() > depth {
                continue;
            }
            open.pop();
            if !known.contains_key(&key(next)) {
                let operands: Vec<_> = next.0.operands.iter().map(|s| known[&key(s)]).collect();
                let number = out.enter(next, operands, &mut numbers)?;
                known.insert(key(next), number);
            }
        }
        out.output = known[&key(symbol)];
        Ok(out)
    }

    fn enter(
        &mut self,
        symbol: &Symbol,
        operands: Vec<usize>,
        numbers: &mut HashMap<Key, usize>,
    ) -> Result<usize> {
        let shape = symbol.known_shape()?;
        let of = |i: usize| &self.values[operands[i]];
        let (key, kind, active) = match &symbol.0.kind {
            Kind::Constant(t) => {
                let all = t
                    .to_dtype(DType::F64)
                    .and_then(|t| t.flatten_all()?.to_vec1());
                let all: Vec<f64> = all.map_err(plain)?;
                let bits = all.iter().map(|x| x.to_bits()).collect();
                let key = Key::Constant(bits, shape.dims.clone());
                (key, ValueKind::Constant(Arc::new(all)), false)
            }
            Kind::Parameter(i) => (Key::Parameter(*i), ValueKind::Parameter(*i), true),
            Kind::Input(_) => (Key::Input, ValueKind::Input, false),
            Kind::Columns(r) => (
                Key::Columns(r.clone()),
                ValueKind::Columns(r.clone()),
                false,
            ),
            Kind::Apply(operation) => {
                // What changes nothing is left out; of reshapings in a row the last is enough.
                if of(0).shape == shape && matches!(operation, Operation::Reshape(_)) {
                    return Ok(operands[0]);
                }
                let mut operands = operands.clone();
                if matches!(operation, Operation::Reshape(_))
                    && let ValueKind::Apply(Operation::Reshape(_)) = of(0).kind
                {
                    operands = of(0).operands.clone();
                }
                let mut numbered = operands.iter().enumerate();
                let active =
                    numbered.any(|(i, o)| self.values[*o].active && operation.has_derivative(i));
                let commutes =
                    matches!(operation, Operation::Binary(Binary::Add | Binary::Multiply));
                let mut sorted = operands.clone();
                if commutes {
                    sorted.sort_unstable();
                }
                let key = Key::Apply(operation.clone(), sorted);
                let kind = ValueKind::Apply(operation.clone());
                return Ok(self.intern(numbers, key, kind, operands, shape, active));
            }
        };
        Ok(self.intern(numbers, key, kind, operands, shape, active))
    }

    fn intern(
        &mut self,
        numbers: &mut HashMap<Key, usize>,
        key: Key,
        kind: ValueKind,
        operands: Vec<usize>,
        shape: Shape,
        active: bool,
    ) -> usize {
        *numbers.entry(key).or_insert_with(|| {
            self.values.push(Value {
                kind,
                operands,
                shape,
                active,
            });
            self.values.len() - 1
        })
    }

    /// The shape of the result.
    pub fn shape(&self) -> &Shape {
        &self.values[self.output].shape
    }

    /// The width of the inputs; none if they are not used.
    pub fn inputs(&self) -> Option<usize> {
        let input = |v: &&Value| matches!(v.kind, ValueKind::Input);
        self.values.iter().find(input).map(|v| v.shape.count())
    }

    /// Whether the result has a derivative with respect to a parameter.
    pub fn is_active(&self) -> bool {
        self.values[self.output].active
    }

    /// Whether a parameter is used.
    pub fn uses(&self, parameter: usize) -> bool {
        let is = |v: &Value| matches!(v.kind, ValueKind::Parameter(p) if p == parameter);
        self.values.iter().any(is)
    }

    /// Whether the result has a derivative with respect to a parameter.
    pub fn depends_on(&self, parameter: usize) -> bool {
        let mut reached = vec![false; self.values.len()];
        reached[self.output] = true;
        for (v, value) in self.values.iter().enumerate().rev() {
            match &value.kind {
                ValueKind::Parameter(p) if reached[v] && *p == parameter => return true,
                ValueKind::Apply(operation) if reached[v] => {
                    let operands = value.operands.iter().enumerate();
                    for (_, o) in operands.filter(|(i, _)| operation.has_derivative(*i)) {
                        reached[*o] = true;
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// For a parameter that is the right side of a product: the length of the sums, and of what comes out.
    pub fn fan(&self, parameter: usize) -> Option<(usize, usize)> {
        self.values.iter().find_map(|v| {
            let is = |at: usize| matches!(self.values[at].kind, ValueKind::Parameter(p) if p == parameter);
            if let ValueKind::Apply(Operation::Convolve(c)) = &v.kind
                && is(v.operands[1])
            {
                let area = c.kernel[0] * c.kernel[1];
                return Some((c.channels * area, c.filters * area));
            }
            let ValueKind::Apply(Operation::Product) = v.kind else {
                return None;
            };
            let mut right = v.operands[1];
            if let ValueKind::Apply(Operation::Transpose(..)) = self.values[right].kind {
                right = self.values[right].operands[0];
            }
            let own = is(right);
            let dims = &self.values[v.operands[1]].shape.dims;
            match dims[..] {
                [.., k, n] if own => Some((k, n)),
                [k] if own => Some((k, 1)),
                _ => None,
            }
        })
    }

    /// The parameter that is the weight of the product to which another parameter is added.
    pub fn weight_of_bias(&self, bias: usize) -> Option<usize> {
        let parameter = |at: usize| match self.values[at].kind {
            ValueKind::Parameter(p) => Some(p),
            _ => None,
        };
        self.values.iter().find_map(|v| {
            let ValueKind::Apply(Operation::Binary(Binary::Add)) = v.kind else {
                return None;
            };
            let at = v
                .operands
                .iter()
                .position(|o| parameter(*o) == Some(bias))?;
            let product = &self.values[v.operands[1 - at]];
            let ValueKind::Apply(Operation::Product) = product.kind else {
                return None;
            };
            let right = product.operands[1];
            match self.values[right].kind {
                ValueKind::Apply(Operation::Transpose(..)) => {
                    parameter(self.values[right].operands[0])
                }
                _ => parameter(right),
            }
        })
    }

    /// The result by candle, differentiable: parameters in their shapes, inputs `[rows, width]`.
    pub fn evaluate(&self, parameters: &[Tensor], inputs: &Tensor) -> candle_core::Result<Tensor> {
        let rows = inputs.dims().first().copied().unwrap_or(0);
        let mut found: Vec<Tensor> = Vec::with_capacity(self.values.len());
        for v in &self.values {
            let operands: Vec<_> = v.operands.iter().map(|o| found[*o].clone()).collect();
            found.push(match &v.kind {
                ValueKind::Constant(all) => {
                    let t = Tensor::from_slice(all, v.shape.dims.as_slice(), inputs.device())?;
                    t.to_dtype(inputs.dtype())?
                }
                ValueKind::Parameter(p) => parameters[*p].clone(),
                // No model is traced over columns.
                ValueKind::Input | ValueKind::Columns(_) => inputs.clone(),
                ValueKind::Apply(operation) => {
                    let of: Vec<_> = v
                        .operands
                        .iter()
                        .map(|o| self.values[*o].shape.clone())
                        .collect();
                    eager::apply(operation, &operands, &of, &v.shape, rows)?
                }
            });
        }
        Ok(found.swap_remove(self.output))
    }
}
