//! Same script, same bits: whatever the number of threads, and however often the run was interrupted or killed.

use super::support::{Scratch, ergodic, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Training, pseudo-Langevin with refreshes, HMC with adaptation, replicas that step together and a closure: everything that has state.
const SCRIPT: &str = r#"
    let data = dataset::digits(#{ per_class: 30 });
    let t = target(model::mlp(#{ layers: [64, 12, 10] }), data, #{ prior: prior::l2(10.0) });
    let start = train(t, optimizer::adam(#{ epochs: 40, batch: 32 }), #{ chains: 2 });
    let o = [observable::cost(), observable::error("test"), observable::gradient_variance(), |s| s.params.slice("w1").abs().max()];
    let a = sweep(t, sampler::pseudo_langevin(#{ batch: 30, reset: 0.3 }), #{
        temperatures: [1e-4, 1e-3], start: start, chains: 3, steps: param("steps", 6000), every: 50, keep: 30, observe: o, name: "pl" });
    let b = sample(t, sampler::hmc(#{ leapfrog: 5 }), #{
        temperature: 1e-3, start: a, chains: 2, steps: 300, every: 3, observe: o, name: "hmc" });
    let c = sample(t, sampler::sgld(#{ step: schedule::power(0.01, 1.0, 0.3), batch: 30 }), #{
        temperature: 1e-3, start: start, chains: 1, steps: 3000, every: 10, observe: o, name: "sgld" });
    let d = sample(t, sampler::ohzeki_ichiki(#{ step: 0.001, between: "replicas", form: "adam", batch: 30 }), #{
        temperature: 1e-3, start: start, chains: 3, steps: 2000, every: 50, keep_draws: 7, keep_as: "f16", keep_tensors: ["w1"], observe: o, predict: "test", name: "replicas" });
    let prior = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ energy: "sum", prior: prior::gaussian(1.0) });
    let e = exchange(prior, sampler::hmc(#{ leapfrog: 3 }), #{
        temperatures: [1.0, 1.5, 3.0, 10.0], prior_rung: true, tune: 2, steps: 400, every: 3, swap_every: 2, chains: 2, minimise: 5, keep: 7,
        observe: o, predict: "test", name: "ladder" });
    let f = exchange(prior, sampler::sgnht(#{ step: 1e-5, batch: 30 }), #{
        temperatures: [1.0, 1.2, 1.5], pairs: "random", steps: 1000, swap_every: 20, every: 30, chains: 2, name: "ladder-sgnht" });
    let g = smc(prior, sampler::hmc(#{ leapfrog: 3 }), #{ particles: 20, populations: 2, moves: 7, ess: 0.9, name: "populations" });
    sample(prior, sampler::hmc(#{ leapfrog: 2 }), #{ start: g, chains: 40, steps: 10, every: 1, name: "after" });
    b.summary()
"#;

/// Every file of the trace stores and weights, by relative path.
pub(super) fn results(out: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, base: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, base, found);
            } else {
                let name = path
                    .strip_prefix(base)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                // Group attributes and run.json hold timings.
                let timed = name.ends_with("zarr.json")
                    || name.ends_with("run.json")
                    || name.contains("checkpoint");
                if !timed {
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(out, out, &mut found);
    assert!(found.len() > 20, "only {} files of results", found.len());
    found
}

fn complete(script: &Path, out: &Path, more: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let output = ergodic()
        .args(["run", "--quiet", "--out"])
        .arg(out)
        .arg(script)
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    results(out)
}

#[test]
#[ignore = "long: tests/run"]
fn threads_do_not_change_a_bit() {
    let scratch = Scratch::new();
    let script = scratch.file("script.rhai", SCRIPT);
    let one = complete(&script, &scratch.join("one"), &["--threads", "1"]);
    for threads in ["2", "5"] {
        assert!(
            one == complete(&script, &scratch.join(threads), &["--threads", threads]),
            "{threads} threads"
        );
    }
    let other = complete(&script, &scratch.join("seed"), &["--seed", "2"]);
    assert!(one != other, "another seed gives other results");
}

#[test]
#[ignore = "long: tests/run"]
fn a_run_killed_at_ten_moments_continues_bit_for_bit() {
    let scratch = Scratch::new();
    let script = scratch.file("script.rhai", SCRIPT);
    let reference = scratch.join("whole");
    let begin = Instant::now();
    let whole = complete(&script, &reference, &["--set", "steps=20000"]);
    let duration = begin.elapsed();
    let out = scratch.join("killed");
    let mut resumed = 0;
    for k in 0..10 {
        let mut command = ergodic();
        command
            .args([
                "run",
                "--quiet",
                "--checkpoint",
                "0.02",
                "--set",
                "steps=20000",
                "--out",
            ])
            .arg(&out)
            .arg(&script);
        if out.exists() {
            command.arg("--resume");
            resumed += 1;
        }
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over what is left: each attempt gets a tenth of the whole, at odd moments.
        std::thread::sleep(
            duration
                .mul_f64(0.05 + 0.017 * ((k * 7) % 10) as f64 / 2.0)
                .max(Duration::from_millis(15)),
        );
        let _ = child.kill(); // SIGKILL
        child.wait().unwrap();
    }
    assert!(
        resumed >= 8,
        "killed before anything was written {} times",
        9 - resumed
    );
    assert!(whole == complete(&script, &out, &["--resume", "--set", "steps=20000"]));
}

/// What a script prints as JSON, after being killed whenever a few checkpoints were written; and how often that was.
pub(super) fn killed_and_resumed(script: &Path, out: &Path, name: &str) -> (String, usize) {
    let file = out.join(name).join("checkpoint/current.safetensors");
    let modified = || std::fs::metadata(&file).and_then(|m| m.modified()).ok();
    let mut command = ergodic();
    command
        .args(["run", "--quiet", "--json", "--checkpoint", "0.001", "--out"])
        .arg(out)
        .arg(script);
    let mut killed = 0;
    loop {
        let (mut changes, mut last) = (0, modified());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if last != modified() {
                (changes, last) = (changes + 1, modified());
            }
            if changes > 3 && killed < 4 {
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if let Some(status) = ended {
            assert!(status.success());
            let output = child.wait_with_output().unwrap();
            return (String::from_utf8_lossy(&output.stdout).into_owned(), killed);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if killed == 0 {
            command.arg("--resume");
        }
        killed += 1;
    }
}

#[test]
#[ignore = "long: tests/run"]
fn validations_and_calibrations_go_on_where_they_were_killed() {
    let scratch = Scratch::new();
    let cases = [
        (
            "validate-1",
            "let t = target(model::mlp(#{ layers: [64, 8, 10], activation: \"tanh\" }), dataset::digits(#{ per_class: 30 }),
                #{ prior: prior::gaussian(0.5) });
             validate(t, sampler::pseudo_langevin(#{ batch: 30 }), #{ temperature: 0.01, stops: 3, steps: 100, draws: 40, chains: 2 })",
        ),
        (
            "calibrate_llc-1",
            "let t = target(potential::normal_crossing(#{ examples: 500 }));
             calibrate_llc(t, sampler::sgld(#{ step: 1e-3, batch: 20 }), #{ start: parameters([0.0, 0.0]), steps: 20000 })",
        ),
    ];
    for (name, source) in cases {
        let script = scratch.file(&format!("{name}.rhai"), source);
        let output = ergodic()
            .args(["run", "--quiet", "--json", "--out"])
            .arg(scratch.join(format!("{name}-whole")))
            .arg(&script)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let out = scratch.join(format!("{name}-killed"));
        let (found, killed) = killed_and_resumed(&script, &out, name);
        assert!(killed >= 2, "{name} was killed {killed} times");
        assert_eq!(found, String::from_utf8_lossy(&output.stdout), "{name}");
    }
}

#[cfg(unix)]
#[test]
#[ignore = "long: tests/run"]
fn ctrl_c_saves_and_exits_with_130() {
    let scratch = Scratch::new();
    let script = scratch.file("script.rhai", SCRIPT);
    let settings = ["--set", "steps=60000"];
    let whole = complete(&script, &scratch.join("whole"), &settings);
    let out = scratch.join("out");
    let child = ergodic()
        .args(["run", "--quiet", "--out"])
        .arg(&out)
        .arg(&script)
        .args(settings)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !out.join("pl/checkpoint/current.safetensors").exists()
        && begin.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(
        text(&output).contains("continue with --resume"),
        "{}",
        text(&output)
    );
    let mut more = vec!["--resume"];
    more.extend(settings);
    assert!(whole == complete(&script, &out, &more));
}

#[test]
#[ignore = "long: tests/run"]
fn a_changed_script_is_not_resumed() {
    let scratch = Scratch::new();
    let script = scratch.file("script.rhai", SCRIPT);
    let out = scratch.join("out");
    complete(&script, &out, &[]);
    let output = ergodic()
        .args(["run", "--resume", "--set", "steps=7000", "--out"])
        .arg(&out)
        .arg(&script)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("started with other settings"),
        "{}",
        text(&output)
    );
    assert!(text(&output).contains("7000"), "{}", text(&output));
}

/// A short run with everything that could go unnoticed when it changes.
const SETTINGS: &str = r#"
    let t = target(potential::gaussian(#{ dim: 3, examples: 20, noise: 1.0, seed: param("data", 1) }),
        #{ prior: prior::localised(1.0, parameters(param("centre", [0.0, 0.0, 0.0]))) });
    let run = sweep(t, sampler::sgld(#{ step: 0.01, batch: 5 }), #{
        temperatures: logspace(1e-6, 3e-5, 50), chains: 2, steps: 200, every: param("every", trigger::every(10)),
        start: parameters(param("start", [1.0, 2.0, 3.0])), region: param("region", 1000.0) });
    let again = sample(t, sampler::sgld(#{ step: 0.01, batch: 5 }), #{ chains: 2, steps: 200, every: 10, start: parameters([1.0, 2.0, 3.0]) });
    let other = sample(t, sampler::sgld(#{ step: 0.01, batch: 5 }), #{ chains: 2, steps: 200, every: 10, start: parameters([1.0, 2.0, 3.0]) });
    sample(t, sampler::mala(#{ masses: parameters(param("masses", [1.0, 2.0, 3.0])) }), #{ steps: 20, every: 1 });
    again.trace("norm2", 0) == other.trace("norm2", 0)
"#;

/// A short run and a calibration with what could go unnoticed when it changes: options of an observable, a parameter of a module, a long list, the spacing of kept draws.
const MORE: &str = r#"
    import "own" as own;
    param("k", 1.0);
    let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(5), #{ prior: prior::l2(1.0) });
    sample(t, sampler::sgld(#{ step: 1e-5, batch: 10 }), #{ steps: 60, every: 10, chains: 2, burn_in: 20, keep: param("keep", 10), until: #{ at_most: 80, ess: 1e9 },
        observe: [observable::gradient_variance(#{ batch: 10, draws: param("draws", 2) }), |s| own::f(s.step)] });
    let sizes = [];
    for i in 0..65 { sizes.push(1e-3 / (1.0 + i * param("spread", 1.0))); }
    calibrate_llc(target(potential::gaussian(#{ dim: 2, examples: 20 })), sampler::sgld(#{ gradient: gradient::full() }),
        #{ start: parameters([0.0, 0.0]), steps: 20, chains: 2, step_sizes: sizes });
    sizes.len()
"#;

#[test]
fn only_the_same_run_is_resumed_and_it_is_completed() {
    let scratch = Scratch::new();
    let script = scratch.file("script.rhai", SETTINGS);
    scratch.file("own.rhai", "fn f(x) { x * param(\"k\", 1.0) }");
    let (out, more_out) = (scratch.join("out"), scratch.join("more"));
    let more_script = scratch.file("more.rhai", MORE);
    let run_in = |out: &Path, script: &Path, more: &[&str]| {
        let output = ergodic()
            .args(["run", "--json", "--quiet", "--out"])
            .arg(out)
            .arg(script)
            .args(more)
            .output()
            .unwrap();
        (output.status.code(), text(&output))
    };
    let run = |more: &[&str]| run_in(&out, &script, more);
    let (code, said) = run(&[]);
    assert_eq!(
        (code, said.trim()),
        (Some(0), "false"),
        "two runs of one script share their noise"
    );
    for change in [
        "data=2",
        "centre=[0.0, 0.0, 0.1]",
        "every=trigger::every(20)",
        "every=trigger::at([10, 150])",
        "start=[1.0, 2.0, 3.5]",
        "region=10.0",
        "masses=[1.0, 2.0, 4.0]",
    ] {
        let (code, said) = run(&["--resume", "--set", change]);
        assert!(
            code == Some(1) && said.contains("other settings"),
            "{change}: {code:?} {said}"
        );
    }
    let run_more = |more: &[&str]| run_in(&more_out, &more_script, more);
    assert_eq!(run_more(&[]), (Some(0), "65\n".into()));
    for change in ["keep=15", "draws=3", "k=2.0", "spread=1.5"] {
        let (code, said) = run_more(&["--resume", "--set", change]);
        let refused = said.contains("other settings") || said.contains("another closure");
        assert!(code == Some(1) && refused, "{change}: {code:?} {said}");
    }
    assert_eq!(run_more(&["--resume"]), (Some(0), "65\n".into()));
    // Irrational temperatures come back to the last bit, and what is missing of a finished run is written again.
    let trace = out.join("sweep-1/trace.zarr");
    std::fs::remove_dir_all(&trace).unwrap();
    let (code, said) = run(&["--resume"]);
    assert!(code == Some(0) && trace.is_dir(), "{said}");
}
