//! Tables of texts: as lines for a terminal and as HTML for a notebook or a report.

use std::fmt::{self, Write};

/// Two texts of at most `longest` characters each: of longer ones the part where they differ first, because paths of files begin alike.
pub(crate) fn where_they_differ(a: &str, b: &str, longest: usize) -> [String; 2] {
    let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
    let alike = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    // Most of it is what they share, which says what it is.
    let before = alike.saturating_sub(longest * 2 / 3);
    let first = before.min(a.len().max(b.len()).saturating_sub(longest));
    [a, b].map(|text| {
        let last = text.len().min(first + longest);
        let dots = |cut: bool| if cut { "…" } else { "" };
        let shown: String = text[first..last].iter().collect();
        format!("{}{shown}{}", dots(first > 0), dots(last < text.len()))
    })
}

/// A table, with what stands above and below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Lines above it.
    pub above: Vec<String>,
    /// Titles of the columns.
    pub header: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// Lines below it.
    pub below: Vec<String>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new<T: ToString>(header: impl IntoIterator<Item = T>) -> Self {
        Self {
            header: header.into_iter().map(|h| h.to_string()).collect(),
            ..Self::default()
        }
    }

    /// Add a line above it.
    pub fn line_above(mut self, line: impl Into<String>) -> Self {
        self.above.push(line.into());
        self
    }

    /// Add a row.
    pub fn push<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows
            .push(cells.into_iter().map(|c| c.to_string()).collect());
    }

    /// The same with one more row.
    pub fn row<T: ToString>(mut self, cells: impl IntoIterator<Item = T>) -> Self {
        self.push(cells);
        self
    }

    /// Whether a column has words in it, which are aligned to the left, unlike numbers.
    fn has_words(&self, column: usize) -> bool {
        const NUMBERS: [&str; 6] = ["NaN", "inf", "-inf", "n/a", "prior", "±"];
        let is_number = |c: &str| {
            c.is_empty()
                || NUMBERS.iter().any(|n| c.starts_with(n))
                || c.trim_start_matches(['+', '-', '−'])
                    .starts_with(|c: char| c.is_ascii_digit())
        };
        self.rows
            .iter()
            .filter_map(|r| r.get(column))
            .any(|c| !is_number(c))
    }

    /// As HTML: readable on light and dark ground, whatever theme is around it; scrolled where it is wide, and never broken within a cell.
    pub fn to_html(&self) -> String {
        let mut out =
            String::from("<div class=\"ergodic-table\" style=\"overflow-x:auto;max-width:100%\">");
        let line = |out: &mut String, text: &String| {
            let look = match tone(text) {
                Some(colour) if text.starts_with(VERDICT) => bold(colour),
                Some(colour) => format!("color:{colour}"),
                None => "opacity:.85".into(),
            };
            let _ = write!(
                out,
                "<div style=\"margin:.2em 0;font-size:.92em;white-space:pre-line;{look}\">{}</div>",
                escape(text)
            );
        };
        self.above.iter().for_each(|l| line(&mut out, l));
        if !self.header.is_empty() {
            out += "<table style=\"border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap\"><thead><tr>";
            let align: Vec<_> = (0..self.header.len())
                .map(|k| if self.has_words(k) { "left" } else { "right" })
                .collect();
            for (title, side) in self.header.iter().zip(&align) {
                let _ = write!(
                    out,
                    "<th scope=\"col\" style=\"text-align:{side};padding:.25em .7em;border-bottom:1px solid currentColor\">{}</th>",
                    escape(title)
                );
            }
            out += "</tr></thead><tbody>";
            for row in &self.rows {
                out += "<tr>";
                for (cell, side) in row.iter().zip(&align) {
                    let _ = write!(
                        out,
                        "<td style=\"text-align:{side};padding:.2em .7em;white-space:nowrap{}\">{}</td>",
                        tone(cell).map_or(String::new(), |colour| format!(";{}", bold(colour))),
                        escape(cell)
                    );
                }
                out += "</tr>";
            }
            out += "</tbody></table>";
        }
        self.below.iter().for_each(|l| line(&mut out, l));
        out + "</div>"
    }
}

/// Words by which verdicts begin, and their colours on light and on dark ground.
const TONES: [(&str, &[&str]); 3] = [
    ("#2e9e5b", &["converged", "agrees"]),
    ("#c77f1a", &["not yet", "undecided"]),
    ("#d64545", &["wrong", "failed", "hot", "cold"]),
];

/// What a line begins with that says the verdict of a whole table.
pub(crate) const VERDICT: &str = "verdict: ";

fn bold(colour: &str) -> String {
    format!("color:{colour};font-weight:600")
}

/// The colour of a cell or a line that begins with a verdict.
fn tone(text: &str) -> Option<&'static str> {
    let said = text.strip_prefix(VERDICT).unwrap_or(text);
    let said = said.get(..12).unwrap_or(said).to_lowercase();
    let begins = |word: &&str| {
        said.strip_prefix(*word)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let (colour, _) = TONES.iter().find(|(_, words)| words.iter().any(&begins))?;
    Some(colour)
}

/// A text with spaces before or behind it. The widths that `format!` knows end at 65,535.
pub fn padded(text: &str, width: usize, before: bool) -> String {
    let space = " ".repeat(width.saturating_sub(text.chars().count()));
    match before {
        true => format!("{space}{text}"),
        false => format!("{text}{space}"),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || std::iter::once(&self.header).chain(&self.rows);
        let cell = |row: &Vec<String>, k: usize| row.get(k).cloned().unwrap_or_default();
        let columns: Vec<_> = (0..self.header.len())
            .map(|k| {
                let width = all().map(|r| cell(r, k).chars().count()).max();
                (width.unwrap_or(0), self.has_words(k))
            })
            .collect();
        let shown = all().filter(|r| !r.is_empty()).map(|row| {
            let cells = columns.iter().enumerate().map(|(k, (width, words))| {
                let text = cell(row, k);
                padded(&text, *width, !words)
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            line.trim_end().to_string()
        });
        let lines: Vec<_> = self
            .above
            .iter()
            .cloned()
            .chain(shown)
            .chain(self.below.iter().cloned())
            .collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Text that stands for itself, in elements and in quoted attributes; characters that a page may not hold become �.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // Lines of other systems end with it.
            '\r' => {}
            c if c.is_control() || is_noncharacter(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// What HTML forbids: U+FDD0 to U+FDEF, and the last two of every plane.
fn is_noncharacter(c: char) -> bool {
    let code = c as u32;
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// Six digits, without needless zeros.
pub(crate) fn number(x: f64) -> String {
    match x.abs() {
        _ if x.fract() == 0.0 && x.abs() < 1e15 => format!("{x:.0}"),
        m if (1e-4..1e6).contains(&m) => {
            let digits = (5 - m.log10().floor() as i32).clamp(0, 12) as usize;
            let text = format!("{x:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        }
        _ => format!("{x:.5e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::new(["model", "ln Z"]).line_above("two <models>");
        t.push(["a & b", "-1.25(3)"]);
        t.push(["c", "NaN"]);
        t
    }

    #[test]
    fn of_long_texts_what_differs_is_shown() {
        let all = |a: &str, b: &str| where_they_differ(a, b, 12).join("|");
        assert_eq!(all("", "x"), "|x");
        assert_eq!(
            all("/a/long/folder/file=1", "/a/long/folder/file=2"),
            "…older/file=1|…older/file=2"
        );
        assert_eq!(
            all("/a/long/folder/x=1, as before", "/a/long/folder/x=12"),
            "…lder/x=1, as…|…lder/x=12"
        );
        assert_eq!(all("1: as it was before", "2"), "1: as it was…|2");
        assert_eq!(
            all("beginnings alike é", "beginnings alike"),
            "…ings alike é|…ings alike"
        );
    }

    #[test]
    fn numbers_are_right_and_words_left() {
        let text = "two <models>\nmodel      ln Z\na & b  -1.25(3)\nc           NaN";
        assert_eq!(table().to_string(), text);
    }

    #[test]
    fn html_escapes_what_it_is_given() {
        let html = table().to_html();
        assert!(html.contains("two &lt;models&gt;") && html.contains("a &amp; b"));
        assert!(!html.contains("<models>"));
        assert_eq!(html.matches("<td").count(), 4);
    }

    #[test]
    fn verdicts_are_coloured_and_cells_not_broken() {
        let table = Table::new(["T", "verdict"]).line_above("verdict: not yet at 1 of 3");
        let table = table.row(["1.0e-5", "converged"]).row(["2", "WRONG"]);
        let html = table.row(["3", "hotel"]).to_html();
        assert_eq!(html.matches("<td").count(), 6);
        assert_eq!(html.matches(".7em;white-space:nowrap").count(), 6);
        let coloured = [
            "#c77f1a;font-weight:600\">verdict: not yet",
            "#2e9e5b;font-weight:600\">converged",
            "#d64545;font-weight:600\">WRONG",
        ];
        for one in coloured {
            assert!(html.contains(one), "{one}: {html}");
        }
        assert!(html.contains("nowrap\">hotel"), "{html}");
    }
}
