//! What a captured value is, in words that change with it: so it enters the fingerprint of a closure.

use super::super::kinds;
use super::super::tensors::parameters_of;
use super::super::words;
use crate::dataset::Dataset;
use crate::kernels::tensor::Tensor;
use crate::model::Model;
use crate::observable::Handle;
use crate::sampler::ConfiguredSampler;
use crate::sampler::gradient::Estimator;
use crate::schedule::Schedule;
use crate::simulation::optimizer::Optimizer;
use crate::simulation::run::Run;
use crate::simulation::trained::Trained;
use crate::target::prior::Prior;
use crate::target::{Potential, Target};
use crate::trigger::Trigger;
use crc32fast::Hasher;
use rhai::{Array, Blob, Dynamic, ImmutableString, Map};
use std::fmt::Debug;
use std::sync::Arc;

/// Longer ones are given by their checksum.
const LONGEST: usize = 60;

/// The value in words; `closure` gives the text of a closure.
pub(super) fn identity(x: &Dynamic, closure: &dyn Fn(&rhai::FnPtr) -> String) -> String {
    if let Ok(x) = x.as_float() {
        return format!("{x:?}");
    }
    if let Some(f) = x.read_lock::<rhai::FnPtr>() {
        return closure(&f);
    }
    if let Some(s) = x.read_lock::<ImmutableString>() {
        return short("string", &format!("{:?}", &**s));
    }
    if let Some(list) = x.read_lock::<Array>() {
        let each: Vec<_> = list.iter().map(|x| identity(x, closure)).collect();
        return short("array", &format!("[{}]", each.join(", ")));
    }
    if let Some(map) = x.read_lock::<Map>() {
        let each = map.iter();
        let each: Vec<_> = each
            .map(|(k, x)| format!("{k}: {}", identity(x, closure)))
            .collect();
        return short("map", &format!("#{{ {} }}", each.join(", ")));
    }
    let as_result = || {
        let result = kinds::of(x).and_then(|known| (known.result)(x))?;
        let mut hash = Hasher::new();
        hash.update(result.to_string().as_bytes());
        Some(hash)
    };
    match object(x).or_else(as_result) {
        Some(hash) => format!("{}, checksum {:08x}", words::kind(x), hash.finalize()),
        None => short(&words::kind(x), &x.to_string()),
    }
}

fn short(kind: &str, text: &str) -> String {
    match text.chars().count() > LONGEST {
        true => format!("{kind}, checksum {:08x}", crc32fast::hash(text.as_bytes())),
        false => text.into(),
    }
}

/// The checksum of an object; None of what shows its value.
fn object(x: &Dynamic) -> Option<Hasher> {
    let mut hash = Hasher::new();
    if let Some(Tensor::Vector(v)) = get::<Tensor>(x) {
        vector(&mut hash, v.numbers());
    } else if let Some(t) = get::<Tensor>(x) {
        text(&mut hash, t.shape().map(|s| s.dims).ok());
        if let Tensor::Concrete(c) = &t {
            text(&mut hash, c.dtype());
        }
        let numbers = t.to_f64("a captured tensor").unwrap_or_default();
        numbers.iter().for_each(|x| hash.update(&x.to_le_bytes()));
    } else if let Some(d) = get::<Arc<Dataset>>(x) {
        data(&mut hash, &d);
    } else if let Some(m) = get::<Arc<dyn Model>>(x) {
        hash.update(m.describe().as_bytes());
        text(&mut hash, m.layout());
        m.fingerprint(&mut hash);
    } else if let Some(t) = get::<Arc<Target>>(x) {
        t.fingerprint(&mut hash);
    } else if let Some(p) = get::<Arc<dyn Potential>>(x) {
        hash.update(p.describe().as_bytes());
        p.fingerprint(&mut hash);
    } else if let Some(o) = get::<Handle>(x) {
        text(&mut hash, (o.name(), o.definition()));
    } else if let Some(o) = get::<Arc<Optimizer>>(x) {
        hash.update(o.text.as_bytes());
    } else if let Some(p) = parameters_of(x) {
        p.vectors.iter().for_each(|w| vector(&mut hash, w));
        if let Some(r) = get::<Arc<Run>>(x) {
            // Where its data lie is none of its numbers.
            let mut info = r.info.clone();
            info.data.clear();
            text(&mut hash, info);
        }
        if let Some(t) = get::<Arc<Trained>>(x) {
            text(&mut hash, &t.name);
        }
    } else {
        let shown = shown::<Arc<Prior>>(x)
            .or_else(|| shown::<Arc<ConfiguredSampler>>(x))
            .or_else(|| shown::<Arc<Estimator>>(x))
            .or_else(|| shown::<Arc<Schedule>>(x))
            .or_else(|| shown::<Arc<Trigger>>(x))
            .or_else(|| x.read_lock::<Blob>().map(|b| format!("{:?}", *b)))?;
        hash.update(shown.as_bytes());
    }
    Some(hash)
}

fn get<T: Clone + Send + Sync + 'static>(x: &Dynamic) -> Option<T> {
    x.read_lock::<T>().map(|x| x.clone())
}

fn shown<T: Debug + Clone + Send + Sync + 'static>(x: &Dynamic) -> Option<String> {
    get::<T>(x).map(|x| format!("{x:?}"))
}

fn text(hash: &mut Hasher, x: impl Debug) {
    hash.update(format!("{x:?}").as_bytes());
}

fn vector(hash: &mut Hasher, all: &[f32]) {
    hash.update(&(all.len() as u64).to_le_bytes());
    all.iter().for_each(|x| hash.update(&x.to_le_bytes()));
}

fn data(hash: &mut Hasher, d: &Dataset) {
    // Where they come from is none of their numbers.
    let mut alone = d.clone();
    alone.provenance.clear();
    hash.update(alone.to_string().as_bytes());
    let splits = [Some(&d.train), d.test.as_ref(), d.validation.as_ref()];
    for split in splits.into_iter().flatten() {
        hash.update(&(split.rows as u64).to_le_bytes());
        split.fingerprint(hash);
    }
}
