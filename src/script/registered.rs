//! Binds what the registry lists: types of objects, constructors and verbs.

use super::binder::Binder;
use super::convert::{entry, from_json, from_value, given, to_value};
use super::item::Item;
use super::{Call, OrRaise, constructors};
use crate::error::Result;
use crate::object::{Held, Object};
use crate::options::{Entry, Value};
use crate::registry::Visitor;
use crate::simulation::session::Session;
use crate::verb::{Arguments, Kind, Needed, Outcome, Source, Verb};
use anyhow::anyhow;
use rhai::{Array, Dynamic, ImmutableString, Map};
use serde_json::Value as Json;
use std::any::{Any, TypeId};

impl Visitor for Binder {
    fn held<H: Held>(&mut self, _: &'static str) {
        self.object::<H>(H::Object::NAME, |x| x.object().text());
        for (name, get) in H::Object::FIELDS {
            self.engine
                .register_get(name, |x: &mut H| from_value(&get(x.object())));
        }
        let Some(entries) = H::Object::ENTRIES else {
            return;
        };
        self.function(entries.method, entries.doc, |x: &mut H| {
            from_json(&x.object().to_json())
        });
        if let Some(what) = entries.index {
            self.engine
                .register_indexer_get(move |x: &mut H, name: &str| {
                    entry(&x.object().to_json(), what, name)
                });
        }
    }

    fn constructors<H: Held>(
        &mut self,
        namespace: &'static str,
        _: &'static str,
        entries: &'static [Entry<H>],
    ) {
        constructors::bind(self, namespace, entries);
    }

    fn verb<S: Needed, A: Arguments, R: Outcome>(
        &mut self,
        _: &'static str,
        verb: &'static Verb<S, A, R>,
    ) where
        Session: AsRef<S>,
    {
        let item = Item {
            signature: verb.signature(),
            options: verb.options,
            example: verb.example.into(),
            ..Item::from_signature(verb.name, verb.doc)
        };
        for (form, kinds) in A::forms().into_iter().enumerate() {
            let mut types: Vec<TypeId> = kinds.into_iter().map(type_of).collect();
            let call = move |call: &Call, arguments: &mut [&mut Dynamic]| {
                run(verb, form, call, arguments).or_raise()
            };
            self.raw(&item.namespace, &item.name, &types, call);
            if verb.takes_options() {
                types.push(TypeId::of::<Map>());
                self.raw(&item.namespace, &item.name, &types, call);
            }
        }
        self.items.push(item);
    }
}

/// Call a verb with what a script gives, its options last.
fn run<S: Needed, A: Arguments, R: Outcome>(
    verb: &Verb<S, A, R>,
    form: usize,
    call: &Call,
    arguments: &mut [&mut Dynamic],
) -> Result<Dynamic>
where
    Session: AsRef<S>,
{
    let mut from = From {
        call,
        arguments: arguments.iter(),
    };
    let taken = A::take(form, &mut from)?;
    let options = from.arguments.next().and_then(|x| x.read_lock::<Map>());
    let given = options.map_or_else(Vec::new, |map| given(&map, call));
    let result = verb.run(
        taken,
        given.into_iter().collect(),
        call.context.session.as_ref(),
    )?;
    Ok(match (&result as &dyn Any).downcast_ref::<Json>() {
        Some(json) => from_json(json),
        None => Dynamic::from(result),
    })
}

/// The arguments of a call.
struct From<'a, 'b> {
    call: &'a Call<'a>,
    arguments: std::slice::Iter<'a, &'b mut Dynamic>,
}

impl Source for From<'_, '_> {
    fn held<H: Held>(&mut self) -> Result<H> {
        let next = self.arguments.next().map(|x| (**x).clone());
        let missing = || anyhow!("an argument is missing or of another type");
        next.and_then(Dynamic::try_cast).ok_or_else(missing)
    }

    fn value(&mut self) -> Value {
        let next = self.arguments.next();
        next.map_or(Value::Other("nothing".into()), |x| to_value(x, self.call))
    }
}

/// The type that Rhai looks for.
fn type_of(kind: Kind) -> TypeId {
    match kind {
        Kind::Held(id) => id,
        Kind::Text => TypeId::of::<ImmutableString>(),
        Kind::Int => TypeId::of::<i64>(),
        Kind::List => TypeId::of::<Array>(),
        Kind::Any => TypeId::of::<Dynamic>(),
    }
}
