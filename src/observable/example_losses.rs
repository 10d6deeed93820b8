//! The losses of single examples: what influence, susceptibilities and the singular fluctuation are made of.

use super::{Handle, Observable, View};
use crate::error::Result;
use crate::options::{Entry, Kind, Range, option};
use crate::target::Target;
use std::sync::Arc;

/// ℓ_i(w) for some rows of a split.
struct ExampleLosses {
    split: String,
    rows: usize,
    /// Whether each position of a row is an example.
    positions: bool,
}

/// What an example is.
const EACH: [&str; 2] = ["row", "position"];

/// Name of the trace of a split: "example_losses", "example_losses_test".
pub fn name(split: &str) -> String {
    format!("example_losses{}", suffix(split))
}

fn suffix(split: &str) -> String {
    match split {
        "train" => String::new(),
        other => format!("_{other}"),
    }
}

/// `count` of `all` rows, spread evenly: the first rows of a file are alike.
fn spread(count: usize, all: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |k| (k as u64 * all as u64 / count as u64) as usize)
}

/// `observable::example_losses`.
pub const ENTRY: Entry<Handle> = Entry {
    name: "example_losses",
    doc: "The loss ℓ_i(w) of single examples: rows of a split, spread evenly over it.\n\n\
          Its trace is called example_losses, or example_losses_test for the test split, and has one more dimension, whose labels are the rows (\"7\"), or rows and positions \
          (\"7.31\"); `data.row(split, 7)` shows one. With `observe: [observable::example_losses()]` an estimate of a learning coefficient has \
          `influence()`, `susceptibilities()` and `singular_fluctuation()`. Costs a forward pass over these rows per record.",
    arguments: &[],
    options: &[
        option(
            "split",
            Kind::Choice(&["train", "test", "validation"]),
            "train",
            "The split.",
        ),
        option(
            "rows",
            Kind::Int(Range::AtLeast(1.0)),
            "100",
            "How many rows: of n, every (n/rows)-th.",
        ),
        option(
            "each",
            Kind::Choice(&EACH),
            "row",
            "What an example is: a row, whose loss is the mean over its positions, or each position of a row (a token of a sequence).",
        ),
    ],
    example: "observable::example_losses(#{ split: \"test\", rows: 20 })",
    build: |o| {
        Ok(Arc::new(Box::new(ExampleLosses {
            split: o.text("split")?.into(),
            rows: o.size("rows")?,
            positions: o.text("each")? == EACH[1],
        })))
    },
};

impl Observable for ExampleLosses {
    fn name(&self) -> String {
        name(&self.split)
    }

    fn components(&self, target: &Target) -> Option<(String, Vec<String>)> {
        let (all, positions) = target.potential().rows_and_positions(&self.split).ok()?;
        let rows = spread(self.rows, all);
        let labels: Vec<_> = match self.positions {
            false => rows.map(|r| r.to_string()).collect(),
            true => rows
                .flat_map(|r| (0..positions).map(move |p| format!("{r}.{p}")))
                .collect(),
        };
        // Of its own for each split: one dimension has one length.
        let each = EACH[usize::from(self.positions)];
        Some((format!("{each}{}", suffix(&self.split)), labels))
    }

    fn check(&self, target: &Target) -> Result<()> {
        let (rows, _) = target.potential().rows_and_positions(&self.split)?;
        anyhow::ensure!(
            self.rows <= rows,
            "observable::example_losses: the split \"{}\" has {rows} rows, not {}; give rows: {rows} or less",
            self.split,
            self.rows
        );
        Ok(())
    }

    fn examples(&self, target: &Target) -> Result<Option<(String, Vec<u32>)>> {
        let (all, _) = target.potential().rows_and_positions(&self.split)?;
        let rows = spread(self.rows, all).map(|r| r as u32).collect();
        Ok(Some((self.split.clone(), rows)))
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let (all, _) = view.target.potential().rows_and_positions(&self.split)?;
        let rows: Vec<u32> = spread(self.rows, all).map(|r| r as u32).collect();
        let losses = view.example_losses(&self.split, &rows)?;
        // A row's loss is the mean over as many positions as it has more losses than there are components.
        let of_each = losses.len() / out.len();
        for (out, each) in out.iter_mut().zip(losses.chunks_exact(of_each)) {
            *out = each.iter().sum::<f64>() / of_each as f64;
        }
        Ok(())
    }
}
