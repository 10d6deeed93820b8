//! From a graph to a tape: number by number, equal things made one, constants folded, and what nothing depends on left out.

use super::element::Element;
use super::graph::Graph;
use super::operation::{Binary, Unary};
use super::registers::{Line, Step};
use super::tape::Tape;
use super::unrolled::{Number, Term, Unrolled};
use crate::error::Result;
use anyhow::{bail, ensure};
use std::collections::HashMap;

/// What a value is; no two of a graph are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    /// The bits of a number, since floats are not `Eq`.
    Constant(u64),
    Parameter(u32),
    Input(u32),
    /// The first operand again where there are fewer than three.
    Apply(Element, [u32; 3]),
}

/// The values of a graph of numbers, operands before what uses them.
pub struct Scalars {
    parameters: usize,
    inputs: usize,
    values: Vec<Value>,
    numbers: HashMap<Value, u32>,
}

impl Scalars {
    /// The tape of a graph; an error if it has a parameter or an input that does not exist.
    pub fn compile(graph: &Graph, parameters: usize, inputs: usize) -> Result<Tape> {
        let shape = graph.shape();
        ensure!(
            shape.rank() == 0,
            "one number is needed, but this is a tensor of shape {shape}"
        );
        let mut out = Self {
            parameters,
            inputs,
            values: Vec::new(),
            numbers: HashMap::new(),
        };
        let output = out.add(&Unrolled::new(graph)?)?;
        Ok(out.lower(output))
    }

    /// Enter the number that comes out, with all that it depends on.
    fn add(&mut self, graph: &Unrolled) -> Result<u32> {
        let output = graph.number(0);
        let mut known: HashMap<Number, u32> = HashMap::new();
        let mut open = vec![output];
        // Without recursion: a graph may be deeper than the stack.
        while let Some(&next) = open.last() {
            if known.contains_key(&next) {
                open.pop();
                continue;
            }
            let term = graph.term(next);
            let depth = open.len();
            if let Term::Apply(_, operands) = &term {
                let operands = operands.iter().flatten().rev();
                open.extend(operands.filter(|n| !known.contains_key(n)));
            }
            if open.len() == depth {
                open.pop();
                let number = self.enter(term, &known)?;
                known.insert(next, number);
            }
        }
        Ok(known[&output])
    }

    fn enter(&mut self, term: Term, known: &HashMap<Number, u32>) -> Result<u32> {
        match term {
            Term::Constant(value) => self.intern(Value::Constant(value.to_bits())),
            Term::Parameter(i) => {
                let n = self.parameters;
                ensure!(
                    i < n,
                    "w[{i}] does not exist: there are {n} parameters, numbered from 0"
                );
                self.intern(Value::Parameter(u32::try_from(i)?))
            }
            Term::Column(i) => {
                let n = self.inputs;
                ensure!(
                    i < n,
                    "x[{i}] does not exist: an example has {n} columns, numbered from 0"
                );
                self.intern(Value::Input(u32::try_from(i)?))
            }
            Term::Apply(element, operands) => {
                let first = operands[0].map_or(0, |n| known[&n]);
                let operands = operands.map(|n| n.map_or(first, |n| known[&n]));
                self.apply(element, operands)
            }
        }
    }

    /// The number of the result, or of something simpler that is equal to it.
    fn apply(&mut self, element: Element, operands: [u32; 3]) -> Result<u32> {
        use Binary::{Add, Divide, LnAddExp, Max, Min, Multiply, Subtract};
        use Element::{One, Two};
        let [a, b, c] = operands;
        let constants = operands.map(|o| self.constant(o));
        if let [Some(x), Some(y), Some(z)] = constants {
            let mut value = [0.0];
            element.values([&[x], &[y], &[z]], &mut value);
            return self.intern(Value::Constant(value[0].to_bits()));
        }
        let [left, right, _] = constants;
        match (element, left, right) {
            (Two(Add | Subtract), _, Some(0.0))
            | (Two(Multiply | Divide | Binary::Power), _, Some(1.0))
            | (One(Unary::Power(1)), ..) => return Ok(a),
            (Two(Add), Some(0.0), _) | (Two(Multiply), Some(1.0), _) => return Ok(b),
            (Two(Max | Min), ..) if a == b => return Ok(a),
            (One(Unary::Power(2)), ..) => return self.apply(Two(Multiply), [a; 3]),
            (One(Unary::Power(0)), ..) => return self.intern(Value::Constant(1.0_f64.to_bits())),
            (Two(Binary::Power), _, Some(0.5)) => return self.apply(One(Unary::Sqrt), [a; 3]),
            // Beyond that, rounding errors of repeated squaring would add up.
            (Two(Binary::Power), _, Some(n)) if n.fract() == 0.0 && n.abs() <= 32.0 => {
                return self.apply(One(Unary::Power(n as i32)), [a; 3]);
            }
            (One(Unary::Negate), ..) => {
                if let Value::Apply(One(Unary::Negate), [inner, ..]) = self.values[a as usize] {
                    return Ok(inner);
                }
            }
            _ => {}
        }
        // Not max and min: of zeros of both signs they take the second.
        let commutes = matches!(element, Two(Add | Multiply | LnAddExp));
        let operands = match element {
            Two(_) if commutes && b < a => [b, a, b],
            Two(_) => [a, b, a],
            _ => [a, b, c],
        };
        self.intern(Value::Apply(element, operands))
    }

    fn constant(&self, number: u32) -> Option<f64> {
        match self.values.get(number as usize)? {
            Value::Constant(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    fn intern(&mut self, value: Value) -> Result<u32> {
        let Ok(next) = u32::try_from(self.values.len()) else {
            bail!("the energy has more than {} operations", u32::MAX);
        };
        Ok(*self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            next
        }))
    }

    /// Give registers to what `output` depends on.
    fn lower(&self, output: u32) -> Tape {
        let Uses {
            alive,
            per_row,
            active,
            carried,
        } = self.uses(output);
        let living = || self.values.iter().enumerate().filter(|(i, _)| alive[*i]);
        let mut tape = Tape {
            parameters: self.parameters,
            inputs: self.inputs,
            constants: Vec::new(),
            weights: Vec::new(),
            shared: Line::default(),
            carried: Vec::new(),
            columns: Vec::new(),
            rows: Line::default(),
            output: 0,
            active: active[output as usize],
        };
        let mut shared_at = vec![0; self.values.len()];
        let mut row_at = vec![0; self.values.len()];
        // Given registers come before the results, constants before parameters.
        for (i, value) in living() {
            if let Value::Constant(bits) = value {
                shared_at[i] = tape.constants.len() as u32;
                tape.constants.push(f64::from_bits(*bits));
            }
        }
        for (i, value) in living() {
            if let Value::Parameter(parameter) = value {
                shared_at[i] = (tape.constants.len() + tape.weights.len()) as u32;
                tape.weights.push(*parameter);
            }
        }
        tape.shared.given = tape.constants.len() + tape.weights.len();
        let step = |i: usize, element: Element, operands: [u32; 3], at: &[u32]| {
            let count = match element {
                Element::One(_) => 1,
                Element::Two(_) => 2,
                Element::Choose => 3,
            };
            let moves = |k: usize| k < count && element.moves(k) && active[operands[k] as usize];
            Step {
                element,
                operands: operands.map(|o| at[o as usize]),
                active: [0, 1, 2].map(|k| active[i] && moves(k)),
            }
        };
        for (i, value) in living().filter(|(i, _)| !per_row[*i]) {
            if let Value::Apply(element, operands) = *value {
                shared_at[i] = tape.shared.registers() as u32;
                let step = step(i, element, operands, &shared_at);
                tape.shared.steps.push(step);
            }
        }
        for (i, _) in living().filter(|(i, _)| carried[*i]) {
            row_at[i] = tape.carried.len() as u32;
            tape.carried.push(shared_at[i]);
        }
        for (i, value) in living() {
            if let Value::Input(column) = value {
                row_at[i] = (tape.carried.len() + tape.columns.len()) as u32;
                tape.columns.push(*column);
            }
        }
        tape.rows.given = tape.carried.len() + tape.columns.len();
        for (i, value) in living().filter(|(i, _)| per_row[*i]) {
            if let Value::Apply(element, operands) = *value {
                row_at[i] = tape.rows.registers() as u32;
                let step = step(i, element, operands, &row_at);
                tape.rows.steps.push(step);
            }
        }
        let at = if per_row[output as usize] {
            row_at
        } else {
            shared_at
        };
        tape.output = at[output as usize];
        tape
    }

    fn uses(&self, output: u32) -> Uses {
        let nothing = vec![false; self.values.len()];
        let mut uses = Uses {
            alive: nothing.clone(),
            per_row: nothing.clone(),
            active: nothing.clone(),
            carried: nothing.clone(),
        };
        // Whether a gradient comes back to it from the output.
        let mut moves = nothing;
        uses.alive[output as usize] = true;
        moves[output as usize] = true;
        for (i, value) in self.values.iter().enumerate().rev() {
            if let (Value::Apply(element, operands), true) = (value, uses.alive[i]) {
                for (which, operand) in operands.iter().map(|o| *o as usize).enumerate() {
                    uses.alive[operand] = true;
                    moves[operand] |= moves[i] && element.moves(which);
                }
            }
        }
        for (i, value) in self.values.iter().enumerate() {
            let (per_row, active) = match value {
                Value::Constant(_) => (false, false),
                Value::Parameter(_) => (false, true),
                Value::Input(_) => (true, false),
                Value::Apply(element, operands) => {
                    let active = |k: usize| uses.active[operands[k] as usize] && element.moves(k);
                    let per_row = operands.iter().any(|o| uses.per_row[*o as usize]);
                    (per_row, (0..3).any(active))
                }
            };
            (uses.per_row[i], uses.active[i]) = (per_row, active && moves[i]);
            if let (Value::Apply(_, operands), true, true) = (*value, uses.alive[i], per_row) {
                for operand in operands.map(|o| o as usize) {
                    uses.carried[operand] |= !uses.per_row[operand];
                }
            }
        }
        uses
    }
}

/// Facts about each value of a graph.
struct Uses {
    /// Whether the output depends on it.
    alive: Vec<bool>,
    /// Whether it depends on an input.
    per_row: Vec<bool>,
    /// Whether a gradient goes through it: from the output to a parameter.
    active: Vec<bool>,
    /// Whether it depends on no input, but something that does depends on it.
    carried: Vec<bool>,
}
