//! Progress on the terminal: a bar with rate and time left, or a line now and then where there is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// How far a run is, for whoever [watches](watch).
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Name of the run.
    pub name: String,
    /// What is done, from 0 to 1.
    pub part: f64,
    /// In words: rate and time left.
    pub text: String,
    /// Whether it is over.
    pub over: bool,
}

type Watcher = Arc<dyn Fn(&Report) + Send + Sync>;

static WATCHER: RwLock<Option<Watcher>> = RwLock::new(None);

/// Give reports to `watcher` instead of the terminal, a few per second and run; none ends that.
pub fn watch(watcher: Option<Watcher>) {
    *WATCHER.write().unwrap_or_else(|e| e.into_inner()) = watcher;
}

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
    /// Who wants to know, and when it was last told; not before a run has lasted for a while.
    watcher: Option<(Watcher, Mutex<Instant>)>,
}

const BETWEEN_LINES: Duration = Duration::from_secs(20);
const BETWEEN_REPORTS: Duration = Duration::from_millis(500);

impl Progress {
    /// Progress towards `total` of what `unit` names ("steps"), from `done` on.
    pub fn new(name: &str, unit: &'static str, total: u64, quiet: bool, done: u64) -> Self {
        let watcher = WATCHER.read().unwrap_or_else(|e| e.into_inner()).clone();
        let watcher = watcher.filter(|_| !quiet);
        let terminal = std::io::stderr().is_terminal();
        let target = if quiet || !terminal || watcher.is_some() {
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
        let lines = (!quiet && !terminal && watcher.is_none()).then(|| Mutex::new(Instant::now()));
        Self {
            bar,
            name: name.into(),
            unit,
            lines,
            begin: Instant::now(),
            first: done,
            watcher: watcher.map(|w| (w, Mutex::new(Instant::now()))),
        }
    }

    /// So many are done, and `failed` chains have failed.
    pub fn set(&self, done: u64, failed: usize) {
        self.bar.set_position(done);
        if failed > 0 {
            self.bar.set_message(format!("({failed} failed)"));
        }
        let due = |last: &Mutex<Instant>, pause| {
            let mut last = last.lock().unwrap_or_else(|e| e.into_inner());
            let due = last.elapsed() >= pause;
            if due {
                *last = Instant::now();
            }
            due
        };
        if let Some((watcher, last)) = &self.watcher
            && due(last, BETWEEN_REPORTS)
        {
            let (part, mut text) = self.state(done);
            if failed > 0 {
                text += &format!(" ({failed} failed)");
            }
            watcher(&self.report(part, text, false));
        }
        if let Some(last) = &self.lines
            && due(last, BETWEEN_LINES)
        {
            let (part, text) = self.state(done);
            eprintln!("{}: {:.0} %, {text}", self.name, 100.0 * part);
        }
    }

    fn report(&self, part: f64, text: String, over: bool) -> Report {
        let name = self.name.clone();
        Report {
            name,
            part,
            text,
            over,
        }
    }

    /// What is done, from 0 to 1, and rate and time left.
    fn state(&self, done: u64) -> (f64, String) {
        let seconds = self.begin.elapsed().as_secs_f64();
        let rate = (done - self.first) as f64 / seconds;
        let total = self.bar.length().unwrap_or(done);
        let left = (total - done.min(total)) as f64 / rate.max(1e-9);
        let text = format!(
            "{rate:.*} {}/s, {left:.0} s left",
            usize::from(rate < 100.0) + usize::from(rate < 1.0),
            self.unit
        );
        (done as f64 / total.max(1) as f64, text)
    }

    /// Take the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
        if let Some((watcher, _)) = &self.watcher {
            let part = self.bar.position() as f64 / self.bar.length().unwrap_or(1).max(1) as f64;
            let seconds = self.begin.elapsed().as_secs_f64();
            watcher(&self.report(part, format!("{seconds:.1} s"), true));
        }
    }
}
