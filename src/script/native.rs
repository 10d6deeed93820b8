//! An engine while functions are bound to it: [`Engine`]'s own methods for that, in less code for every function.
//!
//! Rhai's `register_fn` compiles all the work of entering a function in a table anew for each of our seven hundred functions, a fifth of the
//! time that this crate takes to compile. Here only what must know the function's types is generic.

use rhai::{Engine, FuncRegistration, Module, RhaiFunc, RhaiNativeFunc, Variant};
use std::any::TypeId;
use std::ops::{Deref, DerefMut};

/// An engine, and what will be global in it.
#[derive(Default)]
pub(super) struct NativeEngine {
    engine: Engine,
    global: Module,
}

impl Deref for NativeEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl DerefMut for NativeEngine {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

impl NativeEngine {
    /// The engine with everything that was bound.
    pub fn finish(mut self) -> Engine {
        self.engine.register_global_module(self.global.into());
        self.engine
    }

    /// [`Engine::register_fn`].
    pub fn register_fn<A: 'static, const N: usize, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        name: &str,
        f: FUNC,
    ) -> &mut Self
    where
        R: Variant + Clone,
        FUNC: RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
    {
        self.enter(
            name,
            &FUNC::param_types(),
            f.into_rhai_function(true, false),
        );
        self
    }

    /// Enter a function that is called by its bare name, in the place of an earlier one of arguments of the same types.
    pub fn enter(&mut self, name: &str, types: &[TypeId], f: RhaiFunc) {
        FuncRegistration::new(name)
            .in_global_namespace()
            .set_into_module_raw(&mut self.global, types, f);
    }

    /// [`Engine::register_get`].
    pub fn register_get<A: 'static, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        name: &str,
        f: FUNC,
    ) -> &mut Self
    where
        R: Variant + Clone,
        FUNC: RhaiNativeFunc<A, 1, X, R, F> + Send + Sync + 'static,
    {
        self.register_fn(&format!("get${name}"), f)
    }

    /// [`Engine::register_indexer_get`].
    pub fn register_indexer_get<A: 'static, const X: bool, R, const F: bool, FUNC>(
        &mut self,
        f: FUNC,
    ) -> &mut Self
    where
        R: Variant + Clone,
        FUNC: RhaiNativeFunc<A, 2, X, R, F> + Send + Sync + 'static,
    {
        self.register_fn("index$get$", f)
    }
}
