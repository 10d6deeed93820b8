//! The Rust face: the prelude, samplers of one's own, sessions that share variables with scripts, notebooks without a browser.

use super::support::{Scratch, ergodic, root, text};
use ergodic::front::display;
use ergodic::options::{Kind, Range, Spec, option};
use ergodic::prelude::*;
use serde_json::{Value, json};

fn gaussian(dim: usize) -> Arc<Target> {
    let potential = potential::Gaussian::new().dim(dim).build().unwrap();
    Target::of_potential(potential).run().unwrap()
}

#[test]
fn a_sweep_takes_a_few_lines() {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let data = dataset::Digits::new().per_class(20).build().unwrap();
    let net = model::Mlp::new([64, 8, 10]).build().unwrap();
    let prior = prior::L2::new(10.0).build().unwrap();
    let target = Target::of(&net, &data)
        .prior(prior)
        .run_in(&session)
        .unwrap();
    let sgld = sampler::Sgld::new().step(1e-3).batch(50).build().unwrap();
    let observe = vec![
        observable::Cost::new().build().unwrap(),
        observable::measure("largest", |s| {
            Ok(s.chain.w.iter().fold(0.0f32, |a, x| a.max(x.abs())).into())
        })
        .unwrap(),
    ];
    let run = sweep(&target, &sgld)
        .temperatures(logspace(1e-4, 1e-2, 3))
        .steps(200)
        .chains(2)
        .every(10)
        .observe(observe)
        .run_in(&session)
        .unwrap();
    let summary = run.summary().unwrap();
    assert_eq!(
        summary.temperatures,
        [1e-4, logspace(1e-4, 1e-2, 3)[1], 1e-2]
    );
    let names: Vec<_> = summary.rows.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["cost", "largest"]);
    assert!(summary.rows[1].numbers[2].mean > 0.0);
    let figure = run.plot_sweep(&["cost", "largest"]).unwrap();
    assert_eq!(figure.panels.len(), 2);
    let error = run.plot_sweep(&["cots"]).unwrap_err().to_string();
    assert!(error.contains("did you mean 'cost'?"), "{error}");
    // The same in a script: the same numbers, since seeds follow from names.
    let script = Session::new(scratch.join("script"));
    let value = script
        .eval(
            r#"
            let t = target(model::mlp(#{ layers: [64, 8, 10] }), dataset::digits(#{ per_class: 20 }), #{ prior: prior::l2(10.0) });
            let run = sweep(t, sampler::sgld(#{ step: 1e-3, batch: 50 }), #{
                temperatures: logspace(1e-4, 1e-2, 3), steps: 200, chains: 2, every: 10, observe: [observable::cost()]
            });
            run
        "#,
        )
        .unwrap();
    let same = value.get::<Arc<Run>>().unwrap();
    assert_eq!(
        run.draws("cost", 0, 1, true).unwrap(),
        same.draws("cost", 0, 1, true).unwrap()
    );
    // And from its folder.
    let saved = open(scratch.join("out/sweep-1")).unwrap();
    assert!(saved.done());
    assert_eq!(saved.summary().unwrap().to_string(), summary.to_string());
    let error = open(scratch.join("out")).unwrap_err().to_string();
    assert!(
        error.contains("the runs are within") && error.contains("out/sweep-1"),
        "{error}"
    );
    let error = sampler::named("sgdl").err().unwrap().to_string();
    assert!(error.contains("did you mean 'sgld'?"), "{error}");
}

/// Overdamped Langevin dynamics whose noise is the mean of this step's and the last one's (Leimkuhler & Matthews 2013): for a quadratic
/// energy its configurations are exact at every step size.
struct Postprocessed {
    step: f64,
}

kernel! {
    /// `w ← w - step·g + sigma·(η + last)`, `last ← η`.
    STEP = test_postprocessed(w, last; g; eta; step, sigma) {
        w = w - step * g + sigma * (eta + last);
        last = eta;
    }
}

impl Sampler for Postprocessed {
    fn name(&self) -> &'static str {
        "test_postprocessed"
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["last"]
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL]
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let noise = (Purpose::Momentum, 0);
        chains.map_with_noise(&SCALED_NOISE, &[Vector::State(0)], noise, |_, _| [1.0])
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        Estimator::FULL.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(Vector::Gradient)?;
        let vectors = [Vector::Params, Vector::State(0), Vector::Gradient];
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, 0), |_, m| {
            [
                self.step as f32,
                (self.step * m.temperature / 2.0).sqrt() as f32,
            ]
        })
    }
}

const OPTIONS: &[Spec] = &[option("step", Kind::Float(Range::Positive), "0.5", "Step.")];

#[test]
fn a_sampler_of_ones_own_runs_beside_sgld_and_has_the_right_law() {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let target = gaussian(20);
    let own = sampler::own(Postprocessed { step: 0.1 }, options! { step: 0.1 }).unwrap();
    let swept = |by| {
        let sweep = sweep(&target, by).temperatures([0.5, 2.0]).steps(8000);
        let sweep = sweep.chains(4).every(5).burn_in(0.1);
        sweep.run_in(&session).unwrap()
    };
    let run = swept(&own);
    let full = gradient::Full::new().build().unwrap();
    let sgld = sampler::Sgld::new().step(0.2).gradient(full).build();
    let biased = swept(&sgld.unwrap());
    for (k, t) in [0.5, 2.0].into_iter().enumerate() {
        let reading = run.thermometer(k).unwrap();
        let off = (reading.temperature - t) / reading.mcse;
        assert!(off.abs() < 4.5, "T = {t}: {reading:?}");
        // The same drift, ε/2 = 0.1: an Euler step heats a Gaussian of curvature k, here 1 to 10, by 1/(1 - εk/4).
        let other = biased.thermometer(k).unwrap();
        assert!((other.temperature - t) / other.mcse > 10.0, "{other:?}");
    }
    let text = run.summary().unwrap().to_string();
    assert!(text.contains("test_postprocessed (step 0.1)"), "{text}");
    // It can take part in replica exchange; what needs its options says no instead of taking another sampler.
    let ladder = exchange(&target, &own).temperatures([1.0, 2.0]).steps(500);
    let ladder = ladder.chains(1).run_in(&session);
    let error = ladder.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        error.is_empty() || error.contains("test_postprocessed"),
        "{error}"
    );
    assert!(own.with("step", 0.1).unwrap().is_none());
}

#[test]
fn a_registered_sampler_is_known_by_name_in_rust_and_in_scripts() {
    let scratch = Scratch::new();
    sampler::register(Entry {
        name: "test_postprocessed",
        doc: "Samples exp(-U/T) exactly where U is quadratic.",
        arguments: &[],
        options: OPTIONS,
        example: "sampler::test_postprocessed(#{ step: 0.3 })",
        build: |o| {
            let step = o.float("step")?;
            Ok(ConfiguredSampler::new(Postprocessed { step }, o))
        },
    })
    .unwrap();
    let by_name = sampler::named("test_postprocessed").unwrap();
    let by_name = by_name.make("sampler", options! { step: 0.3 }).unwrap();
    assert_eq!(by_name.step_size(), Some(("step", 0.3)));
    let other = by_name.with("step", 0.1).unwrap().unwrap();
    assert_eq!(
        (other.name(), other.step_size()),
        ("test_postprocessed", Some(("step", 0.1)))
    );
    let session = Session::new(scratch.join("out"));
    let value = session
        .eval("sampler::test_postprocessed(#{ step: 0.2 })")
        .unwrap();
    let scripted = value.get::<Arc<ConfiguredSampler>>().unwrap();
    assert_eq!(scripted.step_size(), Some(("step", 0.2)));
    let taken = Entry {
        name: "sgld",
        ..ergodic::sampler::REGISTRY[0]
    };
    let error = sampler::register(taken).unwrap_err().to_string();
    assert!(
        error.contains("there is a sampler 'sgld' already"),
        "{error}"
    );
}

#[test]
fn sessions_share_handles_both_ways_without_copying() {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let data = dataset::Digits::new().per_class(5).build().unwrap();
    session.set("data", data.clone()).unwrap();
    assert!(Arc::ptr_eq(
        &data,
        &session.get::<Arc<Dataset>>("data").unwrap()
    ));
    let rows = session
        .eval("let t = target(model::mlp(#{ layers: [64, 10] }), data); data.train_rows")
        .unwrap();
    assert_eq!(rows.get::<i64>(), Some(data.train.rows as i64));
    let target = session.get::<Arc<Target>>("t").unwrap();
    assert!(Arc::ptr_eq(
        &target,
        &session.get::<Arc<Target>>("t").unwrap()
    ));
    let sgld = sampler::Sgld::new().batch(20).build().unwrap();
    let run = sample(&target, &sgld).steps(20).every(5).chains(1);
    let run = run.run_in(&session).unwrap();
    session.set("run", run.clone()).unwrap();
    session.eval("let again = run; let same = sample(t, sampler::sgld(#{ batch: 20 }), #{ steps: 20, every: 5, chains: 1 });").unwrap();
    assert!(Arc::ptr_eq(
        &run,
        &session.get::<Arc<Run>>("again").unwrap()
    ));
    // Rust and scripts number runs together.
    let names = [
        run.info.name.clone(),
        session.get::<Arc<Run>>("same").unwrap().info.name.clone(),
    ];
    assert_eq!(names, ["sample-1", "sample-2"]);
    // Plain values come in the form that each side knows.
    session.set("count", 3usize).unwrap();
    session.set("grid", vec![1.0, 2.5]).unwrap();
    session.set("name", "x").unwrap();
    session.eval("let total = count + 1; let first = grid[1]; let list = [1, 2]; let text = name + \"y\"; const FIXED = 1;").unwrap();
    assert_eq!(session.get::<i64>("total").unwrap(), 4);
    assert_eq!(session.get::<f64>("total").unwrap(), 4.0);
    assert_eq!(session.get::<usize>("total").unwrap(), 4);
    assert_eq!(session.get::<f64>("first").unwrap(), 2.5);
    assert_eq!(session.get::<Vec<f64>>("list").unwrap(), [1.0, 2.0]);
    assert_eq!(session.get::<String>("text").unwrap(), "xy");
    for (error, parts) in [
        (
            session.get::<Arc<Run>>("rnu").unwrap_err(),
            ["no variable 'rnu'", "did you mean 'run'?"],
        ),
        (
            session.get::<Arc<Run>>("data").unwrap_err(),
            ["'data' is a Dataset", "not a Run"],
        ),
        (
            session.set("not a name", 1).unwrap_err(),
            ["\"not a name\"", "letters"],
        ),
        (
            session.set("FIXED", 2).unwrap_err(),
            ["'FIXED'", "constant"],
        ),
        (
            session.eval("1 +").map(|_| ()).unwrap_err(),
            ["<cell>:1", "1 +"],
        ),
    ] {
        let error = format!("{error:#}");
        assert!(parts.iter().all(|p| error.contains(p)), "{error}");
    }
}

#[test]
fn runs_and_figures_are_shown_as_tables_and_drawings() {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let hmc = sampler::Hmc::new().build().unwrap();
    let run = sweep(gaussian(3), &hmc).temperatures([0.5, 1.0]);
    let run = run.steps(400).chains(2).every(1).run_in(&session).unwrap();
    let shown = display::of(&run).unwrap();
    let html = shown.html.unwrap();
    assert_eq!(html.matches("<tr").count(), 3, "{html}");
    assert!(
        html.contains(">T virial</th>") && html.contains("sweep &#") || html.contains("sweep '"),
        "{html}"
    );
    assert_eq!(shown.text, run.summary().unwrap().to_string());
    let figure = run.plot_traces("cost").unwrap();
    assert!(
        display::of(&figure)
            .unwrap()
            .svg
            .unwrap()
            .starts_with("<svg")
    );
    let value = session.eval("plot::curve([1, 2], [1, 4])").unwrap();
    assert!(value.shown().svg.is_some());
}

fn notebook(language: &str, cells: &[&str]) -> String {
    let cell = |(i, source): (usize, &&str)| json!({"cell_type": "code", "id": format!("c{i}"), "metadata": {}, "execution_count": null, "outputs": [], "source": source});
    json!({
        "cells": cells.iter().enumerate().map(cell).collect::<Vec<_>>(),
        "metadata": {"kernelspec": {"display_name": "x", "language": language, "name": "x"}, "mine": [1]},
        "nbformat": 4, "nbformat_minor": 5,
    })
    .to_string()
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn notebooks_in_rhai_run_and_stop_at_the_first_error() {
    let scratch = Scratch::new();
    let cells = [
        "let a = 20;\nprint(\"hello\");\na + 1",
        "plot::curve([1, 2], [1, 4])",
        "let b = a + c;",
        "print(\"never\")",
    ];
    let file = scratch.file("n.ipynb", notebook("rhai", &cells));
    let output = ergodic()
        .args(["notebook", "run"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    for part in [
        "cell 3 of 4 (\"let b = a + c;\") failed",
        "there is no variable 'c'",
        "n.run.ipynb",
    ] {
        assert!(text(&output).contains(part), "{}", text(&output));
    }
    let done = read(&scratch.join("n.run.ipynb"));
    let outputs = |k: usize| &done["cells"][k]["outputs"];
    assert_eq!(
        outputs(0)[0],
        json!({"name": "stdout", "output_type": "stream", "text": ["hello\n"]})
    );
    assert_eq!(outputs(0)[1]["data"]["text/plain"], json!(["21"]));
    assert_eq!(outputs(0)[1]["execution_count"], 1);
    assert!(outputs(1)[0]["data"]["image/svg+xml"].is_array());
    assert_eq!(outputs(2)[0]["output_type"], "error");
    assert_eq!(*outputs(3), json!([]));
    assert_eq!(done["metadata"]["mine"], json!([1]));
    // The notebook itself is as it was.
    assert_eq!(read(&file)["cells"][0]["outputs"], json!([]));
    let whole = scratch.file("w.ipynb", notebook("rhai", &cells[..2]));
    let output = ergodic()
        .args(["notebook", "run", "--in-place"])
        .arg(&whole)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(read(&whole)["cells"][1]["execution_count"], 2);
}

/// The outputs of the cells of a notebook, each of which may fail.
fn outputs_of(cells: &[&str]) -> Vec<Value> {
    let scratch = Scratch::new();
    let mut whole: Value = serde_json::from_str(&notebook("rhai", cells)).unwrap();
    for cell in whole["cells"].as_array_mut().unwrap() {
        cell["metadata"]["tags"] = json!(["raises-exception"]);
    }
    let file = scratch.file("n.ipynb", whole.to_string());
    let output = ergodic()
        .args(["notebook", "run", "--in-place"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let cells = read(&file)["cells"].take();
    let cells = cells.as_array().unwrap().iter();
    cells.map(|c| c["outputs"].clone()).collect()
}

/// A text that a notebook has in lines.
fn joined(lines: &Value) -> String {
    let lines = lines.as_array().into_iter().flatten();
    lines.filter_map(Value::as_str).collect()
}

#[test]
fn values_are_short_ordered_and_rich() {
    let found = outputs_of(&[
        "let l = []; l.pad(20_000, 0.5); l",
        "let s = \"\"; for i in 0..20_000 { s += \"ab\"; } s",
        "#{ b: 1.0 / 3.0, a: [1.0 / 7.0, #{ c: \"x\" }] }",
        "table([\"step\", \"error\"], [[0.1, 1.0 / 3.0], #{ error: \"<x>\", step: 2 }])",
        "table([\"step\", \"error\"], [[0.1]])",
        "markdown(\"# A\")",
        "html(\"<b>B</b>\")",
        "print(\"gone\"); clear_output(); print(\"kept\");",
        "[[1, 2], [3, 4]]",
    ]);
    let text = |k: usize| joined(&found[k][0]["data"]["text/plain"]);
    let html = |k: usize| joined(&found[k][0]["data"]["text/html"]);
    assert!(text(0).starts_with("[0.5, 0.5, ") && text(0).ends_with(", … 20,000 in all]"));
    assert!(text(1).len() < 1200 && text(1).ends_with("… 40,000 characters in all"));
    assert_eq!(
        text(2),
        "name  value\na     [0.142857, #{ c: \"x\" }]\nb     0.333333"
    );
    assert!(html(2).contains("white-space:nowrap"));
    assert_eq!(text(3), "step  error\n 0.1  0.333333\n   2  <x>");
    assert!(html(3).contains("&lt;x&gt;") && html(3).find("step") < html(3).find("error"));
    let error = found[4][0]["evalue"].as_str().unwrap();
    assert!(
        error.contains("rows[0] has 1 value for 2 columns"),
        "{error}"
    );
    assert_eq!(joined(&found[5][0]["data"]["text/markdown"]), "# A");
    assert_eq!(html(6), "<b>B</b>");
    assert_eq!(joined(&found[7][0]["text"]), "kept\n");
    assert_eq!(text(8), "[[1, 2], [3, 4]]");
}

#[test]
fn objects_have_tables_and_drawings() {
    let found = outputs_of(&[
        "let d = dataset::digits(#{ per_class: 5 }); d",
        "let t = target(model::mlp(#{ layers: [64, 8, 10] }), d, #{ prior: prior::l2(1.0) }); t",
        "train(t, optimizer::adam(#{ lr: 0.01, epochs: 3, batch: 10 }))",
        "let p = llc_problem(#{ widths: [5, 6, 9, 4], rank: 1, n: 1000 }); llc(p.target, sampler::sgld(#{ step: 1e-4, batch: 10 }), #{ start: p.start, steps: 40, chains: 2 })",
        "plot::beside([plot::curve([1, 2], [3, 4]), plot::curve([1, 2], [3, 4])], 2)",
    ]);
    let html =
        |k: usize| joined(&found[k].as_array().unwrap().last().unwrap()["data"]["text/html"]);
    assert!(html(0).contains("<table") && html(0).contains("data:image/png;base64,"));
    for part in ["<table", "parameters N", "prior R"] {
        assert!(html(1).contains(part), "{part}: {}", html(1));
    }
    for (k, part) in [(2, "adam"), (3, "learning coefficient")] {
        assert!(
            html(k).contains("<table") && html(k).contains(part),
            "{}",
            found[k]
        );
        assert!(html(k).contains("data:image/svg+xml"), "{}", html(k));
    }
    assert!(html(3).contains("\">verdict: "), "{}", html(3));
    assert!(
        html(4).contains("max-width:100%;height:auto"),
        "{}",
        html(4)
    );
}

#[test]
fn habits_of_other_kernels_work_or_are_refused_in_words() {
    let found = outputs_of(&[
        "let λ = 2.5; let double = |x| λ * x; double.call(λ)",
        "!ls -l",
        "!missing_program",
        "let busy = true; !busy",
        "sampler::sgld?",
        "?sgld",
        ":help sessions",
        "%time 6 * 7",
        "%timeit 1 + 1",
        "%%timeit\nlet a = 1;\na + 1",
        "debug(#{ a: 1 });",
    ]);
    let text = |k: usize| joined(&found[k][0]["data"]["text/plain"]);
    assert_eq!(text(0), "6.25");
    for k in [1, 2] {
        let error = found[k][0]["evalue"].as_str().unwrap();
        assert!(error.contains("there is no shell"), "{error}");
    }
    assert_eq!(text(3), "false");
    for (k, part) in [
        (4, "### `sampler::sgld("),
        (5, "### `sampler::sgld("),
        (6, "# Sessions"),
    ] {
        let markdown = joined(&found[k][0]["data"]["text/markdown"]);
        assert!(markdown.starts_with(part), "{markdown}");
    }
    assert_eq!(found[7][0]["name"], "stdout");
    assert!(joined(&found[7][0]["text"]).ends_with(" s\n"));
    for k in [8, 9] {
        assert!(
            text(k).contains(" ± ") && text(k).contains("per run"),
            "{}",
            text(k)
        );
    }
    assert_eq!(found[10][0]["name"], "stderr");
    assert_eq!(joined(&found[10][0]["text"]), "In [11]:1: #{\"a\": 1}\n");
}

#[test]
fn errors_in_functions_name_the_calls_that_led_there() {
    let found = outputs_of(&[
        "fn inner(x) {\n    x + nothing_there\n}\nfn outer(x) {\n    inner(x)\n}",
        "let a = 1;\nouter(a);",
    ]);
    let traceback = joined(&found[1][0]["traceback"].clone());
    for part in [
        "In [1]:2:9",
        "2 |     x + nothing_there",
        "In [1]:5:5",
        "5 |     inner(x)",
        "In [2]:2:1",
        "2 | outer(a);",
    ] {
        assert!(traceback.contains(part), "{part}: {traceback}");
    }
}

#[test]
fn a_cell_that_takes_too_long_is_stopped() {
    let scratch = Scratch::new();
    let file = scratch.file(
        "n.ipynb",
        notebook("rhai", &["let x = 0;\nloop { x += 1; }"]),
    );
    let out = scratch.join("o.ipynb");
    let output = ergodic()
        .args(["notebook", "run", "--timeout", "0.5", "--out"])
        .args([&out, &file])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(
        text(&output).contains("took longer than 0.5 s"),
        "{}",
        text(&output)
    );
    assert_eq!(read(&out)["cells"][0]["outputs"][0]["ename"], "Interrupted");
}

#[test]
fn what_cannot_be_run_is_refused_in_words() {
    let scratch = Scratch::new();
    for (name, content, part) in [
        (
            "p.ipynb",
            notebook("python", &["1"]),
            "is in python; ergodic runs notebooks in Rhai and in Rust",
        ),
        (
            "x.ipynb",
            "{}".to_string(),
            "is not a notebook: its nbformat is missing",
        ),
    ] {
        let file = scratch.file(name, content);
        let output = ergodic()
            .args(["notebook", "run"])
            .arg(&file)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output).contains(part), "{}", text(&output));
    }
    if !cfg!(feature = "evcxr") {
        let file = scratch.file("r.ipynb", notebook("rust", &["1"]));
        for command in [
            ergodic().args(["notebook", "run"]).arg(&file),
            ergodic().args(["notebook", "setup"]),
            ergodic().args(["repl", "--rust"]),
        ] {
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(1));
            assert!(
                text(&output).contains("--features evcxr"),
                "{}",
                text(&output)
            );
        }
    }
}

/// As tests/interop/kernel/ship.py writes them; that a run shows the same is tested there.
#[test]
fn the_notebooks_of_the_repository_are_shipped_with_clean_outputs() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("notebooks"))
        .unwrap()
        .flatten()
    {
        let path = entry.path();
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        if !name.ends_with(".ipynb") || name.ends_with(".run.ipynb") {
            continue;
        }
        count += 1;
        assert!(
            path.metadata().unwrap().len() < 1_500_000,
            "{name} is large"
        );
        let whole = read(&path);
        let cells = whole["cells"].as_array().unwrap();
        let code = cells.iter().filter(|c| c["cell_type"] == "code");
        let mut said = String::new();
        for (i, cell) in code.enumerate() {
            let place = format!("{name}, code cell {}", i + 1);
            assert_eq!(cell["execution_count"], json!(i + 1), "{place}");
            assert!(cell["metadata"]["execution"].is_null(), "{place}");
            let source = joined(&cell["source"]);
            let outputs = cell["outputs"].as_array().unwrap();
            // A cell that ends with an expression shows it.
            let shows = !source.trim_end().ends_with([';', '}']);
            assert!(!shows || !outputs.is_empty(), "{place} shows nothing");
            let on_purpose = cell["metadata"]["tags"].as_array();
            let on_purpose =
                on_purpose.is_some_and(|tags| tags.contains(&json!("fails-on-purpose")));
            for output in outputs {
                assert_ne!(output["output_type"], "error", "{place}");
                assert_ne!(output["name"], "stderr", "{place}");
                let data = output["data"].as_object();
                for text in data
                    .into_iter()
                    .flat_map(|d| d.values())
                    .chain([&output["text"]])
                {
                    let text = joined(text);
                    for part in [
                        "/home/",
                        "/root/",
                        "/tmp/",
                        "/var/",
                        "/Users/",
                        "/work/",
                        "/dev/shm",
                        "ergodic-progress",
                    ] {
                        assert!(!text.contains(part), "{place} has {part}");
                    }
                    let words = ["NOT YET", "WRONG", "NOT MIXED", "not yet", "wrong"];
                    for word in words.into_iter().filter(|_| !on_purpose) {
                        assert!(!text.contains(word), "{place} says {word}");
                    }
                    said += &text;
                }
            }
        }
        assert!(said.contains("<svg"), "{name} has no figure");
        assert!(said.contains("converged"), "{name} has no verdict");
    }
    assert!(count >= 9);
}

/// Minutes, the first time: the library is compiled for cells, into the folder of build outputs. With ERGODIC_TEST_ALL, or if that is done.
#[cfg(feature = "evcxr")]
#[test]
#[ignore = "long: tests/run"]
fn rust_notebooks_run() {
    let folder = root().join("target/rust-cells");
    if std::env::var_os("ERGODIC_TEST_ALL").is_none() && !folder.join("setup.json").is_file() {
        eprintln!("skipped: target/rust-cells is not set up (tests/run --all does it)");
        return;
    }
    let notebook_command = |arguments: &[&str]| {
        let mut command = ergodic();
        command.env("ERGODIC_RUST_FOLDER", &folder).arg("notebook");
        command.args(arguments).output().unwrap()
    };
    for again in [false, true] {
        let setup = notebook_command(&["setup", "--yes", "--no-kernel"]);
        assert!(setup.status.success(), "{}", text(&setup));
        // The second finds that all is done.
        assert!(
            !again || text(&setup).contains("ready: "),
            "{}",
            text(&setup)
        );
    }
    let scratch = Scratch::new();
    // Beside it, so that results do not go into the repository.
    let name = "06_own_sampler_in_rust";
    let file = scratch.join(format!("{name}.ipynb"));
    std::fs::copy(root().join(format!("notebooks/{name}.ipynb")), &file).unwrap();
    let output = notebook_command(&["run", "--timeout", "600", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", text(&output));
    let done = read(&scratch.join(format!("{name}.run.ipynb")));
    let outputs = done["cells"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|c| c["outputs"].as_array().into_iter().flatten());
    let shown: Vec<_> = outputs.map(|o| &o["data"]).collect();
    let count = |mime: &str| shown.iter().filter(|d| !d[mime].is_null()).count();
    assert!(
        count("text/html") >= 2 && count("image/svg+xml") >= 1,
        "{shown:?}"
    );

    // Crates that the library has are there, as it has them; another one comes beside them, and variables live on.
    let own = scratch.join("own");
    std::fs::create_dir_all(own.join("src")).unwrap();
    std::fs::write(
        own.join("Cargo.toml"),
        "[package]\nname = \"own\"\nversion = \"0.1.0\"\n\n[features]\ntwice = []\n",
    )
    .unwrap();
    std::fs::write(
        own.join("src/lib.rs"),
        "pub fn number() -> i32 { if cfg!(feature = \"twice\") { 34 } else { 17 } }\n",
    )
    .unwrap();
    let by_path = format!(":dep own = {{ path = {own:?}, features = [\"twice\"] }}\nown::number()");
    let crates = [
        "let kept = 41;",
        ":dep candle-core = \"0.11\"\n:dep libm = \"0.2\"\nlet root = libm::cbrt(27.0);",
        "use candle_core::{DType, Device};\nlet x = Tensor::arange(0f32, 4.0, &Device::Cpu)?;\nx.sum_all()?.to_scalar::<f32>()?",
        "use candle_nn::{Module, VarBuilder, VarMap, linear};\nlet vars = VarMap::new();\nlet vb = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);\n\
         linear(4, 2, vb)?.forward(&x.unsqueeze(0)?)?.dims().to_vec()",
        "use serde::Serialize;\n#[derive(Serialize)]\nstruct Pair { a: i32, b: f64 }\nserde_json::to_string(&Pair { a: kept, b: root })?",
        "use plotters::evcxr::evcxr_figure;\nuse plotters::style::WHITE;\nevcxr_figure((100, 80), |area| { plotters::drawing::DrawingArea::fill(&area, &WHITE)?; Ok(()) })",
        "let net = from_candle(64, |vb| linear(64, 10, vb))?;\n\
         let target = Target::of(&net, &dataset::Digits::new().per_class(2).build()?).run()?;\n\
         sample(&target, &sampler::Sgld::new().step(1e-5).batch(10).build()?).steps(20).every(1).run()?.parameters()",
        &by_path,
        // From cargo's cache.
        ":offline 1\n:dep fastrand = { version = \"2\", default-features = false }\nfastrand::Rng::with_seed(7).u8(3..4)",
        "kept + 1",
        // The last, because it fails.
        ":dep rand = \"0.1\"",
    ];
    let file = scratch.file("crates.ipynb", notebook("rust", &crates));
    let output = notebook_command(&["run", "--timeout", "300", &file.to_string_lossy()]);
    let done = read(&scratch.join("crates.run.ipynb"));
    let said: Vec<_> = done["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["outputs"].to_string())
        .collect();
    for (cell, part) in [
        (1, "candle-core 0.11.1 is there without :dep"),
        (2, "6.0"),
        (3, "[1, 2]"),
        (4, "{\\\\\\\"a\\\\\\\":41,\\\\\\\"b\\\\\\\":3.0}"),
        (5, "<svg"),
        (6, "650"),
        (7, "34"),
        (8, "\"3\""),
        (9, "42"),
        (10, "0.1 is asked for"),
    ] {
        assert!(
            said[cell].contains(part),
            "cell {cell}: {} {}",
            said[cell],
            text(&output)
        );
    }

    let cells = [
        "let kept = 41;",
        "dataset::Digits::new().per_class(0).build()?;",
        "kept + 1",
    ];
    let file = scratch.file("broken.ipynb", notebook("rust", &cells));
    let output = notebook_command(&["run", &file.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    for part in ["cell 2 of 3", "option 'per_class' is 0"] {
        assert!(text(&output).contains(part), "{}", text(&output));
    }
}
