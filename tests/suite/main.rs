//! The test suite: one binary, one module per contract.

mod cli;
mod determinism;
mod diagnostics;
mod documentation;
mod layering;
mod models;
mod samplers;
mod scripts;
mod support;
