//! Values between the script and the program.

use super::words::a_kind;
use super::{Bound, Call, OrRaise, closure, expressions, kinds, raise, report, tensors};
use crate::error::Result;
use crate::kernels::tensor::Tensor;
use crate::options::{Options, Spec, Value};
use anyhow::anyhow;
use rhai::{Array, Dynamic, FnPtr, Map};
use serde_json::Value as Json;

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
    if let Some(map) = x.read_lock::<Map>() {
        return Value::Map(given(&map, call));
    }
    if let Some(f) = x.read_lock::<FnPtr>() {
        return closure::observable(&f, call).into();
    }
    if let Some(t) = x.read_lock::<Tensor>().filter(|t| t.as_vector().is_none()) {
        return tensors::to_options(&t).unwrap_or_else(|| Value::Other("a tensor".into()));
    }
    tensors::object(x).unwrap_or_else(|| Value::Other(super::words::kind(x)))
}

/// The program's value as a script's.
pub(super) fn from_value(x: &Value) -> Dynamic {
    match x {
        Value::Bool(x) => (*x).into(),
        Value::Int(x) => (*x).into(),
        Value::Float(x) => (*x).into(),
        Value::Text(x) => x.clone().into(),
        Value::List(x) => x.iter().map(from_value).collect::<Array>().into(),
        Value::Map(x) => x
            .iter()
            .map(|(k, v)| (k.into(), from_value(v)))
            .collect::<Map>()
            .into(),
        Value::Object(x, name) => kinds::back(x, name).unwrap_or_default(),
        Value::Other(_) => Dynamic::UNIT,
    }
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
    let one = |k: &str, v: &Dynamic| match (k, v.read_lock::<FnPtr>()) {
        // Other closures are observables.
        ("loss", Some(f)) => expressions::loss(call, &Map::new(), &f).map(Value::from),
        ("prior", Some(f)) => expressions::prior(call, &Map::new(), &f).map(Value::from),
        _ => Ok(to_value(v, call)),
    };
    map.iter()
        .filter(|(_, v)| !v.is_unit())
        .map(|(k, v)| {
            let value = one(k, v).unwrap_or_else(|e| {
                Value::Other(format!(
                    "a closure that cannot be used: {}",
                    report::cause(&e)
                ))
            });
            (k.to_string(), value)
        })
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
    let known = kinds::of(x).and_then(|known| (known.result)(x));
    known.unwrap_or_else(|| Json::String(show(x)))
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
pub(super) fn entry(entries: &Json, what: &str, name: &str) -> Bound<Dynamic> {
    let missing = || {
        let known = entries.as_object().into_iter().flatten();
        let hint = crate::error::did_you_mean(name, known.map(|(k, _)| k.as_str()));
        anyhow::anyhow!("{what} has no '{name}'{hint}")
    };
    let found = entries.get(name).map(from_json);
    found.ok_or_else(missing).or_raise()
}

/// A number of a script.
pub(super) fn number(x: &Dynamic) -> Bound<f64> {
    x.as_float()
        .or_else(|_| x.as_int().map(|i| i as f64))
        .map_err(|t| raise(anyhow!("expected numbers, not {}", a_kind(t))))
}

/// An array of numbers of a script.
pub(super) fn numbers(a: &Array) -> Bound<Vec<f64>> {
    a.iter().map(number).collect()
}
