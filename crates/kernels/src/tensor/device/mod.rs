//! Compiled graphs on an accelerator: from passes to launches of kernels and batched products.
//!
//! [`OnDevice`] is a [`Program`] with the source of its kernels and the lists that they read; [`OnDevice::plan`] says what is launched for a
//! tile of so many rows of so many chains, forward and backward. All chains go through every launch. Who executes a plan gives each
//! [`Place`] its memory. Gradients of what rows share are sums in a fixed order, or products: no number depends on how threads meet.
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | places, plans, what is written and listed beforehand |
//! | `attention.rs`, `norm.rs` | attention, norms |
//! | `form.rs` | what each pass needs beforehand |
//! | `passes.rs`, `back.rs` | the launches of each pass, forward and backward |
//! | `products.rs` | batches of products, convolutions |
//! | `source.rs` | kernels that are generated |
//! | `run.rs` | what executes a plan |

mod attention;
mod back;
mod form;
mod norm;
mod passes;
mod products;
mod run;
mod source;

pub use run::run;

use super::program::{Instruction, Operand, Program, Source};
use form::Form;
use std::collections::{BTreeMap, HashMap};

/// Memory that a plan speaks of. Numbers are single precision unless it says otherwise; each has a part per chain but for those that say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The inputs of the rows, `[rows, inputs]`.
    Inputs,
    /// The parameters.
    Parameters,
    /// Their gradient, to which a plan adds.
    Gradient,
    /// The constants, the same for all chains.
    Constants,
    /// Whole numbers that kernels read, the same for all chains.
    Lists,
    /// What no row changes.
    Shared,
    /// The gradient with respect to it, to which the tiles add.
    Common,
    /// A buffer of the rows; the last has the outputs.
    Value(usize),
    /// Inputs of the activation of that buffer.
    Before(usize),
    /// The gradient with respect to that buffer; the caller writes the last.
    Delta(usize),
    /// Room for what lives no longer than a pass, for all chains together.
    Scratch,
    /// Addresses of the matrices of a batch, for all chains together.
    Addresses,
}

/// Numbers of a place from somewhere on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// The place.
    pub place: Place,
    /// Numbers before the first; of [`Place::Addresses`], addresses.
    pub offset: usize,
}

impl At {
    fn start(place: Place) -> Self {
        Self { place, offset: 0 }
    }

    fn plus(self, more: usize) -> Self {
        Self {
            offset: self.offset + more,
            ..self
        }
    }
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Argument {
    /// Where something is.
    At(At),
    /// No memory.
    Nowhere,
    /// `int`
    Int(i32),
    /// `long long`
    Long(u64),
    /// `float`
    Float(f32),
}

/// A factor of a batch of products.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// The first matrix, or, of a batch that is listed, the first address.
    pub at: At,
    /// Numbers from one matrix to the next.
    pub stride: usize,
    /// Whether it is stored transposed.
    pub transposed: bool,
}

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Launch a kernel over so many threads in x, and the chains.
    Launch {
        /// Its name.
        kernel: String,
        /// Threads in x.
        width: usize,
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// `out = a·b` or `out += a·b`, for each of a batch.
    Multiply {
        /// m, n, k.
        shape: [usize; 3],
        /// Left and right factor, result.
        sides: [Side; 3],
        /// How many.
        batch: usize,
        /// Whether to add.
        add: bool,
        /// Whether sides are lists of addresses.
        listed: bool,
    },
    /// Make so many numbers 0.
    Clear(At, usize),
}

/// What is done for a tile.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Once for parameters, before any row: what no row changes.
    pub prepare: Vec<Step>,
    /// From inputs to outputs.
    pub forward: Vec<Step>,
    /// From the gradient of the outputs to those of parameters and of what no row changes.
    pub backward: Vec<Step>,
    /// Once after all tiles: the way back through what no row changes.
    pub finish: Vec<Step>,
    /// Numbers of each place, of all chains together; of places that the caller has, none.
    pub sizes: BTreeMap<Place, usize>,
}

/// A program as an accelerator runs it.
#[derive(Debug, Clone)]
pub struct OnDevice {
    program: Program,
    /// Of the passes of rows, and of those that are done once.
    forms: [Vec<Form>; 2],
    lists: Vec<u32>,
    kernels: BTreeMap<String, String>,
}

/// What forms are made of: lists and kernels, equal ones once.
#[derive(Default)]
struct Store {
    lists: Vec<u32>,
    known: HashMap<Vec<u32>, usize>,
    kernels: BTreeMap<String, String>,
}

impl Store {
    /// Where a list begins among all.
    fn list(&mut self, list: Vec<u32>) -> usize {
        let all = &mut self.lists;
        *self.known.entry(list).or_insert_with_key(|list| {
            all.extend(list);
            all.len() - list.len()
        })
    }

    /// A kernel's name and what it reads.
    fn kernel(&mut self, kernel: source::Kernel) -> (String, Vec<String>) {
        self.kernels.insert(kernel.name.clone(), kernel.source);
        (kernel.name, kernel.reads)
    }
}

impl OnDevice {
    /// Write the kernels of a program and what they read.
    pub fn new(program: Program) -> Self {
        let mut store = Store::default();
        let mut of = |all: &[Instruction]| all.iter().map(|i| Form::new(i, &mut store)).collect();
        let forms = [of(&program.rows), of(&program.shared)];
        Self {
            program,
            forms,
            lists: store.lists,
            kernels: store.kernels,
        }
    }

    /// The source of its own kernels, which stands behind [`ELEMENTS`](crate::device::ELEMENTS), and their names; empty if it has none.
    pub fn kernels(&self) -> (String, Vec<&str>) {
        let source = self.kernels.values().map(String::as_str).collect();
        (source, self.kernels.keys().map(String::as_str).collect())
    }

    /// Each of its kernels: name and source.
    #[cfg(test)]
    pub(super) fn each_kernel(&self) -> impl Iterator<Item = (&str, &str)> {
        self.kernels.iter().map(|(n, s)| (n.as_str(), s.as_str()))
    }

    /// What is in [`Place::Lists`].
    pub fn lists(&self) -> &[u32] {
        &self.lists
    }

    /// What is in [`Place::Constants`].
    pub fn constants(&self) -> &[f32] {
        &self.program.constants
    }

    /// Numbers per row of the outputs.
    pub fn outputs(&self) -> usize {
        self.program.widths.last().copied().unwrap_or(0)
    }

    /// The most numbers that a row has in a buffer.
    pub fn widest(&self) -> usize {
        self.program.widths.iter().copied().max().unwrap_or(0)
    }

    /// The buffer of the outputs.
    pub fn last(&self) -> usize {
        self.program.widths.len().saturating_sub(1)
    }

    /// What is done for a tile of so many rows of each chain, whose parameters are `dim` numbers apart.
    pub fn plan(&self, rows: usize, chains: usize, dim: usize) -> Plan {
        let mut plan = Plan::default();
        let p = &self.program;
        for (k, (w, before)) in p.widths.iter().zip(&p.before).enumerate() {
            plan.sizes.insert(Place::Value(k), chains * rows * w);
            plan.sizes.insert(Place::Before(k), chains * rows * before);
            if p.active[k] || k == self.last() {
                plan.sizes.insert(Place::Delta(k), chains * rows * w);
            }
        }
        for place in [Place::Shared, Place::Common] {
            plan.sizes.insert(place, chains * p.shared_length);
        }
        let mut passes = passes::Passes::new(self, rows, chains, dim);
        for (i, form) in p.shared.iter().zip(&self.forms[1]) {
            passes.forward(i, form, true);
        }
        plan.prepare = passes.take();
        for (i, form) in p.rows.iter().zip(&self.forms[0]) {
            passes.forward(i, form, false);
        }
        plan.forward = passes.take();
        for (i, form) in p.rows.iter().zip(&self.forms[0]).rev() {
            passes.backward(i, form, false);
        }
        plan.backward = passes.take();
        for (i, form) in p.shared.iter().zip(&self.forms[1]).rev() {
            passes.backward(i, form, true);
        }
        plan.finish = passes.take();
        let [scratch, addresses] = passes.room();
        plan.sizes.insert(Place::Scratch, scratch);
        plan.sizes.insert(Place::Addresses, addresses);
        plan
    }
}

impl Plan {
    /// Bytes of all places.
    pub fn bytes(&self) -> usize {
        self.sizes.keys().map(|place| self.bytes_of(*place)).sum()
    }

    /// Bytes of a place.
    pub fn bytes_of(&self, place: Place) -> usize {
        let each = if place == Place::Addresses { 8 } else { 4 };
        each * self.sizes.get(&place).copied().unwrap_or(0)
    }
}

/// Numbers of an operand: where they are, how far chains and rows are apart, and how many a row has.
#[derive(Debug, Clone, Copy)]
struct View {
    at: At,
    chain: usize,
    row: usize,
    width: usize,
}

impl OnDevice {
    /// An operand of a pass over so many rows.
    fn view(&self, o: &Operand, rows: usize, dim: usize) -> View {
        let width = o.width;
        let (place, offset, chain, row) = match &o.source {
            Source::Input => (Place::Inputs, 0, rows * width, width),
            Source::Buffer(i) => (Place::Value(*i), 0, rows * width, width),
            Source::Parameter(r) => (Place::Parameters, r.start, dim, 0),
            Source::Constant(r) => (Place::Constants, r.start, 0, 0),
            Source::Shared(r) => (Place::Shared, r.start, self.program.shared_length, 0),
        };
        View {
            at: At { place, offset },
            chain,
            row,
            width,
        }
    }
}
