//! Errors of scripts, with file, line, column, the source line and what to do.

use super::habits;
use super::item::Item;
use super::words::{self, a_kind};
use crate::error::{EveryChainFailed, Interrupted};
use rhai::{Dynamic, EvalAltResult, ParseError, ParseErrorType, Position};
use std::fmt;
use std::sync::Arc;

/// An error of the program inside an error of the script.
#[derive(Clone)]
pub(super) struct Native(pub Arc<anyhow::Error>);

impl fmt::Display for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// An error that says itself where in a script it is.
#[derive(Debug, Clone)]
pub(super) struct Placed(String);

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Placed {}

/// The script that a closure stands in, kept for messages.
pub(super) struct Home {
    file: String,
    text: String,
}

impl Home {
    pub fn new((file, text): (String, String)) -> Self {
        Self { file, text }
    }

    /// A message under a place in it.
    pub fn placed(&self, at: Position, message: &str) -> Placed {
        Placed(located(&self.file, &self.text, at, message))
    }

    /// Why a closure gave no value, under the place in it: it failed, or did not end although it was interrupted.
    pub fn failed(&self, what: &str, e: &EvalAltResult, context: &super::Context) -> anyhow::Error {
        if is_interrupt(e.unwrap_inner()) {
            let what = format!("{what} did not end");
            return Interrupted { what }.into();
        }
        let text = |file: &str| match file == self.file {
            true => Some(self.text.clone()),
            false => context.library.text(file),
        };
        let around = Around {
            file: &self.file,
            text: &text,
            original: &|file, position| context.library.original(file, position),
            items: &super::all_items(),
            own: &|_| true,
            home: &|_| None,
        };
        let why = Failure::runtime(&around, e).message;
        Placed(format!("{what} failed: {why}")).into()
    }
}

/// What Rhai's names of closures begin with.
const CLOSURE: &str = "anon$";

/// Ends a script that somebody wants to end; all else that ends one is its own message.
pub(super) const INTERRUPTED: &str = "interrupted";

/// Ends a script that has filled the memory.
pub(super) const OUT_OF_MEMORY: &str =
    "hardly any memory is left: the values that the script holds fill it; keep fewer of them";

/// Ends a script that computes by itself for longer than it may.
pub(super) const TOO_MANY_STEPS: &str = "the script has made more steps than --max-steps allows (with --untrusted 10⁹); those of samplers do not count";

/// Ends a script that is not trusted and prints without end.
pub(super) const TOO_MUCH_PRINTED: &str = "this script is not trusted, and has printed 16 MiB";

/// Why a script ended early.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The message as it is printed.
    pub message: String,
    /// Exit code: 1 error, 3 every chain failed, 130 interrupted.
    pub code: u8,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// What an error is explained with.
pub(super) struct Around<'a> {
    /// The script.
    pub file: &'a str,
    /// The text of a file.
    pub text: &'a dyn Fn(&str) -> Option<String>,
    /// Where a position of a file is in its text.
    pub original: &'a dyn Fn(&str, Position) -> Position,
    /// What can be called.
    pub items: &'a [Item],
    /// Whether the script itself has a function of that name.
    pub own: &'a dyn Fn(&str) -> bool,
    /// The file of a session's function, which may be that of an earlier input.
    pub home: &'a dyn Fn(&str) -> Option<String>,
}

impl Failure {
    /// An error without a place.
    pub fn plain(message: String) -> Self {
        let message = crate::error::message(&message);
        Self { message, code: 1 }
    }

    pub(super) fn parse(file: &str, source: &str, e: &ParseError) -> Self {
        let (position, text) = Self::syntax(source, e);
        Self::plain(located(file, source, position, &text))
    }

    /// Where a script that cannot be compiled has to be mended, and what is wrong there.
    pub(super) fn syntax(source: &str, e: &ParseError) -> (Position, String) {
        let position = e.position();
        let habit = || habits::find(source, position, false, &|_| false);
        // Noticed at the next statement, which is not where it has to be mended.
        let end = || match e.err_type() {
            ParseErrorType::MissingToken(token, _) if token == ";" => {
                habits::missing_end(source, position)
            }
            _ => None,
        };
        habit()
            .or_else(|| Some((end()?, "a ; is missing at the end of this statement".into())))
            .unwrap_or_else(|| (position, e.err_type().to_string()))
    }

    pub(super) fn runtime(around: &Around, e: &EvalAltResult) -> Self {
        let (cause, mut places) = trail(around, e);
        if let Some(text) = habit(around, cause, &mut places) {
            return Self {
                message: placed(around, &places, &text),
                code: 1,
            };
        }
        if let Some(complete) = Self::complete(cause) {
            return complete;
        }
        let message = words::plain(&explained(around, cause, &places));
        Self {
            code: code(cause),
            ..Self::plain(placed(around, &places, &message))
        }
    }

    /// An error whose message needs no place: of an interrupt, or one that says its place itself.
    fn complete(cause: &EvalAltResult) -> Option<Self> {
        let EvalAltResult::ErrorRuntime(value, _) = cause else {
            return None;
        };
        let native = value.read_lock::<Native>()?;
        if native.0.is::<Interrupted>() {
            let message = native.to_string();
            return Some(Self { message, code: 130 });
        }
        // It was called by the program, from where the script called that.
        let is_placed = native.0.chain().any(|e| e.is::<Placed>());
        is_placed.then(|| Self {
            message: words::plain(&native.to_string()),
            code: 1,
        })
    }
}

/// What is at the bottom of an error, and where each call stands, from the script inwards, and at last where it went wrong.
fn trail<'e>(
    around: &Around,
    e: &'e EvalAltResult,
) -> (&'e EvalAltResult, Vec<(String, Position)>) {
    let file = around.file;
    let (mut cause, mut within) = (e, file.to_string());
    let mut places = vec![(within.clone(), e.position())];
    while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
    | EvalAltResult::ErrorInModule(_, inner, _) = cause
    {
        if let EvalAltResult::ErrorInFunctionCall(name, source, _, _) = cause
            && !source.is_empty()
        {
            // A closure is said to be where it is called, not where it stands; its name is nobody else's.
            let closure = name.starts_with(CLOSURE) && (around.own)(name);
            let own = closure || source == file;
            within = match (around.home)(name).filter(|_| own) {
                Some(home) => home,
                None if closure => file.to_string(),
                None => source.to_string(),
            };
        }
        cause = inner;
        places.push((within.clone(), cause.position()));
    }
    places.retain(|(_, position)| !position.is_none());
    for (file, position) in &mut places {
        *position = (around.original)(file, *position);
    }
    (cause, places)
}

/// The exit code of an error.
fn code(cause: &EvalAltResult) -> u8 {
    match cause {
        EvalAltResult::ErrorRuntime(value, _) => match value.read_lock::<Native>() {
            Some(native) if native.0.is::<EveryChainFailed>() => 3,
            _ => 1,
        },
        _ if is_interrupt(cause) => 130,
        _ => 1,
    }
}

/// Whether it ended because somebody wanted it to end.
fn is_interrupt(cause: &EvalAltResult) -> bool {
    matches!(cause, EvalAltResult::ErrorTerminated(why, _) if why.to_string() == INTERRUPTED)
}

/// What went wrong, and what to do.
fn explained(around: &Around, cause: &EvalAltResult, places: &[(String, Position)]) -> String {
    match cause {
        EvalAltResult::ErrorRuntime(value, _) => runtime_text(value),
        _ if is_interrupt(cause) => {
            "interrupted: the script was stopped here; runs that ended before are kept".into()
        }
        EvalAltResult::ErrorTerminated(why, _) => why.to_string(),
        EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call, around.items),
        EvalAltResult::ErrorVariableNotFound(name, _) => {
            format!(
                "there is no variable '{name}'{}",
                new_variable(around, name, places)
            )
        }
        EvalAltResult::ErrorMismatchDataType(wanted, held, _) if wanted == "Fn" => {
            no_function(held)
        }
        EvalAltResult::ErrorDataRace(..) => {
            "a closure uses the value whose method has called it; let it have a copy, made before: let copy = …;".into()
        }
        EvalAltResult::ErrorModuleNotFound(name, _) => no_namespace(name, around.items),
        other => {
            let mut plain = other.to_string();
            if let Some(at) = plain.rfind(" (line ") {
                plain.truncate(at);
            }
            plain_types(&plain)
        }
    }
}

/// What the program or `throw` has said.
fn runtime_text(value: &Dynamic) -> String {
    let native = value.read_lock::<Native>();
    native.map_or_else(|| value.to_string(), |n| n.to_string())
}

/// Calls that are shown of those that led to an error: the nearest.
const CALLS: usize = 3;

/// A message under its place, and under it the calls that led there, unless they are in the same line.
fn placed(around: &Around, places: &[(String, Position)], message: &str) -> String {
    let Some((last, position)) = places.last() else {
        return format!("{}: {message}", around.file);
    };
    let of = |file: &str| (around.text)(file).unwrap_or_default();
    let mut out = located(last, &of(last), *position, message);
    let line = |(file, position): &(String, Position)| (file.clone(), position.line());
    let mut calls: Vec<_> = places.iter().rev().collect();
    calls.dedup_by_key(|place| line(place));
    for (file, position) in calls.iter().skip(1).take(CALLS) {
        out += &located(file, &of(file), *position, "\ncalled from here");
    }
    match calls.len().saturating_sub(CALLS + 1) {
        0 => {}
        more => out += &format!("\n… and {more} more calls"),
    }
    out
}

/// What is at the bottom of an error, in words.
pub(super) fn cause(e: &EvalAltResult) -> String {
    match e {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => cause(inner),
        EvalAltResult::ErrorRuntime(value, _) => runtime_text(value),
        EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call, &super::all_items()),
        other => other.to_string(),
    }
}

/// What a hand that is used to Python meant, if that is why there is no such name; its place becomes the last one.
fn habit(
    around: &Around,
    cause: &EvalAltResult,
    places: &mut [(String, Position)],
) -> Option<String> {
    match cause {
        EvalAltResult::ErrorVariableNotFound(..)
        | EvalAltResult::ErrorFunctionNotFound(..)
        | EvalAltResult::ErrorDotExpr(..)
        | EvalAltResult::ErrorModuleNotFound(..) => {}
        EvalAltResult::ErrorMismatchDataType(_, held, _) if held.contains("range::") => {}
        _ => return None,
    }
    let (file, position) = places.last_mut()?;
    let is_space = |name: &str| around.items.iter().any(|i| i.namespace == name);
    let found = habits::find(&(around.text)(file)?, *position, true, &is_space);
    let (place, text) = found?;
    *position = place;
    Some(text)
}

/// What to say where a variable is not there because it was never declared.
fn new_variable(around: &Around, name: &str, places: &[(String, Position)]) -> String {
    let given = places.last().is_some_and(|(file, position)| {
        (around.text)(file).is_some_and(|text| habits::is_assigned(&text, *position))
    });
    let elsewhere = places.last().is_some_and(|(file, _)| {
        (around.text)(file).is_some_and(|text| habits::declares(&text, name))
    });
    match given {
        true => format!("; a new one is let {name} = …"),
        false if elsewhere => format!(
            " within this function; write const {name} = … where it is declared, or pass it as an argument"
        ),
        false => String::new(),
    }
}

/// That a value of this type was called.
fn no_function(held: &str) -> String {
    format!(
        "only a function can be called, and this is {}",
        a_kind(held)
    )
}

/// Rhai's names of types within a text as plain words.
fn plain_types(text: &str) -> String {
    // Rhai's three ways to take a text.
    let text = text.replace("&str | ImmutableString | String", "string");
    let words = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
    let plain = |word: &str| {
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let rest = &word[name.len()..];
        let plain = match name {
            "i64" => "integer",
            "f64" => "number",
            "ImmutableString" => "string",
            "FnPtr" => "closure",
            name => name,
        };
        format!("{plain}{rest}")
    };
    words.map(plain).collect()
}

/// A call that fits no bound function: what there is under that name, or the nearest name.
fn not_found(call: &str, items: &[Item]) -> String {
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    let name = name.trim();
    let short = name.replace(" ", "");
    let same: Vec<_> = items
        .iter()
        .filter(|i| i.path() == short || i.name == short)
        .collect();
    if !same.is_empty() {
        let given = plain_types(arguments.trim_end_matches(')'));
        let forms: Vec<_> = same.iter().map(|i| format!("  {}", i.signature)).collect();
        return format!(
            "'{short}' does not take ({given}); it is called as\n{}",
            forms.join("\n")
        );
    }
    let given = plain_types(arguments.trim_end_matches(')'));
    if !short.contains(|c: char| c.is_alphanumeric() || c == '_') {
        let power = match short.as_str() {
            "^" => "; the power is **",
            _ => "",
        };
        return match given.split_once(", ") {
            Some((a, b)) => format!(
                "'{short}' cannot be used between {} and {}{power}",
                a_kind(a),
                a_kind(b)
            ),
            None => format!("'{short}' cannot be used on {}", a_kind(&given)),
        };
    }
    if short == "call" {
        return no_function(given.split(", ").next().unwrap_or_default());
    }
    // Methods are called by their bare name.
    let bare = |i: &&Item| i.namespace.is_empty();
    let paths: Vec<String> = items
        .iter()
        .map(Item::path)
        .chain(items.iter().filter(bare).map(|i| i.name.clone()))
        .collect();
    let near = crate::error::nearest(&short, paths.iter().map(String::as_str));
    match near {
        Some(n) => format!("there is no function '{short}'; did you mean '{n}'?"),
        None => match short.split_once("::") {
            Some((space, _)) if items.iter().any(|i| i.namespace == space) => {
                let known: Vec<_> = items
                    .iter()
                    .filter(|i| i.namespace == space)
                    .map(|i| i.name.as_str())
                    .collect();
                format!(
                    "there is no function '{short}'; '{space}' has {}",
                    known.join(", ")
                )
            }
            _ => format!("there is no function '{short}'; `ergodic docs` lists all"),
        },
    }
}

/// A namespace that is not there: a recipe that was not imported, or the nearest name.
fn no_namespace(name: &str, items: &[Item]) -> String {
    if super::recipes::source(name).is_some() {
        return format!(
            "there is no namespace '{name}' here; it is a recipe: write `import \"{name}\" as {name};` first"
        );
    }
    let mut known: Vec<_> = items.iter().map(|i| i.namespace.as_str()).collect();
    known.retain(|n| !n.is_empty());
    known.sort_unstable();
    known.dedup();
    let hint = crate::error::did_you_mean(name, known);
    format!("there is no namespace '{name}'{hint}")
}

/// The message under its place in the source.
pub(super) fn located(file: &str, source: &str, position: Position, text: &str) -> String {
    let (Some(line), column) = (position.line(), position.position().unwrap_or(1)) else {
        return format!("{file}: {text}");
    };
    let shown = source.lines().nth(line - 1).unwrap_or("");
    let cut: String = shown.chars().take(200).collect();
    let margin = " ".repeat(line.to_string().len());
    let caret = " ".repeat(column.saturating_sub(1).min(200));
    format!(
        "{text}\n{margin}--> {file}:{line}:{column}\n{margin} |\n{line} | {cut}\n{margin} | {caret}^"
    )
}
