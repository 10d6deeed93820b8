//! Safetensors files with stable content, written and read in pieces.
//!
//! The same tensors and metadata always give the same bytes. The format sorts tensors by type and name; the order they
//! were given in is kept in the metadata, and the metadata is sorted. The library would take and give the data of a tensor
//! in one buffer; here the numbers stay with the caller and only a small piece of them is bytes at a time.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use crc32fast::Hasher;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::Map;

use super::bytes::{self, Element, PIECE};
use super::cannot;
use crate::error::Result;

/// The metadata entry with the names of the tensors in their order, as a JSON list.
const ORDER: &str = "order";
/// The metadata entry with the checksum of a description and the tensors, in hexadecimal.
const CRC32: &str = "crc32";
/// The header entry that is not a tensor, hence a name that no tensor may have.
const METADATA: &str = "__metadata__";
/// Bytes of the header's length, at the beginning of the file; the header's length is a multiple of it.
const LENGTH: usize = 8;
/// The longest header that readers accept, to not be led by a damaged length.
const MAX_HEADER: usize = 100_000_000;

/// A tensor to be saved: a shape, and numbers that stay where they are.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorRef<'a> {
    /// Lengths of the axes; their product is the length of the data.
    pub shape: Vec<usize>,
    /// The numbers, in row-major order.
    pub data: DataRef<'a>,
    /// Whether they are a list to which numbers are only added.
    pub grows: bool,
}

impl<'a> TensorRef<'a> {
    /// Numbers with a shape.
    pub fn new(shape: Vec<usize>, data: DataRef<'a>) -> Self {
        let grows = false;
        Self { shape, data, grows }
    }
}

/// The numbers of a [`TensorRef`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DataRef<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
    /// Unsigned, for random number generators and counters.
    U64(&'a [u64]),
    /// Signed.
    I64(&'a [i64]),
    /// Single precision, in rows that lie apart.
    Rows(&'a [&'a [f32]]),
}

/// Tensors and their names.
pub type Tensors = Vec<(String, Tensor)>;

/// Numbers with a shape, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Lengths of the axes; their product is the length of the data.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: TensorData,
}

/// The numbers of a [`Tensor`].
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Unsigned, for random number generators and counters.
    U64(Vec<u64>),
    /// Signed.
    I64(Vec<i64>),
}

impl TensorData {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
        }
    }
}

impl<'a> DataRef<'a> {
    /// How many numbers there are.
    pub(super) fn len(self) -> usize {
        self.kind().1
    }

    /// The first so many numbers, and the others; none if there are fewer, or they lie apart.
    pub(super) fn split_at(self, count: usize) -> Option<(Self, Self)> {
        macro_rules! split {
            ($($kind:ident),*) => {
                match self {
                    $(Self::$kind(v) => {
                        let (old, new) = v.split_at_checked(count)?;
                        (Self::$kind(old), Self::$kind(new))
                    })*
                    Self::Rows(_) => return None,
                }
            };
        }
        Some(split!(F32, F64, U64, I64))
    }

    /// The type of the numbers and how many there are.
    fn kind(self) -> (Dtype, usize) {
        match self {
            DataRef::F32(v) => (Dtype::F32, v.len()),
            DataRef::F64(v) => (Dtype::F64, v.len()),
            DataRef::U64(v) => (Dtype::U64, v.len()),
            DataRef::I64(v) => (Dtype::I64, v.len()),
            DataRef::Rows(v) => (Dtype::F32, v.iter().map(|row| row.len()).sum()),
        }
    }

    pub(super) fn dtype(self) -> Dtype {
        self.kind().0
    }

    /// Hands over the bytes in small pieces, until one is refused.
    pub(super) fn pieces(self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            DataRef::F32(v) => bytes::encode_pieces(v, each),
            DataRef::F64(v) => bytes::encode_pieces(v, each),
            DataRef::U64(v) => bytes::encode_pieces(v, each),
            DataRef::I64(v) => bytes::encode_pieces(v, each),
            DataRef::Rows(v) => v.iter().try_for_each(|row| bytes::encode_pieces(row, each)),
        }
    }
}

/// A file to be written: its first bytes, and what follows them.
pub(super) struct Layout<'a> {
    header: Vec<u8>,
    data: Vec<DataRef<'a>>,
}

impl<'a> Layout<'a> {
    /// A file with a checksum of its tensors and of `description`. It stands before the data, so it takes a pass of its own over them.
    pub(super) fn checked(
        tensors: &[(String, TensorRef<'a>)],
        metadata: &[(String, String)],
        description: &str,
    ) -> Result<Self> {
        let mut hasher = Hasher::new();
        hasher.update(description.as_bytes());
        for (name, tensor) in tensors {
            hash_head(&mut hasher, name, tensor.data.dtype(), &tensor.shape);
            tensor.data.pieces(&mut |piece| {
                hasher.update(piece);
                Ok(())
            })?;
        }
        ensure!(
            metadata.iter().all(|(name, _)| name != CRC32),
            "the metadata entry '{CRC32}' is reserved for the checksum; choose another name"
        );
        let checksum = (CRC32.to_string(), digits(hasher));
        Self::new(tensors, &[metadata, &[checksum]].concat())
    }

    pub(super) fn new(
        tensors: &[(String, TensorRef<'a>)],
        metadata: &[(String, String)],
    ) -> Result<Self> {
        check(tensors)?;
        let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
        let mut all: BTreeMap<String, String> = metadata.iter().cloned().collect();
        ensure!(
            all.insert(ORDER.into(), serde_json::to_string(&names)?)
                .is_none(),
            "the metadata entry '{ORDER}' is reserved for the order of the tensors; choose another name"
        );
        // As the library sorts them: by falling size of a number, so that all data are aligned, then by name.
        let mut sorted: Vec<_> = tensors.iter().collect();
        sorted.sort_by(|(a, x), (b, y)| y.data.dtype().cmp(&x.data.dtype()).then(a.cmp(b)));
        let mut header = Map::new();
        header.insert(METADATA.into(), serde_json::to_value(all)?);
        let mut end = 0;
        for (name, tensor) in &sorted {
            let (dtype, count) = tensor.data.kind();
            let start = end;
            end += count * dtype.bitsize() / 8;
            let info = TensorInfo {
                dtype,
                shape: tensor.shape.clone(),
                data_offsets: (start, end),
            };
            header.insert(name.clone(), serde_json::to_value(info)?);
        }
        let mut text = serde_json::to_vec(&header)?;
        text.resize(text.len().next_multiple_of(LENGTH), b' ');
        ensure!(
            text.len() <= MAX_HEADER,
            "the description of {} tensors takes {} bytes; the format allows {MAX_HEADER}",
            tensors.len(),
            text.len()
        );
        let length = (text.len() as u64).to_le_bytes();
        Ok(Self {
            header: [&length[..], &text].concat(),
            data: sorted.iter().map(|(_, tensor)| tensor.data).collect(),
        })
    }

    /// Writes the whole file.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.header)?;
        for data in &self.data {
            data.pieces(&mut |piece| out.write_all(piece))?;
        }
        Ok(())
    }
}

/// What the checksum says of a tensor before its bytes.
fn hash_head(hasher: &mut Hasher, name: &str, dtype: Dtype, shape: &[usize]) {
    // The separators keep a byte from moving between two neighbours unnoticed.
    hasher.update(format!("\0{name}\0{dtype}\0{shape:?}\0").as_bytes());
}

/// A checksum as text of fixed length.
fn digits(hasher: Hasher) -> String {
    format!("{:08x}", hasher.finalize())
}

/// Names must differ, shapes must fit the numbers.
pub(super) fn check(tensors: &[(String, TensorRef<'_>)]) -> Result<()> {
    let mut seen = HashSet::new();
    for (name, tensor) in tensors {
        ensure!(
            seen.insert(name),
            "two tensors are named '{name}'; names must differ"
        );
        ensure!(
            name != METADATA,
            "a tensor cannot be named '{METADATA}', which the format reserves"
        );
        let mut axes = tensor.shape.iter();
        let expected = axes.try_fold(1usize, |n, d| n.checked_mul(*d));
        let (_, count) = tensor.data.kind();
        ensure!(
            expected == Some(count),
            "tensor '{name}' has shape {:?} but {count} numbers",
            tensor.shape
        );
    }
    Ok(())
}

/// An open file whose header makes sense and fits the file's length; the data are read when asked for.
pub(super) struct Reader<'a> {
    path: &'a Path,
    file: File,
    header: Metadata,
    /// Where the data begin.
    pub(super) start: u64,
    /// The names of the tensors in the order they were given. Files from elsewhere carry none: that of the data.
    pub names: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Reads the header; `path` is for messages.
    pub(super) fn new(file: File, path: &'a Path) -> Result<Self> {
        let size = file.metadata().map_err(|e| cannot("read", path, e))?.len();
        let reader = Self::section(file, path, 0, size)?;
        let expected = reader.end();
        ensure!(
            expected == size,
            "it is {size} bytes long but should be {expected}"
        );
        Ok(reader)
    }

    /// Reads the header of a file of tensors within another, from byte `from` to byte `to` at most.
    pub(super) fn section(file: File, path: &'a Path, from: u64, to: u64) -> Result<Self> {
        let failed = |e| cannot("read", path, e);
        let size = to.saturating_sub(from);
        let mut length = [0; LENGTH];
        ensure!(size >= LENGTH as u64, "it is only {size} bytes long");
        (&file).seek(SeekFrom::Start(from)).map_err(failed)?;
        (&file).read_exact(&mut length).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        let start = length.saturating_add(LENGTH as u64);
        ensure!(
            length <= MAX_HEADER as u64 && start <= size,
            "its header cannot be {length} bytes long; is it a file of tensors at all?"
        );
        let mut text = vec![0; length as usize];
        (&file).read_exact(&mut text).map_err(failed)?;
        let header: Metadata =
            serde_json::from_slice(&text).context("its header is not that of safetensors")?;
        let expected = start.saturating_add(header.data_len() as u64);
        ensure!(
            expected <= size,
            "it is {size} bytes long but should be {expected}"
        );
        let mut names = header.offset_keys();
        let order = header.metadata().as_ref().and_then(|m| m.get(ORDER));
        if let Some(order) = order {
            let given: Vec<String> =
                serde_json::from_str(order).context("the order of the tensors is not a list")?;
            let mut sorted = given.clone();
            sorted.sort_unstable();
            names.sort_unstable();
            ensure!(
                sorted == names,
                "the order of the tensors does not match the tensors in the file"
            );
            names = given;
        }
        Ok(Self {
            path,
            file,
            header,
            start: from + start,
            names,
        })
    }

    /// Where it ends in the file.
    pub(super) fn end(&self) -> u64 {
        self.start + self.header.data_len() as u64
    }

    /// A metadata entry.
    pub(super) fn metadata(&self, key: &str) -> Option<&str> {
        self.header
            .metadata()
            .as_ref()?
            .get(key)
            .map(String::as_str)
    }

    /// All metadata entries but those that this module writes, by name.
    pub(super) fn given(&self) -> BTreeMap<&str, &str> {
        let all = self.header.metadata().iter().flatten();
        let given = all.filter(|(name, _)| ![ORDER, CRC32].contains(&name.as_str()));
        given.map(|(k, v)| (k.as_str(), v.as_str())).collect()
    }

    /// The checksum of the file, if it has one.
    pub(super) fn checksum(&self) -> Option<&str> {
        self.metadata(CRC32)
    }

    /// Reads all tensors in their order and compares the checksum that [`Layout::checked`] wrote. `each` must show all bytes of the tensor
    /// that it is called with to the hasher.
    pub(super) fn check(
        &self,
        description: &str,
        mut each: impl FnMut(&str, &mut Hasher) -> Result<()>,
    ) -> Result<()> {
        let stored = self.checksum().context("it has no checksum")?;
        let mut hasher = Hasher::new();
        hasher.update(description.as_bytes());
        for name in &self.names {
            let info = self.info(name)?;
            hash_head(&mut hasher, name, info.dtype, &info.shape);
            each(name, &mut hasher)?;
        }
        let actual = digits(hasher);
        ensure!(
            stored == actual,
            "its checksum is {actual} but should be {stored}"
        );
        Ok(())
    }

    /// Type, shape and place of a tensor.
    pub(super) fn info(&self, name: &str) -> Result<&TensorInfo> {
        let info = self.header.info(name);
        info.with_context(|| format!("it has no tensor '{name}'"))
    }

    /// The bytes of a tensor, in pieces of whole numbers.
    pub(super) fn pieces(&self, name: &str, mut each: impl FnMut(&[u8])) -> Result<()> {
        let (from, to) = self.info(name)?.data_offsets;
        let mut left = to - from;
        let mut buffer = vec![0; left.min(PIECE)];
        let mut read = || -> io::Result<()> {
            (&self.file).seek(SeekFrom::Start(self.start + from as u64))?;
            while left > 0 {
                let piece = &mut buffer[..left.min(PIECE)];
                (&self.file).read_exact(piece)?;
                each(piece);
                left -= piece.len();
            }
            Ok(())
        };
        read().map_err(|e| cannot("read", self.path, e))
    }

    /// The numbers of a tensor, which must be of this type; `watch` sees the bytes that they were.
    pub(super) fn numbers<T: Element>(
        &self,
        name: &str,
        watch: impl FnMut(&[u8]),
    ) -> Result<Vec<T>> {
        let (from, to) = self.info(name)?.data_offsets;
        let mut values = Vec::with_capacity((to - from) / T::SIZE);
        self.append(name, &mut values, watch)?;
        Ok(values)
    }

    /// Reads the numbers of a tensor behind those in `values`, which must be of its type; `watch` sees the bytes that they were.
    pub(super) fn append<T: Element>(
        &self,
        name: &str,
        values: &mut Vec<T>,
        mut watch: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.pieces(name, |piece| {
            watch(piece);
            values.extend(piece.chunks_exact(T::SIZE).map(T::get));
        })
    }
}
