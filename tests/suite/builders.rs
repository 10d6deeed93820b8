//! Typed builders: those of the tables of options, checked as scripts are.

use super::support::root;
use ergodic::builders::{generate, model, potential, prior, sampler, verbs};
use ergodic::prelude::{Settings, make, options};

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
    let missing = model::Mlp::new().build().err().unwrap().to_string();
    assert!(
        missing.contains("model::mlp needs the option 'layers'"),
        "{missing}"
    );
}

#[test]
fn verbs_take_their_options_one_by_one() {
    let session = Settings::new(std::env::temp_dir());
    let bowl = potential::Gaussian::new().dim(2).build().unwrap();
    let prior = prior::Gaussian::new().precision(0.1).build().unwrap();
    let target = make::of_potential(bowl, options! { prior: &prior }).unwrap();
    let grid = verbs::posterior(&target)
        .x([-1.0, 1.0])
        .y([-1.0, 1.0])
        .cells(8)
        .run(&session);
    assert_eq!(grid.unwrap().shape(), (8, 8));
}
