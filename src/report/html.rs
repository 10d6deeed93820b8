//! Pieces of HTML. Everything that comes from a script, a file or a message goes through [`escape`].

pub use crate::table::escape;

use super::runs::date;
use super::verdict::{Check, Level};
use crate::plot;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::SystemTime;

/// A whole page: its title, its body as HTML, a sentence for its foot, and a script of ours.
///
/// A content security policy forbids everything else: no other script runs, nothing is fetched, whatever has come into the body.
/// A page with a script of its own, and one that asks a server for news if it is live.
pub fn document(title: &str, body: &str, foot: &str, (script, live): (&str, &str)) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let script = match live {
        "" => script.to_string(),
        live => format!("{script};\n{live}"),
    };
    let asks = if live.is_empty() {
        ""
    } else {
        "connect-src 'self'; "
    };
    let ours = plot::base64(&Sha256::digest(&script));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {asks}img-src data:; style-src 'unsafe-inline'; \
         script-src 'sha256-{ours}'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"ergodic {version}\">\n<title>{}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n{body}\
         <footer><p>Written by ergodic {version} on {}. {}</p></footer>\n<script>{script}</script>\n</body>\n</html>\n",
        escape(title),
        include_str!("style.css"),
        date(SystemTime::now()),
        escape(foot),
    )
}

/// A name of letters, digits and dashes.
pub fn plain(name: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(one).collect()
}

/// A name as an id.
pub fn slug(name: &str) -> String {
    plain(name).to_lowercase()
}

/// A sign with its word, told apart by both and by its colour.
pub fn badge(level: Level) -> String {
    let (sign, word) = level.sign();
    labelled(level, sign, word)
}

/// The same with another word.
pub fn labelled(level: Level, sign: &str, word: &str) -> String {
    let (_, class) = level.sign();
    let word = escape(word);
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {word}</span>")
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A number or a word.
    Text(String),
    /// A sentence, or a name.
    Words(String),
    /// A verdict with its word.
    Verdict(Level, String),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A table: headers of columns, and rows whose first cell is their header.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Headers.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty one.
    pub fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        Self {
            caption: caption.into(),
            head: head.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// In a box of its own, which scrolls where the page is narrow.
    pub fn html(&self) -> String {
        let caption = escape(&self.caption);
        let mut out = format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n<table><caption>{caption}</caption>\n<thead><tr>"
        );
        for title in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(title));
        }
        out += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            out += "<tr>";
            for (k, cell) in row.iter().enumerate() {
                let inner = match cell {
                    Cell::Text(text) | Cell::Words(text) => escape(text),
                    Cell::Verdict(level, word) => labelled(*level, level.sign().0, word),
                };
                out += &match (k, cell) {
                    (0, _) => format!("<th scope=\"row\">{inner}</th>"),
                    (_, Cell::Words(_)) => format!("<td class=\"words\">{inner}</td>"),
                    _ => format!("<td>{inner}</td>"),
                };
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n"
    }
}

/// Characters that have room in a column of facts on a telephone.
const LONG: usize = 26;

/// Names and what they stand for.
pub fn facts(pairs: &[(&str, String)]) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for (name, text) in pairs.iter().filter(|(_, text)| !text.is_empty()) {
        let long = text.chars().count() > LONG || text.contains('\n');
        let class = if long { " class=\"long\"" } else { "" };
        let (name, text) = (escape(name), escape(text));
        let _ = writeln!(out, "<div{class}><dt>{name}</dt><dd>{text}</dd></div>");
    }
    out + "</dl>\n"
}

/// Something to be unfolded. `inner` is HTML.
pub fn details(title: &str, inner: &str) -> String {
    format!(
        "<details><summary>{}</summary>\n{inner}</details>\n",
        escape(title)
    )
}

/// JSON with arrays of numbers and words on one line each, as people read it.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write_pretty(value, 0, &mut out);
    out
}

fn write_pretty(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    let close = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push_str("{\n");
            for (k, (name, value)) in map.iter().enumerate() {
                let comma = if k == 0 { "" } else { ",\n" };
                let _ = write!(out, "{comma}{indent}{}: ", Value::from(name.as_str()));
                write_pretty(value, depth + 1, out);
            }
            let _ = write!(out, "\n{close}}}");
        }
        Value::Array(all) if all.iter().any(|v| v.is_object() || v.is_array()) => {
            out.push_str("[\n");
            for (k, value) in all.iter().enumerate() {
                let _ = write!(out, "{}{indent}", if k == 0 { "" } else { ",\n" });
                write_pretty(value, depth + 1, out);
            }
            let _ = write!(out, "\n{close}]");
        }
        Value::Array(all) => {
            let words: Vec<_> = all.iter().map(ToString::to_string).collect();
            let _ = write!(out, "[{}]", words.join(", "));
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// A figure as it stands in a page: `svg` is a drawing of ours, `about` says what can be seen.
pub fn figure(id: &str, svg: &str, about: &str) -> String {
    let about = escape(about);
    // In a page a drawing needs no size of its own and no name space.
    let opened = match (svg.find("viewBox=\""), svg.find('>')) {
        (Some(at), Some(end)) if at < end => {
            let view = &svg[at + 9..end];
            let view = view.split('"').next().unwrap_or_default();
            format!(
                "<svg viewBox=\"{view}\" stroke-linejoin=\"round\" role=\"img\" aria-labelledby=\"{id}\">\n<title id=\"{id}\">{about}</title>{}",
                &svg[end + 1..]
            )
        }
        _ => String::new(),
    };
    format!("<figure>\n{opened}<figcaption>{about}</figcaption>\n</figure>\n")
}

/// A drawing from a file, as a picture: whatever is in it cannot act on the page.
pub fn picture(svg: &str, about: &str) -> String {
    let about = escape(about);
    let source = plot::address(svg);
    format!(
        "<figure class=\"own\">\n<img alt=\"{about}\" src=\"{source}\">\n<figcaption>{about}</figcaption>\n</figure>\n"
    )
}

/// Characters of printed text, of a script and of a value that are shown.
const MOST_TEXT: usize = 100_000;

/// The first so many characters, and whether there are more.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        None => text.to_string(),
        Some((at, _)) => format!("{}\n… cut: {} bytes in all", &text[..at], text.len()),
    }
}

/// The list of checks.
pub(super) fn list(checks: &[Check]) -> String {
    let mut out = String::from("<ul class=\"checks\">\n");
    for c in checks {
        let _ = writeln!(
            out,
            "<li>{} <span><b>{}</b> {}</span></li>",
            badge(c.level),
            escape(c.what),
            escape(&c.says)
        );
    }
    out + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_hostile_text_is_left_to_act() {
        let text = "</script><img src=x onerror='alert(1)'>\"&\u{0}\u{1b}\u{ffff}";
        assert_eq!(
            escape(text),
            "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&quot;&amp;���"
        );
        assert_eq!(slug("a b/<c>.D"), "a-b--c--d");
        let picture = picture("<svg onload=\"alert('#1')\">", "\"><script>");
        assert!(
            !picture.contains("<svg") && !picture.contains("<script") && !picture.contains("'#1'")
        );
    }

    #[test]
    fn a_table_has_a_header_for_every_row_and_column() {
        let mut table = Table::new("a < b", &["T", "x"]);
        table.rows.push(vec![
            "1".to_string().into(),
            Cell::Verdict(Level::Bad, "hot".into()),
        ]);
        let html = table.html();
        assert!(html.contains("<caption>a &lt; b</caption>"));
        assert!(html.contains("<th scope=\"col\">T</th><th scope=\"col\">x</th>"));
        assert!(html.contains("<tr><th scope=\"row\">1</th><td><span class=\"badge bad\">"));
        assert!(html.contains("✗</span> hot</span></td></tr>"));
    }

    #[test]
    fn json_is_the_same_value() {
        let value =
            serde_json::json!({ "a\"b": [1.5, null, "x"], "m": [[1, 2], { "k": {} }], "e": [] });
        let text = pretty(&value);
        assert!(text.contains("[1.5, null, \"x\"]"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_figure_keeps_its_drawing_and_gets_a_title() {
        let svg = crate::plot::Figure::default().to_inline_svg().unwrap();
        let html = figure("f-1", &svg, "x & y");
        assert!(html.contains("aria-labelledby=\"f-1\">\n<title id=\"f-1\">x &amp; y</title>"));
        assert!(!html.contains("xmlns") && html.ends_with("</figure>\n"));
        assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    }
}
