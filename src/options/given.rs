//! Options as Rust code gives them: [`options!`](crate::options!) in the place of a script's `#{…}`.

use super::Value;
use std::sync::Arc;

/// Options by name, not yet checked.
#[derive(Clone, Default)]
pub struct OptionMap(Vec<(String, Value)>);

impl OptionMap {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more; of two with the same name the later one holds.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.retain(|(n, _)| n != name);
        self.0.push((name.into(), value.into()));
        self
    }

    /// Their names and values, for [`Options::check`](super::Options::check).
    pub fn into_pairs(self) -> Vec<(String, Value)> {
        self.0
    }
}

impl FromIterator<(String, Value)> for OptionMap {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Options by name, as a script's `#{ … }`: `options! { batch: 100, step: 1e-4 }`.
///
/// Values are numbers, strings, booleans, arrays and vectors of these, and handles to the program's objects.
#[macro_export]
macro_rules! options {
    ($($name:ident: $value:expr),* $(,)?) => {
        $crate::options::OptionMap::new()$(.with(stringify!($name), $value))*
    };
}

macro_rules! whole {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Value {
            fn from(x: $kind) -> Self {
                // What does not fit is out of any option's range, and the message should show its size.
                i64::try_from(x).map_or(Value::Float(x as f64), Value::Int)
            }
        })*
    };
}
whole!(i32, i64, u32, u64, usize);

impl From<bool> for Value {
    fn from(x: bool) -> Self {
        Value::Bool(x)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Value::Float(x)
    }
}

impl From<f32> for Value {
    fn from(x: f32) -> Self {
        Value::Float(x.into())
    }
}

impl From<&str> for Value {
    fn from(x: &str) -> Self {
        Value::Text(x.into())
    }
}

impl From<String> for Value {
    fn from(x: String) -> Self {
        Value::Text(x)
    }
}

impl From<&String> for Value {
    fn from(x: &String) -> Self {
        Value::Text(x.clone())
    }
}

impl From<OptionMap> for Value {
    fn from(x: OptionMap) -> Self {
        Value::Map(x.0)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(x: Vec<T>) -> Self {
        Value::List(x.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(x: [T; N]) -> Self {
        Value::List(x.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value> + Clone> From<&[T]> for Value {
    fn from(x: &[T]) -> Self {
        x.to_vec().into()
    }
}

impl<T: Into<Value> + Clone> From<&Vec<T>> for Value {
    fn from(x: &Vec<T>) -> Self {
        x.clone().into()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(x: Option<T>) -> Self {
        x.map_or(Value::Other("nothing".into()), Into::into)
    }
}

impl Value {
    /// A handle, and what messages call its type: "Prior", "Gradient", …, as in [`Kind::Object`](super::Kind::Object).
    pub fn object<T: std::any::Any + Send + Sync>(handle: &Arc<T>, kind: &'static str) -> Self {
        Value::Object(handle.clone(), kind)
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{Kind, Options, Range, Spec, optional, required};

    const SPECS: &[Spec] = &[
        required("layers", Kind::Ints(Range::AtLeast(1.0)), "Widths."),
        optional("step", Kind::Float(Range::Positive), "none", "Step."),
        optional("name", Kind::Text, "none", "Name."),
        optional("adapt", Kind::Bool, "none", "Whether."),
    ];

    #[test]
    fn rust_values_become_options_and_the_last_of_a_name_holds() {
        let given =
            options! { layers: vec![3usize, 4], step: 2, name: "x", adapt: true, step: 0.5 };
        let o = Options::check("thing", SPECS, given.into_pairs()).unwrap();
        assert_eq!(o.sizes("layers"), Some(vec![3, 4]));
        assert_eq!(o.float("step").unwrap(), 0.5);
        assert_eq!(o.text("name").unwrap(), "x");
        assert!(o.bool("adapt").unwrap());
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_range() {
        let given = options! { layers: [4usize, 0] };
        let e = Options::check("thing", SPECS, given.into_pairs())
            .err()
            .unwrap();
        assert!(e.to_string().contains("layers"), "{e}");
        let given = options! { layers: [1], stp: 1.0 };
        let e = Options::check("thing", SPECS, given.into_pairs())
            .err()
            .unwrap();
        assert!(e.to_string().contains("did you mean 'step'?"), "{e}");
    }
}
