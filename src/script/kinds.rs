//! What is known of a script's value by its type: the traits of objects, found by the type at run time.

use crate::object::{Held, Object, Shown};
use crate::options::Value;
use crate::registry::{self, Visitor};
use rhai::Dynamic;
use serde_json::Value as Json;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// A type of objects.
pub(super) struct Known {
    /// The value that options see.
    pub value: fn(&Dynamic) -> Option<Value>,
    /// In all the ways it can be shown.
    pub shown: fn(&Dynamic) -> Option<Shown>,
    /// As the result of a script.
    pub result: fn(&Dynamic) -> Option<Json>,
    /// Back from a value.
    back: fn(&Arc<dyn Any + Send + Sync>) -> Option<Dynamic>,
}

/// All types of objects, by their ids and by their names.
#[derive(Default)]
struct All {
    types: HashMap<TypeId, Known>,
    names: HashMap<&'static str, TypeId>,
}

impl Visitor for All {
    fn held<H: Held>(&mut self, _: &'static str) {
        fn with<H: Held, R>(x: &Dynamic, f: impl Fn(&H) -> R) -> Option<R> {
            x.read_lock::<H>().map(|x| f(&x))
        }
        self.names.insert(H::Object::NAME, TypeId::of::<H>());
        let known = Known {
            value: |x| with(x, H::value),
            shown: |x| with(x, |x: &H| x.object().shown()),
            result: |x| with(x, |x: &H| x.object().result()),
            back: |x| H::from_any(x).map(Dynamic::from),
        };
        self.types.insert(TypeId::of::<H>(), known);
    }
}

static ALL: LazyLock<All> = LazyLock::new(|| {
    let mut all = All::default();
    registry::objects(&mut all);
    all
});

/// What is known of a value, if it is an object.
pub(super) fn of(x: &Dynamic) -> Option<&'static Known> {
    ALL.types.get(&x.type_id())
}

/// An object of the program, by the name of its type, as a script holds it.
pub(super) fn back(x: &Arc<dyn Any + Send + Sync>, name: &str) -> Option<Dynamic> {
    let known = ALL.types.get(ALL.names.get(name)?)?;
    (known.back)(x)
}
