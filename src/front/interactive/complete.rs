//! Completion of an input: commands in lines that begin as such, scripts elsewhere.

use super::COMMANDS;
use super::commands::Command;
use crate::script::Interpreter;
use crate::script::explore::{Completeness, Completions, Match};

/// What could stand at `cursor`, in bytes.
pub fn complete(interpreter: &Interpreter, source: &str, cursor: usize) -> Completions {
    let begin = source[..cursor].rfind('\n').map_or(0, |at| at + 1);
    let line = &source[begin..];
    let Some(sign) = line.chars().next().filter(|c| ":%".contains(*c)) else {
        return interpreter.complete(source, cursor);
    };
    let end = cursor - begin;
    if let Some(at) = line[..end].find(char::is_whitespace) {
        // What follows is as in a script, and the command is none of it.
        let mut found = interpreter.complete(&line[at..], end - at);
        found.start += begin + at;
        found.end += begin + at;
        return found;
    }
    let written = line[..end].trim_start_matches(sign);
    Completions {
        start: cursor - written.len(),
        end: cursor,
        matches: COMMANDS
            .iter()
            .filter(|(name, ..)| name.starts_with(written))
            .map(|(name, takes, does)| Match {
                text: name.to_string(),
                kind: "command",
                detail: takes.to_string(),
                doc: does.to_string(),
            })
            .collect(),
    }
}

/// Whether an input can be taken as it is.
pub fn completeness(interpreter: &Interpreter, source: &str) -> Completeness {
    let mut rest = source.trim_start();
    if rest.starts_with("%%") {
        // The lines below it, up to an empty one.
        return match rest.rsplit_once('\n') {
            Some((_, last)) if last.trim().is_empty() => Completeness::Complete,
            _ => Completeness::Incomplete(0),
        };
    }
    loop {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        match Command::of(line.trim()) {
            None => return interpreter.completeness(rest.trim()),
            Some(Ok(Command::Time(script) | Command::TimeIt(script))) => {
                return interpreter.completeness(format!("{script}\n{below}").trim());
            }
            Some(_) => rest = below.trim_start(),
        }
    }
}
