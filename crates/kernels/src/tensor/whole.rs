//! A program over a tile, pass by pass, as its [`Plan`] says: for rows so large that threads share each pass, not the rows.

use super::elements::Spread;
use super::gradient::Kept;
use super::pass::Pass;
use super::plan::{Plan, Step, What};
use super::program::{Given, Instruction, Operand, Program, Source, Views};
use super::view::View;
use crate::thread_pool::Team;
use std::ops::Range;

/// What a program reads, and the memory of its plan.
pub struct Whole<'a> {
    /// The parameters.
    pub parameters: &'a [f32],
    /// What [`Program::prepare`] gave.
    pub shared: &'a [f32],
    /// How many rows.
    pub rows: usize,
    /// `[rows, inputs]`.
    pub inputs: &'a [f32],
    /// `[rows, outputs]`.
    pub outputs: &'a mut [f32],
    /// `[rows, outputs]`: the gradient with respect to the outputs; empty if it is in their place, as a plan may say, and without gradients.
    pub delta: &'a mut [f32],
    /// [`Plan::length`] numbers per row.
    pub memory: &'a mut [f32],
}

/// Numbers of a tile that threads read and write; what one writes no other reads at that time, as the plan has placed them.
struct Memory<'a> {
    program: &'a Program,
    plan: &'a Plan,
    rows: usize,
    memory: *mut f32,
    outputs: *mut f32,
    delta: *mut f32,
}

// SAFETY: whoever reads or writes says in `read` and `write` that nobody else does the other.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    fn at(&self, what: What, buffer: usize, piece: &Piece) -> (*mut f32, usize) {
        let rows = &piece.rows;
        let width = match what {
            _ if piece.flat => 1,
            What::Before => self.program.before[buffer],
            What::Value | What::Delta => self.program.widths[buffer],
        };
        let last = buffer + 1 == self.program.widths.len();
        let start = match what {
            What::Value if last => self.outputs,
            What::Delta if last => self.delta,
            // SAFETY: `Program::forward_whole` checks that the memory is long enough.
            _ => unsafe { self.memory.add(self.plan.place(what, buffer) * self.rows) },
        };
        // SAFETY: the same.
        let start = unsafe { start.add(rows.start * width) };
        (start, rows.len() * width)
    }

    /// # Safety
    /// Nobody writes these numbers meanwhile.
    unsafe fn read(&self, what: What, buffer: usize, piece: &Piece) -> &'a [f32] {
        let (start, length) = self.at(what, buffer, piece);
        // SAFETY: they lie within the memory, and the caller says the rest.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    /// # Safety
    /// Nobody else reads or writes these numbers meanwhile.
    #[allow(clippy::mut_from_ref)]
    unsafe fn write(&self, what: What, buffer: usize, piece: &Piece) -> &'a mut [f32] {
        let (start, length) = self.at(what, buffer, piece);
        // SAFETY: they lie within the memory, and the caller says the rest.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }
}

/// Numbers that a thread should have to do at least.
const SHARE: usize = 1 << 14;

/// What a thread takes of a pass.
struct Piece {
    rows: Range<usize>,
    /// Whether each number counts as a row.
    flat: bool,
}

impl Piece {
    fn whole(rows: usize) -> Self {
        Self {
            rows: 0..rows,
            flat: false,
        }
    }

    /// Those of a pass over so many rows: a function of the problem alone.
    fn all(instruction: &Instruction, rows: usize) -> Vec<Self> {
        let width = instruction.width;
        let flat = match &instruction.pass {
            // Its product is shared instead.
            Pass::Dense(_) => return vec![Self::whole(rows)],
            Pass::Element(_, spreads) => {
                let mut each = spreads.iter().zip(&instruction.operands);
                each.all(|(s, o)| match o.source {
                    Source::Buffer(_) | Source::Input => *s == Spread::Same,
                    _ => *s == Spread::One,
                })
            }
            _ => false,
        };
        let (rows, width) = match flat {
            true => (rows * width, 1),
            false => (rows, width),
        };
        let count = (rows * width / SHARE).clamp(1, rows.clamp(1, 64));
        let at = |k: usize| k * rows / count;
        let each = (0..count).map(|k| Self {
            rows: at(k)..at(k + 1),
            flat,
        });
        each.collect()
    }
}

/// Operands of some rows; those that backward passes do not read are made of `unread`, which is long enough, where that is given.
fn views<'a>(
    instruction: &Instruction,
    given: &Given<'a>,
    inputs: usize,
    piece: &Piece,
    unread: Option<&'a [f32]>,
    buffer: impl Fn(usize) -> &'a [f32],
) -> Views<'a> {
    let each = instruction.operands.iter().enumerate();
    let each = each.map(|(which, o): (usize, &Operand)| {
        let is_buffer = matches!(o.source, Source::Buffer(_));
        match unread.filter(|_| is_buffer && !instruction.pass.reads(which)) {
            Some(data) => View {
                data,
                stride: o.width,
                width: o.width,
            },
            None => {
                let mut view = given.view(o, &buffer);
                if o.source == Source::Input {
                    let inputs = if piece.flat { 1 } else { inputs };
                    view.data = &view.data[piece.rows.start * inputs..piece.rows.end * inputs];
                }
                view
            }
        }
    });
    each.collect()
}

impl Program {
    fn memory<'a>(&'a self, plan: &'a Plan, w: &mut Whole) -> Memory<'a> {
        let width = self.widths.last().copied().unwrap_or(0);
        assert!(
            w.memory.len() >= w.rows * plan.length() && w.outputs.len() >= w.rows * width,
            "memory of a tile"
        );
        Memory {
            program: self,
            plan,
            rows: w.rows,
            memory: w.memory.as_mut_ptr(),
            outputs: w.outputs.as_mut_ptr(),
            delta: match &mut *w.delta {
                [] => w.outputs.as_mut_ptr(),
                delta => delta.as_mut_ptr(),
            },
        }
    }

    /// Compute the outputs.
    pub fn forward_whole(&self, plan: &Plan, w: &mut Whole, team: &Team) {
        let memory = self.memory(plan, w);
        let given = Given {
            inputs: w.inputs,
            ..self.given(w.parameters, w.shared)
        };
        for step in &plan.steps[..plan.loss] {
            if let Step::Forward(k) = step {
                self.forward_step(*k, &given, &memory, team);
            }
        }
    }

    fn forward_step(&self, k: usize, given: &Given, memory: &Memory, team: &Team) {
        let instruction = &self.rows[k];
        let inputs = given.inputs.len() / memory.rows.max(1);
        let mut pieces = Piece::all(instruction, memory.rows);
        let alone = pieces.len() == 1;
        team.for_each(&mut pieces, |piece| {
            // SAFETY: the plan has placed what is written beside what is read, and pieces have rows of their own.
            let (of, out, before) = unsafe {
                let buffer = |i| memory.read(What::Value, i, piece);
                (
                    views(instruction, given, inputs, piece, None, buffer),
                    memory.write(What::Value, instruction.out, piece),
                    memory.write(What::Before, instruction.out, piece),
                )
            };
            let (rows, team) = (piece.rows.len(), alone.then_some(team));
            instruction.pass.forward(rows, &of, out, before, team);
        });
    }

    /// After [`Program::forward_whole`]: add the gradient of `Σ outputs·delta` to `grad`.
    pub fn backward_whole(&self, plan: &Plan, w: &mut Whole, grad: &mut [f32], team: &Team) {
        let width = self.widths.last().copied().unwrap_or(0);
        let apart = w.delta.len() >= w.rows * width;
        assert!(
            apart || w.delta.is_empty() && plan.replaces(),
            "gradient of the outputs"
        );
        let memory = self.memory(plan, w);
        let given = Given {
            inputs: w.inputs,
            ..self.given(w.parameters, w.shared)
        };
        let inputs = given.inputs.len() / memory.rows.max(1);
        let all = Piece::whole(memory.rows);
        let mut common = vec![0.0; self.shared_length];
        for step in &plan.steps[plan.loss..] {
            let k = match step {
                Step::Forward(k) => {
                    self.forward_step(*k, &given, &memory, team);
                    continue;
                }
                Step::Backward(k) => *k,
            };
            let instruction = &self.rows[k];
            let mut pieces = Piece::all(instruction, memory.rows);
            let alone = pieces.len() == 1;
            team.for_each(&mut pieces, |piece| {
                let team = alone.then_some(team);
                // SAFETY: as for `forward_step`; targets are taken one by one.
                unsafe { self.backward_piece(instruction, &given, inputs, &memory, piece, team) };
            });
            // SAFETY: nothing is written but gradients of parameters.
            let numbers = |what, i| unsafe { memory.read(what, i, &all) };
            let delta = numbers(What::Delta, instruction.out);
            let of = views(instruction, &given, inputs, &all, Some(delta), |i| {
                numbers(What::Value, i)
            });
            let y = match instruction.pass.reads_result() {
                true => numbers(What::Value, instruction.out),
                false => delta,
            };
            let kept = |_| Kept {
                of: of.clone(),
                y,
                before: numbers(What::Before, instruction.out),
                delta,
            };
            self.add_gradient(k..k + 1, memory.rows, &kept, [grad, &mut common], team);
        }
        self.add_gradient_of_shared(&given, w.shared, common, grad);
    }

    /// # Safety
    /// Nobody else writes what belongs to this piece.
    unsafe fn backward_piece(
        &self,
        instruction: &Instruction,
        given: &Given,
        inputs: usize,
        memory: &Memory,
        piece: &Piece,
        team: Option<&Team>,
    ) {
        let (pass, out) = (&instruction.pass, instruction.out);
        // SAFETY: the plan has placed what is written beside what is read; `delta` is written only before it is read.
        let (y, before, delta) = unsafe {
            let before = memory.read(What::Before, out, piece);
            let delta = memory.write(What::Delta, out, piece);
            let y = match pass.reads_result() {
                true => memory.read(What::Value, out, piece),
                false => &[],
            };
            pass.prepare(y, before, delta);
            (y, before, &*delta)
        };
        let y = if pass.reads_result() { y } else { delta };
        let of = views(instruction, given, inputs, piece, Some(delta), |i| {
            // SAFETY: the same.
            unsafe { memory.read(What::Value, i, piece) }
        });
        // SAFETY: one is written at a time.
        let target = &mut |i: usize, add: &mut dyn FnMut(&mut [f32])| unsafe {
            add(memory.write(What::Delta, i, piece))
        };
        instruction.backward(piece.rows.len(), &of, [y, before, delta], target, team);
    }
}
