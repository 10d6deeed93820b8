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

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;

    #[test]
    fn bytes_now_and_then_do_not_win_time() {
        let (listener, endpoint) = Endpoint::Tcp("127.0.0.1".into(), 0).listen().unwrap();
        let sender = endpoint.connect().unwrap();
        let stream = listener.accept().unwrap();
        let sending = std::thread::spawn(move || {
            while (&sender).write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut hurried = Hurried::new(&stream);
        hurried.within(Some(Duration::from_millis(200)));
        let mut rest = Vec::new();
        let error = hurried.read_to_end(&mut rest).unwrap_err();
        assert!(matches!(
            error.kind(),
            ErrorKind::TimedOut | ErrorKind::WouldBlock
        ));
        assert!(!rest.is_empty());
        // Another message has time of its own.
        hurried.within(None);
        hurried.read_exact(&mut [0]).unwrap();
        stream.close();
        sending.join().unwrap();
    }
}
