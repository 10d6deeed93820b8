//! Typed builders: everything a script constructs, for Rust code whose editor completes each option with its documentation.
//!
//! `sampler::Sgld::new().step(1e-5).batch(100).build()?` is a script's `sampler::sgld(#{ step: 1e-5, batch: 100 })`, and
//! `verbs::sweep(&target, &sampler).temperatures([1e-4, 1e-3]).steps(1000).run(&session)?` its `sweep`. Names, kinds and documentation are those
//! of the tables of options: `table.rs` is [generated](generate()) from them, and a test compares the two. What is given is checked as a
//! script's options are, when `build` or `run` is called.

mod generate;
mod kinds;
mod table;

pub use generate::generate;
pub use kinds::{
    Anything, Count, Counts, Flag, Handle, Handles, Number, Numbers, Rate, When, Words,
};
pub use table::*;

/// Builders of one namespace: for each entry its documentation, its name in Rust and in scripts, its table, and its options with the kinds that
/// they take.
macro_rules! builders {
    ($namespace:literal, $made:ty;
    $($(#[$doc:meta])* $name:ident = $script:literal of $registry:path {
        $($(#[$about:meta])* $option:ident = $key:literal: $kind:path,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Default)]
        pub struct $name($crate::options::Given);

        impl $name {
            /// A builder with no option given.
            pub fn new() -> Self {
                Self::default()
            }

            $(
                $(#[$about])*
                pub fn $option(self, value: impl $kind) -> Self {
                    Self(self.0.with($key, value))
                }
            )*

            /// The object.
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
    ($($(#[$doc:meta])* $name:ident, $function:ident($($argument:ident: $type:ty),*) = $verb:path => $made:ty {
        $($(#[$about:meta])* $option:ident = $key:literal: $kind:path,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            $($argument: $type,)*
            given: $crate::options::Given,
        }

        $(#[$doc])*
        pub fn $function($($argument: &$type),*) -> $name {
            $name {
                $($argument: $argument.clone(),)*
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

            /// Call it in a session.
            ///
            /// # Errors
            /// If an option is missing, of another kind or out of its range, and those of the verb.
            pub fn run(self, session: &impl AsRef<$crate::simulation::session::Session>) -> $crate::error::Result<$made> {
                let session: &$crate::simulation::session::Session = session.as_ref();
                let arguments = ($(self.$argument,)*).into();
                $verb.run(arguments, self.given, session.as_ref())
            }
        }
    )*};
}
use calls;
