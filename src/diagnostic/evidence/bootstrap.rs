//! Block bootstrap: errors of any function of a ladder, without linearising it.

use super::super::ess::integrated_autocorrelation_time;
use super::super::moments::{mean_of, quantile_of_sorted, variance_of};
use super::ladder::{Ladder, Replicas};
use crate::error::Result;
use anyhow::ensure;

/// How [`block_bootstrap`] resamples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootstrapOptions {
    /// Number of resampled ladders, at least 2; their standard deviation is known to one part in sqrt(2·replicates).
    pub replicates: usize,
    /// Draws per block, from 1 to the shortest chain; [`block_length`] proposes one.
    pub block: usize,
    /// Whether blocks are of the same sweeps at every rung, or picked for each rung on its own.
    pub replicas: Replicas,
}

/// Spread of one quantity over resampled ladders, in its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Mean over the replicates; less the estimate from all draws, it is that estimate's bias.
    pub mean: f64,
    /// Standard deviation over the replicates.
    pub standard_error: f64,
    /// 16 % quantile over the replicates.
    pub low: f64,
    /// 84 % quantile over the replicates.
    pub high: f64,
    /// Replicates that gave a number.
    pub succeeded: usize,
    /// Replicates that failed or gave none: any at all are a sign of too few draws.
    pub failed: usize,
}

/// Which draws make up one resampled ladder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// (chain, draw) that goes to each place, per rung and chain.
    picks: Vec<Vec<Vec<(usize, usize)>>>,
}

impl Blocks {
    /// `data[rung][chain][draw]` resampled; anything of the shape of the energies.
    ///
    /// Errors: another shape.
    pub fn apply(&self, data: &[Vec<Vec<f64>>]) -> Result<Vec<Vec<Vec<f64>>>> {
        ensure!(
            self.picks.len() == data.len(),
            "data of {} rungs on a ladder of {}",
            data.len(),
            self.picks.len()
        );
        for (rung, (places, chains)) in self.picks.iter().zip(data).enumerate() {
            let draws = places.first().map_or(0, Vec::len);
            ensure!(
                places.len() == chains.len() && chains.iter().all(|c| c.len() >= draws),
                "data of another shape than the ladder at rung {rung}"
            );
        }
        Ok(self.of(|rung, chain, draw| data[rung][chain][draw]))
    }

    fn of(&self, value: impl Fn(usize, usize, usize) -> f64) -> Vec<Vec<Vec<f64>>> {
        let of_chain = |rung: usize, picks: &[(usize, usize)]| {
            let values = picks.iter().map(|(chain, draw)| value(rung, *chain, *draw));
            values.collect()
        };
        let rungs = self.picks.iter().enumerate();
        rungs
            .map(|(rung, chains)| chains.iter().map(|picks| of_chain(rung, picks)).collect())
            .collect()
    }
}

/// Spread of `statistic` over ladders made of random blocks of the draws; one result per number that it returns.
///
/// Blocks of consecutive draws keep the autocorrelation within them (Künsch, Annals of Statistics 17 (1989) 1217), their
/// ends wrap around so that every draw is as likely as any other (Politis and Romano 1992), and they come from any chain
/// of the rung, so that chains that disagree count. With [`Replicas::Exchanging`] each place of the ladder gets the same
/// sweeps of the same chain at every rung, which keeps what swaps correlate. `uniform(replicate, element)` is a random
/// number from [0, 1), a pure function of its counters. The
/// squared error is too small by about the autocorrelation time over twice the block length.
///
/// Errors: options out of range; [`Replicas::Exchanging`] with rungs of different shape; fewer than 2 replicates
/// succeed; replicates of different length.
pub fn block_bootstrap(
    ladder: &Ladder,
    options: BootstrapOptions,
    uniform: impl Fn(u64, u32) -> f64,
    statistic: impl Fn(&Ladder, &Blocks) -> Result<Vec<f64>>,
) -> Result<Vec<Bootstrap>> {
    ensure!(
        options.replicates >= 2,
        "a bootstrap needs at least 2 replicates, not {}",
        options.replicates
    );
    let mut found: Vec<Vec<f64>> = Vec::new();
    let mut failure = None;
    for replicate in 0..options.replicates {
        let blocks = pick(ladder, options, |element| {
            uniform(replicate as u64, element)
        })?;
        let rows = (0..ladder.rungs()).map(|rung| ladder.chains(rung).collect::<Vec<_>>());
        let rows: Vec<Vec<&[f64]>> = rows.collect();
        let energies = blocks.of(|rung, chain, draw| rows[rung][chain][draw]);
        let resampled = Ladder::new(ladder.betas(), &energies)?;
        match statistic(&resampled, &blocks) {
            Ok(values) if values.iter().all(|v| v.is_finite()) => found.push(values),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    if found.len() < 2 {
        let succeeded = found.len();
        let message = format!("{succeeded} of {} bootstraps succeeded", options.replicates);
        return Err(match failure {
            Some(error) => error.context(message),
            None => anyhow::anyhow!(message),
        });
    }
    ensure!(
        found.iter().all(|values| values.len() == found[0].len()),
        "the bootstrapped function returns lists of different lengths"
    );
    let spread = |which: usize| {
        let mut values: Vec<f64> = found.iter().map(|values| values[which]).collect();
        values.sort_unstable_by(f64::total_cmp);
        Bootstrap {
            mean: mean_of(values.iter().copied()),
            standard_error: variance_of(values.iter().copied()).sqrt(),
            low: quantile_of_sorted(&values, 0.16),
            high: quantile_of_sorted(&values, 0.84),
            succeeded: found.len(),
            failed: options.replicates - found.len(),
        }
    };
    Ok((0..found[0].len()).map(spread).collect())
}

/// A block length for the most correlated rung, in draws: one that makes squared error bars 5 % too small at most.
///
/// Blocks of b draws miss the share (G/g)/b of a variance (Künsch 1989), where G/g = Σ_k |k| rho_k / Σ_k rho_k is
/// (tau - 1/tau)/2 for an AR(1) process of autocorrelation time tau. The length that balances this bias against the
/// noise of the error bar, (3 n (G/g)²/2)^(1/3) for n draws per chain (Politis and White, Econometric Reviews 23 (2004)
/// 53), is shorter unless chains are very long, and then is taken. At most a quarter of a chain: see to it that a
/// chain has more than 40 tau draws.
pub fn block_length(ladder: &Ladder) -> usize {
    let of_rung = |rung: usize| {
        let chains: Vec<&[f64]> = ladder.chains(rung).collect();
        let tau = integrated_autocorrelation_time(&chains).max(1.0);
        let n = chains[0].len() as f64;
        let reach = (tau - 1.0 / tau) / 2.0;
        let balanced = (1.5 * n * reach * reach).cbrt();
        balanced.max(20.0 * reach).min(n / 4.0).ceil().max(1.0) as usize
    };
    (0..ladder.rungs()).map(of_rung).max().unwrap_or(1)
}

fn pick(
    ladder: &Ladder,
    options: BootstrapOptions,
    uniform: impl Fn(u32) -> f64,
) -> Result<Blocks> {
    let mut element = 0;
    let mut of_rung = |rung: usize| -> Result<Vec<Vec<(usize, usize)>>> {
        let chains = ladder.chains(rung).count();
        let draws = ladder.draws(rung) / chains;
        ensure!(
            (1..=draws).contains(&options.block),
            "blocks of {} draws from chains of {draws}",
            options.block
        );
        let mut below = |n: usize| {
            let x = uniform(element);
            element = element.wrapping_add(1);
            ((x * n as f64) as usize).min(n - 1)
        };
        let mut places = Vec::with_capacity(chains);
        for _ in 0..chains {
            let mut place = Vec::with_capacity(draws);
            while place.len() < draws {
                let (chain, start) = (below(chains), below(draws));
                let length = options.block.min(draws - place.len());
                place.extend((start..start + length).map(|t| (chain, t % draws)));
            }
            places.push(place);
        }
        Ok(places)
    };
    let picks = match options.replicas {
        Replicas::Independent => (0..ladder.rungs()).map(of_rung).collect::<Result<_>>()?,
        Replicas::Exchanging => {
            ladder.sweeps()?;
            vec![of_rung(0)?; ladder.rungs()]
        }
    };
    Ok(Blocks { picks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(replicate: u64, element: u32) -> f64 {
        let x = super::super::super::rank::normal_draws(replicate * 1000 + element as u64 + 1, 1);
        x[0].abs().fract()
    }

    #[test]
    fn exchanging_replicas_keep_their_sweeps_and_others_do_not() {
        // An energy that tells its chain and draw.
        let rung = || (0..2).map(|c| (0..10).map(|t| (10 * c + t) as f64).collect());
        let energies: Vec<Vec<Vec<f64>>> = vec![rung().collect(), rung().collect()];
        let ladder = Ladder::new(&[0.0, 1.0], &energies).unwrap();
        for (replicas, same) in [(Replicas::Exchanging, true), (Replicas::Independent, false)] {
            let options = BootstrapOptions {
                replicates: 2,
                block: 3,
                replicas,
            };
            block_bootstrap(&ladder, options, uniform, |resampled, blocks| {
                let both: Vec<Vec<&[f64]>> =
                    (0..2).map(|r| resampled.chains(r).collect()).collect();
                assert_eq!(both[0] == both[1], same);
                for chain in &both[0] {
                    let next = |x: f64| 10.0 * (x / 10.0).floor() + (x + 1.0) % 10.0;
                    for block in chain.chunks(3) {
                        assert!(block.windows(2).all(|w| next(w[0]) == w[1]), "{block:?}");
                    }
                }
                assert_eq!(blocks.apply(&energies).unwrap()[0][1], both[0][1]);
                assert!(blocks.apply(&energies[..1]).is_err());
                Ok(vec![0.0])
            })
            .unwrap();
        }
    }

    #[test]
    fn failures_are_counted_and_options_checked() {
        let energies = vec![vec![vec![1.0, 2.0, 3.0, 4.0]]; 2];
        let ladder = Ladder::new(&[0.0, 1.0], &energies).unwrap();
        let options = |replicates, block| BootstrapOptions {
            replicates,
            block,
            replicas: Replicas::Independent,
        };
        let run = |options, odd: f64| {
            let calls = std::cell::Cell::new(0);
            block_bootstrap(&ladder, options, uniform, |_, _| {
                calls.set(calls.get() + 1);
                Ok(vec![if calls.get() % 2 == 1 { odd } else { 1.0 }])
            })
        };
        let found = run(options(10, 2), f64::NAN).unwrap()[0];
        assert_eq!((found.succeeded, found.failed), (5, 5));
        assert_eq!(
            (found.standard_error, found.low, found.high),
            (0.0, 1.0, 1.0)
        );
        for (bad, message) in [
            (options(1, 2), "at least 2"),
            (options(9, 0), "blocks of 0"),
            (options(9, 5), "chains of 4"),
            (options(3, 1), "1 of 3"),
        ] {
            let error = run(bad, f64::NAN).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
