//! A tree to files: written aside as a whole, flushed, then swapped in with renames.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::super::bytes::{Element, PIECE, encode_pieces};
use super::super::disk::{Output, sync, sync_folder};
use super::super::{cannot, disk, temp_files};
use super::layout::Layout;
use super::{
    Array, CRC32C, Data, Group, METADATA, array_metadata, checksum, is_plain, little_endian,
    standing,
};
use crate::error::Result;

/// Arrays larger than this are cut along the draws: readers load a chunk as a whole.
const CHUNK_BYTES: usize = 64 << 20;

/// Writes the whole tree to the folder `root` (by custom `trace.zarr`) in place of the one that is there.
///
/// A reader sees the old tree or the new one. A process killed between the two renames leaves none under the final name;
/// [`super::read`] then takes the complete one beside it, and the next write puts that in order.
pub fn write(root: &Path, group: &Group) -> Result<()> {
    write_chunked(root, group, CHUNK_BYTES)
}

/// [`write`] with chunks of at most `limit` bytes.
pub(in crate::store) fn write_chunked(root: &Path, group: &Group, limit: usize) -> Result<()> {
    check(group, "").with_context(|| format!("cannot write the trace '{}'", root.display()))?;
    let failed = |e| cannot("write", root, e);
    let folder = disk::folder(root);
    disk::make_folders(folder).map_err(|e| cannot("create", folder, e))?;
    let survivor = standing(root);
    if survivor != root {
        disk::rename(&survivor, root).map_err(failed)?;
    }
    temp_files::sweep(root);
    let suffix = temp_files::suffix();
    let temp = temp_files::name(root, "tmp", &suffix);
    let written = write_tree(&temp, group, limit)
        .and_then(|()| swap(root, &temp, &temp_files::name(root, "old", &suffix)).map_err(failed));
    if written.is_err() {
        temp_files::remove(&temp);
    }
    written
}

/// Puts `temp` in the place of `root`, whose old content passes through the name `old`.
fn swap(root: &Path, temp: &Path, old: &Path) -> io::Result<()> {
    let replaced = root.exists();
    if replaced {
        disk::rename(root, old)?;
    }
    if let Err(e) = disk::rename(temp, root) {
        if replaced {
            disk::rename(old, root)?;
        }
        return Err(e);
    }
    sync_folder(disk::folder(root))?;
    if replaced {
        temp_files::remove(old);
    }
    Ok(())
}

/// Writes all files below `temp`, then flushes them: one after the other would wait for the disk at each.
fn write_tree(temp: &Path, group: &Group, limit: usize) -> Result<()> {
    let mut files = Files {
        root: temp.into(),
        written: Vec::new(),
        folders: HashSet::new(),
    };
    let mut nodes = Map::new();
    files.group(temp, "", group, limit, &mut nodes)?;
    let mut root = group_metadata(group);
    root["consolidated_metadata"] =
        json!({ "kind": "inline", "must_understand": false, "metadata": nodes });
    files.json(temp, &root)?;
    for path in &files.written {
        sync(path).map_err(|e| cannot("write", path, e))?;
    }
    for path in &files.folders {
        sync_folder(path).map_err(|e| cannot("write", path, e))?;
    }
    Ok(())
}

/// What has been written below `root` but not flushed yet.
struct Files {
    root: PathBuf,
    written: Vec<PathBuf>,
    folders: HashSet<PathBuf>,
}

impl Files {
    /// Writes the content of a group and adds the metadata of what is in it to `nodes`, under its path from the root.
    fn group(
        &mut self,
        folder: &Path,
        path: &str,
        group: &Group,
        limit: usize,
        nodes: &mut Map<String, Value>,
    ) -> Result<()> {
        for array in &group.arrays {
            let metadata = self.array(&folder.join(&array.name), array, limit)?;
            nodes.insert(format!("{path}{}", array.name), metadata);
        }
        for child in &group.groups {
            let folder = folder.join(&child.name);
            let metadata = group_metadata(child);
            self.json(&folder, &metadata)?;
            nodes.insert(format!("{path}{}", child.name), metadata);
            let path = format!("{path}{}/", child.name);
            self.group(&folder, &path, child, limit, nodes)?;
        }
        Ok(())
    }

    /// Writes an array and returns its metadata.
    fn array(&mut self, folder: &Path, array: &Array, limit: usize) -> Result<Value> {
        let (shape, dims) = (&array.shape, &array.dims);
        // The length of texts is not known beforehand; there are few of them, so they are one chunk.
        let (size, limit) = match &array.data {
            Data::F64(_) | Data::I64(_) => (8, limit),
            Data::Str(_) => (1, usize::MAX),
        };
        let layout = Layout::choose(shape, dims, size, limit)?;
        match &array.data {
            Data::F64(v) => self.chunks(folder, &layout, v)?,
            Data::I64(v) => self.chunks(folder, &layout, v)?,
            Data::Str(v) if v.is_empty() => (),
            Data::Str(v) => {
                let text = encode_text(v)?;
                self.file(&layout.path(folder, 0), |out| {
                    out.write_all(&text)?;
                    out.write_all(&checksum(&text))
                })?;
            }
        }
        let metadata = metadata_of(array, &layout);
        self.json(folder, &metadata)?;
        Ok(metadata)
    }

    /// Writes the chunks of an array piece by piece: memory for a whole one costs more than its bytes do.
    fn chunks<T: Element>(&mut self, folder: &Path, layout: &Layout, values: &[T]) -> Result<()> {
        for k in 0..layout.chunks() {
            self.file(&layout.path(folder, k), |out| {
                let mut sum = 0;
                let mut each = |bytes: &[u8]| {
                    sum = crc32c::crc32c_append(sum, bytes);
                    out.write_all(bytes)
                };
                for row in layout.rows(k) {
                    // The last chunk is as long as the others.
                    let missing = vec![T::FILL; layout.row() - row.len()];
                    encode_pieces(&values[row], &mut each)?;
                    encode_pieces(&missing, &mut each)?;
                }
                out.write_all(&sum.to_le_bytes())
            })?;
        }
        Ok(())
    }

    fn json(&mut self, folder: &Path, metadata: &Value) -> Result<()> {
        let text = serde_json::to_vec_pretty(metadata)?;
        self.file(&folder.join(METADATA), |out| out.write_all(&text))
    }

    fn file(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<Output>) -> io::Result<()>,
    ) -> Result<()> {
        let folder = disk::folder(path);
        if !self.folders.contains(folder) {
            disk::make_folders_unflushed(folder).map_err(|e| cannot("create", folder, e))?;
            // With the folders above it in the tree, which may be new as well.
            let new = folder.ancestors().take_while(|f| f.starts_with(&self.root));
            self.folders.extend(new.map(Path::to_path_buf));
        }
        let written = Output::create(path).and_then(|file| {
            let mut out = BufWriter::with_capacity(PIECE, file);
            write(&mut out)?;
            out.flush()
        });
        written.map_err(|e| cannot("write", path, e))?;
        self.written.push(path.to_path_buf());
        Ok(())
    }
}

fn group_metadata(group: &Group) -> Value {
    json!({ "zarr_format": 3, "node_type": "group", "attributes": group.attributes })
}

fn metadata_of(array: &Array, layout: &Layout) -> Value {
    let (data_type, fill_value, codec) = match &array.data {
        Data::F64(_) => ("float64", json!("NaN"), little_endian()),
        Data::I64(_) => ("int64", json!(0), little_endian()),
        // The registered extension for text; fixed-length text has no specification, and zarr-python warns of it.
        Data::Str(_) => (
            "string",
            json!(""),
            json!({ "name": "vlen-utf8", "configuration": {} }),
        ),
    };
    array_metadata(
        (data_type, fill_value),
        &array.dims,
        (&array.shape, &layout.chunk_shape(&array.shape)),
        &[codec, json!({ "name": CRC32C })],
        &array.attributes,
    )
}

/// The count, then each text after its length in bytes.
fn encode_text(texts: &[String]) -> Result<Vec<u8>> {
    let mut out = u32::try_from(texts.len())?.to_le_bytes().to_vec();
    for text in texts {
        out.extend(u32::try_from(text.len())?.to_le_bytes());
        out.extend(text.as_bytes());
    }
    Ok(out)
}

/// Refuses a tree that xarray could not open; `path` is the way to the group.
pub(super) fn check(group: &Group, path: &str) -> Result<()> {
    let mut names = HashSet::new();
    let arrays = group.arrays.iter().map(|a| &a.name);
    for name in arrays.chain(group.groups.iter().map(|g| &g.name)) {
        ensure!(
            is_plain(name),
            "'{path}{name}' cannot be the name of an array or a group"
        );
        ensure!(
            names.insert(name),
            "two arrays or groups are named '{path}{name}'; names must differ"
        );
    }
    let mut lengths = HashMap::new();
    for Array {
        name,
        dims,
        shape,
        data,
        ..
    } in &group.arrays
    {
        ensure!(
            dims.len() == shape.len(),
            "'{path}{name}' has dimensions {dims:?} but shape {shape:?}"
        );
        let expected = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        ensure!(
            expected == Some(data.len()),
            "'{path}{name}' has shape {shape:?} but {} values",
            data.len()
        );
        for (dim, length) in dims.iter().zip(shape) {
            let known = *lengths.entry(dim).or_insert(length);
            ensure!(
                known == length,
                "dimension '{dim}' is {length} long in '{path}{name}' but {known} in an array before it"
            );
        }
    }
    group
        .groups
        .iter()
        .try_for_each(|g| check(g, &format!("{path}{}/", g.name)))
}
