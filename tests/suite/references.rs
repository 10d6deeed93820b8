//! Ladders that end in a Gaussian, against quadrature.

use super::support::evaluate;

const WELL: &str = "potential::closure(1, |w| 2.0 * (w[0] ** 2 - 1.0) ** 2 + 0.6 * w[0])";

fn well(w: f64) -> f64 {
    2.0 * (w * w - 1.0).powi(2) + 0.6 * w
}

/// ln ∫ exp(-u), and the means of w and w².
fn quadrature(u: impl Fn(f64) -> f64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    let step = 1e-3;
    for k in -8000..=8000 {
        let w = f64::from(k) * step;
        let p = (-u(w)).exp() * step;
        (sums.iter_mut().enumerate()).for_each(|(k, s)| *s += p * w.powi(k as i32));
    }
    [sums[0].ln(), sums[1] / sums[0], sums[2] / sums[0]]
}

fn ln_gaussian(w: f64, mean: f64, sd: f64) -> f64 {
    -0.5 * ((w - mean) / sd).powi(2) - sd.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// Null: the rung of T has the law exp(-U/T)·q^(1-1/T), and ln Z is that of the likelihood under the normalised prior, or of exp(-U) where R is no distribution.
/// Four standard errors, which are below 0.04.
#[test]
fn rungs_have_their_laws_and_evidence_is_that_of_the_model() {
    let (mean, sd) = (0.3, 1.4);
    let closures = "[observable::named(\"w\", |s| s.params[0]), observable::named(\"square\", |s| s.params[0] ** 2)]";
    for (prior, r) in [("prior::gaussian(0.5)", 0.5), ("prior::none()", 0.0)] {
        for sampler in ["hmc", "nuts", "mala", "metropolis"] {
            let found = evaluate(&format!(
                "let t = target({WELL}, #{{ prior: {prior} }}).with_reference(parameters([{mean:?}]), parameters([{sd:?}]));
                 let r = exchange(t, sampler::{sampler}(), #{{ temperatures: [1.0, 4.0], prior_rung: true, steps: 15_000, chains: 4, seed: 5, observe: {closures} }});
                 let m = r.summary().to_map();
                 #{{ w: m.w, w_mcse: m.w_mcse, square: m.square, square_mcse: m.square_mcse, virial: m.virial, virial_mcse: m.virial_mcse, evidence: evidence(r).to_map() }}"
            ))
            .unwrap();
            let near = |what: &str, at: f64, error: f64, exact: f64| {
                println!("{prior} {sampler} {what}: {at} ± {error}, {exact}");
                assert!(
                    (at - exact).abs() < 4.0 * error && error < 0.04,
                    "{prior}, {sampler}, {what}: {at} ± {error}, exact {exact}"
                );
            };
            let number = |name: &str, k: usize| found[name][k].as_f64().unwrap();
            for (k, t) in [1.0, 4.0, f64::INFINITY].into_iter().enumerate() {
                let u = |w: f64| (well(w) + 0.5 * r * w * w) / t;
                let [_, w, square] =
                    quadrature(|x| u(x) - (1.0 - 1.0 / t) * ln_gaussian(x, mean, sd));
                near(&format!("w at {t}"), number("w", k), number("w_mcse", k), w);
                near(
                    &format!("w² at {t}"),
                    number("square", k),
                    number("square_mcse", k),
                    square,
                );
                if t.is_finite() && sampler != "metropolis" {
                    let (at, error) = (number("virial", k), number("virial_mcse", k));
                    near(&format!("virial at {t}"), at / t, error / t, 1.0);
                }
            }
            let normaliser = match r > 0.0 {
                true => 0.5 * (std::f64::consts::TAU / r).ln(),
                false => 0.0,
            };
            let [ln_z, ..] = quadrature(|w| well(w) + 0.5 * r * w * w);
            for name in ["mbar", "stepping_stone_forward"] {
                let (at, error) = (
                    &found["evidence"][name],
                    &found["evidence"][format!("{name}_error")],
                );
                near(
                    name,
                    at.as_f64().unwrap(),
                    error.as_f64().unwrap(),
                    ln_z - normaliser,
                );
            }
        }
    }
}

/// Pilots learn the Gaussian that a posterior is, and keep the prior where a Gaussian is further.
#[test]
fn pilots_find_the_nearer_end() {
    let source = |energy: &str, prior: &str, hottest: &str| {
        let found = evaluate(&format!(
            "import \"ladder\" as ladder;
             let t = target(potential::closure(4, |w| {energy}), #{{ prior: {prior} }});
             let f = ladder::adapted(t, sampler::hmc(), #{{ temperatures: logspace(1.0, {hottest}, 6), reference: true, exchange: #{{ prior_rung: true, steps: 4000, chains: 2, seed: 2 }} }});
             #{{ reference: f.reference, barriers: f.barriers, rungs: f.rungs, evidence: evidence(f.run).to_map(), text: f.text }}"
        ))
        .unwrap();
        println!("{found}");
        found
    };
    // A posterior that is a narrow Gaussian: ln Z in closed form.
    let found = source(
        "50.0 * (w - 2.0).norm2()",
        "prior::gaussian(0.01)",
        "1000.0",
    );
    assert_eq!(found["reference"], true);
    let last = found["rungs"].as_array().unwrap().last().unwrap();
    assert!(last.as_u64().unwrap() <= 3, "{found}");
    let exact = 2.0 * (0.01f64 / 100.01).ln() - 2.0 * 4.0 * 100.0 * 0.01 / 100.01;
    let (at, error) = (&found["evidence"]["ln_z"], &found["evidence"]["error"]);
    let (at, error) = (at.as_f64().unwrap(), error.as_f64().unwrap());
    assert!(
        (at - exact).abs() < 4.0 * error && error < 0.05,
        "{found} {exact}"
    );
    // A posterior that is nearly its prior, whose tails no Gaussian has.
    let found = source(
        "0.05 * w.norm2() / (1.0 + w.norm2())",
        "prior::cauchy(0, 1)",
        "4.0",
    );
    assert_eq!(found["reference"], false);
}

#[test]
fn what_takes_no_reference_says_so() {
    let referenced = "let t = target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::gaussian(1.0) }).with_reference(parameters([0.0, 0.0]), parameters([1.0, 1.0]));";
    for (source, said) in [
        ("smc(t, sampler::hmc())", "smc: the reference"),
        (
            "laplace(t, parameters([0.0, 0.0]))",
            "laplace: the reference",
        ),
        (
            "sweep(t, sampler::hmc(), #{ temperatures: [1.0, 2.0], temper: \"likelihood\", steps: 10 })",
            "sweep: the reference",
        ),
        (
            "t.with_reference(parameters([0.0]), parameters([1.0]))",
            "has 1 means, the model 2 parameters",
        ),
        (
            "t.with_reference(parameters([0.0, 0.0]), parameters([1.0, 0.0]))",
            "parameter 1 has mean 0 and standard deviation 0",
        ),
        (
            "t.with_reference(parameters([0.0, 0.0]), parameters([1.0]))",
            "2 means and 1 standard deviations",
        ),
        (
            "target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::uniform_box(2.0) }).with_reference(parameters([0.0, 0.0]), parameters([1.0, 1.0]))",
            "the prior has walls",
        ),
        (
            "sample(t, sampler::hmc(), #{ steps: 40, every: 5, keep: 5, chains: 1 }).moments()",
            "need ten at least",
        ),
        (
            "import \"ladder\" as ladder; ladder::adapted(t, sampler::hmc(), #{ temperatures: [1.0, 2.0], reference: true })",
            "needs `prior_rung: true`",
        ),
    ] {
        let error = evaluate(&format!("{referenced} {source}"));
        let error = error.expect_err(source).to_string();
        assert!(error.contains(said), "{source}: {error}");
    }
}

/// At the lowest temperature, wherever it stands.
#[test]
fn moments_are_those_of_the_kept_draws() {
    let found = evaluate(
        "let r = sweep(target(potential::gaussian(#{ dim: 3, condition: 9.0 })), sampler::hmc(), #{ temperatures: [4.0, 1.0], steps: 400, chains: 2, keep: 5 });
         let m = r.moments(); let draws = [];
         for c in 2..4 { let w = r.kept(\"w\", c).to_array(); for i in w { draws.push(i); } }
         let mean = []; let sd = [];
         for k in 0..3 { let x = draws.map(|d| d[k]); let mu = x.reduce(|a, b| a + b, 0.0) / x.len(); mean.push(mu);
             sd.push((x.map(|v| (v - mu) ** 2).reduce(|a, b| a + b, 0.0) / (x.len() - 1)) ** 0.5); }
         [m.mean.vector(0).to_array(), m.sd.vector(0).to_array(), mean, sd]",
    )
    .unwrap();
    let row = |k: usize| -> Vec<f64> { serde_json::from_value(found[k].clone()).unwrap() };
    for k in 0..2 {
        for (a, b) in row(k).iter().zip(row(k + 2)) {
            assert!((a - b).abs() < 1e-5, "{found}");
        }
    }
}
