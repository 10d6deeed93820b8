//! The commit that the program was built from: a crate of its own, so that a commit compiles hardly anything again.

/// The first twelve digits of the commit; empty if it is not known.
pub const COMMIT: &str = env!("COMMIT");
