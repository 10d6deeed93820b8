//! The blocks of a run on the threads of this machine: who steps next, and the swaps that replicas meet for.

use super::exchange::Ladders;
use super::state::{ChainMut, Lent, State};
use super::stepping::{Shared, Worker};
use super::temper::Temper;
use crate::engine::batched::Batched;
use crate::engine::{Engine, Vector};
use crate::error::Result;
use crate::kernels::device::Device;
use crate::kernels::thread_pool::spin_until;
use crate::target::Workspace;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Examples × parameters × steps between two swaps from which on replicas are handed out one by one; below, a thread takes its share of all at once.
const ONE_BY_ONE: u64 = 10_000;

/// What steps the blocks of a run.
pub(super) struct Workers<'d> {
    work: Vec<Vec<Workspace>>,
    device: Option<Batched<'d>>,
    /// Whether all chains are one block.
    together: bool,
    /// Whether steps between swaps are so short that a thread takes all of its blocks at once.
    shares: bool,
    /// On a device where the prior is not tempered with the likelihood: the strength of the prior of each chain, at first.
    strengths: Vec<f64>,
}

impl<'d> Workers<'d> {
    /// On devices, which get the state, or on so many threads.
    pub fn new(
        run: &Shared<'d>,
        devices: Option<&'d [Box<dyn Device>]>,
        state: &State,
        threads: usize,
    ) -> Result<Self> {
        let plan = run.plan;
        anyhow::ensure!(
            devices.is_none() || plan.exchange.is_none() || run.ranks.size() == 1,
            "{}: a ladder on an accelerator runs in one process; use --device cpu under mpirun, or one process",
            plan.kind
        );
        anyhow::ensure!(
            devices.is_none() || plan.temper != Temper::Prior,
            "{}: temper: \"prior\" is not computed on an accelerator; use --device cpu",
            plan.kind
        );
        let minimises = plan.exchange.as_ref().is_some_and(|x| x.minimise > 0);
        anyhow::ensure!(
            devices.is_none() || !minimises,
            "{}: no device computes `minimise`; leave it out, or use --device cpu",
            plan.kind
        );
        let chains = state.chains;
        let devices = devices.filter(|_| chains > 0);
        let together = (devices.is_some() || run.sampler.couples()) && chains > 0;
        let device = devices
            .map(|d| Self::on_devices(run, d, state))
            .transpose()?;
        let strengths = match (&device, run.same_energy()) {
            (Some(_), false) => {
                let temperature = |c: &usize| run.temperature(*c, 0);
                state.index.iter().map(temperature).collect()
            }
            _ => Vec::new(),
        };
        // Where chains wait for each other at every swap, handing them out one by one must be worth it.
        let per_swap = plan.exchange.as_ref().map_or(u64::MAX, |x| {
            let size = run.target.examples() * run.target.dim();
            x.every.saturating_mul(size as u64)
        });
        let shares = per_swap < ONE_BY_ONE;
        let work = match together {
            true => {
                let own = if device.is_some() || chains == 1 {
                    0
                } else {
                    chains
                };
                let mut work: Vec<_> = (0..own).map(|_| Workspace::default()).collect();
                work.push(Workspace::new(threads));
                vec![work]
            }
            false => {
                // One workspace per chain that can step at a time; the threads that are left over share in their gradients.
                let count = threads.clamp(1, chains.max(1));
                let share = |i: usize| threads / count + usize::from(i < threads % count);
                (0..count).map(|i| vec![Workspace::new(share(i))]).collect()
            }
        };
        let mut out = Self {
            work,
            device,
            together,
            shares,
            strengths,
        };
        out.store(state)?;
        Ok(out)
    }

    /// Devices with room for the state.
    fn on_devices(
        run: &Shared<'d>,
        devices: &'d [Box<dyn Device>],
        state: &State,
    ) -> Result<Batched<'d>> {
        let vectors = run.sampler.vectors.len();
        Batched::new(devices, run.target, state.chains, vectors, &run.slots)
    }

    /// Let the device have the state, which is another one.
    pub fn store(&mut self, state: &State) -> Result<()> {
        let Some(device) = &mut self.device else {
            return Ok(());
        };
        if !self.strengths.is_empty() {
            let held = state.replicas.iter().map(|r| r.held);
            let strengths = if state.replicas.is_empty() {
                self.strengths.clone()
            } else {
                held.collect()
            };
            device.set_prior_strengths(strengths)?;
        }
        device.write(Vector::Params, &state.params)?;
        for (k, v) in state.vectors.iter().enumerate() {
            device.write(Vector::State(k), v)?;
        }
        Ok(())
    }

    /// Threads, and how many of them have a chain of their own; none on a device.
    pub fn threads(&self) -> (usize, usize) {
        if self.device.is_some() {
            return (0, 0);
        }
        let threads = self.work.iter().flatten().map(|w| w.team.size());
        (threads.sum(), self.work.len())
    }

    /// Rows whose gradient was computed on this machine.
    pub fn rows(&self) -> u64 {
        self.work.iter().flatten().map(|w| w.rows).sum()
    }

    /// Bring the chains back to this machine's memory.
    pub fn fetch(&mut self, run: &Shared, state: &mut State) -> Result<()> {
        let ([work], Some(device)) = (&mut self.work[..], &mut self.device) else {
            return Ok(());
        };
        let device = Some(device);
        let mut worker = Worker { work, device };
        let ladders = state.ladders.take();
        let lent = state.lend(run.plan, ladders.as_ref(), true);
        let fetched = lent.into_iter().try_for_each(|mut l| l.fetch(&mut worker));
        state.ladders = ladders;
        fetched
    }

    /// Let every block step until `deadline`; without one, prepare the chains for their first step instead.
    pub fn advance(
        &mut self,
        run: &Shared,
        state: &mut State,
        deadline: Option<Instant>,
    ) -> Result<()> {
        let mut ladders = state.ladders.take();
        let lent = state.lend(run.plan, ladders.as_ref(), self.together);
        let mut blocks = Blocks {
            idle: lent.into_iter().map(Some).collect(),
            queue: BinaryHeap::new(),
            prepares: deadline.is_none(),
            // Ranks whose replicas exchange stop where they meet, so that all of them do.
            meet: run.ranks.size() > 1 && ladders.is_some(),
            ladders: ladders.as_mut(),
            lent: 0,
            shares: if self.shares { self.work.len() } else { 0 },
            asleep: 0,
            paused: false,
            failed: None,
        };
        blocks.line_up(run);
        let failed = step_all(run, blocks, self, deadline);
        state.ladders = ladders;
        failed.map_or(Ok(()), Err)
    }
}

/// What threads hand blocks over with.
struct Meeting<'a, 'l> {
    blocks: Mutex<Blocks<'a, 'l>>,
    returned: Condvar,
    /// How often there was something new. Whoever waits looks here first: waking a thread takes longer than a step of a small model.
    news: AtomicU64,
}

type Locked<'m, 'a, 'l> = MutexGuard<'m, Blocks<'a, 'l>>;

/// A block, its number, and the step that it may go to.
type Handed<'a> = (usize, Lent<'a>, u64);

impl<'a, 'l> Meeting<'a, 'l> {
    fn lock(&self) -> Locked<'_, 'a, 'l> {
        self.blocks.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Let those that wait see that there is work, or that it is over.
    fn announce(&self, blocks: &Blocks) {
        self.news.fetch_add(1, Ordering::Release);
        if blocks.asleep > 0 {
            self.returned.notify_all();
        }
    }

    /// Wait until there is something new.
    fn wait<'m>(&'m self, blocks: Locked<'m, 'a, 'l>) -> Locked<'m, 'a, 'l> {
        let seen = self.news.load(Ordering::Acquire);
        let newer = || self.news.load(Ordering::Acquire) != seen;
        drop(blocks);
        let came = spin_until(newer);
        let mut blocks = self.lock();
        if !came && !newer() {
            blocks.asleep += 1;
            let woken = self.returned.wait(blocks);
            blocks = woken.unwrap_or_else(|e| e.into_inner());
            blocks.asleep -= 1;
        }
        blocks
    }

    /// Put the next blocks for a thread into `hand`, waiting for them if others have them; leaves it empty when all steps are done, or they are to stop.
    fn take<'m>(
        &'m self,
        mut blocks: Locked<'m, 'a, 'l>,
        hand: &mut Vec<Handed<'a>>,
        run: &Shared,
        wanted: &dyn Fn() -> bool,
    ) {
        loop {
            let over = if blocks.meet { blocks.paused } else { wanted() };
            if over || blocks.failed.is_some() {
                break;
            }
            match blocks.next(run, wanted, hand) {
                Ok(()) if !hand.is_empty() || blocks.ladders.is_none() || blocks.lent == 0 => break,
                // Those that others work on may lead to a swap, after which there is work again.
                Ok(()) => blocks = self.wait(blocks),
                Err(e) => blocks.failed = Some(e),
            }
        }
        // Threads that wait are woken only if there is work left for them, or no more: else each of P threads would wake all others at every meeting.
        if hand.is_empty() || !blocks.queue.is_empty() {
            self.announce(&blocks);
        }
    }
}

/// Let workers step blocks until there is nothing to do, or they are to stop; the first error.
fn step_all(
    run: &Shared,
    blocks: Blocks,
    workers: &mut Workers,
    deadline: Option<Instant>,
) -> Option<anyhow::Error> {
    let meet = blocks.meet;
    let meeting = Meeting {
        blocks: Mutex::new(blocks),
        returned: Condvar::new(),
        news: AtomicU64::new(0),
    };
    let wanted = || deadline.is_some_and(|d| Instant::now() >= d || run.interrupt.interrupted());
    let step = |lent: &mut Lent<'_>, worker: &mut Worker, stop: u64| match deadline {
        None => lent.prepare(run, worker),
        // Short turns keep the chains together and the threads busy to the end.
        Some(d) => {
            let short = Instant::now() + Duration::from_millis(20);
            let until = if meet { short } else { d.min(short) };
            lent.advance(run, worker, stop, until)
        }
    };
    let body = |work: &mut [Workspace], device: Option<&mut Batched>| {
        let (mut worker, mut hand) = (Worker { work, device }, Vec::new());
        meeting.take(meeting.lock(), &mut hand, run, &wanted);
        while !hand.is_empty() {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let mut each = hand.iter_mut();
                each.try_for_each(|(_, lent, stop)| step(lent, &mut worker, *stop))
            }));
            let mut blocks = meeting.lock();
            let done = matches!(result, Ok(Ok(())));
            blocks.lent -= hand.len();
            for (i, lent, stop) in hand.drain(..) {
                blocks.idle[i] = Some(lent);
                if done {
                    blocks.enqueue(i, stop);
                }
            }
            let panic = match result {
                Ok(Ok(())) => None,
                Ok(Err(e)) => {
                    blocks.failed.get_or_insert(e);
                    None
                }
                Err(panic) => {
                    let e = anyhow::anyhow!("a thread has stopped");
                    blocks.failed.get_or_insert(e);
                    Some(panic)
                }
            };
            meeting.take(blocks, &mut hand, run, &wanted);
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
        }
    };
    match &mut workers.work[..] {
        [only] => body(only, workers.device.as_mut()),
        many => std::thread::scope(|s| {
            for work in many {
                s.spawn(|| body(work, None));
            }
        }),
    }
    let blocks = meeting.blocks.into_inner();
    blocks.unwrap_or_else(|e| e.into_inner()).failed
}

/// The blocks of a run.
struct Blocks<'a, 'l> {
    /// Those that no thread works on.
    idle: Vec<Option<Lent<'a>>>,
    /// Which of them are to step, the one that is furthest behind first.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// Whether chains are prepared, and do not step.
    prepares: bool,
    meet: bool,
    ladders: Option<&'l mut Ladders>,
    /// How many blocks threads work on.
    lent: usize,
    /// Into how many shares blocks are divided; 0 if they are handed out one by one.
    shares: usize,
    /// How many threads sleep until a block comes back.
    asleep: usize,
    /// Whether all processes have agreed to pause.
    paused: bool,
    failed: Option<anyhow::Error>,
}

impl<'a> Blocks<'a, '_> {
    /// The step that chains may go to: the next swap, or the end.
    fn stop(&self, run: &Shared) -> u64 {
        match (&self.ladders, &run.plan.exchange) {
            (Some(l), Some(x)) => ((l.sweeps + 1) * x.every).min(run.end),
            _ => run.end,
        }
    }

    /// Queue all blocks that have something to do.
    fn line_up(&mut self, run: &Shared) {
        let stop = self.stop(run);
        for i in 0..self.idle.len() {
            match self.prepares {
                true => self.queue.push(Reverse((0, i))),
                false => self.enqueue(i, stop),
            }
        }
    }

    /// Queue a block, if it may step on before `stop`.
    fn enqueue(&mut self, i: usize, stop: u64) {
        let step = self.idle[i].as_ref().and_then(Lent::step);
        if let Some(step) = step.filter(|s| *s < stop && !self.prepares) {
            self.queue.push(Reverse((step, i)));
        }
    }

    /// Take a thread's share of the blocks, those that are furthest behind, and the step they may go to; none if all that are here are at theirs.
    fn next(
        &mut self,
        run: &Shared,
        wanted: &dyn Fn() -> bool,
        hand: &mut Vec<Handed<'a>>,
    ) -> Result<()> {
        loop {
            let stop = self.stop(run);
            let share = self.queue.len().div_ceil(self.shares.max(1));
            let most = if self.shares == 0 { 1 } else { share };
            while hand.len() < most
                && let Some(Reverse((_, i))) = self.queue.pop()
            {
                let lent = self.idle[i].take();
                hand.extend(lent.map(|lent| (i, lent, stop)));
            }
            if !hand.is_empty() {
                self.lent += hand.len();
                return Ok(());
            }
            let (Some(ladders), Some(exchange)) = (&mut self.ladders, &run.plan.exchange) else {
                return Ok(());
            };
            // Nothing comes after a swap at the last step.
            if self.prepares || self.lent > 0 || self.paused || stop >= run.end {
                return Ok(());
            }
            let all = self.idle.iter_mut().flatten();
            let mut chains: Vec<ChainMut> = all.flat_map(Lent::chains).collect();
            let alone = run.ranks.size() == 1;
            // Nobody waits where all have failed.
            if alone && chains.iter().all(|c| !c.log.goes_on()) {
                return Ok(());
            }
            let made = (stop, run.plan.every.count(stop));
            let talk = |mine: &[f64]| run.ranks.all_gather(mine);
            let kept = run.sampler.of_temperature();
            let swapped = (&mut *chains, &kept);
            let paused = ladders.exchange(swapped, made, run.plan, exchange, (wanted(), &talk))?;
            self.paused = paused && !alone;
            self.line_up(run);
        }
    }
}
