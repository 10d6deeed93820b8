//! Places in a text: bytes of ours, lines and UTF-16 units of an editor.

use lsp_types::{Position, Range};

/// The byte at a position; the nearest one before, if there is none.
pub fn byte(text: &str, at: Position) -> usize {
    let mut lines = text.split_inclusive('\n');
    let mut start = 0;
    for _ in 0..at.line {
        match lines.next() {
            Some(line) => start += line.len(),
            None => return text.len(),
        }
    }
    let line = lines.next().unwrap_or("");
    let line = line.trim_end_matches(['\n', '\r']);
    let mut units = 0;
    for (k, c) in line.char_indices() {
        if units + c.len_utf16() > at.character as usize {
            return start + k;
        }
        units += c.len_utf16();
    }
    start + line.len()
}

/// The position of a byte.
pub fn position(text: &str, byte: usize) -> Position {
    let before = &text[..text.floor_char_boundary(byte)];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |k| k + 1);
    let units = before[start..].encode_utf16().count();
    Position::new(line as u32, units as u32)
}

/// The range of some bytes.
pub fn range(text: &str, bytes: std::ops::Range<usize>) -> Range {
    Range::new(position(text, bytes.start), position(text, bytes.end))
}

/// Put a text in the place of a range, or of everything.
pub fn change(text: &mut String, at: Option<Range>, new: &str) {
    match at {
        None => *text = new.into(),
        Some(range) => {
            let (start, end) = (byte(text, range.start), byte(text, range.end));
            text.replace_range(start..end.max(start), new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_positions_are_inverse() {
        let text = "let å = 1;\r\n\n  \"𝛽\" x\nend";
        for (byte_at, _) in text.char_indices().filter(|(_, c)| *c != '\n') {
            assert_eq!(byte(text, position(text, byte_at)), byte_at);
        }
        assert_eq!(position(text, text.find('x').unwrap()), Position::new(2, 7));
        // Beyond the end of a line, within a pair of units, beyond the last line.
        assert_eq!(byte(text, Position::new(0, 99)), 11);
        assert_eq!(&text[byte(text, Position::new(2, 4))..][..4], "𝛽");
        assert_eq!(byte(text, Position::new(9, 0)), text.len());
        let mut text = text.to_string();
        change(
            &mut text,
            Some(Range::new(Position::new(0, 4), Position::new(0, 5))),
            "bb",
        );
        assert!(text.starts_with("let bb = 1"));
        change(
            &mut text,
            Some(Range::new(Position::new(1, 0), Position::new(0, 0))),
            "",
        );
        change(&mut text, None, "new");
        assert_eq!(text, "new");
    }
}
