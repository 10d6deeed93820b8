//! Every shipped script runs with --quick and ends with a map.

use super::support::{Scratch, ergodic, root, text};
use serde_json::Value;

fn quick(name: &str, more: &[&str]) -> Value {
    let scratch = Scratch::new();
    let output = ergodic()
        .args(["run", "--quick", "--json", "--out"])
        .arg(scratch.join("out"))
        .arg(format!("scripts/{name}.rhai"))
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", text(&output));
    let value: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{name}: no JSON ({e}): {}", text(&output)));
    assert!(value.is_object(), "{name} does not end with a map");
    let figures = std::fs::read_dir(scratch.join("out/figures"))
        .map(|d| d.count())
        .unwrap_or(0);
    assert!(figures > 0, "{name} draws nothing");
    value
}

/// The arrays of a sweep's map: one number per temperature, with an error beside each.
fn arrays(value: &Value, names: &[&str]) {
    let count = value["temperature"].as_array().unwrap().len();
    for name in names {
        for key in [name.to_string(), format!("{name}_mcse")] {
            assert_eq!(value[&key].as_array().map(Vec::len), Some(count), "{key}");
        }
    }
}

#[test]
fn every_script_is_tested() {
    let mut names: Vec<_> = std::fs::read_dir(root().join("scripts"))
        .unwrap()
        .flatten()
        // Those of the folder are tested with what they are about: `own`.
        .filter(|e| e.path().is_file())
        .map(|e| {
            e.file_name()
                .to_string_lossy()
                .trim_end_matches(".rhai")
                .to_string()
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "baselines",
            "double_well_exchange",
            "evidence",
            "langevin_vs_metropolis",
            "learning_curve",
            "llc_benchmark",
            "llc_deep_linear",
            "llc_normal_crossing",
            "llc_quickstart",
            "llc_transformer",
            "ohzeki_mixture",
            "onnx_cnn",
            "overlap_distribution",
            "own_model",
            "pretrained",
            "quickstart",
            "remd_digits",
            "training_set_size",
            "transition",
            "zambon_diffusion",
            "zambon_fashion",
            "zambon_generalisation",
            "zambon_noise",
            "zambon_thermodynamics"
        ]
    );
}

#[test]
#[ignore = "long: tests/run"]
fn langevin_vs_metropolis() {
    let value = quick("langevin_vs_metropolis", &["--set", "sets=1"]);
    let methods = value["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 6);
    assert!((value["bound"].as_f64().unwrap() - 4e-4).abs() < 1e-9);
    assert!(
        methods
            .iter()
            .all(|m| m["final_error"].as_f64().unwrap() > 1e-5)
    );
    assert!(methods[3..].iter().all(|m| m["acceptance"].is_number()));
}

#[test]
#[ignore = "long: tests/run"]
fn ohzeki_mixture() {
    let value = quick("ohzeki_mixture", &["--set", "seeds=3"]);
    let settings = value["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 12);
    let distance = |k: usize| settings[k]["total_variation"].as_f64().unwrap();
    assert!((0.05..0.95).contains(&distance(0)), "{}", distance(0));
}

#[test]
#[ignore = "long: tests/run"]
fn zambon_noise() {
    let value = quick("zambon_noise", &[]);
    let fraction = value["ks_fraction"].as_f64().unwrap();
    assert!((0.5..1.0).contains(&fraction), "{fraction}");
}

#[test]
#[ignore = "long: tests/run"]
fn zambon_diffusion() {
    let more = ["--set", "hidden=[10]", "--set", "leapfrog=[5]"];
    let value = quick("zambon_diffusion", &more);
    let line = &value["sizes"][0];
    for method in ["hmc", "mb-hmc", "pseudo-langevin", "naive-pl"] {
        assert!(line[method]["shortest"].as_f64().unwrap() > 0.0, "{method}");
    }
}

#[test]
#[ignore = "long: tests/run"]
fn zambon_fashion() {
    let value = quick("zambon_fashion", &[]);
    assert_eq!(value["data"], "digits");
    assert_eq!(value["error_test"].as_array().map(Vec::len), Some(3));
}

#[test]
#[ignore = "long: tests/run"]
fn quickstart() {
    let value = quick("quickstart", &[]);
    arrays(&value, &["cost", "norm2", "error", "error_test", "energy"]);
    assert!(value["temperature"].as_array().unwrap().len() >= 7);
}

#[test]
#[ignore = "long: tests/run"]
fn zambon_thermodynamics() {
    let value = quick(
        "zambon_thermodynamics",
        &["--set", "hmc=true", "--set", "moves=20"],
    );
    arrays(&value, &["cost", "norm2", "error", "error_test"]);
    arrays(&value["hmc"], &["cost", "norm2", "error"]);
}

#[test]
#[ignore = "long: tests/run"]
fn zambon_generalisation() {
    let value = quick("zambon_generalisation", &[]);
    arrays(
        &value,
        &["error_test", "gradient_variance_w1", "gradient_variance_w2"],
    );
    assert!(value["adam"]["error_test"].as_f64().is_some());
}

#[test]
#[ignore = "long: tests/run"]
fn the_scripts_in_the_readme_and_the_tour_run() {
    let scratch = Scratch::new();
    let run = |file: &str, begin: &str, arguments: &[&str]| {
        let text_of = std::fs::read_to_string(root().join(file)).unwrap();
        let script = text_of
            .split(begin)
            .nth(1)
            .and_then(|r| r.split("```").next());
        let path = scratch.file("script.rhai", script.unwrap());
        let output = ergodic()
            .current_dir(root())
            .args(["run", "--quick", "--json", "--force", "--out"])
            .arg(scratch.join("out"))
            .arg(path)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        output.stdout
    };
    run("README.md", "```rhai\n", &[]);
    let tour = run(
        "docs/tour.md",
        "```rhai,long\n",
        &["--set", "temperatures=[1e-5, 3e-5]"],
    );
    arrays(
        &serde_json::from_slice(&tour).unwrap(),
        &["cost", "norm2", "error_test", "closure_1"],
    );
}

#[test]
fn llc_quickstart() {
    let v = quick("llc_quickstart", &[]);
    assert_eq!(v["truth"], 9.5);
    assert!(v["estimate"].as_f64().unwrap() > 0.0 && v["mcse"].as_f64().unwrap() > 0.0);
}

#[test]
#[ignore = "long: tests/run"]
fn llc_transformer() {
    let v = quick("llc_transformer", &[]);
    let parts = v["coefficients"].as_array().unwrap();
    assert_eq!(parts.len(), 1 + 2);
    assert_eq!(parts[2]["part"], "block2.attn.head1");
    let epochs = v["epochs"].as_array().unwrap().len();
    for p in parts {
        assert_eq!(p["llc"].as_array().map(Vec::len), Some(epochs));
    }
}

#[test]
#[ignore = "long: tests/run"]
fn pretrained() {
    let v = quick("pretrained", &[]);
    assert!(v["loss"].as_f64().unwrap() < 1.5);
    assert_eq!(v["loss_by_position"].as_array().map(Vec::len), Some(32));
    let heads = v["heads"].as_array().unwrap();
    assert_eq!(heads.len(), 2);
    for h in heads {
        assert_eq!(h["susceptibilities"].as_array().map(Vec::len), Some(8 * 32));
        // A head has fewer directions than all weights have.
        assert!(
            h["llc"].as_f64().unwrap() < v["llc"].as_f64().unwrap(),
            "{h}"
        );
    }
    assert_eq!(v["influence"][0].as_array().map(Vec::len), Some(20));
}

#[test]
fn llc_deep_linear() {
    let v = quick("llc_deep_linear", &["--set", "class=1K"]);
    assert_eq!(v["problems"].as_array().map(Vec::len), Some(2));
    let of = |name: &str| v["problems"][0][name].as_f64().unwrap();
    assert!(of("estimate") > 0.0 && of("mcse") > 0.0, "{v}");
}

#[test]
#[ignore = "long: tests/run"]
fn llc_normal_crossing() {
    let v = quick("llc_normal_crossing", &[]);
    let cases = v["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    assert_eq!(cases[3]["truth"], 0.25);
}

#[test]
#[ignore = "long: tests/run"]
fn llc_benchmark() {
    let v = quick("llc_benchmark", &[]);
    assert_eq!(v["minibatches"].as_array().map(Vec::len), Some(7 * 7));
    assert_eq!(v["exact"].as_array().map(Vec::len), Some(3 * 7));
}

#[test]
fn double_well_exchange() {
    let found = quick("double_well_exchange", &[]);
    let number = |name: &str| found[name].as_f64().unwrap();
    assert_eq!(number("left_alone"), 0.0);
    for (name, error, exact) in [
        ("left", "left_error", "left_exact"),
        ("ln_z", "ln_z_error", "ln_z_exact"),
    ] {
        let off = (number(name) - number(exact)) / number(error);
        assert!(off.abs() < 4.0, "{name} is off by {off} standard errors");
    }
}

#[test]
#[ignore = "long: tests/run"]
fn remd_digits() {
    let found = quick("remd_digits", &[]);
    let size = &found["sizes"][0];
    let last = size["temperatures"].as_array().unwrap().len() - 1;
    let at = |k: usize| size["cost"][k].as_f64().unwrap();
    // From an accurate classifier, at -ln(e/(e + 9)) = 1.461 with logistic outputs, to guessing.
    assert!(at(0) < 1.47 && at(last) > 2.0, "{} {}", at(0), at(last));
}

#[test]
#[ignore = "long: tests/run"]
fn baselines() {
    let found = quick("baselines", &[]);
    let methods = found["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 13, "{found}");
    for m in methods {
        assert!(m["nll"].as_f64().unwrap() < 10f64.ln(), "{m}");
    }
    assert!(found["loo"].as_f64().unwrap() > 0.0);
}

#[test]
#[ignore = "long: tests/run"]
fn training_set_size() {
    let found = quick("training_set_size", &[]);
    assert_eq!(found["examples"].as_array().unwrap().len(), 2);
    assert!(found["loss"][0].as_f64().unwrap() > found["loss"][1].as_f64().unwrap());
}

#[test]
fn evidence() {
    let found = quick("evidence", &[]);
    assert_eq!(found["models"].as_array().unwrap().len(), 2);
    assert_eq!(found["comparison"][0]["name"], "1x4");
}

#[test]
#[ignore = "long: tests/run"]
fn transition() {
    let found = quick("transition", &[]);
    let number = |name: &str| found[name].as_f64().unwrap();
    assert!(number("low") < number("temperature") && number("temperature") < number("high"));
    assert!(found["verdict"].is_string());
}

#[test]
#[ignore = "long: tests/run"]
fn overlap_distribution() {
    let found = quick("overlap_distribution", &[]);
    let of = |name: &str| -> Vec<f64> { serde_json::from_value(found[name].clone()).unwrap() };
    let count = of("temperatures").len();
    for name in [
        "overlap",
        "binder",
        "output_overlap",
        "output_binder",
        "start_overlap",
    ] {
        let errors = of(&format!("{name}_error"));
        assert_eq!((of(name).len(), errors.len()), (count, count));
        assert!(errors.iter().all(|e| *e >= 0.0), "{name}: {errors:?}");
    }
    // Cold replicas agree in what they say, from weights that differ, and remember more of their starts than hot ones, which say nothing in common.
    let ends = |name: &str| (of(name)[0], of(name)[count - 1]);
    let (outputs, start) = (ends("output_overlap"), ends("start_overlap"));
    assert!(outputs.0 > 0.9 && outputs.1 < 0.1, "{found}");
    assert!(of("overlap")[0] < 0.2 && start.0 > start.1 + 0.1, "{found}");
}

#[test]
#[ignore = "long: tests/run"]
fn learning_curve() {
    let found = quick("learning_curve", &[]);
    assert_eq!(found["score"].as_array().unwrap().len(), 2);
    assert!(found["exponent"].as_f64().is_some());
}

#[test]
#[ignore = "long: tests/run"]
fn onnx_cnn() {
    let found = quick("onnx_cnn", &[]);
    // As PyTorch has trained it.
    assert!(
        (found["loss"].as_f64().unwrap() - 0.0474916).abs() < 1e-5,
        "{found}"
    );
    assert_eq!(found["half_the_parameters"], 333.0);
    assert!(found["llc"].as_f64().is_some());
    let rows = found["prediction"]["reliability"]["rows"]
        .as_array()
        .unwrap();
    let all: f64 = rows.iter().filter_map(Value::as_f64).sum();
    assert_eq!(all, 359.0);
}

#[test]
#[ignore = "long: tests/run"]
fn own_model() {
    let found = quick("own_model", &[]);
    // The network written in the script is the native one, to the last bit.
    assert_eq!(found["same_traces"], true);
    for name in ["native", "own", "gated"] {
        let model = &found[name];
        assert!(
            model["error_test"].as_f64().unwrap() < 0.5,
            "{name}: {model}"
        );
        assert!(model["cost"].as_f64().unwrap() > 0.0, "{name}");
    }
    assert!(found["gated"]["largest_gate"].as_f64().unwrap() > 0.0);
}
