//! `ergodic notebook setup`: compile the library once, as cells will find it.

use super::commands::optimise;
use super::engine::{Engine, SERDE};
use super::folder::{CELLS, Prepared, compiler, default_folder, says};
use super::progress::Watch;
use crate::error::Result;
use crate::output;
use crate::store::free_space;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Where to, if not to the cache.
    pub folder: Option<PathBuf>,
    /// The source of this program, if it is not where it was compiled.
    pub source: Option<PathBuf>,
    /// Compile again in any case.
    pub force: bool,
    /// Install a missing part of the toolchain without asking.
    pub yes: bool,
}

/// Bytes that the folder takes, with room for sessions.
const NEEDED: u64 = 2 << 30;

/// How cells and their library are compiled: the library runs fast, and cells are compiled fast, unless `:opt` asks evcxr for more. Without
/// this, its settings would hold for both, with checks for overflow. As for releases, nothing is optimised once more at link time.
const PROFILE: &str = r#"[profile.dev]
debug = false
strip = "debuginfo"
rpath = true
codegen-units = 16
lto = "off"
incremental = true
debug-assertions = false
overflow-checks = false

[profile.dev.package."*"]
opt-level = 3
debug-assertions = false
overflow-checks = false
"#;

/// What the section for all packages would optimise to no end, for minutes: macros, which only the compiler calls, and the command line, which
/// no cell does.
const UNHURRIED: [&str; 16] = [
    "bytemuck_derive",
    "cc",
    "clap_builder",
    "clap_derive",
    "darling_core",
    "derive_builder_core",
    "prost-derive",
    "rhai_codegen",
    "serde_derive",
    "serde_repr",
    "syn",
    "synstructure",
    "thiserror-impl",
    "yoke-derive",
    "zerocopy-derive",
    "zerofrom-derive",
];

/// The settings for cells; what no run calls is compiled as the manifest says for releases.
fn profile(manifest: &str) -> String {
    let all = UNHURRIED.map(|name| format!("{name} = {{ opt-level = 0 }}\n"));
    let cold = manifest
        .split_once(COLD)
        .map_or("", |(_, after)| after.split("\n\n").next().unwrap_or(""));
    format!("{PROFILE}\n[profile.dev.package]\n{}{cold}\n", all.concat())
}

/// Where the manifest has that.
const COLD: &str = "\n[profile.release.package]\n";

/// The library as one dynamic library that all cells share, with everything that it is made of: cells link against it in no time, and
/// there is one set of threads and one flag for interrupts, not one per cell.
const DYNAMIC: &str = "\n[lib]\ncrate-type = [\"dylib\"]\n";

/// Folders that the library is compiled from.
const SOURCES: [&str; 5] = ["src", "stdlib", "crates", "docs", "editors/jupyterlab"];

/// Prepare the folder, or find that it is ready. Says what it does.
pub fn setup(request: &Request) -> Result<Prepared> {
    let begin = Instant::now();
    let folder = match &request.folder {
        Some(folder) => std::path::absolute(folder)?,
        None => default_folder()?,
    };
    let source = source(request)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let gate = fs::File::create(folder.join("setup.lock"))?;
    if gate.try_lock().is_err() {
        output::line(format_args!(
            "waiting for another setup of {}",
            folder.display()
        ));
        gate.lock()?;
    }
    if let Ok(toolchain) = fs::read(source.join("rust-toolchain.toml")) {
        fs::write(folder.join("rust-toolchain.toml"), toolchain)?;
    }
    let toolchain = toolchain(&folder)?;
    let rustc = compiler(&folder, toolchain.as_deref())?;
    says(Command::new("cargo").arg("-V").current_dir(&folder))
        .context("Rust cells need cargo; install it from https://rustup.rs")?;
    let mut prepared = Prepared {
        version: env!("CARGO_PKG_VERSION").into(),
        source: checksum(&source)?,
        rustc,
        toolchain,
        features: if cfg!(feature = "cuda") {
            vec!["cuda".into()]
        } else {
            Vec::new()
        },
        variables: BTreeMap::new(),
        folder: folder.clone(),
    };
    let found = Prepared::read(&folder);
    if let Some(found) = &found {
        prepared.variables.clone_from(&found.variables);
    }
    if !request.force && found.as_ref() == Some(&prepared) {
        output::line(format_args!(
            "ready: {} holds the library of this source",
            folder.display()
        ));
        return Ok(prepared);
    }
    if let Some(free) = free_space(&folder) {
        ensure!(
            free > NEEDED,
            "{} has {:.1} GiB left, and {:.0} are needed; make room, or choose another place with --folder",
            folder.display(),
            free as f64 / (1u64 << 30) as f64,
            NEEDED as f64 / (1u64 << 30) as f64
        );
    }
    source_of_std(&folder, prepared.toolchain.as_deref(), request.yes)?;
    output::line(format_args!(
        "compiling the library for cells in {}: some minutes, once",
        folder.display()
    ));
    Prepared::forget(&folder);
    if request.force {
        // All files are new then, and the library is compiled again.
        let _ = fs::remove_dir_all(folder.join("source"));
    }
    lay_out(&prepared, &source)?;
    let template = prepared.template();
    let watch = Watch::new(&template, &template.join(CELLS).join("target"), |text| {
        output::line(text);
    });
    let compiled = Engine::warm(&prepared);
    drop(watch);
    compiled
        .context("the library could not be compiled for cells; what is compiled is kept for the next attempt")?;
    prepared.watch_variables();
    tidy(&template);
    prepared.write()?;
    output::line(format_args!(
        "ready after {:.0} s",
        begin.elapsed().as_secs_f64()
    ));
    Ok(prepared)
}

/// Where the source is.
fn source(request: &Request) -> Result<PathBuf> {
    let source = match &request.source {
        Some(source) => std::path::absolute(source)?,
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    };
    let manifest = fs::read_to_string(source.join("Cargo.toml")).unwrap_or_default();
    ensure!(
        manifest.contains("name = \"ergodic\"") && source.join("src/lib.rs").is_file(),
        "{} does not hold the source of ergodic, from which cells get their library; name its folder with --source",
        source.display()
    );
    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    ensure!(
        manifest.contains(&version),
        "the source in {} is not of this program, {}; name another with --source",
        source.display(),
        env!("CARGO_PKG_VERSION")
    );
    Ok(source)
}

/// Copy the source, so that no change of it disturbs a session, and write what evcxr will find.
fn lay_out(prepared: &Prepared, source: &Path) -> Result<()> {
    let own = prepared.folder.join("source");
    for part in SOURCES {
        mirror(&source.join(part), &own.join(part))?;
    }
    let manifest = fs::read_to_string(source.join("Cargo.toml"))?;
    // Tests are not copied.
    let manifest = match manifest.split_once("[[test]]") {
        Some((before, _)) => before.to_string(),
        None => manifest,
    };
    let written = format!("{manifest}{DYNAMIC}");
    keep_or_write(&own.join("Cargo.toml"), written.as_bytes())?;
    fs::create_dir_all(prepared.folder.join(".cargo"))?;
    let settings = prepared.folder.join(".cargo/config.toml");
    keep_or_write(&settings, profile(&manifest).as_bytes())?;
    fs::create_dir_all(prepared.folder.join("config"))?;
    let template = prepared.template();
    let kept = template.join("kept");
    for folder in [template.join(CELLS), kept.join("src")] {
        fs::create_dir_all(folder)?;
    }
    keep_or_write(&kept.join("src/lib.rs"), b"")?;
    let package =
        "[package]\nname = \"kept\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n";
    let dependencies = format!("{package}{}\n{SERDE}\n", prepared.dependency());
    keep_or_write(&kept.join("Cargo.toml"), dependencies.as_bytes())?;
    optimise(&template, 0)?;
    // The versions that the program itself was compiled with.
    fs::copy(source.join("Cargo.lock"), template.join("Cargo.lock"))
        .context("the source has no Cargo.lock")?;
    Ok(())
}

/// Remove what belongs to the cell that was compiled on the way, and keep the library.
fn tidy(template: &Path) {
    let mut folders = vec![template.join(CELLS).join("target")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (
                entry.path(),
                entry.file_name().to_string_lossy().into_owned(),
            );
            let own = ["ctx-", "libctx", "ctx.", "libcode_"]
                .iter()
                .any(|start| name.starts_with(start));
            match (own || name == "incremental", path.is_dir()) {
                (true, true) => drop(fs::remove_dir_all(&path)),
                (true, false) => drop(fs::remove_file(&path)),
                (false, true) => folders.push(path),
                (false, false) => {}
            }
        }
    }
}

/// The name of the toolchain that rustup chooses in a folder, if there is rustup.
fn toolchain(folder: &Path) -> Result<Option<String>> {
    let Ok(text) = says(
        Command::new("rustup")
            .args(["show", "active-toolchain"])
            .current_dir(folder),
    ) else {
        return Ok(None);
    };
    Ok(text.split_whitespace().next().map(str::to_string))
}

/// Types of variables are found by rust-analyzer, which reads the source of the standard library.
fn source_of_std(folder: &Path, toolchain: Option<&str>, yes: bool) -> Result<()> {
    let root = says(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(folder),
    )?;
    let library = Path::new(root.trim()).join("lib/rustlib/src/rust/library");
    if library.is_dir() {
        return Ok(());
    }
    let Some(toolchain) = toolchain else {
        bail!(
            "the source of Rust's standard library is not in {}; install the package rust-src",
            library.display()
        );
    };
    let command = format!("rustup component add rust-src --toolchain {toolchain}");
    if !yes {
        ensure!(
            std::io::stdin().is_terminal(),
            "cells need the source of Rust's standard library; install it by `{command}`, or give --yes"
        );
        output::line(format_args!(
            "cells need the source of Rust's standard library, which is not installed; run `{command}`? [Y/n]"
        ));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        ensure!(
            !answer.trim().to_lowercase().starts_with('n'),
            "not set up, because the source of Rust's standard library is missing"
        );
    }
    output::line(format_args!("{command}"));
    says(Command::new("rustup").args(["component", "add", "rust-src", "--toolchain", toolchain]))
        .context("the component rust-src could not be installed")?;
    Ok(())
}

/// Make a folder the same as another one. What is the same already stays as it is, with its time: cargo compiles what is newer than its notes
/// again, and a setup that was interrupted would begin anew.
fn mirror(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        let (path, original) = (entry.path(), from.join(entry.file_name()));
        match (path.is_dir(), original.is_dir(), original.is_file()) {
            (true, true, _) | (false, _, true) => {}
            (true, false, _) => fs::remove_dir_all(path)?,
            (false, _, false) => fs::remove_file(path)?,
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => mirror(&entry.path(), &target)?,
            false => keep_or_write(&target, &fs::read(entry.path())?)?,
        }
    }
    Ok(())
}

/// Write a file, unless it has this content.
fn keep_or_write(path: &Path, content: &[u8]) -> Result<()> {
    match fs::read(path).is_ok_and(|old| old == content) {
        true => Ok(()),
        false => Ok(fs::write(path, content)?),
    }
}

/// A checksum of all that the library is made from.
fn checksum(source: &Path) -> Result<String> {
    let mut hash = crc32fast::Hasher::new();
    let mut files = vec![source.join("Cargo.toml"), source.join("Cargo.lock")];
    files.extend(SOURCES.map(|part| source.join(part)));
    let mut count = 0u64;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path)?.collect::<std::io::Result<Vec<_>>>()?;
            let mut inside: Vec<_> = entries.iter().map(|e| e.path()).collect();
            inside.sort();
            files.extend(inside);
        } else {
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            count += bytes.len() as u64;
            hash.update(path.strip_prefix(source)?.to_string_lossy().as_bytes());
            hash.update(&bytes);
        }
    }
    hash.update(profile("").as_bytes());
    Ok(format!("{:08x}-{count}", hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_keeps_its_time() {
        let place = std::env::temp_dir().join(format!("ergodic-mirror-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        let write = |folder: &Path, name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
        for (name, text) in [
            ("in/same", "a"),
            ("changed", "a"),
            ("gone/x", "a"),
            ("kind", "a"),
        ] {
            write(&to, name, text);
            let file = fs::File::options().write(true).open(to.join(name));
            file.unwrap().set_modified(old).unwrap();
        }
        for (name, text) in [
            ("in/same", "a"),
            ("changed", "b"),
            ("new", "c"),
            ("kind/x", "d"),
        ] {
            write(&from, name, text);
        }
        mirror(&from, &to).unwrap();
        let text = |name: &str| fs::read_to_string(to.join(name)).unwrap();
        let is_old = |name: &str| fs::metadata(to.join(name)).unwrap().modified().unwrap() == old;
        assert_eq!(
            ["in/same", "changed", "new", "kind/x"].map(text),
            ["a", "b", "c", "d"]
        );
        assert!(is_old("in/same") && !is_old("changed") && !to.join("gone").exists());
        fs::remove_dir_all(&place).unwrap();
    }

    /// The compiler lists beside this program what it was made from.
    #[test]
    fn every_file_that_is_compiled_is_copied() {
        let list = std::env::current_exe().unwrap().with_extension("d");
        let list = fs::read_to_string(list).unwrap();
        // As `src/front/../../docs/tour.md`.
        let files = list.lines().filter_map(|line| line.strip_suffix(':'));
        let files: Vec<_> = files.flat_map(fs::canonicalize).collect();
        let here = fs::canonicalize(".").unwrap();
        let files: Vec<_> = files.iter().flat_map(|f| f.strip_prefix(&here)).collect();
        for known in ["src/lib.rs", "docs/tour.md", "Cargo.lock"] {
            assert!(files.contains(&Path::new(known)), "{known}");
        }
        let parts = [&SOURCES[..], &["Cargo.lock", "Cargo.toml"]].concat();
        for file in files {
            let known = parts.iter().any(|part| file.starts_with(part));
            assert!(known, "{file:?}");
        }
    }

    #[test]
    fn what_is_not_optimised_is_among_the_dependencies() {
        let versions = include_str!("../../../../Cargo.lock");
        let settings = profile(include_str!("../../../../Cargo.toml"));
        let names = settings.lines().filter_map(|l| l.split_once(" = { opt-"));
        let names: Vec<_> = names.map(|(name, _)| name).collect();
        assert!(names.contains(&"syn") && names.contains(&"candle-nn"));
        for name in names {
            assert!(versions.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }
}
