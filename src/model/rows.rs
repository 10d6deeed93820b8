//! What losses are of: the targets of some rows, and sums over them.

/// The targets of one tile, row by row.
#[derive(Debug, Clone, Copy)]
pub enum TileTargets<'a> {
    /// `[rows, positions]`: a class per row, or per position of a row.
    Classes(&'a [u16]),
    /// `[rows, width]` values.
    Values(&'a [f32]),
}

impl TileTargets<'_> {
    /// Those of the first `rows` rows, which are taken off; `positions` labels or `width` values per row.
    pub fn take(&mut self, rows: usize, positions: usize, width: usize) -> Self {
        match self {
            Self::Classes(all) => {
                let (first, rest) = all.split_at(rows * positions);
                *all = rest;
                Self::Classes(first)
            }
            Self::Values(all) => {
                let (first, rest) = all.split_at(rows * width);
                *all = rest;
                Self::Values(first)
            }
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
