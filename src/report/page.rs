//! The page: what ran, verdicts, tables and figures, in the order in which a sceptical reader wants them.

use super::html::{self, cut, details, escape, facts, list, slug};
use super::read::Results;
use super::record::Record;
use super::runs::date;
use super::section::{Room, Section, own_figures};
use super::verdict::{self, Check, Level, check};
use super::{Paint, gallery};
use crate::error::Result;
use crate::simulation::run::versions;
use serde_json::Value;
use std::fmt::Write;

/// Opens what is folded when a browser prints that cannot by the style alone.
const OPEN_TO_PRINT: &str = "addEventListener(\"beforeprint\",()=>document.querySelectorAll(\"details\").forEach(d=>d.open=true))";

/// The whole page; `back` leads to an index that it belongs to, and `live` is the script that keeps it up to date.
pub fn page(all: &[Results], (back, live): (Option<&str>, &str), paint: Paint) -> Result<String> {
    let mut checks = Vec::new();
    let mut bodies = String::new();
    let mut contents = String::new();
    let mut room = Room::default();
    for (k, results) in all.iter().enumerate() {
        let quick = results.record.as_ref().is_some_and(|r| r.quick);
        let of_script = of_results(results);
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
    let back = back.map_or(String::new(), |link| {
        format!("<p class=\"kicker\"><a href=\"{link}\">← all runs</a></p>\n")
    });
    let body = format!(
        "<header>\n{back}<p class=\"kicker\">ergodic report</p>\n<h1>{}</h1>\n\
         <p class=\"verdict {class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span> <span>{}</span></p>\n</header>\n{nav}<main>\n{bodies}{}</main>\n",
        escape(&title),
        escape(&sentence),
        again(all),
    );
    let title = format!("{title} – ergodic report");
    Ok(html::document(
        &title,
        &body,
        &gallery::limits(),
        (OPEN_TO_PRINT, live),
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

/// What the script's record says, and what is to be noted of the folder.
fn of_results(r: &Results) -> Vec<Check> {
    let mut out = Vec::new();
    let script = |record: &Record| match record.status.as_str() {
        "done" => Some(check("Script", Level::Good, "ended as it should")),
        "" => None,
        other => {
            let first = other.lines().next().unwrap_or_default();
            Some(check("Script", Level::Bad, format!("stopped: {first}")))
        }
    };
    out.extend(r.record.as_ref().and_then(script));
    let each = r.notes.iter().cloned();
    out.extend(each.map(|n| check("Folder", Level::Look, n)));
    out
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
    let command = match record.script.is_empty() {
        true => String::new(),
        false => record.command(),
    };
    let read = record.read.iter();
    let read = read.map(|(file, version)| format!("{file} ({version})"));
    out += &facts(&[
        ("command", command),
        ("parameters set", set.join(", ")),
        ("files read", read.collect::<Vec<_>>().join(", ")),
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
        let text = escape(&cut(&html::pretty(&record.result)));
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
            "<p class=\"note\">These numbers were made by another version of this program.</p>\n"
        }
        false => "",
    };
    format!(
        "<section aria-labelledby=\"again\">\n<h2 id=\"again\">Reproduce and cite</h2>\n<p>The same version, script, settings and seed give the same numbers, whatever the number of threads:</p>\n\
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

    #[test]
    fn what_is_painted_is_still_the_script() {
        let source = "let a = \"<b>\"; // ∂&";
        let paint: Paint = |_| vec![(0..3, "k"), (8..13, "s"), (15..19, "bad"), (15..22, "c")];
        assert_eq!(
            painted(source, paint),
            "<span class=\"k\">let</span> a = <span class=\"s\">&quot;&lt;b&gt;&quot;</span>; <span class=\"c\">// ∂&amp;</span>"
        );
    }
}
