//! What is in a folder of results: the script's record, and its runs, trainings, populations and benchmarks.

use super::kinds::{Course, Damaged};
use super::part::{Part, Told};
use super::sampled::Sampled;
use crate::error::Result;
use crate::simulation::job::Printed;
use crate::simulation::llc::saved::Saved;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::trained::Trained;
use crate::store;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The record of a script, from the run.json of its folder.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Its file.
    pub script: String,
    /// Its text.
    pub source: String,
    /// `--set` names and values.
    pub settings: Vec<(String, String)>,
    /// Master seed.
    pub seed: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Where chains stepped.
    pub device: String,
    /// Whether steps were cut by --quick.
    pub quick: bool,
    /// Program, system, instruction set.
    pub versions: Map<String, Value>,
    /// Seconds it took.
    pub seconds: Option<f64>,
    /// "done", or what went wrong; empty while it runs.
    pub status: String,
    /// What it printed.
    pub printed: String,
    /// The value of its last expression.
    pub result: Value,
    /// When the record was written.
    pub written: Option<SystemTime>,
}

impl Record {
    /// From a run.json; none if it is not that of a script.
    fn from_json(all: &Value) -> Option<Self> {
        let text = |key: &str| all[key].as_str().unwrap_or_default().to_string();
        all.get("source")?.as_str()?;
        let pairs = |key: &str| all[key].as_object().cloned().unwrap_or_default();
        let word = |v: Value| match v {
            Value::String(s) => s,
            other => other.to_string(),
        };
        Some(Self {
            script: text("script"),
            source: text("source"),
            settings: pairs("settings")
                .into_iter()
                .map(|(k, v)| (k, word(v)))
                .collect(),
            seed: all["seed"].as_u64(),
            threads: all["threads"].as_u64(),
            device: text("device"),
            quick: all["quick"] == Value::Bool(true),
            versions: pairs("versions"),
            seconds: all["timings"]["seconds"].as_f64(),
            status: text("status"),
            printed: text("printed"),
            result: all["result"].clone(),
            written: None,
        })
    }

    /// That of a folder, if it is there.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn of(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join("run.json");
        if !path.is_file() {
            return Ok(None);
        }
        let found = Self::from_json(&store::read_json(&path)?);
        let written = path.metadata().and_then(|m| m.modified()).ok();
        Ok(found.map(|record| Self { written, ..record }))
    }

    /// The command that does it again.
    pub fn command(&self) -> String {
        let mut words = vec!["ergodic".to_string(), "run".into(), quoted(&self.script)];
        for (name, value) in &self.settings {
            words.extend(["--set".into(), quoted(&format!("{name}={value}"))]);
        }
        words.extend(self.seed.map(|s| format!("--seed {s}")));
        if !["", "cpu"].contains(&self.device.as_str()) {
            words.push(format!("--device {}", quoted(&self.device)));
        }
        if self.quick {
            words.push("--quick".into());
        }
        words.join(" ")
    }
}

/// As a POSIX shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

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
pub struct Results {
    /// Where.
    pub folder: PathBuf,
    /// The record of the script; that of the folder above where this is the folder of one part.
    pub record: Option<Record>,
    /// Whether it is the folder of one part.
    pub single: bool,
    /// What the script has made, by name.
    pub parts: Vec<Part>,
    /// Figures that the script has saved.
    pub figures: Vec<PathBuf>,
    /// What else is to be said.
    pub notes: Vec<String>,
}

/// Whether a folder is that of a run, a training, populations or a benchmark; of one that has lost its checkpoint, too.
fn is_part(folder: &Path) -> bool {
    let own_record = || {
        let record = store::read_json::<Value>(&folder.join("run.json"));
        record.is_ok_and(|r| r.get("source").is_none())
    };
    folder.join("checkpoint").is_dir() || folder.join("benchmark.json").is_file() || own_record()
}

impl Results {
    /// Read the folder of a script's results, or that of one of its runs.
    ///
    /// # Errors
    /// If there is no such folder, or nothing of ours in it. What is damaged is named in [`Results::parts`] instead.
    pub fn of(folder: &Path) -> Result<Self> {
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
            let entries = folder
                .read_dir()
                .map_err(|e| anyhow::anyhow!("{shown}: {e}"))?;
            let names = entries.flatten().map(|e| whole.join(e.file_name()));
            folders = names.filter(|p| p.is_dir()).collect();
            folders.sort_by_key(|p| natural(p));
            let shards: Vec<_> = folders.iter().filter_map(|p| shard(p)).collect();
            if !shards.is_empty() {
                notes.push(format!(
                    "{} are parts of a larger run: put them together with --merge, or name them one by one",
                    shards.join(", ")
                ));
            }
            folders.retain(|p| is_part(p));
        }
        let parts: Vec<_> = folders.iter().map(|p| Part::of(p)).collect();
        let mut figures = Vec::new();
        if !single {
            let saved = whole.join("figures").read_dir().into_iter().flatten();
            figures.extend(saved.flatten().map(|e| e.path()));
            figures.retain(|p| p.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")));
            figures.sort();
        }
        anyhow::ensure!(
            !parts.is_empty() || record.is_some() || !notes.is_empty(),
            "{shown}: no run in this folder; name the folder of a run, or of a script's results such as runs/quickstart"
        );
        if record.is_none() && notes.is_empty() {
            notes.push(
                "there is no record of a script here: it is still running, or was killed".into(),
            );
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

/// The name of a folder, if it is that of a shard.
fn shard(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_string_lossy().into_owned();
    name.starts_with("shard-").then_some(name)
}

/// Names in an order in which run-10 comes after run-9.
fn natural(path: &Path) -> (String, u64, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].parse().unwrap_or(0);
    (stem.to_string(), number, name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_the_shell() {
        let record = Record {
            script: "my scripts/it's.rhai".into(),
            settings: vec![("temperatures".into(), "[1e-3, 2]".into())],
            seed: Some(7),
            device: "cuda:0".into(),
            quick: true,
            ..Record::default()
        };
        assert_eq!(
            record.command(),
            r"ergodic run 'my scripts/it'\''s.rhai' --set 'temperatures=[1e-3, 2]' --seed 7 --device cuda:0 --quick"
        );
    }

    #[test]
    fn runs_are_in_the_order_in_which_they_were_made() {
        let mut names = ["sweep-10", "sweep-9", "alone", "sweep-1"].map(PathBuf::from);
        names.sort_by_key(|p| natural(p));
        assert_eq!(
            names,
            ["alone", "sweep-1", "sweep-9", "sweep-10"].map(PathBuf::from)
        );
    }
}
