//! What all parts of a running kernel share, and a request as it goes from a channel to who answers it.

use super::handle::Handle;
use super::iopub::Iopub;
use super::language::Info;
use super::message::{Codec, Message};
use super::requests::usage::Meter;
use super::stdin::Stdin;
use super::zmtp::Peer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// What all parts of a running kernel share.
pub struct Core {
    /// Turns messages into frames.
    pub codec: Arc<Codec>,
    /// What the language is.
    pub info: Info,
    /// What all clients see.
    pub iopub: Iopub,
    /// How cells ask.
    pub stdin: Stdin,
    /// What the machine is busy with.
    pub usage: Meter,
    /// How the kernel is stopped.
    pub handle: Handle,
}

/// A request: what it says, who sent it, and when.
#[derive(Clone)]
pub struct Request {
    /// Who gets the reply.
    pub peer: Arc<Peer>,
    /// What it says.
    pub message: Message,
    /// When it arrived, which may be long before it is answered.
    pub arrived: Instant,
}

/// What a thread that answers requests gets to do.
pub enum Work {
    /// Answer a request.
    Request(Request),
    /// Stop answering.
    Stop,
}

impl Core {
    /// Answer a request.
    pub fn reply(&self, request: &Request, kind: &str, content: &Value) {
        let Message {
            envelope, header, ..
        } = &request.message;
        let frames = self
            .codec
            .encode(envelope, kind, header, &json!({}), content);
        request.peer.send(Arc::new(frames));
    }

    /// Do something for a request, with the status messages around it that tell its client when all output has been seen.
    pub fn busy_with(&self, request: &Request, work: impl FnOnce()) {
        let parent = &request.message.header;
        self.iopub.status(parent, "busy");
        work();
        self.iopub.status(parent, "idle");
    }
}
