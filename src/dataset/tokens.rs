//! `dataset::tokens`: tokens from an array in a file.

use super::file::File;
use super::npz::Archive;
use super::sequences::{MOST_TOKENS, TEST_ROWS, VALIDATION_ROWS, dataset, rows};
use super::{Dataset, SEED};
use crate::error::{Result, did_you_mean, in_file};
use crate::options::{Entry, Kind, Options, Range, optional, required};
use crate::store::integers::Integers;
use crate::store::npy::{self, Numbers};
use crate::store::open_regular;
use anyhow::{Context, anyhow, bail, ensure};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "tokens",
    doc: "Tokens from an array of whole numbers in an .npy, .npz or safetensors file, and the next token at each position.\n\n\
        An array [rows, length] holds texts of one length, an array [length] a single one. Of a text, row i has the tokens from i·context on, and as \
        label at each position the token after it; an incomplete row at its end is left out. The type of the file is detected from its content.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        optional(
            "array",
            Kind::Text,
            "the only array in the file",
            "Name of the array in an .npz or safetensors file.",
        ),
        optional(
            "context",
            Kind::Int(Range::Between(1.0, 1048576.0)),
            "length - 1 of an array [rows, length]: one row per text",
            "Input tokens of a row; each has a label.",
        ),
        optional(
            "vocabulary",
            Kind::Int(Range::Between(2.0, MOST_TOKENS as f64)),
            "the largest token + 1",
            "Number of different tokens, which are 0, 1, 2, ….",
        ),
        TEST_ROWS,
        VALIDATION_ROWS,
        SEED,
    ],
    example: "dataset::tokens(\"tests/data/tokens.npy\", #{ context: 16 })",
    build,
};

/// An array of a file, and what messages call it.
struct Array {
    what: String,
    shape: Vec<usize>,
    data: Vec<f64>,
}

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let path = options.text("path")?;
    let array = in_file(path, read(path, options.opt_text("array")))?;
    let (what, shape) = (&array.what, &array.shape);
    ensure!(
        !array.data.is_empty(),
        "{what} is empty, of shape {shape:?}"
    );
    let given = options.opt_int("context").map(|c| c as usize);
    let (length, context) = match (&shape[..], given) {
        ([length], Some(context)) => (*length, context),
        ([length], None) => bail!(
            "{what} is one text of {length} tokens: the option 'context' must say how many a row has"
        ),
        ([_, length], given) => (*length, given.unwrap_or((*length).max(2) - 1)),
        _ => bail!(
            "{what} has the shape {shape:?}, but tokens are expected as [rows, length] or [length]; reshape it"
        ),
    };
    let limit = options.opt_int("vocabulary").map(|v| v as usize);
    let (tokens, most) = tokens(&array, limit.unwrap_or(MOST_TOKENS))?;
    let vocabulary = limit.unwrap_or((usize::from(most) + 1).max(2));
    let all = rows(what, &tokens, length, context)?;
    let provenance = vec![
        ("array".into(), format!("{what}, shape {shape:?}")),
        (
            "checksum".into(),
            format!("crc32 {:08x}", checksum(&tokens)),
        ),
    ];
    let d = dataset("tokens", vocabulary, all, provenance, options)?;
    Ok(Arc::new(d))
}

/// Tells two versions of an array apart.
fn checksum(tokens: &[u16]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    for piece in tokens.chunks(4096) {
        let bytes: Vec<u8> = piece.iter().flat_map(|t| t.to_le_bytes()).collect();
        hash.update(&bytes);
    }
    hash.finalize()
}

/// The numbers as tokens below `limit`, and the largest of them.
fn tokens(array: &Array, limit: usize) -> Result<(Vec<u16>, u16)> {
    let mut most = 0;
    let token = |(i, x): (usize, &f64)| {
        ensure!(
            (0.0..limit as f64).contains(x),
            "{}: element {i} is {x}, but a token is a whole number 0, 1, 2, … below {limit}",
            array.what
        );
        most = most.max(*x as u16);
        Ok(*x as u16)
    };
    let tokens = array
        .data
        .iter()
        .enumerate()
        .map(token)
        .collect::<Result<_>>()?;
    Ok((tokens, most))
}

/// The array `wanted` of a file, or its only one.
fn read(path: &str, wanted: Option<&str>) -> Result<Array> {
    let mut start = [0; 6];
    // Whatever keeps the file from being opened is told below.
    let begins = open_regular(Path::new(path)).and_then(|mut f| f.read(&mut start));
    let text = match begins {
        Ok(_) if &start == b"\x93NUMPY" || start.starts_with(b"PK") => None,
        Ok(n) if n > 0 => Some(Path::new(path)),
        _ => None,
    };
    if let Some(path) = text {
        let file = Integers::open(path).context(
            "a file of tokens is .npy, .npz or safetensors; this is neither of the first two, and cannot be read as the last",
        )?;
        let name = choose(path, file.names(), wanted)?;
        let (shape, data) = file.read(&name)?;
        let what = format!("'{}', tensor '{name}'", path.display());
        return Ok(Array { what, shape, data });
    }
    let f = File::open(path)?;
    let (what, array) = if f.bytes.starts_with(b"PK") {
        let mut archive = Archive::open(&f)?;
        let names: Vec<String> = archive.names.iter().map(|(n, _)| n.clone()).collect();
        let name = choose(Path::new(path), &names, wanted)?;
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
    if let Numbers::Float(_) = array.data {
        bail!(
            "{what} holds floating-point numbers, but tokens are whole numbers; save it with .astype(\"int32\")"
        );
    }
    Ok(Array {
        what,
        shape: array.shape,
        data: array.data.into_f64(),
    })
}

/// The name that is wanted, or that of the only array.
fn choose(path: &Path, names: &[String], wanted: Option<&str>) -> Result<String> {
    let path = path.display();
    let known = || names.iter().map(String::as_str);
    match (wanted, names) {
        (Some(w), _) if names.iter().any(|n| n == w) => Ok(w.into()),
        (Some(w), _) => bail!("'{path}' has no array '{w}'{}", did_you_mean(w, known())),
        (None, [one]) => Ok(one.clone()),
        (None, _) => bail!(
            "'{path}' has {} arrays; the option 'array' must name one: {}",
            names.len(),
            crate::error::listed(names)
        ),
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
