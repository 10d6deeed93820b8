//! Files that are damaged or gone: found where they are used, named, and never passed over in silence.

use super::folders::content;
use super::support::{Scratch, ergodic, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn run(script: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = ergodic();
    command.args(["run", "--checkpoint", "0.01", "--out"]);
    command.arg(out).arg(script).args(more).output().unwrap()
}

/// Start it, and kill it when it has saved twice.
fn killed(script: &Path, out: &Path, name: &str) {
    let mut command = ergodic();
    command.args(["run", "--quiet", "--checkpoint", "0.01", "--out"]);
    command.arg(out).arg(script).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let saved = out.join(name).join("checkpoint/previous.safetensors");
    while !saved.exists() {
        assert!(child.try_wait().unwrap().is_none(), "{name} has ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.len() - 9;
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn ergodic_says(arguments: &[&str], folder: &Path) -> String {
    text(&ergodic().args(arguments).arg(folder).output().unwrap())
}

/// One of each kind that has a checkpoint: the script, the name of what it makes, what a note says of the place.
fn kinds() -> [(String, &'static str, &'static str); 3] {
    let gaussian =
        "let t = target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::gaussian(1.0) });";
    let net =
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 40 }));";
    [
        (
            format!(
                "{gaussian} print(sample(t, sampler::hmc(#{{ leapfrog: 3 }}), #{{ steps: 200_000, every: 10_000, name: \"it\" }}).summary());"
            ),
            "it",
            "at step ",
        ),
        (
            format!(
                "{net} print(train(t, optimizer::adam(#{{ epochs: 400 }}), #{{ name: \"it\" }}));"
            ),
            "it",
            "at epoch ",
        ),
        (
            format!(
                "{gaussian} print(smc(t, sampler::hmc(#{{ leapfrog: 3 }}), #{{ particles: 400, populations: 4, moves: 300, ess: 0.97, name: \"it\" }}));"
            ),
            "it",
            "at ",
        ),
    ]
}

#[test]
#[ignore = "long: tests/run"]
fn going_back_to_the_older_checkpoint_is_said_here_and_in_the_record() {
    for (source, name, at) in kinds() {
        let scratch = Scratch::new();
        let (script, out) = (scratch.file("s.rhai", &source), scratch.join("out"));
        killed(&script, &out, name);
        flip(&out.join(name).join("checkpoint/current.safetensors"));
        let shown = ergodic_says(&["show"], &out);
        assert!(
            shown.contains("NOTE: this is the older checkpoint") && shown.contains(at),
            "{shown}"
        );
        // Quiet or not.
        let output = run(&script, &out, &["--resume", "--quiet"]);
        assert!(output.status.success(), "{}", text(&output));
        let parts = [
            &format!("NOTE: 'it' resumed from its older checkpoint, {at}"),
            "current.safetensors is damaged",
        ];
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(parts.iter().all(|p| said.contains(*p)), "{said}");
        // In the summary that the script has printed, in the record, and whenever it is shown again.
        let record = std::fs::read_to_string(out.join(name).join("run.json")).unwrap();
        let shown = ergodic_says(&["show"], &out);
        for place in [
            String::from_utf8_lossy(&output.stdout).into_owned(),
            record,
            shown,
        ] {
            assert!(
                place.contains("resumed from its older checkpoint"),
                "{place}"
            );
        }
    }
}

#[test]
fn what_had_begun_does_not_begin_again_in_silence() {
    let scratch = Scratch::new();
    for (k, (source, name, _)) in kinds().into_iter().enumerate() {
        let script = scratch.file(&format!("{k}.rhai"), &source);
        let out = scratch.join(format!("{k}"));
        killed(&script, &out, name);
        let folder = out.join(name).join("checkpoint");
        for file in ["current.safetensors", "previous.safetensors"] {
            std::fs::remove_file(folder.join(file)).unwrap();
        }
        let output = run(&script, &out, &["--resume"]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("no valid checkpoint") && said.contains("to start afresh"),
            "{said}"
        );
        assert!(!out.join(name).join("run.json").exists(), "{said}");
    }
    // Ended, and its checkpoint gone.
    let script = scratch.file("s.rhai", "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 20, every: 1, name: \"it\" })");
    let out = scratch.join("ended");
    assert!(run(&script, &out, &[]).status.success());
    std::fs::remove_dir_all(out.join("it/checkpoint")).unwrap();
    let output = run(&script, &out, &["--resume"]);
    assert!(
        text(&output).contains("the checkpoint is gone") && !output.status.success(),
        "{}",
        text(&output)
    );
}

/// Kept draws are nowhere else: a run that goes on, or a merge, must not make their files again without them.
#[test]
#[ignore = "long: tests/run"]
fn kept_draws_that_are_gone_are_missed() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "s.rhai",
        "let r = sample(target(potential::gaussian(#{ dim: 2 })), sampler::hmc(#{ leapfrog: 3 }), #{ chains: 2, steps: 200_000, every: 10_000, burn_in: 0, keep: 10, name: \"it\" });
         print(r.kept(\"w\", 1).mean());",
    );
    let file = "it/draws.zarr/w/c/0/0/0";
    let out = scratch.join("killed");
    killed(&script, &out, "it");
    std::fs::remove_file(out.join(file)).unwrap();
    let done = scratch.join("done");
    assert!(run(&script, &done, &[]).status.success());
    std::fs::remove_file(done.join(file)).unwrap();
    let shards = scratch.join("shards");
    for shard in ["1/2", "2/2"] {
        // Chain 1 has no draws in the first shard, of which the script asks.
        let _ = run(&script, &shards, &["--shard", shard]);
    }
    std::fs::remove_file(shards.join("shard-2-of-2").join(file)).unwrap();
    for (folder, how) in [
        (&out, &["--resume"][..]),
        (&done, &["--resume"]),
        (&shards, &["--merge", "2"]),
    ] {
        let doctor = ergodic_says(&["doctor", "--check"], folder);
        let output = run(&script, folder, how);
        for said in [doctor, text(&output)] {
            assert!(said.contains("0/0/0' is missing"), "{how:?}: {said}");
        }
        assert_eq!(output.status.code(), Some(1));
    }
    assert!(!out.join(file).exists() && !done.join(file).exists());
    let shown = ergodic_says(&["show"], &done.join("it"));
    assert!(
        shown.contains("is missing, with draws that were made"),
        "{shown}"
    );
    // One wrong number is an error, and no defect of the program.
    let metadata = shards.join("shard-1-of-2/it/draws.zarr/zarr.json");
    let damaged = std::fs::read_to_string(&metadata).unwrap();
    let damaged = damaged.replace("\"chains\": 2", "\"chains\": 4000000000000000000");
    std::fs::write(&metadata, damaged).unwrap();
    for how in [&["show"][..], &["doctor", "--check"]] {
        let said = ergodic_says(how, metadata.ancestors().nth(2).unwrap());
        let named = said.contains("draws.zarr/zarr.json' is damaged");
        assert!(named && !said.contains("panicked"), "{how:?}: {said}");
    }
    // Of an array that is not what the whole tree says of it other programs read something else.
    let own = done.join("it/trace.zarr/posterior/chain/zarr.json");
    let damaged = std::fs::read_to_string(&own)
        .unwrap()
        .replace("int64", "int32");
    std::fs::write(&own, damaged).unwrap();
    let said = ergodic_says(&["doctor", "--check"], &done);
    assert!(said.contains("chain/zarr.json' was damaged"), "{said}");
}

/// Draws are kept before the first checkpoint; a run that begins there has other chains, or keeps none.
#[test]
fn draws_of_a_run_that_was_never_saved_are_not_those_of_the_next() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "s.rhai",
        "let o = #{ chains: param(\"chains\", 3), steps: 200, every: 1, name: \"it\" };
         if param(\"keep\", true) { o.keep = 10; }
         print(sample(target(potential::gaussian(#{ dim: 2 })), sampler::hmc(), o).summary());",
    );
    assert!(run(&script, &scratch.join("first"), &[]).status.success());
    let draws = content(&scratch.join("first/it/draws.zarr"));
    for (k, setting) in ["chains=2", "chains=40", "keep=false"].iter().enumerate() {
        let [alone, after] = ["alone", "after"].map(|name| scratch.join(format!("{name}-{k}")));
        for (file, bytes) in &draws {
            scratch.file(&format!("after-{k}/it/draws.zarr/{file}"), bytes);
        }
        for (out, more) in [(&alone, &[][..]), (&after, &["--resume"])] {
            let output = run(&script, out, &[&["--set", setting], more].concat());
            assert!(output.status.success(), "{setting}: {}", text(&output));
            let said = ergodic_says(&["doctor", "--check"], out);
            assert!(said.contains("damaged    0"), "{setting}: {said}");
        }
        let [alone, after] = [alone, after].map(|out| out.join("it/draws.zarr"));
        assert_eq!(after.exists(), alone.exists(), "{setting}");
        assert!(
            !alone.exists() || content(&alone) == content(&after),
            "{setting}"
        );
    }
}

#[test]
fn a_flipped_bit_in_weights_or_traces_is_found() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "s.rhai",
        r#"
        let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 5 }));
        let a = train(t, optimizer::adam(#{ epochs: 4 }), #{ checkpoints: [2], name: "training" });
        let r = sample(t, sampler::hmc(), #{ steps: 20, every: 1, start: a.checkpoint(2), name: "run" });
    "#,
    );
    let out = scratch.join("out");
    assert!(run(&script, &out, &[]).status.success());
    let open = scratch.file(
        "open.rhai",
        format!("open({:?}).summary()", out.join("run").to_str().unwrap()),
    );
    let opened = || text(&run(&open, &scratch.join("opened"), &[]));
    let clean = [ergodic_says(&["show"], &out), opened()];
    assert!(
        clean.iter().all(|said| !said.contains("damaged")),
        "{clean:?}"
    );
    let files: [PathBuf; 2] =
        ["weights.safetensors", "trace.zarr/posterior/cost/c/0/0"].map(|f| out.join("run").join(f));
    for file in &files {
        let whole = std::fs::read(file).unwrap();
        flip(file);
        for said in [ergodic_says(&["show"], &out), opened()] {
            let named = said.contains("NOTE") && said.contains(file.to_str().unwrap());
            assert!(
                named && said.contains("--resume rewrites this file"),
                "{said}"
            );
        }
        assert!(run(&script, &out, &["--resume"]).status.success());
        assert!(
            std::fs::read(file).unwrap() == whole,
            "{} is not as it was",
            file.display()
        );
    }
    // Nothing makes these again.
    let epoch = out.join("training/weights/chain-0-epoch-2.safetensors");
    flip(&epoch);
    let output = run(&script, &out, &["--resume"]);
    let said = text(&output);
    assert!(
        output.status.code() == Some(1) && said.contains(epoch.to_str().unwrap()),
        "{said}"
    );
    assert!(
        said.contains("its checksum is") && said.contains("to train afresh"),
        "{said}"
    );
    // Whatever loads them finds it.
    let load = scratch.file(
        "load.rhai",
        format!(
            "model::mlp(#{{ layers: [64, 10] }}).load({:?})",
            epoch.to_str().unwrap()
        ),
    );
    let said = text(&run(&load, &scratch.join("loaded"), &[]));
    assert!(said.contains("it is damaged"), "{said}");
}

#[test]
fn what_a_run_remembers_is_shown_while_its_numbers_are_as_they_were() {
    let scratch = Scratch::new();
    let script = scratch.file("s.rhai", "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, every: 1, name: \"it\" })");
    let out = scratch.join("out");
    assert!(run(&script, &out, &[]).status.success());
    // Above it is how many bytes there are.
    let show = || {
        let said = ergodic_says(&["show"], &out);
        said[said.find("sample 'it'").unwrap()..].to_string()
    };
    let (saved, json) = (out.join("it/checkpoint"), ["show", "--json"]);
    let (shown, numbers) = (show(), ergodic_says(&json, &out));
    // It is read, not made again.
    let file = saved.join("summary.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("worst R̂", "seen before")).unwrap();
    assert!(show() != shown && show().replace("seen before", "worst R̂") == shown);
    // Without it, and where the numbers are others, it is.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(show(), shown);
    assert_eq!(ergodic_says(&json, &out), numbers);
    std::fs::write(&file, text.replace("worst R̂", "seen before")).unwrap();
    flip(&saved.join("lists-0"));
    let older = ergodic_says(&["show"], &out);
    assert!(
        older.contains("NOTE: this is the older checkpoint"),
        "{older}"
    );
    assert!(
        older.contains("lists-0") && !older.contains("seen before"),
        "{older}"
    );
    // What was lost is made again, to the last bit.
    let trace = out.join("it/trace.zarr/posterior/cost/c/0/0");
    let whole = std::fs::read(&trace).unwrap();
    assert!(run(&script, &out, &["--resume"]).status.success());
    assert!(show().contains("worst R̂"));
    assert!(std::fs::read(&trace).unwrap() == whole);
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_whose_disk_is_full_goes_on_where_it_was_saved() {
    let scratch = Scratch::new();
    let script = scratch.file("s.rhai", "sample(target(potential::gaussian(#{ dim: 5 })), sampler::hmc(), #{ chains: 8, steps: 6000, every: 1, name: \"it\" })");
    let trace =
        |out: &str| std::fs::read(scratch.join(out).join("it/trace.zarr/posterior/cost/c/0/0"));
    assert!(run(&script, &scratch.join("whole"), &[]).status.success());
    let whole = trace("whole").unwrap();
    // No file may be longer than this: a signal that is ignored becomes an error, as of a disk without space.
    for (out, blocks) in [("a", 8), ("b", 100), ("c", 400), ("d", 1000)] {
        let mut command = Command::new("sh");
        let full = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" run \"$1\" --out \"$2\" --checkpoint 0.05"
        );
        command.args(["-c", &full, env!("CARGO_BIN_EXE_ergodic")]);
        let output = command
            .arg(&script)
            .arg(scratch.join(out))
            .output()
            .unwrap();
        let said = text(&output);
        assert!(
            output.status.code() == Some(1) && said.contains("File too large"),
            "{said}"
        );
        assert!(
            said.contains("check the disk") && !said.contains("panicked"),
            "{said}"
        );
        let again = run(&script, &scratch.join(out), &["--resume"]);
        assert!(again.status.success(), "{blocks}: {}", text(&again));
        assert!(trace(out).unwrap() == whole, "{blocks}");
    }
}

#[test]
#[ignore = "long: tests/run"]
fn what_a_script_writes_stays_within_its_results() {
    let scratch = Scratch::new();
    let run_ = "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 20, every: 1 })";
    let writers = [
        ("tensor([1.0]).save(NAME)".to_string(), "npy"),
        ("tensor([1.0]).save(NAME)".into(), "safetensors"),
        (
            "tensor::save(NAME, #{ a: tensor([1.0]) })".into(),
            "safetensors",
        ),
        (
            "llc_problem(#{ widths: [2, 2], rank: 1 }).save(NAME)".into(),
            "safetensors",
        ),
        ("plot::curve([1, 2], [1, 2]).save(NAME)".into(), "svg"),
        (format!("{run_}.report(NAME)"), "html"),
    ];
    for (k, (writer, ending)) in writers.iter().enumerate() {
        let run_with = |name: &str, out: &str, more: &[&str]| {
            let script = scratch.file("s.rhai", writer.replace("NAME", &format!("{name:?}")));
            run(&script, &scratch.join(out), &[&["--quiet"], more].concat())
        };
        let write = |name: &str, out: &str| run_with(name, out, &[]);
        for name in [
            format!("../../x.{ending}"),
            format!("a/../../../x.{ending}"),
            String::new(),
        ] {
            let output = write(&name, &format!("{k}-{}", name.len()));
            assert!(
                output.status.code() == Some(1)
                    && text(&output).contains("but must be a name within"),
                "{writer} {name}: {}",
                text(&output)
            );
        }
        let far = scratch.join(format!("far-{k}/x.{ending}"));
        let elsewhere = far.parent().unwrap().to_str().unwrap();
        // An absolute path, where it is not allowed.
        let output = write(far.to_str().unwrap(), &format!("not-{k}"));
        let said = text(&output);
        assert!(
            output.status.code() == Some(1) && said.contains("--allow-write"),
            "{said}"
        );
        assert!(!far.exists());
        for name in [
            format!("deep/x.{ending}"),
            far.to_str().unwrap().to_string(),
        ] {
            let more = ["--allow-write", elsewhere];
            let output = run_with(&name, &format!("good-{k}-{}", name.len()), &more);
            assert!(
                output.status.success(),
                "{writer} {name}: {}",
                text(&output)
            );
        }
        assert!(far.exists());
    }
    assert!(!scratch.join("x.npy").exists());
}

/// Each file of a run in turn: damage is found, named, and mended by what is said of it.
#[test]
fn what_is_damaged_is_found_and_can_be_had_again_as_is_said() {
    let scratch = Scratch::new();
    let source = "let t = target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::gaussian(1.0) });
        print(sample(t, sampler::hmc(), #{ steps: 400, every: 1, keep: 10, name: \"it\" }).summary());";
    let (script, out) = (scratch.file("s.rhai", source), scratch.join("out"));
    assert!(run(&script, &out, &[]).status.success());
    let checked = || {
        let output = ergodic()
            .args(["doctor", "--check"])
            .arg(&out)
            .output()
            .unwrap();
        (output.status.code(), text(&output))
    };
    let is_sound = || {
        let (code, said) = checked();
        assert!(code == Some(0) && said.contains("damaged    0"), "{said}");
    };
    is_sound();
    let run_folder = out.join("it");
    let chunk = largest(&run_folder.join("trace.zarr"));
    let again = "--resume writes it anew";
    let files = [
        (chunk, "it/trace.zarr", again),
        (
            run_folder.join("weights.safetensors"),
            "it/weights.safetensors",
            again,
        ),
        (
            run_folder.join("checkpoint/current.safetensors"),
            "it/checkpoint/current.safetensors",
            "goes on from the checkpoint before it",
        ),
        (
            largest(&run_folder.join("draws.zarr")),
            "it/draws.zarr",
            "from a backup, or run again",
        ),
    ];
    for (file, name, remedy) in files {
        let before = std::fs::read(&file).unwrap();
        flip(&file);
        let (code, said) = checked();
        assert_eq!(code, Some(1), "{said}");
        let parts = ["damaged    1", &format!("\n{name}: "), remedy];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        match remedy == again {
            true => {
                let output = run(&script, &out, &["--resume"]);
                assert!(output.status.success(), "{}", text(&output));
                assert_eq!(std::fs::read(&file).unwrap(), before, "{name}");
            }
            false => std::fs::write(&file, before).unwrap(),
        }
        is_sound();
    }
}

/// The largest file below a folder.
fn largest(folder: &Path) -> PathBuf {
    let (mut waiting, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = waiting.pop() {
        for path in folder.read_dir().unwrap().map(|e| e.unwrap().path()) {
            match path.is_dir() {
                true => waiting.push(path),
                false => found.push((path.metadata().unwrap().len(), path)),
            }
        }
    }
    found.into_iter().max().unwrap().1
}

/// Folders of the first format, as they were left by a run that had ended and by one that was killed.
fn earlier(scratch: &Scratch) -> PathBuf {
    let packed = super::support::root().join("tests/data/format-1.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(packed).arg("-C").arg(scratch.join(""));
    assert!(tar.status().unwrap().success());
    scratch.join("format-1")
}

#[test]
fn runs_of_earlier_versions_are_read_and_go_on() {
    let scratch = Scratch::new();
    let folder = earlier(&scratch);
    let shown = ergodic_says(&["show"], &folder.join("done"));
    assert!(
        shown.contains("swaps of alternating pairs") && shown.contains("closure_2"),
        "{shown}"
    );
    let checked = ergodic_says(&["doctor", "--check"], &folder.join("done"));
    assert!(checked.contains("damaged    0"), "{checked}");
    let resume = |name: &str| {
        let mut command = ergodic();
        command.args([
            "run",
            "script.rhai",
            "--threads",
            "1",
            "--quiet",
            "--resume",
            "--out",
            name,
        ]);
        command.current_dir(&folder).output().unwrap()
    };
    let resumed = resume("killed");
    assert!(resumed.status.success(), "{}", text(&resumed));
    // The same program on the same machine gives the same bytes; another machine other last bits.
    let [a, b] = ["done", "killed"].map(|name| super::folders::content(&folder.join(name)));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    // Those of a version that is to come are refused, and stay as they are.
    let record = folder.join("done/run.json");
    let later = std::fs::read_to_string(&record).unwrap();
    let later = later.replacen("\"format\": 1", "\"format\": 2", 1);
    std::fs::write(&record, &later).unwrap();
    let refused = resume("done");
    assert!(
        text(&refused).contains("newer version of ergodic"),
        "{}",
        text(&refused)
    );
    assert_eq!(std::fs::read_to_string(&record).unwrap(), later);
}

/// The package of tokenizers panics at some files: that is told as what it is, and not as a defect.
#[test]
fn a_file_at_which_a_package_panics_is_only_damaged() {
    let scratch = Scratch::new();
    let whole = std::fs::read_to_string("tests/data/pretrained/tokenizer.json").unwrap();
    let at = whole.find(r#""decoder": {"#).unwrap() + 12;
    // Half of a pair.
    let damaged = format!(r#"{}"a": "\ud800", {}"#, &whole[..at], &whole[at..]);
    scratch.file("tokenizer.json", &damaged);
    scratch.file("text.txt", "to be or not to be");
    let script = scratch.file(
        "s.rhai",
        r#"dataset::text("text.txt", #{ tokenizer: "tokenizer.json", context: 4 })"#,
    );
    let said = text(
        &ergodic()
            .arg("run")
            .arg(&script)
            .current_dir(script.parent().unwrap())
            .output()
            .unwrap(),
    );
    assert!(
        said.contains("is no tokenizer.json: it cannot be read"),
        "{said}"
    );
    assert!(!said.contains("defect"), "{said}");
}
