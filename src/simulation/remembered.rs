//! What a finished run says of itself, as it was when it was written: read at once, however large the run is.

use super::export::damage;
use super::run::Run;
use super::summary::Summary;
use crate::error::Result;
use crate::store::{self, checkpoint};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::path::Path;

/// The file in the folder of a run, beside what it summarises.
const FILE: &str = "checkpoint/summary.json";

/// What is on disk.
#[derive(Debug, Serialize, Deserialize)]
pub struct Remembered {
    /// Of which checkpoint: its checksum.
    checkpoint: String,
    /// What made it.
    ergodic: String,
    /// The summary as a table.
    text: String,
    /// The summary as a map.
    pub numbers: Map<String, Value>,
}

impl Run {
    /// Write what the run says of itself into its folder.
    pub(super) fn remember(&self, summary: &Summary) -> Result<()> {
        let Some(checkpoint) = checkpoint::stamp(&self.folder.join("checkpoint")) else {
            return Ok(());
        };
        let remembered = Remembered {
            checkpoint,
            ergodic: env!("CARGO_PKG_VERSION").into(),
            text: summary.to_string(),
            numbers: summary.to_map(),
        };
        store::write_json(&self.folder.join(FILE), &remembered)
    }
}

impl Remembered {
    /// That of a run in its folder, if it is finished and its numbers are those that were summarised.
    pub fn of(folder: &Path) -> Option<Self> {
        let path = folder.join(FILE);
        let found: Self = path.is_file().then(|| store::read_json(&path).ok())??;
        let saved = folder.join("checkpoint");
        let same = found.ergodic == env!("CARGO_PKG_VERSION")
            && checkpoint::stamp(&saved)? == found.checkpoint
            && checkpoint::is_whole(&saved);
        same.then_some(found)
    }

    /// The summary as a table, and which files are not as they were written.
    pub fn text(&self, folder: &Path) -> String {
        printed(&self.text, folder)
    }
}

/// The summary of the run in a folder, and which files are not as they were written.
pub(crate) fn printed(summary: &impl Display, folder: &Path) -> String {
    let damage = damage(folder, None);
    let notes = damage.iter().map(|d| format!("NOTE: {d}\n"));
    format!("{summary}\n{}", notes.collect::<String>())
}
