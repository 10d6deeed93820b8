//! Errors of scripts, with file, line, column, the source line and what to do.

use super::reference::Item;
use super::words;
use crate::error::{EveryChainFailed, Interrupted};
use rhai::{EvalAltResult, ParseError, Position};
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

    /// Why a closure failed, under the place in it.
    pub fn failed(&self, what: &str, e: &EvalAltResult, context: &super::Context) -> Placed {
        let text = |file: &str| match file == self.file {
            true => Some(self.text.clone()),
            false => context.library.text(file),
        };
        let around = Around {
            file: &self.file,
            text: &text,
            items: &super::all_items(),
            own: &|_| true,
        };
        Placed(format!("{what}{}", Failure::runtime(&around, e).message))
    }
}

/// What Rhai's names of closures begin with.
const CLOSURE: &str = "anon$";

/// Ends a script that has filled the memory.
pub(super) const OUT_OF_MEMORY: &str =
    "hardly any memory is left: what the script holds has filled it; keep less of it";

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
    /// What can be called.
    pub items: &'a [Item],
    /// Whether the script itself has a function of that name.
    pub own: &'a dyn Fn(&str) -> bool,
}

impl Failure {
    /// An error without a place.
    pub fn plain(message: String) -> Self {
        let message = crate::error::message(&message);
        Self { message, code: 1 }
    }

    pub(super) fn parse(file: &str, source: &str, e: &ParseError) -> Self {
        Self {
            ..Self::plain(located(
                file,
                source,
                e.position(),
                &e.err_type().to_string(),
            ))
        }
    }

    pub(super) fn runtime(around: &Around, e: &EvalAltResult) -> Self {
        let (file, items) = (around.file, around.items);
        // Where each call stands, from the script inwards, and at last where it went wrong.
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
                within = if closure { file } else { source }.to_string();
            }
            cause = inner;
            places.push((within.clone(), cause.position()));
        }
        places.retain(|(_, position)| !position.is_none());
        let mut code = 1;
        let message = match cause {
            EvalAltResult::ErrorRuntime(value, _) => match value.read_lock::<Native>() {
                Some(native) if native.0.is::<Interrupted>() => {
                    return Self {
                        message: native.to_string(),
                        code: 130,
                    };
                }
                // It was called by the program, from where the script called that.
                Some(native) if native.0.chain().any(|e| e.is::<Placed>()) => {
                    return Self {
                        message: words::plain(&native.to_string()),
                        code: 1,
                    };
                }
                Some(native) => {
                    code = if native.0.is::<EveryChainFailed>() {
                        3
                    } else {
                        1
                    };
                    native.to_string()
                }
                None => value.to_string(),
            },
            EvalAltResult::ErrorTerminated(why, _) if why.to_string() == OUT_OF_MEMORY => {
                OUT_OF_MEMORY.into()
            }
            EvalAltResult::ErrorTerminated(..) => {
                return Self {
                    message: "interrupted".into(),
                    code: 130,
                };
            }
            EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call, items),
            EvalAltResult::ErrorVariableNotFound(name, _) => {
                format!("there is no variable '{name}'")
            }
            EvalAltResult::ErrorModuleNotFound(name, _) => no_namespace(name, items),
            other => {
                let mut plain = other.to_string();
                if let Some(at) = plain.rfind(" (line ") {
                    plain.truncate(at);
                }
                plain
            }
        };
        Self {
            code,
            ..Self::plain(placed(around, &places, &words::plain(&message)))
        }
    }
}

/// A message under its place, and under the places in other files that led there.
fn placed(around: &Around, places: &[(String, Position)], message: &str) -> String {
    let Some((last, position)) = places.last() else {
        return format!("{}: {message}", around.file);
    };
    let of = |file: &str| (around.text)(file).unwrap_or_default();
    let mut out = located(last, &of(last), *position, message);
    let mut shown = last;
    for (file, position) in places.iter().rev() {
        if file != shown {
            out += &located(file, &of(file), *position, "\ncalled from here");
            shown = file;
        }
    }
    out
}

/// What is at the bottom of an error, in words.
pub(super) fn cause(e: &EvalAltResult) -> String {
    match e {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => cause(inner),
        EvalAltResult::ErrorRuntime(value, _) => value
            .read_lock::<Native>()
            .map_or_else(|| value.to_string(), |n| n.to_string()),
        EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call, &super::all_items()),
        other => other.to_string(),
    }
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
        let plain = |t: &str| match t.trim() {
            "i64" => "integer".to_string(),
            "f64" => "number".to_string(),
            t => t.to_string(),
        };
        let given = arguments
            .trim_end_matches(')')
            .split(',')
            .map(plain)
            .collect::<Vec<_>>()
            .join(", ");
        let forms: Vec<_> = same.iter().map(|i| format!("  {}", i.signature)).collect();
        return format!(
            "'{short}' does not take ({given}); it is called as\n{}",
            forms.join("\n")
        );
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
    if super::library::source(name).is_some() {
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
fn located(file: &str, source: &str, position: Position, text: &str) -> String {
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
