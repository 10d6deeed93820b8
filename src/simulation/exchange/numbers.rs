//! State as plain numbers, for checkpoints: whole ones and real ones, in the order they were written.

use crate::error::Result;
use crate::store::archive::Archive;

/// What a checkpoint keeps of an object. Neither array loses a bit on the way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers {
    /// Counts, indices and labels.
    pub whole: Vec<u64>,
    /// Sums and sizes.
    pub real: Vec<f64>,
}

/// Keep an object as numbers.
pub(super) fn keep<O>(
    archive: &mut Archive,
    name: &str,
    object: &mut O,
    numbers: fn(&O) -> Numbers,
    restored: fn(&Numbers) -> Result<O>,
) -> Result<()> {
    let mut kept = match archive.restores() {
        true => Numbers::default(),
        false => numbers(object),
    };
    let (whole, real) = (format!("{name}.whole"), format!("{name}.real"));
    let put = |k: &mut Numbers, found| {
        k.whole = found;
        Ok(())
    };
    archive.made(&whole, &mut kept, |k| k.whole.clone(), put)?;
    let put = |k: &mut Numbers, found| {
        k.real = found;
        Ok(())
    };
    archive.made(&real, &mut kept, |k| k.real.clone(), put)?;
    if archive.restores() {
        *object = restored(&kept)?;
    }
    Ok(())
}

/// Reads numbers back, in the order they were written.
pub(super) struct Reader<'a> {
    whole: &'a [u64],
    real: &'a [f64],
}

impl<'a> Reader<'a> {
    pub fn new(numbers: &'a Numbers) -> Self {
        Self {
            whole: &numbers.whole,
            real: &numbers.real,
        }
    }

    /// The next `n` whole numbers.
    pub fn whole(&mut self, n: usize) -> Result<&'a [u64]> {
        let (taken, rest) = self.whole.split_at_checked(n).ok_or_else(short)?;
        self.whole = rest;
        // Whatever is counted, it has not happened that often: damage, which must not overflow later.
        let most = taken.iter().max().copied().unwrap_or(0);
        anyhow::ensure!(
            most <= 1 << 48,
            "the checkpoint of the exchange has a count of {most}"
        );
        Ok(taken)
    }

    /// The next whole number.
    pub fn one(&mut self) -> Result<u64> {
        Ok(self.whole(1)?[0])
    }

    /// The next whole number as a count of things in memory.
    pub fn count(&mut self) -> Result<usize> {
        let n = self.one()?;
        usize::try_from(n).map_err(|_| anyhow::anyhow!("the checkpoint counts {n} items"))
    }

    /// The next `n` real numbers.
    pub fn real(&mut self, n: usize) -> Result<&'a [f64]> {
        let (taken, rest) = self.real.split_at_checked(n).ok_or_else(short)?;
        self.real = rest;
        Ok(taken)
    }

    /// # Errors
    /// If numbers are left.
    pub fn end(self) -> Result<()> {
        anyhow::ensure!(
            self.whole.is_empty() && self.real.is_empty(),
            "the checkpoint of the exchange has more numbers than it should: {} whole, {} real too many",
            self.whole.len(),
            self.real.len()
        );
        Ok(())
    }
}

fn short() -> anyhow::Error {
    anyhow::anyhow!("the checkpoint of the exchange has fewer numbers than it should")
}
