//! A section of the page for each part: its verdicts, its tables and its figures.

use super::checks::checks;
use super::gallery::{self, Drawing};
use super::html::{self, Table, details, escape, facts, slug};
use super::page::{cut, list};
use super::read::{Part, Results, What};
use super::verdict::{self, Check, Level};
use super::{about, tables};
use crate::simulation::evidence::{evidence, of_populations};
use crate::simulation::exchange::LadderReport;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use std::fmt::Write;

/// Bytes of figures beyond which the rest are left out, and named.
const MOST_FIGURES: usize = 1_400_000;

/// Bytes of a figure of the script's own beyond which it is left out.
const LARGEST: usize = 400_000;

/// A part with what was found of it.
pub struct Section<'a> {
    /// Where links find it.
    pub id: String,
    /// The part.
    pub part: &'a Part,
    summary: Option<Summary>,
    /// What was looked at, the worst first.
    pub checks: Vec<Check>,
}

/// Room for figures, shared by all parts.
#[derive(Default)]
pub struct Room {
    used: usize,
    figures: usize,
}

impl<'a> Section<'a> {
    /// What cannot be told of a part is one of its checks: the others still are.
    pub fn of(id: String, part: &'a Part, quick: bool) -> Self {
        let mut failed = Vec::new();
        let mut note = |what: &'static str, e: anyhow::Error| {
            let says = format!("cannot be told: {e:#}");
            failed.push(Check {
                what,
                level: Level::Bad,
                says,
            });
        };
        let summary = match &part.what {
            What::Run(run, ..) => Summary::new(run).map_err(|e| note("Summary", e)).ok(),
            _ => None,
        };
        let found = checks(part, summary.as_ref(), quick);
        let mut checks = found.unwrap_or_else(|e| {
            note("Verdicts", e);
            Vec::new()
        });
        checks.extend(failed);
        // The worst first.
        checks.sort_by_key(|c| std::cmp::Reverse(c.level));
        Self {
            id,
            part,
            summary,
            checks,
        }
    }

    /// The section.
    pub fn html(&self, room: &mut Room) -> String {
        let id = &self.id;
        let badge = html::badge(verdict::worst(&self.checks));
        let mut out = format!(
            "<section class=\"part\" aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{} {badge}</h2>\n<p class=\"note\">{}</p>\n{}",
            escape(&self.part.name),
            escape(&about::line(self.part)),
            list(&self.checks)
        );
        out += &self.tables();
        let drawn = gallery::drawings(self.part, self.summary.as_ref());
        match drawn {
            Ok(drawings) => out += &figures(drawings, room),
            Err(e) => {
                let _ = writeln!(
                    out,
                    "<p class=\"note\">The figures cannot be drawn: {}</p>",
                    escape(&format!("{e:#}"))
                );
            }
        }
        out + "</section>\n"
    }

    fn tables(&self) -> String {
        match (&self.part.what, &self.summary) {
            (What::Run(run, _, saved), Some(s)) => {
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
            (What::Training(t, _), _) => {
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
            (What::Populations(s, done), _) => {
                let mut out = String::new();
                if *done {
                    out += &tables::evidence(&of_populations(s)).html();
                }
                out += &tables::populations(s).html();
                out += &details("All stages", &tables::stages(s).html());
                let about = facts(&[
                    ("target", s.target.clone()),
                    ("sampler", s.sampler.clone()),
                    (
                        "sizes",
                        format!(
                            "{} populations of {} particles of {} parameters",
                            s.ln_z.len(),
                            s.particles,
                            s.parameters
                        ),
                    ),
                    ("time", format!("{:.1} s", s.seconds)),
                ]);
                out += &details("Target, sampler and sizes", &about);
                out
            }
            (What::Benchmark(b), _) => {
                let setting = html::pretty(&b.setting);
                let setting = format!("<pre>{}</pre>\n", escape(&cut(&setting)));
                let table = tables::benchmark(b, &self.part.name).html();
                [table, details("Settings", &setting)].concat()
            }
            (What::Damaged(_) | What::Run(..), _) => found(self.part),
        }
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
fn found(part: &Part) -> String {
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

/// Figures side by side, as long as there is room.
fn figures(drawings: Vec<Drawing>, room: &mut Room) -> String {
    let (mut out, mut left_out) = (String::new(), Vec::new());
    for d in drawings {
        let panels = d.figure.titled("").apart();
        let count = panels.len();
        for mut panel in panels {
            // What tells the panels of one figure apart.
            let mut own = String::new();
            if let Some(p) = panel.panels.first_mut().filter(|_| count > 1) {
                own = std::mem::take(&mut p.title);
                if own.is_empty() {
                    own = p.y.label.clone();
                }
            }
            let about = match count {
                1 => d.about.clone(),
                _ => format!("{}. {}", capital(&own), d.about),
            };
            match panel.to_inline_svg() {
                Ok(svg) if room.used + svg.len() <= MOST_FIGURES => {
                    room.used += svg.len();
                    room.figures += 1;
                    let id = format!("figure-{}-{}", room.figures, d.name);
                    out += &html::figure(&id, &svg, &about);
                }
                _ => left_out.push(d.name.clone()),
            }
        }
    }
    if !out.is_empty() {
        out = format!("<div class=\"figures\">\n{out}</div>\n");
    }
    left_out.dedup();
    if !left_out.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"note\">Left out, so that the page stays small: {}. `ergodic plot` draws them.</p>",
            escape(&left_out.join(", "))
        );
    }
    out
}

/// The figures that the script has saved.
pub fn own_figures(r: &Results, room: &mut Room) -> String {
    let mut out = String::new();
    for path in &r.figures {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let read = std::fs::read_to_string(path);
        match read {
            Ok(svg) if svg.len() <= LARGEST && room.used + svg.len() <= MOST_FIGURES => {
                room.used += svg.len();
                out += &html::picture(&svg, &name);
            }
            Ok(svg) => {
                let _ = writeln!(
                    out,
                    "<p class=\"note\">{}: {} kB, left out so that the page stays small</p>",
                    escape(&name),
                    svg.len() / 1000
                );
            }
            Err(e) => {
                let _ = writeln!(
                    out,
                    "<p class=\"note\">{}: {}</p>",
                    escape(&name),
                    escape(&e.to_string())
                );
            }
        }
    }
    match out.is_empty() {
        true => out,
        false => {
            let id = slug(&r.folder.to_string_lossy());
            format!(
                "<section aria-labelledby=\"own{id}\">\n<h2 id=\"own{id}\">Figures of the script</h2>\n<div class=\"figures\">\n{out}</div>\n</section>\n"
            )
        }
    }
}

/// With a capital letter, as sentences begin.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + rest.as_str()
}
