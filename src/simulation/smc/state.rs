//! Populations on their way, and their checkpoint.

use super::Stage;
use crate::error::Result;
use crate::store::archive::{Archive, Kept};
use std::sync::Arc;

/// Everything that a stage begins with.
#[derive(Default)]
pub(super) struct State {
    /// The particles, population by population.
    pub w: Vec<Arc<Vec<f32>>>,
    /// s·L of each; infinite if it has failed.
    pub energies: Vec<f64>,
    /// The draw from the prior that each descends from.
    pub roots: Vec<u64>,
    /// ln Z so far, per population.
    pub ln_z: Vec<f64>,
    /// 1/T.
    pub beta: f64,
    /// What changes slowly along the way: the step size, that of proposals over sqrt(T). NaN before the first stage.
    pub step: f64,
    /// Particles that failed so far.
    pub failed: u64,
    /// Those that are done.
    pub stages: Vec<Stage>,
}

impl State {
    /// Where they are, in words.
    pub fn place(&self) -> String {
        match self.stages.last() {
            None => "at the prior".to_string(),
            Some(s) => format!("at T = {:.4e}", s.temperature),
        }
    }
}

impl Kept for State {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        archive.copied("energies", &mut self.energies)?;
        archive.copied("roots", &mut self.roots)?;
        archive.copied("ln_z", &mut self.ln_z)?;
        let count = self.roots.len();
        archive.made(
            "params",
            &mut self.w,
            |w| w.iter().flat_map(|one| one.iter().copied()).collect(),
            |w, found: Vec<f32>| {
                let dim = found.len() / count.max(1);
                *w = found
                    .chunks(dim.max(1))
                    .map(|one| Arc::new(one.to_vec()))
                    .collect();
                Ok(())
            },
        )?;
        archive.table(
            "stages",
            &mut self.stages,
            |s| {
                let moves = s.moves as f64;
                [
                    s.temperature,
                    s.effective_share,
                    s.acceptance,
                    s.step_size,
                    moves,
                ]
            },
            |[temperature, effective_share, acceptance, step_size, moves]| Stage {
                moves: *moves as u64,
                temperature: *temperature,
                effective_share: *effective_share,
                acceptance: *acceptance,
                step_size: *step_size,
            },
        )?;
        let mut failed = self.failed as f64;
        archive.values("numbers", [&mut self.beta, &mut self.step, &mut failed])?;
        self.failed = failed as u64;
        anyhow::ensure!(
            self.energies.len() == count && self.w.len() == count,
            "the checkpoint has another number of energies than of particles"
        );
        Ok(())
    }
}
