//! How the cells of a row become the inputs of an example: for the rows of a file, and for new ones.

use super::{Dataset, date};
use crate::error::{Result, count, did_you_mean, listed};
use crate::options::Value;
use anyhow::{anyhow, bail, ensure};

/// What stands where a cell is missing.
pub(super) const MISSING: [&str; 6] = ["", "NA", "N/A", "NaN", "null", "?"];

/// The columns of a table that are inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// In the order of the inputs.
    pub columns: Vec<Column>,
    /// The names of the targets.
    pub targets: Vec<String>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its cells are.
    pub content: Content,
    /// What takes the place of a missing cell: an input, or the number of a word.
    pub fill: Option<f64>,
}

/// What the cells of a column are.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Numbers.
    Number,
    /// Words, in alphabetical order: one input for each, 1 for the word that stands there.
    Words(Vec<String>),
    /// Dates: days since this day, which is counted from 1970-01-01.
    Date(i64),
}

impl Column {
    /// Number of inputs.
    pub fn width(&self) -> usize {
        match &self.content {
            Content::Words(words) => words.len(),
            Content::Number | Content::Date(_) => 1,
        }
    }

    /// Append the inputs of a cell that was read: a number, days from 1970-01-01, or the number of a word. NaN stands for none.
    pub fn push(&self, cell: f64, out: &mut Vec<f64>) {
        match &self.content {
            Content::Number => out.push(cell),
            Content::Date(first) => out.push(cell - *first as f64),
            Content::Words(words) => {
                out.extend((0..words.len()).map(|k| f64::from(u8::from(k as f64 == cell))));
            }
        }
    }

    /// Append the inputs of a cell of a new row.
    fn push_new(&self, cell: &Value, out: &mut Vec<f64>) -> Result<()> {
        let missing = match cell {
            Value::Float(x) => x.is_nan(),
            Value::Text(t) => MISSING.contains(&t.trim()),
            // What a script has where nothing is.
            Value::Other(_) => true,
            _ => false,
        };
        if missing {
            let fill = self.fill.ok_or_else(|| {
                anyhow!(
                    "column '{}' is missing ({}); the option `missing` of the data set says what to do then",
                    self.name,
                    cell.describe()
                )
            })?;
            match self.content {
                Content::Words(_) => self.push(fill, out),
                _ => out.push(fill),
            }
            return Ok(());
        }
        let read = match (&self.content, cell) {
            (Content::Words(words), Value::Text(t)) => level(words, t.trim())? as f64,
            (Content::Words(words), Value::Int(i)) => level(words, &i.to_string())? as f64,
            (Content::Date(_), Value::Text(t)) => date::days(t.trim())
                .ok_or_else(|| anyhow!("column '{}': '{t}' {NO_DATE}", self.name))?,
            (Content::Number, Value::Text(t)) if number(t.trim()).is_some() => {
                number(t.trim()).unwrap_or(f64::NAN)
            }
            (Content::Number, Value::Bool(b)) => f64::from(u8::from(*b)),
            // Days since the first one, as the data set shows them.
            (Content::Date(first), x) if x.number().is_some() => {
                x.number().unwrap_or(f64::NAN) + *first as f64
            }
            (Content::Number, x) if x.number().is_some() => x.number().unwrap_or(f64::NAN),
            _ => bail!("column '{}' is {}", self.name, cell.describe()),
        };
        let read = single(read)
            .ok_or_else(|| anyhow!("column '{}': {} {NOT_SINGLE}", self.name, cell.describe()))?;
        self.push(read, out);
        Ok(())
    }
}

/// The number that stands in a cell, if one does; truth values as programs write them are 1 and 0.
pub(super) fn number(cell: &str) -> Option<f64> {
    match cell {
        "true" | "True" | "TRUE" => Some(1.0),
        "false" | "False" | "FALSE" => Some(0.0),
        _ => cell.parse().ok(),
    }
}

/// A number, if single precision can hold it.
pub(super) fn single(x: f64) -> Option<f64> {
    (x as f32).is_finite().then_some(x)
}

/// What follows a number that single precision cannot hold.
pub(super) const NOT_SINGLE: &str = "is not a finite single-precision number";

/// What follows a text that should be a date.
pub(super) const NO_DATE: &str =
    "is no date as 2024-03-01, 2024-03-01 12:30 or 2024-03-01T12:30:00+02:00";

impl Form {
    /// Number of inputs.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// The names of the inputs: those of the columns, and of words `column = word`.
    pub fn names(&self) -> Vec<String> {
        let of = |c: &Column| match &c.content {
            Content::Words(words) => words.iter().map(|w| format!("{} = {w}", c.name)).collect(),
            _ => vec![c.name.clone()],
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// The first input of each column.
    pub fn offsets(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().scan(0, |at, c| {
            let first = *at;
            *at += c.width();
            Some((first, c))
        })
    }
}

/// The number of a word among those of the training file.
pub(super) fn level(known: &[String], word: &str) -> Result<usize> {
    known
        .binary_search_by(|k| k.as_str().cmp(word))
        .map_err(|_| {
            anyhow!(
                "'{}' is not in the file of the training split{}",
                shorten(word),
                did_you_mean(word, known.iter().map(String::as_str))
            )
        })
}

/// The beginning of a cell, short enough for a message.
pub(super) fn shorten(cell: &str) -> String {
    if cell.chars().count() <= 40 {
        return cell.into();
    }
    cell.chars().take(40).chain(['…']).collect()
}

/// All numbers of nested arrays.
pub(super) fn flatten(x: &Value, out: &mut Vec<f64>) -> Result<()> {
    match x {
        Value::List(list) => list.iter().try_for_each(|x| flatten(x, out)),
        x => {
            let number = x
                .number()
                .ok_or_else(|| anyhow!("{} is no finite number", x.describe()))?;
            out.push(number);
            Ok(())
        }
    }
}

impl Dataset {
    /// Inputs of new rows, prepared as those of the data set were: words, dates and missing cells of a table first, then the scaling.
    ///
    /// A row has a cell for each column of the file that is an input, or all `dim` numbers.
    ///
    /// # Errors
    /// If a row has another length, a word or a date that is not known, or no cell where one is needed.
    pub fn prepare(&self, rows: &[Value]) -> Result<Vec<f32>> {
        let mut out = Vec::with_capacity(rows.len() * self.dim);
        let columns = match &self.form {
            Some(f) if f.columns.len() != self.dim => format!(", in {} columns", f.columns.len()),
            _ => String::new(),
        };
        for (i, row) in rows.iter().enumerate() {
            let before = out.len();
            self.prepare_row(row, &mut out)
                .map_err(|e| anyhow!("row {i}: {e}"))?;
            let found = out.len() - before;
            ensure!(
                found == self.dim,
                "row {i} has {}, but inputs of '{}' have {}{columns}",
                count(found, "number"),
                self.name,
                self.dim
            );
        }
        self.scale_rows(&mut out);
        Ok(out.into_iter().map(|x| x as f32).collect())
    }

    fn prepare_row(&self, row: &Value, out: &mut Vec<f64>) -> Result<()> {
        let form = self.form.as_deref();
        let names = || match form {
            Some(f) => listed(
                &f.columns
                    .iter()
                    .map(|c| c.name.as_str())
                    .collect::<Vec<_>>(),
            ),
            None => format!("{} numbers", self.dim),
        };
        let Value::List(cells) = row else {
            bail!(
                "{} is no row, which is an array with a cell for each of: {}",
                row.describe(),
                names()
            );
        };
        match form {
            Some(form) if form.columns.len() == cells.len() => {
                let mut both = form.columns.iter().zip(cells);
                both.try_for_each(|(c, cell)| c.push_new(cell, out))
            }
            Some(_) if cells.len() != self.dim => bail!(
                "it has {}, but the columns are: {}",
                count(cells.len(), "cell"),
                names()
            ),
            _ => flatten(row, out),
        }
    }

    /// The split of which the first of some rows is an input as it stands there, after scaling that changes it.
    pub fn prepared_split(&self, rows: &[Value]) -> Option<&'static str> {
        let mut first = Vec::new();
        let scaled = !self.scaling.is_empty();
        flatten(rows.first().filter(|_| scaled)?, &mut first).ok()?;
        let is = |x: &[f64]| {
            x.len() == first.len() && x.iter().zip(&first).all(|(a, b)| *a as f32 == *b as f32)
        };
        self.splits().find_map(|(name, s)| {
            let mut found = false;
            s.inputs
                .in_memory()
                .then(|| s.for_each_input(|x| found |= is(x)));
            found.then_some(name)
        })
    }
}
