//! Energies written in a script: closures and expressions, traced once with tensors that have no numbers yet.

use super::tensors::number;
use super::words::a_kind;
use super::{Binder, Bound, Context, OrRaise, closure, report};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::kernels::tensor::{Symbol, Tensor};
use crate::target::Potential;
use crate::target::traced::{Traced, columns};
use anyhow::anyhow;
use rhai::{Dynamic, FnPtr, NativeCallContext, Scope};
use std::sync::Arc;

/// w, x and y of a closure: parameters, the input and the target of an example.
fn symbols(parameters: usize, data: Option<&Dataset>) -> Vec<Tensor> {
    let mut out = vec![Symbol::vector(parameters).into()];
    if let Some(d) = data {
        let (inputs, targets) = columns(d);
        out.push(Symbol::columns(0..inputs).into());
        out.push(Symbol::columns(inputs..inputs + targets).into());
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
    let energy = match number(&value, "") {
        Ok(x) => Tensor::from_f64(vec![x], &[])?,
        Err(_) => {
            let kind = a_kind(value.type_name());
            let energy = value.try_cast::<Tensor>();
            let gave = match &energy {
                Some(t) => format!("a tensor of shape {}", t.shape()?),
                None => kind,
            };
            let single = energy.filter(|t| t.shape().is_ok_and(|s| s.rank() == 0));
            single.ok_or_else(|| {
                anyhow!("{owner} must give a number that depends on w, but gave {gave}")
            })?
        }
    };
    Traced::potential(&energy, parameters, data).map_err(|e| anyhow!("{owner}: {e}"))
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
    b.function(
        "potential::closure(parameters, closure, data) -> Potential",
        "An energy that you write: `|w| …` of a vector of parameters, or `|w, x, y| …`, the loss of one example of a data set with input x and target y (for \
         classes y[0] is the label).\n\n\
         The closure is called once, with symbols; what it computes is differentiated automatically and then runs at compiled speed, in double precision, \
         without the closure. So it may loop and branch on numbers, but not on parameters. Parameters, inputs and targets are tensors and take what is listed \
         under \"methods of tensor\": + - * / **, exp, tanh, sum, dot, norm2, w[i], slice(from, count), reshape, matmul … The larger and the smaller of two \
         are max(a, b) and min(a, b). The energy of a target without data is U = closure(w) + R(w); with data its examples are what \
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
        "Like potential::closure, but from a text in w (and x and y, with data): handy with `--set`.",
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
