//! What losses are of: the targets of some rows, and sums over them.

use std::ops::Range;

/// What the rows of one tile are compared with, and what they count.
#[derive(Debug, Clone, Copy)]
pub struct TileTargets<'a> {
    /// The targets.
    pub of: RowTargets<'a>,
    /// A weight per row, which multiplies its loss; empty where all are 1.
    pub weights: &'a [f32],
}

/// The targets of some rows, row by row.
#[derive(Debug, Clone, Copy)]
pub enum RowTargets<'a> {
    /// `[rows, positions]`: a class per row, or per position of a row.
    Classes(&'a [u32]),
    /// `[rows, width]` values.
    Values(&'a [f32]),
}

impl<'a> TileTargets<'a> {
    /// Rows that all count alike.
    pub fn alike(of: RowTargets<'a>) -> Self {
        Self { of, weights: &[] }
    }

    /// Those of some of the positions of all rows, `positions` per row: of whole rows, or of a part of one. A row without labels has `width` values.
    pub fn part(&self, at: Range<usize>, positions: usize, width: usize) -> Self {
        let rows = at.start / positions..at.end.div_ceil(positions);
        Self {
            weights: match self.weights {
                [] => &[],
                all => &all[rows.clone()],
            },
            of: match self.of {
                RowTargets::Classes(all) => RowTargets::Classes(&all[at]),
                RowTargets::Values(all) => {
                    RowTargets::Values(&all[rows.start * width..rows.end * width])
                }
            },
        }
    }
}

/// Sums over the rows of a tile.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// Sum of the losses.
    pub loss: f64,
    /// Rows that are classified wrongly (0 for regression); of a row with several positions, the fraction of those that are.
    pub errors: f64,
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, o: Self) {
        self.loss += o.loss;
        self.errors += o.errors;
    }
}
