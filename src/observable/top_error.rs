//! The share of examples whose label is not among the most probable classes.

use super::{Handle, Observable, View};
use crate::error::Result;
use crate::options::{Entry, Kind, Range, required};
use crate::target::Target;
use anyhow::ensure;
use std::sync::Arc;

struct TopError {
    most: usize,
    split: String,
}

/// `observable::top_error`.
pub const ENTRY: Entry<Handle> = Entry {
    name: "top_error",
    doc: "The fraction of examples on a split whose label is not among the k largest outputs; of sequences, of all positions. An output as large as that of the label counts as larger.\n\n\
          Its trace is called `top5_error` on the training split, `top5_error_test` on the test split. Costs a forward pass over the split per record.",
    arguments: &["k", "split"],
    options: &[
        required(
            "k",
            Kind::Int(Range::AtLeast(1.0)),
            "How many classes are looked at; with 1 it is the error.",
        ),
        super::basic::SPLIT,
    ],
    example: "observable::top_error(3, \"test\")",
    build: |o| {
        Ok(Arc::new(Box::new(TopError {
            most: o.size("k")?,
            split: o.text("split")?.into(),
        })))
    },
};

impl Observable for TopError {
    fn name(&self) -> String {
        let k = self.most;
        match &*self.split {
            "train" => format!("top{k}_error"),
            split => format!("top{k}_error_{split}"),
        }
    }

    fn check(&self, target: &Target) -> Result<()> {
        let network = target.network("observable::top_error")?;
        let split = network.dataset().split(&self.split)?;
        let classes = network.dataset().classes;
        ensure!(
            split.labels().is_some(),
            "observable::top_error: the data set has no classes, so there are no classification errors"
        );
        ensure!(
            network.model().outputs() == classes * network.model().positions(),
            "observable::top_error: the outputs of the model are not one for each class"
        );
        ensure!(
            self.most < classes,
            "observable::top_error: k is {}, but there are only {classes} classes",
            self.most
        );
        Ok(())
    }

    fn outputs(&self) -> Option<&str> {
        Some(&self.split)
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let network = view.target.network("observable::top_error")?;
        let split = network.dataset().split(&self.split)?;
        let labels = split.labels().unwrap_or_default();
        let outputs = view.outputs(&self.split)?;
        let classes = outputs.len() / labels.len().max(1);
        let wrong = |(z, label): (&[f32], &u32)| {
            let own = z[*label as usize];
            // As large as its own, or not a number.
            let before = z
                .iter()
                .filter(|x| x.partial_cmp(&&own).is_none_or(|o| o.is_ge()));
            before.count() > self.most
        };
        let rows = outputs.chunks_exact(classes).zip(labels);
        out[0] = rows.filter(|row| wrong(*row)).count() as f64 / labels.len() as f64;
        Ok(())
    }
}
