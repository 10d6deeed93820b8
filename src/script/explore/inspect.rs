//! What a word means: help where the cursor is.

use super::place::{Callee, Place};
use super::place_at;
use super::reference::Reference;
use super::tokens::{Kind, Token, tokens};
use crate::options::{Default, Spec};
use std::fmt::Write;

/// What the word at `cursor` means, or else the call that the cursor is in.
pub fn inspect(known: &Reference, source: &str, cursor: usize) -> Option<String> {
    let all = tokens(source);
    let at = |t: &&Token| t.kind == Kind::Name && t.start <= cursor && cursor <= t.end();
    // A cursor behind the bracket of a call asks for the call.
    let behind = || {
        let before = all.iter().rposition(|t| t.start < cursor && t.is("("))?;
        before
            .checked_sub(1)
            .map(|i| &all[i])
            .filter(|t| t.kind == Kind::Name)
    };
    let word = all.iter().find(at).or_else(behind)?;
    // The place of the word itself: what is behind it does not matter.
    match place_at(source, word.end()) {
        Place::Option(callee, _) => {
            let spec = known.options(callee).iter().find(|s| s.name == word.text);
            let found = spec.map(|s| described(s, &format!("an option of `{}`", path(callee))));
            found.or_else(|| name(known, word.text))
        }
        Place::Entry(callee, option, _) => {
            let mut entries = known.entries(callee, option).iter();
            let owner = format!("an entry of `{option}`, an option of `{}`", path(callee));
            let found = entries.find(|s| s.name == word.text);
            found.map(|s| described(s, &owner))
        }
        Place::Namespace(namespace) => item(
            known,
            Callee {
                namespace,
                name: word.text,
                method: false,
            },
        ),
        Place::Method(receiver) => {
            let kind = known.type_of(receiver);
            let fits = known
                .items
                .iter()
                .filter(|i| i.name == word.text && !i.object.is_empty());
            let found: Vec<_> = fits
                .filter(|i| kind.as_ref().is_none_or(|k| *k == i.object))
                .map(|i| i.markdown())
                .collect();
            (!found.is_empty()).then(|| found.join("\n"))
        }
        _ => name(known, word.text),
    }
}

fn item(known: &Reference, callee: Callee) -> Option<String> {
    let found: Vec<_> = known.called(callee).map(|i| i.markdown()).collect();
    (!found.is_empty()).then(|| found.join("\n"))
}

/// A variable, a verb or a namespace.
fn name(known: &Reference, name: &str) -> Option<String> {
    if let Some(v) = known.variable(name) {
        return Some(format!(
            "**{}**: {}\n\n```text\n{}\n```\n",
            v.name, v.kind, v.value
        ));
    }
    let verb = Callee {
        namespace: "",
        name,
        method: false,
    };
    if let Some(text) = item(known, verb) {
        return Some(text);
    }
    let inside: Vec<_> = known.items.iter().filter(|i| i.namespace == name).collect();
    if inside.is_empty() {
        return None;
    }
    let mut out = format!("### `{name}::`\n\n| call | what it is |\n|---|---|\n");
    for i in inside {
        let _ = writeln!(
            out,
            "| `{}` | {} |",
            i.path(),
            i.brief().replace('|', "\\|")
        );
    }
    Some(out)
}

/// What is called, with its namespace.
fn path(callee: Callee) -> String {
    match callee.namespace {
        "" => callee.name.to_string(),
        space => format!("{space}::{}", callee.name),
    }
}

/// An option or an entry of one.
fn described(spec: &Spec, what: &str) -> String {
    let default = match spec.default {
        Default::Required => "required".to_string(),
        Default::Absent(text) => format!("if absent: {text}"),
        Default::Is(text) => format!("default `{text}`"),
    };
    format!(
        "**{}**, {what}: {}; {default}\n\n{}\n",
        spec.name,
        spec.kind.describe(),
        spec.doc
    )
}
