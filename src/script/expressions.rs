//! Energies written in a script: closures and expressions, traced once with symbolic numbers.

use super::words::a_kind;
use super::{Binder, Bound, Context, OrRaise, closure, raise, report};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::kernels::expression::{Expression, Vector};
use crate::target::Potential;
use crate::target::traced::{Traced, columns};
use anyhow::anyhow;
use rhai::{Dynamic, FnPtr, NativeCallContext, Scope};
use std::sync::Arc;

/// w, x and y of a closure: parameters, the input and the target of an example.
fn symbols(parameters: usize, data: Option<&Dataset>) -> Vec<Vector> {
    let mut out = vec![Vector::parameters(parameters)];
    if let Some(d) = data {
        let (inputs, targets) = columns(d);
        let input = |range: std::ops::Range<usize>| range.map(Expression::input).collect();
        out.extend([input(0..inputs), input(inputs..inputs + targets)]);
    }
    out
}

fn count(parameters: i64, owner: &str) -> Result<usize> {
    let found = usize::try_from(parameters)
        .ok()
        .filter(|n| (1..1 << 20).contains(n));
    found.ok_or_else(|| {
        anyhow!("{owner}: the number of parameters is {parameters}, but must be from 1 to 2^20")
    })
}

/// What a closure or an expression has given.
fn traced(
    value: Dynamic,
    parameters: usize,
    data: Option<&Dataset>,
    owner: &str,
) -> Result<Arc<dyn Potential>> {
    let name = value.type_name();
    let number = value
        .as_float()
        .or_else(|_| value.as_int().map(|i| i as f64));
    let expression = match number {
        Ok(x) => Expression::constant(x),
        Err(_) => value.try_cast::<Expression>().ok_or_else(|| {
            anyhow!(
                "{owner} must give a number that depends on w, but gave {}",
                a_kind(name)
            )
        })?,
    };
    Traced::potential(&expression, parameters, data).map_err(|e| anyhow!("{owner}: {e}"))
}

fn of_closure(
    native: &NativeCallContext,
    parameters: i64,
    f: &FnPtr,
    data: Option<&Dataset>,
) -> Bound<Arc<dyn Potential>> {
    const OWNER: &str = "potential::closure";
    let parameters = count(parameters, OWNER).or_raise()?;
    let symbols: Vec<Dynamic> = symbols(parameters, data)
        .into_iter()
        .map(Dynamic::from)
        .collect();
    let (given, hint): (&[&str], _) = match data {
        Some(_) => (
            &["w", "x", "y"],
            ": the parameters, and the input and the target of an example",
        ),
        None => (
            &["w"],
            ", the parameters; of a closure of examples the data set is the third argument: potential::closure(parameters, |w, x, y| …, data)",
        ),
    };
    let what = format!("{OWNER}: the closure");
    closure::expect(&what, f, given, hint, native).or_raise()?;
    // An error says where in the closure it is.
    let value = f.call_raw(native, None, symbols)?;
    traced(value, parameters, data, OWNER).or_raise()
}

fn expression(
    context: &Arc<Context>,
    parameters: i64,
    text: &str,
    data: Option<&Dataset>,
) -> Result<Arc<dyn Potential>> {
    const OWNER: &str = "potential::expression";
    let parameters = count(parameters, OWNER)?;
    let mut scope = Scope::new();
    for (name, v) in ["w", "x", "y"].into_iter().zip(symbols(parameters, data)) {
        scope.push(name, v);
    }
    let engine = context.closures();
    let value = engine
        .eval_expression_with_scope::<Dynamic>(&mut scope, text)
        .map_err(|e| anyhow!("{OWNER}: \"{text}\": {}", report::cause(&e)))?;
    traced(value, parameters, data, OWNER)
}

pub(super) fn bind(b: &mut Binder) {
    b.object::<Expression>("Expression", |e| e.to_string());
    b.object::<Vector>("Vector", |v| format!("{v:?}"));
    operators(b);
    functions(b);
    b.function(
        "potential::closure(parameters, closure, data) -> Potential",
        "An energy that you write: `|w| …` of a vector of parameters, or `|w, x, y| …`, the loss of one example of a data set with input x and target y (for \
         classes y[0] is the label).\n\n\
         The closure is called once, with symbols; what it computes is differentiated automatically and then runs at compiled speed, in double precision, \
         without the closure. So it may loop and branch on numbers, but not on parameters. Symbols know + - * / **, exp, ln, sqrt, abs, sin, cos, tan, \
         tanh, sinh, cosh, atan, sigmoid, softplus, erf, max, min, ln_add_exp; vectors also w[i], len, slice(from, count), sum, mean, dot, norm2, max, min, \
         log_sum_exp and all of these element by element. The energy of a target without data is U = closure(w) + R(w); with data its examples are what \
         minibatches draw from.",
        |native: NativeCallContext, n: i64, f: FnPtr, data: Arc<Dataset>| -> Bound<Arc<dyn Potential>> {
            of_closure(&native, n, &f, Some(&data))
        },
    )
    .with(&[], "potential::closure(2, |w| 0.5 * w.norm2() + exp(w[0] - w[1]))");
    b.function(
        "potential::closure(parameters, closure) -> Potential",
        "",
        |native: NativeCallContext, n: i64, f: FnPtr| -> Bound<Arc<dyn Potential>> {
            of_closure(&native, n, &f, None)
        },
    );
    let (context, other) = (b.context.clone(), b.context.clone());
    b.function(
        "potential::expression(parameters, text, data) -> Potential",
        "As potential::closure, from a text in w, and x and y with data: handy with `--set`.",
        move |n: i64, text: &str, data: Arc<Dataset>| -> Bound<Arc<dyn Potential>> {
            expression(&context, n, text, Some(&data)).or_raise()
        },
    )
    .with(
        &[],
        "potential::expression(2, \"(w[0]**2 - 1)**2 + 0.5*w[1]**2\")",
    );
    b.function(
        "potential::expression(parameters, text) -> Potential",
        "",
        move |n: i64, text: &str| -> Bound<Arc<dyn Potential>> {
            expression(&other, n, text, None).or_raise()
        },
    );
}

/// A binary operator between expressions, vectors and numbers, both ways round.
macro_rules! binary {
    ($engine:expr, $($name:literal $op:tt),*) => {$(
        $engine
            .register_fn($name, |a: Expression, b: Expression| a $op b)
            .register_fn($name, |a: Expression, b: f64| a $op b)
            .register_fn($name, |a: Expression, b: i64| a $op b as f64)
            .register_fn($name, |a: f64, b: Expression| a $op b)
            .register_fn($name, |a: i64, b: Expression| a as f64 $op b)
            .register_fn($name, |a: Vector, b: Vector| -> Bound<Vector> { (&a $op &b).or_raise() })
            .register_fn($name, |a: Vector, b: Expression| &a $op &b)
            .register_fn($name, |a: Expression, b: Vector| &a $op &b)
            .register_fn($name, |a: Vector, b: f64| &a $op b)
            .register_fn($name, |a: Vector, b: i64| &a $op b as f64)
            .register_fn($name, |a: f64, b: Vector| a $op &b)
            .register_fn($name, |a: i64, b: Vector| a as f64 $op &b);
    )*};
}

/// A function of one expression, and of every element of a vector.
macro_rules! unary {
    ($engine:expr, $($name:ident)*) => {$(
        $engine
            .register_fn(stringify!($name), |a: Expression| a.$name())
            .register_fn(stringify!($name), |a: Vector| a.map(Expression::$name));
    )*};
}

/// A function of two expressions, vectors or numbers, not both numbers; element by element of vectors.
macro_rules! pair {
    ($engine:expr, $($name:literal $method:ident)*) => {$(
        $engine
            .register_fn($name, |a: Expression, b: Expression| a.$method(b))
            .register_fn($name, |a: Expression, b: f64| a.$method(b))
            .register_fn($name, |a: Expression, b: i64| a.$method(b as f64))
            .register_fn($name, |a: f64, b: Expression| Expression::constant(a).$method(b))
            .register_fn($name, |a: i64, b: Expression| Expression::constant(a as f64).$method(b))
            .register_fn($name, |a: Vector, b: Vector| -> Bound<Vector> { a.zip(&b, |a, b| a.$method(b.clone())).or_raise() })
            .register_fn($name, |a: Vector, b: Expression| a.map(|a| a.$method(b.clone())))
            .register_fn($name, |a: Vector, b: f64| a.map(|a| a.$method(b)))
            .register_fn($name, |a: Vector, b: i64| a.map(|a| a.$method(b as f64)))
            .register_fn($name, |a: Expression, b: Vector| b.map(|b| a.$method(b.clone())))
            .register_fn($name, |a: f64, b: Vector| b.map(|b| Expression::constant(a).$method(b.clone())))
            .register_fn($name, |a: i64, b: Vector| b.map(|b| Expression::constant(a as f64).$method(b.clone())));
    )*};
}

fn operators(b: &mut Binder) {
    let e = &mut b.engine;
    binary!(e, "+" +, "-" -, "*" *, "/" /);
    pair!(e, "**" powf "pow" powf "max" max "min" min "ln_add_exp" ln_add_exp);
    e.register_fn("-", |a: Expression| -&a)
        .register_fn("-", |a: Vector| -&a);
}

/// Comparisons of symbols: Rhai would say false, whatever their values will be.
macro_rules! refused {
    ($engine:expr, $($name:literal)*) => {$(
        $engine
            .register_fn($name, |_: Expression, _: Expression| undecided())
            .register_fn($name, |_: Expression, _: f64| undecided())
            .register_fn($name, |_: Expression, _: i64| undecided())
            .register_fn($name, |_: f64, _: Expression| undecided())
            .register_fn($name, |_: i64, _: Expression| undecided())
            .register_fn($name, |_: Vector, _: Vector| undecided())
            .register_fn($name, |_: Vector, _: Expression| undecided())
            .register_fn($name, |_: Expression, _: Vector| undecided())
            .register_fn($name, |_: Vector, _: f64| undecided())
            .register_fn($name, |_: Vector, _: i64| undecided())
            .register_fn($name, |_: f64, _: Vector| undecided())
            .register_fn($name, |_: i64, _: Vector| undecided());
    )*};
}

fn undecided() -> Bound<bool> {
    Err(raise(anyhow!(
        "a symbol has no value yet, so it cannot be compared: the closure is called once, before there are numbers, and compiled. \
         Write the choice as a formula: with labels 0 and 1, `y[0]*a + (1 - y[0])*b` is a for the label 1 and b for the label 0; where w decides, use max, min \
         or abs. A classifier of more classes is a model::custom"
    )))
}

fn functions(b: &mut Binder) {
    let e = &mut b.engine;
    refused!(e, "<" ">" "<=" ">=" "==" "!=");
    unary!(e, exp ln sqrt abs sin cos tan tanh sinh cosh atan sigmoid softplus erf);
    e.register_fn("len", |v: &mut Vector| v.len() as i64)
        .register_get("len", |v: &mut Vector| v.len() as i64)
        .register_fn("sum", |v: &mut Vector| v.sum())
        .register_fn("mean", |v: &mut Vector| v.mean())
        .register_fn("norm2", |v: &mut Vector| v.norm2())
        .register_fn("max", |v: &mut Vector| v.max())
        .register_fn("min", |v: &mut Vector| v.min())
        .register_fn("log_sum_exp", |v: &mut Vector| v.log_sum_exp())
        .register_fn("dot", |a: &mut Vector, b: Vector| -> Bound<Expression> {
            a.dot(&b).or_raise()
        })
        .register_fn(
            "slice",
            |v: &mut Vector, from: i64, count: i64| -> Bound<Vector> {
                let at = |x: i64| usize::try_from(x).ok();
                let range = at(from).zip(at(from.saturating_add(count)));
                let (a, z) = range.filter(|(a, z)| a <= z).ok_or_else(|| {
                    raise(anyhow!("slice({from}, {count}) of a vector of {}", v.len()))
                })?;
                v.slice(a..z).or_raise()
            },
        )
        .register_indexer_get(|v: &mut Vector, i: i64| -> Bound<Expression> {
            let at = if i < 0 { v.len() as i64 + i } else { i };
            let wrong = || anyhow!("index {i} of a vector of {} numbers", v.len());
            usize::try_from(at)
                .map_err(|_| wrong())
                .and_then(|i| v.index(i).map_err(|_| wrong()))
                .or_raise()
        });
}
