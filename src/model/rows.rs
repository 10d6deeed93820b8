//! What losses are of: the targets of some rows, and sums over them.

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

/// The first so many, which are taken off.
fn first<'a, T>(all: &mut &'a [T], count: usize) -> &'a [T] {
    let (first, rest) = all.split_at(count);
    *all = rest;
    first
}

impl<'a> TileTargets<'a> {
    /// Rows that all count alike.
    pub fn alike(of: RowTargets<'a>) -> Self {
        Self { of, weights: &[] }
    }

    /// Those of the first `rows` rows, which are taken off; `positions` labels or `width` values per row.
    pub fn take(&mut self, rows: usize, positions: usize, width: usize) -> Self {
        let count = if self.weights.is_empty() { 0 } else { rows };
        Self {
            of: match &mut self.of {
                RowTargets::Classes(all) => RowTargets::Classes(first(all, rows * positions)),
                RowTargets::Values(all) => RowTargets::Values(first(all, rows * width)),
            },
            weights: first(&mut self.weights, count),
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
