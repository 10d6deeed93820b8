//! `dataset::npz`: NumPy arrays, from an archive that `numpy.savez` wrote.

use super::{
    Answers, Dataset, Inputs, SEED, Scale, Split, TEST, Targets, VALIDATION, file, scale,
};
use crate::error::{Result, did_you_mean, in_file};
use crate::options::{Default, Entry, Kind, Options, Spec, option, optional, required};
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
        regression targets, [rows] or [rows, width]. Types: f4 f8, i1 i2 i4 i8, u1 u2 u4 u8, of either byte order; C or \
        Fortran order. An x of type i1 with values ±1 only is kept as one byte per component.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        option(
            "x_train",
            Kind::Text,
            "x_train",
            "Name of the array of training inputs.",
        ),
        option(
            "y_train",
            Kind::Text,
            "y_train",
            "Name of the array of training targets.",
        ),
        optional(
            "x_test",
            Kind::Text,
            "x_test, if it is there",
            "Name of the array of test inputs.",
        ),
        optional(
            "y_test",
            Kind::Text,
            "y_test, if it is there",
            "Name of the array of test targets.",
        ),
        Spec {
            default: Default::Is("0"),
            doc: "Fraction of the rows of x_train for the test split, the same fraction of every class, if the file has none.",
            ..TEST
        },
        VALIDATION,
        scale::COLUMNS,
        SEED,
    ],
    example: "dataset::npz(\"tests/data/example.npz\", #{ validation: 0.2 })",
    build,
};

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let f = File::open(options.text("path")?)?;
    let mut archive = in_file(&f.path, Archive::open(&f))?;
    let train = archive.split(options.text("x_train")?, options.text("y_train")?);
    let (train, shape) = in_file(&f.path, train)?;
    let given = [options.opt_text("x_test"), options.opt_text("y_test")];
    let (x, y) = (given[0].unwrap_or("x_test"), given[1].unwrap_or("y_test"));
    // Arrays that were asked for, or one without the other, must not be passed over in silence.
    let wanted = given.iter().any(Option::is_some) || archive.has(x) || archive.has(y);
    let test = if wanted {
        Some(in_file(&f.path, archive.split(x, y))?.0)
    } else {
        None
    };
    let path = &f.path;
    let classes = match train.labels() {
        Some(l) => file::count_classes(
            &format!("'{path}': the labels in {}", options.text("y_train")?),
            l,
        )?,
        None => 0,
    };
    if let Some(t) = &test {
        ensure!(
            t.dim == train.dim,
            "'{path}': {x} has {} components per row, but {} has {}",
            t.dim,
            options.text("x_train")?,
            train.dim
        );
        ensure!(
            t.labels().is_some() == train.labels().is_some(),
            "'{path}': one of {} and {y} holds whole numbers and the other floating-point numbers",
            options.text("y_train")?
        );
        file::check_test_labels(&format!("'{path}': {y}"), t, classes)?;
    }
    let scale: Scale = options.text("scale")?.parse()?;
    let (fraction, seed) = (options.float("test")?, options.int("seed")?);
    ensure!(
        test.is_none() || fraction == 0.0,
        "'{path}' has a test split, {x} and {y}; leave out the option 'test'"
    );
    let mut d = Dataset::new("npz", classes, train, test, vec![f.provenance()])?;
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

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(n, _)| n == name)
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

    /// The examples in a pair of arrays, and the shape of one.
    fn split(&mut self, x: &str, y: &str) -> Result<(Split, Vec<usize>)> {
        let (inputs, targets) = (self.array(x)?, self.array(y)?);
        let path = &self.file.path;
        let rows = |name: &str, a: &Array| -> Result<usize> {
            match a.shape.first() {
                None => bail!(
                    "'{path}', array '{name}': it is a single number, but one row per example is expected"
                ),
                _ if a.shape.contains(&0) => bail!(
                    "'{path}', array '{name}': it is empty, of shape {:?}",
                    a.shape
                ),
                Some(&rows) => Ok(rows),
            }
        };
        let (n, m) = (rows(x, &inputs)?, rows(y, &targets)?);
        file::check_counts((&format!("'{path}': {x}"), n), (y, m))?;
        let dim = inputs.shape[1..].iter().product::<usize>();
        let width = targets.shape[1..].iter().product::<usize>();
        let shape = match &inputs.shape[1..] {
            [] => vec![1],
            shape => shape.to_vec(),
        };
        let spins = match &inputs.data {
            Numbers::I8(v) if v.iter().all(|v| v.abs_diff(0) == 1) => Some(v.clone()),
            _ => None,
        };
        let numbers = checked(path, x, dim, inputs.data.into_f64())?;
        let targets = match targets.data {
            Numbers::Float(v) => Answers::Values {
                width,
                data: checked(path, y, width, v)?,
            },
            other => {
                ensure!(
                    width == 1,
                    "'{path}', array '{y}': whole numbers of shape {:?} cannot be labels; a label is one number per row, and \
                     regression targets must be floating-point numbers",
                    targets.shape
                );
                let label = |(row, v): (usize, f64)| {
                    file::label(v)
                        .map_err(|e| anyhow!("'{path}', array '{y}': the label of row {row} {e}"))
                };
                let labels = other.into_f64().into_iter().enumerate().map(label);
                Answers::Labels(Targets::Classes(labels.collect::<Result<_>>()?))
            }
        };
        let mut out = Split::of_doubles(dim, numbers, targets)?;
        if let Some(spins) = spins {
            out.inputs = Inputs::I8(spins);
        }
        Ok((out, shape))
    }
}

/// The numbers, or where one is not finite in single precision.
fn checked(path: &str, name: &str, width: usize, data: Vec<f64>) -> Result<Vec<f64>> {
    if let Some(i) = data.iter().position(|x| !(*x as f32).is_finite()) {
        bail!(
            "'{path}', array '{name}', row {}, column {}: {} is not a finite single-precision number",
            i / width,
            i % width,
            data[i]
        );
    }
    Ok(data)
}

#[cfg(test)]
#[path = "npz_tests.rs"]
mod tests;
