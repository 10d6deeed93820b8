//! One pass over some rows: from the numbers of its operands to its own, and from its gradient to theirs.

use super::element::Element;
use super::operation::Reduce;
use crate::kernels::elementwise::{Activation, bias_and_activation, times_derivative};
use crate::kernels::gemm::{Matrix, Part, multiply};
use crate::kernels::math;
use crate::kernels::update::add;

/// Numbers of an operand: those of row r begin at `r·stride`, which is 0 where all rows have the same.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub width: usize,
}

impl<'a> View<'a> {
    fn row(&self, r: usize) -> &'a [f32] {
        &self.data[r * self.stride..][..self.width]
    }
}

/// How the numbers of an operand are repeated to be as many as the result has.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// They are as many.
    Same,
    /// There is one.
    One,
    /// All of them, again and again.
    Again,
    /// As this list says.
    Listed(Vec<u32>),
}

impl Spread {
    fn fill(&self, from: &[f32], out: &mut [f32]) {
        match self {
            Spread::Same => out.copy_from_slice(from),
            Spread::One => out.fill(from[0]),
            Spread::Again => out
                .chunks_exact_mut(from.len())
                .for_each(|o| o.copy_from_slice(from)),
            Spread::Listed(at) => out
                .iter_mut()
                .zip(at)
                .for_each(|(o, i)| *o = from[*i as usize]),
        }
    }

    /// Add up what was repeated.
    fn gather(&self, from: &[f32], out: &mut [f32]) {
        match self {
            Spread::Same => add(out, from),
            Spread::One => out[0] += from.iter().sum::<f32>(),
            Spread::Again => from.chunks_exact(out.len()).for_each(|f| add(out, f)),
            Spread::Listed(at) => from
                .iter()
                .zip(at)
                .for_each(|(f, i)| out[*i as usize] += *f),
        }
    }
}

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

/// How many elements are done at a time.
const CHUNK: usize = 2048;

impl Pass {
    /// Compute `out`, of so many rows; `before` keeps what an activation had as its input.
    pub fn forward(&self, rows: usize, of: &[View], out: &mut [f32], before: &mut [f32]) {
        match self {
            Pass::Element(f, spreads) => forward_elements(*f, spreads, rows, of, out),
            Pass::Dense(d) => {
                let (k, n) = d.fan;
                let rows = rows * d.per_row;
                let a = Matrix::new(of[0].data, rows, k);
                multiply(out, a, d.weights(of[1].data), false);
                let bias = of.get(2).map_or(&[][..], |b| &b.data[..n]);
                bias_and_activation(out, bias, n, d.activation, before);
            }
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

    /// Turn the gradient of what came out into what [`Pass::backward`] takes.
    pub fn prepare(&self, y: &[f32], before: &[f32], delta: &mut [f32]) {
        if let Pass::Dense(d) = self {
            times_derivative(delta, y, before, d.activation);
        }
    }

    /// Add the gradient with respect to an operand to `target`, whose rows are `stride` apart: 0 to sum over rows.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        which: usize,
        rows: usize,
        of: &[View],
        y: &[f32],
        delta: &[f32],
        target: &mut [f32],
        stride: usize,
        first: bool,
    ) {
        let width = of[which].width;
        if let (Pass::Dense(d), 0) = (self, which) {
            let delta = Matrix::new(delta, rows * d.per_row, d.fan.1);
            return multiply(target, delta, d.weights(of[1].data).transposed(), !first);
        }
        if first {
            target[..if stride == 0 { width } else { rows * width }].fill(0.0);
        }
        match self {
            Pass::Element(f, spreads) => {
                backward_elements(*f, spreads, which, rows, of, y, delta, target, stride)
            }
            Pass::Dense(d) if which == 1 => {
                for part in &mut d.parts(target, 1) {
                    d.add_to_part(part, rows, of[0].data, delta);
                }
            }
            Pass::Dense(_) => {
                crate::kernels::elementwise::add_column_sums(&mut target[..width], delta)
            }
            Pass::Products { shape, pairs } => {
                let [m, n, k] = *shape;
                for r in 0..rows {
                    let (a, b) = (of[0].row(r), of[1].row(r));
                    for (i, (x, y)) in pairs.iter().enumerate() {
                        let d = Matrix::new(&delta[(r * pairs.len() + i) * m * n..], m, n);
                        let out = &mut target[r * stride..][..width];
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
            Pass::Copy { from, run } => {
                let all = from.len() * run;
                for r in 0..rows {
                    let d = &delta[r * all..][..all];
                    let out = &mut target[r * stride..][..width];
                    for (d, i) in d.chunks_exact(*run).zip(from) {
                        add(&mut out[*i as usize..][..*run], d);
                    }
                }
            }
            Pass::Concat(runs) => {
                let whole: usize = runs.iter().sum();
                let before: usize = runs[..which].iter().sum();
                let run = runs[which];
                let outer = width / run;
                for r in 0..rows {
                    for o in 0..outer {
                        let at = (r * outer + o) * whole + before;
                        let out = &mut target[r * stride + o * run..][..run];
                        add(out, &delta[at..at + run]);
                    }
                }
            }
            Pass::Reduce(how, m, inner) => {
                let x = &of[0].data[..rows * width];
                let each = x
                    .chunks_exact(m * inner)
                    .zip(target[..rows * width].chunks_exact_mut(m * inner))
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
                    .zip(target.chunks_exact_mut(page));
                each.for_each(|((y, d), out)| softmax_derivative(y, d, out, *inner, *logarithm));
            }
        }
    }
}

/// Whether all rows can be taken as one.
fn as_one(spreads: &[Spread], of: &[View]) -> bool {
    spreads.iter().zip(of).all(|(s, v)| match s {
        Spread::Same => v.stride > 0,
        Spread::One => v.stride == 0,
        _ => false,
    })
}

/// The elements of operands that belong to one row, or to a piece of all rows taken as one.
struct Elements<'a> {
    spreads: &'a [Spread],
    of: &'a [View<'a>],
    /// Those that are repeated.
    room: Vec<Vec<f32>>,
}

impl<'a> Elements<'a> {
    fn new(spreads: &'a [Spread], of: &'a [View<'a>], width: usize) -> Self {
        let mut room: Vec<_> = spreads
            .iter()
            .map(|s| match s {
                Spread::Same => Vec::new(),
                _ => vec![0.0; width],
            })
            .collect();
        // What all rows share is repeated once.
        for ((s, v), out) in spreads.iter().zip(of).zip(&mut room) {
            if v.stride == 0 && *s != Spread::Same {
                s.fill(&v.data[..v.width], out);
            }
        }
        Self { spreads, of, room }
    }

    /// Those of a row.
    fn row(&mut self, r: usize) -> [&[f32]; 3] {
        for ((s, v), out) in self.spreads.iter().zip(self.of).zip(&mut self.room) {
            if v.stride > 0 && *s != Spread::Same {
                s.fill(v.row(r), out);
            }
        }
        let mut out = [&[][..]; 3];
        for (i, (s, v)) in self.spreads.iter().zip(self.of).enumerate() {
            out[i] = match s {
                Spread::Same => v.row(r),
                _ => &self.room[i],
            };
        }
        out
    }

    /// Those of a piece of all rows taken as one.
    fn piece(&self, start: usize, count: usize) -> [&[f32]; 3] {
        let mut out = [&[][..]; 3];
        for (i, (s, v)) in self.spreads.iter().zip(self.of).enumerate() {
            out[i] = match s {
                Spread::Same => &v.data[start..start + count],
                _ => &self.room[i][..count],
            };
        }
        out
    }
}

fn forward_elements(f: Element, spreads: &[Spread], rows: usize, of: &[View], out: &mut [f32]) {
    if rows == 0 {
        return;
    }
    let width = out.len() / rows;
    if as_one(spreads, of) {
        let all = Elements::new(spreads, of, CHUNK.min(out.len()));
        for (k, out) in out.chunks_mut(CHUNK).enumerate() {
            f.value(&all.piece(k * CHUNK, out.len())[..spreads.len()], out);
        }
        return;
    }
    let mut all = Elements::new(spreads, of, width);
    for (r, out) in out.chunks_exact_mut(width).enumerate() {
        f.value(&all.row(r)[..spreads.len()], out);
    }
}

#[allow(clippy::too_many_arguments)]
fn backward_elements(
    f: Element,
    spreads: &[Spread],
    which: usize,
    rows: usize,
    of: &[View],
    y: &[f32],
    delta: &[f32],
    target: &mut [f32],
    stride: usize,
) {
    if rows == 0 {
        return;
    }
    let width = delta.len() / rows;
    let count = spreads.len();
    let own = of[which].width;
    if as_one(spreads, of) {
        let all = Elements::new(spreads, of, CHUNK.min(delta.len()));
        let mut found = vec![0.0; CHUNK.min(delta.len())];
        for (k, delta) in delta.chunks(CHUNK).enumerate() {
            let start = k * CHUNK;
            let found = &mut found[..delta.len()];
            let y = &y[start..start + delta.len()];
            f.derivative(
                which,
                &all.piece(start, delta.len())[..count],
                y,
                delta,
                found,
            );
            match spreads[which] {
                Spread::Same => add(&mut target[start..start + delta.len()], found),
                _ => target[0] += found.iter().sum::<f32>(),
            }
        }
        return;
    }
    let mut all = Elements::new(spreads, of, width);
    let mut found = vec![0.0; width];
    for (r, delta) in delta.chunks_exact(width).enumerate() {
        let y = &y[r * width..][..width];
        f.derivative(which, &all.row(r)[..count], y, delta, &mut found);
        spreads[which].gather(&found, &mut target[r * stride..][..own]);
    }
}

/// `[m, inner]` to `[inner]`.
fn reduce(how: Reduce, x: &[f32], out: &mut [f32]) {
    let inner = out.len();
    if inner == 1 && how == Reduce::Sum {
        out[0] = x.iter().map(|x| f64::from(*x)).sum::<f64>() as f32;
        return;
    }
    out.copy_from_slice(&x[..inner]);
    for row in x.chunks_exact(inner).skip(1) {
        let pairs = out.iter_mut().zip(row);
        match how {
            Reduce::Sum => pairs.for_each(|(o, x)| *o += *x),
            // A NaN stays visible.
            Reduce::Max => {
                pairs.for_each(|(o, x)| *o = if x.is_nan() || *x > *o { *x } else { *o })
            }
            Reduce::Min => {
                pairs.for_each(|(o, x)| *o = if x.is_nan() || *x < *o { *x } else { *o })
            }
        }
    }
}

fn reduce_derivative(how: Reduce, x: &[f32], y: &[f32], delta: &[f32], out: &mut [f32]) {
    let inner = y.len();
    if how == Reduce::Sum {
        return out.chunks_exact_mut(inner).for_each(|o| add(o, delta));
    }
    for i in 0..inner {
        let column = || x[i..].iter().step_by(inner);
        let equal = column().filter(|x| **x == y[i]).count();
        let share = delta[i] / equal as f32;
        for (o, x) in out[i..].iter_mut().step_by(inner).zip(column()) {
            if *x == y[i] {
                *o += share;
            }
        }
    }
}

/// Over the first axis of `[m, inner]`.
fn softmax(x: &[f32], out: &mut [f32], inner: usize, logarithm: bool) {
    for i in 0..inner {
        let column = || x[i..].iter().step_by(inner);
        let most = column().fold(f32::NEG_INFINITY, |m, x| if *x > m { *x } else { m });
        let mut sum = 0.0;
        for (o, x) in out[i..].iter_mut().step_by(inner).zip(column()) {
            let e = math::exp(*x - most);
            sum += e;
            *o = if logarithm { *x - most } else { e };
        }
        let (shift, scale) = match logarithm {
            true => (math::ln(sum), 1.0),
            false => (0.0, 1.0 / sum),
        };
        let column = out[i..].iter_mut().step_by(inner);
        column.for_each(|o| *o = (*o - shift) * scale);
    }
}

fn softmax_derivative(y: &[f32], delta: &[f32], out: &mut [f32], inner: usize, logarithm: bool) {
    for i in 0..inner {
        let each = || {
            y[i..]
                .iter()
                .step_by(inner)
                .zip(delta[i..].iter().step_by(inner))
        };
        let sum: f32 = match logarithm {
            true => each().map(|(_, d)| d).sum(),
            false => each().map(|(y, d)| y * d).sum(),
        };
        for (o, (y, d)) in out[i..].iter_mut().step_by(inner).zip(each()) {
            *o += match logarithm {
                true => d - math::exp(*y) * sum,
                false => y * (d - sum),
            };
        }
    }
}
