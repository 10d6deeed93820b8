//! `dataset::npz`: NumPy arrays, from an archive that `numpy.savez` wrote.

use super::mapped::MappedRows;
use super::{Answers, Dataset, Inputs, SEED, Scale, Split, TEST, Targets, VALIDATION, file, scale};
use crate::error::{Result, did_you_mean, in_file};
use crate::options::{Default, Entry, Kind, Options, Spec, Value, option, optional, required};
use crate::store::mapped::MappedArray;
use crate::store::npy::{self, Array, Numbers};
use anyhow::{anyhow, bail, ensure};
use file::File;
use std::io::{Cursor, Read};
use std::sync::Arc;
use zip::ZipArchive;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "npz",
    doc: "NumPy arrays from an .npz archive, as numpy.savez or numpy.savez_compressed write it.\n\
        Arrays: x_train and y_train, and x_test and y_test if there is a test split. An x has one row per example; further \
        dimensions are its shape (`data.shape`). A y of whole numbers holds class labels 0, 1, 2, …; a y of floating-point numbers holds \
        regression targets, [rows] or [rows, width]. Types: f2 f4 f8, i1 i2 i4 i8, u1 u2 u4 u8, of either byte order; C or \
        Fortran order. An x of type u1, or of i1 with values ±1 only, is kept as one byte per component.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        X_TRAIN,
        Y_TRAIN,
        X_TEST,
        Y_TEST,
        TEST_ROWS,
        VALIDATION,
        scale::COLUMNS,
        SEED,
    ],
    example: "dataset::npz(\"tests/data/example.npz\", #{ validation: 0.2 })",
    build,
};

// What files of several arrays share.
pub(super) const X_TRAIN: Spec = option(
    "x_train",
    Kind::Text,
    "x_train",
    "Name of the array of training inputs.",
);
pub(super) const Y_TRAIN: Spec = option(
    "y_train",
    Kind::Text,
    "y_train",
    "Name of the array of training targets.",
);
pub(super) const X_TEST: Spec = optional(
    "x_test",
    Kind::Text,
    "x_test, if it is there",
    "Name of the array of test inputs.",
);
pub(super) const Y_TEST: Spec = optional(
    "y_test",
    Kind::Text,
    "y_test, if it is there",
    "Name of the array of test targets.",
);
pub(super) const TEST_ROWS: Spec = Spec {
    default: Default::Is("0"),
    doc: "Fraction of the rows of x_train for the test split, the same fraction of every class, if there are no test arrays.",
    ..TEST
};

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let f = File::open(options.text("path")?)?;
    let mut archive = in_file(&f.path, Archive::open(&f))?;
    in_file(&f.path, build_from("npz", &mut archive, options))
}

/// Arrays by name.
pub(super) trait Arrays {
    /// Whether there is one.
    fn has(&self, name: &str) -> bool;

    /// What messages call it.
    fn what(&self, name: &str) -> String;

    /// It, in memory.
    fn array(&mut self, name: &str) -> Result<Array>;

    /// It, left in the file.
    fn mapped(&mut self, name: &str) -> Result<MappedArray>;

    /// The files that were read.
    fn provenance(&self) -> Vec<(String, String)>;
}

/// The data set of arrays, by the options of [`ENTRY`].
pub(super) fn build_from(
    kind: &str,
    arrays: &mut dyn Arrays,
    options: &Options,
) -> Result<Arc<Dataset>> {
    let mapped = matches!(options.get("mapped"), Some(Value::Bool(true)));
    let [x_train, y_train] = [options.text("x_train")?, options.text("y_train")?];
    let (train, shape) = split(arrays, x_train, y_train, mapped)?;
    let given = [options.opt_text("x_test"), options.opt_text("y_test")];
    let (x, y) = (given[0].unwrap_or("x_test"), given[1].unwrap_or("y_test"));
    // Arrays that were asked for, or one without the other, must not be passed over in silence.
    let wanted = given.iter().any(Option::is_some) || arrays.has(x) || arrays.has(y);
    let test = match wanted {
        true => Some(split(arrays, x, y, mapped)?.0),
        false => None,
    };
    let classes = match train.labels() {
        Some(l) => file::count_classes(&format!("{}: the labels", arrays.what(y_train)), l)?,
        None => 0,
    };
    if let Some(t) = &test {
        ensure!(
            t.dim == train.dim,
            "{} has {} components per row, but {} has {}",
            arrays.what(x),
            t.dim,
            arrays.what(x_train),
            train.dim
        );
        ensure!(
            t.labels().is_some() == train.labels().is_some(),
            "one of {} and {} holds whole numbers and the other floating-point numbers",
            arrays.what(y_train),
            arrays.what(y)
        );
        file::check_test_labels(&arrays.what(y), t, classes)?;
    }
    let (fraction, seed) = (options.float("test")?, options.int("seed")?);
    ensure!(
        test.is_none() || fraction == 0.0,
        "there is a test split, {}; leave out the option 'test'",
        arrays.what(x)
    );
    let mut notes = arrays.provenance();
    if mapped {
        let what = format!("{}, read when it is needed", arrays.what(x_train));
        notes.push(("mapped".into(), what));
    }
    let scale: Scale = options.text("scale")?.parse()?;
    let mut d = Dataset::new(kind, classes, train, test, notes)?;
    d.shape = shape;
    let d = d
        .with_test(fraction, seed)?
        .with_validation(options.float("validation")?, seed)?
        .scaled(scale)?;
    Ok(Arc::new(d))
}

/// An open archive.
pub(super) struct Archive<'a> {
    file: &'a File,
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Names of the arrays, with their place in the archive.
    pub names: Vec<(String, usize)>,
}

impl<'a> Archive<'a> {
    pub fn open(file: &'a File) -> Result<Archive<'a>> {
        let path = &file.path;
        if file.bytes.starts_with(b"\x93NUMPY") {
            bail!(
                "'{path}' is a single array (.npy); save inputs and targets together by numpy.savez"
            );
        }
        let zip = ZipArchive::new(Cursor::new(&file.bytes[..])).map_err(|e| {
            let hint = if file.bytes.starts_with(b"PK") {
                "it begins as one, so it is probably incomplete; get it again"
            } else {
                "write it by numpy.savez"
            };
            anyhow!("'{path}' is not an .npz archive ({e}); {hint}")
        })?;
        let names = (0..zip.len())
            .filter_map(|i| {
                let name = zip.name_for_index(i)?.ok()?;
                Some((name.strip_suffix(".npy")?.to_string(), i))
            })
            .collect();
        Ok(Archive { file, zip, names })
    }

    /// The array of this name.
    pub fn array(&mut self, name: &str) -> Result<Array> {
        let path = &self.file.path;
        let Some((_, index)) = self.names.iter().find(|(n, _)| n == name) else {
            let known = did_you_mean(name, self.names.iter().map(|(n, _)| n.as_str()));
            bail!("'{path}' has no array '{name}'{known}");
        };
        let wrong = |e: &dyn std::fmt::Display| anyhow!("'{path}', array '{name}': {e}");
        let mut entry = self
            .zip
            .by_index(*index)
            .map_err(|e| wrong(&format!("it cannot be read ({e})")))?;
        // A claimed size is believed only as far as compression allows: deflate packs at most 1032 to 1.
        let most = (self.file.bytes.len() as u64).saturating_mul(1032);
        npy::read(&mut entry as &mut dyn Read, most).map_err(|e| wrong(&e))
    }
}

impl Arrays for Archive<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(n, _)| n == name)
    }

    fn what(&self, name: &str) -> String {
        format!("'{}', array '{name}'", self.file.path)
    }

    fn array(&mut self, name: &str) -> Result<Array> {
        Archive::array(self, name)
    }

    fn mapped(&mut self, name: &str) -> Result<MappedArray> {
        bail!(
            "{} is in an archive and cannot be mapped; save it by numpy.save",
            self.what(name)
        )
    }

    fn provenance(&self) -> Vec<(String, String)> {
        vec![self.file.provenance()]
    }
}

/// Number of rows of an array.
fn rows(what: &str, shape: &[usize]) -> Result<usize> {
    match shape.first() {
        None => bail!("{what}: it is a single number, but one row per example is expected"),
        _ if shape.contains(&0) => bail!("{what}: it is empty, of shape {shape:?}"),
        Some(&rows) => Ok(rows),
    }
}

/// The examples in a pair of arrays, and the shape of one.
fn split(arrays: &mut dyn Arrays, x: &str, y: &str, mapped: bool) -> Result<(Split, Vec<usize>)> {
    let targets = arrays.array(y)?;
    let (x_what, y_what) = (arrays.what(x), arrays.what(y));
    let (inputs, shape, narrow) = match mapped {
        true => {
            let found = arrays.mapped(x)?;
            let shape = found.shape.clone();
            (Err(found), shape, None)
        }
        false => {
            let found = arrays.array(x)?;
            let narrow = match &found.data {
                Numbers::I8(v) if v.iter().all(|v| v.abs_diff(0) == 1) => {
                    Some(Inputs::I8(v.clone()))
                }
                Numbers::U8(v) => Some(Inputs::U8(v.clone(), 1.0)),
                _ => None,
            };
            (Ok(found.data), found.shape, narrow)
        }
    };
    let (n, m) = (rows(&x_what, &shape)?, rows(&y_what, &targets.shape)?);
    file::check_counts((&x_what, n), (&y_what, m))?;
    let dim = shape[1..].iter().product::<usize>();
    let width = targets.shape[1..].iter().product::<usize>();
    let shape = match &shape[1..] {
        [] => vec![1],
        shape => shape.to_vec(),
    };
    let targets = match targets.data {
        Numbers::Float(v) => Answers::Values {
            width,
            data: checked(&y_what, width, v)?,
        },
        other => {
            ensure!(
                width == 1,
                "{y_what}: whole numbers of shape {:?} cannot be labels; a label is one number per row, and regression targets must be \
                 floating-point numbers",
                targets.shape
            );
            let label = |(row, v): (usize, f64)| {
                file::label(v).map_err(|e| anyhow!("{y_what}: the label of row {row} {e}"))
            };
            let labels = other.into_f64().into_iter().enumerate().map(label);
            Answers::Labels(Targets::Classes(labels.collect::<Result<_>>()?))
        }
    };
    let split = match inputs {
        Ok(numbers) => {
            let mut out =
                Split::of_doubles(dim, checked(&x_what, dim, numbers.into_f64())?, targets)?;
            if let Some(narrow) = narrow {
                out.inputs = narrow;
            }
            out
        }
        Err(mapped) => {
            let values = match &targets {
                Answers::Labels(_) => 0,
                Answers::Values { data, .. } => data.len(),
            };
            let mapped = MappedRows::new(mapped, values);
            if let Some((row, column, x)) = mapped.odd() {
                bail!("{}", not_finite(&x_what, row, column, x.into()));
            }
            let targets = match targets {
                Answers::Labels(labels) => labels,
                Answers::Values { width, data } => Targets::Values {
                    width,
                    data: data.into_iter().map(|y| y as f32).collect(),
                },
            };
            Split::new(dim, Inputs::Mapped(Arc::new(mapped)), targets)?
        }
    };
    Ok((split, shape))
}

/// The numbers, or where one is not finite in single precision.
fn checked(what: &str, width: usize, data: Vec<f64>) -> Result<Vec<f64>> {
    if let Some(i) = data.iter().position(|x| !(*x as f32).is_finite()) {
        bail!("{}", not_finite(what, i / width, i % width, data[i]));
    }
    Ok(data)
}

fn not_finite(what: &str, row: usize, column: usize, x: f64) -> String {
    format!("{what}, row {row}, column {column}: {x} is not a finite single-precision number")
}

#[cfg(test)]
#[path = "npz_tests.rs"]
mod tests;
