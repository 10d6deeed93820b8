//! What was found in the cells of a grid of settings: a table.

use crate::error::{Result, did_you_mean};
use crate::plot::{Axis, Figure, Panel, Series};
use crate::table::{Table, number};
use anyhow::ensure;
use serde_json::{Map, Value};

/// What was found in the cells of a grid: a row per cell, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// Names of the settings.
    pub settings: Vec<String>,
    /// The values of the settings, and what was found; null where nothing was.
    pub rows: Vec<(Vec<Value>, Value)>,
}

impl Cells {
    /// Names of what was found, in the order in which they first appear: the keys of maps, `result` of what is no map.
    pub fn results(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for (_, found) in &self.rows {
            for (name, _) in flat(found) {
                if !out.contains(&name) {
                    out.push(name);
                }
            }
        }
        out
    }

    /// A column: of a setting, or of what was found; null where there is nothing.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn column(&self, name: &str) -> Result<Vec<Value>> {
        if let Some(k) = self.settings.iter().position(|s| s == name) {
            return Ok(self.rows.iter().map(|(cell, _)| cell[k].clone()).collect());
        }
        let results = self.results();
        if !results.iter().any(|r| r == name) {
            let known: Vec<_> = self
                .settings
                .iter()
                .chain(&results)
                .map(String::as_str)
                .collect();
            anyhow::bail!(
                "the grid has no column '{name}'{}; it has {}",
                did_you_mean(name, known.iter().copied()),
                crate::error::listed(&known)
            );
        }
        let one = |found: &Value| {
            let all = flat(found);
            all.into_iter()
                .find(|(n, _)| n == name)
                .map_or(Value::Null, |(_, v)| v)
        };
        Ok(self.rows.iter().map(|(_, found)| one(found)).collect())
    }

    /// The cells with nothing in them.
    pub fn missing(&self) -> usize {
        self.rows
            .iter()
            .filter(|(_, found)| found.is_null())
            .count()
    }

    /// All columns by name.
    pub fn to_map(&self) -> Map<String, Value> {
        let names = self.settings.iter().cloned().chain(self.results());
        let pair = |name: String| {
            let column = self.column(&name).unwrap_or_default();
            (name, Value::Array(column))
        };
        names.map(pair).collect()
    }

    /// The names of all columns, and the rows, each entry as a text.
    fn texts(&self, text: impl Fn(&Value) -> String) -> (Vec<String>, Vec<Vec<String>>) {
        let results = self.results();
        let row = |(cell, found): &(Vec<Value>, Value)| {
            let all = flat(found);
            let of = |name: &String| {
                let found = all.iter().find(|(n, _)| n == name);
                text(found.map_or(&Value::Null, |(_, v)| v))
            };
            cell.iter()
                .map(&text)
                .chain(results.iter().map(of))
                .collect()
        };
        let rows = self.rows.iter().map(row).collect();
        (
            self.settings.iter().chain(&results).cloned().collect(),
            rows,
        )
    }

    /// As a table of texts.
    pub fn table(&self) -> Table {
        let (names, rows) = self.texts(shown);
        let mut out = Table::new(names);
        out.rows = rows;
        out
    }

    /// As CSV, every digit of every number.
    pub fn to_csv(&self) -> String {
        let quoted = |text: &str| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_string(),
        };
        let (names, rows) = self.texts(|v| match v {
            Value::Null => String::new(),
            Value::String(s) => quoted(s),
            other => quoted(&other.to_string()),
        });
        let names = names.iter().map(|n| quoted(n)).collect();
        let lines = std::iter::once(names).chain(rows);
        lines
            .map(|line: Vec<String>| line.join(",") + "\n")
            .collect()
    }

    /// A result against a setting: a line for each combination of the other settings; with `heat`, the result as colour over both.
    ///
    /// # Errors
    /// If there is no such column, or it has no numbers.
    pub fn figure(&self, value: &str, x: &str, heat: Option<&str>) -> Result<Figure> {
        let numbers = |name: &str| -> Result<Vec<f64>> {
            let column = self.column(name)?;
            let each = column.iter().map(|v| v.as_f64().unwrap_or(f64::NAN));
            let all: Vec<f64> = each.collect();
            ensure!(
                all.iter().any(|x| x.is_finite()),
                "the column '{name}' has no numbers"
            );
            Ok(all)
        };
        let (at, values) = (numbers(x)?, numbers(value)?);
        if let Some(y) = heat {
            return heat_map((x, &at), (y, &numbers(y)?), (value, &values));
        }
        let others: Vec<_> = self.settings.iter().filter(|s| *s != x).collect();
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for (k, (cell, _)) in self.rows.iter().enumerate() {
            let own = self
                .settings
                .iter()
                .zip(cell)
                .filter(|(s, _)| others.contains(s));
            let label: Vec<_> = own.map(|(s, v)| format!("{s} = {}", shown(v))).collect();
            let label = label.join(", ");
            let point = (at[k], values[k]);
            match lines.iter_mut().find(|(l, _)| *l == label) {
                Some((_, points)) => points.push(point),
                None => lines.push((label, vec![point])),
            }
        }
        let series = lines.into_iter().map(|(label, mut points)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (x, y) = points.into_iter().unzip();
            Series::line_points(label, x, y)
        });
        let panel = Panel::new(axis(x, &at), axis(value, &values), series.collect());
        Ok(Figure::of(panel))
    }
}

/// A logarithmic axis where numbers are positive and lie far apart.
fn axis(name: &str, values: &[f64]) -> Axis {
    let finite = || values.iter().copied().filter(|x| x.is_finite());
    let (low, high) = (
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
    );
    match low > 0.0 && high / low >= 30.0 {
        true => Axis::log(name),
        false => Axis::linear(name),
    }
}

type Column<'a> = (&'a str, &'a [f64]);

fn heat_map((x, xs): Column, (y, ys): Column, (value, values): Column) -> Result<Figure> {
    let different = |all: &[f64]| {
        let mut out: Vec<f64> = all.iter().copied().filter(|x| x.is_finite()).collect();
        out.sort_by(f64::total_cmp);
        out.dedup();
        out
    };
    let (columns, rows) = (different(xs), different(ys));
    let cells = rows
        .iter()
        .flat_map(|b| columns.iter().map(move |a| (*a, *b)));
    let mean = |(a, b): (f64, f64)| {
        let own = xs
            .iter()
            .zip(ys)
            .zip(values)
            .filter(|((x, y), _)| **x == a && **y == b);
        let own: Vec<f64> = own.map(|(_, v)| *v).collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    let colours: Vec<f64> = cells.map(mean).collect();
    // Cells are as wide as others: settings are mostly spread evenly in one scale or another, which ticks tell.
    let edges = |n: usize| (0..=n).map(|k| k as f64 - 0.5).collect::<Vec<_>>();
    let ticks = |all: &[f64]| {
        all.iter()
            .enumerate()
            .map(|(k, x)| (k as f64, number(*x)))
            .collect()
    };
    let series = Series::density(value, edges(columns.len()), edges(rows.len()), colours);
    let panel = Panel::new(
        Axis::linear(x).with_ticks(ticks(&columns)),
        Axis::linear(y).with_ticks(ticks(&rows)),
        vec![series],
    );
    let ends = different(values);
    let range = match (ends.first(), ends.last()) {
        (Some(a), Some(b)) => format!("{value}, {} to {} (dark)", number(*a), number(*b)),
        _ => value.to_string(),
    };
    Ok(Figure::of(panel).titled(range))
}

/// What was found as names and single values.
fn flat(found: &Value) -> Vec<(String, Value)> {
    match found {
        Value::Null => Vec::new(),
        Value::Object(map) => {
            let inner = |(name, v): (&String, &Value)| match v {
                Value::Object(_) => flat(v)
                    .into_iter()
                    .map(|(n, v)| (format!("{name}.{n}"), v))
                    .collect(),
                other => vec![(name.clone(), other.clone())],
            };
            map.iter().flat_map(inner).collect()
        }
        other => vec![("result".into(), other.clone())],
    }
}

fn shown(v: &Value) -> String {
    match v {
        Value::Null => "–".into(),
        Value::String(s) => s.clone(),
        Value::Number(n) if n.is_f64() => number(n.as_f64().unwrap_or(f64::NAN)),
        Value::Array(a) => format!("{} values", a.len()),
        other => other.to_string(),
    }
}

crate::object::object! {
    Cells: "Cells",
    text: |c| c.table().to_string(),
    fields: {
        "settings" => |c| c.settings.iter().map(|s| s.as_str().into()).collect::<Vec<crate::options::Value>>().into(),
    },
    entries: to_map, "cells.to_map() -> map", "All columns by name, as arrays with an entry per cell.", "the grid",
    table: table,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_found_is_a_table() {
        let found = Cells {
            settings: vec!["width".into(), "name".into()],
            rows: vec![
                (
                    vec![json!(4), json!("a,b")],
                    json!({ "error": 0.5, "of": { "mean": 1.0 } }),
                ),
                (vec![json!(8), json!("c")], Value::Null),
            ],
        };
        assert_eq!(found.results(), ["error", "of.mean"]);
        assert_eq!(found.column("of.mean").unwrap(), [json!(1.0), Value::Null]);
        assert_eq!(found.missing(), 1);
        assert_eq!(
            found.to_csv(),
            "width,name,error,of.mean\n4,\"a,b\",0.5,1.0\n8,c,,\n"
        );
        assert!(
            found
                .column("eror")
                .unwrap_err()
                .to_string()
                .contains("did you mean 'error'?")
        );
        let svg = found
            .figure("error", "width", None)
            .unwrap()
            .to_svg()
            .unwrap();
        assert!(svg.contains("name = a,b"));
    }
}
