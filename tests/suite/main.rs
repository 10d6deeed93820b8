//! The test suite: one binary, one module per contract.

/// The program's: glibc gives memory back to the system at every chance, and asks for it again.
#[cfg(not(system_allocator))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod accelerator;
mod baselines;
mod builders;
mod by_candle;
mod claims;
mod cli;
mod closures;
mod continued;
mod contract;
mod curves;
mod custom;
mod damage;
mod data;
mod determinism;
mod device;
mod diagnostics;
mod documentation;
mod editor;
mod emulated;
mod evidence;
mod examples;
mod exchange;
mod exits;
mod explore;
mod faults;
mod folders;
mod gibbs;
mod grids;
mod habits;
mod keep;
mod kernel;
mod layering;
mod learning;
mod limits;
mod loo;
mod models;
mod notebook;
mod overlaps;
mod own;
mod programs;
mod pytorch;
#[cfg(feature = "mpi")]
mod ranks;
mod recipes;
mod references;
mod report;
mod reports;
mod runs;
mod samplers;
mod scripts;
mod served;
mod shards;
mod smc;
mod support;
mod targets;
mod tensors;
mod transformer;
mod trust;
mod until;
mod verdicts;
