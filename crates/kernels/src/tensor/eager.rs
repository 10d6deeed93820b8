//! Operations on numbers, by candle: at once, with candle's autograd, and as the reference of compiled programs.

use super::attention::Attention;
use super::element::{Element, Slice};
use super::operation::{Binary, NOWHERE, Operation, Reduce, Unary, matrices};
use super::shape::Shape;
use super::window::Convolution;
use candle_core::{D, DType, Result, Tensor};

/// The result of an operation; `of` are the operands' shapes, `out` that of the result, of so many rows where there are any.
pub fn apply(
    operation: &Operation,
    operands: &[Tensor],
    of: &[Shape],
    out: &Shape,
    rows: usize,
) -> Result<Tensor> {
    let double = operands.iter().any(|t| t.dtype() == DType::F64);
    let dtype = if double { DType::F64 } else { DType::F32 };
    let operands = operands
        .iter()
        .map(|t| t.to_dtype(dtype))
        .collect::<Result<Vec<_>>>()?;
    let a = &operands[0];
    let full = |s: &Shape| -> Vec<usize> {
        s.rows
            .then_some(rows)
            .into_iter()
            .chain(s.dims.iter().copied())
            .collect()
    };
    // Where an axis is once the examples are counted.
    let axis = |i: usize| i + usize::from(of[0].rows);
    match operation {
        Operation::Unary(f) => unary(*f, a),
        Operation::Binary(f) => {
            let shape = full(out);
            let a = a.broadcast_as(shape.as_slice())?;
            let b = operands[1].broadcast_as(shape.as_slice())?;
            binary(*f, &a, &b)
        }
        Operation::Choose => {
            let shape = full(out);
            let all = operands
                .iter()
                .map(|t| t.broadcast_as(shape.as_slice())?.contiguous());
            let all = all.collect::<Result<Vec<_>>>()?;
            all[0].detach().ne(0.0)?.where_cond(&all[1], &all[2])
        }
        Operation::Product => product(a, &operands[1], &of[0], &of[1], full(out)),
        Operation::Reshape(_) => a.reshape(full(out)),
        Operation::Transpose(x, y) => a.transpose(axis(*x), axis(*y))?.contiguous(),
        Operation::Slice {
            axis: at,
            start,
            count,
        } => a.narrow(axis(*at), *start, *count)?.contiguous(),
        Operation::Concat(at) => {
            let at = *at + usize::from(out.rows);
            let all = operands.iter().zip(of).map(|(t, s)| {
                let whole = Shape {
                    rows: out.rows,
                    dims: s.dims.clone(),
                };
                t.broadcast_as(full(&whole).as_slice())?.contiguous()
            });
            Tensor::cat(&all.collect::<Result<Vec<_>>>()?, at)
        }
        Operation::Take { from, fill, .. } => {
            let taken = take(a, of[0].count(), from, f32::from_bits(*fill))?;
            taken.reshape(full(out))
        }
        Operation::Convolve(c) => convolve(c, a, &operands[1], of[0].count())?.reshape(full(out)),
        Operation::Embed => {
            let numbers = a.flatten_all()?.to_dtype(DType::U32)?;
            let table = operands[1].contiguous()?;
            table.index_select(&numbers, 0)?.reshape(full(out))
        }
        Operation::Normalise { centre, epsilon } => {
            let x = match centre {
                true => a.broadcast_sub(&a.mean_keepdim(D::Minus1)?)?,
                false => a.clone(),
            };
            let variance = x.sqr()?.mean_keepdim(D::Minus1)?;
            x.broadcast_div(&(variance + f64::from_bits(*epsilon))?.sqrt()?)
        }
        Operation::Attention { causal, scale } => {
            let scale = f64::from_bits(*scale);
            attention(&operands, of, *causal, scale)?.reshape(full(out))
        }
        Operation::Reduce(how, at) => reduce(*how, a, axis(*at)),
        Operation::Softmax(at) => log_softmax(a, axis(*at))?.exp(),
        Operation::LogSoftmax(at) => log_softmax(a, axis(*at)),
    }
}

/// Entries of each of the rows, so many numbers long.
fn take(x: &Tensor, width: usize, from: &[u32], fill: f32) -> Result<Tensor> {
    let rows = x.reshape(((), width))?;
    let rest = Tensor::new(fill, x.device())?.to_dtype(x.dtype())?;
    let rest = rest.broadcast_as((rows.dim(0)?, 1))?;
    let all = Tensor::cat(&[&rows, &rest], 1)?.contiguous()?;
    let nowhere = |i: &u32| if *i == NOWHERE { width as u32 } else { *i };
    let from: Vec<u32> = from.iter().map(nowhere).collect();
    let count = from.len();
    all.index_select(&Tensor::from_vec(from, count, x.device())?, 1)
}

fn convolve(c: &Convolution, x: &Tensor, filters: &Tensor, width: usize) -> Result<Tensor> {
    let places = c.places().map(|p| p.map_or(NOWHERE, |p| p as u32));
    let taken = take(x, width, &places.collect::<Vec<_>>(), 0.0)?;
    let (window, windows) = c.columns();
    let rows = taken.dim(0)?;
    let right = taken.reshape((rows, c.groups, window, windows))?;
    let left = filters.reshape((1, c.groups, c.filters, window))?;
    let left = left
        .broadcast_as((rows, c.groups, c.filters, window))?
        .contiguous()?;
    left.matmul(&right.contiguous()?)
}

fn attention(all: &[Tensor], of: &[Shape], causal: bool, scale: f64) -> Result<Tensor> {
    let a = Attention::new(&of[0], &of[1], &of[2], scale, causal)
        .map_err(|e| candle_core::Error::Msg(e.to_string()))?;
    let ([t, s], [d, e], each) = (a.positions, a.widths, a.heads / a.groups);
    // What serves all rows is repeated for each, and keys and values for each head that they serve.
    let rows = all.iter().zip(of).filter(|(_, s)| s.rows);
    let rows = rows.map(|(t, _)| t.dim(0)).next().transpose()?.unwrap_or(1);
    let pages = |which: usize, heads: usize, each: usize, shape: (usize, usize)| {
        let own = if of[which].rows { rows } else { 1 };
        let x = all[which].reshape((own, heads, 1, shape.0, shape.1))?;
        x.broadcast_as((rows, heads, each, shape.0, shape.1))?
            .contiguous()?
            .reshape((rows * heads * each, shape.0, shape.1))
    };
    let q = pages(0, a.heads, 1, (t, d))?;
    let k = pages(1, a.groups, each, (s, d))?;
    let v = pages(2, a.groups, each, (s, e))?;
    let mut scores = (q.matmul(&k.t()?.contiguous()?)? * scale)?;
    if causal {
        let later = |i: usize| i % s > i / s + s - t;
        let hidden = (0..t * s).map(|i| if later(i) { f64::NEG_INFINITY } else { 0.0 });
        let hidden = Tensor::from_iter(hidden, scores.device())?.reshape((t, s))?;
        scores = scores.broadcast_add(&hidden.to_dtype(scores.dtype())?)?;
    }
    log_softmax(&scores, 2)?.exp()?.matmul(&v)
}

fn unary(f: Unary, x: &Tensor) -> Result<Tensor> {
    match f {
        Unary::Negate => x.neg(),
        Unary::Exp => x.exp(),
        Unary::Ln => x.log(),
        Unary::Sqrt => x.sqrt(),
        Unary::Abs => x.abs(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tanh => x.tanh(),
        Unary::Tan | Unary::Sinh | Unary::Cosh | Unary::Atan | Unary::Hold => {
            by_hand(Element::One(f), &[x])
        }
        Unary::Sigmoid => candle_nn::ops::sigmoid(x),
        Unary::Relu => x.relu(),
        // ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), which does not overflow.
        Unary::Softplus => x.relu()?.add(&(x.abs()?.neg()?.exp()? + 1.0)?.log()?),
        Unary::Gelu => x.gelu_erf(),
        Unary::GeluTanh => {
            let inner = ((x * (x.sqr()? * 0.044715)?)? + x)?;
            (x * 0.5)? * ((inner * (2.0 / std::f64::consts::PI).sqrt())?.tanh()? + 1.0)?
        }
        Unary::Silu => x * candle_nn::ops::sigmoid(x)?,
        Unary::Erf => x.erf(),
        Unary::Power(0) => x.ones_like(),
        Unary::Power(n) => {
            let mut out = x.clone();
            for _ in 1..n.unsigned_abs() {
                out = (out * x)?;
            }
            if n < 0 { out.recip() } else { Ok(out) }
        }
    }
}

fn binary(f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = a.dtype();
    // Candle would look for gradients behind a comparison, and find none.
    let (x, y) = (a.detach(), b.detach());
    match f {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Power => power(a, b),
        Binary::Max => a.maximum(b),
        Binary::Min => a.minimum(b),
        Binary::LnAddExp => by_hand(Element::Two(f), &[a, b]),
        Binary::Less => x.lt(&y)?.to_dtype(dtype),
        Binary::LessEqual => x.le(&y)?.to_dtype(dtype),
        Binary::Greater => x.gt(&y)?.to_dtype(dtype),
        Binary::GreaterEqual => x.ge(&y)?.to_dtype(dtype),
        Binary::Equal => x.eq(&y)?.to_dtype(dtype),
        Binary::NotEqual => x.ne(&y)?.to_dtype(dtype),
    }
}

/// What candle does not know: values and slopes by the functions of one element.
fn by_hand(f: Element, of: &[&Tensor]) -> Result<Tensor> {
    let flat = |t: &&Tensor| {
        let all = t.detach().to_dtype(DType::F64)?;
        all.flatten_all()?.to_vec1::<f64>()
    };
    let numbers = of.iter().map(flat).collect::<Result<Vec<_>>>()?;
    let at = |i: usize| numbers.get(i).map_or(&[][..], |n| n);
    let like = |all: &[f64]| {
        let all = Tensor::from_slice(all, of[0].shape(), of[0].device())?;
        all.to_dtype(of[0].dtype())
    };
    let operands = [at(0), at(1), at(2)];
    let mut y = vec![0.0; at(0).len()];
    f.values(|i| operands[i], Slice(0, &mut y));
    let mut out = like(&y)?;
    let ones = vec![1.0; y.len()];
    for (which, t) in of.iter().enumerate().filter(|(_, t)| t.track_op()) {
        let mut slope = vec![0.0; y.len()];
        f.slopes(|i| operands[i], &y[..], &ones[..], Slice(which, &mut slope));
        out = (out + carried(t, &like(&slope)?)?)?;
    }
    Ok(out)
}

/// a^b. Candle's own is exp(b ln a), which knows no bases below 0; derivatives are those of compiled models.
fn power(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let flat = |t: &Tensor| t.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
    let (x, y) = (flat(&a.detach())?, flat(&b.detach())?);
    let of = |f: &dyn Fn(f64, f64) -> f64| {
        let all: Vec<f64> = x.iter().zip(&y).map(|(x, y)| f(*x, *y)).collect();
        Tensor::from_vec(all, a.shape(), a.device())?.to_dtype(a.dtype())
    };
    let mut out = of(&f64::powf)?;
    if a.track_op() {
        let slope = of(&|x, y| if y == 0.0 { 0.0 } else { y * x.powf(y - 1.0) })?;
        out = (out + carried(a, &slope)?)?;
    }
    if b.track_op() {
        let slope = of(&|x, y| match x.powf(y) {
            0.0 => 0.0,
            z => z * x.ln(),
        })?;
        out = (out + carried(b, &slope)?)?;
    }
    Ok(out)
}

/// Zeros that carry the gradient of a tensor times a slope. The value stays where the slope is infinite, or none.
fn carried(x: &Tensor, slope: &Tensor) -> Result<Tensor> {
    let most = f64::from(f32::MAX);
    let slope = &slope.clamp(-most, most)?;
    let finite = slope.abs()?.lt(f64::INFINITY)?;
    finite.where_cond(&change(x)?.mul(slope)?, &slope.zeros_like()?)
}

/// Zeros that carry the gradient of a tensor, where it is finite.
fn change(x: &Tensor) -> Result<Tensor> {
    let still = x.detach();
    let finite = still.abs()?.lt(f64::INFINITY)?;
    finite.where_cond(&(x - &still)?, &still.zeros_like()?)
}

fn product(a: &Tensor, b: &Tensor, of_a: &Shape, of_b: &Shape, out: Vec<usize>) -> Result<Tensor> {
    let found = matrices(of_a, of_b).map_err(|e| candle_core::Error::Msg(e.to_string()))?;
    // The rows of a flat left operand are the rows of its matrix.
    let left = match found.vectors[0] && !of_a.rows {
        true => a.unsqueeze(0)?,
        false => a.clone(),
    };
    let right = match found.vectors[1] {
        true => b.unsqueeze(D::Minus1)?,
        false => b.clone(),
    };
    // Contiguous: candle multiplies some strided and repeated operands wrongly.
    if left.rank() == 2 && right.rank() == 2 {
        return left
            .contiguous()?
            .matmul(&right.contiguous()?)?
            .reshape(out);
    }
    let (l, r) = (left.dims(), right.dims());
    let (m, k) = (l[l.len() - 2], l[l.len() - 1]);
    let n = r[r.len() - 1];
    let batch = Shape::broadcast(
        "matmul",
        &Shape::fixed(&l[..l.len() - 2]),
        &Shape::fixed(&r[..r.len() - 2]),
    )
    .map_err(|e| candle_core::Error::Msg(e.to_string()))?
    .dims;
    let shape = |x, y| [batch.clone(), vec![x, y]].concat();
    let left = left.broadcast_as(shape(m, k))?.contiguous()?;
    let right = right.broadcast_as(shape(k, n))?.contiguous()?;
    let pages = batch.iter().product::<usize>();
    let left = left.reshape((pages, m, k))?;
    let right = right.reshape((pages, k, n))?;
    left.matmul(&right)?.reshape(out)
}

fn reduce(how: Reduce, x: &Tensor, axis: usize) -> Result<Tensor> {
    let found = match how {
        Reduce::Sum => return x.sum(axis),
        Reduce::Max => x.max_keepdim(axis)?,
        Reduce::Min => x.min_keepdim(axis)?,
    };
    if !x.track_op() {
        return found.squeeze(axis);
    }
    // Candle gives each of several equal ones the whole gradient; here they share it.
    let found = found.detach();
    let equal = x.detach().broadcast_eq(&found)?.to_dtype(x.dtype())?;
    let share = equal.broadcast_div(&equal.sum_keepdim(axis)?)?;
    found.squeeze(axis)? + change(x)?.mul(&share)?.sum(axis)?
}

fn log_softmax(x: &Tensor, axis: usize) -> Result<Tensor> {
    let most = x.max_keepdim(axis)?.detach();
    let shifted = x.broadcast_sub(&most)?;
    let sum = shifted.exp()?.sum_keepdim(axis)?.log()?;
    shifted.broadcast_sub(&sum)
}
