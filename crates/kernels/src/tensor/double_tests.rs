//! Graphs in double precision: values against plain code, gradients against finite differences.

use super::{Binary, Graph, Reduce, Scratch, Symbol, Tape, Tensor, Unary};
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

const COLUMNS: usize = 3;
/// Parameters that are used one by one.
const SEVERAL: usize = 6;

/// A tensor with operators that panic.
#[derive(Clone)]
pub(super) struct E(pub Tensor);

impl From<f64> for E {
    fn from(x: f64) -> Self {
        E(Tensor::from_f64(vec![x], &[]).unwrap())
    }
}

impl From<&E> for E {
    fn from(e: &E) -> Self {
        e.clone()
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $f:ident;)*) => {$(
        operators!($trait $method $f: E, E; &E, &E; &E, E; E, &E; E, f64; f64, E; &E, f64; f64, &E);
    )*};
    ($trait:ident $method:ident $f:ident: $($left:ty, $right:ty);*) => {$(
        impl $trait<$right> for $left {
            type Output = E;

            fn $method(self, right: $right) -> E {
                E::from(self).two(Binary::$f, right)
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
}

impl Neg for E {
    type Output = E;

    fn neg(self) -> E {
        self.one(Unary::Negate)
    }
}

impl E {
    pub fn one(&self, f: Unary) -> E {
        E(self.0.unary(f).unwrap())
    }

    pub fn two(&self, f: Binary, other: impl Into<E>) -> E {
        E(self.0.binary(f, &other.into().0).unwrap())
    }

    pub fn powi(&self, n: i32) -> E {
        self.one(Unary::Power(n))
    }

    pub fn powf(&self, other: impl Into<E>) -> E {
        self.two(Binary::Power, other)
    }

    pub fn exp(&self) -> E {
        self.one(Unary::Exp)
    }

    pub fn ln(&self) -> E {
        self.one(Unary::Ln)
    }

    pub fn max(&self, other: impl Into<E>) -> E {
        self.two(Binary::Max, other)
    }

    pub fn sum(&self) -> E {
        E(self.0.reduce_all(Reduce::Sum).unwrap())
    }

    fn slice(&self, range: Range<i64>) -> E {
        E(self
            .0
            .entries(range.start, range.end - range.start)
            .unwrap())
    }

    fn index(&self, i: i64) -> E {
        E(self.0.index(i).unwrap())
    }

    pub fn graph(&self) -> Graph {
        Graph::new(&self.0.symbol().unwrap()).unwrap()
    }

    fn text(&self) -> String {
        self.graph().formula(0).unwrap()
    }

    fn tape(&self, parameters: usize, inputs: usize) -> anyhow::Result<Tape> {
        Tape::compile(&self.graph(), parameters, inputs)
    }
}

pub(super) fn vector(count: usize) -> E {
    E(Symbol::vector(count).into())
}

pub(super) fn w(index: usize) -> E {
    vector(SEVERAL).index(index as i64)
}

pub(super) fn x(column: usize) -> E {
    E(Symbol::columns(column..column + 1).into()).index(0)
}

/// Value and gradient, summed over rows.
pub(super) fn evaluate(e: &E, w: &[f64], rows: &[[f32; COLUMNS]]) -> (f64, Vec<f64>) {
    let tape = e.tape(w.len(), COLUMNS).unwrap();
    let mut grad = vec![0.0; w.len()];
    let rows = || rows.iter().map(|row| &row[..]);
    let value = tape.evaluate(w, rows(), Some(&mut grad), &mut Scratch::default());
    let alone = tape.evaluate(w, rows(), None, &mut Scratch::default());
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
    e: &E,
    points: &[&[f64]],
    rows: &[[f32; COLUMNS]],
    plain: impl Fn(&[f64]) -> f64,
) {
    for point in points {
        let (value, grad) = evaluate(e, point, rows);
        assert!(
            close(value, plain(point), 1e-14),
            "{} at {point:?}: {value}",
            e.text()
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
                "{} at {point:?}: {} is not {slope}",
                e.text(),
                grad[i]
            );
        }
    }
}

pub(super) const ONE: [[f32; COLUMNS]; 1] = [[0.0; COLUMNS]];

#[test]
fn functions_of_one_number() {
    use Unary::*;
    type Case = (Unary, fn(f64) -> f64, bool);
    let cases: [Case; 25] = [
        (Exp, f64::exp, false),
        (Ln, f64::ln, true),
        (Sqrt, f64::sqrt, true),
        (Abs, f64::abs, false),
        (Sin, f64::sin, false),
        (Cos, f64::cos, false),
        (Tan, f64::tan, false),
        (Tanh, f64::tanh, false),
        (Sinh, f64::sinh, false),
        (Cosh, f64::cosh, false),
        (Atan, f64::atan, false),
        (Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), false),
        (Relu, |x| x.max(0.0), false),
        (Softplus, |x| x.exp().ln_1p(), false),
        (Gelu, |x| 0.5 * x * libm::erfc(-x / 2f64.sqrt()), false),
        (
            GeluTanh,
            |x| {
                0.5 * x
                    * (1.0
                        + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
            },
            false,
        ),
        (Silu, |x| x / (1.0 + (-x).exp()), false),
        (Erf, libm::erf, false),
        (Negate, |x| -x, false),
        (Power(3), |x| x.powi(3), false),
        (Power(2), |x| x.powi(2), false),
        (Power(1), |x| x, false),
        (Power(-2), |x| x.powi(-2), false),
        (Power(-1), |x| 1.0 / x, false),
        (Power(0), |_| 1.0, false),
    ];
    assert!(
        Unary::NAMED
            .iter()
            .all(|(_, f)| cases.iter().any(|c| c.0 == *f))
    );
    let points = |positive: bool| {
        let all = [0.03, 0.4, 0.7, 1.3, 4.2, -0.2, -0.9, -3.3];
        all.into_iter().filter(move |x| *x > 0.0 || !positive)
    };
    for (f, plain, positive) in cases {
        for point in points(positive) {
            check(&w(0).one(f), &[&[point]], &ONE, |w| plain(w[0]));
        }
    }
    for (exponent, positive) in [(2.5, true), (-3.0, false), (0.5, true)] {
        for point in points(positive) {
            let plain = |w: &[f64]| w[0].powf(exponent);
            check(&w(0).powf(exponent), &[&[point]], &ONE, plain);
        }
    }
    for point in points(false) {
        check(&E::from(1.7).powf(w(0)), &[&[point]], &ONE, |w| {
            1.7_f64.powf(w[0])
        });
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
    check(&w(0).two(Binary::Min, w(1)), points, &ONE, |w| {
        w[0].min(w[1])
    });
    let plain = |w: &[f64]| (w[0].exp() + w[1].exp()).ln();
    check(&w(0).two(Binary::LnAddExp, w(1)), points, &ONE, plain);
    let both_sides = (2.0 - w(0)) / 3.0 + 1.0 / &w(1) - 4.0 * &w(0) * 0.5;
    check(&both_sides, points, &ONE, |w| {
        (2.0 - w[0]) / 3.0 + 1.0 / w[1] - 4.0 * w[0] * 0.5
    });
}

#[test]
fn kinks_and_limits() {
    assert_eq!(
        evaluate(&w(0).one(Unary::Abs), &[0.0], &ONE),
        (0.0, vec![0.0])
    );
    assert_eq!(evaluate(&w(0).max(w(1)), &[2.0, 2.0], &ONE).1, [0.5, 0.5]);
    assert_eq!(
        evaluate(&w(0).two(Binary::Min, w(1)), &[2.0, 2.0], &ONE).1,
        [0.5, 0.5]
    );
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
        evaluate(&w(0).one(Unary::Softplus), &[800.0], &ONE),
        (800.0, vec![1.0])
    );
    assert_eq!(
        evaluate(&w(0).one(Unary::Hold), &[3.0], &ONE),
        (3.0, vec![0.0])
    );
    let (value, grad) = evaluate(&w(0).two(Binary::LnAddExp, w(1)), &[1000.0, 1000.0], &ONE);
    assert_eq!((value, grad), (1000.0 + 2.0_f64.ln(), vec![0.5, 0.5]));
    // No slope runs through what is held, not even an infinite one times zero.
    let held = (1.0 / w(0)).one(Unary::Hold) + w(0);
    assert_eq!(evaluate(&held, &[0.0], &ONE), (0.0, vec![1.0]));
}

pub(super) fn mixture() -> E {
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

/// Of what is not chosen there is no gradient, also where it has no slope, in every lane.
#[test]
fn only_what_is_chosen_has_a_slope() {
    let of = |x: E| {
        let above = x.two(Binary::Greater, 0.0).0;
        let inner = (x.one(Unary::Sqrt) * (1.0 / &x)).ln() + (&x * -1e3).exp();
        E(above.choose(&inner.0, &(&x * &x).0).unwrap())
    };
    let plain = |x: f64| match x > 0.0 {
        true => (x.sqrt() / x).ln() + (-1e3 * x).exp(),
        false => x * x,
    };
    check(&of(w(0)), &[&[-2.0], &[0.4]], &ONE, |w| plain(w[0]));
    assert_eq!(evaluate(&of(w(0)), &[0.0], &ONE), (0.0, vec![0.0]));
    let rows = rows(47);
    check(&of(x(0) - w(0)), &[&[-0.01], &[0.01]], &rows, |w| {
        let all = rows.iter().map(|row| plain(f64::from(row[0]) - w[0]));
        all.sum()
    });
}

#[test]
fn vectors_of_every_width_give_the_same_bits() {
    type Function = dyn Fn(&E) -> E;
    let mut functions: Vec<Box<Function>> = vec![
        Box::new(|x| x.powi(-7)),
        Box::new(|x| x.powf(1.3) / x.two(Binary::LnAddExp, 0.1).max(x * 3.0 - 1.0)),
        Box::new(|x| {
            let above = x.two(Binary::Greater, 0.3).0;
            E(above.choose(&(x * x).0, &x.exp().0).unwrap())
        }),
    ];
    for (_, f) in Unary::NAMED {
        functions.push(Box::new(move |x| x.one(*f)));
    }
    for f in functions {
        for row in rows(40) {
            // Once as a parameter, in plain code, and once for rows, in the best code for this machine.
            let alone = evaluate(&f(&w(0)), &[row[0].into()], &ONE);
            let lanes = evaluate(&f(&(x(0) + w(0))), &[0.0], &[row]);
            let bits = |(value, grad): (f64, Vec<f64>)| [value.to_bits(), grad[0].to_bits()];
            assert_eq!(bits(alone), bits(lanes), "{}", f(&w(0)).text());
        }
    }
}

#[test]
fn scratch_and_precision_do_not_matter() {
    let tape = mixture().tape(2, COLUMNS).unwrap();
    let other = vector(300).one(Unary::Sin).sum().tape(300, 0).unwrap();
    let rows = rows(13);
    let mut scratch = Scratch::default();
    let mut run = |w: &[f32; 2]| {
        let mut grad = [10.0, 0.0];
        let rows = rows.iter().map(|row| &row[..]);
        let value = tape.evaluate(w, rows, Some(&mut grad), &mut scratch);
        other.evaluate(
            &[0.5_f32; 300],
            [&[] as &[f32]],
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
    let tape = with_rows.tape(2, COLUMNS).unwrap();
    assert_eq!(
        operations(&tape),
        (5, 2),
        "what does not depend on the row is computed once"
    );
    // Nothing of no rows, even where the value is infinite; inputs and constants alone.
    assert_eq!(evaluate(&(1.0 / w(0)), &[0.0], &[]), (0.0, vec![0.0]));
    assert_eq!(evaluate(&x(1), &[1.0], &rows(10)), (45.0, vec![0.0]));
    assert_eq!(evaluate(&E::from(2.5), &[1.0], &rows(4)), (10.0, vec![0.0]));
    assert_eq!(
        evaluate(&w(1), &[1.0, 3.0], &rows(4)),
        (12.0, vec![0.0, 4.0])
    );
    // A missing number is no number.
    let short = tape.evaluate(&[0.7, 1.9], [&[0.0_f32][..]], None, &mut Scratch::default());
    let no_weight = tape.evaluate(&[0.7], [&[0.0_f32; 3][..]], None, &mut Scratch::default());
    assert!(short.is_nan() && no_weight.is_nan());
}

#[test]
fn a_product_that_is_only_added_is_one_instruction_with_the_sum() {
    let orders = |e: &E| e.tape(3, COLUMNS).unwrap().rows.order.len();
    let energy = w(2) + w(0) * x(0) + w(1) * x(1);
    assert_eq!(orders(&energy), 2);
    assert_eq!(orders(&(w(0) * x(0) + w(0) * x(0) * w(1))), 2, "used twice");
    assert_eq!(orders(&(w(0) * x(0) - w(1))), 2, "no sum");
    let square = x(0) * x(0);
    assert_eq!(orders(&(&square + &square)), 2, "both operands");
    // Each of the two results is rounded: the same bits as number by number.
    let w = [0.3_f64, -1.7, 0.1];
    let (mut sum, mut gradient) = (0.0, [0.0; 3]);
    for [a, b] in rows(1).iter().map(|row| [row[0], row[1]].map(f64::from)) {
        sum += w[2] + w[0] * a + w[1] * b;
        gradient = [gradient[0] + a, gradient[1] + b, gradient[2] + 1.0];
    }
    assert_eq!(evaluate(&energy, &w, &rows(1)), (sum, gradient.to_vec()));
}

/// How many operations there are: once per evaluation, and once per example.
fn operations(tape: &Tape) -> (usize, usize) {
    (tape.shared.steps.len(), tape.rows.steps.len())
}

#[test]
fn equal_things_are_computed_once() {
    let operations = |e: &E| operations(&e.tape(2, 1).unwrap()).0;
    let shared = (w(0) * w(1)).exp();
    assert_eq!(operations(&(&shared + &shared * &shared)), 4);
    assert_eq!(
        operations(&((w(0) * w(1)).exp() + (w(1) * w(0)).exp().powi(2))),
        4
    );
    assert_eq!(operations(&(w(0) * (E::from(2.0).ln() - 1.0))), 1);
    assert_eq!(operations(&(-(-(w(0) * 1.0 + 0.0) / 1.0 - 0.0)).powi(1)), 0);
    assert_eq!(operations(&w(0).max(w(0))), 0);
    assert_eq!(operations(&(w(0) - w(1))), operations(&(w(1) - w(0))));
    // Each square is one node, although the tree has 2^60 leaves.
    let tower = (0..60).fold(w(0), |e, _| &e * &e);
    assert_eq!(operations(&tower), 60);
    assert_eq!(operations(&w(1)), 0);
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
            sum = 1.0 + sum.one(Unary::Sin);
        }
        assert!(evaluate(&sum, &[3.0], &ONE).0 > 1.9);
        let text = sum.text();
        assert!(text.chars().count() <= 160 && text.ends_with('…'));
    };
    small.spawn(work).unwrap().join().unwrap();
}

#[test]
fn indexes_are_checked() {
    let error = |e: E| e.tape(2, 1).unwrap_err().to_string();
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
    let bytes = |e: E| e.tape(2, COLUMNS).unwrap().bytes();
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
    assert_ne!(bytes(w(0)), w(0).tape(1, COLUMNS).unwrap().bytes());
}

#[test]
fn handles_go_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Tensor>();
    fn sent<T: Send + Sync>() {}
    sent::<Tape>();
}

#[test]
fn vectors() {
    let v = vector(5);
    let point: &[f64] = &[0.3, -1.2, 2.5, 0.9, 1.1];
    let of = |t: anyhow::Result<Tensor>| E(t.unwrap());
    check(&v.sum(), &[point], &ONE, |w| w.iter().sum());
    check(&of(v.0.mean(None, false)), &[point], &ONE, |w| {
        w.iter().sum::<f64>() / 5.0
    });
    check(&of(v.0.norm2()), &[point], &ONE, |w| {
        w.iter().map(|w| w * w).sum()
    });
    let [most, least] = [Reduce::Max, Reduce::Min].map(|how| of(v.0.reduce_all(how)));
    check(&most, &[point], &ONE, |_| 2.5);
    check(&least, &[point], &ONE, |_| -1.2);
    let log_sum_exp = |v: &E| of(v.0.log_sum_exp(None, false));
    let lse = |w: &[f64]| w.iter().map(|w| w.exp()).sum::<f64>().ln();
    check(&log_sum_exp(&v), &[point], &ONE, lse);
    let (value, grad) = evaluate(&log_sum_exp(&(&v * 1000.0)), point, &ONE);
    assert_eq!((value, grad), (2500.0, vec![0.0, 0.0, 1000.0, 0.0, 0.0]));
    let dot = of((&v + 1.0).0.dot(&(v.exp() * v.index(0)).0));
    check(&dot, &[point], &ONE, |w| {
        w.iter().map(|x| (x + 1.0) * (x.exp() * w[0])).sum()
    });
    let mixed = 2.0 / v.powi(2) - v.powf(2.0) / &v;
    check(&(-mixed).sum(), &[point], &ONE, |w| {
        w.iter().map(|x| x - 2.0 / (x * x)).sum()
    });
    let length = |e: &E| e.0.length().unwrap();
    assert_eq!((length(&v), length(&v.slice(1..3))), (5, 2));
    assert_eq!(v.slice(1..3).index(0).text(), "w[1]");
    let error = v.0.index(5).err().unwrap().to_string();
    assert_eq!(error, "index 5 is out of range for a vector of 5 numbers");
    assert!(v.0.entries(3, 3).is_err() && v.0.entries(3, -1).is_err());
    let other = Tensor::from(Symbol::columns(0..3));
    let error = v.0.dot(&other).err().unwrap().to_string();
    assert_eq!(error, "dot: tensors of shapes [5] and [3] do not match");
    let empty = v.slice(2..2);
    let value = |t: anyhow::Result<Tensor>| evaluate(&of(t), point, &ONE).0;
    assert!(length(&empty) == 0 && value(empty.0.mean(None, false)).is_nan());
    let scaled = (&empty * 2.0).0;
    assert_eq!(
        (value(scaled.norm2()), value(scaled.dot(&scaled))),
        (0.0, 0.0)
    );
    let infinity = f64::INFINITY;
    assert_eq!(value(empty.0.reduce_all(Reduce::Sum)), 0.0);
    assert_eq!(value(empty.0.reduce_all(Reduce::Max)), -infinity);
    assert_eq!(value(empty.0.reduce_all(Reduce::Min)), infinity);
    assert_eq!(value(empty.0.log_sum_exp(None, false)), -infinity);
}

/// Whatever a model may do to tensors, against candle at numbers.
#[test]
fn shapes_products_and_choices() {
    let point: Vec<f64> = (0..12).map(|i| 1.5 * (f64::from(i) * 1.7).sin()).collect();
    type Function = fn(&Tensor) -> anyhow::Result<Tensor>;
    let cases: [(&str, Function); 14] = [
        ("matrices", |w| {
            w.reshape(&[3, 4])?.matmul(&w.reshape(&[4, 3])?)
        }),
        ("matrix and vector", |w| {
            w.reshape(&[3, 4])?.matmul(&w.slice(0, 2, 6)?)
        }),
        ("vector and matrix", |w| {
            w.slice(0, 1, 4)?.matmul(&w.reshape(&[3, 4])?)
        }),
        ("stacks", |w| {
            w.reshape(&[2, 3, 2])?
                .matmul(&w.slice(0, 0, 4)?.reshape(&[1, 2, 2])?)
        }),
        ("transposed", |w| {
            w.reshape(&[2, 3, 2])?.transpose(0, 2)?.unary(Unary::Tanh)
        }),
        ("softmax", |w| w.reshape(&[3, 4])?.softmax(0, false)),
        ("log_softmax", |w| w.reshape(&[3, 4])?.softmax(1, true)),
        ("log_sum_exp", |w| {
            w.reshape(&[3, 4])?.log_sum_exp(Some(0), true)
        }),
        ("sums", |w| {
            w.reshape(&[2, 3, 2])?.reduce(Reduce::Sum, 1, false)
        }),
        ("extremes", |w| {
            let w = w.reshape(&[2, 3, 2])?;
            let most = w.reduce(Reduce::Max, 0, true)?;
            most.binary(Binary::Subtract, &w.reduce(Reduce::Min, 2, true)?)
        }),
        ("means", |w| w.reshape(&[3, 4])?.mean(Some(1), true)),
        ("broadcast", |w| {
            let column = w.slice(0, 4, 7)?.unsqueeze(1)?;
            column.binary(Binary::Multiply, &w.slice(0, 8, -1)?)
        }),
        ("concat", |w| {
            let (a, b) = (w.slice(0, 0, 6)?.reshape(&[3, 2])?, w.reshape(&[3, 4])?);
            let both = Tensor::concat(&[&a, &b, &a], 1)?;
            both.slice(1, 1, 7)?.select(0, -1)
        }),
        ("choose", |w| {
            let w = w.reshape(&[3, 4])?;
            let row = w.select(0, 1)?;
            let above = w.binary(Binary::Greater, &row)?;
            above.choose(&w.unary(Unary::Exp)?, &row)
        }),
    ];
    for (name, f) in cases {
        // Weights that tell places apart.
        let weighted = |w: &Tensor| {
            let out = f(w).unwrap().flatten().unwrap();
            let n = out.length().unwrap();
            let weights = (0..n).map(|i| (i as f64).cos()).collect();
            out.dot(&Tensor::from_f64(weights, &[n]).unwrap()).unwrap()
        };
        let energy = E(weighted(&vector(12).0));
        let plain = |w: &[f64]| {
            let w = Tensor::from_f64(w.to_vec(), &[12]).unwrap();
            weighted(&w).item(name).unwrap()
        };
        check(&energy, &[&point], &ONE, plain);
    }
    let model = Tensor::from(Symbol::parameter(0, &[2, 2]));
    let shares = model.softmax(1, false).unwrap().reduce_all(Reduce::Sum);
    let error = E(shares.unwrap()).tape(4, 0).unwrap_err().to_string();
    assert_eq!(error, "the graph was not traced in double precision");
    let error = vector(3).tape(3, 0).unwrap_err().to_string();
    assert!(error.contains("of shape [3]"), "{error}");
}
