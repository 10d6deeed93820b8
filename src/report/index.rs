//! The index of many runs: a table in order of time, which can be sorted and filtered, and a page for each run.

use super::address::href;
use super::html::{self, escape, labelled, plain};
use super::page;
use super::read::Results;
use super::runs::{Found, Runs, Sort, State, date, duration, size};
use super::verdict::Level;
use super::{Paint, layout::Kind};
use crate::error::{Result, count};
use crate::store;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Sorts by the column whose title is pressed, and hides rows without the words that are typed.
const SCRIPT: &str = include_str!("index.js");

/// The columns, and whether a title is pressed to have the largest first.
const COLUMNS: [(&str, bool); 8] = [
    ("run", false),
    ("begun (UTC)", true),
    ("kind", false),
    ("state", false),
    ("verdict", false),
    ("took", true),
    ("size", true),
    ("tags and settings", false),
];

/// Write the index of all runs in and below some folders, and a page for each; returns its path. Pages lie in the folders of the runs, or
/// with `beside` in a folder beside the index.
///
/// # Errors
/// If there is no run, or the index cannot be written. What keeps the page of one run from being written stands in its row.
pub fn write(roots: &[PathBuf], file: &Path, beside: bool, paint: Paint) -> Result<PathBuf> {
    let all = Runs::of(roots, &[], Sort::Time)?.all;
    let named = roots.iter().map(|r| r.display().to_string());
    let named = named.collect::<Vec<_>>().join(", ");
    anyhow::ensure!(!all.is_empty(), "{named}: there are no runs here");
    let mut rows = String::new();
    for (k, run) in all.iter().enumerate() {
        let name = match roots {
            [root] => run.folder.strip_prefix(root).unwrap_or(&run.folder),
            _ => &run.folder,
        };
        let (page, link, back) = match beside {
            true => {
                let folder = format!("{}-runs", stem(file));
                let page = format!("{:03}-{}.html", k + 1, plain(&name.display().to_string()));
                let link = Path::new(&folder).join(page);
                let up = Path::new("..").join(file.file_name().unwrap_or_default());
                (file.with_file_name(&link), link, up)
            }
            false => {
                let own = if is_grid(run) {
                    "index.html"
                } else {
                    "report.html"
                };
                let up: PathBuf = name.components().map(|_| "..").collect();
                (run.folder.join(own), name.join(own), up.join("index.html"))
            }
        };
        let written = write_page(run, &page, (beside, &back), paint);
        rows += &row(run, name, written.map(|()| link));
    }
    let text = document(&named, &all, &rows, "");
    store::write_atomic(file, text.as_bytes())?;
    Ok(file.to_path_buf())
}

/// The index of all runs in and below a folder as it is now, kept up to date by a script; each leads to its page `/run/…`.
pub(crate) fn live(root: &Path, all: &[Found], live: &str) -> String {
    let of = |run: &Found| {
        let name = run.folder.strip_prefix(root).unwrap_or(&run.folder);
        row(run, name, Ok(Path::new("run").join(name)))
    };
    let rows: String = all.iter().map(of).collect();
    document(&root.display().to_string(), all, &rows, live)
}

fn is_grid(run: &Found) -> bool {
    Kind::of(&run.folder) == Some(Kind::Grid)
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The page of a run; of a grid, the index of its cells.
fn write_page(run: &Found, file: &Path, (beside, back): (bool, &Path), paint: Paint) -> Result<()> {
    if is_grid(run) {
        return write(std::slice::from_ref(&run.folder), file, beside, paint).map(drop);
    }
    let results = Results::of(&run.folder)?;
    let text = page::page(&[results], (Some(&href(back)), ""), paint)?;
    store::write_atomic(file, text.as_bytes())
}

/// A row of the table; `link` leads to its page.
fn row(run: &Found, name: &Path, link: Result<PathBuf>) -> String {
    let shown = escape(&name.display().to_string());
    let about = run.record.as_ref().and_then(|r| r.source.lines().next());
    let about = about
        .and_then(|l| l.strip_prefix("//!"))
        .unwrap_or_default();
    let mut first = match &link {
        Ok(link) => format!("<a href=\"{}\">{shown}</a>", href(link)),
        Err(_) => shown,
    };
    let mut notes = vec![about.trim().to_string()];
    notes.extend(
        run.message()
            .and_then(|m| m.lines().next())
            .map(String::from),
    );
    notes.extend(link.err().map(|e| format!("no page: {e:#}")));
    for note in notes.iter().filter(|n| !n.is_empty()) {
        let _ = write!(first, "<br><small>{}</small>", escape(note));
    }
    let level = match run.state {
        State::Finished => Level::Good,
        State::Running(_) => Level::Open,
        State::Interrupted => Level::Look,
        State::Failed(_) | State::Damaged(_) => Level::Bad,
    };
    let state = labelled(level, level.sign().0, &run.state());
    let verdict = run.verdict.map_or("–".into(), |v| {
        let level = Level::of(v);
        labelled(level, level.sign().0, &v.to_string())
    });
    let tags = run
        .tags
        .iter()
        .map(|t| format!("<span class=\"tag\">{}</span>", escape(t)));
    let settings = run.record.iter().flat_map(|r| &r.settings);
    let settings = settings.map(|(name, value)| escape(&format!("{name}={value}")));
    let last = tags.chain(settings).collect::<Vec<_>>().join(" ");
    let began = date(run.begun);
    format!(
        "<tr><th scope=\"row\">{first}</th><td>{}</td><td class=\"words\">{}</td><td class=\"words\">{state}</td><td class=\"words\">{verdict}</td>\
         <td data-key=\"{}\">{}</td><td data-key=\"{}\">{}</td><td class=\"words\">{last}</td></tr>\n",
        began.trim_end_matches(" UTC"),
        escape(&run.kind),
        run.seconds,
        duration(run.seconds),
        run.bytes,
        size(run.bytes)
    )
}

/// How many there are of what, as "3 finished, 1 failed".
fn counts(words: impl Iterator<Item = String>) -> String {
    let mut found: Vec<(String, usize)> = Vec::new();
    for word in words {
        match found.iter_mut().find(|(w, _)| *w == word) {
            Some((_, n)) => *n += 1,
            None => found.push((word, 1)),
        }
    }
    let each = found.iter().map(|(word, n)| format!("{n} {word}"));
    each.collect::<Vec<_>>().join(", ")
}

fn document(title: &str, all: &[Found], rows: &str, live: &str) -> String {
    let states = counts(all.iter().map(|f| {
        let state = f.to_json()["state"].clone();
        state.as_str().unwrap_or_default().to_string()
    }));
    let judged = all.iter().filter_map(|f| f.verdict);
    let verdicts = counts(judged.map(|v| v.to_string()));
    let verdicts = match verdicts.is_empty() {
        true => verdicts,
        false => format!("; verdicts: {verdicts}"),
    };
    let bytes = all.iter().map(|f| f.bytes).sum();
    let said = format!(
        "{}, {}: {states}{verdicts}.",
        count(all.len(), "run"),
        size(bytes)
    );
    let head = COLUMNS.map(|(name, down)| {
        let down = if down { " data-down" } else { "" };
        format!("<th scope=\"col\"><button type=\"button\"{down}>{name}</button></th>")
    });
    let body = format!(
        "<header>\n<p class=\"kicker\">ergodic runs</p>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n<main>\n\
         <p id=\"filter\" hidden><label>Only with <input type=\"search\" placeholder=\"words: names, tags, settings, states\"></label> <span aria-live=\"polite\"></span></p>\n\
         <div class=\"scroll wide\" role=\"region\" tabindex=\"0\" aria-label=\"Runs\">\n<table id=\"runs\"><caption>Runs in order of time</caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</main>\n",
        escape(title),
        escape(&said),
        head.concat()
    );
    html::document(
        &format!("{title} – ergodic runs"),
        &body,
        "",
        (SCRIPT, live),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_encoded() {
        assert_eq!(href(Path::new("a b/ü#?.html")), "a%20b/%C3%BC%23%3F.html");
        assert_eq!(href(Path::new("../index.html")), "../index.html");
    }

    #[test]
    fn what_there_is_is_counted_in_order() {
        let words = ["a", "b", "a"].map(String::from);
        assert_eq!(counts(words.into_iter()), "2 a, 1 b");
    }
}
