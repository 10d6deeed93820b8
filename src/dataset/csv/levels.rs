//! What words and dates stand for, by the files of the training split, and the examples that follow.

use super::HINT;
use super::columns::{Columns, Role, name};
use super::table::Table;
use crate::dataset::form::{Column, Content, level};
use crate::dataset::missing::Rule;
use crate::dataset::{Answers, Form, Split, Targets, file};
use crate::error::{Result, listed};
use anyhow::{Context, anyhow, ensure};
use std::sync::Arc;

/// Lines from which on a column of categories must name some of them alike.
const MOST_ALONE: usize = 50;

/// What cells stand for.
pub struct Levels {
    /// The labels, if they are words.
    pub class_names: Option<Vec<String>>,
    /// The inputs.
    pub form: Form,
}

impl Levels {
    pub fn new(path: &str, t: &Table, regression: bool) -> Result<Self> {
        let title = |j: usize| match &t.names {
            Some(names) => names[j].clone(),
            None => format!("column {j}"),
        };
        let columns = t.columns.inputs.iter().map(|&j| {
            let content = match t.columns.roles[j] {
                Role::Word => {
                    let words = &t.words[j].list;
                    ensure!(
                        words.len() < t.len() || t.len() < MOST_ALONE,
                        "'{path}': {} has another word in each of its {} lines, so it can tell nothing; leave it out of 'inputs'",
                        name(&t.names, j),
                        t.len()
                    );
                    Content::Words(sorted(words))
                }
                Role::Date => {
                    let days = t.rows().map(|r| r[j]).filter(|d| !d.is_nan());
                    let first = days.fold(f64::INFINITY, f64::min).floor();
                    ensure!(
                        first.is_finite(),
                        "'{path}': {} has no date at all",
                        name(&t.names, j)
                    );
                    Content::Date(first as i64)
                }
                Role::Number | Role::Unused => Content::Number,
            };
            let fill = match (&t.rules[j], &content) {
                (Rule::Word(word), Content::Words(words)) => {
                    words.binary_search(word).ok().map(|at| at as f64)
                }
                _ => None,
            };
            Ok(Column {
                name: title(j),
                content,
                fill,
            })
        });
        let form = Form {
            columns: columns.collect::<Result<_>>()?,
            targets: t.columns.targets.iter().map(|&j| title(j)).collect(),
        };
        let mut out = Self {
            class_names: None,
            form,
        };
        if regression {
            return Ok(out);
        }
        let j = t.columns.targets[0];
        let words = &t.words[j].list;
        if words.iter().any(|w| w.parse::<f64>().is_err()) {
            let names = sorted(words);
            ensure!(
                names.len() < usize::from(u16::MAX),
                "'{path}': {} holds {} different words, too many for classes{HINT}",
                name(&t.names, j),
                names.len()
            );
            ensure!(
                names.len() > 1,
                "'{path}': all labels in {} are '{}'; classification needs at least two classes",
                name(&t.names, j),
                names[0]
            );
            out.class_names = Some(names);
        }
        Ok(out)
    }

    /// Number of classes, by the training files; 0 for numbers.
    pub fn classes(&self, path: &str, t: &Table, train: &Split) -> Result<usize> {
        match (&self.class_names, train.labels()) {
            (Some(names), _) => Ok(names.len()),
            (None, Some(labels)) => {
                let column = name(&t.names, t.columns.targets[0]);
                let what = format!("'{path}': the labels in {column}");
                file::count_classes(&what, labels)
            }
            (None, None) => Ok(0),
        }
    }

    /// What words and dates stand for, for people.
    pub fn provenance(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        if let Some(names) = &self.class_names {
            let each = names.iter().enumerate().map(|(i, c)| format!("{i} = {c}"));
            out.push(("labels".into(), listed(&each.collect::<Vec<_>>())));
        }
        for c in &self.form.columns {
            match &c.content {
                Content::Number => {}
                Content::Words(words) => {
                    let fill = match c.fill {
                        Some(k) => format!("; a missing cell is {}", words[k as usize]),
                        None => String::new(),
                    };
                    let text = format!("column '{}': {}{fill}", c.name, listed(words));
                    out.push(("category".into(), text));
                }
                Content::Date(first) => {
                    let day = crate::dataset::date::text(*first);
                    out.push(("date".into(), format!("'{}': days since {day}", c.name)));
                }
            }
        }
        out
    }

    /// The labels.
    fn labels(&self, t: &Table) -> Result<Vec<u32>> {
        let j = t.columns.targets[0];
        let label = |(at, row): (usize, &[f64])| -> Result<u32> {
            let word = t.word(row, j);
            let place = || format!("{}: {}", t.place(at), name(&t.names, j));
            match &self.class_names {
                Some(names) => Ok(level(names, word).with_context(place)? as u32),
                None => {
                    let number = word.parse().unwrap_or(f64::NAN);
                    file::label(number).map_err(|e| anyhow!("{} {e}{HINT}", place()))
                }
            }
        };
        t.rows().enumerate().map(label).collect()
    }

    /// Inputs and targets; where a cell is missing, the input is NaN.
    pub fn split(&self, t: &Table, regression: bool) -> Result<Split> {
        let Columns {
            inputs, targets, ..
        } = &t.columns;
        let width = self.form.width();
        let what = format!("a table of {} lines with {width} inputs", t.len());
        // In double and in single precision.
        crate::memory::check_elements::<f64>(&[2, t.len(), width], &what)?;
        let mut x = Vec::with_capacity(t.len() * width);
        for (at, row) in t.rows().enumerate() {
            for (&j, c) in inputs.iter().zip(&self.form.columns) {
                let cell = match &c.content {
                    Content::Words(words) => {
                        let place = || format!("{}: {}", t.place(at), name(&t.names, j));
                        level(words, t.word(row, j)).with_context(place)? as f64
                    }
                    _ => row[j],
                };
                c.push(cell, &mut x);
            }
        }
        let targets = match regression {
            true => Answers::Values {
                width: targets.len(),
                data: t
                    .rows()
                    .flat_map(|row| targets.iter().map(|&j| row[j]))
                    .collect(),
            },
            false => Answers::Labels(Targets::Classes(self.labels(t)?)),
        };
        let weights = t.columns.weights.map(|j| {
            let all = t.rows().map(|row| row[j] as f32).collect();
            Arc::new(all)
        });
        Split::of_doubles(width, x, targets)?.weighted(weights)
    }
}

fn sorted(words: &[String]) -> Vec<String> {
    let mut out = words.to_vec();
    out.sort_unstable();
    out
}
