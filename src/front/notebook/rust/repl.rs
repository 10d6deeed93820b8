//! `ergodic repl --rust`: Rust on the terminal, with the prelude loaded.

use super::engine::Engine;
use super::folder::Prepared;
use super::streams::Event;
use super::value::{self, Written};
use crate::error::Result;
use crate::output;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor};
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::sync::Arc;

/// Who is to be asked to stop by Ctrl-C.
pub(crate) type OnInterrupt<'a> = &'a dyn Fn(Arc<dyn Fn() + Send + Sync>);

/// Read Rust line by line and run it. `on_interrupt` is told what Ctrl-C is to call.
pub fn run(on_interrupt: OnInterrupt) -> Result<()> {
    let engine = Rc::new(Engine::start(Prepared::find()?)?);
    on_interrupt(engine.interrupter());
    output::line(format_args!(
        "ergodic {}, Rust — the prelude is loaded, variables live on, :help lists evcxr's commands, Ctrl-D leaves.\n\
         Ctrl-C stops a running simulation and keeps the variables; pressed again it ends the process, and they are lost.",
        env!("CARGO_PKG_VERSION")
    ));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(true)
        .build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Helper {
        engine: engine.clone(),
    }));
    let mut pending = String::new();
    loop {
        match editor.readline(if pending.is_empty() { ">> " } else { ".. " }) {
            Ok(line) => {
                pending.push_str(&line);
                pending.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        if value::state(&pending) == Written::InPart {
            continue;
        }
        let code = std::mem::take(&mut pending);
        if [":quit", ":q"].contains(&code.trim()) {
            return Ok(());
        }
        if !code.trim().is_empty() {
            evaluate(&engine, &code);
        }
    }
}

fn evaluate(engine: &Engine, code: &str) {
    let terminal = std::io::stderr().is_terminal();
    let sink = move |event: Event| match event {
        Event::Printed("stdout", text) => {
            output::print(&text);
            let _ = std::io::stdout().flush();
        }
        Event::Printed(_, text) => output::remark_part(&text),
        Event::Shown(shown) => output::line(shown.text.trim_end()),
        Event::Clear(_) => {}
        // One line that changes.
        Event::Progress(_, line, over) if terminal => {
            output::remark_part(format_args!(
                "\r\x1b[2K{}{}",
                line.text,
                if over { "\n" } else { "" }
            ));
        }
        Event::Progress(_, line, true) => output::remark(&line.text),
        Event::Progress(..) => {}
    };
    match engine.execute(code, Box::new(sink)) {
        Ok(None) => {}
        Ok(Some(shown)) => output::line(&shown.text),
        Err(trouble) if terminal => output::remark(trouble.coloured.join("\n")),
        Err(trouble) => output::remark(trouble.lines.join("\n")),
    }
}

struct Helper {
    engine: Rc<Engine>,
}

impl rustyline::Helper for Helper {}
impl rustyline::hint::Hinter for Helper {
    type Hint = String;
}
impl rustyline::highlight::Highlighter for Helper {}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> std::result::Result<(usize, Vec<Pair>), ReadlineError> {
        let Some((start, _, found)) = self.engine.complete(line, cursor) else {
            return Ok((cursor, Vec::new()));
        };
        let typed = line.get(start..cursor).unwrap_or_default();
        let pairs = found
            .into_iter()
            .filter(|(text, ..)| text.starts_with(typed));
        let pairs = pairs.map(|(text, _, label)| Pair {
            display: label,
            replacement: text,
        });
        Ok((start, pairs.collect()))
    }
}

impl Validator for Helper {
    fn validate(
        &self,
        context: &mut ValidationContext,
    ) -> std::result::Result<ValidationResult, ReadlineError> {
        Ok(match value::state(context.input()) {
            Written::InPart => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(None),
        })
    }
}
