//! A section of the page for each part: its verdicts, its tables and its figures.

use super::checks::checks;
use super::gallery;
use super::html::{self, escape, list, slug};
use super::part::{Drawing, Part};
use super::read::Results;
use super::verdict::{self, Check, Level};
use crate::simulation::summary::Summary;
use crate::store::disk;
use std::fmt::Write;
use std::io::Error;

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
            let says = format!("cannot be determined: {e:#}");
            failed.push(Check {
                what,
                level: Level::Bad,
                says,
            });
        };
        let run = part.of.run();
        let summary = run.and_then(|r| Summary::new(r).map_err(|e| note("Summary", e)).ok());
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
            escape(&self.part.of.line()),
            list(&self.checks)
        );
        out += &self.part.of.tables(self.part, self.summary.as_ref());
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
        let room_left = LARGEST.min(MOST_FIGURES.saturating_sub(room.used)) as u64;
        let read = path.symlink_metadata().and_then(|about| match about.len() {
            // What a link leads to may be anything.
            _ if about.is_symlink() => Err(Error::other("a link is not shown")),
            bytes if bytes <= room_left => disk::read_text(path),
            bytes => Err(Error::other(format!(
                "{} kB, left out so that the page stays small",
                bytes / 1000
            ))),
        });
        match read {
            Ok(svg) => {
                room.used += svg.len();
                out += &html::picture(&svg, &name);
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
