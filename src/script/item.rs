//! What the reference knows of one thing that a script can call.

use crate::options::Spec;

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
}
