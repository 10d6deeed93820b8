//! What is asked of a session itself, with a colon.

use super::Repl;
use crate::error::did_you_mean;
use crate::front::{docs, run};
use crate::store;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Whether the session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Stay,
    Leave,
}

/// A command and what it needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Explain a name, or list everything.
    Help(Option<String>),
    /// List the variables.
    Who,
    /// Run a file.
    Load(PathBuf),
    /// Write what ran without an error.
    Save(PathBuf),
    /// Run a script and say how long it took.
    Time(String),
    /// Leave.
    Quit,
}

/// Names of the commands, what they take and what they do.
pub(super) const COMMANDS: &[(&str, &str, &str)] = &[
    (
        ":help",
        "[NAME]",
        "explain a function, a namespace, an option or a page; without a name: list everything",
    ),
    (":who", "", "list the variables, their types and values"),
    (":load", "FILE", "run a script here; its variables stay"),
    (
        ":save",
        "FILE",
        "write everything that ran without an error into a script",
    ),
    (":time", "SCRIPT", "run it and say how long it took"),
    (":quit", "", "leave, as Ctrl-D does"),
];

impl Command {
    /// The command of a line; none if it is a script.
    pub fn of(line: &str) -> Option<Result<Self, String>> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let file = |make: fn(PathBuf) -> Self| match rest {
            "" => Err(format!(
                "{name} needs the name of a file: {name} session.rhai"
            )),
            name => Ok(make(PathBuf::from(name))),
        };
        Some(match name {
            ":help" | ":docs" | ":h" => {
                Ok(Self::Help((!rest.is_empty()).then(|| rest.to_string())))
            }
            "help" | "quit" | "exit" if rest.is_empty() => Ok(match name {
                "help" => Self::Help(None),
                _ => Self::Quit,
            }),
            ":who" => Ok(Self::Who),
            ":load" => file(Self::Load),
            ":save" => file(Self::Save),
            ":time" if rest.is_empty() => {
                Err(":time needs a script: :time sample(t, s, #{ steps: 1000 })".into())
            }
            ":time" => Ok(Self::Time(rest.to_string())),
            ":quit" | ":q" => Ok(Self::Quit),
            _ if name.starts_with(':') => {
                let names = COMMANDS.iter().map(|(name, ..)| *name);
                Err(format!(
                    "there is no command {name}{}; :help lists them",
                    did_you_mean(name, names)
                ))
            }
            _ => return None,
        })
    }
}

impl Repl {
    pub(super) fn command(&mut self, command: Command) -> Done {
        match command {
            Command::Help(None) => {
                println!("{}\n{}", commands(), docs::lookup(None).unwrap_or_default())
            }
            Command::Help(Some(name)) => match docs::lookup(Some(&name)) {
                Ok(text) => println!("{text}"),
                Err(e) => self.help_on_variable(&name, &format!("{e:#}")),
            },
            Command::Who => self.who(),
            Command::Load(file) => match run::read(&file) {
                Ok(source) => self.evaluate(&file.display().to_string(), &source),
                Err(e) => eprintln!("error: {e:#}"),
            },
            Command::Save(file) => self.save(&file),
            Command::Time(source) => {
                let begin = Instant::now();
                self.evaluate("<repl>", &source);
                println!("{:.3} s", begin.elapsed().as_secs_f64());
            }
            Command::Quit => return Done::Leave,
        }
        Done::Stay
    }

    /// A variable, or what was imported under a name of one's own.
    fn help_on_variable(&self, name: &str, otherwise: &str) {
        let interpreter = self.interpreter.borrow();
        let variables = interpreter.variables();
        match variables.iter().find(|v| v.name == name) {
            Some(v) => println!("{}: a variable of type {}, {}", v.name, v.kind, v.value),
            None => match interpreter.inspect(name, name.len()) {
                Some(text) => println!("{text}"),
                None => eprintln!("error: {otherwise}"),
            },
        }
    }

    fn who(&self) {
        let variables = self.interpreter.borrow().variables();
        if variables.is_empty() {
            println!("no variables yet; `let t = target(potential::gaussian());` makes one");
        }
        let widest = |text: fn(&crate::script::explore::Variable) -> &str| {
            variables
                .iter()
                .map(|v| text(v).chars().count())
                .max()
                .unwrap_or(0)
        };
        let (names, kinds) = (widest(|v| &v.name), widest(|v| &v.kind));
        for v in &variables {
            println!("{:<names$}  {:<kinds$}  {}", v.name, v.kind, v.value);
        }
    }

    fn save(&self, file: &Path) {
        if file.exists() {
            eprintln!(
                "error: {}: this file exists; choose another name",
                file.display()
            );
            return;
        }
        let mut text = self.cells.join("\n");
        text.push('\n');
        match store::write_atomic(file, text.as_bytes()) {
            Ok(()) => println!(
                "{} inputs in {}; `ergodic run {0}` runs them",
                self.cells.len(),
                file.display()
            ),
            Err(e) => eprintln!("error: {e:#}"),
        }
    }
}

fn commands() -> String {
    let line = |(name, takes, does): &(&str, &str, &str)| {
        format!("  {:<14} {does}", format!("{name} {takes}"))
    };
    let lines: Vec<_> = COMMANDS.iter().map(line).collect();
    format!(
        "Commands\n{}\n  Tab completes, ↑ and Ctrl-R search the history, Ctrl-C stops a run and saves it.\n",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_a_colon_and_scripts_have_none() {
        assert_eq!(
            Command::of(":help sampler::hmc"),
            Some(Ok(Command::Help(Some("sampler::hmc".into()))))
        );
        assert_eq!(Command::of("help"), Some(Ok(Command::Help(None))));
        assert_eq!(Command::of("help(1)"), None);
        assert_eq!(Command::of("let quit = 1"), None);
        assert_eq!(
            Command::of(":load a b.rhai"),
            Some(Ok(Command::Load("a b.rhai".into())))
        );
        assert!(
            Command::of(":load")
                .unwrap()
                .unwrap_err()
                .contains("needs the name")
        );
        assert!(
            Command::of(":hlep")
                .unwrap()
                .unwrap_err()
                .contains("':help'")
        );
    }
}
