//! An interactive session, whatever shows it: inputs one after the other, commands about the session itself, and what was interrupted.
//! The REPL and the Jupyter kernel are two faces of it.

mod commands;
mod complete;
mod resume;
mod timing;

pub use commands::COMMANDS;
pub use complete::{complete, completeness};

use crate::object::Shown;
use crate::script::explore::Completeness;
use crate::script::explore::Variable;
use crate::script::{Failure, Interpreter, Value, Variables};
use crate::simulation::session::Session;
use crate::simulation::transcript::Cell;
use crate::store::claim::holds_something;
use crate::table::Table;
use commands::Command;
use std::cell::{Ref, RefCell};
use std::rc::Rc;

/// An interactive session.
pub struct Interactive {
    interpreter: Rc<RefCell<Interpreter>>,
    /// What ran without an error, for `:save`.
    inputs: Vec<String>,
    /// Commands of the input that is taken, for the transcript.
    commands: Vec<String>,
    /// What can go on.
    interrupted: Option<Cut>,
}

/// An input that was interrupted, and how things were before it.
#[derive(Clone)]
struct Cut {
    cell: Cell,
    variables: Variables,
}

/// What an input gives.
pub enum Answer {
    /// Nothing to show.
    Nothing,
    /// A value.
    Value(Value),
    /// Lines of text.
    Text(String),
    /// An explanation: as text for a terminal, and as Markdown if there is any.
    Help {
        /// For a terminal.
        text: String,
        /// With headings and code.
        markdown: Option<String>,
        /// Beside the notebook, in its pager, instead of below the cell.
        aside: bool,
    },
    /// The variables.
    Variables(Vec<Variable>),
    /// The session is to end.
    Leave,
}

impl Interactive {
    /// A session whose runs go into a new folder `runs/NAME-K`.
    pub fn new(settings: Session, name: &str, goes_on: &'static str) -> Self {
        let mut session = settings.numbered(name).recording();
        session.interactive = Some(goes_on);
        let interpreter = Interpreter::new(session, Default::default());
        Self {
            interpreter: Rc::new(RefCell::new(interpreter)),
            inputs: Vec::new(),
            commands: Vec::new(),
            interrupted: None,
        }
    }

    /// The interpreter, to ask it for names and values.
    pub fn interpreter(&self) -> Ref<'_, Interpreter> {
        self.interpreter.borrow()
    }

    /// The same interpreter, for a line editor that asks while it is edited.
    pub fn shared(&self) -> Rc<RefCell<Interpreter>> {
        self.interpreter.clone()
    }

    /// Do what an input asks for: commands in its first lines, then the script below them. `file` is what errors call it.
    ///
    /// # Errors
    /// Those of the script, and those of commands; what was interrupted has code 130.
    pub fn take(&mut self, file: &str, input: &str) -> Result<Answer, Failure> {
        self.commands.clear();
        let answer = self.take_lines(file, input);
        if !self.commands.is_empty() {
            // Nothing ran with them.
            let cell = self.cell(file, "");
            let session = self.interpreter().session().clone();
            session.transcript().begin(cell);
            session
                .transcript()
                .end(answer.as_ref().err().map(|f| &*f.message));
            self.save_transcript();
        }
        answer
    }

    fn take_lines(&mut self, file: &str, input: &str) -> Result<Answer, Failure> {
        let first = input.trim_start().lines().next().unwrap_or_default();
        if let Some(name) = first.trim_end().strip_prefix("%%") {
            self.commands.push(first.trim_end().into());
            let body = input.trim_start().split_once('\n').map_or("", |(_, b)| b);
            return self.whole(file, name, body);
        }
        let mut answer = Answer::Nothing;
        // Lines of commands stay as empty lines, so that errors name the right ones.
        let mut script = String::new();
        let mut lines = input.lines();
        while let Some(line) = lines.next() {
            if line.trim().is_empty() {
                script.push('\n');
                continue;
            }
            self.tell(std::mem::replace(&mut answer, Answer::Nothing));
            let Some(command) = Command::of(line.trim()) else {
                script.push_str(line);
                script.push('\n');
                break;
            };
            let mut command = command.map_err(Failure::plain)?;
            self.commands.push(line.trim().into());
            if let Command::Time(timed) | Command::TimeIt(timed) = &mut command {
                // It may go over lines.
                *timed = format!("{script}{timed}\n");
                while let Completeness::Incomplete(_) = self.interpreter().completeness(timed) {
                    let Some(line) = lines.next() else { break };
                    timed.push_str(line);
                    timed.push('\n');
                    script.push('\n');
                }
            }
            answer = self.command(file, command)?;
            if matches!(answer, Answer::Leave) {
                return Ok(answer);
            }
            script.push('\n');
        }
        lines.for_each(|line| {
            script.push_str(line);
            script.push('\n');
        });
        if script.trim().is_empty() {
            return Ok(answer);
        }
        let result = self.evaluate(file, &script).map(Answer::Value);
        result.map_err(|failure| self.no_shell(script.trim()).unwrap_or(failure))
    }

    /// What to say of an input that failed because it is a command of a shell: `!ls`.
    fn no_shell(&self, script: &str) -> Option<Failure> {
        let line = script.lines().next()?.trim_end();
        let word = line.strip_prefix('!')?;
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = &word[..end.unwrap_or(word.len())];
        // What is known here may be denied.
        let known = word.is_empty() || self.interpreter().knows(word);
        (!known).then(|| {
            Failure::plain(format!(
                "a cell is a script and there is no shell behind it, so `{line}` was not run; use a terminal, or %%file, %load and %save for files"
            ))
        })
    }

    /// Show an answer that others follow.
    fn tell(&self, answer: Answer) {
        if let Some(shown) = self.shown(answer) {
            self.interpreter().session().console.show(&shown);
        }
    }

    /// What is shown of an answer, if there is anything.
    pub fn shown(&self, answer: Answer) -> Option<Shown> {
        match answer {
            Answer::Nothing | Answer::Leave => None,
            Answer::Value(value) if value.is_unit() => None,
            Answer::Value(value) => Some(self.interpreter().shown(&value)),
            Answer::Text(text) => Some(Shown::text(text)),
            Answer::Help { text, markdown, .. } => Some(Shown {
                text,
                markdown,
                ..Shown::default()
            }),
            Answer::Variables(variables) => Some(listed(&variables)),
        }
    }

    /// Run a script; its variables stay.
    fn evaluate(&mut self, file: &str, source: &str) -> Result<Value, Failure> {
        let cell = self.cell(file, source);
        self.execute(cell)
    }

    /// A cell that begins now, with the commands before it.
    fn cell(&mut self, file: &str, source: &str) -> Cell {
        let interpreter = self.interpreter.borrow();
        Cell {
            settings: interpreter.settings(),
            commands: std::mem::take(&mut self.commands),
            ..interpreter.session().cell(file, source)
        }
    }

    /// Run a cell, and record it.
    fn execute(&mut self, cell: Cell) -> Result<Value, Failure> {
        self.recorded(cell).0
    }

    /// The same; with the cell as it was recorded.
    fn recorded(&mut self, cell: Cell) -> (Result<Value, Failure>, Cell) {
        let (session, variables) = {
            let i = self.interpreter.borrow();
            (i.session().clone(), i.variables_now())
        };
        session.transcript().begin(cell.clone());
        let (file, source) = (&cell.file, &cell.source);
        let result = self.interpreter.borrow_mut().run(file, source);
        let error = result.as_ref().err().map(|f| &*f.message);
        let mut cell = session.transcript().end(error);
        self.save_transcript();
        match &result {
            Ok(_) => self.inputs.push(source.trim().to_string()),
            Err(failure) if failure.code == 130 => {
                cell.runs.extend(session.take_planned());
                let cell = cell.clone();
                self.interrupted = Some(Cut { cell, variables });
            }
            Err(_) => {}
        }
        (result, cell)
    }

    /// Write the transcript, if the session has something in its folder.
    fn save_transcript(&self) {
        let session = self.interpreter().session().clone();
        let saved = match holds_something(&session.home()) {
            true => session.transcript().save(),
            false => Ok(()),
        };
        if let Err(e) = saved {
            let text = format!("warning: the cells could not be recorded: {e:#}");
            session.console.remark(&text);
        }
    }

    /// The value of a script that is no input: nothing of it is kept.
    ///
    /// # Errors
    /// Those of the script.
    pub fn evaluate_apart(&mut self, source: &str) -> Result<Value, Failure> {
        self.apart("<expression>", source)
    }

    fn apart(&mut self, file: &str, source: &str) -> Result<Value, Failure> {
        let mut interpreter = self.interpreter.borrow_mut();
        let variables = interpreter.variables_now();
        let result = interpreter.run(file, source);
        interpreter.set_variables(variables);
        result
    }
}

impl Drop for Interactive {
    /// Nothing is left of a session that has written nothing.
    fn drop(&mut self) {
        self.interpreter.borrow().session().release();
    }
}

/// Variables as a table.
fn listed(variables: &[Variable]) -> Shown {
    if variables.is_empty() {
        return Shown::text("no variables yet; `let t = target(potential::gaussian());` makes one");
    }
    let mut table = Table::new(["name", "type", "value"]);
    for v in variables {
        table.push([&v.name, &v.kind, &v.value].map(String::as_str));
    }
    Shown {
        text: table.to_string(),
        html: Some(table.to_html()),
        ..Shown::default()
    }
}
