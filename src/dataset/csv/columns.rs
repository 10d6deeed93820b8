//! Which columns of a table are what.

use crate::error::{Result, did_you_mean};
use crate::options::{Options, Value};
use anyhow::{anyhow, bail, ensure};

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Not looked at.
    Unused,
    /// A number.
    Number,
    /// A word, of which the table has the number.
    Word,
    /// A date.
    Date,
}

/// Which columns are what.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    pub roles: Vec<Role>,
    pub inputs: Vec<usize>,
    pub targets: Vec<usize>,
    /// The one that says to which split a line belongs.
    pub split: Option<usize>,
    /// The one that has the weights of lines.
    pub weights: Option<usize>,
}

impl Columns {
    pub fn width(&self) -> usize {
        self.roles.len()
    }
}

/// What messages call a column.
pub fn name(names: &Option<Vec<String>>, j: usize) -> String {
    match names {
        Some(n) => format!("column '{}'", n[j]),
        None => format!("column {j} (from 0)"),
    }
}

/// A file whose columns are chosen: its path, the names in its header, and how many there are.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    pub path: &'a str,
    pub names: &'a Option<Vec<String>>,
    pub width: usize,
}

/// The number of a column that an option names.
pub fn column((owner, option): (&str, &str), v: &Value, file: Header) -> Result<usize> {
    let Header { path, names, width } = file;
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

/// Whether a column is the index that pandas writes, which has no name.
fn is_index(names: &Option<Vec<String>>, j: usize) -> bool {
    let name = names.as_ref().map(|n| n[j].as_str());
    j == 0 && matches!(name, Some("" | "Unnamed: 0"))
}

/// The columns that an option names.
fn several(options: &Options, option: &str, file: Header) -> Result<Option<Vec<usize>>> {
    let owner = options.owner();
    let list = match options.get(option) {
        None => return Ok(None),
        Some(Value::List(list)) if !list.is_empty() => list,
        Some(_) => bail!("{owner}: option '{option}' must be an array of column names or numbers"),
    };
    let mut columns = Vec::with_capacity(list.len());
    for v in list {
        let j = column((owner, option), v, file)?;
        ensure!(
            !columns.contains(&j),
            "{owner}: option '{option}' names {} twice",
            name(file.names, j)
        );
        columns.push(j);
    }
    Ok(Some(columns))
}

/// Which columns are what, in a file of this many.
pub fn columns(options: &Options, file: Header) -> Result<Columns> {
    let owner = options.owner();
    let Header { path, names, width } = file;
    let regression = options.text("task")? == "regression";
    let given = |option: &str| several(options, option, file);
    let one = |option: &str| {
        options
            .get(option)
            .map(|v| column((owner, option), v, file))
            .transpose()
    };
    let (split, weights) = (one("split")?, one("weights")?);
    let apart = |j: usize| split == Some(j) || weights == Some(j);
    let targets = match (given("targets")?, one("label")?) {
        (Some(_), Some(_)) => bail!("{owner}: give 'label' or 'targets', not both"),
        (Some(_), None) if !regression => {
            bail!(
                "{owner}: 'targets' needs task: \"regression\"; a class label is one column, 'label'"
            )
        }
        (Some(columns), None) => columns,
        (None, Some(label)) => vec![label],
        // The last one that is free.
        (None, None) => {
            let free = (0..width).rev().find(|j| !apart(*j));
            vec![free.unwrap_or(width - 1)]
        }
    };
    let inputs = match given("inputs")? {
        Some(columns) => columns,
        None => (0..width)
            .filter(|j| !targets.contains(j) && !apart(*j) && !is_index(names, *j))
            .collect(),
    };
    let separator = options.text("separator");
    ensure!(
        !inputs.is_empty(),
        "'{path}': all {width} columns are targets; at least one must be an input{}",
        separator.map_or(String::new(), |s| format!(
            " (is the separator '{s}' right?)"
        ))
    );
    let mut roles = vec![Role::Unused; width];
    inputs.iter().for_each(|&j| roles[j] = Role::Number);
    for &j in &targets {
        ensure!(
            !inputs.contains(&j),
            "{owner}: {} is an input and a target",
            name(names, j)
        );
        roles[j] = if regression { Role::Number } else { Role::Word };
    }
    for (option, role) in [("categories", Role::Word), ("dates", Role::Date)] {
        for j in given(option)?.unwrap_or_default() {
            ensure!(
                inputs.contains(&j),
                "{owner}: option '{option}' names {}, which is no input",
                name(names, j)
            );
            ensure!(
                roles[j] == Role::Number,
                "{owner}: {} is named in 'categories' and in 'dates'",
                name(names, j)
            );
            roles[j] = role;
        }
    }
    for (option, column, role) in [
        ("split", split, Role::Word),
        ("weights", weights, Role::Number),
    ] {
        let Some(j) = column else { continue };
        ensure!(
            roles[j] == Role::Unused,
            "{owner}: option '{option}' names {}, which is something else already",
            name(names, j)
        );
        roles[j] = role;
    }
    Ok(Columns {
        roles,
        inputs,
        targets,
        split,
        weights,
    })
}
