//! Paths in addresses: with %-signs, and back.

use std::fmt::Write;
use std::path::Path;

/// A path as it stands in a link.
pub(crate) fn href(path: &Path) -> String {
    let mut out = String::new();
    for (k, part) in path.iter().enumerate() {
        if k > 0 {
            out.push('/');
        }
        for byte in part.as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    out.push(*byte as char)
                }
                byte => {
                    let _ = write!(out, "%{byte:02X}");
                }
            }
        }
    }
    out
}

/// The text that %-signs stand for.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push(match b {
            b'%' => (16 * digit()? + digit()?) as u8,
            b => b,
        });
    }
    String::from_utf8(out).ok().filter(|t| !t.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back() {
        let path = "a b/é/100%/x-1_2.~";
        assert!(href(Path::new(path)).is_ascii());
        assert_eq!(decoded(&href(Path::new(path))).as_deref(), Some(path));
        assert_eq!(decoded("a%20b/%C3%A9").as_deref(), Some("a b/é"));
        for odd in ["%", "%4", "%zz", "%ff", "a%00"] {
            assert_eq!(decoded(odd), None, "{odd}");
        }
    }
}
