//! Dividing rows: stratified test and validation splits, and stratified subsets of the training split.
//!
//! The order in which rows of a class are taken depends on the seed only. Larger fractions and larger subsets therefore
//! contain the smaller ones, and a test split does not depend on what is done to the training split afterwards.

use super::{Dataset, Split, Use, stream};
use crate::error::Result;
use anyhow::{bail, ensure};
use rand::seq::SliceRandom;
use std::sync::Arc;

impl Dataset {
    /// Move `fraction` of the training rows to a new test split, the same fraction of every class; 0 changes nothing.
    pub fn with_test(&self, fraction: f64, seed: u64) -> Result<Dataset> {
        ensure!(
            self.test.is_none() || fraction == 0.0,
            "{} has a test split already",
            self.name
        );
        let Some((rest, taken)) = self.carve("test", fraction, seed, Use::TestSplit)? else {
            return Ok(self.clone());
        };
        let mut d = self.clone();
        (d.train, d.test) = (Arc::new(rest), Some(Arc::new(taken)));
        Ok(d.note(
            "test",
            format!("a fraction {fraction} of the rows, seed {seed}"),
        ))
    }

    /// Move `fraction` of the training rows to a new validation split, the same fraction of every class; 0 changes
    /// nothing.
    pub fn with_validation(&self, fraction: f64, seed: u64) -> Result<Dataset> {
        ensure!(
            self.validation.is_none() || fraction == 0.0,
            "{} has a validation split already",
            self.name
        );
        let Some((rest, taken)) = self.carve("validation", fraction, seed, Use::Validation)? else {
            return Ok(self.clone());
        };
        let mut d = self.clone();
        (d.train, d.validation) = (Arc::new(rest), Some(Arc::new(taken)));
        Ok(d.note(
            "validation",
            format!("a fraction {fraction} of the training rows, seed {seed}"),
        ))
    }

    /// Keep `n` training rows of every class.
    pub fn subset_per_class(&self, n: usize, seed: u64) -> Result<Dataset> {
        let name = &self.name;
        ensure!(
            self.classes > 0,
            "{name} is a regression data set: it has no classes to take {n} examples of"
        );
        ensure!(
            self.train.row_labels().is_some(),
            "{name} has sequences: their rows have no classes to take {n} examples of"
        );
        ensure!(n > 0, "{name}: at least one example per class must be kept");
        self.ensure_single("subset")?;
        let counts = self.train.class_counts(self.classes);
        if let Some((class, least)) = counts.iter().copied().enumerate().min_by_key(|(_, c)| *c)
            && n > least
        {
            bail!(
                "{name}: {n} examples per class are asked for, but class {class} has only {least} training examples; \
                 ask for at most {least}"
            );
        }
        let mut rows: Vec<u32> = groups(&self.train, self.classes, seed, Use::PerClass)
            .iter()
            .flat_map(|g| &g[..n])
            .copied()
            .collect();
        rows.sort_unstable();
        let mut d = self.clone();
        d.train = Arc::new(self.train.select(&rows));
        Ok(d.note(
            "subset",
            format!("{n} training examples per class, seed {seed}"),
        ))
    }

    /// So many rows of a split, chosen at random, the same fraction of every class; a smaller subset is part of a larger one.
    ///
    /// # Errors
    /// If there is no such split, or it has fewer rows.
    pub fn subset(&self, split: &str, n: usize, seed: u64) -> Result<Dataset> {
        self.ensure_examples("subset")?;
        let s = self.split(split)?;
        ensure!(
            (1..=s.rows).contains(&n),
            "subset: {n} rows are asked for, but the split \"{split}\" of '{}' has {}",
            self.name,
            s.rows
        );
        let groups = groups(s, self.classes, seed, Use::Subset);
        let (mut rows, mut seen, mut until) = (Vec::with_capacity(n), 0, 0);
        for g in &groups {
            // Rounding the running total, not each class, makes the number exact.
            seen += g.len();
            let to = (n as f64 * seen as f64 / s.rows as f64).round() as usize;
            rows.extend_from_slice(&g[..to - until]);
            until = to;
        }
        rows.sort_unstable();
        let of = s.rows;
        let mut d = self.clone();
        d.replace(split, &rows);
        Ok(d.note("subset", format!("{n} of {of} {split} rows, seed {seed}")))
    }

    /// The rows of all splits together, divided anew; see [`with_test`](Dataset::with_test).
    ///
    /// # Errors
    /// If what is done to the inputs depends on which rows were those of training, or a split would have no row.
    pub fn divided(&self, test: f64, validation: f64, seed: u64) -> Result<Dataset> {
        let d = Dataset {
            train: Arc::new(self.joined()?),
            test: None,
            validation: None,
            clean: None,
            ..self.clone()
        };
        let mut d = d.note("split", "all rows, divided anew".into());
        let old = ["test", "validation"];
        d.provenance
            .retain(|(what, _)| !old.contains(&what.as_str()));
        d.with_test(test, seed)?.with_validation(validation, seed)
    }

    /// The training rows without a fraction of every class, and that fraction; `None` for a fraction of 0.
    fn carve(
        &self,
        what: &str,
        fraction: f64,
        seed: u64,
        use_: Use,
    ) -> Result<Option<(Split, Split)>> {
        let (name, n) = (&self.name, self.train.rows);
        ensure!(
            (0.0..1.0).contains(&fraction),
            "{name}: the {what} fraction is {fraction}, but must be at least 0 and below 1"
        );
        if fraction == 0.0 {
            return Ok(None);
        }
        self.ensure_single(what)?;
        let groups = groups(&self.train, self.classes, seed, use_);
        let mut taken = Vec::new();
        let (mut seen, mut target) = (0, 0);
        for g in &groups {
            // Rounding the running total, not each class, makes the size of the split exact.
            seen += g.len();
            let until = (fraction * seen as f64).round() as usize;
            // A class keeps at least one training row: a model cannot learn a class it never sees.
            let k = (until - target).min(g.len().saturating_sub(usize::from(groups.len() > 1)));
            taken.extend_from_slice(&g[..k]);
            target = until;
        }
        taken.sort_unstable();
        ensure!(
            !taken.is_empty() && taken.len() < n,
            "{name}: a {what} fraction of {fraction} leaves {} of {n} rows for the {what} split and {} for training; \
             neither may be empty",
            taken.len(),
            n - taken.len()
        );
        let mut is_taken = vec![false; n];
        taken.iter().for_each(|&r| is_taken[r as usize] = true);
        let rest: Vec<u32> = (0..n as u32).filter(|&r| !is_taken[r as usize]).collect();
        Ok(Some((self.train.select(&rest), self.train.select(&taken))))
    }
}

/// The rows of each class (of all rows for regression and sequences), each in a random order of its own.
fn groups(split: &Split, classes: usize, seed: u64, use_: Use) -> Vec<Vec<u32>> {
    let mut groups = vec![Vec::new()];
    match split.row_labels() {
        Some(labels) => {
            groups.resize(classes.max(1), Vec::new());
            for (r, &l) in (0u32..).zip(labels) {
                groups[l as usize].push(r);
            }
        }
        None => groups[0] = (0..split.rows as u32).collect(),
    }
    for (class, g) in groups.iter_mut().enumerate() {
        g.shuffle(&mut stream(seed, use_, class as u64).rng());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::{Inputs, Targets};
    use super::*;

    /// Row r has the input r, so that a row can be followed through every division.
    fn dataset(counts: &[usize]) -> Dataset {
        let labels: Vec<u32> = (0u32..)
            .zip(counts)
            .flat_map(|(l, &n)| vec![l; n])
            .collect();
        let x = (0..labels.len()).map(|r| r as f32).collect();
        let split = Split::new(1, Inputs::F32(x), Targets::Classes(labels)).unwrap();
        Dataset::new("d", counts.len(), split, None, vec![]).unwrap()
    }

    fn rows(s: &Split) -> Vec<usize> {
        let mut out = vec![0.0; s.rows];
        s.copy(0..s.rows, &mut out);
        out.into_iter().map(|x| x as usize).collect()
    }

    #[test]
    fn every_class_gives_its_fraction_and_no_row_is_lost_or_doubled() {
        let d = dataset(&[100, 51, 10]).with_test(0.2, 3).unwrap();
        let d = d.with_validation(0.1, 3).unwrap();
        assert_eq!(d.test.as_ref().unwrap().class_counts(3), [20, 10, 2]);
        assert_eq!(d.validation.as_ref().unwrap().class_counts(3), [8, 4, 1]);
        let mut all: Vec<_> = d.splits().flat_map(|(_, s)| rows(s)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..161).collect::<Vec<_>>());
        for (_, s) in d.splits() {
            for (r, &l) in rows(s).iter().zip(s.labels().unwrap()) {
                assert_eq!(l as usize, usize::from(*r >= 100) + usize::from(*r >= 151));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_and_another_seed_others() {
        let test = |seed| {
            rows(
                dataset(&[50, 50])
                    .with_test(0.3, seed)
                    .unwrap()
                    .test
                    .as_ref()
                    .unwrap(),
            )
        };
        assert_eq!(test(1), test(1));
        assert_ne!(test(1), test(2));
    }

    #[test]
    fn a_small_subset_is_part_of_a_large_one() {
        let d = dataset(&[50, 40]);
        let (small, large) = (
            d.subset_per_class(5, 1).unwrap(),
            d.subset_per_class(20, 1).unwrap(),
        );
        assert_eq!(small.train.class_counts(2), [5, 5]);
        let large = rows(&large.train);
        assert!(rows(&small.train).iter().all(|r| large.contains(r)));
    }

    #[test]
    fn a_class_always_keeps_a_training_row() {
        let d = dataset(&[1, 1, 20]).with_test(0.9, 1).unwrap();
        assert!(d.train.class_counts(3).iter().all(|&n| n >= 1));
    }

    #[test]
    fn regression_rows_are_divided_at_random() {
        let x: Vec<f32> = (0..10).map(|x| x as f32).collect();
        let targets = Targets::Values {
            width: 1,
            data: x.clone(),
        };
        let split = Split::new(1, Inputs::F32(x), targets).unwrap();
        let d = Dataset::new("r", 0, split, None, vec![]).unwrap();
        let d2 = d.with_test(0.3, 1).unwrap();
        assert_eq!((d2.train.rows, d2.test.as_ref().unwrap().rows), (7, 3));
        assert_eq!(
            d2.test.as_ref().unwrap().values().unwrap().1[0] as usize,
            rows(d2.test.as_ref().unwrap())[0]
        );
        assert!(
            d.subset_per_class(1, 1)
                .unwrap_err()
                .to_string()
                .contains("no classes")
        );
    }

    #[test]
    fn impossible_divisions_are_refused() {
        let d = dataset(&[6, 4]);
        let e = d.with_test(0.01, 1).unwrap_err().to_string();
        assert!(e.contains("leaves 0 of 10 rows for the test split"), "{e}");
        let e = d.subset_per_class(5, 1).unwrap_err().to_string();
        assert!(e.contains("class 1 has only 4"), "{e}");
        assert!(d.subset_per_class(0, 1).is_err() && d.with_test(1.0, 1).is_err());
        assert!(d.with_validation(f64::NAN, 1).is_err());
        let v = d.with_validation(0.2, 1).unwrap();
        assert!(v.with_validation(0.2, 1).is_err());
    }
}
