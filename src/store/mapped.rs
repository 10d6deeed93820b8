//! Arrays that stay in their file: a memory map of an `.npy` file or of a tensor of a safetensors file, read where and when it is needed.

use super::cannot;
use super::npy::{self, Numbers};
use super::tensors::Reader;
use crate::error::{Result, did_you_mean};
use anyhow::{Context, anyhow, bail, ensure};
use half::{bf16, f16};
use memmap2::Mmap;
use safetensors::Dtype;
use std::fmt;
use std::fs::File;
use std::io::Seek;
use std::path::Path;

/// What the numbers of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    F64,
    F32,
    F16,
    Bf16,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

impl Element {
    fn of_npy(kind: &str) -> Option<Self> {
        Some(match kind {
            "f8" => Self::F64,
            "f4" => Self::F32,
            "f2" => Self::F16,
            "i1" => Self::I8,
            "u1" => Self::U8,
            "i2" => Self::I16,
            "u2" => Self::U16,
            "i4" => Self::I32,
            "u4" => Self::U32,
            "i8" => Self::I64,
            "u8" => Self::U64,
            _ => return None,
        })
    }

    fn of_tensor(kind: Dtype) -> Option<Self> {
        Some(match kind {
            Dtype::F64 => Self::F64,
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::BF16 => Self::Bf16,
            Dtype::I8 => Self::I8,
            Dtype::U8 => Self::U8,
            Dtype::I16 => Self::I16,
            Dtype::U16 => Self::U16,
            Dtype::I32 => Self::I32,
            Dtype::U32 => Self::U32,
            Dtype::I64 => Self::I64,
            Dtype::U64 => Self::U64,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::Bf16)
    }
}

/// An array in a file, row-major.
pub struct MappedArray {
    map: Mmap,
    /// Where the numbers begin.
    start: usize,
    element: Element,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// What messages call it.
    pub what: String,
}

impl fmt::Debug for MappedArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.what, self.element, self.shape)
    }
}

/// A number of a file in little-endian order, as another number.
macro_rules! each {
    ($bytes:expr, $type:ty, $out:expr, $as:expr) => {{
        let (numbers, _) = $bytes.as_chunks::<{ size_of::<$type>() }>();
        for (o, b) in $out.iter_mut().zip(numbers) {
            *o = $as(<$type>::from_le_bytes(*b));
        }
    }};
}

/// Numbers of bytes as another type.
macro_rules! widened {
    ($element:expr, $bytes:expr, $out:expr, $to:ty) => {
        match $element {
            Element::F64 => each!($bytes, f64, $out, |x| x as $to),
            Element::F32 => each!($bytes, f32, $out, |x| x as $to),
            Element::F16 => each!($bytes, f16, $out, |x: f16| x.to_f32() as $to),
            Element::Bf16 => each!($bytes, bf16, $out, |x: bf16| x.to_f32() as $to),
            Element::I8 => each!($bytes, i8, $out, |x| x as $to),
            Element::U8 => each!($bytes, u8, $out, |x| x as $to),
            Element::I16 => each!($bytes, i16, $out, |x| x as $to),
            Element::U16 => each!($bytes, u16, $out, |x| x as $to),
            Element::I32 => each!($bytes, i32, $out, |x| x as $to),
            Element::U32 => each!($bytes, u32, $out, |x| x as $to),
            Element::I64 => each!($bytes, i64, $out, |x| x as $to),
            Element::U64 => each!($bytes, u64, $out, |x| x as $to),
        }
    };
}

impl MappedArray {
    /// The array of an `.npy` file, little-endian and in C order.
    pub fn npy(path: &str) -> Result<Self> {
        let p = Path::new(path);
        let mut file = super::disk::open(p).map_err(|e| cannot("read", p, e))?;
        let header = npy::read_header(&mut file).map_err(|e| anyhow!("'{path}': {e}"))?;
        let start = file.stream_position().map_err(|e| cannot("read", p, e))?;
        let kind = header.descr.trim_start_matches(['<', '|', '=']);
        let element = Element::of_npy(kind);
        let Some(element) = element.filter(|_| !header.fortran) else {
            bail!(
                "'{path}' cannot be mapped: it is '{}'{}, but little-endian numbers in C order are needed; write it by \
                 numpy.save(path, numpy.ascontiguousarray(x, dtype='<f4'))",
                header.descr,
                if header.fortran {
                    " in Fortran order"
                } else {
                    ""
                }
            );
        };
        Self::new(
            file,
            start as usize,
            element,
            header.shape,
            format!("'{path}'"),
        )
    }

    /// A tensor of a safetensors file.
    pub fn tensor(path: &str, name: &str) -> Result<Self> {
        let p = Path::new(path);
        let open = || super::disk::open(p).map_err(|e| cannot("read", p, e));
        let reader = Reader::new(open()?, p)
            .with_context(|| format!("'{path}' is damaged or not a safetensors file"))?;
        ensure!(
            reader.names.iter().any(|n| n == name),
            "'{path}' has no tensor '{name}'{}",
            did_you_mean(name, reader.names.iter().map(String::as_str))
        );
        let info = reader.info(name)?;
        let what = format!("'{path}', tensor '{name}'");
        let element = Element::of_tensor(info.dtype)
            .ok_or_else(|| anyhow!("{what}: numbers of type {} are not read", info.dtype))?;
        let start = reader.start as usize + info.data_offsets.0;
        Self::new(open()?, start, element, info.shape.clone(), what)
    }

    fn new(
        file: File,
        start: usize,
        element: Element,
        shape: Vec<usize>,
        what: String,
    ) -> Result<Self> {
        // SAFETY: the map is only read, byte by byte, and any bytes are numbers. Whoever shortens the file while it is mapped ends this
        // process; that is said where the option is documented.
        let map =
            unsafe { Mmap::map(&file) }.map_err(|e| anyhow!("{what} cannot be mapped: {e}"))?;
        let bytes = shape
            .iter()
            .try_fold(element.size(), |n, d| n.checked_mul(*d))
            .and_then(|n| n.checked_add(start));
        ensure!(
            bytes.is_some_and(|n| n <= map.len()),
            "{what}: its header claims the shape {shape:?}, more than the file's {} bytes hold",
            map.len()
        );
        Ok(Self {
            map,
            start,
            element,
            shape,
            what,
        })
    }

    fn bytes(&self, from: usize, count: usize) -> &[u8] {
        let size = self.element.size();
        &self.map[self.start + from * size..][..count * size]
    }

    /// Copy numbers from this one on.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn copy(&self, from: usize, out: &mut [f32]) {
        let bytes = self.bytes(from, out.len());
        widened!(self.element, bytes, out, f32);
    }

    /// The same in double precision.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn copy_f64(&self, from: usize, out: &mut [f64]) {
        let bytes = self.bytes(from, out.len());
        widened!(self.element, bytes, out, f64);
    }

    /// All of them.
    pub fn numbers(&self) -> Result<Numbers> {
        let count = self.shape.iter().product();
        crate::memory::check_elements::<f64>(&[count], &self.what)?;
        match self.element {
            Element::I8 => {
                let bytes = self.bytes(0, count).iter();
                return Ok(Numbers::I8(bytes.map(|b| *b as i8).collect()));
            }
            Element::U8 => return Ok(Numbers::U8(self.bytes(0, count).to_vec())),
            _ => {}
        }
        let mut out = vec![0f64; count];
        self.copy_f64(0, &mut out);
        Ok(match self.element.is_float() {
            true => Numbers::Float(out),
            false => Numbers::Whole(out),
        })
    }
}
