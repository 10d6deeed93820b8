//! `dataset::induction`: random segments, repeated, on which induction heads form.

use super::sequences::{VALIDATION_ROWS, rows};
use super::{Dataset, SEED, Split, Use, stream};
use crate::error::Result;
use crate::options::{Entry, Kind, Options, Range, option, optional};
use crate::rng::Stream;
use anyhow::ensure;
use rayon::prelude::*;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "induction",
    doc: "Repeated random segments of tokens: what comes next can be copied from an earlier place, which requires induction heads.\n\n\
        A row has context + 1 tokens: a segment of ℓ tokens that are uniform in 0..vocabulary and independent, repeated from its \
        beginning until the row is full (Olsson et al. 2022, \"In-context learning and induction heads\", have such rows with one repeat). \
        Inputs are its first context tokens, the label at each position is the next one. ℓ is uniform in context/4 … context/2 for every row, so that \
        no fixed distance finds the earlier place. The labels within the first segment cannot be predicted: there no model has, on average \
        over new rows, a loss below ln(vocabulary).\n\
        Row i of a split depends on the seed, vocabulary, context and segment only: a larger split starts with the rows of a smaller one. Two bytes per token.",
    arguments: &[],
    options: &[
        option(
            "vocabulary",
            Kind::Int(Range::Between(2.0, 65536.0)),
            "64",
            "Number of different tokens.",
        ),
        option(
            "context",
            Kind::Int(Range::Between(2.0, 1048576.0)),
            "64",
            "Input tokens of a row; each has a label.",
        ),
        optional(
            "segment",
            Kind::Int(Range::AtLeast(1.0)),
            "uniform in context/4 … context/2, for every row",
            "Tokens of a segment ℓ, the same for all rows.",
        ),
        option(
            "train",
            Kind::Int(Range::Between(1.0, 4294967295.0)),
            "2000",
            "Number of training rows.",
        ),
        option(
            "test",
            Kind::Int(Range::Between(0.0, 4294967295.0)),
            "500",
            "Number of test rows; 0 for no test split.",
        ),
        VALIDATION_ROWS,
        SEED,
    ],
    example: "dataset::induction(#{ vocabulary: 16, context: 24, train: 500, test: 100 })",
    build,
};

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let (vocabulary, context) = (options.size("vocabulary")?, options.size("context")?);
    let seed = options.int("seed")?;
    let lengths = match options.opt_int("segment") {
        Some(l) => {
            ensure!(
                l <= context as u64,
                "{}: option 'segment' is {l}, but must be at most the context, {context}: in a row of {} tokens nothing would be repeated",
                options.owner(),
                context + 1
            );
            l as usize..=l as usize
        }
        None => (context / 4).max(1)..=context / 2,
    };
    let split = |what, count: usize| -> Result<Split> {
        let size = count as u128 * (context as u128 + 1);
        crate::memory::check(
            2 * size,
            &format!(
                "{}: {count} rows of {} tokens",
                options.owner(),
                context + 1
            ),
        )?;
        let mut tokens = vec![0; count * (context + 1)];
        tokens
            .par_chunks_exact_mut(context + 1)
            .enumerate()
            .filter(|_| !crate::error::interrupted())
            .for_each(|(i, row)| fill(stream(seed, what, i as u64), vocabulary, &lengths, row));
        crate::error::go_on("the making of a data set")?;
        rows(options.owner(), &tokens, &vec![context + 1; count], context)
    };
    let train = split(Use::TrainSequence, options.size("train")?)?;
    let test = match options.size("test")? {
        0 => None,
        rows => Some(split(Use::TestSequence, rows)?),
    };
    let (shortest, longest) = lengths.clone().into_inner();
    let of = if shortest == longest {
        format!("{shortest}")
    } else {
        format!("{shortest} to {longest}")
    };
    let provenance = vec![
        ("source".into(), "generated; Olsson et al. 2022".into()),
        (
            "generator".into(),
            format!("vocabulary {vocabulary}, segments of {of} tokens, seed {seed}"),
        ),
    ];
    let d = Dataset::new("induction", vocabulary, train, test, provenance)?;
    Ok(Arc::new(
        d.with_validation(options.float("validation")?, seed)?,
    ))
}

/// A row: word 0 of sub-stream 1 chooses ℓ, the words of the stream are the tokens of the segment.
fn fill(stream: Stream, vocabulary: usize, lengths: &RangeInclusive<usize>, row: &mut [u32]) {
    let below = |word: u32, n: usize| ((word as u64 * n as u64) >> 32) as usize;
    let choices = lengths.end() - lengths.start() + 1;
    let length = lengths.start() + below(stream.sub_stream(1).block(0)[0], choices);
    let (segment, repeats) = row.split_at_mut(length.min(row.len()));
    for (b, four) in segment.chunks_mut(4).enumerate() {
        for (x, word) in four.iter_mut().zip(stream.block(b as u32)) {
            *x = below(word, vocabulary) as u32;
        }
    }
    for repeat in repeats.chunks_mut(length) {
        repeat.copy_from_slice(&segment[..repeat.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{build, message};
    use super::super::{Inputs, Targets};
    use super::*;
    use crate::options::Value;

    fn make(given: &[(&str, i64)]) -> Arc<Dataset> {
        let given: Vec<_> = given.iter().map(|(n, v)| (*n, Value::Int(*v))).collect();
        build(&ENTRY, &given).unwrap()
    }

    fn tokens(s: &Split) -> &[u32] {
        match &s.inputs {
            Inputs::Tokens(x) => x,
            _ => panic!("tokens are tokens"),
        }
    }

    /// The rows with their last token.
    fn whole(s: &Split) -> Vec<Vec<u32>> {
        let labels = s.labels().unwrap().chunks(s.dim);
        let each = tokens(s).chunks(s.dim).zip(labels);
        each.map(|(x, y)| {
            assert_eq!(x[1..], y[..y.len() - 1]);
            [x, &y[y.len() - 1..]].concat()
        })
        .collect()
    }

    #[test]
    fn rows_repeat_a_segment_whose_length_is_uniform() {
        let d = make(&[("vocabulary", 60000), ("context", 40), ("train", 4400)]);
        assert_eq!((d.dim, d.classes, d.outputs), (40, 60000, 60000 * 40));
        let mut counts = [0.0; 41];
        for row in whole(&d.train) {
            // Among 60000 tokens one of a segment is seldom met twice.
            let length = (10..=20).find(|l| (*l..41).all(|i| row[i] == row[i - l]));
            counts[length.unwrap()] += 1.0;
        }
        // Null: uniform over 11 lengths; chi-squared has mean 10 and variance 20.
        let chi2: f64 = counts[10..=20]
            .iter()
            .map(|c: &f64| (c - 400.0).powi(2) / 400.0)
            .sum();
        assert!(chi2 < 10.0 + 4.0 * 20f64.sqrt(), "{chi2}");
    }

    /// Null: tokens of segments are uniform over 8 values; chi-squared has mean 7 and variance 14.
    #[test]
    fn tokens_of_a_segment_are_uniform() {
        let d = make(&[
            ("vocabulary", 8),
            ("context", 20),
            ("segment", 20),
            ("train", 2000),
        ]);
        let mut counts = [0.0; 8];
        tokens(&d.train)
            .iter()
            .for_each(|t| counts[*t as usize] += 1.0);
        let chi2: f64 = counts.iter().map(|c: &f64| (c - 5e3).powi(2) / 5e3).sum();
        assert!(chi2 < 7.0 + 4.0 * 14f64.sqrt(), "{chi2}");
        assert!(whole(&d.train).iter().all(|row| row[20] == row[0]));
    }

    #[test]
    fn a_row_does_not_depend_on_how_many_are_asked_for_and_splits_differ() {
        let (few, many) = (
            make(&[("train", 50)]),
            make(&[("train", 300), ("test", 60)]),
        );
        assert_eq!(whole(&few.train), whole(&many.train)[..50]);
        let test = many.test.as_ref().unwrap();
        assert_eq!(whole(few.test.as_ref().unwrap())[..60], whole(test));
        assert_ne!(whole(test)[..50], whole(&few.train));
        assert_ne!(
            whole(&make(&[("train", 50), ("seed", 2)]).train),
            whole(&few.train)
        );
        assert!(make(&[("test", 0), ("train", 5)]).test.is_none());
        assert_eq!(few.train.bytes(), 50 * 64 * 8);
        assert!(matches!(
            few.train.targets,
            Targets::Sequence { positions: 64, .. }
        ));
        let text = few.to_string();
        assert!(
            text.contains("64 classes at each of 64 positions"),
            "{text}"
        );
        let few = build(
            &ENTRY,
            &[("train", Value::Int(50)), ("validation", Value::Float(0.1))],
        );
        assert_eq!(few.unwrap().validation.as_ref().unwrap().rows, 5);
    }

    #[test]
    fn impossible_options_are_refused() {
        let e = message(
            &ENTRY,
            &[("context", Value::Int(8)), ("segment", Value::Int(9))],
        );
        assert!(
            e.contains("'segment' is 9") && e.contains("at most the context, 8"),
            "{e}"
        );
        let huge = [
            ("context", Value::Int(1 << 20)),
            ("train", Value::Int(4_000_000_000)),
        ];
        assert!(message(&ENTRY, &huge).contains("memory"));
        assert!(message(&ENTRY, &[("vocabulary", Value::Int(65537))]).contains("65536"));
    }
}
