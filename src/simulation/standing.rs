//! How far a result can be relied on, in three words that are the same everywhere.

use super::summary::{LEAST_ESS, MOST_R_HAT};
use std::fmt;

/// How far a result can be relied on; the last is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Standing {
    /// Chains agree, and have enough independent draws.
    #[serde(rename = "converged")]
    Converged,
    /// More steps may change it by more than its error bar.
    #[serde(rename = "not yet")]
    NotYet,
    /// A test that it must pass has failed.
    #[serde(rename = "wrong")]
    Wrong,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Converged => "converged",
            Self::NotYet => "not yet",
            Self::Wrong => "wrong",
        })
    }
}

/// A standing, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// How far it can be relied on.
    pub standing: Standing,
    /// What speaks against it, the weightiest first; empty if nothing does.
    pub says: Vec<String>,
}

impl Judged {
    /// Nothing speaks against it so far.
    pub fn converged() -> Self {
        Self {
            standing: Standing::Converged,
            says: Vec::new(),
        }
    }

    /// Something speaks against it, which makes it no better than `standing`.
    pub fn add(&mut self, standing: Standing, says: impl Into<String>) {
        // In front of what is less weighty.
        let at = if standing > self.standing {
            0
        } else {
            self.says.len()
        };
        self.standing = self.standing.max(standing);
        self.says.insert(at, says.into());
    }

    /// What stands above a result that is none, an estimate or a comparison; nothing above one that has converged.
    pub fn line(&self, result: &str) -> Option<String> {
        let said = self.says.join("; ");
        match self.standing {
            Standing::Converged => None,
            Standing::NotYet => Some(format!("NOT CONVERGED: {said}: this is no {result} yet")),
            Standing::Wrong => Some(format!("WRONG: {said}")),
        }
    }
}

/// What convergence lacks, in words, and by which factor more steps would do, about; none if it lacks nothing. After Vehtari et al. (2021).
pub fn lacking(r_hat: f64, ess_bulk: f64, ess_tail: f64) -> Option<(String, f64)> {
    let mut said = Vec::new();
    let mut factor = 1.0f64;
    // NaN, as of too few draws, is not enough either.
    if !(r_hat <= MOST_R_HAT) {
        said.push(format!("R̂ {r_hat:.3} (at most {MOST_R_HAT})"));
        // R̂² - 1 goes like the reciprocal of the draws.
        factor = factor.max((r_hat * r_hat - 1.0) / (MOST_R_HAT * MOST_R_HAT - 1.0));
    }
    for (ess, of) in [(ess_bulk, ""), (ess_tail, " in the tails")] {
        if !(ess >= LEAST_ESS) {
            said.push(format!(
                "{ess:.0} effective draws{of} (at least {LEAST_ESS})"
            ));
            factor = factor.max(LEAST_ESS / ess);
        }
    }
    (!said.is_empty()).then(|| (said.join(", "), factor))
}
