//! Two results beside each other: the settings that differ, then what came out of them.

use super::compare::{Entry, SideBySide};
use super::part::Part;
use super::read::Results;
use super::record::Record;
use super::runs::label;
use super::settings::{Settings, different, lines, of_part, of_record, plain};
use crate::error::Result;
use crate::table::{Table, where_they_differ};
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;

/// Rows of numbers of something that is no run.
const MOST: usize = 24;

/// A part of one and the same part of the other.
#[derive(Debug)]
pub struct Pair {
    /// Names.
    pub names: [String; 2],
    /// Settings that differ.
    pub settings: Vec<(String, [String; 2])>,
    /// Both as runs, if they are.
    pub runs: Option<SideBySide>,
    /// Numbers that differ, of all else.
    pub numbers: Vec<(String, [Value; 2])>,
}

/// Two results.
#[derive(Debug)]
pub struct Diff {
    /// What they are called.
    pub labels: [String; 2],
    /// Settings of the scripts that differ.
    pub settings: Vec<(String, [String; 2])>,
    /// Texts of which lines differ: the script, and what it imported.
    pub texts: Vec<(String, Vec<String>)>,
    /// What both have run.
    pub pairs: Vec<Pair>,
    /// What cannot be compared, and why.
    pub notes: Vec<String>,
}

impl Diff {
    /// Of two folders of results, or of runs.
    ///
    /// # Errors
    /// If there is nothing in one of them, or something cannot be summarised.
    pub fn of(a: &Path, b: &Path) -> Result<Self> {
        let both = [Results::of(a)?, Results::of(b)?];
        let [x, y] = &both;
        let mut labels = [a, b].map(label);
        if labels[0] == labels[1] || x.single || y.single {
            labels = [a, b].map(|p| p.display().to_string());
        }
        let mut notes = Vec::new();
        for (label, results) in labels.iter().zip(&both) {
            let all = results.notes.iter();
            notes.extend(all.map(|n| format!("{label}: {n}")));
        }
        let of = |r: &Results| r.record.as_ref().map_or(Settings::new(), of_record);
        let (settings, texts) = match (&x.record, &y.record) {
            (Some(a), Some(b)) => (different(of(x), of(y)), texts(a, b)),
            // What only one has a record of is not known of the other.
            _ => Default::default(),
        };
        // A seed of the script is in those of all its runs.
        let told: Vec<_> = match x.record.is_some() && y.record.is_some() {
            true => vec!["device", "quick", "seed"],
            false => Vec::new(),
        };
        let seeds = |r: &Results| r.record.as_ref().map(|r| r.seed);
        let told = |name: &str| told.contains(&name) && (name != "seed" || seeds(x) != seeds(y));
        let mut pairs = Vec::new();
        for (p, q) in paired(x, y, &labels, &mut notes) {
            let mut pair = Pair::of((p, q), &labels, &mut notes)?;
            pair.settings.retain(|(name, _)| !told(name));
            pairs.push(pair);
        }
        Ok(Self {
            labels,
            settings,
            texts,
            pairs,
            notes,
        })
    }

    /// Everything by name.
    pub fn to_json(&self) -> Value {
        let settings = |all: &[(String, [String; 2])]| -> Value {
            let one = |(name, values): &(String, [String; 2])| (name.clone(), json!(values));
            Value::Object(all.iter().map(one).collect())
        };
        let pair = |p: &Pair| {
            let numbers = p.numbers.iter().map(|(n, v)| (n.clone(), json!(v)));
            json!({
                "names": p.names, "settings": settings(&p.settings), "numbers": Value::Object(numbers.collect()),
                "runs": p.runs.as_ref().map(SideBySide::to_json),
            })
        };
        let texts = self.texts.iter().map(|(n, l)| (n.clone(), json!(l)));
        json!({
            "labels": self.labels, "settings": settings(&self.settings), "texts": Value::Object(texts.collect()),
            "parts": self.pairs.iter().map(pair).collect::<Vec<_>>(), "notes": self.notes,
        })
    }
}

/// The script, and what it imported, where they differ.
fn texts(a: &Record, b: &Record) -> Vec<(String, Vec<String>)> {
    let imported = a.imported.keys().chain(b.imported.keys());
    let mut names: Vec<&String> = imported.collect();
    names.sort();
    names.dedup();
    let text = |r: &Record, name: &str| r.imported.get(name).map_or(String::new(), plain);
    let each = names
        .into_iter()
        .map(|n| (n.clone(), lines(&text(a, n), &text(b, n))));
    let script = ("the script".to_string(), lines(&a.source, &b.source));
    let all = std::iter::once(script).chain(each);
    all.filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Parts of the same name, and those that stand alone.
fn paired<'a>(
    a: &'a Results,
    b: &'a Results,
    labels: &[String; 2],
    notes: &mut Vec<String>,
) -> Vec<(&'a Part, &'a Part)> {
    if let ([p], [q]) = (&a.parts[..], &b.parts[..]) {
        return vec![(p, q)];
    }
    let of = |r: &'a Results, name: &str| r.parts.iter().find(|p| p.name == name);
    for (from, to, label) in [(a, b, &labels[0]), (b, a, &labels[1])] {
        let alone = from.parts.iter().filter(|p| of(to, &p.name).is_none());
        let alone: Vec<_> = alone.map(|p| p.name.as_str()).collect();
        if !alone.is_empty() {
            notes.push(format!("only in {label}: {}", alone.join(", ")));
        }
    }
    let both = a.parts.iter().filter_map(|p| Some((p, of(b, &p.name)?)));
    both.collect()
}

impl Pair {
    fn of((p, q): (&Part, &Part), labels: &[String; 2], notes: &mut Vec<String>) -> Result<Self> {
        let both = [p, q].into_iter().zip(labels);
        for (part, label) in both {
            notes.extend(part.of.damage().map(|why| format!("{label}: {why}")));
        }
        let mut entries = Vec::new();
        for (part, label) in [p, q].into_iter().zip(labels) {
            entries.extend(Entry::of(part, label.clone())?);
        }
        let runs = match entries.len() {
            2 => Some(SideBySide::new(entries)?),
            _ => None,
        };
        let numbers = match runs {
            Some(_) => Vec::new(),
            None => numbers(&p.of.json()?, &q.of.json()?),
        };
        Ok(Self {
            names: [p.name.clone(), q.name.clone()],
            settings: different(of_part(p), of_part(q)),
            runs,
            numbers,
        })
    }
}

/// Numbers and words of two results that differ, but for times.
fn numbers(a: &Value, b: &Value) -> Vec<(String, [Value; 2])> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    flat("", a, &mut x);
    flat("", b, &mut y);
    let of = |all: &[(String, Value)], name: &str| {
        let found = all.iter().find(|(n, _)| n == name);
        found.map_or(Value::Null, |(_, v)| v.clone())
    };
    let both = x.iter().map(|(n, v)| (n.clone(), [v.clone(), of(&y, n)]));
    let both = both.filter(|(n, [v, w])| v != w && !n.ends_with("seconds"));
    both.take(MOST).collect()
}

fn flat(name: &str, value: &Value, out: &mut Vec<(String, Value)>) {
    let within = |inner: String| match name {
        "" => inner,
        name => format!("{name}.{inner}"),
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(k, v)| flat(&within(k.clone()), v, out)),
        Value::Array(all) => {
            let each = all.iter().enumerate();
            each.for_each(|(k, v)| flat(&within(k.to_string()), v, out));
        }
        other => out.push((name.into(), other.clone())),
    }
}

/// Two values as a table shows them.
fn cells(a: &str, b: &str) -> [String; 2] {
    let [a, b] = [a, b].map(|text| text.replace('\n', " "));
    let shown = where_they_differ(&a, &b, 60);
    shown.map(|text| if text.is_empty() { "–".into() } else { text })
}

impl Diff {
    /// The settings that differ, of the script and of what it ran.
    fn settings_table(&self) -> Table {
        let [a, b] = &self.labels;
        let mut out = Table::new(["setting", a, b]);
        for (name, [x, y]) in &self.settings {
            let [x, y] = cells(x, y);
            out.push([name.clone(), x, y]);
        }
        for pair in &self.pairs {
            for (name, [x, y]) in &pair.settings {
                let [x, y] = cells(x, y);
                out.push([format!("{}: {name}", pair.names[0]), x, y]);
            }
        }
        out
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.settings_table();
        match table.rows.is_empty() {
            true => writeln!(f, "no setting differs")?,
            false => writeln!(f, "{table}")?,
        }
        for (name, lines) in &self.texts {
            writeln!(f, "\n{name} differs:\n{}", lines.join("\n"))?;
        }
        for pair in &self.pairs {
            let [p, q] = &pair.names;
            match p == q {
                true => writeln!(f, "\n{p}")?,
                false => writeln!(f, "\n{p} and {q}")?,
            }
            if let Some(runs) = &pair.runs {
                write!(f, "{runs}")?;
                continue;
            }
            let mut table = Table::new(["result", &self.labels[0], &self.labels[1]]);
            for (name, [x, y]) in &pair.numbers {
                let [x, y] = cells(&plain(x), &plain(y));
                table.push([name.clone(), x, y]);
            }
            match table.rows.is_empty() {
                true => writeln!(f, "the same numbers")?,
                false => writeln!(f, "{table}")?,
            }
        }
        for note in &self.notes {
            writeln!(f, "! {note}")?;
        }
        Ok(())
    }
}
