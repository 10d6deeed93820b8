//! Which passes are done when, and where their numbers are meanwhile: memory of a step that is known before it.
//!
//! Numbers that are not needed at the same time share a place. A program that is cut into segments keeps what goes from one to the next, and
//! computes the rest again before it goes back through a segment.

use super::program::{Program, Source};
use std::ops::Range;

/// A pass over all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Forward(usize),
    Backward(usize),
}

/// What the steps of a plan read and write of the buffer of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// What came out.
    Value,
    /// What is kept beside it.
    Before,
    /// The gradient with respect to it.
    Delta,
}

/// The steps of a program over a tile, and the places of their numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) steps: Vec<Step>,
    /// How many of them come before the loss.
    pub(super) loss: usize,
    /// Where the numbers of each buffer begin, per row, by [`What`].
    places: [Vec<usize>; 3],
    length: usize,
    kept: usize,
    /// Whether the gradient of the outputs may take their place.
    replaces: bool,
}

/// Times at which something is needed, first and last.
type Span = (usize, usize);

impl Plan {
    /// Numbers per row that are kept at most, without inputs and outputs.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Numbers per row that backward passes need of forward passes, without inputs and outputs.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Whether no backward pass reads the outputs, so that their gradient may be written in their place.
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    pub(super) fn place(&self, what: What, buffer: usize) -> usize {
        self.places[what as usize][buffer]
    }

    /// Of a program that ends in segments at these passes.
    fn new(program: &Program, gradient: bool, ends: &[usize]) -> Self {
        let passes = program.rows.len();
        let mut steps: Vec<_> = (0..passes).map(Step::Forward).collect();
        if gradient {
            let begins = std::iter::once(0).chain(ends.iter().copied());
            let segments: Vec<Range<_>> = begins.zip(ends).map(|(a, z)| a..*z).collect();
            for segment in segments.into_iter().rev() {
                if segment.end < passes {
                    steps.extend(segment.clone().map(Step::Forward));
                }
                let active = segment.rev().filter(|k| program.rows[*k].active);
                steps.extend(active.map(Step::Backward));
            }
        }
        let (kept, spans) = needed(program, &mut steps, passes);
        let (places, length) = places(program, &spans);
        Self {
            loss: passes,
            steps,
            places,
            length,
            kept,
            replaces: program.rows.last().is_none_or(|i| !i.pass.reads_result()),
        }
    }
}

/// Go back through the steps, from what is read to where it is written; computing again what nobody reads is taken out. How many numbers the
/// backward passes need at the loss, and when each buffer is needed.
fn needed(program: &Program, steps: &mut Vec<Step>, loss: usize) -> (usize, [Vec<Vec<Span>>; 3]) {
    let buffers = program.widths.len();
    let mut spans = [(); 3].map(|()| vec![Vec::<Span>::new(); buffers]);
    let mut ends = [(); 3].map(|()| vec![None::<usize>; buffers]);
    let mut idle = Vec::new();
    let mut close = |ends: &mut [Vec<Option<usize>>; 3], what: What, buffer: usize, t: usize| {
        let end = ends[what as usize][buffer].take().unwrap_or(t);
        spans[what as usize][buffer].push((t, end));
    };
    for (t, step) in steps.iter().enumerate().rev() {
        let (Step::Forward(k) | Step::Backward(k)) = step;
        let instruction = &program.rows[*k];
        let out = instruction.out;
        let of = instruction.operands.iter().enumerate().rev();
        let of = of.filter_map(|(which, o)| match o.source {
            Source::Buffer(i) => Some((which, i, o)),
            _ => None,
        });
        match step {
            Step::Forward(_) => {
                let read = [What::Value, What::Before].map(|w| ends[w as usize][out].is_some());
                if t >= loss && read == [false; 2] {
                    idle.push(t);
                    continue;
                }
                close(&mut ends, What::Value, out, t);
                close(&mut ends, What::Before, out, t);
                of.for_each(|(_, i, _)| {
                    ends[What::Value as usize][i].get_or_insert(t);
                });
            }
            Step::Backward(_) => {
                ends[What::Delta as usize][out].get_or_insert(t);
                ends[What::Before as usize][out].get_or_insert(t);
                if instruction.pass.reads_result() {
                    ends[What::Value as usize][out].get_or_insert(t);
                }
                for (which, i, o) in of {
                    if instruction.pass.reads(which) {
                        ends[What::Value as usize][i].get_or_insert(t);
                    }
                    if o.active && o.first {
                        close(&mut ends, What::Delta, i, t);
                    } else if o.active {
                        ends[What::Delta as usize][i].get_or_insert(t);
                    }
                }
            }
        }
    }
    let widths = [&program.widths, &program.before];
    let last = buffers.saturating_sub(1);
    let kept = spans.iter().zip(widths).map(|(spans, widths)| {
        let over = |s: &&Vec<Span>| s.iter().any(|(a, z)| *a < loss && *z >= loss);
        let each = spans.iter().zip(widths).enumerate();
        each.filter(|(i, (s, _))| *i != last && over(s))
            .map(|(_, (_, w))| w)
            .sum::<usize>()
    });
    let kept = kept.sum();
    let mut t = 0;
    steps.retain(|_| {
        t += 1;
        !idle.contains(&(t - 1))
    });
    (kept, spans)
}

/// The largest first, each where it fits beside those that are needed at the same time.
fn places(program: &Program, spans: &[Vec<Vec<Span>>; 3]) -> ([Vec<usize>; 3], usize) {
    let last = program.widths.len().saturating_sub(1);
    let widths = [&program.widths, &program.before, &program.widths];
    let mut out = widths.map(|w| vec![0; w.len()]);
    let mut items = Vec::new();
    for (what, (spans, widths)) in spans.iter().zip(widths).enumerate() {
        for (i, (spans, width)) in spans.iter().zip(widths).enumerate() {
            // Outputs and their gradient belong to the loss, too: they are kept elsewhere.
            let outside = i == last && what != What::Before as usize;
            if *width > 0 && !spans.is_empty() && !outside {
                items.push((*width, what, i, spans));
            }
        }
    }
    items.sort_by_key(|(width, what, i, _)| (std::cmp::Reverse(*width), *what, *i));
    let together = |a: &[Span], b: &[Span]| {
        let overlap = |x: &Span, y: &Span| x.0 <= y.1 && y.0 <= x.1;
        a.iter().any(|x| b.iter().any(|y| overlap(x, y)))
    };
    let mut placed: Vec<(Range<usize>, &[Span])> = Vec::new();
    let mut length = 0;
    for (width, what, i, spans) in items {
        let beside = placed.iter().filter(|(_, other)| together(spans, other));
        let mut taken: Vec<_> = beside.map(|(at, _)| at.clone()).collect();
        taken.sort_by_key(|at| at.start);
        let free = taken.iter().fold((0, false), |(at, found), next| {
            match found || at + width <= next.start {
                true => (at, true),
                false => (at.max(next.end), false),
            }
        });
        let at = free.0..free.0 + width;
        length = length.max(at.end);
        out[what][i] = at.start;
        placed.push((at, spans));
    }
    (out, length)
}

impl Program {
    /// The steps over a tile, with or without backward passes. With `checkpoint` it is cut into as many segments as make it smallest.
    pub fn plan(&self, gradient: bool, checkpoint: bool) -> Plan {
        let passes = self.rows.len();
        let whole = Plan::new(self, gradient, &[passes]);
        if !(gradient && checkpoint) {
            return whole;
        }
        let kept = whole.kept;
        let most = (2.0 * (passes as f64).sqrt()) as usize;
        let plans = (2..=most).map(|count| Plan::new(self, gradient, &self.cuts(count)));
        let all: Vec<_> = std::iter::once(whole).chain(plans).collect();
        let least = all.iter().map(Plan::length).min().unwrap_or(0);
        // More segments would save next to nothing.
        let enough = |p: &Plan| p.length as f64 <= 1.05 * least as f64;
        let mut found = all.into_iter().find(enough).expect("one is the least");
        found.kept = kept;
        found
    }

    /// Where segments of about as many numbers end: passes between which the fewest numbers go.
    fn cuts(&self, count: usize) -> Vec<usize> {
        let passes = self.rows.len();
        let mut last_use = vec![0; self.widths.len()];
        for (k, instruction) in self.rows.iter().enumerate() {
            for o in &instruction.operands {
                if let Source::Buffer(i) = o.source {
                    last_use[i] = k;
                }
            }
        }
        let crossing = |cut: usize| -> usize {
            let before = self.rows[..cut].iter().map(|i| i.out);
            let over = before.filter(|i| last_use[*i] >= cut);
            over.map(|i| self.widths[i]).sum()
        };
        let sizes = self
            .rows
            .iter()
            .map(|i| self.widths[i.out] + self.before[i.out]);
        let sums: Vec<usize> = sizes
            .scan(0, |sum, n| {
                *sum += n;
                Some(*sum)
            })
            .collect();
        let all = sums.last().copied().unwrap_or(0) as f64;
        let at = |part: f64| sums.partition_point(|s| (*s as f64) < part * all);
        let mut ends: Vec<usize> = (1..count)
            .filter_map(|j| {
                let part = |x: f64| at((j as f64 + x) / count as f64);
                (part(-0.25).max(1)..=part(0.25).min(passes - 1)).min_by_key(|cut| crossing(*cut))
            })
            .collect();
        ends.push(passes);
        ends.dedup();
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::super::{Binary, Tensor, Unary};
    use super::Step;

    /// A network of many blocks keeps what its backward passes need and little else, and much less if it computes blocks again.
    #[test]
    fn deep_networks_keep_little_more_than_they_need() {
        let shapes: Vec<&[usize]> = [&[12, 48][..], &[48], &[48, 12], &[12]].repeat(8);
        let t = check("blocks", &shapes, 12, &|p, x| {
            let mut h = x.clone();
            for block in p.chunks(4) {
                let [up, a, down, b] = block else {
                    unreachable!("four to a block")
                };
                let small = Tensor::number(0.1, x)?;
                let inner = h
                    .unary(Unary::Sin)?
                    .binary(Binary::Multiply, &small)?
                    .matmul(up)?
                    .binary(Binary::Add, a)?;
                let inner = inner.unary(Unary::GeluTanh)?.matmul(down)?;
                let inner = inner
                    .binary(Binary::Add, b)?
                    .binary(Binary::Multiply, &small)?;
                h = h.binary(Binary::Add, &inner)?;
            }
            Ok::<Tensor, anyhow::Error>(h)
        });
        let [whole, alone, less] = [(true, false), (false, false), (true, true)]
            .map(|(gradient, checkpoint)| t.program.plan(gradient, checkpoint));
        let [values, before, deltas] = t.program.widths();
        let all: usize = [values, before, deltas].iter().flatten().sum();
        assert!(
            5 * whole.length() <= 6 * whole.kept() && 2 * whole.length() < all,
            "{} numbers, {} needed, {all} in all",
            whole.length(),
            whole.kept()
        );
        assert!(2 * less.length() < whole.length(), "{}", less.length());
        assert!(5 * alone.length() < whole.length(), "{}", alone.length());
        let recomputed = less.steps[less.loss..].iter();
        assert!(recomputed.filter(|s| matches!(s, Step::Forward(_))).count() > 10);
    }
}
