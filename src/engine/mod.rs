//! Engines: where the vectors of chains live and how they are worked on.
//!
//! A sampler says *what* is done to the vectors of its chains; an [`Engine`] does it. [`host`] has one chain in this machine's
//! memory, [`group`] chains that step together there, [`batched`] all chains of a run on an accelerator, which go through every
//! launch together. Samplers see any of them through [`Chains`], and are written once.

pub mod batched;
pub mod group;
pub mod host;
pub mod law;

use crate::error::Result;
use crate::kernels::map::{Kernel, Reduction};
use crate::kernels::update::{DISTANCE_DOT, DOT};
use crate::model::loss::Sums;
use crate::rng::{Purpose, Stream};
use crate::target::Target;
use std::ops::Range;

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

    /// Mean losses of minibatches drawn by the streams, for [`Engine::report_loss`].
    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()>;

    /// ∇U over all examples, into [`Vector::Gradient`].
    fn gradient(&mut self) -> Result<()>;

    /// The same, at a point that others have too, or will come back to: what is known of it need not be computed again.
    fn gradient_at_anchor(&mut self) -> Result<()> {
        self.gradient()
    }

    /// U where the last full gradient was taken, or the last [`Engine::evaluate`].
    fn energies(&mut self) -> Result<Vec<f64>>;

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
    ) -> Result<Vec<f64>>;

    /// Copy a vector of the chains for which `which` holds.
    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()>;

    /// Reflect parameters at the walls of the prior, if it has any, with their momenta.
    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()>;

    /// Report `factor` times a sum over the elements in `range` as the sampler's `slot`-th number. Does not wait.
    fn report_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()>;

    /// Report a sum over each tensor as its mean, from the slot `first` on, and the mean over all elements as the `slot`-th number. Reads the
    /// vectors once. Does not wait.
    fn report_by_tensor(
        &mut self,
        slot: usize,
        first: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
    ) -> Result<()>;

    /// Report the mean loss of the last minibatches, or of all examples if those were the last. Does not wait.
    fn report_loss(&mut self, slot: usize) -> Result<()>;

    /// Report numbers, one per chain.
    fn report(&mut self, slot: usize, values: &[f64]) -> Result<()>;
}

/// An engine that keeps its chains from step to step.
pub trait Resident: Engine {
    /// Write a vector of all chains, `[chains, N]`.
    fn write(&mut self, v: Vector, data: &[f32]) -> Result<()>;

    /// What was reported, summed over steps: `[chains, slots]`.
    fn info(&mut self) -> Result<Vec<f64>>;

    /// Let these be the sums of what was reported.
    fn set_info(&mut self, sums: &[f64]) -> Result<()>;

    /// Whether what is reported from now on is added up.
    fn listen(&mut self, on: bool);

    /// From now on the prior of a chain is so many times as strong, one number per chain. Fails where chains act on each other.
    fn set_prior_strengths(&mut self, strengths: &[f64]) -> Result<()>;

    /// s·L over all examples where the chains are, and R with its strength.
    fn likelihoods_and_priors(&mut self) -> Result<Vec<(f64, f64)>>;

    /// Sums of losses and errors over a split and its number of rows, per chain; none if the engine does not compute them itself.
    fn split_sums(&mut self, split: &str) -> Result<Option<(Vec<Sums>, usize)>>;
}

/// One chain of a group that steps together.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its number in the run; the key of its random streams.
    pub index: usize,
    /// Number of its temperature; chains of one group are replicas of each other.
    pub group: usize,
    /// Temperature at this step.
    pub temperature: f64,
    /// Why it cannot go on, once it cannot.
    pub failure: Option<String>,
}

/// Chains that step together, as a sampler sees them.
pub struct Chains<'a> {
    /// Where their vectors are.
    pub engine: &'a mut dyn Engine,
    /// Who they are.
    pub members: &'a mut [Member],
    /// The sampler's scalars, `[chains, scalars]`.
    pub scalars: &'a mut [f64],
    /// Steps done so far.
    pub step: u64,
    /// Steps of burn-in; samplers adapt only before this step.
    pub burn_in: u64,
    /// Seed of the run.
    pub seed: u64,
    /// The first slot of what is reported of the gradient that the step follows, if anything is; see `sampler::LOSSES`.
    pub losses: Option<usize>,
    /// What the virial is taken around, and where its parts go; around 0, and nowhere, if there is none.
    pub law: Option<law::Slots>,
}

impl Chains<'_> {
    /// Number of chains.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// N.
    pub fn dim(&self) -> usize {
        self.engine.target().dim()
    }

    /// The scalars of one chain.
    pub fn scalars(&mut self, chain: usize) -> &mut [f64] {
        let width = self.scalars.len() / self.members.len().max(1);
        &mut self.scalars[chain * width..(chain + 1) * width]
    }

    /// One scalar of every chain.
    pub fn scalar(&self, which: usize) -> Vec<f64> {
        let width = self.scalars.len() / self.members.len().max(1);
        let of = |c| self.scalars[c * width + which];
        (0..self.len()).map(of).collect()
    }

    /// The `sub`-th random stream of every chain for one purpose at this step.
    pub fn streams(&self, purpose: Purpose, sub: u16) -> Vec<Stream> {
        let stream =
            |m: &Member| Stream::new(self.seed, purpose, m.index, self.step).sub_stream(sub);
        self.members.iter().map(stream).collect()
    }

    /// A uniform number per chain.
    pub fn uniform(&self, purpose: Purpose) -> Vec<f64> {
        let streams = self.streams(purpose, 0);
        streams.iter().map(|s| s.uniform(0)).collect()
    }

    /// A number per chain.
    pub fn each<T>(&self, f: impl Fn(&Member) -> T) -> Vec<T> {
        self.members.iter().map(f).collect()
    }

    /// ∇U on fresh minibatches, into [`Vector::Gradient`].
    pub fn minibatch_gradient(&mut self, purpose: Purpose, sub: u16, draw: Draw) -> Result<()> {
        let streams = self.streams(purpose, sub);
        self.engine.minibatch_gradient(&streams, draw)
    }

    /// Mean losses of fresh minibatches, for [`Engine::report_loss`].
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
        let mut rows = Vec::with_capacity(self.len() * kernel.scalars.len());
        for (c, m) in self.members.iter().enumerate() {
            rows.extend_from_slice(scalars(c, m).as_ref());
        }
        self.engine.map(kernel, vectors, range, &rows, streams)
    }

    /// A sum per chain over all elements. Waits for the result.
    pub fn sum(&mut self, sum: &'static Reduction, vectors: &[Vector]) -> Result<Vec<f64>> {
        let all = 0..self.dim();
        self.engine.sum(sum, vectors, all)
    }

    /// Copy a vector of every chain.
    pub fn copy(&mut self, from: Vector, to: Vector) -> Result<()> {
        let all = vec![true; self.len()];
        self.engine.copy(from, to, &all)
    }

    /// Report the virial estimate of T, (1/N) Σ (w-c)_i g_i, of parameters and a gradient taken there, and all that belongs to it:
    /// the same per tensor and, within walls, the scales. See [`law`].
    pub fn report_virial(&mut self, slot: usize, gradient: Vector) -> Result<()> {
        let n = self.dim() as f64;
        let Some(law) = self.law else {
            return self.report_sum(slot, &DOT, &[Vector::Params, gradient], 1.0 / n);
        };
        if law.scale.is_some() {
            let found = self.virials(gradient)?;
            return self.report_virials(slot, &found);
        }
        let vectors = [Vector::Params, law.centre, gradient];
        match law.tensors {
            Some(first) => self
                .engine
                .report_by_tensor(slot, first, &DISTANCE_DOT, &vectors),
            None => self.report_sum(slot, &DISTANCE_DOT, &vectors, 1.0 / n),
        }
    }

    /// Σ f_i g_i and Σ ∂f_i/∂w_i of every chain, for each tensor. Waits for the result.
    pub fn virials(&mut self, gradient: Vector) -> Result<Vec<Vec<[f64; 2]>>> {
        let (law, tensors) = (self.law, self.tensors());
        let of = |k: usize| {
            let range = self.tensor(k);
            let Some(law) = law else {
                let size = range.len() as f64;
                let vectors = [Vector::Params, gradient];
                let sums = self.engine.sum(&DOT, &vectors, range)?;
                return Ok(sums.into_iter().map(|s| [s, size]).collect());
            };
            let mut walls = self.engine.target().prior().walls().iter();
            let wall = walls.find(|(r, _)| r.contains(&range.start));
            let half = wall.map_or(f64::INFINITY, |(_, half)| f64::from(*half));
            law::in_box(self, law.centre, gradient, range, half)
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
    pub fn report_virials(&mut self, slot: usize, found: &[Vec<[f64; 2]>]) -> Result<()> {
        let all = self.of_all(found);
        let law = self.law;
        let sizes: Vec<_> = (0..self.tensors()).map(|k| self.tensor(k).len()).collect();
        let mut report = |slot: Option<usize>, of: &[[f64; 2]], part: usize, size: f64| {
            let values: Vec<_> = of.iter().map(|f| f[part] / size).collect();
            slot.map_or(Ok(()), |slot| self.engine.report(slot, &values))
        };
        report(Some(slot), &all, 0, 1.0)?;
        let Some(law) = law else { return Ok(()) };
        report(law.scale, &all, 1, 1.0)?;
        for (k, (tensor, size)) in found.iter().zip(sizes).enumerate() {
            let size = size as f64;
            report(law.tensors.map(|first| first + k), tensor, 0, size)?;
            report(law.tensor_scales.map(|first| first + k), tensor, 1, size)?;
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

    /// Report `factor` times a sum over all elements as the sampler's `slot`-th number. Does not wait.
    pub fn report_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        factor: f64,
    ) -> Result<()> {
        let all = 0..self.dim();
        self.engine.report_sum(slot, sum, vectors, all, factor)
    }

    /// Report a number of every chain.
    pub fn report(&mut self, slot: usize, f: impl Fn(&Member) -> f64) -> Result<()> {
        let values = self.each(f);
        self.engine.report(slot, &values)
    }

    /// Report one of the sampler's scalars.
    pub fn report_scalar(&mut self, slot: usize, which: usize) -> Result<()> {
        let values = self.scalar(which);
        self.engine.report(slot, &values)
    }

    /// Mark a chain as failed.
    pub fn fail(&mut self, chain: usize, reason: impl Into<String>) {
        self.members[chain].failure.get_or_insert(reason.into());
    }
}
