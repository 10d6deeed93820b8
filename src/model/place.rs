//! A location or a scale: a number, or the name of a parameter.

use crate::error::Result;
use crate::options::{Options, Value};

/// A location or a scale.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// A number.
    Number(f64),
    /// The value of a parameter: one for all numbers, or one for each.
    Parameter(String),
}

impl Place {
    /// From an option; a number must be finite, and > 0 where it is to be `positive`.
    ///
    /// # Errors
    /// If it is neither such a number nor a name.
    pub fn of(o: &Options, name: &str, positive: bool) -> Result<Self> {
        let given = o.get(name);
        if let Some(Value::Text(parameter)) = given {
            return Ok(Self::Parameter(parameter.clone()));
        }
        let fine = |x: &f64| x.is_finite() && (!positive || *x > 0.0);
        let found = given.and_then(Value::number).filter(fine);
        found.map(Self::Number).ok_or_else(|| {
            anyhow::anyhow!(
                "{}: option '{name}' is {}, but must be a number{}, or the name of a parameter",
                o.owner(),
                given.map_or("missing".into(), Value::describe),
                if positive { " > 0" } else { "" }
            )
        })
    }

    /// As a script has it.
    pub fn describe(&self) -> String {
        match self {
            Self::Number(x) => format!("{x}"),
            Self::Parameter(name) => name.clone(),
        }
    }
}
