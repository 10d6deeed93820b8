//! A block of chains in this machine's memory.
//!
//! A block of one chain has one workspace, whose threads share the work on it. A larger block has a workspace per chain and one more, whose threads
//! share the chains. Either way every chain has the same bits.

use super::report::{Slots, VIRIAL};
use super::{Draw, Engine, PerChain, Row, Vector, few};
use crate::error::Result;
use crate::kernels::map::{Kernel, Reduction};
use crate::rng::Stream;
use crate::target::{Energies, Target, Workspace};
use smallvec::SmallVec;
use std::ops::Range;

/// Elements that one thread works on at a time; fixed, so that sums have one order.
const PIECE: usize = 1 << 11;

/// The vectors of a kernel: few, so that no step allocates for them.
type Few<T> = SmallVec<[T; 4]>;

/// Numbers per gradient below which handing it to another thread costs more than computing it.
const WORTH_A_THREAD: usize = 20_000;

/// A block of chains in this machine's memory.
pub struct Host<'b, 'a> {
    target: &'b Target,
    rows: &'b mut [Row<'a>],
    work: &'b mut [Workspace],
    /// The step whose reports count; none if nothing counts.
    counts: Option<u64>,
    /// The slot of the virial.
    virial: Option<usize>,
}

impl<'b, 'a> Host<'b, 'a> {
    /// An engine for these chains, to which nobody listens.
    pub fn new(target: &'b Target, rows: &'b mut [Row<'a>], work: &'b mut [Workspace]) -> Self {
        for (row, work) in rows.iter().zip(&mut *work) {
            work.grad.resize(row.w.len(), 0.0);
        }
        Self {
            target,
            rows,
            work,
            counts: None,
            virial: None,
        }
    }

    /// From now on what is reported is that of this step, if it counts.
    pub fn listen(&mut self, slots: &Slots, counts: Option<u64>) {
        (self.counts, self.virial) = (counts, slots.find(VIRIAL));
    }

    #[inline]
    fn one(&mut self, c: usize) -> One<'_, 'a> {
        One {
            target: self.target,
            row: &mut self.rows[c],
            work: &mut self.work[c],
        }
    }

    /// Do something with every chain, one by one.
    fn each<R>(
        &mut self,
        mut f: impl FnMut(usize, &mut One<'_, 'a>) -> Result<R>,
    ) -> Result<PerChain<R>> {
        let mut out = PerChain::new();
        for c in 0..self.rows.len() {
            out.push(f(c, &mut self.one(c))?);
        }
        Ok(out)
    }

    /// As [`Host::each`], where nothing comes back.
    #[inline]
    fn all(&mut self, mut f: impl FnMut(usize, &mut One<'_, 'a>) -> Result<()>) -> Result<()> {
        for c in 0..self.rows.len() {
            f(c, &mut self.one(c))?;
        }
        Ok(())
    }

    /// Do something that goes through so many examples with every chain; side by side, if that is worth it.
    fn share(
        &mut self,
        examples: usize,
        f: impl Fn(usize, &mut One<'_, 'a>) -> Result<()> + Sync,
    ) -> Result<()> {
        let target = self.target;
        let worth = target.dim() * examples >= WORTH_A_THREAD;
        let shared = self
            .work
            .split_last_mut()
            .filter(|(_, own)| !own.is_empty());
        let Some((all, own)) = shared.filter(|(all, _)| worth && all.team.size() > 1) else {
            return self.all(f);
        };
        let rows = self.rows.iter_mut().zip(own).enumerate();
        let mut tasks: Vec<_> = rows
            .map(|(c, (row, work))| (c, One { target, row, work }, Ok(())))
            .collect();
        all.team
            .for_each(&mut tasks, |(c, one, result)| *result = f(*c, one));
        tasks.into_iter().try_for_each(|(_, _, result)| result)
    }

    /// Add a number to what a chain has reported.
    #[inline]
    fn enter(&mut self, chain: usize, slot: usize, value: f64) {
        let Some(step) = self.counts else {
            return;
        };
        let row = &mut self.rows[chain];
        row.sums[slot] += value;
        // The virial touches every parameter and every component of the gradient: one number tells of any NaN.
        if self.virial == Some(slot) && !value.is_finite() {
            row.broken.get_or_insert(step + 1);
        }
    }
}

/// One chain of a block.
struct One<'x, 'a> {
    target: &'x Target,
    row: &'x mut Row<'a>,
    work: &'x mut Workspace,
}

/// A vector that was taken out of its place.
enum Taken<'a> {
    Row(&'a mut [f32]),
    Buffer(Vec<f32>),
}

impl Taken<'_> {
    fn get(&mut self) -> &mut [f32] {
        match self {
            Taken::Row(x) => x,
            Taken::Buffer(x) => x,
        }
    }
}

/// A vector of a chain.
fn read<'s>(row: &'s Row, work: &'s Workspace, v: Vector) -> &'s [f32] {
    match v {
        Vector::Params => row.w,
        Vector::Gradient => &work.grad,
        Vector::State(k) => row.vectors[k],
        Vector::Scratch(k) => &work.extra[k],
    }
}

/// The pieces of a range.
fn pieces(range: &Range<usize>) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
    let (start, end) = (range.start, range.end);
    (0..range.len().div_ceil(PIECE)).map(move |i| {
        let at = start + i * PIECE;
        at..end.min(at + PIECE)
    })
}

impl<'a> One<'_, 'a> {
    /// Make sure that the scratch vectors among these exist.
    #[inline]
    fn prepare(&mut self, vectors: &[Vector]) {
        for v in vectors {
            if let Vector::Scratch(k) = *v {
                self.work.scratch(k, self.row.w.len());
            }
        }
    }

    #[inline]
    fn read(&self, v: Vector) -> &[f32] {
        read(self.row, self.work, v)
    }

    /// Take a vector out, so that it can be written while others are read.
    #[inline]
    fn take(&mut self, v: Vector) -> Taken<'a> {
        match v {
            Vector::Params => Taken::Row(std::mem::take(&mut self.row.w)),
            Vector::State(k) => Taken::Row(std::mem::take(&mut self.row.vectors[k])),
            Vector::Gradient => Taken::Buffer(std::mem::take(&mut self.work.grad)),
            Vector::Scratch(k) => Taken::Buffer(std::mem::take(&mut self.work.extra[k])),
        }
    }

    #[inline]
    fn put(&mut self, v: Vector, taken: Taken<'a>) {
        match (v, taken) {
            (Vector::Params, Taken::Row(x)) => self.row.w = x,
            (Vector::State(k), Taken::Row(x)) => self.row.vectors[k] = x,
            (Vector::Gradient, Taken::Buffer(x)) => self.work.grad = x,
            (Vector::Scratch(k), Taken::Buffer(x)) => self.work.extra[k] = x,
            _ => unreachable!("a vector is put back where it was taken from"),
        }
    }

    /// Write a vector while others are read.
    fn write<R>(&mut self, v: Vector, f: impl FnOnce(&Self, &mut [f32]) -> R) -> R {
        self.prepare(&[v]);
        let mut taken = self.take(v);
        let result = f(self, taken.get());
        self.put(v, taken);
        result
    }

    /// Energies and ∇U over all examples, by one of the target's ways.
    fn full_gradient(
        &mut self,
        compute: impl FnOnce(&Target, &[f32], &mut [f32], &mut Workspace) -> Result<Energies>,
    ) -> Result<()> {
        let mut grad = std::mem::take(&mut self.work.grad);
        let energies = compute(self.target, self.row.w, &mut grad, self.work);
        self.work.grad = grad;
        let energies = energies?;
        (self.row.energy, self.row.loss) = (energies.total, energies.loss);
        Ok(())
    }

    fn minibatch_gradient(&mut self, stream: &Stream, draw: Draw) -> Result<()> {
        let mut indices = std::mem::take(&mut self.work.indices);
        let mut grad = std::mem::take(&mut self.work.grad);
        draw.indices(stream, self.target.examples(), &mut indices);
        let loss = self
            .target
            .minibatch_gradient(self.row.w, &indices, &mut grad, self.work);
        self.work.indices = indices;
        self.work.grad = grad;
        self.row.loss = loss?;
        Ok(())
    }

    fn minibatch_loss(&mut self, stream: &Stream, draw: Draw) -> Result<()> {
        let mut indices = std::mem::take(&mut self.work.indices);
        draw.indices(stream, self.target.examples(), &mut indices);
        let loss = self.target.minibatch_loss(self.row.w, &indices, self.work);
        self.work.indices = indices;
        self.row.loss = loss?;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<()> {
        let energies = self.target.energies(self.row.w, self.work)?;
        (self.row.energy, self.row.loss) = (energies.total, energies.loss);
        Ok(())
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        stream: &Stream,
    ) {
        self.prepare(vectors);
        let (outs, ins) = vectors.split_at(kernel.outs.len());
        let mut taken: Few<_> = few(outs.iter().map(|v| self.take(*v)));
        {
            let read: Few<_> = few(ins.iter().map(|v| &self.read(*v)[range.clone()]));
            let mut written: Few<_> = few(taken.iter_mut().map(|t| &mut t.get()[range.clone()]));
            if self.work.team.size() == 1 || range.len() <= PIECE {
                (kernel.cpu)(&mut written, &read, scalars, stream, 0);
            } else {
                let mut cut: Few<_> = few(written.into_iter().map(|w| w.chunks_mut(PIECE)));
                let mut tasks: Vec<_> = pieces(&(0..range.len()))
                    .map(|piece| {
                        let outs: Few<_> = few(cut.iter_mut().filter_map(Iterator::next));
                        (piece, outs)
                    })
                    .collect();
                self.work.team.for_each(&mut tasks, |(piece, outs)| {
                    let ins: Few<_> = few(read.iter().map(|r| &r[piece.clone()]));
                    (kernel.cpu)(outs, &ins, scalars, stream, piece.start);
                });
            }
        }
        while let Some(t) = taken.pop() {
            self.put(outs[taken.len()], t);
        }
    }

    fn sum(&mut self, sum: &'static Reduction, vectors: &[Vector], range: Range<usize>) -> f64 {
        self.prepare(vectors);
        let part = |piece: &Range<usize>| {
            let ins: Few<_> = few(vectors.iter().map(|v| &self.read(*v)[piece.clone()]));
            (sum.cpu)(&ins)
        };
        if range.len() <= PIECE {
            return part(&range);
        }
        let mut parts: Vec<_> = pieces(&range).map(|p| (p, 0.0)).collect();
        self.work
            .team
            .for_each(&mut parts, |(piece, total)| *total = part(piece));
        sum.finish(parts.iter().map(|(_, total)| *total))
    }
}

/// `out_i = x_{i+1} - x_{i-1}`, cyclic.
fn rotate(x: &[f32], out: &mut [f32]) {
    let n = x.len();
    match x {
        [_] => out[0] = 0.0,
        [a, b] => out.copy_from_slice(&[*b, -a]),
        _ => {
            for (o, around) in out[1..].iter_mut().zip(x.windows(3)) {
                *o = around[2] - around[0];
            }
            (out[0], out[n - 1]) = (x[1] - x[n - 1], x[0] - x[n - 2]);
        }
    }
}

impl Engine for Host<'_, '_> {
    fn target(&self) -> &Target {
        self.target
    }

    fn vectors(&self) -> usize {
        self.rows.first().map_or(0, |r| r.vectors.len())
    }

    fn minibatch_gradient(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        self.share(draw.batch, |c, one| {
            one.minibatch_gradient(&streams[c], draw)
        })
    }

    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        self.share(draw.batch, |c, one| one.minibatch_loss(&streams[c], draw))
    }

    fn gradient(&mut self) -> Result<()> {
        self.share(self.target.examples(), |_, one| {
            one.full_gradient(Target::energies_and_gradient)
        })
    }

    fn gradient_at_anchor(&mut self) -> Result<()> {
        self.share(self.target.examples(), |_, one| {
            one.full_gradient(Target::energies_and_gradient_at_anchor)
        })
    }

    fn energies(&mut self) -> Result<PerChain<f64>> {
        Ok(few(self.rows.iter().map(|r| r.energy)))
    }

    fn evaluate(&mut self) -> Result<()> {
        self.share(self.target.examples(), |_, one| one.evaluate())
    }

    fn prior_precisions(&self) -> Vec<f64> {
        vec![self.target.prior().pull().0; self.rows.len()]
    }

    fn prior_gradient(&mut self, into: Vector) -> Result<()> {
        self.all(|_, one| {
            one.write(into, |one, out| {
                one.target.prior().gradient(one.read(Vector::Params), out)
            });
            Ok(())
        })
    }

    fn difference(&mut self, from: Vector, into: Vector, of: &[[Option<usize>; 2]]) -> Result<()> {
        self.all(|_, one| {
            one.prepare(&[from, into]);
            Ok(())
        })?;
        for (c, [plus, minus]) in of.iter().enumerate() {
            let mut taken = self.one(c).take(into);
            let out = taken.get();
            match plus {
                Some(p) => out.copy_from_slice(read(&self.rows[*p], &self.work[*p], from)),
                None => out.fill(0.0),
            }
            if let Some(m) = minus {
                let minus = read(&self.rows[*m], &self.work[*m], from);
                out.iter_mut().zip(minus).for_each(|(o, m)| *o -= *m);
            }
            self.one(c).put(into, taken);
        }
        Ok(())
    }

    fn rotate(&mut self, from: Vector, into: Vector) -> Result<()> {
        self.all(|_, one| {
            one.prepare(&[from]);
            one.write(into, |one, out| rotate(one.read(from), out));
            Ok(())
        })
    }

    fn download(&mut self, from: Vector, out: &mut [f32]) -> Result<()> {
        let dim = self.target.dim();
        self.all(|c, one| {
            out[c * dim..][..dim].copy_from_slice(one.read(from));
            Ok(())
        })
    }

    fn write(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        let dim = self.target.dim();
        self.all(|c, one| {
            one.write(into, |_, out| {
                out.copy_from_slice(&data[c * dim..][..dim]);
            });
            Ok(())
        })
    }

    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        self.all(|_, one| {
            one.write(into, |_, out| out.copy_from_slice(data));
            Ok(())
        })
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()> {
        let width = kernel.scalars.len();
        self.all(|c, one| {
            let stream = streams.get(c).unwrap_or(&Stream::NONE);
            let scalars = &scalars[c * width..(c + 1) * width];
            one.map(kernel, vectors, range.clone(), scalars, stream);
            Ok(())
        })
    }

    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<PerChain<f64>> {
        self.each(|_, one| Ok(one.sum(sum, vectors, range.clone())))
    }

    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()> {
        self.all(|c, one| {
            if which[c] && from != to {
                one.prepare(&[from]);
                one.write(to, |one, out| out.copy_from_slice(one.read(from)));
            }
            Ok(())
        })
    }

    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()> {
        let prior = self.target.prior();
        if !prior.has_walls() {
            return Ok(());
        }
        self.all(|_, one| {
            let mut taken = momentum.map(|v| (v, one.take(v)));
            let turned = taken.as_mut().map(|(_, t)| t.get());
            prior.reflect(one.row.w, turned);
            if let Some((v, t)) = taken {
                one.put(v, t);
            }
            Ok(())
        })
    }

    fn add_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()> {
        if self.counts.is_some() {
            for c in 0..self.rows.len() {
                let sum = self.one(c).sum(sum, vectors, range.clone());
                self.enter(c, slot, factor * sum);
            }
        }
        Ok(())
    }

    fn add_by_tensor(
        &mut self,
        slot: usize,
        first: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
    ) -> Result<()> {
        if self.counts.is_none() {
            return Ok(());
        }
        let target = self.target;
        let mut totals = vec![0.0; self.rows.len()];
        for (k, tensor) in target.layout().tensors().iter().enumerate() {
            let parts = self.sum(sum, vectors, tensor.range.clone())?;
            for (c, part) in parts.into_iter().enumerate() {
                self.enter(c, first + k, part / tensor.range.len() as f64);
                totals[c] += part;
            }
        }
        let dim = target.dim() as f64;
        let totals = totals.into_iter().enumerate();
        totals.for_each(|(c, total)| self.enter(c, slot, total / dim));
        Ok(())
    }

    fn add_loss(&mut self, slot: usize) -> Result<()> {
        for c in 0..self.rows.len() {
            self.enter(c, slot, self.rows[c].loss);
        }
        Ok(())
    }

    fn add(&mut self, slot: usize, values: &[f64]) -> Result<()> {
        let values = values.iter().enumerate();
        values.for_each(|(c, value)| self.enter(c, slot, *value));
        Ok(())
    }
}
