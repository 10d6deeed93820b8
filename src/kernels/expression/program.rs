//! Straight lines of operations on registers, each of which is a few lanes wide, and the way back through them.

use super::operation::{Operation, Pull};
use crate::kernels::simd;

/// Examples that go through a program together.
///
/// Twice the widest vector, so that one half is computed while the other waits for its result.
pub const LANES: usize = 16;

/// Registers that nothing is computed for come first, then one for every instruction.
#[derive(Debug, Default)]
pub struct Program {
    /// Number of registers that are filled from outside.
    pub given: usize,
    /// What is computed.
    pub instructions: Vec<Instruction>,
}

/// One operation on registers; the result goes to the next register.
#[derive(Debug, Clone, Copy)]
pub struct Instruction {
    /// What is done.
    pub operation: Operation,
    /// Registers of the operands, the same one twice if there is only one.
    pub operands: [u32; 2],
    /// Which operands have a gradient.
    pub active: [bool; 2],
}

impl Program {
    /// Number of registers.
    pub fn registers(&self) -> usize {
        self.given + self.instructions.len()
    }

    #[inline(always)]
    fn forward<const L: usize>(&self, registers: &mut [[f64; L]]) {
        for (i, step) in self.instructions.iter().enumerate() {
            let (before, after) = registers.split_at_mut(self.given + i);
            let [a, b] = step.operands.map(|r| &before[r as usize]);
            step.operation.values(a, b, &mut after[0]);
        }
    }

    /// `gradients` holds those with respect to the results, and is left zero but for the given registers.
    #[inline(always)]
    fn backward<const L: usize>(&self, registers: &[[f64; L]], gradients: &mut [[f64; L]]) {
        for (i, step) in self.instructions.iter().enumerate().rev() {
            if step.active == [false; 2] {
                continue;
            }
            let (before, after) = gradients.split_at_mut(self.given + i);
            let g = std::mem::replace(&mut after[0], [0.0; L]);
            let [a, b] = step.operands.map(|r| r as usize);
            step.operation.pull(&mut Pull {
                a: &registers[a],
                b: &registers[b],
                y: &registers[self.given + i],
                g: &g,
                gradients: before,
                first: step.active[0].then_some(a),
                second: step.active[1].then_some(b),
            });
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
    pub fn run_lanes(program: &Program, registers: &mut [[f64; LANES]], seed: Option<(usize, &mut [[f64; LANES]])>) {
        program.forward(registers);
        if let Some((output, gradients)) = seed {
            gradients[output] = [1.0; LANES];
            program.backward(registers, gradients);
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

    /// Room for as many registers as the two programs have.
    pub(super) fn registers(&mut self, shared: &Program, rows: &Program) -> Registers<'_> {
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
