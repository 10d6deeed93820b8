//! Standard output and standard error, which may be gone or full.
//!
//! That nobody reads any more, as in `ergodic docs | head`, is no failure, and what goes on goes on. Anything else that keeps standard
//! output from being written is one: it is remembered, and the command says so and does not end well. What cannot be said on standard
//! error changes nothing.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why standard output could not be written, the first time.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Write text to standard output.
pub fn print(text: impl Display) {
    let mut out = io::stdout().lock();
    // Flushed, since what is found out at the end of the process is told nobody.
    keep(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Write text and an end of line to standard output.
pub fn line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Write text and an end of line to standard error.
pub fn remark(text: impl Display) {
    remark_part(format_args!("{text}\n"));
}

/// Write text to standard error, in one piece.
pub fn remark_part(text: impl Display) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Text without the codes of its colours.
pub fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |out, part| {
        out + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

/// Take note of how writing to standard output has gone.
pub fn keep(written: io::Result<()>) {
    if let Err(e) = written
        && e.kind() != ErrorKind::BrokenPipe
    {
        let _ = FAILURE.set(e.to_string());
    }
}

/// Why standard output is incomplete, if it is.
pub fn failure() -> Option<&'static str> {
    keep(io::stdout().flush());
    FAILURE.get().map(String::as_str)
}

#[cfg(test)]
mod tests {
    #[test]
    fn colours_are_left_out() {
        assert_eq!(super::plain("a\x1b[31mb m\x1b[0mc"), "ab mc");
        assert_eq!(super::plain("none"), "none");
    }
}
