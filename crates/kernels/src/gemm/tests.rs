use super::product::product;
use super::*;

/// So many numbers between -1 and 1.
fn numbers(n: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 50.0;
    (0..n).map(number).collect()
}

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

/// The product as it is defined: one chain of multiply–adds per element, from `start`.
fn by_definition(
    a: &[f32],
    b: &[f32],
    [m, k, n]: [usize; 3],
    start: &dyn Fn(usize, usize) -> f32,
    is_fused: bool,
) -> Vec<f32> {
    let element = |i: usize, j: usize| {
        (0..k).fold(start(i, j), |sum, p| {
            let (x, y) = (a[i * k + p], b[p * n + j]);
            if is_fused {
                x.mul_add(y, sum)
            } else {
                sum + x * y
            }
        })
    };
    (0..m * n).map(|e| element(e / n, e % n)).collect()
}

/// Every set of tiles gives the bits of the definition, whatever the shapes, how the factors are stored.
#[test]
fn every_product_has_the_bits_of_its_definition() {
    let shapes = [
        [1, 1, 1],
        [2, 0, 3],
        [7, 5, 3],
        [13, 300, 50],
        [25, 17, 100],
        [30, 600, 70],
        [3, 7, 1100],
        [40, 3, 1100],
        [1030, 9, 20],
        [1, 40, 33],
        [1100, 30, 70],
    ];
    for [m, k, n] in shapes {
        let (a, b) = (numbers(m * k), numbers(k * n));
        let flipped = |x: &[f32], rows: usize, columns: usize| -> Vec<f32> {
            (0..rows * columns)
                .map(|e| x[e % rows * columns + e / rows])
                .collect()
        };
        let (a_flipped, b_flipped) = (flipped(&a, m, k), flipped(&b, k, n));
        let lefts = [
            Matrix::new(&a, m, k),
            Matrix::new(&a_flipped, k, m).transposed(),
        ];
        let rights = [
            Matrix::new(&b, k, n),
            Matrix::new(&b_flipped, n, k).transposed(),
        ];
        for (set, is_fused) in tile::sets() {
            let before = numbers(m * (n + 3));
            let sums = |start: &dyn Fn(usize, usize) -> f32| {
                by_definition(&a, &b, [m, k, n], start, is_fused)
            };
            for (add, expected) in [
                (false, sums(&|_, _| 0.0)),
                (true, sums(&|i, j| before[i * (n + 3) + j])),
            ] {
                for (left, right) in lefts
                    .iter()
                    .flat_map(|l| rights.iter().map(move |r| (*l, *r)))
                {
                    let mut out = before.clone();
                    let mut seen = vec![0; m * n];
                    let mut part = Part::strided(&mut out, m, n, n + 3);
                    product(set, &mut part, left, right, add, &mut |part| {
                        for (i, j) in part
                            .rows
                            .clone()
                            .flat_map(|i| part.columns.clone().map(move |j| (i, j)))
                        {
                            seen[i * n + j] += 1;
                        }
                    });
                    for i in 0..m {
                        assert_eq!(
                            out[i * (n + 3)..][..n],
                            expected[i * n..][..n],
                            "{m}, {k}, {n}, row {i}"
                        );
                    }
                    let beyond = (0..m - 1).flat_map(|i| i * (n + 3) + n..(i + 1) * (n + 3));
                    assert!(
                        beyond.clone().all(|e| out[e] == before[e]),
                        "nothing else is written"
                    );
                    assert!(
                        seen.iter().all(|times| *times == 1),
                        "every element is seen once, when it is complete"
                    );
                }
            }
        }
    }
}

/// Another implementation agrees to rounding.
#[test]
fn the_library_agrees() {
    let (a, b) = (numbers(70 * 90), numbers(90 * 110));
    let (left, right) = (Matrix::new(&a, 70, 90), Matrix::new(&b, 90, 110));
    let (mut ours, mut theirs) = (vec![0.0; 70 * 110], vec![0.0; 70 * 110]);
    multiply(&mut ours, left, right, false);
    multiply_by_library(&mut theirs, left, right, 2);
    // A sum of 90 terms of size 1 in single precision.
    let most = 90.0 * f32::EPSILON * 4.0;
    assert!(ours.iter().zip(&theirs).all(|(x, y)| (x - y).abs() < most));
}

/// A transpose of any shape, and nothing beside it is written.
#[test]
fn a_transpose_matches_its_definition() {
    for [rows, columns] in [
        [1, 1],
        [8, 16],
        [7, 33],
        [16, 15],
        [29, 50],
        [64, 48],
        [0, 3],
        [3, 0],
    ] {
        let (stride, width) = (columns + 3, rows + 2);
        let from: Vec<f32> = (0..rows * stride).map(|e| e as f32).collect();
        let mut to = vec![-1.0; columns * width];
        transpose::transpose(&from, stride, rows, columns, &mut to, width);
        for (e, value) in to.iter().enumerate() {
            let (i, j) = (e / width, e % width);
            let expected = if j < rows { from[j * stride + i] } else { -1.0 };
            assert_eq!(*value, expected, "{rows} by {columns}, column {i}, row {j}");
        }
    }
}
