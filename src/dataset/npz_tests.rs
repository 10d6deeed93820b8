//! Tests of `npz.rs` and `npy.rs`; archives are written by `npyz` and `zip`, so that another program's reading of the format
//! is checked against ours.

use super::super::testing::{Folder, build, message, text};
use super::*;
use crate::options::Value;
use npyz::{AutoSerialize, Order, WriterBuilder};
use std::io::Write;
use zip::write::{SimpleFileOptions, ZipWriter};

/// The bytes of an array.
fn npy<T: AutoSerialize + Copy>(shape: &[u64], order: Order, data: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    let options = npyz::WriteOptions::new()
        .default_dtype()
        .shape(shape)
        .order(order);
    let mut w = options.writer(&mut out).begin_nd().unwrap();
    w.extend(data.iter().copied()).unwrap();
    w.finish().unwrap();
    out
}

fn c<T: AutoSerialize + Copy>(shape: &[u64], data: &[T]) -> Vec<u8> {
    npy(shape, Order::C, data)
}

/// An array whose header and content are written by hand.
fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    [out, header.into(), data.into()].concat()
}

fn archive(arrays: &[(&str, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut z = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        z.start_file(format!("{name}.npy"), options).unwrap();
        z.write_all(bytes).unwrap();
    }
    z.finish().unwrap().into_inner()
}

fn load_bytes(bytes: &[u8], more: &[(&str, Value)]) -> Result<Arc<Dataset>> {
    let f = Folder::new();
    let mut given = vec![("path", text(&f.write("a.npz", bytes)))];
    given.extend_from_slice(more);
    build(&ENTRY, &given)
}

fn load(arrays: &[(&str, Vec<u8>)]) -> Result<Arc<Dataset>> {
    load_bytes(&archive(arrays, zip::CompressionMethod::Deflated), &[])
}

fn refused(arrays: &[(&str, Vec<u8>)]) -> String {
    match load(arrays) {
        Ok(d) => panic!("built {d}"),
        Err(e) => e.to_string(),
    }
}

fn inputs(s: &Split) -> Vec<f32> {
    let mut x = vec![0.0; s.rows * s.dim];
    s.copy(0..s.rows, &mut x);
    x
}

fn two_labels() -> (&'static str, Vec<u8>) {
    ("y_train", c(&[2], &[0i64, 1]))
}

#[test]
fn every_type_is_read_stored_and_compressed() {
    let x = [1u8, 2, 3, 4];
    for (x, y) in [
        (c(&[2, 2], &x.map(|v| v as f32)), c(&[2], &[1u8, 0])),
        (c(&[2, 2], &x.map(|v| v as f64)), c(&[2], &[1i8, 0])),
        (c(&[2, 2], &x.map(|v| v as i8)), c(&[2], &[1i32, 0])),
        (c(&[2, 2], &x), c(&[2], &[1i64, 0])),
        (c(&[2, 2], &x.map(|v| v as i32)), c(&[2], &[1u16, 0])),
        (c(&[2, 2], &x.map(|v| v as i64)), c(&[2, 1], &[1u64, 0])),
        (
            npy(&[2, 2], Order::Fortran, &[1i16, 3, 2, 4]),
            c(&[2], &[1u32, 0]),
        ),
    ] {
        for method in [
            zip::CompressionMethod::Stored,
            zip::CompressionMethod::Deflated,
        ] {
            let a = [("x_train", x.clone()), ("y_train", y.clone())];
            let d = load_bytes(&archive(&a, method), &[]).unwrap();
            assert_eq!(inputs(&d.train), [1.0, 2.0, 3.0, 4.0]);
            assert_eq!((d.train.labels().unwrap(), d.classes), (&[1, 0][..], 2));
            assert!(d.test.is_none());
        }
    }
    let big = raw(
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1)}",
        &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0],
    );
    assert_eq!(
        inputs(&load(&[("x_train", big), two_labels()]).unwrap().train),
        [1.0, -2.0]
    );
}

#[test]
fn further_dimensions_are_flattened_and_spins_and_pixels_stay_bytes() {
    let x = c(&[2, 2, 2], &[1i8, -1, 1, 1, -1, -1, -1, 1]);
    let d = load(&[("x_train", x), two_labels()]).unwrap();
    assert_eq!((d.dim, d.train.bytes()), (4, 8 + 2 * 4));
    assert!(matches!(d.train.inputs, Inputs::I8(_)));
    let d = load(&[("x_train", c(&[2], &[-128i8, 1])), two_labels()]).unwrap();
    assert_eq!(d.train.inputs, Inputs::F32(vec![-128.0, 1.0]));
    let d = load(&[("x_train", c(&[2], &[255u8, 1])), two_labels()]).unwrap();
    assert_eq!(d.train.inputs, Inputs::U8(vec![255, 1], 1.0));
    assert_eq!(inputs(&d.train), [255.0, 1.0]);
}

#[test]
fn floating_point_targets_are_regression() {
    let arrays = [
        ("x_train", c(&[3, 1], &[0f32, 1.0, 2.0])),
        ("y_train", c(&[3, 2], &[0f64, 1.0, 2.0, 3.0, 4.0, 5.0])),
        ("inputs", c(&[1, 1], &[7f32])),
        ("y_test", c(&[1, 2], &[8f64, 9.0])),
    ];
    let bytes = archive(&arrays, zip::CompressionMethod::Stored);
    let d = load_bytes(
        &bytes,
        &[("x_test", text("inputs")), ("scale", text("unit"))],
    )
    .unwrap();
    assert_eq!((d.classes, d.outputs), (0, 2));
    assert_eq!(inputs(&d.train), [0.0, 0.5, 1.0]);
    let test = d.test.as_ref().unwrap();
    assert_eq!(
        (inputs(test), test.values().unwrap()),
        (vec![3.5], (2, &[8.0, 9.0][..]))
    );
    let e = load_bytes(&bytes, &[]).unwrap_err().to_string();
    assert!(e.contains("has no array 'x_test'"), "{e}");
}

#[test]
fn arrays_that_do_not_belong_together_are_refused() {
    let x = || ("x_train", c(&[2, 1], &[1f32, 2.0]));
    let y = two_labels;
    for (arrays, expected) in [
        (vec![x()], "has no array 'y_train'; did you mean 'x_train'?"),
        (
            vec![x(), ("y_train", c(&[3], &[0u8, 1, 1]))],
            "x_train' has 2 examples, but '",
        ),
        (
            vec![x(), ("y_train", c(&[2], &[0i8, -1]))],
            "the label of row 1 is -1",
        ),
        (
            vec![x(), ("y_train", c(&[2], &[0i32, 70_000]))],
            "the label of row 1 is 70000",
        ),
        (vec![x(), ("y_train", c(&[2], &[1u8, 1]))], "are all 1"),
        (
            vec![x(), ("y_train", c(&[2, 2], &[1u8, 0, 0, 1]))],
            "whole numbers of shape [2, 2] cannot be labels",
        ),
        (
            vec![x(), ("y_train", c(&[], &[1u8]))],
            "it is a single number",
        ),
        (
            vec![("x_train", c(&[0, 2], &[0f32; 0])), y()],
            "it is empty, of shape [0, 2]",
        ),
        (
            vec![("x_train", c(&[2, 2], &[0f32, 1.0, 2.0, f32::NAN])), y()],
            "row 1, column 1: NaN is not",
        ),
        (
            vec![("x_train", c(&[2, 1], &[0f64, 1e300])), y()],
            "row 1, column 0: 1",
        ),
        (
            vec![
                x(),
                y(),
                ("x_test", c(&[1, 2], &[0f32; 2])),
                ("y_test", c(&[1], &[0u8])),
            ],
            "x_test' has 2 components",
        ),
        (
            vec![
                x(),
                y(),
                ("x_test", c(&[1, 1], &[0f32])),
                ("y_test", c(&[1], &[2u8])),
            ],
            "only run from 0 to 1",
        ),
        (
            vec![
                x(),
                y(),
                ("x_test", c(&[1, 1], &[0f32])),
                ("y_test", c(&[1], &[2f32])),
            ],
            "holds whole numbers",
        ),
        (
            vec![x(), y(), ("y_test", c(&[1], &[2u8]))],
            "has no array 'x_test'",
        ),
    ] {
        let m = refused(&arrays);
        assert!(m.contains(expected) && m.contains("a.npz"), "{m}");
    }
}

#[test]
fn headers_that_lie_are_refused_without_allocating() {
    let with = |descr: &str, shape: &str| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}}}");
        refused(&[("x_train", raw(&header, &[0; 16])), two_labels()])
    };
    for (descr, shape, expected) in [
        ("<f4", "(2, 99)", "takes 792 bytes, but 16 follow"),
        ("<f4", "(2, 1)", "takes 8 bytes, but more follow"),
        (
            "<f8",
            "(4294967296, 4294967296)",
            "more than the file can hold",
        ),
        ("<f8", "(10000000000,)", "more than the file can hold"),
        (
            "<f8",
            "(0, 18446744073709551615, 18446744073709551615)",
            "follow",
        ),
        ("<c8", "(2, 1)", "its type '<c8' is not supported"),
        ("|O", "(2, 1)", "its type '|O' is not supported"),
        ("é", "(2, 1)", "its type 'é' is not supported"),
        ("", "(2, 1)", "its type '' is not supported"),
        (
            "<f4",
            "(-2, 1)",
            "its header is not that of an array of numbers",
        ),
    ] {
        let m = with(descr, shape);
        assert!(m.contains(expected), "{m}");
    }
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    for (bytes, expected) in [
        (long, "header claims 4294967295 bytes"),
        (b"\x93NUMPY\x09\x00".to_vec(), "version Some(9)"),
        (b"\x93NUMPY".to_vec(), "version None"),
        (b"nothing at all".to_vec(), "does not begin as an .npy"),
        (raw(&"(".repeat(9000), &[]), "its header is not that of"),
    ] {
        let m = refused(&[("x_train", bytes), two_labels()]);
        assert!(m.contains(expected), "{m}");
    }
}

#[test]
fn files_that_are_no_archives_are_refused_and_damage_is_noticed() {
    let good = archive(
        &[("x_train", c(&[2, 1], &[1f32, 2.0])), two_labels()],
        zip::CompressionMethod::Deflated,
    );
    let m = |bytes: &[u8]| load_bytes(bytes, &[]).unwrap_err().to_string();
    assert!(m(b"hello").contains("is not an .npz archive"));
    assert!(m(&good[..good.len() / 2]).contains("probably incomplete"));
    assert!(m(&c(&[1], &[1f32])).contains("is a single array (.npy)"));
    assert!(message(&ENTRY, &[("path", text("no.npz"))]).contains("there is no such file"));
    // Whatever byte is damaged, the answer is an error or a data set, never a panic.
    for i in 0..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[i] ^= flip;
            let _ = load_bytes(&bad, &[]);
        }
    }
    // Damage to compressed numbers is noticed by the checksum: the last number's bytes lie just before the second entry.
    let stored = archive(
        &[("x_train", c(&[2, 1], &[1f32, 2.0])), two_labels()],
        zip::CompressionMethod::Stored,
    );
    let at = stored
        .windows(4)
        .position(|w| w == 2f32.to_le_bytes())
        .unwrap();
    let mut bad = stored.clone();
    bad[at + 3] ^= 0x01;
    assert!(m(&bad).contains("is damaged"), "{}", m(&bad));
}
