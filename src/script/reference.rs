//! The reference: what a script can call, generated from what is bound.

use crate::options::{Default, Spec};
use std::fmt::Write;

/// One function, method or constructor.
#[derive(Debug, Clone)]
pub struct Item {
    /// Namespace, empty for verbs and methods.
    pub namespace: String,
    /// Object a method belongs to, empty otherwise.
    pub object: String,
    /// Name.
    pub name: String,
    /// As a script calls it.
    pub signature: String,
    /// Documentation.
    pub doc: String,
    /// Options of the trailing `#{…}`.
    pub options: &'static [Spec],
    /// A call that runs; empty if there is none.
    pub example: String,
}

impl Item {
    pub(super) fn from_signature(signature: &str, doc: &str) -> Self {
        let head = signature.split('(').next().unwrap_or(signature);
        let (namespace, rest) = head.split_once("::").unwrap_or(("", head));
        let (object, name) = rest.split_once('.').unwrap_or(("", rest));
        Self {
            namespace: namespace.into(),
            object: object.into(),
            name: name.trim().into(),
            signature: signature.into(),
            doc: doc.into(),
            options: &[],
            example: String::new(),
        }
    }

    /// `space::name`, `object.name` or `name`.
    pub fn path(&self) -> String {
        match (self.namespace.as_str(), self.object.as_str()) {
            ("", "") => self.name.clone(),
            (space, "") => format!("{space}::{}", self.name),
            (_, object) => format!("{object}.{}", self.name),
        }
    }

    /// The same, of a namespace that a script calls otherwise.
    pub(super) fn called(mut self, alias: &str) -> Self {
        let rest = self.signature.split_once("::").map(|(_, rest)| rest);
        if let Some(rest) = rest {
            self.signature = format!("{alias}::{rest}");
        }
        self.namespace = alias.into();
        self
    }

    /// Everything about it, as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("### `{}`\n\n{}\n", self.signature, self.doc);
        if !self.options.is_empty() {
            out += "\n| option | kind | default | meaning |\n|---|---|---|---|\n";
            for s in self.options {
                let default = match s.default {
                    Default::Required => "**required**".to_string(),
                    Default::Absent(text) => text.to_string(),
                    Default::Is(text) => format!("`{text}`"),
                };
                let cell = |t: &str| t.replace('|', "\\|");
                let _ = writeln!(
                    out,
                    "| `{}` | {} | {} | {} |",
                    s.name,
                    cell(&s.kind.describe()),
                    cell(&default),
                    cell(s.doc)
                );
            }
        }
        if !self.example.is_empty() {
            let _ = write!(out, "\n```rhai\n{}\n```\n", self.example);
        }
        out
    }

    /// The first sentence or line.
    pub fn brief(&self) -> &str {
        self.doc.lines().next().unwrap_or("")
    }
}

/// Items grouped under their headings: verbs first, then namespaces, then methods by object.
pub fn groups(items: &[Item]) -> Vec<(String, Vec<&Item>)> {
    let mut out: Vec<(String, Vec<&Item>)> = Vec::new();
    let key = |i: &Item| match (i.namespace.as_str(), i.object.as_str()) {
        ("", "") => (0, "verbs".to_string()),
        (space, "") => (1, format!("{space}::")),
        (_, object) => (2, format!("methods of {object}")),
    };
    let mut keyed: Vec<_> = items.iter().map(|i| (key(i), i)).collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    for ((_, heading), item) in keyed {
        match out.last_mut() {
            Some((h, list)) if *h == heading => list.push(item),
            _ => out.push((heading, vec![item])),
        }
    }
    out
}

/// What there is, one line each, as the Markdown table of the README.
pub fn table() -> String {
    let mut out = String::from("| call | what it is |\n|---|---|\n");
    for (_, items) in groups(&super::all_items()) {
        for item in items {
            let _ = writeln!(
                out,
                "| `{}` | {} |",
                item.path(),
                item.brief().replace('|', "\\|")
            );
        }
    }
    out
}

/// A recipe as Markdown: its heading, how it is imported, and its functions.
pub fn recipe(name: &str) -> Option<String> {
    let source = super::library::source(name)?;
    let mut out = format!(
        "# {name}\n\n{}\n\n`import \"{name}\" as {name};` makes it known; `ergodic docs {name} --source` prints it.\n",
        super::recipe::heading(source)
    );
    let own = super::library::recipe_items().iter();
    for item in own.filter(|i| i.namespace == name) {
        let _ = write!(out, "\n{}", item.markdown());
    }
    Some(out)
}

/// The whole reference as Markdown.
pub fn markdown() -> String {
    let items = super::all_items();
    let mut out = String::from(
        "# Reference\n\nGenerated by `ergodic docs --all`. Objects first, then one `#{…}` of options; integers are accepted where numbers are meant.\n",
    );
    for (heading, items) in groups(&items) {
        let _ = write!(out, "\n## {heading}\n\n");
        for item in items {
            out += &item.markdown();
            out.push('\n');
        }
    }
    out += "\n## recipes\n\n";
    for (name, _) in super::library::RECIPES {
        let text = recipe(name).unwrap_or_default();
        out += &text.replacen("# ", "### ", 1);
        out.push('\n');
    }
    out
}
