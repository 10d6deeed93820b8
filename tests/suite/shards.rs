//! Shards of a run: each alone in a folder of its own, and together the bytes of one run.

use super::determinism::results;
use super::support::{Scratch, ergodic, text};
use std::path::Path;
use std::process::Output;

const SCRIPT: &str = r#"
    let data = dataset::digits(#{ per_class: 10 });
    let t = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ energy: "sum", prior: prior::gaussian(1.0) });
    let a = exchange(t, sampler::hmc(#{ leapfrog: 3 }), #{ temperatures: [1.0, 1.5, 3.0, 10.0], prior_rung: true,
        steps: 200, chains: 4, keep: 10, predict: "test", name: "ladders" });
    let b = sweep(t, sampler::sgld(#{ step: 1e-5, batch: 30 }), #{ temperatures: [1.0, 2.0], chains: 3, steps: 400, every: 20, keep: 30,
        predict: "test", name: "sweep" });
    [a.summary(), a.ladder().to_map(), b.summary(), a.prediction("test", 0).nll]
"#;

fn run(script: &Path, out: &Path, more: &[&str]) -> Output {
    ergodic()
        .args(["run", "--quiet", "--json", "--out"])
        .arg(out)
        .arg(script)
        .args(more)
        .output()
        .unwrap()
}

#[test]
#[ignore = "long: tests/run"]
fn merged_shards_are_the_bytes_of_one_run() {
    let scratch = Scratch::new();
    let script = scratch.file("both.rhai", SCRIPT);
    let (whole, parts) = (scratch.join("whole"), scratch.join("parts"));
    let alone = run(&script, &whole, &[]);
    assert!(alone.status.success(), "{}", text(&alone));
    for shard in ["3/3", "1/3"] {
        let output = run(&script, &parts, &["--shard", shard]);
        assert!(output.status.success(), "{shard}: {}", text(&output));
    }
    let output = run(&script, &parts, &["--merge", "3"]);
    assert!(text(&output).contains("shard-2-of-3"), "{}", text(&output));
    assert!(run(&script, &parts, &["--shard", "2/3"]).status.success());
    let merged = run(&script, &parts, &["--merge", "3"]);
    assert!(merged.status.success(), "{}", text(&merged));
    for name in ["ladders", "sweep"] {
        let (expected, found) = (results(&whole.join(name)), results(&parts.join(name)));
        for (file, bytes) in &expected {
            assert!(found.get(file) == Some(bytes), "{name}/{file} differs");
        }
    }
    // All numbers but the seconds, which add up over the shards.
    let numbers = |o: &Output| -> serde_json::Value {
        let mut value: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
        for part in value.as_array_mut().unwrap() {
            if let Some(map) = part.as_object_mut() {
                map.remove("seconds");
            }
        }
        value
    };
    assert_eq!(numbers(&alone), numbers(&merged));
}

#[test]
fn what_shards_cannot_do_they_say() {
    let scratch = Scratch::new();
    let script = scratch.file("both.rhai", SCRIPT);
    let out = scratch.join("out");
    for (more, expected) in [
        (&["--shard", "5/5"][..], "has nothing to do"),
        (&["--shard", "0/5"], "expected K/N"),
        (&["--shard", "1/2", "--merge", "2"], "cannot be used with"),
        (&["--merge", "2"], "there is no such shard"),
    ] {
        let output = run(&script, &out, more);
        assert!(
            !output.status.success() && text(&output).contains(expected),
            "{more:?}: {}",
            text(&output)
        );
    }
    let tuned = scratch.file(
        "tuned.rhai",
        r#"exchange(target(potential::double_well()), sampler::hmc(), #{ temperatures: [1.0, 2.0, 3.0], steps: 400, tune: 2, temper: "energy" })"#,
    );
    let output = run(&tuned, &out, &["--shard", "1/2"]);
    assert!(
        text(&output).contains("shards cannot tune one ladder"),
        "{}",
        text(&output)
    );
}
