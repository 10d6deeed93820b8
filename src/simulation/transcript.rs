//! Transcripts: the executed cells of an interactive session, as a script that reproduces its runs.
//!
//! The file `cells.rhai` in the folder of the session, `cells.rs` where cells are Rust, has them in the percent format that editors know: a line `// %% [3] {…}` with what
//! is known of a cell, then its source. Commands are comments, and so is all of a cell that failed, with its error.

use crate::dataset::date;
use crate::error::Result;
use crate::store::{self, disk};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the file.
pub const FILE: &str = "cells.rhai";

/// Its name where cells are Rust.
pub const RUST_FILE: &str = "cells.rs";

/// How the line before a cell begins.
const MARK: &str = "// %% [";

/// How the lines of an error begin.
const ERROR: &str = "// ERROR: ";

/// An executed cell.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cell {
    /// What errors call it.
    pub file: String,
    /// When it began.
    pub time: String,
    /// Master seed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u64,
    /// Whether steps were cut by --quick.
    #[serde(default, skip_serializing_if = "is_false")]
    pub quick: bool,
    /// Where its chains stepped, if not on the CPU.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Values of parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Names of its runs, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// The folder of another session, whose runs it continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<PathBuf>,
    /// Whether it failed or was interrupted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
    /// Its commands, line by line.
    #[serde(skip)]
    pub commands: Vec<String>,
    /// Its script.
    #[serde(skip)]
    pub source: String,
    /// Its error.
    #[serde(skip)]
    pub error: String,
}

fn is_false(x: &bool) -> bool {
    !x
}

fn is_zero(x: &u64) -> bool {
    *x == 0
}

impl Cell {
    /// A cell that begins now.
    pub fn new(file: &str, source: &str) -> Self {
        Self {
            file: file.into(),
            time: now(),
            source: source.trim_end().into(),
            ..Self::default()
        }
    }

    fn text(&self, number: usize) -> Result<String> {
        let about = serde_json::to_string(self)?;
        let mut out = format!("\n{MARK}{number}] {about}\n");
        let mut line = |begin: &str, text: &str| {
            out += format!("{begin}{text}").trim_end();
            out.push('\n');
        };
        self.commands.iter().for_each(|c| line("// ", c));
        // Lines of commands are empty in the source, so that errors name the right ones.
        for text in self.source.trim_start_matches('\n').lines() {
            line(
                match self.failed {
                    true => "// ",
                    // A line of its own that looks like the beginning of a cell is none.
                    false if text.starts_with(MARK) => " ",
                    false => "",
                },
                text,
            );
        }
        self.error.lines().for_each(|text| line(ERROR, text));
        Ok(out)
    }

    /// From the line before it and the lines of its text.
    fn parse(mark: &str, lines: &[&str]) -> Option<Self> {
        let about = mark.split_once(']')?.1;
        let mut cell: Self = serde_json::from_str(about.trim()).ok()?;
        let line = |text: &&str| match cell.failed {
            false => Some(text.to_string()),
            true => {
                let own = text.strip_prefix("//").unwrap_or(text);
                let own = own.strip_prefix(' ').unwrap_or(own);
                let source = !text.starts_with(ERROR) && !own.starts_with(['%', ':']);
                source.then(|| own.to_string())
            }
        };
        let source: Vec<_> = lines.iter().filter_map(line).collect();
        cell.source = source.join("\n").trim_matches('\n').into();
        Some(cell)
    }
}

/// The cells of a script that is a transcript; none if it is another one.
pub fn cells(script: &str) -> Option<Vec<Cell>> {
    let lines: Vec<_> = script.lines().collect();
    let starts = (0..lines.len()).filter(|k| lines[*k].starts_with(MARK));
    let starts: Vec<_> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let each = starts.iter().zip(ends);
    let each = each.map(|(from, to)| Cell::parse(lines[*from], &lines[from + 1..to]));
    each.collect::<Option<Vec<_>>>().filter(|c| !c.is_empty())
}

/// The cells of the session that a folder belongs to.
///
/// # Errors
/// If there is no transcript, or it cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Cell>> {
    let file = folder.join(FILE);
    let shown = file.display();
    let text = disk::read_text(&file).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!(
            "{}: this is not the folder of an interactive session, which would have a file {FILE}; give the verb that made the run the option \
             resume: \"FOLDER\", or run its script with --resume",
            folder.display()
        ),
        _ => anyhow::anyhow!("{shown}: {e}"),
    })?;
    cells(&text).ok_or_else(|| anyhow::anyhow!("{shown}: there are no cells in this file"))
}

/// Add a cell to the transcript in a folder, as one that was continued there by another session.
///
/// # Errors
/// If the transcript cannot be read or written.
pub fn append(folder: &Path, cell: Cell) -> Result<()> {
    let number = read(folder)?.len() + 1;
    let file = folder.join(FILE);
    let own = Cell {
        within: None,
        ..cell
    };
    let text = disk::read_text(&file)? + own.text(number)?.as_str();
    store::write_atomic(&file, text.as_bytes())
}

/// The command that reproduces the runs of the session with this folder; none if it is the folder of no session.
pub fn reproduces(home: &Path) -> Option<String> {
    let files = [(FILE, "run"), (RUST_FILE, "notebook run")];
    let mut files = files.map(|(file, run)| (home.join(file), run)).into_iter();
    let (file, run) = files.find(|(file, _)| file.is_file())?;
    Some(format!("ergodic {run} {}", file.display()))
}

/// How what is not finished goes on, where its folder is not known.
pub const GOES_ON: &str = "continue with --resume, or in a session with %continue FOLDER";

/// How the run in this folder goes on, in words.
pub fn goes_on(run: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let shown = run.strip_prefix(here).unwrap_or(run).display();
    let beside = |file: &str| run.parent().is_some_and(|home| home.join(file).is_file());
    match (beside(FILE), beside("run.json")) {
        (true, _) => format!("continue with %continue {shown}"),
        (_, true) => "continue with --resume".into(),
        (_, false) => format!("continue with the option resume: \"{shown}\""),
    }
}

/// What was executed in a session.
#[derive(Debug)]
pub struct Transcript {
    /// The folder of the session; none where nothing is recorded.
    home: Option<PathBuf>,
    file: &'static str,
    cells: Vec<Cell>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            home: None,
            file: FILE,
            cells: Vec::new(),
        }
    }
}

impl Transcript {
    /// That of a session with this folder.
    pub fn of(home: PathBuf) -> Self {
        Self {
            home: Some(home),
            ..Self::default()
        }
    }

    /// That of cells in Rust, which has no folder yet.
    pub fn of_rust() -> Self {
        Self {
            file: RUST_FILE,
            ..Self::default()
        }
    }

    /// The session goes on in this folder. If that is another one, its process has died: names begin anew, and runs of before belong to the
    /// folder of before.
    pub fn settle(&mut self, home: &Path) {
        let before = self.home.replace(home.into());
        if before.is_some_and(|before| before != home) {
            let running = self.cells.pop();
            self.cells.retain(|cell| cell.runs.is_empty());
            self.cells.extend(running);
        }
    }

    /// The folder of the session.
    pub fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }

    /// A cell begins.
    pub fn begin(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    /// A run of the last cell has its name.
    pub fn note(&mut self, run: &str) {
        if let Some(cell) = self.cells.last_mut() {
            cell.runs.push(run.into());
        }
    }

    /// The last cell ends, with an error or well; it, with the names of its runs.
    pub fn end(&mut self, error: Option<&str>) -> Cell {
        let Some(cell) = self.cells.last_mut() else {
            return Cell::default();
        };
        cell.failed = error.is_some();
        cell.error = error.unwrap_or_default().into();
        cell.clone()
    }

    /// The number of the next cell.
    pub fn number(&self) -> usize {
        self.cells.len() + 1
    }

    /// Write it, once the session has a folder and a cell.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> Result<()> {
        let home = self.home.as_ref().filter(|h| h.is_dir());
        let Some(home) = home.filter(|_| !self.cells.is_empty()) else {
            return Ok(());
        };
        let file = home.join(self.file);
        let shown = file.display();
        let run = match self.file {
            RUST_FILE => "notebook run",
            _ => "run",
        };
        let mut out = format!(
            "//! Cells of an interactive session. To reproduce its runs:\n//! ergodic {run} {shown}\n"
        );
        for (k, cell) in self.cells.iter().enumerate() {
            out += &cell.text(k + 1)?;
        }
        store::write_atomic(&file, out.as_bytes())
    }
}

/// The time, as "2026-08-01 12:00:05 UTC".
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |d| d.as_secs());
    let day = date::text((seconds / 86_400) as i64);
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    format!("{day} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_were_written() {
        let sources = ["let a = 1;\n\n// %% [1] {}\na", "fail(\n  \"x\")\n\n// why"];
        let mut script = "//! Cells.\n".to_string();
        for (k, source) in sources.iter().enumerate() {
            let mut cell = Cell::new("In [3]", source);
            cell.commands = vec!["%set --seed 1".into()];
            (cell.failed, cell.error) = (k == 1, if k == 1 { "two\nlines" } else { "" }.into());
            cell.runs = vec!["sample-1".into()];
            script += &cell.text(k + 1).unwrap();
        }
        let read = cells(&script).unwrap();
        let well = "// %set --seed 1\nlet a = 1;\n\n // %% [1] {}\na";
        assert_eq!(read[0].source, well);
        assert_eq!(read[1].source, sources[1]);
        assert_eq!(read[1].runs, ["sample-1"]);
        assert_eq!((read[0].failed, read[1].failed), (false, true));
        assert!(cells("let a = 1;\n").is_none());
    }
}
