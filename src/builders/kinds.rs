//! What Rust code may write where a table of options says a number, a schedule, a list or an object.

use crate::options::{OptionMap, Value};
use crate::schedule::Schedule;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::trained::Trained;
use crate::simulation::until::Until;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use std::sync::Arc;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $($type:ty),*;)*) => {$(
        $(#[$doc])*
        pub trait $kind: Into<Value> {}
        $(impl $kind for $type {})*
    )*};
}
kinds! {
    /// A number.
    Number: f64, f32, i32, i64, u32, u64, usize;
    /// A whole number.
    Count: i32, i64, u32, u64, usize;
    /// A number or a schedule.
    Rate: f64, f32, i32, i64, u32, u64, usize, Schedule, Arc<Schedule>, &Arc<Schedule>;
    /// A whole number, for "every n steps", or a trigger.
    When: i32, i64, u32, u64, usize, Trigger, Arc<Trigger>, &Arc<Trigger>;
    /// True or false.
    Flag: bool;
    /// Entries of a map.
    Entries: OptionMap, Until;
    /// A string.
    Words: &str, String, &String;
}

/// One of the [choices](super::choices) of this type, or its name in scripts.
pub trait OneOf<T>: Into<Value> {}

impl<T> OneOf<T> for &str {}
impl<T> OneOf<T> for String {}
impl<T> OneOf<T> for &String {}

/// Types of what options may be one of, with the names in scripts.
macro_rules! one_of {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`\"", $word, "\"` of scripts.")] $variant,)*
        }

        impl From<$name> for $crate::options::Value {
            fn from(choice: $name) -> Self {
                match choice {
                    $($name::$variant => $word.into(),)*
                }
            }
        }

        impl $crate::builders::OneOf<$name> for $name {}
    )*};
}
pub(super) use one_of;

macro_rules! lists {
    ($($(#[$doc:meta])* $kind:ident of $item:ident;)*) => {$(
        $(#[$doc])*
        pub trait $kind: Into<Value> {}
        impl<T: $item> $kind for Vec<T> {}
        impl<T: $item + Clone> $kind for &Vec<T> {}
        impl<T: $item + Clone> $kind for &[T] {}
        impl<T: $item, const N: usize> $kind for [T; N] {}
    )*};
}
lists! {
    /// Several numbers.
    Numbers of Number;
    /// Several whole numbers.
    Counts of Count;
}

/// A handle to an object of this type, or to what stands for one.
pub trait Handle<T: ?Sized>: Into<Value> {}

impl<T: ?Sized> Handle<T> for Arc<T> where Arc<T>: Into<Value> {}
impl<T: ?Sized> Handle<T> for &Arc<T> where for<'a> &'a Arc<T>: Into<Value> {}
impl Handle<Parameters> for &Arc<Run> {}
impl Handle<Parameters> for &Arc<Trained> {}
impl Handle<Parameters> for &Arc<Smc> {}

/// Several handles.
pub trait Handles<T: ?Sized>: Into<Value> {}

impl<T: ?Sized, H: Handle<T>> Handles<T> for Vec<H> {}
impl<T: ?Sized, H: Handle<T> + Clone> Handles<T> for &Vec<H> {}
impl<T: ?Sized, H: Handle<T>, const N: usize> Handles<T> for [H; N] {}

/// Anything that options may hold; the documentation says what.
pub trait Anything: Into<Value> {}

impl<T: Into<Value>> Anything for T {}

/// What may be given as an argument of this type: a handle or a reference to one, a string, or what an option may hold.
pub trait Takes<T> {
    /// The argument.
    fn take(self) -> T;
}

impl<T: ?Sized> Takes<Arc<T>> for Arc<T> {
    fn take(self) -> Arc<T> {
        self
    }
}

impl<T: ?Sized> Takes<Arc<T>> for &Arc<T> {
    fn take(self) -> Arc<T> {
        self.clone()
    }
}

impl Takes<String> for &str {
    fn take(self) -> String {
        self.into()
    }
}

impl<T: Into<Value>> Takes<Value> for T {
    fn take(self) -> Value {
        self.into()
    }
}
