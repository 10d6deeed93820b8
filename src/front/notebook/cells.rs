//! What runs the cells of a notebook: scripts here, Rust with the feature `evcxr`.

use super::format::Output;
use crate::error::Result;
use crate::front::bar::{Live, Moment};
use crate::front::display::Shown;
use crate::front::interactive::Interactive;
use crate::front::jupyter;
use crate::script::Failure;
use crate::simulation::console::{Bar, Console, Task};
use crate::simulation::session::{self, Session as Settings};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Asks the running cell to stop, from another thread.
pub type Stop = Arc<dyn Fn() + Send + Sync>;

/// A language that runs cells; variables live on from cell to cell.
pub trait Cells {
    /// Run a cell. It has failed if an [`Output::Error`] is among what it put out.
    fn execute(&mut self, code: &str) -> Vec<Output>;

    /// Wait until cells can be run.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// How to ask the running cell, or one who waits, to stop.
    fn stop(&self) -> Stop;
}

/// What is shown, by MIME type.
pub fn data(shown: &Shown) -> Map<String, Value> {
    let formats = shown.formats().into_iter();
    formats
        .map(|(mime, text)| (mime.to_string(), text.into()))
        .collect()
}

/// Cells in Rhai: the same session as in Jupyter.
pub struct Scripts {
    session: Interactive,
    outputs: Arc<Outputs>,
    count: usize,
}

impl Scripts {
    /// Cells whose results go below `runs/NAME-K`.
    pub fn new(name: &str) -> Self {
        let mut settings = Settings::new(PathBuf::new());
        let outputs = Arc::<Outputs>::default();
        settings.console = outputs.clone();
        Self {
            session: Interactive::new(settings, name, "%continue"),
            outputs,
            count: 0,
        }
    }
}

impl Cells for Scripts {
    fn execute(&mut self, code: &str) -> Vec<Output> {
        self.count += 1;
        let result = self.session.take(&format!("In [{}]", self.count), code);
        let mut out = self.outputs.take();
        match result.map(|answer| self.session.shown(answer)) {
            Ok(None) => {}
            Ok(Some(shown)) => out.push(Output::Result(data(&shown))),
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

/// What a cell puts out before its value.
#[derive(Default)]
struct Outputs(Arc<Mutex<Vec<Output>>>);

impl Outputs {
    fn take(&self) -> Vec<Output> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

fn put(outputs: &Mutex<Vec<Output>>, output: Output) {
    let mut all = outputs.lock().unwrap_or_else(|e| e.into_inner());
    // What is printed piece by piece is one text.
    match (all.last_mut(), &output) {
        (Some(Output::Stream(name, text)), Output::Stream(new, more)) if name == new => {
            text.push_str(more);
        }
        _ => all.push(output),
    }
}

impl Console for Outputs {
    fn print(&self, text: &str) {
        put(&self.0, Output::Stream("stdout", format!("{text}\n")));
    }

    fn remark(&self, text: &str) {
        put(&self.0, Output::Stream("stderr", format!("{text}\n")));
    }

    fn show(&self, shown: &Shown) {
        put(&self.0, Output::Display(data(shown)));
    }

    fn clear(&self, _: bool) {
        self.take();
    }

    fn begin(&self, task: &Task) -> Arc<dyn Bar> {
        let outputs = self.0.clone();
        // Where nobody watches, the end of a run is enough.
        Arc::new(Live::new(task, move |shown, moment| {
            if moment == Moment::Last {
                put(&outputs, Output::Display(data(&shown)));
            }
        }))
    }
}

fn error(failure: &Failure) -> Output {
    let failure = jupyter::failed(failure);
    Output::Error {
        name: failure.name,
        value: failure.value,
        traceback: failure.traceback,
    }
}
