//! Matrix products on row-major slices, one thread each; parallelism is over chains and shards, never inside a product.

use gemm::{Parallelism, gemm};

/// A matrix in a slice: rows, columns, and the distance between neighbours in each direction.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix; the slice may be longer than needed.
    pub fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        assert!(data.len() >= rows * columns, "matrix larger than its slice");
        Self {
            data,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
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

/// `out = a·b`, or `out += a·b` when `add`; `out` is row-major.
pub fn multiply(out: &mut [f32], a: Matrix, b: Matrix, add: bool) {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    assert!(
        b.rows == k && out.len() >= m * n,
        "shapes of a matrix product"
    );
    if m == 0 || n == 0 {
        return;
    }
    // SAFETY: the three slices hold what their shapes say (checked here and in `Matrix::new`), and `out` is exclusive.
    unsafe {
        gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            add,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        multiply(
            &mut gram,
            Matrix::new(&a, 2, 3).transposed(),
            Matrix::new(&a, 2, 3),
            false,
        );
        assert_eq!(gram[1], a[0] * a[1] + a[3] * a[4]);
    }
}
