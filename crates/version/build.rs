//! Finds the commit: in ERGODIC_COMMIT, in the repository, or in what `cargo package` notes.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=ERGODIC_COMMIT");
    let commit = std::env::var("ERGODIC_COMMIT").ok();
    let commit = commit.or_else(packaged).or_else(repository);
    let commit = commit.filter(|c| c.len() >= 7 && c.bytes().all(|b| b.is_ascii_hexdigit()));
    println!(
        "cargo::rustc-env=COMMIT={}",
        commit.map_or(String::new(), |c| c[..c.len().min(12)].into())
    );
}

/// Of a package that was downloaded.
fn packaged() -> Option<String> {
    let noted = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = noted.split_once("\"sha1\": \"")?;
    Some(rest.split_once('"')?.0.into())
}

/// Of the repository, if this crate belongs to it and does not merely lie within another one.
fn repository() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // Every commit and every change of branch is noted there.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().into())
}
