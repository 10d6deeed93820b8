//! What a script declares: its functions, and its variables with the calls that make them.

use super::place::{Callee, Receiver};
use super::tokens::{Kind, Token, tokens};

/// A function, a variable or a constant that a script declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its name begins, in bytes.
    pub start: usize,
    /// "fn", "let" or "const".
    pub word: &'a str,
    /// How many brackets it is within.
    pub depth: usize,
    /// What makes the variable's first value, if that can be told.
    pub made_by: Option<Receiver<'a>>,
}

/// The declarations of a script, from the first to the last.
pub fn declared(source: &str) -> Vec<Declared<'_>> {
    let all = tokens(source);
    let all: Vec<_> = all
        .into_iter()
        .filter(|t| !matches!(t.kind, Kind::Comment(_)))
        .collect();
    let mut out = Vec::new();
    let mut depth = 0usize;
    for (i, t) in all.iter().enumerate() {
        match t.text {
            "(" | "[" | "{" | "#{" if t.kind == Kind::Mark => depth += 1,
            ")" | "]" | "}" if t.kind == Kind::Mark => depth = depth.saturating_sub(1),
            "fn" | "let" | "const" if t.kind == Kind::Name => {
                if let Some(name) = all.get(i + 1).filter(|n| n.kind == Kind::Name) {
                    out.push(Declared {
                        name: name.text,
                        start: name.start,
                        word: t.text,
                        depth,
                        made_by: made_by(&all[i + 2..]),
                    });
                }
            }
            _ => {}
        }
    }
    out
}

/// What gives the value behind `=`, if it is one call, a string or an array, up to the end of the statement.
fn made_by<'a>(rest: &[Token<'a>]) -> Option<Receiver<'a>> {
    let [equals, value @ ..] = rest else {
        return None;
    };
    if !equals.is("=") {
        return None;
    }
    let first = value.first()?;
    let (callee, open) = match value {
        [name, open, ..] if name.kind == Kind::Name && open.is("(") => (("", name.text), 1),
        [space, mark, name, open, ..] if mark.is("::") && open.is("(") => {
            ((space.text, name.text), 3)
        }
        _ => {
            let closes = |kind| match kind {
                Kind::Text(_) => Some((Receiver::Text, 0)),
                _ if first.is("[") => Some((Receiver::Array, closing(value, 0)?)),
                _ => None,
            };
            let (found, end) = closes(first.kind)?;
            return ends(value, end).then_some(found);
        }
    };
    let found = Receiver::Call(Callee {
        namespace: callee.0,
        name: callee.1,
        method: false,
    });
    ends(value, closing(value, open)?).then_some(found)
}

/// Whether the statement ends behind this token.
fn ends(value: &[Token], last: usize) -> bool {
    value.get(last + 1).is_none_or(|next| next.is(";"))
}

/// The bracket that closes the one at `open`.
fn closing(all: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, t) in all.iter().enumerate().skip(open) {
        match t.text {
            _ if t.kind != Kind::Mark => {}
            "(" | "[" | "{" | "#{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_variables_are_found_with_what_makes_them() {
        let source = "let net = model::mlp(#{ layers: [1, 2] }); // let no = 1;\nfn f(x) { let y = g(x) + 1; y }\nconst A = [1, (2)];\nlet s = \"let z\";\nlet m = net.with(1);";
        let all = declared(source);
        let names: Vec<_> = all.iter().map(|d| (d.word, d.name, d.depth)).collect();
        let expected = [
            ("let", "net", 0),
            ("fn", "f", 0),
            ("let", "y", 1),
            ("const", "A", 0),
            ("let", "s", 0),
            ("let", "m", 0),
        ];
        assert_eq!(names, expected);
        assert!(
            matches!(all[0].made_by, Some(Receiver::Call(c)) if c.name == "mlp" && c.namespace == "model")
        );
        let made: Vec<_> = all[1..].iter().map(|d| d.made_by).collect();
        assert_eq!(
            made,
            [
                None,
                None,
                Some(Receiver::Array),
                Some(Receiver::Text),
                None
            ]
        );
        assert_eq!(&source[all[1].start..][..1], "f");
        for odd in [
            "let",
            "let x",
            "let x =",
            "fn (",
            "let x = f(",
            "let x = a::",
            ")))let y",
        ] {
            declared(odd);
        }
    }
}
