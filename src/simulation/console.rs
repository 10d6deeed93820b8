//! Where a session talks to whoever started it: what scripts print, remarks, and how far its runs are.

use crate::error::Result;
use crate::object::Shown;
use anyhow::bail;
use std::path::Path;
use std::sync::Arc;

/// How far a run is.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// Done so far.
    pub done: u64,
    /// How many there are, as far as that is known now.
    pub total: u64,
    /// Chains that have failed.
    pub failed: usize,
    /// Seconds since this session began with it.
    pub seconds: f64,
    /// Done per second in this session.
    pub rate: f64,
    /// What to watch while it runs, as the cost: its name, and values along the way.
    pub watched: Option<(String, Vec<f64>)>,
    /// How it stands, in words: `R̂ 1.03, ESS 210`.
    pub said: Option<String>,
}

/// What is being done.
#[derive(Debug, Clone)]
pub struct Task {
    /// Name of the run.
    pub name: String,
    /// What is counted.
    pub unit: &'static str,
    /// How many there are.
    pub total: u64,
    /// How many were done before this session.
    pub first: u64,
    /// How it goes on if this session ends before it, in words; empty if nothing of it is kept.
    pub goes_on: String,
}

impl Task {
    /// What is done, from 0 to 1.
    pub fn fraction(&self, stage: &Stage) -> f64 {
        (stage.done as f64 / stage.total.max(1) as f64).min(1.0)
    }

    /// Seconds that are left at this rate.
    pub fn left(&self, stage: &Stage) -> f64 {
        stage.total.saturating_sub(stage.done) as f64 / stage.rate.max(1e-9)
    }

    /// `12.3 chain-steps/s`.
    pub fn rate(&self, stage: &Stage) -> String {
        let digits = usize::from(stage.rate < 100.0) + usize::from(stage.rate < 1.0);
        format!("{:.digits$} {}/s", stage.rate, self.unit)
    }
}

impl Stage {
    /// What is watched and its last value, as `cost 0.1234`.
    pub fn last(&self) -> Option<String> {
        let (name, values) = self.watched.as_ref()?;
        let x = *values.last()?;
        Some(match x.abs() {
            m if m == 0.0 || (1e-2..1e5).contains(&m) => format!("{name} {x:.4}"),
            _ => format!("{name} {x:.3e}"),
        })
    }
}

/// A place that shows how far one run is. It is told several times a second.
pub trait Bar: Send + Sync {
    /// The run is here now.
    fn show(&self, stage: &Stage);

    /// The run has ended, finished or not.
    fn finish(&self, stage: &Stage);
}

/// Where a session talks to whoever started it.
pub trait Console: Send + Sync {
    /// What a script prints; a line or more, without the last line break.
    fn print(&self, text: &str);

    /// A remark that is not the script's.
    fn remark(&self, text: &str);

    /// A value that a script shows.
    fn show(&self, shown: &Shown) {
        self.print(&shown.text);
    }

    /// Ask for a line, which comes without its end.
    ///
    /// # Errors
    /// If there is nobody to ask.
    fn ask(&self, prompt: &str) -> Result<String> {
        let _ = prompt;
        bail!("there is nobody to ask here; a script that runs unattended takes values by param()")
    }

    /// Remove what the input that runs has shown, at once or when it shows something new; a terminal keeps it.
    fn clear(&self, wait: bool) {
        let _ = wait;
    }

    /// A run of the session that is recorded in this folder has its name.
    fn named(&self, home: &Path, run: &str) {
        let _ = (home, run);
    }

    /// A run begins.
    fn begin(&self, task: &Task) -> Arc<dyn Bar>;
}
