use super::super::Inputs;
use super::super::testing::{Folder, build, message, text};
use super::*;
use crate::options::Value;
use std::io::Write;

/// An .npy file as NumPy writes it.
fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), bytes].concat()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn safetensors(tensors: &[(&str, &str, &str, &[u8])]) -> Vec<u8> {
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let (from, to) = (data.len(), data.len() + bytes.len());
        header.push(format!(
            r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#
        ));
        data.extend_from_slice(bytes);
    }
    let header = format!("{{{}}}", header.join(","));
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}

fn of(path: &str, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut given = vec![("path", text(path)), ("test", Value::Int(0))];
    given.extend_from_slice(more);
    given
}

#[test]
fn every_kind_of_file_gives_the_same_rows() {
    let folder = Folder::new();
    let numbers = [3i32, 1, 4, 1, 5, 9, 2, 6, 5, 3];
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let small: Vec<u8> = numbers.iter().map(|x| *x as u8).collect();
    let long: Vec<u8> = numbers
        .iter()
        .flat_map(|x| (*x as i64).to_le_bytes())
        .collect();
    let array = npy("<i4", "(2, 5)", &bytes);
    let other = npy("<f4", "(1,)", &[0; 4]);
    let cases = [
        (folder.write("a", array.clone()), None),
        (folder.write("b", npz(&[("t", array.clone())])), None),
        (
            folder.write("c", npz(&[("u", other), ("t", array)])),
            Some("t"),
        ),
        (
            folder.write("d", safetensors(&[("t", "U8", "[2,5]", &small)])),
            None,
        ),
        (
            folder.write(
                "e",
                safetensors(&[("t", "I64", "[2,5]", &long), ("u", "U8", "[1]", &[1])]),
            ),
            Some("t"),
        ),
    ];
    for (path, array) in cases {
        let named: Vec<_> = array.iter().map(|a| ("array", text(a))).collect();
        let d = build(&ENTRY, &of(&path, &named)).unwrap();
        assert_eq!((d.dim, d.classes, d.train.rows), (4, 10, 2), "{path}");
        assert_eq!(d.train.inputs, Inputs::Tokens(vec![3, 1, 4, 1, 9, 2, 6, 5]));
        assert_eq!(d.train.labels().unwrap(), [1, 4, 1, 5, 2, 6, 5, 3]);
        let more = [
            named,
            vec![("context", Value::Int(2)), ("vocabulary", Value::Int(20))],
        ]
        .concat();
        let d = build(&ENTRY, &of(&path, &more)).unwrap();
        assert_eq!((d.dim, d.classes, d.train.rows), (2, 20, 4));
        assert_eq!(d.train.labels().unwrap(), [1, 4, 1, 5, 2, 6, 5, 3]);
    }
    let stream = folder.write("f", npy("|u1", "(10,)", &small));
    let d = build(&ENTRY, &of(&stream, &[("context", Value::Int(3))])).unwrap();
    assert_eq!((d.dim, d.train.rows), (3, 3));
    assert!(message(&ENTRY, &of(&stream, &[])).contains("'context' must say"));
}

#[test]
fn raw_numbers_are_tokens_of_their_type() {
    let folder = Folder::new();
    let numbers = [3u32, 1, 70_000, 1, 5, 9, 2, 6, 5];
    let long: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let short: Vec<u8> = numbers
        .iter()
        .flat_map(|x| (*x as u16).to_le_bytes())
        .collect();
    let context = ("context", Value::Int(4));
    let path = folder.write("long.bin", &long);
    let d = build(
        &ENTRY,
        &of(&path, &[context.clone(), ("dtype", text("uint32"))]),
    )
    .unwrap();
    assert_eq!((d.dim, d.classes, d.train.rows), (4, 70_001, 2));
    assert_eq!(d.train.inputs, Inputs::Tokens(numbers[..8].to_vec()));
    assert_eq!(d.train.labels().unwrap(), &numbers[1..]);
    // As floats, as models get them.
    let mut x = [0.0; 4];
    d.train.gather(&[0], &mut x);
    assert_eq!(x, [3.0, 1.0, 70_000.0, 1.0]);
    let path = folder.write("short.bin", &short);
    let d = build(&ENTRY, &of(&path, std::slice::from_ref(&context))).unwrap();
    assert_eq!(d.train.labels().unwrap()[..3], [1, 70_000 - 65_536, 1]);
    let named = folder.write("short", &short);
    let d = build(
        &ENTRY,
        &of(&named, &[context.clone(), ("dtype", text("uint16"))]),
    )
    .unwrap();
    assert_eq!(d.train.rows, 2);

    let e = message(
        &ENTRY,
        &of(&path, &[context.clone(), ("dtype", text("uint32"))]),
    );
    assert!(
        e.contains("18 bytes, which are no whole number of uint32"),
        "{e}"
    );
    let e = message(
        &ENTRY,
        &of(&path, &[context.clone(), ("vocabulary", Value::Int(9))]),
    );
    assert!(
        e.contains("element 2 is 4464, but a token is a whole number 0, 1, 2, … below 9"),
        "{e}"
    );
    let e = message(&ENTRY, &of(&path, &[]));
    assert!(e.contains("'context' must say"), "{e}");
    let e = message(&ENTRY, &of(&path, &[context.clone(), ("array", text("t"))]));
    assert!(e.contains("leave out the option 'array'"), "{e}");
    let header = [&20_240_520_i32.to_le_bytes()[..], &short].concat();
    let e = message(
        &ENTRY,
        &of(
            &folder.write("llm.bin", header),
            std::slice::from_ref(&context),
        ),
    );
    assert!(e.contains("a header of llm.c"), "{e}");
    let typed = [context, ("dtype", text("uint16"))];
    let e = message(&ENTRY, &of("tests/data/tokens.npy", &typed));
    assert!(e.contains("leave out the option 'dtype'"), "{e}");
}

#[test]
fn the_bundled_example_can_be_read() {
    let d = build(
        &ENTRY,
        &of("tests/data/tokens.npy", &[("context", Value::Int(16))]),
    )
    .unwrap();
    assert_eq!((d.dim, d.classes), (16, 12));
}

#[test]
fn bad_files_are_named_with_the_reason_and_the_remedy() {
    let folder = Folder::new();
    let path = |name: &str, bytes: Vec<u8>| folder.write(name, bytes);
    let context = [("context", Value::Int(2))];
    let cases = [
        (
            path("a", npy("<f4", "(4,)", &[0; 16])),
            "floating-point numbers",
        ),
        (
            path("b", npy("|i1", "(4,)", &[0, 1, 255, 3])),
            "element 2 is -1",
        ),
        (
            path(
                "c",
                npy("<u4", "(3,)", &[0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]),
            ),
            "element 1 is 16777216, but a token is a whole number 0, 1, 2, … below 16777216",
        ),
        (path("d", npy("|u1", "(2, 2, 2)", &[0; 8])), "reshape it"),
        (path("e", npy("|u1", "(0,)", &[])), "is empty"),
        (
            path("f", npy("|u1", "(2,)", &[0, 1])),
            "ask for a context of at most 1",
        ),
        (
            path("g", b"hello, world".to_vec()),
            "cannot be read as safetensors",
        ),
        (
            path("h", safetensors(&[("t", "F32", "[1]", &[0; 4])])),
            "tensor.int()",
        ),
        (
            path(
                "i",
                safetensors(&[("t", "U8", "[1]", &[0]), ("u", "U8", "[1]", &[0])]),
            ),
            "has 2 arrays; the option 'array' must name one: t, u",
        ),
        (path("j", npz(&[])), "has 0 arrays"),
        (folder.path("none"), "no such file"),
        (folder.path(""), "is a folder"),
    ];
    for (path, expected) in cases {
        let e = message(&ENTRY, &of(&path, &context));
        assert!(e.contains(expected), "{expected}: {e}");
    }
    let wrong = [("array", text("tt")), ("context", Value::Int(1))];
    let e = message(&ENTRY, &of(&folder.path("i"), &wrong));
    assert!(e.contains("no array 'tt'"), "{e}");
    let e = message(&ENTRY, &of(&folder.path("b"), &[wrong[0].clone()]));
    assert!(e.contains("leave out the option 'array'"), "{e}");
    let few = [("context", Value::Int(1)), ("vocabulary", Value::Int(2))];
    let e = message(
        &ENTRY,
        &of(&path("k", npy("|u1", "(3,)", &[0, 1, 2])), &few),
    );
    assert!(e.contains("element 2 is 2") && e.contains("below 2"), "{e}");
}
