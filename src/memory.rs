//! Memory: say that something cannot fit before it is tried, because a failed allocation ends the process.

use crate::error::Result;

/// Fail if `bytes` do not fit into the memory that is free; `what` says what they are for.
pub fn check(bytes: u128, what: &str) -> Result<()> {
    let free = available_memory();
    anyhow::ensure!(
        free.is_none_or(|f| bytes <= f as u128),
        "{what} needs about {:.1} GiB of memory, but {:.1} GiB are free; ask for less",
        gib(bytes),
        gib(free.unwrap_or(0) as u128)
    );
    Ok(())
}

/// Bytes in GiB.
pub fn gib(bytes: u128) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

/// Bytes that can be allocated without swapping, where the system tells.
pub fn available_memory() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// Give memory that threads which ended left behind back to the system. Takes about a millisecond.
pub fn give_back() {
    // SAFETY: it may be called by any thread at any time; where mimalloc is not the allocator, it does nothing.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// Bytes of this process in memory now, where the system tells.
pub fn resident() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// The most bytes of this process that were in memory at one time, where the system tells.
pub fn peak() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// A line "name: 123 kB" of one of Linux's status files, in bytes.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|l| l.starts_with(name))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}
