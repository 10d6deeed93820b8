//! Cells of Rust: evcxr on a thread of its own.

use super::super::cell_protocol::{Mark, WANTED};
use super::commands::{Commands, optimise};
use super::folder::{CELLS, Prepared, Workshop};
use super::members::{Candidate, Members};
use super::streams::{Event, IDLE, RUNNING, Sink, Streams, lock};
use super::{complaint, value};
use crate::error::{Interrupted, Result};
use crate::front::display::Shown;
use crate::output;
use anyhow::{anyhow, bail};
use evcxr::{CommandContext, Error, EvalCallbacks, EvalContext, EvalOutputs};
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a cell failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// "CompilationError", "Error", "Panic", "Interrupted" or "ProcessDied".
    pub name: &'static str,
    /// What is to be shown.
    pub lines: Vec<String>,
    /// The same in colours, where they help.
    pub coloured: Vec<String>,
}

impl Trouble {
    fn new(name: &'static str, lines: Vec<String>) -> Self {
        let mut coloured = lines.clone();
        if let Some(first) = coloured.first_mut() {
            *first = format!("\x1b[31m{name}\x1b[0m: {first}");
        }
        Self {
            name,
            lines,
            coloured,
        }
    }
}

/// From, to, candidates.
pub type Found = (usize, usize, Vec<Candidate>);

/// What became of a cell, and what of it was compiled in the end.
type Executed = (std::result::Result<EvalOutputs, Error>, String);

enum Job {
    Execute(String, Sender<Executed>),
    Complete(String, usize, Sender<Option<Found>>),
    Inspect(String, usize, Sender<Option<(String, String)>>),
}

/// Rust, cell by cell. Variables live on.
pub struct Engine {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    streams: Arc<Streams>,
    /// What became of the start, until somebody has asked.
    ready: Mutex<Option<Receiver<std::result::Result<(), String>>>>,
    /// An interrupt was sent, and may not have been noticed.
    stale: AtomicBool,
    /// The source of what evcxr has made of the latest cell.
    program: PathBuf,
}

/// How cells are compiled in the beginning; `?` shows the whole chain of causes.
const SETTINGS: &str = ":efmt {:?}\n:opt 0\n";

/// What a user would write first. Once a cell has had a `?`, evcxr compiles those that follow for it at once, not after a failure.
const PRELUDE: &str = "use ergodic::prelude::*;\nuse ergodic::front::notebook::crates::*;\nergodic::front::notebook::prepare();\nOk::<(), String>(())?;";

/// What is no part of the library's names, because derived code names it: as the library has it.
pub(super) const SERDE: &str = "serde = { version = \"1\", features = [\"derive\"] }";

/// What makes a new process ready, and forgets an interrupt that came when the run it was meant for had just ended.
const REARM: &str =
    "ergodic::front::notebook::prepare();\nergodic::simulation::session::clear_interrupt();";

impl Engine {
    /// Start in the background; the first cell waits for it.
    pub fn start(prepared: Prepared) -> Result<Self> {
        anyhow::ensure!(cfg!(unix), "Rust cells need Linux or macOS");
        let workshop = Workshop::open(&prepared)?;
        let variables = surroundings(&prepared, &workshop.folder);
        let streams = Arc::new(Streams::new());
        let (jobs, queue) = mpsc::channel();
        let (tell, ready) = mpsc::channel();
        let own = streams.clone();
        let program = workshop.folder.join(CELLS).join("src/lib.rs");
        let thread = std::thread::Builder::new()
            .name("rust-cells".into())
            // rust-analyzer recurses deeply.
            .stack_size(64 << 20)
            .spawn(move || match context(&prepared, &own, variables) {
                Ok(context) => {
                    let _ = tell.send(Ok(()));
                    serve(&prepared, &workshop.folder, &own, context, &queue);
                    drop(workshop);
                }
                Err(e) => drop(tell.send(Err(format!("{e:#}")))),
            })?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            streams,
            ready: Mutex::new(Some(ready)),
            stale: AtomicBool::new(false),
            program,
        })
    }

    /// Compile everything once, in the prepared folder itself.
    pub(super) fn warm(prepared: &Prepared) -> Result<()> {
        let variables = surroundings(prepared, &prepared.template());
        let (mut context, outputs) = evaluator(variables)?;
        let quiet = outputs.stdout;
        std::thread::spawn(move || while quiet.recv().is_ok() {});
        std::thread::spawn(move || {
            while let Ok(line) = outputs.stderr.recv() {
                if Mark::parse(&line).is_none() {
                    output::remark(&line);
                }
            }
        });
        begin(prepared, &mut context)?;
        // A closure as a variable is an error, for whose message evcxr lets the compiler check what the cell depends on: that takes minutes too
        // the first time, as it would after a slip in somebody's cell.
        let _ = context.execute("let closure = |x: i32| x;");
        Ok(())
    }

    /// Wait until cells can be run, or until somebody interrupts.
    pub fn wait(&self) -> Result<()> {
        loop {
            let mut ready = lock(&self.ready);
            let Some(starting) = &*ready else {
                return Ok(());
            };
            match starting.recv_timeout(Duration::from_millis(50)) {
                Ok(Ok(())) => {
                    *ready = None;
                    self.streams.started();
                }
                Ok(Err(e)) => bail!("{e}"),
                Err(RecvTimeoutError::Disconnected) => bail!("Rust cells could not be started"),
                Err(RecvTimeoutError::Timeout)
                    if self.streams.interrupts.swap(0, Ordering::SeqCst) > 0 =>
                {
                    let what = "Rust was still being started, no cell was run".into();
                    return Err(Interrupted { what }.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Run a cell. Events come while it runs; returned is the value of its last expression, if that has one.
    pub fn execute(&self, code: &str, sink: Sink) -> std::result::Result<Option<Shown>, Trouble> {
        if let Err(e) = self.wait() {
            let lines = format!("{e:#}").lines().map(Into::into).collect();
            let name = match Interrupted::is(&e) {
                true => "Interrupted",
                false => "Error",
            };
            return Err(Trouble::new(name, lines));
        }
        if self.stale.swap(false, Ordering::SeqCst) {
            let _ = self.run(REARM, Box::new(|_| {}));
        }
        self.streams.record.begin(code);
        let result = self.run(code, sink);
        let error = result
            .as_ref()
            .err()
            .map(|trouble| trouble.lines.join("\n"));
        self.streams.record.end(error.as_deref());
        let interrupted = self.streams.interrupts.load(Ordering::SeqCst) > 0;
        let died = matches!(&result, Err(trouble) if trouble.name == "ProcessDied");
        let restarted = code.lines().any(|line| line.trim() == ":restart");
        self.stale
            .store(interrupted || died || restarted, Ordering::SeqCst);
        result
    }

    fn run(&self, code: &str, sink: Sink) -> std::result::Result<Option<Shown>, Trouble> {
        let s = &*self.streams;
        s.begin(sink);
        let (reply, answer) = mpsc::channel();
        let sent = self.send(Job::Execute(code.into(), reply));
        let result = sent.and_then(|()| answer.recv().ok());
        if s.phase.swap(IDLE, Ordering::SeqCst) == RUNNING {
            s.wait_for_ends();
        }
        let failed = lock(&s.failed).take();
        let mut held = s.held(failed.is_some());
        let (result, compiled) = result.unzip();
        let trouble = |name, lines| Err(Trouble::new(name, lines));
        let out = match (result, failed) {
            (None, _) => trouble(
                "ProcessDied",
                vec!["the evaluator has stopped; start anew".into()],
            ),
            (Some(Ok(_)), Some(how)) => {
                if how == "panic" {
                    let program = std::fs::read_to_string(&self.program).unwrap_or_default();
                    complaint::of_panic(&mut held, &compiled.unwrap_or_default(), &program);
                }
                let stopped = s.interrupts.load(Ordering::SeqCst) > 0;
                let name = match (
                    &*how,
                    stopped && held.iter().any(|l| l.starts_with("interrupted")),
                ) {
                    (_, true) => "Interrupted",
                    ("panic", _) => "Panic",
                    _ => "Error",
                };
                trouble(name, held)
            }
            (Some(Ok(outputs)), None) => {
                s.give(held);
                Ok(lock(&s.value).take().or_else(|| shown(&outputs)))
            }
            (Some(Err(e)), _) => {
                s.give(held);
                match s.killed.load(Ordering::SeqCst) {
                    true => trouble("Interrupted", vec!["the cell ran no simulation that could be stopped, so its process was ended; all variables are lost, definitions are kept".into()]),
                    false => Err(described(&e, code, &compiled.unwrap_or_default())),
                }
            }
        };
        *lock(&s.sink) = None;
        out
    }

    /// Ask the running cell to stop: a simulation does, and what the cell has defined before it is kept. Whoever asks again ends the
    /// process of the cells, and with it the variables. A cell that is still being compiled is asked as soon as it runs.
    pub fn interrupter(&self) -> Arc<dyn Fn() + Send + Sync> {
        let streams = self.streams.clone();
        Arc::new(move || streams.interrupt())
    }

    /// What could stand at a position in bytes: from, to, candidates. None while the start is not over.
    pub fn complete(&self, code: &str, at: usize) -> Option<Found> {
        self.ask(|reply| Job::Complete(code.into(), at, reply))
    }

    /// What is known of the name at a position in bytes, as text and as HTML.
    pub fn inspect(&self, code: &str, at: usize) -> Option<(String, String)> {
        self.ask(|reply| Job::Inspect(code.into(), at, reply))
    }

    fn ask<T>(&self, job: impl FnOnce(Sender<Option<T>>) -> Job) -> Option<T> {
        let mut ready = lock(&self.ready);
        if let Some(starting) = &*ready {
            let over = starting.try_recv().ok()?;
            // An error is for the next cell to tell.
            if let Err(e) = over {
                let (tell, again) = mpsc::channel();
                let _ = tell.send(Err(e));
                *ready = Some(again);
                return None;
            }
            *ready = None;
            self.streams.started();
        }
        drop(ready);
        let (reply, answer) = mpsc::channel();
        self.send(job(reply))?;
        answer.recv().ok()?
    }

    fn send(&self, job: Job) -> Option<()> {
        self.jobs.as_ref()?.send(job).ok()
    }
}

impl Drop for Engine {
    /// The folder of the session goes with its thread. One that is still starting, or in a cell, is left to the next session's cleaning.
    fn drop(&mut self) {
        self.jobs = None;
        let started = lock(&self.ready).is_none();
        let idle = self.streams.phase.load(Ordering::SeqCst) == IDLE;
        if let Some(thread) = self.thread.take().filter(|_| started && idle) {
            let _ = thread.join();
        }
    }
}

/// Tell evcxr and cargo, by the variables that they read, where to compile and with what. Returned is how those were that the cells are to see.
fn surroundings(prepared: &Prepared, folder: &Path) -> Vec<(String, Option<OsString>)> {
    let text = |s: &str| Some(s.into());
    let mut set: Vec<(&str, Option<OsString>)> = vec![
        ("EVCXR_TMPDIR", Some(folder.join(CELLS).into_os_string())),
        // Settings of other evcxr sessions would not fit what is compiled.
        (
            "EVCXR_CONFIG_DIR",
            Some(prepared.folder.join("config").into_os_string()),
        ),
    ];
    set.extend(
        prepared
            .toolchain
            .iter()
            .map(|t| ("RUSTUP_TOOLCHAIN", text(t))),
    );
    let own = set.len();
    set.extend(
        prepared
            .variables
            .iter()
            .map(|(name, v)| (&**name, v.as_deref().and_then(text))),
    );
    let before = set[own..]
        .iter()
        .map(|(name, _)| (name.to_string(), std::env::var_os(name)))
        .collect();
    for (name, value) in set {
        // SAFETY: called when the program starts its evaluator, before there are other threads that look at these.
        unsafe {
            match value {
                Some(value) => std::env::set_var(name, value),
                None => std::env::remove_var(name),
            }
        }
    }
    before
}

/// An evaluator whose cells run in this program, started anew.
fn evaluator(
    variables: Vec<(String, Option<OsString>)>,
) -> Result<(CommandContext, evcxr::EvalContextOutputs)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(WANTED, "1");
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // Ctrl-C on a terminal reaches all of a group; the cells get theirs from us.
        command.process_group(0);
    }
    let (context, outputs) = EvalContext::with_subprocess_command(command)
        .map_err(|e| anyhow!("evcxr does not start: {e}"))?;
    Ok((CommandContext::with_eval_context(context), outputs))
}

/// Load the library and the prelude.
fn begin(prepared: &Prepared, context: &mut CommandContext) -> Result<()> {
    let dependencies = format!(":dep {}\n:dep {SERDE}", prepared.dependency());
    let first = format!("{dependencies}\n{SETTINGS}{PRELUDE}");
    context
        .execute(&first)
        .map_err(|e| anyhow!("{}", described(&e, &first, &first).lines.join("\n")))?;
    Ok(())
}

/// Everything up to the first cell.
fn context(
    prepared: &Prepared,
    streams: &Arc<Streams>,
    variables: Vec<(String, Option<OsString>)>,
) -> Result<CommandContext> {
    let (mut context, outputs) = evaluator(variables)?;
    *lock(&streams.child) = Some(context.process_handle());
    streams.watch(outputs);
    begin(prepared, &mut context)?;
    Ok(context)
}

/// Do what is asked for, one after the other.
fn serve(
    prepared: &Prepared,
    workspace: &Path,
    streams: &Streams,
    mut context: CommandContext,
    queue: &Receiver<Job>,
) {
    let mut level = 0;
    let members = OnceCell::new();
    for job in queue {
        match job {
            Job::Execute(code, reply) => {
                let commands = match Commands::of(&code, prepared, level) {
                    Ok(commands) => commands,
                    Err(e) => {
                        drop(reply.send((Err(Error::Message(format!("{e:#}"))), code)));
                        continue;
                    }
                };
                if !commands.notes.is_empty() {
                    streams.tell(Event::Printed("stdout", commands.notes));
                }
                if let Some(new) = commands.level {
                    level = new;
                    if let Err(e) = optimise(workspace, level) {
                        streams.give(vec![format!(":opt {level} has no effect: {e:#}")]);
                    }
                }
                let code = commands.code;
                let mut run = |code: &str| {
                    context.execute_with_callbacks(code, &mut EvalCallbacks::default())
                };
                let mut compiled = value::shown(&code);
                let mut result = run(&compiled);
                // Some values only evcxr can show: those that are borrowed, or have a display of their own.
                if compiled != code && result.as_ref().is_err_and(cannot_show) {
                    result = run(&code);
                    compiled.clone_from(&code);
                }
                drop(reply.send((result, compiled)));
                // That has forgotten the library too.
                if code.lines().any(|line| line.trim() == ":clear") {
                    let _ = begin(prepared, &mut context);
                }
            }
            Job::Complete(code, at, reply) => {
                let found = context.completions(&code, at).ok().map(|c| {
                    let all = c.completions.into_iter().map(|c| (c.code, c.kind, c.label));
                    let members =
                        members.get_or_init(|| Members::of(&prepared.folder.join("source/src")));
                    let all = members.arrange(&code, c.start_offset, all.collect());
                    (c.start_offset, c.end_offset, all)
                });
                drop(reply.send(found));
            }
            Job::Inspect(code, at, reply) => {
                let rest = code.get(at..).unwrap_or_default();
                let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let end = at + word.unwrap_or(rest.len());
                drop(reply.send(context.hover_at(&code, end.min(code.len())).ok()));
            }
        }
    }
}

/// Whether a cell failed only because its value cannot be shown by us.
fn cannot_show(e: &Error) -> bool {
    const CODES: [&str; 5] = ["E0597", "E0521", "E0599", "E0716", "E0277"];
    let of = |e: &evcxr::CompilationError| e.code().is_some_and(|code| CODES.contains(&code));
    matches!(e, Error::CompilationErrors(all) if all.iter().any(of))
}

/// What evcxr itself has taken from the output of a cell: values without a display of ours, answers of its commands.
fn shown(outputs: &EvalOutputs) -> Option<Shown> {
    let get = |mime| outputs.get(mime).map(str::to_string);
    let out = Shown {
        text: get("text/plain").unwrap_or_default().trim_end().to_string(),
        html: get("text/html"),
        svg: get("image/svg+xml"),
        markdown: get("text/markdown"),
    };
    (out != Shown::default() && !(out.text == "()" && out.html.is_none())).then_some(out)
}

/// An error of evcxr: what the compiler says of the cell, and what was compiled of it.
fn described(e: &Error, code: &str, compiled: &str) -> Trouble {
    let lines = |text: String| text.lines().map(str::to_string).collect();
    match e {
        Error::CompilationErrors(all) => {
            let all = all.iter().map(|e| complaint::rendered(e, code, compiled));
            let text = all.collect::<Vec<_>>().join("\n");
            Trouble {
                name: "CompilationError",
                lines: lines(output::plain(&text)),
                coloured: lines(text),
            }
        }
        Error::SubprocessTerminated(text) => Trouble::new(
            "ProcessDied",
            lines(format!(
                "{text}\nthe process of the cells has ended; all variables are lost, definitions are kept"
            )),
        ),
        other => Trouble::new("Error", lines(other.to_string())),
    }
}
