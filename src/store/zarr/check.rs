//! Whether a tree is as it was written. Whatever is missing, cut off or damaged is an error that names the file.

use super::super::read_json;
use super::chunks;
use super::stream::Stream;
use super::{METADATA, SHARDING, standing};
use crate::error::Result;
use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// Fail if a chunk of the tree in the folder `root` is missing or damaged. Trees of earlier versions have no checksums: their files have to be there.
pub fn check(root: &Path) -> Result<()> {
    let folder = standing(root);
    let metadata: Root = read_json(&folder.join(METADATA))?;
    for (path, metadata) in &metadata.consolidated_metadata.metadata {
        node(&folder.join(path), metadata).with_context(|| {
            format!("cannot read '{}'; restore it or run again", root.display())
        })?;
    }
    match metadata.attributes.contains_key("draws") {
        true => Stream::open(&folder)?.check(),
        false => Ok(()),
    }
}

/// Fail if a group or an array is not what the root says of it, which other programs need not read.
fn node(folder: &Path, metadata: &Value) -> Result<()> {
    let path = folder.join(METADATA);
    let own: Value = read_json(&path)?;
    ensure!(
        own == *metadata,
        "'{}' was damaged: it is not what the metadata of the whole tree says",
        path.display()
    );
    // The shards of draws are checked one by one.
    match metadata["node_type"] == "array" && metadata["codecs"][0]["name"] != SHARDING {
        true => {
            chunks::check(folder, metadata).with_context(|| format!("array '{}'", folder.display()))
        }
        false => Ok(()),
    }
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
