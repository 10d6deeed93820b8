//! Where a socket listens, and the byte stream to one client: TCP, or a Unix domain socket for `ipc`.

#[cfg(not(unix))]
use anyhow::bail;
use anyhow::{Context, Result};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt;
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// Where a socket listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `tcp://host:port`; port 0 takes a free one.
    Tcp(String, u16),
    /// `ipc://path`.
    Ipc(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "tcp://{host}:{port}"),
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

impl Endpoint {
    /// Listen here. Also returns where it listens, with the port that was taken.
    pub fn listen(&self) -> Result<(Listener, Self)> {
        let context = || {
            format!(
                "cannot listen on {self}: another program may use it; restart the kernel so that it gets other ports"
            )
        };
        match self {
            Self::Tcp(host, port) => {
                let name = if host == "*" { "0.0.0.0" } else { host };
                let listener =
                    TcpListener::bind(resolve(name, *port).with_context(context)?.as_slice())
                        .with_context(context)?;
                let taken = listener.local_addr().with_context(context)?.port();
                Ok((Listener::Tcp(listener), Self::Tcp(host.clone(), taken)))
            }
            #[cfg(unix)]
            Self::Ipc(path) => {
                // What a kernel that was killed left behind would make the bind fail.
                let is_socket = path
                    .symlink_metadata()
                    .is_ok_and(|m| m.file_type().is_socket());
                if is_socket && UnixStream::connect(path).is_err() {
                    let _ = std::fs::remove_file(path);
                }
                let listener = UnixListener::bind(path).with_context(context)?;
                Ok((Listener::Unix(listener), self.clone()))
            }
            #[cfg(not(unix))]
            Self::Ipc(_) => bail!("cannot listen on {self}: ipc needs Unix; use the tcp transport"),
        }
    }

    /// Whether only this machine reaches it. What cannot be told counts as no.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(host, port) => resolve(host, *port).is_ok_and(|addresses| {
                !addresses.is_empty() && addresses.iter().all(|a| a.ip().is_loopback())
            }),
            Self::Ipc(_) => true,
        }
    }

    /// Connect, as a client does.
    pub fn connect(&self) -> Result<Stream> {
        let context = || format!("cannot connect to {self}");
        match self {
            Self::Tcp(host, port) => {
                let name = match host.as_str() {
                    "*" | "0.0.0.0" => "127.0.0.1",
                    name => name,
                };
                Ok(Stream::Tcp(
                    TcpStream::connect(resolve(name, *port).with_context(context)?.as_slice())
                        .with_context(context)?,
                ))
            }
            #[cfg(unix)]
            Self::Ipc(path) => Ok(Stream::Unix(
                UnixStream::connect(path).with_context(context)?,
            )),
            #[cfg(not(unix))]
            Self::Ipc(_) => bail!("cannot connect to {self}: ipc needs Unix"),
        }
    }

    /// Remove what listening left in the file system.
    pub fn clean(&self) {
        if let Self::Ipc(path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The addresses of a host, those of IPv4 first: of a name that has both, ZeroMQ's clients try only that.
fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    Ok(addresses)
}

/// What accepts clients.
pub enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over a Unix domain socket.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl Listener {
    /// Wait for the next client.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Replies are small and awaited: they must not wait for one another.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            #[cfg(unix)]
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }
}

/// The byte stream to one client.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix domain socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    /// Close both directions: whoever reads or writes it, in any thread, stops.
    pub fn close(&self) {
        let _ = match self {
            Self::Tcp(s) => s.shutdown(Shutdown::Both),
            #[cfg(unix)]
            Self::Unix(s) => s.shutdown(Shutdown::Both),
        };
    }

    /// How long a read may take.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_read_timeout(limit),
            #[cfg(unix)]
            Self::Unix(s) => s.set_read_timeout(limit),
        }
    }
}

/// Of a reference, so that one thread can read and another write without a second handle: files are few.
impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => (&*s).read(buffer),
            #[cfg(unix)]
            Stream::Unix(s) => (&*s).read(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => (&*s).write(buffer),
            #[cfg(unix)]
            Stream::Unix(s) => (&*s).write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
