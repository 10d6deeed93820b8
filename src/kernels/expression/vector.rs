//! Vectors of expressions: element by element, and what they add up to.

use super::Expression;
use anyhow::{Result, ensure};
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};
use std::sync::Arc;

/// A list of expressions; clones share it.
///
/// Operators with a number or an expression act on every element. Those with another vector act element by element and fail
/// if the lengths differ.
#[derive(Clone)]
pub struct Vector(Arc<[Expression]>);

impl Vector {
    /// The first `count` parameters.
    pub fn parameters(count: usize) -> Self {
        (0..count).map(Expression::parameter).collect()
    }

    /// The first `count` columns of the data example.
    pub fn inputs(count: usize) -> Self {
        (0..count).map(Expression::input).collect()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The elements.
    pub fn elements(&self) -> &[Expression] {
        &self.0
    }

    /// Element number `index`, counted from 0.
    pub fn index(&self, index: usize) -> Result<Expression> {
        let n = self.len();
        ensure!(
            index < n,
            "index {index} is out of range: the vector has length {n}"
        );
        Ok(self.0[index].clone())
    }

    /// The elements from `range.start` up to `range.end`, exclusive.
    pub fn slice(&self, range: Range<usize>) -> Result<Self> {
        let n = self.len();
        ensure!(
            range.start <= range.end && range.end <= n,
            "slice {}..{} is out of range: the vector has length {n}",
            range.start,
            range.end
        );
        Ok(Self(self.0[range].into()))
    }

    /// A function of every element.
    pub fn map(&self, f: impl Fn(&Expression) -> Expression) -> Self {
        self.0.iter().map(f).collect()
    }

    /// A function of every two elements at the same place; an error if the lengths differ.
    pub fn zip(
        &self,
        other: &Vector,
        f: impl Fn(&Expression, &Expression) -> Expression,
    ) -> Result<Self> {
        let (n, m) = (self.len(), other.len());
        ensure!(n == m, "vectors of lengths {n} and {m} do not go together");
        Ok(self.0.iter().zip(&*other.0).map(|(a, b)| f(a, b)).collect())
    }

    /// Every element to the power of `exponent`.
    pub fn powf(&self, exponent: impl Into<Expression>) -> Self {
        let exponent = exponent.into();
        self.map(|x| x.powf(&exponent))
    }

    /// Every element to a whole power.
    pub fn powi(&self, exponent: i32) -> Self {
        self.map(|x| x.powi(exponent))
    }

    /// Sum of the elements, 0 if there are none.
    pub fn sum(&self) -> Expression {
        self.combine(0.0, |a, b| a + b)
    }

    /// Mean of the elements, NaN if there are none.
    pub fn mean(&self) -> Expression {
        self.sum() / self.len() as f64
    }

    /// Sum of the products of elements at the same place; an error if the lengths differ.
    pub fn dot(&self, other: &Vector) -> Result<Expression> {
        Ok(self.zip(other, |a, b| a * b)?.sum())
    }

    /// Sum of the squares of the elements.
    pub fn norm2(&self) -> Expression {
        self.map(|x| x * x).sum()
    }

    /// The largest element, -∞ if there are none.
    pub fn max(&self) -> Expression {
        self.combine(f64::NEG_INFINITY, |a, b| a.max(b))
    }

    /// The smallest element, ∞ if there are none.
    pub fn min(&self) -> Expression {
        self.combine(f64::INFINITY, |a, b| a.min(b))
    }

    /// ln of the sum of the exponentials, without overflow; -∞ if there are no elements.
    pub fn log_sum_exp(&self) -> Expression {
        // The result does not depend on the shift, so neither does the gradient.
        let shift = self.max().hold();
        self.map(|x| (x - &shift).exp()).sum().ln() + shift
    }

    /// In pairs, pairs of pairs and so on: rounding errors and depth grow with the logarithm of the length only.
    fn combine(
        &self,
        empty: f64,
        f: impl Fn(&Expression, &Expression) -> Expression,
    ) -> Expression {
        let mut layer = self.0.to_vec();
        while layer.len() > 1 {
            let pairs = layer.chunks(2).map(|pair| match pair {
                [a, b] => f(a, b),
                rest => rest[0].clone(),
            });
            layer = pairs.collect();
        }
        layer.pop().unwrap_or(Expression::constant(empty))
    }
}

impl FromIterator<Expression> for Vector {
    fn from_iter<I: IntoIterator<Item = Expression>>(elements: I) -> Self {
        Self(elements.into_iter().collect())
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().take(8)).finish()
    }
}

impl Neg for &Vector {
    type Output = Vector;

    fn neg(self) -> Vector {
        self.map(|x| -x)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl $trait for &Vector {
            type Output = Result<Vector>;

            fn $method(self, right: &Vector) -> Result<Vector> {
                self.zip(right, |a, b| a.$method(b))
            }
        }

        operators!($trait $method: &Expression);
        operators!($trait $method: f64);
    )*};
    ($trait:ident $method:ident: $scalar:ty) => {
        impl $trait<$scalar> for &Vector {
            type Output = Vector;

            fn $method(self, right: $scalar) -> Vector {
                let right = Expression::from(right);
                self.map(|x| x.$method(&right))
            }
        }

        impl $trait<&Vector> for $scalar {
            type Output = Vector;

            fn $method(self, right: &Vector) -> Vector {
                let left = Expression::from(self);
                right.map(|x| (&left).$method(x))
            }
        }
    };
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ONE, check, evaluate, w};
    use super::*;

    #[test]
    fn vectors() {
        let v = Vector::parameters(5);
        let point: &[f64] = &[0.3, -1.2, 2.5, 0.9, 1.1];
        check(&v.sum(), &[point], &ONE, |w| w.iter().sum());
        check(&v.mean(), &[point], &ONE, |w| w.iter().sum::<f64>() / 5.0);
        check(&v.norm2(), &[point], &ONE, |w| {
            w.iter().map(|w| w * w).sum()
        });
        check(&v.max(), &[point], &ONE, |_| 2.5);
        check(&v.min(), &[point], &ONE, |_| -1.2);
        let lse = |w: &[f64]| w.iter().map(|w| w.exp()).sum::<f64>().ln();
        check(&v.log_sum_exp(), &[point], &ONE, lse);
        let far = (&v * 1000.0).log_sum_exp();
        let (value, grad) = evaluate(&far, point, &ONE);
        assert_eq!((value, grad), (2500.0, vec![0.0, 0.0, 1000.0, 0.0, 0.0]));
        let dot = (&v + 1.0).dot(&(&v.exp() * &w(0))).unwrap();
        check(&dot, &[point], &ONE, |w| {
            w.iter().map(|x| (x + 1.0) * (x.exp() * w[0])).sum()
        });
        let mixed = (&(2.0 / &v.powi(2)) - &(&v.powf(2.0) / &v).unwrap()).unwrap();
        check(&(-&mixed).sum(), &[point], &ONE, |w| {
            w.iter().map(|x| x - 2.0 / (x * x)).sum()
        });
        assert_eq!((v.len(), v.slice(1..3).unwrap().len()), (5, 2));
        assert_eq!(v.slice(1..3).unwrap().index(0).unwrap().to_string(), "w[1]");
        let error = v.index(5).unwrap_err().to_string();
        assert_eq!(error, "index 5 is out of range: the vector has length 5");
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = v.slice(3..2);
        assert!(v.slice(3..6).is_err() && backwards.is_err());
        let error = v.dot(&Vector::inputs(3)).unwrap_err().to_string();
        assert_eq!(error, "vectors of lengths 5 and 3 do not go together");
        let empty = Vector::parameters(0);
        let of = |e: Expression| evaluate(&e, &[], &ONE).0;
        assert!(empty.is_empty() && of(empty.mean()).is_nan());
        assert_eq!((of(empty.sum()), of(empty.norm2())), (0.0, 0.0));
        assert_eq!(
            (of(empty.max()), of(empty.min())),
            (f64::NEG_INFINITY, f64::INFINITY)
        );
        assert_eq!(of(empty.log_sum_exp()), f64::NEG_INFINITY);
    }
}
