//! Targets, potentials, priors and parameters as scripts hold them.

use super::prior::{Parameters, Prior};
use super::{Potential, Target};
use crate::diagnostic::Grid;
use crate::object::{Object, ROWS, Shown, held, object};
use crate::table::Table;
use std::sync::Arc;

object! {
    Target: "Target",
    text: |t| t.describe(),
    fields: {
        "parameters" => |t| t.dim().into(),
        "examples" => |t| t.examples().into(),
    },
    table: table,
}

impl Target {
    /// What it is made of.
    fn table(&self) -> Table {
        let mut out = Table::new(["target", ""]);
        let potential = self.potential.describe();
        for (k, line) in potential.lines().enumerate() {
            out.push([if k == 0 { "loss L" } else { "" }, line.trim()]);
        }
        out.push(["examples n", &self.examples().to_string()]);
        out.push(["parameters N", &self.dim().to_string()]);
        let energy = format!("U = s·L + R, {}", self.scale_in_words());
        out.push(["energy", &energy]);
        out.push(["prior R", self.prior.describe()]);
        out
    }
}

object!(dyn Potential: "Potential", text: |p| p.describe());
held!(Arc<dyn Potential> => dyn Potential, |p| &**p);

object!(Prior: "Prior", text: |p| format!("{p:?}"));

object! {
    Grid: "Grid",
    text: |g| {
        let (x, y) = g.shape();
        format!("a density on {x} × {y} cells, {:.3} outside", g.outside())
    },
}

impl Object for Parameters {
    const NAME: &'static str = "Parameters";

    fn text(&self) -> String {
        let length = self.vectors.first().map_or(0, |v| v.len());
        format!(
            "{} parameter vectors of length {length}",
            self.vectors.len()
        )
    }

    fn shown(&self) -> Shown {
        // Vectors may be long and many; no more is shown.
        let row = |v: &Arc<Vec<f32>>| v.iter().take(ROWS + 1).map(|x| f64::from(*x)).collect();
        let rows: Vec<_> = self.vectors.iter().take(ROWS + 1).map(row).collect();
        Shown::matrix(&self.text(), &rows)
    }
}
