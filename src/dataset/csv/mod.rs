//! `dataset::csv` and `dataset::parquet`: a table, one example per line.

mod columns;
mod levels;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

pub(super) use columns::{Columns, Header, Role, column, name};

use super::{Dataset, SEED, Scale, Split, TEST, VALIDATION, file, scale};
use crate::error::{Result, count};
use crate::options::{Entry, Kind, Options, Value, option, optional, required};
use anyhow::{anyhow, bail, ensure};
use file::File;
use levels::Levels;
use lines::Lines;
use std::sync::Arc;
use table::{Table, read};

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "csv",
    doc: "A table with one example per line, from a text file (also gzipped).\n\
        Columns that are not targets are inputs. In classification the label column holds whole numbers 0, 1, 2, … or words, which are \
        numbered in alphabetical order (`data.class_names`); in regression one or more columns are targets. Inputs are finite numbers, but for the columns that \
        `categories` and `dates` name. What words and dates stand for, and what takes the place of missing cells, is shown with the data set, and kept for new rows: \
        `predict` takes them as the file has them.",
    arguments: &["path"],
    options: &[
        required(
            "path",
            Kind::Anything(PATHS),
            "The file; the lines of several are one after the other.",
        ),
        optional(
            "label",
            Kind::Anything("column name or number"),
            "the last column",
            "Column of the label or target: its name, or its number from 0; negative numbers count from the end.",
        ),
        optional(
            "targets",
            Kind::Anything("array of column names or numbers"),
            "the column `label`",
            "Columns of the targets, for regression of several values.",
        ),
        optional(
            "inputs",
            Kind::Anything("array of column names or numbers"),
            "all other columns, but for a first one without a name, the index of pandas",
            "Columns of the inputs; other columns may hold anything.",
        ),
        optional(
            "categories",
            Kind::Anything("array of column names or numbers"),
            "none",
            "Inputs that are words, or numbers that only name something: each word of the file becomes an input that is 1 where it stands and 0 elsewhere, in alphabetical order.",
        ),
        optional(
            "dates",
            Kind::Anything("array of column names or numbers"),
            "none",
            "Inputs that are dates, as 2024-03-01, 2024-03-01 12:30 or 2024-03-01T12:30:00+02:00: they become days since the first date of the file, with the part of the day.",
        ),
        optional(
            "missing",
            Kind::Anything("rule, or a map of rules by column"),
            "\"refuse\"",
            "What to do with a cell that is empty, NA, N/A, NaN, null or ?: \"refuse\" is an error with its line · \"drop\" leaves the line out · \"mean\" and \"median\" put \
             those of the column over the training rows there, and a number itself, into numbers and dates among the inputs. A map has a rule for each column, and \"*\" for the others: \
             `missing: #{ age: \"median\", colour: \"unknown\", \"*\": \"drop\" }`; in a column of `categories` any other text is the word that stands there.",
        ),
        optional(
            "split",
            Kind::Anything("column name or number"),
            "none",
            "Column that says to which split a line belongs: train, test or validation; in the place of `test`.",
        ),
        optional(
            "weights",
            Kind::Anything("column name or number"),
            "all 1",
            "Column of weights, numbers from 0 that multiply the loss of each line (see `data.weigh`).",
        ),
        optional(
            "test_path",
            Kind::Anything(PATHS),
            "none",
            "A second file with the same columns, or several, which is the test split; in the place of `test`.",
        ),
        option(
            "task",
            Kind::Choice(&["classification", "regression"]),
            "classification",
            "What the targets are: class labels or numbers.",
        ),
        TEST,
        VALIDATION,
        scale::COLUMNS,
        SEED,
        option(
            "header",
            Kind::Choice(&["auto", "yes", "no"]),
            "auto",
            "Whether the first line holds column names; \"auto\": if none of its cells is a number.",
        ),
        option(
            "separator",
            Kind::Text,
            "\",\"",
            "The character between cells; \"tab\" for the tab character.",
        ),
    ],
    example: "dataset::csv(\"tests/data/example.csv\", #{ label: \"class\", scale: \"standard\" })",
    build: |o| build(o, Lines::Text),
};

pub(super) const PARQUET: Entry<Arc<Dataset>> = Entry {
    name: "parquet",
    doc: "A table with one example per row, from a Parquet file as pandas, Polars and Arrow write it.\n\
        Columns and options are those of `dataset::csv`; nulls are missing cells. Columns hold numbers, booleans (0 and 1), dates, times or text; lists are not read. The \
        index that pandas writes as `__index_level_0__` is left out. Compression: none, snappy, zstd, gzip or LZ4. Needs a program that was built with `--features parquet`.",
    arguments: &["path"],
    // Those of a text's form come last.
    options: ENTRY.options.split_at(ENTRY.options.len() - 2).0,
    example: "dataset::parquet(\"tests/data/visits.parquet\", #{ label: \"outcome\", dates: [\"day\"], categories: [\"ward\"], missing: \"median\" })",
    build: |o| build(o, Lines::Parquet),
};

/// What `path` takes.
const PATHS: &str = "path, or array of paths";

const HINT: &str = "; for numbers use task: \"regression\", and choose the column by 'label'";

fn build(options: &Options, kind: Lines) -> Result<Arc<Dataset>> {
    let owner = options.owner();
    let seed = options.int("seed")?;
    let regression = options.text("task")? == "regression";
    let files = open(owner, "path", options.get("path"))?;
    let path = &files[0].path;
    let table = read(options, kind, &files, None)?;
    let levels = Levels::new(path, &table, regression)?;
    let all = levels.split(&table, regression)?;
    let classes = levels.classes(path, &table, &all)?;
    let mut provenance: Vec<_> = files.iter().map(File::provenance).collect();
    let by_column = splits(&table, &all)?;
    let mut apart = by_column.is_some();
    let [train, mut test, validation] = by_column.unwrap_or([Some(all), None, None]);
    if options.get("test_path").is_some() {
        ensure!(!apart, "{owner}: give 'test_path' or 'split', not both");
        apart = true;
        let files = open(owner, "test_path", options.get("test_path"))?;
        let other = read(options, kind, &files, Some(&table))?;
        test = Some(levels.split(&other, regression)?);
        let each = files.iter().map(|f| ("test file".into(), f.provenance().1));
        provenance.extend(each);
        provenance.extend(dropped(&other, "test "));
    }
    let of: Vec<_> = table
        .columns
        .targets
        .iter()
        .map(|&j| name(&table.names, j))
        .collect();
    provenance.push((
        "task".into(),
        format!("{} of {}", options.text("task")?, of.join(", ")),
    ));
    provenance.extend(levels.provenance());
    let weights = table.columns.weights;
    provenance.extend(weights.map(|j| ("weights".into(), name(&table.names, j))));
    provenance.extend(dropped(&table, ""));
    let train =
        train.ok_or_else(|| anyhow!("'{path}': no {} is of the training split", kind.word()))?;
    let scale: Scale = options.text("scale")?.parse()?;
    let mut d = Dataset::new(kind.name(), classes, train, test, provenance)?;
    d.class_names = levels.class_names.map(Arc::new);
    d.form = Some(Arc::new(levels.form));
    d.validation = validation.map(Arc::new);
    if apart {
        ensure!(
            !options.was_given("test") || options.float("test")? == 0.0,
            "{owner}: the test split is given by 'split' or 'test_path'; leave out 'test'"
        );
    } else {
        d = d.with_test(options.float("test")?, seed)?;
    }
    let of_inputs = table.columns.inputs.iter();
    let rules: Vec<_> = of_inputs.map(|&j| table.rules[j].clone()).collect();
    let d = d
        .with_validation(options.float("validation")?, seed)?
        .imputed(&rules)?
        .scaled(scale)?;
    Ok(Arc::new(d))
}

/// The files that an option names: a path, or several.
fn open(owner: &str, option: &str, given: Option<&Value>) -> Result<Vec<File>> {
    let wrong = || anyhow!("{owner}: option '{option}' must be a path or an array of paths");
    let paths = match given {
        Some(Value::List(list)) if !list.is_empty() => &list[..],
        Some(one) => std::slice::from_ref(one),
        None => return Err(wrong()),
    };
    let open = |v: &Value| match v {
        Value::Text(path) => File::open(path),
        _ => Err(wrong()),
    };
    paths.iter().map(open).collect()
}

/// The training, test and validation rows by the column that says which are what, if there is one.
fn splits(t: &Table, all: &Split) -> Result<Option<[Option<Split>; 3]>> {
    const KNOWN: [(&str, usize); 7] = [
        ("train", 0),
        ("training", 0),
        ("test", 1),
        ("testing", 1),
        ("validation", 2),
        ("valid", 2),
        ("val", 2),
    ];
    let Some(j) = t.columns.split else {
        return Ok(None);
    };
    let mut rows = [const { Vec::new() }; 3];
    for (at, row) in t.rows().enumerate() {
        let word = t.word(row, j).to_lowercase();
        match KNOWN.iter().find(|(known, _)| *known == word) {
            Some((_, split)) => rows[*split].push(at as u32),
            None => bail!(
                "{}, {}: '{}' is none of train, test and validation",
                t.place(at),
                name(&t.names, j),
                t.word(row, j)
            ),
        }
    }
    Ok(Some(rows.map(|r| (!r.is_empty()).then(|| all.select(&r)))))
}

/// How many lines were left out, for people.
fn dropped(t: &Table, which: &str) -> Option<(String, String)> {
    let line = format!("{which}{}", t.kind.word());
    let text = format!("{} with missing cells left out", count(t.dropped, &line));
    (t.dropped > 0).then(|| ("missing".into(), text))
}

#[cfg(test)]
mod tests;
