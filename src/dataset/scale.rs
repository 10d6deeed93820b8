//! Scaling of inputs, column by column, by what the training split shows.

use super::{Dataset, Inputs, Split};
use crate::error::{Result, did_you_mean};
use crate::options::{Kind, Spec, option};
use anyhow::{anyhow, ensure};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How inputs are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As they are.
    None,
    /// Every column to 0 … 1 over the training split; constant columns become 0.
    Unit,
    /// Every column to mean 0 and variance 1 over the training split; constant columns become 0.
    Standard,
}

/// The names, for options.
pub(super) const NAMES: &[&str] = &["unit", "standard", "none"];

/// The option of tables, whose columns have no range known in advance.
pub(super) const COLUMNS: Spec = option(
    "scale",
    Kind::Choice(NAMES),
    "none",
    "Scaling of every input column by the training split: \"unit\" to 0 … 1, \"standard\" to mean 0 and variance 1 \
     (constant columns become 0 in both), or \"none\".",
);

impl FromStr for Scale {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Scale> {
        match text {
            "none" => Ok(Scale::None),
            "unit" => Ok(Scale::Unit),
            "standard" => Ok(Scale::Standard),
            _ => Err(anyhow!(
                "there is no scaling \"{text}\"{}",
                did_you_mean(text, NAMES.iter().copied())
            )),
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scale::None => "none",
            Scale::Unit => "unit",
            Scale::Standard => "standard",
        })
    }
}

/// What the training split shows of one column.
#[derive(Clone, Copy)]
struct Column {
    low: f64,
    high: f64,
    mean: f64,
    variance: f64,
}

impl Dataset {
    /// The data set with scaled inputs; statistics come from the training split only, also for the other splits.
    ///
    /// ±1 bytes become floats.
    pub fn scaled(&self, kind: Scale) -> Result<Dataset> {
        if kind == Scale::None {
            return Ok(self.clone());
        }
        self.ensure_single("scale")?;
        // x ↦ (x - shift) · factor, in double precision: a column may have a large mean and a small spread.
        let map: Vec<(f64, f64)> = columns(&self.train)
            .iter()
            .map(|c| match kind {
                // A constant column by its extremes: its variance can be a rounding error instead of 0.
                _ if c.low == c.high => (c.low, 0.0),
                Scale::Standard => (c.mean, 1.0 / c.variance.sqrt()),
                _ => (c.low, 1.0 / (c.high - c.low)),
            })
            .collect();
        let map = Arc::new(map);
        let apply = |s: &Split| -> Result<Arc<Split>> {
            if let Inputs::Mapped(rows) = &s.inputs {
                let inputs = Inputs::Mapped(Arc::new(rows.scaled(&map)?));
                let new = Split::new(s.dim, inputs, s.targets.clone())?;
                return new.weighted(s.weights.clone()).map(Arc::new);
            }
            let mut x = s.inputs_f64();
            scale(&mut x, &map);
            // A test value far outside the range of training can overflow.
            ensure!(
                x.iter().all(|x| (*x as f32).is_finite()),
                "{}: the scaling \"{kind}\" overflows: a column varies too little in the training split",
                self.name
            );
            s.with_inputs(s.dim, x).map(Arc::new)
        };
        let mut d = self.clone();
        d.train = apply(&self.train)?;
        d.test = self.test.as_deref().map(apply).transpose()?;
        d.validation = self.validation.as_deref().map(apply).transpose()?;
        d.scaling.push(map.clone());
        Ok(d.note(
            "scale",
            format!("{kind}, per column over the training split"),
        ))
    }
}

impl Dataset {
    /// Scale further rows of inputs as those of the data set were.
    pub(super) fn scale_rows(&self, x: &mut [f64]) {
        self.scaling.iter().for_each(|map| scale(x, map));
    }
}

/// Rows as long as the map.
fn scale(x: &mut [f64], map: &[(f64, f64)]) {
    for row in x.chunks_exact_mut(map.len().max(1)) {
        for (x, (shift, factor)) in row.iter_mut().zip(map) {
            *x = one(*x, (*shift, *factor));
        }
    }
}

/// A number of a column that is scaled so.
pub(super) fn one(x: f64, (shift, factor): (f64, f64)) -> f64 {
    (x - shift) * factor
}

/// Range, mean and variance of every column; two passes, because one loses the variance of a column far from 0.
fn columns(s: &Split) -> Vec<Column> {
    let mut c = vec![
        Column {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            mean: 0.0,
            variance: 0.0
        };
        s.dim
    ];
    let n = s.rows as f64;
    s.for_each_input(|row| {
        for (c, &x) in c.iter_mut().zip(row) {
            c.low = c.low.min(x);
            c.high = c.high.max(x);
            c.mean += x / n;
        }
    });
    s.for_each_input(|row| {
        for (c, &x) in c.iter_mut().zip(row) {
            c.variance += (x - c.mean).powi(2) / n;
        }
    });
    c
}

#[cfg(test)]
mod tests {
    use super::super::Targets;
    use super::*;

    fn split(x: &[f32]) -> Split {
        let rows = x.len() / 3;
        Split::new(
            3,
            Inputs::F32(x.into()),
            Targets::Classes((0..rows as u32).map(|r| r % 2).collect()),
        )
        .unwrap()
    }

    /// Columns: spread around a large offset, constant, plain.
    fn dataset() -> Dataset {
        let train = split(&[10_000.0, 7.0, 0.0, 10_001.0, 7.0, 4.0, 10_002.0, 7.0, 2.0]);
        Dataset::new("d", 2, train, Some(split(&[10_003.0, 8.0, 4.0])), vec![]).unwrap()
    }

    #[test]
    fn standard_gives_mean_zero_and_variance_one_over_training() {
        let d = dataset().scaled(Scale::Standard).unwrap();
        let c = columns(&d.train);
        for j in [0, 2] {
            assert!(c[j].mean.abs() < 1e-6 && (c[j].variance - 1.0).abs() < 1e-6);
        }
        assert_eq!((c[1].low, c[1].high), (0.0, 0.0));
        // The test row is mapped by the training statistics: (10003 - 10001) / sqrt(2/3).
        let x = d.test.as_ref().unwrap().inputs_f64();
        assert!((x[0] - 6f64.sqrt()).abs() < 1e-5 && x[1] == 0.0, "{x:?}");
    }

    #[test]
    fn unit_gives_the_range_zero_to_one_over_training() {
        let d = dataset().scaled(Scale::Unit).unwrap();
        assert_eq!(
            d.train.inputs_f64(),
            [0.0, 0.0, 0.0, 0.5, 0.0, 1.0, 1.0, 0.0, 0.5]
        );
        assert_eq!(d.test.as_ref().unwrap().inputs_f64(), [1.5, 0.0, 1.0]);
        assert!(d.to_string().contains("scale       unit, per column"));
    }

    #[test]
    fn none_changes_nothing_and_bytes_become_floats() {
        let d = dataset().scaled(Scale::None).unwrap();
        assert_eq!(d.train, dataset().train);
        let spins = Split::new(1, Inputs::I8(vec![1, -1]), Targets::Classes(vec![0, 1])).unwrap();
        let d = Dataset::new("s", 2, spins, None, vec![])
            .unwrap()
            .scaled(Scale::Unit)
            .unwrap();
        assert_eq!(d.train.inputs, Inputs::F32(vec![1.0, 0.0]));
    }

    #[test]
    fn an_unknown_scaling_is_named_and_an_overflow_is_refused() {
        let e = "standart".parse::<Scale>().unwrap_err().to_string();
        assert!(e.contains("did you mean 'standard'"), "{e}");
        let train = split(&[0.0, 0.0, 0.0, 1e-30, 1.0, 1.0]);
        let d = Dataset::new("d", 2, train, Some(split(&[1e30, 0.0, 0.0])), vec![]).unwrap();
        assert!(
            d.scaled(Scale::Unit)
                .unwrap_err()
                .to_string()
                .contains("overflows")
        );
    }
}
