//! `ergodic serve`: runs as they go on, in a browser.
//!
//! One page lists the runs, and each has the page that `ergodic report` writes, made anew whenever its run has saved something. Whoever has the token,
//! which is part of the address that is printed, may look, stop and go on; a cookie keeps it. Nothing is fetched from elsewhere.

mod action;

use crate::error::Result;
use crate::output;
use crate::report::runs::{Found, Sort, State};
use crate::report::{self, address::decoded, index, runs::Runs};
use crate::script::explore::tokens::paint;
use action::{Action, Begun};
use anyhow::{Context, anyhow, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::Cursor;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use tiny_http::{Header, Method, Request, Response, Server};

const LIVE: &str = include_str!("live.js");

/// Requests that are answered at once.
const WORKERS: usize = 3;

/// The cookie that holds the token.
const COOKIE: &str = "ergodic-token";

type Answer = Response<Cursor<Vec<u8>>>;

/// Show the runs in and below a folder until the process is ended.
///
/// # Errors
/// If the folder cannot be read, or nothing can listen there.
pub fn serve(folder: &Path, (host, port): (IpAddr, u16)) -> Result<()> {
    ensure!(
        folder.is_dir(),
        "{}: there is no such folder",
        folder.display()
    );
    let address = SocketAddr::new(host, port);
    let server = Server::http(address).map_err(|error| {
        anyhow!("cannot listen at {address}: {error}; name another port with --port")
    })?;
    let address = server.server_addr().to_ip().unwrap_or(address);
    let site = Arc::new(Site {
        folder: folder.to_path_buf(),
        token: token()?,
        begun: Mutex::default(),
        address,
    });
    output::line(format_args!(
        "runs in {}: http://{address}/?token={}",
        folder.display(),
        site.token
    ));
    if !host.is_loopback() {
        output::remark(
            "NOTE: other machines can reach this address, and what goes there and back is not encrypted",
        );
    }
    let server = Arc::new(server);
    let work = |(server, site): (Arc<Server>, Arc<Site>)| {
        for request in server.incoming_requests() {
            let answer = site.answer(&request);
            // A browser that has gone needs no answer.
            let _ = request.respond(answer);
        }
    };
    let others: Vec<_> = (1..WORKERS)
        .map(|_| {
            let own = (server.clone(), site.clone());
            std::thread::spawn(move || work(own))
        })
        .collect();
    work((server, site));
    for other in others {
        let _ = other.join();
    }
    Ok(())
}

/// 128 bits that nobody can guess, in hexadecimal digits.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    rand::TryRngCore::try_fill_bytes(&mut rand::rngs::OsRng, &mut bytes)
        .context("the system gives no random numbers")?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Whether two texts are the same, told in a time that does not depend on where they differ.
fn same(a: &str, b: &str) -> bool {
    Sha256::digest(a) == Sha256::digest(b)
}

/// What is shown.
struct Site {
    folder: PathBuf,
    token: String,
    /// What was asked to go on.
    begun: Mutex<Vec<Begun>>,
    address: SocketAddr,
}

impl Site {
    fn answer(&self, request: &Request) -> Answer {
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        if !self.is_for_us(request) {
            return refused(403, "this address is not that of ergodic serve");
        }
        let given = query.split('&').find_map(|p| p.strip_prefix("token="));
        if given.is_some_and(|given| same(given, &self.token)) && *request.method() == Method::Get {
            let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", self.token);
            return Response::from_data(Vec::new())
                .with_status_code(303)
                .with_header(header("Set-Cookie", &cookie))
                .with_header(header("Location", path));
        }
        if !self.has_token(request) {
            return refused(
                403,
                "open the address that ergodic serve has printed, with its token",
            );
        }
        let answer = match (request.method(), path.split('/').nth(1).unwrap_or("")) {
            (Method::Get, "" | "run") => self.page(path),
            (Method::Get, "state") => self.state(&path["/state".len()..]),
            // A form of another site cannot send this header.
            (Method::Post, _) if field(request, "X-Ergodic").is_none() => {
                return refused(403, "this must be asked by the page itself");
            }
            (Method::Post, "stop") => self.act(Action::Stop, &path["/stop".len()..]),
            (Method::Post, "continue") => self.act(Action::Continue, &path["/continue".len()..]),
            _ => return refused(404, "there is nothing here"),
        };
        answer.unwrap_or_else(|error| refused(404, &format!("{error:#}")))
    }

    /// Whether the browser means this server: a name that somebody else has given to this address is not ours.
    fn is_for_us(&self, request: &Request) -> bool {
        let Some(host) = field(request, "Host") else {
            return false;
        };
        let name = host
            .rsplit_once(':')
            .map_or(host.as_str(), |(name, _)| name);
        let name = name.trim_matches(['[', ']']);
        name == "localhost"
            || name.parse::<IpAddr>().is_ok_and(|ip| {
                ip == self.address.ip() || ip.is_loopback() || self.address.ip().is_unspecified()
            })
    }

    fn has_token(&self, request: &Request) -> bool {
        let cookies = field(request, "Cookie").unwrap_or_default();
        let own = |c: &str| {
            Some(
                c.trim()
                    .strip_prefix(COOKIE)?
                    .strip_prefix('=')?
                    .to_string(),
            )
        };
        let given = cookies.split(';').find_map(own);
        given.is_some_and(|given| same(&given, &self.token))
    }

    fn all(&self) -> Result<Vec<Found>> {
        Ok(Runs::of(std::slice::from_ref(&self.folder), &[], Sort::Time)?.all)
    }

    /// The folder of the run that an address `/run/…` names.
    fn run_of(&self, path: &str) -> Result<PathBuf> {
        let name = path.strip_prefix("/run/").unwrap_or_default();
        let name = PathBuf::from(decoded(name).context("this is no address")?);
        let inside = name.components().all(|c| matches!(c, Component::Normal(_)));
        ensure!(inside, "{}: this is no run", name.display());
        Ok(match name.as_os_str().is_empty() {
            // The folder may be a run itself.
            true => self.folder.clone(),
            false => self.folder.join(name),
        })
    }

    fn page(&self, path: &str) -> Result<Answer> {
        let text = match path {
            "/" => index::live(&self.folder, &self.all()?, LIVE),
            _ => report::live_page(&self.run_of(path)?, LIVE, paint)?,
        };
        Ok(Response::from_data(text)
            .with_header(header("Content-Type", "text/html; charset=utf-8"))
            .with_header(header("Cache-Control", "no-store"))
            .with_header(header("X-Frame-Options", "DENY"))
            .with_header(header("Referrer-Policy", "no-referrer")))
    }

    /// Whether there is something new, and what can be done.
    fn state(&self, path: &str) -> Result<Answer> {
        let value = match path {
            "/" => {
                let all = self.all()?;
                let running = all.iter().filter(|f| matches!(f.state, State::Running(_)));
                let says = match running.count() {
                    0 => "nothing runs".to_string(),
                    n => format!("{n} running"),
                };
                json!({"stamp": stamp(&all), "says": says})
            }
            _ => {
                let folder = self.run_of(path)?;
                let found = Found::of(&folder).context("there is no such run")?;
                let mut says = found.state();
                if let Some(trouble) = self.trouble_of(&folder) {
                    says = format!("{says}; {trouble}");
                }
                let action = Action::of(&found).map(Action::name);
                json!({"stamp": stamp(std::slice::from_ref(&found)), "says": says, "action": action})
            }
        };
        Ok(Response::from_data(value.to_string())
            .with_header(header("Content-Type", "application/json"))
            .with_header(header("Cache-Control", "no-store")))
    }

    fn act(&self, action: Action, path: &str) -> Result<Answer> {
        let folder = self.run_of(path)?;
        let found = Found::of(&folder).context("there is no such run")?;
        ensure!(
            Action::of(&found) == Some(action),
            "{} cannot be asked to {}: {}",
            folder.display(),
            action.name(),
            found.state()
        );
        if let Some(begun) = action.perform(&found)? {
            let mut all = self
                .begun
                .lock()
                .map_err(|_| anyhow!("another request has failed"))?;
            all.retain(|b| b.folder != folder);
            all.push(begun);
        }
        Ok(Response::from_data("done"))
    }

    /// Why a run that was asked to go on does not.
    fn trouble_of(&self, folder: &Path) -> Option<String> {
        let mut all = self.begun.lock().ok()?;
        all.iter_mut().find(|b| b.folder == folder)?.trouble()
    }
}

/// What changes whenever something of these runs does.
fn stamp(all: &[Found]) -> String {
    let mut hash = Sha256::new();
    for run in all {
        let one = (&run.folder, &run.state, run.share, run.bytes, run.verdict);
        hash.update(format!("{one:?}{:?}", run.seconds));
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect()
}

fn header(name: &str, value: &str) -> Header {
    let clean: String = value
        .chars()
        .filter(|c| c.is_ascii() && !c.is_ascii_control())
        .collect();
    Header::from_bytes(name, clean).unwrap_or_else(|()| unreachable!("a header of plain letters"))
}

fn field(request: &Request, name: &'static str) -> Option<String> {
    let found = request.headers().iter().find(|h| h.field.equiv(name))?;
    Some(found.value.as_str().into())
}

fn refused(code: u16, why: &str) -> Answer {
    Response::from_data(format!("{why}\n"))
        .with_status_code(code)
        .with_header(header("Content-Type", "text/plain; charset=utf-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_inside() {
        let site = Site {
            folder: "runs".into(),
            token: token().unwrap(),
            begun: Mutex::default(),
            address: ([127, 0, 0, 1], 1).into(),
        };
        assert_eq!(site.run_of("/run/a/b").unwrap(), Path::new("runs/a/b"));
        for odd in [
            "/run/../x",
            "/run//etc",
            "/run/a/../../x",
            "/run/%2e%2e/x",
            "/run/./x",
        ] {
            let found = site.run_of(odd).ok();
            let inside = found
                .is_none_or(|f| f.starts_with("runs") && !f.display().to_string().contains(".."));
            assert!(inside, "{odd}");
        }
        assert_eq!(site.token.len(), 32);
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("", "abc"));
    }
}
