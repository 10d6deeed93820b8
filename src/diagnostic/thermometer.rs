//! The thermometer: whether a run was at the temperature it was set to, from the virial theorem.
//!
//! In equilibrium at temperature T, <w_i dU/dw_i> = T for every weight w_i whose density dies off at infinity (the
//! virial, or generalised equipartition, theorem: Tolman, "A general theorem concerning the equipartition of energy",
//! Physical Review 11 (1918) 261; Wenzel et al., ICML 2020, use its mean over weights as configurational temperature).
//! It needs no momenta and no normalisation, so it tests a sampler without knowing the answer.

use super::mcse::mcse_mean;
use super::moments::mean;
use std::fmt;

/// What the thermometer says about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Verdict {
    /// Within 4 standard errors, or within 3 %, of the temperature set.
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

impl fmt::Display for Verdict {
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
    pub verdict: Verdict,
}

/// Reads the temperature of `chains` and compares it with `set`, both in the unit of the energy.
///
/// Each draw is the virial temperature of one state: the mean over weights of w_i dU/dw_i. Agreement is 4 standard
/// errors, or 3 % where those are narrower: a discretised sampler is off by a bias that grows with its step, and longer
/// runs would condemn it for what does not matter. An error bar wider than 10 % of `set` decides nothing, unless the
/// reading is more than 4 of them away.
pub fn thermometer<C: AsRef<[f64]>>(chains: &[C], set: f64) -> Reading {
    let temperature = mean(chains);
    let mcse = mcse_mean(chains);
    let drawn = chains.iter().any(|c| !c.as_ref().is_empty());
    let deviation = temperature - set;
    let verdict = if drawn && set > 0.0 && set.is_finite() {
        judge(deviation, mcse, set)
    } else {
        Verdict::NotApplicable
    };
    let relative_deviation = match verdict {
        Verdict::NotApplicable => f64::NAN,
        _ => deviation / set,
    };
    Reading {
        temperature,
        mcse,
        relative_deviation,
        verdict,
    }
}

fn judge(deviation: f64, mcse: f64, set: f64) -> Verdict {
    let off = if deviation > 0.0 {
        Verdict::Hot
    } else {
        Verdict::Cold
    };
    if !mcse.is_finite() || deviation.is_nan() {
        Verdict::Undecided
    } else if mcse > 0.1 * set {
        if deviation.abs() > 4.0 * mcse {
            off
        } else {
            Verdict::Undecided
        }
    } else if deviation.abs() <= (4.0 * mcse).max(0.03 * set) {
        Verdict::Agrees
    } else {
        off
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
        assert_eq!(says(1.0, 1.0, 1.0), Verdict::Agrees);
        // Far outside of 4 errors, inside of 3 %.
        assert_eq!(says(1.02, 0.01, 1.0), Verdict::Agrees);
        assert_eq!(says(1.05, 0.01, 1.0), Verdict::Hot);
        assert_eq!(says(0.95, 0.01, 1.0), Verdict::Cold);
        // An error bar of 0.25: 0.5 may be chance, 3 is not.
        assert_eq!(says(1.5, 10.0, 1.0), Verdict::Undecided);
        assert_eq!(says(4.0, 10.0, 1.0), Verdict::Hot);
        assert_eq!(says(-2.0, 10.0, 1.0), Verdict::Cold);
        for set in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(says(1.0, 1.0, set), Verdict::NotApplicable);
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
        assert_eq!(none.verdict, Verdict::NotApplicable);
        assert!(none.temperature.is_nan() && none.relative_deviation.is_nan());
        assert_eq!(thermometer(&[[]; 2], 1.0).verdict, Verdict::NotApplicable);
        assert_eq!(thermometer(&[[1.0, 1.2]], 1.0).verdict, Verdict::Undecided);
        assert_eq!(
            thermometer(&[[1.0, f64::NAN, 1.0, 1.1]], 1.0).verdict,
            Verdict::Undecided
        );
        assert_eq!(thermometer(&[[2.0; 50]], 1.0).verdict, Verdict::Hot);
    }

    #[test]
    fn verdicts_read_as_words() {
        let words = [
            (Verdict::Agrees, "agrees"),
            (Verdict::Hot, "hot"),
            (Verdict::Cold, "cold"),
            (Verdict::Undecided, "undecided"),
            (Verdict::NotApplicable, "n/a"),
        ];
        for (verdict, word) in words {
            assert_eq!(verdict.to_string(), word);
            assert_eq!(serde_json::to_value(verdict).ok(), Some(word.into()));
        }
    }
}
