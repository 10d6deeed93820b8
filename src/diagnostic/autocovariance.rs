//! Autocovariance and autocorrelation of a trace at every lag, by Fourier transform: O(n log n).

use super::moments::mean_of;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::sync::{Arc, Mutex, OnceLock};

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
    let (size, transform) = transform(2 * n);
    let mut work = vec![Complex::default(); transform.get_inplace_scratch_len()];
    let mut power = vec![0.0; size];
    let mut signal = Vec::with_capacity(size);
    // Two chains at a time, as real and imaginary part: the power of x + iy is that of x plus that of y, plus a part
    // that is odd in the frequency and that the real part of the inverse transform leaves out.
    for pair in rows.chunks(2) {
        let real = centred(pair[0].as_ref());
        let imaginary = pair.get(1).map(|row| centred(row.as_ref()));
        let imaginary = |i: usize| imaginary.as_ref().map_or(0.0, |y| y[i]);
        signal.clear();
        signal.extend((0..n).map(|i| Complex::new(real[i], imaginary(i))));
        signal.resize(size, Complex::default());
        transform.process_with_scratch(&mut signal, &mut work);
        for (sum, z) in power.iter_mut().zip(&signal) {
            *sum += z.norm_sqr();
        }
    }
    // The forward transform serves as the inverse one: they differ by a conjugation, and the power is real.
    signal.clear();
    signal.extend(power.iter().map(|p| Complex::from(*p)));
    transform.process_with_scratch(&mut signal, &mut work);
    let norm = size as f64 * n as f64 * rows.len() as f64;
    signal[..n].iter().map(|z| z.re / norm).collect()
}

/// The transform of at least this length that is fastest, and its length: a power of two, or three times one.
fn transform(least: usize) -> (usize, Arc<dyn Fft<f64>>) {
    static KNOWN: OnceLock<Mutex<FftPlanner<f64>>> = OnceLock::new();
    let size = [1, 3].map(|odd| odd * least.div_ceil(odd).next_power_of_two());
    let size = size[0].min(size[1]);
    let known = KNOWN.get_or_init(|| FftPlanner::new().into());
    let mut known = known.lock().unwrap_or_else(|e| e.into_inner());
    (size, known.plan_fft_forward(size))
}

fn centred(row: &[f64]) -> Vec<f64> {
    let mean = mean_of(row.iter().copied());
    row.iter().map(|x| x - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    #[test]
    fn it_is_the_sum_it_stands_for() {
        for (chains, n) in [(1, 1), (1, 2), (2, 3), (3, 17), (4, 48), (4, 64), (5, 65)] {
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
