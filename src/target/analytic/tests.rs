//! Every potential's gradient against differences, and the known answers against quadrature over the energies themselves.

use super::*;
use crate::options::Value;

/// Build an entry with these options; a whole number stays one.
pub(super) fn build(name: &str, given: &[(&str, Value)]) -> Result<Arc<dyn Potential>> {
    let entry = named(name)?;
    let given = given
        .iter()
        .map(|(k, v)| (k.to_string(), v.clone()))
        .collect();
    let options = Options::check(&format!("potential::{name}"), entry.options, given)?;
    (entry.build)(&options)
}

pub(super) fn list(x: &[f64]) -> Value {
    Value::List(x.iter().map(|x| Value::Float(*x)).collect())
}

pub(super) fn message(name: &str, given: &[(&str, Value)]) -> String {
    build(name, given).err().unwrap().to_string()
}

pub(super) fn loss(potential: &dyn Potential, w: &[f32], rows: Rows) -> f64 {
    let mut work = Workspace::default();
    potential.sums(w, rows, None, &mut work).unwrap().loss
}

pub(super) fn gradient(potential: &dyn Potential, w: &[f32], rows: Rows) -> Vec<f32> {
    let mut grad = vec![f32::NAN; w.len()];
    let mut work = Workspace::default();
    let with = potential.sums(w, rows, Some(&mut grad), &mut work).unwrap();
    assert_eq!(with.loss, loss(potential, w, rows));
    grad
}

/// Every entry with its defaults, and what else takes a path of its own.
fn all() -> Vec<(String, Arc<dyn Potential>)> {
    let more: [(&str, &[(&str, Value)]); 6] = [
        ("banana", &[("dim", Value::Int(4))]),
        ("eight_schools", &[("centred", Value::Bool(true))]),
        ("normal_crossing", &[("exponents", list(&[1.0, 3.0, 1.0]))]),
        ("rosenbrock", &[("dim", Value::Int(6))]),
        ("mixture", &[("data", list(&[0.5, -1.0, 300.0]))]),
        ("gaussian_mixture", &[("dim", Value::Int(5))]),
    ];
    REGISTRY
        .iter()
        .map(|e| (e.name, &[][..]))
        .chain(more)
        .map(|(name, given)| {
            (
                format!("{name} {}", given.len()),
                build(name, given).unwrap(),
            )
        })
        .collect()
}

/// Points whose coordinates are multiples of 2^-10, so that a step by a power of two is exact in single precision.
fn points(dim: usize) -> Vec<Vec<f32>> {
    (0..4)
        .map(|step| {
            let stream = Stream::new(9, Purpose::Initialise, 0, step);
            (0..dim as u32)
                .map(|i| ((1024.0 * stream.normal(i)).round() / 1024.0) as f32)
                .collect()
        })
        .collect()
}

#[test]
fn gradients_match_differences() {
    for (name, potential) in all() {
        for w in points(potential.layout().len()) {
            let exact = gradient(&*potential, &w, Rows::All);
            let norm = exact
                .iter()
                .map(|g| (*g as f64).powi(2))
                .sum::<f64>()
                .sqrt();
            for j in 0..w.len() {
                let central = |h: f32| {
                    let at = |h: f32| {
                        let mut w = w.clone();
                        w[j] += h;
                        loss(&*potential, &w, Rows::All)
                    };
                    (at(h) - at(-h)) / (2.0 * h as f64)
                };
                // Richardson's extrapolation takes the error of order h² away.
                let difference = (4.0 * central(1.0 / 256.0) - central(1.0 / 128.0)) / 3.0;
                assert!(
                    (difference - exact[j] as f64).abs() < 2e-6 * (1.0 + norm),
                    "{name}: component {j} at {w:?} is {}, by differences {difference}",
                    exact[j]
                );
            }
        }
    }
}

#[test]
fn all_examples_together_are_the_sum_of_single_ones_whatever_the_noise() {
    for entry in REGISTRY {
        let noisy = [("examples", Value::Int(7)), ("noise", Value::Float(1.5))];
        let given = if entry.options.iter().any(|o| o.name == "noise") {
            &noisy[..]
        } else {
            &noisy[..1]
        };
        let potential = build(entry.name, given).unwrap();
        assert_eq!(potential.examples(), 7);
        for w in points(potential.layout().len()) {
            let all = loss(&*potential, &w, Rows::All);
            let sum: f64 = (0..7)
                .map(|i| loss(&*potential, &w, Rows::Indices(&[i])))
                .sum();
            assert!(
                (all - sum).abs() < 1e-5 * (1.0 + all.abs()),
                "{}: {all} and {sum}",
                entry.name
            );
            let every = gradient(&*potential, &w, Rows::Indices(&[0, 1, 2, 3, 4, 5, 6]));
            for (a, b) in gradient(&*potential, &w, Rows::All).iter().zip(&every) {
                assert!(
                    (a - b).abs() < 1e-4 + 1e-5 * a.abs(),
                    "{}: {a} and {b}",
                    entry.name
                );
            }
            let twice = gradient(&*potential, &w, Rows::Indices(&[3, 3]));
            for (a, b) in gradient(&*potential, &w, Rows::Indices(&[3]))
                .iter()
                .zip(&twice)
            {
                assert!((2.0 * a - b).abs() <= 1e-5 * b.abs(), "{}", entry.name);
            }
        }
    }
}

#[test]
fn entries_are_found_described_and_told_apart() {
    for entry in REGISTRY {
        assert_eq!(named(entry.name).unwrap().name, entry.name);
        assert!(
            entry.doc.lines().next().unwrap().len() < 200,
            "{}",
            entry.name
        );
        assert!(
            entry
                .example
                .contains(&format!("potential::{}(", entry.name))
        );
        let potential = build(entry.name, &[]).unwrap();
        let text = potential.describe();
        let size = format!("N = {}", potential.layout().len());
        assert!(text.ends_with(&size), "{text}");
        let start = potential.initialise(Stream::new(1, Purpose::Initialise, 0, 0));
        assert_eq!(start.len(), potential.layout().len());
    }
    let error = named("funel").err().unwrap().to_string();
    assert_eq!(
        error,
        "there is no potential 'funel'; did you mean 'funnel'?"
    );
}

#[test]
fn bad_options_are_explained() {
    let dim = |n| [("dim", Value::Int(n))];
    for name in ["banana", "rosenbrock"] {
        let text = message(name, &dim(3));
        assert_eq!(
            text,
            format!("potential::{name}: option 'dim' is 3, but must be even")
        );
    }
    assert!(message("funnel", &dim(1)).contains("must be ≥ 2"));
    assert!(message("normal_crossing", &[("exponents", list(&[]))]).contains("is empty"));
    assert!(message("normal_crossing", &[("exponents", list(&[0.0]))]).contains("[0] is 0"));
    assert!(message("eight_schools", &[("noise", Value::Float(1.0))]).contains("two examples"));
    assert!(message("mixture", &[("means", list(&[1.0]))]).contains("must have two"));
    assert!(message("mixture", &[("data", list(&[]))]).contains("is empty"));
    let both = [("data", list(&[1.0])), ("examples", Value::Int(2))];
    assert!(message("mixture", &both).contains("leave 'examples' out"));
}

/// Midpoints of a grid of `n` cells over `[-reach, reach]` in every one of `D` directions.
fn grid<const D: usize>(n: usize, reach: f64, mut f: impl FnMut([f64; D])) {
    for cell in 0..n.pow(D as u32) {
        f(std::array::from_fn(|d| {
            let i = cell / n.pow(d as u32) % n;
            reach * ((2 * i + 1) as f64 / n as f64 - 1.0)
        }));
    }
}

/// Means and covariances under exp(-U/T), where `to` takes coordinates in which the density is well behaved to parameters and
/// to the volume of the map.
fn moments<const D: usize>(
    potential: &dyn Potential,
    temperature: f64,
    reach: f64,
    to: impl Fn([f64; D]) -> ([f64; D], f64),
) -> ([f64; D], [[f64; D]; D]) {
    let (mut total, mut first, mut second) = (0.0, [0.0; D], [[0.0; D]; D]);
    grid(48, reach, |z| {
        let (w, volume) = to(z);
        let energy = loss(potential, &w.map(|x| x as f32), Rows::All);
        let weight = volume * (-energy / temperature).exp();
        total += weight;
        for i in 0..D {
            first[i] += weight * w[i];
            for j in 0..D {
                second[i][j] += weight * w[i] * w[j];
            }
        }
    });
    let mean = first.map(|x| x / total);
    let covariance =
        std::array::from_fn(|i| std::array::from_fn(|j| second[i][j] / total - mean[i] * mean[j]));
    (mean, covariance)
}

pub(super) fn near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() < tolerance * (1.0 + expected.abs()),
        "{what}: {value}, expected {expected}"
    );
}

#[test]
fn the_banana_has_its_moments() {
    let (b, s) = (0.3, 1.5);
    let given = [("curvature", Value::Float(b)), ("scale", Value::Float(s))];
    let potential = build("banana", &given).unwrap();
    for t in [1.0f64, 0.6] {
        let (mean, covariance) = moments(&*potential, t, 9.0, |z| {
            let x = s * t.sqrt() * z[0];
            ([x, t.sqrt() * z[1] - b * (x * x - s * s)], 1.0)
        });
        near("mean of w0", mean[0], 0.0, 1e-5);
        near("mean of w1", mean[1], b * s * s * (1.0 - t), 1e-5);
        near("variance of w0", covariance[0][0], s * s * t, 1e-5);
        let variance = t + 2.0 * b * b * s.powi(4) * t * t;
        near("variance of w1", covariance[1][1], variance, 1e-5);
        near("covariance", covariance[0][1], 0.0, 1e-5);
    }
}

#[test]
fn the_funnel_has_its_moments() {
    let s = 0.8;
    let given = [("dim", Value::Int(3)), ("scale", Value::Float(s))];
    let potential = build("funnel", &given).unwrap();
    for t in [1.0f64, 0.7] {
        let centre = s * s * (t - 1.0);
        let (mean, covariance) = moments(&*potential, t, 9.0, |z| {
            let v = centre + s * t.sqrt() * z[0];
            let width = (t * v.exp()).sqrt();
            ([v, width * z[1], width * z[2]], width * width)
        });
        near("mean of v", mean[0], centre, 1e-5);
        near("variance of v", covariance[0][0], s * s * t, 1e-5);
        let variance = t * (centre + 0.5 * s * s * t).exp();
        near("mean of x", mean[1], 0.0, 1e-5);
        near("variance of x", covariance[2][2], variance, 1e-5);
    }
}

#[test]
fn student_t_has_its_moments() {
    let (nu, s) = (9.0, 0.7);
    let given = [("nu", Value::Float(nu)), ("scale", Value::Float(s))];
    let potential = build("student_t", &given).unwrap();
    for t in [1.0f64, 0.8] {
        let (mean, covariance) = moments(&*potential, t, 6.0, |z: [f64; 2]| {
            (z.map(|z| s * z.sinh()), z[0].cosh() * z[1].cosh())
        });
        let freedom = (nu + 2.0) / t - 2.0;
        near("mean", mean[0], 0.0, 1e-5);
        near("covariance", covariance[0][1], 0.0, 1e-5);
        let variance = nu * s * s / (freedom - 2.0);
        near("variance", covariance[1][1], variance, 1e-5);
    }
}

#[test]
fn the_rosenbrock_valley_has_its_moments() {
    let (a, b) = (0.7, 20.0);
    let given = [("a", Value::Float(a)), ("b", Value::Float(b))];
    let potential = build("rosenbrock", &given).unwrap();
    for t in [1.0f64, 3.0] {
        let (mean, covariance) = moments(&*potential, t, 9.0, |z| {
            let x = a + (t / 2.0).sqrt() * z[0];
            ([x, x * x + (t / (2.0 * b)).sqrt() * z[1]], 1.0)
        });
        near("mean of x", mean[0], a, 1e-5);
        near("variance of x", covariance[0][0], t / 2.0, 1e-5);
        near("mean of y", mean[1], a * a + t / 2.0, 1e-5);
        let variance = t / (2.0 * b) + 2.0 * a * a * t + t * t / 2.0;
        near("variance of y", covariance[1][1], variance, 1e-5);
        near("covariance", covariance[0][1], a * t, 1e-5);
    }
}

/// Both forms against the reference posterior of posteriordb (eight_schools-eight_schools_noncentered, means and their errors),
/// and against what the documentation says. Given μ and ln τ, the energy is quadratic in θ, so that θ is integrated exactly.
#[test]
fn eight_schools_have_the_means_of_the_reference_posterior() {
    // μ, τ, θ_1, θ_8.
    let published = [
        (4.4105, 0.0330),
        (3.6021, 0.0319),
        (6.1505, 0.0557),
        (4.8840, 0.0543),
    ];
    let documented = [4.397, 3.598, 6.212, 4.854];
    for centred in [true, false] {
        let potential = build("eight_schools", &[("centred", Value::Bool(centred))]).unwrap();
        let (mut total, mut sums) = (0.0, [0.0; 4]);
        grid(160, 1.0, |[u, v]| {
            let (mu, log_tau) = (3.0 + 30.0 * u, -1.5 + 8.0 * v);
            let tau = f64::exp(log_tau);
            let mut w = vec![mu as f32, log_tau as f32];
            let (mut volume, mut effects) = (1.0, Vec::new());
            for (y, sigma) in EIGHT {
                let precision = tau.powi(-2) + sigma.powi(-2);
                let effect = (mu * tau.powi(-2) + y * sigma.powi(-2)) / precision;
                let scaled = (effect - mu) / tau;
                w.push(if centred { effect } else { scaled } as f32);
                volume /= precision.sqrt() * if centred { 1.0 } else { tau };
                effects.push(effect);
            }
            let weight = volume * (-loss(&*potential, &w, Rows::All)).exp();
            total += weight;
            for (sum, x) in sums.iter_mut().zip([mu, tau, effects[0], effects[7]]) {
                *sum += weight * x;
            }
        });
        for ((sum, (mean, error)), exact) in sums.iter().zip(published).zip(documented) {
            let value = sum / total;
            assert!(
                (value - mean).abs() < 4.0 * error,
                "{value}, published {mean}"
            );
            near("documented", value, exact, 5e-4);
        }
    }
}

/// Effects and standard errors, once more.
const EIGHT: [(f64, f64); 8] = [
    (28.0, 15.0),
    (8.0, 10.0),
    (-3.0, 16.0),
    (7.0, 11.0),
    (-1.0, 9.0),
    (1.0, 11.0),
    (18.0, 10.0),
    (12.0, 18.0),
];

#[test]
fn normal_crossings_have_their_learning_coefficients() {
    // β⟨U⟩ in the box |w| < 1, by w = e^{-z}.
    let scaled = |exponents: &[f64], log_beta: f64| {
        let potential = build("normal_crossing", &[("exponents", list(exponents))]).unwrap();
        let (mut total, mut sum) = (0.0, 0.0);
        grid(800, 40.0, |[a, b]| {
            let z = [a + 40.0, b + 40.0];
            let w = z.map(|z| (-z).exp() as f32);
            let energy = log_beta.exp() * loss(&*potential, &w, Rows::All);
            let weight = (-energy - z[0] - z[1]).exp();
            total += weight;
            sum += weight * energy;
        });
        sum / total
    };
    // Multiplicity 1: λ itself.
    near("λ of [2, 1]", scaled(&[2.0, 1.0], 40.0), 0.25, 1e-3);
    near("λ of [1, 3]", scaled(&[1.0, 3.0], 40.0), 1.0 / 6.0, 1e-3);
    // Multiplicity 2: Z = ½ sqrt(π/β) (ln β + γ + 2 ln 2)/2, so the correction is 1/(ln β + γ + 2 ln 2).
    let constant = 0.577_215_664_9 + 2.0 * 2f64.ln();
    let expected = 0.5 - 1.0 / (40.0 + constant);
    near("λ of [1, 1]", scaled(&[1.0, 1.0], 40.0), expected, 1e-3);
    let text = |k: &[f64]| {
        build("normal_crossing", &[("exponents", list(k))])
            .unwrap()
            .describe()
    };
    assert!(text(&[2.0, 1.0]).contains("λ = 1/4, multiplicity 1"));
    assert!(text(&[2.0, 1.0, 2.0]).contains("λ = 1/4, multiplicity 2"));
    // Where a parameter is exactly 0.
    let potential = build("normal_crossing", &[]).unwrap();
    assert_eq!(gradient(&*potential, &[0.0, 2.0], Rows::All), [0.0, 0.0]);
}
