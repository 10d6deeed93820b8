//! Weights as plain safetensors, the file that PyTorch's `safetensors.torch.load_file` reads.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, ensure};
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
/// The metadata entry "order" is taken: it keeps the order of the tensors.
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
    Layout::new(&views, metadata)
        .and_then(|layout| Ok(layout.write(&mut file)?))
        .with_context(|| format!("cannot save weights to '{}'", path.display()))?;
    Ok(file)
}

/// Reads all tensors of a safetensors file, which must be f32, in the order they were saved.
pub fn load_weights(path: &Path) -> Result<Vec<NamedTensor>> {
    let file = super::open_regular(path).map_err(|e| cannot("read", path, e))?;
    read(file, path).with_context(|| format!("cannot load weights from '{}'", path.display()))
}

fn read(file: File, path: &Path) -> Result<Vec<NamedTensor>> {
    let reader = Reader::new(file, path).context("it is damaged or not a safetensors file")?;
    let names = reader.names.iter();
    names
        .map(|name| {
            let info = reader.info(name)?;
            ensure!(
                info.dtype == Dtype::F32,
                "tensor '{name}' is {}, but only F32 can be loaded; convert it first (in PyTorch: tensor.float())",
                info.dtype
            );
            let values = reader.numbers(name, |_| ())?;
            Ok((name.clone(), info.shape.clone(), values))
        })
        .collect()
}
