//! Checkpoints: round trips, and every way in which a generation can be lost.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::bytes::PIECE;
use super::super::checkpoint::{
    self, Checkpoint, DataRef, Generation, Tensor, TensorData, TensorRef, load,
};
use super::{DEAD, Scratch, damage};
use crate::error::Result;

const CURRENT: &str = "current.safetensors";
const PREVIOUS: &str = "previous.safetensors";

/// Saves what [`load`] gives.
fn save(dir: &Path, saved: &Checkpoint) -> Result<()> {
    let tensors: Vec<_> = saved.tensors.iter().map(view).collect();
    checkpoint::save(dir, &saved.meta, &tensors)
}

fn view((name, tensor): &(String, Tensor)) -> (String, TensorRef<'_>) {
    let data = match &tensor.data {
        TensorData::F32(v) => DataRef::F32(v),
        TensorData::F64(v) => DataRef::F64(v),
        TensorData::U64(v) => DataRef::U64(v),
        TensorData::I64(v) => DataRef::I64(v),
    };
    let shape = tensor.shape.clone();
    (name.clone(), TensorRef::new(shape, data))
}

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
fn the_bytes_of_a_file_stay_as_they_are() {
    // What earlier versions wrote must be resumed, so this is what they wrote.
    let head = |crc32: &str, format: &str| {
        let meta = r#""meta":"{\"step\":7,\"name\":\"α\"}","order":"[\"w\",\"rng\",\"a\"]""#;
        let tensors = concat!(
            r#""rng":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F64","shape":[],"data_offsets":[8,16]},"#,
            r#""w":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]}}"#,
        );
        format!(r#"{{"__metadata__":{{"crc32":"{crc32}",{format}{meta}}},{tensors}"#)
    };
    let mut header = head("f690a957", r#""format":"1","#);
    // The format fills it up with spaces.
    header.extend(std::iter::repeat_n(
        ' ',
        header.len().next_multiple_of(8) - header.len(),
    ));
    let scratch = Scratch::new("golden");
    let tensor = |name: &str, shape: &[usize], data| {
        let shape = shape.to_vec();
        (name.to_string(), TensorRef::new(shape, data))
    };
    let tensors = [
        tensor("w", &[2, 1], DataRef::F32(&[1.0, -2.0])),
        tensor("rng", &[1], DataRef::U64(&[258])),
        tensor("a", &[], DataRef::F64(&[0.5])),
    ];
    let meta = json!({ "step": 7, "name": "α" });
    checkpoint::save(&scratch.0, &meta, &tensors).unwrap();
    let file = fs::read(scratch.join(CURRENT)).unwrap();
    let (front, data) = file.split_at(file.len() - 24);
    assert_eq!(front[..8], (header.len() as u64).to_le_bytes());
    assert_eq!(str::from_utf8(&front[8..]).unwrap(), header);
    let numbers = [
        258u64.to_le_bytes(),
        0.5f64.to_le_bytes(),
        [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0],
    ];
    assert_eq!(data, numbers.concat());
    // Before there was a number of the format.
    let write = |header: &str| {
        let length = (header.len() as u64).to_le_bytes();
        let bytes = [&length[..], header.as_bytes(), data].concat();
        fs::write(scratch.join(CURRENT), bytes).unwrap();
        load(&scratch.0)
    };
    let (earlier, _) = write(&head("91cb5853", "")).unwrap().unwrap();
    assert_eq!(earlier.meta, meta);
    // One that is to come, and is not damaged; there is no way back to the one before.
    let later = write(&head("18944806", r#""format":"2","#)).unwrap_err();
    let said = format!("{later:#}");
    assert!(
        said.contains("its format is 2") && said.contains("reads 1"),
        "{said}"
    );
    assert!(
        write(&head("22222222", r#""format":"2","#))
            .is_err_and(|e| !format!("{e:#}").contains("format is"))
    );
}

#[test]
fn tensors_of_many_pieces_come_back() {
    let scratch = Scratch::new("pieces");
    // PIECE counts bytes, so these are four to eight pieces, which end at, before and after a border.
    let counts = [PIECE, PIECE - 1, PIECE + 1];
    let tensors: Vec<_> = counts
        .iter()
        .flat_map(|&count| {
            let numbers = || (0..count as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 9);
            [
                TensorData::F32(numbers().map(|i| i as f32).collect()),
                TensorData::F64(numbers().map(|i| i as f64).collect()),
                TensorData::U64(numbers().collect()),
                TensorData::I64(numbers().map(|i| -(i as i64)).collect()),
            ]
            .map(|data| Tensor {
                shape: vec![1, count],
                data,
            })
        })
        .enumerate()
        .map(|(i, tensor)| (format!("t{i}"), tensor))
        .collect();
    let meta = json!({ "step": 1 });
    let mut large = Checkpoint { meta, tensors };
    save(&scratch.0, &large).unwrap();
    assert!(load(&scratch.0).unwrap() == Some((large.clone(), Generation::Current)));
    // A second save reads the first one to keep it.
    large.meta = json!({ "step": 2 });
    save(&scratch.0, &large).unwrap();
    assert!(load(&scratch.0).unwrap() == Some((large, Generation::Current)));
    fs::remove_file(scratch.join(CURRENT)).unwrap();
    let (before, _) = load(&scratch.0).unwrap().unwrap();
    assert_eq!(before.meta["step"], 1);
}

#[test]
fn tensors_that_cannot_be_saved_leave_the_checkpoint_as_it_was() {
    let scratch = Scratch::new("refused");
    save(&scratch.0, &checkpoint(1)).unwrap();
    let mut bad = checkpoint(2);
    bad.tensors[1].0 = "weights".into();
    let message = format!("{:#}", save(&scratch.0, &bad).unwrap_err());
    assert!(
        message.contains("two tensors are named 'weights'"),
        "{message}"
    );
    bad = checkpoint(2);
    bad.tensors[0].1.shape = vec![usize::MAX, 2];
    let message = format!("{:#}", save(&scratch.0, &bad).unwrap_err());
    assert!(message.contains("'weights' has shape"), "{message}");
    assert!(message.contains(scratch.0.to_str().unwrap()), "{message}");
    assert_eq!(scratch.names(), [CURRENT]);
    assert_eq!(load(&scratch.0).unwrap().unwrap().0, checkpoint(1));
}

#[test]
fn a_header_of_absurd_length_is_an_error() {
    let scratch = Scratch::new("length");
    save(&scratch.0, &checkpoint(1)).unwrap();
    let path = scratch.join(CURRENT);
    let whole = fs::read(&path).unwrap();
    for length in [0, whole.len() as u64, 100_000_001, u64::MAX] {
        let bytes = [&length.to_le_bytes(), &whole[8..]].concat();
        fs::write(&path, bytes).unwrap();
        let message = format!("{:#}", load(&scratch.0).unwrap_err());
        assert!(message.contains("its header"), "{message}");
    }
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
fn a_folder_without_any_generation_has_lost_them() {
    let scratch = Scratch::new("lost");
    let dir = scratch.join("checkpoint");
    assert_eq!(load(&dir).unwrap(), None);
    save(&dir, &checkpoint(1)).unwrap();
    assert_eq!(scratch.names(), ["checkpoint"]);
    fs::remove_file(dir.join(CURRENT)).unwrap();
    let message = format!("{:#}", load(&dir).unwrap_err());
    assert!(
        message.contains("is missing") && message.contains("to start afresh"),
        "{message}"
    );
}

#[test]
fn whoever_reads_while_it_is_saved_finds_a_newest_generation() {
    let scratch = Scratch::new("reading");
    let dir = scratch.join("checkpoint");
    save(&dir, &checkpoint(0)).unwrap();
    let saving = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|s| {
        s.spawn(|| {
            (1..30).for_each(|step| save(&dir, &checkpoint(step)).unwrap());
            saving.store(false, std::sync::atomic::Ordering::Relaxed);
        });
        while saving.load(std::sync::atomic::Ordering::Relaxed) {
            let (_, generation) = load(&dir).unwrap().unwrap();
            assert_eq!(generation, Generation::Current);
        }
    });
    // The same file twice, as a process of an earlier version left it that was killed in between.
    let same = dir.join(PREVIOUS);
    fs::remove_file(&same).unwrap();
    fs::hard_link(dir.join(CURRENT), &same).unwrap();
    save(&dir, &checkpoint(30)).unwrap();
    let names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    fs::remove_file(dir.join(CURRENT)).unwrap();
    assert_eq!(load(&dir).unwrap().unwrap().0, checkpoint(29));
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
