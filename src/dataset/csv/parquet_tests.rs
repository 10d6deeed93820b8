//! Tests of Parquet files, as pandas has written one; `tests/interop/test_parquet.py` asks pandas for all kinds of columns.

use super::*;
use crate::dataset::csv::{ENTRY, PARQUET};
use crate::dataset::testing::{Folder, build, message, text};
use crate::options::Value;

const FILE: &str = "tests/data/visits.parquet";

fn words(list: &[&str]) -> Value {
    Value::List(list.iter().map(|w| text(w)).collect())
}

fn options(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("path", text(path)),
        ("label", text("outcome")),
        ("categories", words(&["ward"])),
        ("dates", words(&["day"])),
        ("missing", text("mean")),
        ("scale", text("standard")),
    ]
}

#[test]
fn a_table_is_the_same_from_text() {
    let ours = build(&PARQUET, &options(FILE)).unwrap();
    let theirs = build(&ENTRY, &options("tests/data/visits.csv")).unwrap();
    assert_eq!((ours.dim, ours.train.rows), (7, 48));
    assert_eq!(ours.train, theirs.train);
    assert_eq!(ours.test, theirs.test);
    assert_eq!(ours.class_names, theirs.class_names);
}

#[test]
fn what_is_wrong_is_said_with_the_row() {
    let mut given = options(FILE);
    given.retain(|(name, _)| *name != "missing");
    let said = message(&PARQUET, &given);
    assert!(
        said.contains("row 4, column 'age': the cell is empty"),
        "{said}"
    );
    let said = message(&ENTRY, &options(FILE));
    assert!(
        said.contains("is a Parquet file, which dataset::parquet reads"),
        "{said}"
    );
    let said = message(&PARQUET, &options("tests/data/visits.csv"));
    assert!(
        said.contains("is no Parquet file; dataset::csv reads text"),
        "{said}"
    );
}

/// Whatever byte is wrong, there is a message, or a table.
#[test]
fn damaged_files_are_errors() {
    let whole = std::fs::read(FILE).unwrap();
    let f = Folder::new();
    let mut refused = 0;
    for at in (4..whole.len()).step_by(13) {
        for damaged in [
            whole[..at].to_vec(),
            [&whole[..at], &[whole[at] ^ 0x55], &whole[at + 1..]].concat(),
        ] {
            let path = f.write("t.parquet", damaged);
            refused += usize::from(build(&PARQUET, &options(&path)).is_err());
        }
    }
    assert!(refused > 400, "{refused}");
}

#[test]
fn times_are_dates() {
    assert_eq!(moment(-1_500, 1_000), "1969-12-31 23:59:58.500000000");
    assert_eq!(
        moment(951_827_696_000_000_001, SECOND),
        "2000-02-29 12:34:56.000000001"
    );
}
