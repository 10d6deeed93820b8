//! What hands write that are used to Python: what the message says, and where the caret is.

use super::support::{Scratch, ergodic, evaluate, text};

/// A wrong script, where the caret is (line, column), and part of the message.
const WRONG: &[(&str, (usize, usize), &str)] = &[
    (
        "let a = 1;\nprint(f\"a = {a:.2f}\");",
        (2, 7),
        "stands between backticks: `a = ${a}`",
    ),
    (
        "model::mlp(layers=[2, 2]);",
        (1, 18),
        "there are no keyword arguments; options are one map: #{ layers: … }",
    ),
    (
        "model::mlp(layers: [2, 2]);",
        (1, 18),
        "options stand in a map: #{ layers: … }",
    ),
    (
        "model::mlp({layers: [2, 2]});",
        (1, 12),
        "a map begins with #{ : write #{ layers: … }",
    ),
    (
        "model::mlp({\"layers\": [2, 2]});",
        (1, 12),
        "a map begins with #{ : write #{ \"layers\": … }",
    ),
    ("let m = {a: 1};", (1, 9), "a map begins with #{"),
    (
        "let a = [x*2 for x in 0..3];",
        (1, 14),
        "there are no comprehensions; write array.map(|x| …)",
    ),
    (
        "let a = 'text';",
        (1, 9),
        "text stands between double quotes: \"text\"",
    ),
    (
        "let d = dataset.digits();",
        (1, 16),
        "'dataset' is a namespace: write dataset::digits",
    ),
    (
        "let a = 1\nlet b = 2;",
        (1, 10),
        "a ; is missing at the end of this statement",
    ),
    (
        "let a = 1 // one\n\nprint(a);",
        (1, 10),
        "a ; is missing at the end of this statement",
    ),
    (
        "let a = [1,\n  2]\nif a.len() == 2 { print(a) }",
        (2, 5),
        "a ; is missing",
    ),
    ("let a = True;", (1, 9), "True is written true"),
    ("let a = None;", (1, 9), "None is written ()"),
    ("let a = null;", (1, 9), "null is written ()"),
    ("import numpy", (1, 8), "there is no NumPy here"),
    (
        "import numpy as np\nlet a = np.zeros(3);",
        (1, 8),
        "there is no NumPy here",
    ),
    (
        "from math import sqrt",
        (1, 1),
        "what is built in needs no import",
    ),
    (
        "let a = np.array([1, 2]);",
        (1, 9),
        "there is no NumPy here",
    ),
    (
        "let x = math.sqrt(2.0);",
        (1, 9),
        "functions of numbers need no prefix: sqrt(…)",
    ),
    ("let x = pi * 2;", (1, 9), "π is PI()"),
    (
        "def f(x):\n    return x",
        (1, 1),
        "a function is fn f(…) { … }",
    ),
    (
        "let f = lambda y: y + 1;",
        (1, 9),
        "a function without a name is |x| x + 1",
    ),
    (
        "for i in range(3):\n    print(i)",
        (1, 18),
        "what is repeated stands in braces: for i in range(3) { … }",
    ),
    (
        "let x = 1;\nif x == 1:\n    print(x)",
        (2, 10),
        "it stands in braces",
    ),
    (
        "let x = true;\nif x and x { print(1) }",
        (2, 6),
        "and is written &&",
    ),
    (
        "let x = true;\nif x or x { print(1) }",
        (2, 6),
        "or is written ||",
    ),
    ("let x = not true;", (1, 9), "not is written !"),
    ("let x = 1;\nx is None", (2, 3), "is is written =="),
    (
        "let a = 1;\nif a == 1 { 2 } elif a == 2 { 3 }",
        (2, 17),
        "write else if",
    ),
    (
        "let x = 1 if true else 2;",
        (1, 11),
        "if condition { a } else { b }",
    ),
    ("let i = 0;\ni++;", (2, 2), "write i += 1"),
    (
        "let a = tensor([1.0]);\nlet b = a @ a;",
        (2, 11),
        "a.matmul(a)",
    ),
    ("let a = 1;\nprint(a, 2);", (2, 1), "print(`${a} and …`)"),
    ("let new = 1;", (1, 5), "take another name, as new_"),
    (
        "let a = [1, 2, 3];\nlet b = a[0..2];",
        (2, 12),
        "a part of an array is a.extract(from..to)",
    ),
    (
        "# a comment\nlet x = 1;",
        (1, 1),
        "a comment begins with //",
    ),
    ("x = 3;", (1, 1), "a new one is let x = …"),
    ("let a = [1, 2, 3];\na[0:2]", (2, 4), "a.extract(from..to)"),
    (
        "let x: int = 1;",
        (1, 6),
        "variables have no types here: let x = …",
    ),
    (
        "fn f(x: int) { x }",
        (1, 7),
        "parameters have no types here",
    ),
    (
        "fn f(x = 1) { x }",
        (1, 8),
        "parameters have no defaults here",
    ),
    ("var x = 1;", (1, 1), "a new variable is let x = …"),
    ("class A: pass", (1, 1), "there are no classes here"),
    ("try: pass", (1, 4), "try { … } catch (e) { … }"),
    ("print \"x\"", (1, 1), "print is a function: print(\"x\")"),
    ("let s = str(3);", (1, 9), "x.to_string()"),
    (
        "let a = [1];\na.append(4);",
        (2, 3),
        "an array grows by a.push(x)",
    ),
    ("let a = [1];\na.length", (2, 3), "a.len()"),
    (
        "\"%d\" % 3",
        (1, 6),
        "values go into text between backticks",
    ),
    (
        "\"a\" * 3",
        (1, 5),
        "'*' cannot be used between a string and an integer",
    ),
    (
        "let x = 2.0;\nx^2",
        (2, 2),
        "'^' cannot be used between a number and an integer; the power is **",
    ),
    (
        "let held = 5;\nheld(3)",
        (2, 6),
        "only a function can be called, and this is an integer",
    ),
    (
        "let x = 5;\nif x { print(1) }",
        (2, 4),
        "Data type incorrect: integer (expecting bool)",
    ),
    // What looks like a habit and is none keeps its own message.
    ("let x = ;", (1, 9), "Unexpected ';'"),
    (
        "let a = 1;\nprint(a, b == 2);",
        (2, 10),
        "there is no variable 'b'",
    ),
    ("let a = 1;\na - -b", (2, 6), "there is no variable 'b'"),
    ("sampel(1, 2);", (1, 1), "did you mean 'sample'?"),
];

#[test]
fn habits_of_python_are_told_what_to_write_and_where() {
    for (source, (line, column), part) in WRONG {
        let failure = evaluate(source).unwrap_err();
        let message = &failure.message;
        assert!(message.contains(part), "{source}\ngives\n{message}");
        let place = format!("--> test.rhai:{line}:{column}\n");
        assert!(message.contains(&place), "{source}\ngives\n{message}");
        let caret = message.lines().last().unwrap().split_once("| ").unwrap().1;
        assert_eq!(caret, format!("{}^", " ".repeat(column - 1)), "{source}");
    }
}

/// A script and its value.
const CALLS: &[(&str, &str)] = &[
    ("let f = |x| x + 1; f(3)", "4"),
    ("let f = |x, y| x - y; f(5, f(2, 1))", "4"),
    (
        "let a = 2; let f = |x| a * x; let g = |x| f(x) + 1; g(10)",
        "21",
    ),
    ("fn twice(h, x) { h(h(x)) } twice(|x| x * 3, 2)", "18"),
    (
        "let sum = 0; for f in [|x| x, |x| 2 * x] { sum += f(5); } sum",
        "15",
    ),
    ("let f = |x| x; `${f(3)} and ${f(4)}`", "\"3 and 4\""),
    ("let f = sqrt; f.call(4.0)", "2.0"),
    ("fn f(x) { x + 1 } let f = |x| x - 1; f(3)", "4"),
    ("let len = |x| 7; len([1])", "1"),
];

#[test]
fn closures_in_variables_are_called_as_functions_are() {
    for (source, value) in CALLS {
        // `sqrt` is no variable of its own.
        if source.contains("= sqrt") {
            assert!(evaluate(source).is_err());
            continue;
        }
        let got = evaluate(source).unwrap_or_else(|e| panic!("{source}: {e}"));
        assert_eq!(got.to_string(), *value, "{source}");
    }
    // Behind such calls on a line, places are those of the script as it was written.
    let failure = evaluate("let f = |x| x;\nlet y = f(1) + f(2) + z;").unwrap_err();
    assert!(failure.message.contains("test.rhai:2:23"), "{failure}");
}

#[test]
fn modules_call_closures_in_variables_too() {
    let scratch = Scratch::new();
    let module = "fn apply(f, x) { f(x) + f(x) }\n";
    scratch.file("other.rhai", module);
    let script = scratch.file(
        "main.rhai",
        "import \"other\" as other;\nlet f = |x| x * 5;\nother::apply(f, 2)",
    );
    let mut run = ergodic();
    run.arg("run").arg(script).arg("--json").arg("--out");
    let output = run.arg(scratch.join("out")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("20"));
}

#[test]
fn integers_are_divided_aloud_and_once() {
    let scratch = Scratch::new();
    let source = "let a = 7;\nfor i in 0..3 { a / 2; }\nlet g = |x| x; let b = g(4) + 1 / 2;\n2^3;\na / 7; 1.0 / 2; 6 / 3; quotient(7, 2); true ^ false";
    let script = scratch.file("script.rhai", source);
    let mut run = ergodic();
    run.arg("run").arg(script).arg("--out");
    let output = run.arg(scratch.join("out")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let warnings = errors.matches("warning: ").count();
    assert_eq!(warnings, 3, "{errors}");
    for part in [
        "warning: 7/2 of two integers is the integer 3; write 7.0/2 for 3.5",
        "script.rhai:2:19",
        "warning: 1/2 of two integers is the integer 0; write 1.0/2 for 0.5",
        "script.rhai:3:33",
        "warning: 2^3 is the exclusive or of bits, 1; the power is 2**3",
        "script.rhai:4:2",
    ] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
    for (source, value) in [
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("7.0 / 2", "3.5"),
        ("2 ** 3", "8"),
        ("let x = 7; x /= 2; x", "3"),
        ("1 + 6 / 3 * 2", "5"),
        ("5 ^ 1 | 2", "6"),
        ("tensor([2.0]) / 4", "[0.5]"),
    ] {
        let got = evaluate(source).unwrap();
        assert_eq!(got.to_string(), value, "{source}");
    }
    assert!(
        evaluate("1 / 0")
            .unwrap_err()
            .message
            .contains("Division by zero")
    );
}

#[test]
fn articles_numbers_and_types_are_plain_english() {
    for (source, part) in [
        ("prior::localised(1, 3)", "but must be a Parameters"),
        (
            "sweep(target(potential::closure(1, |w| w[0]**2)), sampler::sgld(#{ step: 0.1, batch: 1 }), #{ steps: 9, temperatures: [1.0], observe: [3] })",
            "must be an Observable",
        ),
        ("sampler::sgld(#{ step: #{} })", "is a map, but must be"),
        ("linspace(\"a\", 2, 3)", "not a string"),
    ] {
        let message = evaluate(source).unwrap_err().message;
        assert!(message.contains(part), "{source}\n{message}");
    }
}

/// What `ergodic check` says of a script.
fn checked(source: &str) -> Vec<String> {
    let session = ergodic::simulation::session::Session::new("runs".into());
    let mut interpreter = ergodic::script::Interpreter::new(session, Default::default());
    interpreter.check("test.rhai", source)
}

#[test]
fn mistakes_are_found_without_running_a_script() {
    for (source, said) in [
        (
            "dataset::digits(#{ per_clas: 10 })",
            "dataset::digits has no option 'per_clas'; did you mean 'per_class'?\n --> test.rhai:1:20",
        ),
        (
            "model::mlp(#{ layers: [64, 10], activation: \"tanhh\" })",
            "option 'activation' is \"tanhh\", but must be",
        ),
        (
            "if false { taget(1, 2); }",
            "there is no function 'taget'; did you mean 'target'?\n --> test.rhai:1:12",
        ),
        (
            "fn f(t) { sampler::sgdl(#{}) }",
            "there is no function 'sampler::sgdl'; did you mean 'sgld'?",
        ),
        (
            "plots::curve([1], [2])",
            "there is no namespace 'plots'; did you mean 'plot'?",
        ),
        (
            "let data = 3; let f = |x| x + dta; f(1)",
            "there is no variable 'dta'; did you mean 'data'?\n --> test.rhai:1:31",
        ),
        (
            "fn f(r) { r.sumary() }",
            "there is no method 'sumary'; did you mean 'summary'?",
        ),
        (
            "fn f(net) { net.load(\"a.pt\", #{ renme: #{} }) }",
            "model.load has no option 'renme'; did you mean 'rename'?",
        ),
        ("let x = [1, 2", "Expecting"),
        (
            "fn f(t, s) { sample(t, s, #{ steps: \"many\", stps: 3 }) }",
            "sample: option 'steps' is \"many\"",
        ),
    ] {
        let found = checked(source);
        assert!(
            found.iter().any(|f| f.contains(said)),
            "{source}\n{}",
            found.join("\n")
        );
    }
    assert_eq!(
        checked("fn f(t, s) { sample(t, s, #{ steps: \"many\", stps: 3 }) }").len(),
        2
    );
    // What cannot be known is not found fault with.
    for source in [
        "import \"llc_protocol\" as p; p::anything(#{ of: 1 })",
        "let o = #{ stps: 3 }; sample(1, 2, o)",
        "let m = #{ f: |x| x, load: |x| x }; m.f(3); m.anything_else(); m.load(#{ z: 1 })",
        "try { throw 1 } catch (e) { print(e) }",
        "const N = 3; fn f() { N } for (x, i) in [1] { print(x + i) } let g = |a| |b| a + b; g(1)",
    ] {
        assert_eq!(checked(source), [""; 0], "{source}");
    }
    let root = super::support::root();
    for folder in ["scripts", "scripts/posteriors", "stdlib"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap().flatten() {
            if entry.path().extension().is_some_and(|e| e == "rhai") {
                let source = std::fs::read_to_string(entry.path()).unwrap();
                assert_eq!(checked(&source), [""; 0], "{}", entry.path().display());
            }
        }
    }
}

#[test]
fn functions_see_the_constants_of_a_script() {
    let value = |source: &str| evaluate(source).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(value("const N = 5; fn f() { N + 1 } f()"), 6);
    assert_eq!(value("const N = 5; fn f(N) { N + 1 } f(1)"), 2);
    assert_eq!(
        value("const N = 5; fn f() { let N = 1; N } fn g() { f() + N } g()"),
        6
    );
    assert_eq!(value("const N = 5; let f = |x| x + N; f(1)"), 6);
    let message = evaluate("let n = 5; fn f() { n + 1 } f()")
        .unwrap_err()
        .message;
    assert!(
        message.contains("there is no variable 'n' within this function; write const n"),
        "{message}"
    );
}
