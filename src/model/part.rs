//! Parts of the parameters by their names: tensors, slices of them, and what several names begin with.

use super::{Layout, TensorSpec};
use crate::error::Result;
use anyhow::ensure;
use std::ops::Range;

/// Some numbers of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is called: the name of the tensor, with a slice behind.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where its numbers are in the flat vector: runs of neighbours, in order.
    pub runs: Vec<Range<usize>>,
}

impl From<&TensorSpec> for Part {
    fn from(t: &TensorSpec) -> Self {
        Self {
            name: t.name.clone(),
            shape: t.shape.clone(),
            runs: vec![t.range.clone()],
        }
    }
}

impl Part {
    /// How many numbers it has.
    pub fn count(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    /// Its numbers of all.
    pub fn of<'a>(&'a self, all: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let runs = self.runs.iter();
        runs.flat_map(|r| all[r.clone()].iter().copied())
    }

    /// Each run as a tensor of its own.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let one = |range: &Range<usize>| TensorSpec {
            name: self.name.clone(),
            shape: match self.runs.len() {
                1 => self.shape.clone(),
                _ => vec![range.len()],
            },
            range: range.clone(),
        };
        self.runs.iter().map(one).collect()
    }

    /// The slice `[text]` of a tensor, called `name`.
    fn slice(name: &str, t: &TensorSpec, text: &str) -> Result<Self> {
        let wrong = || {
            let first = t.shape.first().copied().unwrap_or(1);
            let inner = match t.shape[..] {
                [_, n, ..] => format!(", '{0}[:, 0]' or '{0}[:, 0..{n}]'", t.name),
                _ => String::new(),
            };
            anyhow::anyhow!(
                "'{name}' is not a slice of '{0}', whose first dimension has {first} entries{1}; write '{0}[{2}]' or '{0}[0..{first}]'{inner}",
                t.name,
                match t.shape.len() {
                    0 | 1 => String::new(),
                    _ => format!(" (its shape is {:?})", t.shape),
                },
                first.min(4) - 1,
            )
        };
        let given: Vec<_> = text.split(',').collect();
        ensure!(given.len() <= t.shape.len(), wrong());
        let all = t
            .shape
            .iter()
            .enumerate()
            .map(|(axis, n)| match given.get(axis) {
                Some(index) => range(index, *n).ok_or_else(wrong),
                None => Ok(0..*n),
            });
        let all = all.collect::<Result<Vec<_>>>()?;
        // From the last axis to the first: runs grow while all behind them is taken.
        let one = |run: Range<usize>| std::iter::once(run).collect::<Vec<_>>();
        let mut runs = one(0..1);
        let mut size = 1;
        for (taken, n) in all.iter().zip(&t.shape).rev() {
            runs = match &runs[..] {
                [run] if run.len() == size => one(taken.start * size..taken.end * size),
                _ => {
                    let at = |i: usize| {
                        runs.iter()
                            .map(move |r| i * size + r.start..i * size + r.end)
                    };
                    taken.clone().flat_map(at).collect()
                }
            };
            size *= n;
        }
        let placed = |r: Range<usize>| t.range.start + r.start..t.range.start + r.end;
        Ok(Self {
            name: name.into(),
            shape: all.iter().map(|r| r.len()).collect(),
            runs: runs.into_iter().map(placed).collect(),
        })
    }
}

/// The entries of an axis of length n that an index names: `3`, `2..5`, `2:5`, `2..`, `..5`, `:`.
fn range(index: &str, n: usize) -> Option<Range<usize>> {
    let index = index.trim();
    let number = |text: &str, open: usize| match text.trim() {
        "" => Some(open),
        t => t.parse::<usize>().ok(),
    };
    let found = match index.split_once("..").or_else(|| index.split_once(':')) {
        Some((from, to)) => number(from, 0)?..number(to, n)?,
        None => {
            let i = index.parse::<usize>().ok()?;
            i..i.checked_add(1)?
        }
    };
    (found.start < found.end && found.end <= n).then_some(found)
}

impl Layout {
    /// A part of the parameters: a tensor ("w1"), a slice of one (`w1[3]` and `w1[2..5]` along its first dimension, `w1[:, 0..16]` along its second),
    /// all tensors whose names begin with this and a dot ("block1" for "block1.query"), or what the model has a name for ("block1.attn.head3").
    ///
    /// # Errors
    /// If there is no such part; the message lists the names there are.
    pub fn part(&self, name: &str) -> Result<Vec<Part>> {
        if let Some((_, slices)) = self.parts.iter().find(|(part, _)| part == name) {
            let each = slices.iter().map(|s| self.part(s));
            return Ok(each.collect::<Result<Vec<_>>>()?.concat());
        }
        let prefix = format!("{name}.");
        let below = self.tensors.iter().filter(|t| t.name.starts_with(&prefix));
        let below: Vec<_> = below.map(Part::from).collect();
        if !below.is_empty() {
            return Ok(below);
        }
        match name.strip_suffix(']').and_then(|n| n.split_once('[')) {
            Some((tensor, slice)) => Ok(vec![Part::slice(name, self.tensor(tensor)?, slice)?]),
            None => Ok(vec![self.tensor(name)?.into()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let tensors = [("b", vec![2]), ("w", vec![3, 4]), ("k", vec![2, 3, 2])];
        Layout::new(tensors.map(|(n, s)| (n.to_string(), s)))
    }

    /// The numbers of a part are those that the slice of an array has, in its order.
    #[test]
    fn slices_are_those_of_arrays() {
        let all: Vec<f32> = (0..26).map(|x| x as f32).collect();
        let cases: [(&str, &[usize], usize, &[f32]); 9] = [
            (
                "w",
                &[3, 4],
                1,
                &[2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13.],
            ),
            ("w[1]", &[1, 4], 1, &[6., 7., 8., 9.]),
            ("w[1..3]", &[2, 4], 1, &[6., 7., 8., 9., 10., 11., 12., 13.]),
            ("w[:, 1:3]", &[3, 2], 3, &[3., 4., 7., 8., 11., 12.]),
            ("w[.., 3]", &[3, 1], 3, &[5., 9., 13.]),
            ("w[1.., ..2]", &[2, 2], 2, &[6., 7., 10., 11.]),
            ("k[:, 1]", &[2, 1, 2], 2, &[16., 17., 22., 23.]),
            ("k[1, 1:3]", &[1, 2, 2], 1, &[22., 23., 24., 25.]),
            ("k[:, :, 1]", &[2, 3, 1], 6, &[15., 17., 19., 21., 23., 25.]),
        ];
        for (name, shape, runs, numbers) in cases {
            let [part] = &layout().part(name).unwrap()[..] else {
                panic!("{name}")
            };
            assert_eq!((&part.shape[..], part.runs.len()), (shape, runs), "{name}");
            assert_eq!(part.of(&all).collect::<Vec<_>>(), numbers, "{name}");
        }
    }

    #[test]
    fn what_is_no_slice_is_refused() {
        for name in [
            "w[3]",
            "w[2..2]",
            "w[:, 0..5]",
            "w[0, 0, 0]",
            "w[x]",
            "w[-1]",
            "b[:, 0]",
            "w[]",
        ] {
            let e = layout().part(name).unwrap_err().to_string();
            assert!(e.contains(&format!("'{name}' is not a slice of")), "{e}");
        }
        let e = layout().part("w[:, 9]").unwrap_err().to_string();
        assert!(e.contains("first dimension has 3 entries (its shape is [3, 4]); write 'w[2]' or 'w[0..3]', 'w[:, 0]' or 'w[:, 0..4]'"), "{e}");
    }
}
