//! Gradient estimators: SGLD on the Gaussian with each, whose noise the law then has, and which the run must report.

use super::cases::{sgld_variance, without_replacement};
use super::law::Law;
use super::targets::{VARIANCE, curvatures, gaussian};
use super::{Lengths, object, run, sampler, target};
use ergodic::diagnostic;
use ergodic::engine::report::GRADIENT_VARIANCE;

fn sgld_with(gradient: &str, variance: f64) {
    let source = format!("sampler::sgld(#{{ step: 0.1, gradient: gradient::{gradient} }})");
    let law = Law::by_mode(&curvatures(), |k| (sgld_variance(k, 0.1, variance), None));
    gaussian(gradient, &source, &Lengths::new(400_000, 10), &law);
}

#[test]
#[ignore = "long: tests/run"]
fn full_gradients_have_no_noise() {
    sgld_with("full()", 0.0);
}

#[test]
#[ignore = "long: tests/run"]
fn minibatches_without_replacement_have_less_noise() {
    // Half of the examples, or the difference would be too small to see: 1 - 500/999.
    let variance = 16.0 / 500.0 * 500.0 / 999.0;
    sgld_with("minibatch(#{ batch: 500, replacement: false })", variance);
    sgld_with(
        "minibatch(#{ batch: 4, replacement: false })",
        without_replacement(),
    );
}

#[test]
#[ignore = "long: tests/run"]
fn control_variates_take_noise_away_that_does_not_depend_on_the_parameters() {
    sgld_with("control_variates(#{ batch: 4 })", 0.0);
    sgld_with(
        "control_variates(#{ batch: 4, anchor: parameters([1, 2, 3, 4, 5, 6, 7, 8, 9, 0]) })",
        0.0,
    );
}

/// The measured variance of the gradient, and what it should be.
fn measured(gradient: &str, expected: f64) {
    let target = target(
        "target(potential::gaussian(#{ dim: 10, condition: 10, examples: 1000, noise: 4.0 }))",
    );
    let sgld = sampler(&format!("sampler::sgld(#{{ step: 0.1, {gradient} }})"));
    let run = run(&target, &sgld, 0.5, &Lengths::new(40_000, 200), &[]);
    let draws = run.draws(GRADIENT_VARIANCE.0, 0, 0, true).unwrap();
    let (mean, error) = (diagnostic::mean(&draws), diagnostic::mcse_mean(&draws));
    let z = (mean - expected) / error;
    assert!(
        z.abs() < 4.0,
        "{gradient}: {mean} ± {error}, expected {expected}"
    );
}

#[test]
#[ignore = "long: tests/run"]
fn the_noise_of_the_gradient_is_measured() {
    measured("batch: 4", VARIANCE);
    measured(
        "gradient: gradient::minibatch(#{ batch: 500, replacement: false })",
        16.0 / 999.0,
    );
}

#[test]
fn control_variates_are_unbiased_away_from_the_anchor() {
    // On a network, where the noise depends on the parameters: the mean of many estimates is the gradient.
    let script = |gradient: &str| {
        format!(
            "let t = target(model::mlp(#{{ layers: [8, 5, 3] }}), dataset::spin_vectors(#{{ dim: 8, classes: 3, train: 200, test: 0 }}));
             let start = []; for i in 0..63 {{ start.push(0.1 * (i % 5 - 2)); }}
             let anchor = []; for i in 0..63 {{ anchor.push(0.1 * (i % 5 - 2) + 0.02 * (i % 3 - 1)); }}
             let r = sample(t, sampler::sgld(#{{ step: 1e-12, gradient: gradient::{gradient} }}),
                #{{ temperature: 1e-9, start: parameters(start), chains: 2, steps: 20_000, every: 200, observe: [observable::norm2()] }});
             [r.summary().virial, r.summary().virial_mcse, r.summary().{noise}]",
            noise = GRADIENT_VARIANCE.0,
        )
    };
    let value = |gradient: &str| {
        let list: rhai::Array = object(&script(gradient));
        let numbers: Vec<f64> = list.iter().map(|x| x.as_float().unwrap()).collect();
        <[f64; 3]>::try_from(numbers).unwrap()
    };
    let full = value_full(&script("full()"));
    let plain = value("minibatch(#{ batch: 10 })");
    let control = value("control_variates(#{ batch: 10, anchor: parameters(anchor) })");
    for estimate in [plain, control] {
        let z = (estimate[0] - full) / estimate[1];
        assert!(z.abs() < 4.0, "{estimate:?}, full {full}");
    }
    assert!(
        control[2] < 0.2 * plain[2],
        "near the anchor the noise should be small: {control:?} {plain:?}"
    );
}

/// The virial of the exact gradient: of a run without noise.
fn value_full(script: &str) -> f64 {
    let without = script.replace(&format!(", r.summary().{}", GRADIENT_VARIANCE.0), "");
    let list: rhai::Array = object(&without);
    list[0].as_float().unwrap()
}
