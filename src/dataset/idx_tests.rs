//! Tests of `idx.rs`, in a file of their own for their length.

use super::super::testing::{Folder, build, gzip, message, text};
use super::*;
use crate::options::Value;

/// An IDX file: magic number, sizes, content.
fn idx(magic: u32, sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let mut out = magic.to_be_bytes().to_vec();
    sizes.iter().for_each(|s| out.extend(s.to_be_bytes()));
    out.extend(data);
    out
}

fn images(n: usize, side: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..n * side * side).map(|i| (i * 41 % 256) as u8).collect();
    idx(2051, &[n as u32, side as u32, side as u32], &data)
}

fn labels(n: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..n).map(|i| (i % 3) as u8).collect();
    idx(2049, &[n as u32], &data)
}

/// A folder of 30 training and 12 test images of 3×3 pixels, under names and compressions of every kind.
fn folder() -> Folder {
    let f = Folder::new();
    f.write("train-images-idx3-ubyte", images(30, 3));
    f.write("train-labels.idx1-ubyte", labels(30));
    f.write("t10k-images-idx3-ubyte.gz", gzip(&images(12, 3)));
    f.write("t10k-labels-idx1-ubyte", gzip(&labels(12)));
    f
}

fn load(more: &[(&str, Value)]) -> Arc<Dataset> {
    let f = folder();
    let mut given = vec![("path", text(&f.path("")))];
    given.extend_from_slice(more);
    build(&ENTRY, &given).unwrap()
}

#[test]
fn a_folder_is_read_whatever_its_files_are_called() {
    let d = load(&[]);
    assert_eq!(
        (
            d.dim,
            d.classes,
            d.train.rows,
            d.test.as_ref().unwrap().rows
        ),
        (9, 3, 30, 12)
    );
    let mut x = [0.0; 9];
    d.train.copy(0..1, &mut x);
    assert_eq!(
        (x[0], x[1], x[7]),
        (0.0, 41.0 / 255.0, (287.0 - 256.0) / 255.0)
    );
    assert_eq!(d.train.labels().unwrap()[..4], [0, 1, 2, 0]);
    assert!(d.to_string().contains("crc32"));
}

#[test]
fn limits_subsets_and_validation_apply_in_turn() {
    let more = [
        ("train", Value::Int(24)),
        ("test", Value::Int(6)),
        ("validation", Value::Float(0.25)),
        ("per_class", Value::Int(2)),
    ];
    let d = load(&more);
    assert_eq!(d.train.class_counts(3), [2, 2, 2]);
    assert_eq!(d.validation.as_ref().unwrap().class_counts(3), [2, 2, 2]);
    assert_eq!(d.test.as_ref().unwrap().rows, 6);
}

#[test]
fn scales_are_as_described() {
    let value = |scale: &str| {
        let d = load(&[("scale", text(scale))]);
        let mut x = vec![0.0; 270];
        d.train.copy(0..30, &mut x);
        x
    };
    assert_eq!(value("none")[1], 41.0);
    let x = value("standard");
    for j in 0..9 {
        let column = || x.iter().skip(j).step_by(9).map(|&x| x as f64);
        assert!(
            column().sum::<f64>().abs() < 1e-4
                && (column().map(|x| x * x).sum::<f64>() - 30.0).abs() < 1e-3
        );
    }
}

#[test]
fn projected_images_are_bytes_of_spins() {
    let d = load(&[("project", Value::Int(5))]);
    assert_eq!((d.dim, d.train.bytes()), (5, 30 * 5 + 30 * 4));
    assert_eq!(d.train, load(&[("project", Value::Int(5))]).train);
    assert_ne!(
        d.train,
        load(&[("project", Value::Int(5)), ("seed", Value::Int(9))]).train
    );
    let f = folder();
    let given = [
        ("path", text(&f.path(""))),
        ("project", Value::Int(5)),
        ("scale", text("standard")),
    ];
    assert!(message(&ENTRY, &given).contains("leave out scale"));
}

/// The message when the training files hold these bytes.
fn refused(images: Vec<u8>, labels: Vec<u8>) -> String {
    let f = Folder::new();
    let (i, l) = (f.write("images", images), f.write("labels", labels));
    message(
        &ENTRY,
        &[("train_images", text(&i)), ("train_labels", text(&l))],
    )
}

#[test]
fn malformed_files_are_refused_with_the_reason() {
    let cut = |mut v: Vec<u8>, n: usize| {
        v.truncate(v.len() - n);
        v
    };
    let longer = [images(9, 3), vec![1]].concat();
    let lying = idx(2051, &[u32::MAX, 60_000, 60_000], &[1; 50]);
    let overflow = idx(2051, &[u32::MAX; 3], &[1; 50]);
    for (images, labels, expected) in [
        (
            labels(9),
            labels(9),
            "it is a label file: are the two swapped?",
        ),
        (
            images(9, 3),
            images(9, 3),
            "it is an image file: are the two swapped?",
        ),
        (b"P5 28 28 image....".to_vec(), labels(9), "instead of 2051"),
        (vec![0, 0], labels(9), "is truncated: 2 bytes"),
        (idx(2051, &[9, 3], &[]), labels(9), "is truncated: 12 bytes"),
        (
            cut(images(9, 3), 1),
            labels(9),
            "9×3×3 = 81 bytes, but 80 follow",
        ),
        (longer, labels(9), "more bytes follow than the 9×3×3 = 81"),
        (lying, labels(9), "of memory are needed"),
        (overflow, labels(9), "more than any file holds"),
        (
            idx(2051, &[0, 3, 3], &[]),
            labels(9),
            "is empty: its header says 0×3×3",
        ),
        (images(9, 3), labels(8), "has 9 examples"),
        (
            images(9, 3),
            idx(2049, &[9], &[4; 9]),
            "all 9 training labels are the same",
        ),
        (cut(gzip(&images(9, 3)), 9), labels(9), "is damaged"),
        (Vec::new(), labels(9), "is empty (0 bytes)"),
    ] {
        let m = refused(images, labels);
        assert!(m.contains(expected), "{m}");
    }
}

#[test]
fn missing_and_mismatched_files_are_named() {
    let f = folder();
    assert!(message(&ENTRY, &[]).contains("needs a folder 'path'"));
    assert!(message(&ENTRY, &[("path", text("no/where"))]).contains("no such folder"));
    let file = f.path("train-images-idx3-ubyte");
    assert!(message(&ENTRY, &[("path", text(&file))]).contains("is a file"));
    assert!(message(&ENTRY, &[("train_images", text(&file))]).contains("without 'train_labels'"));
    assert!(
        message(
            &ENTRY,
            &[
                ("train_images", text(&f.path(""))),
                ("train_labels", text(&file))
            ]
        )
        .contains("is a folder")
    );
    let too_many = [("path", text(&f.path(""))), ("per_class", Value::Int(11))];
    assert!(message(&ENTRY, &too_many).contains("only 10 training examples"));
    f.write("t10k-images-idx3-ubyte.gz", images(12, 4));
    assert!(
        message(&ENTRY, &[("path", text(&f.path("")))]).contains("3×3 pixels, but test images 4×4")
    );
    std::fs::remove_file(f.path("t10k-images-idx3-ubyte.gz")).unwrap();
    let m = message(&ENTRY, &[("path", text(&f.path("")))]);
    assert!(
        m.contains("has no file 't10k-images-idx3-ubyte'") && m.contains("'test_images'"),
        "{m}"
    );
}
