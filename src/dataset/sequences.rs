//! Sequences: rows of tokens with a label at each position, and what the data sets of them share.

use super::{Dataset, Inputs, Split, TEST, Targets, VALIDATION};
use crate::error::Result;
use crate::options::{Options, Spec};
use anyhow::{bail, ensure};

/// Tokens are kept in 16 bits.
pub(super) const MOST_TOKENS: usize = 1 << 16;

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
            if let Some(i) = tokens.iter().position(|t| usize::from(*t) >= known) {
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

/// A split of texts of `length` tokens each: row i of a text has its tokens from i·context on, `context` of them, and as labels those
/// that follow each. What is left at the end of a text is no row. `what` is what messages call the tokens.
pub(super) fn rows(what: &str, tokens: &[u16], length: usize, context: usize) -> Result<Split> {
    let of_text = length.saturating_sub(1) / context;
    ensure!(
        of_text > 0,
        "{what}: a text of {length} tokens is too short for a context of {context}, which needs one token more than that; \
         ask for a context of at most {}",
        length.saturating_sub(1)
    );
    let size = tokens.len() / length * of_text * context;
    crate::memory::check(4 * size as u128, &format!("{what}: {size} tokens"))?;
    let (mut inputs, mut labels) = (Vec::with_capacity(size), Vec::with_capacity(size));
    for text in tokens.chunks_exact(length) {
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
