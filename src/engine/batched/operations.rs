//! What samplers ask of the accelerator.

use super::data::Which;
use super::memory::{bytes, bytes_mut};
use super::{OneDevice, PARTS};
use crate::engine::{Draw, Engine, PerChain, Vector};
use crate::error::Result;
use crate::kernels::device::{Arg, Pointer};
use crate::kernels::map::{Kernel, Reduction};
use crate::rng::Stream;
use crate::target::Target;
use std::ops::Range;

impl Engine for OneDevice<'_> {
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
        self.prior.precisions(self)
    }

    fn prior_gradient(&mut self, into: Vector) -> Result<()> {
        let out = self.at(into)?;
        self.prior.pull(self, out, 0.0)
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

    fn write(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        let at = self.at(into)?;
        self.device.upload(bytes(data), at)
    }

    fn download(&mut self, v: Vector, data: &mut [f32]) -> Result<()> {
        let at = self.at(v)?;
        self.device.download(at, bytes_mut(data))
    }

    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        self.write(into, &data.repeat(self.chains))
    }

    fn energies(&mut self) -> Result<PerChain<f64>> {
        let sums = self.download_sums()?;
        let priors = self.prior.strengthened(self)?;
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
    ) -> Result<PerChain<f64>> {
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
        let which: Vec<u8> = which.iter().map(|w| u8::from(*w)).collect();
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
