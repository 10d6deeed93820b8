//! `ergodic repl`: an interactive session.

use crate::error::Result;
use crate::front::docs;
use crate::script::Interpreter;
use crate::simulation::session::{self, Session};
use rustyline::error::ReadlineError;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Read lines, run them, print values; variables live on. Lines continue while brackets are open.
pub fn run(mut session: Session) -> Result<()> {
    let free = |k: &usize| !PathBuf::from(format!("runs/repl-{k}")).exists();
    let number = (1..).find(free).unwrap_or(1);
    session.out = PathBuf::from(format!("runs/repl-{number}"));
    session.quiet = false;
    println!(
        "ergodic {} — :docs NAME for help, :quit or Ctrl-D to leave; results go to {}",
        env!("CARGO_PKG_VERSION"),
        session.out.display()
    );
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let mut editor = rustyline::DefaultEditor::new()?;
    let mut pending = String::new();
    loop {
        match editor.readline(if pending.is_empty() { "> " } else { "… " }) {
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
        if open_brackets(&pending) > 0 {
            continue;
        }
        let source = std::mem::take(&mut pending);
        let line = source.trim();
        if line.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line);
        match line.split_once(char::is_whitespace).unwrap_or((line, "")) {
            (":quit" | ":q" | "exit" | "quit", "") => return Ok(()),
            (":docs" | ":help" | "help", name) => {
                let name = name.trim();
                println!(
                    "{}",
                    docs::lookup((!name.is_empty()).then_some(name))
                        .unwrap_or_else(|e| format!("{e:#}"))
                );
            }
            _ => {
                session::clear_interrupt();
                match interpreter.run("<repl>", &source) {
                    Ok(value) if value.is_unit() => {}
                    Ok(value) => println!("{}", interpreter.show(&value)),
                    Err(failure) => eprintln!("error: {failure}"),
                }
            }
        }
    }
}

/// Brackets that are still open, outside strings and comments.
fn open_brackets(source: &str) -> i32 {
    let (mut depth, mut string, mut previous) = (0, false, ' ');
    for line in source.lines() {
        for c in line.chars() {
            match c {
                '"' if previous != '\\' => string = !string,
                '/' if previous == '/' && !string => break,
                '(' | '[' | '{' if !string => depth += 1,
                ')' | ']' | '}' if !string => depth -= 1,
                _ => {}
            }
            previous = c;
        }
        previous = ' ';
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::open_brackets;

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        assert_eq!(open_brackets("f(#{ a: [1,\n"), 3);
        assert_eq!(open_brackets("print(\"(\") // (\n"), 0);
    }
}
