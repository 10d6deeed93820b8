//! The kernel as a process: what strangers can do to it, and interrupts, of kernels and of scripts.
#![cfg(target_os = "linux")]

use super::folders::content;
use super::support::{Scratch, ergodic, text};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);
const CHANNELS: [&str; 5] = ["shell", "iopub", "stdin", "control", "hb"];

/// A kernel that runs, with at most 256 open files.
struct Kernel {
    process: Child,
    ports: Value,
    folder: Arc<Scratch>,
}

fn connection() -> Value {
    let mut content = json!({"ip": "127.0.0.1", "transport": "tcp", "key": "secret", "signature_scheme": "hmac-sha256"});
    for channel in CHANNELS {
        content[format!("{channel}_port")] = json!(0);
    }
    content
}

impl Kernel {
    fn start() -> Self {
        Self::start_in(Arc::new(Scratch::new()))
    }

    fn start_in(folder: Arc<Scratch>) -> Self {
        let file = folder.file("connection.json", connection().to_string());
        let process = Command::new("sh")
            .args(["-c", "ulimit -n 256; exec \"$0\" kernel start \"$1\""])
            .arg(env!("CARGO_BIN_EXE_ergodic"))
            .arg(&file)
            .current_dir(folder.join(""))
            .env("HOME", folder.join(""))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut kernel = Self {
            process,
            ports: json!(null),
            folder,
        };
        let begin = Instant::now();
        while kernel.ports["hb_port"].as_u64().unwrap_or(0) == 0 {
            assert!(begin.elapsed() < LIMIT, "the kernel does not start");
            std::thread::sleep(Duration::from_millis(20));
            let text = std::fs::read_to_string(kernel.folder.join("connection.json"));
            kernel.ports = serde_json::from_str(&text.unwrap()).unwrap_or_default();
        }
        kernel
    }

    fn connect(&self, channel: &str) -> TcpStream {
        let port = self.ports[format!("{channel}_port")].as_u64().unwrap() as u16;
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Connect and greet; an error if the kernel does not want another client.
    fn greet(&self, channel: &str) -> std::io::Result<TcpStream> {
        let mut stream = self.connect(channel);
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
        greeting[12..16].copy_from_slice(b"NULL");
        stream.write_all(&greeting)?;
        let kind = if channel == "iopub" { "SUB" } else { "DEALER" };
        let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
        ready.extend((kind.len() as u32).to_be_bytes());
        ready.extend(kind.as_bytes());
        stream.write_all(&[4, ready.len() as u8])?;
        stream.write_all(&ready)?;
        stream.read_exact(&mut greeting)?;
        Ok(stream)
    }

    /// MiB in memory.
    fn memory(&self) -> f64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
        let kib = line.split_whitespace().nth(1).unwrap();
        kib.parse::<f64>().unwrap() / 1024.0
    }

    fn files(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.process.id());
        std::fs::read_dir(folder).unwrap().count()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Send a signed request.
fn send(stream: &mut TcpStream, kind: &str, content: Value) {
    let number = Instant::now();
    let header = json!({"msg_id": format!("{number:?}"), "session": "s", "username": "u", "date": "", "msg_type": kind, "version": "5.3"});
    let parts = [header, json!({}), json!({}), content].map(|p| p.to_string().into_bytes());
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"secret").unwrap();
    parts.iter().for_each(|p| mac.update(p));
    let signature = mac.finalize().into_bytes();
    let signature: String = signature.iter().map(|b| format!("{b:02x}")).collect();
    let mut frames = vec![b"<IDS|MSG>".to_vec(), signature.into_bytes()];
    frames.extend(parts);
    for (i, frame) in frames.iter().enumerate() {
        let more = u8::from(i + 1 < frames.len());
        stream.write_all(&[2 | more]).unwrap();
        stream
            .write_all(&(frame.len() as u64).to_be_bytes())
            .unwrap();
        stream.write_all(frame).unwrap();
    }
}

/// Read until a text has come.
fn wait_for(stream: &mut TcpStream, text: &str) -> String {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let got = stream.read(&mut piece).expect("no answer");
        assert!(got > 0, "the kernel closed the connection");
        all.extend(&piece[..got]);
        let shown = String::from_utf8_lossy(&all);
        if shown.contains(text) {
            return shown.into_owned();
        }
    }
}

fn run_cell(stream: &mut TcpStream, code: &str) {
    send(
        stream,
        "execute_request",
        json!({"code": code, "silent": false, "user_expressions": {}, "allow_stdin": false}),
    );
}

#[test]
fn strangers_take_little_memory_give_it_back_and_keep_nobody_out() {
    let kernel = Kernel::start();
    let mut shell = kernel.greet("shell").unwrap();
    run_cell(&mut shell, "1 + 1");
    wait_for(&mut shell, "\"status\":\"ok\"");
    let before = kernel.memory();
    // 40 strangers on each channel: 200 of 1.6 MiB each were 310 MiB, and more open files than there may be.
    let all = (0..200).map(|i| kernel.greet(CHANNELS[i % 5]));
    let strangers: Vec<_> = all.flatten().collect();
    assert!(strangers.len() >= 100, "{} were let in", strangers.len());
    let with = kernel.memory();
    assert!(
        with < before + 120.0,
        "{before} MiB before, {with} with them"
    );
    assert!(kernel.files() < 200, "{} open files", kernel.files());
    let begin = Instant::now();
    run_cell(&mut shell, "2 + 2");
    wait_for(&mut shell, "\"status\":\"ok\"");
    assert!(
        begin.elapsed() < Duration::from_secs(3),
        "a cell had to wait"
    );
    drop(strangers);
    let begin = Instant::now();
    while kernel.memory() > before + 40.0 {
        assert!(
            begin.elapsed() < LIMIT,
            "{} MiB were kept",
            kernel.memory() - before
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut new = kernel.greet("shell").unwrap();
    run_cell(&mut new, "3 + 3");
    wait_for(&mut new, "\"status\":\"ok\"");
}

#[test]
fn what_is_not_signed_takes_little_memory() {
    let kernel = Kernel::start();
    let before = kernel.memory();
    // One that claims more than a message may have, and ten that send 15 MiB each and never end.
    let mut greedy = kernel.greet("shell").unwrap();
    greedy.write_all(&[2]).unwrap();
    greedy.write_all(&(700u64 << 20).to_be_bytes()).unwrap();
    let mut byte = [0; 64];
    assert!(matches!(
        std::iter::from_fn(|| Some(greedy.read(&mut byte)))
            .take(9)
            .last(),
        Some(Ok(0) | Err(_))
    ));
    let piece = vec![7; 1 << 20];
    let mut held = Vec::new();
    for _ in 0..10 {
        let mut stream = kernel.greet("shell").unwrap();
        stream.write_all(&[2]).unwrap();
        stream.write_all(&(16_000_000u64).to_be_bytes()).unwrap();
        // Those for whom nothing is left are cut off.
        let _ = (0..15).try_for_each(|_| stream.write_all(&piece));
        held.push(stream);
    }
    std::thread::sleep(Duration::from_millis(200));
    let with = kernel.memory();
    assert!(
        with < before + 110.0,
        "{before} MiB before, {with} with them"
    );
    let mut shell = kernel.greet("shell").unwrap();
    run_cell(&mut shell, "1 + 1");
    wait_for(&mut shell, "\"status\":\"ok\"");
}

#[test]
fn without_a_key_a_kernel_does_not_start() {
    let folder = Scratch::new();
    let start = |change: &dyn Fn(&mut Value)| {
        let mut content = connection();
        change(&mut content);
        let file = folder.file("connection.json", content.to_string());
        let output = ergodic()
            .args(["kernel", "start"])
            .arg(file)
            .output()
            .unwrap();
        (output.status.code(), text(&output))
    };
    for (change, part) in [
        (
            &(|c: &mut Value| drop(c.as_object_mut().unwrap().remove("key")))
                as &dyn Fn(&mut Value),
            "there is no key",
        ),
        (
            &|c: &mut Value| c["key"] = json!(5),
            "the key is 5, but must be a string",
        ),
        (
            &|c: &mut Value| (c["key"], c["ip"]) = (json!(""), json!("0.0.0.0")),
            "can be reached from other machines",
        ),
    ] {
        let (code, message) = start(change);
        assert_eq!(code, Some(1), "{message}");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn help_comes_as_a_page_and_wrong_code_is_called_so() {
    let kernel = Kernel::start();
    let mut shell = kernel.greet("shell").unwrap();
    run_cell(&mut shell, "sampler::sgld?");
    let answer = wait_for(&mut shell, "\"status\":\"ok\"");
    for part in ["\"source\":\"page\"", "text/markdown", "sampler::sgld("] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    for (code, status) in [
        ("1 )", "invalid"),
        ("f(", "incomplete"),
        ("%who", "complete"),
    ] {
        send(&mut shell, "is_complete_request", json!({"code": code}));
        wait_for(&mut shell, &format!("\"status\":\"{status}\""));
    }
}

/// What goes on for ever unless it is interrupted.
const ENDLESS: &[&str] = &[
    "loop {}",
    "sleep(3600)",
    "let t = target(potential::closure(1, |w| w[0]**2)); sweep(t, sampler::sgld(#{ step: 0.1, batch: 1 }), #{ steps: 100_000, every: 1, temperatures: [1.0], observe: [|s| { if s.step > 5 { loop {} } 1.0 }] });",
    "let t = target(potential::closure(1, |w| (w[0]**2 - 1)**2), #{ prior: prior::gaussian(1.0) }); laplace(t, parameters([0.3]), #{ polish: 1000000000 })",
];

#[test]
fn a_kernel_interrupts_whatever_a_cell_does() {
    let kernel = Kernel::start();
    let mut shell = kernel.greet("shell").unwrap();
    let mut control = kernel.greet("control").unwrap();
    for code in ENDLESS {
        run_cell(&mut shell, code);
        std::thread::sleep(Duration::from_millis(400));
        let begin = Instant::now();
        send(&mut control, "interrupt_request", json!({}));
        let answer = wait_for(&mut shell, "\"status\":");
        assert!(
            begin.elapsed() < Duration::from_millis(2500),
            "{code}: {:?}",
            begin.elapsed()
        );
        assert!(answer.contains("\"Interrupted\""), "{code}: {answer}");
    }
    run_cell(&mut shell, "1 + 1");
    wait_for(&mut shell, "\"status\":\"ok\"");
}

const MADE: &str = "let t = target(potential::gaussian(#{ dim: 3 }));";
const LONG: &str = "let run = sample(t, sampler::sgld(#{ step: 1e-2, gradient: gradient::full() }), #{ chains: 2, steps: 1_000_000, every: 1000, observe: [observable::norm2(), |s| s.params.sum()] });";

/// What the program says in a folder; whether it ends well.
fn said(folder: &Scratch, arguments: &[&str]) -> (bool, String) {
    let mut command = ergodic();
    let command = command.current_dir(folder.join("")).args(arguments);
    let output = command.output().unwrap();
    (output.status.success(), text(&output))
}

/// The first folder of a session, and the folder of the run that has a checkpoint there.
fn begun(folder: &Scratch) -> PathBuf {
    let begin = Instant::now();
    loop {
        let entries = folder.join("runs").read_dir().into_iter().flatten();
        for entry in entries.flatten() {
            if entry
                .path()
                .join("sample-1/checkpoint/current.safetensors")
                .exists()
            {
                return PathBuf::from("runs").join(entry.file_name());
            }
        }
        assert!(begin.elapsed() < LIMIT, "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_kernels_run_goes_on_in_another_and_its_cells_are_a_script() {
    for interrupted in [true, false] {
        let folder = Arc::new(Scratch::new());
        let kernel = Kernel::start_in(folder.clone());
        let mut shell = kernel.greet("shell").unwrap();
        run_cell(&mut shell, MADE);
        wait_for(&mut shell, "\"status\":\"ok\"");
        run_cell(&mut shell, LONG);
        let first = begun(&folder);
        if interrupted {
            let mut control = kernel.greet("control").unwrap();
            send(&mut control, "interrupt_request", json!({}));
            wait_for(&mut shell, "\"Interrupted\"");
        }
        drop(kernel);
        let run = first.join("sample-1").display().to_string();
        let (_, shown) = said(&folder, &["show", &run]);
        let on = format!("continue with %continue {run}");
        assert!(
            shown.contains("UNFINISHED at step") && shown.contains(&on),
            "{shown}"
        );
        assert!(!shown.contains("NaN"), "{shown}");
        assert!(
            interrupted || shown.contains("nothing is kept yet"),
            "{shown}"
        );

        let kernel = Kernel::start_in(folder.clone());
        let mut shell = kernel.greet("shell").unwrap();
        run_cell(&mut shell, &format!("%continue {run}"));
        let answer = wait_for(&mut shell, "\"status\":\"error\"");
        assert!(
            answer.contains("execute these first, then continue: In [1] (t)"),
            "{answer}"
        );
        for code in [MADE, &format!("%continue {run}"), "run.done", LONG] {
            run_cell(&mut shell, code);
            wait_for(&mut shell, "\"status\":\"ok\"");
        }
        drop(kernel);
        let whole = content(&folder.join(&run));
        let second = first.display().to_string().replace("-1", "-2");
        assert!(whole.len() > 4);
        assert!(
            whole == content(&folder.join(&second).join("sample-1")),
            "continued runs differ"
        );
        for session in [first.display().to_string(), second] {
            let cells = format!("{session}/cells.rhai");
            let (well, text) = said(
                &folder,
                &[
                    "run",
                    &cells,
                    "--out",
                    "again",
                    "--force",
                    "--allow-write",
                    "runs",
                ],
            );
            assert!(well, "{text}");
            assert!(
                whole == content(&folder.join("again/sample-1")),
                "{session}"
            );
        }
    }
}

#[test]
fn a_session_is_a_script_with_what_failed_as_comments() {
    let folder = Scratch::new();
    let mut child = ergodic();
    let child = child.current_dir(folder.join("")).arg("repl");
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let sample = |more: &str| {
        format!("sample(t, sampler::hmc(), #{{ steps: 400, chains: 2, every: 1{more} }})")
    };
    let lines = [
        "let t = target(potential::gaussian(#{ dim: 2 }));".to_string(),
        "fn times(x) { 2.0 * x }".into(),
        format!("let a = {};", sample(", name: \"a\"")),
        ":set --seed 5".into(),
        "fn times(x) { 3.0 * x }".into(),
        format!(
            "let a = {};",
            sample(", name: \"a\", observe: [|s| times(s.params.sum())]")
        ),
        format!("{}; throw \"enough\"", sample("")),
        format!("let b = {};", sample("")),
        ":continue runs/repl-1/a".into(),
    ];
    let mut input = child.stdin.take().unwrap();
    input
        .write_all((lines.join("\n") + "\n").as_bytes())
        .unwrap();
    drop(input);
    let session = text(&child.wait_with_output().unwrap());
    let cells = std::fs::read_to_string(folder.join("runs/repl-1/cells.rhai")).expect(&session);
    for part in [
        "// :set --seed 5\n",
        "; throw \"enough\"\n",
        "// ERROR: ",
        "enough",
        "\"seed\":5",
        "\"runs\":[\"a-2\"]",
        "// :continue runs/repl-1/a\nlet a",
    ] {
        assert!(cells.contains(part), "no {part} in\n{cells}");
    }
    let (well, text) = said(
        &folder,
        &["run", "runs/repl-1/cells.rhai", "--out", "again"],
    );
    assert!(well, "{text}");
    for run in ["a", "a-2", "sample-2"] {
        let here = content(&folder.join("runs/repl-1").join(run));
        assert!(here == content(&folder.join("again").join(run)), "{run}");
    }
    assert!(!folder.join("again/sample-1").exists());
}

fn interrupt(process: u32) {
    let kill = Command::new("kill")
        .args(["-INT", &process.to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// Run a script, interrupt it so many times, and get what it says, its exit code, and how long it went on after the first.
fn interrupted(
    folder: &Path,
    name: &str,
    source: &str,
    times: usize,
) -> (String, Option<i32>, Duration) {
    std::fs::write(folder.join(name), source).unwrap();
    let mut command = ergodic();
    command
        .arg("run")
        .arg(folder.join(name))
        .arg("--out")
        .arg(folder.join(format!("{name}.out")));
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let begin = Instant::now();
    for _ in 0..times {
        interrupt(child.id());
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    (text(&output), output.status.code(), begin.elapsed())
}

#[test]
fn the_first_interrupt_ends_a_script_and_says_what_is_kept() {
    let folder = Scratch::new();
    let says = [
        "interrupted: the script was stopped here",
        "interrupted: the script was stopped here",
        "'closure_1' did not end; its last checkpoint is kept: continue with --resume",
        "within a minimisation, which saves nothing",
    ];
    std::thread::scope(|scope| {
        for (i, (source, says)) in ENDLESS.iter().zip(says).enumerate() {
            let folder = folder.join("");
            scope.spawn(move || {
                let (message, code, time) = interrupted(&folder, &format!("{i}.rhai"), source, 1);
                assert_eq!(code, Some(130), "{source}\n{message}");
                assert!(time < Duration::from_millis(2500), "{source}: {time:?}");
                assert!(message.contains(says), "{source}\n{message}");
            });
        }
    });
    let (message, code, time) = interrupted(&folder.join(""), "twice.rhai", ENDLESS[2], 2);
    assert_eq!(code, Some(130), "{message}");
    assert!(time < Duration::from_millis(500), "{time:?}\n{message}");
}
