//! Ranks: the processes that share one job, on one machine or on many.
//!
//! [`open`] finds out how the program was started: by itself ([`SingleProcess`]) or by an MPI launcher (`Mpi`, a feature of the
//! build). Everything else sees a [`Communicator`]. Its methods with "gather", "broadcast" or "barrier" in their names are
//! collective: every rank has to call the same ones in the same order, or the job hangs. What decides whether one is called
//! (an interrupt, an error, the time) must therefore be agreed on first; [`any`] and [`agree`] do that.
//!
//! A rank must not just leave. At the end of the work all of them call [`Communicator::finish`]; a rank that fails alone prints its
//! message and calls [`Communicator::abort`], which ends the others too. They would wait for it forever.

#[cfg(feature = "mpi")]
mod mpi;

#[cfg(feature = "mpi")]
pub use self::mpi::Mpi;

use crate::error::Result;

/// What launchers call the number of ranks, in the environment of every rank. Open MPI and MPICH come before Slurm, because
/// their launchers may themselves have been started by Slurm, with one task per machine.
const SIZES: [&str; 4] = [
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
];

/// The processes of a job, as one of them sees them.
///
/// Any thread may call, but collective calls come from one thread at a time: the order has to be the same on every rank.
pub trait Communicator: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// The number of this process among those on the same machine, from 0: which of its GPUs to take.
    fn local_rank(&self) -> usize;

    /// How many processes of the job are on this machine: how to divide its cores.
    fn local_size(&self) -> usize;

    /// Everybody's numbers, in the order of ranks. They may be of different lengths, and arrive with every bit as it was.
    fn all_gather(&self, mine: &[f64]) -> Result<Vec<Vec<f64>>>;

    /// Everybody's bytes, in the order of ranks, on `root`; `None` elsewhere. There may be more of them than 2 GiB.
    fn gather_bytes(&self, mine: &[u8], root: usize) -> Result<Option<Vec<Vec<u8>>>>;

    /// The bytes of `root`, everywhere: what `bytes` held on the others is replaced. There may be more of them than 2 GiB.
    fn broadcast_bytes(&self, bytes: &mut Vec<u8>, root: usize) -> Result<()>;

    /// Wait until every rank has come here.
    fn barrier(&self) -> Result<()>;

    /// Leave together: waits for the others. Nothing can be sent afterwards.
    ///
    /// Write results and messages before. A rank that then exits with another code than 0 makes the launcher end the rest.
    fn finish(&self) -> Result<()>;

    /// End this process and all the others at once. The launcher exits with `code`, if it can.
    fn abort(&self, code: u8) -> !;
}

/// The only process of its job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SingleProcess;

impl Communicator for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn local_rank(&self) -> usize {
        0
    }

    fn local_size(&self) -> usize {
        1
    }

    fn all_gather(&self, mine: &[f64]) -> Result<Vec<Vec<f64>>> {
        Ok(vec![mine.to_vec()])
    }

    fn gather_bytes(&self, mine: &[u8], root: usize) -> Result<Option<Vec<Vec<u8>>>> {
        check_root(root, 1)?;
        Ok(Some(vec![mine.to_vec()]))
    }

    fn broadcast_bytes(&self, _bytes: &mut Vec<u8>, root: usize) -> Result<()> {
        check_root(root, 1)
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }

    fn abort(&self, code: u8) -> ! {
        std::process::exit(code.into())
    }
}

/// The job that this process belongs to. Call it once, before there are other threads.
pub fn open() -> Result<Box<dyn Communicator>> {
    let Some(size) = launched() else {
        return Ok(Box::new(SingleProcess));
    };
    #[cfg(feature = "mpi")]
    {
        let ranks = Mpi::open()?;
        // The launcher of one MPI and the library of another: everybody would believe to be alone and write the same files.
        let seen = ranks.size();
        if seen != size {
            let error = anyhow::anyhow!(
                "the launcher has started {size} processes, but the MPI library sees {seen}; \
                 use the mpirun of the MPI library that this program was built with"
            );
            // Those who see themselves alone can leave without harm, and the message comes first.
            ranks.finish()?;
            return Err(error);
        }
        Ok(Box::new(ranks))
    }
    #[cfg(not(feature = "mpi"))]
    {
        // Each of them would write the same files.
        anyhow::ensure!(
            size == 1,
            "started as one of {size} processes, but this build has no MPI support; build with --features mpi"
        );
        Ok(Box::new(SingleProcess))
    }
}

/// Whether `mine` holds on any rank. Collective; for decisions that all have to take together, such as to stop.
pub fn any(ranks: &dyn Communicator, mine: bool) -> Result<bool> {
    let mine = if mine { 1.0 } else { 0.0 };
    let all = ranks.all_gather(&[mine])?;
    Ok(all.iter().flatten().any(|&x| x > 0.0))
}

/// Fail on every rank if one has failed. Collective; for what can go wrong on one of them alone, such as a file.
///
/// The rank that failed keeps its own error; the others get one that names the first rank that failed.
pub fn agree<T>(ranks: &dyn Communicator, mine: Result<T>) -> Result<T> {
    let failed = if mine.is_err() { 1.0 } else { 0.0 };
    let all = ranks.all_gather(&[failed])?;
    let value = mine?;
    match all.iter().position(|x| x.iter().any(|&x| x > 0.0)) {
        Some(rank) => anyhow::bail!("rank {rank} has failed; its own message says why"),
        None => Ok(value),
    }
}

/// How many processes a launcher says it has started, this one among them.
fn launched() -> Option<usize> {
    SIZES
        .iter()
        .find_map(|name| std::env::var(name).ok()?.trim().parse().ok())
}

/// A rank that all agree on but that is none.
fn check_root(root: usize, size: usize) -> Result<()> {
    anyhow::ensure!(root < size, "there is no rank {root} among {size}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alone_keeps_every_bit() -> Result<()> {
        let numbers = [f64::from_bits(0x7FF0_0000_DEAD_BEEF), -0.0, 5e-324];
        let back = SingleProcess.all_gather(&numbers)?;
        assert_eq!(back.len(), 1);
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back[0]), bits(&numbers));
        assert_eq!(
            SingleProcess.gather_bytes(b"abc", 0)?,
            Some(vec![b"abc".to_vec()])
        );
        Ok(())
    }

    #[test]
    fn alone_has_one_rank() {
        assert!(SingleProcess.gather_bytes(&[], 1).is_err());
        assert!(SingleProcess.broadcast_bytes(&mut Vec::new(), 1).is_err());
    }

    #[test]
    fn alone_agrees_with_itself() -> Result<()> {
        let ranks: Box<dyn Communicator> = Box::new(SingleProcess);
        assert!(any(ranks.as_ref(), true)?);
        assert!(!any(ranks.as_ref(), false)?);
        assert_eq!(agree(ranks.as_ref(), Ok(3))?, 3);
        let failed = agree::<()>(ranks.as_ref(), Err(anyhow::anyhow!("no room")));
        assert_eq!(failed.map_err(|e| e.to_string()), Err("no room".into()));
        Ok(())
    }
}
