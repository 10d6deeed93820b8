//! Exit codes: what a command has to say may be lost, what came of it may not.

use super::support::{Scratch, ergodic, text};
use std::io::{BufRead, BufReader, pipe};
use std::process::{Command, Stdio};

/// Where nobody reads, or where nothing can be written.
#[derive(Clone, Copy, Debug)]
enum Lost {
    Nobody,
    Full,
}

fn stream(lost: Lost) -> Stdio {
    match lost {
        Lost::Nobody => pipe().unwrap().1.into(),
        Lost::Full => std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
            .into(),
    }
}

#[test]
#[ignore = "long: tests/run"]
#[cfg(target_os = "linux")]
fn lost_output_does_not_change_what_a_command_ends_with() {
    let scratch = Scratch::new();
    let t = "let t = target(potential::double_well());";
    scratch.file("good.rhai", format!("{t} print(1); sample(t, sampler::hmc(), #{{ steps: 20, every: 1, name: \"a\" }}).summary()"));
    scratch.file("bad.rhai", "print(1); let x = y;");
    scratch.file("failed.rhai", format!("{t} sample(t, sampler::sgld(#{{ step: 0.02, batch: 1 }}), #{{ start: parameters([1e4]), steps: 2000, every: 10 }})"));
    let run = |arguments: &str| -> Command {
        let mut command = ergodic();
        command
            .current_dir(scratch.join("."))
            .args(arguments.split(' '));
        command
    };
    assert!(
        run("run good.rhai --out done")
            .output()
            .unwrap()
            .status
            .success()
    );
    // Command, exit code, whether it has something to say on standard output.
    let commands = [
        ("run good.rhai", 0, true),
        ("run good.rhai --json", 0, true),
        ("run good.rhai --quiet", 0, true),
        ("run bad.rhai", 1, true),
        ("run nowhere.rhai", 1, false),
        ("run failed.rhai", 3, false),
        ("run good.rhai --help", 0, true),
        ("run", 2, false),
        ("fly", 2, false),
        ("--help", 0, true),
        ("show done", 0, true),
        ("show done --json", 0, true),
        ("show nowhere", 1, false),
        ("report done --out done/r.html", 0, true),
        ("plot done", 0, true),
        ("compare done done", 0, true),
        ("compare done done --json", 0, true),
        ("docs", 0, true),
        ("docs sgldd", 1, false),
        ("docs --all", 0, true),
        ("bench --list", 0, true),
        ("bench --only none", 1, false),
        ("doctor", 0, true),
        ("doctor --check done", 0, true),
        ("doctor --check nowhere", 1, false),
        ("kernel list", 0, true),
    ];
    for (command, code, speaks) in commands {
        let whole = run(command).output().unwrap();
        assert_eq!(
            whole.status.code(),
            Some(code),
            "{command}: {}",
            text(&whole)
        );
        for lost in [Lost::Nobody, Lost::Full] {
            let full = speaks && matches!(lost, Lost::Full);
            let expected = if full && code == 0 { 1 } else { code };
            let output = run(command).stdout(stream(lost)).output().unwrap();
            let said = text(&output);
            assert_eq!(
                output.status.code(),
                Some(expected),
                "{command}, stdout {lost:?}: {said}"
            );
            assert!(
                !full || said.contains("standard output"),
                "{command}, stdout {lost:?}: {said}"
            );
            assert!(
                !said.contains("panicked") && !said.contains("defect"),
                "{command}: {said}"
            );
            let output = run(command).stderr(stream(lost)).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(code),
                "{command}, stderr {lost:?}"
            );
            let status = run(command)
                .stdout(stream(lost))
                .stderr(stream(lost))
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(expected), "{command}, both {lost:?}");
        }
    }
}

/// Data that stay in their file go on being read there.
#[test]
#[cfg(target_os = "linux")]
fn a_mapped_file_that_is_cut_ends_a_run_with_a_message() {
    let scratch = Scratch::new();
    let [x, y] = ["x.npy", "y.npy"].map(|name| scratch.join(name));
    let script = format!(
        "let d = dataset::digits(#{{ test: 0 }});
         d.inputs(\"train\").save({x:?}); d.targets(\"train\").save({y:?});
         let t = target(model::mlp(#{{ layers: [64, 1] }}), dataset::npy({x:?}, {y:?}, #{{ mapped: true }}));
         print(\"mapped\");
         sample(t, sampler::sgld(#{{ step: 1e-6, batch: 32 }}), #{{ chains: 1, steps: 1_000_000_000, every: 1_000_000 }})"
    );
    scratch.file("s.rhai", script);
    let mut run = ergodic()
        .current_dir(scratch.join("."))
        .args(["run", "--trust", "s.rhai"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = BufReader::new(run.stdout.take().unwrap()).read_line(&mut line);
    assert!(said.is_ok() && line == "mapped\n", "{line}");
    let file = std::fs::File::options().write(true).open(&x);
    file.unwrap().set_len(200).unwrap();
    let done = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: a file of mapped data became shorter"),
        "{said}"
    );
}
