//! What is said of a result that is made of runs: an estimate, or a comparison.

use crate::diagnostic::Verdict;

/// A verdict, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// In one word.
    pub verdict: Verdict,
    /// The objections to the result, the weightiest first; empty if there are none.
    pub reasons: Vec<String>,
}

impl Judged {
    /// No objections so far.
    pub fn converged() -> Self {
        Self {
            verdict: Verdict::Converged,
            reasons: Vec::new(),
        }
    }

    /// Add an objection, which makes the verdict no better than `verdict`.
    pub fn add(&mut self, verdict: Verdict, reason: impl Into<String>) {
        // In front of what is less weighty.
        let worse = verdict > self.verdict;
        let at = if worse { 0 } else { self.reasons.len() };
        self.verdict = self.verdict.max(verdict);
        self.reasons.insert(at, reason.into());
    }

    /// What stands above a result that is none, an estimate or a comparison; nothing above one that has converged.
    pub fn line(&self, result: &str) -> Option<String> {
        let said = self.reasons.join("; ");
        match self.verdict {
            Verdict::Converged => None,
            Verdict::Wrong => Some(format!("WRONG: {said}")),
            _ => Some(format!("NOT YET: {said}; not yet a usable {result}")),
        }
    }
}
