//! `table.rs` from the tables of options.

use crate::object::{Held, Object};
use crate::options::{Default, Entry, Kind, Spec};
use crate::registry::{self, Visitor};
use crate::simulation::session::Session;
use crate::verb::{self as argument, Arguments, Needed, Outcome, Verb};
use std::any::TypeId;
use std::collections::HashMap;
use std::fmt::Write;

/// The text of `table.rs`.
pub fn generate() -> String {
    let mut all = Tables::default();
    all.visit();
    // Once more, now that it is known which names of choices are taken twice.
    let choices = std::mem::take(&mut all.choices);
    all = Tables {
        choices,
        ..Tables::default()
    };
    all.visit();
    let mut out = String::from(
        "//! The builders, generated from the tables of options: do not edit. `UPDATE=1 cargo test builders` writes it anew.\n",
    );
    for (namespace, made, entries) in &all.namespaces {
        // What is made of Rust code has no options.
        let own = match *namespace {
            "observable" => "    pub use crate::observable::measure;\n",
            "sampler" => "    pub use crate::sampler::{named, own, register};\n",
            _ => "",
        };
        let _ = write!(
            out,
            "\n/// Builders of `{namespace}::…`.\npub mod {namespace} {{\n    use super::super::*;\n{own}    use std::sync::Arc;\n\n    \
             builders! {{ \"{namespace}\", {};\n{entries}    }}\n}}\n",
            made
        );
    }
    out += "\n/// What options may be one of.\npub mod choices {\n    use super::super::one_of;\n\n    one_of! {\n";
    for (_, option, words) in &all.choices {
        let Some(name) = all.choice(words) else {
            continue;
        };
        let variants = words.iter().map(|w| format!("{} = \"{w}\"", camel(w)));
        let variants = variants.collect::<Vec<_>>().join(", ");
        let _ = write!(
            out,
            "        /// What `{option}` may be.\n        {name} {{ {variants} }}\n"
        );
    }
    out += "    }\n}\n";
    let _ = write!(
        out,
        "\n/// Builders of verbs.\npub mod verbs {{\n    use super::super::*;\n    use std::sync::Arc;\n\n    calls! {{\n{}    }}\n}}\n",
        all.verbs
    );
    let functions = all.functions.join(", ");
    let _ = write!(
        out,
        "\n/// The functions that start builders of verbs.\n#[rustfmt::skip]\npub mod functions {{\n    pub use super::verbs::{{{functions}}};\n}}\n"
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
    /// What an option may be one of, after what has it first and the option.
    choices: Vec<(&'static str, &'static str, &'static [&'static str])>,
    /// Names of functions that are taken.
    functions: Vec<String>,
}

impl Tables {
    fn visit(&mut self) {
        registry::objects(self);
        registry::constructors(self);
        for list in [
            registry::runs,
            registry::coefficients,
            registry::evidences,
            registry::populations,
            registry::of_populations,
        ] {
            list(self);
        }
    }

    /// The type that a handle to an object of this name in scripts holds.
    fn inner(&self, name: &str) -> &'static str {
        self.types.get(name).map_or("()", |(_, path)| path)
    }

    /// What a constructor or a verb gives.
    fn made(&self, name: &str) -> String {
        match self.types.get(name) {
            Some((_, path)) => format!("Arc<{path}>"),
            None if name == String::NAME => "String".into(),
            None => "serde_json::Value".into(),
        }
    }

    /// An argument of a verb, if it can be one of a function: its name in scripts, or `name`, and its type.
    fn argument(&self, name: Option<&str>, kind: argument::Kind) -> Option<String> {
        let (called, kind) = match kind {
            argument::Kind::Held(id) => {
                let (called, (_, path)) = self.types.iter().find(|(_, t)| t.0 == id)?;
                (called.to_lowercase(), format!("Arc<{path}>"))
            }
            argument::Kind::Text => (String::new(), "String".into()),
            argument::Kind::Any => (String::new(), "crate::options::Value".into()),
            _ => return None,
        };
        Some(format!("{}: {kind}", name.unwrap_or(&called)))
    }

    /// The kind of values that a setter takes.
    fn kind(&self, spec: &Spec) -> String {
        match spec.kind {
            Kind::Float(_) => "Number".into(),
            Kind::Int(_) => "Count".into(),
            Kind::Schedule(_) => "Rate".into(),
            Kind::Bool => "Flag".into(),
            Kind::Text => "Words".into(),
            Kind::Choice(words) => match self.choice(words) {
                Some(name) => format!("OneOf<choices::{name}>"),
                None => "Words".into(),
            },
            Kind::Floats(_) => "Numbers".into(),
            Kind::Ints(_) => "Counts".into(),
            Kind::Trigger => "When".into(),
            Kind::Map(_) => "Entries".into(),
            Kind::Anything(_) => "Anything".into(),
            Kind::Object(name) => format!("Handle<{}>", self.inner(name)),
            Kind::Objects(name) => format!("Handles<{}>", self.inner(name)),
        }
    }

    /// Take down the choices of these options.
    fn meet(&mut self, owner: &'static str, specs: &[Spec]) {
        for spec in specs {
            if let Kind::Choice(words) = spec.kind
                && self.choices.iter().all(|c| c.2 != words)
            {
                self.choices.push((owner, spec.name, words));
            }
        }
    }

    /// What the type of these choices is called: after the option, and where several are called so, after what has it too.
    /// None where words are no names ("1K").
    fn choice(&self, words: &[&str]) -> Option<String> {
        let is_name = |w: &&str| w.starts_with(|c: char| c.is_ascii_alphabetic());
        let (owner, option, _) = self.choices.iter().find(|c| c.2 == words)?;
        let alone = self.choices.iter().filter(|c| c.1 == *option).count() == 1;
        let owner = if alone { String::new() } else { camel(owner) };
        let named = words.iter().all(is_name);
        named.then(|| format!("{owner}{}", camel(option)))
    }

    /// The setters of options.
    fn setters<'a>(&self, specs: impl IntoIterator<Item = &'a Spec>) -> String {
        let mut out = String::new();
        for spec in specs {
            let default = match spec.default {
                Default::Required => "must be given".to_string(),
                Default::Absent(text) => format!("if absent: {text}"),
                Default::Is(text) => format!("default `{text}`"),
            };
            let text = format!("{} ({}; {default})", spec.doc, spec.kind.describe());
            documented(&mut out, 12, &text);
            let _ = writeln!(
                out,
                "            {0} = \"{0}\": {1},",
                spec.name,
                self.kind(spec)
            );
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
            self.meet(name, entry.options);
            documented(&mut text, 8, entry.doc);
            let path = path.replace(' ', "");
            let needed = |s: &&Spec| matches!(s.default, Default::Required);
            let (mut needed, others): (Vec<_>, Vec<_>) = entry.options.iter().partition(needed);
            // In the order in which scripts give them.
            needed.sort_by_key(|s: &&Spec| {
                entry
                    .arguments
                    .iter()
                    .position(|a| *a == s.name)
                    .unwrap_or(usize::MAX)
            });
            let given = needed
                .iter()
                .map(|s| format!("{0} = \"{0}\": {1}", s.name, self.kind(s)));
            let given = given.collect::<Vec<_>>().join(", ");
            let _ = writeln!(
                text,
                "        {} = \"{name}\"({given}) of {path} {{",
                camel(name)
            );
            text += &self.setters(others);
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

    fn verb<S: Needed, A: Arguments, R: Outcome>(
        &mut self,
        path: &'static str,
        verb: &'static Verb<S, A, R>,
    ) where
        Session: AsRef<S>,
    {
        let name = verb.name.rsplit(['.', ':']).next().unwrap_or(verb.name);
        self.meet(name, verb.options);
        for (number, kinds) in A::forms().into_iter().enumerate() {
            // The reference names the arguments of the first form; in others objects are called by their types.
            let arguments = kinds.into_iter().enumerate().map(|(i, kind)| {
                let own = number == 0 || !matches!(kind, argument::Kind::Held(_));
                let name = verb.arguments.get(i).filter(|_| own).copied();
                self.argument(name, kind)
            });
            // A list of anything is better given to a function that says of what.
            let Some(arguments) = arguments.collect::<Option<Vec<_>>>() else {
                continue;
            };
            // A shorter form, for those who type: what it leaves out is easily said.
            if number > 0 && arguments.is_empty() {
                continue;
            }
            let mut name = name.to_string();
            if self.functions.contains(&name) {
                let first = arguments.first().and_then(|a| a.split(':').next());
                name = format!("{name}_of_{}", first.unwrap_or_default());
            }
            self.functions.push(name.clone());
            let form = match number {
                0 => "Into::into",
                _ => "crate::verb::Either::Second",
            };
            documented(&mut self.verbs, 8, verb.doc);
            let _ = writeln!(
                self.verbs,
                "        {}, {name}({}) = {form}, {} => {} {{",
                camel(&name),
                arguments.join(", "),
                path.replace(' ', ""),
                self.made(R::NAME)
            );
            self.verbs += &self.setters(verb.options);
            self.verbs += "        }\n";
        }
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
