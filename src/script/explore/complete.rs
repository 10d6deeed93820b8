//! Completion: what could stand where the cursor is.

use super::place::{Place, Receiver};
use super::place_at;
use super::reference::{self, Reference};
use super::tokens::{KEYWORDS, Kind, tokens};
use crate::object::{Held, Object};
use crate::options::{self, Default, Spec};
use crate::registry::{self, Visitor};
use crate::script::item::Item;
use crate::script::recipe;
use crate::script::recipes::RECIPES;
use std::sync::LazyLock;

/// One thing that could stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// What to write.
    pub text: String,
    /// What it is: "function", "method", "property", "module", "option", "value", "variable" or "keyword".
    pub kind: &'static str,
    /// A signature, a type, or an option's kind and default.
    pub detail: String,
    /// Its first sentence.
    pub doc: String,
}

/// What could stand where the cursor is, in place of the bytes from `start` to `end`.
#[derive(Debug, Clone, PartialEq, Eq, std::default::Default)]
pub struct Completions {
    /// Where the word that is being written begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// In the order they are to be offered.
    pub matches: Vec<Match>,
}

/// Methods of Rhai's own types that a session is likely to want; `ergodic docs` knows all of the program's.
const OWN: &[(&str, &[&str])] = &[
    (
        "array",
        &[
            "len", "push", "pop", "map", "filter", "reduce", "sort", "index_of", "contains",
            "extract", "insert", "remove", "reverse", "truncate", "append", "all", "some",
            "is_empty",
        ],
    ),
    (
        "map",
        &[
            "len", "keys", "values", "contains", "get", "set", "remove", "mixin", "clear",
            "is_empty", "to_json",
        ],
    ),
    (
        "string",
        &[
            "len",
            "contains",
            "starts_with",
            "ends_with",
            "split",
            "sub_string",
            "replace",
            "trim",
            "to_upper",
            "to_lower",
            "parse_float",
            "parse_int",
            "is_empty",
        ],
    ),
    (
        "f64",
        &[
            "abs",
            "sqrt",
            "exp",
            "ln",
            "log",
            "sin",
            "cos",
            "tan",
            "floor",
            "ceiling",
            "round",
            "to_string",
            "to_int",
            "is_nan",
        ],
    ),
    (
        "i64",
        &["abs", "sign", "to_float", "to_string", "is_odd", "is_even"],
    ),
];

/// Properties of objects, with the objects in small letters.
static PROPERTIES: LazyLock<Vec<(String, &'static str)>> = LazyLock::new(|| {
    struct Fields(Vec<(String, &'static str)>);
    impl Visitor for Fields {
        fn held<H: Held>(&mut self, _: &'static str) {
            let object = reference::object(H::Object::NAME);
            let names = H::Object::FIELDS.iter().map(|(name, _)| *name);
            self.0.extend(names.map(|name| (object.clone(), name)));
        }
    }
    let mut all = Fields(Vec::new());
    registry::objects(&mut all);
    all.0
});

/// How Rhai calls its numbers and strings, and how they are listed here.
fn own(kind: &str) -> &'static [&'static str] {
    let kind = match kind {
        "number" | "float" => "f64",
        "integer" | "int" => "i64",
        "array of numbers" => "array",
        other => other,
    };
    OWN.iter()
        .find(|(name, _)| *name == kind)
        .map_or(&[], |(_, list)| list)
}

/// What could stand at `cursor`.
pub fn complete(known: &Reference, source: &str, cursor: usize) -> Completions {
    let (start, end) = word(source, cursor);
    let written = &source[start..cursor.max(start)];
    let mut matches = match place_at(source, cursor) {
        _ if names_an_import(source, start) => recipes(),
        Place::Nowhere => Vec::new(),
        Place::Free => free(known),
        Place::Namespace(space) => in_namespace(known, space),
        Place::Method(receiver) => methods(known, receiver),
        Place::Option(callee, given) => {
            let left = known
                .options(callee)
                .iter()
                .filter(|s| !given.contains(&s.name));
            // What must be given comes first.
            let (must, may): (Vec<_>, Vec<_>) =
                left.partition(|s| matches!(s.default, Default::Required));
            must.into_iter().chain(may).map(option).collect()
        }
        Place::Entry(callee, name, given) => {
            let entries = known.entries(callee, name).iter();
            entries
                .filter(|s| !given.contains(&s.name))
                .map(option)
                .collect()
        }
        Place::Value(callee, name, text) => {
            let spec = known.options(callee).iter().find(|s| s.name == name);
            spec.map_or_else(Vec::new, |s| values(known, s, text))
        }
        Place::Text(name) => {
            let names = known.variable(name).into_iter().flat_map(|v| &v.names);
            names.map(|n| plain(n, "value")).collect()
        }
    };
    matches.retain(|m| {
        m.text.starts_with(written) || m.text.trim_start_matches('"').starts_with(written)
    });
    matches.dedup_by(|a, b| a.text == b.text);
    Completions {
        start,
        end,
        matches,
    }
}

/// Whether what is written from `start` on is what an import names.
fn names_an_import(source: &str, start: usize) -> bool {
    let before = source[..start].strip_suffix('"').map(str::trim_end);
    before.is_some_and(|b| tokens(b).last().is_some_and(|t| t.text == "import"))
}

/// The recipes, as imports name them.
fn recipes() -> Vec<Match> {
    let one = |(name, text): &(&str, &str)| Match {
        text: name.to_string(),
        kind: "module",
        detail: "recipe".into(),
        doc: recipe::heading(text)
            .lines()
            .next()
            .unwrap_or_default()
            .into(),
    };
    RECIPES.iter().map(one).collect()
}

/// The word that the cursor is in or at the end of; within a string, what is between its marks.
fn word(source: &str, cursor: usize) -> (usize, usize) {
    let all = tokens(source);
    let at = all
        .iter()
        .rev()
        .find(|t| t.start < cursor && cursor <= t.end());
    match at.map(|t| (t.kind, t)) {
        Some((Kind::Name, t)) => (t.start, t.end()),
        Some((Kind::Text(closed), t)) if !closed || cursor < t.end() => {
            (t.start + 1, t.end() - usize::from(closed))
        }
        _ => (cursor, cursor),
    }
}

fn function(item: &Item, kind: &'static str, text: String) -> Match {
    Match {
        text,
        kind,
        detail: item.signature.clone(),
        doc: item.brief().into(),
    }
}

fn option(spec: &Spec) -> Match {
    let default = match spec.default {
        Default::Required => "required".to_string(),
        Default::Absent(text) => text.to_string(),
        Default::Is(text) => format!("default {text}"),
    };
    Match {
        text: spec.name.into(),
        kind: "option",
        detail: format!("{}; {default}", spec.kind.describe()),
        doc: spec.doc.into(),
    }
}

fn plain(text: &str, kind: &'static str) -> Match {
    Match {
        text: text.into(),
        kind,
        detail: String::new(),
        doc: String::new(),
    }
}

/// Variables, verbs, namespaces and keywords.
fn free(known: &Reference) -> Vec<Match> {
    let variables = known.variables.iter().rev().map(|v| Match {
        text: v.name.clone(),
        kind: "variable",
        detail: v.kind.clone(),
        doc: v.value.clone(),
    });
    let verbs = known
        .items
        .iter()
        .filter(|i| i.namespace.is_empty() && i.object.is_empty());
    let spaces = known.namespaces();
    let spaces = spaces
        .into_iter()
        .map(|s| plain(&format!("{s}::"), "module"));
    variables
        .chain(verbs.map(|i| function(i, "function", i.name.clone())))
        .chain(spaces)
        .chain(KEYWORDS.iter().map(|k| plain(k, "keyword")))
        .collect()
}

fn in_namespace(known: &Reference, space: &str) -> Vec<Match> {
    let inside = known.items.iter().filter(|i| i.namespace == space);
    inside
        .map(|i| function(i, "function", i.name.clone()))
        .collect()
}

/// Methods of what stands before the dot, or of everything where nobody knows what that is.
fn methods(known: &Reference, receiver: Receiver) -> Vec<Match> {
    let kind = known.type_of(receiver);
    let of = |i: &&Item| !i.object.is_empty() && kind.as_ref().is_none_or(|k| *k == i.object);
    let found = known
        .items
        .iter()
        .filter(of)
        .map(|i| function(i, "method", i.name.clone()));
    let own = kind.as_deref().map_or(&[][..], own);
    let fits = |(object, _): &&(String, &str)| kind.as_ref().is_none_or(|k| k == object);
    let properties = PROPERTIES.iter().filter(fits);
    let keys = match receiver {
        Receiver::Variable(name) => known.variable(name).filter(|v| v.indexed),
        _ => None,
    };
    let keys = keys.into_iter().flat_map(|v| &v.names);
    let mut out: Vec<_> = found
        .chain(own.iter().map(|m| plain(m, "method")))
        .chain(properties.map(|(_, name)| plain(name, "property")))
        .chain(keys.map(|name| plain(name, "property")))
        .collect();
    out.sort_by(|a, b| a.text.cmp(&b.text));
    out
}

/// What an option may be: its words, true and false, or what makes an object of its type.
fn values(known: &Reference, spec: &Spec, text: bool) -> Vec<Match> {
    use options::Kind as Of;
    match spec.kind {
        Of::Choice(words) => {
            let quoted = |w: &&str| {
                if text {
                    w.to_string()
                } else {
                    format!("\"{w}\"")
                }
            };
            words.iter().map(|w| plain(&quoted(w), "value")).collect()
        }
        _ if text => Vec::new(),
        Of::Map(_) => vec![plain("#{}", "value")],
        Of::Bool => ["true", "false"].map(|w| plain(w, "value")).into(),
        Of::Object(kind) | Of::Objects(kind) => made(known, kind),
        Of::Trigger => made(known, "Trigger"),
        Of::Schedule(_) => made(known, "Schedule"),
        _ => free(known),
    }
}

/// Variables of a type, and what makes one.
fn made(known: &Reference, kind: &str) -> Vec<Match> {
    let fits = known.variables.iter().filter(|v| v.kind == kind);
    let variables = fits.map(|v| Match {
        text: v.name.clone(),
        kind: "variable",
        detail: v.kind.clone(),
        doc: v.value.clone(),
    });
    let makers = known.makers(kind);
    let calls = makers
        .into_iter()
        .map(|i| function(i, "function", i.path()));
    let mut out: Vec<_> = variables.chain(calls).collect();
    let rest = free(known);
    let more: Vec<_> = rest
        .into_iter()
        .filter(|m| !out.iter().any(|o| o.text == m.text))
        .collect();
    out.extend(more);
    out
}
