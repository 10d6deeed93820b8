//! A bound socket: accepts clients, hands on what they send, and sends to them.

use super::super::note::note;
use super::allowance::Allowance;
use super::endpoint::{Endpoint, Listener, Stream};
use super::frame::Frames;
use super::handshake::{self, Kind};
use super::hurried::Hurried;
use super::outbox::PATIENCE;
use super::peer::{Arrival, Peer, STACK};
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take to greet, all in all.
const GREETING: Duration = Duration::from_secs(5);
/// How many clients a socket serves. Every front end that shows a notebook is one; five sockets stay below 256 open files.
const MOST_CLIENTS: usize = 32;
/// How long a front end may send no heartbeat; they send one every few seconds.
const SILENCE: Duration = Duration::from_secs(60);

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
    allowance: Allowance,
    /// Clients that are connected, also those that have not greeted yet.
    connected: AtomicUsize,
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
            allowance: kind.allowance(),
            connected: AtomicUsize::new(0),
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
        // However many do not read, they are waited for together.
        let until = Instant::now() + PATIENCE;
        for peer in wanting {
            peer.send_within(
                frames.clone(),
                until.saturating_duration_since(Instant::now()),
            );
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
        // Told once, not for each client: whoever cannot connect tries again, many times.
        let mut told = false;
        loop {
            let accepted = listener.accept();
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            let full = self.connected.load(Ordering::SeqCst) >= MOST_CLIENTS;
            if accepted.is_ok() && full && !self.makes_room() {
                if !std::mem::replace(&mut told, true) {
                    note(format_args!(
                        "{} has {MOST_CLIENTS} clients; more are turned away until some leave",
                        self.endpoint
                    ));
                }
                continue;
            }
            match accepted.and_then(|stream| self.start(stream)) {
                Ok(()) => told = false,
                Err(e) => {
                    if !std::mem::replace(&mut told, true) {
                        note(format_args!(
                            "cannot take a client of {}: {e}",
                            self.endpoint
                        ));
                    }
                    // Out of threads or files: others may be given back.
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    /// Close the oldest client that has no claim to its place: one that has sent nothing with our key, or no heartbeat for long. Who
    /// subscribes sends nothing else, so that all of them look alike.
    fn makes_room(&self) -> bool {
        let peers = self.lock();
        let idle = peers.iter().find(|peer| match self.kind {
            Kind::Router => !peer.is_trusted(),
            Kind::Echo => peer.silence() > SILENCE,
            Kind::Publisher => false,
        });
        if let Some(peer) = idle {
            peer.close();
        }
        idle.is_some()
    }

    /// Serve a client in a thread of its own.
    fn start(self: &Arc<Self>, stream: Stream) -> std::io::Result<()> {
        let place = Place::take(self);
        thread::Builder::new()
            .name("zmtp-read".into())
            .stack_size(STACK)
            .spawn(move || {
                let Place(shared) = &place;
                if let Err(e) = shared.serve(stream) {
                    note(format_args!(
                        "a client of {} was cut off: {e:#}",
                        shared.endpoint
                    ));
                }
            })?;
        Ok(())
    }

    fn serve(&self, stream: Stream) -> Result<()> {
        let mut hurried = Hurried::new(&stream);
        hurried.within(Some(GREETING));
        let greeted = handshake::greet(&mut hurried, self.kind);
        let identity = match greeted {
            // Someone only looked whether the port is open, or left.
            Err(e) if e.is::<std::io::Error>() => return Ok(()),
            greeted => greeted?,
        };
        let peer = Arc::new(Peer::new(identity, stream, self.kind));
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
        let ended = peer.read_all(on, self.kind == Kind::Publisher, &self.allowance);
        self.lock().retain(|p| !Arc::ptr_eq(p, &peer));
        ended
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client's place among those that a socket serves; left when it is dropped.
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>) -> Self {
        shared.connected.fetch_add(1, Ordering::SeqCst);
        Self(shared.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::SeqCst);
        // Each thread has some memory of its own; what is left behind by those that ended before this one.
        crate::memory::give_back();
    }
}
