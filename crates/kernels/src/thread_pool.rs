//! A team: threads that share the loops of one chain.
//!
//! A step of a small network lasts 100 µs, and waking a sleeping thread tens of them; so between loops the members of a team spin
//! for a short while before they sleep. Whoever spins for longer than a few µs offers its core to others at every turn: on a machine that is shared,
//! the thread it waits for may be one of those. Which thread does which item is left to chance; loops are written so that it does not matter.

#[cfg(loom)]
use loom::{
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    thread::{self, JoinHandle, Thread},
};
use std::time::{Duration, Instant};
#[cfg(not(loom))]
use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    thread::{self, JoinHandle, Thread},
};

/// How long a member spins before it sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// Turns of a loop that waits before it offers its core to others at each.
const TURNS: u32 = 200;

/// A wait for what other threads are about to bring about.
#[derive(Default)]
struct Wait {
    turns: u32,
    /// Since when it offers its core to others.
    since: Option<Instant>,
}

impl Wait {
    /// Wait a little; whether that has been for less than the time that a member spins.
    fn goes_on(&mut self) -> bool {
        self.turns += 1;
        if cfg!(loom) {
            // Which knows no time: it tries all orders.
            thread::yield_now();
            return self.turns < 2;
        }
        if self.turns <= TURNS {
            std::hint::spin_loop();
            return true;
        }
        self.turns = TURNS;
        thread::yield_now();
        self.since.get_or_insert_with(Instant::now).elapsed() < SPIN
    }
}

/// Wait for something that other threads are about to bring about; whether it came within the time that a member spins.
pub fn spin_until(came: impl Fn() -> bool) -> bool {
    let mut wait = Wait::default();
    loop {
        if came() {
            return true;
        }
        if !wait.goes_on() {
            return false;
        }
    }
}

/// `f`, and the counter of the items that are taken; lives on the stack of [`Team::run`].
struct Job<'a> {
    f: &'a (dyn Fn(usize) + Sync),
    items: usize,
    next: AtomicUsize,
    panicked: AtomicBool,
}

impl Job<'_> {
    fn work(&self) {
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.items {
                return;
            }
            (self.f)(i);
        }
    }
}

/// The job's number (high 32 bits), whether members may still join it, and how many have.
struct Shared {
    state: AtomicU64,
    job: AtomicPtr<Job<'static>>,
    sleepers: AtomicUsize,
    stop: AtomicBool,
}

const OPEN: u64 = 1 << 31;
const MEMBERS: u64 = OPEN - 1;

/// Threads that share loops; dropping it ends them.
pub struct Team {
    shared: Option<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
    handles: Vec<Thread>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team of {}", self.size())
    }
}

impl Default for Team {
    /// The calling thread alone.
    fn default() -> Self {
        Self::new(1)
    }
}

impl Team {
    /// The calling thread and `size - 1` others.
    pub fn new(size: usize) -> Self {
        if size <= 1 {
            return Self {
                shared: None,
                threads: Vec::new(),
                handles: Vec::new(),
            };
        }
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            sleepers: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let threads: Vec<_> = (1..size)
            .map_while(|_| {
                let shared = shared.clone();
                // A machine that has no more threads to give makes a smaller team.
                thread::Builder::new().spawn(move || shared.member()).ok()
            })
            .collect();
        let handles = threads.iter().map(|t| t.thread().clone()).collect();
        Self {
            shared: Some(shared),
            threads,
            handles,
        }
    }

    /// Threads, the caller included.
    pub fn size(&self) -> usize {
        1 + self.threads.len()
    }

    /// Call `f` once for every number below `items`, on all threads; returns when all are done.
    pub fn run(&self, items: usize, f: &(dyn Fn(usize) + Sync)) {
        let Some(shared) = self.shared.as_ref().filter(|_| items > 1) else {
            (0..items).for_each(f);
            return;
        };
        let job = Job {
            f,
            items,
            next: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
        };
        shared
            .job
            .store((&raw const job).cast_mut().cast(), Ordering::Relaxed);
        let number = (shared.state.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        shared.state.store(number << 32 | OPEN, Ordering::SeqCst);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            self.handles.iter().for_each(Thread::unpark);
        }
        {
            // Also when `f` panics here: `job` must outlive every member that has joined.
            let _closed = Closing(shared);
            job.work();
        }
        assert!(
            !job.panicked.load(Ordering::Relaxed),
            "a thread of a team panicked"
        );
    }

    /// Call `f` once for every element of `items`, on all threads.
    pub fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(&mut T) + Sync) {
        struct Start<T>(*mut T);
        // SAFETY: only elements cross threads, each to one of them, and T is Send.
        unsafe impl<T: Send> Sync for Start<T> {}
        impl<T> Start<T> {
            fn at(&self, i: usize) -> *mut T {
                // SAFETY: `i` is below the length of the slice.
                unsafe { self.0.add(i) }
            }
        }
        let start = Start(items.as_mut_ptr());
        // SAFETY: `run` hands out every index once, so no two references are to the same element.
        self.run(items.len(), &|i| f(unsafe { &mut *start.at(i) }));
    }

    /// Call `f` with the offset and the elements of every piece of `length` elements of `items`, on all threads.
    pub fn chunks<T: Send>(
        &self,
        items: &mut [T],
        length: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        if items.len() <= length {
            return f(0, items);
        }
        let mut pieces: Vec<_> = items.chunks_mut(length).enumerate().collect();
        self.for_each(&mut pieces, |(i, piece)| f(*i * length, piece));
    }
}

/// Lets nobody join any more, and waits for those who have.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.fetch_and(!OPEN, Ordering::AcqRel) & !OPEN;
        let mut wait = Wait::default();
        while state & MEMBERS != 0 {
            wait.goes_on();
            state = self.0.state.load(Ordering::Acquire);
        }
    }
}

impl Shared {
    fn member(&self) {
        let mut seen = 0;
        let mut wait = Wait::default();
        while !self.stop.load(Ordering::Relaxed) {
            let state = self.state.load(Ordering::Acquire);
            if state & OPEN != 0 && state >> 32 != seen {
                if self
                    .state
                    .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_err()
                {
                    continue;
                }
                seen = state >> 32;
                // SAFETY: the job was published before the state was opened, and `Closing` keeps it alive until this member leaves.
                let job = unsafe { &*self.job.load(Ordering::Relaxed) };
                let work = std::panic::AssertUnwindSafe(|| job.work());
                if std::panic::catch_unwind(work).is_err() {
                    job.panicked.store(true, Ordering::Relaxed);
                }
                self.state.fetch_sub(1, Ordering::AcqRel);
                wait = Wait::default();
                continue;
            }
            if !wait.goes_on() {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                // Look once more: a job may have been opened before we were counted.
                let state = self.state.load(Ordering::SeqCst);
                let news = state & OPEN != 0 && state >> 32 != seen;
                if !news && !self.stop.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
                wait = Wait::default();
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.stop.store(true, Ordering::SeqCst);
        }
        self.handles.iter().for_each(Thread::unpark);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_whatever_the_size() {
        for size in [1, 2, 5] {
            let team = Team::new(size);
            for round in 0..2000 {
                let mut items = vec![0; round % 37];
                team.for_each(&mut items, |i| *i += 1);
                assert!(items.iter().all(|i| *i == 1), "size {size}, round {round}");
                if round % 500 == 0 {
                    // Long enough for the members to fall asleep.
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }

    #[test]
    fn chunks_know_their_offset() {
        let mut x = vec![0usize; 1000];
        Team::new(3).chunks(&mut x, 64, |at, piece| {
            piece.iter_mut().enumerate().for_each(|(i, x)| *x = at + i)
        });
        assert!(x.iter().enumerate().all(|(i, x)| i == *x));
    }

    #[test]
    fn a_panic_is_passed_on_and_the_team_lives() {
        let team = Team::new(3);
        let run = || team.run(64, &|i| assert!(i != 40, "boom"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        let mut items = vec![0; 100];
        team.for_each(&mut items, |i| *i += 1);
        assert_eq!(items.iter().sum::<i32>(), 100);
    }
}
