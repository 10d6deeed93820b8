//! Verdicts: what speaks for the numbers of a part, and what against. The limits are those of the summaries.

use crate::diagnostic::Verdict;

/// How good it is; the last is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Good,
    /// Nothing can be said.
    Open,
    /// To be known by whoever uses the numbers.
    Look,
    /// The numbers are not to be trusted, or not there.
    Bad,
}

impl Level {
    /// A sign and a word, which say it without colour.
    pub fn sign(self) -> (&'static str, &'static str) {
        match self {
            Self::Good => ("✓", "good"),
            Self::Open => ("?", "open"),
            Self::Look => ("!", "look"),
            Self::Bad => ("✗", "bad"),
        }
    }

    /// That of a verdict.
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Converged => Self::Good,
            Verdict::NotYet => Self::Look,
            Verdict::NotJudged => Self::Open,
            Verdict::Wrong => Self::Bad,
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// How good it is.
    pub level: Level,
    /// What was found.
    pub says: String,
}

pub(super) fn check(what: &'static str, level: Level, says: impl Into<String>) -> Check {
    let says = says.into();
    Check { what, level, says }
}

/// The worst of them; good if there are none.
pub(crate) fn worst(checks: &[Check]) -> Level {
    checks.iter().map(|c| c.level).max().unwrap_or(Level::Good)
}

/// A temperature as tables have it.
pub(crate) fn temperature(t: f64) -> String {
    let short = |text: String| text.trim_end_matches('0').trim_end_matches('.').to_string();
    match t {
        t if t.is_infinite() => "prior".into(),
        // As people write them, where that is short.
        t if (0.01..1e4).contains(&t) => short(format!("{t:.4}")),
        t => format!("{t:.3e}"),
    }
}

/// A few temperatures in a sentence.
pub(super) fn listed(temperatures: &[f64]) -> String {
    let shown: Vec<_> = temperatures
        .iter()
        .take(4)
        .map(|t| temperature(*t))
        .collect();
    match temperatures.len() {
        n if n > 4 => format!("{} and {} more", shown.join(", "), n - 4),
        _ => shown.join(", "),
    }
}

/// One sentence on everything: the worst first, with how many more there are.
pub(crate) fn sentence(all: &[(String, Check)]) -> (Level, String) {
    let level = all.iter().map(|(_, c)| c.level).max();
    let level = level.unwrap_or(Level::Open);
    let at: Vec<_> = all.iter().filter(|(_, c)| c.level == level).collect();
    let said = at
        .first()
        .map_or(String::new(), |(name, c)| match name.is_empty() {
            true => c.says.clone(),
            false => format!("{name}: {}: {}", c.what, c.says),
        });
    let more = match at.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let text = match level {
        Level::Good => "All checks passed.".into(),
        Level::Open => format!("No check failed, but not everything could be tested. {said}{more}"),
        Level::Look => format!("Use with care. {said}{more}"),
        Level::Bad => format!("Look at this first. {said}{more}"),
    };
    (level, text)
}
