//! The permissions and the limits of a script that `ergodic run` runs.

use crate::access::{self, Access, Restricted};
use crate::error::Result;
use crate::report::record::{FOLDERS, LIMITS};
use crate::simulation::{progress, session};
use crate::store::{self, disk};
use crate::{memory, output};
use anyhow::Context;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Seconds that an untrusted script may run without `--max-time`.
const LONGEST: f64 = 3600.0;

/// How long a run may take to save itself when its time is over.
const SAVING: Duration = Duration::from_secs(60);

/// The permissions and the limits of a script, from the command line: `ergodic docs trust`.
#[derive(Args, Clone, Debug, Default)]
pub struct Permissions {
    /// Let the script write within FOLDER too, and not only into its own results. May be given several times.
    #[arg(long = "allow-write", value_name = "FOLDER")]
    pub writes: Vec<PathBuf>,
    /// With --untrusted: let the script read FOLDER too (or a file). May be given several times.
    #[arg(long = "allow-read", value_name = "FOLDER", requires = "untrusted")]
    pub reads: Vec<PathBuf>,
    /// Let the script write whatever you may write.
    #[arg(long, conflicts_with = "untrusted")]
    pub trust: bool,
    /// For scripts of others: it reads only the folder in which it lies, and memory, time and the size of values are limited.
    #[arg(long)]
    pub untrusted: bool,
    /// Stop with an error rather than use more memory: 8GiB, 500MiB, … (with --untrusted half of what is free).
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_memory: Option<u64>,
    /// Stop a script that has made so many steps, those of samplers not counted (with --untrusted 10⁹).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Save and stop after so many seconds; --resume goes on (with --untrusted 3600).
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub max_time: Option<f64>,
}

impl Permissions {
    /// Let a script read and write what it may, with its results in `out`, until the value is dropped.
    pub(super) fn restrict(&self, script: &Path, out: &Path) -> Result<Restricted> {
        anyhow::ensure!(
            !self.untrusted || script.is_file(),
            "--untrusted {}: the script must be a file, in a folder with what it may read",
            script.display()
        );
        let writes = [&self.writes[..], &[out.into()]].concat();
        // The script may be a link.
        let own = [disk::folder(script).into(), script.into()];
        let reads = [&self.reads[..], &writes, &own].concat();
        let to = Access {
            reads: (self.untrusted && !self.trust).then_some(reads),
            writes: (!self.trust).then_some(writes),
        };
        access::restrict(to).context("--allow-read, --allow-write")
    }

    /// Add them to what is written down of a script.
    pub(super) fn note(&self, record: &mut Value) {
        if self.untrusted {
            record["untrusted"] = true.into();
        }
        let all = [&self.reads, &self.writes];
        let folders = FOLDERS.iter().zip(all).flat_map(|(name, folders)| {
            let each = folders.iter().map(|f| f.to_string_lossy());
            each.map(move |folder| json!([name, folder]))
        });
        let folders: Vec<_> = folders.collect();
        if !folders.is_empty() {
            record["folders"] = folders.into();
        }
        let limits = self.limits();
        if !limits.is_empty() {
            record["limits"] = limits.into();
        }
    }

    /// Fail if what goes on, in a folder, was begun by who did not trust the script, and is trusted now by nobody's word.
    pub(super) fn ensure_trust(&self, verb: &str, untrusted: bool, folder: &Path) -> Result<()> {
        anyhow::ensure!(
            self.untrusted || self.trust || !untrusted,
            "{verb}: what is in {} was begun with --untrusted; go on with that, or with --trust if you trust the script now",
            folder.display()
        );
        Ok(())
    }

    /// The limits that were given, by name.
    fn limits(&self) -> Map<String, Value> {
        let all = [
            self.max_memory.map(Value::from),
            self.max_steps.map(Value::from),
            self.max_time.map(Value::from),
        ];
        let given = LIMITS
            .iter()
            .zip(all)
            .filter_map(|(name, value)| Some((name.to_string(), value?)));
        given.collect()
    }

    /// Limit the memory and the time of this process, one of so many on this machine, from now on.
    ///
    /// # Errors
    /// If the limit of memory is too small, or the system does not tell how much is in use.
    pub fn limit(&self, processes: usize) -> Result<()> {
        let share = |free: u64| free / 2 / processes as u64;
        let most = match (self.max_memory, self.untrusted) {
            (None, true) => Some(memory::available_memory().map_or(0, share)),
            (asked, _) => asked,
        };
        if let Some(most) = most {
            memory::limit(most, || {
                // Whatever goes on takes more all the time.
                leave_soon(Duration::from_millis(250), 1);
                output::remark(
                    "error: this run has more in memory than --max-memory allows, and ends here; what was checkpointed can be continued with --resume",
                );
            })?;
        }
        if let Some(seconds) = self.max_time.or(self.untrusted.then_some(LONGEST)) {
            let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            std::thread::spawn(move || {
                std::thread::sleep(time);
                session::interrupt();
                leave_soon(SAVING, 130);
                output::remark(format_args!("\n--max-time: {seconds} seconds are over"));
                leave_if_idle();
            });
        }
        Ok(())
    }
}

/// End this process after a while, whatever others wait for: also one that says something to nobody.
fn leave_soon(after: Duration, code: i32) {
    std::thread::spawn(move || {
        std::thread::sleep(after);
        std::process::exit(code);
    });
}

/// How long work may go on after an interrupt when no run is there that saves itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// Leave when nothing that goes on has anything to save: not all that takes long can look for an interrupt.
pub fn leave_if_idle() {
    let mut since = Instant::now();
    while session::interrupted() && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
        if progress::saves() {
            since = Instant::now();
        }
    }
    if session::interrupted() {
        if !store::writes_nothing() {
            output::remark(
                "interrupted: what was computed last could not be saved; runs that ended or were checkpointed before are kept",
            );
        }
        std::process::exit(130);
    }
}

/// "8GiB", "500 MB", "1e9".
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic() && !"eE".contains(c));
    let (number, unit) = text.split_at(at.unwrap_or(text.len()));
    let unit: Option<f64> = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1.0),
        "k" | "kib" => Some(1024.0),
        "m" | "mib" => Some(1024f64.powi(2)),
        "g" | "gib" => Some(1024f64.powi(3)),
        "t" | "tib" => Some(1024f64.powi(4)),
        "kb" => Some(1e3),
        "mb" => Some(1e6),
        "gb" => Some(1e9),
        "tb" => Some(1e12),
        _ => None,
    };
    let number: Option<f64> = number.trim().parse().ok();
    let all = number.zip(unit).map(|(n, u)| n * u);
    match all.filter(|n| n.is_finite() && *n >= 1.0) {
        Some(n) => Ok(n as u64),
        None => Err("expected a number of bytes, such as 8GiB or 500MB".into()),
    }
}

/// A number of seconds above 0.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let s = text
        .parse()
        .ok()
        .filter(|s: &f64| *s > 0.0 && s.is_finite());
    s.ok_or("expected a number of seconds > 0".into())
}
