//! An exact chain that starts from draws of another.

use super::Work;
use crate::engine::host::Chain;
use crate::error::{Interrupted, Result};
use crate::sampler::Configured;
use crate::simulation::session;
use crate::target::{Target, Workspace};
use std::sync::Arc;

/// An exact chain, started again and again.
pub(super) struct Exact {
    hmc: Arc<Configured>,
    w: Vec<f32>,
    vectors: Vec<Vec<f32>>,
    scalars: Vec<f64>,
    info: Vec<f64>,
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
    pub(super) fn new(target: &Target, hmc: &Arc<Configured>, from: &Chain) -> Self {
        let n = target.dim();
        Self {
            w: vec![0.0; n],
            vectors: vec![vec![0.0; n]; hmc.vectors.len()],
            scalars: vec![0.0; hmc.scalars.len()],
            info: vec![0.0; hmc.slots(target)],
            hmc: hmc.clone(),
            ready: false,
            index: from.index,
            // Its random numbers must be others than those of the chain.
            seed: from.seed ^ 0x7665_7269_6679,
            temperature: from.temperature,
            step: 0,
        }
    }

    pub(super) fn with<R>(
        &mut self,
        burn_in: u64,
        f: impl FnOnce(&mut Chain, &mut [f64]) -> R,
    ) -> R {
        let mut chain = Chain {
            index: self.index,
            group: 0,
            step: self.step,
            seed: self.seed,
            temperature: self.temperature,
            burn_in,
            w: &mut self.w,
            vectors: self.vectors.iter_mut().map(Vec::as_mut_slice).collect(),
            scalars: &mut self.scalars,
        };
        f(&mut chain, &mut self.info)
    }

    pub(super) fn go(
        &mut self,
        moves: u64,
        burn_in: u64,
        target: &Target,
        work: &mut Workspace,
    ) -> Result<()> {
        let hmc = self.hmc.clone();
        for _ in 0..moves {
            if session::interrupted() {
                let what = "a verification, of which nothing is kept".into();
                return Err(Interrupted { what }.into());
            }
            self.with(burn_in, |chain, info| {
                chain.lend(target, work, info, |chains| hmc.step(chains))
            })?;
            self.step += 1;
        }
        Ok(())
    }

    pub(super) fn start(&mut self, w: &[f32], target: &Target, work: &mut Workspace) -> Result<()> {
        self.w.copy_from_slice(w);
        let hmc = self.hmc.clone();
        let init = |chain: &mut Chain, info: &mut [f64]| {
            chain.lend(target, work, info, |chains| hmc.init(chains))
        };
        self.with(0, init).map(drop)
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
            self.go(PILOT, PILOT, target, work)?;
            let at = self.hmc.scalars.iter().position(|s| *s == "dt");
            let found = at.map(|at| self.scalars[at]);
            // A step size that is given is not looked for again.
            if let Some(fixed) = found.map(|dt| self.hmc.with("dt", dt)).transpose()? {
                self.hmc = fixed.unwrap_or_else(|| self.hmc.clone());
            }
            self.ready = true;
        }
        self.start(w, target, work)?;
        let before = self.with(0, |chain, _| of.measure(chain, target, work))?;
        self.go(of.moves, 0, target, work)?;
        let after = self.with(0, |chain, _| of.measure(chain, target, work))?;
        Ok([before, after])
    }
}
