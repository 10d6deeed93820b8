//! What messages call a value: by the name that scripts know its type by.

use crate::error::a;
use rhai::Dynamic;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

/// The types that were given a name, as Rust calls them.
static NAMES: LazyLock<Mutex<BTreeMap<&'static str, (TypeId, &'static str)>>> =
    LazyLock::new(Mutex::default);

/// Remember the name of a type.
pub(super) fn name<T: 'static>(name: &'static str) {
    let mut names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
    names.insert(std::any::type_name::<T>(), (TypeId::of::<T>(), name));
}

/// "a number", "an array", "a Target".
pub(super) fn kind(x: &Dynamic) -> String {
    let names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
    let own = names.values().find(|(id, _)| *id == x.type_id());
    a_kind(own.map_or(x.type_name(), |(_, name)| name))
}

/// A value by the name of its type, as a message says it: "an integer", "a map", "a Model".
pub(super) fn a_kind(type_name: &str) -> String {
    match type_name.trim() {
        "i64" => "an integer".into(),
        "f64" => "a number".into(),
        "bool" => "true or false".into(),
        "()" => "nothing".into(),
        "char" => "a character".into(),
        "Fn" | "closure" => "a closure".into(),
        // Of types of the program that have no name of their own, the last word of Rust's.
        name => {
            let last = name.rsplit("::").next().unwrap_or(name);
            a(last.trim_matches(|c: char| !c.is_alphanumeric()))
        }
    }
}

/// A message without the names that Rust has for types.
pub(super) fn plain(message: &str) -> String {
    let mut out = message.to_string();
    if out.contains("ergodic::") {
        let names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
        // The longest first: one name may be a part of another.
        let mut all: Vec<_> = names
            .iter()
            .map(|(path, (_, name))| (*path, *name))
            .collect();
        all.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        for (path, name) in all {
            out = out.replace(path, name);
        }
    }
    out
}
