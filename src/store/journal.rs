//! Lists that only grow, in a file that is only appended to: a checkpoint writes what is new since the one before it, not all of it again.
//!
//! The file is a row of blocks, each in the format of safetensors: the numbers that the lists have got. A checkpoint states how many bytes of it count,
//! and length and checksum of every list. What stands behind them was not finished, and is written over.

use super::disk::Output;
use super::tensors::{DataRef, Layout, Reader, Tensor, TensorData, TensorRef, Tensors};
use super::{cannot, disk, temp_files};
use crate::error::Result;
use anyhow::{Context, bail, ensure};
use crc32fast::Hasher;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const PREFIX: &str = "lists-";

/// What a checkpoint counts on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Extent {
    /// Name of the file; there is none as long as all lists are empty.
    file: String,
    /// Bytes of it that count.
    bytes: u64,
    /// Numbers of every list, and their checksum.
    lists: BTreeMap<String, (usize, u32)>,
    /// Which process wrote it.
    writer: String,
}

impl Extent {
    /// Nothing, in a file that is not there yet.
    fn new(dir: &Path) -> Self {
        let taken = files(dir).filter_map(|name| name[PREFIX.len()..].parse::<u64>().ok());
        let number = taken.max().map_or(0, |n| n.saturating_add(1));
        Self {
            file: format!("{PREFIX}{number}"),
            bytes: 0,
            lists: BTreeMap::new(),
            writer: temp_files::this_process().into(),
        }
    }

    /// What a checkpoint says of it.
    ///
    /// # Errors
    /// If it says nothing sensible, as where the file is not one of its folder.
    pub fn parse(text: &str) -> Result<Self> {
        let found: Self = serde_json::from_str(text)?;
        let number = found.file.strip_prefix(PREFIX).map(str::parse::<u64>);
        ensure!(
            number.is_some_and(|n| n.is_ok()),
            "its lists are in '{}', which is no file of lists",
            found.file
        );
        Ok(found)
    }

    /// Fail if more cannot be appended: what this process has not written itself must be as it was.
    pub fn check_base(&self, dir: &Path) -> Result<()> {
        let there = dir.join(&self.file).metadata();
        let whole = there.is_ok_and(|m| m.is_file() && m.len() >= self.bytes);
        ensure!(whole, "'{}' is cut off", self.file);
        match self.writer == temp_files::this_process() {
            true => Ok(()),
            false => check(dir, self),
        }
    }
}

/// The files of lists in a folder.
fn files(dir: &Path) -> impl Iterator<Item = String> {
    let names = disk::entries(dir).filter_map(|e| e.file_name().into_string().ok());
    names.filter(|name| name.starts_with(PREFIX))
}

/// Write what the lists have got since `base`, and flush it; where they do not begin with what is there, all of it into another file.
pub(super) fn append(
    dir: &Path,
    base: Option<Extent>,
    lists: &[(&str, DataRef<'_>)],
) -> Result<Extent> {
    if let Some(base) = base
        && let Some(extent) = grow(dir, base, lists)?
    {
        return Ok(extent);
    }
    let all = grow(dir, Extent::new(dir), lists)?;
    all.context("a list that grows must be in one piece")
}

/// Append to a file what the lists have got; none, with nothing written, where one of its lists is missing or begins otherwise.
fn grow(dir: &Path, mut to: Extent, lists: &[(&str, DataRef<'_>)]) -> Result<Option<Extent>> {
    let (mut new, mut missing) = (Vec::new(), to.lists.len());
    for (name, data) in lists {
        let there = to.lists.get(*name).copied();
        missing -= usize::from(there.is_some());
        let (count, sum) = there.unwrap_or_default();
        let Some((old, added)) = data.split_at(count) else {
            return Ok(None);
        };
        let mut hasher = Hasher::new();
        hash(&mut hasher, old)?;
        if hasher.clone().finalize() != sum {
            return Ok(None);
        }
        hash(&mut hasher, added)?;
        let found = (count + added.len(), hasher.finalize());
        to.lists.insert(name.to_string(), found);
        if added.len() > 0 {
            let (shape, data, grows) = (vec![added.len()], added, true);
            new.push((name.to_string(), TensorRef { shape, data, grows }));
        }
    }
    if missing > 0 {
        return Ok(None);
    }
    if !new.is_empty() {
        let (path, layout) = (dir.join(&to.file), Layout::new(&new, &[])?);
        let written = || -> io::Result<u64> {
            let mut file = Output::open_or_create(&path)?;
            file.end_at(to.bytes)?;
            let mut out = BufWriter::with_capacity(super::bytes::PIECE, file);
            layout.write(&mut out)?;
            out.flush()?;
            out.get_ref().flush_to_disk()?;
            if to.bytes == 0 {
                // Its name is new, and a checkpoint is about to count on it.
                disk::sync_folder(dir)?;
            }
            Ok(out.get_ref().place())
        };
        to.bytes = written().map_err(|e| cannot("write", &path, e))?;
    }
    to.writer = temp_files::this_process().into();
    Ok(Some(to))
}

fn hash(hasher: &mut Hasher, data: DataRef<'_>) -> io::Result<()> {
    data.pieces(&mut |piece| {
        hasher.update(piece);
        Ok(())
    })
}

/// All lists.
pub(super) fn read(dir: &Path, extent: &Extent) -> Result<Tensors> {
    let mut found: BTreeMap<String, TensorData> = BTreeMap::new();
    walk(dir, extent, |name, block, hasher| {
        let to = match found.entry(name.to_string()) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let count = extent.lists.get(name).map_or(0, |l| l.0);
                place.insert(empty(block.info(name)?.dtype, count)?)
            }
        };
        let watch = |piece: &[u8]| hasher.update(piece);
        match (to, block.info(name)?.dtype) {
            (TensorData::F32(to), Dtype::F32) => block.append(name, to, watch),
            (TensorData::F64(to), Dtype::F64) => block.append(name, to, watch),
            (TensorData::U64(to), Dtype::U64) => block.append(name, to, watch),
            (TensorData::I64(to), Dtype::I64) => block.append(name, to, watch),
            (_, other) => bail!("its type {other} is not that of the block before"),
        }
    })?;
    let tensor = |(name, data): (String, TensorData)| {
        let shape = vec![data.len()];
        (name, Tensor { shape, data })
    };
    Ok(found.into_iter().map(tensor).collect())
}

/// A list for so many numbers.
fn empty(kind: Dtype, count: usize) -> Result<TensorData> {
    Ok(match kind {
        Dtype::F32 => TensorData::F32(Vec::with_capacity(count)),
        Dtype::F64 => TensorData::F64(Vec::with_capacity(count)),
        Dtype::U64 => TensorData::U64(Vec::with_capacity(count)),
        Dtype::I64 => TensorData::I64(Vec::with_capacity(count)),
        other => bail!("its type {other} is not one that checkpoints have"),
    })
}

/// Fail if a list is not as it was written.
pub(super) fn check(dir: &Path, extent: &Extent) -> Result<()> {
    walk(dir, extent, |name, block, hasher| {
        block.pieces(name, |piece| hasher.update(piece))
    })
}

/// Show all parts of all lists, block by block, and compare their checksums. `each` must show all bytes of the part to the hasher.
fn walk(
    dir: &Path,
    extent: &Extent,
    mut each: impl FnMut(&str, &Reader<'_>, &mut Hasher) -> Result<()>,
) -> Result<()> {
    let path = dir.join(&extent.file);
    let mut hashers: BTreeMap<&str, Hasher> = BTreeMap::new();
    let mut at = 0;
    while at < extent.bytes {
        let file = disk::open(&path).map_err(|e| cannot("read", &path, e))?;
        let block = Reader::section(file, &path, at, extent.bytes)
            .with_context(|| format!("'{}', from byte {at}", path.display()))?;
        for name in &block.names {
            let known = extent.lists.get_key_value(name);
            let (name, _) = known.with_context(|| format!("'{name}' is no list of it"))?;
            each(name, &block, hashers.entry(name).or_default())
                .with_context(|| format!("list '{name}' cannot be read"))?;
        }
        at = block.end();
    }
    for (name, (_, sum)) in &extent.lists {
        let found = hashers.remove(name.as_str()).map(Hasher::finalize);
        ensure!(
            found == Some(*sum),
            "'{}' is damaged: list '{name}' is not as it was written",
            path.display()
        );
    }
    Ok(())
}

/// Delete the files that no checkpoint counts on.
pub(super) fn tidy(dir: &Path, counted: &[Option<Extent>]) {
    for name in files(dir) {
        if !counted.iter().flatten().any(|extent| extent.file == name) {
            temp_files::remove(&dir.join(name));
        }
    }
}
