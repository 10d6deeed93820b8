//! Positions in code. Jupyter counts code points, Rust bytes, and JavaScript (and clients before protocol 5.2) UTF-16 units.
//!
//! A position beyond the end counts as the end, one within a character as the start of that character.

/// The byte at which a code point starts.
pub fn byte(code: &str, point: usize) -> usize {
    code.char_indices()
        .nth(point)
        .map_or(code.len(), |(i, _)| i)
}

/// The number of code points before a byte.
pub fn point(code: &str, byte: usize) -> usize {
    code.char_indices()
        .take_while(|(i, c)| i + c.len_utf8() <= byte)
        .count()
}

/// The number of code points before a UTF-16 unit.
pub(crate) fn point_of_utf16(code: &str, unit: usize) -> usize {
    let mut end = 0;
    code.chars()
        .take_while(|c| {
            end += c.len_utf16();
            end <= unit
        })
        .count()
}

/// The number of UTF-16 units before a code point.
pub(crate) fn utf16_of_point(code: &str, point: usize) -> usize {
    code.chars().take(point).map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One, two, three and four bytes; the last takes two UTF-16 units.
    const TEXT: &str = "aψ≤𝜓b";

    #[test]
    fn code_points_and_bytes() {
        let bytes = [0, 1, 3, 6, 10, 11];
        for (p, b) in bytes.into_iter().enumerate() {
            assert_eq!(byte(TEXT, p), b);
            assert_eq!(point(TEXT, b), p);
        }
        assert_eq!(byte(TEXT, 99), 11);
        assert_eq!(point(TEXT, 99), 5);
        assert_eq!(point(TEXT, 8), 3, "within the fourth");
        assert_eq!((byte("", 3), point("", 3)), (0, 0));
    }

    #[test]
    fn code_points_and_utf16() {
        for (p, u) in [0, 1, 2, 3, 5, 6].into_iter().enumerate() {
            assert_eq!(utf16_of_point(TEXT, p), u);
            assert_eq!(point_of_utf16(TEXT, u), p);
        }
        assert_eq!(point_of_utf16(TEXT, 4), 3, "between two surrogates");
        assert_eq!(point_of_utf16(TEXT, 99), 5);
        assert_eq!(utf16_of_point(TEXT, 99), 6);
    }
}
