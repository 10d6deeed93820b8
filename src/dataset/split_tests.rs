//! Tests of `split.rs`, in a file of their own for their length.

use super::*;

fn floats() -> Split {
    let data = (0..6).map(|x| x as f32).collect();
    Split::new(2, Inputs::F32(data), Targets::Classes(vec![0, 2, 2])).unwrap()
}

fn bytes() -> Split {
    let targets = Targets::Values {
        width: 1,
        data: vec![0.5, 1.5, 2.5],
    };
    Split::new(2, Inputs::I8(vec![1, -1, -1, -1, 1, 1]), targets).unwrap()
}

#[test]
fn gather_and_copy_give_the_rows_asked_for_as_floats() {
    let mut out = [0.0; 4];
    floats().gather(&[2, 0], &mut out);
    assert_eq!(out, [4.0, 5.0, 0.0, 1.0]);
    floats().copy(1..3, &mut out);
    assert_eq!(out, [2.0, 3.0, 4.0, 5.0]);
    bytes().gather(&[0, 0], &mut out);
    assert_eq!(out, [1.0, -1.0, 1.0, -1.0]);
    bytes().copy(1..3, &mut out);
    assert_eq!(out, [-1.0, -1.0, 1.0, 1.0]);
}

/// All 256 of them, as a reader of images made floats of them before; a data set has the same checksum either way, so that a run can go on.
#[test]
fn bytes_in_units_are_the_floats_that_they_stand_for() {
    let all: Vec<u8> = (0..=255).rev().collect();
    for unit in [1.0, 1.0 / 255.0] {
        let wide: Vec<f32> = all.iter().map(|x| (f64::from(*x) * unit) as f32).collect();
        let targets = || Targets::Classes((0..64).map(|i| i % 2).collect());
        let narrow = Split::new(4, Inputs::U8(all.clone(), unit), targets()).unwrap();
        let split = Split::new(4, Inputs::F32(wide.clone()), targets()).unwrap();
        let (mut a, mut b) = (vec![0.0; 256], vec![0.0; 256]);
        narrow.copy(0..64, &mut a);
        assert_eq!(a, wide);
        let order: Vec<u32> = (0..64).map(|i| i * 27 % 64).collect();
        narrow.gather(&order, &mut a);
        split.gather(&order, &mut b);
        assert_eq!(a, b);
        narrow.select(&order).copy(0..64, &mut a);
        assert_eq!(a, b);
        assert_eq!((narrow.bytes(), split.bytes()), (256 + 256, 1024 + 256));
        let sum = |s: &Split| {
            let mut hash = crc32fast::Hasher::new();
            s.fingerprint(&mut hash);
            hash.finalize()
        };
        assert_eq!(sum(&narrow), sum(&split));
    }
}

#[test]
fn targets_are_gathered_by_kind() {
    let (mut l, mut v) = ([9u32; 2], [9f32; 2]);
    assert!(floats().gather_labels(&[1, 0], &mut l) && l == [2, 0]);
    assert!(!floats().gather_values(&[1, 0], &mut v) && v == [9.0; 2]);
    assert!(bytes().gather_values(&[2, 1], &mut v) && v == [2.5, 1.5]);
    assert!(!bytes().gather_labels(&[2, 1], &mut l));
    assert_eq!(floats().class_counts(3), [1, 0, 2]);
    assert!(bytes().class_counts(0).is_empty());
}

#[test]
fn sequences_have_a_label_at_each_position() {
    let targets = Targets::Sequence {
        positions: 2,
        labels: vec![5, 6, 7, 65535],
    };
    let s = Split::new(3, Inputs::Tokens(vec![0, 1, 2, 3, 4, 65535]), targets).unwrap();
    assert_eq!(
        (s.rows, s.targets.width(), s.targets.positions()),
        (2, 2, 2)
    );
    let (mut x, mut l) = ([0.0; 6], [0; 4]);
    s.gather(&[1, 0], &mut x);
    assert!(s.gather_labels(&[1, 0], &mut l));
    assert_eq!(
        (x, l),
        ([3.0, 4.0, 65535.0, 0.0, 1.0, 2.0], [7, 65535, 5, 6])
    );
    s.copy(1..2, &mut x[..3]);
    assert_eq!(x[..3], [3.0, 4.0, 65535.0]);
    assert!(s.row_labels().is_none() && s.class_counts(9).is_empty());
    assert_eq!(s.bytes(), 6 * 4 + 4 * 4);
    let second = s.select(&[1]);
    assert_eq!(
        (second.rows, second.labels().unwrap()),
        (1, &[7, 65535][..])
    );
}

#[test]
fn bytes_count_one_per_spin_and_four_per_float() {
    assert_eq!(floats().bytes(), 6 * 4 + 3 * 4);
    assert_eq!(bytes().bytes(), 6 + 3 * 4);
}

#[test]
fn select_keeps_inputs_and_targets_together() {
    let s = floats().select(&[1]);
    assert_eq!(
        s,
        Split::new(2, Inputs::F32(vec![2.0, 3.0]), Targets::Classes(vec![2])).unwrap()
    );
}

#[test]
fn numbers_of_rows_that_differ_are_refused() {
    for (dim, n, labels) in [(2, 6, 2), (4, 6, 1), (0, 0, 0)] {
        let r = Split::new(
            dim,
            Inputs::I8(vec![1; n]),
            Targets::Classes(vec![0; labels]),
        );
        assert!(r.is_err());
    }
}
