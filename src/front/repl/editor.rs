//! The line: completion, hints, colours, and whether it is finished; all of it from what the interpreter knows.

use crate::front::interactive;
use crate::script::Interpreter;
use crate::script::explore::tokens::{KEYWORDS, Kind, tokens};
use crate::script::explore::{Completeness, Completions, Match};
use rustyline::Context;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// What the editor asks.
pub(super) struct Helper {
    interpreter: Rc<RefCell<Interpreter>>,
    colours: bool,
}

impl Helper {
    pub fn new(interpreter: Rc<RefCell<Interpreter>>, colours: bool) -> Self {
        Self {
            interpreter,
            colours,
        }
    }

    fn complete_at(&self, line: &str, cursor: usize) -> Completions {
        interactive::complete(&self.interpreter.borrow(), line, cursor)
    }
}

impl rustyline::Helper for Helper {}

/// Whether more has to be typed.
pub(super) fn is_unfinished(interpreter: &Interpreter, source: &str) -> bool {
    !source.trim().is_empty()
        && matches!(
            interactive::completeness(interpreter, source),
            Completeness::Incomplete(_)
        )
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<Pair>), ReadlineError> {
        let found = self.complete_at(line, cursor);
        let widest = found
            .matches
            .iter()
            .map(|m| m.text.chars().count())
            .max()
            .unwrap_or(0);
        let several = found.matches.len() > 1;
        let pair = |m: Match| {
            let about = if m.detail.is_empty() { m.doc } else { m.detail };
            let about: String = about.chars().take(60).collect();
            Pair {
                display: match several {
                    true => format!("{:<widest$}  {about}", m.text)
                        .trim_end()
                        .to_string(),
                    false => m.text.clone(),
                },
                replacement: match m.kind {
                    // What has to follow anyway.
                    "option" => format!("{}: ", m.text),
                    _ => m.text,
                },
            }
        };
        Ok((found.start, found.matches.into_iter().map(pair).collect()))
    }
}

impl Hinter for Helper {
    type Hint = String;

    /// The rest of the word if there is only one, and what is to be given to a call that has just begun.
    fn hint(&self, line: &str, cursor: usize, _: &Context<'_>) -> Option<String> {
        if cursor < line.len() || line.is_empty() {
            return None;
        }
        let found = self.complete_at(line, cursor);
        let written = line.get(found.start..cursor)?;
        match &found.matches[..] {
            [one] if !written.is_empty() => {
                let rest = one.text.strip_prefix(written)?;
                (!rest.is_empty()).then(|| rest.to_string())
            }
            _ => None,
        }
    }
}

impl Validator for Helper {
    fn validate(&self, context: &mut ValidationContext) -> Result<ValidationResult, ReadlineError> {
        Ok(
            match is_unfinished(&self.interpreter.borrow(), context.input()) {
                true => ValidationResult::Incomplete,
                false => ValidationResult::Valid(None),
            },
        )
    }
}

impl Highlighter for Helper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.colours && !line.starts_with(':') {
            true => Cow::Owned(coloured(line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.colours {
            true => Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")),
            false => Cow::Borrowed(hint),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.colours
    }
}

/// A script in colours.
fn coloured(source: &str) -> String {
    let all = tokens(source);
    let (mut out, mut done) = (String::new(), 0);
    for (i, t) in all.iter().enumerate() {
        let next = all.get(i + 1);
        let colour = match t.kind {
            Kind::Name if KEYWORDS.contains(&t.text) => "35",
            Kind::Name if next.is_some_and(|n| n.is("::")) => "36",
            Kind::Name if next.is_some_and(|n| n.is("(")) => "34",
            Kind::Number => "33",
            Kind::Text(_) => "32",
            Kind::Comment(_) => "2",
            Kind::Name | Kind::Mark => "",
        };
        out += &source[done..t.start];
        match colour {
            "" => out += t.text,
            colour => out += &format!("\x1b[{colour}m{}\x1b[0m", t.text),
        }
        done = t.end();
    }
    out + &source[done..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_but_colours() {
        let source = "let a = sampler::hmc(#{ dt: 1e-3 }); // \"x\"\n`a ${1}` + 'c'";
        let mut plain = coloured(source);
        while let Some(from) = plain.find('\x1b') {
            let to = plain[from..].find('m').unwrap();
            plain.replace_range(from..=from + to, "");
        }
        assert_eq!(plain, source);
    }
}
