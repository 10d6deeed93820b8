//! What a script leaves behind, told: an implementation of [`Told`] for each kind of result that has a folder of its own.

use super::gallery;
use super::html::{self, Table, cut, details, escape, facts};
use super::part::{Drawing, Part, Told, drawing};
use super::verdict::{Check, Level, check};
use super::{checks, figures, tables};
use crate::error::Result;
use crate::object::Object;
use crate::simulation::evidence::of_populations;
use crate::simulation::job::Printed;
use crate::simulation::llc::curve::Curve;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::smc::Smc;
use crate::simulation::summary::Summary;
use crate::simulation::trained::Trained;
use crate::simulation::transcript::{GOES_ON, goes_on};
use crate::store::disk;
use serde_json::{Value, json};
use std::fmt::Debug;

/// A result that may be on its way.
#[derive(Debug)]
pub struct Course<T> {
    /// The result so far.
    pub so_far: T,
    /// Whether it is finished.
    pub done: bool,
}

/// What cannot be read, and why.
#[derive(Debug)]
pub struct Damaged(pub String);

impl Told for Course<Trained> {
    fn line(&self) -> String {
        let t = &self.so_far;
        let how = t.text.split(':').next().unwrap_or_default();
        format!(
            "training with {how}, {} at once, {:.1} s",
            t.history.len(),
            t.seconds
        )
    }

    fn done(&self) -> bool {
        self.done
    }

    fn text(&self, name: &str) -> Result<String> {
        let state = match self.done {
            true => String::new(),
            false => format!("'{name}' UNFINISHED; {}\n", goes_on(&self.so_far.folder)),
        };
        Ok(format!("{state}{}\n", self.so_far))
    }

    fn json(&self) -> Result<Value> {
        let t = &self.so_far;
        let each = |c: usize| -> serde_json::Map<_, _> {
            let kept = t.kept(c).into_iter();
            kept.map(|(name, x)| (name, Value::from(x))).collect()
        };
        let kept: Vec<_> = (0..t.history.len()).map(each).collect();
        Ok(json!({ "kept": kept, "seconds": t.seconds }))
    }

    fn checks(&self, _: Option<&Summary>) -> Result<Vec<Check>> {
        Ok(checks::of_training(&self.so_far, self.done))
    }

    fn drawings(&self, _: Option<&Summary>) -> Result<Vec<Drawing>> {
        gallery::of_training(&self.so_far)
    }

    fn tables(&self, _: &Part, _: Option<&Summary>) -> String {
        let t = &self.so_far;
        let about = facts(&[
            ("optimiser", t.text.clone()),
            ("target", t.target.clone()),
            ("time", format!("{:.1} s", t.seconds)),
        ]);
        [
            tables::training(t).html(),
            details("Target and optimiser", &about),
        ]
        .concat()
    }

    fn settings(&self) -> Vec<(String, String)> {
        let t = &self.so_far;
        vec![
            ("target".into(), t.target.clone()),
            ("optimizer".into(), t.text.clone()),
            ("chains".into(), t.history.len().to_string()),
        ]
    }

    fn notes(&self) -> &[String] {
        &self.so_far.notes
    }
}

impl Told for Course<Smc> {
    fn line(&self) -> String {
        let s = &self.so_far;
        format!(
            "tempered sequential Monte Carlo with {}, {} populations × {} particles, {:.1} s",
            s.sampler,
            s.ln_z.len(),
            s.particles,
            s.seconds
        )
    }

    fn done(&self) -> bool {
        self.done
    }

    fn text(&self, name: &str) -> Result<String> {
        let state = match self.done {
            true => String::new(),
            false => {
                format!("'{name}' UNFINISHED, on its way from the prior; {GOES_ON}\n")
            }
        };
        Ok(format!("{state}{}\n\n", self.so_far))
    }

    fn json(&self) -> Result<Value> {
        Ok(self.so_far.to_json())
    }

    fn checks(&self, _: Option<&Summary>) -> Result<Vec<Check>> {
        Ok(checks::of_populations(&self.so_far, self.done))
    }

    fn drawings(&self, _: Option<&Summary>) -> Result<Vec<Drawing>> {
        let about =
            "Acceptance, effective share and temperature at each stage on the way from the prior";
        let stages = || drawing("stages", about, figures::stages(&self.so_far));
        let some = !self.so_far.stages.is_empty();
        Ok(some.then(stages).into_iter().collect())
    }

    fn tables(&self, _: &Part, _: Option<&Summary>) -> String {
        let (s, mut out) = (&self.so_far, String::new());
        if self.done {
            out += &tables::evidence(&of_populations(s)).html();
        }
        out += &tables::populations(s).html();
        out += &details("All stages", &tables::stages(s).html());
        let sizes = format!(
            "{} populations of {} particles of {} parameters",
            s.ln_z.len(),
            s.particles,
            s.parameters
        );
        let about = facts(&[
            ("target", s.target.clone()),
            ("sampler", s.sampler.clone()),
            ("sizes", sizes),
            ("time", format!("{:.1} s", s.seconds)),
        ]);
        out += &details("Target, sampler and sizes", &about);
        out
    }

    fn settings(&self) -> Vec<(String, String)> {
        let s = &self.so_far;
        vec![
            ("target".into(), s.target.clone()),
            ("sampler".into(), s.sampler.clone()),
            ("particles".into(), s.particles.to_string()),
            ("populations".into(), s.ln_z.len().to_string()),
        ]
    }

    fn notes(&self) -> &[String] {
        &self.so_far.notes
    }
}

impl Told for Benchmark {
    fn line(&self) -> String {
        format!(
            "benchmark of learning coefficients, {} problems × {} samplers",
            self.problems.len(),
            self.samplers.len()
        )
    }

    fn text(&self, name: &str) -> Result<String> {
        Ok(format!("'{name}': {self}\n\n"))
    }

    fn json(&self) -> Result<Value> {
        Ok(self.to_json())
    }

    fn checks(&self, _: Option<&Summary>) -> Result<Vec<Check>> {
        Ok(checks::of_benchmark(self))
    }

    fn drawings(&self, _: Option<&Summary>) -> Result<Vec<Drawing>> {
        let about = "Benchmark of learning coefficients: relative error, its spread, failures and order against the step size";
        let figure = figures::llc_benchmark(self);
        Ok(vec![drawing("benchmark", about, figure)])
    }

    fn tables(&self, part: &Part, _: Option<&Summary>) -> String {
        let setting = html::pretty(&self.setting);
        let setting = format!("<pre>{}</pre>\n", escape(&cut(&setting)));
        let table = tables::benchmark(self, &part.name).html();
        [table, details("Settings", &setting)].concat()
    }
}

impl Told for Curve {
    fn line(&self) -> String {
        format!(
            "learning coefficients at {} of {} points, {:.1} s",
            self.points.len(),
            self.count,
            self.record.seconds
        )
    }

    fn done(&self) -> bool {
        self.record.done
    }

    fn text(&self, name: &str) -> Result<String> {
        let state = match self.record.done {
            true => String::new(),
            false => format!("'{name}' UNFINISHED; {GOES_ON}\n"),
        };
        Ok(format!("{state}'{name}': {self}\n\n"))
    }

    fn json(&self) -> Result<Value> {
        Ok(self.to_json())
    }

    fn checks(&self, _: Option<&Summary>) -> Result<Vec<Check>> {
        Ok(checks::of_curve(self))
    }

    fn drawings(&self, _: Option<&Summary>) -> Result<Vec<Drawing>> {
        let about = "Learning coefficient with its error bars, and the loss, along the training";
        Ok(vec![drawing("llc_curve", about, self.figure())])
    }

    fn tables(&self, _: &Part, _: Option<&Summary>) -> String {
        self.table().to_html()
    }

    fn notes(&self) -> &[String] {
        &self.record.notes
    }
}

impl Told for Printed {
    fn line(&self) -> String {
        format!("{}, {:.1} s", self.kind, self.record.seconds)
    }

    fn done(&self) -> bool {
        self.record.done
    }

    fn text(&self, name: &str) -> Result<String> {
        let state = match self.record.done {
            true => "done; its script prints the result".into(),
            false => format!("UNFINISHED; {GOES_ON}"),
        };
        Ok(format!("'{name}': a {}, {state}\n\n", self.kind))
    }

    fn json(&self) -> Result<Value> {
        Ok(json!({ "kind": self.kind, "seconds": self.record.seconds }))
    }

    fn checks(&self, _: Option<&Summary>) -> Result<Vec<Check>> {
        Ok(vec![match self.record.done {
            true => check("Finished", Level::Good, "its script prints the result"),
            false => check("Finished", Level::Look, format!("unfinished; {GOES_ON}")),
        }])
    }

    fn drawings(&self, _: Option<&Summary>) -> Result<Vec<Drawing>> {
        Ok(Vec::new())
    }

    fn tables(&self, _: &Part, _: Option<&Summary>) -> String {
        String::new()
    }

    fn notes(&self) -> &[String] {
        &self.record.notes
    }
}

impl Told for Damaged {
    fn line(&self) -> String {
        "damaged".into()
    }

    fn text(&self, _: &str) -> Result<String> {
        Ok(String::new())
    }

    fn json(&self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn checks(&self, _: Option<&Summary>) -> Result<Vec<Check>> {
        let says = format!("damaged: {}", self.0);
        Ok(vec![check("Files", Level::Bad, says)])
    }

    fn drawings(&self, _: Option<&Summary>) -> Result<Vec<Drawing>> {
        Ok(Vec::new())
    }

    fn tables(&self, part: &Part, _: Option<&Summary>) -> String {
        files(part)
    }

    fn is_cut(&self, _: bool) -> bool {
        false
    }

    fn damage(&self) -> Option<&str> {
        Some(&self.0)
    }
}

/// What is left of a part that cannot be read: its files.
pub fn files(part: &Part) -> String {
    let mut table = Table::new(
        format!("What is in the folder of {}", part.name),
        &["file", "bytes"],
    );
    let entries = disk::entries(&part.folder);
    let mut names: Vec<_> = entries.map(|e| e.path()).collect();
    names.sort();
    for path in names.iter().take(50) {
        let name = path.file_name().unwrap_or_default();
        let size = match path.metadata() {
            Ok(m) if m.is_file() => m.len().to_string(),
            _ => "folder".into(),
        };
        table.rows.push(vec![
            name.to_string_lossy().into_owned().into(),
            size.into(),
        ]);
    }
    table.html()
}
