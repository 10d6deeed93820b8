//! Whole numbers in safetensors files from elsewhere, such as tokens.

use std::path::Path;

use anyhow::{Context, bail};
use safetensors::Dtype;

use super::cannot;
use super::tensors::Reader;
use crate::error::Result;

/// An open safetensors file.
pub struct Integers<'a> {
    path: &'a Path,
    reader: Reader<'a>,
}

impl<'a> Integers<'a> {
    /// Reads the header.
    pub fn open(path: &'a Path) -> Result<Self> {
        let file = super::disk::open(path).map_err(|e| cannot("read", path, e))?;
        let reader = Reader::new(file, path).with_context(|| {
            format!("'{}' is damaged or not a safetensors file", path.display())
        })?;
        Ok(Self { path, reader })
    }

    /// The names of its tensors.
    pub fn names(&self) -> &[String] {
        &self.reader.names
    }

    /// Shape and numbers of a tensor of whole numbers, in double precision: all but the largest 64-bit ones are exact.
    pub fn read(&self, name: &str) -> Result<(Vec<usize>, Vec<f64>)> {
        let info = self.reader.info(name)?;
        let mut out = Vec::new();
        macro_rules! decode {
            ($t:ty) => {
                self.reader.pieces(name, |piece| {
                    let (numbers, _) = piece.as_chunks::<{ size_of::<$t>() }>();
                    out.extend(numbers.iter().map(|b| <$t>::from_le_bytes(*b) as f64));
                })?
            };
        }
        match info.dtype {
            Dtype::U8 => decode!(u8),
            Dtype::I8 => decode!(i8),
            Dtype::U16 => decode!(u16),
            Dtype::I16 => decode!(i16),
            Dtype::U32 => decode!(u32),
            Dtype::I32 => decode!(i32),
            Dtype::U64 => decode!(u64),
            Dtype::I64 => decode!(i64),
            other => bail!(
                "'{}': tensor '{name}' is {other}, but whole numbers are expected; convert it first (in PyTorch: tensor.int())",
                self.path.display()
            ),
        }
        Ok((info.shape.clone(), out))
    }
}
