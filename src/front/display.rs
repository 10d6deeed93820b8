//! Objects as a notebook shows them: plain text, and HTML or SVG beside it; in Rust notebooks by evcxr's protocol.

use super::notebook::marks::{self, Mark};
use super::notebook::session::Value;
use crate::dataset::Dataset;
use crate::model::Model;
use crate::plot::Figure;
use crate::sampler::Configured;
use crate::simulation::optimizer::Optimizer;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use crate::simulation::train::Trained;
use crate::target::Target;
use crate::target::prior::Parameters;
use candle_core::Tensor;
use std::any::Any;
use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;

/// Rows, columns and elements of which more are not shown.
const ROWS: usize = 20;
const COLUMNS: usize = 12;

/// One thing in the formats that a notebook can show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    /// Plain text, for those that know no better.
    pub text: String,
    /// HTML, readable on light and on dark.
    pub html: Option<String>,
    /// A drawing.
    pub svg: Option<String>,
}

impl Shown {
    /// Plain text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Its formats by MIME type.
    pub fn formats(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("text/plain", Some(&self.text)),
            ("text/html", self.html.as_ref()),
            ("image/svg+xml", self.svg.as_ref()),
        ];
        let mut out = Vec::new();
        for (mime, text) in all {
            out.extend(text.map(|t| (mime, t.as_str())));
        }
        out
    }

    /// As evcxr's protocol has it: what a cell prints between these marks is shown in the notebook.
    pub fn evcxr(&self) -> String {
        let mut out = String::new();
        for (mime, text) in self.formats() {
            let text = text.trim_end_matches('\n');
            out += &format!("EVCXR_BEGIN_CONTENT {mime}\n{text}\nEVCXR_END_CONTENT\n");
        }
        out
    }
}

/// A table of numbers or words, to be shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Titles of the columns.
    pub headers: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub fn new<T: ToString>(headers: impl IntoIterator<Item = T>) -> Self {
        Self {
            headers: headers.into_iter().map(|h| h.to_string()).collect(),
            rows: Vec::new(),
        }
    }

    /// One more row.
    pub fn row<T: ToString>(mut self, cells: impl IntoIterator<Item = T>) -> Self {
        self.rows
            .push(cells.into_iter().map(|c| c.to_string()).collect());
        self
    }

    fn show(&self) -> Shown {
        Shown {
            text: text_table(&self.headers, &self.rows),
            html: Some(html_table(&self.headers, &self.rows)),
            svg: None,
        }
    }
}

/// What evcxr calls on the value of a cell. Every value that has [`Debug`] has it while the prelude is in scope, so that a cell whose
/// value is a number is compiled once and not, after a failure, twice.
pub trait Display {
    /// Print the value between the marks of evcxr's protocol.
    fn evcxr_display(&self);
}

impl<T: Any + Debug> Display for T {
    fn evcxr_display(&self) {
        // As evcxr, which shows nothing for the value of a statement.
        if (self as &dyn Any).is::<()>() {
            return;
        }
        let shown = of(self).unwrap_or_else(|| Shown::text(format!("{self:?}")));
        let text = match marks::wanted() {
            true => Mark::Shown(shown).line(),
            false => shown.evcxr(),
        };
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }
}

/// Show a value in the middle of a cell.
pub fn display(value: &(impl Any + Debug)) {
    value.evcxr_display();
}

/// How a value is shown, if it is an object of the program or a handle to one.
pub fn of(value: &dyn Any) -> Option<Shown> {
    fn as_ref<T: Any>(value: &dyn Any) -> Option<&T> {
        let handle = value.downcast_ref::<Arc<T>>().map(|x| &**x);
        handle.or_else(|| value.downcast_ref::<T>())
    }
    if let Some(figure) = as_ref::<Figure>(value) {
        return Some(of_figure(figure));
    }
    if let Some(summary) = as_ref::<Summary>(value) {
        return Some(of_summary(summary));
    }
    if let Some(run) = as_ref::<Run>(value) {
        return Some(of_run(run));
    }
    if let Some(trained) = as_ref::<Trained>(value) {
        return Some(of_trained(trained));
    }
    if let Some(table) = as_ref::<Table>(value) {
        return Some(table.show());
    }
    if let Some(tensor) = as_ref::<Tensor>(value) {
        return Some(of_tensor(tensor));
    }
    if let Some(p) = as_ref::<Parameters>(value) {
        let width = p.vectors.first().map_or(0, |v| v.len());
        let rows = p
            .vectors
            .iter()
            .map(|v| v.iter().map(|x| f64::from(*x)).collect());
        let what = format!("{} parameter vectors of length {width}", p.vectors.len());
        return Some(of_matrix(&what, rows.collect()));
    }
    if let Some(v) = as_ref::<Vec<f64>>(value) {
        return Some(of_matrix(&format!("{} numbers", v.len()), vec![v.clone()]));
    }
    if let Some(v) = as_ref::<Vec<f32>>(value) {
        let row = v.iter().map(|x| f64::from(*x)).collect();
        return Some(of_matrix(&format!("{} numbers", v.len()), vec![row]));
    }
    if let Some(rows) = as_ref::<Vec<Vec<f64>>>(value) {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        return Some(of_matrix(
            &format!("{} × {width} numbers", rows.len()),
            rows.clone(),
        ));
    }
    if let Some(value) = value.downcast_ref::<Value>() {
        return Some(value.shown());
    }
    if let Some(text) = value.downcast_ref::<String>() {
        return Some(Shown::text(format!("{text:?}")));
    }
    let described = as_ref::<Dataset>(value)
        .map(ToString::to_string)
        .or_else(|| as_ref::<Target>(value).map(Target::describe))
        .or_else(|| as_ref::<Optimizer>(value).map(|o| o.text.clone()))
        .or_else(|| as_ref::<Configured>(value).map(|s| format!("{s:?}")))
        .or_else(|| value.downcast_ref::<Arc<dyn Model>>().map(|m| m.describe()));
    described.map(Shown::text)
}

fn of_figure(figure: &Figure) -> Shown {
    match figure.to_svg() {
        Ok(svg) => Shown {
            text: figure.to_text(80, false),
            html: None,
            svg: Some(svg),
        },
        Err(e) => Shown::text(format!("figure '{}': {e:#}", figure.title)),
    }
}

fn of_summary(summary: &Summary) -> Shown {
    let (headers, rows) = summary.table();
    let mut html = String::new();
    for line in summary.header() {
        let marked =
            line.contains("FAILED") || line.starts_with("NOTE") || line.starts_with("QUICK");
        html += &note(line, marked);
    }
    html += &html_table(&headers, &rows);
    html.extend(summary.warning().map(|w| note(&w, true)));
    Shown {
        text: summary.to_string(),
        html: Some(html),
        svg: None,
    }
}

/// A run: its summary, or in words if there is nothing to summarise.
fn of_run(run: &Run) -> Shown {
    match Summary::new(run) {
        Ok(summary) => of_summary(&summary),
        Err(e) => Shown::text(format!("run '{}': {e:#}", run.info.name)),
    }
}

fn of_trained(trained: &Trained) -> Shown {
    let mut headers = vec!["chain".to_string()];
    headers.extend(trained.columns.clone());
    let chains = 0..trained.history.len();
    let rows = chains.map(|c| {
        let numbers = trained.kept(c).into_iter().map(|(_, v)| number(v));
        std::iter::once(c.to_string()).chain(numbers).collect()
    });
    let what = format!(
        "{}: {} ({:.1} s)",
        trained.name, trained.text, trained.seconds
    );
    let html = note(&what, false) + html_table(&headers, &rows.collect::<Vec<_>>()).as_str();
    Shown {
        text: trained.to_string(),
        html: Some(html),
        svg: None,
    }
}

/// Shape and kind of a tensor, and its numbers as rows of its last dimension.
fn of_tensor(tensor: &Tensor) -> Shown {
    let what = format!("tensor {:?} of {:?}", tensor.dims(), tensor.dtype());
    let flat = tensor
        .flatten_all()
        .and_then(|t| t.to_dtype(candle_core::DType::F64))
        .and_then(|t| t.to_vec1::<f64>());
    let width = tensor.dims().last().copied().unwrap_or(1).max(1);
    match flat {
        Ok(flat) => of_matrix(&what, flat.chunks(width).map(<[f64]>::to_vec).collect()),
        Err(_) => Shown::text(what),
    }
}

fn of_matrix(what: &str, rows: Vec<Vec<f64>>) -> Shown {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cut = |row: &Vec<f64>| {
        let mut cells: Vec<String> = row.iter().take(COLUMNS).map(|x| number(*x)).collect();
        if row.len() > COLUMNS {
            cells.push("…".into());
        }
        cells
    };
    let mut cells: Vec<_> = rows.iter().take(ROWS).map(cut).collect();
    if rows.len() > ROWS {
        cells.push(vec!["⋮".into()]);
    }
    let lines: Vec<String> = cells
        .iter()
        .map(|row| format!("[{}]", row.join(", ")))
        .collect();
    let mut headers: Vec<String> = (0..width.min(COLUMNS)).map(|k| k.to_string()).collect();
    if width > COLUMNS {
        headers.push("…".into());
    }
    Shown {
        text: format!("{what}\n{}", lines.join("\n")),
        html: Some(note(what, false) + html_table(&headers, &cells).as_str()),
        svg: None,
    }
}

/// Six digits, without needless zeros.
fn number(x: f64) -> String {
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

/// A line above or below a table.
fn note(text: &str, marked: bool) -> String {
    let weight = if marked { "bold" } else { "normal" };
    let text = escaped(text);
    format!("<div style=\"font-weight:{weight};opacity:.85;margin:.1em 0\">{text}</div>")
}

/// A table in HTML that takes its colours from the page, so that it can be read on light and on dark; numbers stand right.
pub fn html_table(headers: &[String], rows: &[Vec<String>]) -> String {
    const LINE: &str = "var(--jp-border-color1,rgba(128,128,128,.5))";
    let mut out = String::from(
        "<table style=\"border-collapse:collapse;background:transparent;color:var(--jp-content-font-color1,currentColor);font-variant-numeric:tabular-nums\">",
    );
    let cell = |tag: &str, text: &str, line: bool| {
        let align = match text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c))
            || tag == "th"
        {
            true => "right",
            false => "left",
        };
        let border = if line {
            format!("border-bottom:1px solid {LINE};")
        } else {
            String::new()
        };
        let text = escaped(text);
        format!(
            "<{tag} style=\"text-align:{align};padding:.15em .7em;{border}background:transparent\">{text}</{tag}>"
        )
    };
    if !headers.is_empty() {
        out += "<thead><tr>";
        out.extend(headers.iter().map(|h| cell("th", h, true)));
        out += "</tr></thead>";
    }
    out += "<tbody>";
    for row in rows {
        out += "<tr style=\"background:transparent\">";
        out.extend(row.iter().map(|c| cell("td", c, false)));
        out += "</tr>";
    }
    out + "</tbody></table>"
}

/// A table in plain text.
fn text_table(headers: &[String], rows: &[Vec<String>]) -> String {
    let count = rows
        .iter()
        .map(Vec::len)
        .chain([headers.len()])
        .max()
        .unwrap_or(0);
    let length = |row: &[String], k: usize| row.get(k).map_or(0, |c| c.chars().count());
    let widths: Vec<usize> = (0..count)
        .map(|k| {
            rows.iter()
                .map(|r| length(r, k))
                .chain([length(headers, k)])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * count.saturating_sub(1));
    let mut out = vec![line(headers), rule];
    out.extend(rows.iter().map(|r| line(r)));
    out.join("\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_escaped_and_take_their_colours_from_the_page() {
        let html = html_table(&["a<b".into()], &[vec!["1.5".into()], vec!["x & y".into()]]);
        assert!(
            html.contains(">a&lt;b</th>") && html.contains(">x &amp; y</td>"),
            "{html}"
        );
        assert!(html.contains("text-align:right") && html.contains("text-align:left"));
        assert!(html.contains("var(--jp-content-font-color1,currentColor)"));
        assert!(
            !html.contains('#'),
            "a fixed colour is unreadable somewhere: {html}"
        );
        let opened = html.matches("<t").count();
        assert_eq!(opened, html.matches("</t").count());
    }

    #[test]
    fn handles_are_shown_as_what_they_hold() {
        let table = Table::new(["T", "n"]).row(["0.5", "3"]);
        let direct = of(&table).unwrap();
        assert_eq!(of(&Arc::new(table)).unwrap(), direct);
        assert_eq!(direct.text, "  T  n\n──────\n0.5  3");
        assert_eq!(of(&7u8), None);
    }

    #[test]
    fn the_protocol_has_a_block_per_format() {
        let figure = Figure::default();
        let text = of(&figure).unwrap().evcxr();
        let blocks: Vec<_> = text
            .lines()
            .filter(|l| l.starts_with("EVCXR_BEGIN_CONTENT "))
            .collect();
        assert_eq!(
            blocks,
            [
                "EVCXR_BEGIN_CONTENT text/plain",
                "EVCXR_BEGIN_CONTENT image/svg+xml"
            ]
        );
        assert_eq!(
            text.lines().filter(|l| *l == "EVCXR_END_CONTENT").count(),
            2
        );
        assert!(text.contains("<svg"));
    }

    #[test]
    fn large_tensors_are_cut_and_small_ones_whole() {
        let device = candle_core::Device::Cpu;
        let small = Tensor::new(&[[1f32, 2.5], [3.0, 4.0]], &device).unwrap();
        let shown = of(&small).unwrap();
        assert_eq!(shown.text, "tensor [2, 2] of F32\n[1, 2.5]\n[3, 4]");
        let large = Tensor::zeros((500, 500), candle_core::DType::F32, &device).unwrap();
        let shown = of(&large).unwrap();
        assert_eq!(shown.text.lines().count(), 2 + ROWS);
        assert!(shown.html.unwrap().len() < 100_000);
    }
}
