//! Constructors: every entry of every registry, as `namespace::name(arguments…, #{ options })`.

use super::Call;
use super::OrRaise;
use super::binder::Binder;
use super::convert::{given, options, to_value};
use super::item::Item;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::object::{Held, Object};
use crate::options::{Entry, Options};
use rhai::{Dynamic, Map};
use std::any::TypeId;
use std::sync::Arc;

/// Most arguments by position, the options included.
const MOST: usize = 3;

pub(super) fn bind<H: Held>(b: &mut Binder, namespace: &'static str, entries: &'static [Entry<H>]) {
    for entry in entries {
        let owner = format!("{namespace}::{}", entry.name);
        let mut parts = entry.arguments.to_vec();
        if entry.options.len() > entry.arguments.len() {
            parts.push("#{ options }");
        }
        let returns = H::Object::NAME;
        b.items.push(Item {
            signature: format!("{owner}({}) -> {returns}", parts.join(", ")),
            options: entry.options,
            example: entry.example.into(),
            ..Item::from_signature(&owner, entry.doc)
        });
        for count in 0..=MOST {
            let types = vec![TypeId::of::<Dynamic>(); count];
            let owner = owner.clone();
            b.raw(namespace, entry.name, &types, move |call, arguments| {
                let arguments: Vec<Dynamic> = arguments.iter().map(|x| (**x).clone()).collect();
                let options = check(&owner, entry, call, &arguments);
                let built = options.and_then(|o| (entry.build)(&o)).or_raise()?;
                Ok(cut_if_quick(
                    Dynamic::from(built),
                    call.context.session.quick,
                ))
            });
        }
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
        "{owner} takes {} and its options as a map, but was given {}; write {}",
        match entry.arguments {
            [] => "no argument".to_string(),
            names => format!("({})", names.join(", ")),
        },
        crate::error::count(positional.len(), "argument"),
        entry.example
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
