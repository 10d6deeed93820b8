//! A script in tokens: as much of Rhai's grammar as highlighting and completion need, also of a script that is not finished.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Name,
    /// A number.
    Number,
    /// A string or a character; whether it is closed.
    Text(bool),
    /// A comment; whether it is closed, as comments to the end of a line always are.
    Comment(bool),
    /// Anything else: `#{`, `::` and `=>` whole, other marks one by one.
    Mark,
}

/// A piece of a script that means something; white space is between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Where it begins, in bytes.
    pub start: usize,
    /// It.
    pub text: &'a str,
}

impl Token<'_> {
    /// Where it ends, in bytes.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this mark.
    pub fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }
}

/// Words that are no names.
pub(crate) const KEYWORDS: &[&str] = &[
    "let",
    "const",
    "fn",
    "if",
    "else",
    "while",
    "loop",
    "do",
    "until",
    "for",
    "in",
    "break",
    "continue",
    "return",
    "switch",
    "try",
    "catch",
    "throw",
    "true",
    "false",
    "import",
    "export",
    "as",
    "private",
    "this",
    "Fn",
    "call",
    "curry",
    "is_shared",
    "is_def_fn",
    "is_def_var",
    "type_of",
    "print",
    "debug",
    "eval",
    "global",
];

/// Which parts of a script have which colour: "k" keywords, "c" comments, "s" strings, "n" numbers, "f" functions.
pub(crate) fn paint(source: &str) -> Vec<(Range<usize>, &'static str)> {
    let all = tokens(source);
    let class = |(i, t): (usize, &Token)| {
        let class = match t.kind {
            Kind::Comment(_) => "c",
            Kind::Text(_) => "s",
            Kind::Number => "n",
            Kind::Name if KEYWORDS.contains(&t.text) => "k",
            Kind::Name if all.get(i + 1).is_some_and(|next| next.is("(")) => "f",
            _ => return None,
        };
        Some((t.start..t.end(), class))
    };
    all.iter().enumerate().filter_map(class).collect()
}

/// The tokens of a script.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (kind, length) = next(&source[at..], c);
        out.push(Token {
            kind,
            start: at,
            text: &source[at..at + length],
        });
        at += length;
    }
    out
}

/// The kind and the length of the token at the beginning of `rest`, whose first character is `first`.
fn next(rest: &str, first: char) -> (Kind, usize) {
    let line = rest.find('\n').unwrap_or(rest.len());
    match first {
        '/' if rest.starts_with("//") => (Kind::Comment(true), line),
        '/' if rest.starts_with("/*") => comment(rest),
        '"' => quoted(rest, '"'),
        '\'' => quoted(rest, '\''),
        '`' => template(rest),
        '#' if rest.trim_start_matches('#').starts_with('"') => raw(rest),
        _ if first.is_alphabetic() || first == '_' => (
            Kind::Name,
            length_while(rest, |c| c.is_alphanumeric() || c == '_'),
        ),
        _ if first.is_ascii_digit() => (Kind::Number, number(rest)),
        _ => {
            let whole = ["#{", "::", "=>"].iter().find(|m| rest.starts_with(**m));
            (Kind::Mark, whole.map_or(first.len_utf8(), |m| m.len()))
        }
    }
}

fn length_while(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

/// A number, with a fraction and an exponent; not the dots of a range or of a method.
fn number(rest: &str) -> usize {
    let digit = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let follows = |at: usize, c: char| rest[at..].starts_with(c);
    let digits_at = |at: usize| rest[at..].starts_with(|c: char| c.is_ascii_digit());
    let mut end = length_while(rest, digit);
    if follows(end, '.') && digits_at(end + 1) {
        end += 1 + length_while(&rest[end + 1..], digit);
    }
    let signed = rest[..end].ends_with(['e', 'E']) && !rest.starts_with("0x");
    if signed && (follows(end, '-') || follows(end, '+')) && digits_at(end + 1) {
        end += 1 + length_while(&rest[end + 1..], digit);
    }
    end
}

/// Comments within comments count.
fn comment(rest: &str) -> (Kind, usize) {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return (Kind::Comment(true), at);
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    (Kind::Comment(false), rest.len())
}

/// Up to the same mark again, but for those behind a backslash; not beyond the line.
fn quoted(rest: &str, mark: char) -> (Kind, usize) {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            // A backslash at the end of a line goes on in the next one.
            '\n' if !escaped => return (Kind::Text(false), at),
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return (Kind::Text(true), at + c.len_utf8()),
            _ => {}
        }
    }
    (Kind::Text(false), rest.len())
}

/// A string with `${…}` in it, whose braces may hold strings again.
fn template(rest: &str) -> (Kind, usize) {
    let mut at = 1;
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with('`') {
            return (Kind::Text(true), at + 1);
        }
        if here.starts_with("${") {
            let mut depth = 0;
            let mut inner = at + 1;
            for token in tokens(&rest[at + 1..]) {
                inner = at + 1 + token.end();
                depth += i32::from(token.is("{") || token.is("#{")) - i32::from(token.is("}"));
                if depth == 0 {
                    break;
                }
            }
            at = inner.max(at + 2);
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    (Kind::Text(false), rest.len())
}

/// `#"…"#`, with as many `#` on either side.
fn raw(rest: &str) -> (Kind, usize) {
    let marks = length_while(rest, |c| c == '#');
    let end = format!("\"{}", &rest[..marks]);
    match rest[marks + 1..].find(&end) {
        Some(at) => (Kind::Text(true), marks + 1 + at + end.len()),
        None => (Kind::Text(false), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|t| t.text).collect()
    }

    #[test]
    fn marks_names_and_numbers() {
        assert_eq!(
            texts("let a=sampler::hmc(#{dt:1.5e-3});a.b"),
            [
                "let", "a", "=", "sampler", "::", "hmc", "(", "#{", "dt", ":", "1.5e-3", "}", ")",
                ";", "a", ".", "b"
            ]
        );
        assert_eq!(texts("0..10"), ["0", ".", ".", "10"]);
        assert_eq!(texts("3.max(4)"), ["3", ".", "max", "(", "4", ")"]);
        assert_eq!(texts("1e-4-2 0xE-1"), ["1e-4", "-", "2", "0xE", "-", "1"]);
        assert_eq!(texts("β₁+ü"), ["β₁", "+", "ü"]);
    }

    #[test]
    fn strings_and_comments_are_one_piece() {
        for one in [
            r#""a \" (""#,
            "`a ${ f(\"`}\", #{ b: `${1}` }) } b`",
            "// all ( of it",
            "/* a /* b */ c */",
            "#\"a\"b\"#",
            "'\\''",
        ] {
            let found = tokens(one);
            assert_eq!(found.len(), 1, "{one}: {found:?}");
            assert!(
                matches!(found[0].kind, Kind::Text(true) | Kind::Comment(true)),
                "{one}"
            );
        }
        for open in ["\"a", "`a ${ b", "/* a /* */", "#\"a\"", "`a ${ \"}", "'"] {
            let found = tokens(open);
            assert!(
                matches!(
                    found[..],
                    [Token {
                        kind: Kind::Text(false) | Kind::Comment(false),
                        ..
                    }]
                ),
                "{open}: {found:?}"
            );
        }
        // A string ends with its line, and what comes after is code again.
        assert_eq!(texts("\"a\nb"), ["\"a", "b"]);
    }
}
