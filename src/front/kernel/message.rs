//! Messages of Jupyter's protocol, and how they travel: signed, as frames.

use super::id;
use super::signature::Signer;
use super::zmtp::Frames;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Version of the protocol that is spoken.
pub const VERSION: &str = "5.4";
/// Ends the addresses and starts the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";

/// A message that came in.
#[derive(Debug, Clone)]
pub struct Message {
    /// Addresses between the client's own and the message; a reply carries them back.
    pub envelope: Frames,
    /// Its header; the parent of everything that answers it.
    pub header: Value,
    /// What it says.
    pub content: Value,
}

impl Message {
    /// Its type, such as `execute_request`.
    pub fn kind(&self) -> &str {
        self.header["msg_type"].as_str().unwrap_or_default()
    }

    /// The session of the client that sent it.
    pub fn session(&self) -> &str {
        self.header["session"].as_str().unwrap_or_default()
    }

    /// A text of the content; empty if it is not there.
    pub fn text(&self, key: &str) -> &str {
        self.content[key].as_str().unwrap_or_default()
    }

    /// A flag of the content, with what holds if it is not there.
    pub fn flag(&self, key: &str, otherwise: bool) -> bool {
        self.content[key].as_bool().unwrap_or(otherwise)
    }

    /// Clients before 5.2 count cursors in UTF-16 units instead of code points.
    pub fn counts_utf16(&self) -> bool {
        let version = self.header["version"].as_str().unwrap_or(VERSION);
        let mut parts = version.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
        let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        version < (5, 2)
    }
}

/// Turns messages into frames and back, for one kernel.
pub struct Codec {
    signer: Signer,
    session: String,
    sent: AtomicU64,
}

impl Codec {
    /// A codec that signs with a key.
    pub fn new(key: &[u8]) -> Self {
        Self {
            signer: Signer::new(key),
            session: id::fresh(),
            sent: AtomicU64::new(0),
        }
    }

    /// Identifier of the kernel in all headers.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Frames of a message. `addresses` come first: an envelope, or a topic.
    pub fn encode(
        &self,
        addresses: &[Vec<u8>],
        kind: &str,
        parent: &Value,
        metadata: &Value,
        content: &Value,
    ) -> Frames {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let header = json!({
            "msg_id": format!("{}_{number}", self.session),
            "session": self.session,
            "username": "kernel",
            "date": id::now(),
            "msg_type": kind,
            "version": VERSION,
        });
        let parts = [&header, parent, metadata, content].map(|part| part.to_string().into_bytes());
        let mut frames = addresses.to_vec();
        frames.push(DELIMITER.to_vec());
        frames.push(self.signer.sign(parts.iter().map(Vec::as_slice)));
        frames.extend(parts);
        frames
    }

    /// The message in frames; an error if they are not one, or not signed with our key, or were seen before.
    pub fn decode(&self, mut frames: Frames) -> Result<Message> {
        let delimiter = frames.iter().position(|f| f == DELIMITER);
        let mut parts = frames.split_off(delimiter.context("no <IDS|MSG> among the frames")?);
        ensure!(
            parts.len() >= 6,
            "{} frames where there must be at least 6",
            parts.len()
        );
        // Buffers follow; no message that a kernel without comms knows has any.
        parts.truncate(6);
        let signed = parts.iter().skip(2).map(Vec::as_slice);
        self.signer.check(&parts[1], signed)?;
        let json = |i: usize, what: &str| -> Result<Value> {
            let value: Value = serde_json::from_slice(&parts[i])
                .with_context(|| format!("its {what} is not JSON"))?;
            ensure!(value.is_object(), "its {what} is not an object");
            Ok(value)
        };
        let message = Message {
            envelope: frames,
            header: json(2, "header")?,
            content: json(5, "content")?,
        };
        ensure!(!message.kind().is_empty(), "its header has no msg_type");
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(codec: &Codec) -> Frames {
        let addresses = [b"client".to_vec(), vec![]];
        let (parent, content) = (json!({}), json!({"code": "ψ + 1", "silent": true}));
        codec.encode(&addresses, "execute_request", &parent, &json!({}), &content)
    }

    #[test]
    fn a_message_comes_back() {
        let codec = Codec::new(b"key");
        let message = codec.decode(sent(&codec)).unwrap();
        assert_eq!(message.kind(), "execute_request");
        assert_eq!(message.session(), codec.session());
        assert_eq!(message.envelope, [b"client".to_vec(), vec![]]);
        assert_eq!(message.text("code"), "ψ + 1");
        assert!(message.flag("silent", false));
        assert!(message.flag("store_history", true));
    }

    #[test]
    fn what_is_not_a_message_of_ours_is_refused() {
        let codec = Codec::new(b"key");
        let other = Codec::new(b"other");
        assert!(codec.decode(sent(&other)).is_err());
        for i in 0..8 {
            let mut frames = sent(&codec);
            frames.remove(i);
            // The first two are addresses.
            assert_eq!(codec.decode(frames).is_ok(), i < 2, "without frame {i}");
        }
        for i in 4..8 {
            let mut frames = sent(&codec);
            frames[i].push(b' ');
            assert!(codec.decode(frames).is_err(), "frame {i} was changed");
        }
        assert!(codec.decode(vec![]).is_err());
        let open = Codec::new(b"");
        let mut frames = sent(&open);
        frames[4] = b"[]".to_vec();
        assert!(open.decode(frames).is_err());
    }

    #[test]
    fn a_message_is_taken_once() {
        let codec = Codec::new(b"key");
        let frames = sent(&codec);
        assert!(codec.decode(frames.clone()).is_ok());
        assert!(codec.decode(frames).is_err());
    }

    #[test]
    fn old_clients_count_differently() {
        let mut message = Codec::new(b"").decode(sent(&Codec::new(b""))).unwrap();
        for (version, utf16) in [
            ("5.1", true),
            ("5.2", false),
            ("5.4", false),
            ("5.10", false),
            ("4.1", true),
        ] {
            message.header["version"] = json!(version);
            assert_eq!(message.counts_utf16(), utf16, "{version}");
        }
    }
}
