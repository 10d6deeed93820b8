//! Rust cells, by evcxr: in notebooks without a browser, in Jupyter, and on the terminal.
//!
//! `ergodic notebook setup` compiles the library once as a dynamic library ([`setup`]). A session copies that folder, by hard links
//! (`folder`), and evcxr compiles a cell against it (`engine`). The cells run in this program, started once more ([`hook`]), whose output is sorted
//! in `streams`.

#[cfg(unix)]
mod child;
mod commands;
mod complaint;
pub(crate) mod engine;
pub(crate) mod folder;
pub mod kernel;
mod members;
mod progress;
pub mod repl;
pub mod setup;
pub(crate) mod streams;
mod value;

use super::cells::{Cells, Stop, data};
use super::format::Output;
use crate::error::Result;
use crate::output;
use engine::Engine;
use folder::Prepared;
use std::sync::{Arc, Mutex};
use streams::Event;

#[cfg(unix)]
pub use child::hook;

/// To be called before anything else: does not return if this is the process of the cells.
#[cfg(not(unix))]
pub(crate) fn hook() {
    evcxr::runtime_hook();
}

/// Cells in Rust.
pub(crate) struct RustCells {
    engine: Engine,
}

impl RustCells {
    /// Start evcxr on the prepared library, in the background.
    pub fn start() -> Result<Self> {
        let engine = Engine::start(Prepared::find()?)?;
        Ok(Self { engine })
    }
}

impl Cells for RustCells {
    fn execute(&mut self, code: &str) -> Vec<Output> {
        let outputs = Arc::new(Mutex::new(Vec::new()));
        let own = outputs.clone();
        let sink = move |event: Event| {
            let output = match event {
                Event::Printed(stream, text) => Output::Stream(stream, text),
                Event::Shown(shown) => Output::Display(data(&shown)),
                Event::Clear(_) => {
                    // As Jupyter would leave it.
                    own.lock().unwrap_or_else(|e| e.into_inner()).clear();
                    return;
                }
                Event::Progress(_, line, over) => {
                    // Where nobody watches, the end of a run is enough.
                    if over {
                        output::remark(&line.text);
                    }
                    return;
                }
            };
            own.lock().unwrap_or_else(|e| e.into_inner()).push(output);
        };
        let result = self.engine.execute(code, Box::new(sink));
        let mut out = std::mem::take(&mut *outputs.lock().unwrap_or_else(|e| e.into_inner()));
        match result {
            Ok(None) => {}
            Ok(Some(shown)) => out.push(Output::Result(data(&shown))),
            Err(trouble) => out.push(Output::Error {
                name: trouble.name.into(),
                value: trouble.lines.first().cloned().unwrap_or_default(),
                traceback: trouble.lines,
            }),
        }
        out
    }

    fn wait(&self) -> Result<()> {
        self.engine.wait()
    }

    fn stop(&self) -> Stop {
        self.engine.interrupter()
    }
}
