//! The trace: round trips, swaps that were cut short, damaged files.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::zarr::{Array, Data, Group, read, write, write_chunked};
use super::{DEAD, Scratch, damage};

const CHUNK: usize = 2 * 3 * 2 * 8 * 7;

/// A trace with two chains, 20 draws and three temperatures, with a NaN in it.
fn trace(level: f64) -> Group {
    let floats = |n: usize| (0..n).map(|i| level + i as f64 * 0.25).collect::<Vec<_>>();
    let mut theta = floats(2 * 20 * 3);
    theta[17] = f64::NAN;
    let mut posterior = Group::new("posterior");
    let names = vec!["fc1".to_string(), String::new(), "läyer".to_string()];
    posterior.arrays = vec![
        Array::new(
            "theta",
            &["chain", "draw", "temperature"],
            &[2, 20, 3],
            Data::F64(theta),
        ),
        Array::new(
            "loss",
            &["chain", "draw"],
            &[2, 20],
            Data::F32(vec![f32::NAN; 40]),
        ),
        Array::new(
            "norm",
            &["layer", "draw"],
            &[3, 20],
            Data::I64((0..60).collect()),
        ),
        Array::new("total", &[], &[], Data::I64(vec![-5])),
        Array::new("chain", &["chain"], &[2], Data::I64(vec![0, 1])),
        Array::new("draw", &["draw"], &[20], Data::I64((0..20).collect())),
        Array::new("layer", &["layer"], &[3], Data::Str(names)),
    ];
    posterior.arrays[0]
        .attributes
        .insert("units".into(), json!("1"));
    let mut warmup = Group::new("warmup_posterior");
    warmup.arrays = vec![
        Array::new("theta", &["chain", "draw"], &[2, 0], Data::F64(vec![])),
        Array::new("layer", &["layer"], &[0], Data::Str(vec![])),
    ];
    let mut root = Group::new("trace.zarr");
    root.attributes
        .insert("created_by".into(), json!({ "name": "ergodic", "seed": 7 }));
    root.groups = vec![posterior, warmup];
    root
}

/// Equal, with NaN equal to NaN: `Debug` writes each number so that it can be told from all others.
fn assert_same(a: &Group, b: &Group) {
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}

#[test]
fn a_trace_comes_back() {
    let scratch = Scratch::new("zarr");
    let root = scratch.join("trace.zarr");
    for limit in [1, CHUNK, 1 << 20] {
        write_chunked(&root, &trace(1.0), limit).unwrap();
        assert_same(&read(&root).unwrap(), &trace(1.0));
    }
    assert_eq!(scratch.names(), ["trace.zarr"]);
}

#[test]
fn large_arrays_are_cut_along_the_draws() {
    let scratch = Scratch::new("chunks");
    let root = scratch.join("trace.zarr");
    write_chunked(&root, &trace(1.0), CHUNK).unwrap();
    let chunks = root.join("posterior/theta/c/0");
    assert_eq!(fs::read_dir(&chunks).unwrap().count(), 2);
    assert_eq!(
        fs::metadata(chunks.join("1/0")).unwrap().len(),
        CHUNK as u64 + 4
    );
}

#[test]
fn a_swap_cut_short_shows_the_new_tree_if_complete_or_the_old_one() {
    let scratch = Scratch::new("swap");
    let root = scratch.join("trace.zarr");
    let (old, new) = (
        scratch.join(&format!("trace.zarr.old-{DEAD}")),
        scratch.join(&format!("trace.zarr.tmp-{DEAD}")),
    );
    // Killed while writing: the half of a tree is ignored.
    write(&root, &trace(1.0)).unwrap();
    fs::create_dir_all(new.join("posterior")).unwrap();
    assert_same(&read(&root).unwrap(), &trace(1.0));
    fs::remove_dir_all(&new).unwrap();
    // Killed between the renames.
    fs::rename(&root, &old).unwrap();
    assert_same(
        &Group {
            name: "trace.zarr".into(),
            ..read(&root).unwrap()
        },
        &trace(1.0),
    );
    write(&scratch.join("other"), &trace(2.0)).unwrap();
    fs::rename(scratch.join("other"), &new).unwrap();
    assert_same(&read(&root).unwrap(), &trace(2.0));
    // The next write puts the names in order.
    write(&root, &trace(3.0)).unwrap();
    assert_same(&read(&root).unwrap(), &trace(3.0));
    assert_eq!(scratch.names(), ["trace.zarr"]);
}

#[test]
fn a_trace_that_cannot_be_opened_is_not_written() {
    let scratch = Scratch::new("refuse");
    let root = scratch.join("trace.zarr");
    write(&root, &trace(1.0)).unwrap();
    let refused = |change: &dyn Fn(&mut Array)| {
        let mut bad = trace(2.0);
        change(&mut bad.groups[0].arrays[0]);
        format!("{:#}", write(&root, &bad).unwrap_err())
    };
    let message = refused(&|a| a.name = "loss".into());
    assert!(
        message.contains("two arrays or groups are named 'posterior/loss'"),
        "{message}"
    );
    for name in ["", "..", "a/b", "zarr.json", "__x"] {
        let message = refused(&|a| a.name = name.into());
        assert!(message.contains("cannot be the name"), "{message}");
    }
    let message = refused(&|a| a.shape = vec![3, 20, 2]);
    assert!(message.contains("dimension 'chain' is 2 long"), "{message}");
    assert!(refused(&|a| a.shape = vec![2, 20, 2]).contains("120 values"));
    assert!(refused(&|a| a.dims.truncate(2)).contains("dimensions"));
    assert_same(&read(&root).unwrap(), &trace(1.0));
    assert_eq!(scratch.names(), ["trace.zarr"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let scratch = Scratch::new("zarr-folder");
    fs::write(scratch.join("file"), "").unwrap();
    let root = scratch.join("file").join("trace.zarr");
    let message = format!("{:#}", write(&root, &trace(1.0)).unwrap_err());
    assert!(
        message.contains(root.parent().unwrap().to_str().unwrap()),
        "{message}"
    );
    let message = format!("{:#}", read(&scratch.join("none.zarr")).unwrap_err());
    assert!(message.contains("none.zarr"), "{message}");
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries
        .flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] })
        .collect()
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let scratch = Scratch::new("zarr-damage");
    let root = scratch.join("trace.zarr");
    write_chunked(&root, &trace(1.0), CHUNK).unwrap();
    damage(&root.join("zarr.json"), |_| drop(read(&root)));
    damage(&root.join("posterior/layer/c/0"), |_| drop(read(&root)));
    for file in files(&root).iter().filter(|f| !f.ends_with("zarr.json")) {
        let whole = fs::read(file).unwrap();
        for cut in [0, whole.len() / 2, whole.len() - 1] {
            fs::write(file, &whole[..cut]).unwrap();
            let message = format!("{:#}", read(&root).unwrap_err());
            assert!(message.contains("cut off"), "{message}");
            assert!(message.contains(file.to_str().unwrap()), "{message}");
        }
        fs::remove_file(file).unwrap();
        assert!(read(&root).is_err());
        fs::write(file, whole).unwrap();
    }
    assert_same(&read(&root).unwrap(), &trace(1.0));
}

#[test]
fn every_bit_of_a_chunk_counts() {
    let scratch = Scratch::new("zarr-bits");
    let root = scratch.join("trace.zarr");
    write(&root, &trace(1.0)).unwrap();
    for file in files(&root).iter().filter(|f| !f.ends_with("zarr.json")) {
        let whole = fs::read(file).unwrap();
        for bit in (0..8 * whole.len()).step_by(13) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, bytes).unwrap();
            let message = format!("{:#}", read(&root).expect_err("a flipped bit"));
            assert!(message.contains(file.to_str().unwrap()), "{message}");
        }
        fs::write(file, whole).unwrap();
    }
    assert_same(&read(&root).unwrap(), &trace(1.0));
}

#[test]
fn traces_of_earlier_versions_without_checksums_are_read() {
    let scratch = Scratch::new("zarr-old");
    let root = scratch.join("trace.zarr");
    write(&root, &trace(1.0)).unwrap();
    for file in files(&root) {
        let mut bytes = fs::read(&file).unwrap();
        if file.ends_with("zarr.json") {
            fn without(value: &mut serde_json::Value) {
                match value {
                    serde_json::Value::Object(map) => map.iter_mut().for_each(|(key, v)| match v {
                        serde_json::Value::Array(codecs) if key == "codecs" => codecs.truncate(1),
                        v => without(v),
                    }),
                    serde_json::Value::Array(all) => all.iter_mut().for_each(without),
                    _ => {}
                }
            }
            let mut metadata = serde_json::from_slice(&bytes).unwrap();
            without(&mut metadata);
            bytes = serde_json::to_vec(&metadata).unwrap();
        } else {
            bytes.truncate(bytes.len() - 4);
        }
        fs::write(&file, bytes).unwrap();
    }
    assert_same(&read(&root).unwrap(), &trace(1.0));
}

#[test]
fn metadata_with_absurd_numbers_is_an_error() {
    let scratch = Scratch::new("absurd");
    let root = scratch.join("trace.zarr");
    write_chunked(&root, &trace(1.0), CHUNK).unwrap();
    let whole: serde_json::Value = super::super::read_json(&root.join("zarr.json")).unwrap();
    let huge = u64::MAX;
    for shape in [
        json!([2, huge, 3]),
        json!([2, 1u64 << 40, 3]),
        json!([0, huge, huge]),
        json!([]),
    ] {
        for chunk in [
            json!([2, 9, 3]),
            json!([2, huge, 3]),
            json!([2, 0, 3]),
            json!([0, 0, 0]),
            json!([]),
        ] {
            let mut bad = whole.clone();
            let array = &mut bad["consolidated_metadata"]["metadata"]["posterior/theta"];
            array["shape"] = shape.clone();
            array["chunk_grid"]["configuration"]["chunk_shape"] = chunk.clone();
            fs::write(root.join("zarr.json"), bad.to_string()).unwrap();
            assert!(read(&root).is_err(), "{shape} {chunk}");
        }
    }
}
