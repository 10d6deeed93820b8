//! A small ZeroMQ client, to test with.

use super::allowance::Allowance;
use super::frame::{self, Frames, Item};
use super::{Endpoint, endpoint::Stream};
use std::io::{Read, Write};
use std::time::Duration;

/// A client of one socket.
pub struct Client(Stream);

impl Client {
    /// Connect as a socket of that type (`DEALER`, `SUB`, …) with an identity.
    pub fn connect(endpoint: &Endpoint, kind: &str, identity: &[u8]) -> Self {
        let stream = endpoint.connect().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
        greeting[12..16].copy_from_slice(b"NULL");
        (&stream).write_all(&greeting).unwrap();
        let mut ready = Vec::new();
        for (key, value) in [("Socket-Type", kind.as_bytes()), ("Identity", identity)] {
            ready.push(key.len() as u8);
            ready.extend(key.as_bytes());
            ready.extend((value.len() as u32).to_be_bytes());
            ready.extend(value);
        }
        frame::write_command(&mut &stream, "READY", &ready).unwrap();
        (&stream).read_exact(&mut greeting).unwrap();
        let Item::Command(name, _) =
            frame::read(&mut &stream, &Allowance::new(1 << 30, 1 << 30)).unwrap()
        else {
            panic!("not ready");
        };
        assert_eq!(name, "READY");
        Self(stream)
    }

    /// Send a message.
    pub fn send(&mut self, frames: &[Vec<u8>]) {
        frame::write(&mut &self.0, frames).unwrap();
    }

    /// Send a command. Returns false if the connection has ended.
    pub fn command(&mut self, name: &str, data: &[u8]) -> bool {
        frame::write_command(&mut &self.0, name, data).is_ok()
    }

    /// The next message or command.
    pub fn next(&mut self) -> anyhow::Result<Item> {
        frame::read(&mut &self.0, &Allowance::new(1 << 30, 1 << 30))
    }

    /// The next message.
    pub fn receive(&mut self) -> Frames {
        match self.next().unwrap() {
            Item::Message(frames) => frames,
            other => panic!("unexpected: {other:?}"),
        }
    }
}
