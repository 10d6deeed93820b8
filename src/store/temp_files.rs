//! Temporary names beside a path, and what killed processes left under them.
//!
//! A name is `<file>.<role>-<pid>-<start>-<count>`. The first two numbers identify a process even where process ids are
//! reused at once (a container starts with the same id each time), the third tells its writes apart.

use super::disk;
use crate::platform;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A suffix that no other write has.
pub(super) fn suffix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!(
        "{}-{}",
        this_process(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The name beside `path` for a role ("tmp": not complete yet, "old": about to be deleted).
pub(super) fn name(path: &Path, role: &str, suffix: &str) -> PathBuf {
    let mut file = path.file_name().unwrap_or_default().to_owned();
    file.push(format!(".{role}-{suffix}"));
    disk::folder(path).join(file)
}

/// The suffixes of all names beside `path` that have this role.
pub(super) fn suffixes(path: &Path, role: &str) -> Vec<String> {
    let mut prefix = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    prefix.push_str(&format!(".{role}-"));
    disk::entries(disk::folder(path))
        .filter_map(|e| Some(e.file_name().to_str()?.strip_prefix(&prefix)?.to_owned()))
        .collect()
}

/// Deletes what killed processes left beside `path`. A failure to delete costs disk space only, so it is not an error.
pub(super) fn sweep(path: &Path) {
    for role in ["tmp", "old"] {
        for suffix in suffixes(path, role).iter().filter(|s| is_left_over(s)) {
            remove(&name(path, role, suffix));
        }
    }
}

/// Deletes a file or a folder, if it can.
pub(super) fn remove(path: &Path) {
    let _ = disk::remove(path);
}

/// Whether something of this name was left by a process that is gone.
pub(super) fn is_left(name: &str) -> bool {
    endings(name).any(is_left_over)
}

/// Whether a process has given this name to what it had not written to its end, or was about to delete.
pub(crate) fn is_temporary(name: &str) -> bool {
    endings(name).any(|suffix| numbers(suffix).is_some())
}

/// What may be the suffix in a name.
fn endings(name: &str) -> impl Iterator<Item = &str> {
    let roles = [".tmp-", ".old-"].into_iter();
    roles.filter_map(|role| name.rsplit_once(role).map(|(_, suffix)| suffix))
}

/// The process, its start and its count of a suffix; none of one of another form, which is not ours to delete.
fn numbers(suffix: &str) -> Option<[u64; 3]> {
    let all: Vec<_> = suffix
        .split('-')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    all.try_into().ok()
}

/// Whether the process that wrote this suffix is gone.
fn is_left_over(suffix: &str) -> bool {
    let Some([id, began, _]) = numbers(suffix) else {
        return false;
    };
    if id == u64::from(std::process::id()) {
        return format!("{id}-{began}") != this_process();
    }
    // Where there is no /proc, another id counts as gone: two processes do not share a run directory. A process that is younger than what it
    // should have written has got the id of one that is gone; clocks may have been set meanwhile.
    let later = |age: Duration| {
        platform::start_of(id).is_some_and(|at| at > UNIX_EPOCH + Duration::from_nanos(began) + age)
    };
    !Path::new("/proc").join(id.to_string()).exists() || later(Duration::from_secs(60))
}

/// "<process id>-<time of the first write in nanoseconds>".
pub(super) fn this_process() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| {
        let start = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64);
        format!("{}-{start}", std::process::id())
    })
}
