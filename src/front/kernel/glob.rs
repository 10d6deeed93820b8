//! Patterns of history searches: `*` any text, `?` any character, `[a-z]` or `[!a-z]` one of some.

/// Whether a pattern describes the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where the last star stood, and what it swallows up to: on a mismatch it swallows one character more.
    let mut star = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
        } else if let Some(width) = pattern.get(p..).and_then(|rest| one(rest, text[t])) {
            (p, t) = (p + width, t + 1);
        } else if let Some((from, until)) = star {
            (p, t) = (from + 1, until + 1);
            star = Some((from, until + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// How many characters of the pattern describe this character, if they do.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => match set(pattern, c) {
            Some((width, fits)) => fits.then_some(width),
            // A bracket that is not closed stands for itself.
            None => (c == '[').then_some(1),
        },
        p => (*p == c).then_some(1),
    }
}

fn set(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = pattern.get(1) == Some(&'!');
    let start = if negated { 2 } else { 1 };
    // A bracket right at the start is one of the characters.
    let end = (start + 1..pattern.len()).find(|&i| pattern[i] == ']')?;
    let (mut i, mut found) = (start, false);
    while i < end {
        if i + 2 < end && pattern[i + 1] == '-' {
            found |= (pattern[i]..=pattern[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= pattern[i] == c;
            i += 1;
        }
    }
    Some((end + 1, found != negated))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("*", "a\nb", true),
            ("1?2*", "1+2", true),
            ("1?2*", "1+2+3", true),
            ("1?2*", "12", false),
            ("*ab*ab", "abcabab", true),
            ("*ab*ac", "abcabab", false),
            ("x[0-9]", "x7", true),
            ("x[!0-9]", "x7", false),
            ("x[!0-9]", "xψ", true),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("[a", "a", false),
            ("a**", "a", true),
            ("ψ?", "ψ𝜓", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        assert!(!matches(&"*a".repeat(40), &"b".repeat(5000)));
        assert!(!matches(&"*a".repeat(40), &"a".repeat(39)));
    }
}
