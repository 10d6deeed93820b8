//! The page: what ran, verdicts, tables and figures, in the order in which a sceptical reader wants them.

use super::gallery::{self, Drawing};
use super::html::{self, Table, details, escape, facts, slug};
use super::read::{Part, Record, Results, What};
use super::verdict::{self, Check, Level};
use super::{Paint, tables};
use crate::error::Result;
use crate::simulation::evidence::{evidence, of_populations};
use crate::simulation::exchange::LadderReport;
use crate::simulation::run::{Run, versions};
use crate::simulation::summary::Summary;
use serde_json::Value;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of figures beyond which the rest are left out, and named.
const MOST_FIGURES: usize = 1_400_000;

/// Bytes of a figure of the script's own beyond which it is left out.
const LARGEST: usize = 400_000;

/// Characters of printed text, of a script and of a value that are shown.
const MOST_TEXT: usize = 100_000;

/// Opens what is folded when a browser prints that cannot by the style alone.
const OPEN_TO_PRINT: &str = "addEventListener(\"beforeprint\",()=>document.querySelectorAll(\"details\").forEach(d=>d.open=true))";

/// A part with what was found of it.
struct Section<'a> {
    id: String,
    part: &'a Part,
    summary: Option<Summary>,
    checks: Vec<Check>,
}

/// Room for figures, shared by all parts.
struct Room {
    used: usize,
    figures: usize,
}

/// The whole page.
pub fn page(all: &[Results], paint: Paint) -> Result<String> {
    let mut checks = Vec::new();
    let mut bodies = String::new();
    let mut contents = String::new();
    let mut room = Room {
        used: 0,
        figures: 0,
    };
    for (k, results) in all.iter().enumerate() {
        let quick = results.record.as_ref().is_some_and(|r| r.quick);
        let of_script = verdict::of_results(results);
        let name = match all.len() {
            1 => String::new(),
            _ => title_of(results),
        };
        checks.extend(of_script.iter().map(|c| (name.clone(), c.clone())));
        let mut sections = Vec::new();
        for (i, part) in results.parts.iter().enumerate() {
            let id = format!("r{}-{}-{}", k + 1, i + 1, slug(&part.name));
            let section = Section::of(id, part, quick);
            let named = section.checks.iter().cloned();
            checks.extend(named.map(|c| (part.name.clone(), c)));
            sections.push(section);
        }
        if all.len() > 1 {
            let _ = writeln!(
                bodies,
                "<h2 class=\"folder\">{}</h2>",
                escape(&title_of(results))
            );
        }
        bodies += &what_ran(results, &of_script, k, paint);
        for s in &sections {
            let badge = html::badge(verdict::worst(&s.checks));
            let name = escape(&s.part.name);
            let _ = writeln!(
                contents,
                "<li><a href=\"#{}\">{name}</a> {badge}</li>",
                s.id
            );
            bodies += &s.html(&mut room);
        }
        bodies += &own_figures(results, &mut room);
    }
    let title = match all {
        [one] => title_of(one),
        several => format!("{} results", several.len()),
    };
    let (level, sentence) = verdict::sentence(&checks);
    let count = all.iter().map(|r| r.parts.len()).sum::<usize>();
    let nav = match count {
        0 | 1 => String::new(),
        _ => format!("<nav aria-label=\"Parts\"><ul>\n{contents}</ul></nav>\n"),
    };
    let (sign, _) = level.sign();
    let class = level.sign().1;
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"ergodic {}\">\n<title>{} – ergodic report</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<header>\n<p class=\"kicker\">ergodic report</p>\n<h1>{}</h1>\n\
         <p class=\"verdict {class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span> <span>{}</span></p>\n</header>\n{nav}<main>\n{bodies}{}</main>\n\
         <footer><p>Written by ergodic {} on {}. {}</p></footer>\n<script>{OPEN_TO_PRINT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&title),
        include_str!("style.css"),
        escape(&title),
        escape(&sentence),
        again(all),
        env!("CARGO_PKG_VERSION"),
        date(SystemTime::now()),
        escape(&gallery::limits()),
    ))
}

/// The name of a folder, with that of the one above for a single part.
fn title_of(r: &Results) -> String {
    let whole = r.folder.canonicalize().unwrap_or_else(|_| r.folder.clone());
    let name = |p: &std::path::Path| {
        let name = p.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    match whole.parent().map(name) {
        Some(above) if r.single && !above.is_empty() => format!("{above} / {}", name(&whole)),
        _ => name(&whole),
    }
}

/// Year, month, day, hour and minute in UTC (days to dates: Hinnant, "chrono-compatible low-level date algorithms").
fn date(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The first so many characters, and whether there are more.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        None => text.to_string(),
        Some((at, _)) => format!("{}\n… cut: {} bytes in all", &text[..at], text.len()),
    }
}

/// The list of checks.
fn list(checks: &[Check]) -> String {
    let mut out = String::from("<ul class=\"checks\">\n");
    for c in checks {
        let _ = writeln!(
            out,
            "<li>{} <span><b>{}</b> {}</span></li>",
            html::badge(c.level),
            escape(c.what),
            escape(&c.says)
        );
    }
    out + "</ul>\n"
}

/// Command, seed, versions, device, times, and the script.
fn what_ran(r: &Results, checks: &[Check], k: usize, paint: Paint) -> String {
    let mut out =
        format!("<section aria-labelledby=\"ran-{k}\">\n<h2 id=\"ran-{k}\">What ran</h2>\n");
    out += &list(checks);
    let Some(record) = &r.record else {
        return out + "</section>\n";
    };
    let set: Vec<_> = record
        .settings
        .iter()
        .map(|(n, v)| format!("{n} = {v}"))
        .collect();
    let word = |name: &str| {
        let found = record.versions.get(name).and_then(Value::as_str);
        found.unwrap_or_default().to_string()
    };
    let number = |x: Option<u64>| x.map_or(String::new(), |x| x.to_string());
    let system = format!("{} {}", word("os"), word("architecture"));
    let time = record
        .seconds
        .map_or(String::new(), |s| format!("{s:.1} s"));
    out += &facts(&[
        ("script", record.script.clone()),
        ("parameters set", set.join(", ")),
        ("seed", number(record.seed)),
        ("ergodic", word("ergodic")),
        ("system", system.trim().to_string()),
        ("SIMD", word("simd")),
        ("device", record.device.clone()),
        ("threads", number(record.threads)),
        ("time", time),
        ("ended", record.written.map_or(String::new(), date)),
        (
            "quick",
            match record.quick {
                true => "yes: steps and sizes were cut".into(),
                false => "no".into(),
            },
        ),
    ]);
    if record.status != "done" && !record.status.is_empty() {
        let message = escape(&cut(&record.status));
        let _ = writeln!(out, "<pre class=\"message\">{message}</pre>");
    }
    if !record.source.is_empty() {
        let painted = painted(&cut(&record.source), paint);
        out += &details(
            "The script",
            &format!("<pre class=\"script\"><code>{painted}</code></pre>\n"),
        );
    }
    if !record.printed.is_empty() {
        let text = escape(&cut(&record.printed));
        out += &details("What it printed", &format!("<pre>{text}</pre>\n"));
    }
    if !record.result.is_null() {
        let text = serde_json::to_string_pretty(&record.result).unwrap_or_default();
        let text = escape(&cut(&text));
        out += &details("Its value", &format!("<pre>{text}</pre>\n"));
    }
    out + "</section>\n"
}

/// A script with its words in colours.
fn painted(source: &str, paint: Paint) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for (range, class) in paint(source) {
        let (Some(before), Some(word)) = (source.get(at..range.start), source.get(range.clone()))
        else {
            continue;
        };
        let _ = write!(
            out,
            "{}<span class=\"{class}\">{}</span>",
            escape(before),
            escape(word)
        );
        at = range.end;
    }
    out += &escape(source.get(at..).unwrap_or_default());
    out
}

impl<'a> Section<'a> {
    /// What cannot be told of a part is one of its checks: the others still are.
    fn of(id: String, part: &'a Part, quick: bool) -> Self {
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
        let found = verdict::checks(part, summary.as_ref(), quick);
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

    fn html(&self, room: &mut Room) -> String {
        let id = &self.id;
        let badge = html::badge(verdict::worst(&self.checks));
        let mut out = format!(
            "<section class=\"part\" aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{} {badge}</h2>\n{}",
            escape(&self.part.name),
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
                    out += &facts(&tables::facts_of_llc(saved));
                }
                if gallery::has_draws(run) {
                    out += &tables::verdicts(run, s).html();
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
                out += &details(
                    "Target, sampler and sizes",
                    &facts(&tables::facts_of_run(run)),
                );
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
                let setting = serde_json::to_string_pretty(&b.setting).unwrap_or_default();
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
            out += &facts(&tables::facts_of_ladder(&l));
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
            for w in &e.warnings {
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
        let panels = d.figure.apart();
        let count = panels.len();
        for (k, panel) in panels.into_iter().enumerate() {
            let about = match count {
                1 => d.about.clone(),
                _ => format!("{} ({} of {count})", d.about, k + 1),
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
fn own_figures(r: &Results, room: &mut Room) -> String {
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

/// The commands that do it again, and what to write in a paper.
fn again(all: &[Results]) -> String {
    let records: Vec<&Record> = all.iter().filter_map(|r| r.record.as_ref()).collect();
    let commands: Vec<_> = records
        .iter()
        .filter(|r| !r.script.is_empty())
        .map(|r| r.command())
        .collect();
    if commands.is_empty() {
        return String::new();
    }
    let version = |r: &&Record| {
        let found = r.versions.get("ergodic").and_then(Value::as_str);
        found.unwrap_or_default().to_string()
    };
    let mut made: Vec<_> = records.iter().map(version).collect();
    made.sort();
    made.dedup();
    let here = versions();
    let differs = made.iter().any(|v| here["ergodic"] != *v.as_str());
    let other = match differs {
        true => {
            "<p class=\"note\">This program is of another version than the one that made the numbers.</p>\n"
        }
        false => "",
    };
    format!(
        "<section aria-labelledby=\"again\">\n<h2 id=\"again\">Again, and cited</h2>\n<p>The same version, script, settings and seed give the same numbers, whatever the number of threads:</p>\n\
         <pre>{}</pre>\n{other}<p>In a paper: ergodic {}, with script, seed and settings as above; {}</p>\n</section>\n",
        escape(&commands.join("\n")),
        escape(&made.join(", ")),
        escape(
            "error bars are Monte Carlo standard errors, R̂ and ESS as in Vehtari et al., Bayesian Analysis 16 (2021) 667."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |s| date(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn what_is_painted_is_still_the_script() {
        let source = "let a = \"<b>\"; // ∂&";
        let paint: Paint = |_| vec![(0..3, "k"), (8..13, "s"), (15..19, "bad"), (15..23, "c")];
        assert_eq!(
            painted(source, paint),
            "<span class=\"k\">let</span> a = <span class=\"s\">&quot;&lt;b&gt;&quot;</span>; <span class=\"c\">// ∂&amp;</span>"
        );
    }
}
