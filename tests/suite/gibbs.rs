//! Gibbs sampling of deep linear networks against closed forms, quadrature, NUTS and known learning coefficients.

use super::support::evaluate;
use serde_json::Value;

fn numbers(source: &str) -> Vec<f64> {
    let value = evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Null: the expected value is right. The error is below `most`.
fn within(what: &str, found: &[f64], expected: f64, most: f64) {
    let off = (found[0] - expected) / found[1];
    assert!(
        off.abs() < 4.0 && found[1] < most,
        "{what}: {} ± {}, expected {expected}, {off:.1} standard errors",
        found[0],
        found[1]
    );
}

/// Mean and standard error of what closures give along a run, in pairs.
fn means(target: &str, sampler: &str, options: &str, closures: &[&str]) -> Vec<f64> {
    let observe: Vec<_> = (closures.iter().enumerate())
        .map(|(i, c)| format!("observable::named(\"x{i}\", {c})"))
        .collect();
    let pairs: Vec<_> = (0..closures.len())
        .map(|i| format!("m.x{i}, m.x{i}_mcse"))
        .collect();
    numbers(&format!(
        "let r = sample({target}, {sampler}, #{{ {options}, chains: 4, every: 1, seed: 3, observe: [{}] }});
         let m = r.summary().to_map(); [{}, m.virial, m.virial_mcse]",
        observe.join(", "),
        pairs.join(", ")
    ))
}

/// Null: one layer has the law of a Bayesian linear regression: precision 2(s/T)⟨x xᵀ⟩ + p/T around the weights that the normal equations give.
#[test]
fn one_layer_has_the_law_of_a_regression() {
    let (x, y) = ([[1.0, 0.5], [-0.5, 1.0], [0.5, 2.0]], [1.0, -0.5, 0.25]);
    let (t, p) = (0.5, 2.0);
    // s = n, so that s⟨x xᵀ⟩ is a sum over rows.
    let sum = |f: &dyn Fn(usize) -> f64| (0..3).map(f).sum::<f64>();
    let entry = |i: usize, j: usize| 2.0 * sum(&|k| x[k][i] * x[k][j]) + f64::from(i == j) * p;
    let right = [0, 1].map(|i| 2.0 * sum(&|k| x[k][i] * y[k]));
    let (a, b, c) = (entry(0, 0), entry(0, 1), entry(1, 1));
    let det = a * c - b * b;
    let mean = [
        (c * right[0] - b * right[1]) / det,
        (a * right[1] - b * right[0]) / det,
    ];
    let covariance = [c / det * t, -b / det * t, a / det * t];
    let target = format!(
        "target(model::deep_linear(#{{ widths: [2, 1] }}), dataset::arrays({x:?}, {y:?}), #{{ energy: \"sum\", prior: prior::gaussian({p:?}) }})"
    );
    let [m0, m1] = mean;
    let off = |i: usize, m: f64| format!("(s.params[{i}] - ({m:?}))");
    let square = |i: usize, m: f64, j: usize, n: f64| format!("|s| {} * {}", off(i, m), off(j, n));
    let closures = [
        "|s| s.params[0]".to_string(),
        "|s| s.params[1]".to_string(),
        square(0, m0, 0, m0),
        square(0, m0, 1, m1),
        square(1, m1, 1, m1),
    ];
    let closures: Vec<_> = closures.iter().map(String::as_str).collect();
    let found = means(
        &target,
        "sampler::gibbs()",
        &format!("temperature: {t:?}, steps: 11000, burn_in: 1000"),
        &closures,
    );
    let expected = [
        mean[0],
        mean[1],
        covariance[0],
        covariance[1],
        covariance[2],
        t,
    ];
    for (k, (pair, expected)) in found.chunks(2).zip(expected).enumerate() {
        within(&format!("number {k}"), pair, expected, 0.01);
    }
}

/// Null: two layers of one weight each, whose law has two modes and no Gaussian form, have the moments of quadrature at every temperature, also in a sweep where only
/// the likelihood is tempered (a ladder), and around a centre of the prior.
#[test]
fn two_layers_have_the_law_of_quadrature() {
    let (x, y) = ([[1.0], [-0.5], [1.5]], [1.0, -0.25, 0.75]);
    let rows: Vec<(f64, f64)> = x.iter().map(|x| x[0]).zip(y).collect();
    let (p, centre) = (0.8, [0.5, -0.25]);
    let quadrature = |likelihood: f64, prior: f64, f: &dyn Fn(f64, f64) -> f64| {
        let n = 600;
        let at = |i: usize| -9.0 + 18.0 * (i as f64 + 0.5) / n as f64;
        let (mut total, mut weighted) = (0.0, 0.0);
        for (i, j) in (0..n * n).map(|k| (k / n, k % n)) {
            let (a, b) = (at(i), at(j));
            let loss: f64 = rows.iter().map(|(x, y)| (y - b * a * x).powi(2)).sum();
            let pull = 0.5 * p * ((a - centre[0]).powi(2) + (b - centre[1]).powi(2));
            let weight = (-likelihood * loss - prior * pull).exp();
            total += weight;
            weighted += weight * f(a, b);
        }
        weighted / total
    };
    let target = format!(
        "target(model::deep_linear(#{{ widths: [1, 1, 1] }}), dataset::arrays({x:?}, {y:?}),
            #{{ energy: \"sum\", prior: prior::localised({p:?}, parameters({centre:?})) }})"
    );
    type Moment<'a> = (&'a str, &'a dyn Fn(f64, f64) -> f64);
    let moments: [Moment; 3] = [
        ("|s| s.params[0] * s.params[1]", &|a, b| a * b),
        ("|s| s.params[0] ** 2.0", &|a, _| a * a),
        ("|s| (s.params[0] * s.params[1]) ** 2.0", &|a, b| {
            (a * b).powi(2)
        }),
    ];
    let closures = moments.map(|m| m.0);
    for t in [0.3, 1.0, 3.0] {
        let found = means(
            &target,
            "sampler::gibbs()",
            &format!("temperature: {t:?}, steps: 21000, burn_in: 1000"),
            &closures,
        );
        for (pair, (name, f)) in found.chunks(2).zip(moments) {
            let expected = quadrature(1.0 / t, 1.0 / t, f);
            let most = 0.03 * expected.abs();
            within(&format!("{name} at T = {t}"), pair, expected, most);
        }
        within(&format!("virial at T = {t}"), &found[6..8], t, 0.03 * t);
    }
    let found = numbers(&format!(
        "let r = exchange({target}, sampler::gibbs(), #{{ temperatures: [1.0, 2.0, 5.0], temper: \"likelihood\", steps: 11000, burn_in: 1000, chains: 4, seed: 4,
            every: 1, observe: [observable::named(\"ab\", {}), observable::named(\"aa\", {})] }});
         let m = r.summary().to_map(); let all = []; for t in 0..3 {{ all += [m.ab[t], m.ab_mcse[t], m.aa[t], m.aa_mcse[t]]; }} all",
        closures[0], closures[1]
    ));
    for (four, t) in found.chunks(4).zip([1.0, 2.0, 5.0]) {
        for (pair, (name, f)) in four.chunks(2).zip(moments) {
            let expected = quadrature(1.0 / t, 1.0, f);
            let most = 0.05 * expected.abs();
            within(&format!("{name} on the rung {t}"), pair, expected, most);
        }
    }
}

/// Null: three layers have the law that NUTS samples; the difference of the means is within four standard errors, and these are below 3 % of the mean.
#[test]
fn three_layers_have_the_law_of_nuts() {
    let target = "{ let x = []; let y = [];
        for i in 0..40 { let a = (0.7 * i).sin(); let b = (1.3 * i).cos(); let c = (2.1 * i + 1.0).sin();
            x.push([a, b, c]); y.push([a - 0.5 * b + 0.3 * (3.7 * i).sin(), 0.8 * c + 0.3 * (5.1 * i).cos()]); }
        target(model::deep_linear(#{ widths: [3, 2, 3, 2] }), dataset::arrays(x, y), #{ energy: \"sum\", prior: prior::gaussian(3.0) }) }";
    let closures = [
        "|s| s.params.norm2()",
        "|s| s.params.w1.norm2()",
        "|s| s.params.w3.matmul(s.params.w2).matmul(s.params.w1).norm2()",
        "|s| s.params.w2.norm2() ** 2.0",
    ];
    let run = |sampler: &str, steps: u64| {
        let options = format!("temperature: 1.0, steps: {steps}, burn_in: 1000");
        means(target, sampler, &options, &closures)
    };
    let (found, other) = (run("sampler::gibbs()", 9000), run("sampler::nuts()", 9000));
    for (k, (a, b)) in found.chunks(2).zip(other.chunks(2)).enumerate() {
        let both = [a[0], a[1].hypot(b[1])];
        within(&format!("number {k}"), &both, b[0], 0.03 * b[0]);
    }
}

/// Null: the slope over three nβ is the coefficient of a problem whose weights are at the most singular points with that product. L(w0) is above the least loss by
/// what fits the noise, which takes about 2λ parameters: σ²·2λ/n.
#[test]
fn coefficients_of_singular_problems_are_right() {
    for (widths, rank) in [("[8, 6, 7]", 3), ("[12, 9, 10]", 4)] {
        let source = format!(
            "let p = llc_problem(#{{ widths: {widths}, rank: {rank}, n: 1_000_000, noise: 0.5, data: \"moments\" }});
             let nb = 1e6 / (1e6).ln();
             let e = llc(p.target, sampler::gibbs(), #{{ start: p.start, nbeta: [nb, 2.0 * nb, 4.0 * nb], steps: 6000, seed: 1 }});
             #{{ e: e.to_map(), truth: p.truth, text: e.to_string() }}"
        );
        let found = evaluate(&source).unwrap_or_else(|e| panic!("{e}\n{source}"));
        let number = |v: &Value| v.as_f64().unwrap();
        let e = &found["e"];
        println!("{}", found["text"]);
        let truth = number(&found["truth"]);
        let own = [number(&e["estimate"]), number(&e["mcse"])];
        within(&format!("λ of {widths}"), &own, truth, 0.01 * truth);
        let above = number(&e["above_least"]) / (0.25 * 2.0 * truth / 1e6);
        assert!((0.8..1.25).contains(&above), "{above}");
        assert_eq!(e["verdict"], "converged", "{}", found["text"]);
    }
}

/// Layers that grow until rounding hides the prior's curvature or the loss are an error that says what to do.
#[test]
fn layers_that_outgrow_double_precision_are_an_error() {
    let error = evaluate(
        "let p = llc_problem(#{ widths: [10, 8, 9, 10], rank: 4, n: 1000, data: \"moments\" });
         llc(p.target, sampler::gibbs(), #{ start: p.start, gamma: 1e-6, nbeta: 1e8, steps: 200 })",
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("take a stronger prior"), "{error}");
}

#[test]
fn targets_without_gaussian_layers_are_refused() {
    let data = "dataset::arrays([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])";
    let classes = "dataset::arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1], #{ classes: true })";
    let gaussian = "#{ prior: prior::gaussian(1.0) }";
    for (target, said) in [
        (
            format!(
                "target(model::mlp(#{{ layers: [2, 3, 1], activation: \"tanh\" }}), {data}, {gaussian})"
            ),
            "for deep linear networks without biases only",
        ),
        (
            format!("target(model::deep_linear(#{{ widths: [2, 1] }}), {data})"),
            "needs a Gaussian prior",
        ),
        (
            format!(
                "target(model::deep_linear(#{{ widths: [2, 1] }}), {data}, #{{ prior: prior::uniform_box(2.0) }})"
            ),
            "needs a Gaussian prior",
        ),
        (
            format!(
                "target(model::deep_linear(#{{ widths: [2, 2] }}), {classes}, #{{ loss: \"squared_error\", prior: prior::gaussian(1.0) }})"
            ),
            "squared error of real targets",
        ),
        (
            format!("target(potential::gaussian(#{{ dim: 3 }}), {gaussian})"),
            "needs a network with data",
        ),
    ] {
        let error = evaluate(&format!(
            "sample({target}, sampler::gibbs(), #{{ steps: 10 }})"
        ));
        let error = error.expect_err(&target).to_string();
        assert!(error.contains(said), "{target}: {error}");
    }
}
