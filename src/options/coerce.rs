//! Values as the kinds that option tables ask for.

use super::{Kind, Range, Spec, Value};
use crate::error::a;
use crate::schedule::Schedule;

/// The largest whole number: a float that is larger may be another one than was written.
const MOST: f64 = 1e15;

fn beyond(v: &Value, r: Range) -> String {
    format!(
        "is {}, but must be {} and at most {MOST:e}",
        v.describe(),
        r.describe()
    )
}

/// A default value from its text in the table.
pub(super) fn literal(text: &str) -> Value {
    let list = |t: &str| t.split(',').map(|x| literal(x.trim())).collect();
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "[]" => Value::List(Vec::new()),
        t if t.starts_with('[') && t.ends_with(']') => Value::List(list(&t[1..t.len() - 1])),
        t => t
            .replace('_', "")
            .parse()
            .map(Value::Int)
            .or_else(|_| t.parse().map(Value::Float))
            .unwrap_or_else(|_| Value::Text(t.trim_matches('"').into())),
    }
}

/// `value` as the kind of `spec`, or what is wrong with it (a clause that follows "option 'x'").
pub(super) fn coerce(value: &Value, spec: &Spec) -> std::result::Result<Value, String> {
    let expected = || {
        format!(
            "is {}, but must be {}",
            value.describe(),
            spec.kind.describe()
        )
    };
    let whole_number = matches!(spec.kind, Kind::Int(_) | Kind::Ints(_) | Kind::Trigger);
    let in_range = |x: f64, r: Range| {
        if r.holds(x) {
            Ok(x)
        } else {
            let shown = if x.fract() == 0.0 && whole_number {
                format!("{x:.0}")
            } else {
                format!("{x:?}")
            };
            Err(format!("is {shown}, but must be {}", r.describe()))
        }
    };
    let whole = |v: &Value, r: Range| match v {
        // Counts are multiplied with each other. Others, as seeds, may be any whole number.
        Value::Int(x) if matches!(r, Range::AtLeast(_)) && *x as f64 > MOST => Err(beyond(v, r)),
        Value::Int(x) => in_range(*x as f64, r).map(|_| Value::Int(*x)),
        Value::Float(x) if x.fract() == 0.0 && x.abs() > MOST => Err(beyond(v, r)),
        Value::Float(x) if x.fract() == 0.0 => in_range(*x, r).map(|x| Value::Int(x as i64)),
        Value::Float(_) => Err(format!("is {}, but must be a whole number", v.describe())),
        _ => Err(expected()),
    };
    let float = |v: &Value, r: Range| match v.number() {
        Some(x) => in_range(x, r).map(Value::Float),
        None => Err(expected()),
    };
    let each = |f: &dyn Fn(&Value) -> std::result::Result<Value, String>| match value {
        Value::List(items) => items
            .iter()
            .enumerate()
            .map(|(i, v)| f(v).map_err(|e| format!("[{i}] {e}")))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map(Value::List),
        _ => Err(expected()),
    };
    match spec.kind {
        Kind::Float(r) => float(value, r),
        Kind::Int(r) => whole(value, r),
        Kind::Schedule(r) => match value {
            Value::Object(o, _) => match o.downcast_ref::<Schedule>() {
                Some(s) => match s.check(|x| r.holds(x)) {
                    Ok(()) => Ok(value.clone()),
                    Err(e) => Err(format!("must be {} at every step, but {e}", r.describe())),
                },
                None => Err(expected()),
            },
            v => float(v, r),
        },
        Kind::Bool => matches!(value, Value::Bool(_))
            .then(|| value.clone())
            .ok_or_else(expected),
        Kind::Text => matches!(value, Value::Text(_))
            .then(|| value.clone())
            .ok_or_else(expected),
        Kind::Choice(choices) => match value {
            Value::Text(t) if choices.contains(&t.as_str()) => Ok(value.clone()),
            Value::Text(t) => Err(format!(
                "is \"{t}\", but must be {}{}",
                spec.kind.describe(),
                match crate::error::nearest(t, choices.iter().copied()) {
                    Some(k) => format!("; did you mean \"{k}\"?"),
                    None => String::new(),
                }
            )),
            _ => Err(expected()),
        },
        Kind::Floats(r) => each(&|v| float(v, r)),
        Kind::Ints(r) => each(&|v| whole(v, r)),
        Kind::Trigger => match value {
            Value::Object(_, "Trigger") => Ok(value.clone()),
            v => whole(v, Range::AtLeast(1.0)),
        },
        Kind::Object(name) => match value {
            Value::Object(_, n) if *n == name => Ok(value.clone()),
            _ => Err(format!("is {}, but must be {}", value.describe(), a(name))),
        },
        Kind::Objects(name) => each(&|v| match v {
            Value::Object(_, n) if *n == name => Ok(v.clone()),
            _ => Err(format!("is {}, but must be {}", v.describe(), a(name))),
        }),
        Kind::Anything(_) => Ok(value.clone()),
    }
}
