//! As much of HTTP/1.1 as a page for one's own browser needs: one request per connection, without a body.
//!
//! Whoever connects can hold one thread for [`PATIENCE`], and 16 KiB of memory; what it may see is not decided here.

use crate::output;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an answer may take to be read.
const DELIVERY: Duration = Duration::from_secs(60);

/// How long to wait, after an answer, for what the browser has not sent yet.
const FAREWELL: Duration = Duration::from_millis(500);

/// Bytes of a request.
const LONGEST: usize = 16 << 10;

/// Connections at a time; those above are closed at once.
const MOST: usize = 64;

/// A request of a browser: method, target and headers.
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// A header, whatever case its name is written in.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The answer to a request: code, headers and body.
pub struct Answer {
    pub code: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// A body with code 200.
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        let (code, headers, body) = (200, Vec::new(), body.into());
        Self {
            code,
            headers,
            body,
        }
    }

    /// With another code.
    pub fn code(self, code: u16) -> Self {
        Self { code, ..self }
    }

    /// With a header; what cannot stand in one is left out.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let plain = |c: &char| c.is_ascii() && !c.is_ascii_control();
        self.headers
            .push((name, value.chars().filter(plain).collect()));
        self
    }

    /// A line of text that says why there is no more.
    pub fn refusal(code: u16, why: &str) -> Self {
        let text = Self::new(format!("{why}\n")).code(code);
        text.header("Content-Type", "text/plain; charset=utf-8")
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "HTTP/1.1 {} \r\nConnection: close\r\nContent-Length: {}\r\n",
            self.code,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// Answer everybody who connects, until the process is ended.
pub fn serve(
    listener: &TcpListener,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> ! {
    let (answer, connected) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // No more files can be opened at this moment.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let (answer, slot) = (answer.clone(), Slot::of(&connected));
        if slot.0.load(Ordering::SeqCst) > MOST {
            continue;
        }
        let work = move || {
            let _slot = slot;
            // A browser that has gone needs no answer.
            let _ = talk(&stream, &*answer);
        };
        // Where there are no more threads, the connection is closed.
        let _ = std::thread::Builder::new().spawn(work);
    }
}

/// One of the connections there are.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn of(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(all.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn talk(stream: &TcpStream, answer: &dyn Fn(&Request) -> Answer) -> std::io::Result<()> {
    let answer = match read(stream) {
        Ok(request) => catch_unwind(AssertUnwindSafe(|| answer(&request))).unwrap_or_else(|_| {
            output::remark(format_args!(
                "{} could not be shown: a defect of this program",
                request.target
            ));
            Answer::refusal(
                500,
                "a defect of this program: the terminal of ergodic serve says more",
            )
        }),
        Err(Unread::Gone) => return Ok(()),
        Err(Unread::Refused(code, why)) => Answer::refusal(code, why),
    };
    let (bytes, until) = (answer.bytes(), Instant::now() + DELIVERY);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        let sent = (&*stream).write(rest)?;
        rest = &rest[sent..];
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // What is closed with something unread takes back what it has answered.
    let until = Instant::now() + FAREWELL;
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        if (&*stream).read(&mut [0; 4096])? == 0 {
            return Ok(());
        }
    }
}

/// Why there is no request.
enum Unread {
    Gone,
    Refused(u16, &'static str),
}

impl From<std::io::Error> for Unread {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

fn read(mut stream: &TcpStream) -> Result<Request, Unread> {
    let (mut head, until) = (Vec::new(), Instant::now() + PATIENCE);
    loop {
        let mut bytes = [0; 4096];
        stream.set_read_timeout(Some(left(until)?))?;
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Err(Unread::Gone);
        }
        head.extend_from_slice(&bytes[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&head) {
            Ok(httparse::Status::Complete(_)) => return request(&parsed),
            Ok(httparse::Status::Partial) if head.len() < LONGEST => {}
            Ok(_) | Err(httparse::Error::TooManyHeaders) => {
                return Err(Unread::Refused(431, "this request is too long"));
            }
            Err(_) => return Err(Unread::Refused(400, "this is no request of HTTP")),
        }
    }
}

fn request(parsed: &httparse::Request<'_, '_>) -> Result<Request, Unread> {
    let text = |h: &httparse::Header<'_>| {
        (
            h.name.to_string(),
            String::from_utf8_lossy(h.value).trim().to_string(),
        )
    };
    let request = Request {
        method: parsed.method.unwrap_or_default().into(),
        target: parsed.path.unwrap_or_default().into(),
        headers: parsed.headers.iter().map(text).collect(),
    };
    let has_body = request.field("Transfer-Encoding").is_some()
        || request.field("Content-Length").is_some_and(|n| n != "0");
    match has_body {
        true => Err(Unread::Refused(413, "a request has no body here")),
        false => Ok(request),
    }
}

fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (!left.is_zero())
        .then_some(left)
        .ok_or_else(|| ErrorKind::TimedOut.into())
}
