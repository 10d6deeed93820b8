//! Arrays `[chain, draw, …]` that are written draw by draw, while a run goes on.
//!
//! The metadata stands from the beginning, with the final shape, and a chunk holds consecutive draws of one chain: so a draw is one write into
//! one file per array, nothing of it is held in memory, and what is not written yet is NaN to every reader. A checksum is linear in the bytes, so
//! that of a chunk follows every draw without reading the others. Chunks of many chains are in one file (codec `sharding_indexed`), each at a place that
//! the index states from the beginning: so there are few files, and chains write side by side.

use super::super::bytes::{decode, encode};
use super::super::{cannot, sync, sync_folder, temp_files, write_atomic};
use super::draws::Draws;
use super::{CHECKSUM, CRC32C, METADATA, array_metadata, checksum, little_endian};
use crate::error::Result;
use anyhow::Context;
use half::f16;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Result as IoResult;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file, and where a chunk is in it.
pub(super) type Found = (File, u64);

/// Draws on disk.
#[derive(Debug)]
pub struct Stream {
    pub(super) root: PathBuf,
    pub(super) draws: Draws,
    /// The chains whose draws are written here; increasing.
    own: Vec<usize>,
    /// Files that are there.
    there: Mutex<BTreeSet<PathBuf>>,
    /// Files that are not flushed yet, and whether they are new.
    written: Mutex<BTreeMap<PathBuf, bool>>,
    /// Checksums of the chunks that are written to, by tensor and chain.
    sums: Mutex<BTreeMap<[usize; 2], (usize, u32)>>,
    /// Chunks whose checksums were found right: tensor, chain, number.
    pub(super) sound: Mutex<BTreeSet<[usize; 3]>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// Draws of these chains that are written to the folder `root`, or already there.
    pub fn new(root: PathBuf, draws: Draws, own: Vec<usize>) -> Self {
        Self {
            root,
            draws,
            own,
            there: Mutex::default(),
            written: Mutex::default(),
            sums: Mutex::default(),
            sound: Mutex::default(),
        }
    }

    /// Draws that were written, from their folder.
    pub fn open(root: &Path) -> Result<Self> {
        let metadata: Value = super::super::read_json(&root.join(METADATA))?;
        let mut draws =
            Draws::deserialize(&metadata["attributes"]["draws"]).with_context(|| {
                format!(
                    "'{}' holds no draws of this version of ergodic",
                    root.display()
                )
            })?;
        let steps = root.join("step/c/0");
        let bytes = std::fs::read(&steps).map_err(|e| cannot("read", &steps, e))?;
        draws.steps = decode(&bytes);
        Ok(Self::new(root.into(), draws, Vec::new()))
    }

    /// What is written.
    pub fn draws(&self) -> &Draws {
        &self.draws
    }

    /// The file that has a chunk of a chain.
    pub(super) fn path(&self, tensor: usize, chain: usize, chunk: usize) -> PathBuf {
        let (name, shape) = &self.draws.tensors[tensor];
        let [number, temperature] = self.draws.cut(tensor).file(self.draws.place(chain));
        let mut path = self.root.join(name).join("c");
        path.push(number.to_string());
        path.push(chunk.to_string());
        if self.draws.temperatures.is_some() {
            path.push(temperature.to_string());
        }
        path.extend(shape.iter().map(|_| "0"));
        path
    }

    /// Write the metadata and the coordinates; temperatures that are tuned are known at the end only.
    pub fn describe(&self, temperatures: &[f64]) -> Result<()> {
        let draws = &self.draws;
        let mut nodes = Map::new();
        let numbers = |n: usize| (0..n as u64).collect::<Vec<_>>();
        let whole = [
            ("chain", "chain", numbers(draws.chains)),
            ("draw", "draw", numbers(draws.steps.len())),
            ("step", "draw", draws.steps.clone()),
        ];
        for (name, dim, values) in whole {
            let bytes = encode(&values);
            self.coordinate(
                name,
                dim,
                ("int64", json!(0)),
                values.len(),
                &bytes,
                &mut nodes,
            )?;
        }
        if draws.temperatures.is_some() {
            let (name, count) = ("temperature", temperatures.len());
            let kind = ("float64", json!("NaN"));
            self.coordinate(name, name, kind, count, &encode(temperatures), &mut nodes)?;
        }
        let data_type = if draws.half { "float16" } else { "float32" };
        for (tensor, (name, _)) in draws.tensors.iter().enumerate() {
            let (dims, [shape, file, chunk]) = draws.layout(tensor);
            let codecs = [little_endian(), json!({ "name": CRC32C })];
            let sharding = json!({
                "name": "sharding_indexed",
                "configuration": { "chunk_shape": chunk, "codecs": codecs, "index_codecs": codecs, "index_location": "start" },
            });
            let metadata = array_metadata(
                (data_type, json!("NaN")),
                &dims,
                (&shape, &file),
                &[sharding],
                &Map::new(),
            );
            self.array(name, metadata, &mut nodes)?;
        }
        let attributes = json!({
            "creation_library": "ergodic",
            "coordinates": "step",
            "creation_library_version": env!("CARGO_PKG_VERSION"),
            "draws": draws,
        });
        let root = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": attributes,
            "consolidated_metadata": { "kind": "inline", "must_understand": false, "metadata": nodes },
        });
        write_atomic(
            &self.root.join(METADATA),
            &serde_json::to_vec_pretty(&root)?,
        )
    }

    /// Write the metadata and the coordinates of the draws that were made up to this step.
    pub fn describe_up_to(&self, step: u64, temperatures: &[f64]) -> Result<()> {
        let mut draws = self.draws.clone();
        draws.steps.retain(|s| *s <= step);
        Self::new(self.root.clone(), draws, Vec::new()).describe(temperatures)
    }

    fn coordinate(
        &self,
        name: &str,
        dim: &str,
        kind: (&str, Value),
        length: usize,
        bytes: &[u8],
        nodes: &mut Map<String, Value>,
    ) -> Result<()> {
        let shape = [length];
        write_atomic(&self.root.join(name).join("c/0"), bytes)?;
        let (dims, codecs) = ([dim.to_string()], [little_endian()]);
        let metadata = array_metadata(kind, &dims, (&shape, &shape), &codecs, &Map::new());
        self.array(name, metadata, nodes)
    }

    fn array(&self, name: &str, metadata: Value, nodes: &mut Map<String, Value>) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(&metadata)?;
        write_atomic(&self.root.join(name).join(METADATA), &bytes)?;
        nodes.insert(name.into(), metadata);
        Ok(())
    }

    /// Write a tensor of the `k`-th draw of a chain.
    pub fn write(&self, tensor: usize, chain: usize, k: usize, values: &[f32]) -> Result<()> {
        let bytes = self.encoded(values);
        let (chunk, at) = self.place(tensor, k);
        let path = self.path(tensor, chain, chunk);
        let (start, length) = (
            self.draws.offset(tensor, chain),
            self.draws.chunk_bytes(tensor),
        );
        let write = || -> IoResult<u32> {
            self.make(tensor, chain, &path)?;
            let file = File::options().read(true).write(true).open(&path)?;
            let sum = match self.sum_of(tensor, chain, chunk) {
                Some(sum) => sum,
                // Empty, or a run that goes on has made this draw before, perhaps in part.
                None => {
                    let mut all = vec![0; length];
                    file.read_exact_at(&mut all, start)?;
                    crc32c::crc32c(&all)
                }
            };
            let offset = at * bytes.len();
            let mut before = vec![0; bytes.len()];
            file.read_exact_at(&mut before, start + offset as u64)?;
            let change = crc32c::crc32c(&before) ^ crc32c::crc32c(&bytes);
            let after = length - offset - bytes.len();
            let sum = sum ^ crc32c::crc32c_combine(change, 0, after);
            file.write_all_at(&bytes, start + offset as u64)?;
            file.write_all_at(&sum.to_le_bytes(), start + length as u64)?;
            Ok(sum)
        };
        let sum = write().map_err(|e| cannot("write", &path, e))?;
        lock(&self.sums).insert([tensor, chain], (chunk, sum));
        lock(&self.written).entry(path).or_default();
        Ok(())
    }

    /// The checksum of a chunk that was written to by this process.
    fn sum_of(&self, tensor: usize, chain: usize, chunk: usize) -> Option<u32> {
        let sums = lock(&self.sums);
        let (of, sum) = sums.get(&[tensor, chain])?;
        (*of == chunk).then_some(*sum)
    }

    /// Make the file of a chain, with chunks without draws, if it is not there: a disk that is full is met here, before any of them is made.
    fn make(&self, tensor: usize, chain: usize, path: &Path) -> IoResult<()> {
        let mut there = lock(&self.there);
        if there.contains(path) {
            return Ok(());
        }
        if !path.exists() {
            std::fs::create_dir_all(temp_files::folder(path))?;
            temp_files::sweep(path);
            let (index, places) = self.draws.index(tensor, chain, &self.own);
            let numbers = self.draws.numbers(tensor) * self.draws.cut(tensor).draws;
            let mut empty = self.encoded(&vec![f32::NAN; numbers]);
            empty.extend(checksum(&empty));
            let temp = temp_files::name(path, "tmp", &temp_files::suffix());
            let made = File::create(&temp).and_then(|file| {
                file.write_all_at(&index, 0)?;
                let mut places = places.iter();
                places.try_for_each(|at| file.write_all_at(&empty, *at))
            });
            // Another rank may have made it in the meantime, and written to it.
            let linked = made.and_then(|()| match std::fs::hard_link(&temp, path) {
                Err(_) if !path.exists() => std::fs::rename(&temp, path),
                _ => Ok(()),
            });
            temp_files::remove(&temp);
            linked?;
            lock(&self.written).insert(path.into(), true);
        }
        there.insert(path.into());
        Ok(())
    }

    fn encoded(&self, values: &[f32]) -> Vec<u8> {
        match self.draws.half {
            true => {
                let halves = values.iter().map(|x| f16::from_f32(*x).to_le_bytes());
                halves.flatten().collect()
            }
            false => encode(values),
        }
    }

    /// The chunk of a draw, and its place there.
    pub(super) fn place(&self, tensor: usize, k: usize) -> (usize, usize) {
        let per = self.draws.cut(tensor).draws;
        (k / per, k % per)
    }

    /// Flush what was written to the disk.
    pub fn sync(&self) -> Result<()> {
        let written = std::mem::take(&mut *lock(&self.written));
        let mut folders = BTreeSet::new();
        for (path, new) in &written {
            sync(path).map_err(|e| cannot("write", path, e))?;
            // With the folders above it, which may be new as well.
            let above = path.ancestors().skip(1).filter(|_| *new);
            folders.extend(above.take_while(|f| f.starts_with(&self.root)));
        }
        for folder in folders {
            sync_folder(folder).map_err(|e| cannot("write", folder, e))?;
        }
        Ok(())
    }

    /// Take over the draws of a chain from another folder, as that of a shard.
    pub fn take(&self, from: &Self, chain: usize) -> Result<()> {
        for tensor in 0..self.draws.tensors.len() {
            for chunk in 0..self.draws.chunks(tensor) {
                let Some((file, at)) = from.find(tensor, chain, chunk)? else {
                    continue;
                };
                let path = self.path(tensor, chain, chunk);
                let mut bytes = vec![0; self.draws.chunk_bytes(tensor) + CHECKSUM];
                file.read_exact_at(&mut bytes, at)
                    .and_then(|()| self.make(tensor, chain, &path))
                    .and_then(|()| File::options().write(true).open(&path))
                    .and_then(|to| to.write_all_at(&bytes, self.draws.offset(tensor, chain)))
                    .map_err(|e| cannot("write", &path, e))?;
                lock(&self.written).entry(path).or_default();
            }
        }
        Ok(())
    }

    /// The file that has a chunk, and where; none if it has not, because none of its draws was made.
    pub(super) fn find(&self, tensor: usize, chain: usize, chunk: usize) -> Result<Option<Found>> {
        let path = self.path(tensor, chain, chunk);
        let find = || -> IoResult<Option<Found>> {
            if !path.exists() {
                return Ok(None);
            }
            let (file, mut entry) = (File::open(&path)?, [0; 16]);
            file.read_exact_at(&mut entry, self.draws.entry(tensor, chain))?;
            let at = self.draws.offset(tensor, chain);
            Ok(Draws::has(entry).then_some((file, at)))
        };
        find().map_err(|e| cannot("read", &path, e))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
