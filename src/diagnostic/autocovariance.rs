//! Autocovariance and autocorrelation of a trace at every lag, by Fourier transform: O(n log n).

use super::moments::mean_of;
use std::f64::consts::TAU;

/// Autocorrelation of one trace at lags 0 to n - 1, dimensionless: 1 at lag 0.
///
/// The biased estimate (1/n at every lag), as ArviZ's `autocorr`. All NaN for a trace that is constant or has a NaN.
pub fn autocorrelation(trace: &[f64]) -> Vec<f64> {
    let mut lags = mean_autocovariance(&[trace]);
    let variance = lags.first().copied().unwrap_or(f64::NAN);
    lags.iter_mut().for_each(|c| *c /= variance);
    lags
}

/// Autocovariance about each chain's own mean, averaged over chains, at lags 0 to n - 1, in squared units.
///
/// `rows` has shape (chains, n). The estimate at lag t is sum over i of (x_i - m)(x_(i+t) - m), divided by n.
pub(super) fn mean_autocovariance<C: AsRef<[f64]>>(rows: &[C]) -> Vec<f64> {
    let n = rows.first().map_or(0, |row| row.as_ref().len());
    if n == 0 {
        return Vec::new();
    }
    // Zeros to twice the length keep the circular correlation from wrapping around.
    let transform = Fourier::new((2 * n).next_power_of_two());
    let mut power = vec![0.0; transform.size];
    let mut signal = Vec::with_capacity(transform.size);
    // Two chains at a time, as real and imaginary part: the power of x + iy is that of x plus that of y, plus a part
    // that is odd in the frequency and that the real part of the inverse transform leaves out.
    for pair in rows.chunks(2) {
        let real = centred(pair[0].as_ref());
        let imaginary = pair.get(1).map(|row| centred(row.as_ref()));
        signal.clear();
        signal.extend((0..n).map(|i| (real[i], imaginary.as_ref().map_or(0.0, |y| y[i]))));
        signal.resize(transform.size, (0.0, 0.0));
        transform.forward(&mut signal);
        for (sum, (re, im)) in power.iter_mut().zip(&signal) {
            *sum += re * re + im * im;
        }
    }
    // The forward transform serves as the inverse one: they differ by a conjugation, and the power is real.
    signal.clear();
    signal.extend(power.iter().map(|p| (*p, 0.0)));
    transform.forward(&mut signal);
    let norm = transform.size as f64 * n as f64 * rows.len() as f64;
    signal[..n].iter().map(|(re, _)| re / norm).collect()
}

fn centred(row: &[f64]) -> Vec<f64> {
    let mean = mean_of(row.iter().copied());
    row.iter().map(|x| x - mean).collect()
}

/// A complex Fourier transform of one power-of-two size; numbers are (real, imaginary).
struct Fourier {
    size: usize,
    /// exp(-2 pi i k / 2h) for k < h, one after the other for h = 1, 2, 4, ...
    roots: Vec<(f64, f64)>,
}

impl Fourier {
    /// `size` is a power of two.
    fn new(size: usize) -> Self {
        let halves = (0..size.trailing_zeros()).map(|stage| 1usize << stage);
        let root = |(k, half): (usize, usize)| {
            let (sin, cos) = (TAU * k as f64 / (2 * half) as f64).sin_cos();
            (cos, -sin)
        };
        let roots = halves.flat_map(|half| (0..half).map(move |k| (k, half)));
        let roots = roots.map(root).collect();
        Self { size, roots }
    }

    /// In place, unnormalised: decimation in time (Cooley and Tukey 1965).
    fn forward(&self, signal: &mut [(f64, f64)]) {
        let shift = (usize::BITS - self.size.trailing_zeros()) % usize::BITS;
        for i in 0..self.size {
            let reversed = i.reverse_bits() >> shift;
            if i < reversed {
                signal.swap(i, reversed);
            }
        }
        self.combine(signal);
    }

    /// From transforms of length 1 to one of the whole block; parts of it that fit into the cache are done first.
    fn combine(&self, block: &mut [(f64, f64)]) {
        const CACHED: usize = 1 << 11;
        let mut half = 1;
        if block.len() > CACHED {
            half = block.len() / 2;
            let (even, odd) = block.split_at_mut(half);
            self.combine(even);
            self.combine(odd);
        }
        while half < block.len() {
            let roots = &self.roots[half - 1..2 * half - 1];
            for pair in block.chunks_exact_mut(2 * half) {
                let (even, odd) = pair.split_at_mut(half);
                for ((a, b), (cos, sin)) in even.iter_mut().zip(odd).zip(roots) {
                    let turned = (b.0 * cos - b.1 * sin, b.0 * sin + b.1 * cos);
                    *b = (a.0 - turned.0, a.1 - turned.1);
                    *a = (a.0 + turned.0, a.1 + turned.1);
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    #[test]
    fn it_is_the_sum_it_stands_for() {
        for (chains, n) in [(1, 1), (1, 2), (2, 3), (3, 17), (4, 64), (5, 65)] {
            let rows: Vec<_> = (0..chains).map(|seed| normal_draws(seed, n)).collect();
            let got = mean_autocovariance(&rows);
            for (lag, got) in got.iter().enumerate() {
                let direct = rows.iter().map(|row| {
                    let x = centred(row);
                    let sum: f64 = x.iter().zip(&x[lag..]).map(|(a, b)| a * b).sum();
                    sum / (n * chains as usize) as f64
                });
                assert!((got - direct.sum::<f64>()).abs() < 1e-15 * 8.0);
            }
            assert_eq!(got.len(), n);
        }
    }

    #[test]
    fn an_alternating_trace_is_anticorrelated() {
        let got = autocorrelation(&[1.0, -1.0, 1.0, -1.0]);
        for (got, want) in got.iter().zip([1.0, -0.75, 0.5, -0.25]) {
            assert!((got - want).abs() < 1e-15);
        }
    }

    #[test]
    fn a_constant_and_a_nan_have_none() {
        assert!(autocorrelation(&[0.1; 7]).iter().all(|r| r.is_nan()));
        assert!(
            autocorrelation(&[1.0, f64::NAN, 2.0])
                .iter()
                .all(|r| r.is_nan())
        );
        assert!(autocorrelation(&[]).is_empty());
    }
}
