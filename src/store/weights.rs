//! Weights as plain safetensors, the file that PyTorch's `safetensors.torch.load_file` reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, bail};
use crc32fast::Hasher;
use half::{bf16, f16};
use safetensors::Dtype;

use super::tensors::{DataRef, Layout, Reader, TensorRef};
use super::{cannot, write_through};
use crate::error::Result;

/// A tensor that was read: its name, its shape, its numbers in row-major order.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// A tensor whose rows lie apart: its name, its shape, its rows.
pub type Stack<'a> = (String, Vec<usize>, Vec<&'a [f32]>);

/// What a file of weights has.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Found {
    /// Tensors of floats, in the order of the file.
    pub tensors: Vec<NamedTensor>,
    /// What it has besides, each with what it is.
    pub others: Vec<(String, String)>,
}

impl Found {
    /// Take note of something that cannot be parameters.
    pub(super) fn left_out(&mut self, name: &str, kind: &str) {
        self.others.push((name.into(), kind.into()));
    }
}

/// Numbers in single precision.
///
/// # Errors
/// If one is too large for it.
pub(super) fn single(numbers: Vec<f64>) -> Result<Vec<f32>> {
    let large = |x: &&f64| x.is_finite() && !(**x as f32).is_finite();
    if let Some(x) = numbers.iter().find(large) {
        bail!("{x:e} is too large for single precision");
    }
    Ok(numbers.into_iter().map(|x| x as f32).collect())
}

/// Writes named f32 tensors and free-form metadata to `path`, atomically.
///
/// The metadata entries "order" and "crc32" are taken: they keep the order of the tensors, and a checksum of all that is in the file.
pub fn save_weights(
    path: &Path,
    tensors: &[(String, Vec<usize>, &[f32])],
    metadata: &[(String, String)],
) -> Result<()> {
    save(path, tensors, |values| DataRef::F32(values), metadata)
}

/// Writes f32 tensors whose rows lie apart, and free-form metadata, to `path`, atomically.
pub fn save_stacks(path: &Path, stacks: &[Stack<'_>], metadata: &[(String, String)]) -> Result<()> {
    save(path, stacks, |rows| DataRef::Rows(rows), metadata)
}

fn save<'a, T>(
    path: &Path,
    tensors: &'a [(String, Vec<usize>, T)],
    data: impl Fn(&'a T) -> DataRef<'a>,
    metadata: &[(String, String)],
) -> Result<()> {
    if super::writes_nothing() {
        return Ok(());
    }
    let tensor = |(name, shape, values): &'a (String, Vec<usize>, T)| {
        (name.clone(), TensorRef::new(shape.clone(), data(values)))
    };
    let tensors: Vec<_> = tensors.iter().map(tensor).collect();
    let given = metadata.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    let layout = Layout::checked(&tensors, metadata, &description(&given.collect())?)
        .with_context(|| format!("cannot save weights to '{}'", path.display()))?;
    write_through(path, |out| layout.write(out))
}

/// What the checksum covers beside the tensors.
fn description(metadata: &BTreeMap<&str, &str>) -> Result<String> {
    Ok(serde_json::to_string(metadata)?)
}

/// Reads all tensors of a safetensors file in the order they were saved.
///
/// # Errors
/// If the file is not what was saved. Files of others have no checksum, and those of earlier versions.
pub fn load_weights(path: &Path) -> Result<Found> {
    let file = super::disk::open(path).map_err(|e| cannot("read", path, e))?;
    read(file, path).with_context(|| format!("cannot load weights from '{}'", path.display()))
}

/// The same of an open file; its errors do not name it.
pub(super) fn read(file: File, path: &Path) -> Result<Found> {
    let reader = Reader::new(file, path).context("it is damaged or not a safetensors file")?;
    let mut out = Found::default();
    let mut take = |name: &str, hasher: &mut Hasher| {
        let info = reader.info(name)?;
        let watch = |piece: &[u8]| hasher.update(piece);
        let half = |x: Vec<f16>| x.into_iter().map(f16::to_f32).collect();
        let brain = |x: Vec<bf16>| x.into_iter().map(bf16::to_f32).collect();
        let values = match info.dtype {
            Dtype::F32 => reader.numbers(name, watch)?,
            Dtype::F64 => {
                single(reader.numbers(name, watch)?).with_context(|| format!("tensor '{name}'"))?
            }
            Dtype::F16 => half(reader.numbers(name, watch)?),
            Dtype::BF16 => brain(reader.numbers(name, watch)?),
            other => {
                out.left_out(name, &other.to_string());
                return reader.pieces(name, watch);
            }
        };
        out.tensors
            .push((name.to_string(), info.shape.clone(), values));
        Ok(())
    };
    if reader.checksum().is_none() {
        let mut unused = Hasher::new();
        reader
            .names
            .iter()
            .try_for_each(|name| take(name, &mut unused))?;
        return Ok(out);
    }
    reader.check(&description(&reader.given())?, take).context(
        "it is damaged: restore it, or delete it and run again; if another program has changed it, it must leave out the metadata entry 'crc32'",
    )?;
    Ok(out)
}

/// Whether a file of weights is what was saved; one without a checksum passes if its lengths fit.
pub fn check_weights(path: &Path) -> Result<()> {
    let file = super::disk::open(path).map_err(|e| cannot("read", path, e))?;
    let reader = Reader::new(file, path).context("it is damaged")?;
    match reader.checksum() {
        Some(_) => reader.check(&description(&reader.given())?, |name, hasher| {
            reader.pieces(name, |piece| hasher.update(piece))
        }),
        None => Ok(()),
    }
}
