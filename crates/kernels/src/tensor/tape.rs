//! Graphs compiled number by number in double precision, their evaluation and their gradient.

use super::element::Element;
use super::formula::word;
use super::operation::Unary;
use super::registers::{LANES, Line, Registers, Scratch, run_lanes};

/// A compiled graph of one number, in double precision: what a vector of parameters and each data example make of it.
///
/// What does not depend on the data example is computed once per evaluation, the rest once per example. Equal subexpressions
/// are computed once, wherever they came from.
#[derive(Debug, Default)]
pub struct Tape {
    pub(super) parameters: usize,
    pub(super) inputs: usize,
    /// Columns that have a gradient.
    pub(super) moving: usize,
    /// Shared registers: constants, parameters, results.
    pub(super) constants: Vec<f64>,
    pub(super) weights: Vec<u32>,
    pub(super) shared: Line,
    /// Registers per example: copies of shared registers, columns of the example, results.
    pub(super) carried: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) rows: Line,
    /// Register of the result; a shared one if the tape depends on no input.
    pub(super) output: u32,
    /// Whether the result depends on a parameter, or on a column that has a gradient.
    pub(super) active: bool,
}

impl Tape {
    /// The sum of the values over `rows`, 0 if there are none; the gradient of the sum is added to `grad`.
    ///
    /// A tape without inputs does not look at the rows but counts them. Numbers that `w` or a row is too short for are NaN.
    pub fn evaluate<'r, W: Copy + Into<f64>, R: Copy + Into<f64> + 'r>(
        &self,
        w: &[W],
        rows: impl IntoIterator<Item = &'r [R]>,
        grad: Option<&mut [f64]>,
        scratch: &mut Scratch,
    ) -> f64 {
        let grad = grad.filter(|_| self.active);
        let Registers {
            shared,
            shared_gradients,
            lanes,
            gradients,
        } = self.prepare(w, scratch);
        let sum = if self.rows.given == 0 {
            let count = rows.into_iter().count() as f64;
            let output = self.output as usize;
            shared_gradients[output] = count;
            (count > 0.0).then(|| count * shared[output])
        } else {
            let backward = grad
                .is_some()
                .then_some((gradients, &mut *shared_gradients));
            let mut sums = [0.0; LANES];
            let any = self.pass(rows.into_iter(), lanes, backward, |live, values, _| {
                for (sum, value) in sums.iter_mut().zip(values).take(live) {
                    *sum += value;
                }
            });
            any.then(|| sums.iter().sum())
        };
        // A gradient of no rows is zero even where one times it would be infinite.
        if let (Some(grad), Some(_)) = (grad, sum) {
            self.finish(shared, shared_gradients, grad);
        }
        sum.unwrap_or(0.0)
    }

    /// The value of each of the rows `[values, inputs]`. With `slopes`: its derivatives with respect to the columns that have some,
    /// `[values, moving]`, and the gradient of the sum, which is added.
    pub fn evaluate_rows<W: Copy + Into<f64>>(
        &self,
        w: &[W],
        rows: &[f32],
        values: &mut [f64],
        slopes: Option<(&mut [f32], &mut [f64])>,
        scratch: &mut Scratch,
    ) {
        let Registers {
            shared,
            shared_gradients,
            lanes,
            gradients,
        } = self.prepare(w, scratch);
        let (mut by_column, grad) = slopes.unzip();
        if let Some(by_column) = &mut by_column {
            by_column.fill(0.0);
        }
        if self.rows.given == 0 {
            values.fill(shared[self.output as usize]);
            return;
        }
        let backward = grad
            .is_some()
            .then_some((gradients, &mut *shared_gradients));
        let each = rows.chunks_exact(self.inputs.max(1)).take(values.len());
        let mut first = 0;
        self.pass(each, lanes, backward, |live, found, moved| {
            values[first..first + live].copy_from_slice(&found[..live]);
            if let Some(by_column) = &mut by_column {
                for (column, lanes) in self.columns.iter().zip(moved) {
                    let column = *column as usize;
                    if column < self.moving {
                        let all = by_column[first * self.moving..].chunks_exact_mut(self.moving);
                        for (row, slope) in all.zip(&*lanes).take(live) {
                            row[column] = *slope as f32;
                        }
                        *lanes = [0.0; LANES];
                    }
                }
            }
            first += live;
        });
        if let Some(grad) = grad {
            self.finish(shared, shared_gradients, grad);
        }
    }

    /// Compute what does not depend on the data, and copy it to where rows find it.
    fn prepare<'s, W: Copy + Into<f64>>(&self, w: &[W], scratch: &'s mut Scratch) -> Registers<'s> {
        let registers = scratch.registers(&self.shared, &self.rows);
        let (constants, rest) = registers.shared.split_at_mut(self.constants.len());
        constants.copy_from_slice(&self.constants);
        for (register, i) in rest.iter_mut().zip(&self.weights) {
            *register = w.get(*i as usize).map_or(f64::NAN, |w| (*w).into());
        }
        self.shared.run_one(registers.shared);
        for (register, i) in registers.lanes.iter_mut().zip(&self.carried) {
            *register = [registers.shared[*i as usize]; LANES];
        }
        registers
    }

    /// Pass gradients of what does not depend on the data on to the parameters.
    fn finish(&self, shared: &[f64], gradients: &mut [f64], grad: &mut [f64]) {
        self.shared.return_one(shared, gradients);
        let slopes = &gradients[self.constants.len()..];
        for (i, slope) in self.weights.iter().zip(slopes) {
            if let Some(sum) = grad.get_mut(*i as usize) {
                *sum += slope;
            }
        }
    }

    /// Go through the rows, several at once; whether there are any. `backward`, if wanted: gradients by lanes, and those of the shared
    /// registers. `each` sees how many rows there are of a block, their values, and the gradients of the columns by lanes.
    #[inline]
    fn pass<'r, R: Copy + Into<f64> + 'r>(
        &self,
        mut rows: impl Iterator<Item = &'r [R]>,
        registers: &mut [[f64; LANES]],
        mut backward: Option<(&mut [[f64; LANES]], &mut [f64])>,
        mut each: impl FnMut(usize, &[f64; LANES], &mut [[f64; LANES]]),
    ) -> bool {
        let output = self.output as usize;
        let carried = self.carried.len();
        let mut any = false;
        loop {
            let columns = &mut registers[carried..self.rows.given];
            let live = load(&mut rows, &self.columns, columns);
            // The last, partial block stands alone, since only some of its lanes count.
            if let (true, Some((lanes, shared))) = (live < LANES, &mut backward) {
                self.gather(LANES, lanes, shared);
            }
            if live > 0 {
                any = true;
                let seed = backward.as_mut().map(|(lanes, _)| (output, &mut **lanes));
                run_lanes(&self.rows, registers, seed);
                let moved = match &mut backward {
                    Some((lanes, _)) => &mut lanes[carried..self.rows.given],
                    None => &mut [],
                };
                each(live, &registers[output], moved);
            }
            if live < LANES {
                if let Some((lanes, shared)) = backward {
                    self.gather(live, lanes, shared);
                }
                return any;
            }
        }
    }

    /// Add the gradients of the first `live` lanes to the shared ones, and make them zero.
    fn gather(&self, live: usize, gradients: &mut [[f64; LANES]], shared: &mut [f64]) {
        for (lanes, i) in gradients.iter_mut().zip(&self.carried) {
            shared[*i as usize] += lanes[..live].iter().sum::<f64>();
            *lanes = [0.0; LANES];
        }
    }

    /// Whether the value depends on a parameter, or on a column that has a gradient.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether the value depends on this column.
    pub fn reads(&self, column: usize) -> bool {
        self.columns.contains(&(column as u32))
    }

    /// What the tape computes, as bytes: the same for the same tape in every process.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"expression 1\n".to_vec();
        let numbers = [self.parameters, self.inputs, self.constants.len()];
        let mut number = |n: u64| bytes.extend(n.to_le_bytes());
        numbers.iter().for_each(|n| number(*n as u64));
        self.constants.iter().for_each(|c| number(c.to_bits()));
        for list in [&self.weights, &self.carried, &self.columns] {
            number(list.len() as u64);
            list.iter().for_each(|i| number(u64::from(*i)));
        }
        number(u64::from(self.output));
        for line in [&self.shared, &self.rows] {
            bytes.extend((line.steps.len() as u64).to_le_bytes());
            for step in &line.steps {
                bytes.extend(word(step.element).as_bytes());
                if let Element::One(Unary::Power(n)) = step.element {
                    bytes.extend(n.to_le_bytes());
                }
                bytes.push(b'\n');
                let count = if step.element == Element::Choose {
                    3
                } else {
                    2
                };
                let operands = step.operands.iter().take(count);
                operands.for_each(|i| bytes.extend(i.to_le_bytes()));
            }
        }
        bytes
    }
}

/// The next rows, as many as there are lanes; the number of them. Lanes without a row get the first one again.
#[inline]
fn load<'r, R: Copy + Into<f64> + 'r>(
    rows: &mut impl Iterator<Item = &'r [R]>,
    columns: &[u32],
    registers: &mut [[f64; LANES]],
) -> usize {
    let Some(first) = rows.next() else {
        return 0;
    };
    let mut block = [first; LANES];
    let mut live = 1;
    for (lane, row) in block[1..].iter_mut().zip(rows) {
        *lane = row;
        live += 1;
    }
    for (register, column) in registers.iter_mut().zip(columns) {
        for (number, row) in register.iter_mut().zip(block) {
            *number = row.get(*column as usize).map_or(f64::NAN, |x| (*x).into());
        }
    }
    live
}
