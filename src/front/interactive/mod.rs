//! An interactive session, whatever shows it: inputs one after the other, commands about the session itself, and what was interrupted.
//! The REPL and the Jupyter kernel are two faces of it.

mod commands;
mod complete;

pub use commands::COMMANDS;
pub use complete::{complete, completeness};

use crate::error::listed as listed_runs;
use crate::object::Shown;
use crate::script::explore::Completeness;
use crate::script::explore::Variable;
use crate::script::explore::names::Names;
use crate::script::{Failure, Interpreter, Value, Variables};
use crate::simulation::session::Session;
use crate::simulation::transcript::{self, Cell};
use crate::store::claim::holds_something;
use crate::table::Table;
use anyhow::Context;
use commands::Command;
use std::cell::{Ref, RefCell};
use std::path::Path;
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
            if let Command::Time(timed) = &mut command {
                // It may go over lines.
                *timed = format!("{script}{timed}\n");
                while self.interpreter().completeness(timed) != Completeness::Complete {
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
        self.evaluate(file, &script).map(Answer::Value)
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
            Answer::Help { text, markdown } => Some(Shown {
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
            ..Cell::new(file, source, interpreter.session())
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
        let mut interpreter = self.interpreter.borrow_mut();
        let variables = interpreter.variables_now();
        let result = interpreter.run("<expression>", source);
        interpreter.set_variables(variables);
        result
    }

    /// Let the input that was interrupted last go on: its runs where they were, everything else of it once more. What has happened
    /// since stays: its variables, unless the input has one of that name, and its runs, whose names are not taken again.
    fn go_on(&mut self) -> Result<Value, Failure> {
        let Some(Cut { cell, variables }) = self.interrupted.clone() else {
            return Err(Failure::plain(
                "nothing was interrupted in this session; with the folder of a run, as %continue runs/notebook-1/sample-1, one of an earlier \
                 session goes on (`ergodic ls` lists them)"
                    .into(),
            ));
        };
        self.replay(cell, Some(variables))
    }

    /// Let the run in a folder go on, by the cell of this session or of an earlier one that made it.
    fn go_on_with(&mut self, run: &Path) -> Result<Value, Failure> {
        let cell = self.cell_of(run);
        let cell = cell.map_err(|e| Failure::plain(format!("continue: {e:#}")))?;
        self.replay(cell, None)
    }

    /// The recorded cell that made a run.
    fn cell_of(&self, run: &Path) -> anyhow::Result<Cell> {
        let shown = run.display();
        let whole = run.canonicalize();
        let whole = whole.with_context(|| format!("{shown}: there is no such folder"))?;
        let (Some(home), Some(name)) = (whole.parent(), whole.file_name()) else {
            anyhow::bail!("{shown}: this is not the folder of a run");
        };
        let home = match run.parent().filter(|_| run.ends_with(name)) {
            Some(written) if !written.as_os_str().is_empty() => written,
            _ => home,
        };
        let cells = transcript::read(home).or_else(|e| match transcript::read(run) {
            Ok(cells) => {
                let runs: Vec<_> = cells.iter().flat_map(|c| &c.runs).collect();
                let runs = runs.iter().map(|r| run.join(r).display().to_string());
                let runs: Vec<_> = runs.collect();
                anyhow::bail!(
                    "{shown}: this is the folder of a session; name one of its runs: {}",
                    listed_runs(&runs)
                )
            }
            Err(_) => Err(e),
        })?;
        let made = |c: &Cell| c.within.is_none() && c.runs.iter().any(|r| name == r.as_str());
        let at = cells.iter().rposition(made);
        let at = at.with_context(|| {
            let file = home.join(transcript::FILE);
            format!(
                "{}: no cell in this file made the run {shown}",
                file.display()
            )
        })?;
        let interpreter = self.interpreter();
        let missing = missing(&cells, at, &|name| interpreter.knows(name));
        anyhow::ensure!(
            missing.is_empty(),
            "{} of {} made {shown}, and needs what earlier cells make; execute these first, then continue: {}",
            label(&cells, at),
            home.join(transcript::FILE).display(),
            missing.join(", ")
        );
        let mut cell = cells[at].clone();
        let own = interpreter.session().home().canonicalize();
        let same = own.is_ok_and(|own| whole.parent() == Some(&own));
        cell.within = (!same).then(|| home.into());
        Ok(cell)
    }

    /// Run a cell once more, with its runs under their names and where they were; the `variables` are those before it.
    fn replay(&mut self, old: Cell, variables: Option<Variables>) -> Result<Value, Failure> {
        let (session, settings, now) = {
            let i = self.interpreter.borrow();
            (i.session().clone(), i.settings(), i.variables_now())
        };
        let mut then = session.replaying(&old);
        let then = then
            .as_mut()
            .map_err(|e| Failure::plain(format!("{e:#}")))?;
        then.resume = true;
        let cell = Cell {
            within: old.within.clone(),
            ..self.cell(&old.file, &old.source)
        };
        {
            let mut i = self.interpreter.borrow_mut();
            i.set_parameters(old.settings.clone());
            i.set_session(then.clone());
            if let Some(variables) = variables {
                i.set_variables(variables.and(&now));
            }
        }
        let cell = Cell {
            seed: old.seed,
            quick: old.quick,
            device: old.device.clone(),
            settings: old.settings.clone(),
            ..cell
        };
        let (result, cell) = self.recorded(cell);
        let mut i = self.interpreter.borrow_mut();
        i.set_parameters(settings);
        i.set_session(session);
        match &result {
            Ok(_) => self.interrupted = None,
            Err(failure) if failure.code == 130 => {}
            Err(_) => i.set_variables(now),
        }
        drop(i);
        if let (Ok(_), true, Some(other)) = (&result, old.failed, &old.within) {
            // A cell that is a comment there reproduces nothing.
            let added = transcript::append(other, cell);
            added.map_err(|e| Failure::plain(format!("{e:#}")))?;
        }
        result
    }
}

/// What messages call a cell: its number in the notebook, or in the transcript.
fn label(cells: &[Cell], at: usize) -> String {
    let file = &cells[at].file;
    match file.starts_with("In [") {
        true => file.clone(),
        false => format!("cell [{}]", at + 1),
    }
}

/// The cells before one that make what it needs and what is not known, in order.
fn missing(cells: &[Cell], at: usize, known: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut needed = Names::of(&cells[at].source).needed;
    needed.retain(|name| !known(name));
    let mut out = Vec::new();
    for k in (0..at).rev().filter(|k| !cells[*k].failed) {
        let names = Names::of(&cells[k].source);
        let makes: Vec<_> = names.made.intersection(&needed).cloned().collect();
        if makes.is_empty() {
            continue;
        }
        needed.retain(|name| !makes.contains(name));
        needed.extend(names.needed.into_iter().filter(|name| !known(name)));
        out.push(format!("{} ({})", label(cells, k), makes.join(", ")));
    }
    out.reverse();
    out
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
