//! Populations on their way, and their checkpoint.

use super::Stage;
use crate::error::Result;
use crate::store::checkpoint::{self, Checkpoint, DataRef, TensorData, TensorRef};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Everything that a stage begins with.
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

    /// Write a checkpoint into the folder of the result.
    pub fn save(&self, folder: &Path, meta: &Value) -> Result<()> {
        let dim = self.w.first().map_or(0, |w| w.len());
        let mut w = Vec::with_capacity(self.w.len() * dim);
        self.w.iter().for_each(|one| w.extend_from_slice(one));
        let row = |s: &Stage| [s.temperature, s.effective_share, s.acceptance, s.step_size];
        let stages: Vec<f64> = self.stages.iter().flat_map(row).collect();
        let numbers = [self.beta, self.step, self.failed as f64];
        let tensors = [
            ("params", vec![self.w.len(), dim], DataRef::F32(&w)),
            (
                "energies",
                vec![self.energies.len()],
                DataRef::F64(&self.energies),
            ),
            ("roots", vec![self.roots.len()], DataRef::U64(&self.roots)),
            ("ln_z", vec![self.ln_z.len()], DataRef::F64(&self.ln_z)),
            ("stages", vec![self.stages.len(), 4], DataRef::F64(&stages)),
            ("numbers", vec![3], DataRef::F64(&numbers)),
        ];
        let named = tensors.map(|(name, shape, data)| (name.into(), TensorRef { shape, data }));
        checkpoint::save(&folder.join("checkpoint"), meta, &named)
    }

    /// What [`State::save`] wrote, with `dim` parameters per particle.
    pub fn from_checkpoint(saved: Checkpoint, dim: usize) -> Result<Self> {
        let mut found: HashMap<String, TensorData> = saved
            .tensors
            .into_iter()
            .map(|(n, t)| (n, t.data))
            .collect();
        let wrong = |name: &str| anyhow::anyhow!("the checkpoint has no '{name}' as it should");
        let (Some(TensorData::F32(w)), Some(TensorData::U64(roots))) =
            (found.remove("params"), found.remove("roots"))
        else {
            return Err(wrong("params"));
        };
        let mut doubles = |name: &str| match found.remove(name) {
            Some(TensorData::F64(x)) => Ok(x),
            _ => Err(wrong(name)),
        };
        let (energies, ln_z) = (doubles("energies")?, doubles("ln_z")?);
        let (stages, numbers) = (doubles("stages")?, doubles("numbers")?);
        anyhow::ensure!(
            energies.len() * dim == w.len() && roots.len() == energies.len() && numbers.len() == 3,
            "the checkpoint has other particles than the model"
        );
        let stage = |s: &[f64]| Stage {
            temperature: s[0],
            effective_share: s[1],
            acceptance: s[2],
            step_size: s[3],
        };
        Ok(Self {
            w: w.chunks_exact(dim).map(|w| Arc::new(w.to_vec())).collect(),
            energies,
            roots,
            ln_z,
            beta: numbers[0],
            step: numbers[1],
            failed: numbers[2] as u64,
            stages: stages.chunks_exact(4).map(stage).collect(),
        })
    }
}
