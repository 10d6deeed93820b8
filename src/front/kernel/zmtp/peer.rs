//! One client of a socket: a thread that reads from it and one that writes to it.

use super::endpoint::Stream;
use super::frame::{self, Frames, Item};
use super::outbox::{Outbox, Parcel};
use anyhow::{Result, bail};
use std::io::{BufReader, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The writer joins small frames up to this many bytes; larger ones are written as they are.
const BUFFER: usize = 64 << 10;

/// One client of a socket.
pub struct Peer {
    identity: Vec<u8>,
    outbox: Outbox,
    subscriptions: Mutex<Vec<Vec<u8>>>,
    stream: Stream,
}

/// What a client wants.
pub enum Arrival {
    /// It sent a message.
    Message(Frames),
    /// It subscribed to a topic.
    Subscribed(Vec<u8>),
}

impl Peer {
    pub(super) fn new(identity: Vec<u8>, stream: Stream) -> Self {
        Self {
            identity,
            outbox: Outbox::default(),
            subscriptions: Mutex::default(),
            stream,
        }
    }

    /// What the client calls itself; may be empty, and two may use the same name.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// Send a message. Returns false if the client is gone, or has not read for long.
    pub fn send(&self, frames: Arc<Frames>) -> bool {
        self.outbox.push(Parcel::Message(frames))
    }

    /// Whether the connection has ended.
    pub fn is_gone(&self) -> bool {
        self.outbox.is_closed()
    }

    pub(super) fn wants(&self, topic: &[u8]) -> bool {
        let subscriptions = self.subscriptions.lock();
        subscriptions
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|s| topic.starts_with(s))
    }

    pub(super) fn drain(&self, limit: Duration) {
        self.outbox.drain(limit);
    }

    pub(super) fn close(&self) {
        self.outbox.close();
        self.stream.close();
    }

    /// Write what is sent to the client until the connection ends.
    pub(super) fn write_all(&self, stream: Stream) {
        let mut stream = BufWriter::with_capacity(BUFFER, stream);
        let mut next = self.outbox.pop();
        while let Some(parcel) = next {
            let written = match parcel {
                Parcel::Message(frames) => frame::write(&mut stream, &frames),
                Parcel::Pong(context) => frame::write_command(&mut stream, "PONG", &context),
            };
            next = match written {
                Ok(()) => self.outbox.pop_now(),
                Err(_) => break,
            };
            if next.is_none() {
                if stream.flush().is_err() {
                    break;
                }
                next = self.outbox.pop();
            }
        }
        self.close();
    }

    /// Hand on what the client sends until the connection ends. An error says what the client did wrong.
    pub(super) fn read_all(
        &self,
        stream: Stream,
        on: impl Fn(Arrival),
        publisher: bool,
    ) -> Result<()> {
        let mut stream = BufReader::with_capacity(BUFFER, stream);
        let ended = loop {
            let item = match frame::read(&mut stream) {
                Ok(item) => item,
                // That a client leaves is not an error.
                Err(e) if e.is::<std::io::Error>() => break Ok(()),
                Err(e) => break Err(e),
            };
            match item {
                Item::Message(frames) if publisher => {
                    match frames.first().and_then(|f| f.split_first()) {
                        Some((1, topic)) => self.subscribe(topic, &on),
                        Some((0, topic)) => self.cancel(topic),
                        _ => {}
                    }
                }
                Item::Message(frames) => on(Arrival::Message(frames)),
                Item::Command(name, data) => match name.as_str() {
                    // Two bytes say how long the client waits; the rest comes back.
                    "PING" => {
                        let context = data.get(2..).unwrap_or_default().to_vec();
                        self.outbox.push(Parcel::Pong(context));
                    }
                    "SUBSCRIBE" if publisher => self.subscribe(&data, &on),
                    "CANCEL" if publisher => self.cancel(&data),
                    "ERROR" => break refused(&data),
                    _ => {}
                },
            }
        };
        self.close();
        ended
    }

    fn subscribe(&self, topic: &[u8], on: &impl Fn(Arrival)) {
        let mut subscriptions = self
            .subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        subscriptions.push(topic.to_vec());
        // Under the lock: what answers this is sent before anything that the client has subscribed to.
        on(Arrival::Subscribed(topic.to_vec()));
    }

    fn cancel(&self, topic: &[u8]) {
        let mut subscriptions = self
            .subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(i) = subscriptions.iter().position(|s| s == topic) {
            subscriptions.swap_remove(i);
        }
    }
}

fn refused(reason: &[u8]) -> Result<()> {
    bail!(
        "the client refused the connection: {}",
        String::from_utf8_lossy(reason.get(1..).unwrap_or_default())
    )
}
