//! Typed builders: everything a script constructs and calls, for Rust code whose editor completes each option with its documentation.
//!
//! `sampler::Sgld::new().step(1e-5).batch(100).build()?` is a script's `sampler::sgld(#{ step: 1e-5, batch: 100 })`, and
//! `sweep(&target, &sampler).temperatures([1e-4, 1e-3]).steps(1000).run()?` its `sweep`. Options that must be given are arguments of `new`.
//! Names, kinds and documentation are those of the tables of options: `table.rs` is [generated](generate()) from them, and a test compares
//! the two. Options are checked as a script's are, when `build` or `run` is called.

mod generate;
mod kinds;
mod table;

use kinds::one_of;

use crate::error::Result;
use crate::simulation::run::Run;
use crate::verb::{Needed, Verb};
pub use generate::generate;
pub use kinds::{
    Anything, Count, Counts, Entries, Flag, Handle, Handles, Number, Numbers, OneOf, Rate, Takes,
    When, Words,
};
use std::path::Path;
use std::sync::Arc;
pub use table::*;

/// Opens a run that was saved before, finished or not, with the draws it has so far.
///
/// # Errors
/// If the folder has no run, or its files cannot be read.
pub fn open(folder: impl AsRef<Path>) -> Result<Arc<Run>> {
    Run::open(folder.as_ref()).map(Arc::new)
}

/// Numbers from first to last, both included and > 0, with a constant ratio of neighbours.
pub fn logspace(first: f64, last: f64, count: usize) -> Vec<f64> {
    spaced((first, last), count, |t| first * (last / first).powf(t))
}

/// Numbers from first to last, both included, with a constant difference of neighbours.
pub fn linspace(first: f64, last: f64, count: usize) -> Vec<f64> {
    spaced((first, last), count, |t| first + (last - first) * t)
}

/// The ends are the numbers themselves; `between` has those of the parts 0 < t < 1 of the way.
fn spaced((first, last): (f64, f64), count: usize, between: impl Fn(f64) -> f64) -> Vec<f64> {
    let at = |i: usize| match i {
        0 => first,
        i if i + 1 == count => last,
        i => between(i as f64 / (count - 1) as f64),
    };
    (0..count).map(at).collect()
}

/// What a verb needs of the session of this process.
fn needed<S: Needed, A, R>(_: &Verb<S, A, R>) -> S {
    S::current()
}

/// Builders of one namespace: for each entry its documentation, its name in Rust and in scripts, its table, and its options with the kinds that
/// they take.
macro_rules! builders {
    ($namespace:literal, $made:ty;
    $($(#[$doc:meta])* $name:ident = $script:literal($($needed:ident = $needed_key:literal: $needed_kind:path),*) of $registry:path {
        $($(#[$about:meta])* $option:ident = $key:literal: $kind:path,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name($crate::options::OptionMap);

        // What must be given has no default.
        #[allow(clippy::new_without_default)]
        impl $name {
            /// A builder with what must be given.
            pub fn new($($needed: impl $needed_kind),*) -> Self {
                Self($crate::options::OptionMap::new()$(.with($needed_key, $needed))*)
            }

            $(
                $(#[$about])*
                pub fn $option(self, value: impl $kind) -> Self {
                    Self(self.0.with($key, value))
                }
            )*

            /// Builds the object.
            ///
            /// # Errors
            /// If an option is missing, of another kind or out of its range, and those of the constructor.
            pub fn build(self) -> $crate::error::Result<$made> {
                $crate::options::find($namespace, $registry, $script)?.make($namespace, self.0)
            }
        }
    )*};
}
use builders;

/// Builders of verbs: for each its documentation, its names, its arguments, and its options with the kinds that they take.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident, $function:ident($($argument:ident: $type:ty),*) = $form:path, $verb:path => $made:ty {
        $($(#[$about:meta])* $option:ident = $key:literal: $kind:path,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            $($argument: $type,)*
            given: $crate::options::OptionMap,
        }

        $(#[$doc])*
        pub fn $function($($argument: impl Takes<$type>),*) -> $name {
            $name {
                $($argument: $argument.take(),)*
                given: Default::default(),
            }
        }

        impl $name {
            $(
                $(#[$about])*
                pub fn $option(mut self, value: impl $kind) -> Self {
                    self.given = self.given.with($key, value);
                    self
                }
            )*

            /// Calls it in the [current](crate::simulation::session::Session::current) session of this process.
            ///
            /// # Errors
            /// If an option is missing, of another kind or out of its range, and those of the verb.
            pub fn run(self) -> $crate::error::Result<$made> {
                $verb.run($form(($(self.$argument,)*)), self.given, &needed(&$verb))
            }

            /// Calls it in a session of yours.
            ///
            /// # Errors
            /// If an option is missing, of another kind or out of its range, and those of the verb.
            pub fn run_in(self, session: &impl AsRef<$crate::simulation::session::Session>) -> $crate::error::Result<$made> {
                let session: &$crate::simulation::session::Session = session.as_ref();
                $verb.run($form(($(self.$argument,)*)), self.given, session.as_ref())
            }
        }
    )*};
}
use calls;

impl crate::target::Target {
    /// A builder of the distribution of a network's weights: [`verbs::target`].
    pub fn of(
        model: impl Takes<Arc<dyn crate::model::Model>>,
        dataset: impl Takes<Arc<crate::dataset::Dataset>>,
    ) -> verbs::Target {
        verbs::target(model, dataset)
    }

    /// A builder of the distribution exp(-U/T) of a potential: [`verbs::target_of_potential`].
    pub fn of_potential(
        potential: impl Takes<Arc<dyn crate::target::Potential>>,
    ) -> verbs::TargetOfPotential {
        verbs::target_of_potential(potential)
    }
}
