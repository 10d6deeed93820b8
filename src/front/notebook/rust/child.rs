//! The process that cells run in: this program again, started by evcxr. Between evcxr and the cells it marks when a cell begins to run,
//! fails and ends, which evcxr does not tell.

use super::super::cell_protocol::{self, Mark, START};
use crate::output;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// To be called before anything else: does not return if this is the process of the cells.
pub fn hook() {
    if std::env::var_os("EVCXR_IS_RUNTIME").is_some()
        && cell_protocol::wanted()
        && let Err(e) = mark()
    {
        output::remark(format_args!("cells run without marks: {e}"));
    }
    evcxr::runtime_hook();
}

/// The file behind a descriptor, which from now on leads to `instead`.
fn replace(descriptor: i32, instead: impl IntoRawFd) -> std::io::Result<File> {
    let instead = instead.into_raw_fd();
    // SAFETY: these calls take and return descriptors; both are open, and the copy belongs to nobody else.
    unsafe {
        let copy = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 || libc::dup2(instead, descriptor) < 0 {
            return Err(std::io::Error::last_os_error());
        }
        libc::close(instead);
        Ok(File::from_raw_fd(copy))
    }
}

/// Where a notice of evcxr's, or a mark, begins in a line.
fn notice(line: &[u8]) -> Option<usize> {
    const NOTICES: [&[u8]; 3] = [
        b"EVCXR_ERROR_OCCURRED",
        b"EVCXR_PANIC_NOTIFICATION",
        b"EVCXR_EXECUTION_COMPLETE",
    ];
    let mark = || {
        line.windows(START.len())
            .position(|w| w == START.as_bytes())
    };
    let found = NOTICES.iter().find(|n| line.ends_with(n));
    found.map(|n| line.len() - n.len()).or_else(mark)
}

/// End what else was started for the folder of this session: cargo and what it has started.
fn end_compilers() {
    let Some(folder) = std::env::var_os("EVCXR_TMPDIR") else {
        return;
    };
    let wanted = [b"EVCXR_TMPDIR=", folder.as_encoded_bytes()].concat();
    // Elsewhere than on Linux there is no such folder, and cargo goes on to its end.
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = process.file_name().to_str().and_then(|n| n.parse().ok());
        let Some(id) = id.filter(|id: &i32| u32::try_from(*id) != Ok(std::process::id())) else {
            continue;
        };
        let variables = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if variables.split(|b| *b == 0).any(|v| v == wanted) {
            // SAFETY: a signal to a process that was started for this session.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    }
}

/// Put threads between evcxr and standard input and output.
fn mark() -> std::io::Result<()> {
    let (printed, writer) = std::io::pipe()?;
    let out = Arc::new(Mutex::new(replace(1, writer)?));
    let (reader, mut commands) = std::io::pipe()?;
    let input = replace(0, reader)?;
    debug_assert!(input.as_raw_fd() > 2);
    let send = |out: &Mutex<File>, line: &[u8]| {
        let mut out = out.lock().unwrap_or_else(|e| e.into_inner());
        // If evcxr is gone, so is the reason to go on.
        if out.write_all(line).is_err() {
            std::process::exit(0);
        }
    };
    let marks_to = out.clone();
    let heard = Arc::new(AtomicBool::new(false));
    let is_heard = heard.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(input).split(b'\n') {
            let Ok(mut line) = line else { break };
            line.push(b'\n');
            if line.starts_with(b"LOAD_AND_RUN ") {
                // Nobody hears of the cell that evcxr itself runs first, and it would wait for that.
                let first = String::from_utf8_lossy(&line).contains("libcode_1.");
                heard.store(!first, Ordering::SeqCst);
                if !first {
                    send(&marks_to, Mark::Running.line().as_bytes());
                }
            }
            if commands.write_all(&line).is_err() {
                break;
            }
        }
        // Whoever ran the cells is gone, and neither a cell that still runs nor a compiler must stay behind.
        end_compilers();
        std::process::exit(0);
    });
    std::thread::spawn(move || {
        for line in BufReader::new(printed).split(b'\n') {
            let Ok(mut line) = line else { break };
            // What a cell has printed without an end of line stands before it, and evcxr would not know it.
            if let Some(at) = notice(&line).filter(|at| *at > 0) {
                let rest = line.split_off(at);
                line.push(b'\n');
                send(&out, &line);
                line = rest;
            }
            match &line[..] {
                _ if !is_heard.load(Ordering::SeqCst) => {}
                b"EVCXR_ERROR_OCCURRED" => {
                    send(&out, Mark::Failed("error".into()).line().as_bytes())
                }
                b"EVCXR_PANIC_NOTIFICATION" => {
                    send(&out, Mark::Failed("panic".into()).line().as_bytes());
                }
                b"EVCXR_EXECUTION_COMPLETE" => {
                    let done = Mark::Done.line();
                    let _ = std::io::stderr().write_all(done.as_bytes());
                    send(&out, done.as_bytes());
                }
                _ => {}
            }
            line.push(b'\n');
            send(&out, &line);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_found_behind_what_has_no_end_of_line() {
        assert_eq!(notice(b"99 %EVCXR_EXECUTION_COMPLETE"), Some(4));
        assert_eq!(notice(b"EVCXR_ERROR_OCCURRED"), Some(0));
        let mark = format!("text{}", Mark::Done.line());
        assert_eq!(notice(mark.trim_end().as_bytes()), Some(4));
        assert_eq!(notice(b"EVCXR_ERROR_OCCURRED, they say"), None);
    }
}
