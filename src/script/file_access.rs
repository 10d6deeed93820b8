//! Functions that open the files which a script names, and where they must not be called.

use super::{Bound, raise};
use anyhow::anyhow;
use std::cell::Cell;

/// These functions and methods.
const OPENING: &[&str] = &[
    "dataset::csv",
    "dataset::idx",
    "dataset::npy",
    "dataset::npz",
    "dataset::parquet",
    "dataset::safetensors",
    "dataset::text",
    "dataset::tokens",
    "load",
    "model::onnx",
    "model::pretrained",
    "open",
    "read_json",
    "runs",
    "save",
    "tensor::load",
    "tensor::save",
];

/// Why what is called while a run goes on must not open files.
pub(super) const WHY: &str = "files may be others when the run goes on; read and write them outside the closure, which captures what it needs";

thread_local! {
    /// Whether this thread calls such a closure.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a function opens files.
pub(super) fn opens(name: &str) -> bool {
    OPENING.contains(&name)
}

/// Call something that must not open files by functions of the script.
pub(super) fn closed<R>(f: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            CLOSED.set(self.0);
        }
    }
    let _before = Before(CLOSED.replace(true));
    f()
}

/// Fail where a function must not open files.
pub(super) fn ensure_open(name: &str) -> Bound<()> {
    match CLOSED.get() {
        true => Err(raise(anyhow!("{name} must not be called here: {WHY}"))),
        false => Ok(()),
    }
}
