//! A stream that must be done by some time: a limit for each read would let a client send one byte now and then.

use super::endpoint::Stream;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::time::{Duration, Instant};

/// A stream that is read until some time at most.
pub struct Hurried<'a> {
    stream: &'a Stream,
    end: Option<Instant>,
}

impl<'a> Hurried<'a> {
    /// One that has all the time.
    pub fn new(stream: &'a Stream) -> Self {
        Self { stream, end: None }
    }

    /// All that is read from now on must be there in so much time.
    pub fn within(&mut self, limit: Option<Duration>) {
        self.end = limit.map(|limit| Instant::now() + limit);
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Error::from(ErrorKind::TimedOut));
        }
        self.stream.set_read_timeout(left)?;
        self.stream.read(buffer)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
