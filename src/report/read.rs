//! What is in a folder of results: the script's record, and its runs, trainings, populations and benchmarks.

use super::kinds::{Course, Damaged};
use super::layout::{is_part, part_folders, shards};
use super::part::{Part, Told};
use super::record::Record;
use super::sampled::Sampled;
use crate::error::Result;
use crate::simulation::job::Printed;
use crate::simulation::llc::curve::Curve;
use crate::simulation::llc::saved::Saved;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::trained::Trained;
use crate::simulation::transcript::reproduces;
use crate::store::{claim, disk};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Part {
    /// Read it.
    pub fn of(folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default();
        Self {
            name: name.to_string_lossy().into_owned(),
            folder: folder.into(),
            of: read(folder).unwrap_or_else(|e| Box::new(Damaged(format!("{e:#}")))),
        }
    }
}

/// What is in a folder, of whatever kind.
fn read(folder: &Path) -> Result<Box<dyn Told>> {
    if let Some(benchmark) = Benchmark::load(folder)? {
        return Ok(Box::new(benchmark));
    }
    if let Some((run, done)) = Run::load(folder)? {
        let (saved, run) = (Saved::of(&run)?, Arc::new(run));
        return Ok(Box::new(Sampled { run, done, saved }));
    }
    if let Some((so_far, done)) = Trained::load(folder)? {
        return Ok(Box::new(Course { so_far, done }));
    }
    if let Some((so_far, done)) = Smc::load(folder)? {
        return Ok(Box::new(Course { so_far, done }));
    }
    if let Some(curve) = Curve::load(folder)? {
        return Ok(Box::new(curve));
    }
    match Printed::load(folder)? {
        Some(printed) => Ok(Box::new(printed)),
        None => anyhow::bail!(
            "{}: the checkpoint is of another kind or version",
            folder.display()
        ),
    }
}

/// A folder of results.
#[derive(Debug)]
pub struct Results<P = Part> {
    /// Where.
    pub folder: PathBuf,
    /// The record of the script; that of the folder above where this is the folder of one part.
    pub record: Option<Record>,
    /// Whether it is the folder of one part.
    pub single: bool,
    /// What the script has made, by name.
    pub parts: Vec<P>,
    /// Figures that the script has saved.
    pub figures: Vec<PathBuf>,
    /// What else is to be said.
    pub notes: Vec<String>,
}

/// What is to be said of a script that has not come to its end.
fn course(home: &Path, record: Option<&Record>) -> Option<String> {
    let owner = claim::owner_of(home);
    match (owner, record.map(|r| &*r.status)) {
        (Some(owner), _) => Some(format!("still running: {owner} writes here")),
        (None, None) => Some(match reproduces(home) {
            Some(command) => format!("this is the folder of a session; `{command}` reproduces its runs"),
            None => "there is no record of a script here: it was killed, or this is the folder of a session".into(),
        }),
        (None, Some("")) => Some("the script was killed; continue with --resume".into()),
        (None, Some(_)) => None,
    }
}

impl<P> Results<P> {
    /// Read the folder of a script's results, or that of one of its runs, and their parts by `read`.
    ///
    /// # Errors
    /// If there is no such folder, or nothing of ours in it. What is damaged is named in [`Results::parts`] instead.
    pub fn with(folder: &Path, mut read: impl FnMut(&Path) -> P) -> Result<Self> {
        let shown = folder.display();
        anyhow::ensure!(folder.exists(), "{shown}: there is no such folder");
        anyhow::ensure!(
            folder.is_dir(),
            "{shown}: this is a file; name the folder of a run, or of a script's results"
        );
        // A relative path may have no name and no folder above: ".".
        let whole = folder
            .canonicalize()
            .map_err(|e| anyhow::anyhow!("{shown}: {e}"))?;
        let single = is_part(&whole);
        let mut notes = Vec::new();
        let home = match single {
            true => whole.parent().unwrap_or(&whole),
            false => &whole,
        };
        let record = Record::of(home).unwrap_or_else(|e| {
            notes.push(format!("the record of the script is damaged: {e:#}"));
            None
        });
        let mut folders = vec![whole.clone()];
        if !single {
            folders = part_folders(&whole, record.as_ref());
            let shards = shards(&whole);
            if !shards.is_empty() && folders.is_empty() {
                notes.push(format!(
                    "{} are parts of a larger run: put them together with --merge, or name them one by one",
                    shards.join(", ")
                ));
            }
        }
        let parts: Vec<_> = folders.iter().map(|part| read(part)).collect();
        let mut figures = Vec::new();
        if !single {
            let saved = disk::entries(&whole.join("figures"));
            figures.extend(saved.map(|e| e.path()));
            figures.retain(|p| p.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")));
            figures.sort();
        }
        anyhow::ensure!(
            !parts.is_empty() || record.is_some() || !notes.is_empty(),
            "{shown}: no run in this folder; name the folder of a run, or of a script's results such as runs/quickstart; `ergodic ls {shown}` lists what is below it"
        );
        if notes.is_empty() {
            notes.extend(course(home, record.as_ref()));
        }
        Ok(Self {
            folder: folder.into(),
            record,
            single,
            parts,
            figures,
            notes,
        })
    }
}

impl Results {
    /// Read the folder of a script's results, or that of one of its runs, with all numbers of its parts.
    ///
    /// # Errors
    /// As [`Results::with`].
    pub fn of(folder: &Path) -> Result<Self> {
        Self::with(folder, Part::of)
    }

    /// A run that is in memory, as its script sees it.
    pub fn of_run(run: &Arc<Run>, record: Record) -> Result<Self> {
        let saved = Saved::of(run)?;
        Ok(Self {
            folder: run.folder.clone(),
            record: Some(record),
            single: true,
            parts: vec![Part {
                name: run.info.name.clone(),
                folder: run.folder.clone(),
                of: Box::new(Sampled {
                    run: run.clone(),
                    done: true,
                    saved,
                }),
            }],
            figures: Vec::new(),
            notes: Vec::new(),
        })
    }
}
