//! A session of Rust code: it starts runs, and evaluates scripts that share its variables.

use super::cell_protocol::{self, Mark};
use crate::error::Result;
use crate::front::bar::{Live, Moment};
use crate::object::Shown;
use crate::output;
use crate::plot::Figure;
use crate::script::notebook::{Scripted, Variable};
use crate::script::{Context, Interpreter};
use crate::simulation::console::{Bar, Console, Task};
use crate::simulation::session::{self, Session as Settings};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Where Rust code and scripts meet: both start runs in one folder, with one seed, and share variables as handles.
///
/// A clone is the same session.
#[derive(Clone)]
pub struct Session {
    interpreter: Arc<Mutex<Interpreter>>,
    context: Arc<Context>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session, results go to {}", self.folder().display())
    }
}

impl AsRef<Settings> for Session {
    fn as_ref(&self) -> &Settings {
        &self.context.session
    }
}

impl Session {
    /// A session whose results go to `out`.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self::with(Settings::new(out.into()))
    }

    /// A session with these settings: seed, threads, device.
    pub fn with(settings: Settings) -> Self {
        let interpreter = Interpreter::new(settings, BTreeMap::new());
        let context = interpreter.context();
        Self {
            interpreter: Arc::new(Mutex::new(interpreter)),
            context,
        }
    }

    /// The [current](Settings::current) session of this process, in which verbs run.
    pub fn here() -> Self {
        static HERE: OnceLock<Session> = OnceLock::new();
        let make = || Session::with(Settings::current());
        HERE.get_or_init(make).clone()
    }

    /// Where results go.
    pub fn folder(&self) -> &Path {
        &self.context.session.out
    }

    /// Evaluate a script; its variables live on. The value can be taken out as a Rust type, and is displayed as such objects are.
    pub fn eval(&self, script: &str) -> Result<Value> {
        let mut interpreter = self.interpreter();
        let value = interpreter.evaluate("<cell>", script)?;
        let shown = match value.is_nothing() {
            true => Shown::default(),
            false => interpreter.shown_of(&value),
        };
        Ok(Value { value, shown })
    }

    /// A variable of the scripts as a Rust type: `session.get::<Arc<Run>>("run")`. Handles are shared, arrays of numbers copied.
    pub fn get<T: Variable>(&self, name: &str) -> Result<T> {
        self.interpreter().get(name)
    }

    /// Make a Rust value a variable of the scripts. Handles are shared, vectors of numbers copied.
    pub fn set<T: Variable>(&self, name: &str, value: T) -> Result<()> {
        self.interpreter().set(name, value)
    }

    /// Save a figure among the results, under a name that ends in `.svg`; returns where it is.
    pub fn save(&self, figure: &Figure, name: &str) -> Result<PathBuf> {
        let path = self.context.session.figure_path("save", name)?;
        figure.save(&path)?;
        Ok(path)
    }

    fn interpreter(&self) -> MutexGuard<'_, Interpreter> {
        self.interpreter.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Tells the process that runs the cells of what is shown and of progress, by marks.
struct Marked;

impl Console for Marked {
    fn print(&self, text: &str) {
        output::line(text);
    }

    fn remark(&self, text: &str) {
        output::remark(text);
    }

    fn show(&self, shown: &Shown) {
        output::print(Mark::Shown(shown.clone()).line());
    }

    fn clear(&self, wait: bool) {
        output::print(Mark::Clear(wait).line());
    }

    fn named(&self, home: &Path, run: &str) {
        output::print(Mark::Named(home.into(), run.into()).line());
    }

    fn begin(&self, task: &Task) -> Arc<dyn Bar> {
        let name = task.name.clone();
        Arc::new(Live::new(task, move |shown, moment| {
            let over = moment == Moment::Last;
            output::remark_part(Mark::Progress(name.clone(), shown, over).line());
        }))
    }
}

/// What a script evaluated to.
#[derive(Clone)]
pub struct Value {
    value: Scripted,
    shown: Shown,
}

impl Value {
    /// It as a Rust type, if it is one.
    pub fn get<T: Variable>(&self) -> Option<T> {
        self.value.get()
    }

    /// Whether there is none, as for a script that ends in a statement.
    pub fn is_nothing(&self) -> bool {
        self.value.is_nothing()
    }

    /// How it is shown: a figure as such, a run as its table, anything else as `print` shows it.
    pub fn shown(&self) -> Shown {
        self.shown.clone()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown.text)
    }
}

/// The names that the next runs get: those that they had in a session whose record is replayed.
pub fn plan<const N: usize>(names: [&str; N]) {
    Settings::current().plan(names.map(String::from));
}

/// Get ready for cells: an interrupt (SIGINT) makes the running simulation stop and keeps the variables.
///
/// What loads the library calls this once; a program that handles Ctrl-C itself does not need it.
pub fn prepare() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        Settings::current_is_made_by(|| {
            let mut settings = Settings::new(PathBuf::new()).numbered("notebook");
            if cell_protocol::wanted() {
                settings.console = Arc::new(Marked);
                // Cells are recorded by whoever runs them.
                settings = settings.recording();
            }
            settings
        });
        // A program that has its own handler keeps it.
        let _ = ctrlc::try_set_handler(|| {
            session::interrupt();
        });
        if !cell_protocol::wanted() {
            return;
        }
        // One line, and no backtrace of evcxr's own frames.
        std::panic::set_hook(Box::new(|info| output::remark(info)));
    });
}
