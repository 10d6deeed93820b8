//! Attention: the heads of queries, keys and values side by side, products, and the way back to where they lie.

use super::super::attention::Attention;
use super::back::Target;
use super::form::Matrices;
use super::passes::{Passes, Result, int, long};
use super::products::Batch;
use super::{Argument, At, View};

/// Scores that are computed at a time.
const SCORES: usize = 1 << 26;

/// Some rows of one attention, and the heads of its operands side by side.
struct Heads {
    first: usize,
    rows: usize,
    /// Queries, keys, values.
    of: [At; 3],
    /// The weights of values.
    weights: At,
}

impl Passes<'_> {
    /// Rows whose scores are computed together, and their number.
    fn groups(&self, a: &Attention, rows: usize) -> Vec<(usize, usize)> {
        let [t, s] = a.positions;
        let one = self.chains * a.heads * t * s;
        let most = (SCORES / one.max(1)).clamp(1, rows.max(1));
        let starts = (0..rows).step_by(most);
        starts.map(|at| (at, most.min(rows - at))).collect()
    }

    /// The vectors of one of queries, keys, values, results, once for each head of the queries.
    fn take_heads(&mut self, a: &Attention, which: usize, from: View, rows: usize) -> At {
        let ((positions, width), place) = (a.size(which), a.places[which]);
        let each = each(a, which);
        let count = rows * a.heads * positions * width;
        let to = self.scratch(self.chains * count);
        let mut arguments = vec![Argument::At(from.at), long(from.chain), long(from.row)];
        arguments.extend([self.chains, rows, a.heads, each, positions, width].map(int));
        arguments.extend([place.start, place.head, place.step].map(long));
        arguments.push(Argument::At(to));
        self.launch("take_heads", count, arguments);
        to
    }

    /// A product per head.
    fn per_head(
        &mut self,
        a: &Attention,
        rows: usize,
        [m, n, k]: [usize; 3],
        sides: [(At, bool); 2],
        out: At,
    ) {
        let sizes = [m * k, k * n, m * n].map(Matrices::Even);
        let side = |(at, transposed): (At, bool), i: usize, size: usize| Batch {
            at,
            chain: rows * a.heads * size,
            row: a.heads * size,
            within: &sizes[i],
            transposed,
        };
        let sides = [
            side(sides[0], 0, m * k),
            side(sides[1], 1, k * n),
            side((out, false), 2, m * n),
        ];
        self.batch([m, n, k], (rows, a.heads), sides, false);
    }

    fn heads(&mut self, a: &Attention, of: &[View], (first, rows): (usize, usize)) -> Heads {
        let ([t, s], [d, _]) = (a.positions, a.widths);
        let of = [0, 1, 2].map(|which: usize| {
            let mut view = of[which];
            view.at.offset += first * view.row;
            self.take_heads(a, which, view, rows)
        });
        let weights = self.scratch(self.chains * rows * a.heads * t * s);
        self.per_head(a, rows, [t, s, d], [(of[0], false), (of[1], true)], weights);
        let seen = if a.causal { s - t + 1 } else { s };
        let mut arguments = vec![Argument::At(weights)];
        arguments.extend([self.chains, rows * a.heads, t, s, seen].map(int));
        arguments.push(Argument::Float(a.scale));
        self.launch("attention_weights", rows * a.heads * t, arguments);
        Heads {
            first,
            rows,
            of,
            weights,
        }
    }

    /// Weights times values.
    pub(super) fn attention(&mut self, a: &Attention, of: &[View], to: Result) {
        let ([t, s], [_, e]) = (a.positions, a.widths);
        for group in self.groups(a, to.rows) {
            let h = self.heads(a, of, group);
            let read = self.scratch(self.chains * h.rows * a.heads * t * e);
            let sides = [(h.weights, false), (h.of[2], false)];
            self.per_head(a, h.rows, [t, e, s], sides, read);
            let target = Target {
                at: to.y.plus(h.first * to.width),
                chain: to.chain,
                row: to.width,
                rows: h.rows,
                width: to.width,
                add: false,
            };
            self.add_heads(a, 3, read, h.rows, target);
            self.done();
        }
    }

    /// Put what each head has to where it lies.
    fn add_heads(&mut self, a: &Attention, which: usize, from: At, rows: usize, to: Target) {
        let ((positions, width), place) = (a.size(which), a.places[which]);
        let each = each(a, which);
        let heads = a.heads / each;
        let mut arguments = vec![Argument::At(from)];
        arguments.extend([self.chains, rows, heads, each, positions, width].map(int));
        arguments.extend([place.start, place.head, place.step].map(long));
        arguments.extend([
            Argument::At(to.at),
            long(to.chain),
            long(to.row),
            Argument::Int(to.add.into()),
        ]);
        self.launch("add_heads", rows * heads * positions * width, arguments);
    }

    /// The gradients with respect to queries, keys and values, which may lie in one buffer.
    pub(super) fn attention_back(
        &mut self,
        a: &Attention,
        of: &[View],
        d: View,
        rows: usize,
        targets: [Option<Target>; 3],
    ) {
        let ([t, s], [width, e]) = (a.positions, a.widths);
        for target in targets.into_iter().flatten() {
            self.nothing(target);
        }
        for group in self.groups(a, rows) {
            let h = self.heads(a, of, group);
            let mut delta = d;
            delta.at.offset += h.first * d.row;
            let read = self.take_heads(a, 3, delta, h.rows);
            let slopes = self.scratch(self.chains * h.rows * a.heads * t * s);
            self.per_head(
                a,
                h.rows,
                [t, s, e],
                [(read, false), (h.of[2], true)],
                slopes,
            );
            let mut arguments = vec![Argument::At(h.weights), Argument::At(slopes)];
            arguments.extend([self.chains, h.rows * a.heads, t, s].map(int));
            arguments.push(Argument::Float(a.scale));
            self.launch("attention_slopes", h.rows * a.heads * t, arguments);
            let products = [
                ([t, width, s], [(slopes, false), (h.of[1], false)]),
                ([s, width, t], [(slopes, true), (h.of[0], false)]),
                ([s, e, t], [(h.weights, true), (read, false)]),
            ];
            for (which, (shape, sides)) in products.into_iter().enumerate() {
                let Some(target) = targets[which] else {
                    continue;
                };
                let out = self.scratch(self.chains * h.rows * a.heads * shape[0] * shape[1]);
                self.per_head(a, h.rows, shape, sides, out);
                let target = Target {
                    at: target.at.plus(h.first * target.row),
                    add: true,
                    ..target
                };
                self.add_heads(a, which, out, h.rows, target);
            }
            self.done();
        }
    }
}

/// Heads of the queries that a head of these serves.
fn each(a: &Attention, which: usize) -> usize {
    match which {
        1 | 2 => a.heads / a.groups,
        _ => 1,
    }
}
