//! Symmetric positive definite matrices of a few dozen rows.

/// Smallest pivot, relative to its diagonal entry, that counts as positive.
const PIVOT: f64 = 1e-13;

/// The inverse of a symmetric positive definite matrix, by Cholesky; none where a pivot is not positive.
pub(super) fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = matrix[i][j] - known;
            if i != j {
                lower[i][j] = rest / lower[j][j];
            } else if rest > PIVOT * matrix[i][i] {
                lower[i][i] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    let mut inverse = vec![vec![0.0; n]; n];
    for column in 0..n {
        let mut x = vec![0.0; n];
        for i in column..n {
            let known: f64 = (column..i).map(|k| lower[i][k] * x[k]).sum();
            x[i] = (f64::from(i == column) - known) / lower[i][i];
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| lower[k][i] * x[k]).sum();
            x[i] = (x[i] - known) / lower[i][i];
        }
        for (row, x) in inverse.iter_mut().zip(x) {
            row[column] = x;
        }
    }
    Some(inverse)
}

/// Matrix times vector.
pub(super) fn product(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

/// Sum of products.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![
            vec![4.0, -2.0, 0.5],
            vec![-2.0, 5.0, 1.0],
            vec![0.5, 1.0, 3.0],
        ];
        let inverse = inverse(&matrix).unwrap();
        for (i, row) in inverse.iter().enumerate() {
            for (j, one) in product(&matrix, row).into_iter().enumerate() {
                assert!((one - f64::from(i == j)).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_singular_or_indefinite_matrix_has_none() {
        assert_eq!(inverse(&[vec![1.0, 1.0], vec![1.0, 1.0]]), None);
        assert_eq!(inverse(&[vec![1.0, 2.0], vec![2.0, 1.0]]), None);
        assert_eq!(inverse(&[vec![f64::NAN]]), None);
    }
}
