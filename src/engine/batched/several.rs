//! The chains of a run dealt over one accelerator or several, each with all of the data.
//!
//! Work is queued on every device before anything waits for one of them, so that they go on side by side.

use super::{Engine, OneDevice, Slots, Vector};
use crate::engine::{Draw, PerChain, Row};
use crate::error::Result;
use crate::kernels::device::Device;
use crate::kernels::map::{Kernel, Reduction};
use crate::kernels::tensor::Numbers;
use crate::model::loss::Sums;
use crate::rng::Stream;
use crate::target::Target;
use std::ops::Range;
use std::sync::Arc;

/// All chains of a run.
pub struct Batched<'d> {
    /// Each with its chains; none is without.
    parts: Vec<(Range<usize>, OneDevice<'d>)>,
    chains: usize,
    dim: usize,
}

/// What belongs to these chains, of a list with as many numbers for each.
fn own<'a, T>(all: &'a [T], chains: &Range<usize>, of: usize) -> &'a [T] {
    let each = all.len() / of.max(1);
    &all[chains.start * each..chains.end * each]
}

fn own_mut<'a, T>(all: &'a mut [T], chains: &Range<usize>, of: usize) -> &'a mut [T] {
    let each = all.len() / of.max(1);
    &mut all[chains.start * each..chains.end * each]
}

impl<'d> Batched<'d> {
    /// Deal `chains` chains of a target over devices, with as many state vectors and numbers to report as the sampler has.
    ///
    /// # Errors
    /// If a device does not compute the target.
    pub fn new(
        devices: &'d [Box<dyn Device>],
        target: &'d Target,
        chains: usize,
        vectors: usize,
        slots: &Slots,
    ) -> Result<Self> {
        let count = devices.len().min(chains).max(1);
        let part = |(k, device): (usize, &'d dyn Device)| {
            let own = k * chains / count..(k + 1) * chains / count;
            let device = OneDevice::new(device, target, own.len(), vectors, slots)?;
            Ok::<_, anyhow::Error>((own, device))
        };
        let parts = devices.iter().map(|d| &**d).take(count).enumerate();
        let parts = parts.map(part);
        Ok(Self {
            parts: parts.collect::<Result<_>>()?,
            chains,
            dim: target.dim(),
        })
    }

    fn each(
        &mut self,
        mut f: impl FnMut(&mut OneDevice<'d>, &Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.parts
            .iter_mut()
            .try_for_each(|(own, part)| f(part, own))
    }

    /// Something for every chain, those of all devices.
    fn collect<T, I: IntoIterator<Item = T>, A: Default + Extend<T>>(
        &mut self,
        mut f: impl FnMut(&mut OneDevice<'d>, &Range<usize>) -> Result<I>,
    ) -> Result<A> {
        let mut all = A::default();
        self.each(|part, own| {
            all.extend(f(part, own)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Let the devices have the vectors of these chains.
    pub fn store(&mut self, rows: &[Row]) -> Result<()> {
        self.each(|part, c| part.store(&rows[c.clone()]))
    }

    /// Let its device have the parameters of one chain.
    pub fn store_params(&mut self, chain: usize, row: &Row) -> Result<()> {
        self.each(|part, c| match c.contains(&chain) {
            true => part.store_params(chain - c.start, row),
            false => Ok(()),
        })
    }

    /// Let the devices have some of the sampler's vectors.
    pub fn store_vectors(
        &mut self,
        rows: &[Row],
        mut which: impl Iterator<Item = usize>,
    ) -> Result<()> {
        which.try_for_each(|k| self.each(|part, c| part.store_vector(k, &rows[c.clone()])))
    }

    /// Bring the parameters back.
    pub fn fetch_params(&mut self, rows: &mut [Row]) -> Result<()> {
        self.each(|part, c| part.fetch_params(&mut rows[c.clone()]))
    }

    /// Bring some of the sampler's vectors back.
    pub fn fetch_vectors(
        &mut self,
        rows: &mut [Row],
        mut which: impl Iterator<Item = usize>,
    ) -> Result<()> {
        which.try_for_each(|k| self.each(|part, c| part.fetch_vector(k, &mut rows[c.clone()])))
    }

    /// Bring parameters, the sampler's vectors and the sums of what it reported back.
    pub fn fetch(&mut self, rows: &mut [Row]) -> Result<()> {
        self.each(|part, c| part.fetch(&mut rows[c.clone()]))
    }

    /// Bring the sums of what was reported back, and which virials were not finite. The rows have them until the next step.
    pub fn fetch_sums(&mut self, rows: &mut [Row]) -> Result<()> {
        self.each(|part, c| part.fetch_sums(&mut rows[c.clone()]))
    }

    /// A step of these chains begins; what is reported in it is added up if it `counts`.
    pub fn begin(&mut self, rows: &[Row], step: u64, counts: bool) -> Result<()> {
        self.each(|part, c| part.begin(&rows[c.clone()], step, counts))
    }

    /// From now on the prior of a chain is so many times as strong, one number per chain.
    pub fn set_prior_strengths(&mut self, strengths: Vec<f64>) -> Result<()> {
        self.each(|part, c| part.strengthen_prior(strengths[c.clone()].to_vec()))
    }

    /// s·L over all examples where the chains are, and R with its strength.
    pub fn likelihoods_and_priors(&mut self) -> Result<Vec<(f64, f64)>> {
        self.each(|part, _| part.evaluate())?;
        self.collect(|part, _| part.evaluated())
    }

    /// R of every chain, whatever its strength.
    pub fn prior_energies(&mut self) -> Result<Vec<f64>> {
        self.collect(|part, _| part.prior_energies())
    }

    /// The gradient of U of every chain on these examples, `[chains, m]`.
    pub fn gradient_of(&mut self, rows: &[u32]) -> Result<()> {
        let chains = self.chains;
        self.each(|part, c| part.gradient_of(own(rows, c, chains)))
    }

    /// The losses of every chain on these examples, `[chains, m]`.
    pub fn losses_of(&mut self, rows: &[u32]) -> Result<()> {
        let chains = self.chains;
        self.each(|part, c| part.losses_of(own(rows, c, chains)))
    }

    /// The mean loss of the last examples, of the first chain.
    pub fn mean_loss(&mut self) -> Result<f64> {
        let all: Vec<f64> = self.collect(|part, _| Ok([part.mean_loss()?]))?;
        Ok(all.first().copied().unwrap_or(f64::NAN))
    }

    /// From now on losses are added up.
    pub fn begin_total(&mut self) -> Result<()> {
        self.each(|part, _| part.begin_total())
    }

    /// Add the losses of the last examples to the total.
    pub fn add_total(&mut self) -> Result<()> {
        self.each(|part, _| part.add_total())
    }

    /// The sums of losses since [`Batched::begin_total`], per chain.
    pub fn totals(&mut self) -> Result<Vec<f64>> {
        self.collect(|part, _| part.totals())
    }

    /// Sums of losses and errors over a split, per chain, and its number of rows.
    pub fn split_sums(&mut self, split: &str) -> Result<(Vec<Sums>, usize)> {
        let mut rows = 0;
        let sums = self.collect(|part, _| {
            let (sums, count) = part.split_sums(split)?;
            rows = count;
            Ok(sums)
        })?;
        Ok((sums, rows))
    }

    /// The outputs of every chain for a split, `[rows, outputs]` each.
    pub fn predict(&mut self, split: &str) -> Result<Vec<Vec<f32>>> {
        self.collect(|part, _| part.predict(split))
    }

    /// Numbers that follow from the parameters of a chain, of every chain.
    pub fn numbers(&mut self, of: &Arc<Numbers>) -> Result<Vec<Vec<f64>>> {
        self.collect(|part, _| part.numbers(of))
    }

    /// The loss of these rows of a split, for every position of each, per chain.
    pub fn example_losses(&mut self, split: &str, rows: &[u32]) -> Result<Vec<Vec<f64>>> {
        self.collect(|part, _| part.example_losses(split, rows))
    }
}

impl Engine for Batched<'_> {
    fn target(&self) -> &Target {
        self.parts[0].1.target()
    }

    fn vectors(&self) -> usize {
        self.parts[0].1.vectors()
    }

    fn minibatch_gradient(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        self.each(|part, c| part.minibatch_gradient(&streams[c.clone()], draw))
    }

    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        self.each(|part, c| part.minibatch_loss(&streams[c.clone()], draw))
    }

    fn gradient(&mut self) -> Result<()> {
        self.each(|part, _| part.gradient())
    }

    fn energies(&mut self) -> Result<PerChain<f64>> {
        self.collect(|part, _| part.energies())
    }

    fn evaluate(&mut self) -> Result<()> {
        self.each(|part, _| part.evaluate())
    }

    fn prior_precisions(&self) -> Vec<f64> {
        let each = self.parts.iter().flat_map(|(_, p)| p.prior_precisions());
        each.collect()
    }

    fn prior_gradient(&mut self, into: Vector) -> Result<()> {
        self.each(|part, _| part.prior_gradient(into))
    }

    fn difference(&mut self, from: Vector, into: Vector, of: &[[Option<usize>; 2]]) -> Result<()> {
        anyhow::ensure!(
            self.parts.len() == 1,
            "chains that act on each other must be on one device; name one, as --device cuda:0"
        );
        self.each(|part, _| part.difference(from, into, of))
    }

    fn rotate(&mut self, from: Vector, into: Vector) -> Result<()> {
        self.each(|part, _| part.rotate(from, into))
    }

    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        self.each(|part, _| part.write_all(into, data))
    }

    fn write(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        let chains = self.chains;
        self.each(|part, c| part.write(into, own(data, c, chains)))
    }

    fn download(&mut self, from: Vector, out: &mut [f32]) -> Result<()> {
        let (chains, dim) = (self.chains, self.dim);
        let out = &mut out[..chains * dim];
        self.each(|part, c| part.download(from, own_mut(out, c, chains)))
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()> {
        let chains = self.chains;
        self.each(|part, c| {
            let (scalars, streams) = (own(scalars, c, chains), own(streams, c, chains));
            part.map(kernel, vectors, range.clone(), scalars, streams)
        })
    }

    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<PerChain<f64>> {
        self.collect(|part, _| part.sum(sum, vectors, range.clone()))
    }

    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()> {
        self.each(|part, c| part.copy(from, to, &which[c.clone()]))
    }

    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()> {
        self.each(|part, _| part.reflect(momentum))
    }

    fn add_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()> {
        self.each(|part, _| part.add_sum(slot, sum, vectors, range.clone(), factor))
    }

    fn add_by_tensor(
        &mut self,
        slot: usize,
        first: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
    ) -> Result<()> {
        self.each(|part, _| part.add_by_tensor(slot, first, sum, vectors))
    }

    fn add_loss(&mut self, slot: usize) -> Result<()> {
        self.each(|part, _| part.add_loss(slot))
    }

    fn add(&mut self, slot: usize, values: &[f64]) -> Result<()> {
        self.each(|part, c| part.add(slot, &values[c.clone()]))
    }
}
