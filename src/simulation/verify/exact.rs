//! An exact chain that starts from draws of another.

use super::Work;
use crate::engine::report::Slots;
use crate::engine::{Block, ChainRef, Chains, Member, Row};
use crate::error::{Interrupted, Result};
use crate::sampler::ConfiguredSampler;
use crate::simulation::session::Interrupt;
use crate::target::{Target, Workspace};
use std::sync::Arc;

/// An exact chain, started again and again.
pub(super) struct Exact {
    hmc: Arc<ConfiguredSampler>,
    w: Vec<f32>,
    vectors: Vec<Vec<f32>>,
    scalars: Vec<f64>,
    slots: Slots,
    /// Whether the step size was found.
    ready: bool,
    index: usize,
    seed: u64,
    temperature: f64,
    step: u64,
}

/// Moves in which the exact chain finds its step size.
const PILOT: u64 = 60;

impl Exact {
    pub(super) fn new(target: &Target, hmc: &Arc<ConfiguredSampler>, from: ChainRef) -> Self {
        let n = target.dim();
        Self {
            w: vec![0.0; n],
            vectors: vec![vec![0.0; n]; hmc.vectors.len()],
            scalars: vec![0.0; hmc.scalars.len()],
            slots: hmc.slots(target),
            hmc: hmc.clone(),
            ready: false,
            index: from.index,
            // Its random numbers must be others than those of the chain.
            seed: from.seed ^ 0x7665_7269_6679,
            temperature: from.temperature,
            step: 0,
        }
    }

    /// Let its sampler do something.
    fn sample(
        &mut self,
        burn_in: u64,
        (target, work): (&Target, &mut Workspace),
        f: impl FnOnce(&ConfiguredSampler, &mut Chains) -> Result<()>,
    ) -> Result<()> {
        let member = Member {
            index: self.index,
            group: 0,
            temperature: self.temperature,
            failure: None,
            scalars: &mut self.scalars,
        };
        let vectors = self.vectors.iter_mut().map(Vec::as_mut_slice).collect();
        let row = Row::new(&mut self.w, vectors, &mut []);
        let mut block = Block::new((self.seed, burn_in), self.step, member, row);
        let work = std::slice::from_mut(work);
        block.work(target, work, (&self.slots, false), |chains| {
            f(&self.hmc, chains)
        })
    }

    /// U and the observables where it is.
    fn measure(&self, of: &Work, target: &Target, work: &mut Workspace) -> Result<Vec<f64>> {
        let chain = ChainRef {
            index: self.index,
            seed: self.seed,
            step: self.step,
            temperature: self.temperature,
            w: &self.w,
            vectors: &[],
        };
        of.measure(chain, target, work)
    }

    fn go(
        &mut self,
        (moves, burn_in): (u64, u64),
        target: &Target,
        work: &mut Workspace,
        interrupt: &Interrupt,
    ) -> Result<()> {
        for _ in 0..moves {
            if interrupt.interrupted() {
                let what = "a verification, of which nothing is kept".into();
                return Err(Interrupted { what }.into());
            }
            self.sample(burn_in, (target, work), |hmc, chains| hmc.step(chains))?;
            self.step += 1;
        }
        Ok(())
    }

    fn start(&mut self, w: &[f32], target: &Target, work: &mut Workspace) -> Result<()> {
        self.w.copy_from_slice(w);
        self.sample(0, (target, work), |hmc, chains| hmc.init(chains))
    }

    /// U and the observables at `w` and after the moves.
    pub(super) fn move_from(
        &mut self,
        w: &[f32],
        of: &Work,
        target: &Target,
        work: &mut Workspace,
    ) -> Result<[Vec<f64>; 2]> {
        if !self.ready {
            self.start(w, target, work)?;
            self.go((PILOT, PILOT), target, work, &of.interrupt)?;
            let at = self.hmc.scalars.iter().position(|s| *s == "dt");
            let found = at.map(|at| self.scalars[at]);
            // A step size that is given is not looked for again.
            if let Some(fixed) = found.map(|dt| self.hmc.with("dt", dt)).transpose()? {
                self.hmc = fixed.unwrap_or_else(|| self.hmc.clone());
            }
            self.ready = true;
        }
        self.start(w, target, work)?;
        let before = self.measure(of, target, work)?;
        self.go((of.moves, 0), target, work, &of.interrupt)?;
        let after = self.measure(of, target, work)?;
        Ok([before, after])
    }
}
