//! What is asked of a session itself: `:who` or `%who`, whichever one is used to.

use super::{Answer, Interactive};
use crate::error::{Result, did_you_mean};
use crate::front::{docs, run};
use crate::script::Failure;
use crate::script::explore::tokens::{Kind, tokens};
use crate::store;
use std::path::PathBuf;

/// What taking a command gives.
pub(super) type Outcome = std::result::Result<Answer, Failure>;

/// A command and what it needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Explain a name, or list everything.
    Help(Option<String>),
    /// Explain a name beside the notebook.
    Ask(String),
    /// List the variables.
    Who,
    /// Give parameters values, or change settings; list them if there are none.
    Set(Vec<String>),
    /// Run a file.
    Load(PathBuf),
    /// Write what ran without an error.
    Save(PathBuf),
    /// Run a script and say how long it took.
    Time(String),
    /// Run a script many times and say how long it takes.
    TimeIt(String),
    /// Go on with what was interrupted, or with the run in a folder.
    Continue(Option<PathBuf>),
    /// Forget all variables.
    Reset,
    /// Leave.
    Quit,
}

/// Names of the commands, what they take and what they do.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "help",
        "[NAME]",
        "explain a function, a namespace, an option or a page; without a name: list everything",
    ),
    ("who", "", "list the variables, their types and values"),
    (
        "set",
        "[NAME=VALUE]…",
        "give parameters values, as --set does; --seed N, --threads N, --device D, --quick, --full, --quiet and --progress change settings",
    ),
    ("load", "FILE", "run a script here; its variables stay"),
    (
        "save",
        "FILE",
        "write everything that ran without an error into a script",
    ),
    ("time", "SCRIPT", "run it and say how long it took"),
    (
        "timeit",
        "SCRIPT",
        "run it many times and say how long it takes on average; its variables are not kept",
    ),
    (
        "continue",
        "[FOLDER]",
        "go on with what was interrupted, bit for bit; with the folder of a run, as runs/notebook-1/sample-1: with that run of an earlier session",
    ),
    ("reset", "", "forget all variables"),
    ("quit", "", "leave, as Ctrl-D does"),
];

impl Command {
    /// The command of a line; none if it is a script.
    pub fn of(line: &str) -> Option<std::result::Result<Self, String>> {
        if let Some(name) = asked(line) {
            return Some(Ok(match name {
                "" => Self::Help(None),
                name => Self::Ask(name.into()),
            }));
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let Some(name) = word.strip_prefix([':', '%']) else {
            return match word {
                "help" if rest.is_empty() => Some(Ok(Self::Help(None))),
                "quit" | "exit" if rest.is_empty() => Some(Ok(Self::Quit)),
                _ => None,
            };
        };
        let file = |make: fn(PathBuf) -> Self| match rest {
            "" => Err(format!(
                "{word} needs the name of a file: {word} session.rhai"
            )),
            name => Ok(make(PathBuf::from(name))),
        };
        Some(match name {
            "help" | "docs" | "h" => Ok(Self::Help((!rest.is_empty()).then(|| rest.to_string()))),
            "who" => Ok(Self::Who),
            "set" => Ok(Self::Set(words(rest))),
            "load" => file(Self::Load),
            "save" => file(Self::Save),
            "time" | "timeit" if rest.is_empty() => Err(format!(
                "{word} needs a script: {word} sample(t, s, #{{ steps: 1000 }})"
            )),
            "time" => Ok(Self::Time(rest.to_string())),
            "timeit" => Ok(Self::TimeIt(rest.to_string())),
            "continue" | "c" => Ok(Self::Continue(words(rest).first().map(PathBuf::from))),
            "reset" => Ok(Self::Reset),
            "quit" | "q" => Ok(Self::Quit),
            _ => {
                let names = COMMANDS.iter().map(|(name, ..)| *name);
                Err(format!(
                    "there is no command {word}{} ({}help lists them)",
                    did_you_mean(name, names),
                    &word[..1]
                ))
            }
        })
    }
}

/// What a line asks about, as IPython's `name?` and `?name` do.
fn asked(line: &str) -> Option<&str> {
    let name = line.trim_matches('?');
    let path = |c: char| c.is_alphanumeric() || "_:.".contains(c);
    // What is chosen by `x ?` belongs to no script.
    (name.len() < line.len() && name.trim().chars().all(path)).then(|| name.trim())
}

impl Interactive {
    pub(super) fn command(&mut self, file: &str, command: Command) -> Outcome {
        match command {
            Command::Help(None) => {
                // The commands last, where the eye is after so many lines.
                let text = format!("{}\n{}", docs::lookup(None).unwrap_or_default(), commands());
                Ok(Answer::Help {
                    text,
                    markdown: None,
                    aside: false,
                })
            }
            Command::Help(Some(name)) => self.help(&name, false).map_err(fail),
            Command::Ask(name) => self.help(&name, true).map_err(fail),
            Command::Who => Ok(Answer::Variables(self.interpreter().variables())),
            Command::Set(changes) => self.set(&changes).map(Answer::Text).map_err(fail),
            Command::Load(path) => {
                let source = run::read(&path).map_err(fail)?;
                self.evaluate(&path.display().to_string(), &source)
                    .map(Answer::Value)
            }
            Command::Save(path) => self.save(&path).map(Answer::Text).map_err(fail),
            Command::Time(source) => self.time(file, &source),
            Command::TimeIt(source) => self.time_many(file, &source),
            Command::Continue(None) => self.go_on().map(Answer::Value),
            Command::Continue(Some(run)) => self.go_on_with(&run).map(Answer::Value),
            Command::Reset => {
                self.interpreter.borrow_mut().reset();
                Ok(Answer::Nothing)
            }
            Command::Quit => Ok(Answer::Leave),
        }
    }

    /// A command that takes all of the input that follows it: `%%time`, `%%file NAME`.
    pub(super) fn whole(&mut self, file: &str, name: &str, body: &str) -> Outcome {
        let (name, rest) = name.split_once(char::is_whitespace).unwrap_or((name, ""));
        match (name, rest.trim()) {
            ("time", "") => self.time(file, &format!("\n{body}")),
            ("timeit", "") => self.time_many(file, &format!("\n{body}")),
            ("time" | "timeit", more) => Err(Failure::plain(format!(
                "%%{name} takes the lines below it; for \"{more}\" alone write %{name} {more}"
            ))),
            ("file" | "writefile", "") => Err(Failure::plain(
                "%%file needs the name of a file: %%file mine.rhai".into(),
            )),
            ("file" | "writefile", _) if body.trim().is_empty() => Err(Failure::plain(
                "%%file writes the lines below it, and there are none".into(),
            )),
            ("file" | "writefile", path) => {
                let path = PathBuf::from(path);
                let existed = path.exists();
                store::write_atomic(&path, body.as_bytes()).map_err(fail)?;
                let what = if existed { "overwritten" } else { "written" };
                Ok(Answer::Text(format!("{} {what}", path.display())))
            }
            (other, _) => Err(Failure::plain(format!(
                "there is no command %%{other}{}",
                did_you_mean(other, ["time", "timeit", "file"])
            ))),
        }
    }

    fn help(&self, name: &str, aside: bool) -> Result<Answer> {
        let markdown = self.interpreter().inspect(name, name.len());
        let text = match docs::lookup(Some(name)) {
            Ok(text) => text,
            Err(e) => {
                let variables = self.interpreter().variables();
                match (variables.iter().find(|v| v.name == name), &markdown) {
                    (Some(v), _) => {
                        format!("{}: a variable of type {}, {}", v.name, v.kind, v.value)
                    }
                    // As what was imported under a name of one's own.
                    (None, Some(text)) => text.clone(),
                    (None, None) => return Err(e),
                }
            }
        };
        // What is known of a variable or of an import by itself; otherwise what the reference says, which is Markdown.
        let markdown = markdown.or_else(|| Some(text.clone()));
        Ok(Answer::Help {
            text,
            markdown,
            aside,
        })
    }

    /// Change what was named, or tell how things are.
    fn set(&mut self, changes: &[String]) -> Result<String> {
        let mut session = self.interpreter().session().clone();
        let (mut parameters, mut settings) = (Vec::new(), false);
        let mut rest = changes.iter();
        while let Some(change) = rest.next() {
            settings |= change.starts_with("--");
            let mut number = |what: &str| -> Result<u64> {
                let text = rest.next().map_or("nothing", String::as_str);
                text.parse().map_err(|_| {
                    anyhow::anyhow!("set: {what} needs a whole number, but got {text}")
                })
            };
            match change.as_str() {
                "--seed" => session.seed = number("--seed")?,
                "--threads" => {
                    let n = number("--threads")?;
                    anyhow::ensure!((1..=1024).contains(&n), "set: --threads is from 1 to 1024");
                    session.threads = n as usize;
                }
                "--device" => {
                    let name = rest.next().map_or("", String::as_str);
                    session.choose_device(name)?;
                    drop(session.open_device()?);
                }
                "--quick" => session.quick = true,
                "--full" => session.quick = false,
                "--quiet" => session.quiet = true,
                "--progress" => session.quiet = false,
                other => match other.split_once('=') {
                    Some((name, value)) if !name.is_empty() && !name.starts_with('-') => {
                        parameters.push((name, value));
                    }
                    _ => anyhow::bail!(
                        "set: \"{other}\" is neither NAME=VALUE nor one of --seed N, --threads N, --device D, --quick, --full, --quiet, --progress"
                    ),
                },
            }
        }
        for (name, value) in parameters {
            self.interpreter.borrow_mut().set_parameter(name, value);
        }
        // Another session binds everything anew.
        if settings {
            self.interpreter.borrow_mut().set_session(session);
        }
        let interpreter = self.interpreter();
        let s = interpreter.session();
        let quick = if s.quick { ", --quick" } else { "" };
        let device = &s.device.0;
        let head = format!(
            "seed {}, threads {}, device {device}{quick}",
            s.seed, s.threads
        );
        let set = interpreter.settings();
        let lines = set.iter().map(|(k, v)| format!("{k}={v}"));
        Ok(std::iter::once(head)
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n"))
    }

    fn save(&self, file: &std::path::Path) -> Result<String> {
        let text = joined(&self.inputs);
        store::write_first(file, text.as_bytes())?;
        let wrong = self.interpreter().completeness_error(&text);
        let runs = match wrong {
            None => format!("`ergodic run {}` runs them", file.display()),
            Some(e) => format!("as one script they have an error: {e}"),
        };
        Ok(format!(
            "{} inputs in {}; {runs}",
            self.inputs.len(),
            file.display()
        ))
    }
}

/// Inputs as one script: each but the last ends its statement.
fn joined(inputs: &[String]) -> String {
    let mut out = String::new();
    for (k, input) in inputs.iter().enumerate() {
        out.push_str(input);
        let all = tokens(input);
        let said = all.iter().rfind(|t| !matches!(t.kind, Kind::Comment(_)));
        if k + 1 < inputs.len() && said.is_some_and(|t| t.text != ";") {
            let comment = all
                .last()
                .is_some_and(|t| matches!(t.kind, Kind::Comment(_)));
            out.push_str(if comment { "\n;" } else { ";" });
        }
        out.push('\n');
    }
    out
}

/// Words of a line as a shell has them: spaces within quotes and brackets belong to a word.
fn words(line: &str) -> Vec<String> {
    let (mut out, mut word) = (Vec::new(), String::new());
    let (mut quote, mut depth) = (None, 0usize);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '(' | '{', None) => depth += 1,
            (']' | ')' | '}', None) => depth = depth.saturating_sub(1),
            (c, None) if c.is_whitespace() && depth == 0 => {
                out.push(std::mem::take(&mut word));
                continue;
            }
            _ => {}
        }
        // Quotes around a word are for us, those within brackets are its own.
        let ours = depth == 0 && (quote == Some(c) || quote.is_none() && "\"'".contains(c));
        if !ours {
            word.push(c);
        }
    }
    out.push(word);
    out.retain(|w| !w.is_empty());
    out
}

fn fail(e: anyhow::Error) -> Failure {
    Failure::plain(format!("{e:#}"))
}

fn commands() -> String {
    let line = |(name, takes, does): &(&str, &str, &str)| {
        format!("  {:<20} {does}", format!(":{name} {takes}"))
    };
    let lines: Vec<_> = COMMANDS.iter().map(line).collect();
    format!(
        "Commands, with : or %\n{}\n  {:<20} run the lines below it and say how long it took\n  {:<20} write the lines below it into a file\n  {:<20} explain a name, in a notebook beside it\n",
        lines.join("\n"),
        "%%time, %%timeit",
        "%%file NAME",
        "NAME? or ?NAME",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_a_sign_and_scripts_have_none() {
        let help = Some(Ok(Command::Help(Some("sampler::hmc".into()))));
        assert_eq!(Command::of(":help sampler::hmc"), help);
        assert_eq!(Command::of("%help sampler::hmc"), help);
        assert_eq!(Command::of("help"), Some(Ok(Command::Help(None))));
        assert_eq!(Command::of("help(1)"), None);
        assert_eq!(Command::of("let quit = 1"), None);
        assert_eq!(
            Command::of(":load a b.rhai"),
            Some(Ok(Command::Load("a b.rhai".into())))
        );
        let missing = Command::of(":load").unwrap().unwrap_err();
        assert!(missing.contains("needs the name"), "{missing}");
        let words = [
            "layers=[64, 10]",
            "name=a b",
            "kinds=[\"x y\", \"z\"]",
            "--quick",
        ];
        let line = ":set layers=[64, 10] name=\"a b\"  kinds=[\"x y\", \"z\"] --quick";
        let set = Command::Set(words.map(String::from).to_vec());
        assert_eq!(Command::of(line), Some(Ok(set)));
        for line in ["sampler::hmc?", "?sampler::hmc", "sampler::hmc??"] {
            let ask = Command::Ask("sampler::hmc".into());
            assert_eq!(Command::of(line), Some(Ok(ask)), "{line}");
        }
        for script in ["a?.b", "f(x?)", "// why?", "\"a?\"", "x ?? y"] {
            assert_eq!(Command::of(script), None, "{script}");
        }
        let near = Command::of("%hlep").unwrap().unwrap_err();
        assert!(near.contains("'help'"), "{near}");
    }

    #[test]
    fn saved_inputs_are_one_script() {
        let inputs = [
            "let x = 1",
            "let y = 2;",
            "fn f(a) { a }",
            "f(x) // why",
            "// only this",
            "x + y",
        ];
        let text = joined(&inputs.map(String::from));
        let expected =
            "let x = 1;\nlet y = 2;\nfn f(a) { a };\nf(x) // why\n;\n// only this\nx + y\n";
        assert_eq!(text, expected);
        let session = crate::simulation::session::Session::new("runs".into());
        let mut interpreter = crate::script::Interpreter::new(session, Default::default());
        let value = interpreter.run("saved", &text).unwrap();
        assert_eq!(interpreter.show(&value), "3");
    }
}
