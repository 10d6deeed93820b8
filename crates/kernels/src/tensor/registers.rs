//! Straight lines of operations on registers, each of which is a few lanes wide, and the way back through them.

use super::element::{Element, Register, Results, Sums};
use super::operation::Binary;
use crate::simd;

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
    /// How it is computed: some steps are one with the next.
    pub(super) order: Vec<Order>,
    /// Whether there is a choice: what is not chosen has no gradient, however steep it is there.
    pub(super) chooses: bool,
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

/// What is executed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// A step; none where the product of the first two operands is added to the third.
    element: Option<Element>,
    operands: [u32; 3],
    active: u8,
    result: u32,
}

impl Line {
    /// Number of registers.
    pub fn registers(&self) -> usize {
        self.given + self.steps.len()
    }

    /// Decide how the steps are executed; `kept`: registers that are read afterwards.
    ///
    /// A product that only the next step uses, and adds to something, is not stored: scalar products, which most energies
    /// consist of, take half as many instructions. Each of the two results is rounded as before.
    pub fn arrange(&mut self, kept: impl IntoIterator<Item = u32>) {
        let mut uses = vec![0; self.registers()];
        let of = |step: &'_ Step| step.operands.into_iter().take(step.element.operands());
        let operands = self.steps.iter().flat_map(of);
        for register in operands.chain(kept) {
            uses[register as usize] += 1;
        }
        self.chooses = self.steps.iter().any(|s| s.element == Element::Choose);
        self.order.clear();
        for (step, result) in self.steps.iter().zip(self.given as u32..) {
            let mut order = Order {
                element: Some(step.element),
                operands: step.operands,
                active: step.active,
                result,
            };
            let last = self.order.last().filter(|last| {
                last.element == Some(Element::Two(Binary::Multiply))
                    && step.element == Element::Two(Binary::Add)
                    && step.operands[..2].contains(&last.result)
                    && uses[last.result as usize] == 1
            });
            if let Some(product) = last.copied() {
                let other = usize::from(step.operands[0] == product.result);
                let [a, b, _] = product.operands;
                order.element = None;
                order.operands = [a, b, step.operands[other]];
                order.active = product.active | (step.active >> other & 1) << 2;
                self.order.pop();
            }
            self.order.push(order);
        }
    }

    #[inline(always)]
    fn forward<const L: usize>(&self, registers: &mut [[f64; L]]) {
        for order in &self.order {
            if let (before, [out, ..]) = registers.split_at_mut(order.result as usize) {
                let of = |k: usize| &before[order.operands[k] as usize];
                match order.element {
                    Some(element) => element.values(of, Register(out)),
                    None => Register(out).each(0, [of(0), of(1), of(2)], |a, b, c| c + a * b),
                }
            }
        }
    }

    /// `gradients` holds those with respect to the results, and is left zero but for the given registers.
    #[inline(always)]
    fn backward<const L: usize>(&self, registers: &[[f64; L]], gradients: &mut [[f64; L]]) {
        for order in self.order.iter().rev().filter(|order| order.active != 0) {
            let result = order.result as usize;
            if let (before, [delta, ..]) = gradients.split_at_mut(result) {
                let idle = delta.map(|d| self.chooses && d == 0.0);
                if idle == [true; L] {
                    continue;
                }
                let some = idle != [false; L];
                let kept = some.then(|| order.operands.map(|o| before[o as usize]));
                let mut sums = Sums {
                    registers: before,
                    operands: order.operands,
                    active: order.active,
                };
                // Not copied: registers are aligned to cache lines, which the stack is not.
                let of = |k: usize| &registers[order.operands[k] as usize];
                match order.element {
                    Some(element) => element.slopes(of, &registers[result], delta, sums),
                    None => {
                        sums.each(2, [delta; 3], |d, _, _| d);
                        sums.each(0, [of(1), delta, delta], |b, d, _| d * b);
                        sums.each(1, [of(0), delta, delta], |a, d, _| d * a);
                    }
                }
                *delta = [0.0; L];
                // Zero times an infinite slope would be NaN.
                for (register, kept) in order.operands.iter().zip(kept.iter().flatten()) {
                    let sums = before[*register as usize].iter_mut().zip(kept);
                    let lanes = sums.zip(idle).filter(|(_, idle)| *idle);
                    lanes.for_each(|((sum, kept), _)| *sum = *kept);
                }
            }
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
