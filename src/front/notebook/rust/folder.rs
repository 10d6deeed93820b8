//! The prepared folder: the library, compiled with the very settings that cells are compiled with, so that a cell compiles only itself.

use crate::error::Result;
use crate::front::cache;
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What [`setup`](super::setup::setup) has left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// Version of the library.
    pub version: String,
    /// Checksum of its source.
    pub source: String,
    /// What compiled it, as `rustc -vV` says.
    pub rustc: String,
    /// Name of the toolchain, where rustup has several.
    pub toolchain: Option<String>,
    /// Features of the library.
    pub features: Vec<String>,
    /// Variables of the environment that build scripts have looked at, as they were: with other values cargo would compile the library anew.
    #[serde(default)]
    pub variables: BTreeMap<String, Option<String>>,
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// Where it is by default: `ergodic/rust` in the user's cache.
pub fn default_folder() -> Result<PathBuf> {
    let named = std::env::var_os("ERGODIC_RUST_FOLDER").filter(|v| !v.is_empty());
    if let Some(folder) = named {
        return Ok(std::path::absolute(folder)?);
    }
    let cache = cache::folder().context("or set ERGODIC_RUST_FOLDER to a folder")?;
    Ok(cache.join("ergodic").join("rust"))
}

/// What `rustc -vV` says in a folder, of the toolchain that cells use.
pub(super) fn compiler(folder: &Path, toolchain: Option<&str>) -> Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV").current_dir(folder);
    says(rustc.envs(toolchain.map(|t| ("RUSTUP_TOOLCHAIN", t))))
        .context("Rust cells need a Rust compiler; install one from https://rustup.rs")
}

/// What a command prints.
pub(super) fn says(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Prepared {
    const FILE: &str = "setup.json";

    /// What is in a folder, if it was prepared.
    pub fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(Self::FILE)).ok()?;
        let mut found: Self = serde_json::from_str(&text).ok()?;
        found.folder = folder.to_path_buf();
        Some(found)
    }

    /// Note that a folder is ready.
    pub fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        crate::store::write_atomic(&self.folder.join(Self::FILE), text.as_bytes())
    }

    /// Forget that a folder was ready.
    pub fn forget(folder: &Path) {
        let _ = fs::remove_file(folder.join(Self::FILE));
    }

    /// The folder that [`default_folder`] names, if it is ready for this program.
    pub fn find() -> Result<Self> {
        let folder = default_folder()?;
        let Some(found) = Self::read(&folder) else {
            bail!(
                "Rust cells are not set up yet; run `ergodic notebook setup` once, it takes some minutes"
            );
        };
        ensure!(
            found.version == env!("CARGO_PKG_VERSION"),
            "Rust cells are set up for ergodic {}, and this is {}; run `ergodic notebook setup`",
            found.version,
            env!("CARGO_PKG_VERSION")
        );
        ensure!(
            compiler(&folder, found.toolchain.as_deref())? == found.rustc,
            "the Rust compiler has changed since Rust cells were set up; run `ergodic notebook setup`"
        );
        Ok(found)
    }

    /// What cells depend on, as a manifest says it.
    pub fn dependency(&self) -> String {
        let features: Vec<_> = self.features.iter().map(|f| format!("\"{f}\"")).collect();
        format!(
            "ergodic = {{ path = {:?}, default-features = false, features = [{}] }}",
            self.folder.join("source").display().to_string(),
            features.join(", ")
        )
    }

    /// Find out which variables those are.
    pub fn watch_variables(&mut self) {
        // Cargo itself looks at this one.
        let mut names = vec!["RUSTFLAGS".to_string()];
        let target = self.template().join(CELLS).join("target");
        let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        // What is compiled for this machine stands in a folder of its own.
        let places = entries(target.clone()).map(|e| e.path()).chain([target]);
        for script in places.flat_map(|p| entries(p.join("debug/build"))) {
            let said = fs::read_to_string(script.path().join("output")).unwrap_or_default();
            let watched = said
                .lines()
                .filter_map(|l| l.rsplit_once("rerun-if-env-changed="));
            names.extend(watched.map(|(_, name)| name.to_string()));
        }
        let value = |name: &String| std::env::var(name).ok();
        self.variables = names.into_iter().map(|n| (n.clone(), value(&n))).collect();
    }

    /// Where the compiled library is: a workspace of the cells and of a package that they do not see. Whatever evcxr writes for the cells, the versions
    /// that the other needs stay in the lock file, so that the library is not compiled again.
    pub fn template(&self) -> PathBuf {
        self.folder.join("template")
    }

    /// The version of a crate that cells have.
    pub fn version_of(&self, name: &str) -> Result<String> {
        let text = fs::read_to_string(self.template().join("Cargo.lock"))?;
        let after = text.split_once(&format!("name = \"{name}\"\nversion = \""));
        let version = after.and_then(|(_, rest)| rest.split('"').next());
        Ok(version
            .with_context(|| format!("cells have no {name}"))?
            .into())
    }
}

/// The package of the cells in the folder of a session.
pub(super) const CELLS: &str = "cells";

/// The folder of one session: a copy of the prepared one that shares its files. It is removed at the end.
pub struct Workshop {
    /// Where it is.
    pub folder: PathBuf,
    /// Locked as long as the session lives, on whatever machine.
    _lock: fs::File,
}

impl Workshop {
    /// For a new session.
    pub fn open(prepared: &Prepared) -> Result<Self> {
        let sessions = prepared.folder.join("sessions");
        fs::create_dir_all(&sessions)?;
        // One at a time opens a session, so that a folder without a lock is one whose program has died.
        let gate = fs::File::create(sessions.with_extension("lock"))?;
        gate.lock()?;
        clean(&sessions);
        let mut number = 0;
        let folder = loop {
            let folder = sessions.join(format!("{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => {
                    return Err(e).with_context(|| format!("cannot make {}", folder.display()));
                }
            }
        };
        let lock = fs::File::create(folder.join(LOCK))?;
        lock.lock()?;
        let out = Self {
            folder,
            _lock: lock,
        };
        link(&prepared.template(), &out.folder)
            .with_context(|| format!("cannot make a session in {}", sessions.display()))?;
        Ok(out)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The file in the folder of a session that is locked while it lives.
const LOCK: &str = "lock";

/// Remove the folders of sessions that are over.
fn clean(sessions: &Path) {
    for entry in fs::read_dir(sessions).into_iter().flatten().flatten() {
        let lock = fs::File::open(entry.path().join(LOCK));
        if lock.map_or(true, |lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A copy of a folder whose files are the same ones. What is written in place, as cargo's own notes are, is really copied.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        let extension = entry.path();
        let extension = extension.extension().unwrap_or_default();
        let compiled = ["rlib", "rmeta", "so", "dylib", "dll", "o", "a"]
            .iter()
            .any(|e| extension == *e);
        if kind.is_dir() {
            link(&entry.path(), &target)?;
        } else if !compiled || fs::hard_link(entry.path(), &target).is_err() {
            let times = entry.metadata()?.modified()?;
            fs::copy(entry.path(), &target)?;
            // Cargo takes what is newer than its notes for changed.
            fs::File::options()
                .write(true)
                .open(&target)?
                .set_modified(times)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_shares_what_is_compiled_and_copies_the_rest() {
        let root = std::env::temp_dir().join(format!("ergodic-workshop-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let prepared = Prepared {
            version: "1".into(),
            source: "s".into(),
            rustc: "r".into(),
            toolchain: None,
            features: vec!["cuda".into()],
            variables: BTreeMap::new(),
            folder: root.clone(),
        };
        let deps = prepared.template().join("target/deps");
        fs::create_dir_all(&deps).unwrap();
        fs::write(deps.join("liba.rlib"), "compiled").unwrap();
        fs::write(deps.join("note"), "old").unwrap();
        // Of a session that is over, and of one that lives.
        let over = root.join("sessions/1-0");
        fs::create_dir_all(&over).unwrap();
        fs::write(over.join(LOCK), "").unwrap();
        // And of one that died before it had its lock.
        let early = root.join("sessions/1-1");
        fs::create_dir_all(&early).unwrap();
        let other = Workshop::open(&prepared).unwrap();
        let workshop = Workshop::open(&prepared).unwrap();
        assert!(other.folder.exists() && other.folder != workshop.folder);
        let own = workshop.folder.join("target/deps");
        assert_eq!(
            fs::read_to_string(own.join("liba.rlib")).unwrap(),
            "compiled"
        );
        fs::write(own.join("note"), "new").unwrap();
        assert_eq!(fs::read_to_string(deps.join("note")).unwrap(), "old");
        let time = |p: PathBuf| fs::metadata(p).unwrap().modified().unwrap();
        assert_eq!(time(own.join("liba.rlib")), time(deps.join("liba.rlib")));
        assert!(!over.exists() && !early.exists());
        let folder = workshop.folder.clone();
        drop(workshop);
        assert!(!folder.exists());
        let script = prepared
            .template()
            .join(CELLS)
            .join("target/debug/build/a-1");
        fs::create_dir_all(&script).unwrap();
        let said = "cargo::rerun-if-env-changed=PATH\ncargo:rustc-link-lib=a\ncargo:rerun-if-env-changed=ERGODIC_NOT_SET\n";
        fs::write(script.join("output"), said).unwrap();
        let mut prepared = prepared;
        prepared.watch_variables();
        assert_eq!(prepared.variables["PATH"], std::env::var("PATH").ok());
        assert_eq!(prepared.variables["ERGODIC_NOT_SET"], None);
        prepared.write().unwrap();
        assert_eq!(Prepared::read(&root), Some(prepared));
        Prepared::forget(&root);
        assert_eq!(Prepared::read(&root), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
