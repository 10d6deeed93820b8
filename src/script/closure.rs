//! Closures as observables: `|s| …` where `s` is the state of one chain.

#![allow(deprecated)] // Rhai marks the stored call context so only to say that it may change with a new version.

use super::convert::Call;
use super::values::Values;
use super::{bind_closures, raise, report};
use crate::error::Result;
use crate::kernels::tensor::Tensor;
use crate::model::Layout;
use crate::observable::{Handle, Observable, View};
use rhai::{Dynamic, Engine, FnPtr, Map, NativeCallContextStore};
use std::sync::Arc;

/// The state of a chain, as a closure sees it.
#[derive(Clone)]
pub(super) struct State {
    pub params: Values,
    pub step: i64,
    pub chain: i64,
    pub temperature: f64,
    pub info: Map,
}

/// A closure that returns a number.
struct Closure {
    name: String,
    function: FnPtr,
    engine: Arc<Engine>,
    stored: NativeCallContextStore,
}

/// A closure as an observable, named after the closure.
pub(super) fn observable(function: &FnPtr, call: &Call) -> Handle {
    // Rhai names closures by a hash that differs between processes; traces need names that last.
    let count = call
        .context
        .closures_named
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        + 1;
    let name = match function.is_anonymous() {
        true => format!("closure_{count}"),
        false => function.fn_name().to_string(),
    };
    named(&name, function, call)
}

/// A closure as an observable of that name.
pub(super) fn named(name: &str, function: &FnPtr, call: &Call) -> Handle {
    let engine = call
        .context
        .closures
        .get_or_init(|| bind_closures(call.context))
        .clone();
    let stored = call.native.store_data();
    Arc::new(Box::new(Closure {
        name: name.into(),
        function: function.clone(),
        engine,
        stored,
    }))
}

impl Observable for Closure {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let layout: Arc<Layout> = Arc::new(view.target.layout().clone());
        let state = State {
            params: Values::with_layout(view.chain.w.to_vec(), layout),
            step: view.chain.step as i64,
            chain: view.chain.index as i64,
            temperature: view.chain.temperature,
            info: view
                .info
                .0
                .iter()
                .zip(view.info.1)
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
        };
        let context = self.stored.create_context(&self.engine);
        let result = self
            .function
            .call_raw(&context, None, [Dynamic::from(state)])
            .map_err(|e| report::failed(&format!("the observable '{}'", self.name), &e))?;
        // The largest weight, say, is a tensor of one number.
        if let Some(t) = result.read_lock::<Tensor>() {
            let what = format!("the observable '{}'", self.name);
            out[0] = t.item(&what)?;
            return Ok(());
        }
        let number = result
            .as_float()
            .or_else(|_| result.as_int().map(|i| i as f64));
        out[0] = number
            .or_else(|_| result.as_bool().map(|b| f64::from(u8::from(b))))
            .map_err(|_| {
                anyhow::anyhow!(
                    "the observable '{}' must return a number, but returned a {}",
                    self.name,
                    result.type_name()
                )
            })?;
        Ok(())
    }
}

pub(super) fn check_name(name: &str) -> super::Bound<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > 60 || !name.chars().all(fine) {
        return Err(raise(anyhow::anyhow!(
            "observable::named: the name is \"{name}\", but must be 1 to 60 letters, digits or underscores"
        )));
    }
    Ok(())
}
