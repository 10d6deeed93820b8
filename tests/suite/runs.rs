//! Runs as a collection: listed in order of time, compared, tagged, replaced and deleted, and nothing else is ever touched.

use super::folders::content;
use super::support::{Scratch, ergodic, evaluate, text};
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = "//! A Gaussian.
let leapfrog = param(\"leapfrog\", 5);
let t = target(potential::gaussian(#{ dim: 3 }));
let first = sample(t, sampler::hmc(#{ leapfrog: leapfrog }), #{ name: \"zeta\", steps: 200, chains: 2, every: 1 });
let second = sample(t, sampler::hmc(#{ leapfrog: leapfrog }), #{ name: \"alpha\", steps: 200, chains: 2, every: 1 });
";

/// Runs until it is stopped.
const LONG: &str = "let t = target(potential::gaussian(#{ dim: 3 }));
sample(t, sampler::hmc(#{ leapfrog: 3 }), #{ steps: 2_000_000_000, every: 1_000_000, chains: 1 })";

struct Place(Scratch);

impl Place {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.file("s.rhai", SCRIPT);
        scratch.file("long.rhai", LONG);
        Self(scratch)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = ergodic();
        command.current_dir(self.0.join(".")).args(arguments);
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it says, if it ends well.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        text(&output)
    }

    fn run(&self, out: &str, more: &[&str]) {
        let all = ["run", "s.rhai", "--quiet", "--threads", "1", "--out", out];
        self.said(&[&all[..], more].concat());
    }

    /// A run that goes on, and has a checkpoint.
    fn started(&self, out: &str) -> Child {
        let arguments = ["run", "long.rhai", "--quiet", "--threads", "1"];
        let mut command = self.command(&arguments);
        command.args(["--checkpoint", "0.05", "--out", out]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = child.spawn().unwrap();
        // The second checkpoint says how far it is.
        let saved = self
            .0
            .join(out)
            .join("sample-1/checkpoint/previous.safetensors");
        let begin = Instant::now();
        while !saved.exists() {
            assert!(begin.elapsed() < Duration::from_secs(30), "no checkpoint");
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.said(arguments)).unwrap()
    }

    fn content(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.0.join(file)).unwrap()
    }
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// When a run began, in the record that it has.
fn dated(place: &Place, run: &str, started: u64) {
    let path = place.0.join(run).join("run.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["started"] = started.into();
    std::fs::write(path, record.to_string()).unwrap();
}

#[test]
fn a_list_is_in_order_of_time_and_says_how_far_each_run_is() {
    let place = Place::new();
    // Of the three the last by name is the first in time.
    for (out, started) in [("runs/z", 1_000), ("runs/in/y", 2_000), ("runs/a b", 3_000)] {
        place.run(out, &[]);
        dated(&place, out, started);
    }
    end(place.started("runs/killed"));
    place.run("runs/broken", &[]);
    std::fs::write(place.0.join("runs/broken/run.json"), "{ no").unwrap();
    // What others have left there.
    std::fs::create_dir_all(place.0.join("runs/model/checkpoint")).unwrap();
    std::fs::write(place.0.join("runs/model/checkpoint/x.pt"), "x").unwrap();
    std::fs::write(place.0.join("runs/model/run.json"), "{\"a\": 1}").unwrap();
    let going = place.started("runs/going");
    let all = place.json(&["ls", "--json"]);
    let shown = place.said(&["ls"]);
    end(going);
    let of = |key: &str| -> Vec<Value> {
        let each = all.as_array().unwrap().iter();
        each.map(|f| f[key].clone()).collect()
    };
    let names = of("folder");
    assert_eq!(names[..3], ["runs/z", "runs/in/y", "runs/a b"]);
    assert_eq!(names.len(), 6, "{names:?}");
    let state = |name: &str| {
        let at = names.iter().position(|n| *n == name).unwrap();
        all[at].clone()
    };
    for finished in ["runs/z", "runs/in/y", "runs/a b"] {
        let found = state(finished);
        assert_eq!(found["state"], "finished", "{found}");
        assert_eq!(found["verdict"], "not yet");
        assert_eq!(found["kind"], "2 sample");
        // In the order in which they were made.
        let parts: Vec<_> = found["parts"].as_array().unwrap().clone();
        assert!(parts[0].as_str().unwrap().ends_with("zeta"), "{found}");
    }
    assert_eq!(state("runs/broken")["state"], "damaged");
    let killed = state("runs/killed");
    assert_eq!(killed["state"], "interrupted");
    assert!(killed["share"].as_f64().unwrap() < 0.5, "{killed}");
    let going = state("runs/going");
    assert_eq!(going["state"], "running");
    assert!(going["owner"].as_str().unwrap().starts_with("process "));
    assert!(
        shown.lines().next().unwrap().contains("begun (UTC)"),
        "{shown}"
    );
    assert!(shown.contains("interrupted at 0 %"), "{shown}");
    let sorted = place.json(&["ls", "--json", "--sort", "name"]);
    assert_eq!(sorted[0]["folder"], "runs/a b");
    assert!(place.refused(&["ls", "nowhere"]).contains("no such folder"));
    assert_eq!(
        place.output(&["ls", "--sort", "age"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_difference_is_the_settings_and_the_sign_of_compare() {
    let place = Place::new();
    place.run("runs/a", &[]);
    place.run("runs/b", &["--set", "leapfrog=2"]);
    let found = place.json(&["diff", "runs/a", "runs/b", "--json"]);
    let set = serde_json::json!({ "--set leapfrog": ["5", "2"] });
    assert_eq!(found["settings"], set);
    assert_eq!(found["texts"], serde_json::json!({}));
    assert_eq!(found["notes"], serde_json::json!([]));
    let own = serde_json::json!({ "sampler leapfrog": ["5", "2"] });
    for (part, name) in found["parts"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["zeta", "alpha"])
    {
        assert_eq!(part["settings"], own);
        assert_eq!(part["names"][0], name);
        let [a, b] = ["a", "b"].map(|r| format!("runs/{r}/{name}"));
        let compared = place.json(&["compare", &a, &b, "--json"]);
        let deviation = |of: &Value| of["means"][0]["others"][0]["deviation"].clone();
        assert!(deviation(&compared).as_f64().unwrap() != 0.0);
        assert_eq!(deviation(&part["runs"]), deviation(&compared));
    }
    // The other way round: the other sign.
    let back = place.json(&["diff", "runs/b", "runs/a", "--json"]);
    let deviation = |of: &Value| {
        let line = &of["parts"][0]["runs"]["means"][0]["others"][0];
        line["deviation"].as_f64().unwrap()
    };
    assert_eq!(deviation(&found), -deviation(&back));
    // Another seed is told once, another script line by line.
    let changed = SCRIPT.replace("dim: 3", "dim: 4");
    std::fs::write(place.0.join("s.rhai"), changed).unwrap();
    place.run("runs/c", &["--seed", "2"]);
    let said = place.said(&["diff", "runs/a", "runs/c"]);
    assert_eq!(said.matches("seed").count(), 1, "{said}");
    assert!(
        said.contains("-3   | let t = ") && said.contains("+3   | let t = "),
        "{said}"
    );
    assert!(
        said.contains("NOT YET: a, c; the differences above are not to be trusted"),
        "{said}"
    );
    let same = place.said(&["diff", "runs/a", "runs/a"]);
    assert!(same.contains("no setting differs"), "{same}");
}

#[test]
fn a_script_compares_with_the_verdicts_of_the_command() {
    let value = evaluate(
        "let t = target(potential::gaussian());
         let o = #{ steps: 40, chains: 2, every: 1 };
         let c = compare(sample(t, sampler::hmc(), o), sample(t, sampler::hmc(), o));
         #{ verdicts: c.verdicts, text: c.to_string() }",
    )
    .unwrap();
    assert_eq!(value["verdicts"], serde_json::json!(["not yet", "not yet"]));
    let text = value["text"].as_str().unwrap();
    assert!(
        text.ends_with("NOT YET: sample-1, sample-2; the differences above are not to be trusted"),
        "{text}"
    );
}

#[test]
fn only_runs_are_deleted_and_none_that_is_written() {
    let place = Place::new();
    for out in ["runs/a", "runs/b", "runs/c"] {
        place.run(out, &[]);
    }
    let there = |name: &str| place.0.join(name).exists();
    assert!(
        place
            .refused(&["rm", "runs", "--yes"])
            .contains("not the folder of a run")
    );
    assert!(
        place
            .refused(&["rm", "runs/none", "--yes"])
            .contains("no such folder")
    );
    assert!(place.refused(&["rm", "s.rhai", "--yes"]).contains("a file"));
    // Nobody can be asked here.
    assert!(place.refused(&["rm", "runs/a"]).contains("--yes"));
    assert!(
        place
            .said(&["rm", "runs/a", "--dry-run"])
            .contains("would be deleted")
    );
    // One that may not go keeps all.
    std::fs::write(place.0.join("runs/b/thesis.tex"), "x").unwrap();
    let said = place.refused(&["rm", "runs/a", "runs/b", "--yes"]);
    assert!(
        said.contains("something else in it ('thesis.tex')"),
        "{said}"
    );
    std::fs::create_dir(place.0.join("runs/c/mine")).unwrap();
    std::fs::write(place.0.join("runs/c/mine/notes.md"), "x").unwrap();
    assert!(place.refused(&["rm", "runs/c", "--yes"]).contains("'mine'"));
    // A name that is only like those of files that are being written.
    let [before, after] = ["mine", "mine.old-2020"].map(|m| place.0.join("runs/c").join(m));
    std::fs::rename(before, after).unwrap();
    assert!(
        place
            .refused(&["rm", "runs/c", "--yes"])
            .contains("'mine.old-2020'")
    );
    let going = place.started("runs/going");
    let said = place.refused(&["rm", "runs/a", "runs/going", "--yes"]);
    let part = place.refused(&["rm", "runs/going/sample-1", "--yes"]);
    end(going);
    assert!(
        said.contains("is writing here") && part.contains("is writing here"),
        "{said}{part}"
    );
    assert!(
        ["a", "b", "c", "going"]
            .iter()
            .all(|r| there(&format!("runs/{r}/")))
    );
    // A run twice, a part of one that goes too, and one that was killed.
    let all = [
        "rm",
        "runs/a",
        "runs/a/",
        "runs/a/zeta",
        "runs/going",
        "--yes",
    ];
    assert!(place.said(&all).contains("2 runs"));
    assert!(!there("runs/a") && !there("runs/going") && there("runs/b/thesis.tex"));
    assert_eq!(std::fs::read_dir(place.0.join("runs")).unwrap().count(), 2);
}

#[cfg(unix)]
#[test]
fn links_are_neither_followed_nor_deleted() {
    let place = Place::new();
    place.run("runs/a", &[]);
    place.run("elsewhere/b", &[]);
    let link = place.0.join("runs/link");
    std::os::unix::fs::symlink(place.0.join("elsewhere/b"), &link).unwrap();
    assert_eq!(place.json(&["ls", "--json"]).as_array().unwrap().len(), 1);
    assert!(
        place
            .refused(&["rm", "runs/link", "--yes"])
            .contains("this is a link")
    );
    assert!(link.is_symlink() && place.0.join("elsewhere/b/run.json").exists());
}

#[test]
fn tags_are_kept_found_and_taken_away() {
    let place = Place::new();
    place.run("runs/a", &["--tag", "pilot", "--tag", "width=8,x"]);
    place.run("runs/b", &["--tag", "pilot"]);
    place.run("runs/c", &[]);
    let tagged = |tags: &str| -> Vec<Value> {
        let all = place.json(&["ls", "--json", "--tag", tags]);
        let each = all.as_array().unwrap().iter();
        each.map(|f| f["folder"].clone()).collect()
    };
    assert_eq!(tagged("pilot"), ["runs/a", "runs/b"]);
    assert_eq!(tagged("pilot,x"), ["runs/a"]);
    assert!(
        place
            .said(&["tag", "runs/c", "late"])
            .contains("runs/c: late")
    );
    place.said(&["tag", "runs/a", "pilot", "--remove"]);
    assert_eq!(tagged("late"), ["runs/c"]);
    assert_eq!(tagged("pilot"), ["runs/b"]);
    assert!(
        place
            .refused(&["tag", "runs/a", "pilot", "--remove"])
            .contains("no tag 'pilot'")
    );
    assert!(
        place
            .refused(&["tag", "runs", "x"])
            .contains("not the folder of a run")
    );
    assert_eq!(
        place.output(&["tag", "runs/a", "two words"]).status.code(),
        Some(2)
    );
    assert!(place.said(&["show", "runs/b"]).contains("tags      pilot"));
    // Those of a resumed run stay, and it may get more.
    place.run("runs/b", &["--resume", "--tag", "again"]);
    assert_eq!(tagged("pilot,again"), ["runs/b"]);
    assert!(
        place
            .said(&["rm", "--tag", "again", "--yes"])
            .contains("1 run")
    );
    assert!(!place.0.join("runs/b").exists() && place.0.join("runs/a").exists());
}

/// A run that is finished stays so if it is not gone on with, because it would be another one.
#[test]
fn a_refused_resume_changes_nothing() {
    let place = Place::new();
    place.run("runs/a", &[]);
    let record = place.content("runs/a/run.json");
    let said = place.refused(&[
        "run",
        "s.rhai",
        "--quiet",
        "--out",
        "runs/a",
        "--resume",
        "--set",
        "leapfrog=7",
    ]);
    assert!(said.contains("other settings"), "{said}");
    assert_eq!(place.content("runs/a/run.json"), record);
    assert_eq!(
        place.json(&["ls", "runs/a", "--json"])[0]["state"],
        "finished"
    );
    let said = place.refused(&["run", "long.rhai", "--out", "runs/a", "--resume"]);
    assert!(
        said.contains("is of the script 's.rhai', not of 'long.rhai'"),
        "{said}"
    );
    let said = place.refused(&["tag", "runs/a/zeta", "best"]);
    assert!(said.contains("give the tag to that"), "{said}");
}

/// The option `resume` of verbs, in another script and from Rust.
#[test]
fn a_killed_run_is_continued_by_the_option_resume() {
    use ergodic::prelude::*;
    let place = Place::new();
    let script = |options: &str| {
        format!(
            "let t = target(potential::gaussian(#{{ dim: 3 }}));
            sample(t, sampler::sgld(#{{ step: 1e-2, gradient: gradient::full() }}), #{{ chains: 2, every: 1000, {options} }}).done"
        )
    };
    place
        .0
        .file("a.rhai", script("name: \"a\", steps: 1_000_000"));
    let on = "steps: 1_000_000, resume: param(\"run\", \"runs/k/a\")";
    place.0.file("on.rhai", script(on));
    place.0.file(
        "more.rhai",
        script("steps: 2_000_000, resume: \"runs/k/a\""),
    );
    place
        .0
        .file("other.rhai", script(on).replace("dim: 3", "dim: 4"));
    place.0.file(
        "sweep.rhai",
        script(on)
            .replace("sample(", "sweep(")
            .replace("chains", "temperatures: [1.0], chains"),
    );
    let arguments = [
        "run",
        "a.rhai",
        "--quiet",
        "--checkpoint",
        "0.1",
        "--out",
        "runs/k",
    ];
    let mut child = place.command(&arguments).spawn().unwrap();
    let begin = Instant::now();
    while !place
        .0
        .join("runs/k/a/checkpoint/previous.safetensors")
        .exists()
    {
        assert!(begin.elapsed() < Duration::from_secs(30), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = place.said(&["show", "runs/k"]);
    assert!(shown.contains("UNFINISHED at step"), "{shown}");

    for (other, why) in [
        ("more.rhai", "steps was 1000000, is 2000000"),
        ("other.rhai", "target was "),
        ("sweep.rhai", "kind was \"sample\", is \"sweep\""),
    ] {
        let said = place.refused(&["run", other, "--out", "runs/other", "--force"]);
        assert!(said.contains("--allow-write"), "{said}");
        let said = place.refused(&[
            "run",
            other,
            "--out",
            "runs/other",
            "--force",
            "--allow-write",
            "runs",
        ]);
        assert!(
            said.contains("other settings") && said.contains(why),
            "{said}"
        );
    }
    for (run, why) in [
        (
            "runs/nowhere",
            "option 'resume': runs/nowhere: there is no such folder",
        ),
        ("runs/k", "the runs are within: runs/k/a"),
    ] {
        let setting = format!("run={run}");
        let said = place.refused(&["run", "on.rhai", "--set", &setting]);
        assert!(said.contains(why), "{said}");
    }
    place.said(&["run", "a.rhai", "--quiet", "--out", "runs/whole"]);
    let whole = content(&place.0.join("runs/whole/a"));
    // The second time it is finished.
    for _ in 0..2 {
        let said = place.said(&["run", "on.rhai", "--json", "--allow-write", "runs"]);
        assert_eq!(said.trim(), "true");
        assert!(whole == content(&place.0.join("runs/k/a")));
    }
    let session = Settings::new(place.0.join("rust"));
    let target = Target::of_potential(potential::Gaussian::new().dim(3).build().unwrap());
    let target = target.run().unwrap();
    let sgld = sampler::Sgld::new().step(1e-2);
    let sgld = sgld.gradient(gradient::Full::new().build().unwrap());
    let of = sample(&target, sgld.build().unwrap());
    let of = of.chains(2).every(1000).steps(1_000_000);
    let run = of.resume(place.0.join("runs/k/a").display().to_string());
    assert!(run.run_in(&session).unwrap().done());
    assert!(whole == content(&place.0.join("runs/k/a")));
}

#[test]
fn what_is_finished_is_returned_by_the_option_resume() {
    let source = "let t = target(potential::gaussian(#{ dim: 3, examples: 100 }));
        let sgld = sampler::sgld(#{ step: 1e-3, gradient: gradient::full() });
        let made = |o| llc(t, sgld, #{ start: parameters([1, 1, 1]), steps: 200, halve: true } + o).run;
        let ladder = |o| exchange(t, sampler::hmc(), #{ temperatures: [1.0, 2.0], steps: 200, chains: 2 } + o);
        let all = [];
        for verb in [made, ladder] {
            let run = verb.call(#{});
            let again = verb.call(#{ resume: run.folder });
            all.push(again.folder == run.folder && again.seconds == run.seconds);
        }
        all.push(ladder.call(#{}).name);
        all";
    assert_eq!(
        evaluate(source).unwrap(),
        serde_json::json!([true, true, "exchange-2"])
    );
}

#[test]
fn force_replaces_only_what_a_new_run_has_begun_to_replace() {
    let place = Place::new();
    place.run("runs/a", &["--tag", "old"]);
    let before = place.content("runs/a/zeta/run.json");
    let record = place.content("runs/a/run.json");
    let again = ["run", "s.rhai", "--quiet", "--out", "runs/a"];
    let said = place.refused(&again);
    assert!(
        said.contains("--resume") && said.contains("--force"),
        "{said}"
    );
    // A script that ends before it has begun: nothing is lost, also of what it has written.
    for source in [
        "let x = ;",
        "nothing(1);",
        "plot::curve([1, 2], [1.0, 4.0]).save(\"x.svg\"); throw \"late\"",
        "let t = target(potential::gaussian()); sample(t, sampler::hmc(), #{ steps: 10, chains: 0 })",
    ] {
        place.0.file("bad.rhai", source);
        place.refused(&["run", "bad.rhai", "--out", "runs/a", "--force"]);
        assert_eq!(place.content("runs/a/zeta/run.json"), before, "{source}");
        assert_eq!(place.content("runs/a/run.json"), record, "{source}");
        let names = std::fs::read_dir(place.0.join("runs/a")).unwrap();
        let mut names: Vec<_> = names.flatten().map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(
            names,
            ["alpha", "run.json", "tags.json", "zeta"],
            "{source}"
        );
    }
    // One that fails after it has begun: both are there, and the next one that ends well replaces them.
    let source = SCRIPT.replace("let second", "throw \"late\"; let second");
    place.0.file("late.rhai", &source);
    let late = ["run", "late.rhai", "--out", "runs/a", "--force"];
    for _ in 0..2 {
        let said = place.refused(&late);
        assert!(said.contains("are in runs/a/.replaced until"), "{said}");
        assert_eq!(place.content("runs/a/.replaced/zeta/run.json"), before);
        assert!(!place.0.join("runs/a/alpha").exists());
    }
    let said = place.said(&["show", "runs/a"]);
    assert!(
        said.contains("what it replaces: ergodic show runs/a/.replaced"),
        "{said}"
    );
    let said = place.said(&["show", "runs/a/.replaced"]);
    assert!(said.contains("finished"), "{said}");
    place.said(&[&again[..], &["--force", "--seed", "2", "--tag", "new"]].concat());
    assert!(!place.0.join("runs/a/.replaced").exists());
    assert_ne!(place.content("runs/a/zeta/run.json"), before);
    let found = place.json(&["ls", "runs/a", "--json"]);
    assert_eq!(
        (&found[0]["seed"], &found[0]["tags"]),
        (&2.into(), &serde_json::json!(["new"]))
    );
    // Never over what is no run, nor over one that is being written.
    std::fs::create_dir(place.0.join("mine")).unwrap();
    std::fs::write(place.0.join("mine/thesis.tex"), "x").unwrap();
    let said = place.refused(&["run", "s.rhai", "--out", "mine", "--force"]);
    assert!(said.contains("it is not that of a run"), "{said}");
    let said = place.refused(&["run", "s.rhai", "--out", "runs", "--force"]);
    assert!(said.contains("it is not that of a run"), "{said}");
    let going = place.started("runs/going");
    let said = place.refused(&["run", "s.rhai", "--out", "runs/going", "--force"]);
    end(going);
    assert!(said.contains("another process (id "), "{said}");
    assert_eq!(
        place.output(&["run", "s.rhai", "--force"]).status.code(),
        Some(2)
    );
}

#[test]
fn what_a_killed_process_was_about_to_replace_comes_back() {
    let place = Place::new();
    place.run("runs/a", &[]);
    // As it is between the moment in which old results are set aside and the first checkpoint of the new ones.
    let aside = place.0.join("runs/a/.replaced");
    std::fs::create_dir(&aside).unwrap();
    for name in ["run.json", "zeta", "alpha"] {
        std::fs::rename(place.0.join("runs/a").join(name), aside.join(name)).unwrap();
    }
    let said = place.refused(&["run", "s.rhai", "--out", "runs/a"]);
    assert!(said.contains("not empty"), "{said}");
    assert!(place.0.join("runs/a/zeta/run.json").exists() && !aside.exists());
    // Killed while it set them aside: some are here, some there.
    let moving = place.0.join("runs/a/.replacing");
    std::fs::create_dir(&moving).unwrap();
    std::fs::rename(place.0.join("runs/a/zeta"), moving.join("zeta")).unwrap();
    place.refused(&["run", "s.rhai", "--out", "runs/a"]);
    assert!(place.0.join("runs/a/zeta/run.json").exists() && !moving.exists());
    // Killed when the new ones had begun: the next run that ends well there ends it.
    let new = place.started("runs/b");
    end(new);
    std::fs::rename(place.0.join("runs/a"), place.0.join("runs/b/.replaced")).unwrap();
    place.refused(&["run", "long.rhai", "--out", "runs/b"]);
    assert!(place.0.join("runs/b/.replaced/zeta/run.json").exists());
    place.run("runs/b", &["--force"]);
    assert!(!place.0.join("runs/b/.replaced").exists());
}

#[test]
fn a_grid_is_one_run_and_can_be_replaced() {
    let place = Place::new();
    place.run("runs/g", &["--grid", "leapfrog=2,3", "--tag", "grid"]);
    let all = place.json(&["ls", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    assert_eq!(
        (&all[0]["kind"], &all[0]["state"]),
        (&"grid of 2".into(), &"finished".into())
    );
    assert_eq!(all[0]["tags"], serde_json::json!(["grid"]));
    assert_eq!(
        place
            .json(&["ls", "runs/g", "--json"])
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let other = [
        "run",
        "s.rhai",
        "--quiet",
        "--out",
        "runs/g",
        "--grid",
        "leapfrog=4",
    ];
    assert!(place.refused(&other).contains("another --grid"));
    place.said(&[&other[..], &["--force"]].concat());
    let cells = place.json(&["ls", "runs/g", "--json"]);
    assert_eq!(cells.as_array().unwrap().len(), 1);
    assert!(!place.0.join("runs/g/.replaced").exists());
    assert!(place.said(&["rm", "runs/g", "--yes"]).contains("deleted"));
}

#[test]
fn an_index_leads_to_a_page_for_every_run() {
    let place = Place::new();
    for (out, started) in [("runs/z & co", 1_000), ("runs/a", 2_000)] {
        place.run(out, &["--tag", "pilot"]);
        dated(&place, out, started);
    }
    place.run("runs/grid", &["--grid", "leapfrog=2,3"]);
    place.said(&["report", "runs"]);
    let page = |path: &str| String::from_utf8(place.content(path)).unwrap();
    let index = page("runs/index.html");
    let at = |text: &str| {
        index
            .find(text)
            .unwrap_or_else(|| panic!("no {text} in {index}"))
    };
    assert!(at("href=\"z%20%26%20co/report.html\">z &amp; co</a>") < at("href=\"a/report.html\""));
    at("href=\"grid/index.html\"");
    at("<span class=\"tag\">pilot</span>");
    assert!(!index.replace("http-equiv", "").contains("http") && index.len() < 40_000);
    let own = page("runs/a/report.html");
    assert!(own.contains("href=\"../index.html\">← all runs</a>"));
    // In the order in which they were run, not of their names.
    assert!(own.find("zeta").unwrap() < own.find("alpha").unwrap());
    assert!(page("runs/grid/index.html").contains("leapfrog=2"));
    // Elsewhere, to be sent.
    place.said(&["report", "runs", "--out", "site/all.html"]);
    let index = page("site/all.html");
    assert!(
        index.contains("href=\"all-runs/001-z---co.html\""),
        "{index}"
    );
    assert!(page("site/all-runs/001-z---co.html").contains("href=\"../all.html\""));
    // That of one run is as it was.
    place.said(&["report", "runs/a", "--out", "one.html"]);
    assert!(!page("one.html").contains("all runs"));
    std::fs::create_dir(place.0.join("empty")).unwrap();
    assert!(
        place
            .refused(&["report", "empty"])
            .contains("no run in this folder")
    );
}

#[test]
fn scripts_and_rust_see_the_same_list() {
    let place = Place::new();
    place.run("runs/a", &["--tag", "pilot"]);
    place.0.file(
        "list.rhai",
        "let all = runs(\"runs\").to_array(); #{ folder: all[0].folder, tags: all[0].tags, draws: open(all[0].parts[0]).draws(\"cost\", 0)[0].len(), same: runs().to_array() == all }",
    );
    let found = place.json(&["run", "list.rhai", "--json"]);
    assert_eq!(found["folder"], "runs/a");
    assert_eq!(found["tags"], serde_json::json!(["pilot"]));
    assert!(found["draws"].as_u64().unwrap() > 10);
    let folder = place.0.join("runs").display().to_string();
    let runs = ergodic::prelude::runs(folder.as_str()).run().unwrap();
    assert_eq!(runs.all.len(), 1);
    assert_eq!(runs.all[0].tags, ["pilot"]);
    assert!(!place.0.join("runs/list").exists(), "a list is no result");
}

/// Files of kept draws come before the first checkpoint.
#[test]
fn what_a_process_leaves_that_is_killed_before_its_first_checkpoint_can_go_on_or_be_replaced() {
    // Nor is there a record of the script, if it is the first of its runs.
    for (how, first) in [
        ("--resume", false),
        ("--force", false),
        ("--resume", true),
        ("--force", true),
    ] {
        let scratch = Scratch::new();
        let script = scratch.file(
            "s.rhai",
            "let t = target(potential::gaussian(#{ dim: 3 })); sample(t, sampler::hmc(), #{ steps: 200, chains: 2, every: 5, keep: 5, name: \"it\" })",
        );
        let out = scratch.join("out");
        let run = |more: &[&str]| {
            let mut command = ergodic();
            command
                .args(["run", "--quiet", "--out"])
                .args([&out, &script]);
            command.args(more).output().unwrap()
        };
        assert!(run(&[]).status.success());
        let whole = content(&out.join("it"));
        for later in [
            "run.json",
            "checkpoint",
            "trace.zarr",
            "weights.safetensors",
        ] {
            let path = out.join("it").join(later);
            match path.is_dir() {
                true => std::fs::remove_dir_all(path).unwrap(),
                false => std::fs::remove_file(path).unwrap(),
            }
        }
        if first {
            std::fs::remove_file(out.join("run.json")).unwrap();
        }
        let refused = run(&[]);
        let said = text(&refused);
        assert!(
            !refused.status.success() && said.contains("--resume") && said.contains("--force"),
            "{said}"
        );
        let again = run(&[how]);
        assert!(again.status.success(), "{how}: {}", text(&again));
        assert!(content(&out.join("it")) == whole, "{how}");
    }
}

/// A run that has ended and goes on for more has not ended, however it stops; with what was asked for at first it ends as it did.
#[test]
fn what_goes_on_has_not_ended() {
    let place = Place::new();
    let script = "let t = target(potential::gaussian(#{ dim: 3 }));
        sample(t, sampler::hmc(), #{ steps: 400, chains: 2, until: #{ at_most: param(\"most\", 1000), ess: 1e9 } })";
    place.0.file("more.rhai", script);
    let run = [
        "run",
        "more.rhai",
        "--quiet",
        "--threads",
        "1",
        "--out",
        "o",
    ];
    place.said(&run);
    let (out, whole) = (
        place.0.join("o/sample-1"),
        content(&place.0.join("o/sample-1")),
    );
    for signal in ["-KILL", "-INT"] {
        let mut command = place.command(&run);
        command.args(["--resume", "--set", "most=1000000000"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let begin = Instant::now();
        while out.join("run.json").exists() {
            assert!(begin.elapsed() < Duration::from_secs(30), "it is as it was");
            std::thread::sleep(Duration::from_millis(5));
        }
        let id = child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
        child.wait().unwrap();
        let listed = &place.json(&["ls", "--json", "o"])[0];
        assert_eq!(listed["state"], "interrupted", "{signal}: {listed}");
        let shown = place.said(&["show", "o"]);
        assert!(!shown.contains("finished"), "{signal}: {shown}");
        if signal == "-KILL" {
            place.said(&[&run[..], &["--resume"]].concat());
            assert!(content(&out) == whole);
        }
    }
}

/// Vectors are drawn, too: the chains agree least in a component, which has a name with a dot.
#[test]
fn components_are_drawn_by_their_names() {
    let place = Place::new();
    let script = "let t = target(potential::gaussian(#{ dim: 2 }));
        let r = sample(t, sampler::hmc(), #{ steps: 400, every: 1, chains: 4, observe: [|s| #{ \"layer.0\": s.params.abs().max(), b: s.step }] });
        let all = r.trace(\"closure_1\", 2);
        let one = r.trace(\"closure_1_layer.0\", 2);
        plot::traces(r, \"closure_1_layer.0\");
        plot::histogram(r, \"closure_1_layer.0\");
        plot::ranks(r, \"closure_1_layer.0\", 0);
        plot::sweep(r, \"closure_1_layer.0\");
        [all.map(|x| x[1]) == one, autocorrelation(r, \"closure_1_layer.0\", #{ lags: 5 }).time[0] > 0.0, all.len()]";
    place.0.file("vector.rhai", script);
    let found = place.json(&["run", "vector.rhai", "--json", "--quiet", "--out", "v"]);
    assert_eq!(found, serde_json::json!([true, true, 400]));
    let drawn = place.said(&["plot", "v"]);
    assert!(drawn.contains("ranks-closure-1-"), "{drawn}");
    place.said(&["report", "v", "--out", "v.html"]);
    let report = std::fs::read_to_string(place.0.join("v.html")).unwrap();
    assert!(!report.contains("cannot be drawn") && report.contains("<svg"));
}

/// A run whose folder is moved away ends with a message, writes nothing at the old place, and goes on at the new one.
#[test]
fn a_folder_that_is_gone_is_not_made_again() {
    let place = Place::new();
    let mut child = place.started("o");
    std::fs::rename(place.0.join("o"), place.0.join("moved")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!place.0.join("o").exists());
    let listed = &place.json(&["ls", "--json", "moved"])[0];
    assert_eq!(listed["state"], "interrupted", "{listed}");
    let arguments = ["run", "long.rhai", "--quiet", "--threads", "1", "--resume"];
    let mut command = place.command(&arguments);
    command.args(["--max-time", "1", "--out", "moved"]);
    let said = text(&command.output().unwrap());
    assert!(said.contains("1 seconds are over"), "{said}");
}
