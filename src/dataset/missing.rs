//! Cells that are missing: what stands in their place, by what the training rows show.

use super::csv::{Columns, Header, Role, column, name};
use super::{Dataset, Form, Split};
use crate::error::{Result, count, did_you_mean};
use crate::options::{Options, Value};
use crate::table::number;
use anyhow::{anyhow, bail, ensure};
use std::sync::Arc;

/// What is done where a cell is missing.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// An error, with the line.
    Refuse,
    /// The line is left out.
    Drop,
    /// The mean of the column over the training rows stands there.
    Mean,
    /// The median of the column over the training rows.
    Median,
    /// This number.
    Value(f64),
    /// This word.
    Word(String),
}

/// The names of rules.
const NAMES: [&str; 4] = ["refuse", "drop", "mean", "median"];

impl Rule {
    fn named(value: &Value) -> Option<Self> {
        match value {
            Value::Text(t) => Some(match t.as_str() {
                "refuse" => Rule::Refuse,
                "drop" => Rule::Drop,
                "mean" => Rule::Mean,
                "median" => Rule::Median,
                _ => return None,
            }),
            other => other.number().filter(|x| x.is_finite()).map(Rule::Value),
        }
    }

    /// Whether it puts a number in the place of the cell.
    fn fills(&self) -> bool {
        matches!(self, Rule::Mean | Rule::Median | Rule::Value(_))
    }
}

/// What the option `missing` says of each column.
pub fn rules(options: &Options, columns: &Columns, file: Header) -> Result<Vec<Rule>> {
    let owner = options.owner();
    let wrong = |v: &Value| {
        let known = match v {
            Value::Text(t) => did_you_mean(t, NAMES),
            _ => String::new(),
        };
        anyhow!(
            "{owner}: option 'missing' is {}, but must be \"refuse\", \"drop\", \"mean\", \"median\", a number, or a map of these by \
             column, with \"*\" for all others{known}",
            v.describe()
        )
    };
    let is_number = |j: usize| {
        columns.inputs.contains(&j) && matches!(columns.roles[j], Role::Number | Role::Date)
    };
    // What is said of all columns fills those that can be filled.
    let all = |rule: Rule| -> Vec<Rule> {
        let one = |j| match rule.fills() && !is_number(j) {
            true => Rule::Refuse,
            false => rule.clone(),
        };
        (0..columns.width()).map(one).collect()
    };
    let map = match options.get("missing") {
        None => return Ok(all(Rule::Refuse)),
        Some(Value::Map(map)) => map,
        Some(v) => return Rule::named(v).map(all).ok_or_else(|| wrong(v)),
    };
    let others = match map.iter().find(|(k, _)| k == "*") {
        Some((_, v)) => Rule::named(v).ok_or_else(|| wrong(v))?,
        None => Rule::Refuse,
    };
    let mut out = all(others);
    for (key, v) in map.iter().filter(|(k, _)| k != "*") {
        // Keys of maps are texts, also where columns have no names.
        let by_number = key.parse().ok().filter(|_| file.names.is_none());
        let which = by_number.map_or(Value::Text(key.clone()), Value::Int);
        let j = column((owner, "missing"), &which, file)?;
        let called = name(file.names, j);
        ensure!(
            columns.inputs.contains(&j) || columns.targets.contains(&j),
            "{owner}: option 'missing' names {called}, which is neither an input nor a target"
        );
        out[j] = match (Rule::named(v), v) {
            (Some(rule), _) if !rule.fills() || is_number(j) => rule,
            (None, Value::Text(word))
                if columns.roles[j] == Role::Word && columns.inputs.contains(&j) =>
            {
                Rule::Word(word.clone())
            }
            (Some(_), _) if columns.inputs.contains(&j) => bail!(
                "{owner}: option 'missing': {called} holds words, so {} cannot stand there; give a word, \"drop\" or \"refuse\"",
                v.describe()
            ),
            (Some(_), _) => bail!(
                "{owner}: option 'missing': {called} is no input, and is not filled; \"drop\" leaves its lines out"
            ),
            (None, _) => return Err(wrong(v)),
        };
    }
    Ok(out)
}

impl Dataset {
    /// The data set with numbers where cells are missing (NaN); `rules` are those of the columns of its form. Statistics come from the
    /// training split only, and are kept for new rows.
    pub(super) fn imputed(self, rules: &[Rule]) -> Result<Dataset> {
        let Some(form) = self.form.clone() else {
            return Ok(self);
        };
        if !rules.iter().any(Rule::fills) {
            return Ok(self);
        }
        let train = self.train.inputs_f64();
        let mut form = Form::clone(&form);
        let mut fills = vec![None; self.dim];
        let offsets: Vec<usize> = form.offsets().map(|(at, _)| at).collect();
        let mut notes = Vec::new();
        for ((c, rule), at) in form.columns.iter_mut().zip(rules).zip(offsets) {
            let (value, what) = match rule {
                Rule::Mean => (mean(&known(&train, at, self.dim)), "the mean"),
                Rule::Median => (median(known(&train, at, self.dim)), "the median"),
                Rule::Value(x) => (Some(*x), ""),
                _ => continue,
            };
            let value = value.ok_or_else(|| {
                anyhow!(
                    "{}: column '{}' has no value in the training rows, so there is no {}",
                    self.name,
                    c.name,
                    what.trim_start_matches("the ")
                )
            })?;
            (c.fill, fills[at]) = (Some(value), Some(value));
            let of = |s: &Arc<Split>| {
                let x = s.inputs_f64();
                x[at..]
                    .iter()
                    .step_by(self.dim)
                    .filter(|x| x.is_nan())
                    .count()
            };
            let cells: usize = self.splits().map(|(_, s)| of(s)).sum();
            let text = match what {
                "" => number(value),
                what => format!("{what} over the training rows, {}", number(value)),
            };
            notes.push(format!(
                "'{}': {} = {text}",
                c.name,
                count(cells, "missing cell")
            ));
        }
        let fill = |s: &Arc<Split>| -> Result<Arc<Split>> {
            let mut x = s.inputs_f64();
            for row in x.chunks_exact_mut(self.dim) {
                for (x, fill) in row.iter_mut().zip(&fills) {
                    *x = fill.filter(|_| x.is_nan()).unwrap_or(*x);
                }
            }
            s.with_inputs(self.dim, x).map(Arc::new)
        };
        let mut d = self.clone();
        d.train = fill(&self.train)?;
        d.test = self.test.as_ref().map(fill).transpose()?;
        d.validation = self.validation.as_ref().map(fill).transpose()?;
        d.form = Some(Arc::new(form));
        Ok(notes.into_iter().fold(d, |d, text| d.note("missing", text)))
    }
}

/// The numbers of a column that are there.
fn known(x: &[f64], at: usize, dim: usize) -> Vec<f64> {
    let column = x[at..].iter().step_by(dim);
    column.copied().filter(|x| !x.is_nan()).collect()
}

fn mean(x: &[f64]) -> Option<f64> {
    (!x.is_empty()).then(|| x.iter().sum::<f64>() / x.len() as f64)
}

/// The one in the middle, or the mean of the two there.
fn median(mut x: Vec<f64>) -> Option<f64> {
    x.sort_unstable_by(f64::total_cmp);
    let high = *x.get(x.len() / 2)?;
    Some(match x.len() % 2 {
        1 => high,
        _ => (x[x.len() / 2 - 1] + high) / 2.0,
    })
}
