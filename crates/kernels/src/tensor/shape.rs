//! Shapes: lengths of axes, of which the first may be the examples.

use crate::Result;
use crate::memory;
use anyhow::{bail, ensure};
use std::fmt;

/// Most numbers of a tensor, per example where it has rows.
pub const MOST: usize = 1 << 30;

/// Lengths of the axes of a tensor. With `rows` there is one axis more, before the others: the examples, whose number is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    /// Whether the first axis is the examples.
    pub rows: bool,
    /// Lengths of the other axes.
    pub dims: Vec<usize>,
}

impl Shape {
    /// Of a tensor that is the same for all examples.
    pub fn fixed(dims: &[usize]) -> Self {
        Self {
            rows: false,
            dims: dims.to_vec(),
        }
    }

    /// Of a tensor with so many numbers for each example.
    pub fn per_row(dims: &[usize]) -> Self {
        Self {
            rows: true,
            dims: dims.to_vec(),
        }
    }

    /// Numbers per example.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Number of axes, the examples included.
    pub fn rank(&self) -> usize {
        self.dims.len() + usize::from(self.rows)
    }

    /// The axis that a script means, which counts from the end if it is negative; never the examples.
    pub fn axis(&self, what: &str, axis: i64) -> Result<usize> {
        let rank = self.rank() as i64;
        let at = if axis < 0 { axis + rank } else { axis };
        ensure!(
            (0..rank).contains(&at),
            "{what}: there is no axis {axis}; the tensor has shape {self}"
        );
        match (at as usize).checked_sub(usize::from(self.rows)) {
            Some(at) => Ok(at),
            None => bail!(
                "{what} along axis 0 would mix examples; for shape {self}, a model may use axes 1 and up"
            ),
        }
    }

    /// An error unless the numbers are few enough, and there are some.
    pub fn check(self, what: &str) -> Result<Self> {
        ensure!(
            !self.dims.contains(&0),
            "{what} would give a tensor without elements, of shape {self}"
        );
        self.bounded(what)
    }

    /// An error unless the numbers are few enough; what is traced in double precision may have none.
    pub fn bounded(self, what: &str) -> Result<Self> {
        let product = self.dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        ensure!(
            product.is_some_and(|n| n <= MOST),
            "{what} would give a tensor of shape {self}, which is too large"
        );
        Ok(self)
    }

    /// An error unless so many numbers of a type are allowed and there is memory for them.
    pub fn fits<T>(self, what: &str) -> Result<Self> {
        let out = self.check(what)?;
        memory::check_elements::<T>(&out.dims, &format!("{what}: a tensor of shape {out}"))?;
        Ok(out)
    }

    /// The shape of an operation element by element, as in NumPy: axes are matched from the last one, those of length 1 are repeated.
    pub fn broadcast(what: &str, a: &Shape, b: &Shape) -> Result<Shape> {
        let wrong = || {
            anyhow::anyhow!(
                "{what}: the shapes {a} and {b} do not fit; axes are matched from the last one, and must be equal or 1"
            )
        };
        let rank = a.rank().max(b.rank());
        let rows = a.rows || b.rows;
        // The examples of both must come to lie on the first axis.
        for s in [a, b] {
            ensure!(!s.rows || s.rank() == rank, wrong());
        }
        let length = |s: &Shape, i: usize| -> usize {
            let all = s.rank();
            let first = usize::from(s.rows);
            match (all + i).checked_sub(rank) {
                Some(at) if at >= first => s.dims[at - first],
                _ => 1,
            }
        };
        if rows {
            // What meets the examples has length 1 there.
            for s in [a, b] {
                ensure!(s.rows || s.rank() < rank || s.dims[0] == 1, wrong());
            }
        }
        let dims = (usize::from(rows)..rank).map(|i| match (length(a, i), length(b, i)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(wrong()),
        });
        let dims = dims.collect::<Result<Vec<_>>>()?;
        Shape { rows, dims }.bounded(what)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.then(|| "rows".to_string());
        let all: Vec<_> = rows
            .into_iter()
            .chain(self.dims.iter().map(usize::to_string))
            .collect();
        write!(f, "[{}]", all.join(", "))
    }
}

/// The product of some lengths before an axis, its length, and the product of those behind it.
pub fn around(dims: &[usize], axis: usize) -> (usize, usize, usize) {
    let product = |d: &[usize]| d.iter().product::<usize>();
    (
        product(&dims[..axis]),
        dims[axis],
        product(&dims[axis + 1..]),
    )
}

/// Where each element of `to` comes from, in a tensor of lengths `from` that is repeated along axes of length 1.
pub fn sources(from: &[usize], to: &[usize]) -> Vec<u32> {
    let mut strides = vec![0; to.len()];
    let mut stride = 1;
    for i in (0..from.len()).rev() {
        // Leading axes of length 1 may have no partner.
        if let Some(at) = (i + to.len()).checked_sub(from.len()) {
            strides[at] = if from[i] == 1 { 0 } else { stride };
        }
        stride *= from[i];
    }
    walk(to, &strides)
}

/// Offsets of all elements of these lengths, in order, where each axis has a stride.
pub fn walk(lengths: &[usize], strides: &[usize]) -> Vec<u32> {
    let count = lengths.iter().product();
    let mut index = vec![0; lengths.len()];
    let mut at = 0;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        out.push(at as u32);
        for i in (0..lengths.len()).rev() {
            index[i] += 1;
            at += strides[i];
            if index[i] < lengths[i] {
                break;
            }
            at -= lengths[i] * strides[i];
            index[i] = 0;
        }
    }
    out
}

/// Distances between neighbours along the axes of the same numbers in other lengths, if they have any without being moved.
pub fn reshaped(from: &[usize], steps: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    if from.contains(&0) || to.contains(&0) {
        return None;
    }
    let mut old = from
        .iter()
        .zip(steps)
        .filter(|(n, _)| **n != 1)
        .rev()
        .peekable();
    let mut out = vec![0; to.len()];
    // From the last axis on: axes of `from` that follow each other without a gap, and of them those of `to`.
    let (mut left, mut step) = (1, 1);
    for (i, n) in to.iter().enumerate().rev() {
        if *n == 1 {
            out[i] = 1;
            continue;
        }
        if left == 1 {
            (left, step) = old.next().map(|(n, s)| (*n, *s))?;
        }
        while left < *n {
            let (more, at) = old.next()?;
            (*at == left * step).then_some(())?;
            left *= more;
        }
        (left % n == 0).then_some(())?;
        out[i] = step;
        step *= n;
        left /= n;
    }
    Some(out)
}

/// Distances between neighbours along each axis of a row-major tensor.
pub fn strides(dims: &[usize]) -> Vec<usize> {
    let mut out = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        out[i - 1] = out[i] * dims[i];
    }
    out
}
