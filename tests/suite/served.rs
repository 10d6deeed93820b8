//! `ergodic serve`: who may look, what is shown, and runs that are stopped and go on.

use super::support::{Scratch, ergodic, text};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A server of a folder, which ends with this.
struct Served {
    child: Child,
    address: String,
    token: String,
}

impl Served {
    fn of(folder: &Path) -> Self {
        let mut child = ergodic()
            .current_dir(folder)
            .args(["serve", "runs", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, rest) = line
            .split_once("http://")
            .unwrap_or_else(|| panic!("{line}"));
        let (address, token) = rest.trim().split_once("/?token=").unwrap();
        Self {
            child,
            address: address.into(),
            token: token.into(),
        }
    }

    /// Status and text of an answer; `head` has further lines of the request.
    fn send(&self, request: &str, head: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = if head.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        write!(
            stream,
            "{request} HTTP/1.1\r\n{host}Connection: close\r\n{head}\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    fn cookie(&self) -> String {
        let (_, port) = self.address.rsplit_once(':').unwrap();
        format!("Cookie: other=1; ergodic-token-{port}={}\r\n", self.token)
    }

    /// As its page asks.
    fn ask(&self, request: &str) -> (u16, String) {
        self.send(request, &format!("{}X-Ergodic: 1\r\n", self.cookie()))
    }

    /// Wait until the state of a run has some words.
    fn wait(&self, run: &str, words: &str) {
        let begun = Instant::now();
        loop {
            let (_, said) = self.ask(&format!("GET /state/run/{run}"));
            if said.contains(words) {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(300),
                "no '{words}' in\n{said}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Long enough to be stopped in the middle of it.
const SCRIPT: &str = "//! A long <b>run</b>.\nlet t = target(potential::gaussian(#{ dim: 3 }));\nlet run = sample(t, sampler::hmc(), #{ chains: 2, steps: param(\"steps\", 3_000_000), every: 30, name: \"it\" });\nrun.done";

/// A folder with a run that has ended.
fn with_a_run(out: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.file("s.rhai", SCRIPT);
    let mut command = ergodic();
    command.current_dir(scratch.join("")).args([
        "run",
        "s.rhai",
        "--quiet",
        "--set",
        "steps=3000",
        "--out",
        out,
    ]);
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", text(&run));
    scratch
}

#[test]
fn only_who_has_the_token_may_look_and_act() {
    let scratch = with_a_run("runs/a b");
    let served = Served::of(&scratch.join(""));
    let cookie = served.cookie();
    // Nothing without the token, whatever is asked.
    for request in [
        "GET /",
        "GET /state/",
        "GET /run/a%20b",
        "POST /stop/run/a%20b",
        "GET /?token=",
        "GET /?token=0123456789abcdef0123456789abcdef",
    ] {
        let (status, said) = served.send(request, "X-Ergodic: 1\r\n");
        assert_eq!(status, 403, "{request}: {said}");
        assert!(!said.contains("a b") && !said.contains(&served.token));
    }
    // With it a cookie that no script reads and no other site sends, and an address without the token.
    let (status, said) = served.send(&format!("GET /?token={}", served.token), "");
    assert_eq!(status, 303);
    assert!(
        said.contains("HttpOnly; SameSite=Strict") && said.contains("Location: /\r\n"),
        "{said}"
    );
    let (status, page) = served.send("GET /", &cookie);
    assert_eq!(status, 200);
    assert!(page.contains("href=\"run/a%20b\"") && page.contains("connect-src 'self'"));
    assert!(page.contains("A long &lt;b&gt;run&lt;/b&gt;"));
    let (status, page) = served.send("GET /run/a%20b", &cookie);
    assert!(status == 200 && page.contains("<svg") && page.contains("ergodic report"));
    // A name that somebody else has given to this address, a form of another site, and addresses outside.
    let (status, _) = served.send("GET /", &format!("Host: evil.example:80\r\n{cookie}"));
    assert_eq!(status, 403);
    let (status, _) = served.send("POST /stop/run/a%20b", &cookie);
    assert_eq!(status, 403);
    for odd in [
        "GET /run/../s.rhai",
        "GET /run/%2e%2e/",
        "GET /run/%",
        "GET /run/none",
        "POST /stop/run/a%20b",
        "DELETE /",
        "GET /favicon.ico",
    ] {
        let (status, said) = served.ask(odd);
        assert!(status == 404 || status == 400, "{odd}: {said}");
    }
    let (_, said) = served.ask("GET /state/run/a%20b");
    assert!(
        said.contains("\"says\":\"finished\"") && said.contains("\"action\":null"),
        "{said}"
    );
}

#[test]
#[ignore = "long: tests/run"]
fn a_run_is_stopped_and_goes_on() {
    let scratch = Scratch::new();
    // As editors of Windows save it.
    scratch.file("s.rhai", format!("\u{feff}{SCRIPT}"));
    std::fs::create_dir(scratch.join("runs")).unwrap();
    let served = Served::of(&scratch.join(""));
    let begin = |out: &str| {
        let words = [
            "run",
            "s.rhai",
            "--quiet",
            "--checkpoint",
            "0.1",
            "--out",
            out,
        ];
        let mut run = ergodic();
        run.current_dir(scratch.join(""))
            .args(words)
            .spawn()
            .unwrap()
    };
    let mut run = begin("runs/long");
    served.wait("long", "\"action\":\"stop\"");
    // What is there already is shown while it runs.
    let begun = Instant::now();
    while !served.ask("GET /run/long").1.contains("<svg") {
        assert!(begun.elapsed() < Duration::from_secs(300), "no figure");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, said) = served.ask("POST /stop/run/long");
    assert_eq!(status, 200, "{said}");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    served.wait("long", "\"action\":\"continue\"");
    let (status, said) = served.ask("POST /continue/run/long");
    assert_eq!(status, 200, "{said}");
    served.wait("long", "\"says\":\"finished\"");
    // Nothing can be asked of it any more.
    assert_eq!(served.ask("POST /continue/run/long").0, 404);
    // A script that is gone is said.
    let mut other = begin("runs/other");
    served.wait("other", "\"action\":\"stop\"");
    std::thread::sleep(Duration::from_millis(300));
    served.ask("POST /stop/run/other");
    other.wait().unwrap();
    served.wait("other", "\"action\":\"continue\"");
    // What its page shows is not what would run.
    scratch.file("s.rhai", "print(\"something else\");");
    let (status, said) = served.ask("POST /continue/run/other");
    assert!(
        status == 404 && said.contains("s.rhai is not what it was"),
        "{said}"
    );
    std::fs::remove_file(scratch.join("s.rhai")).unwrap();
    let (status, said) = served.ask("POST /continue/run/other");
    assert!(
        status == 404 && said.contains("s.rhai: No such file"),
        "{said}"
    );
}

/// Without the token, nobody ends the server or keeps it from its work.
#[test]
fn strangers_do_not_hinder_it() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("runs")).unwrap();
    let served = Served::of(&scratch.join(""));
    for length in ["5000", "100000000000000", "18446744073709551615"] {
        let (status, said) = served.send("POST /", &format!("Content-Length: {length}\r\n"));
        assert_eq!(status, 413, "{said}");
    }
    let long = format!("X: {}\r\n", "x".repeat(20_000));
    assert_eq!(served.send("GET /", &long).0, 431);
    assert_eq!(served.send("\u{1}", "").0, 400);
    // Those that say nothing, or do not go on, or do not read.
    let connect = || TcpStream::connect(&served.address).unwrap();
    let idle: Vec<_> = (0..20).map(|_| connect()).collect();
    for mut half in (0..20).map(|_| connect()) {
        half.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    }
    assert_eq!(served.send("GET /", &served.cookie()).0, 200);
    // More of them than have room, for as long as they are waited for.
    let more: Vec<_> = (0..100).map(|_| connect()).collect();
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(served.send("GET /", &served.cookie()).0, 200);
    drop((idle, more));
    // As many as have room, who go on and on after they were refused.
    let mut refused: Vec<_> = (0..64).map(|_| connect()).collect();
    for stream in &mut refused {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    }
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        for stream in &mut refused {
            let _ = stream.write_all(b"x");
        }
    }
    assert_eq!(served.send("GET /", &served.cookie()).0, 200);
}

/// Whoever can write a lock cannot have another process stopped by it.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_that_names_another_process_stops_nobody() {
    let scratch = with_a_run("runs/forged");
    let mut victim = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let served = Served::of(&scratch.join(""));
    for said in [victim.id().to_string(), "0".into(), u32::MAX.to_string()] {
        let path = scratch.file("runs/forged/.lock", format!("{said}\n"));
        let lock = std::fs::File::open(path).unwrap();
        lock.lock().unwrap();
        served.wait("forged", "running");
        let (status, _) = served.ask("POST /stop/run/forged");
        assert_eq!(status, 404);
    }
    assert!(victim.try_wait().unwrap().is_none());
    victim.kill().unwrap();
    victim.wait().unwrap();
}
