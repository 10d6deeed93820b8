//! The record of cells in Rust: whoever runs them writes it into the folder where their process has its runs, and it is replayed as a notebook.

use super::format::Notebook;
use crate::error::Result;
use crate::output;
use crate::simulation::transcript::{self, Cell, Transcript};
use crate::store::claim::holds_something;
use anyhow::Context;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// What was executed in a session of Rust.
#[derive(Debug)]
pub struct Record(Mutex<State>);

#[derive(Debug)]
struct State {
    transcript: Transcript,
    /// Whether what is on the disk is out of date.
    stale: bool,
}

impl Record {
    /// Nothing yet.
    pub fn new() -> Self {
        Self(Mutex::new(State {
            transcript: Transcript::of_rust(),
            stale: false,
        }))
    }

    /// A cell begins.
    pub fn begin(&self, code: &str) {
        let transcript = &mut self.state().transcript;
        let name = format!("cell {}", transcript.number());
        transcript.begin(Cell::new(&name, code));
    }

    /// A run of it has its name, and the session this folder.
    pub fn named(&self, home: &Path, run: &str) {
        let mut state = self.state();
        state.transcript.settle(home);
        state.transcript.note(run);
        state.stale = true;
    }

    /// The run goes on: what made it is on the disk from now on, whatever becomes of the session.
    pub fn goes_on(&self) {
        let mut state = self.state();
        if state.stale {
            state.save();
        }
    }

    /// The cell ends, with an error or well.
    pub fn end(&self, error: Option<&str>) {
        let mut state = self.state();
        state.transcript.end(error);
        state.save();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl State {
    /// Write it, if there is a run in the folder.
    fn save(&mut self) {
        let home = self.transcript.home();
        if home.is_some_and(|home| holds_something(&home)) {
            self.stale = false;
            if let Err(e) = self.transcript.save() {
                output::remark(format_args!(
                    "warning: the cells could not be recorded: {e:#}"
                ));
            }
        }
    }
}

/// Whether a file is a record, and not a notebook.
pub fn is_record(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "rs")
}

/// A record as a notebook, of the cells that did not fail.
pub fn read(file: &Path) -> Result<Notebook> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let cells = transcript::cells(&text);
    let cells = cells.with_context(|| {
        format!(
            "{}: there are no cells in this file; a session of Rust cells writes one as {} into its folder",
            file.display(),
            transcript::RUST_FILE
        )
    })?;
    Ok(Notebook::of_rust(&sources(cells)))
}

/// What is to be executed. Cells that are left out have taken names of runs; after them runs are given those that they had.
fn sources(cells: Vec<Cell>) -> Vec<String> {
    let (mut out, mut taken) = (Vec::new(), false);
    for cell in cells {
        if cell.failed {
            taken |= !cell.runs.is_empty();
            continue;
        }
        if taken && !cell.runs.is_empty() {
            out.push(format!("ergodic::front::notebook::plan({:?});", cell.runs));
        }
        out.push(cell.source);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when dropped.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_record_is_replayed_without_what_failed_and_with_the_names_of_runs() {
        let place =
            Folder(std::env::temp_dir().join(format!("ergodic-record-{}", std::process::id())));
        let homes = ["notebook-1", "notebook-2"].map(|home| place.0.join(home));
        let file = |home: usize| homes[home].join(transcript::RUST_FILE);
        let record = Record::new();
        let run = |code: &str, run: Option<(usize, &str)>, error: Option<&str>| {
            record.begin(code);
            if let Some((home, name)) = run {
                std::fs::create_dir_all(homes[home].join(name)).unwrap();
                record.named(&homes[home], name);
                record.goes_on();
                assert!(std::fs::read_to_string(file(home)).unwrap().contains(code));
            }
            record.end(error);
        };
        let read = |home: usize| {
            let code = super::read(&file(home)).unwrap().code();
            code.into_iter()
                .map(|(_, source)| source)
                .collect::<Vec<_>>()
        };
        run(":dep a = \"1\"\nfn twice() {}", None, None);
        run("first()", Some((0, "sample-1")), None);
        run("second()", Some((0, "sample-2")), Some("no\nsuch function"));
        run("third()", Some((0, "sample-3")), None);
        let text = std::fs::read_to_string(file(0)).unwrap();
        assert!(
            text.contains("// second()\n// ERROR: no\n// ERROR: such function\n"),
            "{text}"
        );
        assert!(text.contains("ergodic notebook run"), "{text}");
        let plan = "ergodic::front::notebook::plan([\"sample-3\"]);";
        let definition = ":dep a = \"1\"\nfn twice() {}";
        assert_eq!(read(0), [definition, "first()", plan, "third()"]);
        // The process of the cells has died, and another one has its runs elsewhere.
        run("fourth()", Some((1, "sample-1")), None);
        assert_eq!(read(1), [definition, "fourth()"]);
        assert_eq!(read(0).len(), 4);
    }
}
