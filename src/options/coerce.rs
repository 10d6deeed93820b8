//! Values as the kinds that option tables ask for.

use super::{Default, Kind, Range, Spec, Value};
use crate::error::{a, did_you_mean};
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

/// A value, or what is wrong with it (a clause that follows "option 'x'").
type Coerced = std::result::Result<Value, String>;

/// `value` as the kind of `spec`.
pub(super) fn coerce(value: &Value, spec: &Spec) -> Coerced {
    let asked = Asked {
        value,
        kind: spec.kind,
    };
    match (spec.kind, value) {
        (Kind::Float(r), v) => asked.float(v, r),
        (Kind::Int(r), v) => asked.whole(v, r),
        (Kind::Schedule(r), Value::Object(o, _)) => match o.downcast_ref::<Schedule>() {
            Some(s) => match s.check(|x| r.holds(x)) {
                Ok(()) => Ok(value.clone()),
                Err(e) => Err(format!("must be {} at every step, but {e}", r.describe())),
            },
            None => Err(asked.expected()),
        },
        (Kind::Schedule(r), v) => asked.float(v, r),
        (Kind::Choice(choices), Value::Text(t)) if !choices.contains(&t.as_str()) => Err(format!(
            "is \"{t}\", but must be {}{}",
            spec.kind.describe(),
            match crate::error::nearest(t, choices.iter().copied()) {
                Some(k) => format!("; did you mean \"{k}\"?"),
                None => String::new(),
            }
        )),
        (Kind::Floats(r), Value::List(items)) => each(items, |v| asked.float(v, r)),
        (Kind::Ints(r), Value::List(items)) => each(items, |v| asked.whole(v, r)),
        (Kind::Objects(name), Value::List(items)) => each(items, |v| object(v, name)),
        (Kind::Object(name), v) => object(v, name),
        (Kind::Map(entries), Value::Map(given)) => map(given, entries),
        (Kind::Bool, Value::Bool(_))
        | (Kind::Text | Kind::Choice(_), Value::Text(_))
        | (Kind::Trigger, Value::Object(_, "Trigger"))
        | (Kind::Anything(_), _) => Ok(value.clone()),
        (Kind::Trigger, v) => asked.whole(v, Range::AtLeast(1.0)),
        (Kind::Map(_), _) => Err(format!(
            "is {}, but must be a map, #{{…}}",
            value.describe()
        )),
        (Kind::Bool | Kind::Text | Kind::Choice(_), _)
        | (Kind::Floats(_) | Kind::Ints(_) | Kind::Objects(_), _) => Err(asked.expected()),
    }
}

fn each(items: &[Value], f: impl Fn(&Value) -> Coerced) -> Coerced {
    items
        .iter()
        .enumerate()
        .map(|(i, v)| f(v).map_err(|e| format!("[{i}] {e}")))
        .collect::<std::result::Result<Vec<_>, _>>()
        .map(Value::List)
}

/// A map of known entries, each of its kind; those that are missing have their defaults.
fn map(given: &[(String, Value)], entries: &'static [Spec]) -> Coerced {
    for (name, _) in given {
        if entries.iter().all(|e| e.name != name) {
            let known = entries.iter().map(|e| e.name);
            return Err(format!(
                "has no entry '{name}'{}",
                did_you_mean(name, known)
            ));
        }
    }
    let mut out = Vec::new();
    for entry in entries {
        let given = given.iter().find(|(name, _)| name == entry.name);
        let value = match (given, entry.default) {
            (Some((_, value)), _) => coerce(value, entry),
            (None, Default::Is(text)) => coerce(&literal(text), entry),
            (None, Default::Absent(_)) => continue,
            (None, Default::Required) => Err("is missing".into()),
        };
        let value = value.map_err(|e| format!("has the entry '{}', which {e}", entry.name))?;
        out.push((entry.name.to_string(), value));
    }
    Ok(Value::Map(out))
}

fn object(v: &Value, name: &str) -> Coerced {
    match v {
        Value::Object(_, n) if *n == name => Ok(v.clone()),
        _ => Err(format!("is {}, but must be {}", v.describe(), a(name))),
    }
}

/// What was given, and as what.
struct Asked<'a> {
    value: &'a Value,
    kind: Kind,
}

impl Asked<'_> {
    fn expected(&self) -> String {
        format!(
            "is {}, but must be {}",
            self.value.describe(),
            self.kind.describe()
        )
    }

    fn in_range(&self, x: f64, r: Range) -> std::result::Result<f64, String> {
        if r.holds(x) {
            return Ok(x);
        }
        let whole_number = matches!(self.kind, Kind::Int(_) | Kind::Ints(_) | Kind::Trigger);
        let shown = if x.fract() == 0.0 && whole_number {
            format!("{x:.0}")
        } else {
            format!("{x:?}")
        };
        Err(format!("is {shown}, but must be {}", r.describe()))
    }

    /// The value, or an element of it, as a whole number.
    fn whole(&self, v: &Value, r: Range) -> Coerced {
        match v {
            // Counts are multiplied with each other. Others, as seeds, may be any whole number.
            Value::Int(x) if matches!(r, Range::AtLeast(_)) && *x as f64 > MOST => {
                Err(beyond(v, r))
            }
            Value::Int(x) => self.in_range(*x as f64, r).map(|_| Value::Int(*x)),
            Value::Float(x) if x.fract() == 0.0 && x.abs() > MOST => Err(beyond(v, r)),
            Value::Float(x) if x.fract() == 0.0 => {
                self.in_range(*x, r).map(|x| Value::Int(x as i64))
            }
            Value::Float(_) => Err(format!("is {}, but must be a whole number", v.describe())),
            _ => Err(self.expected()),
        }
    }

    /// The value, or an element of it, as a number.
    fn float(&self, v: &Value, r: Range) -> Coerced {
        match v.number() {
            Some(x) => self.in_range(x, r).map(Value::Float),
            None => Err(self.expected()),
        }
    }
}
