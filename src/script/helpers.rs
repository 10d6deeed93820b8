//! What recipes need besides: their own options, names of their runs, statistics of arrays, and samplers at another step size.

use super::binder::Binder;
use super::convert::{from_json, map, number, numbers};
use super::library::Library;
use super::report::INTERRUPTED;
use super::words::a_kind;
use super::{Bound, OrRaise, raise, recipe};
use crate::diagnostic;
use crate::error::did_you_mean;
use crate::options::Range;
use crate::sampler::ConfiguredSampler;
use crate::simulation::prediction::Predictor;
use crate::simulation::session;
use crate::simulation::summary::with_error;
use crate::simulation::temper::Temper;
use crate::simulation::transcript::GOES_ON;
use crate::store;
use crate::target::Target;
use crate::target::prior::Parameters;
use anyhow::anyhow;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map, NativeCallContext};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) fn bind(b: &mut Binder) {
    b.function(
        "sleep(seconds)",
        "Wait. An interrupt ends it.",
        |native: NativeCallContext, seconds: f64| sleep(&native, seconds),
    )
    .with(&[], "sleep(0.01)");
    b.function(
        "sleep(seconds)",
        "",
        |native: NativeCallContext, seconds: i64| sleep(&native, seconds as f64),
    );
    own_options(b);
    statistics(b);
    samplers(b);
    predictions(b);
}

/// Rhai's own sleeps to the end, whatever happens.
fn sleep(native: &NativeCallContext, seconds: f64) -> Bound<()> {
    let begin = Instant::now();
    // Of nothing, NaN included, no time is left.
    let left = || seconds - begin.elapsed().as_secs_f64();
    while left() > 0.0 {
        if session::interrupted() {
            let position = native.call_position();
            return Err(EvalAltResult::ErrorTerminated(INTERRUPTED.into(), position).into());
        }
        std::thread::sleep(Duration::from_secs_f64(left().clamp(0.0, 0.05)));
    }
    Ok(())
}

/// What messages call the function of a script that calls a native one.
fn caller(library: &Library, native: &NativeCallContext) -> String {
    let file = native.call_source().unwrap_or_default();
    let text = library.text(file);
    let line = native.call_position().line();
    let function = text.zip(line).and_then(|(t, l)| recipe::function_at(&t, l));
    let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy());
    match (stem, function) {
        (Some(stem), Some(function)) => format!("{stem}::{function}"),
        (_, Some(function)) => function,
        _ => "options".into(),
    }
}

/// A given value as the kind of its default; an error says what it must be.
fn like(given: &Dynamic, default: &Dynamic) -> Result<Dynamic, &'static str> {
    let kind = |x: &Dynamic| match () {
        _ if x.is_bool() => "true or false",
        _ if x.is_string() => "a string",
        _ if x.is_array() => "an array",
        _ if x.is_map() => "a map #{…}",
        _ if x.is::<FnPtr>() => "a closure",
        _ => "an object of the same type",
    };
    let wanted = match () {
        _ if default.is_unit() || given.is_unit() => return Ok(given.clone()),
        _ if default.is_float() => match number(given) {
            Ok(x) => return Ok(x.into()),
            Err(_) => "a number",
        },
        _ if default.is_int() => match (given.as_int(), given.as_float()) {
            (Ok(x), _) if x.unsigned_abs() <= 1_000_000_000_000_000 => return Ok(x.into()),
            (_, Ok(x)) if x.fract() == 0.0 && x.abs() <= 1e15 => return Ok((x as i64).into()),
            _ => "a whole number of at most 1e15",
        },
        _ if given.type_id() == default.type_id() => return Ok(given.clone()),
        _ => kind(default),
    };
    Err(wanted)
}

/// An error, of what it must be, unless every number of a value is finite and in a range, or a string is one of those allowed.
fn allowed(value: &Dynamic, range: Option<&Dynamic>) -> Result<(), String> {
    if let Some(list) = value.read_lock::<Array>() {
        return list.iter().try_for_each(|x| allowed(x, range));
    }
    let choices = range.and_then(|r| r.read_lock::<Array>());
    if let Some(choices) = choices {
        let choices: Vec<_> = choices.iter().map(|c| format!("\"{c}\"")).collect();
        let found = value.is_string() && choices.contains(&format!("\"{value}\""));
        return if found {
            Ok(())
        } else {
            Err(choices.join(" or "))
        };
    }
    let text = range.map(ToString::to_string);
    let range = match &text {
        Some(text) => Range::parse(text).ok_or_else(|| {
            format!("in the range \"{text}\", which is not written as \"x > 0\" or \"0 < x <= 1\"")
        })?,
        None => Range::Any,
    };
    match number(value) {
        Ok(x) if range.holds(x) => Ok(()),
        Err(_) if text.is_none() || value.is_unit() => Ok(()),
        // Schedules and the like know what they allow.
        Err(_) if !value.is_string() && !value.is_bool() => Ok(()),
        _ => Err(range.describe()),
    }
}

/// `defaults` with what is `given` in their place, within `ranges`.
fn checked(given: Map, defaults: Map, ranges: &Map) -> Result<Map, String> {
    let mut out = defaults.clone();
    for (name, value) in given {
        let Some(default) = defaults.get(&name) else {
            let known: Vec<_> = defaults.keys().map(|k| k.as_str()).collect();
            let what = match name.as_str() {
                "resume" => format!("; what it runs goes on: {GOES_ON}"),
                name => did_you_mean(name, known),
            };
            return Err(format!("has no option '{name}'{what}"));
        };
        if value.is_unit() {
            continue;
        }
        let wrong = |wanted: &str| {
            format!("cannot use option '{name}': it is {value}, but must be {wanted}")
        };
        let found = like(&value, default).map_err(wrong)?;
        allowed(&found, ranges.get(&name)).map_err(|wanted| wrong(&wanted))?;
        out.insert(name, found);
    }
    Ok(out)
}

fn own_options(b: &mut Binder) {
    let library = b.context.library.clone();
    b.defaulted(
        "options(given, defaults, ranges) -> map",
        "The options of a function of your own, checked like built-in ones: `defaults`, overridden by what is `given`.\n\n\
         A name that is not among the defaults is an error that suggests the nearest one; a value of another kind is an error too; whole numbers pass as numbers, and numbers must be finite. Anything goes where the default \
         is `()`, and a given `()` is the default. `ranges`, which may be left out, says what numbers are allowed, `\"x > 0\"` or `\"0 < x <= 1\"`, also of those in an array, or which strings, `[\"linear\", \"geometric\"]`. \
         Comments behind the defaults are shown as the meaning of the options, by `ergodic docs` and where a script is written.",
        Map::new(),
        move |native: NativeCallContext, given: Map, defaults: Map, ranges: Map| -> Bound<Map> {
            let found = checked(given, defaults, &ranges);
            found.map_err(|text| raise(anyhow!("{} {text}", caller(&library, &native))))
        },
    )
    .with(&[], "options(#{ steps: 10 }, #{ steps: 1000, width: 0.1 }, #{ width: \"x > 0\" })");
    let context = b.context.clone();
    b.function(
        "run_name(kind, requested) -> string",
        "A name for several runs to begin their names with: `requested`, or `kind-1`, `kind-2`, … where that is `()`.\n\nIt is the same whenever the script runs, so that `--resume` finds the runs.",
        move |kind: &str, requested: Dynamic| -> Bound<String> {
            let requested = match requested.is_unit() {
                true => None,
                false => Some(requested.into_string().map_err(|t| raise(anyhow!("{kind}: the name of the runs must be a string, not {}", a_kind(t))))?),
            };
            context.session.name_run(kind, requested.as_deref()).or_raise()
        },
    )
    .with(&[], "run_name(\"transition\", ())");
}

fn statistics(b: &mut Binder) {
    b.function(
        "statistics(chains) -> map",
        "Mean and standard deviation, with their errors, of numbers in arrays, one per chain, as `run.draws(…)` gives them.\n\n\
         `#{ mean, mcse, sd, sd_mcse, variance, variance_mcse, ess, ess_tail, rhat, autocorrelation_time }`; all chains are cut to the shortest.",
        |chains: Array| -> Bound<Map> {
            let wrong = || raise(anyhow!("statistics: this is not an array of arrays of numbers; for one chain write statistics([numbers])"));
            let chain = |c: Dynamic| numbers(&c.try_cast::<Array>().ok_or_else(wrong)?);
            let chains: Vec<Vec<f64>> = chains.into_iter().map(chain).collect::<Bound<_>>()?;
            let s = diagnostic::summarise(&chains);
            let (variance, error) = diagnostic::variance(&chains);
            let pairs = [
                ("mean", s.mean), ("mcse", s.mcse_mean), ("sd", s.sd), ("sd_mcse", s.mcse_sd), ("variance", variance), ("variance_mcse", error), ("ess", s.ess_bulk), ("ess_tail", s.ess_tail),
                ("rhat", s.r_hat), ("autocorrelation_time", s.autocorrelation_time),
            ];
            Ok(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
        },
    )
    .with(&[], "statistics([[1.0, 2.0, 1.5, 1.2], [1.1, 1.9, 1.4, 1.6]]).mean");
    b.function(
        "fit_line(x, y, error) -> map",
        "The straight line through points with error bars, by least squares weighted with 1/error².\n\n\
         `#{ slope, slope_error, intercept, intercept_error, chi2, degrees }`: the errors follow from those of y, and chi2 is about `degrees` where the points are on a line.",
        |x: Array, y: Array, error: Array| -> Bound<Map> {
            let (x, y, error) = (numbers(&x)?, numbers(&y)?, numbers(&error)?);
            if x.len() != y.len() || y.len() != error.len() {
                return Err(raise(anyhow!("fit_line: {} x, {} y and {} errors, but there must be as many of each", x.len(), y.len(), error.len())));
            }
            let points: Vec<_> = x.into_iter().zip(y).zip(error).map(|((x, y), e)| (x, y, e)).collect();
            let none = || raise(anyhow!("fit_line needs at least two different x, finite numbers, and errors > 0"));
            let l = diagnostic::line(&points).ok_or_else(none)?;
            let pairs = [("slope", l.slope), ("slope_error", l.slope_error), ("intercept", l.intercept), ("intercept_error", l.intercept_error), ("chi2", l.chi2)];
            let mut out: Map = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
            out.insert("degrees".into(), (l.degrees as i64).into());
            Ok(out)
        },
    )
    .with(&[], "fit_line([0, 1, 2], [1.0, 2.1, 2.9], [0.1, 0.1, 0.1]).slope");
    b.function(
        "read_json(path) -> map",
        "What a JSON file holds, as maps, arrays, numbers and strings; null is NaN.",
        |path: &str| -> Bound<Dynamic> {
            let read = || -> crate::error::Result<Dynamic> {
                let text = store::disk::read_text(path.as_ref())?;
                Ok(from_json(&serde_json::from_str(&text)?))
            };
            read().map_err(|e| raise(anyhow!("read_json(\"{path}\"): {e}")))
        },
    )
    .with(
        &[],
        "read_json(\"tests/data/posteriordb/eight_schools-eight_schools_noncentered.json\").data.y",
    );
    b.function(
        "with_error(value, error) -> string",
        "A number with its standard error in the last digits, as tables have it: `0.1234(12)` is 0.1234 ± 0.0012.",
        |value: Dynamic, error: Dynamic| -> Bound<String> { Ok(with_error(number(&value)?, number(&error)?)) },
    )
    .with(&[], "with_error(0.12345, 0.0012)");
    b.function(
        "digits(value, count) -> string",
        "A number with so many significant digits, for text: `digits(0.012345, 2)` is 0.012.",
        |value: Dynamic, count: i64| -> Bound<String> {
            let (value, count) = (number(&value)?, count.clamp(1, 17) as i32);
            let magnitude = value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
            Ok(match magnitude {
                _ if value == 0.0 || !value.is_finite() => format!("{value}"),
                -4..=6 => format!("{value:.0$}", (count - 1 - magnitude).max(0) as usize),
                _ => format!("{value:.0$e}", count as usize - 1),
            })
        },
    )
    .with(&[], "digits(0.012345, 2)");
}

fn samplers(b: &mut Binder) {
    b.function(
        "sampler.step_size() -> number",
        "The step size (`step`, `dt` or `sigma`; `ratio` of sampler::pseudo_langevin, unless its masses are uniform) of a sampler whose step is fixed; NaN if it is adapted or follows a schedule.",
        |s: &mut Arc<ConfiguredSampler>| s.step_size().map_or(f64::NAN, |(_, size)| size),
    )
    .with(&[], "sampler::sgld(#{ step: 1e-3, batch: 10 }).step_size()");
    b.function(
        "sampler.with_step_size(size) -> Sampler",
        "The same sampler at another step size.",
        |s: &mut Arc<ConfiguredSampler>, size: Dynamic| -> Bound<Arc<ConfiguredSampler>> {
            let size = number(&size)?;
            let (option, _) = s.step_size().ok_or_else(|| {
                raise(anyhow!(
                    "sampler.with_step_size: sampler::{} has no fixed step size; give it one",
                    s.name()
                ))
            })?;
            Ok(s.with(option, size)
                .or_raise()?
                .unwrap_or_else(|| s.clone()))
        },
    )
    .with(
        &[],
        "sampler::hmc(#{ dt: 0.1, adapt: false }).with_step_size(0.05).step_size()",
    );
    b.function(
        "sampler.is_exact() -> bool",
        "Whether the sampler accepts or rejects by the energy over all examples, so that its law has no error from the step size or from minibatches: `hmc`, `nuts`, `mala`, `metropolis`.",
        |s: &mut Arc<ConfiguredSampler>| s.is_exact(),
    )
    .with(&[], "sampler::mala().is_exact()");
    b.function(
        "sampler.gradients_per_step() -> number",
        "How often a step computes the gradient (or the energy, where it needs no gradient); NaN where that varies and is recorded as `leapfrog`.",
        |s: &mut Arc<ConfiguredSampler>| s.gradients_per_step().unwrap_or(f64::NAN),
    )
    .with(&[], "sampler::hmc(#{ leapfrog: 20 }).gradients_per_step()");
    b.function(
        "sampler.batch() -> integer",
        "Examples per minibatch; 0 if gradients are over all examples.",
        |s: &mut Arc<ConfiguredSampler>| s.batch().unwrap_or(0) as i64,
    )
    .with(&[], "sampler::sgld(#{ step: 1e-3, batch: 10 }).batch()");
}

fn predictions(b: &mut Binder) {
    let of = |t: &Target, at: &Dynamic, split: &str, temperature: f64| -> Bound<Map> {
        let given = super::tensors::parameters_of(at).ok_or_else(|| {
            raise(anyhow!(
                "target.prediction takes parameters, not {}",
                a_kind(at.type_name())
            ))
        })?;
        let scores = || {
            anyhow::ensure!(
                temperature > 0.0,
                "target.prediction: the temperature is {temperature}, but must be > 0"
            );
            let predictor = Predictor::new(t, Temper::Energy, split)?;
            let mut sums = vec![0.0; predictor.width()];
            for w in &given.vectors {
                anyhow::ensure!(
                    w.len() == t.dim(),
                    "target.prediction: {} parameters for a model of {}",
                    w.len(),
                    t.dim()
                );
                predictor.update(&mut sums, w, None, temperature)?;
            }
            Ok(predictor.scores(&sums, temperature))
        };
        Ok(map(&scores().or_raise()?))
    };
    b.defaulted(
        "target.prediction(parameters, split, temperature) -> map",
        "Scores on a split of the prediction averaged over parameter vectors: for one vector its own, for several those of the ensemble.\n\n\
         The entries are those of `run.prediction`, which averages over all draws of a run. The temperature, 1 if it is left out, is that of the likelihood.",
        1.0,
        move |t: &mut Arc<Target>, at: Dynamic, split: &str, temperature: Dynamic| of(t, &at, split, number(&temperature)?),
    )
    .with(
        &[],
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits());\nt.prediction(train(t, optimizer::adam(#{ epochs: 2 })), \"test\").nll",
    );
    b.function(
        "parameters.len() -> integer",
        "How many vectors there are.",
        |p: &mut Arc<Parameters>| p.vectors.len() as i64,
    )
    .with(&[], "parameters([[0.0], [1.5]]).len()");
}
