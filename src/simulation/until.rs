//! Until when a run goes on: what is asked of its chains, and at which steps they are looked at.

use crate::diagnostic::verdict::{LEAST_ESS, MOST_R_HAT};
use crate::error::Result;
use crate::options::{Kind, OptionMap, Options, Range, Spec, Value, option, optional};
use crate::trigger::Trigger;
use serde::{Deserialize, Serialize};

/// Looks while the number of steps doubles.
const PER_DOUBLING: f64 = 3.0;

/// Steps up to the first look, where nothing is said.
pub(super) const FIRST: u64 = 1000;

/// How much longer than its first look a run may be, where nothing is said.
const AT_MOST: u64 = 100;

/// The entries of the option, where the limit is of something and has a default.
const fn entries(otherwise: &'static str, most: &'static str) -> [Spec; 3] {
    [
        option(
            "rhat",
            Kind::Float(Range::Within {
                low: (1.0, false),
                high: (f64::INFINITY, false),
            }),
            "1.01",
            "Largest R̂.",
        ),
        option(
            "ess",
            Kind::Float(Range::Positive),
            "400",
            "Least effective number of draws, in the bulk and in the tails.",
        ),
        optional(
            "at_most",
            Kind::Int(Range::Between(1.0, 1e14)),
            otherwise,
            most,
        ),
    ]
}

const ENTRIES: &[Spec] = &entries(
    "100 times `steps`",
    "Steps per chain, burn-in included, after which it ends in any case.",
);

/// The entries of the option `until` of `smc`.
pub(super) const OF_STAGES: &[Spec] = &entries(
    "100 times `moves`",
    "Steps of the sampler at a stage, after which the next one begins in any case.",
);

/// The option `until`.
pub(super) const UNTIL: Spec = optional(
    "until",
    Kind::Map(ENTRIES),
    "it ends after `steps`",
    "Go on after `steps` until nothing is missing at any temperature: R̂ and ESS of every observable reach these numbers, and the error of the thermometer and the \
     round trips of a ladder are what *converged* asks for. `#{}` takes the numbers of the verdict. It is looked at after `steps` steps, and each time that there are a quarter more. Draws \
     are those of one run of that length. `burn_in` counts from `steps`, and samplers adapt during it; where a look finds that the beginning of the draws differs from their end, by more than \
     four standard errors, burn-in ends at that look. A run that has ended goes on with `resume` and a larger `at_most`.",
);

/// Until when a run goes on: `Until { ess: 1000.0, ..Until::default() }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Largest R̂.
    pub rhat: f64,
    /// Least effective number of draws, in the bulk and in the tails.
    pub ess: f64,
    /// Steps per chain after which it ends in any case; none for a hundred times its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

impl Default for Until {
    fn default() -> Self {
        Self {
            rhat: MOST_R_HAT,
            ess: LEAST_ESS,
            at_most: None,
        }
    }
}

impl From<Until> for Value {
    fn from(until: Until) -> Self {
        let entries = OptionMap::new()
            .with("rhat", until.rhat)
            .with("ess", until.ess);
        match until.at_most {
            Some(steps) => entries.with("at_most", steps).into(),
            None => entries.into(),
        }
    }
}

impl Until {
    /// From the option, if it is given, with a limit that is known; `steps` are those up to the first look.
    pub(super) fn from_options(o: &Options, steps: u64) -> Result<Option<Self>> {
        Self::with_entries(o, ENTRIES, ("steps", steps))
    }

    /// From the option, with these entries; so many steps, by the option of this name, are done before the first look.
    pub(super) fn with_entries(
        o: &Options,
        entries: &'static [Spec],
        (name, steps): (&str, u64),
    ) -> Result<Option<Self>> {
        let Some(entries) = o.map(UNTIL.name, entries)? else {
            return Ok(None);
        };
        let given = entries.opt_int("at_most");
        let at_most = given.unwrap_or(steps.saturating_mul(AT_MOST));
        anyhow::ensure!(
            at_most >= steps,
            "{}: option 'until' has the entry 'at_most', which is {at_most}, but the first look is after {steps} steps (option '{name}')",
            o.owner()
        );
        Ok(Some(Self {
            rhat: entries.float("rhat")?,
            ess: entries.float("ess")?,
            at_most: Some(at_most),
        }))
    }

    /// This with `factor` times as many steps at most.
    pub(super) fn times(self, factor: u64) -> Self {
        Self {
            at_most: self.at_most.map(|steps| steps.saturating_mul(factor)),
            ..self
        }
    }
}

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "until R̂ ≤ {} and ESS ≥ {}", self.rhat, self.ess)?;
        self.at_most
            .map_or(Ok(()), |n| write!(f, ", at most {n} steps"))
    }
}

/// What a run that goes on keeps of its looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// What is asked of it.
    pub until: Until,
    /// Steps up to the first look.
    pub first: u64,
    /// Steps of burn-in that it was told to make, in which samplers adapt; more may have been found.
    pub burn_in: u64,
}

impl std::fmt::Display for Course {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "it went on {}; samplers adapted for {} steps",
            self.until, self.burn_in
        )
    }
}

impl Course {
    /// The step of the first look that is not before this one, of a run that records so and has so many steps at most; the last is at the last step.
    pub fn look_from(&self, step: u64, every: &Trigger, most: u64) -> u64 {
        let unit = match every {
            Trigger::Every(n) => *n,
            Trigger::Cyclical { cycle, .. } => *cycle,
            Trigger::At(_) | Trigger::Logarithmic { .. } => 1,
        };
        let look = |k: u32| {
            let steps = self.first as f64 * (f64::from(k) / PER_DOUBLING).exp2();
            (steps.round() as u64).div_ceil(unit).saturating_mul(unit)
        };
        let looks = std::iter::once(self.first).chain((1..).map(look));
        let mut later = looks.map(|s| s.min(most));
        later.find(|s| *s >= step.min(most)).unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_a_quarter_apart_and_the_last_one_is_at_the_end() {
        let course = Course {
            until: Until::default(),
            first: 1000,
            burn_in: 500,
        };
        let look = |step| course.look_from(step, &Trigger::Every(100), 5000);
        let mut looks = vec![look(0)];
        while looks.last().is_some_and(|l| *l < 5000) {
            looks.push(look(looks[looks.len() - 1] + 1));
        }
        assert_eq!(looks, [1000, 1300, 1600, 2000, 2600, 3200, 4000, 5000]);
        assert_eq!((look(1600), look(9999)), (1600, 5000));
    }
}
