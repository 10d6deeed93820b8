//! What a script leaves behind, told: an implementation of [`Told`] for each kind of result that has a folder of its own.

use super::gallery::{self, Drawing, drawing};
use super::html::{self, Table, details, escape, facts};
use super::page::cut;
use super::read::Part;
use super::verdict::{Check, Level, check};
use super::{about, checks, figures, tables};
use crate::error::{Result, count};
use crate::object::Object;
use crate::simulation::evidence::{evidence, of_populations};
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::saved::Saved;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::summary::Summary;
use crate::simulation::train::Trained;
use serde_json::{Value, json};
use std::fmt::{Debug, Write};
use std::sync::Arc;

/// A result on disk, as `ergodic show`, `plot` and `report` tell of it. `summary` is that of its run, if it is one.
pub trait Told: Debug {
    /// It in a line.
    fn line(&self) -> String;

    /// Whether it is finished.
    fn done(&self) -> bool {
        true
    }

    /// What it prints, under its name.
    ///
    /// # Errors
    /// If it cannot be summarised.
    fn text(&self, name: &str) -> Result<String>;

    /// Its numbers by name.
    ///
    /// # Errors
    /// If it cannot be summarised.
    fn json(&self) -> Result<Value>;

    /// What speaks for it and what against.
    ///
    /// # Errors
    /// If a trace cannot be read.
    fn checks(&self, summary: Option<&Summary>) -> Result<Vec<Check>>;

    /// Its figures, the most telling first.
    ///
    /// # Errors
    /// If a trace cannot be read.
    fn drawings(&self, summary: Option<&Summary>) -> Result<Vec<Drawing>>;

    /// Its tables, as HTML.
    fn tables(&self, part: &Part, summary: Option<&Summary>) -> String;

    /// What happened on the way.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Whether its steps were cut, if it knows; `script` says whether those of the script were.
    fn is_cut(&self, script: bool) -> bool {
        script
    }

    /// The run that it is.
    fn run(&self) -> Option<&Arc<Run>> {
        None
    }

    /// Why it cannot be read.
    fn damage(&self) -> Option<&str> {
        None
    }
}

/// Chains.
#[derive(Debug)]
pub struct Sampled {
    /// The run.
    pub run: Arc<Run>,
    /// Whether all steps are done.
    pub done: bool,
    /// The learning coefficient that was estimated from it.
    pub saved: Option<Saved>,
}

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

impl Told for Sampled {
    fn line(&self) -> String {
        let i = &self.run.info;
        let temperatures = match i.temperatures.len() {
            1 => String::new(),
            n => format!("{n} temperatures × "),
        };
        let chains = count(i.chains, "chain");
        let (kind, seconds) = (&i.kind, self.run.seconds);
        format!(
            "{kind} with {}, {temperatures}{chains}, {seconds:.1} s",
            i.sampler
        )
    }

    fn done(&self) -> bool {
        self.done
    }

    fn text(&self, _: &str) -> Result<String> {
        let (run, mut out) = (&self.run, String::new());
        if !self.done {
            let step = run.least_step();
            let burning = step < run.info.burn_in;
            let phase = match burning {
                true => ", still in burn-in: no draws yet",
                false => "",
            };
            out += &format!(
                "'{}' UNFINISHED at step {step} of {}{phase}; continue with --resume\n",
                run.info.name, run.info.steps
            );
            if burning {
                out.extend(run.notes.iter().map(|n| format!("NOTE: {n}\n")));
                return Ok(out);
            }
        }
        out += &format!("{}\n", Summary::new(run)?);
        out.extend(run.damage().iter().map(|d| format!("NOTE: {d}\n")));
        Ok(out)
    }

    fn json(&self) -> Result<Value> {
        Ok(Summary::new(&self.run)?.to_map().into())
    }

    fn checks(&self, summary: Option<&Summary>) -> Result<Vec<Check>> {
        match summary {
            Some(s) => checks::of_run(&self.run, self.done, s, self.saved.as_ref()),
            None => Ok(Vec::new()),
        }
    }

    fn drawings(&self, summary: Option<&Summary>) -> Result<Vec<Drawing>> {
        match summary {
            Some(s) if gallery::has_draws(&self.run) => {
                gallery::of_run(&self.run, s, self.saved.as_ref())
            }
            Some(s) => gallery::traces(&self.run, s),
            None => Ok(Vec::new()),
        }
    }

    fn tables(&self, part: &Part, summary: Option<&Summary>) -> String {
        let (run, saved) = (&self.run, &self.saved);
        let Some(s) = summary else {
            return files(part);
        };
        let mut out = String::new();
        if let Some(saved) = saved {
            out += "<h3>Learning coefficient</h3>\n";
            out += &facts(&about::llc_facts(saved));
        }
        if gallery::has_draws(run) {
            // The thermometer of a learning coefficient is another one, and is above.
            if saved.is_none() {
                out += &tables::verdicts(run, s).html();
            }
            out += &of_means(run, s);
        }
        if let Some(table) = tables::predictions(run) {
            out += &table.html();
        }
        out += &of_ladder(run);
        let caption = format!("What the sampler of {} reports", run.info.name);
        if gallery::has_draws(run) && !s.stats.is_empty() {
            let table = tables::everything(caption, s, &s.stats).html();
            out += &details("What the sampler reports", &table);
        }
        out += &details("Target, sampler and sizes", &facts(&about::run_facts(run)));
        out
    }

    fn notes(&self) -> &[String] {
        &self.run.notes
    }

    fn is_cut(&self, _: bool) -> bool {
        self.run.info.quick
    }

    fn run(&self) -> Option<&Arc<Run>> {
        Some(&self.run)
    }
}

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
            false => format!("'{name}' UNFINISHED; continue with --resume\n"),
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
                format!("'{name}' UNFINISHED, on its way from the prior; continue with --resume\n")
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

/// Means, and all other numbers folded.
fn of_means(run: &Run, s: &Summary) -> String {
    if s.rows.is_empty() {
        return "<p class=\"note\">No observable was recorded.</p>\n".into();
    }
    let mut out = tables::means(run, s).html();
    if s.temperatures.len() > 1 {
        let caption = format!("All numbers of {}", run.info.name);
        let table = tables::everything(caption, s, &s.rows).html();
        out += &details(
            "MCSE, sd, ESS and R̂ of every observable at every temperature",
            &table,
        );
    }
    out
}

/// The ladder of a run, and the evidence that follows from it, if it has one.
fn of_ladder(run: &Run) -> String {
    if run.ladders.is_none() || !gallery::has_draws(run) {
        return String::new();
    }
    let mut out = String::from("<h3>Ladder</h3>\n");
    match LadderReport::new(run) {
        Ok(l) => {
            out += &facts(&about::ladder_facts(&l));
            out += &tables::ladder(&l).html();
        }
        Err(e) => {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&format!("{e:#}")));
        }
    }
    if run.info.prior_tempered {
        return out;
    }
    let coldest = run
        .info
        .temperatures
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let at = if run.info.temperatures.contains(&1.0) {
        1.0
    } else {
        coldest
    };
    out += "<h3>Evidence</h3>\n";
    match evidence(run, at) {
        Ok(e) => {
            out += &tables::evidence(&e).html();
            for w in e.judged.reasons.iter().chain(&e.notes) {
                let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(w));
            }
        }
        Err(e) => {
            let _ = writeln!(
                out,
                "<p class=\"note\">No ln Z: {}</p>",
                escape(&format!("{e:#}"))
            );
        }
    }
    out
}

/// What is left of a part that cannot be read: its files.
fn files(part: &Part) -> String {
    let mut table = Table::new(
        format!("What is in the folder of {}", part.name),
        &["file", "bytes"],
    );
    let entries = part.folder.read_dir().into_iter().flatten().flatten();
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
