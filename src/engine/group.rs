//! Chains that step together in this machine's memory, for samplers that couple them.
//!
//! The same vectors and the same bits as [`host`](super::host) has chain by chain; the gradients of the chains are shared out
//! among the threads.

use super::host::Host;
use super::{Draw, Engine, Resident, Vector};
use crate::error::Result;
use crate::kernels::map::{Kernel, Reduction};
use crate::kernels::team::Team;
use crate::model::loss::Sums;
use crate::rng::Stream;
use crate::target::{Target, Workspace};
use std::ops::Range;

/// Numbers per gradient below which handing it to another thread costs more than computing it.
const WORTH_A_THREAD: usize = 20_000;

/// One chain of a group.
struct Own {
    w: Vec<f32>,
    vectors: Vec<Vec<f32>>,
    work: Workspace,
    /// What it reported, summed over steps.
    sums: Vec<f64>,
    loss: f64,
    energy: f64,
}

/// Chains that step together.
pub struct Group<'a> {
    target: &'a Target,
    chains: Vec<Own>,
    team: Team,
    listens: bool,
}

impl Own {
    /// Let an engine of this chain alone do something.
    fn with<R>(&mut self, target: &Target, f: impl FnOnce(&mut Host) -> Result<R>) -> Result<R> {
        let mut vectors: Vec<_> = self.vectors.iter_mut().map(Vec::as_mut_slice).collect();
        let mut host = Host::new(target, &mut self.w, &mut vectors, &mut self.work, &mut []);
        (host.loss, host.energy) = (self.loss, self.energy);
        let result = f(&mut host);
        (self.loss, self.energy) = (host.loss, host.energy);
        result
    }

    fn vector(&mut self, v: Vector) -> &mut Vec<f32> {
        match v {
            Vector::Params => &mut self.w,
            Vector::Gradient => &mut self.work.grad,
            Vector::State(k) => &mut self.vectors[k],
            Vector::Scratch(k) => self.work.scratch(k, self.w.len()),
        }
    }
}

impl<'a> Group<'a> {
    /// `chains` chains with as many state vectors and numbers to report as the sampler has.
    pub fn new(
        target: &'a Target,
        chains: usize,
        vectors: usize,
        slots: usize,
        threads: usize,
    ) -> Self {
        let dim = target.dim();
        let own = |_| Own {
            w: vec![0.0; dim],
            vectors: vec![vec![0.0; dim]; vectors],
            work: Workspace::default(),
            sums: vec![0.0; slots],
            loss: f64::NAN,
            energy: f64::NAN,
        };
        Self {
            target,
            chains: (0..chains).map(own).collect(),
            team: Team::new(threads),
            listens: true,
        }
    }

    /// Do something with every chain, one by one.
    fn each<R>(&mut self, mut f: impl FnMut(usize, &mut Host) -> Result<R>) -> Result<Vec<R>> {
        let target = self.target;
        let one = |(c, own): (usize, &mut Own)| own.with(target, |host| f(c, host));
        self.chains.iter_mut().enumerate().map(one).collect()
    }

    /// As [`Group::each`], where nothing comes back.
    fn all(&mut self, f: impl FnMut(usize, &mut Host) -> Result<()>) -> Result<()> {
        self.each(f).map(|_| ())
    }

    /// Do something that takes `work` numbers with every chain; side by side, if that is worth it.
    fn share(
        &mut self,
        work: usize,
        f: impl Fn(usize, &mut Host) -> Result<()> + Sync,
    ) -> Result<()> {
        if self.team.size() == 1 || work < WORTH_A_THREAD {
            return self.all(f);
        }
        let target = self.target;
        let mut tasks: Vec<_> = self
            .chains
            .iter_mut()
            .enumerate()
            .map(|(c, own)| (c, own, Ok(())))
            .collect();
        self.team.for_each(&mut tasks, |(c, own, result)| {
            *result = own.with(target, |host| f(*c, host));
        });
        tasks.into_iter().try_for_each(|(_, _, result)| result)
    }
}

impl Engine for Group<'_> {
    fn target(&self) -> &Target {
        self.target
    }

    fn vectors(&self) -> usize {
        self.chains.first().map_or(0, |c| c.vectors.len())
    }

    fn minibatch_gradient(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        let work = self.target.dim() * draw.batch;
        self.share(work, |c, host| {
            host.minibatch_gradient(&streams[c..=c], draw)
        })
    }

    fn minibatch_loss(&mut self, streams: &[Stream], draw: Draw) -> Result<()> {
        let work = self.target.dim() * draw.batch;
        self.share(work, |c, host| host.minibatch_loss(&streams[c..=c], draw))
    }

    fn gradient(&mut self) -> Result<()> {
        let work = self.target.dim() * self.target.examples();
        self.share(work, |_, host| host.gradient())
    }

    fn gradient_at_anchor(&mut self) -> Result<()> {
        let work = self.target.dim() * self.target.examples();
        self.share(work, |_, host| host.gradient_at_anchor())
    }

    fn energies(&mut self) -> Result<Vec<f64>> {
        Ok(self.chains.iter().map(|c| c.energy).collect())
    }

    fn evaluate(&mut self) -> Result<()> {
        let work = self.target.dim() * self.target.examples();
        self.share(work, |_, host| host.evaluate())
    }

    fn prior_precisions(&self) -> Vec<f64> {
        vec![self.target.prior().pull().0; self.chains.len()]
    }

    fn prior_gradient(&mut self, into: Vector) -> Result<()> {
        self.all(|_, host| host.prior_gradient(into))
    }

    fn difference(&mut self, from: Vector, into: Vector, of: &[[Option<usize>; 2]]) -> Result<()> {
        for (c, [plus, minus]) in of.iter().enumerate() {
            let mut out = std::mem::take(self.chains[c].vector(into));
            out.fill(0.0);
            if let Some(p) = *plus {
                out.copy_from_slice(self.chains[p].vector(from));
            }
            if let Some(m) = *minus {
                let minus = self.chains[m].vector(from);
                out.iter_mut().zip(minus).for_each(|(o, m)| *o -= *m);
            }
            *self.chains[c].vector(into) = out;
        }
        Ok(())
    }

    fn rotate(&mut self, from: Vector, into: Vector) -> Result<()> {
        self.all(|_, host| host.rotate(from, into))
    }

    fn download(&mut self, v: Vector, data: &mut [f32]) -> Result<()> {
        let dim = self.target.dim();
        for (own, row) in self.chains.iter_mut().zip(data.chunks_exact_mut(dim)) {
            row.copy_from_slice(own.vector(v));
        }
        Ok(())
    }

    fn write_all(&mut self, into: Vector, data: &[f32]) -> Result<()> {
        self.all(|_, host| host.write_all(into, data))
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()> {
        let width = kernel.scalars.len();
        self.all(|c, host| {
            let streams = streams.get(c..=c).unwrap_or_default();
            let scalars = &scalars[c * width..(c + 1) * width];
            host.map(kernel, vectors, range.clone(), scalars, streams)
        })
    }

    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        self.each(|_, host| Ok(host.sum(sum, vectors, range.clone())?[0]))
    }

    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()> {
        self.all(|c, host| host.copy(from, to, &which[c..=c]))
    }

    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()> {
        self.all(|_, host| host.reflect(momentum))
    }

    fn report_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
        factor: f64,
    ) -> Result<()> {
        if !self.listens {
            return Ok(());
        }
        for (own, value) in self.sum(sum, vectors, range)?.into_iter().enumerate() {
            self.chains[own].sums[slot] += factor * value;
        }
        Ok(())
    }

    fn report_by_tensor(
        &mut self,
        slot: usize,
        first: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
    ) -> Result<()> {
        let target = self.target;
        for (k, tensor) in target.layout().tensors().iter().enumerate() {
            let parts = self.sum(sum, vectors, tensor.range.clone())?;
            for (own, part) in self.chains.iter_mut().zip(parts).filter(|_| self.listens) {
                own.sums[first + k] += part / tensor.range.len() as f64;
                own.sums[slot] += part / target.dim() as f64;
            }
        }
        Ok(())
    }

    fn report_loss(&mut self, slot: usize) -> Result<()> {
        for own in self.chains.iter_mut().filter(|_| self.listens) {
            own.sums[slot] += own.loss;
        }
        Ok(())
    }

    fn report(&mut self, slot: usize, values: &[f64]) -> Result<()> {
        let chains = self.chains.iter_mut().filter(|_| self.listens);
        for (own, value) in chains.zip(values) {
            own.sums[slot] += value;
        }
        Ok(())
    }
}

impl Resident for Group<'_> {
    fn write(&mut self, v: Vector, data: &[f32]) -> Result<()> {
        let dim = self.target.dim();
        for (own, row) in self.chains.iter_mut().zip(data.chunks_exact(dim)) {
            own.vector(v).copy_from_slice(row);
        }
        Ok(())
    }

    fn info(&mut self) -> Result<Vec<f64>> {
        Ok(self
            .chains
            .iter()
            .flat_map(|own| own.sums.iter().copied())
            .collect())
    }

    fn set_info(&mut self, sums: &[f64]) -> Result<()> {
        let slots = self.chains.first().map_or(1, |own| own.sums.len().max(1));
        for (own, row) in self.chains.iter_mut().zip(sums.chunks_exact(slots)) {
            own.sums.copy_from_slice(row);
        }
        Ok(())
    }

    fn listen(&mut self, on: bool) {
        self.listens = on;
    }

    fn set_prior_strengths(&mut self, _: &[f64]) -> Result<()> {
        anyhow::bail!("chains that act on each other have one temperature")
    }

    fn likelihoods_and_priors(&mut self) -> Result<Vec<(f64, f64)>> {
        self.each(|_, host| {
            host.evaluate()?;
            let target = host.target();
            let prior = target.prior().energy(host.read(Vector::Params));
            Ok((target.scale() * host.loss, prior))
        })
    }

    fn split_sums(&mut self, _: &str) -> Result<Option<(Vec<Sums>, usize)>> {
        // Observables compute them, chain by chain, as for chains that step alone.
        Ok(None)
    }
}
