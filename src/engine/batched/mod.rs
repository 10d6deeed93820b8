//! All chains of a run on an accelerator: every launch and every product is batched over the chains.
//!
//! Nothing is read back within a step, but for the numbers that a sampler asks for ([`Engine::sum`], [`Engine::energies`]). What a
//! sampler reports is added up on the device until [`Batched::fetch_sums`].

mod memory;
mod network;

use super::report::{Slots, VIRIAL};
use super::{Draw, Engine, Row, Vector};
use crate::error::Result;
use crate::kernels::device::{Arg, Device, Pointer};
use crate::kernels::map::{Kernel, Reduction};
use crate::model::loss::Sums;
use crate::rng::Stream;
use crate::target::{Rows, Target, Workspace};
use memory::{Buffer, bytes, bytes_mut};
use network::{Network, Which};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Kernels that do not come from samplers.
const STATIC: &str = concat!(
    include_str!("../../kernels/device/prelude.cu"),
    include_str!("../../kernels/device/network.cu")
);

/// The names of those kernels.
fn names() -> Vec<&'static str> {
    let parts = STATIC.split("__global__ void ").skip(1);
    parts.filter_map(|p| p.split('(').next()).collect()
}

/// All chains of a run.
pub struct Batched<'d> {
    device: &'d dyn Device,
    target: &'d Target,
    chains: usize,
    dim: usize,
    params: Buffer<'d>,
    gradient: Buffer<'d>,
    state: Vec<Buffer<'d>>,
    scratch: BTreeMap<usize, Buffer<'d>>,
    network: Option<Network<'d>>,
    centre: Option<Buffer<'d>>,
    /// The prior's precision per chain, on the device and here as a factor; empty where all have the same.
    precisions: Buffer<'d>,
    strengths: Vec<f64>,
    compiled: HashSet<&'static str>,
    scalars: Buffer<'d>,
    streams: Buffer<'d>,
    indices: Buffer<'d>,
    partials: Buffer<'d>,
    which: Buffer<'d>,
    /// Sums of the losses (first the chains' losses, then their errors) of the last pass over examples.
    sums: Buffer<'d>,
    /// Examples in that pass.
    rows: usize,
    /// What samplers reported, `[chains, slots]`, summed over steps: on the device, and what was known here.
    info: Buffer<'d>,
    info_here: Vec<f64>,
    /// Slots whose sums so far are on the device.
    info_elsewhere: Vec<bool>,
    /// Whether the rows of the block have the sums, and not the device.
    sums_away: bool,
    slots: usize,
    /// The slot of the virial.
    virial: Option<usize>,
    /// After which step a chain's virial was not finite for the first time, 0 if it always was: on the device, and as known here.
    broken: Buffer<'d>,
    broken_here: Vec<u64>,
    /// The step whose reports count; none if nothing counts.
    counts: Option<u64>,
    /// Buffers for targets that have no network.
    work: Workspace,
}

const PARTS: usize = Reduction::PARTIALS;

impl<'d> Batched<'d> {
    /// Put `chains` chains of a target on a device, with as many state vectors and numbers to report as the sampler has.
    pub fn new(
        device: &'d dyn Device,
        target: &'d Target,
        chains: usize,
        vectors: usize,
        slots: &Slots,
    ) -> Result<Self> {
        let dim = target.dim();
        let vector = || Buffer::new(device, 4 * chains * dim);
        device.compile(STATIC, &names())?;
        let centre = target.prior().pull().1;
        let mut out = Self {
            device,
            target,
            chains,
            dim,
            params: vector()?,
            gradient: vector()?,
            state: (0..vectors).map(|_| vector()).collect::<Result<_>>()?,
            scratch: BTreeMap::new(),
            network: None,
            centre: match centre {
                [] => None,
                c => Some(Buffer::of(device, c)?),
            },
            precisions: Buffer::new(device, 4 * chains)?,
            strengths: Vec::new(),
            compiled: HashSet::new(),
            scalars: Buffer::new(device, 4 * chains * 8)?,
            streams: Buffer::new(device, 20 * chains)?,
            indices: Buffer::new(device, 0)?,
            partials: Buffer::new(device, 8 * chains * PARTS)?,
            which: Buffer::new(device, chains)?,
            sums: Buffer::new(device, 16 * chains)?,
            rows: 1,
            info: Buffer::new(device, 8 * chains * slots.len())?,
            info_here: vec![0.0; chains * slots.len()],
            info_elsewhere: vec![false; slots.len()],
            sums_away: true,
            slots: slots.len(),
            virial: slots.find(VIRIAL),
            broken: Buffer::of(device, &vec![0u64; chains])?,
            broken_here: vec![0; chains],
            counts: None,
            work: Workspace::default(),
        };
        if let Some(net) = target.potential().dense() {
            out.network = Some(Network::new(device, net, chains)?);
        }
        Ok(out)
    }

    fn at(&mut self, v: Vector) -> Result<Pointer> {
        Ok(match v {
            Vector::Params => self.params.at,
            Vector::Gradient => self.gradient.at,
            Vector::State(k) => self.state[k].at,
            Vector::Scratch(k) => {
                if let Some(buffer) = self.scratch.get(&k) {
                    return Ok(buffer.at);
                }
                let buffer = Buffer::new(self.device, 4 * self.chains * self.dim)?;
                self.scratch.entry(k).or_insert(buffer).at
            }
        })
    }

    fn compile(&mut self, name: &'static str, source: impl FnOnce() -> String) -> Result<()> {
        if self.compiled.insert(name) {
            let prelude = include_str!("../../kernels/device/prelude.cu");
            self.device
                .compile(&format!("{prelude}\n{}", source()), &[name])?;
        }
        Ok(())
    }

    /// Elements per chain, stride, chains: how kernels of `kernels::map` begin; then the vectors from `range` on.
    fn arguments(&mut self, vectors: &[Vector], range: &Range<usize>) -> Result<Vec<Arg>> {
        let mut args = vec![
            Arg::Long(range.len() as u64),
            Arg::Long(self.dim as u64),
            Arg::Int(self.chains as i32),
        ];
        for v in vectors {
            args.push(Arg::Pointer(self.at(*v)?.offset(4 * range.start)));
        }
        Ok(args)
    }

    /// Partial results of a reduction, left on the device.
    fn reduce(
        &mut self,
        reduction: &'static Reduction,
        vectors: &[Vector],
        range: &Range<usize>,
    ) -> Result<()> {
        self.compile(reduction.name, || reduction.cuda())?;
        let mut args = self.arguments(vectors, range)?;
        args.push(Arg::Pointer(self.partials.at));
        self.device
            .launch(reduction.name, PARTS, self.chains, &args)
    }

    /// Add up partial results `[chains, parts]`, into `out` (one number per chain, `stride` apart); those after a step whose sums are not
    /// finite are noted in `broken`.
    fn finish(
        &self,
        (partials, parts): (Pointer, usize),
        (out, stride, add): (Pointer, usize, bool),
        factor: f64,
        (step, broken): (u64, Pointer),
    ) -> Result<()> {
        let args = [
            Arg::Pointer(partials),
            Arg::Int(self.chains as i32),
            Arg::Int(parts as i32),
            Arg::Pointer(out),
            Arg::Long(stride as u64),
            Arg::Long(factor.to_bits()),
            Arg::Int(add.into()),
            Arg::Long(step),
            Arg::Pointer(broken),
        ];
        self.device.launch("finish_sums", self.chains, 1, &args)
    }

    /// Add partial results `[chains, parts]`, times `factor`, to what is reported in this step.
    fn enter(&self, partials: (Pointer, usize), slot: usize, factor: f64) -> Result<()> {
        let Some(step) = self.counts else {
            return Ok(());
        };
        let out = self.info.at.offset(8 * slot);
        let broken = match self.virial == Some(slot) {
            true => self.broken.at,
            false => Pointer::NULL,
        };
        self.finish(
            partials,
            (out, self.slots, true),
            factor,
            (step + 1, broken),
        )
    }

    fn download_sums(&self) -> Result<Vec<Sums>> {
        let mut both = vec![0f64; 2 * self.chains];
        self.device.download(self.sums.at, bytes_mut(&mut both))?;
        let (losses, errors) = both.split_at(self.chains);
        let sums = losses.iter().zip(errors).map(|(l, e)| Sums {
            loss: *l,
            errors: *e,
        });
        Ok(sums.collect())
    }

    fn prior_energies(&mut self) -> Result<Vec<f64>> {
        let mut energies = self.plain_prior_energies()?;
        for (energy, strength) in energies.iter_mut().zip(&self.strengths) {
            *energy *= strength;
        }
        Ok(energies)
    }

    /// R of every chain, of strength 1.
    fn plain_prior_energies(&mut self) -> Result<Vec<f64>> {
        // Few numbers per parameter and rarely needed: here, from a copy.
        if self.target.prior().has_walls() || self.centre.is_some() {
            let mut w = vec![0f32; self.chains * self.dim];
            self.download(Vector::Params, &mut w)?;
            let each = w
                .chunks_exact(self.dim)
                .map(|w| self.target.prior().energy(w));
            return Ok(each.collect());
        }
        let half = 0.5 * self.target.prior().pull().0;
        let squares = self.sum(
            &crate::kernels::update::DOT,
            &[Vector::Params, Vector::Params],
            0..self.dim,
        )?;
        Ok(squares.into_iter().map(|s| half * s).collect())
    }

    /// Losses (and gradients) of a target that has no network here: on the host, chain by chain.
    fn on_host(&mut self, drawn: Option<(&[Stream], Draw)>, gradient: bool) -> Result<()> {
        let mut w = vec![0f32; self.chains * self.dim];
        let mut g = vec![0f32; w.len()];
        self.download(Vector::Params, &mut w)?;
        let (mut losses, mut errors) = (Vec::new(), Vec::new());
        for (c, (w, g)) in w.chunks(self.dim).zip(g.chunks_mut(self.dim)).enumerate() {
            let mut indices = Vec::new();
            let rows = match drawn {
                None => Rows::All,
                Some((streams, draw)) => {
                    draw.indices(&streams[c], self.target.examples(), &mut indices);
                    Rows::Indices(&indices)
                }
            };
            let g = gradient.then_some(g);
            let sums = self.target.potential().sums(w, rows, g, &mut self.work)?;
            losses.push(sums.loss);
            errors.push(sums.errors);
        }
        if gradient {
            self.write(Vector::Gradient, &g)?;
        }
        losses.extend(errors);
        self.rows = drawn.map_or(self.target.examples(), |(_, draw)| draw.batch);
        self.device.upload(bytes(&losses), self.sums.at)
    }

    /// Sums of losses over rows, and with `gradient` the summed gradients.
    fn pass(&mut self, which: Which, gradient: bool) -> Result<()> {
        let Some(mut network) = self.network.take() else {
            return self.on_host(None, gradient);
        };
        let rows = network.pass(self, which, gradient);
        self.network = Some(network);
        self.rows = rows?;
        Ok(())
    }

    /// Sums of losses over minibatches, and with `gradient` the summed gradients.
    fn minibatch(&mut self, streams: &[Stream], draw: Draw, gradient: bool) -> Result<()> {
        let batch = draw.batch;
        if self.network.is_none() {
            return self.on_host(Some((streams, draw)), gradient);
        }
        self.device.upload(bytes(streams), self.streams.at)?;
        let indices = self.indices.grow(4 * self.chains * batch)?;
        let args = [
            Arg::Int(self.target.examples() as u32 as i32),
            Arg::Int(batch as i32),
            Arg::Pointer(self.streams.at),
            Arg::Int(self.chains as i32),
            Arg::Pointer(indices),
        ];
        let (kernel, threads) = match draw.replacement {
            true => ("draw_indices", batch.div_ceil(4)),
            false => ("draw_subset", batch),
        };
        self.device.launch(kernel, threads, self.chains, &args)?;
        self.pass(Which::Drawn(batch), gradient)
    }

    /// From the summed loss gradient to ∇U.
    fn finish_gradient(&mut self) -> Result<()> {
        let scale = (self.target.scale() / self.rows as f64) as f32;
        self.pull(self.gradient.at, scale)
    }

    /// `out ← scale·out + ∇R`; scaled by 0, what was there does not matter.
    fn pull(&self, out: Pointer, scale: f32) -> Result<()> {
        let precision = self.target.prior().pull().0 as f32;
        let args = [
            Arg::Pointer(out),
            Arg::Pointer(self.params.at),
            Arg::Int(self.chains as i32),
            Arg::Long(self.dim as u64),
            Arg::Long(self.dim as u64),
            Arg::Float(scale),
            Arg::Float(precision),
            Arg::Pointer(match self.strengths[..] {
                [] => Pointer::NULL,
                _ => self.precisions.at,
            }),
            Arg::Pointer(self.centre.as_ref().map_or(Pointer::NULL, |c| c.at)),
        ];
        self.device
            .launch("scale_and_pull", self.dim, self.chains, &args)
    }
}

impl Engine for Batched<'_> {
    fn target(&self) -> &Target {
        self.target
    }

    fn vectors(&self) -> usize {
        self.state.len()
    }

    fn minibatch_gradient(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        self.minibatch(streams, draw, true)?;
        self.finish_gradient()
    }

    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        self.minibatch(streams, draw, false)
    }

    fn gradient(&mut self) -> Result<()> {
        self.pass(Which::All(0), true)?;
        self.finish_gradient()
    }

    fn evaluate(&mut self) -> Result<()> {
        self.pass(Which::All(0), false)
    }

    fn prior_precisions(&self) -> Vec<f64> {
        let precision = self.target.prior().pull().0;
        match self.strengths[..] {
            [] => vec![precision; self.chains],
            _ => self.strengths.iter().map(|s| precision * s).collect(),
        }
    }

    fn prior_gradient(&mut self, into: Vector) -> Result<()> {
        let out = self.at(into)?;
        self.pull(out, 0.0)
    }

    fn difference(&mut self, from: Vector, into: Vector, of: &[[Option<usize>; 2]]) -> Result<()> {
        let (from, into) = (self.at(from)?, self.at(into)?);
        let number = |c: &Option<usize>| c.map_or(-1, |c| c as i32);
        let numbers: Vec<i32> = of.iter().flatten().map(number).collect();
        let at = self.scalars.grow(4 * numbers.len())?;
        self.device.upload(bytes(&numbers), at)?;
        let args = [
            Arg::Pointer(from),
            Arg::Pointer(into),
            Arg::Long(self.dim as u64),
            Arg::Int(self.chains as i32),
            Arg::Pointer(at),
        ];
        self.device
            .launch("difference", self.dim, self.chains, &args)
    }

    fn rotate(&mut self, from: Vector, into: Vector) -> Result<()> {
        let args = [
            Arg::Pointer(self.at(from)?),
            Arg::Pointer(self.at(into)?),
            Arg::Long(self.dim as u64),
            Arg::Int(self.chains as i32),
        ];
        self.device.launch("rotate", self.dim, self.chains, &args)
    }

    fn download(&mut self, v: Vector, data: &mut [f32]) -> Result<()> {
        let at = self.at(v)?;
        self.device.download(at, bytes_mut(data))
    }

    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        self.write(into, &data.repeat(self.chains))
    }

    fn energies(&mut self) -> Result<Vec<f64>> {
        let sums = self.download_sums()?;
        let priors = self.prior_energies()?;
        let total = |(s, r)| self.target.energies_from(s, r).total;
        Ok(sums.into_iter().zip(priors).map(total).collect())
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()> {
        self.compile(kernel.name, || kernel.cuda())?;
        let mut args = self.arguments(vectors, &range)?;
        let at = self.scalars.grow(size_of_val(scalars))?;
        self.device.upload(bytes(scalars), at)?;
        if !streams.is_empty() {
            self.device.upload(bytes(streams), self.streams.at)?;
        }
        args.extend([Arg::Pointer(at), Arg::Pointer(self.streams.at)]);
        // A thread does four elements of a block of 64.
        let width = range.len().div_ceil(64) * 16;
        self.device.launch(kernel.name, width, self.chains, &args)
    }

    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        self.reduce(sum, vectors, &range)?;
        let mut partials = vec![0f64; self.chains * PARTS];
        self.device
            .download(self.partials.at, bytes_mut(&mut partials))?;
        let finish = |p: &[f64]| sum.finish(p.iter().copied());
        Ok(partials.chunks_exact(PARTS).map(finish).collect())
    }

    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let (from, to) = (self.at(from)?, self.at(to)?);
        if which.iter().all(|w| *w) {
            return self.device.copy(from, to, 4 * self.chains * self.dim);
        }
        let which: Vec<u8> = which.iter().map(|w| (*w).into()).collect();
        self.device.upload(&which, self.which.at)?;
        let args = [
            Arg::Pointer(from),
            Arg::Pointer(to),
            Arg::Long(self.dim as u64),
            Arg::Int(self.chains as i32),
            Arg::Pointer(self.which.at),
        ];
        self.device
            .launch("copy_where", self.dim, self.chains, &args)
    }

    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()> {
        let momentum = match momentum {
            Some(v) => self.at(v)?,
            None => Pointer::NULL,
        };
        for (range, half) in self.target.prior().walls() {
            let args = [
                Arg::Pointer(self.params.at),
                Arg::Pointer(momentum),
                Arg::Int(self.chains as i32),
                Arg::Long(self.dim as u64),
                Arg::Long(range.start as u64),
                Arg::Long(range.len() as u64),
                Arg::Float(*half),
            ];
            self.device
                .launch("reflect", range.len(), self.chains, &args)?;
        }
        Ok(())
    }

    fn add_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()> {
        if self.counts.is_none() {
            return Ok(());
        }
        self.reduce(sum, vectors, &range)?;
        self.enter((self.partials.at, PARTS), slot, factor)
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
        for (k, tensor) in target.layout().tensors().iter().enumerate() {
            self.reduce(sum, vectors, &tensor.range)?;
            self.enter(
                (self.partials.at, PARTS),
                first + k,
                1.0 / tensor.range.len() as f64,
            )?;
            self.enter((self.partials.at, PARTS), slot, 1.0 / self.dim as f64)?;
        }
        Ok(())
    }

    fn add_loss(&mut self, slot: usize) -> Result<()> {
        self.enter((self.sums.at, 1), slot, 1.0 / self.rows as f64)
    }

    fn add(&mut self, slot: usize, values: &[f64]) -> Result<()> {
        let Some(step) = self.counts else {
            return Ok(());
        };
        // A sum that began before an interruption goes on where it is added up, so that its bits stay the same.
        if std::mem::take(&mut self.info_elsewhere[slot]) {
            let mut sums = vec![0f64; self.chains * self.slots];
            self.device.download(self.info.at, bytes_mut(&mut sums))?;
            for c in 0..self.chains {
                let at = c * self.slots + slot;
                self.info_here[at] = std::mem::take(&mut sums[at]);
            }
            self.device.upload(bytes(&sums), self.info.at)?;
        }
        for (c, v) in values.iter().enumerate() {
            self.info_here[c * self.slots + slot] += v;
            let broken = &mut self.broken_here[c];
            if self.virial == Some(slot) && !v.is_finite() && *broken == 0 {
                *broken = step + 1;
            }
        }
        Ok(())
    }
}

/// What a block needs of an accelerator beside [`Engine`].
impl Batched<'_> {
    /// Write a vector of all chains, `[chains, N]`.
    pub fn write(&mut self, v: Vector, data: &[f32]) -> Result<()> {
        let at = self.at(v)?;
        self.device.upload(bytes(data), at)
    }

    /// Let the device have the vectors of these chains.
    pub fn store(&mut self, rows: &[Row]) -> Result<()> {
        for (c, row) in rows.iter().enumerate() {
            self.store_params(c, row)?;
            for (k, v) in row.vectors.iter().enumerate() {
                let at = self.state[k].at.offset(4 * c * self.dim);
                self.device.upload(bytes(v), at)?;
            }
        }
        Ok(())
    }

    /// Let the device have the parameters of one chain.
    pub fn store_params(&mut self, c: usize, row: &Row) -> Result<()> {
        let at = self.params.at.offset(4 * c * self.dim);
        self.device.upload(bytes(row.w), at)
    }

    /// Bring the parameters back.
    pub fn fetch_params(&self, rows: &mut [Row]) -> Result<()> {
        for (c, row) in rows.iter_mut().enumerate() {
            let at = self.params.at.offset(4 * c * self.dim);
            self.device.download(at, bytes_mut(row.w))?;
        }
        Ok(())
    }

    /// Bring parameters, the sampler's vectors and the sums of what it reported back.
    pub fn fetch(&mut self, rows: &mut [Row]) -> Result<()> {
        self.fetch_params(rows)?;
        for (c, row) in rows.iter_mut().enumerate() {
            for (k, v) in row.vectors.iter_mut().enumerate() {
                let at = self.state[k].at.offset(4 * c * self.dim);
                self.device.download(at, bytes_mut(v))?;
            }
        }
        self.fetch_sums(rows)
    }

    /// Bring the sums of what was reported back, and which virials were not finite. The rows have them until the next step.
    pub fn fetch_sums(&mut self, rows: &mut [Row]) -> Result<()> {
        if std::mem::replace(&mut self.sums_away, true) {
            return Ok(());
        }
        let mut sums = vec![0f64; self.chains * self.slots];
        self.device.download(self.info.at, bytes_mut(&mut sums))?;
        let sums = sums.chunks_exact(self.slots.max(1));
        let here = self.info_here.chunks_exact(self.slots.max(1));
        for (row, (there, here)) in rows.iter_mut().zip(sums.zip(here)) {
            let both = there.iter().zip(here).map(|(t, h)| t + h);
            row.sums.iter_mut().zip(both).for_each(|(s, b)| *s = b);
        }
        let mut broken = vec![0u64; self.chains];
        self.device
            .download(self.broken.at, bytes_mut(&mut broken))?;
        for (row, (there, here)) in rows.iter_mut().zip(broken.iter().zip(&self.broken_here)) {
            let steps = [*there, *here].into_iter().filter(|step| *step > 0);
            row.broken = steps.min();
        }
        Ok(())
    }

    /// A step of these chains begins; what is reported in it is added up if it `counts`.
    pub fn begin(&mut self, rows: &[Row], step: u64, counts: bool) -> Result<()> {
        self.counts = counts.then_some(step);
        if std::mem::take(&mut self.sums_away) {
            let sums: Vec<f64> = rows.iter().flat_map(|r| r.sums.iter().copied()).collect();
            self.info_here.fill(0.0);
            self.info_elsewhere.fill(true);
            self.device.upload(bytes(&sums), self.info.at)?;
            self.broken_here = rows.iter().map(|r| r.broken.unwrap_or(0)).collect();
            self.device
                .upload(bytes(&vec![0u64; self.chains]), self.broken.at)?;
        }
        Ok(())
    }

    /// From now on the prior of a chain is so many times as strong, one number per chain.
    pub fn set_prior_strengths(&mut self, strengths: Vec<f64>) -> Result<()> {
        let precision = self.target.prior().pull().0;
        let precisions: Vec<f32> = strengths.iter().map(|s| (precision * s) as f32).collect();
        self.strengths = strengths;
        self.device.upload(bytes(&precisions), self.precisions.at)
    }

    /// s·L over all examples where the chains are, and R with its strength.
    pub fn likelihoods_and_priors(&mut self) -> Result<Vec<(f64, f64)>> {
        self.evaluate()?;
        let sums = self.download_sums()?;
        let likelihood = |s| self.target.energies_from(s, 0.0).likelihood;
        let likelihoods: Vec<f64> = sums.into_iter().map(likelihood).collect();
        Ok(likelihoods
            .into_iter()
            .zip(self.prior_energies()?)
            .collect())
    }

    /// Sums of losses and errors over a split and its number of rows, per chain; none if the device does not compute them.
    pub fn split_sums(&mut self, split: &str) -> Result<Option<(Vec<Sums>, usize)>> {
        let network = self.network.as_ref();
        let found = network.and_then(|n| n.splits.iter().position(|(name, _)| *name == split));
        let Some(k) = found else { return Ok(None) };
        self.pass(Which::All(k), false)?;
        Ok(Some((self.download_sums()?, self.rows)))
    }
}
