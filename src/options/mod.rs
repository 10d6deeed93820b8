//! Options: the one place where an option's name, kind, range, default and meaning stand together.
//!
//! Every constructor that a script can call is an [`Entry`] with a table of [`Spec`]s. Checking, error messages, completion
//! and the generated reference all read that table; a component reads its checked [`Options`] and never sees a script value.

mod coerce;
mod given;
mod kind;

use crate::error::{BadOption, Result, a, did_you_mean};
use crate::schedule::Schedule;
use anyhow::{anyhow, bail};
use coerce::{coerce, literal};
pub use given::OptionMap;
pub use kind::{Kind, Range};
use std::any::Any;
use std::sync::Arc;

/// A value given by a script, free of the scripting language.
#[derive(Clone)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// A map.
    Map(Vec<(String, Value)>),
    /// A handle to an object of the program, and what to call its type in messages.
    Object(Arc<dyn Any + Send + Sync>, &'static str),
    /// Anything else, as messages name it: "a map".
    Other(String),
}

impl Value {
    /// The value as messages and summaries show it.
    pub fn describe(&self) -> String {
        match self {
            Value::Bool(x) => format!("{x}"),
            Value::Int(x) => format!("{x}"),
            Value::Float(x) => format!("{x:?}"),
            Value::Text(x) => format!("\"{x}\""),
            Value::List(x) => format!("an array of {} elements", x.len()),
            Value::Map(_) => "a map".into(),
            Value::Object(_, name) => a(name),
            Value::Other(name) => name.clone(),
        }
    }

    /// The object of this type, if it is one.
    pub fn as_object<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        match self {
            Value::Object(x, _) => x.clone().downcast().ok(),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Int(x) => Some(*x as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }
}

/// What holds when an option is not given.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// It must be given.
    Required,
    /// It may be absent; the text says what then happens.
    Absent(&'static str),
    /// This value, as a script would write it.
    Is(&'static str),
}

/// One option: name, kind, default and meaning.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Name, as written in the script.
    pub name: &'static str,
    /// Kind and range.
    pub kind: Kind,
    /// Default.
    pub default: Default,
    /// Meaning, with unit.
    pub doc: &'static str,
}

/// An option with a default, written as in a script.
pub const fn option(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Spec {
    Spec {
        name,
        kind,
        default: Default::Is(default),
        doc,
    }
}

/// An option that must be given.
pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Spec {
    Spec {
        name,
        kind,
        default: Default::Required,
        doc,
    }
}

/// An option that may be absent; `otherwise` says what then happens.
pub const fn optional(
    name: &'static str,
    kind: Kind,
    otherwise: &'static str,
    doc: &'static str,
) -> Spec {
    Spec {
        name,
        kind,
        default: Default::Absent(otherwise),
        doc,
    }
}

/// Whether an option takes a value; if not, what is wrong with it, to follow its name.
pub(crate) fn accepts(value: &Value, spec: &Spec) -> std::result::Result<(), String> {
    coerce(value, spec).map(drop)
}

/// A constructor that scripts can call: `namespace::name(arguments…, #{ options })`.
pub struct Entry<T: 'static> {
    /// Name within its namespace.
    pub name: &'static str,
    /// Documentation: the first line says what it is; formulae with their source.
    pub doc: &'static str,
    /// Names of the options that may also be given by position, in order.
    pub arguments: &'static [&'static str],
    /// All options.
    pub options: &'static [Spec],
    /// A call that runs, for the reference; it is executed as a test.
    pub example: &'static str,
    /// Build the object from checked options.
    pub build: fn(&Options) -> Result<T>,
}

impl<T> Entry<T> {
    /// Check the options and build the object.
    ///
    /// # Errors
    /// If an option is unknown, missing, of another kind or out of its range, and those of the constructor.
    pub fn make(&self, namespace: &str, given: OptionMap) -> Result<T> {
        let owner = format!("{namespace}::{}", self.name);
        (self.build)(&Options::check(&owner, self.options, given.into_pairs())?)
    }
}

/// The entry of that name.
///
/// # Errors
/// If there is none; the message proposes the nearest one.
pub(crate) fn find<T>(
    namespace: &str,
    entries: &'static [Entry<T>],
    name: &str,
) -> Result<&'static Entry<T>> {
    entries.iter().find(|e| e.name == name).ok_or_else(|| {
        anyhow!(
            "there is no {namespace}::{name}{}",
            did_you_mean(name, entries.iter().map(|e| e.name))
        )
    })
}

/// That something has no option of this name, and what to do.
pub(crate) fn no_option<'a>(
    owner: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let what = match name {
        "resume" => "; nothing of it is saved on the way, so it begins anew (`ergodic docs sessions` says what goes on)".into(),
        _ => did_you_mean(name, known),
    };
    format!("{owner} has no option '{name}'{what}")
}

/// Checked options: every name is known, every value is of its kind and in its range, defaults are filled in.
#[derive(Clone)]
pub struct Options {
    owner: String,
    values: Vec<(&'static str, Value)>,
    /// Those that are no defaults.
    given: Vec<&'static str>,
}

impl Options {
    /// Check what was `given` against `specs`. `owner` is what messages call the thing ("sampler::sgld").
    pub fn check(
        owner: &str,
        specs: &'static [Spec],
        given: Vec<(String, Value)>,
    ) -> Result<Options> {
        let bad = |option: &str, message: String| BadOption {
            owner: owner.into(),
            option: option.into(),
            message,
        };
        for (name, _) in &given {
            if !specs.iter().any(|s| s.name == name) {
                let known = specs.iter().map(|s| s.name);
                bail!(bad(name, no_option(owner, name, known)));
            }
        }
        let mut values = Vec::new();
        let named = |s: &&Spec| given.iter().any(|(n, _)| n == s.name);
        let own = specs.iter().filter(named).map(|s| s.name).collect();
        for spec in specs {
            let value = match given.iter().find(|(n, _)| n == spec.name) {
                Some((_, v)) => {
                    let wrong = |e| bad(spec.name, format!("{owner}: option '{}' {e}", spec.name));
                    coerce(v, spec).map_err(wrong)?
                }
                None => match spec.default {
                    Default::Required => {
                        let (name, kind) = (spec.name, spec.kind.describe());
                        let message =
                            format!("{owner} needs the option '{name}' ({kind}): {}", spec.doc);
                        bail!(bad(name, message))
                    }
                    Default::Absent(_) => continue,
                    Default::Is(text) => coerce(&literal(text), spec)
                        .map_err(|e| anyhow!("{owner}: the default of '{}' {e}", spec.name))?,
                },
            };
            values.push((spec.name, value));
        }
        Ok(Options {
            owner: owner.into(),
            values,
            given: own,
        })
    }

    /// The same options, one of them with another value of its kind, or without one.
    pub fn with(&self, name: &'static str, value: Option<Value>) -> Self {
        let mut out = self.clone();
        out.values.retain(|(n, _)| *n != name);
        out.values.extend(value.map(|v| (name, v)));
        out
    }

    /// Whether an option was given, and is not what it is by default.
    pub fn was_given(&self, name: &str) -> bool {
        self.given.contains(&name)
    }

    /// What messages call the thing that these options configure.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The value of an option, if it was given or has a default.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn wrong(&self, name: &str) -> anyhow::Error {
        anyhow!(
            "{}: the option '{name}' is missing or of another kind than its table says",
            self.owner
        )
    }

    /// A number that has a default or must be given.
    pub fn float(&self, name: &str) -> Result<f64> {
        self.get(name)
            .and_then(Value::number)
            .ok_or_else(|| self.wrong(name))
    }

    /// A number that may be absent.
    pub fn opt_float(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(Value::number)
    }

    /// A whole number, not negative by its range.
    pub fn int(&self, name: &str) -> Result<u64> {
        self.opt_int(name).ok_or_else(|| self.wrong(name))
    }

    /// A whole number that may be absent.
    pub fn opt_int(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Int(x)) => u64::try_from(*x).ok(),
            _ => None,
        }
    }

    /// A size.
    pub fn size(&self, name: &str) -> Result<usize> {
        Ok(self.int(name)? as usize)
    }

    /// True or false.
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            Some(Value::Bool(x)) => Ok(*x),
            _ => Err(self.wrong(name)),
        }
    }

    /// A string or a choice.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.opt_text(name).ok_or_else(|| self.wrong(name))
    }

    /// A string that may be absent.
    pub fn opt_text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(x)) => Some(x),
            _ => None,
        }
    }

    /// An array of numbers that may be absent.
    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        match self.get(name) {
            Some(Value::List(x)) => x.iter().map(Value::number).collect(),
            _ => None,
        }
    }

    /// An array of sizes that may be absent.
    pub fn sizes(&self, name: &str) -> Option<Vec<usize>> {
        self.floats(name)
            .map(|v| v.into_iter().map(|x| x as usize).collect())
    }

    /// Names: one, or an array of them; none if the option is absent.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn names(&self, name: &str) -> Result<Vec<String>> {
        let text = |v: &Value| match v {
            Value::Text(t) => Some(t.clone()),
            _ => None,
        };
        let names = match self.get(name) {
            None => Some(Vec::new()),
            Some(Value::List(all)) => all.iter().map(text).collect(),
            Some(one) => text(one).map(|t| vec![t]),
        };
        names.ok_or_else(|| {
            anyhow!(
                "{}: option '{name}' must be a name or an array of names",
                self.owner
            )
        })
    }

    /// A map with these entries that may be absent, as options of its own.
    pub fn map(&self, name: &str, entries: &'static [Spec]) -> Result<Option<Options>> {
        let owner = format!("{}: option '{name}'", self.owner);
        match self.get(name) {
            Some(Value::Map(given)) => Options::check(&owner, entries, given.clone()).map(Some),
            _ => Ok(None),
        }
    }

    /// An object that may be absent.
    pub fn object<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.get(name)?.as_object()
    }

    /// An array of objects; empty when absent.
    pub fn objects<T: Any + Send + Sync>(&self, name: &str) -> Vec<Arc<T>> {
        match self.get(name) {
            Some(Value::List(list)) => list.iter().filter_map(Value::as_object).collect(),
            _ => Vec::new(),
        }
    }

    /// A number or a schedule.
    pub fn schedule(&self, name: &str) -> Result<Schedule> {
        match self.get(name) {
            Some(Value::Object(x, _)) => x
                .downcast_ref::<Schedule>()
                .cloned()
                .ok_or_else(|| self.wrong(name)),
            Some(v) => v
                .number()
                .map(Schedule::Constant)
                .ok_or_else(|| self.wrong(name)),
            None => Err(self.wrong(name)),
        }
    }

    /// The options that a person would want to see, as `name: value`, for summaries and run.json.
    pub fn describe(&self) -> Vec<(String, String)> {
        self.values
            .iter()
            .map(|(n, v)| {
                let text = match v {
                    Value::Object(o, _) => match o.downcast_ref::<Schedule>() {
                        Some(s) => s.to_string(),
                        None => v.describe(),
                    },
                    Value::List(l) => {
                        let each: Vec<_> = l.iter().map(Value::describe).collect();
                        let text = format!("[{}]", each.join(", "));
                        match l.len() <= 64 {
                            true => text,
                            false => {
                                let sum = crc32fast::hash(text.as_bytes());
                                format!("{}, checksum {sum:08x}", v.describe())
                            }
                        }
                    }
                    v => v.describe(),
                };
                (n.to_string(), text)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec] = &[
        option(
            "step",
            Kind::Schedule(Range::Positive),
            "1e-3",
            "Step size.",
        ),
        option(
            "batch",
            Kind::Int(Range::AtLeast(1.0)),
            "10_0",
            "Examples per minibatch.",
        ),
        option(
            "form",
            Kind::Choice(&["exact", "printed"]),
            "exact",
            "Which form.",
        ),
        required("layers", Kind::Ints(Range::AtLeast(1.0)), "Widths."),
    ];

    fn message(given: &[(&str, Value)]) -> String {
        let mut given: Vec<_> = given
            .iter()
            .map(|(n, v)| (n.to_string(), v.clone()))
            .collect();
        given.push(("layers".into(), Value::List(vec![Value::Int(2)])));
        Options::check("thing", SPECS, given)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn defaults_are_filled_in_and_integers_pass_as_floats() {
        let given = vec![
            (
                "layers".to_string(),
                Value::List(vec![Value::Int(3), Value::Float(4.0)]),
            ),
            ("step".to_string(), Value::Int(1)),
        ];
        let o = Options::check("thing", SPECS, given).unwrap();
        assert_eq!(o.sizes("layers"), Some(vec![3, 4]));
        assert_eq!(o.schedule("step").unwrap(), Schedule::Constant(1.0));
        assert_eq!(
            (o.size("batch").unwrap(), o.text("form").unwrap()),
            (100, "exact")
        );
    }

    #[test]
    fn messages_name_the_option_the_value_and_what_is_allowed() {
        assert_eq!(
            message(&[("bacth", Value::Int(1))]),
            "thing has no option 'bacth'; did you mean 'batch'?"
        );
        assert_eq!(
            message(&[("step", Value::Float(-1.0))]),
            "thing: option 'step' is -1.0, but must be > 0"
        );
        assert_eq!(
            message(&[("batch", Value::Float(1.5))]),
            "thing: option 'batch' is 1.5, but must be a whole number"
        );
        assert_eq!(
            message(&[("form", Value::Text("exakt".into()))]),
            "thing: option 'form' is \"exakt\", but must be \"exact\" · \"printed\"; did you mean \"exact\"?"
        );
        // Neither becomes the nearest number that fits.
        assert_eq!(
            message(&[("batch", Value::Float(1e308))]),
            "thing: option 'batch' is 1e308, but must be ≥ 1 and at most 1e15"
        );
        assert_eq!(
            message(&[("batch", Value::Int(i64::MAX))]),
            "thing: option 'batch' is 9223372036854775807, but must be ≥ 1 and at most 1e15"
        );
        let missing = Options::check("thing", SPECS, vec![])
            .err()
            .unwrap()
            .to_string();
        assert!(missing.contains("needs the option 'layers'"), "{missing}");
    }
}
