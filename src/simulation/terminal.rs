//! The terminal: a bar with rate and time left, or a line now and then where there is no terminal.

use super::console::{Bar, Console, Stage, Task};
use crate::error::{Result, printable};
use crate::output;
use anyhow::ensure;
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
        match self.json {
            true => output::remark(printable(text)),
            false => output::line(printable(text)),
        }
    }

    fn remark(&self, text: &str) {
        output::remark(printable(text));
    }

    fn ask(&self, prompt: &str) -> Result<String> {
        output::remark_part(printable(prompt));
        let mut line = String::new();
        ensure!(
            std::io::stdin().read_line(&mut line)? > 0,
            "standard input has ended before there was an answer"
        );
        Ok(line.trim_end_matches(['\r', '\n']).into())
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

struct Drawn {
    task: Task,
    bar: ProgressBar,
}

impl Drawn {
    fn new(task: &Task) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(task.total), target).with_position(task.first);
        let template =
            "{prefix:<14} {wide_bar:.cyan/dim} {percent:>3}%  {msg}, {elapsed} elapsed, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(task.name.clone());
        bar.reset_eta();
        let task = task.clone();
        Self { task, bar }
    }
}

impl Bar for Drawn {
    fn show(&self, stage: &Stage) {
        self.bar.set_length(stage.total);
        self.bar.set_position(stage.done);
        let failed = (stage.failed > 0).then(|| format!("{} failed", stage.failed));
        let facts = [
            stage.last(),
            stage.said.clone(),
            failed,
            Some(self.task.rate(stage)),
        ];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        self.bar.set_message(facts.join(", "));
    }

    fn finish(&self, _: &Stage) {
        self.bar.finish_and_clear();
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
        output::remark(format_args!(
            "{}: {:.0} %, {}{}, {:.0} s left",
            self.task.name,
            100.0 * self.task.fraction(stage),
            stage
                .said
                .as_ref()
                .map_or(String::new(), |s| format!("{s}, ")),
            self.task.rate(stage),
            self.task.left(stage)
        ));
    }

    fn finish(&self, _: &Stage) {}
}
