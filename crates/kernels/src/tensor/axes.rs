//! What is done to the axes of tensors.

use super::{Binary, Operation, Reduce, Shape, Tensor, Unary};
use crate::Result;
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
            return self.shaped(rest);
        }
        let shape = self.shape()?;
        let wrong = |d: i64| {
            anyhow!(
                "reshape: {d} is not a valid axis length; lengths are at least 1, and one may be -1"
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
                        "reshape: {shape} has {} numbers{}, not a multiple of {product}",
                        shape.count(),
                        if shape.rows { " per row" } else { "" }
                    );
                    shape.count() / product
                }
            });
        }
        self.shaped(out)
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
        self.shaped(shape.dims)
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
        self.shaped(shape.dims)
    }

    /// All numbers along one axis; those of each row along one.
    pub fn flatten(&self) -> Result<Tensor> {
        let shape = self.shape()?;
        self.shaped(vec![shape.count()])
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
            "t exchanges the last two axes, which a tensor of shape {shape} does not have{}",
            if shape.rows { " besides the rows" } else { "" }
        );
        self.transpose(-2, -1)
    }

    /// The axes besides the rows in another order: the i-th is what `order[i]` was.
    pub fn permute(&self, order: &[usize]) -> Result<Tensor> {
        let shape = self.shape()?;
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        ensure!(
            sorted.into_iter().eq(0..shape.dims.len()),
            "permute: {order:?} is no order of the {} axes of a tensor of shape {shape}",
            shape.dims.len()
        );
        let mut out = self.clone();
        let mut now: Vec<usize> = (0..order.len()).collect();
        for (i, axis) in order.iter().enumerate() {
            let from = now.iter().position(|n| n == axis).unwrap_or(i);
            if from != i {
                now.swap(i, from);
                out = Self::apply(Operation::Transpose(i, from), &[&out])?;
            }
        }
        Ok(out)
    }

    pub(super) fn shaped(&self, dims: Vec<usize>) -> Result<Tensor> {
        Self::apply(Operation::Reshape(dims), &[self])
    }

    /// Matrix product.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        Self::apply(Operation::Product, &[self, other])
    }

    /// Sum of the products of two vectors of one length.
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        let (a, b) = (self.shape()?, other.shape()?);
        ensure!(a == b, "dot: tensors of shapes {a} and {b} do not match");
        self.binary(Binary::Multiply, other)?
            .reduce_all(Reduce::Sum)
    }

    /// Length of the first axis.
    pub fn length(&self) -> Result<usize> {
        let shape = self.shape()?;
        ensure!(!shape.rows, "len: the number of examples is open");
        let first = shape.dims.first().copied();
        first.ok_or_else(|| anyhow!("len: a single number has no axis"))
    }

    /// Whether it is one vector of a chain, a network or an energy.
    fn is_vector(&self) -> Result<bool> {
        Ok((self.is_energy() || self.as_vector().is_some()) && self.shape()?.rank() == 1)
    }

    /// One entry along the first axis; numbers below 0 count from the end.
    pub fn index(&self, i: i64) -> Result<Tensor> {
        if !self.is_vector()? {
            return self.select(0, i);
        }
        let n = self.length()?;
        let at = if i < 0 { i + n as i64 } else { i };
        let at = usize::try_from(at).ok().filter(|a| *a < n);
        let at =
            at.ok_or_else(|| anyhow!("index {i} is out of range for a vector of {n} numbers"))?;
        match self {
            Tensor::Vector(v) => Self::from_f64(vec![f64::from(v.numbers()[at])], &[]),
            _ => self.select(0, at as i64),
        }
    }

    /// So many entries along the first axis; of an energy's vectors also none.
    pub fn entries(&self, from: i64, count: i64) -> Result<Tensor> {
        let n = self.length()?;
        let at = |x: i64| usize::try_from(x).ok().filter(|x| *x <= n);
        let range = at(from).zip(at(from.saturating_add(count)));
        let range = range.filter(|(a, z)| a < z || a == z && self.is_energy());
        let (start, end) = range.ok_or_else(|| {
            anyhow!("slice({from}, {count}) is out of range for a vector of {n} numbers")
        })?;
        self.cut(0, start, end - start)
    }

    fn cut(&self, axis: usize, start: usize, count: usize) -> Result<Tensor> {
        if let Tensor::Vector(v) = self {
            return Ok(Tensor::Vector(v.range(start..start + count)));
        }
        let operation = Operation::Slice { axis, start, count };
        Self::apply(operation, &[self])
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
        self.cut(at, a as usize, (z - a) as usize)
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
        shape.dims.remove(at);
        self.cut(at, start as usize, 1)?.shaped(shape.dims)
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
        out.shaped(shape.dims)
    }

    /// Sum, largest or smallest of all numbers; of a vector of parameters in double precision.
    pub fn reduce_all(&self, how: Reduce) -> Result<Tensor> {
        if let Tensor::Vector(v) = self {
            return Self::from_f64(vec![v.reduce(how)], &[]);
        }
        let shape = self.shape()?;
        let name = Operation::Reduce(how, 0).name();
        ensure!(!shape.rows, all_of(name, &shape));
        Self::apply(Operation::Reduce(how, 0), &[&self.flatten()?])
    }

    /// The sum of squares of all numbers.
    pub fn norm2(&self) -> Result<Tensor> {
        let squares = match self {
            Tensor::Vector(v) => return Self::from_f64(vec![v.sum(|x| x * x)], &[]),
            t if t.is_energy() => t.binary(Binary::Multiply, t)?,
            t => t.unary(Unary::Power(2))?,
        };
        squares.reduce_all(Reduce::Sum)
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
        if self.as_vector().is_some() && axis.is_none() || self.is_energy() {
            return sum.binary(Binary::Divide, &Self::number(count as f64, &sum)?);
        }
        let share = Self::number(1.0 / count as f64, &sum)?;
        sum.binary(Binary::Multiply, &share)
    }

    /// ln Σ exp(x) along an axis, without overflow; or of all numbers.
    pub fn log_sum_exp(&self, axis: Option<i64>, keep: bool) -> Result<Tensor> {
        let Some(axis) = axis else {
            let shape = self.shape()?;
            ensure!(!shape.rows, all_of("log_sum_exp", &shape));
            return match self {
                Tensor::Vector(v) => {
                    let all = v.numbers().iter().map(|x| f64::from(*x)).collect();
                    Self::from_f64(all, &shape.dims)?.log_sum_exp(Some(0), keep)
                }
                t => t.flatten()?.log_sum_exp(Some(0), keep),
            };
        };
        // The largest is taken out, so that nothing overflows; its own gradient cancels.
        let most = |keep| {
            let most = self.reduce(Reduce::Max, axis, keep)?;
            match self.is_energy() {
                true => most.unary(Unary::Hold),
                false => Ok(most),
            }
        };
        let shifted = self.binary(Binary::Subtract, &most(true)?)?;
        let sum = shifted.unary(Unary::Exp)?.reduce(Reduce::Sum, axis, keep)?;
        sum.unary(Unary::Ln)?.binary(Binary::Add, &most(keep)?)
    }

    /// exp(x) / Σ exp(x) along an axis, or its logarithm.
    pub fn softmax(&self, axis: i64, logarithm: bool) -> Result<Tensor> {
        let what = if logarithm { "log_softmax" } else { "softmax" };
        let at = self.shape()?.axis(what, axis)?;
        if self.is_energy() {
            let log = self.binary(Binary::Subtract, &self.log_sum_exp(Some(axis), true)?)?;
            return if logarithm {
                Ok(log)
            } else {
                log.unary(Unary::Exp)
            };
        }
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
    format!(
        "{name} without an axis would mix examples; for shape {shape}, name an axis: {name}(-1)"
    )
}
