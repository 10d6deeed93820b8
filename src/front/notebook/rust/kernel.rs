//! Rust in Jupyter: the program's own kernel around evcxr, with the prelude loaded.

use super::engine::Engine;
use super::folder::Prepared;
use super::streams::Event;
use super::value::{self, Written};
use crate::error::Result;
use crate::front::jupyter::rich;
use crate::front::kernel::kernelspec::{self, Spec, Target};
use crate::front::kernel::{
    Completeness, Completions, Evaluator, Failure, Info, Interrupter, Kernel, Match, Outcome,
    Output, Rich, Stream,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Its name, as notebooks have it.
pub(crate) const NAME: &str = "ergodic-rust";

/// Make it known to Jupyter; returns its folder.
pub fn install(target: &Target) -> Result<PathBuf> {
    let program = std::env::current_exe()?.display().to_string();
    let argv = [&*program, "notebook", "kernel", "{connection_file}"].map(String::from);
    let spec = Spec {
        name: NAME,
        display_name: "Rust (ergodic)",
        language: "rust",
        argv: &argv,
        ..Spec::default()
    };
    kernelspec::install(&spec, target)
}

/// Serve Jupyter until it asks for the end.
pub fn start(connection: &Path) -> Result<()> {
    let engine = Engine::start(Prepared::find()?)?;
    Kernel::default().run(connection, RustEvaluator { engine })
}

struct RustEvaluator {
    engine: Engine,
}

impl Evaluator for RustEvaluator {
    fn info(&self) -> Info {
        let text = String::from;
        Info {
            implementation: text("ergodic"),
            implementation_version: text(env!("CARGO_PKG_VERSION")),
            language: text("rust"),
            language_version: text("2024"),
            mimetype: text("text/rust"),
            file_extension: text(".rs"),
            codemirror_mode: "rust".into(),
            pygments_lexer: text("rust"),
            banner: format!(
                "ergodic {}, Rust: the prelude is loaded",
                env!("CARGO_PKG_VERSION")
            ),
            help_links: Vec::new(),
        }
    }

    fn execute(&mut self, code: &str, count: u32, out: &Output) -> Outcome {
        // `?name` is no Rust; it opens what is known of the name beside the notebook.
        if let Some(name) = code.trim().strip_prefix('?') {
            let failed = |value| {
                let (name, traceback) = ("Error".into(), Vec::new());
                Outcome::Err(Failure {
                    name,
                    value,
                    traceback,
                })
            };
            if let Err(e) = self.engine.wait() {
                return failed(format!("{e:#}"));
            }
            return match self.inspect(name, name.chars().count(), 0) {
                Some(page) => {
                    out.page(page);
                    Outcome::Ok(None)
                }
                None => failed(format!("nothing is known of '{name}'")),
            };
        }
        let (to, mut begun) = (out.clone(), HashSet::new());
        let sink = move |event: Event| match event {
            Event::Printed("stdout", text) => to.stream(Stream::Stdout, &text),
            Event::Printed(_, text) => to.stream(Stream::Stderr, &text),
            Event::Shown(shown) => to.display(rich(&shown), None),
            Event::Clear(wait) => to.clear(wait),
            // One line per run, which changes.
            Event::Progress(run, line, _) => {
                let id = format!("progress-{}-{count}-{run}", std::process::id());
                match begun.insert(run) {
                    true => to.display(rich(&line), Some(&id)),
                    false => to.update(&id, rich(&line)),
                }
            }
        };
        match self.engine.execute(code, Box::new(sink)) {
            Ok(value) => Outcome::Ok(value.map(|v| rich(&v))),
            Err(trouble) => Outcome::Err(Failure {
                name: trouble.name.into(),
                value: trouble.lines.first().cloned().unwrap_or_default(),
                traceback: trouble.coloured,
            }),
        }
    }

    fn interrupter(&self) -> Interrupter {
        self.engine.interrupter()
    }

    fn complete(&self, code: &str, cursor: usize) -> Completions {
        let characters = |bytes: usize| code.get(..bytes).map_or(cursor, |c| c.chars().count());
        let Some((start, end, found)) = self.engine.complete(code, bytes(code, cursor)) else {
            return Completions {
                start: cursor,
                end: cursor,
                ..Completions::default()
            };
        };
        let matches = found.into_iter().map(|(text, kind, label)| Match {
            text,
            kind: Some(kind.into()),
            signature: Some(label),
        });
        Completions {
            matches: matches.collect(),
            start: characters(start),
            end: characters(end),
        }
    }

    fn inspect(&self, code: &str, cursor: usize, _: u8) -> Option<Rich> {
        let (text, html) = self.engine.inspect(code, bytes(code, cursor))?;
        Some(Rich::text(text).with("text/html", html))
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match value::state(code) {
            Written::InPart => Completeness::Incomplete {
                indent: String::new(),
            },
            Written::Whole => Completeness::Complete,
            Written::Badly => Completeness::Invalid,
        }
    }
}

/// The place of a code point, in bytes.
fn bytes(code: &str, cursor: usize) -> usize {
    code.char_indices()
        .nth(cursor)
        .map_or(code.len(), |(at, _)| at)
}
