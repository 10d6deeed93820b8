//! What people see: the command line's verbs beyond running a script.

pub mod arguments;
pub(crate) mod bar;
pub mod bench;
pub mod browse;
pub(crate) mod cache;
pub mod display;
pub mod docs;
pub mod doctor;
pub mod grid;
pub(crate) mod interactive;
pub mod jupyter;
pub mod kernel;
pub mod lsp;
pub mod manual;
pub mod notebook;
pub mod permissions;
pub mod repl;
pub mod report;
pub mod run;
pub mod runs;
pub mod serve;
pub mod show;
pub mod slurm;
pub mod stack;
pub mod verify;
