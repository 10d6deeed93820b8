//! Ranks that an MPI launcher has started.
//!
//! MPI's own errors never come back to us: its default is to end the whole job with a message, which is what we would do. So
//! the errors of this module are ours: memory that is not there, lengths that MPI cannot count, use after the end.

use super::{Communicator, check_root};
use crate::error::Result;
use anyhow::Context;
use mpi::Threading;
use mpi::collective::{CommunicatorCollectives, Root};
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::topology::{Communicator as _, SimpleCommunicator};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Bytes per message. MPI counts in 32 bits; and while the memory of one piece is touched, the next one is on its way.
const PIECE: usize = 1 << 24;

/// The ranks of an MPI job.
pub struct Mpi {
    /// `None` once it is finished. One thread at a time: the thread level that we ask for promises no more than that.
    universe: Mutex<Option<Universe>>,
    rank: usize,
    size: usize,
    local_rank: usize,
    local_size: usize,
    /// Since when a message of the others is waited for.
    waiting: Arc<Mutex<Option<Instant>>>,
}

/// Seconds to wait for a message of the other ranks, unless `ERGODIC_RANK_TIMEOUT` says otherwise.
const PATIENCE: f64 = 3600.0;

/// A wait for the other ranks, until it is dropped.
struct Waiting<'a>(&'a Mutex<Option<Instant>>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *held(self.0) = None;
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// End the job once this rank has waited too long: MPI itself would wait for a rank that hangs, or a machine that is out of reach, for ever.
fn watch(rank: usize, waiting: &Arc<Mutex<Option<Instant>>>) -> Result<()> {
    let patience = match std::env::var("ERGODIC_RANK_TIMEOUT") {
        Ok(said) => said
            .parse()
            .ok()
            .filter(|s: &f64| *s > 0.0)
            .with_context(|| {
                format!("ERGODIC_RANK_TIMEOUT must be a number of seconds above 0, not '{said}'")
            })?,
        Err(_) => PATIENCE,
    };
    let waiting = Arc::downgrade(waiting);
    let watch = move || {
        while let Some(waiting) = waiting.upgrade() {
            if held(&waiting).is_some_and(|since| since.elapsed().as_secs_f64() > patience) {
                let message = format!(
                    "error: rank {rank} has waited for the others for {patience} s: one of them hangs or is out of reach. What was saved goes on with \
                     --resume; where ranks may differ by more, set ERGODIC_RANK_TIMEOUT to more seconds\n"
                );
                let _ = std::io::stderr().write_all(message.as_bytes());
                abort(1);
            }
            drop(waiting);
            std::thread::sleep(Duration::from_secs_f64((patience / 10.0).min(1.0)));
        }
    };
    std::thread::Builder::new()
        .spawn(watch)
        .context("no thread to watch the other ranks")?;
    Ok(())
}

fn abort(code: u8) -> ! {
    // The launcher kills the others at once, and then us: what was printed has to be out.
    let _ = std::io::stdout().flush();
    // No lock: another thread may hold it while it waits for a rank that does not come.
    if mpi::environment::is_finalized() {
        std::process::exit(code.into());
    }
    SimpleCommunicator::world().abort(code.into())
}

impl Mpi {
    /// Start MPI, which a process can do once. Collective.
    ///
    /// Without a launcher this makes a job of one rank.
    pub fn open() -> Result<Self> {
        // Multiple, because abort may come from any thread while another one waits for a message. It costs no time that
        // we could measure; all other calls take turns, so Serialized will do where there is no more.
        let (universe, level) = mpi::initialize_with_threading(Threading::Multiple)
            .context("MPI is already running in this process")?;
        if level < Threading::Serialized {
            // Dropping the universe waits for the others, and they come: all have the same library.
            drop(universe);
            anyhow::bail!("this MPI library does not support threads (MPI_THREAD_SERIALIZED)");
        }
        let world = universe.world();
        let rank = usize::try_from(world.rank())?;
        let size = usize::try_from(world.size())?;
        // Those that can share memory: the machine, even where several of them have the same name.
        let machine = world.split_shared(world.rank());
        let local_rank = usize::try_from(machine.rank())?;
        let local_size = usize::try_from(machine.size())?;
        drop(machine);
        let waiting = Arc::default();
        watch(rank, &waiting)?;
        Ok(Self {
            universe: Mutex::new(Some(universe)),
            rank,
            size,
            local_rank,
            local_size,
            waiting,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Universe>> {
        held(&self.universe)
    }

    /// A barrier is waited for however long it takes: it ends a job whose ranks had different work.
    fn waiting(&self) -> Waiting<'_> {
        *held(&self.waiting) = Some(Instant::now());
        Waiting(&self.waiting)
    }

    /// Everybody's count, on every rank.
    fn counts(&self, world: &SimpleCommunicator, mine: usize) -> Result<Vec<usize>> {
        let mut counts = vec![0u64; self.size];
        world.all_gather_into(&u64::try_from(mine)?, &mut counts[..]);
        counts
            .into_iter()
            .map(|n| Ok(usize::try_from(n)?))
            .collect()
    }
}

/// The communicator of all ranks, while there is one.
fn world(universe: &Option<Universe>) -> Result<SimpleCommunicator> {
    let universe = universe.as_ref().context("MPI was shut down before")?;
    Ok(universe.world())
}

/// Bytes for a message; an error instead of an abort where memory is short.
fn room(length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length)
        .with_context(|| format!("no memory for a message of {length} bytes"))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// A number as MPI counts.
fn count(n: usize) -> Result<mpi::Count> {
    mpi::Count::try_from(n).context("more than 2^31 numbers in one MPI message")
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local_rank(&self) -> usize {
        self.local_rank
    }

    fn local_size(&self) -> usize {
        self.local_size
    }

    fn all_gather(&self, mine: &[f64]) -> Result<Vec<Vec<f64>>> {
        let universe = self.lock();
        let _waiting = self.waiting();
        let world = world(&universe)?;
        let counts = self.counts(&world, mine.len())?;
        // Where this fails it fails everywhere, because all see the same lengths: nobody waits for the rest.
        let total = counts
            .iter()
            .try_fold(0usize, |sum, &n| sum.checked_add(n))
            .context("more than 2^64 numbers in one MPI message")?;
        count(total)?;
        let mut starts = Vec::with_capacity(self.size);
        let mut lengths = Vec::with_capacity(self.size);
        let mut start = 0;
        for &n in &counts {
            starts.push(count(start)?);
            lengths.push(count(n)?);
            start += n;
        }
        // As integers, so that no library is tempted to convert them.
        let mine: Vec<u64> = mine.iter().map(|x| x.to_bits()).collect();
        let mut all = vec![0u64; total];
        let mut parts = PartitionMut::new(&mut all[..], lengths, starts);
        world.all_gather_varcount_into(&mine[..], &mut parts);
        let mut rest = &all[..];
        let mut gathered = Vec::with_capacity(self.size);
        for &n in &counts {
            let (part, others) = rest.split_at(n);
            gathered.push(part.iter().map(|&bits| f64::from_bits(bits)).collect());
            rest = others;
        }
        Ok(gathered)
    }

    fn gather_bytes(&self, mine: &[u8], root: usize) -> Result<Option<Vec<Vec<u8>>>> {
        check_root(root, self.size)?;
        let universe = self.lock();
        let _waiting = self.waiting();
        let world = world(&universe)?;
        let counts = self.counts(&world, mine.len())?;
        if self.rank != root {
            let root = world.process_at_rank(count(root)?);
            for piece in mine.chunks(PIECE) {
                root.send(piece);
            }
            return Ok(None);
        }
        let mut gathered = Vec::with_capacity(self.size);
        for (rank, &n) in counts.iter().enumerate() {
            if rank == root {
                gathered.push(mine.to_vec());
                continue;
            }
            let mut bytes = room(n)?;
            let sender = world.process_at_rank(count(rank)?);
            for piece in bytes.chunks_mut(PIECE) {
                sender.receive_into(piece);
            }
            gathered.push(bytes);
        }
        Ok(Some(gathered))
    }

    fn broadcast_bytes(&self, bytes: &mut Vec<u8>, root: usize) -> Result<()> {
        check_root(root, self.size)?;
        let universe = self.lock();
        let _waiting = self.waiting();
        let world = world(&universe)?;
        let from = world.process_at_rank(count(root)?);
        let mut length = u64::try_from(bytes.len())?;
        from.broadcast_into(&mut length);
        if self.rank != root {
            *bytes = room(usize::try_from(length)?)?;
        }
        for piece in bytes.chunks_mut(PIECE) {
            from.broadcast_into(piece);
        }
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        let universe = self.lock();
        world(&universe)?.barrier();
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        let universe = self.lock().take().context("MPI was shut down before")?;
        // Its end is MPI_Finalize.
        drop(universe);
        Ok(())
    }

    fn abort(&self, code: u8) -> ! {
        abort(code)
    }
}

impl Drop for Mpi {
    /// A rank that leaves without [`Communicator::finish`] (an early return, a panic) takes the others along.
    ///
    /// To finalize here would wait for the others, while they wait for this rank.
    fn drop(&mut self) {
        if self.lock().is_some() {
            // In one piece: the launcher mixes what ranks write, piece by piece, and eprintln! writes several.
            let message = format!(
                "error: rank {} has left before the end; see its message\n",
                self.rank
            );
            let _ = std::io::stderr().write_all(message.as_bytes());
            self.abort(1);
        }
    }
}
