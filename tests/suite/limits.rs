//! Limits: what is too large, too deep, too long or damaged is an error with exit code 1, and never a panic, an abort or a hang.

use super::support::{Scratch, ergodic, root, text};
use ergodic::script::explore::tokens::{Token, tokens};
use ergodic::script::item::Item;
use std::io::Write;
use std::process::{Command, Output};

/// Run a script in a process of its own, within so many KiB of address space and seconds of time.
fn within(source: &str, kib: u64, seconds: u64) -> Output {
    let scratch = Scratch::new();
    let script = scratch.file("limits.rhai", source);
    let mut command = Command::new("sh");
    let limits = format!(
        "ulimit -v {kib}; exec timeout {seconds} \"$0\" run \"$1\" --out \"$2\" --threads 2"
    );
    command.args(["-c", &limits, env!("CARGO_BIN_EXE_ergodic")]);
    command
        .arg(script)
        .arg(scratch.join("out"))
        .current_dir(root());
    // Backtraces of aborts take longer than all the rest.
    command.env_remove("RUST_BACKTRACE").output().unwrap()
}

const GIB: u64 = 1 << 20;

#[test]
#[ignore = "long: tests/run"]
fn what_does_not_fit_is_refused_before_it_is_tried() {
    let all = [
        "tensor::zeros(1_000_000_000)",
        "tensor::ones([1_000_000, 1000])",
        "tensor::full(1_000_000_000, 2)",
        "tensor::eye(30_000)",
        "tensor::arange(0, 1_000_000_000)",
        "tensor::linspace(0, 1, 1_000_000_000)",
        "tensor::normal(1_000_000_000, 1)",
        "tensor::uniform(1_000_000_000, 1)",
        "tensor::zeros([30_000, 1]) + tensor::zeros([1, 30_000])",
        "tensor::zeros([30_000, 1]).matmul(tensor::zeros([1, 30_000]))",
        "tensor::zeros([1000, 1000]).matmul(tensor::zeros([1000, 1000, 1]))",
        "let t = tensor::zeros(60_000_000); tensor::concat([t, t, t, t, t, t, t, t], 0)",
        "tensor::zeros(100_000_000).to_array()",
        "let a = []; a.pad(100_000_000_000, 1)",
        "let a = \"\"; a.pad(100_000_000_000, 'x')",
        "let a = \"\"; a.pad(100_000_000_000, \"xy\")",
        "let a = blob(100_000_000_000)",
        "let a = blob(); a.pad(100_000_000_000, 1)",
        "dataset::spin_vectors(#{ dim: 1_000_000_000 })",
        "dataset::spin_vectors(#{ dim: 1000, train: 100_000_000 })",
        "dataset::induction(#{ train: 1_000_000_000 })",
        "dataset::teacher(model::mlp(#{ layers: [1000, 1] }), #{ train: 100_000_000 })",
        "train(target(model::mlp(#{ layers: [64, 40_000, 40_000, 10] }), dataset::digits()), optimizer::adam(#{ epochs: 1 }))",
        "llc_problem(#{ widths: [100_000, 100_000], rank: 1 })",
        "grid::posterior(target(potential::banana()), #{ x: [-20, 20], y: [-10, 10], cells: 100_000 })",
    ];
    for one in all {
        let out = within(one, 3 * GIB, 20);
        let said = text(&out);
        assert_eq!(out.status.code(), Some(1), "{one}: {said}");
        assert!(
            said.contains("are free")
                || said.contains("too large")
                || said.contains("must be")
                || said.contains("more than 2^31"),
            "{one}: {said}"
        );
    }
}

/// Little by little, until there is no more.
#[test]
#[ignore = "long: tests/run"]
fn a_script_that_fills_the_memory_is_stopped() {
    // The allocator reserves more than a GiB of addresses at the start: with less than this the script would be stopped before it has begun.
    let script = "let a = []; loop { a.push(blob(100_000)); }";
    let out = within(script, 5 * GIB / 2, 60);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("hardly any memory is left") && said.contains("limits.rhai:1:"),
        "{said}"
    );
    // Also in a closure, on another thread.
    let script = "sample(target(potential::gaussian(#{ dim: 1 })), sampler::hmc(), #{ steps: 10, every: 1, \
                  observe: [observable::named(\"f\", |s| { let a = []; while s.step > 0 { a.push(blob(100_000)); } 1.0 })] })";
    let out = within(script, 5 * GIB / 2, 60);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("hardly any memory is left"), "{said}");
    // What doubles leaves no time to look: the process ends, but says why.
    let out = within("let a = [1]; loop { a += a; }", 5 * GIB / 2, 60);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert!(text(&out).contains("memory"), "{}", text(&out));
}

/// Every level of nesting takes stack to compare, print, copy and drop. (A million levels cannot be had: Rhai takes a minute for 60,000.)
#[test]
#[ignore = "long: tests/run"]
fn deeply_nested_values_end_nothing() {
    let uses = [
        "a == a",
        "let b = a",
        "print(a)",
        "a.to_string()",
        "display(a)",
        "sampler::sgld(#{ step: a })",
        "tensor(a)",
        "options(#{ x: a }, #{ x: 1 })",
        "[a, 1].contains(a)",
        "[a].index_of(a)",
        "a.to_json()",
        "let f = |x| a; f.call(1)",
    ];
    let each: String = uses
        .iter()
        .map(|u| format!("try {{ {u}; }} catch (e) {{ print(e); }}\n"))
        .collect();
    let scripts = [
        format!(
            "let a = []; for i in 0..12_000 {{ a = [a.take()]; }}\n{each} print(\"reached\"); throw a"
        ),
        format!(
            "let a = #{{}}; for i in 0..12_000 {{ a = #{{ a: a.take() }}; }}\n{each} print(\"reached\"); throw a"
        ),
    ];
    for script in scripts {
        let out = within(&script, 8 * GIB, 30);
        let said = text(&out);
        assert_eq!(
            out.status.code(),
            Some(1),
            "{}",
            &said[said.len().saturating_sub(500)..]
        );
        assert!(said.contains("\nreached\n") && said.contains("bytes left out"));
    }
    // On the threads of chains too.
    let closure =
        "|s| { let a = []; for i in 0..5000 { a = [a.take()]; } if a == a { 1 } else { 0 } }";
    let script = format!(
        "sample(target(potential::banana()), sampler::hmc(), #{{ steps: 2, every: 1, burn_in: 0, chains: 2, observe: [{closure}] }})"
    );
    let out = within(&script, 8 * GIB, 30);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let deep = [&"[".repeat(100_000)[..], &"]".repeat(100_000)[..]].concat();
    for script in [
        deep,
        format!("let f = {} 1;", "|x| ".repeat(10_000)),
        "(".repeat(100_000),
        "-".repeat(100_000),
    ] {
        let out = within(&script, 8 * GIB, 20);
        assert_eq!(out.status.code(), Some(1), "{}", text(&out));
        assert!(text(&out).len() < 30_000);
    }
}

/// JSON as far as its readers go, so that the folder of such a run can be read again.
#[test]
fn json_of_deeply_nested_values_can_be_read() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "deep.rhai",
        "let a = []; for i in 0..3000 { a = [a.take()]; } a",
    );
    let out = ergodic()
        .arg("run")
        .arg(script)
        .arg("--out")
        .arg(scratch.join("out"))
        .arg("--json")
        .output()
        .unwrap();
    let value: Result<serde_json::Value, _> = serde_json::from_slice(&out.stdout);
    assert!(
        value.is_ok() && text(&out).contains("nested more than 100 deep"),
        "{}",
        text(&out)
    );
}

fn gzip(pieces: usize, piece: &[u8], head: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(head).unwrap();
    (0..pieces).for_each(|_| e.write_all(piece).unwrap());
    e.finish().unwrap()
}

/// Files that are small and hold more than all memory, or say so.
#[test]
#[ignore = "long: tests/run"]
fn compression_bombs_are_refused_as_they_are_read() {
    let scratch = Scratch::new();
    const MIB: usize = 1 << 20;
    let rows = b"1.5,2.5,1\n".repeat(MIB / 10);
    let mut images = vec![0, 0, 8, 3];
    for n in [60_000u32, 200, 200] {
        images.extend(n.to_be_bytes());
    }
    let labels = [&[0, 0, 8, 1, 0, 0, 0xea, 0x60][..], &[1; 60_000][..]].concat();
    let zip = {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, shape, pieces) in [
            ("y_train.npy", "(1000,)".to_string(), 0),
            ("x_train.npy", format!("(1000, {MIB})"), 1000),
        ] {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(name, options).unwrap();
            let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
            let head = [
                b"\x93NUMPY\x01\x00",
                &(header.len() as u16).to_le_bytes()[..],
                header.as_bytes(),
            ]
            .concat();
            zip.write_all(&head).unwrap();
            (0..pieces).for_each(|_| zip.write_all(&vec![0; MIB]).unwrap());
            if pieces == 0 {
                zip.write_all(&[0, 1].repeat(500)).unwrap();
            }
        }
        zip.finish().unwrap().into_inner()
    };
    let file = |name: &str, bytes: &[u8]| scratch.file(name, bytes).display().to_string();
    let csv = file("a.csv.gz", &gzip(2000, &rows, b""));
    let words = file("a.txt.gz", &gzip(2000, &vec![b'a'; MIB], b""));
    let (images, labels) = (
        file("images.gz", &gzip(2300, &vec![0; MIB], &images)),
        file("labels", &labels),
    );
    let npz = file("a.npz", &zip);
    for (script, within_file) in [
        (format!("dataset::csv({csv:?})"), &csv),
        (format!("dataset::text({words:?})"), &words),
        (
            format!("dataset::idx(#{{ train_images: {images:?}, train_labels: {labels:?} }})"),
            &images,
        ),
        (format!("dataset::npz({npz:?})"), &npz),
        (
            format!("dataset::tokens({npz:?}, #{{ array: \"x_train\" }})"),
            &npz,
        ),
    ] {
        let out = within(&script, 2 * GIB, 30);
        let said = text(&out);
        assert_eq!(out.status.code(), Some(1), "{script}: {said}");
        assert!(
            said.contains("of memory are needed") && said.contains(within_file),
            "{script}: {said}"
        );
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let scratch = Scratch::new();
    let pipe = scratch.join("pipe.npy");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let tensors = scratch.join("pipe.safetensors");
    std::os::unix::fs::symlink(&pipe, &tensors).unwrap();
    let script = scratch.join("pipe");
    std::os::unix::fs::symlink(&pipe, scratch.join("pipe.rhai")).unwrap();
    let (pipe, tensors, script) = (pipe.display(), tensors.display(), script.display());
    for script in [
        format!("dataset::csv(\"{pipe}\")"),
        format!("dataset::npz(\"{pipe}\")"),
        format!("dataset::text(\"{pipe}\")"),
        format!("dataset::tokens(\"{pipe}\", #{{ context: 4 }})"),
        format!("dataset::idx(#{{ train_images: \"{pipe}\", train_labels: \"{pipe}\" }})"),
        format!("tensor::load(\"{pipe}\")"),
        format!("tensor::load(\"{tensors}\")"),
        format!("read_json(\"{pipe}\")"),
        format!("import \"{script}\" as pipe;"),
        format!("model::mlp(#{{ layers: [2, 1] }}).load(\"{tensors}\")"),
    ] {
        let out = within(&script, 8 * GIB, 10);
        assert_eq!(out.status.code(), Some(1), "{script}: {}", text(&out));
        assert!(
            text(&out).contains("a pipe or a device"),
            "{script}: {}",
            text(&out)
        );
    }
}

#[test]
fn a_script_may_begin_with_a_byte_order_mark() {
    let scratch = Scratch::new();
    scratch.file("mine.rhai", "\u{feff}//! Mine.\nfn two() { 2 }");
    let script = scratch.file(
        "marked.rhai",
        "\u{feff}//! Marked.\nimport \"mine\" as mine; mine::two()",
    );
    let out = ergodic()
        .arg("run")
        .arg(&script)
        .arg("--out")
        .arg(scratch.join("out"))
        .arg("--json")
        .output()
        .unwrap();
    assert_eq!((out.status.code(), text(&out).trim()), (Some(0), "2"));
    let out = ergodic()
        .args(["run", "--help"])
        .arg(&script)
        .output()
        .unwrap();
    assert!(text(&out).contains("Marked."), "{}", text(&out));
}

/// What comes from a file cannot move the cursor, rename the window or forge another message.
#[test]
fn names_from_files_are_printed_without_control_characters() {
    let scratch = Scratch::new();
    let csv = scratch
        .file("a.csv", "a,\"\x1b]0;owned\x07b\",y\n1,2,0\n3,4,1\n")
        .display()
        .to_string();
    for script in [
        format!("dataset::csv({csv:?}, #{{ label: \"zzzzzzzzzzzzzzz\" }})"),
        format!("print(dataset::csv({csv:?}, #{{ label: 1, task: \"regression\", test: 0.5 }}))"),
        format!("display(dataset::csv({csv:?}, #{{ label: 1, task: \"regression\", test: 0.5 }}))"),
        format!("dataset::csv({csv:?}, #{{ label: 1, task: \"regression\", test: 0.5 }})"),
        "throw \"\\x1b[31mred\"".to_string(),
    ] {
        let out = within(&script, 8 * GIB, 10);
        let said = text(&out);
        assert!(!said.contains(['\x1b', '\x07']), "{script}: {said:?}");
        assert!(said.contains("\\u{1b}"), "{script}: {said}");
    }
}

/// Every option of every recipe, at values that make no sense; the natives' are below.
#[test]
fn recipes_check_their_options() {
    let cases = [
        (
            "annealing::minimise(t, s, #{ cooling: 1.5 })",
            "'cooling': it is 1.5, but must be 0 < x ≤ 1",
        ),
        (
            "annealing::minimise(t, s, #{ schedule: \"x\" })",
            "'schedule': it is x, but must be \"geometric\" or \"linear\"",
        ),
        (
            "annealing::minimise(t, s, #{ restarts: 1e308 })",
            "'restarts': it is 1e308, but must be a whole number of at most 1e15",
        ),
        (
            "transition::find(t, s, #{ sigmas: -1 })",
            "'sigmas': it is -1, but must be > 0",
        ),
        (
            "transition::find(t, s, #{ width: 1 })",
            "'width': it is 1, but must be > 1",
        ),
        (
            "method_comparison::compare(t, #{ a: s }, #{ sigmas: 0.0 / 0.0 })",
            "'sigmas': it is NaN, but must be > 0",
        ),
        (
            "method_comparison::compare(t, #{ a: s }, #{ passes: 1.0 / 0.0 })",
            "'passes': it is inf, but must be > 0",
        ),
        (
            "learning_curve::measure(|n, seed| t, s, #{ sizes: [10, -1] })",
            "'sizes': it is [10, -1], but must be ≥ 1",
        ),
        (
            "learning_curve::measure(|n, seed| t, s, #{ floor: 0.0 / 0.0 })",
            "'floor': it is NaN, but must be any finite number",
        ),
        (
            "llc_protocol::estimate(t, s, #{ start: t, gammas: [] })",
            "'gammas' is empty",
        ),
        (
            "llc_protocol::estimate(t, s, #{ nbetas: [0.0] })",
            "'nbetas': it is [0.0], but must be > 0",
        ),
        (
            "ensemble::evaluate(t, t, #{ temperature: -1 })",
            "'temperature': it is -1, but must be ≥ 0",
        ),
    ];
    for (call, says) in cases {
        let recipe = call.split("::").next().unwrap();
        let source = format!(
            "import \"{recipe}\" as {recipe}; let t = target(potential::banana()); let s = sampler::hmc(); {call}"
        );
        let e = super::support::evaluate(&source)
            .err()
            .map(|e| e.message)
            .unwrap_or_default();
        assert!(e.contains(says), "{call}: {e}");
    }
}

#[test]
fn a_ladder_that_never_swaps_is_a_failure() {
    let source = "let t = target(potential::double_well()); exchange(t, sampler::hmc(), #{ temperatures: [1.0, 1e300], steps: 200 })";
    let out = within(source, 8 * GIB, 20);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out));
    assert!(
        text(&out).contains("every ladder of 'exchange-1' failed; the first one: "),
        "{}",
        text(&out)
    );
}

/// Values that fit few options, or none.
const BAD: &[&str] = &[
    "-1",
    "0",
    "1",
    "2",
    "1000000000",
    "9223372036854775807",
    "-9223372036854775807",
    "-1.0",
    "0.5",
    "1e308",
    "-1e308",
    "1e-308",
    "0.0 / 0.0",
    "1.0 / 0.0",
    "\"\"",
    "\"x\"",
    "\"\\x00/\"",
    "[]",
    "[0]",
    "[1]",
    "[-1]",
    "[1, 2, 3]",
    "[1e308, 1]",
    "[0.0 / 0.0]",
    "[[]]",
    "[\"x\"]",
    "[100000, 100000]",
    "#{}",
    "|x| x",
    "|| loop {}",
    "true",
    "prior::gaussian(1.0)",
];

/// The example of an entry with an option at another value; none if the example does not call it by its name.
fn with_option(item: &Item, option: &str, value: &str) -> Option<String> {
    let example = &item.example;
    let call = format!("{}(", item.path());
    let at = example.find(&call)?;
    let inside = at + call.len();
    let all: Vec<Token> = tokens(&example[inside..]);
    let mut depth = 1;
    let close = all.iter().find(|t| {
        depth += i32::from(t.is("(") || t.is("[") || t.is("{") || t.is("#{"))
            - i32::from(t.is(")") || t.is("]") || t.is("}"));
        depth == 0
    })?;
    let arguments = example[inside..inside + close.start].trim_end();
    let given = match (
        arguments.is_empty(),
        arguments.ends_with('}') && arguments.contains("#{"),
    ) {
        (true, _) => format!("#{{ {option}: {value} }}"),
        (_, true) => format!("{arguments} + #{{ {option}: {value} }}"),
        _ => format!("{arguments}, #{{ {option}: {value} }}"),
    };
    Some(format!(
        "{}{call}{given}{}",
        &example[..at],
        &example[inside + close.start..]
    ))
}

/// Every option of every constructor at every bad value: an error, or an object. By hand, `ERGODIC_LIMITS=all` also calls everything else that has options,
/// each in a process of its own, and prints what did not end well.
#[test]
fn no_value_of_any_option_ends_the_process() {
    let namespaces = [
        "dataset",
        "model",
        "prior",
        "potential",
        "optimizer",
        "gradient",
        "sampler",
        "observable",
        "loss",
        "support",
    ];
    let all = std::env::var("ERGODIC_LIMITS").is_ok_and(|x| x == "all");
    let items: Vec<_> = ergodic::script::all_items()
        .into_iter()
        .filter(|i| all || namespaces.contains(&i.namespace.as_str()) || i.path() == "llc_problem")
        .collect();
    let options = |i: &Item| i.options.iter().map(|o| o.name).collect::<Vec<_>>();
    let cases: Vec<_> = items
        .iter()
        .flat_map(|i| {
            options(i)
                .into_iter()
                .flat_map(move |o| BAD.iter().filter_map(move |v| with_option(i, o, v)))
        })
        .collect();
    // Second moments of 10⁹ rows take minutes, as was asked for.
    let long = |c: &String| c.contains("\"moments\" } + #{ n: 1000000000 }");
    let cases: Vec<_> = cases.into_iter().filter(|c| !long(c)).collect();
    assert!(cases.len() > 3000, "{}", cases.len());
    if all {
        return one_by_one(&cases);
    }
    // One in seven of them: of every option others.
    let cases: Vec<_> = cases.into_iter().step_by(7).collect();
    // Several processes, because each of them is alone with its interpreter.
    std::thread::scope(|s| {
        for part in cases.chunks(cases.len().div_ceil(2)) {
            s.spawn(move || {
                let one = |(k, case): (usize, &String)| {
                    format!("print({k}); try {{ {case}; }} catch (e) {{ }}\n")
                };
                let script: String = part.iter().enumerate().map(one).collect();
                let out = within(&script, 6 * GIB, 100);
                let said = String::from_utf8_lossy(&out.stdout);
                let last = said
                    .lines()
                    .rev()
                    .find_map(|l| l.parse::<usize>().ok())
                    .unwrap_or(0);
                let said = text(&out);
                let end = &said[said.len().saturating_sub(600)..];
                assert!(
                    out.status.success() && !said.contains("defect"),
                    "{:?} at {}: {end}",
                    out.status,
                    part[last]
                );
                assert_eq!(last + 1, part.len());
            });
        }
    });
}

fn one_by_one(cases: &[String]) {
    let mut bad = 0;
    for case in cases {
        let out = within(case, 6 * GIB, 10);
        let said = text(&out);
        let code = out.status.code();
        if !matches!(code, Some(0 | 1 | 3))
            || said.contains("defect")
            || said.contains("nested too deeply (see above)")
        {
            bad += usize::from(code != Some(124));
            println!("{code:?} {case}: {}", said.lines().next().unwrap_or(""));
        }
    }
    println!("{} calls, {bad} ended badly", cases.len());
    assert_eq!(bad, 0);
}
