//! What goes between this machine and the accelerator, and what a block needs beside [`Engine`].

use super::OneDevice;
use super::data::Which;
use super::memory::{bytes, bytes_mut};
use super::numbers::OnOne;
use crate::engine::Row;
use crate::error::Result;
use crate::kernels::device::Pointer;
use crate::kernels::tensor::Numbers;
use crate::kernels::tensor::device::Place;
use crate::model::loss::Sums;
use std::sync::Arc;

/// Numbers that one call copies, where a chain has fewer.
const AT_ONCE: usize = 1 << 22;

impl OneDevice<'_> {
    /// Let the device have all vectors of these chains.
    pub fn store(&mut self, rows: &[Row]) -> Result<()> {
        self.put(self.params.at, rows, |row| row.w)?;
        (0..self.state.len()).try_for_each(|k| self.store_vector(k, rows))
    }

    /// Let the device have the parameters of one chain.
    pub fn store_params(&mut self, c: usize, row: &Row) -> Result<()> {
        let at = self.params.at.offset(4 * c * self.dim);
        self.device.upload(bytes(row.w), at)
    }

    /// Let the device have the k-th of the sampler's vectors.
    pub fn store_vector(&mut self, k: usize, rows: &[Row]) -> Result<()> {
        self.put(self.state[k].at, rows, |row| &*row.vectors[k])
    }

    /// Bring the parameters back.
    pub fn fetch_params(&self, rows: &mut [Row]) -> Result<()> {
        self.take(self.params.at, rows, |row| row.w)
    }

    /// Bring the k-th of the sampler's vectors back.
    pub fn fetch_vector(&self, k: usize, rows: &mut [Row]) -> Result<()> {
        self.take(self.state[k].at, rows, |row| &mut *row.vectors[k])
    }

    /// Bring parameters, the sampler's vectors and the sums of what it reported back.
    pub fn fetch(&mut self, rows: &mut [Row]) -> Result<()> {
        self.fetch_params(rows)?;
        (0..self.state.len()).try_for_each(|k| self.fetch_vector(k, rows))?;
        self.fetch_sums(rows)
    }

    /// Number of chains whose vectors one call copies: with small networks a call takes longer than its bytes.
    fn at_once(&self) -> usize {
        (AT_ONCE / self.dim.max(1)).max(1)
    }

    fn put(
        &self,
        to: Pointer,
        rows: &[Row],
        of: impl for<'x> Fn(&'x Row) -> &'x [f32],
    ) -> Result<()> {
        let mut staged = Vec::new();
        for (k, group) in rows.chunks(self.at_once()).enumerate() {
            let to = to.offset(4 * k * self.at_once() * self.dim);
            if let [one] = group {
                self.device.upload(bytes(of(one)), to)?;
                continue;
            }
            staged.clear();
            group.iter().for_each(|r| staged.extend_from_slice(of(r)));
            self.device.upload(bytes(&staged), to)?;
        }
        Ok(())
    }

    fn take(
        &self,
        from: Pointer,
        rows: &mut [Row],
        of: impl for<'x> Fn(&'x mut Row) -> &'x mut [f32],
    ) -> Result<()> {
        let (dim, at_once) = (self.dim, self.at_once());
        let mut staged = Vec::new();
        for (k, group) in rows.chunks_mut(at_once).enumerate() {
            let from = from.offset(4 * k * at_once * dim);
            if let [one] = group {
                self.device.download(from, bytes_mut(of(one)))?;
                continue;
            }
            staged.resize(group.len() * dim, 0.0);
            self.device.download(from, bytes_mut(&mut staged))?;
            let both = group.iter_mut().zip(staged.chunks_exact(dim.max(1)));
            both.for_each(|(row, new)| of(row).copy_from_slice(new));
        }
        Ok(())
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
    pub fn strengthen_prior(&mut self, strengths: Vec<f64>) -> Result<()> {
        self.prior.strengthen(self.device, self.target, strengths)
    }

    /// s·L over all examples where the chains were evaluated, and R with its strength.
    pub fn evaluated(&mut self) -> Result<Vec<(f64, f64)>> {
        let sums = self.download_sums()?;
        let likelihood = |s| self.target.energies_from(s, 0.0).likelihood;
        let likelihoods: Vec<f64> = sums.into_iter().map(likelihood).collect();
        let priors = self.prior.strengthened(self)?;
        Ok(likelihoods.into_iter().zip(priors).collect())
    }

    /// R of every chain, whatever its strength.
    pub fn prior_energies(&self) -> Result<Vec<f64>> {
        self.prior.energies(self)
    }

    /// The gradient of U of every chain on these examples, `[chains, m]`.
    pub fn gradient_of(&mut self, rows: &[u32]) -> Result<()> {
        let at = self.indices.grow(size_of_val(rows))?;
        self.device.upload(bytes(rows), at)?;
        self.pass(Which::Given(0, rows.len() / self.chains), true)?;
        self.finish_gradient()
    }

    /// The losses of every chain on these examples, `[chains, m]`.
    pub fn losses_of(&mut self, rows: &[u32]) -> Result<()> {
        let at = self.indices.grow(size_of_val(rows))?;
        self.device.upload(bytes(rows), at)?;
        self.pass(Which::Given(0, rows.len() / self.chains), false)
    }

    /// The mean loss of the last examples, of the first chain.
    pub fn mean_loss(&self) -> Result<f64> {
        let sums = self.download_sums()?;
        Ok(sums.first().map_or(f64::NAN, |s| s.loss) / self.rows as f64)
    }

    /// From now on losses are added up.
    pub fn begin_total(&mut self) -> Result<()> {
        let at = self.total.grow(8 * self.chains)?;
        self.device.upload(bytes(&vec![0f64; self.chains]), at)
    }

    /// Add the losses of the last examples to the total.
    pub fn add_total(&self) -> Result<()> {
        let out = (self.total.at, 1, true);
        self.finish((self.sums.at, 1), out, 1.0, (0, Pointer::NULL))
    }

    /// The sums of losses since [`OneDevice::begin_total`], per chain.
    pub fn totals(&self) -> Result<Vec<f64>> {
        let mut all = vec![0f64; self.chains];
        self.device.download(self.total.at, bytes_mut(&mut all))?;
        Ok(all)
    }

    /// Numbers that follow from the parameters of a chain, of every chain.
    pub fn numbers(&mut self, of: &Arc<Numbers>) -> Result<Vec<Vec<f64>>> {
        let known = self.numbers.iter().position(|n| Arc::ptr_eq(&n.of, of));
        let which = match known {
            Some(which) => which,
            None => {
                let new = OnOne::new(self.device, of.clone(), self.chains, self.dim)?;
                self.numbers.push(new);
                self.numbers.len() - 1
            }
        };
        self.numbers[which].evaluate(self)
    }

    /// The number of a split.
    fn split(&self, name: &str) -> Result<usize> {
        let splits = self.network.iter().flat_map(|n| &n.splits);
        let found = splits.map(|(split, _)| *split).position(|s| s == name);
        found.ok_or_else(|| anyhow::anyhow!("the device has no split \"{name}\""))
    }

    /// Sums of losses and errors over a split and its number of rows, per chain.
    pub fn split_sums(&mut self, split: &str) -> Result<(Vec<Sums>, usize)> {
        let k = self.split(split)?;
        self.pass(Which::All(k), false)?;
        Ok((self.download_sums()?, self.rows))
    }

    /// The outputs of every chain for a split, `[rows, outputs]` each.
    pub fn predict(&mut self, split: &str) -> Result<Vec<Vec<f32>>> {
        let k = self.split(split)?;
        let (device, chains) = (self.device, self.chains);
        let mut out = vec![Vec::new(); chains];
        self.pass_with(Which::All(k), false, &mut |net, range| {
            let one = range.len() * net.program.outputs();
            let mut tile = vec![0f32; one * chains];
            let last = net.memory(Place::Value(net.program.last()))?;
            device.download(last, bytes_mut(&mut tile))?;
            let each = out.iter_mut().zip(tile.chunks_exact(one.max(1)));
            each.for_each(|(all, own)| all.extend_from_slice(own));
            Ok(())
        })?;
        Ok(out)
    }

    /// The loss of these rows of a split, for every position of each, per chain.
    pub fn example_losses(&mut self, split: &str, rows: &[u32]) -> Result<Vec<Vec<f64>>> {
        let k = self.split(split)?;
        let (device, chains) = (self.device, self.chains);
        let at = self.indices.grow(4 * chains * rows.len())?;
        device.upload(bytes(&rows.repeat(chains)), at)?;
        let mut out = vec![Vec::new(); chains];
        self.pass_with(Which::Given(k, rows.len()), false, &mut |net, range| {
            let one = range.len() * net.losses.positions;
            let mut tile = vec![0f64; one * chains];
            device.download(net.losses.each.at, bytes_mut(&mut tile))?;
            let each = out.iter_mut().zip(tile.chunks_exact(one.max(1)));
            each.for_each(|(all, own)| all.extend_from_slice(own));
            Ok(())
        })?;
        Ok(out)
    }
}
