//! A graph number by number: what each is computed from, through shapes, slices and sums.

use super::element::Element;
use super::graph::{Graph, Value, ValueKind};
use super::operation::{Binary, Operation, Reduce};
use super::shape::{around, strides};

/// One number of a value; of a sum or an extreme along an axis, also one of the pairs, pairs of pairs and so on that it is made of: rounding errors
/// and depth grow with the logarithm of the length only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    value: u32,
    element: u32,
    /// Where the pair begins along the axis, and how many times its members were paired.
    from: u32,
    level: u8,
}

/// What a number is.
#[derive(Debug, Clone, Copy)]
pub enum Term {
    /// A constant.
    Constant(f64),
    /// A parameter.
    Parameter(usize),
    /// A column of the example.
    Column(usize),
    /// A function of other numbers, as many as it has operands.
    Apply(Element, [Option<Number>; 3]),
}

impl Graph {
    /// One of the numbers that come out.
    pub fn number(&self, element: usize) -> Number {
        self.element(self.output, element)
    }

    fn element(&self, value: usize, element: usize) -> Number {
        let levels = |m: usize| m.next_power_of_two().trailing_zeros() as u8;
        let level = match &self.values[value].kind {
            ValueKind::Apply(Operation::Reduce(_, axis)) => {
                levels(self.dims(self.values[value].operands[0])[*axis])
            }
            _ => 0,
        };
        Number {
            value: value as u32,
            element: element as u32,
            from: 0,
            level,
        }
    }

    fn dims(&self, value: usize) -> &[usize] {
        &self.values[value].shape.dims
    }

    /// What a number is; NaN if it was not traced in double precision.
    pub fn term(&self, mut n: Number) -> Term {
        loop {
            let (value, element) = (&self.values[n.value as usize], n.element as usize);
            let operation = match &value.kind {
                ValueKind::Constant(all) => return Term::Constant(all[element]),
                ValueKind::Parameter(_) => return Term::Parameter(element),
                ValueKind::Columns(range) => return Term::Column(range.start + element),
                ValueKind::Input => return Term::Constant(f64::NAN),
                ValueKind::Apply(operation) => operation,
            };
            let operand = |which: usize| {
                let from = *value.operands.get(which)?;
                let at = repeated(self.dims(from), &value.shape.dims, element);
                Some(self.element(from, at))
            };
            let all = || [operand(0), operand(1), operand(2)];
            n = match operation {
                Operation::Unary(f) => return Term::Apply(Element::One(*f), all()),
                Operation::Binary(f) => return Term::Apply(Element::Two(*f), all()),
                Operation::Choose => return Term::Apply(Element::Choose, all()),
                Operation::Reduce(how, axis) => match self.pair(value, n, *how, *axis) {
                    Ok(number) => number,
                    Err(term) => return term,
                },
                _ => match self.moved(value, operation, element) {
                    Some(number) => number,
                    None => return Term::Constant(f64::NAN),
                },
            };
        }
    }

    /// A pair, or what is left of one that has lost a member or has become a single number.
    fn pair(&self, value: &Value, n: Number, how: Reduce, axis: usize) -> Result<Number, Term> {
        let of = value.operands[0];
        let (_, m, inner) = around(self.dims(of), axis);
        let (f, nothing) = match how {
            Reduce::Sum => (Binary::Add, 0.0),
            Reduce::Max => (Binary::Max, f64::NEG_INFINITY),
            Reduce::Min => (Binary::Min, f64::INFINITY),
        };
        if m == 0 {
            return Err(Term::Constant(nothing));
        }
        let Some(level) = n.level.checked_sub(1) else {
            let (outer, i) = (n.element as usize / inner, n.element as usize % inner);
            return Ok(self.element(of, (outer * m + n.from as usize) * inner + i));
        };
        let left = Number { level, ..n };
        let from = n.from + (1 << level);
        if from as usize >= m {
            return Ok(left);
        }
        let right = Number { from, ..left };
        Err(Term::Apply(
            Element::Two(f),
            [Some(left), Some(right), None],
        ))
    }

    /// The number that stands at another place after an operation that computes nothing.
    fn moved(&self, value: &Value, operation: &Operation, element: usize) -> Option<Number> {
        let of = value.operands[0];
        let dims = self.dims(of);
        let at = match operation {
            Operation::Reshape(_) => element,
            Operation::Transpose(a, b) => {
                let (own, mut steps) = (strides(&value.shape.dims), strides(dims));
                steps.swap(*a, *b);
                let lengths = value.shape.dims.iter().zip(own).zip(steps);
                lengths.map(|((d, s), step)| element / s % d * step).sum()
            }
            Operation::Slice { axis, start, count } => {
                let (_, length, inner) = around(dims, *axis);
                let (outer, rest) = (element / (count * inner), element % (count * inner));
                (outer * length + start) * inner + rest
            }
            Operation::Concat(axis) => {
                let (_, length, inner) = around(&value.shape.dims, *axis);
                let (outer, mut rest) = (element / (length * inner), element % (length * inner));
                for of in &value.operands {
                    let run = self.dims(*of)[*axis] * inner;
                    if rest < run {
                        return Some(self.element(*of, outer * run + rest));
                    }
                    rest -= run;
                }
                return None;
            }
            _ => return None,
        };
        Some(self.element(of, at))
    }
}

/// Where an element comes from in a tensor of lengths `from` that is repeated to `to`, as in NumPy.
fn repeated(from: &[usize], to: &[usize], element: usize) -> usize {
    if from == to {
        return element;
    }
    let (mut rest, mut at, mut stride) = (element, 0, 1);
    let lengths = from.iter().rev();
    for (length, whole) in lengths.zip(to.iter().rev()) {
        if *length > 1 {
            at += rest % whole * stride;
        }
        rest /= whole;
        stride *= length;
    }
    at
}
