//! Arrays `[chain, draw, …]` that are written draw by draw, while a run goes on.
//!
//! The metadata stands from the beginning, with the final shape, and a chunk holds consecutive draws of one chain: so a draw is one write into
//! one file per array, nothing of it is held in memory, and what is not written yet is NaN to every reader. A checksum is linear in the bytes, so
//! that of a chunk follows every draw without reading the others. Chunks of many chains are in one file (codec `sharding_indexed`), each at a place that
//! the index states from the beginning: so there are few files, and chains write side by side.

use super::super::bytes::{decode, encode};
use super::super::disk::{self, Output, sync, sync_folder};
use super::super::{cannot, temp_files, write_atomic};
use super::draws::Draws;
use super::{
    CHECKSUM, CRC32C, METADATA, SHARDING, array_metadata, checksum, chunks, little_endian,
};
use crate::access;
use crate::error::Result;
use crate::platform::read_exact_at;
use anyhow::{Context, ensure};
use half::f16;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A file, and where a chunk is in it.
pub(super) type Found = (File, u64);

/// A chunk that is written to.
#[derive(Debug, Clone, Copy)]
struct Open {
    chunk: usize,
    /// How many of its draws are made.
    draws: usize,
    /// The checksum of all of it: of these draws, and of what is behind them, NaN or what a killed process has left.
    sum: u32,
    /// The checksum of these draws.
    first: u32,
}

/// A file that is not flushed yet.
#[derive(Debug, Default)]
struct Written {
    /// It was made since the last flush.
    new: bool,
    /// It stays open, because on the disk of another machine every opening and closing waits for that machine.
    file: Option<Arc<Output>>,
}

/// How many files stay open at most: of the 1024 that most systems allow.
const STAY_OPEN: usize = 128;

/// The beginning of the name of a file with the number and the checksum of the draws that were flushed, for each chunk that is not full. The
/// checksum of such a chunk itself may be wrong, where a killed process has left a part of a draw behind them.
const FLUSHED: &str = "flushed-";

/// Draws on disk.
#[derive(Debug)]
pub struct Stream {
    pub(super) root: PathBuf,
    pub(super) draws: Draws,
    /// The chains whose draws are written here; increasing.
    own: Vec<usize>,
    /// Whether other processes write to the same files.
    pub shared: bool,
    /// Files that are there.
    there: Mutex<BTreeSet<PathBuf>>,
    /// Files that are not flushed yet.
    written: Mutex<BTreeMap<PathBuf, Written>>,
    /// The chunks that are written to, by tensor and chain.
    open: Mutex<BTreeMap<[usize; 2], Open>>,
    /// What was flushed of chunks by those who wrote before, by tensor and chain.
    flushed: OnceLock<BTreeMap<[usize; 2], Vec<Open>>>,
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
            shared: false,
            there: Mutex::default(),
            written: Mutex::default(),
            open: Mutex::default(),
            flushed: OnceLock::new(),
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
        let arrays = &metadata["consolidated_metadata"]["metadata"];
        let coordinate = |name: &str| -> Result<Vec<u64>> {
            let bytes = chunks::coordinate(&root.join(name), &arrays[name])?;
            Ok(decode(&bytes))
        };
        draws.steps = coordinate("step")?;
        // Only what is as long as a file says: nobody counts to the end of a number that was damaged.
        let mut right = draws.check().is_ok() && draws.chains == coordinate("chain")?.len();
        if let Some(count) = draws.temperatures {
            right &= count == coordinate("temperature")?.len();
        }
        right = right
            && (0..draws.tensors.len()).all(|tensor| {
                let array = &arrays[&draws.tensors[tensor].0];
                let (_, [mut shape, file, _]) = draws.layout(tensor);
                // Where a run ends, the coordinate says first how many draws there are.
                shape[1] = array["shape"][1].as_u64().unwrap_or(0) as usize;
                let cut = &array["chunk_grid"]["configuration"]["chunk_shape"];
                array["shape"] == json!(shape) && *cut == json!(file)
            });
        ensure!(
            right,
            "'{}' is damaged: it does not say of itself what its arrays are",
            root.join(METADATA).display()
        );
        Ok(Self::new(root.into(), draws, Vec::new()))
    }

    /// Whether its folder is there.
    pub fn is_there(&self) -> bool {
        self.root.exists()
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
                "name": SHARDING,
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

    /// Write the metadata and the coordinates of the draws that were made up to this step, some of them in burn-in perhaps.
    pub fn describe_up_to(&self, step: u64, burn_in: u64, temperatures: &[f64]) -> Result<()> {
        let mut draws = self.draws.clone();
        draws.steps.retain(|s| *s <= step);
        draws.burn_in = draws
            .steps
            .first()
            .is_some_and(|s| *s <= burn_in)
            .then_some(burn_in);
        // All chunks have their checksums now.
        self.flushed_files()
            .for_each(|file| temp_files::remove(&file));
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
        let all = [bytes, &checksum(bytes)].concat();
        write_atomic(&self.root.join(name).join("c/0"), &all)?;
        let (dims, codecs) = (
            [dim.to_string()],
            [little_endian(), json!({ "name": CRC32C })],
        );
        let metadata = array_metadata(
            kind,
            &dims,
            (&[length], &[length.max(1)]),
            &codecs,
            &Map::new(),
        );
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
        let write = || -> IoResult<Open> {
            let file = self.file(tensor, chain, &path)?;
            let offset = at * bytes.len();
            let open = match self.begun(tensor, chain, chunk, at) {
                Some(open) => open,
                None => self.continued([tensor, chain, chunk], at, &file)?,
            };
            let mut before = vec![0; bytes.len()];
            read_exact_at(file.file(), &mut before, start + offset as u64)?;
            let change = crc32c::crc32c(&before) ^ crc32c::crc32c(&bytes);
            let after = length - offset - bytes.len();
            let sum = open.sum ^ crc32c::crc32c_combine(change, 0, after);
            file.write_all_at(&bytes, start + offset as u64)?;
            file.write_all_at(&sum.to_le_bytes(), start + length as u64)?;
            Ok(Open {
                chunk,
                draws: at + 1,
                sum,
                first: crc32c::crc32c_append(open.first, &bytes),
            })
        };
        let open = write().map_err(|e| cannot("write", &path, e))?;
        lock(&self.open).insert([tensor, chain], open);
        Ok(())
    }

    /// The file of a chain, made if it is not there, to be written to until the next flush.
    fn file(&self, tensor: usize, chain: usize, path: &Path) -> IoResult<Arc<Output>> {
        let open = |written: &BTreeMap<_, Written>| written.get(path)?.file.clone();
        if let Some(file) = open(&lock(&self.written)) {
            return Ok(file);
        }
        self.make(tensor, chain, path)?;
        let file = Arc::new(match self.shared {
            true => Output::open_shared(path)?,
            false => Output::open(path)?,
        });
        let mut written = lock(&self.written);
        if written.values().filter(|w| w.file.is_some()).count() >= STAY_OPEN {
            written.values_mut().for_each(|w| w.file = None);
        }
        written.entry(path.into()).or_default().file = Some(file.clone());
        Ok(file)
    }

    /// Bytes of a draw.
    fn draw_bytes(&self, tensor: usize) -> usize {
        self.draws.numbers(tensor) * self.draws.size()
    }

    /// A chunk to which this process has written all draws before this one, if it has begun in it.
    fn begun(&self, tensor: usize, chain: usize, chunk: usize, at: usize) -> Option<Open> {
        let open = *lock(&self.open).get(&[tensor, chain])?;
        (open.chunk == chunk && open.draws == at).then_some(open)
    }

    /// A chunk in which `at` draws are made, and are as they were written; those behind them, or parts of them, will be made again.
    fn continued(&self, key: [usize; 3], at: usize, file: &Output) -> IoResult<Open> {
        let [tensor, chain, chunk] = key;
        let (start, length) = (
            self.draws.offset(tensor, chain),
            self.draws.chunk_bytes(tensor),
        );
        let mut all = vec![0; length + CHECKSUM];
        read_exact_at(file.file(), &mut all, start)?;
        let (all, stored) = all.split_at(length);
        // Its own checksum is right unless a process was killed in the middle of a draw, as long as draws are made again with the same bytes.
        let right = at == 0
            || checksum(all) == stored
            || self
                .flushed_draws(key, all)
                .is_some_and(|draws| draws >= at);
        if !right {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "its checksum is wrong: draws that were made before are damaged; restore it, or run again",
            ));
        }
        Ok(Open {
            chunk,
            draws: at,
            sum: crc32c::crc32c(all),
            first: crc32c::crc32c(&all[..at * self.draw_bytes(tensor)]),
        })
    }

    /// How many draws of a chunk were flushed before it was full and are as they were then, at most; none if nothing is known of it.
    pub(super) fn flushed_draws(
        &self,
        [tensor, chain, chunk]: [usize; 3],
        all: &[u8],
    ) -> Option<usize> {
        let known = self.flushed().get(&[tensor, chain])?.iter();
        let known = known.filter(|open| open.chunk == chunk);
        let right = known.filter(|open| {
            let first = all.get(..open.draws * self.draw_bytes(tensor));
            first.is_some_and(|first| crc32c::crc32c(first) == open.first)
        });
        right.map(|open| open.draws).max()
    }

    /// Write down what is there of chunks that are not full, where the run had ended and goes on: so many draws of each chain.
    pub fn go_on(&self, made: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        let mut least = None;
        for (chain, count) in made {
            least = Some(least.map_or(chain, |c: usize| c.min(chain)));
            for tensor in 0..self.draws.tensors.len() {
                let (chunk, at) = self.place(tensor, count);
                let path = self.path(tensor, chain, chunk);
                if at == 0 || !path.exists() {
                    continue;
                }
                let open = Output::open(&path)
                    .and_then(|file| self.continued([tensor, chain, chunk], at, &file))
                    .map_err(|e| cannot("read", &path, e))?;
                lock(&self.open).insert([tensor, chain], open);
            }
        }
        match least {
            // Each rank writes chains of its own, if it has any.
            Some(first) if lock(&self.open).is_empty() => self.write_flushed(first, &[]),
            Some(_) => self.note_flushed(),
            None => Ok(()),
        }
    }

    /// What was flushed by those who wrote before. Other ranks may have written to the same chains before these.
    fn flushed(&self) -> &BTreeMap<[usize; 2], Vec<Open>> {
        self.flushed.get_or_init(|| {
            let mut found: BTreeMap<_, Vec<Open>> = BTreeMap::new();
            for path in self.flushed_files() {
                let bytes = disk::read(&path).unwrap_or_default();
                for entry in decode::<u64>(&bytes).as_chunks::<5>().0 {
                    let [tensor, chain, chunk, draws, first] = entry.map(|n| n as usize);
                    let (first, sum) = (first as u32, 0);
                    let open = Open {
                        chunk,
                        draws,
                        sum,
                        first,
                    };
                    found.entry([tensor, chain]).or_default().push(open);
                }
            }
            found
        })
    }

    fn flushed_files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let entries = disk::entries(&self.root);
        let own = |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with(FLUSHED);
        entries.filter(own).map(|e| e.path())
    }

    /// Write down what is flushed of the chunks that are written to, and of those to which nothing was added yet.
    fn note_flushed(&self) -> Result<()> {
        let open = lock(&self.open);
        let before = self
            .flushed()
            .iter()
            .filter(|(key, _)| !open.contains_key(*key));
        let before = before.flat_map(|(key, all)| all.iter().map(move |open| (key, open)));
        let mut all = Vec::new();
        for ([tensor, chain], open) in before.chain(open.iter()) {
            let entry = [*tensor, *chain, open.chunk, open.draws, open.first as usize];
            all.extend(entry.map(|n| n as u64));
        }
        // Each rank writes chains of its own.
        let first = open.keys().map(|[_, chain]| *chain).min().unwrap_or(0);
        self.write_flushed(first, &all)
    }

    fn write_flushed(&self, first: usize, entries: &[u64]) -> Result<()> {
        let path = self.root.join(format!("{FLUSHED}{first}"));
        write_atomic(&path, &encode(entries))
    }

    /// Say that draws are made here, before there is anything else: nothing is flushed yet.
    pub fn begin(&self) -> Result<()> {
        match self.flushed_files().next() {
            Some(_) => Ok(()),
            None => self.write_flushed(0, &[]),
        }
    }

    /// Whether draws are still made, and none of a chunk was flushed so far: then its checksum means nothing.
    pub(super) fn is_not_flushed(&self, [tensor, chain, chunk]: [usize; 3]) -> bool {
        let known = self.flushed().get(&[tensor, chain]);
        let earlier = known.is_none_or(|all| all.iter().all(|open| open.chunk < chunk));
        earlier && self.is_growing()
    }

    /// Whether draws are still made, or will be once the run goes on.
    pub fn is_growing(&self) -> bool {
        self.flushed_files().next().is_some()
    }

    /// Make the file of a chain, with chunks without draws, if it is not there: a disk that is full is met here, before any of them is made.
    fn make(&self, tensor: usize, chain: usize, path: &Path) -> IoResult<()> {
        let mut there = lock(&self.there);
        if there.contains(path) {
            return Ok(());
        }
        access::write(path)?;
        // A killed process leaves one also where it had just made the file. Of one on another host nobody here knows whether it is at work.
        if !self.shared {
            temp_files::sweep(path);
        }
        if !path.exists() {
            disk::make_folders_unflushed(disk::folder(path))?;
            let (index, places) = self.draws.index(tensor, chain, &self.own);
            let numbers = self.draws.numbers(tensor) * self.draws.cut(tensor).draws;
            let mut empty = self.encoded(&vec![f32::NAN; numbers]);
            empty.extend(checksum(&empty));
            let temp = temp_files::name(path, "tmp", &temp_files::suffix());
            let made = Output::create(&temp).and_then(|file| {
                file.write_all_at(&index, 0)?;
                let mut places = places.iter();
                places.try_for_each(|at| file.write_all_at(&empty, *at))?;
                // Whatever has its final name is whole.
                file.flush_to_disk()
            });
            // Another rank may have made it in the meantime, and written to it.
            let linked = made.and_then(|()| match disk::link(&temp, path) {
                Err(_) if !path.exists() => disk::rename(&temp, path),
                _ => Ok(()),
            });
            temp_files::remove(&temp);
            linked?;
            lock(&self.written).entry(path.into()).or_default().new = true;
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
        for (path, Written { new, file }) in &written {
            let flushed = file
                .as_ref()
                .map_or_else(|| sync(path), |f| f.flush_to_disk());
            flushed.map_err(|e| cannot("write", path, e))?;
            // With the folders above it, which may be new as well.
            let above = path.ancestors().skip(1).filter(|_| *new);
            folders.extend(above.take_while(|f| f.starts_with(&self.root)));
        }
        for folder in folders {
            sync_folder(folder).map_err(|e| cannot("write", folder, e))?;
        }
        match written.is_empty() {
            true => Ok(()),
            false => self.note_flushed(),
        }
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
                read_exact_at(&file, &mut bytes, at)
                    .and_then(|()| self.file(tensor, chain, &path))
                    .and_then(|to| to.write_all_at(&bytes, self.draws.offset(tensor, chain)))
                    .map_err(|e| cannot("write", &path, e))?;
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
            let (file, mut entry) = (disk::open(&path)?, [0; 16]);
            read_exact_at(&file, &mut entry, self.draws.entry(tensor, chain))?;
            let at = self.draws.offset(tensor, chain);
            let has = Draws::has(entry);
            // Before as much memory is asked for as the metadata say.
            if has
                && file.metadata()?.len() < at + (self.draws.chunk_bytes(tensor) + CHECKSUM) as u64
            {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Ok(has.then_some((file, at)))
        };
        find().map_err(|e| cannot("read", &path, e))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
