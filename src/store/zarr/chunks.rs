//! The chunks of an array in files of their own.

use super::super::{cannot, disk};
use super::layout::Layout;
use super::{CHECKSUM, CRC32C, checksum};
use crate::error::Result;
use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

#[derive(Deserialize)]
struct Metadata {
    shape: Vec<usize>,
    chunk_grid: Value,
    codecs: Vec<Value>,
}

/// Fail if a chunk of an array is missing or damaged.
pub(super) fn check(folder: &Path, metadata: &Value) -> Result<()> {
    let metadata = Metadata::deserialize(metadata).context("its metadata is damaged")?;
    if metadata.shape.contains(&0) {
        return Ok(());
    }
    let chunk_shape = &metadata.chunk_grid["configuration"]["chunk_shape"];
    let chunk_shape = Vec::deserialize(chunk_shape).context("its chunk shape is damaged")?;
    let layout = Layout::parse(&metadata.shape, &chunk_shape)?;
    let checked = metadata.codecs.last().is_some_and(|c| c["name"] == CRC32C);
    for k in 0..layout.chunks() {
        let path = layout.path(folder, k);
        let bytes = disk::read(&path).map_err(|e| cannot("read", &path, e))?;
        let split = bytes.split_last_chunk::<CHECKSUM>();
        let right = split.is_some_and(|(content, stored)| checksum(content) == *stored);
        ensure!(
            right || !checked,
            "'{}' was cut off or damaged: its checksum is wrong",
            path.display()
        );
    }
    Ok(())
}
