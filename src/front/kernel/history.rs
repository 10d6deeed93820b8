//! What was executed: in memory, and in a file if there is one.
//!
//! The file has one JSON array per line, `[session, line, source]` or `[session, line, source, output]`. Kernels that run at
//! the same time may share it: each appends whole lines.

use super::glob;
use super::note::note;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Entries that are kept.
const KEPT: usize = 10_000;
/// Outputs longer than this are not worth keeping.
const LONGEST_OUTPUT: usize = 10_000;

/// One executed cell.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    session: i64,
    line: i64,
    source: String,
    output: Option<String>,
}

/// What was executed, oldest first.
#[derive(Default)]
pub struct History {
    entries: Vec<Entry>,
    session: i64,
    file: Option<File>,
}

impl History {
    /// The history of a kernel; with a path, it starts with what earlier kernels executed, and is kept.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let mut history = Self {
            session: 1,
            ..Self::default()
        };
        let Some(path) = path else {
            return Ok(history);
        };
        let what = || {
            format!(
                "cannot keep the history in {}; name another file, or none",
                path.display()
            )
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(what)?;
        }
        let bytes = if path.exists() {
            std::fs::read(path).with_context(what)?
        } else {
            Vec::new()
        };
        let text = String::from_utf8_lossy(&bytes);
        // A line that was cut (a full disk, a crash) must not make the rest unreadable.
        history.entries = text.lines().filter_map(parse).collect();
        history.session = history.entries.iter().map(|e| e.session).max().unwrap_or(0) + 1;
        if history.entries.len() > 2 * KEPT {
            history.entries.drain(..history.entries.len() - KEPT);
            let lines: String = history.entries.iter().map(line).collect();
            let temporary = path.with_extension(format!("{}.part", std::process::id()));
            std::fs::write(&temporary, lines).with_context(what)?;
            std::fs::rename(&temporary, path).with_context(what)?;
        }
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .with_context(what)?;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            file.write_all(b"\n").with_context(what)?;
        }
        history.file = Some(file);
        Ok(history)
    }

    /// Add a cell that was executed.
    pub fn add(&mut self, count: u32, source: &str, output: Option<&str>) {
        let entry = Entry {
            session: self.session,
            line: i64::from(count),
            source: source.into(),
            output: output.filter(|o| o.len() <= LONGEST_OUTPUT).map(Into::into),
        };
        if let Some(file) = &mut self.file
            && let Err(e) = file.write_all(line(&entry).as_bytes())
        {
            // A cell must not fail for this; and once is enough to say it.
            note(format_args!(
                "the history is no longer kept in its file: {e}"
            ));
            self.file = None;
        }
        self.entries.push(entry);
        if self.entries.len() > 2 * KEPT {
            self.entries.drain(..KEPT);
        }
    }

    /// What a `history_request` with this content asks for.
    pub fn answer(&self, content: &Value) -> Vec<Value> {
        let number = |key: &str| content[key].as_i64();
        let n = number("n").and_then(|n| usize::try_from(n).ok());
        let found = match content["hist_access_type"].as_str() {
            Some("range") => self.range(
                number("session").unwrap_or(0),
                number("start").unwrap_or(0),
                number("stop"),
            ),
            Some("search") => {
                let pattern = content["pattern"].as_str().unwrap_or("*");
                let unique = content["unique"].as_bool().unwrap_or(false);
                self.search(pattern, unique, n.unwrap_or(usize::MAX))
            }
            _ => last(self.entries.iter().collect(), n.unwrap_or(10)),
        };
        let output = content["output"].as_bool().unwrap_or(false);
        let one = |e: &Entry| match output {
            true => json!([e.session, e.line, [e.source, e.output]]),
            false => json!([e.session, e.line, e.source]),
        };
        found.into_iter().map(one).collect()
    }

    /// Lines from `start` to before `stop` of a session; 0 is this one, -1 the one before.
    fn range(&self, session: i64, start: i64, stop: Option<i64>) -> Vec<&Entry> {
        let session = match session {
            before if before <= 0 => self.session.saturating_add(before),
            number => number,
        };
        let wanted = start..stop.unwrap_or(i64::MAX);
        let fits = |e: &&Entry| e.session == session && wanted.contains(&e.line);
        self.entries.iter().filter(fits).collect()
    }

    /// The last `n` cells that a pattern describes; with `unique`, of the same sources only the latest.
    fn search(&self, pattern: &str, unique: bool, n: usize) -> Vec<&Entry> {
        let fitting = self
            .entries
            .iter()
            .filter(|e| glob::matches(pattern, &e.source));
        let mut found: Vec<_> = fitting.enumerate().collect();
        if unique {
            let latest: HashMap<_, _> = found.iter().map(|(i, e)| (&e.source, *i)).collect();
            found.retain(|(i, e)| latest.get(&e.source) == Some(i));
        }
        last(found.into_iter().map(|(_, e)| e).collect(), n)
    }
}

fn last(mut entries: Vec<&Entry>, n: usize) -> Vec<&Entry> {
    entries.split_off(entries.len().saturating_sub(n))
}

fn line(entry: &Entry) -> String {
    let line = match &entry.output {
        Some(output) => json!([entry.session, entry.line, entry.source, output]),
        None => json!([entry.session, entry.line, entry.source]),
    };
    format!("{line}\n")
}

fn parse(line: &str) -> Option<Entry> {
    let values: Vec<Value> = serde_json::from_str(line).ok()?;
    Some(Entry {
        session: values.first()?.as_i64()?,
        line: values.get(1)?.as_i64()?,
        source: values.get(2)?.as_str()?.into(),
        output: values.get(3).and_then(Value::as_str).map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(history: &History, content: Value) -> Vec<String> {
        let found = history.answer(&content);
        found
            .iter()
            .map(|e| e[2].as_str().unwrap().into())
            .collect()
    }

    fn filled() -> History {
        let mut history = History::open(None).unwrap();
        for (i, source) in ["x = 1", "x", "y", "x"].into_iter().enumerate() {
            history.add(i as u32 + 1, source, (source == "x").then_some("1"));
        }
        history
    }

    #[test]
    fn tail_range_and_search() {
        let h = filled();
        assert_eq!(
            sources(&h, json!({"hist_access_type": "tail", "n": 2})),
            ["y", "x"]
        );
        assert_eq!(
            sources(&h, json!({"hist_access_type": "tail", "n": 99})).len(),
            4
        );
        let range = |session, start, stop| json!({"hist_access_type": "range", "session": session, "start": start, "stop": stop});
        assert_eq!(sources(&h, range(0, 2, Some(4))), ["x", "y"]);
        assert_eq!(sources(&h, range(1, 4, None)), ["x"]);
        assert!(sources(&h, range(-1, 0, None)).is_empty());
        assert!(sources(&h, range(i64::MIN, 0, None)).is_empty());
        let search = |extra: Value| {
            let mut content = json!({"hist_access_type": "search", "pattern": "x*"});
            content
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            content
        };
        assert_eq!(sources(&h, search(json!({}))), ["x = 1", "x", "x"]);
        assert_eq!(sources(&h, search(json!({"unique": true}))), ["x = 1", "x"]);
        assert_eq!(sources(&h, search(json!({"n": 2}))), ["x", "x"]);
        let with_output = h.answer(&json!({"hist_access_type": "tail", "n": 2, "output": true}));
        assert_eq!(
            with_output,
            [json!([1, 3, ["y", null]]), json!([1, 4, ["x", "1"]])]
        );
    }

    #[test]
    fn a_file_keeps_it_for_later_kernels() {
        let folder = std::env::temp_dir().join(format!("history-{}", super::super::id::fresh()));
        let path = folder.join("deep/history.jsonl");
        let mut first = History::open(Some(&path)).unwrap();
        first.add(1, "a\n\"b\"", Some("ψ"));
        // A line that was cut.
        std::fs::write(
            &path,
            std::fs::read_to_string(&path).unwrap() + "[1, 2, \"c",
        )
        .unwrap();
        let mut second = History::open(Some(&path)).unwrap();
        second.add(1, "d", None);
        let third = History::open(Some(&path)).unwrap();
        assert_eq!(
            third.answer(&json!({"hist_access_type": "tail", "n": 9, "output": true})),
            [json!([1, 1, ["a\n\"b\"", "ψ"]]), json!([2, 1, ["d", null]])]
        );
        let before = json!({"hist_access_type": "range", "session": -1});
        assert_eq!(sources(&third, before), ["d"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let folder = std::env::temp_dir().join(format!("history-{}", super::super::id::fresh()));
        let path = folder.join("history.jsonl");
        let mut history = History::open(Some(&path)).unwrap();
        for i in 0..3 * KEPT as u32 {
            history.add(i, "x", None);
        }
        assert!(history.entries.len() <= 2 * KEPT);
        assert_eq!(history.entries.last().unwrap().line, 3 * KEPT as i64 - 1);
        let next = History::open(Some(&path)).unwrap();
        assert_eq!(next.entries.len(), KEPT);
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines, KEPT);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
