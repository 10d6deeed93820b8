//! How the chains of a run exchange temperatures, as it was asked for.

use super::{Pairs, RoughMinimisation, rough_minimise};
use crate::error::{Result, count};
use crate::simulation::temper::Temper;
use crate::target::{Target, Workspace};

/// How the chains of a run exchange temperatures.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Steps from one swap to the next.
    pub every: u64,
    /// Which pairs are tried.
    pub pairs: Pairs,
    /// Rounds that space the rungs, during burn-in.
    pub rounds: u32,
    /// Steps of rough minimisation before the first step.
    pub minimise: u64,
    /// Whether chains start at draws from the prior.
    pub from_prior: bool,
}

impl Exchange {
    /// What is worth knowing of it, in a line.
    pub fn describe(&self, temper: Temper) -> String {
        let pairs = match self.pairs {
            Pairs::Alternating => "alternating pairs",
            Pairs::Random => "random pairs",
        };
        let tuned = match self.rounds {
            0 => "ladder as given".to_string(),
            k => format!("ladder tuned in {}", count(k as usize, "round")),
        };
        let steps = if self.every == 1 { "step" } else { "steps" };
        format!(
            "swaps of {pairs} every {} {steps}, {tuned}; {}",
            self.every,
            temper.describe()
        )
    }

    /// After which swaps a round of tuning ends, where burn-in has so many. Rounds double, and the last ladder has as many
    /// swaps as twice the last round to settle and to adapt step sizes.
    pub fn round_ends(&self, swaps: u64) -> Vec<u64> {
        let unit = swaps / ((1 << (self.rounds + 1)) - 1);
        (1..=self.rounds).map(|k| unit * ((1 << k) - 1)).collect()
    }

    /// Move parameters roughly downhill in U, from where they are.
    pub fn minimise(&self, target: &Target, w: &mut [f32], work: &mut Workspace) -> Result<()> {
        let settings = RoughMinimisation {
            steps: self.minimise,
            dt: 1e-3,
            gradient: 0.0,
        };
        rough_minimise(w, &settings, |w, gradient| {
            let energies = target.energies_and_gradient(w, gradient, work)?;
            Ok(energies.total)
        })?;
        Ok(())
    }
}
