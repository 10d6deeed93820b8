//! Rhai's own ways to make something large in one step, each with a look at the memory first: a failed allocation ends the process.
//!
//! Not by Rhai's limits of sizes: with one set, every operation on an array walks through all of it.

use super::{Binder, Bound, OrRaise};
use crate::memory;
use rhai::{Array, Blob, Dynamic, ImmutableString};

/// How much longer something is to become.
fn more(to: i64, now: usize) -> usize {
    usize::try_from(to).unwrap_or(0).saturating_sub(now)
}

/// Elements of a value, those of what it holds included, and no further than they matter.
/// How many elements, with those of what is in it.
fn size(x: &Dynamic) -> usize {
    let text = x
        .read_lock::<ImmutableString>()
        .map_or(0, |s| s.len() / size_of::<Dynamic>());
    1 + text
        + x.read_lock::<Array>()
            .map_or(0, |a| a.iter().map(size).sum())
}

fn pad_text(text: &mut ImmutableString, to: i64, with: &str) -> Bound<()> {
    let more = more(to, text.chars().count());
    if more == 0 || with.is_empty() {
        return Ok(());
    }
    memory::check_elements::<u8>(&[more, 4], &format!("pad: {more} characters more")).or_raise()?;
    let text = text.make_mut();
    text.extend(with.chars().cycle().take(more));
    Ok(())
}

fn bytes(length: i64, value: i64) -> Bound<Blob> {
    let length = more(length, 0);
    memory::check_elements::<u8>(&[length], &format!("blob: {length} bytes")).or_raise()?;
    Ok(vec![value as u8; length])
}

pub(super) fn bind(b: &mut Binder) {
    let engine = &mut b.engine;
    engine.register_fn("pad", |a: &mut Array, to: i64, x: Dynamic| -> Bound<()> {
        let more = more(to, a.len());
        if more > 0 {
            memory::check_elements::<Dynamic>(
                &[more, size(&x)],
                &format!("pad: {more} elements more"),
            )
            .or_raise()?;
            a.resize(a.len() + more, x);
        }
        Ok(())
    });
    engine.register_fn("pad", |blob: &mut Blob, to: i64, value: i64| -> Bound<()> {
        let more = more(to, blob.len());
        memory::check_elements::<u8>(&[more], &format!("pad: {more} bytes more")).or_raise()?;
        blob.resize(blob.len() + more, value as u8);
        Ok(())
    });
    engine.register_fn("pad", |s: &mut ImmutableString, to: i64, with: char| {
        pad_text(s, to, with.encode_utf8(&mut [0; 4]))
    });
    engine.register_fn("pad", |s: &mut ImmutableString, to: i64, with: &str| {
        pad_text(s, to, with)
    });
    engine.register_fn("blob", |length: i64| bytes(length, 0));
    engine.register_fn("blob", bytes);
}
