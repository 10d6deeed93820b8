//! The mean of a correlated series of unknown length and its error, in constant memory.

use super::numbers::{Numbers, Reader};
use crate::error::Result;

/// Complete batches are at most this many, and from then on at least half as many.
const MOST: usize = 64;

/// Batch means: sums over consecutive batches, which are merged two by two, and so double in length, when there are 64.
///
/// The squared error of the mean is V(b) = b s²/n, with s² the variance of the means of complete batches of b numbers and
/// n all numbers: right when a batch outlasts the correlations of the series (Geyer, "Practical
/// Markov chain Monte Carlo", Statistical Science 7 (1992) 473). What batches miss goes with 1/b, so that 2V(2b) - V(b) lacks
/// it (Vats & Flegal, "Lugsail lag windows", Biometrika 109 (2022) 735); that is taken where it is larger.
#[derive(Debug, Clone, PartialEq)]
pub struct Batches {
    /// Numbers in a complete batch.
    size: u64,
    /// Sums over the complete batches.
    sums: Vec<f64>,
    /// Numbers in the batch that is not complete, and their sum.
    open: u64,
    open_sum: f64,
}

impl Batches {
    /// An empty series, in batches of `size` numbers at first, at least 1: the period of the series, if it has one.
    pub fn new(size: u64) -> Self {
        Self {
            size: size.max(1),
            sums: Vec::new(),
            open: 0,
            open_sum: 0.0,
        }
    }

    /// Add the next number.
    pub fn add(&mut self, x: f64) {
        self.open += 1;
        self.open_sum += x;
        if self.open < self.size {
            return;
        }
        self.sums.push(self.open_sum);
        (self.open, self.open_sum) = (0, 0.0);
        if self.sums.len() == MOST {
            self.sums = self.sums.chunks(2).map(|two| two.iter().sum()).collect();
            self.size *= 2;
        }
    }

    /// How many numbers were added.
    pub fn count(&self) -> u64 {
        self.sums.len() as u64 * self.size + self.open
    }

    /// Their mean; NaN without any.
    pub fn mean(&self) -> f64 {
        (self.sums.iter().sum::<f64>() + self.open_sum) / self.count() as f64
    }

    /// The standard error of their mean; NaN with fewer than two complete batches.
    pub fn error(&self) -> f64 {
        let single = self.squared_error(1);
        let pairs = self.squared_error(2);
        // NaN is the smaller of two.
        single.max(2.0 * pairs - single).sqrt()
    }

    /// V of batches of so many of ours; NaN of fewer than two.
    fn squared_error(&self, together: usize) -> f64 {
        let sums: Vec<f64> = self
            .sums
            .chunks_exact(together)
            .map(|some| some.iter().sum())
            .collect();
        let (n, size) = (sums.len() as f64, (together as u64 * self.size) as f64);
        let mean = sums.iter().sum::<f64>() / n;
        let squares: f64 = sums.iter().map(|s| (s - mean) * (s - mean)).sum();
        // 0/0 of one.
        squares / (n - 1.0) / size / self.count() as f64
    }

    pub(super) fn write(&self, out: &mut Numbers) {
        out.whole
            .extend([self.size, self.open, self.sums.len() as u64]);
        out.real.push(self.open_sum);
        out.real.extend(&self.sums);
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self> {
        let (size, open, n) = (reader.one()?, reader.one()?, reader.count()?);
        anyhow::ensure!(
            size > open && n < MOST,
            "the checkpoint has {n} batches of {size} numbers and {open} in an open one"
        );
        Ok(Self {
            size,
            open,
            open_sum: reader.real(1)?[0],
            sums: reader.real(n)?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::uniform;
    use super::*;

    fn of(series: impl IntoIterator<Item = f64>) -> Batches {
        let mut batches = Batches::new(1);
        series.into_iter().for_each(|x| batches.add(x));
        batches
    }

    #[test]
    fn known_answers() {
        let few = of([1.0, 2.0, 4.0]);
        assert_eq!((few.count(), few.mean()), (3, 7.0 / 3.0));
        // Variance (16 + 1 + 25)/9/2 = 7/3 of three numbers, of which one pair is complete.
        assert!((few.error() - (7.0f64 / 9.0).sqrt()).abs() < 1e-15);
        assert!(of([]).mean().is_nan() && of([1.0]).error().is_nan());
        let many = of((0..1000).map(f64::from));
        assert_eq!((many.count(), many.mean()), (1000, 499.5));
    }

    /// Null: the error is that of an AR(1) process, whose mean of n has the variance (1 + φ)/(1 - φ)/n for unit variance. The
    /// squared error is averaged over 200 runs, and its own spread gives the 4 sigma. It is not below the truth; the larger of two estimates that scatter by 25 % is above it, by
    /// a fifth where both are right.
    #[test]
    fn the_error_counts_correlations() {
        let (phi, n, runs) = (0.8f64, 8192u32, 200);
        let squares: Vec<f64> = (0..runs)
            .map(|run| {
                let mut x = 0.0;
                let series = (0..n + 100).map(|t| {
                    let noise = (0..12).map(|i| uniform(run, t as u64, i)).sum::<f64>() - 6.0;
                    x = phi * x + (1.0 - phi * phi).sqrt() * noise;
                    x
                });
                of(series.skip(100)).error().powi(2)
            })
            .collect();
        let exact = (1.0 + phi) / (1.0 - phi) / n as f64;
        let all = of(squares);
        assert!(
            all.mean() > exact - 4.0 * all.error() && all.mean() < 1.3 * exact,
            "{} +- {}, {exact}",
            all.mean(),
            all.error()
        );
        // Were the numbers taken for independent, the variance would be 9 times too small.
        assert!(all.error() < 0.05 * exact);
    }
}
