//! Progress on the terminal: a bar with rate and time left, or a line now and then where there is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The progress of one run.
pub struct Progress {
    bar: ProgressBar,
    name: String,
    /// What is counted.
    unit: &'static str,
    /// Without a terminal: when the last line was printed, and how often one is.
    lines: Option<Mutex<Instant>>,
    begin: Instant,
    first: u64,
}

const BETWEEN_LINES: Duration = Duration::from_secs(20);

impl Progress {
    /// Progress towards `total` of what `unit` names ("steps"), from `done` on.
    pub fn new(name: &str, unit: &'static str, total: u64, quiet: bool, done: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_position(done);
        let template = "{prefix:<14} {wide_bar:.cyan/dim} {percent:>3}%  {per_sec:>12}  {elapsed} elapsed, {eta} left {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_string());
        bar.reset_eta();
        let lines = (!quiet && !terminal).then(|| Mutex::new(Instant::now()));
        Self {
            bar,
            name: name.into(),
            unit,
            lines,
            begin: Instant::now(),
            first: done,
        }
    }

    /// So many are done, and `failed` chains have failed.
    pub fn set(&self, done: u64, failed: usize) {
        self.bar.set_position(done);
        if failed > 0 {
            self.bar.set_message(format!("({failed} failed)"));
        }
        if let Some(last) = &self.lines {
            let mut last = last.lock().unwrap_or_else(|e| e.into_inner());
            if last.elapsed() >= BETWEEN_LINES {
                *last = Instant::now();
                let seconds = self.begin.elapsed().as_secs_f64();
                let rate = (done - self.first) as f64 / seconds;
                let total = self.bar.length().unwrap_or(done);
                let left = (total - done.min(total)) as f64 / rate.max(1e-9);
                eprintln!(
                    "{}: {:.0} %, {rate:.*} {}/s, {left:.0} s left",
                    self.name,
                    100.0 * done as f64 / total.max(1) as f64,
                    usize::from(rate < 100.0) + usize::from(rate < 1.0),
                    self.unit
                );
            }
        }
    }

    /// Take the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
