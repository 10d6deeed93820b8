//! Straight lines of operations on registers, each of which is a few lanes wide, and the way back through them.

use super::element::{Element, Register, Sums};
use crate::kernels::simd;

/// Examples that go through a program together.
///
/// Twice the widest vector, so that one half is computed while the other waits for its result.
pub const LANES: usize = 16;

/// Registers that nothing is computed for come first, then one for every instruction.
#[derive(Debug, Default)]
pub struct Line {
    /// Number of registers that are filled from outside.
    pub given: usize,
    /// What is computed.
    pub steps: Vec<Step>,
}

/// One operation on registers; the result goes to the next register.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// What is done.
    pub element: Element,
    /// Registers of the operands; the first again where there are fewer.
    pub operands: [u32; 3],
    /// Which operands have a gradient: a bit for each.
    pub active: u8,
}

impl Line {
    /// Number of registers.
    pub fn registers(&self) -> usize {
        self.given + self.steps.len()
    }

    #[inline(always)]
    fn forward<const L: usize>(&self, registers: &mut [[f64; L]]) {
        for (i, step) in self.steps.iter().enumerate() {
            if let (before, [out, ..]) = registers.split_at_mut(self.given + i) {
                let of = |k: usize| &before[step.operands[k] as usize];
                step.element.values(of, Register(out));
            }
        }
    }

    /// `gradients` holds those with respect to the results, and is left zero but for the given registers.
    #[inline(always)]
    fn backward<const L: usize>(&self, registers: &[[f64; L]], gradients: &mut [[f64; L]]) {
        let mut rest = &mut gradients[..self.registers()];
        for (step, y) in self.steps.iter().zip(&registers[self.given..]).rev() {
            let Some((delta, before)) = rest.split_last_mut() else {
                return;
            };
            if step.active != 0 {
                let sums = Sums {
                    registers: before,
                    operands: step.operands,
                    active: step.active,
                };
                // Not copied: registers are aligned to cache lines, which the stack is not.
                let of = |k: usize| &registers[step.operands[k] as usize];
                step.element.slopes(of, y, delta, sums);
                *delta = [0.0; L];
            }
            rest = before;
        }
    }

    /// Compute the values for one example.
    pub fn run_one(&self, registers: &mut [f64]) {
        self.forward::<1>(registers.as_chunks_mut().0);
    }

    /// Pass gradients back for one example.
    pub fn return_one(&self, registers: &[f64], gradients: &mut [f64]) {
        self.backward::<1>(registers.as_chunks().0, gradients.as_chunks_mut().0);
    }
}

simd! {
    /// Compute the values for several examples; with `gradients`, pass back those that it holds.
    pub fn run_lanes(line: &Line, registers: &mut [[f64; LANES]], seed: Option<(usize, &mut [[f64; LANES]])>) {
        line.forward(registers);
        if let Some((output, gradients)) = seed {
            gradients[output] = [1.0; LANES];
            line.backward(registers, gradients);
        }
    }
}

/// Memory of an evaluation, for any tape; allocates only when it meets a longer tape.
#[derive(Debug, Default, Clone)]
pub struct Scratch {
    shared: Vec<f64>,
    lanes: Vec<f64>,
}

/// Registers and the gradients with respect to them, which start at zero.
pub(super) struct Registers<'a> {
    /// Values that are the same for all examples.
    pub shared: &'a mut [f64],
    /// Gradients with respect to them.
    pub shared_gradients: &'a mut [f64],
    /// Values for several examples.
    pub lanes: &'a mut [[f64; LANES]],
    /// Gradients with respect to them.
    pub gradients: &'a mut [[f64; LANES]],
}

impl Scratch {
    /// Empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for as many registers as the two lines have.
    pub(super) fn registers(&mut self, shared: &Line, rows: &Line) -> Registers<'_> {
        let (n, m) = (shared.registers(), rows.registers());
        // Lanes start at a cache line, which a vector of doubles need not.
        let needed = 2 * m * LANES + LANES;
        if self.lanes.len() < needed {
            self.lanes.resize(needed, 0.0);
        }
        if self.shared.len() < 2 * n {
            self.shared.resize(2 * n, 0.0);
        }
        let start = self.lanes.as_ptr().align_offset(64).min(LANES);
        let (lanes, gradients) = self.lanes[start..].as_chunks_mut().0.split_at_mut(m);
        let (shared, shared_gradients) = self.shared[..2 * n].split_at_mut(n);
        let gradients = &mut gradients[..m];
        gradients.fill([0.0; LANES]);
        shared_gradients.fill(0.0);
        Registers {
            shared,
            shared_gradients,
            lanes,
            gradients,
        }
    }
}
