//! Leave-one-out cross-validation: against ArviZ on the same ln likelihoods, and against linear regression, where it is known in closed form.

use super::support::{deviation, evaluate};
use ergodic::diagnostic::psis::{largest_k, leave_one_out, sum_with_error};
use serde_json::Value;

/// The numbers of ArviZ; `make_arviz_loo.py` beside it says how the likelihoods are made.
const FIXTURE: &str = include_str!("../interop/arviz_loo.json");

/// ln likelihoods of a case, example by example.
fn ln_likelihoods(case: usize, draws: usize, examples: usize) -> Vec<Vec<f64>> {
    let mut out = vec![Vec::new(); examples];
    let mut x = 12345 + case as u64;
    for k in 0..draws * examples {
        x = (1103515245 * x + 12345) % (1 << 31);
        let shape = (k % examples + 1) as f64 / 6.0;
        let u = (x as f64 + 0.5) / (1u64 << 31) as f64;
        out[k % examples].push(shape * u.ln() - 1.0);
    }
    out
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn close(what: &str, got: f64, want: f64) {
    assert!(
        (got / want - 1.0).abs() < 1e-9,
        "{what}: {got}, ArviZ says {want}"
    );
}

#[test]
fn leaving_one_out_agrees_with_arviz() {
    let file: Value = serde_json::from_str(FIXTURE).unwrap();
    let mut first_two = Vec::new();
    for (c, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let size = |name: &str| case[name].as_u64().unwrap() as usize;
        let (draws, want) = (size("chains") * size("draws"), &case["arviz"]);
        let left: Vec<_> = ln_likelihoods(c, draws, size("examples"))
            .iter()
            .map(|l| leave_one_out(l, 1.0, number(&case["efficiency"])))
            .collect();
        for (i, (l, elpd)) in left.iter().zip(numbers(&want["elpd_i"])).enumerate() {
            close(&format!("case {c}, elpd of {i}"), l.elpd, elpd);
            close(&format!("case {c}, k of {i}"), l.k, numbers(&want["k"])[i]);
        }
        let elpd: Vec<f64> = left.iter().map(|l| l.elpd).collect();
        let (sum, se) = sum_with_error(&elpd);
        close("elpd", sum, number(&want["elpd"]));
        close("se", se, number(&want["se"]));
        close("p", left.iter().map(|l| l.p).sum(), number(&want["p"]));
        close("good k", largest_k(draws), number(&want["good_k"]));
        first_two.push(elpd);
    }
    let pairs = first_two[0].iter().zip(&first_two[1]);
    let (difference, se) = sum_with_error(&pairs.map(|(a, b)| b - a).collect::<Vec<_>>());
    let want = &file["comparison"];
    close(
        "difference",
        -difference.abs(),
        -number(&want["difference"]).abs(),
    );
    // ArviZ has n in the denominator here, but n - 1 in the error of a sum.
    let n = first_two[0].len() as f64;
    let error = number(&want["se"]) * (n / (n - 1.0)).sqrt();
    close("se of the difference", se, error);
}

/// Inputs and targets of a regression with three weights.
pub(super) fn regression() -> (Vec<[f64; 3]>, Vec<f64>) {
    let x = |i: usize| {
        let t = i as f64;
        [1.0, (1.3 * t).sin(), (0.7 * t * t).cos()].map(|x| f64::from(x as f32))
    };
    let y = |i: usize| {
        let t = i as f64;
        let noise = 0.8 * (17.0 * t * t + 3.0 * t).sin();
        f64::from((0.5 + 1.2 * (1.3 * t).sin() + noise) as f32)
    };
    ((0..24).map(x).collect(), (0..24).map(y).collect())
}

/// Mean and covariance of the weights given these rows: noise of variance 1/2, a prior of precision 1.
pub(super) fn posterior(x: &[[f64; 3]], y: &[f64]) -> ([f64; 3], [[f64; 3]; 3]) {
    let mut a = [[0.0; 6]; 3];
    let mut b = [0.0; 3];
    for (x, y) in x.iter().zip(y) {
        for i in 0..3 {
            b[i] += 2.0 * x[i] * y;
            (0..3).for_each(|j| a[i][j] += 2.0 * x[i] * x[j]);
        }
    }
    for i in 0..3 {
        a[i][i] += 1.0;
        a[i][3 + i] = 1.0;
    }
    // Gauss and Jordan, of a matrix that needs no pivots.
    for i in 0..3 {
        let pivot = a[i][i];
        a[i].iter_mut().for_each(|v| *v /= pivot);
        for k in (0..3).filter(|k| *k != i) {
            let (factor, row) = (a[k][i], a[i]);
            a[k].iter_mut().zip(row).for_each(|(v, r)| *v -= factor * r);
        }
    }
    let covariance = a.map(|row| [row[3], row[4], row[5]]);
    let mean = covariance.map(|row| row.iter().zip(b).map(|(c, b)| c * b).sum());
    (mean, covariance)
}

fn exact_elpd() -> f64 {
    let (x, y) = regression();
    let without = |i: usize| {
        let others = |k: &usize| *k != i;
        let rest_x: Vec<_> = (0..x.len()).filter(others).map(|k| x[k]).collect();
        let rest_y: Vec<_> = (0..x.len()).filter(others).map(|k| y[k]).collect();
        let (mean, covariance) = posterior(&rest_x, &rest_y);
        let predicted: f64 = mean.iter().zip(x[i]).map(|(m, x)| m * x).sum();
        let spread = |row: &[f64; 3]| row.iter().zip(x[i]).map(|(c, x)| c * x).sum::<f64>();
        let variance: f64 = 0.5
            + covariance
                .iter()
                .zip(x[i])
                .map(|(row, x)| spread(row) * x)
                .sum::<f64>();
        -0.5 * ((y[i] - predicted).powi(2) / variance + (std::f64::consts::TAU * variance).ln())
    };
    (0..x.len()).map(without).sum()
}

fn script(body: &str) -> String {
    let (x, y) = regression();
    format!(
        "let t = target(model::mlp(#{{ layers: [3, 1], output: \"identity\", bias: false }}), dataset::arrays({x:?}, {y:?}),
             #{{ loss: \"squared_error\", energy: \"sum\", prior: prior::gaussian(1.0) }});
         let run_of = |seed| sample(t, sampler::hmc(#{{ leapfrog: 8 }}), #{{ steps: 6000, chains: 4, keep: 1, every: 1, seed: seed, observe: [observable::cost(), observable::norm2()] }});
         {body}"
    )
}

/// Null: the mean over runs of elpd_loo is the exact one. Bound: four standard errors, measured by the spread over eight runs, of which one is at most 0.02 nats.
#[test]
fn leaving_one_out_of_a_regression_is_exact() {
    let source = script(
        "let all = [1, 2, 3, 4, 5, 6, 7, 8].map(|s| loo(run_of.call(s)));
         #{ elpd: all.map(|l| l.elpd_loo), p: all[0].p_loo, looic: all[0].looic, k: all[0].k, bad: all[0].unreliable, text: all[0].to_string(), figure: plot::khat(all[0]).to_string(),
            nll: all[0].nll, draws: all[0].draws, thin: loo(run_of.call(9).thin(3)).draws }",
    );
    let value = evaluate(&source).unwrap_or_else(|e| panic!("{e}"));
    let elpd = numbers(&value["elpd"]);
    let exact = exact_elpd();
    let mean = elpd.iter().sum::<f64>() / 8.0;
    let spread = elpd.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 7.0;
    assert!((spread / 8.0).sqrt() < 0.02, "{elpd:?}");
    assert!(
        deviation(&elpd, exact).abs() < 4.0,
        "{elpd:?}, exact {exact}"
    );
    let p = number(&value["p"]);
    assert!(p > 1.0 && p < 4.0, "three weights, {p} effective ones");
    assert_eq!(number(&value["looic"]), -2.0 * elpd[0]);
    assert!((number(&value["nll"]) * 24.0 + elpd[0]).abs() < 1e-9);
    assert_eq!(
        (numbers(&value["k"]).len(), &value["draws"]),
        (24, &12000.into())
    );
    // Of each chain every third draw is left.
    assert_eq!(value["thin"], 4000);
    let text = value["text"].as_str().unwrap();
    assert!(
        text.contains("elpd_loo") && text.contains("24 examples by 12000 draws"),
        "{text}"
    );
}

/// Where every ratio is one of few large ones, k̂ says so by name, and a comparison with a better model has the error of the paired difference.
#[test]
fn influential_examples_and_better_models_are_named() {
    let (x, mut y) = regression();
    y[7] = 9.0;
    let source = format!(
        "let data = dataset::arrays({x:?}, {y:?});
         let on = |prior| target(model::mlp(#{{ layers: [3, 1], output: \"identity\", bias: false }}), data, #{{ loss: \"squared_error\", energy: \"sum\", prior: prior::gaussian(prior) }});
         let run_of = |prior, name| sample(on.call(prior), sampler::hmc(#{{ leapfrog: 8 }}), #{{ steps: 1000, chains: 4, keep: 1, every: 1, seed: 3, name: name }});
         let a = loo(run_of.call(0.1, \"loose\")); let b = loo(run_of.call(100.0, \"tight\"));
         let c = compare([b, a]);
         #{{ worst: a.unreliable, text: a.to_string(), elpd: [a.elpd, b.elpd], c: c.to_array(), table: c.to_string(), reasons: a.to_map().reasons }}"
    );
    let value = evaluate(&source).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(value["worst"][0]["example"], 7, "{value}");
    assert!(number(&value["worst"][0]["k"]) > 0.7);
    let text = value["text"].as_str().unwrap();
    assert!(text.contains("examples 7 ("), "{text}");
    for said in ["reasons", "table"].map(|key| value[key].to_string()) {
        assert!(said.contains("k̂ is above"), "{said}");
    }
    let [a, b] = [0, 1].map(|k| numbers(&value["elpd"][k]));
    let (difference, se) =
        sum_with_error(&b.iter().zip(&a).map(|(b, a)| b - a).collect::<Vec<_>>());
    assert!(difference < 0.0);
    let (best, other) = (&value["c"][0], &value["c"][1]);
    assert_eq!(
        (&best["name"], &other["name"]),
        (&"loose".into(), &"tight".into())
    );
    assert!((number(&other["difference"]) - difference).abs() < 1e-9);
    assert!((number(&best["against"]["tight"]["se"]) - se).abs() < 1e-9);
    // Errors of a difference are not those of two independent sums.
    let apart = number(&best["elpd_se"]).hypot(number(&other["elpd_se"]));
    assert!((se - apart).abs() > 1e-3 * apart);
    assert!(
        value["table"].as_str().unwrap().contains("tight"),
        "{value}"
    );
}

#[test]
fn what_cannot_be_left_out_is_refused_by_name() {
    let refused = |body: &str| {
        evaluate(&script(body))
            .err()
            .map(|e| e.message)
            .unwrap_or_default()
    };
    let few =
        refused("loo(sample(t, sampler::hmc(), #{ steps: 40, chains: 1, keep: 2, every: 1 }))");
    assert!(
        few.contains("kept 10 draws") && few.contains("at least 25"),
        "{few}"
    );
    let none = refused("loo(sample(t, sampler::hmc(), #{ steps: 40, chains: 1, every: 1 }))");
    assert!(none.contains("keep:"), "{none}");
    let other = refused("let r = run_of.call(1); loo(r, #{ temperature: 1 })");
    assert!(other.contains("no") && other.contains("index 1"), "{other}");
    let no_data = refused(
        "loo(sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, keep: 2, every: 1 }))",
    );
    assert!(no_data.contains("network"), "{no_data}");
    let mixed = refused("let r = loo(run_of.call(1)); compare(#{ a: r, b: run_of.call(2) })");
    assert!(mixed.contains("loo(run)"), "{mixed}");
    let others = refused(
        "let q = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 3 }), #{ energy: \"sum\", prior: prior::gaussian(1) });
         compare(#{ a: loo(run_of.call(1)), b: loo(sample(q, sampler::hmc(), #{ steps: 100, chains: 2, keep: 2, every: 1 })) })",
    );
    assert!(others.contains("other examples"), "{others}");
}
