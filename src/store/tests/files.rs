//! Single files: atomic writes, JSON, weights.

use std::collections::BTreeMap;
use std::fs;

use super::super::weights::{check_weights, load_weights, save_weights};
use super::super::{read_json, write_atomic, write_first, write_json};
use super::{DEAD, Scratch, damage};

#[test]
fn a_write_replaces_the_file_and_leaves_nothing_else() {
    let scratch = Scratch::new("atomic");
    let path = scratch.join("a.txt");
    write_atomic(&path, b"one").unwrap();
    write_atomic(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(scratch.names(), ["a.txt"]);
}

#[test]
fn names_of_users_are_no_temporary_ones() {
    let is_temporary = crate::store::temp_files::is_temporary;
    assert!(is_temporary("trace.zarr.old-12-345-6") && is_temporary("a.tmp-b.tmp-1-2-3"));
    for name in [
        "mydata.old-2020",
        "a.tmp-1",
        "a.tmp-1-2-3-4",
        "a.tmp-1-2-x",
        "a.old-",
    ] {
        assert!(!is_temporary(name), "{name}");
    }
}

#[test]
fn leftovers_of_dead_processes_go_and_other_files_stay() {
    let scratch = Scratch::new("leftovers");
    let earlier_life = format!("a.txt.tmp-{}-1-0", std::process::id());
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let alive = &format!("a.txt.tmp-1-{now}-0");
    // The first process of this machine has the same id, but is younger.
    let same_id = "a.txt.tmp-1-1-0";
    for name in [
        &format!("a.txt.tmp-{DEAD}"),
        &earlier_life,
        alive,
        same_id,
        "a.txt.tmp-notes",
        "b.txt",
    ] {
        fs::write(scratch.join(name), "half").unwrap();
    }
    write_atomic(&scratch.join("a.txt"), b"whole").unwrap();
    let mut expected = vec!["a.txt", "a.txt.tmp-notes", "b.txt"];
    if cfg!(target_os = "linux") {
        expected.insert(1, alive);
    }
    assert_eq!(scratch.names(), expected);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let scratch = Scratch::new("unwritable");
    fs::write(scratch.join("file"), "").unwrap();
    // A file in place of the folder: permissions would not stop a test that runs as root.
    let path = scratch.join("file").join("a.txt");
    let message = format!("{:#}", write_atomic(&path, b"x").unwrap_err());
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    assert!(message.contains("choose another folder"), "{message}");
    let missing = scratch.join("missing").join("a.txt");
    write_json(&missing, &1).unwrap();
    assert_eq!(read_json::<i32>(&missing).unwrap(), 1);
}

#[test]
fn json_comes_back_and_errors_name_the_file() {
    let scratch = Scratch::new("json");
    let path = scratch.join("a.json");
    let value = BTreeMap::from([("x".to_string(), 1.5), ("y".to_string(), -2.0)]);
    write_json(&path, &value).unwrap();
    assert_eq!(read_json::<BTreeMap<String, f64>>(&path).unwrap(), value);
    fs::write(&path, "{").unwrap();
    for path in [path, scratch.join("none.json")] {
        let message = format!(
            "{:#}",
            read_json::<BTreeMap<String, f64>>(&path).unwrap_err()
        );
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }
}

#[test]
fn weights_come_back_in_their_order_and_bytes_are_stable() {
    let scratch = Scratch::new("weights");
    let (path, again) = (scratch.join("w.safetensors"), scratch.join("v.safetensors"));
    let values = [1.0, -2.5, f32::MIN_POSITIVE, 4.0, f32::INFINITY, 0.0];
    let tensors = [
        ("net.2.weight".to_string(), vec![2, 3], &values[..]),
        ("net.0.bias".to_string(), vec![1], &values[..1]),
        ("empty".to_string(), vec![0, 4], &values[..0]),
    ];
    let metadata = [
        ("step".to_string(), "12".to_string()),
        ("run".to_string(), "a".to_string()),
    ];
    save_weights(&path, &tensors, &metadata).unwrap();
    save_weights(&again, &tensors, &metadata).unwrap();
    assert_eq!(fs::read(&path).unwrap(), fs::read(&again).unwrap());
    let expected = tensors.map(|(name, shape, values)| (name, shape, values.to_vec()));
    assert_eq!(load_weights(&path).unwrap().tensors, expected);
    damage(&path, |_| drop(load_weights(&path)));
}

#[test]
fn every_bit_of_weights_counts_and_files_without_a_checksum_are_read() {
    let scratch = Scratch::new("weights-bits");
    let path = scratch.join("w.safetensors");
    let tensors = [("w".to_string(), vec![3], &[1.0f32, -2.5, 0.0][..])];
    let about = [("temperature".to_string(), "1e-3".to_string())];
    save_weights(&path, &tensors, &about).unwrap();
    let whole = fs::read(&path).unwrap();
    let expected = load_weights(&path).unwrap();
    let data = whole.len() - 12;
    let in_metadata = whole.windows(4).position(|w| w == b"1e-3").unwrap();
    for bit in (8 * in_metadata..8 * in_metadata + 8).chain(8 * data..8 * whole.len()) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).unwrap();
        let message = format!("{:#}", load_weights(&path).expect_err("a flipped bit"));
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        assert!(check_weights(&path).is_err());
    }
    let bytes: Vec<u8> = tensors[0].2.iter().flat_map(|x| x.to_le_bytes()).collect();
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![3], &bytes);
    let plain = safetensors::serialize([("w", view.unwrap())], None).unwrap();
    fs::write(&path, plain).unwrap();
    assert_eq!(load_weights(&path).unwrap(), expected);
    check_weights(&path).unwrap();
}

#[test]
fn a_file_that_must_be_new_is_not_overwritten() {
    let scratch = Scratch::new("first");
    let path = scratch.join("deep").join("a.txt");
    write_first(&path, b"one").unwrap();
    let message = format!("{:#}", write_first(&path, b"two").unwrap_err());
    assert!(message.contains("exists; choose another name"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), b"one");
}

#[test]
fn weights_that_cannot_be_used_say_why() {
    let scratch = Scratch::new("weights-bad");
    let path = scratch.join("w.safetensors");
    let one = |name: &str, shape| (name.to_string(), shape, &[1.0f32][..]);
    let refused = |tensors: &[_]| format!("{:#}", save_weights(&path, tensors, &[]).unwrap_err());
    assert!(refused(&[one("a", vec![2])]).contains("'a' has shape [2] but 1 numbers"));
    assert!(refused(&[one("a", vec![1]), one("a", vec![1])]).contains("names must differ"));
    assert!(refused(&[one("__metadata__", vec![1])]).contains("reserves"));
    assert!(scratch.names().is_empty());
}
