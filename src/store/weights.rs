//! Weights as plain safetensors, the file that PyTorch's `safetensors.torch.load_file` reads.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use safetensors::Dtype;

use super::tensors::{Source, parse, serialize};
use super::{bytes, cannot, write_atomic};
use crate::error::Result;

/// A tensor that was read: its name, its shape, its numbers in row-major order.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// Writes named f32 tensors and free-form metadata to `path`, atomically.
///
/// The metadata entry "order" is taken: it keeps the order of the tensors.
pub fn save_weights(
    path: &Path,
    tensors: &[(String, Vec<usize>, &[f32])],
    metadata: &[(String, String)],
) -> Result<()> {
    let sources = tensors
        .iter()
        .map(|(name, shape, values)| {
            let source = Source {
                dtype: Dtype::F32,
                shape,
                elements: values.len(),
                encode: Box::new(move || bytes::encode(values)),
            };
            (name.as_str(), source)
        })
        .collect();
    let file = serialize(sources, metadata)
        .with_context(|| format!("cannot save weights to '{}'", path.display()))?;
    write_atomic(path, &file)
}

/// Reads all tensors of a safetensors file, which must be f32, in the order they were saved.
pub fn load_weights(path: &Path) -> Result<Vec<NamedTensor>> {
    let file = fs::read(path).map_err(|e| cannot("read", path, e))?;
    decode(&file).with_context(|| format!("cannot load weights from '{}'", path.display()))
}

fn decode(file: &[u8]) -> Result<Vec<NamedTensor>> {
    let parsed = parse(file).context("it is damaged or not a safetensors file")?;
    parsed
        .names
        .iter()
        .map(|name| {
            let tensor = parsed.tensors.tensor(name)?;
            ensure!(
                tensor.dtype() == Dtype::F32,
                "tensor '{name}' is {}, but only F32 can be loaded; convert it first (in PyTorch: tensor.float())",
                tensor.dtype()
            );
            let values = bytes::decode(tensor.data());
            Ok((name.clone(), tensor.shape().to_vec(), values))
        })
        .collect()
}
