//! Runs that are spread over the ranks of an MPI job: the same bytes as one process writes, and none lost when a rank dies.

mod transport;

use super::determinism::results;
use super::support::{Scratch, ergodic, text};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Ladders with a prior rung and tuning, momenta, a sweep, training, a summary and a figure.
const SCRIPT: &str = r#"
    let data = dataset::digits(#{ per_class: 10 });
    let t = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ energy: "sum", prior: prior::gaussian(1.0) });
    let start = train(t, optimizer::adam(#{ epochs: 10, batch: 32 }));
    let a = exchange(t, sampler::hmc(#{ leapfrog: 3 }), #{ temperatures: [1.0, 1.5, 3.0, 10.0], prior_rung: true, tune: 2,
        steps: param("steps", 300), chains: 2, observe: [observable::cost(), observable::error("test")], name: "ladder" });
    let b = exchange(t, sampler::sgnht(#{ step: 1e-5, batch: 30 }), #{ temperatures: [1.0, 1.2, 1.5], start: start, pairs: "random",
        steps: 800, swap_every: 20, chains: 1, name: "momenta" });
    let c = sweep(t, sampler::sgld(#{ step: 1e-5, batch: 30 }), #{ temperatures: [1.0, 2.0], chains: 3, start: start, steps: 600, every: 20, keep: 40,
        predict: "test", name: "sweep" });
    let d = sweep(t, sampler::ohzeki_ichiki(#{ step: 1e-5, between: "replicas", batch: 30 }), #{ temperatures: [1.0, 2.0, 3.0], chains: 2,
        start: start, steps: 200, every: 20, keep_draws: 3, name: "coupled" });
    let o = #{ steps: 200, until: #{ ess: 1e5, at_most: 500 }, seed: 3 };
    sweep(t, sampler::hmc(#{ leapfrog: 2 }), #{ temperatures: [1.0, 2.0], chains: 3, every: 4, predict: "test", name: "until" } + o);
    exchange(t, sampler::hmc(#{ leapfrog: 2 }), #{ temperatures: [1.0, 1.5, 2.0], chains: 2, name: "ladder-until" } + o);
    plot::sweep(a, "cost").save("cost.svg");
    [a.summary()["cost"], a.ladder()["barrier"], c.summary()["cost"], d.summary()["cost"]]
"#;

/// The program under `mpirun`, or none where there is no such thing.
fn launch(ranks: usize, script: &Path, out: &Path, more: &[&str]) -> Command {
    let plain = ergodic();
    let mut command = Command::new("mpirun");
    let ranks = ranks.to_string();
    command
        .args(["-n", &ranks, "--oversubscribe", "--bind-to", "none"])
        .arg(plain.get_program())
        .args(["run", "--quiet", "--out"])
        .arg(out)
        .arg(script)
        .args(more)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn ended(mut command: Command) -> Output {
    command.output().unwrap()
}

#[test]
#[ignore = "long: tests/run"]
fn any_number_of_ranks_writes_what_one_process_writes() {
    let scratch = Scratch::new();
    let script = scratch.file("all.rhai", SCRIPT);
    let alone = ergodic()
        .args(["run", "--quiet", "--json", "--out"])
        .arg(scratch.join("alone"))
        .arg(&script)
        .output()
        .unwrap();
    assert!(alone.status.success(), "{}", text(&alone));
    let expected = results(&scratch.join("alone"));
    for ranks in [1, 2, 4] {
        let out = scratch.join(format!("ranks-{ranks}"));
        let output = ended(launch(ranks, &script, &out, &["--json"]));
        assert!(output.status.success(), "{ranks}: {}", text(&output));
        // One of them prints, all have computed the same.
        assert_eq!(output.stdout, alone.stdout, "{ranks}: {}", text(&output));
        let found = results(&out);
        assert_eq!(
            expected.keys().collect::<Vec<_>>(),
            found.keys().collect::<Vec<_>>()
        );
        for (name, bytes) in &expected {
            assert!(found[name] == *bytes, "{ranks} ranks: {name} differs");
        }
    }
}

/// Ranks share the cells of a grid, each of which one of them runs alone.
#[test]
#[ignore = "long: tests/run"]
fn ranks_share_the_cells_of_a_grid() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "cells.rhai",
        "let t = target(potential::gaussian(#{ dim: param(\"dim\", 2) }));
         sample(t, sampler::hmc(), #{ temperature: param(\"heat\", 1.0), steps: 50, every: 5, chains: 2 }).summary().cost",
    );
    let grid = ["--grid", "dim=1,2,3", "--grid", "heat=0.5,1,2"];
    let mut alone = ergodic();
    alone
        .args(["run", "--quiet", "--out"])
        .arg(scratch.join("alone"))
        .arg(&script)
        .args(grid);
    let alone = ended(alone);
    assert!(alone.status.success(), "{}", text(&alone));
    let shared = ended(launch(4, &script, &scratch.join("shared"), &grid));
    assert!(shared.status.success(), "{}", text(&shared));
    let table = |out: &str| std::fs::read_to_string(scratch.join(out).join("cells.csv")).unwrap();
    assert_eq!(table("shared"), table("alone"));
    assert_eq!(table("alone").lines().count(), 10);
}

/// Kill one rank of two in the middle of the ladder, and go on with three.
#[test]
#[ignore = "long: tests/run"]
fn another_number_of_ranks_goes_on_when_one_has_died() {
    goes_on_after("-KILL", "3600", "");
}

/// Stop one rank of two in the middle of the ladder (SIGSTOP): the other one ends the job after `ERGODIC_RANK_TIMEOUT` seconds.
#[test]
#[ignore = "long: tests/run"]
fn a_rank_that_hangs_ends_the_job() {
    goes_on_after("-STOP", "5", "has waited for the others for 5 s");
}

fn goes_on_after(signal: &str, patience: &str, said: &str) {
    let scratch = Scratch::new();
    let script = scratch.file("all.rhai", SCRIPT);
    let steps = ["--set", "steps=3000"];
    let alone = ergodic()
        .args(["run", "--quiet", "--out"])
        .arg(scratch.join("alone"))
        .arg(&script)
        .args(steps)
        .output()
        .unwrap();
    assert!(alone.status.success(), "{}", text(&alone));
    let out = scratch.join("out");
    let more = [&steps[..], &["--checkpoint", "0.05"]].concat();
    let mut child = launch(2, &script, &out, &more)
        .env("ERGODIC_RANK_TIMEOUT", patience)
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let previous = out.join("ladder/checkpoint/previous.safetensors");
    while !previous.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    // A child of mpirun: its ranks are the only processes with this folder on their command line besides.
    let listed = Command::new("pgrep")
        .args(["-P", &child.id().to_string()])
        .output()
        .unwrap();
    let ranks: Vec<String> = text(&listed)
        .split_whitespace()
        .map(str::to_string)
        .collect();
    let victim = ranks.last().unwrap();
    assert!(
        Command::new("kill")
            .args([signal, victim])
            .status()
            .unwrap()
            .success()
    );
    let ended = child.wait_with_output().unwrap();
    assert!(!ended.status.success());
    assert!(text(&ended).contains(said), "{}", text(&ended));
    let more = [&steps[..], &["--resume"]].concat();
    let output = launch(3, &script, &out, &more).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let (expected, found) = (results(&scratch.join("alone")), results(&out));
    for (name, bytes) in &expected {
        assert!(found.get(name) == Some(bytes), "{name} differs");
    }
}

#[test]
fn an_error_of_all_ranks_is_told_once_and_ends_the_job() {
    let scratch = Scratch::new();
    let script = scratch.file("wrong.rhai", "sample(1, 2, 3)");
    let output = ended(launch(3, &script, &scratch.join("out"), &[]));
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output);
    assert_eq!(message.matches("error: rank").count(), 1, "{message}");
    let script = scratch.file(
        "predict.rhai",
        r#"exchange(target(model::mlp(#{ layers: [64, 10] }), dataset::digits(5)), sampler::hmc(),
            #{ temperatures: [1.0, 2.0], steps: 100, temper: "energy", predict: "test" })"#,
    );
    let output = ended(launch(2, &script, &scratch.join("out-2"), &[]));
    assert!(
        text(&output).contains("leave out 'predict' under mpirun"),
        "{}",
        text(&output)
    );
}
