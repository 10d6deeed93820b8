//! Blocks: chains that step together.

use super::host::Host;
use super::report::Slots;
use super::{Chains, Engine};
use crate::error::Result;
use crate::target::{Target, Workspace};

/// What a sampler sees of a chain beside its vectors.
pub struct Member<'a> {
    /// Its number in the run; the key of its random streams.
    pub index: usize,
    /// Number of its temperature; chains of one group are replicas of each other.
    pub group: usize,
    /// Temperature at this step.
    pub temperature: f64,
    /// Why it cannot go on, once it cannot.
    pub failure: Option<String>,
    /// The sampler's scalars, in the order in which it names them.
    pub scalars: &'a mut [f64],
}

/// A chain's vectors in this machine's memory, and what it has reported.
pub struct Row<'a> {
    /// Parameters, length N.
    pub w: &'a mut [f32],
    /// The sampler's vectors, each of length N, in the order in which it names them.
    pub vectors: Vec<&'a mut [f32]>,
    /// Sums of what was reported, per slot.
    pub sums: &'a mut [f64],
    /// After which step its virial was not finite for the first time.
    pub broken: Option<u64>,
    /// Mean loss of the last examples that were gone through.
    pub(super) loss: f64,
    /// U at the last full gradient or evaluation.
    pub(super) energy: f64,
}

impl<'a> Row<'a> {
    /// The vectors and sums of a chain.
    pub fn new(w: &'a mut [f32], vectors: Vec<&'a mut [f32]>, sums: &'a mut [f64]) -> Self {
        Self {
            w,
            vectors,
            sums,
            broken: None,
            loss: f64::NAN,
            energy: f64::NAN,
        }
    }
}

/// Chains that step together: one on this machine's threads, all of a process on an accelerator, or all that their sampler couples.
pub struct Block<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Steps of burn-in.
    pub burn_in: u64,
    /// Steps done so far.
    pub step: u64,
    /// The chains.
    pub members: Vec<Member<'a>>,
    /// Their vectors.
    pub rows: Vec<Row<'a>>,
    /// Which slots something was reported to, as long as somebody wants to know: empty otherwise.
    pub reported: Vec<bool>,
}

/// One chain of a block, to be looked at.
#[derive(Clone, Copy)]
pub struct ChainRef<'b> {
    /// Its number in the run.
    pub index: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Steps done so far.
    pub step: u64,
    /// Its temperature.
    pub temperature: f64,
    /// Parameters, length N.
    pub w: &'b [f32],
    /// The sampler's vectors, each of length N.
    pub vectors: &'b [&'b mut [f32]],
}

impl<'a> Block<'a> {
    /// A block of one chain that has done so many steps.
    pub fn new((seed, burn_in): (u64, u64), step: u64, member: Member<'a>, row: Row<'a>) -> Self {
        Self {
            seed,
            burn_in,
            step,
            members: vec![member],
            rows: vec![row],
            reported: Vec::new(),
        }
    }

    /// Number of chains.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// One of the chains.
    pub fn chain(&self, c: usize) -> ChainRef<'_> {
        let (member, row) = (&self.members[c], &self.rows[c]);
        ChainRef {
            index: member.index,
            seed: self.seed,
            step: self.step,
            temperature: member.temperature,
            w: row.w,
            vectors: &row.vectors,
        }
    }

    /// Let a sampler work on these chains in this machine's memory. `work` is a workspace, or one per chain and one whose threads they share;
    /// what is reported is added up if it `counts`.
    pub fn work(
        &mut self,
        target: &Target,
        work: &mut [Workspace],
        (slots, counts): (&Slots, bool),
        f: impl FnOnce(&mut Chains) -> Result<()>,
    ) -> Result<()> {
        let mut host = Host::new(target, &mut self.rows, work);
        host.listen(slots, counts.then_some(self.step));
        f(&mut Chains {
            engine: &mut host,
            members: &mut self.members,
            step: self.step,
            burn_in: self.burn_in,
            seed: self.seed,
            slots,
            reported: &mut self.reported,
        })
    }

    /// Let a sampler work on these chains where an engine has them.
    pub fn work_on(
        &mut self,
        engine: &mut dyn Engine,
        slots: &Slots,
        f: impl FnOnce(&mut Chains) -> Result<()>,
    ) -> Result<()> {
        f(&mut Chains {
            engine,
            members: &mut self.members,
            step: self.step,
            burn_in: self.burn_in,
            seed: self.seed,
            slots,
            reported: &mut self.reported,
        })
    }
}
