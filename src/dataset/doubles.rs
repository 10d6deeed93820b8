//! Numbers in double precision: networks compute with floats, but a file may have more digits, and energies written in a script compute in
//! double precision.

use super::{Inputs, Split, Targets};
use crate::error::Result;
use std::sync::Arc;

/// Numbers of a split of which a second copy is kept; larger ones are kept in single precision alone, unless that is too coarse for a column.
pub(super) const MOST: usize = 1 << 22;

/// Inputs and target values of a split in double precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubles {
    /// Row-major `[rows, dim]`.
    pub inputs: Vec<f64>,
    /// Row-major `[rows, width]`; empty for labels.
    pub targets: Vec<f64>,
}

impl Doubles {
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.inputs[..]) + size_of_val(&self.targets[..])
    }
}

/// Targets of rows in double precision.
pub enum Answers {
    /// Labels, as in [`Targets`].
    Labels(Targets),
    /// Numbers, row-major `[rows, width]`.
    Values {
        /// Numbers per row.
        width: usize,
        /// The numbers.
        data: Vec<f64>,
    },
}

/// Whether single precision has the number as it is.
fn is_single(x: &f64) -> bool {
    x.is_nan() || f64::from(*x as f32) == *x
}

/// Whether single precision rounds a column by more than 1e-4 of its range, as that of times in seconds since 1970: scaling would show the rounding.
fn is_coarse(dim: usize, inputs: &[f64]) -> bool {
    let mut of_columns = vec![(f64::INFINITY, f64::NEG_INFINITY, 0.0f64); dim];
    for row in inputs.chunks_exact(dim.max(1)) {
        for ((low, high, rounding), x) in of_columns.iter_mut().zip(row) {
            (*low, *high) = (low.min(*x), high.max(*x));
            *rounding = rounding.max((f64::from(*x as f32) - x).abs());
        }
    }
    let mut all = of_columns.iter();
    all.any(|(low, high, rounding)| high > low && *rounding > 1e-4 * (high - low))
}

/// The shortest decimal that means this number in single precision: 0.1 and not 0.10000000149011612.
pub fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}

impl Split {
    /// A split of numbers in double precision, which are kept where single precision rounds one and there are no more than some millions, or it is too coarse for
    /// a column.
    pub fn of_doubles(dim: usize, inputs: Vec<f64>, targets: Answers) -> Result<Split> {
        let single = |all: &[f64]| -> Vec<f32> { all.iter().map(|x| *x as f32).collect() };
        let x = Inputs::F32(single(&inputs));
        let (y, targets) = match targets {
            Answers::Labels(labels) => (labels, Vec::new()),
            Answers::Values { width, data } => {
                let y = single(&data);
                (Targets::Values { width, data: y }, data)
            }
        };
        let mut out = Split::new(dim, x, y)?;
        let exact = inputs.iter().chain(&targets).all(is_single);
        let few = inputs.len() + targets.len() <= MOST;
        if !exact && (few || is_coarse(dim, &inputs)) {
            out.doubles = Some(Arc::new(Doubles { inputs, targets }));
        }
        Ok(out)
    }

    /// All inputs in double precision, `[rows, dim]`.
    pub fn inputs_f64(&self) -> Vec<f64> {
        if let Some(d) = &self.doubles {
            return d.inputs.clone();
        }
        let mut x = vec![0f32; self.rows * self.dim];
        self.copy(0..self.rows, &mut x);
        x.into_iter().map(f64::from).collect()
    }

    /// Show the input of each row in double precision, as scaling sees it, without a copy of all of them.
    pub(super) fn for_each_input(&self, mut each: impl FnMut(&[f64])) {
        if let Some(d) = &self.doubles {
            return d.inputs.chunks_exact(self.dim).for_each(each);
        }
        let (mut x, mut wide) = (vec![0f32; self.dim], vec![0f64; self.dim]);
        for i in 0..self.rows {
            match &self.inputs {
                Inputs::Mapped(rows) => rows.unscaled(i as u32, &mut x, &mut wide),
                _ => {
                    self.copy(i..i + 1, &mut x);
                    for (wide, x) in wide.iter_mut().zip(&x) {
                        *wide = f64::from(*x);
                    }
                }
            }
            each(&wide);
        }
    }

    /// All targets in double precision, labels as numbers, `[rows, width]`.
    pub fn targets_f64(&self) -> Vec<f64> {
        match (&self.doubles, self.labels()) {
            (_, Some(labels)) => labels.iter().map(|l| f64::from(*l)).collect(),
            (Some(d), None) => d.targets.clone(),
            (None, None) => {
                let mut y = vec![0f32; self.rows * self.targets.width()];
                self.copy_values(0..self.rows, &mut y);
                y.into_iter().map(f64::from).collect()
            }
        }
    }

    /// Inputs and targets of one row as they are shown: no digits that the file does not have.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn shown(&self, row: usize) -> (Vec<f64>, Vec<f64>) {
        let (dim, width) = (self.dim, self.targets.width());
        if let Some(d) = &self.doubles {
            let x = d.inputs[row * dim..][..dim].to_vec();
            let y = match self.labels() {
                Some(labels) => labels[row * width..][..width]
                    .iter()
                    .map(|l| f64::from(*l))
                    .collect(),
                None => d.targets[row * width..][..width].to_vec(),
            };
            return (x, y);
        }
        let mut x = vec![0f32; dim];
        self.copy(row..row + 1, &mut x);
        let y = match self.labels() {
            Some(labels) => labels[row * width..][..width]
                .iter()
                .map(|l| f64::from(*l))
                .collect(),
            None => {
                let mut y = vec![0f32; width];
                self.copy_values(row..row + 1, &mut y);
                y.into_iter().map(shortest).collect()
            }
        };
        (x.into_iter().map(shortest).collect(), y)
    }

    /// The same rows with other inputs, given in double precision; they are kept in it if those before were.
    pub(super) fn with_inputs(&self, dim: usize, inputs: Vec<f64>) -> Result<Split> {
        if self.doubles.is_none() {
            let x = inputs.into_iter().map(|x| x as f32).collect();
            let new = Split::new(dim, Inputs::F32(x), self.targets.clone())?;
            return new.weighted(self.weights.clone());
        }
        let targets = match self.labels() {
            Some(_) => Answers::Labels(self.targets.clone()),
            None => Answers::Values {
                width: self.targets.width(),
                data: self.targets_f64(),
            },
        };
        Split::of_doubles(dim, inputs, targets)?.weighted(self.weights.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_double_precision_are_kept_only_where_there_are_some() {
        let split = |x: Vec<f64>| {
            let targets = Answers::Values {
                width: 1,
                data: vec![1.5; x.len() / 2],
            };
            Split::of_doubles(2, x, targets).unwrap()
        };
        assert_eq!(split(vec![0.5, 3.0]).doubles, None);
        let s = split(vec![1.008224924, 3.0, 0.1, 2.0]);
        assert_eq!(s.shown(0), (vec![1.008224924, 3.0], vec![1.5]));
        assert_eq!(s.inputs, Inputs::F32(vec![1.008_225, 3.0, 0.1, 2.0]));
        assert_eq!(s.select(&[1]).shown(0).0, [0.1, 2.0]);
        assert_eq!(s.bytes(), 4 * 4 + 2 * 4 + 6 * 8);
        // Of millions only those that single precision would make the same.
        let many = |from: f64| (0..MOST + 2).map(|i| from + i as f64 * 1e-2).collect();
        assert_eq!(split(many(0.0)).doubles, None);
        let times = split(many(1.7e9));
        assert_eq!(times.inputs_f64()[..2], [1.7e9, 1.7e9 + 1e-2]);
        // What came in single precision has no more digits than that.
        let single = Split::new(
            1,
            Inputs::F32(vec![0.1]),
            Targets::Values {
                width: 1,
                data: vec![-2.3e-12],
            },
        );
        assert_eq!(single.unwrap().shown(0), (vec![0.1], vec![-2.3e-12]));
    }
}
