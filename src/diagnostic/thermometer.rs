//! The thermometer: whether a run was at the temperature it was set to, from the virial theorem.
//!
//! In equilibrium at temperature T, <(w_i-c_i) dU/dw_i> = T for every weight w_i whose density dies off at infinity and any constant c_i (the
//! virial, or generalised equipartition, theorem: Tolman, "A general theorem concerning the equipartition of energy",
//! Physical Review 11 (1918) 261; Wenzel et al., ICML 2020, use its mean over weights as configurational temperature).
//! It needs no momenta and no normalisation, so it tests a sampler without knowing the answer. It is one necessary
//! condition: chains that all sit in one of two modes are at the right temperature too.

use super::mcse::mcse_mean;
use super::moments::mean;
use super::verdict::{MOST_ERROR, MOST_SIGMA};
use std::fmt;

/// What the thermometer says about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Heat {
    /// Within 4 standard errors, or within 1 %, of the temperature set; the error is at most 2 %.
    #[serde(rename = "agrees")]
    Agrees,
    /// Above the temperature set, beyond the error bar.
    #[serde(rename = "hot")]
    Hot,
    /// Below the temperature set, beyond the error bar.
    #[serde(rename = "cold")]
    Cold,
    /// The error bar is too wide to tell.
    #[serde(rename = "undecided")]
    Undecided,
    /// No temperature was set (0: plain minimisation), or nothing was drawn.
    #[serde(rename = "n/a")]
    NotApplicable,
}

impl fmt::Display for Heat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Agrees => "agrees",
            Self::Hot => "hot",
            Self::Cold => "cold",
            Self::Undecided => "undecided",
            Self::NotApplicable => "n/a",
        })
    }
}

/// A temperature read off a run, in the unit of the energy.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Reading {
    /// Mean of the draws; NaN without draws.
    pub temperature: f64,
    /// Monte Carlo standard error of `temperature`; NaN with fewer than 4 draws.
    pub mcse: f64,
    /// (temperature - set) / set; NaN where it means nothing.
    pub relative_deviation: f64,
    /// What follows from them.
    pub verdict: Heat,
}

/// Reads the temperature of `chains` and compares it with `set`, both in the unit of the energy.
///
/// Each draw is the virial temperature of one state: the mean over weights of (w_i-c_i) dU/dw_i. Agreement is 4 standard
/// errors, or 1 % where those are narrower: a discretised sampler is off by a bias that grows with its step, and longer
/// runs would condemn it for what does not matter. An error bar wider than 2 % of `set` decides nothing, unless the
/// reading is more than 4 of them away.
pub fn thermometer<C: AsRef<[f64]>>(chains: &[C], set: f64) -> Reading {
    let drawn = chains.iter().any(|c| !c.as_ref().is_empty());
    let set = if drawn { set } else { f64::NAN };
    Reading::new(mean(chains), mcse_mean(chains), set)
}

impl Reading {
    /// A temperature with its error, compared with the one that was set.
    pub fn new(temperature: f64, mcse: f64, set: f64) -> Self {
        let deviation = temperature - set;
        let verdict = match set > 0.0 && set.is_finite() {
            true => judge(deviation, mcse, set),
            false => Heat::NotApplicable,
        };
        Self {
            temperature,
            mcse,
            relative_deviation: match verdict {
                Heat::NotApplicable => f64::NAN,
                _ => deviation / set,
            },
            verdict,
        }
    }
}

/// Relative deviation from the temperature set that matters to nobody.
pub const TOLERANCE: f64 = 0.01;

fn judge(deviation: f64, mcse: f64, set: f64) -> Heat {
    let clear = deviation.abs() > MOST_SIGMA * mcse;
    if !mcse.is_finite() || deviation.is_nan() || (mcse > MOST_ERROR * set && !clear) {
        Heat::Undecided
    } else if !clear || deviation.abs() <= TOLERANCE * set {
        Heat::Agrees
    } else if deviation > 0.0 {
        Heat::Hot
    } else {
        Heat::Cold
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    fn chains(centre: f64, spread: f64) -> Vec<Vec<f64>> {
        (1..=4)
            .map(|seed| {
                let noise = normal_draws(seed, 400);
                noise.iter().map(|x| centre + spread * x).collect()
            })
            .collect()
    }

    #[test]
    fn the_five_verdicts() {
        let says = |centre, spread, set| thermometer(&chains(centre, spread), set).verdict;
        assert_eq!(says(1.0, 0.5, 1.0), Heat::Agrees);
        // Far outside of 4 errors, inside of 1 %.
        assert_eq!(says(1.006, 0.01, 1.0), Heat::Agrees);
        assert_eq!(says(1.05, 0.01, 1.0), Heat::Hot);
        assert_eq!(says(0.95, 0.01, 1.0), Heat::Cold);
        assert_eq!(says(1.03, 0.01, 1.0), Heat::Hot);
        // An error bar of 2.5 %: 2 % may be chance.
        assert_eq!(says(1.02, 1.0, 1.0), Heat::Undecided);
        // An error bar of 0.25: 0.5 may be chance, 3 is not.
        assert_eq!(says(1.5, 10.0, 1.0), Heat::Undecided);
        assert_eq!(says(4.0, 10.0, 1.0), Heat::Hot);
        assert_eq!(says(-2.0, 10.0, 1.0), Heat::Cold);
        for set in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(says(1.0, 1.0, set), Heat::NotApplicable);
        }
    }

    #[test]
    fn a_reading_carries_its_numbers() {
        let reading = thermometer(&chains(1.1, 0.01), 1.0);
        assert!((reading.temperature - 1.1).abs() < 0.01);
        assert!((reading.relative_deviation - 0.1).abs() < 0.01);
        assert!((reading.mcse / (0.01 / 40.0) - 1.0).abs() < 0.3);
    }

    #[test]
    fn little_or_broken_data() {
        let none = thermometer::<Vec<f64>>(&[], 1.0);
        assert_eq!(none.verdict, Heat::NotApplicable);
        assert!(none.temperature.is_nan() && none.relative_deviation.is_nan());
        assert_eq!(thermometer(&[[]; 2], 1.0).verdict, Heat::NotApplicable);
        assert_eq!(thermometer(&[[1.0, 1.2]], 1.0).verdict, Heat::Undecided);
        assert_eq!(
            thermometer(&[[1.0, f64::NAN, 1.0, 1.1]], 1.0).verdict,
            Heat::Undecided
        );
        assert_eq!(thermometer(&[[2.0; 50]], 1.0).verdict, Heat::Hot);
    }

    #[test]
    fn verdicts_read_as_words() {
        let words = [
            (Heat::Agrees, "agrees"),
            (Heat::Hot, "hot"),
            (Heat::Cold, "cold"),
            (Heat::Undecided, "undecided"),
            (Heat::NotApplicable, "n/a"),
        ];
        for (verdict, word) in words {
            assert_eq!(verdict.to_string(), word);
            assert_eq!(serde_json::to_value(verdict).ok(), Some(word.into()));
        }
    }
}
