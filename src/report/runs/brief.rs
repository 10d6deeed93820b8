//! A run, a training or a benchmark in brief: what its folder says without its numbers being read.

use crate::diagnostic::Verdict;
use crate::report::layout::name;
use crate::simulation::job::Record;
use crate::simulation::llc::curve::Curve;
use crate::simulation::run::Run;
use crate::simulation::run::kind;
use crate::store::{self, checkpoint};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Bytes of a checkpoint up to which a finished run that bears no verdict is judged.
const MOST_READ: u64 = 50_000_000;

/// What a folder says.
#[derive(Debug, Clone)]
pub(super) struct Brief {
    pub folder: PathBuf,
    /// "sample", "train", "llc".
    pub kind: String,
    pub done: bool,
    /// The part of it that is done, where that is known.
    pub share: Option<f64>,
    pub verdict: Option<Verdict>,
    pub seconds: f64,
    pub damage: Option<String>,
}

impl Brief {
    pub fn of(folder: &Path) -> Self {
        let path = folder.join("run.json");
        let mut out = Self {
            folder: folder.into(),
            kind: String::new(),
            done: true,
            share: None,
            verdict: None,
            seconds: 0.0,
            damage: None,
        };
        if folder.join("benchmark.json").is_file() {
            out.kind = "benchmark".into();
            return out;
        }
        let meta = checkpoint::description(&folder.join("checkpoint"));
        let Some(meta) = meta else {
            out.kind = "damaged".into();
            out.damage = Some(format!("{}: no valid checkpoint", name(folder)));
            return out;
        };
        let course = Record::of(&meta);
        out.kind = match folder.join("llc.json").is_file() {
            true => "llc".into(),
            false => kind(&meta),
        };
        (out.done, out.share, out.seconds) = (course.done, course.share, course.seconds);
        if out.kind == "llc_curve" {
            let found = Curve::load(folder).ok().flatten();
            out.verdict = found.map(|c| c.verdict());
        }
        if path.is_file() {
            match store::read_json::<Value>(&path) {
                Ok(record) => out.judge(&record),
                Err(e) => out.damage = Some(format!("{}: {e:#}", name(folder))),
            }
        }
        out
    }

    /// Take the verdict from the record, or look for it where there is none, as of earlier versions.
    fn judge(&mut self, record: &Value) {
        let said: Option<Verdict> = serde_json::from_value(record["verdict"].clone()).ok();
        let small = store::bytes_in(&self.folder.join("checkpoint")) <= MOST_READ;
        let look = || match record["verdict"].is_null() && record["run"].is_object() && small {
            true => Run::load(&self.folder).ok()??.0.verdict(),
            false => None,
        };
        self.verdict = said.or_else(look);
    }
}
