//! What a run's traces say of its health at a temperature: trajectories that diverged or were cut short, levels of energy that are hard to leave,
//! starts that are not forgotten.

use super::plan::starts::spread;
use super::run::{Group, Run};
use crate::diagnostic::{self, Equilibration};
use crate::engine::report::BFMI;
use crate::error::Result;
use rayon::prelude::*;
use serde::Serialize;

/// Fraction of missing information below which a chain is slow to change its energy.
pub(crate) const LEAST_BFMI: f64 = 0.3;

/// Share of trajectories cut short above which `max_depth` is worth raising.
pub(crate) const MOST_CUT_SHORT: f64 = 0.01;

/// Collective temperature ratio of the minibatch noise up to which stiff directions are not much too hot.
pub(crate) const MOST_COLLECTIVE: f64 = 0.1;

/// How far apart chains must start, relative to how far apart they end, for R̂ to see most modes.
pub(crate) const LEAST_SPREAD: f64 = 0.5;

/// Share of the draws after burn-in that may be remembered.
pub(crate) const MOST_PREFIX: f64 = 0.25;

/// The health of a run at one temperature, over its healthy chains. What the sampler does not report is none.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    /// The temperature.
    pub temperature: f64,
    /// Trajectories that diverged.
    pub divergences: Option<Share>,
    /// Trajectories that `max_depth` ended before they turned.
    pub cut_short: Option<Share>,
    /// Doublings at most, of NUTS.
    pub max_depth: Option<u32>,
    /// Bayesian fraction of missing information, per chain.
    pub bfmi: Option<Vec<f64>>,
    /// Collective temperature ratio of the minibatch noise, the mean of all steps, of pseudo-Langevin.
    pub collective_ratio: Option<f64>,
    /// The observable that remembers its start longest.
    pub equilibration: Option<Prefix>,
    /// The observable whose first tenth and last half differ most.
    pub geweke: Option<Score>,
}

/// How many of all steps after burn-in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Steps that did, all chains together.
    pub count: u64,
    /// All steps.
    pub of: u64,
    /// Their quotient.
    pub share: f64,
}

/// Draws that had better be dropped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prefix {
    /// Name of the observable.
    pub name: String,
    /// Number of the chain at its temperature.
    pub chain: usize,
    /// Draws after burn-in to drop from the beginning.
    pub draws: usize,
    /// The same over all draws after burn-in.
    pub share: f64,
}

/// A Geweke score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Name of the observable.
    pub name: String,
    /// Number of the chain at its temperature.
    pub chain: usize,
    /// In standard errors.
    pub z: f64,
    /// Scores among which it is the largest.
    pub among: usize,
}

impl Run {
    /// Its health at one temperature, by index.
    pub fn health(&self, temperature: usize) -> Result<Health> {
        let depth = self.info.options.iter().find(|(k, _)| k == "max_depth");
        let (equilibration, geweke) = self.memory_of_starts(temperature)?;
        Ok(Health {
            temperature: self.info.temperatures[temperature],
            divergences: self.share("diverging", temperature)?,
            cut_short: self.share("reached_max_treedepth", temperature)?,
            max_depth: depth.and_then(|(_, text)| text.parse().ok()),
            bfmi: self.last(BFMI.0, temperature)?,
            collective_ratio: self.mean_report("ratio_collective", temperature)?,
            equilibration,
            geweke,
        })
    }

    /// What the sampler's own numbers say against the draws, at each temperature where they do, by index.
    pub fn against(&self) -> Result<Vec<(usize, String)>> {
        let mut out = Vec::new();
        for t in 0..self.info.temperatures.len() {
            let says = self.health(t)?.against();
            if !says.is_empty() {
                out.push((t, says.join("; ")));
            }
        }
        Ok(out)
    }

    /// How far apart the chains of a temperature started, relative to how far apart they ended; none where starts were not given.
    pub fn relative_spread(&self, temperature: usize) -> Option<f64> {
        let start = self.info.start_spread?;
        let first = temperature * self.info.chains;
        let healthy = (first..first + self.info.chains).filter(|c| self.failures[*c].is_none());
        let ends: Vec<_> = healthy.map(|c| &self.params[c]).collect();
        Some((start / spread(&ends)?).sqrt())
    }

    /// The mean of what the sampler reported after burn-in, if it did; records hold the means of the steps between them.
    fn mean_report(&self, name: &str, temperature: usize) -> Result<Option<f64>> {
        if self.info.column(name).is_err() {
            return Ok(None);
        }
        let draws = self.draws(name, 0, temperature, true)?;
        let all: Vec<f64> = draws.into_iter().flatten().collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        Ok(mean.is_finite().then_some(mean))
    }

    /// The steps after burn-in of which the sampler reported 1 and not 0.
    fn share(&self, name: &str, temperature: usize) -> Result<Option<Share>> {
        let Some(share) = self.mean_report(name, temperature)? else {
            return Ok(None);
        };
        let first = temperature * self.info.chains;
        let healthy = (first..first + self.info.chains).filter(|c| self.failures[*c].is_none());
        let of = healthy.map(|c| self.steps[c].saturating_sub(self.info.burn_in));
        let of: u64 = of.sum();
        Ok(Some(Share {
            count: (share * of as f64).round() as u64,
            of,
            share,
        }))
    }

    /// What the sampler reported last, per chain.
    fn last(&self, name: &str, temperature: usize) -> Result<Option<Vec<f64>>> {
        if self.info.column(name).is_err() {
            return Ok(None);
        }
        let draws = self.draws(name, 0, temperature, true)?;
        let last: Vec<f64> = draws.iter().filter_map(|d| d.last().copied()).collect();
        Ok(last.iter().any(|x| x.is_finite()).then_some(last))
    }

    /// The longest memory of a start, and the largest Geweke score, among all chains and all observables that are no vectors.
    fn memory_of_starts(&self, temperature: usize) -> Result<(Option<Prefix>, Option<Score>)> {
        let (mut prefix, mut score): (Option<Prefix>, Option<Score>) = (None, None);
        let scalar =
            |c: &&super::run::Column| c.group == Group::Posterior && c.components.is_none();
        for column in self.info.columns.iter().filter(scalar) {
            let draws = self.draws(&column.name, 0, temperature, true)?;
            let of = |trace: &Vec<f64>| {
                let found = diagnostic::equilibration(trace);
                (found, diagnostic::geweke(trace), trace.len())
            };
            let each: Vec<_> = draws.par_iter().map(of).collect();
            for (chain, (found, z, length)) in each.into_iter().enumerate() {
                let name = || column.name.clone();
                if let Some(Equilibration { from, .. }) = found
                    && prefix.as_ref().is_none_or(|p| from > p.draws)
                {
                    prefix = Some(Prefix {
                        name: name(),
                        chain,
                        draws: from,
                        share: from as f64 / length as f64,
                    });
                }
                if z.is_finite() {
                    let among = score.as_ref().map_or(0, |s| s.among) + 1;
                    match &mut score {
                        Some(s) if s.z.abs() >= z.abs() => s.among = among,
                        _ => {
                            score = Some(Score {
                                name: name(),
                                chain,
                                z,
                                among,
                            })
                        }
                    }
                }
            }
        }
        Ok((prefix, score))
    }
}

impl Health {
    /// What is wrong with the trajectories, in words: the run has not converged while there is any of it.
    pub fn against(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(d) = self.divergences.filter(|d| d.count > 0) {
            out.push(format!(
                "{} of {} trajectories diverged ({:.2} %): the step is too large in the regions they entered, and these are missed; take a smaller `dt`, a higher `acceptance`, or another parametrisation",
                d.count,
                d.of,
                100.0 * d.share
            ));
        }
        if let Some(c) = self.cut_short.filter(|c| c.share > MOST_CUT_SHORT) {
            out.push(format!(
                "{:.1} % of the trajectories were cut short by max_depth{} before they turned back: raise it",
                100.0 * c.share,
                self.max_depth.map_or(String::new(), |d| format!(" = {d}"))
            ));
        }
        let least = self.bfmi.iter().flatten().copied().fold(f64::NAN, f64::min);
        if least < LEAST_BFMI {
            out.push(format!(
                "the fraction of missing information is {least:.2} in the worst chain, below {LEAST_BFMI}: new momenta do not carry it between levels of the energy, and the tails of the energy are undersampled"
            ));
        }
        if let Some(ratio) = self.collective_ratio.filter(|r| *r > MOST_COLLECTIVE) {
            out.push(format!(
                "the collective ratio of the minibatch noise is {ratio:.2} (at most {MOST_COLLECTIVE}): stiff directions are too hot; take masses: \"collective\", a smaller `ratio`, larger minibatches, or a sampler with all examples"
            ));
        }
        out
    }

    /// All that is to be known, in words; nothing if all is well.
    pub fn remarks(&self) -> Vec<String> {
        let mut out = self.against();
        if let Some(p) = self
            .equilibration
            .as_ref()
            .filter(|p| p.share > MOST_PREFIX)
        {
            out.push(format!(
                "{} of chain {} still remembers its start for {:.0} % of the draws after burn-in: discarding these by a longer burn-in raises the ESS",
                p.name,
                p.chain,
                100.0 * p.share
            ));
        }
        out
    }
}
