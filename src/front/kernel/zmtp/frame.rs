//! Frames: what ZMTP sends, one after another, once a connection stands.

use super::allowance::{Allowance, Claim};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};

/// The frames of one message.
pub type Frames = Vec<Vec<u8>>;

/// More frames of the same message follow.
const MORE: u8 = 1;
/// The size takes eight bytes instead of one.
const LONG: u8 = 2;
/// A command of the protocol itself.
const COMMAND: u8 = 4;
/// What a frame costs besides its bytes, so that empty ones do not come for free.
const OVERHEAD: u64 = 32;
/// How many bytes are asked for at a time.
const PIECE: u64 = 64 << 10;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A whole message.
    Message(Frames),
    /// A command: its name and what follows.
    Command(String, Vec<u8>),
}

/// Read the next message or command, as far as the allowance goes.
pub fn read(stream: &mut impl Read, allowance: &Allowance) -> Result<Item> {
    let mut frames = Frames::new();
    let mut claim = allowance.claim();
    loop {
        let mut flags = [0];
        stream.read_exact(&mut flags)?;
        let [flags] = flags;
        ensure!(
            flags & !(MORE | LONG | COMMAND) == 0,
            "not a ZMTP frame: flags {flags:#x}"
        );
        let size = if flags & LONG == 0 {
            let mut size = [0];
            stream.read_exact(&mut size)?;
            u64::from(size[0])
        } else {
            let mut size = [0; 8];
            stream.read_exact(&mut size)?;
            u64::from_be_bytes(size)
        };
        claim.announce(size.saturating_add(OVERHEAD))?;
        claim.take(OVERHEAD)?;
        let body = read_body(stream, size, &mut claim)?;
        if flags & COMMAND != 0 {
            return split_command(body);
        }
        frames.push(body);
        if flags & MORE == 0 {
            return Ok(Item::Message(frames));
        }
    }
}

/// Memory is taken as bytes arrive: a size that is only claimed costs nothing.
fn read_body(stream: &mut impl Read, size: u64, claim: &mut Claim) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut left = size;
    while left > 0 {
        let piece = left.min(PIECE);
        claim.take(piece)?;
        let got = stream.by_ref().take(piece).read_to_end(&mut body)? as u64;
        if got < piece {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        left -= piece;
    }
    Ok(body)
}

fn split_command(body: Vec<u8>) -> Result<Item> {
    let Some((&length, rest)) = body.split_first() else {
        bail!("an empty command");
    };
    let (name, data) = rest
        .split_at_checked(usize::from(length))
        .context("a command shorter than its name")?;
    let name = String::from_utf8(name.to_vec()).context("a command's name is not text")?;
    Ok(Item::Command(name, data.to_vec()))
}

/// Write a message.
pub fn write(stream: &mut impl Write, frames: &[Vec<u8>]) -> std::io::Result<()> {
    for (i, frame) in frames.iter().enumerate() {
        let more = if i + 1 < frames.len() { MORE } else { 0 };
        write_frame(stream, more, frame)?;
    }
    Ok(())
}

/// Write a command.
pub fn write_command(stream: &mut impl Write, name: &str, data: &[u8]) -> std::io::Result<()> {
    let mut body = vec![u8::try_from(name.len()).unwrap_or(u8::MAX)];
    body.extend(name.as_bytes());
    body.extend(data);
    write_frame(stream, COMMAND, &body)
}

fn write_frame(stream: &mut impl Write, flags: u8, body: &[u8]) -> std::io::Result<()> {
    match u8::try_from(body.len()) {
        Ok(size) => stream.write_all(&[flags, size])?,
        Err(_) => {
            stream.write_all(&[flags | LONG])?;
            stream.write_all(&(body.len() as u64).to_be_bytes())?;
        }
    }
    stream.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &mut impl Read) -> Result<Item> {
        super::read(stream, &Allowance::new(1 << 30, 1 << 30))
    }

    #[test]
    fn messages_with_short_empty_and_long_frames_come_back() {
        let frames = vec![
            b"a".to_vec(),
            vec![],
            vec![7; 255],
            vec![8; 256],
            vec![9; 70_000],
        ];
        let mut bytes = Vec::new();
        write(&mut bytes, &frames).unwrap();
        assert_eq!(bytes[..3], [MORE, 1, b'a']);
        assert_eq!(read(&mut bytes.as_slice()).unwrap(), Item::Message(frames));
    }

    #[test]
    fn commands_come_back() {
        let mut bytes = Vec::new();
        write_command(&mut bytes, "PING", b"\0\x01x").unwrap();
        assert_eq!(
            read(&mut bytes.as_slice()).unwrap(),
            Item::Command("PING".into(), b"\0\x01x".to_vec())
        );
    }

    #[test]
    fn broken_input_is_an_error_and_takes_no_memory() {
        let mut claimed = vec![LONG];
        claimed.extend((1u64 << 62).to_be_bytes());
        assert!(read(&mut claimed.as_slice()).is_err());
        let mut cut = vec![LONG];
        cut.extend((1u64 << 29).to_be_bytes());
        cut.extend(b"only this");
        assert!(read(&mut cut.as_slice()).is_err());
        assert!(read(&mut [0x80u8, 0].as_slice()).is_err());
        assert!(read(&mut [COMMAND, 2, 9, b'x'].as_slice()).is_err());
        assert!(read(&mut [COMMAND, 0].as_slice()).is_err());
    }
}
