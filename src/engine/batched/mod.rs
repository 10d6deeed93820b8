//! All chains of a run on an accelerator, or dealt over several: every launch and every product is batched over the chains.
//!
//! Nothing is read back within a step, but for the numbers that a sampler asks for ([`Engine::sum`], [`Engine::energies`]). What a
//! sampler reports is added up on the device until [`OneDevice::fetch_sums`].

mod data;
mod loss;
mod memory;
mod network;
mod numbers;
mod operations;
mod prior;
mod several;
mod transfer;

pub use several::Batched;

use super::report::{Slots, VIRIAL};
use super::{Draw, Engine, Vector};
use crate::error::Result;
use crate::kernels::device::{Arg, Device, PRELUDE, Pointer, STATIC};
use crate::kernels::map::Reduction;
use crate::model::loss::Sums;
use crate::rng::Stream;
use crate::target::Target;
use data::Which;
use memory::{Buffer, bytes, bytes_mut};
use network::Network;
use prior::Prior;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The names of the kernels that do not come from samplers.
fn names() -> Vec<&'static str> {
    let parts = STATIC.split("__global__ void ").skip(1);
    parts.filter_map(|p| p.split('(').next()).collect()
}

/// Chains of a run on one device.
pub struct OneDevice<'d> {
    device: &'d dyn Device,
    target: &'d Target,
    chains: usize,
    dim: usize,
    params: Buffer<'d>,
    gradient: Buffer<'d>,
    state: Vec<Buffer<'d>>,
    scratch: BTreeMap<usize, Buffer<'d>>,
    /// None while it is at work.
    network: Option<Network<'d>>,
    prior: Prior<'d>,
    /// What observables have asked for.
    numbers: Vec<numbers::OnOne<'d>>,
    compiled: HashSet<&'static str>,
    scalars: Buffer<'d>,
    streams: Buffer<'d>,
    indices: Buffer<'d>,
    partials: Buffer<'d>,
    which: Buffer<'d>,
    /// Sums of the losses (first the chains' losses, then their errors) of the last pass over examples.
    sums: Buffer<'d>,
    /// Sums of losses over several passes.
    total: Buffer<'d>,
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
}

const PARTS: usize = Reduction::PARTIALS;

impl<'d> OneDevice<'d> {
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
            prior: Prior::new(device, target, chains)?,
            numbers: Vec::new(),
            compiled: HashSet::new(),
            scalars: Buffer::new(device, 4 * chains * 8)?,
            streams: Buffer::new(device, 20 * chains)?,
            indices: Buffer::new(device, 0)?,
            partials: Buffer::new(device, 8 * chains * PARTS)?,
            which: Buffer::new(device, chains)?,
            sums: Buffer::new(device, 16 * chains)?,
            total: Buffer::new(device, 0)?,
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
        };
        let net = target.potential().accelerated()?;
        out.network = Some(Network::new(device, net, chains, dim)?);
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
            self.device
                .compile(&format!("{PRELUDE}\n{}", source()), &[name])?;
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

    /// Sums of losses over rows, and with `gradient` the summed gradients.
    fn pass(&mut self, which: Which, gradient: bool) -> Result<()> {
        self.pass_with(which, gradient, &mut |_, _| Ok(()))
    }

    /// The same; `each` sees the network after every tile, and which rows that was.
    fn pass_with(
        &mut self,
        which: Which,
        gradient: bool,
        each: &mut dyn FnMut(&Network, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut network) = self.network.take() else {
            anyhow::bail!("the network on the device is at work");
        };
        let rows = network.pass(self, which, gradient, &mut |net, range| each(net, range));
        self.network = Some(network);
        self.rows = rows?;
        Ok(())
    }

    /// Sums of losses over minibatches, and with `gradient` the summed gradients.
    fn minibatch(&mut self, streams: &[Stream], draw: Draw, gradient: bool) -> Result<()> {
        let batch = draw.batch;
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
        self.pass(Which::Given(0, batch), gradient)
    }

    /// From the summed loss gradient to ∇U.
    fn finish_gradient(&mut self) -> Result<()> {
        let scale = (self.target.scale() / self.rows as f64) as f32;
        self.prior.pull(self, self.gradient.at, scale)
    }
}
