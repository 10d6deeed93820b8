//! What waits to be written to one client.
//!
//! A client that reads slowly slows whoever sends to it; one that stopped reading (suspended, or hung) must not, so that the
//! other clients and the running cell go on: once it has not caught up for [`PATIENCE`], it loses messages until it does.

use super::frame::Frames;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long senders wait, once, for a client that does not read.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// One thing to write.
#[derive(Debug, Clone)]
pub enum Parcel {
    /// A message; subscribers share it.
    Message(Arc<Frames>),
    /// The answer to a PING, with its context.
    Pong(Vec<u8>),
}

impl Parcel {
    fn size(&self) -> usize {
        match self {
            Self::Message(frames) => frames.iter().map(|f| f.len() + 16).sum(),
            Self::Pong(context) => context.len() + 16,
        }
    }
}

#[derive(Default)]
struct State {
    /// Bytes above which senders wait.
    full: usize,
    queue: VecDeque<Parcel>,
    bytes: usize,
    writing: bool,
    stalled: bool,
    closed: bool,
}

/// A queue of parcels with a limit.
pub struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

impl Outbox {
    /// An empty one; senders wait while more than `full` bytes do.
    pub fn new(full: usize) -> Self {
        let state = State {
            full,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Answers to PINGs that wait.
    pub fn pongs(&self) -> usize {
        let is_pong = |p: &&Parcel| matches!(p, Parcel::Pong(_));
        self.lock().queue.iter().filter(is_pong).count()
    }

    /// Add a parcel, for which there is room after so long at most. Returns whether it was taken.
    pub fn push(&self, parcel: Parcel, patience: Duration) -> bool {
        let mut state = self.lock();
        if state.bytes > state.full && !state.stalled && !state.closed {
            let full = |s: &mut State| s.bytes > s.full && !s.closed;
            state = match self.changed.wait_timeout_while(state, patience, full) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            state.stalled = state.bytes > state.full;
        }
        if state.closed || state.bytes > state.full {
            return false;
        }
        state.bytes += parcel.size();
        state.queue.push_back(parcel);
        self.changed.notify_all();
        true
    }

    /// Wait for the next parcel; nothing once the outbox is closed. What was taken before counts as written.
    pub fn pop(&self) -> Option<Parcel> {
        let mut state = self.lock();
        state.writing = false;
        self.changed.notify_all();
        while state.queue.is_empty() && !state.closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        Self::take(&mut state)
    }

    /// The next parcel, if one is there.
    pub fn pop_now(&self) -> Option<Parcel> {
        Self::take(&mut self.lock())
    }

    fn take(state: &mut State) -> Option<Parcel> {
        if state.closed {
            return None;
        }
        let parcel = state.queue.pop_front()?;
        state.bytes -= parcel.size();
        state.writing = true;
        state.stalled &= state.bytes > state.full / 2;
        Some(parcel)
    }

    /// Drop what waits and let everyone go.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.queue.clear();
        state.bytes = 0;
        self.changed.notify_all();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Wait until everything is written, or the time is up.
    pub fn drain(&self, limit: Duration) {
        let waiting = |s: &mut State| !s.closed && (s.writing || !s.queue.is_empty());
        drop(self.changed.wait_timeout_while(self.lock(), limit, waiting));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const FULL: usize = 1 << 20;

    fn parcel(size: usize) -> Parcel {
        Parcel::Message(Arc::new(vec![vec![0; size]]))
    }

    #[test]
    fn a_client_that_does_not_read_delays_senders_once() {
        let outbox = Outbox::new(FULL);
        assert!(outbox.push(parcel(FULL), PATIENCE));
        let start = Instant::now();
        assert!(!outbox.push(parcel(1), PATIENCE));
        assert!(start.elapsed() >= PATIENCE);
        let start = Instant::now();
        assert!(!outbox.push(parcel(1), PATIENCE));
        assert!(start.elapsed() < PATIENCE / 2);
        assert!(outbox.pop().is_some());
        assert!(outbox.push(parcel(1), PATIENCE), "it caught up");
    }

    #[test]
    fn a_sender_goes_on_when_the_client_reads_or_leaves() {
        let outbox = Arc::new(Outbox::new(FULL));
        outbox.push(parcel(FULL), PATIENCE);
        let reader = outbox.clone();
        let thread = std::thread::spawn(move || reader.pop().is_some());
        assert!(outbox.push(parcel(1), PATIENCE));
        assert!(thread.join().unwrap());
        outbox.close();
        assert!(!outbox.push(parcel(1), PATIENCE));
        assert!(outbox.pop().is_none());
    }
}
