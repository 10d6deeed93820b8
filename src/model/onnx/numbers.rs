//! Numbers of an ONNX file: within it, or in a file beside it.

use super::proto::Tensor;
use crate::error::Result;
use crate::memory;
use crate::store::disk;
use anyhow::{Context, anyhow, bail, ensure};
use half::{bf16, f16};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// Lengths of its axes.
    pub dims: Vec<usize>,
    /// Its numbers, row-major.
    pub data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// What was float32, float16 or bfloat16.
    Single(Vec<f32>),
    /// What was float64.
    Double(Vec<f64>),
    /// Integers and truth values.
    Whole(Vec<f64>),
}

impl Data {
    /// All of them in double precision.
    pub fn into_f64(self) -> Vec<f64> {
        match self {
            Data::Single(x) => x.into_iter().map(f64::from).collect(),
            Data::Double(x) | Data::Whole(x) => x,
        }
    }

    /// All of them in single precision.
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Data::Single(x) => x,
            Data::Double(x) | Data::Whole(x) => x.into_iter().map(|x| x as f32).collect(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Data::Single(x) => x.len(),
            Data::Double(x) | Data::Whole(x) => x.len(),
        }
    }
}

/// The numbers of a tensor; `folder` has the file that it is of.
pub fn numbers(t: &Tensor, folder: &Path) -> Result<Numbers> {
    read(t, folder).with_context(|| format!("the tensor '{}'", t.name))
}

fn read(t: &Tensor, folder: &Path) -> Result<Numbers> {
    let dims = t.dims.iter().map(|d| usize::try_from(*d));
    let dims: Vec<usize> = dims
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| anyhow!("its shape is {:?}", t.dims))?;
    let count = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    let count = count.filter(|n| *n < u32::MAX as usize);
    let count = count.ok_or_else(|| anyhow!("its shape {dims:?} has too many numbers"))?;
    let outside;
    let raw: &[u8] = match t.location {
        1 => {
            outside = external(t, folder)?;
            &outside
        }
        _ => &t.raw,
    };
    let data = match raw.is_empty() {
        true => listed(t),
        false => raw_numbers(t.kind, raw),
    };
    let data = data.ok_or_else(|| {
        let names = [
            "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool",
        ];
        let name = usize::try_from(t.kind).ok().and_then(|k| names.get(k));
        anyhow!(
            "its numbers are of type {} ({}), which is not read",
            t.kind,
            name.filter(|n| !n.is_empty())
                .unwrap_or(&"none of the usual")
        )
    })?;
    ensure!(
        data.len() == count,
        "it has {} numbers, but its shape {dims:?} needs {count}",
        data.len()
    );
    Ok(Numbers { dims, data })
}

/// Numbers as bytes, little-endian.
fn raw_numbers(kind: i32, raw: &[u8]) -> Option<Data> {
    fn each<const N: usize, T>(raw: &[u8], f: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let (blocks, rest) = raw.as_chunks::<N>();
        rest.is_empty()
            .then(|| blocks.iter().map(|b| f(*b)).collect())
    }
    Some(match kind {
        1 => Data::Single(each(raw, f32::from_le_bytes)?),
        2 | 9 => Data::Whole(each(raw, |[x]| f64::from(x))?),
        3 => Data::Whole(each(raw, |b| f64::from(i8::from_le_bytes(b)))?),
        4 => Data::Whole(each(raw, |b| f64::from(u16::from_le_bytes(b)))?),
        5 => Data::Whole(each(raw, |b| f64::from(i16::from_le_bytes(b)))?),
        6 => Data::Whole(each(raw, |b| f64::from(i32::from_le_bytes(b)))?),
        7 => Data::Whole(each(raw, |b| i64::from_le_bytes(b) as f64)?),
        10 => Data::Single(each(raw, |b| f16::from_le_bytes(b).to_f32())?),
        11 => Data::Double(each(raw, f64::from_le_bytes)?),
        12 => Data::Whole(each(raw, |b| f64::from(u32::from_le_bytes(b)))?),
        13 => Data::Whole(each(raw, |b| u64::from_le_bytes(b) as f64)?),
        16 => Data::Single(each(raw, |b| bf16::from_le_bytes(b).to_f32())?),
        _ => return None,
    })
}

/// Numbers as lists of the message.
fn listed(t: &Tensor) -> Option<Data> {
    let words = t.int32s.iter();
    Some(match t.kind {
        1 => Data::Single(t.floats.clone()),
        2..=6 | 9 => Data::Whole(words.map(|x| f64::from(*x)).collect()),
        7 => Data::Whole(t.int64s.iter().map(|x| *x as f64).collect()),
        10 => Data::Single(words.map(|x| f16::from_bits(*x as u16).to_f32()).collect()),
        11 => Data::Double(t.doubles.clone()),
        12 | 13 => Data::Whole(t.uint64s.iter().map(|x| *x as f64).collect()),
        16 => Data::Single(words.map(|x| bf16::from_bits(*x as u16).to_f32()).collect()),
        _ => return None,
    })
}

/// The bytes of a tensor in a file of its own, which must be in the same folder or below it.
fn external(t: &Tensor, folder: &Path) -> Result<Vec<u8>> {
    let entry = |key: &str| t.external.iter().find(|e| e.key == key).map(|e| &*e.value);
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(n) => Ok(Some(n)),
            Err(_) => bail!("its {key} within the file of its numbers is '{text}'"),
        },
    };
    let location = entry("location").ok_or_else(|| anyhow!("no file is named for its numbers"))?;
    ensure!(
        Path::new(location)
            .components()
            .all(|c| matches!(c, Component::Normal(_) | Component::CurDir)),
        "its numbers are in '{location}', which is not below the folder of the model"
    );
    let path = folder.join(location);
    let shown = path.display();
    let what = || format!("'{shown}', which has its numbers");
    let mut file = disk::open(&path).with_context(what)?;
    let size = file.metadata().with_context(what)?.len();
    let from = number("offset")?.unwrap_or(0);
    let length = number("length")?.unwrap_or(size.saturating_sub(from));
    ensure!(
        from.checked_add(length).is_some_and(|end| end <= size),
        "its numbers are the bytes from {from} on, {length} of them, of '{shown}', which has {size}"
    );
    memory::check(u128::from(length), &what())?;
    let mut bytes = vec![0; length as usize];
    file.seek(SeekFrom::Start(from)).with_context(what)?;
    file.read_exact(&mut bytes).with_context(what)?;
    Ok(bytes)
}
