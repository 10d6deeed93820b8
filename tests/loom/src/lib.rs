//! The team of threads in every order that its threads' steps may have, and with every value that its atomics may give: loom tries them one after the other.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release --manifest-path tests/loom/Cargo.toml`

#[cfg(loom)]
#[path = "../../../crates/kernels/src/thread_pool.rs"]
mod thread_pool;

#[cfg(all(loom, test))]
mod tests {
    use super::thread_pool::Team;
    use loom::cell::UnsafeCell;
    use loom::model::Builder;

    /// Cells whose every access loom holds to the order of memory.
    struct Cells(Vec<UnsafeCell<usize>>);

    // SAFETY: what is tested is that no two threads are at one of them at a time; loom panics where they are.
    unsafe impl Sync for Cells {}

    /// Loops of a team in all orders with at most so many threads put aside in the middle of what they do.
    fn every_item_is_done_once(size: usize, items: &'static [usize], preemptions: usize) {
        let mut model = Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let team = Team::new(size);
            for (round, count) in items.iter().enumerate() {
                let cells = Cells((0..*count).map(|_| UnsafeCell::new(0)).collect());
                let all = &cells;
                team.run(*count, &|i| all.0[i].with_mut(|x| unsafe { *x += 1 + i }));
                for (i, cell) in cells.0.iter().enumerate() {
                    cell.with(|x| assert_eq!(unsafe { *x }, 1 + i, "round {round}"));
                }
            }
        });
    }

    #[test]
    fn two_threads_two_loops() {
        every_item_is_done_once(2, &[2, 3], 3);
    }

    #[test]
    fn three_threads() {
        every_item_is_done_once(3, &[2], 2);
    }
}
