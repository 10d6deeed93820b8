//! What messages call a value: by the name that scripts know its type by.

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
    match () {
        _ if x.is_unit() => "nothing, ()".into(),
        _ if x.is_bool() => "true or false".into(),
        _ if x.is_int() => "an integer".into(),
        _ if x.is_float() => "a number".into(),
        _ if x.is_string() => "a string".into(),
        _ if x.is_array() => "an array".into(),
        _ if x.is_map() => "a map".into(),
        _ if x.is_fnptr() => "a closure".into(),
        _ => {
            let names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
            let own = names.values().find(|(id, _)| *id == x.type_id());
            let name = own.map_or(x.type_name(), |(_, name)| name);
            let article = match name.starts_with(['A', 'E', 'I', 'O']) {
                true => "an",
                false => "a",
            };
            format!("{article} {name}")
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
