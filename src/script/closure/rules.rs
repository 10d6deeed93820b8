//! What a closure that leaves the script must not do: change what it has captured, or call what depends on more than its arguments.

use super::super::file_access;
use rhai::{Dynamic, Expr, ImmutableString, Position};

/// Methods that change an array, a map, a string or bytes.
const CHANGES: &[&str] = &[
    "append",
    "chop",
    "clear",
    "crop",
    "dedup",
    "drain",
    "fill_with",
    "insert",
    "make_lower",
    "make_upper",
    "mixin",
    "order",
    "order_by",
    "order_desc",
    "order_by_desc",
    "pad",
    "pop",
    "push",
    "remove",
    "replace",
    "retain",
    "reverse",
    "set",
    "shift",
    "sort",
    "sort_by",
    "sort_desc",
    "sort_by_desc",
    "splice",
    "trim",
    "truncate",
    "write",
];

/// Methods that only read one.
const READS: &[&str] = &[
    "all",
    "chars",
    "contains",
    "ends_with",
    "extract",
    "filter",
    "find",
    "find_map",
    "get",
    "index_of",
    "is_empty",
    "keys",
    "len",
    "map",
    "reduce",
    "reduce_rev",
    "some",
    "split",
    "starts_with",
    "sub_string",
    "to_debug",
    "to_string",
    "values",
];

/// What depends on more than its arguments, or leaves traces, and why that cannot be.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["timestamp"],
        "the time differs from run to run, and a record must not",
    ),
    (&["eval"], "what it runs cannot be known beforehand"),
    (
        &[
            "exchange", "llc", "param", "run_name", "sample", "smc", "sweep", "train",
        ],
        "runs and parameters are the script's; keep what the closure needs of them in a variable before it",
    ),
];

/// Whether a method changes a value of this kind. Objects have none that does.
pub(super) fn changes(method: &str, x: &Dynamic) -> bool {
    let container = x.is_array() || x.is_map() || x.is_string() || x.is_blob();
    container && CHANGES.contains(&method)
}

/// Whether a method is known only to read.
pub(super) fn reads(method: &str) -> bool {
    READS.contains(&method)
}

/// Why a function must not be called.
pub(super) fn refused(name: &str) -> Option<&'static str> {
    let mut all = REFUSED.iter();
    all.find(|(names, _)| names.contains(&name))
        .map(|(_, why)| *why)
        .or_else(|| file_access::opens(name).then_some(file_access::WHY))
}

/// The variable that an expression is, or is a part of.
pub(super) fn root(e: &Expr) -> Option<&ImmutableString> {
    match e {
        Expr::Variable(x, ..) if x.2.is_empty() => Some(&x.1),
        Expr::Dot(x, ..) | Expr::Index(x, ..) => root(&x.lhs),
        _ => None,
    }
}

/// The variable at the begin of a chain, and the first method in it.
pub(super) fn method(e: &Expr) -> Option<(ImmutableString, ImmutableString, Position)> {
    let name = root(e)?.clone();
    let (Expr::Dot(x, ..) | Expr::Index(x, ..)) = e else {
        return None;
    };
    let mut at = &x.rhs;
    loop {
        match at {
            Expr::MethodCall(f, position) => return Some((name, f.name.clone(), *position)),
            Expr::Dot(x, ..) | Expr::Index(x, ..) => match &x.lhs {
                Expr::MethodCall(f, position) => return Some((name, f.name.clone(), *position)),
                _ => at = &x.rhs,
            },
            _ => return None,
        }
    }
}
