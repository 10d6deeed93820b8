//! Checkpoints: round trips, and every way in which a generation can be lost.

use std::fs;

use serde_json::json;

use super::super::checkpoint::{Checkpoint, Generation, Tensor, TensorData, load, save};
use super::{DEAD, Scratch, damage};

const CURRENT: &str = "current.safetensors";
const PREVIOUS: &str = "previous.safetensors";

fn checkpoint(step: u64) -> Checkpoint {
    let tensor = |shape: &[usize], data| Tensor {
        shape: shape.to_vec(),
        data,
    };
    let odd = vec![step as f32, -0.0, f32::INFINITY, 1e-40, 3.5, 4.5];
    let tensors = vec![
        ("weights".to_string(), tensor(&[2, 3], TensorData::F32(odd))),
        (
            "rng".to_string(),
            tensor(&[2], TensorData::U64(vec![u64::MAX, step])),
        ),
        (
            "a mass".to_string(),
            tensor(&[], TensorData::F64(vec![f64::EPSILON])),
        ),
        (
            "counts".to_string(),
            tensor(&[2, 1], TensorData::I64(vec![i64::MIN, 7])),
        ),
        ("none".to_string(), tensor(&[3, 0], TensorData::F64(vec![]))),
    ];
    Checkpoint {
        meta: json!({ "step": step, "name": "α \"x\"\n", "nested": [1, null] }),
        tensors,
    }
}

#[test]
fn generations_rotate() {
    let scratch = Scratch::new("rotate");
    let dir = scratch.join("checkpoint");
    assert_eq!(load(&dir).unwrap(), None);
    for step in 1..4 {
        save(&dir, &checkpoint(step)).unwrap();
        assert_eq!(
            load(&dir).unwrap(),
            Some((checkpoint(step), Generation::Current))
        );
    }
    fs::remove_file(dir.join(CURRENT)).unwrap();
    let reason = format!("{CURRENT} is missing");
    assert_eq!(
        load(&dir).unwrap(),
        Some((checkpoint(2), Generation::Previous { reason }))
    );
}

#[test]
fn nan_keeps_its_bits() {
    let scratch = Scratch::new("nan");
    let bits = 0x7ff8_0000_dead_beef;
    let data = TensorData::F64(vec![f64::from_bits(bits)]);
    let tensors = vec![(
        "x".to_string(),
        Tensor {
            shape: vec![1],
            data,
        },
    )];
    save(
        &scratch.0,
        &Checkpoint {
            meta: json!(null),
            tensors,
        },
    )
    .unwrap();
    let (loaded, _) = load(&scratch.0).unwrap().unwrap();
    assert!(matches!(&loaded.tensors[0].1.data, TensorData::F64(v) if v[0].to_bits() == bits));
}

#[test]
fn a_damaged_generation_is_found_and_the_one_before_is_used() {
    let scratch = Scratch::new("damage");
    save(&scratch.0, &checkpoint(1)).unwrap();
    save(&scratch.0, &checkpoint(2)).unwrap();
    let (mut used, mut fell_back) = (0, 0);
    damage(&scratch.join(CURRENT), |how| {
        match load(&scratch.0).unwrap().unwrap() {
            (loaded, Generation::Current) => {
                assert_eq!(loaded, checkpoint(2), "{how}");
                used += 1;
            }
            (loaded, Generation::Previous { reason }) => {
                assert_eq!(loaded, checkpoint(1), "{how}");
                assert!(
                    reason.contains("current.safetensors is damaged"),
                    "{how}: {reason}"
                );
                fell_back += 1;
            }
        }
    });
    // Nearly nothing in the file is without meaning.
    assert!(
        fell_back > 20 * used,
        "{used} of {fell_back} went unnoticed"
    );
}

#[test]
fn every_flipped_data_byte_is_found() {
    let scratch = Scratch::new("flip");
    save(&scratch.0, &checkpoint(1)).unwrap();
    let path = scratch.join(CURRENT);
    let whole = fs::read(&path).unwrap();
    for back in 1..=24 {
        let mut bytes = whole.clone();
        let at = bytes.len() - back;
        bytes[at] ^= 0x04;
        fs::write(&path, bytes).unwrap();
        let message = format!("{:#}", load(&scratch.0).unwrap_err());
        assert!(message.contains("its checksum is"), "{message}");
        assert!(
            message.contains("previous.safetensors is missing"),
            "{message}"
        );
    }
}

#[test]
fn two_damaged_generations_are_an_error_with_both_reasons() {
    let scratch = Scratch::new("both");
    save(&scratch.0, &checkpoint(1)).unwrap();
    save(&scratch.0, &checkpoint(2)).unwrap();
    let half = fs::read(scratch.join(CURRENT)).unwrap();
    fs::write(scratch.join(CURRENT), &half[..half.len() / 2]).unwrap();
    fs::write(scratch.join(PREVIOUS), "").unwrap();
    let message = format!("{:#}", load(&scratch.0).unwrap_err());
    for part in [CURRENT, PREVIOUS, scratch.0.to_str().unwrap(), "restore"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn saving_over_a_damaged_current_keeps_the_good_previous() {
    let scratch = Scratch::new("keep");
    save(&scratch.0, &checkpoint(1)).unwrap();
    save(&scratch.0, &checkpoint(2)).unwrap();
    fs::write(scratch.join(CURRENT), "rubbish").unwrap();
    save(&scratch.0, &checkpoint(3)).unwrap();
    assert_eq!(
        load(&scratch.0).unwrap(),
        Some((checkpoint(3), Generation::Current))
    );
    fs::remove_file(scratch.join(CURRENT)).unwrap();
    assert_eq!(load(&scratch.0).unwrap().unwrap().0, checkpoint(1));
}

#[test]
fn a_half_written_file_is_ignored_and_goes_at_the_next_save() {
    let scratch = Scratch::new("half");
    save(&scratch.0, &checkpoint(1)).unwrap();
    fs::write(scratch.join(&format!("{CURRENT}.tmp-{DEAD}")), "half").unwrap();
    assert_eq!(load(&scratch.0).unwrap().unwrap().0, checkpoint(1));
    save(&scratch.0, &checkpoint(2)).unwrap();
    assert_eq!(scratch.names(), [CURRENT, PREVIOUS]);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let scratch = Scratch::new("nofolder");
    fs::write(scratch.join("file"), "").unwrap();
    let dir = scratch.join("file").join("checkpoint");
    let message = format!("{:#}", save(&dir, &checkpoint(1)).unwrap_err());
    assert!(message.contains(dir.to_str().unwrap()), "{message}");
}
