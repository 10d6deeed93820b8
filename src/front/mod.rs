//! What people see: the command line's verbs beyond running a script.

pub mod bench;
pub mod docs;
pub mod doctor;
pub mod repl;
pub mod report;
pub mod run;
pub mod show;
