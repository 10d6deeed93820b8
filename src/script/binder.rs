//! Binds functions and writes down their reference entries at the same time.

use super::Call;
use super::file_access;
use super::item::Item;
use super::native::NativeEngine;
use super::{Bound, Context, raise, words};
use anyhow::anyhow;
use rhai::{
    Dynamic, Engine, FuncRegistration, Module, NativeCallContext, RhaiFunc, RhaiNativeFunc, Variant,
};
use std::any::TypeId;
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
        let full = match namespace {
            "" => name.to_string(),
            space => format!("{space}::{name}"),
        };
        let f = match file_access::opens(&full) {
            true => wrapped(f, |f| guarded(f, full)),
            false => f,
        };
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

/// A function that opens files, where that may be.
fn guarded(f: Arc<Native>, name: String) -> Arc<Native> {
    Arc::new(move |context, arguments| {
        file_access::ensure_open(&name)?;
        f(context, arguments)
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
