//! The exact law of a target of two parameters, on a grid.

use super::{Target, Workspace};
use crate::diagnostic::Grid;
use crate::error::Result;
use crate::options::{Kind, Options, Range, Spec, option, required};
use std::cell::RefCell;

/// Options of `grid::posterior(target, #{…})`.
pub const OPTIONS: &[Spec] = &[
    required(
        "x",
        Kind::Floats(Range::Any),
        "[from, to] of the first parameter.",
    ),
    required(
        "y",
        Kind::Floats(Range::Any),
        "[from, to] of the second parameter.",
    ),
    option(
        "cells",
        Kind::Int(Range::Between(2.0, 2000.0)),
        "200",
        "Cells along each axis.",
    ),
    option(
        "temperature",
        Kind::Float(Range::Positive),
        "1",
        "Temperature T.",
    ),
    option(
        "points",
        Kind::Int(Range::Between(1.0, 20.0)),
        "2",
        "Points per cell and axis at which the density is taken.",
    ),
];

/// exp(-U/T) on a grid, normalised over it.
pub fn posterior(target: &Target, o: &Options) -> Result<Grid> {
    let n = target.dim();
    anyhow::ensure!(
        n == 2,
        "{}: the target has {n} parameters, a grid needs two",
        o.owner()
    );
    anyhow::ensure!(
        o.size("cells")? * o.size("points")? <= 8000,
        "{}: cells × points is more than 8000 along an axis",
        o.owner()
    );
    let (cells, temperature) = (o.size("cells")?, o.float("temperature")?);
    let edges = |name: &str| -> Result<Vec<f64>> {
        match o.floats(name).as_deref() {
            Some([from, to]) if from < to => {
                let width = (to - from) / cells as f64;
                let edges: Vec<f64> = (0..=cells).map(|i| from + width * i as f64).collect();
                anyhow::ensure!(
                    edges.windows(2).all(|e| e[0] < e[1]),
                    "{}: option '{name}' is too narrow for {cells} cells",
                    o.owner()
                );
                Ok(edges)
            }
            _ => anyhow::bail!(
                "{}: option '{name}' must be [from, to] with from < to",
                o.owner()
            ),
        }
    };
    let work = RefCell::new(Workspace::default());
    let failed = RefCell::new(None);
    let log_density = |x: f64, y: f64| {
        let at = [x as f32, y as f32];
        match target.energies(&at, &mut work.borrow_mut()) {
            Ok(e) => -e.total / temperature,
            Err(e) => {
                failed.borrow_mut().get_or_insert(e);
                f64::NAN
            }
        }
    };
    let grid = Grid::from_log_density(&edges("x")?, &edges("y")?, o.size("points")?, log_density);
    if let Some(e) = failed.into_inner() {
        return Err(e);
    }
    let grid = grid.filter(|g| g.cells().iter().all(|p| p.is_finite()));
    grid.ok_or_else(|| anyhow::anyhow!("{}: the density is not finite on this grid", o.owner()))
}
