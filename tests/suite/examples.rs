//! Losses of single examples: influence, susceptibilities, singular fluctuation and WBIC, against a Gaussian posterior integrated by hand.
//!
//! Null hypothesis of every comparison: the estimate has the mean computed here. The bound is four standard errors, from the spread over
//! seeds or as reported.

use super::support::evaluate;
use ergodic::options::{Options, Value as Given};
use ergodic::simulation::llc::problems;

fn numbers(source: &str) -> Vec<f64> {
    let value = evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

const ROWS: usize = 500;
const OBSERVED: usize = 6;
const OUTPUTS: usize = 3;

/// Linear regression of three outputs on one input: under nβ L + ½|w-w0|² the weights are independent and normal.
struct Regression {
    x: Vec<f64>,
    y: Vec<f64>,
    /// Means and variances of the weights.
    posterior: Vec<(f64, f64)>,
    nbeta: f64,
}

impl Regression {
    fn new() -> Self {
        let widths = Given::List(vec![Given::Int(1), Given::Int(OUTPUTS as i64)]);
        let given = [
            ("widths", widths),
            ("rank", Given::Int(1)),
            ("n", Given::Int(ROWS as i64)),
            ("seed", Given::Int(3)),
        ];
        let given = given.map(|(k, v)| (k.to_string(), v)).to_vec();
        let o = Options::check("llc_problem", problems::OPTIONS, given).unwrap();
        let posed = problems::pose(&o, 1).unwrap();
        let split = &posed.data.train;
        let (mut x, mut y) = (vec![0f32; ROWS], vec![0f32; ROWS * OUTPUTS]);
        split.copy(0..ROWS, &mut x);
        split.copy_values(0..ROWS, &mut y);
        let doubles = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<_>>();
        let (x, y) = (doubles(x), doubles(y));
        let nbeta = ROWS as f64 / (ROWS as f64).ln();
        let xx = x.iter().map(|x| x * x).sum::<f64>() / ROWS as f64;
        let posterior = (0..OUTPUTS).map(|j| {
            let xy = x.iter().enumerate().map(|(i, x)| x * y[i * OUTPUTS + j]);
            let xy = xy.sum::<f64>() / ROWS as f64;
            let precision = 2.0 * nbeta * xx + 1.0;
            let w0 = posed.start.vectors[0][j] as f64;
            ((2.0 * nbeta * xy + w0) / precision, 1.0 / precision)
        });
        Self {
            posterior: posterior.collect(),
            x,
            y,
            nbeta,
        }
    }

    /// ℓ_i = Σ_j (a - b z_j)² with z standard normal: a and b of example i and output j.
    fn line(&self, i: usize, j: usize) -> (f64, f64) {
        let (mean, variance) = self.posterior[j];
        let a = self.y[i * OUTPUTS + j] - mean * self.x[i];
        (a, variance.sqrt() * self.x[i])
    }

    fn mean(&self, i: usize) -> f64 {
        (0..OUTPUTS)
            .map(|j| self.line(i, j))
            .map(|(a, b)| a * a + b * b)
            .sum()
    }

    /// Covariance of the loss over all rows and that of one.
    fn with_all(&self, i: usize) -> f64 {
        (0..ROWS).map(|k| self.covariance(i, k)).sum::<f64>() / ROWS as f64
    }

    fn covariance(&self, i: usize, k: usize) -> f64 {
        let of = |j| {
            let ((a, b), (c, d)) = (self.line(i, j), self.line(k, j));
            4.0 * a * b * c * d + 2.0 * (b * d).powi(2)
        };
        (0..OUTPUTS).map(of).sum()
    }
}

fn sample(rows: usize, seeds: usize, steps: usize, result: &str) -> Vec<f64> {
    numbers(&format!(
        "let p = llc_problem(#{{ widths: [1, {OUTPUTS}], rank: 1, n: {ROWS}, seed: 3 }});
         let out = [];
         for seed in 0..{seeds} {{
             let e = llc(p.target, sampler::hmc(#{{ leapfrog: 5 }}), #{{ start: p.start, seed: seed, steps: {steps}, burn_in: 200, observe: [observable::example_losses(#{{ rows: {rows} }})] }});
             {result}
         }}
         out"
    ))
}

#[test]
#[ignore = "long: tests/run"]
fn influence_and_susceptibilities_are_covariances_of_the_posterior() {
    const SEEDS: usize = 24;
    let r = Regression::new();
    let found = sample(
        OBSERVED,
        SEEDS,
        1200,
        "let i = e.influence(); let s = e.susceptibilities(); let c = e.correlations();
         for k in 0..c.estimate.len() { c.estimate[k] = c.estimate[k].extract(0, k); c.mcse[k] = c.mcse[k].extract(0, k); }
         for row in i.estimate { out += row; } out += s.estimate; for row in c.estimate { out += row; } out += s.correlation;
         for row in i.mcse { out += row; } out += s.mcse; for row in c.mcse { out += row; } out += s.correlation_mcse;",
    );
    // The diagonal of the correlations has no error.
    let width = OBSERVED * OBSERVED + OBSERVED * (OBSERVED - 1) / 2 + 2 * OBSERVED;
    assert_eq!(found.len(), SEEDS * 2 * width);
    let (found, errors): (Vec<&[f64]>, Vec<&[f64]>) = found
        .chunks_exact(2 * width)
        .map(|of_seed| of_seed.split_at(width))
        .unzip();
    let found = found.concat();
    // Spread evenly over all rows.
    let rows: Vec<usize> = (0..OBSERVED).map(|k| k * ROWS / OBSERVED).collect();
    let beta = r.nbeta / ROWS as f64;
    let pairs = rows.iter().flat_map(|i| rows.iter().map(move |k| (*i, *k)));
    let mut expected: Vec<f64> = pairs.map(|(i, k)| -beta * r.covariance(i, k)).collect();
    let of_all = (0..ROWS).map(|i| r.with_all(i)).sum::<f64>() / ROWS as f64;
    expected.extend(rows.iter().map(|i| of_all - r.with_all(*i)));
    let size = |i: usize| r.covariance(i, i).sqrt();
    let below = rows.iter().enumerate();
    let below = below.flat_map(|(n, i)| rows[..n].iter().map(move |k| (*i, *k)));
    expected.extend(below.map(|(i, k)| r.covariance(i, k) / (size(i) * size(k))));
    let apart = |i: usize| (size(i).powi(2) - 2.0 * r.with_all(i) + of_all).sqrt();
    let susceptible = |i: &usize| (of_all - r.with_all(*i)) / (of_all.sqrt() * apart(*i));
    expected.extend(rows.iter().map(susceptible));
    // Error bars: 95 % of the numbers are within 1.96 of theirs, in the mean over seeds, which are independent of each other.
    let covered = |(of_seed, errors): (&[f64], &&[f64])| -> f64 {
        let off = of_seed.iter().zip(&expected).map(|(x, e)| (x - e).abs());
        let within = off
            .zip(*errors)
            .filter(|(off, error)| *off < 1.96 * **error);
        within.count() as f64 / width as f64
    };
    let shares: Vec<f64> = found
        .chunks_exact(width)
        .zip(&errors)
        .map(covered)
        .collect();
    let share = shares.iter().sum::<f64>() / SEEDS as f64;
    let scatter = shares.iter().map(|x| (x - share).powi(2)).sum::<f64>();
    let error = (scatter / (SEEDS * (SEEDS - 1)) as f64).sqrt();
    assert!(
        (share - 0.95).abs() < 4.0 * error && error < 0.04,
        "{share} ± {error} of the error bars cover"
    );
    for (k, expected) in expected.into_iter().enumerate() {
        let of_seeds: Vec<f64> = found.iter().skip(k).step_by(width).copied().collect();
        let mean = of_seeds.iter().sum::<f64>() / SEEDS as f64;
        let squares = of_seeds.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let error = (squares / (SEEDS * (SEEDS - 1)) as f64).sqrt();
        assert!(
            (mean - expected).abs() < 4.0 * error,
            "{k}: {mean} ± {error}, expected {expected}"
        );
    }
}

#[test]
#[ignore = "long: tests/run"]
fn singular_fluctuation_and_wbic_are_those_of_the_posterior() {
    let r = Regression::new();
    let found = sample(
        ROWS,
        1,
        12_000,
        "let v = e.singular_fluctuation(); let w = e.wbic(); out += [v.estimate, v.mcse, w.estimate, w.mcse];",
    );
    let variances = (0..ROWS).map(|i| r.covariance(i, i)).sum::<f64>();
    let fluctuation = 0.5 * r.nbeta / ROWS as f64 * variances;
    let wbic = (0..ROWS).map(|i| r.mean(i)).sum::<f64>();
    let some = sample(
        50,
        1,
        6000,
        "let v = e.singular_fluctuation(); out += [v.estimate, v.mcse];",
    );
    for (name, most, found, expected) in [
        ("ν", 0.03, &found[..2], fluctuation),
        ("WBIC", 0.03, &found[2..], wbic),
        // The choice of the rows is most of this error.
        ("ν of a tenth of the rows", 0.3, &some[..], fluctuation),
    ] {
        let (value, error) = (found[0], found[1]);
        assert!(
            (value - expected).abs() < 4.0 * error && error < most * expected,
            "{name}: {value} ± {error}, expected {expected}"
        );
    }
}

/// Losses of single examples add up to the loss, which other code computes, for every kind of loss and target, and under restriction.
#[test]
fn losses_of_examples_have_the_loss_as_their_mean() {
    let digits = "let d = dataset::digits(); let rows = d.train_rows;";
    for (name, setting) in [
        ("classes", format!("{digits} let u = target(model::mlp(#{{ layers: [d.dim, 8, 10] }}), d);")),
        ("classes, squared", format!("{digits} let u = target(model::mlp(#{{ layers: [d.dim, 8, 10] }}), d, #{{ loss: \"squared_error\" }});")),
        ("values", "let p = llc_problem(#{ widths: [3, 4, 2], n: 40 }); let u = p.target; let rows = 40;".into()),
        ("sequences", "let d = dataset::induction(#{ vocabulary: 8, context: 6, train: 20, test: 0 }); let rows = 20; let u = target(model::transformer(#{ vocabulary: 8, context: 6, layers: 1, width: 8, heads: 2 }), d);".into()),
    ] {
        for each in ["row", "position"] {
            let source = format!(
                "{setting}
                 let r = sample(u, sampler::langevin(#{{ dt: 1e-3 }}), #{{ steps: 3, burn_in: 0, every: 1, chains: 1, observe: [observable::loss(), observable::example_losses(#{{ rows: rows, each: \"{each}\" }})] }});
                 let means = r.trace(\"example_losses\", 0).map(|l| l.reduce(|a, b| a + b, 0.0) / l.len);
                 means + r.trace(\"loss\", 0)"
            );
            let found = numbers(&source);
            let (means, losses) = found.split_at(found.len() / 2);
            assert_eq!(means.len(), 3, "{name}");
            for (a, b) in means.iter().zip(losses) {
                assert!((a - b).abs() < 1e-6 * b.abs(), "{name}, each {each}: {a} {b}");
            }
        }
    }
}

/// Those of all examples of a split at a point: a number for each position of a row, as each token of a text.
#[test]
fn losses_at_a_point_are_those_of_its_examples() {
    let found = evaluate(
        "let net = model::pretrained(\"tests/data/pretrained\");
         let d = dataset::text(\"LICENSE-APACHE\", #{ tokenizer: \"tests/data/pretrained\", context: 32 });
         let u = target(net, d);
         let w = net.weights();
         let digits = dataset::digits();
         let v = target(model::mlp(#{ layers: [64, 10] }), digits);
         let zeros = [];
         zeros.pad(650, 0.0);
         let r = sample(u, sampler::sgld(#{ step: 1e-20, batch: 4 }), #{ start: w, steps: 1, burn_in: 0, every: 1, chains: 1, observe: [observable::example_losses(#{ rows: d.test_rows, split: \"test\" })] });
         #{ shapes: [u.losses(w, \"test\").shape(), v.losses(parameters(zeros), \"test\").shape()],
            rows: u.losses(w, \"test\").mean(1).to_array(), observed: r.trace(\"example_losses_test\", 0)[0],
            mean: u.losses(w, \"train\").mean(), loss: u.energies(w).loss, test_rows: [d.test_rows, digits.test_rows] }",
    )
    .unwrap();
    let rows = &found["test_rows"];
    assert_eq!(
        found["shapes"],
        serde_json::json!([[rows[0], 32], [rows[1]]])
    );
    let number = |v: &serde_json::Value| v.as_f64().unwrap();
    assert!((number(&found["mean"]) / number(&found["loss"]) - 1.0).abs() < 1e-6);
    let all = |name: &str| found[name].as_array().unwrap().iter();
    for (a, b) in all("rows").zip(all("observed")) {
        assert!((number(a) - number(b)).abs() < 1e-5, "{a} {b}");
    }
}

/// Without the loss over all examples, L is the mean over the other observed ones.
#[test]
fn an_example_is_not_held_against_itself() {
    let found = evaluate(
        "let p = llc_problem(#{ widths: [1, 3], n: 100 });
         let e = llc(p.target, sampler::sgld(#{ step: 1e-5, batch: 10 }), #{ start: p.start, chains: 2, steps: 200, observe: [observable::example_losses(#{ rows: 4 })] });
         #{ chi: e.susceptibilities().estimate, draws: e.run.draws(\"example_losses\", 0) }",
    )
    .unwrap();
    let chi: Vec<f64> = serde_json::from_value(found["chi"].clone()).unwrap();
    let chains: Vec<Vec<Vec<f64>>> = serde_json::from_value(found["draws"].clone()).unwrap();
    let draws = chains.concat();
    let mean =
        |f: &dyn Fn(&[f64]) -> f64| draws.iter().map(|d| f(d)).sum::<f64>() / draws.len() as f64;
    for (i, chi) in chi.into_iter().enumerate() {
        let others = |d: &[f64]| (d.iter().sum::<f64>() - d[i]) / 3.0;
        let (l, x) = (mean(&others), mean(&|d| d[i] - others(d)));
        let expected = -mean(&|d| (others(d) - l) * (d[i] - others(d) - x));
        assert!(
            (chi - expected).abs() < 1e-9 * expected.abs(),
            "{i}: {chi} {expected}"
        );
    }
}

/// Correlations are influence in other units: symmetric, within [-1, 1], and 1 with itself, without an error.
#[test]
fn correlations_are_a_matrix_of_correlations() {
    let found = evaluate(
        "let p = llc_problem(#{ widths: [1, 3], n: 100 });
         let e = llc(p.target, sampler::hmc(#{ leapfrog: 5 }), #{ start: p.start, chains: 2, steps: 400, observe: [observable::example_losses(#{ rows: 5 })] });
         let c = e.correlations(); let i = e.influence(); let s = e.susceptibilities();
         #{ rho: c.estimate, mcse: c.mcse, influence: i.estimate, s: s.correlation, text: plot::correlations(e).to_string() }",
    )
    .unwrap();
    let matrix =
        |name: &str| -> Vec<Vec<f64>> { serde_json::from_value(found[name].clone()).unwrap() };
    let (rho, mcse, influence) = (matrix("rho"), matrix("mcse"), matrix("influence"));
    for i in 0..5 {
        for k in 0..5 {
            let scale = (influence[i][i] * influence[k][k]).sqrt();
            assert!((rho[i][k] + influence[i][k] / scale).abs() < 1e-9);
            assert!(rho[i][k].abs() <= 1.0 && rho[i][k] == rho[k][i]);
            let sure = mcse[i][k] < 1e-9;
            assert_eq!(sure, i == k, "{i} {k}: {}", mcse[i][k]);
        }
    }
    let s: Vec<f64> = serde_json::from_value(found["s"].clone()).unwrap();
    assert!(s.iter().all(|x| x.abs() <= 1.0), "{s:?}");
}

/// A row is its positions: what they do to those of another row is what it does to that row.
#[test]
fn positions_add_up_to_rows() {
    let influence = |each: &str| -> Vec<Vec<f64>> {
        let source = format!(
            "let d = dataset::induction(#{{ vocabulary: 5, context: 4, train: 12, test: 0 }});
             let u = target(model::transformer(#{{ vocabulary: 5, context: 4, layers: 1, width: 8, heads: 2 }}), d);
             let t = train(u, optimizer::adamw(#{{ epochs: 1, batch: 4 }}), #{{ seed: 1 }});
             llc(u, sampler::sgld(#{{ step: 1e-3, batch: 4 }}), #{{ start: t.at(0), seed: 1, steps: 100, observe: [observable::example_losses(#{{ rows: 3, each: \"{each}\" }})] }}).influence().estimate"
        );
        serde_json::from_value(evaluate(&source).unwrap()).unwrap()
    };
    let (rows, positions) = (influence("row"), influence("position"));
    for i in 0..3 {
        for j in 0..3 {
            let onto = |q: usize| (0..4).map(|p| positions[4 * i + p][4 * j + q]).sum::<f64>();
            let mean = (0..4).map(onto).sum::<f64>() / 4.0;
            assert!(
                (mean - rows[i][j]).abs() < 1e-9 * rows[i][i].abs(),
                "{i} {j}"
            );
        }
    }
}

/// Both splits at once, and the loss over all besides; what a row holds can be seen.
#[test]
fn splits_have_names_of_their_own_and_rows_can_be_seen() {
    let found = evaluate(
        "let d = dataset::induction(#{ vocabulary: 4, context: 4, train: 20, test: 10 });
         let u = target(model::transformer(#{ vocabulary: 4, context: 4, layers: 1, width: 4, heads: 1 }), d);
         let t = train(u, optimizer::adamw(#{ epochs: 1 }));
         let o = #{ start: t.at(0), steps: 40, chains: 1 };
         o.observe = [observable::example_losses(#{ rows: 3 }), observable::example_losses(#{ rows: 2, split: \"test\" }), observable::cost()];
         let e = llc(u, sampler::hmc(), o);
         let row = d.row(\"train\", 19);
         [e.influence().estimate.len(), e.influence(\"test\").mcse.len(), row.inputs[1] - row.targets[0], row.inputs.len()]",
    )
    .unwrap();
    assert_eq!(found, serde_json::json!([3, 2, 0.0, 4]));
    let text = evaluate(
        "let d = dataset::text(\"README.md\", #{ context: 9, test: 0 }); [d.row(\"train\", 0).text, d.row(\"train\", 0).targets.len()]",
    )
    .unwrap();
    assert_eq!(text, serde_json::json!(["# ergodic", 9]));
    let none = evaluate("dataset::digits().row(\"train\", -1)")
        .unwrap_err()
        .to_string();
    assert!(none.contains("none with index -1"), "{none}");
}

#[test]
fn what_was_not_observed_is_said() {
    let problem =
        "let p = llc_problem(#{ widths: [1, 3], n: 100 }); let o = #{ start: p.start, steps: 10 };";
    let run = "llc(p.target, sampler::hmc(), o)";
    for (source, said) in [
        (format!("{problem} {run}.influence()"), "observe: [observable::example_losses(#{ split: \"train\" })]"),
        (
            format!("{problem} o.observe = [observable::example_losses(#{{ rows: 1 }})]; llc(p.target, sampler::sgld(#{{ step: 1e-6, batch: 5 }}), o).susceptibilities()"),
            "observe observable::cost() too",
        ),
        (
            "let d = dataset::induction(#{ vocabulary: 4, context: 4, train: 20, test: 0 }); let u = target(model::transformer(#{ vocabulary: 4, context: 4, width: 4, heads: 1, layers: 1 }), d); let t = train(u, optimizer::adamw(#{ epochs: 1 })); llc(u, sampler::sgld(#{ step: 1e-6, batch: 5 }), #{ start: t.at(0), steps: 20 }).wbic()".into(),
            "mean over its positions",
        ),
        (
            format!("{problem} o.observe = [observable::example_losses(#{{ each: \"position\", rows: 5 }})]; {run}.singular_fluctuation()"),
            "losses of rows, not of positions",
        ),
        (format!("{problem} o.observe = [observable::example_losses(#{{ rows: 101 }})]; {run}"), "has 100 rows, not 101"),
        (format!("{problem} o.observe = [observable::example_losses(#{{ split: \"test\" }})]; {run}"), "no split \"test\""),
        (format!("{problem} o.nbeta = 1.0; {run}.wbic()"), "β = 1/ln n"),
        (
            "let p = llc_problem(#{ widths: [2, 3], n: 1000, data: \"moments\" }); llc(p.target, sampler::hmc(), #{ start: p.start, steps: 10 }).wbic()".into(),
            "up to a constant",
        ),
        (
            "let p = llc_problem(#{ widths: [2, 3], n: 1000, data: \"moments\" }); llc(p.target, sampler::hmc(), #{ start: p.start, steps: 10, observe: [observable::example_losses(#{ rows: 1 })] })".into(),
            "no single examples",
        ),
        (
            "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 10, observe: [observable::example_losses()] })".into(),
            "need a network with data",
        ),
    ] {
        let found = evaluate(&source).unwrap_err().to_string();
        assert!(found.contains(said), "{source}\n{found}");
    }
}
