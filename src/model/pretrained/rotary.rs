//! Angles of rotary positions.

use crate::error::Result;
use anyhow::ensure;
use std::f64::consts::TAU;

/// The angles, in radians, by which pairs of numbers turn from one position to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies(pub Vec<f64>);

impl Frequencies {
    /// base^(-2i/width) of pair i (Su et al. 2021, eq. 15).
    pub fn plain(base: f64, width: usize) -> Result<Self> {
        ensure!(
            width > 0 && width.is_multiple_of(2),
            "config.json: {width} numbers of a head are to turn, but pairs of them turn"
        );
        let power = |i: usize| -2.0 * i as f64 / width as f64;
        Ok(Self((0..width / 2).map(|i| base.powf(power(i))).collect()))
    }

    /// Slower by a factor, as if positions were nearer to each other.
    pub fn linear(self, factor: f64) -> Self {
        Self(self.0.into_iter().map(|f| f / factor).collect())
    }

    /// Llama 3.1: what turns less than `bounds[0]` times within so many positions is slower by a factor, what turns more than `bounds[1]` times stays
    /// as it is, and what is between them is interpolated.
    pub fn llama3(self, factor: f64, [low, high]: [f64; 2], positions: f64) -> Self {
        let each = self.0.into_iter().map(|f| {
            let turns = positions * f / TAU;
            let share = ((turns - low) / (high - low)).clamp(0.0, 1.0);
            (1.0 - share) * f / factor + share * f
        });
        Self(each.collect())
    }
}
