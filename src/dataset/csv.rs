//! `dataset::csv`: a table of numbers, one example per line.

use super::{Dataset, Inputs, SEED, Scale, Split, TEST, Targets, VALIDATION, file, scale};
use crate::error::{Result, did_you_mean, in_file};
use crate::memory::Growing;
use crate::options::{Entry, Kind, Options, Value, option, optional, required};
use ::csv::{ByteRecord, ReaderBuilder};
use anyhow::{Context, anyhow, bail, ensure};
use file::File;
use std::borrow::Cow;
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "csv",
    doc: "A table of numbers with one example per line, from a text file (also gzipped).\n\
        Columns that are not targets are inputs. In classification the label column holds whole numbers 0, 1, 2, …; in \
        regression one or more columns are targets. Every cell must be a finite number.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
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
        option(
            "task",
            Kind::Choice(&["classification", "regression"]),
            "classification",
            "What the targets are: class labels or numbers.",
        ),
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
        TEST,
        VALIDATION,
        scale::COLUMNS,
        SEED,
    ],
    example: "dataset::csv(\"tests/data/example.csv\", #{ label: \"class\", scale: \"standard\" })",
    build,
};

/// The numbers of a file, row-major, all lines of the same width.
struct Table {
    names: Option<Vec<String>>,
    width: usize,
    cells: Vec<f32>,
    /// Line of the file of each row; quoted cells may span lines.
    lines: Vec<u64>,
}

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let seed = options.int("seed")?;
    let separator = separator(options)?;
    let f = File::open(options.text("path")?)?;
    let table = in_file(&f.path, read(&f, separator, options.text("header")?))?;
    let regression = options.text("task")? == "regression";
    let columns = target_columns(options, &f.path, &table, regression)?;
    ensure!(
        columns.len() < table.width,
        "'{}': all {} columns are targets; at least one must be an input (is the separator {:?} right?)",
        f.path,
        table.width,
        separator as char
    );
    let is_target: Vec<bool> = (0..table.width).map(|j| columns.contains(&j)).collect();
    let mut x = Vec::new();
    for row in table.cells.chunks_exact(table.width) {
        x.extend(
            row.iter()
                .zip(&is_target)
                .filter(|(_, t)| !**t)
                .map(|(x, _)| *x),
        );
    }
    let (classes, targets) = targets(&f, &table, &columns, regression)?;
    let split = Split::new(table.width - columns.len(), Inputs::F32(x), targets)?;
    let of: Vec<_> = columns.iter().map(|&j| name(&table.names, j)).collect();
    let provenance = vec![
        f.provenance(),
        (
            "task".into(),
            format!("{} of {}", options.text("task")?, of.join(", ")),
        ),
    ];
    let scale: Scale = options.text("scale")?.parse()?;
    let d = Dataset::new("csv", classes, split, None, provenance)?
        .with_test(options.float("test")?, seed)?
        .with_validation(options.float("validation")?, seed)?
        .scaled(scale)?;
    Ok(Arc::new(d))
}

fn separator(options: &Options) -> Result<u8> {
    let owner = options.owner();
    match options.text("separator")? {
        "tab" | "\t" => Ok(b'\t'),
        s => match s.as_bytes() {
            &[b] if b.is_ascii() && !matches!(b, b'"' | b'\n' | b'\r') => Ok(b),
            _ => bail!(
                "{owner}: option 'separator' is {s:?}, but must be one ASCII character other than a quote"
            ),
        },
    }
}

const HINT: &str = "; for numbers use task: \"regression\", and choose the column by 'label'";

/// The targets in these columns, and the number of their classes; 0 for numbers.
fn targets(
    f: &File,
    table: &Table,
    columns: &[usize],
    regression: bool,
) -> Result<(usize, Targets)> {
    let rows = table.cells.chunks_exact(table.width);
    if regression {
        let (width, mut data) = (columns.len(), Vec::new());
        rows.for_each(|row| data.extend(columns.iter().map(|&j| row[j])));
        return Ok((0, Targets::Values { width, data }));
    }
    let j = columns[0];
    let mut labels = Vec::new();
    for (row, line) in rows.zip(&table.lines) {
        labels.push(file::label(row[j] as f64).map_err(|e| {
            anyhow!(
                "'{}', line {line}: {} {e}{}",
                f.path,
                name(&table.names, j),
                HINT
            )
        })?);
    }
    let what = format!("'{}': the labels in {}", f.path, name(&table.names, j));
    Ok((
        file::count_classes(&what, &labels)?,
        Targets::Classes(labels),
    ))
}

/// What messages call a column.
fn name(names: &Option<Vec<String>>, j: usize) -> String {
    match names {
        Some(n) => format!("column '{}'", n[j]),
        None => format!("column {j} (from 0)"),
    }
}

/// The numbers of the target columns.
fn target_columns(
    options: &Options,
    path: &str,
    table: &Table,
    regression: bool,
) -> Result<Vec<usize>> {
    let owner = options.owner();
    let one = |option: &str, v: &Value| -> Result<usize> {
        let width = table.width;
        match (v, &table.names) {
            (Value::Int(i), _) => {
                let j = if *i < 0 {
                    i.saturating_add(width as i64)
                } else {
                    *i
                };
                usize::try_from(j).ok().filter(|&j| j < width).ok_or_else(|| {
                    anyhow!(
                        "{owner}: option '{option}' is {i}, but '{path}' has the columns 0 to {}",
                        width - 1
                    )
                })
            }
            (Value::Text(t), Some(names)) => {
                let found: Vec<_> = (0..names.len()).filter(|j| names[*j] == *t).collect();
                match found[..] {
                    [j] => Ok(j),
                    [] => {
                        let known = did_you_mean(t, names.iter().map(String::as_str));
                        bail!("{owner}: option '{option}': '{path}' has no column '{t}'{known}")
                    }
                    _ => {
                        let all: Vec<_> = found.iter().map(usize::to_string).collect();
                        bail!(
                            "{owner}: option '{option}': '{path}' has {} columns named '{t}', numbers {}; choose one by its number, from 0",
                            all.len(),
                            all.join(", ")
                        )
                    }
                }
            }
            (Value::Text(t), None) => bail!(
                "{owner}: option '{option}' is the name '{t}', but '{path}' has no header line; give the column's number"
            ),
            _ => bail!("{owner}: option '{option}' must be a column name or a whole number"),
        }
    };
    match (options.get("targets"), options.get("label")) {
        (Some(_), Some(_)) => bail!("{owner}: give 'label' or 'targets', not both"),
        (Some(_), None) if !regression => {
            bail!(
                "{owner}: 'targets' needs task: \"regression\"; a class label is one column, 'label'"
            )
        }
        (Some(Value::List(list)), None) if !list.is_empty() => {
            let columns = list
                .iter()
                .map(|v| one("targets", v))
                .collect::<Result<Vec<_>>>()?;
            for (i, j) in columns.iter().enumerate() {
                ensure!(
                    !columns[..i].contains(j),
                    "{owner}: option 'targets' names {} twice",
                    name(&table.names, *j)
                );
            }
            Ok(columns)
        }
        (Some(_), None) => {
            bail!("{owner}: option 'targets' must be an array of column names or numbers")
        }
        (None, Some(v)) => Ok(vec![one("label", v)?]),
        (None, None) => Ok(vec![table.width - 1]),
    }
}

/// Read and check every cell.
fn read(f: &File, separator: u8, header: &str) -> Result<Table> {
    let path = &f.path;
    let content = f.content()?;
    // Flexible, so that a ragged line is reported in our words.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(&content[..]);
    let mut t = Table {
        names: None,
        width: 0,
        cells: Vec::new(),
        lines: Vec::new(),
    };
    let what = format!("the table in '{path}'");
    let mut growing = Growing::new(&what);
    let mut record = ByteRecord::new();
    while reader
        .read_byte_record(&mut record)
        .with_context(|| format!("cannot read '{path}'"))?
    {
        let line = record.position().map_or(0, |p| {
            // The reader's count stands before the blank lines that it skips.
            let rest = content.get(p.byte() as usize..).unwrap_or_default();
            let blank = rest.iter().take_while(|b| matches!(b, b'\n' | b'\r'));
            p.line() + blank.filter(|&&b| b == b'\n').count() as u64
        });
        if t.width == 0 {
            t.width = record.len();
            if is_header(path, &record, header)? {
                t.names = Some(record.iter().map(|c| text(c).to_string()).collect());
                continue;
            }
        }
        ensure!(
            record.len() == t.width,
            "'{path}', line {line}: {} cells, but the first line has {}",
            record.len(),
            t.width
        );
        for (j, cell) in record.iter().enumerate() {
            let cell = text(cell);
            let wrong =
                |what: &str| anyhow!("'{path}', line {line}, {}: {what}", name(&t.names, j));
            let x: f64 = match cell.parse() {
                Ok(x) => x,
                Err(_) if cell.is_empty() => {
                    return Err(wrong("the cell is empty, but must be a number"));
                }
                Err(_) => return Err(wrong(&format!("{:?} is not a number", shorten(&cell)))),
            };
            // Also numbers that single precision cannot hold.
            if !(x as f32).is_finite() {
                return Err(wrong(&format!(
                    "{:?} is not a finite single-precision number",
                    shorten(&cell)
                )));
            }
            t.cells.push(x as f32);
        }
        t.lines.push(line);
        growing.reached(size_of_val(&t.cells[..]) + size_of_val(&t.lines[..]))?;
    }
    ensure!(
        !t.lines.is_empty(),
        "'{path}' holds no examples{}",
        if t.names.is_some() {
            ", only a header line"
        } else {
            ""
        }
    );
    Ok(t)
}

fn is_header(path: &str, first: &ByteRecord, header: &str) -> Result<bool> {
    let numbers = first
        .iter()
        .filter(|c| text(c).parse::<f64>().is_ok())
        .count();
    match header {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ if numbers == 0 => Ok(true),
        _ if numbers == first.len() => Ok(false),
        // Guessing would drop a damaged first example, or read names as numbers.
        _ => bail!(
            "'{path}', line 1: {numbers} of {} cells are numbers; say header: \"yes\" if it holds column names, or \"no\"",
            first.len()
        ),
    }
}

fn text(cell: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(cell.trim_ascii())
}

/// The beginning of a cell, short enough for a message.
fn shorten(cell: &str) -> String {
    if cell.chars().count() <= 40 {
        return cell.into();
    }
    cell.chars().take(40).chain(['…']).collect()
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
