//! The chunks of an array in files of their own.

use super::super::{cannot, disk};
use super::layout::Layout;
use super::{CHECKSUM, CRC32C, checksum};
use crate::error::Result;
use anyhow::{Context, bail};
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
    let mut paths = (0..layout.chunks()).map(|k| layout.path(folder, k));
    paths.try_for_each(|path| read(&path, &metadata.codecs).map(drop))
}

/// The numbers of a coordinate, which has one chunk, as bytes.
pub(super) fn coordinate(folder: &Path, metadata: &Value) -> Result<Vec<u8>> {
    let codecs = metadata["codecs"].as_array();
    read(&folder.join("c/0"), codecs.map_or(&[], Vec::as_slice))
}

/// The content of a chunk without its checksum, if it has one.
fn read(path: &Path, codecs: &[Value]) -> Result<Vec<u8>> {
    let mut bytes = disk::read(path).map_err(|e| cannot("read", path, e))?;
    if codecs.last().is_some_and(|c| c["name"] == CRC32C) {
        let split = bytes.split_last_chunk::<CHECKSUM>();
        let right = split.filter(|(content, stored)| checksum(content) == **stored);
        let Some((content, _)) = right else {
            bail!(
                "'{}' was cut off or damaged: its checksum is wrong",
                path.display()
            )
        };
        bytes.truncate(content.len());
    }
    Ok(bytes)
}
