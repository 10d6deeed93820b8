//! Draws that are kept: they are the states that were recorded, whoever reads them.

use super::support::{Scratch, ergodic, evaluate, text};

const RUN: &str = r#"
    let data = dataset::digits(#{ per_class: 10 });
    let t = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ prior: prior::l2(10.0) });
    let o = [observable::cost(), observable::error("test"), observable::energy(), observable::gradient_norm2(), observable::example_losses(#{ rows: 5 }),
        observable::named("largest", |s| s.params.slice("w1").abs().max()), observable::named("heat", |s| s.temperature * s.params.norm2() + s.step)];
"#;

fn script(more: &str) -> serde_json::Value {
    evaluate(&format!("{RUN}{more}")).unwrap_or_else(|e| panic!("{e:?}"))
}

/// That observables of the draws are those that were recorded, of chains 0 and 3.
const SAME: &str = r#"
    let seen = observe(run, o);
    let same = true;
    for name in ["cost", "error_test", "energy", "gradient_norm2", "example_losses", "largest", "heat"] {
        for chain in [0, 3] {
            let recorded = run.trace(name, chain);
            let burnt = recorded.len() - 10;
            same = same && seen.trace(name, chain) == recorded.extract(burnt) && seen.trace(name, chain).len() == 10;
        }
    }
"#;

#[test]
fn observables_of_draws_are_those_that_were_recorded() {
    let found = script(&format!(
        r#"
        let run = sweep(t, sampler::sgld(#{{ step: 0.001, batch: 20 }}), #{{ temperatures: [1e-4, 1e-3], chains: 2, steps: 400, every: 20, keep: 20, observe: o }});
        {SAME}
        // A run from its folder has no target of its own.
        let again = observe(open(run.folder), o, #{{ target: t }});
        let last = run.kept("w1", 3)[9].abs().max().item();
        [same, again.trace("heat", 1) == seen.trace("heat", 1), last == run.trace("largest", 3).pop(), run.kept("w1", 0).shape(), seen.summary().cost.len()]
        "#
    ));
    assert_eq!(
        found,
        serde_json::json!([true, true, true, [10, 6, 64], 2]),
        "{found}"
    );
}

#[test]
fn draws_of_a_ladder_belong_to_its_rungs() {
    let found = script(&format!(
        r#"
        let p = target(model::mlp(#{{ layers: [64, 6, 10] }}), data, #{{ energy: "sum", prior: prior::gaussian(1.0) }});
        t = p;
        let run = exchange(t, sampler::hmc(#{{ leapfrog: 3 }}), #{{ temperatures: [1.0, 1.5], prior_rung: true, chains: 2, steps: 40, every: 2, keep: 2, observe: o }});
        {SAME}
        // Replicas have moved, or this would show nothing.
        let moved = false;
        for r in run.trace("replica", 0) {{ moved = moved || r != 0.0; }}
        [same, moved]
        "#
    ));
    assert_eq!(found, serde_json::json!([true, true]), "{found}");
}

/// A run that is thinned is the run that was recorded and kept that much more rarely.
#[test]
fn thinned_runs_are_those_that_were_recorded_more_rarely() {
    let found = script(
        r#"
        let o = [observable::cost(), observable::named("largest", |s| s.params.slice("w1").abs().max())];
        let make = |k| sample(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperature: 1e-3, chains: 2, steps: 440, burn_in: 210, every: 20 * k, keep: 10 * k, observe: o, seed: 3 });
        let thin = make.call(1).thin(3);
        let rare = make.call(3);
        [thin.trace("cost", 1) == rare.trace("cost", 1), thin.trace("cost", 1).len(), thin.kept("w2", 1) == rare.kept("w2", 1),
            thin.kept("w2", 1).shape(), observe(thin, o).trace("largest", 0) == observe(rare, o).trace("largest", 0), thin.thin(2).draw(0, 1).len() == 1]
        "#,
    );
    assert_eq!(
        found,
        serde_json::json!([true, 7, true, [7, 10, 6], true, true]),
        "{found}"
    );
}

#[test]
fn parts_and_halves() {
    let found = script(
        r#"
        let whole = sample(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperature: 1e-3, chains: 2, steps: 400, keep_draws: 7, seed: 3 });
        let part = sample(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperature: 1e-3, chains: 2, steps: 400, keep_draws: 7, keep_tensors: ["w2"], keep_as: "f16", seed: 3 });
        let (a, b) = (whole.kept("w2", 1), part.kept("w2", 1));
        [b.shape(), ((a - b).abs().max() / a.abs().max()).item() < 0.0005, whole.kept("b1", 1).shape()]
        "#
        .replace("let (a, b) = (whole.kept(\"w2\", 1), part.kept(\"w2\", 1));", "let a = whole.kept(\"w2\", 1); let b = part.kept(\"w2\", 1);")
        .as_str(),
    );
    assert_eq!(
        found,
        serde_json::json!([[7, 10, 6], true, [7, 6]]),
        "{found}"
    );
}

/// Two-replica observables of a law that is known: q of independent standard normals of N components has mean 0 and variance 1/N.
#[test]
fn overlaps_are_those_of_pairs_of_draws() {
    let found = script(
        r#"
        let g = target(potential::closure(8, |w| 0.5 * w.norm2()));
        let run = sample(g, sampler::hmc(), #{ steps: 4000, chains: 4, keep: 4 });
        let all = overlaps(run);
        let a = run.kept("w", 0)[7]; let b = run.kept("w", 1)[7];
        let q = (a.dot(b) / (a.norm2() * b.norm2()).sqrt()).item();
        let d = ((a - b).norm2() / 8.0).item();
        let net = sample(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperature: 1e-3, chains: 2, steps: 200, keep: 50 });
        let of_net = overlaps(net, #{ split: "test" });
        // The same by hand, from the outputs.
        let x = t.outputs(net.draw(0, 1), "test").reshape([-1, 10]); let y = t.outputs(net.draw(1, 1), "test").reshape([-1, 10]);
        let by_hand = ((x - y).norm2() / x.shape()[0]).item();
        [all.overlap[0], q, d, all.distance2[0][7], of_net.output_distance2[0][1], by_hand, of_net.disagreement[0].len()]
        "#,
    );
    let q: Vec<f64> = serde_json::from_value(found[0].clone()).unwrap();
    let near = |x: &serde_json::Value, y: &serde_json::Value| {
        let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
        assert!((x - y).abs() < 1e-5 * y.abs(), "{x} {y}");
    };
    assert_eq!(q.len(), 6 * 500);
    near(&serde_json::json!(q[7]), &found[1]);
    near(&found[3], &found[2]);
    near(&found[4], &found[5]);
    assert_eq!(found[6], 2);
    // Null: mean square 1/8. Pairs that share a chain are uncorrelated in q², whose sd is below √(2·7/(8²·10)) (Beta law); HMC's draws four steps
    // apart are taken as independent, and half as many for safety.
    let square = q.iter().map(|q| q * q).sum::<f64>() / q.len() as f64;
    let error = (2.0 * 7.0 / 640.0f64).sqrt() / (q.len() as f64 / 2.0).sqrt();
    assert!(
        (square - 0.125).abs() < 4.0 * error && error < 0.005,
        "{square} ± {error}"
    );
}

/// Null: Langevin steps of size ε on ½|w - 1|² are w' - 1 = a(w - 1) + noise with a = 1 - ε/2, of stationary variance v = 1/(1 - ε/4), so that
/// |w(t) - w(t_w)|²/N = 2v(1 - a^(t - t_w)) with a relative standard deviation of √(2/N) in each of 4 chains; and half of q is that of the mean.
#[test]
fn two_times_of_a_chain_have_the_correlation_of_its_steps() {
    let found = script(
        r#"
        let run = sample(target(potential::gaussian(#{ dim: 2000, condition: 1 })), sampler::sgld(#{ step: 0.2, batch: 1 }),
            #{ steps: 240, burn_in: 100, chains: 4, keep: 2, start: parameters(tensor::normal([4, 2000], 1) + 1) });
        two_time(run, #{ waiting: 3 })
        "#,
    );
    let numbers = |name: &str, k: usize| -> Vec<f64> {
        serde_json::from_value(found[name][0][k].clone()).unwrap()
    };
    let waiting: Vec<u64> = serde_json::from_value(found["waiting"][0].clone()).unwrap();
    assert_eq!(waiting.len(), 3, "{found}");
    let (a, v) = (0.9f64, 1.0 / (1.0 - 0.05));
    for (k, begin) in waiting.iter().enumerate() {
        let (distance, overlap) = (numbers("distance2", k), numbers("overlap", k));
        assert_eq!(distance.len(), (240 - *begin as usize) / 2 + 1);
        assert!(distance[0] == 0.0 && (overlap[0] - 1.0).abs() < 1e-12);
        for (j, (d, q)) in distance.iter().zip(&overlap).enumerate().skip(1) {
            let rho = a.powi(2 * j as i32);
            let exact = 2.0 * v * (1.0 - rho);
            assert!(
                (d / exact - 1.0).abs() < 4.0 * (2.0f64 / 2000.0 / 4.0).sqrt(),
                "{k} {j}: {d} {exact}"
            );
            assert!(
                (q - (1.0 + v * rho) / (1.0 + v)).abs() < 0.05,
                "{k} {j}: {q}"
            );
        }
    }
}

#[test]
fn what_cannot_be_kept_or_observed_is_said() {
    let make = "let run = sample(t, sampler::sgld(), #{ steps: 100, burn_in: 50, chains: 2";
    for (rest, expected) in [
        (
            "});\nrun.draw(0, 0)",
            "kept no draws; give it the option keep: 1",
        ),
        (
            ", keep: 20 });\nrun.draw(0, 3)",
            "has 3 draws, so there is none with index 3",
        ),
        (", keep: 20 });\nrun.draw(2, 0)", "has 2 chains"),
        (", keep: 20 });\nrun.kept(\"w9\", 0)", "kept no tensor 'w9'"),
        (", keep: 20, keep_tensors: [\"w3\"] });", "did you mean 'w"),
        (
            ", keep: 20, keep_tensors: [\"w1\"] });\nrun.draw(0, 0)",
            "kept only 1 of its 4 tensors",
        ),
        (", keep_tensors: [\"w1\"] });", "not when"),
        (", keep: 20, keep_draws: 3 });", "are both given"),
        (", keep: 200 });", "never comes up after burn-in"),
        (
            ", keep: 20 });\nobserve(run, [observable::virial_temperature()])",
            "known only while a run goes on",
        ),
        (", keep: 20 });\nobserve(run, [1])", "the list has 1 in it"),
        (", keep: 20 });\nobserve(run, [])", "is empty"),
        (
            ", keep: 20 });\nobserve(run, [|s| s.info.virial])",
            "virial",
        ),
        (
            ", keep: 20 });\nobserve(run, o, #{ target: target(model::mlp(#{ layers: [64, 10] }), data) })",
            "is another one",
        ),
        (
            ", keep: 20 });\nobserve(open(run.folder), o)",
            "give the option target",
        ),
    ] {
        let failure = evaluate(&format!("{RUN}{make}{rest}")).expect_err(rest);
        let said = format!("{failure:?}");
        assert!(said.contains(expected), "{rest}: {said}");
    }
}

/// A chain that fails keeps the draws before that, and its neighbours theirs.
#[test]
fn a_failed_chain_keeps_what_it_had() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "fails.rhai",
        r#"
        let t = target(potential::closure(1, |w| 0.0 - w[0]**4));
        let starts = parameters([[0.0], [1.2]]);
        let run = sample(t, sampler::sgld(#{ step: 0.001, batch: 1 }), #{ temperature: 1e-9, chains: 2, steps: 2000, burn_in: 0, every: 10, keep: 10, start: starts });
        let seen = observe(run, [observable::norm2()]);
        [run.failed, run.trace("norm2", 0) == seen.trace("norm2", 0), run.trace("norm2", 1) == seen.trace("norm2", 1), seen.trace("norm2", 1).len() < 200]
        "#,
    );
    let output = ergodic()
        .args(["run", "--quiet", "--json", "--out"])
        .arg(scratch.join("out"))
        .arg(&script)
        .output()
        .unwrap();
    let found: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    assert_eq!(found, serde_json::json!([1, true, true, true]), "{found}");
}

/// All files below a folder.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = folder.read_dir().unwrap().map(|e| e.unwrap().path());
    let below = |p: std::path::PathBuf| if p.is_dir() { files(&p) } else { vec![p] };
    entries.flat_map(below).collect()
}

#[test]
fn a_run_has_as_many_files_however_many_chains_it_has() {
    let scratch = Scratch::new();
    let source = r#"
        let t = target(model::mlp(#{ layers: [64, 4, 10] }), dataset::digits(#{ per_class: 5 }));
        sweep(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperatures: [1e-4, 1e-3], chains: param("chains", 2), steps: 40, every: 10, keep: 10 });
    "#;
    let script = scratch.file("s.rhai", source);
    let count = |chains: usize| {
        let out = scratch.join(format!("{chains}"));
        let mut command = ergodic();
        command.arg("run").arg(&script).arg("--out").arg(&out);
        let output = command
            .args(["--set", &format!("chains={chains}")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        files(&out).len()
    };
    assert_eq!(count(2), count(150));
}
