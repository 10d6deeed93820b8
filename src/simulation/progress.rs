//! The progress of a run, on the way to its session's console.

use super::console::{Bar, Stage, Task};
use super::session::Session;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How many runs there are that save what they have when they are interrupted.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Whether a run goes on that will save what it has when it is interrupted.
pub fn saves() -> bool {
    RUNS.load(Ordering::SeqCst) > 0
}

/// The progress of one run.
pub(crate) struct Progress {
    task: Task,
    bar: Option<Arc<dyn Bar>>,
    begin: Instant,
    last: Mutex<Stage>,
}

/// Values that are watched at once; then every other one is dropped.
const WATCHED: usize = 256;

impl Progress {
    /// Progress of a task, from what was done before.
    pub fn new(session: &Session, task: Task) -> Self {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Self {
            bar: (!session.quiet).then(|| session.console.begin(&task)),
            begin: Instant::now(),
            last: Mutex::new(Stage {
                done: task.first,
                total: task.total,
                ..Stage::default()
            }),
            task,
        }
    }

    /// So many are done, and `failed` chains have failed.
    pub fn set(&self, done: u64, failed: usize) {
        self.update(|stage| (stage.done, stage.failed) = (done, failed));
    }

    /// So many there will be, and this is said of it.
    pub fn expect(&self, total: u64, said: Option<String>) {
        let mut stage = self.last.lock().unwrap_or_else(|e| e.into_inner());
        (stage.total, stage.said) = (total, said);
    }

    /// What is watched has this value now.
    pub fn watch(&self, name: &str, value: f64) {
        let mut stage = self.last.lock().unwrap_or_else(|e| e.into_inner());
        let (_, values) = stage.watched.get_or_insert_with(|| (name.into(), vec![]));
        if value.is_finite() {
            values.push(value);
        }
        if values.len() > WATCHED {
            let mut number = 0;
            values.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
    }

    fn update(&self, change: impl FnOnce(&mut Stage)) {
        let mut stage = self.last.lock().unwrap_or_else(|e| e.into_inner());
        change(&mut stage);
        stage.seconds = self.begin.elapsed().as_secs_f64();
        stage.rate = stage.done.saturating_sub(self.task.first) as f64 / stage.seconds.max(1e-9);
        if let Some(bar) = &self.bar {
            bar.show(&stage);
        }
    }
}

impl Drop for Progress {
    /// The bar comes to its end, however the work does.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish(&self.last.lock().unwrap_or_else(|e| e.into_inner()));
        }
        RUNS.fetch_sub(1, Ordering::SeqCst);
    }
}
