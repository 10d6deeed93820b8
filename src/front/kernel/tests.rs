//! Tests of a whole kernel, with a client that speaks ZeroMQ itself. Those with Jupyter's own client are in Python.

use super::message::{Codec, Message};
use super::zmtp::{Endpoint, client::Client};
use super::*;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A language with a handful of words; anything else is its own value.
#[derive(Default)]
struct Words {
    interrupted: Arc<AtomicBool>,
    /// Neither `Send` nor `Sync`, as an interpreter may be.
    cells: std::rc::Rc<std::cell::Cell<u32>>,
}

impl Evaluator for Words {
    fn info(&self) -> Info {
        Info {
            language: "words".into(),
            ..Info::default()
        }
    }

    fn interrupter(&self) -> Interrupter {
        let flag = self.interrupted.clone();
        Arc::new(move || flag.store(true, Ordering::SeqCst))
    }

    fn rearm(&mut self) {
        self.interrupted.store(false, Ordering::SeqCst);
    }

    fn execute(&mut self, code: &str, _: u32, out: &Output) -> Outcome {
        self.cells.set(self.cells.get() + 1);
        match code {
            "cells" => return Outcome::Ok(Some(Rich::text(self.cells.get().to_string()))),
            "wait" => {
                while !self.interrupted.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
                return Outcome::Interrupted;
            }
            "fail" => {
                thread::sleep(Duration::from_millis(200));
                return Outcome::Err(Failure::default());
            }
            "print" => (0..1000).for_each(|i| out.stream(Stream::Stdout, &format!("{i}\n"))),
            "ask" => {
                return match out.input("?", false) {
                    Ok(answer) => Outcome::Ok(Some(Rich::text(answer))),
                    Err(_) => Outcome::Interrupted,
                };
            }
            _ => return Outcome::Ok(Some(Rich::text(code))),
        }
        Outcome::Ok(None)
    }
}

/// A running kernel and a client of it.
struct Setup {
    codec: Codec,
    shell: Client,
    control: Client,
    iopub: Client,
    stdin: Client,
    other_stdin: Client,
    ended: mpsc::Receiver<Result<()>>,
    folder: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("kernel-{}", id::fresh()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("connection.json");
        let mut content = json!({"ip": "127.0.0.1", "transport": "tcp", "key": "secret"});
        for channel in connection::CHANNELS {
            content[format!("{channel}_port")] = json!(0);
        }
        std::fs::write(&file, content.to_string()).unwrap();
        let (end, ended) = mpsc::channel();
        let started = file.clone();
        thread::spawn(move || {
            let kernel = Kernel {
                signals: false,
                follow_parent: false,
                ..Kernel::default()
            };
            drop(end.send(kernel.run(&started, Words::default())));
        });
        let limit = Instant::now() + Duration::from_secs(10);
        let connect_as = |channel, kind, identity: &[u8]| loop {
            assert!(Instant::now() < limit, "the kernel does not start");
            thread::sleep(Duration::from_millis(5));
            // The file may be about to be written.
            let Ok(connection) = Connection::read(&file) else {
                continue;
            };
            let endpoint = connection.endpoint(channel).unwrap();
            if !matches!(endpoint, Endpoint::Tcp(_, 0)) {
                break Client::connect(&endpoint, kind, identity);
            }
        };
        let connect = |channel, kind| connect_as(channel, kind, b"me");
        let mut setup = Self {
            shell: connect("shell", "DEALER"),
            control: connect("control", "DEALER"),
            iopub: connect("iopub", "SUB"),
            stdin: connect("stdin", "DEALER"),
            other_stdin: connect_as("stdin", "DEALER", b"another"),
            codec: Codec::new(b"secret"),
            ended,
            folder,
        };
        setup.iopub.send(&[b"\x01".to_vec()]);
        let welcome = setup.shown();
        assert_eq!(welcome.kind(), "iopub_welcome");
        assert_eq!(welcome.content, json!({"subscription": ""}));
        setup
    }

    fn request(&self, kind: &str, content: &Value) -> Vec<Vec<u8>> {
        self.codec
            .encode(&[], kind, &json!({}), &json!({}), content)
    }

    fn execute(&mut self, code: &str) {
        let frames = self.request("execute_request", &json!({"code": code}));
        self.shell.send(&frames);
    }

    fn reply(&mut self) -> Value {
        self.codec.decode(self.shell.receive()).unwrap().content
    }

    fn ask_control(&mut self, kind: &str) -> Message {
        let frames = self.request(kind, &json!({}));
        self.control.send(&frames);
        self.codec.decode(self.control.receive()).unwrap()
    }

    fn shown(&mut self) -> Message {
        let mut frames = self.iopub.receive();
        // The topic is no envelope.
        frames.remove(0);
        self.codec.decode(frames).unwrap()
    }

    /// What is shown up to the next idle status.
    fn all_shown(&mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        loop {
            let message = self.shown();
            let end = message.content["execution_state"] == "idle";
            all.push((message.kind().to_string(), message.content));
            if end {
                return all;
            }
        }
    }

    fn wait_for(&mut self, kind: &str) {
        while self.shown().kind() != kind {}
    }

    fn shut_down(mut self) {
        let reply = self.ask_control("shutdown_request");
        assert_eq!(reply.kind(), "shutdown_reply");
        self.ended
            .recv_timeout(Duration::from_secs(5))
            .unwrap()
            .unwrap();
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

#[test]
fn a_cell_is_run_between_busy_and_idle() {
    let mut k = Setup::new();
    k.execute("ψ");
    assert_eq!(
        k.all_shown(),
        [
            ("status", json!({"execution_state": "busy"})),
            ("execute_input", json!({"code": "ψ", "execution_count": 1})),
            (
                "execute_result",
                json!({"execution_count": 1, "data": {"text/plain": "ψ"}, "metadata": {}})
            ),
            ("status", json!({"execution_state": "idle"})),
        ]
        .map(|(kind, content)| (kind.to_string(), content))
    );
    assert_eq!(
        k.reply(),
        json!({"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []})
    );
    k.shut_down();
}

#[test]
fn prints_are_joined() {
    let mut k = Setup::new();
    k.execute("print");
    let shown = k.all_shown();
    let texts = shown.iter().filter(|(kind, _)| kind == "stream");
    let texts: Vec<_> = texts.map(|(_, c)| c["text"].as_str().unwrap()).collect();
    let expected: String = (0..1000).map(|i| format!("{i}\n")).collect();
    assert_eq!(texts.concat(), expected);
    assert!(texts.len() < 20);
    k.shut_down();
}

#[test]
fn an_interrupt_ends_the_cell_and_control_answers_meanwhile() {
    let mut k = Setup::new();
    k.execute("wait");
    k.execute("never");
    k.wait_for("execute_input");
    let info = k.ask_control("kernel_info_request");
    assert_eq!(info.content["language_info"]["name"], "words");
    k.ask_control("interrupt_request");
    assert_eq!(k.reply()["ename"], "Interrupted");
    assert_eq!(k.reply(), json!({"status": "aborted"}));
    // Nothing runs: it must not hit the next cell.
    k.ask_control("interrupt_request");
    k.execute("cells");
    assert_eq!(k.reply()["execution_count"], 2);
    k.shut_down();
}

#[test]
fn what_was_queued_is_aborted_and_what_comes_later_is_not() {
    let mut k = Setup::new();
    ["fail", "a", "b"]
        .into_iter()
        .for_each(|code| k.execute(code));
    let statuses: Vec<_> = (0..3).map(|_| k.reply()["status"].clone()).collect();
    assert_eq!(statuses, ["error", "aborted", "aborted"]);
    k.execute("c");
    assert_eq!(k.reply()["status"], "ok");
    k.shut_down();
}

#[test]
fn a_question_goes_to_who_sent_the_cell() {
    let mut k = Setup::new();
    // A client is known only a moment after it was greeted; who gets a PONG is known.
    k.stdin.command("PING", &[0, 0]);
    k.stdin.next().unwrap();
    k.execute("ask");
    let question = k.codec.decode(k.stdin.receive()).unwrap();
    assert_eq!(question.kind(), "input_request");
    assert_eq!(question.content, json!({"prompt": "?", "password": false}));
    // Another client cannot answer for it.
    let wrong = k.request("input_reply", &json!({"value": "that"}));
    k.other_stdin.send(&wrong);
    thread::sleep(Duration::from_millis(100));
    let answer = k.request("input_reply", &json!({"value": "this"}));
    k.stdin.send(&answer);
    assert_eq!(k.reply()["status"], "ok");
    let shown = k.all_shown();
    assert!(shown.iter().any(|(_, c)| c["data"]["text/plain"] == "this"));
    k.shut_down();
}

#[test]
fn strangers_are_ignored() {
    let mut k = Setup::new();
    let stranger = Codec::new(b"guessed");
    for kind in ["execute_request", "shutdown_request"] {
        let frames = stranger.encode(&[], kind, &json!({}), &json!({}), &json!({"code": "x"}));
        k.shell.send(&frames);
        k.control.send(&frames);
    }
    k.shell.send(&[b"rubbish".to_vec()]);
    k.execute("cells");
    assert_eq!(k.all_shown()[2].1["data"]["text/plain"], "1");
    k.shut_down();
}

#[test]
fn shutting_down_stops_the_running_cell() {
    let mut k = Setup::new();
    k.execute("wait");
    k.wait_for("execute_input");
    k.shut_down();
}

#[test]
fn a_kernel_that_was_stopped_before_it_started_ends_at_once() {
    let folder = std::env::temp_dir().join(format!("kernel-{}", id::fresh()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("connection.json");
    let ports = connection::CHANNELS.map(|c| (format!("{c}_port"), json!(0)));
    let key = ("key".to_string(), json!("secret"));
    let content: serde_json::Map<_, _> = ports.into_iter().chain([key]).collect();
    std::fs::write(&file, Value::Object(content).to_string()).unwrap();
    let kernel = Kernel {
        signals: false,
        follow_parent: false,
        ..Kernel::default()
    };
    kernel.handle.stop();
    kernel.run(&file, Words::default()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
