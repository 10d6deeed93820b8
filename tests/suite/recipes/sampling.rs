//! The protocol of the learning coefficient and the comparison of samplers, against exact laws.

use super::{found, near, number, refused};

/// nβ⟨w⁴⟩ over exp(-nβ w⁴ - ½γw²), by quadrature.
fn of_a_quartic(nbeta: f64, gamma: f64) -> f64 {
    let end = 8.0 * nbeta.powf(-0.25);
    let grid = (0..=40_000).map(|i| end * i as f64 / 40_000.0);
    let weights = grid.map(|w: f64| {
        (
            nbeta * w.powi(4),
            (-nbeta * w.powi(4) - 0.5 * gamma * w * w).exp(),
        )
    });
    let (top, z) = weights.fold((0.0, 0.0), |(top, z), (l, p)| (top + l * p, z + p));
    top / z
}

#[test]
#[ignore = "long: tests/run"]
fn the_protocol_gives_the_learning_coefficients_that_are_known() {
    let estimated = |setting: &str| {
        found(&format!(
            "import \"llc_protocol\" as protocol;
             {setting} o.tolerance = 0.1;
             let f = protocol::estimate(t, s, o);
             #{{ estimate: f.estimate, mcse: f.mcse, truth: f.truth, trusted: f.trusted, against: f.against, drift: f.drift, step: f.step, nbeta: f.nbeta, gamma: f.gamma,
                calibrations: f.calibrations.len(), figure: f.figure.to_string(), text: f.text }}"
        ))
    };
    let crossing = estimated(
        "let t = target(potential::normal_crossing([2])); let o = #{ start: parameters([0.0]), nbetas: [1e6], gammas: [1e-3] }; let s = sampler::hmc(#{ leapfrog: 15 });",
    );
    let deep = estimated(
        "let p = llc_problem(#{ widths: [5, 6, 9, 4], rank: 1, n: 1_000_000, data: \"moments\", noise: 0 }); let t = p.target;
         let o = #{ start: p.start, gammas: [10.0] }; let s = sampler::hmc(#{ leapfrog: 40 });",
    );
    let regular = estimated(
        "let t = target(potential::gaussian(#{ dim: 4, condition: 1, examples: 10_000 })); let o = #{ start: parameters([1, 1, 1, 1]), trial_steps: 10_000, steps: 20_000 };
         let s = sampler::sgld(#{ step: 1e-3, gradient: gradient::full() });",
    );
    // Steps of ε make the variance 1/(k(1 - εk/4)) in a direction of stiffness k.
    let stiff = number(&regular, "nbeta") + number(&regular, "gamma");
    let of_steps =
        number(&regular, "nbeta") * 2.0 / (stiff * (1.0 - number(&regular, "step") * stiff / 4.0));
    assert_eq!(regular["calibrations"], 1);
    for (name, value, exact, truth) in [
        ("w^4", &crossing, of_a_quartic(1e6, 1e-3), 0.25),
        ("deep linear", &deep, 9.5, 9.5),
        ("regular", &regular, of_steps, 2.0),
    ] {
        assert!(value["trusted"] == true, "{name}: {value}");
        assert_eq!(number(value, "truth"), truth);
        let (estimate, mcse) = (number(value, "estimate"), number(value, "mcse"));
        near(name, (estimate, mcse), exact);
        assert!(
            mcse < 0.05 * truth && (exact / truth - 1.0).abs() < 0.1,
            "{name}: {value}"
        );
    }
}

/// A step that is far too large is not called right, and neither are chains that are too short to forget where they began.
#[test]
fn the_protocol_says_what_is_wrong() {
    let value = found(
        "import \"llc_protocol\" as protocol;
         let t = target(potential::gaussian(#{ dim: 100, condition: 1, examples: 10_000 }));
         let w0 = []; for i in 0..100 { w0.push(1.0); }
         // A schedule is not calibrated: 2/εk = 1840 steps to forget the start.
         let s = sampler::sgld(#{ step: schedule::constant(1e-6), gradient: gradient::full() });
         let cold = protocol::estimate(t, s, #{ start: parameters(w0), steps: 400, extend: 1, burn_in: 0.02 });
         #{ cold: cold.against, cold_trusted: cold.trusted, steps: cold.steps, drift: cold.drift }",
    );
    assert_eq!(value["cold_trusted"], false);
    let all = |key: &str| value[key].to_string();
    assert!(all("cold").contains("the virial is cold"), "{value}");
    assert!(
        number(&value, "drift") > 3.0 && all("cold").contains("drifts"),
        "{value}"
    );
    assert_eq!(value["steps"], 800);
    let hot = refused(
        "import \"llc_protocol\" as protocol;
         let t = target(potential::gaussian(#{ dim: 4, condition: 1, examples: 10_000 }));
         protocol::estimate(t, sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ start: parameters([1, 1, 1, 1]), step_sizes: [2.5e-3] })",
    );
    assert!(hot.contains("no step size of [0.0025] works"), "{hot}");
}

#[test]
#[ignore = "long: tests/run"]
fn samplers_are_compared_at_equal_cost_and_a_hot_one_is_found() {
    let value = found(
        "import \"method_comparison\" as methods;
         let t = target(potential::gaussian(#{ dim: 3, condition: 1.0 }));
         let f = methods::compare(t, #{
             hmc: sampler::hmc(#{ leapfrog: 5 }), nuts: sampler::nuts(), mala: sampler::mala(), sgld: sampler::sgld(#{ step: 0.02, gradient: gradient::full() }),
             coarse: sampler::sgld(#{ step: 1.2, gradient: gradient::full() }),
         }, #{ passes: 20_000, temperature: 0.5, observe: [observable::cost(), observable::parameter(0)] });
         #{ methods: f.methods, reference: f.reference, mutual: f.mutual, agreeing: f.agreeing, text: f.text, figure: f.figure.to_string() }",
    );
    let methods = value["methods"].as_array().unwrap();
    let of = |name: &str| methods.iter().find(|m| m["name"] == name).unwrap();
    for m in methods {
        let passes = number(m, "passes");
        // NUTS costs what its pilot said, not to the gradient.
        let slack = if m["name"] == "nuts" { 0.5 } else { 0.01 };
        assert!((passes / 20_000.0 - 1.0).abs() < slack, "{m}");
        assert!(number(m, "ess_per_pass") > 0.0 && number(m, "ess_per_second") > 0.0);
    }
    assert_eq!(number(of("hmc"), "steps"), 4000.0);
    for name in ["hmc", "nuts", "mala"] {
        let m = of(name);
        near(name, (number(m, "means.w0"), number(m, "mcse.w0")), 1.0);
        near(
            name,
            (number(m, "means.cost"), number(m, "mcse.cost")),
            1.5 * 0.5,
        );
        // Of draws that are nearly independent: a variance has the relative error sqrt(2/n).
        let variance = number(m, "sd.w0").powi(2);
        near(
            name,
            (variance, 0.5 * (2.0 / number(m, "ess").min(4000.0)).sqrt()),
            0.5,
        );
        assert!(
            value["agreeing"].as_array().unwrap().contains(&name.into()),
            "{name}: {}",
            value["text"]
        );
    }
    // SGLD's variance is T/(1 - ε/4): 1.43 times too large at this step.
    let coarse = of("coarse");
    assert!(
        coarse["against"].to_string().contains("thermometer is hot"),
        "{coarse}"
    );
    assert!(
        coarse["against"].to_string().contains("cost is"),
        "{coarse}"
    );
    near(
        "coarse",
        (number(coarse, "means.cost"), number(coarse, "mcse.cost")),
        0.75 / 0.7,
    );
    assert!(
        !value["agreeing"]
            .as_array()
            .unwrap()
            .contains(&"coarse".into())
    );
    // The reference is one whose law has no error of the step.
    let reference = value["reference"].as_str().unwrap();
    assert!(["hmc", "nuts", "mala"].contains(&reference), "{reference}");
    assert_eq!(value["mutual"], false);
    assert_eq!(
        (&coarse["verdict"], &coarse["exact"]),
        (&"wrong".into(), &false.into())
    );
    assert!(
        value["text"]
            .as_str()
            .unwrap()
            .contains(", the exact sampler with the largest ESS per pass"),
        "{value}"
    );
    // Two that are as biased agree with each other, and with nothing else.
    let value = found(
        "import \"method_comparison\" as methods;
         let t = target(potential::gaussian(#{ dim: 3, condition: 1.0 }));
         let s = |step| sampler::sgld(#{ step: step, gradient: gradient::full() });
         let f = methods::compare(t, #{ one: s.call(0.06), other: s.call(0.061) }, #{ passes: 80_000 });
         #{ mutual: f.mutual, reference: f.reference, text: f.text }",
    );
    assert_eq!(value["mutual"], true, "{value}");
    assert!(
        value["text"].as_str().unwrap().contains("is only mutual"),
        "{value}"
    );
    // A gradient of 10 of 100 examples is a tenth of a pass.
    let value = found(
        "import \"method_comparison\" as methods;
         let t = target(potential::gaussian(#{ dim: 2, examples: 100, noise: 1.0 }));
         let f = methods::compare(t, #{ mini: sampler::sgld(#{ step: 0.02, batch: 10 }), full: sampler::sgld(#{ step: 0.02, gradient: gradient::full() }) }, #{ passes: 400, reference: \"full\" });
         #{ steps: f.methods.map(|m| m.steps), reference: f.reference }",
    );
    assert_eq!(
        value,
        serde_json::json!({ "steps": [400, 4000], "reference": "full" })
    );
}

/// Null: ranks of the truth among draws of its posterior are uniform. With the noise taken for half of what it is they are not, whatever the number of draws that was asked for.
#[test]
#[ignore = "long: tests/run"]
fn a_wrong_noise_is_not_calibrated() {
    let verdict = |noise: f64| {
        found(&format!(
            "import \"calibration\" as calibration;
             let line = model::mlp(#{{ layers: [1, 1] }});
             let x = tensor::linspace(-1, 1, 8).reshape([8, 1]);
             let make = |seed| {{
                 let w = parameters(tensor::normal([2], 2 * seed).to_array());
                 let y = line.outputs(w, x) + 0.5 * tensor::normal([8, 1], 2 * seed + 1);
                 #{{ target: target(line, dataset::arrays(x, y), #{{ loss: loss::gaussian({noise}), energy: \"sum\", prior: prior::gaussian(1.0) }}), truth: w }}
             }};
             let f = calibration::ranks(make, sampler::hmc(), #{{ replications: 100, draws: 100, steps: 400 }});
             #{{ verdict: f.verdict, bins: f.bins, text: f.text }}"
        ))
    };
    let (right, wrong) = (verdict(0.5), verdict(0.25));
    assert!(right["verdict"] == "calibrated", "{right}");
    assert!(wrong["verdict"] == "not calibrated", "{wrong}");
    assert_eq!(right["bins"], 10);
}
