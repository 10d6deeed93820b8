//! The command line and its messages: every bad input says what is wrong, where and what to do, and never panics.

use super::support::{Scratch, ergodic, text};

/// Lines that most scripts below start with.
const BASE: &str = "let data = dataset::digits(#{ per_class: 5 });\nlet net = model::mlp(#{ layers: [64, 4, 10] });\nlet t = target(net, data);\n";

/// A malformed script and parts of its message.
const SCRIPTS: &[(&str, &[&str])] = &[
    ("let x = ;", &["script.rhai:1:9", "let x = ;"]),
    ("print(\"open", &["script.rhai:1"]),
    (
        "let a = 1;\nlet b = c + a;",
        &[
            "there is no variable 'c'",
            "script.rhai:2:9",
            "let b = c + a;",
        ],
    ),
    (
        "sampel(1, 2);",
        &["there is no function 'sampel'; did you mean 'sample'?"],
    ),
    (
        "sampler::sgdl(#{});",
        &["there is no function 'sampler::sgdl'; did you mean 'sampler::sgld'?"],
    ),
    (
        "model::convolution(#{});",
        &["there is no function 'model::convolution'"],
    ),
    (
        "sampler::sgld(#{ stepp: 1e-3 });",
        &[
            "sampler::sgld has no option 'stepp'; did you mean 'step'?",
            "script.rhai:1:",
        ],
    ),
    (
        "sampler::sgld(#{ step: -1.0 });",
        &["option 'step' is -1.0, but must be > 0"],
    ),
    (
        "sampler::sgld(#{ step: \"small\" });",
        &["option 'step' is \"small\", but must be number or schedule"],
    ),
    (
        "sampler::sgld(1e-3);",
        &["takes no argument and its options as a map"],
    ),
    (
        "sampler::sgld(#{ batch: 2.5 });",
        &["option 'batch' is 2.5, but must be a whole number"],
    ),
    (
        "sampler::pseudo_langevin(#{ ratio: 0.4, ratio_max: 0.1 });",
        &["need ratio ≤ ratio_max"],
    ),
    (
        "sampler::sgld(#{ step: schedule::linear(0.1, -0.1, 10) });",
        &["must be > 0 at every step", "reaches -0.1"],
    ),
    ("model::mlp(#{});", &["needs the option 'layers'"]),
    (
        "model::transformer(#{ vocabulary: 9, context: 9, width: 30, heads: 4 });",
        &["the width 30 is not a multiple of the number of heads, 4"],
    ),
    (
        "target(model::transformer(#{ vocabulary: 64, context: 32, width: 8 }), dataset::induction());",
        &["the model takes 32 inputs, but 'induction' has 64"],
    ),
    (
        "dataset::text(\"README.md\", #{ context: 1_000_000 });",
        &["too short for a context of 1000000"],
    ),
    (
        "model::mlp(#{ layers: [4, 2] }).load(\"nowhere.safetensors\");",
        &["nowhere.safetensors", "check the name"],
    ),
    (
        "plot::points([1], [2], #{ lable: \"a\" });",
        &["plot::points has no option 'lable'; did you mean 'label'?"],
    ),
    (
        "plot::contours([1, 2], [1, 2], [[1, 2], [1]]);",
        &["plot::contours: 1 numbers in z[1] for 2 x values"],
    ),
    (
        "plot::ridges([#{ label: \"a\", x: [1] }]);",
        &["plot::ridges: a curve needs 'y'"],
    ),
    (
        "plot::curve([1], [1]).x_range(2, 1);",
        &["the range is from 2 to 1, but must go upwards"],
    ),
    (
        "model::mlp(#{ layers: [64] });",
        &["at least an input and an output width"],
    ),
    (
        "model::mlp(#{ layers: [64, 0, 10] });",
        &["[1] is 0, but must be ≥ 1"],
    ),
    (
        "model::mlp(#{ layers: [1_000_000, 1_000_000] });",
        &["more than 2^32 parameters"],
    ),
    (
        "model::mlp(#{ layers: [4, 2], activation: \"rellu\" });",
        &["did you mean \"relu\"?"],
    ),
    (
        "dataset::digits(#{ per_class: 5000 });",
        &["per_class", "5000"],
    ),
    (
        "dataset::spin_vectors(#{ train: 100_000_000_000 });",
        &["dataset::spin_vectors"],
    ),
    ("dataset::csv(\"nowhere.csv\");", &["nowhere.csv"]),
    (
        "target(model::mlp(#{ layers: [63, 10] }), dataset::digits());",
        &["the model takes 63 inputs, but 'digits' has 64"],
    ),
    (
        "target(model::mlp(#{ layers: [64, 3] }), dataset::digits());",
        &["the model has 3 outputs, but 'digits' has 10 classes"],
    ),
    (
        "target(dataset::digits(), model::mlp(#{ layers: [64, 10] }));",
        &[
            "'target' does not take (Dataset, Model)",
            "target(model, dataset",
        ],
    ),
    (
        "dataset::spin_vectors(#{ train: 4_000_000_000 });",
        &["GiB of memory"],
    ),
    (
        "prior::uniform_box(-1.0);",
        &["option 'width' must be a number > 0"],
    ),
    (
        "logspace(0.0, 1.0, 3);",
        &["logspace: both ends must be > 0"],
    ),
    ("trigger::every(0);", &["trigger::every: steps is 0"]),
    (
        "param(1, 2);",
        &["'param' does not take (integer, integer)"],
    ),
    (
        "fn f(x) { f(x + 1) }\nf(0);",
        &["script.rhai:2:1", "Stack overflow"],
    ),
    ("let a = [1, 2]; a[5]", &["script.rhai:1"]),
    (
        "throw \"my own words\";",
        &["my own words", "script.rhai:1:1"],
    ),
];

/// The same, after [`BASE`].
const AFTER_BASE: &[(&str, &[&str])] = &[
    (
        "sample(t, sampler::sgld(), #{});",
        &["sample needs the option 'steps'"],
    ),
    (
        "sample(t, sampler::sgld(#{ batch: 1000 }), #{ steps: 100 });",
        &["option 'batch' is 1000", "only n = 50 examples"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, burn_in: 10 });",
        &["'burn_in' is 10", "leaves nothing of 10 steps"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 100 });",
        &["no record is made after burn-in"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, temperature: 0 });",
        &["option 'temperature' is 0.0, but must be > 0"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, start: parameters([1, 2]) });",
        &["'start' has 2 parameters, but the model has 310"],
    ),
    (
        "sample(t, sampler::hmc(), #{ every: 1, chains: 100_000, steps: 1_000_000_000 });",
        &["GiB of memory"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, observe: [observable::error(\"validation\")] });",
        &["has no validation split, only train, test"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, observe: [observable::cost(), observable::cost()] });",
        &["two traces would be called 'cost'"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, observe: [observable::parameter(310)] });",
        &["only 310 parameters"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, observe: [|s| s.params.slice(\"w9\").max()] });",
        &["no tensor 'w9'; it has w1, b1, w2, b2"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, observe: [|s| \"text\"] });",
        &["must return a number"],
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 10, every: 1, name: \"a/b\" });",
        &["option 'name' is \"a/b\""],
    ),
    (
        "sweep(t, sampler::hmc(), #{ steps: 10, temperatures: [] });",
        &["'temperatures' is empty"],
    ),
    (
        "sweep(t, sampler::hmc(), #{ steps: 10, temperatures: [1.0, -2.0] });",
        &["[1] is -2.0, but must be > 0"],
    ),
    (
        "train(t, optimizer::adam(#{ early_stopping: \"loss\" }));",
        &["needs a validation split"],
    ),
    (
        "train(t, optimizer::sgd(#{ lr: 1e30, epochs: 3 }));",
        &["lower the learning rate"],
    ),
    (
        "let r = sample(t, sampler::hmc(), #{ steps: 10, every: 1 });\nr.trace(\"costt\", 0);",
        &["no trace 'costt'; did you mean 'cost'?"],
    ),
    (
        "let r = sample(t, sampler::hmc(), #{ steps: 10, every: 1 });\nplot::histogram(r, \"cost\").save(\"x.jpg\");",
        &["x.jpg", ".svg"],
    ),
    (
        "let a = [1, 2];\na.map(|x| a.map(|y| x * y));",
        &["let it have a copy, made before"],
    ),
    (
        "let r = sample(t, sampler::hmc(), #{ steps: 10, every: 1 });\nr.summary().cosst",
        &["the summary has no 'cosst'"],
    ),
];

fn check(scratch: &Scratch, name: &str, source: &str, parts: &[&str]) {
    let script = scratch.file("script.rhai", source);
    let out = scratch.join(name);
    let output = ergodic()
        .args(["run", "--quiet", "--out"])
        .arg(&out)
        .arg(&script)
        .output()
        .unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{source}\n{said}");
    assert!(!said.contains("panicked"), "{source}\n{said}");
    for part in parts {
        assert!(
            said.contains(part),
            "{source}\nsays\n{said}\nbut not '{part}'"
        );
    }
}

#[test]
fn malformed_scripts_get_a_message_with_their_place() {
    let scratch = Scratch::new();
    for (i, (source, parts)) in SCRIPTS.iter().enumerate() {
        check(&scratch, &format!("a{i}"), source, parts);
    }
    for (i, (source, parts)) in AFTER_BASE.iter().enumerate() {
        check(
            &scratch,
            &format!("b{i}"),
            &format!("{BASE}{source}"),
            parts,
        );
    }
}

#[test]
fn malformed_data_files_get_a_message_with_their_place() {
    let scratch = Scratch::new();
    let idx = |magic: u32, count: u32, rest: &[u8]| {
        let mut bytes = magic.to_be_bytes().to_vec();
        bytes.extend(count.to_be_bytes());
        bytes.extend(rest);
        bytes
    };
    let images = idx(0x803, 2, &[0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]);
    let files: [(&str, Vec<u8>, &str); 8] = [
        ("empty.csv", Vec::new(), "empty"),
        ("ragged.csv", b"1,2,0\n3,1\n5,6,1\n".to_vec(), "2"),
        ("word.csv", b"1,2,0\n3,oops,1\n".to_vec(), "oops"),
        ("nan.csv", b"1,2,0\n3,nan,1\n4,5,1\n".to_vec(), "nan"),
        ("label.csv", b"1,2,0\n3,4,-1\n4,5,1\n".to_vec(), "-1"),
        ("binary.csv", vec![0xff, 0xfe, 0x00, 0x80], "binary.csv"),
        ("cut.npz", b"PK\x03\x04 not a zip".to_vec(), "cut.npz"),
        (
            "cut.csv.gz",
            b"\x1f\x8b\x08\x00garbage".to_vec(),
            "cut.csv.gz",
        ),
    ];
    for (name, content, part) in files {
        let path = scratch.file(name, content);
        let kind = if name.ends_with("npz") { "npz" } else { "csv" };
        let source = format!("dataset::{kind}({:?})", path.to_str().unwrap());
        check(&scratch, &format!("out-{name}"), &source, &[name, part]);
    }
    let pairs: [(&str, Vec<u8>, Vec<u8>); 4] = [
        ("magic", idx(0x99, 2, &images[8..]), idx(0x801, 2, &[0, 1])),
        ("truncated", images[..18].to_vec(), idx(0x801, 2, &[0, 1])),
        ("count", images.clone(), idx(0x801, 3, &[0, 1, 0])),
        (
            "huge",
            idx(0x803, u32::MAX, &[0xff; 8]),
            idx(0x801, 2, &[0, 1]),
        ),
    ];
    for (name, images, labels) in pairs {
        let (images, labels) = (
            scratch.file(&format!("{name}-images"), images),
            scratch.file(&format!("{name}-labels"), labels),
        );
        let source = format!(
            "dataset::idx(#{{ train_images: {:?}, train_labels: {:?} }})",
            images.to_str().unwrap(),
            labels.to_str().unwrap()
        );
        check(&scratch, &format!("out-{name}"), &source, &[name]);
    }
}

#[test]
fn usage_errors_exit_with_2_and_say_what_is_wrong() {
    for arguments in [
        &["run"][..],
        &["fly"],
        &["run", "--threads", "0", "x.rhai"],
        &["run", "--device", "abacus", "x.rhai"],
        &["run", "--set", "x"],
    ] {
        let output = ergodic().args(arguments).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text(&output)
        );
    }
}

#[test]
fn parameters_are_listed_set_and_checked() {
    let scratch = Scratch::new();
    let script = scratch.file("s.rhai", "//! Adds.\nlet a = param(\"first\", 1, \"the first number\");\nlet b = param(\"second\", 2.0);\n#{ sum: a + b, name: param(\"name\", \"x\") }");
    let run = |more: &[&str]| {
        ergodic()
            .arg("run")
            .arg(&script)
            .args(more)
            .current_dir(scratch.join("."))
            .output()
            .unwrap()
    };
    let help = text(&run(&["--help"]));
    assert!(
        help.contains("Adds.") && help.contains("the first number (default 1)"),
        "{help}"
    );
    let sum = |more: &[&str]| text(&run(more));
    assert!(sum(&["--json", "--set", "first=40", "--set", "second=1+1"]).contains("\"sum\": 42.0"));
    for name in ["name=y", "name=\"y\""] {
        assert!(sum(&["--json", "--set", name]).contains("\"name\": \"y\""));
    }
    assert!(sum(&["--set", "frist=1"]).contains("no such parameter; did you mean 'first'?"));
    assert!(sum(&["--set", "first=\"x\""]).contains("expected an integer"));
    assert!(sum(&["--set", "first=1 +"]).contains("not an expression"));
}

#[test]
fn results_are_never_overwritten() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "s.rhai",
        "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 20, every: 1 }).summary()",
    );
    let run = |more: &[&str]| {
        ergodic()
            .arg("run")
            .arg(&script)
            .args(more)
            .current_dir(scratch.join("."))
            .output()
            .unwrap()
    };
    assert!(run(&[]).status.success() && run(&[]).status.success());
    assert!(scratch.join("runs/s/run.json").exists() && scratch.join("runs/s-2/run.json").exists());
    let refused = run(&["--out", "runs/s"]);
    assert!(
        text(&refused).contains("not empty; continue what is in it with --resume"),
        "{}",
        text(&refused)
    );
    let shown = ergodic()
        .args(["show"])
        .arg(scratch.join("runs/s"))
        .output()
        .unwrap();
    assert!(
        text(&shown).contains("T virial") && shown.status.success(),
        "{}",
        text(&shown)
    );
}

#[test]
fn a_failed_chain_is_named_left_out_and_when_all_fail_the_exit_code_is_3() {
    let scratch = Scratch::new();
    // A step far beyond stability from one far start; the other chain begins at the minimum and stays near it.
    let source = |starts: &str| {
        format!(
            "let t = target(potential::double_well());\nlet r = sample(t, sampler::sgld(#{{ step: 0.02, batch: 1 }}), #{{ \
             start: parameters({starts}), chains: 2, steps: 2000, every: 10 }});\nprint(r.summary());\nr.failed"
        )
    };
    let run = |name: &str, starts: &str| {
        let script = scratch.file(&format!("{name}.rhai"), source(starts));
        ergodic()
            .args(["run", "--out"])
            .arg(scratch.join(name))
            .arg(&script)
            .output()
            .unwrap()
    };
    let one = run("one", "[[1.0], [1e4]]");
    assert!(one.status.success(), "{}", text(&one));
    assert!(
        text(&one).contains("FAILED and left out: chain 1"),
        "{}",
        text(&one)
    );
    let all = run("all", "[[1e4], [1e4]]");
    assert_eq!(all.status.code(), Some(3), "{}", text(&all));
    assert!(text(&all).contains("every chain"), "{}", text(&all));
}

#[test]
fn help_docs_and_doctor_answer() {
    for (arguments, part) in [
        (&["--help"][..], "Exit codes"),
        (&["run", "--help"], "--resume"),
        (&["docs"], "sampler::pseudo_langevin"),
        (&["docs", "sampler::sgld"], "Step size ε"),
        (&["docs", "prior"], "prior::l2"),
        (&["doctor"], "simd"),
    ] {
        let output = ergodic().args(arguments).output().unwrap();
        assert!(
            output.status.success() && text(&output).contains(part),
            "{arguments:?}: {}",
            text(&output)
        );
    }
    let unknown = ergodic().args(["docs", "sgldd"]).output().unwrap();
    assert!(
        unknown.status.code() == Some(1) && text(&unknown).contains("sgld"),
        "{}",
        text(&unknown)
    );
}

#[test]
fn bench_measures_compares_and_refuses_unknown_names() {
    let scratch = Scratch::new();
    let file = scratch.join("bench.json");
    let bench = |arguments: &[&str]| {
        let mut command = ergodic();
        command.args(["bench", "--seconds", "0.02"]).args(arguments);
        command.output().unwrap()
    };
    let output = bench(&[
        "--only",
        "sgld-11k",
        "--json",
        "--out",
        file.to_str().unwrap(),
    ]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &value["workloads"][0];
    assert_eq!(row["name"], "sgld-11k");
    for field in [
        "seconds_per_step",
        "floor_seconds",
        "normals_per_second",
        "peak_rss_bytes",
    ] {
        assert!(row[field].as_f64().unwrap() > 0.0, "{field}: {row}");
    }
    let output = bench(&["--only", "sgld-11k", "--compare", file.to_str().unwrap()]);
    assert!(text(&output).contains("before µs"), "{}", text(&output));
    let output = bench(&["--only", "sgdl-11k"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("did you mean 'sgld-11k'?"));
}

#[test]
fn a_device_that_is_not_there_is_found_out_before_anything_runs() {
    let scratch = Scratch::new();
    let script = scratch.file("s.rhai", "print(1);");
    let run = |device: &str| {
        let out = scratch.join("out");
        let mut command = ergodic();
        command.arg("run").arg(&script).args(["--device", device]);
        command.arg("--out").arg(&out).output().unwrap()
    };
    let output = run("gpu");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("\"cuda:0\""), "{}", text(&output));
    // No machine has so many.
    let output = run("cuda:4000");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !scratch.join("out").exists());
}

/// Two builds of one commit are the same, byte for byte, as long as no part of the program says when it was compiled (`.cargo/config.toml`).
#[test]
fn the_program_does_not_say_when_it_was_compiled() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_ergodic")).unwrap();
    // C's __TIME__ is a string of its own.
    let is_time = |s: &&[u8]| {
        s.len() == 8
            && s.iter().enumerate().all(|(k, c)| {
                if k % 3 == 2 {
                    *c == b':'
                } else {
                    c.is_ascii_digit()
                }
            })
    };
    let times: std::collections::BTreeSet<_> = program
        .split(|c| *c == 0)
        .filter(is_time)
        .map(String::from_utf8_lossy)
        .collect();
    assert_eq!(times.into_iter().collect::<Vec<_>>(), ["00:00:00"]);
}
