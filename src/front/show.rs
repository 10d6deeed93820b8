//! `ergodic show`: a run on disk, finished or not: what it is, its summaries, and what to do next.

use crate::error::Result;
use crate::report::layout::name;
use crate::report::part::Part;
use crate::report::read::Results;
use crate::report::record::quoted;
use crate::report::runs::{Found, State, date, duration, size};
use crate::simulation::remembered::Remembered;
use crate::simulation::transcript::FILE;
use crate::store::aside;
use crate::store::claim::ASIDE;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What a folder holds, all of it readable.
///
/// # Errors
/// If there is nothing, or a part is damaged.
pub fn parts(folder: &Path) -> Result<Vec<Part>> {
    let results = Results::of(folder)?;
    results.parts.iter().try_for_each(readable)?;
    some(results, folder)
}

fn readable(part: &Part) -> Result<()> {
    match part.of.damage() {
        Some(why) => anyhow::bail!("{why}; `ergodic report` shows what is still there"),
        None => Ok(()),
    }
}

/// The parts of a folder, of which there are some.
fn some<P>(results: Results<P>, folder: &Path) -> Result<Vec<P>> {
    anyhow::ensure!(
        !results.parts.is_empty(),
        "{}: no run in this folder{}",
        folder.display(),
        match results.notes.first() {
            Some(note) => format!("; {note}"),
            None => String::new(),
        }
    );
    Ok(results.parts)
}

/// A part as it is shown: what it remembers, or all of it.
enum Shown {
    Remembered(PathBuf, Remembered),
    Read(Part),
}

impl Shown {
    fn of(folder: &Path) -> Self {
        match Remembered::of(folder) {
            Some(found) => Self::Remembered(folder.into(), found),
            None => Self::Read(Part::of(folder)),
        }
    }

    /// Those of a folder.
    fn all(folder: &Path) -> Result<Vec<Self>> {
        some(Results::with(folder, Self::of)?, folder)
    }

    fn text(&self) -> Result<String> {
        match self {
            Self::Remembered(folder, found) => Ok(found.text(folder)),
            Self::Read(part) => readable(part).and_then(|()| part.of.text(&part.name)),
        }
    }

    /// Name and numbers.
    fn json(self) -> Result<(String, Value)> {
        let (name, mut json, done) = match self {
            Self::Remembered(folder, found) => (name(&folder), found.numbers.into(), true),
            Self::Read(part) => {
                readable(&part)?;
                let (json, done) = (part.of.json()?, part.of.done());
                (part.name, json, done)
            }
        };
        if let Value::Object(map) = &mut json {
            map.insert("done".into(), done.into());
        }
        Ok((name, json))
    }
}

/// What a folder is, the summaries of what is in it, and what to do next, as text.
pub fn text(folder: &Path) -> Result<String> {
    let found = Found::of(folder);
    let some = found.as_ref().is_some_and(|f| f.parts.is_empty());
    let parts = match some {
        // A script that has made figures only, or failed before it had anything.
        true => Vec::new(),
        false => Shown::all(folder)?,
    };
    let texts = parts.iter().map(Shown::text);
    let text = texts.collect::<Result<Vec<_>>>()?.concat();
    let Some(found) = found else {
        return Ok(text.trim_end().to_string());
    };
    let next = next(&found);
    let next = next.iter().map(|(what, how)| format!("{what}: {how}\n"));
    let blocks = [heading(&found), text, next.collect()];
    let blocks = blocks.iter().map(|b| b.trim_end());
    let blocks: Vec<_> = blocks.filter(|b| !b.is_empty()).collect();
    Ok(blocks.join("\n\n"))
}

/// What was run, and how far it is.
fn heading(found: &Found) -> String {
    let mut lines = vec![format!("{}: {}", found.folder.display(), found.state())];
    let mut put = |name: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("  {name:<9} {text}"));
        }
    };
    let first = found.message().and_then(|m| m.lines().next());
    put("error", first.unwrap_or_default().into());
    put("kind", found.kind.clone());
    put(
        "verdict",
        found.verdict.map_or(String::new(), |v| v.to_string()),
    );
    put("tags", found.tags.join(", "));
    if let Some(record) = &found.record {
        if !record.script.is_empty() {
            put("command", record.command());
        }
        let settings = record.settings.iter().map(|(k, v)| format!("{k} = {v}"));
        put("settings", settings.collect::<Vec<_>>().join(", "));
        let word = |k: &str| {
            record
                .versions
                .get(k)
                .and_then(|v| v.as_str())
                .unwrap_or("?")
        };
        let made = format!(
            "ergodic {} on {}, {}",
            word("ergodic"),
            word("os"),
            record.device
        );
        put("made by", made.trim_end_matches([',', ' ']).into());
    }
    put(
        "begun",
        format!("{}, took {}", date(found.begun), duration(found.seconds)),
    );
    put(
        "files",
        format!("{}: {}", size(found.bytes), files(&found.folder)),
    );
    lines.join("\n")
}

/// The names in a folder; folders end in a slash.
fn files(folder: &Path) -> String {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let name = |e: std::fs::DirEntry| {
        let slash = if e.path().is_dir() { "/" } else { "" };
        format!("{}{slash}", e.file_name().to_string_lossy())
    };
    let mut names: Vec<_> = entries.map(name).filter(|n| !n.starts_with('.')).collect();
    names.sort();
    names.join(", ")
}

/// What can be done now, and by which command.
fn next(found: &Found) -> Vec<(&'static str, String)> {
    let place = quoted(&found.folder.display().to_string());
    let mut out = next_of(found, &place);
    if aside::waits(&found.folder) {
        out.push(("what it replaces", format!("ergodic show {place}/{ASIDE}")));
    }
    out
}

/// The same, of what is in the folder now.
fn next_of(found: &Found, place: &str) -> Vec<(&'static str, String)> {
    let again = |how: &str| {
        let record = found.record.as_ref().filter(|r| !r.script.is_empty())?;
        Some(format!("{} --out {place} {how}", record.command()))
    };
    let report = ("as a page", format!("ergodic report {place}"));
    match (&found.state, again("--resume"), again("--force")) {
        (State::Interrupted, Some(resume), _) => vec![("to go on", resume)],
        (State::Interrupted, None, _) if found.folder.join(FILE).is_file() => {
            let open = match (found.open.as_str(), found.parts.first()) {
                ("", Some(only)) => only.clone(),
                (open, _) => found.folder.join(open),
            };
            vec![(
                "to go on, in a session",
                format!("%continue {}", open.display()),
            )]
        }
        (State::Failed(_), Some(resume), Some(force)) => {
            vec![
                ("to go on, once it is mended", resume),
                ("to begin anew", force),
            ]
        }
        (State::Finished, ..) => vec![
            report,
            ("beside another run", format!("ergodic diff {place} OTHER")),
        ],
        (State::Damaged(_), ..) => vec![report],
        _ => Vec::new(),
    }
}

/// The summaries of what is in a folder, by name.
pub fn json(folder: &Path) -> Result<Value> {
    let parts = Shown::all(folder)?.into_iter().map(Shown::json);
    Ok(Value::Object(parts.collect::<Result<_>>()?))
}
