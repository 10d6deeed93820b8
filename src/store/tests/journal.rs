//! Lists that only grow: what is written, what comes back, and every way in which it can be lost.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::checkpoint::{self, DataRef, Generation, TensorData, TensorRef, load};
use super::{Scratch, damage};
use crate::error::Result;

const CURRENT: &str = "current.safetensors";

/// The list, whose k-th number follows from k and `salt`.
fn numbers(count: usize, salt: u64) -> Vec<f64> {
    let number = |k: u64| f64::from_bits((k + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..count as u64).map(number).collect()
}

/// Save a step, a list of these numbers, and a shorter one of whole numbers.
fn save(dir: &Path, list: &[f64]) -> Result<()> {
    fn grown<'a>(name: &str, data: DataRef<'a>, len: usize) -> (String, TensorRef<'a>) {
        let (shape, grows) = (vec![len], true);
        (name.to_string(), TensorRef { shape, data, grows })
    }

    let (step, short) = ([list.len() as u64], vec![7u64; list.len() / 2]);
    let tensors = [
        (
            "step".to_string(),
            TensorRef::new(vec![1], DataRef::U64(&step)),
        ),
        grown("list", DataRef::F64(list), list.len()),
        grown("short", DataRef::U64(&short), short.len()),
    ];
    checkpoint::save(dir, &json!({ "step": list.len() }), &tensors)
}

/// The list that was saved, whose bits count, and the generation.
fn found(dir: &Path) -> (Vec<u64>, Generation) {
    let (saved, generation) = load(dir).unwrap().unwrap();
    let data = |name: &str| {
        saved
            .tensors
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, t)| &t.data)
    };
    let (Some(TensorData::F64(list)), Some(TensorData::U64(short))) = (data("list"), data("short"))
    else {
        panic!("{:?}", saved.tensors)
    };
    assert_eq!(saved.meta["step"], list.len());
    assert_eq!(*short, vec![7; list.len() / 2]);
    (bits(list), generation)
}

fn bits(list: &[f64]) -> Vec<u64> {
    list.iter().map(|x| x.to_bits()).collect()
}

fn size(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

#[test]
fn only_what_is_new_is_written() {
    let scratch = Scratch::new("grows");
    let dir = scratch.join("checkpoint");
    let all = numbers(300_000, 0);
    let (mut last, mut before) = (usize::MAX, 0);
    for count in [0, 1, 2, 100_000, 100_000, 300_000] {
        save(&dir, &all[..count]).unwrap();
        assert_eq!(found(&dir), (bits(&all[..count]), Generation::Current));
        // Lists are in no generation, and in the file once.
        assert!(size(&dir.join(CURRENT)) < 2000);
        let now = dir.join("lists-0").metadata().map_or(0, |m| m.len());
        let numbers = 12 * count as u64;
        assert!((numbers..numbers + 2000).contains(&now), "{now}");
        assert_eq!(now == before, count == last || count == 0);
        (last, before) = (count, now);
    }
    fs::remove_file(dir.join(CURRENT)).unwrap();
    let (list, generation) = found(&dir);
    assert!(list == bits(&all[..100_000]) && generation != Generation::Current);
}

#[test]
fn what_was_not_finished_is_written_over() {
    let scratch = Scratch::new("unfinished");
    let all = numbers(100, 0);
    save(&scratch.0, &all[..20]).unwrap();
    save(&scratch.0, &all[..40]).unwrap();
    let file = scratch.join("lists-0");
    let whole = fs::read(&file).unwrap();
    // Killed while it wrote what is new.
    fs::write(&file, [&whole[..], &[7; 1000]].concat()).unwrap();
    assert_eq!(found(&scratch.0), (bits(&all[..40]), Generation::Current));
    save(&scratch.0, &all[..60]).unwrap();
    assert_eq!(found(&scratch.0), (bits(&all[..60]), Generation::Current));
    assert!(fs::read(&file).unwrap().starts_with(&whole));
    // Gone back to the generation before, and on from there.
    fs::write(scratch.join(CURRENT), "rubbish").unwrap();
    let (list, _) = found(&scratch.0);
    assert_eq!(list, bits(&all[..40]));
    save(&scratch.0, &all[..50]).unwrap();
    assert_eq!(found(&scratch.0), (bits(&all[..50]), Generation::Current));
    assert_eq!(
        scratch.names(),
        [CURRENT, "lists-0", "previous.safetensors"]
    );
}

#[test]
fn lists_that_are_not_as_they_were_are_written_anew() {
    let scratch = Scratch::new("anew");
    let (old, new) = (numbers(100, 0), numbers(100, 1));
    save(&scratch.0, &old).unwrap();
    for other in [&new[..], &old[..30]] {
        save(&scratch.0, other).unwrap();
        assert_eq!(found(&scratch.0), (bits(other), Generation::Current));
    }
    // That of the generation before is still there, those of earlier ones are not.
    assert_eq!(
        scratch.names(),
        [CURRENT, "lists-1", "lists-2", "previous.safetensors"]
    );
    fs::remove_file(scratch.join(CURRENT)).unwrap();
    assert_eq!(found(&scratch.0).0, bits(&new));
}

#[test]
fn damage_is_found_and_the_generation_before_used_where_it_is_not_concerned() {
    let scratch = Scratch::new("damaged");
    let all = numbers(12, 0);
    save(&scratch.0, &all[..8]).unwrap();
    let border = size(&scratch.join("lists-0"));
    save(&scratch.0, &all).unwrap();
    let (mut lost, mut before) = (0, 0);
    damage(&scratch.join("lists-0"), |how| match load(&scratch.0) {
        // Spaces in the headers mean nothing.
        Ok(Some((_, Generation::Current))) => assert_eq!(found(&scratch.0).0, bits(&all), "{how}"),
        Ok(_) => {
            before += 1;
            assert_eq!(found(&scratch.0).0, bits(&all[..8]), "{how}");
        }
        Err(e) => {
            lost += 1;
            let message = format!("{e:#}");
            assert!(
                message.contains("previous.safetensors is damaged"),
                "{how}: {message}"
            );
        }
    });
    assert!(lost > 50 && before > 50, "{lost}, {before} at {border}");
    fs::remove_file(scratch.join("lists-0")).unwrap();
    let message = format!("{:#}", load(&scratch.0).unwrap_err());
    assert!(message.contains("lists-0"), "{message}");
    // What is in memory is saved all the same.
    save(&scratch.0, &all).unwrap();
    assert_eq!(found(&scratch.0), (bits(&all), Generation::Current));
}

#[test]
fn lists_that_cannot_be_opened_are_written_into_another_file() {
    let scratch = Scratch::new("blocked");
    let all = numbers(100, 0);
    save(&scratch.0, &all[..50]).unwrap();
    // A folder has a length too; which one, the file system decides.
    let file = scratch.join("lists-0");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let message = format!("{:#}", load(&scratch.0).unwrap_err());
    assert!(message.contains("lists-0"), "{message}");
    save(&scratch.0, &all).unwrap();
    assert_eq!(found(&scratch.0), (bits(&all), Generation::Current));
}
