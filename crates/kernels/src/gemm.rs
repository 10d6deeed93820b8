//! Matrix products on row-major slices, one thread each; parallelism is over chains and shards, never inside a product.

mod product;
#[cfg(test)]
mod tests;
mod tile;
mod transpose;

use gemm::{Parallelism, gemm};
use std::ops::Range;

/// A matrix in a slice: rows, columns, and the distance between neighbours in each direction.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T = f32> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

/// Numbers from the first to the last of a matrix whose rows are so far apart.
fn reach(rows: usize, columns: usize, stride: usize) -> usize {
    match rows {
        0 => 0,
        _ => (rows - 1) * stride + columns,
    }
}

impl<'a, T: Copy> Matrix<'a, T> {
    /// A row-major matrix; the slice may be longer than needed.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        assert!(data.len() >= rows * columns, "matrix larger than its slice");
        Self {
            data,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
    }

    /// Rows that are so far apart.
    pub fn strided(data: &'a [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(
            data.len() >= reach(rows, columns, stride),
            "matrix larger than its slice"
        );
        Self {
            data,
            rows,
            columns,
            row_stride: stride,
            column_stride: 1,
        }
    }

    /// Rows and columns.
    pub fn shape(self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Its transpose, without moving anything.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

impl<T: Copy> Matrix<'_, T> {
    /// Some of its rows.
    pub fn rows(self, range: Range<usize>) -> Self {
        self.transposed().columns(range).transposed()
    }

    /// Some of its columns.
    pub fn columns(self, range: Range<usize>) -> Self {
        assert!(range.end <= self.columns, "columns of a matrix");
        Self {
            data: &self.data[range.start * self.column_stride..],
            columns: range.len(),
            ..self
        }
    }
}

/// Some rows and columns of a row-major matrix that is being written; the others may be written by other threads meanwhile.
pub struct Part<'a> {
    start: *mut f32,
    /// Which rows.
    pub rows: Range<usize>,
    /// Which columns.
    pub columns: Range<usize>,
    stride: usize,
    matrix: std::marker::PhantomData<&'a mut f32>,
}

// SAFETY: the parts of a matrix share no element, and each is borrowed from it exclusively.
unsafe impl Send for Part<'_> {}

impl<'a> Part<'a> {
    /// A whole row-major matrix.
    pub fn whole(data: &'a mut [f32], rows: usize, columns: usize) -> Self {
        assert!(data.len() >= rows * columns, "matrix larger than its slice");
        Self {
            start: data.as_mut_ptr(),
            rows: 0..rows,
            columns: 0..columns,
            stride: columns,
            matrix: std::marker::PhantomData,
        }
    }

    /// A matrix whose rows are so far apart.
    pub fn strided(data: &'a mut [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(
            (rows < 2 || columns <= stride) && data.len() >= reach(rows, columns, stride),
            "matrix larger than its slice"
        );
        Self {
            start: data.as_mut_ptr(),
            rows: 0..rows,
            columns: 0..columns,
            stride,
            matrix: std::marker::PhantomData,
        }
    }

    /// Some columns of a row-major matrix of `stride` columns: a head of several, say.
    pub fn columns(data: &'a mut [f32], rows: usize, stride: usize, columns: Range<usize>) -> Self {
        assert!(
            columns.start <= columns.end && columns.end <= stride,
            "columns of a matrix"
        );
        let whole = Self::whole(data, rows, stride);
        Self {
            // Of a matrix without rows this is never followed.
            start: whole.start.wrapping_add(columns.start),
            columns,
            ..whole
        }
    }

    /// About `count` parts of a matrix: groups of columns of a wide one, groups of rows otherwise.
    ///
    /// The sizes are multiples of what the micro-kernels of the products work on, 64 columns and 6 rows.
    pub fn split(data: &'a mut [f32], rows: usize, columns: usize, count: usize) -> Vec<Self> {
        let whole = Self::whole(data, rows, columns);
        if rows * columns == 0 {
            return Vec::new();
        }
        let is_wide = columns >= 256 && columns > rows;
        let (length, unit) = if is_wide { (columns, 64) } else { (rows, 6) };
        let size = length.div_ceil(count.max(1)).next_multiple_of(unit);
        match is_wide {
            true => whole.grid(rows, size),
            false => whole.grid(size, columns),
        }
    }

    /// About `count` parts of a matrix, of few columns and many rows: of a product with a right factor that is copied once for each group of rows.
    pub fn panels(data: &'a mut [f32], rows: usize, columns: usize, count: usize) -> Vec<Self> {
        const ROWS: usize = 192;
        let whole = Self::whole(data, rows, columns);
        if rows * columns == 0 {
            return Vec::new();
        }
        let width = columns.div_ceil(count.max(1)).next_multiple_of(64);
        let groups = (count / columns.div_ceil(width)).min(rows / ROWS).max(1);
        whole.grid(rows.div_ceil(groups).next_multiple_of(6), width)
    }

    /// The parts of so many rows and columns.
    fn grid(self, rows: usize, columns: usize) -> Vec<Self> {
        let (all, stride) = ([self.rows.len(), self.columns.len()], self.stride);
        let part = |i: usize, j: usize| {
            let (rows, columns) = (i..all[0].min(i + rows), j..all[1].min(j + columns));
            Self {
                // SAFETY: this is the part's first element, which is in the matrix.
                start: unsafe { self.start.add(i * stride + j) },
                rows,
                columns,
                ..self
            }
        };
        let firsts = (0..all[0]).step_by(rows);
        let firsts = firsts.flat_map(|i| (0..all[1]).step_by(columns).map(move |j| (i, j)));
        firsts.map(|(i, j)| part(i, j)).collect()
    }

    /// From one of its rows to the next.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Where its first element is in the whole matrix.
    #[inline(always)]
    pub fn first(&self) -> usize {
        self.rows.start * self.stride + self.columns.start
    }

    /// Whether its rows follow each other without a gap.
    fn is_gapless(&self) -> bool {
        self.columns.len() == self.stride
    }

    /// How many pieces without a gap it has: one, or its rows.
    #[inline(always)]
    pub fn pieces(&self) -> usize {
        if self.is_gapless() {
            1
        } else {
            self.rows.len()
        }
    }

    /// The numbers of one of its pieces.
    #[inline(always)]
    pub fn piece(&mut self, i: usize) -> &mut [f32] {
        assert!(i < self.pieces(), "piece of a matrix");
        let rows = if self.is_gapless() {
            self.rows.len()
        } else {
            1
        };
        // SAFETY: these are elements of the part, which it borrows exclusively.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(i * self.stride),
                rows * self.columns.len(),
            )
        }
    }

    /// One of its rows, counted from its own first.
    #[inline(always)]
    pub fn row(&mut self, i: usize) -> &mut [f32] {
        assert!(i < self.rows.len(), "row of a matrix");
        let length = self.columns.len();
        // SAFETY: these are elements of the part, which it borrows exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(i * self.stride), length) }
    }

    /// A part of it, counted from its own first row and column.
    pub fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> Part<'_> {
        assert!(
            rows.end <= self.rows.len() && columns.end <= self.columns.len(),
            "part of a matrix"
        );
        Part {
            start: self
                .start
                .wrapping_add(rows.start * self.stride + columns.start),
            rows: self.rows.start + rows.start..self.rows.start + rows.end,
            columns: self.columns.start + columns.start..self.columns.start + columns.end,
            ..*self
        }
    }

    /// `self = a·b`, or `self += a·b` when `add`.
    pub fn multiply(&mut self, a: Matrix, b: Matrix, add: bool) {
        self.multiply_then(a, b, add, &mut |_| {});
    }

    /// The same; `then` is called with each part of it while that is in cache.
    pub fn multiply_then(
        &mut self,
        a: Matrix,
        b: Matrix,
        add: bool,
        then: &mut dyn FnMut(&mut Part),
    ) {
        let (shape, of) = ([self.rows.len(), self.columns.len()], [a.rows, b.columns]);
        assert!(
            shape == of && a.columns == b.rows,
            "shapes of a matrix product"
        );
        product::product(tile::set(), self, a, b, add, then);
    }
}

/// `out = a·b`, row-major.
///
/// # Safety
/// `out` is valid for rows of `a` times columns of `b`, and nobody else's; the factors fit together.
unsafe fn by_library<T: Copy + 'static>(
    out: *mut T,
    a: Matrix<T>,
    b: Matrix<T>,
    (one, parallelism): (T, Parallelism),
) {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    let strides = |x: Matrix<T>| (x.column_stride as isize, x.row_stride as isize);
    let ((a_column, a_row), (b_column, b_row)) = (strides(a), strides(b));
    let (of_a, of_b) = (a.data.as_ptr(), b.data.as_ptr());
    unsafe {
        gemm(
            m,
            n,
            k,
            out,
            1,
            n as isize,
            false,
            of_a,
            a_column,
            a_row,
            of_b,
            b_column,
            b_row,
            one,
            one,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// `a·b` in double precision, row-major.
pub fn multiply_double(a: Matrix<f64>, b: Matrix<f64>) -> Vec<f64> {
    assert!(b.rows == a.columns, "shapes of a matrix product");
    let mut out = vec![0.0; a.rows * b.columns];
    if !out.is_empty() {
        // SAFETY: `out` has just been made, and has this shape.
        unsafe { by_library(out.as_mut_ptr(), a, b, (1.0, Parallelism::None)) }
    }
    out
}

/// `out = a·b`, or `out += a·b` when `add`; `out` is row-major.
pub fn multiply(out: &mut [f32], a: Matrix, b: Matrix, add: bool) {
    Part::whole(out, a.rows, b.columns).multiply(a, b, add);
}

/// `out = a·b` by the crate `gemm` on several threads: another implementation, to compare with.
pub fn multiply_by_library(out: &mut [f32], a: Matrix, b: Matrix, threads: usize) {
    assert!(
        a.columns == b.rows && out.len() >= a.rows * b.columns,
        "shapes of a matrix product"
    );
    // SAFETY: the factors and `out` hold what their shapes say.
    unsafe { by_library(out.as_mut_ptr(), a, b, (1.0, Parallelism::Rayon(threads))) }
}
