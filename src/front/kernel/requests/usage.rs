//! `usage_request`: what the kernel and its machine are busy with, as far as Linux tells in /proc; little elsewhere.

use crate::memory;
use serde_json::{Value, json};
use std::fs::read_to_string;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Linux counts the processors' time in hundredths of a second here, on all machines.
const TICK: f64 = 0.01;

/// Measures usage; shares of time are those since the last question.
#[derive(Default)]
pub struct Meter(Mutex<Option<Sample>>);

/// Ticks up to some time.
#[derive(Clone, Copy)]
struct Sample {
    when: Instant,
    process: u64,
    machine: (u64, u64),
}

impl Meter {
    /// The content of a usage reply.
    pub fn read(&self) -> Value {
        let mut usage = json!({
            "status": "ok",
            "hostname": crate::platform::hostname().unwrap_or_default(),
            "pid": std::process::id(),
            "cpu_count": std::thread::available_parallelism().map_or(1, |n| n.get()),
        });
        if let Some(bytes) = memory::resident() {
            usage["kernel_memory"] = json!(bytes);
        }
        if let (Some(total), Some(available)) = (
            memory::of_machine("MemTotal:"),
            memory::of_machine("MemAvailable:"),
        ) {
            let used = total.saturating_sub(available);
            usage["host_virtual_memory"] = json!({
                "total": total,
                "available": available,
                "used": used,
                "free": memory::of_machine("MemFree:").unwrap_or(0),
                "percent": percent(used as f64, total as f64),
            });
        }
        let now = sample();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(now), Some(last)) = (now, *last) {
            let seconds = now.when.duration_since(last.when).as_secs_f64();
            let spent = now.process.saturating_sub(last.process) as f64 * TICK;
            usage["kernel_cpu"] = json!(percent(spent, seconds));
            let busy = now.machine.0.saturating_sub(last.machine.0);
            let all = now.machine.1.saturating_sub(last.machine.1);
            usage["host_cpu_percent"] = json!(percent(busy as f64, all as f64));
        }
        *last = now;
        usage
    }
}

fn sample() -> Option<Sample> {
    Some(Sample {
        when: Instant::now(),
        process: process(&read_to_string("/proc/self/stat").ok()?)?,
        machine: machine(&read_to_string("/proc/stat").ok()?)?,
    })
}

/// In hundredths, with one decimal.
fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (1000.0 * part / whole).round() / 10.0
    } else {
        0.0
    }
}

/// Ticks of the process, of /proc/self/stat.
fn process(text: &str) -> Option<u64> {
    // The name of the program comes before, in parentheses, and may contain anything.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Ticks of all processors, of /proc/stat: busy, and all.
fn machine(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let ticks = line.split_whitespace().take(8).map(str::parse);
    let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
    let all = ticks.iter().sum::<u64>();
    // The fourth and fifth are idle, and waiting for disks.
    Some((all.saturating_sub(ticks.get(3)? + ticks.get(4)?), all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        let stat = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(process(stat), Some(42));
        let stat = "cpu  1 2 3 40 50 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(machine(stat), Some((27, 117)));
        assert_eq!(percent(1.0, 3.0), 33.3);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn shares_of_time_are_known_from_the_second_question() {
        let meter = Meter::default();
        assert!(meter.read().get("kernel_cpu").is_none());
        let usage = meter.read();
        assert!(usage["kernel_cpu"].is_number() && usage["host_cpu_percent"].is_number());
        assert!(usage["kernel_memory"].as_u64() > Some(0));
    }
}
