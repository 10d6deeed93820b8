//! The trace as a Zarr v3 group: what `xarray.open_datatree(path, engine="zarr")` and ArviZ open without a warning.
//!
//! Only what a trace needs: raw little-endian chunks without compression and with a checksum (codec `crc32c`), one chunk per array (several along the draws
//! when an array is large), named dimensions, and the metadata of the whole tree consolidated in the root. An array whose
//! name equals a dimension is the coordinate of that dimension.
//!
//! | file              | subject                                      |
//! |-------------------|----------------------------------------------|
//! | `zarr/layout.rs`  | how an array is cut into chunks              |
//! | `zarr/write.rs`   | a tree to files, swapped in as a whole       |
//! | `zarr/check.rs`   | whether a tree is as it was written          |
//! | `zarr/chunks.rs`  | whether the chunks of an array are whole     |
//! | `zarr/draws.rs`   | which arrays of draws there are              |
//! | `zarr/stream.rs`  | writing them while a run goes on             |
//! | `zarr/reader.rs`  | reading them one after the other             |

mod check;
mod chunks;
mod draws;
mod layout;
mod reader;
mod stream;
mod write;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::temp_files;

pub use check::check;
pub use draws::Draws;
pub use reader::Reader;
pub use stream::Stream;
pub use write::write;
#[cfg(test)]
pub(super) use write::write_chunked;

/// The metadata file of a group or an array.
const METADATA: &str = "zarr.json";

/// A group: attributes, arrays and groups within.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The folder's name; the root's is taken from the path and ignored when writing.
    pub name: String,
    /// Anything that JSON can say.
    pub attributes: Map<String, Value>,
    /// Arrays; names differ, and dimensions of one name have one length.
    pub arrays: Vec<Array>,
    /// Groups within.
    pub groups: Vec<Group>,
}

/// An array with named dimensions, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The folder's name.
    pub name: String,
    /// One name per axis, for example `["chain", "draw"]`.
    pub dims: Vec<String>,
    /// One length per axis; their product is the length of the data.
    pub shape: Vec<usize>,
    /// The values.
    pub data: Data,
    /// Anything that JSON can say, for example a unit or a description.
    pub attributes: Map<String, Value>,
}

/// The values of an [`Array`].
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Double precision.
    F64(Vec<f64>),
    /// Integers.
    I64(Vec<i64>),
    /// Text, for the names of layers and the like.
    Str(Vec<String>),
}

impl Array {
    /// An array without attributes.
    pub fn new(name: &str, dims: &[&str], shape: &[usize], data: Data) -> Self {
        Self {
            name: name.into(),
            dims: dims.iter().map(|d| d.to_string()).collect(),
            shape: shape.to_vec(),
            data,
            attributes: Map::new(),
        }
    }
}

impl Data {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Data::F64(v) => v.len(),
            Data::I64(v) => v.len(),
            Data::Str(v) => v.len(),
        }
    }
}

/// Where the tree of `root` stands.
///
/// Usually at `root`. A process killed in the middle of a swap leaves nothing there, but the old tree beside it, and the
/// new one too, which was complete before the swap began.
fn standing(root: &Path) -> PathBuf {
    if root.exists() {
        return root.to_path_buf();
    }
    for suffix in temp_files::suffixes(root, "old") {
        for role in ["tmp", "old"] {
            let tree = temp_files::name(root, role, &suffix);
            if tree.join(METADATA).exists() {
                return tree;
            }
        }
    }
    root.to_path_buf()
}

/// The codec of numbers.
fn little_endian() -> Value {
    json!({ "name": "bytes", "configuration": { "endian": "little" } })
}

/// The metadata of an array: data type and fill value, dimensions, shape of the array and of a chunk, codecs, attributes.
fn array_metadata(
    (data_type, fill_value): (&str, Value),
    dims: &[String],
    (shape, chunk_shape): (&[usize], &[usize]),
    codecs: &[Value],
    attributes: &Map<String, Value>,
) -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": attributes,
        "dimension_names": dims,
        "storage_transformers": [],
    })
}

/// The codec that adds a checksum to a chunk: CRC-32C of all bytes before it, four bytes, little-endian.
const CRC32C: &str = "crc32c";

/// The codec by which several chunks are in one file.
const SHARDING: &str = "sharding_indexed";

/// Bytes of the checksum.
const CHECKSUM: usize = 4;

/// The checksum of a chunk.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    crc32c::crc32c(bytes).to_le_bytes()
}

/// Whether a name can be that of a group or an array: a plain folder name that Zarr does not reserve.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with("__")
        && name.chars().any(|c| c != '.')
        && !name.contains(['/', '\\', '\0'])
        && name != METADATA
}
