//! Checkpoints: safetensors with a checksum, in two generations.
//!
//! The folder holds `current.safetensors` and `previous.safetensors`. Saving writes the new one aside and flushes it,
//! then renames current to previous and the new one to current, so at every instant one of the two names is a valid
//! checkpoint. Loading takes current if its checksum is right and previous otherwise.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::Value;

use super::tensors::{Parsed, Source, parse, replace_metadata, serialize};
use super::{aside, bytes, cannot, sync, sync_folder, write_new};
use crate::error::Result;

const CURRENT: &str = "current.safetensors";
const PREVIOUS: &str = "previous.safetensors";
const META: &str = "meta";
const CRC32: &str = "crc32";

/// The state of a run: a description and named tensors.
///
/// Numbers that must come back bit for bit belong in the tensors: JSON has no NaN, and its parser may be off by one bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Anything that JSON can say.
    pub meta: Value,
    /// Named tensors; names differ.
    pub tensors: Vec<(String, Tensor)>,
}

/// Numbers with a shape, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Lengths of the axes; their product is the length of the data.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: TensorData,
}

/// The numbers of a [`Tensor`].
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Unsigned, for random number generators and counters.
    U64(Vec<u64>),
    /// Signed.
    I64(Vec<i64>),
}

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

/// Saves a new generation in `dir`, which is created if need be.
pub fn save(dir: &Path, checkpoint: &Checkpoint) -> Result<()> {
    let (current, previous) = (dir.join(CURRENT), dir.join(PREVIOUS));
    let file = encode(checkpoint)
        .with_context(|| format!("cannot save a checkpoint to '{}'", dir.display()))?;
    fs::create_dir_all(dir).map_err(|e| cannot("create", dir, e))?;
    aside::sweep(&current);
    // A damaged current must not replace a good previous one: then the new file alone takes its place.
    let keep = fs::read(&current).is_ok_and(|bytes| verify(&bytes).is_ok());
    let temp = aside::name(&current, "tmp", &aside::suffix());
    let written = write_new(&temp, &file)
        .and_then(|()| sync(&temp))
        .and_then(|()| {
            if keep {
                fs::rename(&current, &previous)?;
                sync_folder(dir)?;
            }
            fs::rename(&temp, &current)?;
            sync_folder(dir)
        });
    if written.is_err() {
        aside::remove(&temp);
    }
    written.map_err(|e| cannot("write", &current, e))
}

/// Loads the newest valid generation in `dir`: `None` when there is no checkpoint, an error when none is valid.
pub fn load(dir: &Path) -> Result<Option<(Checkpoint, Generation)>> {
    let current = match load_one(&dir.join(CURRENT)) {
        Ok(Some(checkpoint)) => return Ok(Some((checkpoint, Generation::Current))),
        other => other,
    };
    let previous = load_one(&dir.join(PREVIOUS));
    if let (Ok(None), Ok(None)) = (&current, &previous) {
        return Ok(None);
    }
    let reason = why(CURRENT, &current);
    match previous {
        Ok(Some(checkpoint)) => Ok(Some((checkpoint, Generation::Previous { reason }))),
        unusable => bail!(
            "no valid checkpoint in '{}': {reason}; {}; restore one from a backup or delete the folder to start afresh",
            dir.display(),
            why(PREVIOUS, &unusable)
        ),
    }
}

/// Why a generation is not used.
fn why(name: &str, outcome: &Result<Option<Checkpoint>>) -> String {
    match outcome {
        Err(e) => format!("{name} is damaged ({e:#})"),
        Ok(_) => format!("{name} is missing"),
    }
}

/// One generation; `None` when there is no such file.
fn load_one(path: &Path) -> Result<Option<Checkpoint>> {
    match fs::read(path) {
        Ok(bytes) => decode(&bytes).map(Some),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(cannot("read", path, e)),
    }
}

/// The file of a checkpoint. The checksum is taken from the finished bytes, so that numbers are converted only once.
fn encode(checkpoint: &Checkpoint) -> Result<Vec<u8>> {
    let sources = checkpoint.tensors.iter();
    let sources = sources.map(|(name, tensor)| (name.as_str(), source(tensor)));
    let metadata = [
        (META.to_string(), serde_json::to_string(&checkpoint.meta)?),
        (CRC32.to_string(), digits(0)),
    ];
    let mut file = serialize(sources.collect(), &metadata)?;
    let sum = checksum(&parse(&file)?)?;
    replace_metadata(&mut file, CRC32, &digits(sum))?;
    Ok(file)
}

/// The checkpoint in a file.
fn decode(file: &[u8]) -> Result<Checkpoint> {
    let parsed = verify(file)?;
    let mut tensors = Vec::with_capacity(parsed.names.len());
    for name in &parsed.names {
        let tensor = tensor(&parsed.tensors.tensor(name)?)
            .with_context(|| format!("tensor '{name}' cannot be read"))?;
        tensors.push((name.clone(), tensor));
    }
    let meta = serde_json::from_str(&parsed.metadata[META])?;
    Ok(Checkpoint { meta, tensors })
}

/// Parses a file and compares its checksum.
fn verify(file: &[u8]) -> Result<Parsed<'_>> {
    let parsed = parse(file)?;
    let stored = parsed.metadata.get(CRC32).context("it has no checksum")?;
    let actual = digits(checksum(&parsed)?);
    ensure!(
        *stored == actual,
        "its checksum is {actual} but should be {stored}"
    );
    Ok(parsed)
}

/// The checksum over the description and, for each tensor in order, its name, type, shape and bytes.
fn checksum(parsed: &Parsed<'_>) -> Result<u32> {
    let meta = parsed.metadata.get(META).context("it has no description")?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(meta.as_bytes());
    for name in &parsed.names {
        let tensor = parsed.tensors.tensor(name)?;
        // The separators keep a byte from moving between two neighbours unnoticed.
        let head = format!("\0{name}\0{}\0{:?}\0", tensor.dtype(), tensor.shape());
        hasher.update(head.as_bytes());
        hasher.update(tensor.data());
    }
    Ok(hasher.finalize())
}

/// A checksum as text of fixed length.
fn digits(sum: u32) -> String {
    format!("{sum:08x}")
}

fn source(tensor: &Tensor) -> Source<'_> {
    let (dtype, elements, encode): (_, _, Box<dyn Fn() -> Vec<u8>>) = match &tensor.data {
        TensorData::F32(v) => (Dtype::F32, v.len(), Box::new(|| bytes::encode(v))),
        TensorData::F64(v) => (Dtype::F64, v.len(), Box::new(|| bytes::encode(v))),
        TensorData::U64(v) => (Dtype::U64, v.len(), Box::new(|| bytes::encode(v))),
        TensorData::I64(v) => (Dtype::I64, v.len(), Box::new(|| bytes::encode(v))),
    };
    Source {
        dtype,
        shape: &tensor.shape,
        elements,
        encode,
    }
}

fn tensor(view: &TensorView<'_>) -> Result<Tensor> {
    let data = match view.dtype() {
        Dtype::F32 => TensorData::F32(bytes::decode(view.data())),
        Dtype::F64 => TensorData::F64(bytes::decode(view.data())),
        Dtype::U64 => TensorData::U64(bytes::decode(view.data())),
        Dtype::I64 => TensorData::I64(bytes::decode(view.data())),
        other => bail!("its type {other} is not one that checkpoints have"),
    };
    let shape = view.shape().to_vec();
    Ok(Tensor { shape, data })
}
