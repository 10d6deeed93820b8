//! Learning coefficients along a training.

use super::support::{Scratch, evaluate};
use ergodic::prelude::{
    Parameters, Settings as Session, Target, llc_curve_of_checkpoints, potential, sampler,
};
use ergodic::script::Interpreter;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// U = w0² w1⁴: on w1 = 0 its coefficient is ¼, on w0 = 0 it is ½.
const CROSSING: &str = "let t = target(potential::normal_crossing([1, 2]));";

fn value(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().unwrap().iter();
    all.map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

/// ⟨nβ U⟩ over exp(-nβ U - ½γ|w-w0|²), by the midpoint rule.
fn integrated(w0: [f64; 2], nbeta: f64, gamma: f64) -> f64 {
    const CELLS: i32 = 1200;
    let (mut weight, mut sum) = (0.0, 0.0);
    let reach = 7.0 / gamma.sqrt();
    let at = |k: i32, c: f64| c + reach * ((2 * k + 1) as f64 / CELLS as f64 - 1.0);
    for i in 0..CELLS {
        for j in 0..CELLS {
            let (x, y) = (at(i, w0[0]), at(j, w0[1]));
            let u = nbeta * x.powi(2) * y.powi(4);
            let away = (x - w0[0]).powi(2) + (y - w0[1]).powi(2);
            let p = (-u - 0.5 * gamma * away).exp();
            (weight, sum) = (weight + p, sum + u * p);
        }
    }
    sum / weight
}

/// Null: at each point the estimate has the mean of its own law. The two coefficients differ by a factor of about two, so that an anchor or a start of
/// another point would be seen.
#[test]
fn every_point_has_the_coefficient_of_its_own_neighbourhood() {
    let (nbeta, gamma) = (1e4, 30.0);
    let found = value(&format!(
        "{CROSSING} llc_curve(parameters([[1.0, 0.0], [0.0, 1.0], [1.5, 0.0]]), t, sampler::hmc(#{{ leapfrog: 8 }}),
            #{{ nbeta: {nbeta:?}, gamma: {gamma:?}, steps: 8000, burn_in: 500, seed: 2, at: [1, 10, 1000] }}).to_map()"
    ));
    let points = found["points"].as_array().unwrap();
    let mut seen = Vec::new();
    for (point, w0) in points.iter().zip([[1.0, 0.0], [0.0, 1.0], [1.5, 0.0]]) {
        let number = |name: &str| point[name].as_f64().unwrap();
        let expected = integrated(w0, nbeta, gamma);
        let (estimate, mcse) = (number("estimate"), number("mcse"));
        assert!(
            (estimate - expected).abs() < 4.0 * mcse && mcse < 0.02,
            "{w0:?}: {estimate} ± {mcse}, expected {expected}"
        );
        assert!((0.5..=1.0).contains(&number("acceptance")), "{point}");
        assert_eq!(number("loss"), 0.0);
        seen.push(expected);
    }
    assert!(seen[1] > 1.7 * seen[0], "{seen:?}");
}

/// What a curve finds at a point is what `llc` finds with its seed, to the bit, whatever the threads.
#[test]
fn a_point_is_an_estimate_of_its_own() {
    let problem = "let t = target(model::mlp(#{ layers: [64, 4, 10] }), dataset::digits(#{ per_class: 10 }));
         let trained = train(t, optimizer::adam(#{ epochs: 3, batch: 20 }), #{ chains: 2, checkpoints: [0, 2, 3], seed: 1 });";
    let curve = |threads: usize, sampler: &str, more: &str| {
        let scratch = Scratch::new();
        let mut session = Session::new(scratch.join("out"));
        session.threads = threads;
        let mut interpreter = Interpreter::new(session, Default::default());
        let source = format!(
            "{problem} let s = {sampler}; let o = #{{ gamma: 100.0, steps: 60, chains: 2, {more} }};
             let c = llc_curve(trained, t, s, o + #{{ seed: 7, chain: 1 }});
             let m = c.to_map();
             let alone = [];
             for p in m.points {{
                 let e = llc(t, s, o + #{{ start: trained.checkpoint(p.at.to_int()).at(1), seed: p.seed }});
                 alone.push([e.estimate, e.mcse, e.rhat, e.virial] + e.chains);
             }}
             let together = m.points.map(|p| [p.estimate, p.mcse, p.rhat, p.virial] + p.chains);
             #{{ alone: alone, together: together, at: c.at, axis: m.axis, text: c.to_string(), drawn: plot::llc_curve(c).to_string() }}"
        );
        let found = interpreter.run("curve.rhai", &source);
        interpreter.json(&found.unwrap_or_else(|e| panic!("{e}\n{source}")))
    };
    for (sampler, more) in [
        ("sampler::sgld(#{ step: 1e-4, batch: 20 })", ""),
        ("sampler::hmc(#{ leapfrog: 3 })", ""),
        (
            "sampler::sgld(#{ step: 1e-4, batch: 20 })",
            "restrict: \"w2\", baseline: \"first_batch\", every: 3",
        ),
    ] {
        let found = curve(1, sampler, more);
        assert_eq!(found["alone"], found["together"], "{sampler} {more}");
        assert_eq!(numbers(&found["at"]), [0.0, 2.0, 3.0]);
        assert_eq!(found["axis"], "epoch");
        assert!(found["text"].as_str().unwrap().contains("verdict"));
        let again = curve(5, sampler, more);
        assert_eq!(again["together"], found["together"], "{sampler} {more}");
    }
}

/// Files as PyTorch users have them: single ones and folders with one each, in the order of the steps in their names.
#[test]
fn a_folder_of_files_is_read_in_the_order_of_steps() {
    let scratch = Scratch::new();
    let folder = scratch.join("checkpoints").display().to_string();
    let curve = |what: &str| {
        value(&format!(
            "let net = model::mlp(#{{ layers: [64, 4, 10] }});
             let t = target(net, dataset::digits(#{{ per_class: 10 }}));
             let w = [0, 1, 2].map(|k| net.weights(#{{ seed: k }}));
             net.save({folder:?} + \"/step-9.safetensors\", w[0]);
             net.save({folder:?} + \"/step-1000.pt\", w[2]);
             net.save({folder:?} + \"/checkpoint-step-10/model.safetensors\", w[1]);
             llc_curve({what}, t, sampler::sgld(#{{ step: 1e-4, batch: 20 }}), #{{ gamma: 100, steps: 40, chains: 1, seed: 3 }}).to_map()"
        ))
    };
    let (files, here) = (curve(&format!("{folder:?}")), curve("w"));
    let each = |c: &Value, name: &str| -> Vec<Value> {
        let points = c["points"].as_array().unwrap().iter();
        points.map(|p| p[name].clone()).collect()
    };
    assert_eq!(each(&files, "at"), [9.0, 10.0, 1000.0]);
    assert_eq!(files["axis"], "step");
    assert_eq!(each(&here, "at"), [0.0, 1.0, 2.0]);
    assert_eq!(each(&files, "estimate"), each(&here, "estimate"));
    let losses = each(&files, "loss");
    assert_eq!(losses, each(&here, "loss"));
    assert!(
        losses[0] != losses[1] && losses[1] != losses[2],
        "{losses:?}"
    );
}

#[test]
fn what_cannot_be_is_said() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("empty")).unwrap();
    let empty = scratch.join("empty").display().to_string();
    let said = |points: &str, options: &str| {
        let source = format!(
            "{CROSSING} llc_curve({points}, t, sampler::hmc(), #{{ steps: 20, {options} }})"
        );
        evaluate(&source).unwrap_err().message
    };
    for (points, options, message) in [
        (
            "3".to_string(),
            "",
            "takes a training, an array of parameters, or a folder of files of weights, not 3",
        ),
        ("[]".into(), "", "there are no points"),
        (
            "[parameters([0.0, 0.0]), 2]".into(),
            "",
            "entry 1 of the array is 2",
        ),
        (
            "[parameters([[0.0, 0.0], [1.0, 0.0]])]".into(),
            "",
            "is 2 points, but must be parameters of one point",
        ),
        (
            "[parameters([0.0])]".into(),
            "",
            "point 0 has 1 parameters, but the target has 2",
        ),
        ("\"nowhere\"".into(), "", "nowhere: there is no such folder"),
        (
            format!("{empty:?}"),
            "",
            "there are no files of weights here",
        ),
        (
            "parameters([[0.0, 0.0], [1.0, 0.0]])".into(),
            "at: [2, 1]",
            "must have one for each of the 2 points, increasing",
        ),
        (
            "parameters([[0.0, 0.0]])".into(),
            "nbeta: 3.0, beta: 1.0",
            "'beta' and 'nbeta' are both given",
        ),
    ] {
        let found = said(&points, options);
        assert!(found.contains(message), "{points} {options}: {found}");
    }
    let none = evaluate(
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits());
         llc_curve(train(t, optimizer::adam(#{ epochs: 1 })), t, sampler::hmc(), #{})",
    );
    let none = none.unwrap_err().message;
    assert!(none.contains("kept no checkpoints"), "{none}");
}

/// A point where every chain fails is in the table, and says so; if all do, the curve is an error.
#[test]
fn points_fail_loudly() {
    let curve = |points: &str| {
        format!(
            "let t = target(potential::normal_crossing(#{{ exponents: [1, 2], examples: 100 }}));
             let c = llc_curve(parameters({points}), t, sampler::sgld(#{{ step: 0.05, batch: 10 }}), #{{ nbeta: 20.0, steps: 300, chains: 2 }});
             c.to_map() + #{{ text: c.to_string() }}"
        )
    };
    let found = value(&curve("[[0.0, 0.0], [30.0, 30.0]]"));
    assert_eq!(found["points"][1]["verdict"], "wrong");
    assert_eq!(found["verdict"], "wrong");
    assert!(
        found["points"][1]["estimate"].is_null()
            || found["points"][1]["estimate"].as_f64().unwrap().is_nan()
    );
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("every chain failed"), "{text}");
    let all = evaluate(&curve("[[30.0, 30.0]]")).unwrap_err();
    assert_eq!(all.code, 3, "{all}");
}

#[test]
fn rust_has_it_too() {
    let scratch = Scratch::new();
    session(&scratch.join("out")).make_current();
    let target = Target::of_potential(potential::Gaussian::new().dim(2).build().unwrap());
    let target = target.run().unwrap();
    let hmc = sampler::Hmc::new().build().unwrap();
    let points = Arc::new(Parameters {
        vectors: vec![Arc::new(vec![1.0, 1.0]), Arc::new(vec![1.0, 1.0])],
    });
    let curve = llc_curve_of_checkpoints(points, &target, &hmc)
        .nbeta(100.0)
        .steps(200)
        .run()
        .unwrap();
    assert_eq!(curve.points.len(), 2);
    assert!(
        curve
            .figure()
            .to_svg()
            .unwrap()
            .contains("learning coefficient")
    );
}

fn session(out: &Path) -> Session {
    Session::new(out.into())
}
