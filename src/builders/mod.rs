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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::session::Session;
    use std::path::PathBuf;

    #[test]
    fn builders_are_those_of_the_tables() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/builders/table.rs");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, generate()).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap();
        assert!(
            there == generate(),
            "src/builders/table.rs is not what the tables of options say; write it anew by `UPDATE=1 cargo test builders`"
        );
    }

    #[test]
    fn a_builder_checks_what_a_script_checks() {
        let wrong = sampler::Sgld::new().step(-1.0).batch(10).build();
        let wrong = wrong.err().unwrap().to_string();
        assert_eq!(
            wrong,
            "sampler::sgld: option 'step' is -1.0, but must be > 0"
        );
        let missing = model::Mlp::new().build().err().unwrap().to_string();
        assert!(missing.contains("model::mlp needs the option 'layers'"));
    }

    #[test]
    fn verbs_take_their_options_one_by_one() {
        let session = Session::new(std::env::temp_dir());
        let banana = potential::Gaussian::new().dim(2).build().unwrap();
        let prior = prior::Gaussian::new().precision(0.1).build().unwrap();
        let o = crate::options! { prior: &prior };
        let target = crate::target::build::TARGET
            .run(crate::verb::Either::Second((banana,)), o, &())
            .unwrap();
        let grid = verbs::posterior(&target)
            .x([-1.0, 1.0])
            .y([-1.0, 1.0])
            .cells(8)
            .run(&session)
            .unwrap();
        assert_eq!(grid.shape(), (8, 8));
    }
}
