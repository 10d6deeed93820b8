//! Products of tensors whose axes have names.

use super::{Reduce, Tensor};
use crate::Result;
use anyhow::{anyhow, bail, ensure};

/// A tensor, and the names of its axes besides the rows.
struct Named {
    tensor: Tensor,
    axes: Vec<char>,
}

impl Named {
    fn lengths(&self) -> Result<Vec<usize>> {
        Ok(self.tensor.shape()?.dims)
    }

    /// Without the axes that are not wanted, which are summed over.
    fn sum(mut self, wanted: impl Fn(char) -> bool) -> Result<Self> {
        for at in (0..self.axes.len()).rev() {
            if !wanted(self.axes[at]) {
                let axis = at + usize::from(self.tensor.shape()?.rows);
                self.tensor = self.tensor.reduce(Reduce::Sum, axis as i64, false)?;
                self.axes.remove(at);
            }
        }
        Ok(self)
    }

    /// Axes in this order.
    fn ordered(&self, order: &[char]) -> Result<Tensor> {
        let place = |c: &char| self.axes.iter().position(|a| a == c);
        let order: Option<Vec<_>> = order.iter().map(place).collect();
        match order.filter(|o| o.len() == self.axes.len()) {
            Some(order) => self.tensor.permute(&order),
            None => bail!("the result names an axis that no operand has"),
        }
    }

    /// As pages of matrices: the axes of the pages, those of the rows of a matrix, those of its columns; a page axis that is missing has length 1.
    fn pages(&self, pages: &[char], left: &[char], right: &[char]) -> Result<Tensor> {
        let lengths = self.lengths()?;
        let length = |c: &char| self.axes.iter().position(|a| a == c).map(|i| lengths[i]);
        let own = pages.iter().filter(|c| length(c).is_some());
        let order: Vec<_> = own.chain(left).chain(right).copied().collect();
        let count = |all: &[char]| all.iter().filter_map(length).product::<usize>();
        let mut dims: Vec<_> = pages.iter().map(|c| length(c).unwrap_or(1)).collect();
        dims.extend([count(left), count(right)]);
        self.ordered(&order)?.shaped(dims)
    }

    /// The product of two, summed over what both have and `out` does not.
    fn times(&self, other: &Self, out: &[char]) -> Result<Self> {
        let split = |all: &[char], f: &dyn Fn(&char) -> bool| -> Vec<char> {
            all.iter().filter(|c| f(c)).copied().collect()
        };
        let (a, b) = (&self.axes, &other.axes);
        let pages = split(a, &|c| b.contains(c) && out.contains(c));
        let sums = split(a, &|c| b.contains(c) && !out.contains(c));
        let (left, right) = (split(a, &|c| !b.contains(c)), split(b, &|c| !a.contains(c)));
        let x = self.pages(&pages, &left, &sums)?;
        let product = x.matmul(&other.pages(&pages, &sums, &right)?)?;
        let mut dims = product.shape()?.dims[..pages.len()].to_vec();
        let length = |of: &Named, c: &char| -> Result<usize> {
            let lengths = of.lengths()?;
            Ok(of
                .axes
                .iter()
                .position(|a| a == c)
                .map_or(1, |i| lengths[i]))
        };
        for c in &left {
            dims.push(length(self, c)?);
        }
        for c in &right {
            dims.push(length(other, c)?);
        }
        Ok(Self {
            tensor: product.shaped(dims)?,
            axes: [pages, left, right].concat(),
        })
    }
}

impl Tensor {
    /// The product of one or two tensors, summed over the axes that the result does not name, as NumPy's: "ik,kj->ij". The first axis of a traced tensor
    /// with rows is that of the rows, which come first in the result, too.
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let wrong = |why: String| anyhow!("einsum: '{equation}' {why}");
        let plain = equation.replace(' ', "");
        let (left, out) = plain
            .split_once("->")
            .ok_or_else(|| wrong("does not say what comes out, as \"ik,kj->ij\" does".into()))?;
        let mut names: Vec<Vec<char>> = left.split(',').map(|t| t.chars().collect()).collect();
        let mut out: Vec<char> = out.chars().collect();
        ensure!(
            names.len() == operands.len() && (1..=2).contains(&operands.len()),
            wrong(format!(
                "is for {} tensors, but there are {}; one or two are possible",
                names.len(),
                operands.len()
            ))
        );
        for list in names.iter().chain([&out]) {
            let fine = |(i, c): (usize, &char)| c.is_alphabetic() && !list[..i].contains(c);
            ensure!(
                list.iter().enumerate().all(fine),
                wrong("must have one letter for each axis, and none twice in a tensor".into())
            );
        }
        // Rows are pages, which every operation keeps apart.
        let mut rows = None;
        for (list, tensor) in names.iter_mut().zip(operands) {
            let shape = tensor.shape()?;
            ensure!(
                list.len() == shape.rank(),
                wrong(format!(
                    "has {} axes for a tensor of shape {shape}",
                    list.len()
                ))
            );
            if shape.rows {
                let own = list.remove(0);
                ensure!(
                    *rows.get_or_insert(own) == own,
                    wrong("gives the rows two names".into())
                );
            }
        }
        if let Some(c) = rows {
            ensure!(
                out.first() == Some(&c) && !names.concat().contains(&c),
                wrong(format!(
                    "would mix examples: '{c}' is the rows, which must come first in the result and are no axis of anything else"
                ))
            );
            out.remove(0);
        }
        let each = names
            .iter()
            .zip(operands)
            .enumerate()
            .map(|(i, (axes, t))| {
                let others = |c| (0..names.len()).any(|k| k != i && names[k].contains(&c));
                let tensor = Named {
                    tensor: (*t).clone(),
                    axes: axes.clone(),
                };
                tensor.sum(|c| out.contains(&c) || others(c))
            });
        let each = each.collect::<Result<Vec<_>>>()?;
        let found = || match &each[..] {
            [a, b] => a.times(b, &out)?.ordered(&out),
            _ => each[0].ordered(&out),
        };
        found().map_err(|e| wrong(format!("does not fit: {e:#}")))
    }
}
