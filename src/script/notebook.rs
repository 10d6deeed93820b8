//! Variables between Rust code and an interpreter: handles are shared, not copied.

use super::{Context, Interpreter};
use crate::error::{Result, did_you_mean};
use crate::object::Shown;
use anyhow::anyhow;
use rhai::{Array, Dynamic};
use std::any::Any;
use std::sync::Arc;

/// What a script's variable may hold: a handle such as `Arc<Run>`, or a plain value.
pub trait Variable: Any + Clone + Send + Sync {}

impl<T: Any + Clone + Send + Sync> Variable for T {}

/// A value of a script, with a way to look at it.
#[derive(Clone)]
pub struct Scripted(Dynamic);

impl Scripted {
    /// Whether it is nothing, as the value of a script that ends in a statement.
    pub fn is_nothing(&self) -> bool {
        self.0.is_unit()
    }

    /// It as a Rust type, if it is one: a handle as the script holds it, a number, a string, a vector of numbers or strings.
    pub fn get<T: Variable>(&self) -> Option<T> {
        out(&self.0)
    }
}

impl Interpreter {
    /// What its runs share with those that Rust code starts.
    pub fn context(&self) -> Arc<Context> {
        self.context.clone()
    }

    /// A variable. Handles come as they are, so that `Arc::ptr_eq` holds; arrays of numbers are copied.
    pub fn get<T: Variable>(&self, name: &str) -> Result<T> {
        let value = self.scope.get(name).ok_or_else(|| {
            let known: Vec<_> = self.scope.iter().map(|(n, ..)| n.to_string()).collect();
            anyhow!(
                "the session has no variable '{name}'{}",
                did_you_mean(name, known.iter().map(String::as_str))
            )
        })?;
        out(value).ok_or_else(|| {
            anyhow!(
                "the variable '{name}' is {}, not {}",
                super::words::a_kind(self.engine.map_type_name(value.type_name())),
                super::words::a_kind(self.engine.map_type_name(std::any::type_name::<T>()))
            )
        })
    }

    /// Make or replace a variable.
    pub fn set<T: Variable>(&mut self, name: &str, value: T) -> Result<()> {
        let letter = |c: char| c.is_alphanumeric() || c == '_';
        anyhow::ensure!(
            name.chars().all(letter) && name.starts_with(|c: char| c.is_alphabetic() || c == '_'),
            "\"{name}\" cannot be the name of a variable; use letters, digits and '_', not starting with a digit"
        );
        anyhow::ensure!(
            self.scope.is_constant(name) != Some(true),
            "'{name}' is a constant of the session"
        );
        self.scope.set_or_push(name, into(value));
        Ok(())
    }

    /// Run a script as [`run`](Self::run) does; its value can be taken out as a Rust type.
    pub fn evaluate(
        &mut self,
        file: &str,
        source: &str,
    ) -> std::result::Result<Scripted, super::Failure> {
        self.run(file, source).map(Scripted)
    }

    /// A value in all the ways it can be shown.
    pub fn shown_of(&self, value: &Scripted) -> Shown {
        self.shown(&value.0)
    }
}

/// A script's value as a Rust type.
fn out<T: Variable>(value: &Dynamic) -> Option<T> {
    if let Some(x) = value.read_lock::<T>() {
        return Some(x.clone());
    }
    // What scripts hold in a form of their own.
    fn same<T: Variable>(x: impl Any) -> Option<T> {
        (&x as &dyn Any).downcast_ref::<T>().cloned()
    }
    let number = |x: &Dynamic| x.as_float().ok().or(x.as_int().ok().map(|i| i as f64));
    if let Some(text) = value.read_lock::<rhai::ImmutableString>() {
        return same(text.to_string());
    }
    if let Some(list) = value.read_lock::<Array>() {
        let numbers: Option<Vec<f64>> = list.iter().map(number).collect();
        if let Some(found) = numbers.and_then(same) {
            return Some(found);
        }
        let string = |x: &Dynamic| x.clone().into_string().ok();
        let strings: Option<Vec<String>> = list.iter().map(string).collect();
        return strings.and_then(same);
    }
    let whole = value.as_int().ok();
    number(value)
        .and_then(same)
        .or_else(|| whole.and_then(|i| same(usize::try_from(i).ok()?)))
        .or_else(|| whole.and_then(|i| same(u64::try_from(i).ok()?)))
}

/// A Rust value in the form that scripts know.
fn into<T: Variable>(value: T) -> Dynamic {
    let any = &value as &dyn Any;
    macro_rules! number {
        ($($kind:ty),* => $as:ty) => {
            $(if let Some(x) = any.downcast_ref::<$kind>() {
                return Dynamic::from(*x as $as);
            })*
        };
    }
    number!(i8, i16, i32, u8, u16, u32, usize, u64 => i64);
    number!(f32 => f64);
    if let Some(x) = any.downcast_ref::<&'static str>() {
        return Dynamic::from(x.to_string());
    }
    macro_rules! list {
        ($($kind:ty),*) => {
            $(if let Some(x) = any.downcast_ref::<Vec<$kind>>() {
                return x.iter().cloned().map(into).collect::<Array>().into();
            })*
        };
    }
    list!(f64, f32, i64, i32, usize, String, &'static str);
    Dynamic::from(value)
}
