//! What a language must offer to become a kernel.

use super::language::{Info, Interrupter};
use super::output::Output;
use super::rich::Rich;

/// A language. All its methods are called by the one thread that called [`Kernel::run`](super::Kernel::run).
///
/// Positions in code are counted in code points (Unicode scalar values), from 0; [`cursor`](super::cursor) converts them.
pub trait Evaluator {
    /// What the language is; asked once, at the start.
    fn info(&self) -> Info;

    /// Run a cell. `count` is its number, as in `[3]:`. Variables live on until the next one. What is printed and shown goes
    /// through `out`, which threads that live longer than the cell may keep.
    fn execute(&mut self, code: &str, count: u32, out: &Output) -> Outcome;

    /// How to ask the running cell to stop; asked once, at the start.
    fn interrupter(&self) -> Interrupter;

    /// Forget an earlier interrupt. Called right before a cell counts as running: an interrupt that comes later is meant for
    /// this cell, even if [`execute`](Self::execute) has not been entered yet.
    fn rearm(&mut self) {}

    /// The value of an expression that a client wants to know after a cell; `out` leads nowhere.
    fn express(&mut self, code: &str, out: &Output) -> Outcome {
        self.execute(code, 0, out)
    }

    /// What could stand at the cursor.
    fn complete(&self, code: &str, cursor: usize) -> Completions {
        let _ = code;
        Completions {
            matches: Vec::new(),
            start: cursor,
            end: cursor,
        }
    }

    /// What is known about the name at the cursor; `detail` 1 asks for more than 0, such as source code.
    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Rich> {
        let _ = (code, cursor, detail);
        None
    }

    /// Whether code could run as it is, or a console should ask for another line.
    fn is_complete(&self, code: &str) -> Completeness {
        let _ = code;
        Completeness::Unknown
    }
}

/// How a cell ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It ran; with the value to show, if there is one.
    Ok(Option<Rich>),
    /// It failed.
    Err(Failure),
    /// It stopped because it was asked to.
    Interrupted,
}

/// Why a cell failed.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// Kind of the error.
    pub name: String,
    /// What went wrong.
    pub value: String,
    /// Lines to show, with ANSI colours if wanted.
    pub traceback: Vec<String>,
}

/// What could stand at the cursor.
#[derive(Debug, Clone, Default)]
pub struct Completions {
    /// The possibilities, best first.
    pub matches: Vec<Match>,
    /// Start of the text that a match replaces.
    pub start: usize,
    /// Its end.
    pub end: usize,
}

/// One possible completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Match {
    /// The text.
    pub text: String,
    /// What it is: `function`, `class`, `keyword`, `instance`, `module`, `property`, …
    pub kind: Option<String>,
    /// How it is called, such as `(x, y)`.
    pub signature: Option<String>,
}

/// Whether code could run as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completeness {
    /// It could.
    Complete,
    /// More must follow; the next line starts with `indent`.
    Incomplete {
        /// Blanks of the next line.
        indent: String,
    },
    /// It is wrong, whatever follows.
    Invalid,
    /// It cannot be told.
    Unknown,
}
