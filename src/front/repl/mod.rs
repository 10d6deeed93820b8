//! `ergodic repl`: an interactive session on a terminal.

mod editor;

use super::interactive::{Answer, Interactive};
use crate::error::Result;
use crate::output;
use crate::plot::Figure;
use crate::script::{Failure, Value};
use crate::simulation::session::{self, Session};
use editor::Helper;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::IsTerminal;
use std::path::PathBuf;

/// A session, and how it is shown.
struct Repl {
    session: Interactive,
    /// Figures shown.
    figures: usize,
    /// Width of the terminal.
    columns: usize,
    colours: bool,
}

/// Read scripts line by line, run them, print values; variables live on. Input goes on while it is not finished.
pub fn run(session: Session) -> Result<()> {
    let session = Interactive::new(session, "repl", ":continue");
    output::line(format_args!(
        "ergodic {} — Tab completes, :help NAME explains, :help lists what there is; results go to {}",
        env!("CARGO_PKG_VERSION"),
        session.interpreter().session().out.display()
    ));
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(true)
        .build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config)?;
    // Without a terminal the editor would drop what is not finished when the input ends.
    if std::io::stdin().is_terminal() {
        editor.set_helper(Some(Helper::new(session.shared(), colours)));
    }
    let history = history_file("history");
    if let Some(file) = &history {
        // There is none at first.
        let _ = editor.load_history(file);
    }
    let mut repl = Repl {
        session,
        figures: 0,
        columns: 80,
        colours,
    };
    let (mut pending, mut over) = (String::new(), false);
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
            // What is not finished yet says so.
            Err(ReadlineError::Eof) if !pending.is_empty() => over = true,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(e.into()),
        }
        // Where the editor is no terminal it hands out single lines.
        let input = pending.strip_suffix('\n').unwrap_or(&pending);
        if !over && editor::is_unfinished(&repl.session.interpreter(), input) {
            continue;
        }
        let source = std::mem::take(&mut pending);
        repl.columns = editor
            .dimensions()
            .map_or(80, |(columns, _)| usize::from(columns));
        if !repl.take(&source) || over {
            break;
        }
    }
    if let Some(file) = &history {
        let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if written.is_err() || editor.save_history(file).is_err() {
            output::remark(format_args!(
                "warning: the history could not be kept in {}",
                file.display()
            ));
        }
    }
    Ok(())
}

/// Where inputs are kept from session to session.
pub(super) fn history_file(name: &str) -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || {
        std::env::var_os("HOME")
            .or(std::env::var_os("USERPROFILE"))
            .map(PathBuf::from)
    };
    let folder = state.or_else(|| Some(home()?.join(".local/state")))?;
    Some(folder.join("ergodic").join(name))
}

impl Repl {
    /// Do what a finished input asks for. Whether the session goes on.
    fn take(&mut self, source: &str) -> bool {
        session::clear_interrupt();
        let answer = self.session.take("<repl>", source);
        session::clear_interrupt();
        match answer {
            Ok(Answer::Leave) => return false,
            Ok(Answer::Value(value)) => self.value(&value),
            Ok(answer) => {
                if let Some(shown) = self.session.shown(answer) {
                    output::line(shown.text.trim_end());
                }
            }
            Err(failure) => self.failure(&failure),
        }
        true
    }

    fn failure(&self, failure: &Failure) {
        let word = match (failure.code, self.colours) {
            (130, _) => "",
            (_, true) => "\x1b[31merror:\x1b[0m ",
            (_, false) => "error: ",
        };
        output::remark(format_args!("{word}{failure}"));
    }

    fn value(&mut self, value: &Value) {
        let figure = self.session.interpreter().figure(value);
        if let Some(figure) = figure {
            self.figure(&figure);
        } else if !value.is_unit() {
            output::line(self.session.interpreter().shown(value).text);
        }
    }

    /// A figure on the terminal, and as a file.
    fn figure(&mut self, figure: &Figure) {
        output::line(figure.to_text(self.columns.min(100), self.colours));
        self.figures += 1;
        let name = format!("figure-{}.svg", self.figures);
        let path = self
            .session
            .interpreter()
            .session()
            .figure_path("figure", &name);
        match path.and_then(|path| figure.save(&path).map(|()| path)) {
            Ok(path) => output::line(format_args!("figure {}", path.display())),
            Err(e) => output::remark(format_args!("warning: {e:#}")),
        }
    }
}
