//! Files to a tree. Whatever is missing, cut off or not as [`super::write`] makes it is an error that names the file.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::bytes::{Element, decode};
use super::super::{cannot, read_json};
use super::layout::Layout;
use super::write::check;
use super::{Array, CHECKSUM, CRC32C, Data, Group, METADATA, checksum, is_plain, standing};
use crate::error::Result;

/// Reads the tree in the folder `root`.
pub fn read(root: &Path) -> Result<Group> {
    let folder = standing(root);
    let metadata: Root = read_json(&folder.join(METADATA))?;
    let reader = Reader {
        root: &folder,
        nodes: metadata.consolidated_metadata.metadata,
    };
    reader
        .group(
            "",
            root.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            metadata.group,
        )
        .and_then(|(group, found)| {
            ensure!(
                found == reader.nodes.len(),
                "its metadata lists arrays outside of its groups"
            );
            check(&group, "").map(|()| group)
        })
        .with_context(|| {
            format!(
                "cannot read the trace '{}'; restore it or run again",
                root.display()
            )
        })
}

/// The root's metadata, which lists all groups and arrays below in their order.
#[derive(Deserialize)]
struct Root {
    #[serde(flatten)]
    group: GroupMetadata,
    consolidated_metadata: Consolidated,
}

#[derive(Deserialize)]
struct Consolidated {
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct GroupMetadata {
    zarr_format: u64,
    node_type: String,
    attributes: Map<String, Value>,
}

#[derive(Deserialize)]
struct ArrayMetadata {
    zarr_format: u64,
    shape: Vec<usize>,
    data_type: String,
    chunk_grid: Value,
    codecs: Vec<Value>,
    attributes: Map<String, Value>,
    dimension_names: Vec<String>,
}

struct Reader<'a> {
    root: &'a Path,
    nodes: Map<String, Value>,
}

impl Reader<'_> {
    /// The group at `path` ("" or ending in a slash), and how many groups and arrays are below it.
    fn group(&self, path: &str, name: String, metadata: GroupMetadata) -> Result<(Group, usize)> {
        ensure!(
            metadata.zarr_format == 3 && metadata.node_type == "group",
            "'{path}' is not a Zarr v3 group"
        );
        let mut group = Group {
            attributes: metadata.attributes,
            ..Group::new(&name)
        };
        let mut found = 0;
        for (key, value) in &self.nodes {
            let Some(child) = key.strip_prefix(path).filter(|rest| !rest.contains('/')) else {
                continue;
            };
            ensure!(
                is_plain(child),
                "'{key}' cannot be the name of an array or a group"
            );
            found += 1;
            if value["node_type"] == "array" {
                let array = self.array(key, child, value);
                group
                    .arrays
                    .push(array.with_context(|| format!("array '{key}'"))?);
            } else {
                let metadata = GroupMetadata::deserialize(value)
                    .with_context(|| format!("the metadata of group '{key}' is damaged"))?;
                let (child, below) = self.group(&format!("{key}/"), child.into(), metadata)?;
                group.groups.push(child);
                found += below;
            }
        }
        Ok((group, found))
    }

    fn array(&self, path: &str, name: &str, metadata: &Value) -> Result<Array> {
        let metadata = ArrayMetadata::deserialize(metadata).context("its metadata is damaged")?;
        let shape = metadata.shape;
        ensure!(metadata.zarr_format == 3, "it is not a Zarr v3 array");
        ensure!(
            metadata.dimension_names.len() == shape.len(),
            "it has dimensions {:?} but shape {shape:?}",
            metadata.dimension_names
        );
        let chunk_shape = &metadata.chunk_grid["configuration"]["chunk_shape"];
        let chunk_shape = Vec::deserialize(chunk_shape).context("its chunk shape is damaged")?;
        let layout = Layout::parse(&shape, &chunk_shape)?;
        let folder = self.root.join(path);
        // Traces of earlier versions have no checksum.
        let (codecs, checked) = match &metadata.codecs[..] {
            [before @ .., last] if last["name"] == CRC32C => (before, true),
            all => (all, false),
        };
        let codec = match codecs {
            [codec] if codec["configuration"]["endian"] == "big" => "big-endian bytes",
            [codec] => codec["name"].as_str().unwrap_or_default(),
            _ => "several",
        };
        let chunks = Chunks {
            folder: &folder,
            layout,
            checked,
        };
        let data = match (metadata.data_type.as_str(), codec) {
            ("float64", "bytes") => Data::F64(chunks.numbers()?),
            ("float32", "bytes") => Data::F32(chunks.numbers()?),
            ("int64", "bytes") => Data::I64(chunks.numbers()?),
            ("string", "vlen-utf8") => Data::Str(chunks.texts()?),
            (data_type, codec) => {
                bail!(
                    "ergodic reads only traces it wrote, not type '{data_type}' with codec '{codec}'"
                )
            }
        };
        Ok(Array {
            name: name.into(),
            dims: metadata.dimension_names,
            shape,
            data,
            attributes: metadata.attributes,
        })
    }
}

/// The chunks of an array on disk.
struct Chunks<'a> {
    folder: &'a Path,
    layout: Layout,
    /// Whether they have checksums.
    checked: bool,
}

impl Chunks<'_> {
    /// The values of an array of numbers.
    fn numbers<T: Element>(&self) -> Result<Vec<T>> {
        let layout = &self.layout;
        let added = if self.checked { CHECKSUM } else { 0 };
        let expected = layout.chunk_elements() * T::SIZE + added;
        // All sizes first: a damaged shape must not make us ask for more memory than the files can fill.
        for k in 0..layout.chunks() {
            let path = layout.path(self.folder, k);
            let size = fs::metadata(&path)
                .map_err(|e| cannot("read", &path, e))?
                .len();
            ensure!(
                size == expected as u64,
                "'{}' has {size} bytes but should have {expected}; it was cut off or damaged",
                path.display()
            );
        }
        let mut values = vec![T::FILL; layout.elements()];
        for k in 0..layout.chunks() {
            let bytes = self.chunk(k)?;
            ensure!(
                bytes.len() + added == expected,
                "'{}' changed while it was read",
                layout.path(self.folder, k).display()
            );
            layout.scatter(&mut values, k, &decode(&bytes));
        }
        Ok(values)
    }

    /// The values of an array of texts, which is one chunk.
    fn texts(&self) -> Result<Vec<String>> {
        let layout = &self.layout;
        if layout.chunks() == 0 {
            return Ok(Vec::new());
        }
        ensure!(layout.chunks() == 1, "texts in several chunks are not read");
        let path = layout.path(self.folder, 0);
        let bytes = self.chunk(0)?;
        let texts = decode_texts(&bytes)
            .with_context(|| format!("'{}' was cut off or damaged", path.display()))?;
        ensure!(
            texts.len() == layout.elements(),
            "'{}' has {} texts but should have {}",
            path.display(),
            texts.len(),
            layout.elements()
        );
        Ok(texts)
    }

    /// The bytes of a chunk, whose checksum is right.
    fn chunk(&self, k: usize) -> Result<Vec<u8>> {
        let path = self.layout.path(self.folder, k);
        let mut bytes = fs::read(&path).map_err(|e| cannot("read", &path, e))?;
        if self.checked {
            let split = bytes.split_last_chunk::<CHECKSUM>();
            let right = split.filter(|(content, stored)| checksum(content) == **stored);
            let (content, _) = right.with_context(|| {
                format!(
                    "'{}' was cut off or damaged: its checksum is wrong",
                    path.display()
                )
            })?;
            bytes.truncate(content.len());
        }
        Ok(bytes)
    }
}

/// The count, then each text after its length in bytes. `None` when the bytes do not fit that.
fn decode_texts(bytes: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = bytes.split_first_chunk::<4>()?;
    let mut texts = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let (text, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        texts.push(str::from_utf8(text).ok()?.to_owned());
        rest = tail;
    }
    rest.is_empty().then_some(texts)
}
