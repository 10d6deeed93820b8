//! Data sets made of another one, example by example: mapped, filtered, chosen, divided anew.
//!
//! Whatever is done is done to all splits alike, but for [`Dataset::choose`]. The new data set is made at once, in memory; what a run is
//! resumed with is the content, so it does not matter how a data set came about.

use super::{Answers, Dataset, Inputs, Split, Targets, file};
use crate::error::{Result, count};
use crate::memory;
use anyhow::{Context, bail, ensure};
use std::sync::Arc;

/// One example.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Lengths of the axes of the input; their product is its number of components.
    pub shape: Vec<usize>,
    /// The input.
    pub input: Vec<f64>,
    /// The target.
    pub target: Target,
}

/// The target of one example.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A class.
    Label(u32),
    /// A label at each position of a sequence.
    Labels(Vec<u32>),
    /// Numbers.
    Values(Vec<f64>),
}

impl Target {
    /// What it is, and how long: alike for all examples of a data set.
    fn kind(&self) -> String {
        match self {
            Target::Label(_) => "a label".into(),
            Target::Labels(l) => count(l.len(), "label"),
            Target::Values(v) => count(v.len(), "target value"),
        }
    }
}

impl Dataset {
    /// The example of a row.
    ///
    /// # Panics
    /// If there is no such row.
    fn example(&self, s: &Split, row: usize) -> Example {
        let width = s.targets.width();
        let (input, values) = s.numbers(row);
        let labels = s.labels().map(|l| &l[row * width..][..width]);
        let target = match (&s.targets, labels) {
            (Targets::Classes(_), Some(l)) => Target::Label(l[0]),
            (_, Some(l)) => Target::Labels(l.to_vec()),
            (_, None) => Target::Values(values),
        };
        Example {
            shape: self.shape.clone(),
            input,
            target,
        }
    }

    /// The data set of what a function makes of each example of every split; `what` is what the summary calls it.
    ///
    /// The function must make examples of one shape and one kind of target, and must give the same whenever it is called. Classes are counted
    /// anew if a label has changed. Where inputs have changed, new rows for predictions are taken as they are after this, without scaling.
    ///
    /// # Errors
    /// Those of the function, and if what it makes does not belong together.
    pub fn map(
        &self,
        what: &str,
        mut f: impl FnMut(Example) -> Result<Example>,
    ) -> Result<Dataset> {
        self.ensure_examples("map")?;
        self.ensure_unweighted("map")?;
        let mut first = None;
        let mut splits = Vec::new();
        for (name, s) in self.splits() {
            let of = format!("map of the {name} split");
            memory::check_elements::<f64>(&[s.rows, s.dim], &of)?;
            let mut all = Assembly::default();
            for i in 0..s.rows {
                let place = || format!("map, row {i} of the {name} split");
                let made = f(self.example(s, i)).with_context(place)?;
                let shape = first.get_or_insert_with(|| (made.shape.clone(), made.target.kind()));
                made.ensure(shape).with_context(place)?;
                all.push(made);
            }
            splits.push((s, all));
        }
        let shape = first.map_or_else(|| self.shape.clone(), |(shape, _)| shape);
        let dim = shape.iter().product();
        let splits: Vec<(&Arc<Split>, Split)> = splits
            .into_iter()
            .map(|(old, all)| Ok((old, all.split(dim)?.packed(old))))
            .collect::<Result<_>>()?;
        let same_inputs = shape == self.shape
            && splits
                .iter()
                .all(|(old, new)| old.inputs == new.inputs && old.inputs_f64() == new.inputs_f64());
        let same_targets = splits.iter().all(|(old, new)| old.targets == new.targets);
        let mut new = splits.into_iter().map(|(_, new)| new);
        let Some(train) = new.next() else {
            bail!("map: '{}' has no training split", self.name);
        };
        let classes = match (train.labels(), same_targets) {
            (Some(_), true) => self.classes,
            (Some(labels), false) => file::count_classes("map: the new training labels", labels)?,
            (None, _) => 0,
        };
        let test = self.test.as_ref().and_then(|_| new.next());
        let notes = self.provenance.clone();
        let mut d = Dataset::new(&self.name, classes, train, test, notes)?;
        d.shape = shape;
        if let Some(s) = self.validation.as_ref().and_then(|_| new.next()) {
            // Checked as a test split is.
            let train = d.train.select(&[0]);
            d.validation = Dataset::new(&self.name, classes, train, Some(s), Vec::new())?.test;
        }
        if same_inputs {
            (d.form, d.scaling) = (self.form.clone(), self.scaling.clone());
        }
        if same_targets {
            (d.clean, d.class_names) = (self.clean.clone(), self.class_names.clone());
        }
        let prepared = self.form.is_some() || !self.scaling.is_empty();
        let after = match prepared && !same_inputs {
            true => "; predict takes new rows as they are after it",
            false => "",
        };
        Ok(d.note("map", format!("{what}{after}")))
    }

    /// The data set of the examples of every split for which a function is true; `what` is what the summary calls it.
    ///
    /// Classes keep their numbers, also where one has no example left.
    ///
    /// # Errors
    /// Those of the function, and if a split has no row left.
    pub fn filter(
        &self,
        what: &str,
        mut f: impl FnMut(Example) -> Result<bool>,
    ) -> Result<Dataset> {
        self.ensure_examples("filter")?;
        let mut d = self.clone();
        let mut kept = Vec::new();
        for (name, s) in self.splits() {
            let mut rows = Vec::new();
            for i in 0..s.rows {
                let place = || format!("filter, row {i} of the {name} split");
                if f(self.example(s, i)).with_context(place)? {
                    rows.push(i as u32);
                }
            }
            ensure!(
                !rows.is_empty(),
                "filter: none of the {} rows of the {name} split is left",
                s.rows
            );
            kept.push(format!("{} of {} {name}", rows.len(), s.rows));
            d.replace(name, &rows);
        }
        Ok(d.note("filter", format!("{what}: {} rows", kept.join(", "))))
    }

    /// The data set with these rows of a split, in this order.
    ///
    /// # Errors
    /// If there is no such split or row, or a row is named twice.
    pub fn choose(&self, split: &str, rows: &[u32]) -> Result<Dataset> {
        self.ensure_examples("subset")?;
        let n = self.split(split)?.rows;
        ensure!(!rows.is_empty(), "subset: no row is left");
        let mut seen = vec![false; n];
        for &r in rows {
            ensure!(
                (r as usize) < n,
                "subset: the split \"{split}\" has {n} rows, so there is none with index {r}"
            );
            ensure!(
                !std::mem::replace(&mut seen[r as usize], true),
                "subset: row {r} is named twice"
            );
        }
        let mut d = self.clone();
        d.replace(split, rows);
        Ok(d.note(
            "subset",
            format!("{} of {n} {split} rows, by index", rows.len()),
        ))
    }

    /// The same with these rows of a split only.
    pub(super) fn replace(&mut self, split: &str, rows: &[u32]) {
        let all = match split {
            "test" => &mut self.test,
            "validation" => &mut self.validation,
            _ => {
                self.train = Arc::new(self.train.select(rows));
                return;
            }
        };
        if let (Some(clean), Some(s), "test") = (&self.clean, &all, split) {
            let clean = super::split::pick(clean, s.targets.width(), rows);
            self.clean = Some(Arc::new(clean));
        }
        *all = all.as_ref().map(|s| Arc::new(s.select(rows)));
    }

    /// The rows of all splits as one: training, test, validation.
    pub(super) fn joined(&self) -> Result<Split> {
        self.ensure_examples("split")?;
        self.ensure_unweighted("split")?;
        ensure!(
            self.scaling.is_empty(),
            "split: '{}' is scaled by its training rows, so these cannot be chosen anew; read it with scale: \"none\", and scale by \
             data.scale(…) after the split",
            self.name
        );
        let filled = |f: &Arc<super::Form>| f.columns.iter().any(|c| c.fill.is_some());
        ensure!(
            !self.form.as_ref().is_some_and(filled),
            "split: missing cells of '{}' were filled by its training rows, so these cannot be chosen anew; divide it where it is read",
            self.name
        );
        let rows: usize = self.splits().map(|(_, s)| s.rows).sum();
        memory::check_elements::<f64>(&[rows, self.dim], "split: all rows together")?;
        let others = [&self.test, &self.validation];
        let train = Split::clone(&self.train);
        others
            .into_iter()
            .flatten()
            .try_fold(train, |all, s| all.and(s))
    }

    pub(super) fn ensure_examples(&self, what: &str) -> Result<()> {
        ensure!(
            self.likelihood_n.is_none(),
            "{what}: '{}' is compressed to second moments and has no single examples",
            self.name
        );
        self.ensure_single(what)
    }

    /// Fail where rows have weights, which what is made of them would lose.
    pub(super) fn ensure_unweighted(&self, what: &str) -> Result<()> {
        ensure!(
            self.splits().all(|(_, s)| s.weights.is_none()),
            "{what}: the rows of '{}' have weights; do this before data.weigh",
            self.name
        );
        Ok(())
    }

    /// The data set with a weight for each row, which multiplies its loss; `what` is what the summary calls them. All splits get some.
    ///
    /// # Errors
    /// Those of the function, and if a weight is negative or no number, or all of a split are 0.
    pub fn weigh(&self, what: &str, mut f: impl FnMut(Example) -> Result<f64>) -> Result<Dataset> {
        self.ensure_examples("weigh")?;
        let mut d = self.clone();
        for (name, s) in self.splits() {
            let place = |i| format!("weigh, row {i} of the {name} split");
            let each = (0..s.rows).map(|i| {
                let weight = f(self.example(s, i)).with_context(|| place(i))?;
                Ok(weight as f32)
            });
            let all = each.collect::<Result<Vec<_>>>()?;
            d.set_weights(name, all)?;
        }
        Ok(d.note("weights", what.into()))
    }

    /// The same with given weights of the training rows; the others count alike.
    ///
    /// # Errors
    /// If there are not so many, one is negative or no number, or all are 0.
    pub fn weighed(&self, weights: Vec<f32>) -> Result<Dataset> {
        self.ensure_examples("weigh")?;
        let mut d = self.clone();
        d.set_weights("train", weights)?;
        Ok(d.note("weights", "given, of the training rows".into()))
    }

    fn set_weights(&mut self, name: &str, weights: Vec<f32>) -> Result<()> {
        let set = move |s: &Arc<Split>| {
            let new = Split::clone(s).weighted(Some(Arc::new(weights)));
            new.map(Arc::new)
                .with_context(|| format!("weigh, the {name} split"))
        };
        match (name, &self.test, &self.validation) {
            ("test", Some(s), _) => self.test = Some(set(s)?),
            ("validation", _, Some(s)) => self.validation = Some(set(s)?),
            _ => self.train = set(&self.train)?,
        }
        Ok(())
    }

    /// Fail where rows are variants of examples: apart from each other they are not independent.
    pub(super) fn ensure_single(&self, what: &str) -> Result<()> {
        ensure!(
            self.copies == 1,
            "{what}: '{}' has {} variants of each example; do this before data.augment",
            self.name,
            self.copies
        );
        Ok(())
    }
}

impl Example {
    /// Fail unless it has this shape and kind of target, and finite numbers.
    fn ensure(&self, (shape, kind): &(Vec<usize>, String)) -> Result<()> {
        ensure!(
            self.shape == *shape && self.target.kind() == *kind,
            "the input has the shape {:?} and the target is {}, but those of the first training row {shape:?} and {kind}",
            self.shape,
            self.target.kind()
        );
        ensure!(
            self.input.len() == shape.iter().product::<usize>() && !self.input.is_empty(),
            "the input has {} and the shape {shape:?}",
            count(self.input.len(), "number")
        );
        let values = match &self.target {
            Target::Values(v) => &v[..],
            _ => &[],
        };
        let mut all = self.input.iter().chain(values);
        match all.find(|x| !(**x as f32).is_finite()) {
            Some(odd) => bail!("{odd} is not a finite single-precision number"),
            None => Ok(()),
        }
    }
}

/// Examples of one kind, one after the other.
#[derive(Default)]
struct Assembly {
    inputs: Vec<f64>,
    labels: Vec<u32>,
    values: Vec<f64>,
    /// Of the last one: labels at positions, or values, of one target.
    positions: usize,
    width: usize,
}

impl Assembly {
    fn push(&mut self, e: Example) {
        self.inputs.extend(e.input);
        match e.target {
            Target::Label(l) => self.labels.push(l),
            Target::Labels(l) => {
                self.positions = l.len();
                self.labels.extend(l);
            }
            Target::Values(v) => {
                self.width = v.len();
                self.values.extend(v);
            }
        }
    }

    fn split(self, dim: usize) -> Result<Split> {
        let labels = self.labels;
        let targets = match (self.width, self.positions) {
            (0, 0) => Answers::Labels(Targets::Classes(labels)),
            (0, positions) => Answers::Labels(Targets::Sequence { positions, labels }),
            (width, _) => Answers::Values {
                width,
                data: self.values,
            },
        };
        Split::of_doubles(dim, self.inputs, targets)
    }
}

impl Split {
    /// Inputs and target values of a row, with all digits that there are.
    fn numbers(&self, row: usize) -> (Vec<f64>, Vec<f64>) {
        let (dim, width) = (self.dim, self.targets.width());
        if let Some(d) = &self.doubles {
            let values = d.targets.chunks_exact(width).nth(row);
            let values = values.map_or(Vec::new(), <[f64]>::to_vec);
            return (d.inputs[row * dim..][..dim].to_vec(), values);
        }
        let (mut x, mut y) = (vec![0f32; dim], Vec::new());
        self.copy(row..row + 1, &mut x);
        if self.labels().is_none() {
            y.resize(width, 0f32);
            self.copy_values(row..row + 1, &mut y);
        }
        let wide = |all: Vec<f32>| all.into_iter().map(f64::from).collect();
        (wide(x), wide(y))
    }

    /// The same in the narrow form that the inputs of another split have, if they are of its kind.
    fn packed(mut self, like: &Split) -> Split {
        let Inputs::F32(x) = &self.inputs else {
            return self;
        };
        let narrow = match &like.inputs {
            Inputs::Tokens(_) if x.iter().all(|x| *x == (*x as u32) as f32) => {
                Inputs::Tokens(x.iter().map(|x| *x as u32).collect())
            }
            Inputs::I8(_) if x.iter().all(|x| x.abs() == 1.0) => {
                Inputs::I8(x.iter().map(|x| *x as i8).collect())
            }
            _ => return self,
        };
        self.inputs = narrow;
        self
    }

    /// The rows of both.
    fn and(&self, other: &Split) -> Result<Split> {
        let x = [self.inputs_f64(), other.inputs_f64()].concat();
        let labels = |a: &[u32], b: &[u32]| [a, b].concat();
        let targets = match (&self.targets, &other.targets) {
            (Targets::Classes(a), Targets::Classes(b)) => {
                Answers::Labels(Targets::Classes(labels(a, b)))
            }
            (
                Targets::Sequence {
                    positions,
                    labels: a,
                },
                Targets::Sequence { labels: b, .. },
            ) => Answers::Labels(Targets::Sequence {
                positions: *positions,
                labels: labels(a, b),
            }),
            _ => Answers::Values {
                width: self.targets.width(),
                data: [self.targets_f64(), other.targets_f64()].concat(),
            },
        };
        Ok(Split::of_doubles(self.dim, x, targets)?.packed(self))
    }
}

#[cfg(test)]
#[path = "transform_tests.rs"]
mod tests;
