//! What an interactive session is told while a script is being written, and the session itself.

use super::support::{Scratch, ergodic, text};
use ergodic::script::Interpreter;
use ergodic::script::explore::{Completeness, Match};
use ergodic::simulation::session::Session;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

fn interpreter(first: &str) -> Interpreter {
    let mut out = Interpreter::new(Session::new("nowhere".into()), BTreeMap::new());
    let _ = out.run("test", first).unwrap();
    out
}

/// What could stand at the mark ‸, and the text that it would replace.
fn offered(interpreter: &Interpreter, marked: &str) -> (Vec<Match>, String) {
    let cursor = marked.find('‸').unwrap();
    let source = marked.replace('‸', "");
    let found = interpreter.complete(&source, cursor);
    (found.matches, source[found.start..found.end].to_string())
}

fn names(interpreter: &Interpreter, marked: &str) -> Vec<String> {
    offered(interpreter, marked)
        .0
        .into_iter()
        .map(|m| m.text)
        .collect()
}

#[test]
fn what_fits_is_offered() {
    let known = interpreter(
        "let t = target(potential::gaussian(#{ dim: 2 })); let trick = 3.5; let list = [1, 2];",
    );
    assert_eq!(names(&known, "sampler::la‸"), ["langevin"]);
    assert_eq!(names(&known, "let s = samp‸"), ["sample", "sampler::"]);
    assert_eq!(names(&known, "tri‸"), ["trick", "trigger::"]);
    assert_eq!(names(&known, "t.ener‸"), ["energies"]);
    assert_eq!(names(&known, "list.pu‸"), ["push"]);
    assert_eq!(names(&known, "sampler::hmc(#{ leap‸"), ["leapfrog"]);
    assert_eq!(names(&known, "sampler::hmc(#{ leapfrog: 3, leap‸"), [""; 0]);
    assert_eq!(names(&known, "model::mlp(#{ activation: \"ta‸"), ["tanh"]);
    assert_eq!(
        names(&known, "exchange(t, s, #{ pairs: ‸")[..2],
        ["\"alternating\"", "\"random\""]
    );
    assert_eq!(names(&known, "sampler::hmc(#{ adapt: tr‸")[0], "true");
    // What must be given comes first, then what has to be said unless `until` is.
    let sweep = names(&known, "sweep(t, sampler::hmc(), #{ ‸");
    assert!(
        sweep[0] == "temperatures" && sweep[2] == "steps" && sweep.contains(&"chains".to_string()),
        "{sweep:?}"
    );
    let until = names(&known, "sweep(t, s, #{ steps: 10, until: #{ ess: 400, ‸");
    assert_eq!(until[..2], ["rhat", "at_most"]);
    // Objects of the right type come before everything else.
    let priors = names(&known, "target(m, d, #{ prior: pri‸");
    assert!(priors[0].starts_with("prior::"), "{priors:?}");
    let (found, word) = offered(&known, "run(1).summ‸ary");
    assert!(
        found
            .iter()
            .any(|m| m.text == "summary" && m.detail.contains("-> Summary"))
            && word == "summary"
    );
    for nothing in ["// sam‸", "let a = \"sam‸", "1.5‸"] {
        assert_eq!(names(&known, nothing), [""; 0], "{nothing}");
    }
}

/// Every prefix of every script has an answer, and what is offered continues what is written.
#[test]
fn every_place_in_every_script_has_an_answer() {
    let known = interpreter("");
    for entry in std::fs::read_dir(super::support::root().join("scripts"))
        .unwrap()
        .flatten()
    {
        if entry.path().is_dir() {
            continue;
        }
        let source = std::fs::read_to_string(entry.path()).unwrap();
        let places: Vec<_> = source
            .char_indices()
            .map(|(at, _)| at)
            .step_by(53)
            .collect();
        for at in places {
            let found = known.complete(&source[..at], at);
            let written = &source[found.start..at];
            assert!(
                found.matches.iter().all(|m| m
                    .text
                    .trim_start_matches('"')
                    .starts_with(written.trim_start_matches('"'))),
                "{at}"
            );
            known.inspect(&source, at);
            known.completeness(&source[..at]);
        }
    }
}

#[test]
fn words_are_explained_where_they_stand() {
    let known = interpreter("let t = target(potential::gaussian(#{ dim: 2 }));");
    let explain = |marked: &str| known.inspect(&marked.replace('‸', ""), marked.find('‸').unwrap());
    assert!(
        explain("sampler::hm‸c()")
            .unwrap()
            .starts_with("### `sampler::hmc(")
    );
    assert!(
        explain("samp‸ler::hmc()")
            .unwrap()
            .contains("| `sampler::sgld` |")
    );
    assert!(
        explain("sampler::hmc(#{ leap‸frog: 3 })")
            .unwrap()
            .contains("an option of `sampler::hmc`")
    );
    assert!(explain("exchange(‸").unwrap().starts_with("### `exchange("));
    assert!(explain("‸t").unwrap().contains("Target"));
    assert!(explain("run.lad‸der()").unwrap().contains("swap rates"));
    assert_eq!(explain("nothing_li‸ke_it"), None);
}

#[test]
fn unfinished_scripts_are_told_from_wrong_ones() {
    let known = interpreter("let a = 1;");
    for (source, steps) in [
        ("sample(t, s, #{", 2),
        ("fn f(x) {\n  x", 1),
        ("let a =", 0),
        ("/* a", 0),
        ("`a", 0),
        ("if a {", 1),
    ] {
        assert_eq!(
            known.completeness(source),
            Completeness::Incomplete(steps),
            "{source}"
        );
    }
    for source in ["a", "let b = 2;", "f(1)", "", "a b", "\"a", "let λ = 1;"] {
        assert_eq!(
            known.completeness(source),
            Completeness::Complete,
            "{source}"
        );
    }
}

/// What no line that follows can mend is told from what is not finished.
#[test]
fn what_stays_wrong_is_invalid() {
    let known = interpreter("let a = 1;");
    for source in [
        "let = 3",
        "1 + )",
        "1 )",
        "= 2",
        "fn f(x) {\n  let = 2;\n",
        "f(1;",
    ] {
        let found = known.completeness(source);
        assert_eq!(found, Completeness::Invalid, "{source}");
    }
    // However a script is cut, it is not wrong before its end.
    let whole = "fn f(x, y) {\n  if x > 1 { y } else { #{ a: [1, 2], b: |z| z + 1 } }\n}\nswitch f(1, `a ${2}`) { 1 => 2, _ => 3 }\nfor (v, i) in [1, 2] { print(v); }\n";
    for (at, _) in whole.char_indices() {
        let found = known.completeness(&whole[..at]);
        assert_ne!(found, Completeness::Invalid, "{}", &whole[..at]);
    }
}

/// Properties behind a dot, and in strings the names of what a variable has.
#[test]
fn properties_and_names_are_offered() {
    let scratch = Scratch::new();
    let mut known = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
    let first = known.run(
        "test",
        "let data = dataset::digits(#{ per_class: 2 }); let m = #{ first: 1 }; let θ = 1.0;
         let run = sample(target(potential::gaussian(#{ dim: 2 })), sampler::hmc(), #{ steps: 20, every: 1, observe: [observable::cost(), observable::norm2()] });
         let summary = run.summary();",
    );
    let _ = first.unwrap();
    assert_eq!(names(&known, "data.train_r‸"), ["train_rows"]);
    assert_eq!(names(&known, "run.temper‸"), ["temperatures"]);
    assert_eq!(names(&known, "run.trace(\"co‸\", 0)"), ["cost"]);
    assert_eq!(names(&known, "plot::traces(run, \"nor‸"), ["norm2"]);
    assert_eq!(
        names(&known, "plot::sweep(run, [\"cost\", \"nor‸"),
        ["norm2"]
    );
    assert_eq!(names(&known, "summary[\"cost_r‸"), ["cost_rhat"]);
    assert_eq!(names(&known, "summary.cost_r‸"), ["cost_rhat"]);
    assert_eq!(names(&known, "data.row(\"tr‸"), ["train"]);
    assert_eq!(names(&known, "m.fir‸"), ["first"]);
    assert_eq!(names(&known, "θ‸"), ["θ"]);
}

/// Sessions take folders of their own; what is written as a block, or over lines, is taken whole; what is saved runs.
#[test]
fn sessions_take_blocks_and_save_scripts_that_run() {
    let scratch = Scratch::new();
    let start = |folder: &str| {
        let mut command = ergodic();
        command.arg("repl").current_dir(scratch.join(""));
        command.env("XDG_STATE_HOME", scratch.join("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        while !scratch.join(folder).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child
    };
    let finish = |mut child: std::process::Child, lines: &str| {
        let mut input = child.stdin.take().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        text(&output)
    };
    scratch.file("mine.rhai", "let precious = 1;\n");
    // Each has its folder before any of them has run anything.
    let (one, two) = (start("runs/repl-1"), start("runs/repl-2"));
    let said = finish(
        one,
        "let t = target(potential::gaussian(#{ dim: 2 }))\nlet r = sample(t, sampler::hmc(), #{ steps: 20, every: 1 }) // short\n\
         %%file mine.rhai\nlet a = 1;\nlet b = 2;\n\n:time for i in 0..2 {\n  print(`round ${i}`);\n}\n:save kept.rhai\n%%file mine.rhai\n\n",
    );
    for expected in [
        "mine.rhai overwritten",
        "round 1",
        "runs them",
        "there are none",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let written = std::fs::read_to_string(scratch.join("mine.rhai")).unwrap();
    assert_eq!(written.trim_end(), "let a = 1;\nlet b = 2;");
    let kept = scratch.join("kept.rhai");
    let run = ergodic()
        .arg("run")
        .arg(&kept)
        .current_dir(scratch.join(""))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run));
    let said = finish(two, ":set --seed 3\n:who\nlet f = |x| {\n");
    assert!(
        said.contains("seed 3") && said.contains("no variables yet"),
        "{said}"
    );
    // What was not finished is told, and a session that has run nothing leaves nothing.
    assert!(said.contains("error"), "{said}");
    assert!(scratch.join("runs/repl-1/sample-1").exists() && !scratch.join("runs/repl-2").exists());
}

/// Whoever looks at a list of a million numbers waits for none of them but the first.
#[test]
fn variables_are_shown_in_brief() {
    let mut interpreter = Interpreter::new(Session::new("runs".into()), BTreeMap::new());
    let source = "let a = []; a.pad(1_000_000, 0.5); let s = \"x\"; let m = #{ k: [1, \"y\"] }; let none = ();";
    let _ = interpreter.run("here", source).unwrap();
    let _ = interpreter.run("here", "let s = \"later\";").unwrap();
    let all = interpreter.variables();
    let mut names: Vec<_> = all.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names[0], "a");
    names.sort_unstable();
    assert_eq!(names, ["a", "m", "none", "s"]);
    let value = |name: &str| all.iter().find(|v| v.name == name).unwrap().value.clone();
    assert!(value("a").starts_with("[0.5, 0.5, 0.5") && value("a").ends_with('…'));
    assert_eq!([value("s"), value("m")], ["later", "#{\"k\": [1, \"y\"]}"]);
}

/// A session through a pipe: values, errors with their line, commands, a figure; and it ends when the input does.
#[test]
fn a_session_goes_on_after_mistakes() {
    let scratch = Scratch::new();
    let mut child = ergodic()
        .arg("repl")
        .current_dir(scratch.join(""))
        .env("XDG_STATE_HOME", scratch.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "let t = target(potential::gaussian(#{ dim: 2 }));\nlet r = sample(t, sampler::hmc(), #{\n  steps: 400,\n  chains: 2, every: 1 });\nr.sumary()\nr.chains\n\
                 :who\n:hepl\nplot::traces(r, \"cost\")\n:save kept.rhai\n:load nothing.rhai\n:help sampler::mala\n1 + 1\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let (out, all) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        text(&output),
    );
    for expected in [
        "did you mean 'summary'",
        "did you mean 'help'? (:help lists them)",
        "Target",
        "figure runs/repl-1/figures/figure-1.svg",
        "nothing.rhai: there is no such script",
        "### `sampler::mala",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    assert!(out.lines().any(|l| l == "2"), "{out}");
    assert!(
        out.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)),
        "{out}"
    );
    let kept = std::fs::read_to_string(scratch.join("kept.rhai")).unwrap();
    assert!(
        kept.contains("steps: 400") && !kept.contains("sumary"),
        "{kept}"
    );
    assert!(scratch.join("runs/repl-1/figures/figure-1.svg").exists());
}
