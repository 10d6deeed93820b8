//! `dataset::tokens`: tokens from a file.

use super::sequences::{MOST_TOKENS, TEST_ROWS, VALIDATION_ROWS, dataset, rows};
use super::token_files::{Found, Numbers, RAW, Texts, read};
use super::{Dataset, SEED};
use crate::error::{Result, in_file};
use crate::options::{Entry, Kind, Options, Range, optional, required};
use anyhow::{anyhow, bail, ensure};
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "tokens",
    doc: "Tokens from an array of whole numbers in an .npy, .npz or safetensors file, a column of a Parquet file, or raw numbers in a .bin file, and the next token at each position.\n\n\
        An array [rows, length] holds texts of one length, an array [length] a single one, as raw numbers and a column of numbers do; each list of a column of lists is a text. Of a text, row i has the tokens from i·context on, and as \
        label at each position the token after it; an incomplete row at its end is left out. The type of the file is detected from its content, but for raw numbers, which are those of a file called .bin (nanoGPT's) \
        or where `dtype` is given. Parquet needs a program that was built with `--features parquet`. A model::pretrained needs `vocabulary: net.vocabulary`.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        optional(
            "array",
            Kind::Text,
            "the only array in the file",
            "Name of the array in an .npz or safetensors file, or of the column of a Parquet file.",
        ),
        optional(
            "dtype",
            Kind::Choice(RAW),
            "uint16 of a file called .bin",
            "Type of raw numbers, little-endian.",
        ),
        optional(
            "context",
            Kind::Int(Range::Between(1.0, 1048576.0)),
            "length - 1 where all texts have one length, and are several: one row per text",
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

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let path = options.text("path")?;
    let (array, dtype) = (options.opt_text("array"), options.opt_text("dtype"));
    let Found {
        what,
        numbers,
        texts,
    } = in_file(path, read(path, array, dtype))?;
    let given = options.opt_int("context").map(|c| c as usize);
    let needed = |what: &str| {
        given.ok_or_else(|| {
            anyhow!("{what}: the option 'context' must say how many tokens a row has")
        })
    };
    let (lengths, context, shape) = match texts {
        Texts::Shape(shape) => {
            ensure!(!shape.contains(&0), "{what} is empty, of shape {shape:?}");
            let (count, length, context) = match shape[..] {
                [length] => (
                    1,
                    length,
                    needed(&format!("{what} is one text of {length} tokens"))?,
                ),
                [count, length] => (count, length, given.unwrap_or(length.max(2) - 1)),
                _ => bail!(
                    "{what} has the shape {shape:?}, but tokens are expected as [rows, length] or [length]; reshape it"
                ),
            };
            (vec![length; count], context, format!("shape {shape:?}"))
        }
        #[cfg(feature = "parquet")]
        Texts::Lengths(lengths) => {
            let longest = lengths.iter().copied().max().unwrap_or(0);
            ensure!(longest > 0, "{what} is empty");
            let alike = lengths.iter().all(|n| *n == longest);
            let context = match (given, alike) {
                (None, true) => longest.max(2) - 1,
                _ => needed(&format!(
                    "{what} has texts of several lengths, up to {longest}"
                ))?,
            };
            let shape = format!("{} texts", lengths.len());
            (lengths, context, shape)
        }
    };
    let limit = options.opt_int("vocabulary").map(|v| v as usize);
    let (tokens, most) = tokens(&what, numbers, limit.unwrap_or(MOST_TOKENS))?;
    let vocabulary = limit.unwrap_or((most as usize + 1).max(2));
    let all = rows(&what, &tokens, &lengths, context)?;
    let provenance = vec![
        ("array".into(), format!("{what}, {shape}")),
        (
            "checksum".into(),
            format!("crc32 {:08x}", checksum(&tokens)),
        ),
    ];
    let d = dataset("tokens", vocabulary, all, provenance, options)?;
    Ok(Arc::new(d))
}

/// Tells two versions of an array apart.
fn checksum(tokens: &[u32]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    for piece in tokens.chunks(4096) {
        let bytes: Vec<u8> = piece.iter().flat_map(|t| t.to_le_bytes()).collect();
        hash.update(&bytes);
    }
    hash.finalize()
}

/// The numbers as tokens below `limit`, and the largest of them.
fn tokens(what: &str, numbers: Numbers, limit: usize) -> Result<(Vec<u32>, u32)> {
    let wrong = |i: usize, x: f64| {
        anyhow!(
            "{what}: element {i} is {x}, but a token is a whole number 0, 1, 2, … below {limit}"
        )
    };
    let tokens = match numbers {
        Numbers::Small(all) => {
            if let Some(i) = all.iter().position(|t| *t as usize >= limit) {
                return Err(wrong(i, all[i].into()));
            }
            all
        }
        Numbers::Any(all) => {
            let each = all.iter().enumerate().map(|(i, x)| {
                let fits = (0.0..limit as f64).contains(x);
                fits.then_some(*x as u32).ok_or_else(|| wrong(i, *x))
            });
            each.collect::<Result<_>>()?
        }
    };
    let most = tokens.iter().copied().max().unwrap_or(0);
    Ok((tokens, most))
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
