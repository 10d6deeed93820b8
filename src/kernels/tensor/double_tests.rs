use super::*;

const COLUMNS: usize = 3;

pub(super) fn w(index: usize) -> Expression {
    Expression::parameter(index)
}

pub(super) fn x(column: usize) -> Expression {
    Expression::input(column)
}

/// Value and gradient, summed over rows.
pub(super) fn evaluate(e: &Expression, w: &[f64], rows: &[[f32; COLUMNS]]) -> (f64, Vec<f64>) {
    let tape = Tape::compile(e, w.len(), COLUMNS).unwrap();
    let mut grad = vec![0.0; w.len()];
    let rows = || rows.iter().map(|row| &row[..]);
    let value = tape.evaluate(w, rows(), Some(&mut grad), &mut Scratch::new());
    let alone = tape.evaluate(w, rows(), None, &mut Scratch::new());
    assert_eq!(value.to_bits(), alone.to_bits());
    (value, grad)
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
        || a == b
        || (a.is_nan() && b.is_nan())
}

/// Compare the value with `plain`, the gradient with finite differences.
pub(super) fn check(
    e: &Expression,
    points: &[&[f64]],
    rows: &[[f32; COLUMNS]],
    plain: impl Fn(&[f64]) -> f64,
) {
    for point in points {
        let (value, grad) = evaluate(e, point, rows);
        assert!(
            close(value, plain(point), 1e-14),
            "{e} at {point:?}: {value}"
        );
        for i in 0..point.len() {
            let h = 1e-5 * (1.0 + point[i].abs());
            let at = |h: f64| {
                let mut moved = point.to_vec();
                moved[i] += h;
                evaluate(e, &moved, rows).0
            };
            // Richardson's step takes the error to the fourth order.
            let slope = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            assert!(
                close(slope, grad[i], 1e-8),
                "{e} at {point:?}: {} is not {slope}",
                grad[i]
            );
        }
    }
}

pub(super) const ONE: [[f32; COLUMNS]; 1] = [[0.0; COLUMNS]];

#[test]
fn functions_of_one_number() {
    type Case = (fn(&Expression) -> Expression, fn(f64) -> f64, bool);
    let cases: [Case; 22] = [
        (Expression::exp, f64::exp, false),
        (Expression::ln, f64::ln, true),
        (Expression::sqrt, f64::sqrt, true),
        (Expression::abs, f64::abs, false),
        (Expression::sin, f64::sin, false),
        (Expression::cos, f64::cos, false),
        (Expression::tan, f64::tan, false),
        (Expression::tanh, f64::tanh, false),
        (Expression::sinh, f64::sinh, false),
        (Expression::cosh, f64::cosh, false),
        (Expression::atan, f64::atan, false),
        (Expression::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), false),
        (Expression::softplus, |x| x.exp().ln_1p(), false),
        (Expression::erf, libm::erf, false),
        (|x| -x, |x| -x, false),
        (|x| x.powi(3), |x| x.powi(3), false),
        (|x| x.powi(-2), |x| x.powi(-2), false),
        (|x| x.powi(0), |_| 1.0, false),
        (|x| x.powf(2.5), |x| x.powf(2.5), true),
        (|x| x.powf(-3.0), |x| x.powf(-3.0), false),
        (|x| x.powf(0.5), f64::sqrt, true),
        (
            |x| Expression::constant(1.7).powf(x),
            |x| 1.7_f64.powf(x),
            false,
        ),
    ];
    for (f, plain, positive) in cases {
        for point in [0.03, 0.4, 0.7, 1.3, 4.2, -0.2, -0.9, -3.3] {
            if point > 0.0 || !positive {
                check(&f(&w(0)), &[&[point]], &ONE, |w| plain(w[0]));
            }
        }
    }
}

#[test]
fn functions_of_two_numbers() {
    let points: &[&[f64]] = &[&[0.3, 1.7], &[2.2, 0.4], &[1.0, 3.0], &[40.0, 2.0]];
    check(&(w(0) + w(1)), points, &ONE, |w| w[0] + w[1]);
    check(&(w(0) - w(1)), points, &ONE, |w| w[0] - w[1]);
    check(&(w(0) * w(1)), points, &ONE, |w| w[0] * w[1]);
    check(&(w(0) / w(1)), points, &ONE, |w| w[0] / w[1]);
    check(&w(0).powf(w(1)), points, &ONE, |w| w[0].powf(w[1]));
    check(&w(0).max(w(1)), points, &ONE, |w| w[0].max(w[1]));
    check(&w(0).min(w(1)), points, &ONE, |w| w[0].min(w[1]));
    let plain = |w: &[f64]| (w[0].exp() + w[1].exp()).ln();
    check(&w(0).ln_add_exp(w(1)), points, &ONE, plain);
    let both_sides = (2.0 - w(0)) / 3.0 + 1.0 / &w(1) - 4.0 * &w(0) * 0.5;
    check(&both_sides, points, &ONE, |w| {
        (2.0 - w[0]) / 3.0 + 1.0 / w[1] - 4.0 * w[0] * 0.5
    });
}

#[test]
fn kinks_and_limits() {
    assert_eq!(evaluate(&w(0).abs(), &[0.0], &ONE), (0.0, vec![0.0]));
    assert_eq!(evaluate(&w(0).max(w(1)), &[2.0, 2.0], &ONE).1, [0.5, 0.5]);
    assert_eq!(evaluate(&w(0).min(w(1)), &[2.0, 2.0], &ONE).1, [0.5, 0.5]);
    assert_eq!(
        evaluate(&w(0).powf(w(1)), &[0.0, 2.0], &ONE),
        (0.0, vec![0.0, 0.0])
    );
    assert_eq!(evaluate(&(1.0 / w(0)), &[0.0], &ONE).0, f64::INFINITY);
    assert_eq!(
        evaluate(&w(0).ln(), &[0.0], &ONE),
        (f64::NEG_INFINITY, vec![f64::INFINITY])
    );
    assert!(evaluate(&w(0).ln(), &[-1.0], &ONE).0.is_nan());
    assert_eq!(
        evaluate(&w(0).softplus(), &[800.0], &ONE),
        (800.0, vec![1.0])
    );
    assert_eq!(evaluate(&w(0).hold(), &[3.0], &ONE), (3.0, vec![0.0]));
    let (value, grad) = evaluate(&w(0).ln_add_exp(w(1)), &[1000.0, 1000.0], &ONE);
    assert_eq!((value, grad), (1000.0 + 2.0_f64.ln(), vec![0.5, 0.5]));
    // No slope runs through what is held, not even an infinite one times zero.
    let held = (1.0 / w(0)).hold() + w(0);
    assert_eq!(evaluate(&held, &[0.0], &ONE), (0.0, vec![1.0]));
}

pub(super) fn mixture() -> Expression {
    let bump = |i| (-5.0 * (x(0) - w(i)).powi(2)).exp();
    -(0.5 * bump(0) + 0.5 * bump(1)).ln()
}

fn rows(count: usize) -> Vec<[f32; COLUMNS]> {
    (0..count)
        .map(|i| [((i * 37 % 101) as f32) / 40.0 - 1.2, i as f32, 1.0])
        .collect()
}

#[test]
fn the_mixture_at_every_number_of_rows() {
    for count in [0, 1, 2, 15, 16, 17, 32, 47, 100] {
        let rows = rows(count);
        let plain = |w: &[f64]| -> f64 {
            let one = |x: f64| {
                let bump = |w: f64| (-5.0 * (x - w) * (x - w)).exp();
                -(0.5 * bump(w[0]) + 0.5 * bump(w[1])).ln()
            };
            rows.iter().map(|row| one(f64::from(row[0]))).sum()
        };
        check(
            &mixture(),
            &[&[0.3, -0.8], &[0.2, 0.2], &[1.0, 0.1]],
            &rows,
            plain,
        );
    }
}

#[test]
fn vectors_of_every_width_give_the_same_bits() {
    let functions = [
        Expression::exp,
        Expression::ln,
        Expression::tanh,
        Expression::sigmoid,
        Expression::softplus,
        Expression::sin,
        Expression::erf,
        Expression::sqrt,
        |x: &Expression| x.powi(-7),
        |x: &Expression| x.powf(1.3) / x.ln_add_exp(0.1).max(x * 3.0 - 1.0),
    ];
    for f in functions {
        for row in rows(40) {
            // Once as a parameter, in plain code, and once for rows, in the best code for this machine.
            let alone = evaluate(&f(&w(0)), &[row[0].into()], &ONE);
            let lanes = evaluate(&f(&(x(0) + w(0))), &[0.0], &[row]);
            assert_eq!(alone.0.to_bits(), lanes.0.to_bits());
            assert_eq!(alone.1[0].to_bits(), lanes.1[0].to_bits());
        }
    }
}

#[test]
fn scratch_and_precision_do_not_matter() {
    let tape = Tape::compile(&mixture(), 2, COLUMNS).unwrap();
    let other = Tape::compile(&Vector::parameters(300).sin().sum(), 300, 0).unwrap();
    let rows = rows(13);
    let mut scratch = Scratch::new();
    let mut run = |w: &[f32; 2]| {
        let mut grad = [10.0, 0.0];
        let rows = rows.iter().map(|row| &row[..]);
        let value = tape.evaluate(w, rows, Some(&mut grad), &mut scratch);
        other.evaluate(
            &[0.5_f32; 300],
            [&[][..]],
            Some(&mut [0.0; 300]),
            &mut scratch,
        );
        (value, grad)
    };
    let first = run(&[0.25, -0.5]);
    assert_eq!(
        (first, run(&[f32::NAN, 1.0]).0.is_nan()),
        (run(&[0.25, -0.5]), true)
    );
    let (value, grad) = evaluate(&mixture(), &[0.25, -0.5], &rows);
    assert_eq!(first.0, value);
    assert!(close(first.1[0], grad[0] + 10.0, 1e-15) && first.1[1] == grad[1]);
}

#[test]
fn rows_or_no_rows() {
    let e = (w(0) * w(1)).exp() + w(0).powi(2) / w(1);
    let point = [0.7, 1.9];
    let with_rows = &e + 0.0 * x(1);
    for count in [0, 1, 5, 16, 21] {
        let (counted, summed) = (
            evaluate(&e, &point, &rows(count)),
            evaluate(&with_rows, &point, &rows(count)),
        );
        assert!(close(counted.0, summed.0, 1e-14));
        assert!(
            counted
                .1
                .iter()
                .zip(&summed.1)
                .all(|(a, b)| close(*a, *b, 1e-14))
        );
    }
    let tape = Tape::compile(&with_rows, 2, COLUMNS).unwrap();
    assert_eq!(
        tape.operations(),
        (5, 2),
        "what does not depend on the row is computed once"
    );
    // Nothing of no rows, even where the value is infinite; inputs and constants alone.
    assert_eq!(evaluate(&(1.0 / w(0)), &[0.0], &[]), (0.0, vec![0.0]));
    assert_eq!(evaluate(&x(1), &[1.0], &rows(10)), (45.0, vec![0.0]));
    assert_eq!(
        evaluate(&Expression::constant(2.5), &[1.0], &rows(4)),
        (10.0, vec![0.0])
    );
    assert_eq!(
        evaluate(&w(1), &[1.0, 3.0], &rows(4)),
        (12.0, vec![0.0, 4.0])
    );
    // A missing number is no number.
    let short = tape.evaluate(&[0.7, 1.9], [&[0.0_f32][..]], None, &mut Scratch::new());
    let no_weight = tape.evaluate(&[0.7], [&[0.0_f32; 3][..]], None, &mut Scratch::new());
    assert!(short.is_nan() && no_weight.is_nan());
}

#[test]
fn equal_things_are_computed_once() {
    let operations = |e: &Expression| Tape::compile(e, 2, 1).unwrap().operations().0;
    let shared = (w(0) * w(1)).exp();
    assert_eq!(operations(&(&shared + &shared * &shared)), 4);
    assert_eq!(
        operations(&((w(0) * w(1)).exp() + (w(1) * w(0)).exp().powi(2))),
        4
    );
    assert_eq!(
        operations(&(w(0) * (Expression::constant(2.0).ln() - 1.0))),
        1
    );
    assert_eq!(operations(&(-(-(w(0) * 1.0 + 0.0) / 1.0 - 0.0)).powi(1)), 0);
    assert_eq!(operations(&w(0).max(w(0))), 0);
    assert_eq!(operations(&(w(0) - w(1))), operations(&(w(1) - w(0))));
    // Each square is one node, although the tree has 2^60 leaves.
    let tower = (0..60).fold(w(0), |e, _| &e * &e);
    assert_eq!(operations(&tower), 60);
    let unused = Tape::compile(&w(1), 2, 1).unwrap();
    assert_eq!(
        (unused.operations(), unused.parameters(), unused.inputs()),
        ((0, 0), 2, 1)
    );
}

#[test]
fn a_deep_graph_overflows_no_stack() {
    let small = std::thread::Builder::new().stack_size(128 << 10);
    let work = || {
        let chain = (0..200_000).fold(w(0), |e, i| e * 0.5 + if i % 2 == 0 { 1.0 } else { 2.0 });
        let (value, grad) = evaluate(&chain, &[3.0], &ONE);
        assert!((value - 10.0 / 3.0).abs() < 1e-12 && grad == [0.0]);
        let mut sum = w(0);
        for _ in 0..200_000 {
            sum = 1.0 + sum.sin();
        }
        assert!(evaluate(&sum, &[3.0], &ONE).0 > 1.9);
        assert!(sum.to_string().chars().count() <= 160 && format!("{sum:?}").ends_with('…'));
    };
    small.spawn(work).unwrap().join().unwrap();
}

#[test]
fn indexes_are_checked() {
    let error = |e: Expression| Tape::compile(&e, 2, 1).unwrap_err().to_string();
    assert_eq!(
        error(w(0) + w(2)),
        "w[2] does not exist: there are 2 parameters, numbered from 0"
    );
    assert_eq!(
        error(w(0) + x(4)),
        "x[4] does not exist: an example has 1 columns, numbered from 0"
    );
}

#[test]
fn bytes_tell_tapes_apart() {
    let bytes = |e: Expression| Tape::compile(&e, 2, COLUMNS).unwrap().bytes();
    assert_eq!(bytes(mixture()), bytes(mixture()));
    let others = [
        w(0) + w(1),
        w(0) - w(1),
        w(0) + x(1),
        w(0) + x(2),
        w(0) + 1.5,
        w(0).powi(3),
        w(0).powi(4),
    ];
    let all: std::collections::HashSet<_> = others.into_iter().map(bytes).collect();
    assert_eq!(all.len(), 7);
    assert_ne!(
        bytes(w(0)),
        Tape::compile(&w(0), 1, COLUMNS).unwrap().bytes()
    );
}

#[test]
fn handles_go_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Expression>();
    shared::<Vector>();
    fn sent<T: Send + Sync>() {}
    sent::<Tape>();
}
