//! Arrays `[chain, draw, …]` that are written draw by draw, while a run goes on.
//!
//! The metadata stands from the beginning, with the final shape, and a chunk holds consecutive draws of one chain: so a draw is one write into
//! one file per array, nothing of it is held in memory, and what is not written yet is NaN to every reader. A checksum is linear in the bytes, so
//! that of a chunk follows every draw without reading the others.

use super::super::bytes::{decode, encode};
use super::super::{cannot, sync, sync_folder, temp_files, write_atomic};
use super::draws::Draws;
use super::{CRC32C, METADATA, array_metadata, little_endian};
use crate::error::Result;
use anyhow::Context;
use half::f16;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Result as IoResult, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Draws on disk.
#[derive(Debug)]
pub struct Stream {
    pub(super) root: PathBuf,
    pub(super) draws: Draws,
    /// Chunks that are not flushed yet, and whether they are new.
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
    /// Draws that are written to the folder `root`, or already there.
    pub fn new(root: PathBuf, draws: Draws) -> Self {
        Self {
            root,
            draws,
            written: Mutex::default(),
            sums: Mutex::default(),
            sound: Mutex::default(),
        }
    }

    /// Draws that were written, from their folder.
    pub fn open(root: &Path) -> Result<Self> {
        let metadata: Value = super::super::read_json(&root.join(METADATA))?;
        let mut draws = Draws::deserialize(&metadata["attributes"]["ergodic"])
            .with_context(|| format!("'{}' holds no draws of ergodic", root.display()))?;
        let steps = root.join("step/c/0");
        let bytes = std::fs::read(&steps).map_err(|e| cannot("read", &steps, e))?;
        draws.steps = decode(&bytes);
        Ok(Self::new(root.into(), draws))
    }

    /// What is written.
    pub fn draws(&self) -> &Draws {
        &self.draws
    }

    /// The file of a chunk of a chain, which are ordered by temperature, then by number.
    pub(super) fn path(&self, tensor: usize, chain: usize, chunk: usize) -> PathBuf {
        let (name, shape) = &self.draws.tensors[tensor];
        let (temperature, number) = (chain / self.draws.chains, chain % self.draws.chains);
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
            let (dims, shape, chunk) = draws.layout(tensor);
            let codecs = [little_endian(), json!({ "name": CRC32C })];
            let chunk: Vec<_> = chunk.iter().map(|n| *n.max(&1)).collect();
            let metadata = array_metadata(
                (data_type, json!("NaN")),
                &dims,
                (&shape, &chunk),
                &codecs,
                &Map::new(),
            );
            self.array(name, metadata, &mut nodes)?;
        }
        let attributes = json!({
            "creation_library": "ergodic",
            "coordinates": "step",
            "creation_library_version": env!("CARGO_PKG_VERSION"),
            "ergodic": draws,
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
        Self::new(self.root.clone(), draws).describe(temperatures)
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
        let length = self.draws.chunk_bytes(tensor);
        let write = || -> IoResult<u32> {
            let (file, sum) = match (at, self.sum_of(tensor, chain, chunk)) {
                (0, _) => self.begin(tensor, &path)?,
                (_, Some(sum)) => (open(&path)?, sum),
                // A run that goes on has made this draw before, perhaps in part.
                (_, None) => {
                    let file = open(&path)?;
                    let mut all = vec![0; length];
                    file.read_exact_at(&mut all, 0)?;
                    (file, crc32c::crc32c(&all))
                }
            };
            let offset = at * bytes.len();
            let mut before = vec![0; bytes.len()];
            file.read_exact_at(&mut before, offset as u64)?;
            let change = crc32c::crc32c(&before) ^ crc32c::crc32c(&bytes);
            let after = length - offset - bytes.len();
            let sum = sum ^ crc32c::crc32c_combine(change, 0, after);
            file.write_all_at(&bytes, offset as u64)?;
            file.write_all_at(&sum.to_le_bytes(), length as u64)?;
            Ok(sum)
        };
        let sum = write().map_err(|e| cannot("write", &path, e))?;
        lock(&self.sums).insert([tensor, chain], (chunk, sum));
        self.note(path, at == 0);
        Ok(())
    }

    /// The checksum of a chunk that was written to by this process.
    fn sum_of(&self, tensor: usize, chain: usize, chunk: usize) -> Option<u32> {
        let sums = lock(&self.sums);
        let (of, sum) = sums.get(&[tensor, chain])?;
        (*of == chunk).then_some(*sum)
    }

    fn note(&self, path: PathBuf, new: bool) {
        *lock(&self.written).entry(path).or_default() |= new;
    }

    /// A chunk without draws, and its checksum: a disk that is full is met here, before any of them is made.
    fn begin(&self, tensor: usize, path: &Path) -> IoResult<(File, u32)> {
        std::fs::create_dir_all(temp_files::folder(path))?;
        let numbers = self.draws.numbers(tensor) * self.draws.per_chunk(tensor);
        let mut bytes = self.encoded(&vec![f32::NAN; numbers]);
        let sum = crc32c::crc32c(&bytes);
        bytes.extend(sum.to_le_bytes());
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.write_all(&bytes)?;
        Ok((file, sum))
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
        let per = self.draws.per_chunk(tensor);
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
            for chunk in 0..self
                .draws
                .steps
                .len()
                .div_ceil(self.draws.per_chunk(tensor))
            {
                let (old, new) = (
                    from.path(tensor, chain, chunk),
                    self.path(tensor, chain, chunk),
                );
                if !old.exists() {
                    continue;
                }
                std::fs::create_dir_all(temp_files::folder(&new))
                    .and_then(|()| std::fs::copy(&old, &new).map(drop))
                    .map_err(|e| cannot("write", &new, e))?;
                self.note(new, true);
            }
        }
        Ok(())
    }
}

/// A chunk to be written to.
fn open(path: &Path) -> IoResult<File> {
    File::options().read(true).write(true).open(path)
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
