//! One chain in this machine's memory; the threads of its workspace share the work.

use super::{Chains, Draw, Engine, Member, Vector};
use crate::error::Result;
use crate::kernels::map::{Kernel, Reduction};
use crate::rng::Stream;
use crate::target::{Energies, Target, Workspace};
use std::ops::Range;

/// Elements that one thread works on at a time; fixed, so that sums have one order.
const PIECE: usize = 1 << 11;

/// One chain.
pub struct Host<'a, 'v> {
    target: &'a Target,
    w: &'a mut [f32],
    vectors: &'a mut [&'v mut [f32]],
    work: &'a mut Workspace,
    info: &'a mut [f64],
    pub(super) loss: f64,
    pub(super) energy: f64,
}

/// One chain's row of the batched state `[chains, N]` in this machine's memory.
pub struct Chain<'a> {
    /// Its number in the run; the key of its random streams.
    pub index: usize,
    /// Number of its temperature.
    pub group: usize,
    /// Steps done so far.
    pub step: u64,
    /// Seed of the run.
    pub seed: u64,
    /// Temperature at this step.
    pub temperature: f64,
    /// Steps of burn-in; samplers adapt only before this step.
    pub burn_in: u64,
    /// Parameters, length N.
    pub w: &'a mut [f32],
    /// The sampler's vectors, each of length N, in the order in which it names them.
    pub vectors: Vec<&'a mut [f32]>,
    /// The sampler's scalars, in the order in which it names them.
    pub scalars: &'a mut [f64],
}

impl Chain<'_> {
    /// Let a sampler work on this chain alone; it reports into `info`. Gives back why the chain failed, if it did.
    pub fn lend(
        &mut self,
        target: &Target,
        work: &mut Workspace,
        info: &mut [f64],
        f: impl FnOnce(&mut Chains) -> Result<()>,
    ) -> Result<Option<String>> {
        let mut members = [Member {
            index: self.index,
            group: self.group,
            temperature: self.temperature,
            failure: None,
        }];
        let mut host = Host::new(target, self.w, &mut self.vectors, work, info);
        f(&mut Chains {
            engine: &mut host,
            members: &mut members,
            scalars: self.scalars,
            step: self.step,
            burn_in: self.burn_in,
            seed: self.seed,
            losses: None,
            law: None,
        })?;
        let [member] = members;
        Ok(member.failure)
    }
}

impl<'a, 'v> Host<'a, 'v> {
    /// An engine for one chain.
    pub fn new(
        target: &'a Target,
        w: &'a mut [f32],
        vectors: &'a mut [&'v mut [f32]],
        work: &'a mut Workspace,
        info: &'a mut [f64],
    ) -> Self {
        work.grad.resize(w.len(), 0.0);
        Self {
            target,
            w,
            vectors,
            work,
            info,
            loss: f64::NAN,
            energy: f64::NAN,
        }
    }

    /// Make sure that the scratch vectors among these exist.
    fn prepare(&mut self, vectors: &[Vector]) {
        for v in vectors {
            if let Vector::Scratch(k) = *v {
                self.work.scratch(k, self.w.len());
            }
        }
    }

    /// A vector.
    pub fn read(&self, v: Vector) -> &[f32] {
        match v {
            Vector::Params => self.w,
            Vector::Gradient => &self.work.grad,
            Vector::State(k) => self.vectors[k],
            Vector::Scratch(k) => &self.work.extra[k],
        }
    }

    /// Take a vector out, so that it can be written while others are read.
    fn take(&mut self, v: Vector) -> Taken<'a, 'v> {
        match v {
            Vector::Params => Taken::Params(std::mem::take(&mut self.w)),
            Vector::State(k) => Taken::State(std::mem::take(&mut self.vectors[k])),
            Vector::Gradient => Taken::Buffer(std::mem::take(&mut self.work.grad)),
            Vector::Scratch(k) => Taken::Buffer(std::mem::take(&mut self.work.extra[k])),
        }
    }

    fn put(&mut self, v: Vector, taken: Taken<'a, 'v>) {
        match (v, taken) {
            (Vector::Params, Taken::Params(x)) => self.w = x,
            (Vector::State(k), Taken::State(x)) => self.vectors[k] = x,
            (Vector::Gradient, Taken::Buffer(x)) => self.work.grad = x,
            (Vector::Scratch(k), Taken::Buffer(x)) => self.work.extra[k] = x,
            _ => unreachable!("a vector is put back where it was taken from"),
        }
    }

    /// Energies and ∇U over all examples, by one of the target's ways.
    fn full_gradient(
        &mut self,
        compute: impl FnOnce(&Target, &[f32], &mut [f32], &mut Workspace) -> Result<Energies>,
    ) -> Result<()> {
        let mut grad = std::mem::take(&mut self.work.grad);
        let energies = compute(self.target, self.w, &mut grad, self.work);
        self.work.grad = grad;
        let energies = energies?;
        (self.energy, self.loss) = (energies.total, energies.loss);
        Ok(())
    }
}

/// A vector that was taken out of its place.
enum Taken<'a, 'v> {
    Params(&'a mut [f32]),
    State(&'v mut [f32]),
    Buffer(Vec<f32>),
}

impl Taken<'_, '_> {
    fn get(&mut self) -> &mut [f32] {
        match self {
            Taken::Params(x) => x,
            Taken::State(x) => x,
            Taken::Buffer(x) => x,
        }
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

impl Engine for Host<'_, '_> {
    fn target(&self) -> &Target {
        self.target
    }

    fn vectors(&self) -> usize {
        self.vectors.len()
    }

    fn minibatch_gradient(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        let mut indices = std::mem::take(&mut self.work.indices);
        let mut grad = std::mem::take(&mut self.work.grad);
        draw.indices(&streams[0], self.target.examples(), &mut indices);
        let loss = self
            .target
            .minibatch_gradient(self.w, &indices, &mut grad, self.work);
        self.work.indices = indices;
        self.work.grad = grad;
        self.loss = loss?;
        Ok(())
    }

    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        let mut indices = std::mem::take(&mut self.work.indices);
        draw.indices(&streams[0], self.target.examples(), &mut indices);
        let loss = self.target.minibatch_loss(self.w, &indices, self.work);
        self.work.indices = indices;
        self.loss = loss?;
        Ok(())
    }

    fn gradient(&mut self) -> Result<()> {
        self.full_gradient(Target::energies_and_gradient)
    }

    fn gradient_at_anchor(&mut self) -> Result<()> {
        self.full_gradient(Target::energies_and_gradient_at_anchor)
    }

    fn energies(&mut self) -> Result<Vec<f64>> {
        Ok(vec![self.energy])
    }

    fn evaluate(&mut self) -> Result<()> {
        let energies = self.target.energies(self.w, self.work)?;
        (self.energy, self.loss) = (energies.total, energies.loss);
        Ok(())
    }

    fn prior_precisions(&self) -> Vec<f64> {
        vec![self.target.prior().pull().0]
    }

    fn prior_gradient(&mut self, into: Vector) -> Result<()> {
        self.prepare(&[into]);
        let mut taken = self.take(into);
        self.target.prior().gradient(self.w, taken.get());
        self.put(into, taken);
        Ok(())
    }

    fn difference(&mut self, _: Vector, _: Vector, _: &[[Option<usize>; 2]]) -> Result<()> {
        anyhow::bail!("this sampler couples chains, which must step together")
    }

    fn rotate(&mut self, from: Vector, into: Vector) -> Result<()> {
        self.prepare(&[from, into]);
        let mut taken = self.take(into);
        let (out, x) = (taken.get(), self.read(from));
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
        self.put(into, taken);
        Ok(())
    }

    fn download(&mut self, from: Vector, out: &mut [f32]) -> Result<()> {
        out.copy_from_slice(self.read(from));
        Ok(())
    }

    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        self.prepare(&[into]);
        let mut taken = self.take(into);
        taken.get().copy_from_slice(data);
        self.put(into, taken);
        Ok(())
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()> {
        self.prepare(vectors);
        let (outs, ins) = vectors.split_at(kernel.outs.len());
        let stream = streams.first().copied().unwrap_or(Stream::NONE);
        let mut taken: Vec<_> = outs.iter().map(|v| self.take(*v)).collect();
        let read: Vec<_> = ins.iter().map(|v| &self.read(*v)[range.clone()]).collect();
        let mut written: Vec<_> = taken
            .iter_mut()
            .map(|t| &mut t.get()[range.clone()])
            .collect();
        if self.work.team.size() == 1 || range.len() <= PIECE {
            (kernel.cpu)(&mut written, &read, scalars, &stream, 0);
        } else {
            let mut cut: Vec<_> = written.into_iter().map(|w| w.chunks_mut(PIECE)).collect();
            let mut tasks: Vec<_> = pieces(&(0..range.len()))
                .map(|piece| {
                    let outs: Vec<_> = cut.iter_mut().filter_map(Iterator::next).collect();
                    (piece, outs)
                })
                .collect();
            self.work.team.for_each(&mut tasks, |(piece, outs)| {
                let ins: Vec<_> = read.iter().map(|r| &r[piece.clone()]).collect();
                (kernel.cpu)(outs, &ins, scalars, &stream, piece.start);
            });
        }
        for (v, t) in outs.iter().zip(taken) {
            self.put(*v, t);
        }
        Ok(())
    }

    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        self.prepare(vectors);
        let read: Vec<_> = vectors.iter().map(|v| self.read(*v)).collect();
        let part = |piece: &Range<usize>| {
            let ins: Vec<_> = read.iter().map(|r| &r[piece.clone()]).collect();
            (sum.cpu)(&ins)
        };
        if range.len() <= PIECE {
            return Ok(vec![part(&range)]);
        }
        let mut parts: Vec<_> = pieces(&range).map(|p| (p, 0.0)).collect();
        self.work
            .team
            .for_each(&mut parts, |(piece, total)| *total = part(piece));
        Ok(vec![sum.finish(parts.iter().map(|(_, total)| *total))])
    }

    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()> {
        if which[0] && from != to {
            self.prepare(&[from, to]);
            let mut taken = self.take(to);
            taken.get().copy_from_slice(self.read(from));
            self.put(to, taken);
        }
        Ok(())
    }

    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()> {
        if !self.target.prior().has_walls() {
            return Ok(());
        }
        let mut taken = momentum.map(|v| (v, self.take(v)));
        let turned = taken.as_mut().map(|(_, t)| t.get());
        self.target.prior().reflect(self.w, turned);
        if let Some((v, t)) = taken {
            self.put(v, t);
        }
        Ok(())
    }

    fn report_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()> {
        self.info[slot] = factor * self.sum(sum, vectors, range)?[0];
        Ok(())
    }

    fn report_by_tensor(
        &mut self,
        slot: usize,
        first: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
    ) -> Result<()> {
        let target = self.target;
        let mut total = 0.0;
        for (k, tensor) in target.layout().tensors().iter().enumerate() {
            let part = self.sum(sum, vectors, tensor.range.clone())?[0];
            self.info[first + k] = part / tensor.range.len() as f64;
            total += part;
        }
        self.info[slot] = total / self.w.len() as f64;
        Ok(())
    }

    fn report_loss(&mut self, slot: usize) -> Result<()> {
        self.info[slot] = self.loss;
        Ok(())
    }

    fn report(&mut self, slot: usize, values: &[f64]) -> Result<()> {
        self.info[slot] = values[0];
        Ok(())
    }
}
