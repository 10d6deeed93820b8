//! What runs the cells of a notebook: scripts here, Rust with the feature `evcxr`.

use super::format::Output;
use crate::front::display::Shown;
use crate::script::{Failure, Interpreter};
use crate::simulation::session::{self, Session as Settings};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Asks the running cell to stop, from another thread.
pub type Stop = Arc<dyn Fn() + Send + Sync>;

/// A language that runs cells; variables live on from cell to cell.
pub trait Cells {
    /// Run a cell. It has failed if an [`Output::Error`] is among what it put out.
    fn execute(&mut self, code: &str) -> Vec<Output>;

    /// How to ask the running cell to stop.
    fn stop(&self) -> Stop;
}

/// What is shown, by MIME type.
pub fn data(shown: &Shown) -> Map<String, Value> {
    let formats = shown.formats().into_iter();
    formats
        .map(|(mime, text)| (mime.to_string(), text.into()))
        .collect()
}

/// Cells in Rhai.
pub struct Scripts {
    interpreter: Interpreter,
    count: usize,
    /// How much of what was printed has been put out.
    seen: usize,
}

impl Scripts {
    /// Cells whose results go to `out`.
    pub fn new(out: PathBuf) -> Self {
        let mut settings = Settings::new(out);
        settings.quiet = false;
        // What is printed goes into the notebook, and standard output says nothing.
        settings.json = true;
        Self {
            interpreter: Interpreter::new(settings, BTreeMap::new()),
            count: 0,
            seen: 0,
        }
    }
}

impl Cells for Scripts {
    fn execute(&mut self, code: &str) -> Vec<Output> {
        self.count += 1;
        let result = self
            .interpreter
            .evaluate(&format!("<cell {}>", self.count), code);
        let printed = self.interpreter.printed();
        let new = printed.get(self.seen..).unwrap_or_default().to_string();
        self.seen = printed.len();
        let mut out = Vec::new();
        if !new.is_empty() {
            out.push(Output::Stream("stdout", new));
        }
        match result {
            Ok(value) if value.is_nothing() => {}
            Ok(value) => {
                let shown = value.look(crate::front::display::of);
                let shown = shown.unwrap_or_else(|| Shown::text(self.interpreter.describe(&value)));
                out.push(Output::Result(data(&shown)));
            }
            Err(failure) => out.push(error(&failure)),
        }
        out
    }

    fn stop(&self) -> Stop {
        Arc::new(|| {
            session::interrupt();
        })
    }
}

fn error(failure: &Failure) -> Output {
    Output::Error {
        name: if failure.code == 130 {
            "Interrupted"
        } else {
            "Error"
        }
        .into(),
        value: failure.message.lines().next().unwrap_or_default().into(),
        traceback: failure.message.lines().map(Into::into).collect(),
    }
}
