//! Script parameters: `param("name", default, "doc")` and `--set name=value`.

use super::words::a_kind;
use super::{Bound, Context, raise};
use anyhow::anyhow;
use rhai::{Dynamic, Engine, NativeCallContext};
use std::sync::Arc;

/// A parameter that a script declares, as written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Name.
    pub name: String,
    /// Default, as source text.
    pub default: String,
    /// What it is for.
    pub doc: String,
}

/// The value of a parameter: the default, or the setting of the command line converted to the default's kind.
pub(super) fn value(
    context: &Arc<Context>,
    native: &NativeCallContext,
    name: &str,
    default: Dynamic,
) -> Bound<Dynamic> {
    let Some(text) = context.settings().remove(name) else {
        return Ok(default);
    };
    if default.is_string() {
        // As it stands, or in quotes as in a script.
        let quoted = Some(&text).filter(|t| t.starts_with('"') && t.ends_with('"'));
        let read = quoted.and_then(|t| native.engine().eval_expression::<String>(t).ok());
        return Ok(read.unwrap_or(text).into());
    }
    let wrong = |got: &str| {
        raise(anyhow!(
            "--set {name}={text}: expected {}, like the default in the script, but this is {got}",
            a_kind(default.type_name())
        ))
    };
    let engine: &Engine = native.engine();
    let value = engine
        .eval_expression::<Dynamic>(&text)
        .map_err(|e| wrong(&format!("not an expression ({e})")))?;
    if value.is_int() && default.is_float() {
        return Ok((value.as_int().unwrap_or(0) as f64).into());
    }
    if value.type_name() != default.type_name() {
        return Err(wrong(&a_kind(value.type_name())));
    }
    Ok(value)
}

/// The parameters a script declares, found in its text: comments and strings are skipped, nothing is run.
pub fn declared(source: &str) -> Vec<Declared> {
    let mut out: Vec<Declared> = Vec::new();
    let text: Vec<char> = source.chars().collect();
    let mut i = 0;
    while i < text.len() {
        if let Some(end) = skip(&text, i) {
            i = end;
            continue;
        }
        let word = text[i..].starts_with(&['p', 'a', 'r', 'a', 'm', '(']);
        let path = i >= 2 && text[i - 2..i] == [':', ':'];
        let starts =
            i == 0 || !(path || text[i - 1].is_alphanumeric() || "_.".contains(text[i - 1]));
        if word && starts {
            let arguments = arguments(&text, i + 6);
            let string = |s: &String| {
                let quoted = s.len() >= 2 && s.starts_with('"') && s.ends_with('"');
                quoted.then(|| s[1..s.len() - 1].to_string())
            };
            if let [name, default, rest @ ..] = &arguments[..]
                && let Some(name) = string(name)
                && !out.iter().any(|d| d.name == name)
            {
                let doc = rest.first().and_then(string).unwrap_or_default();
                out.push(Declared {
                    name,
                    default: default.clone(),
                    doc,
                });
            }
            i += 6;
        } else {
            i += 1;
        }
    }
    out
}

/// The end of the comment or string that starts at `i`, if one does.
fn skip(text: &[char], i: usize) -> Option<usize> {
    let next = text.get(i + 1).copied().unwrap_or(' ');
    let find = |from: usize, f: &dyn Fn(usize) -> bool| {
        (from..text.len()).find(|j| f(*j)).unwrap_or(text.len())
    };
    match (text[i], next) {
        ('/', '/') => Some(find(i, &|j| text[j] == '\n')),
        ('/', '*') => Some(find(i + 2, &|j| text[j] == '*' && text.get(j + 1) == Some(&'/')) + 2),
        ('"' | '`', _) => Some(string_end(text, i)),
        _ => None,
    }
}

fn string_end(text: &[char], start: usize) -> usize {
    let quote = text[start];
    let mut j = start + 1;
    while j < text.len() && text[j] != quote {
        j += if text[j] == '\\' && quote == '"' {
            2
        } else {
            1
        };
    }
    (j + 1).min(text.len())
}

/// The top-level arguments of a call whose first argument starts at `i`.
fn arguments(text: &[char], mut i: usize) -> Vec<String> {
    let (mut out, mut current, mut depth) = (Vec::new(), String::new(), 0i32);
    while i < text.len() {
        if let Some(end) = skip(text, i) {
            if text[i] != '/' {
                current.extend(&text[i..end]);
            }
            i = end;
            continue;
        }
        match text[i] {
            ')' | ']' | '}' if depth == 0 => break,
            ',' if depth == 0 => out.push(std::mem::take(&mut current).trim().to_string()),
            c => {
                depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
                current.push(c);
            }
        }
        i += 1;
    }
    out.push(current.trim().to_string());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found_without_running_the_script() {
        let source = r#"
            // param("commented", 1)
            let t = param("temperatures", logspace(1e-6, 3e-5, 6), "where, and (how) \"hot\"");
            let s = "param(\"quoted\", 2)"; let x = my_param("no", 1);
            let b = param("both", true) && param("steps", 100_000, "steps");
        "#;
        let names: Vec<_> = declared(source)
            .into_iter()
            .map(|d| (d.name, d.default))
            .collect();
        let expected = [
            ("temperatures", "logspace(1e-6, 3e-5, 6)"),
            ("both", "true"),
            ("steps", "100_000"),
        ];
        assert_eq!(names, expected.map(|(a, b)| (a.to_string(), b.to_string())));
    }
}
