//! Values between the script and the program.

use super::{Bound, OrRaise, closure, tensors};
use crate::error::Result;
use crate::kernels::tensor::Tensor;
use crate::model::Model;
use crate::observable::Handle;
use crate::options::{Options, Spec, Value};
use crate::sampler::Configured;
use crate::sampler::gradient::Estimator;
use crate::schedule::Schedule;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::summary::Summary;
use crate::simulation::train::Trained;
use crate::target::prior::{Parameters, Prior};
use crate::trigger::Trigger;
use rhai::{Array, Dynamic, FnPtr, Map, NativeCallContext};
use serde_json::Value as Json;
use std::any::Any;
use std::sync::Arc;

/// A script's value as the program's.
pub(super) fn to_value(x: &Dynamic, call: &Call) -> Value {
    if let Ok(b) = x.as_bool() {
        return Value::Bool(b);
    }
    if let Ok(i) = x.as_int() {
        return Value::Int(i);
    }
    if let Ok(f) = x.as_float() {
        return Value::Float(f);
    }
    if let Some(s) = x.read_lock::<rhai::ImmutableString>() {
        return Value::Text(s.to_string());
    }
    if let Some(list) = x.read_lock::<Array>() {
        return Value::List(list.iter().map(|x| to_value(x, call)).collect());
    }
    if let Some(f) = x.read_lock::<FnPtr>() {
        return Value::Object(closure::observable(&f, call), "Observable");
    }
    if let Some(t) = x.read_lock::<Tensor>().filter(|t| t.as_vector().is_none()) {
        return tensors::to_options(&t).unwrap_or_else(|| Value::Other("a tensor".into()));
    }
    object(x).unwrap_or_else(|| Value::Other(super::words::kind(x)))
}

/// The handles that options may hold.
fn object(x: &Dynamic) -> Option<Value> {
    fn handle<T: Any + Send + Sync + Clone>(x: &Dynamic) -> Option<T> {
        x.clone().try_cast::<T>()
    }
    let value = |a: Arc<dyn Any + Send + Sync>, name| Some(Value::Object(a, name));
    if let Some(p) = handle::<Arc<Prior>>(x) {
        return value(p, "Prior");
    }
    if let Some(e) = handle::<Arc<Estimator>>(x) {
        return value(e, "Gradient");
    }
    if let Some(s) = handle::<Arc<Configured>>(x) {
        return value(s, "Sampler");
    }
    if let Some(m) = handle::<Arc<dyn Model>>(x) {
        return value(Arc::new(m), "Model");
    }
    if let Some(s) = handle::<Arc<Schedule>>(x) {
        return value(s, "Schedule");
    }
    if let Some(t) = handle::<Arc<Trigger>>(x) {
        return value(t, "Trigger");
    }
    if let Some(o) = handle::<Handle>(x) {
        return value(o, "Observable");
    }
    parameters(x).and_then(|p| value(p, "Parameters"))
}

/// Parameters, or anything that holds some: a training, a run, the state of a chain.
pub(super) fn parameters(x: &Dynamic) -> Option<Arc<Parameters>> {
    let x = x.clone();
    if x.is::<Arc<Trained>>() {
        return x.try_cast::<Arc<Trained>>().map(|t| t.params.clone());
    }
    if x.is::<Arc<Run>>() {
        return x.try_cast::<Arc<Run>>().map(|r| {
            Arc::new(Parameters {
                vectors: r.params.clone(),
            })
        });
    }
    if x.is::<Arc<Smc>>() {
        return x.try_cast::<Arc<Smc>>().map(|s| s.params.clone());
    }
    if let Some(t) = x.read_lock::<Tensor>() {
        return tensors::parameters(&t).ok().map(Arc::new);
    }
    x.try_cast()
}

/// What is needed to turn closures into observables.
pub(super) struct Call<'a> {
    pub context: &'a Arc<super::Context>,
    pub native: &'a NativeCallContext<'a>,
}

/// Check a script's options map against a table; an option that is `()` is not given.
pub(super) fn options(
    call: &Call,
    owner: &str,
    specs: &'static [Spec],
    map: &Map,
) -> Result<Options> {
    Options::check(owner, specs, given(map, call))
}

/// What a map gives, name by name.
pub(super) fn given(map: &Map, call: &Call) -> Vec<(String, Value)> {
    map.iter()
        .filter(|(_, v)| !v.is_unit())
        .map(|(k, v)| (k.to_string(), to_value(v, call)))
        .collect()
}

/// JSON of a value, for `--json` and run.json: numbers, strings, arrays, maps, summaries; other objects as `show` prints them.
pub(super) fn to_json(x: &Dynamic, show: &dyn Fn(&Dynamic) -> String) -> Json {
    json_within(x, show, DEEPEST)
}

/// Arrays within arrays that JSON may have: readers take no more than 128, and run.json is around them.
const DEEPEST: usize = 100;

fn json_within(x: &Dynamic, show: &dyn Fn(&Dynamic) -> String, levels: usize) -> Json {
    let to_json = |x: &Dynamic| json_within(x, show, levels - 1);
    if levels == 0 && (x.is_array() || x.is_map()) {
        return Json::String(format!("… nested more than {DEEPEST} deep"));
    }
    if x.is_unit() {
        return Json::Null;
    }
    if let Ok(b) = x.as_bool() {
        return b.into();
    }
    if let Ok(i) = x.as_int() {
        return i.into();
    }
    if let Ok(f) = x.as_float() {
        return serde_json::Number::from_f64(f).map_or(Json::Null, Json::Number);
    }
    if let Some(s) = x.read_lock::<rhai::ImmutableString>() {
        return Json::String(s.to_string());
    }
    if let Some(list) = x.read_lock::<Array>() {
        return list.iter().map(to_json).collect();
    }
    if let Some(map) = x.read_lock::<Map>() {
        return map
            .iter()
            .map(|(k, v)| (k.to_string(), to_json(v)))
            .collect::<serde_json::Map<_, _>>()
            .into();
    }
    if let Some(t) = x.read_lock::<Tensor>() {
        return match tensors::to_dynamic(&t, "JSON") {
            Ok(x) => json_within(&x, show, levels),
            Err(e) => Json::String(e.to_string()),
        };
    }
    if let Some(s) = x.read_lock::<Arc<Summary>>() {
        return Json::Object(s.to_map());
    }
    if let Some(r) = x.read_lock::<Arc<Run>>() {
        return Summary::new(&r).map_or_else(
            |e| Json::String(e.to_string()),
            |s| Json::Object(s.to_map()),
        );
    }
    Json::String(show(x))
}

/// JSON as a script's value; null is NaN, because the numbers of a summary may be.
pub(super) fn from_json(x: &Json) -> Dynamic {
    match x {
        Json::Null => Dynamic::from(f64::NAN),
        Json::Bool(b) => (*b).into(),
        Json::Number(n) => match n.as_i64() {
            Some(i) => i.into(),
            None => n.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(s) => s.clone().into(),
        Json::Array(a) => a.iter().map(from_json).collect::<Array>().into(),
        Json::Object(o) => o
            .iter()
            .map(|(k, v)| (k.as_str().into(), from_json(v)))
            .collect::<Map>()
            .into(),
    }
}

/// A map of the program as one of the script.
pub(super) fn map(entries: &serde_json::Map<String, serde_json::Value>) -> Map {
    entries
        .iter()
        .map(|(k, v)| (k.as_str().into(), from_json(v)))
        .collect()
}

/// An entry of such a map; an error names the nearest one.
pub(super) fn entry(
    entries: &serde_json::Map<String, serde_json::Value>,
    what: &str,
    name: &str,
) -> Bound<Dynamic> {
    let known: Vec<_> = entries.keys().map(String::as_str).collect();
    let missing = || {
        anyhow::anyhow!(
            "{what} has no '{name}'{}",
            crate::error::did_you_mean(name, known)
        )
    };
    entries
        .get(name)
        .map(from_json)
        .ok_or_else(missing)
        .or_raise()
}
