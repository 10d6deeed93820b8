//! The iopub channel: what all clients see.
//!
//! Printed text waits for a moment ([`DELAY`]) and for more of the same, so that a loop of prints becomes a few messages.
//! Everything goes through one lock, so that text keeps its place among displays and status messages.

use super::message::Codec;
use super::zmtp::Socket;
use serde_json::{Value, json};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long printed text waits for more.
const DELAY: Duration = Duration::from_millis(50);
/// Text that has grown to this many bytes does not wait.
const LONG: usize = 1 << 20;

/// Where printed text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Text that waits for more.
struct Text {
    parent: Arc<Value>,
    stream: Stream,
    text: String,
    due: Instant,
}

#[derive(Default)]
struct State {
    text: Option<Text>,
    closed: bool,
}

/// The iopub channel.
pub struct Iopub {
    socket: Socket,
    codec: Arc<Codec>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Iopub {
    /// The channel on a socket; [`flush_when_due`](Self::flush_when_due) must run in a thread of its own.
    pub fn new(socket: Socket, codec: Arc<Codec>) -> Self {
        Self {
            socket,
            codec,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Tell whether the kernel works on a request.
    pub fn status(&self, parent: &Value, state: &str) {
        self.send(parent, "status", json!({"execution_state": state}));
    }

    /// Send a message, after the text that waits.
    pub fn send(&self, parent: &Value, kind: &str, content: Value) {
        self.send_with(parent, kind, &json!({}), &content);
    }

    /// Send a message with metadata.
    pub fn send_with(&self, parent: &Value, kind: &str, metadata: &Value, content: &Value) {
        let mut state = self.lock();
        self.flush(&mut state);
        self.publish(parent, kind, kind, metadata, content);
    }

    /// Print text.
    pub fn print(&self, parent: &Arc<Value>, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.lock();
        match &mut state.text {
            Some(waiting) if waiting.stream == stream && Arc::ptr_eq(&waiting.parent, parent) => {
                waiting.text.push_str(text);
            }
            _ => {
                self.flush(&mut state);
                state.text = Some(Text {
                    parent: parent.clone(),
                    stream,
                    text: text.into(),
                    due: Instant::now() + DELAY,
                });
                self.changed.notify_all();
            }
        }
        if state.text.as_ref().is_some_and(|t| t.text.len() >= LONG) {
            self.flush(&mut state);
        }
    }

    /// Send the text that waits, now.
    pub fn flush_now(&self) {
        self.flush(&mut self.lock());
    }

    /// Send text when it has waited long enough, until the channel is closed.
    pub fn flush_when_due(&self) {
        let mut state = self.lock();
        while !state.closed {
            let left = match &state.text {
                Some(text) => text.due.saturating_duration_since(Instant::now()),
                None => Duration::MAX,
            };
            if left.is_zero() {
                self.flush(&mut state);
            } else if left == Duration::MAX {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            } else {
                state = match self.changed.wait_timeout(state, left) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                };
            }
        }
    }

    /// Send what waits, give clients a moment to get it, and close the channel.
    pub fn close(&self, limit: Duration) {
        let mut state = self.lock();
        self.flush(&mut state);
        state.closed = true;
        self.changed.notify_all();
        drop(state);
        self.socket.drain(limit);
        self.socket.close();
    }

    fn flush(&self, state: &mut State) {
        if let Some(Text {
            parent,
            stream,
            text,
            ..
        }) = state.text.take()
        {
            let name = stream.name();
            let content = json!({"name": name, "text": text});
            let topic = format!("stream.{name}");
            self.publish(&parent, "stream", &topic, &json!({}), &content);
        }
    }

    fn publish(&self, parent: &Value, kind: &str, topic: &str, metadata: &Value, content: &Value) {
        let topic = format!("kernel.{}.{topic}", self.codec.session()).into_bytes();
        let frames = self.codec.encode(&[topic], kind, parent, metadata, content);
        self.socket.publish(Arc::new(frames));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
