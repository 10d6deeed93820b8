//! The stationary law of a linear recursion, exactly.

/// A square matrix, row by row.
pub type Matrix = Vec<Vec<f64>>;

pub fn identity(n: usize) -> Matrix {
    (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect()
}

pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let n = b.len();
    let entry = |row: &Vec<f64>, j: usize| (0..n).map(|k| row[k] * b[k][j]).sum();
    a.iter()
        .map(|row| (0..n).map(|j| entry(row, j)).collect())
        .collect()
}

pub fn transposed(a: &Matrix) -> Matrix {
    (0..a.len())
        .map(|i| a.iter().map(|row| row[i]).collect())
        .collect()
}

pub fn combine(a: &Matrix, s: f64, b: &Matrix) -> Matrix {
    let rows = a.iter().zip(b);
    rows.map(|(x, y)| x.iter().zip(y).map(|(x, y)| x + s * y).collect())
        .collect()
}

/// The covariance P = A P Aᵀ + Q of `x ← A x + noise` of covariance Q, by doubling: P covers 1, 2, 4, … steps.
pub fn covariance(mut a: Matrix, q: Matrix) -> Matrix {
    let mut p = q;
    for _ in 0..60 {
        p = combine(&p, 1.0, &product(&product(&a, &p), &transposed(&a)));
        a = product(&a, &a);
    }
    p
}

/// The cyclic J: (Jg)_k = g_{k+1} - g_{k-1}.
pub fn cyclic(n: usize) -> Matrix {
    let mut j = vec![vec![0.0; n]; n];
    for k in 0..n {
        j[k][(k + 1) % n] += 1.0;
        j[k][(k + n - 1) % n] -= 1.0;
    }
    j
}

/// What the discrete dynamics does on the Gaussian: variance of every mode, and temperatures.
pub struct Law {
    pub variances: Vec<f64>,
    /// Mean of (1/N) Σ p²/M.
    pub kinetic: Option<f64>,
    /// Mean of (1/N) Σ (w-1) ∂U/∂w, where it can be told.
    pub virial: Option<f64>,
}

impl Law {
    /// From the variance, and the mean of p²/M, of a mode of curvature k.
    pub fn by_mode(curvatures: &[f64], mode: impl Fn(f64) -> (f64, Option<f64>)) -> Self {
        let modes: Vec<_> = curvatures.iter().map(|k| mode(*k)).collect();
        let n = curvatures.len() as f64;
        let virial = curvatures
            .iter()
            .zip(&modes)
            .map(|(k, m)| k * m.0 / n)
            .sum();
        let kinetic: Option<f64> = modes.iter().map(|m| m.1).sum();
        Self {
            variances: modes.iter().map(|m| m.0).collect(),
            kinetic: kinetic.map(|k| k / n),
            virial: Some(virial),
        }
    }
}

/// Underdamped dynamics of one mode: `p ← keep·p - force·(kx + ξ) + …`, `x ← x + drift·p`, of the old p if `late`; `noise` is the
/// variance of all noise in p. Returns the variances of x, of p, and of the mean of p before and after a step.
pub fn underdamped(k: f64, [keep, force, drift]: [f64; 3], noise: f64, late: bool) -> [f64; 3] {
    let (a, q) = if late {
        (
            vec![vec![1.0, drift], vec![-force * k, keep]],
            vec![vec![0.0, 0.0], vec![0.0, noise]],
        )
    } else {
        let cross = drift * noise;
        (
            vec![
                vec![1.0 - drift * force * k, drift * keep],
                vec![-force * k, keep],
            ],
            vec![vec![drift * cross, cross], vec![cross, noise]],
        )
    };
    let p = covariance(a, q);
    let lagged = keep * p[1][1] - force * k * p[0][1];
    [p[0][0], p[1][1], 0.5 * (p[1][1] + lagged)]
}
