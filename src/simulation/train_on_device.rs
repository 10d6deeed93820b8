//! Training on an accelerator: all chains at once.

use super::train::Trainer;
use super::training_state::Course;
use crate::engine::batched::Batched;
use crate::engine::{Engine, Vector};
use crate::error::Result;
use std::collections::BTreeMap;

impl Trainer<'_> {
    /// An epoch of every chain, as [`Trainer::epoch`] does it for one; false, and everything as it was, if somebody interrupts it.
    pub(super) fn epoch_on(&self, device: &mut Batched, courses: &mut [Course]) -> Result<bool> {
        let goes_on = |c: &Course| !c.stopped && c.epoch < self.epochs;
        let all = |of: fn(&Course) -> &Vec<f32>| courses.iter().flat_map(of).copied();
        let (w, a, b) = (all(|c| &c.w), all(|c| &c.a), all(|c| &c.b));
        device.write(Vector::Params, &w.collect::<Vec<_>>())?;
        device.write(Vector::State(0), &a.collect::<Vec<_>>())?;
        device.write(Vector::State(1), &b.collect::<Vec<_>>())?;
        let orders = courses.iter().enumerate();
        let orders: Vec<_> = orders.map(|(i, c)| self.order(i, c.epoch)).collect();
        let batch = self.optimizer.batch.min(self.n);
        let per_epoch = self.n.div_ceil(batch) as u64;
        let inverse = (1.0 / self.target.scale()) as f32;
        device.begin_total()?;
        for (k, start) in (0..self.n).step_by(batch).enumerate() {
            if self.interrupt.interrupted() {
                return Ok(false);
            }
            let end = (start + batch).min(self.n);
            let rows: Vec<u32> = orders
                .iter()
                .flat_map(|o| &o[start..end])
                .copied()
                .collect();
            device.gradient_of(&rows)?;
            device.add_total()?;
            let mut kernel = None;
            let mut scalars = Vec::new();
            for c in courses.iter() {
                let step = c.epoch * per_epoch + k as u64 + 1;
                let (rule, own) = self.optimizer.rule(c.epoch, step, inverse);
                kernel = Some(rule);
                scalars.extend(own);
            }
            let Some(kernel) = kernel else {
                continue;
            };
            let mut vectors = vec![Vector::Params, Vector::State(0), Vector::State(1)];
            vectors.truncate(kernel.outs.len());
            vectors.push(Vector::Gradient);
            device.map(kernel, &vectors, 0..self.target.dim(), &scalars, &[])?;
            device.reflect(None)?;
        }
        let losses = device.totals()?;
        let mut sums = BTreeMap::new();
        for split in &self.splits {
            sums.insert(*split, device.split_sums(split)?);
        }
        let (n, chains) = (self.target.dim(), courses.len());
        let fetch = |device: &mut Batched, v| {
            let mut all = vec![0f32; n * chains];
            device.download(v, &mut all).map(|()| all)
        };
        let [w, a, b] = [
            fetch(device, Vector::Params)?,
            fetch(device, Vector::State(0))?,
            fetch(device, Vector::State(1))?,
        ];
        for (i, c) in courses.iter_mut().enumerate().filter(|c| goes_on(c.1)) {
            let own = i * n..(i + 1) * n;
            c.w.copy_from_slice(&w[own.clone()]);
            c.a.copy_from_slice(&a[own.clone()]);
            c.b.copy_from_slice(&b[own]);
            self.note(i, c, losses[i] / self.n as f64, |_, split| {
                let found = sums.get(split).map(|(sums, rows)| (sums[i], *rows));
                found.ok_or_else(|| anyhow::anyhow!("the device has no split \"{split}\""))
            })?;
        }
        Ok(true)
    }
}
