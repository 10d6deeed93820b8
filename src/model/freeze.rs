//! The option `freeze` of models that come with numbers: parameters that stay as they are.

use crate::error::{Result, listed};
use crate::options::{Kind, Options, Spec, optional};
use anyhow::bail;

/// The option.
pub const FREEZE: Spec = optional(
    "freeze",
    Kind::Anything("name, or array of names"),
    "none",
    "Parameters that stay as they are, which are then no parameters: \"conv1\" stands for all whose names begin with \"conv1.\".",
);

/// The names that the option has, and which of them were found.
#[derive(Debug, Default)]
pub struct Freeze {
    parts: Vec<(String, bool)>,
}

impl Freeze {
    /// What the option says.
    pub fn from_options(o: &Options) -> Result<Self> {
        let names = o.names("freeze")?.into_iter();
        Ok(Self {
            parts: names.map(|name| (name, false)).collect(),
        })
    }

    /// Whether a parameter stays as it is.
    pub fn has(&mut self, name: &str) -> bool {
        let mut has = false;
        for (part, found) in &mut self.parts {
            let rest = name.strip_prefix(&**part);
            let is = rest.is_some_and(|r| r.is_empty() || r.starts_with('.'));
            *found |= is;
            has |= is;
        }
        has
    }

    /// Fail if a name was not found among those that [`Freeze::has`] was asked for.
    pub fn check(&self, known: &[&str]) -> Result<()> {
        match self.parts.iter().find(|(_, found)| !found) {
            None => Ok(()),
            Some((part, _)) => bail!(
                "option 'freeze': there is no parameter '{part}'; there are {}",
                listed(known)
            ),
        }
    }
}
