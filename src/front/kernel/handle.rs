//! How other threads stop a cell or the whole kernel.

use super::language::Interrupter;
use super::note::note;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Default)]
struct State {
    /// How the running kernel is reached; nothing while none runs.
    reach: Option<Reach>,
    cell_runs: bool,
    stopping: bool,
}

struct Reach {
    interrupter: Interrupter,
    wake: Box<dyn Fn() + Send>,
    grace: Duration,
}

/// Stops a cell or the whole kernel, from any thread. Clones belong to the same kernel.
#[derive(Clone, Default)]
pub struct Handle(Arc<Mutex<State>>);

impl Handle {
    /// Ask the running cell to stop. Between cells nothing happens, and to a completion or an inspection neither.
    pub fn interrupt(&self) {
        interrupt(&self.lock());
    }

    /// Let [`Kernel::run`](super::Kernel::run) return. A running cell is asked to stop; if it does not within the kernel's
    /// `grace`, the process exits.
    pub fn stop(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.stopping, true) {
            return;
        }
        interrupt(&state);
        let Some(reach) = &state.reach else { return };
        (reach.wake)();
        let (grace, handle) = (reach.grace, self.clone());
        let leave = move || {
            std::thread::sleep(grace);
            if handle.lock().reach.is_some() {
                note("the running cell does not stop; leaving without it");
                std::process::exit(1);
            }
        };
        // Without it, whoever wants the kernel to end must be content to wait, or kill it.
        drop(
            std::thread::Builder::new()
                .name("kernel-grace".into())
                .spawn(leave),
        );
    }

    /// Whether the kernel has been asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    pub(super) fn attach(
        &self,
        interrupter: Interrupter,
        wake: impl Fn() + Send + 'static,
        grace: Duration,
    ) {
        let mut state = self.lock();
        // It may have been stopped before it started.
        if state.stopping {
            wake();
        }
        state.reach = Some(Reach {
            interrupter,
            wake: Box::new(wake),
            grace,
        });
    }

    pub(super) fn detach(&self) {
        self.lock().reach = None;
    }

    /// Whether a kernel runs.
    #[cfg(unix)]
    pub(super) fn is_attached(&self) -> bool {
        self.lock().reach.is_some()
    }

    /// A cell starts; `rearm` forgets earlier interrupts. Returns false if none may start any more.
    pub(super) fn begin(&self, rearm: impl FnOnce()) -> bool {
        let mut state = self.lock();
        // Under the lock, so that an interrupt comes either before this or after the cell counts as running.
        rearm();
        state.cell_runs = !state.stopping;
        state.cell_runs
    }

    /// The cell has ended.
    pub(super) fn end(&self) {
        self.lock().cell_runs = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn interrupt(state: &State) {
    if let Some(reach) = &state.reach
        && state.cell_runs
    {
        (reach.interrupter)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn only_a_running_cell_is_interrupted() {
        let (handle, times) = (Handle::default(), Arc::new(AtomicU32::new(0)));
        let counter = times.clone();
        let interrupter = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        handle.interrupt();
        handle.attach(interrupter, || {}, Duration::from_secs(3600));
        handle.interrupt();
        assert!(handle.begin(|| {}));
        handle.interrupt();
        handle.end();
        handle.interrupt();
        assert_eq!(times.load(Ordering::SeqCst), 1);
        assert!(handle.begin(|| {}));
        handle.stop();
        assert_eq!(times.load(Ordering::SeqCst), 2);
        handle.end();
        assert!(!handle.begin(|| {}));
    }
}
