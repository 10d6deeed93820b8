//! Ladders in a run: which replica of the run is on which rung, what happens when all have come to a swap, and the rounds
//! that space the rungs during burn-in.
//!
//! A run has as many independent ladders as it has chains per temperature. Replica r of ladder l is chain r·L + l of the
//! run, and stays that; *places* are numbered in the same way by rung.

use super::replica::{Heard, message};
use super::{
    Assignment, Barrier, Exchange, IndexProcess, Next, PairStatistics, Rounds, Talk, betas_of,
    numbers, swap,
};
use crate::error::Result;
use crate::rng::{Purpose, Stream};
use crate::sampler::OfTemperature;
use crate::simulation::plan::Plan;
use crate::simulation::state::ChainMut;
use crate::store::archive::Archive;
use std::collections::BTreeMap;
use std::ops::Range;

/// How far a rejection may be from the mean of all, for the tuning to leave the ladder as it is.
const TOLERANCE: f64 = 0.03;

/// What a round of tuning found.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundReport {
    /// Swaps in the round.
    pub sweeps: u64,
    /// Λ of its ladder.
    pub barrier: f64,
    /// Largest distance of a rejection from their mean.
    pub spread: f64,
    /// Its ladder, T per rung.
    pub temperatures: Vec<f64>,
}

/// All ladders of a run.
#[derive(Debug, Clone)]
pub struct Ladders {
    /// T per rung, from cold to hot; infinite for the prior.
    pub temperatures: Vec<f64>,
    /// Swaps so far, burn-in included.
    pub sweeps: u64,
    /// Who is where, per ladder.
    pub assignments: Vec<Assignment>,
    /// What has happened since the last round, or since burn-in; per ladder.
    pub processes: Vec<IndexProcess>,
    /// The rounds so far.
    pub rounds: Vec<RoundReport>,
    /// The rung of each replica at each record, per ladder.
    pub paths: Vec<Vec<u64>>,
}

impl Ladders {
    /// `count` ladders with these rungs, replica r on rung r.
    pub fn new(temperatures: &[f64], count: usize) -> Result<Self> {
        betas_of(temperatures)?;
        let assignment = Assignment::new(temperatures.len());
        Ok(Self {
            temperatures: temperatures.to_vec(),
            sweeps: 0,
            processes: vec![IndexProcess::new(&assignment)?; count],
            assignments: vec![assignment; count],
            rounds: Vec::new(),
            paths: vec![Vec::new(); count],
        })
    }

    /// Rungs per ladder.
    pub fn rungs(&self) -> usize {
        self.temperatures.len()
    }

    /// Number of ladders.
    pub fn count(&self) -> usize {
        self.assignments.len()
    }

    /// The rung that a chain of the run is on.
    pub fn rung_of(&self, chain: usize) -> usize {
        let (replica, ladder) = (chain / self.count(), chain % self.count());
        self.assignments[ladder].rung_of()[replica]
    }

    /// The place that a chain of the run is at.
    pub fn place_of(&self, chain: usize) -> usize {
        self.rung_of(chain) * self.count() + chain % self.count()
    }

    /// The chains of the run by the place they are at: the inverse of [`Ladders::place_of`].
    pub fn chains_by_place(&self) -> Vec<usize> {
        let mut out = vec![0; self.count() * self.rungs()];
        (0..out.len()).for_each(|chain| out[self.place_of(chain)] = chain);
        out
    }

    /// The temperature at which the sampler's state of a replica starts: the prior has none, and takes that of the rung below.
    pub fn held_at(&self, rung: usize) -> f64 {
        let finite = self.temperatures[..=rung].iter().rev();
        finite
            .copied()
            .find(|t| t.is_finite())
            .unwrap_or(f64::INFINITY)
    }

    /// Swap: all chains have come to `step`, up to which `records` records were made. These are the chains of this process, in order, with what of
    /// their sampler belongs to temperatures; `talk` gives everybody's numbers. Whether all shall pause afterwards, because a
    /// process wants to.
    pub fn exchange(
        &mut self,
        (mine, kept): (&mut [ChainMut], &OfTemperature),
        (step, records): (u64, usize),
        plan: &Plan,
        exchange: &Exchange,
        (pause, talk): (bool, &Talk),
    ) -> Result<bool> {
        self.note_paths(records);
        let (count, betas) = (self.count(), betas_of(&self.temperatures)?);
        let chains = count * self.rungs();
        let before: Vec<_> = (0..chains).map(|c| self.rung_of(c)).collect();
        let messages = talk(&message(mine, &kept.scalars, step, pause))?;
        let heard = Heard::new(&messages, chains)?;
        for ladder in 0..count {
            let energies: Vec<_> = heard.energies[ladder..]
                .iter()
                .step_by(count)
                .copied()
                .collect();
            let stream = Stream::new(plan.seed, Purpose::Swap, ladder, self.sweeps);
            let attempts = swap(
                exchange.pairs,
                self.sweeps,
                &betas,
                &energies,
                &mut self.assignments[ladder],
                |element| stream.uniform(element),
            )?;
            self.processes[ladder].add(&attempts, &self.assignments[ladder])?;
        }
        self.sweeps += 1;
        let warm = plan.burn_in / exchange.every;
        let ladder = self.temperatures.clone();
        if exchange.round_ends(warm).contains(&self.sweeps) {
            self.respace(exchange, warm)?;
        }
        if self.sweeps == warm {
            self.begin_again()?;
        }
        let holders = self.holders(&before);
        self.rearrange((mine, &kept.scalars), &holders, &heard, &ladder);
        for vector in kept.vectors_at(step, plan.burn_in) {
            self.move_vector((mine, vector), (&before, &holders), talk)?;
        }
        Ok(heard.pause)
    }

    /// Which chain was on the rung where each is now, if it was on these before.
    fn holders(&self, before: &[usize]) -> Vec<usize> {
        let count = self.count();
        let mut at = vec![0; before.len()];
        for (chain, rung) in before.iter().enumerate() {
            at[rung * count + chain % count] = chain;
        }
        let of = |chain| at[self.rung_of(chain) * count + chain % count];
        (0..before.len()).map(of).collect()
    }

    /// Let a state vector follow its rung: one at a time, so that only one is in memory twice.
    fn move_vector(
        &self,
        (mine, vector): (&mut [ChainMut], usize),
        (before, holders): (&[usize], &[usize]),
        talk: &Talk,
    ) -> Result<()> {
        let left = |chain: usize| self.rung_of(chain) != before[chain];
        let mut out = Vec::new();
        for own in mine.iter().filter(|c| left(c.member.index)) {
            out.push(own.member.index as f64);
            out.extend(own.row.vectors[vector].iter().map(|x| f64::from(*x)));
        }
        let messages = talk(&out)?;
        let width = 1 + mine.first().map_or(0, |c| c.row.w.len());
        let rows = messages.iter().flat_map(|m| m.chunks_exact(width));
        let found: BTreeMap<usize, &[f64]> = rows.map(|r| (r[0] as usize, &r[1..])).collect();
        for own in mine.iter_mut() {
            if let Some(found) = found.get(&holders[own.member.index]) {
                let own = own.row.vectors[vector].iter_mut();
                own.zip(*found).for_each(|(x, found)| *x = *found as f32);
            }
        }
        Ok(())
    }

    /// Enter where the replicas are for every record made since the last time.
    pub fn note_paths(&mut self, records: usize) {
        let rungs = self.rungs();
        for (path, assignment) in self.paths.iter_mut().zip(&self.assignments) {
            let rows = records.saturating_sub(path.len() / rungs);
            for _ in 0..rows {
                path.extend(assignment.rung_of().iter().map(|r| *r as u64));
            }
        }
    }

    /// Forget what was learnt from swaps so far.
    pub fn begin_again(&mut self) -> Result<()> {
        for (process, assignment) in self.processes.iter_mut().zip(&self.assignments) {
            *process = IndexProcess::new(assignment)?;
        }
        Ok(())
    }

    /// At the end of a round: space the rungs to equal rejection.
    fn respace(&mut self, exchange: &Exchange, warm: u64) -> Result<()> {
        let number = self.rounds.len() as u32;
        let first = exchange.round_ends(warm)[0];
        let rounds = Rounds {
            first,
            most: exchange.rounds,
            tolerance: TOLERANCE,
        };
        let betas = betas_of(&self.temperatures)?;
        // Where a failed replica stands in the way, or nothing is ever rejected, the ladder stays what it is.
        let found = rounds.after(number, &betas, &self.pairs()).ok();
        let (barrier, spread) = found
            .as_ref()
            .map_or((f64::NAN, f64::NAN), |(r, _)| (r.barrier, r.spread));
        self.rounds.push(RoundReport {
            sweeps: rounds.sweeps(number),
            barrier,
            spread,
            temperatures: self.temperatures.clone(),
        });
        self.begin_again()?;
        let Some((_, Next::Again { betas, .. } | Next::OutOfRounds { betas })) = found else {
            return Ok(());
        };
        let last = self.rungs() - 1;
        for (rung, beta) in betas.iter().enumerate().take(last).skip(1) {
            self.temperatures[rung] = 1.0 / beta;
        }
        Ok(())
    }

    /// Let what belongs to a temperature, and not to a replica, follow its rung.
    fn rearrange(
        &self,
        (mine, scalars): (&mut [ChainMut], &Range<usize>),
        holders: &[usize],
        heard: &Heard,
        ladder: &[f64],
    ) {
        let mut predictions: Vec<_> = mine
            .iter_mut()
            .map(|c| (c.member.index, Some(std::mem::take(&mut c.log.predictions))))
            .collect();
        for own in mine.iter_mut() {
            let chain = own.member.index;
            let rung = self.rung_of(chain);
            let was = holders[chain];
            if was != chain
                && let Some(found) = heard.of_temperature[was]
            {
                own.take_over(scalars, found);
            }
            // Where the other chain is elsewhere there are none.
            if let Ok(i) = predictions.binary_search_by_key(&was, |(c, _)| *c) {
                own.log.predictions = predictions[i].1.take().unwrap_or_default();
            }
            own.log.rung = self.temperatures[rung];
            if let Some(replica) = &mut own.log.replica {
                replica.rung = rung;
                // What was learnt at this rung was learnt at another temperature.
                replica.moved |= ladder[rung] != self.temperatures[rung];
            }
        }
    }

    /// The ladders on which something was swapped: not those of other shards.
    pub fn going(&self) -> impl Iterator<Item = &IndexProcess> {
        self.processes.iter().filter(|p| p.has_tried())
    }

    /// Round trips of all replicas, cold → hot → cold.
    pub fn round_trips(&self) -> u64 {
        let each = self.going().flat_map(|p| p.trips().round_trips());
        each.sum()
    }

    /// What is missing of ladders that no replica has been through; none if one has, or nothing was swapped.
    pub fn lacking(&self) -> Option<String> {
        let tried = self.going().next().is_some();
        (tried && self.round_trips() == 0).then(|| {
            "no replica has made a round trip: error bars cover only the regions that replicas have visited".into()
        })
    }

    /// What is known of each pair, all ladders together.
    pub fn pairs(&self) -> Vec<PairStatistics> {
        let each: Vec<_> = self.going().map(IndexProcess::pairs).collect();
        let merged = |pair: usize| {
            let all = each.iter().map(|pairs| pairs[pair]);
            let attempts: u64 = all.clone().map(|p| p.attempts).sum();
            let share = |p: &PairStatistics| p.attempts as f64 / attempts as f64;
            let known = all.clone().filter(|p| p.attempts > 0);
            PairStatistics {
                attempts,
                accepted: all.clone().map(|p| p.accepted).sum(),
                blocked: all.clone().map(|p| p.blocked).sum(),
                acceptance: match attempts {
                    0 => f64::NAN,
                    _ => known.clone().map(|p| share(&p) * p.acceptance).sum(),
                },
                error: known
                    .map(|p| (share(&p) * p.error).powi(2))
                    .sum::<f64>()
                    .sqrt(),
            }
        };
        (0..self.rungs() - 1).map(merged).collect()
    }

    /// Λ and its standard error, all ladders together.
    pub fn barrier(&self) -> (f64, f64) {
        let each: Vec<_> = self.going().map(IndexProcess::barrier).collect();
        let n = each.len() as f64;
        let value = each.iter().map(|(b, _)| b).sum::<f64>() / n;
        let error = each.iter().map(|(_, e)| e * e).sum::<f64>().sqrt() / n;
        (value, error)
    }

    /// The barrier as a function of β, from the rejections measured since burn-in.
    pub fn barrier_curve(&self) -> Result<Barrier> {
        let betas = betas_of(&self.temperatures)?;
        let rejections: Vec<_> = self
            .pairs()
            .iter()
            .map(|p| super::guarded(p.rejection(), p.attempts))
            .collect();
        Barrier::new(&betas, &rejections)
    }

    /// Take over some of another's ladders, with the same rungs.
    pub fn take_ladders(&mut self, from: &Self, which: impl Fn(usize) -> bool) {
        self.sweeps = from.sweeps;
        self.temperatures.clone_from(&from.temperatures);
        for l in (0..self.count()).filter(|l| which(*l)) {
            self.assignments[l].clone_from(&from.assignments[l]);
            self.processes[l].clone_from(&from.processes[l]);
            self.paths[l].clone_from(&from.paths[l]);
        }
    }

    /// Show everything to an archive.
    ///
    /// # Errors
    /// If the archive has the numbers of something else.
    pub fn keep(&mut self, archive: &mut Archive) -> Result<()> {
        archive.values("ladders.state.whole", [&mut self.sweeps])?;
        archive.copied("ladders.state.real", &mut self.temperatures)?;
        betas_of(&self.temperatures)?;
        let rungs = self.temperatures.len();
        archive.made(
            "ladders.rounds.real",
            &mut self.rounds,
            |rounds| {
                let numbers = |r: &RoundReport| {
                    let head = [r.sweeps as f64, r.barrier, r.spread];
                    [&head, &r.temperatures[..]].concat()
                };
                rounds.iter().flat_map(numbers).collect()
            },
            |rounds, found| {
                let round = |row: &[f64]| RoundReport {
                    sweeps: row[0] as u64,
                    barrier: row[1],
                    spread: row[2],
                    temperatures: row[3..].to_vec(),
                };
                *rounds = found.chunks_exact(3 + rungs).map(round).collect();
                Ok(())
            },
        )?;
        let ladders = (self.processes.iter_mut().zip(&mut self.assignments)).zip(&mut self.paths);
        for (l, ((process, assignment), path)) in ladders.enumerate() {
            let name = format!("ladders.process.{l}");
            numbers::keep(
                archive,
                &name,
                process,
                IndexProcess::to_numbers,
                IndexProcess::from_numbers,
            )?;
            let name = format!("ladders.rungs.{l}");
            numbers::keep(
                archive,
                &name,
                assignment,
                Assignment::to_numbers,
                Assignment::from_numbers,
            )?;
            archive.copied(&format!("ladders.path.{l}.whole"), path)?;
        }
        if archive.restores() {
            for (l, (assignment, path)) in self.assignments.iter().zip(&self.paths).enumerate() {
                anyhow::ensure!(
                    assignment.len() == rungs
                        && path.len().is_multiple_of(rungs)
                        && path.iter().all(|r| *r < rungs as u64),
                    "the checkpoint's ladder {l} has other rungs than its temperatures"
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod ladders_tests {
    use super::super::Pairs;
    use super::*;
    use crate::store::checkpoint;

    fn exchange(rounds: u32) -> Exchange {
        Exchange {
            every: 1,
            pairs: Pairs::Alternating,
            rounds,
            minimise: 0,
            from_prior: false,
        }
    }

    #[test]
    fn rounds_double_and_leave_twice_the_last_one() {
        assert_eq!(exchange(3).round_ends(150), [10, 30, 70]);
        assert_eq!(exchange(0).round_ends(150), [0; 0]);
    }

    #[test]
    fn numbers_bring_everything_back() {
        let mut ladders = Ladders::new(&[1.0, 2.0, f64::INFINITY], 2).unwrap();
        ladders.sweeps = 7;
        ladders.rounds.push(RoundReport {
            sweeps: 4,
            barrier: 1.5,
            spread: 0.25,
            temperatures: vec![1.0, 3.0, f64::INFINITY],
        });
        ladders.note_paths(2);
        let bytes = |ladders: &mut Ladders| {
            let mut kept = Archive::Saving(Vec::new());
            ladders.keep(&mut kept).unwrap();
            checkpoint::encode(&serde_json::Value::Null, &kept.tensors()).unwrap()
        };
        let kept = bytes(&mut ladders);
        let mut back = Ladders::new(&[1.0, 2.0, 4.0], 2).unwrap();
        let found = checkpoint::decode(&kept).unwrap().0;
        back.keep(&mut Archive::from(found)).unwrap();
        assert_eq!(bytes(&mut back), kept);
        assert_eq!(back.paths[1], [0, 1, 2, 0, 1, 2]);
        assert_eq!(ladders.held_at(2), 2.0);
        assert_eq!(ladders.chains_by_place(), [0, 1, 2, 3, 4, 5]);
    }
}
