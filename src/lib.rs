//! `ergodic` — a scripting laboratory for sampling the weights of neural networks.
//!
//! A compiled engine exposes datasets, models, targets, samplers, observables and runs to short Rhai scripts. Modules are
//! layered: each uses only those above it in this list.
//!
//! | module | what it is |
//! |---|---|
//! | [`kernels`], [`memory`], [`rng`] | the hot loops, and what they are built on: the crate `ergodic-kernels` |
//! | [`error`], [`output`], [`schedule`], [`trigger`], [`mod@options`], [`ranks`], [`table`] | what everything else uses |
//! | [`diagnostic`] | R̂, ESS, error bars, the thermometer: pure functions over slices |
//! | [`store`] | Zarr, safetensors, checkpoints, atomic files |
//! | [`plot`] | series in, figure out |
//! | [`object`], [`verb`] | what scripts hold and what they call, each described once |
//! | [`dataset`], [`model`] | data and networks |
//! | [`target`] | model + data + prior: the only place where n, m, nβ and T meet |
//! | [`engine`] | where the vectors of chains live: this machine or an accelerator |
//! | [`sampler`], [`observable`] | one file per kind |
//! | [`simulation`] | the one loop, training, runs and their summaries |
//! | [`report`] | finished runs, read back and told: figures, verdicts, tables, one HTML page |
//! | [`registry`] | the list of all constructors, verbs and objects |
//! | [`builders`] | typed builders of all of them, for Rust code |
//! | [`script`] | the only folder that names Rhai |
//! | [`front`] | REPL, notebooks, reference, doctor |
//! | [`prelude`] | what Rust programs and notebooks use |

#![warn(missing_docs)]
// What is printed may be lost; `output` knows what then.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod access;
pub mod builders;
pub mod dataset;
pub mod diagnostic;
pub mod engine;
pub mod error;
pub mod front;
pub mod model;
pub mod object;
pub mod observable;
pub mod options;
pub mod output;
mod platform;
pub mod plot;
pub mod prelude;
pub mod ranks;
pub mod registry;
pub mod report;
pub mod sampler;
pub mod schedule;
pub mod script;
pub mod simulation;
pub mod store;
pub mod table;
pub mod target;
pub mod trigger;
pub mod verb;

pub use ergodic_kernels::{memory, rng};

/// The hot loops that everything else is built on: a crate of its own, which is compiled as one piece.
pub mod kernels {
    pub(crate) use ergodic_kernels::simd;
    pub use ergodic_kernels::{Level, asked_level, level};
    pub use ergodic_kernels::{dense, device, elementwise, gemm, map, math, normal, update};
    pub(crate) use ergodic_kernels::{gather, gemm_baseline, sequence, tensor, thread_pool};
}
