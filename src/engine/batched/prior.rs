//! Priors on a device: their quadratic part, walls, and the terms that are formulas.

use super::memory::{Buffer, bytes, bytes_mut};
use super::{OneDevice, PARTS};
use crate::error::Result;
use crate::kernels::device::{Arg, Device, ELEMENTS, Pointer};
use crate::target::Target;
use crate::target::prior::Term;
use anyhow::Context;
use std::collections::HashMap;

/// The prior of all chains.
pub(super) struct Prior<'d> {
    /// Each with its kernel.
    terms: Vec<(String, Term)>,
    /// How many times as strong they are.
    strength: f64,
    centre: Option<Buffer<'d>>,
    /// How strong the prior of each chain is; empty where all have the same.
    strengths: Vec<f64>,
    /// Strengths of the chains on the device: as a precision, and as a factor of the terms.
    precisions: Buffer<'d>,
    factors: Buffer<'d>,
    /// Partial sums of a term, of its slopes, and energies.
    sums: Buffer<'d>,
    energies: Buffer<'d>,
}

impl<'d> Prior<'d> {
    /// Compile the prior of a target, for so many chains.
    ///
    /// # Errors
    /// If no device computes it.
    pub fn new(device: &'d dyn Device, target: &Target, chains: usize) -> Result<Self> {
        let prior = target.prior();
        let (found, strength) = prior.terms(target.dim())?;
        let mut kernels = HashMap::new();
        let mut terms = Vec::new();
        for term in found {
            // Tensors that have the same law have the same kernel.
            let number = kernels.len();
            let kernel = term.energy.term_kernel("NAME").with_context(|| {
                format!(
                    "no device computes the prior '{}'; take --device cpu",
                    prior.describe()
                )
            })?;
            let name = kernels
                .entry(kernel)
                .or_insert_with(|| format!("prior_{number}"));
            terms.push((name.clone(), term));
        }
        for (kernel, name) in &kernels {
            let source = format!("{ELEMENTS}\n{}", kernel.replacen("NAME", name, 1));
            device.compile(&source, &[name])?;
        }
        let centre = match prior.pull().1 {
            [] => None,
            centre => Some(Buffer::of(device, centre)?),
        };
        Ok(Self {
            sums: Buffer::new(device, 3 * 8 * chains * PARTS)?,
            energies: Buffer::new(device, 8 * chains)?,
            precisions: Buffer::new(device, 4 * chains)?,
            factors: Buffer::of(device, &vec![strength; chains])?,
            strengths: Vec::new(),
            terms,
            strength,
            centre,
        })
    }

    /// From now on the prior of a chain is so many times as strong, one number per chain.
    pub fn strengthen(
        &mut self,
        device: &dyn Device,
        target: &Target,
        strengths: Vec<f64>,
    ) -> Result<()> {
        let precision = target.prior().pull().0;
        let precisions: Vec<f32> = strengths.iter().map(|s| (precision * s) as f32).collect();
        let factors: Vec<f64> = strengths.iter().map(|s| self.strength * s).collect();
        self.strengths = strengths;
        device.upload(bytes(&precisions), self.precisions.at)?;
        device.upload(bytes(&factors), self.factors.at)
    }

    /// How strong the quadratic part of each chain is.
    pub fn precisions(&self, all: &OneDevice) -> Vec<f64> {
        let precision = all.target.prior().pull().0;
        match self.strengths[..] {
            [] => vec![precision; all.chains],
            _ => self.strengths.iter().map(|s| precision * s).collect(),
        }
    }

    /// `out ← scale·out + ∇R`; scaled by 0, what was there does not matter.
    pub fn pull(&self, all: &OneDevice, out: Pointer, scale: f32) -> Result<()> {
        let precision = all.target.prior().pull().0 as f32;
        let args = [
            Arg::Pointer(out),
            Arg::Pointer(all.params.at),
            Arg::Int(all.chains as i32),
            Arg::Long(all.dim as u64),
            Arg::Long(all.dim as u64),
            Arg::Float(scale),
            Arg::Float(precision),
            Arg::Pointer(match self.strengths[..] {
                [] => Pointer::NULL,
                _ => self.precisions.at,
            }),
            Arg::Pointer(self.centre.as_ref().map_or(Pointer::NULL, |c| c.at)),
        ];
        all.device
            .launch("scale_and_pull", all.dim, all.chains, &args)?;
        for term in &self.terms {
            self.add_term(all, term, out)?;
        }
        Ok(())
    }

    /// Add the gradient of a term to `out`, if that is anywhere; its energies are left in the sums.
    fn add_term(
        &self,
        all: &OneDevice,
        (kernel, term): &(String, Term),
        out: Pointer,
    ) -> Result<usize> {
        let parts = term.count.min(PARTS);
        let mut args = vec![
            Arg::Pointer(all.params.at),
            Arg::Long(all.dim as u64),
            Arg::Int(all.chains as i32),
            Arg::Long(term.count as u64),
        ];
        for (from, step) in term.columns {
            args.extend([Arg::Long(from as u64), Arg::Int(step as i32)]);
        }
        args.extend([self.factors.at, out, self.sums.at].map(Arg::Pointer));
        args.push(Arg::Int(parts as i32));
        all.device.launch(kernel, parts, all.chains, &args)?;
        // What all numbers have in common has the sum of their slopes.
        for (k, (from, step)) in term.columns.iter().enumerate() {
            if out == Pointer::NULL || *step == 1 || !term.energy.reads(k) {
                continue;
            }
            let args = [
                Arg::Pointer(self.sums.at.offset(8 * k * all.chains * parts)),
                Arg::Int(all.chains as i32),
                Arg::Int(parts as i32),
                Arg::Pointer(out.offset(4 * from)),
                Arg::Long(all.dim as u64),
            ];
            all.device.launch("add_sums", all.chains, 1, &args)?;
        }
        Ok(parts)
    }

    /// R of every chain, as strong as it is there.
    pub fn strengthened(&self, all: &OneDevice) -> Result<Vec<f64>> {
        let mut energies = self.energies(all)?;
        for (energy, strength) in energies.iter_mut().zip(&self.strengths) {
            *energy *= strength;
        }
        Ok(energies)
    }

    /// R of every chain.
    pub fn energies(&self, all: &OneDevice) -> Result<Vec<f64>> {
        let prior = all.target.prior();
        let finish = |parts, factor| {
            let out = (self.energies.at, 1, true);
            all.finish((self.sums.at, parts), out, factor, (0, Pointer::NULL))
        };
        let zero = vec![0.0; all.chains];
        all.device.upload(bytes(&zero), self.energies.at)?;
        let sizes = [Arg::Int(all.chains as i32), Arg::Long(all.dim as u64)];
        let parts = |count: usize| (count.min(PARTS), Arg::Int(count.min(PARTS) as i32));
        if prior.pull().0 != 0.0 {
            let (parts, count) = parts(all.dim);
            let centre = self.centre.as_ref().map_or(Pointer::NULL, |c| c.at);
            let mut args = vec![Arg::Pointer(all.params.at)];
            args.extend(sizes);
            args.extend([Arg::Pointer(centre), count, Arg::Pointer(self.sums.at)]);
            all.device
                .launch("partial_squares", parts, all.chains, &args)?;
            finish(parts, 0.5 * prior.pull().0)?;
        }
        for (range, half) in prior.walls() {
            let (parts, count) = parts(range.len());
            let mut args = vec![Arg::Pointer(all.params.at)];
            args.extend(sizes);
            args.extend([range.start, range.len()].map(|n| Arg::Long(n as u64)));
            args.extend([Arg::Float(*half), count, Arg::Pointer(self.sums.at)]);
            all.device
                .launch("partial_walls", parts, all.chains, &args)?;
            finish(parts, 1.0)?;
        }
        for term in &self.terms {
            let parts = self.add_term(all, term, Pointer::NULL)?;
            finish(parts, self.strength)?;
        }
        let mut energies = zero;
        all.device
            .download(self.energies.at, bytes_mut(&mut energies))?;
        Ok(energies)
    }
}
