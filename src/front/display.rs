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

pub use crate::simulation::console::Shown;
pub use crate::table::Table;

/// Rows, columns and elements of which more are not shown.
const ROWS: usize = 20;
const COLUMNS: usize = 12;

/// What evcxr calls on the value of a cell. Every value that has [`Debug`] has it while the prelude is in scope, so that a cell whose
/// value is a number is compiled once and not, after a failure, twice.
pub trait Display {
    /// Print the value between the marks of evcxr's protocol.
    fn evcxr_display(&self);
}

impl<T: Any + Debug> Display for T {
    fn evcxr_display(&self) {
        // As evcxr, which shows nothing for the value of a statement.
        if !(self as &dyn Any).is::<()>() {
            tell(self, Mark::Value);
        }
    }
}

/// Show a value in the middle of a cell.
pub fn display(value: &(impl Any + Debug)) {
    tell(value, Mark::Shown);
}

fn tell<T: Any + Debug>(value: &T, mark: fn(Shown) -> Mark) {
    let shown = of(value).unwrap_or_else(|| Shown::text(format!("{value:?}")));
    let text = match marks::wanted() {
        true => mark(shown).line(),
        false => shown.evcxr(),
    };
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
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
        return Some(of_table(table));
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
            svg: Some(svg),
            ..Shown::default()
        },
        Err(e) => Shown::text(format!("figure '{}': {e:#}", figure.title)),
    }
}

fn of_summary(summary: &Summary) -> Shown {
    Shown {
        text: summary.to_string(),
        ..of_table(&summary.table())
    }
}

fn of_table(table: &Table) -> Shown {
    Shown {
        text: table.to_string(),
        html: Some(table.to_html()),
        ..Shown::default()
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
    let titles = std::iter::once("chain".to_string()).chain(trained.columns.clone());
    let mut table = Table::new(titles).line_above(format!(
        "{}: {} ({:.1} s)",
        trained.name, trained.text, trained.seconds
    ));
    for c in 0..trained.history.len() {
        let numbers = trained.kept(c).into_iter().map(|(_, v)| number(v));
        table.push(std::iter::once(c.to_string()).chain(numbers));
    }
    Shown {
        text: trained.to_string(),
        ..of_table(&table)
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
    let mut titles: Vec<String> = (0..width.min(COLUMNS)).map(|k| k.to_string()).collect();
    if width > COLUMNS {
        titles.push("…".into());
    }
    let mut table = Table::new(titles).line_above(what);
    table.rows = cells;
    Shown {
        text: format!("{what}\n{}", lines.join("\n")),
        ..of_table(&table)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_shown_as_what_they_hold() {
        let table = Table::new(["T", "n"]).row(["0.5", "3"]);
        let direct = of(&table).unwrap();
        assert_eq!(of(&Arc::new(table)).unwrap(), direct);
        assert_eq!(direct.text, "  T  n\n0.5  3");
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
