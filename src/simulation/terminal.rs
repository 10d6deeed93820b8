//! The terminal: a bar with rate and time left, or a line now and then where there is no terminal.

use super::console::{Bar, Console, Stage, Task};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Standard output and standard error.
pub struct Terminal {
    /// Standard output is for something else: what scripts print goes to standard error.
    pub json: bool,
}

impl Console for Terminal {
    fn print(&self, text: &str) {
        if self.json {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }

    fn remark(&self, text: &str) {
        eprintln!("{text}");
    }

    fn begin(&self, task: &Task) -> Arc<dyn Bar> {
        match std::io::stderr().is_terminal() {
            true => Arc::new(Drawn::new(task)),
            false => Arc::new(Lines {
                task: task.clone(),
                last: Mutex::new(Instant::now()),
            }),
        }
    }
}

struct Drawn(ProgressBar);

impl Drawn {
    fn new(task: &Task) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(task.total), target).with_position(task.first);
        let template = "{prefix:<14} {wide_bar:.cyan/dim} {percent:>3}%  {per_sec:>12}  {elapsed} elapsed, {eta} left {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(task.name.clone());
        bar.reset_eta();
        Self(bar)
    }
}

impl Bar for Drawn {
    fn show(&self, stage: &Stage) {
        self.0.set_position(stage.done);
        let watched = stage.last().map(|text| format!(" {text}"));
        let failed = (stage.failed > 0).then(|| format!(" ({} failed)", stage.failed));
        let message = [watched, failed].into_iter().flatten().collect::<String>();
        self.0.set_message(message);
    }

    fn finish(&self, _: &Stage) {
        self.0.finish_and_clear();
    }
}

struct Lines {
    task: Task,
    last: Mutex<Instant>,
}

const BETWEEN_LINES: Duration = Duration::from_secs(20);

impl Bar for Lines {
    fn show(&self, stage: &Stage) {
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        if last.elapsed() < BETWEEN_LINES {
            return;
        }
        *last = Instant::now();
        eprintln!(
            "{}: {:.0} %, {}, {:.0} s left",
            self.task.name,
            100.0 * self.task.fraction(stage),
            self.task.rate(stage),
            self.task.left(stage)
        );
    }

    fn finish(&self, _: &Stage) {}
}
