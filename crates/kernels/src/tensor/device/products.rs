//! Batches of products, and convolutions, which are such of windows and filters.

use super::super::window::Convolution;
use super::back::Target;
use super::form::{Form, Matrices};
use super::passes::{Passes, Result, int, long};
use super::{Argument, At, Place, Side, Step, View};

/// Numbers of the windows that are unfolded at a time.
const WINDOWS: usize = 1 << 26;

/// The matrices of a factor: of each chain, row, and number within a row.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub at: At,
    pub chain: usize,
    pub row: usize,
    pub within: &'a Matrices,
    pub transposed: bool,
}

impl Batch<'_> {
    /// The distance of neighbours, if all are as far apart, in order; for so many chains, rows and matrices of a row.
    fn stride(&self, counts: [usize; 3]) -> Option<usize> {
        let step = match self.within {
            Matrices::Even(step) => *step,
            Matrices::Listed(_) => return None,
        };
        let levels = [step, self.row, self.chain];
        let counts = counts.into_iter().rev();
        let mut found: Option<(usize, usize)> = None;
        for (stride, count) in levels.into_iter().zip(counts).filter(|(_, n)| *n > 1) {
            match found {
                None => found = Some((stride, count)),
                Some((first, n)) if stride == first * n => found = Some((first, n * count)),
                Some(_) => return None,
            }
        }
        Some(found.map_or(0, |(stride, _)| stride))
    }

    fn arguments(&self) -> [Argument; 5] {
        let (step, list) = match self.within {
            Matrices::Even(step) => (*step, Argument::Nowhere),
            Matrices::Listed(at) => (0, Argument::At(At::start(Place::Lists).plus(*at))),
        };
        let at = Argument::At(self.at);
        [at, long(self.chain), long(self.row), long(step), list]
    }
}

impl Passes<'_> {
    /// A product for each of so many rows and matrices in a row, of every chain.
    pub(super) fn batch(
        &mut self,
        shape: [usize; 3],
        (rows, count): (usize, usize),
        sides: [Batch; 3],
        add: bool,
    ) {
        let counts = [self.chains, rows, count];
        let batch = self.chains * rows * count;
        let strides = sides.map(|s| s.stride(counts));
        if let [Some(a), Some(b), Some(out)] = strides {
            let side = |s: &Batch, stride| Side {
                at: s.at,
                stride,
                transposed: s.transposed,
            };
            return self.push(Step::Multiply {
                shape,
                sides: [side(&sides[0], a), side(&sides[1], b), side(&sides[2], out)],
                batch,
                add,
                listed: false,
            });
        }
        let to = self.room_for_addresses(3 * batch);
        let each = sides.iter().flat_map(|s| s.arguments());
        let sizes = [self.chains, rows, count].map(int);
        let arguments = each.chain(sizes).chain([Argument::At(to)]).collect();
        self.launch("addresses", rows * count, arguments);
        let mut at = to;
        let sides = sides.map(|s| {
            let own = at;
            at.offset += batch;
            Side {
                at: own,
                stride: 0,
                transposed: s.transposed,
            }
        });
        self.push(Step::Multiply {
            shape,
            sides,
            batch,
            add,
            listed: true,
        });
    }

    /// Products `[m, k]·[k, n]` in each row.
    pub(super) fn products(
        &mut self,
        [m, n, k]: [usize; 3],
        count: usize,
        form: &Form,
        of: &[View],
        to: Result,
    ) {
        let Form::Products { at, .. } = form else {
            return;
        };
        let whole = Matrices::Even(m * n);
        let sides = [
            factor(of[0], &at[0], false),
            factor(of[1], &at[1], false),
            Batch {
                at: to.y,
                chain: to.chain,
                row: to.width,
                within: &whole,
                transposed: false,
            },
        ];
        self.batch([m, n, k], (to.rows, count), sides, false);
    }

    /// The gradient with respect to one of their operands.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn products_back(
        &mut self,
        [m, n, k]: [usize; 3],
        count: usize,
        form: &Form,
        which: usize,
        of: &[View],
        d: View,
        rows: usize,
        target: Target,
    ) {
        let Form::Products { at, once, back } = form else {
            return;
        };
        let delta = Matrices::Even(m * n);
        let delta = factor(d, &delta, false);
        let (shape, a, b) = match which {
            0 => ([m, k, n], delta, factor(of[1], &at[1], true)),
            _ => ([k, n, m], factor(of[0], &at[0], true), delta),
        };
        let size = shape[0] * shape[1];
        let even = Matrices::Even(size);
        let own = |at, chain, row| Batch {
            at,
            chain,
            row,
            within: &even,
            transposed: false,
        };
        if once[which] && target.rows == rows {
            let out = own(target.at, target.chain, target.row);
            return self.batch(shape, (rows, count), [a, b, out], target.add);
        }
        // Several products go to the same numbers: each by itself first, then their sums.
        let width = count * size;
        let room = self.scratch(self.chains * rows * width);
        let out = own(room, rows * width, width);
        self.batch(shape, (rows, count), [a, b, out], false);
        let products = View {
            at: room,
            chain: rows * width,
            row: width,
            width,
        };
        self.sum(&back[which], products, rows, target);
    }

    /// Rows whose windows are unfolded together, and their number.
    fn chunks(&self, c: &Convolution, rows: usize) -> Vec<(usize, usize)> {
        let (window, windows) = c.columns();
        let one = self.chains * c.groups * window * windows;
        let most = (WINDOWS / one.max(1)).clamp(1, rows.max(1));
        let starts = (0..rows).step_by(most);
        starts.map(|at| (at, most.min(rows - at))).collect()
    }

    /// The windows of some rows.
    fn unfold(&mut self, c: &Convolution, image: View, rows: usize, within: bool) -> At {
        let (window, windows) = c.columns();
        let count = rows * c.groups * window * windows;
        let to = self.scratch(self.chains * count);
        let of = [Argument::At(image.at), long(image.chain), long(image.row)];
        let sizes = [int(self.chains), int(rows)];
        let rest = [int(within.into()), Argument::At(to)];
        let arguments = [&of[..], &sizes, &shape(c), &rest].concat();
        self.launch("unfold", count, arguments);
        to
    }

    /// Windows times filters.
    pub(super) fn convolve(&mut self, c: &Convolution, of: &[View], to: Result) {
        let (window, windows) = c.columns();
        let within = [c.filters * window, window * windows, c.filters * windows];
        let [filters, columns, results] = within.map(Matrices::Even);
        for (first, rows) in self.chunks(c, to.rows) {
            let mut image = of[0];
            image.at.offset += first * image.row;
            let columns = match c.is_pointwise() {
                true => factor(image, &columns, false),
                false => Batch {
                    at: self.unfold(c, image, rows, false),
                    chain: rows * c.groups * window * windows,
                    row: c.groups * window * windows,
                    within: &columns,
                    transposed: false,
                },
            };
            let out = Batch {
                at: to.y.plus(first * to.width),
                chain: to.chain,
                row: to.width,
                within: &results,
                transposed: false,
            };
            let sides = [factor(of[1], &filters, false), columns, out];
            let shape = [c.filters, windows, window];
            self.batch(shape, (rows, c.groups), sides, false);
            self.done();
        }
        if let Some(bias) = of.get(2) {
            let sizes = [self.chains, to.rows, c.groups * c.filters, windows].map(int);
            let out = [Argument::At(to.y), long(to.chain)];
            let numbers = [Argument::At(bias.at), long(bias.chain)];
            let arguments = [&out[..], &sizes, &numbers].concat();
            self.launch("add_to_lines", to.rows * to.width, arguments);
        }
    }

    pub(super) fn convolve_to_image(
        &mut self,
        c: &Convolution,
        filters: View,
        d: View,
        all: usize,
        target: Target,
    ) {
        let (window, windows) = c.columns();
        let within = [c.filters * window, c.filters * windows, window * windows];
        let [own, results, columns] = within.map(Matrices::Even);
        for (first, rows) in self.chunks(c, all) {
            let mut d = d;
            d.at.offset += first * d.row;
            let to = target.at.plus(first * target.row);
            let sides = [factor(filters, &own, true), factor(d, &results, false)];
            let pointwise = c.is_pointwise();
            let width = c.groups * window * windows;
            let (at, chain, row) = match pointwise {
                true => (to, target.chain, target.row),
                false => (
                    self.scratch(self.chains * rows * width),
                    rows * width,
                    width,
                ),
            };
            let out = Batch {
                at,
                chain,
                row,
                within: &columns,
                transposed: false,
            };
            let sides = [sides[0], sides[1], out];
            let add = pointwise && target.add;
            self.batch([window, windows, c.filters], (rows, c.groups), sides, add);
            if !pointwise {
                let from = [Argument::At(at), int(self.chains), int(rows)];
                let rest = [
                    Argument::At(to),
                    long(target.chain),
                    long(target.row),
                    Argument::Int(target.add.into()),
                ];
                let arguments = [&from[..], &shape(c), &rest].concat();
                self.launch("fold", rows * target.width, arguments);
            }
            self.done();
        }
    }

    /// One product per group and chain, over the windows of all rows.
    pub(super) fn convolve_to_filters(
        &mut self,
        c: &Convolution,
        image: View,
        d: View,
        all: usize,
        target: Target,
    ) {
        let (window, windows) = c.columns();
        for (first, rows) in self.chunks(c, all) {
            let (mut image, mut d) = (image, d);
            image.at.offset += first * image.row;
            d.at.offset += first * d.row;
            let columns = self.unfold(c, image, rows, true);
            let lines = c.groups * c.filters;
            let delta = self.scratch(self.chains * rows * lines * windows);
            let arguments = vec![
                Argument::At(d.at),
                long(d.chain),
                int(self.chains),
                int(rows),
                int(lines),
                int(windows),
                Argument::At(delta),
            ];
            self.launch("rows_within", rows * lines * windows, arguments);
            let length = rows * windows;
            let steps = [c.filters * length, window * length, c.filters * window];
            let [deltas, columns_of, filters] = steps.map(Matrices::Even);
            let side = |at, chain, within, transposed| Batch {
                at,
                chain,
                row: 0,
                within,
                transposed,
            };
            let sides = [
                side(delta, lines * length, &deltas, false),
                side(columns, c.groups * window * length, &columns_of, true),
                side(target.at, target.chain, &filters, false),
            ];
            self.batch([c.filters, window, length], (1, c.groups), sides, true);
            self.done();
        }
    }
}

fn factor<'a>(v: View, within: &'a Matrices, transposed: bool) -> Batch<'a> {
    Batch {
        at: v.at,
        chain: v.chain,
        row: v.row,
        within,
        transposed,
    }
}

/// Channels, sizes, strides, padding and dilation, as kernels take them.
fn shape(c: &Convolution) -> [Argument; 13] {
    let channels = c.groups * c.channels;
    let pairs = [c.size, c.kernel, c.out, c.stride, c.padding, c.dilation];
    let mut out = [int(channels); 13];
    for (to, x) in out[1..].iter_mut().zip(pairs.as_flattened()) {
        *to = int(*x);
    }
    out
}
