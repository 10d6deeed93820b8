//! How tensors print: as NumPy's arrays do.

use crate::error::Result;
use crate::kernels::tensor::{Graph, Shape, Tensor};

/// Above this many numbers, only the ends of each axis are shown.
const MANY: usize = 1000;
/// How many at either end.
const EDGE: usize = 3;
/// Longest line.
const LINE: usize = 100;

pub(super) fn show(t: &Tensor) -> String {
    let shape = match t.shape() {
        Ok(shape) => shape,
        Err(_) => return "tensor of inputs, to be traced".into(),
    };
    if let Some(v) = t.as_vector() {
        let (all, shown) = (v.numbers(), 8);
        let each = all.iter().take(shown).map(|x| format!("{x:?}"));
        let more = match all.len() > shown {
            true => format!(", … {} in all", all.len()),
            false => String::new(),
        };
        return format!("[{}{more}]", each.collect::<Vec<_>>().join(", "));
    }
    if t.is_energy()
        && let Ok(text) = formulas(t, &shape)
    {
        return text;
    }
    let Ok(numbers) = t.to_f64("print") else {
        return format!("tensor of shape {shape}, to be traced");
    };
    let dims = &shape.dims;
    let cut = numbers.len() > MANY;
    let mut seen = Vec::new();
    visible(&numbers, dims, cut, &mut seen);
    let form = Form::of(&seen);
    let width = seen.iter().map(|x| form.text(*x).chars().count()).max();
    let mut out = String::new();
    write(&numbers, dims, cut, &form, width.unwrap_or(0), 1, &mut out);
    if cut {
        out += &format!("  {shape}");
    }
    out
}

/// What a tensor of an energy is in terms of parameters; of several numbers the first.
fn formulas(t: &Tensor, shape: &Shape) -> Result<String> {
    let graph = Graph::new(&t.symbol()?)?;
    let each = (0..shape.count().min(8)).map(|i| graph.formula(i));
    let each = each.collect::<Result<Vec<_>>>()?.join(", ");
    Ok(match shape.rank() {
        0 => each,
        _ => format!("[{each}]"),
    })
}

/// Which entries of an axis are shown; none for the gap.
fn entries(length: usize, cut: bool) -> Vec<Option<usize>> {
    if !cut || length <= 2 * EDGE + 1 {
        return (0..length).map(Some).collect();
    }
    let first = (0..EDGE).map(Some);
    first
        .chain([None])
        .chain((length - EDGE..length).map(Some))
        .collect()
}

fn visible(numbers: &[f64], dims: &[usize], cut: bool, out: &mut Vec<f64>) {
    let Some((length, rest)) = dims.split_first() else {
        return out.extend(numbers.first());
    };
    let size = rest.iter().product::<usize>();
    for i in entries(*length, cut).into_iter().flatten() {
        visible(&numbers[i * size..(i + 1) * size], rest, cut, out);
    }
}

/// How all numbers of a tensor are written.
struct Form {
    scientific: bool,
    digits: usize,
}

impl Form {
    fn of(all: &[f64]) -> Self {
        let sizes = || {
            all.iter()
                .map(|x| x.abs())
                .filter(|x| *x > 0.0 && x.is_finite())
        };
        let (most, least) = (
            sizes().fold(0.0, f64::max),
            sizes().fold(f64::INFINITY, f64::min),
        );
        let scientific = most >= 1e8 || least < 1e-4 || most / least > 1e6;
        let most_digits = if scientific { 4 } else { 5 };
        let mut out = Self {
            scientific,
            digits: most_digits,
        };
        // No more digits than any number needs.
        let exact = |f: &Self| {
            all.iter().all(|x| {
                let long = Self {
                    digits: most_digits,
                    ..*f
                }
                .value(*x);
                f.value(*x) == long || !x.is_finite()
            })
        };
        for digits in 0..most_digits {
            out.digits = digits;
            if exact(&out) {
                return out;
            }
        }
        out.digits = most_digits;
        out
    }

    fn text(&self, x: f64) -> String {
        if !x.is_finite() {
            return format!("{x}");
        }
        match self.scientific {
            true => format!("{x:.*e}", self.digits),
            false if self.digits == 0 => format!("{x:.0}."),
            false => format!("{x:.*}", self.digits),
        }
    }

    fn value(&self, x: f64) -> f64 {
        self.text(x)
            .trim_end_matches('.')
            .parse()
            .unwrap_or(f64::NAN)
    }
}

fn write(
    numbers: &[f64],
    dims: &[usize],
    cut: bool,
    form: &Form,
    width: usize,
    depth: usize,
    out: &mut String,
) {
    let Some((length, rest)) = dims.split_first() else {
        let x = numbers.first().copied().unwrap_or(f64::NAN);
        *out += &format!("{:>width$}", form.text(x));
        return;
    };
    let size = rest.iter().product::<usize>();
    let indent = " ".repeat(depth);
    let mut column = depth;
    *out += "[";
    for (k, entry) in entries(*length, cut).into_iter().enumerate() {
        if k > 0 && !rest.is_empty() {
            *out += &"\n".repeat(rest.len());
            *out += &indent;
        } else if k > 0 {
            column += width + 1;
            match column + width > LINE {
                true => {
                    *out += "\n";
                    *out += &indent;
                    column = depth;
                }
                false => *out += " ",
            }
        }
        match entry {
            Some(i) => write(
                &numbers[i * size..(i + 1) * size],
                rest,
                cut,
                form,
                width,
                depth + 1,
                out,
            ),
            None => *out += "…",
        }
    }
    *out += "]";
}
