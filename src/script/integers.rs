//! `/` and `^` of integers, and `log`: what they give is what Rhai says, and what they mean is said once for every place in a script.
//!
//! `1/2` is 0 and `2^3` is 1, which is right for a language of integers and hardly ever what a physicist means. Rhai's own
//! operators cannot be watched: they are computed before anything that is bound. So these two are made operators of ours.

use super::{Binder, Bound, Context, report};
use rhai::{Dynamic, EvalAltResult, NativeCallContext};
use std::collections::HashSet;
use std::sync::Mutex;

/// The places that were told of.
#[derive(Default)]
pub(super) struct Told(Mutex<HashSet<(String, rhai::Position)>>);

impl Told {
    /// Forget them: another script runs.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }

    fn is_new(&self, place: (String, rhai::Position)) -> bool {
        let mut all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        all.insert(place)
    }
}

pub(super) fn bind(b: &mut Binder) {
    // As binding as Rhai's own. It refuses only symbols that were not disabled before.
    for (operator, precedence) in [("/", 180), ("^", 30)] {
        let ours = b.engine.disable_symbol(operator);
        if let Err(e) = ours.register_custom_operator(operator, precedence) {
            debug_assert!(false, "{e}");
        }
    }
    let engine = &mut b.engine;
    engine.register_fn("/", |a: f64, b: f64| a / b);
    engine.register_fn("/", |a: f64, b: i64| a / b as f64);
    engine.register_fn("/", |a: i64, b: f64| a as f64 / b);
    engine.register_fn("^", |a: bool, b: bool| a ^ b);
    let context = b.context.clone();
    engine.register_fn(
        "/",
        move |native: NativeCallContext, a: i64, b: i64| -> Bound<Dynamic> {
            let whole = quotient(&native, a, b)?;
            // Without an overflow: the quotient was computed.
            if a % b != 0 {
                warn(&context, &native, || {
                    let exact = a as f64 / b as f64;
                    format!("{a}/{b} of two integers is the integer {whole}; write {a}.0/{b} for {exact}, or quotient({a}, {b}) if {whole} is meant")
                });
            }
            Ok(whole.into())
        },
    );
    let context = b.context.clone();
    engine.register_fn("^", move |native: NativeCallContext, a: i64, b: i64| {
        warn(&context, &native, || {
            format!(
                "{a}^{b} is the exclusive or of bits, {}; the power is {a}**{b}",
                a ^ b
            )
        });
        a ^ b
    });
    let context = b.context.clone();
    b.engine
        .register_fn("log", move |native: NativeCallContext, x: f64| {
            warn(&context, &native, || {
                format!(
                    "log(x) is the logarithm of base 10, {}; the natural one is ln(x), {}",
                    x.log10(),
                    x.ln()
                )
            });
            x.log10()
        });
    b.function(
        "quotient(a, b) -> integer",
        "How often the integer b goes into the integer a, without the remainder: the same as a/b of integers, which warns when there is a remainder.\n\nThe remainder is `a % b`.",
        |native: NativeCallContext, a: i64, b: i64| quotient(&native, a, b),
    )
    .with(&[], "quotient(7, 2)");
}

fn quotient(native: &NativeCallContext, a: i64, b: i64) -> Bound<i64> {
    a.checked_div(b).ok_or_else(|| {
        let what = match b {
            0 => format!("Division by zero: {a} / {b}"),
            _ => format!("Division overflow: {a} / {b}"),
        };
        EvalAltResult::ErrorArithmetic(what, native.call_position()).into()
    })
}

/// Tell of a place, once.
fn warn(context: &Context, native: &NativeCallContext, text: impl Fn() -> String) {
    let (file, source) = context.running();
    let within = native.call_source().unwrap_or(&file).to_string();
    let position = native.call_position();
    if !context.session.leads() || !context.told.is_new((within.clone(), position)) {
        return;
    }
    let source = match within == file {
        true => Some(source),
        false => context.library.text(&within),
    };
    let position = context.library.original(&within, position);
    let text = format!("warning: {}", text());
    let shown = report::located(&within, &source.unwrap_or_default(), position, &text);
    context.session.console.remark(&shown);
}
