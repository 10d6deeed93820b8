//! Constructors: every entry of every registry, as `namespace::name(arguments…, #{ options })`.

use super::convert::{Call, given, options, to_value};
use super::reference::Item;
use super::{Binder, Bound, OrRaise};
use crate::dataset::{self, Dataset};
use crate::error::Result;
use crate::options::{Entry, Options};
use crate::simulation::optimizer;
use crate::target::{analytic, prior};
use crate::{model, observable, sampler};
use rhai::{Dynamic, Map, NativeCallContext, Variant};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    registry(b, "dataset", "Dataset", dataset::REGISTRY);
    registry(b, "dataset", "Dataset", &[model::teacher::ENTRY]);
    registry(b, "model", "Model", model::REGISTRY);
    registry(b, "prior", "Prior", prior::REGISTRY);
    registry(b, "potential", "Potential", analytic::REGISTRY);
    registry(b, "optimizer", "Optimizer", optimizer::REGISTRY);
    registry(b, "gradient", "Gradient", sampler::gradient::REGISTRY);
    registry(b, "sampler", "Sampler", sampler::REGISTRY);
    for entry in sampler::registered() {
        registry(b, "sampler", "Sampler", std::slice::from_ref(entry));
    }
    registry(b, "observable", "Observable", observable::REGISTRY);
}

fn registry<T: Variant + Clone>(
    b: &mut Binder,
    namespace: &'static str,
    returns: &str,
    entries: &'static [Entry<T>],
) {
    for entry in entries {
        let owner = format!("{namespace}::{}", entry.name);
        let mut parts: Vec<String> = entry.arguments.iter().map(|a| a.to_string()).collect();
        if entry.options.len() > entry.arguments.len() {
            parts.push("#{ options }".into());
        }
        b.items.push(Item {
            namespace: namespace.into(),
            object: String::new(),
            name: entry.name.into(),
            signature: format!("{owner}({}) -> {returns}", parts.join(", ")),
            doc: entry.doc.into(),
            options: entry.options,
            example: entry.example.into(),
        });
        let context = b.context.clone();
        let make = move |native: &NativeCallContext, arguments: &[Dynamic]| -> Bound<Dynamic> {
            let call = Call {
                context: &context,
                native,
            };
            let built = check(&owner, entry, &call, arguments)
                .and_then(|o| (entry.build)(&o))
                .or_raise()?;
            Ok(cut_if_quick(
                Dynamic::from(built),
                call.context.session.quick,
            ))
        };
        let make = Arc::new(make);
        // One overload per number of positional arguments, and one more for the options.
        let f = make.clone();
        b.bind_native(namespace, entry.name, move |c: NativeCallContext| {
            f(&c, &[])
        });
        let f = make.clone();
        b.bind_native(
            namespace,
            entry.name,
            move |c: NativeCallContext, x: Dynamic| f(&c, &[x]),
        );
        let f = make.clone();
        b.bind_native(
            namespace,
            entry.name,
            move |c: NativeCallContext, x: Dynamic, y: Dynamic| f(&c, &[x, y]),
        );
        let f = make;
        b.bind_native(
            namespace,
            entry.name,
            move |c: NativeCallContext, x: Dynamic, y: Dynamic, z: Dynamic| f(&c, &[x, y, z]),
        );
    }
}

/// Positional arguments, then a map, as checked options.
fn check<T>(owner: &str, entry: &Entry<T>, call: &Call, arguments: &[Dynamic]) -> Result<Options> {
    let (map, positional) = match arguments.split_last() {
        Some((last, rest)) if last.is_map() => {
            (last.clone().try_cast::<Map>().unwrap_or_default(), rest)
        }
        _ => (Map::new(), arguments),
    };
    anyhow::ensure!(
        positional.len() <= entry.arguments.len(),
        "{owner} takes {} and its options as a map #{{…}}, but was given {} arguments",
        match entry.arguments {
            [] => "no argument".to_string(),
            names => format!("({})", names.join(", ")),
        },
        positional.len()
    );
    if positional.is_empty() {
        return options(call, owner, entry.options, &map);
    }
    let mut given = given(&map, call);
    for (name, x) in entry.arguments.iter().zip(positional) {
        anyhow::ensure!(
            !map.contains_key(*name),
            "{owner}: '{name}' is given twice, by position and by name"
        );
        given.push((name.to_string(), to_value(x, call)));
    }
    Options::check(owner, entry.options, given)
}

/// `--quick` also cuts large data sets.
fn cut_if_quick(x: Dynamic, quick: bool) -> Dynamic {
    match x.clone().try_cast::<Arc<Dataset>>() {
        Some(d) if quick => Dynamic::from(Arc::new(d.cut(4000))),
        _ => x,
    }
}
