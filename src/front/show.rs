//! `ergodic show`: the summary of runs on disk, finished or not.

use crate::error::Result;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The runs in a folder: itself, or its subfolders that have a checkpoint of chains.
pub fn runs(folder: &Path) -> Result<Vec<(Run, bool)>> {
    anyhow::ensure!(
        folder.is_dir(),
        "{}: there is no such folder",
        folder.display()
    );
    let mut folders: Vec<PathBuf> = vec![folder.into()];
    if !folder.join("checkpoint").is_dir() {
        let entries =
            std::fs::read_dir(folder).map_err(|e| anyhow::anyhow!("{}: {e}", folder.display()))?;
        folders = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.join("checkpoint").is_dir())
            .collect();
        folders.sort();
    }
    anyhow::ensure!(
        !folders.is_empty(),
        "{}: no run in this folder",
        folder.display()
    );
    let found: Vec<_> = folders
        .iter()
        .map(|f| Run::load(f))
        .collect::<Result<Vec<_>>>()?;
    let found: Vec<_> = found.into_iter().flatten().collect();
    anyhow::ensure!(
        !found.is_empty(),
        "{}: only trainings or populations of smc, no run in this folder; their run.json tells of them",
        folder.display()
    );
    Ok(found)
}

/// The summaries of a folder's runs, as text.
pub fn text(folder: &Path) -> Result<String> {
    let mut out = String::new();
    for (run, done) in runs(folder)? {
        if !done {
            let step = run.least_step();
            let phase = if step < run.info.burn_in {
                ", still in burn-in: no draws yet"
            } else {
                ""
            };
            out += &format!(
                "'{}' UNFINISHED at step {step} of {}{phase}; continue with --resume\n",
                run.info.name, run.info.steps
            );
            if step < run.info.burn_in {
                continue;
            }
        }
        out += &format!("{}\n", Summary::new(&run)?);
    }
    Ok(out.trim_end().to_string())
}

/// The summaries of a folder's runs, by name.
pub fn json(folder: &Path) -> Result<Value> {
    let mut out = Map::new();
    for (run, done) in runs(folder)? {
        let mut map = Summary::new(&run)?.to_map();
        map.insert("done".into(), done.into());
        out.insert(run.info.name.clone(), Value::Object(map));
    }
    Ok(Value::Object(out))
}
