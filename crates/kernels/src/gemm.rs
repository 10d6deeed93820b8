//! Matrix products on row-major slices, one thread each; parallelism is over chains and shards, never inside a product.

use crate::simd;
use gemm::{Parallelism, gemm};
use std::cell::RefCell;
use std::ops::Range;

thread_local! {
    /// The transpose of a factor, or some columns of it.
    static TRANSPOSE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Numbers of a factor that are transposed at a time: they stay in a core's cache.
const PANEL: usize = 1 << 17;

/// Rows of the other factor for which it pays.
const ROWS: usize = 16;

simd! {
    /// `to[i·width + j] = from[j·stride + i]` for j below `rows`, i below `columns`.
    pub fn transpose(from: &[f32], stride: usize, rows: usize, columns: usize, to: &mut [f32], width: usize) {
        const SIDE: usize = 16;
        for j in (0..rows).step_by(SIDE) {
            for i in (0..columns).step_by(SIDE) {
                let (n, m) = (SIDE.min(rows - j), SIDE.min(columns - i));
                if n < SIDE || m < SIDE {
                    for x in i..i + m {
                        for y in j..j + n {
                            to[x * width + y] = from[y * stride + x];
                        }
                    }
                    continue;
                }
                let mut block = [[0f32; SIDE]; SIDE];
                for (y, row) in block.iter_mut().enumerate() {
                    row.copy_from_slice(&from[(j + y) * stride + i..][..SIDE]);
                }
                for x in 0..SIDE {
                    let column: [f32; SIDE] = std::array::from_fn(|y| block[y][x]);
                    to[(i + x) * width + j..][..SIDE].copy_from_slice(&column);
                }
            }
        }
    }
}

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

    /// About `count` parts of a matrix that is not empty: groups of columns of a wide one, groups of rows otherwise.
    ///
    /// The sizes are multiples of what the micro-kernels of the products work on, 64 columns and 6 rows.
    pub fn split(data: &'a mut [f32], rows: usize, columns: usize, count: usize) -> Vec<Self> {
        let whole = Self::whole(data, rows, columns);
        let wide = columns >= 256 && columns > rows;
        let (length, unit) = if wide { (columns, 64) } else { (rows, 6) };
        let size = length.div_ceil(count.max(1)).next_multiple_of(unit);
        let part = |i: usize| {
            let range = i * size..length.min((i + 1) * size);
            let (rows, columns) = if wide {
                (0..rows, range)
            } else {
                (range, 0..columns)
            };
            Self {
                // SAFETY: this is the part's first element, which is in the matrix.
                start: unsafe { whole.start.add(rows.start * whole.stride + columns.start) },
                rows,
                columns,
                ..whole
            }
        };
        (0..length.div_ceil(size)).map(part).collect()
    }

    /// `self = a·b`, or `self += a·b` when `add`.
    pub fn multiply(&mut self, a: Matrix, b: Matrix, add: bool) {
        let (k, n) = (b.rows, b.columns);
        if b.column_stride == 1 || b.row_stride != 1 || a.rows < ROWS || k < 16 || n < 64 {
            return self.product(a, b, add, Parallelism::None);
        }
        // The product would go through the columns number by number.
        let step = (PANEL / k).max(64) / 64 * 64;
        let mut panel = TRANSPOSE.take();
        for at in (0..n).step_by(step) {
            let columns = at..n.min(at + step);
            // Rows that are a power of two apart would share a few lines of the cache.
            let width = columns.len().next_multiple_of(16) + 16;
            panel.resize(panel.len().max(k * width), 0.0);
            let own = b.columns(columns.clone());
            transpose(
                own.data,
                own.column_stride,
                own.columns,
                k,
                &mut panel,
                width,
            );
            let right = Matrix::strided(&panel, k, own.columns, width);
            let mut part = Part {
                // SAFETY: this is the part's first element, which is in the matrix.
                start: unsafe { self.start.add(at) },
                rows: self.rows.clone(),
                columns: self.columns.start + columns.start..self.columns.start + columns.end,
                ..*self
            };
            part.product(a, right, add, Parallelism::None);
        }
        TRANSPOSE.set(panel);
    }

    fn product(&mut self, a: Matrix, b: Matrix, add: bool, parallelism: Parallelism) {
        let (m, k, n) = (a.rows, a.columns, b.columns);
        assert!(
            b.rows == k && self.rows.len() == m && self.columns.len() == n,
            "shapes of a matrix product"
        );
        if m == 0 || n == 0 {
            return;
        }
        // SAFETY: the part is exclusive, and of this shape.
        unsafe { product(self.start, self.stride, a, b, add, (1.0, parallelism)) }
    }
}

/// `out = a·b`, or `out += a·b` when `add`, rows of `out` so far apart.
///
/// # Safety
/// `out` is valid for rows of `a` times columns of `b`, and nobody else's. (The factors hold what their shapes say: checked in `Matrix`.)
unsafe fn product<T: Copy + 'static>(
    out: *mut T,
    stride: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    add: bool,
    (one, parallelism): (T, Parallelism),
) {
    unsafe {
        gemm(
            a.rows,
            b.columns,
            a.columns,
            out,
            1,
            stride as isize,
            add,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
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
    let (m, n) = (a.rows, b.columns);
    assert!(b.rows == a.columns, "shapes of a matrix product");
    let mut out = vec![0.0; m * n];
    if m > 0 && n > 0 {
        // SAFETY: `out` has just been made, and has this shape.
        unsafe { product(out.as_mut_ptr(), n, a, b, false, (1.0, Parallelism::None)) }
    }
    out
}

/// `out = a·b`, or `out += a·b` when `add`; `out` is row-major.
pub fn multiply(out: &mut [f32], a: Matrix, b: Matrix, add: bool) {
    Part::whole(out, a.rows, b.columns).multiply(a, b, add);
}

/// `out = a·b` on several threads, with the same bits as [`multiply`].
pub fn multiply_threaded(out: &mut [f32], a: Matrix, b: Matrix, threads: usize) {
    Part::whole(out, a.rows, b.columns).product(a, b, false, Parallelism::Rayon(threads));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_matrix_are_written_alone() {
        let a: Vec<f32> = (0..6).map(|i| i as f32).collect(); // 2x3
        let b: Vec<f32> = (0..15).map(|i| (i * i) as f32).collect(); // 3x5, of which columns 1 and 2
        let mut out = vec![-1.0; 8]; // 2x4, of which columns 2 and 3
        let right = Matrix::new(&b, 3, 5).columns(1..3);
        Part::columns(&mut out, 2, 4, 2..4).multiply(Matrix::new(&a, 2, 3), right, false);
        for i in 0..2 {
            for j in 0..4 {
                let sum = |j: usize| (0..3).map(|k| a[i * 3 + k] * b[k * 5 + j]).sum();
                let expected: f32 = if j < 2 { -1.0 } else { sum(j - 1) };
                assert_eq!(out[i * 4 + j], expected);
            }
        }
    }

    /// A factor that is transposed beforehand gives what it gives otherwise: the same bits, unless it is cut into panels and its sums are long.
    #[test]
    fn a_factor_may_be_transposed_beforehand() {
        let numbers = |n: usize| (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 20.0);
        for (m, k, n) in [(16, 16, 64), (33, 37, 203), (17, 3000, 150)] {
            let (a, b): (Vec<f32>, Vec<f32>) = (numbers(m * k).collect(), numbers(n * k).collect());
            let (left, right) = (Matrix::new(&a, m, k), Matrix::new(&b, n, k).transposed());
            for add in [false, true] {
                let mut out: Vec<f32> = numbers(m * n).collect();
                let mut other = out.clone();
                Part::whole(&mut out, m, n).multiply(left, right, add);
                Part::whole(&mut other, m, n).product(left, right, add, Parallelism::None);
                let most = if k < PANEL / n {
                    0.0
                } else {
                    1e-6 * (3 * k) as f32
                };
                let apart = out.iter().zip(&other).map(|(x, y)| (x - y).abs());
                let apart = apart.fold(0.0, f32::max);
                assert!(apart <= most, "{m}, {k}, {n}: {apart}");
            }
        }
    }

    #[test]
    fn products_and_transposes_match_the_definition() {
        let a: Vec<f32> = (0..6).map(|i| i as f32).collect(); // 2x3
        let b: Vec<f32> = (0..12).map(|i| (i * i) as f32).collect(); // 3x4
        let mut out = vec![1.0; 8];
        multiply(&mut out, Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 4), true);
        for i in 0..2 {
            for j in 0..4 {
                let c: f32 = (0..3).map(|k| a[i * 3 + k] * b[k * 4 + j]).sum();
                assert_eq!(out[i * 4 + j], c + 1.0);
            }
        }
        let mut gram = vec![0.0; 9];
        for (rows, columns) in [(20, 3), (2, 1100)] {
            let x: Vec<f32> = (0..rows * 2).map(|i| i as f32).collect();
            let y: Vec<f32> = (0..columns * 2).map(|i| (i % 7) as f32).collect();
            let mut out = vec![0.0; rows * columns];
            let parts = Part::split(&mut out, rows, columns, 3);
            assert!(parts.len() > 1);
            for mut part in parts {
                let left = Matrix::new(&x, 2, rows)
                    .columns(part.rows.clone())
                    .transposed();
                let right = Matrix::new(&y, 2, columns).columns(part.columns.clone());
                part.multiply(left, right, false);
            }
            for (i, value) in out.iter().enumerate() {
                let (r, c) = (i / columns, i % columns);
                assert_eq!(*value, x[r] * y[c] + x[rows + r] * y[columns + c]);
            }
        }
        multiply(
            &mut gram,
            Matrix::new(&a, 2, 3).transposed(),
            Matrix::new(&a, 2, 3),
            false,
        );
        assert_eq!(gram[1], a[0] * a[1] + a[3] * a[4]);
    }
}
