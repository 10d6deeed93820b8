//! What a session says, as the output of the cell that runs.

use crate::error::Result;
use crate::front::bar::{Live, Moment};
use crate::front::kernel::{Output, Rich, Stream};
use crate::object::Shown;
use crate::simulation::console::{Bar, Console, Task};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The output of the cell that runs.
pub struct Cell {
    out: Mutex<Output>,
    /// Bars so far, so that each has a name.
    bars: AtomicU64,
}

impl Cell {
    /// Nobody listens yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            out: Mutex::new(Output::nowhere()),
            bars: AtomicU64::new(0),
        })
    }

    /// From now on, this cell.
    pub fn attach(&self, out: &Output) {
        *self.out.lock().unwrap_or_else(|e| e.into_inner()) = out.clone();
    }

    fn out(&self) -> Output {
        self.out.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Console for Cell {
    fn print(&self, text: &str) {
        self.out().stream(Stream::Stdout, &format!("{text}\n"));
    }

    fn remark(&self, text: &str) {
        self.out().stream(Stream::Stderr, &format!("{text}\n"));
    }

    fn show(&self, shown: &Shown) {
        self.out().display(rich(shown), None);
    }

    fn ask(&self, prompt: &str) -> Result<String> {
        self.out().input(prompt, false)
    }

    fn clear(&self, wait: bool) {
        self.out().clear(wait);
    }

    fn begin(&self, task: &Task) -> Arc<dyn Bar> {
        let number = self.bars.fetch_add(1, Ordering::Relaxed);
        let id = format!("ergodic-{}-{number}", std::process::id());
        let out = self.out();
        Arc::new(Live::new(task, move |shown, moment| match moment {
            Moment::First => out.display(rich(&shown), Some(&id)),
            Moment::Later | Moment::Last => out.update(&id, rich(&shown)),
        }))
    }
}

/// A value in the formats that a notebook takes.
pub fn rich(shown: &Shown) -> Rich {
    let formats = shown.formats().into_iter();
    formats.fold(Rich::default(), |rich, (mime, text)| rich.with(mime, text))
}
