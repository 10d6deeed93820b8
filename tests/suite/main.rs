//! The test suite: one binary, one module per contract.

mod accelerator;
mod claims;
mod cli;
mod closures;
mod contract;
mod custom;
mod damage;
mod determinism;
mod device;
mod diagnostics;
mod documentation;
mod emulated;
mod evidence;
mod examples;
mod exchange;
mod exits;
mod explore;
mod folders;
mod layering;
mod learning;
mod limits;
mod models;
mod notebook;
#[cfg(feature = "mpi")]
mod ranks;
mod recipes;
mod report;
mod samplers;
mod scripts;
mod shards;
mod smc;
mod support;
mod targets;
mod tensors;
mod transformer;
mod verdicts;
