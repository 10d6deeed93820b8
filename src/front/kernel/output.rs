//! What a cell prints, shows and asks.

use super::iopub::Stream;
use super::rich::Rich;
use super::state::{Core, Request};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a cell prints, shows and asks.
///
/// Clones and other threads may go on using it after the cell has ended: what they show still belongs to their cell. Only
/// questions end with the cell.
#[derive(Clone)]
pub struct Output(Option<Arc<Cell>>);

struct Cell {
    core: Arc<Core>,
    request: Request,
    parent: Arc<Value>,
    silent: bool,
    ended: AtomicBool,
    pages: Mutex<Vec<Value>>,
}

impl Output {
    /// An output that leads nowhere.
    pub fn nowhere() -> Self {
        Self(None)
    }

    pub(super) fn of(core: &Arc<Core>, request: &Request, silent: bool) -> Self {
        Self(Some(Arc::new(Cell {
            core: core.clone(),
            request: request.clone(),
            parent: Arc::new(request.message.header.clone()),
            silent,
            ended: AtomicBool::new(false),
            pages: Mutex::default(),
        })))
    }

    /// Print text. It may be held back for a moment, to be sent together with what is printed next.
    pub fn stream(&self, stream: Stream, text: &str) {
        if let Some(cell) = self.heard() {
            cell.core.iopub.print(&cell.parent, stream, text);
        }
    }

    /// Show something. With an id of your choice, [`update`](Self::update) can replace it later.
    pub fn display(&self, rich: Rich, id: Option<&str>) {
        self.show("display_data", rich, id);
    }

    /// Replace what was shown with that id, wherever it is shown.
    pub fn update(&self, id: &str, rich: Rich) {
        self.show("update_display_data", rich, Some(id));
    }

    fn show(&self, kind: &str, rich: Rich, id: Option<&str>) {
        let Some(cell) = self.heard() else { return };
        let transient = match id {
            Some(id) => json!({"display_id": id}),
            None => json!({}),
        };
        // Not by the macro, which would copy what may be large.
        let mut content = serde_json::Map::new();
        content.insert("data".into(), Value::Object(rich.data));
        content.insert("metadata".into(), Value::Object(rich.metadata));
        content.insert("transient".into(), transient);
        cell.core
            .iopub
            .send(&cell.parent, kind, Value::Object(content));
    }

    /// Remove what the cell has shown; with `wait`, only when it shows something new, so that animations do not flicker.
    pub fn clear(&self, wait: bool) {
        if let Some(cell) = self.heard() {
            let content = json!({"wait": wait});
            cell.core.iopub.send(&cell.parent, "clear_output", content);
        }
    }

    /// Show something beside the notebook instead of in it, as help texts are, once the cell has ended.
    pub fn page(&self, rich: Rich) {
        if let Some(cell) = self.heard() {
            let page = json!({"source": "page", "data": rich.data, "start": 0});
            cell.pages
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(page);
        }
    }

    /// Ask whoever runs the cell for a line; a password is not shown while it is typed. An error if the client cannot be asked,
    /// or if the cell is interrupted meanwhile.
    pub fn input(&self, prompt: &str, password: bool) -> Result<String> {
        let Some(cell) = &self.0 else {
            bail!("cannot ask for input here");
        };
        let Request { peer, message, .. } = &cell.request;
        if !message.flag("allow_stdin", true) {
            bail!("cannot ask for input: the client that sent this cell does not allow it");
        }
        if cell.ended.load(Ordering::SeqCst) {
            bail!("cannot ask for input: the cell has ended");
        }
        // What was printed explains the question.
        cell.core.iopub.flush_now();
        cell.core
            .stdin
            .ask(peer.identity(), message, prompt, password)
    }

    /// The cell has ended: nobody waits for what its threads still ask. Returns what is to be shown beside the notebook.
    pub(super) fn end(&self) -> Vec<Value> {
        let Some(cell) = &self.0 else {
            return Vec::new();
        };
        cell.ended.store(true, Ordering::SeqCst);
        cell.core.stdin.interrupt();
        std::mem::take(&mut *cell.pages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn heard(&self) -> Option<&Cell> {
        self.0.as_deref().filter(|cell| !cell.silent)
    }
}
