//! Laws on a grid, in scripts.

use super::binder::Binder;
use super::words::a_kind;
use super::{Bound, raise};
use crate::diagnostic::{Grid, expected_total_variation, total_variation};
use anyhow::anyhow;
use rhai::{Array, Dynamic};
use std::sync::Arc;

fn floats(x: impl Iterator<Item = f64>) -> Array {
    x.map(Dynamic::from).collect()
}

/// The numbers of an array.
pub(super) fn numbers(a: &Array, what: &str) -> Bound<Vec<f64>> {
    let one = |x: &Dynamic| x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
    let all: std::result::Result<Vec<f64>, _> = a.iter().map(one).collect();
    all.map_err(|t| raise(anyhow!("{what}: an element is {}, not a number", a_kind(t))))
}

fn centres(edges: &[f64]) -> Array {
    floats(edges.windows(2).map(|e| 0.5 * (e[0] + e[1])))
}

pub(super) fn bind(b: &mut Binder) {
    b.function(
        "grid.histogram(x, y) -> Grid",
        "Samples of the two parameters, as arrays, on the cells of this grid.",
        |g: &mut Arc<Grid>, x: Array, y: Array| -> Bound<Arc<Grid>> {
            let (x, y) = (numbers(&x, "grid.histogram")?, numbers(&y, "grid.histogram")?);
            if x.len() != y.len() || x.is_empty() {
                return Err(raise(anyhow!(
                    "grid.histogram: {} x values for {} y values; there must be as many, and at least one",
                    x.len(),
                    y.len()
                )));
            }
            let histogram = Grid::histogram(g.x_edges(), g.y_edges(), &x, &y);
            histogram.map(Arc::new).ok_or_else(|| raise(anyhow!("grid.histogram: no cells")))
        },
    )
    .function(
        "grid.total_variation(other) -> number",
        "½ Σ |p - q| over the cells, and what lies outside: 0 for equal laws, 1 for laws that do not overlap.",
        |g: &mut Arc<Grid>, other: Arc<Grid>| -> Bound<f64> {
            match g.x_edges() == other.x_edges() && g.y_edges() == other.y_edges() {
                true => Ok(total_variation(g, &other)),
                false => Err(raise(anyhow!("grid.total_variation: the grids have different cells"))),
            }
        },
    )
    .function(
        "grid.expected_total_variation(draws) -> number",
        "The mean total variation between this law and that many independent draws from it: what a perfect sampler would reach.",
        |g: &mut Arc<Grid>, n: i64| expected_total_variation(g, n.max(1) as usize),
    )
    .function("grid.x() -> array", "Centres of the cells along x.", |g: &mut Arc<Grid>| {
        centres(g.x_edges())
    })
    .function("grid.y() -> array", "Centres of the cells along y.", |g: &mut Arc<Grid>| {
        centres(g.y_edges())
    })
    .function(
        "grid.cells() -> array",
        "The probabilities of the cells, row by row (y), for plot::contours(grid.x(), grid.y(), grid.cells()).",
        |g: &mut Arc<Grid>| -> Array {
            // The grid has x first.
            let rows = g.shape().1;
            let row = |j: usize| floats(g.cells().iter().skip(j).step_by(rows).copied());
            (0..rows).map(|j| Dynamic::from(row(j))).collect()
        },
    );
}
