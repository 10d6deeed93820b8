//! How far the compilation for cells is: the crates that cargo has noted as compiled, of those that the library needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Until it is told for the first time, and between two times.
const FIRST: Duration = Duration::from_secs(3);
const BETWEEN: Duration = Duration::from_secs(15);

/// Tells how far a compilation is, as long as it lives.
pub(super) struct Watch {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Of the workspace in a folder, which is compiled to `target`.
    pub fn new(workspace: &Path, target: &Path, say: impl Fn(&str) + Send + 'static) -> Self {
        let (workspace, target) = (workspace.to_path_buf(), target.to_path_buf());
        let (over, end) = mpsc::channel();
        let watch = move || {
            let (begin, mut needed, mut wait) = (Instant::now(), BTreeSet::new(), FIRST);
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                if needed.is_empty() {
                    // Not known before everything is downloaded.
                    needed = needs(&workspace);
                }
                say(&told(
                    &compiled(&target),
                    &needed,
                    begin.elapsed().as_secs(),
                ));
                wait = BETWEEN;
            }
        };
        Self {
            over: Some(over),
            thread: std::thread::Builder::new().spawn(watch).ok(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The names of the crates that a workspace needs; empty if cargo cannot tell yet.
fn needs(workspace: &Path) -> BTreeSet<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--package", "kept", "--edges", "normal,build"]);
    cargo.args(["--prefix", "none", "--locked", "--offline"]);
    let Ok(output) = cargo.current_dir(workspace).output() else {
        return BTreeSet::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|l| l.split_whitespace().next());
    let names = names.filter(|name| *name != "kept").map(String::from);
    match output.status.success() {
        true => names.collect(),
        false => BTreeSet::new(),
    }
}

/// The names of the crates that cargo has compiled, for whatever platform.
fn compiled(target: &Path) -> BTreeSet<String> {
    let (mut out, mut folders) = (BTreeSet::new(), vec![(target.to_path_buf(), 0)]);
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_name() == ".fingerprint" {
                true => out.extend(noted(&entry.path())),
                false if depth < 2 && entry.path().is_dir() => {
                    folders.push((entry.path(), depth + 1));
                }
                false => {}
            }
        }
    }
    out
}

/// Those of one folder: `syn-0123456789abcdef` has a file `lib-syn` once it is compiled, which is empty while it has to be compiled again.
fn noted(folder: &Path) -> Vec<String> {
    let crates = fs::read_dir(folder).into_iter().flatten().flatten();
    let note = |file: fs::DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        let note = name.starts_with("lib-") && !name.ends_with(".json");
        note && file.metadata().is_ok_and(|m| m.len() > 0)
    };
    let done = crates.filter(|one| {
        let mut files = fs::read_dir(one.path()).into_iter().flatten().flatten();
        files.any(note)
    });
    let name = |one: fs::DirEntry| {
        let name = one.file_name().to_string_lossy().into_owned();
        Some(name.rsplit_once('-')?.0.to_string())
    };
    done.filter_map(name).collect()
}

/// How far it is after so many seconds, in words.
fn told(compiled: &BTreeSet<String>, needed: &BTreeSet<String>, seconds: u64) -> String {
    let time = match seconds {
        s if s < 60 => format!("{s} s so far"),
        s => format!("{} min {:02} s so far", s / 60, s % 60),
    };
    let missing: Vec<_> = needed.difference(compiled).collect();
    let (all, done) = (needed.len(), needed.len() - missing.len());
    match &missing[..] {
        _ if all == 0 => format!("{} crates are compiled, {time}", compiled.len()),
        [] => format!("all {all} crates are compiled, and checked once more, {time}"),
        [last] => format!("{done} of {all} crates are compiled, {last} is left, {time}"),
        _ => format!("{done} of {all} crates are compiled, {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_that_cargo_has_noted() {
        let target = std::env::temp_dir().join(format!("ergodic-compiled-{}", std::process::id()));
        let place = target.join("x86_64/debug/.fingerprint");
        for (name, file, content) in [
            ("serde-json-0a1b", "lib-serde_json", "ab"),
            ("syn-77aa", "lib-syn", "ab"),
            ("syn-78aa", "lib-syn", "ab"),
            ("half-12cc", "invoked.timestamp", "ab"),
            ("half-12cc", "lib-half.json", "ab"),
            ("ergodic-34dd", "lib-ergodic", ""),
        ] {
            fs::create_dir_all(place.join(name)).unwrap();
            fs::write(place.join(name).join(file), content).unwrap();
        }
        let found = compiled(&target);
        fs::remove_dir_all(&target).unwrap();
        let set = |all: &[&str]| all.iter().map(|s| s.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(found, set(&["serde-json", "syn"]));
        let needed = set(&["ergodic", "half", "serde-json", "syn"]);
        let says = "2 of 4 crates are compiled, 1 min 05 s so far";
        assert_eq!(told(&found, &needed, 65), says);
        let says = "3 of 4 crates are compiled, half is left, 5 s so far";
        let more = set(&["ergodic", "serde-json", "syn"]);
        assert_eq!(told(&more, &needed, 5), says);
        assert!(told(&needed, &needed, 5).starts_with("all 4 crates"));
        assert!(told(&found, &set(&[]), 5).starts_with("2 crates"));
    }
}
