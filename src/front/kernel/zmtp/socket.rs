//! A bound socket: accepts clients, hands on what they send, and sends to them.

use super::super::note::note;
use super::endpoint::{Endpoint, Listener, Stream};
use super::frame::Frames;
use super::handshake;
use super::peer::{Arrival, Peer};
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take to greet.
const GREETING: Duration = Duration::from_secs(10);
/// Enough for reading and writing, and small, since there are two such threads per client.
const STACK: usize = 256 << 10;

/// What kind of socket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Clients ask, each gets its own answers.
    Router,
    /// Clients subscribe to topics (XPUB).
    Publisher,
}

/// What happens on a socket.
pub enum Event {
    /// A client sent a message.
    Message(Arc<Peer>, Frames),
    /// A client subscribed to a topic.
    Subscribed(Arc<Peer>, Vec<u8>),
}

type Handler = Box<dyn Fn(Event) + Send + Sync>;

struct Shared {
    kind: Kind,
    endpoint: Endpoint,
    handler: Handler,
    peers: Mutex<Vec<Arc<Peer>>>,
    closing: AtomicBool,
}

/// A bound socket. Dropping it closes all connections.
pub struct Socket(Arc<Shared>);

impl Socket {
    /// Bind a socket; `on` is called by the thread that reads from the client, in the order in which the client sent.
    pub fn bind(
        endpoint: &Endpoint,
        kind: Kind,
        on: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self> {
        let (listener, endpoint) = endpoint.listen()?;
        let shared = Arc::new(Shared {
            kind,
            endpoint,
            handler: Box::new(on),
            peers: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        thread::Builder::new()
            .name("zmtp-accept".into())
            .stack_size(STACK)
            .spawn(move || accepting.accept(&listener))
            .with_context(|| format!("cannot start a thread to listen on {}", shared.endpoint))?;
        Ok(Self(shared))
    }

    /// Where it listens, with the port that was taken.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Send to every client that subscribed to a prefix of the first frame.
    pub fn publish(&self, frames: Arc<Frames>) {
        let topic = frames.first().map(Vec::as_slice).unwrap_or_default();
        // Not under the lock: a slow client must not keep others from connecting.
        let wanting: Vec<_> = self
            .0
            .lock()
            .iter()
            .filter(|p| p.wants(topic))
            .cloned()
            .collect();
        for peer in wanting {
            peer.send(frames.clone());
        }
    }

    /// The clients of that identity, the newest first.
    pub fn peers(&self, identity: &[u8]) -> Vec<Arc<Peer>> {
        let peers = self.0.lock();
        let same = peers.iter().rev().filter(|p| p.identity() == identity);
        same.cloned().collect()
    }

    /// The only client, if there is exactly one.
    pub fn only_peer(&self) -> Option<Arc<Peer>> {
        match self.0.lock().as_slice() {
            [peer] => Some(peer.clone()),
            _ => None,
        }
    }

    /// Wait until everything that was sent is written, or the time is up.
    pub fn drain(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let peers = self.0.lock().clone();
        for peer in peers {
            peer.drain(end.saturating_duration_since(Instant::now()));
        }
    }

    /// Close all connections and stop listening.
    pub fn close(&self) {
        if self.0.closing.swap(true, Ordering::SeqCst) {
            return;
        }
        for peer in self.0.lock().drain(..) {
            peer.close();
        }
        // The accepting thread sees that we are closing only when someone connects.
        drop(self.0.endpoint.connect());
        self.0.endpoint.clean();
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn accept(self: Arc<Self>, listener: &Listener) {
        loop {
            let accepted = listener.accept();
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            let started = accepted.and_then(|stream| {
                let shared = self.clone();
                thread::Builder::new()
                    .name("zmtp-read".into())
                    .stack_size(STACK)
                    .spawn(move || {
                        if let Err(e) = shared.clone().serve(stream) {
                            note(format_args!(
                                "a client of {} was cut off: {e:#}",
                                shared.endpoint
                            ));
                        }
                    })
            });
            if let Err(e) = started {
                note(format_args!(
                    "cannot take a client of {}: {e}",
                    self.endpoint
                ));
                // Out of threads or files: others may be given back.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }

    fn serve(self: Arc<Self>, mut stream: Stream) -> Result<()> {
        stream.set_read_timeout(Some(GREETING))?;
        let identity = match handshake::greet(&mut stream, self.kind) {
            // Someone only looked whether the port is open, or left.
            Err(e) if e.is::<std::io::Error>() => return Ok(()),
            greeted => greeted?,
        };
        stream.set_read_timeout(None)?;
        let (reading, writing) = (stream.try_clone()?, stream.try_clone()?);
        let peer = Arc::new(Peer::new(identity, stream));
        let writer = peer.clone();
        thread::Builder::new()
            .name("zmtp-write".into())
            .stack_size(STACK)
            .spawn(move || writer.write_all(writing))?;
        self.lock().push(peer.clone());
        if self.closing.load(Ordering::SeqCst) {
            peer.close();
        }
        let on = |arrival| {
            (self.handler)(match arrival {
                Arrival::Message(frames) => Event::Message(peer.clone(), frames),
                Arrival::Subscribed(topic) => Event::Subscribed(peer.clone(), topic),
            });
        };
        let ended = peer.read_all(reading, on, self.kind == Kind::Publisher);
        self.lock().retain(|p| !Arc::ptr_eq(p, &peer));
        ended
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
