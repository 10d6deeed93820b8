//! The cells of a file, each checked as it is read.

use super::columns::{Columns, Header, Role, columns, name};
use super::lines::{Lines, text};
use crate::dataset::date;
use crate::dataset::file::File;
use crate::dataset::form::{MISSING, NO_DATE, NOT_SINGLE, number, shorten, single};
use crate::dataset::missing::{Rule, rules};
use crate::error::Result;
use crate::memory::Growing;
use crate::options::Options;
use anyhow::{anyhow, bail, ensure};
use csv::ByteRecord;
use std::borrow::Cow;
use std::collections::HashMap;

/// The cells of files that are looked at, row-major, all lines of the same width.
pub struct Table {
    pub names: Option<Vec<String>>,
    pub columns: Columns,
    /// What is done where a cell is missing, by column.
    pub rules: Vec<Rule>,
    /// Numbers, days from 1970-01-01, numbers of words; NaN where a cell is missing.
    pub cells: Vec<f64>,
    /// The words of each column, in the order in which they came.
    pub words: Vec<Words>,
    /// The files.
    paths: Vec<String>,
    /// File and line of each row; quoted cells may span lines.
    lines: Vec<(u32, u64)>,
    /// Lines that were left out.
    pub dropped: usize,
    /// What the files are.
    pub kind: Lines,
}

/// The words of a column.
#[derive(Default)]
pub struct Words {
    pub list: Vec<String>,
    /// Where each stands in the list.
    at: HashMap<String, usize>,
}

impl Words {
    /// The number of a word, which may be new.
    fn number(&mut self, word: &str) -> usize {
        if let Some(at) = self.at.get(word) {
            return *at;
        }
        self.at.insert(word.into(), self.list.len());
        self.list.push(word.into());
        self.list.len() - 1
    }
}

/// Read and check every cell that is looked at; a test file must be like those of the training split.
pub fn read(options: &Options, kind: Lines, files: &[File], like: Option<&Table>) -> Result<Table> {
    let mut table = None;
    for f in files {
        crate::error::in_file(&f.path, read_one(options, kind, f, like, &mut table))?;
    }
    let first = files.first().map_or("", |f| &f.path);
    let dropped = table.as_ref().map_or(0, |t: &Table| t.dropped);
    match table.filter(|t| !t.lines.is_empty()) {
        Some(t) => Ok(t),
        None if dropped > 0 => bail!("'{first}': every line has missing cells, so none is left"),
        None => bail!("'{first}' holds no examples, only a header line"),
    }
}

/// Append the lines of a file.
fn read_one(
    options: &Options,
    lines: Lines,
    f: &File,
    like: Option<&Table>,
    table: &mut Option<Table>,
) -> Result<()> {
    let path = &f.path;
    lines.ensure(f)?;
    let what = format!("the table in '{path}'");
    let mut growing = Growing::new(&what);
    let mut begun = false;
    lines.each(options, f, &mut |record, line| {
        if !begun {
            begun = true;
            let named = lines.named(options, path, record)?;
            let new = Table::new(options, path, record, named, lines)?;
            if let Some(other) = like {
                new.ensure_like(other, path, "the file of the training split")?;
            }
            match table {
                Some(t) => {
                    new.ensure_like(t, path, &format!("'{}'", t.paths[0]))?;
                    t.paths.push(path.clone());
                }
                None => *table = Some(new),
            }
            if named {
                return Ok(());
            }
        }
        let Some(t) = table else { return Ok(()) };
        ensure!(
            record.len() == t.columns.width(),
            "'{path}', {} {line}: {} cells, but the first line has {}",
            lines.word(),
            record.len(),
            t.columns.width()
        );
        t.push(path, record, line)?;
        growing.reached(size_of_val(&t.cells[..]) + size_of_val(&t.lines[..]))
    })
}

impl Table {
    /// A table without rows, by its first line.
    fn new(
        options: &Options,
        path: &str,
        first: &ByteRecord,
        named: bool,
        kind: Lines,
    ) -> Result<Self> {
        let names = named.then(|| first.iter().map(|c| text(c).to_string()).collect());
        let file = Header {
            path,
            names: &names,
            width: first.len(),
        };
        let columns = columns(options, file)?;
        Ok(Self {
            words: (0..columns.width()).map(|_| Words::default()).collect(),
            rules: rules(options, &columns, file)?,
            names,
            columns,
            cells: Vec::new(),
            paths: vec![path.into()],
            lines: Vec::new(),
            dropped: 0,
            kind,
        })
    }

    fn ensure_like(&self, other: &Table, path: &str, which: &str) -> Result<()> {
        ensure!(
            other.columns == self.columns && other.names == self.names,
            "'{path}' has {} {which}",
            match (&self.names, &other.names) {
                (Some(a), Some(b)) if a.len() == b.len() && a.iter().all(|n| b.contains(n)) => {
                    "the columns in another order than"
                }
                _ => "other columns than",
            }
        );
        Ok(())
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.cells.chunks_exact(self.columns.width())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Where a row stands.
    pub fn place(&self, row: usize) -> String {
        let (file, line) = self.lines[row];
        format!(
            "'{}', {} {line}",
            self.paths[file as usize],
            self.kind.word()
        )
    }

    /// The word in a column of words.
    pub fn word(&self, row: &[f64], j: usize) -> &str {
        &self.words[j].list[row[j] as usize]
    }

    /// Take over a line.
    fn push(&mut self, path: &str, record: &ByteRecord, line: u64) -> Result<()> {
        let is_missing = |cell: &[u8]| MISSING.contains(&&*text(cell));
        let dropped = |(j, cell): (usize, &[u8])| {
            let used = self.columns.roles[j] != Role::Unused;
            used && self.rules[j] == Rule::Drop && is_missing(cell)
        };
        // Before anything of the line is taken over.
        if record.iter().enumerate().any(dropped) {
            self.dropped += 1;
            return Ok(());
        }
        for (j, cell) in record.iter().enumerate() {
            let used = self.columns.roles[j] != Role::Unused;
            let absent = used && is_missing(cell);
            let cell = text(cell);
            // A text of its own has replaced what is no UTF-8: words that differ would become the same.
            let other = used && matches!(cell, Cow::Owned(_));
            let found = match absent {
                true => self.missing(j, &cell),
                false if other => Err(format!(
                    "{:?} is not UTF-8; convert the file first, as with iconv -f latin1 -t utf-8",
                    shorten(&cell)
                )),
                false => self.cell(j, &cell),
            };
            let (word, column) = (self.kind.word(), name(&self.names, j));
            let wrong = |what: String| anyhow!("'{path}', {word} {line}, {column}: {what}");
            self.cells.push(found.map_err(wrong)?);
        }
        self.lines.push((self.paths.len() as u32 - 1, line));
        Ok(())
    }

    /// A cell that is there, or what is wrong with it.
    fn cell(&mut self, j: usize, cell: &str) -> std::result::Result<f64, String> {
        match self.columns.roles[j] {
            Role::Unused => Ok(0.0),
            Role::Word => {
                let at = self.words[j].number(cell);
                // Far below what single precision counts exactly.
                (at < 1 << 16)
                    .then_some(at as f64)
                    .ok_or_else(|| "there are too many different words".into())
            }
            Role::Date => date::days(cell).ok_or_else(|| format!("{:?} {NO_DATE}", shorten(cell))),
            Role::Number => {
                let hint = || match date::days(cell) {
                    _ if self.columns.targets.contains(&j) => {
                        "a target of a regression must be one; labels need task: \"classification\""
                    }
                    Some(_) => "name the column in 'dates'",
                    None => {
                        "name the column in 'categories' if it holds words, or leave it out of 'inputs'"
                    }
                };
                let x = number(cell)
                    .ok_or_else(|| format!("{:?} is not a number; {}", shorten(cell), hint()))?;
                single(x).ok_or_else(|| format!("{:?} {NOT_SINGLE}", shorten(cell)))
            }
        }
    }

    /// What stands for a cell that is missing, or what to do about it.
    fn missing(&mut self, j: usize, cell: &str) -> std::result::Result<f64, String> {
        match &self.rules[j] {
            Rule::Mean | Rule::Median | Rule::Value(_) => return Ok(f64::NAN),
            Rule::Word(word) => return Ok(self.words[j].number(word) as f64),
            Rule::Refuse | Rule::Drop => {}
        }
        let what = match cell {
            "" => "the cell is empty".into(),
            other => format!("{other:?} is no value"),
        };
        let fill = match self.columns.roles[j] {
            _ if !self.columns.inputs.contains(&j) => "",
            Role::Word => ", and a map `missing: #{ column: \"a word\" }` puts a word there",
            _ => ", \"mean\", \"median\" or a number fills the cells of inputs",
        };
        Err(format!(
            "{what}; missing: \"drop\" leaves such lines out{fill}"
        ))
    }
}
