//! Data sets, models, targets, parameters, schedules and triggers: what they print and what can be asked of them.

use super::binder::Binder;
use super::closure;
use super::tensors::{check_length, first_vector};
use super::words::a_kind;
use super::{Bound, OrRaise, raise};
use crate::error::Result;
use crate::kernels::tensor::{Tensor, Vector};
use crate::schedule::Schedule;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use anyhow::{anyhow, ensure};
use rhai::{Array, Dynamic, FnPtr, ImmutableString, Map};
use std::any::TypeId;
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    schedules(b);
    triggers(b);
    b.function(
        "parameters(numbers) -> Parameters",
        "A parameter vector from an array of numbers, or several from an array of such arrays; for `start` and `prior::localised`.",
        |a: Array| parameters(&a).map(Arc::new).or_raise(),
    )
    .with(&[], "parameters([0.0, 1.5])");
    observable(b);
    targets(b);
    b.function(
        "parameters.vector(index) -> Tensor",
        "One of the vectors, as a tensor.",
        |p: &mut Arc<Parameters>, i: i64| -> Bound<Tensor> {
            let found = usize::try_from(i).ok().and_then(|i| p.vectors.get(i));
            found
                .map(|v| Tensor::Vector(Vector::new(v.clone(), None)))
                .ok_or_else(|| {
                    raise(anyhow!(
                        "parameters.vector({i}): there are {} vectors",
                        p.vectors.len()
                    ))
                })
        },
    );
}

/// A parameter vector of numbers, or one of each array of them.
fn parameters(a: &[Dynamic]) -> Result<Parameters> {
    let vector = |a: &[Dynamic]| -> Result<Arc<Vec<f32>>> {
        let number = |x: &Dynamic| x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
        let numbers: Result<Vec<f32>, _> = a.iter().map(|x| number(x).map(|x| x as f32)).collect();
        let numbers = numbers
            .map_err(|t| anyhow!("parameters: an element is {}, not a number", a_kind(t)))?;
        ensure!(!numbers.is_empty(), "parameters: the array is empty");
        Ok(Arc::new(numbers))
    };
    if !a.first().is_some_and(|x| x.is_array()) {
        let vectors = vec![vector(a)?];
        return Ok(Parameters { vectors });
    }
    let rows = a.iter().map(|x| match x.read_lock::<Array>() {
        Some(row) => vector(&row),
        None => Err(anyhow!(
            "parameters: an element is {}, the first is an array",
            a_kind(x.type_name())
        )),
    });
    let vectors = rows.collect::<Result<_>>()?;
    Ok(Parameters { vectors })
}

fn observable(b: &mut Binder) {
    b.called(
        "observable::named(name, closure) -> Observable",
        "A closure `|s| …` as an observable with a name of its own.\n\nThe state `s` has `s.params` (a tensor: index it, `s.params.w1` is a tensor of the model, `slice(\"w1\")` the same flattened, `abs`, `square`, `max`, `min`, `sum`, `mean`, `norm2`, `len` …), `s.step`, `s.chain`, `s.temperature` and `s.info` (what the sampler reports); `s.loss(\"test\")`, `s.error(split)`, `s.energy()`, `s.gradient()` and `s.outputs(split)` are computed when they are asked for. It returns a number, or an array or a map of numbers, always the same number of them: then the trace has a component for each, called by its \
         number or its key. A plain closure in `observe` works too, with a made-up name.\n\n\
         What the closure captures (a model, a data set, a tensor, an array …) is copied when the observable is made, and cannot be changed by it: counters and sums \
         are errors, because threads would change them in any order. Nor may it call what depends on more than its arguments: timestamp, eval, and verbs that run something; \
         `print` may, but threads print in any order. Its text, the functions that it calls and all it captures are in the fingerprint of the run: `--resume` refuses a run whose closure \
         is another one; comments and spaces do not count. It is called once before the first step, with the starting point and zeros in `s.info`, to see what it returns. What depends on \
         `s.params` alone is compiled then, comparisons of single parameters too.",
        &[TypeId::of::<ImmutableString>(), TypeId::of::<FnPtr>()],
        |call, arguments| {
            let name = arguments[0].to_string();
            let f = arguments[1].clone().cast::<FnPtr>();
            closure::check_name(&name)?;
            closure::named(&name, &f, call).map(Dynamic::from)
        },
    )
    .with(&[], "observable::named(\"largest\", |s| s.params.slice(\"w\").abs().max())");
}

fn targets(b: &mut Binder) {
    let context = b.context.clone();
    let here = move |what: &str| context.session.computes_here(what);
    let [for_energies, for_outputs, for_losses] = [here.clone(), here.clone(), here];
    b.function(
        "target.energies(parameters) -> map",
        "Loss, prior energy, total energy and error fraction at a point, over all training examples: `#{ loss, prior, total, error }`.",
        move |t: &mut Arc<Target>, at: Dynamic| {
            for_energies("target.energies");
            energies(t, &at).or_raise()
        },
    );
    b.function(
        "target.outputs(parameters, split) -> Tensor",
        "The outputs of the network for the inputs of a split (\"train\", \"test\", …) at a point, row by row, before the loss.",
        move |t: &mut Arc<Target>, at: Dynamic, split: &str| {
            for_outputs("target.outputs");
            outputs(t, &at, split).or_raise()
        },
    );
    b.function(
        "target.losses(parameters, split) -> Tensor",
        "The loss of each example of a split (\"train\", \"test\", …) at a point: [rows], or [rows, positions] where each position of a row has one, as each token of a text.",
        move |t: &mut Arc<Target>, at: Dynamic, split: &str| {
            for_losses("target.losses");
            losses(t, &at, split).or_raise()
        },
    );
    probed(b);
}

/// Targets like another one, with a term that probes it.
fn probed(b: &mut Binder) {
    b.function(
        "target.coupled(k, reference) -> Target",
        "The target with ½k|w - reference|² more in U, which holds w near a reference: the coupling of Franz and Parisi (J. Phys. I France 5 (1995) 1401). The recipe `local_entropy` integrates over k.\n\n\
         The reference is parameters, from `train`, `run.at(chain)` or `parameters`. The energy that is reported is that of U and the coupling, up to a constant.",
        |t: &mut Arc<Target>, k: Dynamic, reference: Dynamic| -> Bound<Arc<Target>> {
            let k = number(&k, "target.coupled: the coupling")?;
            let point = first_vector(&reference, "target.coupled").or_raise()?;
            t.coupled(k, &point).map(Arc::new).or_raise()
        },
    )
    .with(&[], "target(potential::gaussian(#{ dim: 2 })).coupled(0.5, parameters([1.0, -1.0]))")
    .function(
        "target.in_field(field) -> Target",
        "The target with -h·w more in U, h the field, one number per parameter: what responses are measured with (recipe `response`). On the CPU.",
        |t: &mut Arc<Target>, field: Dynamic| -> Bound<Arc<Target>> {
            let field = first_vector(&field, "target.in_field").or_raise()?;
            t.in_field(&field).map(Arc::new).or_raise()
        },
    )
    .with(&[], "target(potential::gaussian(#{ dim: 2 })).in_field(parameters([0.1, -0.1]))")
    .function(
        "target.with_reference(mean, sd) -> Target",
        "The same target, of which a ladder of `exchange` ends in a Gaussian q of independent parameters, not in the prior: at temperature T it samples exp(-U/T)·q^(1-1/T).\n\n\
         The variational reference of Surjanovic, Syed, Bouchard-Côté & Campbell (2022): where q is like the posterior, few rungs do. Its mean and standard deviations are parameters, as `run.moments()` has them. At T = 1 the law is \
         as it was. `evidence` of such a ladder is that of the model, and needs no prior that can be drawn from (of one that cannot, ∫ exp(-U) dw). The recipe `ladder` finds q by pilot runs, and takes it where it shortens the ladder. On the CPU; not with priors that have walls.",
        |t: &mut Arc<Target>, mean: Dynamic, sd: Dynamic| -> Bound<Arc<Target>> {
            let mean = first_vector(&mean, "target.with_reference").or_raise()?;
            let sd = first_vector(&sd, "target.with_reference").or_raise()?;
            t.with_reference(&mean, &sd).map(Arc::new).or_raise()
        },
    )
    .with(
        &[],
        "let t = target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::gaussian(0.01) });\n\
         let pilot = sample(t, sampler::hmc(), #{ steps: 400, keep: 2 }).moments();\n\
         let r = exchange(t.with_reference(pilot.mean, pilot.sd), sampler::hmc(), #{ temperatures: [1.0, 3.0], prior_rung: true, steps: 400, chains: 2 });\n\
         evidence(r)",
    );
}

fn energies(t: &Target, at: &Dynamic) -> Result<Map> {
    let w = first_vector(at, "target.energies")?;
    check_length(&w, t.dim(), "target.energies")?;
    let e = t.energies(&w, &mut Default::default())?;
    let pairs = [
        ("loss", e.loss),
        ("prior", e.prior),
        ("total", e.total),
        ("error", e.error),
    ];
    let pairs = pairs.into_iter().map(|(k, v)| (k.into(), v.into()));
    Ok(pairs.collect())
}

fn outputs(t: &Target, at: &Dynamic, split: &str) -> Result<Tensor> {
    let w = first_vector(at, "target.outputs")?;
    let network = t.network("target.outputs")?;
    check_length(&w, t.dim(), "target.outputs")?;
    let outputs = network.predict(&w, network.dataset().split(split)?)?;
    Ok(Tensor::Vector(Vector::new(Arc::new(outputs), None)))
}

fn losses(t: &Target, at: &Dynamic, split: &str) -> Result<Tensor> {
    let w = first_vector(at, "target.losses")?;
    check_length(&w, t.dim(), "target.losses")?;
    let (rows, positions) = t.potential().rows_and_positions(split)?;
    let all: Vec<_> = (0..rows as u32).collect();
    let losses = t.potential().example_losses(&w, split, &all)?;
    match positions {
        1 => Tensor::from_f64(losses, &[rows]),
        _ => Tensor::from_f64(losses, &[rows, positions]),
    }
}

/// Numbers where scripts may write integers.
fn number(x: &Dynamic, what: &str) -> Bound<f64> {
    let number = x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
    number.map_err(|t| raise(anyhow!("{what} must be a number, not {}", a_kind(t))))
}

fn count(x: i64, what: &str) -> Bound<u64> {
    u64::try_from(x)
        .ok()
        .filter(|x| *x >= 1)
        .ok_or_else(|| raise(anyhow!("{what} is {x}, but must be at least 1")))
}

fn schedules(b: &mut Binder) {
    b.function(
        "schedule::constant(value) -> Schedule",
        "The same value at every step.",
        |x: Dynamic| {
            number(&x, "schedule::constant: value").map(|x| Arc::new(Schedule::Constant(x)))
        },
    )
    .with(&[], "schedule::constant(0.1)");
    b.function(
        "schedule::power(a, b, kappa) -> Schedule",
        "`a·(b + t)^-kappa` (Welling & Teh 2011; Ohzeki & Ichiki 2015 use kappa = 0.55).",
        power,
    )
    .with(&[], "schedule::power(0.01, 1.0, 0.55)");
    b.function(
        "schedule::linear(from, to, steps) -> Schedule",
        "From one value to another on a straight line, constant afterwards.",
        linear,
    )
    .with(&[], "schedule::linear(1e-4, 1e-6, 1000)");
    b.function(
        "schedule::geometric(from, to, steps) -> Schedule",
        "From one value to another by a constant factor per step, constant afterwards: annealing.",
        geometric,
    )
    .with(&[], "schedule::geometric(1e-3, 1e-6, 5000)");
    b.function(
        "schedule::decay(start, factor, every) -> Schedule",
        "`start·factor^floor(t/every)`: the usual learning-rate decay; for optimisers t counts epochs.",
        decay,
    )
    .with(&[], "schedule::decay(1e-4, 0.8, 1000)");
}

fn power(a: Dynamic, b: Dynamic, kappa: Dynamic) -> Bound<Arc<Schedule>> {
    let a = number(&a, "schedule::power: a")?;
    let b = number(&b, "schedule::power: b")?;
    let kappa = number(&kappa, "schedule::power: kappa")?;
    if !(b > 0.0 && kappa >= 0.0) {
        return Err(raise(anyhow!(
            "schedule::power needs b > 0 and kappa ≥ 0, but b is {b} and kappa {kappa}"
        )));
    }
    Ok(Arc::new(Schedule::Power { a, b, kappa }))
}

fn linear(from: Dynamic, to: Dynamic, steps: i64) -> Bound<Arc<Schedule>> {
    let from = number(&from, "schedule::linear: from")?;
    let to = number(&to, "schedule::linear: to")?;
    let steps = count(steps, "schedule::linear: steps")?;
    Ok(Arc::new(Schedule::Linear { from, to, steps }))
}

fn geometric(from: Dynamic, to: Dynamic, steps: i64) -> Bound<Arc<Schedule>> {
    let from = number(&from, "schedule::geometric: from")?;
    let to = number(&to, "schedule::geometric: to")?;
    if !(from > 0.0 && to > 0.0) {
        return Err(raise(anyhow!(
            "schedule::geometric needs two numbers > 0, but has {from} and {to}"
        )));
    }
    let steps = count(steps, "schedule::geometric: steps")?;
    Ok(Arc::new(Schedule::Geometric { from, to, steps }))
}

fn decay(start: Dynamic, factor: Dynamic, every: i64) -> Bound<Arc<Schedule>> {
    let start = number(&start, "schedule::decay: start")?;
    let factor = number(&factor, "schedule::decay: factor")?;
    if factor <= 0.0 || factor.is_nan() {
        return Err(raise(anyhow!(
            "schedule::decay: factor is {factor}, but must be > 0"
        )));
    }
    let every = count(every, "schedule::decay: every")?;
    Ok(Arc::new(Schedule::Decay {
        start,
        factor,
        every,
    }))
}

fn triggers(b: &mut Binder) {
    b.function(
        "trigger::every(steps) -> Trigger",
        "At every multiple of the number.",
        |n: i64| -> Bound<Arc<Trigger>> {
            Ok(Arc::new(Trigger::Every(count(n, "trigger::every: steps")?)))
        },
    )
    .with(&[], "trigger::every(50)");
    b.function(
        "trigger::at(steps) -> Trigger",
        "At these steps, given as an array; steps count from 1.",
        |a: Array| -> Bound<Arc<Trigger>> {
            let steps: Bound<Vec<u64>> = a
                .iter()
                .map(|x| count(x.as_int().unwrap_or(-1), "trigger::at: a step"))
                .collect();
            let mut steps = steps?;
            steps.sort_unstable();
            steps.dedup();
            Ok(Arc::new(Trigger::At(steps)))
        },
    )
    .with(&[], "trigger::at([1, 10, 100])");
    b.function(
        "trigger::cyclical(cycle, exploration, steps) -> Trigger",
        "At every multiple of `steps` that lies after the first part `exploration` (from 0 to below 1) of a cycle: where sampler::cyclical_sgld samples.\n\n\
         That part is its `exploration` and its `settling` together.",
        |cycle: i64, exploration: Dynamic, steps: i64| -> Bound<Arc<Trigger>> {
            let cycle = count(cycle, "trigger::cyclical: cycle")?;
            let part = number(&exploration, "trigger::cyclical: exploration")?;
            if !(0.0..1.0).contains(&part) {
                return Err(raise(anyhow!("trigger::cyclical: exploration is {part}, but must be from 0 to below 1")));
            }
            let skip = (part * cycle as f64 - 1e-6).ceil().max(0.0) as u64;
            let every = count(steps, "trigger::cyclical: steps")?;
            Ok(Arc::new(Trigger::Cyclical { cycle, skip, every }))
        },
    )
    .with(&[], "trigger::cyclical(1000, 0.5, 10)");
    b.function(
        "trigger::logarithmic(per_decade) -> Trigger",
        "So many times per factor of ten in the step number, for relaxation curves.",
        |n: i64| -> Bound<Arc<Trigger>> {
            Ok(Arc::new(Trigger::Logarithmic {
                per_decade: count(n, "trigger::logarithmic: per_decade")?.min(10_000) as u32,
            }))
        },
    )
    .with(&[], "trigger::logarithmic(10)");
}
