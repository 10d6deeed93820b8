//! Weights as plain safetensors, the file that PyTorch's `safetensors.torch.load_file` reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, ensure};
use crc32fast::Hasher;
use safetensors::Dtype;

use super::tensors::{DataRef, Layout, Reader, TensorRef};
use super::{cannot, write_atomic, write_many};
use crate::error::Result;

/// A tensor that was read: its name, its shape, its numbers in row-major order.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// Named tensors as they are saved, and free-form metadata.
pub type Weights<'a> = (Vec<(String, Vec<usize>, &'a [f32])>, Vec<(String, String)>);

/// Writes named f32 tensors and free-form metadata to `path`, atomically.
///
/// The metadata entries "order" and "crc32" are taken: they keep the order of the tensors, and a checksum of all that is in the file.
pub fn save_weights(
    path: &Path,
    tensors: &[(String, Vec<usize>, &[f32])],
    metadata: &[(String, String)],
) -> Result<()> {
    if super::writes_nothing() {
        return Ok(());
    }
    write_atomic(path, &encode(path, tensors, metadata)?)
}

/// The same for many files of one folder, by name.
pub fn save_many<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (String, Weights<'a>)>,
) -> Result<()> {
    if super::writes_nothing() {
        return Ok(());
    }
    let encoded = |(name, (tensors, metadata)): (String, Weights)| {
        let bytes = encode(&folder.join(&name), &tensors, &metadata)?;
        Ok((name, bytes))
    };
    write_many(folder, files.into_iter().map(encoded))
}

/// The content of such a file.
fn encode(
    path: &Path,
    tensors: &[(String, Vec<usize>, &[f32])],
    metadata: &[(String, String)],
) -> Result<Vec<u8>> {
    let views: Vec<_> = tensors
        .iter()
        .map(|(name, shape, values)| {
            let (shape, data) = (shape.clone(), DataRef::F32(values));
            (name.clone(), TensorRef { shape, data })
        })
        .collect();
    let mut file = Vec::new();
    let given = metadata.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    Layout::checked(&views, metadata, &description(&given.collect())?)
        .and_then(|layout| Ok(layout.write(&mut file)?))
        .with_context(|| format!("cannot save weights to '{}'", path.display()))?;
    Ok(file)
}

/// What the checksum covers beside the tensors.
fn description(metadata: &BTreeMap<&str, &str>) -> Result<String> {
    Ok(serde_json::to_string(metadata)?)
}

/// Reads all tensors of a safetensors file, which must be f32, in the order they were saved.
///
/// # Errors
/// If one is of another type, or the file is not what was saved. Files of others have no checksum, and those of earlier versions.
pub fn load_weights(path: &Path) -> Result<Vec<NamedTensor>> {
    let file = super::open_regular(path).map_err(|e| cannot("read", path, e))?;
    read(file, path).with_context(|| format!("cannot load weights from '{}'", path.display()))
}

fn read(file: File, path: &Path) -> Result<Vec<NamedTensor>> {
    let reader = Reader::new(file, path).context("it is damaged or not a safetensors file")?;
    let mut out = Vec::with_capacity(reader.names.len());
    let mut take = |name: &str, hasher: &mut Hasher| {
        let info = reader.info(name)?;
        ensure!(
            info.dtype == Dtype::F32,
            "tensor '{name}' is {}, but only F32 can be loaded; convert it first (in PyTorch: tensor.float())",
            info.dtype
        );
        let values = reader.numbers(name, |piece| hasher.update(piece))?;
        out.push((name.to_string(), info.shape.clone(), values));
        Ok(())
    };
    if !reader.has_checksum() {
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
    let file = File::open(path).map_err(|e| cannot("read", path, e))?;
    let reader = Reader::new(file, path).context("it is damaged")?;
    match reader.has_checksum() {
        true => reader.check(&description(&reader.given())?, |name, hasher| {
            reader.pieces(name, |piece| hasher.update(piece))
        }),
        false => Ok(()),
    }
}
