//! The test suite: one binary, one module per contract.

mod accelerator;
mod cli;
mod contract;
mod custom;
mod determinism;
mod device;
mod diagnostics;
mod documentation;
mod emulated;
mod evidence;
mod examples;
mod exchange;
mod explore;
mod habits;
mod kernel;
mod layering;
mod learning;
mod models;
mod notebook;
#[cfg(feature = "mpi")]
mod ranks;
mod recipes;
mod report;
mod scripts;
mod shards;
mod smc;
mod support;
mod targets;
mod tensors;
mod transformer;
