//! The test suite: one binary, one module per contract.

mod accelerator;
mod cli;
mod contract;
mod determinism;
mod device;
mod diagnostics;
mod documentation;
mod emulated;
mod examples;
mod layering;
mod learning;
mod models;
mod scripts;
mod support;
mod targets;
mod transformer;
