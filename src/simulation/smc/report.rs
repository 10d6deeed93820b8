//! What is told of populations: a table, a map, a file.

use super::{Smc, Stage};
use crate::diagnostic::Verdict;
use crate::diagnostic::evidence::annealing::{self, Families};
use crate::error::Result;
use crate::simulation::run::versions;
use crate::simulation::standing::Judged;
use crate::simulation::summary::with_error;
use crate::store;
use crate::table::Table;
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::Path;

impl Smc {
    /// All fields as a map.
    pub fn to_map(&self) -> Map<String, Value> {
        let (ln_z, judged) = (self.estimate(), self.judged());
        let each = |f: fn(&Stage) -> f64| self.stages.iter().map(f).collect::<Vec<_>>();
        let of_families = |part: &dyn Fn(&Families) -> Value| -> Value {
            self.families.iter().map(part).collect()
        };
        let fields = [
            ("verdict", json!(judged.verdict)),
            ("reasons", json!(judged.reasons)),
            ("ln_z", json!(ln_z.value)),
            ("error", json!(ln_z.standard_error)),
            ("ln_z_populations", json!(self.ln_z)),
            ("temperatures", json!(each(|s| s.temperature))),
            ("effective_share", json!(each(|s| s.effective_share))),
            ("acceptance", json!(each(|s| s.acceptance))),
            ("step_size", json!(each(|s| s.step_size))),
            (
                "moves",
                json!(self.stages.iter().map(|s| s.moves).collect::<Vec<_>>()),
            ),
            ("families", of_families(&|f| json!(f.count))),
            ("family_mean_square", of_families(&|f| json!(f.mean_square))),
            ("family_entropic", of_families(&|f| json!(f.entropic))),
            ("particles", json!(self.particles)),
            ("populations", json!(self.ln_z.len())),
            ("scatter", json!(annealing::scatter(&self.ln_z))),
            ("failed", json!(self.failed)),
            ("parameters", json!(self.parameters)),
            ("seconds", json!(self.seconds)),
        ];
        let notes = (!self.notes.is_empty()).then(|| ("notes", json!(self.notes)));
        fields
            .into_iter()
            .chain(notes)
            .map(|(k, v)| (k.to_string(), v))
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

    /// How far ln Z and the particles can be relied on, and why no further.
    pub fn judged(&self) -> Judged {
        let mut out = Judged::converged();
        let mut lacks = |says: String| out.add(Verdict::NotYet, says);
        let populations = self.ln_z.len();
        let scatter = annealing::scatter(&self.ln_z);
        if populations == 1 {
            lacks("one population alone gives no error bar".to_string());
        } else if scatter > annealing::DISAGREE {
            lacks(format!(
                "ln Z of the populations scatters by {scatter:.1}: their mean is dominated by the best few, and most likely too small; take more particles, more moves or a larger ess"
            ));
        } else if populations < 4 {
            lacks(format!(
                "{populations} populations give a rough error bar; take 4 or more"
            ));
        }
        let fewest = self.families.iter().map(|f| f.count).min().unwrap_or(0);
        if fewest < FEW.min(self.particles / 4) {
            lacks(format!(
                "a population descends from {fewest} of its draws from the prior, and may still share what those had in common; take more particles or more moves"
            ));
        }
        let least = |s: &&Stage| s.effective_share * (self.particles as f64) < 2.0;
        if let Some(s) = self.stages.iter().find(least) {
            lacks(format!(
                "at T = {:.4e} the weights are those of less than two particles: put temperatures before it",
                s.temperature
            ));
        }
        let odd = |s: &&Stage| !(0.1..0.995).contains(&s.acceptance);
        if let Some(s) = self.stages.iter().find(odd) {
            lacks(format!(
                "of the moves at T = {:.4e}, {:.1} % were accepted: they are too long or too short to mix; take more moves, a larger ess, or another step size",
                s.temperature,
                100.0 * s.acceptance
            ));
        }
        if self.failed > 0 {
            lacks(format!(
                "{} particles failed on the way, and count as having likelihood zero",
                self.failed
            ));
        }
        out
    }
}

/// Draws from the prior below which a population is one family.
const FEW: usize = 5;

/// Stages that a table shows.
const ROWS: usize = 16;

impl Smc {
    /// A row per stage, or some of them, and ln Z.
    pub fn table(&self) -> Table {
        let (particles, populations) = (self.particles, self.ln_z.len());
        let last = self.stages.last().map_or(f64::NAN, |s| s.temperature);
        let several = |n: usize, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let mut out = Table::new(["T", "ESS", "acceptance", "step"]).line_above(format!(
            "'{}': {} of {particles} particles, from the prior to T = {last:.4} in {}, by {}, {:.1} s",
            self.name,
            several(populations, "population"),
            several(self.stages.len(), "stage"),
            self.sampler,
            self.seconds
        ));
        out.above.extend(self.judged().line("estimate"));
        let apart = self.stages.len().div_ceil(ROWS).max(1);
        for (k, s) in self.stages.iter().enumerate() {
            // The first, the last, and some between.
            if (self.stages.len() - 1 - k).is_multiple_of(apart) || k == 0 {
                out.push([
                    format!("{:.4e}", s.temperature),
                    format!("{:.0} %", 100.0 * s.effective_share),
                    format!("{:.3}", s.acceptance),
                    format!("{:.3e}", s.step_size),
                ]);
            }
        }
        let ln_z = self.estimate();
        out.below.push(format!(
            "ln Z = {}; the populations scatter by {:.2}",
            with_error(ln_z.value, ln_z.standard_error),
            annealing::scatter(&self.ln_z)
        ));
        let effective = self.families.iter().map(|f| particles as f64 / f.entropic);
        let mean = |part: fn(&Families) -> f64| {
            self.families.iter().map(part).sum::<f64>() / populations as f64
        };
        out.below.push(format!(
            "families: ρ_t = {:.2}, ρ_s = {:.2}; {:.0} are left in effect of {} draws from the prior ({:.0} are enough, as population annealing has it)",
            mean(|f| f.mean_square),
            mean(|f| f.entropic),
            effective.sum::<f64>(),
            particles * populations,
            annealing::ENOUGH_FAMILIES
        ));
        out.below
            .extend(self.notes.iter().map(|w| format!("NOTE: {w}")));
        out
    }
}

impl fmt::Display for Smc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}
