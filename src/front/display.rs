//! Objects as a notebook shows them: plain text, and HTML or SVG beside it; in Rust notebooks by evcxr's protocol.

use super::notebook::cell_protocol::{self, Mark};
use super::notebook::session::Value;
use crate::object::{Held, Object};
use crate::plot::Figure;
use crate::registry::{self, Visitor};
use crate::simulation::compare::Comparison;
use crate::simulation::evidence::Evidence;
use crate::simulation::llc::Estimate;
use crate::simulation::summary::Summary;
use crate::simulation::verify::Verification;
use candle_core::Tensor;
use std::any::Any;
use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;

pub use crate::object::Shown;
pub use crate::table::Table;

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

/// Show a value in the middle of a cell: `display(&run)`, `display(figure)`, `display("text")`.
pub fn display(value: impl Displayed) {
    value.tell(Mark::Shown);
}

/// Remove what the cell has shown so far, at once or, with `wait`, when it shows something new.
pub fn clear_output(wait: bool) {
    if cell_protocol::wanted() {
        crate::output::print(Mark::Clear(wait).line());
    }
}

/// What [`display`] takes: a reference to anything printable, or a value of these types.
pub trait Displayed {
    /// Tell whoever runs the cells.
    #[doc(hidden)]
    fn tell(&self, mark: fn(Shown) -> Mark);
}

impl<T: Any + Debug> Displayed for &T {
    fn tell(&self, mark: fn(Shown) -> Mark) {
        tell(*self, mark);
    }
}

impl Displayed for &str {
    fn tell(&self, mark: fn(Shown) -> Mark) {
        tell(&Shown::text(*self), mark);
    }
}

impl<T: Any + Debug + Clone> Displayed for &[T] {
    fn tell(&self, mark: fn(Shown) -> Mark) {
        tell(&self.to_vec(), mark);
    }
}

macro_rules! displayed {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> Displayed for $type {
            fn tell(&self, mark: fn(Shown) -> Mark) {
                tell(self, mark);
            }
        }
    )*};
}
displayed! {
    [] bool, [] char, [] f32, [] f64, [] i32, [] i64, [] u32, [] u64, [] usize, [] String,
    [T: Any + Debug + ?Sized] Arc<T>, [T: Any + Debug] Option<T>, [T: Any + Debug] Vec<T>, [T: Any + Debug, const N: usize] [T; N],
    [] Figure, [] Table, [] Shown, [] Tensor, [] Value, [] Summary, [] Comparison, [] Verification, [] Estimate, [] Evidence,
}

fn tell<T: Any + Debug>(value: &T, mark: fn(Shown) -> Mark) {
    let shown = of(value).unwrap_or_else(|| Shown::text(format!("{value:?}")));
    let text = match cell_protocol::wanted() {
        true => mark(shown).line(),
        false => shown.evcxr(),
    };
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// How a value is shown, if it is an object of the program, a handle to one, or numbers.
pub fn of(value: &dyn Any) -> Option<Shown> {
    let mut find = Find { value, found: None };
    registry::objects(&mut find);
    find.found.or_else(|| plain(value))
}

/// Looks for the type of a value among those of all objects.
struct Find<'a> {
    value: &'a dyn Any,
    found: Option<Shown>,
}

impl Visitor for Find<'_> {
    fn held<H: Held>(&mut self, _: &'static str) {
        if let Some(x) = as_ref::<H>(self.value) {
            self.found = Some(x.object().shown());
        }
    }

    fn object<T: Object>(&mut self, _: &'static str) {
        if let Some(x) = as_ref::<T>(self.value) {
            self.found = Some(x.shown());
        }
    }
}

/// A value, or what a handle to it holds.
fn as_ref<T: Any>(value: &dyn Any) -> Option<&T> {
    let handle = value.downcast_ref::<Arc<T>>().map(|x| &**x);
    handle.or_else(|| value.downcast_ref::<T>())
}

/// How tables, texts and numbers are shown.
fn plain(value: &dyn Any) -> Option<Shown> {
    if let Some(table) = as_ref::<Table>(value) {
        return Some(Shown::table(table));
    }
    if let Some(tensor) = as_ref::<Tensor>(value) {
        return Some(of_tensor(tensor));
    }
    if let Some(v) = as_ref::<Vec<f64>>(value) {
        let what = format!("{} numbers", v.len());
        return Some(Shown::matrix(&what, std::slice::from_ref(v)));
    }
    if let Some(v) = as_ref::<Vec<f32>>(value) {
        let row = v.iter().map(|x| f64::from(*x)).collect();
        return Some(Shown::matrix(&format!("{} numbers", v.len()), &[row]));
    }
    if let Some(rows) = as_ref::<Vec<Vec<f64>>>(value) {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let what = format!("{} × {width} numbers", rows.len());
        return Some(Shown::matrix(&what, rows));
    }
    if let Some(value) = value.downcast_ref::<Value>() {
        return Some(value.shown());
    }
    let text = value.downcast_ref::<String>()?;
    Some(Shown::text(format!("{text:?}")))
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
        Ok(flat) => {
            let rows: Vec<_> = flat.chunks(width).map(<[f64]>::to_vec).collect();
            Shown::matrix(&what, &rows)
        }
        Err(_) => Shown::text(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ROWS;
    use crate::plot::Figure;

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
                "EVCXR_BEGIN_CONTENT text/html",
                "EVCXR_BEGIN_CONTENT image/svg+xml"
            ]
        );
        assert_eq!(
            text.lines().filter(|l| *l == "EVCXR_END_CONTENT").count(),
            3
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
