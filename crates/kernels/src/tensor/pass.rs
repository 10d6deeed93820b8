//! One pass over some rows: from the numbers of its operands to its own, and from its gradient to theirs.

use super::attention::Attention;
use super::element::Element;
use super::elements::{Spread, backward_elements, first_elements, forward_elements};
use super::norm::{
    Norm, add_line_sums, add_to_channels, add_to_lines, backward_norm, forward_norm,
};
use super::operation::{NOWHERE, Reduce};
use super::reduce::{reduce, reduce_derivative, softmax, softmax_derivative};
use super::view::View;
use super::window::Convolution;
use crate::dense;
use crate::elementwise::{Activation, times_derivative};
use crate::gemm::{Matrix, Part, multiply};
use crate::thread_pool::Team;
use crate::update::add;
use std::sync::Arc;

/// A dense layer `f(a W + b)` on `rows · per_row` vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// Vectors per row.
    pub per_row: usize,
    /// Length of a vector that goes in, and of one that comes out.
    pub fan: (usize, usize),
    /// Whether W is stored `[out, in]`.
    pub transposed: bool,
    /// f.
    pub activation: Activation,
}

impl Dense {
    fn weights<'a>(&self, data: &'a [f32]) -> Matrix<'a> {
        let (k, n) = self.fan;
        match self.transposed {
            true => Matrix::new(data, n, k).transposed(),
            false => Matrix::new(data, k, n),
        }
    }

    /// In how many parts threads do a product with W of so many rows, or the gradient of W: enough for a few threads, each with enough to do. A function
    /// of the problem alone: it must not depend on the threads.
    pub fn shares(&self, rows: usize) -> usize {
        let (k, n) = self.fan;
        ((k * n * rows * self.per_row) >> 23).clamp(1, 16)
    }

    /// f(a W + b), shared by the threads of a team.
    fn forward(
        &self,
        rows: usize,
        of: &[View],
        out: &mut [f32],
        before: &mut [f32],
        team: Option<&Team>,
    ) {
        let (k, n) = self.fan;
        let count = self.shares(rows);
        let rows = rows * self.per_row;
        let (a, w) = (Matrix::new(of[0].data, rows, k), self.weights(of[1].data));
        let bias = of.get(2).map_or(&[][..], |b| &b.data[..n]);
        let keeps = if before.is_empty() { 0 } else { rows };
        let count = if team.is_some() { count } else { 1 };
        let cut = if self.transposed {
            Part::panels
        } else {
            Part::split
        };
        let befores = cut(before, keeps, n, count).into_iter().map(Some);
        let befores = befores.chain(std::iter::repeat_with(|| None));
        let mut parts: Vec<_> = cut(out, rows, n, count).into_iter().zip(befores).collect();
        let f = |(out, before): &mut (Part, Option<Part>)| {
            let nothing = &mut Part::whole(&mut [], 0, 0);
            dense::forward(
                out,
                a,
                w,
                bias,
                self.activation,
                before.as_mut().unwrap_or(nothing),
            );
        };
        match team {
            Some(team) => team.for_each(&mut parts, f),
            None => parts.iter_mut().for_each(f),
        }
    }

    /// About `count` parts of the gradient of W.
    pub fn parts<'a>(&self, data: &'a mut [f32], count: usize) -> Vec<Part<'a>> {
        let (k, n) = self.fan;
        match self.transposed {
            true => Part::split(data, n, k, count),
            false => Part::split(data, k, n, count),
        }
    }

    /// Add to a part of the gradient of W, from vectors that went in and gradients of what came out.
    pub fn add_to_part(&self, part: &mut Part, rows: usize, a: &[f32], delta: &[f32]) {
        let (k, n) = self.fan;
        let rows = rows * self.per_row;
        let (a, delta) = (Matrix::new(a, rows, k), Matrix::new(delta, rows, n));
        let (left, right) = match self.transposed {
            true => (delta, a),
            false => (a, delta),
        };
        let left = left.columns(part.rows.clone()).transposed();
        part.multiply(left, right.columns(part.columns.clone()), true);
    }
}

/// `out = a·b`, or `out += a·b` when `add`; with a team in so many parts, which its threads share.
fn shared_product(
    out: &mut [f32],
    a: Matrix,
    b: Matrix,
    add: bool,
    count: usize,
    team: Option<&Team>,
) {
    let ([m, _], [_, n]) = (a.shape(), b.shape());
    let Some(team) = team.filter(|_| count > 1 && m * n > 0) else {
        return multiply(out, a, b, add);
    };
    team.for_each(&mut Part::split(out, m, n, count), |part| {
        let (rows, columns) = (part.rows.clone(), part.columns.clone());
        part.multiply(a.rows(rows), b.columns(columns), add);
    });
}

/// What is computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Pass {
    /// Element by element; how each operand is repeated.
    Element(Element, Vec<Spread>),
    /// Operands: vectors, W, and perhaps b.
    Dense(Dense),
    /// Products `[m, k]·[k, n]` in each row; where the matrices of each begin.
    Products {
        shape: [usize; 3],
        pairs: Vec<(usize, usize)>,
    },
    /// Runs of neighbours, each from its own place.
    Copy { from: Vec<u32>, run: usize },
    /// Each number from its own place, or [`NOWHERE`], where `fill` stands.
    Take { from: Arc<[u32]>, fill: f32 },
    /// Operands: images and filters, and perhaps biases of the filters.
    Convolve(Convolution),
    /// Operands: numbers of rows of a table, and the table of so many rows of that width.
    Embed { words: usize, width: usize },
    /// Operands: numbers, and perhaps weights, and perhaps biases. `before` keeps the moments.
    Norm(Norm),
    /// Operands: queries, keys and values. `before` keeps the log-sums of the scores.
    Attention(Attention),
    /// One after the other: the lengths of the runs of each operand.
    Concat(Vec<usize>),
    /// `[outer, m, inner]` to `[outer, inner]`.
    Reduce(Reduce, usize, usize),
    /// Over the middle of `[outer, m, inner]`, or its logarithm.
    Softmax {
        m: usize,
        inner: usize,
        logarithm: bool,
    },
}

impl Pass {
    /// Compute `out`, of so many rows; `before` keeps what an activation had as its input.
    ///
    /// With a team, its threads share large products.
    pub fn forward(
        &self,
        rows: usize,
        of: &[View],
        out: &mut [f32],
        before: &mut [f32],
        team: Option<&Team>,
    ) {
        match self {
            Pass::Element(f, spreads) => forward_elements(*f, spreads, rows, of, out),
            Pass::Dense(d) => d.forward(rows, of, out, before, team),
            Pass::Products { shape, pairs } => {
                let [m, n, k] = *shape;
                for r in 0..rows {
                    let (a, b) = (of[0].row(r), of[1].row(r));
                    for (i, (x, y)) in pairs.iter().enumerate() {
                        let left = Matrix::new(&a[*x..], m, k);
                        let right = Matrix::new(&b[*y..], k, n);
                        let at = (r * pairs.len() + i) * m * n;
                        multiply(&mut out[at..at + m * n], left, right, false);
                    }
                }
            }
            Pass::Copy { from, run } => {
                let width = from.len() * run;
                for r in 0..rows {
                    let x = of[0].row(r);
                    let y = &mut out[r * width..][..width];
                    match run {
                        1 => y
                            .iter_mut()
                            .zip(from)
                            .for_each(|(y, i)| *y = x[*i as usize]),
                        _ => y
                            .chunks_exact_mut(*run)
                            .zip(from)
                            .for_each(|(y, i)| y.copy_from_slice(&x[*i as usize..][..*run])),
                    }
                }
            }
            Pass::Take { from, fill } => {
                for (r, y) in out.chunks_exact_mut(from.len()).take(rows).enumerate() {
                    let x = of[0].row(r);
                    let each = y.iter_mut().zip(&**from);
                    each.for_each(|(y, i)| *y = x.get(*i as usize).copied().unwrap_or(*fill));
                }
            }
            Pass::Convolve(c) => {
                let one = out.len() / rows.max(1);
                for (r, out) in out.chunks_exact_mut(one).take(rows).enumerate() {
                    c.forward(of[0].row(r), of[1].row(r), out);
                }
                if let Some(bias) = of.get(2) {
                    add_to_lines(out, &bias.data[..bias.width], c.columns().1);
                }
            }
            Pass::Embed { words, width } => {
                let numbers = of[0].width;
                for (r, y) in out.chunks_exact_mut(numbers * width).take(rows).enumerate() {
                    let table = of[1].row(r);
                    for (y, i) in y.chunks_exact_mut(*width).zip(of[0].row(r)) {
                        match word(*i, *words) {
                            Some(i) => y.copy_from_slice(&table[i * width..][..*width]),
                            None => y.fill(f32::NAN),
                        }
                    }
                }
            }
            Pass::Norm(n) => forward_norm(n, rows, of, out, before),
            Pass::Attention(a) => {
                let (one, sums) = (out.len() / rows.max(1), a.log_sums());
                for (r, out) in out.chunks_exact_mut(one).take(rows).enumerate() {
                    let of = [0, 1, 2].map(|i: usize| of[i].row(r));
                    let log_sums = before.get_mut(r * sums..(r + 1) * sums);
                    a.forward(0..a.heads, of, out, log_sums.unwrap_or_default());
                }
            }
            Pass::Concat(runs) => {
                let whole: usize = runs.iter().sum();
                let outer = of[0].width / runs[0];
                for r in 0..rows {
                    for o in 0..outer {
                        let mut at = (r * outer + o) * whole;
                        for (x, run) in of.iter().zip(runs) {
                            out[at..at + run].copy_from_slice(&x.row(r)[o * run..][..*run]);
                            at += run;
                        }
                    }
                }
            }
            Pass::Reduce(how, m, inner) => {
                let all = &of[0].data[..rows * of[0].width];
                for (x, y) in all
                    .chunks_exact(m * inner)
                    .zip(out.chunks_exact_mut(*inner))
                {
                    reduce(*how, x, y);
                }
            }
            Pass::Softmax {
                m,
                inner,
                logarithm,
            } => {
                let all = &of[0].data[..rows * of[0].width];
                let each = all
                    .chunks_exact(m * inner)
                    .zip(out.chunks_exact_mut(m * inner));
                each.for_each(|(x, y)| softmax(x, y, *inner, *logarithm));
            }
        }
    }

    /// Numbers per row that the backward pass needs beside operands and results.
    pub fn before(&self, width: usize) -> usize {
        match self {
            Pass::Dense(d) if d.activation.needs_input() => width,
            Pass::Attention(a) => a.log_sums(),
            Pass::Norm(n) => n.moments(width),
            _ => 0,
        }
    }

    /// Whether a backward pass reads an operand.
    pub fn reads(&self, which: usize) -> bool {
        match self {
            Pass::Element(f, _) => f.reads(which),
            Pass::Dense(_) | Pass::Convolve(_) | Pass::Norm(_) => which < 2,
            Pass::Products { .. } | Pass::Attention(_) | Pass::Reduce(..) => true,
            Pass::Embed { .. } => which == 0,
            Pass::Copy { .. } | Pass::Take { .. } | Pass::Concat(_) | Pass::Softmax { .. } => false,
        }
    }

    /// Whether a backward pass reads the result.
    pub fn reads_result(&self) -> bool {
        match self {
            Pass::Element(f, _) => f.reads_result(),
            Pass::Dense(d) => !matches!(d.activation, Activation::Identity | Activation::Gelu),
            Pass::Softmax { .. } | Pass::Reduce(..) => true,
            _ => false,
        }
    }

    /// Turn the gradient of what came out into what [`Pass::backward`] takes.
    pub fn prepare(&self, y: &[f32], before: &[f32], delta: &mut [f32]) {
        if let Pass::Dense(d) = self {
            let n = d.fan.1;
            let mut delta = Part::whole(delta, delta.len() / n, n);
            times_derivative(&mut delta, y, before, d.activation);
        }
    }

    /// Add the gradient with respect to an operand to `target`, whose rows are `stride` apart: 0 to sum over rows; `before` is what
    /// [`Pass::forward`] kept, or empty.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        which: usize,
        rows: usize,
        of: &[View],
        y: &[f32],
        before: &[f32],
        delta: &[f32],
        target: &mut [f32],
        stride: usize,
        first: bool,
        team: Option<&Team>,
    ) {
        let width = of[which].width;
        if let (Pass::Norm(n), 0) = (self, which)
            && (stride > 0 || rows == 1)
        {
            return backward_norm(n, rows, of, before, delta, target, stride, first);
        }
        if let (Pass::Element(f, spreads), true) = (self, first && stride > 0)
            && first_elements(*f, spreads, which, rows, of, y, delta, target)
        {
            return;
        }
        if let (Pass::Dense(d), 0) = (self, which) {
            let delta = Matrix::new(delta, rows * d.per_row, d.fan.1);
            let w = d.weights(of[1].data).transposed();
            return shared_product(target, delta, w, !first, d.shares(rows), team);
        }
        if first {
            target[..if stride == 0 { width } else { rows * width }].fill(0.0);
        }
        let out = Rows {
            data: target,
            stride,
            width,
        };
        match self {
            Pass::Element(f, spreads) => {
                backward_elements(*f, spreads, which, rows, of, y, delta, out.data, stride)
            }
            Pass::Dense(d) if which == 1 => {
                for part in &mut d.parts(out.data, 1) {
                    d.add_to_part(part, rows, of[0].data, delta);
                }
            }
            Pass::Dense(_) => crate::elementwise::add_column_sums(&mut out.data[..width], delta),
            Pass::Products { shape, pairs } => {
                add_products(*shape, pairs, which, rows, of, delta, out)
            }
            Pass::Copy { from, run } => add_copies(from, *run, rows, delta, out),
            Pass::Take { from, .. } => add_taken(from, rows, delta, out),
            Pass::Convolve(c) if which == 2 => {
                add_line_sums(delta, c.columns().1, &mut out.data[..width]);
            }
            Pass::Convolve(c) => {
                let (mut out, one) = (out, delta.len() / rows.max(1));
                for (r, delta) in delta.chunks_exact(one).take(rows).enumerate() {
                    match which {
                        0 => c.add_to_image(of[1].row(r), delta, out.row(r)),
                        _ => c.add_to_filters(of[0].row(r), delta, out.row(r)),
                    }
                }
            }
            Pass::Embed { words, width } => {
                let mut out = out;
                let one = of[0].width * width;
                for (r, delta) in delta.chunks_exact(one).take(rows).enumerate() {
                    let table = out.row(r);
                    for (d, i) in delta.chunks_exact(*width).zip(of[0].row(r)) {
                        if let Some(i) = word(*i, *words) {
                            add(&mut table[i * width..][..*width], d);
                        }
                    }
                }
            }
            Pass::Norm(n) if which == 0 => {
                backward_norm(n, rows, of, before, delta, out.data, stride, false);
            }
            Pass::Norm(n) => {
                add_to_channels(
                    n,
                    which == 2,
                    rows,
                    of,
                    before,
                    delta,
                    &mut out.data[..width],
                );
            }
            Pass::Attention(a) => {
                let (mut out, mut wanted) = (out, [false; 3]);
                wanted[which] = true;
                a.backward_rows(rows, of, before, delta, wanted, &mut |_, r, add| {
                    add(out.row(r))
                });
            }
            Pass::Concat(runs) => add_runs(runs, which, rows, delta, out),
            Pass::Reduce(how, m, inner) => {
                let x = &of[0].data[..rows * width];
                let each = x
                    .chunks_exact(m * inner)
                    .zip(out.data[..rows * width].chunks_exact_mut(m * inner))
                    .zip(y.chunks_exact(*inner).zip(delta.chunks_exact(*inner)));
                each.for_each(|((x, out), (y, d))| reduce_derivative(*how, x, y, d, out));
            }
            Pass::Softmax {
                m,
                inner,
                logarithm,
            } => {
                let page = m * inner;
                let each = y[..rows * width]
                    .chunks_exact(page)
                    .zip(delta.chunks_exact(page))
                    .zip(out.data.chunks_exact_mut(page));
                each.for_each(|((y, d), out)| softmax_derivative(y, d, out, *inner, *logarithm));
            }
        }
    }
}

/// The gradient with respect to an operand: rows that are `stride` apart, 0 to sum over them.
struct Rows<'a> {
    data: &'a mut [f32],
    stride: usize,
    width: usize,
}

impl Rows<'_> {
    #[inline]
    fn row(&mut self, r: usize) -> &mut [f32] {
        &mut self.data[r * self.stride..][..self.width]
    }
}

#[inline]
fn add_products(
    [m, n, k]: [usize; 3],
    pairs: &[(usize, usize)],
    which: usize,
    rows: usize,
    of: &[View],
    delta: &[f32],
    mut out: Rows,
) {
    for r in 0..rows {
        let (a, b, out) = (of[0].row(r), of[1].row(r), out.row(r));
        for (i, (x, y)) in pairs.iter().enumerate() {
            let d = Matrix::new(&delta[(r * pairs.len() + i) * m * n..], m, n);
            match which {
                0 => {
                    let right = Matrix::new(&b[*y..], k, n);
                    multiply(&mut out[*x..], d, right.transposed(), true);
                }
                _ => {
                    let left = Matrix::new(&a[*x..], m, k);
                    multiply(&mut out[*y..], left.transposed(), d, true);
                }
            }
        }
    }
}

#[inline]
fn add_copies(from: &[u32], run: usize, rows: usize, delta: &[f32], mut out: Rows) {
    let all = from.len() * run;
    for r in 0..rows {
        let d = &delta[r * all..][..all];
        let out = out.row(r);
        if run == 1 {
            d.iter().zip(from).for_each(|(d, i)| out[*i as usize] += *d);
            continue;
        }
        for (d, i) in d.chunks_exact(run).zip(from) {
            add(&mut out[*i as usize..][..run], d);
        }
    }
}

/// The row of a table that a number names.
fn word(number: f32, words: usize) -> Option<usize> {
    let i = number as usize;
    (number >= 0.0 && i < words).then_some(i)
}

#[inline]
fn add_taken(from: &[u32], rows: usize, delta: &[f32], mut out: Rows) {
    for (r, delta) in delta.chunks_exact(from.len()).take(rows).enumerate() {
        let out = out.row(r);
        for (d, i) in delta.iter().zip(from).filter(|(_, i)| **i != NOWHERE) {
            out[*i as usize] += d;
        }
    }
}

#[inline]
fn add_runs(runs: &[usize], which: usize, rows: usize, delta: &[f32], mut out: Rows) {
    let whole: usize = runs.iter().sum();
    let before: usize = runs[..which].iter().sum();
    let run = runs[which];
    let outer = out.width / run;
    for r in 0..rows {
        let out = out.row(r);
        for o in 0..outer {
            let at = (r * outer + o) * whole + before;
            add(&mut out[o * run..][..run], &delta[at..at + run]);
        }
    }
}
