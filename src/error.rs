//! Errors: one result type, the few kinds that the command line tells apart, and the "did you mean" helper.
//!
//! Everything that can fail returns [`Result`]. The message says what went wrong, where, and what to do; the layers in
//! between add context with `anyhow::Context`. Only errors with an exit code of their own are types.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The result of everything that can fail.
pub type Result<T, E = anyhow::Error> = std::result::Result<T, E>;

/// A run was interrupted (Ctrl-C) after its checkpoint was written. Exit code 130.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// What can be resumed, for the message ("sweep-1 at step 4200 of 10000").
    pub what: String,
}

impl Interrupted {
    /// Whether an error is an interruption.
    pub fn is(error: &anyhow::Error) -> bool {
        error.downcast_ref::<Self>().is_some()
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.what)
    }
}

impl std::error::Error for Interrupted {}

/// Set by Ctrl-C; runs save a checkpoint and stop when they see it.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// When it was set.
static SINCE: Mutex<Option<Instant>> = Mutex::new(None);

/// Ask everything to stop, and runs to save before. Returns whether it had been asked before.
pub fn interrupt() -> bool {
    let before = INTERRUPTED.swap(true, Ordering::SeqCst);
    if !before {
        *SINCE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
    before
}

/// Whether everything has been asked to stop. What can take long looks here, several times a second.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// For how long it has been asked to.
pub fn interrupted_for() -> Option<Duration> {
    if !interrupted() {
        return None;
    }
    let since = SINCE.lock().unwrap_or_else(PoisonError::into_inner);
    since.map(|s| s.elapsed())
}

/// Asks one piece of work to stop, while others of the process go on. A clone asks the same.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ask it to stop, and to save before.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it has been asked to stop, alone or with [everything](interrupt).
    pub fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) || interrupted()
    }

    /// Forget that it was asked to stop.
    pub fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Forget an interrupt, before the next cell of an interactive session.
pub fn clear_interrupt() {
    INTERRUPTED.store(false, Ordering::SeqCst);
}

/// An error if it was asked to stop: for work that has nothing to save. `what` says what it is.
pub fn go_on(what: &str) -> Result<()> {
    match interrupted() {
        true => Err(Interrupted {
            what: format!("within {what}, which saves nothing"),
        }
        .into()),
        false => Ok(()),
    }
}

/// An option is unknown, missing, of another kind or out of its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadOption {
    /// Constructor or verb that has the option: "sampler::sgld", "sweep".
    pub owner: String,
    /// Name of the option.
    pub option: String,
    /// The whole message: what is wrong, and what is allowed.
    pub message: String,
}

/// A file cannot be read or written, or has not what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFile {
    /// Path of the file, as it was given.
    pub path: PathBuf,
    /// The whole message: what is wrong, where in the file, and what to do.
    pub message: String,
}

macro_rules! says_its_message {
    ($($error:ty),*) => {$(
        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.message)
            }
        }

        impl std::error::Error for $error {}
    )*};
}
says_its_message!(BadOption, BadFile);

/// The result of reading a file, with an error that names the file: [`BadFile`], or [`Interrupted`] as it was.
pub fn in_file<T>(path: impl AsRef<Path>, result: Result<T>) -> Result<T> {
    result.map_err(|e| match Interrupted::is(&e) {
        true => e,
        false => {
            let (path, message) = (path.as_ref().into(), format!("{e:#}"));
            BadFile { path, message }.into()
        }
    })
}

/// Every chain of a run failed. Exit code 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EveryChainFailed {
    /// Name of the run.
    pub run: String,
    /// The first chain's reason.
    pub reason: String,
    /// What it was: "chain", or "ladder" where chains are left that nothing can be said from.
    pub what: &'static str,
}

impl fmt::Display for EveryChainFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "every {} of '{}' failed; the first one: {}",
            self.what, self.run, self.reason
        )
    }
}

impl std::error::Error for EveryChainFailed {}

/// A noun with its article: "a Model", "an Observable".
pub(crate) fn a(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

/// So many of something: "1 temperature", "4 chains".
pub(crate) fn count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// The entry of `known` nearest to `name`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .into_iter()
        .filter(|k| !k.is_empty())
        .map(|k| (strsim::osa_distance(&lower, &k.to_lowercase()), k))
        .filter(|(d, k)| *d <= 1 + name.len().max(k.len()) / 3)
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// " (did you mean 'x'?)" when a near name is known, otherwise the list of known names.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(name, known.clone()) {
        Some(k) => format!("; did you mean '{k}'?"),
        None => {
            let list: Vec<_> = known.into_iter().collect();
            if list.is_empty() {
                "; it takes none".into()
            } else {
                format!("; known: {}", listed(&list))
            }
        }
    }
}

/// Names that a message lists; those behind them are counted.
const MOST_NAMES: usize = 40;
/// Characters of a name that a message shows.
const MOST_OF_NAME: usize = 80;
/// Bytes of a message.
const MOST_OF_MESSAGE: usize = 20_000;

/// Names, for a message: `a, b, c … and 299,990 more` where there are many.
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let short = |name: &T| match name.as_ref().char_indices().nth(MOST_OF_NAME) {
        Some((at, _)) => format!("{}…", &name.as_ref()[..at]),
        None => name.as_ref().to_string(),
    };
    let shown: Vec<_> = names.iter().take(MOST_NAMES).map(short).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} … and {more} more", shown.join(", ")),
    }
}

thread_local! {
    /// Whether a package is reading something at which it may panic.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// The result of a package that panics at some damaged files. A panic becomes an error with these words, and is not reported as a defect.
///
/// # Errors
/// Those of the package, and these words.
pub(crate) fn of_package<T>(words: &'static str, read: impl FnOnce() -> Result<T>) -> Result<T> {
    READING.set(true);
    let made = catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    made.unwrap_or_else(|_| Err(anyhow::Error::msg(words)))
}

/// Whether a panic of this thread is that of a package at somebody's file, and becomes an error.
pub fn panic_is_caught() -> bool {
    READING.get()
}

/// A text that may have parts of somebody's file in it, as it is safe on a terminal: control characters but line breaks and tabulators, and
/// marks that turn the direction of writing, are spelled out.
pub fn printable(text: &str) -> Cow<'_, str> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let unsafe_there = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c);
    if !text.contains(unsafe_there) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match unsafe_there(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out.into()
}

/// A message as it is printed: [`printable`], and its beginning and its end if it is very long.
pub fn message(text: &str) -> String {
    let text = printable(text);
    if text.len() <= MOST_OF_MESSAGE {
        return text.into();
    }
    let near = |at: usize| {
        (0..=at)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0)
    };
    let (first, last) = (
        near(MOST_OF_MESSAGE / 2),
        near(text.len() - MOST_OF_MESSAGE / 2),
    );
    format!(
        "{}\n… {} bytes left out …\n{}",
        &text[..first],
        last - first,
        &text[last..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        let known = ["batch", "ratio", "step", "friction"];
        assert_eq!(nearest("bacth", known), Some("batch"));
        assert_eq!(nearest("Ratio", known), Some("ratio"));
        assert_eq!(nearest("temperature", known), None);
        assert!(did_you_mean("zzzzzz", known).contains("known: batch"));
    }

    #[test]
    fn messages_are_short_and_harmless() {
        let many: Vec<_> = (0..300_000).map(|i| format!("tensor{i}")).collect();
        let all = did_you_mean("zzzzzzzzzzzzzzzzzzzzzzz", many.iter().map(String::as_str));
        assert!(
            all.len() < 1000 && all.ends_with("… and 299960 more"),
            "{all}"
        );
        assert!(listed(&["x".repeat(100_000)]).len() < 100);
        assert_eq!(printable("a\tb\nc é"), "a\tb\nc é");
        assert_eq!(
            printable("\x1b]0;x\x07\u{9b}\u{202e}\r"),
            "\\u{1b}]0;x\\u{7}\\u{9b}\\u{202e}\\u{d}"
        );
        let long = message(&format!("begins {} ends", "é\x1b".repeat(1_000_000)));
        assert!(long.len() < 21_000 && long.starts_with("begins") && long.ends_with("ends"));
    }
}
