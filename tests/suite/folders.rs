//! A folder of results has one owner: whatever is started at once, nothing is lost and nothing is mixed.

use super::support::{Scratch, ergodic, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Two runs, the second from the end of the first; a fraction of a second.
const SCRIPT: &str = r#"
    let t = target(potential::gaussian(#{ dim: 3 }));
    let a = sample(t, sampler::hmc(#{ leapfrog: 3 }), #{ chains: 2, steps: param("steps", 2000), every: 10 });
    let b = sample(t, sampler::hmc(#{ leapfrog: 3 }), #{ chains: 2, start: a, steps: param("steps", 2000), every: 10 });
"#;

/// What is shared by name is seen by both; more pairs by `ERGODIC_PAIRS=200`.
fn pairs() -> usize {
    let asked = std::env::var("ERGODIC_PAIRS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(8)
}

struct Place {
    scratch: Scratch,
    script: PathBuf,
}

impl Place {
    fn new() -> Self {
        let scratch = Scratch::new();
        let script = scratch.file("two.rhai", SCRIPT);
        Self { scratch, script }
    }

    fn command(&self, seed: u64, more: &[&str]) -> Command {
        let mut command = ergodic();
        command
            .current_dir(self.scratch.join("."))
            .arg("run")
            .arg(&self.script)
            .args(["--threads", "1", "--seed", &seed.to_string()])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Chunks and weights of a run with this seed that nobody disturbed.
    fn alone(&self, seed: u64, more: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let out = self.scratch.join(format!("alone-{seed}"));
        let mut command = self.command(seed, more);
        let output = command.arg("--out").arg(&out).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        content(&out)
    }

    /// Two at once.
    fn both(&self, commands: [Command; 2]) -> [Output; 2] {
        let running: [Child; 2] = commands.map(|mut c| c.spawn().unwrap());
        running.map(|c| c.wait_with_output().unwrap())
    }
}

/// Chunks of traces, and weights: what has no timings in it.
pub fn content(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![out.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                folders.push(path);
            } else if name != "zarr.json"
                && name != "run.json"
                && !path.to_string_lossy().contains("checkpoint")
            {
                let inside = path
                    .strip_prefix(out)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.insert(inside, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Who ended well has a complete folder of its own seed; who did not says why.
fn judge(output: &Output, seed: u64, out: &Path, expected: &BTreeMap<String, Vec<u8>>) -> bool {
    let said = text(output);
    if !output.status.success() {
        let told = said.contains("another process") || said.contains("not empty");
        assert!(told && output.status.code() == Some(1), "{said}");
        return false;
    }
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap();
    assert!(
        record["seed"] == seed && record["status"] == "done",
        "{said}"
    );
    let found = content(out);
    for (file, bytes) in expected {
        assert!(
            found.get(file) == Some(bytes),
            "{}/{file} is not that of seed {seed}: {said}",
            out.display()
        );
    }
    assert_eq!(found.len(), expected.len(), "{:?}", found.keys());
    true
}

#[test]
#[ignore = "long: tests/run"]
fn of_two_started_at_once_each_has_its_own_folder() {
    let place = Place::new();
    let expected = [1, 2].map(|seed| place.alone(seed, &[]));
    for _ in 0..pairs() {
        let _ = std::fs::remove_dir_all(place.scratch.join("runs"));
        let outputs = place.both([1, 2].map(|seed| place.command(seed, &[])));
        let mut folders = Vec::new();
        for (k, output) in outputs.iter().enumerate() {
            let said = text(output);
            let named = said.lines().find_map(|l| l.strip_prefix("results "));
            let folder = named
                .and_then(|l| l.split(' ').next())
                .unwrap_or("")
                .to_string();
            let out = place.scratch.join(&folder);
            assert!(
                judge(output, k as u64 + 1, &out, &expected[k]),
                "both can end well: {said}"
            );
            folders.push(folder);
        }
        assert_ne!(folders[0], folders[1]);
    }
}

#[test]
#[ignore = "long: tests/run"]
fn of_two_that_name_one_folder_one_is_told() {
    let place = Place::new();
    let expected = [1, 2].map(|seed| place.alone(seed, &[]));
    let mut told = 0;
    for k in 0..pairs() {
        let out = format!("shared-{k}");
        let outputs = place.both([1, 2].map(|seed| place.command(seed, &["--out", &out])));
        let out = place.scratch.join(&out);
        let well = [0, 1].map(|k| judge(&outputs[k], k as u64 + 1, &out, &expected[k]));
        assert!(well[0] != well[1], "{well:?}");
        told += outputs
            .iter()
            .filter(|o| text(o).contains("another process (id "))
            .count();
    }
    assert!(told > 0, "they never met");
}

#[test]
#[ignore = "long: tests/run"]
fn of_two_that_resume_one_folder_one_is_told() {
    let place = Place::new();
    let expected = place.alone(1, &["--set", "steps=40_000"]);
    let mut told = 0;
    for k in 0..pairs().div_ceil(2) {
        let out = format!("killed-{k}");
        let more = [
            "--set",
            "steps=40_000",
            "--checkpoint",
            "0.01",
            "--out",
            &out,
        ];
        let mut first = place.command(1, &more).spawn().unwrap();
        let saved = place
            .scratch
            .join(&out)
            .join("sample-1/checkpoint/current.safetensors");
        while !saved.exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let (now, _) = (
            place.command(1, &more).arg("--resume").output().unwrap(),
            (),
        );
        assert!(!now.status.success(), "it is still running: {}", text(&now));
        first.kill().unwrap();
        first.wait().unwrap();
        let resumed = [1, 1].map(|seed| {
            let mut command = place.command(seed, &more);
            command.arg("--resume");
            command
        });
        let outputs = place.both(resumed);
        let out = place.scratch.join(&out);
        let well = outputs
            .iter()
            .filter(|o| judge(o, 1, &out, &expected))
            .count();
        assert!(
            well > 0,
            "nobody went on: {}{}",
            text(&outputs[0]),
            text(&outputs[1])
        );
        told += outputs
            .iter()
            .filter(|o| text(o).contains("another process (id "))
            .count();
    }
    assert!(told > 0, "they never met");
}
