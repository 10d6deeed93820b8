//! What is kept on disk: the files of a run directory, the trace (Zarr), checkpoints and weights (safetensors).
//!
//! | file            | subject                                                                |
//! |-----------------|------------------------------------------------------------------------|
//! | `mod.rs`        | one whole file at a time: [`write_atomic`], [`read_json`], [`write_json`] |
//! | `disk.rs`       | the one place where files are read and changed                         |
//! | `noted.rs`      | the files that a script has read                                       |
//! | `temp_files.rs` | temporary names beside a path, and what killed processes left there    |
//! | `claim.rs`      | who owns a folder                                                      |
//! | `aside.rs`      | results that are about to be replaced                                  |
//! | `tags.rs`       | the tags of a run                                                      |
//! | `bytes.rs`      | numbers to little-endian bytes and back                                |
//! | `tensors.rs`    | safetensors with stable bytes, in pieces, shared by the next two       |
//! | `checkpoint.rs` | two generations of a checkpoint, with a checksum                       |
//! | `journal.rs`    | lists of a checkpoint that only grow, in a file that is only appended to |
//! | `weights.rs`    | weights as safetensors                                                 |
//! | `named.rs`      | weights in any of the formats that others have                         |
//! | `pytorch.rs`    | state dicts as `torch.save` writes them                                |
//! | `pickle.rs`     | the pickle within one, without running any of it                       |
//! | `integers.rs`   | whole numbers from safetensors files of others                         |
//! | `npy.rs`        | single arrays, as NumPy writes them                                    |
//! | `mapped.rs`     | arrays that stay in files of either format                            |
//! | `tensor_file.rs`| a few tensors in a file of either format                               |
//! | `zarr.rs`       | the trace as a Zarr v3 group that xarray and ArviZ open                |
//!
//! One rule holds for all of them: whatever is found under its final name is whole. New content is written under another
//! name in the same folder, flushed to the disk, then renamed; a killed process leaves the old content or the new one.

pub(crate) mod archive;
pub(crate) mod aside;
mod bytes;
pub(crate) mod checkpoint;
pub(crate) mod claim;
pub mod disk;
pub(crate) mod integers;
mod journal;
pub(crate) mod mapped;
pub(crate) mod named;
pub(crate) mod noted;
pub(crate) mod npy;
mod pickle;
mod pytorch;
pub(crate) mod tags;
pub(crate) mod temp_files;
pub(crate) mod tensor_file;
mod tensors;
#[cfg(test)]
mod tests;
pub(crate) mod weights;
pub(crate) mod zarr;

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use bytes::PIECE;
use disk::Output;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access;
use crate::error::{BadFile, Result};

/// Whether this process leaves the writing to another one.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Write nothing from now on: of several processes that do the same work, one writes.
pub(crate) fn write_nothing() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Whether `write_nothing` was called.
pub fn writes_nothing() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// Writes `bytes` to `path` so that `path` holds the old content or the new one, whatever happens in between.
///
/// Missing folders above it are made. Temporary files that killed processes left for the same `path` are removed on the way.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_through(path, |out| out.write_all(bytes))
}

/// Writes a file through `write` so that `path` holds the old content or the new one, whatever happens in between.
fn write_through(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Output>) -> io::Result<()>,
) -> Result<()> {
    place(path, write, disk::rename).map_err(|e| cannot("write", path, e))
}

/// Writes a file beside `path`, flushes it, and lets `put` give it that name.
fn place(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Output>) -> io::Result<()>,
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let folder = disk::folder(path);
    disk::make_folders(folder)?;
    temp_files::sweep(path);
    let temp = temp_files::name(path, "tmp", &temp_files::suffix());
    let written = Output::create(&temp)
        .and_then(|file| {
            let mut out = BufWriter::with_capacity(PIECE, file);
            write(&mut out)?;
            out.into_inner()?.flush_to_disk()
        })
        .and_then(|()| put(&temp, path));
    if written.is_err() {
        // Already renamed or never created: nothing to remove, and the first error is the one to tell.
        let _ = disk::remove(&temp);
    }
    written.and_then(|()| disk::sync_folder(folder))
}

/// Writes a file that must not be there yet.
///
/// # Errors
/// If it is.
pub fn write_first(path: &Path, bytes: &[u8]) -> Result<()> {
    let put = |temp: &Path, path: &Path| match disk::link(temp, path) {
        // Where a file cannot have two names.
        Err(_) if !path.exists() => disk::rename(temp, path),
        linked => linked.and_then(|()| disk::remove(temp)),
    };
    let there = || anyhow::anyhow!("{}: this file exists; choose another name", path.display());
    // A link to nothing is there, too.
    anyhow::ensure!(path.symlink_metadata().is_err(), there());
    match place(path, |out| out.write_all(bytes), put) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(there()),
        written => written.map_err(|e| cannot("write", path, e)),
    }
}

/// Bytes of a JSON file that is read, at most: a record of ten thousand chains has a hundredth of it.
const LARGEST_JSON: u64 = 256 << 20;

/// Reads the JSON file at `path`.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = disk::read_at_most(path, LARGEST_JSON).map_err(|e| cannot("read", path, e))?;
    serde_json::from_slice(&text).with_context(|| {
        format!(
            "'{}' is not the JSON that was expected; it was edited or damaged: restore it or delete it and run again",
            path.display()
        )
    })
}

/// Writes `value` as indented JSON to `path`, atomically; nothing where another process writes.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    if writes_nothing() {
        return Ok(());
    }
    let mut text = serde_json::to_vec_pretty(value)
        .with_context(|| format!("cannot express the content of '{}' as JSON", path.display()))?;
    text.push(b'\n');
    write_atomic(path, &text)
}

/// Bytes that are free where a folder is, if the system says so.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let out = std::process::Command::new("df")
        .arg("-Pk")
        .arg(folder)
        .output()
        .ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let fourth = text.lines().nth(1)?.split_whitespace().nth(3)?;
    fourth.parse::<u64>().ok().map(|k| k * 1024)
}

/// Bytes of all files in a folder; links count themselves.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let one = |e: fs::DirEntry| match e.metadata() {
        Ok(m) if m.is_dir() => bytes_in(&e.path()),
        Ok(m) => m.len(),
        Err(_) => 0,
    };
    disk::entries(folder).map(one).sum()
}

/// Deletes a folder with everything in it, and follows no link. It has lost its name before the first file goes: nobody finds half of it.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    let old = temp_files::name(folder, "old", &temp_files::suffix());
    disk::rename(folder, &old)
        // Before its files: half of it under its own name would be a damaged run.
        .and_then(|()| disk::sync_folder(disk::folder(folder)))
        .map_err(|e| cannot("delete", folder, e))?;
    disk::remove(&old).map_err(|e| cannot("delete", &old, e))
}

/// Deletes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match disk::remove(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|e| cannot("delete", path, e)),
    }
}

/// An input/output error with the path it concerns and what to do about it.
fn cannot(action: &str, path: &Path, error: io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::NotFound if action == "read" => "check the name",
        _ if access::is_forbidden(&error) => "it is not allowed",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "change the permissions or choose another folder"
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "part of this path is a file: choose another folder"
        }
        ErrorKind::IsADirectory => "this is a folder: choose another name",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some disk space and try again",
        _ => "check the disk and try again",
    };
    let message = format!("cannot {action} '{}' ({advice})", path.display());
    let path = path.into();
    anyhow::Error::new(error).context(BadFile { path, message })
}
