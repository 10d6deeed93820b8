//! What goes between this machine and the accelerator, and what a block needs beside [`Engine`].

use super::Batched;
use super::memory::{bytes, bytes_mut};
use super::network::Which;
use crate::engine::{Engine, Row, Vector};
use crate::error::Result;
use crate::model::loss::Sums;

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
