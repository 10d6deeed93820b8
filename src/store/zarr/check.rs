//! Whether a tree is as it was written. Whatever is missing, cut off or damaged is an error that names the file.

use super::super::{cannot, disk, read_json};
use super::layout::Layout;
use super::stream::Stream;
use super::{CHECKSUM, CRC32C, METADATA, checksum, standing};
use crate::error::Result;
use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// Fail if a chunk of the tree in the folder `root` is missing or damaged. Trees of earlier versions have no checksums: their files have to be there.
pub fn check(root: &Path) -> Result<()> {
    let folder = standing(root);
    let metadata: Root = read_json(&folder.join(METADATA))?;
    if metadata.attributes.contains_key("draws") {
        return Stream::open(&folder)?.check();
    }
    for (path, node) in &metadata.consolidated_metadata.metadata {
        if node["node_type"] == "array" {
            array(&folder.join(path), node)
                .with_context(|| format!("array '{path}'"))
                .with_context(|| {
                    format!(
                        "cannot read the trace '{}'; restore it or run again",
                        root.display()
                    )
                })?;
        }
    }
    Ok(())
}

/// The root's metadata, which lists all groups and arrays below.
#[derive(Deserialize)]
struct Root {
    #[serde(default)]
    attributes: Map<String, Value>,
    consolidated_metadata: Consolidated,
}

#[derive(Deserialize)]
struct Consolidated {
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct Metadata {
    shape: Vec<usize>,
    chunk_grid: Value,
    codecs: Vec<Value>,
}

fn array(folder: &Path, metadata: &Value) -> Result<()> {
    let metadata = Metadata::deserialize(metadata).context("its metadata is damaged")?;
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
