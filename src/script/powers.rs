//! `-x**2`, which Rhai reads as (-x)², and everybody else as -(x²).

use super::explore::tokens::{KEYWORDS, Kind, Token};
use super::habits::{code, place};
use rhai::{LexError, ParseError};

/// Fail if a minus stands before a power without parentheses: what is right here would be wrong by a sign on paper.
pub(super) fn check(source: &str) -> Result<(), ParseError> {
    let code = match source.contains("**") {
        true => code(source),
        false => return Ok(()),
    };
    let negated = |i: &usize| {
        let first = i.checked_sub(1).map(|b| &code[b]);
        let minus = code[*i].is("-") && !first.is_some_and(ends_operand);
        let is_power = |end: usize| match code.get(end..end + 2) {
            Some([a, b]) => a.is("*") && b.is("*") && a.end() == b.start,
            _ => false,
        };
        minus && operand(&code, i + 1).is_some_and(is_power)
    };
    let Some(i) = (0..code.len()).find(negated) else {
        return Ok(());
    };
    let end = operand(&code, i + 1).unwrap_or(i + 1);
    let x = &source[code[i + 1].start..code[end - 1].end()];
    let said = format!(
        "-{x}**… would be (-{x})**… here; write -({x}**…) or (-{x})**…, whichever is meant"
    );
    let place = place(source, code[i].start);
    Err(LexError::ImproperSymbol("-".into(), said).into_err(place))
}

fn is_name(t: &Token) -> bool {
    t.kind == Kind::Name
        && (!KEYWORDS.contains(&t.text) || ["this", "true", "false"].contains(&t.text))
}

/// Whether a minus behind a token subtracts.
fn ends_operand(t: &Token) -> bool {
    is_name(t) || matches!(t.kind, Kind::Number | Kind::Text(_)) || t.is(")") || t.is("]")
}

/// The end of a number, or of a name or a group with what is called, indexed or asked of it.
fn operand(code: &[Token], from: usize) -> Option<usize> {
    let mut at = from;
    match code.get(at)? {
        t if t.kind == Kind::Number || is_name(t) => at += 1,
        t if t.is("(") => at = closing(code, at)?,
        _ => return None,
    }
    while let Some(t) = code.get(at) {
        if (t.is(".") || t.is("::")) && code.get(at + 1).is_some_and(|n| n.kind == Kind::Name) {
            at += 2;
        } else if t.is("(") || t.is("[") {
            at = closing(code, at)?;
        } else {
            break;
        }
    }
    Some(at)
}

/// Behind the bracket that closes the one at a place.
fn closing(code: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0i32;
    let close = code[open..].iter().position(|t| {
        let opens = ["(", "[", "{", "#{"].iter().any(|m| t.is(m));
        let closes = [")", "]", "}"].iter().any(|m| t.is(m));
        depth += i32::from(opens) - i32::from(closes);
        depth == 0
    })?;
    Some(open + close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_before_a_power_is_found() {
        for bad in [
            "-x**2",
            "exp(-w[0]**2)",
            "let y = -2.5**2;",
            "a * -b.norm2()**n",
            "return -(a + b)**2;",
            "|x| -x ** 2",
            "[1, -f(2)[1].c**2]",
        ] {
            let said = check(bad).expect_err(bad).to_string();
            assert!(said.contains("would be (-"), "{bad}: {said}");
        }
        for fine in [
            "a - x**2",
            "(-x)**2",
            "-(x**2)",
            "2.0**-3",
            "f(x) - g(x)**2",
            "a[1] - b**2",
            "-x * y**2",
            "\"-x**2\"",
            "// -x**2",
            "1 - 2**2",
            "-a + b**2",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
    }
}
