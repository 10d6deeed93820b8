//! `ergodic serve`: runs as they go on, in a browser.
//!
//! One page lists the runs, and each has the page that `ergodic report` writes, made anew whenever its run has saved something. Whoever has the token,
//! which is part of the address that is printed, may look, stop and go on; a cookie keeps it. Nothing is fetched from elsewhere.

mod action;
mod http;

use crate::error::Result;
use crate::output;
use crate::report::runs::{Found, Sort, State};
use crate::report::{self, address::decoded, index, runs::Runs};
use crate::script::explore::tokens::paint;
use action::{Action, Begun};
use anyhow::{Context, anyhow, ensure};
use http::{Answer, Request};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

const LIVE: &str = include_str!("live.js");

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
    let listener = TcpListener::bind(address).map_err(|error| {
        anyhow!("cannot listen at {address}: {error}; name another port with --port")
    })?;
    let address = listener.local_addr()?;
    let site = Site {
        folder: folder.to_path_buf(),
        token: token()?,
        begun: Mutex::default(),
        address,
    };
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
    http::serve(&listener, move |request| site.answer(request))
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
        let target = request.target.as_str();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if !self.is_for_us(request) {
            return Answer::refusal(403, "this address is not that of ergodic serve");
        }
        let given = query.split('&').find_map(|p| p.strip_prefix("token="));
        if given.is_some_and(|given| same(given, &self.token)) && request.method == "GET" {
            let cookie = format!(
                "{}={}; Path=/; HttpOnly; SameSite=Strict",
                self.cookie(),
                self.token
            );
            let answer = Answer::new([]).code(303);
            return answer
                .header("Set-Cookie", &cookie)
                .header("Location", path);
        }
        if !self.has_token(request) {
            return Answer::refusal(
                403,
                "open the address that ergodic serve has printed, with its token",
            );
        }
        let answer = match (
            request.method.as_str(),
            path.split('/').nth(1).unwrap_or(""),
        ) {
            ("GET", "" | "run") => self.page(path),
            ("GET", "state") => self.state(&path["/state".len()..]),
            // A form of another site cannot send this header.
            ("POST", _) if request.field("X-Ergodic").is_none() => {
                return Answer::refusal(403, "this must be asked by the page itself");
            }
            ("POST", "stop") => self.act(Action::Stop, &path["/stop".len()..]),
            ("POST", "continue") => self.act(Action::Continue, &path["/continue".len()..]),
            _ => return Answer::refusal(404, "there is nothing here"),
        };
        answer.unwrap_or_else(|error| Answer::refusal(404, &format!("{error:#}")))
    }

    /// The cookie that holds the token; cookies of one machine are common to all ports.
    fn cookie(&self) -> String {
        format!("ergodic-token-{}", self.address.port())
    }

    /// Whether the browser means this server: a name that somebody else has given to this address is not ours.
    fn is_for_us(&self, request: &Request) -> bool {
        let Some(host) = request.field("Host") else {
            return false;
        };
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let name = name.trim_matches(['[', ']']);
        name == "localhost"
            || name.parse::<IpAddr>().is_ok_and(|ip| {
                ip == self.address.ip() || ip.is_loopback() || self.address.ip().is_unspecified()
            })
    }

    fn has_token(&self, request: &Request) -> bool {
        let (cookies, name) = (request.field("Cookie").unwrap_or_default(), self.cookie());
        let own = |c: &str| Some(c.trim().strip_prefix(&name)?.strip_prefix('=')?.to_string());
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
        // The folder may be a run itself.
        let folder = match name.as_os_str().is_empty() {
            true => self.folder.clone(),
            false => self.folder.join(name),
        };
        let real = |path: &Path| path.canonicalize().context("there is no such run");
        ensure!(
            real(&folder)?.starts_with(real(&self.folder)?),
            "this run lies elsewhere"
        );
        Ok(folder)
    }

    fn page(&self, path: &str) -> Result<Answer> {
        let text = match path {
            "/" => index::live(&self.folder, &self.all()?, LIVE),
            _ => report::live_page(&self.run_of(path)?, LIVE, paint)?,
        };
        Ok(Answer::new(text)
            .header("Content-Type", "text/html; charset=utf-8")
            .header("Cache-Control", "no-store")
            .header("X-Frame-Options", "DENY")
            .header("Referrer-Policy", "no-referrer"))
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
        Ok(Answer::new(value.to_string())
            .header("Content-Type", "application/json")
            .header("Cache-Control", "no-store"))
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
        Ok(Answer::new("done"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_inside() {
        let all = tempfile::tempdir().unwrap();
        let runs = all.path().join("runs");
        for folder in [runs.join("a/b"), all.path().join("x")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let site = Site {
            folder: runs.clone(),
            token: token().unwrap(),
            begun: Mutex::default(),
            address: ([127, 0, 0, 1], 1).into(),
        };
        assert_eq!(site.run_of("/run/a/b").unwrap(), runs.join("a/b"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../x", runs.join("link")).unwrap();
            assert!(site.run_of("/run/link").is_err());
        }
        for odd in [
            "/run/../x",
            "/run//etc",
            "/run/a/../../x",
            "/run/%2e%2e/x",
            "/run/none",
        ] {
            assert!(site.run_of(odd).is_err(), "{odd}");
        }
        assert_eq!(site.token.len(), 32);
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("", "abc"));
    }
}
