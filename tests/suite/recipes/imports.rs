//! What is imported, what is refused, and where errors are shown.

use super::super::support::{Scratch, ergodic, text};
use super::{found, refused};
use ergodic::script::Interpreter;
use ergodic::simulation::session::Session;
use serde_json::Value;
use std::collections::BTreeMap;

#[test]
fn options_of_recipes_are_checked_like_those_of_the_program() {
    let call = |options: &str| {
        refused(&format!(
            "import \"transition\" as t;\nlet g = target(potential::gaussian());\nt::find(g, sampler::hmc(), #{{ {options} }})"
        ))
    };
    for (options, said) in [
        (
            "lo: 1.0",
            "transition::find has no option 'lo'; did you mean 'low'?",
        ),
        (
            "points: 2.5",
            "transition::find cannot use option 'points': it is 2.5, but must be a whole number",
        ),
        ("low: \"a\"", "but must be a number"),
        ("observe: 1", "but must be an array"),
        ("low: 2, high: 1", "needs 0 < low < high"),
        ("chains: 0", "option 'chains': it is 0, but must be ≥ 1"),
        ("start: 3", "option 'start'"),
    ] {
        let message = call(options);
        assert!(message.contains(said), "{options}: {message}");
        // Where the recipe stands, and where the script called it.
        assert!(message.contains("--> stdlib/transition.rhai:"), "{message}");
        assert!(
            message.contains("called from here") && message.contains("--> test.rhai:3:4"),
            "{message}"
        );
        assert!(message.contains("t::find(g, sampler::hmc()"), "{message}");
    }
    assert!(refused("options(#{ stesp: 1 }, #{ steps: 2 })").contains("did you mean 'steps'"));
    assert_eq!(
        found("options(#{ a: 2, b: () }, #{ a: 1.5, b: 3, c: () })"),
        serde_json::json!({ "a": 2.0, "b": 3, "c": null })
    );
    // Nothing is given by ().
    found(
        "sample(target(potential::gaussian()), sampler::hmc(#{ leapfrog: () }), #{ steps: 10, every: 1, start: () })",
    );
}

#[test]
fn imports_say_what_is_missing() {
    for (source, said) in [
        ("import \"transitoin\" as t;", "did you mean 'transition'?"),
        (
            "import \"nothing/like/it\" as t;",
            "recipes: annealing, baselines, calibration, ensemble, ladder, layers, learning_curve",
        ),
        (
            "transition::find(1, 2)",
            "write `import \"transition\" as transition;` first",
        ),
        (
            "samplre::hmc()",
            "there is no namespace 'samplre'; did you mean 'sampler'?",
        ),
        (
            "import \"transition\" as t; t::fnid(1, 2)",
            "did you mean 't::find'?",
        ),
        (
            "import \"transition\" as t; t::find(1, 2, 3, 4)",
            "t::find(target, sampler, #{ options })",
        ),
    ] {
        let message = refused(source);
        assert!(
            message.contains(said) && message.contains("--> test.rhai:1:"),
            "{source}: {message}"
        );
    }
}

/// A file beside the script, one it imports, their errors, and closures that go in.
#[test]
fn own_scripts_are_imported_from_beside_the_script() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.join("parts")).unwrap();
    scratch.file("mine.rhai", "//! Mine.\nimport \"parts/deep\" as deep;\n\n/// Twice what the closure says.\nfn twice(f, x) { 2 * f.call(x) }\nfn deeper(x) {\n  deep::fail(x)\n}\n");
    scratch.file(
        "parts/deep.rhai",
        "fn fail(x) {\n  let a = 1;\n  throw \"not so \" + x;\n}\n",
    );
    scratch.file("transition.rhai", "fn find(x) { x + 1 }\n");
    let run = |source: &str| {
        let script = scratch.file("script.rhai", source);
        let out = scratch.join("out");
        let _ = std::fs::remove_dir_all(&out);
        ergodic()
            .args(["run", "--json", "--out"])
            .arg(out)
            .arg(script)
            .output()
            .unwrap()
    };
    let fine = run(
        "import \"mine\" as mine;\nimport \"./transition\" as own;\nimport \"transition\" as recipe;\nlet k = 3;\nlet t = target(potential::gaussian());\n\
                    let r = sample(t, sampler::hmc(), #{ steps: 20, every: 1, observe: [observable::named(\"a\", |s| mine::twice(|x| x * k, s.params[0]))] });\n\
                    #{ twice: mine::twice(|x| x + k, 4), own: own::find(1), seen: type_of(recipe::find(t, sampler::hmc(), #{ low: 0.1, high: 1.0, points: 4, rounds: 1, steps: 40, every: 1 })) }",
    );
    assert!(fine.status.success(), "{}", text(&fine));
    let value: Value = serde_json::from_slice(&fine.stdout).unwrap();
    assert_eq!(
        value,
        serde_json::json!({ "twice": 14, "own": 2, "seen": "map" })
    );
    let record: Value =
        serde_json::from_slice(&std::fs::read(scratch.join("out/run.json")).unwrap()).unwrap();
    let imported = record["imported"].as_object().unwrap();
    assert_eq!(imported.len(), 3);
    assert!(
        imported
            .iter()
            .any(|(file, text)| file.ends_with("mine.rhai")
                && text.as_str().unwrap().starts_with("//! Mine."))
    );

    let failed = text(&run("import \"mine\" as mine;\n\nmine::deeper(\"x\")"));
    let places: Vec<_> = failed.lines().filter(|l| l.contains("-->")).collect();
    assert!(failed.contains("not so x") && places.len() == 3, "{failed}");
    assert!(
        places[0].contains("deep.rhai:3:3")
            && places[1].contains("mine.rhai:7:")
            && places[2].contains("script.rhai:3:7"),
        "{failed}"
    );
    // An error of the script's own closure is shown in the script.
    let failed = text(&run(
        "import \"mine\" as mine;\nmine::twice(|x| {\n  x.nothing()\n}, 4)",
    ));
    let places: Vec<_> = failed.lines().filter(|l| l.contains("-->")).collect();
    assert!(places[0].contains("script.rhai:3:"), "{failed}");

    // What an import imports may change too, and a circle may go by another way.
    scratch.file("parts/one.rhai", "fn f() { 1 }");
    scratch.file(
        "outer.rhai",
        "import \"parts/one\" as one;\nfn f() { one::f() }\n",
    );
    let file = scratch.join("main.rhai").display().to_string();
    let mut interpreter = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
    let mut value = || {
        let found = interpreter.run(&file, "import \"outer\" as o; o::f()");
        found.unwrap().as_int().unwrap()
    };
    assert_eq!((value(), value()), (1, 1));
    scratch.file("parts/one.rhai", "fn f() { 2 }");
    assert_eq!(value(), 2);
    scratch.file("parts/round.rhai", "import \"../parts/round\" as me;");
    let said = text(&run("import \"parts/round\" as r;"));
    assert!(
        said.contains("would import itself") && said.len() < 2000,
        "{said}"
    );
    scratch.file("mine.rhai", "fn a( {");
    let failed = text(&run("import \"mine\" as mine;"));
    assert!(
        failed.contains("mine.rhai:1:") && failed.contains("script.rhai:1:8"),
        "{failed}"
    );
    scratch.file("mine.rhai", "import \"mine\" as m;");
    assert!(text(&run("import \"mine\" as mine;")).contains("would import itself"));
}

/// Interrupted within a recipe, and resumed: the same numbers, bit for bit.
#[test]
#[ignore = "long: tests/run"]
fn a_recipe_is_resumed_where_it_was() {
    let scratch = Scratch::new();
    let script = scratch.file(
        "script.rhai",
        "import \"transition\" as transition;
         let t = target(potential::double_well());
         let f = transition::find(t, sampler::hmc(), #{ low: 0.05, high: 5, points: 4, rounds: 2, width: 1.01, steps: 8000, every: 10 });
         let g = transition::find(t, sampler::hmc(), #{ low: 0.05, high: 5, points: 4, rounds: 1, steps: 200, every: 10 });
         #{ seconds: f.runs[0].seconds, f: f.curve, low: f.low, g: g.curve, names: f.runs.map(|r| r.name) + g.runs.map(|r| r.name) }",
    );
    let run = |out: &str, more: &[&str]| {
        let output = ergodic()
            .args(["run", "--json", "--out"])
            .arg(scratch.join(out))
            .args(more)
            .arg(&script)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let whole = run("a", &[]);
    assert_eq!(whole["names"][2], "transition-2-round1");
    // As if it had been killed after the first sweep: the rest is done again, and only the rest.
    let again = ["transition-1-round2", "transition-2-round1"];
    for name in again {
        std::fs::remove_dir_all(scratch.join("a").join(name)).unwrap();
    }
    // Also the seconds of the first sweep are those of the first time.
    assert_eq!(run("a", &["--resume"]), whole);
    run("b", &["--quick"]);
}
