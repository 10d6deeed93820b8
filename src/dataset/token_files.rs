//! Tokens in files: arrays of whole numbers, raw numbers, columns of lists.

use super::file::File;
#[cfg(feature = "parquet")]
use super::lists;
use super::npz::Archive;
use crate::error::{Result, did_you_mean, listed};
use crate::memory;
use crate::store::disk;
use crate::store::integers::Integers;
use crate::store::npy;
use anyhow::{Context, anyhow, bail, ensure};
use std::io::Read;
use std::path::Path;

/// What a file has, and what messages call it.
pub struct Found {
    pub what: String,
    pub numbers: Numbers,
    pub texts: Texts,
}

/// Whole numbers, which may be no tokens.
pub enum Numbers {
    Any(Vec<f64>),
    Small(Vec<u32>),
}

/// How texts lie in a file.
pub enum Texts {
    /// As rows of an array of this shape, or all of it is one.
    Shape(Vec<usize>),
    /// One after the other, of these lengths.
    #[cfg(feature = "parquet")]
    Lengths(Vec<usize>),
}

/// Types of raw numbers.
pub const RAW: &[&str] = &["uint16", "uint32"];

/// The array, tensor or column `wanted` of a file, or its only one; of raw numbers those of a type.
pub fn read(path: &str, wanted: Option<&str>, raw: Option<&str>) -> Result<Found> {
    let mut start = [0; 6];
    // Whatever keeps the file from being opened is told below.
    let begins = disk::open(Path::new(path)).and_then(|mut f| f.read(&mut start));
    let there = matches!(begins, Ok(n) if n > 0);
    let array = &start == b"\x93NUMPY" || start.starts_with(b"PK");
    let is_raw = Path::new(path).extension().is_some_and(|e| e == "bin") || raw.is_some();
    let table = start.starts_with(b"PAR1");
    if is_raw && !array && !table && there {
        ensure!(
            wanted.is_none(),
            "'{path}' has raw numbers, which have no name: leave out the option 'array'"
        );
        return numbers(path, raw.unwrap_or(RAW[0]));
    }
    ensure!(
        raw.is_none(),
        "'{path}' says of which type its numbers are: leave out the option 'dtype', which is for raw numbers"
    );
    match (there, array, table) {
        (true, false, true) => column(path, wanted),
        (true, false, false) => tensor(Path::new(path), wanted),
        _ => arrays(path, wanted),
    }
}

/// Raw numbers, little-endian, as nanoGPT has them.
fn numbers(path: &str, dtype: &str) -> Result<Found> {
    let bytes = File::open(path)?.bytes;
    // 20240520 is what llm.c's files begin with, and a header follows.
    ensure!(
        bytes.get(..4) != Some(&20_240_520_i32.to_le_bytes()),
        "'{path}' has a header of llm.c, which is not read; write its tokens by numpy.save"
    );
    let size = if dtype == "uint32" { 4 } else { 2 };
    ensure!(
        bytes.len().is_multiple_of(size),
        "'{path}' has {} bytes, which are no whole number of {dtype}; the option 'dtype' says of which type its numbers are",
        bytes.len()
    );
    let what = format!("'{path}' as {dtype}");
    memory::check_elements::<u32>(&[bytes.len() / size], &what)?;
    let small = match size {
        2 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| u16::from_le_bytes(*b).into())
            .collect(),
        _ => bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b))
            .collect::<Vec<u32>>(),
    };
    Ok(Found {
        what,
        texts: Texts::Shape(vec![small.len()]),
        numbers: Numbers::Small(small),
    })
}

#[cfg(feature = "parquet")]
fn column(path: &str, wanted: Option<&str>) -> Result<Found> {
    let choose = |names: &[String]| choose(Path::new(path), "column", names, wanted);
    let (what, numbers, lengths) = lists::read(path, choose)?;
    Ok(Found {
        what,
        texts: lengths.map_or(Texts::Shape(vec![numbers.len()]), Texts::Lengths),
        numbers: Numbers::Any(numbers),
    })
}

#[cfg(not(feature = "parquet"))]
fn column(path: &str, _: Option<&str>) -> Result<Found> {
    bail!(
        "'{path}': this program was built without Parquet; build it with `cargo build --release --features parquet`, or write the tokens by numpy.save"
    )
}

/// A tensor of a safetensors file.
fn tensor(path: &Path, wanted: Option<&str>) -> Result<Found> {
    let file = Integers::open(path).context(
        "a file of tokens is .npy, .npz, safetensors, Parquet or, called .bin, of raw numbers; this cannot be read as safetensors, and is none of the others",
    )?;
    let name = choose(path, "array", file.names(), wanted)?;
    let (shape, data) = file.read(&name)?;
    Ok(Found {
        what: format!("'{}', tensor '{name}'", path.display()),
        numbers: Numbers::Any(data),
        texts: Texts::Shape(shape),
    })
}

/// An array of NumPy.
fn arrays(path: &str, wanted: Option<&str>) -> Result<Found> {
    let f = File::open(path)?;
    let (what, array) = if f.bytes.starts_with(b"PK") {
        let mut archive = Archive::open(&f)?;
        let names: Vec<String> = archive.names.iter().map(|(n, _)| n.clone()).collect();
        let name = choose(Path::new(path), "array", &names, wanted)?;
        (format!("'{path}', array '{name}'"), archive.array(&name)?)
    } else {
        ensure!(
            wanted.is_none(),
            "'{path}' is a single array (.npy), which has no name: leave out the option 'array'"
        );
        let most = f.bytes.len() as u64;
        let array = npy::read(&mut &f.bytes[..], most).map_err(|e| anyhow!("'{path}': {e}"))?;
        (format!("'{path}'"), array)
    };
    if let npy::Numbers::Float(_) = array.data {
        bail!(
            "{what} holds floating-point numbers, but tokens are whole numbers; save it with .astype(\"int32\")"
        );
    }
    Ok(Found {
        what,
        numbers: Numbers::Any(array.data.into_f64()),
        texts: Texts::Shape(array.shape),
    })
}

/// The name that is wanted, or that of the only array.
fn choose(path: &Path, kind: &str, names: &[String], wanted: Option<&str>) -> Result<String> {
    let path = path.display();
    let known = || names.iter().map(String::as_str);
    match (wanted, names) {
        (Some(w), _) if names.iter().any(|n| n == w) => Ok(w.into()),
        (Some(w), _) => bail!("'{path}' has no {kind} '{w}'{}", did_you_mean(w, known())),
        (None, [one]) => Ok(one.clone()),
        (None, _) => bail!(
            "'{path}' has {} {kind}s; the option 'array' must name one: {}",
            names.len(),
            listed(names)
        ),
    }
}
