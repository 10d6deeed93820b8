//! Notes to whoever started the kernel, on standard error.

use std::io::Write;

/// Characters of a note: what strangers send stands in some.
const LONGEST: usize = 600;

/// Write a note, on one line. That nobody can read it any more, because a server that was killed held the other end, must not matter: the
/// macros of the standard library would panic.
pub fn note(text: impl std::fmt::Display) {
    let text = text.to_string();
    let plain = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { ' ' } else { c });
    let _ = writeln!(std::io::stderr(), "kernel: {}", plain.collect::<String>());
}
