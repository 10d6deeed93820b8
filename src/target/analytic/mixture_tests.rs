//! The mixture: its density, its two modes, its data, and what happens far away.

use super::tests::{build, gradient, list, loss, near};
use super::*;
use crate::options::Value;

fn mixture(data: &[f64]) -> Arc<dyn Potential> {
    build("mixture", &[("data", list(data))]).unwrap()
}

/// The losses of single examples.
fn losses(potential: &dyn Potential, w: &[f32]) -> Vec<f64> {
    (0..potential.examples() as u32)
        .map(|i| loss(potential, w, Rows::Indices(&[i])))
        .collect()
}

/// The density of an example by its formula, with two exponentials e_1 and e_2 that are a part of it.
fn density(x: f64, theta: [f64; 2], b: f64) -> (f64, [f64; 2]) {
    let e = [theta[0], theta[0] + theta[1]].map(|mean| (-0.5 * b * (x - mean).powi(2)).exp());
    let density = 0.5 * (b / std::f64::consts::TAU).sqrt() * (e[0] + e[1]);
    (density, e)
}

#[test]
fn densities_integrate_to_one() {
    let width = 0.01;
    let data: Vec<f64> = (-600..800).map(|i| i as f64 * width).collect();
    let potential = mixture(&data);
    for w in [[0.0, 2.0], [1.0, -2.5], [0.3, 0.0]] {
        let total: f64 = losses(&*potential, &w).iter().map(|l| (-l).exp()).sum();
        near("integral", total * width, 1.0, 1e-9);
    }
}

#[test]
fn losses_and_gradients_follow_the_formula() {
    let (data, theta, b) = ([0.1, 1.7, -0.4, 1.1], [0.25, 1.5], 10.0);
    let w = theta.map(|t| t as f32);
    let potential = mixture(&data);
    for (i, x) in data.iter().enumerate() {
        let (density, e) = density(*x, theta, b);
        let rows = [i as u32];
        let rows = Rows::Indices(&rows);
        near("loss", loss(&*potential, &w, rows), -density.ln(), 1e-12);
        let off = [x - theta[0], x - theta[0] - theta[1]];
        let total = e[0] + e[1];
        let expected = [
            -b * (off[0] * e[0] + off[1] * e[1]) / total,
            -b * off[1] * e[1] / total,
        ];
        for (g, expected) in gradient(&*potential, &w, rows).iter().zip(expected) {
            near("gradient", *g as f64, expected, 1e-6);
        }
    }
}

#[test]
fn exchanging_the_components_does_not_change_the_likelihood() {
    let potential = build("mixture", &[]).unwrap();
    let one = losses(&*potential, &[0.0, 2.0]);
    let other = losses(&*potential, &[2.0, -2.0]);
    for (a, b) in one.iter().zip(&other) {
        near("loss", *a, *b, 1e-12);
    }
    let [a, b] = [[0.0, 2.0], [2.0, -2.0]].map(|w| loss(&*potential, &w, Rows::All));
    near("likelihood", a, b, 1e-12);
    // They are modes: worse on all sides at a distance that a hundred examples resolve.
    for mode in [[0.0, 2.0], [2.0, -2.0]] {
        for step in [[0.3, 0.0], [-0.3, 0.0], [0.0, 0.3], [0.0, -0.3]] {
            let moved = [mode[0] + step[0], mode[1] + step[1]];
            assert!(loss(&*potential, &moved, Rows::All) > a, "{moved:?}");
        }
    }
    assert!(loss(&*potential, &[1.0, 0.0], Rows::All) > a);
}

/// More examples than one product of (1 + e) holds without a logarithm, all with e = 1.
#[test]
fn many_examples_between_the_means_do_not_overflow() {
    let n = 5000;
    let potential = mixture(&vec![1.0; n]);
    let (density, _) = density(1.0, [0.0, 2.0], 10.0);
    let all = loss(&*potential, &[0.0, 2.0], Rows::All);
    near("loss", all, -density.ln() * n as f64, 1e-12);
}

#[test]
fn far_away_losses_are_finite_and_pull_back() {
    let potential = mixture(&[1.0]);
    // The first is far from both means, the second nearer to that of the second component.
    for (w, expected) in [
        ([500.0, 0.0], [4990.0, 2495.0]),
        ([-400.0, 700.0], [2990.0, 2990.0]),
    ] {
        assert!(loss(&*potential, &w, Rows::All).is_finite());
        assert_eq!(gradient(&*potential, &w, Rows::All), expected);
    }
    assert!(loss(&*potential, &[f32::NAN, 0.0], Rows::All).is_nan());
}

/// Null: the data have the mixture's mean and variance, and half of them are of either component; four standard errors.
#[test]
fn data_are_drawn_from_the_mixture() {
    let n = 20_000;
    let given = [("examples", Value::Int(n)), ("means", list(&[-1.0, 4.0]))];
    let potential = build("mixture", &given).unwrap();
    let n = n as f64;
    // A loss at θ = (c, 0) is a constant plus ½b (x - c)², which gives back the sums of x and x².
    let at = |c: f32| loss(&*potential, &[c, 0.0], Rows::All);
    let [minus, zero, plus] = [-1.0, 0.0, 1.0].map(at);
    let b = 10.0;
    let constant = -n * density(0.0, [0.0, 0.0], b).0.ln();
    let mean = (minus - plus) / (2.0 * b * n);
    let square = 2.0 * (zero - constant) / (b * n);
    let variance = 4.0 + 1.0 / b;
    assert!((mean - 1.0).abs() < 4.0 * (variance / n).sqrt(), "{mean}");
    // (x - 1)² has the variance 4·4/b + 2/b².
    let error = ((16.0 / b + 2.0 / (b * b)) / n).sqrt();
    let second = square - 2.0 * mean + 1.0;
    assert!((second - variance).abs() < 4.0 * error, "{second}");

    let other = [("seed", Value::Int(2))];
    let [one, two] = [&[][..], &other].map(|o| build("mixture", o).unwrap());
    assert_ne!(
        loss(&*one, &[0.0, 2.0], Rows::All),
        loss(&*two, &[0.0, 2.0], Rows::All)
    );
}
