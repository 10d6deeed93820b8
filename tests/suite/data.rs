//! Data sets as scripts make them: of each other, of files that stay on the disk, and the rows that `predict` takes.

use super::support::{Scratch, evaluate};
use serde_json::{Value, json};

fn message(source: &str) -> String {
    evaluate(source).unwrap_err().to_string()
}

fn value(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{source}\n{e}"))
}

#[test]
fn closures_make_data_sets() {
    let source = "
        let cut = 3;
        let d = dataset::digits().filter(|x, y| y < cut).map(|x, y| [x.sum() / 64, y * 2.0 + 0.5]);
        let shaped = dataset::digits().map(|x, y| x[0..4]);
        let pair = dataset::arrays([[1.0], [2.0], [3.0]], [0.5, 1.5, 2.5]).map(|x, y| [[x[0], y], y > 1]);
        let swapped = dataset::digits().subset([5, 0]);
        [d.classes, d.train_rows, d.row(\"test\", 1).targets, shaped.shape, shaped.dim, pair.classes, pair.row(\"train\", 1), swapped.row(\"train\", 1) == dataset::digits().row(\"train\", 0)]
    ";
    let found = value(source);
    let rows =
        value("let y = dataset::digits().targets(\"train\").to_array(); y.filter(|y| y < 3).len()");
    assert_eq!((&found[0], &found[1]), (&json!(0), &rows));
    let target = value(
        "let y = dataset::digits().targets(\"test\").to_array(); y.filter(|y| y < 3)[1] * 2 + 0.5",
    );
    assert_eq!(found[2][0], target);
    assert_eq!(found[3], json!([4, 8]));
    assert_eq!((&found[4], &found[5]), (&json!(32), &json!(2)));
    assert_eq!(found[6], json!({ "inputs": [2.0, 1.5], "targets": [1] }));
    assert_eq!(found[7], json!(true));
}

#[test]
fn closures_that_cannot_be_used_say_why() {
    for (source, expected) in [
        (
            "dataset::digits().map(|x, y| [x, y, 1])",
            "row 0 of the train split: the closure must give [x, y] or the new x, but gave an array of 3 elements",
        ),
        (
            "dataset::digits().map(|x, y| [x, -1])",
            "the new y: it is -1, but a label is 0, 1, 2",
        ),
        ("dataset::digits().map(|x| x)", "(the input, the target)"),
        (
            "dataset::digits().filter(|x, y| y)",
            "the closure must give true or false, but gave an integer",
        ),
        (
            "let n = 0; dataset::digits().map(|x, y| { n += 1; x })",
            "changes the variable 'n'",
        ),
        (
            "dataset::digits().filter(|x, y| timestamp().elapsed > 0)",
            "timestamp",
        ),
        (
            "dataset::digits().augment(#{ shift: 9 })",
            "a shift by 9 pixels leaves nothing of images of 8×8",
        ),
        (
            "dataset::digits().augment(#{ noise: 0.1 }).subset(5)",
            "do this before data.augment",
        ),
    ] {
        let said = message(source);
        assert!(said.contains(expected), "{source}\n{said}");
    }
}

/// U of an expression on data, in double precision, with the digits of the file.
#[test]
fn energies_have_the_digits_of_the_file() {
    let scratch = Scratch::new();
    let path = scratch.file("a b.csv", "x,y\n1.008224924,0.1\n-2.25,0.7\n");
    let source = format!(
        "let d = dataset::csv({:?}, #{{ task: \"regression\", test: 0 }});
         let t = target(potential::closure(1, |w, x, y| (y - w[0] * x).square().sum(), d), #{{ energy: \"sum\" }});
         t.energies(parameters([3.0])).total",
        path.display()
    );
    let expected = (0.1 - 3.0 * 1.008224924_f64).powi(2) + (0.7 + 3.0 * 2.25_f64).powi(2);
    let found = value(&source).as_f64().unwrap();
    assert!((found / expected - 1.0).abs() < 1e-15, "{found} {expected}");
}

/// The mean over the variants counts as often as there are examples.
#[test]
fn variants_do_not_multiply_the_likelihood() {
    let source = "
        let d = dataset::digits(5);
        let a = d.augment(#{ copies: 4, shift: 1, noise: 0.1 });
        let net = model::mlp(#{ layers: [64, 10] });
        let t = |d| target(net, d, #{ energy: \"sum\" });
        let w = parameters(linspace(-0.3, 0.4, 650));
        let e = t.call(a).energies(w);
        [e.total, d.train_rows, a.train_rows, e.loss]
    ";
    let found = value(source);
    let number = |k: usize| found[k].as_f64().unwrap();
    assert_eq!((number(1), number(2)), (50.0, 200.0));
    assert!(
        (number(0) / (50.0 * number(3)) - 1.0).abs() < 1e-6,
        "{found}"
    );
}

/// Trajectories on data that stay in their file are those of data in memory, bit by bit, and so is what a resume compares.
#[test]
fn mapped_data_give_the_same_minibatches() {
    let scratch = Scratch::new();
    let place = |name: &str| scratch.join(name).display().to_string();
    let (x, y, both) = (
        place("x of all.npy"),
        place("y.npy"),
        place("b.safetensors"),
    );
    let write = format!(
        "let d = dataset::digits(#{{ test: 0 }}).map(|x, y| [x / 3.0, y / 3.0]);
         let x = d.inputs(\"train\").reshape([-1, 8, 8]);
         let y = d.targets(\"train\");
         x.save({x:?}); y.save({y:?}); tensor::save({both:?}, #{{ x_train: x, y_train: y }}); d.train_rows"
    );
    let rows = value(&write).as_u64().unwrap();
    let run = |data: &str| {
        value(&format!(
            "let d = {data};
             let t = target(model::mlp(#{{ layers: [64, 5, 1] }}), d, #{{ prior: prior::gaussian(1) }});
             let r = sample(t, sampler::sgld(#{{ step: 1e-4, batch: 32 }}), #{{ steps: 200, chains: 2, every: 20, seed: 4, observe: [observable::cost(), |s| s.params.norm2(), |s| s.loss(\"test\")] }});
             [r.trace(\"cost\", 1), r.trace(\"closure_1\", 1), r.trace(\"closure_2\", 1), d.shape, d.train_rows, d.row(\"test\", 3).inputs.len()]"
        ))
    };
    let options = "test: 0.2, scale: \"standard\"";
    let memory = run(&format!("dataset::npy({x:?}, {y:?}, #{{ {options} }})"));
    assert_eq!(memory[3], json!([8, 8]));
    assert_eq!(memory[4].as_u64().unwrap(), rows - rows / 5);
    for data in [
        format!("dataset::npy({x:?}, {y:?}, #{{ {options}, mapped: true }})"),
        format!("dataset::safetensors({both:?}, #{{ {options} }})"),
        format!("dataset::safetensors({both:?}, #{{ {options}, mapped: true }})"),
    ] {
        assert_eq!(run(&data), memory, "{data}");
    }
    let said = message(&format!(
        "dataset::safetensors({both:?}, #{{ x_train: \"x_trian\" }})"
    ));
    assert!(
        said.contains("has no tensor 'x_trian'; did you mean 'x_train'?"),
        "{said}"
    );
    let said = message(&format!(
        "dataset::npy({y:?}, {x:?}, #{{ mapped: true, x_test: {x:?}, y_test: {y:?} }})"
    ));
    assert!(said.contains("has 64 components per row, but"), "{said}");
}

/// New rows may be written as the file has them; what comes out is what the numbers give.
#[test]
fn predict_takes_rows_as_the_file_has_them() {
    let scratch = Scratch::new();
    let path = scratch.file(
        "t.csv",
        "colour,when,size,y\nred,2024-01-01,1.5,0.1\nblue,2024-01-03,2.5,0.4\nred,2024-01-09,,0.2\nblue,2024-02-01,4.0,0.9\n",
    );
    let source = format!(
        "let d = dataset::csv({:?}, #{{ task: \"regression\", test: 0, categories: [\"colour\"], dates: [\"when\"], missing: \"median\", scale: \"standard\" }});
         let t = target(model::mlp(#{{ layers: [4, 1] }}), d, #{{ energy: \"sum\", prior: prior::gaussian(1) }});
         let r = sample(t, sampler::hmc(), #{{ steps: 60, chains: 1, every: 10, keep: 10 }});
         let rows = predict(r, [[\"blue\", \"2024-01-05\", ()], [\"red\", \"2024-01-01\", 3.0]]).mean;
         let numbers = predict(r, [[1.0, 0.0, 4.0, 2.5], [0.0, 1.0, 0.0, 3.0]]).mean;
         [rows == numbers, rows[0][0] != rows[1][0]]",
        path.display()
    );
    assert_eq!(value(&source), json!([true, true]));
    let wrong = source.replace("\"2024-01-05\", ()", "\"the fifth\", ()");
    assert!(message(&wrong).contains("predict: row 0: column 'when': 'the fifth' is no date"));
    let wrong = source.replace("\"2024-01-05\", ()]", "1]");
    let said = message(&wrong);
    assert!(said.contains("predict: row 0"), "{said}");
}

/// Null: a row of weight 2 is the same row twice, for every kind of loss: energies at random parameters, and an HMC chain, which has the same
/// random numbers. Differences are those of single precision.
#[test]
fn a_row_of_weight_two_is_the_row_twice() {
    let source = |loss: &str, regression: bool, data: &str| {
        let y = match regression {
            true => "x.sum(1).sin().to_array()",
            false => "x.sum(1).sin().to_array().map(|s| if s > 0.0 { 1 } else { 0 })",
        };
        let (classes, prior) = match (regression, loss.contains("sigma")) {
            (true, true) => (
                1,
                "#{ \"*\": prior::normal(0, 1), sigma: prior::half_normal(1) }",
            ),
            (true, false) => (1, "prior::gaussian(1)"),
            _ => (2, "prior::gaussian(1)"),
        };
        format!(
            r#"
            let x = tensor::normal([12, 3], 5);
            let y = {y};
            let xs = x.to_array();
            let how = #{{ classes: {} }};
            let w = [1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1];
            let d = {data};
            let t = target(model::mlp(#{{ layers: [3, 4, {classes}] }}), d, #{{ energy: "sum", loss: {loss}, prior: {prior} }});
            let r = sample(t, sampler::hmc(#{{ dt: 0.02, leapfrog: 5, adapt: false }}), #{{ steps: 5, every: 1, burn_in: 0, chains: 2, keep: 1, observe: [observable::loss("train")] }});
            let at = t.energies(parameters(tensor::normal([t.parameters], 9)));
            [at.total, r.draw(0, 4).vector(0).to_array(), r.trace("loss", 1).map(|l| l * d.train_rows)]
            "#,
            !regression
        )
    };
    fn flat(x: &Value) -> Vec<f64> {
        match x.as_array() {
            Some(list) => list.iter().flat_map(flat).collect(),
            None => vec![x.as_f64().unwrap()],
        }
    }
    for (loss, regression) in [
        ("\"cross_entropy\"", false),
        ("\"squared_error\"", false),
        ("loss::cross_entropy(#{ smoothing: 0.1 })", false),
        ("\"squared_error\"", true),
        ("loss::gaussian(\"sigma\")", true),
        ("|out, y| (out - y).abs().sum()", true),
    ] {
        let [twice, weighed] = [
            "dataset::arrays(xs + xs.extract(4, 3), y + y.extract(4, 3), how)",
            "dataset::arrays(xs, y, how).weigh(w)",
        ]
        .map(|data| flat(&value(&source(loss, regression, data))));
        assert_eq!(twice.len(), weighed.len());
        for (a, b) in twice.iter().zip(&weighed) {
            assert!((a - b).abs() < 1e-4 * a.abs().max(1.0), "{loss}: {a} {b}");
        }
    }
}

/// Minibatches: weights by class are the option `class_weights`, and weights of 1 change no bit of a chain.
#[test]
fn weights_of_classes_are_those_of_the_loss() {
    let chain = |data: &str, loss: &str| {
        let all = value(&format!(
            "let t = target(model::mlp(#{{ layers: [64, 5, 10] }}), {data}, #{{ loss: {loss} }});
             sample(t, sampler::sgld(#{{ step: 1e-2, batch: 16 }}), #{{ steps: 40, every: 1, burn_in: 0, chains: 1, keep: 40 }}).draw(0, 0).vector(0).to_array()"
        ));
        let all = all.as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
        all.collect::<Vec<f64>>()
    };
    let digits = "dataset::digits(#{ per_class: 8 })";
    let by_class = chain(
        &format!("{digits}.weigh(|x, y| if y < 3 {{ 2.5 }} else {{ 0.5 }})"),
        "\"cross_entropy\"",
    );
    let by_loss = chain(
        digits,
        "loss::cross_entropy(#{ class_weights: [2.5, 2.5, 2.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5] })",
    );
    let plain = chain(digits, "\"cross_entropy\"");
    let far = |a: &[f64], b: &[f64]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max)
    };
    let (same, other) = (far(&by_class, &by_loss), far(&by_class, &plain));
    assert!(same < 1e-5 && other > 1e-2, "{same} {other}");
    assert_eq!(
        chain(&format!("{digits}.weigh(|x, y| 1)"), "\"cross_entropy\""),
        plain
    );
}

#[test]
fn weights_come_from_columns_and_go_with_their_rows() {
    let scratch = Scratch::new();
    let mut table = String::from("a,w,label,b\n");
    for i in 0..40 {
        table += &format!("{i},{},{},{}\n", i % 4, ["no", "yes"][i % 2], i * i);
    }
    let path = scratch.file("t.csv", &table);
    let csv = format!(
        "dataset::csv({:?}, #{{ label: \"label\", weights: \"w\", scale: \"standard\", test: 0.25 }})",
        path.display().to_string()
    );
    let other = csv.replace("weights: \"w\"", "inputs: [\"a\", \"b\"]");
    let loss = |d: &str| {
        value(&format!(
            "let d = {d};
             let t = target(model::mlp(#{{ layers: [2, 2] }}), d, #{{}});
             let r = sample(t, sampler::hmc(#{{ dt: 1e-9, adapt: false }}), #{{ steps: 2, every: 1, chains: 1, burn_in: 0, observe: [observable::loss(\"train\"), observable::loss(\"test\")] }});
             [d.dim, r.trace(\"loss\", 0)[0], r.trace(\"loss_test\", 0)[0]]"
        ))
    };
    // The input a tells which row it is, and so its weight, also where rows are chosen after that.
    let raw = other.replace("standard", "none");
    let by_hand = format!("{raw}.weigh(|x, y| x[0].item() % 4)");
    for more in [
        "",
        ".filter(|x, y| y == 1)",
        ".subset(11)",
        ".subset([7, 3])",
    ] {
        let (ours, theirs) = (
            loss(&format!("{csv}{more}")),
            loss(&format!("{by_hand}{more}.scale(\"standard\")")),
        );
        if more.is_empty() {
            assert_eq!(ours, theirs);
        }
        let raw = csv.replace("standard", "none");
        assert_eq!(
            loss(&format!("{raw}{more}")),
            loss(&format!("{by_hand}{more}")),
            "{more}"
        );
    }
    for (source, expected) in [
        (
            format!("{csv}.map(|x, y| x)"),
            "have weights; do this before data.weigh",
        ),
        (
            format!("{csv}.split()"),
            "have weights; do this before data.weigh",
        ),
        (
            format!("{csv}.augment(#{{ noise: 0.1 }})"),
            "have weights; do this before data.weigh",
        ),
        (
            "dataset::digits().weigh([1, 2])".into(),
            "weigh, the train split: 2 weights for",
        ),
        (
            "dataset::digits().weigh(|x, y| -y)".into(),
            "the weight of row",
        ),
        (
            "dataset::digits().weigh(|x, y| 0)".into(),
            "all weights are 0",
        ),
        (
            "dataset::digits().weigh(|x, y| \"a\")".into(),
            "must give a number, but gave",
        ),
        (
            csv.replace("\"w\"", "\"label\""),
            "option 'weights' names column 'label', which is something else already",
        ),
        (csv.replace("\"w\"", "\"v\""), "has no column 'v'"),
        (
            format!("potential::closure(#{{ a: [2] }}, |p, x, y| (p.a * x).sum(), {csv})"),
            "have weights, which only losses of networks use",
        ),
    ] {
        let said = message(&source);
        assert!(said.contains(expected), "{source}\n{said}");
    }
}

#[test]
fn predictions_of_a_split_and_of_the_rows_of_its_file_agree() {
    let source = "
        let d = dataset::csv(\"tests/data/visits.csv\", #{ label: \"outcome\", dates: [\"day\"], categories: [\"ward\"], missing: \"mean\", scale: \"standard\" });
        let t = target(model::mlp(#{ layers: [7, 2] }), d, #{ energy: \"sum\", prior: prior::gaussian(1) });
        let r = sample(t, sampler::hmc(), #{ steps: 60, chains: 2, every: 5, keep: 5, predict: [\"test\"] });
        let p = predict(r, \"test\").mean;
        let y = d.targets(\"test\").to_array();
        let wrong = 0;
        for i in 0..y.len() { if (p[i][1] > 0.5) != (y[i] > 0.5) { wrong += 1; } }
    ";
    let found = value(&format!(
        "{source} [wrong.to_float() / y.len(), r.prediction(\"test\").error]"
    ));
    assert!(
        (found[0].as_f64().unwrap() - found[1].as_f64().unwrap()).abs() < 1e-9,
        "{found}"
    );
    for (call, expected) in [
        ("predict(r, [])", "there are no rows"),
        (
            "predict(r, d.inputs(\"test\"))",
            "write predict(run, \"test\")",
        ),
        ("predict(r, \"tets\")", "tets"),
        (
            "predict(r, [\"west\", 1, 2, 0, \"2024-03-01\"])",
            "is no row, which is an array with a cell for each of: ward, age, dose, smoker, day",
        ),
        (
            "predict(r, [[\"west\", 1]])",
            "it has 2 cells, but the columns are: ward, age, dose, smoker, day",
        ),
    ] {
        let said = message(&format!("{source} {call}"));
        assert!(said.contains(expected), "{call}\n{said}");
    }
}

/// A new target leaves the inputs as they were prepared, and a tensor where a label stood is a mistake.
#[test]
fn a_map_of_targets_keeps_words_and_scaling() {
    let source = "let d = dataset::csv(\"tests/data/visits.csv\", #{ task: \"regression\", label: \"dose\", inputs: [\"ward\", \"age\"], categories: [\"ward\"], missing: \"median\", scale: \"standard\" });
        let t = target(model::mlp(#{ layers: [4, 1] }), d.map(|x, y| [x, (y - 1.0) / 3.0]), #{ energy: \"sum\", prior: prior::gaussian(1) });
        predict(sample(t, sampler::hmc(), #{ steps: 20, every: 5, chains: 1, keep: 10 }), [[\"west\", 40], [\"north\", ()]]).mean.len()";
    assert_eq!(value(source), json!(2));
    let said = message("dataset::digits().map(|x, y| [x.mean(), x.max()])");
    assert!(
        said.contains("write [[a, b], y] for an input of two numbers"),
        "{said}"
    );
    let said = message(
        "let x = tensor([1.0, 2.0, 1.0 / 0.0, 4.0]).reshape([2, 2]); dataset::npy(x.save(\"x.npy\"), tensor([0.5, 1.5]).save(\"y.npy\"), #{ mapped: true })",
    );
    assert!(
        said.contains("row 1, column 0: inf is not a finite"),
        "{said}"
    );
}
