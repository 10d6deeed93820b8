//! Tests of data sets made of others.

use super::super::testing::build;
use super::super::{Scale, digits};
use super::*;
use crate::options::Value;

fn dataset() -> Dataset {
    let given = [("validation", Value::Float(0.1))];
    Arc::unwrap_or_clone(build(&digits::ENTRY, &given).unwrap())
}

#[test]
fn all_splits_are_mapped_and_classes_counted_anew() {
    let d = dataset();
    let made = d
        .map("parity", |e| {
            let Target::Label(l) = e.target else {
                panic!("digits have labels")
            };
            Ok(Example {
                input: vec![e.input.iter().sum()],
                shape: vec![1],
                target: Target::Label(l % 2),
            })
        })
        .unwrap();
    assert_eq!((made.classes, made.dim, made.outputs), (2, 1, 2));
    for (name, s) in d.splits() {
        let new = made.split(name).unwrap();
        let sums: Vec<f64> = s.inputs_f64().chunks(64).map(|x| x.iter().sum()).collect();
        assert_eq!(new.inputs_f64(), sums);
        let parity: Vec<u32> = s.labels().unwrap().iter().map(|l| l % 2).collect();
        assert_eq!(new.labels().unwrap(), parity);
    }
    // What changes nothing is the same data set, for whoever resumes with it too.
    let same = d.map("nothing", Ok).unwrap();
    assert_eq!((&same.train, same.classes), (&d.train, 10));
    let sum = |d: &Dataset| {
        let mut hash = crc32fast::Hasher::new();
        d.splits().for_each(|(_, s)| s.fingerprint(&mut hash));
        hash.finalize()
    };
    assert_eq!(sum(&same), sum(&d));
    assert_ne!(sum(&made), sum(&d));
}

#[test]
fn examples_of_several_kinds_are_refused() {
    let d = dataset();
    let mut row = 0;
    let e = d.map("odd", |e| {
        row += 1;
        let target = match row {
            3 => Target::Values(vec![0.5]),
            _ => e.target,
        };
        Ok(Example { target, ..e })
    });
    let e = format!("{:#}", e.unwrap_err());
    assert!(e.contains("map, row 2 of the train split: the input has the shape [8, 8] and the target is 1 target value, but those of the first"), "{e}");
    let nan = |e: Example| {
        Ok(Example {
            input: vec![f64::NAN; 64],
            ..e
        })
    };
    let e = format!("{:#}", d.map("nan", nan).unwrap_err());
    assert!(
        e.contains("row 0 of the train split: NaN is not a finite"),
        "{e}"
    );
    let high = |e: Example| {
        Ok(Example {
            target: Target::Label(3),
            ..e
        })
    };
    let e = d.map("one class", high).unwrap_err().to_string();
    assert!(e.contains("all 3: with one class"), "{e}");
}

#[test]
fn filters_keep_rows_and_numbers_of_classes() {
    let d = dataset();
    let even = |e: &Example| matches!(e.target, Target::Label(l) if l.is_multiple_of(2));
    let made = d.filter("even", |e| Ok(even(&e))).unwrap();
    assert_eq!(made.classes, 10);
    for (name, s) in d.splits() {
        let labels = s.labels().unwrap();
        let rows: Vec<u32> = (0..s.rows as u32)
            .filter(|r| labels[*r as usize].is_multiple_of(2))
            .collect();
        assert_eq!(**made.split(name).unwrap(), s.select(&rows));
    }
    let e = d.filter("none", |_| Ok(false)).unwrap_err().to_string();
    assert!(
        e.contains("none of the") && e.contains("rows of the train split is left"),
        "{e}"
    );
}

#[test]
fn subsets_are_nested_stratified_and_of_the_size_asked_for() {
    let d = dataset();
    let small = d.subset("train", 100, 1).unwrap();
    let large = d.subset("train", 301, 1).unwrap();
    assert_eq!((small.train.rows, large.train.rows), (100, 301));
    let all = large.train.inputs_f64();
    let known: Vec<&[f64]> = all.chunks(64).collect();
    assert!(
        small
            .train
            .inputs_f64()
            .chunks(64)
            .all(|x| known.contains(&x))
    );
    let share = |s: &Split| {
        s.class_counts(10)
            .iter()
            .map(|n| *n as f64 / s.rows as f64)
            .collect::<Vec<_>>()
    };
    for (a, b) in share(&d.train).iter().zip(share(&small.train)) {
        assert!((a - b).abs() <= 0.011, "{a} {b}");
    }
    assert_eq!(small.test, d.test);
    let test = d.subset("test", 7, 1).unwrap();
    assert_eq!(
        (test.test.unwrap().rows, test.train.rows),
        (7, d.train.rows)
    );
    let chosen = d.choose("train", &[9, 2]).unwrap();
    assert_eq!(*chosen.train, d.train.select(&[9, 2]));
    for (e, expected) in [
        (d.subset("train", 9999, 1), "9999 rows are asked for"),
        (d.choose("train", &[1, 1]), "row 1 is named twice"),
        (d.choose("test", &[9999]), "none with index 9999"),
        (d.choose("train", &[]), "no row is left"),
    ] {
        let e = e.unwrap_err().to_string();
        assert!(e.contains(expected), "{e}");
    }
}

#[test]
fn all_rows_are_divided_anew() {
    let d = dataset();
    let new = d.divided(0.5, 0.25, 3).unwrap();
    let sizes: Vec<_> = new.splits().map(|(_, s)| s.rows).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 1797);
    assert!((sizes[1] as f64 - 898.5).abs() <= 1.0 && sizes[2] == 225);
    let sorted = |d: &Dataset| {
        let mut all: Vec<(Vec<u8>, u32)> = d
            .splits()
            .flat_map(|(_, s)| {
                let x = s.inputs_f64();
                let x: Vec<Vec<u8>> = x
                    .chunks(64)
                    .map(|x| x.iter().map(|x| (16.0 * x) as u8).collect())
                    .collect();
                x.into_iter().zip(s.labels().unwrap().to_vec())
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&new), sorted(&d));
    let scaled = d.scaled(Scale::Standard).unwrap();
    let e = scaled.divided(0.5, 0.0, 1).unwrap_err().to_string();
    assert!(e.contains("is scaled by its training rows"), "{e}");
    // Scaled twice, new rows are too.
    let twice = scaled.scaled(Scale::Unit).unwrap();
    let row: Vec<Value> = d.train.inputs_f64()[..64]
        .iter()
        .map(|x| Value::Float(*x))
        .collect();
    let prepared = twice.prepare(&[Value::List(row)]).unwrap();
    let stored = &twice.train.inputs_f64()[..64];
    assert!(
        prepared
            .iter()
            .zip(stored)
            .all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6)
    );
}
