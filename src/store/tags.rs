//! The tags of a run: words in a file beside its results, which may change while it runs and after.

use super::{read_json, write_json};
use crate::error::Result;
use std::path::Path;

/// The file.
pub const TAGS: &str = "tags.json";

/// The longest tag.
const LONGEST: usize = 60;

/// The tags of a folder, in order. One that cannot be read has none.
pub fn of(folder: &Path) -> Vec<String> {
    let path = folder.join(TAGS);
    match path.is_file() {
        true => {
            // Whoever else has written there: what is no tag is left out.
            let all: Vec<String> = read_json(&path).unwrap_or_default();
            all.into_iter().filter(|tag| checked(tag).is_ok()).collect()
        }
        false => Vec::new(),
    }
}

/// A tag as it is written.
///
/// # Errors
/// If it is none.
pub fn checked(tag: &str) -> Result<String, String> {
    let fine = |c: char| c.is_alphanumeric() || "-_.:=+/".contains(c);
    match !tag.is_empty() && tag.chars().count() <= LONGEST && tag.chars().all(fine) {
        true => Ok(tag.to_string()),
        false => Err(format!(
            "a tag is 1 to {LONGEST} letters, digits and -_.:=+/, without spaces"
        )),
    }
}

/// Give a folder more tags, and take some from it; returns those that it has then.
pub fn change(folder: &Path, more: &[String], less: &[String]) -> Result<Vec<String>> {
    let before = of(folder);
    let mut all: Vec<_> = before.iter().chain(more).cloned().collect();
    all.retain(|t| !less.contains(t));
    all.sort();
    all.dedup();
    if all != before {
        write_json(&folder.join(TAGS), &all)?;
    }
    Ok(all)
}
