//! Verbs: what scripts and Rust code call at top level, each declared once.
//!
//! A [`Verb`] has its name, its arguments, its options, its documentation, an example and its function. The script's function in all its
//! forms, the checks of options, the reference, completion and the function of Rust code come from it.

use crate::error::Result;
use crate::object::{Held, Object};
use crate::options::{Kind as OptionKind, OptionMap, Options, Spec, Value, optional};
use anyhow::Context;
use serde_json::Value as Json;
use std::any::{Any, TypeId};
use std::path::Path;

/// A verb: `name(arguments…, #{ options }) -> R`. `S` is what it needs of the session, `A` its arguments, by form if there are several.
pub struct Verb<S: 'static, A: 'static, R: 'static> {
    /// Name, with its namespace if it has one, or with the object that it is a method of: `model.load`.
    pub name: &'static str,
    /// Names of the arguments, of the form that the reference shows.
    pub arguments: &'static [&'static str],
    /// All options.
    pub options: &'static [Spec],
    /// Documentation: the first line says what it does; formulae with their source.
    pub doc: &'static str,
    /// A call that runs, for the reference; it is executed as a test. Empty if there is none.
    pub example: &'static str,
    /// Its function.
    pub call: Call<S, A, R>,
}

/// The option of verbs whose work can be continued: [`Verb::run`] looks after it.
pub const RESUME: Spec = optional(
    "resume",
    OptionKind::Text,
    "a new run begins",
    "Folder of a run that was interrupted or killed, as \"runs/notebook-1/sample-1\": it goes on there, under its name and bit for bit, if \
     the target, the sampler and all other options are the same. One that is finished is returned as it is.",
);

/// What a verb needs of a session: all of it, or nothing where no run is started.
pub trait Needed: Sized {
    /// That of the [current](crate::simulation::session::Session::current) session of this process, which is made only if something of it
    /// is needed.
    fn current() -> Self;

    /// The same, to continue the run in this folder.
    ///
    /// # Errors
    /// If there is no run to be continued.
    fn continuing(&self, run: &Path) -> Result<Self>;
}

/// The function of a verb.
pub enum Call<S, A, R> {
    /// Of arguments, checked options and what it needs of the session.
    Checked(fn(A, &Options, &S) -> Result<R>),
    /// The same, with options that are checked by other tables than the verb's own.
    Given(fn(A, OptionMap, &S) -> Result<R>),
}

impl<S: Needed, A: Arguments, R: Outcome> Verb<S, A, R> {
    /// Whether it takes a trailing `#{…}`.
    pub fn takes_options(&self) -> bool {
        !self.options.is_empty() || matches!(self.call, Call::Given(_))
    }

    /// How a script calls it.
    pub fn signature(&self) -> String {
        let options = self.takes_options().then_some("#{ options }");
        // What a method is called on stands before its name.
        let first = usize::from(self.name.contains('.'));
        let arguments = self.arguments.iter().skip(first).copied();
        let parts: Vec<&str> = arguments.chain(options).collect();
        format!("{}({}) -> {}", self.name, parts.join(", "), R::NAME)
    }

    /// Check the options and call it.
    ///
    /// # Errors
    /// If an option is unknown, missing, of another kind or out of its range, and those of the verb itself.
    pub fn run(&self, arguments: A, given: OptionMap, session: &S) -> Result<R> {
        match self.call {
            Call::Checked(f) => {
                let o = Options::check(self.name, self.options, given.into_pairs())?;
                let Some(Value::Text(folder)) = o.get(RESUME.name) else {
                    return f(arguments, &o, session);
                };
                let continued = session.continuing(Path::new(folder));
                let what = || format!("{}: option '{}'", self.name, RESUME.name);
                f(
                    arguments,
                    &o.with(RESUME.name, None),
                    &continued.with_context(what)?,
                )
            }
            Call::Given(f) => f(arguments, given, session),
        }
    }
}

/// What a verb returns: an object, a text, or numbers and texts by name.
pub trait Outcome: Any + Clone + Send + Sync {
    /// Name of the type, as the reference has it.
    const NAME: &'static str;
}

impl<H: Held> Outcome for H {
    const NAME: &'static str = <H::Object as Object>::NAME;
}

impl Outcome for String {
    const NAME: &'static str = "string";
}

impl Outcome for Json {
    const NAME: &'static str = "map";
}

/// What a script may write in the place of an argument.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A value of this type.
    Held(TypeId),
    /// A string.
    Text,
    /// A whole number.
    Int,
    /// An array.
    List,
    /// Anything; the verb says what is wrong with it.
    Any,
}

/// Where the arguments of a call come from, one after the other.
pub trait Source {
    /// The next one, an object of this type.
    fn held<H: Held>(&mut self) -> Result<H>;

    /// The next one, whatever it is, as options see it.
    fn value(&mut self) -> Value;
}

/// One argument of a verb.
pub(crate) trait Argument: Sized {
    /// What a script may write.
    const KIND: fn() -> Kind;

    /// The next argument of a call.
    fn take(from: &mut impl Source) -> Result<Self>;
}

impl<H: Held> Argument for H {
    const KIND: fn() -> Kind = || Kind::Held(TypeId::of::<H>());

    fn take(from: &mut impl Source) -> Result<Self> {
        from.held()
    }
}

macro_rules! argument {
    ($($kind:ty => $of:ident, $($pattern:pat => $taken:expr),+;)*) => {$(
        impl Argument for $kind {
            const KIND: fn() -> Kind = || Kind::$of;

            fn take(from: &mut impl Source) -> Result<Self> {
                match from.value() {
                    $($pattern => Ok($taken),)+
                    #[allow(unreachable_patterns)]
                    other => anyhow::bail!("an argument is {}", other.describe()),
                }
            }
        }
    )*};
}
argument! {
    String => Text, Value::Text(x) => x;
    i64 => Int, Value::Int(x) => x;
    Vec<Value> => List, Value::List(x) => x;
    Value => Any, x => x;
}

/// The arguments of a verb, in one or several forms.
pub trait Arguments: Sized {
    /// The kinds of each form.
    fn forms() -> Vec<Vec<Kind>>;

    /// Those of a call in the form of this number.
    fn take(form: usize, from: &mut impl Source) -> Result<Self>;
}

macro_rules! arguments {
    ($($name:ident),*) => {
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            fn forms() -> Vec<Vec<Kind>> {
                vec![vec![$($name::KIND()),*]]
            }

            fn take(_: usize, _from: &mut impl Source) -> Result<Self> {
                Ok(($($name::take(_from)?,)*))
            }
        }
    };
}
arguments!();
arguments!(A);
arguments!(A, B);
arguments!(A, B, C);

/// Arguments of one form or of another.
pub enum Either<A, B> {
    /// Those of the form that the reference shows.
    First(A),
    /// Those of the other.
    Second(B),
}

impl<A, B> From<A> for Either<A, B> {
    fn from(arguments: A) -> Self {
        Self::First(arguments)
    }
}

impl<A: Arguments, B: Arguments> Arguments for Either<A, B> {
    fn forms() -> Vec<Vec<Kind>> {
        [A::forms(), B::forms()].concat()
    }

    fn take(form: usize, from: &mut impl Source) -> Result<Self> {
        match form.checked_sub(A::forms().len()) {
            None => A::take(form, from).map(Self::First),
            Some(other) => B::take(other, from).map(Self::Second),
        }
    }
}
