//! Tensors in scripts: methods, derivatives, conversions. Operators are in [`operators`], printing in [`show`].

mod constructors;
mod convert;
mod files;
mod layers;
mod operators;
mod show;

pub(super) use convert::{from_dynamic, shape_of, to_dynamic, to_options};

use super::words::a_kind;
use super::{Binder, Bound, OrRaise, raise};
use crate::error::Result;
use crate::kernels::tensor::{Binary, Reduce, Tensor, Unary, value_and_gradients};
use crate::model::Model;
use crate::target::prior::Parameters;
use anyhow::{anyhow, ensure};
use convert::integers;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map, NativeCallContext};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    b.object::<Tensor>("Tensor", show::show);
    constructors::bind(b);
    operators::bind(b);
    methods(b);
    of_vectors(b);
    of_arrays(b);
    indexers(b);
    files::bind(b);
    layers::bind(b);
    derivatives(b);
    conversions(b);
}

pub(super) fn number(x: &Dynamic, what: &str) -> Result<f64> {
    x.as_float()
        .or_else(|_| x.as_int().map(|i| i as f64))
        .map_err(|t| anyhow!("{what} must be a number, not {}", a_kind(t)))
}

/// The tensors of an array.
fn tensors(all: &[Dynamic], what: &str) -> Bound<Vec<Tensor>> {
    let each = all.iter().map(|x| {
        x.clone().try_cast::<Tensor>().ok_or_else(|| {
            anyhow!(
                "{what}: an element is {}, not a tensor",
                a_kind(x.type_name())
            )
        })
    });
    each.collect::<Result<_>>().or_raise()
}

/// The only number of a tensor; while a closure is traced, the tensor without its axes.
fn item(t: &Tensor) -> Result<Dynamic> {
    let shape = t.shape()?;
    match matches!(t, Tensor::Traced(_)) && !shape.rows && shape.dims.iter().all(|d| *d == 1) {
        true => Ok(Dynamic::from(t.reshape(&[])?)),
        false => Ok(t.item("item()")?.into()),
    }
}

/// What comes out of a method: of a vector of parameters, a number where it is one.
fn given(of: &Tensor, out: Result<Tensor>) -> Bound<Dynamic> {
    let out = out.or_raise()?;
    match of.as_vector().is_some() && out.shape().is_ok_and(|s| s.rank() == 0) {
        true => Ok(out.item("a number").or_raise()?.into()),
        false => Ok(Dynamic::from(out)),
    }
}

/// `name(axis)` and `name(axis, keep)` of a method that also takes no axis.
macro_rules! reductions {
    ($b:expr, $($signature:literal $name:literal $doc:literal $all:expr, $one:expr;)*) => {$(
        $b.function($signature, $doc, |t: &mut Tensor, axis: i64| -> Bound<Tensor> { ($one)(t, axis, false).or_raise() });
        $b.engine
            .register_fn($name, |t: &mut Tensor| -> Bound<Dynamic> { given(t, ($all)(t)) })
            .register_fn($name, |t: &mut Tensor, axis: i64, keep: bool| -> Bound<Tensor> { ($one)(t, axis, keep).or_raise() });
    )*};
}

/// Methods without arguments, or with whole numbers.
macro_rules! shapes {
    ($b:expr, $($signature:literal $doc:literal |$t:ident $(, $arg:ident)*| $body:expr;)*) => {$(
        $b.function($signature, $doc, |$t: &mut Tensor $(, $arg: i64)*| -> Bound<Tensor> { $body.or_raise() });
    )*};
}

fn methods(b: &mut Binder) {
    reductions!(b,
        "tensor.sum(axis) -> Tensor" "sum" "The sum along an axis, which is dropped; `sum(axis, true)` keeps it with length 1, `sum()` sums everything. Of a vector of parameters that is a number, in double precision."
            |t: &Tensor| t.reduce_all(Reduce::Sum), |t: &Tensor, a, k| t.reduce(Reduce::Sum, a, k);
        "tensor.mean(axis) -> Tensor" "mean" "The mean along an axis; as sum."
            |t: &Tensor| t.mean(None, false), |t: &Tensor, a, k| t.mean(Some(a), k);
        "tensor.max(axis) -> Tensor" "max" "The largest along an axis; as sum. Of two tensors, element by element: maximum(a, b)."
            |t: &Tensor| t.reduce_all(Reduce::Max), |t: &Tensor, a, k| extreme(t, Reduce::Max, a, k);
        "tensor.min(axis) -> Tensor" "min" "The smallest along an axis; as sum. Of two tensors, element by element: minimum(a, b)."
            |t: &Tensor| t.reduce_all(Reduce::Min), |t: &Tensor, a, k| extreme(t, Reduce::Min, a, k);
        "tensor.log_sum_exp(axis) -> Tensor" "log_sum_exp" "ln Σ exp(x) along an axis, without overflow; as sum."
            |t: &Tensor| t.log_sum_exp(None, false), |t: &Tensor, a, k| t.log_sum_exp(Some(a), k);
    );
    shapes!(b,
        "tensor.t() -> Tensor" "The last two axes exchanged." |t| t.t();
        "tensor.transpose(a, b) -> Tensor" "Two axes exchanged." |t, a, b| t.transpose(a, b);
        "tensor.flatten() -> Tensor" "All numbers along one axis; of a model's rows, those of each row." |t| t.flatten();
        "tensor.unsqueeze(axis) -> Tensor" "With one more axis, of length 1." |t, axis| t.unsqueeze(axis);
        "tensor.squeeze(axis) -> Tensor" "Without an axis of length 1." |t, axis| t.squeeze(axis);
        "tensor.select(axis, index) -> Tensor" "One entry along an axis, which is dropped; `t[i]` is `t.select(0, i)`. Numbers below 0 count from the end." |t, axis, i| t.select(axis, i);
        "tensor.slice(axis, from, to) -> Tensor" "The entries from one index up to, but not including, another along an axis; `t[a..b]` is `t.slice(0, a, b)`.\n\nAlso `slice(from, count)`, so many along the first axis, and of a vector of parameters `slice(\"w1\")`, a named tensor, flattened; names as in the model's layout." |t, axis, from, to| t.slice(axis, from, to);
        "tensor.softmax(axis) -> Tensor" "exp(x) / Σ exp(x) along an axis." |t, axis| t.softmax(axis, false);
        "tensor.log_softmax(axis) -> Tensor" "The logarithm of softmax." |t, axis| t.softmax(axis, true);
        "tensor.square() -> Tensor" "The square of each element." |t| t.unary(Unary::Power(2));
    );
}

/// Methods that vectors of parameters have in a form of their own.
fn of_vectors(b: &mut Binder) {
    b.engine
        .register_fn("slice", |t: &mut Tensor, from: i64, count: i64| {
            t.entries(from, count).or_raise()
        })
        .register_fn("slice", |t: &mut Tensor, name: &str| {
            t.part(name).or_raise()
        })
        .register_get("len", |t: &mut Tensor| {
            t.length().map(|n| n as i64).or_raise()
        });
    b.function(
        "tensor.norm2() -> Tensor",
        "The sum of squares; as sum.",
        |t: &mut Tensor| -> Bound<Dynamic> { given(t, t.norm2()) },
    )
    .function(
        "tensor.dot(other) -> Tensor",
        "The sum of the products of the elements of two tensors of one shape.",
        |t: &mut Tensor, other: Tensor| -> Bound<Dynamic> { given(t, t.dot(&other)) },
    )
    .function(
        "tensor.len() -> integer",
        "The length of the first axis.",
        |t: &mut Tensor| t.length().map(|n| n as i64).or_raise(),
    )
    .function(
        "tensor.tensor(name) -> Tensor",
        "Of a vector of parameters, a named tensor in its shape, as \"w1\", in single precision; `w.w1` and `w[\"w1\"]` are the same, and `tensor()` is the whole vector.",
        |t: &mut Tensor, name: &str| t.named(name).or_raise(),
    );
}

/// Shapes, products, and the way back to numbers.
fn of_arrays(b: &mut Binder) {
    b.function(
        "tensor.reshape(shape) -> Tensor",
        "The same numbers in another shape; one length may be -1 and is then inferred. A model's inputs keep their rows: the first length is -1.",
        |t: &mut Tensor, shape: Array| -> Bound<Tensor> {
            t.reshape(&integers(&shape, "reshape")?).or_raise()
        },
    )
    .function(
        "tensor.matmul(other) -> Tensor",
        "Matrix product, as NumPy's @: of matrices, of vectors, of stacks of matrices.",
        |t: &mut Tensor, other: Tensor| -> Bound<Tensor> { t.matmul(&other).or_raise() },
    )
    .function(
        "tensor.shape() -> array",
        "Lengths of the axes; -1 for the rows of a model's tensors, whose number is open.",
        |t: &mut Tensor| -> Bound<Array> {
            let shape = t.shape().or_raise()?;
            let rows = shape.rows.then_some(-1i64);
            let all = rows.into_iter().chain(shape.dims.iter().map(|d| *d as i64));
            Ok(all.map(Dynamic::from).collect())
        },
    )
    .function(
        "tensor.item() -> number",
        "The number that a tensor of one element has. In a closure that is compiled it stands for that number.",
        |t: &mut Tensor| item(t).or_raise(),
    )
    .function(
        "tensor.to_array() -> array",
        "As nested arrays of numbers.",
        |t: &mut Tensor| -> Bound<Dynamic> { to_dynamic(t, "to_array()").or_raise() },
    );
}

/// `t[i]`, `t[a..b]` and `t[a..=b]`; `t["w1"]` or `t.w1` of a vector of parameters.
fn indexers(b: &mut Binder) {
    b.engine
        .register_indexer_get(|t: &mut Tensor, i: i64| given(t, t.index(i)))
        .register_indexer_get(|t: &mut Tensor, name: &str| t.named(name).or_raise())
        .register_indexer_get(|t: &mut Tensor, r: std::ops::Range<i64>| {
            t.slice(0, r.start, r.end).or_raise()
        })
        .register_indexer_get(|t: &mut Tensor, r: std::ops::RangeInclusive<i64>| {
            // The end of 1..=-1 is the last one, and what comes after it has no number below 0.
            let end = match *r.end() {
                -1 => *t.shape().or_raise()?.dims.first().unwrap_or(&0) as i64,
                end => end.saturating_add(1),
            };
            t.slice(0, *r.start(), end).or_raise()
        });
}

/// The largest or smallest along an axis; of what is traced for an energy, the larger or smaller of each element and a number.
fn extreme(t: &Tensor, how: Reduce, x: i64, keep: bool) -> Result<Tensor> {
    let pairs = match how {
        Reduce::Max => Binary::Max,
        _ => Binary::Min,
    };
    match t.is_energy() || t.shape().is_ok_and(|s| s.rank() == 0) {
        true => t.binary(pairs, &Tensor::number(x as f64, t)?),
        false => t.reduce(how, x, keep),
    }
}

/// An error of a script or of the program.
struct Raised(Box<EvalAltResult>);

impl From<anyhow::Error> for Raised {
    fn from(e: anyhow::Error) -> Self {
        Self(raise(e))
    }
}

/// The value of a closure at tensors, and its gradients in the form in which the tensors were given.
fn differentiate(native: &NativeCallContext, f: &FnPtr, at: &Dynamic) -> Bound<(f64, Dynamic)> {
    let list = at.read_lock::<Array>().map(|a| a.clone());
    let given = match &list {
        Some(list) => tensors(list, "gradient")?,
        None => vec![from_dynamic(at).or_raise()?],
    };
    let call = |symbols: Vec<Tensor>| -> std::result::Result<Tensor, Raised> {
        let arguments: Vec<Dynamic> = symbols.into_iter().map(Dynamic::from).collect();
        let out = f.call_raw(native, None, arguments).map_err(Raised)?;
        let name = out.type_name();
        if let Ok(x) = number(&out, "") {
            return Ok(Tensor::from_f64(vec![x], &[])?);
        }
        let out = out.try_cast::<Tensor>().ok_or_else(|| {
            anyhow!(
                "gradient: the closure must give a tensor of one number, but gave {}",
                a_kind(name)
            )
        })?;
        Ok(out)
    };
    let (value, found) = value_and_gradients(&given, call).map_err(|e| e.0)?;
    let mut found = found.into_iter().map(Dynamic::from);
    Ok(match list {
        Some(_) => (value, found.collect::<Array>().into()),
        None => (value, found.next().unwrap_or_default()),
    })
}

fn derivatives(b: &mut Binder) {
    b.function(
        "gradient(closure, at) -> Tensor",
        "The gradient of a closure that gives one number, at a tensor: `gradient(|x| (x * x).sum(), x)` is `2 * x`.\n\n\
         By candle's autograd. The closure is called with numbers, so it may branch on them. At an array of tensors the closure takes as many \
         arguments, and the gradients are an array. There are no second derivatives.",
        |native: NativeCallContext, f: FnPtr, at: Dynamic| -> Bound<Dynamic> {
            Ok(differentiate(&native, &f, &at)?.1)
        },
    )
    .with(&[], "gradient(|x| (x * x).sum(), tensor([1.0, 2.0]))");
    b.function(
        "value_and_gradient(closure, at) -> map",
        "Like gradient, but with the value too: `#{ value, gradient }`.",
        |native: NativeCallContext, f: FnPtr, at: Dynamic| -> Bound<Map> {
            let (value, gradient) = differentiate(&native, &f, &at)?;
            Ok([
                ("value".into(), value.into()),
                ("gradient".into(), gradient),
            ]
            .into())
        },
    )
    .with(
        &[],
        "value_and_gradient(|w, x| w.matmul(x).exp(), [tensor([1.0, 2.0]), tensor([0.5, -0.5])])",
    );
}

fn conversions(b: &mut Binder) {
    b.function(
        "parameters(tensor) -> Parameters",
        "",
        |t: Tensor| -> Bound<Arc<Parameters>> { parameters(&t).map(Arc::new).or_raise() },
    );
    b.function(
        "model.tensors(parameters) -> map",
        "The first of some parameter vectors as tensors by name.",
        |m: &mut Arc<dyn Model>, at: Dynamic| named_tensors(&**m, &at).or_raise(),
    )
    .function(
        "model.outputs(parameters, inputs) -> Tensor",
        "The outputs [rows, outputs] of the model for inputs [rows, inputs], at the first of some parameter vectors.",
        |m: &mut Arc<dyn Model>, at: Dynamic, x: Tensor| outputs(&**m, &at, &x).or_raise(),
    );
}

fn named_tensors(m: &dyn Model, at: &Dynamic) -> Result<Map> {
    let w = vector(m, at, "model.tensors")?;
    let each = m.layout().tensors().iter().map(|t| {
        let own = Tensor::from_f32(w[t.range.clone()].to_vec(), &t.shape)?;
        Ok((t.name.as_str().into(), Dynamic::from(own)))
    });
    each.collect::<Result<Map>>()
}

fn outputs(m: &dyn Model, at: &Dynamic, x: &Tensor) -> Result<Tensor> {
    let w = vector(m, at, "model.outputs")?;
    let shape = x.shape()?;
    ensure!(
        !shape.rows && shape.dims.len() == 2 && shape.dims[1] == m.inputs(),
        "model.outputs: inputs have shape {shape}, but must have [rows, {}]",
        m.inputs()
    );
    let numbers = |t: &Tensor| -> Result<candle_core::Tensor> {
        let t = t.concrete("model.outputs")?;
        Ok(t.to_dtype(candle_core::DType::F32)?)
    };
    let w = Tensor::from_f32(w.to_vec(), &[w.len()])?;
    let out = m.forward_tensor(&numbers(&w)?, &numbers(x)?);
    Ok(Tensor::Concrete(
        out.map_err(crate::kernels::tensor::plain)?,
    ))
}

/// A tensor as parameters: one vector, or one per row.
pub(super) fn parameters(t: &Tensor) -> Result<Parameters> {
    if let Some(v) = t.as_vector() {
        let vectors = vec![v.numbers().clone()];
        return Ok(Parameters { vectors });
    }
    let shape = t.shape()?;
    let all: Vec<f32> = t.to_f64("parameters")?.iter().map(|x| *x as f32).collect();
    let ([length] | [_, length]) = shape.dims[..] else {
        anyhow::bail!(
            "parameters: a tensor of shape {shape} is neither a vector nor one vector per row"
        );
    };
    let vectors = all.chunks(length).map(|v| Arc::new(v.to_vec()));
    Ok(Parameters {
        vectors: vectors.collect(),
    })
}

/// The handles that options may hold.
pub(super) fn object(x: &Dynamic) -> Option<crate::options::Value> {
    match x.read_lock::<Tensor>() {
        Some(t) => Some(Arc::new(parameters(&t).ok()?).into()),
        None => super::kinds::of(x).and_then(|known| (known.value)(x)),
    }
}

/// Parameters, or anything that holds some: a training, a run, the state of a chain.
pub(super) fn parameters_of(x: &Dynamic) -> Option<Arc<Parameters>> {
    object(x)?.as_object()
}

/// The first vector of some parameters, which must be the model's.
fn vector(m: &dyn Model, at: &Dynamic, what: &str) -> Result<Arc<Vec<f32>>> {
    let w = first_vector(at, what)?;
    check_length(&w, m.layout().len(), what)?;
    Ok(w)
}

/// The first of some parameter vectors; empty if there is none.
pub(super) fn first_vector(at: &Dynamic, what: &str) -> Result<Arc<Vec<f32>>> {
    let p = parameters_of(at)
        .ok_or_else(|| anyhow!("{what} takes parameters, not {}", super::words::kind(at)))?;
    Ok(p.vectors.first().cloned().unwrap_or_default())
}

/// Fail if a vector does not have as many parameters as the model.
pub(super) fn check_length(w: &[f32], dim: usize, what: &str) -> Result<()> {
    let length = w.len();
    ensure!(
        length == dim,
        "{what}: {length} parameters for a model of {dim}"
    );
    Ok(())
}
