//! The gradient of what all rows share, summed over the rows of a tile: each number in one order, whoever adds it up.

use super::pass::Pass;
use super::program::{Given, Instruction, Operand, Program, Source, Views};
use crate::gemm::Part;
use crate::thread_pool::Team;
use std::ops::Range;

impl Program {
    /// Add the gradient of `Σ outputs·delta` over the rows of a tile to `grad`, after [`Program::backward`] of all its rows.
    #[allow(clippy::too_many_arguments)]
    pub fn gradient(
        &self,
        parameters: &[f32],
        shared: &[f32],
        rows: usize,
        inputs: &[f32],
        [values, before, deltas]: [&[Vec<f32>]; 3],
        grad: &mut [f32],
        team: &Team,
    ) {
        let given = Given {
            inputs,
            ..self.given(parameters, shared)
        };
        let mut common = vec![0.0; self.shared_length];
        let kept = |k: usize| {
            let instruction: &Instruction = &self.rows[k];
            let count = rows * instruction.width;
            let view = |o: &Operand| given.view(o, |i| &values[i]);
            Kept {
                of: instruction.operands.iter().map(view).collect(),
                y: &values[instruction.out][..count],
                before: &before[instruction.out],
                delta: &deltas[instruction.out][..count],
            }
        };
        let all = 0..self.rows.len();
        self.add_gradient(all, rows, &kept, [grad, &mut common], team);
        self.add_gradient_of_shared(&given, shared, common, grad);
    }

    /// What some passes add to the gradient of parameters, and to that of the shared numbers.
    pub(super) fn add_gradient<'k>(
        &self,
        passes: Range<usize>,
        rows: usize,
        kept: &(dyn Fn(usize) -> Kept<'k> + Sync),
        [grad, common]: [&mut [f32]; 2],
        team: &Team,
    ) {
        let [own, made] = [false, true].map(|shared| self.uses(passes.clone(), shared));
        // Products in parts, and then what is added to them.
        for parts in [true, false] {
            let mut tasks = Vec::new();
            deal(&own, &mut *grad, |target, out| {
                self.tasks(target, out, rows, parts, &mut tasks)
            });
            deal(&made, &mut *common, |target, out| {
                self.tasks(target, out, rows, parts, &mut tasks)
            });
            team.for_each(&mut tasks, |task| self.run(task, rows, kept));
        }
    }

    /// From the gradient of the shared numbers, that of the parameters that they were made of.
    pub(super) fn add_gradient_of_shared(
        &self,
        given: &Given,
        shared: &[f32],
        mut common: Vec<f32>,
        grad: &mut [f32],
    ) {
        for instruction in self.shared.iter().rev().filter(|i| i.active) {
            let (below, here) = common.split_at_mut(instruction.out);
            let delta = &here[..instruction.width];
            let y = &shared[instruction.out..][..instruction.width];
            let views = self.alone(instruction, given);
            for (which, o) in instruction.operands.iter().enumerate() {
                let target = match &o.source {
                    Source::Parameter(r) => &mut grad[r.clone()],
                    Source::Shared(r) => &mut below[r.clone()],
                    _ => continue,
                };
                if o.active {
                    instruction.pass.backward(
                        which,
                        1,
                        &views,
                        y,
                        &[],
                        delta,
                        target,
                        o.width,
                        false,
                        None,
                    );
                }
            }
        }
    }

    /// Where rows use shared numbers that have a gradient, by what they use: pass and operand.
    fn uses(&self, passes: Range<usize>, shared: bool) -> Vec<Target> {
        let mut out: Vec<Target> = Vec::new();
        // As plans go back through them.
        for k in passes.rev().filter(|k| self.rows[*k].active) {
            let instruction = &self.rows[k];
            for (which, o) in instruction
                .operands
                .iter()
                .enumerate()
                .filter(|o| o.1.active)
            {
                let range = match &o.source {
                    Source::Parameter(r) if !shared => r,
                    Source::Shared(r) if shared => r,
                    _ => continue,
                };
                match out.iter_mut().find(|t| t.range == *range) {
                    Some(target) => target.uses.push((k, which)),
                    None => out.push(Target {
                        range: range.clone(),
                        uses: vec![(k, which)],
                    }),
                }
            }
        }
        out.sort_by_key(|t| t.range.start);
        out
    }

    /// The work for one target: its only product with vectors in `parts`, or else all that is not such.
    fn tasks<'a>(
        &self,
        target: &Target,
        out: &'a mut [f32],
        rows: usize,
        parts: bool,
        to: &mut Vec<Task<'a>>,
    ) {
        let dense = |(k, which): &&(usize, usize)| match &self.rows[*k].pass {
            Pass::Dense(d) if *which == 1 => Some((*k, d)),
            _ => None,
        };
        let mut found = target.uses.iter().filter_map(|u| dense(&u));
        let only = found.next().filter(|_| found.next().is_none());
        match (only, parts) {
            (Some((k, d)), true) => {
                let parts = d.parts(out, d.shares(rows)).into_iter();
                to.extend(parts.map(|part| Task::Part(k, part)));
            }
            (None, true) => {}
            (only, false) => {
                let rest = target.uses.iter();
                let rest = rest.filter(|u| !matches!(only, Some((k, _)) if u.0 == k && u.1 == 1));
                let rest: Vec<_> = rest.copied().collect();
                if !rest.is_empty() {
                    to.push(Task::Whole(rest, out));
                }
            }
        }
    }

    fn run<'k>(&self, task: &mut Task, rows: usize, kept: &(dyn Fn(usize) -> Kept<'k> + Sync)) {
        match task {
            Task::Part(k, part) => {
                if let Pass::Dense(d) = &self.rows[*k].pass {
                    let kept = kept(*k);
                    d.add_to_part(part, rows, kept.of[0].data, kept.delta);
                }
            }
            Task::Whole(uses, out) => {
                for (k, which) in uses {
                    let (
                        Kept {
                            of,
                            y,
                            before,
                            delta,
                        },
                        out,
                    ) = (kept(*k), &mut **out);
                    let pass = &self.rows[*k].pass;
                    pass.backward(*which, rows, &of, y, before, delta, out, 0, false, None);
                }
            }
        }
    }
}

/// What the backward pass of an instruction reads: operands, result, what was kept beside it, and the gradient with respect to it.
pub(super) struct Kept<'a> {
    pub of: Views<'a>,
    pub y: &'a [f32],
    pub before: &'a [f32],
    pub delta: &'a [f32],
}

/// Shared numbers, and who uses them.
struct Target {
    range: Range<usize>,
    uses: Vec<(usize, usize)>,
}

enum Task<'a> {
    /// All of a gradient, from these uses in their order.
    Whole(Vec<(usize, usize)>, &'a mut [f32]),
    /// A part of the gradient of the weights of that layer.
    Part(usize, Part<'a>),
}

/// Cut a vector into what each target is about.
fn deal<'a>(
    targets: &[Target],
    vector: &'a mut [f32],
    mut each: impl FnMut(&Target, &'a mut [f32]),
) {
    let mut rest = vector;
    let mut at = 0;
    for target in targets {
        let (_, after) = std::mem::take(&mut rest).split_at_mut(target.range.start - at);
        let (own, after) = after.split_at_mut(target.range.len());
        each(target, own);
        rest = after;
        at = target.range.end;
    }
}
