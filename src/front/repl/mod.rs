//! `ergodic repl`: an interactive session.

mod commands;
mod editor;

use crate::error::Result;
use crate::script::Interpreter;
use crate::simulation::session::{self, Session};
use commands::{Command, Done};
use editor::Helper;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::rc::Rc;

/// A session, and what it has done.
struct Repl {
    interpreter: Rc<RefCell<Interpreter>>,
    /// What ran without an error, for `:save`.
    cells: Vec<String>,
    /// Figures shown.
    figures: usize,
    /// Width of the terminal.
    columns: usize,
    colours: bool,
}

/// Read scripts line by line, run them, print values; variables live on. Input goes on while it is not finished.
pub fn run(mut session: Session) -> Result<()> {
    let free = |k: &usize| !PathBuf::from(format!("runs/repl-{k}")).exists();
    let number = (1..).find(free).unwrap_or(1);
    session.out = PathBuf::from(format!("runs/repl-{number}"));
    session.quiet = false;
    println!(
        "ergodic {} — Tab completes, :help NAME explains, :help lists what there is; results go to {}",
        env!("CARGO_PKG_VERSION"),
        session.out.display()
    );
    let interpreter = Interpreter::new(session, BTreeMap::new());
    let interpreter = Rc::new(RefCell::new(interpreter));
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(true)
        .build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Helper::new(interpreter.clone(), colours)));
    let history = history_file();
    if let Some(file) = &history {
        // There is none at first.
        let _ = editor.load_history(file);
    }
    let mut repl = Repl {
        interpreter,
        cells: Vec::new(),
        figures: 0,
        columns: 80,
        colours,
    };
    let mut pending = String::new();
    loop {
        let prompt = if pending.is_empty() { "> " } else { "… " };
        match editor.readline(prompt) {
            Ok(line) => {
                pending.push_str(&line);
                pending.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(e.into()),
        }
        // Where the editor is no terminal it hands out single lines.
        if editor::is_unfinished(&repl.interpreter.borrow(), &pending) {
            continue;
        }
        let source = std::mem::take(&mut pending);
        repl.columns = editor
            .dimensions()
            .map_or(80, |(columns, _)| usize::from(columns));
        if repl.take(&source) == Done::Leave {
            break;
        }
    }
    if let Some(file) = &history {
        let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if written.is_err() || editor.save_history(file).is_err() {
            eprintln!(
                "warning: the history could not be kept in {}",
                file.display()
            );
        }
    }
    Ok(())
}

/// Where lines are kept from session to session.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || {
        std::env::var_os("HOME")
            .or(std::env::var_os("USERPROFILE"))
            .map(PathBuf::from)
    };
    let folder = state.or_else(|| Some(home()?.join(".local/state")))?;
    Some(folder.join("ergodic").join("history"))
}

impl Repl {
    /// Do what a finished input asks for.
    fn take(&mut self, source: &str) -> Done {
        let line = source.trim();
        if line.is_empty() {
            return Done::Stay;
        }
        match Command::of(line) {
            Some(Ok(command)) => self.command(command),
            Some(Err(message)) => {
                eprintln!("error: {message}");
                Done::Stay
            }
            None => {
                self.evaluate("<repl>", source);
                Done::Stay
            }
        }
    }

    /// Run a script and show its value.
    fn evaluate(&mut self, file: &str, source: &str) {
        session::clear_interrupt();
        let result = self.interpreter.borrow_mut().run(file, source);
        session::clear_interrupt();
        match result {
            Ok(value) => {
                self.cells.push(source.trim_end().to_string());
                let figure = self.interpreter.borrow().figure(&value);
                if let Some(figure) = figure {
                    self.show(&figure);
                } else if !value.is_unit() {
                    println!("{}", self.interpreter.borrow().show(&value));
                }
            }
            Err(failure) if failure.code == 130 => eprintln!("{failure}"),
            Err(failure) => eprintln!("error: {failure}"),
        }
    }

    /// A figure on the terminal, and as a file.
    fn show(&mut self, figure: &crate::plot::Figure) {
        println!("{}", figure.to_text(self.columns.min(100), self.colours));
        self.figures += 1;
        let name = format!("figure-{}.svg", self.figures);
        let path = self.interpreter.borrow().session().figure_path(&name);
        match figure.save(&path) {
            Ok(()) => println!("figure {}", path.display()),
            Err(e) => eprintln!("warning: {e:#}"),
        }
    }
}
