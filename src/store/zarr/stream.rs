//! Arrays `[chain, draw, …]` that are written draw by draw, while a run goes on.
//!
//! The metadata stands from the beginning, with the final shape, and a chunk holds consecutive draws of one chain: so a draw is one write into
//! one file per array, nothing of it is held in memory, and what is not written yet is NaN to every reader. Chunks have no checksum: they would
//! have to be read again for that.

use super::super::bytes::{decode, encode};
use super::super::{cannot, sync, sync_folder, temp_files, write_atomic};
use super::{METADATA, array_metadata, is_plain, little_endian};
use crate::error::Result;
use anyhow::{Context, ensure};
use half::f16;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bytes of a chunk at most, if a single draw is not larger.
const CHUNK_BYTES: usize = 4 << 20;

/// What is written: an array `[chain, draw, …]` per tensor, with a dimension `temperature` behind the draws where there are several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    /// Chains per temperature.
    pub chains: usize,
    /// How many temperatures; none if there is no such dimension.
    pub temperatures: Option<usize>,
    /// After which steps the draws are made: on disk the coordinate `step`.
    #[serde(skip)]
    pub steps: Vec<u64>,
    /// Names and shapes of the tensors.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// Whether they are kept in half precision.
    pub half: bool,
}

impl Draws {
    /// Bytes of one number.
    fn size(&self) -> usize {
        if self.half { 2 } else { 4 }
    }

    /// Numbers of a tensor.
    fn numbers(&self, tensor: usize) -> usize {
        self.tensors[tensor].1.iter().product()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u128 {
        let numbers: usize = (0..self.tensors.len()).map(|t| self.numbers(t)).sum();
        let chains = self.chains * self.temperatures.unwrap_or(1);
        (self.size() * numbers) as u128 * chains as u128 * self.steps.len() as u128
    }

    /// Draws in a chunk.
    fn per_chunk(&self, tensor: usize) -> usize {
        let draw = (self.numbers(tensor) * self.size()).max(1);
        (CHUNK_BYTES / draw).clamp(1, self.steps.len().max(1))
    }

    /// Fail if the tensors cannot be arrays beside the coordinates.
    pub fn check(&self) -> Result<()> {
        for (name, _) in &self.tensors {
            ensure!(
                is_plain(name) && !["chain", "draw", "temperature", "step"].contains(&&**name),
                "the tensor '{name}' cannot be kept: an array of draws cannot have this name"
            );
        }
        Ok(())
    }

    /// Dimensions and shapes, of the array and of a chunk.
    fn layout(&self, tensor: usize) -> (Vec<String>, Vec<usize>, Vec<usize>) {
        let (name, shape) = &self.tensors[tensor];
        let mut dims = vec!["chain".to_string(), "draw".to_string()];
        let mut lengths = vec![self.chains, self.steps.len()];
        let mut chunk = vec![1, self.per_chunk(tensor)];
        if let Some(count) = self.temperatures {
            dims.push("temperature".into());
            lengths.push(count);
            chunk.push(1);
        }
        for (i, length) in shape.iter().enumerate() {
            dims.push(format!("{name}_dim_{i}"));
            lengths.push(*length);
            chunk.push((*length).max(1));
        }
        (dims, lengths, chunk)
    }
}

/// Draws on disk.
#[derive(Debug)]
pub struct Stream {
    root: PathBuf,
    draws: Draws,
    /// Chunks that are not flushed yet, and whether they are new.
    written: Mutex<BTreeMap<PathBuf, bool>>,
}

impl Stream {
    /// Draws that are written to the folder `root`, or already there.
    pub fn new(root: PathBuf, draws: Draws) -> Self {
        let written = Mutex::default();
        Self {
            root,
            draws,
            written,
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
    fn path(&self, tensor: usize, chain: usize, chunk: usize) -> PathBuf {
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
            let metadata = array((data_type, json!("NaN")), &dims, &shape, &chunk);
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
        self.array(name, array(kind, &[dim.to_string()], &shape, &shape), nodes)
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
        let write = || -> std::io::Result<()> {
            let mut file = match at {
                0 => self.begin(tensor, &path)?,
                _ => File::options().write(true).open(&path)?,
            };
            file.seek(SeekFrom::Start((at * bytes.len()) as u64))?;
            file.write_all(&bytes)
        };
        write().map_err(|e| cannot("write", &path, e))?;
        self.note(path, at == 0);
        Ok(())
    }

    fn note(&self, path: PathBuf, new: bool) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written.entry(path).or_default() |= new;
    }

    /// A chunk without draws: a disk that is full is met here, before any of them is made.
    fn begin(&self, tensor: usize, path: &Path) -> std::io::Result<File> {
        std::fs::create_dir_all(temp_files::folder(path))?;
        let numbers = self.draws.numbers(tensor) * self.draws.per_chunk(tensor);
        let mut file = File::create(path)?;
        file.write_all(&self.encoded(&vec![f32::NAN; numbers]))?;
        Ok(file)
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
    fn place(&self, tensor: usize, k: usize) -> (usize, usize) {
        let per = self.draws.per_chunk(tensor);
        (k / per, k % per)
    }

    /// Flush what was written to the disk.
    pub fn sync(&self) -> Result<()> {
        let written = {
            let mut all = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *all)
        };
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

    /// A tensor of the `k`-th draw of a chain; NaN if it was never made.
    pub fn read(&self, tensor: usize, chain: usize, k: usize) -> Result<Vec<f32>> {
        let numbers = self.draws.numbers(tensor);
        let (chunk, at) = self.place(tensor, k);
        let path = self.path(tensor, chain, chunk);
        if !path.exists() {
            return Ok(vec![f32::NAN; numbers]);
        }
        let mut bytes = vec![0; numbers * self.draws.size()];
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start((at * bytes.len()) as u64))?;
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|e| cannot("read", &path, e))?;
        Ok(match self.draws.half {
            true => {
                let halves = bytes.as_chunks::<2>().0.iter();
                halves.map(|b| f16::from_le_bytes(*b).to_f32()).collect()
            }
            false => decode(&bytes),
        })
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

/// The metadata of an array of numbers without a checksum.
fn array(kind: (&str, Value), dims: &[String], shape: &[usize], chunk: &[usize]) -> Value {
    let chunk: Vec<_> = chunk.iter().map(|n| *n.max(&1)).collect();
    array_metadata(kind, dims, (shape, &chunk), &[little_endian()], &Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(name: &str, half: bool) -> Stream {
        let root = std::env::temp_dir().join(format!("ergodic-{name}-{}", std::process::id()));
        let draws = Draws {
            chains: 2,
            temperatures: Some(2),
            steps: vec![10, 20, 30],
            // The second has a chunk per draw.
            tensors: vec![
                ("w".into(), vec![2, 2]),
                ("big".into(), vec![CHUNK_BYTES / 2]),
            ],
            half,
        };
        Stream::new(root, draws)
    }

    #[test]
    fn draws_come_back_and_what_was_not_made_is_nan() {
        for half in [false, true] {
            let s = stream("stream", half);
            s.describe(&[1.0, 2.0]).unwrap();
            s.write(0, 3, 0, &[1.0, 2.0, 3.0, 4.0]).unwrap();
            s.write(0, 3, 2, &[0.5; 4]).unwrap();
            s.write(1, 0, 1, &vec![-1.0; CHUNK_BYTES / 2]).unwrap();
            s.sync().unwrap();
            let other = Stream::open(&s.root).unwrap();
            assert_eq!(other.draws, s.draws);
            assert_eq!(other.read(0, 3, 0).unwrap(), [1.0, 2.0, 3.0, 4.0]);
            assert_eq!(other.read(0, 3, 2).unwrap(), [0.5; 4]);
            assert!(other.read(0, 3, 1).unwrap().iter().all(|x| x.is_nan()));
            assert!(other.read(0, 0, 0).unwrap().iter().all(|x| x.is_nan()));
            assert_eq!(other.read(1, 0, 1).unwrap()[7], -1.0);
            assert!(s.root.join("big/c/0/1/0/0").exists());
            std::fs::remove_dir_all(&s.root).unwrap();
        }
    }

    #[test]
    fn a_tensor_with_the_name_of_a_coordinate_is_refused() {
        let mut s = stream("names", false);
        assert!(s.draws.check().is_ok());
        s.draws.tensors[0].0 = "step".into();
        assert!(s.draws.check().is_err());
    }
}
