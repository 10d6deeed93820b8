//! What a script that is imported says of itself: its heading, its functions, and their options, read from its text.
//!
//! The options of a function are the defaults in its call `options(given, #{ name: default, // meaning … })`: they stand in one place.

use super::explore::tokens::{Kind, Token, tokens};
use super::item::Item;
use crate::options::{Default, Kind as Of, Range, Spec};

/// The heading of a script: its lines `//!`.
pub(super) fn heading(text: &str) -> String {
    let lines = text.lines().map_while(|l| l.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join("\n")
}

/// A function of a script.
struct Function<'a> {
    name: &'a str,
    parameters: Vec<&'a str>,
    /// Its lines `///`.
    doc: String,
    body: Vec<Token<'a>>,
}

/// What a script offers, as functions of a namespace; `returns` is what they give, if that is known.
pub(super) fn items(namespace: &str, text: &str, returns: &str) -> Vec<Item> {
    let short = namespace.rsplit(['/', '\\']).next().unwrap_or(namespace);
    let functions = functions(text);
    let documented = |f: &Function| !f.doc.is_empty();
    let told = |name: &str| functions.iter().any(|f| documented(f) && f.name == name);
    // The same function with fewer arguments goes without saying.
    let listed = functions.iter().filter(|f| documented(f) || !told(f.name));
    let item = |f: &Function| {
        let shown = |p: &&str| match *p {
            "given" => "#{ options }".to_string(),
            p => p.to_string(),
        };
        let parameters: Vec<_> = f.parameters.iter().map(shown).collect();
        let arrow = if returns.is_empty() { "" } else { " -> " };
        let (doc, example) = parts(&f.doc);
        Item {
            namespace: short.into(),
            object: String::new(),
            name: f.name.into(),
            signature: format!(
                "{short}::{}({}){arrow}{returns}",
                f.name,
                parameters.join(", ")
            ),
            doc,
            // A reference is made once for a text, and options are known by reference everywhere.
            options: Box::leak(options(text, &f.body).into_boxed_slice()),
            example,
        }
    };
    listed.map(item).collect()
}

/// The name of the function that a line, counted from 1, belongs to.
pub(super) fn function_at(text: &str, line: usize) -> Option<String> {
    let before = |t: &&Token| text[..t.start].matches('\n').count() < line;
    let all = tokens(text);
    let all: Vec<_> = all.iter().take_while(before).collect();
    let name = |pair: &[&Token]| (pair[0].text == "fn").then(|| pair[1].text.to_string());
    all.windows(2).rev().find_map(name)
}

/// The doc without its example, and the example.
fn parts(doc: &str) -> (String, String) {
    let Some((before, rest)) = doc.split_once("```rhai\n") else {
        return (doc.trim().into(), String::new());
    };
    let (example, after) = rest.split_once("```").unwrap_or((rest, ""));
    let doc = format!("{}\n\n{}", before.trim(), after.trim());
    (doc.trim().into(), example.trim().into())
}

/// The functions that other scripts can call.
fn functions(text: &str) -> Vec<Function<'_>> {
    let all = tokens(text);
    let mut out = Vec::new();
    for (i, t) in all.iter().enumerate() {
        let private = i.checked_sub(1).is_some_and(|j| all[j].text == "private");
        let [name, bracket, rest @ ..] = &all[i + 1..] else {
            break;
        };
        if t.kind != Kind::Name || t.text != "fn" || private || !bracket.is("(") {
            continue;
        }
        let close = rest.iter().position(|t| t.is(")")).unwrap_or(rest.len());
        let parameters = rest[..close].iter().filter(|t| t.kind == Kind::Name);
        let comments = all[..i].iter().rev();
        let mut doc: Vec<_> = comments
            .map_while(|t| {
                t.text
                    .strip_prefix("///")
                    .filter(|_| matches!(t.kind, Kind::Comment(_)))
            })
            .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end())
            .collect();
        doc.reverse();
        out.push(Function {
            name: name.text,
            parameters: parameters.map(|t| t.text).collect(),
            doc: doc.join("\n"),
            body: block(&rest[close..]),
        });
    }
    out
}

/// The tokens of the first block in braces.
fn block<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut depth, mut out) = (0, Vec::new());
    for t in tokens.iter().skip_while(|t| !t.is("{")) {
        depth += i32::from(t.is("{") || t.is("#{")) - i32::from(t.is("}"));
        out.push(*t);
        if depth == 0 {
            break;
        }
    }
    out
}

/// The options that a function checks: the map in `options(given, #{ name: default, // meaning`, and the one of ranges behind it.
fn options(text: &str, body: &[Token]) -> Vec<Spec> {
    let begins =
        |w: &[Token]| w[0].text == "options" && w[1].is("(") && w[3].is(",") && w[4].is("#{");
    let Some(at) = body.windows(5).position(begins) else {
        return Vec::new();
    };
    let (mut depth, mut out) = (0, Vec::new());
    // The option whose default is being read, and where that begins.
    let mut open: Option<(&str, usize)> = None;
    let mut docs: Vec<(String, String, String)> = Vec::new();
    let inside = &body[at + 4..];
    let mut ended = inside.len();
    for (i, t) in inside.iter().enumerate() {
        let comment = matches!(t.kind, Kind::Comment(_));
        let ends = depth == 1 && (t.is(",") || t.is("}") || comment);
        if ends && let Some((name, from)) = open.take() {
            let default = text[from..t.start].trim().to_string();
            docs.push((name.into(), default, String::new()));
        }
        if comment && let Some((_, _, doc)) = docs.last_mut() {
            let line = t.text.trim_start_matches('/').trim();
            *doc = format!("{doc} {line}").trim().to_string();
        }
        if t.kind == Kind::Mark {
            depth += i32::from(matches!(t.text, "(" | "[" | "{" | "#{"));
            depth -= i32::from(matches!(t.text, ")" | "]" | "}"));
        }
        let colon = inside.get(i + 1).filter(|n| n.is(":"));
        if depth == 1
            && t.kind == Kind::Name
            && open.is_none()
            && let Some(colon) = colon
        {
            open = Some((t.text, colon.end()));
        }
        if depth == 0 {
            ended = i + 1;
            break;
        }
    }
    let ranges = ranges(&inside[ended..]);
    let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    for (name, default, doc) in docs {
        let name = keep(name);
        out.push(Spec {
            name,
            kind: match ranges.iter().find(|(n, _)| *n == name) {
                Some((_, range)) => Of::Anything(keep(format!("{}{range}", kind_before(&default)))),
                None => kind(&default),
            },
            default: match default.as_str() {
                "()" => Default::Absent("none"),
                _ => Default::Is(keep(default)),
            },
            doc: keep(doc),
        });
    }
    out
}

/// The ranges in `, #{ name: "x > 0", other: ["one", "two"] })`, in words.
fn ranges<'a>(rest: &[Token<'a>]) -> Vec<(&'a str, String)> {
    let mut out: Vec<(&str, String)> = Vec::new();
    if !matches!(rest, [comma, map, ..] if comma.is(",") && map.is("#{")) {
        return out;
    }
    for (i, t) in rest.iter().enumerate().take_while(|(_, t)| !t.is("}")) {
        match (t.kind, out.last_mut()) {
            (Kind::Name, _) if rest.get(i + 1).is_some_and(|n| n.is(":")) => {
                out.push((t.text, String::new()))
            }
            (Kind::Text(_), Some((_, words))) => {
                let range = Range::parse(t.text.trim_matches('"'));
                let word = range.map_or_else(|| t.text.to_string(), |r| r.describe());
                *words = if words.is_empty() {
                    word
                } else {
                    format!("{words} · {word}")
                };
            }
            _ => {}
        }
    }
    out
}

/// What stands before the range of an option with such a default.
fn kind_before(default: &str) -> &'static str {
    match kind(default) {
        Of::Anything("integer") => "integer, ",
        Of::Anything("array") => "array of numbers, ",
        Of::Text => "",
        _ => "number, ",
    }
}

/// The kind of a default.
fn kind(default: &str) -> Of {
    let first = tokens(default).first().copied();
    match (default, first.map(|t| t.kind)) {
        ("true" | "false", _) => Of::Bool,
        (_, Some(Kind::Text(_))) => Of::Text,
        (_, Some(Kind::Number)) if default.contains(['.', 'e']) => Of::Anything("number"),
        (_, Some(Kind::Number)) => Of::Anything("integer"),
        _ if default.starts_with('[') => Of::Anything("array"),
        _ => Of::Anything("anything that fits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! A heading.\n//! More.\n\n/// Find it.\n///\n/// At length.\n/// ```rhai\n/// find(1)\n/// ```\nfn find(target, given) {\n    let o = options(given, #{\n        \
                        low: 1e-3,   // Lowest, in J\n                     // or K.\n        list: [1, 2], // Some, of them.\n        start: (), // Where.\n    }, #{ low: \"x > 0\", list: \"0 < x <= 1\" });\n    o\n}\n\nfn find(target) { find(target, #{}) }\nprivate fn hidden() { 1 }\nfn bare(x) { x }\n";

    #[test]
    fn functions_tell_their_options() {
        let found = items("folder/mine", TEXT, "map");
        let names: Vec<_> = found.iter().map(|i| i.signature.as_str()).collect();
        assert_eq!(
            names,
            [
                "mine::find(target, #{ options }) -> map",
                "mine::bare(x) -> map"
            ]
        );
        let find = &found[0];
        assert_eq!(
            (find.doc.as_str(), find.example.as_str()),
            ("Find it.\n\nAt length.", "find(1)")
        );
        let told: Vec<_> = find.options.iter().map(|o| (o.name, o.doc)).collect();
        assert_eq!(
            told,
            [
                ("low", "Lowest, in J or K."),
                ("list", "Some, of them."),
                ("start", "Where.")
            ]
        );
        assert!(matches!(find.options[0].default, Default::Is("1e-3")));
        assert!(matches!(find.options[1].default, Default::Is("[1, 2]")));
        assert!(matches!(find.options[2].default, Default::Absent(_)));
        let kinds: Vec<_> = find.options.iter().map(|o| o.kind.describe()).collect();
        assert_eq!(
            kinds,
            [
                "number, > 0",
                "array of numbers, 0 < x ≤ 1",
                "anything that fits"
            ]
        );
        assert_eq!(heading(TEXT), "A heading.\nMore.");
        assert_eq!(function_at(TEXT, 12).as_deref(), Some("find"));
        assert_eq!(function_at(TEXT, 1), None);
    }
}
