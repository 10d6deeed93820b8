//! Energies written in a script: closures and expressions, traced once with tensors that have no numbers yet.

use super::item::Item;
use super::tensors::{from_dynamic, number, shape_of};
use super::words::a_kind;
use super::{Binder, Bound, Call, Context, OrRaise, branches, closure, raise, report};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::kernels::tensor::{Symbol, Tensor};
use crate::model::likelihood;
use crate::model::losses::{Chosen, Outputs};
use crate::model::named::Named;
use crate::model::support::{Space, Support};
use crate::model::{Declared, Layout};
use crate::target::Potential;
use crate::target::prior::Prior;
use crate::target::traced::{Traced, columns};
use anyhow::{Context as _, anyhow};
use rhai::{Dynamic, FnPtr, Map, NativeCallContext, Scope};
use std::any::TypeId;
use std::sync::Arc;

/// x and y of a closure: the input and the target of an example.
fn symbols(data: Option<&Dataset>) -> Vec<Tensor> {
    let Some((inputs, targets)) = data.map(columns) else {
        return Vec::new();
    };
    let both = [0..inputs, inputs..inputs + targets];
    both.map(|range| Symbol::columns(range).into()).to_vec()
}

/// The only tensor, of so many parameters.
fn vector(parameters: usize) -> Layout {
    Layout::new([("w".to_string(), vec![parameters])])
}

/// Parameters by name: each has a shape, or a support.
pub(super) fn declared(map: &Map, owner: &str) -> Result<Vec<Declared>> {
    let each = map.iter().map(|(name, given)| {
        let (shape, support) = match given.read_lock::<Arc<Space>>() {
            Some(space) => (space.shape.clone(), space.support),
            None => (
                shape_of(given).with_context(|| format!("{owner}: the parameter '{name}'"))?,
                Support::Real,
            ),
        };
        anyhow::ensure!(
            !shape.contains(&0),
            "{owner}: the parameter '{name}' has an axis of length 0"
        );
        let name = name.to_string();
        Ok(Declared {
            name,
            shape,
            support,
        })
    });
    each.collect()
}

fn count(parameters: i64, owner: &str) -> Result<usize> {
    let found = usize::try_from(parameters)
        .ok()
        .filter(|n| (1..1 << 20).contains(n));
    found.ok_or_else(|| {
        anyhow!("{owner}: the number of parameters is {parameters}, but must be from 1 to 2^20")
    })
}

/// The single number that a closure or an expression has given.
fn energy(value: Dynamic, owner: &str) -> Result<Tensor> {
    if let Ok(x) = number(&value, "") {
        return Tensor::from_f64(vec![x], &[]);
    }
    let kind = a_kind(value.type_name());
    let energy = value.try_cast::<Tensor>();
    let gave = match &energy {
        Some(t) => format!("a tensor of shape {}", t.shape()?),
        None => kind,
    };
    let single = energy.filter(|t| t.shape().is_ok_and(|s| s.rank() == 0));
    single.ok_or_else(|| {
        anyhow!("{owner} must give a number that depends on the parameters, but gave {gave}")
    })
}

/// The potential of what a closure or an expression gives.
fn traced(
    call: impl Fn() -> Bound<Dynamic>,
    layout: Layout,
    data: Option<&Dataset>,
    owner: &str,
) -> Bound<Arc<dyn Potential>> {
    let one = || energy(call()?, owner).or_raise();
    let energy = branches::follow(one, choose, raise)?;
    let potential = Traced::potential(&energy, layout, data);
    potential.map_err(|e| anyhow!("{owner}: {e}")).or_raise()
}

/// One number where a condition holds, another where it does not.
fn choose(condition: &Tensor, a: Tensor, b: Tensor) -> Result<Tensor> {
    condition.choose(&a, &b)
}

/// A number that a closure of symbols gives, whichever way it takes.
fn followed(call: impl Fn() -> Result<Dynamic>, owner: &str) -> Result<Tensor> {
    branches::follow(|| energy(call()?, owner), choose, |e| e)
}

/// The parameters of a closure: so many in a vector, or tensors by name.
enum Given {
    Count(i64),
    Names(Map),
}

fn of_closure(
    native: &NativeCallContext,
    parameters: Given,
    f: &FnPtr,
    data: Option<&Dataset>,
) -> Bound<Arc<dyn Potential>> {
    const OWNER: &str = "potential::closure";
    let (layout, first) = match parameters {
        Given::Count(n) => {
            let n = count(n, OWNER).or_raise()?;
            (vector(n), Dynamic::from(Tensor::from(Symbol::vector(n))))
        }
        Given::Names(map) => {
            let layout = declared(&map, OWNER).and_then(|d| Layout::default().and(d));
            let layout = layout.or_raise()?;
            count(layout.len() as i64, OWNER).or_raise()?;
            let named = layout.traced().or_raise()?;
            (layout, Dynamic::from(named))
        }
    };
    let others = symbols(data).into_iter().map(Dynamic::from);
    let symbols: Vec<Dynamic> = std::iter::once(first).chain(others).collect();
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
    let call = || f.call_raw(native, None, symbols.clone());
    traced(call, layout, data, OWNER)
}

/// `prior::closure`: the closure is called when a target is made, whose parameters it names.
pub(super) fn prior(call: &Call, more: &Map, f: &FnPtr) -> Bound<Arc<Prior>> {
    const OWNER: &str = "prior::closure";
    let parameters = declared(more, OWNER).or_raise()?;
    let what = format!("{OWNER}: the closure");
    let closure = closure::Frozen::new(&what, f, &["the parameters"], closure::Called::Once, call);
    let closure = closure.map_err(anyhow::Error::from).or_raise()?;
    let trace = move |p: &Named| followed(|| closure.call([Dynamic::from(p.clone())]), OWNER);
    Ok(Arc::new(Prior::Joint {
        parameters,
        energy: Arc::new(trace),
    }))
}

fn expression(
    context: &Arc<Context>,
    parameters: i64,
    text: &str,
    data: Option<&Dataset>,
) -> Bound<Arc<dyn Potential>> {
    const OWNER: &str = "potential::expression";
    let parameters = count(parameters, OWNER).or_raise()?;
    let mut scope = Scope::new();
    scope.push("w", Tensor::from(Symbol::vector(parameters)));
    for (name, v) in ["x", "y"].into_iter().zip(symbols(data)) {
        scope.push(name, v);
    }
    let engine = context.closures();
    let call = || {
        let value = engine.eval_expression_with_scope::<Dynamic>(&mut scope.clone(), text);
        value
            .map_err(|e| anyhow!("{OWNER}: \"{text}\": {}", report::cause(&e)))
            .or_raise()
    };
    traced(call, vector(parameters), data, OWNER)
}

/// `loss::closure`: the closure is called when a target is made, with symbols for outputs and target.
pub(super) fn loss(call: &Call, more: &Map, f: &FnPtr) -> Bound<Arc<Chosen>> {
    const OWNER: &str = "loss::closure";
    let parameters = declared(more, OWNER).or_raise()?;
    let what = format!("{OWNER}: the closure");
    let all = ["the outputs", "the target", "the parameters of the loss"];
    let taken = if parameters.is_empty() { 2 } else { 3 };
    let closure = closure::Frozen::new(&what, f, &all[..taken], closure::Called::Once, call);
    let closure = closure.map_err(anyhow::Error::from).or_raise()?;
    let write = move |out: &Tensor, y: &Tensor, own: &Named| {
        let (out, y) = (Dynamic::from(out.clone()), Dynamic::from(y.clone()));
        let call = || match taken {
            2 => closure.call([out.clone(), y.clone()]),
            _ => closure.call([out.clone(), y.clone(), Dynamic::from(own.clone())]),
        };
        followed(call, OWNER)
    };
    Ok(Arc::new(Chosen::Written {
        name: "a closure".into(),
        parameters,
        outputs: Outputs::Any,
        link: None,
        write: Arc::new(write),
    }))
}

/// `nll::…`: of tensors and numbers.
fn likelihoods(b: &mut Binder) {
    for known in likelihood::ALL {
        let owner = format!("nll::{}", known.name);
        b.items.push(Item {
            signature: format!("{owner}({}) -> Tensor", known.arguments.join(", ")),
            example: known.example.into(),
            ..Item::from_signature(&owner, known.doc)
        });
        let types = vec![TypeId::of::<Dynamic>(); known.arguments.len()];
        b.raw("nll", known.name, &types, move |_, arguments| {
            let each = arguments.iter().zip(known.arguments).map(|(x, name)| {
                // Symbols are in double precision, and so are numbers among them.
                from_dynamic(x).map_err(|e| anyhow!("{owner}: {name}: {e}"))
            });
            let each = each.collect::<Result<Vec<_>>>().or_raise()?;
            let found = (known.of)(&each)
                .map_err(|e| anyhow!("{owner}: {e}"))
                .or_raise()?;
            Ok(match found {
                Tensor::Traced(_) => Dynamic::from(found),
                numbers => Dynamic::from(numbers.item(&owner).or_raise()?),
            })
        });
    }
}

fn losses(b: &mut Binder) {
    const LOSS: &str = "A loss that you write: `|out, y| …` gives the loss of one example from the outputs of the model and the target; of classes `y[0]` is the label. An option `loss: |out, y| …` is the same.\n\n\
         The first argument, if there is one, names parameters of the loss and their shapes or supports, for a closure of three arguments: they are sampled with the weights, and a map of priors has theirs by name. \
         The closure is called once, with symbols, and runs compiled with its derivatives, in double precision. Columns of the target may be anything that a loss needs: a weight, a known noise. Functions that help are those of `nll`.";
    b.called(
        "loss::closure(parameters, closure) -> Loss",
        LOSS,
        &[TypeId::of::<FnPtr>()],
        |call, arguments| loss(call, &Map::new(), &arguments[0].clone().cast()).map(Dynamic::from),
    )
    .with(
        &[],
        "let data = dataset::arrays([0.0, 1.0, 2.0], [[0.1, 1.0], [0.9, 2.0], [2.2, 0.5]]);\n\
         // The second column of the targets is a weight.\n\
         target(model::mlp(#{ layers: [1, 8, 1] }), data, #{ loss: |out, y| y[1] * (y[0] - out[0])**2 })",
    );
    b.raw(
        "loss",
        "closure",
        &[TypeId::of::<Map>(), TypeId::of::<FnPtr>()],
        |call, arguments| {
            let more = arguments[0].clone().cast::<Map>();
            loss(call, &more, &arguments[1].clone().cast()).map(Dynamic::from)
        },
    );
}

fn priors(b: &mut Binder) {
    const PRIOR: &str = "A prior that you write: `|p| …` gives R = -ln p(w), up to a constant, from the parameters p.name of the target's model.\n\n\
         The first argument, if there is one, names further parameters and their shapes or supports: they are sampled with the weights. The closure is called once, with symbols, when a target is \
         made, and then runs compiled, number by number in double precision: for networks of more than some 100,000 weights a map of laws is faster. R is differentiated automatically. \
         From a closure nothing can be drawn: an exchange with a prior's rung and smc need a map of laws.";
    b.called(
        "prior::closure(parameters, closure) -> Prior",
        PRIOR,
        &[TypeId::of::<FnPtr>()],
        |call, arguments| prior(call, &Map::new(), &arguments[0].clone().cast()).map(Dynamic::from),
    )
    .with(
        &[],
        "target(model::mlp(#{ layers: [64, 10] }), dataset::digits(), #{\n    \
         prior: prior::closure(#{ tau: support::positive() }, |p| 0.5 * p.w1.norm2() / p.tau**2 + 640 * p.tau.ln() + 0.5 * p.tau**2),\n})",
    );
    b.raw(
        "prior",
        "closure",
        &[TypeId::of::<Map>(), TypeId::of::<FnPtr>()],
        |call, arguments| {
            let more = arguments[0].clone().cast::<Map>();
            prior(call, &more, &arguments[1].clone().cast()).map(Dynamic::from)
        },
    );
}

pub(super) fn bind(b: &mut Binder) {
    likelihoods(b);
    losses(b);
    priors(b);
    b.function(
        "potential::closure(parameters, closure, data) -> Potential",
        "An energy that you write: `|w| …` of a vector of parameters, or `|w, x, y| …`, the loss of one example of a data set with input x and target y (for \
         classes y[0] is the label).\n\n\
         The closure is called once, with symbols; what it computes is differentiated automatically and then runs at compiled speed, in double precision, \
         without the closure. It may loop over numbers, and branch on numbers and on parameters: of a comparison of single parameters both ways are compiled, up to 64 of them. Parameters, inputs and targets are tensors and take what is listed \
         under \"methods of tensor\": + - * / **, exp, tanh, sum, dot, norm2, w[i], slice(from, count), reshape, matmul … The larger and the smaller of two \
         are max(a, b) and min(a, b). The energy of a target without data is U = closure(w) + R(w); with data its examples are what \
         minibatches draw from.",
        |native: NativeCallContext, n: i64, f: FnPtr, data: Arc<Dataset>| -> Bound<Arc<dyn Potential>> {
            of_closure(&native, Given::Count(n), &f, Some(&data))
        },
    )
    .with(
        &[],
        "potential::closure(2, |w| 0.5 * w.norm2() + exp(w[0] - w[1]));\n\
         // A line through the points of a data set, with parameters by name.\n\
         let data = dataset::arrays([[0.0], [1.0], [2.0]], [0.1, 0.9, 2.2]);\n\
         let line = potential::closure(#{ a: [], b: [], sigma: support::positive() },\n    \
         |p, x, y| 0.5 * ((y[0] - p.a - p.b * x[0]) / p.sigma)**2 + p.sigma.ln(), data);\n\
         target(line, #{ energy: \"sum\", prior: #{ a: prior::normal(0, 10), b: prior::normal(0, 10), sigma: prior::half_cauchy(2.5) } })",
    );
    b.function(
        "potential::closure(parameters, closure, data) -> Potential",
        "",
        |native: NativeCallContext,
         names: Map,
         f: FnPtr,
         data: Arc<Dataset>|
         -> Bound<Arc<dyn Potential>> {
            of_closure(&native, Given::Names(names), &f, Some(&data))
        },
    );
    b.function(
        "potential::closure(parameters, closure) -> Potential",
        "",
        |native: NativeCallContext, names: Map, f: FnPtr| -> Bound<Arc<dyn Potential>> {
            of_closure(&native, Given::Names(names), &f, None)
        },
    );
    b.function(
        "potential::closure(parameters, closure) -> Potential",
        "",
        |native: NativeCallContext, n: i64, f: FnPtr| -> Bound<Arc<dyn Potential>> {
            of_closure(&native, Given::Count(n), &f, None)
        },
    );
    let (context, other) = (b.context.clone(), b.context.clone());
    b.function(
        "potential::expression(parameters, text, data) -> Potential",
        "Like potential::closure, but from a text in w (and x and y, with data): handy with `--set`.",
        move |n: i64, text: &str, data: Arc<Dataset>| -> Bound<Arc<dyn Potential>> {
            expression(&context, n, text, Some(&data))
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
            expression(&other, n, text, None)
        },
    );
}
