//! Vectors of numbers in single precision, as chains and networks have them: shared, not copied, and added up in double precision.

use super::{Reduce, Tensor, plain};
use crate::Result;
use anyhow::anyhow;
use candle_core::Device;
use std::ops::Range;
use std::sync::Arc;

/// The numbers of a tensor by its name, from those of the vector, and its shape.
pub type Names = Arc<dyn Fn(&str, &[f32]) -> Result<(Vec<f32>, Vec<usize>)> + Send + Sync>;

/// A vector of numbers, perhaps with named tensors in it; clones share it.
#[derive(Clone)]
pub struct Vector {
    numbers: Arc<Vec<f32>>,
    names: Option<Names>,
}

impl Vector {
    /// A vector of these numbers.
    pub fn new(numbers: Arc<Vec<f32>>, names: Option<Names>) -> Self {
        Self { numbers, names }
    }

    /// All numbers.
    pub fn numbers(&self) -> &Arc<Vec<f32>> {
        &self.numbers
    }

    /// A part of it.
    pub(super) fn range(&self, range: Range<usize>) -> Self {
        Self::new(Arc::new(self.numbers[range].to_vec()), None)
    }

    /// The numbers of a named tensor, and its shape.
    fn named(&self, name: &str) -> Result<(Vec<f32>, Vec<usize>)> {
        let names = self.names.as_ref();
        let find = names.ok_or_else(|| anyhow!("this vector has no named tensors"))?;
        find(name, &self.numbers)
    }

    /// The same numbers for candle.
    pub(super) fn concrete(&self) -> Result<candle_core::Tensor> {
        let all = &self.numbers[..];
        candle_core::Tensor::from_slice(all, all.len(), &Device::Cpu).map_err(plain)
    }

    /// What candle has made of it, element by element.
    pub(super) fn like(&self, numbers: &candle_core::Tensor) -> Result<Self> {
        let numbers = numbers.to_vec1::<f32>().map_err(plain)?;
        Ok(Self::new(Arc::new(numbers), self.names.clone()))
    }

    /// Σ f(x)
    pub(super) fn sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        let numbers = self.numbers.iter();
        numbers.fold(0.0, |sum, x| sum + f(f64::from(*x)))
    }

    pub(super) fn reduce(&self, how: Reduce) -> f64 {
        let all = || self.numbers.iter().map(|x| f64::from(*x));
        match how {
            Reduce::Sum => self.sum(|x| x),
            Reduce::Max => all().fold(f64::NEG_INFINITY, f64::max),
            Reduce::Min => all().fold(f64::INFINITY, f64::min),
        }
    }
}

impl Tensor {
    /// The vector that it is.
    pub fn as_vector(&self) -> Option<&Vector> {
        match self {
            Tensor::Vector(v) => Some(v),
            _ => None,
        }
    }

    /// A named tensor of a vector of parameters, flattened.
    pub fn part(&self, name: &str) -> Result<Tensor> {
        if let Tensor::Traced(s) = self {
            return Tensor::Traced(s.named(name)?).flatten();
        }
        let (numbers, _) = self.names()?.named(name)?;
        Ok(Tensor::Vector(Vector::new(Arc::new(numbers), None)))
    }

    /// A named tensor of a vector of parameters, in its shape.
    pub fn named(&self, name: &str) -> Result<Tensor> {
        if let Tensor::Traced(s) = self {
            return Ok(Tensor::Traced(s.named(name)?));
        }
        let (numbers, shape) = self.names()?.named(name)?;
        Self::from_f32(numbers, &shape)
    }

    fn names(&self) -> Result<&Vector> {
        self.as_vector()
            .ok_or_else(|| anyhow!("only vectors of parameters have named tensors; a method has parentheses, as t.shape()"))
    }
}
