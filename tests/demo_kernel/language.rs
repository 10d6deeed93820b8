//! The toy language: lines of arithmetic and commands.

use crate::calculator::{Line, Stop, Value, Variables, number};
use crate::name_before;
use ergodic::front::kernel::{
    Completeness, Completions, Evaluator, Failure, Info, Interrupter, Match, Outcome, Output, Rich,
    Stream,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Commands: name, arguments, what they do.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("print", "(x, …)", "print values"),
    ("eprint", "(x, …)", "print values to standard error"),
    ("lines", "(n)", "print n numbered lines"),
    ("sleep", "(seconds)", "wait"),
    ("error", "(text)", "fail"),
    ("panic", "()", "fail badly"),
    ("svg", "(radius)", "show a circle"),
    ("large", "(megabytes)", "show much"),
    (
        "progress",
        "(seconds)",
        "show a bar that another thread moves",
    ),
    (
        "later",
        "(seconds)",
        "print from another thread when the cell may be over",
    ),
    ("clear", "()", "remove what is shown"),
    ("input", "(prompt)", "ask for a line"),
    ("password", "(prompt)", "ask for a password"),
    ("help", "()", "show all commands in the pager"),
];

/// The toy language.
#[derive(Default)]
pub struct Demo {
    variables: Variables,
    interrupted: Arc<AtomicBool>,
}

impl Evaluator for Demo {
    fn info(&self) -> Info {
        Info {
            implementation: "demo-kernel".into(),
            implementation_version: env!("CARGO_PKG_VERSION").into(),
            language: "demo".into(),
            language_version: "1".into(),
            mimetype: "text/x-demo".into(),
            file_extension: ".demo".into(),
            banner: "a calculator; help() lists what it can do".into(),
            help_links: vec![("Jupyter".into(), "https://jupyter.org".into())],
            ..Info::default()
        }
    }

    fn interrupter(&self) -> Interrupter {
        let flag = self.interrupted.clone();
        Arc::new(move || flag.store(true, Ordering::SeqCst))
    }

    fn rearm(&mut self) {
        self.interrupted.store(false, Ordering::SeqCst);
    }

    fn execute(&mut self, code: &str, _count: u32, out: &Output) -> Outcome {
        match run(code, &mut self.variables, &mut |name, arguments| {
            command(name, arguments, out, &self.interrupted)
        }) {
            Ok(Value::Nothing) => Outcome::Ok(None),
            Ok(value) => Outcome::Ok(Some(Rich::text(value.to_string()))),
            Err(Stop::Interrupted) => Outcome::Interrupted,
            Err(Stop::Incomplete) => failure("SyntaxError", "the cell ends too early"),
            Err(Stop::Error(name, value)) => failure(&name, &value),
        }
    }

    fn complete(&self, code: &str, cursor: usize) -> Completions {
        let (start, name) = name_before(code, cursor);
        let found = |text: &str, kind: &str, signature: Option<&str>| Match {
            text: text.into(),
            kind: Some(kind.into()),
            signature: signature.map(Into::into),
        };
        let commands = COMMANDS.iter().filter(|c| c.0.starts_with(name));
        let variables = self.variables.keys().filter(|v| v.starts_with(name));
        Completions {
            matches: variables
                .map(|v| found(v, "instance", None))
                .chain(commands.map(|c| found(c.0, "function", Some(c.1))))
                .collect(),
            start,
            end: cursor,
        }
    }

    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Rich> {
        let (_, name) = name_before(code, cursor);
        if let Some(value) = self.variables.get(name) {
            return Some(Rich::text(format!("{name} = {value}")));
        }
        let (name, arguments, text) = COMMANDS.iter().find(|c| c.0 == name)?;
        let more = if detail > 0 {
            "\n\n(there is no more)"
        } else {
            ""
        };
        let markdown = format!("**{name}**`{arguments}`: {text}");
        Some(Rich::text(format!("{name}{arguments}: {text}{more}")).with("text/markdown", markdown))
    }

    fn is_complete(&self, code: &str) -> Completeness {
        let names = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        let mut variables: Variables = names.map(|n| (n.to_string(), Value::Number(1.0))).collect();
        match run(code, &mut variables, &mut |_, _| Ok(Value::Number(1.0))) {
            Err(Stop::Incomplete) => Completeness::Incomplete {
                indent: "  ".into(),
            },
            Err(Stop::Error(name, _)) if name == "SyntaxError" => Completeness::Invalid,
            _ => Completeness::Complete,
        }
    }
}

fn failure(name: &str, value: &str) -> Outcome {
    Outcome::Err(Failure {
        name: name.into(),
        value: value.into(),
        traceback: vec![format!("\x1b[31m{name}\x1b[0m: {value}")],
    })
}

type Command<'a> = crate::calculator::Command<'a>;

/// The value of the last line; a line that is not complete takes in the next.
fn run(code: &str, variables: &mut Variables, command: &mut Command) -> Result<Value, Stop> {
    let (mut last, mut pending) = (Value::Nothing, String::new());
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        pending.push_str(line.split('#').next().unwrap_or_default());
        if pending.trim().is_empty() {
            continue;
        }
        let mut line = Line {
            rest: &pending,
            variables,
            command,
        };
        last = match line.statement() {
            Err(Stop::Incomplete) if lines.peek().is_some() => {
                pending.push('\n');
                continue;
            }
            other => other?,
        };
        pending.clear();
    }
    Ok(last)
}

fn command(
    name: &str,
    arguments: &[Value],
    out: &Output,
    interrupted: &AtomicBool,
) -> Result<Value, Stop> {
    let joined = || {
        let words: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        words.join(" ")
    };
    let x = || arguments.first().map_or(Ok(1.0), number);
    match name {
        "print" => out.stream(Stream::Stdout, &format!("{}\n", joined())),
        "eprint" => out.stream(Stream::Stderr, &format!("{}\n", joined())),
        "lines" => (0..x()? as u64).for_each(|i| out.stream(Stream::Stdout, &format!("{i}\n"))),
        "sleep" => {
            let end = Instant::now() + Duration::from_secs_f64(x()?);
            while Instant::now() < end {
                if interrupted.load(Ordering::SeqCst) {
                    return Err(Stop::Interrupted);
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
        "error" => return Err(Stop::Error("Error".into(), joined())),
        "panic" => panic!("asked to"),
        "svg" => {
            let r = x()?;
            let svg = format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 99 99"><circle r="{r}"/></svg>"#
            );
            out.display(Rich::text("a circle").with("image/svg+xml", svg), None);
        }
        "large" => {
            let text = "0123456789abcdef".repeat((x()? * 65536.0) as usize);
            out.display(Rich::text("much").with("text/html", text), None);
        }
        "progress" => progress(x()?, out)?,
        "later" => {
            let (out, seconds) = (out.clone(), x()?);
            thread::spawn(move || {
                thread::sleep(Duration::from_secs_f64(seconds));
                out.stream(Stream::Stdout, "later\n");
            });
        }
        "clear" => out.clear(false),
        "input" | "password" => {
            let answer = out.input(&joined(), name == "password");
            let error = |e: anyhow::Error| match interrupted.load(Ordering::SeqCst) {
                true => Stop::Interrupted,
                false => Stop::Error("InputError".into(), format!("{e:#}")),
            };
            return answer.map(Value::Text).map_err(error);
        }
        "help" => {
            let lines = COMMANDS.iter().map(|(n, a, t)| format!("{n}{a}: {t}\n"));
            out.page(Rich::text(lines.collect::<String>()));
        }
        _ => {
            return Err(Stop::Error(
                "NameError".into(),
                format!("{name} is not known"),
            ));
        }
    }
    Ok(Value::Nothing)
}

/// A bar that is moved in place by another thread.
fn progress(seconds: f64, out: &Output) -> Result<(), Stop> {
    let out = out.clone();
    let moving = thread::spawn(move || {
        let bar = |percent: u32| {
            let html = format!(r#"<progress value="{percent}" max="100"></progress>"#);
            Rich::text(format!("{percent} %")).with("text/html", html)
        };
        out.display(bar(0), Some("progress"));
        for percent in (10..=100).step_by(10) {
            thread::sleep(Duration::from_secs_f64(seconds / 10.0));
            out.update("progress", bar(percent));
        }
    });
    let error = |_| Stop::Error("Error".into(), "the progress stopped".into());
    moving.join().map_err(error)
}
