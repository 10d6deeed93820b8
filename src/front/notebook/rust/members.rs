//! What completion offers: rust-analyzer lists all members of a type, in its own order and with those that cells cannot use.

use ra_ap_syntax::ast::{self, AstNode, HasName, HasVisibility};
use ra_ap_syntax::{Edition, SourceFile};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A possible completion: text, kind, and how it is shown, with its documentation if that is known.
pub type Candidate = (String, &'static str, String);

/// Members of handles that rust-analyzer reads in the source of the standard library, and what evcxr calls.
const INNER: [&str; 6] = [
    "alloc",
    "drop_slow()",
    "evcxr_display()",
    "inner()",
    "phantom",
    "ptr",
];

/// Names of the library's members.
pub(super) struct Members {
    /// Those that cells can use, of any type.
    open: HashSet<String>,
    /// Fields and methods that only the library can use.
    hidden: HashSet<String>,
    /// The first line of documentation of each option, of whatever builder comes first; and of each builder by its name.
    options: HashMap<&'static str, HashMap<&'static str, &'static str>>,
}

impl Members {
    /// Of the library whose source is in that folder.
    pub(super) fn of(source: &Path) -> Self {
        let mut out = Self {
            open: HashSet::new(),
            hidden: HashSet::new(),
            options: options(include_str!("../../../builders/table.rs")),
        };
        let mut folders = vec![source.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    out.read(&std::fs::read_to_string(path).unwrap_or_default());
                }
            }
        }
        out
    }

    fn read(&mut self, text: &str) {
        let file = SourceFile::parse(text, Edition::CURRENT).tree();
        for node in file.syntax().descendants() {
            let found = if let Some(field) = ast::RecordField::cast(node.clone()) {
                field.name().map(|n| (n, field.visibility()))
            } else if let Some(method) = ast::Fn::cast(node) {
                let of_trait = method.syntax().ancestors().find_map(ast::Impl::cast);
                let of_trait = of_trait.is_none_or(|i| i.trait_().is_some());
                let visible = method.visibility();
                // What a trait has is open, and has no `pub`.
                method.name().filter(|_| !of_trait).map(|n| (n, visible))
            } else {
                None
            };
            if let Some((name, visible)) = found {
                let open = visible.is_some_and(|v| v.syntax().text() == "pub");
                let names = if open {
                    &mut self.open
                } else {
                    &mut self.hidden
                };
                names.insert(name.text().to_string());
            }
        }
    }

    /// The candidates for what begins at that byte of a cell: the options of a builder first, then what else the library has, then the rest.
    pub(super) fn arrange(
        &self,
        code: &str,
        start: usize,
        mut all: Vec<Candidate>,
    ) -> Vec<Candidate> {
        let before = code.get(..start).unwrap_or_default();
        if !before.trim_end().ends_with('.') {
            return all;
        }
        let builder = before.rsplit_once("::new(").map_or("", |(head, _)| {
            head.rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or("")
        });
        let of_builder = self.options.get(builder);
        let option = |name: &str| match of_builder {
            Some(options) => options.get(name),
            None => self.options.values().find_map(|o| o.get(name)),
        };
        let name = |c: &Candidate| {
            let end = c.0.find(|c: char| !c.is_alphanumeric() && c != '_');
            c.0[..end.unwrap_or(c.0.len())].to_string()
        };
        // A builder's fields are not for cells.
        let is_builder = ["build()", "run_in(session)"].map(|last| all.iter().any(|c| c.0 == last));
        let fields = is_builder == [false; 2];
        all.retain(|c| {
            let name = name(c);
            if INNER.contains(&&*c.0) || !fields && !c.0.contains('(') {
                return false;
            }
            // What the cell itself names is the user's.
            let hidden = self.hidden.contains(&name) && !self.open.contains(&name);
            !hidden || option(&name).is_some() || code.contains(&format!("{name}:"))
        });
        for c in &mut all {
            if let Some(doc) = of_builder.and_then(|o| o.get(&*name(c))) {
                c.2 = format!("{}: {doc}", c.0);
            }
        }
        all.sort_by_key(|c| match name(c) {
            n if option(&n).is_some() => 0,
            n if self.open.contains(&n) => 1,
            _ => 2,
        });
        all
    }
}

/// The options of each builder, with their documentation, as the table of builders writes them.
fn options(table: &'static str) -> HashMap<&'static str, HashMap<&'static str, &'static str>> {
    let mut out: HashMap<_, HashMap<_, _>> = HashMap::new();
    let (mut builder, mut doc) = ("", "");
    for line in table.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc = text;
        } else if let Some((name, rest)) = line.split_once(" = \"") {
            match rest.split_once("\": ") {
                Some(_) => drop(out.entry(builder).or_default().insert(name, doc)),
                None => builder = name,
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_first_and_nothing_private() {
        let mut members = Members {
            open: HashSet::new(),
            hidden: HashSet::new(),
            options: options(include_str!("../../../builders/table.rs")),
        };
        members.read("pub struct A { pub seen: u8, inner: u8, pub(crate) near: u8 }\nimpl A { pub fn build(self) {} fn help(&self) {} }\nimpl T for A { fn act(&self) {} }");
        let all = [
            "clone()",
            "act()",
            "inner",
            "near",
            "help()",
            "seen",
            "build()",
            "batch(value)",
        ];
        let all = all.map(|text| (text.to_string(), "function", text.to_string()));
        let code = "sampler::Sgld::new().step(1e-3).";
        let found = members.arrange(code, code.len(), all.to_vec());
        let texts: Vec<_> = found.iter().map(|c| &*c.0).collect();
        assert_eq!(texts, ["batch(value)", "build()", "clone()", "act()"]);
        assert!(found[0].2.contains("minibatch"), "{}", found[0].2);
        // Anything else is as it comes.
        assert_eq!(members.arrange("let a = ", 8, all.to_vec()), all);
    }
}
