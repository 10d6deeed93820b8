//! A closure made independent of its script: with values of its own, which nothing changes, called from any thread.
//!
//! Rhai's closures capture variables, not values: the closure, the script and other closures share them behind a lock. Threads would meet
//! there, and a changed variable would make results depend on which thread is first. Here every call has values that no other thread
//! has, and a call that changes one is an error.

#![allow(deprecated)] // Rhai marks the stored call context so only to say that it may change with a new version.

use super::super::Call;
use super::super::Context;
use super::super::file_access;
use super::super::report::{Home, Placed};
use super::identity::identity;
use super::source::{Function, Source};
use crate::error::Result;
use anyhow::{anyhow, ensure};
use rhai::{
    Array, Blob, Dynamic, Engine, FnPtr, ImmutableString, Map, Module, NativeCallContext,
    NativeCallContextStore, Shared,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

/// How deeply closures may capture closures, and arrays hold arrays.
const DEEPEST: usize = 40;

/// When a closure is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::script) enum Called {
    /// When its owner is made: it may open files.
    Once,
    /// While a run goes on.
    Running,
}

/// A closure with values of its own.
pub(in crate::script) struct Frozen {
    /// What messages call it.
    what: String,
    /// With captured values as they were; never called.
    function: FnPtr,
    names: Vec<ImmutableString>,
    /// Whether a call may change them.
    watched: Vec<bool>,
    called: Called,
    stored: NativeCallContextStore,
    engine: Arc<Engine>,
    /// Copies that no thread uses now.
    idle: Mutex<Vec<Own>>,
    home: Home,
    context: Arc<Context>,
    definition: OnceLock<String>,
}

/// What one call at a time uses.
struct Own {
    function: FnPtr,
    stored: NativeCallContextStore,
}

impl Frozen {
    /// Freeze a closure of such arguments.
    pub fn new(
        what: &str,
        function: &FnPtr,
        arguments: &[&str],
        called: Called,
        call: &Call,
    ) -> std::result::Result<Self, Placed> {
        let home = call.context.home();
        let plain = |e: anyhow::Error| home.placed(call.native.call_position(), &e.to_string());
        expect(what, function, arguments, "", call.native).map_err(plain)?;
        let function = own(function, 0).map_err(|e| plain(anyhow!("{what} {e}")))?;
        let stored = call.native.store_data();
        let names = definition(&stored, &function).map(|d| {
            d.params
                .iter()
                .take(function.curry().len())
                .cloned()
                .collect()
        });
        let engine = call.context.closures();
        let mut out = Self {
            what: what.into(),
            names: names.unwrap_or_default(),
            watched: Vec::new(),
            called,
            stored,
            engine,
            idle: Mutex::default(),
            definition: OnceLock::new(),
            context: call.context.clone(),
            home,
            function,
        };
        out.check(&out.function)?;
        out.watched = out.to_watch();
        Ok(out)
    }

    /// Fail if it, or a closure that it has captured, changes what it has captured, or calls what it must not.
    fn check(&self, function: &FnPtr) -> std::result::Result<(), Placed> {
        let find = |name: &str| functions(&self.stored, name);
        let Some(body) = definition(&self.stored, function) else {
            return Ok(());
        };
        let mut source = Source::of(&body, &find);
        let names = body.params.iter().cloned();
        let captured: Vec<_> = names.zip(function.iter_curry().cloned()).collect();
        if let Some((name, at)) = source.changes(&captured).first() {
            return Err(self.home.placed(*at, &self.changes(name)));
        }
        source.with_functions();
        let mut refused = source.refused.iter();
        let may = |why: &str| self.called == Called::Once && why == file_access::WHY;
        if let Some((name, why, at)) = refused.find(|(_, why, _)| !may(why)) {
            let what = &self.what;
            return Err(self
                .home
                .placed(*at, &format!("{what} must not use {name}: {why}")));
        }
        let mut inner = Vec::new();
        captured.iter().for_each(|(_, x)| pointers(x, &mut inner));
        inner.iter().try_for_each(|f| self.check(f))
    }

    /// Which of the captured values to look at after a call. Comparing a large array costs more than most closures, and is seldom needed.
    fn to_watch(&self) -> Vec<bool> {
        let find = |name: &str| functions(&self.stored, name);
        let body = definition(&self.stored, &self.function);
        let source = body.map(|b| Source::of(&b, &find));
        let pairs = self.names.iter().zip(self.function.iter_curry());
        let watch = |(name, x): (&ImmutableString, &Dynamic)| {
            let mut inner = Vec::new();
            pointers(x, &mut inner);
            let unread = source.as_ref().is_none_or(|s| s.may_change(name));
            unread || !inner.is_empty()
        };
        pairs.map(watch).collect()
    }

    fn changes(&self, name: &str) -> String {
        format!(
            "{} changes the variable '{name}', which it has captured: its value would depend on which thread is first, and would be lost with the \
             process; a closure may only read what it captures (the step is s.step, the chain s.chain; sums and means over the records are taken \
             from the trace afterwards)",
            self.what
        )
    }

    /// Call it, with values that no other thread has.
    pub fn call<const N: usize>(&self, arguments: [Dynamic; N]) -> Result<Dynamic> {
        let lock = || self.idle.lock().unwrap_or_else(|e| e.into_inner());
        let known = lock().pop();
        let own = known.unwrap_or_else(|| self.copy());
        let native = own.stored.create_context(&self.engine);
        let call = || own.function.call_raw(&native, None, arguments);
        let result = match self.called {
            Called::Once => call(),
            Called::Running => file_access::closed(call),
        };
        let value = result.map_err(|e| self.home.failed(&self.what, &e, &self.context))?;
        let pairs = self.function.iter_curry().zip(own.function.iter_curry());
        let changed = pairs
            .zip(&self.watched)
            .position(|((was, is), watched)| *watched && !same(was, is));
        if let Some(i) = changed {
            let name = self.names.get(i).map_or("?", |n| n.as_str());
            return Err(anyhow!(self.changes(name)));
        }
        lock().push(own);
        Ok(value.flatten())
    }

    fn copy(&self) -> Own {
        let mut stored = self.stored.clone();
        if let Some(constants) = &self.stored.global.constants {
            let own = constants.read().unwrap_or_else(|e| e.into_inner()).clone();
            stored.global.constants = Some(Shared::new(RwLock::new(own)));
        }
        Own {
            function: lent(&self.function),
            stored,
        }
    }

    /// Its text, what it has captured, and the functions that it calls, without comments and spaces: whatever its values follow from.
    pub fn definition(&self) -> String {
        let make = || {
            let (mut files, mut constants) = (BTreeSet::new(), BTreeSet::new());
            let mut out = self.text(&self.function, &mut files, &mut constants);
            for name in constants {
                let all = self.stored.global.constants.as_ref();
                let all = all.map(|c| c.read().unwrap_or_else(|e| e.into_inner()));
                if let Some(x) = all.and_then(|c| c.get(name.as_str()).map(Dynamic::flatten_clone))
                {
                    let value = identity(&x, &|f| f.fn_name().into());
                    out += &format!("\nconst {name} = {value}");
                }
            }
            for (alias, module) in self.stored.global.iter_imports() {
                let library = &self.context.library;
                let Some(file) = module.id().filter(|_| files.contains(alias)) else {
                    continue;
                };
                let Some(sum) = library.checksum(file) else {
                    continue;
                };
                out += &format!("\nimport {alias}, checksum {sum:08x}");
                // A constant may have been read from a file, which is not in the module's text.
                constants_of(module, alias, &mut out);
                for version in library.read(file) {
                    out += &format!("\nimport {alias}, which has read a file of {version}");
                }
                // Its functions may ask for parameters.
                let asked = library.parameters(file);
                let mut set = self.context.settings();
                set.retain(|name, _| asked.as_ref().is_none_or(|a| a.contains(name)));
                if !set.is_empty() {
                    out += &format!("\nsettings {set:?}");
                }
            }
            out
        };
        self.definition.get_or_init(make).clone()
    }

    fn text(
        &self,
        function: &FnPtr,
        spaces: &mut BTreeSet<String>,
        constants: &mut BTreeSet<String>,
    ) -> String {
        let find = |name: &str| functions(&self.stored, name);
        let Some(body) = definition(&self.stored, function) else {
            return function.fn_name().into();
        };
        let mut source = Source::of(&body, &find);
        source.with_functions();
        spaces.append(&mut source.spaces);
        constants.append(&mut source.constants);
        let mut out = source.text;
        let rest = std::cell::RefCell::new((spaces, constants));
        for (name, x) in body.params.iter().zip(function.iter_curry()) {
            let value = identity(x, &|f| {
                let rest = &mut *rest.borrow_mut();
                self.text(f, rest.0, rest.1)
            });
            out += &format!("\nwith {name} = {value}");
        }
        out
    }
}

/// Add the constants of a module and of what it imports, with their values; those that are functions follow from the module's text and the files that it has read.
fn constants_of(module: &Module, name: &str, out: &mut String) {
    let own = module.iter_var().map(|(own, x)| {
        let value = identity(x, &|_| "a function".into());
        format!("\nconst {name}::{own} = {value}")
    });
    out.extend(own.collect::<BTreeSet<_>>());
    let imported: BTreeMap<_, _> = module.iter_sub_modules().collect();
    for (inner, module) in imported {
        constants_of(module, &format!("{name}::{inner}"), out);
    }
}

/// Fail unless a closure takes such arguments.
pub(in crate::script) fn expect(
    what: &str,
    function: &FnPtr,
    arguments: &[&str],
    hint: &str,
    native: &NativeCallContext,
) -> Result<()> {
    let named = native.namespaces().iter().rev();
    let all: Vec<_> = named
        .flat_map(|m| m.iter_script_fn_info())
        .filter(|(_, _, name, ..)| *name == function.fn_name())
        .map(|(.., f)| f)
        .collect();
    let captured = function.curry().len();
    let fits = |f: &&Function| f.params.len() == captured + arguments.len();
    let Some(f) = all.first().filter(|_| !all.iter().any(fits)) else {
        return Ok(());
    };
    let own: Vec<_> = f.params.iter().skip(captured).map(|p| p.as_str()).collect();
    let count = |n: usize| match n {
        1 => "1 argument".to_string(),
        n => format!("{n} arguments"),
    };
    let list = |all: &[&str]| match all.is_empty() {
        true => String::new(),
        false => format!(" ({})", all.join(", ")),
    };
    Err(anyhow!(
        "{what} takes {}{}, but is called with {}{}{hint}",
        count(own.len()),
        list(&own),
        count(arguments.len()),
        list(arguments),
    ))
}

/// The functions of a name that a stored context knows.
fn functions(stored: &NativeCallContextStore, name: &str) -> Vec<Function> {
    let all = stored.global.lib.iter().rev();
    let named = all.flat_map(|m| m.iter_script_fn_info());
    let named = named.filter(|(_, _, n, ..)| *n == name);
    named.map(|(.., f)| f.clone()).collect()
}

/// What a pointer points to; the arguments besides the captured ones are one or more.
fn definition(stored: &NativeCallContextStore, f: &FnPtr) -> Option<Function> {
    let captured = f.curry().len();
    let all = functions(stored, f.fn_name());
    all.into_iter().find(|d| d.params.len() >= captured)
}

/// The value, sharing nothing.
fn owned(x: &Dynamic, depth: usize) -> Result<Dynamic> {
    ensure!(
        depth < DEEPEST,
        "captures itself, or values nested more than {DEEPEST} deep; what calls itself must be a function: fn name(…) {{ … }}"
    );
    let x = x.flatten_clone();
    ensure!(
        !x.is_shared(),
        "captures a variable that is just being changed"
    );
    if let Some(list) = x.read_lock::<Array>() {
        let each = list.iter().map(|x| owned(x, depth + 1));
        return Ok(each.collect::<Result<Array>>()?.into());
    }
    if let Some(map) = x.read_lock::<Map>() {
        let each = map
            .iter()
            .map(|(k, x)| Ok((k.clone(), owned(x, depth + 1)?)));
        return Ok(each.collect::<Result<Map>>()?.into());
    }
    if let Some(f) = x.read_lock::<FnPtr>() {
        return Ok(own(&f, depth + 1)?.into());
    }
    Ok(x)
}

fn own(f: &FnPtr, depth: usize) -> Result<FnPtr> {
    let captured = f.iter_curry().map(|x| owned(x, depth));
    let captured = captured.collect::<Result<Vec<_>>>()?;
    let mut out = f.clone();
    out.set_curry(captured);
    Ok(out)
}

/// A copy to be called: its captured values are behind locks of its own, so that a call need not copy them.
fn lent(f: &FnPtr) -> FnPtr {
    fn value(x: &Dynamic) -> Dynamic {
        if let Some(list) = x.read_lock::<Array>() {
            return list.iter().map(value).collect::<Array>().into();
        }
        if let Some(map) = x.read_lock::<Map>() {
            let each = map.iter().map(|(k, x)| (k.clone(), value(x)));
            return each.collect::<Map>().into();
        }
        match x.read_lock::<FnPtr>() {
            Some(f) => lent(&f).into(),
            None => x.clone(),
        }
    }
    let mut out = f.clone();
    out.set_curry(
        f.iter_curry()
            .map(|x| value(x).into_shared())
            .collect::<Vec<_>>(),
    );
    out
}

/// Closures in a value.
fn pointers(x: &Dynamic, out: &mut Vec<FnPtr>) {
    if let Some(list) = x.read_lock::<Array>() {
        list.iter().for_each(|x| pointers(x, out));
    }
    if let Some(map) = x.read_lock::<Map>() {
        map.values().for_each(|x| pointers(x, out));
    }
    out.extend(x.read_lock::<FnPtr>().map(|f| f.clone()));
}

/// Whether a value is still what it was. Objects are: nothing changes them.
fn same(was: &Dynamic, is: &Dynamic) -> bool {
    fn both<T: Clone + Send + Sync + 'static>(
        was: &Dynamic,
        is: &Dynamic,
        equal: impl Fn(&T, &T) -> bool,
    ) -> Option<bool> {
        let was = was.read_lock::<T>()?;
        Some(is.read_lock::<T>().is_some_and(|is| equal(&was, &is)))
    }
    fn all<'a>(mut pairs: impl Iterator<Item = (&'a Dynamic, &'a Dynamic)>) -> bool {
        pairs.all(|(a, b)| same(a, b))
    }
    // Numbers first: large arrays hold them.
    both::<i64>(was, is, i64::eq)
        .or_else(|| both::<f64>(was, is, |a, b| a.to_bits() == b.to_bits()))
        .or_else(|| both::<bool>(was, is, bool::eq))
        .or_else(|| both::<char>(was, is, char::eq))
        .or_else(|| both::<Array>(was, is, |a, b| a.len() == b.len() && all(a.iter().zip(b))))
        .or_else(|| {
            both::<Map>(was, is, |a, b| {
                a.keys().eq(b.keys()) && all(a.values().zip(b.values()))
            })
        })
        .or_else(|| {
            both::<FnPtr>(was, is, |a, b| {
                a.fn_name() == b.fn_name() && all(a.iter_curry().zip(b.iter_curry()))
            })
        })
        .or_else(|| both::<ImmutableString>(was, is, ImmutableString::eq))
        .or_else(|| both::<Blob>(was, is, Blob::eq))
        .unwrap_or_else(|| was.type_id() == is.type_id())
}
