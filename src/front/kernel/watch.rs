//! Watches for reasons to stop that do not come through a channel: signals, and the end of whoever started the kernel.
//!
//! Only on Unix: on Windows interrupts come as messages, and the parent as a handle that the standard library cannot wait for.

use super::handle::Handle;
use super::note::note;
use std::thread;
use std::time::Duration;

/// How often the parent is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// SIGINT interrupts the running cell, SIGTERM and SIGHUP stop the kernel.
pub fn signals(handle: Handle) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = match signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        Ok(signals) => signals,
        Err(e) => return note(format_args!("cannot watch for signals: {e}")),
    };
    let watch = move || {
        for signal in signals.forever() {
            match signal {
                // The kernel has ended, but the program has not: it must still be possible to end that.
                _ if !handle.is_attached() => {
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                SIGINT => handle.interrupt(),
                _ => handle.stop(),
            }
        }
    };
    start("kernel-signals", watch);
}

/// Stop the kernel when the process in `JPY_PARENT_PID` is gone: nobody else would, if it was killed.
pub fn parent(handle: Handle) {
    let number = std::env::var("JPY_PARENT_PID").ok();
    let Some(pid) = number.and_then(|n| n.trim().parse::<u32>().ok()) else {
        return;
    };
    // 0 and 1 mean that nobody is to be watched.
    if pid <= 1 {
        return;
    }
    let started_by = std::os::unix::process::parent_id();
    let proc = std::path::PathBuf::from(format!("/proc/{pid}"));
    // In a container, or where there is no /proc, only our own parent can be seen.
    let visible = proc.exists();
    let watch = move || {
        while std::os::unix::process::parent_id() == started_by && (!visible || proc.exists()) {
            thread::sleep(LOOK);
        }
        note(format_args!(
            "process {pid}, which started it, is gone; leaving too"
        ));
        handle.stop();
    };
    start("kernel-parent", watch);
}

fn start(name: &str, watch: impl FnOnce() + Send + 'static) {
    if let Err(e) = thread::Builder::new().name(name.into()).spawn(watch) {
        note(format_args!("cannot start the thread {name}: {e}"));
    }
}
