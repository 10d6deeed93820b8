//! One client of a socket: a thread that reads from it, and one that writes to it once there is something to write.

use super::allowance::Allowance;
use super::endpoint::Stream;
use super::frame::{self, Frames, Item};
use super::handshake::Kind;
use super::hurried::Hurried;
use super::outbox::{Outbox, PATIENCE, Parcel};
use anyhow::{Result, bail, ensure};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Enough for reading and writing, and small, since there are two such threads per client.
pub(super) const STACK: usize = 256 << 10;
/// Small frames are joined up to this many bytes; larger ones are read and written as they are. Small, since every client has
/// two such buffers, and anybody may connect.
const BUFFER: usize = 4 << 10;
/// Clients subscribe to everything, once; more than this is no use to them, and memory to us.
const MOST_TOPICS: usize = 32;
/// Subscriptions over the whole of a connection, cancelled ones too: each is answered, and the answer waits until it is read.
const MOST_SUBSCRIPTIONS: usize = 256;
/// Answers to PINGs that may wait.
const MOST_PONGS: usize = 64;
/// How long a message may take to arrive once it has begun.
const ARRIVAL: Duration = Duration::from_secs(60);
/// The context of a PING has at most 16 bytes (ZMTP 3.1).
const CONTEXT: usize = 16;

/// One client of a socket.
pub struct Peer {
    identity: Vec<u8>,
    outbox: Outbox,
    /// Whether there is a thread that writes.
    writes: AtomicBool,
    subscriptions: Mutex<Vec<Vec<u8>>>,
    /// How many there were, with those that were cancelled.
    subscribed: AtomicUsize,
    /// Whether it has sent something with our key.
    trusted: AtomicBool,
    /// When it last sent anything.
    heard: Mutex<Instant>,
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
    pub(super) fn new(identity: Vec<u8>, stream: Stream, kind: Kind) -> Self {
        Self {
            identity,
            outbox: Outbox::new(kind.outbox()),
            writes: AtomicBool::new(false),
            subscriptions: Mutex::default(),
            subscribed: AtomicUsize::new(0),
            trusted: AtomicBool::new(false),
            heard: Mutex::new(Instant::now()),
            stream,
        }
    }

    /// What the client calls itself; may be empty, and two may use the same name.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// Send a message. Returns false if the client is gone, or has not read for long.
    pub fn send(self: &Arc<Self>, frames: Arc<Frames>) -> bool {
        self.send_within(frames, PATIENCE)
    }

    /// Send a message for which there is room after so long at most.
    pub(super) fn send_within(self: &Arc<Self>, frames: Arc<Frames>, patience: Duration) -> bool {
        self.push(Parcel::Message(frames), patience)
    }

    /// Note that it has our key.
    pub fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }

    /// Whether it has our key, as far as is known.
    pub(super) fn is_trusted(&self) -> bool {
        self.trusted.load(Ordering::Relaxed)
    }

    /// How long it has sent nothing.
    pub(super) fn silence(&self) -> Duration {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    fn push(self: &Arc<Self>, parcel: Parcel, patience: Duration) -> bool {
        if !self.writes.swap(true, Ordering::SeqCst) {
            let writer = self.clone();
            let started = thread::Builder::new()
                .name("zmtp-write".into())
                .stack_size(STACK)
                .spawn(move || writer.write_all());
            if started.is_err() {
                // Out of threads: the client may come again.
                self.close();
            }
        }
        self.outbox.push(parcel, patience)
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
    fn write_all(&self) {
        let mut stream = BufWriter::with_capacity(BUFFER, &self.stream);
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
        self: &Arc<Self>,
        on: impl Fn(Arrival),
        publisher: bool,
        allowance: &Allowance,
    ) -> Result<()> {
        let mut stream = BufReader::with_capacity(BUFFER, Hurried::new(&self.stream));
        let ended = loop {
            stream.get_mut().within(None);
            let begun = stream.fill_buf().map(<[u8]>::len);
            stream.get_mut().within(Some(ARRIVAL));
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            let item = begun
                .map_err(Into::into)
                .and_then(|_| frame::read(&mut stream, allowance));
            if let Err(e) = item.and_then(|item| self.take(item, &on, publisher)) {
                break Err(e);
            }
        };
        self.close();
        match ended {
            // That a client leaves is not an error.
            Err(e) if e.is::<std::io::Error>() => Ok(()),
            ended => ended,
        }
    }

    fn take(self: &Arc<Self>, item: Item, on: &impl Fn(Arrival), publisher: bool) -> Result<()> {
        match item {
            Item::Message(frames) if publisher => {
                match frames.first().and_then(|f| f.split_first()) {
                    Some((1, topic)) => self.subscribe(topic, on)?,
                    Some((0, topic)) => self.cancel(topic),
                    _ => {}
                }
            }
            Item::Message(frames) => on(Arrival::Message(frames)),
            Item::Command(name, data) => match name.as_str() {
                // Two bytes say how long the client waits; the rest comes back.
                "PING" => {
                    ensure!(
                        self.outbox.pongs() < MOST_PONGS,
                        "it does not read the answers to its PINGs"
                    );
                    let context = data.iter().skip(2).take(CONTEXT).copied();
                    self.push(Parcel::Pong(context.collect()), PATIENCE);
                }
                "SUBSCRIBE" if publisher => self.subscribe(&data, on)?,
                "CANCEL" if publisher => self.cancel(&data),
                "ERROR" => refused(&data)?,
                _ => {}
            },
        }
        Ok(())
    }

    fn subscribe(&self, topic: &[u8], on: &impl Fn(Arrival)) -> Result<()> {
        let mut subscriptions = self
            .subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ensure!(
            subscriptions.len() < MOST_TOPICS,
            "it subscribed more than {MOST_TOPICS} times"
        );
        ensure!(
            self.subscribed.fetch_add(1, Ordering::Relaxed) < MOST_SUBSCRIPTIONS,
            "it subscribed more than {MOST_SUBSCRIPTIONS} times in all"
        );
        subscriptions.push(topic.to_vec());
        // Under the lock: what answers this is sent before anything that the client has subscribed to.
        on(Arrival::Subscribed(topic.to_vec()));
        Ok(())
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
