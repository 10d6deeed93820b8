//! A Jupyter kernel around an [`Evaluator`]: it speaks version 5.4 of Jupyter's protocol over its own small ZeroMQ.
//!
//! [`Kernel::run`] turns the thread that calls it into the one that evaluates: cells, and in their order also everything else
//! of the shell channel (completion, inspection, history, …), which therefore waits while a cell runs. The control channel
//! (interrupt, shutdown, and what needs no evaluator) and the heartbeat have threads of their own and always answer.

//!
//! What the program writes to its own standard output goes to the terminal of the Jupyter server: whatever belongs into the
//! notebook goes through [`Output`], from any thread, also after its cell has ended. Jupyter sends interrupts as messages
//! (`interrupt_mode: message`); signals are for who starts a kernel by hand. When the kernel must end, the running cell is
//! interrupted and has `grace` to stop.
//!
//! **Why an own ZeroMQ.** Only binding sockets of two kinds are needed, ROUTER and XPUB, over TCP and Unix sockets without
//! encryption: about 900 lines in `zmtp`, without a dependency. Of the crate `zeromq` 0.7.0 (56 crates, async) we found that one
//! suspended client stops the output of all, and that nine bytes from anyone who can connect abort the process by claiming a huge
//! frame. Here a client that does not read costs at most 64 MiB and one wait of 2 s, and what strangers can make the kernel hold is
//! bounded, as `zmtp` says.
//!
//! Not there: comms (widgets), subshells, a debugger, CURVE encryption; Windows is written for, but was not tried.

mod channels;
mod connection;
pub mod cursor;
mod evaluator;
mod glob;
mod handle;
mod history;
mod id;
mod iopub;
pub mod kernelspec;
mod language;
mod message;
mod note;
mod output;
mod requests;
mod rich;
mod signature;
mod state;
mod stdin;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod watch;
mod zmtp;

pub use evaluator::{Completeness, Completions, Evaluator, Failure, Match, Outcome};
pub use handle::Handle;
pub use iopub::Stream;
pub use language::{Info, Interrupter};
pub use output::Output;
pub use rich::Rich;

use anyhow::{Context, Result};
use channels::Channels;
use connection::Connection;
use history::History;
use message::Codec;
use note::note;
use requests::{Shell, control};
use serde_json::json;
use state::{Core, Work};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Read bytes as what a client sends: for `tests/fuzz`.
#[cfg(fuzzing)]
pub fn fuzz(mut bytes: &[u8]) {
    let allowance = zmtp::allowance();
    while let Ok(item) = zmtp::read(&mut bytes, &allowance) {
        if let zmtp::Item::Message(frames) = item {
            // Without a key, any signature will do.
            let _ = Codec::new(b"").decode(frames);
        }
    }
}

/// How long clients may take to get the last messages.
const FAREWELL: Duration = Duration::from_secs(1);

/// A kernel and its settings.
#[derive(Clone)]
pub struct Kernel {
    /// File that keeps the history from one kernel to the next.
    pub history: Option<PathBuf>,
    /// How long a cell may take to stop when the kernel must, before the process exits without it.
    pub grace: Duration,
    /// Whether SIGINT interrupts the running cell, and SIGTERM and SIGHUP stop the kernel. Handlers that were there before are
    /// called too: a program that has its own should not install them, or set this to false and use `handle`. Only on Unix.
    pub signals: bool,
    /// Whether to stop when the process in `JPY_PARENT_PID` is gone. Only on Unix.
    pub follow_parent: bool,
    /// Stops a cell or the kernel from other threads; keep a clone.
    pub handle: Handle,
}

impl Default for Kernel {
    fn default() -> Self {
        Self {
            history: None,
            grace: Duration::from_secs(10),
            signals: true,
            follow_parent: true,
            handle: Handle::default(),
        }
    }
}

impl Kernel {
    /// Serve clients until one of them asks for a shutdown. The calling thread evaluates, so neither must the evaluator be
    /// `Sync` nor even `Send`.
    pub fn run(self, connection_file: &Path, evaluator: impl Evaluator) -> Result<()> {
        let mut connection = Connection::read(connection_file)?;
        if let Some(warning) = connection.warning() {
            note(warning);
        }
        let history = History::open(self.history.as_deref()).or_else(|e| {
            // Not worth keeping anyone from working.
            note(format_args!("{e:#}"));
            History::open(None)
        })?;
        let codec = Arc::new(Codec::new(&connection.key));
        let (shell_work, shell_queue) = mpsc::channel();
        let (control_work, control_queue) = mpsc::channel();
        let channels = Channels::bind(
            &mut connection,
            &codec,
            shell_work.clone(),
            control_work.clone(),
        )?;
        let core = Arc::new(Core {
            codec,
            info: evaluator.info(),
            iopub: channels.iopub,
            stdin: channels.stdin,
            usage: Default::default(),
            handle: self.handle.clone(),
        });
        self.attach(&core, &evaluator, shell_work);
        let (flushing, controlled) = (core.clone(), core.clone());
        start("kernel-flush", move || flushing.iopub.flush_when_due())?;
        start("kernel-control", move || {
            control::serve(&controlled, &control_queue);
        })?;
        core.iopub.status(&json!({}), "starting");
        Shell::new(core.clone(), evaluator, history).serve(&shell_queue);
        drop(control_work.send(Work::Stop));
        core.iopub.close(FAREWELL);
        core.stdin.close();
        for socket in [channels.shell, channels.control] {
            socket.drain(FAREWELL);
        }
        drop(channels.heartbeat);
        self.handle.detach();
        Ok(())
    }

    /// Let signals, the parent and our own handle reach the running kernel.
    fn attach(&self, core: &Arc<Core>, evaluator: &impl Evaluator, work: mpsc::Sender<Work>) {
        let interrupter = evaluator.interrupter();
        let asking = Arc::downgrade(core);
        let interrupt = Arc::new(move || {
            interrupter();
            if let Some(core) = asking.upgrade() {
                core.stdin.interrupt();
            }
        });
        let wake = move || drop(work.send(Work::Stop));
        self.handle.attach(interrupt, wake, self.grace);
        #[cfg(unix)]
        {
            if self.signals {
                watch::signals(self.handle.clone());
            }
            if self.follow_parent {
                watch::parent(self.handle.clone());
            }
        }
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .with_context(|| format!("cannot start the thread {name}"))?;
    Ok(())
}
