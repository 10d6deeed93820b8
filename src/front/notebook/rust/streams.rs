//! What comes from the process that the cells run in: sorted into what is printed, shown, and how the cell has ended; and signals to it.

use super::super::cell_protocol::{Mark, START};
use super::super::record::Record;
use crate::front::display::Shown;
use evcxr::EvalContextOutputs;
use std::collections::HashSet;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What a cell puts out while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A line on "stdout" or "stderr", with its end.
    Printed(&'static str, String),
    /// Something shown.
    Shown(Shown),
    /// What was shown so far is to go, at once or when something else is shown.
    Clear(bool),
    /// How far a run is: its name, a line about it, whether it is over.
    Progress(String, Shown, bool),
}

/// Where events go.
pub type Sink = Box<dyn FnMut(Event) + Send>;

/// The first cell still has to wait; nothing runs; a cell is being compiled; a cell runs.
const STARTING: u8 = 0;
pub(super) const IDLE: u8 = 1;
const COMPILING: u8 = 2;
pub(super) const RUNNING: u8 = 3;

/// For how long a cell that was interrupted may go on without a run.
const PATIENCE: Duration = Duration::from_secs(3);

/// What comes from the process that the cells run in, and what the threads of an engine share of it.
pub(super) struct Streams {
    pub(super) sink: Mutex<Option<Sink>>,
    pub(super) phase: AtomicU8,
    /// Interrupts sent to the running cell.
    pub(super) interrupts: AtomicU8,
    pub(super) killed: AtomicBool,
    /// Cells so far.
    cell: AtomicU64,
    /// Runs that are on their way, by name: they heed an interrupt.
    active: Mutex<HashSet<String>>,
    /// How the running cell has ended early, if it has.
    pub(super) failed: Mutex<Option<String>>,
    /// The value of its last expression, if that is shown.
    pub(super) value: Mutex<Option<Shown>>,
    /// Lines of standard error that may be the message of an error.
    held: Mutex<Vec<String>>,
    /// Those that were held last, and given away after all.
    given: Mutex<Vec<String>>,
    /// Which of the two streams have come to their end.
    ended: Mutex<[bool; 2]>,
    all_ended: Condvar,
    pub(super) child: Mutex<Option<Arc<Mutex<Child>>>>,
    /// The cells so far.
    pub(super) record: Record,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Streams {
    pub(super) fn new() -> Self {
        Self {
            sink: Mutex::default(),
            phase: AtomicU8::new(STARTING),
            interrupts: AtomicU8::new(0),
            killed: AtomicBool::new(false),
            cell: AtomicU64::new(0),
            active: Mutex::default(),
            failed: Mutex::default(),
            value: Mutex::default(),
            held: Mutex::default(),
            given: Mutex::default(),
            ended: Mutex::new([true; 2]),
            all_ended: Condvar::new(),
            child: Mutex::default(),
            record: Record::new(),
        }
    }

    /// Read what the process puts out, until its end.
    pub(super) fn watch(self: &Arc<Self>, outputs: EvalContextOutputs) {
        let (own, stdout) = (self.clone(), outputs.stdout);
        std::thread::spawn(move || {
            while let Ok(line) = stdout.recv() {
                own.printed(line);
            }
        });
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            while let Ok(line) = outputs.stderr.recv() {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let own = self.clone();
        std::thread::spawn(move || own.complained(&lines));
    }

    /// Cells can be run.
    pub(super) fn started(&self) {
        let _ = self
            .phase
            .compare_exchange(STARTING, IDLE, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// A cell begins.
    pub(super) fn begin(&self, sink: Sink) {
        *lock(&self.sink) = Some(sink);
        *lock(&self.failed) = None;
        *lock(&self.value) = None;
        lock(&self.held).clear();
        lock(&self.given).clear();
        self.interrupts.store(0, Ordering::SeqCst);
        self.killed.store(false, Ordering::SeqCst);
        self.cell.fetch_add(1, Ordering::SeqCst);
        lock(&self.active).clear();
        self.phase.store(COMPILING, Ordering::SeqCst);
    }

    /// The lines of standard error that are still held back: the message of a cell that has failed.
    pub(super) fn held(&self, failed: bool) -> Vec<String> {
        let held = std::mem::take(&mut *lock(&self.held));
        match held.is_empty() && failed {
            // It has failed long after its message.
            true => std::mem::take(&mut *lock(&self.given)),
            false => held,
        }
    }

    /// Ask the running cell to stop. A run does, and saves what it has; the process of a cell that does neither is ended after a while,
    /// and at once when asked again.
    pub(super) fn interrupt(self: &Arc<Self>) {
        match self.phase.load(Ordering::SeqCst) {
            // It reaches the cell as soon as that runs, and whoever waits for the start.
            STARTING | COMPILING => drop(self.interrupts.fetch_max(1, Ordering::SeqCst)),
            RUNNING if self.interrupts.fetch_add(1, Ordering::SeqCst) == 0 => self.stop(),
            RUNNING => self.end_process(),
            _ => {}
        }
    }

    fn end_process(&self) {
        self.killed.store(true, Ordering::SeqCst);
        self.signal(true);
    }

    /// Signal the cell, and see that it stops.
    fn stop(self: &Arc<Self>) {
        self.signal(false);
        let (own, cell) = (self.clone(), self.cell.load(Ordering::SeqCst));
        std::thread::spawn(move || {
            let mut deaf_since = Instant::now();
            while deaf_since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(50));
                let over = own.phase.load(Ordering::SeqCst) != RUNNING;
                if over || own.cell.load(Ordering::SeqCst) != cell {
                    return;
                }
                if !lock(&own.active).is_empty() {
                    deaf_since = Instant::now();
                }
            }
            own.end_process();
        });
    }

    /// Ask the process of the cells to stop what it does, or end it.
    fn signal(&self, end: bool) {
        let Some(child) = lock(&self.child).clone() else {
            return;
        };
        let mut child = lock(&child);
        #[cfg(unix)]
        if let (false, Ok(id)) = (end, i32::try_from(child.id())) {
            // SAFETY: the process is a child that has not been waited for, so the number is its own.
            unsafe { libc::kill(id, libc::SIGINT) };
            return;
        }
        let _ = (end, child.kill());
    }

    pub(super) fn tell(&self, event: Event) {
        if let Event::Progress(run, _, over) = &event {
            let mut active = lock(&self.active);
            match over {
                true => drop(active.remove(run)),
                false => drop(active.insert(run.clone())),
            }
        }
        if let Some(sink) = &mut *lock(&self.sink) {
            sink(event);
        }
    }

    pub(super) fn give(&self, lines: Vec<String>) {
        for line in lines {
            self.tell(Event::Printed("stderr", line + "\n"));
        }
    }

    fn end(&self, stream: usize) {
        let mut ended = lock(&self.ended);
        ended[stream] = true;
        self.all_ended.notify_all();
    }

    /// Wait until all that the cell has printed has come; not for ever, since its process may have died.
    pub(super) fn wait_for_ends(&self) {
        let limit = Instant::now() + Duration::from_secs(2);
        let mut ended = lock(&self.ended);
        while *ended != [true; 2] && Instant::now() < limit {
            let (next, _) = self
                .all_ended
                .wait_timeout(ended, Duration::from_millis(50))
                .unwrap_or_else(|e| e.into_inner());
            ended = next;
        }
    }

    /// A line of standard output.
    fn printed(self: &Arc<Self>, line: String) {
        match Mark::parse(&line) {
            None => self.tell(Event::Printed("stdout", line + "\n")),
            Some(Mark::Running) => {
                *lock(&self.ended) = [false; 2];
                self.phase.store(RUNNING, Ordering::SeqCst);
                if self.interrupts.load(Ordering::SeqCst) > 0 {
                    self.stop();
                }
            }
            Some(Mark::Done) => self.end(0),
            Some(Mark::Failed(how)) => *lock(&self.failed) = Some(how),
            Some(Mark::Clear(wait)) => self.tell(Event::Clear(wait)),
            Some(Mark::Shown(shown)) => self.tell(Event::Shown(shown)),
            Some(Mark::Value(shown)) => *lock(&self.value) = Some(shown),
            Some(Mark::Named(home, run)) => self.record.named(&home, &run),
            Some(Mark::Progress(name, line, over)) => self.tell(Event::Progress(name, line, over)),
        }
    }

    /// Lines of standard error: they are held back for a moment, for the last ones before an error are its message.
    fn complained(&self, lines: &Receiver<String>) {
        loop {
            let line = match lines.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    let held = std::mem::take(&mut *lock(&self.held));
                    *lock(&self.given) = held.clone();
                    self.give(held);
                    let Ok(line) = lines.recv() else { return };
                    line
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // What was printed without an end of line stands before a mark.
            let (text, line) = line.split_at(line.find(START).unwrap_or(0));
            if !text.is_empty() {
                lock(&self.held).push(text.to_string());
            }
            match Mark::parse(line) {
                Some(Mark::Done) => self.end(1),
                Some(Mark::Progress(name, line, over)) => {
                    self.record.goes_on();
                    self.tell(Event::Progress(name, line, over));
                }
                _ => lock(&self.held).push(line.to_string()),
            }
        }
    }
}
