//! Notebooks: Rust code that starts runs and shares them with scripts, and notebooks of either language without a browser.

// What speaks with cells is built with evcxr only.
#[cfg_attr(not(feature = "evcxr"), allow(dead_code))]
pub(crate) mod cell_protocol;
pub(crate) mod cells;
pub mod execute;
pub(crate) mod format;
#[cfg_attr(not(feature = "evcxr"), allow(dead_code))]
pub(crate) mod record;
#[cfg(feature = "evcxr")]
pub mod rust;
pub(crate) mod session;

pub use session::{Session, plan, prepare};

/// What cells have beside the library, as the library has it.
pub mod crates {
    /// Named in the type of a `VarBuilder`, which a cell could not keep otherwise.
    pub use candle_nn::var_builder::SimpleBackend;
    pub use {anyhow, candle_core, candle_nn, plotters, rand, serde_json};
}

/// What is said where Rust cells cannot be run.
#[cfg(not(feature = "evcxr"))]
pub const WITHOUT_EVCXR: &str = "this program is built without Rust notebooks; build it with: cargo install --path . --locked --features evcxr";

/// Read bytes as a notebook, as it is before and after it runs: for `tests/fuzz`.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    let Ok(mut notebook) = format::Notebook::parse(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    notebook.language();
    for (cell, _) in notebook.code() {
        notebook.may_fail(cell);
        notebook.set_outputs(cell, 1, &[]);
    }
    notebook.clear();
    let _ = notebook.to_text();
}
