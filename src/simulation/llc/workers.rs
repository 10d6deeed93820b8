//! Estimates that run side by side, a thread of workers for each.

use crate::error::{Interrupted, Result};

/// Let every worker go on for a while, all at once. An interruption is no error: what they were at is kept.
pub(super) fn side_by_side<W: Send>(
    workers: &mut [W],
    work: impl Fn(&mut W) -> Result<()> + Sync,
) -> Result<()> {
    let work = &work;
    let results: Vec<Result<()>> = std::thread::scope(|s| {
        let running: Vec<_> = workers.iter_mut().map(|w| s.spawn(|| work(w))).collect();
        let join = |t: std::thread::ScopedJoinHandle<Result<()>>| match t.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.into_iter().map(join).collect()
    });
    let real = |r: &Result<()>| r.as_ref().is_err_and(|e| !Interrupted::is(e));
    results.into_iter().find(real).unwrap_or(Ok(()))
}
