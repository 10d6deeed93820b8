//! The trace: round trips, swaps that were cut short, damaged files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::bytes::decode;
use super::super::zarr::{Array, Data, Group, check, write, write_chunked};
use super::{DEAD, Scratch, damage};

const CHUNK: usize = 2 * 3 * 2 * 8 * 7;

/// A group without content.
fn group(name: &str) -> Group {
    let (attributes, arrays, groups) = Default::default();
    Group {
        name: name.into(),
        attributes,
        arrays,
        groups,
    }
}

/// A trace with two chains, 20 draws and three temperatures, with a NaN in it.
fn trace(level: f64) -> Group {
    let floats = |n: usize| (0..n).map(|i| level + i as f64 * 0.25).collect::<Vec<_>>();
    let mut theta = floats(2 * 20 * 3);
    theta[17] = f64::NAN;
    let mut posterior = group("posterior");
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
            Data::F64(vec![f64::NAN; 40]),
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
    let mut warmup = group("warmup_posterior");
    warmup.arrays = vec![
        Array::new("theta", &["chain", "draw"], &[2, 0], Data::F64(vec![])),
        Array::new("layer", &["layer"], &[0], Data::Str(vec![])),
    ];
    let mut root = group("trace.zarr");
    root.attributes
        .insert("created_by".into(), json!({ "name": "ergodic", "seed": 7 }));
    root.groups = vec![posterior, warmup];
    root
}

/// The tree in a folder as the format has it: the metadata of every node, and the numbers of every array, one after the other.
fn read(root: &Path) -> Group {
    let node = |path: &str| -> Value {
        let text = fs::read(root.join(path).join("zarr.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let all = node("")["consolidated_metadata"]["metadata"].clone();
    let mut out = group("trace.zarr");
    out.attributes = node("")["attributes"].as_object().unwrap().clone();
    for (path, metadata) in all.as_object().unwrap() {
        assert_eq!(*metadata, node(path), "{path}");
        let attributes = metadata["attributes"].as_object().unwrap().clone();
        let Some((_, name)) = path.split_once('/') else {
            out.groups.push(Group {
                attributes,
                ..group(path)
            });
            continue;
        };
        let list = |v: &Value| -> Vec<usize> { serde_json::from_value(v.clone()).unwrap() };
        let shape = list(&metadata["shape"]);
        let chunk = list(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
        let data = values(
            &root.join(path),
            metadata["data_type"].as_str().unwrap(),
            &shape,
            &chunk,
        );
        let dims = serde_json::from_value(metadata["dimension_names"].clone()).unwrap();
        let array = Array {
            name: name.into(),
            dims,
            shape,
            data,
            attributes,
        };
        out.groups.last_mut().unwrap().arrays.push(array);
    }
    out
}

/// The values of an array, whose chunks have checksums.
fn values(folder: &Path, kind: &str, shape: &[usize], chunk: &[usize]) -> Data {
    let whole = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(bytes.len() - 4);
        bytes
    };
    let count: usize = shape.iter().product();
    if kind == "string" {
        let mut texts = Vec::new();
        if count > 0 {
            let bytes = whole(&folder.join("c/0"));
            let mut rest = &bytes[4..];
            while let Some((length, tail)) = rest.split_first_chunk() {
                let (text, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
                texts.push(String::from_utf8(text.to_vec()).unwrap());
                rest = tail;
            }
        }
        return Data::Str(texts);
    }
    let mut bytes = Vec::new();
    for flat in 0..count {
        let mut rest = flat;
        let mut at: Vec<_> = shape
            .iter()
            .rev()
            .map(|d| {
                let i = rest % d;
                rest /= d;
                i
            })
            .collect();
        at.reverse();
        let both = at.iter().zip(chunk);
        let path = both
            .clone()
            .fold(folder.join("c"), |p, (i, c)| p.join((i / c).to_string()));
        let within = both.fold(0, |n, (i, c)| n * c + i % c);
        bytes.extend(&whole(&path)[within * 8..(within + 1) * 8]);
    }
    match kind {
        "float64" => Data::F64(decode(&bytes)),
        _ => Data::I64(decode(&bytes)),
    }
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
        assert_same(&read(&root), &trace(1.0));
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
    assert_same(&read(&root), &trace(1.0));
    fs::remove_dir_all(&new).unwrap();
    // Killed between the renames: nothing under the name, and what stands in for it is whole.
    fs::rename(&root, &old).unwrap();
    check(&root).unwrap();
    write(&scratch.join("other"), &trace(2.0)).unwrap();
    fs::rename(scratch.join("other"), &new).unwrap();
    check(&root).unwrap();
    fs::remove_file(new.join("posterior/theta/c/0/0/0")).unwrap();
    assert!(check(&root).is_err());
    // The next write puts the names in order.
    write(&root, &trace(3.0)).unwrap();
    assert_same(&read(&root), &trace(3.0));
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
    assert_same(&read(&root), &trace(1.0));
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
    let message = format!("{:#}", check(&scratch.join("none.zarr")).unwrap_err());
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
    damage(&root.join("zarr.json"), |_| drop(check(&root)));
    damage(&root.join("posterior/layer/c/0"), |_| drop(check(&root)));
    for file in files(&root).iter().filter(|f| !f.ends_with("zarr.json")) {
        let whole = fs::read(file).unwrap();
        for cut in [0, whole.len() / 2, whole.len() - 1] {
            fs::write(file, &whole[..cut]).unwrap();
            let message = format!("{:#}", check(&root).unwrap_err());
            assert!(message.contains("cut off"), "{message}");
            assert!(message.contains(file.to_str().unwrap()), "{message}");
        }
        fs::remove_file(file).unwrap();
        assert!(check(&root).is_err());
        fs::write(file, whole).unwrap();
    }
    assert_same(&read(&root), &trace(1.0));
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
            let message = format!("{:#}", check(&root).expect_err("a flipped bit"));
            assert!(message.contains(file.to_str().unwrap()), "{message}");
        }
        fs::write(file, whole).unwrap();
    }
    assert_same(&read(&root), &trace(1.0));
}

#[test]
fn traces_of_earlier_versions_without_checksums_pass() {
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
    check(&root).unwrap();
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
            assert!(check(&root).is_err(), "{shape} {chunk}");
        }
    }
}
