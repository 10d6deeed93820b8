//! What a script that is not trusted tries, and is refused.

use super::folders::content;
use super::support::{Scratch, ergodic, text};
use std::path::Path;
use std::process::Output;

/// A folder with the script and its data, one beside it with what is none of its business, and links from the one to the other.
struct Place(Scratch);

impl Place {
    fn new() -> Self {
        let scratch = Scratch::new();
        for folder in ["home", "outside/run/it"] {
            std::fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        scratch.file("home/own.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n");
        scratch.file("outside/secret.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n");
        scratch.file("outside/module.rhai", "fn secret() { 42 }");
        scratch.file("home/spin.rhai", "loop {}");
        for name in [
            "a.npy",
            "a.npz",
            "a.safetensors",
            "a.pt",
            "a.onnx",
            "a.txt",
            "a.json",
            "a.bin",
            "run/run.json",
            "run/it/run.json",
        ] {
            scratch.file(&format!("outside/{name}"), "{}");
        }
        #[cfg(unix)]
        for (to, link) in [
            ("secret.csv", "link.csv"),
            ("", "folder"),
            ("new.npy", "new.npy"),
        ] {
            let to = scratch.join("outside").join(to);
            std::os::unix::fs::symlink(to, scratch.join("home").join(link)).unwrap();
        }
        Self(scratch)
    }

    /// Run a script in its folder; OUTSIDE and HOME in it are these folders.
    fn run(&self, source: &str, more: &[&str]) -> Output {
        let folder = |name: &str| self.0.join(name).display().to_string();
        let source = source.replace("OUTSIDE", &folder("outside"));
        let script = self
            .0
            .file("home/s.rhai", source.replace("HOME", &folder("home")));
        let mut command = ergodic();
        command
            .args(["run", "--quiet", "--threads", "1"])
            .args(more);
        command
            .arg("--out")
            .arg(self.0.join("home/out"))
            .arg(script);
        command.current_dir(self.0.join("home")).output().unwrap()
    }

    fn remove(&self, path: &str) {
        let _ = std::fs::remove_dir_all(self.0.join(path));
    }
}

const TARGET: &str = "let t = target(potential::gaussian()); let s = sampler::hmc();";

/// Files of others.
const READS: &[&str] = &[
    r#"dataset::csv("/etc/passwd")"#,
    r#"dataset::csv("OUTSIDE/secret.csv")"#,
    r#"dataset::csv("../outside/secret.csv")"#,
    r#"dataset::csv("link.csv")"#,
    r#"dataset::csv("folder/secret.csv")"#,
    r#"dataset::csv("folder/../secret.csv")"#,
    r#"dataset::csv("own.csv", #{ test_path: "link.csv" })"#,
    r#"dataset::csv(["own.csv", "link.csv"])"#,
    r#"dataset::text("/proc/self/environ", #{ level: "bytes" })"#,
    r#"dataset::text("OUTSIDE/a.txt")"#,
    r#"dataset::text("own.csv", #{ tokenizer: "OUTSIDE/a.json" })"#,
    r#"dataset::tokens("OUTSIDE/a.bin")"#,
    r#"dataset::npy("OUTSIDE/a.npy", "OUTSIDE/a.npy")"#,
    r#"dataset::npy("OUTSIDE/a.npy", "OUTSIDE/a.npy", #{ mapped: true })"#,
    r#"dataset::npz("OUTSIDE/a.npz")"#,
    r#"dataset::safetensors("OUTSIDE/a.safetensors")"#,
    r#"dataset::idx("OUTSIDE")"#,
    r#"tensor::load("OUTSIDE/a.npy")"#,
    r#"tensor::load("OUTSIDE/a.pt", "x")"#,
    r#"read_json("OUTSIDE/a.json")"#,
    r#"read_json("none/../../outside/a.json")"#,
    r#"import "../outside/module" as m;"#,
    r#"import "OUTSIDE/module" as m;"#,
    r#"import "folder/module" as m;"#,
    r#"model::onnx("OUTSIDE/a.onnx")"#,
    r#"model::pretrained("OUTSIDE")"#,
    r#"model::mlp(#{ layers: [2, 2] }).load("OUTSIDE/a.pt")"#,
    r#"open("OUTSIDE/run/it")"#,
    r#"runs("..")"#,
    r#"runs("/")"#,
    r#"llc_curve("OUTSIDE", target(model::mlp(#{ layers: [1, 2] }), dataset::csv("own.csv")), sampler::sgld())"#,
];

/// Files where no results belong.
const WRITES: &[&str] = &[
    r#"tensor([1]).save("OUTSIDE/b.npy")"#,
    r#"tensor([1]).save("HOME/b.npy")"#,
    r#"tensor([1]).save("../b.npy")"#,
    r#"tensor([1]).save("HOME/folder/b.npy")"#,
    r#"tensor([1]).save("HOME/new.npy")"#,
    r#"tensor([1]).save("HOME/out/../s.rhai")"#,
    r#"tensor([1]).save("HOME/out/../b.npy")"#,
    r#"tensor::save("OUTSIDE/b.safetensors", #{ a: tensor([1]) })"#,
    r#"plot::traces(sample(t, s, #{ steps: 200, chains: 2 }), "cost").save("OUTSIDE/b.svg")"#,
    r#"grid(#{ a: [1, 2] }, |p| #{ b: p.a }).save("OUTSIDE/b.csv")"#,
    r#"let n = model::mlp(#{ layers: [2, 2] }); n.save("OUTSIDE/b.pt", n.weights())"#,
    r#"sample(t, s, #{ steps: 200 }).report("OUTSIDE/b.html")"#,
    r#"sample(t, s, #{ steps: 200, resume: "OUTSIDE/run/it" })"#,
    r#"sample(t, s, #{ steps: 200, name: "../../outside/b" })"#,
];

/// What would use up the machine, and what is said of it.
const RESOURCES: &[(&str, &str)] = &[
    ("loop {}", "--max-steps"),
    ("fn f(x) { f(x + 1) } f(0)", "stack"),
    (r#"let a = "x"; loop { a += a; }"#, "string"),
    ("let a = [1]; loop { a += a; }", "array"),
    (
        "let m = #{}; let i = 0; loop { m[`${i}`] = i; i += 1; }",
        "--max-steps|--max-time",
    ),
    (
        "let a = []; loop { a.push([1, 2, 3]); }",
        "array|--max-time",
    ),
    ("blob(1_000_000_000_000)", "are free"),
    ("tensor::zeros([20_000, 10_000])", "--max-memory"),
    (
        "let all = []; loop { all.push(tensor::zeros(1_000_000)); }",
        "memory",
    ),
    (
        r#"loop { print("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"); }"#,
        "printed",
    ),
    (
        r#"let s = "0123456789abcdef"; for k in 0..4 { s += s; } loop { display(s); }"#,
        "printed",
    ),
    ("sleep(1e9)", "--max-time"),
    ("loop { try { loop {} } catch { } }", "--max-steps"),
    (
        "sample(t, s, #{ steps: 1_000_000_000_000, every: 1_000_000 })",
        "--max-time",
    ),
    (
        "sample(t, s, #{ steps: 200, observe: [|s| { loop {} }] })",
        "--max-steps",
    ),
    (r#"eval("loop {}")"#, "--max-steps"),
    (
        "let a = []; a.pad(1000, 0); loop { a.for_each(|| { let i = 0; while i < 100_000_000 { i += 1; } }) }",
        "--max-steps",
    ),
    (
        "loop { try { sample(t, s, #{ steps: 200, observe: [|s| { loop {} }] }) } catch { } }",
        "--max-steps",
    ),
    (
        r#"loop { try { import "spin" as m; } catch { } }"#,
        "--max-steps",
    ),
    (
        r#"let s = ""; s.pad(1_000_000, 'x'); loop { debug(s); }"#,
        "printed",
    ),
    (
        r#"sample(t, s, #{ steps: 200, observe: [|x| { loop { print("0123456789abcdef0123456789abcdef") } }] })"#,
        "printed",
    ),
];

#[test]
fn a_script_that_is_not_trusted_reads_and_writes_only_its_own() {
    let place = Place::new();
    let before = content(&place.0.join("outside"));
    let own = place.run(r#"print(dataset::csv("own.csv")); tensor([1]).save("own.npy"); tensor::load("HOME/out/own.npy")"#, &["--untrusted"]);
    assert!(own.status.success(), "{}", text(&own));
    let tries = READS.iter().map(|r| (r, "may read only within"));
    for (attempt, refusal) in tries.chain(WRITES.iter().map(|w| (w, "may write only within"))) {
        place.remove("home/out");
        let output = place.run(&format!("{TARGET} {attempt}"), &["--untrusted"]);
        let said = text(&output);
        let refused = said.contains(refusal)
            || attempt.contains("resume:") && said.contains("may read only")
            || attempt.contains("../") && said.contains("name within")
            || attempt.contains("name:");
        assert!(
            output.status.code() == Some(1) && refused,
            "{attempt}: {said}"
        );
        assert!(
            !said.contains("panicked") && !said.contains("secret()"),
            "{attempt}: {said}"
        );
        assert_eq!(content(&place.0.join("outside")), before, "{attempt}");
        let home: Vec<_> = names(&place.0.join("home"));
        assert!(
            home.iter().all(|n| [
                "folder",
                "link.csv",
                "new.npy",
                "out",
                "own.csv",
                "s.rhai",
                "spin.rhai"
            ]
            .contains(&&**n)),
            "{attempt}: {home:?}"
        );
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap().flatten();
    entries
        .map(|e| e.file_name().into_string().unwrap())
        .collect()
}

#[test]
#[cfg(unix)]
fn a_link_in_the_results_leads_nowhere() {
    let place = Place::new();
    let first = place.run("tensor([1]).save(\"a.npy\")", &[]);
    assert!(first.status.success(), "{}", text(&first));
    std::os::unix::fs::symlink(place.0.join("outside"), place.0.join("home/out/figures")).unwrap();
    let before = content(&place.0.join("outside"));
    for more in [&["--resume"][..], &["--resume", "--untrusted"]] {
        let again = place.run("tensor([1]).save(\"a.npy\"); plot::traces(sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2 }), \"cost\").save(\"b.svg\")", more);
        assert!(
            text(&again).contains("may write only within"),
            "{}",
            text(&again)
        );
    }
    assert_eq!(content(&place.0.join("outside")), before);
}

#[test]
#[ignore = "long: tests/run"]
fn a_script_that_is_not_trusted_does_not_use_up_the_machine() {
    let place = Place::new();
    let mut wrong = Vec::new();
    for (attempt, limit) in RESOURCES {
        place.remove("home/out");
        let begin = std::time::Instant::now();
        let limits = "--untrusted --max-memory 1GiB --max-time 4 --max-steps 10000000";
        let limits: Vec<_> = limits.split(' ').collect();
        let output = place.run(&format!("{TARGET} {attempt}"), &limits);
        let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
        let code = output.status.code();
        let ended = code == Some(1) || code == Some(130);
        if !ended || said.contains("panicked") || !limit.split('|').any(|l| said.contains(l)) {
            wrong.push(format!("{attempt}: {code:?} {said}"));
        }
        println!("{:5.1} s  {attempt}", begin.elapsed().as_secs_f64());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_allowed_is_written_and_read() {
    let place = Place::new();
    let outside = place.0.join("outside").display().to_string();
    let write = r#"tensor([1]).save("OUTSIDE/b.npy")"#;
    let refused = place.run(write, &[]);
    let said = text(&refused);
    assert!(
        said.contains("--allow-write FOLDER") && said.contains("--trust"),
        "{said}"
    );
    // Reading is not restricted where the script is one's own.
    for (source, more) in [
        (write, &["--allow-write", &outside][..]),
        (write, &["--trust"]),
        (r#"tensor::load("OUTSIDE/b.npy")"#, &[]),
        (
            r#"dataset::csv("link.csv")"#,
            &["--untrusted", "--allow-read", &outside],
        ),
        (write, &["--untrusted", "--allow-write", &outside]),
        (
            r#"tensor::load("OUTSIDE/b.npy")"#,
            &["--untrusted", "--allow-write", &outside],
        ),
    ] {
        place.remove("home/out");
        let output = place.run(source, more);
        assert!(
            output.status.success(),
            "{source} {more:?}: {}",
            text(&output)
        );
    }
}

#[test]
fn time_that_is_over_saves_the_run() {
    let place = Place::new();
    let source = format!(
        r#"{TARGET} sample(t, s, #{{ steps: 30_000_000, every: 10_000, chains: 1, name: "it" }}).done"#
    );
    let stopped = place.run(&source, &["--max-time", "1"]);
    let said = text(&stopped);
    assert!(
        stopped.status.code() == Some(130) && said.contains("--max-time: 1 seconds are over"),
        "{said}"
    );
    assert!(
        place
            .0
            .join("home/out/it/checkpoint/current.safetensors")
            .exists(),
        "{said}"
    );
}

#[test]
fn what_was_not_trusted_goes_on_untrusted() {
    let place = Place::new();
    let source = format!(
        r#"{TARGET} sample(t, s, #{{ steps: 30_000_000, every: 10_000, chains: 1, name: "it" }}).done"#
    );
    let stopped = place.run(&source, &["--untrusted", "--max-time", "0.5"]);
    assert_eq!(stopped.status.code(), Some(130), "{}", text(&stopped));
    let refused = place.run(&source, &["--resume"]);
    assert!(
        refused.status.code() == Some(1) && text(&refused).contains("was begun with --untrusted"),
        "{}",
        text(&refused)
    );
    let shown = ergodic()
        .arg("show")
        .arg(place.0.join("home/out"))
        .output()
        .unwrap();
    assert!(
        text(&shown).contains("--untrusted --max-time=0.5"),
        "{}",
        text(&shown)
    );
    for more in ["--untrusted", "--trust"] {
        let gone_on = place.run(&source, &["--resume", more, "--max-time", "0.5"]);
        assert_eq!(gone_on.status.code(), Some(130), "{}", text(&gone_on));
    }
    // Nor do cells of a grid, or shards.
    let source = r#"let n = param("n", 1); tensor::load("OUTSIDE/b.npy")"#;
    let sweep = r#"sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, name: "it" }).done"#;
    for (source, begun, then) in [
        (source, "--grid n=1,2", "--grid n=1,2 --resume"),
        (sweep, "--shard 1/2, --shard 2/2", "--merge 2"),
    ] {
        place.remove("home/out");
        for more in begun.split(", ") {
            let more: Vec<_> = more.split(' ').chain(["--untrusted"]).collect();
            place.run(source, &more);
        }
        let then: Vec<_> = then.split(' ').collect();
        let refused = place.run(source, &then);
        let said = text(&refused);
        assert!(
            refused.status.code() == Some(1) && said.contains("was begun with --untrusted"),
            "{then:?}: {said}"
        );
        let same = place.run(source, &[&then[..], &["--untrusted"]].concat());
        assert!(
            !text(&same).contains("was begun with"),
            "{then:?}: {}",
            text(&same)
        );
    }
}

/// The command that does it again may read what it read.
#[test]
fn folders_that_were_allowed_are_in_the_command() {
    let place = Place::new();
    let outside = place.0.join("outside").display().to_string();
    let source = format!(
        r#"{TARGET} dataset::csv("OUTSIDE/secret.csv"); sample(t, s, #{{ steps: 200 }}).done"#
    );
    let done = place.run(&source, &["--untrusted", "--allow-read", &outside]);
    assert!(done.status.success(), "{}", text(&done));
    let out = place.0.join("home/out");
    let shown = text(&ergodic().arg("show").arg(out).output().unwrap());
    assert!(
        shown.contains(&format!("--untrusted --allow-read={outside}")),
        "{shown}"
    );
}

/// Figures have a folder of their own.
#[test]
fn figures_may_have_any_name() {
    let place = Place::new();
    for name in ["checkpoint/a.svg", "a/.b.svg"] {
        let done = place.run(&format!(r#"plot::curve([1], [1]).save("{name}")"#), &[]);
        assert!(done.status.success(), "{name}: {}", text(&done));
        assert!(place.0.join("home/out/figures").join(name).exists());
        place.remove("home/out");
    }
}

#[test]
fn files_of_the_program_are_not_those_of_a_script() {
    let place = Place::new();
    for name in [
        "HOME/out/cells.rhai",
        "HOME/out/run.json",
        "HOME/out/.lock",
        "HOME/out/sub/tags.json",
        "/proc/self/cwd/out/run.json",
        "it/checkpoint/current.safetensors",
        "index.html",
    ] {
        let source = format!(r#"let g = grid(#{{ a: [1] }}, |p| 1); g.save("{name}");"#);
        let refused = place.run(&source, &["--untrusted"]);
        let said = text(&refused);
        let why = said.contains("one of the program's own") || said.contains("must end with .csv");
        assert!(refused.status.code() == Some(1) && why, "{name}: {said}");
        place.remove("home/out");
    }
}

/// What it prints, asks and names neither moves the cursor nor ends the program.
#[test]
fn texts_are_shown_as_they_are() {
    let place = Place::new();
    let long = r#"let s = ""; s.pad(70_000, 'x'); print(grid(#{ a: [s] }, |p| 1)); print(table([s, "e"], [[1, 2]]));"#;
    assert!(place.run(long, &["--untrusted"]).status.success());
    let odd = r#"
        let g = grid(#{ "\x1b]0;a": [1] }, |p| 1);
        plot::curve([1], [1]).save("\x1b[2J\nfigure  b.svg");
        try { plot::curve([1], [1]).save("none/\x1b.gif"); } catch { }
        input("\x1b]0;b");
    "#;
    let mut command = ergodic();
    let script = place.0.file("home/s.rhai", odd);
    let done = command
        .args(["run", "--untrusted", "--out"])
        .arg(place.0.join("home/out"))
        .arg(script)
        .output()
        .unwrap();
    let said = text(&done);
    assert!(
        said.contains("\\u{1b}]0;b") && !said.contains('\x1b'),
        "{said}"
    );
    assert!(
        !said.lines().any(|l| l.starts_with("figure  b.svg")),
        "{said}"
    );
}
