//! The test suite: one binary, one module per contract.

mod accelerator;
mod cli;
mod determinism;
mod device;
mod diagnostics;
mod documentation;
mod emulated;
mod layering;
mod models;
mod samplers;
mod scripts;
mod support;
