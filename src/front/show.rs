//! `ergodic show`: the summary of what is on disk, finished or not.

use crate::error::Result;
use crate::report::part::Part;
use crate::report::read::Results;
use serde_json::{Map, Value};
use std::path::Path;

/// What a folder holds, all of it readable.
///
/// # Errors
/// If there is nothing, or a part is damaged.
pub fn parts(folder: &Path) -> Result<Vec<Part>> {
    let results = Results::of(folder)?;
    for part in &results.parts {
        if let Some(why) = part.of.damage() {
            anyhow::bail!("{why}; `ergodic report` shows what is still there");
        }
    }
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

/// The summaries of what is in a folder, as text.
pub fn text(folder: &Path) -> Result<String> {
    let texts = parts(folder)?.into_iter().map(|p| p.of.text(&p.name));
    let text = texts.collect::<Result<Vec<_>>>()?.concat();
    Ok(text.trim_end().to_string())
}

/// The summaries of what is in a folder, by name.
pub fn json(folder: &Path) -> Result<Value> {
    let mut out = Map::new();
    for part in parts(folder)? {
        let mut json = part.of.json()?;
        if let Some(map) = json.as_object_mut() {
            map.insert("done".into(), part.of.done().into());
        }
        out.insert(part.name, json);
    }
    Ok(Value::Object(out))
}
