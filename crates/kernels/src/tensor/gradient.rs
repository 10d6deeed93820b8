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
        {
            let [own, made] = [self.uses(false), self.uses(true)];
            // Products in parts, and then what is added to them.
            for parts in [true, false] {
                let mut tasks = Vec::new();
                deal(&own, &mut *grad, |target, out| {
                    self.tasks(target, out, rows, parts, &mut tasks)
                });
                deal(&made, &mut common, |target, out| {
                    self.tasks(target, out, rows, parts, &mut tasks)
                });
                team.for_each(&mut tasks, |task| {
                    self.run(task, &given, rows, [values, before, deltas])
                });
            }
        }
        for instruction in self.shared.iter().rev().filter(|i| i.active) {
            let (below, here) = common.split_at_mut(instruction.out);
            let delta = &here[..instruction.width];
            let y = &shared[instruction.out..][..instruction.width];
            let views = self.alone(instruction, &given);
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
    fn uses(&self, shared: bool) -> Vec<Target> {
        let mut out: Vec<Target> = Vec::new();
        for (k, instruction) in self.rows.iter().enumerate() {
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
                // Enough parts for a few threads, each with enough to do: the count must not depend on the threads.
                let count = ((out.len() * d.per_row * rows) >> 23).clamp(1, 16);
                let parts = d.parts(out, count).into_iter();
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

    fn run(
        &self,
        task: &mut Task,
        given: &Given,
        rows: usize,
        [values, before, deltas]: [&[Vec<f32>]; 3],
    ) {
        let views = |i: &Instruction| -> Views {
            let view = |o: &Operand| given.view(o, |i| &values[i]);
            i.operands.iter().map(view).collect()
        };
        match task {
            Task::Part(k, part) => {
                let instruction = &self.rows[*k];
                if let Pass::Dense(d) = &instruction.pass {
                    let delta = &deltas[instruction.out];
                    d.add_to_part(part, rows, views(instruction)[0].data, delta);
                }
            }
            Task::Whole(uses, out) => {
                for (k, which) in uses {
                    let instruction = &self.rows[*k];
                    let count = rows * instruction.width;
                    let y = &values[instruction.out][..count];
                    let delta = &deltas[instruction.out][..count];
                    let views = views(instruction);
                    let before = &before[instruction.out];
                    instruction
                        .pass
                        .backward(*which, rows, &views, y, before, delta, out, 0, false, None);
                }
            }
        }
    }
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
