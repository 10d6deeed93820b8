//! What is done to the axes of tensors.

use super::{Binary, Operation, Reduce, Shape, Tensor};
use crate::error::Result;
use anyhow::{anyhow, bail, ensure};

impl Tensor {
    /// The same numbers in another shape; one length may be -1 and is then found out. Of a tensor with rows, the first is -1.
    pub fn reshape(&self, dims: &[i64]) -> Result<Tensor> {
        if let Tensor::Traced(s) = self
            && s.shape().is_none()
            && let [-1, rest @ ..] = dims
            && let Ok(rest) = rest
                .iter()
                .map(|d| usize::try_from(*d))
                .collect::<std::result::Result<Vec<_>, _>>()
        {
            return Self::apply(Operation::Reshape(rest), &[self]);
        }
        let shape = self.shape()?;
        let wrong = |d: i64| {
            anyhow!(
                "reshape: {d} is no length of an axis; lengths are at least 1, and one may be -1"
            )
        };
        let mut given = dims;
        if shape.rows {
            let [-1, rest @ ..] = dims else {
                bail!(
                    "reshape of a tensor with rows, {shape}: the first length must be -1, for the rows"
                );
            };
            given = rest;
        }
        let open = given.iter().filter(|d| **d == -1).count();
        ensure!(
            open <= 1,
            "reshape: only one length may be -1{}",
            if shape.rows {
                " besides that of the rows"
            } else {
                ""
            }
        );
        let mut out = Vec::new();
        let mut product = 1usize;
        for d in given.iter().filter(|d| **d != -1) {
            let d = usize::try_from(*d)
                .ok()
                .filter(|d| *d > 0)
                .ok_or_else(|| wrong(*d))?;
            product = product
                .checked_mul(d)
                .ok_or_else(|| anyhow!("reshape: too large"))?;
        }
        for d in given {
            out.push(match usize::try_from(*d) {
                Ok(d) => d,
                Err(_) => {
                    ensure!(
                        shape.count().is_multiple_of(product),
                        "reshape: {shape} has {} numbers{}, which is no multiple of {product}",
                        shape.count(),
                        if shape.rows { " per row" } else { "" }
                    );
                    shape.count() / product
                }
            });
        }
        Self::apply(Operation::Reshape(out), &[self])
    }

    /// An axis of length 1 more; the last is -1.
    pub fn unsqueeze(&self, axis: i64) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let rank = shape.rank() as i64;
        let at = if axis < 0 { axis + rank + 1 } else { axis };
        ensure!(
            at >= i64::from(shape.rows) && at <= rank,
            "unsqueeze: no axis can be put at {axis} of {shape}"
        );
        shape.dims.insert(at as usize - usize::from(shape.rows), 1);
        Self::apply(Operation::Reshape(shape.dims), &[self])
    }

    /// Without an axis of length 1.
    pub fn squeeze(&self, axis: i64) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let at = shape.axis("squeeze", axis)?;
        ensure!(
            shape.dims[at] == 1,
            "squeeze: axis {axis} of {shape} has more than one entry"
        );
        shape.dims.remove(at);
        Self::apply(Operation::Reshape(shape.dims), &[self])
    }

    /// All numbers along one axis; those of each row along one.
    pub fn flatten(&self) -> Result<Tensor> {
        let shape = self.shape()?;
        Self::apply(Operation::Reshape(vec![shape.count()]), &[self])
    }

    /// Two axes exchanged.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let shape = self.shape()?;
        let (a, b) = (shape.axis("transpose", a)?, shape.axis("transpose", b)?);
        Self::apply(Operation::Transpose(a.min(b), a.max(b)), &[self])
    }

    /// The last two axes exchanged.
    pub fn t(&self) -> Result<Tensor> {
        let shape = self.shape()?;
        ensure!(
            shape.dims.len() >= 2,
            "t exchanges the last two axes, which a tensor of shape {shape} has not{}",
            if shape.rows { " besides the rows" } else { "" }
        );
        self.transpose(-2, -1)
    }

    /// Matrix product.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        Self::apply(Operation::Product, &[self, other])
    }

    /// The entries `from..to` along an axis; numbers below 0 count from the end.
    pub fn slice(&self, axis: i64, from: i64, to: i64) -> Result<Tensor> {
        let shape = self.shape()?;
        let at = shape.axis("slice", axis)?;
        let length = shape.dims[at] as i64;
        let place = |x: i64| if x < 0 { x + length } else { x };
        let (a, z) = (place(from), place(to));
        ensure!(
            0 <= a && a < z && z <= length,
            "slice: there is no {from}..{to} along axis {axis}, which has {length} entries"
        );
        let (start, count) = (a as usize, (z - a) as usize);
        let operation = Operation::Slice {
            axis: at,
            start,
            count,
        };
        Self::apply(operation, &[self])
    }

    /// One entry along an axis, which is dropped; numbers below 0 count from the end.
    pub fn select(&self, axis: i64, index: i64) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let at = shape.axis("select", axis)?;
        let length = shape.dims[at] as i64;
        let start = if index < 0 { index + length } else { index };
        ensure!(
            (0..length).contains(&start),
            "there is no entry {index} along axis {axis} of {shape}, which has {length}"
        );
        let start = start as usize;
        let operation = Operation::Slice {
            axis: at,
            start,
            count: 1,
        };
        let cut = Self::apply(operation, &[self])?;
        shape.dims.remove(at);
        Self::apply(Operation::Reshape(shape.dims), &[&cut])
    }

    /// One after the other along an axis.
    pub fn concat(all: &[&Tensor], axis: i64) -> Result<Tensor> {
        let first = all
            .iter()
            .map(|t| t.shape())
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .max_by_key(|s| s.rows)
            .ok_or_else(|| anyhow!("concat: there are no tensors"))?;
        let axis = first.axis("concat", axis)?;
        Self::apply(Operation::Concat(axis), all)
    }

    /// Sum, largest or smallest along an axis; `keep` leaves it with length 1.
    pub fn reduce(&self, how: Reduce, axis: i64, keep: bool) -> Result<Tensor> {
        let mut shape = self.shape()?;
        let at = shape.axis(Operation::Reduce(how, 0).name(), axis)?;
        let out = Self::apply(Operation::Reduce(how, at), &[self])?;
        if !keep {
            return Ok(out);
        }
        shape.dims[at] = 1;
        Self::apply(Operation::Reshape(shape.dims), &[&out])
    }

    /// Sum, largest or smallest of all numbers.
    pub fn reduce_all(&self, how: Reduce) -> Result<Tensor> {
        let shape = self.shape()?;
        let name = Operation::Reduce(how, 0).name();
        ensure!(!shape.rows, all_of(name, &shape));
        Self::apply(Operation::Reduce(how, 0), &[&self.flatten()?])
    }

    /// The mean along an axis, or of all numbers.
    pub fn mean(&self, axis: Option<i64>, keep: bool) -> Result<Tensor> {
        let shape = self.shape()?;
        let (sum, count) = match axis {
            Some(axis) => {
                let count = shape.dims[shape.axis("mean", axis)?];
                (self.reduce(Reduce::Sum, axis, keep)?, count)
            }
            None => {
                ensure!(!shape.rows, all_of("mean", &shape));
                (self.reduce_all(Reduce::Sum)?, shape.count())
            }
        };
        let share = Self::number(1.0 / count as f64, &sum)?;
        sum.binary(Binary::Multiply, &share)
    }

    /// exp(x) / Σ exp(x) along an axis, or its logarithm.
    pub fn softmax(&self, axis: i64, logarithm: bool) -> Result<Tensor> {
        let what = if logarithm { "log_softmax" } else { "softmax" };
        let at = self.shape()?.axis(what, axis)?;
        let operation = match logarithm {
            true => Operation::LogSoftmax(at),
            false => Operation::Softmax(at),
        };
        Self::apply(operation, &[self])
    }

    /// `a` where `self` is not 0, otherwise `b`.
    pub fn choose(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        Self::apply(Operation::Choose, &[self, a, b])
    }
}

/// Why a tensor with rows has no sum of everything.
fn all_of(name: &str, shape: &Shape) -> String {
    format!("{name} without an axis would mix examples; of shape {shape}, name an axis: {name}(-1)")
}
