//! A finished training, or what there is of one in its folder.

use super::job::Record;
use super::summary::with_error;
use super::training_state::Course;
use crate::error::Result;
use crate::model::{Layout, load};
use crate::store::archive::Archive;
use crate::store::checkpoint;
use crate::target::prior::Parameters;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most trainings side by side.
const MOST: usize = 1_000_000;

/// A finished training.
#[derive(Debug)]
pub struct Trained {
    /// Name.
    pub name: String,
    /// Optimiser, in words.
    pub text: String,
    /// Final parameters per chain: the best on the validation split with early stopping, otherwise the last.
    pub params: Arc<Parameters>,
    /// Names of the columns of the history.
    pub columns: Vec<String>,
    /// History per chain, `[epochs, columns]`.
    pub history: Vec<Vec<f64>>,
    /// Epoch whose parameters were kept, per chain.
    pub best_epoch: Vec<u64>,
    /// Seconds.
    pub seconds: f64,
    /// Epochs whose parameters are on disk.
    pub checkpoints: Vec<u64>,
    /// The target, in words.
    pub target: String,
    /// What is to be said of its course, as that it went on from an older checkpoint.
    pub notes: Vec<String>,
    /// Where.
    pub(crate) folder: PathBuf,
    pub(super) layout: Layout,
}

impl Trained {
    /// A training from its folder: the newest checkpoint, and whether it is complete; none if the folder is that of something else.
    /// Its parameters are the last ones, and there are no checkpoints of epochs.
    pub fn load(folder: &Path) -> Result<Option<(Self, bool)>> {
        let Some((saved, generation)) = checkpoint::load(&folder.join("checkpoint"))? else {
            return Ok(None);
        };
        let what = saved.meta["what"].clone();
        let text = |key: &str| what[key].as_str().unwrap_or_default().to_string();
        let (Some(columns), Some(chains)) = (what["columns"].as_array(), what["chains"].as_u64())
        else {
            return Ok(None);
        };
        let columns: Vec<_> = columns.iter().filter_map(Value::as_str).collect();
        anyhow::ensure!(
            !columns.is_empty() && (1..=MOST as u64).contains(&chains),
            "{}: the checkpoint has no columns, or an odd number of chains",
            folder.display()
        );
        let columns: Vec<_> = columns.into_iter().map(String::from).collect();
        let done = saved.meta["done"] == json!(true);
        let mut courses: Vec<_> = (0..chains).map(|_| Course::new(Vec::new())).collect();
        let Record {
            mut notes, seconds, ..
        } = Record::of(&saved.meta);
        Archive::restore(&mut courses, saved.tensors)?;
        let epoch = courses.iter().map(|c| c.epoch).min().unwrap_or(0);
        notes.extend(generation.shown(&format!("at epoch {epoch}")));
        // Whether the best or the last epoch was kept, the record says.
        let record = crate::store::read_json::<Value>(&folder.join("run.json"));
        let record = record.unwrap_or_default();
        let kept = |(c, course): (usize, &Course)| {
            let said = record["best_epoch"].get(c).and_then(Value::as_u64);
            said.unwrap_or(course.epoch)
        };
        let best_epoch = courses.iter().enumerate().map(kept).collect();
        let (vectors, history) = courses
            .into_iter()
            .map(|c| (Arc::new(c.w), c.history))
            .unzip();
        let name = folder.file_name().unwrap_or_default();
        let trained = Self {
            name: name.to_string_lossy().into_owned(),
            text: text("optimizer"),
            params: Arc::new(Parameters { vectors }),
            columns,
            history,
            best_epoch,
            seconds,
            checkpoints: Vec::new(),
            target: text("target"),
            notes,
            folder: folder.into(),
            layout: Layout::new([]),
        };
        Ok(Some((trained, done)))
    }

    /// The parameters of all chains after an epoch.
    ///
    /// # Errors
    /// If they were not kept, or cannot be read.
    pub fn checkpoint(&self, epoch: u64) -> Result<Parameters> {
        anyhow::ensure!(
            self.checkpoints.contains(&epoch),
            "training '{}' kept no parameters of epoch {epoch}; it kept those of {:?} (option 'checkpoints'; --quick moves them)",
            self.name,
            self.checkpoints
        );
        let load = |c| load::weights(&self.layout, &weights(&self.folder, c, Some(epoch)));
        let vectors = (0..self.history.len()).map(|c| Ok(Arc::new(load(c)?)));
        let vectors = vectors.collect::<Result<_>>()?;
        Ok(Parameters { vectors })
    }

    /// One column of a chain's history.
    pub fn column(&self, name: &str, chain: usize) -> Result<Vec<f64>> {
        let known = self.columns.iter().map(String::as_str);
        let at = self.columns.iter().position(|c| c == name);
        let at = at.ok_or_else(|| {
            anyhow::anyhow!(
                "training '{}' has no column '{name}'{}",
                self.name,
                crate::error::did_you_mean(name, known)
            )
        })?;
        let rows = self.history.get(chain).ok_or_else(|| {
            anyhow::anyhow!(
                "training '{}' has {} chains, there is no chain {chain}",
                self.name,
                self.history.len()
            )
        })?;
        Ok(rows
            .iter()
            .skip(at)
            .step_by(self.columns.len())
            .copied()
            .collect())
    }

    /// The last (or, with early stopping, the kept) row of a chain, as name and value.
    pub fn kept(&self, chain: usize) -> Vec<(String, f64)> {
        let width = self.columns.len();
        let rows = &self.history[chain];
        if rows.len() < width {
            return Vec::new();
        }
        let row = (self.best_epoch[chain] as usize).clamp(1, rows.len() / width) - 1;
        self.columns
            .iter()
            .cloned()
            .zip(rows[row * width..].iter().copied())
            .collect()
    }
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {} ({:.1} s)", self.name, self.text, self.seconds)?;
        for c in 0..self.history.len() {
            let kept: Vec<_> = self
                .kept(c)
                .into_iter()
                .map(|(k, v)| {
                    if v.fract() == 0.0 {
                        format!("{k} {v:.0}")
                    } else {
                        format!("{k} {}", with_error(v, f64::NAN))
                    }
                })
                .collect();
            writeln!(f, "  chain {c}: {}", kept.join(", "))?;
        }
        for note in &self.notes {
            writeln!(f, "  NOTE: {note}")?;
        }
        Ok(())
    }
}

/// The file of a chain's parameters: those it ended with, or those after an epoch.
pub(super) fn weights(folder: &Path, chain: usize, epoch: Option<u64>) -> PathBuf {
    let epoch = epoch.map_or(String::new(), |e| format!("-epoch-{e}"));
    folder.join(format!("weights/chain-{chain}{epoch}.safetensors"))
}
