//! The time of matrix products alone, and the rate of this machine: what no implementation of a step on these kernels can beat, and what none at all can.

use super::gemm::{Matrix, Part, multiply, multiply_by_library};
use super::thread_pool::Team;
use std::time::{Duration, Instant};

/// A product `[m, k]·[k, n]`, with either factor stored transposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// Rows of the result and columns of the result, and the length of the sums.
    pub shape: [usize; 3],
    /// Which factors are stored transposed.
    pub transposed: [bool; 2],
    /// Which of m, n, k counts examples, and can be cut.
    pub rows: usize,
}

impl Product {
    /// Floating point operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.shape.iter().map(|x| *x as f64).product::<f64>()
    }

    fn cut(mut self, rows: usize) -> Self {
        self.shape[self.rows] = rows;
        self
    }

    fn run(&self, out: &mut [f32], a: &[f32], b: &[f32]) {
        let [m, n, k] = self.shape;
        let a = if self.transposed[0] {
            Matrix::new(a, k, m).transposed()
        } else {
            Matrix::new(a, m, k)
        };
        let b = if self.transposed[1] {
            Matrix::new(b, n, k).transposed()
        } else {
            Matrix::new(b, k, n)
        };
        multiply(out, a, b, false);
    }
}

/// Floating point operations per second of the best product of two matrices of side 1024 on so many threads, by these kernels or by the crate `gemm`.
pub fn rate(threads: usize) -> f64 {
    const SIDE: usize = 1024;
    let (a, b) = (vec![0.5f32; SIDE * SIDE], vec![0.25f32; SIDE * SIDE]);
    let (left, right) = (Matrix::new(&a, SIDE, SIDE), Matrix::new(&b, SIDE, SIDE));
    let mut out = vec![0f32; SIDE * SIDE];
    let team = Team::new(threads);
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    let mut count = 0;
    while count < 10 || begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        match count % 2 {
            0 => multiply_by_library(&mut out, left, right, threads),
            _ => team.for_each(&mut Part::split(&mut out, SIDE, SIDE, threads), |part| {
                part.multiply(
                    left.rows(part.rows.clone()),
                    right.columns(part.columns.clone()),
                    false,
                );
            }),
        }
        best = best.min(start.elapsed().as_secs_f64());
        count += 1;
    }
    2.0 * (SIDE as f64).powi(3) / best
}

/// Examples of the largest tile: a data set may have more than there is memory for their activations.
const LARGEST_TILE: usize = 4096;

/// Seconds that `products` over `rows` examples take on `threads` threads, in the fastest of several ways: cut into equal shares per thread, or into
/// tiles of at most 4096, of 512, 256 or 128 examples.
pub fn seconds(products: &[Product], rows: usize, threads: usize) -> f64 {
    let share = rows.div_ceil(threads);
    let mut best = f64::INFINITY;
    for tile in [share.min(LARGEST_TILE), 512, 256, 128] {
        if tile > share {
            continue;
        }
        let tiles = share as f64 / tile as f64;
        let slowest = std::thread::scope(|s| {
            let all: Vec<_> = (0..threads)
                .map(|_| s.spawn(|| timed(products, tile)))
                .collect();
            all.into_iter()
                .map(|t| t.join().unwrap_or(f64::INFINITY))
                .fold(0.0, f64::max)
        });
        best = best.min(slowest * tiles);
    }
    best
}

/// Median seconds of all products, each with `rows` examples.
fn timed(products: &[Product], rows: usize) -> f64 {
    let products: Vec<_> = products.iter().map(|p| p.cut(rows)).collect();
    let most = |f: &dyn Fn(&Product) -> usize| products.iter().map(f).max().unwrap_or(0);
    let mut out = vec![0f32; most(&|p| p.shape[0] * p.shape[1])];
    let a = vec![0.5f32; most(&|p| p.shape[0] * p.shape[2])];
    let b = vec![0.25f32; most(&|p| p.shape[1] * p.shape[2])];
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < 5 || begin.elapsed() < Duration::from_millis(150) {
        let start = Instant::now();
        for p in &products {
            p.run(&mut out, &a, &b);
        }
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_examples_than_fit_into_memory_are_measured_in_tiles() {
        let product = Product {
            shape: [1, 8, 4],
            transposed: [false, false],
            rows: 0,
        };
        assert!(seconds(&[product], 1 << 45, 1).is_finite());
    }
}
