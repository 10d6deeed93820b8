//! ZeroMQ's wire protocol (ZMTP 3.0, NULL mechanism), as much of it as a kernel needs: binding sockets of two kinds.
//!
//! [`Kind::Router`] talks to many clients and answers the one that asked; [`Kind::Echo`] is the same for the heartbeat's REP, because
//! both send a message's envelope back unchanged. [`Kind::Publisher`] is an XPUB: it sends to all who subscribed and tells when one
//! does. Threads of the standard library do the work: one per socket accepts, one per client reads, and one writes, from the first
//! time on that there is something to write.
//!
//! Whoever reaches a port may connect, and is known only by the signature of a message. So what anybody can make the kernel hold
//! is bounded: clients, the time to greet, what is received ([`allowance`]), subscriptions, and what waits to be sent back.

mod allowance;
#[cfg(test)]
pub(crate) mod client;
mod endpoint;
mod frame;
mod handshake;
mod hurried;
mod outbox;
mod peer;
mod socket;
#[cfg(test)]
mod tests;

pub use endpoint::Endpoint;
pub use frame::Frames;
#[cfg(fuzzing)]
pub use frame::{Item, read};
pub use handshake::Kind;
pub use peer::Peer;
pub use socket::{Event, Socket};

/// What may be received over a socket that talks to many clients.
#[cfg(fuzzing)]
pub fn allowance() -> allowance::Allowance {
    Kind::Router.allowance()
}
