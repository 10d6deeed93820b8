//! Closures that leave the script: observables and models. What they capture, what they may not do, and what a resumed run knows of them.

use super::support::{Scratch, evaluate};
use ergodic::script::{Failure, Interpreter};
use ergodic::simulation::session::Session;
use serde_json::Value;
use std::path::Path;

/// Run a script in a folder.
fn run(folder: &Path, source: &str, threads: usize, resume: bool) -> Result<Value, Failure> {
    let mut session = Session::new(folder.to_path_buf());
    (session.threads, session.resume, session.quiet) = (threads, resume, true);
    run_with(session, source, &[])
}

/// Run a script in a session, with these parameters.
fn run_with(session: Session, source: &str, settings: &[(&str, &str)]) -> Result<Value, Failure> {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let mut interpreter = Interpreter::new(session, settings.collect());
    let value = interpreter.run("test.rhai", source)?;
    Ok(interpreter.json(&value))
}

/// Each line is an observable that captures something else.
const CAPTURED: &str = r#"
    model: |s| net.outputs(s.params, x).square().sum().item(),
    data: |s| data.row("train", s.step % 20).inputs[0] + data.dim * s.params[0],
    tensor: |s| (x * s.params[1]).sum().item(),
    target: |s| t.energies(s.params).total,
    outputs: |s| t.outputs(s.params, "train").max(),
    sampler: |s| langevin.gradients_per_step() * s.params[2],
    schedule: |s| `${schedule}`.len() + s.params[3],
    run: |s| earlier.trace("norm2", 0)[s.step % 10] + s.params[0],
    training: |s| t.energies(trained).loss * s.params[2],
    given: |s| start.vector(0)[2] * s.params[2],
    prior: |s| `${prior}`.len() + s.params[4],
    observable: |s| `${own}`.len() + s.params[5],
    array: |s| list[s.step % 3][0] * s.params[0],
    map: |s| map.a.b * s.params[1] + map.keys().len(),
    string: |s| (text + s.step).len() + s.params[2],
    numbers: |s| if yes { k * s.params[3] + n } else { 0.0 },
    closure: |s| scaled.call(s.params[4]) + fs[1].call(s.step),
    function: |s| area(s.params[5], k),
    imported: |s| helper::twice(s.params[6]) + helper::OFFSET,
    vector: |s| [s.params[0], twelve * s.params[1]],
"#;

const SCENE: &str = r#"
    import "HELPER" as helper;
    fn area(r, k) { k * r * r }
    let data = dataset::spin_vectors(#{ dim: 4, classes: 2, train: 20, test: 10 });
    let net = model::mlp(#{ layers: [4, 2, 2] });
    let prior = prior::l2(10.0);
    let t = target(net, data, #{ prior: prior });
    let x = tensor([[1.0, -1.0, 0.5, 2.0], [0.1, 0.2, 0.3, 0.4]]);
    let langevin = sampler::langevin(#{ dt: 0.01 });
    let schedule = schedule::power(0.01, 1.0, 0.3);
    let start = parameters([[0.0, 1.0, 2.5]]);
    let trained = train(t, optimizer::adam(#{ epochs: 2, batch: 10 }));
    let earlier = sample(t, langevin, #{ chains: 1, steps: 40, every: 1, burn_in: 0, seed: 5 });
    let own = observable::named("mine", |s| s.step);
    let list = [[1.5], [2.5], [3.5]];
    let map = #{ a: #{ b: 2.0 } };
    let text = "abc";
    let k = 1.25;
    let n = 3;
    let twelve = 12;
    let yes = true;
    let scaled = |v| k * v;
    let fs = [|v| v, |v| scaled.call(v) + n];
"#;

#[test]
#[ignore = "long: tests/run"]
fn every_captured_object_is_the_same_on_any_number_of_threads() {
    let scratch = Scratch::new();
    let helper = scratch.file(
        "helper.rhai",
        "export const OFFSET = 0.5;\nfn thrice(v) { 3 * v }\nfn twice(v) { thrice(v) - v }\n",
    );
    let lines = CAPTURED
        .trim()
        .lines()
        .map(|l| l.trim().trim_end_matches(','));
    let observed: Vec<_> = lines.map(|l| l.split_once(": ").unwrap()).collect();
    let list: String = observed
        .iter()
        .map(|(name, closure)| format!("observable::named(\"{name}\", {closure}),\n"))
        .collect();
    let traces: String = observed
        .iter()
        .map(|(name, _)| format!("for c in 0..4 {{ out.push(run.trace(\"{name}\", c)); }}\n"))
        .collect();
    let source = format!(
        "{}\nlet run = sample(t, langevin, #{{ chains: 4, steps: 2500, every: 1, burn_in: 0, temperature: 0.01, seed: 3, observe: [{list}] }});
         let out = [];\n{traces}\nout",
        SCENE.replace("HELPER", &helper.display().to_string())
    );
    let on = |threads: usize| {
        let folder = scratch.join(format!("{threads}"));
        run(&folder, &source, threads, false).unwrap_or_else(|e| panic!("{threads} threads: {e}"))
    };
    let one = on(1);
    let all = one.as_array().unwrap();
    assert_eq!(all.len(), 4 * observed.len());
    for trace in all {
        let records = trace.as_array().unwrap();
        assert!(records.len() == 2500 && records.iter().any(|x| *x != records[0]));
    }
    for threads in [2, 8] {
        assert!(one == on(threads), "{threads} threads");
    }
}

/// A run of two chains that observes a closure.
fn observing(before: &str, closure: &str) -> String {
    format!(
        "let t = target(potential::gaussian(#{{ dim: 3 }}));\n{before}\nlet run = sample(t, sampler::langevin(#{{ dt: 0.1 }}), #{{\n    \
         chains: 2, steps: 50, every: 1, burn_in: 0,\n    observe: [observable::norm2(), {closure}] }});\nrun.trace(\"norm2\", 0).len()"
    )
}

fn refused(source: &str) -> String {
    match evaluate(source) {
        Err(e) => e.to_string(),
        Ok(x) => panic!("{source}\ngave {x}"),
    }
}

#[test]
fn what_is_captured_is_not_changed() {
    for (before, closure, variable) in [
        ("let g = 0;", "|s| { g += 1; g }", "g"),
        ("let g = 0;", "|s| { g = s.step; g }", "g"),
        ("let g = 0;", "|s| { if s.step > 1000 { g += 1; } g }", "g"),
        ("let g = [];", "|s| { g.push(s.step); g.len() }", "g"),
        (
            "let g = [];",
            "|s| { if s.step > 1000 { g.push(1); } 0 }",
            "g",
        ),
        ("let g = [0];", "|s| { g[0] += 1; g[0] }", "g"),
        ("let g = #{ n: 0 };", "|s| { g.n += 1; g.n }", "g"),
        ("let g = #{ a: [] };", "|s| { g.a.push(1); g.a.len() }", "g"),
        ("let g = \"\";", "|s| { g += \"x\"; g.len() }", "g"),
        ("let g = 0; let f = || { g += 1; g };", "|s| f.call()", "g"),
        (
            "let g = 0; let fs = [#{ f: || { g += 1; g } }];",
            "|s| fs[0].f.call()",
            "g",
        ),
        (
            "let g = 0;",
            "|s| { let add = |x| { g += x; }; add.call(1); g }",
            "g",
        ),
        // By a function that works on `this`, which only the call shows.
        (
            "fn up() { this += 1; } let g = 0;",
            "|s| { g.up(); g }",
            "g",
        ),
    ] {
        let said = refused(&observing(before, closure));
        let wanted = format!("changes the variable '{variable}', which it has captured");
        assert!(
            said.contains(&wanted) && said.contains("may only read"),
            "{closure}: {said}"
        );
    }
    // Variables of its own are its own, also under a name that it has captured or a function has; the script may go on changing its own.
    for (before, closure) in [
        ("let g = 1;", "|s| { let h = g; h += 1; h }"),
        ("let g = [3, 1];", "|s| { let h = g; h.sort(); h[0] }"),
        (
            "let g = 1;",
            "|s| { let n = g; for g in 0..3 { n += g; } n }",
        ),
        ("fn add(g) { g += 1; g } let g = 1;", "|s| add(g)"),
        ("let g = 1;", "|s| { let f = |g| { g += 1; g }; f.call(g) }"),
        ("let g = 1; let o = |s| g; g += 5;", "o"),
    ] {
        let source = observing(before, closure);
        assert_eq!(
            evaluate(&source).unwrap_or_else(|e| panic!("{source}\n{e}")),
            50
        );
    }
}

/// A change that a call makes only later ends the run, whatever the number of threads.
#[test]
fn a_late_change_is_noticed() {
    let source = observing(
        "fn up() { this += 1; } let g = 0;",
        "|s| { if s.step == 30 { g.up(); } g }",
    );
    let said = refused(&source);
    assert!(said.contains("changes the variable 'g'"), "{said}");
}

#[test]
fn what_depends_on_more_than_the_state_is_refused() {
    for (closure, said) in [
        (
            "|s| timestamp().elapsed",
            "must not use timestamp: the time differs",
        ),
        ("|s| eval(\"1\")", "must not use eval"),
        (
            "|s| sample(t, sampler::hmc()).draws",
            "must not use sample: runs",
        ),
        (
            "|s| { import \"transition\" as x; 1 }",
            "must not use import",
        ),
        (
            "|s| tensor::load(\"x.npy\").sum()",
            "must not use tensor::load: files may be others",
        ),
        ("|s| read_json(\"x.json\").a", "must not use read_json"),
    ] {
        let found = refused(&observing("", closure));
        assert!(found.contains(said), "{closure}: {found}");
    }
    let recursive = "let f = 0; f = |n| if n < 1 { 0 } else { f.call(n - 1) };";
    let found = refused(&observing(recursive, "|s| f.call(3)"));
    assert!(found.contains("captures itself"), "{found}");
    // To print is allowed.
    assert_eq!(
        evaluate(&observing(
            "",
            "|s| { if s.step == 7 { print(s.chain); } 1 }"
        ))
        .unwrap(),
        50
    );
}

/// Scripts in which a word stands for what is changed: `WORD` by itself, then what it is and what it becomes.
const RESUMED: &[(&str, &str, &str, &str)] = &[
    ("", "|s| s.step * 2.0", "2.0", "3.0"),
    ("let k = 2.0;", "|s| s.step * k", "k = 2.0", "k = 2.0000001"),
    ("let k = [1, 2];", "|s| s.step * k[1]", "[1, 2]", "[1, 3]"),
    (
        "let k = tensor([1.0, 2.0]);",
        "|s| s.step * k.sum().item()",
        "2.0",
        "2.5",
    ),
    ("let k = #{ a: [\"x\"] };", "|s| k.a[0].len()", "x", "xy"),
    (
        "let k = model::mlp(#{ layers: [4, 2] });",
        "|s| k.parameters",
        "4, 2",
        "4, 3",
    ),
    (
        "let k = dataset::spin_vectors(#{ dim: 4, classes: 2, train: 20, seed: 1 });",
        "|s| k.dim",
        "seed: 1",
        "seed: 2",
    ),
    (
        "let k = target(potential::gaussian(#{ dim: 3, examples: 5, noise: 1.0 }));",
        "|s| k.energies(s.params).total",
        "1.0",
        "1.5",
    ),
    (
        "let k = prior::l2(10.0);",
        "|s| `${k}`.len()",
        "10.0",
        "11.0",
    ),
    (
        "let k = sampler::langevin(#{ dt: 0.1 });",
        "|s| k.step_size()",
        "dt: 0.1",
        "dt: 0.2",
    ),
    (
        "let k = parameters([1.0]);",
        "|s| k.vector(0)[0]",
        "1.0",
        "1.5",
    ),
    ("let f = |x| 2 * x;", "|s| f.call(s.step)", "2 *", "3 *"),
    (
        "let j = 1; let f = |x| j * x;",
        "|s| f.call(s.step)",
        "j = 1",
        "j = 2",
    ),
    (
        "fn f(x) { g(x) } fn g(x) { 2 * x }",
        "|s| f(s.step)",
        "2 *",
        "3 *",
    ),
    (
        "const K = 2; fn f(x) { global::K * x }",
        "|s| f(s.step)",
        "K = 2",
        "K = 3",
    ),
    ("import \"HELPER\" as h;", "|s| h::f(s.step)", "2 *", "3 *"),
    // What differs in parentheses alone.
    ("", "|s| -s.params.max()", "-s.params", "(-s.params)"),
    ("", "|s| -s.params[0..2].max()", "-s.params", "(-s.params)"),
    (
        "",
        "|s| if !(s.step > 3 && s.chain == 0) { 1 } else { 2 }",
        "!(s.step > 3 && s.chain == 0)",
        "!(s.step > 3) && s.chain == 0",
    ),
    (
        "",
        "|s| if s.step > 3 && (s.chain == 0 || s.step > 5) { 1 } else { 2 }",
        "s.step > 3 && (s.chain == 0 || s.step > 5)",
        "(s.step > 3 && s.chain == 0) || s.step > 5",
    ),
    (
        "let first = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 100, seed: 1, name: \"first-1\" }); let k = first.summary();",
        "|s| s.step * k.norm2",
        "seed: 1, name: \"first-1\"",
        "seed: 2, name: \"first-2\"",
    ),
    (
        "",
        "|s| switch s.chain { 0 => 1.0, _ => 2.0 }",
        "0 =>",
        "1 =>",
    ),
    (
        "",
        "|s| if s.step > 3 && s.chain == 0 { 1 } else { 2 }",
        "&&",
        "||",
    ),
    (
        "",
        "|s| { let a = 1; for i in 0..3 { a += i; } a }",
        "+=",
        "-=",
    ),
];

#[test]
#[ignore = "long: tests/run"]
fn a_run_is_resumed_only_with_the_same_closure() {
    for (i, (before, closure, was, is)) in RESUMED.iter().enumerate() {
        let scratch = Scratch::new();
        let out = scratch.join("out");
        let helper = scratch.join("helper.rhai");
        let before = before.replace("HELPER", &helper.display().to_string());
        let source = observing(&before, &format!("observable::named(\"mine\", {closure})"));
        let imported = "fn f(x) { 2 * x }";
        let go = |source: &str, imported: &str, resume: bool| {
            std::fs::write(&helper, imported).unwrap();
            run(&out, source, 1, resume)
        };
        let first = go(&source, imported, false).unwrap_or_else(|e| panic!("{closure}: {e}"));
        let (changed, other) = (source.replace(was, is), imported.replace(was, is));
        assert!(changed != source || other != imported, "{closure}");
        let said =
            go(&changed, &other, true).map_or_else(|e| e.to_string(), |x| format!("gave {x}"));
        assert!(
            said.contains("another closure as the observable 'mine'") && said.contains("it was "),
            "{i} {closure}: {said}"
        );
        // What is only written otherwise is the same.
        let spaced = source
            .replace("|s| ", "|s|   /* a comment */\n  ")
            .replace("let ", "// more\nlet  ");
        let again = go(&spaced, "// text\nfn f(x)   { 2 * x }", true);
        assert_eq!(again.unwrap_or_else(|e| panic!("{closure}: {e}")), first);
    }
}

/// Values of a module may come from files, which are no part of its text.
#[test]
fn what_a_module_has_read_is_known() {
    let rows = "dataset::csv(\"TABLE\", #{ label: \"y\", task: \"regression\", test: 0 })";
    for (text, value) in [
        (
            "export const TWICE = |x| 2 * x; export const ROWS = READ;",
            "helper::ROWS.row(\"train\", 0).inputs[0]",
        ),
        (
            "const ROWS = READ; fn first() { global::ROWS.row(\"train\", 0).inputs[0] }",
            "helper::first()",
        ),
        (
            "let rows = READ; export const F = |k| rows.row(\"train\", k).inputs[0]; fn first() { global::F.call(0) }",
            "helper::first()",
        ),
    ] {
        let scratch = Scratch::new();
        let out = scratch.join("out");
        let table = scratch.join("table.csv");
        let text = text
            .replace("READ", rows)
            .replace("TABLE", table.to_str().unwrap());
        let helper = scratch.file("helper.rhai", &text);
        let source = observing(
            &format!("import \"{}\" as helper;", helper.display()),
            &format!("observable::named(\"mine\", |s| {value})"),
        );
        let go = |first: i32, resume: bool| {
            std::fs::write(&table, format!("x,y\n{first},2\n3,4\n")).unwrap();
            run(&out, &source, 1, resume)
        };
        let first = go(1, false).unwrap();
        let said = go(2, true).map_or_else(|e| e.to_string(), |x| format!("gave {x}"));
        assert!(
            said.contains("another closure as the observable 'mine'"),
            "{text}: {said}"
        );
        assert_eq!(go(1, true).unwrap(), first);
        // What is only written otherwise is the same.
        std::fs::write(&helper, format!("// a comment\n\n{text}")).unwrap();
        assert_eq!(go(1, true).unwrap(), first);
    }
}

/// Whatever calls it, and whatever it is called: no file is opened while a run goes on.
#[test]
fn closures_use_no_files() {
    let scratch = Scratch::new();
    let weights = scratch.join("w.safetensors");
    let inner = scratch.file("inner.rhai", "fn f() { 2 }");
    let helper = scratch.file(
        "helper.rhai",
        format!(
            "fn reads() {{ read_json(\"k.json\").k }} fn imports() {{ import \"{}\" as inner; inner::f() }}",
            inner.display()
        ),
    );
    let before = format!(
        "import \"{}\" as helper; let net = model::mlp(#{{ layers: [2, 1] }}); let x = tensor([1.0, 2.0]);",
        helper.display()
    );
    let save = format!("|s| {{ x.save(\"{}\"); 1 }}", weights.display());
    let load = format!("|s| {{ net.load(\"{}\"); 1 }}", weights.display());
    let calls = ["|s| helper::reads()", "|s| helper::imports()", &save, &load];
    for closure in calls {
        let said = refused(&observing(&before, closure));
        assert!(said.contains("files may be others"), "{closure}: {said}");
    }
    assert!(!weights.exists());
}

/// Draws that a captured run has kept are those of its own folder.
#[test]
fn closures_read_what_a_captured_run_has_kept() {
    let source = "let r = sample(target(potential::gaussian(#{ dim: 3 })), sampler::langevin(#{ dt: 0.1 }), #{ chains: 2, steps: 20, every: 1, keep: 4 });
        let all = observe(r, [observable::named(\"mine\", |s| r.kept(\"w\", s.chain).sum().item())]);
        all.trace(\"mine\", 0).len() > 0";
    let found = evaluate(source);
    assert_eq!(found.unwrap_or_else(|e| panic!("{e}")), true);
}

/// A module that runs something reads its own results when the script is resumed.
#[test]
fn modules_that_sample_are_the_same_when_a_run_goes_on() {
    let scratch = Scratch::new();
    let helper = scratch.file(
        "helper.rhai",
        "let r = sample(target(potential::gaussian(#{ dim: 2 })), sampler::langevin(#{ dt: 0.1 }), #{ chains: 1, steps: 20, every: 1, keep: 2, name: \"inner\" });
         export const START = r.trace(\"norm2\", 0)[3] + r.kept(\"w\", 0).sum().item();",
    );
    let source = observing(
        &format!("import \"{}\" as helper;", helper.display()),
        "observable::named(\"mine\", |s| helper::START * s.step)",
    );
    let go =
        |resume| run(&scratch.join("out"), &source, 1, resume).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(go(false), go(true));
}

/// A parameter that a module asks for as a method, by a computed name or by a pointer is part of the closures that use the module.
#[test]
fn another_parameter_of_a_module_is_another_closure() {
    for asks in [
        "\"other\".param(1.0)",
        "param(\"oth\" + \"er\", 1.0)",
        "Fn(\"param\").call(\"other\", 1.0)",
    ] {
        let scratch = Scratch::new();
        let helper = scratch.file("helper.rhai", format!("fn f(x) {{ x * {asks} }}"));
        let source = observing(
            &format!("import \"{}\" as helper;", helper.display()),
            "observable::named(\"mine\", |s| helper::f(s.step))",
        );
        let go = |settings: &[(&str, &str)], resume: bool| {
            let mut session = Session::new(scratch.join("out"));
            (session.resume, session.quiet) = (resume, true);
            run_with(session, &source, settings).map_err(|e| e.to_string())
        };
        go(&[], false).unwrap_or_else(|e| panic!("{asks}: {e}"));
        let said = go(&[("other", "2.0")], true).unwrap_err();
        assert!(said.contains("another closure"), "{asks}: {said}");
    }
}

/// Settings that a module does not ask for may change, and so may the place of what a closure has captured; data sets are made once.
#[test]
fn what_no_closure_depends_on_may_change() {
    let scratch = Scratch::new();
    let out = scratch.join("out");
    let (table, factor) = (scratch.join("table.csv"), scratch.join("k.json"));
    let helper = scratch.file("helper.rhai", "fn f(x) { x * param(\"other\", 1.0) }");
    let source = observing(
        &format!(
            "import \"{}\" as helper; param(\"label\", \"a\");
             let data = dataset::csv(\"{}\", #{{ label: \"y\", task: \"regression\", test: 0 }});
             let scaled = data.map(|x, y| [x * read_json(\"{}\").k, y]);",
            helper.display(),
            table.display(),
            factor.display()
        ),
        "observable::named(\"mine\", |s| helper::f(data.dim + scaled.row(\"train\", 0).inputs[0]))",
    );
    let go = |number: &str, factor_is: i32, settings: &[(&str, &str)], resume: bool| {
        std::fs::write(&table, format!("x,y\n{number},2\n3,4\n")).unwrap();
        std::fs::write(&factor, format!("{{\"k\": {factor_is}}}")).unwrap();
        let mut session = Session::new(out.clone());
        (session.resume, session.quiet) = (resume, true);
        run_with(session, &source, settings).map_err(|e| e.to_string())
    };
    let first = go("1", 2, &[], false).unwrap();
    assert_eq!(go("1.0", 2, &[("label", "b")], true).unwrap(), first);
    for said in [go("1", 2, &[("other", "2.0")], true), go("1", 3, &[], true)] {
        let said = said.unwrap_err();
        assert!(said.contains("another closure"), "{said}");
    }
}

/// Whatever else is resumed knows its closures too.
#[test]
#[ignore = "long: tests/run"]
fn every_kind_of_run_knows_its_closures() {
    let potential = "let k = 1.0; let t = target(potential::closure(2, |w| 0.5 * k * w.norm2()), #{ prior: prior::gaussian(1.0) });";
    let observe = "observe: [|s| s.step * k]";
    let data = "let k = 1.0; let data = dataset::spin_vectors(#{ dim: 4, classes: 2, train: 40, test: 10 });";
    let net = format!(
        "{data} let t = target(model::custom(#{{ params: #{{ w: [2, 4] }}, inputs: 4, interpret: true, forward: |p, x| x.matmul(p.w.t()) * k }}), data);"
    );
    for source in [
        format!("{potential} exchange(t, sampler::hmc(#{{ leapfrog: 2 }}), #{{ temperatures: [1.0, 2.0], steps: 20, every: 1, chains: 1, {observe} }});"),
        format!("{potential} sample(t, sampler::hmc(#{{ leapfrog: 2 }}), #{{ steps: 20, every: 1 }});"),
        format!("{potential} smc(t, sampler::hmc(#{{ leapfrog: 2 }}), #{{ particles: 20, populations: 2, moves: 2 }});"),
        format!("{net} train(t, optimizer::adam(#{{ epochs: 2, batch: 20 }}));"),
        format!("{net} sample(t, sampler::sgld(#{{ step: 1e-3, batch: 20 }}), #{{ steps: 20, every: 1 }});"),
        format!(
            "{data} let t = target(model::mlp(#{{ layers: [4, 2] }}), data);
             llc(t, sampler::sgld(#{{ step: 1e-3, batch: 20 }}), #{{ start: train(t, optimizer::adam(#{{ epochs: 2, batch: 20 }})), chains: 2, steps: 200, {observe} }});"
        ),
    ] {
        let scratch = Scratch::new();
        let out = scratch.join("out");
        run(&out, &source, 1, false).unwrap_or_else(|e| panic!("{source}\n{e}"));
        run(&out, &source.replace("* k", "*  k /* same */"), 1, true).unwrap_or_else(|e| panic!("{source}\n{e}"));
        let said = run(&out, &source.replace("k = 1.0", "k = 1.0001"), 1, true);
        let said = said.map_or_else(|e| e.to_string(), |x| format!("{x}"));
        assert!(
            said.contains("other settings") || said.contains("another closure"),
            "{source}\n{said}"
        );
    }
}

#[test]
fn errors_stand_where_they_are_in_the_closure() {
    let scene = "let t = target(potential::gaussian(#{ dim: 3 }));\nlet net = model::mlp(#{ layers: [4, 2] });\nlet x = tensor::ones([1, 4]);\n";
    for (source, wanted) in [
        // The line and the column within.
        (
            "let f = |s| {\n    let a = 1;\n    a + s.nothing\n};\nsample(t, sampler::hmc(), #{ steps: 20, observe: [f] });",
            vec!["test.rhai:6:", "6 |     a + s.nothing"],
        ),
        (
            "fn g(x) {\n    x.norm3()\n}\nsample(t, sampler::hmc(), #{ steps: 20, observe: [|s| g(s.params)] });",
            vec!["test.rhai:5:", "x.norm3()", "norm2"],
        ),
        (
            "let f = |s|\n    net.outputs(s.params, x).sum().item();\nsample(t, sampler::hmc(), #{ steps: 20, observe: [f] });",
            vec![
                "test.rhai:5:",
                "model.outputs: 3 parameters for a model of 10",
            ],
        ),
        (
            "sample(t, sampler::hmc(), #{ steps: 20, observe: [\n  |s| net.outputs(net, x)] });",
            vec!["test.rhai:5:", "takes parameters, not a Model"],
        ),
        (
            "sample(t, sampler::hmc(), #{ steps: 20, every: 1, observe: [|s|\n if s.step < 5 { 1.0 } else { throw \"la\" + \"te\" }] });",
            vec!["test.rhai:5:", "failed: late"],
        ),
        (
            "sample(t, sampler::hmc(), #{ steps: 20, observe: [|a, b| 1] });",
            vec!["takes 2 arguments (a, b), but is called with 1 argument (the state)"],
        ),
        (
            "potential::closure(2, |w| {\n  w[0]\n    + w.norm3()\n})",
            vec!["test.rhai:6:", "norm2"],
        ),
        (
            "potential::closure(2, |w, x, y| w[0] * x[0] - y[0])",
            vec![
                "takes 3 arguments (w, x, y), but is called with 1 argument (w), the parameters",
                "the data set is the third argument",
            ],
        ),
        (
            "potential::closure(2, |w| w[0], dataset::digits())",
            vec!["takes 1 argument (w), but is called with 3 arguments (w, x, y)"],
        ),
        (
            "potential::closure(2, |w, x, y| {\n  let k = 0; while y[0] != k { k += 1; } k * w[0]\n}, dataset::digits())",
            vec!["test.rhai:5:", "compared in more than 64 ways"],
        ),
        (
            "model::custom(#{ params: #{ w: [2, 4] }, forward: |p| p.w })",
            vec![
                "forward takes 1 argument (p), but is called with 2 arguments (the parameters, the inputs)",
            ],
        ),
        (
            "model::custom(#{ params: #{ w: [2, 4] }, interpret: true, inputs: 4, forward: |p, x|\n  x.matmul(p.v) })",
            vec!["test.rhai:5:", "there is no parameter 'v'"],
        ),
    ] {
        let said = refused(&format!("{scene}{source}"));
        for w in wanted {
            assert!(said.contains(w), "{source}\n{said}\nwithout: {w}");
        }
        assert!(
            !said.contains("ergodic::")
                && !said.contains("anon$")
                && said.matches("-->").count() <= 1 + said.matches("called from").count(),
            "{said}"
        );
    }
}

#[test]
fn closures_give_several_numbers() {
    let scene = "let t = target(potential::gaussian(#{ dim: 3 }));
        let run = sample(t, sampler::hmc(), #{ chains: 2, steps: 20, every: 1, burn_in: 0, observe: [observable::norm2(),
            observable::named(\"pair\", |s| [s.params[0], s.params[1] ** 2]), observable::named(\"named\", |s| #{ b: s.step, a: s.chain }),
            observable::named(\"tensor\", |s| tensor(s.params).square()), observable::named(\"values\", |s| s.params)] });";
    let found = evaluate(&format!(
        "{scene} let at = |name| run.trace(name, 1)[7];
         #{{ n: at.call(\"norm2\"), pair: at.call(\"pair\"), named: at.call(\"named\"), squares: at.call(\"tensor\"), w: at.call(\"values\") }}"
    ))
    .unwrap_or_else(|e| panic!("{e}"));
    let number = |x: &Value| x.as_f64().unwrap();
    let squares: f64 = found["squares"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .sum();
    assert!(
        (squares - number(&found["n"])).abs() < 1e-5 && squares > 0.0,
        "{found}"
    );
    // Of a map in the order of its keys.
    assert_eq!(found["named"], serde_json::json!([1.0, 8.0]));
    assert_eq!(found["pair"][0], found["w"][0]);
    for (closure, wanted) in [
        (
            "|s| if s.step < 5 { [1, 2] } else { [1, 2, 3] }",
            "returned 3 numbers (0, 1, 2) at step 5 of chain",
        ),
        ("|s| []", "returned no numbers"),
        ("|s| [1, \"a\"]", "with a string in it"),
        (
            "|s| ()",
            "must return a number, or an array or map of numbers, but returned nothing",
        ),
    ] {
        let said = refused(&observing("", closure));
        assert!(said.contains(wanted), "{closure}: {said}");
    }
}

/// What the state computes is what the observables of the program record, and the model's own methods give.
#[test]
fn the_state_has_losses_outputs_and_gradients() {
    let scratch = Scratch::new();
    let source = r#"
        let data = dataset::digits(#{ per_class: 10 });
        let t = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ prior: prior::l2(10.0) });
        let run = sample(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperature: 1e-3, chains: 3, steps: 100, every: 10, burn_in: 0, observe: [
            observable::loss("test"), observable::error("test"), observable::energy(), observable::gradient_norm2(),
            observable::named("a", |s| s.loss("test")), observable::named("b", |s| s.error("test")), observable::named("c", |s| s.energy()),
            observable::named("d", |s| s.gradient().norm2()),
            observable::named("e", |s| s.outputs("test")[3][1] - t.outputs(s.params, "test")[31]),
            observable::named("f", |s| (s.params.w2 - s.params.tensor("w2")).abs().max() + s.params["b1"].shape().len() - s.gradient().b1.shape().len()),
        ] });
        let same = [];
        for pair in [["loss_test", "a"], ["error_test", "b"], ["energy", "c"]] {
            for chain in 0..3 { same.push(run.trace(pair[0], chain) == run.trace(pair[1], chain)); }
        }
        // The sums of squares are added up in another order.
        let off = (run.trace("gradient_norm2", 0)[3] / run.trace("d", 0)[3] - 1.0).abs();
        [same.all(|x| x), run.trace("e", 0).max(), run.trace("f", 0).max(), off < 1e-12]
    "#;
    let found = run(&scratch.join("state"), source, 2, false).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(found, serde_json::json!([true, 0.0, 0.0, true]), "{found}");
    for (wrong, expected) in [
        ("s.loss(\"tset\")", "has no split"),
        ("s.params.w9.max()", "w9"),
    ] {
        let source = format!(
            "sample(target(model::mlp(#{{ layers: [64, 10] }}), dataset::digits(5)), sampler::sgld(#{{ batch: 10 }}), #{{ steps: 10, every: 1, observe: [|s| {wrong}] }})"
        );
        let failure = run(&scratch.join("wrong"), &source, 1, false).expect_err(wrong);
        assert!(format!("{failure:?}").contains(expected), "{failure:?}");
    }
}

/// A closure of the parameters is compiled; a summand that needs more than them has it called. Both are what they were.
#[test]
fn closures_that_are_compiled_give_what_they_give_when_they_are_called() {
    let found = evaluate(
        r#"
        let t = target(model::mlp(#{ layers: [64, 12, 10] }), dataset::digits(#{ per_class: 10 }));
        let c = 0.3;
        let all = [
            |s| s.params.norm2(), |s| s.params.w1.norm2() / s.params.w2.norm2(), |s| s.params.slice("w1").abs().max(), |s| s.params[3],
            |s| (s.params.w2.relu() * c).sum().sqrt(), |s| s.params.w2.matmul(s.params.w1).tanh().mean(), |s| s.params.b1, |s| #{ a: s.params.b2[1], b: 2.5, n: s.params.len() },
            |s| { let x = s.params.b1; let sum = 0; for i in 0..x.len() { sum += x[i] * i; } sum }, |s| if s.params.b1[0].item() > 0.0 { 1.0 } else { 0.0 },
            |s| { let x = s.params.w1.norm2().item(); #{ x: x, y: x * s.params.w2.max().item() } },
            |s| { let x = s.params.w2[0]; let n = 0; for i in 0..3 { if x[i] > 0 && x[i] < x[i + 1] { n += 1; } } n }, |s| s.params.b1[0] > s.params.b1[1],
            |s| if s.params.b2[0] <= s.params.b2[1] { #{ low: s.params.b2[0], high: s.params.b2[1] } } else { #{ low: s.params.b2[1], high: s.params.b2[0] } },
            |s| { let k = 0; while s.params.w1[0][k] > 0 { k += 1; } k },
        ];
        let called = [
            |s| s.params.norm2() + 0 * s.step, |s| s.params.w1.norm2() / s.params.w2.norm2() + 0 * s.step, |s| s.params.slice("w1").abs().max() + 0 * s.step, |s| s.params[3] + 0 * s.step,
            |s| (s.params.w2.relu() * c).sum().sqrt() + 0 * s.step, |s| s.params.w2.matmul(s.params.w1).tanh().mean() + 0 * s.step, |s| s.params.b1 + 0 * s.step,
            |s| #{ a: s.params.b2[1] + 0 * s.step, b: 2.5, n: s.params.len() },
            |s| { let x = s.params.b1; let sum = 0; for i in 0..x.len() { sum += x[i] * i; } sum + 0 * s.step }, |s| if s.params.b1[0].item() + 0 * s.step > 0.0 { 1.0 } else { 0.0 },
            |s| { let x = s.params.w1.norm2().item(); #{ x: x, y: x * s.params.w2.max().item() + 0 * s.step } },
            |s| { let x = s.params.w2[0]; let n = 0; for i in 0..3 { if x[i] > 0 && x[i] < x[i + 1] { n += 1; } } n + 0 * s.step }, |s| s.params.b1[0] + 0 * s.step > s.params.b1[1],
            |s| if s.params.b2[0] <= s.params.b2[1] { #{ low: s.params.b2[0], high: s.params.b2[1] } } else { #{ low: s.params.b2[1], high: s.params.b2[0] + 0 * s.step } },
            |s| { let k = 0; while s.params.w1[0][k] > 0 { k += 1; } k + 0 * s.step },
        ];
        let names = [];
        let observe = [];
        for k in 0..all.len() {
            observe.push(observable::named(`a${k}`, all[k]));
            observe.push(observable::named(`b${k}`, called[k]));
        }
        let r = sample(t, sampler::sgld(#{ step: 0.01, batch: 10 }), #{ steps: 60, burn_in: 0, every: 1, chains: 2, observe: observe });
        let out = [];
        for k in 0..all.len() { out.push([r.trace(`a${k}`, 1), r.trace(`b${k}`, 1)]); }
        out
        "#,
    );
    let found = found.unwrap_or_else(|e| panic!("{e:?}"));
    fn flat(x: &serde_json::Value) -> Vec<f64> {
        match x.as_array() {
            Some(list) => list.iter().flat_map(flat).collect(),
            None => vec![x.as_f64().unwrap()],
        }
    }
    for (k, pair) in found.as_array().unwrap().iter().enumerate() {
        let (compiled, called) = (flat(&pair[0]), flat(&pair[1]));
        assert!(compiled.len() >= 60 && compiled.len() == called.len());
        for (x, y) in compiled.iter().zip(&called) {
            assert!((x - y).abs() <= 1e-5 * y.abs().max(0.01), "{k}: {x} {y}");
        }
    }
}

/// Energies with an `if` on parameters, inputs or outputs have the bits of those with `choose`, in chains of Langevin steps.
#[test]
fn energies_that_branch_are_those_that_choose() {
    let found = evaluate(
        r#"
        let data = dataset::arrays([[0.0], [1.0], [2.0], [3.0]], [0.5, 1.0, 4.0, 1.5]);
        let net = model::mlp(#{ layers: [1, 3, 1] });
        let huber = |r| if r < 1.0 { 0.5 * r * r } else { r - 0.5 };
        let chosen = |r| choose(r.lt(1.0), 0.5 * r * r, r - 0.5);
        let pairs = [
            [target(potential::closure(2, |w| (if w[0] > 1.0 { (w[0] - 1).sqrt() } else { (1 - w[0])**2 }) + 0.5 * w.norm2())),
             target(potential::closure(2, |w| choose(w[0].gt(1.0), (w[0] - 1).sqrt(), (1 - w[0])**2) + 0.5 * w.norm2()))],
            [target(potential::expression(2, "0.5*w[1]**2 + if w[0] > w[1] || w[0] < 0 { abs(w[0]) } else { 0.5*w[0]**2 }")),
             target(potential::closure(2, |w| 0.5*w[1]**2 + choose(w[0].gt(w[1]), abs(w[0]), choose(w[0].lt(0), abs(w[0]), 0.5*w[0]**2))))],
            [target(potential::closure(2, |w, x, y| huber.call(abs(y[0] - w[0] - w[1] * x[0])), data), #{ prior: prior::gaussian(1.0) }),
             target(potential::closure(2, |w, x, y| chosen.call(abs(y[0] - w[0] - w[1] * x[0])), data), #{ prior: prior::gaussian(1.0) })],
            [target(net, data, #{ loss: |out, y| huber.call(abs(y[0] - out[0])), prior: prior::gaussian(1.0) }),
             target(net, data, #{ loss: |out, y| chosen.call(abs(y[0] - out[0])), prior: prior::gaussian(1.0) })],
            [target(net, data, #{ prior: prior::closure(|p| p.w1.norm2() + if p.b2[0] > 0 { p.b2[0] } else { p.b2[0]**2 }) }),
             target(net, data, #{ prior: prior::closure(|p| p.w1.norm2() + choose(p.b2[0].gt(0), p.b2[0], p.b2[0]**2)) })],
        ];
        let out = [];
        for pair in pairs {
            out.push(pair.map(|t| sample(t, sampler::langevin(#{ dt: 0.05 }), #{ steps: 200, burn_in: 0, every: 1, chains: 2, seed: 7 }).trace("norm2", 1)));
        }
        out
        "#,
    );
    let found = found.unwrap_or_else(|e| panic!("{e:?}"));
    for (k, pair) in found.as_array().unwrap().iter().enumerate() {
        let trace = pair[0].as_array().unwrap();
        assert_eq!(trace.len(), 200, "{k}");
        assert!(trace.iter().all(|x| x.as_f64().is_some_and(f64::is_finite)));
        assert!(pair[0] == pair[1], "{k}");
    }
    for (closure, said) in [
        (
            "potential::closure(1, |w| { let k = 0; while w[0] > k { k += 1; } k * w[0] })",
            "parameters are compared in more than 64 ways",
        ),
        (
            "potential::closure(8, |w| { let n = 0.0; for i in 0..7 { if w[i] > 0 { n += w[i]; } } n })",
            "parameters are compared in more than 64 ways",
        ),
        (
            "potential::closure(2, |w| if w > 0 { 1.0 } else { w[0] })",
            "the comparison > needs single numbers, but of what is traced this has shape [2]",
        ),
        (
            "model::custom(#{ params: #{ w: [1, 2] }, forward: |p, x| if p.w[0][0] > 0 { x } else { -x } })",
            "the comparison > needs the numbers of a tensor",
        ),
    ] {
        let e = refused(closure);
        assert!(e.contains(said), "{closure}: {e}");
    }
}
