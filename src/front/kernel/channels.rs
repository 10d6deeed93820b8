//! Binds the five channels and routes what arrives.

use super::connection::{CHANNELS, Connection};
use super::iopub::Iopub;
use super::message::Codec;
use super::note::note;
use super::state::{Request, Work};
use super::stdin::{Answers, Stdin};
use super::zmtp::{Event, Kind, Socket};
use anyhow::Result;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// The channels of a running kernel.
pub struct Channels {
    /// Requests that are answered in order.
    pub shell: Socket,
    /// Requests that are answered at once.
    pub control: Socket,
    /// Echoes, so that clients know we live.
    pub heartbeat: Socket,
    /// What all clients see.
    pub iopub: Iopub,
    /// How cells ask.
    pub stdin: Stdin,
}

impl Channels {
    /// Bind them where the connection says; requests of shell and control go to the two queues.
    pub fn bind(
        connection: &mut Connection,
        codec: &Arc<Codec>,
        shell: Sender<Work>,
        control: Sender<Work>,
    ) -> Result<Self> {
        let [shell_at, iopub_at, stdin_at, control_at, heartbeat_at] = CHANNELS;
        let at = connection.clone();
        let welcoming = codec.clone();
        let welcome = move |event| welcome(event, &welcoming);
        let iopub = Socket::bind(&at.endpoint(iopub_at)?, Kind::Publisher, welcome)?;
        let answers = Arc::new(Answers::default());
        let (receiving, decoding) = (answers.clone(), codec.clone());
        let stdin = Socket::bind(&at.endpoint(stdin_at)?, Kind::Router, move |event| {
            receiving.receive(event, &decoding);
        })?;
        let heartbeat = Socket::bind(&at.endpoint(heartbeat_at)?, Kind::Echo, echo)?;
        let on = queue(codec, control.clone(), control.clone(), control_at);
        let on_shell = queue(codec, shell, control, shell_at);
        let control = Socket::bind(&at.endpoint(control_at)?, Kind::Router, on)?;
        let shell = Socket::bind(&at.endpoint(shell_at)?, Kind::Router, on_shell)?;
        connection.announce(&[
            (shell_at, shell.endpoint()),
            (iopub_at, iopub.endpoint()),
            (stdin_at, stdin.endpoint()),
            (control_at, control.endpoint()),
            (heartbeat_at, heartbeat.endpoint()),
        ])?;
        Ok(Self {
            shell,
            control,
            heartbeat,
            iopub: Iopub::new(iopub, codec.clone()),
            stdin: Stdin::new(stdin, codec.clone(), answers),
        })
    }
}

/// Tell a client that it subscribed, so that it knows from when on it misses nothing.
fn welcome(event: Event, codec: &Codec) {
    if let Event::Subscribed(peer, topic) = event {
        let content = json!({"subscription": String::from_utf8_lossy(&topic)});
        let frames = codec.encode(&[topic], "iopub_welcome", &json!({}), &json!({}), &content);
        peer.send(Arc::new(frames));
    }
}

fn echo(event: Event) {
    if let Event::Message(peer, frames) = event {
        peer.send(Arc::new(frames));
    }
}

/// Put requests into a queue. What is not a request of a client with our key is ignored: an answer would help an attacker.
///
/// Interrupts are urgent whatever their channel: VS Code, up to November 2025, sends them on shell, where they would wait for the
/// cell that they should stop.
fn queue(
    codec: &Arc<Codec>,
    work: Sender<Work>,
    urgent: Sender<Work>,
    channel: &str,
) -> impl Fn(Event) + Send + Sync + use<> {
    let (codec, channel) = (codec.clone(), channel.to_string());
    move |event| {
        let Event::Message(peer, frames) = event else {
            return;
        };
        let arrived = Instant::now();
        match codec.decode(frames) {
            Ok(message) => {
                peer.trust();
                let to = match message.kind() {
                    "interrupt_request" => &urgent,
                    _ => &work,
                };
                drop(to.send(Work::Request(Request {
                    peer,
                    message,
                    arrived,
                })));
            }
            Err(e) => note(format_args!("a message on {channel} is ignored: {e:#}")),
        }
    }
}
