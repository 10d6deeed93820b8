//! Comparison of two runs: what they have both observed, temperature by temperature.

use super::run::{Group, Run};
use super::summary::{Summary, with_error};
use crate::diagnostic::Verdict;
use crate::error::Result;
use crate::table::Table;
use crate::verb::{Call, Verb};
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// One observable at one temperature.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name.
    pub name: String,
    /// T.
    pub temperature: f64,
    /// Mean and standard error of the run, and of the reference that it is held against.
    pub means: [(f64, f64); 2],
}

impl Line {
    /// (run - reference) / |reference|.
    pub fn relative(&self) -> f64 {
        let [(a, _), (b, _)] = self.means;
        (a - b) / b.abs()
    }

    /// Run minus reference, in joint standard errors.
    pub fn deviation(&self) -> f64 {
        let [(a, da), (b, db)] = self.means;
        (a - b) / da.hypot(db)
    }
}

/// Two runs beside each other.
#[derive(Debug, Clone)]
pub struct Comparison {
    names: [String; 2],
    /// The verdicts of the run and of the reference, the worst of their temperatures.
    pub verdicts: [Verdict; 2],
    /// All that was compared.
    pub lines: Vec<Line>,
}

/// Compare the observables of a run with those of a reference, and say how far both can be trusted.
pub fn compare(run: &Run, reference: &Run) -> Result<Comparison> {
    let both = [run, reference];
    let mut names = both.map(|r| r.info.name.clone());
    if names[0] == names[1] {
        names = both.map(|r| {
            let home = r
                .folder
                .parent()
                .and_then(Path::file_name)
                .unwrap_or_default();
            format!("{}/{}", home.to_string_lossy(), r.info.name)
        });
    }
    Ok(Comparison {
        names,
        lines: lines(run, reference)?,
        verdicts: [
            Summary::new(run)?.verdict(),
            Summary::new(reference)?.verdict(),
        ],
    })
}

/// What is to be said of differences of runs that are not, or not yet, what they should be: labels and verdicts.
pub(crate) fn not_trusted(all: &[(&str, Verdict)]) -> Vec<String> {
    let one = |(verdict, word): (Verdict, &str)| {
        let found = all.iter().filter(|(_, v)| *v == verdict);
        let labels: Vec<_> = found.map(|(label, _)| *label).collect();
        let text = || {
            format!(
                "{word}: {}; the differences above are not to be trusted",
                labels.join(", ")
            )
        };
        (!labels.is_empty()).then(text)
    };
    [(Verdict::Wrong, "WRONG"), (Verdict::NotYet, "NOT YET")]
        .into_iter()
        .filter_map(one)
        .collect()
}

/// The observables of a run and of a reference, at the temperatures they share (to a part in 10⁶).
pub(crate) fn lines(run: &Run, reference: &Run) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let columns = run.info.columns.iter();
    for c in columns.filter(|c| c.group == Group::Posterior && c.components.is_none()) {
        // Of a vector or a sample statistic of that name nothing can be said.
        if !reference.info.columns.contains(c) {
            continue;
        }
        for (i, t) in run.info.temperatures.iter().enumerate() {
            let mut others = reference.info.temperatures.iter();
            let Some(j) = others.position(|u| (u / t - 1.0).abs() < 1e-6) else {
                continue;
            };
            let mean = |r: &Run, k: usize| -> Result<(f64, f64)> {
                let numbers = r.summarise(r.draws(&c.name, 0, k, true)?);
                Ok((numbers.mean, numbers.mcse_mean))
            };
            lines.push(Line {
                name: c.name.clone(),
                temperature: *t,
                means: [mean(run, i)?, mean(reference, j)?],
            });
        }
    }
    anyhow::ensure!(
        !lines.is_empty(),
        "compare: '{}' and '{}' share no observable at a common temperature",
        run.info.name,
        reference.info.name
    );
    Ok(lines)
}

impl Comparison {
    /// As an array of maps.
    pub fn to_json(&self) -> Value {
        let line = |l: &Line| {
            let mut out = Map::new();
            out.insert("name".into(), json!(l.name));
            out.insert("temperature".into(), json!(l.temperature));
            out.insert("mean".into(), json!(l.means[0].0));
            out.insert("reference".into(), json!(l.means[1].0));
            out.insert("relative_error".into(), json!(l.relative()));
            out.insert("deviation".into(), json!(l.deviation()));
            Value::Object(out)
        };
        self.lines.iter().map(line).collect()
    }
}

impl Comparison {
    /// A row per observable and temperature.
    pub fn table(&self) -> Table {
        let [run, reference] = &self.names;
        let mut out = Table::new(["T", "observable", reference, run, "difference", "σ"])
            .line_above(format!(
                "σ: {run} minus {reference}, in joint standard errors"
            ));
        for l in &self.lines {
            out.push([
                format!("{:.3e}", l.temperature),
                l.name.clone(),
                with_error(l.means[1].0, l.means[1].1),
                with_error(l.means[0].0, l.means[0].1),
                format!("{:+.2} %", 100.0 * l.relative()),
                format!("{:+.1}", l.deviation()),
            ]);
        }
        if !self.lines.is_empty() {
            out.below = not_trusted(&[(reference, self.verdicts[1]), (run, self.verdicts[0])]);
        }
        out
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Comparison: "Comparison",
    fields: {
        "verdicts" => |c| [c.verdicts[1], c.verdicts[0]].iter().map(|v| v.to_string().into()).collect::<Vec<crate::options::Value>>().into(),
    },
    entries: to_json, "comparison.to_array() -> array", "Its lines as maps: name, temperature, reference (the mean of the first run), mean (that of the second), relative_error, deviation (second minus first, in joint standard errors).",
    table: table,
}

/// The verb `compare`.
pub static COMPARE: Verb<(), (Arc<Run>, Arc<Run>), Arc<Comparison>> = Verb {
    name: "compare",
    arguments: &["reference", "run"],
    options: &[],
    doc: "Two runs side by side: every observable of one number that they share, at the temperatures they share, with the relative difference and its size in standard errors.\n\n\
         The first is the reference: differences are the second minus the first, as `ergodic compare` has them. `comparison.verdicts` are those of both, in this order.",
    example: "",
    call: Call::Checked(|(reference, run), _, ()| compare(&run, &reference).map(Arc::new)),
};
