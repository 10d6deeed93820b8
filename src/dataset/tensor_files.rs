//! `dataset::npy` and `dataset::safetensors`: arrays in files, in memory or mapped.

use super::npz::{self, Arrays};
use super::{Dataset, SEED, VALIDATION, file, scale};
use crate::error::{Result, in_file};
use crate::options::{Entry, Kind, Spec, option, optional, required};
use crate::store::mapped::MappedArray;
use crate::store::npy::{self, Array};
use anyhow::{Context, anyhow};
use std::sync::Arc;

const MAPPED: Spec = option(
    "mapped",
    Kind::Bool,
    "false",
    "Whether inputs stay in the file and are read when a batch needs them, for data larger than the memory; targets are always in memory. The minibatches are those of data in memory, \
     to the last bit. The file must not be changed while a run goes on; on accelerators this does not work.",
);

pub(super) const NPY: Entry<Arc<Dataset>> = Entry {
    name: "npy",
    doc: "NumPy arrays, each in its .npy file, as numpy.save writes them.\n\
        Inputs and targets are those that dataset::npz describes. With `mapped: true` inputs are read from the file as they are needed.",
    arguments: &["x_train", "y_train"],
    options: &[
        required("x_train", Kind::Text, "File of the training inputs."),
        required("y_train", Kind::Text, "File of the training targets."),
        optional("x_test", Kind::Text, "none", "File of the test inputs."),
        optional("y_test", Kind::Text, "none", "File of the test targets."),
        MAPPED,
        npz::TEST_ROWS,
        VALIDATION,
        scale::COLUMNS,
        SEED,
    ],
    example: "dataset::npy(\"tests/data/x.npy\", \"tests/data/y.npy\", #{ test: 0.2, mapped: true })",
    build: |o| npz::build_from("npy", &mut Files::default(), o),
};

pub(super) const SAFETENSORS: Entry<Arc<Dataset>> = Entry {
    name: "safetensors",
    doc: "Tensors of a safetensors file, as PyTorch's `safetensors.torch.save_file` writes it.\n\
        Tensors: x_train and y_train, and x_test and y_test if there is a test split, as dataset::npz describes them; bf16 and f16 are read too. \
        With `mapped: true` inputs are read from the file as they are needed.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        npz::X_TRAIN,
        npz::Y_TRAIN,
        npz::X_TEST,
        npz::Y_TEST,
        MAPPED,
        npz::TEST_ROWS,
        VALIDATION,
        scale::COLUMNS,
        SEED,
    ],
    example: "dataset::safetensors(tensor::save(\"data.safetensors\", #{ x_train: tensor([[0.0], [1.0], [2.0]]), y_train: tensor([0.5, 1.5, 2.5]) }))",
    build: |o| npz::build_from("safetensors", &mut Tensors(o.text("path")?), o),
};

/// Arrays of which each has its file, by path.
#[derive(Default)]
struct Files {
    read: Vec<(String, String)>,
}

impl Arrays for Files {
    fn has(&self, _: &str) -> bool {
        // Only what is named.
        false
    }

    fn what(&self, path: &str) -> String {
        format!("'{path}'")
    }

    fn array(&mut self, path: &str) -> Result<Array> {
        let f = file::File::open(path)?;
        let content = f.content()?;
        let read = npy::read(&mut &content[..], content.len() as u64);
        self.read.push(f.provenance());
        in_file(path, read.map_err(|e| anyhow!("'{path}': {e}")))
    }

    fn mapped(&mut self, path: &str) -> Result<MappedArray> {
        in_file(path, MappedArray::npy(path))
    }

    fn provenance(&self) -> Vec<(String, String)> {
        self.read.clone()
    }
}

/// The tensors of a safetensors file.
struct Tensors<'a>(&'a str);

impl Arrays for Tensors<'_> {
    fn has(&self, name: &str) -> bool {
        MappedArray::tensor(self.0, name).is_ok()
    }

    fn what(&self, name: &str) -> String {
        format!("'{}', tensor '{name}'", self.0)
    }

    fn array(&mut self, name: &str) -> Result<Array> {
        let found = in_file(self.0, MappedArray::tensor(self.0, name))?;
        Ok(Array {
            data: found.numbers().with_context(|| self.what(name))?,
            shape: found.shape,
            single: false,
        })
    }

    fn mapped(&mut self, name: &str) -> Result<MappedArray> {
        in_file(self.0, MappedArray::tensor(self.0, name))
    }

    fn provenance(&self) -> Vec<(String, String)> {
        vec![("file".into(), self.0.into())]
    }
}
