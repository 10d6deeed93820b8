//! Learning curves and ensembles, against linear regression and against identities.

use super::{found, near, number, numbers};

/// A linear student of a linear teacher: least squares is off by σ² d/2(n - d - 1) in the mean, whose slope the fit must find.
#[test]
#[ignore = "long: tests/run"]
fn a_learning_curve_has_the_exponent_of_linear_regression() {
    const D: f64 = 4.0;
    let sizes = [16.0, 32.0, 64.0, 128.0, 256.0];
    let value = found(
        "import \"learning_curve\" as curve;
         let net = model::mlp(#{ layers: [4, 1], output: \"identity\", bias: false });
         let pose = |n, seed| target(net, dataset::teacher(net, #{ train: n, test: 100, noise: 0.3, seed: 100 * seed + n }), #{ loss: \"squared_error\", energy: \"sum\" });
         let f = curve::measure(pose, sampler::hmc(#{ leapfrog: 10 }), #{
             sizes: [16, 32, 64, 128, 256], sets: 12, of: \"generalisation_error\", temperature: 0.18, chains: 2, steps: 200, every: 1 });
         #{ score: f.score, mcse: f.mcse, exponent: f.exponent, error: f.exponent_error, chi2: f.chi2, degrees: f.degrees, rhat: f.worst_rhat, text: f.text, figure: f.figure.to_string() }",
    );
    let exact: Vec<f64> = sizes
        .iter()
        .map(|n| 0.09 * D / (2.0 * (n - D - 1.0)))
        .collect();
    let (score, mcse) = (numbers(&value["score"]), numbers(&value["mcse"]));
    for k in 0..sizes.len() {
        // The Monte Carlo error of 200 draws adds less than a hundredth.
        near(&format!("n = {}", sizes[k]), (score[k], mcse[k]), exact[k]);
    }
    // The straight line through the exact curve, all points counting the same.
    let x: Vec<f64> = sizes.iter().map(|n| f64::ln(*n)).collect();
    let y: Vec<f64> = exact.iter().map(|e| e.ln()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let top: f64 = x.iter().zip(&y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = top / x.iter().map(|x| (x - mx).powi(2)).sum::<f64>();
    near(
        "exponent",
        (number(&value, "exponent"), number(&value, "error")),
        -slope,
    );
    assert!(
        number(&value, "error") < 0.15 && number(&value, "chi2") < 20.0,
        "{value}"
    );
}

#[test]
fn an_ensemble_obeys_jensen_and_is_its_draw_where_all_are_equal() {
    let value = found(
        "import \"ensemble\" as ensemble;
         let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 20 }), #{ energy: \"sum\", prior: prior::gaussian(1.0) });
         let best = train(t, optimizer::adam(#{ epochs: 20 }));
         let run = sample(t, sampler::hmc(), #{ start: best, steps: 200, chains: 4, every: 1, predict: \"test\", observe: [observable::loss(\"test\"), observable::error(\"test\")] });
         let f = ensemble::evaluate(t, run, #{ optimum: best });
         // Steps of nothing: every draw is the optimum.
         let still = sample(t, sampler::sgld(#{ step: 1e-30, gradient: gradient::full() }), #{ start: best, steps: 40, chains: 3, every: 1, predict: \"test\" });
         let g = ensemble::evaluate(t, still, #{ optimum: best.at(0) });
         let draws = run.draws(\"loss_test\", 0);
         let s = run.summary();
         let ends = t.prediction(run.params(), \"test\");
         let first = t.prediction(run.at(0), \"test\");
         #{ ends: ends, first: first, singles: [0, 1, 2, 3].map(|c| t.prediction(run.at(c), \"test\").nll), scores: f.scores, gibbs: f.gibbs_loss, gap: f.jensen_gap, draws: f.draws, loss: s.loss_test, error: s.error_test, still: g.scores, still_gap: g.jensen_gap, text: f.text, figure: f.figure.to_string() }",
    );
    let score = |name: &str, of: &str| number(&value, &format!("scores.{name}.{of}"));
    // Jensen, for all draws and for the last of each chain.
    assert!(
        number(&value, "gap") > 0.0 && score("nll", "last") <= score("nll", "single") + 1e-9,
        "{value}"
    );
    assert!(
        (number(&value, "gap") - (number(&value, "gibbs") - score("nll", "ensemble"))).abs()
            < 1e-12
    );
    // The Gibbs loss is the mean of the loss that another observable recorded at the same draws.
    assert!(
        (number(&value, "gibbs") / number(&value, "loss") - 1.0).abs() < 1e-4,
        "{value}"
    );
    assert_eq!(value["draws"], 400);
    let singles = numbers(&value["singles"]);
    assert!((singles.iter().sum::<f64>() / 4.0 - score("nll", "single")).abs() < 1e-9);
    for name in ["error", "nll", "brier", "ece"] {
        assert!(
            (number(&value["ends"], name) - score(name, "last")).abs() < 1e-9,
            "{name}"
        );
    }
    assert!(
        (number(&value["first"], "nll") - singles[0]).abs() < 1e-12 && singles[0] != singles[1]
    );
    // A Brier score is convex too.
    assert!(score("brier", "last") <= score("brier", "single") + 1e-9);
    for name in ["error", "nll", "brier", "ece"] {
        let (optimum, still) = (score(name, "optimum"), &value["still"][name]);
        for of in ["ensemble", "last", "single", "optimum"] {
            let other = still[of].as_f64().unwrap();
            assert!(
                (other - optimum).abs() < 1e-5,
                "{name} {of}: {other}, {optimum}"
            );
        }
    }
    assert!(number(&value, "still_gap").abs() < 1e-6);
    // Of a single draw the error is the share that the observable counted, on average over chains and draws.
    assert!(
        (score("error", "single") - number(&value, "error")).abs() < 0.05,
        "{value}"
    );
}

#[test]
fn regressions_have_ensembles_too() {
    let value = found(
        "import \"ensemble\" as ensemble;
         let net = model::mlp(#{ layers: [3, 1], output: \"identity\", bias: false });
         let t = target(net, dataset::teacher(net, #{ train: 50, test: 100, noise: 0.3 }), #{ loss: \"squared_error\", energy: \"sum\" });
         let run = sample(t, sampler::hmc(), #{ steps: 200, chains: 4, every: 1, predict: \"test\", temperature: 0.18 });
         let f = ensemble::evaluate(t, run);
         #{ scores: f.scores, gap: f.jensen_gap }",
    );
    let of = |of: &str| number(&value, &format!("scores.squared_error.{of}"));
    // A square is convex.
    assert!(
        of("last") <= of("single") && number(&value, "gap") > 0.0,
        "{value}"
    );
    assert!(
        value["scores"]["generalisation_error"]["ensemble"]
            .as_f64()
            .is_some()
    );
}
