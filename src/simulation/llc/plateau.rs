//! Which trials of a calibration are on a plateau, and what is wrong with the others.

use super::trial::{Found, Trial};
use crate::simulation::judge::lacking;
use std::ops::Range;

/// R̂ from which on chains disagree so much that their mean says nothing.
const MOST_RHAT: f64 = 1.2;

/// Whether two estimates are the same, within two joint errors or what is tolerated.
fn agree(a: &Found, b: &Found, tolerance: f64) -> bool {
    let noise = 2.0 * a.mcse.hypot(b.mcse);
    (a.lambda - b.lambda).abs() <= noise.max(tolerance * a.lambda.abs())
}

/// Note where nothing speaks against a trial, but no neighbouring step that is as good confirms it.
pub fn unconfirmed(trials: &mut [Trial], tolerance: f64) {
    let confirms = |i: usize, j: Option<usize>| {
        let fine = |k: usize| trials.get(k).filter(|t| t.against.is_empty());
        let (Some(a), Some(b)) = (fine(i), j.and_then(fine)) else {
            return false;
        };
        let both = a.estimate.as_ref().zip(b.estimate.as_ref());
        (a.nbeta, a.gamma) == (b.nbeta, b.gamma)
            && both.is_some_and(|(a, b)| agree(a, b, tolerance))
    };
    let alone = |i: usize| {
        let neighbours = [i.checked_sub(1), Some(i + 1)];
        trials[i].against.is_empty() && !neighbours.into_iter().any(|j| confirms(i, j))
    };
    let which: Vec<_> = (0..trials.len()).filter(|i| alone(*i)).collect();
    for i in which {
        trials[i]
            .against
            .push("no neighbouring step confirms it".into());
    }
}

/// See [`Calibration::recommended`] and [`Calibration::nbetas_disagree`], of the trials at one γ, by their places. Error bars are compared at one nβ only: those of different nβ are of
/// different things.
pub fn plateau(
    (trials, here): (&[Trial], Range<usize>),
    (nbetas, usual): (&[f64], f64),
    tolerance: f64,
) -> (Option<usize>, bool) {
    let best = |nbeta: &f64| {
        let there = here.clone().filter(|i| trials[*i].nbeta == *nbeta);
        let fine = there.filter(|i| trials[*i].against.is_empty());
        let each = fine.filter_map(|i| Some((i, trials[i].estimate.as_ref()?)));
        each.min_by(|a, b| a.1.mcse.total_cmp(&b.1.mcse))
    };
    let each: Vec<_> = nbetas.iter().map(best).collect();
    if let [one] = each[..] {
        return (one.map(|(i, _)| i), false);
    }
    let confirmed = |k: usize| {
        let (i, own) = each[k]?;
        let neighbours = [k.checked_sub(1), Some(k + 1)].into_iter().flatten();
        let mut others = neighbours.filter_map(|j| *each.get(j)?);
        others.any(|(_, e)| agree(own, e, tolerance)).then_some(i)
    };
    let far = |i: &usize| (trials[*i].nbeta / usual).ln().abs();
    let found = (0..each.len()).filter_map(confirmed);
    let found = found.min_by(|a, b| far(a).total_cmp(&far(b)));
    (found, found.is_none() && each.iter().flatten().count() > 1)
}

/// The γ of a recommendation: of the trials that are recommended at each γ, from weak to strong, the first that the next one confirms; one alone needs
/// no other, since a weaker γ at which chains have not relaxed says nothing against it. And whether several are there, of which no two neighbours agree.
pub fn across(trials: &[Trial], each: &[Option<usize>], tolerance: f64) -> (Option<usize>, bool) {
    let found: Vec<usize> = each.iter().copied().flatten().collect();
    if let [one] = found[..] {
        return (Some(one), false);
    }
    let same = |pair: &&[usize]| {
        let of = |i: usize| trials[i].estimate.as_ref();
        let both = of(pair[0]).zip(of(pair[1]));
        both.is_some_and(|(a, b)| agree(a, b, tolerance))
    };
    let first = found.windows(2).find(same).map(|pair| pair[0]);
    (first, first.is_none() && !found.is_empty())
}

/// See [`Calibration::steadiest`]. Trials with the same nβ and γ are neighbours.
pub fn steadiest(trials: &[Trial], tolerance: f64) -> Option<usize> {
    let usable = |i: usize| {
        let e = trials.get(i)?.estimate.as_ref()?;
        let hot = e.temperature > 1.0 + tolerance.max(2.0 * e.temperature_mcse);
        let fit = e.failed == 0 && !hot && e.rhat < MOST_RHAT && e.lambda > 0.0;
        fit.then_some(((trials[i].nbeta, trials[i].gamma), e.lambda, e.mcse))
    };
    let score = |i: usize| {
        let (place, lambda, mcse) = usable(i)?;
        let change = |other: Option<((f64, f64), f64, f64)>| {
            other
                .filter(|o| o.0 == place)
                .map(|o| (o.1 / lambda).ln().abs())
        };
        // Where the next larger step is no longer usable this one is at the edge, and steady by chance.
        let larger = change(usable(i + 1))?;
        let smaller = change(i.checked_sub(1).and_then(usable)).unwrap_or(0.0);
        let largest = larger.max(smaller);
        Some(largest.hypot(mcse / lambda))
    };
    let scored = (0..trials.len()).filter_map(|i| Some((i, score(i)?)));
    let best = scored.min_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(i, _)| i)
}

/// Whether chains have not relaxed, which says nothing of larger steps.
fn is_cold(e: &Found, tolerance: f64) -> bool {
    e.temperature < 1.0 - tolerance.max(2.0 * e.temperature_mcse)
}

/// What speaks against a trial; `smaller` is the one with the next smaller step.
pub fn against(trial: &Trial, smaller: Option<&Trial>, tolerance: f64) -> Vec<String> {
    let Some(e) = &trial.estimate else {
        return vec!["every chain failed".into()];
    };
    let mut out = Vec::new();
    if e.failed > 0 {
        out.push(format!("{} of {} chains failed", e.failed, e.chains));
    }
    let off = e.temperature - 1.0;
    let clear = off.abs() > tolerance.max(2.0 * e.temperature_mcse);
    match e.undecided {
        true if e.temperature_mcse > tolerance => {
            out.push("the virial is too noisy to tell".into())
        }
        _ if clear && off > 0.0 => out.push("hot: the step is too large".into()),
        _ if clear => out.push("cold: chains have not relaxed".into()),
        _ => {}
    }
    if let Some((says, factor)) = lacking("the loss", [e.rhat, e.ess[0], e.ess[1]]) {
        let times = factor.map_or(String::new(), |f| {
            format!(", take about {f:.1} times as many steps")
        });
        out.push(format!("not converged: {says}{times}"));
    }
    if let Some(s) = smaller
        .and_then(|t| t.estimate.as_ref())
        .filter(|s| !is_cold(s, tolerance))
        && !agree(e, s, tolerance)
    {
        out.push("the next smaller step gives a different estimate".into());
    }
    if e.lambda < -2.0 * e.mcse {
        out.push("λ̂ is negative: w0 is not a local minimum, train further".into());
    }
    if e.mcse > tolerance * e.lambda.abs() {
        out.push("the error bar is wide".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gamma_is_confirmed_by_the_next_or_alone() {
        let trial = |lambda: f64| Trial {
            gamma: lambda,
            step: 1e-3,
            nbeta: 10.0,
            estimate: Some(Found {
                lambda,
                mcse: 0.01,
                temperature: 1.0,
                temperature_mcse: 0.01,
                undecided: false,
                rhat: 1.0,
                ess: [1000.0; 2],
                chains: 4,
                failed: 0,
            }),
            against: Vec::new(),
        };
        let trials = [3.0, 2.0, 2.01].map(trial);
        let of = |each: &[Option<usize>]| across(&trials, each, 0.05);
        assert_eq!(of(&[Some(0), Some(1), Some(2)]), (Some(1), false));
        assert_eq!(of(&[Some(0), Some(1), None]), (None, true));
        assert_eq!(of(&[None, Some(1), None]), (Some(1), false));
        assert_eq!(of(&[None, None, None]), (None, false));
    }

    #[test]
    fn what_speaks_against_a_trial_is_said() {
        let fine = Found {
            lambda: 2.0,
            mcse: 0.01,
            temperature: 1.0,
            temperature_mcse: 0.01,
            undecided: false,
            rhat: 1.0,
            ess: [1000.0; 2],
            chains: 4,
            failed: 0,
        };
        let remarks = |found: Found| {
            let trial = Trial {
                gamma: 1.0,
                step: 1e-3,
                nbeta: 10.0,
                estimate: Some(found),
                against: Vec::new(),
            };
            against(&trial, None, 0.05)
        };
        assert_eq!(remarks(fine), [""; 0]);
        assert_eq!(
            remarks(Found { failed: 1, ..fine }),
            ["1 of 4 chains failed"]
        );
        let below = remarks(Found {
            lambda: -2.0,
            ..fine
        });
        assert!(below.len() == 1 && below[0].contains("not a local minimum"));
    }
}
