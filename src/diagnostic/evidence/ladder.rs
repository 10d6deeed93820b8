//! The draws of a ladder of inverse temperatures, checked once, and the error bar of any estimate from them.

use super::super::mcse::mcse_mean;
use super::super::moments::mean_of;
use crate::error::Result;
use anyhow::{bail, ensure};

/// Fewest draws of a chain: below, no autocorrelation can be estimated.
const MIN_DRAWS: usize = 4;

/// A number and its standard error, in the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// One standard deviation of its Monte Carlo error.
    pub standard_error: f64,
}

/// Whether the rungs of a ladder were drawn independently of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// Each rung has chains of its own: squared errors of the rungs add.
    Independent,
    /// Replica exchange: chain c is the same ladder at every rung, and draw t the same sweep.
    ///
    /// Swaps correlate the rungs, so the influences of one sweep are added over the rungs before their error is taken.
    Exchanging,
}

/// Draws of the tempered energy at increasing inverse temperatures; borrows them.
#[derive(Debug, Clone)]
pub struct Ladder<'a> {
    betas: &'a [f64],
    energies: &'a [Vec<Vec<f64>>],
    /// Draws of a chain of each rung, that of the shortest.
    draws: Vec<usize>,
}

impl<'a> Ladder<'a> {
    /// Checks the draws: `betas[rung]` in 1/energy, from 0 upwards, and `energies[rung][chain][draw]` in energy.
    ///
    /// The chains of a rung are cut to its shortest. Errors: fewer than two rungs; inverse temperatures that are not
    /// finite, negative or not strictly increasing; a rung without chains; a chain of fewer than 4 draws; an energy that
    /// is not finite.
    pub fn new(betas: &'a [f64], energies: &'a [Vec<Vec<f64>>]) -> Result<Self> {
        ensure!(
            betas.len() >= 2,
            "a ladder needs at least two inverse temperatures, not {}",
            betas.len()
        );
        ensure!(
            betas.len() == energies.len(),
            "{} inverse temperatures but energies of {} rungs",
            betas.len(),
            energies.len()
        );
        for (rung, beta) in betas.iter().enumerate() {
            ensure!(
                beta.is_finite() && *beta >= 0.0,
                "inverse temperature {rung} of the ladder is {beta}; it must be finite and not negative"
            );
            ensure!(
                rung == 0 || betas[rung - 1] < *beta,
                "inverse temperatures must increase: number {rung}, {beta}, follows {}",
                betas[rung.saturating_sub(1)]
            );
        }
        let mut draws = Vec::with_capacity(energies.len());
        for (rung, chains) in energies.iter().enumerate() {
            let Some(shortest) = chains.iter().map(Vec::len).min() else {
                bail!("rung {rung} of the ladder has no chains");
            };
            ensure!(
                shortest >= MIN_DRAWS,
                "a chain of rung {rung} has {shortest} draws; at least {MIN_DRAWS} are needed"
            );
            for (chain, energies) in chains.iter().enumerate() {
                if let Some(draw) = energies.iter().position(|e| !e.is_finite()) {
                    bail!(
                        "energy {} at rung {rung}, chain {chain}, draw {draw}",
                        energies[draw]
                    );
                }
            }
            draws.push(shortest);
        }
        Ok(Self {
            betas,
            energies,
            draws,
        })
    }

    /// Inverse temperatures, 1/energy, increasing.
    pub fn betas(&self) -> &'a [f64] {
        self.betas
    }

    /// Number of rungs, at least 2.
    pub fn rungs(&self) -> usize {
        self.betas.len()
    }

    /// Whether the first rung is the prior, so that ln Z differences from it are absolute log evidences.
    pub fn starts_at_prior(&self) -> bool {
        self.betas[0] == 0.0
    }

    /// The chains of a rung, all of one length.
    pub(super) fn chains(&self, rung: usize) -> impl Iterator<Item = &'a [f64]> + Clone {
        let draws = self.draws[rung];
        self.energies[rung].iter().map(move |c| &c[..draws])
    }

    /// All energies of a rung, chain after chain.
    pub(super) fn energies(&self, rung: usize) -> impl Iterator<Item = f64> + Clone {
        self.chains(rung).flatten().copied()
    }

    /// Number of draws of a rung, over its chains.
    pub(super) fn draws(&self, rung: usize) -> usize {
        self.draws[rung] * self.energies[rung].len()
    }

    /// Chains and draws per chain, which every rung must share: otherwise sweeps do not line up.
    pub(super) fn sweeps(&self) -> Result<(usize, usize)> {
        let shape = |rung: usize| (self.energies[rung].len(), self.draws[rung]);
        let first = shape(0);
        for rung in 1..self.rungs() {
            let (chains, draws) = shape(rung);
            ensure!(
                (chains, draws) == first,
                "rungs of exchanging replicas must have the same chains and draws, but rung 0 has {} × {} and rung \
                 {rung} {chains} × {draws}",
                first.0,
                first.1
            );
        }
        Ok(first)
    }

    /// Fails unless `data` has the shape of the energies.
    pub(super) fn check_shape(&self, data: &[Vec<Vec<f64>>]) -> Result<()> {
        ensure!(
            data.len() == self.rungs(),
            "an observable of {} rungs on a ladder of {}",
            data.len(),
            self.rungs()
        );
        for (rung, (ours, theirs)) in self.energies.iter().zip(data).enumerate() {
            ensure!(
                ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|(a, b)| a.len() == b.len()),
                "the observable and the energy differ in chains or draws at rung {rung}"
            );
        }
        Ok(())
    }

    /// Standard error of an estimate whose error is, to first order, the sum over rungs of the mean of `influence`.
    ///
    /// `influence(rung, chain, draw, energy)` is in the unit of the estimate, up to a constant per rung.
    pub(super) fn standard_error(
        &self,
        replicas: Replicas,
        influence: impl Fn(usize, usize, usize, f64) -> f64,
    ) -> Result<f64> {
        let of_rung = |rung: usize| -> Vec<Vec<f64>> {
            let chains = self.chains(rung).enumerate();
            chains
                .map(|(chain, energies)| {
                    let draws = energies.iter().enumerate();
                    draws.map(|(t, e)| influence(rung, chain, t, *e)).collect()
                })
                .collect()
        };
        if replicas == Replicas::Independent {
            let squares = (0..self.rungs()).map(|rung| error_of_mean(of_rung(rung)).powi(2));
            return Ok(squares.sum::<f64>().sqrt());
        }
        self.sweeps()?;
        let mut sum = of_rung(0);
        for rung in 1..self.rungs() {
            for (sum, add) in sum.iter_mut().zip(of_rung(rung)) {
                sum.iter_mut().zip(add).for_each(|(s, a)| *s += a);
            }
        }
        Ok(error_of_mean(sum))
    }
}

/// Monte Carlo error of the mean of `rows`, shape (chains, draws).
fn error_of_mean(mut rows: Vec<Vec<f64>>) -> f64 {
    let centre = mean_of(rows.iter().flatten().copied());
    rows.iter_mut().flatten().for_each(|x| *x -= centre);
    // In units of the largest: `mcse_mean` holds draws within 1e-15 of each other, in any unit, for a constant.
    let scale = rows.iter().flatten().fold(0.0f64, |s, x| s.max(x.abs()));
    if scale == 0.0 {
        return 0.0;
    }
    rows.iter_mut().flatten().for_each(|x| *x /= scale);
    scale * mcse_mean(&rows)
}

/// Ln of the sum of exponentials, without overflow; minus infinity of nothing.
pub(in crate::diagnostic) fn ln_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return most;
    }
    most + values.map(|x| (x - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_ladder_is_refused_with_a_reason() {
        let rung = || vec![vec![1.0, 2.0, 3.0, 4.0]];
        let two = || vec![rung(), rung()];
        let mut hole = two();
        hole[1][0][2] = f64::NAN;
        type Case<'a> = (&'a [f64], Vec<Vec<Vec<f64>>>, &'a str);
        let cases: [Case; 9] = [
            (&[], vec![], "at least two"),
            (&[1.0], vec![rung()], "at least two"),
            (&[0.0, 1.0, 2.0], two(), "energies of 2 rungs"),
            (&[1.0, 1.0], two(), "must increase"),
            (&[-1.0, 1.0], two(), "not negative"),
            (&[0.0, f64::INFINITY], two(), "finite"),
            (&[0.0, 1.0], vec![rung(), vec![]], "no chains"),
            (&[0.0, 1.0], vec![rung(), vec![vec![1.0; 3]]], "3 draws"),
            (&[0.0, 1.0], hole, "rung 1, chain 0, draw 2"),
        ];
        for (betas, energies, message) in cases {
            let error = Ladder::new(betas, &energies).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn sweeps_that_do_not_line_up_are_refused() {
        let energies = [
            vec![vec![1.0, 2.0, 4.0, 3.0]],
            vec![vec![1.0, 2.0, 3.0, 5.0, 4.0]],
        ];
        let ladder = Ladder::new(&[0.0, 1.0], &energies).unwrap();
        let error = |replicas| ladder.standard_error(replicas, |_, _, _, e| e);
        assert!(error(Replicas::Independent).is_ok());
        let message = error(Replicas::Exchanging).unwrap_err().to_string();
        assert!(message.contains("1 × 4 and rung 1 1 × 5"), "{message}");
    }

    #[test]
    fn rungs_that_move_together_have_the_error_of_their_sum() {
        let noise = super::super::super::rank::normal_draws(1, 1000);
        let opposite: Vec<f64> = noise.iter().map(|x| -x).collect();
        let energies = [vec![noise.clone()], vec![noise], vec![opposite]];
        let ladder = Ladder::new(&[0.0, 1.0, 2.0], &energies).unwrap();
        let error = |replicas| ladder.standard_error(replicas, |_, _, _, e| e).unwrap();
        let (apart, together) = (error(Replicas::Independent), error(Replicas::Exchanging));
        assert!((apart / together - 3f64.sqrt()).abs() < 1e-9);
        // The unit of the energy does not matter, down to where `mcse_mean` would see a constant.
        let tiny = ladder.standard_error(Replicas::Independent, |_, _, _, e| 1e-30 * e);
        assert!((tiny.unwrap() / apart / 1e-30 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_sum_of_exponentials_neither_overflows_nor_vanishes() {
        let of = |values: &[f64]| ln_sum_exp(values.iter().copied());
        assert!((of(&[1e5, 1e5]) - (1e5 + 2f64.ln())).abs() < 1e-10);
        assert!((of(&[-1e5, -1e5, -2e5]) - (-1e5 + 2f64.ln())).abs() < 1e-10);
        assert_eq!(of(&[]), f64::NEG_INFINITY);
    }
}
