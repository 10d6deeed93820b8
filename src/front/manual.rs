//! What packages bring beside the program: completions for shells, manual pages, and what `--version` says.

use crate::error::Result;
use clap::Command;
use std::path::{Path, PathBuf};

/// What `-V` and `--version` say, of a program built from this commit.
pub fn version(commit: &str) -> (String, String) {
    let short = env!("CARGO_PKG_VERSION").to_string();
    let own = [
        ("cuda", cfg!(feature = "cuda")),
        ("candle-cuda", cfg!(feature = "candle-cuda")),
        ("mpi", cfg!(feature = "mpi")),
        ("parquet", cfg!(feature = "parquet")),
        ("evcxr", cfg!(feature = "evcxr")),
    ];
    let features: Vec<_> = own
        .iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| *name)
        .collect();
    let features = match features.is_empty() {
        true => "none".into(),
        false => features.join(", "),
    };
    let commit = if commit.is_empty() {
        "not known"
    } else {
        commit
    };
    let long = format!("{short}\ncommit: {commit}\nfeatures: {features}");
    (short, long)
}

/// Completions for a shell.
pub fn completions(mut command: Command, shell: clap_complete::Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command, "ergodic", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Write a manual page for the program and for each of its commands; returns their paths.
///
/// # Errors
/// If they cannot be written.
pub fn pages(command: Command, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = vec![("ergodic".to_string(), command.clone())];
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("ergodic-{}", sub.get_name());
        all.push((name.clone(), sub.clone().name(name)));
    }
    let mut paths = Vec::new();
    for (name, command) in all {
        let mut out = Vec::new();
        clap_mangen::Man::new(command).render(&mut out)?;
        let path = folder.join(format!("{name}.1"));
        crate::store::write_atomic(&path, &out)?;
        paths.push(path);
    }
    Ok(paths)
}
