//! What temperatures divide: the likelihood, the prior, or both.

use crate::target::{Energies, Target};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What temperatures divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Temper {
    /// The whole energy: exp(-U/T).
    #[default]
    Energy,
    /// The likelihood alone: exp(-s·L/T - R).
    Likelihood,
    /// The prior alone: exp(-s·L - R/T).
    Prior,
}

/// The names in the option `temper`.
pub const NAMES: &[&str] = &["energy", "likelihood", "prior"];

impl Temper {
    /// By its name.
    pub fn named(name: &str) -> Self {
        match name {
            "likelihood" => Self::Likelihood,
            "prior" => Self::Prior,
            _ => Self::Energy,
        }
    }

    /// Whether the prior is tempered.
    pub fn includes_prior(self) -> bool {
        self != Self::Likelihood
    }

    /// Whether U of the law is the same function at all temperatures.
    pub fn same_energy(self, target: &Target) -> bool {
        match self {
            Self::Energy => true,
            Self::Likelihood => target.prior().is_flat(),
            Self::Prior => false,
        }
    }

    /// The target of which exp(-U/T) is the law at this temperature; the target itself on the rung of the prior, where nothing is stepped.
    pub fn target_at(self, target: &Target, temperature: f64) -> Cow<'_, Target> {
        match self {
            _ if temperature.is_infinite() => Cow::Borrowed(target),
            Self::Energy => Cow::Borrowed(target),
            Self::Likelihood => target.tempered(temperature),
            Self::Prior => Cow::Owned(target.with_likelihood_times(temperature)),
        }
    }

    /// What β multiplies.
    pub fn energy(self, of: Energies) -> f64 {
        match self {
            Self::Energy => of.total,
            Self::Likelihood => of.likelihood,
            Self::Prior => of.total - of.likelihood,
        }
    }

    /// The law, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Energy => "U is tempered",
            Self::Likelihood => "the likelihood is tempered, the prior is not",
            Self::Prior => "the prior is tempered, the likelihood is not",
        }
    }
}
