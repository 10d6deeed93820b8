//! The losses of single examples: what influence, susceptibilities and the singular fluctuation are made of.

use super::{Handle, Observable, View};
use crate::error::Result;
use crate::options::{Entry, Kind, Range, option};
use crate::target::Target;
use std::sync::Arc;

/// ℓ_i(w) for the first rows of a split.
struct ExampleLosses {
    split: String,
    rows: usize,
    /// Whether each position of a row is an example.
    positions: bool,
}

/// Name of the trace.
pub const NAME: &str = "example_losses";

/// Names of its dimension: a component is a row, or a position of one.
pub const DIMENSIONS: [&str; 2] = ["row", "position"];

/// `observable::example_losses`.
pub const ENTRY: Entry<Handle> = Entry {
    name: NAME,
    doc: "The loss ℓ_i(w) of each of the first rows of a split, one by one.\n\n\
          Its trace has one more dimension, `row` or `position`. With `observe: [observable::example_losses()]` an estimate of a learning coefficient has \
          `influence()`, `susceptibilities()` and `singular_fluctuation()`. Costs a forward pass over these rows per record.",
    arguments: &[],
    options: &[
        option(
            "split",
            Kind::Text,
            "train",
            "\"train\", \"test\" or \"validation\".",
        ),
        option(
            "rows",
            Kind::Int(Range::AtLeast(1.0)),
            "100",
            "How many rows, from the first on.",
        ),
        option(
            "each",
            Kind::Choice(&DIMENSIONS),
            "row",
            "What an example is: a row, whose loss is the mean over its positions, or each position of a row (a token of a sequence).",
        ),
    ],
    example: "observable::example_losses(#{ split: \"test\", rows: 20 })",
    build: |o| {
        Ok(Arc::new(Box::new(ExampleLosses {
            split: o.text("split")?.into(),
            rows: o.size("rows")?,
            positions: o.text("each")? == DIMENSIONS[1],
        })))
    },
};

impl Observable for ExampleLosses {
    fn name(&self) -> String {
        NAME.into()
    }

    fn components(&self, target: &Target) -> Option<(String, Vec<String>)> {
        let (_, positions) = target.potential().rows_and_positions(&self.split).ok()?;
        let labels: Vec<_> = match self.positions {
            false => (0..self.rows).map(|r| r.to_string()).collect(),
            true => (0..self.rows)
                .flat_map(|r| (0..positions).map(move |p| format!("{r}.{p}")))
                .collect(),
        };
        Some((DIMENSIONS[usize::from(self.positions)].into(), labels))
    }

    fn check(&self, target: &Target) -> Result<()> {
        let (rows, _) = target.potential().rows_and_positions(&self.split)?;
        anyhow::ensure!(
            self.rows <= rows,
            "observable::example_losses: the split \"{}\" has {rows} rows, not {}",
            self.split,
            self.rows
        );
        Ok(())
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let rows: Vec<u32> = (0..self.rows as u32).collect();
        let potential = view.target.potential();
        let losses = potential.example_losses(view.chain.w, &self.split, &rows)?;
        // A row's loss is the mean over as many positions as it has more losses than there are components.
        let of_each = losses.len() / out.len();
        for (out, each) in out.iter_mut().zip(losses.chunks_exact(of_each)) {
            *out = each.iter().sum::<f64>() / of_each as f64;
        }
        Ok(())
    }
}
