//! Room for values that are nested deeply: interpreting, comparing, printing and dropping them takes stack for every level.

use crate::memory::available_memory;
use std::thread::Builder;

/// What a level takes, at most about a kilobyte, is enough here for a million of them.
const MOST: u64 = 1 << 30;
const LEAST: u64 = 64 << 20;
/// Threads that run closures have less, because there are many of them.
const OF_OTHERS: u64 = 64 << 20;

/// Run the program on a thread with a large stack, of which only what is used is ever taken; other threads get larger ones too. What ends the
/// process all the same ends it with a message and the exit code of an error.
///
/// To be called before there are other threads.
pub fn with_room<T: Send + 'static>(program: fn() -> T) -> T {
    say_why_it_ends();
    // A limit of address space counts what is not used, too.
    let part = |of: u64| available_memory().map_or(u64::MAX, |m| m / of);
    if std::env::var_os("RUST_MIN_STACK").is_none() {
        let size = part(256).clamp(4 << 20, OF_OTHERS);
        // SAFETY: no other thread is running yet.
        unsafe { std::env::set_var("RUST_MIN_STACK", size.to_string()) };
    }
    let size = part(16).clamp(LEAST, MOST) as usize;
    let spawned = Builder::new()
        .name("main".into())
        .stack_size(size)
        .spawn(program);
    match spawned.map(|thread| thread.join()) {
        Ok(Ok(out)) => out,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // No room for it: as large as the system made the first one.
        Err(_) => program(),
    }
}

/// An allocation that fails and a stack that is full abort the process, and what is read of a mapped file beyond its end is a bus error; nothing
/// can be unwound then.
#[cfg(unix)]
fn say_why_it_ends() {
    use signal_hook::consts;
    let ends = [
        (
            consts::SIGABRT,
            "not enough memory, or values nested too deeply (see above); ask for less",
        ),
        // Elsewhere a full stack is a bus error, too, and says so itself.
        #[cfg(target_os = "linux")]
        (
            consts::SIGBUS,
            "a file of mapped data became shorter while it was read, or cannot be read any more; restore it, or leave out `mapped`",
        ),
    ];
    for (signal, why) in ends {
        let text = format!("error: {why}. What was checkpointed can be continued with --resume\n");
        let end = move || {
            // Straight to the descriptor: nothing may be allocated or locked here.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
            signal_hook::low_level::exit(1);
        };
        // SAFETY: the action only writes and ends the process. Standard error is not buffered, and its lock is one that the same thread may take again.
        let registered = unsafe { signal_hook::low_level::register(signal, end) };
        // Without it such an end is silent, as everywhere.
        drop(registered);
    }
}

#[cfg(not(unix))]
fn say_why_it_ends() {}
