//! An interactive session, whatever shows it: inputs one after the other, commands about the session itself, and what was interrupted.
//! The REPL and the Jupyter kernel are two faces of it.

mod commands;
mod complete;
mod timing;

pub use commands::COMMANDS;
pub use complete::{complete, completeness};

use crate::object::Shown;
use crate::script::explore::Completeness;
use crate::script::explore::Variable;
use crate::script::{Failure, Interpreter, Value, Variables};
use crate::simulation::session::{Names, Session};
use crate::table::Table;
use commands::Command;
use std::cell::{Ref, RefCell};
use std::rc::Rc;

/// An interactive session.
pub struct Interactive {
    interpreter: Rc<RefCell<Interpreter>>,
    /// What ran without an error, for `:save`.
    inputs: Vec<String>,
    /// What can go on.
    interrupted: Option<Cut>,
}

/// An input that was interrupted, and how things were before it.
#[derive(Clone)]
struct Cut {
    file: String,
    source: String,
    /// Names of runs that were taken before it, and when it was interrupted.
    names: [Names; 2],
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
        let mut session = settings.numbered(name);
        session.interactive = Some(goes_on);
        let interpreter = Interpreter::new(session, Default::default());
        Self {
            interpreter: Rc::new(RefCell::new(interpreter)),
            inputs: Vec::new(),
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
        let first = input.trim_start().lines().next().unwrap_or_default();
        if let Some(name) = first.trim_end().strip_prefix("%%") {
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
        let (names, variables) = {
            let i = self.interpreter.borrow();
            (i.session().names(), i.variables_now())
        };
        let result = self.interpreter.borrow_mut().run(file, source);
        match &result {
            Ok(_) => self.inputs.push(source.trim().to_string()),
            Err(failure) if failure.code == 130 => {
                let now = self.interpreter.borrow().session().names();
                self.interrupted = Some(Cut {
                    file: file.into(),
                    source: source.into(),
                    names: [names, now],
                    variables,
                });
            }
            Err(_) => {}
        }
        result
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

    /// Let the input that was interrupted last go on: its runs where they were, everything else of it once more. What has happened
    /// since stays: its variables, unless the input has one of that name, and its runs, whose names are not taken again.
    fn go_on(&mut self) -> Result<Value, Failure> {
        let Some(cut) = self.interrupted.clone() else {
            return Err(Failure::plain("nothing was interrupted".into()));
        };
        let (now, variables) = {
            let i = self.interpreter.borrow();
            (i.session().names(), i.variables_now())
        };
        let [mut names, then] = cut.names;
        let since = now.iter().filter(|(name, _)| !then.contains_key(*name));
        names.extend(since.map(|(name, count)| (name.clone(), *count)));
        self.with_session(|s| {
            s.resume = true;
            s.set_names(names);
        });
        self.interpreter
            .borrow_mut()
            .set_variables(cut.variables.and(&variables));
        let result = self.evaluate(&cut.file, &cut.source);
        self.with_session(|s| {
            s.resume = false;
            let mut names = now;
            for (name, count) in s.names() {
                let known = names.entry(name).or_insert(0);
                *known = count.max(*known);
            }
            s.set_names(names);
        });
        match &result {
            Ok(_) => self.interrupted = None,
            Err(failure) if failure.code == 130 => {}
            Err(_) => self.interpreter.borrow_mut().set_variables(variables),
        }
        result
    }

    /// Change the session's settings.
    fn with_session(&mut self, change: impl FnOnce(&mut Session)) {
        let mut session = self.interpreter.borrow().session().clone();
        change(&mut session);
        self.interpreter.borrow_mut().set_session(session);
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
