//! Engines: where the vectors of chains live and how they are worked on.
//!
//! A sampler says *what* is done to the vectors of its chains; an [`Engine`] does it. `host` has a block of chains in this machine's
//! memory, `batched` all chains of a run on an accelerator, which go through every launch together. Samplers see either through
//! [`Chains`], and are written once.

pub(crate) mod batched;
pub(crate) mod block;
pub(crate) mod host;
pub(crate) mod law;
pub mod report;

use crate::error::Result;
use crate::kernels::map::{Kernel, Reduction};
use crate::kernels::update::{DISTANCE_DOT, DOT};
use crate::rng::{Purpose, Stream};
use crate::target::Target;
pub use block::{Block, ChainRef, Member, Row};
use report::{Report, Slots, VIRIAL, VIRIAL_BY_TENSOR, VIRIAL_SCALE, VIRIAL_SCALE_BY_TENSOR};
use smallvec::SmallVec;
use std::ops::Range;

/// An entry per chain of a block. On this machine's threads that is mostly one, for which nothing is allocated.
pub type PerChain<T> = SmallVec<[T; 1]>;

/// A short list. That of a crate's `collect` is not inlined.
#[inline]
pub(crate) fn few<T, const N: usize>(items: impl Iterator<Item = T>) -> SmallVec<[T; N]>
where
    [T; N]: smallvec::Array<Item = T>,
{
    let mut out = SmallVec::new();
    for item in items {
        out.push(item);
    }
    out
}

/// A vector `[chains, N]` of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vector {
    /// Parameters w.
    Params,
    /// The last gradient of U.
    Gradient,
    /// The sampler's k-th state vector.
    State(usize),
    /// A vector that is only needed within a step; what it holds at its start is anything.
    Scratch(usize),
}

/// How a minibatch is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// m, its number of examples.
    pub batch: usize,
    /// Whether an example can be in it twice.
    pub replacement: bool,
}

impl Draw {
    /// m examples, each drawn independently of the others.
    pub const fn independent(batch: usize) -> Self {
        Self {
            batch,
            replacement: true,
        }
    }

    /// The examples drawn from n by a stream.
    pub fn indices(self, stream: &Stream, n: usize, out: &mut Vec<u32>) {
        out.resize(self.batch, 0);
        match self.replacement {
            true => stream.indices(n, out),
            false => stream.subset(n, out),
        }
    }
}

/// Holds the vectors of its chains and works on all of them at once. Lists of numbers have one entry (or one row) per chain.
pub trait Engine {
    /// What is sampled.
    fn target(&self) -> &Target;

    /// Number of state vectors.
    fn vectors(&self) -> usize;

    /// ∇U on minibatches drawn by the streams, into [`Vector::Gradient`].
    fn minibatch_gradient(&mut self, streams: &[Stream], draw: Draw) -> Result<()>;

    /// Mean losses of minibatches drawn by the streams, for [`Chains::report_loss`].
    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()>;

    /// ∇U over all examples, into [`Vector::Gradient`].
    fn gradient(&mut self) -> Result<()>;

    /// The same, at a point that others have too, or will come back to: what is known of it need not be computed again.
    fn gradient_at_anchor(&mut self) -> Result<()> {
        self.gradient()
    }

    /// U where the last full gradient was taken, or the last [`Engine::evaluate`].
    fn energies(&mut self) -> Result<PerChain<f64>>;

    /// Compute U over all examples, without its gradient.
    fn evaluate(&mut self) -> Result<()>;

    /// The precision of the prior, per chain.
    fn prior_precisions(&self) -> Vec<f64>;

    /// ∇R, the prior's part of the gradient, into a vector.
    fn prior_gradient(&mut self, into: Vector) -> Result<()>;

    /// `into` of every chain becomes `from` of the first chain named for it minus that of the second; a chain that is not named counts 0.
    /// Fails where chains do not step together.
    fn difference(&mut self, from: Vector, into: Vector, of: &[[Option<usize>; 2]]) -> Result<()>;

    /// `into_i` becomes `from_{i+1} - from_{i-1}`, cyclic; of two, `from_1` and `-from_0`; of one, 0.
    fn rotate(&mut self, from: Vector, into: Vector) -> Result<()>;

    /// Give every chain the same vector.
    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()>;

    /// Give each chain its row of `[chains, N]`.
    fn write(&mut self, into: Vector, data: &[f32]) -> Result<()>;

    /// Copy a vector of all chains out, `[chains, N]`.
    fn download(&mut self, from: Vector, out: &mut [f32]) -> Result<()>;

    /// Run a kernel over the elements in `range`: vectors in the order written, read; scalars `[chains, k]`; a stream per chain if the
    /// kernel makes noise. Within a range the noise is that of elements counted from its start.
    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()>;

    /// A sum per chain over the elements in `range`. Waits for the result.
    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<PerChain<f64>>;

    /// Copy a vector of the chains for which `which` holds.
    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()>;

    /// Reflect parameters at the walls of the prior, if it has any, with their momenta.
    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()>;

    /// Add `factor` times a sum over the elements in `range` to `slot`, if this step's reports count. Does not wait.
    fn add_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()>;

    /// Add a sum over each tensor as its mean to the slots from `first` on, and the mean over all elements to `slot`. Reads the
    /// vectors once. Does not wait.
    fn add_by_tensor(
        &mut self,
        slot: usize,
        first: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
    ) -> Result<()>;

    /// Add the mean loss of the last minibatches, or of all examples if those were the last, to `slot`. Does not wait.
    fn add_loss(&mut self, slot: usize) -> Result<()>;

    /// Add numbers to `slot`, one per chain.
    fn add(&mut self, slot: usize, values: &[f64]) -> Result<()>;
}

/// Chains that step together, as a sampler sees them.
pub struct Chains<'a, 'c> {
    /// Where their vectors are.
    pub engine: &'a mut dyn Engine,
    /// The chains.
    pub members: &'a mut [Member<'c>],
    /// Steps done so far.
    pub step: u64,
    /// Steps of burn-in; samplers adapt only before this step.
    pub burn_in: u64,
    /// Seed of the run.
    pub seed: u64,
    /// Where reports are added up, and what the virial is taken around.
    pub slots: &'a Slots,
    /// Which slots something was reported to in this step.
    pub reported: &'a mut [bool],
}

impl Chains<'_, '_> {
    /// Number of chains.
    #[inline]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// N.
    #[inline]
    pub fn dim(&self) -> usize {
        self.engine.target().dim()
    }

    /// The sampler's scalars of one chain.
    pub fn scalars(&mut self, chain: usize) -> &mut [f64] {
        self.members[chain].scalars
    }

    /// One scalar of every chain.
    pub fn scalar(&self, which: usize) -> PerChain<f64> {
        self.each(|m| m.scalars[which])
    }

    /// The `sub`-th random stream of every chain for one purpose at this step.
    pub fn streams(&self, purpose: Purpose, sub: u16) -> PerChain<Stream> {
        let stream =
            |m: &Member| Stream::new(self.seed, purpose, m.index, self.step).sub_stream(sub);
        few(self.members.iter().map(stream))
    }

    /// A uniform number per chain.
    pub fn uniform(&self, purpose: Purpose) -> PerChain<f64> {
        let streams = self.streams(purpose, 0);
        few(streams.iter().map(|s| s.uniform(0)))
    }

    /// A number per chain.
    pub fn each<T>(&self, f: impl Fn(&Member) -> T) -> PerChain<T> {
        few(self.members.iter().map(f))
    }

    /// ∇U on fresh minibatches, into [`Vector::Gradient`].
    pub fn minibatch_gradient(&mut self, purpose: Purpose, sub: u16, draw: Draw) -> Result<()> {
        let streams = self.streams(purpose, sub);
        self.engine.minibatch_gradient(&streams, draw)
    }

    /// Mean losses of fresh minibatches, for [`Chains::report_loss`].
    pub fn minibatch_loss(&mut self, purpose: Purpose, sub: u16, draw: Draw) -> Result<()> {
        let streams = self.streams(purpose, sub);
        self.engine.minibatch_loss(&streams, draw)
    }

    /// Run a kernel over all elements; `scalars` gives the kernel's scalars for a chain.
    pub fn map<R: AsRef<[f32]>>(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        scalars: impl Fn(usize, &Member) -> R,
    ) -> Result<()> {
        self.map_range(kernel, vectors, 0..self.dim(), scalars, &[])
    }

    /// Run a kernel that makes noise over all elements.
    pub fn map_with_noise<R: AsRef<[f32]>>(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        (purpose, sub): (Purpose, u16),
        scalars: impl Fn(usize, &Member) -> R,
    ) -> Result<()> {
        let streams = self.streams(purpose, sub);
        self.map_range(kernel, vectors, 0..self.dim(), scalars, &streams)
    }

    /// Run a kernel over some elements, with these streams if it makes noise.
    pub fn map_range<R: AsRef<[f32]>>(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: impl Fn(usize, &Member) -> R,
        streams: &[Stream],
    ) -> Result<()> {
        let mut rows = SmallVec::<[f32; 8]>::with_capacity(self.len() * kernel.scalars.len());
        for (c, m) in self.members.iter().enumerate() {
            scalars(c, m).as_ref().iter().for_each(|x| rows.push(*x));
        }
        self.engine.map(kernel, vectors, range, &rows, streams)
    }

    /// A sum per chain over all elements. Waits for the result.
    pub fn sum(&mut self, sum: &'static Reduction, vectors: &[Vector]) -> Result<PerChain<f64>> {
        let all = 0..self.dim();
        self.engine.sum(sum, vectors, all)
    }

    /// Copy a vector of every chain.
    pub fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        let all = self.each(|_| true);
        self.engine.copy(from, to, &all)
    }

    /// Report the virial estimate of T, (1/N) Σ (w-c)_i g_i, of parameters and a gradient taken there, and all that belongs to it:
    /// the same per tensor and, within walls, the scales. See `law`.
    pub fn report_virial(&mut self, gradient: Vector) -> Result<()> {
        let (Some(centre), Some(slot)) = (self.slots.centre, self.slot(VIRIAL)?) else {
            let per = 1.0 / self.dim() as f64;
            return self.report_sum(VIRIAL, &DOT, &[Vector::Params, gradient], per);
        };
        if self.slots.find(VIRIAL_SCALE).is_some() {
            let found = self.virials(gradient)?;
            return self.report_virials(&found);
        }
        let vectors = [Vector::Params, centre, gradient];
        match self.vector_slot(VIRIAL_BY_TENSOR) {
            Some(first) => self
                .engine
                .add_by_tensor(slot, first, &DISTANCE_DOT, &vectors),
            None => {
                let (all, per) = (0..self.dim(), 1.0 / self.dim() as f64);
                self.engine.add_sum(slot, &DISTANCE_DOT, &vectors, all, per)
            }
        }
    }

    /// Σ f_i g_i and Σ ∂f_i/∂w_i of every chain, for each tensor. Waits for the result.
    pub fn virials(&mut self, gradient: Vector) -> Result<Vec<Vec<[f64; 2]>>> {
        let (centre, tensors) = (self.slots.centre, self.tensors());
        let of = |k: usize| {
            let range = self.tensor(k);
            let Some(centre) = centre else {
                let size = range.len() as f64;
                let vectors = [Vector::Params, gradient];
                let sums = self.engine.sum(&DOT, &vectors, range)?;
                return Ok(sums.into_iter().map(|s| [s, size]).collect());
            };
            let mut walls = self.engine.target().prior().walls().iter();
            let wall = walls.find(|(r, _)| r.contains(&range.start));
            let half = wall.map_or(f64::INFINITY, |(_, half)| f64::from(*half));
            law::in_box(self, centre, gradient, range, half)
        };
        (0..tensors).map(of).collect()
    }

    /// (1/N) Σ f_i g_i and (1/N) Σ ∂f_i/∂w_i of every chain. Waits for the result.
    pub fn virial(&mut self, gradient: Vector) -> Result<Vec<[f64; 2]>> {
        let found = self.virials(gradient)?;
        Ok(self.of_all(&found))
    }

    /// The parts of each tensor, put together.
    fn of_all(&self, found: &[Vec<[f64; 2]>]) -> Vec<[f64; 2]> {
        let n = self.dim() as f64;
        let total = |c: usize, part: usize| found.iter().map(|t| t[c][part]).sum::<f64>() / n;
        (0..self.len())
            .map(|c| [total(c, 0), total(c, 1)])
            .collect()
    }

    /// Report what [`Chains::virials`] found.
    pub fn report_virials(&mut self, found: &[Vec<[f64; 2]>]) -> Result<()> {
        let all = self.of_all(found);
        let part = |of: &[[f64; 2]], part: usize, size: f64| -> Vec<f64> {
            of.iter().map(|f| f[part] / size).collect()
        };
        self.report_values(VIRIAL, &part(&all, 0, 1.0))?;
        if let Some(slot) = self.vector_slot(VIRIAL_SCALE) {
            self.engine.add(slot, &part(&all, 1, 1.0))?;
        }
        for (which, report) in [VIRIAL_BY_TENSOR, VIRIAL_SCALE_BY_TENSOR]
            .into_iter()
            .enumerate()
        {
            let Some(first) = self.vector_slot(report) else {
                continue;
            };
            for (k, tensor) in found.iter().enumerate() {
                let values = part(tensor, which, self.tensor(k).len() as f64);
                self.engine.add(first + k, &values)?;
            }
        }
        Ok(())
    }

    /// How many tensors the parameters are.
    fn tensors(&self) -> usize {
        self.engine.target().layout().tensors().len()
    }

    /// The elements of the k-th tensor.
    fn tensor(&self, k: usize) -> Range<usize> {
        self.engine.target().layout().tensors()[k].range.clone()
    }

    #[inline]
    fn note(&mut self, slot: usize) {
        self.reported
            .iter_mut()
            .skip(slot)
            .take(1)
            .for_each(|r| *r = true);
    }

    /// The slot of a number that is now reported; none where nobody listens.
    #[inline]
    fn slot(&mut self, report: Report) -> Result<Option<usize>> {
        let found = self.slots.of(report)?;
        found.into_iter().for_each(|slot| self.note(slot));
        Ok(found)
    }

    /// The first slot of a vector that is now reported, if it is.
    fn vector_slot(&mut self, report: Report) -> Option<usize> {
        let found = self.slots.find(report);
        found.into_iter().for_each(|slot| self.note(slot));
        found
    }

    /// Report `factor` times a sum over all elements. Does not wait.
    pub fn report_sum(
        &mut self,
        report: Report,
        sum: &'static Reduction,
        vectors: &[Vector],
        factor: f64,
    ) -> Result<()> {
        let all = 0..self.dim();
        match self.slot(report)? {
            Some(slot) => self.engine.add_sum(slot, sum, vectors, all, factor),
            None => Ok(()),
        }
    }

    /// Report the mean loss of the last minibatches, or of all examples if those were the last. Does not wait.
    pub fn report_loss(&mut self, report: Report) -> Result<()> {
        match self.slot(report)? {
            Some(slot) => self.engine.add_loss(slot),
            None => Ok(()),
        }
    }

    /// Report numbers, one per chain.
    pub fn report_values(&mut self, report: Report, values: &[f64]) -> Result<()> {
        match self.slot(report)? {
            Some(slot) => self.engine.add(slot, values),
            None => Ok(()),
        }
    }

    /// Report a number of every chain.
    pub fn report(&mut self, report: Report, f: impl Fn(&Member) -> f64) -> Result<()> {
        let values = self.each(f);
        self.report_values(report, &values)
    }

    /// Report one of the sampler's scalars.
    pub fn report_scalar(&mut self, report: Report, which: usize) -> Result<()> {
        self.report(report, |m| m.scalars[which])
    }

    /// Mark a chain as failed.
    pub fn fail(&mut self, chain: usize, reason: impl Into<String>) {
        self.members[chain].failure.get_or_insert(reason.into());
    }
}
