//! `dataset::csv`: a table of numbers, one example per line.

use super::{Dataset, Inputs, SEED, Scale, Split, TEST, Targets, VALIDATION, file, scale};
use crate::error::{Result, count, did_you_mean, in_file, listed};
use crate::memory::Growing;
use crate::options::{Entry, Kind, Options, Value, option, optional, required};
use ::csv::{ByteRecord, ReaderBuilder};
use anyhow::{Context, anyhow, bail, ensure};
use file::File;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "csv",
    doc: "A table with one example per line, from a text file (also gzipped).\n\
        Columns that are not targets are inputs. In classification the label column holds whole numbers 0, 1, 2, … or words, which are \
        numbered in alphabetical order (`data.class_names`); in regression one or more columns are targets. Inputs are finite numbers, but for the columns that \
        `categories` names.",
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
        optional(
            "inputs",
            Kind::Anything("array of column names or numbers"),
            "all other columns",
            "Columns of the inputs; other columns may hold anything.",
        ),
        optional(
            "categories",
            Kind::Anything("array of column names or numbers"),
            "none",
            "Inputs that are words, or numbers that only name something: each word of the file becomes an input that is 1 where it stands and 0 elsewhere, in alphabetical order.",
        ),
        option(
            "missing",
            Kind::Choice(&["refuse", "drop"]),
            "refuse",
            "What to do with a cell that is empty, NA, N/A, NaN, null or ?: \"refuse\" is an error with its line · \"drop\" leaves the line out.",
        ),
        optional(
            "test_path",
            Kind::Text,
            "none",
            "A second file with the same columns, which is the test split; in the place of `test`.",
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

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Not looked at.
    Unused,
    /// A number.
    Number,
    /// A word, of which the table has the number in [`Table::words`].
    Word,
}

/// The cells of a file that are looked at, row-major, all lines of the same width.
struct Table {
    names: Option<Vec<String>>,
    columns: Columns,
    cells: Vec<f32>,
    /// The words of each column, in the order in which they came.
    words: Vec<Words>,
    /// Line of the file of each row; quoted cells may span lines.
    lines: Vec<u64>,
    /// Lines that were left out.
    dropped: usize,
}

/// The words of a column.
#[derive(Default)]
struct Words {
    list: Vec<String>,
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

/// Which columns are what.
#[derive(Debug, Clone, PartialEq)]
struct Columns {
    roles: Vec<Role>,
    inputs: Vec<usize>,
    targets: Vec<usize>,
}

impl Columns {
    fn width(&self) -> usize {
        self.roles.len()
    }
}

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let seed = options.int("seed")?;
    let regression = options.text("task")? == "regression";
    let f = File::open(options.text("path")?)?;
    let table = in_file(&f.path, read(options, &f, None))?;
    let levels = Levels::new(&f, &table, regression)?;
    let train = levels.split(&f, &table, regression)?;
    let classes = levels.classes(&f, &table, &train)?;
    let mut provenance = vec![f.provenance()];
    let mut test = None;
    if let Some(path) = options.opt_text("test_path") {
        let f = File::open(path)?;
        let other = in_file(&f.path, read(options, &f, Some(&table)))?;
        test = Some(levels.split(&f, &other, regression)?);
        provenance.push(("test file".into(), f.provenance().1));
        provenance.extend(dropped(&other, "test line"));
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
    if let Some(names) = &levels.class_names {
        let each = names.iter().enumerate().map(|(i, c)| format!("{i} = {c}"));
        provenance.push(("labels".into(), listed(&each.collect::<Vec<_>>())));
    }
    for (j, words) in &levels.categories {
        let text = format!("{}: {}", name(&table.names, *j), listed(words));
        provenance.push(("category".into(), text));
    }
    provenance.extend(dropped(&table, "line"));
    let scale: Scale = options.text("scale")?.parse()?;
    let apart = test.is_some();
    let mut d = Dataset::new("csv", classes, train, test, provenance)?;
    d.class_names = levels.class_names.map(Arc::new);
    if !apart {
        d = d.with_test(options.float("test")?, seed)?;
    }
    let d = d
        .with_validation(options.float("validation")?, seed)?
        .scaled(scale)?;
    Ok(Arc::new(d))
}

/// How many lines were left out, for people.
fn dropped(t: &Table, line: &str) -> Option<(String, String)> {
    let text = format!("{} with missing cells left out", count(t.dropped, line));
    (t.dropped > 0).then(|| ("missing".into(), text))
}

/// What words stand for, by the first file.
struct Levels {
    /// The labels, if they are words.
    class_names: Option<Vec<String>>,
    /// The words of input columns.
    categories: Vec<(usize, Vec<String>)>,
}

impl Levels {
    fn new(f: &File, t: &Table, regression: bool) -> Result<Self> {
        let words = t
            .columns
            .inputs
            .iter()
            .filter(|j| t.columns.roles[**j] == Role::Word);
        let categories = words.map(|j| (*j, sorted(&t.words[*j].list))).collect();
        let mut out = Self {
            class_names: None,
            categories,
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
                "'{}': {} holds {} different words, too many for classes{HINT}",
                f.path,
                name(&t.names, j),
                names.len()
            );
            ensure!(
                names.len() > 1,
                "'{}': all labels in {} are '{}'; classification needs at least two classes",
                f.path,
                name(&t.names, j),
                names[0]
            );
            out.class_names = Some(names);
        }
        Ok(out)
    }

    /// Number of classes, by the training split; 0 for numbers.
    fn classes(&self, f: &File, t: &Table, train: &Split) -> Result<usize> {
        match (&self.class_names, train.labels()) {
            (Some(names), _) => Ok(names.len()),
            (None, Some(labels)) => {
                let column = name(&t.names, t.columns.targets[0]);
                let what = format!("'{}': the labels in {column}", f.path);
                file::count_classes(&what, labels)
            }
            (None, None) => Ok(0),
        }
    }

    /// The labels of a file.
    fn labels(&self, f: &File, t: &Table) -> Result<Vec<u16>> {
        let j = t.columns.targets[0];
        let mut labels = Vec::new();
        for (row, line) in t.cells.chunks_exact(t.columns.width()).zip(&t.lines) {
            let word = &t.words[j].list[row[j] as usize];
            let place = || format!("'{}', line {line}: {}", f.path, name(&t.names, j));
            labels.push(match &self.class_names {
                Some(names) => level(names, word).with_context(place)? as u16,
                None => {
                    let number = word.parse().unwrap_or(f64::NAN);
                    file::label(number).map_err(|e| anyhow!("{} {e}{HINT}", place()))?
                }
            });
        }
        Ok(labels)
    }

    /// Inputs and targets of a file.
    fn split(&self, f: &File, t: &Table, regression: bool) -> Result<Split> {
        let Columns {
            inputs, targets, ..
        } = &t.columns;
        let mut x = Vec::new();
        let mut width = 0;
        for (row, line) in t.cells.chunks_exact(t.columns.width()).zip(&t.lines) {
            let before = x.len();
            for &j in inputs {
                let Some((_, words)) = self.categories.iter().find(|(k, _)| *k == j) else {
                    x.push(row[j]);
                    continue;
                };
                let place = || format!("'{}', line {line}: {}", f.path, name(&t.names, j));
                let at = level(words, &t.words[j].list[row[j] as usize]).with_context(place)?;
                x.extend((0..words.len()).map(|k| f32::from(u8::from(k == at))));
            }
            width = x.len() - before;
        }
        let targets = match regression {
            true => {
                let rows = t.cells.chunks_exact(t.columns.width());
                let data = rows
                    .flat_map(|row| targets.iter().map(|&j| row[j]))
                    .collect();
                Targets::Values {
                    width: targets.len(),
                    data,
                }
            }
            false => Targets::Classes(self.labels(f, t)?),
        };
        Split::new(width, Inputs::F32(x), targets)
    }
}

fn sorted(words: &[String]) -> Vec<String> {
    let mut out = words.to_vec();
    out.sort_unstable();
    out
}

/// The number of a word among those of the first file.
fn level(known: &[String], word: &str) -> Result<usize> {
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

/// What messages call a column.
fn name(names: &Option<Vec<String>>, j: usize) -> String {
    match names {
        Some(n) => format!("column '{}'", n[j]),
        None => format!("column {j} (from 0)"),
    }
}

/// The number of a column that an option names.
fn column(
    (owner, option): (&str, &str),
    v: &Value,
    (path, names, width): (&str, &Option<Vec<String>>, usize),
) -> Result<usize> {
    match (v, names) {
        (Value::Int(i), _) => {
            let j = if *i < 0 {
                i.saturating_add(width as i64)
            } else {
                *i
            };
            usize::try_from(j)
                .ok()
                .filter(|&j| j < width)
                .ok_or_else(|| {
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
}

/// Which columns are what, in a file of this many.
fn columns(
    options: &Options,
    path: &str,
    names: &Option<Vec<String>>,
    width: usize,
) -> Result<Columns> {
    let owner = options.owner();
    let regression = options.text("task")? == "regression";
    let one = |option: &str, v: &Value| column((owner, option), v, (path, names, width));
    let several = |option: &str, list: &[Value]| -> Result<Vec<usize>> {
        let columns = list
            .iter()
            .map(|v| one(option, v))
            .collect::<Result<Vec<_>>>()?;
        for (i, j) in columns.iter().enumerate() {
            ensure!(
                !columns[..i].contains(j),
                "{owner}: option '{option}' names {} twice",
                name(names, *j)
            );
        }
        Ok(columns)
    };
    let given = |option: &str| match options.get(option) {
        None => Ok(None),
        Some(Value::List(list)) if !list.is_empty() => several(option, list).map(Some),
        Some(_) => bail!("{owner}: option '{option}' must be an array of column names or numbers"),
    };
    let targets = match (given("targets")?, options.get("label")) {
        (Some(_), Some(_)) => bail!("{owner}: give 'label' or 'targets', not both"),
        (Some(_), None) if !regression => {
            bail!(
                "{owner}: 'targets' needs task: \"regression\"; a class label is one column, 'label'"
            )
        }
        (Some(columns), None) => columns,
        (None, Some(v)) => vec![one("label", v)?],
        (None, None) => vec![width - 1],
    };
    let inputs = match given("inputs")? {
        Some(columns) => columns,
        None => (0..width).filter(|j| !targets.contains(j)).collect(),
    };
    ensure!(
        !inputs.is_empty(),
        "'{path}': all {width} columns are targets; at least one must be an input (is the separator {:?} right?)",
        separator(options)? as char
    );
    let categories = given("categories")?.unwrap_or_default();
    let mut roles = vec![Role::Unused; width];
    inputs.iter().for_each(|&j| roles[j] = Role::Number);
    for &j in &categories {
        ensure!(
            inputs.contains(&j),
            "{owner}: option 'categories' names {}, which is no input",
            name(names, j)
        );
        roles[j] = Role::Word;
    }
    for &j in &targets {
        ensure!(
            !inputs.contains(&j),
            "{owner}: {} is an input and a target",
            name(names, j)
        );
        roles[j] = if regression { Role::Number } else { Role::Word };
    }
    Ok(Columns {
        roles,
        inputs,
        targets,
    })
}

/// What stands where a cell is missing.
const MISSING: [&str; 6] = ["", "NA", "N/A", "NaN", "null", "?"];

/// Read and check every cell that is looked at; a second file must be like the first.
fn read(options: &Options, f: &File, like: Option<&Table>) -> Result<Table> {
    let path = &f.path;
    let (header, drop) = (options.text("header")?, options.text("missing")? == "drop");
    let content = f.content()?;
    // Flexible, so that a ragged line is reported in our words.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator(options)?)
        .from_reader(&content[..]);
    let mut t: Option<Table> = None;
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
        let t = match &mut t {
            Some(t) => t,
            None => {
                let named = is_header(options, path, &record, header)?;
                let first = t.insert(Table::new(options, path, &record, named, like)?);
                if named {
                    continue;
                }
                first
            }
        };
        ensure!(
            record.len() == t.columns.width(),
            "'{path}', line {line}: {} cells, but the first line has {}",
            record.len(),
            t.columns.width()
        );
        t.push(path, &record, line, drop)?;
        growing.reached(size_of_val(&t.cells[..]) + size_of_val(&t.lines[..]))?;
    }
    let left_out = t.as_ref().map_or(0, |t| t.dropped);
    match t.filter(|t| !t.lines.is_empty()) {
        Some(t) => Ok(t),
        None if left_out > 0 => bail!("'{path}': every line has missing cells, so none is left"),
        None => bail!("'{path}' holds no examples, only a header line"),
    }
}

impl Table {
    /// A table without rows, by its first line.
    fn new(
        options: &Options,
        path: &str,
        first: &ByteRecord,
        named: bool,
        like: Option<&Table>,
    ) -> Result<Self> {
        let names = named.then(|| first.iter().map(|c| text(c).to_string()).collect());
        let columns = columns(options, path, &names, first.len())?;
        if let Some(other) = like {
            ensure!(
                other.columns == columns && other.names == names,
                "'{path}' has other columns than the file of the training split"
            );
        }
        Ok(Self {
            words: (0..columns.width()).map(|_| Words::default()).collect(),
            names,
            columns,
            cells: Vec::new(),
            lines: Vec::new(),
            dropped: 0,
        })
    }

    /// Take over a line.
    fn push(&mut self, path: &str, record: &ByteRecord, line: u64, drop: bool) -> Result<()> {
        let missing =
            |(cell, role): (&[u8], &Role)| *role != Role::Unused && MISSING.contains(&&*text(cell));
        // Before anything of the line is taken over.
        if drop && record.iter().zip(&self.columns.roles).any(missing) {
            self.dropped += 1;
            return Ok(());
        }
        for (j, cell) in record.iter().enumerate() {
            let role = self.columns.roles[j];
            let wrong =
                |what: &str| anyhow!("'{path}', line {line}, {}: {what}", name(&self.names, j));
            if missing((cell, &role)) {
                let what = match &*text(cell) {
                    "" => "the cell is empty".into(),
                    other => format!("{other:?} is no value"),
                };
                return Err(wrong(&format!(
                    "{what}; missing: \"drop\" leaves such lines out"
                )));
            }
            let cell = text(cell);
            let number = match role {
                Role::Unused => 0.0,
                Role::Word => {
                    let at = self.words[j].number(&cell);
                    // Far below what single precision counts exactly.
                    ensure!(at < 1 << 16, wrong("there are too many different words"));
                    at as f32
                }
                Role::Number => {
                    let x: f64 = cell.parse().map_err(|_| {
                        wrong(&format!(
                            "{:?} is not a number; name the column in 'categories' if it holds words, or leave it out of 'inputs'",
                            shorten(&cell)
                        ))
                    })?;
                    // Also numbers that single precision cannot hold.
                    if !(x as f32).is_finite() {
                        return Err(wrong(&format!(
                            "{:?} is not a finite single-precision number",
                            shorten(&cell)
                        )));
                    }
                    x as f32
                }
            };
            self.cells.push(number);
        }
        self.lines.push(line);
        Ok(())
    }
}

fn is_header(options: &Options, path: &str, first: &ByteRecord, header: &str) -> Result<bool> {
    let is_number = |c: &[u8]| text(c).parse::<f64>().is_ok();
    let numbers = first.iter().filter(|c| is_number(c)).count();
    match header {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ if numbers == 0 => Ok(true),
        _ if numbers == first.len() => Ok(false),
        _ => {
            // Words may stand where no number is needed.
            let roles = columns(options, path, &None, first.len()).map(|c| c.roles);
            let mut cells = first.iter().zip(roles.unwrap_or_default());
            let some = first.iter().len() > 0 && cells.len() > 0;
            if some && cells.all(|(c, role)| role != Role::Number || is_number(c)) {
                return Ok(false);
            }
            // Guessing would drop a damaged first example, or read names as numbers.
            bail!(
                "'{path}', line 1: {numbers} of {} cells are numbers; say header: \"yes\" if it holds column names, or \"no\"",
                first.len()
            )
        }
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
