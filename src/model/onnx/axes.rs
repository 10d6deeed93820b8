//! Operators of ONNX that move numbers about, count them, or sum them along axes.

use super::node::{LONGEST, Node, Operator, sizes};
use super::value::{ROWS, Value};
use crate::error::Result;
use crate::kernels::tensor::{Binary, Reduce, Tensor, Unary};
use crate::memory;
use anyhow::{anyhow, bail, ensure};

pub const OPERATORS: &[(&str, Operator)] = &[
    ("Concat", Operator::Value(concat)),
    ("Constant", Operator::Value(constant)),
    ("ConstantOfShape", Operator::Value(filled)),
    ("CumSum", Operator::Value(cumulated)),
    ("DepthToSpace", Operator::Value(depth_to_space)),
    ("Expand", Operator::Value(expand)),
    ("Flatten", Operator::Value(flatten)),
    ("Gather", Operator::Value(gather)),
    ("Pad", Operator::Value(pad)),
    ("Range", Operator::Value(range)),
    (
        "ReduceL1",
        Operator::Value(|n| {
            reduce(
                n,
                |x, a| x.unary(Unary::Abs)?.reduce(Reduce::Sum, a, true),
                Ok,
            )
        }),
    ),
    (
        "ReduceL2",
        Operator::Value(|n| reduce(n, squares, |x| x.unary(Unary::Sqrt))),
    ),
    (
        "ReduceLogSum",
        Operator::Value(|n| reduce(n, sum, |x| x.unary(Unary::Ln))),
    ),
    (
        "ReduceLogSumExp",
        Operator::Value(|n| reduce(n, |x, a| x.log_sum_exp(Some(a), true), Ok)),
    ),
    (
        "ReduceMax",
        Operator::Value(|n| reduce(n, |x, a| x.reduce(Reduce::Max, a, true), Ok)),
    ),
    (
        "ReduceMean",
        Operator::Value(|n| reduce(n, |x, a| x.mean(Some(a), true), Ok)),
    ),
    (
        "ReduceMin",
        Operator::Value(|n| reduce(n, |x, a| x.reduce(Reduce::Min, a, true), Ok)),
    ),
    ("ReduceProd", Operator::Value(product)),
    ("ReduceSum", Operator::Value(|n| reduce(n, sum, Ok))),
    (
        "ReduceSumSquare",
        Operator::Value(|n| reduce(n, squares, Ok)),
    ),
    ("Reshape", Operator::Value(reshape)),
    ("Resize", Operator::Value(resize)),
    ("Shape", Operator::Value(shape)),
    ("Size", Operator::Value(size)),
    ("Slice", Operator::Value(slice)),
    ("SpaceToDepth", Operator::Value(space_to_depth)),
    ("Split", Operator::Values(split)),
    ("Squeeze", Operator::Value(squeeze)),
    ("Tile", Operator::Value(tile)),
    ("Transpose", Operator::Value(transpose)),
    ("Trilu", Operator::Value(triangle)),
    ("Unsqueeze", Operator::Value(unsqueeze)),
];

fn list(all: &[usize]) -> Result<Value> {
    Value::list(all.iter().map(|n| *n as f64).collect())
}

/// Lengths, where rows are one: what is the same for all of them is repeated where it meets them.
fn without_rows(dims: &[usize]) -> Vec<usize> {
    let one = |n: &usize| {
        if *n > 0 && n.is_multiple_of(ROWS) {
            1
        } else {
            *n
        }
    };
    dims.iter().map(one).collect()
}

fn concat(n: &Node) -> Result<Value> {
    let all = n.given();
    let given: Vec<_> = all
        .iter()
        .copied()
        .filter(|v| !v.dims().is_ok_and(|d| d == [0]))
        .collect();
    match given[..] {
        [] => Value::list(Vec::new()),
        [one] => Ok(one.clone()),
        [first, ..] => Value::concat(&given, first.axis(n.int("axis", 0))?),
    }
}

fn constant(n: &Node) -> Result<Value> {
    let message = n.message.attributes.first();
    let a = message.ok_or_else(|| anyhow!("it has no value"))?;
    match (&*a.name, &a.tensor) {
        ("value", Some(t)) => super::numbers::numbers(t, n.folder)?.into_value(),
        ("value_float", _) => Value::numbers(vec![f64::from(a.float)], &[], false),
        ("value_int", _) => Value::numbers(vec![a.int as f64], &[], true),
        ("value_ints", _) => Value::list(a.ints.iter().map(|i| *i as f64).collect()),
        ("value_floats", _) => {
            let all: Vec<_> = a.floats.iter().map(|x| f64::from(*x)).collect();
            let count = all.len();
            Value::numbers(all, &[count], false)
        }
        (other, _) => bail!("constants by the attribute '{other}' are not supported"),
    }
}

/// The same number, so many times.
fn repeated(x: f64, dims: &[usize], whole: bool) -> Result<Value> {
    memory::check_elements::<f64>(dims, "its result")?;
    Value::numbers(vec![x; dims.iter().product()], dims, whole)
}

fn filled(n: &Node) -> Result<Value> {
    let dims = sizes("shape", &n.input(0)?.to_ints("its shape")?)?;
    let value = n.attribute("value").and_then(|a| a.tensor.as_ref());
    let value = value.map(|t| super::numbers::numbers(t, n.folder)?.into_value());
    let (x, whole) = match value.transpose()? {
        Some(v) => (v.to_f64("its value")?[0], v.whole),
        None => (0.0, false),
    };
    match dims[..] {
        [0] => Value::list(Vec::new()),
        _ => repeated(x, &without_rows(&dims), whole),
    }
}

fn cumulated(n: &Node) -> Result<Value> {
    n.only("exclusive", 0)?;
    n.only("reverse", 0)?;
    let x = n.input(0)?;
    let axis = n.listed("axis", 1)?.and_then(|a| a.first().copied());
    let axis = x.inner(x.axis(axis.unwrap_or(0))?)?;
    Ok(x.with(x.tensor.cumsum(axis)?))
}

fn depth_to_space(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let b = n.int("blocksize", 1).max(1) as usize;
    let [r, c, h, w] = four(x)?;
    let columns_first = n.text("mode", "DCR") == "CRD";
    let (dims, order) = match columns_first {
        true => ([r, c / (b * b), b, b, h, w], [0, 1, 4, 2, 5, 3]),
        false => ([r, b, b, c / (b * b), h, w], [0, 3, 4, 1, 5, 2]),
    };
    let apart = x.reshape(&dims)?.permute(&order)?;
    apart.reshape(&[r, c / (b * b), h * b, w * b])
}

fn space_to_depth(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let b = n.int("blocksize", 1).max(1) as usize;
    let [r, c, h, w] = four(x)?;
    let apart = x.reshape(&[r, c, h / b, b, w / b, b])?;
    let apart = apart.permute(&[0, 3, 5, 1, 2, 4])?;
    apart.reshape(&[r, c * b * b, h / b, w / b])
}

fn four(x: &Value) -> Result<[usize; 4]> {
    let dims = x.dims()?;
    let count = dims.len();
    <[usize; 4]>::try_from(dims).map_err(|_| anyhow!("images have 4 axes, but there are {count}"))
}

fn expand(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let to = sizes("shape", &n.input(1)?.to_ints("its shape")?)?;
    let ones = repeated(1.0, &without_rows(&to), true)?;
    let now = x.dims()?;
    let lead = now.len().saturating_sub(to.len());
    let same = to.len() <= now.len()
        && without_rows(&to)
            .iter()
            .zip(&now[lead..])
            .all(|(t, n)| t == n || *t == 1);
    match same {
        true => Ok(x.clone()),
        false => Value::elementwise(&[x, &ones], |t| t[0].binary(Binary::Multiply, t[1])),
    }
}

fn flatten(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let axis = n.int("axis", 1);
    let axis = if axis == dims.len() as i64 {
        dims.len()
    } else {
        x.axis(axis)?
    };
    x.reshape(&[dims[..axis].iter().product(), dims[axis..].iter().product()])
}

/// Entries along an axis, which are known; or rows of a table, which the data name.
fn gather(n: &Node) -> Result<Value> {
    let (x, entries) = (n.input(0)?, n.input(1)?);
    let axis = x.axis(n.int("axis", 0))?;
    let dims = x.dims()?;
    let rest = &dims[axis + 1..];
    if !entries.is_known() {
        ensure!(
            axis == 0 && !x.has_rows(),
            "entries that depend on the data are supported only along the first axis of a table"
        );
        let table = x.reshape(&[dims[0], rest.iter().product()])?;
        let like = &entries.tensor;
        let found = entries.with(like.embedding(&table.tensor.like(like)?)?);
        let shape = [&entries.dims()?, rest].concat();
        return found.with_whole(x.whole).reshape(&shape);
    }
    let length = dims[axis] as i64;
    let from_end = |i: i64| if i < 0 { i + length } else { i };
    let all = entries.to_ints("its entries")?.into_iter().map(from_end);
    let all = sizes("entries", &all.collect::<Vec<_>>())?;
    let picked = x.pick(axis, &all)?;
    if all.is_empty() {
        return Ok(picked);
    }
    picked.reshape(&[&dims[..axis], &entries.dims()?, rest].concat())
}

fn pad(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let given = n.listed("pads", 1)?.unwrap_or_default();
    let axes = match n.optional(3) {
        Some(v) => v.to_ints("its axes")?,
        None => (0..dims.len() as i64).collect(),
    };
    ensure!(
        given.len() == 2 * axes.len(),
        "it has {} pads for {} axes",
        given.len(),
        axes.len()
    );
    let mut edges = vec![[0i64; 2]; dims.len()];
    for (i, axis) in axes.iter().enumerate() {
        edges[x.axis(*axis)?] = [given[i], given[i + axes.len()]];
    }
    let mut out = x.clone();
    let mode = n.text("mode", "constant");
    let fill = n.number("value", 2)?.unwrap_or(0.0) as f32;
    for (axis, [before, behind]) in edges.into_iter().enumerate() {
        if [before, behind] == [0, 0] {
            continue;
        }
        let length = dims[axis] as i64;
        let place = |i: i64| match &*mode {
            "edge" => Some(i.clamp(0, length - 1)),
            "reflect" => Some((length - 1 - (length - 1 - i.abs()).abs()).max(0)),
            "wrap" => Some(i.rem_euclid(length)),
            _ => Some(i).filter(|i| (0..length).contains(i)),
        };
        ensure!(
            matches!(&*mode, "constant" | "edge" | "reflect" | "wrap"),
            "the mode '{mode}' is not supported"
        );
        ensure!(
            mode == "constant" || length > 0,
            "an axis of length 0 has nothing to be padded with"
        );
        let inner = out.inner(axis)? as usize - usize::from(out.has_rows());
        let fine = |pad: i64| pad.unsigned_abs() <= LONGEST as u64;
        ensure!(
            fine(before) && fine(behind),
            "it pads an axis by {before} and {behind}; at most {LONGEST} are possible"
        );
        let places: Vec<_> = (-before..length + behind).map(place).collect();
        out = match places.iter().copied().collect::<Option<Vec<_>>>() {
            Some(all) => out.pick(axis, &sizes("pads", &all)?)?,
            None if before < 0 || behind < 0 => bail!("it cuts one edge and pads another"),
            None => {
                let own = out.tensor.shape()?.dims.len();
                let mut all = vec![[0, 0]; own - inner];
                all[0] = [before as usize, behind as usize];
                out.with(out.tensor.pad(&all, fill)?)
            }
        };
    }
    Ok(out)
}

fn range(n: &Node) -> Result<Value> {
    let given = (0..3).map(|i| Ok(n.input(i)?.to_f64("its end")?[0]));
    let [start, end, step] = given.collect::<Result<Vec<_>>>()?[..] else {
        bail!("it needs a start, an end and a step");
    };
    let count = ((end - start) / step).ceil().max(0.0);
    ensure!(
        count < ROWS as f64,
        "it counts the examples, which would mix them"
    );
    memory::check_elements::<f64>(&[count as usize], "its result")?;
    let all = (0..count as usize).map(|i| start + step * i as f64);
    Ok(Value::list(all.collect())?.with_whole(n.input(0)?.whole))
}

fn sum(x: &Tensor, axis: i64) -> Result<Tensor> {
    x.reduce(Reduce::Sum, axis, true)
}

/// Sums of squares along the first axis that is reduced; of those along the others, sums.
fn squares(x: &Tensor, axis: i64) -> Result<Tensor> {
    sum(&x.unary(Unary::Power(2))?, axis)
}

/// Along some axes, one after the other, and then once more for each number.
fn reduce(
    n: &Node,
    each: fn(&Tensor, i64) -> Result<Tensor>,
    last: fn(Tensor) -> Result<Tensor>,
) -> Result<Value> {
    let x = n.input(0)?;
    let mut dims = x.dims()?;
    let axes = match n.listed("axes", 1)?.filter(|a| !a.is_empty()) {
        Some(given) => given
            .iter()
            .map(|a| x.axis(*a))
            .collect::<Result<Vec<_>>>()?,
        None if n.flag("noop_with_empty_axes", false) => return Ok(x.clone()),
        None => (0..dims.len()).collect(),
    };
    // What is summed is one axis, so that squares are taken once.
    let rest = (0..dims.len()).filter(|a| !axes.contains(a));
    let order: Vec<_> = rest.chain(axes.iter().copied()).collect();
    let kept = dims.len() - axes.len();
    let (flat, axis) = match axes[..] {
        [axis] => (x.clone(), axis),
        _ => {
            let apart = x.permute(&order)?;
            let lengths = apart.dims()?;
            let merged = lengths[kept..].iter().product();
            (
                apart.reshape(&[&lengths[..kept], &[merged]].concat())?,
                kept,
            )
        }
    };
    let out = flat.with(last(each(&flat.tensor, flat.inner(axis)?)?)?);
    let keep = n.flag("keepdims", true);
    for a in &axes {
        dims[*a] = if keep { 1 } else { 0 };
    }
    out.reshape(&dims.into_iter().filter(|d| *d > 0).collect::<Vec<_>>())
}

fn product(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    ensure!(x.rank()? <= 1, "it is supported for lists of integers only");
    let all = x.to_f64("its operand")?.into_iter().product();
    match n.flag("keepdims", true) {
        true => Ok(Value::list(vec![all])?.with_whole(x.whole)),
        false => Value::numbers(vec![all], &[], x.whole),
    }
}

fn reshape(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let given = n.listed("shape", 1)?.unwrap_or_default();
    let zero = n.flag("allowzero", false);
    let mut to = Vec::new();
    for (i, d) in given.iter().enumerate() {
        to.push(match d {
            0 if !zero => *dims
                .get(i)
                .ok_or_else(|| anyhow!("it keeps axis {i}, which there is not"))?,
            -1 => OPEN,
            d => *sizes("shape", &[*d])?.first().unwrap_or(&0),
        });
    }
    // A file that was made for so many rows may say their number.
    let rows = |i: usize| {
        let mut to = to.clone();
        to[i] = ROWS;
        x.reshape(&closed(to, &dims)?)
    };
    let written = (0..to.len()).filter(|i| x.has_rows() && n.batch == Some(to[*i]));
    match written.map(rows).find_map(Result::ok) {
        Some(found) => Ok(found),
        None => x.reshape(&closed(to, &dims)?),
    }
}

/// A length that follows from the others.
const OPEN: usize = usize::MAX;

/// With all lengths, for as many numbers as these have.
fn closed(mut to: Vec<usize>, dims: &[usize]) -> Result<Vec<usize>> {
    let count: usize = dims.iter().product();
    if let Some(open) = to.iter().position(|d| *d == OPEN) {
        let mut rest = to.iter().filter(|d| **d != OPEN);
        let rest = rest.try_fold(1usize, |n, d| n.checked_mul(*d));
        let rest = rest.filter(|r| *r > 0 && count.is_multiple_of(*r));
        to[open] = count / rest.ok_or_else(|| anyhow!("{count} numbers make no {to:?}"))?;
    }
    Ok(to)
}

/// Images of another size, each pixel of which is the nearest one.
fn resize(n: &Node) -> Result<Value> {
    let mode = n.text("mode", "nearest");
    ensure!(
        mode == "nearest",
        "the mode '{mode}' is not supported; only \"nearest\" is"
    );
    let x = n.input(0)?;
    let dims = x.dims()?;
    let scales = n.optional(2).map(|v| v.to_f64("its scales")).transpose()?;
    let lengths = n.optional(3).map(|v| v.to_f64("its sizes")).transpose()?;
    let to = |i: usize| match (&scales, &lengths) {
        (_, Some(all)) if !all.is_empty() => all.get(i).map(|n| (*n, *n / dims[i] as f64)),
        (Some(all), _) => all.get(i).map(|s| ((dims[i] as f64 * s).floor(), *s)),
        _ => None,
    };
    let where_from = n.text("coordinate_transformation_mode", "half_pixel");
    let round = n.text("nearest_mode", "round_prefer_floor");
    let mut out = x.clone();
    for (axis, length) in dims.iter().enumerate() {
        let (count, scale) = to(axis).ok_or_else(|| anyhow!("it has no size for axis {axis}"))?;
        if count == *length as f64 {
            continue;
        }
        let last = *length as f64 - 1.0;
        let place = |i: usize| -> Result<usize> {
            let i = i as f64;
            let at = match &*where_from {
                "asymmetric" => i / scale,
                "half_pixel" | "pytorch_half_pixel" => (i + 0.5) / scale - 0.5,
                "align_corners" => i * last / (count - 1.0).max(1.0),
                other => bail!("the coordinates '{other}' are not supported"),
            };
            let at = match &*round {
                "floor" => at.floor(),
                "ceil" => at.ceil(),
                "round_prefer_ceil" => (at + 0.5).floor(),
                _ => (at - 0.5).ceil(),
            };
            Ok(at.clamp(0.0, last) as usize)
        };
        ensure!(count < ROWS as f64, "it would make more examples");
        let all = (0..count as usize).map(place);
        out = out.pick(axis, &all.collect::<Result<Vec<_>>>()?)?;
    }
    Ok(out)
}

fn shape(n: &Node) -> Result<Value> {
    let dims = n.input(0)?.dims()?;
    let rank = dims.len() as i64;
    let place = |i: i64| (if i < 0 { i + rank } else { i }).clamp(0, rank) as usize;
    let (start, end) = (place(n.int("start", 0)), place(n.int("end", rank)));
    list(&dims[start.min(end)..end])
}

fn size(n: &Node) -> Result<Value> {
    let count: usize = n.input(0)?.dims()?.iter().product();
    Value::numbers(vec![count as f64], &[], true)
}

fn slice(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let starts = n.listed("starts", 1)?.unwrap_or_default();
    let ends = n.listed("ends", 2)?.unwrap_or_default();
    let axes = n
        .listed("axes", 3)?
        .unwrap_or((0..starts.len() as i64).collect());
    let steps = n.listed("steps", 4)?.unwrap_or(vec![1; starts.len()]);
    ensure!(
        starts.len() == ends.len() && starts.len() == axes.len() && starts.len() == steps.len(),
        "its starts, ends, axes and steps are not as many"
    );
    let mut out = x.clone();
    for i in 0..starts.len() {
        let axis = x.axis(axes[i])?;
        let length = x.dims()?[axis] as i64;
        let step = steps[i];
        ensure!(step != 0, "its step is 0");
        let from_end = |i: i64| if i < 0 { i.saturating_add(length) } else { i };
        let (low, high) = if step > 0 {
            (0, length)
        } else {
            (-1, length - 1)
        };
        let start = from_end(starts[i]).clamp(0, high.max(0));
        let end = from_end(ends[i]).clamp(low, length);
        if length == 0 || (start, end, step) == (0, length, 1) {
            continue;
        }
        out.inner(axis)?;
        let mut at = start;
        let mut all = Vec::new();
        while if step > 0 { at < end } else { at > end } {
            all.push(at as usize);
            at = at.saturating_add(step);
        }
        out = out.pick(axis, &all)?;
    }
    Ok(out)
}

fn split(n: &Node) -> Result<Vec<Value>> {
    let x = n.input(0)?;
    let axis = x.axis(n.int("axis", 0))?;
    let length = x.dims()?[axis];
    let count = n.message.outputs.len();
    let lengths = match n.listed("split", 1)? {
        Some(given) => sizes("split", &given)?,
        None => {
            let each = length.div_ceil(count.max(1));
            (0..count)
                .map(|i| each.min(length.saturating_sub(i * each)))
                .collect()
        }
    };
    parts(x, axis, &lengths)
}

/// Parts of these lengths along an axis.
pub fn parts(x: &Value, axis: usize, lengths: &[usize]) -> Result<Vec<Value>> {
    x.inner(axis)?;
    let length = x.dims()?[axis];
    let sum = lengths.iter().try_fold(0usize, |s, l| s.checked_add(*l));
    ensure!(
        sum == Some(length),
        "its parts {lengths:?} do not make the {length} entries of the axis"
    );
    let mut at = 0;
    let each = lengths.iter().map(|l| {
        at += l;
        x.pick(axis, &(at - l..at).collect::<Vec<_>>())
    });
    each.collect()
}

fn squeeze(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let axes = match n.listed("axes", 1)? {
        Some(given) => given
            .iter()
            .map(|a| x.axis(*a))
            .collect::<Result<Vec<_>>>()?,
        None => (0..dims.len()).filter(|a| dims[*a] == 1).collect(),
    };
    let wrong = axes.iter().find(|a| dims[**a] != 1);
    ensure!(wrong.is_none(), "it drops an axis that is longer than 1");
    let rest = (0..dims.len()).filter(|a| !axes.contains(a));
    x.reshape(&rest.map(|a| dims[a]).collect::<Vec<_>>())
}

fn unsqueeze(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let axes = n.listed("axes", 1)?.unwrap_or_default();
    let rank = (dims.len() + axes.len()) as i64;
    let axes: Vec<_> = axes
        .iter()
        .map(|a| if *a < 0 { a + rank } else { *a })
        .collect();
    let mut rest = dims.into_iter();
    let each = (0..rank).map(|i| match axes.contains(&i) {
        true => Some(1),
        false => rest.next(),
    });
    let to = each.collect::<Option<Vec<_>>>();
    x.reshape(&to.ok_or_else(|| anyhow!("its axes are {axes:?}"))?)
}

fn tile(n: &Node) -> Result<Value> {
    let mut out = n.input(0)?.clone();
    let times = without_rows(&sizes("repeats", &n.input(1)?.to_ints("its repeats")?)?);
    for (axis, times) in times.into_iter().enumerate().filter(|t| t.1 != 1) {
        let length = out.dims()?[axis];
        out.inner(axis)?;
        memory::check_elements::<usize>(&[times, length], "its result")?;
        let entries: Vec<_> = (0..times * length).map(|i| i % length).collect();
        out = out.pick(axis, &entries)?;
    }
    Ok(out)
}

fn transpose(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let rank = x.rank()?;
    let order = n.sizes("perm")?.unwrap_or((0..rank).rev().collect());
    let mut sorted = order.clone();
    sorted.sort_unstable();
    ensure!(
        sorted.into_iter().eq(0..rank),
        "{order:?} is no order of its {rank} axes"
    );
    x.permute(&order)
}

fn triangle(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let [.., rows, columns] = dims[..] else {
        bail!("it needs matrices");
    };
    let k = n
        .listed("k", 1)?
        .and_then(|k| k.first().copied())
        .unwrap_or(0);
    let upper = n.flag("upper", true);
    let stays = |i: usize| {
        let beyond = (i % columns) as i64 - (i / columns) as i64;
        f64::from(u8::from(if upper { beyond >= k } else { beyond <= k }))
    };
    memory::check_elements::<f64>(&[rows, columns], "its result")?;
    let mask = (0..rows * columns).map(stays).collect();
    let mask = Value::numbers(mask, &[rows, columns], true)?;
    let zero = Value::numbers(vec![0.0], &[], true)?;
    let out = Value::elementwise(&[&mask, x, &zero], |t| t[0].choose(t[1], t[2]))?;
    Ok(out.with_whole(x.whole))
}
