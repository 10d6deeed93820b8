//! Sequences: rows of tokens with a label at each position, and what the data sets of them share.

use super::{Dataset, Inputs, Split, TEST, Targets, VALIDATION};
use crate::error::Result;
use crate::options::{Options, Spec};
use anyhow::{bail, ensure};

/// Models get tokens as floats in single precision, which hold so many exactly.
pub(super) const MOST_TOKENS: usize = 1 << 24;

/// Fraction of the rows for the test split. Rows have no classes here.
pub(super) const TEST_ROWS: Spec = Spec {
    doc: "Fraction of the rows kept for the test split, chosen at random; 0 for no test split.",
    ..TEST
};

/// Fraction of the training rows for the validation split.
pub(super) const VALIDATION_ROWS: Spec = Spec {
    doc: "Fraction of the training rows moved to a validation split, chosen at random; 0 for none.",
    ..VALIDATION
};

impl Dataset {
    /// Positions of a row that have a target of their own: 1 but for sequences.
    pub fn positions(&self) -> usize {
        self.train.targets.positions()
    }

    /// Fail unless all inputs are numbers of tokens below `known`.
    pub fn check_tokens(&self, known: usize) -> Result<()> {
        for (which, split) in self.splits() {
            let Inputs::Tokens(tokens) = &split.inputs else {
                bail!(
                    "the model takes tokens, but the inputs of '{}' are not tokens; dataset::tokens reads tokens from a file",
                    self.name
                );
            };
            if let Some(i) = tokens.iter().position(|t| *t as usize >= known) {
                bail!(
                    "the model knows {known} tokens, but '{}' has token {} at {} of the {which} split",
                    self.name,
                    tokens[i],
                    place(i, split.dim)
                );
            }
        }
        Ok(())
    }
}

/// Where element `i` of rows of `positions` elements is, for messages.
pub(super) fn place(i: usize, positions: usize) -> String {
    match positions {
        1 => format!("row {i}"),
        _ => format!("position {} of row {}", i % positions, i / positions),
    }
}

/// A split of texts of these lengths, one after the other: row i of a text has its tokens from i·context on, `context` of them, and as labels those
/// that follow each. What is left at the end of a text is no row. `what` is what messages call the tokens.
pub(super) fn rows(what: &str, tokens: &[u32], lengths: &[usize], context: usize) -> Result<Split> {
    let of_text = |length: usize| length.saturating_sub(1) / context;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    ensure!(
        of_text(longest) > 0,
        "{what}: a text of {longest} tokens is too short for a context of {context}, which needs one token more than that; \
         ask for a context of at most {}",
        longest.saturating_sub(1)
    );
    let size = lengths.iter().map(|n| of_text(*n) * context).sum::<usize>();
    crate::memory::check(8 * size as u128, &format!("{what}: {size} tokens"))?;
    let (mut inputs, mut labels) = (Vec::with_capacity(size), Vec::with_capacity(size));
    let mut rest = tokens;
    for length in lengths {
        let (text, behind) = rest.split_at(*length);
        rest = behind;
        let of_text = of_text(*length);
        if of_text == 0 {
            continue;
        }
        inputs.extend_from_slice(&text[..of_text * context]);
        labels.extend_from_slice(&text[1..][..of_text * context]);
    }
    let targets = Targets::Sequence {
        positions: context,
        labels,
    };
    Split::new(context, Inputs::Tokens(inputs), targets)
}

/// The data set of the rows of a file, with the splits that the options `test`, `validation` and `seed` ask for.
pub(super) fn dataset(
    name: &str,
    vocabulary: usize,
    rows: Split,
    provenance: Vec<(String, String)>,
    options: &Options,
) -> Result<Dataset> {
    let seed = options.int("seed")?;
    Dataset::new(name, vocabulary, rows, None, provenance)?
        .with_test(options.float("test")?, seed)?
        .with_validation(options.float("validation")?, seed)
}
