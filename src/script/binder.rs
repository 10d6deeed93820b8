//! Binds functions, verbs, constructors and objects, and writes down their reference entries at the same time.

use super::convert::{Call, entry, from_json, from_value, given, to_value};
use super::native::NativeEngine;
use super::reference::Item;
use super::{Bound, Context, OrRaise, constructors, raise, words};
use crate::error::Result;
use crate::object::{Held, Object};
use crate::options::{Entry, Value};
use crate::registry::Visitor;
use crate::simulation::session::Session;
use crate::verb::{Arguments, Kind, Outcome, Source, Verb};
use anyhow::anyhow;
use rhai::{
    Array, Dynamic, Engine, FuncRegistration, ImmutableString, Map, Module, NativeCallContext,
    RhaiFunc, RhaiNativeFunc, Variant,
};
use serde_json::Value as Json;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Binds functions and writes down their reference entries.
pub(super) struct Binder {
    pub engine: NativeEngine,
    pub items: Vec<Item>,
    pub context: Arc<Context>,
    /// By namespace.
    modules: BTreeMap<String, Module>,
}

impl Binder {
    /// One that has bound nothing yet.
    pub fn new(context: &Arc<Context>) -> Self {
        Self {
            engine: NativeEngine::default(),
            items: Vec::new(),
            context: context.clone(),
            modules: BTreeMap::new(),
        }
    }

    /// The engine, and the reference of what was bound.
    pub fn finish(self) -> (Engine, Vec<Item>) {
        let mut engine = self.engine.finish();
        for (name, module) in self.modules {
            engine.register_static_module(&name, module.into());
        }
        (engine, self.items)
    }

    /// Bind a function. The signature is as a script calls it: `verb(a, b) -> T`, `space::name(a) -> T` or `object.method(a) -> T`.
    pub fn function<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        signature: &'static str,
        doc: &'static str,
        f: FUNC,
    ) -> &mut Self
    where
        A: 'static,
        R: Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
    {
        let item = Item::from_signature(signature, doc);
        let f = f.into_rhai_function(true, false);
        self.native(&item.namespace, &item.name, &FUNC::param_types(), f);
        if !doc.is_empty() {
            self.items.push(item);
        }
        self
    }

    /// Bind a function whose last argument may be left out: then it is this.
    pub fn defaulted<A, const N: usize, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        signature: &'static str,
        doc: &'static str,
        last: impl Into<Dynamic>,
        f: FUNC,
    ) -> &mut Self
    where
        A: 'static,
        R: Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Clone + Send + Sync + 'static,
    {
        let item = Item::from_signature(signature, "");
        let types = FUNC::param_types();
        let short = completed(f.clone().into_rhai_function(true, false), last.into());
        self.native(&item.namespace, &item.name, &types[..N - 1], short);
        self.function(signature, doc, f)
    }

    /// Bind a function of arguments of these types.
    fn native(&mut self, namespace: &str, name: &str, types: &[TypeId], f: RhaiFunc) {
        if namespace.is_empty() {
            return self.engine.enter(name, types, f);
        }
        let module = self.modules.entry(namespace.into()).or_default();
        FuncRegistration::new(name).set_into_module_raw(module, types, wrapped(f, placed));
    }

    /// Bind a function that takes its arguments as they are, of these types, and write down its entry.
    pub fn called(
        &mut self,
        signature: &'static str,
        doc: &'static str,
        types: &[TypeId],
        f: impl Fn(&Call, &mut [&mut Dynamic]) -> Bound<Dynamic> + Send + Sync + 'static,
    ) -> &mut Self {
        let item = Item::from_signature(signature, doc);
        self.raw(&item.namespace, &item.name, types, f);
        self.items.push(item);
        self
    }

    /// Bind a function that takes its arguments as they are, of these types.
    pub fn raw(
        &mut self,
        namespace: &str,
        name: &str,
        types: &[TypeId],
        f: impl Fn(&Call, &mut [&mut Dynamic]) -> Bound<Dynamic> + Send + Sync + 'static,
    ) {
        let context = self.context.clone();
        let called = move |native: Option<NativeCallContext>, arguments: &mut [&mut Dynamic]| {
            let native = native.ok_or_else(|| raise(anyhow!("a call without its context")))?;
            let call = Call {
                context: &context,
                native: &native,
            };
            f(&call, arguments)
        };
        let f = RhaiFunc::Pure {
            func: Arc::new(called),
            has_context: true,
            is_pure: true,
            is_volatile: false,
        };
        self.native(namespace, name, types, f);
    }

    /// Give the last bound function its options and a runnable example.
    pub fn with(
        &mut self,
        options: &'static [crate::options::Spec],
        example: &'static str,
    ) -> &mut Self {
        if let Some(item) = self.items.last_mut() {
            item.options = options;
            item.example = example.into();
        }
        self
    }

    /// Name a type and say how it prints.
    pub fn object<T: Variant + Clone>(
        &mut self,
        name: &'static str,
        show: impl Fn(&T) -> String + Send + Sync + Clone + 'static,
    ) {
        self.engine.register_type_with_name::<T>(name);
        words::name::<T>(name);
        let debug = show.clone();
        self.engine
            .register_fn("to_string", move |x: &mut T| show(x));
        self.engine
            .register_fn("to_debug", move |x: &mut T| debug(x));
    }
}

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

    fn verb<S, A: Arguments, R: Outcome>(&mut self, _: &'static str, verb: &'static Verb<S, A, R>)
    where
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
fn run<S, A: Arguments, R: Outcome>(
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

/// A function as Rhai holds it.
type Native =
    dyn Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Bound<Dynamic> + Send + Sync;

/// A function around another one.
fn wrapped(f: RhaiFunc, around: impl FnOnce(Arc<Native>) -> Arc<Native>) -> RhaiFunc {
    let has_context = true;
    match f {
        RhaiFunc::Pure {
            func,
            is_pure,
            is_volatile,
            ..
        } => RhaiFunc::Pure {
            func: around(func),
            has_context,
            is_pure,
            is_volatile,
        },
        RhaiFunc::Method {
            func,
            is_pure,
            is_volatile,
            ..
        } => RhaiFunc::Method {
            func: around(func),
            has_context,
            is_pure,
            is_volatile,
        },
        other => other,
    }
}

/// Rhai does not say where a function of a namespace was called when that fails; this does.
fn placed(f: Arc<Native>) -> Arc<Native> {
    Arc::new(move |context, arguments| {
        let position = context.as_ref().map(NativeCallContext::call_position);
        f(context, arguments).map_err(|mut e| {
            if let Some(position) = position.filter(|_| e.position().is_none()) {
                e.set_position(position);
            }
            e
        })
    })
}

/// A function with its last argument.
fn completed(f: RhaiFunc, last: Dynamic) -> RhaiFunc {
    wrapped(f, |f| {
        Arc::new(move |context, arguments| {
            let mut last = last.clone();
            let mut all: Vec<&mut Dynamic> = arguments.iter_mut().map(|x| &mut **x).collect();
            all.push(&mut last);
            f(context, &mut all)
        })
    })
}
