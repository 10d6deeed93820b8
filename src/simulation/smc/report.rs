//! What is told of populations: a table, a map, a file.

use super::{Smc, Stage};
use crate::error::Result;
use crate::simulation::run::versions;
use crate::simulation::summary::with_error;
use crate::store;
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::Path;

impl Smc {
    /// Particles per population.
    pub fn particles(&self) -> usize {
        (self.params.vectors.len() + self.failed) / self.ln_z.len().max(1)
    }

    /// All fields as a map.
    pub fn to_map(&self) -> Map<String, Value> {
        let ln_z = self.estimate();
        let each = |f: fn(&Stage) -> f64| self.stages.iter().map(f).collect::<Vec<_>>();
        let fields = [
            ("ln_z", json!(ln_z.value)),
            ("error", json!(ln_z.standard_error)),
            ("ln_z_populations", json!(self.ln_z)),
            ("temperatures", json!(each(|s| s.temperature))),
            ("effective_share", json!(each(|s| s.effective_share))),
            ("acceptance", json!(each(|s| s.acceptance))),
            ("step_size", json!(each(|s| s.step_size))),
            ("families", json!(self.families)),
            ("particles", json!(self.particles())),
            ("populations", json!(self.ln_z.len())),
            ("failed", json!(self.failed)),
            ("parameters", json!(self.parameters)),
            ("seconds", json!(self.seconds)),
        ];
        fields
            .map(|(k, v)| (k.to_string(), v))
            .into_iter()
            .collect()
    }

    /// The record in the folder of the result; the particles are in its checkpoint.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let mut all = self.to_map();
        let seconds = all.remove("seconds");
        all.insert("name".into(), json!(self.name));
        all.insert("target".into(), json!(self.target));
        all.insert("sampler".into(), json!(self.sampler));
        all.insert("timings".into(), json!({ "seconds": seconds }));
        all.insert("versions".into(), versions());
        store::write_json(&folder.join("run.json"), &all)
    }

    /// The fewest draws from the prior that a population descends from.
    pub fn fewest_families(&self) -> usize {
        self.families.iter().copied().min().unwrap_or(0)
    }
}

/// Stages that a table shows.
const ROWS: usize = 16;

impl fmt::Display for Smc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (particles, populations) = (self.particles(), self.ln_z.len());
        let last = self.stages.last().map_or(f64::NAN, |s| s.temperature);
        let seconds = self.seconds;
        writeln!(
            f,
            "'{}': {populations} populations of {particles} particles, from the prior to T = {last:.4} in {} stages, by {}, {seconds:.1} s",
            self.name,
            self.stages.len(),
            self.sampler
        )?;
        writeln!(
            f,
            "{:>12}  {:>9}  {:>10}  {:>10}",
            "T", "ESS", "acceptance", "step"
        )?;
        let apart = self.stages.len().div_ceil(ROWS).max(1);
        for (k, s) in self.stages.iter().enumerate() {
            // The first, the last, and some between.
            if (self.stages.len() - 1 - k).is_multiple_of(apart) || k == 0 {
                let share = format!("{:.0} %", 100.0 * s.effective_share);
                let (t, step) = (s.temperature, s.step_size);
                writeln!(
                    f,
                    "{t:>12.4e}  {share:>9}  {:>10.3}  {step:>10.3e}",
                    s.acceptance
                )?;
            }
        }
        let ln_z = self.estimate();
        write!(
            f,
            "ln Z = {}; each population descends from {} draws of the prior or more",
            with_error(ln_z.value, ln_z.standard_error),
            self.fewest_families()
        )?;
        if populations == 1 {
            write!(f, "\nNOTE: one population alone gives no error bar")?;
        }
        if ln_z.standard_error > 0.5 {
            write!(
                f,
                "\nNOTE: populations disagree by more than half a unit of ln Z, so that its error bar is rough; take more particles, moves or a larger ess"
            )?;
        }
        if self.failed > 0 {
            write!(
                f,
                "\nNOTE: {} particles failed in the last moves and are left out",
                self.failed
            )?;
        }
        Ok(())
    }
}
