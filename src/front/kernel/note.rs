//! Notes to whoever started the kernel, on standard error.

use std::io::Write;

/// Write a note. That nobody can read it any more, because a server that was killed held the other end, must not matter: the
/// macros of the standard library would panic.
pub fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "kernel: {text}");
}
