//! Chains on this machine's threads: each for itself, but for the swaps that replicas meet for.

use super::exchange::Ladders;
use super::state::{Slot, State};
use super::{Shared, session};
use crate::error::Result;
use crate::target::Workspace;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// One workspace per chain that can step at a time; the threads that are left over share in their gradients.
pub(super) fn workspaces(chains: usize, threads: usize) -> Vec<Workspace> {
    let count = threads.clamp(1, chains.max(1));
    let share = |i: usize| threads / count + usize::from(i < threads % count);
    (0..count).map(|i| Workspace::new(share(i))).collect()
}

/// Let every chain run until `deadline`; without one, prepare the chains for their first step instead.
pub(super) fn advance(
    shared: &Shared,
    state: &mut State,
    work: &mut [Workspace],
    deadline: Option<Instant>,
) -> Result<()> {
    let mut ladders = state.ladders.take();
    let waiting_has_ladders = ladders.is_some();
    let of_temperature = shared.sampler.scalars_of_temperature();
    let slots = state.slots(shared.plan, ladders.as_ref(), &of_temperature);
    let (slots, free) = match waiting_has_ladders {
        true => (slots, BinaryHeap::new()),
        false => (Vec::new(), slots.into_iter().map(Behind).collect()),
    };
    let waiting = Waiting {
        free,
        slots,
        arrived: Vec::new(),
        ladders: ladders.as_mut(),
        lent: 0,
        paused: false,
        failed: None,
    };
    let (waiting, returned) = (Mutex::new(waiting), Condvar::new());
    let lock = || waiting.lock().unwrap_or_else(|e| e.into_inner());
    let wanted = || {
        let late = deadline.is_some_and(|d| Instant::now() >= d);
        late || (deadline.is_some() && session::interrupted())
    };
    // Ranks whose replicas exchange stop where they meet, so that all of them do.
    let meet = shared.ranks.size() > 1 && waiting_has_ladders;
    // The next chain to be worked on, and the step that it may go to.
    let take = || {
        let mut waiting = lock();
        loop {
            let over = if meet { waiting.paused } else { wanted() };
            if over || waiting.failed.is_some() {
                return None;
            }
            match waiting.next(shared, deadline.is_none(), &wanted) {
                Ok(Some(next)) => return Some(next),
                Ok(None) if waiting.ladders.is_none() || waiting.lent == 0 => return None,
                // Those that others work on may lead to a swap, after which there is work again.
                Ok(None) => waiting = returned.wait(waiting).unwrap_or_else(|e| e.into_inner()),
                Err(e) => waiting.failed = Some(e),
            }
        }
    };
    let step = |slot: &mut Slot<'_>, work: &mut Workspace, stop: u64| match deadline {
        None => shared.prepare(slot, work),
        // Short turns keep the chains together and the threads busy to the end.
        Some(d) => {
            let short = Instant::now() + Duration::from_millis(20);
            let until = if meet { short } else { d.min(short) };
            shared.turn(slot, work, stop, until)
        }
    };
    let body = |work: &mut Workspace| {
        while let Some((mut slot, stop)) = take() {
            let result = catch_unwind(AssertUnwindSafe(|| step(&mut slot, work, stop)));
            let mut waiting = lock();
            waiting.lent -= 1;
            let panic = match result {
                Ok(Ok(())) => {
                    waiting.give_back(slot, stop, deadline.is_some());
                    None
                }
                Ok(Err(e)) => {
                    waiting.failed.get_or_insert(e);
                    None
                }
                Err(panic) => {
                    let e = anyhow::anyhow!("a thread has stopped");
                    waiting.failed.get_or_insert(e);
                    Some(panic)
                }
            };
            drop(waiting);
            // Whoever waits must see that there is work, or that it is over.
            returned.notify_all();
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
        }
        returned.notify_all();
    };
    match work {
        [only] => body(only),
        many => std::thread::scope(|s| {
            for w in many {
                s.spawn(|| body(w));
            }
        }),
    }
    let failed = waiting
        .into_inner()
        .unwrap_or_else(|e| e.into_inner())
        .failed;
    state.ladders = ladders;
    failed.map_or(Ok(()), Err)
}

/// A chain that goes on by itself; the one that is furthest behind is the greatest.
struct Behind<'a>(Slot<'a>);

impl Behind<'_> {
    fn key(&self) -> Reverse<(u64, usize)> {
        Reverse((*self.0.steps, self.0.chain.index))
    }
}

impl Ord for Behind<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Behind<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Behind<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Behind<'_> {}

/// The chains that no thread works on.
struct Waiting<'a> {
    /// Without ladders.
    free: BinaryHeap<Behind<'a>>,
    /// Those of ladders.
    slots: Vec<Slot<'a>>,
    /// Those of ladders that have come to the next swap, or failed.
    arrived: Vec<Slot<'a>>,
    ladders: Option<&'a mut Ladders>,
    /// How many chains threads work on.
    lent: usize,
    /// Whether all processes have agreed to pause.
    paused: bool,
    failed: Option<anyhow::Error>,
}

impl<'a> Waiting<'a> {
    /// The chain that is furthest behind and the step it may go to; none if all that wait are at theirs. `any` takes whichever.
    fn next(
        &mut self,
        shared: &Shared,
        any: bool,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Option<(Slot<'a>, u64)>> {
        loop {
            let stop = match (&self.ladders, &shared.plan.exchange) {
                (Some(l), Some(x)) => ((l.sweeps + 1) * x.every).min(shared.plan.steps),
                _ => shared.plan.steps,
            };
            if let Some(next) = self.ready(stop, any) {
                self.lent += 1;
                return Ok(Some((next, stop)));
            }
            let (Some(ladders), Some(exchange)) = (&mut self.ladders, &shared.plan.exchange) else {
                return Ok(None);
            };
            // Alone, nobody waits where all have failed; and nothing comes after a swap at the last step.
            let idle = shared.ranks.size() == 1 && self.arrived.iter().all(|s| s.failure.is_some());
            if any || self.lent > 0 || stop >= shared.plan.steps || idle || self.paused {
                return Ok(None);
            }
            self.arrived.sort_unstable_by_key(|s| s.chain.index);
            let made = (stop, shared.plan.every.count(stop));
            let talk = |mine: &[f64]| shared.ranks.all_gather(mine);
            let (plan, slots) = (shared.plan, &mut self.arrived);
            self.paused = ladders.exchange(slots, made, plan, exchange, (wanted(), &talk))?;
            if shared.ranks.size() == 1 {
                self.paused = false;
            }
            // The first comes out first.
            self.slots.extend(self.arrived.drain(..).rev());
        }
    }

    /// A chain that may step; `any` takes whichever. Of ladders, whose chains all have to come to the next swap, the last of the list.
    fn ready(&mut self, stop: u64, any: bool) -> Option<Slot<'a>> {
        let may = |s: &Slot| any || s.failure.is_none() && *s.steps < stop;
        // What may not, never will.
        while let Some(Behind(slot)) = self.free.pop() {
            if may(&slot) {
                return Some(slot);
            }
        }
        while let Some(slot) = self.slots.pop() {
            if may(&slot) {
                return Some(slot);
            }
            self.arrived.push(slot);
        }
        None
    }

    /// Take back a chain that was worked on up to `stop` at most; those that were prepared are done.
    fn give_back(&mut self, slot: Slot<'a>, stop: u64, goes_on: bool) {
        let there = slot.failure.is_some() || *slot.steps >= stop;
        match self.ladders.is_some() {
            _ if !goes_on => {}
            true if there => self.arrived.push(slot),
            true => self.slots.push(slot),
            false => self.free.push(Behind(slot)),
        }
    }
}
