//! `table.rs` from the tables of options.

use crate::object::{Held, Object};
use crate::options::{Default, Entry, Kind, Spec};
use crate::registry::{self, Visitor};
use crate::simulation::session::Session;
use crate::verb::{self as argument, Arguments, Outcome, Verb};
use std::any::TypeId;
use std::collections::HashMap;
use std::fmt::Write;

/// The text of `table.rs`.
pub fn generate() -> String {
    let mut all = Tables::default();
    registry::objects(&mut all);
    registry::constructors(&mut all);
    for list in [
        registry::runs,
        registry::coefficients,
        registry::evidences,
        registry::populations,
    ] {
        list(&mut all);
    }
    let mut out = String::from(
        "//! The builders, generated from the tables of options: do not edit. `UPDATE=1 cargo test builders` writes it anew.\n",
    );
    for (namespace, made, entries) in &all.namespaces {
        let _ = write!(
            out,
            "\n/// Builders of `{namespace}::…`.\npub mod {namespace} {{\n    use super::super::*;\n    use std::sync::Arc;\n\n    \
             builders! {{ \"{namespace}\", {};\n{entries}    }}\n}}\n",
            made
        );
    }
    let _ = write!(
        out,
        "\n/// Builders of verbs.\npub mod verbs {{\n    use super::super::*;\n    use std::sync::Arc;\n\n    calls! {{\n{}    }}\n}}\n",
        all.verbs
    );
    out
}

#[derive(Default)]
struct Tables {
    /// Types of objects by their names in scripts: how they are held, and what Rust code calls them.
    types: HashMap<&'static str, (TypeId, &'static str)>,
    /// Namespaces with the type of what they make, and their builders.
    namespaces: Vec<(&'static str, String, String)>,
    verbs: String,
}

impl Tables {
    /// The type that a handle to an object of this name in scripts holds.
    fn inner(&self, name: &str) -> &'static str {
        self.types.get(name).map_or("()", |(_, path)| path)
    }

    /// What a constructor or a verb gives.
    fn made(&self, name: &str) -> String {
        match self.types.get(name) {
            Some((_, path)) => format!("Arc<{path}>"),
            None => "serde_json::Value".into(),
        }
    }

    /// The type of an argument, if it is an object.
    fn argument(&self, kind: argument::Kind) -> Option<String> {
        let argument::Kind::Held(id) = kind else {
            return None;
        };
        let (_, path) = self.types.values().find(|(held, _)| *held == id)?;
        Some(format!("Arc<{path}>"))
    }

    /// The setters of a table.
    fn options(&self, specs: &[Spec]) -> String {
        let mut out = String::new();
        for spec in specs {
            let default = match spec.default {
                Default::Required => "must be given".to_string(),
                Default::Absent(text) => format!("if absent: {text}"),
                Default::Is(text) => format!("default `{text}`"),
            };
            let text = format!("{}\n\n{}; {default}.", spec.doc, spec.kind.describe());
            documented(&mut out, 12, &text);
            let kind = match spec.kind {
                Kind::Float(_) => "Number".into(),
                Kind::Int(_) => "Count".into(),
                Kind::Schedule(_) => "Rate".into(),
                Kind::Bool => "Flag".into(),
                Kind::Text | Kind::Choice(_) => "Words".into(),
                Kind::Floats(_) => "Numbers".into(),
                Kind::Ints(_) => "Counts".into(),
                Kind::Trigger => "When".into(),
                Kind::Anything(_) => "Anything".into(),
                Kind::Object(name) => format!("Handle<{}>", self.inner(name)),
                Kind::Objects(name) => format!("Handles<{}>", self.inner(name)),
            };
            let _ = writeln!(out, "            {0} = \"{0}\": {kind},", spec.name);
        }
        out
    }
}

impl Visitor for Tables {
    fn held<H: Held>(&mut self, path: &'static str) {
        self.types
            .insert(H::Object::NAME, (TypeId::of::<H>(), path));
    }

    fn constructors<H: Held>(
        &mut self,
        namespace: &'static str,
        path: &'static str,
        entries: &'static [Entry<H>],
    ) {
        // What was registered at run time is in no table.
        if path.is_empty() {
            return;
        }
        let mut text = String::new();
        for entry in entries {
            let name = entry.name;
            documented(&mut text, 8, entry.doc);
            let path = path.replace(' ', "");
            let _ = writeln!(text, "        {} = \"{name}\" of {path} {{", camel(name));
            text += &self.options(entry.options);
            text += "        }\n";
        }
        match self.namespaces.iter_mut().find(|n| n.0 == namespace) {
            Some((.., all)) => *all += &text,
            None => {
                let made = self.made(H::Object::NAME);
                self.namespaces.push((namespace, made, text));
            }
        }
    }

    fn verb<S, A: Arguments, R: Outcome>(
        &mut self,
        path: &'static str,
        verb: &'static Verb<S, A, R>,
    ) where
        Session: AsRef<S>,
    {
        let name = verb.name.rsplit("::").next().unwrap_or(verb.name);
        let kinds = A::forms().into_iter().next().unwrap_or_default();
        let named = verb.arguments.iter().zip(kinds);
        let arguments = named.map(|(a, kind)| Some(format!("{a}: {}", self.argument(kind)?)));
        let arguments: Option<Vec<_>> = arguments.collect();
        // Verbs without options are functions already, and so are those of a text or a list.
        let (Some(arguments), false) = (arguments, verb.options.is_empty()) else {
            return;
        };
        let (setters, made) = (self.options(verb.options), self.made(R::NAME));
        documented(&mut self.verbs, 8, verb.doc);
        let _ = writeln!(
            self.verbs,
            "        {}, {name}({}) = {} => {} {{",
            camel(name),
            arguments.join(", "),
            path.replace(' ', ""),
            made
        );
        self.verbs += &setters;
        self.verbs += "        }\n";
    }
}

/// `pseudo_langevin` as `PseudoLangevin`.
fn camel(name: &str) -> String {
    let word = |w: &str| {
        let (first, rest) = w.split_at(w.len().min(1));
        first.to_uppercase() + rest
    };
    name.split('_').map(word).collect()
}

/// Lines of documentation.
fn documented(out: &mut String, indent: usize, text: &str) {
    // Brackets would be links.
    for line in text.replace('[', "\\[").lines() {
        let line = format!("{:indent$}/// {line}", "");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
