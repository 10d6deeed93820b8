//! Indentation: lines moved to where their brackets put them. Nothing else of a script is changed.

use super::tokens::{Kind, Token, tokens};

/// Blanks of a step.
const STEP: usize = 4;

/// The script with every line indented by its brackets, no blanks at the ends of lines, and one line feed at its end. Strings and comments that go
/// over lines stay as they are.
pub fn indented(source: &str) -> String {
    let all = tokens(source);
    let mut out = String::with_capacity(source.len() + 64);
    // The indentation of the line in which each open bracket stands.
    let mut open: Vec<usize> = Vec::new();
    let (mut next, mut at) = (0, 0);
    let mut last: Option<Token> = None;
    for line in source.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        // Whether a string or a comment that began before goes on there.
        let inside = |next: usize, place: usize| {
            let before = all[..next].last();
            before.is_some_and(|t| t.start < place && place < t.end())
        };
        let begins_inside = inside(next, start);
        let first = all.get(next).filter(|t| t.start < end);
        let text = line.trim_end_matches(['\n', '\r']);
        let indent = match first {
            _ if begins_inside => text.len() - text.trim_start().len(),
            Some(first) => indentation(&open, last, first),
            None => 0,
        };
        while let Some(t) = all.get(next).filter(|t| t.start < end) {
            match t.text {
                _ if t.kind != Kind::Mark => {}
                "(" | "[" | "{" | "#{" => open.push(indent),
                ")" | "]" | "}" => drop(open.pop()),
                _ => {}
            }
            if !matches!(t.kind, Kind::Comment(_)) {
                last = Some(*t);
            }
            next += 1;
        }
        let ends_inside = inside(next, end);
        let kept = if ends_inside { text } else { text.trim_end() };
        match begins_inside {
            true => out.push_str(kept),
            false if kept.trim_start().is_empty() => {}
            false => {
                out.push_str(&" ".repeat(indent));
                out.push_str(kept.trim_start());
            }
        }
        out.push('\n');
    }
    let length = out.trim_end().len();
    out.truncate(length);
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Where a line begins whose first token this is.
fn indentation(open: &[usize], last: Option<Token>, first: &Token) -> usize {
    let innermost = open.last().copied();
    if first.kind == Kind::Mark && [")", "]", "}"].contains(&first.text) {
        return innermost.unwrap_or(0);
    }
    let base = innermost.map_or(0, |line| line + STEP);
    // A statement that goes on: `.method()` or an operator at its beginning, or a line before that has not come to an end.
    let ended = |t: Token| match t.kind {
        Kind::Mark => [";", ",", "{", "}", "(", "[", "#{", "|"].contains(&t.text),
        _ => false,
    };
    let goes_on =
        last.is_some_and(|t| !ended(t) && !first.is("{")) || first.is(".") && last.is_some();
    match goes_on && !matches!(first.kind, Kind::Comment(_)) {
        true => base + STEP,
        false => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_where_their_brackets_put_them() {
        let source = "fn f(x) {\nlet y = x\n+ 1;  \n   if y > 2 {\ny }\nelse { 0 }\n}\nlet run = sample(t, sampler::hmc(), #{\nchains: 4,\n      steps: [\n1, 2\n]\n});\nrun\n.summary()\n\n\n";
        let expected = "fn f(x) {\n    let y = x\n        + 1;\n    if y > 2 {\n        y }\n    else { 0 }\n}\nlet run = sample(t, sampler::hmc(), #{\n    chains: 4,\n    steps: [\n        1, 2\n    ]\n});\nrun\n    .summary()\n";
        assert_eq!(indented(source), expected);
        assert_eq!(indented(expected), expected);
        assert_eq!(indented(""), "");
    }

    #[test]
    fn strings_and_comments_stay() {
        let source = "{\n let a = `one\n      two  \n${ {1} } three`;\n/* first\n  second */\n let b = \"x\";\n}\n";
        let done = indented(source);
        assert!(
            done.contains(
                "`one\n      two  \n${ {1} } three`;\n    /* first\n  second */\n    let b"
            ),
            "{done}"
        );
    }

    #[test]
    fn shipped_scripts_keep_their_tokens() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["scripts", "stdlib"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_none_or(|e| e != "rhai") {
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                let done = indented(&source);
                let texts = |s: &str| {
                    tokens(s)
                        .iter()
                        .map(|t| t.text.to_string())
                        .collect::<Vec<_>>()
                };
                assert_eq!(texts(&done), texts(&source), "{}", path.display());
                assert_eq!(indented(&done), done, "{}", path.display());
                assert_eq!(
                    done,
                    source,
                    "{} is not indented by its brackets",
                    path.display()
                );
            }
        }
    }
}
