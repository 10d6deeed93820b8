//! Data sets: the contract that models and samplers read, and the registry of the kinds a script can build.
//!
//! A data set is immutable and shared as `Arc<Dataset>`; whatever changes one (a validation split, a subset, a scaling)
//! makes a new one that shares the splits it did not touch. One file per kind:
//!
//! | kind | file | content |
//! |---|---|---|
//! | `digits` | `digits.rs` | 1797 handwritten digits, inside the program |
//! | `spin_vectors` | `spin_vectors.rs` | noisy copies of random ±1 vectors (Zambon et al., eq. 2) |
//! | `idx` | `idx.rs` | MNIST and its relatives, from files |
//! | `csv` | `csv/` | a table, from a file |
//! | `arrays` | `arrays.rs` | numbers of a script |
//! | `npz` | `npz.rs` | NumPy arrays, from a file |
//! | `npy`, `safetensors` | `tensor_files.rs` | arrays, from files, in memory or mapped |
//! | `induction` | `induction.rs` | random segments, repeated: next tokens to be copied |
//! | `text` | `text.rs`, `tokenizer.rs` | tokens, bytes or characters of a file, and the next ones |
//! | `tokens` | `tokens.rs`, `token_files.rs`, `lists.rs` | tokens from an array in a file, and the next ones |

mod arrays;
mod augment;
mod csv;
pub(crate) mod date;
mod digits;
mod divide;
mod doubles;
pub(crate) mod file;
mod form;
mod idx;
mod induction;
mod linear;
#[cfg(feature = "parquet")]
mod lists;
mod mapped;
mod missing;
pub(crate) mod moments;
mod npz;
mod project;
mod resize;
mod scale;
mod sequences;
mod show;
mod spin_vectors;
mod split;
mod tensor_files;
#[cfg(test)]
mod testing;
mod text;
mod token_files;
mod tokenizer;
mod tokens;
mod transform;

pub use augment::{Augment, Variants};
pub use doubles::{Answers, Doubles};
pub use form::{Column, Content, Form};
pub use linear::LinearRows;
pub use mapped::MappedRows;
pub use scale::Scale;
pub use spin_vectors::class_vectors;
pub use split::{Inputs, Split, Targets};
pub use transform::{Example, Target};

use crate::error::Result;
use crate::options::{Entry, Kind, Range, Spec, option, optional};
use crate::rng::{Purpose, Stream};
use anyhow::{bail, ensure};
use std::sync::Arc;

/// The data sets that a script can build, in the namespace `dataset`.
pub const REGISTRY: &[Entry<Arc<Dataset>>] = &[
    digits::ENTRY,
    spin_vectors::ENTRY,
    idx::ENTRY,
    csv::ENTRY,
    csv::PARQUET,
    arrays::ENTRY,
    npz::ENTRY,
    tensor_files::NPY,
    tensor_files::SAFETENSORS,
    induction::ENTRY,
    text::ENTRY,
    tokens::ENTRY,
];

/// Inputs and targets, divided into a training, a test and a validation split.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What summaries call it.
    pub name: String,
    /// Number of components of an input.
    pub dim: usize,
    /// Number of classes; 0 for regression.
    pub classes: usize,
    /// Number of outputs a model needs: the classes (at each position of a sequence), or the width of a target.
    pub outputs: usize,
    /// The examples that define the potential.
    pub train: Arc<Split>,
    /// The examples that measure generalisation.
    pub test: Option<Arc<Split>>,
    /// The examples that choose hyperparameters.
    pub validation: Option<Arc<Split>>,
    /// Targets of the test split without noise, row-major, where they are known.
    pub clean: Option<Arc<Vec<f32>>>,
    /// Rank of the matrix of a linear regression, where it is known.
    pub rank: Option<usize>,
    /// n of the data set whose second moments the training rows have, if they are such a compressed form.
    pub likelihood_n: Option<usize>,
    /// Training rows that are variants of one example; their number is that of the rows divided by it.
    pub copies: usize,
    /// Lengths of the axes of an input: `[28, 28]` for an image, `[dim]` for a row of numbers.
    pub shape: Vec<usize>,
    /// How the rows of its table become inputs, if it was one.
    pub form: Option<Arc<Form>>,
    /// What inputs were scaled by afterwards, column by column and one after the other: x ↦ (x - shift)·factor.
    pub scaling: Vec<Arc<Vec<(f64, f64)>>>,
    /// What classes stand for, if labels are words.
    pub class_names: Option<Arc<Vec<String>>>,
    /// What tokens stand for, if those are characters.
    pub characters: Option<Arc<Vec<char>>>,
    /// Where the data come from and what was done to them, in order.
    pub provenance: Vec<(String, String)>,
}

impl Dataset {
    /// A data set of a training and perhaps a test split, after checking that they belong together.
    ///
    /// `classes` is 0 for regression.
    pub fn new(
        name: &str,
        classes: usize,
        train: Split,
        test: Option<Split>,
        provenance: Vec<(String, String)>,
    ) -> Result<Dataset> {
        let outputs = if classes == 0 {
            train.targets.width()
        } else {
            classes * train.targets.positions()
        };
        for (which, s) in [("training", Some(&train)), ("test", test.as_ref())] {
            let Some(s) = s else { continue };
            ensure!(s.rows > 0, "{name}: the {which} split is empty");
            ensure!(
                s.dim == train.dim,
                "{name}: an input has {} components in the training split, but {} in the {which} split",
                train.dim,
                s.dim
            );
            ensure!(
                s.targets.positions() == train.targets.positions(),
                "{name}: a row has {} targets in the training split, but {} in the {which} split",
                train.targets.positions(),
                s.targets.positions()
            );
            match &s.targets {
                Targets::Classes(labels) | Targets::Sequence { labels, .. } => {
                    if let Some(i) = labels.iter().position(|&l| l as usize >= classes) {
                        bail!(
                            "{name}: the label of {} of the {which} split is {}, but there are {classes} classes",
                            sequences::place(i, s.targets.positions()),
                            labels[i]
                        );
                    }
                }
                Targets::Values { width, .. } => ensure!(
                    classes == 0 && *width == outputs,
                    "{name}: the {which} split has {width} target values per row, but {outputs} are expected"
                ),
                Targets::Made(law) => ensure!(
                    classes == 0 && law.width == outputs,
                    "{name}: the {which} split has {} target values per row, but {outputs} are expected",
                    law.width
                ),
            }
        }
        Ok(Dataset {
            name: name.into(),
            dim: train.dim,
            classes,
            outputs,
            shape: vec![train.dim],
            train: Arc::new(train),
            test: test.map(Arc::new),
            validation: None,
            clean: None,
            rank: None,
            likelihood_n: None,
            copies: 1,
            form: None,
            scaling: Vec::new(),
            class_names: None,
            characters: None,
            provenance,
        })
    }

    /// The split called `name`: "train", "test" or "validation".
    pub fn split(&self, name: &str) -> Result<&Arc<Split>> {
        if let Some((_, s)) = self.splits().find(|(n, _)| *n == name) {
            return Ok(s);
        }
        let names: Vec<_> = self.splits().map(|(n, _)| format!("\"{n}\"")).collect();
        bail!(
            "the data set '{}' has no split \"{name}\"; it has {}",
            self.name,
            crate::error::listed(&names)
        )
    }

    /// The splits there are, with their names.
    pub fn splits(&self) -> impl Iterator<Item = (&'static str, &Arc<Split>)> {
        [
            ("train", Some(&self.train)),
            ("test", self.test.as_ref()),
            ("validation", self.validation.as_ref()),
        ]
        .into_iter()
        .filter_map(|(n, s)| s.map(|s| (n, s)))
    }

    /// The first rows of every split, `rows` of the training split and as large a share of the others; for trying things out.
    pub fn cut(&self, rows: usize) -> Dataset {
        let n = self.train.rows;
        // Fewer rows of a compressed form would be another form.
        if n <= rows || self.likelihood_n.is_some() {
            return self.clone();
        }
        let cut = |s: &Arc<Split>| {
            if s.is_made() {
                return Arc::new(Split {
                    rows,
                    ..Split::clone(s)
                });
            }
            let keep: Vec<u32> = (0..(s.rows * rows / n).max(1) as u32).collect();
            Arc::new(s.select(&keep))
        };
        let note = (
            "cut".to_string(),
            format!("the first {rows} of {n} training rows"),
        );
        Dataset {
            train: cut(&self.train),
            test: self.test.as_ref().map(cut),
            validation: self.validation.as_ref().map(cut),
            clean: self.clean.as_ref().zip(self.test.as_ref()).map(|(c, t)| {
                let rows = (t.rows * rows / n).max(1);
                Arc::new(c[..rows * t.targets.width()].to_vec())
            }),
            provenance: self.provenance.iter().cloned().chain([note]).collect(),
            ..self.clone()
        }
    }

    /// Memory held by all splits, in bytes.
    pub fn bytes(&self) -> usize {
        self.splits().map(|(_, s)| s.bytes()).sum()
    }

    /// The same data set with one more line of provenance.
    fn note(mut self, what: &str, text: String) -> Dataset {
        self.provenance.push((what.into(), text));
        self
    }
}

/// What a random number of a data set is for; each use has a stream of its own, so that none shifts another.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Use {
    /// The reference vector of a class.
    ClassVector = 0,
    /// A training row.
    TrainRow = 1,
    /// A test row.
    TestRow = 2,
    /// The random projection of images.
    Projection = 3,
    /// The choice of test rows.
    TestSplit = 4,
    /// The choice of validation rows.
    Validation = 5,
    /// The choice of a stratified subset.
    PerClass = 6,
    /// A training sequence.
    TrainSequence = 7,
    /// A test sequence.
    TestSequence = 8,
    /// The choice of a subset.
    Subset = 9,
    /// What is done to a variant of an example.
    Variant = 10,
}

/// The random numbers of one use; `index` is a row, a pixel or a class.
fn stream(seed: u64, what: Use, index: u64) -> Stream {
    Stream::new(seed, Purpose::Dataset, what as usize, index)
}

// Options that several kinds share, so that they mean the same everywhere.
const SEED: Spec = option(
    "seed",
    Kind::Int(Range::NonNegative),
    "1",
    "Seed of every random choice made in building the data set.",
);
const TEST: Spec = option(
    "test",
    Kind::Float(Range::From0To1),
    "0.2",
    "Fraction of the rows kept for the test split, the same fraction of every class; 0 for no test split.",
);
const VALIDATION: Spec = option(
    "validation",
    Kind::Float(Range::From0To1),
    "0",
    "Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none.",
);
const PER_CLASS: Spec = optional(
    "per_class",
    Kind::Int(Range::AtLeast(1.0)),
    "all",
    "Number of training examples kept of every class, after test and validation rows are set aside.",
);

crate::object::object! {
    Dataset: "Dataset",
    fields: {
        "train_rows" => |d| d.train.rows.into(),
        "test_rows" => |d| d.test.as_ref().map_or(0, |s| s.rows).into(),
        "dim" => |d| d.dim.into(),
        "shape" => |d| {
            let lengths = d.shape.iter();
            crate::options::Value::List(lengths.map(|n| (*n).into()).collect())
        },
        "classes" => |d| d.classes.into(),
        "class_names" => |d| {
            let names = d.class_names.iter().flat_map(|n| n.iter());
            crate::options::Value::List(names.map(Into::into).collect())
        },
    },
    table: with_rows,
    drawing: thumbnails,
}

#[cfg(test)]
mod tests {
    use super::testing::{build, text};
    use super::*;
    use crate::options::Value;

    #[test]
    fn every_entry_has_documentation_and_an_example_that_names_it() {
        for e in REGISTRY {
            assert!(!e.doc.is_empty() && e.example.contains(&format!("dataset::{}(", e.name)));
            for a in e.arguments {
                assert!(e.options.iter().any(|o| o.name == *a), "{}: {a}", e.name);
            }
            assert!(e.options.iter().all(|o| !o.doc.is_empty()));
        }
    }

    /// The files of the examples, with the options that the example lines give.
    #[test]
    fn the_example_files_can_be_read() {
        let csv = build(&csv::ENTRY, &[("path", text("tests/data/example.csv"))]).unwrap();
        assert_eq!((csv.dim, csv.classes, csv.train.rows), (2, 3, 48));
        let npz = build(&npz::ENTRY, &[("path", text("tests/data/example.npz"))]).unwrap();
        assert_eq!((npz.dim, npz.classes, npz.outputs), (3, 0, 1));
        let given = [
            ("path", text("tests/data/idx")),
            ("project", Value::Int(20)),
        ];
        let idx = build(&idx::ENTRY, &given).unwrap();
        assert_eq!((idx.dim, idx.classes, idx.train.rows), (20, 10, 40));
    }

    #[test]
    fn a_split_that_is_not_there_is_named_with_those_that_are() {
        let d = build(&digits::ENTRY, &[]).unwrap();
        assert_eq!(d.split("train").unwrap().rows, d.train.rows);
        let e = d.split("validation").unwrap_err().to_string();
        assert_eq!(
            e,
            "the data set 'digits' has no split \"validation\"; it has \"train\", \"test\""
        );
    }

    #[test]
    fn the_summary_names_rows_classes_bytes_and_source() {
        let text = build(&digits::ENTRY, &[]).unwrap().to_string();
        for part in [
            "digits: 64 inputs [8, 8], 10 classes",
            "1438 rows",
            "359 rows",
            "per class",
            "Alpaydin",
            "CC BY 4.0",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn splits_that_do_not_belong_together_are_refused() {
        let split = |dim: usize, label| {
            Split::new(
                dim,
                Inputs::F32(vec![0.0; 2 * dim]),
                Targets::Classes(vec![0, label]),
            )
            .unwrap()
        };
        let e = |a, b| {
            Dataset::new("d", 2, a, Some(b), vec![])
                .unwrap_err()
                .to_string()
        };
        assert!(e(split(2, 1), split(3, 1)).contains("2 components in the training split, but 3"));
        assert!(e(split(2, 1), split(2, 2)).contains("label of row 1 of the test split is 2"));
    }
}
