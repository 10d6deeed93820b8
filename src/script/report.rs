//! Errors of scripts, with file, line, column, the source line and what to do.

use super::reference::Item;
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

impl Failure {
    /// An error without a place.
    pub fn plain(message: String) -> Self {
        Self { message, code: 1 }
    }

    pub(super) fn parse(file: &str, source: &str, e: &ParseError) -> Self {
        Self {
            message: located(file, source, e.position(), &e.err_type().to_string()),
            code: 1,
        }
    }

    pub(super) fn runtime(file: &str, source: &str, e: &EvalAltResult) -> Self {
        let (mut cause, mut position) = (e, e.position());
        while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) = cause
        {
            cause = inner;
            if !cause.position().is_none() {
                position = cause.position();
            }
        }
        let mut code = 1;
        let text = match cause {
            EvalAltResult::ErrorRuntime(value, _) => match value.read_lock::<Native>() {
                Some(native) if native.0.is::<Interrupted>() => {
                    return Self {
                        message: native.to_string(),
                        code: 130,
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
            EvalAltResult::ErrorTerminated(..) => {
                return Self {
                    message: "interrupted".into(),
                    code: 130,
                };
            }
            EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call),
            EvalAltResult::ErrorVariableNotFound(name, _) => {
                format!("there is no variable '{name}'")
            }
            other => {
                let mut plain = other.to_string();
                if let Some(at) = plain.rfind(" (line ") {
                    plain.truncate(at);
                }
                plain
            }
        };
        Self {
            message: located(file, source, position, &text),
            code,
        }
    }
}

/// What is at the bottom of an error, in words.
pub(super) fn cause(e: &EvalAltResult) -> String {
    match e {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => cause(inner),
        EvalAltResult::ErrorRuntime(value, _) => value
            .read_lock::<Native>()
            .map_or_else(|| value.to_string(), |n| n.to_string()),
        EvalAltResult::ErrorFunctionNotFound(call, _) => not_found(call),
        other => other.to_string(),
    }
}

/// A call that fits no bound function: what there is under that name, or the nearest name.
fn not_found(call: &str) -> String {
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    let name = name.trim();
    let short = name.replace(" ", "");
    let items = super::all_items();
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
