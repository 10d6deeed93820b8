//! The record of a script, which stands in the folder of its results.

use crate::error::Result;
use crate::store;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The number of the format of run.json, which changes when an entry gets another meaning.
pub const FORMAT: u64 = 1;

/// The options that let a script read and write in more folders, without their dashes.
pub const FOLDERS: [&str; 2] = ["allow-read", "allow-write"];

/// The options that limit a script, without their dashes.
pub const LIMITS: [&str; 3] = ["max-memory", "max-steps", "max-time"];

/// A record that is of a later version than this.
#[derive(Debug)]
pub struct Newer(PathBuf);

impl fmt::Display for Newer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' was written by a newer version of ergodic than this, {}; read it with that one",
            self.0.display(),
            env!("CARGO_PKG_VERSION")
        )
    }
}

impl std::error::Error for Newer {}

/// The record of a script, from the run.json of its folder.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Its file.
    pub script: String,
    /// Its text.
    pub source: String,
    /// `--set` names and values.
    pub settings: Vec<(String, String)>,
    /// The parameters that the script declares, and their defaults as they are written there.
    pub defaults: Vec<(String, String)>,
    /// Master seed.
    pub seed: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Where chains stepped.
    pub device: String,
    /// Whether steps were cut by --quick.
    pub quick: bool,
    /// Whether it was run with --untrusted.
    pub untrusted: bool,
    /// [`FOLDERS`] that it was given, each with a folder.
    pub folders: Vec<(String, String)>,
    /// [`LIMITS`] that it was given.
    pub limits: Vec<(String, String)>,
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
    /// The texts that it imported, by name.
    pub imported: Map<String, Value>,
    /// The files that it has read, with what tells their versions apart.
    pub read: Vec<(String, String)>,
    /// What it has run, in order.
    pub parts: Vec<String>,
    /// When it began.
    pub started: Option<SystemTime>,
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
        let words = |key: &str| {
            let each = pairs(key).into_iter();
            each.map(|(k, v)| (k, word(v))).collect()
        };
        Some(Self {
            script: text("script"),
            source: text("source"),
            settings: words("settings"),
            defaults: words("defaults"),
            seed: all["seed"].as_u64(),
            threads: all["threads"].as_u64(),
            device: text("device"),
            quick: all["quick"] == Value::Bool(true),
            untrusted: all["untrusted"] == Value::Bool(true),
            folders: Deserialize::deserialize(&all["folders"]).unwrap_or_default(),
            limits: words("limits"),
            versions: pairs("versions"),
            seconds: all["timings"]["seconds"].as_f64(),
            status: text("status"),
            printed: text("printed"),
            result: all["result"].clone(),
            imported: pairs("imported"),
            read: words("read"),
            parts: Deserialize::deserialize(&all["parts"]).unwrap_or_default(),
            started: all["started"]
                .as_u64()
                .and_then(|s| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(s))),
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
        let all: Value = store::read_json(&path)?;
        if all["format"].as_u64().is_some_and(|f| f > FORMAT) {
            return Err(Newer(path).into());
        }
        let found = Self::from_json(&all);
        let written = path.metadata().and_then(|m| m.modified()).ok();
        Ok(found.map(|record| Self { written, ..record }))
    }

    /// The value of every parameter: as it was set, or its default.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let set = |name: &String| self.settings.iter().any(|(n, _)| n == name);
        let rest = self.defaults.iter().filter(|(n, _)| !set(n));
        let mut out: Vec<_> = self.settings.iter().chain(rest).cloned().collect();
        out.sort();
        out
    }

    /// The command that does it again, as a shell takes it.
    pub fn command(&self) -> String {
        let words = self.arguments();
        let words = words.iter().map(|word| quoted(word));
        format!("ergodic {}", words.collect::<Vec<_>>().join(" "))
    }

    /// Its words behind the program's name.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["run".into(), self.script.clone()];
        for (name, value) in &self.settings {
            words.extend(["--set".into(), format!("{name}={value}")]);
        }
        if let Some(seed) = self.seed {
            words.extend(["--seed".into(), seed.to_string()]);
        }
        if !["", "cpu"].contains(&self.device.as_str()) {
            words.extend(["--device".into(), self.device.clone()]);
        }
        if self.quick {
            words.push("--quick".into());
        }
        if self.untrusted {
            words.push("--untrusted".into());
        }
        let named = |known: &'static [&str]| {
            move |(name, _): &&(String, String)| known.contains(&name.as_str())
        };
        let given = self.folders.iter().filter(named(&FOLDERS));
        let given = given.chain(self.limits.iter().filter(named(&LIMITS)));
        words.extend(given.map(|(name, value)| format!("--{name}={value}")));
        words
    }
}

/// As a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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
            untrusted: true,
            folders: vec![("allow-read".into(), "my data".into())],
            limits: vec![
                ("max-time".into(), "60".into()),
                ("trust".into(), "".into()),
            ],
            ..Record::default()
        };
        assert_eq!(
            record.command(),
            r"ergodic run 'my scripts/it'\''s.rhai' --set 'temperatures=[1e-3, 2]' --seed 7 --device cuda:0 --quick --untrusted '--allow-read=my data' --max-time=60"
        );
    }
}
