//! The launches of each pass.

use super::super::pass::{Dense, Pass};
use super::super::program::{Instruction, Operand};
use super::form::{Form, Repeated};
use super::source::Index;
use super::{Argument, At, OnDevice, Place, Step, View};
use crate::elementwise::Activation;

/// An axis of so many numbers is reduced in parts, side by side.
const LONG: usize = 4096;
const PARTS: usize = 256;

/// Steps for so many rows and chains, as they are written.
pub struct Passes<'a> {
    pub(super) all: &'a OnDevice,
    pub(super) rows: usize,
    pub(super) chains: usize,
    pub(super) dim: usize,
    steps: Vec<Step>,
    /// Numbers of the scratch that the pass uses so far, and that any used; the most addresses.
    used: usize,
    most: usize,
    addresses: usize,
}

/// What a pass computes: its result, the gradient with respect to that, and over how many rows.
#[derive(Clone, Copy)]
pub struct Result {
    pub rows: usize,
    pub y: At,
    pub before: At,
    pub delta: At,
    /// Numbers from one chain to the next, of all of them.
    pub chain: usize,
    pub width: usize,
}

impl Result {
    pub fn gradient(&self) -> View {
        View {
            at: self.delta,
            chain: self.chain,
            row: self.width,
            width: self.width,
        }
    }
}

pub fn int(x: usize) -> Argument {
    Argument::Int(x as i32)
}

pub fn long(x: usize) -> Argument {
    Argument::Long(x as u64)
}

impl<'a> Passes<'a> {
    pub fn new(all: &'a OnDevice, rows: usize, chains: usize, dim: usize) -> Self {
        Self {
            all,
            rows,
            chains,
            dim,
            steps: Vec::new(),
            used: 0,
            most: 0,
            addresses: 0,
        }
    }

    /// The steps since the last call.
    pub fn take(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Numbers of the scratch, and addresses.
    pub fn room(&self) -> [usize; 2] {
        [self.most, self.addresses]
    }

    /// So many numbers of the scratch, until the pass is over.
    pub(super) fn scratch(&mut self, count: usize) -> At {
        let at = At::start(Place::Scratch).plus(self.used);
        self.used += count;
        self.most = self.most.max(self.used);
        at
    }

    /// The scratch is free again.
    pub(super) fn done(&mut self) {
        self.used = 0;
    }

    /// Room for so many addresses.
    pub(super) fn room_for_addresses(&mut self, count: usize) -> At {
        self.addresses = self.addresses.max(count);
        At::start(Place::Addresses)
    }

    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(super) fn launch(&mut self, kernel: &str, width: usize, arguments: Vec<Argument>) {
        self.push(Step::Launch {
            kernel: kernel.into(),
            width,
            arguments,
        });
    }

    pub(super) fn view(&self, o: &Operand, rows: usize) -> View {
        self.all.view(o, rows, self.dim)
    }

    /// Where a pass has its result.
    pub(super) fn result(&self, i: &Instruction, shared: bool) -> Result {
        let (rows, chain) = match shared {
            true => (1, self.all.program.shared_length),
            false => (self.rows, self.rows * i.width),
        };
        let place = |place: Place, within: Place| match shared {
            true => At::start(within).plus(i.out),
            false => At::start(place),
        };
        Result {
            rows,
            y: place(Place::Value(i.out), Place::Shared),
            before: At::start(Place::Before(i.out)),
            delta: place(Place::Delta(i.out), Place::Common),
            chain,
            width: i.width,
        }
    }

    /// An operand of a kernel over elements.
    pub(super) fn operand(&self, v: &View, r: &Repeated, to: &mut Vec<Argument>) {
        to.extend([Argument::At(v.at), long(v.chain), long(v.row)]);
        match r.index {
            Index::Again => to.push(int(v.width)),
            Index::Listed => to.push(Argument::At(At::start(Place::Lists).plus(r.list))),
            Index::Same | Index::One => {}
        }
    }

    /// Compute a pass.
    pub fn forward(&mut self, i: &Instruction, form: &Form, shared: bool) {
        let to = self.result(i, shared);
        let (rows, chains) = (to.rows, int(self.chains));
        let of: Vec<View> = i.operands.iter().map(|o| self.view(o, rows)).collect();
        let out = [Argument::At(to.y), long(to.chain)];
        match (&i.pass, form) {
            (
                Pass::Element(..),
                Form::Element {
                    values, spreads, ..
                },
            ) => {
                let mut arguments = vec![int(rows), int(to.width), chains, out[0], out[1]];
                for (v, r) in of.iter().zip(spreads) {
                    self.operand(v, r, &mut arguments);
                }
                self.launch(values, rows * to.width, arguments);
            }
            (Pass::Dense(d), _) => self.dense(d, &of, to),
            (Pass::Products { shape, pairs }, form) => {
                self.products(*shape, pairs.len(), form, &of, to)
            }
            (_, Form::Take { list, fill, .. }) => {
                let x = of[0];
                let list = Argument::At(At::start(Place::Lists).plus(*list));
                let arguments = [
                    Argument::At(x.at),
                    long(x.chain),
                    long(x.row),
                    chains,
                    int(rows),
                    int(to.width),
                    list,
                    Argument::Float(*fill),
                ];
                let arguments = [&arguments[..], &out].concat();
                self.launch("take_listed", rows * to.width, arguments);
            }
            (Pass::Concat(runs), _) => {
                let (outer, whole) = (of[0].width / runs[0], runs.iter().sum::<usize>());
                let mut before = 0;
                for (x, run) in of.iter().zip(runs) {
                    let x = [Argument::At(x.at), long(x.chain), long(x.row), chains];
                    let sizes = [rows, outer, *run, whole, before].map(int);
                    let arguments = [&x[..], &sizes, &out].concat();
                    self.launch("copy_runs", rows * outer * run, arguments);
                    before += run;
                }
            }
            (Pass::Convolve(c), _) => self.convolve(c, &of, to),
            (Pass::Attention(a), _) => self.attention(a, &of, to),
            (Pass::Norm(n), _) => self.norm(n, &of, to),
            (Pass::Embed { words, width }, _) => {
                let (x, table) = (of[0], of[1]);
                let arguments = vec![
                    Argument::At(x.at),
                    long(x.chain),
                    long(x.row),
                    Argument::At(table.at),
                    long(table.chain),
                    chains,
                    int(rows),
                    int(x.width),
                    int(*words),
                    int(*width),
                    out[0],
                    out[1],
                ];
                self.launch("embed_rows", rows * to.width, arguments);
            }
            (Pass::Reduce(how, m, 1), _) if *m >= LONG => {
                let [pages, m, how] = [rows * to.width, *m, *how as usize].map(int);
                let each = rows * to.width * PARTS;
                let parts = Argument::At(self.scratch(2 * self.chains * each));
                let x = [Argument::At(of[0].at), long(of[0].chain), chains];
                let arguments = [&x[..], &[pages, m, int(PARTS), how, parts]].concat();
                self.launch("reduce_parts", each, arguments);
                let arguments = [&[parts, chains, pages, int(PARTS), how][..], &out].concat();
                self.launch("reduce_rest", rows * to.width, arguments);
            }
            (Pass::Reduce(how, m, inner), _) => {
                let pages = rows * to.width / inner;
                let x = [Argument::At(of[0].at), long(of[0].chain), chains];
                let sizes = [pages, *m, *inner, *how as usize].map(int);
                self.launch(
                    "reduce_axis",
                    pages * inner,
                    [&x[..], &sizes, &out].concat(),
                );
            }
            (
                Pass::Softmax {
                    m,
                    inner,
                    logarithm,
                },
                _,
            ) => {
                let pages = rows * to.width / (m * inner);
                let x = [Argument::At(of[0].at), long(of[0].chain), chains];
                let sizes = [pages, *m, *inner, usize::from(*logarithm)].map(int);
                self.launch(
                    "softmax_axis",
                    pages * inner,
                    [&x[..], &sizes, &out].concat(),
                );
            }
            (Pass::Copy { .. } | Pass::Take { .. } | Pass::Element(..), _) => {}
        }
        self.done();
    }

    fn dense(&mut self, d: &Dense, of: &[View], to: Result) {
        let (k, n) = d.fan;
        let rows = to.rows * d.per_row;
        let sides = [(of[0], false), (of[1], d.transposed)];
        self.multiply([rows, n, k], sides, (to.y, to.chain), false);
        if of.len() < 3 && d.activation == Activation::Identity {
            return;
        }
        let bias = match of.get(2) {
            Some(b) => [Argument::At(b.at), long(b.chain), long(0)],
            None => [Argument::Nowhere, long(0), Argument::Long(u64::MAX)],
        };
        let before = match d.activation.needs_input() {
            true => Argument::At(to.before),
            false => Argument::Nowhere,
        };
        let z = [Argument::At(to.y), int(self.chains), int(rows), int(n)];
        let arguments = [&z[..], &bias, &[int(d.activation as usize), before]].concat();
        self.launch("bias_activation", rows * n, arguments);
    }

    /// A product per chain.
    pub(super) fn multiply(
        &mut self,
        shape: [usize; 3],
        [(a, a_transposed), (b, b_transposed)]: [(View, bool); 2],
        (out, out_chain): (At, usize),
        add: bool,
    ) {
        let side = |at, stride, transposed| super::Side {
            at,
            stride,
            transposed,
        };
        let sides = [
            side(a.at, a.chain, a_transposed),
            side(b.at, b.chain, b_transposed),
            side(out, out_chain, false),
        ];
        self.push(Step::Multiply {
            shape,
            sides,
            batch: self.chains,
            add,
            listed: false,
        });
    }
}
