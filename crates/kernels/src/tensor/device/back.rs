//! The way back through each pass: from the gradient of a result to those of its operands.

use super::super::operation::Reduce;
use super::super::pass::Pass;
use super::super::program::{Instruction, Operand, Source};
use super::form::{Form, Gather, Repeated};
use super::passes::{Passes, Result, int, long};
use super::source::Users;
use super::{Argument, At, Place, Step, View};
use crate::elementwise::Activation;

/// Terms of a sum that one thread adds up, at least, where others could help.
const TERMS: usize = 32;
/// Sums that go on side by side, from which on no others need to help.
const SUMS: usize = 1 << 15;
/// Parts of a sum at most.
const PARTS: usize = 256;

/// A gradient with respect to an operand.
#[derive(Clone, Copy)]
pub struct Target {
    pub at: At,
    pub chain: usize,
    /// Numbers from row to row, if it has as many rows as the pass; otherwise it is summed over them.
    pub row: usize,
    pub rows: usize,
    pub width: usize,
    pub add: bool,
}

impl Passes<'_> {
    /// Where the gradient with respect to an operand goes, if it has one.
    fn target(&self, o: &Operand, rows: usize) -> Option<Target> {
        let width = o.width;
        let (place, offset, chain, row) = match &o.source {
            Source::Buffer(i) => (Place::Delta(*i), 0, rows * width, width),
            Source::Parameter(r) => (Place::Gradient, r.start, self.dim, 0),
            Source::Shared(r) => (Place::Common, r.start, self.all.program.shared_length, 0),
            Source::Input | Source::Constant(_) => return None,
        };
        o.active.then_some(Target {
            at: At { place, offset },
            chain,
            row,
            rows: if row > 0 { rows } else { 1 },
            width,
            add: !o.first,
        })
    }

    /// Pass the gradient of a result back to its operands.
    pub fn backward(&mut self, i: &Instruction, form: &Form, shared: bool) {
        if !i.active {
            return;
        }
        let from = self.result(i, shared);
        let of: Vec<View> = i.operands.iter().map(|o| self.view(o, from.rows)).collect();
        if let Pass::Dense(d) = &i.pass
            && d.activation != Activation::Identity
        {
            let count = from.rows * d.per_row;
            let arguments = vec![
                Argument::At(from.delta),
                int(self.chains),
                int(count),
                int(d.fan.1),
                Argument::At(from.y),
                Argument::At(from.before),
                int(d.activation as usize),
            ];
            self.launch("times_derivative", count * d.fan.1, arguments);
        }
        if let Pass::Attention(a) = &i.pass {
            let targets = [0, 1, 2].map(|k: usize| self.target(&i.operands[k], from.rows));
            return self.attention_back(a, &of, from.gradient(), from.rows, targets);
        }
        for (which, o) in i.operands.iter().enumerate() {
            if let Some(target) = self.target(o, from.rows) {
                self.slope(&i.pass, form, which, &of, from, target);
                self.done();
            }
        }
    }

    fn slope(
        &mut self,
        pass: &Pass,
        form: &Form,
        which: usize,
        of: &[View],
        from: Result,
        target: Target,
    ) {
        let d = from.gradient();
        let chains = int(self.chains);
        let to = [
            Argument::At(target.at),
            long(target.chain),
            Argument::Int(target.add.into()),
        ];
        let (y, delta) = (
            [Argument::At(from.y), long(from.chain)],
            [Argument::At(from.delta), long(from.chain)],
        );
        match (pass, form) {
            (
                _,
                Form::Element {
                    spreads, slopes, ..
                },
            ) => match &slopes[which] {
                Some(gather) => {
                    let operands = (of, &spreads[..]);
                    self.gather(gather, operands, from.y, d, from.rows, target);
                }
                None => self.nothing(target),
            },
            (_, Form::Take { back, .. }) => self.sum(back, d, from.rows, target),
            (_, Form::Concat(back)) => self.sum(&back[which], d, from.rows, target),
            (Pass::Dense(layer), form) => {
                let (k, n) = layer.fan;
                let count = from.rows * layer.per_row;
                match (which, form) {
                    (0, _) => {
                        let sides = [(d, false), (of[1], !layer.transposed)];
                        self.multiply([count, k, n], sides, (target.at, target.chain), target.add);
                    }
                    (1, _) => {
                        let (shape, a, b) = match layer.transposed {
                            true => ([n, k, count], d, of[0]),
                            false => ([k, n, count], of[0], d),
                        };
                        let sides = [(a, true), (b, false)];
                        self.multiply(shape, sides, (target.at, target.chain), true);
                    }
                    (_, Form::Channels(back)) => self.sum(back, d, from.rows, target),
                    _ => {}
                }
            }
            (Pass::Products { shape, pairs }, form) => {
                self.products_back(*shape, pairs.len(), form, which, of, d, from.rows, target);
            }
            (Pass::Norm(n), Form::Channels(back)) => {
                self.norm_back(n, back, which, of, d, from.rows, target);
            }
            (Pass::Norm(n), _) => self.norm_to_numbers(n, of, d, from.rows, target),
            (Pass::Convolve(_), Form::Channels(back)) if which == 2 => {
                self.sum(back, d, from.rows, target);
            }
            (Pass::Convolve(c), _) => match which {
                0 => self.convolve_to_image(c, of[1], d, from.rows, target),
                _ => self.convolve_to_filters(c, of[0], d, from.rows, target),
            },
            (Pass::Embed { words, width }, _) => {
                self.embed_back(of[0], [*words, *width], d, from.rows, target);
            }
            (Pass::Reduce(how, m, inner), _) => {
                let pages = from.rows * from.width / inner;
                let sizes = [chains, int(pages), int(*m), int(*inner)];
                match how {
                    Reduce::Sum => {
                        let arguments = [&delta[..], &sizes, &to].concat();
                        self.launch("reduce_sum_slopes", pages * m * inner, arguments);
                    }
                    _ => {
                        let x = [Argument::At(of[0].at), long(of[0].chain)];
                        let arguments = [&x[..], &y, &delta, &sizes, &to].concat();
                        self.launch("reduce_pick_slopes", pages * inner, arguments);
                    }
                }
            }
            (
                Pass::Softmax {
                    m,
                    inner,
                    logarithm,
                },
                _,
            ) => {
                let pages = from.rows * from.width / (m * inner);
                let sizes = [
                    chains,
                    int(pages),
                    int(*m),
                    int(*inner),
                    int((*logarithm).into()),
                ];
                let arguments = [&y[..], &delta, &sizes, &to].concat();
                self.launch("softmax_slopes", pages * inner, arguments);
            }
            (
                Pass::Attention(_)
                | Pass::Copy { .. }
                | Pass::Take { .. }
                | Pass::Concat(_)
                | Pass::Element(..),
                _,
            ) => {}
        }
    }

    /// A gradient of 0.
    pub(super) fn nothing(&mut self, target: Target) {
        if !target.add {
            self.push(Step::Clear(target.at, self.chains * target.chain));
        }
    }

    /// Add the gradient itself up over the users of each element.
    pub(super) fn sum(&mut self, gather: &Gather, d: View, rows: usize, target: Target) {
        self.gather(gather, (&[], &[]), d.at, d, rows, target);
    }

    /// Add up over the users of each element, in parts where there are many and few elements.
    fn gather(
        &mut self,
        g: &Gather,
        (of, spreads): (&[View], &[Repeated]),
        y: At,
        d: View,
        rows: usize,
        target: Target,
    ) {
        let width = d.width;
        let per_row = match g.users {
            Users::Same | Users::Run => 1,
            Users::All => width,
            Users::Again | Users::Listed => width / target.width,
        };
        let terms = per_row * if target.rows == rows { 1 } else { rows };
        let sums = target.rows * target.width;
        let parts = match sums < SUMS {
            true => (terms / TERMS).min(SUMS / sums.max(1)).clamp(1, PARTS),
            false => 1,
        };
        let (to, to_chain, to_row, add) = match parts {
            1 => (target.at, target.chain, target.row, target.add),
            _ => {
                let each = parts * target.width;
                let at = self.scratch(self.chains * target.rows * each);
                (at, target.rows * each, each, false)
            }
        };
        let mut arguments = vec![
            int(rows),
            int(width),
            int(self.chains),
            Argument::At(to),
            long(to_chain),
            long(to_row),
            int(target.width),
            int(target.rows),
            int(parts),
            Argument::Int(add.into()),
        ];
        match g.users {
            Users::Listed => {
                let list = |at| Argument::At(At::start(Place::Lists).plus(at));
                arguments.extend(g.lists.map(list));
            }
            Users::Run => arguments.extend(g.run.map(int)),
            _ => {}
        }
        for (k, (v, r)) in of.iter().zip(spreads).enumerate() {
            if g.reads.contains(&format!("x{k}")) {
                self.operand(v, r, &mut arguments);
            }
        }
        for (name, at) in [("y", y), ("d", d.at)] {
            if g.reads.iter().any(|r| r == name) {
                arguments.extend([Argument::At(at), long(d.chain)]);
            }
        }
        self.launch(&g.kernel, sums * parts, arguments);
        if parts > 1 {
            let sizes = [self.chains, target.rows, target.width, parts].map(int);
            let out = [
                Argument::At(target.at),
                long(target.chain),
                long(target.row),
                Argument::Int(target.add.into()),
            ];
            let arguments = [&[Argument::At(to)][..], &sizes, &out].concat();
            self.launch("sum_parts", sums, arguments);
        }
    }

    /// The gradient of a table: the places of each word first.
    fn embed_back(
        &mut self,
        x: View,
        [words, width]: [usize; 2],
        d: View,
        rows: usize,
        target: Target,
    ) {
        let numbers = x.width;
        let starts = Argument::At(self.scratch(self.chains * (words + 1)));
        let places = Argument::At(self.scratch(self.chains * rows * numbers));
        let of = [Argument::At(x.at), long(x.chain), long(x.row)];
        let sizes = [self.chains, rows, numbers, words].map(int);
        self.launch("embed_count", words, [&of[..], &sizes, &[starts]].concat());
        let arguments = vec![int(self.chains), int(words), starts];
        self.launch("embed_starts", 1, arguments);
        let arguments = [&of[..], &sizes, &[starts, places]].concat();
        self.launch("embed_places", words, arguments);
        let sizes = [self.chains, rows * numbers, words, width].map(int);
        let delta = [Argument::At(d.at), long(d.chain)];
        let to = [
            starts,
            places,
            Argument::At(target.at),
            long(target.chain),
            Argument::Int(target.add.into()),
        ];
        self.launch(
            "embed_slopes",
            words * width,
            [&delta[..], &sizes, &to].concat(),
        );
    }
}
