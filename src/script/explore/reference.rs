//! The reference, as questions about a place in a script need it.

use super::Variable;
use super::place::{Callee, Receiver};
use crate::options::{Kind, Spec};
use crate::script::item::Item;

/// What can be called, and the variables there are.
pub struct Reference<'a> {
    pub items: &'a [Item],
    pub variables: Vec<Variable>,
}

/// The type that a call gives: what is behind the arrow of its signature.
fn result(item: &Item) -> Option<&str> {
    item.signature.split("-> ").nth(1).map(str::trim)
}

/// A type as its methods are listed under.
pub fn object(name: &str) -> String {
    match name.to_lowercase().as_str() {
        // A data set is called data there.
        "dataset" => "data".into(),
        other => other.into(),
    }
}

impl<'a> Reference<'a> {
    /// The functions that a script may mean.
    pub fn called(&self, callee: Callee) -> impl Iterator<Item = &'a Item> {
        let (space, name, method) = (
            callee.namespace.to_string(),
            callee.name.to_string(),
            callee.method,
        );
        self.items.iter().filter(move |i| {
            i.name == name && i.namespace == space && i.object.is_empty() != method
        })
    }

    /// The options that a call takes.
    pub fn options(&self, callee: Callee) -> &'a [Spec] {
        let with = self.called(callee).find(|i| !i.options.is_empty());
        with.map_or(&[], |i| i.options)
    }

    /// The entries of the map that an option of a call takes, if it takes one.
    pub fn entries(&self, callee: Callee, option: &str) -> &'a [Spec] {
        let spec = self.options(callee).iter().find(|s| s.name == option);
        match spec.map(|s| s.kind) {
            Some(Kind::Map(entries)) => entries,
            _ => &[],
        }
    }

    /// The variable of that name.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|v| v.name == name)
    }

    /// The type of what stands before a dot, in small letters, as the reference names objects; none if nobody knows.
    pub fn type_of(&self, receiver: Receiver) -> Option<String> {
        let name = match receiver {
            Receiver::Variable(name) => self.variable(name)?.kind.clone(),
            Receiver::Call(callee) => result(self.called(callee).next()?)?.to_string(),
            Receiver::Text => "string".into(),
            Receiver::Array => "array".into(),
            Receiver::Unknown => return None,
        };
        Some(object(&name))
    }

    /// The namespaces, each once.
    pub fn namespaces(&self) -> Vec<&'a str> {
        let mut out: Vec<&str> = self.items.iter().map(|i| i.namespace.as_str()).collect();
        out.retain(|n| !n.is_empty());
        out.sort_unstable();
        out.dedup();
        out
    }

    /// What gives an object of that type: functions and constructors.
    pub fn makers(&self, kind: &str) -> Vec<&'a Item> {
        let makes = |i: &&Item| result(i) == Some(kind) && i.object.is_empty();
        self.items.iter().filter(makes).collect()
    }
}
