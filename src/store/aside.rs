//! Results that are replaced: set aside in their own folder until what replaces them has ended well.
//!
//! A process that is killed in between leaves them there; whoever owns the folder next calls [`settle`].

use super::claim::{ASIDE, LOCK, MOVING};
use super::{cannot, disk, temp_files};
use crate::error::Result;
use std::path::{Path, PathBuf};

/// Whether something waits in a folder.
pub fn waits(folder: &Path) -> bool {
    folder.join(ASIDE).is_dir()
}

/// Whether something waits in a folder, or is on its way from there or to it.
pub fn is_there(folder: &Path) -> bool {
    waits(folder) || folder.join(MOVING).is_dir()
}

/// Everything in a folder but its lock, what waits, and what stays in any case.
fn content(folder: &Path, stays: fn(&str) -> bool) -> Vec<PathBuf> {
    let moved = |name: &str| ![LOCK, ASIDE, MOVING].contains(&name) && !stays(name);
    let entries = disk::entries(folder).filter(|e| moved(&e.file_name().to_string_lossy()));
    entries.map(|e| e.path()).collect()
}

/// Move what is in one folder, and not its names alone in memory.
fn move_all(paths: Vec<PathBuf>, to: &Path) -> Result<()> {
    for path in &paths {
        let name = path.file_name().unwrap_or_default();
        disk::rename(path, &to.join(name)).map_err(|e| cannot("move", path, e))?;
    }
    let from = paths.first().map(|path| disk::folder(path));
    let mut folders = from.into_iter().chain([to]);
    folders.try_for_each(|f| disk::sync_folder(f).map_err(|e| cannot("write", f, e)))
}

/// Set what is in a folder aside. Where something waits already, what has come in its place and not ended well is deleted.
pub fn set(folder: &Path, stays: fn(&str) -> bool) -> Result<()> {
    if waits(folder) {
        delete(folder, stays);
        return Ok(());
    }
    // Whoever finds the second name knows that all is in it.
    let (moving, aside) = (folder.join(MOVING), folder.join(ASIDE));
    disk::make_folders(&moving).map_err(|e| cannot("create", &moving, e))?;
    move_all(content(folder, stays), &moving)?;
    disk::rename(&moving, &aside)
        .and_then(|()| disk::sync_folder(folder))
        .map_err(|e| cannot("move", &moving, e))
}

fn delete(folder: &Path, stays: fn(&str) -> bool) {
    let all = content(folder, stays);
    all.iter().for_each(|p| temp_files::remove(p));
}

/// Forget what was set aside. What cannot be deleted costs disk space only.
pub fn discard(folder: &Path) {
    temp_files::remove(&folder.join(ASIDE));
}

/// Put back what was set aside, in the place of what has come since.
pub fn restore(folder: &Path, stays: fn(&str) -> bool) -> Result<()> {
    delete(folder, stays);
    // Whoever finds that name goes on with it: half of it must not be taken for something new.
    let (moving, aside) = (folder.join(MOVING), folder.join(ASIDE));
    disk::rename(&aside, &moving)
        .and_then(|()| disk::sync_folder(folder))
        .map_err(|e| cannot("move", &aside, e))?;
    move_back(folder)
}

/// Move everything back that was on its way.
fn move_back(folder: &Path) -> Result<()> {
    let moving = folder.join(MOVING);
    let all = content(&moving, |_| false);
    let there = all.iter().filter_map(|path| path.file_name());
    let there = there
        .map(|name| folder.join(name))
        .filter(|path| path.exists());
    // What could not be deleted before.
    there.for_each(|path| temp_files::remove(&path));
    move_all(all, folder)?;
    temp_files::remove(&moving);
    Ok(())
}

/// After a process that was killed: put back what it had set aside, unless `begun` says that something has come in its place.
pub fn settle(folder: &Path, stays: fn(&str) -> bool, begun: fn(&Path) -> bool) -> Result<()> {
    if folder.join(MOVING).is_dir() {
        move_back(folder)?;
    }
    match waits(folder) && !content(folder, stays).iter().any(|p| begun(p)) {
        true => restore(folder, stays),
        false => Ok(()),
    }
}
