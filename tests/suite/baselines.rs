//! What a posterior is compared with: Laplace approximations and their Gauss-Newton matrices, SWAG, ensembles, against what is known exactly.
//!
//! Null hypothesis of every comparison of draws: their means and covariances are those computed here. Bound: four standard errors, which follow
//! from the number of draws and are at most a twentieth of a standard deviation, or of a variance.

use super::loo::{posterior, regression};
use super::support::evaluate;
use ergodic::model::loss::Loss;
use ergodic::prelude::*;
use ergodic::target::network::Network;
use ergodic::target::network::gauss_newton::{Of, Structure};
use serde_json::Value;

fn found(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("{value}"));
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

/// Draws have this mean and this covariance, both within four standard errors.
fn have_moments(name: &str, draws: &[Vec<f64>], mean: &[f64], covariance: &[Vec<f64>]) {
    let n = draws.len() as f64;
    assert!((2.0 / n).sqrt() < 0.05, "too few draws to tell");
    for i in 0..mean.len() {
        let off = draws.iter().map(|d| d[i] - mean[i]).sum::<f64>() / n;
        let error = (covariance[i][i] / n).sqrt();
        assert!(
            off.abs() < 4.0 * error,
            "{name}, mean of {i}: off by {off} ± {error}"
        );
        for j in 0..=i {
            let product = |d: &Vec<f64>| (d[i] - mean[i]) * (d[j] - mean[j]);
            let got = draws.iter().map(product).sum::<f64>() / n;
            let want = covariance[i][j];
            // The variance of a product of two Gaussian numbers.
            let error = ((want * want + covariance[i][i] * covariance[j][j]) / n).sqrt();
            assert!(
                (got - want).abs() < 4.0 * error,
                "{name}, covariance of {i} and {j}: {got}, not {want} ± {error}"
            );
        }
    }
}

/// A regression with three weights, as a script.
fn of_regression(body: &str) -> Value {
    let (x, y) = regression();
    found(&format!(
        "import \"baselines\" as baselines;
         let t = target(model::mlp(#{{ layers: [3, 1], output: \"identity\", bias: false }}), dataset::arrays({x:?}, {y:?}),
             #{{ loss: \"squared_error\", energy: \"sum\", prior: prior::gaussian(1.0) }});
         let vectors = |p| {{ let out = []; for i in 0..p.len() {{ out.push(p.vector(i).to_array()); }} out }};
         let start = parameters([0.1, 0.2, 0.3]);
         {body}"
    ))
}

/// ln of ∫ exp(-E) p(w) dw for the regression: y is Gaussian of covariance ½ + x·x'.
fn ln_evidence() -> f64 {
    let (x, y) = regression();
    let n = y.len();
    // Cholesky, row by row, and the solution of L z = y along with it.
    let mut l = vec![vec![0.0; n]; n];
    let (mut ln_det, mut square, mut z) = (0.0, 0.0, vec![0.0; n]);
    for i in 0..n {
        for j in 0..=i {
            let k: f64 = (0..3).map(|c| x[i][c] * x[j][c]).sum();
            let k = k + if i == j { 0.5 } else { 0.0 };
            let rest: f64 = (0..j).map(|c| l[i][c] * l[j][c]).sum();
            l[i][j] = if i == j {
                (k - rest).sqrt()
            } else {
                (k - rest) / l[j][j]
            };
        }
        let rest: f64 = (0..i).map(|c| l[i][c] * z[c]).sum();
        z[i] = (y[i] - rest) / l[i][i];
        ln_det += 2.0 * l[i][i].ln();
        square += z[i] * z[i];
    }
    // exp(-E) lacks the norm of its Gaussian, π^(n/2).
    -0.5 * (square + ln_det + n as f64 * std::f64::consts::TAU.ln())
        + 0.5 * n as f64 * std::f64::consts::PI.ln()
}

#[test]
fn laplace_of_a_linear_regression_is_the_posterior() {
    let (x, y) = regression();
    let (mean, covariance) = posterior(&x, &y);
    let covariance: Vec<Vec<f64>> = covariance.iter().map(|row| row.to_vec()).collect();
    let value = of_regression(
        "let out = #{};
         for s in [\"full\", \"kronecker\", \"last_layer\", \"diagonal\"] {
             let l = laplace(t, start, #{ structure: s });
             out[s] = #{ draws: vectors.call(l.draws(2000, 7)), ln_z: l.ln_z, mode: l.params().vector(0).to_array(), some: vectors.call(l.draws(3, 7)), other: vectors.call(l.draws(3, 8)) };
         }
         out",
    );
    for name in ["full", "kronecker", "last_layer"] {
        let of = &value[name];
        let mode = numbers(&of["mode"]);
        for i in 0..3 {
            assert!(
                (mode[i] - mean[i]).abs() < 0.01 * covariance[i][i].sqrt(),
                "{name}: {mode:?}, {mean:?}"
            );
        }
        have_moments(name, &rows(&of["draws"]), &mean, &covariance);
        // The first draws of a seed are the first of any number of draws; other seeds have others.
        assert_eq!(rows(&of["some"])[..], rows(&of["draws"])[..3]);
        assert_ne!(of["some"], of["other"]);
    }
    for name in ["full", "kronecker"] {
        let ln_z = value[name]["ln_z"].as_f64().unwrap();
        let exact = ln_evidence();
        assert!((ln_z - exact).abs() < 1e-3, "{name}: {ln_z}, exact {exact}");
    }
    assert!(
        value["last_layer"]["ln_z"].is_null(),
        "the others are fixed"
    );
    // The diagonal of the precision, not of the covariance.
    let diagonal: Vec<Vec<f64>> = (0..3)
        .map(|i| {
            let precision = 1.0 + 2.0 * x.iter().map(|x| x[i] * x[i]).sum::<f64>();
            (0..3)
                .map(|j| if i == j { 1.0 / precision } else { 0.0 })
                .collect()
        })
        .collect();
    have_moments(
        "diagonal",
        &rows(&value["diagonal"]["draws"]),
        &mean,
        &diagonal,
    );
}

/// Two outputs, biases, temperatures, and a prior that differs between weights and biases: still Gaussian, so the two agree with each other and with the Hessian.
#[test]
fn kronecker_factors_of_one_layer_are_exact() {
    let value = found(
        "let net = model::mlp(#{ layers: [4, 2], output: \"identity\" });
         let t = target(net, dataset::teacher(net, #{ train: 30, test: 10, noise: 0.3 }), #{ loss: \"squared_error\", energy: \"sum\", prior: #{ w1: prior::normal(0, 0.7), b1: prior::normal(0, 3) } });
         let of = |s| laplace(t, parameters(tensor::zeros([10])), #{ structure: s, temperature: 0.3 }).ln_z;
         [of.call(\"hessian\"), of.call(\"full\"), of.call(\"kronecker\"), of.call(\"diagonal\")]",
    );
    let ln_z = numbers(&value);
    assert!((ln_z[0] - ln_z[1]).abs() < 2e-3, "{ln_z:?}");
    assert!((ln_z[1] - ln_z[2]).abs() < 1e-5, "{ln_z:?}");
    assert!((ln_z[1] - ln_z[3]).abs() > 1e-2, "{ln_z:?}");
}

/// The Gauss-Newton matrix of softmax regression is its Hessian.
#[test]
fn gauss_newton_of_softmax_regression_is_the_hessian() {
    let value = found(
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 4 }), #{ energy: \"sum\", prior: prior::gaussian(1.0) });
         let start = train(t, optimizer::adam(#{ lr: 1e-2, epochs: 100 }));
         let of = |s| laplace(t, start, #{ structure: s, method: \"exact\" });
         let h = of.call(\"hessian\"); let g = of.call(\"full\"); let last = of.call(\"last_layer\");
         [h.ln_det, g.ln_det, last.ln_det, h.largest, g.largest]",
    );
    let x = numbers(&value);
    assert!((x[0] - x[1]).abs() < 2e-3 * x[1].abs(), "{x:?}");
    assert!(
        (x[1] - x[2]).abs() < 1e-9 * x[1].abs(),
        "one layer is the last: {x:?}"
    );
    assert!((x[3] / x[4] - 1.0).abs() < 1e-3, "{x:?}");
}

/// Central differences of the outputs of all rows, row-major [rows · outputs, N].
fn jacobian(network: &Network, w: &[f32]) -> Vec<Vec<f64>> {
    let h = 2f32.powi(-7);
    let outputs = |i: usize, step: f32| {
        let mut moved = w.to_vec();
        moved[i] += step;
        network.predict(&moved, &network.dataset().train).unwrap()
    };
    let column = |i: usize| {
        let (up, down) = (outputs(i, h), outputs(i, -h));
        let each = up.iter().zip(&down);
        each.map(|(u, d)| (f64::from(*u) - f64::from(*d)) / (2.0 * f64::from(h)))
            .collect::<Vec<_>>()
    };
    let columns: Vec<_> = (0..w.len()).map(column).collect();
    (0..columns[0].len())
        .map(|k| columns.iter().map(|c| c[k]).collect())
        .collect()
}

/// Σ Jᵀ Λ J of all rows, from the outputs and their derivatives.
fn by_differences(network: &Network, w: &[f32]) -> Vec<Vec<f64>> {
    let (j, n) = (jacobian(network, w), w.len());
    let outputs = network.predict(w, &network.dataset().train).unwrap();
    let k = network.model().outputs();
    let mut out = vec![vec![0.0; n]; n];
    for (row, z) in outputs.chunks(k).enumerate() {
        let e: Vec<f64> = z.iter().map(|z| f64::from(*z).exp()).collect();
        let total: f64 = e.iter().sum();
        for a in 0..k {
            for b in 0..k {
                let unit = f64::from(u8::from(a == b));
                let curvature = match network.loss() {
                    Loss::SquaredError => 2.0 * unit,
                    _ => e[a] / total * (unit - e[b] / total),
                };
                let (left, right) = (&j[row * k + a], &j[row * k + b]);
                for (out, l) in out.iter_mut().zip(left) {
                    let l = curvature * l;
                    out.iter_mut().zip(right).for_each(|(o, r)| *o += l * r);
                }
            }
        }
    }
    out
}

#[test]
fn gauss_newton_matrices_are_those_of_differences() {
    let data = dataset::Digits::new().per_class(1).build().unwrap();
    let net = model::Mlp::new([64, 3, 10])
        .activation("tanh")
        .output("tanh");
    let net = net.build().unwrap();
    for loss in [Loss::CrossEntropy, Loss::SquaredError] {
        let network = Network::new(net.clone(), data.clone(), Some(loss)).unwrap();
        let w = net.initialise(ergodic::rng::Stream::new(3, Purpose::Initialise, 0, 0));
        let want = by_differences(&network, &w);
        let size = (0..w.len()).map(|i| want[i][i]).fold(0.0, f64::max);
        let close = |got: f64, want: f64| (got - want).abs() < 2e-3 * size;
        let of = |structure| network.gauss_newton(&w, structure).unwrap();
        for structure in [Structure::Full, Structure::LastLayer] {
            let part = &of(structure)[0];
            let n = part.places.len();
            assert_eq!(
                n,
                if structure == Structure::Full {
                    w.len()
                } else {
                    40
                }
            );
            let Of::Full(matrix) = &part.of else {
                panic!("not the whole")
            };
            for (a, i) in part.places.iter().enumerate() {
                for (b, j) in part.places.iter().enumerate() {
                    assert!(close(matrix[a * n + b], want[*i][*j]), "{i} {j}");
                }
            }
        }
        for part in of(Structure::Diagonal) {
            let Of::Diagonal(each) = &part.of else {
                panic!("not a diagonal")
            };
            for (i, x) in part.places.iter().zip(each) {
                assert!(close(*x, want[*i][*i]), "{i}: {x}");
            }
        }
    }
}

/// Of one example the block of a layer is a product; a weight of 2 is the same row twice.
#[test]
fn kronecker_factors_of_one_example_and_of_weights() {
    let arrays = |x: Vec<f64>, y: Vec<f64>| dataset::Arrays::new(x, y).build().unwrap();
    let net = model::Mlp::new([1, 2, 1])
        .activation("tanh")
        .build()
        .unwrap();
    let w: Vec<f32> = (0..7).map(|i| 0.9 - 0.3 * i as f32).collect();
    let network = |data: Arc<Dataset>| Network::new(net.clone(), data, None).unwrap();
    let one = network(arrays(vec![0.7], vec![0.2]));
    let whole = by_differences(&one, &w);
    for part in one.gauss_newton(&w, Structure::Kronecker).unwrap() {
        let Of::Kronecker(outputs, inputs) = &part.of else {
            panic!("not a product")
        };
        let (n, m) = (
            (outputs.len() as f64).sqrt() as usize,
            (inputs.len() as f64).sqrt() as usize,
        );
        for (a, i) in part.places.iter().enumerate() {
            for (b, j) in part.places.iter().enumerate() {
                let got = outputs[a / m * n + b / m] * inputs[a % m * m + b % m];
                assert!((got - whole[*i][*j]).abs() < 1e-3, "{i} {j}: {got}");
            }
        }
    }
    let twice = arrays(vec![0.7, -0.4, 0.7], vec![0.2, 0.1, 0.2]);
    let weighed = arrays(vec![0.7, -0.4], vec![0.2, 0.1]).weighed(vec![2.0, 1.0]);
    let (twice, weighed) = (network(twice), network(Arc::new(weighed.unwrap())));
    for structure in [Structure::Full, Structure::Kronecker, Structure::Diagonal] {
        let [a, b] = [&twice, &weighed].map(|n| n.gauss_newton(&w, structure).unwrap());
        for (a, b) in a.iter().zip(&b) {
            let numbers = |of: &Of| match of {
                Of::Full(x) | Of::Diagonal(x) => x.clone(),
                Of::Kronecker(x, y) => [&x[..], y].concat(),
            };
            for (a, b) in numbers(&a.of).iter().zip(numbers(&b.of)) {
                assert!((a - b).abs() < 1e-5, "{structure:?}: {a} {b}");
            }
        }
    }
}

#[test]
fn swag_draws_have_the_moments_of_its_iterates() {
    let value = of_regression(
        "let f = baselines::swag(t, start, #{ lr: 0.05, momentum: 0.0, batch: 4, epochs: 24, burn_in: 0.5, rank: 6, draws: 2000 });
         let iterates = []; for e in 13..=24 { iterates.push(f.training.checkpoint(e).vector(0).to_array()); }
         #{ draws: vectors.call(f.parameters), iterates: iterates, count: f.iterates, mean: f.mean.to_array() }",
    );
    let iterates = rows(&value["iterates"]);
    assert_eq!(value["count"], 12);
    let mean_of = |k: usize, i: usize| iterates[..k].iter().map(|w| w[i]).sum::<f64>() / k as f64;
    let mean: Vec<f64> = (0..3).map(|i| mean_of(12, i)).collect();
    for (got, want) in numbers(&value["mean"]).iter().zip(&mean) {
        assert!((got - want).abs() < 1e-9);
    }
    // Half the variances, and half the covariance of the last six deviations from the running mean.
    let covariance: Vec<Vec<f64>> = (0..3)
        .map(|i| {
            let of = |j: usize| {
                let square = iterates.iter().map(|w| w[i] * w[i]).sum::<f64>() / 12.0;
                let own = if i == j {
                    square - mean[i] * mean[i]
                } else {
                    0.0
                };
                let off = |k: usize, i: usize| iterates[k][i] - mean_of(k + 1, i);
                let low_rank: f64 = (6..12).map(|k| off(k, i) * off(k, j)).sum();
                0.5 * (own + low_rank / 5.0)
            };
            (0..3).map(of).collect()
        })
        .collect();
    have_moments("SWAG", &rows(&value["draws"]), &mean, &covariance);
}

#[test]
fn all_baselines_are_in_one_table_scored_alike() {
    let value = found(
        "import \"baselines\" as baselines;
         let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 8 }), #{ energy: \"sum\", prior: prior::gaussian(1.0) });
         let adam = optimizer::adam(#{ lr: 1e-2, epochs: 30 });
         let f = baselines::measure(t, adam, sampler::hmc(), #{
             members: 3, draws: 8, swag: #{ epochs: 8 }, temperatures: [0.1, 1.0], sampling: #{ steps: 120, chains: 2, every: 1 }, name: \"b\" });
         // Trainings of the same seed: fewer of them are the first of more.
         let two = train(t, adam, #{ chains: 2, seed: 5 }); let three = train(t, adam, #{ chains: 3, seed: 5 });
         let member = |p, i| p.vector(i).to_array();
         let ensemble = f.methods[1].parameters;
         #{ names: f.methods.map(|m| m.name), vectors: f.methods.map(|m| m.vectors), nll: f.methods.map(|m| m.nll), nll_se: f.methods.map(|m| m.nll_se), verdicts: f.methods.map(|m| m.verdict),
            rescored: f.methods.filter(|m| \"parameters\" in m).map(|m| t.prediction(m.parameters, \"test\").nll), run: [f.run.prediction(\"test\", 0).nll, f.run.prediction(\"test\", 1).nll], cold: f.cold.nll,
            same: [member.call(two.params(), 0) == member.call(three.params(), 0), member.call(two.params(), 1) == member.call(three.params(), 1), member.call(ensemble, 0) == member.call(ensemble, 1)],
            seconds: f.methods.map(|m| m.seconds), text: f.text, figure: f.figure.to_string(), cold_figure: f.cold.figure.to_string() }",
    );
    let names: Vec<&str> = value["names"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let wanted = [
        "MAP",
        "deep ensemble",
        "SWAG",
        "MAP, polished",
        "Laplace, last_layer",
        "Laplace, kronecker",
        "Laplace, diagonal",
        "posterior, T = 0.1",
        "posterior, T = 1.0",
    ];
    assert_eq!(names, wanted);
    assert_eq!(
        numbers(&value["vectors"])[..7],
        [1.0, 3.0, 8.0, 1.0, 8.0, 8.0, 8.0]
    );
    assert_eq!(value["same"], serde_json::json!([true, true, false]));
    let nll = numbers(&value["nll"]);
    assert_eq!(numbers(&value["rescored"]), nll[..7]);
    assert_eq!(numbers(&value["run"]), nll[7..]);
    assert_eq!(numbers(&value["cold"]), nll[7..]);
    assert!(
        numbers(&value["nll_se"])
            .iter()
            .all(|e| *e > 0.0 && *e < 0.2),
        "{value}"
    );
    assert!(numbers(&value["seconds"]).iter().all(|s| *s > 0.0));
    assert_eq!(value["verdicts"][0], "");
    assert_ne!(value["verdicts"][7], "");
    // Jensen: no ensemble is worse than the mean of its members; ln of 10 is what knowing nothing gives.
    assert!(nll.iter().all(|x| *x < 10f64.ln()), "{nll:?}");
    let text = value["text"].as_str().unwrap();
    for name in wanted {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn what_cannot_be_approximated_is_refused_by_name() {
    let refused = |body: &str| {
        let source = format!(
            "import \"baselines\" as baselines;
             let data = dataset::digits(#{{ per_class: 2 }}); let net = model::mlp(#{{ layers: [64, 10] }});
             let t = target(net, data, #{{ energy: \"sum\", prior: prior::gaussian(1.0) }}); let w = parameters(tensor::zeros([650]));
             {body}"
        );
        evaluate(&source)
            .err()
            .map(|e| e.message)
            .unwrap_or_default()
    };
    let cases = [
        (
            "laplace(t, w, #{ polish: 0 }).draws(2, 1)",
            "take a structure",
        ),
        (
            "laplace(t, w, #{ polish: 0, structure: \"diagonal\" }).draws(0, 1)",
            "1 to 1000000",
        ),
        (
            "laplace(target(potential::gaussian(), #{ prior: prior::gaussian(1) }), parameters(tensor::zeros([10])), #{ structure: \"full\" })",
            "needs a network",
        ),
        (
            "laplace(target(net, data, #{ energy: \"sum\" }), w, #{ polish: 0, structure: \"kronecker\" })",
            "give a prior, or a floor",
        ),
        (
            "laplace(target(net, data, #{ prior: prior::closure(|w| (w.w1.sum() * w.w1.sum()) + w.b1.square().sum()) }), w, #{ polish: 0, structure: \"diagonal\" })",
            "couples parameters",
        ),
        ("baselines::compare(t, [])", "needs methods"),
        (
            "baselines::compare(t, [#{ name: \"a\" }])",
            "needs name and parameters",
        ),
        ("baselines::swag(t, w, #{ epochs: 2 })", "too few"),
    ];
    for (body, says) in cases {
        let message = refused(body);
        assert!(message.contains(says), "{body}: {message}");
    }
}
