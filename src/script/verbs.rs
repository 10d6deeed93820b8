//! What scripts call at top level besides the verbs of the program: `compare(models)`, `param`, `logspace`, `linspace` and functions of numbers.

use super::binder::Binder;
use super::words::a_kind;
use super::{Bound, OrRaise, raise};
use crate::builders::{linspace, logspace};
use crate::simulation::evidence::{self, Evidence};
use crate::simulation::loo::{self, Loo};
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map, NativeCallContext, Variant};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    // Rhai has these for numbers with a fraction only.
    for (name, f) in [
        ("sqrt", f64::sqrt as fn(f64) -> f64),
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tan", f64::tan),
    ] {
        b.engine.register_fn(name, move |x: i64| f(x as f64));
    }
    fn spaced(name: &str, a: Dynamic, z: Dynamic, n: i64, log: bool) -> Bound<Array> {
        let number = |x: &Dynamic| {
            let x = x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
            x.map_err(|t| {
                raise(anyhow!(
                    "{name}: both ends must be numbers, not {}",
                    a_kind(t)
                ))
            })
        };
        let (a, z) = (number(&a)?, number(&z)?);
        if log && !(a > 0.0 && z > 0.0) {
            return Err(raise(anyhow!(
                "{name}: both ends must be > 0, but are {a} and {z}"
            )));
        }
        if !(1..=1_000_000).contains(&n) {
            return Err(raise(anyhow!(
                "{name}: the count is {n}, but must be 1 … 1000000"
            )));
        }
        let numbers = match log {
            true => logspace(a, z, n as usize),
            false => linspace(a, z, n as usize),
        };
        Ok(numbers.into_iter().map(Dynamic::from).collect())
    }
    b.function(
        "logspace(first, last, count) -> array",
        "Numbers from first to last (both included) by a constant factor. Ends are the values themselves, not exponents.",
        |a: Dynamic, z: Dynamic, n: i64| spaced("logspace", a, z, n, true),
    )
    .with(&[], "logspace(1e-6, 1e-3, 4)");
    b.function(
        "linspace(first, last, count) -> array",
        "Numbers from first to last (both included) at a constant distance.",
        |a: Dynamic, z: Dynamic, n: i64| spaced("linspace", a, z, n, false),
    )
    .with(&[], "linspace(0.0, 1.0, 5)");
    let context = b.context.clone();
    b.defaulted(
        "param(name, default, doc) -> value",
        "A parameter of the script: its default, or what `--set name=value` says.\n\n\
         The value may be any expression of the kind of the default: `--set \"temperatures=logspace(1e-6,1e-4,9)\"`. \
         `ergodic run script.rhai --help` lists all parameters. The text `doc` may be left out.",
        "",
        move |n: NativeCallContext, name: &str, default: Dynamic, _doc: &str| super::parameters::value(&context, &n, name, default),
    )
    .with(&[], "param(\"steps\", 1000, \"steps per chain\")");
    let context = b.context.clone();
    b.function(
        "is_quick() -> bool",
        "Whether the script runs with `--quick`.",
        move || context.session.quick,
    )
    .with(&[], "is_quick()");
}

pub(super) fn models(b: &mut Binder) {
    b.function(
        "compare(models) -> ModelComparison",
        "Models by their evidence on the same data: ln Z, Bayes factors relative to the best, and posterior probabilities if all are equally probable a priori.\n\n\
         `models` is a map from names to results of `evidence`, or an array of these, which are then named after their runs. `print(compare(…))` is a table, the most probable first, and below it the reasons to distrust a model, if any; \
         `.to_array()` has a map per model: name, ln_z, error, ln_bayes_factor, ln_bayes_factor_error, weight, weight_error, verdict, reasons (as of `evidence`). `.verdict` is the worst of them.\n\n\
         Of results of `loo` it is a LooComparison: elpd_loo, and differences with the standard errors that they have over the same examples.",
        |models: Map| compare(models.into_iter().map(|(k, v)| (Some(k.to_string()), v))),
    )
    .function("compare(models) -> ModelComparison", "", |models: Array| compare(models.into_iter().map(|v| (None, v))));
}

/// By their evidence, or by leave-one-out cross-validation if the first is a result of that.
fn compare(models: impl Iterator<Item = (Option<String>, Dynamic)>) -> Bound<Dynamic> {
    let models: Vec<_> = models.collect();
    if models.first().is_some_and(|(_, m)| m.is::<Arc<Loo>>()) {
        let named = all_of("loo", models, |x: &Arc<Loo>| x.name.clone())?;
        return loo::compare(named)
            .map(|c| Dynamic::from(Arc::new(c)))
            .or_raise();
    }
    let named = all_of("evidence", models, |x: &Arc<Evidence>| x.name.clone())?;
    evidence::compare(named)
        .map(|c| Dynamic::from(Arc::new(c)))
        .or_raise()
}

/// Models that are all results of one verb, each with its name, or that of its run.
fn all_of<T: Variant + Clone>(
    verb: &str,
    models: Vec<(Option<String>, Dynamic)>,
    name_of: fn(&T) -> String,
) -> Bound<Vec<(String, T)>> {
    let one = |(name, value): (Option<String>, Dynamic)| {
        let kind = match value.type_name() {
            _ if value.is::<Arc<Run>>() => "a run: write evidence(run) or loo(run)".into(),
            _ if value.is::<Arc<Smc>>() => "a result of smc: write evidence(p)".into(),
            other => a_kind(other),
        };
        let model = value.try_cast::<T>().ok_or_else(|| {
            raise(anyhow!(
                "compare: a model is {kind}, but must be a result of {verb}(run)"
            ))
        })?;
        Ok((name.unwrap_or_else(|| name_of(&model)), model))
    };
    models.into_iter().map(one).collect()
}
