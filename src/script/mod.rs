//! The scripting face: the only folder that names Rhai. One file per object, no arithmetic, no defaults.
//!
//! Constructors come from the registries of the modules below (`constructors`); verbs and methods are bound in the file of
//! their object. Everything is bound through a `Binder`, which writes down the [`reference`](mod@reference) entry at the same time: what
//! a script can call and what the reference lists cannot differ.

mod binder;
mod branches;
mod calls;
mod cells;
mod check;
mod closure;
mod constructors;
mod convert;
mod custom;
mod data;
mod drawings;
mod examples;
pub mod explore;
mod expressions;
mod file_access;
mod grids;
mod habits;
mod helpers;
mod integers;
pub mod item;
mod kinds;
mod learning;
pub(crate) mod library;
mod limits;
mod native;
pub(crate) mod notebook;
mod objects;
mod parameters;
mod plots;
mod powers;
mod recipe;
pub mod recipes;
pub mod reference;
mod registered;
mod report;
mod reports;
mod room;
mod runs;
mod shown;
mod tensors;
mod values;
mod verbs;
mod words;

use crate::error::Result;
use crate::registry;
use crate::simulation::session::{self, Session};
use binder::Binder;
use item::Item;
use rhai::{Dynamic, Engine, EvalAltResult, NativeCallContext, Scope, Token};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub use parameters::{Declared, declared};
pub use report::Failure;

/// A value of a script.
pub(crate) type Value = Dynamic;

/// The variables of an interpreter at some time.
#[derive(Clone)]
pub struct Variables(Scope<'static>);

impl Variables {
    /// These, and those of others whose names they do not have.
    pub fn and(self, others: &Self) -> Self {
        let mut out = self.0.clone();
        let new = others
            .0
            .iter_raw()
            .filter(|(name, ..)| !self.0.contains(name));
        // They come from the newest to the oldest.
        let new: Vec<_> = new.collect();
        for (name, constant, value) in new.into_iter().rev() {
            match constant {
                true => out.push_constant_dynamic(name.to_string(), value.clone()),
                false => out.push_dynamic(name.to_string(), value.clone()),
            };
        }
        Self(out)
    }
}

/// The result of a bound function.
type Bound<T> = std::result::Result<T, Box<EvalAltResult>>;

/// What all bound functions of an interpreter share.
pub struct Context {
    /// The command line's settings.
    pub session: Session,
    /// Values of `--set name=value`.
    pub settings: Mutex<BTreeMap<String, String>>,
    /// The interpreter that runs closures on other threads.
    closures: Mutex<Option<Arc<Engine>>>,
    /// How many closures have been given a name.
    closures_named: std::sync::atomic::AtomicUsize,
    /// What a script printed is shown at once, and kept for run.json.
    printed: Mutex<String>,
    /// Steps and print, where these are limited.
    spent: limits::Spent,
    /// File and text of the script that runs.
    script: Mutex<(String, String)>,
    /// Divisions of integers that were told of.
    told: integers::Told,
    /// What was imported.
    library: Arc<library::Library>,
}

impl Context {
    fn new(
        session: Session,
        settings: BTreeMap<String, String>,
        library: Arc<library::Library>,
        spent: limits::Spent,
    ) -> Arc<Self> {
        Arc::new(Self {
            session,
            settings: Mutex::new(settings),
            closures: Mutex::default(),
            closures_named: Default::default(),
            printed: Mutex::default(),
            spent,
            script: Mutex::default(),
            told: Default::default(),
            library,
        })
    }

    /// The interpreter that runs closures on other threads.
    fn closures(self: &Arc<Self>) -> Arc<Engine> {
        let mut made = self.closures.lock().unwrap_or_else(|e| e.into_inner());
        made.get_or_insert_with(|| bind_closures(self)).clone()
    }

    /// Where what is being read stands.
    fn home(&self) -> report::Home {
        let script = self.script.lock().unwrap_or_else(|e| e.into_inner());
        report::Home::new(script.clone())
    }

    /// File and text of the script that runs.
    fn running(&self) -> (String, String) {
        self.script
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }

    /// The values of parameters as they are now.
    fn settings(&self) -> BTreeMap<String, String> {
        let settings = self.settings.lock();
        settings.unwrap_or_else(|e| e.into_inner()).clone()
    }
}

/// What is needed to turn closures into observables.
struct Call<'a> {
    pub context: &'a Arc<Context>,
    pub native: &'a NativeCallContext<'a>,
}

/// An interpreter with everything bound.
pub struct Interpreter {
    engine: Engine,
    /// What can be called.
    items: Vec<Item>,
    context: Arc<Context>,
    scope: Scope<'static>,
    functions: rhai::AST,
    /// What earlier calls imported, by alias.
    imports: Vec<(rhai::ImmutableString, Arc<rhai::Module>)>,
    /// The texts of earlier calls, by file, and the files where their functions stand.
    texts: BTreeMap<String, String>,
    homes: BTreeMap<String, String>,
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // It knows the context that holds it: both would live on, and with them the claim on the folder.
        let closures = self.context.closures.lock();
        closures.unwrap_or_else(|e| e.into_inner()).take();
    }
}

impl Interpreter {
    /// An interpreter for one session.
    pub fn new(session: Session, settings: BTreeMap<String, String>) -> Self {
        let context = Context::new(session, settings, Arc::default(), Default::default());
        let (engine, items) = bind_main(&context);
        Self {
            engine,
            items,
            context,
            scope: Scope::new(),
            functions: rhai::AST::empty(),
            imports: Vec::new(),
            texts: BTreeMap::new(),
            homes: BTreeMap::new(),
        }
    }

    /// Go on with another session; variables, functions and settings stay.
    pub fn set_session(&mut self, session: Session) {
        let (library, printed) = (self.context.library.clone(), self.printed());
        let spent = self.context.spent.clone();
        self.context = Context::new(session, self.settings(), library, spent);
        *self
            .context
            .printed
            .lock()
            .unwrap_or_else(|e| e.into_inner()) = printed;
        (self.engine, self.items) = bind_main(&self.context);
    }

    /// Values of parameters, as `--set name=value` gives them.
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.context.settings()
    }

    /// Give a parameter a value, as `--set name=value` does, for scripts to come.
    pub fn set_parameter(&mut self, name: &str, value: &str) {
        let mut settings = self
            .context
            .settings
            .lock()
            .unwrap_or_else(|e| e.into_inner());
        settings.insert(name.into(), value.into());
    }

    /// Give all parameters values.
    pub fn set_parameters(&mut self, settings: BTreeMap<String, String>) {
        let own = self.context.settings.lock();
        *own.unwrap_or_else(|e| e.into_inner()) = settings;
    }

    /// Whether a variable, a function or what was imported has this name.
    pub fn defines(&self, name: &str) -> bool {
        self.scope.contains(name)
            || self.functions.iter_functions().any(|f| f.name == name)
            || self.imports.iter().any(|(alias, _)| alias == name)
    }

    /// The variables as they are now, to go back to.
    pub fn variables_now(&self) -> Variables {
        Variables(self.scope.clone())
    }

    /// Go back to the variables of another time.
    pub fn set_variables(&mut self, variables: Variables) {
        self.scope = variables.0;
    }

    /// Forget all variables, functions and imports.
    pub fn reset(&mut self) {
        self.scope = Scope::new();
        self.functions = rhai::AST::empty();
        self.imports.clear();
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.context.session
    }

    /// What was printed so far.
    pub fn printed(&self) -> String {
        self.context
            .printed
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }

    /// A value as `print` shows it.
    pub fn show(&self, value: &Dynamic) -> String {
        let mut scope = Scope::new();
        scope.push_dynamic("value", value.clone());
        let text = self
            .engine
            .eval_expression_with_scope::<String>(&mut scope, "value.to_string()");
        let text = text.unwrap_or_else(|_| value.to_string());
        crate::error::printable(&text).into()
    }

    /// The figure that a value is, if it is one.
    pub fn figure(&self, value: &Dynamic) -> Option<crate::plot::Figure> {
        value.clone().try_cast()
    }

    /// A value as JSON: numbers, strings, arrays, maps, runs and summaries as such, anything else as its text.
    pub fn json(&self, value: &Dynamic) -> serde_json::Value {
        convert::to_json(value, &|x| self.show(x))
    }

    /// Run a script; variables live on until the next call. `file` is what errors call it.
    pub fn run(&mut self, file: &str, source: &str) -> std::result::Result<Dynamic, Failure> {
        let known = self.functions.iter_functions();
        let known: Vec<String> = known.map(|f| f.name.into()).collect();
        let (mut ast, moved) = calls::compile(&self.engine, &self.scope, source, &known)
            .map_err(|e| Failure::parse(file, source, &e))?;
        self.context.library.note_moved(file, moved);
        self.context.told.clear();
        self.texts.insert(file.into(), source.into());
        for f in ast.iter_functions() {
            self.homes.insert(f.name.into(), file.into());
        }
        // Functions and imports of earlier calls stay known, as variables do.
        ast = self.functions.merge(&ast);
        ast.set_source(file);
        *self
            .context
            .script
            .lock()
            .unwrap_or_else(|e| e.into_inner()) = (file.into(), source.into());
        self.functions = ast.clone_functions_only();
        self.evaluate_tree(&ast).map_err(|e| {
            let earlier = |other: &str| self.texts.get(other).cloned();
            let text = |other: &str| match other == file {
                true => Some(source.to_string()),
                false => self.context.library.text(other).or_else(|| earlier(other)),
            };
            let around = report::Around {
                file,
                text: &text,
                original: &|file, position| self.context.library.original(file, position),
                items: &self.known_items(),
                own: &|name| ast.iter_functions().any(|f| f.name == name),
                home: &|name| self.homes.get(name).cloned(),
            };
            Failure::runtime(&around, &e)
        })
    }

    /// As Rhai evaluates a script, but that imports are there before and are kept afterwards.
    #[allow(deprecated)] // Marked so to say that it may change with a new version.
    fn evaluate_tree(&mut self, ast: &rhai::AST) -> Bound<Dynamic> {
        let global = &mut self.engine.new_global_runtime_state();
        for (alias, module) in &self.imports {
            global.push_import(alias.clone(), module.clone());
        }
        global.source = ast.source().map(Into::into);
        global.lib.push(ast.shared_lib().clone());
        let caches = &mut rhai::Caches::new();
        let statements = ast.statements();
        let result = self
            .engine
            .eval_statements_raw(global, caches, &mut self.scope, statements);
        self.imports.clear();
        // The last one of a name is the one that is meant.
        for (alias, module) in global.iter_imports_raw() {
            if !self.imports.iter().any(|(known, _)| known == alias) {
                self.imports.push((alias.clone(), module.clone()));
            }
        }
        self.imports.reverse();
        result
    }

    /// Whether a name is that of a variable, a function or a namespace.
    pub fn knows(&self, name: &str) -> bool {
        let is = |item: &Item| item.name == name || item.namespace == name;
        self.defines(name) || self.known_items().iter().any(is)
    }

    /// What can be called: what is bound, and what was imported under the names it has here.
    fn known_items(&self) -> Cow<'_, [Item]> {
        if self.imports.is_empty() {
            return Cow::Borrowed(&self.items);
        }
        let mut out = self.items.clone();
        for (alias, module) in &self.imports {
            let items = self.context.library.items(module.id().unwrap_or(""));
            out.extend(items.into_iter().map(|i| i.called(alias)));
        }
        Cow::Owned(out)
    }

    /// The scripts of one's own that were imported, by file.
    pub fn imported(&self) -> BTreeMap<String, String> {
        self.context.library.own_scripts().into_iter().collect()
    }
}

/// Everything a script can call, in the order it is bound.
pub fn all_items() -> Vec<Item> {
    bind(&Context::new(
        Session::new("runs".into()),
        BTreeMap::new(),
        Arc::default(),
        Default::default(),
    ))
    .1
}

/// The engine of scripts: an interrupt stops it.
fn bind_main(context: &Arc<Context>) -> (Engine, Vec<Item>) {
    let (mut engine, items) = bind(context);
    let of = context.clone();
    engine.on_progress(move |_| {
        let interrupted = session::interrupted().then(|| Dynamic::from(report::INTERRUPTED));
        interrupted.or_else(|| of.spent.ends(&of.session))
    });
    (engine, items)
}

/// How long a closure goes on after an interrupt: a record that is being made is finished, so that the run can be saved.
const GRACE: std::time::Duration = std::time::Duration::from_millis(500);

/// The engine of closures on other threads: an interrupt stops what does not end soon.
fn bind_closures(context: &Arc<Context>) -> Arc<Engine> {
    let mut engine = bind(context).0;
    // The context keeps this engine.
    let of = Arc::downgrade(context);
    engine.on_progress(move |_| {
        let late = session::interrupted_for().is_some_and(|t| t > GRACE);
        let late = late.then(|| Dynamic::from(report::INTERRUPTED));
        late.or_else(|| of.upgrade().and_then(|of| of.spent.ends(&of.session)))
    });
    Arc::new(engine)
}

/// Let functions see the constants of the script by their names, without Rhai's `global::`.
#[allow(deprecated)] // Marked so to say that it may change with a new version.
fn constants(engine: &mut Engine) {
    engine.on_var(|name, known, context| {
        if known > 0 || context.scope().contains(name) {
            return Ok(None);
        }
        let all = context.global_runtime_state().constants.as_ref();
        let found = all.and_then(|all| all.read().ok()?.get(name).cloned());
        Ok(found)
    });
}

thread_local! {
    /// Whether the last token that was read on this thread can be followed by the key of a map.
    static BEFORE_KEY: Cell<bool> = const { Cell::new(false) };
}

/// Let `until`, a word of Rhai's loops, be a key of a map without quotes: the option of that name.
#[allow(deprecated)] // Marked so to say that it may change with a new version.
fn until_as_key(engine: &mut Engine) {
    engine.on_parse_token(|token, _, _| {
        let follows = matches!(token, Token::MapStart | Token::Comma);
        match (BEFORE_KEY.replace(follows), token) {
            // That of a loop follows a brace.
            (true, Token::Until) => Token::Identifier(Box::new("until".into())),
            (_, token) => token,
        }
    });
}

/// An engine with everything bound but what ends a script, and the reference of what was bound.
fn bind(context: &Arc<Context>) -> (Engine, Vec<Item>) {
    // The checksums of what a switch compares with are in the fingerprints of closures. Fails where it is set.
    let _ = rhai::config::hashing::set_hashing_seed(Some([2, 3, 5, 7]));
    let mut b = Binder::new(context);
    constants(&mut b.engine);
    until_as_key(&mut b.engine);
    // Debug builds of Rhai allow far less; a script must not depend on how we were compiled.
    b.engine.set_max_call_levels(64);
    b.engine.set_max_expr_depths(128, 64);
    if context.session.untrusted {
        limits::set(&mut b.engine);
    }
    b.engine.set_module_resolver(library::Resolver {
        library: context.library.clone(),
        out: context.session.out.clone(),
    });
    let printer = context.clone();
    b.engine.on_print(move |text| {
        if !printer.session.leads() {
            return;
        }
        let text = &*crate::error::printable(text);
        printer.session.console.print(text);
        let mut printed = printer.printed.lock().unwrap_or_else(|e| e.into_inner());
        printed.push_str(text);
        printed.push('\n');
        printer.spent.say(text.len());
    });
    let printer = context.clone();
    b.engine.on_debug(move |text, file, at| {
        if !printer.session.leads() {
            return;
        }
        let file = file.unwrap_or("script");
        let place = at.line().map_or(String::new(), |line| format!(":{line}"));
        let text = format!("{file}{place}: {text}");
        let text = crate::error::printable(&text);
        printer.spent.say(text.len());
        printer.session.console.remark(&text);
    });
    b.object::<report::Native>("Error", ToString::to_string);
    registry::constructors(&mut b);
    custom::bind(&mut b);
    registry::runs(&mut b);
    verbs::bind(&mut b);
    data::bind(&mut b);
    objects::bind(&mut b);
    registry::coefficients(&mut b);
    registry::evidences(&mut b);
    verbs::models(&mut b);
    runs::approximations(&mut b);
    registry::populations(&mut b);
    runs::populations(&mut b);
    // The reference has methods in the order in which they are bound.
    registry::objects(&mut b);
    registry::of_populations(&mut b);
    runs::bind(&mut b);
    runs::draws(&mut b);
    reports::bind(&mut b);
    expressions::bind(&mut b);
    cells::bind(&mut b);
    grids::bind(&mut b);
    learning::bind(&mut b);
    runs::ladders(&mut b);
    plots::ladders(&mut b);
    values::bind(&mut b);
    closure::bind(&mut b);
    tensors::bind(&mut b);
    plots::bind(&mut b);
    shown::bind(&mut b);
    helpers::bind(&mut b);
    room::bind(&mut b);
    integers::bind(&mut b);
    b.finish()
}

/// Errors of the program, as errors of the script: the place is filled in by the interpreter, the original kept for exit codes.
fn raise(e: anyhow::Error) -> Box<EvalAltResult> {
    let native = Dynamic::from(report::Native(Arc::new(e)));
    Box::new(EvalAltResult::ErrorRuntime(native, rhai::Position::NONE))
}

/// `Result` of the program as the result of a bound function.
trait OrRaise<T> {
    fn or_raise(self) -> Bound<T>;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> Bound<T> {
        self.map_err(raise)
    }
}
