//! How a connection starts: both sides greet, then say what kind of socket they are.

use super::allowance::Allowance;
use super::frame::{self, Item};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};

/// ZMTP 3.0: with it, libzmq subscribes by messages instead of commands.
const GREETING: [u8; 64] = {
    let mut g = [0; 64];
    (g[0], g[8], g[9], g[10]) = (0xff, 1, 0x7f, 3);
    (g[12], g[13], g[14], g[15]) = (b'N', b'U', b'L', b'L');
    g
};

/// READY names the kind of a socket and its identity of at most 255 bytes.
const LARGEST: u64 = 4 << 10;

/// What kind of socket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Clients ask, each gets its own answers.
    Router,
    /// The same, of short messages that are sent back (a heartbeat's REP).
    Echo,
    /// Clients subscribe to topics (XPUB).
    Publisher,
}

impl Kind {
    /// What messages may take while they are received: code of a cell, or a word.
    pub(super) fn allowance(self) -> Allowance {
        match self {
            Self::Router => Allowance::new(16 << 20, 32 << 20),
            Self::Echo | Self::Publisher => Allowance::new(4 << 10, 0),
        }
    }

    /// Bytes that may wait for a client that reads slowly: anybody can ask for echoes and not read them.
    pub(super) fn outbox(self) -> usize {
        match self {
            Self::Router => 64 << 20,
            Self::Publisher => 16 << 20,
            Self::Echo => 64 << 10,
        }
    }
}

/// Greet a client and learn its identity, which may be empty.
pub fn greet(stream: &mut (impl Read + Write), kind: Kind) -> Result<Vec<u8>> {
    // All of it at once: libzmq sends the second half of its greeting only after it saw the start of ours.
    stream.write_all(&GREETING)?;
    let mut theirs = [0; 64];
    stream.read_exact(&mut theirs)?;
    ensure!(
        theirs[0] == 0xff && theirs[9] & 1 == 1,
        "the client does not speak ZMTP"
    );
    ensure!(
        theirs[10] >= 3,
        "the client speaks ZMTP {}, which is too old; it needs ZeroMQ 4 or later",
        theirs[10]
    );
    let mechanism = &theirs[12..32];
    ensure!(
        mechanism == &GREETING[12..32],
        "the client wants security mechanism {:?}; only NULL is supported",
        String::from_utf8_lossy(mechanism).trim_end_matches('\0')
    );
    frame::write_command(stream, "READY", &properties(kind))?;
    stream.flush()?;
    let Item::Command(name, data) = frame::read(stream, &Allowance::new(LARGEST, LARGEST))? else {
        bail!("the client sent a message before it was ready");
    };
    ensure!(name == "READY", "the client sent {name} instead of READY");
    let (mut socket, mut identity) = (Vec::new(), Vec::new());
    for (name, value) in parse(&data)? {
        match name.to_ascii_lowercase().as_str() {
            "socket-type" => socket = value,
            "identity" => identity = value,
            _ => {}
        }
    }
    let socket = String::from_utf8_lossy(&socket);
    let known: &[&str] = match kind {
        Kind::Router | Kind::Echo => &["DEALER", "REQ", "ROUTER"],
        Kind::Publisher => &["SUB", "XSUB"],
    };
    ensure!(
        known.contains(&socket.as_ref()),
        "the client is a {socket} socket; here only {} fit",
        known.join(", ")
    );
    Ok(identity)
}

fn properties(kind: Kind) -> Vec<u8> {
    let name = match kind {
        Kind::Router | Kind::Echo => "ROUTER",
        Kind::Publisher => "XPUB",
    };
    let mut data = Vec::new();
    for (key, value) in [("Socket-Type", name), ("Identity", "")] {
        data.push(key.len() as u8);
        data.extend(key.as_bytes());
        data.extend((value.len() as u32).to_be_bytes());
        data.extend(value.as_bytes());
    }
    data
}

fn parse(mut data: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    while let Some((&length, rest)) = data.split_first() {
        let cut = "the client's READY is cut short";
        let (name, rest) = rest.split_at_checked(usize::from(length)).context(cut)?;
        let (size, rest) = rest.split_first_chunk::<4>().context(cut)?;
        let size = u32::from_be_bytes(*size) as usize;
        let (value, rest) = rest.split_at_checked(size).context(cut)?;
        found.push((String::from_utf8_lossy(name).into_owned(), value.to_vec()));
        data = rest;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Both<'a>(&'a [u8], Vec<u8>);

    impl Read for Both<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Both<'_> {
        fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
            self.1.write(buffer)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn client(kind: &str, identity: &str) -> Vec<u8> {
        let mut bytes = GREETING.to_vec();
        // libzmq 4.3 says 3.1.
        bytes[11] = 1;
        let mut data = Vec::new();
        for (k, v) in [("Socket-Type", kind), ("Identity", identity)] {
            data.push(k.len() as u8);
            data.extend(k.as_bytes());
            data.extend((v.len() as u32).to_be_bytes());
            data.extend(v.as_bytes());
        }
        frame::write_command(&mut bytes, "READY", &data).unwrap();
        bytes
    }

    fn answer(bytes: &[u8], kind: Kind) -> Result<Vec<u8>> {
        greet(&mut Both(bytes, Vec::new()), kind)
    }

    #[test]
    fn a_client_says_who_it_is() {
        let identity = answer(&client("DEALER", "me"), Kind::Router).unwrap();
        assert_eq!(identity, b"me");
        assert_eq!(answer(&client("SUB", ""), Kind::Publisher).unwrap(), b"");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(answer(&client("SUB", ""), Kind::Router).is_err());
        assert!(answer(b"GET / HTTP/1.1\r\n\r\n", Kind::Router).is_err());
        let mut curve = client("DEALER", "");
        curve[12..17].copy_from_slice(b"CURVE");
        let error = answer(&curve, Kind::Router).unwrap_err();
        assert!(error.to_string().contains("CURVE"));
        let mut old = client("DEALER", "");
        old[10] = 1;
        assert!(answer(&old, Kind::Router).is_err());
        let whole = client("DEALER", "me");
        for cut in 0..whole.len() {
            assert!(answer(&whole[..cut], Kind::Router).is_err());
        }
    }
}
