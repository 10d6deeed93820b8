//! Answers requests: [`Shell`] in order, by the thread that owns the evaluator; [`control`] at once, by another thread.

mod common;
pub(crate) mod control;
mod execute;
mod introspect;
pub(crate) mod usage;

use super::evaluator::{Evaluator, Failure};
use super::history::History;
use super::state::{Core, Request, Work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// Answers what arrives on the shell channel, one request after another.
pub struct Shell<E> {
    core: Arc<Core>,
    evaluator: E,
    history: History,
    /// Number of the last cell.
    count: u32,
    /// A cell of this session failed then: what it had sent before is not executed.
    failed: Option<(String, Instant)>,
}

impl<E: Evaluator> Shell<E> {
    /// A shell around an evaluator.
    pub fn new(core: Arc<Core>, evaluator: E, history: History) -> Self {
        Self {
            core,
            evaluator,
            history,
            count: 0,
            failed: None,
        }
    }

    /// Answer requests until the kernel stops.
    pub fn serve(&mut self, queue: &Receiver<Work>) {
        while let Ok(Work::Request(request)) = queue.recv() {
            if self.core.handle.is_stopping() {
                break;
            }
            let core = self.core.clone();
            core.busy_with(&request, || self.answer(&request));
            if request.message.kind() == "shutdown_request" {
                break;
            }
        }
    }

    fn answer(&mut self, request: &Request) {
        match request.message.kind() {
            "execute_request" => self.execute(request),
            "complete_request" => self.complete(request),
            "inspect_request" => self.inspect(request),
            "is_complete_request" => self.is_complete(request),
            "history_request" => self.recall(request),
            _ => common::answer(&self.core, request),
        }
    }
}

/// Call the evaluator; that it panics must cost a cell, not the session.
fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
        let value = format!(
            "a defect of the kernel, please report it: {}",
            text.unwrap_or("unknown")
        );
        Failure {
            name: "Panic".into(),
            traceback: vec![value.clone()],
            value,
        }
    })
}
