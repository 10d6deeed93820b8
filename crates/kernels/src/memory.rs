//! Memory: say that something cannot fit before it is tried, because a failed allocation ends the process.
//!
//! What is free is the least of what the machine has, what the cgroups of the process leave (containers, SLURM jobs), and what its own
//! limits (`ulimit -v`, `ulimit -d`, [`limit`]) leave.

use crate::Result;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

/// Requests of fewer bytes pass unasked: finding out what is free takes longer than making them.
const SMALL: u128 = 16 << 20;
/// Bytes that must be left: allocators take memory in pieces of this order.
const SPARE: u64 = 64 << 20;

/// What is asked at every request whether it is refused.
type Watch = Box<dyn Fn() -> bool + Send + Sync>;

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Let `by` refuse requests of this process, of any size, from now on: what does not fit on a machine with less memory is tested on this one.
///
/// # Panics
/// If requests are watched already.
pub fn watch(by: impl Fn() -> bool + Send + Sync + 'static) {
    let set = WATCH.set(Box::new(by));
    assert!(set.is_ok(), "requests of memory are watched already");
}

/// Fail if `bytes` do not fit into the memory that is free; `what` says what they are for.
pub fn check(bytes: u128, what: &str) -> Result<()> {
    if WATCH.get().is_some_and(|refuses| refuses()) {
        anyhow::bail!("{what}: {} of memory are refused", shown(bytes));
    }
    if bytes <= SMALL {
        return Ok(());
    }
    match Machine::this().free() {
        Some(free) if bytes > free.bytes.saturating_sub(SPARE) as u128 => anyhow::bail!(
            "{what}: about {} of memory are needed, but {} are free ({}); ask for less",
            shown(bytes),
            shown(free.bytes as u128),
            free.of
        ),
        _ => Ok(()),
    }
}

/// The same, where saying what they are for takes time.
pub fn check_lazily(bytes: u128, what: impl FnOnce() -> String) -> Result<()> {
    match bytes <= SMALL && WATCH.get().is_none() {
        true => Ok(()),
        false => check(bytes, &what()),
    }
}

/// Fail if so many elements of a type do not fit into the memory that is free; `what` says what they are for.
pub fn check_elements<T>(counts: &[usize], what: &str) -> Result<()> {
    let bytes = counts
        .iter()
        .try_fold(size_of::<T>() as u128, |n, c| n.checked_mul(*c as u128));
    check(bytes.unwrap_or(u128::MAX), what)
}

/// The smallest limit: the program itself takes some, and so many must be left.
const LEAST: u64 = 4 * SPARE;

/// The most bytes of this process that may be in memory, and what is called when there are more all the same.
static LIMIT: OnceLock<(u64, fn())> = OnceLock::new();

/// Let this process have so many bytes in memory at most, from now on and for all of its life. What would take more is refused; if there are more all the
/// same, because they were asked for little by little, `over` is called on another thread.
///
/// Pages of files that are mapped do not count, which can be read again.
///
/// # Errors
/// If the system does not tell how many there are, they are too few to begin with, or there is a limit already.
pub fn limit(bytes: u64, over: fn()) -> Result<()> {
    anyhow::ensure!(
        Machine::this().taken().is_some(),
        "this system does not tell how much memory a process has, so it cannot be limited"
    );
    anyhow::ensure!(
        bytes >= LEAST,
        "a limit of {} of memory is too small: at least {} are needed",
        shown(bytes.into()),
        shown(LEAST.into())
    );
    anyhow::ensure!(
        LIMIT.set((bytes, over)).is_ok(),
        "the memory of this process is limited already"
    );
    is_short();
    Ok(())
}

/// Whether hardly any memory is left. Asking costs nothing: a thread looks now and then, the more often the less there is.
pub fn is_short() -> bool {
    static SHORT: AtomicBool = AtomicBool::new(false);
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let watch = || {
            while let Some(free) = Machine::this().free() {
                SHORT.store(free.bytes < 2 * SPARE, Ordering::Relaxed);
                if let Some((most, over)) = LIMIT.get()
                    && Machine::this().taken().is_some_and(|bytes| bytes > *most)
                {
                    // It ends the process, which may take a moment.
                    return over();
                }
                // No program fills memory faster than this.
                let seconds = free.bytes as f64 / (8u64 << 30) as f64;
                std::thread::sleep(Duration::from_secs_f64(seconds.clamp(0.005, 0.5)));
            }
        };
        // Without the thread nothing is short, as where the system does not tell.
        drop(
            std::thread::Builder::new()
                .name("memory".into())
                .spawn(watch),
        );
    });
    SHORT.load(Ordering::Relaxed)
}

/// Something that grows while it is read, and is checked whenever it has doubled.
pub struct Growing<'a> {
    what: &'a str,
    checked: u128,
}

impl<'a> Growing<'a> {
    /// Something of no size yet; `what` says what it is.
    pub fn new(what: &'a str) -> Self {
        Self {
            what,
            checked: SMALL / 2,
        }
    }

    /// Fail if it has so many bytes now and could not double: that is how vectors grow.
    pub fn reached(&mut self, bytes: usize) -> Result<()> {
        if bytes as u128 > self.checked {
            self.checked = 2 * bytes as u128;
            check(self.checked, self.what)?;
        }
        Ok(())
    }
}

/// Bytes in GiB.
pub fn gib(bytes: u128) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

/// Bytes as a person reads them.
fn shown(bytes: u128) -> String {
    match gib(bytes) {
        x if x < 0.1 => format!("{:.0} MiB", 1024.0 * x),
        x if x < 1e5 => format!("{x:.1} GiB"),
        x => format!("{x:.1e} GiB"),
    }
}

/// Bytes that can be allocated without swapping and without leaving a limit, where the system tells.
pub fn available_memory() -> Option<u64> {
    Machine::this().free().map(|f| f.bytes)
}

/// Give memory that threads which ended left behind back to the system. Takes about a millisecond.
pub fn give_back() {
    // SAFETY: it may be called by any thread at any time; where mimalloc is not the allocator, it does nothing.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// Bytes of this process in memory now, where the system tells.
pub fn resident() -> Option<u64> {
    Machine::this().field("proc/self/status", "VmRSS:")
}

/// The most bytes of this process that were in memory at one time, where the system tells.
pub fn peak() -> Option<u64> {
    Machine::this().field("proc/self/status", "VmHWM:")
}

/// Bytes of the whole machine that Linux's /proc/meminfo has under `name`, as "MemTotal:"; none elsewhere.
pub fn of_machine(name: &str) -> Option<u64> {
    Machine::this().field("proc/meminfo", name)
}

/// Bytes that are free, and what limits them.
#[derive(Debug, PartialEq)]
struct Free {
    bytes: u64,
    of: &'static str,
}

/// The system's files about memory, below a folder that is `/` but in tests.
struct Machine(PathBuf);

impl Machine {
    fn this() -> Self {
        Self("/".into())
    }

    /// The least of all that is free.
    fn free(&self) -> Option<Free> {
        let some = |bytes: Option<u64>, of| bytes.map(|bytes| Free { bytes, of });
        let all = [
            some(
                self.field("proc/meminfo", "MemAvailable:"),
                "of the machine",
            ),
            some(
                self.left_by_cgroups(),
                "limit of the container or job, a cgroup",
            ),
            some(
                self.left_by_ulimit("Max address space", "VmSize:"),
                "limit of address space, ulimit -v",
            ),
            some(
                self.left_by_ulimit("Max data size", "VmData:"),
                "limit of data, ulimit -d",
            ),
            some(
                LIMIT
                    .get()
                    .and_then(|(most, _)| Some(most.saturating_sub(self.taken()?))),
                "limit of this program, --max-memory",
            ),
        ];
        all.into_iter().flatten().min_by_key(|f| f.bytes)
    }

    /// Bytes of this process that no file has, in memory or swapped.
    fn taken(&self) -> Option<u64> {
        let of = |name| self.field("proc/self/status", name);
        Some(of("RssAnon:")? + of("VmSwap:").unwrap_or(0))
    }

    fn read(&self, file: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.0.join(file)).ok()
    }

    /// A line "name: 123 kB" of one of Linux's status files, in bytes.
    fn field(&self, file: &str, name: &str) -> Option<u64> {
        let text = self.read(file)?;
        let line = text.lines().find(|l| l.starts_with(name))?;
        let kib = line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
        Some(kib * 1024)
    }

    /// What a limit of the process leaves: a line "name  soft  hard  bytes", less what is used.
    fn left_by_ulimit(&self, name: &str, used: &str) -> Option<u64> {
        let text = self.read("proc/self/limits")?;
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        // "unlimited" is no number.
        let limit = line.split_whitespace().next()?.parse::<u64>().ok()?;
        Some(limit.saturating_sub(self.field("proc/self/status", used)?))
    }

    /// What the cgroups of the process and those above them leave; both versions, either of which a machine may have.
    fn left_by_cgroups(&self) -> Option<u64> {
        let text = self.read("proc/self/cgroup")?;
        let each = text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            let path = Path::new(path);
            match controllers {
                // Within a container its own cgroup is the root of what it sees, whatever its name outside: the ancestors include that.
                "" => ["sys/fs/cgroup", "sys/fs/cgroup/unified"]
                    .into_iter()
                    .filter_map(|mount| {
                        self.least(
                            mount,
                            path,
                            ["memory.max", "memory.current", "inactive_file"],
                        )
                    })
                    .min(),
                c if c.split(',').any(|c| c == "memory") => self.least(
                    "sys/fs/cgroup/memory",
                    path,
                    [
                        "memory.limit_in_bytes",
                        "memory.usage_in_bytes",
                        "total_inactive_file",
                    ],
                ),
                _ => None,
            }
        });
        each.min()
    }

    /// The least that a cgroup and its ancestors leave: limit less use, of which cached files do not count, because they are given back.
    fn least(&self, mount: &str, path: &Path, [limit, used, cached]: [&str; 3]) -> Option<u64> {
        let of = |folder: &Path| {
            let folder = Path::new(mount).join(folder);
            let number = |name: &str| self.read(folder.join(name))?.trim().parse::<u64>().ok();
            // "max" is no number; version 1 has one that is larger than any memory.
            let limit = number(limit).filter(|l| *l < 1 << 60)?;
            let stat = self.read(folder.join("memory.stat")).unwrap_or_default();
            let cached = stat
                .lines()
                .find_map(|l| l.strip_prefix(cached)?.trim().parse::<u64>().ok());
            let used = number(used)
                .unwrap_or(0)
                .saturating_sub(cached.unwrap_or(0));
            Some(limit.saturating_sub(used))
        };
        path.ancestors().filter_map(of).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and contents.
    type Files<'a> = &'a [(&'a str, &'a str)];

    /// A machine with 8 GiB free, and these files.
    fn machine(name: &str, files: Files) -> Machine {
        let root =
            std::env::temp_dir().join(format!("ergodic-memory-{name}-{}", std::process::id()));
        let status = "Name:\tx\nVmSize:\t 2097152 kB\nVmData:\t 1048576 kB\n";
        let all = [
            ("proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 8388608 kB\n"),
            ("proc/self/status", status),
        ];
        for (file, text) in all.iter().chain(files) {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Machine(root)
    }

    #[test]
    fn the_least_limit_holds() {
        const GIB: u64 = 1 << 30;
        let limits = "Max data size   unlimited  unlimited  bytes\nMax address space  5368709120  unlimited  bytes\n";
        let v2 = [
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
            ("sys/fs/cgroup/job/memory.max", "4294967296\n"),
            ("sys/fs/cgroup/job/memory.current", "3221225472\n"),
            (
                "sys/fs/cgroup/job/memory.stat",
                "anon 1\ninactive_file 1073741824\n",
            ),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
        ];
        // Outside it is called otherwise than inside, where it is the root.
        let container = [
            ("proc/self/cgroup", "0::/docker/abc\n"),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/memory.current", "0\n"),
        ];
        let v1 = [
            (
                "proc/self/cgroup",
                "5:cpu,cpuacct:/x\n4:memory:/slurm/job\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes",
                "3221225472\n",
            ),
            (
                "sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes",
                "2147483648\n",
            ),
            (
                "sys/fs/cgroup/memory/slurm/job/memory.stat",
                "total_inactive_file 1073741824\n",
            ),
        ];
        let cases: [(&str, Files, u64, &str); 5] = [
            ("none", &[], 8 * GIB, "machine"),
            (
                "ulimit",
                &[("proc/self/limits", limits)],
                3 * GIB,
                "ulimit -v",
            ),
            ("v2", &v2, 2 * GIB, "cgroup"),
            ("container", &container, GIB, "cgroup"),
            ("v1", &v1, 2 * GIB, "cgroup"),
        ];
        for (name, files, bytes, of) in cases {
            let m = machine(name, files);
            let free = m.free().unwrap();
            assert_eq!(free.bytes, bytes, "{name}");
            assert!(free.of.contains(of), "{name}: {}", free.of);
            std::fs::remove_dir_all(m.0).unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_size() {
        assert!(check(1 << 20, "a little").is_ok());
        let e = check_elements::<f64>(&[usize::MAX, 16], "a lot")
            .unwrap_err()
            .to_string();
        assert!(
            e.starts_with("a lot: about ") && e.contains("are free") && e.ends_with("ask for less"),
            "{e}"
        );
        let mut growing = Growing::new("it");
        assert!(growing.reached(1 << 10).is_ok());
        assert!(growing.reached(usize::MAX / 4).is_err());
    }
}
