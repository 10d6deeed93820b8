//! Grids of settings: in a script, and of whole scripts, one after the other, side by side, in shards and under mpirun.

use super::folders::content;
use super::support::{Scratch, ergodic, evaluate, text};
use std::path::Path;
use std::process::Output;

const SCRIPT: &str = r#"
    let width = param("width", 4);
    let lambda = param("lambda", 1.0);
    let name = param("act", "relu");
    let data = dataset::digits(#{ per_class: 5 });
    let t = target(model::mlp(#{ layers: [64, width, 10], activation: name }), data, #{ prior: prior::l2(lambda) });
    let r = sample(t, sampler::sgld(#{ step: 0.01, batch: 10 }), #{ temperature: 1e-4, steps: 200, chains: 2, every: 10 });
    let s = r.summary();
    #{ cost: s.cost, norm2: s.norm2 }
"#;

fn grid(scratch: &Scratch, out: &str, more: &[&str]) -> Output {
    let script = scratch.join("script.rhai");
    if !script.exists() {
        scratch.file("script.rhai", SCRIPT);
    }
    let out = scratch.join(out);
    let mut command = ergodic();
    command.args([
        "run",
        script.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--threads",
        "1",
    ]);
    command.args(more).output().unwrap()
}

fn cells(scratch: &Scratch, out: &str) -> String {
    std::fs::read_to_string(scratch.join(out).join("cells.csv")).unwrap()
}

/// 3 × 4 × 5 cells: the same table whoever runs them, and whatever was interrupted.
#[test]
#[ignore = "long: tests/run"]
fn one_process_and_shards_have_the_same_table() {
    let scratch = Scratch::new();
    let activations = [
        "--grid",
        "width=2,3,4",
        "--grid",
        "lambda=1,3,10,30",
        "--grid",
        "act=relu,tanh,gelu,logistic,identity",
    ];
    let one = grid(
        &scratch,
        "one",
        &[&activations[..], &["--jobs", "2"]].concat(),
    );
    assert!(one.status.success(), "{}", text(&one));
    let whole = cells(&scratch, "one");
    assert_eq!(whole.lines().count(), 61);
    assert!(
        whole.starts_with("width,lambda,act,cost,norm2\n2,1,relu,"),
        "{whole}"
    );
    std::thread::scope(|s| {
        for k in 1..=4 {
            let (scratch, activations) = (&scratch, &activations);
            s.spawn(move || {
                let shard = format!("{k}/4");
                let done = grid(
                    scratch,
                    "four",
                    &[&activations[..], &["--shard", &shard, "--quiet"]].concat(),
                );
                assert!(done.status.success(), "{}", text(&done));
            });
        }
    });
    let merged = grid(
        &scratch,
        "four",
        &[&activations[..], &["--merge", "4"]].concat(),
    );
    assert!(merged.status.success(), "{}", text(&merged));
    assert_eq!(cells(&scratch, "four"), whole);
    // A cell that is gone, and one that was begun, are found out about and run again.
    let cell = |name: &str| scratch.join("one").join(name);
    std::fs::remove_dir_all(cell("width=3,lambda=10,act=gelu")).unwrap();
    std::fs::remove_file(cell("width=4,lambda=1,act=relu").join("run.json")).unwrap();
    let unasked = grid(&scratch, "one", &activations);
    assert!(
        text(&unasked).contains("go on with --resume"),
        "{}",
        text(&unasked)
    );
    let again = grid(&scratch, "one", &[&activations[..], &["--resume"]].concat());
    assert!(
        text(&again).contains("58 of 60 cells have ended before"),
        "{}",
        text(&again)
    );
    assert_eq!(cells(&scratch, "one"), whole);
}

#[test]
fn what_is_wrong_with_a_grid_is_said() {
    let scratch = Scratch::new();
    for (arguments, said) in [
        (
            &["--grid", "widht=2"][..],
            "--grid widht: the script has no such parameter; did you mean 'width'?",
        ),
        (
            &["--grid", "width=2,3", "--set", "width=3"],
            "--grid width: this parameter is set twice",
        ),
        (
            &["--grid", "seed=x"],
            "--grid seed=x: expected whole numbers",
        ),
        (&["--jobs", "2"], "--grid"),
        (
            &["--grid", "width=2", "--merge", "3"],
            "there is no grid in this folder",
        ),
    ] {
        let found = grid(&scratch, "wrong", arguments);
        assert!(
            !found.status.success() && text(&found).contains(said),
            "{arguments:?}\n{}",
            text(&found)
        );
    }
    // One cell fails, the others do not.
    let mixed = grid(&scratch, "mixed", &["--grid", "act=relu,none"]);
    let said = text(&mixed);
    assert!(
        !mixed.status.success() && said.contains("1 cell failed") && said.contains("act = none"),
        "{said}"
    );
    assert!(
        cells(&scratch, "mixed").contains("\nrelu,"),
        "{}",
        cells(&scratch, "mixed")
    );
    // The same folder with another grid.
    let other = grid(&scratch, "mixed", &["--grid", "act=relu", "--resume"]);
    assert!(
        text(&other).contains("the grid in this folder has another --grid"),
        "{}",
        text(&other)
    );
    assert!(!Path::new("runs/script-grid-1").exists());
}

#[test]
fn seeds_of_cells_differ_and_may_be_given() {
    let scratch = Scratch::new();
    for (name, seeds) in [("two", "seed=1,2"), ("one", "seed=1")] {
        let done = grid(&scratch, name, &["--grid", seeds]);
        assert!(done.status.success(), "{}", text(&done));
    }
    let (two, one) = (cells(&scratch, "two"), cells(&scratch, "one"));
    let rows: Vec<_> = two.lines().skip(1).collect();
    assert_eq!(Some(rows[0]), one.lines().nth(1));
    assert_ne!(
        rows[0].split(',').nth(1),
        rows[1].split(',').nth(1),
        "{two}"
    );
    let said = text(&grid(&scratch, "twice", &["--grid", "seed=1,2,1"]));
    assert!(said.contains("the value 1 stands there twice"), "{said}");
}

#[test]
fn cells_that_make_no_run_have_their_values() {
    let scratch = Scratch::new();
    scratch.file(
        "script.rhai",
        "let a = param(\"a\", 1); if a == 3 { throw \"three\" } #{ twice: 2 * a }",
    );
    let done = grid(&scratch, "out", &["--grid", "a=1,2,3"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done).contains("a = 3: three"), "{}", text(&done));
    assert_eq!(cells(&scratch, "out"), "a,twice\n1,2\n2,4\n3,\n");
    let again = grid(&scratch, "out", &["--grid", "a=1,2,3", "--resume"]);
    assert!(
        text(&again).contains("2 of 3 cells have ended before"),
        "{}",
        text(&again)
    );
}

#[test]
fn a_grid_of_a_script_is_a_table() {
    let found = evaluate(
        r#"
        let n = 0;
        let table = grid(#{ a: [1, 2], b: ["x", "y", "z"] }, |p| #{ sum: p.a + p.b.len(), both: `${p.a}${p.b}` });
        let runs = grid(#{ t: [0.5, 1.0] }, |p| {
            let r = sample(target(potential::gaussian()), sampler::hmc(), #{ temperature: p.t, steps: 100, every: 10 });
            #{ name: r.name, energy: r.trace("cost", 0)[5] }
        }, #{ name: "heat" });
        let halton = grid(#{ x: [0.0, 1.0] }, |p| p.x, #{ design: "halton", points: 3 });
        [table.column("both"), table.column("sum"), table.settings, runs.column("name"), runs.column("energy")[0] != runs.column("energy")[1],
         halton.column("result"), 1, table.to_map().keys().len()]
        "#,
    );
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        found[0],
        serde_json::json!(["1x", "1y", "1z", "2x", "2y", "2z"])
    );
    assert_eq!(found[1], serde_json::json!([2, 2, 2, 3, 3, 3]));
    assert_eq!(
        found[3],
        serde_json::json!(["heat-0001-sample-1", "heat-0002-sample-1"])
    );
    assert_eq!(found[4], true);
    assert_eq!(found[5], serde_json::json!([0.5, 0.25, 0.75]));
    for (source, said) in [
        ("grid(#{}, |p| 1)", "there is no setting to vary"),
        (
            "grid(#{ a: 3 }, |p| 1)",
            "the values of 'a' must be an array",
        ),
        (
            "grid(#{ a: [1, 2, 3] }, |p| 1, #{ design: \"random\" })",
            "'a' must be its two ends",
        ),
        (
            "grid(#{ a: [1, 2] }, |p| throw \"no\")",
            "in cell 1 of 'grid-1' (a = 1): no",
        ),
        (
            "grid(#{ a: [1, 2] }, |p| p.a).column(\"b\")",
            "the grid has no column 'b'",
        ),
    ] {
        let message = evaluate(source).unwrap_err().to_string();
        assert!(message.contains(said), "{source}\n{message}");
    }
}

#[test]
fn a_job_script_for_slurm_is_a_script() {
    let out = ergodic()
        .args([
            "slurm",
            "--shards",
            "3",
            "--out",
            "res",
            "--",
            "s.rhai",
            "--grid",
            "a=1,2",
            "--set",
            "b=\"x y\"",
        ])
        .output()
        .unwrap();
    let script = text(&out);
    assert!(
        out.status.success() && script.contains("#SBATCH --array=1-3"),
        "{script}"
    );
    assert!(script.contains("\nergodic run s.rhai --grid a=1,2 --set 'b=\"x y\"' --out res --shard \"$SLURM_ARRAY_TASK_ID/3\""), "{script}");
    let scratch = Scratch::new();
    let checked = std::process::Command::new("bash")
        .arg("-n")
        .arg(scratch.file("job.sh", &script))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", text(&checked));
}

/// A job whose time is nearly over saves, is queued again, goes on, and is merged to what one process writes.
#[test]
#[ignore = "long: tests/run"]
fn a_job_that_is_told_to_save_is_queued_again_and_goes_on() {
    let scratch = Scratch::new();
    let script = "let t = target(potential::gaussian(#{ dim: 3 })); let run = sample(t, sampler::hmc(), #{ chains: 4, steps: 1_000_000, every: 10 }); run.summary().cost";
    scratch.file("s.rhai", script);
    let ergodic_path = env!("CARGO_BIN_EXE_ergodic");
    let slurm = ergodic()
        .current_dir(scratch.join(""))
        .args(["slurm", "--shards", "2", "--out", "res", "--", "s.rhai"])
        .output()
        .unwrap();
    scratch.file("job.sh", text(&slurm));
    std::fs::create_dir(scratch.join("bin")).unwrap();
    for (name, body) in [
        ("ergodic", format!("exec {ergodic_path} \"$@\"")),
        ("scontrol", "echo \"$@\" >> requeued".to_string()),
    ] {
        use std::os::unix::fs::PermissionsExt;
        let path = scratch.file(&format!("bin/{name}"), format!("#!/bin/bash\n{body}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!(
        "{}:{}",
        scratch.join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let job = |id: &str, restarts: &str| {
        // A shell cannot trap what is ignored where these tests are run, as behind `nohup … &`.
        let mut job = std::process::Command::new("env");
        job.args(["--default-signal=INT", "bash", "job.sh"])
            .current_dir(scratch.join(""))
            .env("PATH", &path);
        job.env("SLURM_ARRAY_TASK_ID", id)
            .env("SLURM_CPUS_PER_TASK", "1");
        job.env("SLURM_JOB_ID", format!("7{id}"));
        match restarts {
            "" => job.env_remove("SLURM_RESTART_COUNT"),
            n => job.env("SLURM_RESTART_COUNT", n),
        };
        job
    };
    // Requeued before it had written anything: it begins.
    assert!(job("2", "1").status().unwrap().success());
    let mut first = job("1", "").spawn().unwrap();
    let lock = scratch.join("res/shard-1-of-2/sample-1");
    let began = std::time::Instant::now();
    while !lock.exists() && began.elapsed().as_secs() < 300 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill");
    let told = { kill }.args(["-INT", &first.id().to_string()]).status();
    assert!(told.unwrap().success());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let asked = std::fs::read_to_string(scratch.join("requeued")).unwrap();
    assert_eq!(asked.trim(), "requeue 71");
    assert!(job("1", "1").status().unwrap().success());
    let run = |more: &[&str]| {
        let done = ergodic()
            .current_dir(scratch.join(""))
            .args(["run", "--json", "--quiet", "s.rhai"])
            .args(more)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", text(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    let merged = run(&["--out", "res", "--merge", "2"]);
    assert_eq!(merged, run(&["--out", "alone"]));
}

/// A grid that replaces another one was interrupted: a command that forgets `--grid`, or merges nothing, changes nothing.
#[test]
fn a_command_of_another_kind_leaves_a_grid_and_shards_alone() {
    let scratch = Scratch::new();
    let begun = |out: &str, settings: &[&str]| {
        let output = grid(&scratch, out, settings);
        assert!(output.status.success(), "{}", text(&output));
    };
    begun("old", &["--grid", "width=2,3", "--set", "lambda=7"]);
    begun("new", &["--grid", "width=2,3"]);
    std::fs::rename(scratch.join("old"), scratch.join("new/.replaced")).unwrap();
    std::fs::remove_dir_all(scratch.join("new/width=3")).unwrap();
    let before = content(&scratch.join("new"));
    for more in [&[][..], &["--resume"], &["--force"]] {
        let refused = grid(&scratch, "new", more);
        let said = text(&refused);
        assert!(
            refused.status.code() == Some(1) && said.contains("there is a grid in this folder"),
            "{said}"
        );
        assert!(content(&scratch.join("new")) == before, "{more:?}");
    }
    begun("new", &["--grid", "width=2,3", "--resume"]);
    assert!(!scratch.join("new/.replaced").exists());
    // Shards, whose merge was begun anew.
    for shard in ["1/2", "2/2"] {
        begun("shards", &["--shard", shard]);
    }
    begun("whole", &[]);
    std::fs::rename(scratch.join("whole"), scratch.join("shards/.replaced")).unwrap();
    let before = content(&scratch.join("shards"));
    for more in [&[][..], &["--force"]] {
        let refused = grid(&scratch, "shards", more);
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
        assert!(
            content(&scratch.join("shards")) == before,
            "{more:?}: {}",
            text(&refused)
        );
    }
    begun("shards", &["--merge", "2", "--force"]);
    // Killed while all of it was on its way back.
    begun("back", &[]);
    let before = content(&scratch.join("back"));
    std::fs::rename(scratch.join("back"), scratch.join("moved")).unwrap();
    std::fs::create_dir(scratch.join("back")).unwrap();
    std::fs::rename(scratch.join("moved"), scratch.join("back/.replacing")).unwrap();
    begun("back", &["--resume"]);
    assert!(content(&scratch.join("back")) == before);
}

/// A table has cells of one script: what it imports must not have changed between them.
#[test]
fn cells_of_different_imports_are_not_put_together() {
    let scratch = Scratch::new();
    scratch.file(
        "script.rhai",
        "import \"own\" as own; own::f(param(\"x\", 1.0))",
    );
    let shard = |text: &str, more: &[&str]| {
        scratch.file("own.rhai", text);
        grid(&scratch, "out", &[&["--grid", "x=1,2,3"], more].concat())
    };
    assert!(shard("fn f(x) { x }", &["--shard", "1/2"]).status.success());
    let said = text(&shard("fn f(x) { 2 * x }", &["--shard", "2/2"]));
    assert!(
        said.contains(
            "own.rhai, which the script imports, was changed between the cells x = 1 and x = 2"
        ),
        "{said}"
    );
    let merged = shard("fn f(x) { x }", &["--merge", "2"]);
    assert_eq!(merged.status.code(), Some(1), "{}", text(&merged));
    std::fs::remove_dir_all(scratch.join("out/x=2")).unwrap();
    // A comment changes nothing.
    let again = shard("fn f(x) { x } // as before", &["--shard", "2/2"]);
    assert!(again.status.success(), "{}", text(&again));
    assert!(shard("fn f(x) { x }", &["--merge", "2"]).status.success());
    assert_eq!(cells(&scratch, "out"), "x,result\n1,1.0\n2,2.0\n3,3.0\n");
}

/// A table has cells of the same files, also where no run shows them; what a cell has written itself is its own.
#[test]
fn cells_that_read_different_files_are_not_put_together() {
    let scratch = Scratch::new();
    let [factor, own] = ["k.json", "own.npy"].map(|f| scratch.join(f).display().to_string());
    // Somebody else's.
    scratch.file("run.json", "{}");
    scratch.file(
        "script.rhai",
        format!(
            "let x = tensor([param(\"x\", 1.0)]);
             x.save(\"{own}\");
             tensor::load(\"{own}\").sum().item() * read_json(\"{factor}\").k"
        ),
    );
    let shard = |k: i32, more: &[&str]| {
        scratch.file("k.json", format!("{{\"k\": {k}}}"));
        let grid_of = ["--grid", "x=1.0,2.0,3.0", "--trust"];
        grid(&scratch, "out", &[&grid_of, more].concat())
    };
    let first = shard(2, &["--shard", "1/2"]);
    assert!(first.status.success(), "{}", text(&first));
    let said = text(&shard(3, &["--shard", "2/2"]));
    let names = "k.json, which the script reads, was changed between the cells";
    assert!(said.contains(names), "{said}");
    std::fs::remove_dir_all(scratch.join("out/x=2.0")).unwrap();
    let again = shard(2, &["--shard", "2/2"]);
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(
        cells(&scratch, "out"),
        "x,result\n1.0,2.0\n2.0,4.0\n3.0,6.0\n"
    );
}

/// A table has cells of the same data: a file that their runs read must not have changed between them. `diff` and `--resume` name such a file, too.
#[test]
fn cells_of_different_data_are_not_put_together() {
    let scratch = Scratch::new();
    scratch.file(
        "script.rhai",
        format!(
            "let data = dataset::csv(\"{}\", #{{ label: \"y\", task: \"regression\", test: 0 }});
             let t = target(model::mlp(#{{ layers: [1, 1] }}), data, #{{ prior: prior::gaussian(param(\"x\", 1.0)) }});
             sample(t, sampler::hmc(), #{{ steps: 20, every: 1 }}).summary().cost",
            scratch.join("data.csv").display()
        ),
    );
    let shard = |last: &str, more: &[&str]| {
        scratch.file("data.csv", format!("x,y\n1,2\n2,3\n3,{last}\n"));
        grid(&scratch, "out", &[&["--grid", "x=1,2,3"], more].concat())
    };
    let first = shard("5", &["--shard", "1/2"]);
    assert!(first.status.success(), "{}", text(&first));
    let said = text(&shard("6", &["--shard", "2/2"]));
    let names = "data.csv, which the script reads, was changed between the cells x = 1 and x = 2";
    assert!(said.contains(names), "{said}");
    std::fs::remove_dir_all(scratch.join("out/x=2")).unwrap();
    let again = shard("5", &["--shard", "2/2"]);
    assert!(again.status.success(), "{}", text(&again));
    // The record says which file it was, and what tells it apart.
    let record = std::fs::read_to_string(scratch.join("out/x=1/sample-1/run.json")).unwrap();
    assert!(record.contains("data.csv (16 bytes, crc32 "), "{record}");
    scratch.file("data.csv", "x,y\n1,2\n2,3\n3,7\n");
    let [one, two] = ["out/x=1", "out/again"].map(|folder| scratch.join(folder));
    let script = scratch.join("script.rhai");
    let run = |out: &Path, more: &[&str]| {
        let mut command = ergodic();
        command.arg("run").arg(&script).arg("--out").arg(out);
        command.args(more).output().unwrap()
    };
    assert!(run(&two, &["--set", "x=1"]).status.success());
    let diff = ergodic().arg("diff").args([&one, &two]).output().unwrap();
    let said = text(&diff);
    assert_eq!(said.matches("data.csv (16 bytes").count(), 2, "{said}");
    scratch.file("data.csv", "x,y\n1,2\n2,3\n3,8\n");
    let said = text(&run(&two, &["--set", "x=1", "--resume"]));
    assert!(
        said.contains("this run was started with other data"),
        "{said}"
    );
    assert_eq!(said.matches("data.csv (16 bytes").count(), 2, "{said}");
}
