//! Eigenvalues of symmetric matrices, correlation matrices of samples, and the spectrum that chance alone gives them.
//!
//! Matrices are dense and row-major.

use crate::kernels::simd;

/// Eigenvalues of a symmetric `[n, n]` matrix in ascending order, in the matrix' unit.
///
/// Householder reduction to a tridiagonal matrix, then the implicit QL iteration (Martin, Reinsch and Wilkinson 1968;
/// Golub and Van Loan, "Matrix Computations", chapter 8): errors of a few n epsilon times the largest |eigenvalue|. 4/3
/// n^3 operations and a copy of the matrix. Only the lower triangle is read. `n` NaNs when the slice is not n * n long,
/// when a number in it is not finite, or when the iteration fails.
pub fn eigenvalues(matrix: &[f64], n: usize) -> Vec<f64> {
    let Some((mut diagonal, mut off, _, scale)) = reduced(matrix, n) else {
        return vec![f64::NAN; n];
    };
    if !implicit_ql(&mut diagonal, &mut off, &mut vec![0.0; n]) {
        return vec![f64::NAN; n];
    }
    diagonal.iter_mut().for_each(|x| *x *= scale);
    diagonal.sort_unstable_by(f64::total_cmp);
    diagonal
}

/// Eigenvalues of a symmetric `[n, n]` matrix in ascending order, and its eigenvectors: row k, of length 1, belongs to
/// eigenvalue k.
///
/// See [`eigenvalues`]; some 6 n^3 operations. None where that gives NaN.
pub fn eigenvectors(matrix: &[f64], n: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let (mut diagonal, mut off, reflected, scale) = reduced(matrix, n)?;
    let mut rows = vec![0.0; n * n];
    reflect(&reflected, n, &mut rows);
    if !implicit_ql(&mut diagonal, &mut off, &mut rows) {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| diagonal[*a].total_cmp(&diagonal[*b]));
    let values = order.iter().map(|k| diagonal[*k] * scale).collect();
    let vectors = order.iter().flat_map(|k| &rows[k * n..(k + 1) * n]);
    Some((values, vectors.copied().collect()))
}

simd! {
    /// The product of all reflections, the one of the fewest components first, into `[n, n]` of zeros.
    pub fn reflect(reflected: &[f64], n: usize, rows: &mut [f64]) {
        let vectors: Vec<_> = (1..n).map(|i| &reflected[i * n..i * n + i]).collect();
        let halves: Vec<_> = vectors.iter().map(|v| 0.5 * dot(v, v)).collect();
        for (j, row) in rows.chunks_exact_mut(n.max(1)).enumerate() {
            row[j] = 1.0;
            for (i, (vector, half)) in (1..).zip(vectors.iter().zip(&halves)) {
                if *half > 0.0 {
                    let along = dot(&row[..i], vector) / half;
                    let pairs = row.iter_mut().zip(*vector);
                    pairs.for_each(|(x, v)| *x -= along * v);
                }
            }
        }
    }
}

/// A tridiagonal matrix of the same eigenvalues but for a factor: diagonal, off-diagonal, the vectors of the reflections
/// (row i has i components), and the factor. None if the slice is not n * n long or a number in it is not finite.
#[allow(clippy::type_complexity)]
fn reduced(matrix: &[f64], n: usize) -> Option<(Vec<f64>, Vec<f64>, Vec<f64>, f64)> {
    if n.checked_mul(n) != Some(matrix.len()) {
        return None;
    }
    let lower = matrix.chunks(n.max(1)).enumerate();
    let largest = lower
        .flat_map(|(i, row)| &row[..=i])
        .fold(0.0, |most: f64, x| {
            let x = x.abs();
            if x > most || x.is_nan() { x } else { most }
        });
    if !largest.is_finite() {
        return None;
    }
    if largest == 0.0 {
        return Some((vec![0.0; n], vec![0.0; n], vec![0.0; n * n], 1.0));
    }
    // A power of two: squares of elements neither over- nor underflow, and nothing is rounded.
    let scale = 2.0f64.powi((largest.log2() as i32).clamp(-1000, 1000));
    let mut work: Vec<f64> = matrix.iter().map(|x| x / scale).collect();
    let (diagonal, off) = tridiagonal(&mut work, n);
    Some((diagonal, off, work, scale))
}

simd! {
    /// Diagonal and off-diagonal (n - 1 numbers, then a 0) of a tridiagonal matrix of the same eigenvalues; leaves in row i of
    /// `a` the i components of a reflection's vector, which are 0 if there was none.
    pub fn tridiagonal(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut off = vec![0.0; n];
        let mut product = vec![0.0; n];
        // From the last row up: a reflection of the first i components turns row i into (0, ..., 0, off, diagonal).
        for i in (1..n).rev() {
            let (above, rest) = a.split_at_mut(i * n);
            let vector = &mut rest[..i];
            let norm = dot(vector, vector).sqrt();
            if norm == 0.0 {
                continue;
            }
            let last = vector[i - 1];
            let end = -norm.copysign(last);
            off[i - 1] = end;
            vector[i - 1] = last - end;
            // Half the squared length of the vector.
            let half = norm * norm - last * end;
            if half == 0.0 {
                continue;
            }
            let product = &mut product[..i];
            for j in 0..i {
                let row = &above[j * n..j * n + j];
                let from_left = dot(row, &vector[..j]);
                product[j] = from_left + above[j * n + j] * vector[j];
                let weight = vector[j];
                for (p, x) in product.iter_mut().zip(row) {
                    *p += weight * x;
                }
            }
            product.iter_mut().for_each(|p| *p /= half);
            let along = dot(product, vector) / (2.0 * half);
            for (p, v) in product.iter_mut().zip(vector.iter()) {
                *p -= along * v;
            }
            for j in 0..i {
                let (v, p) = (vector[j], product[j]);
                let row = &mut above[j * n..=j * n + j];
                for ((x, pk), vk) in row.iter_mut().zip(product.iter()).zip(vector.iter()) {
                    *x -= v * pk + p * vk;
                }
            }
        }
        ((0..n).map(|i| a[i * n + i]).collect(), off)
    }
}

/// Turns `diagonal` into eigenvalues; whether it converged. The rotations act on the rows of `rows` too, as many as there are
/// eigenvalues, of one number or more: a column of the unit matrix becomes that component of all eigenvectors, the whole
/// unit matrix the eigenvectors, one in a row.
pub(super) fn implicit_ql(diagonal: &mut [f64], off: &mut [f64], rows: &mut [f64]) -> bool {
    const MOST: usize = 60;
    let n = diagonal.len();
    for left in 0..n {
        let mut converged = false;
        for _ in 0..MOST {
            let small = |k: &usize| {
                let around = diagonal[*k].abs() + diagonal[*k + 1].abs();
                off[*k].abs() <= f64::EPSILON * around
            };
            let right = (left..n - 1).find(small).unwrap_or(n - 1);
            if right == left {
                converged = true;
                break;
            }
            sweep(diagonal, off, rows, left, right);
        }
        if !converged {
            return false;
        }
    }
    true
}

simd! {
    /// One implicit QL step with Wilkinson's shift on the rows `left` to `right`.
    pub fn sweep(diagonal: &mut [f64], off: &mut [f64], rows: &mut [f64], left: usize, right: usize) {
        let width = rows.len() / diagonal.len();
        let g = (diagonal[left + 1] - diagonal[left]) / (2.0 * off[left]);
        let shift = off[left] / (g + g.hypot(1.0).copysign(g));
        let mut g = diagonal[right] - diagonal[left] + shift;
        let (mut sine, mut cosine, mut moved) = (1.0, 1.0, 0.0);
        for i in (left..right).rev() {
            let (f, b) = (sine * off[i], cosine * off[i]);
            let r = f.hypot(g);
            off[i + 1] = r;
            if r == 0.0 {
                // An underflow has cut the matrix in two.
                diagonal[i + 1] -= moved;
                off[right] = 0.0;
                return;
            }
            (sine, cosine) = (f / r, g / r);
            g = diagonal[i + 1] - moved;
            let turn = (diagonal[i] - g) * sine + 2.0 * cosine * b;
            moved = sine * turn;
            diagonal[i + 1] = g + moved;
            g = cosine * turn - b;
            let (upper, lower) = rows[i * width..(i + 2) * width].split_at_mut(width);
            for (x, y) in upper.iter_mut().zip(lower) {
                let (a, b) = (*x, *y);
                *y = sine * a + cosine * b;
                *x = cosine * a - sine * b;
            }
        }
        diagonal[left] -= moved;
        off[left] = g;
        off[right] = 0.0;
    }
}

/// Sum of products in eight fixed partial sums: quick, and the same on every machine.
#[inline(always)]
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (blocks_a, blocks_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = blocks_a.remainder().iter().zip(blocks_b.remainder());
    let tail: f64 = rest.map(|(x, y)| x * y).sum();
    for (x, y) in blocks_a.zip(blocks_b) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + tail
}

/// Correlation matrix `[components, components]` of `samples`, `[draws, components]`: dimensionless, -1 to 1.
///
/// r_ij = cov_ij / sqrt(cov_ii cov_jj) (Pearson); the diagonal is 1. A component that never changes correlates with
/// nothing, itself included: its row, column and diagonal element are 0, so that the trace counts the components that
/// do change. A component with a number that is not finite has NaN in its row and column. All NaN without draws or when
/// the slice is not a multiple of `components` long. Work is draws * components^2.
pub fn correlation_matrix(samples: &[f64], components: usize) -> Vec<f64> {
    let p = components;
    if p == 0 || samples.is_empty() || !samples.len().is_multiple_of(p) {
        return vec![f64::NAN; p.saturating_mul(p)];
    }
    // Measured from the first draw, a component that never changes has a mean and a variance of exactly 0.
    let (first, draws) = (&samples[..p], (samples.len() / p) as f64);
    let mut mean = vec![0.0; p];
    for draw in samples.chunks_exact(p) {
        for ((m, x), x0) in mean.iter_mut().zip(draw).zip(first) {
            *m += x - x0;
        }
    }
    mean.iter_mut().for_each(|m| *m /= draws);
    // Some draws at a time, transposed: the sums of products then run over contiguous numbers.
    const BLOCK: usize = 64;
    let mut block = vec![0.0; p * BLOCK];
    let mut matrix = vec![0.0; p * p];
    for draws in samples.chunks(BLOCK * p) {
        let used = draws.len() / p;
        for (t, draw) in draws.chunks_exact(p).enumerate() {
            for (i, x) in draw.iter().enumerate() {
                block[i * BLOCK + t] = (x - first[i]) - mean[i];
            }
        }
        for i in 0..p {
            let row = &block[i * BLOCK..i * BLOCK + used];
            for j in 0..=i {
                matrix[i * p + j] += dot(row, &block[j * BLOCK..j * BLOCK + used]);
            }
        }
    }
    let deviation: Vec<f64> = (0..p).map(|i| matrix[i * p + i].sqrt()).collect();
    for i in 0..p {
        for j in 0..=i {
            let r = match deviation[i] * deviation[j] {
                _ if deviation[i] == 0.0 || deviation[j] == 0.0 => {
                    if deviation[i].is_nan() || deviation[j].is_nan() {
                        f64::NAN
                    } else {
                        0.0
                    }
                }
                _ if i == j && deviation[i].is_finite() => 1.0,
                norm => (matrix[i * p + j] / norm).clamp(-1.0, 1.0),
            };
            matrix[i * p + j] = r;
            matrix[j * p + i] = r;
        }
    }
    matrix
}

/// The edges (1 - sqrt(p/n))^2 and (1 + sqrt(p/n))^2 of the Marchenko-Pastur law, dimensionless.
///
/// Between them lie the eigenvalues of the correlation matrix of n independent draws of p independent components of
/// unit variance, as n and p grow at a fixed ratio (Marchenko and Pastur 1967); for p > n there are p - n zeros
/// besides. An eigenvalue outside is more than chance. NaN when either number is 0.
pub fn marchenko_pastur_edges(draws: usize, components: usize) -> (f64, f64) {
    if draws == 0 || components == 0 {
        return (f64::NAN, f64::NAN);
    }
    let root = (components as f64 / draws as f64).sqrt();
    ((1.0 - root).powi(2), (1.0 + root).powi(2))
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn eigenvalues_known_in_closed_form() {
        // The second difference: 2 - 2 cos(k pi / (n + 1)).
        for n in [1, 2, 3, 17, 100] {
            let mut matrix = vec![0.0; n * n];
            for i in 0..n {
                matrix[i * n + i] = 2.0;
                if i > 0 {
                    matrix[i * n + i - 1] = -1.0;
                    matrix[(i - 1) * n + i] = -1.0;
                }
            }
            for (k, got) in eigenvalues(&matrix, n).iter().enumerate() {
                let want = 2.0 - 2.0 * ((k + 1) as f64 * PI / (n + 1) as f64).cos();
                assert!((got - want).abs() < 1e-14, "{n} {k}: {got} {want}");
            }
        }
        // All ones: n, once, and 0; in units whose squares are no f64.
        for unit in [1.0, 1e-200, 1e200] {
            let got = eigenvalues(&[unit; 49], 7);
            assert!((got[6] / unit - 7.0).abs() < 1e-14);
            assert!(got[..6].iter().all(|x| (x / unit).abs() < 1e-14));
        }
        let exact = [12f64.sqrt(), 5.0];
        let hand = eigenvalues(&[3.0, 9.0, exact[0], -1.0], 2);
        assert!((hand[0] + 3.0).abs() < 1e-14 && (hand[1] - exact[1]).abs() < 1e-14);
    }

    #[test]
    fn eigenvalues_of_a_dense_matrix() {
        // mpmath's eigsy in 40 digits; numpy.linalg.eigvalsh agrees to 6e-14.
        let (n, mut matrix) = (12, vec![0.0; 144]);
        for i in 0..n {
            for j in 0..=i {
                let x = ((7 * i * i + 13 * j + 5 * i * j) % 23) as f64 - 11.0;
                (matrix[i * n + j], matrix[j * n + i]) = (x, x);
            }
        }
        let known = [
            -34.642785908426134,
            -30.63951824773536,
            -26.418730177823054,
            -13.980946882959689,
            -7.7796218697239645,
            -3.2692859649544643,
            -0.02685177103898304,
            12.688429529090177,
            17.882235376209557,
            20.878170125330367,
            23.396310447732453,
            31.912595344299103,
        ];
        for (got, want) in eigenvalues(&matrix, n).iter().zip(known) {
            assert!((got - want).abs() < 1e-13, "{got} {want}");
        }
    }

    #[test]
    fn eigenvectors_make_the_matrix_anew() {
        for (n, seed) in [(1, 5), (2, 6), (9, 7), (40, 8)] {
            let draws = normal_draws(seed, n * n);
            let mut matrix = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..n {
                    matrix[i * n + j] = draws[i * n + j] + draws[j * n + i];
                }
            }
            // One that has nothing to reflect, and eigenvalues that are equal.
            if n == 9 {
                matrix.fill(0.0);
                (0..n).for_each(|i| matrix[i * n + i] = (i / 3) as f64);
            }
            let (values, vectors) = eigenvectors(&matrix, n).unwrap();
            let known = eigenvalues(&matrix, n);
            for i in 0..n {
                assert!((values[i] - known[i]).abs() < 1e-12, "{n}: {values:?}");
                for j in 0..n {
                    let entry = |of: &dyn Fn(usize) -> f64| -> f64 {
                        let term = |k| of(k) * vectors[k * n + i] * vectors[k * n + j];
                        (0..n).map(term).sum()
                    };
                    assert!((entry(&|_| 1.0) - f64::from(u8::from(i == j))).abs() < 1e-12);
                    let found = entry(&|k| values[k]);
                    assert!((found - matrix[i * n + j]).abs() < 1e-11, "{n}: {i} {j}");
                }
            }
        }
        assert!(eigenvectors(&[1.0, f64::NAN, 0.0, 1.0], 2).is_some());
        assert!(eigenvectors(&[1.0, 0.0, f64::NAN, 1.0], 2).is_none());
        assert_eq!(eigenvectors(&[0.0; 4], 2).unwrap().1, [1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_dense_matrix_keeps_its_traces() {
        let n = 60;
        let draws = normal_draws(3, n * n);
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                matrix[i * n + j] = draws[i * n + j] + draws[j * n + i];
            }
        }
        let values = eigenvalues(&matrix, n);
        let trace: f64 = (0..n).map(|i| matrix[i * n + i]).sum();
        let squares: f64 = matrix.iter().map(|x| x * x).sum();
        assert!((values.iter().sum::<f64>() - trace).abs() < 1e-11);
        let sum: f64 = values.iter().map(|x| x * x).sum();
        assert!((sum / squares - 1.0).abs() < 1e-13);
        assert!(values.is_sorted());
    }

    #[test]
    fn independent_draws_fill_the_marchenko_pastur_law() {
        let (draws, p) = (2000, 100);
        let samples = normal_draws(5, draws * p);
        let values = eigenvalues(&correlation_matrix(&samples, p), p);
        let (low, high) = marchenko_pastur_edges(draws, p);
        assert!((low - 0.602_786_404_500_042).abs() < 1e-14);
        assert!((values[0] / low - 1.0).abs() < 0.05, "{} {low}", values[0]);
        assert!((values[p - 1] / high - 1.0).abs() < 0.05);
        assert!((values.iter().sum::<f64>() - p as f64).abs() < 1e-10);
    }

    #[test]
    fn constants_correlate_with_nothing() {
        let samples = [1.0, 0.1, 2.0, 2.0, 0.1, 0.0, 4.0, 0.1, 1.0];
        let got = correlation_matrix(&samples, 3);
        // Centred: (-4, -1, 5) / 3 and (1, -1, 0).
        let r = -1.0 / (14.0f64 / 3.0 * 2.0).sqrt();
        for (got, want) in got.iter().zip([1.0, 0.0, r, 0.0, 0.0, 0.0, r, 0.0, 1.0]) {
            assert!((got - want).abs() < 1e-15, "{got} {want}");
        }
        assert_eq!(correlation_matrix(&[0.1; 200], 1), [0.0]);
        let shifted: Vec<f64> = samples.iter().map(|x| 1e9 + x).collect();
        assert!((correlation_matrix(&shifted, 3)[2] - r).abs() < 1e-6);
    }

    #[test]
    fn the_edges() {
        assert!(eigenvalues(&[], 0).is_empty());
        assert_eq!(eigenvalues(&[4.0], 1), [4.0]);
        assert_eq!(eigenvalues(&[0.0; 9], 3), [0.0; 3]);
        assert!(eigenvalues(&[1.0; 3], 2).iter().all(|x| x.is_nan()));
        for odd in [f64::NAN, f64::INFINITY] {
            let values = eigenvalues(&[1.0, 0.0, odd, 1.0], 2);
            assert!(values.len() == 2 && values.iter().all(|x| x.is_nan()));
            let partly = correlation_matrix(&[1.0, 1.0, 2.0, odd, 5.0, 2.0], 2);
            assert!(partly[0] == 1.0 && partly[1..].iter().all(|x| x.is_nan()));
        }
        assert!(correlation_matrix(&[], 2).iter().all(|x| x.is_nan()));
        assert!(correlation_matrix(&[1.0; 3], 2).iter().all(|x| x.is_nan()));
        assert!(correlation_matrix(&[1.0], 0).is_empty());
        assert!(marchenko_pastur_edges(0, 3).0.is_nan());
        assert_eq!(marchenko_pastur_edges(1, 4), (1.0, 9.0));
    }
}
