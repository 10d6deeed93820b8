//! What a replica carries, and what processes tell each other about theirs at a swap.

use crate::error::Result;
use crate::sampler::Before;
use crate::simulation::state::ChainMut;
use std::ops::Range;

/// What a replica carries beside its chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replica {
    /// The rung it is on.
    pub rung: usize,
    /// The energy that β multiplies, and after which step it was that.
    pub energy: (u64, f64),
    /// The temperature that the sampler's state is of: the replica's, but on the prior rung, where it has none.
    pub held: f64,
    /// Whether its parameters were drawn from the prior since the sampler has seen them.
    pub redrawn: bool,
    /// Whether its rung has moved since the sampler has last stepped.
    pub moved: bool,
}

impl Replica {
    /// Come to where it now is, at temperature `now`: what has changed for its sampler, if anything has. `same_energy` says whether U is the same
    /// function at all temperatures.
    pub fn arrive(&mut self, now: f64, same_energy: bool) -> Option<Before> {
        let other = self.held != now;
        if now.is_infinite() || !other && !self.redrawn && !self.moved {
            return None;
        }
        let before = Before {
            temperature: self.held,
            redrawn: self.redrawn,
            stale: self.redrawn || other && !same_energy,
            again: self.moved,
        };
        (self.held, self.redrawn, self.moved) = (now, false, false);
        Some(before)
    }
}

/// Everybody's numbers, in the order of the processes, for one's own.
pub type Talk<'a> = dyn Fn(&[f64]) -> Result<Vec<Vec<f64>>> + Sync + 'a;

/// What a process tells the others at a swap: whether it wants to pause, the numbers that follow per chain, and these: the chain, its energy
/// (NaN once it has failed), and what belongs to its temperature, the `scalars` among it.
pub(super) fn message(
    chains: &[ChainMut],
    scalars: &Range<usize>,
    step: u64,
    pause: bool,
) -> Vec<f64> {
    let width = 2 + chains
        .first()
        .map_or(0, |c| c.of_temperature(scalars).len());
    let mut out = vec![f64::from(u8::from(pause)), width as f64];
    for chain in chains {
        let energy = match &chain.log.replica {
            Some(r) if chain.log.goes_on() && r.energy.0 == step => r.energy.1,
            _ => f64::NAN,
        };
        out.extend([chain.member.index as f64, energy]);
        out.extend(chain.of_temperature(scalars));
    }
    out
}

/// What was heard from all processes.
pub(super) struct Heard<'a> {
    /// Whether one of them wants to pause.
    pub pause: bool,
    /// Energy per chain of the run.
    pub energies: Vec<f64>,
    /// What belongs to the temperature of each chain; none of chains that nobody moves.
    pub of_temperature: Vec<Option<&'a [f64]>>,
}

impl<'a> Heard<'a> {
    pub fn new(messages: &'a [Vec<f64>], chains: usize) -> Result<Self> {
        let mut out = Self {
            pause: false,
            energies: vec![f64::NAN; chains],
            of_temperature: vec![None; chains],
        };
        for message in messages {
            anyhow::ensure!(
                message.len() >= 2 && message[1] >= 2.0,
                "a process tells something else than of its replicas"
            );
            out.pause |= message[0] > 0.0;
            for row in message[2..].chunks_exact(message[1] as usize) {
                let chain = row[0] as usize;
                anyhow::ensure!(
                    chain < chains,
                    "a process tells of chain {chain} of {chains}"
                );
                out.energies[chain] = row[1];
                out.of_temperature[chain] = Some(&row[2..]);
            }
        }
        Ok(out)
    }
}
