//! Runs beside each other: how good each is for its time, and where their means differ.

use super::part::Part;
use super::verdict::{Level, temperature};
use crate::diagnostic::Verdict;
use crate::error::Result;
use crate::simulation::compare::{Line, lines, not_trusted};
use crate::simulation::run::Run;
use crate::simulation::summary::{Summary, with_error};
use crate::table::padded;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// One of the runs.
#[derive(Debug)]
pub struct Entry {
    /// What it is called here; with its folder where several have one name.
    pub label: String,
    /// The run.
    pub run: Arc<Run>,
    /// Whether all its steps are done.
    pub done: bool,
    /// Its numbers.
    pub summary: Summary,
}

impl Entry {
    /// A part as one of them, if it is a run.
    ///
    /// # Errors
    /// If it cannot be summarised.
    pub fn of(part: &Part, label: String) -> Result<Option<Self>> {
        let Some(run) = part.of.run().cloned() else {
            return Ok(None);
        };
        let (summary, done) = (Summary::new(&run)?, part.of.done());
        Ok(Some(Self {
            label,
            run,
            done,
            summary,
        }))
    }

    /// The largest R̂ of its observables.
    pub fn worst_r_hat(&self) -> f64 {
        let each = (0..self.summary.temperatures.len()).filter_map(|t| self.summary.worst_r_hat(t));
        each.map(|(r, _)| r).reduce(f64::max).unwrap_or(f64::NAN)
    }

    /// The least effective number of draws of its observables.
    pub fn least_ess(&self) -> f64 {
        let each = (0..self.summary.temperatures.len()).filter_map(|t| self.summary.least_ess(t));
        each.map(|(n, _)| n).reduce(f64::min).unwrap_or(f64::NAN)
    }

    /// The same per second of computing.
    pub fn ess_per_second(&self) -> f64 {
        self.least_ess() / self.run.seconds
    }

    /// The verdicts of its temperatures: the worst first.
    fn verdict(&self) -> String {
        let all = &self.summary.judgements;
        let count = |v: Verdict| all.iter().filter(|j| j.verdict == v).count();
        let said = [
            Verdict::Wrong,
            Verdict::NotYet,
            Verdict::NotJudged,
            Verdict::Converged,
        ];
        let found = said.into_iter().filter(|v| count(*v) > 0);
        let found: Vec<_> = found
            .map(|v| match all.len() {
                1 => v.to_string(),
                _ => format!("{} {v}", count(v)),
            })
            .collect();
        found.join(", ")
    }

    fn failed(&self) -> usize {
        self.summary.failed.iter().sum()
    }
}

/// Runs beside each other, all compared with the first.
#[derive(Debug)]
pub struct SideBySide {
    /// The runs.
    pub entries: Vec<Entry>,
    /// For each run but the first, what it has in common with the first; why there is nothing, if there is not.
    pub with_first: Vec<std::result::Result<Vec<Line>, String>>,
}

impl SideBySide {
    /// Of two runs or more.
    pub fn new(entries: Vec<Entry>) -> Result<Self> {
        anyhow::ensure!(
            entries.len() >= 2,
            "compare: there is only one run; name two, or a folder with several"
        );
        let others = entries.iter().skip(1);
        let with_first = others
            .map(|e| {
                let found = lines(&e.run, &entries[0].run);
                found.map_err(|e| format!("{e:#}"))
            })
            .collect();
        Ok(Self {
            entries,
            with_first,
        })
    }

    /// Observables and temperatures of the lines, in order and once each.
    fn keys(&self) -> Vec<(String, f64)> {
        let mut out: Vec<(String, f64)> = Vec::new();
        for line in self.with_first.iter().flatten().flatten() {
            // What both call by the temperature of the first.
            let t = self.of_first(line.temperature);
            if !out.iter().any(|(n, u)| *n == line.name && *u == t) {
                out.push((line.name.clone(), t));
            }
        }
        out
    }

    fn of_first(&self, t: f64) -> f64 {
        let all = &self.entries[0].summary.temperatures;
        let near = all.iter().find(|u| same(t, **u));
        near.copied().unwrap_or(t)
    }

    fn line(&self, k: usize, (name, t): &(String, f64)) -> Option<&Line> {
        let lines = self.with_first.get(k)?.as_ref().ok()?;
        lines
            .iter()
            .find(|l| l.name == *name && same(l.temperature, *t))
    }

    /// The table of the runs.
    fn runs(&self) -> Vec<Vec<String>> {
        let head = [
            "run",
            "kind",
            "sampler",
            "chains",
            "draws",
            "seconds",
            "least ESS",
            "ESS/s",
            "worst R̂",
            "verdict",
            "failed",
        ];
        let mut rows = vec![head.map(String::from).to_vec()];
        for e in &self.entries {
            let i = &e.run.info;
            let number = |x: f64, digits: usize| match x.is_nan() {
                true => "n/a".to_string(),
                false => format!("{x:.digits$}"),
            };
            let per_second = e.ess_per_second();
            let unfinished = if e.done { "" } else { " (unfinished)" };
            rows.push(vec![
                format!("{}{unfinished}", e.label),
                i.kind.clone(),
                i.sampler.clone(),
                format!("{}×{}", i.temperatures.len(), i.chains),
                i.draws.to_string(),
                number(e.run.seconds, if e.run.seconds < 10.0 { 2 } else { 0 }),
                number(e.least_ess(), 0),
                number(per_second, if per_second < 10.0 { 2 } else { 0 }),
                number(e.worst_r_hat(), 3),
                e.verdict(),
                e.failed().to_string(),
            ]);
        }
        rows
    }

    /// The table of the means of these observables and temperatures.
    fn means(&self, keys: &[(String, f64)]) -> Vec<Vec<String>> {
        let mut head = vec!["observable, T".to_string(), self.entries[0].label.clone()];
        for e in &self.entries[1..] {
            head.extend([e.label.clone(), "σ".into()]);
        }
        let mut rows = vec![head];
        for key in keys {
            let mut row = vec![format!("{}, {}", key.0, temperature(key.1))];
            let first = (0..self.with_first.len()).find_map(|k| self.line(k, key));
            let text = |(mean, error): (f64, f64)| with_error(mean, error);
            row.push(first.map_or(String::new(), |l| text(l.means[1])));
            for k in 0..self.with_first.len() {
                row.extend(match self.line(k, key) {
                    None => [String::new(), String::new()],
                    Some(l) => [text(l.means[0]), format!("{:+.1}", l.deviation())],
                });
            }
            rows.push(row);
        }
        rows
    }

    /// All numbers: `runs`, a map each, and `means`, a map per observable and temperature.
    pub fn to_json(&self) -> Value {
        let run = |e: &Entry| {
            json!({
                "run": e.label, "kind": e.run.info.kind, "sampler": e.run.info.sampler, "done": e.done,
                "chains": e.run.info.chains, "draws": e.run.info.draws, "temperatures": e.run.info.temperatures.len(),
                "seconds": e.run.seconds, "ess": e.least_ess(), "ess_per_second": e.ess_per_second(), "rhat": e.worst_r_hat(),
                "verdict": e.verdict(), "failed": e.failed(),
            })
        };
        let mean = |key: &(String, f64)| {
            let mut out = Map::new();
            out.insert("name".into(), json!(key.0));
            out.insert("temperature".into(), json!(key.1));
            let first = (0..self.with_first.len()).find_map(|k| self.line(k, key));
            let number = |pair: (f64, f64)| json!({ "mean": pair.0, "mcse": pair.1 });
            out.insert(
                "first".into(),
                first.map_or(Value::Null, |l| number(l.means[1])),
            );
            let others = (0..self.with_first.len()).map(|k| match self.line(k, key) {
                None => Value::Null,
                Some(l) => {
                    let mut one = number(l.means[0]);
                    one["deviation"] = json!(l.deviation());
                    one
                }
            });
            out.insert("others".into(), others.collect());
            Value::Object(out)
        };
        json!({
            "runs": self.entries.iter().map(run).collect::<Vec<_>>(),
            "means": self.keys().iter().map(mean).collect::<Vec<_>>(),
        })
    }
}

/// To a part in 10⁶, as runs are compared.
fn same(t: f64, u: f64) -> bool {
    t == u || (t / u - 1.0).abs() < 1e-6
}

/// Columns that are as wide as they must be: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| {
        let cells = rows.iter().filter_map(|r| r.get(k));
        cells.map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(k, (c, w))| padded(c, *w, k > 0));
        writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

impl fmt::Display for SideBySide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        aligned(&self.runs(), f)?;
        let keys = self.keys();
        if !keys.is_empty() {
            writeln!(f)?;
            aligned(&self.means(&keys), f)?;
            writeln!(
                f,
                "σ: difference from {}, in units of the joint standard error",
                self.entries[0].label
            )?;
        }
        for why in self.with_first.iter().filter_map(|w| w.as_ref().err()) {
            let (sign, _) = Level::Look.sign();
            writeln!(f, "{sign} {why}")?;
        }
        let entries = self.entries.iter();
        let all: Vec<_> = entries.map(|e| (&*e.label, e.summary.verdict())).collect();
        for line in not_trusted(&all) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
