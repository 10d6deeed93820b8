//! A compiled graph: passes over a block of rows, forward and backward, and the gradient of the parameters over a tile.
//!
//! Passes that no row changes (`shared`) are done once per call. What a row changes is kept in buffers that the caller has
//! allocated: `[rows, width]` for every value, and another for the gradient with respect to it. Gradients of what rows share
//! are summed over the rows of a whole tile, in their order, so that no number depends on how threads share the rows.

use super::pass::{Dense, Pass};
use super::view::View;
use crate::elementwise::Activation;
use crate::gemm_baseline::Product;
use crate::thread_pool::Team;
use std::ops::Range;

/// Where numbers are.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The inputs of the rows.
    Input,
    /// In the vector of parameters.
    Parameter(Range<usize>),
    /// Among the constants.
    Constant(Range<usize>),
    /// Among the numbers that no row changes.
    Shared(Range<usize>),
    /// In a buffer of the rows.
    Buffer(usize),
}

#[derive(Debug, Clone)]
pub struct Operand {
    pub source: Source,
    /// Numbers per row.
    pub width: usize,
    /// Whether there is a gradient with respect to it.
    pub active: bool,
    /// Whether this is the first gradient of its buffer.
    pub first: bool,
}

#[derive(Debug, Clone)]
pub struct Instruction {
    pub pass: Pass,
    pub operands: Vec<Operand>,
    /// The number of its buffer, or where its result begins among the shared numbers.
    pub out: usize,
    pub width: usize,
    /// Whether there is a gradient with respect to the result.
    pub active: bool,
}

/// A compiled graph.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(super) constants: Vec<f32>,
    pub(super) shared: Vec<Instruction>,
    pub(super) shared_length: usize,
    pub(super) rows: Vec<Instruction>,
    /// Numbers per row of each buffer; the last has the outputs.
    pub(super) widths: Vec<usize>,
    /// Numbers per row that passes keep beside their results: inputs of activations, log-sums of attention.
    pub(super) before: Vec<usize>,
    /// Whether a buffer has a gradient.
    pub(super) active: Vec<bool>,
}

/// A fully connected layer of a program that is nothing but such.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Components of its input and of its output.
    pub fan: (usize, usize),
    /// Where W is in the parameters.
    pub weight: Range<usize>,
    /// Whether W is stored `[out, in]`.
    pub transposed: bool,
    /// Where b is; empty without.
    pub bias: Range<usize>,
    /// f.
    pub activation: Activation,
}

/// What all passes read.
pub(super) struct Given<'a> {
    pub inputs: &'a [f32],
    pub parameters: &'a [f32],
    pub constants: &'a [f32],
    pub shared: &'a [f32],
}

impl<'a> Given<'a> {
    /// The numbers of an operand of some rows; `buffers` are those of the rows.
    pub fn view(&self, o: &Operand, buffer: impl Fn(usize) -> &'a [f32]) -> View<'a> {
        let width = o.width;
        let (data, stride) = match &o.source {
            Source::Input => (self.inputs, width),
            Source::Buffer(i) => (buffer(*i), width),
            Source::Parameter(r) => (&self.parameters[r.clone()], 0),
            Source::Constant(r) => (&self.constants[r.clone()], 0),
            Source::Shared(r) => (&self.shared[r.clone()], 0),
        };
        View {
            data,
            stride,
            width,
        }
    }
}

/// No pass has more operands than this, but for concatenations.
pub(super) type Views<'a> = Vec<View<'a>>;

impl Program {
    /// Numbers per row of the buffers: values, inputs of activations, gradients.
    pub fn widths(&self) -> [Vec<usize>; 3] {
        let last = self.widths.len().saturating_sub(1);
        let deltas = self.widths.iter().zip(&self.active).enumerate();
        let deltas = deltas.map(|(i, (w, active))| if *active || i == last { *w } else { 0 });
        [self.widths.clone(), self.before.clone(), deltas.collect()]
    }

    /// Passes that are done per row, and those that are done once.
    pub fn passes(&self) -> (usize, usize) {
        (self.rows.len(), self.shared.len())
    }

    /// Its layers, if it is nothing but fully connected layers, each with weights of its own.
    pub fn layers(&self) -> Option<Vec<Layer>> {
        if !self.shared.is_empty() || self.rows.is_empty() {
            return None;
        }
        let mut seen: Vec<Range<usize>> = Vec::new();
        let mut layers = Vec::new();
        for (i, instruction) in self.rows.iter().enumerate() {
            let Pass::Dense(d) = &instruction.pass else {
                return None;
            };
            let below = match i {
                0 => Source::Input,
                _ => Source::Buffer(i - 1),
            };
            let parameter = |at: usize| match instruction.operands.get(at).map(|o| &o.source) {
                Some(Source::Parameter(r)) => Some(r.clone()),
                _ => None,
            };
            let weight = parameter(1)?;
            let bias = match instruction.operands.len() {
                2 => weight.end..weight.end,
                _ => parameter(2)?,
            };
            if d.per_row != 1 || instruction.operands[0].source != below {
                return None;
            }
            for range in [&weight, &bias] {
                if seen.contains(range) && !range.is_empty() {
                    return None;
                }
                seen.push(range.clone());
            }
            layers.push(Layer {
                fan: d.fan,
                weight,
                transposed: d.transposed,
                bias,
                activation: d.activation,
            });
        }
        Some(layers)
    }

    /// Fully connected layers, one after the other.
    pub fn of_layers(layers: &[Layer]) -> Self {
        let mut out = Self::default();
        for (i, l) in layers.iter().enumerate() {
            let operand = |source, width, active| Operand {
                source,
                width,
                active,
                first: active,
            };
            let below = match i {
                0 => operand(Source::Input, l.fan.0, false),
                _ => operand(Source::Buffer(i - 1), l.fan.0, true),
            };
            let parameter = |range: &Range<usize>| Operand {
                first: false,
                ..operand(Source::Parameter(range.clone()), range.len(), true)
            };
            let bias = (!l.bias.is_empty()).then(|| parameter(&l.bias));
            let dense = Dense {
                per_row: 1,
                fan: l.fan,
                transposed: l.transposed,
                activation: l.activation,
            };
            let pass = Pass::Dense(dense);
            out.before.push(pass.before(l.fan.1));
            out.rows.push(Instruction {
                pass,
                operands: [below, parameter(&l.weight)]
                    .into_iter()
                    .chain(bias)
                    .collect(),
                out: i,
                width: l.fan.1,
                active: true,
            });
            out.widths.push(l.fan.1);
            out.active.push(true);
        }
        out
    }

    /// Its matrix products, if there is one vector per row in each; for benchmarks.
    pub fn products(&self) -> Vec<Product> {
        let mut out = Vec::new();
        for instruction in &self.rows {
            let d = match &instruction.pass {
                Pass::Dense(d) if d.per_row == 1 => d,
                Pass::Dense(_) | Pass::Products { .. } | Pass::Convolve(_) => return Vec::new(),
                _ => continue,
            };
            let (k, n) = d.fan;
            let product = |shape, transposed, rows| Product {
                shape,
                transposed,
                rows,
            };
            out.push(product([1, n, k], [false, d.transposed], 0));
            out.push(product([n, k, 1], [true, false], 2));
            if instruction.operands[0].active {
                out.push(product([1, k, n], [false, !d.transposed], 0));
            }
        }
        out
    }

    pub(super) fn given<'a>(&'a self, parameters: &'a [f32], shared: &'a [f32]) -> Given<'a> {
        Given {
            inputs: &[],
            parameters,
            constants: &self.constants,
            shared,
        }
    }

    /// The numbers that no row changes.
    pub fn prepare(&self, parameters: &[f32]) -> Vec<f32> {
        let mut all = vec![0.0; self.shared_length];
        for instruction in &self.shared {
            let (below, out) = all.split_at_mut(instruction.out);
            let views = self.alone(instruction, &self.given(parameters, below));
            let out = &mut out[..instruction.width];
            // Layers are found among rows only, so nothing is kept of activations.
            instruction.pass.forward(1, &views, out, &mut [], None);
        }
        all
    }

    /// The operands of a pass that is done once: one row.
    pub(super) fn alone<'a>(&self, instruction: &Instruction, given: &Given<'a>) -> Views<'a> {
        let view = |o: &Operand| View {
            stride: o.width,
            ..given.view(o, |_| &[])
        };
        instruction.operands.iter().map(view).collect()
    }

    /// Compute the buffers of a block of rows.
    pub fn forward(
        &self,
        parameters: &[f32],
        shared: &[f32],
        rows: usize,
        inputs: &[f32],
        values: &mut [&mut [f32]],
        before: &mut [&mut [f32]],
    ) {
        let given = Given {
            inputs,
            ..self.given(parameters, shared)
        };
        for instruction in &self.rows {
            let (below, here) = values.split_at_mut(instruction.out);
            let view = |o: &Operand| given.view(o, |i| &*below[i]);
            let views: Views = instruction.operands.iter().map(view).collect();
            let before = &mut *before[instruction.out];
            instruction
                .pass
                .forward(rows, &views, here[0], before, None);
        }
    }

    /// From the gradient with respect to the outputs, in the last of `deltas`, compute those with respect to all buffers.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        parameters: &[f32],
        shared: &[f32],
        rows: usize,
        inputs: &[f32],
        values: &[&mut [f32]],
        before: &[&mut [f32]],
        deltas: &mut [&mut [f32]],
    ) {
        let given = Given {
            inputs,
            ..self.given(parameters, shared)
        };
        for instruction in self.rows.iter().rev().filter(|i| i.active) {
            let out = instruction.out;
            let (below, here) = deltas.split_at_mut(out);
            let (y, delta) = (&*values[out], &mut *here[0]);
            instruction.pass.prepare(y, &*before[out], delta);
            let view = |o: &Operand| given.view(o, |i| &*values[i]);
            let views: Views = instruction.operands.iter().map(view).collect();
            let numbers = [y, &*before[out], &*delta];
            instruction.backward(
                rows,
                &views,
                numbers,
                &mut |i, add| add(&mut *below[i]),
                None,
            );
        }
    }
}

/// Shows the gradient with respect to a buffer to who adds to it.
type Targets<'a> = dyn FnMut(usize, &mut dyn FnMut(&mut [f32])) + 'a;

impl Instruction {
    /// Add the gradient of some rows to those of the buffers among the operands, from the result, what was kept beside it, and the gradient with
    /// respect to it.
    pub(super) fn backward(
        &self,
        rows: usize,
        of: &[View],
        [y, before, delta]: [&[f32]; 3],
        target: &mut Targets,
        team: Option<&Team>,
    ) {
        let active = |o: &Operand| match o.source {
            Source::Buffer(i) if o.active => Some(i),
            _ => None,
        };
        if let Pass::Attention(a) = &self.pass {
            let to: Vec<_> = self.operands.iter().map(active).collect();
            for (o, to) in self.operands.iter().zip(&to) {
                if let (Some(i), true) = (to, o.first) {
                    target(*i, &mut |t| t[..rows * o.width].fill(0.0));
                }
            }
            let wanted = [0, 1, 2].map(|i: usize| to[i].is_some());
            let width = [0, 1, 2].map(|i: usize| self.operands[i].width);
            return a.backward_rows(rows, of, before, delta, wanted, &mut |i, r, add| {
                if let Some(buffer) = to[i] {
                    target(buffer, &mut |t| add(&mut t[r * width[i]..][..width[i]]));
                }
            });
        }
        for (which, o) in self.operands.iter().enumerate() {
            if let Some(i) = active(o) {
                let (stride, first) = (o.width, o.first);
                target(i, &mut |target| {
                    self.pass.backward(
                        which, rows, of, y, before, delta, target, stride, first, team,
                    )
                });
            }
        }
    }
}
