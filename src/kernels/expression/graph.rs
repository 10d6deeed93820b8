//! From a graph to a tape: equal things are made one, constants are folded, and what nothing depends on is left out.

use super::operation::Operation;
use super::program::{Instruction, Program};
use super::{Expression, Kind, Node, Tape};
use anyhow::{Result, bail, ensure};
use std::collections::HashMap;

/// What a value of the graph is; no two of a graph are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    /// The bits of a number, since floats are not `Eq`.
    Constant(u64),
    Parameter(u32),
    Input(u32),
    Apply(Operation, [u32; 2]),
}

/// The values of an expression, operands before what uses them.
pub struct Graph {
    parameters: usize,
    inputs: usize,
    values: Vec<Value>,
    numbers: HashMap<Value, u32>,
}

impl Graph {
    pub fn new(parameters: usize, inputs: usize) -> Self {
        Self {
            parameters,
            inputs,
            values: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The tape of an expression; an error if it has a parameter or an input that does not exist.
    pub fn compile(mut self, expression: &Expression) -> Result<Tape> {
        let output = self.add(expression)?;
        Ok(self.lower(output))
    }

    /// The number of an expression, which is entered with all that it depends on.
    fn add(&mut self, expression: &Expression) -> Result<u32> {
        let key = |e: &Expression| std::ptr::from_ref::<Node>(&e.0);
        let mut known: HashMap<*const Node, u32> = HashMap::new();
        let mut open = vec![expression];
        // Without recursion: a graph may be deeper than the stack.
        while let Some(&next) = open.last() {
            let depth = open.len();
            let operands = next.0.operands.iter().flatten();
            if !known.contains_key(&key(next)) {
                let missing = |e: &&Expression| !known.contains_key(&key(e));
                open.extend(operands.clone().rev().filter(missing));
            }
            if open.len() > depth {
                continue;
            }
            open.pop();
            if !known.contains_key(&key(next)) {
                let mut numbers = operands.map(|e| known[&key(e)]);
                let a = numbers.next().unwrap_or(0);
                let b = numbers.next().unwrap_or(a);
                let number = self.enter(next.0.kind, a, b)?;
                known.insert(key(next), number);
            }
        }
        Ok(known[&key(expression)])
    }

    fn enter(&mut self, kind: Kind, a: u32, b: u32) -> Result<u32> {
        match kind {
            Kind::Constant(value) => self.intern(Value::Constant(value.to_bits())),
            Kind::Parameter(i) => {
                let n = self.parameters;
                ensure!(
                    i < n,
                    "w[{i}] does not exist: there are {n} parameters, numbered from 0"
                );
                self.intern(Value::Parameter(u32::try_from(i)?))
            }
            Kind::Input(i) => {
                let n = self.inputs;
                ensure!(
                    i < n,
                    "x[{i}] does not exist: an example has {n} columns, numbered from 0"
                );
                self.intern(Value::Input(u32::try_from(i)?))
            }
            Kind::Apply(operation) => self.apply(operation, a, b),
        }
    }

    /// The number of the result, or of something simpler that is equal to it.
    fn apply(&mut self, operation: Operation, a: u32, b: u32) -> Result<u32> {
        use Operation::*;
        let (left, right) = (self.constant(a), self.constant(b));
        if let (Some(left), Some(right)) = (left, right) {
            let value = operation.value(left, right);
            return self.intern(Value::Constant(value.to_bits()));
        }
        match (operation, left, right) {
            (Add | Subtract, _, Some(0.0)) | (Multiply | Divide | Powf, _, Some(1.0)) => {
                return Ok(a);
            }
            (Add, Some(0.0), _) | (Multiply, Some(1.0), _) => return Ok(b),
            (Powi(1), ..) => return Ok(a),
            (Max | Min, ..) if a == b => return Ok(a),
            (Powi(2), ..) => return self.apply(Multiply, a, a),
            (Powi(0), ..) => return self.intern(Value::Constant(1.0_f64.to_bits())),
            (Powf, _, Some(0.5)) => return self.apply(Sqrt, a, a),
            // Beyond that, rounding errors of repeated squaring would add up.
            (Powf, _, Some(n)) if n.fract() == 0.0 && n.abs() <= 32.0 => {
                return self.apply(Powi(n as i32), a, a);
            }
            (Negate, ..) => {
                if let Value::Apply(Negate, [inner, _]) = self.values[a as usize] {
                    return Ok(inner);
                }
            }
            _ => {}
        }
        let swap = operation.commutes() && b < a;
        self.intern(Value::Apply(operation, if swap { [b, a] } else { [a, b] }))
    }

    fn constant(&self, number: u32) -> Option<f64> {
        match self.values.get(number as usize)? {
            Value::Constant(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    fn intern(&mut self, value: Value) -> Result<u32> {
        let Ok(next) = u32::try_from(self.values.len()) else {
            bail!("the expression has more than {} operations", u32::MAX);
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
            shared: Program::default(),
            carried: Vec::new(),
            columns: Vec::new(),
            rows: Program::default(),
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
        let step = |i: usize, operation, operands: [u32; 2], at: &[u32]| Instruction {
            operation,
            operands: operands.map(|o| at[o as usize]),
            active: operands.map(|o| active[i] && active[o as usize]),
        };
        for (i, value) in living().filter(|(i, _)| !per_row[*i]) {
            if let Value::Apply(operation, operands) = *value {
                shared_at[i] = tape.shared.registers() as u32;
                let step = step(i, operation, operands, &shared_at);
                tape.shared.instructions.push(step);
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
            if let Value::Apply(operation, operands) = *value {
                row_at[i] = tape.rows.registers() as u32;
                let step = step(i, operation, operands, &row_at);
                tape.rows.instructions.push(step);
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
        // Whether the output depends on it other than through something held.
        let mut moves = nothing;
        uses.alive[output as usize] = true;
        moves[output as usize] = true;
        for (i, value) in self.values.iter().enumerate().rev() {
            if let (Value::Apply(operation, operands), true) = (value, uses.alive[i]) {
                for operand in operands.map(|o| o as usize) {
                    uses.alive[operand] = true;
                    moves[operand] |= moves[i] && *operation != Operation::Hold;
                }
            }
        }
        for (i, value) in self.values.iter().enumerate() {
            let any = |flags: &[bool], [a, b]: [u32; 2]| flags[a as usize] || flags[b as usize];
            let (per_row, active) = match *value {
                Value::Constant(_) => (false, false),
                Value::Parameter(_) => (false, true),
                Value::Input(_) => (true, false),
                Value::Apply(Operation::Hold, operands) => (any(&uses.per_row, operands), false),
                Value::Apply(_, operands) => {
                    (any(&uses.per_row, operands), any(&uses.active, operands))
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
