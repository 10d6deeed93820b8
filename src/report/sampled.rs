//! Chains on disk, told.

use super::gallery;
use super::html::{details, escape, facts};
use super::kinds::files;
use super::part::{Drawing, Part, Told};
use super::verdict::Check;
use super::{about, checks, tables};
use crate::error::{Result, count};
use crate::simulation::evidence::evidence;
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::saved::Saved;
use crate::simulation::remembered::printed;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

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
        Ok(printed(&self.run.summary()?, &self.run.folder))
    }

    fn json(&self) -> Result<Value> {
        Ok(self.run.summary()?.to_map().into())
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
