//! Parts of a run: which chains this process moves, where several share a run, and how the parts become one again.
//!
//! **Ranks** (`mpirun -n 8 ergodic run …`) move their chains at the same time. At a swap they tell each other energies and what belongs to
//! temperatures, at a checkpoint the first one collects everything and writes it: what is on disk is what one process would have written, and
//! any number of ranks can go on from it.
//!
//! **Shards** (`--shard 3/8`) never hear of each other: each runs its chains to the end in a folder of its own, and `--merge 8` puts them together.

use super::exchange::Exchange;
use super::plan::{Plan, Starts};
use super::prediction::Predictor;
use super::resume::{check, fell_back, load};
use super::run::{ELSEWHERE, Failure, Meta, RunInfo};
use super::session::Session;
use super::state::State;
use crate::error::Result;
use crate::ranks::{Communicator, agree};
use crate::sampler::ConfiguredSampler;
use crate::store::archive::Archive;
use crate::store::checkpoint::{self, Tensors};
use crate::target::Target;
use std::path::PathBuf;

/// The part of a run that one of several processes does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which one, from 0.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// Chains come in turns; those that stay together, as replicas of a ladder that nobody else hears of, have one number.
    together: Together,
}

/// Which chains stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Together {
    /// Every chain for itself.
    None,
    /// Chains of one number, of so many per temperature: ladders.
    Ladders(usize),
    /// Chains of one temperature, of so many.
    Temperatures(usize),
}

impl Part {
    /// The part of this process.
    ///
    /// # Errors
    /// If the run cannot be divided so.
    pub fn of(plan: &Plan, sampler: &ConfiguredSampler, session: &Session) -> Result<Self> {
        let (number, of) = match session.shard {
            Some(shard) => shard,
            None => (session.ranks.rank(), session.ranks.size()),
        };
        let together = Together::of(plan, sampler, session.shard.is_some());
        let tuned = plan
            .exchange
            .as_ref()
            .is_some_and(|x: &Exchange| x.rounds > 0);
        anyhow::ensure!(
            session.shard.is_none() && session.merge.is_none() || !tuned,
            "{}: shards cannot tune one ladder; tune it in a short run, and give the shards its run.temperatures with tune: 0",
            plan.kind
        );
        anyhow::ensure!(
            session.shard.is_none() && session.merge.is_none() || plan.course.is_none(),
            "{}: shards never hear of each other, and cannot go on until all of them have converged; give them 'steps' without 'until'",
            plan.kind
        );
        anyhow::ensure!(
            of == 1
                || session.shard.is_some()
                || plan.exchange.is_none()
                || plan.predict.is_empty(),
            "{}: predictions belong to a temperature, which moves from rank to rank; leave out 'predict' under mpirun",
            plan.kind
        );
        anyhow::ensure!(
            of == 1 || session.shard.is_some() || plan.exchange.is_none() || plan.keep.is_none(),
            "{}: draws belong to a temperature, which moves from rank to rank; leave out 'keep' under mpirun",
            plan.kind
        );
        let out = Self {
            number,
            of,
            together,
        };
        let count = plan.temperatures.len() * plan.chains;
        anyhow::ensure!(
            session.shard.is_none() || !out.chains(number, count).is_empty(),
            "{}: shard {} of {of} has nothing to do: '{}' has {} {}",
            plan.kind,
            number + 1,
            plan.name,
            if plan.exchange.is_some() {
                plan.chains
            } else {
                count
            },
            if plan.exchange.is_some() {
                "ladders (the option chains)"
            } else {
                "chains"
            }
        );
        Ok(out)
    }

    /// Who moves a chain.
    fn owner(&self, chain: usize) -> usize {
        let turn = match self.together {
            Together::None => chain,
            Together::Ladders(count) => chain % count,
            Together::Temperatures(count) => chain / count,
        };
        turn % self.of
    }

    /// The chains of part `number`, of so many in the run.
    pub fn chains(&self, number: usize, count: usize) -> Vec<usize> {
        (0..count).filter(|c| self.owner(*c) == number).collect()
    }
}

impl Together {
    /// `apart` are processes that never hear of each other.
    fn of(plan: &Plan, sampler: &ConfiguredSampler, apart: bool) -> Self {
        match plan.exchange {
            _ if sampler.couples() => Self::Temperatures(plan.chains),
            Some(_) if apart => Self::Ladders(plan.chains),
            _ => Self::None,
        }
    }
}

/// How states of parts are made.
pub struct StateBuilder<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// The target.
    pub target: &'a Target,
    /// The sampler.
    pub sampler: &'a ConfiguredSampler,
    /// Posterior predictions that are averaged.
    pub predictors: &'a [Predictor<'a>],
    /// The part that this process does.
    pub part: Part,
}

impl StateBuilder<'_> {
    /// Chains of the run.
    fn count(&self) -> usize {
        self.plan.temperatures.len() * self.plan.chains
    }

    fn state(&self, index: Vec<usize>) -> Result<State> {
        self.plan
            .state(index, self.target, self.sampler, self.predictors)
    }

    /// The chains of a part, before they start.
    pub fn blank(&self, number: usize) -> Result<State> {
        self.state(self.part.chains(number, self.count()))
    }

    /// The chains of this process where they start.
    pub fn start(&self, starts: &Starts) -> Result<State> {
        let mut state = self.blank(self.part.number)?;
        state.start(starts, self.target);
        Ok(state)
    }

    /// The state of the whole run, on the first rank; none on the others. Where there is but one process it is that of its chains.
    pub fn whole(&self, state: &mut State, ranks: &dyn Communicator) -> Result<Option<State>> {
        let mut whole = self.state((0..self.count()).collect())?;
        if self.part.of > 1 && ranks.size() == 1 {
            // A shard: the others have nothing to say.
            whole.failures.fill(Some(Failure {
                step: 0,
                reason: ELSEWHERE.into(),
            }));
            whole.take_rows(state);
            whole.ladders.clone_from(&state.ladders);
            return Ok(Some(whole));
        }
        let mine = agree(ranks, self.encode(state))?;
        let Some(all) = ranks.gather_bytes(&mine, 0)? else {
            return Ok(None);
        };
        for (number, bytes) in all.iter().enumerate() {
            let mut part = self.blank(number)?;
            let (tensors, failures) = checkpoint::decode(bytes)?;
            Archive::restore(&mut part, tensors)?;
            part.failures = serde_json::from_value(failures)?;
            whole.take_rows(&part);
        }
        // The same on every rank.
        whole.ladders.clone_from(&state.ladders);
        Ok(Some(whole))
    }

    fn encode(&self, state: &mut State) -> Result<Vec<u8>> {
        let failures = serde_json::to_value(&state.failures)?;
        checkpoint::encode(&failures, &Archive::of(state)?.tensors())
    }

    /// Take the chains of this process from what a checkpoint holds of the whole run.
    pub fn restore(&self, state: &mut State, tensors: Tensors, meta: &Meta) -> Result<()> {
        if state.chains == self.count() {
            Archive::restore(state, tensors)?;
            state.failures.clone_from(&meta.failures);
            return Ok(());
        }
        let mut whole = self.state((0..self.count()).collect())?;
        Archive::restore(&mut whole, tensors)?;
        whole.failures.clone_from(&meta.failures);
        state.take_rows(&whole);
        state.ladders.clone_from(&whole.ladders);
        Ok(())
    }

    /// The state of the whole run from the finished folders of its shards; their seconds, added up.
    pub fn merge(
        &self,
        state: &mut State,
        shards: usize,
        info: &RunInfo,
        session: &Session,
        notes: &mut Vec<String>,
    ) -> Result<f64> {
        let mut seconds = 0.0;
        let name = &self.plan.name;
        for number in 0..shards {
            let (folder, chains) = self.shard(number, shards, session);
            let (tensors, mut meta, older) = load(&folder)?.ok_or_else(|| {
                anyhow::anyhow!(
                    "{}: there is no such shard of this run; run it first, with the same --out",
                    folder.display()
                )
            })?;
            check(&folder, &meta.info, info)?;
            let shard = format!("{name}, shard {} of {shards}", number + 1);
            fell_back(
                &shard,
                "with all its steps",
                older.filter(|_| meta.done),
                notes,
                session,
            );
            notes.append(&mut meta.notes);
            anyhow::ensure!(
                meta.done,
                "{}: this shard is not finished; continue it with --shard {}/{shards} --resume",
                folder.display(),
                number + 1
            );
            let mut whole = self.state((0..self.count()).collect())?;
            Archive::restore(&mut whole, tensors)?;
            whole.failures.clone_from(&meta.failures);
            let mut part = self.state(chains)?;
            part.take_rows(&whole);
            state.take_rows(&part);
            if let (Some(all), Some(own)) = (&mut state.ladders, &whole.ladders) {
                all.take_ladders(own, |ladder| ladder % shards == number);
            }
            seconds += meta.seconds;
        }
        Ok(seconds)
    }

    /// The folder of one of so many shards, and its chains.
    pub fn shard(&self, number: usize, of: usize, session: &Session) -> (PathBuf, Vec<usize>) {
        let together = Together::of(self.plan, self.sampler, true);
        let part = Part {
            number,
            of,
            together,
        };
        let folder = session.out.join(shard_folder(number, of));
        (
            folder.join(&self.plan.name),
            part.chains(number, self.count()),
        )
    }
}

/// Whether a folder has the name of one of a shard.
pub fn is_shard(name: &str) -> bool {
    let rest = name.strip_prefix("shard-");
    rest.and_then(|r| r.split_once("-of-"))
        .is_some_and(|(k, n)| [k, n].iter().all(|x| x.parse::<usize>().is_ok()))
}

/// The folder of a shard within that of the results.
pub fn shard_folder(number: usize, of: usize) -> String {
    format!("shard-{}-of-{of}", number + 1)
}
