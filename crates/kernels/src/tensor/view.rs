//! What a pass reads of an operand.

/// Numbers of an operand: those of row r begin at `r·stride`, which is 0 where all rows have the same.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub width: usize,
}

impl<'a> View<'a> {
    pub fn row(&self, r: usize) -> &'a [f32] {
        &self.data[r * self.stride..][..self.width]
    }
}
