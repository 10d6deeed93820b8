//! Checkpoints: safetensors with a checksum, in two generations.
//!
//! The folder holds `current.safetensors` and `previous.safetensors`. Saving writes the new one aside and flushes it,
//! then makes current previous and renames the new one to current, so at every instant one of the two names is a valid
//! checkpoint. The folder appears with its first checkpoint in it, so one without any has lost it. Loading takes current if its checksum is right and previous otherwise.
//! What was recorded only grows, and is in a file of its own, of which both count on a part: see [`super::journal`].
//!
//! The state of a run may fill most of the memory, so nothing here copies it: saving takes views and converts small
//! pieces, loading reads straight into the numbers it returns.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use crc32fast::Hasher;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use super::bytes::PIECE;
use super::disk::{Output, sync, sync_folder};
use super::journal::{self, Extent};
pub use super::tensors::{DataRef, Tensor, TensorData, TensorRef, Tensors};
use super::tensors::{Layout, Reader, check as check_names};
use super::{cannot, disk, temp_files};
use crate::error::Result;

const CURRENT: &str = "current.safetensors";
const PREVIOUS: &str = "previous.safetensors";
const META: &str = "meta";
const LISTS: &str = "lists";
/// The entry with the number of the format, which changes with the entries, the lists and the tensors, so that no version reads what it does not know.
const FORMAT: &str = "format";
const THIS_FORMAT: &str = "1";

/// The state of a run as it is loaded: a description and named tensors.
///
/// Numbers that must come back bit for bit belong in the tensors: JSON has no NaN, and its parser may be off by one bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Anything that JSON can say.
    pub meta: Value,
    /// Named tensors; names differ.
    pub tensors: Tensors,
}

/// A checkpoint whose format this version does not know.
#[derive(Debug)]
struct OtherFormat(String);

impl std::fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "its format is {}, and this version of ergodic, {}, reads {THIS_FORMAT}; go on with the version that wrote it, which run.json says",
            self.0,
            env!("CARGO_PKG_VERSION")
        )
    }
}

impl std::error::Error for OtherFormat {}

/// Which of the two generations was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Generation {
    /// The latest one.
    Current,
    /// The one before, because the latest could not be used.
    Previous {
        /// Why the latest could not be used.
        reason: String,
    },
}

impl Generation {
    /// Why the latest one is not the one that was loaded, if it is not.
    pub fn reason(self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Previous { reason } => Some(reason),
        }
    }

    /// What is said of results that are shown as they were at their older checkpoint, `at` the step of it; none of the latest one.
    pub fn shown(self, at: &str) -> Option<String> {
        let reason = self.reason()?;
        Some(format!(
            "this is the older checkpoint, {at}, since the newest one cannot be used: {reason}"
        ))
    }
}

/// Saves a new generation in `dir`, which is created if need be. Names of tensors must differ.
///
/// Beside what is saved, it takes the memory of the file's header and less than a MiB.
pub fn save(dir: &Path, meta: &Value, tensors: &[(String, TensorRef<'_>)]) -> Result<()> {
    if super::writes_nothing() {
        return Ok(());
    }
    if !dir.exists() {
        return begin(dir, meta, tensors);
    }
    let (current, previous) = (dir.join(CURRENT), dir.join(PREVIOUS));
    temp_files::sweep(&current);
    // A damaged current must not replace a good previous one: then the new file alone takes its place.
    let kept = check(&current).ok();
    let base = kept.clone().or_else(|| check(&previous).ok()).flatten();
    let (layout, extent) = layout(dir, dir, (meta, tensors), base.clone())?;
    let temp = temp_files::name(&current, "tmp", &temp_files::suffix());
    let written = write_new(&temp, &layout)
        .and_then(|()| sync(&temp))
        .and_then(|()| {
            match kept {
                Some(_) => replace(&temp, &current, &previous)?,
                None => disk::rename(&temp, &current)?,
            }
            sync_folder(dir)
        });
    if written.is_err() {
        temp_files::remove(&temp);
    }
    written.map_err(|e| cannot("write", &current, e))?;
    journal::tidy(dir, &[extent, base]);
    Ok(())
}

/// Puts a new file in the place of `current`, and that in the place of `previous`. At every instant both names are those of whole files, and
/// of two different ones.
fn replace(new: &Path, current: &Path, previous: &Path) -> io::Result<()> {
    let second = temp_files::name(current, "old", &temp_files::suffix());
    if disk::link(current, &second).is_err() {
        // Where a file cannot have two names, there is no current one for an instant.
        disk::rename(current, previous)?;
        return disk::rename(new, current);
    }
    disk::rename(new, current)?;
    let moved = disk::rename(&second, previous);
    // Two names of one file are not renamed to each other.
    let _ = disk::remove(&second);
    moved
}

/// Makes the folder with its first files in it: where the folder is, there has been a checkpoint.
fn begin(dir: &Path, meta: &Value, tensors: &[(String, TensorRef<'_>)]) -> Result<()> {
    let above = disk::folder(dir);
    let failed = |e| cannot("write", dir, e);
    disk::make_folders(above).map_err(|e| cannot("create", dir, e))?;
    temp_files::sweep(dir);
    let temp = temp_files::name(dir, "tmp", &temp_files::suffix());
    let written = disk::make_folder(&temp).map_err(failed).and_then(|()| {
        let (layout, _) = layout(dir, &temp, (meta, tensors), None)?;
        let file = temp.join(CURRENT);
        write_new(&file, &layout)
            .and_then(|()| sync(&file))
            .and_then(|()| sync_folder(&temp))
            .and_then(|()| disk::rename(&temp, dir))
            .and_then(|()| sync_folder(above))
            .map_err(failed)
    });
    if written.is_err() {
        temp_files::remove(&temp);
    }
    written
}

/// What [`save`] would write, in memory.
pub fn encode(meta: &Value, tensors: &[(String, TensorRef<'_>)]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let meta = serde_json::to_string(meta)?;
    Layout::checked(tensors, &[(META.to_string(), meta.clone())], &meta)?.write(&mut out)?;
    Ok(out)
}

/// What [`encode`] wrote: tensors and description.
pub fn decode(bytes: &[u8]) -> Result<(Tensors, Value)> {
    let (_, head) = SafeTensors::read_metadata(bytes)?;
    let meta = head.metadata().as_ref().and_then(|m| m.get(META));
    let meta = serde_json::from_str(meta.context("it has no description")?)?;
    let tensor = |(name, view): (String, TensorView<'_>)| {
        let data = view.data();
        let data = match view.dtype() {
            Dtype::F32 => TensorData::F32(numbers(data, f32::from_le_bytes)),
            Dtype::F64 => TensorData::F64(numbers(data, f64::from_le_bytes)),
            Dtype::U64 => TensorData::U64(numbers(data, u64::from_le_bytes)),
            Dtype::I64 => TensorData::I64(numbers(data, i64::from_le_bytes)),
            other => bail!("tensor '{name}' is of type {other:?}, which no checkpoint has"),
        };
        let shape = view.shape().to_vec();
        Ok((name, Tensor { shape, data }))
    };
    let tensors = SafeTensors::deserialize(bytes)?.tensors();
    Ok((
        tensors.into_iter().map(tensor).collect::<Result<_>>()?,
        meta,
    ))
}

fn numbers<T, const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|b| of(*b)).collect()
}

/// Loads the newest valid generation in `dir`: `None` when there has never been a checkpoint, an error when none is valid.
pub fn load(dir: &Path) -> Result<Option<(Checkpoint, Generation)>> {
    let current = match load_one(&dir.join(CURRENT)) {
        Ok(Some(checkpoint)) => return Ok(Some((checkpoint, Generation::Current))),
        // The one before would be of the same version, or older than it.
        Err(e) if e.is::<OtherFormat>() => {
            return Err(e.context(format!(
                "the checkpoint in '{}' cannot be used",
                dir.display()
            )));
        }
        other => other,
    };
    let previous = load_one(&dir.join(PREVIOUS));
    if !dir.exists() {
        return Ok(None);
    }
    let reason = why(CURRENT, &current);
    match previous {
        Ok(Some(checkpoint)) => Ok(Some((checkpoint, Generation::Previous { reason }))),
        unusable => bail!(
            "no valid checkpoint in '{}': {reason}; {}; restore one from a backup, or delete '{}' to start afresh",
            dir.display(),
            why(PREVIOUS, &unusable),
            disk::folder(dir).display()
        ),
    }
}

/// Why a generation is not used.
fn why(name: &str, outcome: &Result<Option<Checkpoint>>) -> String {
    match outcome {
        Err(e) if e.is::<OtherFormat>() => format!("{name}: {e:#}"),
        Err(e) => format!("{name} is damaged ({e:#})"),
        Ok(_) => format!("{name} is missing"),
    }
}

/// The description in the newest checkpoint that has one, without its numbers and unchecked: for lists of many.
pub fn description(dir: &Path) -> Option<Value> {
    let one = |name: &str| {
        let path = dir.join(name);
        let reader = Reader::new(disk::open(&path).ok()?, &path).ok()?;
        serde_json::from_str(reader.metadata(META)?).ok()
    };
    one(CURRENT).or_else(|| one(PREVIOUS))
}

/// The checksum of the newest checkpoint, by which it can be told from others.
pub fn stamp(dir: &Path) -> Option<String> {
    let path = dir.join(CURRENT);
    let reader = Reader::new(disk::open(&path).ok()?, &path).ok()?;
    reader.checksum().map(String::from)
}

/// Whether the newest checkpoint is as it was written.
pub fn is_whole(dir: &Path) -> bool {
    whole(&dir.join(CURRENT)).is_ok()
}

/// The files of the newest checkpoint and of the one before it, each with whether it and its lists are as they were written.
pub fn generations(dir: &Path) -> [(PathBuf, Result<()>); 2] {
    let paths = [CURRENT, PREVIOUS].map(|name| dir.join(name));
    paths.map(|path| {
        let found = whole(&path);
        (path, found)
    })
}

/// Fail if a file, or a list that it counts on, is not as it was written.
fn whole(path: &Path) -> Result<()> {
    match skim(path)? {
        Some(lists) => journal::check(disk::folder(path), &lists),
        None => Ok(()),
    }
}

/// Whether a folder has a checkpoint, be it damaged.
pub fn is_there(dir: &Path) -> bool {
    [CURRENT, PREVIOUS].iter().any(|f| dir.join(f).is_file())
}

/// One generation; `None` when there is no such file.
fn load_one(path: &Path) -> Result<Option<Checkpoint>> {
    let file = match disk::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot("read", path, e)),
    };
    let mut tensors = Vec::new();
    let (meta, lists) = read(file, path, |reader, name, hasher| {
        let tensor = tensor(reader, name, hasher)
            .with_context(|| format!("tensor '{name}' cannot be read"))?;
        tensors.push((name.to_string(), tensor));
        Ok(())
    })?;
    if let Some(extent) = lists {
        tensors.extend(journal::read(disk::folder(path), &extent)?);
    }
    let meta = serde_json::from_str(&meta)?;
    Ok(Some(Checkpoint { meta, tensors }))
}

/// What a file counts on that can be read and has the checksum it should have.
fn skim(path: &Path) -> Result<Option<Extent>> {
    let each = |reader: &Reader<'_>, name: &str, hasher: &mut Hasher| {
        reader.pieces(name, |piece| hasher.update(piece))
    };
    let file = disk::open(path).map_err(|e| cannot("read", path, e))?;
    Ok(read(file, path, each)?.1)
}

/// [`skim`] of a file whose lists more can be appended to.
fn check(path: &Path) -> Result<Option<Extent>> {
    let lists = skim(path)?;
    if let Some(lists) = &lists {
        lists.check_base(disk::folder(path))?;
    }
    Ok(lists)
}

/// What the file of a checkpoint in `dir` holds, with its lists written to `folder`.
fn layout<'a>(
    dir: &Path,
    folder: &Path,
    (meta, tensors): (&Value, &[(String, TensorRef<'a>)]),
    base: Option<Extent>,
) -> Result<(Layout<'a>, Option<Extent>)> {
    let make = || -> Result<_> {
        check_names(tensors)?;
        let grows = |(_, t): &&(String, TensorRef)| t.grows && t.data.len() > 0;
        let (lists, others): (Vec<_>, Vec<_>) = tensors.iter().partition(grows);
        let others: Vec<_> = others.into_iter().cloned().collect();
        let meta = serde_json::to_string(meta)?;
        let mut all = [(FORMAT, THIS_FORMAT.into()), (META, meta)]
            .map(|(key, text): (&str, String)| (key.to_string(), text))
            .to_vec();
        let mut extent = None;
        if !lists.is_empty() {
            let lists: Vec<_> = lists
                .iter()
                .map(|(name, t)| (name.as_str(), t.data))
                .collect();
            let extent = extent.insert(journal::append(folder, base, &lists)?);
            all.push((LISTS.to_string(), serde_json::to_string(extent)?));
        }
        let covered: String = all.iter().map(|(_, text)| text.as_str()).collect();
        Ok((Layout::checked(&others, &all, &covered)?, extent))
    };
    make().with_context(|| format!("cannot save a checkpoint to '{}'", dir.display()))
}

/// Writes a file that nobody else knows of yet.
fn write_new(path: &Path, layout: &Layout<'_>) -> io::Result<()> {
    // Gathers small tensors; pieces of large ones go straight through.
    let mut out = BufWriter::with_capacity(PIECE, Output::create(path)?);
    layout.write(&mut out)?;
    out.flush()
}

/// Reads a file, compares its checksum and gives its description, and the lists that it counts on.
///
/// `each` must show all bytes of the tensor it is called with to the hasher.
fn read(
    file: File,
    path: &Path,
    mut each: impl FnMut(&Reader<'_>, &str, &mut Hasher) -> Result<()>,
) -> Result<(String, Option<Extent>)> {
    let reader = Reader::new(file, path)?;
    let meta = reader.metadata(META).context("it has no description")?;
    let lists = reader.metadata(LISTS);
    // Before there was a number, it was this one.
    let format = reader.metadata(FORMAT);
    let covered = [format.unwrap_or_default(), meta, lists.unwrap_or_default()].concat();
    if let Some(other) = format.filter(|f| *f != THIS_FORMAT) {
        // Where it is not the number that is damaged: checksums are the same in all formats.
        reader.check(&covered, |name, hasher| {
            reader.pieces(name, |piece| hasher.update(piece))
        })?;
        let other = other.to_string();
        return Err(OtherFormat(other).into());
    }
    reader.check(&covered, |name, hasher| each(&reader, name, hasher))?;
    let lists = lists.map(Extent::parse).transpose()?;
    Ok((meta.to_string(), lists))
}

fn tensor(reader: &Reader<'_>, name: &str, hasher: &mut Hasher) -> Result<Tensor> {
    let info = reader.info(name)?;
    let watch = |piece: &[u8]| hasher.update(piece);
    let data = match info.dtype {
        Dtype::F32 => TensorData::F32(reader.numbers(name, watch)?),
        Dtype::F64 => TensorData::F64(reader.numbers(name, watch)?),
        Dtype::U64 => TensorData::U64(reader.numbers(name, watch)?),
        Dtype::I64 => TensorData::I64(reader.numbers(name, watch)?),
        other => bail!("its type {other} is not one that checkpoints have"),
    };
    let shape = info.shape.clone();
    Ok(Tensor { shape, data })
}
