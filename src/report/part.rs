//! One of the things that a script leaves behind, and what can be told of any of them.

use super::verdict::Check;
use crate::error::Result;
use crate::plot::Figure;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use serde_json::Value;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

/// One of the things that a script has made, in a folder of its own.
#[derive(Debug)]
pub struct Part {
    /// Name.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// It.
    pub of: Box<dyn Told>,
}

/// A result on disk, as `ergodic show`, `plot` and `report` tell of it. `summary` is that of its run, if it is one.
pub trait Told: Debug {
    /// It in a line.
    fn line(&self) -> String;

    /// Whether it is finished.
    fn done(&self) -> bool {
        true
    }

    /// What it prints, under its name.
    ///
    /// # Errors
    /// If it cannot be summarised.
    fn text(&self, name: &str) -> Result<String>;

    /// Its numbers by name.
    ///
    /// # Errors
    /// If it cannot be summarised.
    fn json(&self) -> Result<Value>;

    /// What speaks for it and what against.
    ///
    /// # Errors
    /// If a trace cannot be read.
    fn checks(&self, summary: Option<&Summary>) -> Result<Vec<Check>>;

    /// Its figures, the most telling first.
    ///
    /// # Errors
    /// If a trace cannot be read.
    fn drawings(&self, summary: Option<&Summary>) -> Result<Vec<Drawing>>;

    /// Its tables, as HTML.
    fn tables(&self, part: &Part, summary: Option<&Summary>) -> String;

    /// What it was given, by name, if it is no run.
    fn settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What happened on the way.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Whether its steps were cut, if it knows; `script` says whether those of the script were.
    fn is_cut(&self, script: bool) -> bool {
        script
    }

    /// The run that it is.
    fn run(&self) -> Option<&Arc<Run>> {
        None
    }

    /// Why it cannot be read.
    fn damage(&self) -> Option<&str> {
        None
    }
}

/// A figure with a name for its file and a sentence on what can be seen.
pub struct Drawing {
    /// As in "traces-cost".
    pub name: String,
    /// What it shows, and what to look for.
    pub about: String,
    /// It.
    pub figure: Figure,
}

/// A figure with a name and a sentence.
pub fn drawing(name: impl Into<String>, about: impl Into<String>, figure: Figure) -> Drawing {
    let (name, about) = (name.into(), about.into());
    Drawing {
        name,
        about,
        figure,
    }
}
