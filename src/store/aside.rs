//! Results that are about to be replaced: set aside in their own folder until what replaces them has begun.
//!
//! A process that is killed in between leaves them there; whoever owns the folder next calls [`settle`].

use super::claim::{ASIDE, LOCK};
use super::{cannot, temp_files};
use crate::error::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Whether something waits in a folder.
pub fn waits(folder: &Path) -> bool {
    folder.join(ASIDE).is_dir()
}

/// Everything in a folder but its lock, what waits, and what stays in any case.
fn content(folder: &Path, stays: fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let moved = |name: &str| ![LOCK, ASIDE].contains(&name) && !stays(name);
    let entries = entries.filter(|e| moved(&e.file_name().to_string_lossy()));
    entries.map(|e| e.path()).collect()
}

fn move_all(paths: Vec<PathBuf>, to: &Path) -> Result<()> {
    for path in paths {
        let name = path.file_name().unwrap_or_default();
        fs::rename(&path, to.join(name)).map_err(|e| cannot("move", &path, e))?;
    }
    Ok(())
}

/// Set what is in a folder aside.
pub fn set(folder: &Path, stays: fn(&str) -> bool) -> Result<()> {
    let aside = folder.join(ASIDE);
    fs::create_dir_all(&aside).map_err(|e| cannot("create", &aside, e))?;
    move_all(content(folder, stays), &aside)
}

/// Forget what was set aside. What cannot be deleted costs disk space only.
pub fn discard(folder: &Path) {
    temp_files::remove(&folder.join(ASIDE));
}

/// Put back what was set aside, in the place of what has come since.
pub fn restore(folder: &Path, stays: fn(&str) -> bool) -> Result<()> {
    content(folder, stays)
        .iter()
        .for_each(|p| temp_files::remove(p));
    let aside = folder.join(ASIDE);
    move_all(content(&aside, |_| false), folder)?;
    discard(folder);
    Ok(())
}

/// After a process that was killed: forget what it had set aside if what replaces it has a checkpoint, else put it back.
pub fn settle(folder: &Path, stays: fn(&str) -> bool) -> Result<()> {
    if !waits(folder) {
        return Ok(());
    }
    let mut new = content(folder, stays).into_iter();
    match new.any(|p| p.join("checkpoint").is_dir()) {
        true => discard(folder),
        false => restore(folder, stays)?,
    }
    Ok(())
}
