//! `ergodic kernel`: an interactive session as a Jupyter kernel. The protocol is in [`super::kernel`], the session in
//! `super::interactive`; here they meet.

mod colours;
mod console;

use super::interactive::{self, Answer, COMMANDS, Interactive};
use super::kernel::kernelspec::{self, Spec, Target};
use super::kernel::{self, Evaluator, Info, Interrupter, Kernel, Outcome, Output, Rich, cursor};
use super::repl::history_file;
use crate::error::Result;
use crate::script::Failure;
use crate::script::explore::Completeness;
use crate::simulation::session::{self, Session};
use crate::table::Table;
pub use console::rich;

use console::Cell;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the kernel, unless the user gives it another one.
pub(crate) const NAME: &str = "ergodic";

const LOGO: &[u8] = include_bytes!("logo.svg");

/// Rhai sessions as cells of a notebook.
pub(crate) struct Rhai {
    session: Interactive,
    cell: Arc<Cell>,
}

impl Rhai {
    /// A session whose runs go into a new folder `runs/NAME-K`.
    pub fn new(mut session: Session, name: &str) -> Self {
        let cell = Cell::new();
        session.console = cell.clone();
        Self {
            session: Interactive::new(session, name, "%continue"),
            cell,
        }
    }
}

/// What a front end shows of an error: its first line in red.
pub(crate) fn failed(failure: &Failure) -> kernel::Failure {
    let message = &failure.message;
    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
    let first = first.strip_prefix("interrupted: ").unwrap_or(first);
    let name = if failure.code == 130 {
        "Interrupted"
    } else {
        "Error"
    };
    let mut traceback = vec![format!("\x1b[31m{name}\x1b[0m: {first}")];
    traceback.extend(rest.lines().map(str::to_string));
    kernel::Failure {
        name: name.into(),
        value: first.into(),
        traceback,
    }
}

impl Evaluator for Rhai {
    fn info(&self) -> Info {
        let version = env!("CARGO_PKG_VERSION").to_string();
        Info {
            implementation: "ergodic".into(),
            implementation_version: version.clone(),
            language: "rhai".into(),
            language_version: "1.27".into(),
            mimetype: "text/x-rhai".into(),
            file_extension: ".rhai".into(),
            // By name where the extension is that `ergodic kernel install` writes; else as a language in which maps, closures and
            // templates look right.
            codemirror_mode: json!({"name": "rhai", "mime": "text/javascript"}),
            pygments_lexer: colours::lexer(),
            banner: format!(
                "ergodic {version} — Tab completes, %help NAME or NAME? explains; results go to {}",
                self.session.interpreter().session().out.display()
            ),
            help_links: vec![("Rhai".into(), "https://rhai.rs/book/".into())],
        }
    }

    fn execute(&mut self, code: &str, count: u32, out: &Output) -> Outcome {
        self.cell.attach(out);
        match self.session.take(&format!("In [{count}]"), code) {
            // A notebook has a menu for that.
            Ok(Answer::Leave) => {
                Outcome::Ok(Some(Rich::text("to end the session, shut the kernel down")))
            }
            Ok(answer @ Answer::Help { aside: true, .. }) => {
                let page = self.session.shown(answer);
                page.iter().for_each(|page| out.page(rich(page)));
                Outcome::Ok(None)
            }
            Ok(answer) => Outcome::Ok(self.session.shown(answer).map(|s| rich(&s))),
            Err(failure) => Outcome::Err(failed(&failure)),
        }
    }

    fn interrupter(&self) -> Interrupter {
        Arc::new(|| {
            session::interrupt();
        })
    }

    fn rearm(&mut self) {
        session::clear_interrupt();
    }

    fn express(&mut self, code: &str, out: &Output) -> Outcome {
        self.cell.attach(out);
        match self.session.evaluate_apart(code) {
            Ok(value) => {
                let shown = self.session.shown(Answer::Value(value));
                Outcome::Ok(shown.map(|s| rich(&s)))
            }
            Err(failure) => Outcome::Err(failed(&failure)),
        }
    }

    fn complete(&self, code: &str, at: usize) -> kernel::Completions {
        let interpreter = self.session.interpreter();
        let found = interactive::complete(&interpreter, code, cursor::byte(code, at));
        let one = |m: crate::script::explore::Match| kernel::Match {
            text: match m.kind {
                // What has to follow anyway.
                "option" => format!("{}: ", m.text),
                _ => m.text,
            },
            kind: Some(kind(m.kind).into()),
            signature: Some(m.detail),
        };
        kernel::Completions {
            matches: found.matches.into_iter().map(one).collect(),
            start: cursor::point(code, found.start),
            end: cursor::point(code, found.end),
        }
    }

    fn inspect(&self, code: &str, at: usize, _: u8) -> Option<Rich> {
        let interpreter = self.session.interpreter();
        let markdown = interpreter.inspect(code, cursor::byte(code, at));
        if let Some(markdown) = markdown {
            return Some(Rich::text(&markdown).with("text/markdown", markdown));
        }
        let line = code.lines().next().unwrap_or_default();
        let word = line.strip_prefix(['%', ':'])?.split_whitespace().next()?;
        let (name, takes, does) = COMMANDS.iter().find(|(name, ..)| *name == word)?;
        Some(Rich::text(format!("%{name} {takes}\n\n{does}")))
    }

    fn is_complete(&self, code: &str) -> kernel::Completeness {
        match interactive::completeness(&self.session.interpreter(), code) {
            Completeness::Complete => kernel::Completeness::Complete,
            Completeness::Invalid => kernel::Completeness::Invalid,
            Completeness::Incomplete(depth) => kernel::Completeness::Incomplete {
                indent: "    ".repeat(depth),
            },
        }
    }
}

/// The names that front ends have for kinds of completions, with icons of their own.
fn kind(ours: &'static str) -> &'static str {
    match ours {
        "variable" => "instance",
        "namespace" => "module",
        "option" | "field" => "property",
        "value" => "enum",
        other => other,
    }
}

/// What the runs of a notebook's session are called after: its own name.
pub(crate) fn session_name(notebook: &Path) -> String {
    let stem = notebook.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect();
    match name.is_empty() {
        true => "notebook".into(),
        false => name,
    }
}

/// Serve the clients of a connection file until one of them ends the session.
pub fn start(connection: &Path, session: Session) -> Result<()> {
    // Jupyter's server says which notebook it is.
    let notebook = std::env::var_os("JPY_SESSION_NAME").map(PathBuf::from);
    let name = notebook.as_deref().map_or("notebook".into(), session_name);
    let kernel = Kernel {
        history: history_file("notebook-history"),
        ..Kernel::default()
    };
    kernel.run(connection, Rhai::new(session, &name))
}

/// Tell Jupyter of this program. Returns what to tell the user.
pub fn install(name: &str, display_name: &str, target: &Target) -> Result<String> {
    let program = std::env::current_exe()?.display().to_string();
    let argv = [
        program,
        "kernel".into(),
        "start".into(),
        "{connection_file}".into(),
    ];
    let spec = Spec {
        name,
        display_name,
        language: "rhai",
        argv: &argv,
        env: colours::environment(target),
        resources: &[("logo-svg.svg", LOGO)],
        ..Spec::default()
    };
    let folder = kernelspec::install(&spec, target)?;
    colours::install(&folder, target)?;
    let exports = match spec.env {
        [] => "Scala; install again after `pip install editors/pygments` for those of Rhai",
        _ => "Rhai",
    };
    Ok(format!(
        "kernel '{name}' installed in {}\nit starts {}; install again after moving that file\nexports have the colours of {exports}",
        folder.display(),
        argv[0]
    ))
}

/// Remove it again.
pub fn uninstall(name: &str, target: &Target) -> Result<String> {
    let folder = kernelspec::uninstall(name, target)?;
    colours::uninstall(&folder, target)?;
    Ok(format!("{} removed", folder.display()))
}

/// The kernels that Jupyter finds here.
pub fn list() -> String {
    let mut table = Table::new(["name", "display name", "language", "folder"]);
    for k in kernelspec::list() {
        table.push([
            k.name,
            k.display_name,
            k.language,
            k.folder.display().to_string(),
        ]);
    }
    match table.rows.is_empty() {
        true => "Jupyter finds no kernels here; `ergodic kernel install` adds this one".into(),
        false => table.to_string(),
    }
}
