//! Typed builders: those of the tables of options, checked as scripts are.

use super::support::root;
use super::support::{Scratch, evaluate};
use ergodic::builders::generate;
use ergodic::prelude::*;

#[test]
fn builders_are_those_of_the_tables() {
    let path = root().join("src/builders/table.rs");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, generate()).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap();
    assert!(
        there == generate(),
        "src/builders/table.rs is not what the tables of options say; write it anew by `UPDATE=1 cargo test builders`"
    );
}

#[test]
fn a_builder_checks_what_a_script_checks() {
    let wrong = sampler::Sgld::new().step(-1.0).batch(10).build();
    let wrong = wrong.err().unwrap().to_string();
    assert_eq!(
        wrong,
        "sampler::sgld: option 'step' is -1.0, but must be > 0"
    );
    let session = Settings::new(std::env::temp_dir());
    let target = Target::of_potential(potential::Gaussian::new().build().unwrap());
    let target = target.run().unwrap();
    let hmc = sampler::Hmc::new().build().unwrap();
    let missing = sweep(&target, &hmc)
        .steps(10)
        .run_in(&session)
        .err()
        .unwrap();
    assert_eq!(
        missing.downcast_ref::<BadOption>().unwrap().option,
        "temperatures"
    );
    let missing = missing.to_string();
    assert!(
        missing.contains("sweep needs the option 'temperatures'"),
        "{missing}"
    );
}

#[test]
fn a_choice_is_a_value_of_its_type_or_a_string() {
    let data = dataset::Digits::new().per_class(2).build().unwrap();
    let net = model::Mlp::new([64, 10]).activation(choices::Activation::Tanh);
    let net = net.build().unwrap();
    let sum = Target::of(&net, &data).energy(choices::Energy::Sum).run();
    let text = Target::of(&net, &data).energy("sum").run();
    let [sum, text] = [sum, text].map(|t| t.unwrap().describe());
    assert_eq!(sum, text);
    assert!(net.describe().contains("tanh"), "{}", net.describe());
}

#[test]
fn verbs_take_their_options_one_by_one() {
    let session = Settings::new(std::env::temp_dir());
    let bowl = potential::Gaussian::new().dim(2).build().unwrap();
    let prior = prior::Gaussian::new(0.1).build().unwrap();
    let target = Target::of_potential(bowl).prior(prior).run().unwrap();
    let grid = posterior(&target)
        .x([-1.0, 1.0])
        .y([-1.0, 1.0])
        .cells(8)
        .run_in(&session);
    assert_eq!(grid.unwrap().shape(), (8, 8));
    let missing = dataset::Csv::new("no such.csv").build().err().unwrap();
    let missing = missing.downcast_ref::<BadFile>().unwrap();
    assert_eq!(missing.path, std::path::Path::new("no such.csv"));
    // A start may be given as a handle to parameters.
    let start = Arc::new(Parameters {
        vectors: vec![Arc::new(vec![0.0; 2])],
    });
    let laplace = laplace(&target, &start).run_in(&session).unwrap();
    assert!(laplace.ln_z.value.is_finite());
}

/// Making a target starts no run: the session of this process, and its folder, are not made for it.
#[test]
fn what_starts_no_run_claims_no_folder() {
    let bowl = potential::Gaussian::new().build().unwrap();
    Target::of_potential(bowl).run().unwrap();
    let program = std::env::current_exe().unwrap();
    let program = program.file_stem().unwrap().to_string_lossy();
    let runs = std::fs::read_dir("runs").into_iter().flatten().flatten();
    let names = runs.map(|f| f.file_name().to_string_lossy().into_owned());
    let own: Vec<_> = names.filter(|n| n.starts_with(&*program)).collect();
    assert!(own.is_empty(), "{own:?}");
}

#[test]
fn numbers_are_spaced_as_scripts_space_them() {
    let script = "[logspace(1e-6, 3e-3, 7), linspace(0.1, 0.7, 5), logspace(2, 3, 1)]";
    let rust = [
        logspace(1e-6, 3e-3, 7),
        linspace(0.1, 0.7, 5),
        logspace(2.0, 3.0, 1),
    ];
    assert_eq!(evaluate(script).unwrap(), serde_json::json!(rust));
}

#[test]
fn an_interrupt_of_a_session_stops_its_runs_and_no_others() {
    let scratch = Scratch::new();
    let target = Target::of_potential(potential::Gaussian::new().build().unwrap());
    let target = target.run().unwrap();
    let hmc = sampler::Hmc::new().build().unwrap();
    let sessions = ["a", "b"].map(|name| Settings::new(scratch.join(name)));
    let stop = sessions[0].interrupt.clone();
    let [stopped, whole] = std::thread::scope(|scope| {
        let steps = [u64::pow(10, 9), 20_000];
        let both = [0, 1].map(|k| {
            let run = sample(&target, &hmc).steps(steps[k]).every(steps[k] / 100);
            let session = &sessions[k];
            scope.spawn(move || run.run_in(session))
        });
        let checkpoint = scratch.join("a/sample-1/checkpoint");
        while !checkpoint.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        stop.interrupt();
        both.map(|thread| thread.join().unwrap())
    });
    let error = stopped.err().unwrap();
    assert!(Interrupted::is(&error), "{error}");
    assert!(whole.unwrap().done());
    // What was saved can be looked at.
    assert!(!open(scratch.join("a/sample-1")).unwrap().done());
}
