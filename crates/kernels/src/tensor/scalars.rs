//! From a graph to a tape: number by number, equal things made one, constants folded, and what nothing depends on left out.

use super::element::{Element, Register};
use super::graph::Graph;
use super::operation::{Binary, Unary};
use super::registers::{Line, Step};
use super::tape::Tape;
use super::unrolled::{Number, Term, Unrolled};
use crate::Result;
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
struct Scalars {
    parameters: usize,
    inputs: usize,
    /// So many columns have a gradient, the first ones.
    moving: usize,
    values: Vec<Value>,
    numbers: HashMap<Value, u32>,
}

impl Tape {
    /// Compile a graph of `parameters` parameters and of data examples with `inputs` columns.
    ///
    /// # Errors
    /// If the graph gives no single number, was traced over the inputs of a model, or uses a parameter or a column that does not exist.
    pub fn compile(graph: &Graph, parameters: usize, inputs: usize) -> Result<Self> {
        Self::with_moving(graph, parameters, inputs, 0)
    }

    /// The same, with derivatives of each example's value with respect to its first `moving` columns: see [`Tape::evaluate_rows`].
    ///
    /// # Errors
    /// See [`Tape::compile`].
    pub fn with_moving(
        graph: &Graph,
        parameters: usize,
        inputs: usize,
        moving: usize,
    ) -> Result<Self> {
        let shape = graph.shape();
        ensure!(
            shape.rank() == 0,
            "one number is needed, but this is a tensor of shape {shape}"
        );
        let mut scalars = Scalars {
            parameters,
            inputs,
            moving,
            values: Vec::new(),
            numbers: HashMap::new(),
        };
        let output = scalars.add(&Unrolled::new(graph)?)?;
        Ok(scalars.lower(output))
    }
}

impl Scalars {
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
                let Element::One(Unary::Power(n)) = element else {
                    return self.apply(element, operands);
                };
                let n = self.intern(Value::Constant(f64::from(n).to_bits()))?;
                self.apply(Element::Two(Binary::Power), [first, n, first])
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
            let (of, mut value) = ([[x], [y], [z]], [0.0]);
            element.values(|k| &of[k], Register(&mut value));
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
        let uses = self.uses(output);
        let living = || {
            let all = self.values.iter().zip(&uses).enumerate();
            all.filter(|(_, (_, u))| u.alive)
                .map(|(i, (value, u))| (i, *value, u))
        };
        let mut tape = Tape {
            parameters: self.parameters,
            inputs: self.inputs,
            moving: self.moving,
            active: uses[output as usize].active,
            ..Tape::default()
        };
        let mut shared_at = vec![0; self.values.len()];
        let mut row_at = shared_at.clone();
        // Given registers come before the results, constants before parameters.
        for (i, value, _) in living() {
            if let Value::Constant(bits) = value {
                shared_at[i] = tape.constants.len() as u32;
                tape.constants.push(f64::from_bits(bits));
            }
        }
        for (i, value, _) in living() {
            if let Value::Parameter(parameter) = value {
                shared_at[i] = (tape.constants.len() + tape.weights.len()) as u32;
                tape.weights.push(parameter);
            }
        }
        tape.shared.given = tape.constants.len() + tape.weights.len();
        let push = |line: &mut Line, at: &mut [u32], i: usize, element: Element, of: [u32; 3]| {
            let moves = |k: &usize| element.moves(*k) && uses[of[*k] as usize].active;
            let active = (0..element.operands())
                .filter(moves)
                .map(|k| u8::from(uses[i].active) << k);
            let active = active.sum();
            let operands = of.map(|o| at[o as usize]);
            at[i] = line.registers() as u32;
            line.steps.push(Step {
                element,
                operands,
                active,
            });
        };
        for (i, value, _) in living().filter(|(.., u)| !u.per_row) {
            if let Value::Apply(element, operands) = value {
                push(&mut tape.shared, &mut shared_at, i, element, operands);
            }
        }
        for (i, ..) in living().filter(|(.., u)| u.carried) {
            row_at[i] = tape.carried.len() as u32;
            tape.carried.push(shared_at[i]);
        }
        for (i, value, _) in living() {
            if let Value::Input(column) = value {
                row_at[i] = (tape.carried.len() + tape.columns.len()) as u32;
                tape.columns.push(column);
            }
        }
        tape.rows.given = tape.carried.len() + tape.columns.len();
        for (i, value, _) in living().filter(|(.., u)| u.per_row) {
            if let Value::Apply(element, operands) = value {
                push(&mut tape.rows, &mut row_at, i, element, operands);
            }
        }
        let per_row = uses[output as usize].per_row;
        tape.output = if per_row { row_at } else { shared_at }[output as usize];
        tape.shared.arrange(
            tape.carried
                .iter()
                .copied()
                .chain((!per_row).then_some(tape.output)),
        );
        tape.rows.arrange(per_row.then_some(tape.output));
        tape
    }

    fn uses(&self, output: u32) -> Vec<Use> {
        let mut uses = vec![Use::default(); self.values.len()];
        uses[output as usize].alive = true;
        uses[output as usize].moves = true;
        for (i, value) in self.values.iter().enumerate().rev() {
            if let (Value::Apply(element, operands), true) = (value, uses[i].alive) {
                for (k, operand) in operands.iter().enumerate() {
                    let moves = uses[i].moves && element.moves(k);
                    let operand = &mut uses[*operand as usize];
                    operand.alive = true;
                    operand.moves |= moves;
                }
            }
        }
        for (i, value) in self.values.iter().enumerate() {
            let mut own = uses[i];
            match value {
                Value::Constant(_) => {}
                Value::Parameter(_) => own.active = own.moves,
                Value::Input(column) => {
                    own.per_row = true;
                    own.active = own.moves && (*column as usize) < self.moving;
                }
                Value::Apply(element, operands) => {
                    let of = |k: usize| uses[operands[k] as usize];
                    own.per_row = (0..3).any(|k| of(k).per_row);
                    own.active = own.moves && (0..3).any(|k| of(k).active && element.moves(k));
                    for operand in operands.map(|o| o as usize) {
                        uses[operand].carried |= own.alive && own.per_row && !uses[operand].per_row;
                    }
                }
            }
            uses[i] = own;
        }
        uses
    }
}

/// Facts about a value.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Whether the output depends on it.
    alive: bool,
    /// Whether a gradient comes back to it from the output.
    moves: bool,
    /// Whether it goes on to a parameter, or to a column that has a gradient.
    active: bool,
    /// Whether it depends on an input.
    per_row: bool,
    /// Whether it depends on no input, but something that does depends on it.
    carried: bool,
}
